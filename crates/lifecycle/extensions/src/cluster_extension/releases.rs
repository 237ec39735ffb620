//! The releases of extensions on the cluster: reading, and writing before and after objects are applied.
//!
//! ```text
//! pending ─ objects are applied ─┬─► deployed, and the one before is superseded
//!                                └─► failed
//! ```
//!
//! A release that stays pending belongs to a process that was killed. It counts as failed, so that the
//! next attempt completes it.

use super::apply::ObjectKey;
use super::bundle::RenderedBundle;
use super::failure::Failure;
use super::status::InstalledBundle;
use crate::context::Context;
use mainstay_api::names::olm_v1::{
    BUNDLE_NAME, BUNDLE_REFERENCE, BUNDLE_RELEASE, BUNDLE_VERSION, OWNER_KIND_LABEL,
    OWNER_NAME_LABEL, PACKAGE_NAME,
};
use mainstay_api::{ClusterExtension, resources};
use mainstay_client::{Cache, CacheBuilder, DeleteOptions, ObjectList, Selection};
use mainstay_controller::api_message;
use mainstay_object::{Object, builtin};
use mainstay_releases::history::{self, MAX_HISTORY, Revision};
use mainstay_releases::{
    EncodedRelease, MAX_DECODED_BYTES, NULL_LABEL, Release, ReleaseAction, ReleaseContent,
    ReleaseOwner, ReleaseStatus, SecretWrite, decode_release, extra_chunk_names, index_selector,
    secret_name,
};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// The longest name of a release that Helm accepts, in bytes.
const MAX_NAME: usize = 53;

/// What the index Secret of a release says without being decoded.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct ReleaseHead {
    /// The name of the extension.
    pub(crate) extension: Arc<str>,
    revision: (i64, ReleaseStatus),
    resource_version: String,
}

impl ReleaseHead {
    /// The cache of all releases in a namespace, indexed by extension.
    pub(crate) fn cache(namespace: &str) -> CacheBuilder<Self> {
        let selection = Selection::all(builtin::SECRET)
            .namespace(namespace)
            .labels(index_selector(None))
            .metadata_only();
        Cache::builder(selection, Self::of).index(|head: &Self| vec![Arc::clone(&head.extension)])
    }

    /// Version and status.
    fn revision(&self) -> Revision {
        let (version, status) = self.revision;
        // Its process was killed.
        let status = if status.is_pending() { ReleaseStatus::Failed } else { status };
        Revision { version, status }
    }

    fn of(secret: &Object) -> Option<Self> {
        let version = secret.label("version")?.parse().ok()?;
        Some(Self {
            extension: secret.label("name")?.into(),
            revision: (version, ReleaseStatus::from_label(secret.label("status")?)),
            resource_version: secret.resource_version().to_owned(),
        })
    }
}

/// The releases of an extension.
#[derive(Debug)]
pub(super) struct History {
    revisions: Vec<Revision>,
    last: Option<StoredRelease>,
    /// None if it is the last one.
    deployed: Option<StoredRelease>,
}

/// A release with its index Secret.
#[derive(Clone, Debug)]
pub(super) struct StoredRelease {
    release: Release,
    index: Object,
}

/// Reads the releases of an extension.
///
/// # Errors
/// A release that cannot be read.
pub(super) async fn history(context: &Context, extension: &str) -> Result<History, Failure> {
    if extension.len() > MAX_NAME {
        return Err(Failure::retrying(format!("release name is invalid: {extension}")));
    }
    loop {
        let heads = context.releases.indexed(extension);
        let revisions: Vec<Revision> = heads.iter().map(|(_, head)| head.revision()).collect();
        let read = |revision: Option<Revision>| async move {
            let Some(revision) = revision else { return Ok(None) };
            read(context, extension, revision.version).await.map(Some)
        };
        let last = read(history::last(&revisions)).await?;
        let deployed = history::deployed(&revisions);
        let is_last = deployed.map(|revision| revision.version)
            == last.as_ref().map(|stored| stored.release.version);
        let deployed = if is_last { None } else { read(deployed).await? };
        // A write whose response was lost can be newer than the cache. Statuses of different times would
        // make an old release look deployed.
        let newer = last.iter().chain(&deployed).find(|stored| {
            let read = stored.index.resource_version();
            !heads.iter().any(|(_, head)| head.resource_version == read)
        });
        match newer {
            Some(newer) => {
                context.releases.wait_for_revision(newer.index.resource_version()).await;
            }
            None => return Ok(History { revisions, last, deployed }),
        }
    }
}

