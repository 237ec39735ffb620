//! Saved states: the output of `kubectl get -o yaml` or `-o json`, read into a [`ClusterState`].
//!
//! Files come from users, so every object is checked for the form of its kind, and an object that
//! appears twice has to be the same both times. Errors carry the place in the file.

use crate::form::{Form, type_name};
use crate::state::{ClusterState, Note};
use mainstay_cause::FileLocation;
use mainstay_object::Object;
use mainstay_yaml::{Options, documents};
use serde_json::Value;
use std::collections::{BTreeMap, HashMap};
use std::hash::{DefaultHasher, Hash, Hasher};

/// Most kinds that an error lists.
const MAX_LISTED_KINDS: usize = 5;

/// The position of an object in a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Position {
    /// The file, and the line of the document.
    pub place: FileLocation,
    /// The item of a List, such as `items[3]`; empty for an object of its own.
    pub item: String,
}

/// Why a saved state cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SavedStateError {
    /// A document is neither YAML nor JSON.
    #[error("{message}{}", if *.truncated { ": the file seems to be cut off there" } else { "" })]
    ParseDocument {
        /// The place of the mistake.
        place: FileLocation,
        /// The message of the parser.
        message: String,
        /// Whether the file seems to end too early.
        truncated: bool,
    },
    /// A document or an item of a List is not an object of Kubernetes.
    #[error("{}this is not a Kubernetes object: {reason}", item_prefix(.position))]
    ReadObject {
        /// The position of the document or item.
        position: Position,
        /// Which part is missing.
        reason: &'static str,
    },
    /// An object does not have the form of its kind.
    #[error("{}{problem}", subject_prefix(.position, .object))]
    ValidateObject {
        /// The position of the object.
        position: Position,
        /// Kind and name of the object, as far as it has them.
        object: String,
        /// Which field is wrong.
        problem: String,
    },
    /// A file holds no object that resolution reads.
    #[error("{}", others(.kinds))]
    FindObjects {
        /// The file.
        place: FileLocation,
        /// The kinds that it holds instead, with the number of objects.
        kinds: Vec<(String, usize)>,
    },
}

impl SavedStateError {
    /// The place in the file.
    pub const fn place(&self) -> &FileLocation {
        match self {
            Self::ParseDocument { place, .. } | Self::FindObjects { place, .. } => place,
            Self::ReadObject { position, .. } | Self::ValidateObject { position, .. } => {
                &position.place
            }
        }
    }
}

fn item_prefix(position: &Position) -> String {
    if position.item.is_empty() { String::new() } else { format!("{}: ", position.item) }
}

fn subject_prefix(position: &Position, object: &str) -> String {
    let parts: Vec<&str> =
        [&*position.item, object].into_iter().filter(|part| !part.is_empty()).collect();
    if parts.is_empty() { String::new() } else { parts.join(", ") + ": " }
}

fn others(kinds: &[(String, usize)]) -> String {
    if kinds.is_empty() {
        return "the file holds no objects".to_owned();
    }
    let plural = |number: usize| if number == 1 { "" } else { "s" };
    let kinds = kinds.iter().take(MAX_LISTED_KINDS);
    let kinds: Vec<String> =
        kinds.map(|(kind, number)| format!("{number} {kind}{}", plural(*number))).collect();
    format!("the file holds no objects that resolution reads, only {}", kinds.join(", "))
}

/// Reads saved states, one file after the other.
#[derive(Default)]
pub struct SavedStateReader {
    state: ClusterState,
    /// The position of each object, and the hash of its content.
    objects: HashMap<(String, String, String), (String, u64)>,
}

impl Position {
    fn invalid(&self, object: &str, problem: &str) -> SavedStateError {
        SavedStateError::ValidateObject {
            position: self.clone(),
            object: object.to_owned(),
            problem: problem.to_owned(),
        }
    }

    fn text(&self) -> String {
        let item = if self.item.is_empty() { String::new() } else { format!(" ({})", self.item) };
        format!("{}{item}", self.place)
    }
}

/// The contents of a file.
#[derive(Default)]
struct Contents {
    /// The number of objects that resolution reads.
    used: usize,
    /// The number of empty Lists.
    empty: usize,
    /// The number of objects of each other kind.
    others: BTreeMap<String, usize>,
}

