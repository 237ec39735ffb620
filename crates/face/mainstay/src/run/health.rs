//! Whether the process is well, and what it counts, for who probes and measures it.

use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::{HeaderValue, Method, Request, Response, StatusCode};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use mainstay_exposition::Page;
use mainstay_port::Guard;
use parking_lot::Mutex;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::CancellationToken;

/// Connections at one time; more wait.
const CONNECTIONS: usize = 64;
/// How long the head of a request may take.
const HEAD_TIME: Duration = Duration::from_secs(10);
/// How long nothing may come from a client, or be taken by it.
const IDLE: Duration = Duration::from_secs(90);
const STALL: Duration = Duration::from_secs(30);
/// How long answers under way may take at the end.
const GRACE: Duration = Duration::from_millis(300);

/// What writes the counts of the controllers.
pub(super) type Measure = Arc<dyn Fn(&mut Page) + Send + Sync>;

/// Where the process stands.
#[derive(Clone)]
pub(super) enum Standing {
    /// It is not known yet, or it begins to work.
    Starting,
    /// Another one works.
    Waiting,
    /// The controllers run.
    Working(Measure),
}

/// Where the process stands, as it is told to others. Clones are the same.
#[derive(Clone)]
pub(super) struct Health(Arc<Mutex<Standing>>);

impl Health {
    pub(super) fn new() -> Self {
        Self(Arc::new(Mutex::new(Standing::Starting)))
    }

    pub(super) fn set(&self, standing: Standing) {
        *self.0.lock() = standing;
    }

    fn answer(&self, method: &Method, path: &str) -> (StatusCode, String) {
        let standing = self.0.lock().clone();
        if !matches!(*method, Method::GET | Method::HEAD) {
            return (StatusCode::METHOD_NOT_ALLOWED, "only GET is answered\n".to_owned());
        }
        match path {
            "/healthz" | "/livez" => (StatusCode::OK, "ok".to_owned()),
            "/readyz" => match standing {
                Standing::Starting => (StatusCode::SERVICE_UNAVAILABLE, "starting\n".to_owned()),
                // Who waits is ready to take over.
                Standing::Waiting | Standing::Working(_) => (StatusCode::OK, "ok".to_owned()),
            },
            "/metrics" => (StatusCode::OK, page(&standing)),
            _ => {
                let known = "there are /healthz, /readyz and /metrics\n";
                (StatusCode::NOT_FOUND, known.to_owned())
            }
        }
    }
}

fn page(standing: &Standing) -> String {
    let mut page = Page::default();
    let works = u8::from(matches!(standing, Standing::Working(_)));
    page.head(
        "leader_election_master_status",
        "gauge",
        "Whether this process works (1), or waits for another one to end (0).",
    );
    page.line("leader_election_master_status", &[("name", super::NAME)], works);
    if let Standing::Working(measure) = standing {
        measure(&mut page);
    }
    page.text()
}

/// Answers until `stop`.
pub(super) async fn serve(listener: TcpListener, health: Health, stop: CancellationToken) {
    let until = stop.clone();
    let serve = move |stream, _| connection(stream, health.clone(), stop.clone());
    mainstay_port::connections(listener, CONNECTIONS, GRACE, &until, serve).await;
}

async fn connection(stream: TcpStream, health: Health, stop: CancellationToken) {
    let service = service_fn(move |request: Request<Incoming>| {
        let (code, text) = health.answer(request.method(), request.uri().path());
        let mut response = Response::new(Full::new(Bytes::from(text)));
        *response.status_mut() = code;
        let plain = HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8");
        response.headers_mut().insert(CONTENT_TYPE, plain);
        std::future::ready(Ok::<_, Infallible>(response))
    });
    let mut builder = http1::Builder::new();
    builder.timer(TokioTimer::new()).header_read_timeout(HEAD_TIME);
    let io = TokioIo::new(Guard::new(stream, IDLE, STALL));
    let mut connection = Box::pin(builder.serve_connection(io, service));
    let result = tokio::select! {
        result = connection.as_mut() => result,
        () = stop.cancelled() => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = result {
        tracing::debug!(%error, "a connection for health and metrics ended");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_waits_is_ready_and_who_starts_is_not() {
        let health = Health::new();
        let get = |path: &str| health.answer(&Method::GET, path);
        assert_eq!(get("/healthz").0, StatusCode::OK);
        assert_eq!(get("/readyz").0, StatusCode::SERVICE_UNAVAILABLE);
        health.set(Standing::Waiting);
        assert_eq!(get("/readyz").0, StatusCode::OK);
        assert!(get("/metrics").1.contains("leader_election_master_status{name=\"mainstay\"} 0"));
        health.set(Standing::Working(Arc::new(|page: &mut Page| {
            page.one("csv_count", "gauge", "Versions.", 3);
        })));
        let text = get("/metrics").1;
        assert!(text.contains("leader_election_master_status{name=\"mainstay\"} 1"), "{text}");
        assert!(text.contains("csv_count 3"), "{text}");
        assert_eq!(get("/").0, StatusCode::NOT_FOUND);
        assert_eq!(health.answer(&Method::POST, "/metrics").0, StatusCode::METHOD_NOT_ALLOWED);
    }
}
