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
//! One step is one line, names and keys are sorted: a new recording of the same answers is the same
//! file, and a changed answer is a changed line.

use anyhow::{Context, bail};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::{Path, PathBuf};

/// The answers to one scenario.
#[derive(Clone, Debug, PartialEq)]
pub struct Recorded {
    /// The digest of the scenario that was run.
    pub of: String,
    /// What each step gave, masked.
    pub steps: Vec<Value>,
}

/// The answers to the scenarios of a file.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Recording {
    /// The version of the server.
    pub server: String,
    /// The version of kubectl, empty where none ran.
    pub kubectl: String,
    /// By name of the scenario.
    pub scenarios: BTreeMap<String, Recorded>,
}

/// Where the recording of a file of scenarios lies.
pub fn path(home: &Path, area: &str, file: &str) -> PathBuf {
    home.join("recorded").join(area).join(format!("{file}.json"))
}

/// Every recording below a folder, as (area, file), in order.
///
/// # Errors
///
/// A folder that cannot be read.
pub fn all(home: &Path) -> anyhow::Result<Vec<(String, String)>> {
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
    /// Reads one; an empty one where there is none yet.
    ///
    /// # Errors
    ///
    /// A file that is no recording.
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
        let Some(fields) = value.as_object_mut() else { bail!("it is no mapping") };
        let mut recording = Self::default();
        for (name, value) in fields {
            let word = |key: &str| value[key].as_str().unwrap_or_default().to_owned();
            if name.is_empty() {
                recording.server = word("server");
                recording.kubectl = word("kubectl");
                continue;
            }
            let of = word("of");
            let Value::Array(steps) = value["steps"].take() else { bail!("{name} has no steps") };
            recording.scenarios.insert(name.clone(), Recorded { of, steps });
        }
        Ok(recording)
    }

    /// Writes it.
    ///
    /// # Errors
    ///
    /// A folder that cannot be written.
    pub fn write(&self, home: &Path, area: &str, file: &str) -> anyhow::Result<()> {
        let path = path(home, area, file);
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder)?;
        }
        std::fs::write(&path, self.text()).with_context(|| format!("write {}", path.display()))
    }

    fn text(&self) -> String {
        let about = json!({"server": self.server, "kubectl": self.kubectl});
        let mut text = format!("{{\n\"\": {about}");
        for (name, Recorded { of, steps }) in &self.scenarios {
            let steps: Vec<String> = steps.iter().map(|step| format!(" {step}")).collect();
            let (name, of) = (json!(name), json!(of));
            let steps = steps.join(",\n");
            let _ = write!(text, ",\n{name}: {{\"of\": {of}, \"steps\": [\n{steps}\n]}}");
        }
        text += "\n}\n";
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_again_and_written_the_same() {
        let mut recording =
            Recording { server: "v1".into(), kubectl: String::new(), ..Recording::default() };
        let steps = vec![json!({"status": 200, "body": {"a": ["<", "é"]}}), Value::Null];
        recording.scenarios.insert("a".into(), Recorded { of: "1".into(), steps });
        recording.scenarios.insert("b".into(), Recorded { of: "2".into(), steps: vec![] });
        let text = recording.text();
        let again = Recording::parse(&text).unwrap();
        assert_eq!(again, recording);
        assert_eq!(again.text(), text);
    }
}
