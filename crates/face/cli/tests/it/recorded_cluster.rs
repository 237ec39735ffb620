//! Test clusters: one with recorded objects, and one that does not respond.

use mainstay_api::names;
use mainstay_cause::Cause;
use mainstay_command::cluster::{
    AcceptedWrite, CatalogEndpoint, CatalogReadError, ClusterHandle, ClusterReadError,
    ClusterWriteError, ClusterWriter, ObjectPage, ObjectWrite,
};
use mainstay_object::selector::LabelSelector;
use mainstay_object::{Object, Resource};
use mainstay_removal::DeletionStep;
use mainstay_resolver::fixture::CatalogData;
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::Duration;

/// A cluster of recorded objects; clones share the objects. Deleting a ClusterServiceVersion deletes
/// what it owns, and deleting a CustomResourceDefinition the objects of its kind.
#[derive(Clone)]
pub(super) struct RecordedCluster {
    pub(super) objects: Rc<RefCell<Vec<Object>>>,
    /// The namespace of the kubeconfig's context.
    pub(super) namespace: &'static str,
    /// Whether the account may not list a kind in a namespace, or in all.
    pub(super) forbids: fn(&Resource, Option<&str>) -> bool,
    /// An API group that the cluster does not serve.
    pub(super) unknown_group: Option<&'static str>,
    pub(super) kube_version: Option<&'static str>,
    pub(super) namespaces: Option<&'static [&'static str]>,
    /// The catalog of the registry at an address.
    pub(super) catalog: fn(&str) -> Result<CatalogData, Cause>,
    /// The response of the catalog server to the path of a request.
    pub(super) documents: fn(&CatalogEndpoint, &str) -> Result<Vec<u8>, CatalogReadError>,
    /// The number of writes after which every write fails.
    pub(super) writes_left: Rc<Cell<usize>>,
    /// What the controllers of the cluster do with a written object.
    pub(super) controller: fn(&mut Object),
    /// The warnings of every write.
    pub(super) warnings: &'static [&'static str],
    /// Whether the controller of ClusterExtensions ends its work on a deleted one.
    pub(super) ends_deletions: bool,
    /// The error of every write that is no deletion.
    pub(super) refusal: Option<ClusterWriteError>,
}

impl RecordedCluster {
    /// A cluster with the objects of YAML documents, or of lists in them.
    pub(super) fn new(namespace: &'static str, text: &str) -> Self {
        let options = mainstay_yaml::Options::default();
        let mut objects = Vec::new();
        for document in mainstay_yaml::documents(text.as_bytes(), &options) {
            let value = document.unwrap().value;
            let items = value["items"].as_array().cloned();
            let items = items.unwrap_or_else(|| vec![value]);
            objects.extend(items.into_iter().map(|item| Object::from_value(item).unwrap()));
        }
        Self {
            objects: Rc::new(RefCell::new(objects)),
            namespace,
            forbids: |_, _| false,
            unknown_group: None,
            kube_version: None,
            namespaces: None,
            catalog: |_| Err(Cause::new("there is nothing")),
            documents: |_, _| Err(CatalogReadError::Unreachable(Cause::new("there is no server"))),
            writes_left: Rc::default(),
            controller: |_| {},
            warnings: &[],
            ends_deletions: true,
            refusal: None,
        }
    }

    /// The same cluster, whose writes do not fail.
    pub(super) fn writable(self, controller: fn(&mut Object)) -> Self {
        self.writes_left.set(usize::MAX);
        Self { controller, ..self }
    }

    /// Kinds and names of the objects.
    pub(super) fn names(&self) -> Vec<String> {
        let objects = self.objects.borrow();
        objects.iter().map(|object| format!("{} {}", object.kind(), object.name())).collect()
    }
}

impl ClusterHandle for RecordedCluster {
    async fn list(
        &self,
        kind: &Resource,
        namespace: Option<&str>,
        labels: Option<&str>,
    ) -> Result<Vec<Object>, ClusterReadError> {
        if self.unknown_group.is_some_and(|group| kind.group == group) {
            return Err(ClusterReadError::UnknownKind(Cause::new("there is no such kind")));
        }
        if (self.forbids)(kind, namespace) {
            let cause = Cause::new(format!("{} are forbidden", kind.plural));
            return Err(ClusterReadError::Forbidden(cause));
        }
        let copies = format!("{}=", names::COPIED_FROM);
        let owned = labels.is_some_and(|labels| labels.starts_with(names::OWNER));
        // The labels of classic objects are those of the recorded cluster only in part.
        let exact =
            labels.filter(|labels| !labels.contains(names::OWNER) && !labels.starts_with('!'));
        let exact = exact.filter(|labels| !labels.starts_with(&copies));
        let exact = exact.map(|labels| LabelSelector::parse(labels).unwrap());
        let selects = |object: &&Object| {
            object.kind() == kind.kind
                && namespace.is_none_or(|namespace| object.namespace() == namespace)
                && labels.is_none_or(|labels| !labels.starts_with(&copies))
                && (!owned || object.label(names::OWNER).is_some())
                && exact.as_ref().is_none_or(|exact| exact.matches(object))
        };
        Ok(self.objects.borrow().iter().filter(selects).cloned().collect())
    }

