//! One of several works, the others wait.

use mainstay_client::{Election, Patch, Term, Terms};
use mainstay_clock::Clock;
use mainstay_object::{NamespacedName, Object, known};
use mainstay_testkit::TestCluster;
use serde_json::json;
use std::convert::Infallible;
use std::time::Duration;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

const QUICK: Terms = Terms {
    lease: Duration::from_secs(1),
    renew: Duration::from_millis(600),
    retry: Duration::from_millis(30),
};

/// A candidate that tells what it does.
struct Candidate {
    task: JoinHandle<()>,
    stop: CancellationToken,
}

impl Candidate {
    fn start(
        cluster: &TestCluster,
        name: &'static str,
        terms: Terms,
        tell: &UnboundedSender<String>,
    ) -> Self {
        let key = NamespacedName::new("default", "work");
        let cluster = cluster.cluster().clone();
        let election = Election::new(cluster, key, name.to_owned(), Clock::system());
        let election = election.with_terms(terms);
        let (stop, tell) = (CancellationToken::new(), tell.clone());
        let until = stop.clone();
        let task = tokio::spawn(async move {
            let waits = |holder: &str| tell.send(format!("{name} waits for {holder}")).unwrap();
            let work = |term: Term| {
                let tell = &tell;
                async move {
                    tell.send(format!("{name} begins")).unwrap();
                    term.cancelled().await;
                    // Whoever is not heard any more has nobody to tell.
                    let _ = tell.send(format!("{name} ends"));
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

async fn heard(told: &mut UnboundedReceiver<String>, words: &str) {
    assert_eq!(told.recv().await.unwrap(), words);
}

async fn lease(cluster: &TestCluster) -> Object {
    cluster.cluster().get(&known::LEASE, Some("default"), "work").await.unwrap()
}

#[tokio::test]
async fn the_next_one_takes_over_when_the_lease_is_given_back() {
    let cluster = TestCluster::bare().await;
    let (tell, mut told) = unbounded_channel();
    let a = Candidate::start(&cluster, "a", QUICK, &tell);
    heard(&mut told, "a begins").await;
    let b = Candidate::start(&cluster, "b", QUICK, &tell);
    heard(&mut told, "b waits for a").await;
    a.end().await;
    heard(&mut told, "a ends").await;
    heard(&mut told, "b begins").await;
    let held = lease(&cluster).await;
    assert_eq!(held.str(&["spec", "holderIdentity"]), Some("b"));
    assert_eq!(held.i64(&["spec", "leaseTransitions"]), Some(1));
    b.end().await;
    assert_eq!(lease(&cluster).await.str(&["spec", "holderIdentity"]), Some(""));
}

#[tokio::test]
async fn who_loses_the_lease_ends_and_a_silent_holder_is_given_up() {
    let cluster = TestCluster::bare().await;
    let (tell, mut told) = unbounded_channel();
    let a = Candidate::start(&cluster, "a", QUICK, &tell);
    heard(&mut told, "a begins").await;
    let taken = Patch::Merge(json!({"spec": {"holderIdentity": "x", "leaseDurationSeconds": 1}}));
    cluster.cluster().patch(&known::LEASE, Some("default"), "work", &taken).await.unwrap();
    heard(&mut told, "a ends").await;
    heard(&mut told, "a waits for x").await;
    // Nothing is heard of the other one.
    heard(&mut told, "a begins").await;
    a.end().await;
}

#[tokio::test]
async fn who_was_killed_and_comes_again_need_not_wait() {
    let cluster = TestCluster::bare().await;
    let (tell, mut told) = unbounded_channel();
    let hour = Terms { lease: Duration::from_hours(1), ..QUICK };
    let a = Candidate::start(&cluster, "a", hour, &tell);
    heard(&mut told, "a begins").await;
    a.task.abort();
    let again = Candidate::start(&cluster, "a", hour, &tell);
    heard(&mut told, "a begins").await;
    again.end().await;
}
