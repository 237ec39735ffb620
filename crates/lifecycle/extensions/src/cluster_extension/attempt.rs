//! One reconciliation of an extension: from its spec to its objects, and to what its status says.

use super::account::{self, Account};
use super::apply::{self, ObjectKey, Operation, ReleaseMarks, WantedObject};
use super::approved::{Access, AccountState};
use super::bundle;
use super::dependencies::CheckedDependencies;
use super::failure::Failure;
use super::preflight;
use super::releases::{self, History, ReleasePlan};
use super::renewals;
use super::resolve::{self, CatalogInput, Resolution};
use super::status::{Deprecations, Installed, InstalledBundle, Outcome, Progress};
use crate::context::Context;
use crate::features::TrustMode;
use jiff::Timestamp;
use mainstay_api::ClusterExtension;
use mainstay_permissions::ExtensionApplier;
use mainstay_resolver::extension::{ExtensionChoice, InstalledExtensionBundle};
use std::collections::BTreeSet;
use std::sync::{Arc, OnceLock};

/// One reconciliation of an extension.
pub(super) struct Attempt<'a> {
    pub(super) context: &'a Arc<Context>,
    pub(super) extension: &'a ClusterExtension,
    pub(super) input: &'a CatalogInput,
    /// The check of the dependencies of the chosen bundle.
    pub(super) dependencies: OnceLock<CheckedDependencies>,
    /// The account that the controller keeps, as the attempt left it; unset in other trust modes.
    pub(super) account: OnceLock<AccountState>,
}

/// The objects of an extension, or why they are not as its spec says.
pub(super) type Applied = Result<AppliedObjects, Failure>;

/// The objects of an extension.
#[derive(Debug, Default)]
pub(super) struct AppliedObjects {
    pub(super) keys: BTreeSet<ObjectKey>,
    /// Whether the content of the bundle could not be pulled, so that these are the objects of the release
    /// that is there, and a change of the configuration may be missing.
    pub(super) is_stale: bool,
    /// When the certificates in them are due for renewal.
    pub(super) renew_at: Option<Timestamp>,
    /// Why the spec is not carried out although these objects are as they should be: nobody has approved the
    /// permissions for the rest.
    pub(super) unapproved: Option<Failure>,
}

impl AppliedObjects {
    pub(super) fn of(wanted: &[WantedObject]) -> Self {
        Self { keys: wanted.iter().map(WantedObject::key).collect(), ..Self::default() }
    }

    /// These objects, while permissions for more are not approved.
    pub(super) fn waiting_for(self, failure: Failure) -> Self {
        Self { unapproved: Some(failure), ..self }
    }
}

/// The result with a text before the message of its failure.
pub(super) fn within(applied: Applied, text: &str) -> Applied {
    let applied = applied.map_err(|failure| failure.within(text));
    applied.map(|objects| {
        let unapproved = objects.unapproved.map(|failure| failure.within(text));
        AppliedObjects { unapproved, ..objects }
    })
}

/// The chosen bundle, as the status names it.
pub(super) fn installed_bundle(context: &Context, choice: &ExtensionChoice) -> InstalledBundle {
    let explicit = context.features.explicit_releases;
    let release = choice.version.release().filter(|_| explicit);
    InstalledBundle {
        name: choice.bundle.to_string(),
        version: if explicit {
            choice.version.version().to_string()
        } else {
            choice.version.to_string()
        },
        release: release.map(ToString::to_string),
        image: choice.image.to_string(),
    }
}

/// The text before the message of a failure of the chosen bundle.
fn text_of(choice: &ExtensionChoice) -> String {
    format!("error for resolved bundle \"{}\" with version \"{}\"", choice.bundle, choice.version)
}

impl<'a> Attempt<'a> {
    pub(super) const fn new(
        context: &'a Arc<Context>,
        extension: &'a ClusterExtension,
        input: &'a CatalogInput,
    ) -> Self {
        Self { context, extension, input, dependencies: OnceLock::new(), account: OnceLock::new() }
    }

