//! Certificates of webhooks that the controller issues itself: they are renewed in time, whatever keeps the extension from
//! changing.

use crate::approved_accounts::{approve, rules, wait_until_unapproved};
use crate::bundles::TestBundle;
use crate::extensions::NAMESPACE;
use crate::extensions::catalog;
use crate::olm_cluster::{OlmCluster, condition, message};
use crate::webhook_certificates::{
    CALLERS, SERVING, add_webhooks, appliers, assert_trusted, client_config, converted_crd,
    decoded, publish, secret, started,
};
use jiff::{SignedDuration, Timestamp};
use mainstay_api::resources::{CLUSTER_CATALOG, CLUSTER_EXTENSION, CLUSTER_OBJECT_SET};
use mainstay_client::{DeleteOptions, Patch};
use mainstay_clock::Clock;
use mainstay_extensions::{Features, TrustMode, WebhookCertificates};
use mainstay_object::{Object, builtin};
use serde_json::{Value, json};

const DAY: SignedDuration = SignedDuration::from_hours(24);
/// How long after its issue a certificate is renewed.
const RENEWED_AFTER: SignedDuration = SignedDuration::from_hours(24 * 640);

/// Starts the controllers with a clock that is ahead by this much.
async fn start_later(olm: &mut OlmCluster, later: SignedDuration) {
    olm.stop_controllers().await;
    olm.clock = Clock::starting_at(olm.clock.now() + later);
    olm.start_controllers().await;
}

/// Starts the controllers so that the certificate becomes due while they run; returns when.
async fn start_before_renewal(olm: &mut OlmCluster) -> Timestamp {
    let due = end(olm).await - 90 * DAY;
    let later = due.duration_since(olm.clock.now()) - SignedDuration::from_millis(1500);
    start_later(olm, later).await;
    due
}

/// When the certificate in the Secret ends.
async fn end(olm: &OlmCluster) -> Timestamp {
    let serving = secret(olm, NAMESPACE, SERVING).await;
    mainstay_certificates::validity_of(decoded(&serving, "tls.crt").as_bytes()).unwrap().until
}

/// Waits until the Secret has another certificate than this one, and callers the CAs that are in it.
pub(crate) async fn wait_until_renewed(olm: &OlmCluster, before: &Object) {
    let is_other =
        |secret: &Object| secret.get(&["data", "tls.crt"]) != before.get(&["data", "tls.crt"]);
    let cluster = &olm.cluster;
    let renewed = cluster.wait_for(&builtin::SECRET, Some(NAMESPACE), SERVING, is_other).await;
    let ca_bundle = renewed.str(&["data", "ca.crt"]).unwrap();
    for (resource, name) in CALLERS {
        let trusts = |caller: &Object| client_config(caller)["caBundle"] == ca_bundle;
        cluster.wait_for(&resource, None, name, trusts).await;
    }
}

#[tokio::test]
async fn certificate_is_renewed_in_time_by_the_same_ca() {
    for features in appliers(WebhookCertificates::Own) {
        let mut olm = started(features).await;
        olm.wait_until_installed("ext", "1.0.0").await;
        let (cas, before) = (assert_trusted(&olm).await, secret(&olm, NAMESPACE, SERVING).await);
        let due = start_before_renewal(&mut olm).await;
        wait_until_renewed(&olm, &before).await;
        assert_eq!(assert_trusted(&olm).await, cas);
        assert!(end(&olm).await > due + RENEWED_AFTER);
        if features.object_sets {
            let set = olm.cluster.cluster().get(&CLUSTER_OBJECT_SET, None, "ext-2").await.unwrap();
            assert_eq!(set.str(&["spec", "lifecycleState"]), Some("Active"));
        }
    }
}

/// Without its catalog, an extension stays as it is. Its certificates are renewed all the same.
#[tokio::test]
async fn certificate_is_renewed_without_a_catalog() {
    for features in appliers(WebhookCertificates::Own) {
        let mut olm = started(features).await;
        olm.wait_until_installed("ext", "1.0.0").await;
        let before = secret(&olm, NAMESPACE, SERVING).await;
        let options = DeleteOptions::default();
        olm.cluster.cluster().delete(&CLUSTER_CATALOG, None, "cat", &options).await.unwrap();
        olm.cluster.wait_gone(&CLUSTER_CATALOG, None, "cat").await;
        start_later(&mut olm, RENEWED_AFTER).await;
        wait_until_renewed(&olm, &before).await;
        assert_trusted(&olm).await;
    }
}

#[tokio::test]
async fn certificate_is_renewed_while_no_version_is_found() {
    for features in appliers(WebhookCertificates::Own) {
        let mut olm = started(features).await;
        olm.wait_until_installed("ext", "1.0.0").await;
        let before = secret(&olm, NAMESPACE, SERVING).await;
        olm.apply_extension("ext", "a", "9.x").await;
        olm.wait_for_extension("ext", |found| condition(found, "Progressing").1 == "Retrying")
            .await;
        start_later(&mut olm, RENEWED_AFTER).await;
        wait_until_renewed(&olm, &before).await;
        assert_trusted(&olm).await;
    }
}

