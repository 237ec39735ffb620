//! Providers of webhook serving certificates: cert-manager, OpenShift's service CA, or another one.

use super::objects;
use serde_json::{Value, json};
use std::fmt;

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

/// A provider of certificates. One that issues certificates itself writes its CA in
/// [`CertificateProvider::inject_ca_bundle`] and its Secret in
/// [`CertificateProvider::additional_objects`].
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
        objects::annotate(caller, "cert-manager.io/inject-ca-from", &certificate);
    }

    fn prepare_service(&self, _service: &mut Value, _serving: &WebhookServing) {}

    fn additional_objects(&self, serving: &WebhookServing) -> Vec<Value> {
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

/// Certificates of OpenShift's service CA, which reads annotations.
#[derive(Clone, Copy, Debug, Default)]
pub struct ServiceCa;

impl CertificateProvider for ServiceCa {
    fn secret(&self, serving: &WebhookServing) -> CertificateSecret {
        CertificateSecret::with_default_keys(serving)
    }

    fn inject_ca_bundle(&self, caller: &mut Value, _serving: &WebhookServing) {
        objects::annotate(caller, "service.beta.openshift.io/inject-cabundle", "true");
    }

    fn prepare_service(&self, service: &mut Value, serving: &WebhookServing) {
        let name = "service.beta.openshift.io/serving-cert-secret-name";
        objects::annotate(service, name, &serving.certificate);
    }

    fn additional_objects(&self, _serving: &WebhookServing) -> Vec<Value> {
        Vec::new()
    }
}
