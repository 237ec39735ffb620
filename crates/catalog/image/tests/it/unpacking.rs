//! Unpacking of honest and hostile layers.

use crate::tarball::{
    Entry, archive, block, file, folder, gzip, hardlink, long_name, open_ended, pax, special,
    symlink, zstd,
};
use mainstay_image::{
    digest::Digest,
    unpack::{Limits, Options, UnpackError, Unpacker},
};
use std::{fs, os::unix::fs::PermissionsExt as _, path::Path};

/// All entries below a folder: names, contents and links.
fn listing(root: &Path) -> Vec<String> {
    fn walk(root: &Path, folder: &Path, lines: &mut Vec<String>) {
        let mut entries: Vec<_> = fs::read_dir(folder).unwrap().map(Result::unwrap).collect();
        entries.sort_by_key(fs::DirEntry::file_name);
        for entry in entries {
            let (path, kind) = (entry.path(), entry.file_type().unwrap());
            let name = path.strip_prefix(root).unwrap().display().to_string();
            if kind.is_dir() {
                lines.push(format!("{name}/"));
                walk(root, &path, lines);
            } else if kind.is_symlink() {
                lines.push(format!("{name} -> {}", fs::read_link(&path).unwrap().display()));
            } else {
                lines.push(format!("{name}: {}", fs::read_to_string(&path).unwrap()));
            }
        }
    }
    let mut lines = Vec::new();
    walk(root, root, &mut lines);
    lines
}

/// Small limits, so that cases stay small.
fn limits() -> Limits {
    Limits {
        bytes: 1 << 20,
        ratio: 20,
        ratio_from: 1 << 16,
        entries: 40,
        names: 2000,
        depth: 8,
        component: 64,
        path: 300,
    }
}

fn unpack(target: &Path, layers: &[Vec<u8>]) -> Result<(), UnpackError> {
    let options = Options { limits: limits(), ..Options::default() };
    let mut unpacker = Unpacker::begin(target, options)?;
    for layer in layers {
        unpacker.layer(layer.as_slice(), None)?;
    }
    unpacker.finish().map(drop)
}

