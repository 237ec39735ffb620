//! `mainstay bundle validate`: everything that is wrong, at once.

use super::findings::{Finding, Findings};
use super::format;
use crate::catalog::Io;
use crate::config::reason;
use crate::exit::{Exit, Failure};
use clap::{Args, ValueEnum};
use mainstay_bundle::{
    Folder, Limits, Problem, Reading,
    validate::{Level, Library, Loaded, Settings, Subject, Validator},
};
use mainstay_cause::{Cause, Place};
use std::path::{Path, PathBuf};

/// Arguments of `validate`.
#[derive(Args, Debug)]
pub(super) struct Arguments {
    /// Folders of bundles (with `manifests` and `metadata`), or of manifests alone.
    #[arg(value_name = "DIR", required = true)]
    folders: Vec<String>,
    /// How the findings are written; SARIF 2.1.0 is what code scanners read.
    #[arg(short, long, value_enum, value_name = "FORMAT", default_value_t = Output::Text)]
    output: Output,
    /// Fail for warnings too.
    #[arg(long)]
    strict: bool,
    /// Also ask this validator: operatorhub/v2, standardcapabilities, standardcategories or community
    /// (repeatable).
    #[arg(long = "also", value_name = "VALIDATOR", value_parser = optional)]
    also: Vec<Validator>,
    /// The version of Kubernetes that the bundle shall run on: APIs it has removed are errors then.
    #[arg(long, value_name = "VERSION")]
    kubernetes: Option<String>,
    /// A file with the categories that are allowed, `{"categories": ["…"]}`, instead of the standard
    /// ones.
    #[arg(long, value_name = "FILE")]
    categories: Option<PathBuf>,
    /// The Dockerfile of the index image, whose labels the validator community looks at.
    #[arg(long, value_name = "FILE")]
    index: Option<PathBuf>,
}

/// Formats of findings.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Output {
    Text,
    Json,
    Yaml,
    Sarif,
}

/// The validators that are always asked: what a cluster refuses, what harms it, what will not last.
const ALWAYS: [Validator; 6] = [
    Validator::Csv,
    Validator::Crd,
    Validator::Bundle,
    Validator::Object,
    Validator::RemovedApis,
    Validator::GoodPractices,
];

/// The validators that are asked on request.
const OPTIONAL: [Validator; 4] = [
    Validator::OperatorHubV2,
    Validator::Capabilities,
    Validator::Categories,
    Validator::Community,
];

fn optional(name: &str) -> Result<Validator, String> {
    let found = OPTIONAL.into_iter().find(|validator| validator.name() == name);
    found.ok_or_else(|| {
        let names: Vec<&str> = OPTIONAL.into_iter().map(Validator::name).collect();
        format!("there are {}", names.join(", "))
    })
}

pub(super) fn run(arguments: &Arguments, io: &mut Io<'_>) -> Result<Exit, Failure> {
    let mut settings = Settings::default();
    settings.set("k8s-version", arguments.kubernetes.as_deref().unwrap_or_default());
    if let Some(path) = &arguments.index {
        settings.set("index-path", &io.folder.join(path).to_string_lossy());
    }
    if let Some(path) = &arguments.categories {
        settings.categories_from(&io.folder.join(path));
    }
    let mut findings = Findings::default();
    for typed in &arguments.folders {
        let path = folder(io, typed)?;
        let tree = Folder::new(&path);
        let reading = Reading::new(&tree, &Limits::default());
        let loaded = look(&mut findings, typed, &reading, &arguments.also, &settings);
        for finding in format::of_bundle(&path, typed, &reading, &loaded) {
            findings.add_new(finding);
        }
    }
    findings.sort();
    let [errors, warnings] = findings.counts();
    let passed = errors == 0 && (warnings == 0 || !arguments.strict);
    let text = match arguments.output {
        Output::Text => findings.text(io.colour),
        Output::Json => format!("{:#}\n", findings.value(passed)),
        Output::Yaml => mainstay_yaml::to_string(&findings.value(passed)),
        Output::Sarif => format!("{:#}\n", findings.sarif(&io.folder)),
    };
    io.print(&text);
    Ok(if passed { Exit::Done } else { Exit::Failed })
}

