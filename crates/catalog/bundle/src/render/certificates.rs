//! Providers of webhook serving certificates: cert-manager, OpenShift's service CA, or the installer itself.

use super::objects;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::fmt;

/// Annotation of cert-manager on callers of webhooks: the Certificate whose CA they trust, `namespace/name`.
pub const INJECT_CA_FROM: &str = "cert-manager.io/inject-ca-from";
/// Annotation of OpenShift's service CA on callers of webhooks: with the value `true`, it writes its CA to them.
pub const INJECT_CA_BUNDLE: &str = "service.beta.openshift.io/inject-cabundle";
/// Annotation of OpenShift's service CA on Services: the name of the Secret for which it issues a certificate.
pub const SERVING_CERTIFICATE_SECRET: &str = "service.beta.openshift.io/serving-cert-secret-name";

/// The Service and certificate with which a Deployment serves its webhooks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WebhookServing {
    /// The name of the Service.
    pub service: String,
    /// The name of the certificate, and of the Secret that holds it.
    pub certificate: String,
    /// The namespace of both.
    pub namespace: String,
}

impl WebhookServing {
    /// The DNS names of the certificate: those by which the API server and Pods call the Service.
    pub fn hosts(&self) -> [String; 3] {
        let host = format!("{}.{}", self.service, self.namespace);
        [host.clone(), format!("{host}.svc"), format!("{host}.svc.cluster.local")]
    }
}

/// A Secret with a certificate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CertificateSecret {
    /// The name.
    pub name: String,
    /// The key of the certificate.
    pub certificate: String,
    /// The key of the private key.
    pub private_key: String,
}

impl CertificateSecret {
    /// The Secret that has the certificate's name, with the keys of `kubernetes.io/tls`.
    pub fn with_default_keys(serving: &WebhookServing) -> Self {
        Self {
            name: serving.certificate.clone(),
            certificate: "tls.crt".to_owned(),
            private_key: "tls.key".to_owned(),
        }
    }
}

/// A provider of certificates.
pub trait CertificateProvider: fmt::Debug {
    /// The Secret that the Deployment mounts.
    fn secret(&self, serving: &WebhookServing) -> CertificateSecret;

    /// Changes a caller of the webhook (a webhook configuration or a CustomResourceDefinition) so
    /// that it trusts the certificate.
    fn inject_ca_bundle(&self, caller: &mut Value, serving: &WebhookServing);

    /// Changes the Service of the Deployment.
    fn prepare_service(&self, service: &mut Value, serving: &WebhookServing);

    /// Objects that the provider needs besides.
    fn additional_objects(&self, serving: &WebhookServing) -> Vec<Value>;
}

/// Certificates of cert-manager: self-signed, valid for two years, renewed one day before they
/// expire.
#[derive(Clone, Copy, Debug, Default)]
pub struct CertManager;

impl CertificateProvider for CertManager {
    fn secret(&self, serving: &WebhookServing) -> CertificateSecret {
        CertificateSecret::with_default_keys(serving)
    }

    fn inject_ca_bundle(&self, caller: &mut Value, serving: &WebhookServing) {
        let certificate = format!("{}/{}", serving.namespace, serving.certificate);
        objects::annotate(caller, INJECT_CA_FROM, &certificate);
    }

    fn prepare_service(&self, _service: &mut Value, _serving: &WebhookServing) {}

    fn additional_objects(&self, serving: &WebhookServing) -> Vec<Value> {
        let issuer = super::generated_names::with_suffix(&serving.certificate, "selfsigned-issuer");
        let hosts = serving.hosts();
        let object = |kind: &str, name: &str, spec: Value| {
            json!({
                "apiVersion": "cert-manager.io/v1",
                "kind": kind,
                "metadata": objects::metadata(name, &serving.namespace),
                "spec": spec,
                "status": {},
            })
        };
        let spec = json!({
            "commonName": hosts[0],
            "dnsNames": hosts,
            "duration": "17520h0m0s",
            "issuerRef": {"name": issuer},
            "renewBefore": "24h0m0s",
            "secretName": serving.certificate,
            "usages": ["server auth"],
        });
        vec![
            object("Issuer", &issuer, json!({"selfSigned": {}})),
            object("Certificate", &serving.certificate, spec),
        ]
    }
}

/// Certificates of OpenShift's service CA, which reads annotations.
#[derive(Clone, Copy, Debug, Default)]
pub struct ServiceCa;

impl CertificateProvider for ServiceCa {
    fn secret(&self, serving: &WebhookServing) -> CertificateSecret {
        CertificateSecret::with_default_keys(serving)
    }

    fn inject_ca_bundle(&self, caller: &mut Value, _serving: &WebhookServing) {
        objects::annotate(caller, INJECT_CA_BUNDLE, "true");
    }

    fn prepare_service(&self, service: &mut Value, serving: &WebhookServing) {
        objects::annotate(service, SERVING_CERTIFICATE_SECRET, &serving.certificate);
    }

    fn additional_objects(&self, _serving: &WebhookServing) -> Vec<Value> {
        Vec::new()
    }
}

/// Certificates that the installer of the bundle has issued. Without any, the Secrets have no data and callers
/// no CA, which suffices to derive permissions.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct IssuedCertificates {
    /// The certificates of the CAs that callers trust, in PEM.
    pub ca_bundle: String,
    /// The certificates of servers by the name of their Service.
    pub servers: BTreeMap<String, IssuedCertificate>,
}

/// A certificate and its private key, in PEM.
#[derive(Clone, PartialEq, Eq)]
pub struct IssuedCertificate {
    /// The certificate.
    pub certificate: String,
    /// The private key.
    pub private_key: String,
}

impl fmt::Debug for IssuedCertificates {
    /// Prints no keys.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("IssuedCertificates")
            .field("servers", &self.servers.keys())
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for IssuedCertificate {
    /// Prints no keys.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("IssuedCertificate").finish_non_exhaustive()
    }
}

impl CertificateProvider for IssuedCertificates {
    fn secret(&self, serving: &WebhookServing) -> CertificateSecret {
        CertificateSecret::with_default_keys(serving)
    }

    fn inject_ca_bundle(&self, caller: &mut Value, _serving: &WebhookServing) {
        if self.ca_bundle.is_empty() {
            return;
        }
        let ca_bundle = Value::from(STANDARD.encode(&self.ca_bundle));
        if let Some(client) = caller.pointer_mut("/spec/conversion/webhook/clientConfig") {
            client["caBundle"] = ca_bundle.clone();
        }
        let webhooks = caller.get_mut("webhooks").and_then(Value::as_array_mut);
        for webhook in webhooks.into_iter().flatten() {
            webhook["clientConfig"]["caBundle"] = ca_bundle.clone();
        }
    }

    fn prepare_service(&self, _service: &mut Value, _serving: &WebhookServing) {}

    fn additional_objects(&self, serving: &WebhookServing) -> Vec<Value> {
        let mut data = Map::new();
        if let Some(issued) = self.servers.get(&serving.service) {
            for (key, text) in [
                ("ca.crt", &self.ca_bundle),
                ("tls.crt", &issued.certificate),
                ("tls.key", &issued.private_key),
            ] {
                data.insert(key.to_owned(), STANDARD.encode(text).into());
            }
        }
        vec![json!({
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": objects::metadata(&serving.certificate, &serving.namespace),
            "type": "kubernetes.io/tls",
            "data": data,
        })]
    }
}