/// Waits until the cache has the releases of an extension that exist. An extension can be younger than its first
/// release and arrive earlier: without the release, its objects would be those of somebody else.
///
/// # Errors
/// The releases cannot be listed.
pub(super) async fn wait_for_cache(context: &Context, extension: &str) -> Result<(), Failure> {
    if context.releases.count(extension) > 0 || extension.len() > MAX_NAME {
        return Ok(());
    }
    let namespace = Some(&*context.release_namespace);
    let all =
        ObjectList { metadata_only: true, ..ObjectList::labels(index_selector(Some(extension))) };
    let listed = context.cluster.list(&builtin::SECRET, namespace, &all).await;
    let listed = listed.map_err(|error| Failure::retrying(api_message(&error)))?;
    for secret in &listed.items {
        context.releases.wait_for_revision(secret.resource_version()).await;
    }
    Ok(())
}

async fn read(context: &Context, extension: &str, version: i64) -> Result<StoredRelease, Failure> {
    let namespace = &*context.release_namespace;
    let find = |name: String| async move {
        let found = context.cluster.get(&builtin::SECRET, Some(namespace), &name).await;
        found.map_err(|error| Failure::retrying(api_message(&error)))
    };
    let index = find(secret_name(extension, version)).await?;
    let value = index.to_value();
    let unreadable = |error: &dyn std::fmt::Display| Failure::retrying(error.to_string());
    let mut chunks = Vec::new();
    for name in extra_chunk_names(&value).map_err(|error| unreadable(&error))? {
        chunks.push(find(name).await?.into_value());
    }
    let release = decode_release(&value, &chunks, MAX_DECODED_BYTES);
    let mut release = release.map_err(|error| unreadable(&error))?;
    if release.info.status.is_pending() {
        release.info.status = ReleaseStatus::Failed;
    }
    Ok(StoredRelease { release, index })
}

impl History {
    /// The newest release.
    pub(super) const fn last(&self) -> Option<&StoredRelease> {
        self.last.as_ref()
    }

    /// The deployed release.
    pub(super) fn deployed(&self) -> Option<&StoredRelease> {
        let last = self.last.as_ref();
        let last = last.filter(|last| last.release.info.status == ReleaseStatus::Deployed);
        self.deployed.as_ref().or(last)
    }

    /// The bundle of the deployed release.
    pub(super) fn installed(&self) -> Option<InstalledBundle> {
        let labels = &self.deployed()?.release.labels;
        let label = |name: &str| labels.get(name).cloned();
        Some(InstalledBundle {
            name: label(BUNDLE_NAME)?,
            version: label(BUNDLE_VERSION)?,
            release: label(BUNDLE_RELEASE),
            image: label(BUNDLE_REFERENCE).unwrap_or_default(),
        })
    }

    /// Whether the newest release has this content already, so that no other one is needed.
    pub(super) fn has(&self, plan: &ReleasePlan) -> bool {
        let last = self.last.as_ref().map(|stored| &stored.release);
        history::is_current(last, &plan.content.manifest)
    }

    /// The objects of the release that an upgrade starts from.
    ///
    /// # Errors
    /// If its manifest is damaged.
    pub(super) fn base_objects(&self) -> Result<BTreeSet<ObjectKey>, Failure> {
        let Some(base) = self.deployed().or(self.last()) else { return Ok(BTreeSet::new()) };
        Ok(base.objects()?.iter().map(ObjectKey::of).collect())
    }

