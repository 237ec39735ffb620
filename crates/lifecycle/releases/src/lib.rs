//! Helm releases of OLM v1: the Secrets in which operator-controller keeps what it installed.
//!
//! ```text
//! rendered objects ─► ReleaseContent ─► Release ─► EncodedRelease ─► index Secret, chunk Secrets
//!  (of a bundle)      chart, manifest      ▲                                    │
//!                     and hooks            └──────────── decode_release ◄───────┘
//! ```
//!
//! Clients read these Secrets: OpenShift's cluster-olm-operator looks for `olm.properties` in the annotations of
//! the chart, and operator-controller 1.x itself continues from them. So names, labels, JSON and the bytes of the
//! manifest are those of operator-controller 1.10 with Helm 3.
//!
//! * [`Release`] is the data. Its methods are the status changes of an installation and an upgrade.
//! * [`ReleaseContent`] turns the objects of a bundle into chart, manifest and hooks, as Helm and the
//!   post-renderers of operator-controller do.
//! * [`EncodedRelease`] and [`decode_release`] write and read the Secrets.
//! * [`history`] decides over all releases of an extension: the deployed one, whether another one is needed, and
//!   which releases are pruned.
//!
//! This crate reads no cluster, writes no objects and renders no templates. It does not know when to install: the
//! applier of a ClusterExtension does.

mod chart;
mod content;
mod decode;
mod go_json;
pub mod history;
mod hook;
mod lifecycle;
mod order;
mod release;
mod secrets;

pub use chart::{Chart, ChartFile, ChartMaintainer, ChartMetadata};
pub use content::{PRIMARY_RESOURCE, ReleaseContent, ReleaseOwner};
pub use decode::{
    DecodeProblem, DecodeReleaseError, MAX_DECODED_BYTES, decode_release, extra_chunk_names,
};
pub use hook::{HookExecution, ReleaseHook};
pub use lifecycle::{NULL_LABEL, ReleaseAction};
pub use release::{Release, ReleaseInfo, ReleaseStatus};
pub use secrets::{
    CHUNK_BYTES, CHUNK_SECRET_TYPE, EncodeReleaseError, EncodedRelease, INDEX_SECRET_TYPE,
    MAX_CHUNKS, STORAGE_OWNER, SecretWrite, index_selector, secret_name,
};
