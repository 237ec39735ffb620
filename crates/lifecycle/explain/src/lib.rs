//! Why something of OLM classic is not where its user wants it.
//!
//! ```text
//! objects of a cluster ─► World ── explain(&World, &Target) ─► Answer ─► a tree for people, JSON
//!      reasons of the resolver ─┘
//! ```
//!
//! A plain function of plain data: it reads what is written on objects and follows the way of an
//! installation (group, catalog, resolution, plan, version, Deployments, pods) until it finds what
//! stands in the way. It works on every cluster with these kinds, whoever runs it, because it relies
//! on what is API only.
//!
//! What this does not do: resolve. Whoever can asks the resolver, and hands in its reasons
//! ([`World::unresolved`]).

mod catalog;
mod command;
mod group;
mod plan;
mod subscription;
mod version;
mod workload;

use mainstay_api::names;
use mainstay_api::resources::{
    CATALOG_SOURCE, CLUSTER_SERVICE_VERSION, INSTALL_PLAN, OPERATOR_CONDITION, OPERATOR_GROUP,
    SUBSCRIPTION,
};
use mainstay_cause::Cause;
use mainstay_object::{Object, Resource, known};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::str::FromStr;

/// Kinds that are looked at, wherever they are: few and small.
pub const EVERYWHERE: [Resource; 2] = [OPERATOR_GROUP, CATALOG_SOURCE];
/// Kinds that are looked at in the namespace of the target.
pub const NEARBY: [Resource; 6] = [
    SUBSCRIPTION,
    INSTALL_PLAN,
    CLUSTER_SERVICE_VERSION,
    OPERATOR_CONDITION,
    known::DEPLOYMENT,
    known::POD,
];

/// The namespaces whose Events say why registries cannot be reached. Elsewhere nobody needs Events, of
/// which there may be many.
pub fn namespaces_of_events(objects: &[Object]) -> BTreeSet<&str> {
    let sources = objects.iter().filter(|object| object.kind() == &*CATALOG_SOURCE.kind);
    sources.filter(|source| catalog::is_unreachable(source)).map(Object::namespace).collect()
}

/// A kind that can be asked about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A wish to have a package.
    Subscription,
    /// What is created for an installation or upgrade.
    InstallPlan,
    /// A version of an operator.
    ClusterServiceVersion,
    /// Where packages come from.
    CatalogSource,
}

impl Kind {
    const ALL: [Self; 4] =
        [Self::Subscription, Self::InstallPlan, Self::ClusterServiceVersion, Self::CatalogSource];

    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Subscription => "Subscription",
            Self::InstallPlan => "InstallPlan",
            Self::ClusterServiceVersion => "ClusterServiceVersion",
            Self::CatalogSource => "CatalogSource",
        }
    }

    const fn short(self) -> &'static str {
        match self {
            Self::Subscription => "sub",
            Self::InstallPlan => "ip",
            Self::ClusterServiceVersion => "csv",
            Self::CatalogSource => "catsrc",
        }
    }
}

impl FromStr for Kind {
    type Err = Cause;

    /// Reads a kind as kubectl does: singular, plural or short, in any case, with its group or
    /// without.
    fn from_str(text: &str) -> Result<Self, Cause> {
        let word = text.to_lowercase();
        let word = word.split_once('.').map_or(&*word, |(kind, _)| kind);
        let fits = |kind: &Self| {
            let name = kind.name().to_lowercase();
            word == name
                || word == format!("{name}s")
                || word == kind.short()
                || word == format!("{}s", kind.short())
        };
        Self::ALL.into_iter().find(fits).ok_or_else(|| {
            let known = "subscription, installplan, clusterserviceversion (csv), catalogsource";
            Cause::new(format!("`{text}` is no kind that can be explained"))
                .remedy(format!("name one of {known}"))
        })
    }
}

/// What is asked about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// Its kind.
    pub kind: Kind,
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}/{}", self.kind.name(), self.namespace, self.name)
    }
}

/// What is known of a cluster.
#[derive(Clone, Debug, Default)]
pub struct World {
    /// Objects of the kinds [`EVERYWHERE`] and [`NEARBY`], and Events of [`namespaces_of_events`]; others
    /// do no harm.
    pub objects: Vec<Object>,
    /// Why Subscriptions of the target's namespace cannot be resolved, by name.
    pub unresolved: BTreeMap<String, Cause>,
    /// Whether the resolver was asked: then a Subscription without a reason can be resolved.
    pub resolved: bool,
    /// Kinds that were listed in some namespaces only, or in none.
    pub hidden: Vec<Hidden>,
}

/// A kind whose objects whoever asks may not list everywhere.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hidden {
    /// The kind, such as `CatalogSource`.
    pub kind: String,
    /// The namespaces whose objects were listed.
    pub seen_in: Vec<String>,
}

impl fmt::Display for Hidden {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { kind, seen_in } = self;
        match seen_in.as_slice() {
            [] => write!(f, "{kind}s could not be seen: your account may not list them"),
            seen => write!(
                f,
                "{kind}s outside of namespace {} could not be seen: your account may not list them",
                seen.join(", ")
            ),
        }
    }
}

impl World {
    fn of_kind<'w>(&'w self, kind: &'w str) -> impl Iterator<Item = &'w Object> {
        self.objects.iter().filter(move |object| object.kind() == kind)
    }

