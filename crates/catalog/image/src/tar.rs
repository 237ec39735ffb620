//! Tar reader for untrusted archives.
//!
//! The crate has its own reader because archives are untrusted, and a library's convenience (long
//! names of any length, sparse files) makes archive bombs possible. The `tar` crate decodes
//! headers; this module limits their order and length. The supported formats are those of image
//! tools: ustar, PAX and GNU.

use std::io::{self, Read};
use tar::{EntryType, Header};

const SIZE: usize = 512;
const BLOCK: u64 = SIZE as u64;
/// The maximum length of the headers that extend an entry together, in bytes.
const MAX_EXTENSION: u64 = 1 << 20;

/// The type of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TarEntryKind {
    /// A file.
    File,
    /// A folder.
    Folder,
    /// A symbolic link.
    Symlink,
    /// A hard link.
    Hardlink,
    /// A device, a named pipe or anything else without content; the byte of its type.
    Other(u8),
}

/// An entry's header, with its extensions applied.
#[derive(Clone, Debug)]
pub struct TarEntry {
    /// The name as it is in the archive.
    pub name: Vec<u8>,
    /// The type of the entry.
    pub kind: TarEntryKind,
    /// How many bytes of content follow.
    pub size: u64,
    /// The target of a link, as it is in the archive.
    pub target: Vec<u8>,
    /// The mode.
    pub mode: u32,
}

/// Why an archive cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum TarError {
    /// The bytes cannot be read.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// The archive is truncated.
    #[error("the archive ends within an entry")]
    Truncated,
    /// A header is malformed.
    #[error("the archive has a damaged header: {0}")]
    Header(&'static str),
    /// An extension is too long.
    #[error("the archive has a header extension of {0} bytes")]
    Extension(u64),
}

impl TarError {
    /// Whether the archive ends too early.
    pub fn is_truncated(&self) -> bool {
        match self {
            Self::Truncated => true,
            Self::Io(error) => error.kind() == io::ErrorKind::UnexpectedEof,
            Self::Header(_) | Self::Extension(_) => false,
        }
    }
}

/// Reads the entries of an archive in order.
pub struct TarReader<R> {
    inner: R,
    /// The unread bytes of the current entry's content, and of the padding behind it.
    remaining: u64,
    padding: u64,
    ended: bool,
    position: u64,
    global: Overrides,
}

#[derive(Clone, Default)]
struct Overrides {
    path: Option<Vec<u8>>,
    target: Option<Vec<u8>>,
    size: Option<u64>,
}

impl<R: Read> TarReader<R> {
    /// A reader at the beginning of an archive.
    pub fn new(inner: R) -> Self {
        Self {
            inner,
            remaining: 0,
            padding: 0,
            ended: false,
            position: 0,
            global: Overrides::default(),
        }
    }

