//! Scenarios: their data types, and the folder that holds them.

use crate::backend::Reply;
use crate::parse;
use anyhow::{Context, bail};
use serde_json::Value;
use sha2::{Digest, Sha256};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::path::{Path, PathBuf};

/// The areas, in the order of reports.
pub const AREAS: [&str; 11] = [
    "apply",
    "patches",
    "schemas",
    "documents",
    "deletion",
    "rules",
    "access",
    "admission",
    "extension",
    "workloads",
    "limits",
];

/// A scenario: steps that run one after the other, in a namespace of their own.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// The area; one of [`AREAS`].
    pub area: String,
    /// The name of its file without `.yaml`.
    pub file: String,
    /// The name, unique in its area: the tested rule.
    pub name: String,
    /// The steps.
    pub steps: Vec<ScenarioStep>,
    /// Paths of cluster-scoped objects to delete at the end.
    pub cleanup: Vec<String>,
    /// Whether it runs after the others and by itself, because it lists what other scenarios create.
    pub runs_alone: bool,
    /// A digest of the steps; a recording with another digest is out of date.
    pub digest: String,
    /// The text of the scenario: words in it are never masked.
    pub source: String,
}

/// One step.
#[derive(Clone, Debug)]
pub enum ScenarioStep {
    /// Sends a request and compares its response.
    Call(ScenarioRequest),
    /// Opens a watch and compares some events.
    Watch(ScenarioWatch),
    /// Waits for a condition; not compared.
    Wait(Wait),
    /// Runs kubectl and compares its output, requests and responses.
    Kubectl(Kubectl),
    /// Starts a backend.
    Serve(ScenarioBackend),
    /// Compares the requests that a backend received since the last such step.
    Received(String),
    /// Gives the real server time to observe its configuration.
    Settle,
}

/// A backend.
#[derive(Clone, Debug)]
pub struct ScenarioBackend {
    /// Its name; its variables are `{NAME-url}`, `{NAME-address}` and `{NAME-ca}`.
    pub name: String,
    /// The names in its certificate.
    pub names: Vec<String>,
    /// Its replies, by path.
    pub answers: BTreeMap<String, Reply>,
}

/// A request.
#[derive(Clone, Debug)]
pub struct ScenarioRequest {
    /// The method, in capitals.
    pub method: String,
    /// Path and query, with variables.
    pub path: String,
    /// The body.
    pub body: Payload,
    /// `Content-Type`; empty for none. The default for a body is `application/json`.
    pub content_type: Option<String>,
    /// `Accept`.
    pub accept: String,
    /// Further headers.
    pub headers: BTreeMap<String, String>,
    /// Variables to set from the response: name → JSON pointer, or `header:NAME`.
    pub save: BTreeMap<String, String>,
    /// JSON pointers of the compared parts of the response; empty for all of it.
    pub only: Vec<String>,
}

/// The body of a request.
#[derive(Clone, Debug)]
pub enum Payload {
    /// Nothing.
    None,
    /// A value, sent as JSON.
    Json(Value),
    /// A text, sent unchanged.
    Text(String),
    /// Bytes.
    Bytes(Vec<u8>),
}

/// A watch.
#[derive(Clone, Debug)]
pub struct ScenarioWatch {
    /// Path and query; `watch=1` is added.
    pub path: String,
    /// The number of events to read. The server may close the watch earlier.
    pub events: usize,
    /// Whether every bookmark counts as an event. Otherwise only bookmarks that end the initial
    /// events do.
    pub bookmarks: bool,
    /// `Accept`.
    pub accept: String,
    /// Further headers.
    pub headers: BTreeMap<String, String>,
    /// Variables to set from the list of events: name → JSON pointer, such as
    /// `/0/object/metadata/name`.
    pub save: BTreeMap<String, String>,
}

/// A wait for a condition.
#[derive(Clone, Debug)]
pub struct Wait {
    /// The polled path.
    pub path: String,
    /// The condition: JSON pointer → value; a segment `key=value` selects from a list.
    pub until: BTreeMap<String, Value>,
    /// Whether to wait for 404 instead.
    pub gone: bool,
    /// Further headers.
    pub headers: BTreeMap<String, String>,
    /// A body to post to the path instead of reading it, for reviews that change nothing.
    pub body: Option<Value>,
}

/// A kubectl command.
#[derive(Clone, Debug)]
pub struct Kubectl {
    /// The arguments after `kubectl`.
    pub arguments: Vec<String>,
    /// Its standard input.
    pub stdin: String,
    /// Files in the working folder.
    pub files: BTreeMap<String, String>,
    /// Environment variables.
    pub env: BTreeMap<String, String>,
}

