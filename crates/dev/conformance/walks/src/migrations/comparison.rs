//! What a conversion and a rollback may do with the objects of a cluster.
//!
//! A dump from before is compared with one from after: each object that is gone, that is new or that
//! differs has to fall under an exception, which the page names.

use super::cert_manager::{CERTIFICATE_NAME, INJECT_CA_FROM};
use crate::dump::{Dump, ObjectId};
use crate::extensions::cluster::SYSTEM_NAMESPACE;
use crate::leftovers::AllowedChange;
use crate::walk_cluster::CATALOG_NAMESPACE;
use mainstay_api::names;
use mainstay_api::names::olm_v1::MANAGED_BY_LABEL;
use mainstay_api::resources::{
    CLUSTER_EXTENSION, CLUSTER_OBJECT_SET, CLUSTER_SERVICE_VERSION, INSTALL_PLAN, OPERATOR,
    OPERATOR_CONDITION, SUBSCRIPTION,
};
use mainstay_object::{Object, builtin};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// The kind, namespace and name of an object of a bundle.
pub(super) type BundleObject = (String, String, String);

/// An operator whose objects are compared.
#[derive(Clone, Debug)]
pub(super) struct ExpectedOperator {
    /// The name of its ClusterServiceVersion.
    pub(super) csv: String,
    /// The objects that OLM v1 renders from its bundle.
    pub(super) rendered: BTreeSet<BundleObject>,
    /// Whether it serves webhooks.
    pub(super) has_webhooks: bool,
    /// Whether OLM v1 writes annotations to its pods that OLM classic does not write.
    pub(super) has_other_annotations: bool,
}

impl ExpectedOperator {
    /// Whether its pods restart.
    const fn restarts(&self) -> bool {
        self.has_webhooks || self.has_other_annotations
    }

    fn renders(&self, id: &ObjectId) -> bool {
        self.rendered.contains(&(id.kind.clone(), id.namespace.clone(), id.name.clone()))
    }

    /// Whether OLM classic says that the object belongs to the ClusterServiceVersion.
    fn has_in_classic(&self, object: &Object) -> bool {
        let has_csv_name = [CLUSTER_SERVICE_VERSION, OPERATOR_CONDITION];
        let mut owners = object.owner_references().into_iter();
        owners.any(|owner| {
            has_csv_name.iter().any(|kind| *kind.kind == owner.kind) && owner.name == self.csv
        }) || object.label(names::OWNER) == Some(&self.csv)
    }
}

/// Objects that may go and come.
pub(super) struct Exception {
    name: &'static str,
    matches: fn(&ExpectedOperator, &ObjectId, &Object) -> bool,
    why: &'static str,
}

/// Objects that only OLM classic has. A conversion deletes them, and after a rollback there are new ones.
const CLASSIC_OBJECTS: [Exception; 5] = [
    CONFIG_MAPS,
    OPERATOR_OBJECTS,
    Exception {
        name: "roles of permissions, and those of OperatorConditions",
        matches: |operator, id, object| {
            let kinds = ["ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding"];
            kinds.contains(&&*id.kind) && !operator.renders(id) && operator.has_in_classic(object)
        },
        why: "each system makes its own, under other names",
    },
    Exception {
        name: "webhook configurations",
        matches: |operator, id, object| {
            id.kind.ends_with("WebhookConfiguration") && operator.has_in_classic(object)
        },
        why: "each system makes its own, under other names",
    },
    CERTIFICATES,
];

const CONFIG_MAPS: Exception = Exception {
    name: "ConfigMaps of InstallPlans",
    matches: |_, id, object| {
        id.kind == *builtin::CONFIG_MAP.kind && object.namespace() == CATALOG_NAMESPACE
    },
    why: "they hold manifests that are too large for an InstallPlan",
};

const OPERATOR_OBJECTS: Exception = Exception {
    name: "Subscription, ClusterServiceVersion, InstallPlan, OperatorCondition",
    matches: |_, id, _| {
        [SUBSCRIPTION, CLUSTER_SERVICE_VERSION, INSTALL_PLAN, OPERATOR_CONDITION]
            .iter()
            .any(|resource| *resource.kind == id.kind && *resource.group == id.group)
    },
    why: "OLM v1 has none, and a rollback installs the version again",
};

const CERTIFICATES: Exception = Exception {
    name: "certificates",
    matches: |operator, id, object| {
        operator.has_webhooks
            && id.kind == *builtin::SECRET.kind
            && (operator.has_in_classic(object) || object.annotation(CERTIFICATE_NAME).is_some())
    },
    why: "OLM classic issues those of webhooks itself, and for OLM v1 cert-manager does",
};