#[test]
fn hostile_layers_are_refused_without_changes_outside() {
    let many: Vec<Entry> = (0..60).map(|number| file(&format!("f{number}"), "")).collect();
    let long_names: Vec<Entry> = (0..30)
        .flat_map(|n| {
            [long_name(&format!("{n}/{}", vec!["x".repeat(60); 3].join("/"))), file("x", "")]
        })
        .collect();
    let zeros = "\0".repeat(600_000);
    let mut lying = archive(&[file("a", "content")]);
    lying[..512].copy_from_slice(&block(&file("a", ""), 0o77_777_777_777));
    let mut damaged = archive(&[file("a", "content")]);
    damaged[0] = b'b';
    let mut middle = archive(&[file("a", "content")]);
    middle.truncate(1024);
    middle.resize(1536, 0);
    middle.extend(archive(&[file("b", "")]));
    let packed = gzip(&archive(&[file("a", "content")]));
    let mut broken = packed.clone();
    let end = broken.len();
    broken[end - 8] ^= 1;
    let deep = vec!["d"; 20].join("/");
    let cases: Vec<(&str, Vec<Vec<u8>>, &str)> = vec![
        ("up", vec![archive(&[file("../evil", "x")])], "leads out of the folder"),
        ("up inside", vec![archive(&[file("a/../../evil", "x")])], "leads out"),
        ("up that comes back", vec![archive(&[file("a/../b", "x")])], "leads out"),
        ("absolute", vec![archive(&[file("/evil", "x")])], "has an absolute name"),
        (
            "absolute by pax",
            vec![archive(&[pax("path", "/evil"), file("a", "x")])],
            "absolute name",
        ),
        ("up by pax", vec![archive(&[pax("path", "../evil"), file("a", "x")])], "leads out"),
        ("up by a long name", vec![archive(&[long_name("../evil"), file("a", "x")])], "leads out"),
        ("zero in a name", vec![archive(&[pax("path", "a\0b"), file("a", "x")])], "zero byte"),
        ("no name", vec![archive(&[file("", "x")])], "has no name"),
        ("the root as a file", vec![archive(&[file("./.", "x")])], "has no name"),
        ("absolute link", vec![archive(&[symlink("l", "/etc/passwd")])], "leads out"),
        ("link up", vec![archive(&[symlink("l", "../x")])], "which leads out"),
        (
            "link up from a folder",
            vec![archive(&[symlink("a/b/l", "../../../x")])],
            "which leads out",
        ),
        ("link by pax", vec![archive(&[pax("linkpath", "/etc"), symlink("l", "a")])], "leads out"),
        ("link to nothing", vec![archive(&[symlink("l", "")])], "leads out"),
        (
            "links that add up",
            vec![archive(&[symlink("a/b/c/s", "../../.."), symlink("a/b/c/l", "s/../../x")])],
            "leads up again after it led down",
        ),
        (
            "through a link",
            vec![archive(&[folder("d"), symlink("l", "d"), file("l/evil", "x")])],
            "passes through the link \"l\"",
        ),
        (
            "through a link of a lower layer",
            vec![archive(&[folder("d"), symlink("l", "d")]), archive(&[file("l/evil", "x")])],
            "passes through the link",
        ),
        (
            "a folder through a link",
            vec![archive(&[symlink("l", "d"), folder("l/e")])],
            "passes through the link",
        ),
        (
            "a whiteout through a link",
            vec![archive(&[file("d/f", "x"), symlink("l", "d")]), archive(&[file("l/.wh.f", "")])],
            "passes through the link",
        ),
        (
            "a hard link through a link",
            vec![archive(&[file("d/f", "x"), symlink("l", "d"), hardlink("h", "l/f")])],
            "passes through the link",
        ),
        ("hard link out", vec![archive(&[hardlink("h", "../../etc/passwd")])], "leads out"),
        ("absolute hard link", vec![archive(&[hardlink("h", "/etc/passwd")])], "leads out"),
        (
            "hard link to nothing",
            vec![archive(&[hardlink("h", "later"), file("later", "")])],
            "which is not a file",
        ),
        (
            "hard link to a folder",
            vec![archive(&[folder("d"), hardlink("h", "d")])],
            "which is not a file",
        ),
        (
            "hard link to a link",
            vec![archive(&[symlink("l", "x"), hardlink("h", "l")])],
            "which is not a file",
        ),
        ("in a file", vec![archive(&[file("f", "x"), file("f/g", "y")])], "which is not a folder"),
        ("character device", vec![archive(&[special("null", b'3')])], "a character device"),
        ("block device", vec![archive(&[special("sda", b'4')])], "a block device"),
        ("named pipe", vec![archive(&[special("pipe", b'6')])], "a named pipe"),
        ("unknown type", vec![archive(&[special("what", b'Z')])], "an unknown type"),
        ("sparse file", vec![archive(&[special("s", b'S')])], "a sparse file"),
        (
            "sparse file by pax",
            vec![archive(&[pax("GNU.sparse.size", "99999999"), file("s", "x")])],
            "a sparse file",
        ),
        ("twice", vec![archive(&[file("a", "1"), file("a", "2")])], "is in the layer twice"),
        ("twice, spelled otherwise", vec![archive(&[file("a", "1"), file("./a", "2")])], "twice"),
        ("a folder over a file", vec![archive(&[file("a", "1"), folder("a")])], "twice"),
        ("a file over a folder", vec![archive(&[folder("a"), file("a", "1")])], "twice"),
        ("whiteout of nothing", vec![archive(&[file(".wh.", "")])], "whiteout of nothing"),
        (
            "whiteout of the folder above",
            vec![archive(&[file("a/.wh...", "")])],
            "whiteout of nothing",
        ),
        ("long part", vec![archive(&[file(&"n".repeat(80), "")])], "longer than 64 bytes"),
        (
            "long name",
            vec![archive(&[long_name(&"a/".repeat(200)), file("a", "")])],
            "longer than 300",
        ),
        ("deep", vec![archive(&[file(&deep, "")])], "deeper than 8 folders"),
        ("many entries", vec![archive(&many)], "more than 40 entries"),
        ("names", vec![archive(&long_names)], "names have more than 2000 bytes"),
        (
            "bytes",
            vec![archive(&[file("a", &zeros), file("b", &zeros)])],
            "more than 1048576 bytes",
        ),
        (
            "bytes of several layers",
            vec![archive(&[file("a", &zeros)]), archive(&[file("b", &zeros)])],
            "more than 1048576 bytes",
        ),
        (
            "ratio of gzip",
            vec![gzip(&archive(&[file("a", &zeros)]))],
            "more than 20 times its size",
        ),
        (
            "ratio of zstd",
            vec![zstd(&archive(&[file("a", &zeros)]))],
            "more than 20 times its size",
        ),
        (
            "an endless extension",
            vec![archive(&[long_name(&"n".repeat(2 << 20)), file("a", "")])],
            "bytes",
        ),
        (
            "cut within content",
            vec![open_ended(&[file("a", "content")])[..515].to_vec()],
            "ends within an entry",
        ),
        (
            "cut within a header",
            vec![archive(&[file("a", "")])[..100].to_vec()],
            "ends within an entry",
        ),
        ("cut gzip", vec![packed[..packed.len() - 12].to_vec()], "ends within an entry"),
        ("wrong checksum of gzip", vec![broken], "corrupt"),
        ("cut zstd", vec![zstd(&archive(&[file("a", "b")]))[..20].to_vec()], "layer 1"),
        ("a size that is a lie", vec![lying], "ends within an entry"),
        ("damaged header", vec![damaged], "its checksum"),
        ("an empty block in the middle", vec![middle], "an empty block in the middle"),
        (
            "damaged pax",
            vec![archive(&[Entry { kind: b'x', ..file("p", "999 a=b\n") }])],
            "its PAX records",
        ),
        ("a negative size", vec![with_size(&[0xff; 12])], "layer 1"),
        (
            "a size beyond all",
            vec![with_size(b"\x80\x7f\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff")],
            "layer 1",
        ),
        ("a size that is no number", vec![with_size(b"12x45678901\0")], "layer 1"),
        (
            "a size by pax that is a lie",
            vec![archive(&[pax("size", "99999999999"), file("a", "x")])],
            "layer 1",
        ),
        (
            "a name for all by pax",
            vec![archive(&[Entry { kind: b'g', ..pax("path", "/evil") }, file("/a", "x")])],
            "absolute name",
        ),
        (
            "a window of terabytes",
            // The smallest frame with a window descriptor, which names the largest window.
            vec![b"\x28\xb5\x2f\xfd\x00\xff\x01\x00\x00".to_vec()],
            "layer 1",
        ),
        (
            "a frame to skip that is not there",
            vec![b"\x50\x2a\x4d\x18\xff\xff\xff\xffabc".to_vec()],
            "layer 1",
        ),
        (
            "a name in gzip without an end",
            vec![[&b"\x1f\x8b\x08\x08\0\0\0\0\0\x03"[..], &vec![b'n'; 1 << 20]].concat()],
            "layer 1",
        ),
        (
            "gzip in pieces that together are a bomb",
            vec![
                [gzip(&archive(&[file("a", &zeros)])), gzip(&zeros.as_bytes().repeat(4))].concat(),
            ],
            "more than",
        ),
        ("xz", vec![b"\xfd7zXZ\0 and more".to_vec()], "compressed with xz"),
        ("no archive", vec![vec![b'x'; 2000]], "damaged header"),
    ];
    assert!(cases.len() >= 60, "{}", cases.len());
    for (name, layers, want) in cases {
        let outside = tempfile::tempdir().unwrap();
        let root = outside.path().join("a/b/c/d");
        fs::create_dir_all(&root).unwrap();
        fs::write(outside.path().join("witness"), "untouched").unwrap();
        let error = unpack(&root.join("target"), &layers).expect_err(name).to_string();
        assert!(error.contains(want), "{name}: {error}");
        assert!(error.len() < 600, "{name}: {error}");
        let left = ["a/", "a/b/", "a/b/c/", "a/b/c/d/", "witness: untouched"];
        assert_eq!(listing(outside.path()), left, "{name}");
    }
}

