//! Pushing images: blobs first, then documents, so that a registry has all parts of a document.

use super::{
    ImageClient, Inner, RegistryError, Security,
    send::{Payload, RegistryRequest, Repository, ResponseUrl, display_url, follow},
};
use crate::{
    digest::Digest,
    manifest::{self, DEEPEST_INDEX, Descriptor, ImageDocument},
    reference::ImageReference,
    store::ImageStore,
};
use futures::{StreamExt as _, TryStreamExt as _, future::BoxFuture, stream};
use http::{Method, header};
use std::collections::BTreeSet;

impl ImageClient {
    /// Pushes an image or an index of a store under a reference. Content that the registry has is
    /// not pushed again.
    pub async fn push(
        &self,
        store: &ImageStore,
        image: &Descriptor,
        reference: &ImageReference,
        security: Security,
    ) -> Result<(), RegistryError> {
        let repository = Self::repository(reference, security);
        self.inner.push(&repository, store, image, reference.tag_or_default(), 0).await
    }
}

impl Inner {
    fn push<'a>(
        &'a self,
        repository: &'a Repository,
        store: &'a ImageStore,
        image: &'a Descriptor,
        tag: Option<&'a str>,
        depth: usize,
    ) -> BoxFuture<'a, Result<(), RegistryError>> {
        Box::pin(async move {
            if depth > DEEPEST_INDEX {
                return Err(RegistryError::TooDeep(image.digest.clone()));
            }
            let document = store.document_of(image)?;
            match &document {
                ImageDocument::Index(index) => {
                    for one in &index.manifests {
                        self.push(repository, store, one, None, depth + 1).await?;
                    }
                }
                ImageDocument::Manifest(_) => {
                    let parts = document.parts().into_iter();
                    let foreign = |part: &&Descriptor| part.urls.is_empty();
                    let blobs: BTreeSet<&Digest> =
                        parts.filter(foreign).map(|part| &part.digest).collect();
                    let pushes = blobs.into_iter().map(|blob| self.upload(repository, store, blob));
                    let pushes: Vec<BoxFuture<'_, _>> =
                        pushes.map(|push| Box::pin(push) as _).collect();
                    stream::iter(pushes)
                        .buffer_unordered(self.settings.parallel.max(1))
                        .try_for_each(|()| async { Ok(()) })
                        .await?;
                }
            }
            let bytes = store.bytes(&image.digest, manifest::LONGEST_MANIFEST)?;
            let name = tag.map_or_else(|| image.digest.to_string(), str::to_owned);
            let mut call = RegistryRequest::get(repository.url(&format!("manifests/{name}")));
            call.method = Method::PUT;
            call.write = true;
            call.accepted = &[200, 201, 202];
            call.headers.push((header::CONTENT_TYPE, document.media_type().to_owned()));
            call.payload = Payload::Bytes(bytes.into());
            self.send(repository, &call).await.map(drop)
        })
    }

    /// Uploads a blob, unless the registry has it. An interrupted upload starts again.
    async fn upload(
        &self,
        repository: &Repository,
        store: &ImageStore,
        digest: &Digest,
    ) -> Result<(), RegistryError> {
        let mut call = RegistryRequest::get(repository.url(&format!("blobs/{digest}")));
        call.method = Method::HEAD;
        call.write = true;
        call.accepted = &[200, 404];
        if self.send(repository, &call).await?.status() == 200 {
            return Ok(());
        }
        self.settings.progress.begin(store.blob(digest)?.1);
        let mut tries = 0;
        loop {
            tries += 1;
            match self.upload_once(repository, store, digest).await {
                Ok(()) => {
                    self.settings.progress.finish();
                    return Ok(());
                }
                // The URL of the upload has expired: start again.
                Err(error) if tries < self.settings.attempts && error.is_not_found() => {
                    self.wait(tries, &error, None).await;
                }
                Err(error) => return Err(error),
            }
        }
    }

    async fn upload_once(
        &self,
        repository: &Repository,
        store: &ImageStore,
        digest: &Digest,
    ) -> Result<(), RegistryError> {
        let mut begin = RegistryRequest::get(repository.url("blobs/uploads/"));
        begin.method = Method::POST;
        begin.write = true;
        begin.accepted = &[202];
        let answer = self.send(repository, &begin).await?;
        let location = answer.headers().get(header::LOCATION);
        let Some(location) = location.and_then(|value| value.to_str().ok()) else {
            let why = "the response has no Location for the upload".to_owned();
            return Err(RegistryError::Answer { url: display_url(&begin.url), why });
        };
        // The response to a registry without TLS comes from another URL than the first one.
        let from = answer.extensions().get::<ResponseUrl>().map_or(begin.url.as_str(), |at| &at.0);
        let location = follow(from, location)?;
        let joint = if location.contains('?') { '&' } else { '?' };
        let digest_text = crate::url::encode(&digest.to_string());
        let mut put = RegistryRequest::get(format!("{location}{joint}digest={digest_text}"));
        put.method = Method::PUT;
        put.write = true;
        put.accepted = &[201, 204];
        put.headers.push((header::CONTENT_TYPE, "application/octet-stream".to_owned()));
        put.payload = Payload::Blob(store.clone(), digest.clone());
        self.send(repository, &put).await.map(drop)
    }
}
