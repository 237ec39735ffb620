//! The Secret with the CA and the certificates of an extension.
//!
//! | Key | Content |
//! |---|---|
//! | `ca.crt`, `ca.key` | the CA |
//! | `previous-ca.crt`, `previous-ca.key` | the CA before it, as long as it is valid |
//! | `SERVICE.crt`, `SERVICE.key` | the certificate of a Service |
//!
//! Names of Services with webhooks end with `-service`, so no two keys are equal.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use mainstay_bundle::render::{IssuedCertificate, IssuedCertificates};
use mainstay_certificates::KeyPairPem;
use mainstay_object::Object;
use serde_json::{Map, Value};
use std::collections::BTreeMap;

const CA: &str = "ca";
const PREVIOUS_CA: &str = "previous-ca";
const CERTIFICATE: &str = ".crt";
const KEY: &str = ".key";

/// The CA and the certificates of an extension.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct CertificateStore {
    /// The CA.
    pub(super) ca: Option<KeyPairPem>,
    /// The CA before it. Callers still trust it.
    pub(super) previous_ca: Option<KeyPairPem>,
    /// The certificates by the name of the Service.
    pub(super) servers: BTreeMap<String, KeyPairPem>,
}

impl CertificateStore {
    /// What a Secret contains. Keys without a certificate and certificates without a key are left out.
    pub(super) fn of(secret: &Object) -> Self {
        let text = |name: &str, ending: &str| {
            let data = secret.str(&["data", &format!("{name}{ending}")])?;
            String::from_utf8(STANDARD.decode(data).ok()?).ok()
        };
        let pair = |name: &str| {
            Some(KeyPairPem { certificate: text(name, CERTIFICATE)?, key: text(name, KEY)? })
        };
        let keys = secret.get(&["data"]).and_then(Value::as_object).into_iter().flatten();
        let names = keys.filter_map(|(key, _)| key.strip_suffix(CERTIFICATE));
        let servers = names.filter(|name| ![CA, PREVIOUS_CA].contains(name));
        Self {
            ca: pair(CA),
            previous_ca: pair(PREVIOUS_CA),
            servers: servers.filter_map(|name| Some((name.to_owned(), pair(name)?))).collect(),
        }
    }

    /// The field `data` of the Secret.
    pub(super) fn data(&self) -> Value {
        let cas = [(CA, &self.ca), (PREVIOUS_CA, &self.previous_ca)];
        let cas = cas.into_iter().filter_map(|(name, pair)| Some((name, pair.as_ref()?)));
        let servers = self.servers.iter().map(|(name, pair)| (&**name, pair));
        let mut data = Map::new();
        for (name, pair) in cas.chain(servers) {
            data.insert(format!("{name}{CERTIFICATE}"), STANDARD.encode(&pair.certificate).into());
            data.insert(format!("{name}{KEY}"), STANDARD.encode(&pair.key).into());
        }
        Value::Object(data)
    }

    /// The CAs that callers trust, the newest first.
    pub(super) fn cas(&self) -> impl Iterator<Item = &KeyPairPem> {
        self.ca.iter().chain(&self.previous_ca)
    }

    /// What is rendered. The keys of CAs are not in it.
    pub(super) fn issued(&self) -> IssuedCertificates {
        let servers = self.servers.iter().map(|(service, pair)| {
            let KeyPairPem { certificate, key } = pair.clone();
            (service.clone(), IssuedCertificate { certificate, private_key: key })
        });
        IssuedCertificates {
            ca_bundle: self.cas().map(|ca| &*ca.certificate).collect(),
            servers: servers.collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use mainstay_object::builtin;

    #[test]
    fn secret_has_all_that_is_read_from_it() {
        let pair =
            |name: &str| KeyPairPem { certificate: format!("{name}+"), key: format!("{name}-") };
        let store = CertificateStore {
            ca: Some(pair("new")),
            previous_ca: Some(pair("old")),
            servers: [("a-service".to_owned(), pair("a"))].into(),
        };
        let mut secret = Object::new(&builtin::SECRET.gvk(), "s");
        secret.set(&["data"], store.data());
        assert_eq!(CertificateStore::of(&secret), store);
        assert_eq!(store.issued().ca_bundle, "new+old+");
        secret.set(&["data", "a-service.key"], "?".into());
        secret.set(&["data", "previous-ca.key"], Value::Null);
        let rest = CertificateStore { ca: Some(pair("new")), ..CertificateStore::default() };
        assert_eq!(CertificateStore::of(&secret), rest);
    }
}
