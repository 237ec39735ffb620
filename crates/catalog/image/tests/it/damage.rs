//! Damaged input: an error or a result, never a panic, and no change outside.

use crate::tarball::{archive, file, folder, gzip, hardlink, long_name, pax, symlink, zstd};
use mainstay_image::{
    credentials::Keyring,
    layout,
    manifest::ImageDocument,
    mirror,
    policy::SignaturePolicy,
    reference::ImageReference,
    store::ImageStore,
    unpack::{Limits, Options, Unpacker},
};
use std::fs;

/// Pseudo-random numbers with a fixed seed.
struct RandomNumbers(u64);

impl RandomNumbers {
    fn next(&mut self, below: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % below.max(1) as u64).unwrap()
    }

    /// Bytes with some places changed, truncated or repeated.
    fn damaged(&mut self, bytes: &[u8]) -> Vec<u8> {
        let mut bytes = bytes.to_vec();
        for _ in 0..=self.next(4) {
            let at = self.next(bytes.len());
            match self.next(6) {
                0 => bytes.truncate(at),
                1 => bytes.insert(at.min(bytes.len()), u8::try_from(self.next(256)).unwrap()),
                2 => {
                    let end = (at + self.next(600)).min(bytes.len());
                    let piece = bytes[at.min(end)..end].to_vec();
                    bytes.splice(at.min(end)..at.min(end), piece);
                }
                _ => {
                    if let Some(byte) = bytes.get_mut(at) {
                        *byte = b"\0\x01/.{}\"7\xff:@*"[self.next(12)];
                    }
                }
            }
        }
        bytes
    }
}

/// Repairs the checksums of headers, so that the damage gets past that check.
fn fix_checksums(mut bytes: Vec<u8>) -> Vec<u8> {
    for block in bytes.chunks_exact_mut(512) {
        if &block[257..262] == b"ustar" {
            block[148..156].fill(b' ');
            let sum: u32 = block.iter().map(|byte| u32::from(*byte)).sum();
            block[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
        }
    }
    bytes
}

#[test]
fn damaged_layers_write_only_into_their_folder() {
    let good = archive(&[
        folder("d"),
        file("d/a", "some content"),
        symlink("d/l", "../d/a"),
        hardlink("h", "d/a"),
        pax("path", "d/other"),
        file("x", "more"),
        long_name("d/e/f/g"),
        file("y", ""),
        file("d/.wh.a", ""),
        file("d/.wh..wh..opq", ""),
    ]);
    let limits = Limits { bytes: 1 << 20, entries: 1000, ..Limits::default() };
    let options = Options { limits, ..Options::default() };
    let outside = tempfile::tempdir().unwrap();
    let root = outside.path().join("a/b");
    fs::create_dir_all(&root).unwrap();
    let mut numbers = RandomNumbers(20_261_122);
    let mut finished = 0;
    for round in 0..600 {
        let damaged = fix_checksums(numbers.damaged(&good));
        let layer = match round % 10 {
            0 => numbers.damaged(&gzip(&damaged)),
            1 => numbers.damaged(&zstd(&damaged)),
            2 => gzip(&damaged),
            3 => zstd(&damaged),
            _ => damaged,
        };
        let target = root.join("target");
        let unpacked = Unpacker::begin(&target, options.clone()).and_then(|mut unpacker| {
            unpacker.layer(good.as_slice(), None)?;
            unpacker.layer(layer.as_slice(), None)?;
            unpacker.finish()
        });
        if unpacked.is_ok() {
            finished += 1;
            fs::remove_dir_all(&target).unwrap();
        }
        assert_eq!(fs::read_dir(&root).unwrap().count(), 0, "round {round}");
        assert_eq!(fs::read_dir(outside.path()).unwrap().count(), 1, "round {round}");
    }
    assert!((50..580).contains(&finished), "{finished} of 600 were still good");
}

#[test]
fn damaged_texts_do_not_panic() {
    let hex = "a".repeat(64);
    let manifest = format!(
        r#"{{"schemaVersion":2,"config":{{"digest":"sha256:{hex}","size":1}},"layers":[]}}"#
    );
    let rules = "[[registry]]\nprefix = \"*.a.test\"\nlocation = \"b.test/c\"\n[[registry.mirror]]\nlocation = \"d.test:5000\"";
    let policy = r#"{"default":[{"type":"reject"}],"transports":{"docker":{"a.test":[{"type":"sigstoreSigned","keyData":"YQ=="}]}}}"#;
    let auths = r#"{"auths":{"a.test/b":{"auth":"YTpi"}},"credHelpers":{"c.test":"x"}}"#;
    let reference = format!("a.test:5000/b/c__d:tag@sha256:{hex}");
    let mut numbers = RandomNumbers(7);
    for _ in 0..3000 {
        let _ = ImageDocument::read(&numbers.damaged(manifest.as_bytes()), None);
        let _ = SignaturePolicy::read(&numbers.damaged(policy.as_bytes()), |_| Ok(Vec::new()));
        let _ = Keyring::new().add_file("place", &numbers.damaged(auths.as_bytes()));
        if let Ok(text) = String::from_utf8(numbers.damaged(rules.as_bytes())) {
            let _ = mirror::from_toml(&text);
        }
        let damaged = numbers.damaged(reference.as_bytes());
        if let Ok(text) = String::from_utf8(damaged)
            && let Ok(read) = text.parse::<ImageReference>()
        {
            assert_eq!(read.to_string().parse::<ImageReference>(), Ok(read.clone()), "{text}");
            let _ = read.familiar().parse::<ImageReference>().map(|again| assert_eq!(again, read));
        }
    }
}

#[test]
fn damaged_archives_leave_no_partial_files() {
    let folder = tempfile::tempdir().unwrap();
    let store = ImageStore::open(folder.path().join("store")).unwrap();
    let image = crate::layouts::sample(&store, "text");
    let mut oci = Vec::new();
    layout::write_archive(&store, &[("v1".to_owned(), image.clone())], &mut oci).unwrap();
    let mut docker = Vec::new();
    layout::write_docker_archive(&store, &[(Vec::new(), image)], &mut docker).unwrap();
    let (path, mut numbers) = (folder.path().join("archive.tar"), RandomNumbers(3));
    let other = ImageStore::open(folder.path().join("other")).unwrap();
    for round in 0..300 {
        let good = if round % 2 == 0 { &oci } else { &docker };
        fs::write(&path, fix_checksums(numbers.damaged(good))).unwrap();
        let _ = layout::read(&other, &path);
        assert_eq!(fs::read_dir(other.root().join("partial")).unwrap().count(), 0, "{round}");
    }
    for name in fs::read_dir(other.root().join("blobs/sha256")).unwrap() {
        let name = name.unwrap().file_name().into_string().unwrap();
        other.verify(&format!("sha256:{name}").parse().unwrap()).unwrap();
    }
}
