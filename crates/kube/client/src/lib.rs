//! The Kubernetes client of all controllers, and the parts that controllers consist of.
//!
//! * [`Cluster`]: get, list, watch, create, apply, patch, delete on untyped [`Object`]s. It wraps a
//!   `kube::Client`, so the same code talks to a real cluster over TLS and to the embedded server
//!   through a tower service without a socket. Responses are decoded once, straight into [`Object`].
//! * [`Cache`]: a list-and-watch of one kind that keeps a *projection* of each object: what
//!   decisions read, never whole objects.
//! * [`Controller`]: a queue of keys without duplicates and a bounded number of reconciliations.
//! * [`Election`]: leader election by a Lease.
//! * [`Recorder`]: core/v1 Events; [`conditions`]: `status.conditions` as `metav1` keeps them.
//!
//! ```text
//! watch ─► Cache<T> ─ change (key, before, after) ─► Queue<K> ─► Reconciler ─► Cluster ─► API
//!             └──────────── observe ◄──────────────────────────────┘
//! ```
//!
//! # How decisions stay right although caches lag
//!
//! A cache always lags by some milliseconds. Three rules keep that harmless:
//! 1. An update carries the `resourceVersion` it was decided on. A deletion carries the `uid` and,
//!    where the decision depends on content, the `resourceVersion`. A conflict means "decide
//!    again".
//! 2. A controller that *creates with generated names* waits with [`Cache::wait_for_revision`] until its cache
//!    has its own write before it decides again; fixed names need no waiting, because the second
//!    create is refused with `AlreadyExists`.
//! 3. A key is never reconciled concurrently.
//!
//! Not part of this crate: typed APIs, server-side field ownership ([`Cluster::apply`] describes
//! the substitute).

mod apply;
mod backoff;
mod cache;
mod cluster;
mod delete;
mod discovery;
mod error;
mod events;
mod lease;
mod prepared;
mod queue;
mod reflector;
mod request;
mod runtime;
mod watch;
mod write_options;

pub mod conditions;

pub use apply::difference;
pub use backoff::Backoff;
pub use cache::{Cache, CacheBuilder, CacheSet, Changed};
pub use cluster::{Cluster, List, ObjectList, Patch};
pub use delete::{DeleteOptions, Preconditions, Propagation};
pub use discovery::{ApiResource, Discovery};
pub use error::{Error, Result};
pub use events::{EventType, Recorder};
pub use lease::{Election, LeaseTerm, LeaseTimings};
pub use prepared::{EncodedBody, WriteResponse};
pub use queue::Queue;
pub use reflector::CacheProgress;
pub use runtime::{Action, Controller, ControllerHandle, Counters, Reconciler};
pub use watch::{ObjectWatch, Selection, WatchEvent};
pub use write_options::WriteOptions;

pub use mainstay_object::Object;
