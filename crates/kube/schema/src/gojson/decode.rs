//! What Go's JSON decoder says of values that do not have their types.
//!
//! Go walks a value in the order of its text, goes on after a value of another kind, and answers
//! with the first one it met; types that read themselves end the walk at once. Unknown fields pass,
//! `null` is "not set", names may be written in any case.

use super::declared::{DeclaredStruct, DeclaredType};
use crate::builtin::{self, Definition, TextError, Type, spelled_type};
use crate::strict::{self, DecodeError};
use mainstay_gocompat::Base64Error;
use mainstay_gocompat::json::{Html, Numbers, is_same_field};
use mainstay_gocompat::quote;
use mainstay_gocompat::values::json_kind;
use serde_json::{Map, Number, Value};

/// A value that does not have its Go type, and where it stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mismatch {
    /// What Go says.
    pub reason: TypeError,
    /// The way to the value.
    pub path: Vec<Step>,
    /// The names of the fields on the way, as their types have them.
    pub fields: Vec<&'static str>,
    /// Whether the place is behind the first character of the value (of lists and mappings) and not
    /// behind its last.
    pub opens: bool,
}

/// Why a value does not have its Go type.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TypeError {
    /// The value, which stands in no field, is of another kind than the type.
    #[error("json: cannot unmarshal {found} into Go value of type {expected}")]
    WrongValue {
        /// The kind of the value, and a number itself.
        found: String,
        /// The Go type.
        expected: String,
    },
    /// The value of a field is of another kind than the field's type.
    #[error(
        "json: cannot unmarshal {found} into Go struct field {owner}.{path} of type {expected}"
    )]
    WrongField {
        /// The kind of the value, and a number itself.
        found: String,
        /// The struct that Go names.
        owner: &'static str,
        /// The fields that lead to the value.
        path: String,
        /// The Go type.
        expected: String,
    },
    /// A text is refused by a type that parses itself.
    #[error(transparent)]
    ParseText(#[from] TextError),
    /// A text is no quantity.
    #[error(transparent)]
    ParseQuantity(#[from] mainstay_quantity::ParseQuantityError),
    /// A text is no time.
    #[error(transparent)]
    ParseTime(DecodeError),
    /// A text is no base64.
    #[error(transparent)]
    DecodeBase64(#[from] Base64Error),
    /// A field is there that the type does not have.
    #[error("json: unknown field {}", quote(.0))]
    UnknownField(String),
    /// A field that takes a boolean or a schema has something else.
    #[error("boolean or JSON schema expected")]
    BooleanOrSchema,
}

/// One step from a value to a part of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// To a field, by the name that it has in the value.
    Field(String),
    /// To an item of a list.
    Item(usize),
}

/// Checks a value against a type, whose fields may be written in any case.
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

/// As [`check_struct`], for fields. With `strict` those are refused that the struct does not have.
///
/// # Errors
/// The first value that does not have its type, or the first field that is unknown.
pub fn check_fields(
    fields: &Map<String, Value>,
    declared: &'static DeclaredStruct,
    strict: bool,
) -> Result<(), Box<Mismatch>> {
    let mut walk = Walk { is_strict: strict, ..Walk::new(true) };
    let ended = walk.fields_of(fields, declared);
    walk.outcome(ended)
}

/// Checks an object against its type in the table, whose fields are written in one case only.
///
/// # Errors
/// The first value that does not have its type.
pub fn check_object(value: &Value, definition: &'static Definition) -> Result<(), Box<Mismatch>> {
    let mut walk = Walk::new(false);
    let ended = walk.object(value, definition);
    walk.outcome(ended)
}

/// A type that reads itself has refused its value.
struct Ended(Box<Mismatch>);

/// A step to a part of the value that is walked through.
#[derive(Clone, Copy)]
enum Passed<'v> {
    Field(&'v str),
    Item(usize),
}

/// A struct, whose name is made when somebody has to read it.
#[derive(Clone, Copy)]
enum Owner {
    Named(&'static str),
    Kube(&'static Definition),
}

impl Owner {
    fn name(self) -> &'static str {
        match self {
            Self::Named(name) => name,
            Self::Kube(definition) => definition.short_name(),
        }
    }
}

struct Walk<'v> {
    first: Option<Box<Mismatch>>,
    path: Vec<Passed<'v>>,
    /// The names of the fields that lead here.
    fields: Vec<&'static str>,
    /// The innermost struct.
    owner: Owner,
    /// Whether names of fields may be written in any case.
    any_case: bool,
    /// Whether fields are refused that a declared struct does not have.
    is_strict: bool,
    /// The struct that is named whatever is inside: of a type that reads itself by reading another.
    outer: Option<Owner>,
    /// The package whose type of schemas was asked for last, and that type.
    schema: Option<(&'static str, &'static Definition)>,
}

impl<'v> Walk<'v> {
    fn new(any_case: bool) -> Self {
        Self {
            first: None,
            path: Vec::new(),
            fields: Vec::new(),
            owner: Owner::Named(""),
            any_case,
            is_strict: false,
            outer: None,
            schema: None,
        }
    }

    fn outcome(self, ended: Result<(), Ended>) -> Result<(), Box<Mismatch>> {
        match ended {
            Err(Ended(mismatch)) => Err(mismatch),
            Ok(()) => self.first.map_or(Ok(()), Err),
        }
    }

    fn place(&self) -> Vec<Step> {
        let step = |passed: &Passed<'v>| match *passed {
            Passed::Field(name) => Step::Field(name.to_owned()),
            Passed::Item(at) => Step::Item(at),
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
        Box::new(Mismatch { reason, path: self.place(), fields: self.fields.clone(), opens })
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
        Box::new(Mismatch { reason, path: self.place(), fields: self.fields.clone(), opens: false })
    }

    /// Remembers what is wrong here unless something was before, and goes on.
    fn note(&mut self, reason: impl Into<TypeError>) {
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
                    self.note(error);
                }
            }
            Value::Array(items) => {
                for (at, item) in items.iter().enumerate() {
                    self.path.push(Passed::Item(at));
                    self.whole(item, "uint8");
                    self.path.pop();
                }
            }
            other => self.refuse(other, "[]uint8"),
        }
    }

    fn end<T>(&self, reason: impl Into<TypeError>) -> Result<T, Ended> {
        Err(Ended(self.mismatch_for(reason.into())))
    }

    fn declared(&mut self, value: &'v Value, ty: &DeclaredType) -> Result<(), Ended> {
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
            (DeclaredType::Int(name), value) => self.whole(value, name),
            (DeclaredType::Bytes, value) => self.bytes(value),
            (DeclaredType::TextMap, Value::Object(fields)) => {
                for (name, value) in fields {
                    self.path.push(Passed::Field(name));
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
            (ty, other) => self.refuse(other, &ty.spelled()),
        }
        Ok(())
    }

    fn fields_of(
        &mut self,
        fields: &'v Map<String, Value>,
        declared: &DeclaredStruct,
    ) -> Result<(), Ended> {
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
            let owner = Owner::Named(declared.name);
            self.below(owner, name, key, |walk| walk.declared(value, ty))?;
        }
        Ok(())
    }

    fn below(
        &mut self,
        owner: Owner,
        name: &'static str,
        key: &'v str,
        check: impl FnOnce(&mut Self) -> Result<(), Ended>,
    ) -> Result<(), Ended> {
        let before = std::mem::replace(&mut self.owner, owner);
        self.fields.push(name);
        self.path.push(Passed::Field(key));
        check(self)?;
        self.path.pop();
        self.fields.pop();
        self.owner = before;
        Ok(())
    }

    fn items(
        &mut self,
        items: &'v [Value],
        mut check: impl FnMut(&mut Self, &'v Value) -> Result<(), Ended>,
    ) -> Result<(), Ended> {
        for (at, item) in items.iter().enumerate() {
            self.path.push(Passed::Item(at));
            check(self, item)?;
            self.path.pop();
        }
        Ok(())
    }

    fn whole(&mut self, value: &Value, name: &str) {
        let fits = |number: &Number| match (number.as_i64(), name) {
            (Some(number), "uint8") => u8::try_from(number).is_ok(),
            (Some(number), "int32") => i32::try_from(number).is_ok(),
            (Some(_), _) => true,
            // Zero may have a sign, but not where there are no signs.
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

    fn object(&mut self, value: &'v Value, definition: &'static Definition) -> Result<(), Ended> {
        use builtin::Shape as Form;
        match (definition.shape(), value) {
            (Form::Any, value) => self.schema_part(value, definition)?,
            (Form::ParsedText, value) => {
                // A type that parses itself is given nulls too.
                let text = if value.is_null() { Some("") } else { value.as_str() };
                let Some(text) = text else {
                    return Err(Ended(self.mismatch(json_kind(value), "string", value)));
                };
                if let Err(error) = builtin::parse_text(definition, text) {
                    return self.end(error);
                }
            }
            (_, Value::Null)
            | (Form::FreeObject, Value::Object(_))
            | (Form::IntOrString, Value::String(_))
            | (Form::Quantity, Value::Number(_)) => {}
            (Form::Object, Value::Object(fields)) => {
                for (key, value) in fields {
                    let Some(field) = field_of(definition, key, self.any_case) else { continue };
                    let name = field.type_name.as_deref();
                    self.below(Owner::Kube(definition), &field.name, key, |walk| {
                        walk.of_type(value, &field.ty, name, definition)
                    })?;
                }
            }
            (Form::IntOrString, value) => {
                let before = self.first.take();
                self.whole(value, "int32");
                if let Some(refused) = self.first.take() {
                    return Err(Ended(refused));
                }
                self.first = before;
            }
            (Form::Quantity, Value::String(text)) => {
                if let Err(error) = crate::canonical_quantity(text) {
                    return self.end(error);
                }
            }
            (Form::Time | Form::MicroTime, Value::String(text)) => {
                let mut probe = Value::String(text.clone());
                if let Err(reason) = strict::decode(definition, &mut probe) {
                    return self.end(TypeError::ParseTime(reason));
                }
            }
            (Form::Time | Form::MicroTime, other) => {
                return Err(Ended(self.mismatch(json_kind(other), "string", other)));
            }
            (Form::Quantity, _) => return self.end(mainstay_quantity::ParseQuantityError::Format),
            (Form::Object | Form::FreeObject, other) => self.refuse(other, &definition.go_name()),
        }
        Ok(())
    }

    /// Types of definitions of custom resources that take a schema or something else. They read
    /// schemas apart, so what is wrong in one ends everything, and names may be in any case there.
    fn schema_part(
        &mut self,
        value: &'v Value,
        definition: &'static Definition,
    ) -> Result<(), Ended> {
        let short = definition.short_name();
        let Some(package) = definition.name().strip_suffix(short) else { return Ok(()) };
        let schema = match self.schema {
            Some((known, schema)) if known == package => schema,
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
            return Err(Ended(refused));
        }
        (self.first, self.any_case, self.outer) = before;
        Ok(())
    }

    fn of_type(
        &mut self,
        value: &'v Value,
        ty: &'static Type,
        name: Option<&'static str>,
        owner: &'static Definition,
    ) -> Result<(), Ended> {
        match (ty, value) {
            // A type that parses itself is given nulls too.
            (Type::Object(reference), value) => {
                if let Some(definition) = reference.definition() {
                    self.object(value, definition)?;
                }
            }
            (_, Value::Null)
            | (Type::String, Value::String(_))
            | (Type::Boolean, Value::Bool(_))
            | (Type::Double, Value::Number(_)) => {}
            (Type::Int32, value) => self.whole(value, "int32"),
            (Type::Int64, value) => self.whole(value, "int64"),
            (Type::Bytes, value) => self.bytes(value),
            (Type::List(element), Value::Array(items)) => {
                self.items(items, |walk, item| walk.of_type(item, element, name, owner))?;
            }
            (Type::Map(element), Value::Object(fields)) => {
                for (key, item) in fields {
                    self.path.push(Passed::Field(key));
                    self.of_type(item, element, name, owner)?;
                    self.path.pop();
                }
            }
            (ty, other) => self.refuse(other, &spelled_type(ty, name, owner)),
        }
        Ok(())
    }
}

fn field_of(
    definition: &'static Definition,
    key: &str,
    any_case: bool,
) -> Option<&'static builtin::Field> {
    let in_any_case = || definition.fields().iter().find(|field| is_same_field(key, &field.name));
    definition.field(key).or_else(|| if any_case { in_any_case() } else { None })
}
