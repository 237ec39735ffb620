//! Fault injection: killed controllers and faulty connections do not change the end state.
//!
//! ```text
//! people ──────────────── what they do ──► the API ◄── troubled connection ── controllers
//!                                             │          (killed, lost, late, twice …)
//!                                             └─► state ── is that of an undisturbed run?
//! ```
//!
//! Each [`FaultScenario`] runs once undisturbed, which gives the expected end state and the number of
//! requests and writes. Then it runs again with a fault at each of them. `MAINSTAY_DEEP=1` tries
//! all faults; otherwise the tests try a fixed sample.

mod faults;
mod state;

use self::faults::{Fault, random_fault};
use crate::{InjectedFault, ObservedRequest, TestCluster, wait_for_timeout};
use mainstay_client::Cluster;
use std::fmt::Debug;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio_util::sync::CancellationToken;

pub use state::{State, differences, list_objects, wait_for_end_state};

/// A cluster with controllers that faults may hit.
pub trait FaultyCluster {
    /// Running controllers.
    type Controllers;

    /// The cluster itself.
    fn test_cluster(&self) -> &TestCluster;

    /// Starts controllers that reach the cluster over this client.
    fn spawn_controllers(&self, cluster: &Cluster) -> Self::Controllers;

    /// Stops controllers.
    fn shut_down(controllers: Self::Controllers) -> impl Future<Output = ()>;

    /// All objects, without fields that differ between two undisturbed runs.
    fn state(&self) -> impl Future<Output = State>;
}

/// A scenario that runs with faults.
pub trait FaultScenario: Debug {
    /// The cluster of the scenario.
    type Cluster: FaultyCluster;

    /// Prepares a cluster for the scenario, without controllers.
    fn prepare(&self) -> impl Future<Output = Self::Cluster>;

    /// Runs the actions of users over a connection without faults, and waits until the controllers
    /// have reacted.
    fn run(&self, cluster: &Self::Cluster) -> impl Future<Output = ()>;
}

/// The number of requests and writes of a scenario.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Requests {
    /// All requests.
    pub all: usize,
    /// Those that write.
    pub writes: usize,
}

/// Counts the writes over a connection.
#[derive(Clone, Debug, Default)]
pub struct WriteCounter(Arc<AtomicUsize>);

impl WriteCounter {
    /// A client of the cluster that counts writes, without faults.
    pub fn connect(&self, cluster: &TestCluster) -> Cluster {
        let count = self.clone();
        cluster.with_faults(move |request| {
            count.count_write(request);
            InjectedFault::Pass
        })
    }

