//! Encoder from the JSON text of an object to Go's protobuf message, in one pass.
//!
//! It builds no tree: a value is written when it is parsed. At the end of a message its fields are
//! reordered by their tags, with Go's zero values between them. [`Layout`] has this order and the zero
//! values of each type.

use super::layout::{Entry, Layout};
use super::wire::{
    nest, number_length, put_bytes, put_fixed64, put_nested, put_number, put_varint,
};
use super::{MAGIC, MAX_DEPTH, ProtobufError};
use crate::builtin::{FieldType, JsonForm, TypeDefinition};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize as _;
use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;
use std::fmt;
use std::ops::Range;

/// Encodes an object of a type. The text must be the result of [`crate::strict::decode`] with sorted
/// keys, as stored objects are.
///
/// # Errors
/// [`ProtobufError::Unencodable`] if a value does not have the form of its type, and
/// [`ProtobufError::TooDeep`] if messages would be nested deeper than [`MAX_DEPTH`].
pub fn encode(definition: &TypeDefinition, text: &str) -> Result<Vec<u8>, ProtobufError> {
    let mut writer = Writer { out: Vec::with_capacity(text.len()), ..Writer::default() };
    let message = Message { writer: &mut writer, definition, tag: None, depth: 0 };
    match read(message, text) {
        Ok(()) => Ok(writer.out),
        Err(_) if writer.is_too_deep => Err(ProtobufError::TooDeep),
        Err(error) => Err(ProtobufError::Unencodable(error.to_string())),
    }
}

/// Deserializes a text without the recursion limit of `serde_json`.
fn read<'de, T: DeserializeSeed<'de>>(seed: T, text: &'de str) -> serde_json::Result<T::Value> {
    let mut deserializer = serde_json::Deserializer::from_str(text);
    // Messages count their depth, and unknown values are skipped without recursion.
    deserializer.disable_recursion_limit();
    seed.deserialize(&mut deserializer)
}

/// Puts a message into the envelope of a body.
pub fn wrap(api_version: &str, kind: &str, raw: &[u8]) -> Vec<u8> {
    let mut out = envelope_start(api_version, kind, raw.len());
    out.reserve(raw.len() + ENVELOPE_END.len());
    out.extend_from_slice(raw);
    out.extend_from_slice(&ENVELOPE_END);
    out
}

/// The beginning of a body with a message of `length` bytes; [`ENVELOPE_END`] follows the message.
pub fn envelope_start(api_version: &str, kind: &str, length: usize) -> Vec<u8> {
    let mut out = Vec::with_capacity(api_version.len() + kind.len() + 24);
    out.extend_from_slice(&MAGIC);
    put_nested(&mut out, 1, |meta| {
        put_bytes(meta, 1, api_version.as_bytes());
        put_bytes(meta, 2, kind.as_bytes());
    });
    put_number(&mut out, 2 << 3 | 2);
    put_number(&mut out, length as u64);
    out
}

/// The end of each body: the empty fields of the envelope after the message.
pub const ENVELOPE_END: [u8; 4] = [3 << 3 | 2, 0, 4 << 3 | 2, 0];

/// The tag of the items in the message of each list.
pub const ITEMS_TAG: u32 = 2;

/// The number of bytes of an item of `length` bytes in the message of a list.
pub const fn item_length(length: usize) -> usize {
    number_length((ITEMS_TAG as u64) << 3 | 2) + number_length(length as u64) + length
}

/// Writes an item into the message of a list.
pub fn put_item(out: &mut Vec<u8>, item: &[u8]) {
    put_bytes(out, ITEMS_TAG, item);
}

/// A watch event with its length, about an object in its envelope.
pub fn event(kind: &str, object: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(object.len() + kind.len() + 24);
    out.extend_from_slice(&[0; 4]);
    put_bytes(&mut out, 1, kind.as_bytes());
    put_nested(&mut out, 2, |extension| put_bytes(extension, 1, object));
    // Objects have some megabytes at most.
    let length = u32::try_from(out.len() - 4).unwrap_or(u32::MAX);
    out[..4].copy_from_slice(&length.to_be_bytes());
    out
}

