//! Disk errors: the write is refused, memory stays correct, and the store continues.

use super::memdisk::Step;
use super::*;
use std::io::ErrorKind;

fn engine_error(result: Result<Arc<Stored>, CommitError>) -> crate::EngineError {
    match result {
        Err(CommitError::Engine(error)) => error,
        other => panic!("not refused by the engine: {other:?}"),
    }
}

#[tokio::test]
async fn a_failed_write_changes_nothing_and_the_next_one_succeeds() {
    let rows = [
        (Step::Write, ErrorKind::StorageFull, 0, "write"),
        (Step::Write, ErrorKind::StorageFull, 20, "write"),
        (Step::Write, ErrorKind::QuotaExceeded, 100, "write"),
        (Step::Sync, ErrorKind::StorageFull, 0, "sync"),
    ];
    for (step, error, short, attempt) in rows {
        let (disk, before) = written().await;
        let store = open(&disk).unwrap().0;
        let mut watch = store.watch("things", store.revision()).unwrap();
        disk.fail(step, "journal", error, short);
        let refused = engine_error(put(&store, "d", "no").await);
        assert!(refused.is_full());
        let text = refused.to_string();
        let message = format!("the change was not saved: cannot {attempt} /data/journal-");
        assert!(text.starts_with(&message), "{text}");
        assert_eq!((live(&store), store.revision()), (before, 6));
        assert!(watch.try_next().unwrap().is_none());
        assert_eq!(put(&store, "d", "yes").await.unwrap().revision, 7);
        let after = live(&store);
        store.close().await.unwrap();
        let (store, recovery) = open(&disk).unwrap();
        assert_eq!((live(&store), recovery.torn), (after, None));
    }
}

#[tokio::test]
async fn a_failed_write_that_cannot_be_undone_stops_writes_but_not_reads() {
    for second in [Step::Truncate, Step::Sync] {
        let (disk, before) = written().await;
        let store = open(&disk).unwrap().0;
        disk.fail(Step::Write, "journal", ErrorKind::Other, 30);
        disk.fail(second, "journal", ErrorKind::Other, 0);
        let first = engine_error(put(&store, "d", "no").await);
        let text = first.to_string();
        assert!(text.starts_with("no changes are accepted until a restart, because"), "{text}");
        assert_eq!(disk.pending_faults(), 0);
        assert_eq!(engine_error(put(&store, "e", "no").await).to_string(), text);
        assert_eq!(live(&store), before);
        store.close().await.unwrap();
        // A restart finds the remains and drops them.
        let (store, _) = open(&disk).unwrap();
        assert_eq!(live(&store), before);
        put(&store, "d", "yes").await.unwrap();
    }
}

#[tokio::test]
async fn a_write_succeeds_although_the_acknowledgement_file_fails() {
    let (disk, _) = written().await;
    let store = open(&disk).unwrap().0;
    disk.fail(Step::Write, ACKNOWLEDGED, ErrorKind::Other, 0);
    put(&store, "d", "yes").await.unwrap();
    assert_eq!(disk.pending_faults(), 0);
    let after = live(&store);
    store.close().await.unwrap();
    assert_eq!(live(&open(&disk).unwrap().0), after);
}

#[tokio::test]
async fn an_open_error_names_the_attempted_operation() {
    let rows = [
        ("journal", "cannot read /data/journal-0000000000000001"),
        (ACKNOWLEDGED, "cannot read /data/acknowledged"),
    ];
    for (file, expected) in rows {
        let (disk, before) = written().await;
        disk.fail(Step::Open, file, ErrorKind::PermissionDenied, 0);
        let error = open(&disk).unwrap_err();
        assert_eq!(error.to_string(), expected);
        // The system's error is the source, and appears only there.
        assert!(std::error::Error::source(&error).is_some());
        assert_eq!(live(&open(&disk).unwrap().0), before);
    }
}

#[tokio::test]
async fn a_failed_first_start_does_not_prevent_the_second() {
    let steps = [
        (Step::Open, ACKNOWLEDGED),
        (Step::Write, ACKNOWLEDGED),
        (Step::Sync, ACKNOWLEDGED),
        (Step::Open, "journal"),
        (Step::Write, "journal"),
        (Step::Sync, "journal"),
    ];
    for (step, file) in steps {
        for short in 0..32 {
            let disk = MemDisk::default();
            disk.fail(step, file, ErrorKind::StorageFull, short);
            assert!(open(&disk).is_err());
            assert_eq!(disk.pending_faults(), 0);
            for disk in [disk.unplugged(), disk] {
                let (store, recovery) = open(&disk).unwrap();
                assert_eq!((recovery.revision, recovery.objects), (1, 0));
                put(&store, "a", "1").await.unwrap();
            }
        }
    }
}

#[tokio::test]
async fn another_version_of_the_format_is_refused_by_number() {
    let (disk, _) = written().await;
    let mut bytes = disk.bytes(&journal());
    bytes[8] = 2;
    crate::engine::journal::format::seal(&mut bytes[..32]);
    disk.write(&journal(), bytes);
    assert_eq!(
        open(&disk).unwrap_err().to_string(),
        "/data/journal-0000000000000001 is in version 2 of the format, and this program reads \
         version 1; open it with the program that wrote it"
    );
}

#[tokio::test]
async fn a_write_into_a_removed_journal_is_refused_and_so_is_every_later_one() {
    let (disk, before) = written().await;
    let store = open(&disk).unwrap().0;
    assert!(store.health().await.is_ok());
    crate::engine::journal::disk::Disk::remove(&disk, &journal()).unwrap();
    let refused = engine_error(put(&store, "d", "no").await).to_string();
    assert!(refused.contains("/data/journal-0000000000000001 was removed"), "{refused}");
    assert_eq!(engine_error(put(&store, "e", "no").await).to_string(), refused);
    assert_eq!(store.health().await.unwrap_err().to_string(), refused);
    assert_eq!(live(&store), before, "reading goes on");
}

#[tokio::test]
async fn health_follows_the_last_write_or_a_later_attempt() {
    let (disk, before) = written().await;
    let store = open(&disk).unwrap().0;
    tokio::time::pause();
    // The change, and the first attempt.
    disk.fail(Step::Write, "journal", ErrorKind::ReadOnlyFilesystem, 0);
    let refused = engine_error(put(&store, "d", "no").await).to_string();
    disk.fail(Step::Write, "journal", ErrorKind::ReadOnlyFilesystem, 0);
    assert_eq!(store.health().await.unwrap_err().to_string(), refused);
    assert_eq!(store.health().await.unwrap_err().to_string(), refused, "one attempt in a second");
    let bytes = disk.bytes(&journal());
    tokio::time::advance(std::time::Duration::from_secs(2)).await;
    assert!(store.health().await.is_ok(), "the disk takes writes again, and nobody had to write");
    assert_eq!(disk.bytes(&journal()), bytes, "nothing is left of the attempts");
    put(&store, "d", "yes").await.unwrap();
    assert!(store.health().await.is_ok());
    store.close().await.unwrap();
    assert_eq!(live(&open(&disk).unwrap().0).len(), before.len() + 1);
}
