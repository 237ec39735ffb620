//! Findings of unknown and duplicate fields, in the order of the text.
//!
//! [`super::decode`] finds unknown fields in a value, whose fields have lost their order. Upstream
//! reports both kinds of findings as it reads, each once, and skips unknown values. So after a finding
//! the text is parsed again, by the type.

use super::{MAX_FINDINGS, quote_path};
use crate::builtin::{FieldType, JsonForm, TypeDefinition};
use crate::trail::{Step, Trail};
use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use std::cell::RefCell;
use std::collections::HashSet;
use std::fmt;

/// The findings in a JSON text of a type: `unknown field "spec.foo"`, `duplicate field "data.a"`. For
/// malformed JSON, the findings before the error.
pub fn findings(definition: &TypeDefinition, text: &[u8]) -> Vec<String> {
    read(KnownFields::Object(definition), text)
}

/// The findings in a list of JSON objects with these fields: operations of a JSON patch. The types of
/// the fields are unknown.
pub fn findings_in_records(fields: &'static [&'static str], text: &[u8]) -> Vec<String> {
    read(KnownFields::Records(fields), text)
}

fn read(known: KnownFields<'_>, text: &[u8]) -> Vec<String> {
    let text = super::parse::repair_unicode(text);
    let found = RefCell::new(Vec::new());
    let mut reader = serde_json::Deserializer::from_slice(&text);
    // The caller has parsed the text already, so an error here is no news.
    let _ = Finder { known, trail: Trail::default(), found: &found }.deserialize(&mut reader);
    found.into_inner()
}

/// The known fields of a value.
#[derive(Clone, Copy)]
enum KnownFields<'a> {
    Object(&'a TypeDefinition),
    Type(&'a FieldType),
    Records(&'static [&'static str]),
    Record(&'static [&'static str]),
    /// Any fields: only duplicates are found.
    Nothing,
    /// Upstream decodes the value separately, without findings.
    Opaque,
}

impl<'a> KnownFields<'a> {
    fn of(ty: &'a FieldType) -> Self {
        match ty {
            FieldType::Object(_) => match ty.definition() {
                Some(definition) if definition.json_form() == JsonForm::Object => {
                    Self::Object(definition)
                }
                _ => Self::Opaque,
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

    /// The known fields of a field's value; none if the field is unknown.
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
    known: KnownFields<'a>,
    trail: Trail<'a>,
    found: &'a RefCell<Vec<String>>,
}

impl Finder<'_> {
    fn add(&self, problem: &str, trail: &Trail<'_>) {
        let mut found = self.found.borrow_mut();
        if found.len() >= MAX_FINDINGS {
            return;
        }
        let finding = format!("{problem} field {}", quote_path(&trail.to_string()));
        if !found.contains(&finding) {
            found.push(finding);
        }
    }
}

impl<'de> DeserializeSeed<'de> for Finder<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        match self.known {
            KnownFields::Opaque => IgnoredAny::skip(deserializer),
            _ => deserializer.deserialize_any(self),
        }
    }
}

/// Skips a value of any type.
trait Skip: Sized {
    fn skip<'de, D: Deserializer<'de>>(deserializer: D) -> Result<(), D::Error>;
}

impl Skip for IgnoredAny {
    fn skip<'de, D: Deserializer<'de>>(deserializer: D) -> Result<(), D::Error> {
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
        let element = self.known.element();
        let mut at = 0;
        loop {
            let trail = self.trail.then(Step::Index(at));
            let finder = Finder { known: element, trail, found: self.found };
            if access.next_element_seed(finder)?.is_none() {
                return Ok(());
            }
            at += 1;
        }
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<(), A::Error> {
        let mut keys = HashSet::new();
        while let Some(key) = access.next_key::<String>()? {
            let trail = self.trail.then(Step::Field(&key));
            let Some(known) = self.known.field(&key) else {
                self.add("unknown", &trail);
                access.next_value::<IgnoredAny>()?;
                continue;
            };
            if keys.contains(&key) {
                self.add("duplicate", &trail);
            }
            access.next_value_seed(Finder { known, trail, found: self.found })?;
            keys.insert(key);
        }
        Ok(())
    }
}
