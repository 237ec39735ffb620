//! Content codings: gzip and zstd, in segments that can be concatenated.
//!
//! * gzip: a segment is a part of a deflate stream that ends at a byte and refers to nothing before
//!   it. A response is a header, segments, and an end with the checksum of all
//!   ([`GzipStream`]). It is one member, as every client reads it.
//! * zstd: a segment is a frame. A response is a sequence of frames (RFC 8878 §3.1).

use bytes::Bytes;
use flate2::{Compress, Compression, FlushCompress};
use ruzstd::encoding::{CompressionLevel, compress_to_vec};

/// The deflate level. Each block is compressed once, and a higher level gains one per cent in twice
/// the time.
const LEVEL: u32 = 4;

/// How content is compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Coding {
    Gzip,
    Zstd,
}

/// Compressed bytes, with what the end of a gzip stream needs to know of them.
#[derive(Clone, Debug)]
pub(crate) struct Segment {
    pub(crate) bytes: Bytes,
    pub(crate) checksum: Checksum,
}

/// The CRC-32 and the length of a text; zero if the coding has none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Checksum {
    crc: u32,
    length: u64,
}

impl Checksum {
    /// Makes it the checksum of a text and another one behind it.
    pub(crate) fn append(&mut self, next: Self) {
        let mut all = crc32fast::Hasher::new_with_initial_len(self.crc, self.length);
        all.combine(&crc32fast::Hasher::new_with_initial_len(next.crc, next.length));
        *self = Self { crc: all.finalize(), length: self.length + next.length };
    }
}

impl Coding {
    /// Compresses a text.
    pub(crate) fn segment(self, plain: &[u8]) -> Segment {
        match self {
            Self::Gzip => {
                let checksum = Checksum { crc: crc32fast::hash(plain), length: plain.len() as u64 };
                Segment { bytes: deflate(plain).into(), checksum }
            }
            Self::Zstd => {
                let bytes = compress_to_vec(plain, CompressionLevel::Fastest).into();
                Segment { bytes, checksum: Checksum::default() }
            }
        }
    }
}

/// Deflates a text up to a byte boundary, without the end of the stream.
fn deflate(plain: &[u8]) -> Vec<u8> {
    let mut compress = Compress::new(Compression::new(LEVEL), false);
    let mut out = Vec::with_capacity(plain.len() / 2 + 64);
    loop {
        let done = usize::try_from(compress.total_in()).unwrap_or(usize::MAX).min(plain.len());
        // In memory this fails only where it makes no progress, which the space for output prevents.
        let _ = compress.compress_vec(&plain[done..], &mut out, FlushCompress::Full);
        // Space that is left says that everything was flushed.
        if compress.total_in() == plain.len() as u64 && out.len() < out.capacity() {
            return out;
        }
        out.reserve(plain.len() / 4 + 64);
    }
}

/// The frame around the segments of a gzip response.
#[derive(Debug, Default)]
pub(crate) struct GzipStream(Checksum);

impl GzipStream {
    /// Deflate, no flags, no time, an unknown system.
    pub(crate) const HEADER: [u8; 10] = [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255];

    /// Counts a segment that is sent.
    pub(crate) fn add(&mut self, segment: Checksum) {
        self.0.append(segment);
    }

    /// The end of the stream: an empty last block, the checksum and the length (modulo 2³²).
    pub(crate) fn end(&self) -> Vec<u8> {
        let length = self.0.length & u64::from(u32::MAX);
        let length = u32::try_from(length).unwrap_or_default();
        [&[3, 0][..], &self.0.crc.to_le_bytes(), &length.to_le_bytes()].concat()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::read::GzDecoder;
    use std::io::Read as _;

    /// Texts of which some compress well, and some not at all.
    fn texts() -> Vec<Vec<u8>> {
        let mut state = 7_u32;
        let mut noise = |count: usize| -> Vec<u8> {
            let next = |_| {
                state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                state.to_be_bytes()[0]
            };
            (0..count).map(next).collect()
        };
        vec![b"a\n".to_vec(), vec![b'x'; 300_000], noise(100_000), noise(1), b"{}\n".repeat(999)]
    }

    #[test]
    fn gzip_segments_make_one_member() {
        let mut stream = GzipStream::default();
        let mut bytes = GzipStream::HEADER.to_vec();
        for text in texts() {
            let segment = Coding::Gzip.segment(&text);
            bytes.extend_from_slice(&segment.bytes);
            stream.add(segment.checksum);
        }
        bytes.extend(stream.end());
        let mut plain = Vec::new();
        let mut decoder = GzDecoder::new(&*bytes);
        decoder.read_to_end(&mut plain).unwrap();
        assert!(plain == texts().concat());
        assert!(decoder.into_inner().is_empty(), "nothing follows the member");
    }

    #[test]
    fn zstd_segments_are_frames_that_follow_each_other() {
        let bytes: Vec<u8> =
            texts().iter().flat_map(|text| Coding::Zstd.segment(text).bytes).collect();
        let mut rest = &*bytes;
        let mut plain = Vec::new();
        while !rest.is_empty() {
            let mut frame = ruzstd::decoding::StreamingDecoder::new(&mut rest).unwrap();
            frame.read_to_end(&mut plain).unwrap();
        }
        assert!(plain == texts().concat());
    }
}
