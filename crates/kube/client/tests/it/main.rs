//! Caches against a scripted server: it refuses, ends streams, forgets history.

#![expect(clippy::unwrap_used, reason = "the lint knows test functions only, not their helpers")]

mod lease;

use bytes::Bytes;
use futures::stream;
use http::{Request, Response};
use http_body::Frame;
use http_body_util::BodyExt;
use http_body_util::StreamBody;
use http_body_util::combinators::UnsyncBoxBody;
use mainstay_client::{Cache, Cluster, Selection};
use mainstay_object::builtin;
use parking_lot::Mutex;
use serde_json::{Value, json};
use std::collections::VecDeque;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// A scripted response.
enum ScriptedResponse {
    /// A list at a revision.
    List(u64, Vec<Value>),
    /// A watch with these events, which then ends or stays open and silent.
    Watch(Vec<Value>, bool),
    /// A refusal.
    Refuse(u16, &'static str),
}

type Body = UnsyncBoxBody<Bytes, Infallible>;

#[derive(Clone, Default)]
struct Server {
    responses: Arc<Mutex<VecDeque<ScriptedResponse>>>,
    requests: Arc<Mutex<Vec<String>>>,
}

impl Server {
    fn new(responses: impl IntoIterator<Item = ScriptedResponse>) -> Self {
        let server = Self::default();
        server.responses.lock().extend(responses);
        server
    }

    fn cluster(&self) -> Cluster {
        let server = self.clone();
        let service = tower::service_fn(move |request: Request<kube::client::Body>| {
            let answer = server.answer(&request.uri().to_string());
            async move { Ok::<_, Infallible>(answer) }
        });
        Cluster::new(kube::Client::new(service, "default"))
    }

    fn answer(&self, uri: &str) -> Response<Body> {
        let query = uri.split_once('?').map_or("", |(_, query)| query);
        let find = |key: &str| {
            query.split('&').find_map(|pair| pair.strip_prefix(key)).unwrap_or_default()
        };
        let verb = if query.contains("watch=true") { "watch" } else { "list" };
        self.requests
            .lock()
            .push(format!("{verb} {}", find("resourceVersion=")).trim_end().to_owned());
        let chunk = |value: &Value| Ok(Frame::data(Bytes::from(format!("{value}\n"))));
        let (code, frames, open) = match self.responses.lock().pop_front() {
            Some(ScriptedResponse::List(revision, items)) => {
                let list =
                    json!({"metadata": {"resourceVersion": revision.to_string()}, "items": items});
                (200, vec![chunk(&list)], false)
            }
            Some(ScriptedResponse::Watch(events, open)) => {
                (200, events.iter().map(chunk).collect(), open)
            }
            Some(ScriptedResponse::Refuse(code, reason)) => {
                let status =
                    json!({"kind": "Status", "code": code, "reason": reason, "message": reason});
                (code, vec![chunk(&status)], false)
            }
            // The script is over: silence.
            None => (200, Vec::new(), true),
        };
        let frames = stream::iter(frames);
        let body = if open {
            StreamBody::new(stream::StreamExt::chain(frames, stream::pending())).boxed_unsync()
        } else {
            StreamBody::new(frames).boxed_unsync()
        };
        Response::builder().status(code).body(body).unwrap()
    }

