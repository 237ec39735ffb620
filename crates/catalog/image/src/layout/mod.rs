//! Image layouts and archives: OCI image layouts, `oci-archive` and `docker-archive`.
//!
//! All are read into an [`ImageStore`] and written from one. Reading verifies digests. The written bytes
//! depend only on the images and their names.

mod add;
mod archive;
mod docker;
mod write;

pub use add::put_folder;
pub use write::{write_archive, write_docker_archive, write_folder};

use crate::{
    digest::{Digest, DigestError},
    manifest::{self, Descriptor, ImageDocument, ImageIndex, ImageManifestError, within},
    store::{ImageStore, ImageStoreError},
};
use serde::Deserialize;
use std::{
    fs::{self, File},
    io::{self, Read},
    path::{Path, PathBuf},
};

/// The annotation with the name of an image in a layout: a tag, or a whole reference.
pub const REF_NAME: &str = "org.opencontainers.image.ref.name";
/// The annotation of containerd and Docker with the whole reference of an image.
pub const IMAGE_NAME: &str = "io.containerd.image.name";

/// Why a layout or an archive cannot be read or written.
#[derive(Debug, thiserror::Error)]
pub enum LayoutError {
    /// The file system fails, or the archive is truncated.
    #[error("{what} {}: {source}", path.display())]
    Io {
        /// The attempted operation.
        what: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// Why it fails.
        source: io::Error,
    },
    /// The file is not a valid tar archive.
    #[error("{}: {source}", path.display())]
    Archive {
        /// The archive.
        path: PathBuf,
        /// Why it is invalid.
        source: crate::tar::TarError,
    },
    /// The content is neither a layout nor a Docker archive.
    #[error("{} has neither an oci-layout nor a manifest.json in it", .0.display())]
    Unknown(PathBuf),
    /// A part is missing.
    #[error("{} has no {name}", path.display())]
    Missing {
        /// The layout.
        path: PathBuf,
        /// The missing part.
        name: String,
    },
    /// A part is malformed.
    #[error("{}: {name}: {source}", path.display())]
    Document {
        /// The layout.
        path: PathBuf,
        /// The part.
        name: String,
        /// Why it is malformed.
        source: ImageManifestError,
    },
    /// The layout has an unsupported version.
    #[error("{} has image layout version {version:?}, and 1.0.0 is supported", path.display())]
    Version {
        /// The layout.
        path: PathBuf,
        /// The version.
        version: String,
    },
    /// A layer of a Docker archive does not have the diff id in the configuration.
    #[error("{}: layer {name:?} has diff id {found}, and the configuration says {wanted}", path.display())]
    DiffId {
        /// The archive.
        path: PathBuf,
        /// The layer.
        name: String,
        /// The diff id in the configuration.
        wanted: Digest,
        /// The diff id of the layer.
        found: Digest,
    },
    /// Indexes are nested too deeply.
    #[error("indexes are nested deeper than {} levels", manifest::DEEPEST_INDEX)]
    TooDeep,
    /// The archive exceeds a limit.
    #[error("{} has more than {limit} {what}", path.display())]
    TooMany {
        /// The archive.
        path: PathBuf,
        /// What exceeds the limit.
        what: &'static str,
        /// The limit.
        limit: u64,
    },
    /// The target exists.
    #[error("{} exists already", .0.display())]
    Exists(PathBuf),
    /// A digest is invalid.
    #[error("invalid digest: {0}")]
    Digest(#[from] DigestError),
    /// The store fails.
    #[error(transparent)]
    Store(#[from] ImageStoreError),
}

/// An image in a layout, with its names there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedImage {
    /// Tags or whole references; empty for an image without a name.
    pub names: Vec<String>,
    /// The descriptor for the store.
    pub descriptor: Descriptor,
}

/// The content of a part, and its length.
type Content<'p> = (Box<dyn Read + 'p>, u64);

/// A container of named parts: a folder or an archive.
trait Parts {
    fn path(&self) -> &Path;
    /// Opens a part; none if it does not exist.
    fn open(&self, name: &str) -> Result<Option<Content<'_>>, LayoutError>;

    fn bytes(&self, name: &str, limit: u64) -> Result<Option<Vec<u8>>, LayoutError> {
        let Some((reader, length)) = self.open(name)? else { return Ok(None) };
        within(length, limit).map_err(document(self.path(), name))?;
        let mut bytes = Vec::new();
        let path = self.path();
        let failed =
            |source| LayoutError::Io { what: "cannot read", path: path.to_owned(), source };
        reader.take(limit + 1).read_to_end(&mut bytes).map_err(failed)?;
        within(bytes.len() as u64, limit).map_err(document(self.path(), name))?;
        Ok(Some(bytes))
    }

    fn require(&self, name: &str, limit: u64) -> Result<Vec<u8>, LayoutError> {
        self.bytes(name, limit)?.ok_or_else(|| missing(self.path(), name))
    }
}

fn missing(path: &Path, name: &str) -> LayoutError {
    LayoutError::Missing { path: path.to_owned(), name: name.to_owned() }
}

