//! Unpacking of layers into a folder.
//!
//! ```text
//! layer ─► count bytes ─► decompress ─► count and hash ─► entries ─► check ─► temporary folder ─► rename
//! ```
//!
//! Layers are untrusted. An entry is checked against an in-memory tree of all entries before it,
//! never against the disk, so no link is ever followed. A name must not be absolute, contain `..`,
//! or pass through a link; a link must not lead out. Devices, pipes and sparse files are refused.
//! No entry may occur twice in a layer. All sizes are limited. The folder is written under a
//! temporary name, flushed and renamed, so a folder with the target's name is complete.
//!
//! Owners, times, extended attributes and special mode bits are not preserved. All files belong to
//! this process, which can read and remove them.

mod limits;
mod tree;

pub use limits::Limits;

use crate::{
    compress,
    digest::{Algorithm, Digest, Hasher},
    manifest::{ImageConfig, ImageManifest},
    store::{ImageStore, ImageStoreError},
    tar::{TarEntry, TarEntryKind, TarError, TarReader},
};
use limits::CountingReader;
use std::{
    ffi::OsStr,
    fs::{self, File, OpenOptions, Permissions},
    io::{self, BufReader, Read, Write as _},
    os::unix::{
        ffi::OsStrExt as _,
        fs::{OpenOptionsExt as _, PermissionsExt as _, symlink},
    },
    path::{Path, PathBuf},
};
use tree::{EntryType, Tree};

/// The suffix of temporary folders.
const UNFINISHED: &[u8] = b".unpacking";

/// Why a layer cannot be unpacked. Names are quoted like Rust strings, so they cannot forge lines.
#[derive(Debug, thiserror::Error)]
pub enum UnpackError {
    /// The target exists.
    #[error("{} exists already", .0.display())]
    Exists(PathBuf),
    /// The file system fails.
    #[error("{what} {}: {source}", path.display())]
    Io {
        /// The attempted operation.
        what: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// Why it fails.
        source: io::Error,
    },
    /// The layer cannot be read.
    #[error("layer {layer}: {source}")]
    Archive {
        /// The number of the layer, from 1.
        layer: usize,
        /// Why it cannot be read.
        source: TarError,
    },
    /// An entry is refused.
    #[error("layer {layer}: entry {name:?} {why}")]
    Entry {
        /// The number of the layer, from 1.
        layer: usize,
        /// The name in the archive, shortened.
        name: String,
        /// Why it is refused.
        why: EntryRefusal,
    },
    /// The layer exceeds a limit.
    #[error("layer {layer}: {why}")]
    LimitExceeded {
        /// The number of the layer, from 1.
        layer: usize,
        /// The exceeded limit.
        why: String,
    },
    /// A layer does not have its diff id in the configuration.
    #[error("layer {layer} has diff id {found}, and the configuration says {wanted}")]
    DiffId {
        /// The number of the layer, from 1.
        layer: usize,
        /// The diff id in the configuration.
        wanted: Digest,
        /// The diff id of the layer.
        found: Digest,
    },
    /// The store does not have the image.
    #[error(transparent)]
    Store(#[from] ImageStoreError),
}

/// Why an entry is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EntryRefusal {
    /// The name begins with a slash.
    #[error("has an absolute name")]
    Absolute,
    /// The name contains `..`.
    #[error("leads out of the folder")]
    Traversal,
    /// The name is empty.
    #[error("has no name")]
    Nameless,
    /// The name contains a zero byte.
    #[error("has a zero byte in its name")]
    Zero,
    /// A parent of the entry is a link.
    #[error("passes through the link {0:?}")]
    ThroughLink(String),
    /// A parent of the entry is not a folder.
    #[error("lies in {0:?}, which is not a folder")]
    NotInFolder(String),
    /// A link leads out of the folder.
    #[error("is a link to {0:?}, which leads out of the folder")]
    LinkOut(String),
    /// The target of a link contains `..` behind a name, so it cannot be checked.
    #[error("is a link to {0:?}, which leads up again after it led down")]
    LinkUpAfterDown(String),
    /// The target of a hard link is not a file of the image.
    #[error("is a hard link to {0:?}, which is not a file that was unpacked before")]
    HardLink(String),
    /// The entry is a device, a pipe, or of an unknown type.
    #[error("is {0}, which is not content")]
    Special(&'static str),
    /// The layer has the entry twice.
    #[error("is in the layer twice")]
    Twice,
    /// A whiteout has no name.
    #[error("is a whiteout of nothing")]
    Whiteout,
    /// The name or a component of it is too long.
    #[error("has a name that is longer than {0} bytes")]
    LongName(usize),
    /// The entry is nested too deeply.
    #[error("lies deeper than {0} folders")]
    Deep(usize),
}

/// The result of unpacking.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UnpackSummary {
    /// The number of files, folders and links.
    pub entries: usize,
    /// The number of bytes written to files.
    pub bytes: u64,
}

