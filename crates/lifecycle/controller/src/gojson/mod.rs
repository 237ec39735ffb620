//! JSON as the original's Go types write it.
//!
//! The names of generated roles, the hash labels on Deployments and roles, and the manifests inside
//! `InstallPlans` are made from the JSON of Go structs: fields in the order of their declaration,
//! empty fields left out or written as the struct tags say, fields that the type does not know
//! dropped, quantities in canonical form. Clusters that were managed by the original carry these
//! names, so they have to come out the same.
//!
//! `shapes.txt` is that knowledge as data: one block for each struct (name, then its fields in
//! order as `name` + `?` for omitempty and `~` for omitzero, and a type: `s`tring, `b`ool,
//! `n`umber, `*`pointer, `[`list, `{`map or the name of another struct). It was made by reflection
//! over `k8s.io/api` 0.36 and `operator-framework/api` 0.45 and changes when those do.
//!
//! Data flow: JSON value + shape ─► text in Go's order ─► hash, or parsed again: a value as the
//! original's server would have stored it.
//!
//! What this does not do: refuse values of a wrong type. They are written as they are; validation
//! is the API server's work.

use mainstay_gocompat::values::{write_json, write_text};
use serde_json::Value;
use std::collections::HashMap;
use std::sync::OnceLock;

/// A Go type whose JSON form is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// `operators.v1alpha1.ClusterServiceVersion`.
    ClusterServiceVersion,
    /// `apps.v1.DeploymentSpec`.
    DeploymentSpec,
    /// `core.v1.PodSpec`.
    PodSpec,
    /// `core.v1.ServiceSpec`.
    ServiceSpec,
    /// `core.v1.ServiceAccount`.
    ServiceAccount,
    /// `rbac.v1.Role`, which is also the form of `ClusterRole` without an aggregation rule.
    Role,
    /// `rbac.v1.RoleBinding`, which is also the form of `ClusterRoleBinding`.
    RoleBinding,
    /// `rbac.v1.PolicyRule`.
    PolicyRule,
    /// A list of `rbac.v1.PolicyRule`.
    PolicyRules,
    /// `rbac.v1.RoleRef`.
    RoleRef,
    /// A list of `rbac.v1.Subject`.
    Subjects,
    /// One entry of a strategy's permissions.
    Permission,
    /// `operators.v1alpha1.WebhookDescription`.
    WebhookDescription,
}

impl Shape {
    fn of(self, table: &Table) -> &Type {
        let at = match self {
            Self::ClusterServiceVersion => 0,
            Self::DeploymentSpec => 1,
            Self::ServiceAccount => 2,
            Self::Role => 3,
            Self::RoleBinding => 4,
            Self::PolicyRule => 5,
            Self::PolicyRules => 6,
            Self::RoleRef => 7,
            Self::Subjects => 8,
            Self::Permission => 9,
            Self::PodSpec => 10,
            Self::ServiceSpec => 11,
            Self::WebhookDescription => 12,
        };
        &table.roots[at]
    }
}

/// In the order that [`Shape::of`] counts in.
const ROOTS: [&str; 13] = [
    "operators.v1alpha1.ClusterServiceVersion",
    "apps.v1.DeploymentSpec",
    "core.v1.ServiceAccount",
    "rbac.v1.Role",
    "rbac.v1.RoleBinding",
    "rbac.v1.PolicyRule",
    "[rbac.v1.PolicyRule",
    "rbac.v1.RoleRef",
    "[rbac.v1.Subject",
    "operators.v1alpha1.StrategyDeploymentPermissions",
    "core.v1.PodSpec",
    "core.v1.ServiceSpec",
    "operators.v1alpha1.WebhookDescription",
];

#[derive(Debug)]
enum Type {
    Text,
    Bool,
    Number,
    Quantity,
    Time,
    /// A semantic version that is a struct in Go: never omitted, `0.0.0` when unset.
    Version,
    Any,
    Pointer(Box<Self>),
    List(Box<Self>),
    Map(Box<Self>),
    Struct(usize),
}

