//! Recorded cases.

use super::condition::WaitCondition;
use anyhow::{Context, bail};
use mainstay_conformance_harness::kubectl::CommandResult;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::time::Duration;

/// How long a recorded step waited for its condition, unless it says otherwise.
const TIMEOUT: Duration = Duration::from_mins(1);
/// How long nothing changed before the recording took down a state, unless the step says otherwise.
const QUIET: Duration = Duration::from_secs(3);
/// A case that sleeps longer does not run with every test.
const LONG: Duration = Duration::from_secs(30);

/// The optional features of the original that were on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FeatureProfile {
    /// The standard CRDs and features.
    #[default]
    Standard,
    /// The experimental CRDs, and the Helm applier.
    Experimental,
    /// The experimental CRDs, and object sets.
    Boxcutter,
}

/// One recorded case.
#[derive(Clone, Debug, Default)]
pub struct Case {
    /// The id, `cNNN`; it is part of the names of the case's objects.
    pub id: String,
    /// The rule that the case demonstrates.
    pub rule: String,
    /// A description.
    pub title: String,
    /// The optional features.
    pub profile: FeatureProfile,
    /// Its namespaces.
    pub namespaces: Vec<String>,
    /// The steps, in order.
    pub steps: Vec<RecordedStep>,
}

/// One step of a case. Everything in it is optional.
#[derive(Clone, Debug, Default)]
pub struct RecordedStep {
    /// The folder's name: number and title.
    pub name: String,
    /// The images that are pushed before the step, as `images.yaml` describes them.
    pub images: Vec<Value>,
    /// References that the registry forgets.
    pub forget: Vec<String>,
    /// What is wrong with a repository from now on; none for nothing.
    pub faults: BTreeMap<String, Option<RepositoryFault>>,
    /// The process that starts or stops.
    pub control: Option<ProcessControl>,
    /// The arguments of kubectl.
    pub command: Option<Vec<String>>,
    /// The standard input of the command.
    pub input: String,
    /// How long the recording slept.
    pub sleep: Duration,
    /// The condition that the recording waited for.
    pub until: Option<WaitCondition>,
    /// How long it waited.
    pub timeout: Duration,
    /// Whether the condition came true.
    pub reached: bool,
    /// How long nothing changed before the state was taken down.
    pub quiet: Duration,
    /// Whether that came true.
    pub settled: bool,
    /// The places that differ between two runs of the original.
    pub varies: Vec<String>,
    /// What kubectl printed.
    pub output: Option<CommandResult>,
    /// The objects after the step.
    pub objects: Vec<Value>,
    /// The requests to the catalog server after the step, with its responses.
    pub http: Vec<Value>,
}

/// What is wrong with the responses for a repository.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RepositoryFault {
    /// Whether manifests are concerned.
    pub manifests: bool,
    /// Whether blobs are concerned.
    pub blobs: bool,
    /// The fault.
    pub kind: FaultKind,
}

/// A fault of a registry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FaultKind {
    /// This status.
    Status(u16),
    /// A page instead of the content.
    Garbage,
    /// One wrong byte.
    Flip,
}

/// A process of the lifecycle system that starts or stops.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProcessControl {
    /// The process, such as `catalogd`.
    pub process: String,
    /// Whether it runs afterwards.
    pub runs: bool,
}

impl Case {
    /// The folder's name: id and rule.
    pub fn name(&self) -> String {
        format!("{}-{}", self.id, self.rule)
    }

    /// Whether the case sleeps so long that it does not run with every test.
    pub fn is_long(&self) -> bool {
        self.steps.iter().map(|step| step.sleep).sum::<Duration>() > LONG
    }

    /// Whether ours supports what the case is about: no Helm charts as bundles with the Helm applier.
    pub fn is_supported(&self) -> bool {
        let mut images = self.steps.iter().flat_map(|step| &step.images);
        let has_charts = images.any(|image| !image["chart"].is_null());
        !(has_charts && self.profile == FeatureProfile::Experimental)
    }
}

impl RecordedStep {
    /// The number of the step, two digits.
    pub fn number(&self) -> &str {
        self.name.get(..2).unwrap_or(&self.name)
    }
}

/// Reads all cases in a folder, sorted by id.
///
/// # Errors
/// A file cannot be read, or says something that the replay does not know.
pub fn read_all(root: &Path) -> anyhow::Result<Vec<Case>> {
    let mut cases = Vec::new();
    for entry in fs::read_dir(root).with_context(|| root.display().to_string())? {
        let folder = entry?.path();
        if folder.join("case.json").is_file() {
            cases.push(read(&folder).with_context(|| folder.display().to_string())?);
        }
    }
    cases.sort_by(|a: &Case, b: &Case| a.id.cmp(&b.id));
    Ok(cases)
}

fn text(value: &Value, key: &str) -> String {
    value[key].as_str().unwrap_or_default().to_owned()
}

fn texts(value: &Value) -> Vec<String> {
    let items = value.as_array().into_iter().flatten();
    items.filter_map(Value::as_str).map(str::to_owned).collect()
}

