//! After any damage, acknowledged data is either present or reported as lost.

use super::*;
use crate::engine::journal::repair::{Repair, repair_on};

/// Every state of every object of [`written`].
const HISTORY: [(&str, &str, u64); 5] =
    [("a", "1", 2), ("b", "2", 3), ("a", "3", 4), ("c", "5", 6), ("d", "6", 7)];

/// The repair of a damaged folder reports the losses; the folder opens again without invented data.
async fn repair_and_check(disk: &MemDisk) -> Repair {
    let repaired = repair_on(disk).unwrap();
    assert!(!repaired.lost.is_empty());
    assert!(repaired.revision > 6, "revisions are never used again");
    let (store, recovery) = open(disk).unwrap();
    assert_eq!((recovery.revision, recovery.objects), (repaired.revision, repaired.objects));
    for (name, (text, revision)) in live(&store) {
        assert!(HISTORY.contains(&(&name, &text, revision)), "{name}={text}@{revision}");
    }
    let next = put(&store, "new", "n").await.unwrap();
    assert_eq!(next.revision, repaired.revision + 1);
    store.close().await.unwrap();
    assert_eq!(repair_on(disk).unwrap().lost, []);
    repaired
}

#[tokio::test]
async fn a_torn_unacknowledged_write_is_dropped() {
    let (before, live_before) = written().await;
    let after = before.copy();
    let store = open(&after).unwrap().0;
    put(&store, "d", "6").await.unwrap();
    let live_after = live(&store);
    store.close().await.unwrap();
    let (start, bytes) = (before.bytes(&journal()).len(), after.bytes(&journal()));
    for end in start..=bytes.len() {
        let disk = before.copy();
        disk.write(&journal(), bytes[..end].to_vec());
        let (store, recovery) = open(&disk).unwrap();
        if end == bytes.len() {
            assert_eq!((live(&store), recovery.torn), (live_after.clone(), None));
        } else {
            let torn = recovery.torn.map_or(0, |torn| torn.bytes);
            assert_eq!((live(&store), torn), (live_before.clone(), (end - start) as u64));
        }
        // The next write replaces the remains.
        put(&store, "e", "7").await.unwrap();
        let expected = live(&store);
        store.close().await.unwrap();
        assert_eq!(live(&open(&disk).unwrap().0), expected);
    }
}

#[tokio::test]
async fn torn_writes_of_zeros_or_noise_are_dropped() {
    let (disk, expected) = written().await;
    for remains in [vec![0; 1], vec![0; 4096], vec![0xff; 50], (0..=255).collect()] {
        let disk = disk.copy();
        let mut bytes = disk.bytes(&journal());
        bytes.extend_from_slice(&remains);
        disk.write(&journal(), bytes);
        let (store, recovery) = open(&disk).unwrap();
        assert_eq!(recovery.torn.unwrap().bytes, remains.len() as u64);
        assert_eq!(live(&store), expected);
    }
}

#[tokio::test]
async fn a_journal_that_ends_before_the_acknowledged_end_is_damaged() {
    let (disk, _) = written().await;
    let bytes = disk.bytes(&journal());
    for end in 0..bytes.len() {
        let disk = disk.copy();
        disk.write(&journal(), bytes[..end].to_vec());
        let OpenError::Damaged(damage) = open(&disk).unwrap_err() else { panic!("at {end}") };
        assert_eq!(damage.acknowledged, Some(6));
        assert!(damage.sound < Some(6));
        let repaired = repair_and_check(&disk).await;
        let last = repaired.lost.last().unwrap();
        assert_eq!(last.revisions.map(|range| range.1), Some(6), "at {end}: {last:?}");
    }
}

#[tokio::test]
async fn no_flipped_bit_loses_anything_silently() {
    let (disk, expected) = written().await;
    for name in [journal(), ACKNOWLEDGED.to_owned()] {
        let bytes = disk.bytes(&name);
        for bit in 0..8 * bytes.len() {
            let disk = disk.copy();
            let mut flipped = bytes.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            disk.write(&name, flipped);
            match open(&disk) {
                Ok((store, recovery)) => {
                    assert_eq!(name, ACKNOWLEDGED, "bit {bit}");
                    assert_eq!(recovery.notes.len(), 1);
                    assert_eq!(live(&store), expected);
                }
                Err(OpenError::Damaged(damage)) => {
                    assert_eq!(name, journal());
                    assert!(damage.offset <= (bit / 8) as u64);
                    // A repair per bit would be slow and no stronger than one per byte.
                    if bit % 8 == bit / 8 % 8 {
                        let repaired = repair_and_check(&disk).await;
                        assert!(repaired.lost.iter().all(|loss| loss.offset <= (bit / 8) as u64));
                    }
                }
                Err(other) => panic!("bit {bit} of {name}: {other}"),
            }
        }
    }
}

