//! Row of a kind in one version: the data that handlers read.

use crate::{Derived, Strategy};
use mainstay_object::{Gvk, Scope};
use mainstay_schema::builtin::{self, BuiltinKind};
use mainstay_schema::crd;
use mainstay_schema::structural::Schema;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

pub use mainstay_schema::crd::PrinterColumn;

/// One kind in one version. Handlers, discovery, printing and documents read kinds from rows only,
/// so they treat built-in and custom kinds alike.
pub struct KindRow {
    /// API group; empty for the core group.
    pub group: Arc<str>,
    /// Version inside the group.
    pub version: Arc<str>,
    /// Kind in CamelCase.
    pub kind: Arc<str>,
    /// Kind of its lists.
    pub list_kind: Arc<str>,
    /// Plural: the segment of the URL.
    pub plural: Arc<str>,
    /// Singular, lower case.
    pub singular: Arc<str>,
    /// Short names for `kubectl`.
    pub short_names: Vec<Arc<str>>,
    /// Categories such as `all`.
    pub categories: Vec<Arc<str>>,
    /// Whether objects live in namespaces.
    pub scope: Scope,
    /// Verbs of the main resource, in discovery's order.
    pub verbs: Vec<Arc<str>>,
    /// Subresources: `status`, `scale`, `token`, ….
    pub subresources: Vec<Subresource>,
    /// The store's name of the kind: `apps/deployments`, `pods`. Versions of one kind share it.
    pub storage: Arc<str>,
    /// `apiVersion` of stored objects.
    pub storage_api_version: Arc<str>,
    /// `apiVersion` of this row.
    pub api_version: Arc<str>,
    /// All served versions of the kind, preferred first.
    pub served_versions: Vec<Arc<str>>,
    /// The source of schema and columns.
    pub source: KindSource,
    /// The rules of the kind.
    pub strategy: &'static dyn Strategy,
}

impl fmt::Debug for KindRow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "KindRow({}/{} {})", self.group, self.version, self.kind)
    }
}

/// A subresource.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Subresource {
    /// Last segment of the URL.
    pub name: Arc<str>,
    /// Kind of its objects: the kind itself for `status`, `autoscaling/v1 Scale` for `scale`.
    pub gvk: Gvk,
    /// Verbs, in discovery's order.
    pub verbs: Vec<Arc<str>>,
}

/// The source of a row.
#[derive(Clone, Debug)]
pub enum KindSource {
    /// The generated table.
    BuiltIn(&'static BuiltinKind),
    /// A CustomResourceDefinition.
    Custom(Arc<CustomVersion>),
}

/// One version of a CustomResourceDefinition, as its row needs it.
#[derive(Debug)]
pub struct CustomVersion {
    /// Name of the CRD: `plural.group`.
    pub name: Arc<str>,
    /// Uid of the CRD, to notice a new CRD of the same name.
    pub uid: Arc<str>,
    /// The whole CRD.
    pub definition: Arc<crd::CustomResourceDefinition>,
    /// Index of this version in the CRD.
    pub version: usize,
    /// Whether a webhook converts between versions. Then handlers use the row's version everywhere.
    pub is_converted: bool,
    /// Values derived from the CRD, shared by all its rows.
    pub derived: Arc<Derived>,
    /// Whether the CRD is terminating: then no object can be created.
    pub terminating: bool,
    /// The store revision since which objects are stored with the defaults and the storage version of
    /// this CRD.
    pub since: Arc<AtomicU64>,
}

impl CustomVersion {
    /// The version of the CRD that the row serves.
    pub fn version(&self) -> &crd::CrdVersion {
        &self.definition.versions[self.version]
    }

    /// The schema of stored objects.
    pub fn storage_schema(&self) -> &Schema {
        if self.is_converted {
            return &self.version().schema;
        }
        let stored = self.definition.storage_version();
        &stored.unwrap_or_else(|| self.version()).schema
    }

    /// Whether the row's version and the storage version have the same schema.
    pub fn has_stored_schema(&self) -> bool {
        std::ptr::eq::<Schema>(&raw const *self.version().schema, self.storage_schema())
    }

    /// The revision since which stored objects are complete; `u64::MAX` while the CRD is not stored
    /// yet.
    pub fn since(&self) -> u64 {
        self.since.load(Ordering::Acquire)
    }

    /// Columns of `kubectl get`, without the name; empty means the default (age).
    pub fn columns(&self) -> &[PrinterColumn] {
        &self.version().columns
    }

    /// The JSON paths of the scale subresource.
    pub fn scale(&self) -> Option<&crd::Scale> {
        self.version().scale.as_ref()
    }
}

impl KindRow {
    /// Group, version and kind.
    pub fn gvk(&self) -> Gvk {
        Gvk::new(&*self.group, &*self.version, &*self.kind)
    }

    /// `plural.group`, or the plural alone for the core group.
    pub fn group_resource(&self) -> String {
        if self.group.is_empty() {
            (*self.plural).to_owned()
        } else {
            format!("{}.{}", self.plural, self.group)
        }
    }

    /// The warning in each response for a deprecated version.
    pub fn deprecation(&self) -> Option<&str> {
        if let KindSource::Custom(custom) = &self.source {
            return custom.version().deprecation.as_deref();
        }
        match &*self.storage {
            "componentstatuses" => Some("v1 ComponentStatus is deprecated in v1.19+"),
            "endpoints" => {
                Some("v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice")
            }
            _ => None,
        }
    }

    /// Whether objects live in namespaces.
    pub fn is_namespaced(&self) -> bool {
        self.scope == Scope::Namespaced
    }

    /// The version of the CRD, if this row comes from one.
    pub fn custom(&self) -> Option<&CustomVersion> {
        match &self.source {
            KindSource::Custom(custom) => Some(custom),
            KindSource::BuiltIn(_) => None,
        }
    }

    /// The type of a built-in kind's objects, decompressed at the first use.
    pub fn definition(&self) -> Option<&'static builtin::TypeDefinition> {
        match &self.source {
            KindSource::BuiltIn(kind) => builtin::definition_of(&kind.gvk()),
            KindSource::Custom(_) => None,
        }
    }

    /// Whether objects of the kind are stored; reviews only get a response.
    pub fn is_stored(&self) -> bool {
        self.has_verb("list")
    }

    /// The subresource of this name.
    pub fn subresource(&self, name: &str) -> Option<&Subresource> {
        self.subresources.iter().find(|sub| &*sub.name == name)
    }

    /// Whether the kind has a status subresource, which alone changes the status.
    pub fn has_status(&self) -> bool {
        self.subresource("status").is_some()
    }

    /// Whether the main resource has this verb.
    pub fn has_verb(&self, verb: &str) -> bool {
        self.verbs.iter().any(|served| &**served == verb)
    }
}
