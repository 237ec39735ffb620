//! The compressed size of a bundle: characters of each file, compressed with gzip, in base64.
//!
//! Compression costs more than all other checks of a bundle, and only bundles near the limit get a
//! finding. So each file first counts with an upper bound: its length, then an estimate of a simple
//! compression. If the bounds exceed the limit, the files are compressed, the longest first, until
//! the remaining bounds stay below the limit.

use crate::reader::length;
use flate2::{Compression, write::GzEncoder};
use std::{io::Write, sync::Arc};

/// How many bytes are stored for a later compression. A bundle with more bytes exceeds the limit
/// anyway.
const MAX_STORED: u64 = 64 << 20;

/// Files whose compressed size is computed on demand.
#[derive(Debug, Default)]
pub(crate) struct CompressedSize {
    files: Vec<Arc<Vec<u8>>>,
    stored: u64,
    /// Characters of files that are not stored.
    compressed: u64,
}

impl CompressedSize {
    /// Adds a file.
    pub(crate) fn add(&mut self, file: &Arc<Vec<u8>>) {
        let stored = self.stored.saturating_add(length(file));
        if stored > MAX_STORED {
            self.compressed = self.compressed.saturating_add(compressed_length(file));
        } else {
            self.stored = stored;
            self.files.push(file.clone());
        }
    }

    /// Whether no file was added.
    pub(crate) fn is_empty(&self) -> bool {
        self.files.is_empty() && self.compressed == 0
    }

    /// The exact size of all files.
    pub(crate) fn exact(&self) -> u64 {
        let each = self.files.iter().map(|file| compressed_length(file));
        each.sum::<u64>().saturating_add(self.compressed)
    }

    /// The exact size of all files, if it exceeds the limit.
    pub(crate) fn exceeding(&self, limit: u64) -> Option<u64> {
        let mut longest: Vec<(&[u8], u64)> = self
            .files
            .iter()
            .map(|file| (file.as_slice(), characters(bound(file.len()))))
            .collect();
        longest.sort_by_key(|(file, _)| std::cmp::Reverse(file.len()));
        let mut all = longest.iter().map(|(_, counted)| counted).sum::<u64>() + self.compressed;
        for exact in [false, true] {
            for (file, counted) in &mut longest {
                if all <= limit {
                    return None;
                }
                let size = if exact {
                    compressed_length(file)
                } else {
                    characters(estimate(file)).min(*counted)
                };
                all = all - *counted + size;
                *counted = size;
            }
        }
        Some(all).filter(|all| *all > limit)
    }
}

/// An upper bound for gzip's output: incompressible input is stored in blocks with short headers.
const fn bound(length: usize) -> usize {
    length + 5 * (length / (31 << 10) + 1) + 128
}

/// An upper bound for gzip's output by a simple compression. A line that also occurs in the 32 KiB
/// before it is a back-reference; all other bytes are literals with Huffman codes.
///
/// Literals have Shannon's code lengths, at most 15 bits; one per cent is added for longer ones. A
/// back-reference costs one code and 28 bits for length and distance.
fn estimate(text: &[u8]) -> usize {
    const SLOTS: usize = 1 << 11;
    const MAX_DISTANCE: usize = 32 << 10;
    /// The longest back-reference in bytes.
    const MAX_LENGTH: usize = 258;
    let mut lines = vec![usize::MAX; SLOTS];
    let mut literals = [0_u64; 256];
    let mut references = 1_u64;
    let mut at = 0;
    while at < text.len() {
        let rest = &text[at..];
        let length = memchr::memchr(b'\n', rest).map_or(rest.len(), |end| end + 1);
        let line = &rest[..length];
        let slot = &mut lines[hash(line) % SLOTS];
        let before = std::mem::replace(slot, at);
        let repeats = length > 2
            && before.checked_add(MAX_DISTANCE).is_some_and(|end| end >= at)
            && text.get(before..before + length) == Some(line);
        if repeats {
            references += u64::try_from(length.div_ceil(MAX_LENGTH)).unwrap_or(u64::MAX);
        } else {
            for &byte in line {
                literals[usize::from(byte)] += 1;
            }
        }
        at += length;
    }
    let total = literals.iter().sum::<u64>() + references + 1;
    // The shortest code that leaves room for the codes of all other literals.
    let bits = |count: u64| {
        let times = (total * 101).div_ceil(count * 100);
        u64::from(times.next_power_of_two().trailing_zeros()).min(15)
    };
    let literal_bits =
        literals.iter().filter(|count| **count > 0).map(|&count| count * bits(count));
    let all = literal_bits.sum::<u64>() + references * (bits(references) + 28);
    // 600 bytes hold the code lengths, header and trailer.
    usize::try_from(all / 8).unwrap_or(usize::MAX).saturating_add(600)
}

