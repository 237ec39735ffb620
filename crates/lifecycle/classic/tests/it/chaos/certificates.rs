//! Rotation of the serving certificates of operators.

use super::full_operator::{
    ALL_OTHER_NAMESPACES, Features, NAME, olm_with_operator, wait_for_copies_in,
};
use super::state::sha256_hex;
use crate::olm_cluster::OlmCluster;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use mainstay_api::resources::CLUSTER_SERVICE_VERSION as CSV;
use mainstay_client::{ObjectList, Selection, WatchEvent};
use mainstay_clock::Clock;
use mainstay_object::{Object, Resource, builtin};
use mainstay_testkit::chaos::{
    FaultScenario, assert_survives_bad_connections, assert_survives_each_fault,
    assert_survives_kill_after_each_write,
};
use parking_lot::Mutex;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinSet;

/// The rotation of an operator's certificates: of admission webhooks, of its API and, for all
/// namespaces, of conversion webhooks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Rotation {
    everywhere: bool,
}

/// Certificates are valid for two years and rotated on the last day.
const ROTATION_DUE: jiff::SignedDuration = jiff::SignedDuration::from_hours(730 * 24 - 12);

impl FaultScenario for Rotation {
    type Cluster = OlmCluster;

    async fn prepare(&self) -> OlmCluster {
        let (parts, targets, copies): (_, &[&str], &[&str]) = if self.everywhere {
            (Features::All, &[], &ALL_OTHER_NAMESPACES)
        } else {
            (Features::Served, &["a"], &["a"])
        };
        let mut olm = olm_with_operator(parts, targets).await;
        wait_for_copies_in(&olm, copies).await;
        olm.stop_controllers().await;
        olm.clock = Clock::starting_at(olm.clock.now() + ROTATION_DUE);
        olm
    }

    async fn run(&self, olm: &OlmCluster) {
        let history = History::follow(olm).await;
        let now = olm.clock.now();
        olm.cluster
            .wait_for(&CSV, Some("team"), NAME, move |csv| {
                let rotate = csv.str(&["status", "certsRotateAt"]).unwrap_or_default();
                csv.str(&["status", "phase"]) == Some("Succeeded")
                    && rotate.parse::<jiff::Timestamp>().is_ok_and(|time| time > now)
            })
            .await;
        history.assert_no_call_fails(olm).await;
    }
}

/// The kinds that decide whether a call succeeds: the certificate in the Secret, those of running
/// pods, and the CA bundles of callers.
const KINDS: [&Resource; 6] = [
    &builtin::SECRET,
    &builtin::POD,
    &builtin::VALIDATING_WEBHOOK_CONFIGURATION,
    &builtin::MUTATING_WEBHOOK_CONFIGURATION,
    &builtin::API_SERVICE,
    &builtin::CUSTOM_RESOURCE_DEFINITION,
];

type ObjectKey = (String, String);
/// The object at each revision; none if it is deleted.
type Events = BTreeMap<(u64, ObjectKey), Option<Object>>;

/// The history of the objects in revision order.
struct History {
    /// The revision after the last initial list.
    begin: u64,
    events: Arc<Mutex<Events>>,
    _watches: JoinSet<()>,
}

fn revision(text: &str) -> u64 {
    text.parse().unwrap()
}

fn key(resource: &Resource, object: &Object) -> ObjectKey {
    (resource.kind.to_string(), object.key().to_string())
}

impl History {
    async fn follow(olm: &OlmCluster) -> Self {
        let events = Arc::new(Mutex::new(BTreeMap::new()));
        let (mut begin, mut watches) = (0, JoinSet::new());
        for resource in KINDS {
            let cluster = olm.cluster.cluster().clone();
            let list = cluster.list(resource, None, &ObjectList::default()).await.unwrap();
            let from = revision(&list.resource_version);
            begin = begin.max(from);
            for object in list.items {
                events.lock().insert((from, key(resource, &object)), Some(object));
            }
            let selection = Selection::all(resource.clone());
            let mut watch = cluster.watch(&selection, &list.resource_version).await.unwrap();
            let (all, resource) = (Arc::clone(&events), resource.clone());
            watches.spawn(async move {
                while let Some(event) = watch.next().await {
                    let (object, is_there) = match event.unwrap() {
                        WatchEvent::Added(object) | WatchEvent::Modified(object) => (object, true),
                        WatchEvent::Deleted(object) => (object, false),
                        WatchEvent::Bookmark(_) => continue,
                    };
                    let at = (revision(object.resource_version()), key(&resource, &object));
                    all.lock().insert(at, is_there.then_some(object));
                }
            });
        }
        Self { begin, events, _watches: watches }
    }

