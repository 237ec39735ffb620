//! Layout of a type's protobuf messages: the order of fields, and the zero values of absent ones.

use super::encode::put_int_or_string;
use super::wire::{nest, put_bytes, put_fixed64, put_varint};
use crate::builtin::{FieldDefinition, FieldType, JsonForm, TypeDefinition};

/// The layout of the messages of a type.
#[derive(Debug)]
pub(crate) struct Layout {
    /// In order of their tags.
    pub(super) entries: Box<[Entry]>,
}

/// The content of a tag.
#[derive(Debug)]
pub(super) enum Entry {
    /// A field.
    Field {
        /// Its position in [`TypeDefinition::fields`].
        at: usize,
        /// The bytes for an absent field, tag included.
        zero: Box<[u8]>,
    },
    /// An embedded message, whose fields are inline in JSON.
    Embedded {
        /// The tag.
        tag: u32,
        /// Its fields.
        entries: Box<[Self]>,
    },
}

impl Layout {
    /// The layout of a type.
    pub(crate) fn of(definition: &TypeDefinition) -> Self {
        Self { entries: entries(definition, &[]) }
    }
}

/// The entries of the message at the tags of `path`.
fn entries(definition: &TypeDefinition, path: &[u32]) -> Box<[Entry]> {
    let mut tags: Vec<(u32, Option<(usize, &FieldDefinition)>)> = Vec::new();
    for (at, field) in definition.fields().iter().enumerate() {
        let Some([tag, rest @ ..]) = field.tags.strip_prefix(path) else { continue };
        tags.push((*tag, rest.is_empty().then_some((at, field))));
    }
    tags.sort_by_key(|(tag, _)| *tag);
    tags.dedup_by_key(|(tag, _)| *tag);
    let entry = |(tag, field): (u32, Option<(usize, &FieldDefinition)>)| {
        if let Some((at, field)) = field {
            return Entry::Field { at, zero: zero(field, tag).into() };
        }
        let below: Vec<u32> = path.iter().copied().chain([tag]).collect();
        Entry::Embedded { tag, entries: entries(definition, &below) }
    };
    tags.into_iter().map(entry).collect()
}

/// Go's bytes for a field without a value: none for pointers, lists and maps, a tag and a zero for
/// others.
pub(super) fn zero(field: &FieldDefinition, tag: u32) -> Vec<u8> {
    let mut out = Vec::new();
    if !field.pointer {
        put_zero(&mut out, &field.ty, tag);
    }
    out
}

fn put_zero(out: &mut Vec<u8>, ty: &FieldType, tag: u32) {
    match ty {
        FieldType::String => put_bytes(out, tag, &[]),
        FieldType::Int32 | FieldType::Int64 | FieldType::Boolean => put_varint(out, tag, 0),
        FieldType::Double => put_fixed64(out, tag, 0),
        FieldType::Bytes | FieldType::List(_) | FieldType::Map(_) => {}
        FieldType::Object(_) => {
            let Some(definition) = ty.definition() else { return };
            match definition.json_form() {
                JsonForm::IntOrString => put_int_or_string(out, tag, 0, None),
                JsonForm::Quantity => {
                    put_bytes(out, 1, b"0");
                    nest(out, tag, 0);
                }
                JsonForm::Any if definition.short_name() == "JSON" => {
                    put_bytes(out, 1, b"null");
                    nest(out, tag, 0);
                }
                JsonForm::Object => {
                    put_zeros(out, &definition.layout().entries);
                    nest(out, tag, 0);
                }
                JsonForm::FreeObject
                | JsonForm::Any
                | JsonForm::Time
                | JsonForm::MicroTime
                | JsonForm::ParsedText => {
                    put_bytes(out, tag, &[]);
                }
            }
        }
    }
}

/// Writes the message of an object without values.
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
