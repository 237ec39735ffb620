//! Servers of webhooks on the way back: their Services and certificates have the same names in both systems.
//!
//! OLM classic takes over no Service of another owner, and no Secret of another issuer. An issuer makes a Secret
//! again as long as it is asked to: cert-manager by a Certificate with an Issuer, OpenShift's service CA by an
//! annotation of the Service. So Issuers and annotations go first, then Secrets, then Certificates. The Services
//! lose their owner last: those of an extension tell which Secrets are meant.

use crate::rollback::without_extension;
use mainstay_api::names;
use mainstay_bundle::render::SERVING_CERTIFICATE_SECRET;
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
    /// Those that the extension owns, among all objects with its labels.
    pub fn of(objects: &'a [Object], extension: &Object) -> Self {
        let of_kind = |api_version: &str, kind: &str| -> Vec<&'a Object> {
            let is_kind = |object: &&Object| {
                object.kind() == kind
                    && object.api_version() == api_version
                    && is_owned(object, extension)
            };
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
        let certificates = of_kind(&addons::CERTIFICATE.api_version(), &addons::CERTIFICATE.kind);
        // A ClusterObjectSet creates webhook configurations last, so an unfinished rollout lacks them.
        let is_certified = |service: &Object| {
            let name = certificate_secret(service);
            certificates
                .iter()
                .any(|found| found.name() == name && found.namespace() == service.namespace())
        };
        let mut services = of_kind("v1", "Service");
        services.retain(|service| {
            called.contains(&(service.namespace(), service.name())) || is_certified(service)
        });
        Self {
            issuers: of_kind(&addons::ISSUER.api_version(), &addons::ISSUER.kind),
            certificates,
            services,
        }
    }
}

fn is_owned(object: &Object, owner: &Object) -> bool {
    object.owner_references().iter().any(|found| found.uid == owner.uid())
}

/// The name of the Secret with the certificate of a Service.
pub fn certificate_secret(service: &Object) -> String {
    format!("{}-cert", service.name())
}

/// Whether the Secret with the certificate of a Service was issued for OLM v1: the extension or the Service owns
/// it, or cert-manager keeps it for the Certificate of the same name.
pub fn is_issued(secret: &Object, service: &Object, extension: &Object) -> bool {
    is_owned(secret, extension)
        || is_owned(secret, service)
        || secret.annotation(CERTIFICATE_NAME) == Some(secret.name())
}

/// A Service without the annotation for which OpenShift's service CA issues a certificate; none if it has none.
pub fn without_issuer(service: &Object) -> Option<Object> {
    service.annotation(SERVING_CERTIFICATE_SECRET)?;
    let mut service = service.clone();
    service.remove(&["metadata", "annotations", SERVING_CERTIFICATE_SECRET]);
    Some(service)
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
    fn services_are_those_that_webhooks_call_or_that_have_certificates() {
        let client = |name: &str| json!({"service": {"namespace": "ns", "name": name}});
        let objects = [
            make("v1", "Service", "tea-service"),
            make("v1", "Service", "cup-service"),
            make("v1", "Service", "metrics"),
            make("v1", "Service", "early-service"),
            make("cert-manager.io/v1", "Certificate", "early-service-cert"),
            make("cert-manager.io/v1", "Issuer", "tea-service-cert-selfsigned-issuer"),
            make("cert-manager.io/v1", "Certificate", "tea-service-cert"),
            make("cert-manager.io/v1", "Issuer", "foreign-issuer"),
            make("cert-manager.io/v1", "Certificate", "foreign-cert"),
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
        let extension = object(json!({
            "apiVersion": "olm.operatorframework.io/v1", "kind": "ClusterExtension",
            "metadata": {"name": "tea", "uid": "e"},
        }));
        let mut objects = objects;
        for object in &mut objects {
            let uid = if object.name().starts_with("foreign") { "other" } else { "e" };
            object.set(
                &["metadata", "ownerReferences"],
                json!([{"apiVersion": "v1", "kind": "K", "name": "n", "uid": uid}]),
            );
        }
        let serving = ServingObjects::of(&objects, &extension);
        let names = |objects: &[&Object]| -> Vec<String> {
            objects.iter().map(|object| object.name().to_owned()).collect()
        };
        assert_eq!(names(&serving.services), ["tea-service", "cup-service", "early-service"]);
        assert_eq!(names(&serving.issuers), ["tea-service-cert-selfsigned-issuer"]);
        assert_eq!(names(&serving.certificates), ["early-service-cert", "tea-service-cert"]);
    }

    #[test]
    fn secret_of_another_issuer_stays() {
        let mut service = make("v1", "Service", "tea-service");
        let mut extension = make("olm.operatorframework.io/v1", "ClusterExtension", "tea");
        service.set(&["metadata", "uid"], "s".into());
        extension.set(&["metadata", "uid"], "e".into());
        let secret = make("v1", "Secret", &certificate_secret(&service));
        let issued = |change: &dyn Fn(&mut Object)| {
            let mut secret = secret.clone();
            change(&mut secret);
            is_issued(&secret, &service, &extension)
        };
        assert!(!issued(&|_| ()));
        for (annotation, is_ours) in [("tea-service-cert", true), ("cup-cert", false)] {
            let found = issued(&|secret| secret.set_annotation(CERTIFICATE_NAME, annotation));
            assert_eq!(found, is_ours, "{annotation}");
        }
        for (uid, is_ours) in [("e", true), ("s", true), ("csv", false)] {
            let owners = json!([{"apiVersion": "v1", "kind": "K", "name": "n", "uid": uid}]);
            let found =
                issued(&|secret| secret.set(&["metadata", "ownerReferences"], owners.clone()));
            assert_eq!(found, is_ours, "{uid}");
        }
    }

    #[test]
    fn service_ca_is_asked_no_more() {
        let mut service = make("v1", "Service", "tea-service");
        assert_eq!(without_issuer(&service), None);
        service.set_annotation(SERVING_CERTIFICATE_SECRET, "tea-service-cert");
        service.set_annotation("other", "1");
        let left = without_issuer(&service).unwrap();
        assert_eq!(left.annotations().collect::<Vec<_>>(), [("other", "1")]);
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
