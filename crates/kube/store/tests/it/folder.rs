//! A store in a real folder.

use crate::support::*;
use mainstay_store::{OpenError, Options, Precondition, Store};
use std::fs;

#[tokio::test]
async fn a_folder_is_created_and_locked_by_one_store() {
    let parent = tempfile::tempdir().unwrap();
    let folder = parent.path().join("not/yet/there");
    let store = on_disk(&folder);
    let refused = Store::open(&folder, Options::default()).unwrap_err();
    assert_eq!(
        refused.to_string(),
        format!(
            "the data folder {} is in use by process {}; stop it, or choose another folder",
            folder.display(),
            std::process::id()
        )
    );
    assert!(matches!(Store::repair(&folder), Err(OpenError::Locked { .. })));
    store.close().await.unwrap();
    on_disk(&folder);
}

#[tokio::test]
async fn dropping_a_store_loses_nothing_and_frees_the_folder() {
    let folder = tempfile::tempdir().unwrap();
    for round in 1..20_u64 {
        let store = on_disk(folder.path());
        assert_eq!(store.revision(), round);
        put(&store, ("a", "x"), &round.to_string(), Precondition::Any).await.unwrap();
    }
}

#[tokio::test]
async fn a_path_that_is_not_a_folder_is_refused_with_its_name() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    fs::write(&file, "").unwrap();
    let refused = Store::open(&file, Options::default()).unwrap_err().to_string();
    assert_eq!(refused, format!("cannot create {}", file.display()));
}

#[tokio::test]
async fn a_repair_keeps_the_original_files() {
    let folder = tempfile::tempdir().unwrap();
    let store = on_disk(folder.path());
    for name in ["x", "y"] {
        put(&store, ("a", name), "1", Precondition::Absent).await.unwrap();
    }
    store.close().await.unwrap();
    assert_eq!(Store::repair(folder.path()).unwrap().lost, []);
    let journal = folder.path().join("journal-0000000000000001");
    let mut bytes = fs::read(&journal).unwrap();
    let last = bytes.len() - 1;
    bytes[last] ^= 1;
    fs::write(&journal, &bytes).unwrap();
    let OpenError::Damaged(damage) = Store::open(folder.path(), Options::default()).unwrap_err()
    else {
        panic!("damage is not noticed")
    };
    assert_eq!((damage.file, damage.sound), (journal.clone(), Some(2)));
    let repaired = Store::repair(folder.path()).unwrap();
    assert_eq!((repaired.revision, repaired.objects, repaired.lost.len()), (4, 1, 1));
    let original = repaired.originals.unwrap().join("journal-0000000000000001");
    assert_eq!(fs::read(original).unwrap(), bytes);
    assert!(!journal.exists());
    let store = on_disk(folder.path());
    assert_eq!(object_lines(store.list(MAPS, None).iter()), ["a/x=1@2"]);
    assert_eq!(put(&store, ("a", "y"), "2", Precondition::Absent).await.unwrap().revision, 5);
}

#[test]
fn only_the_owner_has_access_to_the_folder() {
    use std::os::unix::fs::PermissionsExt;
    let mode = |path: &std::path::Path| {
        fs::metadata(path).expect("it is there").permissions().mode() & 0o777
    };
    let temporary = tempfile::tempdir().expect("a folder");
    let folder = temporary.path().join("store");
    // Permissions of others are removed from an existing folder.
    fs::create_dir(&folder).expect("made");
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o755)).expect("opened");
    let (store, _) = Store::open(&folder, Options::default()).expect("it opens");
    assert_eq!(mode(&folder), 0o700);
    for entry in fs::read_dir(&folder).expect("readable") {
        let path = entry.expect("an entry").path();
        assert_eq!(mode(&path) & 0o077, 0, "{}", path.display());
    }
    drop(store);
}

#[tokio::test]
async fn a_removed_folder_refuses_writes() {
    let parent = tempfile::tempdir().unwrap();
    let folder = parent.path().join("store");
    let store = on_disk(&folder);
    put(&store, ("a", "x"), "1", Precondition::Any).await.unwrap();
    store.health().await.unwrap();
    fs::remove_dir_all(&folder).unwrap();
    // Before any write.
    let health = store.health().await.unwrap_err().to_string();
    assert!(health.contains("no changes can be saved") && health.contains("removed"), "{health}");
    let refused = put(&store, ("a", "x"), "2", Precondition::Any).await.unwrap_err().to_string();
    assert!(refused.contains("was removed while it was written"), "{refused}");
    assert!(store.health().await.is_err());
    // Another folder at that path is not taken for the old one.
    fs::create_dir(&folder).unwrap();
    assert!(put(&store, ("a", "y"), "1", Precondition::Any).await.is_err());
    assert_eq!(fs::read_dir(&folder).unwrap().count(), 0);
}

#[tokio::test]
async fn a_moved_folder_gets_no_new_journal_at_its_old_path() {
    let parent = tempfile::tempdir().unwrap();
    let (folder, moved) = (parent.path().join("store"), parent.path().join("moved"));
    let options = Options { snapshot_after: 1, ..Options::default() };
    let store = Store::open(&folder, options).unwrap().0;
    put(&store, ("a", "x"), "1", Precondition::Any).await.unwrap();
    fs::rename(&folder, &moved).unwrap();
    fs::create_dir(&folder).unwrap();
    for round in 0..5 {
        put(&store, ("a", "x"), &format!("more {round}"), Precondition::Any).await.unwrap();
    }
    assert!(store.health().await.unwrap_err().to_string().contains("removed"));
    assert_eq!(fs::read_dir(&folder).unwrap().count(), 0);
    store.close().await.unwrap();
    let (store, _) = Store::open(&moved, Options::default()).unwrap();
    assert_eq!(store.revision(), 7, "what was acknowledged is in the folder that was moved");
}
