//! Authentication, authorization and the cluster's PKI.
//!
//! [`authn`] proves the identity of a request, [`authz`] decides by RBAC what the identity may do,
//! and [`pki`] holds the keys and certificates that proofs are made of. Nothing here knows the API
//! server: roles, bindings and service accounts are read from the store.

pub mod authn;
pub mod authz;
mod identity;
pub mod pki;

pub use identity::{ANONYMOUS, AUTHENTICATED, Identity, MASTERS, UNAUTHENTICATED};
