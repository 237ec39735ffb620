//! Recordings: `recorded/<area>/<file>.json`, one for each file of scenarios.
//!
//! ```json
//! {
//! "": {"kubectl": "v1.35.4", "server": "v1.35.4"},
//! "a-name": {"of": "digest of the scenario", "steps": [
//!  {"body": {…}, "status": 201, "type": "application/json"},
//!  …
//! ]},
//! …
//! }
//! ```
//!
//! Values that appear more than once in a file (the columns of a kind, an object that is created and
//! read) are written once, under `values` of the first entry, and named `&` and a digest.
//!
//! One step is one line, names and keys are sorted: a new recording of the same answers is the same
//! file, and a changed answer is a changed line.

use crate::scenario;
use anyhow::{Context, bail};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::{Path, PathBuf};

/// The recording of one scenario.
#[derive(Clone, Debug, PartialEq)]
pub struct Recorded {
    /// The digest of the recorded scenario.
    pub digest: String,
    /// The result of each step, masked.
    pub steps: Vec<Value>,
}

/// The recordings of all scenarios of a file.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Recording {
    /// The version of the server.
    pub server: String,
    /// The version of kubectl; empty if no scenario uses it.
    pub kubectl: String,
    /// The recordings, by name of the scenario.
    pub scenarios: BTreeMap<String, Recorded>,
}

/// The path of the recording of a scenario file.
pub fn path(home: &Path, area: &str, file: &str) -> PathBuf {
    home.join("recorded").join(area).join(format!("{file}.json"))
}

/// All recordings in a folder, as (area, file), sorted.
///
/// # Errors
///
/// A folder cannot be read.
pub fn list_all(home: &Path) -> anyhow::Result<Vec<(String, String)>> {
    let mut found = Vec::new();
    let root = home.join("recorded");
    if !root.is_dir() {
        return Ok(found);
    }
    for area in std::fs::read_dir(&root)? {
        let area = area?;
        for file in std::fs::read_dir(area.path())? {
            let path = file?.path();
            let stem = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
            found.push((area.file_name().to_string_lossy().into_owned(), stem));
        }
    }
    found.sort();
    Ok(found)
}

impl Recording {
    /// Reads a recording; an empty one if the file does not exist.
    ///
    /// # Errors
    ///
    /// The file is no recording.
    pub fn read(home: &Path, area: &str, file: &str) -> anyhow::Result<Self> {
        let path = path(home, area, file);
        if !path.exists() {
            return Ok(Self::default());
        }
        let text = std::fs::read_to_string(&path)?;
        Self::parse(&text).with_context(|| format!("read {}", path.display()))
    }

    fn parse(text: &str) -> anyhow::Result<Self> {
        let mut value: Value = serde_json::from_str(text)?;
        let shared = value[""]["values"].take();
        let Some(fields) = value.as_object_mut() else { bail!("it is no mapping") };
        let mut recording = Self::default();
        for (name, value) in fields {
            let word = |key: &str| value[key].as_str().unwrap_or_default().to_owned();
            if name.is_empty() {
                recording.server = word("server");
                recording.kubectl = word("kubectl");
                continue;
            }
            let digest = word("of");
            let Value::Array(mut steps) = value["steps"].take() else {
                bail!("{name} has no steps")
            };
            for step in &mut steps {
                expand(step, &shared);
            }
            recording.scenarios.insert(name.clone(), Recorded { digest, steps });
        }
        Ok(recording)
    }

    /// Writes the recording.
    ///
    /// # Errors
    ///
    /// The folder cannot be written.
    pub fn write(&self, home: &Path, area: &str, file: &str) -> anyhow::Result<()> {
        let path = path(home, area, file);
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder)?;
        }
        std::fs::write(&path, self.text()).with_context(|| format!("write {}", path.display()))
    }

    fn text(&self) -> String {
        let mut counts = BTreeMap::new();
        for step in self.scenarios.values().flat_map(|recorded| &recorded.steps) {
            count_values(step, &mut counts);
        }
        let mut shared = BTreeMap::new();
        let mut lines = Vec::new();
        for (name, Recorded { digest, steps }) in &self.scenarios {
            let steps = steps.iter().map(|step| extract_shared(step, &counts, &mut shared));
            let steps: Vec<String> = steps.map(|step| format!(" {step}")).collect();
            let (name, digest, steps) = (json!(name), json!(digest), steps.join(",\n"));
            lines.push(format!(",\n{name}: {{\"of\": {digest}, \"steps\": [\n{steps}\n]}}"));
        }
        let (server, kubectl) = (json!(self.server), json!(self.kubectl));
        let mut text = format!("{{\n\"\": {{\"server\": {server}, \"kubectl\": {kubectl}");
        let shared: Vec<String> =
            shared.iter().map(|(name, value)| format!(" {}: {value}", json!(name))).collect();
        if !shared.is_empty() {
            let _ = write!(text, ", \"values\": {{\n{}\n}}", shared.join(",\n"));
        }
        text.push('}');
        text.extend(lines);
        text += "\n}\n";
        text
    }
}

