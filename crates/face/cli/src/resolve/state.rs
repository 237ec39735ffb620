//! The state of a cluster, as far as resolution looks at it: read from objects, wherever these come
//! from.

use super::wish::CatalogName;
use crate::cluster::catalogs_of;
use mainstay_api::names;
use mainstay_api::resources::{CATALOG_SOURCE, OPERATOR_GROUP};
use mainstay_cause::Cause;
use mainstay_explain::Hidden;
use mainstay_object::{Object, Resource};
use mainstay_resolver::{Api, CatalogKey, CrdReference, Csv, OperatorGroup, Subscription};
use mainstay_version::{Version, parse_tolerant};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// Namespaces in which catalogs are for everybody, in clusters as they are usually set up.
const GLOBAL: [&str; 2] = ["olm", "openshift-marketplace"];

/// What resolution looks at in a cluster.
#[derive(Debug, Default)]
pub(super) struct State {
    pub(super) sources: BTreeMap<CatalogKey, Source>,
    pub(super) namespaces: BTreeMap<String, Namespace>,
    /// Whether there is any OperatorGroup: a state that was saved without them says nothing.
    pub(super) has_groups: bool,
    pub(super) kube_version: Option<Version>,
    /// Every ClusterExtension.
    pub(super) extensions: Vec<Object>,
    /// Every ClusterCatalog.
    pub(super) cluster_catalogs: Vec<Object>,
    /// What people are told beside the answer.
    pub(super) notes: Vec<String>,
    /// The catalogs that Subscriptions name or see.
    seen_catalogs: BTreeMap<String, BTreeSet<CatalogKey>>,
}

/// A CatalogSource.
#[derive(Debug, Default)]
pub(super) struct Source {
    pub(super) priority: i64,
    /// Where its registry is, as its status or its specification says.
    pub(super) address: String,
    /// What its status says about the connection, such as `TRANSIENT_FAILURE`.
    pub(super) connection: String,
    /// Whether a Subscription names it, and the account may not see it.
    pub(super) is_hidden: bool,
}

/// A namespace.
#[derive(Debug, Default)]
pub(super) struct Namespace {
    pub(super) groups: Vec<OperatorGroup>,
    pub(super) subscriptions: Vec<Subscription>,
    /// Names of Subscriptions that wait for somebody's approval.
    pub(super) manual: BTreeSet<String>,
    pub(super) csvs: Vec<Csv>,
    /// What the conditions `ResolutionFailed` of Subscriptions say, by name.
    pub(super) failing: BTreeMap<String, String>,
}

