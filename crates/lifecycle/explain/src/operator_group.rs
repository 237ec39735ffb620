//! OperatorGroups: a namespace must have exactly one, which selects the namespaces that its operators
//! watch.

use crate::{ClusterObjects, command};
use mainstay_cause::Cause;
use mainstay_object::Object;
use serde_json::{Value, json};

/// Why the OperatorGroups of a namespace block its operators.
pub(crate) fn causes(cluster: &ClusterObjects, namespace: &str) -> Vec<Cause> {
    if cluster.hides("OperatorGroup", namespace) {
        return Vec::new();
    }
    let mut groups: Vec<&Object> = cluster.in_namespace("OperatorGroup", namespace).collect();
    groups.sort_by_key(|group| group.name());
    match groups.as_slice() {
        [] => vec![no_group(cluster, namespace)],
        [one] => group_causes(one),
        groups => vec![several_groups(namespace, groups)],
    }
}

fn no_group(cluster: &ClusterObjects, namespace: &str) -> Cause {
    let group = json!({
        "apiVersion": "operators.coreos.com/v1", "kind": "OperatorGroup",
        "metadata": {"name": namespace, "namespace": namespace},
        "spec": {"targetNamespaces": [namespace]},
    });
    let cause = Cause::new(format!(
        "namespace {namespace} has no OperatorGroup, which selects the namespaces that its operators watch"
    ))
    .remedy(format!("create one that selects namespace {namespace} only: {}", command::apply(&group)));
    // Most users want an OperatorGroup for all namespaces.
    let global = cluster.of_kind("OperatorGroup").find(|group| {
        group.array(&["status", "namespaces"]) == [Value::from("")]
            && cluster.in_namespace("OperatorGroup", group.namespace()).count() == 1
    });
    match global {
        Some(group) => cause.remedy(format!(
            "subscribe in namespace {} instead: operators there watch all namespaces",
            group.namespace()
        )),
        None => cause,
    }
}

fn several_groups(namespace: &str, groups: &[&Object]) -> Cause {
    let names: Vec<&str> = groups.iter().map(|group| group.name()).collect();
    let cause = Cause::new(format!(
        "namespace {namespace} has {} OperatorGroups ({}), and must have exactly one",
        names.len(),
        names.join(", ")
    ));
    // Operators were installed under the oldest OperatorGroup.
    let oldest = groups.iter().min_by_key(|group| (group.creation_timestamp(), group.name()));
    let keep = oldest.map_or("", |group| group.name());
    let others: Vec<&str> = names.into_iter().filter(|name| *name != keep).collect();
    cause.remedy(format!(
        "keep {keep}, the oldest: {}",
        command::delete("operatorgroup", namespace, &others.join(" "))
    ))
}

fn group_causes(group: &Object) -> Vec<Cause> {
    let (namespace, name) = (group.namespace(), group.name());
    let mut causes = Vec::new();
    let account = group.str(&["spec", "serviceAccountName"]).unwrap_or_default();
    if !account.is_empty() && group.str(&["status", "serviceAccountRef", "name"]) != Some(account) {
        let patch = json!({"spec": {"serviceAccountName": null}});
        causes.push(
            Cause::new(format!(
                "OperatorGroup {namespace}/{name} requires ServiceAccount {account} for installations, which does not exist"
            ))
            .remedy(format!("create it: kubectl -n {namespace} create serviceaccount {account}, and grant it the permissions of the installation"))
            .remedy(format!(
                "install with the permissions of the lifecycle manager: {}",
                command::patch("operatorgroup", namespace, name, &patch)
            )),
        );
    } else if group.array(&["status", "namespaces"]).is_empty()
        && group.get(&["status", "lastUpdated"]).is_some()
    {
        let cause = Cause::new(format!("OperatorGroup {namespace}/{name} selects no namespace"));
        causes.push(match selector_labels(group) {
            Some(selector_labels) => cause.remedy(format!(
                "label the namespaces to select: kubectl label namespace NAME {selector_labels}"
            )),
            None => cause.remedy(format!(
                "name existing namespaces: {}",
                command::patch(
                    "operatorgroup",
                    namespace,
                    name,
                    &json!({"spec": {"targetNamespaces": [namespace]}})
                )
            )),
        });
    }
    causes
}

/// The labels in the selector of an OperatorGroup, as arguments of `kubectl label`.
fn selector_labels(group: &Object) -> Option<String> {
    let labels = group.get(&["spec", "selector", "matchLabels"])?.as_object()?;
    let words: Vec<String> = labels
        .iter()
        .map(|(key, value)| format!("{key}={}", value.as_str().unwrap_or_default()))
        .collect();
    (!words.is_empty()).then(|| words.join(" "))
}