impl SavedStateReader {
    /// Reads a file that `kubectl get … -o yaml` or `-o json` wrote: a List, or one document after the
    /// other. `name` is the name of the file in messages.
    ///
    /// # Errors
    /// If the text holds something else than objects, no object that resolution reads, or objects
    /// that are not of the form of their kind; and if two objects of one name differ.
    pub fn read(&mut self, name: &FileLocation, text: &str) -> Result<(), SavedStateError> {
        let mut contents = Contents::default();
        for document in documents(text.as_bytes(), &Options::default()) {
            let document = document.map_err(|error| {
                let is_last = error.line >= text.lines().count();
                SavedStateError::ParseDocument {
                    place: FileLocation { line: error.line, column: error.column, ..name.clone() },
                    truncated: is_last && error.fault.may_be_cut_off(),
                    message: error.fault.to_string(),
                }
            })?;
            let place = FileLocation { line: document.line, ..name.clone() };
            let position = Position { place, item: String::new() };
            self.document(document.value, &position, &mut contents)?;
        }
        if contents.used > 0 {
            return Ok(());
        }
        if contents.others.is_empty() && contents.empty > 0 {
            self.state.notes.push(Note::EmptyList { file: name.to_string() });
            return Ok(());
        }
        let kinds = contents.others.into_iter().collect();
        Err(SavedStateError::FindObjects { place: name.clone(), kinds })
    }

    /// The state of all files.
    pub fn finish(self) -> ClusterState {
        self.state
    }

    /// Reads an object, or a List of them.
    fn document(
        &mut self,
        value: Value,
        position: &Position,
        contents: &mut Contents,
    ) -> Result<(), SavedStateError> {
        if value.is_null() {
            return Ok(());
        }
        let no_object = |reason| SavedStateError::ReadObject { position: position.clone(), reason };
        let has_items = value.get("items").is_some();
        let Ok(mut object) = Object::from_value(value) else {
            return Err(no_object("it has no fields"));
        };
        if object.kind().is_empty() {
            return Err(no_object(if has_items {
                "it has `items` and no `kind`: the file seems to be cut off"
            } else {
                "it has no `kind`"
            }));
        }
        if !object.kind().ends_with("List") {
            return self.object(object, position, contents);
        }
        let kind = object.kind().to_owned();
        match object.remove(&["items"]) {
            Some(Value::Array(items)) => {
                contents.empty += usize::from(items.is_empty());
                for (at, item) in items.into_iter().enumerate() {
                    let position =
                        Position { place: position.place.clone(), item: format!("items[{at}]") };
                    if item.is_null() {
                        return Err(position.invalid("", "this is null, not an object"));
                    }
                    self.document(item, &position, contents)?;
                }
                Ok(())
            }
            Some(other) => {
                let problem = format!("`items` is {}, not a list", type_name(&other));
                Err(position.invalid(&kind, &problem))
            }
            None => Err(position.invalid(&kind, "it has no `items`")),
        }
    }

    fn object(
        &mut self,
        object: Object,
        position: &Position,
        contents: &mut Contents,
    ) -> Result<(), SavedStateError> {
        let kind = object.kind().to_owned();
        let Some(form) = Form::of(&object) else {
            *contents.others.entry(kind).or_default() += 1;
            return Ok(());
        };
        contents.used += 1;
        let object_text = match (object.namespace(), object.name()) {
            ("", name) => format!("{kind} {name}"),
            (namespace, name) => format!("{kind} {namespace}/{name}"),
        };
        form.check(&object).map_err(|error| {
            position.invalid(object_text.trim_end_matches([' ', '/']), &error.to_string())
        })?;
        let key = (kind, object.namespace().to_owned(), object.name().to_owned());
        let hash = content_hash(&object);
        if let Some((first, first_hash)) = self.objects.get(&key) {
            if *first_hash == hash {
                return Ok(());
            }
            let problem = format!("it occurs twice with different content: first at {first}");
            return Err(position.invalid(&object_text, &problem));
        }
        self.objects.insert(key, (position.text(), hash));
        self.state.add(object);
        Ok(())
    }
}

/// The hash of an object without the fields that change with every write.
fn content_hash(object: &Object) -> u64 {
    let mut object = object.clone();
    for field in ["managedFields", "resourceVersion", "generation"] {
        object.remove(&["metadata", field]);
    }
    let mut hasher = DefaultHasher::new();
    object.into_value().to_string().hash(&mut hasher);
    hasher.finish()
}
