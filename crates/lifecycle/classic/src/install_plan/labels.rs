//! Early labels: sets labels, annotations and finalizers on new objects that other controllers
//! would write right after.

use super::execute::{CSV, StepRunner};
use crate::membership;
use crate::steps::BUNDLE_SECRET;
use crate::subscription::plan::package_of;
use mainstay_api::{Step, names, resources};
use mainstay_object::Object;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// The kinds of steps whose objects are components of an Operator.
const COMPONENT_KINDS: [&str; 11] = [
    "ClusterServiceVersion",
    "Subscription",
    "CustomResourceDefinition",
    "ServiceAccount",
    "Role",
    "RoleBinding",
    "ClusterRole",
    "ClusterRoleBinding",
    "Service",
    "ConfigMap",
    BUNDLE_SECRET,
];

impl StepRunner<'_> {
    /// The component labels by CSV, for packages with a Subscription or with one in a step of the
    /// InstallPlan.
    pub(super) fn components_of(&self, plan: &[Step]) -> BTreeMap<String, String> {
        let mut packages: BTreeSet<String> = BTreeSet::new();
        for (_, subscription) in self.context.caches.subscriptions.list(Some(self.namespace)) {
            packages.insert(subscription.spec.package.clone());
        }
        for step in plan.iter().filter(|step| step.resource.kind == *resources::SUBSCRIPTION.kind) {
            let manifest: Value = serde_json::from_str(&step.resource.manifest).unwrap_or_default();
            packages.extend(manifest["spec"]["name"].as_str().map(str::to_owned));
        }
        let mut labels = BTreeMap::new();
        for step in plan.iter().filter(|step| step.resource.kind == CSV) {
            let package =
                package_of(&step.resource.manifest).filter(|package| packages.contains(package));
            if let Some(package) = package {
                let label = names::component_label(&package, self.namespace);
                labels.insert(step.resource.name.clone(), label);
            }
        }
        labels
    }

    /// Sets the component label on an object, which the Operator controller would write right
    /// after.
    pub(super) fn label_component(&self, step: &Step, object: &mut Object) {
        let label = self.components.get().and_then(|components| components.get(&step.resolving));
        if let Some(label) =
            label.filter(|_| COMPONENT_KINDS.contains(&step.resource.kind.as_str()))
        {
            object.set_label(label.as_str(), "");
        }
    }

    /// Sets the annotations and the finalizer of an OperatorGroup member on a CSV, which the CSV
    /// controller would write right after.
    pub(super) fn set_membership(&self, csv: &mut Object) {
        let groups = self.context.caches.groups_in(self.namespace);
        let [group] = groups.as_slice() else { return };
        for (key, value) in membership::annotations(group) {
            if let Some(value) = value {
                csv.set_annotation(key, value);
            }
        }
        let mut finalizers = csv.array(&["metadata", "finalizers"]).to_vec();
        if !finalizers.iter().any(|finalizer| finalizer == names::CSV_CLEANUP_FINALIZER) {
            finalizers.push(names::CSV_CLEANUP_FINALIZER.into());
        }
        csv.set(&["metadata", "finalizers"], finalizers.into());
    }
}
