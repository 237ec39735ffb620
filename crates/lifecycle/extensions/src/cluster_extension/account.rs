//! The ServiceAccount of an extension: with its permissions objects are read and written, where the
//! process trusts extensions with no more.

use super::failure::Failure;
use crate::account_client::AccountClient;
use crate::context::Context;
use crate::features::TrustMode;
use mainstay_api::ClusterExtension;

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
    if context.features.trust == TrustMode::ClusterAdmin {
        return Ok(AccountClient::of_process(context));
    }
    let namespace = &*extension.spec.namespace;
    let account = extension.spec.service_account.as_ref();
    let name = account.map(|account| &*account.name).unwrap_or_default();
    AccountClient::of_service_account(context, namespace, name).await.map_err(|why| {
        Failure::retrying(format!(
            "operation cannot proceed due to the following validation error(s): {why}"
        ))
    })
}
