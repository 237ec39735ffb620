//! Who provides the certificates that webhooks are served with.

use super::objects;
use serde_json::{Value, json};
use std::fmt;

/// Where a deployment serves its webhooks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WebhookServing {
    /// The service before the deployment.
    pub service: String,
    /// The certificate, and the secret that holds it.
    pub certificate: String,
    /// The namespace of both.
    pub namespace: String,
}

/// A secret with a certificate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CertificateSecret {
    /// Its name.
    pub name: String,
    /// The key of the certificate.
    pub certificate: String,
    /// The key of the private key.
    pub private_key: String,
}

impl CertificateSecret {
    /// The secret named as the certificate, with the keys that Kubernetes uses.
    pub fn with_default_keys(serving: &WebhookServing) -> Self {
        Self {
            name: serving.certificate.clone(),
            certificate: "tls.crt".to_owned(),
            private_key: "tls.key".to_owned(),
        }
    }
}

/// A provider of certificates. Who makes certificates of his own writes the authority into the
/// objects ([`Certificates::inject_ca_bundle`]) and the secret beside them ([`Certificates::objects`]).
pub trait CertificateProvider: fmt::Debug {
    /// The secret from which the deployment takes its certificate.
    fn secret(&self, serving: &WebhookServing) -> CertificateSecret;

    /// Changes an object that calls the deployment (a webhook configuration, or a custom resource
    /// definition) so that it trusts the certificate.
    fn inject_ca_bundle(&self, caller: &mut Value, serving: &WebhookServing);

    /// Changes the service before the deployment.
    fn serve(&self, service: &mut Value, serving: &WebhookServing);

    /// What is needed besides.
    fn objects(&self, serving: &WebhookServing) -> Vec<Value>;
}

/// Certificates by cert-manager: self-signed, for two years, renewed on their last day.
#[derive(Clone, Copy, Debug, Default)]
pub struct CertManager;

impl CertificateProvider for CertManager {
    fn secret(&self, serving: &WebhookServing) -> CertificateSecret {
        CertificateSecret::with_default_keys(serving)
    }

    fn inject_ca_bundle(&self, caller: &mut Value, serving: &WebhookServing) {
        let certificate = format!("{}/{}", serving.namespace, serving.certificate);
        objects::annotate(caller, "cert-manager.io/inject-ca-from", &certificate);
    }

    fn serve(&self, _service: &mut Value, _serving: &WebhookServing) {}

    fn objects(&self, serving: &WebhookServing) -> Vec<Value> {
        let issuer = super::generated_names::with_suffix(&serving.certificate, "selfsigned-issuer");
        let host = format!("{}.{}", serving.service, serving.namespace);
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
            "commonName": host,
            "dnsNames": [host, format!("{host}.svc"), format!("{host}.svc.cluster.local")],
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

/// Certificates by OpenShift's service CA, which looks for annotations.
#[derive(Clone, Copy, Debug, Default)]
pub struct ServiceCa;

impl CertificateProvider for ServiceCa {
    fn secret(&self, serving: &WebhookServing) -> CertificateSecret {
        CertificateSecret::with_default_keys(serving)
    }

    fn inject_ca_bundle(&self, caller: &mut Value, _serving: &WebhookServing) {
        objects::annotate(caller, "service.beta.openshift.io/inject-cabundle", "true");
    }

    fn serve(&self, service: &mut Value, serving: &WebhookServing) {
        let name = "service.beta.openshift.io/serving-cert-secret-name";
        objects::annotate(service, name, &serving.certificate);
    }

    fn objects(&self, _serving: &WebhookServing) -> Vec<Value> {
        Vec::new()
    }
}