/// Objects that only OLM v1 has.
const V1_OBJECTS: [Exception; 3] = [
    Exception {
        name: "ClusterExtension and its releases",
        matches: |_, id, object| {
            [CLUSTER_EXTENSION, CLUSTER_OBJECT_SET].iter().any(|kind| *kind.kind == id.kind)
                || (id.kind == *builtin::SECRET.kind && object.namespace() == SYSTEM_NAMESPACE)
        },
        why: "they replace the Subscription",
    },
    Exception {
        name: "other objects of the bundle for OLM v1",
        matches: |operator, id, _| operator.renders(id),
        why: "OLM classic has them under other names or not at all",
    },
    CERTIFICATES,
];

/// The exception for pods that restart.
pub(super) const RESTARTED_PODS: &str = "restarted pods";
const WHY_RESTARTED_PODS: &str = "their template changes in three cases. With webhooks, OLM v1 mounts the two volumes of the certificate in another order, and OLM classic writes a hash of its CA to the template. Where the ClusterServiceVersion and the template have an annotation with different values, OLM classic takes the one and OLM v1 the other. And of the file `metadata/properties.yaml` of a bundle, OLM v1 makes the annotation `olm.properties`";

/// Pods that are new.
const RESTARTS: [Exception; 1] = [Exception {
    name: RESTARTED_PODS,
    matches: |operator, id, _| operator.restarts() && ["Pod", "ReplicaSet"].contains(&&*id.kind),
    why: WHY_RESTARTED_PODS,
}];

/// Changes of objects that stay.
const CHANGES: &[AllowedChange] = &[
    AllowedChange {
        name: "owners",
        hide: |object| {
            retain_owners(object, |owner| {
                !OWNERS.contains(&owner["kind"].as_str().unwrap_or_default())
            });
        },
        why: "the ClusterExtension replaces the ClusterServiceVersion",
    },
    AllowedChange {
        name: "labels and annotations of OLM and Helm",
        hide: |object| {
            let is_of_olm = |key: &str| {
                let prefixes =
                    ["olm.", "operators.coreos.com/", "meta.helm.sh/", "operator-sdk/primary-"];
                key == MANAGED_BY_LABEL || prefixes.iter().any(|prefix| key.starts_with(prefix))
            };
            for field in ["labels", "annotations"] {
                hide_keys(object, &["metadata", field], is_of_olm);
            }
        },
        why: "they say to whom an object belongs; Services and Deployments pass theirs on",
    },
    AllowedChange {
        name: "roles of the OperatorGroup",
        hide: |object| {
            if object.name().starts_with("olm.og.") {
                object.remove(&["rules"]);
                object.remove(&["aggregationRule"]);
            }
        },
        why: "it has no operators any more",
    },
    COMPONENTS,
    GENERATION,
];
const GENERATION: AllowedChange = AllowedChange {
    name: "observed generation of Deployments",
    hide: |object| {
        if object.kind() == "Deployment" {
            object.remove(&["status", "observedGeneration"]);
        }
        if [CLUSTER_EXTENSION, CLUSTER_OBJECT_SET].iter().any(|kind| *kind.kind == *object.kind()) {
            let mut conditions = object.array(&["status", "conditions"]).to_vec();
            for condition in &mut conditions {
                if condition["type"] == "Ready" || condition["type"] == "Available" {
                    condition["lastTransitionTime"] = Value::Null;
                }
            }
            object.set(&["status", "conditions"], conditions.into());
        }
    },
    why: "Kubernetes counts changes of their annotations, too, and the ClusterExtension is not Ready, and its ClusterObjectSet not Available, until the new one is observed",
};
const COMPONENTS: AllowedChange = AllowedChange {
    name: "components of the Operator",
    hide: |object| {
        if *object.kind() == *OPERATOR.kind {
            object.remove(&["status", "components"]);
        }
    },
    why: "its status lists objects that are new or gone",
};
/// Changes that a rollback does not undo.
const LASTING_CHANGES: &[AllowedChange] = &[
    AllowedChange {
        name: "uid of the owner",
        hide: |object| {
            let mut owners = object.array(&["metadata", "ownerReferences"]).to_vec();
            for owner in &mut owners {
                if owner["kind"] == *CLUSTER_SERVICE_VERSION.kind {
                    owner["uid"] = Value::Null;
                }
            }
            if !owners.is_empty() {
                object.set(&["metadata", "ownerReferences"], owners.into());
            }
        },
        why: "the ClusterServiceVersion is another object",
    },
    AllowedChange {
        name: "annotations of ReplicaSets",
        hide: |object| {
            if object.kind() == "ReplicaSet" {
                let prefixes = ["meta.helm.sh/", "olm.operatorframework.io/"];
                let is_copied = |key: &str| prefixes.iter().any(|prefix| key.starts_with(prefix));
                hide_keys(object, &["metadata", "annotations"], is_copied);
            }
        },
        why: "Kubernetes copies them from the Deployment, and does not remove them",
    },
    COMPONENTS,
    GENERATION,
];

