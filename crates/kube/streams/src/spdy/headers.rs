//! SPDY/3 header blocks: names and values, compressed as one stream over the whole connection.
//!
//! The stream is zlib with a dictionary of the protocol. The reader is a raw decompressor that gets
//! the dictionary first, as a stored block, so that later blocks may refer to it. Blocks of this
//! side have no headers, so they are always the same few bytes.

use super::ProtocolError;
use bytes::Buf as _;
use flate2::{Decompress, FlushDecompress};

/// The largest block in bytes, compressed or not.
pub(super) const MAX_BLOCK_SIZE: usize = 16 * 1024;
/// The most headers of a block.
const MAX_HEADERS: u32 = 100;
/// The id of the dictionary: its checksum (Adler-32).
const DICTIONARY_ID: [u8; 4] = [0xe3, 0xc6, 0xa7, 0xc2];

/// The words of the dictionary, each after its length (SPDY draft 3.1, section 2.6.10.1).
const WORDS: [&str; 65] = [
    "options",
    "head",
    "post",
    "put",
    "delete",
    "trace",
    "accept",
    "accept-charset",
    "accept-encoding",
    "accept-language",
    "accept-ranges",
    "age",
    "allow",
    "authorization",
    "cache-control",
    "connection",
    "content-base",
    "content-encoding",
    "content-language",
    "content-length",
    "content-location",
    "content-md5",
    "content-range",
    "content-type",
    "date",
    "etag",
    "expect",
    "expires",
    "from",
    "host",
    "if-match",
    "if-modified-since",
    "if-none-match",
    "if-range",
    "if-unmodified-since",
    "last-modified",
    "location",
    "max-forwards",
    "pragma",
    "proxy-authenticate",
    "proxy-authorization",
    "range",
    "referer",
    "retry-after",
    "server",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "user-agent",
    "vary",
    "via",
    "warning",
    "www-authenticate",
    "method",
    "get",
    "status",
    "200 OK",
    "version",
    "HTTP/1.1",
    "url",
    "public",
    "set-cookie",
    "keep-alive",
    "origin",
];
/// The text after the words, without lengths.
const TEXTS: &str = "100101201202205206300302303304305306307402405406407408409410411412413414415416417502504505203 Non-Authoritative Information204 No Content301 Moved Permanently400 Bad Request401 Unauthorized403 Forbidden404 Not Found500 Internal Server Error501 Not Implemented503 Service UnavailableJan Feb Mar Apr May Jun Jul Aug Sept Oct Nov Dec 00:00:00 Mon, Tue, Wed, Thu, Fri, Sat, Sun, GMTchunked,text/html,image/png,image/jpg,image/gif,application/xml,application/xhtml+xml,text/plain,text/javascript,publicprivatemax-age=gzip,deflate,sdchcharset=utf-8charset=iso-8859-1,utf-,*,enq=0.";

/// The dictionary: 1423 bytes.
fn dictionary() -> Vec<u8> {
    let mut bytes = Vec::with_capacity(1423);
    for word in WORDS {
        // Words are short.
        let length = u32::try_from(word.len()).unwrap_or_default();
        bytes.extend_from_slice(&length.to_be_bytes());
        bytes.extend_from_slice(word.as_bytes());
    }
    bytes.extend_from_slice(TEXTS.as_bytes());
    bytes
}

/// The headers with which a stream was opened.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Headers(Vec<(String, String)>);

impl Headers {
    /// The value of a header, by its name in lower case; empty without the header.
    pub(crate) fn get(&self, name: &str) -> &str {
        let found = self.0.iter().find(|(other, _)| other == name);
        found.map_or("", |(_, value)| value)
    }

    fn parse(mut block: &[u8]) -> Result<Self, ProtocolError> {
        let count = block.try_get_u32().map_err(|_| ProtocolError("a header block is cut off"))?;
        if count > MAX_HEADERS {
            return Err(ProtocolError("a header block has too many headers"));
        }
        let mut text = || {
            let length =
                block.try_get_u32().map_err(|_| ProtocolError("a header block is cut off"))?;
            let length = usize::try_from(length).unwrap_or(usize::MAX);
            let (text, rest) =
                block.split_at_checked(length).ok_or(ProtocolError("a header block is cut off"))?;
            block = rest;
            Ok(String::from_utf8_lossy(text).into_owned())
        };
        let mut headers = Vec::new();
        for _ in 0..count {
            headers.push((text()?.to_ascii_lowercase(), text()?));
        }
        if block.is_empty() {
            Ok(Self(headers))
        } else {
            Err(ProtocolError("a header block is too long"))
        }
    }
}

