//! Servers of webhooks on the way back: their Services and certificates have the same names in both systems.
//!
//! OLM classic takes over no Service of another owner, and no Secret that it did not make. cert-manager makes
//! a Secret again as long as its Certificate exists and the Issuer is there. So Issuers go first, then
//! Secrets, then Certificates; and the Services lose their owner before OLM classic looks at them.

use crate::rollback::without_extension;
use mainstay_api::names;
use mainstay_object::Object;
use mainstay_object::builtin::addons;
use serde_json::Value;
use std::collections::BTreeSet;

/// Annotation of cert-manager on Secrets: the Certificate that they are for.
const CERTIFICATE_NAME: &str = "cert-manager.io/certificate-name";

/// The objects of an extension that serve its webhooks.
#[derive(Clone, Debug, Default)]
pub struct ServingObjects<'a> {
    /// Issuers of cert-manager.
    pub issuers: Vec<&'a Object>,
    /// Certificates of cert-manager.
    pub certificates: Vec<&'a Object>,
    /// Services that webhooks are called at.
    pub services: Vec<&'a Object>,
}

impl<'a> ServingObjects<'a> {
    /// Those among all objects of an extension.
    pub fn of(objects: &'a [Object]) -> Self {
        let of_kind = |api_version: &str, kind: &str| -> Vec<&'a Object> {
            let is_kind =
                |object: &&Object| object.kind() == kind && object.api_version() == api_version;
            objects.iter().filter(is_kind).collect()
        };
        let mut called = BTreeSet::new();
        for object in objects {
            let mut add = |client: Option<&'a Value>| {
                let service = client.map_or(&Value::Null, |client| &client["service"]);
                if let (Some(namespace), Some(name)) =
                    (service["namespace"].as_str(), service["name"].as_str())
                {
                    called.insert((namespace, name));
                }
            };
            add(object.get(&["spec", "conversion", "webhook", "clientConfig"]));
            for webhook in object.array(&["webhooks"]) {
                add(webhook.get("clientConfig"));
            }
        }
        let mut services = of_kind("v1", "Service");
        services.retain(|service| called.contains(&(service.namespace(), service.name())));
        Self {
            issuers: of_kind(&addons::ISSUER.api_version(), &addons::ISSUER.kind),
            certificates: of_kind(&addons::CERTIFICATE.api_version(), &addons::CERTIFICATE.kind),
            services,
        }
    }
}

/// Whether cert-manager made or overwrote a Secret for a Certificate.
pub fn is_issued(secret: &Object, certificate: &Object) -> bool {
    secret.namespace() == certificate.namespace()
        && secret.annotation(CERTIFICATE_NAME) == Some(certificate.name())
}

/// A Service without its owner at OLM v1, so that OLM classic takes it over; none if it is so already.
pub fn released_service(service: &Object, extension: &Object) -> Option<Object> {
    let mut released = without_extension(service, extension)?;
    released.set_label(names::MANAGED, names::MANAGED_VALUE);
    Some(released)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn object(value: Value) -> Object {
        Object::from_value(value).unwrap()
    }

    fn make(api_version: &str, kind: &str, name: &str) -> Object {
        object(json!({
            "apiVersion": api_version, "kind": kind,
            "metadata": {"name": name, "namespace": "ns"},
        }))
    }

    #[test]
    fn services_are_those_that_webhooks_call() {
        let client = |name: &str| json!({"service": {"namespace": "ns", "name": name}});
        let objects = [
            make("v1", "Service", "tea-service"),
            make("v1", "Service", "cup-service"),
            make("v1", "Service", "metrics"),
            make("cert-manager.io/v1", "Issuer", "tea-service-cert-selfsigned-issuer"),
            make("cert-manager.io/v1", "Certificate", "tea-service-cert"),
            object(json!({
                "apiVersion": "admissionregistration.k8s.io/v1",
                "kind": "ValidatingWebhookConfiguration", "metadata": {"name": "w"},
                "webhooks": [{"clientConfig": client("tea-service")}],
            })),
            object(json!({
                "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
                "metadata": {"name": "pots.tea"}, "spec": {"conversion": {
                    "strategy": "Webhook", "webhook": {"clientConfig": client("cup-service")},
                }},
            })),
        ];
        let serving = ServingObjects::of(&objects);
        let names = |objects: &[&Object]| -> Vec<String> {
            objects.iter().map(|object| object.name().to_owned()).collect()
        };
        assert_eq!(names(&serving.services), ["tea-service", "cup-service"]);
        assert_eq!(names(&serving.issuers), ["tea-service-cert-selfsigned-issuer"]);
        assert_eq!(names(&serving.certificates), ["tea-service-cert"]);
    }

    #[test]
    fn secret_of_another_issuer_stays() {
        let certificate = make("cert-manager.io/v1", "Certificate", "tea-service-cert");
        let mut secret = make("v1", "Secret", "tea-service-cert");
        assert!(!is_issued(&secret, &certificate));
        secret.set_annotation(CERTIFICATE_NAME, "tea-service-cert");
        assert!(is_issued(&secret, &certificate));
    }

    #[test]
    fn service_without_an_owner_is_one_that_classic_takes_over() {
        let extension = object(json!({
            "apiVersion": "olm.operatorframework.io/v1", "kind": "ClusterExtension",
            "metadata": {"name": "tea", "uid": "e"},
        }));
        let mut service = make("v1", "Service", "tea-service");
        service.set(
            &["metadata", "ownerReferences"],
            json!([{"kind": "K", "name": "tea", "uid": "e"}]),
        );
        let released = released_service(&service, &extension).unwrap();
        assert!(released.owner_references().is_empty());
        assert_eq!(released.label("olm.managed"), Some("true"));
        assert_eq!(released_service(&released, &extension), None);
    }
}
