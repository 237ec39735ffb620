//! `mainstay bundle validate`: all findings about bundle folders at once.

use super::findings::{Findings, severity};
use super::format;
use crate::validation::{Finding, Options, Validated};
use clap::Args;
use mainstay_bundle::{
    BundleFolder, BundleProblem, BundleReader, Limits,
    validate::{LibraryVersion, LoadResult, LoadedBundle, Validator, ValidatorSettings},
};
use mainstay_catalog::Severity;
use mainstay_cause::{Cause, FileLocation};
use mainstay_command::exit::{CommandFailure, ExitStatus};
use mainstay_command::io::CommandIo;
use mainstay_command::text::count;
use mainstay_gocompat::io_error_text;
use serde_json::Map;
use std::path::{Path, PathBuf};

const EXAMPLES: &str = "Examples:
  mainstay bundle validate ./kiwi
  mainstay bundle validate bundles/* --also operatorhub/v2 --strict
  mainstay bundle validate bundles/* --write-baseline known-findings.yaml
  mainstay bundle validate bundles/* --baseline known-findings.yaml -o sarif";

/// Arguments of `validate`.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(super) struct Arguments {
    /// Folders of bundles (with `manifests` and `metadata`), or of manifests alone.
    #[arg(value_name = "DIR", required = true)]
    folders: Vec<String>,
    #[command(flatten)]
    options: Options,
    /// Also run this validator: operatorhub/v2, standardcapabilities, standardcategories or community
    /// (repeatable).
    #[arg(long = "also", value_name = "VALIDATOR", value_parser = optional_validator)]
    also: Vec<Validator>,
    /// Kubernetes version for the bundle: APIs that it has removed are errors.
    #[arg(long, value_name = "VERSION")]
    kubernetes: Option<String>,
    /// File with the allowed categories, `{"categories": ["…"]}`, instead of the standard ones.
    #[arg(long, value_name = "FILE")]
    categories: Option<PathBuf>,
    /// Dockerfile of the index image, whose labels the validator `community` checks.
    #[arg(long, value_name = "FILE")]
    index: Option<PathBuf>,
}

/// The validators that always run: for content that a cluster refuses, that harms it, or that will stop
/// working.
const ALWAYS: [Validator; 6] = [
    Validator::Csv,
    Validator::Crd,
    Validator::Bundle,
    Validator::Object,
    Validator::RemovedApis,
    Validator::GoodPractices,
];

/// The rule for fields that the types of manifests do not have.
const UNKNOWN_FIELD: &str = "unknown-field";

/// The rule for kinds and versions that no cluster serves.
const UNKNOWN_API: &str = "unknown-api";

/// The rule for repeated keys.
const REPEATED_KEY: &str = "repeated-key";

/// The validators that run on request.
const OPTIONAL: [Validator; 4] = [
    Validator::OperatorHubV2,
    Validator::Capabilities,
    Validator::Categories,
    Validator::Community,
];

/// No optional validator has this name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the validators are {}", OPTIONAL.map(Validator::name).join(", "))]
struct UnknownValidator;

fn optional_validator(name: &str) -> Result<Validator, UnknownValidator> {
    let found = OPTIONAL.into_iter().find(|validator| validator.name() == name);
    found.ok_or(UnknownValidator)
}

pub(super) fn run(
    arguments: &Arguments,
    io: &mut CommandIo<'_>,
) -> Result<ExitStatus, CommandFailure> {
    let mut settings = ValidatorSettings::default();
    settings.set("k8s-version", arguments.kubernetes.as_deref().unwrap_or_default());
    if let Some(path) = &arguments.index {
        settings.set("index-path", &io.folder.join(path).to_string_lossy());
    }
    if let Some(path) = &arguments.categories {
        settings.categories_from(&io.folder.join(path));
    }
    let mut findings = Findings::default();
    let mut fully_read = Vec::new();
    for argument in &arguments.folders {
        let path = folder(io, argument)?;
        if collect(&mut findings, argument, &path, &arguments.also, &settings) {
            fully_read.push(argument.clone());
        }
    }
    // A validator that does not run has no findings.
    let is_rule_enabled =
        |rule: &str| match OPTIONAL.into_iter().find(|validator| validator.name() == rule) {
            Some(validator) => arguments.also.contains(&validator),
            None => true,
        };
    let bundles = arguments.folders.len();
    let validated = Validated {
        folders: &fully_read,
        is_rule_enabled: &is_rule_enabled,
        contents: count(bundles, "bundle"),
        note: "",
        fields: Map::from_iter([("bundles".to_owned(), bundles.into())]),
    };
    arguments.options.report(findings.into_sorted(), &validated, io)
}

/// The findings of the validators that always run, about one bundle.
pub(super) fn validate_folder(argument: &str, path: &Path) -> Vec<Finding> {
    let mut findings = Findings::default();
    collect(&mut findings, argument, path, &[], &ValidatorSettings::default());
    findings.into_sorted()
}

/// Checks that a folder exists; returns its path.
pub(super) fn folder(io: &CommandIo<'_>, argument: &str) -> Result<PathBuf, CommandFailure> {
    let refuse = |why: String| {
        let cause = Cause::new(why).at(FileLocation::file(argument));
        Err(CommandFailure::usage(cause.remedy("name the folder of a bundle")))
    };
    if argument.is_empty() {
        return refuse("the path is empty".to_owned());
    }
    let path = io.folder.join(argument);
    match std::fs::metadata(&path) {
        Ok(found) if found.is_dir() => Ok(path),
        Ok(_) => refuse("this is a file, not a folder".to_owned()),
        Err(error) => refuse(io_error_text(&error)),
    }
}

/// Adds the findings about one bundle. Returns whether all of it was read.
fn collect(
    findings: &mut Findings,
    argument: &str,
    path: &Path,
    also: &[Validator],
    settings: &ValidatorSettings,
) -> bool {
    let tree = BundleFolder::new(path);
    let reading = BundleReader::new(&tree, &Limits::default());
    let loaded = reading.load("", argument, LibraryVersion::default());
    let about = BundleContext { argument, package: package(&loaded) };
    for problem in &loaded.problems {
        findings.add(about.problem("unreadable", Severity::Error, problem));
    }
    for problem in &loaded.dropped {
        findings.add(about.problem("dropped", Severity::Warning, problem));
    }
    for problem in &loaded.repeated {
        findings.add(about.problem(REPEATED_KEY, Severity::Error, problem));
    }
    let mut unknown = reading.unknown_fields();
    if let Some(subject) = &loaded.subject {
        about.run_validators(findings, subject, also, settings);
        unknown.extend(subject.unknown_fields());
        for api in subject.unknown_apis() {
            findings.add(about.problem(UNKNOWN_API, severity(api.level), &api.problem));
        }
    }
    for field in unknown {
        findings.add(about.problem(UNKNOWN_FIELD, severity(field.level), &field.problem));
    }
    for finding in format::bundle_findings(path, &about, &reading, &loaded) {
        findings.add_new(finding);
    }
    loaded.subject.is_some() && loaded.problems.is_empty()
}

/// The package of a bundle: that of its annotations, or the first part of its CSV's name.
fn package(loaded: &LoadResult) -> String {
    let Some(subject) = &loaded.subject else { return String::new() };
    match subject.package.as_str() {
        "" => subject.name.split('.').next().unwrap_or_default().to_owned(),
        package => package.to_owned(),
    }
}

/// The bundle of findings.
pub(super) struct BundleContext<'a> {
    /// The folder as typed.
    argument: &'a str,
    package: String,
}

impl BundleContext<'_> {
    /// The path of one of its files, as the user would type it.
    pub(super) fn path_of(&self, file: &str) -> String {
        match file {
            "" => self.argument.to_owned(),
            file => format!("{}/{file}", self.argument.trim_end_matches('/')),
        }
    }

    /// A finding in one of its files.
    pub(super) fn finding(
        &self,
        rule: &str,
        severity: Severity,
        (file, line): (&str, Option<usize>),
        message: String,
        remedy: impl Into<String>,
    ) -> Finding {
        Finding {
            rule: rule.to_owned(),
            about: "",
            severity,
            package: self.package.clone(),
            blob: None,
            file: self.path_of(file),
            line,
            column: None,
            message,
            remedy: remedy.into(),
        }
    }

    fn problem(&self, rule: &str, severity: Severity, problem: &BundleProblem) -> Finding {
        let place = (problem.file.as_str(), problem.line);
        self.finding(rule, severity, place, problem.message.clone(), &*problem.remedy)
    }

    /// Runs the validators and adds their findings.
    fn run_validators(
        &self,
        findings: &mut Findings,
        subject: &LoadedBundle,
        also: &[Validator],
        settings: &ValidatorSettings,
    ) {
        let run = |validator: &Validator| {
            let results = validator.run(subject, settings, None);
            results.into_iter().map(|result| (*validator, result)).collect::<Vec<_>>()
        };
        let results: Vec<_> = ALWAYS.iter().chain(also).flat_map(run).collect();
        let reported: Vec<(Validator, &mainstay_bundle::validate::ValidationFinding)> = results
            .iter()
            .flat_map(|(validator, result)| result.iter().map(|finding| (*validator, finding)))
            .collect();
        let places =
            subject.locate_all(&reported.iter().map(|(_, finding)| *finding).collect::<Vec<_>>());
        for ((validator, finding), place) in reported.into_iter().zip(places) {
            let place =
                place.as_ref().map_or(("", None), |place| (place.file.as_str(), place.line));
            let message = message(finding, subject);
            let (rule, level) = (validator.name(), severity(finding.level));
            findings.add_new(self.finding(rule, level, place, message, &*finding.remedy));
        }
    }
}

/// The message of a validator, without the part that the place repeats.
fn message(
    finding: &mainstay_bundle::validate::ValidationFinding,
    subject: &LoadedBundle,
) -> String {
    use mainstay_bundle::validate::BadValue;
    // Upstream often puts the bundle's name in front.
    let before = format!("({}) ", subject.name);
    let detail = finding.detail.strip_prefix(&before).unwrap_or(&finding.detail);
    match &finding.bad {
        BadValue::Text(value) if finding.kind == "OperationFailed" => format!("{value}: {detail}"),
        BadValue::Printed(value) if finding.kind == "ParseError" => format!("{detail}: {value}"),
        _ if finding.kind == "FieldNotFound" => format!("{}: {detail}", finding.field),
        _ => detail.to_owned(),
    }
}
