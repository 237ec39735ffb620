//! The trust mode `approved`: the controller creates and keeps the ServiceAccount of an extension and its exact
//! permissions, as far as a person has approved them.
//!
//! ```text
//! labelled ClusterRoles, Roles ─► approved rules ──┐
//! installed objects, new bundle ─► exact roles ────┴─► covered? ─ yes ─► ServiceAccount, roles, bindings
//!                                                          └─ no ──► the roles of the installed bundle, a report
//! ```
//!
//! The controller may write roles with permissions that it does not hold (`escalate`, `bind`). It writes only such
//! as somebody approved who holds them ([`mainstay_permissions::APPROVES_EXTENSION_LABEL`]). All objects of a
//! bundle are read and written as the account, so the API server enforces what the roles say.
//!
//! What this module does not do: write objects of bundles.

mod account;
mod objects;
mod watched;

pub(super) use account::{Access, ApprovedAccount};
pub(crate) use objects::find_account;
pub(super) use watched::AccountState;
pub(crate) use watched::ApprovedAccounts;
