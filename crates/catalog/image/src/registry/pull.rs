//! Pulling images: documents first, then blobs in parallel.

use super::{
    ImageClient, Inner, RegistryError, Security,
    send::{RegistryRequest, Repository, display_url, follow},
};
use crate::{
    digest::Digest,
    manifest::{
        self, DEEPEST_INDEX, Descriptor, ImageDocument, ImageIndex, ImageManifest, media_type,
    },
    platform::Platform,
    reference::ImageReference,
    store::{BlobWriter, ImageStore, ImageStoreError},
};
use bytes::Bytes;
use futures::{StreamExt as _, TryStreamExt as _, future::BoxFuture, stream};
use http::header;
use std::collections::BTreeMap;

/// The images of an index to pull.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ImageSelection {
    /// The image for a platform.
    Platform(Platform),
    /// All images.
    All,
}

/// A pulled image.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PulledDescriptors {
    /// The descriptor of the reference: an image or an index.
    pub top: Descriptor,
    /// The image for the requested platform, if one was requested.
    pub image: Option<Descriptor>,
}

/// How many bytes of a blob are written at once.
const BATCH: usize = 256 << 10;

impl ImageClient {
    /// Fetches and verifies the document of a reference, without its parts.
    pub async fn resolve(
        &self,
        reference: &ImageReference,
        security: Security,
    ) -> Result<(Descriptor, ImageDocument), RegistryError> {
        let (descriptor, document, _) = self.document(reference, security).await?;
        Ok((descriptor, document))
    }

    /// As [`ImageClient::resolve`], with the bytes of the document.
    pub async fn document(
        &self,
        reference: &ImageReference,
        security: Security,
    ) -> Result<(Descriptor, ImageDocument, Vec<u8>), RegistryError> {
        let repository = Self::repository(reference, security);
        self.inner.document(&repository, &reference.wanted(), reference.digest(), None).await
    }

    /// Fetches and verifies a short blob, without a store.
    pub async fn bytes(
        &self,
        reference: &ImageReference,
        security: Security,
        blob: &Descriptor,
        limit: u64,
    ) -> Result<Vec<u8>, RegistryError> {
        let repository = Self::repository(reference, security);
        let url = repository.url(&format!("blobs/{}", blob.digest));
        let mut tries = 0;
        let bytes = loop {
            tries += 1;
            let answer = self.inner.send(&repository, &RegistryRequest::get(url.clone())).await?;
            match self.inner.read_body(&url, answer, limit).await {
                Ok(bytes) => break bytes,
                Err(error) if tries >= self.inner.settings.attempts || !is_broken(&error) => {
                    return Err(error);
                }
                Err(error) => self.inner.wait(tries, &error, None).await,
            }
        };
        let (wanted, found) = (blob.digest.clone(), blob.digest.same_of(&bytes));
        if wanted == found {
            Ok(bytes)
        } else {
            Err(ImageStoreError::Digest { wanted, found }.into())
        }
    }

    /// Pulls an image into a store and sets its reference there. Stored content is not pulled
    /// again, and an interrupted pull is resumed.
    pub async fn pull(
        &self,
        reference: &ImageReference,
        security: Security,
        want: &ImageSelection,
        store: &ImageStore,
    ) -> Result<PulledDescriptors, RegistryError> {
        self.pull_as(reference, reference, security, want, store).await
    }

    /// As [`ImageClient::pull`], from a mirror: the store has the image under `name`.
    pub async fn pull_as(
        &self,
        reference: &ImageReference,
        name: &ImageReference,
        security: Security,
        want: &ImageSelection,
        store: &ImageStore,
    ) -> Result<PulledDescriptors, RegistryError> {
        let inner = &self.inner;
        let repository = Self::repository(reference, security);
        let digest = reference.digest();
        let known = match digest {
            Some(digest) if store.size_of(digest)?.is_some() => store.document(digest).ok(),
            _ => None,
        };
        let (top, document, bytes) = match (known, digest) {
            (Some(document), Some(digest)) => {
                let bytes = store.bytes(digest, manifest::LONGEST_MANIFEST)?;
                let size = bytes.len() as u64;
                let descriptor = Descriptor::new(document.media_type(), digest.clone(), size);
                (descriptor, document, bytes)
            }
            _ => inner.document(&repository, &reference.wanted(), digest, None).await?,
        };
        let image = match (&document, want) {
            (ImageDocument::Manifest(manifest), _) => {
                inner.pull_blobs(&repository, manifest, store).await?;
                Some(top.clone()).filter(|_| matches!(want, ImageSelection::Platform(_)))
            }
            (ImageDocument::Index(index), ImageSelection::Platform(platform)) => {
                Some(inner.pull_platform(reference, &repository, index, platform, store).await?)
            }
            (ImageDocument::Index(index), ImageSelection::All) => {
                inner.pull_all(&repository, index, store, 0).await?;
                None
            }
        };
        store_document(store, top.digest.clone(), bytes).await?;
        store.set(name, &top)?;
        Ok(PulledDescriptors { top, image })
    }
}

