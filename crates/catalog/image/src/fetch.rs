//! Image fetching: pulls an image from its mirrors, if the signature policy accepts it.

use crate::{
    digest::Digest,
    manifest::ImageDocument,
    mirror::{MirrorError, MirrorRules, MirrorSource},
    policy::{PolicyRefusal, Signature, SignaturePolicy, signature_tag},
    reference::ImageReference,
    registry::{ImageClient, ImageSelection, PulledDescriptors, RegistryError, Security},
    store::ImageStore,
};

/// The media type of a payload that cosign signs.
const PAYLOAD_TYPE: &str = "application/vnd.dev.cosign.simplesigning.v1+json";
/// The annotation with the signature of a payload.
const SIGNATURE_ANNOTATION: &str = "dev.cosignproject.cosign/signature";
/// How many signatures are checked, and the maximum length of a payload in bytes.
const MAX_SIGNATURES: usize = 64;
const MAX_PAYLOAD_LENGTH: u64 = 1 << 20;

/// Why an image cannot be fetched.
#[derive(Debug, thiserror::Error)]
pub enum FetchError {
    /// The policy refuses the image.
    #[error(transparent)]
    Refused(#[from] PolicyRefusal),
    /// No source has the image.
    #[error(transparent)]
    Mirror(#[from] MirrorError),
}

/// Fetches images by mirror rules and a signature policy.
#[derive(Clone)]
pub struct Fetcher {
    /// The client for registries.
    pub client: ImageClient,
    /// The mirror rules.
    pub rules: MirrorRules,
    /// The signature policy.
    pub policy: SignaturePolicy,
    /// The store for the images.
    pub store: ImageStore,
    /// The security for registries without a rule.
    pub security: Security,
}

impl Fetcher {
    /// Fetches an image. An image that the policy refuses by its name is not requested. An image
    /// that it refuses by its signatures is not stored under its name.
    ///
    /// The source of the image must also have its signatures. They must name the image by
    /// `reference`, not by the name at a mirror.
    pub async fn fetch(
        &self,
        reference: &ImageReference,
        want: &ImageSelection,
    ) -> Result<PulledDescriptors, FetchError> {
        self.fetch_pinned(reference, None, want).await
    }

    /// As [`Fetcher::fetch`], with the content of a digest, even if the tag of the reference has
    /// moved since it was resolved.
    pub async fn fetch_pinned(
        &self,
        reference: &ImageReference,
        digest: Option<&Digest>,
        want: &ImageSelection,
    ) -> Result<PulledDescriptors, FetchError> {
        let mut attempts = Vec::new();
        if !self.policy.needs_signatures(reference) {
            // The remaining requirements do not depend on the digest.
            self.policy.check(reference, &Digest::of(b""), &[])?;
        }
        for source in self.rules.sources(reference, self.security)? {
            let place = source.reference.repository();
            match self.fetch_from(&source, reference, digest, want).await {
                Ok(pulled) => return Ok(pulled),
                Err(SourceError::Refused(refused)) => return Err(refused.into()),
                Err(SourceError::Registry(error)) => {
                    tracing::debug!(%error, place, "cannot pull the image from this source");
                    attempts.push((place, error));
                }
            }
        }
        let reference = reference.to_string();
        Err(MirrorError::All { reference, attempts }.into())
    }

    /// Resolves a reference to the digest that its first working source has, without its content.
    pub async fn resolve(&self, reference: &ImageReference) -> Result<Digest, FetchError> {
        let mut attempts = Vec::new();
        for source in self.rules.sources(reference, self.security)? {
            match self.client.resolve(&source.reference, source.security).await {
                Ok((descriptor, _)) => return Ok(descriptor.digest),
                Err(error) => attempts.push((source.reference.repository(), error)),
            }
        }
        let reference = reference.to_string();
        Err(MirrorError::All { reference, attempts }.into())
    }

    async fn fetch_from(
        &self,
        source: &MirrorSource,
        reference: &ImageReference,
        pinned: Option<&Digest>,
        want: &ImageSelection,
    ) -> Result<PulledDescriptors, SourceError> {
        let (client, store) = (&self.client, &self.store);
        let mut wanted = match pinned {
            Some(digest) => source.reference.with_digest(digest.clone()),
            None => source.reference.clone(),
        };
        if self.policy.needs_signatures(reference) {
            let (top, _) = client.resolve(&wanted, source.security).await?;
            let signatures = signatures(client, source, &top.digest).await?;
            self.policy.check(reference, &top.digest, &signatures)?;
            // The digest that the policy accepted, even if the tag has moved.
            wanted = source.reference.with_digest(top.digest);
        }
        Ok(client.pull_as(&wanted, reference, source.security, want, store).await?)
    }
}

enum SourceError {
    Refused(PolicyRefusal),
    Registry(RegistryError),
}

impl From<PolicyRefusal> for SourceError {
    fn from(refused: PolicyRefusal) -> Self {
        Self::Refused(refused)
    }
}

impl From<RegistryError> for SourceError {
    fn from(error: RegistryError) -> Self {
        Self::Registry(error)
    }
}

/// The signatures of an image in its repository.
async fn signatures(
    client: &ImageClient,
    source: &MirrorSource,
    digest: &Digest,
) -> Result<Vec<Signature>, RegistryError> {
    let place = source.reference.with_tag(&signature_tag(digest))?;
    let document = match client.resolve(&place, source.security).await {
        Ok((_, document)) => document,
        Err(error) if error.is_not_found() => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let ImageDocument::Manifest(manifest) = document else { return Ok(Vec::new()) };
    let mut found = Vec::new();
    for layer in
        manifest.layers.iter().filter(|layer| layer.media_type == PAYLOAD_TYPE).take(MAX_SIGNATURES)
    {
        let Some(base64) = layer.annotations.get(SIGNATURE_ANNOTATION) else { continue };
        let payload = client.bytes(&place, source.security, layer, MAX_PAYLOAD_LENGTH).await?;
        found.push(Signature { payload, base64: base64.clone() });
    }
    Ok(found)
}