    /// Counts a request if it writes.
    pub fn count_write(&self, request: &ObservedRequest) {
        if request.is_write() {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }

    /// The number of writes.
    pub fn get(&self) -> usize {
        self.0.load(Ordering::SeqCst)
    }

    /// Waits until no more writes come.
    ///
    /// # Panics
    /// If writes never stop.
    pub async fn wait_until_quiet(&self, how: impl Fn() -> String) {
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
pub async fn wait_until_settled(cluster: &impl FaultyCluster, count: &WriteCounter) -> State {
    const LOOKS: usize = 5;
    let mut last = (count.get(), cluster.state().await);
    let mut same = 0;
    while same < LOOKS {
        tokio::time::sleep(QUIET_PERIOD).await;
        let now = (count.get(), cluster.state().await);
        same = if now == last { same + 1 } else { 0 };
        last = now;
    }
    last.1
}

/// Runs a scenario without faults; returns the end state and the number of requests.
pub async fn run_undisturbed<S: FaultScenario>(scenario: &S) -> (State, Requests) {
    let cluster = scenario.prepare().await;
    let (all, count) = (Arc::new(AtomicUsize::new(0)), WriteCounter::default());
    let (every, writes_seen) = (Arc::clone(&all), count.clone());
    let client = cluster.test_cluster().with_faults(move |request| {
        every.fetch_max(request.number + 1, Ordering::SeqCst);
        writes_seen.count_write(request);
        InjectedFault::Pass
    });
    let controllers = cluster.spawn_controllers(&client);
    scenario.run(&cluster).await;
    let end = wait_until_settled(&cluster, &count).await;
    let requests = Requests { all: all.load(Ordering::SeqCst), writes: count.get() };
    S::Cluster::shut_down(controllers).await;
    (end, requests)
}

/// Runs a scenario, kills the controllers after this many writes, and starts them again.
async fn run_with_kill<S: FaultScenario>(scenario: &S, after: usize, ends: &[State]) {
    let how = || format!("{scenario:?}, killed after {after} writes");
    let cluster = scenario.prepare().await;
    let dead = CancellationToken::new();
    let dies = dead.clone();
    let doomed = cluster.test_cluster().with_faults(move |request| {
        if request.writes < after && !dies.is_cancelled() {
            return InjectedFault::Pass;
        }
        dies.cancel();
        InjectedFault::ConnectionLost
    });
    let count = WriteCounter::default();
    let first = cluster.spawn_controllers(&doomed);
    let finished = CancellationToken::new();
    let controllers = async {
        tokio::select! {
            () = dead.cancelled() => {}
            () = finished.cancelled() => dead.cancel(),
        }
        S::Cluster::shut_down(first).await;
        cluster.spawn_controllers(&count.connect(cluster.test_cluster()))
    };
    let people = async {
        scenario.run(&cluster).await;
        finished.cancel();
    };
    let (second, ()) = tokio::join!(controllers, people);
    wait_for_end_state(&cluster, ends, how).await;
    count.wait_until_quiet(how).await;
    S::Cluster::shut_down(second).await;
}

/// The number of parallel runs: runs mostly compute and sometimes wait.
const PARALLEL_RUNS: usize = 3;

/// Runs these in parallel; prints their number.
#[expect(clippy::print_stdout, reason = "who runs all of them wants to know what was run")]
pub async fn run_in_parallel(what: &str, runs: impl Iterator<Item = impl Future<Output = ()>>) {
    use futures::StreamExt;
    let count = futures::stream::iter(runs).buffer_unordered(PARALLEL_RUNS).count().await;
    println!("{what}: {count} runs");
}

/// All points up to `all` in deep tests; otherwise `few` of them, each in the middle of an equal part.
pub fn sample_points(all: usize, few: usize) -> Vec<usize> {
    if is_deep() || all < few {
        return (0..=all).collect();
    }
    (0..few).map(|at| (2 * at + 1) * all / (2 * few)).collect()
}

/// Runs a scenario undisturbed, then with the controllers killed after each write (after `few` of
/// them without `MAINSTAY_DEEP`).
///
/// # Panics
/// If a run ends in another state, or does not stop writing.
pub async fn assert_survives_kill_after_each_write(scenario: &impl FaultScenario, few: usize) {
    let (end, requests) = run_undisturbed(scenario).await;
    assert!(requests.writes > 5, "{requests:?}");
    let ends = [end];
    let points = sample_points(requests.writes, few).into_iter();
    let what = format!("{scenario:?}: {requests:?}, killed after each write");
    run_in_parallel(&what, points.map(|after| run_with_kill(scenario, after, &ends))).await;
}

async fn run_over_bad_connection(scenario: &impl FaultScenario, seed: u64, ends: &[State]) {
    let how = format!("{scenario:?} with seed {seed}");
    run_disturbed(scenario, move |request| random_fault(seed, request), ends, &how).await;
}

/// Runs a scenario over a connection with the faults that `fault_of` chooses; asserts that it ends in one of the
/// undisturbed states and that writes stop.
async fn run_disturbed<S: FaultScenario>(
    scenario: &S,
    fault_of: impl Fn(&ObservedRequest) -> InjectedFault + Send + Sync + 'static,
    ends: &[State],
    how: &str,
) {
    let cluster = scenario.prepare().await;
    let count = WriteCounter::default();
    let request_log = Arc::new(Mutex::new(Vec::new()));
    let clock = cluster.test_cluster().clock();
    let (writes_seen, all) = (count.clone(), Arc::clone(&request_log));
    let client = cluster.test_cluster().with_faults(move |request| {
        writes_seen.count_write(request);
        let fault = fault_of(request);
        let ObservedRequest { number, method, target, .. } = request;
        let line = format!("{} {number} {method} {target}: {fault:?}", clock.now());
        all.lock().unwrap_or_else(PoisonError::into_inner).push(line);
        fault
    });
    let controllers = cluster.spawn_controllers(&client);
    let last = || {
        let request_log = request_log.lock().unwrap_or_else(PoisonError::into_inner);
        let last = request_log.iter().rev().take(60).rev().cloned().collect::<Vec<_>>();
        format!("{how}; at {} it had asked for\n{}", clock.now(), last.join("\n"))
    };
    scenario.run(&cluster).await;
    wait_for_end_state(&cluster, ends, last).await;
    count.wait_until_quiet(|| how.to_owned()).await;
    S::Cluster::shut_down(controllers).await;
}

/// Whether the tests try every fault, which takes minutes.
#[expect(clippy::disallowed_methods, reason = "the depth of a test is not configuration")]
fn is_deep() -> bool {
    std::env::var_os("MAINSTAY_DEEP").is_some()
}

/// Runs a scenario undisturbed, then over bad connections with `quick` seeds, or `all` with
/// `MAINSTAY_DEEP`.
///
/// # Panics
/// If a run ends in another state, or does not stop writing.
pub async fn assert_survives_bad_connections(scenario: &impl FaultScenario, quick: u64, all: u64) {
    let (end, _) = run_undisturbed(scenario).await;
    let ends = [end];
    let seeds = if is_deep() { all } else { quick };
    let what = format!("{scenario:?} over bad connections");
    let runs = (0..seeds).map(|seed| run_over_bad_connection(scenario, seed, &ends));
    run_in_parallel(&what, runs).await;
}

/// Each request gets each fault once; in the same run, every `APART`th request gets a fault.
/// Without `MAINSTAY_DEEP`, every third fault hits some requests.
///
/// # Panics
/// If a run ends in another state, or does not stop writing.
pub async fn assert_survives_each_fault(scenario: &impl FaultScenario) {
    const APART: usize = 25;
    const FEW: usize = 4;
    let kinds = 0..Fault::ALL.len();
    let undisturbed = run_undisturbed(scenario).await;
    if is_deep() {
        let runs = kinds.flat_map(|shift| (0..APART).map(move |at| (shift, at)));
        return run_with_faults(scenario, undisturbed, APART, runs).await;
    }
    let few = kinds.step_by(3).map(|shift| (shift, shift % FEW));
    run_with_faults(scenario, undisturbed, FEW, few).await;
}

async fn run_with_faults(
    scenario: &impl FaultScenario,
    (end, requests): (State, Requests),
    apart: usize,
    runs: impl Iterator<Item = (usize, usize)>,
) {
    assert!(requests.all > 20, "{requests:?}");
    let ends = [end];
    let what = format!("{scenario:?}: {requests:?}, each request has each fault");
    let runs = runs.map(|(shift, at)| {
        let how = format!("{scenario:?}, request {at} of {apart} is {:?}", Fault::ALL[shift]);
        let (ends, recorded) = (&ends, requests.all);
        async move {
            let fault_of = move |request: &ObservedRequest| {
                let is_chosen = request.number < recorded && request.number % apart == at;
                let kind = Fault::ALL[(request.number / apart + shift) % Fault::ALL.len()];
                if is_chosen { kind.injected(request) } else { InjectedFault::Pass }
            };
            run_disturbed(scenario, fault_of, ends, &how).await;
        }
    });
    run_in_parallel(&what, runs).await;
}
