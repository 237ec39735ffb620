//! Damaged and malicious files.

use crate::fixture::Fixture;
use rusqlite::Connection;
use std::fs;

#[test]
fn a_truncated_file_is_refused() {
    let whole = Fixture::with_changes("").bytes();
    for length in (0..whole.len()).step_by(511) {
        let fixture = Fixture::with_bytes(&whole[..length]);
        // SQLite reads an empty file as an empty database.
        assert_eq!(fixture.read().is_ok(), length == 0, "{length}");
    }
}

#[test]
fn random_bytes_never_crash_or_hang() {
    let whole = Fixture::with_changes("").bytes();
    // A fixed seed gives the same files each time.
    let mut state = 0x2545_f491_4f6c_dd1d_u64;
    let mut next = move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        usize::try_from(state >> 33).unwrap()
    };
    let mut refused = 0;
    for _ in 0..300 {
        let mut bytes = whole.clone();
        for _ in 0..=next() % 4 {
            // Half of the changes hit page headers.
            let at = if next() % 2 == 0 { next() % 24 * 4096 + next() % 120 } else { next() };
            let at = at % bytes.len();
            bytes[at] = next().to_le_bytes()[0];
        }
        refused += usize::from(Fixture::with_bytes(&bytes).read().is_err());
    }
    assert!(refused > 30, "{refused} of 300 files were refused, more than 30 expected");
    for text in ["not a database", "SQLite format 3\0", "{\"schema\": \"olm.package\"}"] {
        assert_eq!(
            Fixture::with_bytes(text.repeat(90).as_bytes()).fault(),
            "file is not a database"
        );
    }
}

#[test]
fn the_error_names_a_missing_table_or_column() {
    for table in [
        "package",
        "channel",
        "channel_entry",
        "operatorbundle",
        "properties",
        "dependencies",
        "related_image",
    ] {
        let fixture = Fixture::with_changes(&format!("DROP TABLE {table};"));
        assert_eq!(fixture.fault(), format!("no such table: {table}"));
    }
    assert_eq!(
        Fixture::with_changes("ALTER TABLE package DROP COLUMN default_channel;").fault(),
        "no such column: default_channel"
    );
    let fixture = Fixture::without_file();
    assert!(fixture.fault().contains("No such file"));
}

#[test]
fn values_of_any_type_are_read_as_texts() {
    let fixture = Fixture::with_changes(
        "UPDATE operatorbundle SET version = CAST('2.0.0' AS BLOB), skiprange = 5 WHERE name = 'kiwi.v2'; \
         UPDATE channel_entry SET depth = 'deep', replaces = 'none' WHERE entry_id = 2; \
         UPDATE properties SET type = NULL WHERE type = 'my.type';",
    );
    let fault = fixture.fault();
    assert!(fault.contains("invalid skipRange \"5\""), "{fault}");
}

#[test]
fn views_do_not_run() {
    let fixture = Fixture::with_changes(
        "DROP TABLE package; CREATE VIEW package AS SELECT 'kiwi' AS name, 'stable' AS default_channel;",
    );
    assert_eq!(fixture.fault(), "access to view \"package\" prohibited");
}

#[test]
fn work_and_content_are_bounded_by_the_size_of_the_file() {
    // A generated column: eight megabytes for each row.
    let bloated = "DROP TABLE properties; \
        CREATE TABLE properties (operatorbundle_name TEXT, type TEXT, value TEXT AS (hex(zeroblob(4000000)))); \
        INSERT INTO properties(operatorbundle_name, type) VALUES ('kiwi.v2', 'a'), ('kiwi.v2', 'b');";
    let error = Fixture::with_changes(bloated).read().err().unwrap();
    assert!(error.to_string().contains("holds more than its size allows"), "{error}");
    let too_long = bloated.replace("4000000", "90000000");
    assert_eq!(Fixture::with_changes(&too_long).fault(), "string or blob too big");
}

#[test]
fn a_long_chain_is_followed_to_its_end() {
    let rows = "WITH RECURSIVE n(i) AS (SELECT 3 UNION ALL SELECT i + 1 FROM n WHERE i < 30000)";
    let fixture = Fixture::with_changes(&format!(
        "INSERT INTO channel_entry {rows} SELECT i, 'stable', 'kiwi', 'b' || i, i + 1, 5 FROM n; \
         INSERT INTO channel_entry VALUES (2000000, 'stable', 'kiwi', 'kiwi.v2', 3, 0);"
    ));
    let entries = &fixture.documents("olm.channel")[0]["entries"];
    // Of several bundles that the head replaces, the last by name wins.
    assert_eq!(entries[1]["replaces"], "kiwi.v1");
}

#[test]
fn a_log_or_journal_with_changes_is_refused() {
    let fixture = Fixture::with_changes("");
    let sibling = |end: &str| {
        let mut name = fixture.path.clone().into_os_string();
        name.push(end);
        name
    };
    let journal = [&[0xd9, 0xd5, 0x05, 0xf9, 0x20, 0xa1, 0x63, 0xd7], &[0; 600][..]].concat();
    for (end, content, passes) in [
        ("-wal", &b"changes"[..], false),
        ("-wal", b"", true),
        ("-journal", &journal, false),
        // A finished journal has no header.
        ("-journal", &[0; 600], true),
    ] {
        fs::write(sibling(end), content).unwrap();
        let read = fixture.read();
        assert_eq!(read.is_ok(), passes, "{end}");
        if let Err(error) = read {
            assert!(error.to_string().contains("holds changes that are not in"), "{error}");
        }
        fs::remove_file(sibling(end)).unwrap();
    }
}

#[test]
fn a_database_in_wal_mode_is_read_without_a_log() {
    let fixture = Fixture::with_changes("");
    let connection = Connection::open(&fixture.path).unwrap();
    connection.query_row("PRAGMA journal_mode = WAL", (), |_| Ok(())).unwrap();
    connection.close().unwrap();
    assert_eq!(fixture.documents("olm.bundle").len(), 2);
}

#[test]
fn read_permission_is_enough() {
    use std::os::unix::fs::PermissionsExt;
    let fixture = Fixture::with_changes("");
    let permit = |path: &std::path::Path, mode| {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    };
    permit(&fixture.path, 0o400);
    permit(fixture.folder.path(), 0o500);
    assert!(fixture.read().is_ok());
    permit(fixture.folder.path(), 0o700);
    permit(&fixture.path, 0);
    // Root may read each file.
    if fs::File::open(&fixture.path).is_err() {
        assert!(fixture.read().is_err());
    }
    permit(&fixture.path, 0o600);
}
