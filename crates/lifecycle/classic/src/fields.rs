//! Cached fields: the few fields of each object that decisions read. Each `of` function maps an
//! object to its entry in a [`mainstay_client::Cache`]. A change that leaves the entry equal
//! triggers no reconciliation.

use crate::copied_csv::{self, ContentHash};
use crate::csv::serving::observed::Conversion;
use crate::csv::serving::required::api_service;
use crate::membership::modes::InstallModes;
use mainstay_api::{CsvPhase, CsvReason, InstallMode, InstallPlanPhase, names};
use mainstay_object::{NamespacedName, Object, OwnerReference, fnv};
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeMap;
use std::hash::Hash;
use std::sync::Arc;

/// An API that an operator provides: `Kind.version.group` in annotations.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Api {
    /// Group.
    pub(crate) group: String,
    /// Version.
    pub(crate) version: String,
    /// Kind.
    pub(crate) kind: String,
}

impl Api {
    /// The format of `olm.providedAPIs`.
    pub(crate) fn text(&self) -> String {
        format!("{}.{}.{}", self.kind, self.version, self.group)
    }

    /// Parses one entry of `olm.providedAPIs`.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let mut parts = text.splitn(3, '.');
        let (kind, version, group) = (parts.next()?, parts.next()?, parts.next()?);
        Some(Self { group: group.into(), version: version.into(), kind: kind.into() })
    }
}

/// The fields of a ClusterServiceVersion.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Csv {
    pub(crate) uid: String,
    /// The namespace of the original, if this is a copied CSV.
    pub(crate) copied_from: Option<String>,
    pub(crate) deleting: bool,
    pub(crate) finalized: bool,
    pub(crate) generation: i64,
    pub(crate) replaces: String,
    pub(crate) version: String,
    pub(crate) phase: CsvPhase,
    pub(crate) reason: CsvReason,
    pub(crate) message: String,
    /// The annotations `olm.operatorGroup`, `olm.operatorNamespace` and `olm.targetNamespaces`.
    pub(crate) membership: [Option<String>; 3],
    /// Whether its install modes do not support the target namespaces of the annotation.
    pub(crate) unsupported_targets: bool,
    /// The names of the CustomResourceDefinitions that it owns.
    pub(crate) owned_crds: Vec<String>,
    /// The names of the CustomResourceDefinitions that it owns or requires.
    pub(crate) all_crds: Vec<Arc<str>>,
    /// The names of the APIServices that it owns or requires.
    pub(crate) api_services: Vec<Arc<str>>,
    /// When its certificates are due, from its status, which users can edit.
    pub(crate) rotation: Option<String>,
    /// The APIs that it provides.
    pub(crate) provides: Vec<Api>,
    /// The APIs that it requires.
    pub(crate) requires: Vec<Api>,
    /// The names of its Deployments, and of its ServiceAccounts once for each permission.
    pub(crate) deployments: Vec<String>,
    pub(crate) accounts: Vec<String>,
    /// The names of the Operators that it is a component of.
    pub(crate) components: Vec<String>,
    /// `operatorframework.io/properties`.
    pub(crate) properties: Option<String>,
    /// `olm.skipRange`.
    pub(crate) skip_range: Option<String>,
    /// The hash of all annotations. The pods of the CSV carry them, so every change matters.
    pub(crate) annotations_hash: u64,
    /// The hash of the content of its copied CSVs. A change of nothing else only concerns the
    /// copied CSVs.
    pub(crate) copied_content: ContentHash,
}

impl Csv {
    /// Whether it is a copied CSV. One without its label is recognized by its status.
    pub(crate) fn is_copy(&self) -> bool {
        self.copied_from.is_some() || self.reason == CsvReason::Copied
    }

    /// Whether it differs in more fields than only copied CSVs show.
    pub(crate) fn differs_from(&self, before: &Self) -> bool {
        *self != Self { copied_content: self.copied_content, ..before.clone() }
    }

    /// The package that its properties name.
    pub(crate) fn package(&self) -> Option<String> {
        let properties: Value = serde_json::from_str(self.properties.as_deref()?).ok()?;
        let list = properties.get("properties")?.as_array()?;
        let package = list.iter().find(|property| text(property, "type") == "olm.package")?;
        let name = text(package.get("value")?, "packageName");
        (!name.is_empty()).then(|| name.to_owned())
    }