/// A hash of a line.
fn hash(line: &[u8]) -> usize {
    let mut chunks = line.chunks_exact(8);
    let mix =
        |hash: u64, word: u64| (hash.rotate_left(5) ^ word).wrapping_mul(0x517c_c1b7_2722_0a95);
    let words = chunks.by_ref().map(|word| word.iter().fold(0, |all, &b| all << 8 | u64::from(b)));
    let hash = words.fold(0, mix);
    let hash = chunks.remainder().iter().fold(hash, |hash, &byte| mix(hash, byte.into()));
    usize::try_from(hash >> 40).unwrap_or_default()
}

/// The number of base64 characters for a number of bytes.
fn characters(bytes: usize) -> u64 {
    u64::try_from(bytes.div_ceil(3) * 4).unwrap_or(u64::MAX)
}

/// The number of characters of bytes that are compressed with gzip and encoded in base64.
fn compressed_length(bytes: &[u8]) -> u64 {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    // Writing to memory does not fail.
    let packed = encoder.write_all(bytes).and_then(|()| encoder.finish()).unwrap_or_default();
    characters(packed.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn compressed_size(files: &[Vec<u8>]) -> CompressedSize {
        let mut size = CompressedSize::default();
        for file in files {
            size.add(&Arc::new(file.clone()));
        }
        size
    }

    /// Incompressible bytes.
    fn noise(length: usize) -> Vec<u8> {
        let mut state = 1_u64;
        let mut next = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            state.to_be_bytes()[0]
        };
        (0..length).map(|_| next()).collect()
    }

    #[test]
    fn a_size_above_the_limit_is_exact() {
        for files in [
            vec![noise(90_000), b"a: b\n".repeat(50_000)],
            vec![b"a: b\n".repeat(50_000); 3],
            vec![noise(10), Vec::new()],
        ] {
            let size = compressed_size(&files);
            let exact = size.exact();
            assert_eq!(size.exceeding(exact), None);
            assert_eq!(size.exceeding(exact - 1), Some(exact));
            assert_eq!(size.exceeding(exact + 100_000), None);
        }
        assert!(compressed_size(&[]).is_empty() && !compressed_size(&[Vec::new()]).is_empty());
    }

    #[test]
    fn no_compressed_file_is_longer_than_its_bounds() {
        for length in [0, 1, 3, 1000, 65_535, 65_536, 200_000] {
            let size = compressed_length(&noise(length));
            assert!(size <= characters(bound(length)), "{length}: {size}");
            assert!(size <= characters(estimate(&noise(length))), "{length}: {size}");
        }
        let schema = |number: usize| {
            format!(
                "      field{number}:\n        description: what {number} is for\n        type: string\n"
            )
        };
        for fields in [1, 10, 1000] {
            let text: String = (0..fields).map(schema).collect();
            let (size, bytes) = (compressed_length(text.as_bytes()), estimate(text.as_bytes()));
            assert!(size <= characters(bytes), "{fields} fields: {size} of {bytes}");
            assert!(fields < 1000 || bytes < text.len() / 2, "{bytes} of {}", text.len());
        }
    }
}
