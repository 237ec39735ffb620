//! Clients with the permissions of an account.

use mainstay_client::Cluster;

/// A client with the permissions of an account.
#[derive(Clone)]
pub(crate) struct AccountClient {
    /// The client.
    pub(crate) cluster: Cluster,
    /// The account, as `NAMESPACE/NAME`: empty for that of the process.
    pub(crate) account: String,
}
