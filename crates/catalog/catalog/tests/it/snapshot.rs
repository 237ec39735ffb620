//! Catalog snapshots: saving, loading, and damage.

use crate::{SOUND, load};
use mainstay_catalog::{Catalog, SnapshotError};
use std::fs;

#[test]
fn saved_catalog_loads_unchanged() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("olm.kiwi");
    let catalog = load(&[("kiwi/c.yaml", SOUND)]).unwrap();
    catalog.save(&path).unwrap();
    let back = Catalog::load_snapshot(&path).unwrap();
    assert_eq!(back.digest(), catalog.digest());
    assert_eq!(format!("{back:?}"), format!("{catalog:?}"));
    let bundle = back.bundle("kiwi", "kiwi.v1.1.0").unwrap();
    assert_eq!(bundle.objects().unwrap().len(), 2);
    assert_eq!(bundle.blob().origin().to_string(), "kiwi/c.yaml:37");
    let files: Vec<_> = fs::read_dir(folder.path()).unwrap().collect();
    assert_eq!(files.len(), 1, "no other file is left in the folder");
}

#[test]
fn saving_replaces_the_previous_snapshot() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("snapshot");
    load(&[]).unwrap().save(&path).unwrap();
    load(&[("c.yaml", SOUND)]).unwrap().save(&path).unwrap();
    assert_eq!(Catalog::load_snapshot(&path).unwrap().packages().len(), 1);
}

#[test]
fn damaged_snapshot_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("snapshot");
    load(&[("c.yaml", SOUND)]).unwrap().save(&path).unwrap();
    let sound = fs::read(&path).unwrap();
    for at in (0..sound.len()).step_by(7) {
        let mut flipped = sound.clone();
        flipped[at] ^= 0x10;
        for damaged in [flipped.as_slice(), &sound[..at]] {
            fs::write(&path, damaged).unwrap();
            let error = Catalog::load_snapshot(&path).unwrap_err();
            assert!(matches!(error, SnapshotError::Damaged { .. }), "{at}: {error}");
            assert!(error.to_string().contains("is damaged: "), "{error}");
        }
    }
    fs::remove_file(&path).unwrap();
    let missing = Catalog::load_snapshot(&path).unwrap_err();
    assert!(matches!(missing, SnapshotError::Read { .. }), "{missing}");
    let nowhere = folder.path().join("no/such/folder");
    let refused = load(&[]).unwrap().save(&nowhere).unwrap_err();
    assert!(matches!(refused, SnapshotError::Write { .. }), "{refused}");
}
