//! Explanations: why a Subscription, InstallPlan, ClusterServiceVersion or CatalogSource of OLM classic, or a
//! ClusterExtension, ClusterCatalog or ClusterObjectSet of OLM v1 is not healthy, and which command changes that.
//!
//! ```text
//! objects of a cluster ─► ClusterObjects ── explain(&ClusterObjects, &ExplainedObject) ─► Explanation ─► a tree for people, JSON
//!      reasons of the resolver ─┘
//! ```
//!
//! [`explain`] is a pure function of the objects of a cluster. It follows the stages of an installation
//! (OperatorGroup, catalog, resolution, InstallPlan, ClusterServiceVersion, Deployments, Pods) and
//! reports the stage that blocks. It reads fields of the API only, so it works on clusters of upstream
//! OLM as well.
//!
//! What this crate does not do: read catalogs. For OLM classic, the caller runs the resolver and passes its
//! failures in [`ClusterObjects::unresolved`]; for OLM v1, it passes an [`ExtensionResolution`].

mod catalog;
mod command;
mod csv;
mod install_plan;
mod olm_v1;
mod operator_group;
mod subscription;
mod workload;

pub use olm_v1::{
    DependencyCheck, ExtensionResolution, FetchedPackage, permission_remedy, selected_catalogs,
};

use mainstay_api::names;
use mainstay_api::resources::{
    CATALOG_SOURCE, CLUSTER_SERVICE_VERSION, INSTALL_PLAN, OPERATOR_CONDITION, OPERATOR_GROUP,
    SUBSCRIPTION,
};
use mainstay_cause::Cause;
use mainstay_object::{Object, Resource, builtin};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::str::FromStr;

/// Kinds that are read in all namespaces: their objects are few and small.
pub const CLUSTER_WIDE_KINDS: [Resource; 2] = [OPERATOR_GROUP, CATALOG_SOURCE];
/// Kinds that are read in the namespace of the target.
pub const NAMESPACE_KINDS: [Resource; 6] = [
    SUBSCRIPTION,
    INSTALL_PLAN,
    CLUSTER_SERVICE_VERSION,
    OPERATOR_CONDITION,
    builtin::DEPLOYMENT,
    builtin::POD,
];

/// The namespaces of unreachable CatalogSources, whose Events say why their registry does not respond.
/// The caller reads no other Events, as a cluster may have many.
pub fn namespaces_of_events(objects: &[Object]) -> BTreeSet<&str> {
    let sources = objects.iter().filter(|object| object.kind() == &*CATALOG_SOURCE.kind);
    sources.filter(|source| catalog::is_unreachable(source)).map(Object::namespace).collect()
}

/// A kind that can be explained.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExplainedKind {
    /// A requested package.
    Subscription,
    /// The steps of an installation or upgrade.
    InstallPlan,
    /// An installed version of an operator.
    ClusterServiceVersion,
    /// A catalog of packages.
    CatalogSource,
    /// A requested package of OLM v1.
    ClusterExtension,
    /// A catalog of packages of OLM v1.
    ClusterCatalog,
    /// A revision of a ClusterExtension.
    ClusterObjectSet,
}

impl ExplainedKind {
    const ALL: [Self; 7] = [
        Self::Subscription,
        Self::InstallPlan,
        Self::ClusterServiceVersion,
        Self::CatalogSource,
        Self::ClusterExtension,
        Self::ClusterCatalog,
        Self::ClusterObjectSet,
    ];

    /// The kind as manifests write it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Subscription => "Subscription",
            Self::InstallPlan => "InstallPlan",
            Self::ClusterServiceVersion => "ClusterServiceVersion",
            Self::CatalogSource => "CatalogSource",
            Self::ClusterExtension => "ClusterExtension",
            Self::ClusterCatalog => "ClusterCatalog",
            Self::ClusterObjectSet => "ClusterObjectSet",
        }
    }

    /// The short name, if the kind has one.
    const fn short_name(self) -> Option<&'static str> {
        match self {
            Self::Subscription => Some("sub"),
            Self::InstallPlan => Some("ip"),
            Self::ClusterServiceVersion => Some("csv"),
            Self::CatalogSource => Some("catsrc"),
            Self::ClusterExtension | Self::ClusterCatalog | Self::ClusterObjectSet => None,
        }
    }

    /// Whether objects of the kind belong to no namespace: the kinds of OLM v1 do not.
    pub const fn is_cluster_scoped(self) -> bool {
        matches!(self, Self::ClusterExtension | Self::ClusterCatalog | Self::ClusterObjectSet)
    }
}

