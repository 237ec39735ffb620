//! Go's types as tables, and what its JSON decoder says of values that do not have them.
//!
//! Go walks a value in the order of its text, goes on after a value of another kind, and answers
//! with the first one it met; types that read themselves end the walk at once. Unknown fields pass,
//! `null` is "not set", names may be written in any case. Types of Kubernetes come from the table of
//! its types.

use crate::mismatch::{Mismatch, TypeError};
use mainstay_gocompat::json::{Html, Numbers};
use mainstay_gocompat::values::json_kind;
use mainstay_schema::builtin::{self, Definition, Type};
use serde_json::Value;

/// The kind of value that a field takes.
pub(crate) enum Kind {
    Text,
    /// Anything: kept as it is.
    Raw,
    /// A mapping of texts to texts.
    TextMap,
    One(&'static Shape),
    Many(&'static Self),
    /// A list of pointers.
    Pointers(&'static Shape),
    /// A type of operators or of Kubernetes, by its name in the table.
    Kube(&'static str),
}

/// A Go struct: how messages call it as a struct and as a type, and its fields.
pub(crate) struct Shape {
    pub(crate) name: &'static str,
    pub(crate) spelled: &'static str,
    pub(crate) fields: &'static [(&'static str, Kind)],
}

/// One step from a value to a part of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    Field(String),
    Item(usize),
}

/// A field as Go finds it: by its exact name, or else in any case; the last one counts.
pub(crate) fn field<'v>(value: &'v Value, name: &str) -> Option<&'v Value> {
    mainstay_schema::gojson::field_in_any_case(value.as_object()?, name)
}

/// The text of a field; empty where there is none.
pub(crate) fn text<'v>(value: &'v Value, name: &str) -> &'v str {
    field(value, name).and_then(Value::as_str).unwrap_or_default()
}

/// Checks a value against a struct.
pub(crate) fn check(value: &Value, shape: &'static Shape) -> Result<(), Mismatch> {
    check_kind(value, &Kind::One(shape))
}

/// Checks a value against a kind.
pub(crate) fn check_kind(value: &Value, kind: &Kind) -> Result<(), Mismatch> {
    let mut walk = Walk::new(true);
    match walk.kind(value, kind) {
        Err(Ended(mismatch)) => Err(mismatch),
        Ok(()) => walk.first.map_or(Ok(()), Err),
    }
}

/// Checks an object against its type of Kubernetes, whose field names have one case only.
pub(crate) fn check_object(value: &Value, definition: &'static Definition) -> Result<(), Mismatch> {
    let mut walk = Walk::new(false);
    match walk.kube(value, definition) {
        Err(Ended(mismatch)) => Err(mismatch),
        Ok(()) => walk.first.map_or(Ok(()), Err),
    }
}

