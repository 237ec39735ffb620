//! The applier with ClusterObjectSets: an extension writes revisions, whose controller writes the objects.
//!
//! ```text
//! ClusterObjectSets ─► rolling out? ─ no ─► resolve ─► pull, render ─┬─► unchanged │ updated
//!                        └─ yes: its bundle ─────────► pull, render ─┴─► Secrets, new ClusterObjectSet
//! ```
//!
//! An extension that Helm releases describe gets its first ClusterObjectSet from the deployed release.

use super::account::Account;
use super::apply;
use super::approved::Access;
use super::attempt::{self, Applied, AppliedObjects, Attempt, installed_bundle};
use super::bundle;
use super::failure::Failure;
use super::preflight;
use super::releases;
use super::renewals;
use super::resolve::{self, Resolution};
use super::status::{Deprecations, Installed, InstalledBundle, Outcome};
use crate::account_client::AccountClient;
use crate::context::Context;
use crate::error::Error;
use crate::features::TrustMode;
use crate::object_set::{is_reported_archived, object_values};
use mainstay_api::names::olm_v1::{
    BUNDLE_PROPERTIES_ANNOTATION, EXTENSION_FIELD_MANAGER, MIGRATED_FROM_HELM_LABEL, PACKAGE_NAME,
    REVISION_NAME_LABEL,
};
use mainstay_api::{ClusterExtension, ClusterObjectSet, Time, resources};
use mainstay_client::{Cache, DeleteOptions, ObjectList, Patch};
use mainstay_controller::{WithOperation as _, api_message, patch};
use mainstay_object::{Object, OwnerReference, builtin};
use mainstay_objectsets::{
    BundleIdentity, DesiredObjectSet, ExtensionIdentity, ObjectSetChange, ObjectSetIdentity,
    PackedObjectSet, PhaseSplit, bundle_of, compare_object_set, deleted_revisions, migrated_status,
    revision_states, revisions_of, secret_owner_patch, unfinished_migration,
};
use mainstay_permissions::ExtensionApplier;
use mainstay_resolver::extension::InstalledExtensionBundle;
use serde_json::Value;
use std::sync::Arc;

/// The ClusterObjectSets of an extension, oldest revision first.
pub(super) fn revisions(cache: &Cache<ClusterObjectSet>, extension: &str) -> Vec<ClusterObjectSet> {
    let sets = cache.indexed(extension).into_iter();
    let sets: Vec<ClusterObjectSet> = sets.map(|(_, set)| Arc::unwrap_or_clone(set)).collect();
    revisions_of(extension, &sets)
}

/// The bundle of a ClusterObjectSet, as the status names it.
fn installed_by(set: &ClusterObjectSet) -> InstalledBundle {
    let BundleIdentity { name, version, release, image, .. } = bundle_of(set);
    InstalledBundle { name, version, release, image }
}

/// Whether the only revision was made from a Helm release, and its controller has not reported about it yet.
/// A second revision would archive it before it has taken its objects over.
fn awaits_first_report(sets: &[ClusterObjectSet]) -> bool {
    let [set] = sets else { return false };
    set.metadata.labels.contains_key(MIGRATED_FROM_HELM_LABEL)
        && !set.spec.phases.is_empty()
        && (set.status.observed_phases.is_empty() || unfinished_migration(sets).is_some())
}

/// All ClusterObjectSets, and those of the extension.
pub(super) type Revisions<'a> = (&'a Cache<ClusterObjectSet>, &'a [ClusterObjectSet]);

fn request_failed(error: &mainstay_client::Error) -> Failure {
    Failure::retrying(api_message(error))
}

