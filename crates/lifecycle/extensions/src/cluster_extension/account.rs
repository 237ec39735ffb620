//! The ServiceAccount of an extension: with its permissions objects are read and written, where the
//! process trusts extensions with no more.

use super::failure::Failure;
use crate::account_client::AccountClient;
use crate::context::Context;
use crate::features::TrustMode;
use mainstay_api::ClusterExtension;
use mainstay_controller::api_message;
use mainstay_object::builtin;

/// The name of the account with whose permissions the objects of an extension are written; empty for that
/// of the process.
pub(super) fn name(context: &Context, extension: &ClusterExtension) -> String {
    match (context.features.trust, &extension.spec.service_account) {
        (TrustMode::ServiceAccount, Some(account)) => {
            format!("{}/{}", extension.spec.namespace, account.name)
        }
        _ => String::new(),
    }
}

/// The client for the objects of an extension.
///
/// # Errors
/// If the ServiceAccount does not exist.
pub(super) async fn client(
    context: &Context,
    extension: &ClusterExtension,
) -> Result<AccountClient, Failure> {
    let account_name = name(context, extension);
    if context.features.trust == TrustMode::ClusterAdmin {
        return Ok(AccountClient { cluster: context.cluster.clone(), account: account_name });
    }
    let namespace = &*extension.spec.namespace;
    let account = extension.spec.service_account.as_ref();
    let name = account.map(|account| &*account.name).unwrap_or_default();
    let found = context.cluster.find(&builtin::SERVICE_ACCOUNT, Some(namespace), name).await;
    let why = match found {
        Ok(Some(_)) => {
            let client = context.cluster.clone().impersonating(namespace, name);
            let cluster = client.map_err(|error| Failure::retrying(api_message(&error)))?;
            return Ok(AccountClient { cluster, account: account_name });
        }
        Ok(None) => format!("service account \"{name}\" not found in namespace \"{namespace}\""),
        Err(error) => api_message(&error),
    };
    Err(Failure::retrying(format!(
        "operation cannot proceed due to the following validation error(s): {why}"
    )))
}
