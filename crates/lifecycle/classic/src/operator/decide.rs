//! Operator decisions: the components of an Operator, and its status.

use super::components::Component;
use mainstay_api::{Subscription, names};
use mainstay_object::{NamespacedName, Resource};
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// The name of the Operator of a Subscription: that of the component label, which may be truncated.
pub(crate) fn operator(subscription: &Subscription) -> String {
    let label =
        names::component_label(&subscription.spec.package, &subscription.metadata.namespace);
    label.strip_prefix(names::COMPONENT_LABEL_PREFIX).unwrap_or(&label).to_owned()
}

/// The component label of an Operator.
pub(crate) fn label(operator: &str) -> String {
    format!("{}{operator}", names::COMPONENT_LABEL_PREFIX)
}

/// The roots of an Operator: its Subscriptions, and the CSVs and InstallPlans that they name or
/// that carry its label.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct OperatorRoots {
    pub(crate) subscriptions: BTreeSet<NamespacedName>,
    pub(crate) csvs: BTreeSet<NamespacedName>,
    pub(crate) plans: BTreeSet<NamespacedName>,
}

impl OperatorRoots {
    /// Adds a Subscription of the Operator, its CSV and its InstallPlan.
    pub(crate) fn add(&mut self, subscription: &Subscription) {
        let namespace = subscription.metadata.namespace.as_str();
        self.subscriptions.insert(subscription.key());
        let installed = &subscription.status.installed_csv;
        if !installed.is_empty() {
            self.csvs.insert(NamespacedName::new(namespace, installed.as_str()));
        }
        let plan = subscription.status.install_plan_ref.as_ref();
        if let Some(plan) = plan.filter(|plan| !plan.name.is_empty()) {
            self.plans.insert(NamespacedName::new(namespace, plan.name.as_str()));
        }
    }

    /// Whether an InstallPlan is no longer a component: the Subscriptions refer to other ones, or
    /// the Operator has neither Subscriptions nor CSVs. For a CSV without a Subscription this is
    /// unknown, so its InstallPlan stays.
    pub(crate) fn is_past(&self, plan: &NamespacedName) -> bool {
        let gone = self.subscriptions.is_empty() && self.csvs.is_empty();
        (gone || !self.subscriptions.is_empty()) && !self.plans.contains(plan)
    }
}

/// Whether an object lacks the component label.
pub(crate) fn lacks_label(component: &Component, operator: &str) -> bool {
    !component.operators.iter().any(|name| name == operator)
}

/// A component in the format of the Operator status.
pub(crate) fn reference(resource: &Resource, key: &NamespacedName, component: &Component) -> Value {
    let mut reference = json!({
        "apiVersion": resource.api_version(), "kind": resource.kind, "name": &*key.name,
    });
    if !key.namespace.is_empty() {
        reference["namespace"] = (&*key.namespace).into();
    }
    if !component.conditions.is_empty() {
        reference["conditions"] = component.conditions.clone().into();
    }
    reference
}

/// The status of an Operator. `refs` are in any order.
pub(crate) fn status(operator: &str, mut refs: Vec<Value>) -> Value {
    refs.sort_by_cached_key(|reference| {
        ["kind", "namespace", "name"]
            .map(|field| reference[field].as_str().unwrap_or_default().to_owned())
    });
    let selector = json!({"matchExpressions": [{"key": label(operator), "operator": "Exists"}]});
    let mut components = json!({"labelSelector": selector});
    if !refs.is_empty() {
        components["refs"] = refs.into();
    }
    json!({"components": components})
}

#[cfg(test)]
mod tests {
    use super::*;
    use mainstay_api::ObjectReference;
    use mainstay_object::builtin;

    #[test]
    fn the_roots_of_an_operator_include_the_csv_and_install_plan_of_its_subscription() {
        let mut subscription = Subscription::new("ns", "sub");
        subscription.spec.package = "anvil".to_owned();
        assert_eq!(operator(&subscription), "anvil.ns");
        subscription.status.installed_csv = "anvil.v1".to_owned();
        subscription.status.install_plan_ref =
            Some(ObjectReference { name: "install-x".to_owned(), ..ObjectReference::default() });
        let mut roots = OperatorRoots::default();
        roots.add(&subscription);
        assert!(roots.csvs.contains(&NamespacedName::new("ns", "anvil.v1")));
        assert!(roots.plans.contains(&NamespacedName::new("ns", "install-x")));
        let older = NamespacedName::new("ns", "install-w");
        assert!(roots.is_past(&older) && OperatorRoots::default().is_past(&older));
        let mut alone = OperatorRoots::default();
        alone.csvs.insert(NamespacedName::new("ns", "anvil.v1"));
        assert!(!alone.is_past(&older));
        subscription.spec.package = "x".repeat(70);
        assert_eq!(operator(&subscription).len(), 63);
    }

    #[test]
    fn an_operator_without_components_has_no_references() {
        assert_eq!(
            status("a.ns", Vec::new()),
            json!({"components": {"labelSelector": {"matchExpressions": [
                {"key": "operators.coreos.com/a.ns", "operator": "Exists"},
            ]}}})
        );
        let key = NamespacedName::cluster("r");
        let component = reference(&builtin::CLUSTER_ROLE, &key, &Component::default());
        let all = status("a.ns", vec![component.clone()]);
        assert_eq!(all["components"]["refs"], json!([component]));
        assert_eq!(component.get("namespace"), None);
    }
}
