//! The account of an extension in one attempt: which permissions it needs, and which it gets.

use super::objects::AccountWriter;
use super::watched::{AccountState, ApprovedAccounts};
use crate::account_client::AccountClient;
use crate::cluster_extension::failure::Failure;
use crate::context::Context;
use crate::resources::kind_of;
use mainstay_api::ClusterExtension;
use mainstay_controller::api_message;
use mainstay_object::Gvk;
use mainstay_permissions::{
    ExtensionApplier, InstallManifest, InstallerNames, InstallerObjects, RbacRole, ScopedRules,
    TooManyPermissions, exact_installer, split_by_approval, unapproved_message, unapproved_rules,
};
use parking_lot::Mutex;
use serde_json::Value;
use std::collections::BTreeSet;

/// Whether the account may do what an attempt is about to do.
pub(in crate::cluster_extension) enum Access {
    /// It has the permissions.
    Granted(Box<AccountClient>),
    /// Not all of them are approved; the failure lists those that are not.
    Unapproved(Failure),
}

/// The account that the controller keeps for an extension.
pub(in crate::cluster_extension) struct ApprovedAccount<'a> {
    context: &'a Context,
    accounts: &'a ApprovedAccounts,
    extension: &'a ClusterExtension,
    /// The objects of what is installed.
    installed: Vec<Value>,
    /// The account as this attempt left it; none as long as it did not look at it.
    state: Mutex<Option<AccountState>>,
}

impl<'a> ApprovedAccount<'a> {
    /// The account of an extension with these installed objects.
    pub(in crate::cluster_extension) const fn new(
        context: &'a Context,
        accounts: &'a ApprovedAccounts,
        extension: &'a ClusterExtension,
        installed: Vec<Value>,
    ) -> Self {
        Self { context, accounts, extension, installed, state: Mutex::new(None) }
    }

    /// The account as this attempt left it; none as long as the attempt did not look at it.
    pub(in crate::cluster_extension) fn state(&self) -> Option<AccountState> {
        self.state.lock().clone()
    }

    /// Gives the account the permissions for what is installed, and takes all others. Where they are not approved
    /// any more, they go too.
    ///
    /// # Errors
    /// The account cannot be kept.
    pub(in crate::cluster_extension) async fn for_installed(&self) -> Result<Access, Failure> {
        self.only_for(&self.installed).await
    }

    /// Gives the account the permissions for these objects, and takes all others. Where they are not approved any
    /// more, they go too. Without objects the account goes.
    ///
    /// # Errors
    /// The account cannot be kept.
    pub(in crate::cluster_extension) async fn only_for(
        &self,
        objects: &[Value],
    ) -> Result<Access, Failure> {
        if objects.is_empty() {
            self.set_roles(None).await?;
            return self.access(&[]);
        }
        let roles = self.exact_roles(objects, &[]).await?;
        let approved = self.accounts.approved(self.extension);
        let (roles, missing) = split_by_approval(&approved, roles).map_err(too_many)?;
        self.set_roles(Some(roles)).await?;
        self.access(&missing)
    }

    /// Gives the account the permissions for a bundle in addition to those for what is installed. If one of them
    /// is not approved, the account stays as it is.
    ///
    /// # Errors
    /// The account cannot be kept, or the bundle has an object of a kind that the cluster does not serve.
    pub(in crate::cluster_extension) async fn for_bundle(
        &self,
        objects: &[Value],
    ) -> Result<Access, Failure> {
        let roles = self.exact_roles(&self.installed, objects).await?;
        let approved = self.accounts.approved(self.extension);
        let missing = unapproved_rules(&approved, &roles).map_err(too_many)?;
        if missing.is_empty() {
            self.set_roles(Some(roles)).await?;
        }
        self.access(&missing)
    }

    fn access(&self, missing: &[ScopedRules]) -> Result<Access, Failure> {
        if !missing.is_empty() {
            let message = unapproved_message(&self.extension.metadata.name, missing);
            return Ok(Access::Unapproved(Failure::retrying(message)));
        }
        let client = AccountClient::of_kept_account(self.context, self.extension);
        let client = client.map_err(Failure::retrying)?;
        Ok(Access::Granted(Box::new(client)))
    }

