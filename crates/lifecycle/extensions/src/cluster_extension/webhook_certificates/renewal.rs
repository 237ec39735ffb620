//! What is due: which CA and which certificates are issued.
//!
//! A certificate is valid for two years, as those of cert-manager for bundles, and replaced 90 days before its
//! end: Pods that read it only when they start have this time to restart. Its CA stays, so nothing changes for
//! callers. A CA is valid for ten years, and replaced before a certificate could outlive it. Callers trust both
//! CAs until the older one has expired, and for a day only the older one signs: all callers trust a CA before
//! any server presents a certificate of it.

use super::store::CertificateStore;
use jiff::{SignedDuration, Timestamp};
use mainstay_bundle::render::WebhookServing;
use mainstay_certificates::{
    BACKDATED, CertificateRequest, KeyPairPem, MakeError, Usages, Validity, ca_validity, create_ca,
    server_validity, sign, validity_of,
};
use std::collections::BTreeSet;

const DAY: SignedDuration = SignedDuration::from_hours(24);
/// How long a certificate is valid.
const LIFETIME: SignedDuration = SignedDuration::from_hours(24 * 730);
/// How long before its end a certificate is replaced.
const RENEW_BEFORE: SignedDuration = SignedDuration::from_hours(24 * 90);
/// How long a CA is valid.
const CA_LIFETIME: SignedDuration = SignedDuration::from_hours(24 * 3650);
/// How long before its end a CA is replaced.
const RENEW_CA_BEFORE: SignedDuration = SignedDuration::from_hours(24 * (730 + 90));

/// What has to be issued.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Renewal {
    /// Whether there is a new CA; the present one, if it is valid, becomes the previous one.
    new_ca: bool,
    /// Whether callers trust the previous CA, as it is before this renewal, no longer.
    drop_previous_ca: bool,
    /// Indices of the servers that get a certificate.
    servers: Vec<usize>,
    /// Services without webhooks whose certificates are due. Before that, an upgrade that is refused may have
    /// dropped the webhooks, and the installed bundle still has them.
    dropped: BTreeSet<String>,
}

/// When a CA is valid, if it is valid now.
fn valid_ca(ca: Option<&KeyPairPem>, now: Timestamp) -> Option<Validity> {
    ca.and_then(ca_validity).filter(|validity| validity.contains(now))
}

/// `time` minus a duration.
fn before(time: Timestamp, duration: SignedDuration) -> Timestamp {
    time.checked_sub(duration).unwrap_or(Timestamp::MIN)
}

impl Renewal {
    /// What has to be issued so that these servers have certificates.
    pub(super) fn decide(
        store: &CertificateStore,
        servers: &[WebhookServing],
        now: Timestamp,
    ) -> Self {
        let ca = valid_ca(store.ca.as_ref(), now);
        let previous_ca = valid_ca(store.previous_ca.as_ref(), now);
        let new_ca = ca.is_none_or(|ca| now >= before(ca.until, RENEW_CA_BEFORE));
        // There is one previous CA only.
        let drop_previous_ca =
            store.previous_ca.is_some() && (previous_ca.is_none() || (new_ca && ca.is_some()));
        let trusted = [
            store.ca.as_ref().filter(|_| ca.is_some()),
            store.previous_ca.as_ref().filter(|_| !drop_previous_ca),
        ];
        let is_fresh = |server: &WebhookServing| {
            let Some(pair) = store.servers.get(&server.service) else { return false };
            let (certificate, key) = (pair.certificate.as_bytes(), pair.key.as_bytes());
            let hosts = server.hosts();
            trusted.iter().flatten().any(|ca| {
                let validity = server_validity(ca.certificate.as_bytes(), certificate, key, &hosts);
                validity.is_some_and(|validity| {
                    validity.contains(now) && now < before(validity.until, RENEW_BEFORE)
                })
            })
        };
        let due = servers.iter().enumerate().filter(|(_, server)| !is_fresh(server));
        let is_needed = |service: &str| servers.iter().any(|server| server.service == service);
        let is_kept = |pair: &KeyPairPem| {
            let validity = validity_of(pair.certificate.as_bytes());
            validity.is_some_and(|validity| now < before(validity.until, RENEW_BEFORE))
        };
        let dropped = store.servers.iter();
        let dropped = dropped.filter(|(service, pair)| !is_needed(service) && !is_kept(pair));
        Self {
            new_ca,
            drop_previous_ca,
            servers: due.map(|(at, _)| at).collect(),
            dropped: dropped.map(|(service, _)| service.clone()).collect(),
        }
    }

