//! The way out: what goes with an operator, what stays, and what would hang.
//!
//! ```text
//! objects of a cluster ─► World ── removal(&World, &Wish) ─► Removal ─┬─► a preview for people, JSON
//!                                                                     └─► steps, one after the other
//! ```
//!
//! A plain function of plain data. It relies on what is API only, so it is right about every cluster
//! that runs operators in this way, whoever does it.
//!
//! Nothing that people have made goes unless they say so: objects of the operator's kinds
//! ([`Wish::operands`]), and the kinds themselves ([`Wish::definitions`]). Objects go first, while the
//! operator is still there to take away what belongs to them; without it, those with finalizers would
//! hang.

mod parts;
mod target;
mod unpacked;

use mainstay_api::Operator;
use mainstay_api::resources::{CLUSTER_SERVICE_VERSION, SUBSCRIPTION};
use mainstay_cause::Cause;
use mainstay_object::{NamespacedName, Object, Resource, known};
use std::collections::BTreeSet;
use std::fmt;

/// Which operator, and what of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Wish {
    /// Where it is.
    pub namespace: String,
    /// Its Subscription, its package or its version.
    pub name: String,
    /// Whether objects of the kinds that it provides go, too.
    pub operands: bool,
    /// Whether the definitions of these kinds go, and with them all objects.
    pub definitions: bool,
}

/// What is known of a cluster.
#[derive(Clone, Debug, Default)]
pub struct World {
    /// The Subscriptions of the namespace.
    pub subscriptions: Vec<Object>,
    /// The versions of the namespace, without copies.
    pub versions: Vec<Object>,
    /// The install plans of the namespace.
    pub plans: Vec<Object>,
    /// Definitions, by which an operator is found of which nothing else is left. Who has not read them
    /// finds only operators that have a Subscription or a version.
    pub definitions: Vec<Object>,
}

/// What is known of the parts of an operator.
#[derive(Clone, Debug, Default)]
pub struct Parts {
    /// What belongs to the operator's versions, by labels or as its owner, of any kind.
    pub owned: Vec<(Resource, Object)>,
    /// Its `Operator`, which lists further parts.
    pub operator: Option<Object>,
    /// Copies of its versions in other namespaces.
    pub copies: usize,
    /// The definitions that it owns, and the objects of each.
    pub definitions: Vec<Definition>,
    /// Names of all versions of the cluster, as `NAMESPACE/NAME`.
    pub versions: Vec<String>,
    /// The `ConfigMaps` that the operator's plans refer to, as [`maps`] names them.
    pub unpacked: Vec<Object>,
    /// All plans of the cluster; who has no such `ConfigMaps` need not read them.
    pub plans: Vec<Object>,
}

/// A kind that an operator provides.
#[derive(Clone, Debug)]
pub struct Definition {
    /// The definition.
    pub definition: Object,
    /// The objects of it.
    pub objects: Vec<Object>,
}

impl Definition {
    /// The kind that it defines, in the version that is stored.
    pub fn resource(&self) -> Option<Resource> {
        parts::resource(&self.definition)
    }
}

/// The operator that is meant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// Where it is.
    pub namespace: String,
    /// The namespaces that it watches; none stands for all.
    pub watched: Option<BTreeSet<String>>,
    /// Its package, if that is known.
    pub package: Option<String>,
    /// Its Subscriptions.
    pub subscriptions: Vec<String>,
    /// Its versions: several in the middle of an upgrade, none if only definitions are left of it.
    pub versions: Vec<String>,
    /// Names of the definitions that the versions own, or that are left of them.
    pub definitions: Vec<String>,
}

/// Something that goes, stays or would hang.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Item {
    /// Its kind.
    pub kind: String,
    /// Its namespace; empty if it has none.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// Why it does; empty where there is nothing to say.
    pub why: String,
    /// What people can do about it.
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

/// One request. Each waits until what it deletes is gone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// Whether it goes with what was deleted before, and is only waited for.
    pub follows: bool,
    /// The kind.
    pub resource: Resource,
    /// The namespace; none for what has none.
    pub namespace: Option<String>,
    /// The name.
    pub name: String,
    /// The object that is meant: another one of its name stays.
    pub uid: String,
}

/// What is to be done, and what comes of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Removal {
    /// What goes.
    pub goes: Vec<Item>,
    /// What stays.
    pub stays: Vec<Item>,
    /// What would hang: its finalizers need the operator.
    pub hangs: Vec<Item>,
    /// What is deleted, in this order; the rest goes with it.
    pub steps: Vec<Step>,
}

/// Finds the operator that is meant.
///
/// # Errors
/// If there is none, or if the name means several.
pub fn target(world: &World, wish: &Wish) -> Result<Target, Cause> {
    target::find(world, wish)
}

/// Names of the definitions that belong to an operator: those that its versions own, and those that its
/// `Operator` lists, which earlier versions have brought.
pub fn definitions(target: &Target, operator: Option<&Object>) -> BTreeSet<String> {
    let listed = operator.and_then(|object| Operator::from_object(object).ok());
    let refs = listed
        .and_then(|operator| operator.status.components)
        .map(|components| components.refs)
        .unwrap_or_default();
    let named = refs
        .into_iter()
        .filter(|component| component.kind == *known::CUSTOM_RESOURCE_DEFINITION.kind);
    target.definitions.iter().cloned().chain(named.map(|component| component.name)).collect()
}

/// The `ConfigMaps` that have what the operator's plans have installed, where that was too much for a plan.
pub fn maps(world: &World, target: &Target) -> BTreeSet<NamespacedName> {
    unpacked::maps(world, target)
}

/// Says what goes, what stays, and in which order to do it.
///
/// # Errors
/// If definitions should go that another operator needs.
pub fn removal(
    world: &World,
    parts: &Parts,
    target: &Target,
    wish: &Wish,
) -> Result<Removal, Cause> {
    let mut removal = Removal::default();
    parts::operands(parts, target, wish, &mut removal)?;
    // They are found by the plans, which go with the Subscriptions: who is interrupted finds them again.
    unpacked::unpacked(world, target, parts, &mut removal);
    for subscription in
        world.subscriptions.iter().filter(|subscription| has(&target.subscriptions, subscription))
    {
        removal.steps.push(step(&SUBSCRIPTION, subscription));
        removal.goes.push(item(subscription, "", None));
    }
    for csv in world.versions.iter().filter(|csv| has(&target.versions, csv)) {
        removal.steps.push(step(&CLUSTER_SERVICE_VERSION, csv));
        let copies = match parts.copies {
            0 => String::new(),
            1 => "with a copy in another namespace".to_owned(),
            many => format!("with {many} copies in other namespaces"),
        };
        removal.goes.push(item(csv, copies, None));
    }
    parts::plans(world, target, &mut removal);
    if wish.definitions {
        for crd in &parts.definitions {
            removal.steps.push(step(&known::CUSTOM_RESOURCE_DEFINITION, &crd.definition));
        }
    }
    parts::owned(parts, &mut removal);
    parts::dependencies(world, target, &mut removal);
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

fn has(names: &[String], object: &Object) -> bool {
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
