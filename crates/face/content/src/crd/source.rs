//! The CRDs in use and their objects: on a cluster, or in a saved state.

use mainstay_cause::{Cause, FileLocation};
use mainstay_command::cluster::{ClusterHandle, ClusterReadError};
use mainstay_command::exit::CommandFailure;
use mainstay_command::io::CommandIo;
use mainstay_command::io::read_text;
use mainstay_command::text::escape_controls;
use mainstay_crdsafety::{Crd, Evidence};
use mainstay_object::{Object, Resource, Scope, builtin};
use mainstay_yaml::{Options, documents};
use serde_json::Value;
use std::borrow::Cow;

/// How many objects are read at once.
const PAGE: u32 = 500;

/// How a state is saved.
const SAVE_COMMAND: &str = "kubectl get crd,KIND -A -o yaml";

/// Where the CRDs in use are.
pub(super) enum StoredCrds<C> {
    Cluster(C),
    Saved(SavedState),
}

/// A CRD in use.
pub(super) struct StoredCrd {
    pub(super) crd: Crd,
    group: String,
    kind: String,
    plural: String,
    scope: Scope,
}

impl StoredCrd {
    fn of(object: &Object) -> Result<Self, Cause> {
        let crd = Crd::from_value(&object.to_value()).map_err(|error| {
            Cause::new(escape_controls(&error.to_string()))
                .remedy("use a CustomResourceDefinition that an API server accepts")
        })?;
        let text = |path: &[&str]| object.str(path).unwrap_or_default().to_owned();
        let is_cluster_wide = object.str(&["spec", "scope"]) == Some("Cluster");
        Ok(Self {
            crd,
            group: text(&["spec", "group"]),
            kind: text(&["spec", "names", "kind"]),
            plural: text(&["spec", "names", "plural"]),
            scope: if is_cluster_wide { Scope::Cluster } else { Scope::Namespaced },
        })
    }

    /// The kind of the objects, in a version.
    fn resource(&self, version: &str) -> Resource {
        Resource {
            group: Cow::Owned(self.group.clone()),
            version: Cow::Owned(version.to_owned()),
            kind: Cow::Owned(self.kind.clone()),
            plural: Cow::Owned(self.plural.clone()),
            scope: self.scope,
        }
    }
}

impl<C: ClusterHandle> StoredCrds<C> {
    /// The CRD in use; none if there is none of this name.
    pub(super) async fn crd(&self, name: &str) -> Result<Option<StoredCrd>, CommandFailure> {
        let found = match self {
            Self::Cluster(cluster) => {
                cluster.get(&builtin::CUSTOM_RESOURCE_DEFINITION, None, name).await?
            }
            Self::Saved(state) => state.crd(name).cloned(),
        };
        Ok(found.as_ref().map(StoredCrd::of).transpose()?)
    }

    /// Adds all stored objects to the evidence, as a version shows them. The error says why they cannot be
    /// read.
    pub(super) async fn count(
        &self,
        crd: &StoredCrd,
        version: &str,
        evidence: &mut Evidence,
    ) -> Result<(), String> {
        let resource = crd.resource(version);
        let cluster = match self {
            Self::Saved(state) => {
                state.objects_of(&resource).for_each(|object| evidence.add(&object.to_value()));
                return Ok(());
            }
            Self::Cluster(cluster) => cluster,
        };
        let mut token = String::new();
        loop {
            let page = cluster.list_page(&resource, PAGE, &token).await.map_err(|error| {
                let (ClusterReadError::Forbidden(cause)
                | ClusterReadError::UnknownKind(cause)
                | ClusterReadError::Failed(cause)) = error;
                cause.what().to_owned()
            })?;
            page.objects.iter().for_each(|object| evidence.add(&object.to_value()));
            if page.continue_token.is_empty() {
                return Ok(());
            }
            token = page.continue_token;
        }
    }
}

/// Objects of a saved state.
#[derive(Debug, Default)]
pub(super) struct SavedState {
    objects: Vec<Object>,
}

impl SavedState {
    /// Reads files with objects or lists of objects.
    ///
    /// # Errors
    /// A file cannot be read, or something in it is no object.
    pub(super) fn read(io: &mut CommandIo<'_>, files: &[String]) -> Result<Self, CommandFailure> {
        let mut state = Self::default();
        for file in files {
            let text = read_text(io, file)?;
            let shown = if file == "-" { "<stdin>" } else { file };
            let refuse = |line, what: &str| {
                let place = FileLocation { line, ..FileLocation::file(shown) };
                let cause = Cause::new(escape_controls(what)).at(place);
                CommandFailure::usage(cause.remedy(format!("use the output of: {SAVE_COMMAND}")))
            };
            for document in documents(text.as_bytes(), &Options::default()) {
                let document =
                    document.map_err(|error| refuse(error.line, &error.fault.to_string()))?;
                let items = match document.value {
                    Value::Object(mut fields) if fields.contains_key("items") => {
                        match fields.remove("items") {
                            Some(Value::Array(items)) => items,
                            _ => return Err(refuse(document.line, "`items` is not a list")),
                        }
                    }
                    other => vec![other],
                };
                for item in items {
                    let object = Object::from_value(item)
                        .map_err(|_| refuse(document.line, "this is not a Kubernetes object"))?;
                    state.objects.push(object);
                }
            }
        }
        Ok(state)
    }

    fn crd(&self, name: &str) -> Option<&Object> {
        let kind = builtin::CUSTOM_RESOURCE_DEFINITION.kind;
        self.objects.iter().find(|object| object.kind() == kind && object.name() == name)
    }

    /// The objects of a kind, saved in any version.
    fn objects_of<'s>(&'s self, resource: &'s Resource) -> impl Iterator<Item = &'s Object> {
        let is_of = |object: &&Object| {
            let group = object.api_version().split_once('/').map_or("", |(group, _)| group);
            object.kind() == resource.kind && group == resource.group
        };
        self.objects.iter().filter(is_of)
    }
}
