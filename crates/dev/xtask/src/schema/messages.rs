//! Reads the messages of `k8s-pb`: fields with tags and types, and the markers of the Go sources in
//! comments.

use super::{dotted, sorted_entries};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// All messages, by package and name as `k8s-pb` writes it.
pub(super) type Messages = BTreeMap<String, Message>;

/// A message: its own markers and its fields, in source order.
#[derive(Default)]
pub(super) struct Message {
    pub(super) marks: Vec<String>,
    pub(super) fields: Vec<TaggedField>,
}

/// A field of a message.
pub(super) struct TaggedField {
    /// The name in `k8s-pb`.
    pub(super) name: String,
    pub(super) marks: Vec<String>,
    pub(super) tag: u32,
    pub(super) count: Count,
    pub(super) scalar: Scalar,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Count {
    One,
    Many,
    Map,
}

pub(super) enum Scalar {
    /// A scalar, in the table's letters.
    Letter(char),
    /// Another message.
    Message(String),
}

impl TaggedField {
    /// The message, if the field holds exactly one.
    pub(super) fn single(&self) -> Option<&str> {
        match (self.count, &self.scalar) {
            (Count::One, Scalar::Message(name)) => Some(name),
            _ => None,
        }
    }
}

/// Folds a name: equal for different spellings.
pub(super) fn fold_name(name: &str) -> String {
    name.trim_start_matches("r#")
        .chars()
        .filter(char::is_ascii_alphanumeric)
        .map(|c| c.to_ascii_lowercase())
        .collect()
}

/// Reads the structs of every `mod.rs` below a folder.
pub(super) fn read(folder: &Path) -> anyhow::Result<Messages> {
    let mut found = Messages::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        for path in sorted_entries(&next)? {
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let module = next.strip_prefix(folder)?.to_string_lossy().into_owned();
            read_module(&module, &fs::read_to_string(&path)?, &mut found);
        }
    }
    Ok(found)
}

fn read_module(module: &str, source: &str, found: &mut Messages) {
    let mut marks: Vec<String> = Vec::new();
    let mut attribute = String::new();
    let mut current: Option<(String, Message)> = None;
    let mut lines = source.lines().map(str::trim);
    while let Some(line) = lines.next() {
        if let Some(comment) = line.strip_prefix("///") {
            marks.extend(comment.trim().strip_prefix('+').map(str::to_owned));
        } else if let Some(rest) = line.strip_prefix("#[prost(") {
            rest.clone_into(&mut attribute);
        } else if let Some(rest) = line.strip_prefix("pub struct ") {
            let name: String = rest.chars().take_while(|c| c.is_alphanumeric()).collect();
            let message = Message { marks: std::mem::take(&mut marks), ..Message::default() };
            if line.ends_with("{}") {
                found.insert(format!("{}.{name}", dotted(module)), message);
            } else {
                current = Some((name, message));
            }
        } else if let Some((name, kind)) =
            line.strip_prefix("pub ").and_then(|rest| rest.split_once(':'))
        {
            // A long type continues on the following lines.
            let mut kind = kind.trim().to_owned();
            while !kind.ends_with(',') || kind.matches('<').count() != kind.matches('>').count() {
                let Some(more) = lines.next() else { break };
                kind.push_str(more);
            }
            let marks = std::mem::take(&mut marks);
            if let (Some((_, message)), Some(field)) =
                (&mut current, tagged_field(module, name, marks, &attribute, &kind))
            {
                message.fields.push(field);
            }
        } else if line == "}" {
            if let Some((name, message)) = current.take() {
                found.insert(format!("{}.{name}", dotted(module)), message);
            }
            marks.clear();
        }
    }
}

/// Parses a field from its attribute (`string, optional, tag = "1"`) and its Rust type.
fn tagged_field(
    module: &str,
    name: &str,
    marks: Vec<String>,
    attribute: &str,
    kind: &str,
) -> Option<TaggedField> {
    let tag = attribute.split_once("tag = \"")?.1.split('"').next()?.parse().ok()?;
    let (count, word) = if let Some(map) = attribute.strip_prefix("btree_map = \"") {
        (Count::Map, map.split('"').next()?.split(", ").nth(1)?)
    } else {
        let word = attribute.split([',', ' ', '=']).next()?;
        (if attribute.contains("repeated") { Count::Many } else { Count::One }, word)
    };
    let scalar = match word {
        "string" => Scalar::Letter('s'),
        "bytes" => Scalar::Letter('y'),
        "int32" => Scalar::Letter('i'),
        "int64" => Scalar::Letter('l'),
        "double" => Scalar::Letter('d'),
        "bool" => Scalar::Letter('b'),
        _ => Scalar::Message(resolve(module, kind)?),
    };
    Some(TaggedField { name: name.trim_start_matches("r#").to_owned(), marks, tag, count, scalar })
}

/// The message in a type such as `::core::option::Option<super::v1::Time>,`.
fn resolve(module: &str, kind: &str) -> Option<String> {
    let path = kind.trim_end_matches([',', '>', ' ']).rsplit(['<', ' ', ',']).next()?;
    let mut place: Vec<&str> = module.split('/').collect();
    let mut parts = path.split("::").peekable();
    while parts.next_if_eq(&"super").is_some() {
        place.pop();
    }
    place.extend(parts);
    let name = place.pop()?;
    Some(format!("{}.{name}", dotted(&place.join("/"))))
}
