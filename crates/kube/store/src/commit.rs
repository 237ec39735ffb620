//! What a caller asks the writer to do, and why it may say no.

use crate::{EngineError, Key, Stored};
use mainstay_object::Object;
use std::sync::Arc;

/// A change of one object.
#[derive(Clone, Debug)]
pub enum Change<'a> {
    /// Create or replace an object.
    Put {
        /// Where to store it.
        key: Key,
        /// The object. Its `metadata.resourceVersion` is ignored and filled in at commit.
        object: &'a Object,
        /// What must be stored there now.
        expect: Expect,
        /// What else must be true.
        guard: Option<Guard>,
    },
    /// Remove an object.
    Delete {
        /// Where it is stored.
        key: Key,
        /// What must be stored there now; [`Expect::Any`] still asks that there is an object.
        expect: Expect,
    },
}

/// What must be stored at a key for a change to happen. Checked in the same instant as the change
/// is decided, so nothing can come between.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expect {
    /// No object: this is a creation.
    Absent,
    /// The object at exactly this revision.
    Revision(u64),
    /// Whatever there is.
    Any,
}

/// Another object that must exist and must not be terminating: the namespace of a new object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Guard {
    /// The object that must be alive, such as `namespaces default`.
    pub alive: Key,
}

impl Guard {
    /// Asks that the namespace of this name exists and is not being deleted.
    pub fn namespace(name: impl Into<Arc<str>>) -> Self {
        Self { alive: Key::cluster(NAMESPACES, name) }
    }
}

/// The resource whose objects are the namespaces of all others.
pub(crate) const NAMESPACES: &str = "namespaces";

/// Why a change did not happen. Nothing was changed, in memory or on disk, unless the variant says
/// otherwise.
#[derive(Clone, Debug, thiserror::Error)]
pub enum CommitError {
    /// [`Expect::Absent`] was asked for and there is an object.
    #[error("{} already exists", .current.key)]
    AlreadyExists {
        /// What is stored.
        current: Arc<Stored>,
    },
    /// There is no object to replace or remove.
    #[error("{0} does not exist")]
    Missing(Key),
    /// The object is not at the revision that was expected.
    #[error("{} is at revision {}, not {expected}", .current.key, .current.revision)]
    Stale {
        /// What is stored now: enough to merge and try again without another read.
        current: Arc<Stored>,
        /// The revision that was asked for.
        expected: u64,
    },
    /// The guarded object does not exist, or is being deleted.
    #[error("{} {}", .guard.alive, if .terminating.is_some() { "is being terminated" } else { "does not exist" })]
    GuardFailed {
        /// What was asked for.
        guard: Guard,
        /// The guarded object if it exists: then it is terminating.
        terminating: Option<Arc<Stored>>,
    },
    /// The object nests so deeply that it could not be read back.
    #[error("the object nests more than {limit} levels deep")]
    TooDeep {
        /// The deepest nesting that is accepted.
        limit: usize,
    },
    /// The object's text is longer than a store takes.
    #[error("the object has {bytes} bytes, more than {limit}")]
    TooLarge {
        /// Its length.
        bytes: usize,
        /// The greatest length that is accepted.
        limit: usize,
    },
    /// The object could not be written as JSON.
    #[error("the object cannot be encoded: {0}")]
    Encode(String),
    /// The change could not be made durable.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// The store was closed. A change that was under way may or may not have happened.
    #[error("the store is closed")]
    Closed,
}
