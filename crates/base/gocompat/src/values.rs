//! Values as Go prints them in messages of the API: `%v`, type names and `encoding/json`.

use crate::json::{self, Html, JsonWriter, Numbers};
use serde_json::Value;

/// A number as Go's `%v` prints a `float64`: with an exponent from a million on.
pub fn float(number: f64) -> String {
    let text = scientific(number);
    let exponent = text.split_once('e').and_then(|(_, exponent)| exponent.parse().ok());
    if (-4..6).contains(&exponent.unwrap_or(0)) { format!("{number}") } else { text }
}

/// `1e+21`, `1e-05`: at least two digits of exponent.
fn scientific(number: f64) -> String {
    let text = format!("{number:e}");
    let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let (sign, digits) = exponent.strip_prefix('-').map_or(('+', exponent), |d| ('-', d));
    format!("{mantissa}e{sign}{digits:0>2}")
}

/// A YAML number in a string field: whole numbers in full, others as Go's `%g`.
pub fn number_as_text(number: &serde_json::Number) -> String {
    if let Some(whole) = number.as_i64() {
        return whole.to_string();
    }
    let float = number.as_f64().unwrap_or_default();
    let text = format!("{float:e}");
    let Some((digits, exponent)) = text.split_once('e') else { return text };
    let exponent: i32 = exponent.parse().unwrap_or_default();
    if (-4..21).contains(&exponent) && exponent < 6 {
        return float.to_string();
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{digits}e{sign}{:02}", exponent.abs())
}

/// A JSON value as Go's `%v` prints it: texts without quotes, lists in brackets, maps as
/// `map[key:value]`.
pub fn plain(value: &Value) -> String {
    match value {
        Value::Null => "<nil>".to_owned(),
        Value::String(text) => text.clone(),
        Value::Number(number) if number.is_f64() => float(number.as_f64().unwrap_or_default()),
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(plain).collect();
            format!("[{}]", items.join(" "))
        }
        Value::Object(fields) => {
            let fields: Vec<String> =
                fields.iter().map(|(key, value)| format!("{key}:{}", plain(value))).collect();
            format!("map[{}]", fields.join(" "))
        }
        other => other.to_string(),
    }
}

/// The Go type of a decoded JSON value.
pub fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "<nil>",
        Value::Bool(_) => "bool",
        Value::Number(number) if number.is_f64() => "float64",
        Value::Number(_) => "int64",
        Value::String(_) => "string",
        Value::Array(_) => "[]interface {}",
        Value::Object(_) => "map[string]interface {}",
    }
}

/// The kind of a value in the unmarshal errors of Go's `encoding/json`.
pub const fn json_kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

/// The `reflect.Kind` of a value, as in the errors of converters between Go values.
pub fn memory_kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "interface",
        Value::Bool(_) => "bool",
        Value::Number(number) if number.is_i64() => "int64",
        Value::Number(_) => "float64",
        Value::String(_) => "string",
        Value::Array(_) => "slice",
        Value::Object(_) => "map",
    }
}

/// A value as `encoding/json` writes it: compact, keys sorted, `<`, `>` and `&` escaped, whole
/// numbers without a fraction.
pub fn json(value: &Value) -> String {
    json::value(value, Html::Escaped, Numbers::Whole)
}

/// Appends the text of [`json()`].
pub fn write_json(value: &Value, out: &mut String) {
    JsonWriter::compact(out, Html::Escaped, Numbers::Whole).value(value);
}

/// Appends a text as `encoding/json` writes it, quotes included.
pub fn write_text(text: &str, out: &mut String) {
    json::text(out, text, Html::Escaped);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::quote;
    use serde_json::json;

    #[test]
    fn texts_are_quoted_as_in_go() {
        for (text, quoted) in [
            ("a'b", "\"a'b\""),
            ("a\"\\\n\t", r#""a\"\\\n\t""#),
            ("\u{1}\u{7f}", r#""\x01\x7f""#),
            ("é\u{200b}\u{a0}", "\"é\\u200b\\u00a0\""),
            ("\u{e0001}", r#""\U000e0001""#),
        ] {
            assert_eq!(quote(text), quoted);
        }
    }

    #[test]
    fn numbers_print_as_in_go() {
        for (number, text) in [
            (1.0, "1"),
            (0.5, "0.5"),
            (100_000.0, "100000"),
            (999_999.5, "999999.5"),
            (1e6, "1e+06"),
            (-123_456_789.5, "-1.234567895e+08"),
            (1e21, "1e+21"),
            (0.000_1, "0.0001"),
            (0.000_01, "1e-05"),
            (-2.5, "-2.5"),
            (0.0, "0"),
        ] {
            assert_eq!(float(number), text);
        }
    }

    #[test]
    fn kinds_of_values_have_the_names_of_go() {
        for (value, in_json, in_memory) in [
            (json!(null), "null", "interface"),
            (json!(true), "bool", "bool"),
            (json!(1), "number", "int64"),
            (json!(u64::MAX), "number", "float64"),
            (json!(1.5), "number", "float64"),
            (json!("a"), "string", "string"),
            (json!([1]), "array", "slice"),
            (json!({}), "object", "map"),
        ] {
            assert_eq!((json_kind(&value), memory_kind(&value)), (in_json, in_memory));
        }
    }

    #[test]
    fn json_is_written_as_in_go() {
        let value = json!({"b": [1.0, 2.5, 1e21, 1e-9, null, true], "a": "<&>\u{1}"});
        let expected =
            "{\"a\":\"\\u003c\\u0026\\u003e\\u0001\",\"b\":[1,2.5,1e+21,1e-9,null,true]}";
        assert_eq!(json(&value), expected);
    }
}