/// The output, and the positions of the fields of open messages in it.
#[derive(Default)]
struct Writer {
    out: Vec<u8>,
    /// For each field of each open message, the range of its value with tags; empty for none.
    values: Vec<Range<usize>>,
    is_too_deep: bool,
}

impl Writer {
    /// Ends a message: rewrites the values since `start` in the order of the layout.
    fn finish(&mut self, layout: &Layout, tag: Option<u32>, start: usize, values: usize) {
        let (end, values) = (self.out.len(), &self.values[values..]);
        if let Some(tag) = tag {
            put_number(&mut self.out, u64::from(tag) << 3 | 2);
            put_number(&mut self.out, length(&layout.entries, values) as u64);
        }
        put_entries(&mut self.out, &layout.entries, values);
        let length = self.out.len() - end;
        self.out.copy_within(end.., start);
        self.out.truncate(start + length);
    }
}

/// The number of bytes of the entries of a message.
fn length(entries: &[Entry], values: &[Range<usize>]) -> usize {
    let entry_length = |entry: &Entry| match entry {
        Entry::Field { at, zero } if values[*at].is_empty() => zero.len(),
        Entry::Field { at, .. } => values[*at].len(),
        Entry::Embedded { tag, entries } => {
            let inner = length(entries, values);
            number_length(u64::from(*tag) << 3 | 2) + number_length(inner as u64) + inner
        }
    };
    entries.iter().map(entry_length).sum()
}

fn put_entries(out: &mut Vec<u8>, entries: &[Entry], values: &[Range<usize>]) {
    for entry in entries {
        match entry {
            Entry::Field { at, zero } if values[*at].is_empty() => out.extend_from_slice(zero),
            Entry::Field { at, .. } => out.extend_from_within(values[*at].clone()),
            Entry::Embedded { tag, entries } => {
                put_number(out, u64::from(*tag) << 3 | 2);
                put_number(out, length(entries, values) as u64);
                put_entries(out, entries, values);
            }
        }
    }
}

/// An object with known fields.
struct Message<'w, 'd> {
    writer: &'w mut Writer,
    definition: &'d TypeDefinition,
    /// The tag of the message; none for the outermost.
    tag: Option<u32>,
    depth: usize,
}

impl<'de> DeserializeSeed<'de> for Message<'_, '_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Message<'_, '_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "an object of type {}", self.definition.short_name())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let Self { writer, definition, tag, depth } = self;
        if depth > MAX_DEPTH {
            writer.is_too_deep = true;
            return Err(A::Error::custom("exceeded max depth"));
        }
        let (start, values) = (writer.out.len(), writer.values.len());
        let fields = definition.fields();
        writer.values.resize(values + fields.len(), 0..0);
        while let Some(position) = map.next_key_seed(FieldName(definition))? {
            // `apiVersion` and `kind` are in the envelope and have no tag.
            let tagged = position.and_then(|at| Some((at, *fields[at].tags.last()?)));
            let Some((at, tag)) = tagged else {
                map.next_value::<IgnoredAny>()?;
                continue;
            };
            let from = writer.out.len();
            let field = &fields[at];
            map.next_value_seed(FieldValue {
                writer: &mut *writer,
                ty: &field.ty,
                tag,
                depth,
                is_element: false,
            })?;
            writer.values[values + at] = from..writer.out.len();
        }
        writer.finish(definition.layout(), tag, start, values);
        writer.values.truncate(values);
        Ok(())
    }
}

/// The position of the field that a key names.
struct FieldName<'d>(&'d TypeDefinition);

impl<'de> DeserializeSeed<'de> for FieldName<'_> {
    type Value = Option<usize>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_identifier(self)
    }
}

impl Visitor<'_> for FieldName<'_> {
    type Value = Option<usize>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a field name")
    }

    fn visit_str<E: Error>(self, name: &str) -> Result<Self::Value, E> {
        Ok(self.0.position(name))
    }
}

/// A field value with its tag. A list has one for each element, null has none.
struct FieldValue<'w, 'd> {
    writer: &'w mut Writer,
    ty: &'d FieldType,
    tag: u32,
    depth: usize,
    /// Whether the value is an element of a list or map, where null is a value.
    is_element: bool,
}

