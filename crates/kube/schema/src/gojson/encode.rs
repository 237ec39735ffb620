//! Go's JSON encoder for the types of the table.
//!
//! It does not check types: a value of a wrong type is written as it is, because decoding rejects it.

use super::field_in_any_case;
use crate::builtin::{FieldDefinition, FieldType, JsonForm, OmitRule, TypeDefinition};
use mainstay_gocompat::json::{self, Html, JsonWriter, Numbers};
use serde_json::Value;

/// How keys are matched with the names of fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NameMatching {
    /// Exactly, as in Kubernetes.
    Exact,
    /// In any case if there is no exact match, as in `encoding/json`.
    AnyCase,
}

/// The value as Go's `json.Marshal` writes it for a type.
pub fn encode(definition: &TypeDefinition, value: &Value) -> String {
    let mut encoder = Encoder::new(NameMatching::Exact, Html::Escaped);
    encoder.object(definition, Some(value));
    encoder.out
}

/// A list of values of a type, as Go's `json.Marshal` writes it; `null` for none.
pub fn encode_list(definition: &TypeDefinition, value: &Value) -> String {
    let mut encoder = Encoder::new(NameMatching::Exact, Html::Escaped);
    match value {
        Value::Array(items) => {
            encoder.list(items, |encoder, item| encoder.object(definition, non_null(item)));
        }
        other => encoder.raw_value(other),
    }
    encoder.out
}

/// A struct as Go's `json.Marshal` writes it. `field` returns the value of a field by name; `names` is
/// the matching below the fields.
pub fn encode_fields<'v>(
    definition: &TypeDefinition,
    names: NameMatching,
    html: Html,
    field: impl Fn(&str) -> Option<&'v Value>,
) -> String {
    let mut encoder = Encoder::new(names, html);
    encoder.fields(definition, field);
    encoder.out
}

/// A value that is not null.
fn non_null(value: &Value) -> Option<&Value> {
    Some(value).filter(|value| !value.is_null())
}

/// Whether Go omits a field.
fn is_omitted(field: &FieldDefinition, value: Option<&Value>) -> bool {
    match field.omit {
        OmitRule::Never => false,
        OmitRule::IfEmpty if field.pointer => value.is_none(),
        OmitRule::IfEmpty => is_empty(&field.ty, value),
        OmitRule::IfZero => match value {
            None => true,
            Some(Value::String(text)) => text.is_empty(),
            Some(Value::Object(fields)) => fields.is_empty(),
            _ => false,
        },
    }
}

/// Whether `omitempty` omits a value of a type; structs are never omitted.
fn is_empty(ty: &FieldType, value: Option<&Value>) -> bool {
    let Some(value) = value else {
        let definition = ty.definition();
        return definition.is_none_or(|definition| definition.json_form() == JsonForm::Any);
    };
    match (ty, value) {
        (FieldType::String | FieldType::Bytes, Value::String(text)) => text.is_empty(),
        (FieldType::Boolean, value) => value == &Value::Bool(false),
        (FieldType::Int32 | FieldType::Int64 | FieldType::Double, value) => {
            value.as_f64() == Some(0.0)
        }
        (FieldType::List(_), Value::Array(items)) => items.is_empty(),
        (FieldType::Map(_), Value::Object(items)) => items.is_empty(),
        _ => false,
    }
}

struct Encoder {
    names: NameMatching,
    /// Escaping of strings. Values of any type always have `<`, `>` and `&` escaped.
    html: Html,
    out: String,
}

impl Encoder {
    const fn new(names: NameMatching, html: Html) -> Self {
        Self { names, html, out: String::new() }
    }

    fn text(&mut self, text: &str) {
        json::text(&mut self.out, text, self.html);
    }

    /// A value without a known type.
    fn raw_value(&mut self, value: &Value) {
        JsonWriter::compact(&mut self.out, Html::Escaped, Numbers::Object).value(value);
    }

    fn value(&mut self, ty: &FieldType, value: Option<&Value>) {
        match (ty, value) {
            (FieldType::Object(reference), value) => match reference.definition() {
                Some(definition) => self.object(definition, value),
                None => self.out.push_str("null"),
            },
            (FieldType::List(inner), Some(Value::Array(items))) => {
                self.list(items, |encoder, item| encoder.value(inner, non_null(item)));
            }
            (FieldType::Map(inner), Some(Value::Object(items))) => {
                self.out.push('{');
                for (at, (key, item)) in items.iter().enumerate() {
                    if at > 0 {
                        self.out.push(',');
                    }
                    self.text(key);
                    self.out.push(':');
                    self.value(inner, non_null(item));
                }
                self.out.push('}');
            }
            (FieldType::String, None) => self.out.push_str("\"\""),
            (FieldType::Boolean, None) => self.out.push_str("false"),
            (FieldType::Int32 | FieldType::Int64 | FieldType::Double, None) => self.out.push('0'),
            (FieldType::Bytes | FieldType::List(_) | FieldType::Map(_), None) => {
                self.out.push_str("null");
            }
            (FieldType::String | FieldType::Bytes, Some(Value::String(text))) => self.text(text),
            (_, Some(value)) => self.raw_value(value),
        }
    }

