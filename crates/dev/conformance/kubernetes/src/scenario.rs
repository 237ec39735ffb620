//! What a scenario says, and where all of them lie.

use crate::backend::Reply;
use crate::parse;
use anyhow::{Context, bail};
use serde_json::Value;
use sha2::{Digest, Sha256};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::path::{Path, PathBuf};

/// The areas, in the order in which they are shown.
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

/// One scenario: steps that are taken one after the other in a namespace of their own.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// The folder that it lies in; one of [`AREAS`].
    pub area: String,
    /// The name of its file without `.yaml`.
    pub file: String,
    /// What it is called, unique in its area: the rule that it holds.
    pub name: String,
    /// What is done.
    pub steps: Vec<Step>,
    /// Paths of cluster-scoped objects to delete at the end.
    pub cleanup: Vec<String>,
    /// A digest of what it says; a recording of another digest is out of date.
    pub digest: String,
    /// All that it says as one text: words that it wrote itself are never masked.
    pub source: String,
}

/// One step.
#[derive(Clone, Debug)]
pub enum Step {
    /// A request and its answer.
    Call(Call),
    /// A watch that is read for some events.
    Watch(Watch),
    /// Something that must come to pass before the next step; not compared.
    Wait(Wait),
    /// An invocation of kubectl.
    Kubectl(Kubectl),
    /// A server of the scenario's own begins to answer.
    Serve(Serve),
    /// What such a server was sent since this was asked last.
    Received(String),
    /// A moment in which the real server notices what was configured.
    Settle,
}

/// A server of a scenario's own.
#[derive(Clone, Debug)]
pub struct Serve {
    /// What it is called: its variables are `{NAME-url}`, `{NAME-address}` and `{NAME-ca}`.
    pub name: String,
    /// The names in its certificate.
    pub names: Vec<String>,
    /// What it answers, by path.
    pub answers: BTreeMap<String, Reply>,
}

/// A request.
#[derive(Clone, Debug)]
pub struct Call {
    /// The method, in capitals.
    pub method: String,
    /// Path and query, with variables.
    pub path: String,
    /// What is sent.
    pub body: Payload,
    /// `Content-Type`; none for none (and `application/json` where there is a body).
    pub content_type: Option<String>,
    /// `Accept`.
    pub accept: String,
    /// Further headers.
    pub headers: BTreeMap<String, String>,
    /// Variables to take from the answer: name → JSON pointer, or `header:NAME`.
    pub save: BTreeMap<String, String>,
    /// JSON pointers of the parts of the answer that are compared; empty for all of it.
    pub only: Vec<String>,
}

/// What a request carries.
#[derive(Clone, Debug)]
pub enum Payload {
    /// Nothing.
    None,
    /// A value, sent as JSON.
    Json(Value),
    /// A text, sent as it is.
    Text(String),
    /// Bytes.
    Bytes(Vec<u8>),
}

/// A watch.
#[derive(Clone, Debug)]
pub struct Watch {
    /// Path and query; `watch=1` is added.
    pub path: String,
    /// How many events are read. A watch that the server closes earlier is fine.
    pub events: usize,
    /// Whether every bookmark counts as an event. Otherwise only those that end the initial events.
    pub bookmarks: bool,
    /// `Accept`.
    pub accept: String,
    /// Further headers.
    pub headers: BTreeMap<String, String>,
    /// Variables to take from the list of events: name → JSON pointer, as `/0/object/metadata/name`.
    pub save: BTreeMap<String, String>,
}

/// A wait.
#[derive(Clone, Debug)]
pub struct Wait {
    /// The path that is read again and again.
    pub path: String,
    /// What must hold: JSON pointer → value; a segment `key=value` selects from a list.
    pub until: BTreeMap<String, Value>,
    /// Whether the answer must be 404 instead.
    pub gone: bool,
    /// Further headers.
    pub headers: BTreeMap<String, String>,
    /// What is posted to the path instead of reading it: a question, which changes nothing.
    pub body: Option<Value>,
}

/// An invocation of kubectl.
#[derive(Clone, Debug)]
pub struct Kubectl {
    /// What stands behind `kubectl`.
    pub arguments: Vec<String>,
    /// Its standard input.
    pub stdin: String,
    /// Files of the folder that it runs in.
    pub files: BTreeMap<String, String>,
    /// Variables of its environment.
    pub env: BTreeMap<String, String>,
}

impl Kubectl {
    /// The sub-command, of two words where the first is a group of commands.
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
            || self.steps.iter().any(|step| matches!(step, Step::Kubectl(_)))
    }

    /// Its invocations of kubectl.
    pub fn kubectl(&self) -> impl Iterator<Item = &Kubectl> {
        self.steps.iter().filter_map(|step| match step {
            Step::Kubectl(kubectl) => Some(kubectl),
            _ => None,
        })
    }

    /// Whether a watch is part of it.
    pub fn watches(&self) -> bool {
        self.steps.iter().any(|step| matches!(step, Step::Watch(_)))
    }
}

/// Which scenarios are meant.
#[derive(Clone, Debug, Default)]
pub struct Selection {
    /// Only this area.
    pub area: Option<String>,
    /// Only this file (without `.yaml`).
    pub file: Option<String>,
    /// Only scenarios whose name contains this.
    pub name: Option<String>,
}

impl Selection {
    /// Whether a scenario is meant.
    pub fn has(&self, scenario: &Scenario) -> bool {
        let is = |wanted: &Option<String>, text: &str| wanted.as_ref().is_none_or(|w| w == text);
        is(&self.area, &scenario.area)
            && is(&self.file, &scenario.file)
            && self.name.as_ref().is_none_or(|name| scenario.name.contains(name.as_str()))
    }

    /// Whether everything is meant.
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

/// The folder of this crate in the checkout that it was built in.
pub fn home() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// Reads every scenario below `<home>/scenarios`, in order of areas, files and lines.
///
/// # Errors
///
/// A folder that is no area, a file that does not say what a scenario says (with its line), a name
/// that is there twice.
pub fn all(home: &Path) -> anyhow::Result<Vec<Scenario>> {
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