    async fn list_page(
        &self,
        kind: &Resource,
        limit: u32,
        continue_token: &str,
    ) -> Result<ObjectPage, ClusterReadError> {
        let all = self.list(kind, None, None).await?;
        let first = continue_token.parse().unwrap_or(0);
        let end = all.len().min(first + limit as usize);
        let continue_token = if end < all.len() { end.to_string() } else { String::new() };
        Ok(ObjectPage { objects: all[first..end].to_vec(), continue_token })
    }

    async fn get(
        &self,
        kind: &Resource,
        namespace: Option<&str>,
        name: &str,
    ) -> Result<Option<Object>, ClusterReadError> {
        let all = self.list(kind, namespace, None).await?;
        Ok(all.into_iter().find(|object| object.name() == name))
    }

    async fn delete(&self, step: &DeletionStep) -> Result<(), Cause> {
        let left = self.writes_left.get().checked_sub(1).ok_or_else(|| Cause::new("killed"))?;
        self.writes_left.set(left);
        let mut objects = self.objects.borrow_mut();
        let gone = objects.iter_mut().find(|object| object.uid() == step.uid);
        let gone = gone.ok_or_else(|| Cause::new("it is not there"))?;
        gone.set(&["metadata", "deletionTimestamp"], "x".into());
        if self.ends_deletions {
            let others: Vec<String> = gone
                .finalizers()
                .filter(|name| !name.starts_with("olm.operatorframework.io/"))
                .map(str::to_owned)
                .collect();
            gone.set(&["metadata", "finalizers"], others.into());
        }
        let gone = gone.clone();
        if gone.finalizers().next().is_none() {
            collect_garbage(&mut objects, &gone);
        }
        Ok(())
    }

    async fn wait_until_gone(
        &self,
        step: &DeletionStep,
        _: Duration,
    ) -> Result<Option<Object>, Cause> {
        Ok(self.get(&step.resource, step.namespace.as_deref(), &step.name).await?)
    }

    fn default_namespace(&self) -> &str {
        self.namespace
    }

    async fn kube_version(&self) -> Option<String> {
        self.kube_version.map(str::to_owned)
    }

    async fn namespaces(&self) -> Option<Vec<String>> {
        self.namespaces.map(|names| names.iter().map(|name| (*name).to_owned()).collect())
    }

    async fn read_catalog(&self, address: &str) -> Result<CatalogData, Cause> {
        (self.catalog)(address)
    }

    async fn read_cluster_catalog(
        &self,
        server: &CatalogEndpoint,
        path: &str,
    ) -> Result<Vec<u8>, CatalogReadError> {
        (self.documents)(server, path)
    }
}