    /// Checks the dependencies of the chosen bundle; returns whether the bundle may be installed.
    ///
    /// # Errors
    /// They cannot be checked.
    pub(super) async fn may_install(
        &self,
        choice: &ExtensionChoice,
        installed: Option<&InstalledBundle>,
    ) -> Result<bool, Failure> {
        let checked = CheckedDependencies::of(self.context, self.extension, choice).await?;
        let Some(checked) = checked else { return Ok(true) };
        // What is installed stays, whatever happened to its dependencies.
        let is_installed = installed.is_some_and(|installed| *installed.name == *choice.bundle);
        let may_install = is_installed || !checked.is_unmet();
        // An attempt checks once.
        let _ = self.dependencies.set(checked);
        Ok(may_install)
    }

    /// What the condition `Progressing` says.
    pub(super) fn progress(&self, applied: &Applied) -> Progress {
        match applied {
            Ok(AppliedObjects { unapproved: Some(failure), .. }) | Err(failure) => {
                failure.progress()
            }
            Ok(_) => CheckedDependencies::progress(self.dependencies.get()),
        }
    }

    /// Reconciles the extension; returns what its status says, and its objects.
    pub(super) async fn run(&self) -> (Outcome, Applied) {
        let unknown = |failure: Failure| (Outcome::unknown(&failure), Err(failure));
        let given = match self.context.features.trust {
            TrustMode::Approved => None,
            _ => match account::client(self.context, self.extension).await {
                Ok(client) => Some(client),
                Err(failure) => return unknown(failure),
            },
        };
        if let Some(sets) = &self.context.object_sets {
            return Box::pin(self.run_with_object_sets(sets, given)).await;
        }
        let history = match releases::history(self.context, &self.extension.metadata.name).await {
            Ok(history) => history,
            Err(failure) => {
                let (mut outcome, applied) = unknown(failure);
                let why = "retrying to get installed bundle".to_owned();
                outcome.progress = Progress::Retrying(why);
                return (outcome, applied);
            }
        };
        let installed = || history.base_values();
        let account = match Account::new(self.context, self.extension, given, installed) {
            Ok(account) => account,
            Err(failure) => return unknown(failure),
        };
        let before = history.installed();
        let resolved = before.as_ref().map(InstalledExtensionBundle::from);
        let features = &self.context.features;
        let resolution = resolve::resolve(
            self.extension,
            features.explicit_releases,
            resolved.as_ref(),
            self.input,
        );
        let (installed, deprecations, applied) = match resolution {
            Resolution::Failed(failure) => {
                let renewed = Box::pin(self.renew(&account, history)).await;
                let failure = renewals::resolution_failure(failure.message, renewed);
                (before, Deprecations::Unknown, Err(failure))
            }
            Resolution::Kept => {
                let applied = Box::pin(self.repair_and_renew(&account, history)).await;
                (before, Deprecations::Unknown, applied)
            }
            Resolution::Chosen(choice) => {
                let (installed, applied) =
                    Box::pin(self.install_chosen(&account, history, &choice)).await;
                (installed, Deprecations::Known(choice.deprecation), applied)
            }
        };
        let applied = account.end_attempt(applied, &self.account).await;
        let installed = installed.map_or(Installed::Nothing, Installed::Bundle);
        let progress = self.progress(&applied);
        (Outcome { installed, progress, deprecations, revisions: None }, applied)
    }

