//! Fault injection: killed controllers and faulty connections do not change the end state.
//!
//! ```text
//! people ──────────────── what they do ──► the API ◄── troubled connection ── controllers
//!                                             │          (killed, lost, late, twice …)
//!                                             └─► state ── is that of an undisturbed run?
//! ```
//!
//! Each [`Scenario`] runs once undisturbed, which gives the expected end state and the number of
//! requests and writes. Then it runs again with a fault at each of them. `MAINSTAY_DEEP=1` tries
//! all faults; otherwise the tests try a fixed sample.

mod catalogs;
mod certificates;
mod faults;
mod full_operator;
mod installs;
mod operator_groups;
mod replicas;
mod state;
mod uninstall;

use self::faults::{Fault, random_fate};
use self::state::{State, cluster_state, wait_for_end_state};
use crate::olm_cluster::OlmCluster;
use mainstay_client::Cluster;
use mainstay_testkit::{InjectedFault, ObservedRequest, wait_for_timeout};
use parking_lot::Mutex;
use std::fmt::Debug;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// A scenario that runs with faults.
trait Scenario: Debug {
    /// Prepares a cluster for the scenario, without controllers.
    async fn prepare(&self) -> OlmCluster;

    /// Runs the actions of users over a connection without faults, and waits until the controllers
    /// have reacted.
    async fn run(&self, olm: &OlmCluster);
}

/// The number of requests and writes of a scenario.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Requests {
    all: usize,
    writes: usize,
}

/// Counts the writes over a connection.
#[derive(Clone, Default)]
struct WriteCounter(Arc<AtomicUsize>);

impl WriteCounter {
    /// A client of the cluster that counts writes, without faults.
    fn connect(&self, olm: &OlmCluster) -> Cluster {
        let count = self.clone();
        olm.cluster.with_faults(move |request| {
            count.count_write(request);
            InjectedFault::Pass
        })
    }

