//! Certificates of webhooks: from cert-manager, from OpenShift's service CA, and those that the controller
//! issues itself.

use crate::approved_accounts::change_and_wait_until_repaired;
use crate::bundles::TestBundle;
use crate::certificate_renewals::wait_until_renewed;
use crate::extensions::{NAMESPACE, catalog, extension};
use crate::olm_cluster::{OlmCluster, condition, message};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use mainstay_api::resources::{CLUSTER_EXTENSION, CLUSTER_OBJECT_SET};
use mainstay_api::{CrdChannel, olm_v1_crds};
use mainstay_bundle::render::{InstallSettings, IssuedCertificates, RegistryV1Bundle};
use mainstay_bundle::{Limits, MemoryFiles};
use mainstay_certificates::server_validity;
use mainstay_client::{DeleteOptions, Patch};
use mainstay_extensions::{Features, TrustMode, WebhookCertificates, subsystem};
use mainstay_object::{Gvk, Object, Resource, builtin};
use mainstay_permissions::{
    BundleKinds, ExtensionApplier, InstallManifest, InstallerNames, exact_installer,
};
use mainstay_testkit::InjectedFault;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

const SYSTEM: &str = "olmv1-system";
/// The Secret that the Deployment mounts.
pub(crate) const SERVING: &str = "a-service-cert";
/// The Secret with the keys of the extension.
const STORE: &str = "ext-webhook-certificates";

/// The CustomResourceDefinition that the bundle converts.
pub(crate) fn converted_crd() -> Value {
    let version = |name: &str, storage: bool| {
        json!({
            "name": name, "served": true, "storage": storage,
            "schema": {"openAPIV3Schema": {
                "type": "object", "x-kubernetes-preserve-unknown-fields": true,
            }},
        })
    };
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "things.example.com"},
        "spec": {
            "group": "example.com", "scope": "Namespaced",
            "names": {"plural": "things", "singular": "thing", "kind": "Thing", "listKind": "ThingList"},
            "versions": [version("v1", true), version("v2", false)],
        },
    })
}

/// Adds webhooks of each kind to a ClusterServiceVersion.
pub(crate) fn add_webhooks(csv: &mut Value) {
    let hook = |kind: &str, name: &str, more: Value| {
        let mut hook = json!({
            "type": kind, "generateName": name, "deploymentName": "a", "containerPort": 443,
            "targetPort": 9443, "sideEffects": "None", "admissionReviewVersions": ["v1"],
            "failurePolicy": "Fail", "webhookPath": "/hook",
        });
        hook.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        hook
    };
    let rules = json!({"rules": [{
        "apiGroups": ["example.com"], "apiVersions": ["v1"], "operations": ["CREATE"], "scope": "*",
        "resources": ["things"],
    }]});
    csv["spec"]["webhookdefinitions"] = json!([
        hook("ValidatingAdmissionWebhook", "v.example.com", rules.clone()),
        hook("MutatingAdmissionWebhook", "m.example.com", rules),
        hook(
            "ConversionWebhook",
            "c.example.com",
            json!({"conversionCRDs": ["things.example.com"]})
        ),
    ]);
    csv["spec"]["customresourcedefinitions"] = json!({"owned": [
        {"name": "things.example.com", "version": "v1", "kind": "Thing"},
        {"name": "things.example.com", "version": "v2", "kind": "Thing"},
    ]});
}

/// A bundle of the package `a` with webhooks and a kind that they convert.
fn webhook_bundle(version: &str, configs: &[&str]) -> TestBundle {
    let bundle = TestBundle::new("a", version).with(add_webhooks).with_configs(configs);
    bundle.with_object(&converted_crd())
}

impl OlmCluster {
    /// Stores the bundle of a version of the package `a` with webhooks.
    pub(crate) fn put_webhook_bundle(&self, version: &str, configs: &[&str]) {
        webhook_bundle(version, configs).store(self);
    }
}

/// A cluster with the package `a`, whose controllers do not run yet.
pub(crate) async fn stopped(features: Features) -> OlmCluster {
    let mut olm = OlmCluster::for_extensions().await;
    if features.channel == CrdChannel::Experimental {
        for crd in olm_v1_crds(CrdChannel::Experimental) {
            olm.cluster.apply(crd).await;
        }
    }
    olm.features = features;
    olm.put_webhook_bundle("1.0.0", &["kept"]);
    olm.put_webhook_bundle("2.0.0", &["kept"]);
    publish(&olm, &["1.0.0"]).await;
    olm
}