impl ClusterWriter for RecordedCluster {
    async fn write(
        &self,
        kind: &Resource,
        write: ObjectWrite<'_>,
        dry_run: bool,
    ) -> Result<AcceptedWrite, ClusterWriteError> {
        let failed = || ClusterWriteError::Failed(Cause::new("killed"));
        let left = self.writes_left.get().checked_sub(1).ok_or_else(failed)?;
        let is_deletion = matches!(write, ObjectWrite::Delete(_));
        if let Some(refusal) = self.refusal.as_ref().filter(|_| !is_deletion) {
            return Err(refusal.clone());
        }
        if !dry_run {
            self.writes_left.set(left);
        }
        let mut objects = self.objects.borrow_mut();
        let name = write.object().name();
        let is_same = |object: &Object| object.kind() == kind.kind && object.name() == name;
        let stored = objects.iter().find(|object| is_same(object)).cloned();
        let mut object = write.object().clone();
        match (write, &stored) {
            (ObjectWrite::Create(_), Some(_)) => {
                let text = format!("{}.{} {name:?} already exists", kind.plural, kind.group);
                return Err(ClusterWriteError::AlreadyExists(Cause::new(text)));
            }
            (ObjectWrite::Create(_), None) => {
                object.set(&["metadata", "uid"], format!("uid-of-{name}").into());
                object.set(&["metadata", "generation"], 1.into());
            }
            (ObjectWrite::Replace(_), Some(stored)) => {
                object.set(&["metadata", "generation"], (stored.generation() + 1).into());
            }
            (ObjectWrite::Delete(_), Some(_)) => {}
            (_, None) => return Err(ClusterWriteError::NotFound(Cause::new("it is not there"))),
        }
        let warnings = self.warnings.iter().map(|text| (*text).to_owned()).collect();
        if dry_run {
            return Ok(AcceptedWrite { object, warnings });
        }
        objects.retain(|object| !is_same(object));
        if is_deletion {
            let owner = names::olm_v1::OWNER_NAME_LABEL;
            let owned = |object: &Object| object.label(owner) == Some(name);
            let kinds: Vec<String> = objects
                .iter()
                .filter(|object| owned(object))
                .filter_map(|crd| crd.str(&["spec", "names", "kind"]).map(str::to_owned))
                .collect();
            objects
                .retain(|object| !owned(object) && !kinds.iter().any(|kind| kind == object.kind()));
        } else {
            let mut reconciled = object.clone();
            (self.controller)(&mut reconciled);
            let is_gone = reconciled.is_terminating() && reconciled.finalizers().next().is_none();
            objects.push(reconciled.clone());
            if is_gone {
                collect_garbage(&mut objects, &reconciled);
            }
        }
        Ok(AcceptedWrite { object, warnings })
    }
}

/// Removes an object, what it owns, and the objects of the kind that it defines. Those with finalizers stay, and are
/// being deleted.
fn collect_garbage(objects: &mut Vec<Object>, gone: &Object) {
    let goes = |object: &Object| {
        object.uid() == gone.uid()
            || object.label(names::OWNER) == Some(gone.name())
            || gone.str(&["spec", "names", "kind"]) == Some(object.kind())
            || object.owner_references().iter().any(|owner| owner.uid == gone.uid())
    };
    for held in objects.iter_mut().filter(|object| goes(object) && object.uid() != gone.uid()) {
        if held.finalizers().next().is_some() {
            held.set(&["metadata", "deletionTimestamp"], "x".into());
        }
    }
    let is_removed = |object: &Object| goes(object) && !object.is_terminating();
    let (removed, kept): (Vec<Object>, Vec<Object>) =
        objects.drain(..).partition(|object| object.uid() == gone.uid() || is_removed(object));
    *objects = kept;
    for object in removed.iter().filter(|object| object.uid() != gone.uid()) {
        collect_garbage(objects, object);
    }
}

/// A cluster that does not respond.
pub(super) struct SilentCluster;

/// The error of every request to a [`SilentCluster`].
fn silence() -> Cause {
    Cause::new("the cluster did not answer")
}

impl ClusterHandle for SilentCluster {
    async fn list(
        &self,
        _: &Resource,
        _: Option<&str>,
        _: Option<&str>,
    ) -> Result<Vec<Object>, ClusterReadError> {
        Err(ClusterReadError::Failed(silence()))
    }

    async fn list_page(
        &self,
        _: &Resource,
        _: u32,
        _: &str,
    ) -> Result<ObjectPage, ClusterReadError> {
        Err(ClusterReadError::Failed(silence()))
    }

    async fn get(
        &self,
        _: &Resource,
        _: Option<&str>,
        _: &str,
    ) -> Result<Option<Object>, ClusterReadError> {
        Err(ClusterReadError::Failed(silence()))
    }

    async fn delete(&self, _: &DeletionStep) -> Result<(), Cause> {
        Err(silence())
    }

    async fn wait_until_gone(
        &self,
        _: &DeletionStep,
        _: Duration,
    ) -> Result<Option<Object>, Cause> {
        Err(silence())
    }

    fn default_namespace(&self) -> &'static str {
        "kitchen"
    }

    async fn kube_version(&self) -> Option<String> {
        None
    }

    async fn namespaces(&self) -> Option<Vec<String>> {
        None
    }

    async fn read_catalog(&self, _: &str) -> Result<CatalogData, Cause> {
        Err(silence())
    }

    async fn read_cluster_catalog(
        &self,
        _: &CatalogEndpoint,
        _: &str,
    ) -> Result<Vec<u8>, CatalogReadError> {
        Err(CatalogReadError::Unreachable(silence()))
    }
}

impl ClusterWriter for SilentCluster {
    async fn write(
        &self,
        _: &Resource,
        _: ObjectWrite<'_>,
        _: bool,
    ) -> Result<AcceptedWrite, ClusterWriteError> {
        Err(ClusterWriteError::Failed(silence()))
    }
}
