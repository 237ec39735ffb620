//! Version 2 document as protobuf: the messages of gnostic's `openapiv2/OpenAPIv2.proto`, which kubectl
//! reads.
//!
//! The input is the document as JSON. As in upstream, fields are in order of their numbers, entries in
//! order of their names, and values without a field of their own are YAML.

use serde_json::{Map, Value};

/// A message under construction.
#[derive(Default)]
struct Message(Vec<u8>);

const VARINT: u32 = 0;
const FIXED64: u32 = 1;
const LENGTH_DELIMITED: u32 = 2;

impl Message {
    fn varint(&mut self, mut number: u64) {
        while number >= 0x80 {
            self.0.push(number.to_le_bytes()[0] | 0x80);
            number >>= 7;
        }
        self.0.push(number.to_le_bytes()[0]);
    }

    fn key(&mut self, field: u32, wire: u32) {
        self.varint(u64::from(field << 3 | wire));
    }

    fn bytes(&mut self, field: u32, bytes: &[u8]) {
        self.key(field, LENGTH_DELIMITED);
        // A length in memory fits into 64 bits.
        self.varint(bytes.len() as u64);
        self.0.extend_from_slice(bytes);
    }

    /// A message, also an empty one.
    fn message(&mut self, field: u32, message: &Self) {
        self.bytes(field, &message.0);
    }

    fn text(&mut self, field: u32, value: Option<&Value>) {
        if let Some(text) = value.and_then(Value::as_str).filter(|text| !text.is_empty()) {
            self.bytes(field, text.as_bytes());
        }
    }

    fn texts(&mut self, field: u32, value: Option<&Value>) {
        for text in value.and_then(Value::as_array).into_iter().flatten() {
            self.bytes(field, text.as_str().unwrap_or_default().as_bytes());
        }
    }

    fn flag(&mut self, field: u32, value: Option<&Value>) {
        if value == Some(&Value::Bool(true)) {
            self.key(field, VARINT);
            self.varint(1);
        }
    }

    fn count(&mut self, field: u32, value: Option<&Value>) {
        if let Some(number) = value.and_then(Value::as_i64).filter(|number| *number != 0) {
            self.key(field, VARINT);
            self.varint(number.cast_unsigned());
        }
    }

    fn number(&mut self, field: u32, value: Option<&Value>) {
        if let Some(number) = value.and_then(Value::as_f64).filter(|number| *number != 0.0) {
            self.key(field, FIXED64);
            self.0.extend_from_slice(&number.to_le_bytes());
        }
    }

    /// An arbitrary value, as YAML.
    fn any(&mut self, field: u32, value: &Value) {
        let mut any = Self::default();
        any.bytes(2, mainstay_yaml::to_string(value).as_bytes());
        self.message(field, &any);
    }

    /// All fields whose name begins with `x-`.
    fn extensions(&mut self, field: u32, value: &Value) {
        for (name, value) in entries(Some(value)).filter(|(name, _)| name.starts_with("x-")) {
            let mut entry = Self::default();
            entry.bytes(1, name.as_bytes());
            entry.any(2, value);
            self.message(field, &entry);
        }
    }

    /// One map entry for each name without `x-`.
    fn map_entries(&mut self, field: u32, value: Option<&Value>, write: impl Fn(&Value) -> Self) {
        for (name, value) in entries(value).filter(|(name, _)| !name.starts_with("x-")) {
            let mut entry = Self::default();
            entry.bytes(1, name.as_bytes());
            entry.message(2, &write(value));
            self.message(field, &entry);
        }
    }

    /// A message that contains only map entries, if the map exists.
    fn map(&mut self, field: u32, value: Option<&Value>, write: impl Fn(&Value) -> Self) {
        if value.is_some() {
            let mut map = Self::default();
            map.map_entries(1, value, write);
            self.message(field, &map);
        }
    }
}

fn entries(value: Option<&Value>) -> impl Iterator<Item = (&String, &Value)> {
    value.and_then(Value::as_object).into_iter().flat_map(Map::iter)
}

fn items(value: Option<&Value>) -> impl Iterator<Item = &Value> {
    value.and_then(Value::as_array).into_iter().flatten()
}

/// Encodes the document of [`super::swagger`].
pub(super) fn document(value: &Value) -> Vec<u8> {
    let mut out = Message::default();
    out.text(1, value.get("swagger"));
    let info = &value["info"];
    let mut info_message = Message::default();
    info_message.text(1, info.get("title"));
    info_message.text(2, info.get("version"));
    out.message(2, &info_message);
    let mut paths = Message::default();
    paths.map_entries(2, value.get("paths"), path_item);
    out.message(8, &paths);
    out.map(9, value.get("definitions"), schema);
    out.map(10, value.get("parameters"), parameter);
    for requirement in items(value.get("security")) {
        let mut message = Message::default();
        message.map_entries(1, Some(requirement), |scopes| {
            let mut list = Message::default();
            list.texts(1, Some(scopes));
            list
        });
        out.message(12, &message);
    }
    out.map(13, value.get("securityDefinitions"), |key| {
        let mut api_key = Message::default();
        for (field, name) in [(1, "type"), (2, "name"), (3, "in"), (4, "description")] {
            api_key.text(field, key.get(name));
        }
        let mut one_of = Message::default();
        one_of.message(2, &api_key);
        one_of
    });
    out.0
}

