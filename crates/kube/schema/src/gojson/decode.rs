//! Type errors of Go's JSON decoder.
//!
//! Go decodes in the order of the text, continues after a value of a wrong type, and returns the first
//! error. A type that decodes itself ends decoding with its error. Unknown fields are ignored, `null`
//! counts as absent, and keys match in any case.

use super::declared::{DeclaredStruct, DeclaredType};
use crate::builtin::{self, FieldType, ParseTextError, TypeDefinition, go_type_name};
use crate::strict::{self, UnmarshalError};
use mainstay_gocompat::Base64Error;
use mainstay_gocompat::json::{Html, Numbers, is_same_field};
use mainstay_gocompat::quote;
use mainstay_gocompat::values::json_kind;
use serde_json::{Map, Number, Value};

/// A value that does not have its Go type, and its position.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mismatch {
    /// Go's error.
    pub reason: TypeError,
    /// The path of the value.
    pub path: Vec<ValuePathStep>,
    /// The names of the fields on the path, as their types have them.
    pub fields: Vec<&'static str>,
    /// Whether the error is after the first character of the value (for lists and objects) instead of
    /// after the last.
    pub opens: bool,
}

/// The error for a value that does not have its Go type.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TypeError {
    /// A value outside of fields has another type.
    #[error("json: cannot unmarshal {found} into Go value of type {expected}")]
    WrongValue {
        /// The JSON type of the value, and the number itself.
        found: String,
        /// The Go type.
        expected: String,
    },
    /// The value of a field has another type.
    #[error(
        "json: cannot unmarshal {found} into Go struct field {owner}.{path} of type {expected}"
    )]
    WrongField {
        /// The JSON type of the value, and the number itself.
        found: String,
        /// The struct that Go names.
        owner: &'static str,
        /// The fields on the path of the value.
        path: String,
        /// The Go type.
        expected: String,
    },
    /// A type that parses its own text refuses it.
    #[error(transparent)]
    ParseText(#[from] ParseTextError),
    /// A text is no quantity.
    #[error(transparent)]
    ParseQuantity(#[from] mainstay_quantity::ParseQuantityError),
    /// A text is no time.
    #[error(transparent)]
    ParseTime(UnmarshalError),
    /// A text is no base64.
    #[error(transparent)]
    DecodeBase64(#[from] Base64Error),
    /// The type does not have the field.
    #[error("json: unknown field {}", quote(.0))]
    UnknownField(String),
    /// A field needs a boolean or a schema.
    #[error("boolean or JSON schema expected")]
    BooleanOrSchema,
}

/// One step from a value to a part of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ValuePathStep {
    /// To a field, by the name that it has in the value.
    Field(String),
    /// To an element of a list.
    Item(usize),
}

/// Checks a value against a type; keys match in any case.
///
/// # Errors
/// The first value that does not have its type.
pub fn check(value: &Value, ty: &DeclaredType) -> Result<(), Box<Mismatch>> {
    let mut walk = Walk::new(true);
    let ended = walk.declared(value, ty);
    walk.outcome(ended)
}

/// As [`check`], for a declared struct.
///
/// # Errors
/// The first value that does not have its type.
pub fn check_struct(value: &Value, declared: &'static DeclaredStruct) -> Result<(), Box<Mismatch>> {
    check(value, &DeclaredType::Struct(declared))
}

/// As [`check_struct`], for fields. With `strict`, unknown fields are errors.
///
/// # Errors
/// The first value that does not have its type, or the first unknown field.
pub fn check_fields(
    fields: &Map<String, Value>,
    declared: &'static DeclaredStruct,
    strict: bool,
) -> Result<(), Box<Mismatch>> {
    let mut walk = Walk { is_strict: strict, ..Walk::new(true) };
    let ended = walk.fields_of(fields, declared);
    walk.outcome(ended)
}

/// Checks an object against its type in the table; keys match exactly.
///
/// # Errors
/// The first value that does not have its type.
pub fn check_object(
    value: &Value,
    definition: &'static TypeDefinition,
) -> Result<(), Box<Mismatch>> {
    let mut walk = Walk::new(false);
    let ended = walk.object(value, definition);
    walk.outcome(ended)
}

/// The error of a type that decodes itself, which ends decoding.
struct Abort(Box<Mismatch>);

/// A borrowed [`ValuePathStep`].
#[derive(Clone, Copy)]
enum StepRef<'v> {
    Field(&'v str),
    Item(usize),
}

/// A struct, whose name is computed only for errors.
#[derive(Clone, Copy)]
enum Owner {
    Declared(&'static str),
    Builtin(&'static TypeDefinition),
}

impl Owner {
    fn name(self) -> &'static str {
        match self {
            Self::Declared(name) => name,
            Self::Builtin(definition) => definition.short_name(),
        }
    }
}

struct Walk<'v> {
    first: Option<Box<Mismatch>>,
    path: Vec<StepRef<'v>>,
    /// The names of the fields on the path.
    fields: Vec<&'static str>,
    /// The innermost struct.
    owner: Owner,
    /// Whether keys match in any case.
    any_case: bool,
    /// Whether unknown fields of declared structs are errors.
    is_strict: bool,
    /// The struct that errors name instead of `owner`: that of a type that decodes itself by decoding
    /// another type.
    outer: Option<Owner>,
    /// The last used package of schemas, and its schema type.
    schema: Option<(&'static str, &'static TypeDefinition)>,
}

impl<'v> Walk<'v> {
    fn new(any_case: bool) -> Self {
        Self {
            first: None,
            path: Vec::new(),
            fields: Vec::new(),
            owner: Owner::Declared(""),
            any_case,
            is_strict: false,
            outer: None,
            schema: None,
        }
    }

    fn outcome(self, ended: Result<(), Abort>) -> Result<(), Box<Mismatch>> {
        match ended {
            Err(Abort(mismatch)) => Err(mismatch),
            Ok(()) => self.first.map_or(Ok(()), Err),
        }
    }

    fn path(&self) -> Vec<ValuePathStep> {
        let step = |step: &StepRef<'v>| match *step {
            StepRef::Field(name) => ValuePathStep::Field(name.to_owned()),
            StepRef::Item(at) => ValuePathStep::Item(at),
        };
        self.path.iter().map(step).collect()
    }

    fn mismatch(&self, found: &str, expected: &str, value: &Value) -> Box<Mismatch> {
        let (found, expected) = (found.to_owned(), expected.to_owned());
        let reason = if self.fields.is_empty() {
            TypeError::WrongValue { found, expected }
        } else {
            let owner = self.outer.unwrap_or(self.owner).name();
            TypeError::WrongField { found, owner, path: self.fields.join("."), expected }
        };
        let opens = value.is_array() || value.is_object();
        Box::new(Mismatch { reason, path: self.path(), fields: self.fields.clone(), opens })
    }

    fn refuse_as(&mut self, found: &str, expected: &str, value: &Value) {
        if self.first.is_none() {
            self.first = Some(self.mismatch(found, expected, value));
        }
    }

    fn refuse(&mut self, value: &Value, expected: &str) {
        self.refuse_as(json_kind(value), expected, value);
    }

    fn mismatch_for(&self, reason: TypeError) -> Box<Mismatch> {
        Box::new(Mismatch { reason, path: self.path(), fields: self.fields.clone(), opens: false })
    }

    /// Records an error here if it is the first, and continues.
    fn record(&mut self, reason: impl Into<TypeError>) {
        if self.first.is_none() {
            self.first = Some(self.mismatch_for(reason.into()));
        }
    }

    /// Bytes as base64, or as a list of numbers.
    fn bytes(&mut self, value: &'v Value) {
        match value {
            Value::Null => {}
            Value::String(text) => {
                if let Err(error) = mainstay_gocompat::decode_base64(text) {
                    self.record(error);
                }
            }
            Value::Array(items) => {
                for (at, item) in items.iter().enumerate() {
                    self.path.push(StepRef::Item(at));
                    self.integer(item, "uint8");
                    self.path.pop();
                }
            }
            other => self.refuse(other, "[]uint8"),
        }
    }

    fn end<T>(&self, reason: impl Into<TypeError>) -> Result<T, Abort> {
        Err(Abort(self.mismatch_for(reason.into())))
    }

    fn declared(&mut self, value: &'v Value, ty: &DeclaredType) -> Result<(), Abort> {
        match (ty, value) {
            (DeclaredType::Table(name), value) => {
                if let Some(definition) = builtin::definition(name) {
                    self.object(value, definition)?;
                }
            }
            (DeclaredType::Raw, _)
            | (_, Value::Null)
            | (DeclaredType::Text | DeclaredType::Named(_), Value::String(_))
            | (DeclaredType::Bool, Value::Bool(_)) => {}
            (DeclaredType::Int(name), value) => self.integer(value, name),
            (DeclaredType::Bytes, value) => self.bytes(value),
            (DeclaredType::TextMap, Value::Object(fields)) => {
                for (name, value) in fields {
                    self.path.push(StepRef::Field(name));
                    if !value.is_string() && !value.is_null() {
                        self.refuse(value, "string");
                    }
                    self.path.pop();
                }
            }
            (DeclaredType::Struct(declared), Value::Object(fields)) => {
                self.fields_of(fields, declared)?;
            }
            (DeclaredType::List(element), Value::Array(items)) => {
                self.items(items, |walk, item| walk.declared(item, element))?;
            }
            (DeclaredType::Pointers(declared), Value::Array(items)) => {
                let element = DeclaredType::Struct(declared);
                self.items(items, |walk, item| walk.declared(item, &element))?;
            }
            (ty, other) => self.refuse(other, &ty.go_name()),
        }
        Ok(())
    }

    fn fields_of(
        &mut self,
        fields: &'v Map<String, Value>,
        declared: &DeclaredStruct,
    ) -> Result<(), Abort> {
        for (key, value) in fields {
            let Some((name, ty)) = declared.field(key) else {
                if self.is_strict {
                    let (path, fields) = Default::default();
                    let reason = TypeError::UnknownField(key.clone());
                    let unknown = Mismatch { reason, path, fields, opens: false };
                    self.first.get_or_insert(Box::new(unknown));
                }
                continue;
            };
            let owner = Owner::Declared(declared.name);
            self.below(owner, name, key, |walk| walk.declared(value, ty))?;
        }
        Ok(())
    }

    fn below(
        &mut self,
        owner: Owner,
        name: &'static str,
        key: &'v str,
        check: impl FnOnce(&mut Self) -> Result<(), Abort>,
    ) -> Result<(), Abort> {
        let before = std::mem::replace(&mut self.owner, owner);
        self.fields.push(name);
        self.path.push(StepRef::Field(key));
        check(self)?;
        self.path.pop();
        self.fields.pop();
        self.owner = before;
        Ok(())
    }

    fn items(
        &mut self,
        items: &'v [Value],
        mut check: impl FnMut(&mut Self, &'v Value) -> Result<(), Abort>,
    ) -> Result<(), Abort> {
        for (at, item) in items.iter().enumerate() {
            self.path.push(StepRef::Item(at));
            check(self, item)?;
            self.path.pop();
        }
        Ok(())
    }

    fn integer(&mut self, value: &Value, name: &str) {
        let fits = |number: &Number| match (number.as_i64(), name) {
            (Some(number), "uint8") => u8::try_from(number).is_ok(),
            (Some(number), "int32") => i32::try_from(number).is_ok(),
            (Some(_), _) => true,
            // Negative zero is an integer of signed types.
            (None, _) => number.as_f64() == Some(0.0) && name != "uint8",
        };
        match value {
            Value::Null => {}
            Value::Number(number) if fits(number) => {}
            Value::Number(_) => {
                let number = mainstay_gocompat::json::value(value, Html::Plain, Numbers::Object);
                self.refuse_as(&format!("number {number}"), name, value);
            }
            other => self.refuse(other, name),
        }
    }

    fn object(
        &mut self,
        value: &'v Value,
        definition: &'static TypeDefinition,
    ) -> Result<(), Abort> {
        use builtin::JsonForm;
        match (definition.json_form(), value) {
            (JsonForm::Any, value) => self.schema_part(value, definition)?,
            (JsonForm::ParsedText, value) => {
                // A type that parses its own text gets nulls too.
                let text = if value.is_null() { Some("") } else { value.as_str() };
                let Some(text) = text else {
                    return Err(Abort(self.mismatch(json_kind(value), "string", value)));
                };
                if let Err(error) = builtin::parse_text(definition, text) {
                    return self.end(error);
                }
            }
            (_, Value::Null)
            | (JsonForm::FreeObject, Value::Object(_))
            | (JsonForm::IntOrString, Value::String(_))
            | (JsonForm::Quantity, Value::Number(_)) => {}
            (JsonForm::Object, Value::Object(fields)) => {
                for (key, value) in fields {
                    let Some(field) = field_of(definition, key, self.any_case) else { continue };
                    let name = field.type_name.as_deref();
                    self.below(Owner::Builtin(definition), &field.name, key, |walk| {
                        walk.of_type(value, &field.ty, name, definition)
                    })?;
                }
            }
            (JsonForm::IntOrString, value) => {
                let before = self.first.take();
                self.integer(value, "int32");
                if let Some(refused) = self.first.take() {
                    return Err(Abort(refused));
                }
                self.first = before;
            }
            (JsonForm::Quantity, Value::String(text)) => {
                if let Err(error) = crate::canonical_quantity(text) {
                    return self.end(error);
                }
            }
            (JsonForm::Time | JsonForm::MicroTime, Value::String(text)) => {
                let mut probe = Value::String(text.clone());
                if let Err(reason) = strict::decode(definition, &mut probe) {
                    return self.end(TypeError::ParseTime(reason));
                }
            }
            (JsonForm::Time | JsonForm::MicroTime, other) => {
                return Err(Abort(self.mismatch(json_kind(other), "string", other)));
            }
            (JsonForm::Quantity, _) => {
                return self.end(mainstay_quantity::ParseQuantityError::Format);
            }
            (JsonForm::Object | JsonForm::FreeObject, other) => {
                self.refuse(other, &definition.go_name());
            }
        }
        Ok(())
    }

    /// Types of CRDs with a schema or an alternative. They decode schemas separately, so an error in one
    /// ends decoding, and keys match in any case there.
    fn schema_part(
        &mut self,
        value: &'v Value,
        definition: &'static TypeDefinition,
    ) -> Result<(), Abort> {
        let short = definition.short_name();
        let Some(package) = definition.name().strip_suffix(short) else { return Ok(()) };
        let schema = match self.schema {
            Some((cached, schema)) if cached == package => schema,
            _ => match builtin::definition(&format!("{package}JSONSchemaProps")) {
                Some(schema) => schema,
                None => return Ok(()),
            },
        };
        self.schema = Some((package, schema));
        let before = (self.first.take(), self.any_case, self.outer);
        self.any_case = true;
        self.outer.get_or_insert(self.owner);
        match (short, value) {
            (
                "JSONSchemaPropsOrBool" | "JSONSchemaPropsOrArray" | "JSONSchemaPropsOrStringArray",
                Value::Object(_),
            ) => self.object(value, schema)?,
            ("JSONSchemaPropsOrArray", Value::Array(items)) => {
                self.items(items, |walk, item| walk.object(item, schema))?;
            }
            ("JSONSchemaPropsOrStringArray", Value::Array(items)) => {
                self.items(items, |walk, item| walk.declared(item, &DeclaredType::Text))?;
            }
            ("JSONSchemaPropsOrBool", Value::Null | Value::Bool(_)) => {}
            ("JSONSchemaPropsOrBool", _) => {
                return self.end(TypeError::BooleanOrSchema);
            }
            _ => {}
        }
        if let Some(refused) = self.first.take() {
            return Err(Abort(refused));
        }
        (self.first, self.any_case, self.outer) = before;
        Ok(())
    }

    fn of_type(
        &mut self,
        value: &'v Value,
        ty: &'static FieldType,
        name: Option<&'static str>,
        owner: &'static TypeDefinition,
    ) -> Result<(), Abort> {
        match (ty, value) {
            // A type that parses its own text gets nulls too.
            (FieldType::Object(reference), value) => {
                if let Some(definition) = reference.definition() {
                    self.object(value, definition)?;
                }
            }
            (_, Value::Null)
            | (FieldType::String, Value::String(_))
            | (FieldType::Boolean, Value::Bool(_))
            | (FieldType::Double, Value::Number(_)) => {}
            (FieldType::Int32, value) => self.integer(value, "int32"),
            (FieldType::Int64, value) => self.integer(value, "int64"),
            (FieldType::Bytes, value) => self.bytes(value),
            (FieldType::List(element), Value::Array(items)) => {
                self.items(items, |walk, item| walk.of_type(item, element, name, owner))?;
            }
            (FieldType::Map(element), Value::Object(fields)) => {
                for (key, item) in fields {
                    self.path.push(StepRef::Field(key));
                    self.of_type(item, element, name, owner)?;
                    self.path.pop();
                }
            }
            (ty, other) => self.refuse(other, &go_type_name(ty, name, owner)),
        }
        Ok(())
    }
}

fn field_of(
    definition: &'static TypeDefinition,
    key: &str,
    any_case: bool,
) -> Option<&'static builtin::FieldDefinition> {
    let in_any_case = || definition.fields().iter().find(|field| is_same_field(key, &field.name));
    definition.field(key).or_else(|| if any_case { in_any_case() } else { None })
}
