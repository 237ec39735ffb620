//! Errors of Go's JSON decoder for single texts, for readers of content that is not in files.

use crate::{shape, syntax};
use mainstay_schema::gojson::DeclaredType;
use serde_json::Value;

/// Why a text is not one JSON value, in the words of Go's decoder; `None` if it is one.
pub fn json_fault(text: &[u8]) -> Option<String> {
    syntax::value_fault(text)
}

/// Counts the JSON values in a text, and returns the error that ends the stream early, in the words
/// of Go's decoder.
pub fn json_stream_fault(text: &[u8]) -> (usize, Option<String>) {
    let (values, fault) = syntax::json_stream(text);
    (values, fault.map(|(message, _)| message))
}

/// Why a text cannot be the value of a property of that type, in the words of Go's decoder; `None`
/// if it can. An unknown type accepts any value.
pub fn property_fault(kind: &str, text: &str) -> Option<String> {
    if let Some(fault) = json_fault(text.as_bytes()) {
        return Some(fault);
    }
    let shape = match kind {
        "olm.bundle.object" => Some(DeclaredType::Struct(&shape::BUNDLE_OBJECT)),
        kind => shape::of_property(kind),
    };
    let (shape, value) = (shape?, serde_json::from_str::<Value>(text).ok()?);
    shape::check(&value, shape).err().map(|wrong| wrong.message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn value_errors_have_the_words_of_go() {
        for (text, fault) in [
            ("{}", None),
            (" [1, \"a\"] \n", None),
            ("", Some("unexpected end of JSON input")),
            ("{\"a\":", Some("unexpected end of JSON input")),
            ("not", Some("invalid character 'o' in literal null (expecting 'u')")),
            ("{} x", Some("invalid character 'x' after top-level value")),
            ("{\"a\" 1}", Some("invalid character '1' after object key")),
        ] {
            assert_eq!(json_fault(text.as_bytes()).as_deref(), fault, "{text}");
        }
        assert_eq!(json_stream_fault(b"{}{} []"), (3, None));
        let (values, fault) = json_stream_fault(b"{}{");
        assert_eq!((values, fault.as_deref()), (1, Some("unexpected EOF")));
    }

    #[test]
    fn values_of_known_types_are_checked() {
        let struct_field = "json: cannot unmarshal number into Go struct field";
        for (kind, text, fault) in [
            ("olm.package", "{\"packageName\":\"a\",\"version\":\"1\"}", None),
            (
                "olm.package",
                "{\"version\":1}",
                Some(format!("{struct_field} Package.version of type string")),
            ),
            ("my.type", "{\"version\":1}", None),
            ("my.type", "", Some("unexpected end of JSON input".to_owned())),
            (
                "olm.bundle.object",
                "{\"data\":1}",
                Some(format!("{struct_field} BundleObject.data of type []uint8")),
            ),
        ] {
            assert_eq!(property_fault(kind, text), fault, "{kind} {text}");
        }
    }
}
