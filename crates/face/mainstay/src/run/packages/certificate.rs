//! The serving certificate of the package server: issued by a CA of its own, and rotated in time.

use jiff::SignedDuration;
use mainstay_cause::Cause;
use mainstay_classic::serving_certificate;
use mainstay_clock::Clock;
use mainstay_packages::SERVICE;
use mainstay_tls::ServerTls;
use parking_lot::RwLock;
use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use std::sync::Arc;
use std::time::Duration;

/// The interval between rotations, half of a certificate's validity.
pub(super) const ROTATION_INTERVAL: Duration = Duration::from_hours(365 * 24);

/// The serving certificate and its CA bundle.
#[derive(Debug)]
pub(super) struct ServingCertificate {
    namespace: &'static str,
    clock: Clock,
    active: RwLock<Option<Arc<CertifiedKey>>>,
    /// A certificate whose CA is in the bundle, and which is not active yet.
    pending: RwLock<Option<Arc<CertifiedKey>>>,
    /// The CA certificates in PEM, the newest first.
    ca_bundle: RwLock<String>,
}

impl ServingCertificate {
    /// A certificate for the package server's Service in a namespace.
    pub(super) fn new(namespace: &'static str, clock: Clock) -> Result<Arc<Self>, Cause> {
        let this = Self {
            namespace,
            clock,
            active: RwLock::default(),
            pending: RwLock::default(),
            ca_bundle: RwLock::default(),
        };
        this.renew()?;
        this.activate();
        Ok(Arc::new(this))
    }

    /// Issues another certificate, active from [`ServingCertificate::activate`] on. Until then the
    /// registration can publish its CA.
    pub(super) fn renew(&self) -> Result<(), Cause> {
        let refused = |why: String| {
            Cause::new("the certificate for packages cannot be created").because(Cause::new(why))
        };
        let serving = serving_certificate(SERVICE, self.namespace, self.clock.now())
            .map_err(|error| refused(error.to_string()))?;
        let leaf = CertificateDer::from_pem_slice(serving.certificate.as_bytes())
            .map_err(|error| refused(error.to_string()))?;
        let key = PrivateKeyDer::from_pem_slice(serving.key.as_bytes())
            .map_err(|error| refused(error.to_string()))?;
        let certified = CertifiedKey::from_der(vec![leaf], key, &mainstay_tls::provider())
            .map_err(|error| refused(error.to_string()))?;
        *self.pending.write() = Some(Arc::new(certified));
        let mut ca_bundle = self.ca_bundle.write();
        let end = "-----END CERTIFICATE-----\n";
        // Keeps the CA of the active certificate, and none before it.
        let newest_ca = ca_bundle.split_inclusive(end).next().unwrap_or_default();
        *ca_bundle = format!("{}{newest_ca}", serving.authority);
        Ok(())
    }

    /// Activates the newest certificate.
    pub(super) fn activate(&self) {
        if let Some(certified) = self.pending.write().take() {
            *self.active.write() = Some(certified);
        }
    }

    /// The CA certificates of the active and the pending certificate, in PEM.
    pub(super) fn ca_bundle(&self) -> String {
        self.ca_bundle.read().clone()
    }

    /// The TLS configuration of a listener with this certificate.
    pub(super) fn server_config(
        self: &Arc<Self>,
        tls: &ServerTls,
    ) -> Result<Arc<ServerConfig>, Cause> {
        let builder = tls.builder().map_err(|error| {
            Cause::new("TLS cannot be set up").because(Cause::new(error.to_string()))
        })?;
        let resolver: Arc<dyn ResolvesServerCert> = Arc::clone(self) as _;
        let mut server_config = builder
            .with_client_cert_verifier(mainstay_tls::any_client())
            .with_cert_resolver(resolver);
        server_config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        Ok(Arc::new(server_config))
    }
}

impl ResolvesServerCert for ServingCertificate {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        self.active.read().clone()
    }
}

/// The time until a certificate is due for rotation. A certificate from a clock that was set back since
/// is not valid yet, and is due at once.
pub(super) fn time_until_rotation(created: jiff::Timestamp, now: jiff::Timestamp) -> Duration {
    if now < created {
        return Duration::ZERO;
    }
    let rotation_interval =
        SignedDuration::try_from(ROTATION_INTERVAL).unwrap_or(SignedDuration::MAX);
    Duration::try_from(rotation_interval - now.duration_since(created)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn old_ca_stays_in_the_bundle_until_the_certificate_after_the_next() {
        let certificate = ServingCertificate::new("olm", Clock::system()).unwrap();
        let authorities = || -> Vec<String> {
            let ca_bundle = certificate.ca_bundle();
            ca_bundle.split_inclusive("-----END CERTIFICATE-----\n").map(str::to_owned).collect()
        };
        let active = || Arc::as_ptr(&certificate.active.read().clone().unwrap());
        let (first, previous) = (authorities(), active());
        assert_eq!(first.len(), 1);
        certificate.renew().unwrap();
        assert_eq!((authorities().len(), authorities()[1] == first[0]), (2, true));
        assert_eq!(active(), previous);
        certificate.activate();
        assert_ne!(active(), previous);
        certificate.renew().unwrap();
        assert!(!authorities().contains(&first[0]));
        assert!(certificate.server_config(&ServerTls::default()).is_ok());
    }

    #[test]
    fn certificate_rotates_after_a_year() {
        let created: jiff::Timestamp = "2026-01-02T03:04:05Z".parse().unwrap();
        assert_eq!(time_until_rotation(created, created), ROTATION_INTERVAL);
        assert_eq!(
            time_until_rotation(created, "2026-01-02T03:04:04Z".parse().unwrap()),
            Duration::ZERO
        );
        assert_eq!(
            time_until_rotation(created, "2027-02-02T03:04:05Z".parse().unwrap()),
            Duration::ZERO
        );
    }
}
