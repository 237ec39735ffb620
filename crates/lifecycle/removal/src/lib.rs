//! Uninstall plans: which objects go with an operator, which stay, and which deletions would hang.
//!
//! ```text
//! objects of a cluster ─► OperatorObjects ── plan_uninstall ─► UninstallPlan ─┬─► a preview for people, JSON
//!                                                                             └─► steps, one after the other
//! ```
//!
//! [`plan_uninstall`] is a pure function of the objects of a cluster. It reads fields of the API only, so it is
//! right for clusters of upstream OLM as well.
//!
//! Data of users stays unless they ask for its deletion: operands ([`UninstallRequest::operands`]), and the
//! CustomResourceDefinitions of the operator ([`UninstallRequest::definitions`]). Operands go first, while the
//! operator still runs and removes their finalizers. Without the operator, the deletion of an operand
//! with a finalizer would hang.
//!
//! What this crate does not do: read or delete objects. The caller does both.

mod config_maps;
mod extension;
mod parts;
mod target;

pub use config_maps::{deletable_config_maps, plans_owned_by};
pub use extension::{
    ExtensionCrd, ExtensionParts, ExtensionRemovalPlan, ExtensionRemovalRequest, LostObjects,
    is_owned_by_extension, plan_extension_removal,
};

use mainstay_api::Operator;
use mainstay_api::resources::{CLUSTER_SERVICE_VERSION, SUBSCRIPTION};
use mainstay_cause::Cause;
use mainstay_object::{NamespacedName, Object, Resource, builtin};
use std::collections::BTreeSet;
use std::fmt;

/// A request to uninstall an operator.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UninstallRequest {
    /// The namespace of the operator.
    pub namespace: String,
    /// The name of its Subscription, package or ClusterServiceVersion.
    pub name: String,
    /// Whether its operands go, too.
    pub operands: bool,
    /// Whether its CustomResourceDefinitions go, and with them all operands.
    pub definitions: bool,
}

/// The objects by which an operator is found.
#[derive(Clone, Debug, Default)]
pub struct OperatorObjects {
    /// The Subscriptions of the namespace.
    pub subscriptions: Vec<Object>,
    /// The ClusterServiceVersions of the namespace, without copied CSVs.
    pub versions: Vec<Object>,
    /// The InstallPlans of the namespace.
    pub plans: Vec<Object>,
    /// CustomResourceDefinitions, by which an operator is found that has left nothing else. Without them,
    /// only operators with a Subscription or a ClusterServiceVersion are found.
    pub definitions: Vec<Object>,
}

/// The objects that belong to an operator.
#[derive(Clone, Debug, Default)]
pub struct OperatorParts {
    /// Objects of any kind that labels or owner references join to its ClusterServiceVersions.
    pub owned: Vec<(Resource, Object)>,
    /// Its `Operator`, which lists further components.
    pub operator: Option<Object>,
    /// The number of its copied CSVs in other namespaces.
    pub copies: usize,
    /// Its CustomResourceDefinitions, each with its operands.
    pub definitions: Vec<OperatorCrd>,
    /// All ClusterServiceVersions of the cluster, as `NAMESPACE/NAME`.
    pub versions: Vec<String>,
    /// The bundle ConfigMaps that its InstallPlans reference ([`bundle_config_maps`]).
    pub unpacked: Vec<Object>,
    /// All InstallPlans of the cluster; may be empty if `unpacked` is.
    pub plans: Vec<Object>,
}

/// A CustomResourceDefinition of an operator, with its operands.
#[derive(Clone, Debug)]
pub struct OperatorCrd {
    /// The CustomResourceDefinition.
    pub definition: Object,
    /// Its objects in all namespaces.
    pub objects: Vec<Object>,
}

impl OperatorCrd {
    /// The resource that it defines, in its storage version.
    pub fn resource(&self) -> Option<Resource> {
        parts::crd_resource(&self.definition)
    }
}

/// The operator to uninstall.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InstalledOperator {
    /// The namespace of the operator.
    pub namespace: String,
    /// The namespaces that it watches; none means all.
    pub watched: Option<BTreeSet<String>>,
    /// Its package, if known.
    pub package: Option<String>,
    /// Its Subscriptions.
    pub subscriptions: Vec<String>,
    /// Its ClusterServiceVersions: several during an upgrade, none if only its
    /// CustomResourceDefinitions are left.
    pub versions: Vec<String>,
    /// The names of the CustomResourceDefinitions that it owns or has left.
    pub definitions: Vec<String>,
}

/// An object that goes, stays, or whose deletion would hang.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PlanItem {
    /// Its kind.
    pub kind: String,
    /// Its namespace; empty if it is cluster-scoped.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// The reason; may be empty.
    pub reason: String,
    /// What the user can do about it.
    pub remedy: Option<String>,
}