    pub(crate) fn of(object: &Object) -> Self {
        let crds = |which: &str| -> Vec<Value> {
            object.array(&["spec", "customresourcedefinitions", which]).to_vec()
        };
        let services = |which: &str| -> Vec<Value> {
            object.array(&["spec", "apiservicedefinitions", which]).to_vec()
        };
        let names_of = |list: &[Value]| -> Vec<String> {
            list.iter().map(|entry| text(entry, "name").to_owned()).collect()
        };
        let (owned, required) = (crds("owned"), crds("required"));
        let owned_crds = names_of(&owned);
        let all_crds = owned
            .iter()
            .chain(&required)
            .map(|description| text(description, "name").into())
            .collect();
        let api_services = services("owned")
            .iter()
            .chain(&services("required"))
            .map(|description| {
                api_service(text(description, "group"), text(description, "version")).into()
            })
            .collect();
        let provides = apis(&owned, &services("owned"));
        let requires = apis(&required, &services("required"));
        let annotation = |key: &str| object.annotation(key).map(str::to_owned);
        Self {
            uid: object.uid().to_owned(),
            copied_from: object.label(names::COPIED_FROM).map(str::to_owned),
            deleting: object.is_terminating(),
            finalized: object
                .finalizers()
                .any(|finalizer| finalizer == names::CSV_CLEANUP_FINALIZER),
            generation: object.generation(),
            replaces: object.str(&["spec", "replaces"]).unwrap_or_default().to_owned(),
            version: object.str(&["spec", "version"]).unwrap_or_default().to_owned(),
            phase: object.str(&["status", "phase"]).unwrap_or_default().into(),
            reason: object.str(&["status", "reason"]).unwrap_or_default().into(),
            message: object.str(&["status", "message"]).unwrap_or_default().to_owned(),
            membership: [
                annotation(names::OPERATOR_GROUP),
                annotation(names::OPERATOR_NAMESPACE),
                annotation(names::TARGET_NAMESPACES),
            ],
            unsupported_targets: is_target_unsupported(object),
            owned_crds,
            all_crds,
            api_services,
            rotation: object.str(&["status", "certsRotateAt"]).map(str::to_owned),
            provides,
            requires,
            deployments: names_of(object.array(&["spec", "install", "spec", "deployments"])),
            accounts: accounts(object),
            components: object
                .labels()
                .filter_map(|(key, _)| key.strip_prefix(names::COMPONENT_LABEL_PREFIX))
                .map(str::to_owned)
                .collect(),
            properties: annotation(names::PROPERTIES),
            skip_range: annotation(names::SKIP_RANGE),
            annotations_hash: object
                .get(&["metadata", "annotations"])
                .map(|all| fnv::fnv64a(all.to_string().as_bytes()))
                .unwrap_or_default(),
            copied_content: copied_csv::wanted_hash(object),
        }
    }
}

/// Whether the install modes of a CSV do not support the target namespaces of its OperatorGroup.
fn is_target_unsupported(object: &Object) -> bool {
    let Some(targets) = object.annotation(names::TARGET_NAMESPACES) else { return false };
    let modes: Vec<InstallMode> = object
        .array(&["spec", "installModes"])
        .iter()
        .filter_map(|install_mode| InstallMode::deserialize(install_mode).ok())
        .collect();
    let targets: Vec<&str> = targets.split(',').collect();
    let outcome =
        InstallModes::parse(&modes).and_then(|modes| modes.check(object.namespace(), &targets));
    outcome.is_err()
}

/// The ServiceAccounts in the permissions of a CSV; `default` if it lists none.
fn accounts(object: &Object) -> Vec<String> {
    let mut all: Vec<String> = ["clusterPermissions", "permissions"]
        .iter()
        .flat_map(|list| object.array(&["spec", "install", "spec", list]))
        .map(|permission| text(permission, "serviceAccountName").to_owned())
        .filter(|name| !name.is_empty())
        .collect();
    if all.is_empty() {
        all.push("default".to_owned());
    }
    all
}

fn text<'a>(value: &'a Value, field: &str) -> &'a str {
    value.get(field).and_then(Value::as_str).unwrap_or_default()
}

/// The APIs of CustomResourceDefinitions (named `plural.group`) and APIServices, sorted.
pub(crate) fn apis(crds: &[Value], services: &[Value]) -> Vec<Api> {
    let mut out: Vec<Api> = crds
        .iter()
        .filter_map(|description| {
            let (_, group) = text(description, "name").split_once('.')?;
            Some(Api {
                group: group.to_owned(),
                version: text(description, "version").to_owned(),
                kind: text(description, "kind").to_owned(),
            })
        })
        .chain(services.iter().map(|description| Api {
            group: text(description, "group").to_owned(),
            version: text(description, "version").to_owned(),
            kind: text(description, "kind").to_owned(),
        }))
        .collect();
    out.sort();
    out.dedup();
    out
}

