//! Content store: a content-addressed store of images on disk.
//!
//! ```text
//! blobs/sha256/<hex>                                  content
//! partial/                                            unfinished writes
//! references/<registry>/<path…>/_tags/<tag>           descriptors of manifests
//! references/<registry>/<path…>/_digests/<digest>
//! ```
//!
//! A file below `blobs` always has the content of its digest: it is written to a temporary file,
//! flushed, and renamed. The process may be killed at any moment, and several processes may write
//! at once. Nothing is cached in memory. No component of a repository's path begins with `_`, so
//! tags and repositories cannot collide.
//!
//! Stored content is not verified again, except for documents, which are verified whenever they are
//! read, and by [`ImageStore::verify`].

mod collect;
mod write;

pub use collect::{CollectionSummary, UntaggedManifests};
pub use write::BlobWriter;

use crate::{
    digest::{Digest, Hasher},
    manifest::{
        self, Descriptor, ImageConfig, ImageDocument, ImageManifest, ImageManifestError, within,
    },
    reference::ImageReference,
};
use std::{
    fs::{self, DirBuilder, File},
    io::{self, Read, Write as _},
    os::unix::fs::DirBuilderExt as _,
    path::{Path, PathBuf},
};

/// Why an operation on the store fails.
#[derive(Debug, thiserror::Error)]
pub enum ImageStoreError {
    /// The file system fails.
    #[error("{what} {}: {source}", path.display())]
    Io {
        /// The attempted operation.
        what: &'static str,
        /// The file.
        path: PathBuf,
        /// Why it fails.
        source: io::Error,
    },
    /// The blob does not exist.
    #[error("there is no blob {0}")]
    NoBlob(Digest),
    /// The reference does not exist.
    #[error("there is no image {0}")]
    NoImage(String),
    /// The content does not match its digest.
    #[error("the content has digest {found}, not {wanted}")]
    Digest {
        /// The expected digest.
        wanted: Digest,
        /// The digest of the content.
        found: Digest,
    },
    /// The content does not have its announced size.
    #[error("the content of {digest} has {found} bytes, not {wanted}")]
    Size {
        /// The digest.
        digest: Digest,
        /// The announced size, in bytes.
        wanted: u64,
        /// The size of the content, or of the part that was read.
        found: u64,
    },
    /// The content exceeds the limit of the writer.
    #[error("the content is longer than {0} bytes")]
    TooLong(u64),
    /// A document cannot be parsed.
    #[error("{digest}: {source}")]
    Document {
        /// The document.
        digest: Digest,
        /// Why it cannot be parsed.
        source: ImageManifestError,
    },
    /// A manifest references missing content.
    #[error("{0} refers to {1}, which is not in the store")]
    Missing(Digest, Digest),
}

pub(crate) fn io_error<'p>(
    what: &'static str,
    path: &'p Path,
) -> impl FnOnce(io::Error) -> ImageStoreError + use<'p> {
    move |source| ImageStoreError::Io { what, path: path.to_owned(), source }
}

/// A content store. Clones use the same folder.
#[derive(Clone, Debug)]
pub struct ImageStore {
    root: PathBuf,
}

impl ImageStore {
    /// Opens the store in a folder, which is created if it does not exist. New files and folders
    /// are only for their owner: images may be private.
    pub fn open(root: impl Into<PathBuf>) -> Result<Self, ImageStoreError> {
        let store = Self { root: root.into() };
        for folder in ["blobs/sha256", "blobs/sha512", "partial", "references"] {
            let folder = store.root.join(folder);
            make_folder(&folder)?;
        }
        Ok(store)
    }

    /// The folder of the store.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The path of a blob, existing or not.
    pub fn blob_path(&self, digest: &Digest) -> PathBuf {
        self.root.join("blobs").join(digest.algorithm().name()).join(digest.hex())
    }

    /// The size of a blob, if it exists. This marks it as used, which protects it from collection.
    pub fn size_of(&self, digest: &Digest) -> Result<Option<u64>, ImageStoreError> {
        let path = self.blob_path(digest);
        let file = match File::open(&path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(io_error("cannot read", &path)(error)),
        };
        write::mark_used(&file).map_err(io_error("cannot mark", &path))?;
        let length = file.metadata().map_err(io_error("cannot read", &path))?.len();
        Ok(Some(length))
    }

