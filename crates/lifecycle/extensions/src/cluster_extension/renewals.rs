//! Certificates that are due for renewal while no bundle is chosen: the installed one is rendered again.

use super::account::Account;
use super::attempt::{Applied, AppliedObjects, Attempt};
use super::failure::Failure;
use super::object_sets::Revisions;
use super::releases::History;
use super::webhook_certificates;
use crate::features::WebhookCertificates;
use jiff::Timestamp;
use mainstay_objectsets::{bundle_of, revision_states};

/// The failure of a resolution, during which certificates were renewed if any were due.
pub(super) fn unresolved(message: String, renewed: Result<(), Failure>) -> Failure {
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
    pub(super) async fn keep(&self, account: &Account<'_>, history: History) -> Applied {
        let renew_at = self.renew_at().await?;
        if let Some(bundle) = history.installed().filter(|_| self.is_past(renew_at)) {
            let (_, objects) = Box::pin(self.install(account, history, bundle)).await?;
            return Ok(objects);
        }
        Ok(AppliedObjects { renew_at, ..self.repair(account, &history).await? })
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
