//! Go's form of a field: whether it is a pointer, whether it is written when empty, and the name of
//! its type if that is not the plain one.
//!
//! The form decides which zero values a response contains. Most follows from a rule ([`rule`]);
//! `go.txt` has the exceptions.

use super::{Definition, Field};
use anyhow::{Context, ensure};
use std::collections::{BTreeMap, BTreeSet};

const FACTS: &str = include_str!("go.txt");

/// The form of a field in Go.
#[derive(Clone, Default, PartialEq, Eq)]
pub(super) struct Shape {
    /// A pointer: absent and zero differ.
    pub(super) pointer: bool,
    /// Written even if empty.
    pub(super) always: bool,
    /// A struct that is omitted if all of it is zero.
    pub(super) omit_zero: bool,
    /// The name of its type, if it differs from the JSON type.
    pub(super) type_name: Option<String>,
}

impl Shape {
    /// Sets the form from the letters of the table.
    pub(super) fn set_letters(&mut self, letters: &str) {
        self.pointer = letters.contains('p');
        self.always = letters.contains('a');
        self.omit_zero = letters.contains('z');
    }

    /// The letters of the table; empty for the most common form, an optional value.
    pub(super) fn letters(&self) -> String {
        let letters = [(self.pointer, 'p'), (self.always, 'a'), (self.omit_zero, 'z')];
        letters.into_iter().filter_map(|(holds, letter)| holds.then_some(letter)).collect()
    }
}

/// Sets the forms of all fields, and adds the fields `apiVersion` and `kind` to kinds that
/// `k8s-openapi` lacks.
pub(super) fn add(definitions: &mut BTreeMap<String, Definition>) -> anyhow::Result<()> {
    let mut facts = Facts::read()?;
    for (name, definition) in definitions.iter_mut() {
        facts.rename(name, definition);
        definition.order = facts.orders.remove(name).unwrap_or_default();
        if definition.unserved && definition.leaf.is_none() && facts.is_kind(name, definition) {
            for field in ["apiVersion", "kind"] {
                let field_of = Field { kind: "s".to_owned(), ..Field::default() };
                definition.fields.insert(field.to_owned(), field_of);
            }
        }
        for (key, field) in &mut definition.fields {
            let shape = rule(field);
            field.shape = facts.shape(name, key, shape);
        }
    }
    let unused: Vec<&String> =
        facts.shapes.keys().filter(|key| !facts.used.contains(*key)).collect();
    ensure!(unused.is_empty(), "go.txt speaks of fields that do not exist: {unused:?}");
    let unused: Vec<&String> = facts.orders.keys().collect();
    ensure!(unused.is_empty(), "go.txt orders fields of types that do not exist: {unused:?}");
    Ok(())
}

fn short(name: &str) -> &str {
    name.rsplit('.').next().unwrap_or_default()
}

/// The default form: required fields are always written, and optional structs are pointers.
fn rule(field: &Field) -> Shape {
    Shape {
        pointer: field.kind.starts_with('@') && !field.required,
        always: field.required,
        ..Shape::default()
    }
}

#[derive(Default)]
struct Facts {
    shapes: BTreeMap<String, Fact>,
    used: BTreeSet<String>,
    /// JSON names that differ from those that follow from the messages.
    names: Vec<(String, String, String)>,
    kinds: BTreeSet<String>,
    no_kinds: BTreeSet<String>,
    /// Fields in the order of their declaration, by the full name of the type.
    orders: BTreeMap<String, Vec<String>>,
}

/// The letters of a form, and the name of the type.
type Fact = (Option<String>, Option<String>);

impl Facts {
    fn read() -> anyhow::Result<Self> {
        let mut corrections = Self::default();
        for line in FACTS.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
            let (owner, rest) = line.split_once(' ').with_context(|| format!("go.txt: {line}"))?;
            let mut words = rest.split(' ');
            match owner {
                "+kind" => corrections.kinds.extend(words.map(str::to_owned)),
                "+name" => {
                    let message = words.next().unwrap_or_default();
                    for (from, to) in words.filter_map(|word| word.split_once('=')) {
                        corrections.names.push((
                            message.to_owned(),
                            from.to_owned(),
                            to.to_owned(),
                        ));
                    }
                }
                "+order" => {
                    let message = words.next().unwrap_or_default().to_owned();
                    corrections.orders.entry(message).or_default().extend(words.map(str::to_owned));
                }
                "-kind" => corrections.no_kinds.extend(words.map(str::to_owned)),
                _ => {
                    for word in words {
                        let (word, type_name) = match word.split_once(':') {
                            Some((word, name)) => (word, Some(name.to_owned())),
                            None => (word, None),
                        };
                        let (field, letters) = match word.split_once('=') {
                            Some((field, letters)) => (field, Some(letters.to_owned())),
                            None => (word, None),
                        };
                        corrections.shapes.insert(format!("{owner}.{field}"), (letters, type_name));
                    }
                }
            }
        }
        Ok(corrections)
    }

    /// Applies the facts about a field, from general to specific: those of all types, of a short
    /// name, of a full name.
    fn shape(&mut self, owner: &str, field: &str, mut shape: Shape) -> Shape {
        for of in ["*", short(owner), owner] {
            let key = format!("{of}.{field}");
            let Some((letters, type_name)) = self.shapes.get(&key) else { continue };
            if let Some(letters) = letters {
                shape.set_letters(letters);
            }
            if let Some(name) = type_name {
                shape.type_name = Some(name.clone()).filter(|name| name != "-");
            }
            self.used.insert(key);
        }
        shape
    }

    fn rename(&self, name: &str, definition: &mut Definition) {
        for (of, from, to) in &self.names {
            if of == short(name)
                && definition.unserved
                && let Some(field) = definition.fields.remove(from)
            {
                definition.fields.insert(to.clone(), field);
            }
        }
    }

    fn is_kind(&self, name: &str, definition: &Definition) -> bool {
        let name = short(name);
        let looks = definition.fields.contains_key("metadata") && !name.ends_with("Spec");
        (looks && !self.no_kinds.contains(name)) || self.kinds.contains(name)
    }
}
