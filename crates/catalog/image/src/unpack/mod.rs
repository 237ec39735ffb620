//! Layers become a folder, and nothing else changes.
//!
//! ```text
//! layer ─► bytes counted ─► opened ─► bytes counted, hashed ─► entries ─► judged ─► folder aside ─► renamed
//! ```
//!
//! Layers come from strangers. An entry is judged against a tree in memory of all that earlier
//! entries made, never against the disk, so no link can be followed: a name must not be absolute, lead
//! up, or pass through a link; a link must not lead out; devices, pipes and sparse files are refused;
//! nothing is made twice in one layer. All that an archive can be large in has a limit. The folder is
//! made aside, flushed and renamed, so what has the target's name is complete.
//!
//! What this does not do: keep owners, times, extended attributes or special bits of permissions.
//! Everything belongs to this process, and it can read and remove it.

mod limits;
mod tree;

pub use limits::Limits;

use crate::{
    compress,
    digest::{Algorithm, Digest, Hasher},
    manifest::{Config, Manifest},
    store::{Store, StoreError},
    tar::{Entry, Kind, Reader, TarError},
};
use limits::Counted;
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
use tree::{Made, Tree};

/// How the name of a folder ends that is not finished.
const UNFINISHED: &[u8] = b".unpacking";

/// Why a layer is not unpacked. Names are quoted as Rust quotes them, so they cannot forge lines.
#[derive(Debug, thiserror::Error)]
pub enum UnpackError {
    /// The target is there already.
    #[error("{} exists already", .0.display())]
    Exists(PathBuf),
    /// The file system refuses.
    #[error("{what} {}: {source}", path.display())]
    Io {
        /// What was attempted.
        what: &'static str,
        /// With what.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// The layer cannot be read.
    #[error("layer {layer}: {source}")]
    Archive {
        /// Which, from one.
        layer: usize,
        /// Why not.
        source: TarError,
    },
    /// An entry is refused.
    #[error("layer {layer}: entry {name:?} {why}")]
    Entry {
        /// Which layer, from one.
        layer: usize,
        /// The name as it is written, shortened.
        name: String,
        /// What is wrong with it.
        why: Refusal,
    },
    /// Something has too much of something.
    #[error("layer {layer}: {why}")]
    Bomb {
        /// Which layer, from one.
        layer: usize,
        /// What there is too much of.
        why: String,
    },
    /// A layer is not the one that the configuration names.
    #[error("layer {layer} has diff id {found}, and the configuration says {wanted}")]
    DiffId {
        /// Which, from one.
        layer: usize,
        /// What the configuration says.
        wanted: Digest,
        /// What it is.
        found: Digest,
    },
    /// The store does not have the image.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// What is wrong with an entry.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// It begins with a slash.
    #[error("has an absolute name")]
    Absolute,
    /// It has `..` in it.
    #[error("leads out of the folder")]
    Traversal,
    /// It names nothing.
    #[error("has no name")]
    Nameless,
    /// It has a byte that names cannot have.
    #[error("has a zero byte in its name")]
    Zero,
    /// One of the folders above it is a link.
    #[error("passes through the link {0:?}")]
    ThroughLink(String),
    /// One of the folders above it is no folder.
    #[error("lies in {0:?}, which is no folder")]
    NotInFolder(String),
    /// A link leads somewhere else.
    #[error("is a link to {0:?}, which leads out of the folder")]
    LinkOut(String),
    /// A link's target cannot be judged.
    #[error("is a link to {0:?}, which leads up again after it led down")]
    LinkWinding(String),
    /// A hard link to what is no file of the image.
    #[error("is a hard link to {0:?}, which is no file that was unpacked before")]
    HardLink(String),
    /// A device, a pipe, or an unknown type.
    #[error("is {0}, which is not content")]
    Special(&'static str),
    /// There are two of it.
    #[error("is in the layer twice")]
    Twice,
    /// A whiteout that hides nothing.
    #[error("is a whiteout of nothing")]
    Whiteout,
    /// The name or a part of it is too long.
    #[error("has a name that is longer than {0} bytes")]
    LongName(usize),
    /// It is too deep.
    #[error("lies deeper than {0} folders")]
    Deep(usize),
}

/// What was unpacked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// How many files, folders and links there are.
    pub entries: usize,
    /// How many bytes files were written with.
    pub bytes: u64,
}

/// How layers are unpacked.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Limits.
    pub limits: Limits,
    /// Only what lies below one of these folders, such as `configs`; everything if there are none.
    /// What lies elsewhere is read past: it counts for the limits, but is not judged further.
    pub only: Vec<String>,
    /// Flush the file system before the folder gets its name, so that it is complete after a loss of
    /// power, too. Without it, it is complete after any end of the process.
    pub durable: bool,
}