#[derive(Debug)]
struct Field {
    name: &'static str,
    omit_empty: bool,
    omit_zero: bool,
    kind: Type,
}

struct Table {
    structs: Vec<Vec<Field>>,
    roots: Vec<Type>,
}

fn table() -> &'static Table {
    static TABLE: OnceLock<Table> = OnceLock::new();
    TABLE.get_or_init(|| Table::parse(include_str!("shapes.txt")))
}

impl Table {
    fn parse(text: &'static str) -> Self {
        let names: HashMap<&str, usize> = text
            .lines()
            .filter(|line| !line.starts_with(' '))
            .enumerate()
            .map(|(at, name)| (name, at))
            .collect();
        let mut structs: Vec<Vec<Field>> = Vec::with_capacity(names.len());
        for line in text.lines() {
            let Some(field) = line.strip_prefix(' ') else {
                structs.push(Vec::new());
                continue;
            };
            let (name, kind) = field.split_once(' ').unwrap_or((field, "any"));
            let bare = name.trim_end_matches(['?', '~']);
            let marks = &name[bare.len()..];
            if let Some(fields) = structs.last_mut() {
                fields.push(Field {
                    name: bare,
                    omit_empty: marks.contains('?'),
                    omit_zero: marks.contains('~'),
                    kind: Type::parse(kind, &names),
                });
            }
        }
        Self { structs, roots: ROOTS.iter().map(|root| Type::parse(root, &names)).collect() }
    }
}

impl Type {
    fn parse(text: &str, names: &HashMap<&str, usize>) -> Self {
        if let Some(inner) = text.strip_prefix('*') {
            return Self::Pointer(Box::new(Self::parse(inner, names)));
        }
        if let Some(inner) = text.strip_prefix('[') {
            return Self::List(Box::new(Self::parse(inner, names)));
        }
        if let Some(inner) = text.strip_prefix('{') {
            return Self::Map(Box::new(Self::parse(inner, names)));
        }
        match text {
            // Bytes are base64 text on the wire; a release is text and is left out when unset.
            "s" | "bytes" | "release" => Self::Text,
            "b" => Self::Bool,
            "n" => Self::Number,
            "quantity" => Self::Quantity,
            "time" => Self::Time,
            "version" => Self::Version,
            name => names.get(name).map_or(Self::Any, |at| Self::Struct(*at)),
        }
    }

    /// Whether Go would leave the value out under `omitempty`.
    fn is_empty(&self, value: Option<&Value>) -> bool {
        match (self, value) {
            (Self::Struct(_) | Self::Version, _) => false,
            (_, None | Some(Value::Null)) => !matches!(self, Self::Time),
            (Self::Text, Some(Value::String(text))) => text.is_empty(),
            (Self::Bool, Some(value)) => value == &Value::Bool(false),
            (Self::Number, Some(value)) => value.as_f64() == Some(0.0),
            (Self::List(_), Some(Value::Array(items))) => items.is_empty(),
            (Self::Map(_), Some(Value::Object(items))) => items.is_empty(),
            _ => false,
        }
    }
}

impl Field {
    fn left_out(&self, value: Option<&Value>) -> bool {
        (self.omit_empty && self.kind.is_empty(value))
            || (self.omit_zero
                && match value {
                    None | Some(Value::Null) => true,
                    Some(Value::String(text)) => text.is_empty(),
                    Some(Value::Object(fields)) => fields.is_empty(),
                    _ => false,
                })
    }
}

/// The value as Go's `json.Marshal` writes it for this type.
pub fn encode(shape: Shape, value: &Value) -> String {
    let table = table();
    let mut out = String::new();
    write(table, shape.of(table), Some(value), &mut out);
    out
}

/// The value after a round trip through the Go type: unknown fields gone, empty ones as Go writes
/// them, quantities canonical.
pub fn normalize(shape: Shape, value: &Value) -> Value {
    serde_json::from_str(&encode(shape, value)).unwrap_or_else(|_| value.clone())
}