    /// Whether anything changes.
    pub(super) fn is_needed(&self) -> bool {
        self.new_ca || self.drop_previous_ca || !self.servers.is_empty() || !self.dropped.is_empty()
    }

    /// Issues what is due for these servers, which are those of the decision.
    ///
    /// # Errors
    /// A certificate cannot be created.
    pub(super) fn carry_out(
        &self,
        mut store: CertificateStore,
        servers: &[WebhookServing],
        now: Timestamp,
    ) -> Result<CertificateStore, MakeError> {
        if self.drop_previous_ca {
            store.previous_ca = None;
        }
        if self.new_ca {
            let retired = store.ca.take().filter(|ca| valid_ca(Some(ca), now).is_some());
            store.previous_ca = retired.or(store.previous_ca);
            store.ca = Some(create_ca(&request("mainstay-webhook-ca", CA_LIFETIME, now))?);
        }
        store.servers.retain(|service, _| !self.dropped.contains(service));
        for server in self.servers.iter().filter_map(|&at| servers.get(at)) {
            let Some(ca) = signing_ca(&store, now) else { continue };
            let hosts = server.hosts();
            // X.509 limits common names to 64 characters. The hosts are what counts.
            let name = hosts.first().filter(|host| host.len() <= 64).unwrap_or(&server.service);
            let pair = sign(ca, &request(name, LIFETIME, now), &hosts)?;
            store.servers.insert(server.service.clone(), pair);
        }
        Ok(store)
    }
}

fn request(name: &str, lifetime: SignedDuration, now: Timestamp) -> CertificateRequest<'_> {
    let validity = Validity::starting(now, lifetime);
    CertificateRequest { organization: None, name, usages: Usages::Server, validity }
}

/// The CA that signs: the newest one, unless callers may not trust it yet and the one before can still sign.
fn signing_ca(store: &CertificateStore, now: Timestamp) -> Option<&KeyPairPem> {
    let created = |validity: Validity| validity.from.checked_add(BACKDATED).ok();
    let is_new = valid_ca(store.ca.as_ref(), now)
        .and_then(created)
        .is_none_or(|created| before(now, DAY) < created);
    let can_sign = |ca: &&KeyPairPem| {
        let validity = valid_ca(Some(ca), now);
        validity.is_some_and(|validity| now <= before(validity.until, LIFETIME))
    };
    store.previous_ca.as_ref().filter(|_| is_new).filter(can_sign).or(store.ca.as_ref())
}