/// Further changes of operators whose pods restart, on both ways.
const RESTART_CHANGES: &[AllowedChange] = &[
    AllowedChange {
        name: RESTARTED_PODS,
        hide: |object| {
            let hidden: &[&[&str]] = match object.kind() {
                "Deployment" => &[
                    &["metadata", "annotations", "deployment.kubernetes.io/revision"],
                    &["metadata", "labels", names::DEPLOYMENT_SPEC_HASH],
                    &["status"],
                ],
                "ReplicaSet" => &[&["spec", "replicas"], &["status"], &["metadata", "annotations"]],
                "Endpoints" => &[&["subsets"]],
                "EndpointSlice" => &[&["endpoints"]],
                _ => &[],
            };
            for path in hidden {
                object.remove(path);
            }
            let template = ["spec", "template"];
            if let Some(template_value) = object.get(&template).cloned() {
                object.set(&template, ordered(template_value));
            }
        },
        why: WHY_RESTARTED_PODS,
    },
    AllowedChange {
        name: "CA of conversion webhooks",
        hide: |object| {
            if *object.kind() == *builtin::CUSTOM_RESOURCE_DEFINITION.kind {
                hide_keys(object, &["metadata", "annotations"], |key| key == INJECT_CA_FROM);
                object.remove(&["spec", "conversion", "webhook", "clientConfig", "caBundle"]);
            }
        },
        why: "OLM classic writes its CA to the CustomResourceDefinition, and cert-manager writes another one",
    },
];

/// A template of pods without annotations, and with volumes and mounts in order of their names.
fn ordered(mut template: Value) -> Value {
    template["metadata"]["annotations"] = Value::Null;
    let sort = |list: &mut Value, field: &str| {
        if let Some(list) = list.as_array_mut() {
            list.sort_by_key(|item| item[field].to_string());
        }
    };
    sort(&mut template["spec"]["volumes"], "name");
    for container in template["spec"]["containers"].as_array_mut().into_iter().flatten() {
        sort(&mut container["volumeMounts"], "mountPath");
    }
    template
}

/// The kinds of owners at both systems.
const OWNERS: [&str; 3] = ["ClusterServiceVersion", "ClusterExtension", "ClusterObjectSet"];

fn retain_owners(object: &mut Object, keep: impl Fn(&Value) -> bool) {
    let path = ["metadata", "ownerReferences"];
    let owners: Vec<Value> =
        object.array(&path).iter().filter(|owner| keep(owner)).cloned().collect();
    if owners.is_empty() {
        object.remove(&path);
    } else {
        object.set(&path, owners.into());
    }
}

/// Removes the entries of a map whose keys match, and the map if it is empty then.
fn hide_keys(object: &mut Object, path: &[&str], matches: impl Fn(&str) -> bool) {
    let Some(map) = object.get(path).and_then(Value::as_object) else { return };
    let mut map = map.clone();
    map.retain(|key, _| !matches(key));
    if map.is_empty() {
        object.remove(path);
    } else {
        object.set(path, Value::Object(map));
    }
}

/// The exception for objects that a deletion keeps.
pub(super) const KEPT: (&str, &str) = (
    "kept CustomResourceDefinitions",
    "those with the annotation `helm.sh/resource-policy: keep` stay when the extension is deleted; OLM classic wrote it, so an upgrade does not remove it",
);

/// Name and reason of all exceptions, each once.
pub(super) fn exceptions() -> impl Iterator<Item = (&'static str, &'static str)> {
    let objects = CLASSIC_OBJECTS.iter().chain(&V1_OBJECTS).chain(&RESTARTS);
    let objects = objects.map(|exception| (exception.name, exception.why));
    let changes = CHANGES.iter().chain(LASTING_CHANGES).chain(RESTART_CHANGES);
    let all = objects.chain(changes.map(|change| (change.name, change.why))).chain([KEPT]);
    let mut seen = BTreeSet::new();
    all.filter(move |(name, _)| seen.insert(*name))
}

