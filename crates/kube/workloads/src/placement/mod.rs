//! Placement predicates that depend on one Pod and one node only: taints, labels and names.

mod needs;

pub(crate) use needs::{Needs, Port, Term, amounts};

use crate::views::NodeView;
use serde_json::Value;
use std::collections::BTreeMap;

/// A taint of a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Taint {
    pub(crate) key: String,
    pub(crate) value: String,
    /// `NoSchedule`, `PreferNoSchedule` or `NoExecute`.
    pub(crate) effect: String,
    /// When the taint was added; only `NoExecute` taints have a time.
    pub(crate) added: Option<jiff::Timestamp>,
}

impl Taint {
    /// Reads a taint of a node.
    pub(crate) fn of(value: &Value) -> Self {
        let text = |key: &str| value.get(key).and_then(Value::as_str).unwrap_or_default();
        Self {
            key: text("key").to_owned(),
            value: text("value").to_owned(),
            effect: text("effect").to_owned(),
            added: text("timeAdded").parse().ok(),
        }
    }

    /// A taint without a value.
    pub(crate) fn new(key: &str, effect: &str) -> Self {
        Self { key: key.to_owned(), value: String::new(), effect: effect.to_owned(), added: None }
    }
}

/// The effects that keep a pod from being scheduled.
pub(crate) const REPELLING: [&str; 2] = ["NoSchedule", "NoExecute"];

/// Whether a toleration (of a pod's list) covers a taint.
pub(crate) fn tolerates(toleration: &Value, taint: &Taint) -> bool {
    let text = |field: &str| toleration.get(field).and_then(Value::as_str).unwrap_or_default();
    let exists = text("operator") == "Exists";
    (text("effect").is_empty() || text("effect") == taint.effect)
        && (text("key") == taint.key || (text("key").is_empty() && exists))
        && (exists || text("value") == taint.value)
}

/// The first taint with one of these effects that no toleration covers.
pub(crate) fn untolerated<'a>(
    taints: &'a [Taint],
    tolerations: &[Value],
    effects: &[&str],
) -> Option<&'a Taint> {
    taints.iter().find(|taint| {
        effects.contains(&taint.effect.as_str())
            && !tolerations.iter().any(|toleration| tolerates(toleration, taint))
    })
}

/// Whether a node matches `nodeSelector` and the required node affinity of a Pod's spec.
pub(crate) fn node_matches(spec: &Value, node: &NodeView) -> bool {
    let selector = spec.get("nodeSelector").and_then(Value::as_object);
    let labelled = selector
        .into_iter()
        .flatten()
        .all(|(key, value)| node.labels.get(key).map(String::as_str) == value.as_str());
    labelled
        && required_affinity(spec.get("affinity"))
            .is_none_or(|affinity| selects_node(affinity, node))
}

/// `requiredDuringSchedulingIgnoredDuringExecution` of the node affinity.
pub(crate) fn required_affinity(affinity: Option<&Value>) -> Option<&Value> {
    let required =
        affinity?.get("nodeAffinity")?.get("requiredDuringSchedulingIgnoredDuringExecution")?;
    (!required.is_null()).then_some(required)
}

/// Whether one term of a node selector matches. An empty term never does.
pub(crate) fn selects_node(selector: &Value, node: &NodeView) -> bool {
    let terms = selector.get("nodeSelectorTerms").and_then(Value::as_array);
    terms.into_iter().flatten().any(|term| term_holds(term, node))
}

/// Whether all requirements of a term match.
pub(crate) fn term_holds(term: &Value, node: &NodeView) -> bool {
    let list = |field: &str| {
        term.get(field).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
    };
    let (expressions, fields) = (list("matchExpressions"), list("matchFields"));
    if expressions.is_empty() && fields.is_empty() {
        return false;
    }
    let name = BTreeMap::from([("metadata.name".to_owned(), node.name.to_string())]);
    expressions.iter().all(|expression| expression_holds(expression, &node.labels))
        && fields.iter().all(|field| expression_holds(field, &name))
}

fn expression_holds(expression: &Value, labels: &BTreeMap<String, String>) -> bool {
    let text = |field: &str| expression.get(field).and_then(Value::as_str).unwrap_or_default();
    let present = labels.get(text("key"));
    let values = expression.get("values").and_then(Value::as_array);
    let is_one = || {
        let mut values = values.into_iter().flatten();
        present.is_some_and(|present| values.any(|value| value.as_str() == Some(present)))
    };
    let compared = || {
        let bound: i64 = values?.first()?.as_str()?.parse().ok()?;
        let present: i64 = present?.parse().ok()?;
        Some(present.cmp(&bound))
    };
    match text("operator") {
        "In" => is_one(),
        "NotIn" => !is_one(),
        "Exists" => present.is_some(),
        "DoesNotExist" => present.is_none(),
        "Gt" => compared().is_some_and(std::cmp::Ordering::is_gt),
        "Lt" => compared().is_some_and(std::cmp::Ordering::is_lt),
        _ => false,
    }
}