    /// The objects of the release that an upgrade starts from, as values.
    ///
    /// # Errors
    /// If its manifest is damaged.
    pub(super) fn base_values(&self) -> Result<Vec<Value>, Failure> {
        let Some(base) = self.deployed().or(self.last()) else { return Ok(Vec::new()) };
        Ok(base.objects()?.into_iter().map(Object::into_value).collect())
    }
}

impl StoredRelease {
    /// A label of the release.
    pub(super) fn label(&self, name: &str) -> Option<&str> {
        self.release.labels.get(name).map(String::as_str)
    }

    /// The objects of the manifest.
    ///
    /// # Errors
    /// If the manifest is damaged.
    pub(super) fn objects(&self) -> Result<Vec<Object>, Failure> {
        let damaged = |error: &dyn std::fmt::Display| {
            Failure::retrying(format!("the manifest of the release cannot be read: {error}"))
        };
        let objects = self.release.objects().map_err(|error| damaged(&error))?;
        let objects = objects.into_iter().map(Object::from_value).collect::<Result<Vec<_>, _>>();
        objects.map_err(|error| damaged(&error))
    }

    /// Whether this release failed with the same content.
    fn is_failed_attempt_at(&self, plan: &ReleasePlan) -> bool {
        self.release.info.status == ReleaseStatus::Failed
            && self.release.manifest == plan.content.manifest
            && self.release.labels == plan.labels
    }
}

/// A release that is going to be made.
#[derive(Debug)]
pub(super) struct ReleasePlan {
    content: ReleaseContent,
    labels: BTreeMap<String, String>,
}

impl ReleasePlan {
    /// The release of a rendered bundle.
    pub(super) fn new(
        extension: &ClusterExtension,
        bundle: &InstalledBundle,
        rendered: &RenderedBundle,
    ) -> Self {
        let api_version = resources::CLUSTER_EXTENSION.api_version();
        let owner = owner(extension, &api_version);
        let marks = [
            (OWNER_KIND_LABEL.to_owned(), super::OWNER_KIND.to_owned()),
            (OWNER_NAME_LABEL.to_owned(), extension.metadata.name.clone()),
        ];
        let content = ReleaseContent::from_objects(
            &rendered.objects,
            &rendered.annotations,
            &extension.spec.namespace,
            &owner,
            &marks.into(),
        );
        let package = extension.spec.source.catalog.as_ref();
        let package = package.map(|filter| filter.package_name.clone()).unwrap_or_default();
        let mut labels = BTreeMap::from([
            (PACKAGE_NAME.to_owned(), package),
            (BUNDLE_NAME.to_owned(), bundle.name.clone()),
            (BUNDLE_VERSION.to_owned(), bundle.version.clone()),
            (BUNDLE_REFERENCE.to_owned(), bundle.image.clone()),
        ]);
        if let Some(release) = &bundle.release {
            labels.insert(BUNDLE_RELEASE.to_owned(), release.clone());
        }
        Self { content, labels }
    }

    /// The objects in the order in which they are written, with owner and labels.
    ///
    /// # Errors
    /// If one is no object.
    pub(super) fn objects(&mut self) -> Result<Vec<Object>, Failure> {
        let objects = std::mem::take(&mut self.content.objects).into_iter();
        let objects = objects.map(Object::from_value).collect::<Result<Vec<_>, _>>();
        objects.map_err(|error| Failure::retrying(error.to_string()))
    }
}

fn owner<'a>(extension: &'a ClusterExtension, api_version: &'a str) -> ReleaseOwner<'a> {
    ReleaseOwner {
        api_version,
        kind: super::OWNER_KIND,
        name: &extension.metadata.name,
        uid: &extension.metadata.uid,
    }
}

