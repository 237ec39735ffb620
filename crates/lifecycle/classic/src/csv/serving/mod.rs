//! What versions serve to the API server: webhooks, conversions between versions of a kind, and APIs of
//! their own.
//!
//! ```text
//! webhookdefinitions, apiservicedefinitions.owned
//!    └─► asked: a server for each Deployment, its webhooks and APIs
//!          ├─► Service, Secret with a certificate, rights   ─┐
//!          ├─► volumes and the authority's hash in the pods  ├─ apply, when the version is installed
//!          └─► webhook configurations, `APIServices`           ─┘
//! seen ─► check: is anything missing, due or not available ─► the phase of the version
//! ```
//!
//! * A version that owns an `APIService` is `Succeeded` only while that is available. A webhook that somebody
//!   deletes is made again without a word.
//! * A certificate is replaced when it is due, by the clock. Whoever calls trusts the old authority beside
//!   the new one until the pods that show the old certificate are gone, so no call fails in between.
//! * Kinds are converted by a webhook only once its pods run. When the version goes and no other converts
//!   them, they are no longer converted.
//! * What is shared by name among namespaces, as the binding to `system:auth-delegator` is, keeps the
//!   subjects of all who need it.

pub(crate) mod apply;
pub(crate) mod certificate;
pub(crate) mod check;
pub(crate) mod legacy;
mod objects;
pub(crate) mod observed;
pub(crate) mod pods;
pub(crate) mod remove;
pub(crate) mod required;

/// What the name of the Secret with a Service's certificate ends with.
pub(crate) const CERTIFICATE_SUFFIX: &str = "-cert";

#[cfg(test)]
mod tests;
