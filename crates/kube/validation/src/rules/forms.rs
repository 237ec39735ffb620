//! Values as messages of the original print them: its own structs, not what clients send.
//!
//! A message about a whole struct shows the original's internal form in JSON: fields under their Go
//! names, in the order of the struct, nothing left out. `forms.txt` lists the fields of those types
//! that messages can show. A line is a type, then its fields: the name that is printed, the name in
//! the API if it differs, and what it holds.
//!
//! | Mark | Holds | If absent |
//! |---|---|---|
//! | `s` `n` `b` | text, number, boolean | `""`, `0`, `false` |
//! | `i` `q` | number or text, amount | `0`, `"0"` |
//! | `?` `t` | anything as it is, a time | `null` |
//! | `TX` `*X` | a struct, a pointer to one | its fields, `null` |
//! | `[X` `{X` | a list or a map of structs | `null` |
//! | `&X` | the fields of another struct in this place | |
//!
//! A `-` before the mark says that the field is left out when it is empty. The table is read when
//! the first such message is made.

use mainstay_gocompat::quote;
use mainstay_gocompat::values::json;
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::OnceLock;

const TABLE: &str = include_str!("forms.txt");

struct Field {
    shown: &'static str,
    name: &'static str,
    omitted: bool,
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
        return Field { shown: "", name: "", omitted: false, mark: b'&', ty };
    }
    let (names, kind) = text.split_once(':').unwrap_or((text, "?"));
    let (shown, name) = names.split_once('=').unwrap_or((names, names));
    let (omitted, kind) = match kind.strip_prefix('-') {
        Some(kind) => (true, kind),
        None => (false, kind),
    };
    let mark = kind.bytes().next().unwrap_or(b'?');
    Field { shown, name, omitted, mark, ty: kind.get(1..).unwrap_or_default() }
}

/// A struct of the original.
pub(in super::super) fn print(ty: &str, value: &Value) -> String {
    let mut out = String::new();
    object(ty, value, &mut out);
    out
}

/// A pointer to a struct of the original: null if there is none.
pub(in super::super) fn pointer(ty: &str, value: &Value) -> String {
    if value.is_null() { "null".to_owned() } else { print(ty, value) }
}

/// A list of structs of the original.
pub(in super::super) fn list(ty: &str, value: &Value) -> String {
    let mut out = String::new();
    elements(ty, value, &mut out);
    out
}

fn object(ty: &str, value: &Value, out: &mut String) {
    out.push('{');
    let start = out.len();
    // The original keeps what concerns the host apart from the API's pod.
    let mut moved;
    let value = if ty == "PodSpec" {
        moved = value.clone();
        if let Some(context) = moved.get("securityContext").cloned()
            && let Some(mut context) = context.as_object().cloned()
        {
            for key in ["hostNetwork", "hostPID", "hostIPC", "shareProcessNamespace", "hostUsers"] {
                if let Some(value) = value.get(key) {
                    context.insert(key.to_owned(), value.clone());
                }
            }
            moved["securityContext"] = Value::Object(context);
        }
        &moved
    } else {
        value
    };
    members(ty, value, start, out);
    out.push('}');
}

fn members(ty: &str, value: &Value, start: usize, out: &mut String) {
    for field in fields(ty) {
        if field.mark == b'&' {
            // Metadata is the one that has a name of its own in the API.
            let inner = match field.ty {
                "ObjectMeta" => value.get("metadata").unwrap_or(&Value::Null),
                _ => value,
            };
            members(field.ty, inner, start, out);
            continue;
        }
        let held = value.get(field.name).unwrap_or(&Value::Null);
        if field.omitted && is_empty(held) {
            continue;
        }
        if out.len() > start {
            out.push(',');
        }
        out.push_str(&quote(field.shown));
        out.push(':');
        match (field.mark, held) {
            (b'T', _) => object(field.ty, held, out),
            (b'*', held) if !held.is_null() => object(field.ty, held, out),
            (b'[', _) => elements(field.ty, held, out),
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
            (_, held) => out.push_str(&json(held)),
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
    fn every_type_that_a_field_names_is_listed() {
        for line in TABLE.lines() {
            let (ty, _) = line.split_once(' ').unwrap_or((line, ""));
            for field in fields(ty) {
                if matches!(field.mark, b'T' | b'*' | b'[' | b'{' | b'&') {
                    let known = TABLE.lines().any(|line| line.split(' ').next() == Some(field.ty));
                    assert!(known, "{ty}: {}", field.ty);
                }
            }
        }
    }

    #[test]
    fn structs_are_printed_whole_and_in_their_order() {
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
