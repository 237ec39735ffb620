//! What is unknown or said twice, in the order of the text.
//!
//! [`super::decode`] finds what is unknown in a value, whose fields have lost their order. The
//! original reports both kinds of findings as it reads, each once, and does not look into what it
//! does not know. So when something was found the text is read once more, along the type.

use super::{MOST_FINDINGS, go_quoted};
use crate::builtin::{Definition, Shape, Type};
use crate::trail::{Step, Trail};
use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use std::cell::RefCell;
use std::collections::HashSet;
use std::fmt;

/// The findings in a JSON text of a type: `unknown field "spec.foo"`, `duplicate field "data.a"`. A
/// text that is no JSON has those before its fault.
pub fn findings(definition: &Definition, text: &[u8]) -> Vec<String> {
    read(Known::Object(definition), text)
}

/// The findings in a list of JSON objects that have these fields: operations of a JSON patch. The
/// values of their fields are not known.
pub fn findings_in_records(fields: &'static [&'static str], text: &[u8]) -> Vec<String> {
    read(Known::Records(fields), text)
}

fn read(known: Known<'_>, text: &[u8]) -> Vec<String> {
    let text = super::parse::repaired(text);
    let found = RefCell::new(Vec::new());
    let mut reader = serde_json::Deserializer::from_slice(&text);
    // Whoever asks has read the text already.
    let _ = Finder { known, trail: Trail::default(), found: &found }.deserialize(&mut reader);
    found.into_inner()
}

/// What is known of a value.
#[derive(Clone, Copy)]
enum Known<'a> {
    Object(&'a Definition),
    Type(&'a Type),
    Records(&'static [&'static str]),
    Record(&'static [&'static str]),
    /// Nothing: only repeated fields can be found.
    Nothing,
    /// The original reads it apart, and finds nothing.
    Apart,
}

impl<'a> Known<'a> {
    fn of(ty: &'a Type) -> Self {
        match ty {
            Type::Object(_) => match ty.definition() {
                Some(definition) if definition.shape() == Shape::Object => Self::Object(definition),
                _ => Self::Apart,
            },
            other => Self::Type(other),
        }
    }

    fn element(self) -> Self {
        match self {
            Self::Type(ty) => ty.element().map_or(Self::Nothing, Self::of),
            Self::Records(fields) => Self::Record(fields),
            _ => Self::Nothing,
        }
    }

    /// What is known of a field; none if it is not a field.
    fn field(self, name: &str) -> Option<Self> {
        match self {
            Self::Object(definition) => definition.field(name).map(|field| Self::of(&field.ty)),
            Self::Record(fields) => fields.contains(&name).then_some(Self::Nothing),
            Self::Type(_) => Some(self.element()),
            _ => Some(Self::Nothing),
        }
    }
}

struct Finder<'a> {
    known: Known<'a>,
    trail: Trail<'a>,
    found: &'a RefCell<Vec<String>>,
}

impl Finder<'_> {
    fn note(&self, what: &str, trail: &Trail<'_>) {
        let mut found = self.found.borrow_mut();
        if found.len() >= MOST_FINDINGS {
            return;
        }
        let finding = format!("{what} field {}", go_quoted(&trail.to_string()));
        if !found.contains(&finding) {
            found.push(finding);
        }
    }
}

impl<'de> DeserializeSeed<'de> for Finder<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        match self.known {
            Known::Apart => IgnoredAny::deserialize_in(deserializer),
            _ => deserializer.deserialize_any(self),
        }
    }
}

/// Skips a value.
trait DeserializeIn: Sized {
    fn deserialize_in<'de, D: Deserializer<'de>>(deserializer: D) -> Result<(), D::Error>;
}

impl DeserializeIn for IgnoredAny {
    fn deserialize_in<'de, D: Deserializer<'de>>(deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_ignored_any(Self).map(drop)
    }
}

impl<'de> Visitor<'de> for Finder<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any JSON value")
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_bool<E>(self, _: bool) -> Result<(), E> {
        Ok(())
    }

    fn visit_i64<E>(self, _: i64) -> Result<(), E> {
        Ok(())
    }

    fn visit_u64<E>(self, _: u64) -> Result<(), E> {
        Ok(())
    }

    fn visit_f64<E>(self, _: f64) -> Result<(), E> {
        Ok(())
    }

    fn visit_str<E>(self, _: &str) -> Result<(), E> {
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut access: A) -> Result<(), A::Error> {
        let known = self.known.element();
        let mut at = 0;
        loop {
            let trail = self.trail.then(Step::Index(at));
            let finder = Finder { known, trail, found: self.found };
            if access.next_element_seed(finder)?.is_none() {
                return Ok(());
            }
            at += 1;
        }
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<(), A::Error> {
        let mut seen = HashSet::new();
        while let Some(key) = access.next_key::<String>()? {
            let trail = self.trail.then(Step::Field(&key));
            let Some(known) = self.known.field(&key) else {
                self.note("unknown", &trail);
                access.next_value::<IgnoredAny>()?;
                continue;
            };
            if seen.contains(&key) {
                self.note("duplicate", &trail);
            }
            access.next_value_seed(Finder { known, trail, found: self.found })?;
            seen.insert(key);
        }
        Ok(())
    }
}
