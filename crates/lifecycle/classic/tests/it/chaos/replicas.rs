//! Leader election: two processes, of which the one that holds the Lease runs the controllers.

use super::installs::Operation;
use crate::olm_cluster::{CATALOG_NAMESPACE, OlmCluster};
use mainstay_classic::Classic;
use mainstay_client::{Cluster, Election, LeaseTerm, LeaseTimings};
use mainstay_object::NamespacedName;
use mainstay_testkit::chaos::{
    FaultScenario, State, WriteCounter, run_in_parallel, run_undisturbed, sample_points,
    wait_for_end_state,
};
use mainstay_testkit::{InjectedFault, ObservedRequest};
use parking_lot::Mutex;
use std::convert::Infallible;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// Short terms, as each run waits until one ends.
const TERMS: LeaseTimings = LeaseTimings {
    lease: Duration::from_secs(2),
    renew: Duration::from_millis(1_200),
    retry: Duration::from_millis(50),
};

/// A failure of the leader.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Failure {
    /// The process is killed.
    Killed,
    /// The process is killed; its last write arrives long after another process took over.
    Adrift,
    /// The process cannot renew its Lease; all other requests succeed.
    CutOff,
    /// All requests of the process take longer than its term.
    Stalled,
}

/// Whether a request is for the Lease.
fn is_lease(request: &ObservedRequest) -> bool {
    request.target.contains("/leases")
}

/// One process.
struct Replica<'a> {
    olm: &'a OlmCluster,
    name: &'static str,
    cluster: Cluster,
    cache: &'a Path,
    /// The controllers, while the process leads.
    classic: &'a Mutex<Option<Classic>>,
}

impl Replica<'_> {
    async fn run(&self, stop: &CancellationToken) {
        let key = NamespacedName::new(CATALOG_NAMESPACE, "mainstay");
        let clock = self.olm.clock;
        let election = Election::new(self.cluster.clone(), key, self.name.to_owned(), clock);
        let work = |term: LeaseTerm| async move {
            let cluster = term.fenced(&self.cluster);
            *self.classic.lock() =
                Some(self.olm.spawn_controllers_with_cache(&cluster, self.cache));
            term.cancelled().await;
            self.end().await;
            Ok::<_, Infallible>(())
        };
        let Ok(()) = election.with_terms(TERMS).lead(stop, |_| (), work).await;
    }

    async fn end(&self) {
        let classic = self.classic.lock().take();
        if let Some(classic) = classic {
            classic.shutdown().await;
        }
    }
}

/// One process starts the operation and fails after this many writes; another process finishes it.
async fn run_takeover(work: Operation, blow: Failure, after: usize, ends: &[State]) {
    let how = || format!("{work:?}: {blow:?} after {after} writes");
    let olm = work.prepare().await;
    let hit = CancellationToken::new();
    let written = Arc::new(AtomicUsize::new(0));
    // The sender of each executed write, in order.
    let log = Arc::new(Mutex::new(Vec::new()));
    let (hits, told) = (hit.clone(), Arc::clone(&log));
    let first = olm.cluster.with_faults(move |request| {
        if is_lease(request) {
            return match blow {
                _ if !hits.is_cancelled() => InjectedFault::Pass,
                Failure::Killed | Failure::Adrift => InjectedFault::ConnectionLost,
                Failure::CutOff | Failure::Stalled => {
                    InjectedFault::Delayed(Duration::from_hours(1))
                }
            };
        }
        let number = if request.is_write() {
            written.fetch_add(1, Ordering::SeqCst)
        } else {
            written.load(Ordering::SeqCst)
        };
        let was_hit = hits.is_cancelled();
        let is_hit = number >= after && (request.is_write() || blow != Failure::Adrift);
        if is_hit {
            hits.cancel();
        }
        let fate = match blow {
            _ if !is_hit && !was_hit => InjectedFault::Pass,
            Failure::Adrift if !was_hit => InjectedFault::DeliveredAfterDisconnect(TERMS.lease * 2),
            Failure::Killed | Failure::Adrift => InjectedFault::ConnectionLost,
            Failure::CutOff => InjectedFault::Pass,
            Failure::Stalled => InjectedFault::Delayed(TERMS.lease * 2),
        };
        if request.is_write() && fate == InjectedFault::Pass {
            told.lock().push("first");
        }
        fate
    });
    let (count, told) = (WriteCounter::default(), Arc::clone(&log));
    let counts = count.clone();
    let second = olm.cluster.with_faults(move |request| {
        if request.is_write() && !is_lease(request) {
            counts.count_write(request);
            told.lock().push("second");
        }
        InjectedFault::Pass
    });
    let caches = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    let works = [Mutex::new(None), Mutex::new(None)];
    let replica = |name, cluster, at: usize| Replica {
        olm: &olm,
        name,
        cluster,
        cache: caches[at].path(),
        classic: &works[at],
    };
    let (first, second) = (replica("first", first, 0), replica("second", second, 1));
    let stop = CancellationToken::new();
    let leading = async {
        let dies = async {
            hit.cancelled().await;
            if !matches!(blow, Failure::Killed | Failure::Adrift) {
                stop.cancelled().await;
            }
        };
        tokio::select! {
            () = first.run(&stop) => {}
            () = dies => {}
        }
        first.end().await;
    };
    let waiting = async {
        // The first process leads first.
        tokio::select! {
            () = hit.cancelled() => {}
            () = work.run(&olm) => hit.cancel(),
        }
        second.run(&stop).await;
    };
    let people = async {
        work.run(&olm).await;
        hit.cancelled().await;
        wait_for_end_state(&olm, ends, how).await;
        if blow == Failure::Adrift {
            tokio::time::sleep(TERMS.lease * 2).await;
            wait_for_end_state(&olm, ends, how).await;
        }
        count.wait_until_quiet(how).await;
        stop.cancel();
    };
    tokio::join!(leading, waiting, people);
    let log = log.lock();
    let begun = log.iter().position(|entry| *entry == "second").unwrap_or(log.len());
    assert!(!log[begun..].contains(&"first"), "{}: both have written", how());
}

async fn assert_takeover_at_each_write(blow: Failure, few: usize) {
    for work in [Operation::Install, Operation::Upgrade] {
        let (end, requests) = run_undisturbed(&work).await;
        let ends = [end];
        let what = format!("{work:?}: {blow:?} after each of {} writes", requests.writes);
        let all = sample_points(requests.writes - 1, few).into_iter();
        run_in_parallel(&what, all.map(|after| run_takeover(work, blow, after, &ends))).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn standby_replica_takes_over_the_work_of_a_killed_leader() {
    assert_takeover_at_each_write(Failure::Killed, 1).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn late_write_of_a_killed_leader_changes_nothing_for_its_successor() {
    assert_takeover_at_each_write(Failure::Adrift, 1).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn leader_that_cannot_renew_its_lease_stops_writing_before_the_next_starts() {
    assert_takeover_at_each_write(Failure::CutOff, 1).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn leader_with_requests_longer_than_its_term_is_replaced() {
    assert_takeover_at_each_write(Failure::Stalled, 1).await;
}
