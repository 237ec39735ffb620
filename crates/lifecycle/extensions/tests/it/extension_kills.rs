//! Killed after each write, and with a lost response of each write, an extension is installed, upgraded and
//! repaired all the same, and nothing of an earlier version stays.

use crate::approved_accounts::{approve, rules, wait_for_configs};
use crate::bundles::TestBundle;
use crate::extensions::{NAMESPACE, catalog};
use crate::olm_cluster::OlmCluster;
use crate::webhook_certificates::assert_trusted;
use mainstay_client::{ObjectList, Patch};
use mainstay_extensions::{Features, TrustMode, WebhookCertificates};
use mainstay_object::builtin;
use mainstay_testkit::chaos::sample_points;
use mainstay_testkit::{InjectedFault, ObservedRequest};
use serde_json::json;
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use tokio_util::sync::CancellationToken;

/// Whether a write is about the extension: Events are extra.
fn counts(request: &ObservedRequest) -> bool {
    request.is_write()
        && !request.target.contains("/clustercatalogs")
        && !request.target.contains("/events")
}

/// What the bundles have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Content {
    /// ConfigMaps, a role and a Deployment.
    Plain,
    /// Webhooks besides, with certificates that the controller issues.
    Webhooks,
}

/// Installs, upgrades, and changes an object; returns the names of the objects and the statuses of the
/// releases.
async fn run(olm: &OlmCluster, content: Content) -> BTreeSet<String> {
    let cluster = olm.cluster.cluster();
    let keeps_account = olm.features.trust == TrustMode::Approved;
    if keeps_account {
        approve(olm, rules(&["kept", "dropped", "added"])).await;
    }
    olm.put_image("r.example/cat:v1", Some(&catalog(&[("a", &["1.0.0"])])));
    olm.apply_catalog("cat", json!({"ref": "r.example/cat:v1"}), json!({})).await;
    olm.apply_extension("ext", "a", "").await;
    let any = |extension: &mainstay_object::Object| {
        extension.str(&["status", "install", "bundle", "version"]).is_some()
    };
    olm.wait_for_extension("ext", any).await;
    olm.put_image("r.example/cat:v2", Some(&catalog(&[("a", &["1.0.0", "2.0.0"])])));
    olm.apply_catalog("cat", json!({"ref": "r.example/cat:v2"}), json!({})).await;
    olm.wait_until_installed("ext", "2.0.0").await;
    let patch = Patch::Merge(json!({"data": {"version": "changed"}}));
    cluster.patch(&builtin::CONFIG_MAP, Some(NAMESPACE), "kept", &patch).await.unwrap();
    olm.cluster
        .wait_for(&builtin::CONFIG_MAP, Some(NAMESPACE), "kept", |config| {
            config.str(&["data", "version"]) == Some("2.0.0")
        })
        .await;
    olm.cluster.wait_gone(&builtin::CONFIG_MAP, Some(NAMESPACE), "dropped").await;
    let mut found = BTreeSet::new();
    let selector = ObjectList::labels("olm.operatorframework.io/owner-name=ext");
    for resource in [
        &builtin::CONFIG_MAP,
        &builtin::DEPLOYMENT,
        &builtin::SERVICE_ACCOUNT,
        &builtin::CLUSTER_ROLE,
        &builtin::CLUSTER_ROLE_BINDING,
    ] {
        for object in cluster.list(resource, None, &selector).await.unwrap().items {
            found.insert(format!("{} {}", object.kind(), object.name()));
        }
    }
    if keeps_account {
        wait_for_configs(olm, &["added", "kept"]).await;
        for kind in [
            &builtin::SERVICE_ACCOUNT,
            &builtin::CLUSTER_ROLE,
            &builtin::CLUSTER_ROLE_BINDING,
            &builtin::ROLE,
            &builtin::ROLE_BINDING,
        ] {
            let kept = ObjectList::labels("mainstay.dev/installer-of=ext");
            for object in cluster.list(kind, None, &kept).await.unwrap().items {
                let rules = object.get(&["rules"]).cloned().unwrap_or_default();
                found.insert(format!("account {} {} {rules}", object.kind(), object.name()));
            }
        }
    }
    let deployed = ObjectList::labels("name=ext,status=deployed");
    let deployed = cluster.list(&builtin::SECRET, None, &deployed).await.unwrap().items.len();
    found.insert(format!("{deployed} deployed"));
    if content == Content::Webhooks {
        let cas = assert_trusted(olm).await;
        found.insert(format!("{} CA", cas.len()));
        let all = cluster.list(&builtin::SECRET, None, &selector).await.unwrap().items;
        found.extend(all.iter().map(|secret| format!("Secret {}", secret.name())));
    }
    found
}