    fn within<'w>(&'w self, kind: &'w str, namespace: &'w str) -> impl Iterator<Item = &'w Object> {
        self.of_kind(kind).filter(move |object| object.namespace() == namespace)
    }

    fn find(&self, kind: &str, namespace: &str, name: &str) -> Option<&Object> {
        self.objects.iter().find(|object| {
            object.kind() == kind && object.namespace() == namespace && object.name() == name
        })
    }

    /// A ClusterServiceVersion that is no copy of one in another namespace.
    fn version(&self, namespace: &str, name: &str) -> Option<&Object> {
        self.find("ClusterServiceVersion", namespace, name)
            .filter(|csv| csv.label(names::COPIED_FROM).is_none())
    }

    /// The namespace of the original whose copy has a name.
    fn copied_from(&self, namespace: &str, name: &str) -> Option<&str> {
        self.find("ClusterServiceVersion", namespace, name)?.label(names::COPIED_FROM)
    }

    /// Whether objects of a kind in a namespace could not be listed: that none is known says nothing.
    fn hides(&self, kind: &str, namespace: &str) -> bool {
        self.hidden.iter().any(|hidden| {
            hidden.kind == kind && !hidden.seen_in.iter().any(|seen| seen == namespace)
        })
    }
}

/// What there is to say.
#[derive(Clone, Debug, PartialEq)]
pub struct Answer {
    /// What was asked about.
    pub target: Target,
    /// How it stands, in a sentence.
    pub standing: String,
    /// Why it is not where it should be; none if it is.
    pub why: Option<Cause>,
    /// What is not in the way, but good to know, what could not be seen among it.
    pub notes: Vec<String>,
    /// What could not be seen.
    pub hidden: Vec<Hidden>,
}

impl Answer {
    /// Whether there is nothing to explain.
    pub const fn is_healthy(&self) -> bool {
        self.why.is_none()
    }
}

/// What was found about one object: what stands in its way, and how it stands if nothing does.
struct Finding {
    standing: String,
    /// Empty if everything is well.
    causes: Vec<Cause>,
    notes: Vec<String>,
}

/// Explains an object.
///
/// # Errors
/// If it is not there.
pub fn explain(world: &World, target: &Target) -> Result<Answer, Cause> {
    let object = world
        .find(target.kind.name(), &target.namespace, &target.name)
        .ok_or_else(|| missing(world, target))?;
    let Finding { standing, causes, notes } = match target.kind {
        Kind::Subscription => subscription::finding(world, object),
        Kind::InstallPlan => plan::finding(world, object),
        Kind::ClusterServiceVersion => match object.label(names::COPIED_FROM) {
            Some(from) => explain_copy(target, from),
            None => version::finding(world, object),
        },
        Kind::CatalogSource => catalog::finding(world, object),
    };
    let why = (!causes.is_empty())
        .then(|| Cause::new(format!("{target} {standing}")).because_all(causes));
    let mut notes = notes;
    notes.extend(world.hidden.iter().map(ToString::to_string));
    let hidden = world.hidden.clone();
    Ok(Answer { target: target.clone(), standing, why, notes, hidden })
}

/// Explains a copied ClusterServiceVersion: `from` is the namespace of its original.
fn explain_copy(target: &Target, from: &str) -> Finding {
    let Target { namespace, name, .. } = target;
    Finding {
        standing: format!(
            "is a copy: it shows that the operator of ClusterServiceVersion {from}/{name} watches \
             namespace {namespace}"
        ),
        causes: Vec::new(),
        notes: vec![format!("ask about the original: mainstay why csv/{name} -n {from}")],
    }
}

/// Says that there is no such object, and where there is one or what there is instead.
fn missing(world: &World, target: &Target) -> Cause {
    let Target { kind, namespace, name } = target;
    if world.hides(kind.name(), namespace) {
        return Cause::new(format!("{target} cannot be seen"))
            .because(Cause::new(format!(
                "your account may not list {}s in namespace {namespace}",
                kind.name()
            )))
            .remedy(format!(
                "ask as somebody who has the ClusterRole `view` in namespace {namespace}"
            ));
    }
    let cause = Cause::new(format!("there is no {target}"));
    let elsewhere: Vec<&str> = world
        .of_kind(kind.name())
        .filter(|object| object.name() == name && object.label(names::COPIED_FROM).is_none())
        .map(Object::namespace)
        .collect();
    if let Some(place) = elsewhere.first() {
        return cause.remedy(format!("there is one in namespace {place}: say -n {place}"));
    }
    let mut here: Vec<&str> = world.within(kind.name(), namespace).map(Object::name).collect();
    here.sort_unstable();
    let kind = kind.name();
    match here.as_slice() {
        [] => cause.remedy(format!(
            "namespace {namespace} has none; see where there are any: kubectl get {} -A",
            kind.to_lowercase()
        )),
        some => {
            let more = if some.len() > 5 { ", …" } else { "" };
            cause.remedy(format!(
                "namespace {namespace} has {}{more}",
                some.iter().take(5).copied().collect::<Vec<_>>().join(", ")
            ))
        }
    }
}

/// Why something that is being deleted is still there.
fn leaving(object: &Object) -> Option<Cause> {
    object.is_terminating().then(|| {
        let held: Vec<&str> = object.finalizers().collect();
        let cause = Cause::new("it is being deleted");
        if held.is_empty() {
            cause
        } else {
            cause.because(
                Cause::new(format!("finalizers hold it: {}", held.join(", ")))
                    .remedy("wait for whoever they belong to; they go when its work is done"),
            )
        }
    })
}

/// A text of a value.
fn text<'v>(value: &'v Value, field: &str) -> &'v str {
    value.get(field).and_then(Value::as_str).unwrap_or_default()
}

/// The reason and message of a condition with that status.
fn condition<'o>(object: &'o Object, kind: &str, status: &str) -> Option<(&'o str, &'o str)> {
    let all = object.array(&["status", "conditions"]);
    let found = all
        .iter()
        .find(|condition| text(condition, "type") == kind && text(condition, "status") == status)?;
    Some((text(found, "reason"), text(found, "message")))
}