    fn names(&self) -> InstallerNames {
        InstallerNames::new(&self.extension.metadata.name, &self.extension.spec.namespace)
    }

    /// The roles that are needed for installed objects and for those of a new bundle together.
    async fn exact_roles(
        &self,
        installed: &[Value],
        added: &[Value],
    ) -> Result<Vec<RbacRole>, Failure> {
        let &Self { context, .. } = self;
        let objects = installed.iter().chain(added);
        let resources = context.resources.of_objects(&context.cluster, objects).await;
        let resources = resources.map_err(|error| Failure::retrying(api_message(&error)))?;
        let resolve = |gvk: &Gvk| resources.get(gvk).cloned().flatten();
        // A kind that is gone has no objects.
        let installed = installed.iter().filter(|object| resolve(&kind_of(object)).is_some());
        let names = self.names();
        let objects = installed.chain(added);
        let manifest = InstallManifest::new(objects, &resolve, &names.namespace)
            .map_err(|error| Failure::retrying(error.condition_message()))?;
        let applier = if self.context.object_sets.is_some() {
            ExtensionApplier::WatchedObjectSets
        } else {
            ExtensionApplier::Helm
        };
        let roles = exact_installer(&manifest, &names, &applier).roles;
        let account = InstallerObjects::new(&names, roles);
        refuse_account_objects(added, &account, &names.namespace)?;
        Ok(account.roles)
    }

    /// Makes the account have these roles and no others; without roles it goes.
    async fn set_roles(&self, roles: Option<Vec<RbacRole>>) -> Result<(), Failure> {
        // An attempt that fails half way is not the state of the account.
        *self.state.lock() = Some(AccountState::default());
        let objects = roles.map(|roles| InstallerObjects::new(&self.names(), roles).to_values());
        let &Self { context, accounts, extension, .. } = self;
        let writer = AccountWriter { context, accounts, extension };
        let state = writer.write_exactly(objects.unwrap_or_default()).await?;
        *self.state.lock() = Some(state);
        Ok(())
    }
}

fn too_many(error: TooManyPermissions) -> Failure {
    Failure::retrying(error.to_string())
}

/// Refuses a bundle with an object that is also one of the account: bundle and controller would overwrite each
/// other's rules forever.
fn refuse_account_objects(
    bundle: &[Value],
    account: &InstallerObjects,
    namespace: &str,
) -> Result<(), Failure> {
    let place = |object: &Value| {
        let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str);
        let kind = text("/kind").unwrap_or_default().to_owned();
        let is_cluster_scoped = kind.starts_with("Cluster");
        let namespace = text("/metadata/namespace").unwrap_or(namespace);
        let namespace = if is_cluster_scoped { "" } else { namespace };
        (kind, namespace.to_owned(), text("/metadata/name").unwrap_or_default().to_owned())
    };
    let own: BTreeSet<_> = account.to_values().iter().map(place).collect();
    match bundle.iter().map(place).find(|object| own.contains(object)) {
        None => Ok(()),
        Some((kind, _, name)) => Err(Failure::retrying(format!(
            "the bundle has the {kind} \"{name}\", which belongs to the account of the extension; \
             give the ClusterExtension another name"
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use std::slice;

    #[test]
    fn bundle_with_an_object_of_the_account_is_refused() {
        let names = InstallerNames::new("tea", "kitchen");
        let role = RbacRole { name: names.cluster_role(), ..RbacRole::default() };
        let account = InstallerObjects::new(&names, vec![role]);
        let object = |kind: &str, name: &str, namespace: Option<&str>| {
            json!({
                "apiVersion": "v1", "kind": kind,
                "metadata": {"name": name, "namespace": namespace},
            })
        };
        for (object, is_refused) in [
            (object("ServiceAccount", "tea-installer", None), true),
            (object("ServiceAccount", "tea-installer", Some("kitchen")), true),
            (object("ServiceAccount", "tea-installer", Some("garden")), false),
            (object("ServiceAccount", "tea", None), false),
            (object("ClusterRole", "tea-installer-clusterrole", None), true),
            (object("ConfigMap", "tea-installer", None), false),
        ] {
            let result = refuse_account_objects(slice::from_ref(&object), &account, "kitchen");
            assert_eq!(result.is_err(), is_refused, "{object}");
        }
    }
}
