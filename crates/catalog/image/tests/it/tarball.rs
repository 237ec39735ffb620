//! Tar archives that no honest program writes.

use std::io::Write as _;

/// An entry of an archive, byte by byte.
#[derive(Clone)]
pub(crate) struct Entry {
    pub(crate) name: Vec<u8>,
    pub(crate) kind: u8,
    pub(crate) content: Vec<u8>,
    pub(crate) target: Vec<u8>,
    pub(crate) mode: u32,
}

pub(crate) fn file(name: &str, content: &str) -> Entry {
    Entry {
        name: name.into(),
        kind: b'0',
        content: content.into(),
        target: Vec::new(),
        mode: 0o644,
    }
}

pub(crate) fn folder(name: &str) -> Entry {
    Entry { kind: b'5', mode: 0o755, ..file(name, "") }
}

pub(crate) fn symlink(name: &str, target: &str) -> Entry {
    Entry { kind: b'2', target: target.into(), ..file(name, "") }
}

pub(crate) fn hardlink(name: &str, target: &str) -> Entry {
    Entry { kind: b'1', ..symlink(name, target) }
}

pub(crate) fn special(name: &str, kind: u8) -> Entry {
    Entry { kind, ..file(name, "") }
}

/// A PAX header for the next entry.
pub(crate) fn pax(key: &str, value: &str) -> Entry {
    let rest = format!(" {key}={value}\n");
    let mut length = rest.len() + 1;
    while length != rest.len() + length.to_string().len() {
        length += 1;
    }
    Entry { kind: b'x', ..file("pax", &format!("{length}{rest}")) }
}

/// The name of the next entry as a long name of GNU tar.
pub(crate) fn long_name(name: &str) -> Entry {
    Entry { kind: b'L', ..file("././@LongLink", name) }
}

pub(crate) fn block(entry: &Entry, size: u64) -> [u8; 512] {
    let mut block = [0; 512];
    let mut put = |at: usize, bytes: &[u8]| block[at..at + bytes.len()].copy_from_slice(bytes);
    put(0, &entry.name[..entry.name.len().min(100)]);
    put(100, format!("{:07o}", entry.mode).as_bytes());
    put(108, b"0000000");
    put(116, b"0000000");
    put(124, format!("{size:011o}").as_bytes());
    put(136, b"00000000000");
    put(148, b"        ");
    put(156, &[entry.kind]);
    put(157, &entry.target[..entry.target.len().min(100)]);
    put(257, b"ustar\x0000");
    let sum: u32 = block.iter().map(|byte| u32::from(*byte)).sum();
    block[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    block
}

/// The entries without the end of an archive.
pub(crate) fn open_ended(entries: &[Entry]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for entry in entries {
        bytes.extend_from_slice(&block(entry, entry.content.len() as u64));
        bytes.extend_from_slice(&entry.content);
        bytes.resize(bytes.len().next_multiple_of(512), 0);
    }
    bytes
}

pub(crate) fn archive(entries: &[Entry]) -> Vec<u8> {
    let mut bytes = open_ended(entries);
    bytes.resize(bytes.len() + 1024, 0);
    bytes
}

pub(crate) fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

pub(crate) fn zstd(bytes: &[u8]) -> Vec<u8> {
    ruzstd::encoding::compress_to_vec(bytes, ruzstd::encoding::CompressionLevel::Fastest)
}
