//! The certificate that the port shows: made by an authority of its own, and made anew in time.

use jiff::SignedDuration;
use mainstay_cause::Cause;
use mainstay_classic::serving_certificate;
use mainstay_clock::Clock;
use mainstay_packages::SERVICE;
use parking_lot::RwLock;
use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use std::sync::Arc;
use std::time::Duration;

/// For how long a certificate is shown, which is half of its life.
pub(super) const SHOWN: Duration = Duration::from_hours(365 * 24);

/// What is shown, and who signs for it.
#[derive(Debug)]
pub(super) struct Certificate {
    namespace: &'static str,
    clock: Clock,
    shown: RwLock<Option<Arc<CertifiedKey>>>,
    /// A certificate that is signed for by `bundle` and not shown yet.
    next: RwLock<Option<Arc<CertifiedKey>>>,
    /// Authorities in PEM, the latest first.
    bundle: RwLock<String>,
}

impl Certificate {
    /// A certificate for the Service in a namespace.
    pub(super) fn new(namespace: &'static str, clock: Clock) -> Result<Arc<Self>, Cause> {
        let this = Self {
            namespace,
            clock,
            shown: RwLock::default(),
            next: RwLock::default(),
            bundle: RwLock::default(),
        };
        this.renew()?;
        this.show();
        Ok(Arc::new(this))
    }

    /// Makes another certificate, which is shown from [`Certificate::show`] on: until then the cluster
    /// can be told of its authority.
    pub(super) fn renew(&self) -> Result<(), Cause> {
        let refused = |why: String| {
            Cause::new("the certificate for packages cannot be made").because(Cause::new(why))
        };
        let made = serving_certificate(SERVICE, self.namespace, self.clock.now())
            .map_err(|error| refused(error.to_string()))?;
        let leaf = CertificateDer::from_pem_slice(made.certificate.as_bytes())
            .map_err(|error| refused(error.to_string()))?;
        let key = PrivateKeyDer::from_pem_slice(made.key.as_bytes())
            .map_err(|error| refused(error.to_string()))?;
        let certified = CertifiedKey::from_der(vec![leaf], key, &mainstay_tls::provider())
            .map_err(|error| refused(error.to_string()))?;
        *self.next.write() = Some(Arc::new(certified));
        let mut bundle = self.bundle.write();
        let end = "-----END CERTIFICATE-----\n";
        // The authority of what is still shown, and none before it.
        let latest = bundle.split_inclusive(end).next().unwrap_or_default();
        *bundle = format!("{}{latest}", made.authority);
        Ok(())
    }

    /// Shows the latest certificate.
    pub(super) fn show(&self) {
        if let Some(next) = self.next.write().take() {
            *self.shown.write() = Some(next);
        }
    }

    /// Who signs for what is shown, and for what will be, in PEM.
    pub(super) fn bundle(&self) -> String {
        self.bundle.read().clone()
    }

    /// The settings of a port that shows it.
    pub(super) fn settings(self: &Arc<Self>) -> Result<Arc<ServerConfig>, Cause> {
        let builder = ServerConfig::builder_with_provider(mainstay_tls::provider())
            .with_safe_default_protocol_versions()
            .map_err(|error| {
                Cause::new("TLS cannot be set up").because(Cause::new(error.to_string()))
            })?;
        let resolver: Arc<dyn ResolvesServerCert> = Arc::clone(self) as _;
        let mut settings = builder
            .with_client_cert_verifier(mainstay_tls::any_client())
            .with_cert_resolver(resolver);
        settings.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        Ok(Arc::new(settings))
    }
}

impl ResolvesServerCert for Certificate {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        self.shown.read().clone()
    }
}

/// How long a certificate that was made at a time is still shown. One that a clock made which has been set
/// back since is not valid yet, and another one takes its place at once.
pub(super) fn left(made: jiff::Timestamp, now: jiff::Timestamp) -> Duration {
    if now < made {
        return Duration::ZERO;
    }
    let shown = SignedDuration::try_from(SHOWN).unwrap_or(SignedDuration::MAX);
    Duration::try_from(shown - now.duration_since(made)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_old_authority_counts_until_the_certificate_after_the_next() {
        let certificate = Certificate::new("olm", Clock::system()).unwrap();
        let authorities = || -> Vec<String> {
            let bundle = certificate.bundle();
            bundle.split_inclusive("-----END CERTIFICATE-----\n").map(str::to_owned).collect()
        };
        let shown = || Arc::as_ptr(&certificate.shown.read().clone().unwrap());
        let (first, before) = (authorities(), shown());
        assert_eq!(first.len(), 1);
        certificate.renew().unwrap();
        assert_eq!((authorities().len(), authorities()[1] == first[0]), (2, true));
        assert_eq!(shown(), before);
        certificate.show();
        assert_ne!(shown(), before);
        certificate.renew().unwrap();
        assert!(!authorities().contains(&first[0]));
        assert!(certificate.settings().is_ok());
    }

    #[test]
    fn a_certificate_is_shown_for_a_year() {
        let made: jiff::Timestamp = "2026-01-02T03:04:05Z".parse().unwrap();
        assert_eq!(left(made, made), SHOWN);
        assert_eq!(left(made, "2026-01-02T03:04:04Z".parse().unwrap()), Duration::ZERO);
        assert_eq!(left(made, "2027-02-02T03:04:05Z".parse().unwrap()), Duration::ZERO);
    }
}
