//! What a type's messages look like: the order of their fields, and what stands for absent ones.

use super::encode::put_int_or_string;
use super::wire::{nest, put_bytes, put_fixed64, put_varint};
use crate::builtin::{Definition, Field, Shape, Type};

/// The form of the messages of a type.
#[derive(Debug)]
pub(crate) struct Layout {
    /// In order of their tags.
    pub(super) entries: Box<[Entry]>,
}

/// What stands behind a tag.
#[derive(Debug)]
pub(super) enum Entry {
    /// A field.
    Field {
        /// Its position in [`Definition::fields`].
        at: usize,
        /// What is written, tag included, where an object does not have it.
        zero: Box<[u8]>,
    },
    /// A message with fields that are the object's own in JSON.
    Embedded {
        /// The tag.
        tag: u32,
        /// Its fields.
        entries: Box<[Self]>,
    },
}

impl Layout {
    /// The layout of a type.
    pub(crate) fn of(definition: &Definition) -> Self {
        Self { entries: entries(definition, &[]) }
    }
}

/// The entries of a message that is embedded behind the tags of `path`.
fn entries(definition: &Definition, path: &[u32]) -> Box<[Entry]> {
    let mut tags: Vec<(u32, Option<(usize, &Field)>)> = Vec::new();
    for (at, field) in definition.fields().iter().enumerate() {
        let Some([tag, rest @ ..]) = field.tags.strip_prefix(path) else { continue };
        tags.push((*tag, rest.is_empty().then_some((at, field))));
    }
    tags.sort_by_key(|(tag, _)| *tag);
    tags.dedup_by_key(|(tag, _)| *tag);
    let entry = |(tag, field): (u32, Option<(usize, &Field)>)| {
        if let Some((at, field)) = field {
            return Entry::Field { at, zero: zero(field, tag).into() };
        }
        let below: Vec<u32> = path.iter().copied().chain([tag]).collect();
        Entry::Embedded { tag, entries: entries(definition, &below) }
    };
    tags.into_iter().map(entry).collect()
}

/// What Go writes for a field without a value: nothing for pointers, lists and maps, and a zero
/// behind its tag for the others.
pub(super) fn zero(field: &Field, tag: u32) -> Vec<u8> {
    let mut out = Vec::new();
    if !field.pointer {
        put_zero(&mut out, &field.ty, tag);
    }
    out
}

fn put_zero(out: &mut Vec<u8>, ty: &Type, tag: u32) {
    match ty {
        Type::String => put_bytes(out, tag, &[]),
        Type::Int32 | Type::Int64 | Type::Boolean => put_varint(out, tag, 0),
        Type::Double => put_fixed64(out, tag, 0),
        Type::Bytes | Type::List(_) | Type::Map(_) => {}
        Type::Object(_) => {
            let Some(definition) = ty.definition() else { return };
            match definition.shape() {
                Shape::IntOrString => put_int_or_string(out, tag, 0, None),
                Shape::Quantity => {
                    put_bytes(out, 1, b"0");
                    nest(out, tag, 0);
                }
                Shape::Any if definition.short_name() == "JSON" => {
                    put_bytes(out, 1, b"null");
                    nest(out, tag, 0);
                }
                Shape::Object => {
                    put_zeros(out, &definition.layout().entries);
                    nest(out, tag, 0);
                }
                Shape::FreeObject
                | Shape::Any
                | Shape::Time
                | Shape::MicroTime
                | Shape::ParsedText => {
                    put_bytes(out, tag, &[]);
                }
            }
        }
    }
}

/// A message of an object without any value.
fn put_zeros(out: &mut Vec<u8>, entries: &[Entry]) {
    for entry in entries {
        match entry {
            Entry::Field { zero, .. } => out.extend_from_slice(zero),
            Entry::Embedded { tag, entries } => {
                let start = out.len();
                put_zeros(out, entries);
                nest(out, *tag, start);
            }
        }
    }
}
