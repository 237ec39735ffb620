//! Image fetching: pulls an image from its mirrors, if the signature policy accepts it.

use crate::{
    digest::Digest,
    manifest::Document,
    mirror::{MirrorError, Rules, Source},
    policy::{Policy, Refused, Signature, signature_tag},
    reference::Reference,
    registry::{Client, Pulled, RegistryError, Security, Want},
    store::Store,
};

/// The media type of a payload that cosign signs.
const SIGNED: &str = "application/vnd.dev.cosign.simplesigning.v1+json";
/// The annotation with the signature of a payload.
const SIGNATURE: &str = "dev.cosignproject.cosign/signature";
/// How many signatures are checked, and the maximum length of a payload in bytes.
const MOST: usize = 64;
const LONGEST: u64 = 1 << 20;

/// Why an image cannot be fetched.
#[derive(Debug, thiserror::Error)]
pub enum FetchError {
    /// The policy refuses the image.
    #[error(transparent)]
    Refused(#[from] Refused),
    /// No source has the image.
    #[error(transparent)]
    Mirror(#[from] MirrorError),
}

/// Fetches images by mirror rules and a signature policy.
#[derive(Clone)]
pub struct Fetcher {
    /// The client for registries.
    pub client: Client,
    /// The mirror rules.
    pub rules: Rules,
    /// The signature policy.
    pub policy: Policy,
    /// The store for the images.
    pub store: Store,
    /// The security for registries without a rule.
    pub security: Security,
}

impl Fetcher {
    /// Fetches an image. An image that the policy refuses by its name is not requested. An image
    /// that it refuses by its signatures is not stored under its name.
    ///
    /// The source of the image must also have its signatures. They must name the image by
    /// `reference`, not by the name at a mirror.
    pub async fn fetch(&self, reference: &Reference, want: &Want) -> Result<Pulled, FetchError> {
        let mut attempts = Vec::new();
        if !self.policy.needs_signatures(reference) {
            // The remaining requirements do not depend on the digest.
            self.policy.judge(reference, &Digest::of(b""), &[])?;
        }
        for source in self.rules.sources(reference, self.security)? {
            let place = source.reference.repository();
            match self.from(&source, reference, want).await {
                Ok(pulled) => return Ok(pulled),
                Err(Failed::Refused(refused)) => return Err(refused.into()),
                Err(Failed::Registry(error)) => {
                    tracing::debug!(%error, place, "cannot pull the image from this source");
                    attempts.push((place, error));
                }
            }
        }
        let reference = reference.to_string();
        Err(MirrorError::All { reference, attempts }.into())
    }

    async fn from(
        &self,
        source: &Source,
        reference: &Reference,
        want: &Want,
    ) -> Result<Pulled, Failed> {
        let (client, store) = (&self.client, &self.store);
        let mut wanted = source.reference.clone();
        if self.policy.needs_signatures(reference) {
            let (top, _) = client.resolve(&source.reference, source.security).await?;
            let signatures = signatures(client, source, &top.digest).await?;
            self.policy.judge(reference, &top.digest, &signatures)?;
            // The digest that the policy accepted, even if the tag has moved.
            wanted = source.reference.with_digest(top.digest);
        }
        Ok(client.pull_as(&wanted, reference, source.security, want, store).await?)
    }
}

enum Failed {
    Refused(Refused),
    Registry(RegistryError),
}

impl From<Refused> for Failed {
    fn from(refused: Refused) -> Self {
        Self::Refused(refused)
    }
}

impl From<RegistryError> for Failed {
    fn from(error: RegistryError) -> Self {
        Self::Registry(error)
    }
}

/// The signatures of an image in its repository.
async fn signatures(
    client: &Client,
    source: &Source,
    digest: &Digest,
) -> Result<Vec<Signature>, RegistryError> {
    let place = source.reference.with_tag(&signature_tag(digest))?;
    let document = match client.resolve(&place, source.security).await {
        Ok((_, document)) => document,
        Err(error) if error.is_not_found() => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let Document::Manifest(manifest) = document else { return Ok(Vec::new()) };
    let mut found = Vec::new();
    for layer in manifest.layers.iter().filter(|layer| layer.media_type == SIGNED).take(MOST) {
        let Some(base64) = layer.annotations.get(SIGNATURE) else { continue };
        let payload = client.bytes(&place, source.security, layer, LONGEST).await?;
        found.push(Signature { payload, base64: base64.clone() });
    }
    Ok(found)
}
