//! What the TLS port shows: a certificate that is exchanged in time, however long the process runs.
//!
//! A process that runs for a year, or whose machine wakes up after months, would otherwise show a
//! certificate that has ended. Each handshake compares the certificate's life with the wall clock, which is
//! cheaper than any timer is right: timers stand still while the machine is suspended, and know of no step.

use super::{Leaf, Pair, ParseCertificateError, PkiError, RENEW_BEFORE, parse};
use mainstay_clock::Clock;
use parking_lot::RwLock;
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use std::fmt;
use std::sync::Arc;

/// The certificate of the port, which is made again when it is about to end.
pub(super) struct Serving {
    authority: Arc<Pair>,
    names: Vec<String>,
    clock: Clock,
    shown: RwLock<Shown>,
}

struct Shown {
    key: Arc<CertifiedKey>,
    /// Seconds since the epoch: from when it is good, and when another one takes its place.
    since: i64,
    until: i64,
}

impl fmt::Debug for Serving {
    /// Prints no keys.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Serving").finish_non_exhaustive()
    }
}

impl Serving {
    pub(super) fn new(
        authority: Arc<Pair>,
        first: &Pair,
        names: Vec<String>,
        clock: Clock,
    ) -> Result<Self, PkiError> {
        let shown = RwLock::new(shown(&authority, first)?);
        Ok(Self { authority, names, clock, shown })
    }

    /// The certificate to show now.
    pub(super) fn current(&self) -> Arc<CertifiedKey> {
        let now = self.clock.now().as_second();
        let good = |shown: &Shown| shown.since <= now && now < shown.until;
        {
            let shown = self.shown.read();
            if good(&shown) {
                return Arc::clone(&shown.key);
            }
        }
        let mut kept = self.shown.write();
        if !good(&kept) {
            let made = Leaf::Serving(&self.names).make(&self.authority, &self.clock);
            match made.and_then(|made| shown(&self.authority, &made)) {
                Ok(made) => {
                    tracing::info!("the certificate of the port is exchanged for a new one");
                    *kept = made;
                }
                Err(error) => tracing::error!(%error, "the certificate of the port goes on"),
            }
        }
        Arc::clone(&kept.key)
    }
}

impl ResolvesServerCert for Serving {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(self.current())
    }
}

fn shown(authority: &Pair, leaf: &Pair) -> Result<Shown, PkiError> {
    let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(leaf.key.serialize_der()));
    let chain = vec![leaf.certificate.clone(), authority.certificate.clone()];
    let key = CertifiedKey::from_der(chain, key, &rustls::crypto::ring::default_provider())
        .map_err(PkiError::Tls)?;
    let unread =
        |error: ParseCertificateError| PkiError::Tls(rustls::Error::General(error.to_string()));
    let parsed = parse(&leaf.certificate).map_err(unread)?;
    let validity = parsed.validity();
    let margin = i64::try_from(RENEW_BEFORE.as_secs()).unwrap_or(i64::MAX);
    Ok(Shown {
        key: Arc::new(key),
        since: validity.not_before.timestamp(),
        until: validity.not_after.timestamp().saturating_sub(margin),
    })
}

#[cfg(test)]
mod tests {
    use super::super::Pki;
    use super::*;
    use jiff::SignedDuration;

    #[test]
    fn the_certificate_of_the_port_is_exchanged_when_the_wall_clock_says_so() {
        let (clock, hands) = Clock::adjustable("2026-01-02T03:04:05Z".parse().unwrap());
        let pki = Pki::ephemeral(&clock, &[]).unwrap();
        let serving = pki.serving().unwrap();
        let first = serving.current();
        let day = |days: i64| SignedDuration::from_hours(24 * days);
        hands.step(day(334));
        assert!(Arc::ptr_eq(&first, &serving.current()), "more than a month is left");
        hands.step(day(2));
        let second = serving.current();
        assert!(!Arc::ptr_eq(&first, &second));
        assert!(Arc::ptr_eq(&second, &serving.current()), "it is made once");
        // A clock that was far ahead: the new certificate is not valid yet.
        hands.step(day(-2));
        let third = serving.current();
        assert!(!Arc::ptr_eq(&second, &third));
        assert_eq!(third.cert[1], first.cert[1], "the authority stays");
    }
}