/// Options for unpacking.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Limits on the size.
    pub limits: Limits,
    /// Only entries below one of these folders, such as `configs`, are unpacked; all if there are
    /// none. Other entries count for the limits, but are not checked otherwise.
    pub only: Vec<String>,
    /// Flush the file system before the rename, so that the folder is complete after a power loss,
    /// too. Otherwise it is complete after any end of the process.
    pub durable: bool,
}

/// A folder that is being unpacked.
#[derive(Debug)]
pub struct Unpacker {
    target: PathBuf,
    temporary: PathBuf,
    options: Options,
    tree: Tree,
    layer: usize,
    written: u64,
    finished: bool,
}

/// Unpacks an image of a store into a new folder.
pub fn image(
    store: &ImageStore,
    manifest: &ImageManifest,
    config: &ImageConfig,
    target: &Path,
    options: Options,
) -> Result<UnpackSummary, UnpackError> {
    let mut unpacker = Unpacker::begin(target, options)?;
    for (index, layer) in manifest.layers.iter().enumerate() {
        let (file, _) = store.blob(&layer.digest)?;
        unpacker.layer(file, config.rootfs.diff_ids.get(index))?;
    }
    unpacker.finish()
}

/// Removes temporary folders that killed processes left in a folder, and returns their number. Call
/// it only while nothing unpacks there: at the start of a process that owns the folder.
pub fn sweep(parent: &Path) -> Result<usize, UnpackError> {
    let entries = match fs::read_dir(parent) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(0),
        Err(error) => return Err(failed("cannot read", parent)(error)),
    };
    let mut swept = 0;
    for entry in entries {
        let entry = entry.map_err(failed("cannot read", parent))?;
        let (name, path) = (entry.file_name(), entry.path());
        let ours = name.as_bytes().starts_with(b".") && name.as_bytes().ends_with(UNFINISHED);
        if ours && entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            fs::remove_dir_all(&path).map_err(failed("cannot remove", &path))?;
            swept += 1;
        }
    }
    Ok(swept)
}

impl Unpacker {
    /// Creates the temporary folder. The parent is created if it does not exist; `target` must not
    /// exist.
    pub fn begin(target: &Path, options: Options) -> Result<Self, UnpackError> {
        if target.symlink_metadata().is_ok() {
            return Err(UnpackError::Exists(target.to_owned()));
        }
        let Some(name) = target.file_name() else {
            return Err(UnpackError::Exists(target.to_owned()));
        };
        let parent = match target.parent() {
            Some(parent) if parent != Path::new("") => parent,
            _ => Path::new("."),
        };
        fs::create_dir_all(parent).map_err(failed("cannot make", parent))?;
        let mut random = [0; 8];
        getrandom::fill(&mut random).map_err(|error| {
            failed("cannot name a folder in", parent)(io::Error::other(error.to_string()))
        })?;
        let mut hidden = std::ffi::OsString::from(".");
        hidden.push(name);
        hidden.push(format!(".{}", crate::digest::hex(&random)));
        hidden.push(OsStr::from_bytes(UNFINISHED));
        let temporary = parent.join(hidden);
        fs::create_dir(&temporary).map_err(failed("cannot make", &temporary))?;
        let unpacker = Self {
            target: target.to_owned(),
            temporary,
            options,
            tree: Tree::default(),
            layer: 0,
            written: 0,
            finished: false,
        };
        // No other user gets access before the folder is complete.
        allow(&unpacker.temporary, 0o700)?;
        Ok(unpacker)
    }