/// What happens at a write: the server has done it, the client hears an error.
#[derive(Clone, Copy, Debug)]
enum Fault {
    /// The process ends and another one starts.
    Kill,
    /// The process goes on.
    ResponseLost,
}

/// Runs with a fault at a write. Returns the end state and the targets of the writes.
async fn run_with(
    content: Content,
    trust: TrustMode,
    fault_at: Option<(usize, Fault)>,
) -> (BTreeSet<String>, Vec<String>) {
    let mut olm = OlmCluster::for_extensions().await;
    olm.features = Features::standard(trust);
    for (version, configs) in [("1.0.0", ["kept", "dropped"]), ("2.0.0", ["kept", "added"])] {
        match content {
            Content::Plain => olm.put_bundle("a", version, &configs),
            Content::Webhooks => olm.put_webhook_bundle(version, &configs),
        }
    }
    if content == Content::Webhooks {
        olm.features = olm.features.with_certificates(WebhookCertificates::Own);
    }
    let targets = Arc::new(Mutex::new(Vec::new()));
    let killed = CancellationToken::new();
    let (writes, kill) = (Arc::clone(&targets), killed.clone());
    let faulty = olm.cluster.with_faults(move |request| {
        if !counts(request) {
            return InjectedFault::Pass;
        }
        let mut writes = writes.lock().unwrap();
        writes.push(request.target.clone());
        match fault_at {
            Some((at, fault)) if at + 1 == writes.len() => {
                if matches!(fault, Fault::Kill) {
                    kill.cancel();
                }
                InjectedFault::ResponseLost
            }
            _ => InjectedFault::Pass,
        }
    });
    let mut controllers = olm.controllers_on(&faulty);
    let state = tokio::select! {
        state = run(&olm, content) => Some(state),
        () = killed.cancelled() => None,
    };
    let state = if let Some(state) = state {
        state
    } else {
        // A kill drops everything at once; shutting down drops every reconciliation, too.
        controllers.shutdown().await;
        let again = olm.cluster.cluster().clone();
        controllers = olm.controllers_on(&again);
        run(&olm, content).await
    };
    controllers.shutdown().await;
    let targets = targets.lock().unwrap().clone();
    (state, targets)
}

#[expect(clippy::print_stdout, reason = "says which write it was, if the run does not end")]
async fn assert_survives_kills(content: Content) {
    let (expected, targets) = run_with(content, TrustMode::ClusterAdmin, None).await;
    assert!(targets.len() >= 20, "{targets:?}");
    for at in sample_points(targets.len() - 1, 6) {
        println!("killed at write {at}");
        let (state, _) = run_with(content, TrustMode::ClusterAdmin, Some((at, Fault::Kill))).await;
        assert_eq!(state, expected, "killed at write {at}");
    }
}

#[tokio::test]
async fn extension_survives_a_kill_at_each_write() {
    assert_survives_kills(Content::Plain).await;
}

#[tokio::test]
async fn extension_with_own_certificates_survives_a_kill_at_each_write() {
    assert_survives_kills(Content::Webhooks).await;
}

