//! Leader election: which candidate holds the Lease, and for how long.

use bytes::Bytes;
use http::{Method, Request, Response};
use http_body_util::{BodyExt, Full};
use kube::client::Body;
use mainstay_client::{Cluster, Election, Error, LeaseTerm, LeaseTimings};
use mainstay_clock::Clock;
use mainstay_object::{NamespacedName, Object, builtin};
use parking_lot::Mutex;
use serde_json::{Value, json};
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

const TERMS: LeaseTimings = LeaseTimings {
    lease: Duration::from_secs(15),
    renew: Duration::from_secs(10),
    retry: Duration::from_secs(2),
};

/// A server with one Lease, which accepts every other write.
#[derive(Default)]
struct Server {
    lease: Mutex<Option<Value>>,
    revision: Mutex<u64>,
    /// The delay of responses about the Lease.
    delay: Mutex<Duration>,
    /// Whether the server is unreachable.
    unreachable: Mutex<bool>,
    /// All other writes.
    writes: Mutex<Vec<String>>,
}

impl Server {
    fn cluster(self: &Arc<Self>) -> Cluster {
        let server = Arc::clone(self);
        let service = tower::service_fn(move |request: Request<Body>| {
            let server = Arc::clone(&server);
            async move {
                if *server.unreachable.lock() {
                    return Err(std::io::Error::from(std::io::ErrorKind::ConnectionRefused));
                }
                Ok(server.answer(request).await)
            }
        });
        Cluster::new(kube::Client::new(service, "default"))
    }

    async fn answer(&self, request: Request<Body>) -> Response<Full<Bytes>> {
        let (head, body) = request.into_parts();
        let body = body.collect().await.unwrap().to_bytes();
        let body: Value = serde_json::from_slice(&body).unwrap_or_else(|_| json!({}));
        let answer = |code: u16, value: &Value| {
            let body = Full::new(Bytes::from(value.to_string()));
            Response::builder().status(code).body(body).unwrap()
        };
        if !head.uri.path().contains("/leases") {
            self.writes.lock().push(format!("{} {}", head.method, head.uri.path()));
            return answer(200, &body);
        }
        let answered = {
            let mut lease = self.lease.lock();
            let is_old = |live: &Value| {
                live["metadata"]["resourceVersion"] != body["metadata"]["resourceVersion"]
            };
            let refused = |code: u16, reason: &str| {
                answer(code, &json!({"kind": "Status", "reason": reason, "code": code}))
            };
            match (&head.method, lease.clone()) {
                (&Method::GET, None) => refused(404, "NotFound"),
                (&Method::GET, Some(live)) => answer(200, &live),
                (&Method::PATCH, Some(live)) if is_old(&live) => refused(409, "Conflict"),
                _ => {
                    let mut revision = self.revision.lock();
                    *revision += 1;
                    let mut new = body;
                    new["metadata"]["resourceVersion"] = revision.to_string().into();
                    *lease = Some(new.clone());
                    answer(200, &new)
                }
            }
        };
        let delay = *self.delay.lock();
        tokio::time::sleep(delay).await;
        answered
    }
}

fn election(server: &Arc<Server>, clock: Clock) -> Election {
    let key = NamespacedName::new("default", "work");
    Election::new(server.cluster(), key, "a".to_owned(), clock).with_terms(TERMS)
}

#[tokio::test(start_paused = true)]
async fn nothing_is_written_after_a_term_even_before_its_cancellation() {
    let server = Arc::new(Server::default());
    let stop = CancellationToken::new();
    let work = |term: LeaseTerm| {
        let (server, stop) = (&server, &stop);
        async move {
            let cluster = term.fenced(&server.cluster());
            let object = Object::new(&builtin::NAMESPACE.gvk(), "a");
            cluster.create(&builtin::NAMESPACE, &object).await.unwrap();
            assert!(!term.is_over());
            // Renewals time out.
            *server.delay.lock() = Duration::from_hours(1);
            tokio::time::advance(TERMS.renew).await;
            assert!(term.is_over());
            let name = Some("default");
            let refused = [
                cluster.create(&builtin::NAMESPACE, &object).await.err(),
                cluster.update(&builtin::NAMESPACE, &object).await.err(),
                cluster
                    .clone()
                    .with_user_agent("b")
                    .ensure_deleted(
                        &builtin::POD,
                        name,
                        "a",
                        &mainstay_client::DeleteOptions::default(),
                    )
                    .await
                    .err(),
            ];
            for error in refused {
                assert!(matches!(error, Some(Error::Over)), "{error:?}");
            }
            // Reads are always allowed.
            cluster.find(&builtin::NAMESPACE, None, "a").await.unwrap();
            stop.cancel();
            Ok::<_, Infallible>(())
        }
    };
    let Ok(()) = election(&server, Clock::system()).lead(&stop, |_| (), work).await;
    let writes = server.writes.lock();
    assert_eq!(*writes, ["POST /api/v1/namespaces", "GET /api/v1/namespaces/a"]);
}

