//! Recorded cases.

use anyhow::Context;
use serde_json::Value;
use std::fs;
use std::path::Path;

/// One recorded case.
#[derive(Clone, Debug, Default)]
pub struct Case {
    /// The id, `cNNN`; it is part of the names of the case's objects.
    pub id: String,
    /// The rule that the case demonstrates.
    pub rule: String,
    /// A description.
    pub title: String,
    /// The rows of the specification that the case belongs to.
    pub spec: String,
    /// Its namespaces.
    pub namespaces: Vec<String>,
    /// The steps, in order.
    pub steps: Vec<CaseStep>,
}

/// One step of a case.
#[derive(Clone, Debug, Default)]
pub struct CaseStep {
    /// The folder's name: number and title.
    pub name: String,
    /// A description.
    pub title: String,
    /// The condition that the recording waited for.
    pub until: Option<String>,
    /// Whether the condition came true.
    pub reached: bool,
    /// The objects that kept changing.
    pub changing: Vec<String>,
    /// The kubectl command line.
    pub command: Option<String>,
    /// The standard input of the command.
    pub input: String,
    /// The exit code of the command.
    pub exit: Option<i64>,
    /// The standard output and standard error of the command.
    pub printed: (String, String),
    /// Catalogs that are served from this step on, by name.
    pub catalogs: Vec<(String, String)>,
    /// The objects when the cluster was idle.
    pub objects: Vec<Value>,
    /// All events up to then.
    pub events: Vec<Value>,
    /// The metric series that name the case, one per line.
    pub metrics: Vec<String>,
}

impl Case {
    /// The folder's name: id and rule.
    pub fn name(&self) -> String {
        format!("{}-{}", self.id, self.rule)
    }
}

impl CaseStep {
    /// The number of the step, two digits.
    pub fn number(&self) -> &str {
        self.name.get(..2).unwrap_or(&self.name)
    }
}

/// Reads all cases in a folder, sorted by id.
///
/// # Errors
///
/// A file cannot be read.
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
    let mut steps = Vec::new();
    for recorded in case["steps"].as_array().into_iter().flatten() {
        let name = text(recorded, "step");
        let step = step(&folder.join(&name), recorded).with_context(|| name.clone())?;
        steps.push(CaseStep { name, ..step });
    }
    Ok(Case {
        id: text(&case, "case"),
        rule: text(&case, "rule"),
        title: text(&case, "title"),
        spec: text(&case, "spec"),
        namespaces: texts(&case["namespaces"]),
        steps,
    })
}

fn step(folder: &Path, recorded: &Value) -> anyhow::Result<CaseStep> {
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
    let mut catalogs = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let file = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let name = file.strip_prefix("catalog-").and_then(|stem| stem.strip_suffix(".yaml"));
        if let Some(name) = name {
            catalogs.push((name.to_owned(), fs::read_to_string(&path)?));
        }
    }
    catalogs.sort();
    let output = optional("output.txt")?.unwrap_or_default();
    let exit = output.lines().next().and_then(|line| line.strip_prefix("exit "));
    let printed = output.split_once('\n').map_or("", |(_, printed)| printed);
    let (out, error) = printed.split_once("--- stderr\n").unwrap_or((printed, ""));
    Ok(CaseStep {
        name: String::new(),
        title: text(recorded, "title"),
        until: recorded["until"].as_str().map(str::to_owned),
        reached: recorded["reached"].as_bool().unwrap_or(true),
        changing: texts(&recorded["still_changing"]),
        command: optional("command.txt")?.map(|text| text.trim().to_owned()),
        input: optional("input.yaml")?.unwrap_or_default(),
        exit: exit.and_then(|text| text.trim().parse().ok()),
        printed: (out.to_owned(), error.to_owned()),
        catalogs,
        objects: list("objects.json")?,
        events: list("events.json")?,
        metrics: optional("metrics.txt")?.unwrap_or_default().lines().map(str::to_owned).collect(),
    })
}
