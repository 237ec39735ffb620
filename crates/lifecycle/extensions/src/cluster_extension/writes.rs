//! Writes of the objects of an extension: all of a version, the difference between two, and repairs.

use super::account::Account;
use super::apply::{self, ObjectKey, Operation, WantedObject};
use super::approved::Access;
use super::attempt::{Applied, AppliedObjects, Attempt};
use super::failure::Failure;
use super::readiness;
use super::releases::History;
use crate::account_client::AccountClient;
use mainstay_controller::api_message;
use mainstay_object::Object;
use std::collections::BTreeSet;

impl Attempt<'_> {
    /// The objects of a release with Helm's marks.
    pub(super) fn marked(&self, mut objects: Vec<Object>) -> Vec<Object> {
        for object in &mut objects {
            self.marks().set_on(object);
        }
        objects
    }

    /// Writes all objects, also after one was refused.
    pub(super) async fn write_all(
        &self,
        client: &AccountClient,
        wanted: &[WantedObject],
        existing: &[Option<Object>],
    ) -> Result<(), Failure> {
        let mut errors = Vec::new();
        for (wanted, existing) in wanted.iter().zip(existing) {
            match apply::write(&client.cluster, wanted, existing.as_ref()).await {
                Ok(stored) => self.note(client, wanted, &stored).await,
                Err(error) => errors.push(api_message(&error)),
            }
        }
        if errors.is_empty() { Ok(()) } else { Err(apply::install_failure(&errors)) }
    }

    /// Writes the objects of a version, up to the first one that cannot be created; then deletes those
    /// that only earlier versions have.
    pub(super) async fn upgrade(
        &self,
        client: &AccountClient,
        wanted: &[WantedObject],
        existing: &[Option<Object>],
        previous: &BTreeSet<ObjectKey>,
    ) -> Result<(), Failure> {
        self.write_changed(client, wanted.iter().zip(existing)).await?;
        let kept: BTreeSet<ObjectKey> = wanted.iter().map(WantedObject::key).collect();
        for key in previous.difference(&kept) {
            let failed = |error: mainstay_client::Error| Failure::retrying(api_message(&error));
            let found = self.context.resources.find(&self.context.cluster, &key.gvk).await;
            // A kind that is gone has no objects.
            let Some(resource) = found.map_err(failed)? else { continue };
            self.context.managed.forget(key);
            apply::delete(&client.cluster, &resource, &key.name).await.map_err(failed)?;
        }
        Ok(())
    }

    /// Writes objects, up to the first one that cannot be created.
    pub(super) async fn write_changed<'o>(
        &self,
        client: &AccountClient,
        objects: impl Iterator<Item = (&'o WantedObject, &'o Option<Object>)> + Send,
    ) -> Result<(), Failure> {
        let mut errors = Vec::new();
        for (wanted, existing) in objects {
            match apply::write(&client.cluster, wanted, existing.as_ref()).await {
                Ok(stored) => self.note(client, wanted, &stored).await,
                Err(error) if existing.is_none() => return Err(apply::creation_failure(&error)),
                Err(error) => errors.push(apply::change_error(wanted, &error)),
            }
        }
        if errors.is_empty() { Ok(()) } else { Err(Failure::retrying(errors.join(" && "))) }
    }

    /// Makes the objects of the deployed release as they were, unless the permissions for that are not approved
    /// any more.
    pub(super) async fn repair(&self, account: &Account<'_>, history: &History) -> Applied {
        let Some(release) = history.deployed() else {
            return Err(Failure::retrying(
                "catalog content unavailable and no release installed".to_owned(),
            ));
        };
        let client = &match account.for_installed().await? {
            Access::Granted(client) => client,
            Access::Unapproved(failure) => {
                return Ok(AppliedObjects::default().waiting_for(failure));
            }
        };
        let mut wanted = apply::with_resources(self.context, release.objects()?).await?;
        let existing =
            apply::find_existing(&client.cluster, &wanted, &[], self.marks(), Operation::Upgrade);
        let existing = existing.await?;
        let mut changed = Vec::new();
        for (at, (wanted, existing)) in wanted.iter_mut().zip(&existing).enumerate() {
            let Some(existing) = existing else {
                changed.push(at);
                continue;
            };
            // Upstream does not mark what it creates again, and leaves other marks as they are.
            if self.marks().are_on(existing) {
                self.marks().set_on(&mut wanted.object);
            }
            if apply::is_met(&wanted.object, existing) {
                self.note(client, wanted, existing).await;
            } else {
                changed.push(at);
            }
        }
        let objects = changed.iter().map(|&at| (&wanted[at], &existing[at]));
        self.write_changed(client, objects).await?;
        Ok(AppliedObjects::of(&wanted))
    }

    /// Notes an object as it was left, and watches its kind. A Deployment is in the cache when this returns:
    /// otherwise Ready would follow from what the Deployment was before.
    async fn note(&self, client: &AccountClient, wanted: &WantedObject, stored: &Object) {
        self.context.managed.note(stored, &client.account);
        self.context.managed.watch(&wanted.resource, client);
        if readiness::is_watched(stored) {
            self.context.deployments.wait_for_revision(stored.resource_version()).await;
        }
    }
}
