//! Uninstall plans: which objects go with an operator, which stay, and which deletions would hang.
//!
//! ```text
//! objects of a cluster ─► World ── removal(&World, &Wish) ─► Removal ─┬─► a preview for people, JSON
//!                                                                     └─► steps, one after the other
//! ```
//!
//! [`removal`] is a pure function of the objects of a cluster. It reads fields of the API only, so it is
//! right for clusters of upstream OLM as well.
//!
//! Data of users stays unless they ask for its deletion: operands ([`Wish::operands`]), and the
//! CustomResourceDefinitions of the operator ([`Wish::definitions`]). Operands go first, while the
//! operator still runs and removes their finalizers. Without the operator, the deletion of an operand
//! with a finalizer would hang.
//!
//! What this crate does not do: read or delete objects. The caller does both.

mod config_maps;
mod parts;
mod target;

use mainstay_api::Operator;
use mainstay_api::resources::{CLUSTER_SERVICE_VERSION, SUBSCRIPTION};
use mainstay_cause::Cause;
use mainstay_object::{NamespacedName, Object, Resource, known};
use std::collections::BTreeSet;
use std::fmt;

/// A request to uninstall an operator.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Wish {
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
pub struct World {
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
pub struct Parts {
    /// Objects of any kind that labels or owner references join to its ClusterServiceVersions.
    pub owned: Vec<(Resource, Object)>,
    /// Its `Operator`, which lists further components.
    pub operator: Option<Object>,
    /// The number of its copied CSVs in other namespaces.
    pub copies: usize,
    /// Its CustomResourceDefinitions, each with its operands.
    pub definitions: Vec<Definition>,
    /// All ClusterServiceVersions of the cluster, as `NAMESPACE/NAME`.
    pub versions: Vec<String>,
    /// The bundle ConfigMaps that its InstallPlans reference ([`maps`]).
    pub unpacked: Vec<Object>,
    /// All InstallPlans of the cluster; may be empty if `unpacked` is.
    pub plans: Vec<Object>,
}

/// A CustomResourceDefinition of an operator, with its operands.
#[derive(Clone, Debug)]
pub struct Definition {
    /// The CustomResourceDefinition.
    pub definition: Object,
    /// Its objects in all namespaces.
    pub objects: Vec<Object>,
}

impl Definition {
    /// The resource that it defines, in its storage version.
    pub fn resource(&self) -> Option<Resource> {
        parts::crd_resource(&self.definition)
    }
}

/// The operator to uninstall.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
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
pub struct Item {
    /// Its kind.
    pub kind: String,
    /// Its namespace; empty if it is cluster-scoped.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// The reason; may be empty.
    pub why: String,
    /// What the user can do about it.
    pub remedy: Option<String>,
}

impl fmt::Display for Item {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &*self.namespace {
            "" => write!(f, "{} {}", self.kind, self.name),
            namespace => write!(f, "{} {namespace}/{}", self.kind, self.name),
        }
    }
}

/// The deletion of one object. A step ends when the object is gone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// Whether earlier steps make the garbage collector delete it, so that this step only waits.
    pub follows: bool,
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
pub struct Removal {
    /// The objects that go.
    pub goes: Vec<Item>,
    /// The objects that stay.
    pub stays: Vec<Item>,
    /// The objects whose deletion would hang, because their finalizers need the operator.
    pub hangs: Vec<Item>,
    /// The deletions in order; the garbage collector deletes the rest.
    pub steps: Vec<Step>,
}

/// Finds the operator that a request names.
///
/// # Errors
/// If no operator has the name, or several have.
pub fn target(world: &World, wish: &Wish) -> Result<Target, Cause> {
    target::find_target(world, wish)
}

/// The names of the CustomResourceDefinitions of an operator: those that its ClusterServiceVersions own,
/// and those that its `Operator` lists, which include those of earlier versions.
pub fn definitions(target: &Target, operator: Option<&Object>) -> BTreeSet<String> {
    let operator = operator.and_then(|object| Operator::from_object(object).ok());
    let refs = operator
        .and_then(|operator| operator.status.components)
        .map(|components| components.refs)
        .unwrap_or_default();
    let crds = refs
        .into_iter()
        .filter(|component| component.kind == *known::CUSTOM_RESOURCE_DEFINITION.kind);
    target.definitions.iter().cloned().chain(crds.map(|component| component.name)).collect()
}

/// The bundle ConfigMaps that the InstallPlans of an operator reference: they hold manifests too large
/// for a plan.
pub fn maps(world: &World, target: &Target) -> BTreeSet<NamespacedName> {
    config_maps::find(world, target)
}

/// Plans the uninstallation of an operator.
///
/// # Errors
/// If a CustomResourceDefinition is to go that another operator needs.
pub fn removal(
    world: &World,
    parts: &Parts,
    target: &Target,
    wish: &Wish,
) -> Result<Removal, Cause> {
    let mut removal = Removal::default();
    parts::add_operands_and_crds(parts, target, wish, &mut removal)?;
    // Before the Subscriptions: an interrupted uninstallation finds the ConfigMaps again through the
    // InstallPlans, which go with the Subscriptions.
    config_maps::add(world, target, parts, &mut removal);
    for subscription in world
        .subscriptions
        .iter()
        .filter(|subscription| contains_name(&target.subscriptions, subscription))
    {
        removal.steps.push(step(&SUBSCRIPTION, subscription));
        removal.goes.push(item(subscription, "", None));
    }
    for csv in world.versions.iter().filter(|csv| contains_name(&target.versions, csv)) {
        removal.steps.push(step(&CLUSTER_SERVICE_VERSION, csv));
        let copies = match parts.copies {
            0 => String::new(),
            1 => "with a copy in another namespace".to_owned(),
            many => format!("with {many} copies in other namespaces"),
        };
        removal.goes.push(item(csv, copies, None));
    }
    parts::add_install_plans(world, target, &mut removal);
    if wish.definitions {
        for crd in &parts.definitions {
            removal.steps.push(step(&known::CUSTOM_RESOURCE_DEFINITION, &crd.definition));
        }
    }
    parts::add_owned(parts, &mut removal);
    parts::add_dependencies(world, target, &mut removal);
    Ok(removal)
}

fn step(resource: &Resource, object: &Object) -> Step {
    Step {
        follows: false,
        resource: resource.clone(),
        namespace: resource.is_namespaced().then(|| object.namespace().to_owned()),
        name: object.name().to_owned(),
        uid: object.uid().to_owned(),
    }
}

fn contains_name(names: &[String], object: &Object) -> bool {
    names.iter().any(|name| name == object.name())
}

fn item(object: &Object, why: impl Into<String>, remedy: Option<String>) -> Item {
    Item {
        kind: object.kind().to_owned(),
        namespace: object.namespace().to_owned(),
        name: object.name().to_owned(),
        why: why.into(),
        remedy,
    }
}
