//! Baselines: files that list known findings, so that only new ones count.
//!
//! An entry names the rule, the file (relative to the baseline's folder) and the message. It has no
//! line, because any edit above moves lines. `count` is the number of equal findings that an entry
//! silences, if more than one; `reason` is for the team.

use super::{Finding, Validated};
use mainstay_catalog::Severity;
use mainstay_cause::{Cause, FileLocation};
use mainstay_command::exit::CommandFailure;
use mainstay_command::io::CommandIo;
use mainstay_formats::edit_distance::nearest;
use mainstay_gocompat::io_error_text;
use mainstay_gocompat::quote;
use mainstay_yaml::PathStep;
use serde_json::{Map, Value, json};
use std::{
    collections::BTreeMap,
    fs,
    io::Read as _,
    path::{Component, Path, PathBuf},
};

/// The rule for entries that match nothing.
const STALE: &str = "stale-baseline";

/// The largest size of a baseline, in bytes.
const LIMIT: u64 = 64 << 20;

const FIELDS: [&str; 5] = ["rule", "file", "message", "count", "reason"];

const HEAD: &str = "\
# Known findings: `validate --baseline` with this file suppresses them, and warns about entries that no longer
# match. `validate --write-baseline` writes the file again, and keeps the `reason` of an entry.
";

/// The key of an entry and its findings: rule, file and message.
type Key = (String, String, String);

/// An entry of a baseline.
struct Entry {
    key: Key,
    count: usize,
    reason: Option<String>,
    line: usize,
}

/// A baseline and its location.
pub(super) struct Baseline {
    /// The file as typed.
    argument: String,
    place: Location,
    entries: Vec<Entry>,
}

/// The folder that files of entries are relative to.
struct Location {
    folder: PathBuf,
}

impl Location {
    fn of(argument: &str, io: &CommandIo<'_>) -> Self {
        let path = normal(&io.folder.join(argument));
        Self { folder: path.parent().map(Path::to_owned).unwrap_or_default() }
    }

    /// The file of a finding, as entries name it.
    fn file(&self, finding: &Finding, io: &CommandIo<'_>) -> String {
        relative(&self.folder, &normal(&io.folder.join(&finding.file)))
    }

    fn key(&self, finding: &Finding, io: &CommandIo<'_>) -> Key {
        (finding.rule.clone(), self.file(finding, io), finding.message.clone())
    }

    /// Whether an entry concerns a validated folder and rule.
    fn concerns(&self, entry: &Entry, validated: &Validated<'_>, io: &CommandIo<'_>) -> bool {
        let (rule, file, _) = &entry.key;
        let file = normal(&self.folder.join(file));
        let mut folders = validated.folders.iter();
        (validated.is_rule_enabled)(rule)
            && folders.any(|folder| file.starts_with(normal(&io.folder.join(folder))))
    }
}

impl Baseline {
    /// Reads a baseline.
    ///
    /// # Errors
    /// The file cannot be read, or is no baseline.
    pub(super) fn read(argument: &str, io: &CommandIo<'_>) -> Result<Self, CommandFailure> {
        let refuse = |why: String, remedy: &str| {
            CommandFailure::usage(Cause::new(why).at(FileLocation::file(argument)).remedy(remedy))
        };
        let mut bytes = Vec::new();
        fs::File::open(io.folder.join(argument))
            .and_then(|file| file.take(LIMIT + 1).read_to_end(&mut bytes))
            .map_err(|error| {
                let remedy = format!("write it with: --write-baseline {argument}");
                refuse(io_error_text(&error), &remedy)
            })?;
        if u64::try_from(bytes.len()).is_ok_and(|length| length > LIMIT) {
            return Err(refuse(format!("it has more than {LIMIT} bytes"), "split it"));
        }
        let entries = entries(argument, &bytes)?;
        Ok(Self { argument: argument.to_owned(), place: Location::of(argument, io), entries })
    }

