//! Removing what nothing names.

use super::{Store, StoreError, io_error, names};
use crate::digest::Digest;
use jiff::{SignedDuration, Timestamp};
use std::{collections::BTreeSet, fs, io, path::Path, time::Duration};

/// What becomes of manifests that are known by digest only.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Untagged {
    /// They are roots, as tags are.
    Keep,
    /// They are forgotten, unless something else names them.
    Forget,
}

/// What a collection removed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Collected {
    /// How many blobs.
    pub blobs: usize,
    /// How many bytes they had.
    pub bytes: u64,
    /// How many unfinished writes.
    pub unfinished: usize,
}

impl Store {
    /// Removes content that no reference leads to, and writes that nobody finished.
    ///
    /// What was written or asked for less than `grace` before `now` stays: somebody may be about to
    /// name it. A manifest that says something of one that stays (its `subject`) stays as well.
    pub fn collect(
        &self,
        now: Timestamp,
        grace: Duration,
        untagged: Untagged,
    ) -> Result<Collected, StoreError> {
        let grace = SignedDuration::try_from(grace).unwrap_or(SignedDuration::MAX);
        let before = now.saturating_sub(grace).unwrap_or(Timestamp::MIN);
        let before =
            if mainstay_fault::is_on("nothing-has-a-grace") { Timestamp::MAX } else { before };
        let mut marked = BTreeSet::new();
        let mut later = Vec::new();
        for (reference, descriptor) in self.references()? {
            if reference.digest().is_some() && untagged == Untagged::Forget {
                later.push((reference, descriptor));
            } else {
                self.mark(descriptor.digest, &mut marked)?;
            }
        }
        // Those that say something of a manifest that stays, and of these again.
        loop {
            let mut grown = false;
            for (_, descriptor) in &later {
                let of = self.document(&descriptor.digest).ok();
                let of = of.as_ref().and_then(|document| document.subject());
                if of.is_some_and(|of| marked.contains(&of.digest))
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
            let fresh = age(&self.blob_path(&descriptor.digest))?.is_some_and(|at| at >= before);
            if fresh {
                self.mark(descriptor.digest, &mut marked)?;
            } else if !marked.contains(&descriptor.digest) {
                self.forget(&reference)?;
            }
        }
        let mut collected = Collected::default();
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

    /// Marks a document and all it names. Parts that are not there (an index of which one platform
    /// was pulled) are nobody's fault.
    fn mark(&self, digest: Digest, marked: &mut BTreeSet<Digest>) -> Result<(), StoreError> {
        let mut open = vec![digest];
        while let Some(digest) = open.pop() {
            if !marked.insert(digest.clone()) {
                continue;
            }
            let document = match self.document(&digest) {
                Ok(document) => document,
                // No document, so a blob; or none at all; or damaged, so that it names nothing that
                // could be trusted.
                Err(
                    StoreError::Document { .. } | StoreError::NoBlob(_) | StoreError::Digest { .. },
                ) => continue,
                Err(error) => return Err(error),
            };
            let parts = document.parts().into_iter().map(|part| part.digest.clone());
            match &document {
                crate::manifest::Document::Index(_) => open.extend(parts),
                crate::manifest::Document::Manifest(_) => marked.extend(parts),
            }
        }
        Ok(())
    }
}

/// When a file was last written or used.
fn age(path: &Path) -> Result<Option<Timestamp>, StoreError> {
    match fs::metadata(path).and_then(|file| file.modified()) {
        Ok(at) => Ok(Timestamp::try_from(at).ok()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(io_error("cannot read", path)(error)),
    }
}

/// Removes a file that was not used since `before`; its length.
fn remove(path: &Path, before: Timestamp) -> Result<Option<u64>, StoreError> {
    if age(path)?.is_none_or(|at| at >= before) {
        return Ok(None);
    }
    let length = fs::metadata(path).map(|file| file.len()).unwrap_or_default();
    match fs::remove_file(path) {
        Ok(()) => Ok(Some(length)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(io_error("cannot remove", path)(error)),
    }
}
