//! What the files of a bundle weigh: characters of each, compressed with gzip and written in
//! base64.
//!
//! Compressing costs more than all else that is asked of a bundle, and only those near the limit
//! are ever told about it. So a file counts with the most that it can become, until that is too
//! much for the bundle: first with its length, then with a sketch of how it could be compressed.
//! Only then the files are compressed, the longest first, until what is left cannot reach the limit
//! any more.

use crate::reader::length;
use flate2::{Compression, write::GzEncoder};
use std::{io::Write, sync::Arc};

/// How many bytes are kept to be compressed later. A bundle with more of them is heavy anyway.
const MOST_KEPT: u64 = 64 << 20;

/// Files to be weighed.
#[derive(Debug, Default)]
pub(crate) struct CompressedSize {
    files: Vec<Arc<Vec<u8>>>,
    kept: u64,
    /// Characters of files that are not kept.
    weighed: u64,
}

impl CompressedSize {
    /// Adds a file.
    pub(crate) fn add(&mut self, file: &Arc<Vec<u8>>) {
        let kept = self.kept.saturating_add(length(file));
        if kept > MOST_KEPT {
            self.weighed = self.weighed.saturating_add(compressed(file));
        } else {
            self.kept = kept;
            self.files.push(file.clone());
        }
    }

    /// Whether there is nothing to weigh.
    pub(crate) fn is_none(&self) -> bool {
        self.files.is_empty() && self.weighed == 0
    }

    /// What all of it weighs.
    pub(crate) fn exactly(&self) -> u64 {
        let each = self.files.iter().map(|file| compressed(file));
        each.sum::<u64>().saturating_add(self.weighed)
    }

    /// What all of it weighs, if that is more than a limit.
    pub(crate) fn above(&self, limit: u64) -> Option<u64> {
        let mut longest: Vec<(&[u8], u64)> = self
            .files
            .iter()
            .map(|file| (file.as_slice(), characters(bound(file.len()))))
            .collect();
        longest.sort_by_key(|(file, _)| std::cmp::Reverse(file.len()));
        let mut all = longest.iter().map(|(_, counted)| counted).sum::<u64>() + self.weighed;
        for exactly in [false, true] {
            for (file, counted) in &mut longest {
                if all <= limit {
                    return None;
                }
                let better = if exactly {
                    compressed(file)
                } else {
                    characters(sketched(file)).min(*counted)
                };
                all = all - *counted + better;
                *counted = better;
            }
        }
        Some(all).filter(|all| *all > limit)
    }
}

/// The most bytes that gzip makes of some: a compressor passes on what does not become shorter, in
/// blocks with a few bytes before each.
const fn bound(length: usize) -> usize {
    length + 5 * (length / (31 << 10) + 1) + 128
}

/// The most bytes that gzip makes of a text, by a simple way to compress it: a line that stands in
/// the 32 KiB before it too is a reference, all other bytes are letters, which are the shorter the
/// more often they come.
///
/// Letters have the lengths that Shannon gives them, at most 15 bits; a hundredth is left for those
/// that would have more. References have a letter that says so, and 28 bits for length and
/// distance.
fn sketched(text: &[u8]) -> usize {
    const SLOTS: usize = 1 << 11;
    const FARTHEST: usize = 32 << 10;
    /// The most bytes of one reference.
    const LONGEST: usize = 258;
    let mut lines = vec![usize::MAX; SLOTS];
    let mut letters = [0_u64; 256];
    let mut references = 1_u64;
    let mut at = 0;
    while at < text.len() {
        let rest = &text[at..];
        let length = memchr::memchr(b'\n', rest).map_or(rest.len(), |end| end + 1);
        let line = &rest[..length];
        let slot = &mut lines[hash(line) % SLOTS];
        let before = std::mem::replace(slot, at);
        let known = length > 2
            && before.checked_add(FARTHEST).is_some_and(|end| end >= at)
            && text.get(before..before + length) == Some(line);
        if known {
            references += u64::try_from(length.div_ceil(LONGEST)).unwrap_or(u64::MAX);
        } else {
            for &byte in line {
                letters[usize::from(byte)] += 1;
            }
        }
        at += length;
    }
    let total = letters.iter().sum::<u64>() + references + 1;
    // The least number of bits for which there are at least so many letters for all.
    let bits = |count: u64| {
        let times = (total * 101).div_ceil(count * 100);
        u64::from(times.next_power_of_two().trailing_zeros()).min(15)
    };
    let of_letters = letters.iter().filter(|count| **count > 0).map(|&count| count * bits(count));
    let all = of_letters.sum::<u64>() + references * (bits(references) + 28);
    // With the lengths of all letters, and what stands around it.
    usize::try_from(all / 8).unwrap_or(usize::MAX).saturating_add(600)
}

