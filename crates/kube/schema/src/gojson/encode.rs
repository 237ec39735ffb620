//! JSON as Go writes the types of the table.
//!
//! What this does not do: refuse values of a wrong type. They are written as they are; decoding is
//! what refuses them.

use super::field_in_any_case;
use crate::builtin::{Definition, Field, Shape, Type, Written};
use mainstay_gocompat::json::{self, Html, JsonWriter, Numbers};
use serde_json::Value;

/// How the names of fields are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Names {
    /// Letter by letter, as Kubernetes does.
    Exact,
    /// In any case where there is no exact name, as `encoding/json` does.
    AnyCase,
}

/// The value as Go's `json.Marshal` writes it for a type.
pub fn encode(definition: &Definition, value: &Value) -> String {
    let mut encoder = Encoder::new(Names::Exact, Html::Escaped);
    encoder.object(definition, Some(value));
    encoder.out
}

/// A list of values of a type, as Go's `json.Marshal` writes it; `null` where there is none.
pub fn encode_list(definition: &Definition, value: &Value) -> String {
    let mut encoder = Encoder::new(Names::Exact, Html::Escaped);
    match value {
        Value::Array(items) => {
            encoder.list(items, |encoder, item| encoder.object(definition, some(item)));
        }
        other => encoder.plain(other),
    }
    encoder.out
}

/// A struct as Go's `json.Marshal` writes it, whose fields come from somewhere else each: `field`
/// finds the value of one by its name. Below them `names` says how names are compared.
pub fn encode_fields<'v>(
    definition: &Definition,
    names: Names,
    html: Html,
    field: impl Fn(&str) -> Option<&'v Value>,
) -> String {
    let mut encoder = Encoder::new(names, html);
    encoder.fields(definition, field);
    encoder.out
}

/// A value that is set.
fn some(value: &Value) -> Option<&Value> {
    Some(value).filter(|value| !value.is_null())
}

/// Whether Go leaves a field out.
fn is_left_out(field: &Field, value: Option<&Value>) -> bool {
    match field.written {
        Written::Always => false,
        Written::UnlessEmpty if field.pointer => value.is_none(),
        Written::UnlessEmpty => is_empty(&field.ty, value),
        Written::UnlessZero => match value {
            None => true,
            Some(Value::String(text)) => text.is_empty(),
            Some(Value::Object(fields)) => fields.is_empty(),
            _ => false,
        },
    }
}

/// Whether a value of a type is what `omitempty` leaves out; structs never are.
fn is_empty(ty: &Type, value: Option<&Value>) -> bool {
    let Some(value) = value else {
        let definition = ty.definition();
        return definition.is_none_or(|definition| definition.shape() == Shape::Any);
    };
    match (ty, value) {
        (Type::String | Type::Bytes, Value::String(text)) => text.is_empty(),
        (Type::Boolean, value) => value == &Value::Bool(false),
        (Type::Int32 | Type::Int64 | Type::Double, value) => value.as_f64() == Some(0.0),
        (Type::List(_), Value::Array(items)) => items.is_empty(),
        (Type::Map(_), Value::Object(items)) => items.is_empty(),
        _ => false,
    }
}

struct Encoder {
    names: Names,
    /// How texts are written. Values of any type always have `<`, `>` and `&` escaped.
    html: Html,
    out: String,
}

impl Encoder {
    const fn new(names: Names, html: Html) -> Self {
        Self { names, html, out: String::new() }
    }

    fn text(&mut self, text: &str) {
        json::text(&mut self.out, text, self.html);
    }

    /// A value that has the form that it is written in.
    fn plain(&mut self, value: &Value) {
        JsonWriter::compact(&mut self.out, Html::Escaped, Numbers::Object).value(value);
    }

    fn value(&mut self, ty: &Type, value: Option<&Value>) {
        match (ty, value) {
            (Type::Object(reference), value) => match reference.definition() {
                Some(definition) => self.object(definition, value),
                None => self.out.push_str("null"),
            },
            (Type::List(inner), Some(Value::Array(items))) => {
                self.list(items, |encoder, item| encoder.value(inner, some(item)));
            }
            (Type::Map(inner), Some(Value::Object(items))) => {
                self.out.push('{');
                for (at, (key, item)) in items.iter().enumerate() {
                    if at > 0 {
                        self.out.push(',');
                    }
                    self.text(key);
                    self.out.push(':');
                    self.value(inner, some(item));
                }
                self.out.push('}');
            }
            (Type::String, None) => self.out.push_str("\"\""),
            (Type::Boolean, None) => self.out.push_str("false"),
            (Type::Int32 | Type::Int64 | Type::Double, None) => self.out.push('0'),
            (Type::Bytes | Type::List(_) | Type::Map(_), None) => self.out.push_str("null"),
            (Type::String | Type::Bytes, Some(Value::String(text))) => self.text(text),
            (_, Some(value)) => self.plain(value),
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

    fn object(&mut self, definition: &Definition, value: Option<&Value>) {
        match (definition.shape(), value) {
            (Shape::Object, None) => self.fields(definition, |_| None),
            (Shape::Object, Some(Value::Object(fields))) => match self.names {
                Names::Exact => self.fields(definition, |name| fields.get(name)),
                Names::AnyCase => self.fields(definition, |name| field_in_any_case(fields, name)),
            },
            (Shape::Quantity, Some(value)) => {
                let given = match value {
                    Value::String(text) => text.clone(),
                    other => other.to_string(),
                };
                let text = mainstay_quantity::canonical(&given).unwrap_or(given);
                self.text(&text);
            }
            (Shape::Quantity, None) => self.out.push_str("\"0\""),
            (Shape::IntOrString, None) => self.out.push('0'),
            (Shape::ParsedText, None) => self.text(definition.text_of_none()),
            (_, None) => self.out.push_str("null"),
            (_, Some(value)) => self.plain(value),
        }
    }

    fn fields<'v>(
        &mut self,
        definition: &Definition,
        value_of: impl Fn(&str) -> Option<&'v Value>,
    ) {
        self.out.push('{');
        let mut first = true;
        for field in definition.declared_fields() {
            let value = value_of(&field.name).and_then(some);
            if is_left_out(field, value) {
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

    fn definition(name: &str) -> &'static Definition {
        builtin::definition(name).unwrap()
    }

    #[test]
    fn fields_come_in_the_order_of_their_declaration_and_unknown_ones_go() {
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
    fn versions_are_never_left_out_and_releases_are_when_there_is_none() {
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