/// A cluster with the package `a`, and running controllers.
pub(crate) async fn started(features: Features) -> OlmCluster {
    let mut olm = stopped(features).await;
    olm.start_controllers().await;
    olm.apply_extension("ext", "a", "").await;
    olm
}

/// Publishes these versions of the package `a`.
pub(crate) async fn publish(olm: &OlmCluster, versions: &[&str]) {
    let image = format!("r.example/cat:v{}", versions.len());
    olm.put_image(&image, Some(&catalog(&[("a", versions)])));
    olm.apply_catalog("cat", json!({"ref": image}), json!({})).await;
}

/// The features of both appliers, with certificates of this issuer.
pub(crate) fn appliers(certificates: WebhookCertificates) -> [Features; 2] {
    let trust = TrustMode::ClusterAdmin;
    [Features::standard(trust), Features::object_sets(trust)]
        .map(|features| features.with_certificates(certificates))
}

pub(crate) async fn secret(olm: &OlmCluster, namespace: &str, name: &str) -> Object {
    olm.cluster.cluster().get(&builtin::SECRET, Some(namespace), name).await.unwrap()
}

pub(crate) fn decoded(secret: &Object, key: &str) -> String {
    let data = secret.str(&["data", key]).unwrap_or_else(|| panic!("{key} of {}", secret.name()));
    String::from_utf8(STANDARD.decode(data).unwrap()).unwrap()
}

/// The callers of the webhooks.
pub(crate) const CALLERS: [(Resource, &str); 3] = [
    (builtin::VALIDATING_WEBHOOK_CONFIGURATION, "v.example.com"),
    (builtin::MUTATING_WEBHOOK_CONFIGURATION, "m.example.com"),
    (builtin::CUSTOM_RESOURCE_DEFINITION, "things.example.com"),
];

/// How a caller calls its webhook.
pub(crate) fn client_config(caller: &Object) -> Value {
    let conversion = caller.get(&["spec", "conversion", "webhook", "clientConfig"]);
    let admission = || Some(&caller.array(&["webhooks"]).first()?["clientConfig"]);
    conversion.or_else(admission).cloned().unwrap_or_default()
}

/// The `caBundle` of each caller of the webhooks, decoded.
async fn ca_bundles(olm: &OlmCluster) -> Vec<String> {
    let mut bundles = Vec::new();
    for (resource, name) in CALLERS {
        let caller = olm.cluster.cluster().get(&resource, None, name).await.unwrap();
        let client = client_config(&caller);
        let bundle = client["caBundle"].as_str().unwrap();
        bundles.push(String::from_utf8(STANDARD.decode(bundle).unwrap()).unwrap());
    }
    bundles
}

/// Asserts that every caller trusts the certificate in the Secret, by each name of the Service. Returns the
/// CAs that they trust.
pub(crate) async fn assert_trusted(olm: &OlmCluster) -> Vec<String> {
    let serving = secret(olm, NAMESPACE, SERVING).await;
    assert_eq!(serving.str(&["type"]), Some("kubernetes.io/tls"));
    let [certificate, key] = ["tls.crt", "tls.key"].map(|key| decoded(&serving, key));
    let hosts = ["a-service.work", "a-service.work.svc", "a-service.work.svc.cluster.local"];
    let hosts = hosts.map(str::to_owned);
    let end = "-----END CERTIFICATE-----\n";
    let mut cas = Vec::new();
    for bundle in ca_bundles(olm).await {
        assert_eq!(decoded(&serving, "ca.crt"), bundle);
        cas = bundle.split_inclusive(end).map(str::to_owned).collect();
        let trusts = cas.iter().any(|ca| {
            let (certificate, key) = (certificate.as_bytes(), key.as_bytes());
            server_validity(ca.as_bytes(), certificate, key, &hosts).is_some()
        });
        assert!(trusts, "{bundle}\n{certificate}");
    }
    cas
}

