//! Tests of leader election.

use mainstay_client::{Election, LeaseTerm, LeaseTimings, Patch};
use mainstay_clock::Clock;
use mainstay_object::{NamespacedName, Object, builtin};
use mainstay_testkit::TestCluster;
use serde_json::json;
use std::convert::Infallible;
use std::time::Duration;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

const QUICK: LeaseTimings = LeaseTimings {
    lease: Duration::from_secs(1),
    renew: Duration::from_millis(600),
    retry: Duration::from_millis(30),
};

/// A candidate that reports its terms as events.
struct Candidate {
    task: JoinHandle<()>,
    stop: CancellationToken,
}

impl Candidate {
    fn start(
        cluster: &TestCluster,
        name: &'static str,
        terms: LeaseTimings,
        events: &UnboundedSender<String>,
    ) -> Self {
        let key = NamespacedName::new("default", "work");
        let cluster = cluster.cluster().clone();
        let election = Election::new(cluster, key, name.to_owned(), Clock::system());
        let election = election.with_terms(terms);
        let (stop, events) = (CancellationToken::new(), events.clone());
        let until = stop.clone();
        let task = tokio::spawn(async move {
            let waits = |holder: &str| events.send(format!("{name} waits for {holder}")).unwrap();
            let work = |term: LeaseTerm| {
                let events = &events;
                async move {
                    events.send(format!("{name} begins")).unwrap();
                    term.cancelled().await;
                    // The test may have dropped the receiver.
                    let _ = events.send(format!("{name} ends"));
                    Ok::<_, Infallible>(())
                }
            };
            let Ok(()) = election.lead(&until, waits, work).await;
        });
        Self { task, stop }
    }

    async fn end(self) {
        self.stop.cancel();
        self.task.await.unwrap();
    }
}

async fn expect_event(received: &mut UnboundedReceiver<String>, words: &str) {
    assert_eq!(received.recv().await.unwrap(), words);
}

async fn lease(cluster: &TestCluster) -> Object {
    cluster.cluster().get(&builtin::LEASE, Some("default"), "work").await.unwrap()
}

#[tokio::test]
async fn next_candidate_leads_when_the_lease_is_released() {
    let cluster = TestCluster::bare().await;
    let (events, mut received) = unbounded_channel();
    let a = Candidate::start(&cluster, "a", QUICK, &events);
    expect_event(&mut received, "a begins").await;
    let b = Candidate::start(&cluster, "b", QUICK, &events);
    expect_event(&mut received, "b waits for a").await;
    a.end().await;
    expect_event(&mut received, "a ends").await;
    expect_event(&mut received, "b begins").await;
    let held = lease(&cluster).await;
    assert_eq!(held.str(&["spec", "holderIdentity"]), Some("b"));
    assert_eq!(held.i64(&["spec", "leaseTransitions"]), Some(1));
    b.end().await;
    assert_eq!(lease(&cluster).await.str(&["spec", "holderIdentity"]), Some(""));
}

#[tokio::test]
async fn leader_without_lease_stops_and_expired_holder_is_replaced() {
    let cluster = TestCluster::bare().await;
    let (events, mut received) = unbounded_channel();
    let a = Candidate::start(&cluster, "a", QUICK, &events);
    expect_event(&mut received, "a begins").await;
    let taken = Patch::Merge(json!({"spec": {"holderIdentity": "x", "leaseDurationSeconds": 1}}));
    cluster.cluster().patch(&builtin::LEASE, Some("default"), "work", &taken).await.unwrap();
    expect_event(&mut received, "a ends").await;
    expect_event(&mut received, "a waits for x").await;
    // The other candidate sends nothing.
    expect_event(&mut received, "a begins").await;
    a.end().await;
}

#[tokio::test]
async fn restarted_leader_reacquires_its_lease_at_once() {
    let cluster = TestCluster::bare().await;
    let (events, mut received) = unbounded_channel();
    let hour = LeaseTimings { lease: Duration::from_hours(1), ..QUICK };
    let a = Candidate::start(&cluster, "a", hour, &events);
    expect_event(&mut received, "a begins").await;
    a.task.abort();
    let again = Candidate::start(&cluster, "a", hour, &events);
    expect_event(&mut received, "a begins").await;
    again.end().await;
}
