//! Target namespaces of an OperatorGroup.

use crate::fields::Namespace;
use mainstay_api::OperatorGroup;
use mainstay_object::selector::{LabelSelector, SelectorError};
use std::collections::BTreeSet;

/// Why the target namespaces are unknown.
#[derive(Debug, thiserror::Error)]
pub(crate) enum TargetError {
    /// The list names "all" among others.
    #[error("TargetNamespaces cannot contain NamespaceAll: [{}]", .0.join(" "))]
    AllInList(Vec<String>),
    /// The selector is invalid.
    #[error("reading the selector")]
    Selector(#[from] SelectorError),
}

/// The namespaces that the spec of an OperatorGroup selects, sorted; one empty text stands for all.
///
/// A list wins over a selector. Without both, or with an empty selector, all namespaces are
/// selected. Listed namespaces need not exist.
pub(crate) fn select<'a>(
    group: &OperatorGroup,
    namespaces: impl IntoIterator<Item = (&'a str, &'a Namespace)>,
) -> Result<Vec<String>, TargetError> {
    let listed = &group.spec.target_namespaces;
    if !listed.is_empty() {
        if listed.iter().any(String::is_empty) {
            return Err(TargetError::AllInList(listed.clone()));
        }
        return Ok(listed.iter().cloned().collect::<BTreeSet<_>>().into_iter().collect());
    }
    let Some(selector) = &group.spec.selector else { return Ok(vec![String::new()]) };
    let selector = LabelSelector::from_value(selector)?;
    if selector.is_everything() {
        return Ok(vec![String::new()]);
    }
    let mut matched: Vec<String> = namespaces
        .into_iter()
        .filter(|(_, namespace)| {
            selector.matches_with(|key| namespace.labels.get(key).map(String::as_str))
        })
        .map(|(name, _)| name.to_owned())
        .collect();
    matched.sort();
    Ok(matched)
}

/// The text of the annotation with the target namespaces.
pub(crate) fn annotation(namespaces: &[String]) -> String {
    let mut sorted: Vec<&str> = namespaces.iter().map(String::as_str).collect();
    sorted.sort_unstable();
    sorted.join(",")
}

/// Whether two lists name the same namespaces.
pub(crate) fn same_namespaces(a: &[String], b: &[String]) -> bool {
    a.len() == b.len() && a.iter().all(|name| b.contains(name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    #[test]
    fn a_namespace_list_wins_over_a_selector_and_neither_selects_all() {
        let labelled = |value: &str| Namespace {
            labels: [("team".to_owned(), value.to_owned())].into(),
            deleting: false,
        };
        let world = [("b", labelled("x")), ("a", labelled("x")), ("c", labelled("y"))];
        let selector = |value: &str| json!({"matchLabels": {"team": value}});
        let table: [(Value, &[&str], &[&str]); 6] = [
            (Value::Null, &[], &[""]),
            (json!({}), &[], &[""]),
            (selector("x"), &[], &["a", "b"]),
            (selector("nobody"), &[], &[]),
            (selector("x"), &["z", "c"], &["c", "z"]),
            (Value::Null, &["absent"], &["absent"]),
        ];
        for (selector, list, wanted) in table {
            let mut group = OperatorGroup::new("ns", "og");
            group.spec.selector = Some(selector).filter(|selector| !selector.is_null());
            group.spec.target_namespaces = list.iter().map(|name| (*name).to_owned()).collect();
            let found =
                select(&group, world.iter().map(|(name, namespace)| (*name, namespace))).unwrap();
            assert_eq!(found, wanted);
        }
        let mut group = OperatorGroup::new("ns", "og");
        group.spec.target_namespaces = vec!["a".into(), String::new()];
        assert_eq!(
            select(&group, []).unwrap_err().to_string(),
            "TargetNamespaces cannot contain NamespaceAll: [a ]"
        );
    }
}