/// The single node that the required affinity of a spec allows by name, as for DaemonSet Pods.
pub(crate) fn single_allowed_node(affinity: Option<&Value>) -> Option<&str> {
    let terms = required_affinity(affinity)?.get("nodeSelectorTerms")?.as_array()?;
    terms.iter().find_map(|term| {
        term.get("matchFields")?.as_array()?.iter().find_map(|field| {
            let by_name = field.get("key")? == "metadata.name" && field.get("operator")? == "In";
            match field.get("values")?.as_array()?.as_slice() {
                [name] if by_name => name.as_str(),
                _ => None,
            }
        })
    })
}

/// The node names that every term of the required affinity of a spec allows; none if any name is
/// allowed.
pub(crate) fn allowed_names(affinity: Option<&Value>) -> Option<Vec<&str>> {
    let terms = required_affinity(affinity)?.get("nodeSelectorTerms")?.as_array()?;
    let mut names = Vec::new();
    for term in terms {
        let fields = term.get("matchFields").and_then(Value::as_array)?;
        let field = fields.iter().find(|field| {
            field.get("key").is_some_and(|key| key == "metadata.name")
                && field.get("operator").is_some_and(|operator| operator == "In")
        })?;
        names.extend(field.get("values")?.as_array()?.iter().filter_map(Value::as_str));
    }
    Some(names)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn node() -> NodeView {
        NodeView {
            name: "a".into(),
            labels: BTreeMap::from([
                ("disk".to_owned(), "ssd".to_owned()),
                ("size".to_owned(), "5".to_owned()),
            ]),
            ..NodeView::default()
        }
    }

    #[test]
    fn a_toleration_covers_by_key_value_and_effect() {
        let taint = Taint { value: "v".to_owned(), ..Taint::new("k", "NoSchedule") };
        for (toleration, covers) in [
            (json!({"operator": "Exists"}), true),
            (json!({"key": "k", "operator": "Exists"}), true),
            (json!({"key": "k", "value": "v"}), true),
            (json!({"key": "k", "value": "v", "effect": "NoSchedule"}), true),
            (json!({"key": "k", "value": "v", "effect": "NoExecute"}), false),
            (json!({"key": "k", "value": "w"}), false),
            (json!({"key": "other", "operator": "Exists"}), false),
        ] {
            assert_eq!(tolerates(&toleration, &taint), covers, "{toleration}");
            let found = untolerated(std::slice::from_ref(&taint), &[toleration], &REPELLING);
            assert_eq!(found.is_none(), covers);
        }
        let soft = [Taint::new("k", "PreferNoSchedule")];
        assert_eq!(untolerated(&soft, &[], &REPELLING), None);
    }

    #[test]
    fn a_node_is_selected_by_labels_and_by_name() {
        let terms = |terms: Value| {
            json!({"affinity": {"nodeAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms},
            }}})
        };
        let expression = |key: &str, operator: &str, values: Value| {
            let expression = json!({"key": key, "operator": operator, "values": values});
            terms(json!([{"matchExpressions": [expression]}]))
        };
        for (spec, wanted) in [
            (json!({}), true),
            (json!({"nodeSelector": {"disk": "ssd"}}), true),
            (json!({"nodeSelector": {"disk": "hdd"}}), false),
            (terms(json!([])), false),
            (terms(json!([{}])), false),
            (expression("disk", "In", json!(["hdd", "ssd"])), true),
            (expression("disk", "NotIn", json!(["ssd"])), false),
            (expression("none", "NotIn", json!(["ssd"])), true),
            (expression("disk", "Exists", json!(null)), true),
            (expression("disk", "DoesNotExist", json!(null)), false),
            (expression("size", "Gt", json!(["4"])), true),
            (expression("size", "Lt", json!(["4"])), false),
            (expression("disk", "Gt", json!(["4"])), false),
            (
                terms(json!([{"matchFields": [
                    {"key": "metadata.name", "operator": "In", "values": ["a"]},
                ]}])),
                true,
            ),
            (
                terms(json!([{"matchFields": [
                    {"key": "metadata.name", "operator": "In", "values": ["b"]},
                ]}])),
                false,
            ),
        ] {
            assert_eq!(node_matches(&spec, &node()), wanted, "{spec}");
        }
    }
}
