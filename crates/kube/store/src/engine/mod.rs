//! What makes changes outlive the process.
//!
//! An engine is told batches of events and must have each on stable storage when it returns. It is
//! read once, at start, and never afterwards: all reads are answered from memory.

pub(crate) mod journal;
mod load;
pub(crate) mod memory;

pub use journal::repair::{Lost, Repair};
pub use load::{Loader, Record};

use crate::{Event, View};
use std::fmt;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

/// Asks whether the storage of an engine is there and takes writes. May block.
pub type Probe = Arc<dyn Fn() -> Result<(), EngineError> + Send + Sync>;

/// Durable storage under a store. Only the writer thread calls it.
pub trait Engine: Send {
    /// Hands every live object to the loader. Called once, before anything else.
    fn load(&mut self, loader: &mut Loader) -> Result<Recovery, OpenError>;

    /// Makes a batch durable, all of it or nothing. Events are in order of consecutive revisions.
    fn append(&mut self, events: &[Arc<Event>]) -> Result<(), EngineError>;

    /// Called after each batch was published: time for housekeeping. `view` is cheap to call.
    ///
    /// Housekeeping that fails is logged and tried again later; it never loses anything.
    fn maintain(&mut self, view: &dyn Fn() -> View) {
        let _ = view;
    }

    /// Attempts a write that changes nothing: whether writes succeed again after one that failed.
    fn attempt(&mut self) -> Result<(), EngineError> {
        Ok(())
    }

    /// How to ask whether the storage is there and takes writes, without writing. Called once, after
    /// [`Engine::load`]; none where that cannot be lost.
    fn probe(&self) -> Option<Probe> {
        None
    }

    /// Writes out what may still be pending and ends background work.
    fn close(&mut self) -> Result<(), EngineError> {
        Ok(())
    }
}

/// What was found when a store was opened.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Recovery {
    /// The revision of the newest change that was found.
    pub revision: u64,
    /// How many objects are live.
    pub objects: usize,
    /// Bytes at the end of the journal that were dropped: a write that was cut off before it was
    /// complete and therefore never acknowledged to anybody.
    pub torn: Option<Torn>,
    /// Anything else that a person may want to know, as sentences.
    pub notes: Vec<String>,
}

/// The remains of a write that was never acknowledged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Torn {
    /// The file that ended in them.
    pub file: PathBuf,
    /// Where they began.
    pub offset: u64,
    /// How many bytes they were.
    pub bytes: u64,
}

/// Why a store could not be opened. Nothing was changed on disk.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The folder could not be created or read, or a file in it.
    #[error("cannot {attempt} {}", .path.display())]
    Io {
        /// What was attempted, as a verb.
        attempt: &'static str,
        /// On what.
        path: PathBuf,
        /// The system's answer.
        source: io::Error,
    },
    /// The system could not start the writer's thread.
    #[error("cannot start a thread")]
    Thread {
        /// The system's answer.
        source: io::Error,
    },
    /// Another process has the folder open.
    #[error("the data folder {} is in use by {holder}; stop it, or choose another folder", .path.display())]
    Locked {
        /// The folder.
        path: PathBuf,
        /// Who has it: `process 123`, or `another process`.
        holder: String,
    },
    /// Data that was acknowledged does not read back.
    #[error(transparent)]
    Damaged(Box<Damage>),
    /// The folder was written by another version of the format.
    #[error(
        "{} is in version {found} of the format, and this program reads version {known}; open it \
         with the program that wrote it",
        .path.display()
    )]
    Format {
        /// The file.
        path: PathBuf,
        /// What the file says.
        found: u32,
        /// What this program reads.
        known: u32,
    },
}

/// Acknowledged data that does not read back: where, and what is known about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Damage {
    /// The file.
    pub file: PathBuf,
    /// The first byte that does not read well.
    pub offset: u64,
    /// What is wrong there, as a sentence part: `a checksum does not match`.
    pub what: String,
    /// Every change up to this revision reads well; none if a snapshot is damaged, which keeps
    /// objects in the order of their names.
    pub sound: Option<u64>,
    /// The newest revision known to have been acknowledged, if that is known.
    pub acknowledged: Option<u64>,
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "the data folder is damaged: {} at byte {}: {}",
            self.file.display(),
            self.offset,
            self.what
        )?;
        if let Some(sound) = self.sound {
            write!(f, "; changes up to revision {sound} read well")?;
        }
        if let Some(acknowledged) = self.acknowledged {
            write!(f, "; changes up to revision {acknowledged} were acknowledged")?;
        }
        f.write_str("; restore the folder from a copy, or repair it, which keeps what reads well")
    }
}

impl std::error::Error for Damage {}

/// Why a change could not be made durable.
#[derive(Clone, Debug, thiserror::Error)]
pub enum EngineError {
    /// The write failed and was taken back: nothing has changed, and later writes may succeed.
    #[error("the change was not saved: cannot {attempt} {}: {source}", .path.display())]
    Refused {
        /// What was attempted, as a verb.
        attempt: &'static str,
        /// On what.
        path: PathBuf,
        /// The system's answer.
        source: Arc<io::Error>,
    },
    /// A failed write could not be taken back, or went into a file that was removed. No more changes
    /// are accepted until a restart, which may find the change that failed.
    #[error("no changes are accepted until a restart, because {reason}")]
    Stopped {
        /// The error that led here, as a sentence part.
        reason: Arc<str>,
    },
    /// The storage is gone, or takes no writes any more.
    #[error("no changes can be saved: {}: {source}", .path.display())]
    Lost {
        /// What was looked for.
        path: PathBuf,
        /// The system's answer.
        source: Arc<io::Error>,
    },
    /// Another engine's own error.
    #[error("the change was not saved: {0}")]
    Other(Arc<str>),
}

impl EngineError {
    /// Whether the disk, or the user's share of it, is full.
    pub fn is_full(&self) -> bool {
        use io::ErrorKind::{QuotaExceeded, StorageFull};
        match self {
            Self::Refused { source, .. } => matches!(source.kind(), StorageFull | QuotaExceeded),
            Self::Stopped { .. } | Self::Lost { .. } | Self::Other(_) => false,
        }
    }
}
