//! Rows as texts.

use crate::{error::DatabaseError, open};
use rusqlite::{Connection, types::ValueRef};
use std::path::{Path, PathBuf};

/// A value of a row; `None` is NULL. Whatever the type of a value, it is read as a text, as upstream does.
pub(crate) type Cell = Option<String>;

/// A database that is read.
pub(crate) struct Reader {
    connection: Connection,
    file: PathBuf,
    /// How many bytes one pass over a table may give.
    most: u64,
}

impl Reader {
    /// Opens a file; see [`open::open`].
    pub(crate) fn open(path: &Path) -> Result<Self, DatabaseError> {
        let (connection, size) = open::open(path)?;
        // Numbers are longer as texts.
        let most = size.saturating_mul(4).saturating_add(1 << 16);
        Ok(Self { connection, file: path.to_owned(), most })
    }

    /// The database's file.
    pub(crate) fn file(&self) -> &Path {
        &self.file
    }

    /// An error about what the database holds, in upstream's words.
    pub(crate) fn wrong(&self, message: impl Into<String>) -> DatabaseError {
        DatabaseError::Content { file: self.file.clone(), message: message.into() }
    }

    /// Whether there is a table of that name.
    pub(crate) fn has(&self, table: &str) -> Result<bool, DatabaseError> {
        let mut found = false;
        let query = "SELECT name FROM sqlite_schema WHERE type = 'table' AND name = ?1";
        self.each(query, &[table], |[_]| {
            found = true;
            Ok(())
        })?;
        Ok(found)
    }

    /// Passes every row of a query.
    pub(crate) fn each<const N: usize>(
        &self,
        query: &str,
        parameters: &[&str],
        mut row: impl FnMut([Cell; N]) -> Result<(), DatabaseError>,
    ) -> Result<(), DatabaseError> {
        let said = |error: rusqlite::Error| open::said(&self.file, &error);
        let mut statement = self.connection.prepare(query).map_err(said)?;
        let mut rows = statement.query(rusqlite::params_from_iter(parameters)).map_err(said)?;
        let mut left = self.most;
        while let Some(found) = rows.next().map_err(said)? {
            let mut cells = [const { None }; N];
            for (at, cell) in cells.iter_mut().enumerate() {
                *cell = text(found.get_ref(at).map_err(said)?);
                let bytes = cell.as_ref().map_or(1, |text| text.len() as u64 + 1);
                left = left
                    .checked_sub(bytes)
                    .ok_or_else(|| DatabaseError::Endless { file: self.file.clone() })?;
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
