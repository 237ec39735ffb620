//! Opening a database read-only, without running code of its schema.

use crate::error::DatabaseError;
use rusqlite::{Connection, ErrorCode, OpenFlags, config::DbConfig, limits::Limit};
use std::{
    fmt::Write,
    fs::File,
    io::Read,
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
};

/// The largest value in bytes: several times the largest known bundle.
const MAX_VALUE_BYTES: i32 = 64 << 20;

/// Steps of SQLite's virtual machine between two calls of the progress handler.
const STEPS_PER_CALLBACK: i32 = 1_000;

/// The first bytes of a hot rollback journal.
const JOURNAL: [u8; 8] = [0xd9, 0xd5, 0x05, 0xf9, 0x20, 0xa1, 0x63, 0xd7];

/// A database that was checked, and the size of its file in bytes.
pub(crate) fn open(path: &Path) -> Result<(Connection, u64), DatabaseError> {
    let failed = |source| DatabaseError::File { file: path.to_owned(), source };
    let size = std::fs::metadata(path).map_err(failed)?.len();
    if let Some(sibling) = pending_changes(path) {
        return Err(DatabaseError::PendingChanges { file: path.to_owned(), beside: sibling });
    }
    let connection = connect(path, size).map_err(|error| sqlite_error(path, &error))?;
    Ok((connection, size))
}

/// The log or journal next to a database that holds changes. Opening the file as immutable would
/// ignore them.
fn pending_changes(path: &Path) -> Option<PathBuf> {
    let sibling = |end: &str| {
        let mut name = path.as_os_str().to_owned();
        name.push(end);
        PathBuf::from(name)
    };
    let (log, journal) = (sibling("-wal"), sibling("-journal"));
    if std::fs::metadata(&log).is_ok_and(|found| found.len() > 0) {
        return Some(log);
    }
    let mut start = [0; 8];
    let is_hot = File::open(&journal).and_then(|mut file| file.read_exact(&mut start)).is_ok();
    (is_hot && start == JOURNAL).then_some(journal)
}

fn connect(path: &Path, size: u64) -> rusqlite::Result<Connection> {
    // SQLite opens an immutable file without locks, logs and journals, so it creates no files.
    let mut uri = "file:".to_owned();
    for &byte in path.as_os_str().as_bytes() {
        if byte.is_ascii_alphanumeric() || b"/._-".contains(&byte) {
            uri.push(char::from(byte));
        } else {
            // Writing to a text cannot fail.
            let _ = write!(uri, "%{byte:02x}");
        }
    }
    uri.push_str("?mode=ro&immutable=1");
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY
        | OpenFlags::SQLITE_OPEN_URI
        | OpenFlags::SQLITE_OPEN_NO_MUTEX
        | OpenFlags::SQLITE_OPEN_PRIVATE_CACHE;
    let mut connection = Connection::open_with_flags(uri, flags)?;
    for (setting, on) in [
        (DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true),
        (DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false),
        (DbConfig::SQLITE_DBCONFIG_ENABLE_TRIGGER, false),
        (DbConfig::SQLITE_DBCONFIG_ENABLE_VIEW, false),
    ] {
        connection.set_db_config(setting, on)?;
    }
    connection.set_limit(Limit::SQLITE_LIMIT_LENGTH, MAX_VALUE_BYTES)?;
    connection.set_limit(Limit::SQLITE_LIMIT_ATTACHED, 0)?;
    // Sorting happens in memory; only small tables are sorted.
    connection.execute_batch(
        "PRAGMA temp_store = MEMORY; PRAGMA mmap_size = 0; PRAGMA cache_size = -4096;",
    )?;
    // Reading a valid database takes a few steps for each row, and a row has several bytes.
    let mut callbacks =
        (20_000_000 + size.saturating_mul(16)) / u64::from(STEPS_PER_CALLBACK.unsigned_abs());
    connection.progress_handler(
        STEPS_PER_CALLBACK,
        Some(move || {
            callbacks = callbacks.saturating_sub(1);
            callbacks == 0
        }),
    )?;
    // The check proves that each page is used once, so that later reads cannot loop.
    let found: String = connection.query_row("PRAGMA quick_check(1)", (), |row| row.get(0))?;
    let page: u32 = connection.query_row("PRAGMA page_size", (), |row| row.get(0))?;
    // SQLite would read the missing part of a truncated last page as zeros.
    if found == "ok" && size.is_multiple_of(u64::from(page.max(1))) {
        return Ok(connection);
    }
    let code = rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_CORRUPT);
    Err(rusqlite::Error::SqliteFailure(code, Some("database disk image is malformed".to_owned())))
}

/// The error of SQLite for the database.
pub(crate) fn sqlite_error(file: &Path, error: &rusqlite::Error) -> DatabaseError {
    let file = file.to_owned();
    if error.sqlite_error_code() == Some(ErrorCode::OperationInterrupted) {
        return DatabaseError::ExceedsSize { file };
    }
    let message = match error {
        rusqlite::Error::SqliteFailure(_, Some(message)) => message.clone(),
        rusqlite::Error::SqlInputError { msg, .. } => msg.clone(),
        other => other.to_string(),
    };
    DatabaseError::Sqlite { file, message }
}