    /// The next entry; unread content of the previous one is skipped. None at the end of the
    /// archive, after which nothing is read: [`TarReader::into_inner`] has the rest.
    #[expect(clippy::should_implement_trait, reason = "entries borrow nothing but can fail")]
    pub fn next(&mut self) -> Result<Option<TarEntry>, TarError> {
        let mut overrides = self.global.clone();
        let mut extensions = 0;
        loop {
            let Some(header) = self.header()? else { return Ok(None) };
            let size = header.entry_size().map_err(|_| TarError::Header("its size"))?;
            let kind = header.entry_type();
            if !(kind.is_gnu_longname()
                || kind.is_gnu_longlink()
                || kind.is_pax_local_extensions()
                || kind.is_pax_global_extensions())
            {
                return self.entry(&header, overrides).map(Some);
            }
            extensions += size.max(1);
            if extensions > MAX_EXTENSION {
                return Err(TarError::Extension(size));
            }
            self.begin_content(size);
            let mut bytes = Vec::new();
            self.read_to_end(&mut bytes)?;
            if kind.is_gnu_longname() || kind.is_gnu_longlink() {
                bytes.truncate(bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len()));
                if kind.is_gnu_longname() {
                    overrides.path = Some(bytes);
                } else {
                    overrides.target = Some(bytes);
                }
            } else {
                let extended = parse_pax(&bytes)?;
                if kind.is_pax_global_extensions() {
                    self.global.merge(extended.clone());
                }
                overrides.merge(extended);
            }
        }
    }

    fn entry(&mut self, header: &Header, overrides: Overrides) -> Result<TarEntry, TarError> {
        let kind = match header.entry_type() {
            EntryType::Regular | EntryType::Continuous => TarEntryKind::File,
            EntryType::Directory => TarEntryKind::Folder,
            EntryType::Symlink => TarEntryKind::Symlink,
            EntryType::Link => TarEntryKind::Hardlink,
            other => TarEntryKind::Other(other.as_byte()),
        };
        let size = match overrides.size {
            Some(size) => size,
            None => header.entry_size().map_err(|_| TarError::Header("its size"))?,
        };
        // Only files have content; the sizes of other entries are left over by some writers.
        let size =
            if matches!(kind, TarEntryKind::File | TarEntryKind::Other(_)) { size } else { 0 };
        if size > u64::MAX - BLOCK {
            return Err(TarError::Header("its size"));
        }
        self.begin_content(size);
        let name = overrides.path.unwrap_or_else(|| header.path_bytes().into_owned());
        let target = match overrides.target {
            Some(target) => target,
            None => header.link_name_bytes().map(std::borrow::Cow::into_owned).unwrap_or_default(),
        };
        let mode = header.mode().map_err(|_| TarError::Header("its mode"))? & 0o7777;
        // Before ustar, a folder was a file whose name ends with a slash.
        let kind = if kind == TarEntryKind::File && name.ends_with(b"/") {
            TarEntryKind::Folder
        } else {
            kind
        };
        Ok(TarEntry { name, kind, size, target, mode })
    }

    fn begin_content(&mut self, size: u64) {
        self.remaining = size;
        self.padding = size.next_multiple_of(BLOCK) - size;
    }

    /// The next header that is not empty.
    fn header(&mut self) -> Result<Option<Header>, TarError> {
        if self.ended {
            return Ok(None);
        }
        self.skip()?;
        let mut block = [0; SIZE];
        for empty in 0.. {
            let mut filled = 0;
            while filled < block.len() {
                match self.inner.read(&mut block[filled..]) {
                    Ok(0) if filled == 0 => {
                        // The end of the input without two empty blocks, which Go accepts, too.
                        self.ended = true;
                        return Ok(None);
                    }
                    Ok(0) => return Err(TarError::Truncated),
                    Ok(count) => filled += count,
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                    Err(error) => return Err(error.into()),
                }
            }
            self.position += BLOCK;
            if block.iter().any(|byte| *byte != 0) {
                if empty > 0 {
                    return Err(TarError::Header("an empty block in the middle"));
                }
                break;
            }
            if empty == 1 {
                self.ended = true;
                return Ok(None);
            }
        }
        let header = Header::from_byte_slice(&block).clone();
        let sum: u32 = block
            .iter()
            .enumerate()
            .map(|(place, byte)| if (148..156).contains(&place) { 32 } else { u32::from(*byte) })
            .sum();
        if header.cksum().ok() != Some(sum) {
            return Err(TarError::Header("its checksum"));
        }
        Ok(Some(header))
    }

    fn skip(&mut self) -> Result<(), TarError> {
        let rest = self.remaining + self.padding;
        let skipped = io::copy(&mut (&mut self.inner).take(rest), &mut io::sink())?;
        if skipped != rest {
            return Err(TarError::Truncated);
        }
        self.position += rest;
        (self.remaining, self.padding) = (0, 0);
        Ok(())
    }

    /// The offset of the next byte that is read; after [`TarReader::next`] that is the start of the
    /// entry's content.
    pub fn position(&self) -> u64 {
        self.position
    }

    /// The underlying reader; at the end, it has the bytes behind the archive.
    pub fn into_inner(self) -> R {
        self.inner
    }
}

/// Reads the content of the current entry.
impl<R: Read> Read for TarReader<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let most = usize::try_from(self.remaining).unwrap_or(usize::MAX).min(buffer.len());
        if most == 0 {
            return Ok(0);
        }
        let count = self.inner.read(&mut buffer[..most])?;
        if count == 0 {
            return Err(io::Error::new(io::ErrorKind::UnexpectedEof, TarError::Truncated));
        }
        self.remaining -= count as u64;
        self.position += count as u64;
        Ok(count)
    }
}

impl Overrides {
    fn merge(&mut self, later: Self) {
        self.path = later.path.or(self.path.take());
        self.target = later.target.or(self.target.take());
        self.size = later.size.or(self.size);
    }
}

/// Parses the records of a PAX header, `LENGTH KEY=VALUE\n`.
fn parse_pax(mut bytes: &[u8]) -> Result<Overrides, TarError> {
    const WRONG: TarError = TarError::Header("its PAX records");
    let mut found = Overrides::default();
    while !bytes.is_empty() {
        let space = bytes.iter().take(20).position(|byte| *byte == b' ').ok_or(WRONG)?;
        let length = std::str::from_utf8(&bytes[..space]).ok().and_then(|text| text.parse().ok());
        let length: usize = length.ok_or(WRONG)?;
        if length <= space + 1 || length > bytes.len() || bytes[length - 1] != b'\n' {
            return Err(WRONG);
        }
        let record = &bytes[space + 1..length - 1];
        let equals = record.iter().position(|byte| *byte == b'=').ok_or(WRONG)?;
        let (key, value) = (&record[..equals], &record[equals + 1..]);
        match key {
            b"path" => found.path = Some(value.to_vec()),
            b"linkpath" => found.target = Some(value.to_vec()),
            b"size" => {
                let size = std::str::from_utf8(value).ok().and_then(|text| text.parse().ok());
                found.size = Some(size.ok_or(WRONG)?);
            }
            // The content of a sparse file differs from that in the archive.
            _ if key.starts_with(b"GNU.sparse.") => {
                return Err(TarError::Header("a sparse file"));
            }
            _ => {}
        }
        bytes = &bytes[length..];
    }
    Ok(found)
}
