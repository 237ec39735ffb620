//! Go's formatting of values, as upstream's messages contain it.

use mainstay_gocompat::json::{Html, Numbers};
use mainstay_gocompat::values;
use serde_json::Value;
use std::fmt::Write;

/// A value as Go's JSON encoder writes it after decoding: compact, keys sorted, numbers in double
/// precision. With `html` the value comes from YAML: integers are exact, and characters with a
/// meaning in HTML are escaped.
pub(crate) fn json(value: &Value, html: bool) -> String {
    let (html, numbers) =
        if html { (Html::Escaped, Numbers::Whole) } else { (Html::Plain, Numbers::Float) };
    mainstay_gocompat::json::value(value, html, numbers)
}

/// A value as `%v` prints it, or as `%t` does, which formats only booleans.
pub(crate) fn print(value: &Value, as_bool: bool) -> String {
    let mut out = String::new();
    write_print(&mut out, value, as_bool, true);
    out
}

fn write_print(out: &mut String, value: &Value, as_bool: bool, outer: bool) {
    let mut wrong_verb = |kind: &str, text: &str| {
        let _ = if as_bool { write!(out, "%!t({kind}={text})") } else { write!(out, "{text}") };
    };
    match value {
        Value::Null if as_bool && outer => out.push_str("%!t(<nil>)"),
        Value::Null => out.push_str("<nil>"),
        Value::Bool(flag) => out.push_str(if *flag { "true" } else { "false" }),
        Value::Number(number) => {
            wrong_verb("float64", &values::float(number.as_f64().unwrap_or_default()));
        }
        Value::String(text) => wrong_verb("string", text),
        Value::Array(items) => {
            out.push('[');
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    out.push(' ');
                }
                write_print(out, item, as_bool, false);
            }
            out.push(']');
        }
        Value::Object(fields) => {
            out.push_str("map[");
            for (index, (name, item)) in fields.iter().enumerate() {
                if index > 0 {
                    out.push(' ');
                }
                write_print(out, &Value::String(name.clone()), as_bool, false);
                out.push(':');
                write_print(out, item, as_bool, false);
            }
            out.push(']');
        }
    }
}

/// A value from YAML as `%#v` prints it.
pub(crate) fn syntax(value: &Value) -> String {
    match value {
        Value::Null => "interface {}(nil)".to_owned(),
        Value::Bool(flag) => flag.to_string(),
        Value::Number(number) if number.is_f64() => {
            values::float(number.as_f64().unwrap_or_default())
        }
        Value::Number(number) => number.to_string(),
        Value::String(text) => mainstay_gocompat::quote(text),
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(syntax).collect();
            format!("[]interface {{}}{{{}}}", items.join(", "))
        }
        Value::Object(fields) => {
            let field = |(name, value): (&String, &Value)| {
                format!("{}:{}", mainstay_gocompat::quote(name), syntax(value))
            };
            let fields: Vec<String> = fields.iter().map(field).collect();
            format!("map[interface {{}}]interface {{}}{{{}}}", fields.join(", "))
        }
    }
}

/// Upstream's message for a document that is not an object, with the mark at the offset. `text` is
/// the document as JSON.
pub(crate) fn not_an_object(found: &str, text: &str) -> String {
    let at = if found == "array" { 1 } else { text.len() };
    let mut message = format!(
        "json: cannot unmarshal {found} into Go value of type map[string]interface {{}} at offset {at} (indicated by <==)\n"
    );
    let pretty = mainstay_gocompat::json::indent(text);
    match pretty.strip_prefix('[') {
        Some(rest) if found == "array" => {
            message.push_str("[ <== ");
            message.push_str(rest);
        }
        _ => {
            message.push_str(&pretty);
            message.push_str(" <==");
        }
    }
    message
}

#[cfg(test)]
mod tests {
    use super::{json, not_an_object, print, syntax};
    use serde_json::{Value, json};

    #[test]
    fn values_are_printed_as_go_prints_them() {
        let table: &[(Value, &str, &str)] = &[
            (json!(5), "%!t(float64=5)", "5"),
            (json!(1.5), "%!t(float64=1.5)", "1.5"),
            (json!(123_456), "%!t(float64=123456)", "123456"),
            (json!(1_234_567), "%!t(float64=1.234567e+06)", "1.234567e+06"),
            (json!(0.00001), "%!t(float64=1e-05)", "1e-05"),
            (json!(null), "%!t(<nil>)", "<nil>"),
            (json!(true), "true", "true"),
            (json!([null, "a"]), "[<nil> %!t(string=a)]", "[<nil> a]"),
            (json!({"a": "b"}), "map[%!t(string=a):%!t(string=b)]", "map[a:b]"),
        ];
        for (value, as_bool, plain) in table {
            assert_eq!((&*print(value, true), &*print(value, false)), (*as_bool, *plain));
        }
    }

    #[test]
    fn keys_are_printed_as_go_source() {
        let value = json!(["a", 5, 1.5, true, null, {"b": []}]);
        let text = "[]interface {}{\"a\", 5, 1.5, true, interface {}(nil), \
                    map[interface {}]interface {}{\"b\":[]interface {}{}}}";
        assert_eq!(syntax(&value), text);
    }

    #[test]
    fn numbers_in_json_are_those_of_double_precision() {
        let value = json!([12_345_678_901_234_567_890_u64, 1.0, 1e-7, 1e21, "<\u{1}"]);
        let text = ",1,1e-7,1e+21,";
        assert_eq!(json(&value, false), format!("[12345678901234567000{text}\"<\\u0001\"]"));
        assert_eq!(json(&value, true), format!("[12345678901234567890{text}\"\\u003c\\u0001\"]"));
    }

    #[test]
    fn message_for_a_document_that_is_not_an_object_marks_the_offset() {
        let list = not_an_object("array", "[{\"a\":[]}]");
        assert!(
            list.ends_with(
                "offset 1 (indicated by <==)\n[ <== \n    {\n        \"a\": []\n    }\n]"
            ),
            "{list}"
        );
        let text = not_an_object("string", "\"abc\"");
        assert!(text.ends_with("offset 5 (indicated by <==)\n\"abc\" <=="), "{text}");
    }
}
