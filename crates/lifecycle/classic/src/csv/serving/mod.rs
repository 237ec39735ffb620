//! Serving: webhooks, conversions and APIServices of a CSV, which the API server calls.
//!
//! ```text
//! webhookdefinitions, apiservicedefinitions.owned
//!    └─► required: a server for each Deployment, its webhooks and APIs
//!          ├─► Service, Secret with a certificate, RBAC     ─┐
//!          ├─► volumes and the hash of the CA in the pods    ├─ apply, when the CSV is installed
//!          └─► webhook configurations, APIServices          ─┘
//! observed ─► check: is anything missing, due or not available ─► the phase of the CSV
//! ```
//!
//! * A CSV that owns an APIService is `Succeeded` only while that is available. A deleted webhook
//!   configuration is created again without a change of phase.
//! * A certificate is replaced when it is due, by the clock. Callers trust the old CA beside the
//!   new one until the pods with the old certificate are gone, so no call fails in between.
//! * A webhook converts objects only once its pods run. When the CSV is deleted and no other one
//!   converts these objects, the conversion ends.
//! * An object that several namespaces share by its name, such as the binding to
//!   `system:auth-delegator`, keeps the subjects of all of them.

pub(crate) mod apply;
pub(crate) mod certificate;
pub(crate) mod check;
pub(crate) mod legacy;
mod objects;
pub(crate) mod observed;
pub(crate) mod pods;
pub(crate) mod remove;
pub(crate) mod required;
mod write;

/// The suffix of the name of the Secret with the certificate of a Service.
pub(crate) const CERTIFICATE_SUFFIX: &str = "-cert";

#[cfg(test)]
mod tests;
