//! Pulling in two steps: resolve a reference to a digest, then fetch the content of the digest.
//!
//! A poll that finds a known digest needs the first step only. Errors keep their step, because
//! conditions of OLM v1 name it.

use crate::pull::PulledImage;
use crate::{PullError, Puller, Requester};
use mainstay_image::digest::Digest;
use mainstay_image::fetch::{FetchError, Fetcher};
use mainstay_image::mirror::MirrorError;
use mainstay_image::platform::Platform;
use mainstay_image::reference::ImageReference;
use mainstay_image::registry::{ImageSelection, PullStep, RegistryError, containers_image_text};
use std::time::Duration;
use tokio::sync::OnceCell;

/// How often a request to a registry is sent before its error is reported. The caller retries.
const ATTEMPTS: u32 = 2;
/// The pause between the two.
const PAUSE: Duration = Duration::from_millis(200);

/// Why a step of a pull fails.
#[derive(Debug, thiserror::Error)]
pub enum StepError {
    /// The pull cannot begin, or the image is in a store of this machine and cannot be used.
    #[error(transparent)]
    Pull(#[from] PullError),
    /// No registry returns the image, or the policy refuses it.
    #[error("{}", fetch_text(source, reference, *step))]
    Fetch {
        /// The step.
        step: PullStep,
        /// The reference.
        reference: Box<ImageReference>,
        /// The error.
        source: Box<FetchError>,
    },
}

impl StepError {
    /// Whether a tag could not be resolved; otherwise the content could not be copied.
    pub fn is_resolving(&self) -> bool {
        matches!(self, Self::Fetch { step: PullStep::Resolve, .. })
    }
}

/// The text of containers/image for an error of all sources of an image.
fn fetch_text(error: &FetchError, reference: &ImageReference, step: PullStep) -> String {
    let attempts = match error {
        FetchError::Mirror(MirrorError::All { attempts, .. }) => attempts,
        FetchError::Refused(refusal) => return format!("Source image rejected: {refusal}"),
        FetchError::Mirror(other) => return other.to_string(),
    };
    let text = |error| containers_image_text(error, reference, step);
    match attempts.as_slice() {
        [] => error.to_string(),
        [(_, only)] => text(only),
        [mirrors @ .., (place, last)] => {
            let mirrors =
                mirrors.iter().map(|(place, error)| format!("[{place}: {}]", text(error)));
            let mirrors = mirrors.collect::<Vec<_>>().join("\n");
            format!("(Mirrors also failed: {mirrors}): {place}: {}", text(last))
        }
    }
}

/// A pull in steps. Pull secrets, mirrors and the policy are read once, when a registry is needed first.
pub struct StepwisePull<'p> {
    puller: &'p Puller,
    reference: &'p ImageReference,
    requester: &'p Requester,
    fetcher: OnceCell<Fetcher>,
}

impl Puller {
    /// Begins to pull an image in steps. Nothing is read before the first step.
    pub fn begin<'p>(
        &'p self,
        reference: &'p ImageReference,
        requester: &'p Requester,
    ) -> StepwisePull<'p> {
        StepwisePull { puller: self, reference, requester, fetcher: OnceCell::new() }
    }
}

impl StepwisePull<'_> {
    /// Resolves the reference to the digest of its manifest or index: in the store of the cluster, else
    /// at a registry. A reference with a digest needs no request.
    ///
    /// # Errors
    /// Why it cannot be resolved.
    pub async fn resolve(&self) -> Result<Digest, StepError> {
        let reference = self.reference;
        if let Some(digest) = reference.digest() {
            return Ok(digest.clone());
        }
        if let Some(found) = self.puller.find_local(reference).await?
            && let Ok(digest) = found.digest.parse()
        {
            return Ok(digest);
        }
        let resolved = self.fetcher().await?.resolve(reference).await;
        resolved.map_err(|source| step_error(resolving_step(&source), reference, source))
    }

    /// Fetches the content of a digest that [`StepwisePull::resolve`] returned.
    ///
    /// # Errors
    /// Why it cannot be fetched.
    pub async fn fetch(&self, digest: &Digest) -> Result<PulledImage, StepError> {
        let reference = self.reference;
        if let Some(found) = self.puller.find_local(reference).await?
            && found.digest == digest.to_string()
        {
            return Ok(found);
        }
        let want = ImageSelection::Platform(Platform::host());
        let pulled = self.fetcher().await?.fetch_pinned(reference, Some(digest), &want).await;
        let pulled = pulled.map_err(|source| step_error(PullStep::Copy, reference, source))?;
        Ok(self.puller.open_pulled(pulled).await.map_err(PullError::OpenPulled)?)
    }

    async fn fetcher(&self) -> Result<&Fetcher, PullError> {
        let create = || async {
            let (mut connection, _) =
                self.puller.connection(self.reference, self.requester).await?;
            connection.settings.attempts = ATTEMPTS;
            connection.settings.backoff = PAUSE;
            self.puller.fetcher(self.reference, connection).await
        };
        self.fetcher.get_or_try_init(create).await
    }
}

/// The step that a failure to resolve counts for. Upstream resolves a tag without parsing the manifest, so
/// an invalid manifest counts for the copy.
fn resolving_step(error: &FetchError) -> PullStep {
    match error {
        FetchError::Mirror(MirrorError::All { attempts, .. })
            if matches!(attempts.last(), Some((_, RegistryError::Document { .. }))) =>
        {
            PullStep::Copy
        }
        _ => PullStep::Resolve,
    }
}

fn step_error(step: PullStep, reference: &ImageReference, source: FetchError) -> StepError {
    StepError::Fetch { step, reference: Box::new(reference.clone()), source: Box::new(source) }
}
