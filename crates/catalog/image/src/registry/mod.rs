//! Registry client: pulling and pushing.
//!
//! ```text
//! reference ─► manifest ─► layers, several at a time ─► store
//!               every request: credentials, redirects, waits, retries   (send)
//!               every connection: proxies, TLS                          (transport)
//! ```
//!
//! A registry is untrusted. Its content is verified while it arrives, must not exceed its announced
//! length, and must keep arriving. Retries are limited. Redirects to other hosts are followed
//! without credentials, and never to other protocols. Errors and logs contain no password, no token
//! and no query of a URL (which often is a token).

mod certs;
mod challenge;
mod containers_image;
mod error_response;
mod progress;
mod proxy;
mod pull;
mod push;
mod retry;
mod send;
mod transport;

pub use certs::CertFolders;
pub use containers_image::{PullStep, connection_text, containers_image_text};
pub use progress::{Progress, ProgressCount};
pub use proxy::{NoProxy, Proxies, Proxy, ProxyError};
pub use pull::{ImageSelection, PulledDescriptors};
pub use retry::RetryListener;
pub use transport::{Dialer, RegistryStream, TcpDialer};

use crate::{
    credentials::Keyring,
    digest::Digest,
    manifest::ImageManifestError,
    reference::{ImageReference, ImageReferenceError},
    store::ImageStoreError,
};
use mainstay_clock::Clock;
use rustls::pki_types::CertificateDer;
use std::{sync::Arc, time::Duration};

/// The security of connections to a registry.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Security {
    /// TLS with a trusted certificate.
    #[default]
    Tls,
    /// TLS with any certificate, or plain HTTP if the registry has no TLS.
    Insecure,
    /// No TLS.
    Plain,
}

/// Settings of the registry client.
#[derive(Clone)]
pub struct ClientSettings {
    /// The dialer for connections.
    pub dial: Arc<dyn Dialer>,
    /// Trusted CAs in addition to the system's.
    pub authorities: Vec<CertificateDer<'static>>,
    /// Whether the system's CAs are trusted.
    pub system_authorities: bool,
    /// CAs and client certificates of single registries.
    pub certificates: CertFolders,
    /// Proxies.
    pub proxies: Proxies,
    /// The credentials.
    pub keyring: Arc<Keyring>,
    /// How long a transfer may stall.
    pub stall: Duration,
    /// How many attempts without progress a transfer has.
    pub attempts: u32,
    /// The first wait between two attempts; each wait is twice as long as the one before,
    pub backoff: Duration,
    /// up to this limit, which also limits the wait that a registry requests.
    pub longest_wait: Duration,
    /// How many blobs are transferred in parallel.
    pub parallel: usize,
    /// The maximum size of a blob, in bytes.
    pub largest: u64,
    /// The counters of pulls and pushes.
    pub progress: Arc<Progress>,
    /// The listener for retries.
    pub on_retry: RetryListener,
    /// The clock.
    pub clock: Clock,
}

impl ClientSettings {
    /// Real connections, the system's CAs, no proxies and no credentials.
    pub fn new(clock: Clock) -> Self {
        Self {
            dial: Arc::new(TcpDialer),
            authorities: Vec::new(),
            system_authorities: true,
            certificates: CertFolders::default(),
            proxies: Proxies::default(),
            keyring: Arc::default(),
            stall: Duration::from_mins(1),
            attempts: 6,
            backoff: Duration::from_millis(500),
            longest_wait: Duration::from_mins(1),
            parallel: 4,
            largest: 64 << 30,
            progress: Arc::default(),
            on_retry: RetryListener::default(),
            clock,
        }
    }
}

