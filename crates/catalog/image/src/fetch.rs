//! Getting an image as an administrator wants it: from the mirrors that are set, if the policy takes
//! it.

use crate::{
    digest::Digest,
    manifest::Document,
    mirror::{MirrorError, Rules, Source},
    policy::{Policy, Refused, Signature, signature_tag},
    reference::Reference,
    registry::{Client, Pulled, RegistryError, Security, Want},
    store::Store,
};

/// The format of what cosign signs.
const SIGNED: &str = "application/vnd.dev.cosign.simplesigning.v1+json";
/// Where its signature is.
const SIGNATURE: &str = "dev.cosignproject.cosign/signature";
/// How many signatures are looked at, and how long what they sign may be.
const MOST: usize = 64;
const LONGEST: u64 = 1 << 20;

/// Why there is no image.
#[derive(Debug, thiserror::Error)]
pub enum FetchError {
    /// The policy does not take it.
    #[error(transparent)]
    Refused(#[from] Refused),
    /// Nobody has it.
    #[error(transparent)]
    Mirror(#[from] MirrorError),
}

/// Gets images.
#[derive(Clone)]
pub struct Fetcher {
    /// How registries are asked.
    pub client: Client,
    /// Where images come from.
    pub rules: Rules,
    /// Which are taken.
    pub policy: Policy,
    /// Where they go.
    pub store: Store,
    /// How registries are reached of which no rule says it.
    pub security: Security,
}

impl Fetcher {
    /// Gets an image. What the policy refuses without looking is not asked for, and what it refuses
    /// after looking at signatures is not kept under its name.
    ///
    /// Signatures are looked for where the image comes from; they must name the image by the name
    /// that is asked for, not by that of a mirror.
    pub async fn fetch(&self, reference: &Reference, want: &Want) -> Result<Pulled, FetchError> {
        let mut attempts = Vec::new();
        if !self.policy.needs_signatures(reference) {
            // No requirement is left that looks at the digest.
            self.policy.judge(reference, &Digest::of(b""), &[])?;
        }
        for source in self.rules.sources(reference, self.security)? {
            let place = source.reference.repository();
            match self.from(&source, reference, want).await {
                Ok(pulled) => return Ok(pulled),
                Err(Failed::Refused(refused)) => return Err(refused.into()),
                Err(Failed::Registry(error)) => {
                    tracing::debug!(%error, place, "the image could not be pulled from here");
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
            // Exactly what was judged, whatever the tag means by now.
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

/// The signatures that lie beside an image.
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