#[tokio::test(start_paused = true)]
async fn a_term_ends_during_a_suspend_and_ignores_wall_clock_steps() {
    let server = Arc::new(Server::default());
    let (clock, hands) = Clock::adjustable("2026-01-02T03:04:05Z".parse().unwrap());
    let stop = CancellationToken::new();
    let work = |term: LeaseTerm| {
        let (server, stop) = (&server, &stop);
        async move {
            let cluster = term.fenced(&server.cluster());
            let object = Object::new(&builtin::NAMESPACE.gvk(), "a");
            for hours in [5, -10] {
                hands.step(jiff::SignedDuration::from_hours(hours));
                assert!(!term.is_over(), "others count by their own clocks");
            }
            cluster.create(&builtin::NAMESPACE, &object).await.unwrap();
            // No timer has advanced when the machine wakes up, and another candidate took over long
            // ago.
            hands.suspend(TERMS.renew);
            assert!(term.is_over());
            let refused = cluster.create(&builtin::NAMESPACE, &object).await;
            assert!(matches!(refused, Err(Error::Over)), "{refused:?}");
            stop.cancel();
            Ok::<_, Infallible>(())
        }
    };
    let Ok(()) = election(&server, clock).lead(&stop, |_| (), work).await;
    assert_eq!(*server.writes.lock(), ["POST /api/v1/namespaces"]);
}

#[tokio::test(start_paused = true)]
async fn a_term_counts_from_before_the_request() {
    let server = Arc::new(Server::default());
    let clock = Clock::system();
    let stop = CancellationToken::new();
    let work = |term: LeaseTerm| {
        let (server, stop) = (&server, &stop);
        async move {
            // Other candidates see each renewal this much earlier than the holder gets the
            // response.
            *server.delay.lock() = Duration::from_secs(3);
            while server.revision.lock().to_owned() < 2 {
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
            let seen = clock.elapsed();
            *server.delay.lock() = Duration::from_hours(1);
            term.cancelled().await;
            assert!(clock.elapsed() < seen + TERMS.renew, "{seen:?}, {:?}", clock.elapsed());
            stop.cancel();
            Ok::<_, Infallible>(())
        }
    };
    let Ok(()) = election(&server, clock).lead(&stop, |_| (), work).await;
}

#[tokio::test(start_paused = true)]
async fn refused_renewals_end_a_term_like_unanswered_ones() {
    let server = Arc::new(Server::default());
    let clock = Clock::system();
    let stop = CancellationToken::new();
    let work = |term: LeaseTerm| {
        let (server, stop) = (&server, &stop);
        async move {
            let held = clock.elapsed();
            *server.unreachable.lock() = true;
            let ended = tokio::time::timeout(TERMS.lease, term.cancelled()).await;
            let after = clock.elapsed().saturating_sub(held);
            assert!(ended.is_ok() && after >= TERMS.renew, "{after:?}");
            assert!(after < TERMS.renew + Duration::from_millis(100), "{after:?}");
            stop.cancel();
            Ok::<_, Infallible>(())
        }
    };
    let Ok(()) = election(&server, clock).lead(&stop, |_| (), work).await;
}

#[tokio::test(start_paused = true)]
async fn work_that_fails_after_its_term_is_restarted_in_the_next_term() {
    let server = Arc::new(Server::default());
    let stop = CancellationToken::new();
    let terms = Mutex::new(0);
    let work = |term: LeaseTerm| {
        let (server, stop, terms) = (&server, &stop, &terms);
        async move {
            *terms.lock() += 1;
            let first = *terms.lock() == 1;
            if first {
                *server.delay.lock() = Duration::from_hours(1);
                // The process was stopped, and its work was not cancelled yet.
                tokio::time::advance(TERMS.renew).await;
                *server.delay.lock() = Duration::ZERO;
            }
            let object = Object::new(&builtin::NAMESPACE.gvk(), "a");
            let created = term.fenced(&server.cluster()).create(&builtin::NAMESPACE, &object).await;
            if !first {
                stop.cancel();
            }
            created.map(drop)
        }
    };
    election(&server, Clock::system()).lead(&stop, |_| (), work).await.unwrap();
    assert_eq!(*terms.lock(), 2);
    assert_eq!(*server.writes.lock(), ["POST /api/v1/namespaces"]);
}

#[tokio::test(start_paused = true)]
async fn work_that_fails_within_its_term_ends_the_election() {
    let server = Arc::new(Server::default());
    let stop = CancellationToken::new();
    let work = |_: LeaseTerm| async { Err::<(), _>("no") };
    let ended = election(&server, Clock::system()).lead(&stop, |_| (), work).await;
    assert_eq!(ended, Err("no"));
    // Other candidates need not wait.
    assert_eq!(server.lease.lock().as_ref().unwrap()["spec"]["holderIdentity"], "");
}

#[tokio::test(start_paused = true)]
async fn a_late_lease_is_requested_again_before_work_begins() {
    let server = Arc::new(Server::default());
    let clock = Clock::system();
    let stop = CancellationToken::new();
    *server.delay.lock() = Duration::from_secs(25);
    let back = async {
        tokio::time::sleep(Duration::from_secs(25)).await;
        *server.delay.lock() = Duration::ZERO;
    };
    let work = |term: LeaseTerm| {
        let stop = &stop;
        async move {
            assert!(!term.is_over());
            stop.cancel();
            Ok::<_, Infallible>(())
        }
    };
    let election = election(&server, clock);
    let (Ok(()), ()) = tokio::join!(election.lead(&stop, |_| (), work), back);
}
