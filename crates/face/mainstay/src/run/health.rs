//! Whether the process is well, and what it counts, for who probes and measures it.

use super::access::Access;
use crate::plain;
use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::{HeaderValue, Method, Request, Response, StatusCode};
use http_body_util::Full;
use mainstay_apiserver::serve::{self, Limits};
use mainstay_auth::authz::Attributes;
use mainstay_cause::Cause;
use mainstay_controller::Monitors;
use mainstay_exposition::Page;
use mainstay_port::Received;
use parking_lot::Mutex;
use rustls::ServerConfig;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use tower::service_fn;

/// What the port takes.
const LIMITS: plain::Limits =
    plain::Limits { connections: 64, streams: 16, stall: Duration::from_secs(30) };

/// Where the process stands.
#[derive(Clone)]
pub(crate) enum Standing {
    /// It is not known yet, or it begins to work.
    Starting,
    /// Another one works.
    Waiting,
    /// The controllers run.
    Working(Monitors),
}

/// Where the process stands, as it is told to others. Clones are the same.
#[derive(Clone)]
pub(crate) struct Health(Arc<Mutex<Standing>>);

impl Health {
    pub(crate) fn new() -> Self {
        Self(Arc::new(Mutex::new(Standing::Starting)))
    }

    pub(crate) fn set(&self, standing: Standing) {
        *self.0.lock() = standing;
    }

    /// The answer to somebody who may see everything.
    pub(crate) fn respond(&self, method: &Method, path: &str) -> Response<Full<Bytes>> {
        let (code, text) = self.answer(method, path);
        response(code, text)
    }

    /// The answer to somebody who may have to show a token.
    async fn guarded(&self, access: &Access, request: Request<Received>) -> Response<Full<Bytes>> {
        let (parts, _) = request.into_parts();
        let path = parts.uri.path();
        if path == "/metrics" {
            let allowed = async {
                let identity = access.bearer(&parts.headers).await?;
                access.allow(&Attributes::path(&identity, "get", path)).await
            };
            if let Err(status) = allowed.await {
                let code = StatusCode::from_u16(status.code);
                return response(code.unwrap_or(StatusCode::FORBIDDEN), format!("{status}\n"));
            }
        }
        self.respond(&parts.method, path)
    }

    fn answer(&self, method: &Method, path: &str) -> (StatusCode, String) {
        let standing = self.0.lock().clone();
        if !matches!(*method, Method::GET | Method::HEAD) {
            return (StatusCode::METHOD_NOT_ALLOWED, "only GET is answered\n".to_owned());
        }
        match path {
            "/healthz" | "/livez" => match unhealthy(&standing) {
                Some(cause) => (StatusCode::INTERNAL_SERVER_ERROR, format!("{cause}\n")),
                None => (StatusCode::OK, "ok".to_owned()),
            },
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

fn response(code: StatusCode, text: String) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(Bytes::from(text)));
    *response.status_mut() = code;
    let plain = HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8");
    response.headers_mut().insert(CONTENT_TYPE, plain);
    response
}

fn page(standing: &Standing) -> String {
    let mut page = Page::default();
    let works = u8::from(matches!(standing, Standing::Working(_)));
    page.head(
        "leader_election_master_status",
        "gauge",
        "Whether this process works (1), or waits for another one to end (0).",
    );
    page.line("leader_election_master_status", &[("name", crate::layout::LEASE)], works);
    if let Standing::Working(monitors) = standing {
        monitors.write_metrics(&mut page);
    }
    page.text()
}

/// Why the process should be restarted.
fn unhealthy(standing: &Standing) -> Option<Cause> {
    match standing {
        Standing::Starting | Standing::Waiting => None,
        Standing::Working(monitors) => monitors.check_health().err(),
    }
}

/// Answers until `stop`: without TLS to anybody, or with these settings, and then counts to those who
/// may see them.
pub(super) async fn serve(
    listener: TcpListener,
    health: Health,
    guarded: Option<(Arc<ServerConfig>, Arc<Access>)>,
    stop: CancellationToken,
) {
    let Some((settings, access)) = guarded else {
        let answer = move |request: Request<Received>| {
            std::future::ready(health.respond(request.method(), request.uri().path()))
        };
        plain::serve(listener, LIMITS, stop, answer).await;
        return;
    };
    let limits = Limits { connections: LIMITS.connections, ..Limits::default() };
    let service = service_fn(move |request: Request<Received>| {
        let (health, access) = (health.clone(), Arc::clone(&access));
        async move { Ok::<_, Infallible>(health.guarded(&access, request).await) }
    });
    serve::serve(listener, settings, limits, stop, service).await;
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
        health.set(Standing::Working(Monitors::default()));
        let text = get("/metrics").1;
        assert!(text.contains("leader_election_master_status{name=\"mainstay\"} 1"), "{text}");
        assert_eq!(get("/").0, StatusCode::NOT_FOUND);
        assert_eq!(health.answer(&Method::POST, "/metrics").0, StatusCode::METHOD_NOT_ALLOWED);
    }
}