impl Inner {
    /// Fetches and verifies a manifest or an index.
    async fn document(
        &self,
        repository: &Repository,
        wanted: &str,
        digest: Option<&Digest>,
        format: Option<&str>,
    ) -> Result<(Descriptor, ImageDocument, Vec<u8>), RegistryError> {
        let mut call = RegistryRequest::get(repository.url(&format!("manifests/{wanted}")));
        call.headers.push((header::ACCEPT, media_type::ACCEPTED.join(", ")));
        let mut tries = 0;
        let (bytes, sent, said) = loop {
            tries += 1;
            let answer = self.send(repository, &call).await?;
            let text = |name: &str| {
                answer.headers().get(name).and_then(|value| value.to_str().ok()).map(str::to_owned)
            };
            let (sent, said) = (text("content-type"), text("docker-content-digest"));
            match self.read_body(&call.url, answer, manifest::LONGEST_MANIFEST).await {
                Ok(bytes) => break (bytes, sent, said),
                Err(error) if tries >= self.settings.attempts || !is_broken(&error) => {
                    return Err(error);
                }
                Err(error) => self.wait(tries, &error, None).await,
            }
        };
        let found = digest.map_or_else(|| Digest::of(&bytes), |digest| digest.same_of(&bytes));
        // For a tag, the digest that the registry announces must match.
        let said = said.and_then(|said| said.parse::<Digest>().ok());
        let said = said.filter(|said| said.algorithm() == found.algorithm());
        for wanted in digest.into_iter().chain(&said) {
            if *wanted != found {
                return Err(ImageStoreError::Digest { wanted: wanted.clone(), found }.into());
            }
        }
        let sent = sent.as_deref().or(format);
        let document = ImageDocument::read(&bytes, sent).map_err(|source| {
            RegistryError::Document { reference: format!("{}@{found}", repository.full), source }
        })?;
        if let Some(format) = format
            && !format.is_empty()
            && document.media_type() != format
        {
            let (sent, inside) = (format.to_owned(), document.media_type().to_owned());
            return Err(RegistryError::Document {
                reference: format!("{}@{found}", repository.full),
                source: manifest::ImageManifestError::Disagree { sent, inside },
            });
        }
        let descriptor = Descriptor::new(document.media_type(), found, bytes.len() as u64);
        Ok((descriptor, document, bytes))
    }

    /// The document of an entry in an index, from the store if it has it.
    async fn child(
        &self,
        repository: &Repository,
        descriptor: &Descriptor,
        store: &ImageStore,
    ) -> Result<(ImageDocument, Vec<u8>), RegistryError> {
        if store.size_of(&descriptor.digest)? == Some(descriptor.size)
            && let Ok(document) = store.document_of(descriptor)
        {
            return Ok((document, store.bytes(&descriptor.digest, manifest::LONGEST_MANIFEST)?));
        }
        let wanted = descriptor.digest.to_string();
        let format = Some(descriptor.media_type.as_str());
        let (found, document, bytes) =
            self.document(repository, &wanted, Some(&descriptor.digest), format).await?;
        if found.size != descriptor.size {
            let (wanted, found) = (descriptor.size, found.size);
            return Err(
                ImageStoreError::Size { digest: descriptor.digest.clone(), wanted, found }.into()
            );
        }
        Ok((document, bytes))
    }

