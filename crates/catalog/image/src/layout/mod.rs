//! Images in folders and archives: OCI image layouts, `oci-archive` and `docker-archive`.
//!
//! All are read into a [`Store`] and written from one. What is read is verified on the way; what is
//! written depends on nothing but the images and their names.

mod add;
mod archive;
mod docker;
mod write;

pub use add::put_folder;
pub use write::{write_archive, write_docker_archive, write_folder};

use crate::{
    digest::{Digest, DigestError},
    manifest::{self, Descriptor, Document, Index, ManifestError, within},
    store::{Store, StoreError},
};
use serde::Deserialize;
use std::{
    fs::{self, File},
    io::{self, Read},
    path::{Path, PathBuf},
};

/// The annotation of a descriptor that names it in a layout: a tag, or a whole reference.
pub const REF_NAME: &str = "org.opencontainers.image.ref.name";
/// The one that containerd and Docker add, a whole reference.
pub const IMAGE_NAME: &str = "io.containerd.image.name";

/// Why a layout or an archive is not read or written.
#[derive(Debug, thiserror::Error)]
pub enum LayoutError {
    /// The file system refuses, or the archive ends too early.
    #[error("{what} {}: {source}", path.display())]
    Io {
        /// What was attempted.
        what: &'static str,
        /// With what.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// A tar archive that is none.
    #[error("{}: {source}", path.display())]
    Archive {
        /// Which.
        path: PathBuf,
        /// Why not.
        source: crate::tar::TarError,
    },
    /// It is neither a layout nor an archive of Docker.
    #[error("{} has neither an oci-layout nor a manifest.json in it", .0.display())]
    Unknown(PathBuf),
    /// A part is missing.
    #[error("{} has no {name}", path.display())]
    Missing {
        /// Which layout.
        path: PathBuf,
        /// What is missing.
        name: String,
    },
    /// A part cannot be read.
    #[error("{}: {name}: {source}", path.display())]
    Document {
        /// Which layout.
        path: PathBuf,
        /// Which part.
        name: String,
        /// Why not.
        source: ManifestError,
    },
    /// The layout is of a later format.
    #[error("{} has image layout version {version:?}, and 1.0.0 is supported", path.display())]
    Version {
        /// Which layout.
        path: PathBuf,
        /// Its version.
        version: String,
    },
    /// A layer of a Docker archive is not the one that the configuration names.
    #[error("{}: layer {name:?} has diff id {found}, and the configuration says {wanted}", path.display())]
    DiffId {
        /// Which archive.
        path: PathBuf,
        /// Which layer.
        name: String,
        /// What the configuration says.
        wanted: Digest,
        /// What it is.
        found: Digest,
    },
    /// Indexes lie in each other without end.
    #[error("indexes lie deeper in each other than {}", manifest::DEEPEST_INDEX)]
    TooDeep,
    /// More than any real one has.
    #[error("{} has more than {limit} {what}", path.display())]
    TooMany {
        /// Which archive.
        path: PathBuf,
        /// What there is too much of.
        what: &'static str,
        /// The limit.
        limit: u64,
    },
    /// There is a target already.
    #[error("{} exists already", .0.display())]
    Exists(PathBuf),
    /// A digest in it.
    #[error("invalid digest: {0}")]
    Digest(#[from] DigestError),
    /// The store refuses.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// An image that was read: its names in the layout, as they are written there, and what it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Named {
    /// Names: tags or whole references. None if it has none.
    pub names: Vec<String>,
    /// What a store knows it by.
    pub descriptor: Descriptor,
}

/// The content of a part, and its length.
type Content<'p> = (Box<dyn Read + 'p>, u64);

/// Something with named parts: a folder or an archive.
trait Parts {
    fn path(&self) -> &Path;
    /// A part, with its length; none if it is not there.
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

    fn needed(&self, name: &str, limit: u64) -> Result<Vec<u8>, LayoutError> {
        self.bytes(name, limit)?.ok_or_else(|| missing(self.path(), name))
    }
}

fn missing(path: &Path, name: &str) -> LayoutError {
    LayoutError::Missing { path: path.to_owned(), name: name.to_owned() }
}

fn document<'p>(
    path: &'p Path,
    name: &'p str,
) -> impl FnOnce(ManifestError) -> LayoutError + use<'p> {
    move |source| LayoutError::Document { path: path.to_owned(), name: name.to_owned(), source }
}

/// A layout in a folder. Its parts have fixed names or are named by digest, so none leads out.
struct Folder(PathBuf);