/// The writes that others have are tested above.
#[tokio::test]
async fn account_that_the_controller_keeps_survives_a_kill_at_each_of_its_writes() {
    let trust = TrustMode::Approved;
    let (expected, targets) = run_with(Content::Plain, trust, None).await;
    let of_account =
        |at: &usize| targets[*at].contains("ext-installer") || is_creation(&targets[*at]);
    let writes: Vec<usize> = (0..targets.len()).filter(of_account).collect();
    assert!(writes.len() >= 8, "{targets:?}");
    for at in sample_points(writes.len() - 1, 4).into_iter().map(|point| writes[point]) {
        println!("killed at write {at}, {}", targets[at]);
        let (state, _) = run_with(Content::Plain, trust, Some((at, Fault::Kill))).await;
        assert_eq!(state, expected, "killed at write {at}, {}", targets[at]);
    }
}

/// Whether a write creates a ServiceAccount, a role or a binding.
fn is_creation(target: &str) -> bool {
    let path = target.split('?').next().unwrap_or_default();
    ["/serviceaccounts", "roles", "bindings"].iter().any(|kind| path.ends_with(kind))
}

/// What the controllers remember of themselves is in the releases, in the status, and in the Secret with
/// certificates.
#[expect(clippy::print_stdout, reason = "says which write it was, if the run does not end")]
async fn assert_survives_lost_responses(content: Content) {
    let (expected, targets) = run_with(content, TrustMode::ClusterAdmin, None).await;
    let own = |target: &str| target.contains("/secrets") || target.ends_with("/status");
    let own: Vec<usize> = (0..targets.len()).filter(|&at| own(&targets[at])).collect();
    assert!(own.len() >= 8, "{targets:?}");
    for at in sample_points(own.len() - 1, 4).into_iter().map(|point| own[point]) {
        println!("response lost at write {at}");
        let (state, _) =
            run_with(content, TrustMode::ClusterAdmin, Some((at, Fault::ResponseLost))).await;
        assert_eq!(state, expected, "response lost at write {at}");
    }
}

#[tokio::test]
async fn extension_survives_lost_responses() {
    assert_survives_lost_responses(Content::Plain).await;
}

#[tokio::test]
async fn extension_with_own_certificates_survives_lost_responses() {
    assert_survives_lost_responses(Content::Webhooks).await;
}

/// Text that is hardly compressed.
fn noise(length: usize) -> String {
    let mut state = 1_u64;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        char::from(b'!' + u8::try_from((state >> 33) % 90).unwrap())
    };
    (0..length).map(|_| next()).collect()
}

/// New chunks are written before the index that names them, so they are there at the next attempt.
#[tokio::test]
async fn release_of_several_secrets_survives_a_conflict_at_its_index() {
    let mut olm = OlmCluster::for_extensions().await;
    let noise = noise(1_600_000);
    let (first, second) = noise.split_at(noise.len() / 2);
    let config = |name: &str, content: &str| {
        json!({
            "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name},
            "data": {"content": content},
        })
    };
    let bundle = TestBundle::new("a", "1.0.0").with_object(&config("first", first));
    bundle.with_object(&config("second", second)).store(&olm);
    let conflicts = Arc::new(Mutex::new(0));
    let count = Arc::clone(&conflicts);
    let faulty = olm.cluster.with_faults(move |request| {
        let is_index = request.method == "PUT" && request.target.contains("/secrets/sh.helm.");
        let mut conflicts = count.lock().unwrap();
        if is_index && *conflicts == 0 {
            *conflicts += 1;
            return InjectedFault::Refused(409);
        }
        InjectedFault::Pass
    });
    let controllers = olm.controllers_on(&faulty);
    olm.put_image("r.example/cat:v1", Some(&catalog(&[("a", &["1.0.0"])])));
    olm.apply_catalog("cat", json!({"ref": "r.example/cat:v1"}), json!({})).await;
    olm.apply_extension("ext", "a", "").await;
    olm.wait_until_installed("ext", "1.0.0").await;
    let chunks = ObjectList::labels("type=chunk");
    let chunks = olm.cluster.cluster().list(&builtin::SECRET, None, &chunks).await.unwrap();
    assert!(!chunks.items.is_empty(), "the release has one Secret only");
    assert_eq!(*conflicts.lock().unwrap(), 1);
    controllers.shutdown().await;
}
