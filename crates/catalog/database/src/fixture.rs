//! Databases for tests. No other code writes databases.

use rusqlite::Connection;
use std::path::Path;

/// The tables of the latest migration level, without rows.
pub const TABLES: &str = "
CREATE TABLE schema_migrations (version bigint NOT NULL, timestamp DATETIME);
INSERT INTO schema_migrations(version) VALUES (13);
CREATE TABLE operatorbundle (name TEXT PRIMARY KEY, csv TEXT, bundle TEXT, bundlepath TEXT,
    skiprange TEXT, version TEXT, replaces TEXT, skips TEXT, substitutesfor TEXT);
CREATE TABLE package (name TEXT PRIMARY KEY, default_channel TEXT);
CREATE TABLE channel (name TEXT, package_name TEXT, head_operatorbundle_name TEXT,
    PRIMARY KEY(name, package_name));
CREATE TABLE channel_entry (entry_id INTEGER PRIMARY KEY, channel_name TEXT, package_name TEXT,
    operatorbundle_name TEXT, replaces INTEGER, depth INTEGER);
CREATE TABLE api (group_name TEXT, version TEXT, kind TEXT, plural TEXT NOT NULL);
CREATE TABLE api_provider (group_name TEXT, version TEXT, kind TEXT, operatorbundle_name TEXT,
    operatorbundle_version TEXT, operatorbundle_path TEXT);
CREATE TABLE api_requirer (group_name TEXT, version TEXT, kind TEXT, operatorbundle_name TEXT,
    operatorbundle_version TEXT, operatorbundle_path TEXT);
CREATE TABLE related_image (image TEXT, operatorbundle_name TEXT);
CREATE TABLE dependencies (type TEXT, value TEXT, operatorbundle_name TEXT,
    operatorbundle_version TEXT, operatorbundle_path TEXT);
CREATE TABLE properties (type TEXT, value TEXT, operatorbundle_name TEXT,
    operatorbundle_version TEXT, operatorbundle_path TEXT);
CREATE TABLE deprecated (operatorbundle_name TEXT PRIMARY KEY);
";

/// Creates a database in a new file.
///
/// # Errors
/// If SQLite refuses the statements.
pub fn create_database(path: &Path, statements: &str) -> rusqlite::Result<()> {
    Connection::open(path)?.execute_batch(&format!("BEGIN; {statements} COMMIT;"))
}
