//! Certificates that are due for renewal while another bundle than the installed one is chosen, or none: the
//! installed one is rendered again. An upgrade can be refused for longer than certificates are valid.

use super::account::Account;
use super::attempt::{Applied, AppliedObjects, Attempt};
use super::failure::Failure;
use super::object_sets::{self, Revisions};
use super::releases::{self, History};
use super::status::InstalledBundle;
use super::webhook_certificates;
use crate::features::WebhookCertificates;
use jiff::Timestamp;
use mainstay_objectsets::{BundleIdentity, bundle_of, revision_states};

/// The failure of a resolution, during which certificates were renewed if any were due.
pub(super) fn resolution_failure(message: String, renewed: Result<(), Failure>) -> Failure {
    match renewed {
        Ok(()) => Failure::retrying(message),
        Err(error) => Failure::retrying(format!("{message}; {}", error.message())),
    }
}

impl Attempt<'_> {
    /// When the certificates of the extension are due for renewal, if the controller issues them.
    async fn renew_at(&self) -> Result<Option<Timestamp>, Failure> {
        match self.context.features.certificates {
            WebhookCertificates::Own => {
                webhook_certificates::renew_at(self.context, self.extension).await
            }
            WebhookCertificates::CertManager | WebhookCertificates::ServiceCa => Ok(None),
        }
    }

    fn is_past(&self, time: Option<Timestamp>) -> bool {
        time.is_some_and(|time| time <= self.context.clock.now())
    }

    /// Repairs the objects of the installed bundle, after a renewal of the certificates that are due.
    pub(super) async fn repair_and_renew(
        &self,
        account: &Account<'_>,
        history: History,
    ) -> Applied {
        let renew_at = self.renew_at().await?;
        if let Some(bundle) = history.installed().filter(|_| self.is_past(renew_at)) {
            let (_, objects) = Box::pin(self.install(account, history, bundle)).await?;
            return Ok(objects);
        }
        Ok(AppliedObjects { renew_at, ..self.repair(account, &history).await? })
    }

    /// When certificates are due next, if that is known and not past: then only another input can help.
    pub(super) async fn next_renewal(&self) -> Option<Timestamp> {
        let renew_at = self.renew_at().await.ok().flatten();
        renew_at.filter(|_| !self.is_past(renew_at))
    }

    /// Installs a bundle. Before an upgrade, certificates of the installed bundle are renewed if they are due.
    pub(super) async fn renew_and_install(
        &self,
        account: &Account<'_>,
        history: History,
        bundle: InstalledBundle,
    ) -> Result<(Option<InstalledBundle>, AppliedObjects), Failure> {
        let is_upgrade = history.installed().is_some_and(|installed| installed.name != bundle.name);
        if !is_upgrade || !self.is_past(self.renew_at().await?) {
            return Box::pin(self.install(account, history, bundle)).await;
        }
        // If this fails, the upgrade may still succeed, and renews them too.
        let _ = Box::pin(self.renew(account, history)).await;
        let history = releases::history(self.context, &self.extension.metadata.name).await?;
        Box::pin(self.install(account, history, bundle)).await
    }

    /// Renews certificates that are due, and does nothing else.
    ///
    /// # Errors
    /// The installed bundle cannot be rendered or written.
    pub(super) async fn renew(
        &self,
        account: &Account<'_>,
        history: History,
    ) -> Result<(), Failure> {
        let renew_at = self.renew_at().await?;
        if let Some(bundle) = history.installed().filter(|_| self.is_past(renew_at)) {
            Box::pin(self.install(account, history, bundle)).await?;
        }
        Ok(())
    }

    /// Whether certificates of the installed bundle were due, and a revision with new ones rolls out now, before
    /// an upgrade to the chosen bundle.
    pub(super) async fn renews_before_upgrade(
        &self,
        revisions: Revisions<'_>,
        account: &Account<'_>,
        bundle: &BundleIdentity,
    ) -> Result<bool, Failure> {
        let (cache, sets) = revisions;
        let installed = revision_states(sets).installed.map(bundle_of);
        let is_upgrade = installed.is_some_and(|installed| installed.name != bundle.name);
        if !is_upgrade || !self.is_past(self.renew_at().await?) {
            return Ok(false);
        }
        let _ = Box::pin(self.keep_object_set(revisions, account)).await;
        Ok(object_sets::revisions(cache, &self.extension.metadata.name).len() > sets.len())
    }

    /// Renews certificates that are due; the controller of ClusterObjectSets repairs the objects.
    pub(super) async fn keep_object_set(
        &self,
        revisions: Revisions<'_>,
        account: &Account<'_>,
    ) -> Applied {
        let renew_at = self.renew_at().await?;
        if !self.is_past(renew_at) {
            return Ok(AppliedObjects { renew_at, ..AppliedObjects::default() });
        }
        match revision_states(revisions.1).installed {
            Some(installed) => {
                Box::pin(self.apply_bundle(revisions, account, &bundle_of(installed))).await
            }
            None => Ok(AppliedObjects::default()),
        }
    }
}
