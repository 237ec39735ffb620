//! Rows of CustomResourceDefinitions.

use crate::{CustomVersion, Derived, KindRow, KindSource, StatusMetadata, Strategy, Subresource};
use mainstay_object::{Gvk, Object};
use mainstay_schema::crd;
use mainstay_schema::crd::compare_versions;
use serde_json::Value;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The verbs of custom kinds in the order of discovery.
const VERBS: [&str; 8] =
    ["delete", "deletecollection", "get", "list", "patch", "create", "update", "watch"];

/// The strategy of custom kinds. Their CRDs contain all other rules.
struct CustomStrategy;

impl Strategy for CustomStrategy {
    fn allows_unconditional_update(&self) -> bool {
        false
    }

    fn status_metadata(&self) -> StatusMetadata {
        StatusMetadata::None
    }
}

/// Names that a CRD has accepted, so that no other CRD of its group can have them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClaimedNames {
    /// Plural, singular and short names.
    pub resources: BTreeSet<String>,
    /// Kinds of objects and lists.
    pub kinds: BTreeSet<String>,
}

impl ClaimedNames {
    /// Whether all names of the other are among these.
    pub fn includes(&self, other: &Self) -> bool {
        other.resources.is_subset(&self.resources) && other.kinds.is_subset(&self.kinds)
    }

    /// The names of `status.acceptedNames`.
    pub fn of(accepted: &Value) -> Self {
        let mut claims = Self::default();
        for (field, value) in accepted.as_object().into_iter().flatten() {
            let texts = value.as_array().map_or(std::slice::from_ref(value), Vec::as_slice);
            let texts = texts.iter().filter_map(Value::as_str).filter(|text| !text.is_empty());
            let set = match field.as_str() {
                "plural" | "singular" | "shortNames" => &mut claims.resources,
                "kind" | "listKind" => &mut claims.kinds,
                _ => continue,
            };
            set.extend(texts.map(str::to_owned));
        }
        claims
    }
}

/// A custom kind: its definition and a row for each served version.
#[derive(Clone, Debug)]
pub struct CustomKind {
    /// Name of the definition.
    pub name: Arc<str>,
    /// The definition.
    pub definition: Arc<crd::CustomResourceDefinition>,
    /// The names that it has.
    pub claims: ClaimedNames,
    /// Rows of the served versions, preferred first; none while names conflict.
    pub rows: Vec<Arc<KindRow>>,
    /// The row of the stored version, whether served or not: what is kept is found by it.
    pub stored: Arc<KindRow>,
    /// [`CustomVersion::since`], shared by all rows.
    pub since: Arc<AtomicU64>,
}

impl CustomKind {
    /// Sets the revision at which the CRD was stored, if it is not set yet.
    pub fn set_stored_revision(&self, revision: u64) {
        // An error means that the revision is set already.
        let _ =
            self.since.compare_exchange(NOT_STORED, revision, Ordering::AcqRel, Ordering::Acquire);
    }

    /// The revision since which stored objects are complete under a CRD that replaces this one. It
    /// stays unless the storage version or its schema differs.
    pub fn complete_since(&self, definition: &crd::CustomResourceDefinition) -> u64 {
        let (Some(old), Some(new)) =
            (self.definition.storage_version(), definition.storage_version())
        else {
            return NOT_STORED;
        };
        if old.name == new.name && old.source == new.source {
            return self.since.load(Ordering::Acquire);
        }
        NOT_STORED
    }
}

/// The revision of a CRD that is not stored yet.
pub const NOT_STORED: u64 = u64::MAX;

/// The custom kind of a CRD object that was parsed as `definition`.
///
/// `accepted` says whether its names are free; otherwise no version is served. `claims` are its
/// accepted names. `since` is the revision since which stored objects are complete, or
/// [`NOT_STORED`].
pub fn custom_kind(
    object: &Object,
    definition: crd::CustomResourceDefinition,
    accepted: bool,
    claims: ClaimedNames,
    since: u64,
) -> CustomKind {
    let since = Arc::new(AtomicU64::new(since));
    let name: Arc<str> = object.name().into();
    let definition = Arc::new(definition);
    let mut served: Vec<usize> =
        (0..definition.versions.len()).filter(|at| definition.versions[*at].served).collect();
    served.sort_by(|a, b| {
        compare_versions(&definition.versions[*b].name, &definition.versions[*a].name)
    });
    if !accepted {
        served.clear();
    }
    let names: Vec<Arc<str>> =
        served.iter().map(|at| definition.versions[*at].name.as_str().into()).collect();
    let stored = definition.storage_version().map_or("", |version| version.name.as_str());
    let stored: Arc<str> = definition.gvk(stored).api_version().into();
    let uid: Arc<str> = object.uid().into();
    let terminating = object.is_terminating();
    let is_converted =
        definition.conversion.get("strategy").and_then(Value::as_str) == Some("Webhook");
    let derived = Arc::new(Derived::default());
    let row = |at: usize| {
        Arc::new(KindRow {
            group: definition.group.as_str().into(),
            version: definition.versions[at].name.as_str().into(),
            kind: definition.kind.as_str().into(),
            list_kind: definition.list_kind.as_str().into(),
            plural: definition.plural.as_str().into(),
            singular: definition.singular.as_str().into(),
            short_names: shared(&definition.short_names),
            categories: shared(&definition.categories),
            scope: definition.scope,
            verbs: VERBS.iter().map(|verb| Arc::from(*verb)).collect(),
            subresources: subresources(&definition, &definition.versions[at]),
            storage: format!("{}/{}", definition.group, definition.plural).into(),
            storage_api_version: if is_converted {
                definition.gvk(&definition.versions[at].name).api_version().into()
            } else {
                stored.clone()
            },
            api_version: definition.gvk(&definition.versions[at].name).api_version().into(),
            served_versions: names.clone(),
            source: KindSource::Custom(Arc::new(CustomVersion {
                name: name.clone(),
                uid: uid.clone(),
                definition: definition.clone(),
                version: at,
                is_converted,
                derived: derived.clone(),
                terminating,
                since: since.clone(),
            })),
            strategy: &CustomStrategy,
        })
    };
    let storage = definition.versions.iter().position(|version| version.storage).unwrap_or(0);
    let rows = served.into_iter().map(row).collect();
    let stored = row(storage);
    let (name, definition, since) = (name.clone(), definition.clone(), since.clone());
    CustomKind { name, definition, claims, rows, stored, since }
}

fn subresources(
    definition: &crd::CustomResourceDefinition,
    version: &crd::CrdVersion,
) -> Vec<Subresource> {
    let verbs = || ["get", "patch", "update"].map(Arc::from).to_vec();
    let mut all = Vec::new();
    if version.status {
        let gvk = definition.gvk(&version.name);
        all.push(Subresource { name: "status".into(), gvk, verbs: verbs() });
    }
    if version.scale.is_some() {
        let gvk = Gvk::new("autoscaling", "v1", "Scale");
        all.push(Subresource { name: "scale".into(), gvk, verbs: verbs() });
    }
    all
}

fn shared(texts: &[String]) -> Vec<Arc<str>> {
    texts.iter().map(|text| text.as_str().into()).collect()
}
