//! Position of a value during decoding, and upstream's errors for a wrong type there.

use super::error::UnmarshalError;
use crate::builtin::{FieldDefinition, FieldType, TypeDefinition, go_type_name};
use crate::trail::Trail;
use mainstay_gocompat::Base64Error;
use mainstay_gocompat::values::{json_kind, memory_kind};
use serde_json::Value;

/// The upstream decoder whose messages are used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DecoderKind {
    /// The decoder of JSON text.
    Json,
    /// The converter of unstructured values.
    Converter,
}

/// The position of a value: the struct and field it belongs to, and its path.
pub(super) struct Position<'a> {
    owner: &'a TypeDefinition,
    /// The field that contains the value; none at the root.
    field: Option<&'a FieldDefinition>,
    pub(super) trail: &'a Trail<'a>,
    decoder: DecoderKind,
}

impl<'a> Position<'a> {
    /// The root.
    pub(super) const fn root(
        owner: &'a TypeDefinition,
        trail: &'a Trail<'a>,
        decoder: DecoderKind,
    ) -> Self {
        Self { owner, field: None, trail, decoder }
    }

    /// The position of a field of the object here.
    pub(super) const fn field_of<'b>(
        &self,
        owner: &'b TypeDefinition,
        field: &'b FieldDefinition,
        trail: &'b Trail<'b>,
    ) -> Position<'b> {
        Position { owner, field: Some(field), trail, decoder: self.decoder }
    }

    /// The position of an element of the same field's value.
    pub(super) const fn inside<'b>(&'b self, trail: &'b Trail<'b>) -> Position<'b>
    where
        'a: 'b,
    {
        Position { owner: self.owner, field: self.field, trail, decoder: self.decoder }
    }

    /// Go's name of the type of the field or of a part of it.
    fn go_type(&self, ty: &FieldType) -> String {
        let names_whole = |name: &&str| name.starts_with('*');
        let name = self.field.and_then(|field| field.type_name.as_deref());
        // The name of a whole list or map does not apply to its elements.
        let is_whole = self.field.is_some_and(|field| std::ptr::eq(ty, &raw const field.ty));
        let name = name.filter(|name| is_whole || !names_whole(name));
        go_type_name(ty, name, self.owner)
    }

    /// The error of a value that does not have a type.
    pub(super) fn refuse_value(&self, value: &Value, ty: &FieldType) -> UnmarshalError {
        if self.decoder == DecoderKind::Json {
            return self.refuse(value, &self.go_type(ty));
        }
        let found = memory_kind(value);
        let convert = || UnmarshalError::Convert { found, expected: self.go_type(ty) };
        match (ty, value) {
            (FieldType::List(_) | FieldType::Bytes, _) => UnmarshalError::RestoreSlice { found },
            (FieldType::Map(_), _) => UnmarshalError::RestoreMap { found },
            (FieldType::String, Value::Number(number)) if number.is_i64() => convert(),
            (FieldType::Int32 | FieldType::Int64, Value::Number(_)) => convert(),
            _ => UnmarshalError::UnrecognizedType { expected: go_type_name(ty, None, self.owner) },
        }
    }

    /// The error of a value that is no struct.
    pub(super) fn refuse_struct(
        &self,
        value: &Value,
        definition: &TypeDefinition,
    ) -> UnmarshalError {
        match self.decoder {
            DecoderKind::Json => self.refuse(value, &definition.go_name()),
            DecoderKind::Converter => UnmarshalError::RestoreStruct { found: memory_kind(value) },
        }
    }

    /// The error of a text that is no base64.
    pub(super) const fn refuse_bytes(&self, error: Base64Error) -> UnmarshalError {
        match self.decoder {
            DecoderKind::Json => UnmarshalError::Base64(error),
            DecoderKind::Converter => UnmarshalError::RestoreBytes(error),
        }
    }

    /// The error of a type that decodes itself.
    pub(super) fn refuse(&self, value: &Value, ty: &str) -> UnmarshalError {
        let found = match value {
            Value::Number(number) if ty.starts_with("int") || ty.starts_with("uint") => {
                format!("number {number}")
            }
            _ => json_kind(value).to_owned(),
        };
        let fields = self.trail.field_names();
        let is_whole = fields.is_empty() || self.decoder == DecoderKind::Converter;
        let field = (!is_whole).then(|| format!("{}.{fields}", self.owner.short_name()));
        UnmarshalError::Unmarshal { found, field, expected: ty.to_owned() }
    }
}