/// An archive whose entry has these bytes as its size.
fn with_size(size: &[u8; 12]) -> Vec<u8> {
    let mut bytes = archive(&[file("a", "content")]);
    bytes[124..136].copy_from_slice(size);
    bytes[148..156].fill(b' ');
    let sum: u32 = bytes[..512].iter().map(|byte| u32::from(*byte)).sum();
    bytes[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    bytes
}

#[test]
fn upper_layers_override_lower_ones() {
    type Case<'c> = (&'c str, Vec<Vec<Entry>>, &'c [&'c str]);
    let cases: &[Case<'_>] = &[
        (
            "folders above come by themselves",
            vec![vec![file("./a/b/c", "1"), folder("./a/"), folder("./")]],
            &["a/", "a/b/", "a/b/c: 1"],
        ),
        ("a file is replaced", vec![vec![file("a", "1")], vec![file("a", "2")]], &["a: 2"]),
        (
            "a hard link is broken, not written through",
            vec![vec![file("a", "1"), hardlink("b", "a")], vec![file("b", "2")]],
            &["a: 1", "b: 2"],
        ),
        (
            "a link is replaced, not followed",
            vec![vec![file("a", "1"), symlink("l", "a")], vec![file("l", "2")]],
            &["a: 1", "l: 2"],
        ),
        (
            "a folder replaces a link",
            vec![vec![file("d/f", "1"), symlink("l", "d")], vec![folder("l"), file("l/f", "2")]],
            &["d/", "d/f: 1", "l/", "l/f: 2"],
        ),
        (
            "a file replaces a folder",
            vec![vec![file("d/e/f", "1")], vec![file("d", "2")]],
            &["d: 2"],
        ),
        (
            "a whiteout removes",
            vec![vec![file("d/e/f", "1"), file("d/g", "2")], vec![file("d/.wh.e", "")]],
            &["d/", "d/g: 2"],
        ),
        (
            "a whiteout leaves what its own layer has, whatever comes first",
            vec![
                vec![file("d/old", "1")],
                vec![file("d/new", "2"), file(".wh.d", ""), file("d/later", "3")],
            ],
            &["d/", "d/later: 3", "d/new: 2"],
        ),
        (
            "an opaque folder hides what is below, whatever comes first",
            vec![
                vec![file("d/old", "1"), file("d/e/old", "1"), file("x", "1")],
                vec![file("d/new", "2"), file("d/.wh..wh..opq", "")],
            ],
            &["d/", "d/new: 2", "x: 1"],
        ),
        (
            "the root may be opaque",
            vec![
                vec![file("a", "1"), file("d/b", "1")],
                vec![file(".wh..wh..opq", ""), file("c", "2")],
            ],
            &["c: 2"],
        ),
        (
            "a whiteout of what is not there is none",
            vec![vec![file("a", "1"), file(".wh.b", ""), file(".wh..wh.plnk", "")]],
            &["a: 1"],
        ),
        (
            "links that stay inside",
            vec![vec![
                file("a/f", "1"),
                symlink("a/up", "../b"),
                symlink("l", "a/up"),
                symlink("here", "./a/f"),
            ]],
            &["a/", "a/f: 1", "a/up -> ../b", "here -> ./a/f", "l -> a/up"],
        ),
    ];
    for (name, layers, want) in cases {
        for pack in [<[u8]>::to_vec, gzip, zstd] {
            let folder = tempfile::tempdir().unwrap();
            let target = folder.path().join("target");
            let layers: Vec<_> = layers.iter().map(|layer| pack(&archive(layer))).collect();
            unpack(&target, &layers).expect(name);
            assert_eq!(listing(&target), *want, "{name}");
            assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "{name}: only the target");
        }
    }
}

