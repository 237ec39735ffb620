//! Reproducible building of images: the same input gives the same bytes on any day and machine.
//!
//! Times are zero, owners are root, and entries are sorted by name, each folder before its content.
//! One gzip implementation at one level compresses layers, without a name or a time.

use crate::{
    digest::{Digest, Hasher},
    manifest::{Descriptor, ImageConfig, ImageIndex, ImageManifest, media_type},
    platform::Platform,
    store::{self, ImageStore, ImageStoreError},
};
use flate2::{Compression, GzBuilder, write::GzEncoder};
use std::{
    collections::{BTreeMap, BTreeSet},
    io::{self, Read, Write},
};
use tar::{EntryType, Header};

/// The files of a layer by name. Names are relative, with `/` between the parts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LayerFiles(BTreeMap<String, (u32, Vec<u8>)>);

/// A file of a layer cannot have this name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a name for a file in an image")]
pub struct LayerNameError(String);

impl LayerFiles {
    /// Adds a file with mode 0644; it replaces one of the same name.
    pub fn add(&mut self, name: &str, content: impl Into<Vec<u8>>) -> Result<(), LayerNameError> {
        self.add_with_mode(name, 0o644, content)
    }

    /// Adds a file with a mode.
    pub fn add_with_mode(
        &mut self,
        name: &str,
        mode: u32,
        content: impl Into<Vec<u8>>,
    ) -> Result<(), LayerNameError> {
        checked(name)?;
        self.0.insert(name.to_owned(), (mode & 0o777, content.into()));
        Ok(())
    }

    /// Writes the layer as a tar archive.
    ///
    /// # Errors
    ///
    /// If it cannot be written.
    pub fn write(&self, out: impl Write) -> io::Result<()> {
        let mut archive = tar::Builder::new(out);
        let mut folders = BTreeSet::new();
        for (name, (mode, content)) in &self.0 {
            for (place, _) in name.match_indices('/') {
                let folder = &name[..=place];
                if folders.insert(folder) {
                    append(&mut archive, folder, EntryType::Directory, 0o755, &[])?;
                }
            }
            append(&mut archive, name, EntryType::Regular, *mode, content)?;
        }
        archive.into_inner().map(drop)
    }
}

/// Checks that a name is relative, without `..`, and not a whiteout.
fn checked(name: &str) -> Result<(), LayerNameError> {
    let part = |part: &str| {
        !matches!(part, "" | "." | "..") && !part.starts_with(".wh.") && !part.contains('\0')
    };
    if name.split('/').all(part) { Ok(()) } else { Err(LayerNameError(name.to_owned())) }
}

/// Appends an entry with a reproducible header.
pub(crate) fn append(
    archive: &mut tar::Builder<impl Write>,
    name: &str,
    kind: EntryType,
    mode: u32,
    content: &[u8],
) -> io::Result<()> {
    let mut header = header(kind, mode, content.len() as u64);
    archive.append_data(&mut header, name, content)
}

/// A reproducible header.
pub(crate) fn header(kind: EntryType, mode: u32, size: u64) -> Header {
    let mut header = Header::new_ustar();
    header.set_entry_type(kind);
    header.set_mode(mode);
    header.set_size(size);
    header.set_mtime(0);
    header.set_uid(0);
    header.set_gid(0);
    header
}

/// A layer in a store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layer {
    /// The descriptor for a manifest.
    pub descriptor: Descriptor,
    /// The digest of the uncompressed layer, for the configuration.
    pub diff_id: Digest,
}

/// Why a layer cannot be written.
#[derive(Debug, thiserror::Error)]
pub enum LayerError {
    /// The name of a file is invalid.
    #[error(transparent)]
    Name(#[from] LayerNameError),
    /// Names are not in order, or repeated: the bytes would not be reproducible.
    #[error(
        "{0:?} is not in order: files of a layer are added in the order of their names, each once"
    )]
    Order(String),
    /// A file changes its length while it is read.
    #[error("{0:?} was changed while it was read")]
    Changed(String),
    /// A file cannot be read.
    #[error("{name:?} cannot be read: {source}")]
    Read {
        /// The file.
        name: String,
        /// Why it cannot be read.
        source: io::Error,
    },
    /// The store fails.
    #[error(transparent)]
    Store(#[from] ImageStoreError),
}

/// Hashes the bytes that it passes on.
struct Tee<W>(W, Hasher);

impl<W: Write> Write for Tee<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let count = self.0.write(bytes)?;
        self.1.update(&bytes[..count]);
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

/// A blob of the store, as a writer.
struct Blob(store::BlobWriter);

impl Write for Blob {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.append(bytes).map_err(io::Error::other)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The content of a file. It keeps a read error, to distinguish it from an error of the archive.
struct Counted<R> {
    inner: R,
    count: u64,
    failed: Option<io::Error>,
}

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self.inner.read(buffer) {
            Ok(count) => {
                self.count += count as u64;
                Ok(count)
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => Err(error),
            Err(error) => {
                self.failed = Some(error);
                Err(io::ErrorKind::Other.into())
            }
        }
    }
}