    /// Asserts for every revision that each caller trusts the CA of the certificate in the Secret
    /// and in every ready pod.
    async fn assert_no_call_fails(self, olm: &OlmCluster) {
        // The last watch events may still arrive.
        tokio::time::sleep(Duration::from_millis(50)).await;
        let mut now: BTreeMap<ObjectKey, Object> = BTreeMap::new();
        let events = std::mem::take(&mut *self.events.lock());
        let mut moments = 0;
        for ((at, key), object) in events {
            match object {
                Some(object) => now.insert(key, object),
                None => now.remove(&key),
            };
            if at > self.begin {
                moments += 1;
                check_trust(&now).unwrap_or_else(|why| panic!("at revision {at}: {why}"));
            }
        }
        assert!(olm.cluster.store().revision() >= self.begin);
        assert!(moments == 0 || now.len() > 3, "{moments} moments");
    }
}

/// The hashes of the certificates in a CA bundle.
fn trusted_authorities(bundle: &Value) -> BTreeSet<String> {
    const END: &str = "-----END CERTIFICATE-----\n";
    let bytes = BASE64.decode(bundle.as_str().unwrap_or_default()).unwrap();
    let text = String::from_utf8(bytes).unwrap();
    text.split_inclusive(END).map(|certificate| sha256_hex(certificate.as_bytes())).collect()
}

fn check_trust(now: &BTreeMap<ObjectKey, Object>) -> Result<(), String> {
    let objects_of_kind = |kind: &'static str| now.iter().filter(move |(key, _)| key.0 == kind);
    let mut presented: BTreeSet<(String, String)> = BTreeSet::new();
    for (_, secret) in objects_of_kind("Secret") {
        let Some(authority) = secret.str(&["data", "olmCAKey"]) else { continue };
        let authority = sha256_hex(&BASE64.decode(authority).unwrap());
        if secret.annotation("olmcahash") != Some(&authority) {
            return Err(format!("the Secret {} names another authority", secret.key()));
        }
        presented.insert((format!("the Secret {}", secret.key()), authority));
    }
    for (_, pod) in objects_of_kind("Pod") {
        let answers = pod.condition("Ready") == Some("True") && !pod.is_terminating();
        if let Some(authority) = pod.annotation("olmcahash").filter(|_| answers) {
            presented.insert((format!("the pod {}", pod.key()), authority.to_owned()));
        }
    }
    let mut callers: Vec<(String, &Value)> = Vec::new();
    for kind in ["ValidatingWebhookConfiguration", "MutatingWebhookConfiguration"] {
        for (_, configuration) in objects_of_kind(kind) {
            let hooks = configuration.array(&["webhooks"]).iter();
            callers.extend(
                hooks.map(|hook| {
                    (configuration.name().to_owned(), &hook["clientConfig"]["caBundle"])
                }),
            );
        }
    }
    for (_, api_service) in objects_of_kind("APIService")
        .filter(|(_, api_service)| api_service.get(&["spec", "service"]).is_some())
    {
        callers.extend(
            api_service
                .get(&["spec", "caBundle"])
                .map(|bundle| (api_service.name().to_owned(), bundle)),
        );
    }
    for (_, crd) in objects_of_kind("CustomResourceDefinition") {
        let path = ["spec", "conversion", "webhook", "clientConfig", "caBundle"];
        callers.extend(crd.get(&path).map(|bundle| (crd.name().to_owned(), bundle)));
    }
    for (caller, bundle) in callers {
        let trusts = trusted_authorities(bundle);
        for (who, authority) in &presented {
            if !trusts.contains(authority) {
                return Err(format!("{caller} does not trust {who}"));
            }
        }
    }
    Ok(())
}

const TARGET_NAMESPACE: Rotation = Rotation { everywhere: false };
const ALL_NAMESPACES: Rotation = Rotation { everywhere: true };

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn certificate_rotation_killed_after_any_write_ends_as_undisturbed() {
    assert_survives_kill_after_each_write(&TARGET_NAMESPACE, 1).await;
    assert_survives_kill_after_each_write(&ALL_NAMESPACES, 1).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn certificate_rotation_over_a_bad_connection_ends_as_undisturbed() {
    assert_survives_bad_connections(&ALL_NAMESPACES, 1, 100).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_request_of_a_certificate_rotation_may_fail_in_any_way() {
    assert_survives_each_fault(&ALL_NAMESPACES).await;
}
