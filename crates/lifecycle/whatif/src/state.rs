//! Cluster state: the Subscriptions, ClusterServiceVersions, OperatorGroups and catalogs that
//! resolution reads, taken from objects of a live cluster or of a saved file.

use crate::request::CatalogName;
use mainstay_api::names;
use mainstay_api::resources::{CATALOG_SOURCE, OPERATOR_GROUP};
use mainstay_explain::HiddenKind;
use mainstay_object::{Object, Resource};
use mainstay_resolver::{
    CatalogKey, CrdReference, ExistingCsv, OperatorApi, OperatorGroup, Subscription,
};
use mainstay_version::{Version, parse_tolerant};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// Namespaces whose catalogs every namespace sees, in clusters as they are usually set up.
const GLOBAL: [&str; 2] = ["olm", "openshift-marketplace"];

/// The Subscription whose ClusterServiceVersion is missing from a state without any.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "Subscription {subscription} has {csv} installed, and the state has no ClusterServiceVersions"
)]
pub struct MissingVersions {
    /// The Subscription, as `NAMESPACE/NAME`.
    pub subscription: String,
    /// The name of its ClusterServiceVersion.
    pub csv: String,
}

/// A remark on a state that does not prevent a resolution.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Note {
    /// The account may not list a kind everywhere.
    Hidden(HiddenKind),
    /// A saved file holds an empty List.
    EmptyList {
        /// The file.
        file: String,
    },
    /// A Subscription has a ClusterServiceVersion installed that does not exist.
    DeletedVersion {
        /// The Subscription, as `NAMESPACE/NAME`.
        subscription: String,
        /// The name of its ClusterServiceVersion.
        csv: String,
    },
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Hidden(hidden) => hidden.fmt(f),
            Self::EmptyList { file } => {
                write!(f, "{file} holds an empty List: a cluster without operators")
            }
            Self::DeletedVersion { subscription, csv } => write!(
                f,
                "Subscription {subscription} has {csv} installed, but this ClusterServiceVersion does not exist: it was deleted, and is installed again if its channel has it"
            ),
        }
    }
}

/// The state of a cluster, as far as resolution reads it.
#[derive(Debug, Default)]
pub struct ClusterState {
    /// The CatalogSources.
    pub sources: BTreeMap<CatalogKey, CatalogSourceState>,
    /// The namespaces with OperatorGroups, Subscriptions or ClusterServiceVersions.
    pub namespaces: BTreeMap<String, NamespaceState>,
    /// Whether any OperatorGroup exists; a state that was saved without them has none.
    pub has_groups: bool,
    /// The version of Kubernetes, where it is known.
    pub kube_version: Option<Version>,
    /// Every ClusterExtension that is resolved.
    pub extensions: Vec<Object>,
    /// ClusterExtensions that are not resolved: what they have installed can satisfy dependencies.
    pub other_extensions: Vec<Object>,
    /// Every ClusterCatalog.
    pub cluster_catalogs: Vec<Object>,
    /// Remarks for users.
    pub notes: Vec<Note>,
    /// The catalogs that Subscriptions name or see, by namespace.
    seen_catalogs: BTreeMap<String, BTreeSet<CatalogKey>>,
}

/// A CatalogSource.
#[derive(Debug, Default)]
pub struct CatalogSourceState {
    /// Its priority.
    pub priority: i64,
    /// The address of its registry, from its status or its spec.
    pub address: String,
    /// The state of the connection in its status, such as `TRANSIENT_FAILURE`.
    pub connection: String,
    /// Whether a Subscription names it and the account may not see it.
    pub is_hidden: bool,
}

/// A namespace.
#[derive(Debug, Default)]
pub struct NamespaceState {
    /// Its OperatorGroups.
    pub groups: Vec<OperatorGroup>,
    /// Its Subscriptions.
    pub subscriptions: Vec<Subscription>,
    /// The names of Subscriptions with manual approval.
    pub manual: BTreeSet<String>,
    /// Its ClusterServiceVersions.
    pub csvs: Vec<ExistingCsv>,
    /// Reason and message of the conditions `ResolutionFailed` of Subscriptions, by name.
    pub failing: BTreeMap<String, String>,
}

impl ClusterState {
    /// Adds an object. Kinds that resolution does not read are ignored.
    pub fn add(&mut self, object: Object) {
        let group = object.api_version().split_once('/').map_or("", |(group, _)| group).to_owned();
        match (&*group, object.kind()) {
            ("operators.coreos.com", "CatalogSource") => self.source(&object),
            ("operators.coreos.com", "OperatorGroup") => self.group(&object),
            ("operators.coreos.com", "Subscription") => self.subscription(&object),
            ("operators.coreos.com", "ClusterServiceVersion") => {
                self.namespace(&object).csvs.push(csv(&object));
            }
            ("olm.operatorframework.io", "ClusterExtension") => self.extensions.push(object),
            ("olm.operatorframework.io", "ClusterCatalog") => self.cluster_catalogs.push(object),
            _ => {}
        }
    }

