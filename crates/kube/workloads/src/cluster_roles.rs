//! ClusterRole aggregation: the controller that fills in aggregated ClusterRoles.
//!
//! A `ClusterRole` with an `aggregationRule` gets the rules of all ClusterRoles that its selectors
//! match, in order of selectors and names, each rule once. The rules are applied as
//! `clusterrole-aggregation-controller`, which owns them then.

use crate::Started;
use crate::common::Context;
use mainstay_client::{Action, Cache, Controller, Error, Reconciler, Selection};
use mainstay_object::selector::LabelSelector;
use mainstay_object::{Object, builtin};
use serde_json::Value;
use std::collections::{BTreeMap, HashSet};

const MANAGER: &str = "clusterrole-aggregation-controller";
/// The only key of the queue.
const ALL: &str = "all";

/// The fields of a ClusterRole that aggregation reads.
#[derive(Debug, PartialEq)]
struct View {
    uid: String,
    labels: BTreeMap<String, String>,
    rules: Vec<Value>,
    /// None if the ClusterRole is not aggregated.
    selectors: Option<Vec<LabelSelector>>,
}

impl View {
    fn of(object: &Object) -> Self {
        let labels = object.get(&["metadata", "labels"]).and_then(Value::as_object);
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let gathers = object.get(&["aggregationRule"]).is_some_and(Value::is_object);
        Self {
            uid: object.uid().to_owned(),
            labels: labels
                .into_iter()
                .flatten()
                .map(|(key, value)| (key.clone(), text(value)))
                .collect(),
            rules: object.array(&["rules"]).iter().map(without_empty_lists).collect(),
            selectors: gathers.then(|| {
                let selectors = object.array(&["aggregationRule", "clusterRoleSelectors"]);
                // The API refused unreadable selectors when the ClusterRole was written.
                selectors
                    .iter()
                    .filter_map(|selector_value| LabelSelector::from_value(selector_value).ok())
                    .collect()
            }),
        }
    }
}

/// A rule without its empty lists, which mean the same as absent ones.
fn without_empty_lists(rule: &Value) -> Value {
    let mut rule = rule.clone();
    if let Value::Object(fields) = &mut rule {
        fields.retain(|_, value| value.as_array().is_some_and(|list| !list.is_empty()));
    }
    rule
}

/// Starts the controller.
pub(crate) fn start(context: &Context, started: &mut Started) {
    let controller = Controller::new("cluster-roles");
    let queue = controller.queue();
    // Only the selectors know which ClusterRoles depend on which, so each change reconciles all
    // aggregated ClusterRoles.
    let roles = Cache::builder(Selection::all(builtin::CLUSTER_ROLE), |role| Some(View::of(role)))
        .subscribe(move |_| queue.add(ALL))
        .start(&context.cluster, context.stop.clone());
    let controller = controller.reads(&roles);
    let reconciler = Reconcile { context: context.clone(), roles };
    started.controller(controller.start(reconciler, context.stop.clone()));
}

struct Reconcile {
    context: Context,
    roles: Cache<View>,
}

impl Reconciler for Reconcile {
    type Key = &'static str;
    type Error = Error;

    async fn reconcile(&self, _: &&'static str) -> Result<Action, Error> {
        let roles = self.roles.list(None);
        let all: Vec<(&str, &View)> =
            roles.iter().map(|(key, view)| (key.name.as_ref(), &**view)).collect();
        for (name, uid, rules) in decide(&all) {
            let mut object = Object::new(&builtin::CLUSTER_ROLE.gvk(), name);
            // A ClusterRole that was deleted meanwhile must not come back with the rules it had.
            object.set(&["metadata", "uid"], uid.into());
            if !rules.is_empty() {
                object.set(&["rules"], rules.into());
            }
            match self.context.cluster.apply(&builtin::CLUSTER_ROLE, &object, MANAGER).await {
                Ok(_) => {}
                // The ClusterRole changed or was deleted meanwhile: that event brings the key back.
                Err(error) if error.is_not_found() || error.is_conflict() => {}
                Err(error) => return Err(error),
            }
        }
        Ok(Action::Done)
    }
}

/// The ClusterRoles whose rules are out of date (name, uid), with their new rules. Roles are in
/// order of names.
fn decide<'a>(roles: &[(&'a str, &'a View)]) -> Vec<(&'a str, &'a str, Vec<Value>)> {
    let mut changed = Vec::new();
    for (name, role) in roles {
        let Some(selectors) = &role.selectors else { continue };
        let rules = aggregated_rules(name, selectors, roles);
        if rules != role.rules {
            changed.push((*name, role.uid.as_str(), rules));
        }
    }
    changed
}

fn aggregated_rules(
    name: &str,
    selectors: &[LabelSelector],
    roles: &[(&str, &View)],
) -> Vec<Value> {
    let mut added = HashSet::new();
    let mut rules = Vec::new();
    for selector in selectors {
        let selected = roles.iter().filter(|(other, view)| {
            *other != name && selector.matches_with(|key| view.labels.get(key).map(String::as_str))
        });
        for rule in selected.flat_map(|(_, view)| &view.rules) {
            // Keys of JSON objects are sorted here, so equal rules have equal texts.
            if added.insert(rule.to_string()) {
                rules.push(rule.clone());
            }
        }
    }
    rules
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn role(value: Value) -> View {
        View::of(&Object::from_value(value).unwrap())
    }

    fn rule(verb: &str) -> Value {
        json!({"apiGroups": [""], "resources": ["pods"], "verbs": [verb]})
    }

    #[test]
    fn aggregated_rules_follow_selectors_then_names_each_once_and_never_their_own_role() {
        let labelled = |label: &str, rules: Value| {
            role(json!({"metadata": {"labels": {label: "yes", "all": ""}}, "rules": rules}))
        };
        let select = |label: &str| json!({"matchLabels": {label: "yes"}});
        let sum = role(json!({
            "metadata": {"labels": {"x": "yes"}, "uid": "4711"},
            "aggregationRule": {"clusterRoleSelectors": [select("y"), select("x")]},
            "rules": [rule("delete")],
        }));
        let done = role(json!({
            "aggregationRule": {"clusterRoleSelectors": [select("y")]},
            "rules": [rule("get")],
        }));
        let empty_lists = json!({
            "apiGroups": [""], "resources": ["pods"], "verbs": ["list"], "resourceNames": [],
        });
        let x = labelled("x", json!([rule("list"), rule("get"), rule("watch")]));
        let y = labelled("y", json!([rule("get"), empty_lists]));
        let roles = [("a", &x), ("b", &y), ("done", &done), ("sum", &sum)];
        let y_rules = vec![rule("get"), rule("list")];
        let decided = decide(&roles);
        assert_eq!(decided[0], ("done", "", y_rules.clone()));
        assert_eq!(decided[1], ("sum", "4711", [y_rules, vec![rule("watch")]].concat()));
        assert_eq!(decided.len(), 2);
    }

    #[test]
    fn up_to_date_cluster_roles_and_those_without_aggregation_are_not_written() {
        let plain = role(json!({"rules": [rule("get")]}));
        let nobody = json!([{"matchLabels": {"no": "body"}}]);
        let empty =
            role(json!({"aggregationRule": {"clusterRoleSelectors": nobody}, "rules": null}));
        let everything =
            json!({"aggregationRule": {"clusterRoleSelectors": [{}]}, "rules": [rule("get")]});
        let roles = [("a", &plain), ("b", &empty), ("c", &role(everything))];
        assert_eq!(decide(&roles), []);
    }
}