    fn requests(&self) -> Vec<String> {
        self.requests.lock().clone()
    }
}

fn object(name: &str, revision: u64, value: &str) -> Value {
    json!({
        "metadata": {"name": name, "namespace": "n", "resourceVersion": revision.to_string()},
        "data": {"v": value},
    })
}

fn event(kind: &str, object: &Value) -> Value {
    json!({"type": kind, "object": object})
}

/// A cache of the values, and every call of its subscriber.
fn start(server: &Server) -> (Cache<String>, Arc<Mutex<Vec<String>>>) {
    let heard: Arc<Mutex<Vec<String>>> = Arc::default();
    let notes = Arc::clone(&heard);
    let cache = Cache::builder(Selection::all(builtin::CONFIG_MAP), |object| {
        object.str(&["data", "v"]).map(ToOwned::to_owned)
    })
    .subscribe(move |change| {
        let text = |value: Option<&Arc<String>>| value.map_or("-", |text| text.as_str()).to_owned();
        let note = format!("{} {}>{}", change.key.name, text(change.before), text(change.after));
        notes.lock().push(note);
    })
    .start(&server.cluster(), CancellationToken::new());
    (cache, heard)
}

#[tokio::test(start_paused = true)]
async fn an_ended_watch_continues_from_its_last_revision() {
    let server = Server::new([
        ScriptedResponse::List(5, vec![object("a", 3, "1")]),
        ScriptedResponse::Watch(vec![event("MODIFIED", &object("a", 6, "2"))], false),
        ScriptedResponse::Watch(
            vec![
                event("ADDED", &object("b", 7, "1")),
                event("BOOKMARK", &json!({"metadata": {"resourceVersion": "9"}})),
            ],
            false,
        ),
        ScriptedResponse::Watch(vec![event("DELETED", &object("a", 10, "2"))], true),
    ]);
    let (cache, heard) = start(&server);
    cache.wait_for_revision("10").await;
    assert_eq!(server.requests(), ["list", "watch 5", "watch 6", "watch 9"]);
    assert_eq!(*heard.lock(), ["a ->1", "a 1>2", "b ->1", "a 2>-"]);
}

#[tokio::test(start_paused = true)]
async fn an_expired_watch_relists_and_reports_only_differences() {
    let server = Server::new([
        ScriptedResponse::List(
            5,
            vec![object("a", 3, "1"), object("b", 4, "1"), object("c", 4, "1")],
        ),
        ScriptedResponse::Watch(
            vec![event("ERROR", &json!({"kind": "Status", "code": 410, "reason": "Expired"}))],
            false,
        ),
        ScriptedResponse::List(
            20,
            vec![object("a", 3, "1"), object("b", 15, "2"), object("d", 16, "1")],
        ),
        ScriptedResponse::Refuse(410, "Expired"),
        ScriptedResponse::List(30, vec![object("d", 16, "1")]),
    ]);
    let (cache, heard) = start(&server);
    cache.wait_for_revision("30").await;
    assert_eq!(server.requests()[..4], ["list", "watch 5", "list", "watch 20"]);
    assert_eq!(
        *heard.lock(),
        ["a ->1", "b ->1", "c ->1", "c 1>-", "b 1>2", "d ->1", "a 1>-", "b 2>-"]
    );
    assert_eq!(cache.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn an_unavailable_server_is_retried_with_backoff_for_ever() {
    let refusals = || (0..12).map(|_| ScriptedResponse::Refuse(503, "ServiceUnavailable"));
    let server = Server::new(refusals().chain([ScriptedResponse::List(1, Vec::new())]));
    let started = tokio::time::timeout(Duration::from_hours(1), async {
        let (cache, _) = start(&server);
        let requests = Arc::clone(&server.requests);
        tokio::time::sleep(Duration::from_secs(10)).await;
        // 0.1, 0.2, … 6.4 s: seven attempts in the first ten seconds.
        assert_eq!(requests.lock().len(), 7);
        assert!(!cache.is_synced());
        cache.synced().await;
        assert_eq!(requests.lock().iter().filter(|verb| *verb == "list").count(), 13);
    });
    started.await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn pause_after_refusals_ends_once_the_reason_may_be_gone() {
    let refusals = (0..7).map(|_| ScriptedResponse::Refuse(403, "Forbidden"));
    let server = Server::new(refusals.chain([ScriptedResponse::List(1, Vec::new())]));
    let (cache, _) = start(&server);
    tokio::time::sleep(Duration::from_secs(10)).await;
    // The eighth attempt would be after 12.7 s.
    assert_eq!(server.requests().len(), 7);
    for _ in 0..100 {
        cache.retry_now();
    }
    tokio::time::timeout(Duration::from_millis(10), cache.synced()).await.unwrap();
    assert_eq!(server.requests().iter().filter(|verb| *verb == "list").count(), 8);
}

#[tokio::test(start_paused = true)]
async fn calls_to_retry_now_make_at_most_one_attempt_a_second() {
    let server = Server::new((0..100).map(|_| ScriptedResponse::Refuse(403, "Forbidden")));
    let (cache, _) = start(&server);
    for _ in 0..100 {
        cache.retry_now();
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    // 0.1, 0.2, 0.4 and 0.8 s, then one each second.
    let attempts = server.requests().len();
    assert!((11..=13).contains(&attempts), "{attempts}");
}