/// The fields of an InstallPlan, without its steps, which hold whole manifests.
#[derive(Clone, Debug, Default, PartialEq)]
#[expect(clippy::struct_excessive_bools, reason = "independent facts, each read by its own name")]
pub(crate) struct Plan {
    pub(crate) uid: String,
    pub(crate) created: String,
    pub(crate) deleting: bool,
    pub(crate) generation: i64,
    pub(crate) approved: bool,
    pub(crate) manual: bool,
    pub(crate) csvs: Vec<String>,
    pub(crate) phase: InstallPlanPhase,
    /// Whether its steps were written.
    pub(crate) has_steps: bool,
    /// Whether a user wrote it and its steps are not resolved yet.
    pub(crate) unresolved: bool,
    /// The uids of the Subscriptions that own it.
    pub(crate) subscriptions: Vec<String>,
    /// Status, reason and message of the condition `Installed`.
    pub(crate) installed: Option<[String; 3]>,
    /// Whether permissions were missing in the last run of its steps.
    pub(crate) forbidden: bool,
    /// The CustomResourceDefinitions that its steps wait for.
    pub(crate) awaited_crds: Vec<Arc<str>>,
    /// The Subscriptions that it has yet to generate.
    pub(crate) generated_subscriptions: Vec<GeneratedSubscription>,
    /// Whether it generates the Subscriptions of all its CSVs, as they are only dependencies.
    pub(crate) only_dependencies: bool,
}

/// A Subscription that an InstallPlan generates for a dependency.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct GeneratedSubscription {
    pub(crate) name: String,
    pub(crate) package: String,
    pub(crate) channel: String,
    /// Name and namespace of its CatalogSource.
    pub(crate) source: (String, String),
    /// The CSV that the InstallPlan creates.
    pub(crate) starting_csv: String,
}

impl GeneratedSubscription {
    fn of(step: &Value) -> Option<Self> {
        let manifest: Value = serde_json::from_str(text(step.get("resource")?, "manifest")).ok()?;
        let spec = manifest.get("spec")?;
        let field = |name: &str| text(spec, name).to_owned();
        Some(Self {
            name: text(step.get("resource")?, "name").to_owned(),
            package: field("name"),
            channel: field("channel"),
            source: (field("source"), field("sourceNamespace")),
            starting_csv: field("startingCSV"),
        })
    }
}

impl Plan {
    pub(crate) fn of(object: &Object) -> Self {
        let steps = object.array(&["status", "plan"]);
        let phase: InstallPlanPhase = object.str(&["status", "phase"]).unwrap_or_default().into();
        let of_kind = |kind: &'static str| {
            let is = move |step: &&Value| {
                step.get("resource").is_some_and(|resource| text(resource, "kind") == kind)
            };
            steps.iter().filter(is)
        };
        let over = matches!(phase, InstallPlanPhase::Complete | InstallPlanPhase::Failed);
        let undone =
            |step: &&Value| !over && !matches!(text(step, "status"), "Created" | "Present");
        let subscribed: Vec<&str> =
            of_kind("Subscription").map(|step| text(step, "resolving")).collect();
        let subscriptions: Vec<String> = object
            .owner_references()
            .into_iter()
            .filter(|owner| owner.kind == "Subscription")
            .map(|owner| owner.uid)
            .collect();
        Self {
            generated_subscriptions: of_kind("Subscription")
                .filter(undone)
                .filter_map(GeneratedSubscription::of)
                .collect(),
            only_dependencies: !subscribed.is_empty()
                && of_kind("ClusterServiceVersion")
                    .all(|step| subscribed.contains(&text(step, "resolving"))),
            uid: object.uid().to_owned(),
            created: object.str(&["metadata", "creationTimestamp"]).unwrap_or_default().to_owned(),
            deleting: object.is_terminating(),
            generation: object.i64(&["spec", "generation"]).unwrap_or_default(),
            approved: object.bool(&["spec", "approved"]).unwrap_or_default(),
            manual: object.str(&["spec", "approval"]) == Some("Manual"),
            csvs: object
                .array(&["spec", "clusterServiceVersionNames"])
                .iter()
                .filter_map(Value::as_str)
                .map(str::to_owned)
                .collect(),
            has_steps: !steps.is_empty(),
            unresolved: subscriptions.is_empty()
                && steps.is_empty()
                && matches!(phase, InstallPlanPhase::None | InstallPlanPhase::Planning),
            phase,
            subscriptions,
            installed: object
                .array(&["status", "conditions"])
                .iter()
                .find(|condition| text(condition, "type") == "Installed")
                .map(|condition| {
                    ["status", "reason", "message"].map(|field| text(condition, field).to_owned())
                }),
            forbidden: object
                .str(&["status", "message"])
                .is_some_and(|message| message.contains(" is forbidden: ")),
            awaited_crds: steps
                .iter()
                .filter(|step| text(step, "status") == "WaitingForApi")
                .filter_map(|step| Some(step.get("resource")?.get("name")?.as_str()?.into()))
                .collect(),
        }
    }
}

