//! Where a value stands, and how the original says that it is of a wrong type.

use super::error::DecodeError;
use crate::builtin::{Definition, Field, Type, spelled_type};
use crate::trail::Trail;
use mainstay_gocompat::Base64Error;
use mainstay_gocompat::values::{json_kind, memory_kind};
use serde_json::Value;

/// Which of the original's decoders speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Words {
    /// That of JSON text.
    Json,
    /// That of values which are in memory already.
    Converter,
}

/// Where a value stands: the struct whose field it is, and the way there.
pub(super) struct Place<'a> {
    owner: &'a Definition,
    /// The field whose value, or part of a value, it is; none at the beginning.
    field: Option<&'a Field>,
    pub(super) trail: &'a Trail<'a>,
    words: Words,
}

impl<'a> Place<'a> {
    /// The beginning.
    pub(super) const fn root(owner: &'a Definition, trail: &'a Trail<'a>, words: Words) -> Self {
        Self { owner, field: None, trail, words }
    }

    /// A field of an object that stands here.
    pub(super) const fn field_of<'b>(
        &self,
        owner: &'b Definition,
        field: &'b Field,
        trail: &'b Trail<'b>,
    ) -> Place<'b> {
        Place { owner, field: Some(field), trail, words: self.words }
    }

    /// A part of the same field's value.
    pub(super) const fn inside<'b>(&'b self, trail: &'b Trail<'b>) -> Place<'b>
    where
        'a: 'b,
    {
        Place { owner: self.owner, field: self.field, trail, words: self.words }
    }

    /// Go's name of the type of the field or of a part of it.
    fn go_type(&self, ty: &Type) -> String {
        let of_whole = |name: &&str| name.starts_with('*');
        let name = self.field.and_then(|field| field.type_name.as_deref());
        // The name of a whole list or map is none of what is in it.
        let is_whole = self.field.is_some_and(|field| std::ptr::eq(ty, &raw const field.ty));
        let name = name.filter(|name| is_whole || !of_whole(name));
        spelled_type(ty, name, self.owner)
    }

    /// The refusal of a value that should be of a type.
    pub(super) fn refuse_value(&self, value: &Value, ty: &Type) -> DecodeError {
        if self.words == Words::Json {
            return self.refuse(value, &self.go_type(ty));
        }
        let found = memory_kind(value);
        let convert = || DecodeError::Convert { found, expected: self.go_type(ty) };
        match (ty, value) {
            (Type::List(_) | Type::Bytes, _) => DecodeError::RestoreSlice { found },
            (Type::Map(_), _) => DecodeError::RestoreMap { found },
            (Type::String, Value::Number(number)) if number.is_i64() => convert(),
            (Type::Int32 | Type::Int64, Value::Number(_)) => convert(),
            _ => DecodeError::UnrecognizedType { expected: spelled_type(ty, None, self.owner) },
        }
    }

    /// The refusal of a value that should be an object with known fields.
    pub(super) fn refuse_struct(&self, value: &Value, definition: &Definition) -> DecodeError {
        match self.words {
            Words::Json => self.refuse(value, &definition.go_name()),
            Words::Converter => DecodeError::RestoreStruct { found: memory_kind(value) },
        }
    }

    /// The refusal of a text that is not base64.
    pub(super) const fn refuse_bytes(&self, error: Base64Error) -> DecodeError {
        match self.words {
            Words::Json => DecodeError::Base64(error),
            Words::Converter => DecodeError::RestoreBytes(error),
        }
    }

    /// The refusal of a value by a type that reads itself from text.
    pub(super) fn refuse(&self, value: &Value, ty: &str) -> DecodeError {
        let found = match value {
            Value::Number(number) if ty.starts_with("int") || ty.starts_with("uint") => {
                format!("number {number}")
            }
            _ => json_kind(value).to_owned(),
        };
        let fields = self.trail.fields();
        let is_whole = fields.is_empty() || self.words == Words::Converter;
        let field = (!is_whole).then(|| format!("{}.{fields}", self.owner.short_name()));
        DecodeError::Unmarshal { found, field, expected: ty.to_owned() }
    }
}
