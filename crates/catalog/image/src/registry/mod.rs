//! Registries of others: pulling and pushing.
//!
//! ```text
//! reference ─► manifest ─► layers, several at a time ─► store
//!               every request: credentials, redirects, waiting, trying again  (send)
//!               every connection: proxies, TLS                               (transport)
//! ```
//!
//! A registry is a stranger. What it sends is verified while it comes, is never longer than it was
//! announced, and must keep coming; it is asked again only so often; it is followed to other hosts
//! without credentials and never to other protocols. No error and no log has a password, a token or
//! the query of an address (which often is a token) in it.

mod certs;
mod challenge;
mod progress;
mod proxy;
mod pull;
mod push;
mod refusal;
mod retry;
mod send;
mod transport;

pub use certs::CertFolders;
pub use progress::{Counted, Progress};
pub use proxy::{NoProxy, Proxies, Proxy, ProxyError};
pub use pull::{Pulled, Want};
pub use retry::RetryListener;
pub use transport::{Dial, Stream, TcpDial};

use crate::{
    credentials::Keyring,
    digest::Digest,
    manifest::ManifestError,
    reference::{Reference, ReferenceError},
    store::StoreError,
};
use mainstay_clock::Clock;
use rustls::pki_types::CertificateDer;
use std::{sync::Arc, time::Duration};

/// How much a registry is trusted with the way to it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Security {
    /// TLS with a certificate that is trusted.
    #[default]
    Tls,
    /// TLS with any certificate, or none at all if there is no TLS.
    Insecure,
    /// No TLS.
    Plain,
}

/// How registries are talked to.
#[derive(Clone)]
pub struct Settings {
    /// How connections are made.
    pub dial: Arc<dyn Dial>,
    /// Certificates to trust besides the machine's.
    pub authorities: Vec<CertificateDer<'static>>,
    /// Whether the machine's are trusted.
    pub system_authorities: bool,
    /// Certificates of single registries, and those to show to them.
    pub certificates: CertFolders,
    /// Proxies.
    pub proxies: Proxies,
    /// Names and passwords.
    pub keyring: Arc<Keyring>,
    /// How long nothing may come or go.
    pub stall: Duration,
    /// How often something is tried, without getting further.
    pub attempts: u32,
    /// The first wait between two attempts; each is twice as long as the one before …
    pub backoff: Duration,
    /// … up to this, which also bounds what a registry asks to wait.
    pub longest_wait: Duration,
    /// How many blobs move at once.
    pub parallel: usize,
    /// How long a blob may be.
    pub largest: u64,
    /// Where it is counted how far pulls and pushes are.
    pub progress: Arc<Progress>,
    /// Who hears of attempts that are made again.
    pub on_retry: RetryListener,
    /// What time it is.
    pub clock: Clock,
}

impl Settings {
    /// Real connections, the machine's certificates, no proxies and no passwords.
    pub fn new(clock: Clock) -> Self {
        Self {
            dial: Arc::new(TcpDial),
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

/// Why a registry does not do what is asked of it.
#[derive(Debug, thiserror::Error)]
pub enum RegistryError {
    /// It cannot be reached, or stops talking.
    #[error("{url}: {why}")]
    Connection {
        /// What was asked, without its query.
        url: String,
        /// What went wrong.
        why: String,
    },
    /// Nothing came or went for too long.
    #[error("{url}: nothing moved for {} s", .patience.as_secs())]
    Stalled {
        /// What was asked, without its query.
        url: String,
        /// How long it was waited for.
        patience: Duration,
    },
    /// It refuses.
    #[error("{url}: {status}{detail}")]
    Status {
        /// What was asked, without its query.
        url: String,
        /// The status.
        status: http::StatusCode,
        /// What it says about it, or nothing.
        detail: String,
    },
    /// It wants to know who asks, and there is nothing, or nothing that it accepts.
    #[error("{url}: authentication required: {why}")]
    Unauthorized {
        /// What was asked, without its query.
        url: String,
        /// What is missing.
        why: &'static str,
    },
    /// It sends elsewhere, where nobody should go.
    #[error("{url}: refused to be redirected to {to}: {why}")]
    Redirect {
        /// What was asked, without its query.
        url: String,
        /// Where to, without its query.
        to: String,
        /// Why not.
        why: &'static str,
    },
    /// Its answer makes no sense.
    #[error("{url}: {why}")]
    Answer {
        /// What was asked, without its query.
        url: String,
        /// What is wrong.
        why: String,
    },
    /// A document of the image cannot be read.
    #[error("{reference}: {source}")]
    Document {
        /// Which image.
        reference: String,
        /// Why not.
        source: ManifestError,
    },
    /// There is no image for the platform.
    #[error("{reference} has no image for {platform}; it has {offers}")]
    Platform {
        /// Which index.
        reference: String,
        /// What was asked for.
        platform: String,
        /// What there is.
        offers: String,
    },
    /// Indexes in each other.
    #[error("{0}: indexes lie too deep in each other")]
    TooDeep(Digest),
    /// A name.
    #[error(transparent)]
    Reference(#[from] ReferenceError),
    /// Names and passwords cannot be read.
    #[error(transparent)]
    Credentials(#[from] crate::credentials::CredentialsError),
    /// The store refuses.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// TLS cannot be set up.
    #[error("TLS cannot be set up: {0}")]
    Tls(String),
}

impl RegistryError {
    /// Whether there is no such thing, rather than no answer.
    pub fn is_not_found(&self) -> bool {
        matches!(self, Self::Status { status, .. } if *status == http::StatusCode::NOT_FOUND)
    }
}

/// A client of registries. Clones share connections and tokens.
#[derive(Clone)]
pub struct Client {
    inner: Arc<Inner>,
}

struct Inner {
    settings: Settings,
    transport: transport::Transport,
    tokens: challenge::Tokens,
}

impl Client {
    /// A client.
    pub fn new(settings: Settings) -> Result<Self, RegistryError> {
        let transport = transport::Transport::new(&settings)?;
        let tokens = challenge::Tokens::default();
        Ok(Self { inner: Arc::new(Inner { settings, transport, tokens }) })
    }

    /// The repository of a reference.
    fn repository(reference: &Reference, security: Security) -> send::Repository {
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
        reference: &Reference,
        security: Security,
    ) -> Result<Vec<String>, RegistryError> {
        pull::tags(&self.inner, &Self::repository(reference, security)).await
    }
}

/// A text that is a password or a token: it can be used, not shown.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct Secret(String);

impl Secret {
    /// Keeps a text.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The text.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("***")
    }
}
