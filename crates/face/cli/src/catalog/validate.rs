//! `mainstay catalog validate`: everything that is wrong, at once.

use super::{
    Io, count,
    open::{Opened, open},
};
use crate::{
    exit::{Exit, Failure},
    validation::{Finding, Options, Validated},
};
use clap::Args;
use mainstay_bundle::{Bundle, Folder as BundleFolder, Image, Limits, Reading, validate::Level};
use mainstay_catalog::{Folder, Keep, LoadOptions, Problem, Rule, inspect};
use serde_json::{Map, Value, json};

const EXAMPLES: &str = "Examples:
  mainstay catalog validate ./catalog
  mainstay catalog validate ./catalog bundles/* --strict -o sarif
  mainstay catalog validate ./catalog --write-baseline known-findings.yaml
  mainstay catalog validate ./catalog --baseline known-findings.yaml";

/// Arguments of `validate`.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(super) struct Arguments {
    /// Folders of catalogs, or of bundles (with `manifests` and `metadata`).
    #[arg(value_name = "PATH", required = true)]
    paths: Vec<String>,
    #[command(flatten)]
    options: Options,
}

/// What a folder holds.
struct Contents {
    packages: usize,
    channels: usize,
    bundles: usize,
}

/// What came of looking at some folders.
#[derive(Default)]
pub(super) struct Inspected {
    pub(super) findings: Vec<Finding>,
    /// What sound folders hold, by the path as it was typed.
    contents: Vec<(String, Contents)>,
    /// The folders of which every document could be read.
    read: Vec<String>,
    /// Documents could not be read, so that nobody knows what is missing.
    unread: bool,
}

pub(super) fn run(arguments: &Arguments, io: &mut Io<'_>) -> Result<Exit, Failure> {
    let opened = arguments.paths.iter().map(|typed| open(io, typed));
    let opened = opened.collect::<Result<Vec<Opened>, Failure>>()?;
    let inspected = inspect_all(&opened);
    let unread = "; what is missing shows when all files can be read";
    let (contents, fields) = (inspected.in_words(), inspected.fields());
    let validated = Validated {
        folders: &inspected.read,
        is_asked: &|_| true,
        contents,
        note: if inspected.unread { unread } else { "" },
        fields,
    };
    arguments.options.report(inspected.findings, &validated, io)
}

impl Inspected {
    /// What sound folders hold, such as `1 package, 2 channels`.
    fn in_words(&self) -> String {
        let all = |of: fn(&Contents) -> usize| {
            self.contents.iter().map(|(_, contents)| of(contents)).sum::<usize>()
        };
        let parts: Vec<String> = [
            (all(|contents| contents.packages), "package"),
            (all(|contents| contents.channels), "channel"),
            (all(|contents| contents.bundles), "bundle"),
        ]
        .into_iter()
        .filter(|(number, _)| *number > 0)
        .map(|(number, what)| count(number, what))
        .collect();
        parts.join(", ")
    }

    /// What the JSON value says besides the findings.
    fn fields(&self) -> Map<String, Value> {
        let contents = self.contents.iter().map(|(path, contents)| {
            json!({
                "path": path,
                "packages": contents.packages,
                "channels": contents.channels,
                "bundles": contents.bundles,
            })
        });
        Map::from_iter([
            ("complete".to_owned(), (!self.unread).into()),
            ("contents".to_owned(), contents.collect()),
        ])
    }
}

/// Everything that is wrong with some folders.
pub(super) fn inspect_all(opened: &[Opened]) -> Inspected {
    let mut inspected = Inspected::default();
    for folder in opened {
        let (problems, contents, complete) =
            if folder.is_bundle { look_at_bundle(folder) } else { look_at_catalog(folder) };
        // A bundle that is refused is looked at no further, a catalog is.
        if complete && (contents.is_some() || !folder.is_bundle) {
            inspected.read.push(folder.typed.clone());
        }
        inspected.unread |= !complete;
        inspected.contents.extend(contents.map(|contents| (folder.typed.clone(), contents)));
        inspected.findings.extend(
            problems.into_iter().map(|(package, problem)| finding(folder, package, problem)),
        );
    }
    inspected
}

fn finding(folder: &Opened, package: String, problem: Problem) -> Finding {
    let file = match problem.rule {
        Rule::NoCatalog => folder.typed.clone(),
        _ => folder.below(&problem.file),
    };
    Finding {
        rule: problem.rule.id().to_owned(),
        about: problem.rule.about(),
        severity: problem.severity(),
        package,
        blob: problem.blob,
        file,
        line: problem.line,
        column: problem.column,
        message: problem.message,
        remedy: problem.remedy.into_owned(),
    }
}

/// Problems with the packages they are about, what the folder holds, and whether all of it was read.
type Look = (Vec<(String, Problem)>, Option<Contents>, bool);

fn look_at_catalog(folder: &Opened) -> Look {
    let options = LoadOptions { keep: Keep::Facts, ..LoadOptions::default() };
    let inspection = inspect(&Folder::new(&folder.path), &options);
    let contents = inspection.catalog.map(|catalog| Contents {
        packages: catalog.packages().len(),
        channels: catalog.packages().map(|package| package.channels().len()).sum(),
        bundles: catalog.packages().map(|package| package.bundles().len()).sum(),
    });
    let problems = inspection.problems.into_iter().map(|problem| {
        let package = problem.blob.as_ref().map(|blob| match &*blob.schema {
            "olm.package" => &*blob.name,
            _ => &*blob.package,
        });
        (package.unwrap_or_default().to_owned(), problem)
    });
    (problems.collect(), contents, inspection.complete)
}

fn look_at_bundle(folder: &Opened) -> Look {
    let refused =
        |error: &mainstay_bundle::BundleError| of_bundle(Rule::BadBundle, error.problem());
    let bundle = match Bundle::read(&folder.path) {
        Ok(bundle) => bundle,
        Err(error) => {
            // What was passed over before may be why something is missing.
            let passed_over = error.passed_over().iter();
            let passed_over = passed_over.map(|problem| of_bundle(Rule::PassedOver, problem));
            let problems = passed_over.chain([refused(&error)]);
            return (problems.map(|problem| (String::new(), problem)).collect(), None, true);
        }
    };
    let passed_over = bundle.passed_over().iter();
    let mut problems: Vec<Problem> =
        passed_over.map(|problem| of_bundle(Rule::PassedOver, problem)).collect();
    let repeated = bundle.repeated_keys().iter();
    problems.extend(repeated.map(|problem| of_bundle(Rule::RepeatedKey, problem)));
    problems.extend(bundle.unknown_apis().iter().map(|unknown| {
        let rule = match unknown.level {
            Level::Error => Rule::UnknownApi,
            Level::Warning => Rule::DoubtfulApi,
        };
        of_bundle(rule, &unknown.problem)
    }));
    let tree = BundleFolder::new(&folder.path);
    let limits = Limits::default();
    let mut unknown = bundle.unknown_fields();
    unknown.extend(Reading::new(&tree, &limits).unknown_fields());
    problems.extend(unknown.iter().map(|unknown| {
        let rule = match unknown.level {
            Level::Error => Rule::UnknownField,
            Level::Warning => Rule::UnknownManifestField,
        };
        of_bundle(rule, &unknown.problem)
    }));
    if let Err(error) = bundle.declare(Image::None, &folder.typed) {
        problems.push(refused(&error));
    }
    problems.sort_by(|a, b| (&a.file, a.line).cmp(&(&b.file, b.line)));
    let package = bundle.package();
    let problems = problems.into_iter().map(|problem| (package.to_owned(), problem));
    let contents = Contents { packages: 0, channels: 0, bundles: 1 };
    (problems.collect(), Some(contents), true)
}

/// The problem of a bundle folder as one of a catalog.
fn of_bundle(rule: Rule, problem: &mainstay_bundle::Problem) -> Problem {
    let loss = match rule {
        Rule::PassedOver => "; other tools drop it without a word",
        _ => "",
    };
    Problem {
        rule,
        blob: None,
        file: problem.file.as_str().into(),
        line: problem.line,
        column: None,
        message: format!("{}{loss}", problem.message),
        remedy: problem.remedy.clone(),
    }
}
