//! Header blocks of SPDY/3: names and values, compressed as one stream over a whole connection.
//!
//! The stream is zlib's with a dictionary that is part of the protocol. It is read by a raw
//! decompressor that was shown the dictionary first, as a block that is stored: what follows may
//! refer to it. What this side sends has no headers, so that its blocks are the same few bytes.

use super::Broken;
use bytes::Buf as _;
use flate2::{Decompress, FlushDecompress};

/// Bytes of a block, compressed or not.
pub(super) const LIMIT: usize = 16 * 1024;
/// Headers in a block.
const COUNT: u32 = 100;
/// Which dictionary it is: its checksum (Adler-32).
const DICTIONARY_ID: [u8; 4] = [0xe3, 0xc6, 0xa7, 0xc2];

/// The words of the dictionary, each with its length in front (SPDY draft 3.1, section 2.6.10.1).
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
/// What follows them, without lengths.
const TEXTS: &str = "100101201202205206300302303304305306307402405406407408409410411412413414415416417502504505203 Non-Authoritative Information204 No Content301 Moved Permanently400 Bad Request401 Unauthorized403 Forbidden404 Not Found500 Internal Server Error501 Not Implemented503 Service UnavailableJan Feb Mar Apr May Jun Jul Aug Sept Oct Nov Dec 00:00:00 Mon, Tue, Wed, Thu, Fri, Sat, Sun, GMTchunked,text/html,image/png,image/jpg,image/gif,application/xml,application/xhtml+xml,text/plain,text/javascript,publicprivatemax-age=gzip,deflate,sdchcharset=utf-8charset=iso-8859-1,utf-,*,enq=0.";

/// The dictionary: 1423 bytes.
fn dictionary() -> Vec<u8> {
    let mut bytes = Vec::with_capacity(1423);
    for word in WORDS {
        // Words have few letters.
        let length = u32::try_from(word.len()).unwrap_or_default();
        bytes.extend_from_slice(&length.to_be_bytes());
        bytes.extend_from_slice(word.as_bytes());
    }
    bytes.extend_from_slice(TEXTS.as_bytes());
    bytes
}

/// The headers that a stream was opened with.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Headers(Vec<(String, String)>);

impl Headers {
    /// A value, by a name in small letters; empty if there is none.
    pub(crate) fn get(&self, name: &str) -> &str {
        let found = self.0.iter().find(|(one, _)| one == name);
        found.map_or("", |(_, value)| value)
    }

    fn parse(mut block: &[u8]) -> Result<Self, Broken> {
        let count = block.try_get_u32().map_err(|_| Broken("a header block is cut off"))?;
        if count > COUNT {
            return Err(Broken("a header block has too many headers"));
        }
        let mut text = || {
            let length = block.try_get_u32().map_err(|_| Broken("a header block is cut off"))?;
            let length = usize::try_from(length).unwrap_or(usize::MAX);
            let (text, rest) =
                block.split_at_checked(length).ok_or(Broken("a header block is cut off"))?;
            block = rest;
            Ok(String::from_utf8_lossy(text).into_owned())
        };
        let mut headers = Vec::new();
        for _ in 0..count {
            headers.push((text()?.to_ascii_lowercase(), text()?));
        }
        if block.is_empty() { Ok(Self(headers)) } else { Err(Broken("a header block is too long")) }
    }
}

/// Reads the blocks of a connection, each of which needs those before it.
#[derive(Debug)]
pub(super) struct Reader {
    raw: Decompress,
    begun: bool,
}

impl Reader {
    pub(super) fn new() -> Self {
        Self { raw: Decompress::new(false), begun: false }
    }

    pub(super) fn read(&mut self, block: &[u8]) -> Result<Headers, Broken> {
        let block = if self.begun { block } else { self.begin(block)? };
        Headers::parse(&self.inflate(block)?)
    }

    /// Reads what zlib has in front of everything.
    fn begin<'a>(&mut self, block: &'a [u8]) -> Result<&'a [u8], Broken> {
        let (&[method, flags], rest) =
            block.split_first_chunk().ok_or(Broken("a header block is cut off"))?;
        let (id, rest) = rest.split_first_chunk().ok_or(Broken("a header block is cut off"))?;
        let is_zlib = method & 0xf == 8 && (u16::from(method) << 8 | u16::from(flags)) % 31 == 0;
        if !is_zlib || flags & 0x20 == 0 || *id != DICTIONARY_ID {
            return Err(Broken("a header block is not compressed with the dictionary"));
        }
        let dictionary = dictionary();
        // It is far shorter than what a stored block holds.
        let length = u16::try_from(dictionary.len()).unwrap_or_default();
        let mut stored = vec![0];
        stored.extend_from_slice(&length.to_le_bytes());
        stored.extend_from_slice(&(!length).to_le_bytes());
        stored.extend_from_slice(&dictionary);
        self.inflate(&stored)?;
        self.begun = true;
        Ok(rest)
    }

    fn inflate(&mut self, mut block: &[u8]) -> Result<Vec<u8>, Broken> {
        let mut out = Vec::with_capacity(LIMIT + 1);
        loop {
            let (read, made) = (self.raw.total_in(), self.raw.total_out());
            let done = self.raw.decompress_vec(block, &mut out, FlushDecompress::Sync);
            if done.is_err() {
                return Err(Broken("a header block cannot be decompressed"));
            }
            if out.len() > LIMIT {
                return Err(Broken("a header block is too large"));
            }
            let read = usize::try_from(self.raw.total_in() - read).unwrap_or(usize::MAX);
            block = block.get(read..).unwrap_or_default();
            if read == 0 && made == self.raw.total_out() {
                break;
            }
        }
        // Whatever ends the stream of all blocks leaves its checksum unread.
        if block.is_empty() {
            Ok(out)
        } else {
            Err(Broken("a header block goes on behind its end"))
        }
    }
}

