//! The ServiceAccount of an extension: with its permissions objects are read and written, where the
//! process trusts extensions with no more.

use super::failure::Failure;
use crate::context::Context;
use crate::features::TrustMode;
use mainstay_api::ClusterExtension;
use mainstay_client::Cluster;
use mainstay_controller::api_message;
use mainstay_object::builtin;

/// The client for the objects of an extension.
///
/// # Errors
/// If the ServiceAccount does not exist.
pub(super) async fn client(
    context: &Context,
    extension: &ClusterExtension,
) -> Result<Cluster, Failure> {
    if context.features.trust == TrustMode::ClusterAdmin {
        return Ok(context.cluster.clone());
    }
    let namespace = &*extension.spec.namespace;
    let account = extension.spec.service_account.as_ref();
    let name = account.map(|account| &*account.name).unwrap_or_default();
    let found = context.cluster.find(&builtin::SERVICE_ACCOUNT, Some(namespace), name).await;
    let why = match found {
        Ok(Some(_)) => {
            let client = context.cluster.clone().impersonating(namespace, name);
            return client.map_err(|error| Failure::retrying(api_message(&error)));
        }
        Ok(None) => format!("service account \"{name}\" not found in namespace \"{namespace}\""),
        Err(error) => api_message(&error),
    };
    Err(Failure::retrying(format!(
        "operation cannot proceed due to the following validation error(s): {why}"
    )))
}