    /// Removes the known findings, and adds one for each entry that matches no longer. Returns the
    /// number of known findings.
    pub(super) fn silence(
        &self,
        findings: &mut Vec<Finding>,
        validated: &Validated<'_>,
        io: &CommandIo<'_>,
    ) -> usize {
        let mut unused_counts: BTreeMap<&Key, usize> = BTreeMap::new();
        for entry in &self.entries {
            *unused_counts.entry(&entry.key).or_default() += entry.count;
        }
        let before = findings.len();
        findings.retain(|finding| match unused_counts.get_mut(&self.place.key(finding, io)) {
            Some(count) if *count > 0 => {
                *count -= 1;
                false
            }
            _ => true,
        });
        let silenced = before - findings.len();
        for entry in &self.entries {
            let unused =
                unused_counts.get_mut(&entry.key).map_or(0, std::mem::take).min(entry.count);
            if unused > 0 && self.place.concerns(entry, validated, io) {
                findings.push(self.stale(entry, unused));
            }
        }
        silenced
    }

    /// The finding about an entry with `unused` matches left.
    fn stale(&self, entry: &Entry, unused: usize) -> Finding {
        let (rule, file, message) = &entry.key;
        let (matches, remedy) = if unused == entry.count {
            ("matches nothing".to_owned(), "remove the entry".to_owned())
        } else {
            let used = entry.count - unused;
            (format!("matches {used} times only"), format!("lower the count to {used}"))
        };
        Finding {
            rule: STALE.to_owned(),
            about: "Entries of a baseline match findings.",
            severity: Severity::Warning,
            package: String::new(),
            blob: None,
            file: self.argument.clone(),
            line: Some(entry.line),
            column: None,
            message: format!("the entry {matches} any more: {file}: {message} [{rule}]"),
            remedy: format!(
                "{remedy}, or write the file again with: --write-baseline {}",
                self.argument
            ),
        }
    }

    /// Writes findings as a baseline. Entries of an existing one about other folders stay, and so do
    /// reasons.
    ///
    /// # Errors
    /// The file cannot be written, or exists and is no baseline.
    pub(super) fn write(
        argument: &str,
        findings: &[Finding],
        validated: &Validated<'_>,
        io: &CommandIo<'_>,
    ) -> Result<(), CommandFailure> {
        let path = io.folder.join(argument);
        let place = Location::of(argument, io);
        let old = if path.exists() { Self::read(argument, io)?.entries } else { Vec::new() };
        let mut entries: BTreeMap<Key, (usize, Option<String>)> = BTreeMap::new();
        for finding in findings {
            entries.entry(place.key(finding, io)).or_default().0 += 1;
        }
        for entry in old {
            if !place.concerns(&entry, validated, io) {
                let (count, reason) = entries.entry(entry.key).or_default();
                (*count, *reason) = (*count + entry.count, entry.reason);
            } else if let Some((_, reason)) = entries.get_mut(&entry.key) {
                *reason = entry.reason;
            }
        }
        let mut list: Vec<(Key, (usize, Option<String>))> = entries.into_iter().collect();
        list.sort_by(|(a, _), (b, _)| (&a.1, &a.0, &a.2).cmp(&(&b.1, &b.0, &b.2)));
        let one = |((rule, file, message), (count, reason)): (Key, (usize, Option<String>))| {
            let mut entry = json!({ "rule": rule, "file": file, "message": message });
            if count > 1 {
                entry["count"] = count.into();
            }
            if let Some(reason) = reason {
                entry["reason"] = reason.into();
            }
            entry
        };
        let list: Vec<Value> = list.into_iter().map(one).collect();
        let text = format!("{HEAD}{}", mainstay_yaml::to_string(&json!({ "findings": list })));
        fs::write(&path, text).map_err(|error| {
            let cause =
                Cause::new(format!("the baseline cannot be written: {}", io_error_text(&error)));
            CommandFailure::from(
                cause
                    .at(FileLocation::file(argument))
                    .remedy("name a file in a folder that you may write to"),
            )
        })
    }
}

