//! The objects that go from a ClusterServiceVersion to a ClusterExtension, and the labels and
//! annotations of Helm by which the controller of OLM v1 knows them.

use crate::installed::ClassicOperator;
use crate::names::{ORIGINAL_MANAGED_BY, ORIGINAL_OWNER};
use mainstay_api::names;
use mainstay_api::names::olm_v1::{MANAGED_BY_LABEL, MANAGED_BY_VALUE};
use mainstay_api::resources::CLUSTER_OBJECT_SET;
use mainstay_object::builtin::{self, addons, openshift};
use mainstay_object::{Object, Resource};
use std::collections::BTreeSet;

/// The namespaced kinds that bundles may contain.
pub static NAMESPACED_KINDS: [Resource; 13] = [
    builtin::DEPLOYMENT,
    builtin::SERVICE_ACCOUNT,
    builtin::SERVICE,
    builtin::CONFIG_MAP,
    builtin::SECRET,
    builtin::ROLE,
    builtin::ROLE_BINDING,
    builtin::NETWORK_POLICY,
    builtin::POD_DISRUPTION_BUDGET,
    addons::PROMETHEUS_RULE,
    addons::SERVICE_MONITOR,
    addons::POD_MONITOR,
    addons::VERTICAL_POD_AUTOSCALER,
];

/// The cluster-scoped kinds that bundles may contain, but for CustomResourceDefinitions.
pub static CLUSTER_KINDS: [Resource; 8] = [
    builtin::CLUSTER_ROLE,
    builtin::CLUSTER_ROLE_BINDING,
    builtin::PRIORITY_CLASS,
    openshift::CONSOLE_YAML_SAMPLE,
    openshift::CONSOLE_QUICK_START,
    openshift::CONSOLE_CLI_DOWNLOAD,
    openshift::CONSOLE_LINK,
    openshift::CONSOLE_PLUGIN,
];

/// The kind of an object among those that bundles may contain.
pub fn resource_of(object: &Object) -> Option<&'static Resource> {
    const CRD: &Resource = &builtin::CUSTOM_RESOURCE_DEFINITION;
    let kinds = NAMESPACED_KINDS.iter().chain(&CLUSTER_KINDS).chain([CRD]);
    let (api_version, kind) = (object.api_version(), object.kind());
    kinds.into_iter().find(|found| found.kind == kind && found.api_version() == api_version)
}

/// The value of a label and the annotations of Helm, by which the controller of OLM v1 knows the objects of a
/// release.
const HELM: &str = "Helm";
pub(crate) const RELEASE_NAME: &str = "meta.helm.sh/release-name";
pub(crate) const RELEASE_NAMESPACE: &str = "meta.helm.sh/release-namespace";

/// Which objects of a cluster an operator hands over.
///
/// What OLM classic made itself, and OLM v1 makes under other names, stays with OLM classic and goes with its
/// ClusterServiceVersion: roles and bindings of permissions, roles for users, certificates, webhook
/// configurations.
#[derive(Clone, Debug)]
pub struct Handover {
    csv: (String, String, String),
    crds: BTreeSet<String>,
    deployments: BTreeSet<String>,
    accounts: BTreeSet<String>,
    /// Kind and name of the steps of InstallPlans.
    steps: BTreeSet<(String, String)>,
}

impl Handover {
    /// The rules for an operator. `plans` are the InstallPlans of its namespace.
    pub fn of(operator: ClassicOperator<'_>, plans: &[Object]) -> Self {
        let ClassicOperator { csv, .. } = operator;
        let names = |path: &[&str], field: &str| -> BTreeSet<String> {
            let values = csv.array(path).iter();
            values.filter_map(|value| value[field].as_str().map(str::to_owned)).collect()
        };
        let install = |list: &str, field: &str| names(&["spec", "install", "spec", list], field);
        let mut accounts = install("permissions", "serviceAccountName");
        accounts.extend(install("clusterPermissions", "serviceAccountName"));
        let steps = plans.iter().flat_map(|plan| plan.array(&["status", "plan"]));
        let steps = steps.filter(|step| step["resolving"] == csv.name()).map(|step| {
            let text = |field: &str| step["resource"][field].as_str().unwrap_or_default();
            (text("kind").to_owned(), text("name").to_owned())
        });
        Self {
            csv: (csv.namespace().to_owned(), csv.name().to_owned(), csv.uid().to_owned()),
            crds: names(&["spec", "customresourcedefinitions", "owned"], "name"),
            deployments: install("deployments", "name"),
            accounts,
            steps: steps.collect(),
        }
    }

