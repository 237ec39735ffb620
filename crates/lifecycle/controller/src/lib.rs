//! Controllers: the framework of every subsystem to watch, reconcile and write.
//!
//! A subsystem (OLM classic, and those to come) is a set of controllers over one set of caches. Each
//! controller declares beside its own code which caches it watches and which change enqueues which
//! key ([`Controllers`]). No controller reconciles before every cache of the set has synced, so a
//! decision never rests on half of the cluster.
//!
//! ```text
//! CacheSet ─► Cache<Subscription>, Cache<Csv> … ── change ─► enqueue ─► queue of a controller
//!    └────────── synced ──────────────────────────────────────────────► Reconciler::reconcile
//! ```
//!
//! The subsystems of a process are a list ([`RunningSubsystems`]) that syncs, publishes metrics and shuts
//! down as one; what each needs of a cluster is plain data ([`SubsystemInfo`]).
//!
//! Beside that: errors that say which request failed ([`RequestError`]), the rule for conflicts
//! ([`requeue_on_conflict`]), merge patches of a status ([`patch`]) and the log of decisions
//! ([`decision`]).
//!
//! Objects that controllers create have the names and hash labels of upstream: [`gojson`] encodes JSON as
//! its Go types do, and [`hash`] derives names and labels from that.
//!
//! What this crate does not do: talk to a cluster (`mainstay-client`), or know a rule of any API group.

pub mod decision;
mod error;
pub mod gojson;
pub mod hash;
pub mod patch;
mod register;
mod subsystem;

pub use error::{ReconcileError, RequestError, WithOperation, api_message, requeue_on_conflict};
pub use register::{
    ControllerBuilder, Controllers, Enqueuer, KeyQueue, RunningControllers, Signal, either_side,
};
pub use subsystem::{
    ControllerMonitor, Monitor, Monitors, RunningSubsystems, SelectError, Subsystem, SubsystemInfo,
    select,
};