    /// Restricts the state to one namespace of which some kinds are hidden from the account: a
    /// catalog that a Subscription names or sees is not absent, nor are OperatorGroups.
    pub fn restrict_to(&mut self, namespace: &str, hidden: &[HiddenKind]) {
        self.notes.extend(hidden.iter().cloned().map(Note::Hidden));
        let find_hidden =
            |kind: &Resource| hidden.iter().find(|hidden_kind| hidden_kind.kind == kind.kind);
        self.has_groups = find_hidden(&OPERATOR_GROUP).is_none();
        let Some(hidden) = find_hidden(&CATALOG_SOURCE) else { return };
        for key in self.seen_catalogs.get(namespace).into_iter().flatten() {
            if !hidden.readable_namespaces.iter().any(|seen| *seen == *key.namespace) {
                let source =
                    CatalogSourceState { is_hidden: true, ..CatalogSourceState::default() };
                self.sources.entry(key.clone()).or_insert(source);
            }
        }
    }

    /// Adds a note for each Subscription whose installed ClusterServiceVersion does not exist.
    ///
    /// # Errors
    /// If no ClusterServiceVersion exists at all and the state is not `complete`: it was saved without
    /// them, and does not say which versions are installed.
    pub fn note_deleted_versions(&mut self, complete: bool) -> Result<(), MissingVersions> {
        let all = self.namespaces.values().map(|state| state.csvs.len()).sum::<usize>();
        let mut missing = Vec::new();
        for (namespace, state) in &self.namespaces {
            for subscription in &state.subscriptions {
                let csv = &subscription.installed_csv;
                if !csv.is_empty() && !state.csvs.iter().any(|existing| existing.name == *csv) {
                    missing.push((format!("{namespace}/{}", subscription.name), csv.clone()));
                }
            }
        }
        if let Some((subscription, csv)) = missing.first()
            && all == 0
            && !complete
        {
            return Err(MissingVersions { subscription: subscription.clone(), csv: csv.clone() });
        }
        let notes = missing.into_iter();
        self.notes
            .extend(notes.map(|(subscription, csv)| Note::DeletedVersion { subscription, csv }));
        Ok(())
    }

    /// Whether a name means a ClusterCatalog: one of that name, or a new one where ClusterExtensions
    /// exist.
    pub fn is_for_extensions(&self, name: &CatalogName) -> bool {
        let is_known = self.cluster_catalogs.iter().any(|catalog| catalog.name() == name.name);
        let is_source = self.sources.keys().any(|key| name.matches(key));
        name.namespace.is_none() && !self.extensions.is_empty() && (is_known || !is_source)
    }

    /// Whether a name means a CatalogSource: one of that name, or a new one where it is not a
    /// ClusterCatalog only. `requests_packages` says whether packages are requested beside the
    /// Subscriptions of the state.
    pub fn is_for_subscriptions(&self, name: &CatalogName, requests_packages: bool) -> bool {
        let is_source = self.sources.keys().any(|key| name.matches(key));
        let is_known = self.cluster_catalogs.iter().any(|catalog| catalog.name() == name.name);
        let has_requests = requests_packages || !self.subscribed().is_empty();
        is_source || !self.is_for_extensions(name) || has_requests && !is_known
    }

    /// Whether a name means a ClusterCatalog and no CatalogSource.
    pub fn is_for_extensions_only(&self, name: &CatalogName, requests_packages: bool) -> bool {
        self.is_for_extensions(name) && !self.is_for_subscriptions(name, requests_packages)
    }

    /// The namespaces that objects of the state are in.
    pub fn known_namespaces(&self) -> BTreeSet<&str> {
        let sources = self.sources.keys().map(|key| &*key.namespace);
        self.namespaces.keys().map(String::as_str).chain(sources).collect()
    }

    fn namespace(&mut self, object: &Object) -> &mut NamespaceState {
        self.namespaces.entry(object.namespace().to_owned()).or_default()
    }

    fn source(&mut self, object: &Object) {
        let connection =
            |field| object.str(&["status", "connectionState", field]).unwrap_or_default();
        let address = [connection("address"), text(object, &["spec", "address"])]
            .into_iter()
            .find(|address| !address.is_empty());
        let source = CatalogSourceState {
            priority: object.i64(&["spec", "priority"]).unwrap_or_default(),
            address: address.unwrap_or_default().to_owned(),
            connection: connection("lastObservedState").to_owned(),
            is_hidden: false,
        };
        self.sources.insert(CatalogKey::new(object.name(), object.namespace()), source);
    }