#[tokio::test]
async fn no_flipped_bit_in_a_snapshot_goes_unnoticed() {
    let (disk, _) = written().await;
    let store = open_with(&disk, 0).unwrap().0;
    put(&store, "d", "6").await.unwrap();
    let name = names::snapshot(7);
    wait_for_file(&disk, &name);
    store.close().await.unwrap();
    let bytes = disk.bytes(&name);
    for bit in 0..8 * bytes.len() {
        let disk = disk.copy();
        let mut flipped = bytes.clone();
        flipped[bit / 8] ^= 1 << (bit % 8);
        disk.write(&name, flipped);
        let Err(OpenError::Damaged(damage)) = open(&disk) else { panic!("bit {bit}") };
        assert_eq!(damage.sound, None);
        if bit % 8 == bit / 8 % 8 {
            let repaired = repair_and_check(&disk).await;
            assert_eq!(repaired.revision, 8);
        }
    }
}

#[tokio::test]
async fn damage_before_a_valid_frame_is_reported_without_the_acknowledgement_file() {
    let (disk, _) = written().await;
    let stale = MemDisk::default();
    open(&stale).unwrap().0.close().await.unwrap();
    // After a power cut the acknowledgement file may be as old as the start.
    disk.write(ACKNOWLEDGED, stale.bytes(ACKNOWLEDGED));
    let mut bytes = disk.bytes(&journal());
    bytes[100] ^= 1;
    disk.write(&journal(), bytes);
    let OpenError::Damaged(damage) = open(&disk).unwrap_err() else { panic!() };
    assert_eq!((damage.offset, damage.sound), (32, Some(1)));
}

#[tokio::test]
async fn a_power_cut_loses_nothing_that_was_acknowledged() {
    let (disk, expected) = written().await;
    let (store, recovery) = open(&disk.unplugged()).unwrap();
    assert_eq!(live(&store), expected);
    assert_eq!(recovery.torn, None);
}

#[tokio::test]
async fn an_unacknowledged_batch_is_synced_before_it_becomes_visible() {
    let (disk, _) = written().await;
    let before = disk.bytes(ACKNOWLEDGED);
    let store = open(&disk).unwrap().0;
    put(&store, "d", "6").await.unwrap();
    let expected = live(&store);
    store.close().await.unwrap();
    // As if the process was killed between the write and the sync of the batch.
    disk.write(ACKNOWLEDGED, before);
    disk.forget_sync(&journal());
    let store = open(&disk).unwrap().0;
    assert_eq!(live(&store), expected);
    assert_eq!(live(&open(&disk.unplugged()).unwrap().0), expected);
}

#[tokio::test]
async fn a_missing_journal_is_reported() {
    let (disk, _) = written().await;
    let only = MemDisk::default();
    only.write(ACKNOWLEDGED, disk.bytes(ACKNOWLEDGED));
    let error = open(&only).unwrap_err();
    assert_eq!(
        error.to_string(),
        "the data folder is damaged: /data/journal-0000000000000001 at byte 0: the newest journal \
         is missing; changes up to revision 1 read well; changes up to revision 6 were \
         acknowledged; restore the folder from a copy, or repair it, which keeps what reads well"
    );
}

#[tokio::test]
async fn a_repair_keeps_valid_data_and_names_lost_objects() {
    let (disk, _) = written().await;
    let mut bytes = disk.bytes(&journal());
    let at = bytes.windows(3).rposition(|window| window == br#""3""#).unwrap();
    bytes[at + 1] = b'4';
    disk.write(&journal(), bytes);
    let repaired = repair_and_check(&disk).await;
    let [lost] = &repaired.lost[..] else { panic!("{:?}", repaired.lost) };
    assert_eq!(lost.revisions, Some((4, 4)));
    assert_eq!(lost.objects, [Key::new("things", "ns", "a")]);
    assert_eq!(repaired.objects, 2);
    assert_eq!(disk.kept_names(), ["damaged-0000000000000007/journal-0000000000000001"]);
}