impl FieldValue<'_, '_> {
    fn json_form(&self) -> Option<JsonForm> {
        self.ty.definition().map(TypeDefinition::json_form)
    }

    fn wrong_type<E: Error>(&self, found: &str) -> E {
        E::custom(format_args!("{found} cannot be a value of type {:?}", self.ty))
    }

    fn integer<E: Error>(self, number: i64) -> Result<(), E> {
        let out = &mut self.writer.out;
        match (self.ty, self.ty.definition().map(TypeDefinition::json_form)) {
            (FieldType::Int32 | FieldType::Int64, _) => {
                put_varint(out, self.tag, number.cast_unsigned());
            }
            #[expect(clippy::cast_precision_loss, reason = "as Go reads it")]
            (FieldType::Double, _) => put_fixed64(out, self.tag, (number as f64).to_bits()),
            (_, Some(JsonForm::IntOrString)) => put_int_or_string(out, self.tag, number, None),
            _ => return Err(self.wrong_type("a number")),
        }
        Ok(())
    }

    /// Writes a value that is raw JSON in protobuf, or a part of a schema.
    fn raw<E: Error>(self, definition: &TypeDefinition, raw: &str) -> Result<(), E> {
        let (out, name) = (&mut self.writer.out, definition.short_name());
        match raw {
            "null" if !self.is_element => {}
            "null" if definition.json_form() == JsonForm::FreeObject => {
                put_bytes(out, self.tag, &[]);
            }
            _ if name == "CustomResourceSubresourceStatus" => put_bytes(out, self.tag, &[]),
            _ if definition.json_form() == JsonForm::FreeObject || name == "JSON" => {
                put_nested(out, self.tag, |out| put_bytes(out, 1, raw.as_bytes()));
            }
            _ => self.schema(definition, raw).map_err(E::custom)?,
        }
        Ok(())
    }

    /// Writes a part of a CRD's schema with alternative types.
    fn schema(self, definition: &TypeDefinition, raw: &str) -> Result<(), serde_json::Error> {
        let package = definition.name().rsplit_once('.').map_or("", |parts| parts.0);
        let Some(props) = crate::builtin::definition(&format!("{package}.JSONSchemaProps")) else {
            return Err(self.wrong_type("a schema"));
        };
        let (start, depth) = (self.writer.out.len(), self.depth + 1);
        let writer = self.writer;
        let write_schema = |writer: &mut Writer, tag, text: &str| {
            read(Message { writer, definition: props, tag: Some(tag), depth }, text)
        };
        match (definition.short_name(), raw.as_bytes().first()) {
            ("JSONSchemaPropsOrBool", Some(b't' | b'f')) => {
                put_varint(&mut writer.out, 1, (raw == "true").into());
            }
            ("JSONSchemaPropsOrBool", _) => {
                put_varint(&mut writer.out, 1, 1);
                write_schema(writer, 2, raw)?;
            }
            ("JSONSchemaPropsOrStringArray", Some(b'[')) => {
                for name in serde_json::from_str::<Vec<String>>(raw)? {
                    put_bytes(&mut writer.out, 2, name.as_bytes());
                }
            }
            (_, Some(b'[')) => {
                for item in serde_json::from_str::<Vec<&RawValue>>(raw)? {
                    write_schema(writer, 2, item.get())?;
                }
            }
            _ => write_schema(writer, 1, raw)?,
        }
        nest(&mut writer.out, self.tag, start);
        Ok(())
    }
}

impl<'de> DeserializeSeed<'de> for FieldValue<'_, '_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        match self.ty.definition() {
            Some(definition)
                if matches!(definition.json_form(), JsonForm::FreeObject | JsonForm::Any) =>
            {
                let raw = <&RawValue>::deserialize(deserializer)?;
                self.raw(definition, raw.get())
            }
            _ => deserializer.deserialize_any(self),
        }
    }
}

