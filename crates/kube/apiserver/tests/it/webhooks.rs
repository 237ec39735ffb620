//! Webhooks that misbehave, and in-process backends.

use crate::harness::Api;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use futures::future::BoxFuture;
use http::{Method, Request, Response};
use mainstay_apiserver::{ApiService, audit};
use mainstay_auth::Identity;
use mainstay_outbound::{BackendError, InProcessBackend};
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tower::ServiceExt;

const MAPS: &str = "/api/v1/namespaces/default/configmaps";
const CONFIGURATIONS: &str = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations";

fn config_map(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"k": "v"}})
}

/// A configuration that calls the Service `default/hook` for new ConfigMaps.
fn configuration() -> Value {
    json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "MutatingWebhookConfiguration",
        "metadata": {"name": "all"},
        "webhooks": [{
            "name": "one.x.io", "sideEffects": "None", "admissionReviewVersions": ["v1"],
            "timeoutSeconds": 1,
            "clientConfig": {"service": {"namespace": "default", "name": "hook"}},
            "rules": [{"operations": ["CREATE"], "apiGroups": [""], "apiVersions": ["v1"],
                "resources": ["configmaps"]}],
        }],
    })
}

/// Responds to a review with the result of a function.
struct RespondWith<F>(F);

impl<F: Fn(&Value) -> Bytes + Send + Sync + 'static> InProcessBackend for RespondWith<F> {
    fn call(
        &self,
        request: Request<Bytes>,
    ) -> BoxFuture<'_, Result<Response<Bytes>, BackendError>> {
        let review: Value = serde_json::from_slice(request.body()).unwrap();
        let body = (self.0)(&review);
        Box::pin(async move { Ok(Response::new(body)) })
    }
}

fn allowed(review: &Value) -> Value {
    json!({"apiVersion": review["apiVersion"], "kind": "AdmissionReview",
        "response": {"uid": review["request"]["uid"], "allowed": true}})
}

async fn api(backend: impl InProcessBackend) -> Api {
    let api = Api::new().await;
    api.server.put_native_backend("default", "hook", Arc::new(backend));
    api.post(CONFIGURATIONS, &configuration()).await.ok();
    api
}

#[tokio::test]
async fn an_in_process_webhook_is_called_without_a_socket() {
    let calls = Arc::new(AtomicUsize::new(0));
    let count = calls.clone();
    let api = api(RespondWith(move |review: &Value| {
        count.fetch_add(1, Ordering::Relaxed);
        assert_eq!(review["request"]["object"]["data"]["k"], "v");
        allowed(review).to_string().into()
    }))
    .await;
    api.post(MAPS, &config_map("a")).await.ok();
    assert_eq!(calls.load(Ordering::Relaxed), 1);
}

#[tokio::test]
async fn a_too_large_webhook_response_is_refused() {
    let huge = Bytes::from(vec![b' '; 100 << 20]);
    let api = api(RespondWith(move |_: &Value| huge.clone())).await;
    let (code, message) = api.post(MAPS, &config_map("a")).await.refused();
    assert_eq!(code, 500);
    assert!(message.ends_with("the answer has more than 16777216 bytes"), "{message}");
}

#[tokio::test]
async fn an_unserved_webhook_fails_with_the_text_of_kube_apiserver() {
    let api = Api::new().await;
    api.post(CONFIGURATIONS, &configuration()).await.ok();
    let (code, message) = api.post(MAPS, &config_map("a")).await.refused();
    assert_eq!(code, 500);
    assert_eq!(
        message,
        "Internal error occurred: failed calling webhook \"one.x.io\": failed to call webhook: Post \"https://hook.default.svc:443/?timeout=1s\": service \"hook\" not found"
    );
}

/// Creates the reviewed object again under another name.
struct HookState {
    service: std::sync::OnceLock<ApiService>,
    deep: AtomicUsize,
}

struct RecursiveHook(Arc<HookState>);

impl InProcessBackend for RecursiveHook {
    fn call(
        &self,
        request: Request<Bytes>,
    ) -> BoxFuture<'_, Result<Response<Bytes>, BackendError>> {
        let review: Value = serde_json::from_slice(request.body()).unwrap();
        Box::pin(async move {
            let deep = self.0.deep.fetch_add(1, Ordering::Relaxed);
            let body = config_map(&format!("deep-{deep}")).to_string();
            let request = Request::post(MAPS).header("content-type", "application/json");
            let request = request.body(http_body_util::Full::new(Bytes::from(body))).unwrap();
            if deep < 20 {
                let service = self.0.service.get().unwrap().clone();
                // In a task, like a remote server: not on the stack of the caller.
                drop(tokio::spawn(service.oneshot(request)).await);
            } else {
                std::future::pending::<()>().await;
            }
            Ok(Response::new(allowed(&review).to_string().into()))
        })
    }
}

#[tokio::test(start_paused = true)]
async fn a_recursive_webhook_ends_with_its_timeout() {
    let loops =
        Arc::new(HookState { service: std::sync::OnceLock::new(), deep: AtomicUsize::new(0) });
    let api = api(RecursiveHook(loops.clone())).await;
    assert!(loops.service.set(api.server.service(Identity::admin())).is_ok());
    let (code, message) = api.post(MAPS, &config_map("a")).await.refused();
    assert_eq!(code, 500);
    assert!(message.ends_with("context deadline exceeded"), "{message}");
}