impl Attempt<'_> {
    /// Reconciles the extension with ClusterObjectSets; returns what its status says.
    pub(super) async fn run_with_object_sets(
        &self,
        cache: &Cache<ClusterObjectSet>,
        given: Option<AccountClient>,
    ) -> (Outcome, Applied) {
        let (sets, account) = match self.begin_with_object_sets(cache, given).await {
            Ok(begun) => begun,
            Err(failure) => {
                return (Outcome::unknown(&failure), Err(failure));
            }
        };
        let (deprecations, applied) = if awaits_first_report(&sets) {
            // The report enqueues the extension.
            (Deprecations::Unchanged, Ok(AppliedObjects::default()))
        } else {
            Box::pin(self.resolve_and_apply(cache, &sets, &account)).await
        };
        let applied = account.end_attempt(applied, &self.account).await;
        let progress = self.progress(&applied);
        let installed = revision_states(&sets).installed.map(installed_by);
        let outcome = Outcome {
            installed: installed.map_or(Installed::Nothing, Installed::Bundle),
            progress,
            deprecations,
            revisions: Some(Arc::new(sets)),
        };
        (outcome, applied)
    }

    /// The ClusterObjectSets of the extension, and the account that their objects are applied with.
    async fn begin_with_object_sets(
        &self,
        cache: &Cache<ClusterObjectSet>,
        given: Option<AccountClient>,
    ) -> Result<(Vec<ClusterObjectSet>, Account<'_>), Failure> {
        let sets = self.migrate(cache).await?;
        let mut installed = Vec::new();
        if given.is_none() {
            // Until an earlier revision is torn down, the account needs the permissions for it, too.
            for set in sets.iter().filter(|set| !is_reported_archived(set)) {
                let objects = object_values(self.context, set).await;
                installed.extend(objects.map_err(Failure::retrying)?);
            }
        }
        let account = Account::new(self.context, self.extension, given, || Ok(installed))?;
        Ok((sets, account))
    }

    async fn resolve_and_apply(
        &self,
        cache: &Cache<ClusterObjectSet>,
        sets: &[ClusterObjectSet],
        account: &Account<'_>,
    ) -> (Deprecations, Applied) {
        let states = revision_states(sets);
        let installed = states.installed.map(installed_by);
        if let Some(set) = states.rolling_out.first() {
            let bundle = bundle_of(set);
            let applied = Box::pin(self.apply_bundle((cache, sets), account, &bundle)).await;
            return (Deprecations::Unknown, applied);
        }
        let resolved = installed.as_ref().map(InstalledExtensionBundle::from);
        let explicit = self.context.features.explicit_releases;
        match resolve::resolve(self.extension, explicit, resolved.as_ref(), self.input) {
            Resolution::Failed(failure) => {
                let renewed =
                    Box::pin(self.keep_object_set((cache, sets), account)).await.map(drop);
                (Deprecations::Unknown, Err(renewals::resolution_failure(failure.message, renewed)))
            }
            Resolution::Kept => (
                Deprecations::Unknown,
                Box::pin(self.keep_object_set((cache, sets), account)).await,
            ),
            Resolution::Chosen(choice) => {
                let deprecations = Deprecations::Known(choice.deprecation.clone());
                match self.may_install(&choice, installed.as_ref()).await {
                    Ok(true) => {}
                    // The controller of ClusterObjectSets repairs what is installed.
                    Ok(false) => {
                        let kept = Box::pin(self.keep_object_set((cache, sets), account)).await;
                        return (deprecations, kept);
                    }
                    Err(failure) => return (deprecations, Err(failure)),
                }
                let InstalledBundle { name, version, release, image } =
                    installed_bundle(self.context, &choice);
                let package = self.extension.spec.source.catalog.as_ref();
                let package = package.map(|filter| filter.package_name.clone());
                let package = package.unwrap_or_default();
                let bundle = BundleIdentity { package, name, version, release, image };
                let revisions = (cache, sets);
                let renews = self.renews_before_upgrade(revisions, account, &bundle);
                let applied = match Box::pin(renews).await {
                    // The new revision enqueues the extension.
                    Ok(true) => Ok(AppliedObjects::default()),
                    Ok(false) => Box::pin(self.apply_bundle(revisions, account, &bundle)).await,
                    Err(failure) => Err(failure),
                };
                (deprecations, applied)
            }
        }
    }

    /// Makes the newest ClusterObjectSet that of a bundle.
    pub(super) async fn apply_bundle(
        &self,
        revisions: Revisions<'_>,
        account: &Account<'_>,
        bundle: &BundleIdentity,
    ) -> Applied {
        let applied = Box::pin(self.try_apply_bundle(revisions, account, bundle)).await;
        let BundleIdentity { name, version, release, .. } = bundle;
        // A release replaces the build metadata.
        let version = match (release, version.split_once('+')) {
            (Some(release), Some((version, _))) => format!("{version}+{release}"),
            (Some(release), None) => format!("{version}+{release}"),
            (None, _) => version.clone(),
        };
        let text = format!("error for resolved bundle \"{name}\" with version \"{version}\"");
        attempt::within(applied, &text)
    }

    async fn try_apply_bundle(
        &self,
        (cache, sets): Revisions<'_>,
        account: &Account<'_>,
        bundle: &BundleIdentity,
    ) -> Applied {
        let rendered = match bundle::render(self.context, self.extension, &bundle.image).await {
            Ok(rendered) => rendered,
            // Meanwhile the installed bundle stays, as upstream.
            Err(failure) if failure.is_content_unavailable() => {
                let installed = revision_states(sets).installed.map(installed_by);
                let is_installed = installed.is_some_and(|found| found.name == bundle.name);
                let stale = AppliedObjects { is_stale: true, ..AppliedObjects::default() };
                return if is_installed { Ok(stale) } else { Err(failure) };
            }
            Err(failure) => return Err(failure),
        };
        let objects = rendered.objects.iter().cloned().map(Object::from_value);
        let objects = objects.collect::<Result<Vec<_>, _>>();
        let objects = objects.map_err(|error| Failure::retrying(error.to_string()))?;
        let properties = rendered.annotations.get(BUNDLE_PROPERTIES_ANNOTATION);
        let desired = DesiredObjectSet::from_bundle(
            objects,
            bundle,
            properties.map(String::as_str),
            self.identity(),
            PhaseSplit::AtLimit,
        );
        let objects_of_set =
            AppliedObjects { renew_at: rendered.renew_at, ..AppliedObjects::default() };
        let change = compare_object_set(&desired, sets, &self.context.release_namespace);
        match change.map_err(|error| Failure::retrying(error.to_string()))? {
            ObjectSetChange::Unchanged => {
                if let Some(newest) = sets.last() {
                    self.adopt_secrets(newest).await?;
                }
            }
            ObjectSetChange::Update(set) => drop(self.write(cache, &set).await?),
            ObjectSetChange::Create(packed) => {
                let manifest = &rendered.objects;
                if let Access::Unapproved(failure) = account.for_bundle(manifest).await? {
                    // What is installed stays, and its controller repairs it.
                    let failure = failure.within("creating new Revision");
                    return Ok(objects_of_set.waiting_for(failure));
                }
                Box::pin(self.create((cache, sets), &desired, &packed, manifest)).await?;
            }
        }
        Ok(objects_of_set)
    }

    fn identity(&self) -> ExtensionIdentity {
        let uses_account = self.context.features.trust == TrustMode::ServiceAccount;
        ExtensionIdentity::new(self.extension, uses_account)
    }

    /// Creates a revision, after the checks of its objects.
    async fn create(
        &self,
        (cache, sets): Revisions<'_>,
        desired: &DesiredObjectSet,
        packed: &PackedObjectSet,
        manifest: &[Value],
    ) -> Result<(), Failure> {
        let name = packed.object_set.metadata.name.clone();
        let applier = ExtensionApplier::ObjectSets { object_set: name };
        preflight::check_permissions(self.context, self.extension, &applier, manifest)
            .await
            .map_err(|failure| failure.within("creating new Revision"))?;
        self.check_crds(desired).await?;
        let cluster = &self.context.cluster;
        for set in deleted_revisions(sets) {
            let (resource, name) = (&resources::CLUSTER_OBJECT_SET, &*set.metadata.name);
            let options = DeleteOptions::uid(&*set.metadata.uid);
            let deleted = cluster.ensure_deleted(resource, None, name, &options).await;
            deleted.map_err(|error| request_failed(&error))?;
        }
        self.write_packed(cache, packed).await.map(drop)
    }

    /// Writes the Secrets of a set, then the set, which becomes their owner.
    async fn write_packed(
        &self,
        cache: &Cache<ClusterObjectSet>,
        packed: &PackedObjectSet,
    ) -> Result<ClusterObjectSet, Failure> {
        let PackedObjectSet { object_set, secrets } = packed;
        let cluster = &self.context.cluster;
        for secret in secrets {
            match cluster.create(&builtin::SECRET, &secret.to_object()).await {
                // An attempt that was interrupted created it: its name is a digest of its content.
                Err(error) if !error.is_already_exists() => return Err(request_failed(&error)),
                _ => {}
            }
        }
        let written = self.write(cache, object_set).await?;
        let owner = ObjectSetIdentity::from(&written).owner_reference();
        for secret in secrets {
            self.adopt(&secret.name, &owner).await?;
        }
        Ok(written)
    }

    /// Checks each CustomResourceDefinition against the one that exists.
    async fn check_crds(&self, desired: &DesiredObjectSet) -> Result<(), Failure> {
        let is_crd = |object: &&Object| object.kind() == "CustomResourceDefinition";
        let crds: Vec<Object> = desired.objects().filter(is_crd).cloned().collect();
        let crds = apply::with_resources(self.context, crds).await?;
        let mut existing = Vec::with_capacity(crds.len());
        for crd in &crds {
            let found = self.context.cluster.find(&crd.resource, None, crd.object.name()).await;
            existing.push(found.map_err(|error| request_failed(&error))?);
        }
        preflight::check_crds(self.extension, &crds, &existing)
    }

    /// Applies a ClusterObjectSet, and returns it as stored.
    async fn write(
        &self,
        cache: &Cache<ClusterObjectSet>,
        set: &ClusterObjectSet,
    ) -> Result<ClusterObjectSet, Failure> {
        let object = set.to_object().map_err(|error| Failure::retrying(error.to_string()))?;
        let resource = &resources::CLUSTER_OBJECT_SET;
        let written = self.context.cluster.apply(resource, &object, EXTENSION_FIELD_MANAGER).await;
        let written = written.map_err(|error| request_failed(&error))?;
        cache.wait_for_revision(written.resource_version()).await;
        ClusterObjectSet::from_object(&written)
            .map_err(|error| Failure::retrying(error.to_string()))
    }

    async fn adopt(&self, secret: &str, owner: &OwnerReference) -> Result<(), Failure> {
        let patch = Patch::Merge(secret_owner_patch(owner));
        let namespace = Some(&*self.context.release_namespace);
        match self.context.cluster.patch(&builtin::SECRET, namespace, secret, &patch).await {
            Err(error) if !error.is_not_found() => Err(request_failed(&error)),
            _ => Ok(()),
        }
    }

    /// Makes a set the owner of its Secrets, if an attempt was interrupted before that.
    async fn adopt_secrets(&self, set: &ClusterObjectSet) -> Result<(), Failure> {
        let selector = format!("{REVISION_NAME_LABEL}={}", set.metadata.name);
        let list = ObjectList { metadata_only: true, ..ObjectList::labels(selector) };
        let namespace = Some(&*self.context.release_namespace);
        let found = self.context.cluster.list(&builtin::SECRET, namespace, &list).await;
        let owner = ObjectSetIdentity::from(set).owner_reference();
        for secret in found.map_err(|error| request_failed(&error))?.items {
            if secret.owner_references().is_empty() {
                self.adopt(secret.name(), &owner).await?;
            }
        }
        Ok(())
    }

    /// The ClusterObjectSets of the extension. If there are none, the first one is made from the deployed
    /// Helm release.
    async fn migrate(
        &self,
        cache: &Cache<ClusterObjectSet>,
    ) -> Result<Vec<ClusterObjectSet>, Failure> {
        let name = &*self.extension.metadata.name;
        let sets = revisions(cache, name);
        if let [set] = &sets[..]
            && set.metadata.labels.contains_key(MIGRATED_FROM_HELM_LABEL)
        {
            self.adopt_secrets(set).await?;
        }
        if let Some(set) = unfinished_migration(&sets) {
            self.complete_migration(cache, set).await?;
            return Ok(revisions(cache, name));
        }
        if !sets.is_empty() {
            return Ok(sets);
        }
        releases::wait_for_cache(self.context, name).await?;
        if self.context.releases.count(name) == 0 {
            return Ok(sets);
        }
        let history = releases::history(self.context, name).await?;
        let (Some(release), Some(bundle)) = (history.deployed(), history.installed()) else {
            return Ok(sets);
        };
        let InstalledBundle { name: bundle_name, version, release: number, image } = bundle;
        let bundle = BundleIdentity {
            package: release.label(PACKAGE_NAME).unwrap_or_default().to_owned(),
            name: bundle_name,
            version,
            release: number,
            image,
        };
        let objects = release.objects()?;
        let desired = DesiredObjectSet::from_helm_release(objects, &bundle, self.identity());
        let first = desired.first_revision(&self.context.release_namespace);
        let first = first.map_err(|error| Failure::retrying(error.to_string()))?;
        let set = self.write_packed(cache, &first).await?;
        self.complete_migration(cache, &set).await?;
        Ok(revisions(cache, name))
    }

    /// Writes that a set which was made from a release has succeeded.
    async fn complete_migration(
        &self,
        cache: &Cache<ClusterObjectSet>,
        set: &ClusterObjectSet,
    ) -> Result<(), Failure> {
        let status = migrated_status(set, Time::new(self.context.clock.now()));
        let patch = patch::of_view(set, &status);
        let patch = patch.map_err(|error| Failure::retrying(error.to_string()))?;
        let Some(patch) = patch else { return Ok(()) };
        let (resource, name) = (&resources::CLUSTER_OBJECT_SET, &*set.metadata.name);
        let written = self.context.cluster.patch_status(resource, None, name, &patch).await;
        let written = match written {
            // The controller of ClusterObjectSets has reported. The next reconciliation looks again.
            Err(error) if error.is_conflict() => return Ok(()),
            written => written.map_err(|error| request_failed(&error))?,
        };
        cache.wait_for_revision(written.resource_version()).await;
        Ok(())
    }
}