/// Decompresses the header blocks of a connection; each block refers to those before it.
#[derive(Debug)]
pub(super) struct HeaderReader {
    decompress: Decompress,
    has_begun: bool,
}

impl HeaderReader {
    pub(super) fn new() -> Self {
        Self { decompress: Decompress::new(false), has_begun: false }
    }

    pub(super) fn read(&mut self, block: &[u8]) -> Result<Headers, ProtocolError> {
        let block = if self.has_begun { block } else { self.begin(block)? };
        Headers::parse(&self.inflate(block)?)
    }

    /// Reads the zlib header of the first block and loads the dictionary.
    fn begin<'a>(&mut self, block: &'a [u8]) -> Result<&'a [u8], ProtocolError> {
        let (&[method, flags], rest) =
            block.split_first_chunk().ok_or(ProtocolError("a header block is cut off"))?;
        let (id, rest) =
            rest.split_first_chunk().ok_or(ProtocolError("a header block is cut off"))?;
        let is_zlib = method & 0xf == 8 && (u16::from(method) << 8 | u16::from(flags)) % 31 == 0;
        if !is_zlib || flags & 0x20 == 0 || *id != DICTIONARY_ID {
            return Err(ProtocolError("a header block is not compressed with the dictionary"));
        }
        let dictionary = dictionary();
        // The dictionary fits into a stored block.
        let length = u16::try_from(dictionary.len()).unwrap_or_default();
        let mut stored = vec![0];
        stored.extend_from_slice(&length.to_le_bytes());
        stored.extend_from_slice(&(!length).to_le_bytes());
        stored.extend_from_slice(&dictionary);
        self.inflate(&stored)?;
        self.has_begun = true;
        Ok(rest)
    }

    fn inflate(&mut self, mut block: &[u8]) -> Result<Vec<u8>, ProtocolError> {
        let mut out = Vec::with_capacity(MAX_BLOCK_SIZE + 1);
        loop {
            let (read, written) = (self.decompress.total_in(), self.decompress.total_out());
            let result = self.decompress.decompress_vec(block, &mut out, FlushDecompress::Sync);
            if result.is_err() {
                return Err(ProtocolError("a header block cannot be decompressed"));
            }
            if out.len() > MAX_BLOCK_SIZE {
                return Err(ProtocolError("a header block is too large"));
            }
            let read = usize::try_from(self.decompress.total_in() - read).unwrap_or(usize::MAX);
            block = block.get(read..).unwrap_or_default();
            if read == 0 && written == self.decompress.total_out() {
                break;
            }
        }
        // The end of the zlib stream would leave its checksum unread.
        if block.is_empty() {
            Ok(out)
        } else {
            Err(ProtocolError("a header block has data after its end"))
        }
    }
}