    /// Unpacks one more layer over the previous ones. The digest of its uncompressed content must
    /// be `diff_id`, if that is given.
    pub fn layer(&mut self, layer: impl Read, diff_id: Option<&Digest>) -> Result<(), UnpackError> {
        self.layer += 1;
        let number = self.layer;
        let archive = |error: io::Error| limits::error(number, error);
        let packed = CountingReader::new(BufReader::with_capacity(1 << 16, layer));
        let consumed = packed.count();
        let opened = compress::open(packed).map_err(archive)?;
        let algorithm = diff_id.map_or(Algorithm::Sha256, Digest::algorithm);
        let limits = self.options.limits.clone();
        let unpacked =
            limits::LimitedReader::new(opened, consumed, limits, self.tree.volume, algorithm);
        let mut reader = TarReader::new(unpacked);
        loop {
            let entry = match reader.next() {
                Ok(Some(entry)) => entry,
                Ok(None) => break,
                Err(TarError::Io(error)) => return Err(archive(error)),
                Err(source) => return Err(UnpackError::Archive { layer: number, source }),
            };
            self.entry(&entry, &mut reader)?;
        }
        let mut rest = reader.into_inner();
        io::copy(&mut rest, &mut io::sink()).map_err(archive)?;
        let (volume, hasher) = rest.finish();
        self.tree.volume = volume;
        self.tree.end_layer();
        let found = Hasher::finish(hasher);
        match diff_id {
            Some(wanted) if *wanted != found && !mainstay_fault::is_on("any-layer-will-do") => {
                Err(UnpackError::DiffId { layer: number, wanted: wanted.clone(), found })
            }
            _ => Ok(()),
        }
    }

    /// Flushes the folder and renames it to the target.
    pub fn finish(mut self) -> Result<UnpackSummary, UnpackError> {
        // Modes of folders are set last, so that read-only folders can be filled.
        for (path, entry_type) in self.tree.all() {
            if let EntryType::Folder { mode } = entry_type {
                allow(&self.temporary_path(path), (mode & 0o777) | 0o700)?;
            }
        }
        allow(&self.temporary, 0o755)?;
        if self.options.durable {
            let synced = File::open(&self.temporary)
                .and_then(|folder| rustix::fs::syncfs(&folder).map_err(io::Error::from));
            synced.map_err(failed("cannot flush", &self.temporary))?;
        }
        // A plain rename would replace an empty folder of another process.
        let renamed = rustix::fs::renameat_with(
            rustix::fs::CWD,
            &self.temporary,
            rustix::fs::CWD,
            &self.target,
            rustix::fs::RenameFlags::NOREPLACE,
        );
        match renamed {
            Ok(()) => {}
            Err(rustix::io::Errno::EXIST | rustix::io::Errno::NOTEMPTY) => {
                return Err(UnpackError::Exists(self.target.clone()));
            }
            Err(error) => return Err(failed("cannot finish", &self.target)(error.into())),
        }
        self.finished = true;
        Ok(UnpackSummary { entries: self.tree.len(), bytes: self.written })
    }

    fn temporary_path(&self, path: &[u8]) -> PathBuf {
        self.temporary.join(OsStr::from_bytes(path))
    }

    fn refuse(&self, name: &[u8], why: EntryRefusal) -> UnpackError {
        let text: String = String::from_utf8_lossy(name).chars().take(200).collect();
        UnpackError::Entry { layer: self.layer, name: text, why }
    }

    fn limit_error(&self, why: String) -> UnpackError {
        UnpackError::LimitExceeded { layer: self.layer, why }
    }