    /// The CustomResourceDefinitions of the operator.
    pub fn crds(&self) -> impl Iterator<Item = &str> {
        let steps = self.steps.iter().filter(|(kind, _)| kind == "CustomResourceDefinition");
        let steps = steps.map(|(_, name)| &**name);
        self.crds.iter().map(String::as_str).chain(steps).collect::<BTreeSet<_>>().into_iter()
    }

    /// The names of the Deployments of the operator.
    pub fn deployments(&self) -> impl Iterator<Item = &str> {
        self.deployments.iter().map(String::as_str)
    }

    /// The cluster-scoped objects of the InstallPlans: kind and name.
    pub fn steps_of<'s>(&'s self, kind: &'s str) -> impl Iterator<Item = &'s str> {
        self.steps.iter().filter(move |(of, _)| of == kind).map(|(_, name)| &**name)
    }

    /// The label selector of cluster-scoped objects of the operator; none if its name is no value of a label.
    pub fn selector(&self) -> Option<String> {
        let (namespace, name, _) = &self.csv;
        let fits = name.len() <= 63 && namespace.len() <= 63;
        fits.then(|| format!("{}={name},{}={namespace}", names::OWNER, names::OWNER_NAMESPACE))
    }

    /// Whether OLM v1 takes an object over.
    pub fn includes(&self, object: &Object) -> bool {
        let (kind, name) = (object.kind(), object.name());
        let is_step = self.steps.contains(&(kind.to_owned(), name.to_owned()));
        match kind {
            "CustomResourceDefinition" => self.crds().any(|crd| crd == name),
            "Deployment" => self.deployments.contains(name),
            // Every namespace has the account `default`; no bundle has it.
            "ServiceAccount" => name != "default" && (self.accounts.contains(name) || is_step),
            "ClusterRole" | "ClusterRoleBinding" | "Role" | "RoleBinding" => {
                (is_step || self.owns(object)) && !self.is_generated(object)
            }
            // Others are certificates and tokens. A Secret of a bundle has a kind of its own in plans.
            "Secret" => {
                is_step || self.steps.contains(&("BundleSecret".to_owned(), name.to_owned()))
            }
            _ if resource_of(object).is_none() => false,
            _ => is_step || self.owns(object),
        }
    }

    /// Whether an object belongs to the ClusterServiceVersion: by owner reference or labels.
    fn owns(&self, object: &Object) -> bool {
        let (namespace, name, uid) = &self.csv;
        object.owner_references().iter().any(|owner| owner.uid == *uid)
            || (object.label(names::OWNER) == Some(name)
                && object.label(names::OWNER_NAMESPACE).is_none_or(|found| found == namespace))
    }

    /// Whether OLM classic made a role or binding itself: for a permission, or for users of an API.
    fn is_generated(&self, object: &Object) -> bool {
        let (_, csv, _) = &self.csv;
        object
            .name()
            .strip_prefix(&**csv)
            .is_some_and(|rest| rest.starts_with('-') || rest.is_empty())
            || object.label(names::PERMISSIONS_HASH).is_some()
            || object.label(names::COPIED_FROM).is_some()
            || object.labels().any(|(key, _)| key.starts_with(names::GROUP_PERMISSIONS_PREFIX))
    }
}