#[tokio::test]
async fn own_certificates_are_trusted_repaired_kept_in_upgrades_and_removed() {
    for features in appliers(WebhookCertificates::Own) {
        let olm = started(features).await;
        let installed = olm.wait_until_installed("ext", "1.0.0").await;
        let cas = assert_trusted(&olm).await;
        let issued = secret(&olm, NAMESPACE, SERVING).await;
        // The key of the CA is in the namespace of the controllers only.
        let store = secret(&olm, SYSTEM, STORE).await;
        assert_eq!(store.controller_owner().unwrap().uid, installed.uid());
        assert_eq!(decoded(&store, "ca.crt"), cas.concat());
        assert!(decoded(&store, "ca.key").contains("PRIVATE KEY"));
        assert!(!issued.to_value().to_string().contains(store.str(&["data", "ca.key"]).unwrap()));

        let cluster = olm.cluster.cluster();
        let is_as_issued = |secret: &Object| {
            secret.get(&["data"]) == issued.get(&["data"]) && !secret.is_terminating()
        };
        let forged = Patch::Merge(json!({"data": {"tls.crt": STANDARD.encode("forged")}}));
        cluster.patch(&builtin::SECRET, Some(NAMESPACE), SERVING, &forged).await.unwrap();
        olm.cluster.wait_for(&builtin::SECRET, Some(NAMESPACE), SERVING, is_as_issued).await;
        let options = DeleteOptions::default();
        cluster.delete(&builtin::SECRET, Some(NAMESPACE), SERVING, &options).await.unwrap();
        olm.cluster.wait_for(&builtin::SECRET, Some(NAMESPACE), SERVING, is_as_issued).await;

        publish(&olm, &["1.0.0", "2.0.0"]).await;
        olm.wait_until_installed("ext", "2.0.0").await;
        assert_eq!(assert_trusted(&olm).await, cas);
        assert!(is_as_issued(&secret(&olm, NAMESPACE, SERVING).await));

        cluster.delete(&CLUSTER_EXTENSION, None, "ext", &options).await.unwrap();
        olm.cluster.wait_gone(&builtin::SECRET, Some(NAMESPACE), SERVING).await;
        olm.cluster.wait_gone(&builtin::SECRET, Some(SYSTEM), STORE).await;
        let crd = "things.example.com";
        olm.cluster.wait_gone(&builtin::CUSTOM_RESOURCE_DEFINITION, None, crd).await;
    }
}

#[tokio::test]
async fn restart_with_own_certificates_writes_nothing() {
    for features in appliers(WebhookCertificates::Own) {
        let mut olm = started(features).await;
        olm.wait_until_installed("ext", "1.0.0").await;
        olm.wait_until_ready("ext").await;
        olm.stop_controllers().await;
        let (writes, reads) = (Arc::new(Mutex::new(Vec::new())), Arc::new(AtomicUsize::new(0)));
        let (written, read) = (Arc::clone(&writes), Arc::clone(&reads));
        let observed = olm.cluster.with_faults(move |request| {
            let counts =
                !request.target.contains("/clustercatalogs") && !request.target.contains("/events");
            let is_dry_run = request.target.contains("dryRun=All");
            if request.is_write() && !is_dry_run && counts {
                written.lock().unwrap().push(format!("{} {}", request.method, request.target));
            }
            read.fetch_add(usize::from(request.target.ends_with(STORE)), Ordering::SeqCst);
            InjectedFault::Pass
        });
        let controllers = olm.controllers_on(&observed);
        controllers.synced().await;
        crate::olm_cluster::eventually("the certificates are read", || {
            reads.load(Ordering::SeqCst) > 0
        })
        .await;
        // The attempt that read them ends with a status, which is as before.
        olm.wait_until_installed("ext", "1.0.0").await;
        controllers.shutdown().await;
        assert_eq!(*writes.lock().unwrap(), [""; 0]);
        assert_trusted(&olm).await;
    }
}

#[tokio::test]
async fn foreign_secret_in_place_of_the_keys_is_named_and_stays() {
    let mut olm = stopped(appliers(WebhookCertificates::Own)[0]).await;
    let foreign = json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": {"name": STORE, "namespace": SYSTEM},
        "data": {"mine": "eA=="},
    });
    let foreign = olm.cluster.apply(Object::from_value(foreign).unwrap()).await;
    olm.start_controllers().await;
    olm.apply_extension("ext", "a", "").await;
    let refused = olm
        .wait_for_extension("ext", |found| condition(found, "Progressing").1 == "Retrying")
        .await;
    let text = message(&refused, "Progressing");
    assert!(text.contains(STORE) && text.contains("delete it"), "{text}");
    assert_eq!(secret(&olm, SYSTEM, STORE).await.fields(), foreign.fields());
    let options = DeleteOptions::default();
    olm.cluster.cluster().delete(&builtin::SECRET, Some(SYSTEM), STORE, &options).await.unwrap();
    olm.wait_until_installed("ext", "1.0.0").await;
    assert_trusted(&olm).await;
}

