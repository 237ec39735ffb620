//! Decompression of layers: plain, gzip or zstd, detected by their first bytes.
//!
//! Media types are often wrong about compression, so clients look at the bytes; so does this.

use flate2::read::MultiGzDecoder;
use ruzstd::decoding::{
    BlockDecodingStrategy, FrameDecoder,
    errors::{FrameDecoderError, ReadFrameHeaderError},
};
use std::io::{self, Cursor, Read};

/// The compression of a layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compression {
    /// Not at all.
    None,
    /// Gzip.
    Gzip,
    /// Zstandard.
    Zstd,
}

/// A reader of a decompressed layer.
pub struct LayerReader<R: Read> {
    inner: Inner<R>,
    compression: Compression,
}

type Peeked<R> = io::Chain<Cursor<Vec<u8>>, R>;

enum Inner<R: Read> {
    Plain(Peeked<R>),
    Gzip(Box<MultiGzDecoder<Peeked<R>>>),
    Zstd(Box<Zstd<Peeked<R>>>),
}

/// Opens a layer for reading.
///
/// # Errors
///
/// If it cannot be read, or has a compression that images do not use.
pub fn open<R: Read>(mut reader: R) -> io::Result<LayerReader<R>> {
    let mut first = Vec::new();
    reader.by_ref().take(6).read_to_end(&mut first)?;
    let known: [(&[u8], &str); 3] =
        [(b"\xfd7zXZ\0", "xz"), (b"BZh", "bzip2"), (b"\x04\x22\x4d\x18", "lz4")];
    if let Some((_, name)) = known.iter().find(|(magic, _)| first.starts_with(magic)) {
        let text = format!("it is compressed with {name}, and layers must be tar, gzip or zstd");
        return Err(io::Error::new(io::ErrorKind::InvalidData, text));
    }
    let compression = match first.as_slice() {
        [0x1f, 0x8b, ..] => Compression::Gzip,
        // Skippable frames may come first.
        [0x28, 0xb5, 0x2f, 0xfd, ..] | [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..] => Compression::Zstd,
        _ => Compression::None,
    };
    let whole = Cursor::new(first).chain(reader);
    let inner = match compression {
        Compression::None => Inner::Plain(whole),
        Compression::Gzip => Inner::Gzip(Box::new(MultiGzDecoder::new(whole))),
        Compression::Zstd => Inner::Zstd(Box::new(Zstd {
            source: whole,
            decoder: FrameDecoder::new(),
            within: false,
            ended: false,
        })),
    };
    Ok(LayerReader { inner, compression })
}

impl<R: Read> LayerReader<R> {
    /// The compression of the layer.
    pub fn compression(&self) -> Compression {
        self.compression
    }
}

impl<R: Read> Read for LayerReader<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match &mut self.inner {
            Inner::Plain(reader) => reader.read(buffer),
            Inner::Gzip(reader) => reader.read(buffer),
            Inner::Zstd(reader) => reader.read(buffer),
        }
    }
}

/// Reads a sequence of frames. The library limits the window to 100 MiB.
struct Zstd<R> {
    source: R,
    decoder: FrameDecoder,
    within: bool,
    ended: bool,
}

fn damaged(error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, error)
}

impl<R: Read> Zstd<R> {
    /// Begins the next frame with content; returns false if there is none.
    fn begin(&mut self) -> io::Result<bool> {
        loop {
            let mut magic = Vec::new();
            self.source.by_ref().take(4).read_to_end(&mut magic)?;
            if magic.is_empty() {
                return Ok(false);
            }
            match self.decoder.reset(Cursor::new(magic).chain(&mut self.source)) {
                Ok(()) => return Ok(true),
                Err(FrameDecoderError::ReadFrameHeaderError(ReadFrameHeaderError::SkipFrame {
                    length,
                    ..
                })) => {
                    let length = u64::from(length);
                    let skipped =
                        io::copy(&mut self.source.by_ref().take(length), &mut io::sink())?;
                    if skipped != length {
                        return Err(io::ErrorKind::UnexpectedEof.into());
                    }
                }
                Err(error) => return Err(damaged(error)),
            }
        }
    }
}

impl<R: Read> Read for Zstd<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        const AT_ONCE: usize = 1 << 17;
        if buffer.is_empty() {
            return Ok(0);
        }
        loop {
            if self.within {
                let most = buffer.len().min(AT_ONCE);
                while self.decoder.can_collect() == 0 && !self.decoder.is_finished() {
                    let strategy = BlockDecodingStrategy::UptoBytes(most);
                    self.decoder.decode_blocks(&mut self.source, strategy).map_err(damaged)?;
                }
                let count = self.decoder.read(buffer)?;
                if count > 0 {
                    return Ok(count);
                }
                // The frame's checksum is ignored: the caller has verified the digest.
                self.within = false;
            }
            if self.ended || !self.begin()? {
                self.ended = true;
                return Ok(0);
            }
            self.within = true;
        }
    }
}
