//! `mainstay catalog validate`: everything that is wrong, at once.

use super::{
    Io,
    findings::{Contents, Finding, Findings, of_bundle},
    open::{Opened, open},
    sarif,
};
use crate::exit::{Exit, Failure};
use clap::{Args, ValueEnum};
use mainstay_bundle::{Bundle, Image};
use mainstay_catalog::{Folder, Keep, LoadOptions, Problem, Rule, inspect};

/// Arguments of `validate`.
#[derive(Args, Debug)]
pub(super) struct Arguments {
    /// Folders of catalogs, or of bundles (with `manifests` and `metadata`).
    #[arg(value_name = "PATH", required = true)]
    paths: Vec<String>,
    /// How the findings are written; SARIF 2.1.0 is what code scanners read.
    #[arg(short, long, value_enum, value_name = "FORMAT", default_value_t = Output::Text)]
    output: Output,
    /// Fail for warnings too.
    #[arg(long)]
    strict: bool,
}

/// Formats of findings.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Output {
    Text,
    Json,
    Yaml,
    Sarif,
}

pub(super) fn run(arguments: &Arguments, io: &mut Io<'_>) -> Result<Exit, Failure> {
    let opened = arguments.paths.iter().map(|typed| open(io, typed));
    let opened = opened.collect::<Result<Vec<Opened>, Failure>>()?;
    let findings = findings_of(&opened);
    let [errors, warnings] = findings.counts();
    let passed = errors == 0 && (warnings == 0 || !arguments.strict);
    let text = match arguments.output {
        Output::Text => findings.text(io.colour),
        Output::Json => format!("{:#}\n", findings.value(passed)),
        Output::Yaml => mainstay_yaml::to_string(&findings.value(passed)),
        Output::Sarif => format!("{:#}\n", sarif::log(&findings.list, &io.folder)),
    };
    io.print(&text);
    Ok(if passed { Exit::Done } else { Exit::Failed })
}

/// Everything that is wrong with some folders.
pub(super) fn findings_of(opened: &[Opened]) -> Findings {
    let mut findings = Findings::default();
    for folder in opened {
        let (problems, contents, complete) =
            if folder.is_bundle { look_at_bundle(folder) } else { look_at_catalog(folder) };
        findings.unread |= !complete;
        findings.contents.extend(contents.map(|contents| (folder.typed.clone(), contents)));
        findings.list.extend(problems.into_iter().map(|problem| {
            let file = match problem.rule {
                Rule::NoCatalog => folder.typed.clone(),
                _ => folder.below(&problem.file),
            };
            Finding { file, problem }
        }));
    }
    findings
}

fn look_at_catalog(folder: &Opened) -> (Vec<Problem>, Option<Contents>, bool) {
    let options = LoadOptions { keep: Keep::Facts, ..LoadOptions::default() };
    let inspection = inspect(&Folder::new(&folder.path), &options);
    let contents = inspection.catalog.map(|catalog| Contents {
        packages: catalog.packages().len(),
        channels: catalog.packages().map(|package| package.channels().len()).sum(),
        bundles: catalog.packages().map(|package| package.bundles().len()).sum(),
    });
    (inspection.problems, contents, inspection.complete)
}

fn look_at_bundle(folder: &Opened) -> (Vec<Problem>, Option<Contents>, bool) {
    let refused =
        |error: &mainstay_bundle::BundleError| of_bundle(Rule::BadBundle, error.problem());
    let bundle = match Bundle::read(&folder.path) {
        Ok(bundle) => bundle,
        Err(error) => return (vec![refused(&error)], None, true),
    };
    let passed_over = bundle.passed_over().iter();
    let mut problems: Vec<Problem> =
        passed_over.map(|problem| of_bundle(Rule::PassedOver, problem)).collect();
    if let Err(error) = bundle.declare(Image::None, &folder.typed) {
        problems.push(refused(&error));
    }
    problems.sort_by(|a, b| (&a.file, a.line).cmp(&(&b.file, b.line)));
    (problems, Some(Contents { packages: 0, channels: 0, bundles: 1 }), true)
}
