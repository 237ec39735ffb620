//! The account of an extension: with its permissions objects are read and written.
//!
//! | Trust mode | Account |
//! |---|---|
//! | `cluster-admin` | that of the process |
//! | `service-account` | the ServiceAccount that the extension names |
//! | `approved` | the ServiceAccount that the controller keeps ([`super::approved`]) |

use super::approved::{Access, AccountState, ApprovedAccount, find_account};
use super::attempt::Applied;
use super::failure::Failure;
use crate::account_client::AccountClient;
use crate::context::Context;
use crate::features::TrustMode;
use mainstay_api::ClusterExtension;
use mainstay_permissions::InstallerNames;
use serde_json::Value;
use std::sync::OnceLock;

/// The name of the account with whose permissions the objects of an extension are written; empty for that
/// of the process.
pub(super) fn name(context: &Context, extension: &ClusterExtension) -> String {
    let namespace = &*extension.spec.namespace;
    match (context.features.trust, &extension.spec.service_account) {
        (TrustMode::ServiceAccount, Some(account)) => format!("{namespace}/{}", account.name),
        (TrustMode::Approved, _) => {
            let names = InstallerNames::new(&extension.metadata.name, namespace);
            format!("{namespace}/{}", names.service_account())
        }
        _ => String::new(),
    }
}

/// Why the ServiceAccount that an extension names has no effect; none if it names none, or if it has one. In the
/// trust mode `cluster-admin` nothing is said, as upstream.
pub(super) fn ignored(context: &Context, extension: &ClusterExtension) -> Option<String> {
    let named = extension.spec.service_account.as_ref();
    let named = named.filter(|_| context.features.trust == TrustMode::Approved)?;
    Some(format!(
        "spec.serviceAccount {} is not used: the controller keeps the account {} with the approved permissions",
        named.name,
        name(context, extension)
    ))
}

/// The client for the objects of an extension.
///
/// # Errors
/// If the ServiceAccount does not exist.
pub(super) async fn client(
    context: &Context,
    extension: &ClusterExtension,
) -> Result<AccountClient, Failure> {
    let namespace = &*extension.spec.namespace;
    let client = match context.features.trust {
        TrustMode::ClusterAdmin => return Ok(AccountClient::of_process(context)),
        TrustMode::ServiceAccount => {
            let account = extension.spec.service_account.as_ref();
            let name = account.map(|account| &*account.name).unwrap_or_default();
            AccountClient::of_service_account(context, namespace, name).await
        }
        TrustMode::Approved => match find_account(context, extension).await {
            Ok(_) => AccountClient::of_kept_account(context, extension),
            Err(why) => Err(why),
        },
    };
    client.map_err(|why| {
        Failure::retrying(format!(
            "operation cannot proceed due to the following validation error(s): {why}"
        ))
    })
}

/// The account of one attempt.
pub(super) enum Account<'a> {
    /// One with the permissions that others gave it.
    Given(Box<AccountClient>),
    /// One that the controller keeps.
    Approved(Box<ApprovedAccount<'a>>),
}

impl<'a> Account<'a> {
    /// The account with whose permissions an attempt works. `given` is that of [`client`], except in the trust
    /// mode `approved`; then the installed objects decide which permissions the account has.
    ///
    /// # Errors
    /// The installed objects cannot be read.
    pub(super) fn new(
        context: &'a Context,
        extension: &'a ClusterExtension,
        given: Option<AccountClient>,
        installed: impl FnOnce() -> Result<Vec<Value>, Failure>,
    ) -> Result<Self, Failure> {
        match (given, &context.approved_accounts) {
            (Some(client), _) => Ok(Self::Given(Box::new(client))),
            (None, Some(accounts)) => {
                let account = ApprovedAccount::new(context, accounts, extension, installed()?);
                Ok(Self::Approved(Box::new(account)))
            }
            (None, None) => Err(Failure::retrying("approvals are not watched".to_owned())),
        }
    }

    /// The client for the objects of what is installed.
    ///
    /// # Errors
    /// The account cannot be kept.
    pub(super) async fn for_installed(&self) -> Result<Access, Failure> {
        match self {
            Self::Given(client) => Ok(Access::Granted(client.clone())),
            Self::Approved(account) => account.for_installed().await,
        }
    }

    /// The client for the objects of a bundle, and of what is installed.
    ///
    /// # Errors
    /// The account cannot be kept.
    pub(super) async fn for_bundle(&self, objects: &[Value]) -> Result<Access, Failure> {
        match self {
            Self::Given(client) => Ok(Access::Granted(client.clone())),
            Self::Approved(account) => account.for_bundle(objects).await,
        }
    }

    /// Takes the permissions that were needed for earlier bundles, now that a bundle has replaced them.
    ///
    /// # Errors
    /// The account cannot be kept.
    pub(super) async fn finish(&self, objects: &[Value]) -> Result<(), Failure> {
        match self {
            Self::Given(_) => Ok(()),
            Self::Approved(account) => account.only_for(objects).await.map(drop),
        }
    }

    /// Ends an attempt. An account that the attempt did not look at, because it failed early, gets the
    /// permissions for what is installed: an approval that was withdrawn counts in any case. `left` gets the
    /// account as it is left.
    pub(super) async fn end_attempt(
        &self,
        applied: Applied,
        left: &OnceLock<AccountState>,
    ) -> Applied {
        let Self::Approved(account) = self else { return applied };
        let mut applied = applied;
        if account.state().is_none() {
            match (account.for_installed().await, &mut applied) {
                (Ok(Access::Unapproved(failure)), Ok(objects)) => {
                    objects.unapproved.get_or_insert(failure);
                }
                // Above all, what was withdrawn must go: another attempt, whatever the first failure was.
                (Err(failure), _) => applied = Err(failure),
                _ => {}
            }
        }
        if let Some(state) = account.state() {
            // An attempt ends once.
            let _ = left.set(state);
        }
        applied
    }
}