/// A folder that is being made.
#[derive(Debug)]
pub struct Unpacker {
    target: PathBuf,
    aside: PathBuf,
    options: Options,
    tree: Tree,
    layer: usize,
    written: u64,
    finished: bool,
}

/// Unpacks an image of a store to a folder that does not exist yet.
pub fn image(
    store: &Store,
    manifest: &Manifest,
    config: &Config,
    target: &Path,
    options: Options,
) -> Result<Summary, UnpackError> {
    let mut unpacker = Unpacker::begin(target, options)?;
    for (index, layer) in manifest.layers.iter().enumerate() {
        let (file, _) = store.blob(&layer.digest)?;
        unpacker.layer(file, config.rootfs.diff_ids.get(index))?;
    }
    unpacker.finish()
}

/// Removes what unpackings left in a folder that were killed; how many there were. Only for when
/// nobody unpacks there: at the start of a process that owns the folder.
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
    /// Begins a folder. Its parent is made if it is not there; `target` itself must not be.
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
        let aside = parent.join(hidden);
        fs::create_dir(&aside).map_err(failed("cannot make", &aside))?;
        let made = Self {
            target: target.to_owned(),
            aside,
            options,
            tree: Tree::default(),
            layer: 0,
            written: 0,
            finished: false,
        };
        // Nobody else comes in while it grows.
        allow(&made.aside, 0o700)?;
        Ok(made)
    }

    /// Unpacks one more layer over those before. Its digest when it is not compressed must be
    /// `diff_id`, if that is known.
    pub fn layer(&mut self, layer: impl Read, diff_id: Option<&Digest>) -> Result<(), UnpackError> {
        self.layer += 1;
        let number = self.layer;
        let archive = |error: io::Error| limits::error(number, error);
        let packed = Counted::new(BufReader::with_capacity(1 << 16, layer));
        let consumed = packed.count();
        let opened = compress::open(packed).map_err(archive)?;
        let algorithm = diff_id.map_or(Algorithm::Sha256, Digest::algorithm);
        let limits = self.options.limits.clone();
        let unpacked = limits::Guard::new(opened, consumed, limits, self.tree.volume, algorithm);
        let mut reader = Reader::new(unpacked);
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

    /// Flushes the folder and gives it its name.
    pub fn finish(mut self) -> Result<Summary, UnpackError> {
        // Permissions of folders come last, so that one without them can be filled.
        for (path, made) in self.tree.all() {
            if let Made::Folder { mode } = made {
                allow(&self.place(path), (mode & 0o777) | 0o700)?;
            }
        }
        allow(&self.aside, 0o755)?;
        if self.options.durable {
            let synced = File::open(&self.aside)
                .and_then(|folder| rustix::fs::syncfs(&folder).map_err(io::Error::from));
            synced.map_err(failed("cannot flush", &self.aside))?;
        }
        // An empty folder could be replaced by renaming; somebody else's shall not be.
        let renamed = rustix::fs::renameat_with(
            rustix::fs::CWD,
            &self.aside,
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
        Ok(Summary { entries: self.tree.len(), bytes: self.written })
    }

    fn place(&self, path: &[u8]) -> PathBuf {
        self.aside.join(OsStr::from_bytes(path))
    }

    fn refuse(&self, name: &[u8], why: Refusal) -> UnpackError {
        let text: String = String::from_utf8_lossy(name).chars().take(200).collect();
        UnpackError::Entry { layer: self.layer, name: text, why }
    }

    fn bomb(&self, why: String) -> UnpackError {
        UnpackError::Bomb { layer: self.layer, why }
    }

    fn entry(&mut self, entry: &Entry, content: &mut impl Read) -> Result<(), UnpackError> {
        let limits = &self.options.limits;
        let path = tree::clean(&entry.name, limits).map_err(|why| self.refuse(&entry.name, why))?;
        self.tree.count(path.len());
        if self.tree.seen > limits.entries {
            return Err(self.bomb(format!("there are more than {} entries", limits.entries)));
        }
        if self.tree.names > limits.names {
            return Err(self.bomb(format!("names have more than {} bytes together", limits.names)));
        }
        let refused = |why| self.refuse(&entry.name, why);
        if path.is_empty() {
            // The root itself: `./`.
            return if entry.kind == Kind::Folder {
                Ok(())
            } else {
                Err(refused(Refusal::Nameless))
            };
        }
        let (folder, name) = tree::split(&path);
        if let Some(hidden) = name.strip_prefix(b".wh.") {
            let covered = match hidden {
                b".wh..opq" => self.wanted(folder),
                // Other names like this are a union file system's own business.
                _ if hidden.starts_with(b".wh.") => return Ok(()),
                b"" | b"." | b".." => return Err(refused(Refusal::Whiteout)),
                _ => self.wanted(&tree::join(folder, hidden)),
            };
            if !covered {
                return Ok(());
            }
            self.tree.parents(folder).map_err(refused)?;
            let gone = if hidden == b".wh..opq" {
                self.tree.children_below(folder)
            } else {
                self.tree.below(&tree::join(folder, hidden))
            };
            if mainstay_fault::is_on("whiteouts-hide-nothing") {
                return Ok(());
            }
            return self.remove(&gone);
        }
        if !self.wanted(&path) {
            return Ok(());
        }
        if self.tree.is_new(&path) && entry.kind != Kind::Folder || self.tree.is_new_other(&path) {
            return Err(refused(Refusal::Twice));
        }
        match entry.kind {
            Kind::Other(byte) => return Err(refused(Refusal::Special(special(byte)))),
            Kind::Symlink => tree::leads_inside(&path, &entry.target).map_err(refused)?,
            Kind::File | Kind::Folder | Kind::Hardlink => {}
        }
        let missing = self.tree.parents(folder).map_err(refused)?;
        let source =
            if entry.kind == Kind::Hardlink { Some(self.hard_link_source(entry)?) } else { None };
        for parent in missing {
            let place = self.place(&parent);
            fs::create_dir(&place).map_err(failed("cannot make", &place))?;
            self.tree.make(parent, Made::Folder { mode: 0o755 });
        }
        let place = self.place(&path);
        let is_folder = matches!(self.tree.get(&path), Some(Made::Folder { .. }));
        if entry.kind == Kind::Folder {
            if !is_folder {
                let gone = self.tree.below(&path);
                self.remove(&gone)?;
                fs::create_dir(&place).map_err(failed("cannot make", &place))?;
            }
            self.tree.make(path, Made::Folder { mode: entry.mode });
            return Ok(());
        }
        // A hard link to itself, over what an earlier layer has, would lose the file.
        if source.as_ref() == Some(&path) {
            return Ok(());
        }
        let gone = self.tree.below(&path);
        self.remove(&gone)?;
        let made = match (entry.kind, source) {
            (Kind::Symlink, _) => {
                symlink(OsStr::from_bytes(&entry.target), &place)
                    .map_err(failed("cannot make", &place))?;
                Made::Link
            }
            (_, Some(source)) => {
                fs::hard_link(self.place(&source), &place)
                    .map_err(failed("cannot make", &place))?;
                Made::File
            }
            _ => {
                self.write(&place, entry, content)?;
                Made::File
            }
        };
        self.tree.make(path, made);
        Ok(())
    }

    fn hard_link_source(&self, entry: &Entry) -> Result<Vec<u8>, UnpackError> {
        let text = || String::from_utf8_lossy(&entry.target).chars().take(200).collect();
        let refused = |why| self.refuse(&entry.name, why);
        let source = tree::clean(&entry.target, &self.options.limits).map_err(|why| {
            refused(match why {
                Refusal::Absolute | Refusal::Traversal => Refusal::LinkOut(text()),
                _ => Refusal::HardLink(text()),
            })
        })?;
        self.tree.parents(tree::split(&source).0).map_err(&refused)?;
        match self.tree.get(&source) {
            Some(Made::File) => Ok(source),
            _ => Err(refused(Refusal::HardLink(text()))),
        }
    }

    fn write(
        &mut self,
        place: &Path,
        entry: &Entry,
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

    /// Removes what an upper layer hides, the deepest first.
    fn remove(&mut self, gone: &[(Vec<u8>, Made)]) -> Result<(), UnpackError> {
        for (path, made) in gone.iter().rev() {
            let place = self.place(path);
            let removed = match made {
                Made::Folder { .. } => fs::remove_dir(&place),
                Made::File | Made::Link => fs::remove_file(&place),
            };
            match removed {
                Ok(()) => self.tree.unmake(path),
                // The folder has something of this layer in it, so it is one of this layer, too.
                Err(error) if error.kind() == io::ErrorKind::DirectoryNotEmpty => {}
                Err(error) => return Err(failed("cannot remove", &place)(error)),
            }
        }
        Ok(())
    }

    /// Whether a path is below, is, or is above one of the folders that are asked for.
    fn wanted(&self, path: &[u8]) -> bool {
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
            let _ = fs::remove_dir_all(&self.aside);
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