impl FromStr for ExplainedKind {
    type Err = Cause;

    /// Parses a kind as kubectl does: singular, plural or short name, in any case, with or without its
    /// API group.
    fn from_str(text: &str) -> Result<Self, Cause> {
        let word = text.to_lowercase();
        let word = word.split_once('.').map_or(&*word, |(kind, _)| kind);
        let is_word = |name: &str| word == name || word.strip_suffix('s') == Some(name);
        let matches = |kind: &Self| {
            is_word(&kind.name().to_lowercase()) || kind.short_name().is_some_and(is_word)
        };
        Self::ALL.into_iter().find(matches).ok_or_else(|| {
            let known = "subscription, installplan, clusterserviceversion (csv), catalogsource, clusterextension, clustercatalog, clusterobjectset";
            Cause::new(format!("`{text}` is not a kind that can be explained"))
                .remedy(format!("name one of {known}"))
        })
    }
}

/// The object to explain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExplainedObject {
    /// Its kind.
    pub kind: ExplainedKind,
    /// Its namespace; empty if its kind is cluster-scoped.
    pub namespace: String,
    /// Its name.
    pub name: String,
}

impl fmt::Display for ExplainedObject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &*self.namespace {
            "" => write!(f, "{} {}", self.kind.name(), self.name),
            namespace => write!(f, "{} {namespace}/{}", self.kind.name(), self.name),
        }
    }
}

/// The objects of a cluster, as far as the caller has read them.
#[derive(Clone, Debug, Default)]
pub struct ClusterObjects {
    /// For OLM classic: objects of the kinds [`CLUSTER_WIDE_KINDS`] and [`NAMESPACE_KINDS`], and Events of
    /// [`namespaces_of_events`]. For OLM v1: objects of its kinds, the objects with the labels of the
    /// ClusterExtension, Pods, and the Namespace. Other objects have no effect.
    pub objects: Vec<Object>,
    /// The resolution of the ClusterExtension that is explained, if the catalogs are known.
    pub resolution: Option<ExtensionResolution>,
    /// Resolution failures of Subscriptions in the namespace of the target, by name.
    pub unresolved: BTreeMap<String, Cause>,
    /// Whether the resolver ran: then a Subscription without an entry in `unresolved` can be resolved.
    pub resolved: bool,
    /// Kinds that the account may list in some namespaces only, or in none.
    pub hidden: Vec<HiddenKind>,
}

/// A kind that the account may not list in all namespaces.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HiddenKind {
    /// The kind, such as `CatalogSource`.
    pub kind: String,
    /// The namespaces whose objects were listed.
    pub readable_namespaces: Vec<String>,
}

impl fmt::Display for HiddenKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { kind, readable_namespaces: seen_in } = self;
        match seen_in.as_slice() {
            [] => write!(f, "{kind}s could not be read: your account may not list them"),
            seen => write!(
                f,
                "{kind}s outside of namespace {} could not be read: your account may not list them",
                seen.join(", ")
            ),
        }
    }
}

impl ClusterObjects {
    fn of_kind<'w>(&'w self, kind: &'w str) -> impl Iterator<Item = &'w Object> {
        self.objects.iter().filter(move |object| object.kind() == kind)
    }