/// Writes a layer file by file, without a whole file in memory.
pub struct LayerWriter {
    archive: tar::Builder<Tee<GzEncoder<Blob>>>,
    folders: BTreeSet<String>,
    last: Option<String>,
}

impl std::fmt::Debug for LayerWriter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LayerWriter").field("last", &self.last).finish_non_exhaustive()
    }
}

impl LayerWriter {
    /// Begins a layer in a store, compressed with gzip.
    pub fn new(store: &ImageStore) -> Result<Self, ImageStoreError> {
        let blob = Blob(store.writer(u64::MAX)?);
        let encoder = GzBuilder::new().operating_system(255).write(blob, Compression::new(6));
        let tee = Tee(encoder, Hasher::new(crate::digest::Algorithm::Sha256));
        Ok(Self { archive: tar::Builder::new(tee), folders: BTreeSet::new(), last: None })
    }

    /// Adds a file of `size` bytes with a mode, and its parent folders. Names must be added in the
    /// order of their bytes.
    pub fn add(
        &mut self,
        name: &str,
        mode: u32,
        size: u64,
        content: impl Read,
    ) -> Result<(), LayerError> {
        checked(name)?;
        if self.last.as_deref().is_some_and(|last| last >= name) {
            return Err(LayerError::Order(name.to_owned()));
        }
        let unwritten = |source| {
            let what = "cannot write a layer that begins with";
            LayerError::Store(ImageStoreError::Io { what, path: name.into(), source })
        };
        for (place, _) in name.match_indices('/') {
            let folder = &name[..=place];
            if self.folders.insert(folder.to_owned()) {
                append(&mut self.archive, folder, EntryType::Directory, 0o755, &[])
                    .map_err(unwritten)?;
            }
        }
        let mut header = header(EntryType::Regular, mode & 0o777, size);
        let mut content = Counted { inner: content, count: 0, failed: None };
        let added = self.archive.append_data(&mut header, name, (&mut content).take(size));
        if let Some(source) = content.failed.take() {
            return Err(LayerError::Read { name: name.to_owned(), source });
        }
        added.map_err(unwritten)?;
        if content.count != size || content.read(&mut [0]).is_ok_and(|more| more > 0) {
            return Err(LayerError::Changed(name.to_owned()));
        }
        self.last = Some(name.to_owned());
        Ok(())
    }

    /// Finishes the layer and commits it to the store.
    pub fn finish(self) -> Result<Layer, ImageStoreError> {
        let failed = |source| ImageStoreError::Io {
            what: "cannot write a layer to",
            path: "the store".into(),
            source,
        };
        let Tee(encoder, hasher) = self.archive.into_inner().map_err(failed)?;
        let Blob(writer) = encoder.finish().map_err(failed)?;
        let size = writer.length();
        let digest = writer.commit(None, None)?;
        let descriptor = Descriptor::new(media_type::OCI_LAYER_GZIP, digest, size);
        Ok(Layer { descriptor, diff_id: hasher.finish() })
    }
}

/// Adds a layer of these files to the store, compressed with gzip.
pub fn layer(store: &ImageStore, files: &LayerFiles) -> Result<Layer, LayerError> {
    let mut writer = LayerWriter::new(store)?;
    for (name, (mode, content)) in &files.0 {
        writer.add(name, *mode, content.len() as u64, content.as_slice())?;
    }
    Ok(writer.finish()?)
}

/// Adds an index with the same image for each platform, in the given order. This is for content
/// that does not run, such as catalogs: a client of any platform finds its image.
pub fn for_platforms(
    store: &ImageStore,
    platforms: &[Platform],
    config: &ImageConfig,
    layers: &[Layer],
) -> Result<Descriptor, ImageStoreError> {
    let images = platforms.iter().map(|one| image(store, one.clone(), config.clone(), layers));
    let images = images.collect::<Result<Vec<_>, _>>()?;
    store.put_json(media_type::OCI_INDEX, &ImageIndex::oci(images))
}

/// Adds an image of layers. This sets the platform and the layers in the configuration.
pub fn image(
    store: &ImageStore,
    platform: Platform,
    mut config: ImageConfig,
    layers: &[Layer],
) -> Result<Descriptor, ImageStoreError> {
    config.platform = platform.clone();
    config.rootfs.diff_ids = layers.iter().map(|layer| layer.diff_id.clone()).collect();
    let config = store.put_json(media_type::OCI_CONFIG, &config)?;
    let layers = layers.iter().map(|layer| layer.descriptor.clone()).collect();
    let manifest = ImageManifest::oci(config, layers);
    let mut descriptor = store.put_json(media_type::OCI_MANIFEST, &manifest)?;
    descriptor.platform = Some(platform);
    Ok(descriptor)
}