impl<'de> Visitor<'de> for FieldValue<'_, '_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a value of type {:?}", self.ty)
    }

    fn visit_unit<E: Error>(self) -> Result<(), E> {
        match (self.ty, self.json_form()) {
            _ if !self.is_element => {}
            (FieldType::List(_) | FieldType::Map(_) | FieldType::Bytes, _) => {}
            (_, Some(JsonForm::Time | JsonForm::MicroTime)) => {
                put_bytes(&mut self.writer.out, self.tag, &[]);
            }
            _ => return Err(self.wrong_type("null")),
        }
        Ok(())
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<(), E> {
        if !matches!(self.ty, FieldType::Boolean) {
            return Err(self.wrong_type("a boolean"));
        }
        put_varint(&mut self.writer.out, self.tag, value.into());
        Ok(())
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<(), E> {
        self.integer(number)
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<(), E> {
        match i64::try_from(number) {
            Ok(number) => self.integer(number),
            #[expect(clippy::cast_precision_loss, reason = "as Go reads it")]
            Err(_) => self.visit_f64(number as f64),
        }
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<(), E> {
        if !matches!(self.ty, FieldType::Double) {
            return Err(self.wrong_type("a fraction"));
        }
        put_fixed64(&mut self.writer.out, self.tag, number.to_bits());
        Ok(())
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<(), E> {
        let (form, tag) = (self.json_form(), self.tag);
        match (self.ty, form) {
            (FieldType::String, _) => put_bytes(&mut self.writer.out, tag, text.as_bytes()),
            (FieldType::Bytes, _) => {
                let bytes = STANDARD.decode(text).map_err(E::custom)?;
                put_bytes(&mut self.writer.out, tag, &bytes);
            }
            (_, Some(JsonForm::Time | JsonForm::MicroTime)) => {
                let time: jiff::Timestamp = text.parse().map_err(E::custom)?;
                put_nested(&mut self.writer.out, tag, |out| {
                    put_varint(out, 1, time.as_second().cast_unsigned());
                    put_varint(out, 2, i64::from(time.subsec_nanosecond()).cast_unsigned());
                });
            }
            (_, Some(JsonForm::Quantity)) => {
                put_nested(&mut self.writer.out, tag, |out| put_bytes(out, 1, text.as_bytes()));
            }
            (_, Some(JsonForm::IntOrString)) => {
                put_int_or_string(&mut self.writer.out, tag, 0, Some(text));
            }
            _ => return Err(self.wrong_type("a text")),
        }
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<(), A::Error> {
        let Self { writer, tag, depth, .. } = self;
        let FieldType::List(element) = self.ty else {
            return Err(Error::custom("a list is not one"));
        };
        loop {
            let element =
                FieldValue { writer: &mut *writer, ty: element, tag, depth, is_element: true };
            if items.next_element_seed(element)?.is_none() {
                return Ok(());
            }
        }
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let Self { writer, tag, depth, .. } = self;
        let element = match self.ty {
            FieldType::Map(element) => element,
            ty => {
                let wrong_type = || A::Error::custom("an object cannot be a value of its type");
                let definition =
                    ty.definition().filter(|found| found.json_form() == JsonForm::Object);
                let definition = definition.ok_or_else(wrong_type)?;
                let message = Message { writer, definition, tag: Some(tag), depth: depth + 1 };
                return message.visit_map(map);
            }
        };
        while let Some(key) = map.next_key::<std::borrow::Cow<'_, str>>()? {
            let start = writer.out.len();
            put_bytes(&mut writer.out, 1, key.as_bytes());
            // The value of a map cannot be a list, so the list is in a message.
            let is_list = matches!(**element, FieldType::List(_));
            let inner = writer.out.len();
            map.next_value_seed(FieldValue {
                writer: &mut *writer,
                ty: element,
                tag: if is_list { 1 } else { 2 },
                depth,
                is_element: true,
            })?;
            if is_list {
                nest(&mut writer.out, 2, inner);
            }
            nest(&mut writer.out, tag, start);
        }
        Ok(())
    }
}

/// Writes an int-or-string: its type, the integer and the string.
pub(super) fn put_int_or_string(out: &mut Vec<u8>, tag: u32, number: i64, text: Option<&str>) {
    put_nested(out, tag, |out| {
        put_varint(out, 1, text.is_some().into());
        put_varint(out, 2, number.cast_unsigned());
        put_bytes(out, 3, text.unwrap_or_default().as_bytes());
    });
}