/// Everything that is always asked about one bundle.
pub(super) fn judge(typed: &str, path: &Path) -> Findings {
    let mut findings = Findings::default();
    let tree = Folder::new(path);
    let reading = Reading::new(&tree, &Limits::default());
    let loaded = look(&mut findings, typed, &reading, &[], &Settings::default());
    for finding in format::of_bundle(path, typed, &reading, &loaded) {
        findings.add_new(finding);
    }
    findings.sort();
    findings
}

fn look(
    findings: &mut Findings,
    typed: &str,
    reading: &Reading<'_>,
    also: &[Validator],
    settings: &Settings,
) -> Loaded {
    let loaded = reading.load("", typed, Library::default());
    let shown = |file: &str| match file {
        "" => typed.to_owned(),
        file => format!("{}/{file}", typed.trim_end_matches('/')),
    };
    collect(findings, &loaded, also, settings, &shown);
    loaded
}

/// The path of a folder that is there.
pub(super) fn folder(io: &Io<'_>, typed: &str) -> Result<PathBuf, Failure> {
    let refuse = |why: String| {
        let cause = Cause::new(why).at(Place::file(typed));
        Err(Failure::usage(cause.remedy("name the folder of a bundle")))
    };
    if typed.is_empty() {
        return refuse("the path is empty".to_owned());
    }
    let path = io.folder.join(typed);
    match std::fs::metadata(&path) {
        Ok(found) if found.is_dir() => Ok(path),
        Ok(_) => refuse("this is a file, not a folder".to_owned()),
        Err(error) => refuse(reason(&error)),
    }
}

/// Adds what there is to say of one bundle.
fn collect(
    findings: &mut Findings,
    loaded: &Loaded,
    also: &[Validator],
    settings: &Settings,
    shown: &dyn Fn(&str) -> String,
) {
    findings.bundles += 1;
    let mut add = |rule: &str, level: Level, problem: &Problem| {
        findings.add(Finding {
            rule: rule.to_owned(),
            level,
            file: shown(&problem.file),
            line: problem.line,
            message: problem.message.clone(),
            remedy: problem.remedy.to_string(),
        });
    };
    for problem in &loaded.problems {
        add("unreadable", Level::Error, problem);
    }
    for problem in &loaded.dropped {
        add("dropped", Level::Warning, problem);
    }
    let Some(subject) = &loaded.subject else { return };
    let ask = |validator: &Validator| {
        let said = validator.run(subject, settings, None);
        said.into_iter().map(|said| (*validator, said)).collect::<Vec<_>>()
    };
    let said: Vec<_> = ALWAYS.iter().chain(also).flat_map(ask).collect();
    let said: Vec<(Validator, &mainstay_bundle::validate::Finding)> = said
        .iter()
        .flat_map(|(validator, said)| said.iter().map(|finding| (*validator, finding)))
        .collect();
    let places = subject.places(&said.iter().map(|(_, finding)| *finding).collect::<Vec<_>>());
    for ((validator, finding), place) in said.into_iter().zip(places) {
        findings.add_new(translated(validator, finding, subject, place, shown));
    }
}

fn translated(
    validator: Validator,
    finding: &mainstay_bundle::validate::Finding,
    subject: &Subject,
    place: Option<mainstay_bundle::validate::Place>,
    shown: &dyn Fn(&str) -> String,
) -> Finding {
    // Upstream often has the name of the bundle in front.
    let before = format!("({}) ", subject.name);
    let mut message = finding.detail.strip_prefix(&before).unwrap_or(&finding.detail).to_owned();
    match &finding.bad {
        mainstay_bundle::validate::Bad::Text(value) if finding.kind == "OperationFailed" => {
            message = format!("{value}: {message}");
        }
        mainstay_bundle::validate::Bad::Shown(value) if finding.kind == "ParseError" => {
            message = format!("{message}: {value}");
        }
        _ if finding.kind == "FieldNotFound" => message = format!("{}: {message}", finding.field),
        _ => {}
    }
    Finding {
        rule: validator.name().to_owned(),
        level: finding.level,
        file: place.as_ref().map_or_else(|| shown(""), |place| shown(&place.file)),
        line: place.and_then(|place| place.line),
        message,
        remedy: finding.remedy.to_string(),
    }
}
