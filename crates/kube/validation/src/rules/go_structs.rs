//! Internal Go structs of Kubernetes in error messages, printed as JSON.
//!
//! An error about a whole struct prints the internal type of Kubernetes, not the object of the client:
//! all fields under their Go names, in the order of the struct. `go_structs.txt` lists the fields of the
//! types that errors can print. A line has a type and its fields: the Go name, the API name if it
//! differs, and a mark for the type of the field.
//!
//! | Mark | Type | If absent |
//! |---|---|---|
//! | `s` `n` `b` | string, number, boolean | `""`, `0`, `false` |
//! | `i` `q` | number or string, quantity | `0`, `"0"` |
//! | `?` `t` | any value as it is, a time | `null` |
//! | `TX` `*X` | a struct, a pointer to one | its fields, `null` |
//! | `[X` `{X` | a list or a map of structs | `null` |
//! | `&X` | an embedded struct | |
//!
//! A `-` before the mark stands for `omitempty`. The table is parsed for the first such error.

use mainstay_gocompat::quote;
use mainstay_gocompat::values::json;
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::OnceLock;

const TABLE: &str = include_str!("go_structs.txt");

struct Field {
    go_name: &'static str,
    json_name: &'static str,
    omit_empty: bool,
    mark: u8,
    ty: &'static str,
}

fn fields(ty: &str) -> &'static [Field] {
    static TYPES: OnceLock<BTreeMap<&'static str, Vec<Field>>> = OnceLock::new();
    let types = TYPES.get_or_init(|| {
        TABLE
            .lines()
            .filter_map(|line| {
                let (ty, rest) = line.split_once(' ')?;
                Some((ty, rest.split(' ').map(field).collect()))
            })
            .collect()
    });
    types.get(ty).map_or(&[], Vec::as_slice)
}

fn field(text: &'static str) -> Field {
    if let Some(ty) = text.strip_prefix('&') {
        return Field { go_name: "", json_name: "", omit_empty: false, mark: b'&', ty };
    }
    let (names, kind) = text.split_once(':').unwrap_or((text, "?"));
    let (go_name, json_name) = names.split_once('=').unwrap_or((names, names));
    let (omit_empty, kind) = match kind.strip_prefix('-') {
        Some(kind) => (true, kind),
        None => (false, kind),
    };
    let mark = kind.bytes().next().unwrap_or(b'?');
    Field { go_name, json_name, omit_empty, mark, ty: kind.get(1..).unwrap_or_default() }
}

/// Prints a Go struct.
pub(in super::super) fn print(ty: &str, value: &Value) -> String {
    let mut out = String::new();
    object(ty, value, &mut out);
    out
}

/// Prints a pointer to a Go struct; `null` if it is absent.
pub(in super::super) fn pointer(ty: &str, value: &Value) -> String {
    if value.is_null() { "null".to_owned() } else { print(ty, value) }
}

/// Prints a list of Go structs.
pub(in super::super) fn list(ty: &str, value: &Value) -> String {
    let mut out = String::new();
    elements(ty, value, &mut out);
    out
}

fn object(ty: &str, value: &Value, out: &mut String) {
    out.push('{');
    let start = out.len();
    // The internal PodSpec has the host fields in its security context.
    let mut internal;
    let value = if ty == "PodSpec" {
        internal = value.clone();
        if let Some(context) = internal.get("securityContext").cloned()
            && let Some(mut context) = context.as_object().cloned()
        {
            for key in ["hostNetwork", "hostPID", "hostIPC", "shareProcessNamespace", "hostUsers"] {
                if let Some(value) = value.get(key) {
                    context.insert(key.to_owned(), value.clone());
                }
            }
            internal["securityContext"] = Value::Object(context);
        }
        &internal
    } else {
        value
    };
    members(ty, value, start, out);
    out.push('}');
}

fn members(ty: &str, value: &Value, start: usize, out: &mut String) {
    for field in fields(ty) {
        if field.mark == b'&' {
            // Of the embedded structs only ObjectMeta has a field of its own in the API.
            let inner = match field.ty {
                "ObjectMeta" => value.get("metadata").unwrap_or(&Value::Null),
                _ => value,
            };
            members(field.ty, inner, start, out);
            continue;
        }
        let field_value = value.get(field.json_name).unwrap_or(&Value::Null);
        if field.omit_empty && is_empty(field_value) {
            continue;
        }
        if out.len() > start {
            out.push(',');
        }
        out.push_str(&quote(field.go_name));
        out.push(':');
        match (field.mark, field_value) {
            (b'T', _) => object(field.ty, field_value, out),
            (b'*', field_value) if !field_value.is_null() => object(field.ty, field_value, out),
            (b'[', _) => elements(field.ty, field_value, out),
            (b'{', Value::Object(entries)) if !entries.is_empty() => {
                out.push('{');
                for (at, (key, entry)) in entries.iter().enumerate() {
                    if at > 0 {
                        out.push(',');
                    }
                    out.push_str(&json(&Value::from(key.as_str())));
                    out.push(':');
                    object(field.ty, entry, out);
                }
                out.push('}');
            }
            (b's', Value::Null) => out.push_str("\"\""),
            (b'n' | b'i', Value::Null) => out.push('0'),
            (b'b', Value::Null) => out.push_str("false"),
            (b'q', Value::Null) => out.push_str("\"0\""),
            (_, field_value) => out.push_str(&json(field_value)),
        }
    }
}

fn elements(ty: &str, value: &Value, out: &mut String) {
    let items = value.as_array().map_or(&[][..], Vec::as_slice);
    if items.is_empty() {
        out.push_str(if value.is_null() { "null" } else { "[]" });
        return;
    }
    for (at, item) in items.iter().enumerate() {
        out.push(if at == 0 { '[' } else { ',' });
        object(ty, item, out);
    }
    out.push(']');
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(false) => true,
        Value::String(text) => text.is_empty(),
        Value::Array(list) => list.is_empty(),
        Value::Object(map) => map.is_empty(),
        Value::Number(number) => number.as_i64() == Some(0),
        Value::Bool(true) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_table_lists_every_type_of_a_field() {
        for line in TABLE.lines() {
            let (ty, _) = line.split_once(' ').unwrap_or((line, ""));
            for field in fields(ty) {
                if matches!(field.mark, b'T' | b'*' | b'[' | b'{' | b'&') {
                    let is_listed =
                        TABLE.lines().any(|line| line.split(' ').next() == Some(field.ty));
                    assert!(is_listed, "{ty}: {} is not listed", field.ty);
                }
            }
        }
    }

    #[test]
    fn structs_are_printed_with_all_fields_in_their_order() {
        assert_eq!(
            print("DeploymentStrategy", &json!({"type": "Foo"})),
            r#"{"Type":"Foo","RollingUpdate":null}"#
        );
        assert_eq!(
            print("LabelSelector", &json!({"matchLabels": {"a": "b"}, "matchExpressions": []})),
            r#"{"matchLabels":{"a":"b"}}"#
        );
        let template = json!({"metadata": {"labels": {"a": "b"}}, "spec": {"hostNetwork": true, "securityContext": {}}});
        let printed = print("PodTemplateSpec", &template);
        assert!(printed.contains(r#""HostNetwork":true,"HostPID":false"#), "{printed}");
        assert_eq!(pointer("SeccompProfile", &Value::Null), "null");
        assert_eq!(list("Taint", &json!([])), "[]");
    }
}