/// Why a request to a registry fails.
#[derive(Debug, thiserror::Error)]
pub enum RegistryError {
    /// The registry cannot be reached, or the connection breaks.
    #[error("{url}: {why}")]
    Connection {
        /// The URL without its query.
        url: String,
        /// The fault.
        why: String,
    },
    /// The transfer stalled.
    #[error("{url}: no data was transferred for {} s", .timeout.as_secs())]
    Stalled {
        /// The URL without its query.
        url: String,
        /// The timeout.
        timeout: Duration,
    },
    /// The registry returned an error status.
    #[error("{url}: {status}{detail}")]
    Status {
        /// The URL without its query.
        url: String,
        /// The status.
        status: http::StatusCode,
        /// The errors in the response, or nothing.
        detail: String,
        /// The first error in the response; empty if it lists none.
        first: ListedError,
    },
    /// The registry requires authentication, and there are no credentials, or it does not accept
    /// them.
    #[error("{url}: authentication required: {why}")]
    Unauthorized {
        /// The URL without its query.
        url: String,
        /// What is missing.
        why: &'static str,
        /// The first error in the response; empty if it lists none.
        first: ListedError,
    },
    /// The registry redirects to a refused target.
    #[error("{url}: refused to be redirected to {to}: {why}")]
    Redirect {
        /// The URL without its query.
        url: String,
        /// The target without its query.
        to: String,
        /// Why it is refused.
        why: &'static str,
    },
    /// The response is invalid.
    #[error("{url}: {why}")]
    Answer {
        /// The URL without its query.
        url: String,
        /// The fault.
        why: String,
    },
    /// A document of the image is invalid.
    #[error("{reference}: {source}")]
    Document {
        /// The image.
        reference: String,
        /// Why it is invalid.
        source: ImageManifestError,
    },
    /// The index has no image for the platform.
    #[error("{reference} has no image for {platform}; it has {offers}")]
    Platform {
        /// The index.
        reference: String,
        /// The requested platform.
        platform: String,
        /// The platforms of the index.
        offers: String,
    },
    /// Indexes are nested too deeply.
    #[error("{0}: indexes are nested too deeply")]
    TooDeep(Digest),
    /// A reference is invalid.
    #[error(transparent)]
    Reference(#[from] ImageReferenceError),
    /// Credentials cannot be read.
    #[error(transparent)]
    Credentials(#[from] crate::credentials::CredentialsError),
    /// The store fails.
    #[error(transparent)]
    Store(#[from] ImageStoreError),
    /// TLS cannot be set up.
    #[error("TLS cannot be set up: {0}")]
    Tls(String),
}

/// An error that a registry lists in its response.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ListedError {
    /// The code, such as `MANIFEST_UNKNOWN`; may be empty.
    pub code: String,
    /// The message; may be empty.
    pub message: String,
}

impl std::fmt::Display for ListedError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let space = if self.code.is_empty() || self.message.is_empty() { "" } else { " " };
        write!(f, "{}{space}{}", self.code, self.message)
    }
}

impl RegistryError {
    /// Adds the errors of the response to an error about missing credentials.
    fn with_response(self, response: Self) -> Self {
        match (self, response) {
            (Self::Unauthorized { url, why, .. }, Self::Status { first, .. }) => {
                Self::Unauthorized { url, why, first }
            }
            (error, _) => error,
        }
    }

    /// Whether the registry does not have the object.
    pub fn is_not_found(&self) -> bool {
        matches!(self, Self::Status { status, .. } if *status == http::StatusCode::NOT_FOUND)
    }
}

/// A registry client. Clones share connections and tokens.
#[derive(Clone)]
pub struct ImageClient {
    inner: Arc<Inner>,
}

struct Inner {
    settings: ClientSettings,
    transport: transport::Transport,
    tokens: challenge::Tokens,
}

impl ImageClient {
    /// Creates a client.
    pub fn new(settings: ClientSettings) -> Result<Self, RegistryError> {
        let transport = transport::Transport::new(&settings)?;
        let tokens = challenge::Tokens::default();
        Ok(Self { inner: Arc::new(Inner { settings, transport, tokens }) })
    }

    /// The repository of a reference.
    fn repository(reference: &ImageReference, security: Security) -> send::Repository {
        let host = match reference.domain() {
            crate::reference::DEFAULT_DOMAIN => "registry-1.docker.io",
            other => other,
        };
        send::Repository {
            host: host.to_owned(),
            path: reference.path().to_owned(),
            full: reference.repository(),
            security,
        }
    }

    /// The tags of a repository, in the registry's order.
    pub async fn tags(
        &self,
        reference: &ImageReference,
        security: Security,
    ) -> Result<Vec<String>, RegistryError> {
        pull::tags(&self.inner, &Self::repository(reference, security)).await
    }
}

/// A password or token. Its debug output hides the text.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct RegistrySecret(String);

impl RegistrySecret {
    /// A secret of a text.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The text.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl std::fmt::Debug for RegistrySecret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("***")
    }
}