#[tokio::test]
async fn webhooks_of_simulated_pods_allow_everything_unless_annotated_otherwise() {
    let api = Api::new().await;
    let service = json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "hook"},
        "spec": {"selector": {"app": "hook"}, "ports": [{"port": 443}]}});
    api.post("/api/v1/namespaces/default/services", &service).await.ok();
    api.post(CONFIGURATIONS, &configuration()).await.ok();
    let (_, message) = api.post(MAPS, &config_map("a")).await.refused();
    assert!(message.ends_with("no endpoints available for service \"hook\""), "{message}");
    let pods = "/api/v1/namespaces/default/pods";
    let pod = json!({"apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": "p", "labels": {"app": "hook"}},
        "spec": {"containers": [{"name": "c", "image": "i"}]}});
    let mut pod = api.post(pods, &pod).await.ok();
    pod["status"]["conditions"] = json!([{"type": "Ready", "status": "True"}]);
    let pod = api.put(&format!("{pods}/p/status"), &pod).await.ok();
    api.post(MAPS, &config_map("a")).await.ok();
    let mut refusing = pod.clone();
    refusing["metadata"]["annotations"] = json!({"mainstay.dev/answers": "false"});
    api.put(&format!("{pods}/p"), &refusing).await.ok();
    let (_, message) = api.post(MAPS, &config_map("b")).await.refused();
    assert!(message.ends_with("connect: connection refused"), "{message}");
}

#[tokio::test]
async fn audit_annotations_and_metrics_of_a_webhook_are_recorded() {
    let api = api(RespondWith(|review: &Value| {
        if review["request"]["name"] == "broken" {
            return Bytes::from_static(b"nothing");
        }
        let mut response = allowed(review);
        response["response"]["auditAnnotations"] = json!({"seen": "yes"});
        response["response"]["patchType"] = "JSONPatch".into();
        let patch = json!([{"op": "add", "path": "/data/more", "value": "1"}]);
        response["response"]["patch"] = STANDARD.encode(patch.to_string()).into();
        response.to_string().into()
    }))
    .await;
    let mut lenient = configuration();
    lenient["metadata"]["name"] = "lenient".into();
    lenient["webhooks"][0]["name"] = "two.x.io".into();
    lenient["webhooks"][0]["failurePolicy"] = "Ignore".into();
    api.post(CONFIGURATIONS, &lenient).await.ok();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("audit.log");
    api.server.set_audit_log(audit::AuditLog::open(&file).unwrap());
    for (name, code) in [("good", 201), ("broken", 500)] {
        let headers = [("audit-id", name)];
        let body = config_map(name).to_string();
        assert_eq!(api.call(Method::POST, MAPS, &headers, body).await, code);
    }
    api.delete(&format!("{CONFIGURATIONS}/all"), &Value::Null).await.ok();
    let headers = [("audit-id", "open")];
    api.call(Method::POST, MAPS, &headers, config_map("broken").to_string()).await.ok();
    let notes = async |id: &str| loop {
        let text = std::fs::read_to_string(&file).unwrap();
        let events = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        let ended = |event: &Value| event["auditID"] == id && event["stage"] == "ResponseComplete";
        if let Some(mut event) = events.into_iter().find(ended) {
            let notes = event["annotations"].as_object_mut().unwrap();
            notes.retain(|key, _| !key.starts_with("authorization"));
            break event["annotations"].take();
        }
        tokio::task::yield_now().await;
    };
    assert_eq!(
        notes("good").await,
        json!({
            "one.x.io/seen": "yes", "two.x.io/seen": "yes",
            "mutation.webhook.admission.k8s.io/round_0_index_0":
                r#"{"configuration":"all","webhook":"one.x.io","mutated":true}"#,
            "mutation.webhook.admission.k8s.io/round_0_index_1":
                r#"{"configuration":"lenient","webhook":"two.x.io","mutated":false}"#,
        })
    );
    assert_eq!(
        notes("open").await,
        json!({
            "failed-open.mutation.webhook.admission.k8s.io/round_0_index_0": "two.x.io",
            "mutation.webhook.admission.k8s.io/round_0_index_0":
                r#"{"configuration":"lenient","webhook":"two.x.io","mutated":false}"#,
        })
    );
    let page = String::from_utf8(api.get("/metrics").await.bytes.to_vec()).unwrap();
    for line in [
        r#"apiserver_admission_webhook_admission_duration_seconds_count{name="one.x.io",operation="CREATE",rejected="false",type="admit"} 1"#,
        r#"apiserver_admission_webhook_request_total{code="200",name="two.x.io",operation="CREATE",rejected="false",type="admit"} 1"#,
        r#"apiserver_admission_webhook_rejection_count{error_type="calling_webhook_error",name="one.x.io",operation="CREATE",rejection_code="503",type="admit"} 1"#,
        r#"apiserver_admission_webhook_fail_open_count{name="two.x.io",type="admit"} 1"#,
    ] {
        assert!(page.contains(line), "{line}\n{page}");
    }
}
/// Responds to successive calls with successive responses; the last one repeats.
struct ResponseSequence {
    answers: Vec<(u16, &'static str, &'static str)>,
    calls: Arc<AtomicUsize>,
}

