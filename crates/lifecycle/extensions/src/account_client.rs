//! Clients with the permissions of an account.

use crate::context::Context;
use mainstay_api::ClusterExtension;
use mainstay_client::Cluster;
use mainstay_controller::api_message;
use mainstay_object::builtin;
use mainstay_permissions::InstallerNames;

/// A client with the permissions of an account.
#[derive(Clone)]
pub(crate) struct AccountClient {
    /// The client.
    pub(crate) cluster: Cluster,
    /// The account, as `NAMESPACE/NAME`: empty for that of the process.
    pub(crate) account: String,
}

impl AccountClient {
    /// The client with the permissions of the process.
    pub(crate) fn of_process(context: &Context) -> Self {
        Self { cluster: context.cluster.clone(), account: String::new() }
    }

    /// The client with the permissions of a ServiceAccount, by impersonation. It must exist: what bindings
    /// still give to a deleted ServiceAccount is not used.
    ///
    /// # Errors
    /// The message: the ServiceAccount does not exist or cannot be read.
    pub(crate) async fn of_service_account(
        context: &Context,
        namespace: &str,
        name: &str,
    ) -> Result<Self, String> {
        let found = context.cluster.find(&builtin::SERVICE_ACCOUNT, Some(namespace), name).await;
        if found.map_err(|error| api_message(&error))?.is_none() {
            return Err(format!(
                "service account \"{name}\" not found in namespace \"{namespace}\""
            ));
        }
        Self::impersonating(context, namespace, name)
    }

    /// The client with the permissions of the ServiceAccount that the controller keeps for an extension. It was
    /// found before.
    ///
    /// # Errors
    /// The message: the name cannot be the name of a ServiceAccount.
    pub(crate) fn of_kept_account(
        context: &Context,
        extension: &ClusterExtension,
    ) -> Result<Self, String> {
        let namespace = &*extension.spec.namespace;
        let names = InstallerNames::new(&extension.metadata.name, namespace);
        Self::impersonating(context, namespace, &names.service_account())
    }

    fn impersonating(context: &Context, namespace: &str, name: &str) -> Result<Self, String> {
        let client = context.cluster.clone().impersonating(namespace, name);
        let cluster = client.map_err(|error| api_message(&error))?;
        Ok(Self { cluster, account: format!("{namespace}/{name}") })
    }
}
