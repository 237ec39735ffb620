//! Certificates of operators' servers whose time comes.

use super::rich::{EVERYWHERE, NAME, Parts, copies_are_in, running};
use super::state::hash;
use super::{Work, killed_after_each_write, over_bad_connections, requests_meet_fates};
use crate::world::World;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use mainstay_api::resources::CLUSTER_SERVICE_VERSION as CSV;
use mainstay_client::{ListParams, Selection, WatchEvent};
use mainstay_clock::Clock;
use mainstay_object::{Object, Resource, known};
use parking_lot::Mutex;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinSet;

/// The certificates of an operator are replaced: those of webhooks, of conversions where it works in
/// all namespaces, and of its own API.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Rotation {
    everywhere: bool,
}

/// Certificates live for two years, and are replaced in the last day of them.
const DUE: jiff::SignedDuration = jiff::SignedDuration::from_hours(730 * 24 - 12);

impl Work for Rotation {
    async fn ready(&self) -> World {
        let (parts, targets, copies): (_, &[&str], &[&str]) = if self.everywhere {
            (Parts::All, &[], &EVERYWHERE)
        } else {
            (Parts::Served, &["a"], &["a"])
        };
        let mut world = running(parts, targets).await;
        copies_are_in(&world, copies).await;
        world.pause().await;
        world.clock = Clock::starting_at(world.clock.now() + DUE);
        world
    }

    async fn done(&self, world: &World) {
        let history = History::follow(world).await;
        let now = world.clock.now();
        world
            .cluster
            .wait_for(&CSV, Some("team"), NAME, move |csv| {
                let rotate = csv.str(&["status", "certsRotateAt"]).unwrap_or_default();
                csv.str(&["status", "phase"]) == Some("Succeeded")
                    && rotate.parse::<jiff::Timestamp>().is_ok_and(|time| time > now)
            })
            .await;
        history.no_call_fails(world).await;
    }
}

/// What a call needs: the certificate that the Secret has, those of running pods, and who trusts which.
const KINDS: [&Resource; 6] = [
    &known::SECRET,
    &known::POD,
    &known::VALIDATING_WEBHOOK_CONFIGURATION,
    &known::MUTATING_WEBHOOK_CONFIGURATION,
    &known::API_SERVICE,
    &known::CUSTOM_RESOURCE_DEFINITION,
];

type Key = (String, String);
/// An object, or that it is gone, at each revision.
type Events = BTreeMap<(u64, Key), Option<Object>>;

/// What happens to objects, in its order.
struct History {
    /// When everything was seen for the first time.
    begin: u64,
    events: Arc<Mutex<Events>>,
    _watches: JoinSet<()>,
}

fn revision(text: &str) -> u64 {
    text.parse().unwrap()
}

fn key(resource: &Resource, object: &Object) -> Key {
    (resource.kind.to_string(), object.key().to_string())
}

impl History {
    async fn follow(world: &World) -> Self {
        let events = Arc::new(Mutex::new(BTreeMap::new()));
        let (mut begin, mut watches) = (0, JoinSet::new());
        for resource in KINDS {
            let cluster = world.cluster.cluster().clone();
            let list = cluster.list(resource, None, &ListParams::default()).await.unwrap();
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

    /// Holds every moment to it: who calls a server trusts the authorities of the certificate in its
    /// Secret and of that of every pod that answers.
    async fn no_call_fails(self, world: &World) {
        // The last ones are on their way.
        tokio::time::sleep(Duration::from_millis(50)).await;
        let mut now: BTreeMap<Key, Object> = BTreeMap::new();
        let events = std::mem::take(&mut *self.events.lock());
        let mut moments = 0;
        for ((at, key), object) in events {
            match object {
                Some(object) => now.insert(key, object),
                None => now.remove(&key),
            };
            if at > self.begin {
                moments += 1;
                held(&now).unwrap_or_else(|why| panic!("at revision {at}: {why}"));
            }
        }
        assert!(world.cluster.store().revision() >= self.begin);
        assert!(moments == 0 || now.len() > 3, "{moments} moments");
    }
}

/// The hashes of the authorities of a bundle.
fn trusted(bundle: &Value) -> BTreeSet<String> {
    const END: &str = "-----END CERTIFICATE-----\n";
    let bytes = BASE64.decode(bundle.as_str().unwrap_or_default()).unwrap();
    let text = String::from_utf8(bytes).unwrap();
    text.split_inclusive(END).map(|certificate| hash(certificate.as_bytes())).collect()
}

fn held(now: &BTreeMap<Key, Object>) -> Result<(), String> {
    let of = |kind: &'static str| now.iter().filter(move |(key, _)| key.0 == kind);
    let mut shown: BTreeSet<(String, String)> = BTreeSet::new();
    for (_, secret) in of("Secret") {
        let Some(authority) = secret.str(&["data", "olmCAKey"]) else { continue };
        let authority = hash(&BASE64.decode(authority).unwrap());
        if secret.annotation("olmcahash") != Some(&authority) {
            return Err(format!("the Secret {} names another authority", secret.key()));
        }
        shown.insert((format!("the Secret {}", secret.key()), authority));
    }
    for (_, pod) in of("Pod") {
        let answers = pod.condition("Ready") == Some("True") && !pod.is_terminating();
        if let Some(authority) = pod.annotation("olmcahash").filter(|_| answers) {
            shown.insert((format!("the pod {}", pod.key()), authority.to_owned()));
        }
    }
    let mut callers: Vec<(String, &Value)> = Vec::new();
    for kind in ["ValidatingWebhookConfiguration", "MutatingWebhookConfiguration"] {
        for (_, configuration) in of(kind) {
            let hooks = configuration.array(&["webhooks"]).iter();
            callers.extend(
                hooks.map(|hook| {
                    (configuration.name().to_owned(), &hook["clientConfig"]["caBundle"])
                }),
            );
        }
    }
    for (_, api_service) in
        of("APIService").filter(|(_, api_service)| api_service.get(&["spec", "service"]).is_some())
    {
        callers.extend(
            api_service
                .get(&["spec", "caBundle"])
                .map(|bundle| (api_service.name().to_owned(), bundle)),
        );
    }
    for (_, crd) in of("CustomResourceDefinition") {
        let path = ["spec", "conversion", "webhook", "clientConfig", "caBundle"];
        callers.extend(crd.get(&path).map(|bundle| (crd.name().to_owned(), bundle)));
    }
    for (caller, bundle) in callers {
        let trusts = trusted(bundle);
        for (who, authority) in &shown {
            if !trusts.contains(authority) {
                return Err(format!("{caller} does not trust {who}"));
            }
        }
    }
    Ok(())
}

const ONE: Rotation = Rotation { everywhere: false };
const ALL: Rotation = Rotation { everywhere: true };

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn certificate_rotation_killed_after_any_write_ends_as_undisturbed() {
    killed_after_each_write(&ONE, 4).await;
    killed_after_each_write(&ALL, 4).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn certificate_rotation_over_a_bad_connection_ends_as_undisturbed() {
    over_bad_connections(&ALL, 3, 100).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_request_of_a_certificate_rotation_may_fail_in_any_way() {
    requests_meet_fates(&ALL).await;
}
