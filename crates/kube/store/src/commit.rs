//! Changes that callers commit, their preconditions, and the errors of a commit.

use crate::{EngineError, Key, Stored};
use mainstay_object::Object;
use std::sync::Arc;

/// A change of one object.
#[derive(Clone, Debug)]
pub enum Change<'a> {
    /// Create or replace an object.
    Put {
        /// The key to store it at.
        key: Key,
        /// The object. Its `metadata.resourceVersion` is ignored and filled in at commit.
        object: &'a Object,
        /// The expected current state at the key.
        expect: Precondition,
        /// A further precondition.
        guard: Option<NamespaceGuard>,
    },
    /// Remove an object.
    Delete {
        /// The key of the object.
        key: Key,
        /// The expected current state at the key; [`Precondition::Any`] still requires an object.
        expect: Precondition,
    },
}

/// The expected state at the key of a change: its precondition. The writer checks it when it
/// decides the change, so nothing can come between.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Precondition {
    /// No object: the change is a creation.
    Absent,
    /// The object at exactly this revision.
    Revision(u64),
    /// Any state.
    Any,
}

/// An object that must exist and must not be terminating: the namespace of a new object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamespaceGuard {
    /// The object that must be alive, such as `namespaces default`.
    pub alive: Key,
}

impl NamespaceGuard {
    /// Requires that the namespace of this name exists and is not being deleted.
    pub fn namespace(name: impl Into<Arc<str>>) -> Self {
        Self { alive: Key::cluster(NAMESPACES, name) }
    }
}

/// The resource whose objects are the namespaces of all others.
pub(crate) const NAMESPACES: &str = "namespaces";

/// Why a change was not committed. Nothing has changed, in memory or on disk, unless the variant
/// says otherwise.
#[derive(Clone, Debug, thiserror::Error)]
pub enum CommitError {
    /// [`Precondition::Absent`] was required and an object exists.
    #[error("{} already exists", .current.key)]
    AlreadyExists {
        /// The stored object.
        current: Arc<Stored>,
    },
    /// There is no object to replace or remove.
    #[error("{0} does not exist")]
    Missing(Key),
    /// The object is not at the expected revision.
    #[error("{} is at revision {}, not {expected}", .current.key, .current.revision)]
    Stale {
        /// The stored object: enough to merge and retry without another read.
        current: Arc<Stored>,
        /// The expected revision.
        expected: u64,
    },
    /// The guarded object does not exist, or is being deleted.
    #[error("{} {}", .guard.alive, if .terminating.is_some() { "is being terminated" } else { "does not exist" })]
    GuardFailed {
        /// The guard.
        guard: NamespaceGuard,
        /// The guarded object if it exists: then it is terminating.
        terminating: Option<Arc<Stored>>,
    },
    /// The object nests so deeply that it could not be read back.
    #[error("the object nests more than {limit} levels deep")]
    TooDeep {
        /// The deepest nesting that is accepted.
        limit: usize,
    },
    /// The JSON of the object is longer than the store accepts.
    #[error("the object has {bytes} bytes, more than {limit}")]
    TooLarge {
        /// Its length.
        bytes: usize,
        /// The longest accepted length.
        limit: usize,
    },
    /// The object could not be written as JSON.
    #[error("the object cannot be encoded: {0}")]
    Encode(String),
    /// The change could not be made durable.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// The store was closed. A change in progress may or may not have been committed.
    #[error("the store is closed")]
    Closed,
}