/// The kinds of cert-manager, without a controller.
pub(crate) async fn apply_cert_manager_kinds(olm: &OlmCluster) {
    for (plural, kind) in [("issuers", "Issuer"), ("certificates", "Certificate")] {
        let crd = json!({
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": format!("{plural}.cert-manager.io")},
            "spec": {
                "group": "cert-manager.io", "scope": "Namespaced",
                "names": {"plural": plural, "kind": kind, "listKind": format!("{kind}List")},
                "versions": [{
                    "name": "v1", "served": true, "storage": true,
                    "schema": {"openAPIV3Schema": {
                        "type": "object", "x-kubernetes-preserve-unknown-fields": true,
                    }},
                }],
            },
        });
        olm.cluster.apply(Object::from_value(crd).unwrap()).await;
    }
}

/// A Secret of another issuer in place of that of the webhooks.
fn other_certificate() -> Object {
    let data = ["ca.crt", "tls.crt", "tls.key"].map(|key| (key, STANDARD.encode("other")));
    let secret = json!({
        "apiVersion": "v1", "kind": "Secret", "type": "kubernetes.io/tls",
        "metadata": {"name": SERVING, "namespace": NAMESPACE}, "data": BTreeMap::from(data),
    });
    Object::from_value(secret).unwrap()
}

#[tokio::test]
async fn certificates_of_cert_manager_need_its_kinds() {
    for features in appliers(WebhookCertificates::CertManager) {
        let olm = started(features).await;
        let refused = olm
            .wait_for_extension("ext", |found| {
                message(found, "Progressing").contains("cert-manager.io/v1")
            })
            .await;
        assert_ne!(condition(&refused, "Installed").0, "True");
        apply_cert_manager_kinds(&olm).await;
        if features.object_sets {
            // Its objects are applied; it is ready when cert-manager has issued the certificate.
            let crd = &builtin::CUSTOM_RESOURCE_DEFINITION;
            let has_annotation = |crd: &Object| {
                crd.annotation("cert-manager.io/inject-ca-from") == Some("work/a-service-cert")
            };
            olm.cluster.wait_for(crd, None, "things.example.com", has_annotation).await;
        } else {
            olm.wait_until_installed("ext", "1.0.0").await;
        }
        let cluster = olm.cluster.cluster();
        let none = cluster.find(&builtin::SECRET, Some(SYSTEM), STORE).await.unwrap();
        assert!(none.is_none());
    }
}

/// The Secret that cert-manager made for the Service of the extension is taken over.
#[tokio::test]
async fn own_certificates_follow_those_of_cert_manager() {
    let mut olm = stopped(appliers(WebhookCertificates::CertManager)[0]).await;
    apply_cert_manager_kinds(&olm).await;
    olm.start_controllers().await;
    olm.apply_extension("ext", "a", "").await;
    olm.wait_until_installed("ext", "1.0.0").await;
    let before = olm.cluster.apply(other_certificate()).await;
    olm.stop_controllers().await;
    olm.features = olm.features.with_certificates(WebhookCertificates::Own);
    olm.start_controllers().await;
    wait_until_renewed(&olm, &before).await;
    assert_trusted(&olm).await;
    let kind = Gvk::from_api_version("cert-manager.io/v1", "Certificate");
    let kind = olm.cluster.cluster().resource_of(&kind).await.unwrap().unwrap();
    olm.cluster.wait_gone(&kind, Some(NAMESPACE), SERVING).await;
}

