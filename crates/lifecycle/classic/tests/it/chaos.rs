//! Controllers that are killed after any write, and connections that lose, refuse, repeat and delay:
//! the end is always the same.

use crate::world::World;
use mainstay_api::resources::{
    CATALOG_SOURCE, CLUSTER_SERVICE_VERSION, INSTALL_PLAN, OPERATOR_GROUP, SUBSCRIPTION,
};
use mainstay_client::{ListParams, Selection};
use mainstay_object::{Object, Resource, known};
use mainstay_testkit::{Asked, Fate, PATIENCE};
use parking_lot::Mutex;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// What an end state is made of.
const KINDS: [&Resource; 13] = [
    &CATALOG_SOURCE,
    &SUBSCRIPTION,
    &INSTALL_PLAN,
    &CLUSTER_SERVICE_VERSION,
    &OPERATOR_GROUP,
    &known::CUSTOM_RESOURCE_DEFINITION,
    &known::DEPLOYMENT,
    &known::CONFIG_MAP,
    &known::SERVICE_ACCOUNT,
    &known::ROLE,
    &known::ROLE_BINDING,
    &known::CLUSTER_ROLE,
    &known::CLUSTER_ROLE_BINDING,
];

/// The piece of work that is disturbed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Work {
    /// A Subscription gets its operator.
    Install,
    /// An operator walks over two versions.
    Upgrade,
}

impl Work {
    /// A cluster in which the work is to be done, without controllers.
    async fn ready(self) -> World {
        let mut world = World::start(&["1.0.0"]).await;
        world.group("og").await;
        match self {
            Self::Install => {
                world.pause().await;
                world.subscribe(json!({})).await;
            }
            Self::Upgrade => {
                world.subscribe(json!({})).await;
                world.succeeded("anvil.v1.0.0").await;
                world.subscription(known_latest).await;
                world.pause().await;
                world.publish(&["1.0.0", "1.1.0", "1.2.0"]);
            }
        }
        world
    }

    /// Waits for the work to be done.
    async fn done(self, world: &World) {
        let version = match self {
            Self::Install => "anvil.v1.0.0",
            Self::Upgrade => "anvil.v1.2.0",
        };
        world.succeeded(version).await;
        world
            .subscription(move |it| {
                known_latest(it) && it.str(&["status", "installedCSV"]) == Some(version)
            })
            .await;
        let mut versions = Selection::all(CLUSTER_SERVICE_VERSION.clone());
        versions.namespace = Some("team".to_owned());
        world.cluster.wait_for_all(versions, |all| all.len() == 1).await;
        world
            .plans(|all| all.iter().all(|it| it.str(&["status", "phase"]) == Some("Complete")))
            .await;
    }
}

fn known_latest(it: &Object) -> bool {
    it.str(&["status", "state"]) == Some("AtLatestKnown")
}

/// Everything that there is, without what must differ between two clusters.
async fn state(world: &World) -> BTreeMap<String, Value> {
    let mut all = BTreeMap::new();
    let mut names: Vec<(String, String)> = Vec::new();
    for resource in KINDS {
        let list = world.cluster.cluster().list(resource, None, &ListParams::default()).await;
        let mut items = list.unwrap().items;
        items.retain(|it| !it.name().starts_with("system:") && it.name() != "kube-root-ca.crt");
        for (object, uid) in items.iter().map(|it| (it, it.uid())) {
            names.push((uid.to_owned(), format!("{{uid of {} {}}}", object.kind(), object.name())));
            if object.kind() == "InstallPlan" {
                let number = object.str(&["metadata", "generation"]);
                let version = &object.array(&["spec", "clusterServiceVersionNames"])[0];
                let told = format!("install-{}", version.as_str().unwrap_or_default());
                assert_eq!(number, None, "a number is no text");
                names.push((object.name().to_owned(), told));
            }
        }
        for object in items {
            all.insert(format!("{} {}", resource.kind, object.key()), object.to_value());
        }
    }
    let mut plain = BTreeMap::new();
    for (key, mut value) in all {
        settle(&mut value, &names);
        let mut key = Value::String(key);
        settle(&mut key, &names);
        let mut key = key.as_str().unwrap().to_owned();
        // A plan that was asked for twice, until it is swept away.
        while plain.contains_key(&key) {
            key.push_str(" again");
        }
        plain.insert(key, value);
    }
    plain
}