/// The object with Helm's label and annotations of a release; none if it has them, or if it is taken over already:
/// a ClusterObjectSet needs its own value of the label. An annotation keeps the label that it had.
pub fn with_release_labels(object: &Object, extension: &str, namespace: &str) -> Option<Object> {
    let is_labelled = object.label(MANAGED_BY_LABEL) == Some(HELM)
        && object.annotation(RELEASE_NAME) == Some(extension)
        && object.annotation(RELEASE_NAMESPACE) == Some(namespace);
    let owners = object.owner_references();
    let mut owners = owners.iter();
    if is_labelled || owners.any(|owner| *owner.kind == *CLUSTER_OBJECT_SET.kind) {
        return None;
    }
    let mut object = object.clone();
    if object.annotation(RELEASE_NAME).is_none()
        && let Some(before) = object.label(MANAGED_BY_LABEL).map(str::to_owned)
    {
        object.set_annotation(ORIGINAL_MANAGED_BY, before);
    }
    object.set_label(MANAGED_BY_LABEL, HELM);
    object.set_annotation(RELEASE_NAME, extension);
    object.set_annotation(RELEASE_NAMESPACE, namespace);
    Some(object)
}

/// The object without Helm's label and annotations of a release; none if it has none of this extension.
pub fn without_release_labels(object: &Object, extension: &str) -> Option<Object> {
    let mut changed = object.clone();
    remove_release_labels(&mut changed);
    (object.annotation(RELEASE_NAME) == Some(extension)).then_some(changed)
}

/// Removes Helm's label and annotations of a release, or the label of a ClusterObjectSet, and restores the label
/// that was there before.
pub(crate) fn remove_release_labels(object: &mut Object) {
    match object.annotation(ORIGINAL_MANAGED_BY).map(str::to_owned) {
        Some(before) => object.set_label(MANAGED_BY_LABEL, before),
        None if [Some(HELM), Some(MANAGED_BY_VALUE)].contains(&object.label(MANAGED_BY_LABEL)) => {
            object.remove(&["metadata", "labels", MANAGED_BY_LABEL]);
        }
        None => {}
    }
    for annotation in [RELEASE_NAME, RELEASE_NAMESPACE, ORIGINAL_MANAGED_BY] {
        object.remove(&["metadata", "annotations", annotation]);
    }
}

