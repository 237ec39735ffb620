//! Request-header authentication: the API server forwards the user in headers, and proves itself with
//! its front-proxy client certificate.
//!
//! The ConfigMap `kube-system/extension-apiserver-authentication` names the CA of that certificate and
//! the headers.

use http::{HeaderMap, HeaderName};
use mainstay_auth::Identity;
use mainstay_object::Object;
use rustls::RootCertStore;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, UnixTime};
use rustls::server::WebPkiClientVerifier;
use std::collections::BTreeMap;
use std::sync::Arc;
use x509_parser::prelude::{FromDer as _, X509Certificate};

/// The namespace of the ConfigMap in which the API server publishes its configuration.
pub(super) const NAMESPACE: &str = "kube-system";
pub(super) const NAME: &str = "extension-apiserver-authentication";

/// The request-header configuration: the front-proxy CA, and the headers of the user.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct RequestHeaderConfig {
    /// CA certificates of the front proxy, in PEM.
    authorities: String,
    /// Allowed common names of the client certificate; empty allows any.
    names: Vec<String>,
    users: Vec<String>,
    uids: Vec<String>,
    groups: Vec<String>,
    extra: Vec<String>,
}

impl RequestHeaderConfig {
    /// Reads the ConfigMap.
    pub(super) fn of(object: &Object) -> Self {
        let text = |key: &str| object.str(&["data", key]).unwrap_or_default();
        let list = |key: &str| -> Vec<String> {
            // An unreadable list is empty, so no user is authenticated.
            serde_json::from_str(text(key)).unwrap_or_default()
        };
        Self {
            authorities: text("requestheader-client-ca-file").to_owned(),
            names: list("requestheader-allowed-names"),
            users: list("requestheader-username-headers"),
            uids: list("requestheader-uid-headers"),
            groups: list("requestheader-group-headers"),
            extra: list("requestheader-extra-headers-prefix"),
        }
    }