/// A block without headers, stored instead of compressed; the first of a connection has a zlib
/// header. Each ends with an empty block, because decompressors hold data back until they read one.
pub(super) fn empty_block(is_first: bool) -> &'static [u8] {
    const BLOCK: [u8; 20] =
        [0x78, 0xbb, 0xe3, 0xc6, 0xa7, 0xc2, 0, 4, 0, 0xfb, 0xff, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff];
    let block = BLOCK.as_slice();
    if is_first { block } else { block.split_at(6).1 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::{Compress, Compression, FlushCompress};

    /// A stored block.
    fn stored_block(is_first: bool, plain: &[u8]) -> Vec<u8> {
        let length = u16::try_from(plain.len()).unwrap();
        let mut block = if is_first { empty_block(true)[..6].to_vec() } else { Vec::new() };
        block.push(0);
        block.extend(length.to_le_bytes());
        block.extend((!length).to_le_bytes());
        block.extend(plain);
        block
    }

    fn encode_headers(headers: &[(&str, &str)]) -> Vec<u8> {
        let mut out = u32::try_from(headers.len()).unwrap().to_be_bytes().to_vec();
        for text in headers.iter().flat_map(|(name, value)| [name, value]) {
            out.extend(u32::try_from(text.len()).unwrap().to_be_bytes());
            out.extend(text.as_bytes());
        }
        out
    }

    #[test]
    fn dictionary_has_the_checksum_of_the_protocol() {
        let dictionary = dictionary();
        let (mut low, mut high) = (1_u32, 0_u32);
        for byte in &dictionary {
            low = (low + u32::from(*byte)) % 65521;
            high = (high + low) % 65521;
        }
        assert_eq!(dictionary.len(), 1423);
        assert_eq!((high << 16 | low).to_be_bytes(), DICTIONARY_ID);
    }

    #[test]
    fn blocks_of_gos_compressor_are_read() {
        // Made with compress/zlib (NewWriterLevelDict, best compression, a flush after each block).
        // "content-type: text/html" refers to the dictionary, the second block to the first;
        // streamtype and port of the first block refer to nothing.
        let mut reader = HeaderReader::new();
        for (block, expected) in [
            (
                GO_FIRST,
                vec![("streamtype", "data"), ("port", "8080"), ("content-type", "text/html")],
            ),
            (GO_SECOND, vec![("streamtype", "error"), ("port", "8080"), ("requestid", "0")]),
        ] {
            let headers = reader.read(&hex(block)).unwrap();
            let read: Vec<(&str, &str)> =
                headers.0.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
            assert_eq!(read, expected);
        }
    }

    const GO_FIRST: &str =
        "78f9e3c6a7c202253a703a2b294a4dcc452a4a1221a5721138035818581860297238e13e07000000ffff";
    const GO_SECOND: &str = "c26a0c6b2a28beb098c35904490d99a05cc26800000000ffff";

    fn hex(text: &str) -> Vec<u8> {
        let digit = |index: usize| u8::from_str_radix(&text[index..index + 2], 16).unwrap();
        (0..text.len()).step_by(2).map(digit).collect()
    }

    #[test]
    fn blocks_of_this_side_are_read() {
        let mut reader = HeaderReader::new();
        assert_eq!(reader.read(empty_block(true)).unwrap(), Headers::default());
        assert_eq!(reader.read(empty_block(false)).unwrap(), Headers::default());
    }

    #[test]
    fn malformed_blocks_are_errors() {
        let valid = encode_headers(&[("port", "1")]);
        let truncated = &valid[..valid.len() - 1];
        let too_long = [valid.as_slice(), b"x"].concat();
        let too_many = 101_u32.to_be_bytes();
        let huge_length = [1_u32.to_be_bytes(), [0xff; 4]].concat();
        let after_end = [stored_block(true, &valid), vec![1, 0, 0, 0xff, 0xff, 9]].concat();
        for (block, error) in [
            (Vec::new(), "a header block is cut off"),
            (vec![0x78, 0xbb, 0xe3], "a header block is cut off"),
            (
                b"\x78\x9c\0\0\0\0\0".to_vec(),
                "a header block is not compressed with the dictionary",
            ),
            (
                b"\x78\xbb\0\0\0\0\0".to_vec(),
                "a header block is not compressed with the dictionary",
            ),
            ([&empty_block(true)[..6], &[7]].concat(), "a header block cannot be decompressed"),
            (stored_block(true, &[]), "a header block is cut off"),
            (stored_block(true, truncated), "a header block is cut off"),
            (stored_block(true, &too_long), "a header block is too long"),
            (stored_block(true, &too_many), "a header block has too many headers"),
            (stored_block(true, &huge_length), "a header block is cut off"),
            (after_end, "a header block has data after its end"),
        ] {
            assert_eq!(HeaderReader::new().read(&block).unwrap_err().0, error, "{block:?}");
        }
    }

    #[test]
    fn decompression_stops_at_the_size_limit() {
        let mut compress = Compress::new(Compression::best(), false);
        let mut compressed = Vec::with_capacity(1 << 16);
        let zeros = vec![0; 16 << 20];
        compress.compress_vec(&zeros, &mut compressed, FlushCompress::Sync).unwrap();
        assert!(compressed.len() < 20_000, "{}", compressed.len());
        let block = [&empty_block(true)[..6], &compressed].concat();
        let mut reader = HeaderReader::new();
        assert_eq!(reader.read(&block).unwrap_err().0, "a header block is too large");
        let decompressed = reader.decompress.total_out();
        assert!(decompressed < 20_000 + 1423, "{decompressed} bytes");
    }
}
