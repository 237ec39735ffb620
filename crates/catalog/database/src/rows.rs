//! Rows of a database as texts.

use crate::{error::DatabaseError, open};
use rusqlite::{Connection, types::ValueRef};
use std::path::{Path, PathBuf};

/// A value of a row; `None` is NULL. A value of any type is read as a text, as upstream does.
pub(crate) type Cell = Option<String>;

/// Reads rows of a database.
pub(crate) struct DatabaseReader {
    connection: Connection,
    file: PathBuf,
    /// How many bytes one query may return.
    max_bytes: u64,
}

impl DatabaseReader {
    /// Opens a file; see [`open::open`].
    pub(crate) fn open(path: &Path) -> Result<Self, DatabaseError> {
        let (connection, size) = open::open(path)?;
        // Numbers are longer as texts.
        let max_bytes = size.saturating_mul(4).saturating_add(1 << 16);
        Ok(Self { connection, file: path.to_owned(), max_bytes })
    }

    /// The database's file.
    pub(crate) fn file(&self) -> &Path {
        &self.file
    }

    /// An error of the database's content, in upstream's words.
    pub(crate) fn content_error(&self, message: impl Into<String>) -> DatabaseError {
        DatabaseError::Content { file: self.file.clone(), message: message.into() }
    }

    /// Whether the database has a table.
    pub(crate) fn has(&self, table: &str) -> Result<bool, DatabaseError> {
        let mut found = false;
        let query = "SELECT name FROM sqlite_schema WHERE type = 'table' AND name = ?1";
        self.for_each_row(query, &[table], |[_]| {
            found = true;
            Ok(())
        })?;
        Ok(found)
    }

    /// Calls `row` for each row of a query.
    pub(crate) fn for_each_row<const N: usize>(
        &self,
        query: &str,
        parameters: &[&str],
        mut row: impl FnMut([Cell; N]) -> Result<(), DatabaseError>,
    ) -> Result<(), DatabaseError> {
        let sqlite_error = |error: rusqlite::Error| open::sqlite_error(&self.file, &error);
        let mut statement = self.connection.prepare(query).map_err(sqlite_error)?;
        let mut rows =
            statement.query(rusqlite::params_from_iter(parameters)).map_err(sqlite_error)?;
        let mut left = self.max_bytes;
        while let Some(found) = rows.next().map_err(sqlite_error)? {
            let mut cells = [const { None }; N];
            for (at, cell) in cells.iter_mut().enumerate() {
                *cell = text(found.get_ref(at).map_err(sqlite_error)?);
                let bytes = cell.as_ref().map_or(1, |text| text.len() as u64 + 1);
                left = left
                    .checked_sub(bytes)
                    .ok_or_else(|| DatabaseError::ExceedsSize { file: self.file.clone() })?;
            }
            row(cells)?;
        }
        Ok(())
    }
}

fn text(value: ValueRef<'_>) -> Cell {
    match value {
        ValueRef::Null => None,
        ValueRef::Integer(number) => Some(number.to_string()),
        ValueRef::Real(number) => Some(number.to_string()),
        ValueRef::Text(bytes) | ValueRef::Blob(bytes) => {
            Some(String::from_utf8_lossy(bytes).into_owned())
        }
    }
}