    fn entry(&mut self, entry: &TarEntry, content: &mut impl Read) -> Result<(), UnpackError> {
        let limits = &self.options.limits;
        let path = tree::clean(&entry.name, limits).map_err(|why| self.refuse(&entry.name, why))?;
        self.tree.count(path.len());
        if self.tree.entries > limits.entries {
            return Err(self.limit_error(format!("there are more than {} entries", limits.entries)));
        }
        if self.tree.names > limits.names {
            return Err(
                self.limit_error(format!("names have more than {} bytes together", limits.names))
            );
        }
        let refused = |why| self.refuse(&entry.name, why);
        if path.is_empty() {
            // The root folder: `./`.
            return if entry.kind == TarEntryKind::Folder {
                Ok(())
            } else {
                Err(refused(EntryRefusal::Nameless))
            };
        }
        let (folder, name) = tree::split(&path);
        if let Some(hidden) = name.strip_prefix(b".wh.") {
            let covered = match hidden {
                b".wh..opq" => self.is_requested(folder),
                // Other names with this prefix are internal to union file systems.
                _ if hidden.starts_with(b".wh.") => return Ok(()),
                b"" | b"." | b".." => return Err(refused(EntryRefusal::Whiteout)),
                _ => self.is_requested(&tree::join(folder, hidden)),
            };
            if !covered {
                return Ok(());
            }
            self.tree.parents(folder).map_err(refused)?;
            let hidden_entries = if hidden == b".wh..opq" {
                self.tree.children_below(folder)
            } else {
                self.tree.below(&tree::join(folder, hidden))
            };
            if mainstay_fault::is_on("whiteouts-hide-nothing") {
                return Ok(());
            }
            return self.remove(&hidden_entries);
        }
        if !self.is_requested(&path) {
            return Ok(());
        }
        if self.tree.is_new(&path) && entry.kind != TarEntryKind::Folder
            || self.tree.is_new_non_folder(&path)
        {
            return Err(refused(EntryRefusal::Twice));
        }
        match entry.kind {
            TarEntryKind::Other(byte) => return Err(refused(EntryRefusal::Special(special(byte)))),
            TarEntryKind::Symlink => {
                tree::check_link_target(&path, &entry.target).map_err(refused)?;
            }
            TarEntryKind::File | TarEntryKind::Folder | TarEntryKind::Hardlink => {}
        }
        let missing = self.tree.parents(folder).map_err(refused)?;
        let source = if entry.kind == TarEntryKind::Hardlink {
            Some(self.hard_link_source(entry)?)
        } else {
            None
        };
        for parent in missing {
            let place = self.temporary_path(&parent);
            fs::create_dir(&place).map_err(failed("cannot make", &place))?;
            self.tree.make(parent, EntryType::Folder { mode: 0o755 });
        }
        let place = self.temporary_path(&path);
        let is_folder = matches!(self.tree.get(&path), Some(EntryType::Folder { .. }));
        if entry.kind == TarEntryKind::Folder {
            if !is_folder {
                let hidden_entries = self.tree.below(&path);
                self.remove(&hidden_entries)?;
                fs::create_dir(&place).map_err(failed("cannot make", &place))?;
            }
            self.tree.make(path, EntryType::Folder { mode: entry.mode });
            return Ok(());
        }
        // Replacing a file by a hard link to itself would remove it.
        if source.as_ref() == Some(&path) {
            return Ok(());
        }
        let hidden_entries = self.tree.below(&path);
        self.remove(&hidden_entries)?;
        let entry_type = match (entry.kind, source) {
            (TarEntryKind::Symlink, _) => {
                symlink(OsStr::from_bytes(&entry.target), &place)
                    .map_err(failed("cannot make", &place))?;
                EntryType::Link
            }
            (_, Some(source)) => {
                fs::hard_link(self.temporary_path(&source), &place)
                    .map_err(failed("cannot make", &place))?;
                EntryType::File
            }
            _ => {
                self.write(&place, entry, content)?;
                EntryType::File
            }
        };
        self.tree.make(path, entry_type);
        Ok(())
    }