/// An upgrade that is refused for long does not keep certificates of the installed version from being renewed.
#[tokio::test]
async fn certificate_is_renewed_while_an_upgrade_is_refused() {
    for features in appliers(WebhookCertificates::Own) {
        let mut olm = started(features).await;
        olm.wait_until_installed("ext", "1.0.0").await;
        let before = secret(&olm, NAMESPACE, SERVING).await;
        let mut crd = converted_crd();
        crd["spec"]["versions"] = json!([crd["spec"]["versions"][1]]);
        crd["spec"]["versions"][0]["storage"] = true.into();
        let change = |csv: &mut Value| {
            add_webhooks(csv);
            let owned = &mut csv["spec"]["customresourcedefinitions"]["owned"];
            *owned = json!([owned[1]]);
        };
        let bundle = TestBundle::new("a", "2.0.0").with(change).with_configs(&["kept"]);
        bundle.with_object(&crd).store(&olm);
        publish(&olm, &["1.0.0", "2.0.0"]).await;
        let refused = |found: &Object| {
            let text = message(found, "Progressing");
            text.contains("a.v2.0.0") && text.contains("validating upgrade for CRD")
        };
        olm.wait_for_extension("ext", refused).await;
        start_later(&mut olm, RENEWED_AFTER).await;
        wait_until_renewed(&olm, &before).await;
        assert_trusted(&olm).await;
        let refused = olm.wait_for_extension("ext", refused).await;
        assert_eq!(condition(&refused, "Installed").0, "True");
    }
}

/// An upgrade that waits for its dependencies does not, either.
#[tokio::test]
async fn certificate_is_renewed_while_an_upgrade_waits_for_dependencies() {
    for features in appliers(WebhookCertificates::Own) {
        let mut olm = started(features).await;
        olm.wait_until_installed("ext", "1.0.0").await;
        let before = secret(&olm, NAMESPACE, SERVING).await;
        let policy = json!({"metadata": {"annotations": {"mainstay.dev/dependencies": "Require"}}});
        let cluster = olm.cluster.cluster();
        cluster.patch(&CLUSTER_EXTENSION, None, "ext", &Patch::Merge(policy)).await.unwrap();
        let required = json!({"type": "olm.package.required", "value": {
            "packageName": "absent", "versionRange": ">=1.0.0",
        }});
        let version = "\"version\":\"2.0.0\"}}";
        let text = catalog(&[("a", &["1.0.0", "2.0.0"])]);
        let with_dependency = text.replace(version, &format!("{version},{required}"));
        assert_ne!(with_dependency, text);
        olm.put_image("r.example/cat:v2", Some(&with_dependency));
        olm.apply_catalog("cat", json!({"ref": "r.example/cat:v2"}), json!({})).await;
        let is_waiting = |found: &Object| {
            message(found, "Progressing")
                .contains("unsatisfied dependencies of bundle \"a.v2.0.0\"")
        };
        olm.wait_for_extension("ext", is_waiting).await;
        start_before_renewal(&mut olm).await;
        wait_until_renewed(&olm, &before).await;
        assert_trusted(&olm).await;
        olm.wait_for_extension("ext", is_waiting).await;
    }
}

/// Nor does one whose permissions nobody has approved.
#[tokio::test]
async fn certificate_is_renewed_while_an_upgrade_is_not_approved() {
    let trust = TrustMode::Approved;
    for features in [Features::standard(trust), Features::object_sets(trust)] {
        let mut olm = started(features.with_certificates(WebhookCertificates::Own)).await;
        let mut approved = rules(&["kept"]);
        approved.as_array_mut().unwrap().extend(
            [
                ("", "services"),
                ("", "secrets"),
                ("admissionregistration.k8s.io", "*"),
                ("apiextensions.k8s.io", "*"),
            ]
            .map(
                |(group, kind)| json!({"apiGroups": [group], "resources": [kind], "verbs": ["*"]}),
            ),
        );
        approve(&olm, approved).await;
        olm.wait_until_installed("ext", "1.0.0").await;
        let before = secret(&olm, NAMESPACE, SERVING).await;
        olm.put_webhook_bundle("2.0.0", &["kept", "added"]);
        publish(&olm, &["1.0.0", "2.0.0"]).await;
        wait_until_unapproved(&olm, "ResourceNames:[added]").await;
        start_before_renewal(&mut olm).await;
        wait_until_renewed(&olm, &before).await;
        assert_trusted(&olm).await;
        wait_until_unapproved(&olm, "ResourceNames:[added]").await;
    }
}

#[tokio::test]
async fn callers_trust_both_cas_when_the_ca_is_replaced() {
    for features in appliers(WebhookCertificates::Own) {
        let mut olm = started(features).await;
        olm.wait_until_installed("ext", "1.0.0").await;
        let cas = assert_trusted(&olm).await;
        let before = secret(&olm, NAMESPACE, SERVING).await;
        start_later(&mut olm, 2831 * DAY).await;
        wait_until_renewed(&olm, &before).await;
        let both = assert_trusted(&olm).await;
        assert_eq!((both.len(), &both[1]), (2, &cas[0]));
        // No other certificate is due.
        let now = secret(&olm, NAMESPACE, SERVING).await;
        start_later(&mut olm, DAY).await;
        olm.wait_until_installed("ext", "1.0.0").await;
        assert_eq!(secret(&olm, NAMESPACE, SERVING).await.get(&["data"]), now.get(&["data"]));
    }
}