fn write(table: &Table, kind: &Type, value: Option<&Value>, out: &mut String) {
    let value = match value {
        Some(Value::Null) | None => None,
        Some(value) => Some(value),
    };
    match (kind, value) {
        (Type::Pointer(inner), Some(value)) => write(table, inner, Some(value), out),
        (Type::List(inner), Some(Value::Array(items))) => {
            out.push('[');
            for (at, item) in items.iter().enumerate() {
                if at > 0 {
                    out.push(',');
                }
                write(table, inner, Some(item), out);
            }
            out.push(']');
        }
        (Type::Map(inner), Some(Value::Object(items))) => {
            out.push('{');
            for (at, (key, item)) in items.iter().enumerate() {
                if at > 0 {
                    out.push(',');
                }
                write_text(key, out);
                out.push(':');
                write(table, inner, Some(item), out);
            }
            out.push('}');
        }
        (Type::Struct(at), None | Some(Value::Object(_))) => {
            out.push('{');
            let mut first = true;
            for field in &table.structs[*at] {
                let inner = value.and_then(|value| value.get(field.name));
                if field.left_out(inner) {
                    continue;
                }
                if !std::mem::take(&mut first) {
                    out.push(',');
                }
                write_text(field.name, out);
                out.push(':');
                write(table, &field.kind, inner, out);
            }
            out.push('}');
        }
        (Type::Quantity, Some(value)) => {
            let given = match value {
                Value::String(text) => text.clone(),
                other => other.to_string(),
            };
            write_text(&mainstay_quantity::canonical(&given).unwrap_or(given), out);
        }
        (Type::Quantity, None) => out.push_str("\"0\""),
        (Type::Text, None) => out.push_str("\"\""),
        (Type::Bool, None) => out.push_str("false"),
        (Type::Number, None) => out.push('0'),
        (Type::Version, None) => out.push_str("\"0.0.0\""),
        (_, None) => out.push_str("null"),
        (_, Some(value)) => write_json(value, out),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn every_type_that_a_field_names_is_in_the_table() {
        let text = include_str!("shapes.txt");
        let known: Vec<&str> = text.lines().filter(|line| !line.starts_with(' ')).collect();
        for line in text.lines().filter(|line| line.starts_with(' ')) {
            let kind = line.trim().split_once(' ').unwrap().1.trim_start_matches(['*', '[', '{']);
            assert!(!kind.contains('.') || known.contains(&kind), "{kind} is missing");
        }
        for root in ROOTS {
            assert!(known.contains(&root.trim_start_matches('[')), "{root} is missing");
        }
    }

    #[test]
    fn fields_come_in_the_order_of_their_declaration_and_unknown_ones_go() {
        let rule = json!({"apiGroups": [""], "resources": ["pods"], "verbs": ["get"], "x": 1});
        assert_eq!(
            encode(Shape::PolicyRule, &rule),
            r#"{"verbs":["get"],"apiGroups":[""],"resources":["pods"]}"#
        );
    }

    #[test]
    fn structs_are_never_empty_and_lists_without_omitempty_are_null() {
        assert_eq!(
            encode(Shape::DeploymentSpec, &json!({})),
            r#"{"selector":null,"template":{"metadata":{},"spec":{"containers":null}},"strategy":{}}"#
        );
        assert_eq!(encode(Shape::PolicyRule, &json!({})), r#"{"verbs":null}"#);
    }

    #[test]
    fn quantities_become_canonical_and_html_is_escaped() {
        let spec = json!({"template": {"spec": {"containers": [{
            "name": "a<b", "resources": {"limits": {"cpu": "1000m", "memory": "1024Mi"}},
        }]}}});
        let text = encode(Shape::DeploymentSpec, &spec);
        assert!(text.contains(r#""limits":{"cpu":"1","memory":"1Gi"}"#), "{text}");
        assert!(text.contains(r#""a\u003cb""#), "{text}");
    }
}