impl Kubectl {
    /// The sub-command: two words if the first is a command group.
    pub fn sub_command(&self) -> String {
        const GROUPS: [&str; 7] =
            ["create", "rollout", "set", "apply", "auth", "config", "certificate"];
        let mut words = self.arguments.iter().filter(|word| !word.starts_with('-'));
        let first = words.next().cloned().unwrap_or_default();
        match words.next() {
            Some(second)
                if GROUPS.contains(&first.as_str())
                    && second.chars().all(|c| c.is_ascii_lowercase() || c == '-')
                    && !self.files.contains_key(second) =>
            {
                format!("{first} {second}")
            }
            _ => first,
        }
    }
}

impl Scenario {
    /// `area/name`.
    pub fn title(&self) -> String {
        format!("{}/{}", self.area, self.name)
    }

    /// Whether it needs a namespace.
    pub(crate) fn needs_namespace(&self) -> bool {
        self.source.contains("{ns}")
            || self.steps.iter().any(|step| matches!(step, ScenarioStep::Kubectl(_)))
    }

    /// Its kubectl commands.
    pub fn kubectl(&self) -> impl Iterator<Item = &Kubectl> {
        self.steps.iter().filter_map(|step| match step {
            ScenarioStep::Kubectl(kubectl) => Some(kubectl),
            _ => None,
        })
    }

    /// Whether it has a watch step.
    pub fn watches(&self) -> bool {
        self.steps.iter().any(|step| matches!(step, ScenarioStep::Watch(_)))
    }
}

/// Selects scenarios.
#[derive(Clone, Debug, Default)]
pub struct ScenarioSelection {
    /// Only this area.
    pub area: Option<String>,
    /// Only this file (without `.yaml`).
    pub file: Option<String>,
    /// Only scenarios whose name contains this.
    pub name: Option<String>,
}

impl ScenarioSelection {
    /// Whether a scenario is selected.
    pub fn has(&self, scenario: &Scenario) -> bool {
        let is = |filter: &Option<String>, text: &str| filter.as_ref().is_none_or(|w| w == text);
        is(&self.area, &scenario.area)
            && is(&self.file, &scenario.file)
            && self.name.as_ref().is_none_or(|name| scenario.name.contains(name.as_str()))
    }

    /// Whether all scenarios are selected.
    pub const fn is_all(&self) -> bool {
        self.area.is_none() && self.file.is_none() && self.name.is_none()
    }
}

/// A short digest of a text.
pub(crate) fn digest(text: &str) -> String {
    Sha256::digest(text.as_bytes()).iter().take(6).fold(String::new(), |mut digest, byte| {
        let _ = write!(digest, "{byte:02x}");
        digest
    })
}

/// The folder of this crate in the checkout in which it was built.
pub fn home() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// Reads all scenarios in `<home>/scenarios`, in order of areas, files and lines.
///
/// # Errors
///
/// A folder is no area, a file has a parse error (with its line), or a name is not unique.
pub fn read_all(home: &Path) -> anyhow::Result<Vec<Scenario>> {
    let root = home.join("scenarios");
    for entry in std::fs::read_dir(&root).with_context(|| format!("read {}", root.display()))? {
        let name = entry?.file_name().to_string_lossy().into_owned();
        if !AREAS.contains(&name.as_str()) {
            bail!("{}: no such area: {name}", root.display());
        }
    }
    let mut found = Vec::new();
    for area in AREAS {
        let folder = root.join(area);
        if !folder.is_dir() {
            continue;
        }
        let mut files = Vec::new();
        for entry in std::fs::read_dir(&folder)? {
            let path = entry?.path();
            if path.extension().is_none_or(|extension| extension != "yaml") {
                bail!("{}: scenarios are .yaml files", path.display());
            }
            files.push(path);
        }
        files.sort();
        let mut names = BTreeSet::new();
        for path in files {
            let text = std::fs::read_to_string(&path)?;
            let file = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
            let scenarios = parse::file(area, &file, &text)
                .map_err(|error| anyhow::anyhow!("{}:{error}", path.display()))?;
            for scenario in scenarios {
                if !names.insert(scenario.name.clone()) {
                    bail!("{}: {area} has {} twice", path.display(), scenario.name);
                }
                found.push(scenario);
            }
        }
    }
    Ok(found)
}