/// The fields of a namespace.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Namespace {
    pub(crate) labels: BTreeMap<String, String>,
    pub(crate) deleting: bool,
}

impl Namespace {
    pub(crate) fn of(object: &Object) -> Self {
        Self { labels: labels(object), deleting: object.is_terminating() }
    }
}

fn labels(object: &Object) -> BTreeMap<String, String> {
    object.labels().map(|(key, value)| (key.to_owned(), value.to_owned())).collect()
}

/// The fields of a CustomResourceDefinition.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Crd {
    pub(crate) uid: String,
    /// The names of its versions, and whether each is served.
    pub(crate) versions: Vec<(String, bool)>,
    pub(crate) established: bool,
    /// Whether `spec.preserveUnknownFields` is true.
    pub(crate) preserves: bool,
    /// Its conversion, if a Service converts its objects.
    pub(crate) conversion: Option<Conversion>,
    /// The CSVs that it was installed alongside.
    pub(crate) installed_alongside: Vec<NamespacedName>,
}

impl Crd {
    pub(crate) fn of(object: &Object) -> Self {
        let holds = |kind: &str| object.condition(kind) == Some("True");
        Self {
            uid: object.uid().to_owned(),
            versions: object
                .array(&["spec", "versions"])
                .iter()
                .map(|version| {
                    let served = version.get("served").and_then(Value::as_bool).unwrap_or_default();
                    (text(version, "name").to_owned(), served)
                })
                .collect(),
            established: holds("Established") && holds("NamesAccepted"),
            preserves: object.bool(&["spec", "preserveUnknownFields"]).unwrap_or_default(),
            conversion: Conversion::of(object),
            installed_alongside: installed_alongside(object),
        }
    }
}

/// The CSVs in the `installed-alongside` annotations of a CustomResourceDefinition.
pub(crate) fn installed_alongside(object: &Object) -> Vec<NamespacedName> {
    object
        .annotations()
        .filter(|(key, _)| key.starts_with(names::INSTALLED_ALONGSIDE_PREFIX))
        .filter_map(|(_, value)| value.split_once('/'))
        .filter(|(_, name)| !name.contains('/'))
        .map(|(namespace, name)| NamespacedName::new(namespace, name))
        .collect()
}

/// The fields of a ServiceAccount.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct ServiceAccount {
    pub(crate) uid: String,
    pub(crate) managed: bool,
    pub(crate) owners: Vec<OwnerReference>,
}

impl ServiceAccount {
    pub(crate) fn of(object: &Object) -> Self {
        Self {
            uid: object.uid().to_owned(),
            managed: object.label(names::MANAGED).is_some(),
            owners: object.owner_references(),
        }
    }
}

/// `metav1` view of `rbac.v1.PolicyRule`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Rule {
    pub(crate) verbs: Vec<String>,
    pub(crate) api_groups: Vec<String>,
    pub(crate) resources: Vec<String>,
    pub(crate) resource_names: Vec<String>,
    #[serde(rename = "nonResourceURLs")]
    pub(crate) urls: Vec<String>,
}

/// The fields of a Role or ClusterRole.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Role {
    pub(crate) labels: BTreeMap<String, String>,
    pub(crate) owners: Vec<OwnerReference>,
    pub(crate) rules: Vec<Rule>,
    /// The label selectors of an aggregated ClusterRole.
    pub(crate) aggregation: Option<Value>,
}

impl Role {
    pub(crate) fn of(object: &Object) -> Self {
        Self {
            labels: labels(object),
            owners: object.owner_references(),
            rules: object.part(&["rules"]).unwrap_or_default(),
            aggregation: object.get(&["aggregationRule"]).cloned(),
        }
    }
}