/// A release that is being made.
pub(super) struct ReleaseWriter<'a> {
    context: &'a Context,
    extension: &'a ClusterExtension,
    /// What is stored of it.
    stored: StoredRelease,
    action: ReleaseAction,
    /// The release that it replaces.
    base: Option<StoredRelease>,
    /// The plan and all releases, if the stored release is an earlier failed attempt at the plan.
    again: Option<(ReleasePlan, Vec<Revision>)>,
}

/// Writes a release as pending, before its objects are written. Old releases go. Another attempt at a
/// release that failed writes nothing yet.
///
/// # Errors
/// If a Secret cannot be written.
pub(super) async fn begin<'a>(
    context: &'a Context,
    extension: &'a ClusterExtension,
    history: History,
    plan: ReleasePlan,
) -> Result<ReleaseWriter<'a>, Failure> {
    let now = context.clock.now();
    let History { revisions, last, deployed } = history;
    let Some(last) = last else {
        let (name, namespace) = (&extension.metadata.name, &extension.spec.namespace);
        let ReleasePlan { content, labels } = plan;
        let release = Release::pending_install(name, namespace, content, labels, now);
        let stored = store(context, extension, release).await?;
        let action = ReleaseAction::Install;
        return Ok(ReleaseWriter { context, extension, stored, action, base: None, again: None });
    };
    let action = ReleaseAction::Upgrade;
    if last.is_failed_attempt_at(&plan) {
        let (base, again) = (deployed, Some((plan, revisions)));
        return Ok(ReleaseWriter { context, extension, stored: last, action, base, again });
    }
    let base = deployed.unwrap_or_else(|| last.clone());
    let stored = begin_upgrade(context, extension, &revisions, (&last, &base), plan).await?;
    Ok(ReleaseWriter { context, extension, stored, action, base: Some(base), again: None })
}

/// Deletes the oldest releases, and writes the release of an upgrade as pending.
async fn begin_upgrade(
    context: &Context,
    extension: &ClusterExtension,
    revisions: &[Revision],
    (last, base): (&StoredRelease, &StoredRelease),
    plan: ReleasePlan,
) -> Result<StoredRelease, Failure> {
    for version in history::prunable_versions(revisions, MAX_HISTORY) {
        delete(context, &secret_name(&extension.metadata.name, version)).await?;
    }
    let ReleasePlan { content, mut labels } = plan;
    // The label of the newest release would stay.
    labels.entry(BUNDLE_RELEASE.to_owned()).or_insert_with(|| NULL_LABEL.to_owned());
    let now = context.clock.now();
    let (last, base) = (&last.release, &base.release);
    store(context, extension, Release::pending_upgrade(last, base, content, labels, now)).await
}

/// Writes the Secrets of a new release.
async fn store(
    context: &Context,
    extension: &ClusterExtension,
    release: Release,
) -> Result<StoredRelease, Failure> {
    let encoded = EncodedRelease::new(&release);
    let encoded = encoded.map_err(|error| Failure::retrying(error.to_string()))?;
    let api_version = resources::CLUSTER_EXTENSION.api_version();
    let owner = owner(extension, &api_version).reference();
    let write = SecretWrite::Create(context.clock.now());
    let namespace = &*context.release_namespace;
    let index = encoded.index_secret(namespace, &[owner], write);
    let count = 1 + extra_chunk_names(&index).map_or(0, |names| names.len());
    let index = create(context, index).await.map_err(|why| {
        Failure::retrying(format!(
            "create: failed to create index and chunk 1 of {count} secret \"{}\": {why}",
            encoded.index_name()
        ))
    })?;
    for chunk in encoded.chunk_secrets(namespace, index.uid(), write) {
        create(context, chunk).await.map_err(Failure::retrying)?;
    }
    Ok(StoredRelease { release, index })
}