/// A type that reads itself has refused its value.
struct Ended(Mismatch);

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
    first: Option<Mismatch>,
    path: Vec<Passed<'v>>,
    /// The names of the fields that lead here.
    fields: Vec<&'static str>,
    /// The innermost struct.
    owner: Owner,
    /// Whether names of fields may be written in any case.
    any_case: bool,
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
            outer: None,
            schema: None,
        }
    }

    fn place(&self) -> Vec<Step> {
        let step = |passed: &Passed<'v>| match *passed {
            Passed::Field(name) => Step::Field(name.to_owned()),
            Passed::Item(at) => Step::Item(at),
        };
        self.path.iter().map(step).collect()
    }

    fn mismatch(&self, found: &str, expected: &str, value: &Value) -> Mismatch {
        let (found, expected) = (found.to_owned(), expected.to_owned());
        let reason = if self.fields.is_empty() {
            TypeError::WrongValue { found, expected }
        } else {
            let owner = self.outer.unwrap_or(self.owner).name();
            TypeError::WrongField { found, owner, path: self.fields.join("."), expected }
        };
        Mismatch { reason, path: self.place(), opens: value.is_array() || value.is_object() }
    }

    fn refuse_as(&mut self, found: &str, expected: &str, value: &Value) {
        if self.first.is_none() {
            self.first = Some(self.mismatch(found, expected, value));
        }
    }

    fn refuse(&mut self, value: &Value, expected: &str) {
        self.refuse_as(json_kind(value), expected, value);
    }

    fn end<T>(&self, reason: impl Into<TypeError>) -> Result<T, Ended> {
        Err(Ended(Mismatch { reason: reason.into(), path: self.place(), opens: false }))
    }

    fn kind(&mut self, value: &'v Value, kind: &Kind) -> Result<(), Ended> {
        match (kind, value) {
            (Kind::Raw, _) | (_, Value::Null) | (Kind::Text, Value::String(_)) => {}
            (Kind::TextMap, Value::Object(fields)) => {
                for (name, value) in fields {
                    self.path.push(Passed::Field(name));
                    if !value.is_string() && !value.is_null() {
                        self.refuse(value, "string");
                    }
                    self.path.pop();
                }
            }
            (Kind::One(shape), Value::Object(fields)) => {
                for (key, value) in fields {
                    let Some((name, kind)) = named(shape.fields, key) else { continue };
                    self.below(Owner::Named(shape.name), name, key, |walk| walk.kind(value, kind))?;
                }
            }
            (Kind::Many(element), Value::Array(items)) => {
                self.items(items, |walk, item| walk.kind(item, element))?;
            }
            (Kind::Pointers(shape), Value::Array(items)) => {
                self.items(items, |walk, item| walk.kind(item, &Kind::One(shape)))?;
            }
            (Kind::Kube(name), value) => {
                if let Some(definition) = builtin::definition(name) {
                    self.kube(value, definition)?;
                }
            }
            (kind, other) => self.refuse(other, &spelled(kind)),
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
        let fits = |whole: i64| name != "int32" || i32::try_from(whole).is_ok();
        match value {
            Value::Null => {}
            Value::Number(number) if number.as_i64().is_some_and(fits) => {}
            Value::Number(_) => {
                let number = mainstay_gocompat::json::value(value, Html::Plain, Numbers::Object);
                let text = format!("number {number}");
                self.refuse_as(&text, name, value);
            }
            other => self.refuse(other, name),
        }
    }

    fn kube(&mut self, value: &'v Value, definition: &'static Definition) -> Result<(), Ended> {
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
                    let Some(field) = kube_field(definition, key, self.any_case) else { continue };
                    let name = field.type_name.as_deref();
                    self.below(Owner::Kube(definition), &field.name, key, |walk| {
                        walk.kube_type(value, &field.ty, name, definition)
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
                if let Err(error) = mainstay_schema::canonical_quantity(text) {
                    return self.end(error);
                }
            }
            (Form::Time | Form::MicroTime, Value::String(text)) => {
                let mut probe = Value::String(text.clone());
                if let Err(reason) = mainstay_schema::strict::decode(definition, &mut probe) {
                    return self.end(TypeError::ParseTime(reason));
                }
            }
            (Form::Time | Form::MicroTime, other) => {
                return Err(Ended(self.mismatch(json_kind(other), "string", other)));
            }
            (Form::Quantity, _) => return self.end(mainstay_quantity::Malformed::Format),
            (Form::Object | Form::FreeObject, other) => self.refuse(other, &go_name(definition)),
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
            ) => self.kube(value, schema)?,
            ("JSONSchemaPropsOrArray", Value::Array(items)) => {
                self.items(items, |walk, item| walk.kube(item, schema))?;
            }
            ("JSONSchemaPropsOrStringArray", Value::Array(items)) => {
                self.items(items, |walk, item| walk.kind(item, &Kind::Text))?;
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

    fn kube_type(
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
                    self.kube(value, definition)?;
                }
            }
            (_, Value::Null)
            | (Type::String | Type::Bytes, Value::String(_))
            | (Type::Boolean, Value::Bool(_))
            | (Type::Double, Value::Number(_)) => {}
            (Type::Int32, value) => self.whole(value, "int32"),
            (Type::Int64, value) => self.whole(value, "int64"),
            (Type::List(element), Value::Array(items)) => {
                self.items(items, |walk, item| walk.kube_type(item, element, name, owner))?;
            }
            (Type::Map(element), Value::Object(fields)) => {
                for (key, item) in fields {
                    self.path.push(Passed::Field(key));
                    self.kube_type(item, element, name, owner)?;
                    self.path.pop();
                }
            }
            (ty, other) => self.refuse(other, &kube_spelled(ty, name, owner)),
        }
        Ok(())
    }
}

fn named(
    fields: &'static [(&'static str, Kind)],
    key: &str,
) -> Option<(&'static str, &'static Kind)> {
    let exact = fields.iter().find(|(name, _)| *name == key);
    let found = exact.or_else(|| fields.iter().find(|(name, _)| name.eq_ignore_ascii_case(key)))?;
    Some((found.0, &found.1))
}

fn kube_field(
    definition: &'static Definition,
    key: &str,
    any_case: bool,
) -> Option<&'static builtin::Field> {
    let in_any_case = || definition.fields().iter().find(|f| f.name.eq_ignore_ascii_case(key));
    definition.field(key).or_else(|| if any_case { in_any_case() } else { None })
}

/// Go's name of a type: the last two parts.
fn go_name(definition: &Definition) -> String {
    let name = definition.name();
    let package = name.rsplit('.').nth(1).unwrap_or_default();
    format!("{package}.{}", definition.short_name())
}

pub(crate) fn kube_spelled(ty: &Type, name: Option<&str>, owner: &Definition) -> String {
    let package = || owner.name().rsplit('.').nth(1).unwrap_or_default().to_owned();
    let full = |name: &str| {
        if name.contains('.') { name.to_owned() } else { format!("{}.{name}", package()) }
    };
    match (ty, name) {
        (Type::List(_) | Type::Map(_), Some(whole)) if whole.starts_with('*') => full(&whole[1..]),
        (Type::List(element), name) => format!("[]{}", kube_spelled(element, name, owner)),
        (Type::Map(element), name) => {
            format!("map[string]{}", kube_spelled(element, name, owner))
        }
        (Type::Object(reference), _) => reference.definition().map(go_name).unwrap_or_default(),
        (_, Some(name)) => full(name),
        (Type::String, None) => "string".to_owned(),
        (Type::Bytes, None) => "[]uint8".to_owned(),
        (Type::Int32, None) => "int32".to_owned(),
        (Type::Int64, None) => "int64".to_owned(),
        (Type::Double, None) => "float64".to_owned(),
        (Type::Boolean, None) => "bool".to_owned(),
    }
}

fn spelled(kind: &Kind) -> String {
    match kind {
        Kind::Text => "string".to_owned(),
        Kind::Raw => "json.RawMessage".to_owned(),
        Kind::TextMap => "map[string]string".to_owned(),
        Kind::One(shape) => shape.spelled.to_owned(),
        Kind::Many(element) => format!("[]{}", spelled(element)),
        Kind::Pointers(shape) => format!("[]*{}", shape.spelled),
        Kind::Kube(name) => builtin::definition(name).map(go_name).unwrap_or_default(),
    }
}