/// Takes out times, revisions and names by chance, and what tells the way rather than the end: the
/// history of a version, and whether a step made its object or found it.
fn settle(value: &mut Value, names: &[(String, String)]) {
    match value {
        Value::Object(fields) => {
            for key in
                ["resourceVersion", "managedFields", "uid", "creationTimestamp", "generation"]
            {
                fields.remove(key);
            }
            let is_version = fields.get("kind").is_some_and(|it| it == "ClusterServiceVersion");
            if is_version && let Some(Value::Object(status)) = fields.get_mut("status") {
                status.remove("conditions");
            }
            if let Some(status) = fields.get_mut("status")
                && (status == "Created" || status == "Present")
            {
                *status = "done".into();
            }
            // A plan may end without having written down its last steps, and says so.
            let is_plan = fields.get("kind").is_some_and(|it| it == "InstallPlan");
            if is_plan && let Some(Value::Object(status)) = fields.get_mut("status") {
                status.remove("message");
                for step in
                    status.get_mut("plan").and_then(Value::as_array_mut).into_iter().flatten()
                {
                    step["status"] = "done".into();
                }
            }
            // The number of the round in which it was made.
            if let Some(spec) = fields.get_mut("spec").and_then(Value::as_object_mut) {
                spec.remove("generation");
            }
            fields.remove("installPlanGeneration");
            for field in fields.values_mut() {
                settle(field, names);
            }
        }
        Value::Array(items) => {
            for item in items.iter_mut() {
                settle(item, names);
            }
            if items.iter().all(|it| it.get("kind").is_some() && it.get("name").is_some()) {
                items.sort_by_key(ToString::to_string);
            }
        }
        Value::String(text) => {
            if text.parse::<jiff::Timestamp>().is_ok() {
                "{time}".clone_into(text);
            }
            for (name, told) in names.iter().filter(|it| !it.0.is_empty()) {
                if text.contains(name.as_str()) {
                    *text = text.replace(name.as_str(), told);
                }
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// Waits until the cluster is as wanted; says what differs if it never is.
async fn ends_as(world: &World, wanted: &BTreeMap<String, Value>, how: impl Fn() -> String) {
    let compare = async {
        loop {
            let found = state(world).await;
            if found == *wanted {
                return;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    if tokio::time::timeout(PATIENCE, compare).await.is_ok() {
        return;
    }
    let found = state(world).await;
    let mut told = Vec::new();
    for key in wanted.keys().chain(found.keys()) {
        let (left, right) = (wanted.get(key), found.get(key));
        if left != right {
            let text = |it: Option<&Value>| it.map_or("nothing".to_owned(), ToString::to_string);
            told.push(format!("{key}\n  wanted {}\n  found  {}", text(left), text(right)));
        }
    }
    panic!("{}\nanother end\n{}", how(), told.join("\n"));
}

/// How many requests a piece of work takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Requests {
    all: usize,
    writes: usize,
}

/// The end without any trouble, and how many requests it takes.
async fn plain(work: Work) -> (BTreeMap<String, Value>, Requests) {
    let mut world = work.ready().await;
    let (all, count) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let (every, seen) = (Arc::clone(&all), Arc::clone(&count));
    let cluster = world.cluster.troubled(move |asked| {
        every.fetch_max(asked.number + 1, Ordering::SeqCst);
        if asked.is_write() {
            seen.fetch_max(asked.writes + 1, Ordering::SeqCst);
        }
        Fate::Pass
    });
    world.resume_over(&cluster).await;
    work.done(&world).await;
    let end = loop {
        let first = state(&world).await;
        let writes = count.load(Ordering::SeqCst);
        tokio::time::sleep(Duration::from_millis(200)).await;
        if writes == count.load(Ordering::SeqCst) && first == state(&world).await {
            break first;
        }
    };
    world.pause().await;
    let [all, writes] = [all, count].map(|it| it.load(Ordering::SeqCst));
    (end, Requests { all, writes })
}

/// Kills the controllers after so many writes, and starts them again.
async fn killed(work: Work, after: usize, wanted: &BTreeMap<String, Value>) {
    let mut world = work.ready().await;
    let dead = CancellationToken::new();
    let dies = dead.clone();
    let cluster = world.cluster.troubled(move |asked| {
        if asked.writes < after {
            return Fate::Pass;
        }
        dies.cancel();
        Fate::Lost
    });
    // What is dead is never in sync.
    tokio::select! {
        () = world.resume_over(&cluster) => {}
        () = dead.cancelled() => {}
    }
    tokio::select! {
        () = work.done(&world) => {}
        () = dead.cancelled() => {}
    }
    world.pause().await;
    world.resume().await;
    ends_as(&world, wanted, || format!("{work:?}, killed after {after} writes")).await;
    world.pause().await;
}

/// Runs some of these at once.
async fn side_by_side(runs: impl Iterator<Item = impl Future<Output = ()>>) {
    use futures::StreamExt;
    futures::stream::iter(runs).buffer_unordered(6).collect::<()>().await;
}

async fn killed_after_each_write(work: Work) {
    let (end, Requests { writes, .. }) = plain(work).await;
    assert!(writes > 5, "{writes}");
    side_by_side((0..=writes).map(|after| killed(work, after, &end))).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_install_that_is_killed_after_any_write_ends_as_if_it_was_not() {
    killed_after_each_write(Work::Install).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_upgrade_that_is_killed_after_any_write_ends_as_if_it_was_not() {
    killed_after_each_write(Work::Upgrade).await;
}

/// A number that depends on the seed and the request alone.
fn draw(seed: u64, number: usize, salt: u64) -> u64 {
    // The mixing of splitmix64: quick, and no two requests look alike.
    let mut it = seed
        .wrapping_mul(0x9E37_79B9_7F4A_7C15)
        .wrapping_add((number as u64).wrapping_mul(0xBF58_476D_1CE4_E5B9))
        .wrapping_add(salt.wrapping_mul(0x94D0_49BB_1331_11EB));
    it = (it ^ (it >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    it = (it ^ (it >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    it ^ (it >> 31)
}

/// How many requests go over the bad connection before it is mended. Without trouble, fewer are made.
const STORM: usize = 400;

/// What a bad connection does to a request: one in three has some trouble.
fn trouble(seed: u64, asked: &Asked) -> Fate {
    let draw = |salt| draw(seed, asked.number, salt);
    if asked.number > STORM || !draw(0).is_multiple_of(3) {
        return Fate::Pass;
    }
    let time = Duration::from_millis(draw(1) % 20);
    if asked.is_watch() {
        return match draw(2) % 4 {
            0 => Fate::Lost,
            1 => Fate::Cut(usize::try_from(draw(3) % 4).unwrap()),
            2 => Fate::Late(time),
            _ => Fate::Slow(time),
        };
    }
    match draw(2) % 6 {
        0 => Fate::Lost,
        1 => Fate::Unanswered,
        2 => Fate::Refused([429, 500, 503, 504][usize::try_from(draw(3) % 4).unwrap()]),
        3 if asked.is_write() => Fate::Twice,
        _ => Fate::Late(time),
    }
}

async fn over_a_bad_connection(work: Work, seed: u64, wanted: &BTreeMap<String, Value>) {
    let how = format!("{work:?} with seed {seed}");
    disturbed(work, move |asked| trouble(seed, asked), wanted, &how).await;
}

/// Does the work over a connection of which `judge` says what goes wrong: the end is that of the
/// undisturbed work, and then nothing is written any more.
async fn disturbed(
    work: Work,
    judge: impl Fn(&Asked) -> Fate + Send + Sync + 'static,
    wanted: &BTreeMap<String, Value>,
    how: &str,
) {
    let mut world = work.ready().await;
    let writes = Arc::new(AtomicUsize::new(0));
    let asked = Arc::new(Mutex::new(Vec::new()));
    let (count, all, clock) = (Arc::clone(&writes), Arc::clone(&asked), world.cluster.clock());
    let cluster = world.cluster.troubled(move |asked| {
        if asked.is_write() {
            count.fetch_add(1, Ordering::SeqCst);
        }
        let fate = judge(asked);
        let Asked { number, method, target, .. } = asked;
        all.lock().push(format!("{} {number} {method} {target}: {fate:?}", clock.now()));
        fate
    });
    world.resume_over(&cluster).await;
    let last = || {
        let asked = asked.lock();
        let last = asked.iter().rev().take(60).rev().cloned().collect::<Vec<_>>();
        format!("{how}; at {} it had asked for\n{}", clock.now(), last.join("\n"))
    };
    ends_as(&world, wanted, last).await;
    let rest = async {
        let mut before = None;
        while before != Some(writes.load(Ordering::SeqCst)) {
            before = Some(writes.load(Ordering::SeqCst));
            tokio::time::sleep(CALM).await;
        }
    };
    let rests = tokio::time::timeout(PATIENCE, rest).await;
    assert!(rests.is_ok(), "{how}: it does not stop writing");
    world.pause().await;
}

/// After so long without a write there is none any more: it is longer than the first pauses of whoever
/// tries again.
const CALM: Duration = Duration::from_millis(250);

/// Whether everything is tried; it takes minutes.
#[expect(clippy::disallowed_methods, reason = "the depth of a test is not configuration")]
fn deep() -> bool {
    std::env::var_os("MAINSTAY_DEEP").is_some()
}

async fn over_bad_connections(work: Work, quick: u64) {
    let (end, _) = plain(work).await;
    let seeds = if deep() { 500 } else { quick };
    side_by_side((0..seeds).map(|seed| over_a_bad_connection(work, seed, &end))).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_install_over_a_bad_connection_ends_as_over_a_good_one() {
    over_bad_connections(Work::Install, 12).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_upgrade_over_a_bad_connection_ends_as_over_a_good_one() {
    over_bad_connections(Work::Upgrade, 6).await;
}

/// What can become of one request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// Something on the way refuses it.
    Fails,
    /// It or its answer takes longer.
    Delayed,
    /// It arrives twice.
    Duplicated,
    /// Others overtake it.
    Reordered,
    /// It does not arrive.
    Dropped,
    /// Its answer does not arrive.
    Unanswered,
}

impl Kind {
    const ALL: [Self; 6] = [
        Self::Fails,
        Self::Delayed,
        Self::Duplicated,
        Self::Reordered,
        Self::Dropped,
        Self::Unanswered,
    ];

    fn fate(self, asked: &Asked) -> Fate {
        match self {
            Self::Fails => Fate::Refused([429, 500, 503, 504][asked.number / 7 % 4]),
            Self::Delayed if asked.is_watch() => Fate::Slow(Duration::from_millis(10)),
            Self::Delayed => Fate::Late(Duration::from_millis(30)),
            Self::Duplicated => Fate::Twice,
            Self::Reordered => Fate::Behind(4),
            Self::Dropped => Fate::Lost,
            Self::Unanswered if asked.is_watch() => Fate::Cut(1),
            Self::Unanswered => Fate::Unanswered,
        }
    }
}

/// Every how many requests one meets a fate, where not each has runs of its own.
const APART: usize = 4;

/// Each request meets each fate once: in a run of its own where there is time, otherwise together with
/// every fourth, each of which meets another one.
async fn each_request_meets_each_fate(work: Work) {
    let (end, requests) = plain(work).await;
    assert!(requests.all > 50, "{requests:?}");
    let apart = if deep() { requests.all } else { APART };
    let runs = (0..Kind::ALL.len()).flat_map(|shift| (0..apart).map(move |at| (shift, at)));
    side_by_side(runs.map(|(shift, at)| {
        let how = format!("{work:?}, request {at} of {apart} is {:?}", Kind::ALL[shift]);
        let (end, recorded) = (&end, requests.all);
        async move {
            let judge = move |asked: &Asked| {
                let meant = asked.number < recorded && asked.number % apart == at;
                let kind = Kind::ALL[(asked.number / apart + shift) % Kind::ALL.len()];
                if meant { kind.fate(asked) } else { Fate::Pass }
            };
            disturbed(work, judge, end, &how).await;
        }
    }))
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_request_of_an_install_may_fail_or_come_late_twice_in_another_order_or_not_at_all() {
    each_request_meets_each_fate(Work::Install).await;
}
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_request_of_an_upgrade_may_fail_or_come_late_twice_in_another_order_or_not_at_all() {
    each_request_meets_each_fate(Work::Upgrade).await;
}