fn path_item(value: &Value) -> Message {
    const METHODS: [(u32, &str); 7] = [
        (2, "get"),
        (3, "put"),
        (4, "post"),
        (5, "delete"),
        (6, "options"),
        (7, "head"),
        (8, "patch"),
    ];
    let mut out = Message::default();
    for (field, method) in METHODS {
        if let Some(value) = value.get(method) {
            out.message(field, &operation(value));
        }
    }
    for value in items(value.get("parameters")) {
        out.message(9, &parameters_item(value));
    }
    out
}

fn operation(value: &Value) -> Message {
    let mut out = Message::default();
    out.texts(1, value.get("tags"));
    out.text(3, value.get("description"));
    out.text(5, value.get("operationId"));
    out.texts(6, value.get("produces"));
    out.texts(7, value.get("consumes"));
    for value in items(value.get("parameters")) {
        out.message(8, &parameters_item(value));
    }
    let mut responses = Message::default();
    responses.map_entries(1, value.get("responses"), |value| {
        let mut response = Message::default();
        response.text(1, value.get("description"));
        if let Some(value) = value.get("schema") {
            let mut item = Message::default();
            item.message(1, &schema(value));
            response.message(2, &item);
        }
        let mut one_of = Message::default();
        one_of.message(1, &response);
        one_of
    });
    out.message(9, &responses);
    out.texts(10, value.get("schemes"));
    out.extensions(13, value);
    out
}

fn parameters_item(value: &Value) -> Message {
    let mut out = Message::default();
    if value.get("$ref").is_some() {
        let mut reference = Message::default();
        reference.text(1, value.get("$ref"));
        out.message(2, &reference);
    } else {
        out.message(1, &parameter(value));
    }
    out
}

fn parameter(value: &Value) -> Message {
    let mut out = Message::default();
    let mut inner = Message::default();
    if value["in"] == "body" {
        inner.text(1, value.get("description"));
        inner.text(2, value.get("name"));
        inner.text(3, value.get("in"));
        inner.flag(4, value.get("required"));
        if let Some(value) = value.get("schema") {
            inner.message(5, &schema(value));
        }
        out.message(1, &inner);
        return out;
    }
    inner.flag(1, value.get("required"));
    inner.text(2, value.get("in"));
    inner.text(3, value.get("description"));
    inner.text(4, value.get("name"));
    // The fields have different numbers in the two messages.
    let in_path = value["in"] == "path";
    let (kind, unique, location) = if in_path { (5, 19, 4) } else { (6, 20, 3) };
    inner.text(kind, value.get("type"));
    inner.flag(unique, value.get("uniqueItems"));
    let mut one_of = Message::default();
    one_of.message(location, &inner);
    out.message(2, &one_of);
    out
}

fn schema(value: &Value) -> Message {
    let mut out = Message::default();
    let get = |name: &str| value.get(name);
    for (field, name) in [(1, "$ref"), (2, "format"), (3, "title"), (4, "description")] {
        out.text(field, get(name));
    }
    if let Some(default) = get("default") {
        out.any(5, default);
    }
    out.number(6, get("multipleOf"));
    out.number(7, get("maximum"));
    out.flag(8, get("exclusiveMaximum"));
    out.number(9, get("minimum"));
    out.flag(10, get("exclusiveMinimum"));
    out.count(11, get("maxLength"));
    out.count(12, get("minLength"));
    out.text(13, get("pattern"));
    out.count(14, get("maxItems"));
    out.count(15, get("minItems"));
    out.flag(16, get("uniqueItems"));
    out.count(17, get("maxProperties"));
    out.count(18, get("minProperties"));
    out.texts(19, get("required"));
    for value in items(get("enum")) {
        out.any(20, value);
    }
    match get("additionalProperties") {
        Some(Value::Bool(any)) => {
            let mut one_of = Message::default();
            one_of.key(2, VARINT);
            one_of.varint(u64::from(*any));
            out.message(21, &one_of);
        }
        Some(value) => {
            let mut one_of = Message::default();
            one_of.message(1, &schema(value));
            out.message(21, &one_of);
        }
        None => {}
    }
    if let Some(kind) = get("type") {
        let mut list = Message::default();
        list.text(1, Some(kind));
        out.message(22, &list);
    }
    if let Some(value) = get("items") {
        let mut list = Message::default();
        list.message(1, &schema(value));
        out.message(23, &list);
    }
    for value in items(get("allOf")) {
        out.message(24, &schema(value));
    }
    // Names of properties may begin with `x-`.
    if let Some(properties) = get("properties") {
        let mut map = Message::default();
        for (name, value) in entries(Some(properties)) {
            let mut entry = Message::default();
            entry.bytes(1, name.as_bytes());
            entry.message(2, &schema(value));
            map.message(1, &entry);
        }
        out.message(25, &map);
    }
    if let Some(example) = get("example") {
        out.any(30, example);
    }
    out.extensions(31, value);
    out
}