/// A cluster-scoped object without the labels by which OLM classic deletes it together with its
/// ClusterServiceVersion; none if it has none. An annotation keeps its owner, so that a rollback knows it even
/// if no InstallPlan names the object any more.
pub fn without_owner_labels(object: &Object) -> Option<Object> {
    let mut changed = object.clone();
    if let (Some(namespace), Some(name)) =
        (object.label(names::OWNER_NAMESPACE), object.label(names::OWNER))
    {
        changed.set_annotation(ORIGINAL_OWNER, format!("{namespace}/{name}"));
    }
    for label in [names::OWNER, names::OWNER_KIND, names::OWNER_NAMESPACE] {
        changed.remove(&["metadata", "labels", label]);
    }
    (changed != *object).then_some(changed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn object(value: Value) -> Object {
        Object::from_value(value).unwrap()
    }

    fn rules() -> Handover {
        let subscription = object(json!({
            "apiVersion": "operators.coreos.com/v1alpha1", "kind": "Subscription",
            "metadata": {"name": "tea", "namespace": "ns"}, "spec": {"name": "tea"},
        }));
        let csv = object(json!({
            "apiVersion": "operators.coreos.com/v1alpha1", "kind": "ClusterServiceVersion",
            "metadata": {"name": "tea.v1", "namespace": "ns", "uid": "u"},
            "spec": {
                "customresourcedefinitions": {"owned": [{"name": "pots.tea"}]},
                "install": {"spec": {
                    "deployments": [{"name": "tea"}],
                    "permissions": [
                        {"serviceAccountName": "tea"}, {"serviceAccountName": "default"},
                    ],
                }},
            },
        }));
        let plan = object(json!({
            "apiVersion": "operators.coreos.com/v1alpha1", "kind": "InstallPlan",
            "metadata": {"name": "p", "namespace": "ns"},
            "status": {"plan": [
                {"resolving": "tea.v1", "resource": {"kind": "ClusterRole", "name": "readers"}},
                {"resolving": "tea.v1", "resource": {"kind": "Secret", "name": "key"}},
                {"resolving": "other.v1", "resource": {"kind": "Secret", "name": "foreign"}},
            ]},
        }));
        Handover::of(ClassicOperator { subscription: &subscription, csv: &csv }, &[plan])
    }

    #[test]
    fn objects_of_the_bundle_are_handed_over_and_those_of_classic_are_not() {
        let rules = rules();
        let owned = json!([{"apiVersion": "operators.coreos.com/v1alpha1",
            "kind": "ClusterServiceVersion", "name": "tea.v1", "uid": "u"}]);
        let with_label = |label: &str| json!({label: "x"});
        for (api_version, kind, name, labels, is_included) in [
            ("apps/v1", "Deployment", "tea", json!({}), true),
            ("apps/v1", "Deployment", "mine", json!({}), false),
            ("v1", "ServiceAccount", "tea", json!({}), true),
            ("v1", "ServiceAccount", "default", json!({}), false),
            ("apiextensions.k8s.io/v1", "CustomResourceDefinition", "pots.tea", json!({}), true),
            ("apiextensions.k8s.io/v1", "CustomResourceDefinition", "cups.tea", json!({}), false),
            ("rbac.authorization.k8s.io/v1", "ClusterRole", "readers", json!({}), true),
            ("rbac.authorization.k8s.io/v1", "Role", "tea.v1-tea-4x", json!({}), false),
            (
                "rbac.authorization.k8s.io/v1",
                "Role",
                "short",
                with_label(names::PERMISSIONS_HASH),
                false,
            ),
            ("v1", "Secret", "key", json!({}), true),
            ("v1", "Secret", "tea-service-cert", json!({}), false),
            ("v1", "Secret", "foreign", json!({}), false),
            ("v1", "ConfigMap", "settings", json!({}), true),
            ("operators.coreos.com/v2", "OperatorCondition", "tea.v1", json!({}), false),
        ] {
            let object = object(json!({
                "apiVersion": api_version, "kind": kind,
                "metadata": {"name": name, "labels": labels, "ownerReferences": owned},
            }));
            assert_eq!(rules.includes(&object), is_included, "{kind} {name}");
        }
        let foreign = object(json!({
            "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "settings"},
        }));
        assert!(!rules.includes(&foreign), "an object without an owner");
    }

    #[test]
    fn object_of_a_cluster_object_set_keeps_its_label() {
        let taken_over = object(json!({
            "apiVersion": "v1", "kind": "ConfigMap", "metadata": {
                "name": "c", "namespace": "n",
                "labels": {MANAGED_BY_LABEL: MANAGED_BY_VALUE},
                "ownerReferences": [
                    {"apiVersion": "v1", "kind": "Node", "name": "a", "uid": "1"},
                    {
                        "apiVersion": "olm.operatorframework.io/v1", "kind": "ClusterObjectSet",
                        "name": "tea-1", "uid": "2",
                    },
                ],
            },
        }));
        assert_eq!(with_release_labels(&taken_over, "tea", "n"), None);
    }

    #[test]
    fn labels_of_a_release_are_written_once_and_removed() {
        let config = object(json!({
            "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c", "namespace": "n"},
        }));
        let first = with_release_labels(&config, "tea", "n").unwrap();
        assert_eq!(first.annotation("meta.helm.sh/release-name"), Some("tea"));
        assert_eq!(with_release_labels(&first, "tea", "n"), None);
        assert!(with_release_labels(&first, "coffee", "n").is_some());
        assert_eq!(without_release_labels(&first, "coffee"), None);
        let again = without_release_labels(&first, "tea").unwrap();
        assert_eq!(again.labels().count() + again.annotations().count(), 0);
        for before in ["kustomize", "Helm"] {
            let mut labelled = config.clone();
            labelled.set_label("app.kubernetes.io/managed-by", before);
            let first = with_release_labels(&labelled, "tea", "n").unwrap();
            assert_eq!(first.label("app.kubernetes.io/managed-by"), Some("Helm"));
            assert_eq!(with_release_labels(&first, "tea", "n"), None);
            let again = without_release_labels(&first, "tea").unwrap();
            assert_eq!(again.label("app.kubernetes.io/managed-by"), Some(before));
            assert_eq!(again.annotations().count(), 0);
        }
    }
}
