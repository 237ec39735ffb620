//! Snapshots replace journals without a visible effect, whenever the process ends.

use super::memdisk::Step;
use super::*;
use std::io::ErrorKind;

/// A store whose journal exceeds every threshold, with the snapshot at revision 7 just written.
async fn with_snapshot() -> (MemDisk, Store) {
    let (disk, _) = written().await;
    let store = open_with(&disk, 0).unwrap().0;
    put(&store, "d", "6").await.unwrap();
    wait_for_file(&disk, &names::snapshot(7));
    (disk, store)
}

#[tokio::test]
async fn a_snapshot_replaces_older_files() {
    let (disk, store) = with_snapshot().await;
    let expected = live(&store);
    store.close().await.unwrap();
    assert_eq!(disk.files(), [ACKNOWLEDGED, &names::journal(7), &names::snapshot(7)]);
    for disk in [disk.unplugged(), disk] {
        let (store, recovery) = open(&disk).unwrap();
        assert_eq!((recovery.revision, recovery.objects), (7, 3));
        assert_eq!(live(&store), expected);
        // Events before the snapshot are not available.
        assert!(store.watch("things", 6).is_err());
        assert!(store.watch("things", 7).is_ok());
    }
}

#[tokio::test]
async fn the_revision_survives_the_deletion_of_its_object() {
    let (disk, store) = with_snapshot().await;
    for name in ["a", "c", "d"] {
        delete(&store, name).await.unwrap();
    }
    store.close().await.unwrap();
    let (store, recovery) = open(&disk).unwrap();
    assert_eq!((recovery.revision, recovery.objects), (10, 0));
    assert_eq!(put(&store, "a", "1").await.unwrap().revision, 11);
}

#[tokio::test]
async fn leftover_files_of_a_crash_are_removed_and_ignored() {
    let (old, _) = written().await;
    let (disk, store) = with_snapshot().await;
    let expected = live(&store);
    store.close().await.unwrap();
    // The process ended between making the snapshot durable and removing older files …
    disk.write(&journal(), old.bytes(&journal()));
    disk.write(&names::snapshot(3), b"nonsense".to_vec());
    // … or while it was writing another one.
    disk.write(&names::unfinished(&names::snapshot(9)), b"half".to_vec());
    let store = open(&disk).unwrap().0;
    assert_eq!(live(&store), expected);
    assert_eq!(disk.files(), [ACKNOWLEDGED, &names::journal(7), &names::snapshot(7)]);
}

#[tokio::test]
async fn a_failed_snapshot_loses_nothing_and_is_retried() {
    let (disk, _) = written().await;
    for step in [Step::Open, Step::Write, Step::Sync, Step::Rename] {
        let disk = disk.copy();
        disk.fail(step, "snapshot", ErrorKind::StorageFull, 10);
        let store = open_with(&disk, 0).unwrap().0;
        put(&store, "d", "6").await.unwrap();
        // Closing waits for the attempt, and cancels it only between frames.
        store.close().await.unwrap();
        assert_eq!(disk.pending_faults(), 0);
        let both = [ACKNOWLEDGED.to_owned(), journal(), names::journal(7)];
        assert_eq!(disk.files(), both, "{step:?}");
        let store = open_with(&disk, 0).unwrap().0;
        assert_eq!(store.revision(), 7);
        put(&store, "e", "7").await.unwrap();
        wait_for_file(&disk, &names::snapshot(8));
        let expected = live(&store);
        store.close().await.unwrap();
        assert_eq!(disk.files(), [ACKNOWLEDGED, &names::journal(8), &names::snapshot(8)]);
        assert_eq!(live(&open(&disk).unwrap().0), expected);
    }
}

#[tokio::test]
async fn a_failed_rotation_keeps_the_old_journal() {
    let (disk, _) = written().await;
    let store = open_with(&disk, 0).unwrap().0;
    disk.fail(Step::Sync, "journal-0000000000000001", ErrorKind::Other, 0);
    assert!(matches!(put(&store, "d", "no").await, Err(CommitError::Engine(_))));
    disk.fail(Step::Open, "journal-0000000000000007", ErrorKind::StorageFull, 0);
    put(&store, "d", "6").await.unwrap();
    put(&store, "e", "7").await.unwrap();
    let expected = live(&store);
    store.close().await.unwrap();
    assert_eq!(disk.pending_faults(), 0);
    assert_eq!(live(&open(&disk).unwrap().0), expected);
}

#[tokio::test]
async fn a_new_journal_may_lack_its_header() {
    let (disk, expected) = written().await;
    for length in 0..32 {
        let disk = disk.copy();
        disk.write(&names::journal(6), vec![0; length]);
        let (store, recovery) = open(&disk).unwrap();
        assert_eq!(recovery.torn.unwrap().bytes, length as u64);
        assert_eq!(live(&store), expected);
        put(&store, "d", "7").await.unwrap();
        let expected = live(&store);
        store.close().await.unwrap();
        assert_eq!(live(&open(&disk).unwrap().0), expected);
    }
}

#[tokio::test]
async fn a_watch_continues_over_a_restart_within_the_journal() {
    let (disk, _) = written().await;
    let (store, _) = open(&disk).unwrap();
    let mut watch = store.watch("things", 3).unwrap();
    let mut received = Vec::new();
    while let Some(event) = watch.try_next().unwrap() {
        let previous = event.previous.as_ref().map_or(0, |stored| stored.revision);
        received.push((
            event.kind.as_str(),
            event.object.key.name.to_string(),
            event.revision,
            previous,
        ));
    }
    assert_eq!(
        received,
        [
            ("MODIFIED", "a".to_owned(), 4, 2),
            ("DELETED", "b".to_owned(), 5, 3),
            ("ADDED", "c".to_owned(), 6, 0),
        ]
    );
}