/// What a comparison found.
#[derive(Debug, Default)]
pub(super) struct Comparison {
    /// Deviations from the expected, as text.
    pub(super) findings: Vec<String>,
    /// The names of the exceptions that applied.
    pub(super) exceptions: BTreeSet<&'static str>,
}

impl Comparison {
    /// Whether one of the exceptions covers an object.
    fn excepts<'e>(
        &mut self,
        exceptions: impl IntoIterator<Item = &'e Exception>,
        operator: &ExpectedOperator,
        id: &ObjectId,
        object: &Object,
    ) -> bool {
        let mut all = exceptions.into_iter();
        let found = all.find(|exception| (exception.matches)(operator, id, object));
        self.exceptions.extend(found.map(|exception| exception.name));
        found.is_some()
    }

    fn changes(
        &mut self,
        before: &Dump,
        after: &Dump,
        operator: &ExpectedOperator,
        allowed: &[AllowedChange],
    ) {
        let more = if operator.restarts() { RESTART_CHANGES } else { &[] };
        let (findings, exceptions) = before.differences(after, &[allowed, more]);
        self.findings.extend(findings);
        self.exceptions.extend(exceptions);
    }
}

/// Compares a cluster before and after a conversion: what the bundle has stays, what only OLM classic has
/// goes, what only OLM v1 has comes.
pub(super) fn converted(before: &Dump, after: &Dump, operator: &ExpectedOperator) -> Comparison {
    let mut found = Comparison::default();
    for (id, _, object) in before.not_in(after) {
        let is_expected = !operator.renders(id)
            && found.excepts(CLASSIC_OBJECTS.iter().chain(&RESTARTS), operator, id, object);
        if !is_expected {
            found.findings.push(format!("the conversion deletes {id}"));
        }
    }
    for (id, _, object) in after.not_in(before) {
        let is_replaced = before.objects.contains_key(id) && operator.renders(id);
        let is_expected =
            !is_replaced && found.excepts(V1_OBJECTS.iter().chain(&RESTARTS), operator, id, object);
        if !is_expected {
            found.findings.push(format!("the conversion creates {id}"));
        }
    }
    for (kind, namespace, name) in &operator.rendered {
        if after.find_id(kind, namespace, name).is_none() {
            found.findings.push(format!("after the conversion there is no {kind} {name}"));
        }
    }
    found.changes(before, after, operator, CHANGES);
    found
}

/// Compares a cluster before a conversion and after the rollback: everything is as it was. What only OLM
/// classic has is another object with the same content.
pub(super) fn restored(before: &Dump, after: &Dump, operator: &ExpectedOperator) -> Comparison {
    let mut found = Comparison::default();
    let mut gone: BTreeMap<String, Vec<Value>> = BTreeMap::new();
    for (id, _, object) in before.not_in(after) {
        if found.excepts(&RESTARTS, operator, id, object) {
            continue;
        }
        if !operator.renders(id) && found.excepts(&CLASSIC_OBJECTS, operator, id, object) {
            gone.entry(key(id, object)).or_default().push(content(object));
        } else {
            found.findings.push(format!("the rollback lost {id}"));
        }
    }
    for (id, _, object) in after.not_in(before) {
        if found.excepts(&RESTARTS, operator, id, object) {
            continue;
        }
        let new = content(object);
        let old = gone.get_mut(&key(id, object)).and_then(Vec::pop);
        match old {
            None => found.findings.push(format!("the rollback leaves {id}")),
            Some(old) => {
                if let Some(what) = crate::dump::difference("", &old, &new) {
                    found.findings.push(format!("the new {id} is another one: {what}"));
                }
            }
        }
    }
    for (key, _) in gone.iter().filter(|(_, old)| !old.is_empty()) {
        found.findings.push(format!("the rollback does not create {key}"));
    }
    found.changes(before, after, operator, LASTING_CHANGES);
    found
}