    fn list(&mut self, items: &[Value], mut write: impl FnMut(&mut Self, &Value)) {
        self.out.push('[');
        for (at, item) in items.iter().enumerate() {
            if at > 0 {
                self.out.push(',');
            }
            write(self, item);
        }
        self.out.push(']');
    }

    fn object(&mut self, definition: &TypeDefinition, value: Option<&Value>) {
        match (definition.json_form(), value) {
            (JsonForm::Object, None) => self.fields(definition, |_| None),
            (JsonForm::Object, Some(Value::Object(fields))) => match self.names {
                NameMatching::Exact => self.fields(definition, |name| fields.get(name)),
                NameMatching::AnyCase => {
                    self.fields(definition, |name| field_in_any_case(fields, name));
                }
            },
            (JsonForm::Quantity, Some(value)) => {
                let given = match value {
                    Value::String(text) => text.clone(),
                    other => other.to_string(),
                };
                let text = mainstay_quantity::canonical(&given).unwrap_or(given);
                self.text(&text);
            }
            (JsonForm::Quantity, None) => self.out.push_str("\"0\""),
            (JsonForm::IntOrString, None) => self.out.push('0'),
            (JsonForm::ParsedText, None) => self.text(definition.zero_text()),
            (_, None) => self.out.push_str("null"),
            (_, Some(value)) => self.raw_value(value),
        }
    }

    fn fields<'v>(
        &mut self,
        definition: &TypeDefinition,
        value_of: impl Fn(&str) -> Option<&'v Value>,
    ) {
        self.out.push('{');
        let mut first = true;
        for field in definition.declared_fields() {
            let value = value_of(&field.name).and_then(non_null);
            if is_omitted(field, value) {
                continue;
            }
            if !std::mem::take(&mut first) {
                self.out.push(',');
            }
            self.text(&field.name);
            self.out.push(':');
            if field.pointer && value.is_none() {
                self.out.push_str("null");
            } else {
                self.value(&field.ty, value);
            }
        }
        self.out.push('}');
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::builtin;
    use serde_json::json;

    fn definition(name: &str) -> &'static TypeDefinition {
        builtin::definition(name).unwrap()
    }

    #[test]
    fn fields_are_in_order_of_declaration_and_unknown_ones_are_dropped() {
        let rule = json!({"apiGroups": [""], "resources": ["pods"], "verbs": ["get"], "x": 1});
        assert_eq!(
            encode(definition("api.rbac.v1.PolicyRule"), &rule),
            r#"{"verbs":["get"],"apiGroups":[""],"resources":["pods"]}"#
        );
    }

    #[test]
    fn structs_are_never_empty_and_lists_without_omitempty_are_null() {
        assert_eq!(
            encode(definition("api.apps.v1.DeploymentSpec"), &json!({})),
            r#"{"selector":null,"template":{"metadata":{},"spec":{"containers":null}},"strategy":{}}"#
        );
        let rule = definition("api.rbac.v1.PolicyRule");
        assert_eq!(encode(rule, &json!({})), r#"{"verbs":null}"#);
        assert_eq!(encode_list(rule, &json!([{}])), r#"[{"verbs":null}]"#);
        assert_eq!(encode_list(rule, &Value::Null), "null");
        let port = definition("api.core.v1.ServicePort");
        assert_eq!(encode(port, &json!({"port": 1})), r#"{"port":1,"targetPort":0}"#);
    }

    #[test]
    fn an_empty_version_is_written_and_an_empty_release_is_omitted() {
        let csv = "operator-framework.api.pkg.operators.v1alpha1.ClusterServiceVersionSpec";
        let text = encode(definition(csv), &json!({}));
        assert!(text.contains(r#""version":"0.0.0","#), "{text}");
        assert!(!text.contains("release"), "{text}");
    }

    #[test]
    fn quantities_become_canonical_and_html_is_escaped() {
        let spec = json!({"template": {"spec": {"containers": [{
            "name": "a<b", "resources": {"limits": {"cpu": "1000m", "memory": "1024Mi"}},
        }]}}});
        let text = encode(definition("api.apps.v1.DeploymentSpec"), &spec);
        assert!(text.contains(r#""limits":{"cpu":"1","memory":"1Gi"}"#), "{text}");
        assert!(text.contains(r#""a\u003cb""#), "{text}");
    }
}