    /// Opens a blob. Returns the file and its size.
    pub fn blob(&self, digest: &Digest) -> Result<(File, u64), ImageStoreError> {
        let path = self.blob_path(digest);
        let file = File::open(&path).map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => ImageStoreError::NoBlob(digest.clone()),
            _ => io_error("cannot read", &path)(error),
        })?;
        let length = file.metadata().map_err(io_error("cannot read", &path))?.len();
        Ok((file, length))
    }

    /// The verified bytes of a blob of at most `limit` bytes.
    pub fn bytes(&self, digest: &Digest, limit: u64) -> Result<Vec<u8>, ImageStoreError> {
        let (file, length) = self.blob(digest)?;
        let document = |source| ImageStoreError::Document { digest: digest.clone(), source };
        within(length, limit).map_err(document)?;
        let mut bytes = Vec::new();
        let path = self.blob_path(digest);
        file.take(limit + 1).read_to_end(&mut bytes).map_err(io_error("cannot read", &path))?;
        let found = digest.same_of(&bytes);
        if found == *digest {
            Ok(bytes)
        } else {
            Err(ImageStoreError::Digest { wanted: digest.clone(), found })
        }
    }

    /// Reads a blob and verifies its digest.
    pub fn verify(&self, digest: &Digest) -> Result<(), ImageStoreError> {
        let (mut file, _) = self.blob(digest)?;
        let path = self.blob_path(digest);
        let mut hasher = Hasher::new(digest.algorithm());
        let mut buffer = vec![0; 1 << 16];
        loop {
            match file.read(&mut buffer).map_err(io_error("cannot read", &path))? {
                0 => break,
                count => hasher.update(&buffer[..count]),
            }
        }
        let found = hasher.finish();
        let wanted = digest.clone();
        if found == wanted { Ok(()) } else { Err(ImageStoreError::Digest { wanted, found }) }
    }

    /// Stores bytes as a blob.
    pub fn put(&self, bytes: &[u8]) -> Result<Digest, ImageStoreError> {
        let digest = Digest::of(bytes);
        if self.size_of(&digest)? != Some(bytes.len() as u64) {
            let mut writer = self.writer(bytes.len() as u64)?;
            writer.append(bytes)?;
            writer.commit(Some(&digest), None)?;
        }
        Ok(digest)
    }

    /// Stores a document as compact JSON, with fields in their order.
    pub fn put_json<T: serde::Serialize>(
        &self,
        media_type: &str,
        value: &T,
    ) -> Result<Descriptor, ImageStoreError> {
        let bytes = serde_json::to_vec(value).map_err(|error| ImageStoreError::Document {
            digest: Digest::of(b""),
            source: error.into(),
        })?;
        self.put(&bytes)?;
        Ok(Descriptor::of(media_type, &bytes))
    }

    /// Stores the content of a reader, and verifies digest and size.
    pub fn take(
        &self,
        reader: &mut dyn Read,
        digest: &Digest,
        size: Option<u64>,
    ) -> Result<(), ImageStoreError> {
        if let Some(length) = self.size_of(digest)?
            && size.is_none_or(|size| size == length)
        {
            return Ok(());
        }
        let mut writer = self.writer_of(digest.algorithm(), size.unwrap_or(u64::MAX))?;
        let path = self.blob_path(digest);
        let mut buffer = vec![0; 1 << 16];
        loop {
            match reader.read(&mut buffer) {
                Ok(0) => break,
                Ok(count) => writer.append(&buffer[..count])?,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(io_error("cannot read what becomes", &path)(error)),
            }
        }
        writer.commit(Some(digest), size).map(drop)
    }

    /// Reads a manifest or an index.
    pub fn document(&self, digest: &Digest) -> Result<ImageDocument, ImageStoreError> {
        self.document_as(digest, None)
    }

    /// Reads the manifest or index of a descriptor, which states its media type.
    pub fn document_of(&self, descriptor: &Descriptor) -> Result<ImageDocument, ImageStoreError> {
        self.document_as(&descriptor.digest, Some(&descriptor.media_type))
    }

    fn document_as(
        &self,
        digest: &Digest,
        sent: Option<&str>,
    ) -> Result<ImageDocument, ImageStoreError> {
        let bytes = self.bytes(digest, manifest::LONGEST_MANIFEST)?;
        ImageDocument::read(&bytes, sent)
            .map_err(|source| ImageStoreError::Document { digest: digest.clone(), source })
    }

    /// Reads the configuration of a manifest.
    pub fn config(&self, manifest: &ImageManifest) -> Result<ImageConfig, ImageStoreError> {
        let digest = &manifest.config.digest;
        let bytes = self.bytes(digest, manifest::LONGEST_CONFIG)?;
        ImageConfig::read(&bytes, manifest)
            .map_err(|source| ImageStoreError::Document { digest: digest.clone(), source })
    }

    fn repository(&self, repository: &str) -> PathBuf {
        self.root.join("references").join(repository)
    }

    fn reference_path(
        &self,
        repository: &str,
        tag: Option<&str>,
        digest: Option<&Digest>,
    ) -> PathBuf {
        let folder = self.repository(repository);
        match digest {
            Some(digest) => {
                let name = format!("{}-{}", digest.algorithm().name(), digest.hex());
                folder.join("_digests").join(name)
            }
            None => folder.join("_tags").join(tag.unwrap_or(crate::reference::DEFAULT_TAG)),
        }
    }

    fn path_of(&self, reference: &ImageReference) -> PathBuf {
        self.reference_path(&reference.repository(), reference.tag(), reference.digest())
    }

    /// The manifest of a reference: by its digest if it has one, else by its tag.
    pub fn resolve(
        &self,
        reference: &ImageReference,
    ) -> Result<Option<Descriptor>, ImageStoreError> {
        read_descriptor(&self.path_of(reference))
    }

    /// Sets a reference to a stored manifest. For a reference with tag and digest, both are set.
    pub fn set(
        &self,
        reference: &ImageReference,
        descriptor: &Descriptor,
    ) -> Result<(), ImageStoreError> {
        if self.size_of(&descriptor.digest)?.is_none() {
            return Err(ImageStoreError::NoBlob(descriptor.digest.clone()));
        }
        let bytes = serde_json::to_vec(descriptor).map_err(|source| ImageStoreError::Document {
            digest: descriptor.digest.clone(),
            source: source.into(),
        })?;
        let repository = reference.repository();
        if reference.digest().is_some() {
            let path = self.reference_path(&repository, None, reference.digest());
            self.write_reference(&path, &bytes)?;
        }
        if let Some(tag) = reference.tag_or_default() {
            self.write_reference(&self.reference_path(&repository, Some(tag), None), &bytes)?;
        }
        Ok(())
    }

    fn write_reference(&self, path: &Path, bytes: &[u8]) -> Result<(), ImageStoreError> {
        if let Some(folder) = path.parent() {
            make_folder(folder)?;
        }
        let (mut file, temporary) = write::create_temporary(&self.root)?;
        let written = file.write_all(bytes).and_then(|()| file.sync_all());
        let renamed = written.and_then(|()| fs::rename(&temporary, path));
        if renamed.is_err() {
            let _ = fs::remove_file(&temporary);
        }
        renamed.map_err(io_error("cannot write", path))?;
        write::sync_folder(path)
    }

    /// Removes a reference: its digest if it has one, else its tag. Returns whether it existed.
    pub fn forget(&self, reference: &ImageReference) -> Result<bool, ImageStoreError> {
        let path = self.path_of(reference);
        match fs::remove_file(&path) {
            Ok(()) => write::sync_folder(&path).map(|()| true),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(io_error("cannot remove", &path)(error)),
        }
    }

    /// The sorted tags of a repository, such as `docker.io/library/busybox`.
    pub fn tags(&self, repository: &str) -> Result<Vec<String>, ImageStoreError> {
        names(&self.repository(repository).join("_tags"))
    }

    /// The sorted digests of a repository's manifests that are referenced by digest.
    pub fn digests(&self, repository: &str) -> Result<Vec<Digest>, ImageStoreError> {
        let names = names(&self.repository(repository).join("_digests"))?;
        Ok(names.iter().filter_map(|name| name.replacen('-', ":", 1).parse().ok()).collect())
    }

    /// All references in order, with their descriptors.
    pub fn references(&self) -> Result<Vec<(ImageReference, Descriptor)>, ImageStoreError> {
        let mut found = Vec::new();
        for repository in self.repositories()? {
            let parsed = format!("{repository}:x").parse::<ImageReference>();
            let Ok(parsed) = parsed else { continue };
            for tag in self.tags(&repository)? {
                let Ok(reference) = parsed.with_tag(&tag) else { continue };
                found.extend(self.resolve(&reference)?.map(|descriptor| (reference, descriptor)));
            }
            for digest in self.digests(&repository)? {
                let reference = parsed.with_digest(digest);
                found.extend(self.resolve(&reference)?.map(|descriptor| (reference, descriptor)));
            }
        }
        Ok(found)
    }

    /// All repositories in order, with their registries.
    pub fn repositories(&self) -> Result<Vec<String>, ImageStoreError> {
        let mut found = Vec::new();
        let mut open: Vec<String> = names(&self.root.join("references"))?;
        while let Some(name) = open.pop() {
            let inside = names(&self.repository(&name))?;
            if inside.iter().any(|one| one.starts_with('_')) {
                found.push(name.clone());
            }
            let folders = inside.into_iter().filter(|one| !one.starts_with('_'));
            open.extend(folders.map(|one| format!("{name}/{one}")));
        }
        found.sort_unstable();
        Ok(found)
    }
}

/// Creates a folder and its missing parents, only for their owner.
fn make_folder(folder: &Path) -> Result<(), ImageStoreError> {
    let created = DirBuilder::new().recursive(true).mode(0o700).create(folder);
    created.map_err(io_error("cannot make", folder))
}

/// The sorted names in a folder; empty if the folder does not exist.
fn names(folder: &Path) -> Result<Vec<String>, ImageStoreError> {
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(io_error("cannot read", folder)(error)),
    };
    let mut names = Vec::new();
    for entry in entries {
        let entry = entry.map_err(io_error("cannot read", folder))?;
        names.extend(entry.file_name().into_string());
    }
    names.sort_unstable();
    Ok(names)
}

fn read_descriptor(path: &Path) -> Result<Option<Descriptor>, ImageStoreError> {
    let bytes = match fs::read(path) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(io_error("cannot read", path)(error)),
    };
    let read = serde_json::from_slice(&bytes).map_err(io::Error::other);
    read.map(Some).map_err(io_error("cannot read", path))
}