/// The least size of shared values, in bytes.
const MIN_SHARED_LENGTH: usize = 160;

/// Counts how often each long value appears, by its text.
fn count_values(value: &Value, counts: &mut BTreeMap<String, usize>) {
    let text = value.to_string();
    if text.len() < MIN_SHARED_LENGTH {
        return;
    }
    let count = counts.entry(text).or_default();
    *count += 1;
    // The parts of a shared value appear once, in the table.
    if *count > 1 {
        return;
    }
    match value {
        Value::Array(items) => items.iter().for_each(|item| count_values(item, counts)),
        Value::Object(fields) => fields.values().for_each(|value| count_values(value, counts)),
        _ => {}
    }
}

/// The value with its shared parts moved into the table.
fn extract_shared(
    value: &Value,
    counts: &BTreeMap<String, usize>,
    shared: &mut BTreeMap<String, Value>,
) -> Value {
    let parts = |shared: &mut BTreeMap<String, Value>| match value {
        Value::Array(items) => {
            items.iter().map(|item| extract_shared(item, counts, shared)).collect()
        }
        Value::Object(fields) => fields
            .iter()
            .map(|(key, value)| (key.clone(), extract_shared(value, counts, shared)))
            .collect::<serde_json::Map<_, _>>()
            .into(),
        other => other.clone(),
    };
    let text = value.to_string();
    if text.len() < MIN_SHARED_LENGTH {
        return value.clone();
    }
    if counts.get(&text).is_none_or(|counts| *counts < 2) {
        return parts(shared);
    }
    let name = format!("&{}", scenario::digest(&text));
    if !shared.contains_key(&name) {
        let value = parts(shared);
        shared.insert(name.clone(), value);
    }
    name.into()
}

/// Replaces names of shared values by the values.
fn expand(value: &mut Value, shared: &Value) {
    if let Value::String(name) = value
        && name.starts_with('&')
        && let Some(shared_value) = shared.get(name.as_str())
    {
        *value = shared_value.clone();
    }
    match value {
        Value::Array(items) => items.iter_mut().for_each(|item| expand(item, shared)),
        Value::Object(fields) => fields.values_mut().for_each(|value| expand(value, shared)),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repeated_values_are_written_once() {
        let inner = json!({"text": "x".repeat(200), "more": [1]});
        let outer = json!({"inner": inner, "y": "y".repeat(200)});
        let mut recording = Recording::default();
        for (name, step) in [("a", outer.clone()), ("b", outer), ("c", inner)] {
            let recorded = Recorded { digest: name.into(), steps: vec![step] };
            recording.scenarios.insert(name.into(), recorded);
        }
        let text = recording.text();
        assert_eq!(text.matches("xxx").count(), text.matches(&"x".repeat(200)).count() * 66);
        assert_eq!(text.matches(&"x".repeat(200)).count(), 1, "{text}");
        assert_eq!(text.matches(&"y".repeat(200)).count(), 1, "{text}");
        assert_eq!(Recording::parse(&text).unwrap(), recording);
    }

    #[test]
    fn recording_survives_a_round_trip() {
        let mut recording =
            Recording { server: "v1".into(), kubectl: String::new(), ..Recording::default() };
        let steps = vec![json!({"status": 200, "body": {"a": ["<", "é"]}}), Value::Null];
        recording.scenarios.insert("a".into(), Recorded { digest: "1".into(), steps });
        recording.scenarios.insert("b".into(), Recorded { digest: "2".into(), steps: vec![] });
        let text = recording.text();
        let again = Recording::parse(&text).unwrap();
        assert_eq!(again, recording);
        assert_eq!(again.text(), text);
    }
}