impl InProcessBackend for ResponseSequence {
    fn call(
        &self,
        request: Request<Bytes>,
    ) -> BoxFuture<'_, Result<Response<Bytes>, BackendError>> {
        let at = self.calls.fetch_add(1, Ordering::Relaxed).min(self.answers.len() - 1);
        let (code, header, value) = self.answers[at];
        let review: Value = serde_json::from_slice(request.body()).unwrap_or_default();
        let mut response = Response::builder().status(code);
        if !header.is_empty() {
            response = response.header(header, value);
        }
        let response = response.body(Bytes::from(allowed(&review).to_string())).unwrap();
        Box::pin(async move { Ok(response) })
    }
}

#[tokio::test(start_paused = true)]
async fn a_retried_or_redirected_webhook_call_stays_within_its_timeout() {
    let timed_out = "context deadline exceeded";
    for (answers, calls, expected) in [
        (vec![(429, "retry-after", "0"), (200, "", "")], 2, ""),
        // The whole timeout is one second.
        (vec![(503, "retry-after", "5"), (200, "", "")], 1, timed_out),
        (vec![(503, "retry-after", "-5"), (200, "", "")], 2, ""),
        (vec![(307, "location", "/other")], 10, "stopped after 10 redirects"),
        (vec![(307, "location", "http://x/"), (200, "", "")], 1, "which is not HTTPS"),
        (vec![(307, "location", "/other"), (200, "", "")], 2, ""),
    ] {
        let count = Arc::new(AtomicUsize::new(0));
        let api = api(ResponseSequence { answers: answers.clone(), calls: count.clone() }).await;
        let response = api.post(MAPS, &config_map("a")).await;
        assert_eq!(count.load(Ordering::Relaxed), calls, "{answers:?}");
        if expected.is_empty() {
            response.ok();
        } else {
            let (_, message) = response.refused();
            assert!(message.ends_with(expected), "{message}");
        }
    }
}

/// A backend that never responds.
struct SilentBackend(Arc<AtomicUsize>);
impl InProcessBackend for SilentBackend {
    fn call(&self, _: Request<Bytes>) -> BoxFuture<'_, Result<Response<Bytes>, BackendError>> {
        self.0.fetch_add(1, Ordering::Relaxed);
        Box::pin(std::future::pending())
    }
}

#[tokio::test]
async fn slow_webhooks_delay_only_their_own_requests() {
    const REQUESTS: usize = 300;
    let calls = Arc::new(AtomicUsize::new(0));
    let api = Arc::new(Api::new().await);
    api.server.put_native_backend("default", "hook", Arc::new(SilentBackend(calls.clone())));
    let mut slow = configuration();
    slow["webhooks"][0]["timeoutSeconds"] = 30.into();
    api.post(CONFIGURATIONS, &slow).await.ok();
    let waiting: Vec<_> = (0..REQUESTS)
        .map(|at| {
            let api = api.clone();
            tokio::spawn(async move { api.post(MAPS, &config_map(&format!("m{at}"))).await.code })
        })
        .collect();
    while calls.load(Ordering::Relaxed) < REQUESTS {
        tokio::task::yield_now().await;
    }
    // All of them wait at the same time; other requests continue.
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}});
    api.post("/api/v1/namespaces/default/secrets", &secret).await.ok();
    api.get(MAPS).await.ok();
    assert!(waiting.iter().all(|one| !one.is_finished()));
    for one in waiting {
        one.abort();
    }
}

#[tokio::test]
async fn a_webhook_may_change_connect_options() {
    let api = api(RespondWith(|review: &Value| {
        let mut response = allowed(review);
        assert_eq!(review["request"]["object"]["kind"], "PodAttachOptions");
        response["response"]["patchType"] = "JSONPatch".into();
        // [{"op":"add","path":"/container","value":"other"}]
        let patch = "W3sib3AiOiJhZGQiLCJwYXRoIjoiL2NvbnRhaW5lciIsInZhbHVlIjoib3RoZXIifV0=";
        response["response"]["patch"] = patch.into();
        response.to_string().into()
    }))
    .await;
    let mut connecting = configuration();
    connecting["metadata"]["name"] = "connecting".into();
    connecting["webhooks"][0]["rules"] = json!([{"operations": ["CONNECT"], "apiGroups": [""],
        "apiVersions": ["v1"], "resources": ["pods/attach"]}]);
    api.post(CONFIGURATIONS, &connecting).await.ok();
    let pods = "/api/v1/namespaces/default/pods";
    let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"},
        "spec": {"nodeName": "n", "containers": [{"name": "c", "image": "i"}]}});
    api.post(pods, &pod).await.ok();
    let (_, message) = api.get(&format!("{pods}/p/attach?container=c&stdout=true")).await.refused();
    assert_eq!(message, "container other is not valid for pod p");
}