    fn in_namespace<'w>(
        &'w self,
        kind: &'w str,
        namespace: &'w str,
    ) -> impl Iterator<Item = &'w Object> {
        self.of_kind(kind).filter(move |object| object.namespace() == namespace)
    }

    fn find(&self, kind: &str, namespace: &str, name: &str) -> Option<&Object> {
        self.objects.iter().find(|object| {
            object.kind() == kind && object.namespace() == namespace && object.name() == name
        })
    }

    /// The ClusterServiceVersion of a name, unless it is a copied CSV.
    fn csv(&self, namespace: &str, name: &str) -> Option<&Object> {
        self.find("ClusterServiceVersion", namespace, name)
            .filter(|csv| csv.label(names::COPIED_FROM).is_none())
    }

    /// The namespace of the original of a copied CSV.
    fn copied_from(&self, namespace: &str, name: &str) -> Option<&str> {
        self.find("ClusterServiceVersion", namespace, name)?.label(names::COPIED_FROM)
    }

    /// Whether the account may not list a kind in a namespace: an object that was not read may exist.
    fn hides(&self, kind: &str, namespace: &str) -> bool {
        self.hidden.iter().any(|hidden_kind| {
            hidden_kind.kind == kind
                && !hidden_kind.readable_namespaces.iter().any(|seen| seen == namespace)
        })
    }
}

/// The explanation of an object.
#[derive(Clone, Debug, PartialEq)]
pub struct Explanation {
    /// The object.
    pub target: ExplainedObject,
    /// Its state, as the rest of a sentence after its name.
    pub state: String,
    /// Why it is not healthy; none if it is.
    pub cause: Option<Cause>,
    /// Remarks that do not block the object, including one for each entry of `hidden`.
    pub notes: Vec<String>,
    /// The kinds that the account may not list everywhere.
    pub hidden: Vec<HiddenKind>,
    /// Of a ClusterExtension: its resolution, if the catalogs are known.
    pub resolution: Option<ExtensionResolution>,
}

impl Explanation {
    /// Whether nothing blocks the object.
    pub const fn is_healthy(&self) -> bool {
        self.cause.is_none()
    }
}

/// The findings about one object.
struct Finding {
    state: String,
    /// What blocks the object; empty if it is healthy.
    causes: Vec<Cause>,
    notes: Vec<String>,
}

/// Explains an object.
///
/// # Errors
/// If the object does not exist, or the account may not see it.
pub fn explain(cluster: &ClusterObjects, target: &ExplainedObject) -> Result<Explanation, Cause> {
    let Some(object) = cluster.find(target.kind.name(), &target.namespace, &target.name) else {
        let is_extension = target.kind == ExplainedKind::ClusterExtension;
        let leftover = is_extension.then(|| olm_v1::deleted_extension_finding(cluster, target));
        let finding = leftover.flatten().ok_or_else(|| not_found(cluster, target))?;
        return Ok(explanation(cluster, target, finding));
    };
    let finding = match target.kind {
        ExplainedKind::Subscription => subscription::finding(cluster, object),
        ExplainedKind::InstallPlan => install_plan::finding(cluster, object),
        ExplainedKind::ClusterServiceVersion => match object.label(names::COPIED_FROM) {
            Some(from) => explain_copied_csv(target, from),
            None => csv::finding(cluster, object),
        },
        ExplainedKind::CatalogSource => catalog::finding(cluster, object),
        ExplainedKind::ClusterExtension => olm_v1::extension_finding(cluster, object),
        ExplainedKind::ClusterCatalog => olm_v1::cluster_catalog_finding(object),
        ExplainedKind::ClusterObjectSet => olm_v1::object_set_finding(cluster, object),
    };
    Ok(explanation(cluster, target, finding))
}

/// The explanation of a finding.
fn explanation(
    cluster: &ClusterObjects,
    target: &ExplainedObject,
    finding: Finding,
) -> Explanation {
    let Finding { state: standing, causes, notes } = finding;
    let why = (!causes.is_empty())
        .then(|| Cause::new(format!("{target} {standing}")).because_all(causes));
    let mut notes = notes;
    notes.extend(cluster.hidden.iter().map(ToString::to_string));
    Explanation {
        target: target.clone(),
        state: standing,
        cause: why,
        notes,
        hidden: cluster.hidden.clone(),
        resolution: cluster.resolution.clone(),
    }
}

/// Explains a copied CSV; `from` is the namespace of its original.
fn explain_copied_csv(target: &ExplainedObject, from: &str) -> Finding {
    let ExplainedObject { namespace, name, .. } = target;
    Finding {
        state: format!(
            "is a copy: it shows that the operator of ClusterServiceVersion {from}/{name} watches \
             namespace {namespace}"
        ),
        causes: Vec::new(),
        notes: vec![format!("explain the original: mainstay why csv/{name} -n {from}")],
    }
}