impl ReleaseWriter<'_> {
    /// Writes the release as deployed, or as failed.
    ///
    /// # Errors
    /// If a Secret cannot be written.
    pub(super) async fn finish(self, failure: Option<&Failure>) -> Result<(), Failure> {
        let Self { context, extension, mut stored, action, base, again } = self;
        match failure {
            None => {
                let mut base = base;
                if let Some((plan, revisions)) = again {
                    let base = base.get_or_insert_with(|| stored.clone());
                    let start = (&stored, &*base);
                    stored = begin_upgrade(context, extension, &revisions, start, plan).await?;
                }
                if let Some(base) = &mut base {
                    base.release.supersede();
                    replace(context, extension, base).await?;
                }
                stored.release.complete(action);
            }
            Some(failure) => {
                let before = stored.release.clone();
                stored.release.fail(action, &failure.message());
                if stored.release == before {
                    return Ok(());
                }
            }
        }
        let written = replace(context, extension, &stored).await?;
        context.releases.wait_for_revision(written.resource_version()).await;
        Ok(())
    }
}

/// Replaces the Secrets of a release by those of its new state.
async fn replace(
    context: &Context,
    extension: &ClusterExtension,
    stored: &StoredRelease,
) -> Result<Object, Failure> {
    let StoredRelease { release, index: before } = stored;
    let namespace = &*context.release_namespace;
    let failed = |error: mainstay_client::Error| Failure::retrying(api_message(&error));
    let encoded = EncodedRelease::new(release);
    let encoded = encoded.map_err(|error| Failure::retrying(error.to_string()))?;
    let created_at = before.label("createdAt").unwrap_or_default();
    let write = SecretWrite::Update { created_at, modified: context.clock.now() };
    let api_version = resources::CLUSTER_EXTENSION.api_version();
    let owner = owner(extension, &api_version).reference();
    let index = encoded.index_secret(namespace, &[owner], write);
    let new: BTreeSet<String> = extra_chunk_names(&index).unwrap_or_default().into_iter().collect();
    let old = extra_chunk_names(&before.to_value()).unwrap_or_default();
    // New chunks before the index that names them, old ones after it: a reader finds all it needs.
    for chunk in encoded.chunk_secrets(namespace, before.uid(), write) {
        let name = chunk["metadata"]["name"].as_str().unwrap_or_default();
        if !old.iter().any(|old| old == name) {
            create_chunk(context, chunk).await?;
        }
    }
    let mut index =
        Object::from_value(index).map_err(|error| Failure::retrying(error.to_string()))?;
    index.set(&["metadata", "resourceVersion"], before.resource_version().into());
    let written = context.cluster.update(&builtin::SECRET, &index).await.map_err(failed)?;
    for name in old.iter().filter(|name| !new.contains(*name)) {
        delete(context, name).await?;
    }
    Ok(written)
}

async fn create(context: &Context, secret: Value) -> Result<Object, String> {
    let secret = Object::from_value(secret).map_err(|error| error.to_string())?;
    let created = context.cluster.create(&builtin::SECRET, &secret).await;
    created.map_err(|error| api_message(&error))
}

/// Creates a chunk of a release that is written again. One that exists is left from an attempt that did not
/// come to the index: the name has a hash of the content.
async fn create_chunk(context: &Context, secret: Value) -> Result<(), Failure> {
    let secret =
        Object::from_value(secret).map_err(|error| Failure::retrying(error.to_string()))?;
    match context.cluster.create(&builtin::SECRET, &secret).await {
        Err(error) if error.is_already_exists() => Ok(()),
        created => created.map(drop).map_err(|error| Failure::retrying(api_message(&error))),
    }
}

async fn delete(context: &Context, name: &str) -> Result<(), Failure> {
    let namespace = &*context.release_namespace;
    let options = DeleteOptions::default();
    let deleted =
        context.cluster.ensure_deleted(&builtin::SECRET, Some(namespace), name, &options).await;
    deleted.map(drop).map_err(|error| Failure::retrying(api_message(&error)))
}