/// The entries of a baseline.
fn entries(argument: &str, bytes: &[u8]) -> Result<Vec<Entry>, CommandFailure> {
    let remedy =
        "write `findings`, a list with rule, file and message, or let --write-baseline do it";
    let refuse = |why: String, line: usize| {
        CommandFailure::usage(
            Cause::new(why).at(FileLocation::at(argument, line, 0)).remedy(remedy),
        )
    };
    let value = mainstay_yaml::one(bytes, &mainstay_yaml::Options::default())
        .map_err(|error| refuse(error.fault.to_string(), error.line))?;
    let fields = value.as_object().ok_or_else(|| refuse("this is not a mapping".to_owned(), 1))?;
    if let Some(name) = fields.keys().find(|name| *name != "findings") {
        return Err(refuse(unknown(name, ["findings"]), 1));
    }
    let list = match fields.get("findings") {
        Some(Value::Array(list)) => list.as_slice(),
        Some(Value::Null) => &[],
        _ => return Err(refuse("there is no list of findings".to_owned(), 1)),
    };
    let text = String::from_utf8_lossy(bytes);
    let paths: Vec<[PathStep<'_>; 2]> =
        (0..list.len()).map(|at| [PathStep::Field("findings"), PathStep::Item(at)]).collect();
    let lines = mainstay_yaml::locate_all(&text, &paths);
    list.iter()
        .zip(lines)
        .map(|(value, line)| {
            let line = line.map_or(1, |(line, _)| line);
            entry(value, line).map_err(|error| refuse(error.to_string(), line))
        })
        .collect()
}

/// An entry of a baseline cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
enum EntryError {
    /// Entries have no such field.
    #[error("{}", unknown(field, FIELDS))]
    UnknownField {
        /// The field.
        field: String,
    },
    /// A field is no text.
    #[error("{field} is not a string")]
    NotText {
        /// The field.
        field: &'static str,
    },
    /// A field is missing.
    #[error("an entry has no {field}")]
    MissingField {
        /// The field.
        field: &'static str,
    },
    /// The count is no positive number.
    #[error("count is not a positive number")]
    ParseCount,
}

fn entry(value: &Value, line: usize) -> Result<Entry, EntryError> {
    let empty = Map::new();
    let fields = value.as_object().unwrap_or(&empty);
    if let Some(name) = fields.keys().find(|name| !FIELDS.contains(&name.as_str())) {
        return Err(EntryError::UnknownField { field: name.clone() });
    }
    let text = |field: &'static str| match fields.get(field) {
        Some(Value::String(text)) => Ok(text.clone()),
        Some(_) => Err(EntryError::NotText { field }),
        None => Err(EntryError::MissingField { field }),
    };
    let count = match fields.get("count") {
        None => 1,
        Some(count) => {
            let count = count.as_u64().and_then(|count| usize::try_from(count).ok());
            count.filter(|count| *count > 0).ok_or(EntryError::ParseCount)?
        }
    };
    let reason = fields.contains_key("reason").then(|| text("reason")).transpose()?;
    Ok(Entry { key: (text("rule")?, text("file")?, text("message")?), count, reason, line })
}

/// The message about an unknown field.
fn unknown<const N: usize>(name: &str, known: [&'static str; N]) -> String {
    let meant = nearest(name, known, 2).map(|meant| format!("; did you mean {}?", quote(meant)));
    format!("there is no field {} in a baseline{}", quote(name), meant.unwrap_or_default())
}

/// Normalizes `.` and `..` of a path without reading the file system.
fn normal(path: &Path) -> PathBuf {
    let mut out = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir if out.file_name().is_some() => {
                out.pop();
            }
            part => out.push(part),
        }
    }
    out
}

/// A path relative to a folder, with `/` between its parts.
fn relative(folder: &Path, path: &Path) -> String {
    let shared = folder.components().zip(path.components()).take_while(|(a, b)| a == b).count();
    let up = folder.components().skip(shared).map(|_| "..".into());
    let down = path.components().skip(shared).map(|part| part.as_os_str().to_string_lossy());
    let names: Vec<std::borrow::Cow<'_, str>> = up.chain(down).collect();
    if names.is_empty() { ".".to_owned() } else { names.join("/") }
}

#[cfg(test)]
mod tests {
    use super::{normal, relative};
    use std::path::Path;

    #[test]
    fn files_are_relative_to_the_folder_of_the_baseline() {
        for (folder, path, expected) in [
            ("/repo", "/repo/./kiwi/csv.yaml", "kiwi/csv.yaml"),
            ("/repo/ci", "/repo/x/../kiwi/csv.yaml", "../kiwi/csv.yaml"),
            ("/a/b", "/c", "../../c"),
            ("/a", "/a", "."),
        ] {
            assert_eq!(relative(Path::new(folder), &normal(Path::new(path))), expected);
        }
    }
}
