//! Making images: the same input gives the same bytes, on another day and machine.
//!
//! Times are zero, owners are root, entries come in the order of their names, each folder before
//! what is in it, and gzip is written by one implementation at one level without a name or a time.

use crate::{
    digest::{Digest, Hasher},
    manifest::{Config, Descriptor, Manifest, media_type},
    platform::Platform,
    store::{Store, StoreError},
};
use flate2::{Compression, GzBuilder, write::GzEncoder};
use std::{
    collections::BTreeMap,
    io::{self, Write},
};
use tar::{EntryType, Header};

/// The files of a layer by their names, which are relative and separated by `/`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Files(BTreeMap<String, (u32, Vec<u8>)>);

/// A name that a layer cannot have.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a name for a file in an image")]
pub struct NameError(String);

impl Files {
    /// Adds a file, readable by everybody; one that is there is replaced.
    pub fn add(&mut self, name: &str, content: impl Into<Vec<u8>>) -> Result<(), NameError> {
        self.add_with_mode(name, 0o644, content)
    }

    /// Adds a file with permissions.
    pub fn add_with_mode(
        &mut self,
        name: &str,
        mode: u32,
        content: impl Into<Vec<u8>>,
    ) -> Result<(), NameError> {
        let part = |part: &str| {
            !matches!(part, "" | "." | "..") && !part.starts_with(".wh.") && !part.contains('\0')
        };
        if !name.split('/').all(part) {
            return Err(NameError(name.to_owned()));
        }
        self.0.insert(name.to_owned(), (mode & 0o777, content.into()));
        Ok(())
    }

    /// The layer as a tar archive.
    ///
    /// # Errors
    ///
    /// When it cannot be written.
    pub fn write(&self, out: impl Write) -> io::Result<()> {
        let mut archive = tar::Builder::new(out);
        let mut folders = std::collections::BTreeSet::new();
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

/// Appends an entry whose header depends on nothing else.
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

/// A header that depends on nothing else.
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
    /// What a manifest says of it.
    pub descriptor: Descriptor,
    /// Its digest when it is not compressed, for the configuration.
    pub diff_id: Digest,
}

/// Hashes what passes.
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

/// Adds a layer of these files, compressed with gzip.
pub fn layer(store: &Store, files: &Files) -> Result<Layer, StoreError> {
    let in_memory = "writing to memory does not fail";
    let failed = |source| StoreError::Io { what: in_memory, path: store.root().to_owned(), source };
    let encoder: GzEncoder<Vec<u8>> =
        GzBuilder::new().operating_system(255).write(Vec::new(), Compression::new(6));
    let mut tee = Tee(encoder, Hasher::new(crate::digest::Algorithm::Sha256));
    files.write(&mut tee).map_err(failed)?;
    let Tee(encoder, hasher) = tee;
    let bytes = encoder.finish().map_err(failed)?;
    store.put(&bytes)?;
    let descriptor = Descriptor::of(media_type::OCI_LAYER_GZIP, &bytes);
    Ok(Layer { descriptor, diff_id: hasher.finish() })
}

/// Adds an image of layers, with a configuration whose layers are filled in here.
pub fn image(
    store: &Store,
    platform: Platform,
    mut config: Config,
    layers: &[Layer],
) -> Result<Descriptor, StoreError> {
    config.platform = platform.clone();
    config.rootfs.diff_ids = layers.iter().map(|layer| layer.diff_id.clone()).collect();
    let config = store.put_json(media_type::OCI_CONFIG, &config)?;
    let layers = layers.iter().map(|layer| layer.descriptor.clone()).collect();
    let manifest = Manifest::oci(config, layers);
    let mut descriptor = store.put_json(media_type::OCI_MANIFEST, &manifest)?;
    descriptor.platform = Some(platform);
    Ok(descriptor)
}