impl Parts for Folder {
    fn path(&self) -> &Path {
        &self.0
    }

    fn open(&self, name: &str) -> Result<Option<Content<'_>>, LayoutError> {
        let path = self.0.join(name);
        // Opening a pipe would wait for somebody to write to it.
        let opened = fs::metadata(&path).and_then(|about| {
            if about.is_file() {
                Ok((File::open(&path)?, about.len()))
            } else {
                Err(io::Error::new(io::ErrorKind::InvalidInput, "it is no file"))
            }
        });
        match opened {
            Ok((file, length)) => Ok(Some((Box::new(file), length))),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(source) => Err(LayoutError::Io { what: "cannot read", path, source }),
        }
    }
}

/// Reads the images of a layout or an archive, whichever it is, into a store.
///
/// Archives may be compressed. One that is both (as Docker writes them since version 25) is read as a
/// layout.
pub fn read(store: &Store, path: &Path) -> Result<Vec<Named>, LayoutError> {
    let about = fs::metadata(path).map_err(|source| LayoutError::Io {
        what: "cannot read",
        path: path.to_owned(),
        source,
    })?;
    if about.is_dir() {
        return read_parts(store, &Folder(path.to_owned()));
    }
    if !about.is_file() {
        let source = io::Error::new(io::ErrorKind::InvalidInput, "it is neither file nor folder");
        return Err(LayoutError::Io { what: "cannot read", path: path.to_owned(), source });
    }
    read_parts(store, &archive::Archive::open(store, path)?)
}

#[derive(Deserialize)]
struct Version {
    #[serde(rename = "imageLayoutVersion", default)]
    version: String,
}

/// Whether it is a layout; one of a later format is refused.
fn is_layout(parts: &dyn Parts) -> Result<bool, LayoutError> {
    let Some(version) = parts.bytes("oci-layout", 4096)? else { return Ok(false) };
    let version: Version = serde_json::from_slice(&version)
        .map_err(|error| document(parts.path(), "oci-layout")(error.into()))?;
    if version.version == "1.0.0" {
        return Ok(true);
    }
    Err(LayoutError::Version { path: parts.path().to_owned(), version: version.version })
}

fn read_parts(store: &Store, parts: &dyn Parts) -> Result<Vec<Named>, LayoutError> {
    if !is_layout(parts)? {
        let Some(list) = parts.bytes("manifest.json", manifest::LONGEST_MANIFEST)? else {
            return Err(LayoutError::Unknown(parts.path().to_owned()));
        };
        return docker::read(store, parts, &list);
    }
    let index = parts.needed("index.json", manifest::LONGEST_MANIFEST)?;
    let index: Index = serde_json::from_slice(&index)
        .map_err(|error| document(parts.path(), "index.json")(error.into()))?;
    let mut found: Vec<Named> = Vec::new();
    for mut descriptor in index.manifests {
        copy(store, parts, &descriptor, 0)?;
        let mut names = Vec::new();
        for key in [REF_NAME, IMAGE_NAME] {
            names.extend(descriptor.annotations.remove(key));
        }
        match found.iter_mut().find(|one| one.descriptor.digest == descriptor.digest) {
            Some(known) => known.names.extend(names),
            None => found.push(Named { names, descriptor }),
        }
    }
    Ok(found)
}

fn blob_name(digest: &Digest) -> String {
    format!("blobs/{}/{}", digest.algorithm().name(), digest.hex())
}

/// Copies a document and all it names. What an index names and is not there is skipped: layouts that
/// hold one platform of several are common.
fn copy(
    store: &Store,
    parts: &dyn Parts,
    descriptor: &Descriptor,
    depth: usize,
) -> Result<(), LayoutError> {
    if depth > manifest::DEEPEST_INDEX {
        return Err(LayoutError::TooDeep);
    }
    let name = blob_name(&descriptor.digest);
    let bytes = parts.needed(&name, manifest::LONGEST_MANIFEST)?;
    let found = descriptor.digest.same_of(&bytes);
    if found != descriptor.digest {
        return Err(StoreError::Digest { wanted: descriptor.digest.clone(), found }.into());
    }
    let read = Document::read(&bytes, Some(&descriptor.media_type));
    let read = read.map_err(document(parts.path(), &name))?;
    for part in read.parts() {
        let name = blob_name(&part.digest);
        match &read {
            Document::Index(_) => {
                if parts.open(&name)?.is_some() {
                    copy(store, parts, part, depth + 1)?;
                }
            }
            Document::Manifest(_) => {
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