    /// Installs the chosen bundle, or keeps what is installed as long as its dependencies are not satisfied. Returns
    /// which bundle is installed then.
    async fn install_chosen(
        &self,
        account: &Account<'_>,
        history: History,
        choice: &ExtensionChoice,
    ) -> (Option<InstalledBundle>, Applied) {
        let before = history.installed();
        let applied = match self.may_install(choice, before.as_ref()).await {
            Ok(true) => {
                let bundle = installed_bundle(self.context, choice);
                match Box::pin(self.renew_and_install(account, history, bundle)).await {
                    Ok((installed, objects)) => {
                        return (installed, within(Ok(objects), &text_of(choice)));
                    }
                    Err(failure) => Err(failure),
                }
            }
            Ok(false) if before.is_none() => return (before, Ok(AppliedObjects::default())),
            Ok(false) => {
                let kept = Box::pin(self.repair_and_renew(account, history)).await;
                return (before, kept);
            }
            Err(failure) => Err(failure),
        };
        (before, within(applied, &text_of(choice)))
    }

    pub(super) fn marks(&self) -> ReleaseMarks<'_> {
        let ClusterExtension { metadata, spec, .. } = self.extension;
        ReleaseMarks { uid: &metadata.uid, name: &metadata.name, namespace: &spec.namespace }
    }

    /// Installs a bundle, upgrades to it, or repairs the objects of the installed one. Returns which one is
    /// installed then.
    pub(super) async fn install(
        &self,
        account: &Account<'_>,
        history: History,
        bundle: InstalledBundle,
    ) -> Result<(Option<InstalledBundle>, AppliedObjects), Failure> {
        let rendered = match bundle::render(self.context, self.extension, &bundle.image).await {
            Ok(rendered) => rendered,
            // Meanwhile the installed bundle stays, as upstream.
            Err(failure) if failure.is_content_unavailable() => {
                let installed = history.installed();
                if installed.is_some_and(|installed| installed.name == bundle.name) {
                    let objects = self.repair(account, &history).await?;
                    return Ok((Some(bundle), AppliedObjects { is_stale: true, ..objects }));
                }
                return Err(failure);
            }
            Err(failure) => return Err(failure),
        };
        let applier = &ExtensionApplier::Helm;
        preflight::check_permissions(self.context, self.extension, applier, &rendered.objects)
            .await?;
        let mut plan = ReleasePlan::new(self.extension, &bundle, &rendered);
        let renew_at = rendered.renew_at;
        if history.has(&plan) {
            let objects = self.repair(account, &history).await?;
            return Ok((Some(bundle), AppliedObjects { renew_at, ..objects }));
        }
        let client = match account.for_bundle(&rendered.objects).await? {
            Access::Granted(client) => client,
            // What is installed stays, and is repaired.
            Access::Unapproved(failure) => {
                let objects = if history.deployed().is_some() {
                    self.repair(account, &history).await?
                } else {
                    AppliedObjects::default()
                };
                let objects = AppliedObjects { renew_at, ..objects };
                return Ok((history.installed(), objects.waiting_for(failure)));
            }
        };
        let wanted = apply::with_resources(self.context, self.marked(plan.objects()?)).await?;
        // One at a time, so that of two extensions with the same objects one finds those of the other.
        let _installing = self.context.installing.lock().await;
        let operation =
            if history.last().is_some() { Operation::Upgrade } else { Operation::Install };
        let previous = history.base_objects()?;
        let (cluster, servers) = (&client.cluster, &rendered.issued_for);
        let existing = apply::find_existing(cluster, &wanted, servers, self.marks(), operation);
        let existing = existing.await.map_err(|failure| {
            failure.within("failed to get release state using server-side dry-run")
        })?;
        preflight::check_crds(self.extension, &wanted, &existing)?;
        let writer = releases::begin(self.context, self.extension, history, plan).await?;
        let written = match operation {
            Operation::Install => self.write_all(&client, &wanted, &existing).await,
            Operation::Upgrade => self.upgrade(&client, &wanted, &existing, &previous).await,
        };
        writer.finish(written.as_ref().err()).await?;
        written?;
        account.finish(&rendered.objects).await?;
        Ok((Some(bundle), AppliedObjects { renew_at, ..AppliedObjects::of(&wanted) }))
    }
}
