//! Health and metrics of this process: `/healthz`, `/readyz` and `/metrics`.
//!
//! `mainstay run` serves them on a listener (`run/probes.rs`), `mainstay up` on the pods that represent
//! its controllers (`controller_pods.rs`).

use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::{HeaderValue, Method, Response, StatusCode};
use http_body_util::Full;
use mainstay_cause::Cause;
use mainstay_controller::Monitors;
use mainstay_exposition::Page;
use parking_lot::Mutex;
use std::sync::Arc;

/// The state of the process.
#[derive(Clone)]
pub(crate) enum HealthState {
    /// The process starts, or prepares to lead.
    Starting,
    /// Another process holds the Lease.
    Waiting,
    /// The controllers of this process run.
    Working(Monitors),
}

/// The state of the process for probes. Clones share it.
#[derive(Clone)]
pub(crate) struct Health(Arc<Mutex<HealthState>>);

impl Health {
    pub(crate) fn new() -> Self {
        Self(Arc::new(Mutex::new(HealthState::Starting)))
    }

    pub(crate) fn set(&self, state: HealthState) {
        *self.0.lock() = state;
    }

    /// The response to a probe, or to a request for metrics.
    pub(crate) fn respond(&self, method: &Method, path: &str) -> Response<Full<Bytes>> {
        let (code, text) = self.status_and_text(method, path);
        response(code, text)
    }

    fn status_and_text(&self, method: &Method, path: &str) -> (StatusCode, String) {
        let state = self.0.lock().clone();
        if !matches!(*method, Method::GET | Method::HEAD) {
            return (StatusCode::METHOD_NOT_ALLOWED, "only GET is answered\n".to_owned());
        }
        match path {
            "/healthz" | "/livez" => match unhealthy(&state) {
                Some(cause) => (StatusCode::INTERNAL_SERVER_ERROR, format!("{cause}\n")),
                None => (StatusCode::OK, "ok".to_owned()),
            },
            "/readyz" => match state {
                HealthState::Starting => (StatusCode::SERVICE_UNAVAILABLE, "starting\n".to_owned()),
                // A waiting process is ready to take over.
                HealthState::Waiting | HealthState::Working(_) => (StatusCode::OK, "ok".to_owned()),
            },
            "/metrics" => (StatusCode::OK, page(&state)),
            _ => {
                let paths = "there are /healthz, /readyz and /metrics\n";
                (StatusCode::NOT_FOUND, paths.to_owned())
            }
        }
    }
}

/// A response with that text.
pub(crate) fn response(code: StatusCode, text: String) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(Bytes::from(text)));
    *response.status_mut() = code;
    let plain = HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8");
    response.headers_mut().insert(CONTENT_TYPE, plain);
    response
}

fn page(state: &HealthState) -> String {
    let mut page = Page::default();
    let works = u8::from(matches!(state, HealthState::Working(_)));
    page.head(
        "leader_election_master_status",
        "gauge",
        "Whether this process works (1), or waits for another one to end (0).",
    );
    page.line("leader_election_master_status", &[("name", crate::layout::LEASE)], works);
    if let HealthState::Working(monitors) = state {
        monitors.write_metrics(&mut page);
    }
    page.text()
}

/// The reason to restart the process, if there is one.
fn unhealthy(state: &HealthState) -> Option<Cause> {
    match state {
        HealthState::Starting | HealthState::Waiting => None,
        HealthState::Working(monitors) => monitors.check_health().err(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::future::BoxFuture;
    use mainstay_controller::{ControllerMonitor, Monitor, Subsystem, SubsystemInfo};

    /// A subsystem one of whose controllers has ended.
    struct BrokenSubsystem;

    impl Subsystem for BrokenSubsystem {
        fn info(&self) -> &'static SubsystemInfo {
            &mainstay_classic::SUBSYSTEM
        }

        fn synced(&self) -> BoxFuture<'_, ()> {
            Box::pin(std::future::ready(()))
        }

        fn monitor(&self) -> Arc<dyn Monitor> {
            Arc::new(Self)
        }

        fn shutdown(self: Box<Self>) -> BoxFuture<'static, ()> {
            Box::pin(std::future::ready(()))
        }
    }

    impl Monitor for BrokenSubsystem {
        fn write_metrics(&self, _: &mut Page) {}

        fn controllers(&self) -> &[ControllerMonitor] {
            &[]
        }

        fn problems(&self) -> Vec<String> {
            vec!["the controller csv has ended".to_owned()]
        }
    }

    #[test]
    fn waiting_process_is_ready_and_a_starting_one_is_not() {
        let health = Health::new();
        let get = |path: &str| health.status_and_text(&Method::GET, path);
        assert_eq!(get("/healthz").0, StatusCode::OK);
        assert_eq!(get("/readyz").0, StatusCode::SERVICE_UNAVAILABLE);
        health.set(HealthState::Waiting);
        assert_eq!(get("/readyz").0, StatusCode::OK);
        assert!(get("/metrics").1.contains("leader_election_master_status{name=\"mainstay\"} 0"));
        health.set(HealthState::Working(Monitors::default()));
        let text = get("/metrics").1;
        assert!(text.contains("leader_election_master_status{name=\"mainstay\"} 1"), "{text}");
        assert_eq!(get("/healthz").0, StatusCode::OK);
        health.set(HealthState::Working(Monitors::of([&BrokenSubsystem as &dyn Subsystem])));
        let (code, text) = get("/healthz");
        assert_eq!(code, StatusCode::INTERNAL_SERVER_ERROR);
        assert!(text.contains("classic: the controller csv has ended"), "{text}");
        assert_eq!(get("/").0, StatusCode::NOT_FOUND);
        assert_eq!(
            health.status_and_text(&Method::POST, "/metrics").0,
            StatusCode::METHOD_NOT_ALLOWED
        );
    }
}