/// The error for an object that does not exist. Its remedy names another namespace that has the object,
/// or the objects of the same kind in the namespace.
fn not_found(cluster: &ClusterObjects, target: &ExplainedObject) -> Cause {
    let ExplainedObject { kind, namespace, name } = target;
    if kind.is_cluster_scoped() {
        return cluster_scoped_not_found(cluster, target);
    }
    if cluster.hides(kind.name(), namespace) {
        return Cause::new(format!("{target} cannot be read"))
            .because(Cause::new(format!(
                "your account may not list {}s in namespace {namespace}",
                kind.name()
            )))
            .remedy(format!(
                "use an account with the ClusterRole `view` in namespace {namespace}"
            ));
    }
    let cause = Cause::new(format!("there is no {target}"));
    let namespaces: Vec<&str> = cluster
        .of_kind(kind.name())
        .filter(|object| object.name() == name && object.label(names::COPIED_FROM).is_none())
        .map(Object::namespace)
        .collect();
    if let Some(other) = namespaces.first() {
        return cause.remedy(format!("namespace {other} has one: add -n {other}"));
    }
    let mut names: Vec<&str> =
        cluster.in_namespace(kind.name(), namespace).map(Object::name).collect();
    names.sort_unstable();
    let kind = kind.name();
    match names.as_slice() {
        [] => cause.remedy(format!(
            "namespace {namespace} has none; list those of all namespaces: kubectl get {} -A",
            kind.to_lowercase()
        )),
        names => {
            let more = if names.len() > 5 { ", …" } else { "" };
            cause.remedy(format!(
                "namespace {namespace} has {}{more}",
                names.iter().take(5).copied().collect::<Vec<_>>().join(", ")
            ))
        }
    }
}

/// The error for a cluster-scoped object that does not exist.
fn cluster_scoped_not_found(cluster: &ClusterObjects, target: &ExplainedObject) -> Cause {
    let kind = target.kind.name();
    let word = kind.to_lowercase();
    if cluster.hides(kind, "") {
        let why = Cause::new(format!("your account may not list {kind}s"));
        return Cause::new(format!("{target} cannot be read")).because(why).remedy(format!(
            "use an account for which this prints yes: kubectl auth can-i list {word}s"
        ));
    }
    let mut names: Vec<&str> = cluster.of_kind(kind).map(Object::name).collect();
    names.sort_unstable();
    let cause = Cause::new(format!("there is no {target}"));
    match names.as_slice() {
        [] => cause.remedy(format!("there are none at all; list them: kubectl get {word}s")),
        names => {
            let more = if names.len() > 5 { ", …" } else { "" };
            let names = names.iter().take(5).copied().collect::<Vec<_>>().join(", ");
            cause.remedy(format!("name one of {names}{more}"))
        }
    }
}

/// The finalizers of an object that is being deleted.
fn deletion_cause(object: &Object) -> Option<Cause> {
    object.is_terminating().then(|| {
        let finalizers: Vec<&str> = object.finalizers().collect();
        let cause = Cause::new("it is being deleted");
        if finalizers.is_empty() {
            cause
        } else {
            cause.because(
                Cause::new(format!("its finalizers block the deletion: {}", finalizers.join(", ")))
                    .remedy(
                        "wait for their controllers, which remove them when their work is done",
                    ),
            )
        }
    })
}

/// A text field of a JSON object; empty if it is missing.
fn text<'v>(value: &'v Value, field: &str) -> &'v str {
    value.get(field).and_then(Value::as_str).unwrap_or_default()
}

/// Reason and message of a condition, if it has the status.
fn condition<'o>(object: &'o Object, kind: &str, status: &str) -> Option<(&'o str, &'o str)> {
    let conditions = object.array(&["status", "conditions"]);
    let found = conditions
        .iter()
        .find(|condition| text(condition, "type") == kind && text(condition, "status") == status)?;
    Some((text(found, "reason"), text(found, "message")))
}