    fn hard_link_source(&self, entry: &TarEntry) -> Result<Vec<u8>, UnpackError> {
        let text = || String::from_utf8_lossy(&entry.target).chars().take(200).collect();
        let refused = |why| self.refuse(&entry.name, why);
        let source = tree::clean(&entry.target, &self.options.limits).map_err(|why| {
            refused(match why {
                EntryRefusal::Absolute | EntryRefusal::Traversal => EntryRefusal::LinkOut(text()),
                _ => EntryRefusal::HardLink(text()),
            })
        })?;
        self.tree.parents(tree::split(&source).0).map_err(&refused)?;
        match self.tree.get(&source) {
            Some(EntryType::File) => Ok(source),
            _ => Err(refused(EntryRefusal::HardLink(text()))),
        }
    }

    fn write(
        &mut self,
        place: &Path,
        entry: &TarEntry,
        content: &mut impl Read,
    ) -> Result<(), UnpackError> {
        let bits = if mainstay_fault::is_on("special-bits-are-kept") { 0o7777 } else { 0o777 };
        let mode = (entry.mode & bits) | 0o600;
        let file = OpenOptions::new().write(true).create_new(true).mode(mode).open(place);
        let mut file = file.map_err(failed("cannot make", place))?;
        let mut buffer = vec![0; 1 << 16];
        loop {
            match content.read(&mut buffer) {
                Ok(0) => break,
                Ok(count) => {
                    file.write_all(&buffer[..count]).map_err(failed("cannot write", place))?;
                    self.written += count as u64;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(limits::error(self.layer, error)),
            }
        }
        file.set_permissions(Permissions::from_mode(mode))
            .map_err(failed("cannot set permissions of", place))
    }

    /// Removes entries that an upper layer hides, the deepest first.
    fn remove(&mut self, hidden_entries: &[(Vec<u8>, EntryType)]) -> Result<(), UnpackError> {
        for (path, entry_type) in hidden_entries.iter().rev() {
            let place = self.temporary_path(path);
            let removed = match entry_type {
                EntryType::Folder { .. } => fs::remove_dir(&place),
                EntryType::File | EntryType::Link => fs::remove_file(&place),
            };
            match removed {
                Ok(()) => self.tree.remove(path),
                // The folder has entries of this layer, so it belongs to this layer, too.
                Err(error) if error.kind() == io::ErrorKind::DirectoryNotEmpty => {}
                Err(error) => return Err(failed("cannot remove", &place)(error)),
            }
        }
        Ok(())
    }

    /// Whether a path is below, equal to, or above one of the requested folders.
    fn is_requested(&self, path: &[u8]) -> bool {
        let inside = |inner: &[u8], outer: &[u8]| {
            inner
                .strip_prefix(outer)
                .is_some_and(|rest| outer.is_empty() || rest.is_empty() || rest.starts_with(b"/"))
        };
        let only = &self.options.only;
        only.is_empty()
            || only.iter().any(|one| {
                let one = one.trim_matches('/').as_bytes();
                inside(path, one) || inside(one, path)
            })
    }
}

impl Drop for Unpacker {
    fn drop(&mut self) {
        if !self.finished {
            let _ = fs::remove_dir_all(&self.temporary);
        }
    }
}

fn allow(path: &Path, mode: u32) -> Result<(), UnpackError> {
    fs::set_permissions(path, Permissions::from_mode(mode))
        .map_err(failed("cannot set permissions of", path))
}

fn failed<'p>(
    what: &'static str,
    path: &'p Path,
) -> impl FnOnce(io::Error) -> UnpackError + use<'p> {
    move |source| UnpackError::Io { what, path: path.to_owned(), source }
}

fn special(byte: u8) -> &'static str {
    match byte {
        b'3' => "a character device",
        b'4' => "a block device",
        b'6' => "a named pipe",
        b'S' => "a sparse file",
        _ => "of an unknown type",
    }
}