/// A Secret in place of that of the webhooks stays as long as the Service is not that of the extension.
#[tokio::test]
async fn certificate_of_somebody_else_is_not_taken_over() {
    for features in appliers(WebhookCertificates::Own) {
        let mut olm = stopped(features).await;
        let foreign = olm.cluster.apply(other_certificate()).await;
        olm.start_controllers().await;
        olm.apply_extension("ext", "a", "").await;
        if features.object_sets {
            let collides = |set: &Object| set.to_value().to_string().contains(SERVING);
            olm.cluster.wait_for(&CLUSTER_OBJECT_SET, None, "ext-1", collides).await;
        } else {
            let refused = |found: &Object| message(found, "Progressing").contains(SERVING);
            olm.wait_for_extension("ext", refused).await;
        }
        assert_eq!(secret(&olm, NAMESPACE, SERVING).await.fields(), foreign.fields());
        let options = DeleteOptions::default();
        let cluster = olm.cluster.cluster();
        cluster.delete(&builtin::SECRET, Some(NAMESPACE), SERVING, &options).await.unwrap();
        olm.wait_until_installed("ext", "1.0.0").await;
        assert_trusted(&olm).await;
    }
}

#[tokio::test]
async fn service_ca_gets_its_annotations() {
    for features in appliers(WebhookCertificates::ServiceCa) {
        let olm = started(features).await;
        olm.wait_until_installed("ext", "1.0.0").await;
        let cluster = olm.cluster.cluster();
        let service = cluster.get(&builtin::SERVICE, Some(NAMESPACE), "a-service").await.unwrap();
        let secret = "service.beta.openshift.io/serving-cert-secret-name";
        assert_eq!(service.annotation(secret), Some(SERVING));
        let crd = &builtin::CUSTOM_RESOURCE_DEFINITION;
        let crd = cluster.get(crd, None, "things.example.com").await.unwrap();
        assert_eq!(crd.annotation("service.beta.openshift.io/inject-cabundle"), Some("true"));
        for (namespace, name) in [(NAMESPACE, SERVING), (SYSTEM, STORE)] {
            let none = cluster.find(&builtin::SECRET, Some(namespace), name).await.unwrap();
            assert!(none.is_none(), "{name}");
        }
    }
}

/// The roles that `mainstay extension rbac` prints, and those that `mainstay manifests` prints, suffice.
#[tokio::test]
async fn derived_permissions_suffice_for_own_certificates() {
    let trust = TrustMode::ServiceAccount;
    for features in [Features::standard(trust), Features::object_sets(trust)] {
        let features = features.with_certificates(WebhookCertificates::Own);
        let mut olm = stopped(features).await;
        let controller = [
            json!({
                "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
                "metadata": {"name": "controller"}, "rules": (subsystem(features).permissions)(),
            }),
            json!({
                "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding",
                "metadata": {"name": "controller"},
                "roleRef": {
                    "apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "controller",
                },
                "subjects": [{"kind": "ServiceAccount", "name": "controller", "namespace": SYSTEM}],
            }),
        ];
        let names = InstallerNames::new("ext", NAMESPACE);
        let rendered = rendered_webhook_bundle();
        let manifest = InstallManifest::new(&rendered, &BundleKinds, NAMESPACE).unwrap();
        let applier = if features.object_sets {
            ExtensionApplier::WatchedObjectSets
        } else {
            ExtensionApplier::Helm
        };
        let installer = exact_installer(&manifest, &names, &applier);
        for object in controller.into_iter().chain(installer.to_values()) {
            olm.cluster.apply(Object::from_value(object).unwrap()).await;
        }
        let account = olm.cluster.cluster_as_account(SYSTEM, "controller");
        let controllers = olm.controllers_on(&account);
        controllers.synced().await;
        let mut extension = extension("ext", "a", "");
        extension["spec"]["serviceAccount"] = json!({"name": names.service_account()});
        olm.cluster.apply(Object::from_value(extension).unwrap()).await;
        olm.wait_until_installed("ext", "1.0.0").await;
        assert_trusted(&olm).await;
        // The account watches them.
        change_and_wait_until_repaired(&olm, "1.0.0").await;
        controllers.shutdown().await;
    }
}

/// The objects of version 1.0.0 of the package `a` with webhooks, without certificates.
fn rendered_webhook_bundle() -> Vec<Value> {
    let files = webhook_bundle("1.0.0", &["kept"]).into_files();
    let files: MemoryFiles =
        files.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
    let bundle = RegistryV1Bundle::read(&files, &Limits::default()).unwrap();
    let install = InstallSettings {
        certificates: Some(&IssuedCertificates::default()),
        ..InstallSettings::into_namespace(NAMESPACE)
    };
    bundle.install(&install).unwrap()
}