    /// Pulls the image for a platform from an index.
    async fn pull_platform(
        &self,
        reference: &ImageReference,
        repository: &Repository,
        index: &ImageIndex,
        platform: &Platform,
        store: &ImageStore,
    ) -> Result<Descriptor, RegistryError> {
        let mut index = index.clone();
        for _ in 0..DEEPEST_INDEX {
            let Some(chosen) = index.choose(platform).cloned() else {
                let offers = index.manifests.iter().filter_map(|one| one.platform.as_ref());
                let offers: Vec<String> = offers.take(50).map(ToString::to_string).collect();
                let offers = if offers.is_empty() { "none".to_owned() } else { offers.join(", ") };
                let (reference, platform) = (reference.to_string(), platform.to_string());
                return Err(RegistryError::Platform { reference, platform, offers });
            };
            let (document, bytes) = self.child(repository, &chosen, store).await?;
            match document {
                ImageDocument::Manifest(manifest) => {
                    self.pull_blobs(repository, &manifest, store).await?;
                    store_document(store, chosen.digest.clone(), bytes).await?;
                    return Ok(chosen);
                }
                ImageDocument::Index(inner) => {
                    store_document(store, chosen.digest.clone(), bytes).await?;
                    index = inner;
                }
            }
        }
        Err(RegistryError::TooDeep(reference.digest().cloned().unwrap_or_else(|| Digest::of(b""))))
    }