/// A number that is the same for the same lines.
fn hash(line: &[u8]) -> usize {
    let mut chunks = line.chunks_exact(8);
    let mix =
        |hash: u64, word: u64| (hash.rotate_left(5) ^ word).wrapping_mul(0x517c_c1b7_2722_0a95);
    let words = chunks.by_ref().map(|word| word.iter().fold(0, |all, &b| all << 8 | u64::from(b)));
    let hash = words.fold(0, mix);
    let hash = chunks.remainder().iter().fold(hash, |hash, &byte| mix(hash, byte.into()));
    usize::try_from(hash >> 40).unwrap_or_default()
}

/// Characters of so many bytes in base64.
fn characters(bytes: usize) -> u64 {
    u64::try_from(bytes.div_ceil(3) * 4).unwrap_or(u64::MAX)
}

/// Characters of a text that is compressed with gzip and written in base64.
fn compressed(bytes: &[u8]) -> u64 {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    // Writing to memory does not fail.
    let packed = encoder.write_all(bytes).and_then(|()| encoder.finish()).unwrap_or_default();
    characters(packed.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn weight(files: &[Vec<u8>]) -> CompressedSize {
        let mut weight = CompressedSize::default();
        for file in files {
            weight.add(&Arc::new(file.clone()));
        }
        weight
    }

    /// Bytes that no compressor makes shorter.
    fn noise(length: usize) -> Vec<u8> {
        let mut state = 1_u64;
        let mut next = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            state.to_be_bytes()[0]
        };
        (0..length).map(|_| next()).collect()
    }

    #[test]
    fn a_limit_that_is_exceeded_is_told_with_the_exact_weight() {
        for files in [
            vec![noise(90_000), b"a: b\n".repeat(50_000)],
            vec![b"a: b\n".repeat(50_000); 3],
            vec![noise(10), Vec::new()],
        ] {
            let weight = weight(&files);
            let exactly = weight.exactly();
            assert_eq!(weight.above(exactly), None);
            assert_eq!(weight.above(exactly - 1), Some(exactly));
            assert_eq!(weight.above(exactly + 100_000), None);
        }
        assert!(weight(&[]).is_none() && !weight(&[Vec::new()]).is_none());
    }

    #[test]
    fn nothing_becomes_longer_than_its_bound() {
        for length in [0, 1, 3, 1000, 65_535, 65_536, 200_000] {
            let weight = compressed(&noise(length));
            assert!(weight <= characters(bound(length)), "{length}");
            assert!(weight <= characters(sketched(&noise(length))), "{length}");
        }
        let schema = |number: usize| {
            format!(
                "      field{number}:\n        description: what {number} is for\n        type: string\n"
            )
        };
        for fields in [1, 10, 1000] {
            let text: String = (0..fields).map(schema).collect();
            let (weight, sketch) = (compressed(text.as_bytes()), sketched(text.as_bytes()));
            assert!(weight <= characters(sketch), "{fields}");
            assert!(fields < 1000 || sketch < text.len() / 2, "{sketch} of {}", text.len());
        }
    }
}
