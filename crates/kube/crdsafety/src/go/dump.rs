//! Texts of values: as the generated `String()` of the API types gives them, and as `%v` does inside.

use super::types::{Field, Kind, SCHEMA, Type};
use super::value::{Schema, Value};
use mainstay_gocompat::values::float;
use std::fmt::Write;

/// How all printed addresses of memory begin.
const ADDRESS: &str = "0xc0000";

/// Addresses of memory, as `%v` prints pointers inside a struct. Each is another one, as in Go, so texts
/// with addresses never equal each other. In Go each run prints others, here each run prints the same.
#[derive(Debug, Default)]
pub(crate) struct Addresses(u32);

impl Addresses {
    fn next(&mut self) -> String {
        self.0 += 8;
        format!("{ADDRESS}{:05x}", self.0)
    }
}

/// Whether a text has a printed address.
pub(crate) fn has_address(text: &str) -> bool {
    text.contains(ADDRESS)
}

/// `&JSONSchemaProps{ID:,…}`.
pub(crate) fn dump_schema(schema: &Schema, addresses: &mut Addresses) -> String {
    dump(&schema.to_value(), &SCHEMA, addresses)
}

/// The text of a struct with `String()`: a `&`, the name and all fields.
pub(crate) fn dump_struct(value: &Value, kind: &Type) -> String {
    dump(value, kind, &mut Addresses::default())
}

fn dump(value: &Value, kind: &Type, addresses: &mut Addresses) -> String {
    let mut out = format!("&{}{{", kind.short_name);
    if let Value::Struct(fields) = value {
        for (field, value) in kind.fields.iter().zip(fields) {
            out.push_str(field.name);
            out.push(':');
            dump_field(field, value, addresses, &mut out);
            out.push(',');
        }
    }
    out.push('}');
    out
}

fn dump_field(field: &Field, value: &Value, addresses: &mut Addresses, out: &mut String) {
    let element = field.kind.element.unwrap_or(field.kind);
    match value {
        Value::Pointer(None) => out.push_str("nil"),
        Value::Pointer(Some(target)) if !element.short_name.is_empty() => {
            out.push_str(&dump(target, element, addresses));
        }
        Value::Pointer(Some(target)) => {
            out.push('*');
            print(target, element, addresses, out);
        }
        Value::Slice(None) if element.kind == Kind::Byte => out.push_str("nil"),
        Value::Slice(Some(_)) if element.kind == Kind::Byte => {
            out.push('*');
            print(value, field.kind, addresses, out);
        }
        Value::Slice(items) if !element.short_name.is_empty() => {
            let _ = write!(out, "[]{}{{", element.short_name);
            for item in items.iter().flatten() {
                out.push_str(dump(item, element, addresses).trim_start_matches('&'));
                out.push(',');
            }
            out.push('}');
        }
        Value::Map(entries) => {
            let name = field.kind.name;
            let name =
                name.strip_prefix("v1.").map_or_else(|| name.replace("v1.", ""), str::to_owned);
            out.push_str(&name);
            out.push('{');
            for (key, entry) in entries.iter().flatten() {
                let _ = write!(out, "{key}: ");
                print(entry, element, addresses, out);
                out.push(',');
            }
            out.push('}');
        }
        _ => print(value, field.kind, addresses, out),
    }
}

/// `%v` of a value that is inside another one.
fn print(value: &Value, kind: &Type, addresses: &mut Addresses, out: &mut String) {
    let element = kind.element.unwrap_or(kind);
    match value {
        Value::Bool(on) => out.push_str(if *on { "true" } else { "false" }),
        Value::Int(number) => drop(write!(out, "{number}")),
        Value::Float(number) => out.push_str(&float(*number)),
        Value::Byte(byte) => drop(write!(out, "{byte}")),
        Value::Text(text) => out.push_str(text),
        // A pointer to a type with `String()` prints that text, others an address.
        Value::Pointer(None) if element.short_name.is_empty() => out.push_str("<nil>"),
        Value::Pointer(None) => out.push_str("nil"),
        Value::Pointer(Some(_)) if element.short_name.is_empty() => out.push_str(&addresses.next()),
        Value::Pointer(Some(target)) => out.push_str(&dump(target, element, addresses)),
        Value::Struct(fields) => {
            let fields = kind.fields.iter().zip(fields).map(|(field, value)| (field.kind, value));
            print_list(fields, ('{', '}'), addresses, out);
        }
        Value::Slice(items) => {
            let items = items.iter().flatten().map(|item| (element, item));
            print_list(items, ('[', ']'), addresses, out);
        }
        Value::Map(entries) => {
            out.push_str("map[");
            for (at, (key, entry)) in entries.iter().flatten().enumerate() {
                if at > 0 {
                    out.push(' ');
                }
                let _ = write!(out, "{key}:");
                print(entry, element, addresses, out);
            }
            out.push(']');
        }
    }
}

fn print_list<'a>(
    items: impl Iterator<Item = (&'a Type, &'a Value)>,
    (open, close): (char, char),
    addresses: &mut Addresses,
    out: &mut String,
) {
    out.push(open);
    for (at, (kind, item)) in items.enumerate() {
        if at > 0 {
            out.push(' ');
        }
        print(item, kind, addresses, out);
    }
    out.push(close);
}
