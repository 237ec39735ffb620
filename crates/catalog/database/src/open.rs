//! Opening a database without writing, and without running what is in it.

use crate::error::DatabaseError;
use rusqlite::{Connection, ErrorCode, OpenFlags, config::DbConfig, limits::Limit};
use std::{
    fmt::Write,
    fs::File,
    io::Read,
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
};

/// Bytes of one value: several times the largest bundle there is.
const VALUE: i32 = 64 << 20;

/// Steps of SQLite's machine between two looks at how many there were.
const STRIDE: i32 = 1_000;

/// The first bytes of a rollback journal that is in force.
const JOURNAL: [u8; 8] = [0xd9, 0xd5, 0x05, 0xf9, 0x20, 0xa1, 0x63, 0xd7];

/// A database that was looked through, and how many bytes its file has.
pub(crate) fn open(path: &Path) -> Result<(Connection, u64), DatabaseError> {
    let failed = |source| DatabaseError::File { file: path.to_owned(), source };
    let size = std::fs::metadata(path).map_err(failed)?.len();
    if let Some(beside) = unfinished(path) {
        return Err(DatabaseError::Unfinished { file: path.to_owned(), beside });
    }
    let connection = connect(path, size).map_err(|error| said(path, &error))?;
    Ok((connection, size))
}

/// The log or journal beside a database that holds changes. Opening the file as one that nobody changes
/// would pass over them.
fn unfinished(path: &Path) -> Option<PathBuf> {
    let beside = |end: &str| {
        let mut name = path.as_os_str().to_owned();
        name.push(end);
        PathBuf::from(name)
    };
    let (log, journal) = (beside("-wal"), beside("-journal"));
    if std::fs::metadata(&log).is_ok_and(|found| found.len() > 0) {
        return Some(log);
    }
    let mut start = [0; 8];
    let is_hot = File::open(&journal).and_then(|mut file| file.read_exact(&mut start)).is_ok();
    (is_hot && start == JOURNAL).then_some(journal)
}

fn connect(path: &Path, size: u64) -> rusqlite::Result<Connection> {
    // An immutable file is opened without locks, logs and journals: nothing appears beside it.
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
    connection.set_limit(Limit::SQLITE_LIMIT_LENGTH, VALUE)?;
    connection.set_limit(Limit::SQLITE_LIMIT_ATTACHED, 0)?;
    // What has to be sorted stays in memory: its size is that of the small tables.
    connection.execute_batch(
        "PRAGMA temp_store = MEMORY; PRAGMA mmap_size = 0; PRAGMA cache_size = -4096;",
    )?;
    // Reading a sound database takes a few steps for each row, and a row is several bytes.
    let mut strides = (20_000_000 + size.saturating_mul(16)) / u64::from(STRIDE.unsigned_abs());
    connection.progress_handler(
        STRIDE,
        Some(move || {
            strides = strides.saturating_sub(1);
            strides == 0
        }),
    )?;
    // Every page is where it belongs, once: nothing goes round in circles after this.
    let found: String = connection.query_row("PRAGMA quick_check(1)", (), |row| row.get(0))?;
    let page: u32 = connection.query_row("PRAGMA page_size", (), |row| row.get(0))?;
    // The last page may not be cut either: what is missing of it would be read as zeros.
    if found == "ok" && size.is_multiple_of(u64::from(page.max(1))) {
        return Ok(connection);
    }
    let code = rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_CORRUPT);
    Err(rusqlite::Error::SqliteFailure(code, Some("database disk image is malformed".to_owned())))
}

/// What SQLite says about the database.
pub(crate) fn said(file: &Path, error: &rusqlite::Error) -> DatabaseError {
    let file = file.to_owned();
    if error.sqlite_error_code() == Some(ErrorCode::OperationInterrupted) {
        return DatabaseError::Endless { file };
    }
    let message = match error {
        rusqlite::Error::SqliteFailure(_, Some(message)) => message.clone(),
        rusqlite::Error::SqlInputError { msg, .. } => msg.clone(),
        other => other.to_string(),
    };
    DatabaseError::Sqlite { file, message }
}