fn read(folder: &Path) -> anyhow::Result<Case> {
    let case: Value = serde_json::from_slice(&fs::read(folder.join("case.json"))?)?;
    let profile = match case["profile"].as_str() {
        Some("std") => FeatureProfile::Standard,
        Some("exp") => FeatureProfile::Experimental,
        Some("box") => FeatureProfile::Boxcutter,
        other => bail!("the profile {other:?} is not known"),
    };
    let mut steps = Vec::new();
    for recorded in case["steps"].as_array().into_iter().flatten() {
        let name = text(recorded, "step");
        let step = step(&folder.join(&name), recorded).with_context(|| name.clone())?;
        steps.push(RecordedStep { name, ..step });
    }
    Ok(Case {
        id: text(&case, "case"),
        rule: text(&case, "rule"),
        title: text(&case, "title"),
        profile,
        namespaces: texts(&case["namespaces"]),
        steps,
    })
}

fn step(folder: &Path, recorded: &Value) -> anyhow::Result<RecordedStep> {
    let optional = |file: &str| -> anyhow::Result<Option<String>> {
        let path = folder.join(file);
        if !path.is_file() {
            return Ok(None);
        }
        Ok(Some(fs::read_to_string(path)?))
    };
    let list = |file: &str| -> anyhow::Result<Vec<Value>> {
        let Some(text) = optional(file)? else { return Ok(Vec::new()) };
        serde_json::from_str(&text).with_context(|| file.to_owned())
    };
    let duration = |key: &str| recorded[key].as_f64().map(Duration::from_secs_f64);
    let images = match optional("images.yaml")? {
        Some(text) => mainstay_yaml::one(text.as_bytes(), &mainstay_yaml::Options::default())
            .context("images.yaml")?,
        None => Value::Null,
    };
    let mut faults = BTreeMap::new();
    for (repository, fault) in recorded["faults"].as_object().into_iter().flatten() {
        faults.insert(repository.clone(), fault_of(fault)?);
    }
    let until = &recorded["until"];
    Ok(RecordedStep {
        name: String::new(),
        images: images.as_array().cloned().unwrap_or_default(),
        forget: texts(&recorded["forget"]),
        faults,
        control: recorded["control"].as_str().map(control),
        command: recorded["command"].is_array().then(|| texts(&recorded["command"])),
        input: optional("input.yaml")?.unwrap_or_default(),
        sleep: duration("sleep").unwrap_or_default(),
        until: if until.is_null() { None } else { Some(WaitCondition::read(until)?) },
        timeout: duration("timeout").unwrap_or(TIMEOUT),
        reached: recorded["reached"].as_bool().unwrap_or(true),
        quiet: duration("quiet").unwrap_or(QUIET),
        settled: recorded["settled"].as_bool().unwrap_or(true),
        varies: texts(&recorded["varies"]),
        output: optional("output.txt")?.map(|text| output(&text)),
        objects: list("objects.json")?,
        http: list("http.json")?,
    })
}

fn output(text: &str) -> CommandResult {
    let (first, printed) = text.split_once('\n').unwrap_or((text, ""));
    let exit = first.strip_prefix("exit ").and_then(|code| code.trim().parse().ok());
    let (output, error) = printed.split_once("--- stderr\n").unwrap_or((printed, ""));
    CommandResult {
        exit: exit.unwrap_or_default(),
        output: output.to_owned(),
        error: error.to_owned(),
    }
}

fn control(text: &str) -> ProcessControl {
    match text.strip_prefix("stop-") {
        Some(process) => ProcessControl { process: process.to_owned(), runs: false },
        None => ProcessControl { process: text.to_owned(), runs: true },
    }
}

fn fault_of(fault: &Value) -> anyhow::Result<Option<RepositoryFault>> {
    if fault.is_null() {
        return Ok(None);
    }
    let kind = if let Some(status) = fault["status"].as_u64() {
        FaultKind::Status(u16::try_from(status)?)
    } else if fault["garbage"] == true {
        FaultKind::Garbage
    } else if fault["flip"] == true {
        FaultKind::Flip
    } else {
        bail!("the fault {fault} is not known")
    };
    let on = fault["on"].as_str();
    let concerns = |what: &str| on.is_none_or(|on| on == what);
    Ok(Some(RepositoryFault { manifests: concerns("manifests"), blobs: concerns("blobs"), kind }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn output_is_split_into_exit_code_output_and_error() {
        let found = output("exit 1\na created\n--- stderr\nError: b\n");
        let wanted = CommandResult {
            exit: 1,
            output: "a created\n".to_owned(),
            error: "Error: b\n".to_owned(),
        };
        assert_eq!(found, wanted);
        assert_eq!(output("exit 0\n"), CommandResult::default());
    }

    #[test]
    fn a_fault_without_subject_concerns_manifests_and_blobs() {
        let found = fault_of(&json!({"status": 500})).unwrap().unwrap();
        assert!(found.manifests && found.blobs && found.kind == FaultKind::Status(500));
        let found = fault_of(&json!({"flip": true, "on": "blobs"})).unwrap().unwrap();
        assert!(!found.manifests && found.blobs && found.kind == FaultKind::Flip);
        assert_eq!(fault_of(&Value::Null).unwrap(), None);
        assert!(fault_of(&json!({"slow": 1})).is_err());
    }
}
