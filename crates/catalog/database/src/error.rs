//! Why a database could not be read, in two voices.

use std::path::PathBuf;

/// Why there is no catalog. The text names the file and is for people; [`DatabaseError::upstream`] is
/// what upstream's `opm` says.
#[derive(Debug, thiserror::Error)]
pub enum DatabaseError {
    /// SQLite cannot read the file: it is damaged, no database, or has other tables.
    #[error("{}: the database cannot be read: {message}", file.display())]
    Sqlite {
        /// The database.
        file: PathBuf,
        /// What SQLite says.
        message: String,
    },
    /// The file itself cannot be read.
    #[error("{}: {source}", file.display())]
    File {
        /// The database.
        file: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// Somebody writes to the database, or was stopped while writing: what is in the file alone is not
    /// what the database holds.
    #[error(
        "{} holds changes that are not in {} yet; close whoever writes it, or let sqlite3 open it once",
        beside.display(),
        file.display()
    )]
    Unfinished {
        /// The database.
        file: PathBuf,
        /// The journal or log beside it.
        beside: PathBuf,
    },
    /// Reading takes more work, or gives more content, than a file of this size can hold.
    #[error("{}: the database is damaged: it holds more than its size allows", file.display())]
    Endless {
        /// The database.
        file: PathBuf,
    },
    /// Its level is one that cannot be brought up to date.
    #[error(
        "{}: migration level {level} is too old, levels from 4 on are read; render its bundles again with `opm render`",
        file.display()
    )]
    Outdated {
        /// The database.
        file: PathBuf,
        /// The level; -1 where there is none.
        level: i64,
    },
    /// What it holds makes no catalog.
    #[error("{}: {message}", file.display())]
    Content {
        /// The database.
        file: PathBuf,
        /// What upstream says.
        message: String,
    },
}

impl DatabaseError {
    /// What upstream says to the same database, without the name of the file.
    pub fn upstream(&self) -> String {
        match self {
            Self::Sqlite { message, .. } | Self::Content { message, .. } => message.clone(),
            // Bringing these up to date, upstream drops tables that others still refer to.
            Self::Outdated { .. } => "FOREIGN KEY constraint failed".to_owned(),
            Self::Endless { .. } => "database disk image is malformed".to_owned(),
            Self::File { source, .. } => source.to_string(),
            Self::Unfinished { .. } => self.to_string(),
        }
    }
}
