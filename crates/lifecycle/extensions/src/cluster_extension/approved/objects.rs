//! The objects of an account on the cluster: the ServiceAccount, its roles and their bindings.
//!
//! An object that exists and that the extension does not control is never changed. Otherwise whoever may create
//! a ClusterExtension could get hold of an account by choosing the name of the extension.

use super::watched::{AccountState, ApprovedAccounts, KINDS};
use crate::cluster_extension::failure::Failure;
use crate::context::Context;
use mainstay_api::ClusterExtension;
use mainstay_api::names::olm_v1::INSTALLER_LABEL;
use mainstay_client::DeleteOptions;
use mainstay_controller::{api_message, decision};
use mainstay_object::{Object, Resource, builtin};
use mainstay_objectsets::ExtensionIdentity;
use mainstay_permissions::{InstallerNames, RbacBinding, RbacRole};
use serde_json::Value;
use std::collections::BTreeSet;

/// The ServiceAccount that the controller keeps for an extension.
///
/// # Errors
/// The message: it does not exist, belongs to somebody else, or cannot be read.
pub(crate) async fn find_account(
    context: &Context,
    extension: &ClusterExtension,
) -> Result<Object, String> {
    let namespace = &*extension.spec.namespace;
    let name = InstallerNames::new(&extension.metadata.name, namespace).service_account();
    let kind = &builtin::SERVICE_ACCOUNT;
    let found = context.cluster.find(kind, Some(namespace), &name).await;
    let found = found.map_err(|error| api_message(&error))?;
    let found = found.ok_or_else(|| {
        format!("service account \"{name}\" not found in namespace \"{namespace}\"")
    })?;
    if found.is_controlled_by(&extension.metadata.uid) {
        Ok(found)
    } else {
        Err(foreign(&found, extension))
    }
}

/// The message about an object of somebody else.
fn foreign(object: &Object, extension: &ClusterExtension) -> String {
    format!(
        "the account of the extension cannot be kept: {} exists and does not belong to \
         ClusterExtension \"{}\"; delete it, or give the ClusterExtension another name",
        place_of(object),
        extension.metadata.name
    )
}

/// `Kind "name" in namespace "namespace"`.
fn place_of(object: &Object) -> String {
    match object.namespace() {
        "" => format!("{} \"{}\"", object.kind(), object.name()),
        namespace => {
            format!("{} \"{}\" in namespace \"{namespace}\"", object.kind(), object.name())
        }
    }
}

/// Writes the objects of the account of an extension.
pub(super) struct AccountWriter<'a> {
    pub(super) context: &'a Context,
    pub(super) accounts: &'a ApprovedAccounts,
    pub(super) extension: &'a ClusterExtension,
}