/// Compares a cluster before and after `migrate cleanup`: what OLM classic left is gone, and all else stays.
pub(super) fn cleaned_up(before: &Dump, after: &Dump, operator: &ExpectedOperator) -> Comparison {
    let mut found = Comparison::default();
    for (id, _, object) in before.not_in(after) {
        let is_operator = *OPERATOR.kind == id.kind && *OPERATOR.group == id.group;
        if !is_operator && !found.excepts(&[CONFIG_MAPS, OPERATOR_OBJECTS], operator, id, object) {
            found.findings.push(format!("the cleanup deletes {id}"));
        }
    }
    for (id, _, _) in after.not_in(before) {
        found.findings.push(format!("the cleanup creates {id}"));
    }
    for (id, (_, object)) in &after.objects {
        let is_labelled = object.labels().any(|(label, _)| label.starts_with("olm.owner"));
        if operator.renders(id) && is_labelled {
            found.findings.push(format!("the cleanup leaves owner labels on {id}"));
        }
        if [SUBSCRIPTION, CLUSTER_SERVICE_VERSION, INSTALL_PLAN, OPERATOR_CONDITION, OPERATOR]
            .iter()
            .any(|kind| *kind.kind == id.kind && *kind.group == id.group)
        {
            found.findings.push(format!("the cleanup leaves {id}"));
        }
    }
    found.changes(before, after, operator, CHANGES);
    found
}

/// Compares a cluster before and after the upgrade of a converted operator, from its old version to the new
/// one: what both have stays.
pub(super) fn upgraded(
    before: &Dump,
    after: &Dump,
    (old, new): &(ExpectedOperator, ExpectedOperator),
) -> Comparison {
    let mut found = Comparison::default();
    for (kind, namespace, name) in &new.rendered {
        let find = |dump: &Dump| {
            let id = dump.find_id(kind, namespace, name)?;
            dump.objects.get(id).map(|(_, object)| object.uid().to_owned())
        };
        match (find(before), find(after)) {
            (_, None) => found.findings.push(format!("there is no {kind} {name}")),
            (Some(before), Some(after)) if before != after => {
                found.findings.push(format!("{kind} {name} is another one"));
            }
            _ => {}
        }
    }
    for (kind, namespace, name) in old.rendered.difference(&new.rendered) {
        if after.find_id(kind, namespace, name).is_some() {
            found.findings.push(format!("{kind} {name} of the old version remains"));
        }
    }
    found
}

/// The identity of an object of OLM classic: its name, unless that is generated.
fn key(id: &ObjectId, object: &Object) -> String {
    let generated = object.label(names::WEBHOOK_GENERATE_NAME);
    match generated {
        Some(name) => format!("{} {name}", id.kind),
        None if id.kind == *INSTALL_PLAN.kind => {
            let csvs = object.get(&["spec", "clusterServiceVersionNames"]);
            format!("{} of {}", id.kind, csvs.unwrap_or(&Value::Null))
        }
        None => id.to_string(),
    }
}

/// What has to be the same in an object of OLM classic and in the one that replaces it.
fn content(object: &Object) -> Value {
    let mut object = object.clone();
    let text = |object: &Object, path: &[&str]| object.str(path).unwrap_or_default().to_owned();
    for field in ["name", "generateName", "uid", "resourceVersion", "creationTimestamp"] {
        object.remove(&["metadata", field]);
    }
    for field in ["managedFields", "generation"] {
        object.remove(&["metadata", field]);
    }
    let owners = object.owner_references().into_iter();
    let owners: Vec<Value> = owners.map(|owner| json!([owner.kind, owner.name])).collect();
    object.set(&["metadata", "ownerReferences"], owners.into());
    let kind = object.kind().to_owned();
    if kind == *SUBSCRIPTION.kind {
        // The rollback starts at the installed version.
        object.remove(&["spec", "startingCSV"]);
        let fields = ["state", "installedCSV", "currentCSV"];
        let status = fields.map(|field| text(&object, &["status", field]));
        object.set(&["status"], json!(status));
    } else if kind == *CLUSTER_SERVICE_VERSION.kind {
        let status = ["phase", "reason"].map(|field| text(&object, &["status", field]));
        object.set(&["status"], json!(status));
    } else if kind == *INSTALL_PLAN.kind {
        object.set(&["metadata", "ownerReferences"], json!([]));
        let status = text(&object, &["status", "phase"]);
        object.set(&["status"], json!(status));
    } else if kind == *builtin::SECRET.kind {
        object = Object::new(&builtin::SECRET.gvk(), "");
    } else if kind.ends_with("WebhookConfiguration") {
        let mut webhooks = object.array(&["webhooks"]).to_vec();
        for webhook in &mut webhooks {
            webhook["clientConfig"]["caBundle"] = Value::Null;
        }
        object.set(&["webhooks"], webhooks.into());
    }
    object.to_value()
}