    fn count_write(&self, request: &ObservedRequest) {
        if request.is_write() {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }

    fn get(&self) -> usize {
        self.0.load(Ordering::SeqCst)
    }

    /// Waits until no more writes come.
    async fn wait_until_quiet(&self, how: impl Fn() -> String) {
        let rest = async {
            let mut before = None;
            while before != Some(self.get()) {
                before = Some(self.get());
                tokio::time::sleep(QUIET_PERIOD).await;
            }
        };
        tokio::select! {
            () = rest => {}
            () = wait_for_timeout() => panic!("{}: it does not stop writing", how()),
        }
    }
}

/// After this time without a write the controllers are idle: it is longer than the first pauses of
/// retries.
const QUIET_PERIOD: Duration = Duration::from_millis(250);

/// Waits until the cluster state stays the same for several periods; returns it.
async fn wait_until_settled(olm: &OlmCluster, count: &WriteCounter) -> State {
    const LOOKS: usize = 5;
    let mut last = (count.get(), cluster_state(olm).await);
    let mut same = 0;
    while same < LOOKS {
        tokio::time::sleep(QUIET_PERIOD).await;
        let now = (count.get(), cluster_state(olm).await);
        same = if now == last { same + 1 } else { 0 };
        last = now;
    }
    last.1
}

/// Runs a scenario without faults; returns the end state and the number of requests.
async fn run_undisturbed(work: &impl Scenario) -> (State, Requests) {
    let olm = work.prepare().await;
    let (all, count) = (Arc::new(AtomicUsize::new(0)), WriteCounter::default());
    let (every, writes_seen) = (Arc::clone(&all), count.clone());
    let cluster = olm.cluster.with_faults(move |request| {
        every.fetch_max(request.number + 1, Ordering::SeqCst);
        writes_seen.count_write(request);
        InjectedFault::Pass
    });
    let classic = olm.spawn_controllers(&cluster);
    work.run(&olm).await;
    let end = wait_until_settled(&olm, &count).await;
    let requests = Requests { all: all.load(Ordering::SeqCst), writes: count.get() };
    classic.shutdown().await;
    (end, requests)
}

/// Runs a scenario, kills the controllers after this many writes, and starts them again.
async fn run_with_kill(work: &impl Scenario, after: usize, ends: &[State]) {
    let how = || format!("{work:?}, killed after {after} writes");
    let olm = work.prepare().await;
    let dead = CancellationToken::new();
    let dies = dead.clone();
    let doomed = olm.cluster.with_faults(move |request| {
        if request.writes < after && !dies.is_cancelled() {
            return InjectedFault::Pass;
        }
        dies.cancel();
        InjectedFault::ConnectionLost
    });
    let count = WriteCounter::default();
    let first = olm.spawn_controllers(&doomed);
    let finished = CancellationToken::new();
    let controllers = async {
        tokio::select! {
            () = dead.cancelled() => {}
            () = finished.cancelled() => dead.cancel(),
        }
        first.shutdown().await;
        olm.spawn_controllers(&count.connect(&olm))
    };
    let people = async {
        work.run(&olm).await;
        finished.cancel();
    };
    let (second, ()) = tokio::join!(controllers, people);
    wait_for_end_state(&olm, ends, how).await;
    count.wait_until_quiet(how).await;
    second.shutdown().await;
}

/// The number of parallel runs: runs mostly compute and sometimes wait.
const PARALLEL_RUNS: usize = 3;

/// Runs these in parallel; prints their number.
#[expect(clippy::print_stdout, reason = "who runs all of them wants to know what was run")]
async fn run_in_parallel(what: &str, runs: impl Iterator<Item = impl Future<Output = ()>>) {
    use futures::StreamExt;
    let count = futures::stream::iter(runs).buffer_unordered(PARALLEL_RUNS).count().await;
    println!("{what}: {count} runs");
}

/// All points up to `all` in deep tests; otherwise `few` of them, with the first and the last.
fn sample_points(all: usize, few: usize) -> Vec<usize> {
    if is_deep() || all < few {
        return (0..=all).collect();
    }
    (0..few).map(|at| at * all / (few - 1)).collect()
}

async fn assert_survives_kill_after_each_write(work: &impl Scenario, few: usize) {
    let (end, requests) = run_undisturbed(work).await;
    assert!(requests.writes > 5, "{requests:?}");
    let ends = [end];
    let points = sample_points(requests.writes, few).into_iter();
    let what = format!("{work:?}: {requests:?}, killed after each write");
    run_in_parallel(&what, points.map(|after| run_with_kill(work, after, &ends))).await;
}

async fn run_over_bad_connection(work: &impl Scenario, seed: u64, ends: &[State]) {
    let how = format!("{work:?} with seed {seed}");
    run_disturbed(work, move |request| random_fate(seed, request), ends, &how).await;
}

/// Runs a scenario over a connection with the faults of `judge`; asserts that it ends in one of the
/// undisturbed states and that writes stop.
async fn run_disturbed(
    work: &impl Scenario,
    judge: impl Fn(&ObservedRequest) -> InjectedFault + Send + Sync + 'static,
    ends: &[State],
    how: &str,
) {
    let olm = work.prepare().await;
    let count = WriteCounter::default();
    let request_log = Arc::new(Mutex::new(Vec::new()));
    let (writes_seen, all, clock) = (count.clone(), Arc::clone(&request_log), olm.cluster.clock());
    let cluster = olm.cluster.with_faults(move |request| {
        writes_seen.count_write(request);
        let fate = judge(request);
        let ObservedRequest { number, method, target, .. } = request;
        all.lock().push(format!("{} {number} {method} {target}: {fate:?}", clock.now()));
        fate
    });
    let classic = olm.spawn_controllers(&cluster);
    let last = || {
        let request_log = request_log.lock();
        let last = request_log.iter().rev().take(60).rev().cloned().collect::<Vec<_>>();
        format!("{how}; at {} it had asked for\n{}", clock.now(), last.join("\n"))
    };
    work.run(&olm).await;
    wait_for_end_state(&olm, ends, last).await;
    count.wait_until_quiet(|| how.to_owned()).await;
    classic.shutdown().await;
}

/// Whether the tests try every fault, which takes minutes.
#[expect(clippy::disallowed_methods, reason = "the depth of a test is not configuration")]
fn is_deep() -> bool {
    std::env::var_os("MAINSTAY_DEEP").is_some()
}

async fn assert_survives_bad_connections(work: &impl Scenario, quick: u64, all: u64) {
    let (end, _) = run_undisturbed(work).await;
    let ends = [end];
    let seeds = if is_deep() { all } else { quick };
    let what = format!("{work:?} over bad connections");
    run_in_parallel(&what, (0..seeds).map(|seed| run_over_bad_connection(work, seed, &ends))).await;
}

/// Each request gets each fault once; in the same run, every `APART`th request gets a fault.
/// Without `MAINSTAY_DEEP`, each fault hits some requests.
async fn assert_survives_each_fault(work: &impl Scenario) {
    const APART: usize = 25;
    const FEW: usize = 4;
    let kinds = 0..Fault::ALL.len();
    let undisturbed = run_undisturbed(work).await;
    if is_deep() {
        let runs = kinds.flat_map(|shift| (0..APART).map(move |at| (shift, at)));
        return run_with_faults(work, undisturbed, APART, runs).await;
    }
    run_with_faults(work, undisturbed, FEW, kinds.map(|shift| (shift, shift % FEW))).await;
}

async fn run_with_faults(
    work: &impl Scenario,
    (end, requests): (State, Requests),
    apart: usize,
    runs: impl Iterator<Item = (usize, usize)>,
) {
    assert!(requests.all > 50, "{requests:?}");
    let ends = [end];
    let what = format!("{work:?}: {requests:?}, each request meets each fate");
    let runs = runs.map(|(shift, at)| {
        let how = format!("{work:?}, request {at} of {apart} is {:?}", Fault::ALL[shift]);
        let (ends, recorded) = (&ends, requests.all);
        async move {
            let judge = move |request: &ObservedRequest| {
                let is_chosen = request.number < recorded && request.number % apart == at;
                let kind = Fault::ALL[(request.number / apart + shift) % Fault::ALL.len()];
                if is_chosen { kind.fate(request) } else { InjectedFault::Pass }
            };
            run_disturbed(work, judge, ends, &how).await;
        }
    });
    run_in_parallel(&what, runs).await;
}