    /// The user for whom the API server forwards a request. `None` if the client is not the API server,
    /// or the headers name no user. `chain` is the client's certificate chain, its own certificate
    /// first.
    pub(super) fn identity(
        &self,
        chain: &[CertificateDer<'_>],
        headers: &HeaderMap,
        now: UnixTime,
    ) -> Option<Identity> {
        let (leaf, intermediates) = chain.split_first()?;
        if !self.is_signed_by_client_ca(leaf, intermediates, now) || !self.has_allowed_name(leaf) {
            return None;
        }
        let values = |names: &[String]| -> Vec<String> {
            let found = names.iter().flat_map(|name| headers.get_all(name.as_str()));
            let texts =
                found.filter_map(|header| header.to_str().ok()).filter(|text| !text.is_empty());
            texts.map(str::to_owned).collect()
        };
        let user = values(&self.users).into_iter().next()?;
        let uid = values(&self.uids).into_iter().next().unwrap_or_default();
        Some(Identity::with_details(user, uid, values(&self.groups), self.extra(headers)))
    }

    fn is_signed_by_client_ca(
        &self,
        leaf: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> bool {
        let mut roots = RootCertStore::empty();
        let authorities = CertificateDer::pem_slice_iter(self.authorities.as_bytes());
        roots.add_parsable_certificates(authorities.flatten());
        // Without a CA there is no verifier.
        let verifier =
            WebPkiClientVerifier::builder_with_provider(Arc::new(roots), mainstay_tls::provider());
        verifier
            .build()
            .is_ok_and(|verifier| verifier.verify_client_cert(leaf, intermediates, now).is_ok())
    }

    fn has_allowed_name(&self, leaf: &CertificateDer<'_>) -> bool {
        let Ok((_, certificate)) = X509Certificate::from_der(leaf) else { return false };
        let mut names =
            certificate.subject().iter_common_name().filter_map(|name| name.as_str().ok());
        self.names.is_empty() || names.any(|name| self.names.iter().any(|allowed| allowed == name))
    }

    fn extra(&self, headers: &HeaderMap) -> BTreeMap<String, Vec<String>> {
        let mut extra: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for (name, value) in headers {
            let key = self.extra.iter().find_map(|prefix| extra_key(name, prefix));
            if let (Some(key), Ok(value)) = (key, value.to_str()) {
                extra.entry(key).or_default().push(value.to_owned());
            }
        }
        extra
    }
}

/// The key of an extra header: the header's name after the prefix, with percent escapes decoded.
fn extra_key(name: &HeaderName, prefix: &str) -> Option<String> {
    let suffix = name.as_str().strip_prefix(&*prefix.to_ascii_lowercase())?;
    let mut bytes = Vec::with_capacity(suffix.len());
    let mut rest = suffix.as_bytes();
    while let Some((first, tail)) = rest.split_first() {
        let digits = tail.get(..2).filter(|_| *first == b'%');
        let digits = digits.and_then(|digits| std::str::from_utf8(digits).ok());
        let unescaped = digits.and_then(|digits| u8::from_str_radix(digits, 16).ok());
        bytes.push(unescaped.unwrap_or(*first));
        rest = if unescaped.is_some() { &tail[2..] } else { tail };
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use rcgen::{
        BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    };
    use serde_json::json;
    use std::slice;

    struct Authority {
        pem: String,
        issuer: Issuer<'static, KeyPair>,
    }

    fn authority() -> Authority {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().unwrap();
        let pem = params.self_signed(&key).unwrap().pem();
        Authority { pem, issuer: Issuer::new(params, key) }
    }

    fn client(authority: &Authority, name: &str) -> CertificateDer<'static> {
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, name);
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        let key = KeyPair::generate().unwrap();
        params.signed_by(&key, &authority.issuer).unwrap().der().clone()
    }

    fn config_of(authority: &Authority, names: &str) -> RequestHeaderConfig {
        let map = json!({"data": {
            "requestheader-client-ca-file": authority.pem,
            "requestheader-allowed-names": names,
            "requestheader-username-headers": "[\"X-Remote-User\"]",
            "requestheader-group-headers": "[\"X-Remote-Group\"]",
            "requestheader-extra-headers-prefix": "[\"X-Remote-Extra-\"]",
        }});
        RequestHeaderConfig::of(&Object::from_value(map).unwrap())
    }

    fn headers() -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in [
            ("x-remote-user", "jane"),
            ("x-remote-group", "devs"),
            ("x-remote-group", "ops"),
            ("x-remote-extra-example.com%2fnode", "n1"),
        ] {
            headers.append(HeaderName::from_static(name), value.parse().unwrap());
        }
        headers
    }

    #[test]
    fn identity_headers_count_only_from_the_front_proxy_certificate() {
        let (front_proxy_ca, other_ca) = (authority(), authority());
        let now = UnixTime::now();
        let config = config_of(&front_proxy_ca, "[\"front-proxy\"]");
        let certificate = client(&front_proxy_ca, "front-proxy");
        let identity = config.identity(slice::from_ref(&certificate), &headers(), now).unwrap();
        assert_eq!(identity.user(), "jane");
        assert_eq!(identity.groups(), ["devs", "ops", "system:authenticated"]);
        assert_eq!(identity.extra()["example.com/node"], ["n1"]);
        let mut without_user = headers();
        without_user.remove("x-remote-user");
        assert_eq!(config.identity(slice::from_ref(&certificate), &without_user, now), None);
        assert_eq!(config.identity(&[], &headers(), now), None);
        assert_eq!(config.identity(&[client(&other_ca, "front-proxy")], &headers(), now), None);
        let jane = client(&front_proxy_ca, "jane");
        assert_eq!(config.identity(slice::from_ref(&jane), &headers(), now), None);
        assert!(config_of(&front_proxy_ca, "[]").identity(&[jane], &headers(), now).is_some());
        let without_ca = RequestHeaderConfig { authorities: String::new(), ..config };
        assert_eq!(without_ca.identity(&[certificate], &headers(), now), None);
    }
}
