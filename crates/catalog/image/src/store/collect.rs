//! Garbage collection of the store: removes unreferenced content.

use super::{ImageStore, ImageStoreError, io_error, names};
use crate::digest::Digest;
use jiff::{SignedDuration, Timestamp};
use std::{collections::BTreeSet, fs, io, path::Path, time::Duration};

/// How the collection treats manifests without a tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UntaggedManifests {
    /// They are roots, like tags.
    Keep,
    /// They are removed, unless other content references them.
    Forget,
}

/// The result of a collection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CollectionSummary {
    /// The number of removed blobs.
    pub blobs: usize,
    /// The size of removed blobs, in bytes.
    pub bytes: u64,
    /// The number of removed unfinished writes.
    pub unfinished: usize,
}

impl ImageStore {
    /// Removes content without a reference, and unfinished writes.
    ///
    /// Content that was written or used less than `grace` before `now` stays, because a client may
    /// be about to reference it. A manifest whose `subject` stays also stays.
    pub fn collect(
        &self,
        now: Timestamp,
        grace: Duration,
        untagged: UntaggedManifests,
    ) -> Result<CollectionSummary, ImageStoreError> {
        let grace = SignedDuration::try_from(grace).unwrap_or(SignedDuration::MAX);
        let before = now.saturating_sub(grace).unwrap_or(Timestamp::MIN);
        let before =
            if mainstay_fault::is_on("nothing-has-a-grace") { Timestamp::MAX } else { before };
        let mut marked = BTreeSet::new();
        let mut later = Vec::new();
        for (reference, descriptor) in self.references()? {
            if reference.digest().is_some() && untagged == UntaggedManifests::Forget {
                later.push((reference, descriptor));
            } else {
                self.mark(descriptor.digest, &mut marked)?;
            }
        }
        // Manifests whose subject stays, repeatedly.
        loop {
            let mut grown = false;
            for (_, descriptor) in &later {
                let document = self.document(&descriptor.digest).ok();
                let subject = document.as_ref().and_then(|document| document.subject());
                if subject.is_some_and(|subject| marked.contains(&subject.digest))
                    && !marked.contains(&descriptor.digest)
                {
                    self.mark(descriptor.digest.clone(), &mut marked)?;
                    grown = true;
                }
            }
            if !grown {
                break;
            }
        }
        for (reference, descriptor) in later {
            let fresh =
                last_used(&self.blob_path(&descriptor.digest))?.is_some_and(|at| at >= before);
            if fresh {
                self.mark(descriptor.digest, &mut marked)?;
            } else if !marked.contains(&descriptor.digest) {
                self.forget(&reference)?;
            }
        }
        let mut collected = CollectionSummary::default();
        for algorithm in ["sha256", "sha512"] {
            let folder = self.root().join("blobs").join(algorithm);
            for name in names(&folder)? {
                let Ok(digest) = format!("{algorithm}:{name}").parse::<Digest>() else { continue };
                if !marked.contains(&digest)
                    && let Some(bytes) = remove(&folder.join(&name), before)?
                {
                    collected.blobs += 1;
                    collected.bytes += bytes;
                }
            }
        }
        let folder = self.root().join("partial");
        for name in names(&folder)? {
            collected.unfinished += usize::from(remove(&folder.join(&name), before)?.is_some());
        }
        Ok(collected)
    }

    /// Marks a document and all its parts. Missing parts are ignored: an index may be pulled for
    /// one platform only.
    fn mark(&self, digest: Digest, marked: &mut BTreeSet<Digest>) -> Result<(), ImageStoreError> {
        let mut open = vec![digest];
        while let Some(digest) = open.pop() {
            if !marked.insert(digest.clone()) {
                continue;
            }
            let document = match self.document(&digest) {
                Ok(document) => document,
                // A blob that is no document, a missing blob, or a damaged one, whose references
                // cannot be trusted.
                Err(
                    ImageStoreError::Document { .. }
                    | ImageStoreError::NoBlob(_)
                    | ImageStoreError::Digest { .. },
                ) => continue,
                Err(error) => return Err(error),
            };
            let parts = document.parts().into_iter().map(|part| part.digest.clone());
            match &document {
                crate::manifest::ImageDocument::Index(_) => open.extend(parts),
                crate::manifest::ImageDocument::Manifest(_) => marked.extend(parts),
            }
        }
        Ok(())
    }
}

/// The time at which a file was last written or used.
fn last_used(path: &Path) -> Result<Option<Timestamp>, ImageStoreError> {
    match fs::metadata(path).and_then(|file| file.modified()) {
        Ok(at) => Ok(Timestamp::try_from(at).ok()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(io_error("cannot read", path)(error)),
    }
}

/// Removes a file that was not used since `before`, and returns its length.
fn remove(path: &Path, before: Timestamp) -> Result<Option<u64>, ImageStoreError> {
    if last_used(path)?.is_none_or(|at| at >= before) {
        return Ok(None);
    }
    let length = fs::metadata(path).map(|file| file.len()).unwrap_or_default();
    match fs::remove_file(path) {
        Ok(()) => Ok(Some(length)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(io_error("cannot remove", path)(error)),
    }
}
