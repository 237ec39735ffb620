//! Authentication, authorization and the cluster's PKI.
//!
//! [`authn`] establishes the identity of a request, [`authz`] decides by RBAC what the identity may
//! do, and [`pki`] holds the keys and certificates of the credentials. This crate does not depend
//! on the API server: it reads roles, bindings and service accounts from the store.

pub mod authn;
pub mod authz;
mod identity;
pub mod pki;

pub use identity::{ANONYMOUS, AUTHENTICATED, Identity, MASTERS, UNAUTHENTICATED};