fn document<'p>(
    path: &'p Path,
    name: &'p str,
) -> impl FnOnce(ImageManifestError) -> LayoutError + use<'p> {
    move |source| LayoutError::Document { path: path.to_owned(), name: name.to_owned(), source }
}

/// A layout in a folder. Its parts have fixed names or digests as names, so none leads outside.
struct Folder(PathBuf);

impl Parts for Folder {
    fn path(&self) -> &Path {
        &self.0
    }

    fn open(&self, name: &str) -> Result<Option<Content<'_>>, LayoutError> {
        let path = self.0.join(name);
        // Opening a pipe would block until another process writes to it.
        let opened = fs::metadata(&path).and_then(|about| {
            if about.is_file() {
                Ok((File::open(&path)?, about.len()))
            } else {
                Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not a regular file"))
            }
        });
        match opened {
            Ok((file, length)) => Ok(Some((Box::new(file), length))),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(source) => Err(LayoutError::Io { what: "cannot read", path, source }),
        }
    }
}

/// Reads the images of a layout or an archive into a store.
///
/// Archives may be compressed. An archive that is both a layout and a Docker archive (as Docker
/// writes them since version 25) is read as a layout.
pub fn read(store: &ImageStore, path: &Path) -> Result<Vec<NamedImage>, LayoutError> {
    let about = fs::metadata(path).map_err(|source| LayoutError::Io {
        what: "cannot read",
        path: path.to_owned(),
        source,
    })?;
    if about.is_dir() {
        return read_parts(store, &Folder(path.to_owned()));
    }
    if !about.is_file() {
        let source =
            io::Error::new(io::ErrorKind::InvalidInput, "it is neither a file nor a folder");
        return Err(LayoutError::Io { what: "cannot read", path: path.to_owned(), source });
    }
    read_parts(store, &archive::Archive::open(store, path)?)
}

#[derive(Deserialize)]
struct Version {
    #[serde(rename = "imageLayoutVersion", default)]
    version: String,
}

/// Whether the parts are a layout. An unsupported version is an error.
fn is_layout(parts: &dyn Parts) -> Result<bool, LayoutError> {
    let Some(version) = parts.bytes("oci-layout", 4096)? else { return Ok(false) };
    let version: Version = serde_json::from_slice(&version)
        .map_err(|error| document(parts.path(), "oci-layout")(error.into()))?;
    if version.version == "1.0.0" {
        return Ok(true);
    }
    Err(LayoutError::Version { path: parts.path().to_owned(), version: version.version })
}

fn read_parts(store: &ImageStore, parts: &dyn Parts) -> Result<Vec<NamedImage>, LayoutError> {
    if !is_layout(parts)? {
        let Some(list) = parts.bytes("manifest.json", manifest::LONGEST_MANIFEST)? else {
            return Err(LayoutError::Unknown(parts.path().to_owned()));
        };
        return docker::read(store, parts, &list);
    }
    let index = parts.require("index.json", manifest::LONGEST_MANIFEST)?;
    let index: ImageIndex = serde_json::from_slice(&index)
        .map_err(|error| document(parts.path(), "index.json")(error.into()))?;
    let mut found: Vec<NamedImage> = Vec::new();
    for mut descriptor in index.manifests {
        copy(store, parts, &descriptor, 0)?;
        let mut names = Vec::new();
        for key in [REF_NAME, IMAGE_NAME] {
            names.extend(descriptor.annotations.remove(key));
        }
        match found.iter_mut().find(|one| one.descriptor.digest == descriptor.digest) {
            Some(known) => known.names.extend(names),
            None => found.push(NamedImage { names, descriptor }),
        }
    }
    Ok(found)
}

fn blob_name(digest: &Digest) -> String {
    format!("blobs/{}/{}", digest.algorithm().name(), digest.hex())
}

/// Copies a document and all its parts. Missing images of an index are skipped, because layouts
/// with one of several platforms are common.
fn copy(
    store: &ImageStore,
    parts: &dyn Parts,
    descriptor: &Descriptor,
    depth: usize,
) -> Result<(), LayoutError> {
    if depth > manifest::DEEPEST_INDEX {
        return Err(LayoutError::TooDeep);
    }
    let name = blob_name(&descriptor.digest);
    let bytes = parts.require(&name, manifest::LONGEST_MANIFEST)?;
    let found = descriptor.digest.same_of(&bytes);
    if found != descriptor.digest {
        return Err(ImageStoreError::Digest { wanted: descriptor.digest.clone(), found }.into());
    }
    let read = ImageDocument::read(&bytes, Some(&descriptor.media_type));
    let read = read.map_err(document(parts.path(), &name))?;
    for part in read.parts() {
        let name = blob_name(&part.digest);
        match &read {
            ImageDocument::Index(_) => {
                if parts.open(&name)?.is_some() {
                    copy(store, parts, part, depth + 1)?;
                }
            }
            ImageDocument::Manifest(_) => {
                let Some((mut content, _)) = parts.open(&name)? else {
                    return Err(missing(parts.path(), &name));
                };
                store.take(&mut content, &part.digest, Some(part.size))?;
            }
        }
    }
    store.take(&mut bytes.as_slice(), &descriptor.digest, Some(descriptor.size))?;
    Ok(())
}