/// `rbac.v1.Subject`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub(crate) struct Subject {
    pub(crate) kind: String,
    pub(crate) name: String,
    pub(crate) namespace: String,
}

/// The fields of a RoleBinding or ClusterRoleBinding.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Binding {
    pub(crate) labels: BTreeMap<String, String>,
    pub(crate) owners: Vec<OwnerReference>,
    /// Kind and name of the bound role.
    pub(crate) role: (String, String),
    pub(crate) subjects: Vec<Subject>,
    /// The user and group names of the subjects, by which the cache is indexed.
    pub(crate) subject_names: Vec<Arc<str>>,
}

impl Binding {
    pub(crate) fn of(object: &Object) -> Self {
        let subjects: Vec<Subject> = object.part(&["subjects"]).unwrap_or_default();
        let role = |field: &str| object.str(&["roleRef", field]).unwrap_or_default().to_owned();
        Self {
            labels: labels(object),
            owners: object.owner_references(),
            role: (role("kind"), role("name")),
            subject_names: subjects
                .iter()
                .map(|subject| subject.subject_name(object.namespace()))
                .collect(),
            subjects,
        }
    }
}

impl Subject {
    /// The user or group name that the API server gives to the subject.
    fn subject_name(&self, namespace: &str) -> Arc<str> {
        if self.kind == "ServiceAccount" {
            let at = if self.namespace.is_empty() { namespace } else { &self.namespace };
            format!("system:serviceaccount:{at}:{}", self.name).into()
        } else {
            self.name.as_str().into()
        }
    }
}

/// The fields of a Deployment.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Deployment {
    /// Name and namespace of the CSV in its owner labels.
    pub(crate) owner: Option<(String, String)>,
    pub(crate) owners: Vec<OwnerReference>,
    pub(crate) spec_hash: Option<String>,
    pub(crate) template_annotations: BTreeMap<String, String>,
    pub(crate) observed: bool,
    /// Replicas, updated replicas.
    pub(crate) replicas: (i64, i64),
    /// Reason of the condition `Progressing`.
    pub(crate) progressing: Option<String>,
    /// Status and message of the condition `Available`.
    pub(crate) available: Option<(String, String)>,
}

impl Deployment {
    pub(crate) fn of(object: &Object) -> Self {
        let number = |field: &str| object.i64(&["status", field]).unwrap_or_default();
        let condition = |kind: &str| {
            object
                .array(&["status", "conditions"])
                .iter()
                .find(|condition| text(condition, "type") == kind)
                .map(|condition| {
                    (
                        text(condition, "status"),
                        text(condition, "reason"),
                        text(condition, "message"),
                    )
                })
        };
        Self {
            owner: object
                .label(names::OWNER)
                .zip(object.label(names::OWNER_NAMESPACE))
                .map(|(name, namespace)| (name.to_owned(), namespace.to_owned())),
            owners: object.owner_references(),
            spec_hash: object.label(names::DEPLOYMENT_SPEC_HASH).map(str::to_owned),
            template_annotations: object
                .part(&["spec", "template", "metadata", "annotations"])
                .unwrap_or_default(),
            observed: object.generation() <= number("observedGeneration"),
            replicas: (number("replicas"), number("updatedReplicas")),
            progressing: condition("Progressing").map(|condition| condition.1.to_owned()),
            available: condition("Available")
                .map(|condition| (condition.0.to_owned(), condition.2.to_owned())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn provided_apis_come_from_crds_and_api_services() {
        let object = Object::from_value(json!({
            "metadata": {"name": "a.v1"},
            "spec": {
                "customresourcedefinitions": {
                    "owned": [{"name": "as.x.example.com", "version": "v1", "kind": "A"}],
                    "required": [{"name": "bs.x.example.com", "version": "v1", "kind": "B"}],
                },
                "apiservicedefinitions": {
                    "owned": [{"name": "cs", "group": "g", "version": "v2", "kind": "C"}],
                },
            },
        }))
        .unwrap();
        let csv = Csv::of(&object);
        let texts: Vec<String> = csv.provides.iter().map(Api::text).collect();
        assert_eq!(texts, ["C.v2.g", "A.v1.x.example.com"]);
        assert_eq!(csv.requires.iter().map(Api::text).collect::<Vec<_>>(), ["B.v1.x.example.com"]);
        assert_eq!(csv.all_crds.len(), 2);
        assert_eq!(Api::parse("A.v1.x.example.com").unwrap(), csv.provides[1]);
    }
}
