//! The serving certificate of the TLS listener, which is replaced before it expires.
//!
//! A process may run for a year, or its machine may wake up after months. Without a replacement,
//! its certificate would have expired. Each handshake compares the validity period with the wall
//! clock. That is cheap, and more reliable than a timer: timers stop while the machine is
//! suspended, and miss steps of the clock.

use super::leaf::Leaf;
use super::{CertificateKeyPair, ParseCertificateError, PkiError, RENEW_BEFORE, parse};
use mainstay_clock::Clock;
use parking_lot::RwLock;
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use std::fmt;
use std::sync::Arc;

/// The resolver of the listener's certificate, which issues a new one when the current one is about
/// to expire.
pub(super) struct ServingCertificateResolver {
    authority: Arc<CertificateKeyPair>,
    names: Vec<String>,
    clock: Clock,
    current: RwLock<ServedKey>,
}

struct ServedKey {
    key: Arc<CertifiedKey>,
    /// Seconds since the epoch: when the certificate begins to be valid.
    not_before: i64,
    /// Seconds since the epoch: when the certificate is replaced.
    replace_at: i64,
}

impl fmt::Debug for ServingCertificateResolver {
    /// Prints no keys.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServingCertificateResolver").finish_non_exhaustive()
    }
}

impl ServingCertificateResolver {
    pub(super) fn new(
        authority: Arc<CertificateKeyPair>,
        first: &CertificateKeyPair,
        names: Vec<String>,
        clock: Clock,
    ) -> Result<Self, PkiError> {
        let current = RwLock::new(served_key(&authority, first)?);
        Ok(Self { authority, names, clock, current })
    }

    /// The current certificate, or a new one in its place.
    pub(super) fn current_key(&self) -> Arc<CertifiedKey> {
        let now = self.clock.now().as_second();
        let is_current = |served: &ServedKey| served.not_before <= now && now < served.replace_at;
        {
            let current = self.current.read();
            if is_current(&current) {
                return Arc::clone(&current.key);
            }
        }
        let mut current = self.current.write();
        if !is_current(&current) {
            let pair = Leaf::Serving(&self.names).issue(&self.authority, &self.clock);
            match pair.and_then(|pair| served_key(&self.authority, &pair)) {
                Ok(served) => {
                    tracing::info!("the serving certificate is replaced");
                    *current = served;
                }
                Err(error) => {
                    tracing::error!(%error, "the serving certificate cannot be replaced");
                }
            }
        }
        Arc::clone(&current.key)
    }
}

impl ResolvesServerCert for ServingCertificateResolver {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(self.current_key())
    }
}

fn served_key(
    authority: &CertificateKeyPair,
    leaf: &CertificateKeyPair,
) -> Result<ServedKey, PkiError> {
    let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(leaf.key.serialize_der()));
    let chain = vec![leaf.certificate.clone(), authority.certificate.clone()];
    let key = CertifiedKey::from_der(chain, key, &rustls::crypto::ring::default_provider())
        .map_err(PkiError::Tls)?;
    let invalid =
        |error: ParseCertificateError| PkiError::Tls(rustls::Error::General(error.to_string()));
    let parsed = parse(&leaf.certificate).map_err(invalid)?;
    let validity = parsed.validity();
    let margin = i64::try_from(RENEW_BEFORE.as_secs()).unwrap_or(i64::MAX);
    Ok(ServedKey {
        key: Arc::new(key),
        not_before: validity.not_before.timestamp(),
        replace_at: validity.not_after.timestamp().saturating_sub(margin),
    })
}

#[cfg(test)]
mod tests {
    use super::super::Pki;
    use super::*;
    use jiff::SignedDuration;

    #[test]
    fn serving_certificate_is_replaced_by_the_wall_clock() {
        let (clock, hands) = Clock::adjustable("2026-01-02T03:04:05Z".parse().unwrap());
        let pki = Pki::ephemeral(&clock, &[]).unwrap();
        let serving = pki.serving_certificate().unwrap();
        let first = serving.current_key();
        let day = |days: i64| SignedDuration::from_hours(24 * days);
        hands.step(day(334));
        assert!(Arc::ptr_eq(&first, &serving.current_key()), "replaced more than a month early");
        hands.step(day(2));
        let second = serving.current_key();
        assert!(!Arc::ptr_eq(&first, &second), "not replaced within a month of its end");
        assert!(Arc::ptr_eq(&second, &serving.current_key()), "replaced twice");
        // The clock was far ahead and is set back: the new certificate is not valid yet.
        hands.step(day(-2));
        let third = serving.current_key();
        assert!(!Arc::ptr_eq(&second, &third), "not replaced although it is not valid yet");
        assert_eq!(third.cert[1], first.cert[1], "the CA changed");
    }
}