/// A block of no headers, stored rather than compressed; the first of a connection says how. An
/// empty block ends each: decompressors hold back what comes before until they meet one.
pub(super) fn none(first: bool) -> &'static [u8] {
    const BLOCK: [u8; 20] =
        [0x78, 0xbb, 0xe3, 0xc6, 0xa7, 0xc2, 0, 4, 0, 0xfb, 0xff, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff];
    let block = BLOCK.as_slice();
    if first { block } else { block.split_at(6).1 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::{Compress, Compression, FlushCompress};

    /// A block as a client writes it that stores it.
    fn stored(first: bool, plain: &[u8]) -> Vec<u8> {
        let length = u16::try_from(plain.len()).unwrap();
        let mut block = if first { none(true)[..6].to_vec() } else { Vec::new() };
        block.push(0);
        block.extend(length.to_le_bytes());
        block.extend((!length).to_le_bytes());
        block.extend(plain);
        block
    }

    fn plain(headers: &[(&str, &str)]) -> Vec<u8> {
        let mut out = u32::try_from(headers.len()).unwrap().to_be_bytes().to_vec();
        for text in headers.iter().flat_map(|(name, value)| [name, value]) {
            out.extend(u32::try_from(text.len()).unwrap().to_be_bytes());
            out.extend(text.as_bytes());
        }
        out
    }

    #[test]
    fn the_dictionary_is_that_of_the_protocol() {
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
    fn blocks_are_read_as_gos_compressor_writes_them() {
        // Made with compress/zlib (NewWriterLevelDict, best compression, a flush behind each):
        // streamtype and port refer to nothing, "content-type: text/html" to the dictionary, the
        // second block to the first.
        let mut reader = Reader::new();
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
        let digit = |at: usize| u8::from_str_radix(&text[at..at + 2], 16).unwrap();
        (0..text.len()).step_by(2).map(digit).collect()
    }

    #[test]
    fn our_own_blocks_are_read_back() {
        let mut reader = Reader::new();
        assert_eq!(reader.read(none(true)).unwrap(), Headers::default());
        assert_eq!(reader.read(none(false)).unwrap(), Headers::default());
    }

    #[test]
    fn broken_and_hostile_blocks_are_refused() {
        let good = plain(&[("port", "1")]);
        let cut = &good[..good.len() - 1];
        let longer = [good.as_slice(), b"x"].concat();
        let many = 101_u32.to_be_bytes();
        let giant = [1_u32.to_be_bytes(), [0xff; 4]].concat();
        let twice = [stored(true, &good), vec![1, 0, 0, 0xff, 0xff, 9]].concat();
        for (block, why) in [
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
            ([&none(true)[..6], &[7]].concat(), "a header block cannot be decompressed"),
            (stored(true, &[]), "a header block is cut off"),
            (stored(true, cut), "a header block is cut off"),
            (stored(true, &longer), "a header block is too long"),
            (stored(true, &many), "a header block has too many headers"),
            (stored(true, &giant), "a header block is cut off"),
            (twice, "a header block goes on behind its end"),
        ] {
            assert_eq!(Reader::new().read(&block).unwrap_err().0, why, "{block:?}");
        }
    }

    #[test]
    fn a_block_that_grows_without_end_is_refused_early() {
        let mut compress = Compress::new(Compression::best(), false);
        let mut packed = Vec::with_capacity(1 << 16);
        let zeros = vec![0; 16 << 20];
        compress.compress_vec(&zeros, &mut packed, FlushCompress::Sync).unwrap();
        assert!(packed.len() < 20_000, "{}", packed.len());
        let block = [&none(true)[..6], &packed].concat();
        let mut reader = Reader::new();
        assert_eq!(reader.read(&block).unwrap_err().0, "a header block is too large");
        assert!(reader.raw.total_out() < 20_000 + 1423);
    }
}
