//! Errors of reading a database: our message, and upstream's.

use std::path::PathBuf;

/// Why a database cannot be read. The text names the file; [`DatabaseError::upstream`] is the
/// message of `opm`.
#[derive(Debug, thiserror::Error)]
pub enum DatabaseError {
    /// SQLite cannot read the file: it is damaged, not a database, or has other tables.
    #[error("{}: the database cannot be read: {message}", file.display())]
    Sqlite {
        /// The database.
        file: PathBuf,
        /// The message of SQLite.
        message: String,
    },
    /// The file itself cannot be read.
    #[error("{}: {source}", file.display())]
    File {
        /// The database.
        file: PathBuf,
        /// The reason.
        source: std::io::Error,
    },
    /// A program writes to the database, or was stopped while writing. The file without its log or
    /// journal is not the content of the database.
    #[error(
        "{} holds changes that are not in {} yet; close the program that writes it, or open it once with sqlite3",
        beside.display(),
        file.display()
    )]
    PendingChanges {
        /// The database.
        file: PathBuf,
        /// The journal or log next to the database.
        beside: PathBuf,
    },
    /// Reading takes more work, or returns more content, than a file of this size can hold.
    #[error("{}: the database is damaged: it holds more than its size allows", file.display())]
    ExceedsSize {
        /// The database.
        file: PathBuf,
    },
    /// The migration level is too old.
    #[error(
        "{}: migration level {level} is too old, levels from 4 on are read; render its bundles again with `opm render`",
        file.display()
    )]
    Outdated {
        /// The database.
        file: PathBuf,
        /// The level; -1 if absent.
        level: i64,
    },
    /// The content is not a valid catalog.
    #[error("{}: {message}", file.display())]
    Content {
        /// The database.
        file: PathBuf,
        /// The message of upstream.
        message: String,
    },
}

impl DatabaseError {
    /// The message of `opm` for the same database, without the name of the file.
    pub fn upstream(&self) -> String {
        match self {
            Self::Sqlite { message, .. } | Self::Content { message, .. } => message.clone(),
            // Upstream's migration of these levels drops tables that others still refer to.
            Self::Outdated { .. } => "FOREIGN KEY constraint failed".to_owned(),
            Self::ExceedsSize { .. } => "database disk image is malformed".to_owned(),
            Self::File { source, .. } => source.to_string(),
            Self::PendingChanges { .. } => self.to_string(),
        }
    }
}