impl State {
    /// Takes note of an object. Kinds that do not matter are passed over.
    pub(super) fn add(&mut self, object: Object) {
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

    /// Takes note that a cluster was read for one namespace, and of what the account may not see: a
    /// catalog that a Subscription names or sees is not absent, nor are groups.
    pub(super) fn within(&mut self, namespace: &str, hidden: &[Hidden]) {
        self.notes.extend(hidden.iter().map(ToString::to_string));
        let of = |kind: &Resource| hidden.iter().find(|it| it.kind == kind.kind);
        self.has_groups = of(&OPERATOR_GROUP).is_none();
        let Some(hidden) = of(&CATALOG_SOURCE) else { return };
        for key in self.seen_catalogs.get(namespace).into_iter().flatten() {
            if !hidden.seen_in.iter().any(|seen| *seen == *key.namespace) {
                let source = Source { is_hidden: true, ..Source::default() };
                self.sources.entry(key.clone()).or_insert(source);
            }
        }
    }

    /// What Subscriptions say that they have installed, although it is not there.
    ///
    /// # Errors
    /// If no version is there at all: the state was saved without them, and says nothing about what
    /// is installed.
    pub(super) fn miss(&mut self, whole: bool) -> Result<(), Cause> {
        let all = self.namespaces.values().map(|it| it.csvs.len()).sum::<usize>();
        let mut missing = Vec::new();
        for (namespace, here) in &self.namespaces {
            for it in here.subscriptions.iter().filter(|it| !it.installed_csv.is_empty()) {
                if !here.csvs.iter().any(|csv| csv.name == it.installed_csv) {
                    missing.push((format!("{namespace}/{}", it.name), it.installed_csv.clone()));
                }
            }
        }
        if let Some((name, csv)) = missing.first()
            && all == 0
            && !whole
        {
            let why = format!(
                "Subscription {name} has {csv} installed, and the state has no ClusterServiceVersions"
            );
            return Err(Cause::new(why).remedy(
                "save it with them: kubectl get sub,csv,og,catalogsource -A -o yaml; or say what is \
                 installed with --installed BUNDLE",
            ));
        }
        self.notes.extend(missing.into_iter().map(|(name, csv)| {
            format!("Subscription {name} has {csv} installed, but there is no ClusterServiceVersion of that name: it was deleted, and comes back if its channel has it")
        }));
        Ok(())
    }

    /// Whether a name on the command line means a ClusterCatalog: one of that name, or a new one
    /// where there are extensions.
    pub(super) fn is_for_extensions(&self, name: &CatalogName) -> bool {
        let known = self.cluster_catalogs.iter().any(|it| it.name() == name.name);
        let other = self.sources.keys().any(|key| name.is(key));
        name.namespace.is_none() && !self.extensions.is_empty() && (known || !other)
    }

    /// Whether a name on the command line means a CatalogSource: one of that name, or a new one
    /// where it is not a ClusterCatalog only.
    pub(super) fn is_for_subscriptions(&self, name: &CatalogName, asked: bool) -> bool {
        let other = self.sources.keys().any(|key| name.is(key));
        let known = self.cluster_catalogs.iter().any(|it| it.name() == name.name);
        let asked = asked || !self.subscribed().is_empty();
        other || !self.is_for_extensions(name) || asked && !known
    }

    /// Whether a name on the command line means a ClusterCatalog and no CatalogSource.
    pub(super) fn is_for_extensions_only(&self, name: &CatalogName, asked: bool) -> bool {
        self.is_for_extensions(name) && !self.is_for_subscriptions(name, asked)
    }

    /// The namespaces that something is known about.
    pub(super) fn known_namespaces(&self) -> BTreeSet<&str> {
        let sources = self.sources.keys().map(|key| &*key.namespace);
        self.namespaces.keys().map(String::as_str).chain(sources).collect()
    }

    fn namespace(&mut self, object: &Object) -> &mut Namespace {
        self.namespaces.entry(object.namespace().to_owned()).or_default()
    }

    fn source(&mut self, object: &Object) {
        let connection =
            |field| object.str(&["status", "connectionState", field]).unwrap_or_default();
        let address = [connection("address"), text(object, &["spec", "address"])]
            .into_iter()
            .find(|address| !address.is_empty());
        let source = Source {
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
            let it = conditions.iter().find(|it| it["type"] == "ResolutionFailed");
            let said = it.map(|it| format!("{}: {}", field(it, "reason"), field(it, "message")));
            namespace.failing.insert(object.name().to_owned(), said.unwrap_or_default());
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

    /// The namespace whose catalogs every other one sees, where nobody says it.
    pub(super) fn global(&self) -> &'static str {
        let has = |name: &&&str| self.sources.keys().any(|key| key.namespace == **name);
        GLOBAL.iter().find(has).copied().unwrap_or(GLOBAL[0])
    }

    /// The namespaces that have Subscriptions.
    pub(super) fn subscribed(&self) -> Vec<String> {
        let subscribed = self.namespaces.iter().filter(|(_, it)| !it.subscriptions.is_empty());
        subscribed.map(|(name, _)| name.clone()).collect()
    }
}

fn text<'o>(object: &'o Object, path: &[&str]) -> &'o str {
    object.str(path).unwrap_or_default()
}

fn csv(object: &Object) -> Csv {
    let crds = |which: &str| {
        let list = object.array(&["spec", "customresourcedefinitions", which]).iter();
        list.map(|it| CrdReference {
            name: field(it, "name"),
            version: field(it, "version"),
            kind: field(it, "kind"),
        })
        .collect()
    };
    let services = |which: &str| {
        let list = object.array(&["spec", "apiservicedefinitions", which]).iter();
        list.map(|it| Api::new(field(it, "group"), field(it, "version"), field(it, "kind")))
            .collect()
    };
    Csv {
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