    fn group(&mut self, object: &Object) {
        self.has_groups = true;
        let exclude = object.annotation(names::EXCLUDE_GLOBAL_NAMESPACE_RESOLUTION);
        let group = OperatorGroup {
            name: object.name().to_owned(),
            fail_forward: text(object, &["spec", "upgradeStrategy"])
                == "TechPreviewUnsafeFailForward",
            exclude_global: exclude == Some("true"),
        };
        self.namespace(object).groups.push(group);
    }

    fn subscription(&mut self, object: &Object) {
        let catalogs = catalogs_of(object).into_iter();
        self.seen_catalogs
            .entry(object.namespace().to_owned())
            .or_default()
            .extend(catalogs.map(|(namespace, name)| CatalogKey::new(name, namespace)));
        let namespace = self.namespace(object);
        if text(object, &["spec", "installPlanApproval"]) == "Manual" {
            namespace.manual.insert(object.name().to_owned());
        }
        if object.condition("ResolutionFailed") == Some("True") {
            let conditions = object.array(&["status", "conditions"]);
            let failed =
                conditions.iter().find(|condition| condition["type"] == "ResolutionFailed");
            let words = failed.map(|condition| {
                format!("{}: {}", field(condition, "reason"), field(condition, "message"))
            });
            namespace.failing.insert(object.name().to_owned(), words.unwrap_or_default());
        }
        let text = |path: &[&str]| text(object, path).to_owned();
        namespace.subscriptions.push(Subscription {
            name: object.name().to_owned(),
            package: text(&["spec", "name"]),
            channel: text(&["spec", "channel"]),
            catalog: CatalogKey::new(text(&["spec", "source"]), text(&["spec", "sourceNamespace"])),
            starting_csv: text(&["spec", "startingCSV"]),
            restores: false,
            installed_csv: text(&["status", "installedCSV"]),
            current_csv: text(&["status", "currentCSV"]),
        });
    }

    /// The namespace whose catalogs every other one sees, guessed from where catalogs are.
    pub fn global_namespace(&self) -> &'static str {
        let has = |name: &&&str| self.sources.keys().any(|key| key.namespace == **name);
        GLOBAL.iter().find(has).copied().unwrap_or(GLOBAL[0])
    }

    /// The namespaces that have Subscriptions.
    pub fn subscribed(&self) -> Vec<String> {
        let subscribed =
            self.namespaces.iter().filter(|(_, state)| !state.subscriptions.is_empty());
        subscribed.map(|(name, _)| name.clone()).collect()
    }
}

fn text<'o>(object: &'o Object, path: &[&str]) -> &'o str {
    object.str(path).unwrap_or_default()
}

fn csv(object: &Object) -> ExistingCsv {
    let crds = |which: &str| {
        let list = object.array(&["spec", "customresourcedefinitions", which]).iter();
        list.map(|crd| CrdReference {
            name: field(crd, "name"),
            version: field(crd, "version"),
            kind: field(crd, "kind"),
        })
        .collect()
    };
    let services = |which: &str| {
        let list = object.array(&["spec", "apiservicedefinitions", which]).iter();
        list.map(|api| {
            OperatorApi::new(field(api, "group"), field(api, "version"), field(api, "kind"))
        })
        .collect()
    };
    ExistingCsv {
        name: object.name().to_owned(),
        version: parse_tolerant(text(object, &["spec", "version"])).ok(),
        replaces: text(object, &["spec", "replaces"]).to_owned(),
        phase: text(object, &["status", "phase"]).to_owned(),
        copied: text(object, &["status", "reason"]) == "Copied"
            || object.label(names::COPIED_FROM).is_some()
            || object
                .annotation(names::OPERATOR_NAMESPACE)
                .is_some_and(|original| original != object.namespace()),
        properties: object.annotation(names::PROPERTIES).map(str::to_owned),
        owned_crds: crds("owned"),
        required_crds: crds("required"),
        owned_apis: services("owned"),
        required_apis: services("required"),
    }
}

fn field(value: &Value, name: &str) -> String {
    value.get(name).and_then(Value::as_str).unwrap_or_default().to_owned()
}

/// The catalogs that a Subscription names or sees, by namespace and name.
pub fn catalogs_of(subscription: &Object) -> Vec<(String, String)> {
    let subscribed =
        (subscription.str(&["spec", "sourceNamespace"]), subscription.str(&["spec", "source"]));
    let visible = subscription.array(&["status", "catalogHealth"]).iter().map(|health| {
        let field = |name: &str| health["catalogSourceRef"][name].as_str();
        (field("namespace"), field("name"))
    });
    let catalogs = std::iter::once(subscribed).chain(visible).filter_map(|(namespace, name)| {
        let is_given = |text: &&str| !text.is_empty();
        Some((namespace.filter(is_given)?.to_owned(), name.filter(is_given)?.to_owned()))
    });
    catalogs.collect()
}
