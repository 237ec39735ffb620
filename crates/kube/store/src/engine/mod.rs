//! Storage engines: they make changes durable.
//!
//! An engine receives batches of events and must have each on stable storage when it returns. It is
//! read once, at start, and never afterwards: all reads are served from memory.

pub(crate) mod journal;
mod load;
pub(crate) mod memory;

pub use journal::repair::{DataLoss, Repair};
pub use load::{Loader, Record};

use crate::{Event, View};
use std::fmt;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

/// Checks whether the storage of an engine exists and is writable. May block.
pub type Probe = Arc<dyn Fn() -> Result<(), EngineError> + Send + Sync>;

/// Durable storage under a store. Only the writer thread calls it.
pub trait Engine: Send {
    /// Passes every live object to the loader. Called once, before anything else.
    fn load(&mut self, loader: &mut Loader) -> Result<Recovery, OpenError>;

    /// Makes a batch durable, completely or not at all. Events have consecutive revisions, in
    /// order.
    fn append(&mut self, events: &[Arc<Event>]) -> Result<(), EngineError>;

    /// Called after each batch was published, for housekeeping. `view` is cheap to call.
    ///
    /// A housekeeping failure is logged and tried again later; it never loses anything.
    fn maintain(&mut self, view: &dyn Fn() -> View) {
        let _ = view;
    }

    /// Attempts a write without any effect, to see whether writes succeed again after a failed one.
    fn attempt(&mut self) -> Result<(), EngineError> {
        Ok(())
    }

    /// A check whether the storage exists and is writable, without a write. Called once, after
    /// [`Engine::load`]; none where the storage cannot be lost.
    fn probe(&self) -> Option<Probe> {
        None
    }

    /// Writes pending data and ends background work.
    fn close(&mut self) -> Result<(), EngineError> {
        Ok(())
    }
}

/// The findings when a store was opened.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Recovery {
    /// The newest revision on disk.
    pub revision: u64,
    /// The number of live objects.
    pub objects: usize,
    /// Bytes at the end of the journal that were dropped: an incomplete and therefore
    /// unacknowledged write.
    pub torn: Option<Torn>,
    /// Further notes for a person, as sentences.
    pub notes: Vec<String>,
}

/// The remains of an unacknowledged write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Torn {
    /// The file with the remains.
    pub file: PathBuf,
    /// The offset of the remains.
    pub offset: u64,
    /// Their length in bytes.
    pub bytes: u64,
}

/// Why a store could not be opened. Nothing was changed on disk.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The folder or a file in it could not be created or read.
    #[error("cannot {attempt} {}", .path.display())]
    Io {
        /// The attempted operation, as a verb.
        attempt: &'static str,
        /// The path of the file or folder.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The system could not start the writer's thread.
    #[error("cannot start a thread")]
    Thread {
        /// The system's error.
        source: io::Error,
    },
    /// Another process has the folder open.
    #[error("the data folder {} is in use by {holder}; stop it, or choose another folder", .path.display())]
    Locked {
        /// The folder.
        path: PathBuf,
        /// The holder: `process 123`, or `another process`.
        holder: String,
    },
    /// Acknowledged data is unreadable.
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
        /// The version of the file.
        found: u32,
        /// The version that this program reads.
        known: u32,
    },
}

/// Unreadable acknowledged data: its place and its extent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Damage {
    /// The file.
    pub file: PathBuf,
    /// The first malformed byte.
    pub offset: u64,
    /// The damage, as a part of a sentence: `a checksum does not match`.
    pub what: String,
    /// Every change up to this revision is readable; none if a snapshot is damaged, which is sorted
    /// by name.
    pub sound: Option<u64>,
    /// The newest acknowledged revision, if known.
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
    /// The write failed and was undone: nothing has changed, and later writes may succeed.
    #[error("the change was not saved: cannot {attempt} {}: {source}", .path.display())]
    Refused {
        /// The attempted operation, as a verb.
        attempt: &'static str,
        /// The path of the file or folder.
        path: PathBuf,
        /// The system's error.
        source: Arc<io::Error>,
    },
    /// A failed write could not be undone, or went into a removed file. No more changes are
    /// accepted until a restart, which may find the failed change.
    #[error("no changes are accepted until a restart, because {reason}")]
    Stopped {
        /// The original error, as a part of a sentence.
        reason: Arc<str>,
    },
    /// The storage is gone or no longer writable.
    #[error("no changes can be saved: {}: {source}", .path.display())]
    Lost {
        /// The missing path.
        path: PathBuf,
        /// The system's error.
        source: Arc<io::Error>,
    },
    /// The error of another engine.
    #[error("the change was not saved: {0}")]
    Other(Arc<str>),
}

impl EngineError {
    /// Whether the disk or the user's quota is full.
    pub fn is_full(&self) -> bool {
        use io::ErrorKind::{QuotaExceeded, StorageFull};
        match self {
            Self::Refused { source, .. } => matches!(source.kind(), StorageFull | QuotaExceeded),
            Self::Stopped { .. } | Self::Lost { .. } | Self::Other(_) => false,
        }
    }
}