/// Deletes the ClusterObjectSets of an extension that is being deleted. Returns whether some are still there.
///
/// # Errors
/// If one cannot be deleted.
pub(super) async fn delete_revisions(
    context: &Context,
    extension: &ClusterExtension,
) -> Result<bool, Error> {
    let Some(cache) = &context.object_sets else { return Ok(false) };
    let is_ours = |set: &ClusterObjectSet| {
        let mut owners = set.metadata.owner_references.iter();
        owners.any(|owner| owner.is_controller() && owner.uid == extension.metadata.uid)
    };
    let sets = cache.indexed(&extension.metadata.name).into_iter().map(|(_, set)| set);
    let sets: Vec<Arc<ClusterObjectSet>> = sets.filter(|set| is_ours(set)).collect();
    for set in sets.iter().filter(|set| set.metadata.deletion_timestamp.is_none()) {
        // A deletion with orphans takes the owner from a set.
        let options = DeleteOptions::uid(&*set.metadata.uid)
            .resource_version(&*set.metadata.resource_version);
        let (resource, name) = (&resources::CLUSTER_OBJECT_SET, &*set.metadata.name);
        let deleted = context.cluster.ensure_deleted(resource, None, name, &options).await;
        deleted.during("deleting a ClusterObjectSet of a deleted ClusterExtension")?;
    }
    Ok(!sets.is_empty())
}