impl AccountWriter<'_> {
    /// Makes the account have exactly these objects: what is missing is created, what differs is changed, and
    /// other objects of the account are deleted. Writes nothing if nothing differs.
    ///
    /// # Errors
    /// One of them belongs to somebody else, or the cluster refuses a write.
    pub(super) async fn write_exactly(&self, desired: Vec<Value>) -> Result<AccountState, Failure> {
        let mut state = AccountState::default();
        let mut kept = BTreeSet::new();
        for value in desired {
            let object = self.marked(value)?;
            let place = KINDS.iter().position(|kind| kind.kind == object.kind());
            let place = place.ok_or_else(|| {
                Failure::retrying(format!("an account has no {}", place_of(&object)))
            })?;
            let stored = self.keep_object(place, &object).await?;
            kept.insert((place, object.key()));
            state.0.insert((place, object.key()), stored.resource_version().to_owned());
        }
        // Bindings go before their roles, and the ServiceAccount last.
        for (place, key, object) in self.accounts.objects_of(self.extension).into_iter().rev() {
            if kept.contains(&(place, key.clone())) {
                continue;
            }
            let namespace = Some(&*key.namespace).filter(|namespace| !namespace.is_empty());
            let options = DeleteOptions::uid(&*object.uid);
            let cluster = &self.context.cluster;
            let deleted = cluster.ensure_deleted(&KINDS[place], namespace, &key.name, &options);
            deleted.await.map_err(|error| failed(&error))?;
            self.log(&KINDS[place], &key.to_string(), "deleted");
        }
        Ok(state)
    }

    /// The object with the label of the account, and with its owner.
    fn marked(&self, value: Value) -> Result<Object, Failure> {
        let object = Object::from_value(value);
        let mut object = object.map_err(|error| Failure::retrying(error.to_string()))?;
        object.set_label(INSTALLER_LABEL, &*self.extension.metadata.name);
        let owner = ExtensionIdentity::new(self.extension, false).owner_reference();
        let owners = serde_json::to_value([owner]);
        let owners = owners.map_err(|error| Failure::retrying(error.to_string()))?;
        object.set(&["metadata", "ownerReferences"], owners);
        Ok(object)
    }

    async fn keep_object(&self, place: usize, desired: &Object) -> Result<Object, Failure> {
        let (cluster, kind) = (&self.context.cluster, &KINDS[place]);
        let namespace = Some(desired.namespace()).filter(|namespace| !namespace.is_empty());
        let found = cluster.find(kind, namespace, desired.name()).await;
        let found = found.map_err(|error| failed(&error))?;
        let written = match found {
            Some(found) if !found.is_controlled_by(&self.extension.metadata.uid) => {
                return Err(Failure::retrying(foreign(&found, self.extension)));
            }
            Some(found) if is_met(desired, &found) => return Ok(found),
            Some(found) if binds_other_role(desired, &found) => {
                // The role of a binding never changes.
                let options = DeleteOptions::uid(found.uid());
                let name = desired.name();
                let deleted = cluster.ensure_deleted(kind, namespace, name, &options).await;
                deleted.map_err(|error| failed(&error))?;
                cluster.create(kind, desired).await
            }
            Some(found) => cluster.update(kind, &changed(desired, found)).await,
            None => cluster.create(kind, desired).await,
        };
        let written = written.map_err(|error| failed(&error))?;
        self.log(kind, &desired.key().to_string(), "written");
        self.accounts.objects[place].wait_for_revision(written.resource_version()).await;
        Ok(written)
    }

    fn log(&self, kind: &Resource, name: &str, decision: &str) {
        let why = format!("the account of ClusterExtension {}", self.extension.metadata.name);
        decision::log(&kind.kind, name, decision, &why);
    }
}

fn failed(error: &mainstay_client::Error) -> Failure {
    let why = api_message(error);
    Failure::retrying(format!("the account of the extension cannot be kept: {why}"))
}

/// Whether a stored object grants exactly what is desired. What others added to its metadata stays.
fn is_met(desired: &Object, stored: &Object) -> bool {
    let value = |object: &Object| object.to_value();
    desired.label(INSTALLER_LABEL) == stored.label(INSTALLER_LABEL)
        && !stored.is_terminating()
        && stored.get(&["aggregationRule"]).is_none_or(Value::is_null)
        && RbacRole::from_value(&value(desired)) == RbacRole::from_value(&value(stored))
        && RbacBinding::from_value(&value(desired)) == RbacBinding::from_value(&value(stored))
}

fn binds_other_role(desired: &Object, stored: &Object) -> bool {
    desired.get(&["roleRef"]).is_some()
        && RbacBinding::from_value(&desired.to_value()).role
            != RbacBinding::from_value(&stored.to_value()).role
}

/// The stored object with the desired rules or subjects.
fn changed(desired: &Object, mut stored: Object) -> Object {
    for field in ["rules", "subjects"] {
        if let Some(value) = desired.get(&[field]) {
            stored.set(&[field], value.clone());
        }
    }
    // The rules that it selects would come back.
    stored.remove(&["aggregationRule"]);
    stored.set_label(INSTALLER_LABEL, desired.label(INSTALLER_LABEL).unwrap_or_default());
    stored
}
