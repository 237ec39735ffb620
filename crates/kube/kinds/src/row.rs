//! One kind in one version, as every handler sees it.

use crate::{Derived, Strategy};
use mainstay_object::{Gvk, Scope};
use mainstay_schema::builtin::{self, BuiltinKind};
use mainstay_schema::crd;
use mainstay_schema::structural::Schema;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

pub use mainstay_schema::crd::Column as PrinterColumn;

/// One kind in one version: the only thing that handlers, discovery, printing and documents know of
/// kinds, so that built-in and custom ones cannot be treated differently by accident.
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
    /// What `kubectl` takes for short.
    pub short_names: Vec<Arc<str>>,
    /// Groups of kinds such as `all`.
    pub categories: Vec<Arc<str>>,
    /// Whether objects live in namespaces.
    pub scope: Scope,
    /// Verbs of the main resource, in discovery's order.
    pub verbs: Vec<Arc<str>>,
    /// What hangs below an object: `status`, `scale`, `token`, ….
    pub subresources: Vec<Subresource>,
    /// The store's name for it: `apps/deployments`, `pods`. Versions of one kind share it.
    pub storage: Arc<str>,
    /// `apiVersion` that stored bytes carry.
    pub storage_api_version: Arc<str>,
    /// `apiVersion` of this row.
    pub api_version: Arc<str>,
    /// All served versions of the kind, preferred first.
    pub served_versions: Vec<Arc<str>>,
    /// Where schema and columns come from.
    pub source: Source,
    /// What is special about the kind.
    pub strategy: &'static dyn Strategy,
}

impl fmt::Debug for KindRow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "KindRow({}/{} {})", self.group, self.version, self.kind)
    }
}

/// Something below an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Subresource {
    /// Last segment of the URL.
    pub name: Arc<str>,
    /// Kind that it speaks: the kind itself for `status`, `autoscaling/v1 Scale` for `scale`.
    pub speaks: Gvk,
    /// Verbs, in discovery's order.
    pub verbs: Vec<Arc<str>>,
}

/// Where a row comes from.
#[derive(Clone, Debug)]
pub enum Source {
    /// The generated table.
    BuiltIn(&'static BuiltinKind),
    /// A custom resource definition.
    Custom(Arc<Custom>),
}

/// The part of a custom resource definition that one version's row needs.
#[derive(Debug)]
pub struct Custom {
    /// Name of the definition: `plural.group`.
    pub name: Arc<str>,
    /// Uid of the definition, to notice that another one took its name.
    pub uid: Arc<str>,
    /// The whole definition.
    pub definition: Arc<crd::Definition>,
    /// Which of its versions this is, by position.
    pub version: usize,
    /// Whether a webhook converts between versions. Then every row speaks its own version everywhere.
    pub is_converted: bool,
    /// Values derived from the definition, shared by all its rows.
    pub derived: Arc<Derived>,
    /// Whether the definition is being deleted: then nothing more may be created.
    pub terminating: bool,
    /// The revision of the store at which the definition became what it is for stored objects:
    /// those that were written later have its defaults and name its stored version.
    pub since: Arc<AtomicU64>,
}

impl Custom {
    /// The version of the definition that the row serves.
    pub fn version(&self) -> &crd::Version {
        &self.definition.versions[self.version]
    }

    /// What objects look like in the version that is stored.
    pub fn storage_schema(&self) -> &Schema {
        if self.is_converted {
            return &self.version().schema;
        }
        let stored = self.definition.storage_version();
        &stored.unwrap_or_else(|| self.version()).schema
    }

    /// Whether objects look the same in the row's version and in the stored one.
    pub fn looks_as_stored(&self) -> bool {
        std::ptr::eq::<Schema>(&raw const *self.version().schema, self.storage_schema())
    }

    /// From which revision on stored objects are complete; the greatest while the definition is
    /// not yet stored itself.
    pub fn since(&self) -> u64 {
        self.since.load(Ordering::Acquire)
    }

    /// Columns of `kubectl get`, without the name; empty means the default (age).
    pub fn columns(&self) -> &[PrinterColumn] {
        &self.version().columns
    }

    /// Where the scale subresource finds its numbers.
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

    /// What every answer about the kind warns of, if the kind is on its way out.
    pub fn deprecation(&self) -> Option<&str> {
        if let Source::Custom(custom) = &self.source {
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

    /// The custom part, if a custom resource definition made this row.
    pub fn custom(&self) -> Option<&Custom> {
        match &self.source {
            Source::Custom(custom) => Some(custom),
            Source::BuiltIn(_) => None,
        }
    }

    /// The type of a built-in kind's objects, inflated when first asked for.
    pub fn definition(&self) -> Option<&'static builtin::Definition> {
        match &self.source {
            Source::BuiltIn(kind) => builtin::definition_of(&kind.gvk()),
            Source::Custom(_) => None,
        }
    }

    /// Whether objects of the kind are kept; those of reviews are only answered.
    pub fn is_stored(&self) -> bool {
        self.has_verb("list")
    }

    /// The row has this subresource.
    pub fn subresource(&self, name: &str) -> Option<&Subresource> {
        self.subresources.iter().find(|sub| &*sub.name == name)
    }

    /// Whether status is written through its own subresource only.
    pub fn has_status(&self) -> bool {
        self.subresource("status").is_some()
    }

    /// Whether the main resource has this verb.
    pub fn has_verb(&self, verb: &str) -> bool {
        self.verbs.iter().any(|one| &**one == verb)
    }
}