impl fmt::Display for PlanItem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &*self.namespace {
            "" => write!(f, "{} {}", self.kind, self.name),
            namespace => write!(f, "{} {namespace}/{}", self.kind, self.name),
        }
    }
}

/// The deletion of one object. A step ends when the object is gone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeletionStep {
    /// Whether earlier steps make the garbage collector delete it, so that this step only waits.
    pub is_garbage_collected: bool,
    /// The kind.
    pub resource: Resource,
    /// The namespace; none for a cluster-scoped object.
    pub namespace: Option<String>,
    /// The name.
    pub name: String,
    /// The uid, as a precondition: another object of the same name stays.
    pub uid: String,
}

/// An uninstall plan, and its preview.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UninstallPlan {
    /// The objects that go.
    pub deleted: Vec<PlanItem>,
    /// The objects that stay.
    pub retained: Vec<PlanItem>,
    /// The objects whose deletion would hang, because their finalizers need the operator.
    pub stuck: Vec<PlanItem>,
    /// The deletions in order; the garbage collector deletes the rest.
    pub steps: Vec<DeletionStep>,
}

/// Finds the operator that a request names.
///
/// # Errors
/// If no operator has the name, or several have.
pub fn find_operator(
    objects: &OperatorObjects,
    request: &UninstallRequest,
) -> Result<InstalledOperator, Cause> {
    target::find_target(objects, request)
}

/// The names of the CustomResourceDefinitions of an operator: those that its ClusterServiceVersions own,
/// and those that its `Operator` lists, which include those of earlier versions.
pub fn operator_crds(target: &InstalledOperator, operator: Option<&Object>) -> BTreeSet<String> {
    let operator = operator.and_then(|object| Operator::from_object(object).ok());
    let refs = operator
        .and_then(|operator| operator.status.components)
        .map(|components| components.refs)
        .unwrap_or_default();
    let crds = refs
        .into_iter()
        .filter(|component| component.kind == *builtin::CUSTOM_RESOURCE_DEFINITION.kind);
    target.definitions.iter().cloned().chain(crds.map(|component| component.name)).collect()
}

/// The bundle ConfigMaps that the InstallPlans of an operator reference: they hold manifests too large
/// for a plan.
pub fn bundle_config_maps(
    objects: &OperatorObjects,
    target: &InstalledOperator,
) -> BTreeSet<NamespacedName> {
    config_maps::find(objects, target)
}

/// Plans the uninstallation of an operator.
///
/// # Errors
/// If a CustomResourceDefinition is to go that another operator needs.
pub fn plan_uninstall(
    objects: &OperatorObjects,
    parts: &OperatorParts,
    target: &InstalledOperator,
    request: &UninstallRequest,
) -> Result<UninstallPlan, Cause> {
    let mut plan = UninstallPlan::default();
    parts::add_operands_and_crds(parts, target, request, &mut plan)?;
    // Before the Subscriptions: an interrupted uninstallation finds the ConfigMaps again through the
    // InstallPlans, which go with the Subscriptions.
    config_maps::add(objects, target, parts, &mut plan);
    for subscription in objects
        .subscriptions
        .iter()
        .filter(|subscription| contains_name(&target.subscriptions, subscription))
    {
        plan.steps.push(step(&SUBSCRIPTION, subscription));
        plan.deleted.push(item(subscription, "", None));
    }
    for csv in objects.versions.iter().filter(|csv| contains_name(&target.versions, csv)) {
        plan.steps.push(step(&CLUSTER_SERVICE_VERSION, csv));
        let copies = match parts.copies {
            0 => String::new(),
            1 => "with a copy in another namespace".to_owned(),
            many => format!("with {many} copies in other namespaces"),
        };
        plan.deleted.push(item(csv, copies, None));
    }
    parts::add_install_plans(objects, target, &mut plan);
    if request.definitions {
        for crd in &parts.definitions {
            plan.steps.push(step(&builtin::CUSTOM_RESOURCE_DEFINITION, &crd.definition));
        }
    }
    parts::add_owned(parts, &mut plan);
    parts::add_dependencies(objects, target, &mut plan);
    Ok(plan)
}

fn step(resource: &Resource, object: &Object) -> DeletionStep {
    DeletionStep {
        is_garbage_collected: false,
        resource: resource.clone(),
        namespace: resource.is_namespaced().then(|| object.namespace().to_owned()),
        name: object.name().to_owned(),
        uid: object.uid().to_owned(),
    }
}

fn contains_name(names: &[String], object: &Object) -> bool {
    names.iter().any(|name| name == object.name())
}

fn item(object: &Object, why: impl Into<String>, remedy: Option<String>) -> PlanItem {
    PlanItem {
        kind: object.kind().to_owned(),
        namespace: object.namespace().to_owned(),
        name: object.name().to_owned(),
        reason: why.into(),
        remedy,
    }
}
