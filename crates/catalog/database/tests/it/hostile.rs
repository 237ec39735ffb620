//! Files that are damaged, or made to do harm.

use crate::fixture::Fixture;
use rusqlite::Connection;
use std::fs;

#[test]
fn a_file_that_ends_too_early_is_no_database() {
    let whole = Fixture::with("").bytes();
    for length in (0..whole.len()).step_by(511) {
        let fixture = Fixture::of(&whole[..length]);
        // SQLite takes an empty file for an empty database.
        assert_eq!(fixture.read().is_ok(), length == 0, "{length}");
    }
}

#[test]
fn any_bytes_end_in_an_answer() {
    let whole = Fixture::with("").bytes();
    // A fixed series of places: the same files each time.
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
            // Headers of pages more often than what is in them.
            let at = if next() % 2 == 0 { next() % 24 * 4096 + next() % 120 } else { next() };
            let at = at % bytes.len();
            bytes[at] = next().to_le_bytes()[0];
        }
        refused += usize::from(Fixture::of(&bytes).read().is_err());
    }
    assert!(refused > 30, "{refused}");
    for text in ["not a database", "SQLite format 3\0", "{\"schema\": \"olm.package\"}"] {
        assert_eq!(Fixture::of(text.repeat(90).as_bytes()).fault(), "file is not a database");
    }
}

#[test]
fn tables_that_are_not_there_are_named() {
    for table in [
        "package",
        "channel",
        "channel_entry",
        "operatorbundle",
        "properties",
        "dependencies",
        "related_image",
    ] {
        let fixture = Fixture::with(&format!("DROP TABLE {table};"));
        assert_eq!(fixture.fault(), format!("no such table: {table}"));
    }
    assert_eq!(
        Fixture::with("ALTER TABLE package DROP COLUMN default_channel;").fault(),
        "no such column: default_channel"
    );
    let fixture = Fixture::none();
    assert!(fixture.fault().contains("No such file"));
}

#[test]
fn values_of_other_types_are_texts() {
    let fixture = Fixture::with(
        "UPDATE operatorbundle SET version = CAST('2.0.0' AS BLOB), skiprange = 5 WHERE name = 'kiwi.v2'; \
         UPDATE channel_entry SET depth = 'deep', replaces = 'none' WHERE entry_id = 2; \
         UPDATE properties SET type = NULL WHERE type = 'my.type';",
    );
    let fault = fixture.fault();
    assert!(fault.contains("invalid skipRange \"5\""), "{fault}");
}

#[test]
fn views_do_not_run() {
    let fixture = Fixture::with(
        "DROP TABLE package; CREATE VIEW package AS SELECT 'kiwi' AS name, 'stable' AS default_channel;",
    );
    assert_eq!(fixture.fault(), "access to view \"package\" prohibited");
}

#[test]
fn work_and_content_are_bounded_by_the_size_of_the_file() {
    // A column that is worked out: eight megabytes for each row.
    let bloated = "DROP TABLE properties; \
        CREATE TABLE properties (operatorbundle_name TEXT, type TEXT, value TEXT AS (hex(zeroblob(4000000)))); \
        INSERT INTO properties(operatorbundle_name, type) VALUES ('kiwi.v2', 'a'), ('kiwi.v2', 'b');";
    let error = Fixture::with(bloated).read().err().unwrap();
    assert!(error.to_string().contains("holds more than its size allows"), "{error}");
    let too_long = bloated.replace("4000000", "90000000");
    assert_eq!(Fixture::with(&too_long).fault(), "string or blob too big");
}

#[test]
fn a_long_chain_is_followed_to_its_end() {
    let rows = "WITH RECURSIVE n(i) AS (SELECT 3 UNION ALL SELECT i + 1 FROM n WHERE i < 30000)";
    let fixture = Fixture::with(&format!(
        "INSERT INTO channel_entry {rows} SELECT i, 'stable', 'kiwi', 'b' || i, i + 1, 5 FROM n; \
         INSERT INTO channel_entry VALUES (2000000, 'stable', 'kiwi', 'kiwi.v2', 3, 0);"
    ));
    let entries = &fixture.documents("olm.channel")[0]["entries"];
    // Of what the head replaces, the last by name counts.
    assert_eq!(entries[1]["replaces"], "kiwi.v1");
}

#[test]
fn a_log_or_journal_beside_the_file_is_not_passed_over() {
    let fixture = Fixture::with("");
    let beside = |end: &str| {
        let mut name = fixture.path.clone().into_os_string();
        name.push(end);
        name
    };
    let journal = [&[0xd9, 0xd5, 0x05, 0xf9, 0x20, 0xa1, 0x63, 0xd7], &[0; 600][..]].concat();
    for (end, content, passes) in [
        ("-wal", &b"changes"[..], false),
        ("-wal", b"", true),
        ("-journal", &journal, false),
        // A journal that is done with has no head.
        ("-journal", &[0; 600], true),
    ] {
        fs::write(beside(end), content).unwrap();
        let read = fixture.read();
        assert_eq!(read.is_ok(), passes, "{end}");
        if let Err(error) = read {
            assert!(error.to_string().contains("holds changes that are not in"), "{error}");
        }
        fs::remove_file(beside(end)).unwrap();
    }
}

#[test]
fn a_database_that_was_written_with_a_log_is_read_without_one() {
    let fixture = Fixture::with("");
    let connection = Connection::open(&fixture.path).unwrap();
    connection.query_row("PRAGMA journal_mode = WAL", (), |_| Ok(())).unwrap();
    connection.close().unwrap();
    assert_eq!(fixture.documents("olm.bundle").len(), 2);
}

#[test]
fn only_reading_is_asked_for() {
    use std::os::unix::fs::PermissionsExt;
    let fixture = Fixture::with("");
    let permit = |path: &std::path::Path, mode| {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    };
    permit(&fixture.path, 0o400);
    permit(fixture.folder.path(), 0o500);
    assert!(fixture.read().is_ok());
    permit(fixture.folder.path(), 0o700);
    permit(&fixture.path, 0);
    // Who may do everything is not refused.
    if fs::File::open(&fixture.path).is_err() {
        assert!(fixture.read().is_err());
    }
    permit(&fixture.path, 0o600);
}