/// When something in a store is due next, as far as its certificates can be read.
pub(super) fn due(store: &CertificateStore) -> Timestamp {
    let until =
        |pair: &KeyPairPem| validity_of(pair.certificate.as_bytes()).map(|validity| validity.until);
    let ends = |pairs: Vec<&KeyPairPem>, renew_before: SignedDuration| {
        let ends: Vec<Timestamp> = pairs.into_iter().filter_map(until).collect();
        ends.into_iter().map(move |end| before(end, renew_before))
    };
    ends(store.servers.values().collect(), RENEW_BEFORE)
        .chain(ends(store.ca.iter().collect(), RENEW_CA_BEFORE))
        .chain(ends(store.previous_ca.iter().collect(), SignedDuration::ZERO))
        .min()
        .unwrap_or(Timestamp::MIN)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn now() -> Timestamp {
        "2026-01-02T03:04:05Z".parse().unwrap()
    }

    fn days(days: i64) -> SignedDuration {
        SignedDuration::from_hours(24 * days)
    }

    fn server(service: &str) -> WebhookServing {
        WebhookServing {
            service: service.to_owned(),
            certificate: format!("{service}-cert"),
            namespace: "ns".to_owned(),
        }
    }

    /// The store after a renewal at a time.
    fn renewed(
        store: &CertificateStore,
        servers: &[WebhookServing],
        at: Timestamp,
    ) -> CertificateStore {
        Renewal::decide(store, servers, at).carry_out(store.clone(), servers, at).unwrap()
    }

    /// Asserts that callers which trust `cas` trust all servers.
    fn assert_trusted(cas: &CertificateStore, servers: &CertificateStore) {
        for (service, pair) in &servers.servers {
            let trusts = cas.cas().any(|ca| {
                let (certificate, key) = (pair.certificate.as_bytes(), pair.key.as_bytes());
                let hosts = server(service).hosts();
                server_validity(ca.certificate.as_bytes(), certificate, key, &hosts).is_some()
            });
            assert!(trusts, "{service}");
        }
    }

    #[test]
    fn nothing_is_issued_twice_and_services_without_webhooks_lose_their_certificate_in_time() {
        let two = [server("a-service"), server("b-service")];
        let store = renewed(&CertificateStore::default(), &two, now());
        assert_trusted(&store, &store);
        assert_eq!(store.servers.len(), 2);
        assert!(!Renewal::decide(&store, &two, now()).is_needed());
        assert!(!Renewal::decide(&store, &two[..1], now()).is_needed());
        let one = renewed(&store, &two[..1], due(&store));
        assert_eq!(one.ca, store.ca);
        assert_eq!(one.servers.keys().collect::<Vec<_>>(), ["a-service"]);
        assert!(due(&one) > due(&store));
    }

    #[test]
    fn certificate_is_renewed_90_days_before_its_end_by_the_same_ca() {
        let servers = [server("a-service")];
        let store = renewed(&CertificateStore::default(), &servers, now());
        assert_eq!(due(&store), now() + days(730 - 90));
        let second = SignedDuration::from_secs(1);
        assert!(!Renewal::decide(&store, &servers, due(&store) - second).is_needed());
        let next = renewed(&store, &servers, due(&store));
        assert_eq!(next.ca, store.ca);
        assert_ne!(next.servers, store.servers);
        assert_eq!(due(&next), due(&store) + days(730 - 90));
        assert_trusted(&store, &next);
    }

    #[test]
    fn certificate_for_another_namespace_or_of_another_ca_is_replaced() {
        let servers = [server("a-service")];
        let store = renewed(&CertificateStore::default(), &servers, now());
        let moved = [WebhookServing { namespace: "other".to_owned(), ..server("a-service") }];
        assert_eq!(Renewal::decide(&store, &moved, now()).servers, [0]);
        let other = renewed(&CertificateStore::default(), &servers, now());
        let mixed = CertificateStore { servers: other.servers, ..store.clone() };
        let repaired = renewed(&mixed, &servers, now());
        assert_eq!(repaired.ca, store.ca);
        assert_trusted(&repaired, &repaired);
        // A CA with a foreign key is no CA.
        let ca = KeyPairPem { key: other.ca.unwrap().key, ..store.ca.clone().unwrap() };
        let broken = CertificateStore { ca: Some(ca), ..store };
        let repaired = renewed(&broken, &servers, now());
        assert_ne!(repaired.ca, broken.ca);
        assert_eq!(repaired.previous_ca, None);
        assert_trusted(&repaired, &repaired);
    }

    /// Renews for 28 years whenever something is due; callers and servers may learn of a renewal in either
    /// order.
    #[test]
    fn callers_trust_servers_before_and_after_each_renewal() {
        let servers = [server("a-service")];
        let mut store = renewed(&CertificateStore::default(), &servers, now());
        let (mut at, mut cas) = (now(), BTreeSet::new());
        let mut renewals = 0;
        while at < now() + days(28 * 365) {
            let next_at = due(&store);
            assert!(next_at > at, "renewed at {at} for {next_at}");
            at = next_at;
            let next = renewed(&store, &servers, at);
            assert!(!Renewal::decide(&next, &servers, at).is_needed(), "{at}");
            assert_trusted(&store, &next);
            assert_trusted(&next, &store);
            let validity = validity_of(next.servers["a-service"].certificate.as_bytes()).unwrap();
            for ca in next.cas() {
                cas.insert(ca.certificate.clone());
            }
            assert!(validity.contains(at));
            store = next;
            renewals += 1;
        }
        assert_eq!(cas.len(), 4, "after {renewals} renewals");
        assert!(renewals < 40, "{renewals}");
    }

    #[test]
    fn controller_that_was_off_for_decades_issues_everything_anew() {
        let servers = [server("a-service")];
        let store = renewed(&CertificateStore::default(), &servers, now());
        let at = now() + days(20 * 365);
        let next = renewed(&store, &servers, at);
        assert_eq!(next.previous_ca, None);
        assert_trusted(&next, &next);
        assert!(due(&next) > at);
    }

    /// The CA ends within the lifetime of a certificate when it is replaced late.
    #[test]
    fn ca_that_ends_soon_signs_nothing() {
        let servers = [server("a-service")];
        let store = renewed(&CertificateStore::default(), &servers, now());
        let at = now() + days(3650 - 100);
        let next = renewed(&store, &servers, at);
        assert_eq!(next.previous_ca, store.ca);
        let newest = CertificateStore { previous_ca: None, ..next.clone() };
        assert_trusted(&newest, &next);
        assert!(due(&next) > at);
    }
}