    /// Pulls all images of an index.
    fn pull_all<'a>(
        &'a self,
        repository: &'a Repository,
        index: &'a ImageIndex,
        store: &'a ImageStore,
        depth: usize,
    ) -> BoxFuture<'a, Result<(), RegistryError>> {
        Box::pin(async move {
            for one in &index.manifests {
                if depth >= DEEPEST_INDEX {
                    return Err(RegistryError::TooDeep(one.digest.clone()));
                }
                let (document, bytes) = self.child(repository, one, store).await?;
                match &document {
                    ImageDocument::Manifest(manifest) => {
                        self.pull_blobs(repository, manifest, store).await?;
                    }
                    ImageDocument::Index(inner) => {
                        self.pull_all(repository, inner, store, depth + 1).await?;
                    }
                }
                store_document(store, one.digest.clone(), bytes).await?;
            }
            Ok(())
        })
    }

    /// Pulls configuration and layers of a manifest, each blob once.
    async fn pull_blobs(
        &self,
        repository: &Repository,
        manifest: &ImageManifest,
        store: &ImageStore,
    ) -> Result<(), RegistryError> {
        let all = std::iter::once(&manifest.config).chain(&manifest.layers);
        let blobs: BTreeMap<&Digest, u64> = all.map(|one| (&one.digest, one.size)).collect();
        let pulls =
            blobs.into_iter().map(|(digest, size)| self.pull_blob(repository, digest, size, store));
        let pulls: Vec<BoxFuture<'_, _>> = pulls.map(|pull| Box::pin(pull) as _).collect();
        stream::iter(pulls)
            .buffer_unordered(self.settings.parallel.max(1))
            .try_for_each(|()| async { Ok(()) })
            .await
    }

    /// Pulls a blob. Each attempt resumes where the previous one stopped.
    async fn pull_blob(
        &self,
        repository: &Repository,
        digest: &Digest,
        size: u64,
        store: &ImageStore,
    ) -> Result<(), RegistryError> {
        if store.size_of(digest)? == Some(size) {
            return Ok(());
        }
        if size > self.settings.largest {
            return Err(ImageStoreError::TooLong(self.settings.largest).into());
        }
        let (opened, wanted) = (store.clone(), digest.clone());
        let mut writer = blocking(move || opened.resume(&wanted, size)).await?;
        self.settings.progress.begin(size.saturating_sub(writer.length()));
        let url = repository.url(&format!("blobs/{digest}"));
        let (mut tries, mut again) = (0, true);
        loop {
            let before = writer.length();
            // An earlier pull may have stored the whole blob.
            if before < size || size == 0 {
                let moved = self.pull_rest(repository, &url, &mut writer, size).await;
                if let Err(error) = moved {
                    let further = writer.length() > before;
                    tries = if further { 1 } else { tries + 1 };
                    if !is_broken(&error) || tries >= self.settings.attempts {
                        return Err(error);
                    }
                    self.wait(tries, &error, None).await;
                    continue;
                }
            }
            let wanted = digest.clone();
            let resumed = before > 0;
            match blocking(move || writer.commit(Some(&wanted), Some(size))).await {
                Ok(_) => {
                    self.settings.progress.finish();
                    return Ok(());
                }
                // The resumed part may be wrong, so the blob is pulled once more from its start.
                Err(RegistryError::Store(ImageStoreError::Digest { .. })) if resumed && again => {
                    again = false;
                    let (opened, wanted) = (store.clone(), digest.clone());
                    writer = blocking(move || opened.resume(&wanted, size)).await?;
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Pulls the missing part of a blob, in one response.
    async fn pull_rest(
        &self,
        repository: &Repository,
        url: &str,
        writer: &mut BlobWriter,
        size: u64,
    ) -> Result<(), RegistryError> {
        let have = writer.length();
        let mut call = RegistryRequest::get(url.to_owned());
        if have > 0 {
            call.headers.push((header::RANGE, format!("bytes={have}-")));
            call.accepted = &[200, 206, 416];
        }
        let answer = self.send(repository, &call).await?;
        let at = answer.headers().get(header::CONTENT_RANGE).and_then(|value| value.to_str().ok());
        let at = at.and_then(|text| text.strip_prefix("bytes ")?.split_once('-')?.0.parse().ok());
        if answer.status() == 416 || (answer.status() == 206 && at != Some(have)) {
            writer.restart()?;
            let why = "the registry sends another range than the requested one".to_owned();
            return Err(RegistryError::Connection { url: display_url(url), why });
        }
        if answer.status() == 200 && have > 0 {
            writer.restart()?;
        }
        let mut body = answer.into_body();
        let mut batch: Vec<Bytes> = Vec::new();
        let mut length = 0;
        loop {
            let piece = self.next_chunk(url, &mut body).await;
            let ended = !matches!(piece, Ok(Some(_)));
            if let Ok(Some(piece)) = &piece {
                self.settings.progress.moved(piece.len() as u64);
                length += piece.len();
                batch.push(piece.clone());
            }
            if !batch.is_empty() && (ended || length >= BATCH) {
                // Writing 256 KiB to a local file takes less time than moving it to another thread.
                for piece in batch.drain(..) {
                    writer.append(&piece)?;
                }
                length = 0;
                tokio::task::yield_now().await;
            }
            match piece {
                Ok(Some(_)) => {}
                Ok(None) if writer.length() < size => {
                    let why =
                        format!("the connection ended after {} of {size} bytes", writer.length());
                    return Err(RegistryError::Connection { url: display_url(url), why });
                }
                Ok(None) => return Ok(()),
                Err(error) => return Err(error),
            }
        }
    }
}

/// Whether a transfer was interrupted, so that a retry may help.
fn is_broken(error: &RegistryError) -> bool {
    matches!(error, RegistryError::Connection { .. } | RegistryError::Stalled { .. })
}

async fn store_document(
    store: &ImageStore,
    digest: Digest,
    bytes: Vec<u8>,
) -> Result<(), RegistryError> {
    let store = store.clone();
    blocking(move || store.take(&mut bytes.as_slice(), &digest, None)).await
}

/// Runs work with files on a thread that may block.
pub(super) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, ImageStoreError> + Send + 'static,
) -> Result<T, RegistryError> {
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => Ok(done?),
        Err(error) => Err(ImageStoreError::Io {
            what: "cannot work with",
            path: "the store".into(),
            source: std::io::Error::other(error),
        }
        .into()),
    }
}

/// Fetches the tags of a repository, page by page.
pub(super) async fn tags(
    inner: &Inner,
    repository: &Repository,
) -> Result<Vec<String>, RegistryError> {
    const PAGES: usize = 1000;
    /// The maximum length of all tags together, in bytes.
    const LONGEST: usize = 32 << 20;
    #[derive(serde::Deserialize)]
    struct Page {
        tags: Option<Vec<String>>,
    }
    let mut url = repository.url("tags/list");
    let (mut tags, mut length): (Vec<String>, usize) = (Vec::new(), 0);
    for _ in 0..PAGES {
        let answer = inner.send(repository, &RegistryRequest::get(url.clone())).await?;
        let link = answer.headers().get(header::LINK).and_then(|value| value.to_str().ok());
        let next =
            link.and_then(|link| Some(link.split_once('<')?.1.split_once('>')?.0.to_owned()));
        let bytes = inner.read_body(&url, answer, 4 << 20).await?;
        let page: Page = serde_json::from_slice(&bytes).map_err(|_| RegistryError::Answer {
            url: display_url(&url),
            why: "the list of tags is not valid JSON".to_owned(),
        })?;
        let before = tags.len();
        let page = page.tags.unwrap_or_default();
        length += page.iter().map(String::len).sum::<usize>();
        if length > LONGEST {
            let why = format!("the list of tags has more than {LONGEST} bytes");
            return Err(RegistryError::Answer { url: display_url(&url), why });
        }
        tags.extend(page);
        let Some(next) = next.filter(|_| tags.len() > before) else { return Ok(tags) };
        url = follow(&url, &next)?;
        if !repository.is_at(&url) {
            let why = "the next page of the list of tags is on another host".to_owned();
            return Err(RegistryError::Answer { url: display_url(&url), why });
        }
    }
    Ok(tags)
}