#[test]
fn layer_must_have_its_diff_id() {
    let folder = tempfile::tempdir().unwrap();
    let plain = archive(&[file("a", "1")]);
    let target = folder.path().join("target");
    let mut unpacker = Unpacker::begin(&target, Options::default()).unwrap();
    unpacker.layer(gzip(&plain).as_slice(), Some(&Digest::of(&plain))).unwrap();
    let error = unpacker.layer(gzip(&plain).as_slice(), Some(&Digest::of(b"other"))).unwrap_err();
    assert!(matches!(error, UnpackError::DiffId { layer: 2, .. }), "{error}");
    drop(unpacker);
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[test]
fn existing_target_is_not_changed() {
    let folder = tempfile::tempdir().unwrap();
    let target = folder.path().join("target");
    fs::create_dir(&target).unwrap();
    assert!(matches!(unpack(&target, &[]), Err(UnpackError::Exists(_))));
    fs::remove_dir(&target).unwrap();
    let unpacker = Unpacker::begin(&target, Options::default()).unwrap();
    // Another process creates the target first.
    fs::create_dir(&target).unwrap();
    assert!(matches!(unpacker.finish(), Err(UnpackError::Exists(_))));
    assert_eq!(listing(folder.path()), ["target/"]);
}

#[test]
fn only_requested_folders_are_unpacked() {
    let folder = tempfile::tempdir().unwrap();
    let target = folder.path().join("target");
    let only = vec!["/configs/deep/".to_owned()];
    let mut unpacker = Unpacker::begin(&target, Options { only, ..Options::default() }).unwrap();
    let first = archive(&[
        special("dev/null", b'3'),
        symlink("bin/sh", "/bin/busybox"),
        file("configs/deep/a", "1"),
        file("configs/other", "1"),
        file("configs/deeper", "1"),
    ]);
    unpacker.layer(first.as_slice(), None).unwrap();
    unpacker
        .layer(archive(&[file(".wh.configs", ""), file("configs/deep/b", "2")]).as_slice(), None)
        .unwrap();
    unpacker.finish().unwrap();
    assert_eq!(listing(&target), ["configs/", "configs/deep/", "configs/deep/b: 2"]);
}

#[test]
fn modes_are_preserved_without_special_bits() {
    let folder = tempfile::tempdir().unwrap();
    let target = folder.path().join("target");
    let with = |entry: Entry, mode| Entry { mode, ..entry };
    let entries = [
        with(tarball_folder("d"), 0o1555),
        with(file("d/run", "x"), 0o4755),
        with(file("d/secret", "x"), 0o000),
    ];
    unpack(&target, &[archive(&entries)]).unwrap();
    let mode = |name: &str| fs::metadata(target.join(name)).unwrap().permissions().mode() & 0o7777;
    assert_eq!((mode("d"), mode("d/run"), mode("d/secret")), (0o755, 0o755, 0o600));
}

fn tarball_folder(name: &str) -> Entry {
    folder(name)
}

#[test]
fn sweep_removes_only_folders_of_killed_processes() {
    let folder = tempfile::tempdir().unwrap();
    let target = folder.path().join("target");
    let mut unpacker = Unpacker::begin(&target, Options::default()).unwrap();
    unpacker.layer(archive(&[file("a/b", "1")]).as_slice(), None).unwrap();
    // A killed process does not clean up.
    std::mem::forget(unpacker);
    assert!(!target.exists());
    for other in ["target.unpacking", ".hidden"] {
        fs::create_dir(folder.path().join(other)).unwrap();
    }
    unpack(&target, &[archive(&[file("a", "2")])]).unwrap();
    assert_eq!(mainstay_image::unpack::sweep(folder.path()).unwrap(), 1);
    let left = [".hidden/", "target/", "target/a: 2", "target.unpacking/"];
    assert_eq!(listing(folder.path()), left);
}
