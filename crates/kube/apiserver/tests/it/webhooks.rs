//! Webhooks that misbehave, and what answers without a socket.

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

/// A configuration that asks the Service `default/hook` about new config maps.
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

/// Answers what a function makes of a review.
struct Says<F>(F);

impl<F: Fn(&Value) -> Bytes + Send + Sync + 'static> InProcessBackend for Says<F> {
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
async fn a_native_backend_is_asked_without_a_socket() {
    let asked = Arc::new(AtomicUsize::new(0));
    let count = asked.clone();
    let api = api(Says(move |review: &Value| {
        count.fetch_add(1, Ordering::Relaxed);
        assert_eq!(review["request"]["object"]["data"]["k"], "v");
        allowed(review).to_string().into()
    }))
    .await;
    api.post(MAPS, &config_map("a")).await.ok();
    assert_eq!(asked.load(Ordering::Relaxed), 1);
}

#[tokio::test]
async fn an_answer_that_is_too_large_is_not_kept() {
    let huge = Bytes::from(vec![b' '; 100 << 20]);
    let api = api(Says(move |_: &Value| huge.clone())).await;
    let (code, message) = api.post(MAPS, &config_map("a")).await.refused();
    assert_eq!(code, 500);
    assert!(message.ends_with("the answer has more than 16777216 bytes"), "{message}");
}

#[tokio::test]
async fn a_webhook_that_nobody_serves_fails_in_the_originals_words() {
    let api = Api::new().await;
    api.post(CONFIGURATIONS, &configuration()).await.ok();
    let (code, message) = api.post(MAPS, &config_map("a")).await.refused();
    assert_eq!(code, 500);
    assert_eq!(
        message,
        "Internal error occurred: failed calling webhook \"one.x.io\": failed to call webhook: Post \"https://hook.default.svc:443/?timeout=1s\": service \"hook\" not found"
    );
}

/// Creates what it is asked about again, under another name.
struct Loops {
    service: std::sync::OnceLock<ApiService>,
    deep: AtomicUsize,
}

struct Looping(Arc<Loops>);

impl InProcessBackend for Looping {
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
                // As a server elsewhere: not on the stack of who asks.
                drop(tokio::spawn(service.oneshot(request)).await);
            } else {
                std::future::pending::<()>().await;
            }
            Ok(Response::new(allowed(&review).to_string().into()))
        })
    }
}

#[tokio::test(start_paused = true)]
async fn a_webhook_that_calls_back_ends_with_its_time() {
    let loops = Arc::new(Loops { service: std::sync::OnceLock::new(), deep: AtomicUsize::new(0) });
    let api = api(Looping(loops.clone())).await;
    assert!(loops.service.set(api.server.service(Identity::admin())).is_ok());
    let (code, message) = api.post(MAPS, &config_map("a")).await.refused();
    assert_eq!(code, 500);
    assert!(message.ends_with("context deadline exceeded"), "{message}");
}

#[tokio::test]
async fn simulated_pods_allow_everything_unless_they_are_told_not_to() {
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
async fn what_a_webhook_notes_is_in_the_audit_log_and_its_calls_are_counted() {
    let api = api(Says(|review: &Value| {
        if review["request"]["name"] == "broken" {
            return Bytes::from_static(b"nothing");
        }
        let mut answer = allowed(review);
        answer["response"]["auditAnnotations"] = json!({"seen": "yes"});
        answer["response"]["patchType"] = "JSONPatch".into();
        let patch = json!([{"op": "add", "path": "/data/more", "value": "1"}]);
        answer["response"]["patch"] = STANDARD.encode(patch.to_string()).into();
        answer.to_string().into()
    }))
    .await;
    let mut lenient = configuration();
    lenient["metadata"]["name"] = "lenient".into();
    lenient["webhooks"][0]["name"] = "two.x.io".into();
    lenient["webhooks"][0]["failurePolicy"] = "Ignore".into();
    api.post(CONFIGURATIONS, &lenient).await.ok();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("audit.log");
    api.server.write_down(audit::Log::open(&file).unwrap());
    for (name, code) in [("good", 201), ("broken", 500)] {
        let headers = [("audit-id", name)];
        let body = config_map(name).to_string();
        assert_eq!(api.call(Method::POST, MAPS, &headers, body).await.code, code);
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
/// Answers one call after the other, the last answer again and again.
struct InTurn {
    answers: Vec<(u16, &'static str, &'static str)>,
    asked: Arc<AtomicUsize>,
}

impl InProcessBackend for InTurn {
    fn call(
        &self,
        request: Request<Bytes>,
    ) -> BoxFuture<'_, Result<Response<Bytes>, BackendError>> {
        let at = self.asked.fetch_add(1, Ordering::Relaxed).min(self.answers.len() - 1);
        let (code, header, value) = self.answers[at];
        let review: Value = serde_json::from_slice(request.body()).unwrap_or_default();
        let mut answer = Response::builder().status(code);
        if !header.is_empty() {
            answer = answer.header(header, value);
        }
        let answer = answer.body(Bytes::from(allowed(&review).to_string())).unwrap();
        Box::pin(async move { Ok(answer) })
    }
}

#[tokio::test(start_paused = true)]
async fn a_call_that_is_put_off_or_sent_elsewhere_is_made_again_within_its_time() {
    let timed_out = "context deadline exceeded";
    for (answers, asked, expected) in [
        (vec![(429, "retry-after", "0"), (200, "", "")], 2, ""),
        // One second is all that there is.
        (vec![(503, "retry-after", "5"), (200, "", "")], 1, timed_out),
        (vec![(503, "retry-after", "-5"), (200, "", "")], 2, ""),
        (vec![(307, "location", "/other")], 10, "stopped after 10 redirects"),
        (vec![(307, "location", "http://x/"), (200, "", "")], 1, "which is not HTTPS"),
        (vec![(307, "location", "/other"), (200, "", "")], 2, ""),
    ] {
        let count = Arc::new(AtomicUsize::new(0));
        let api = api(InTurn { answers: answers.clone(), asked: count.clone() }).await;
        let answer = api.post(MAPS, &config_map("a")).await;
        assert_eq!(count.load(Ordering::Relaxed), asked, "{answers:?}");
        if expected.is_empty() {
            answer.ok();
        } else {
            let (_, message) = answer.refused();
            assert!(message.ends_with(expected), "{message}");
        }
    }
}

/// Says nothing, ever.
struct Silent(Arc<AtomicUsize>);
impl InProcessBackend for Silent {
    fn call(&self, _: Request<Bytes>) -> BoxFuture<'_, Result<Response<Bytes>, BackendError>> {
        self.0.fetch_add(1, Ordering::Relaxed);
        Box::pin(std::future::pending())
    }
}

#[tokio::test]
async fn slow_webhooks_hold_up_only_who_asks_them() {
    const MANY: usize = 300;
    let asked = Arc::new(AtomicUsize::new(0));
    let api = Arc::new(Api::new().await);
    api.server.put_native_backend("default", "hook", Arc::new(Silent(asked.clone())));
    let mut slow = configuration();
    slow["webhooks"][0]["timeoutSeconds"] = 30.into();
    api.post(CONFIGURATIONS, &slow).await.ok();
    let waiting: Vec<_> = (0..MANY)
        .map(|at| {
            let api = api.clone();
            tokio::spawn(async move { api.post(MAPS, &config_map(&format!("m{at}"))).await.code })
        })
        .collect();
    while asked.load(Ordering::Relaxed) < MANY {
        tokio::task::yield_now().await;
    }
    // All of them are asked at the same time; whoever is not their business goes on.
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}});
    api.post("/api/v1/namespaces/default/secrets", &secret).await.ok();
    api.get(MAPS).await.ok();
    assert!(waiting.iter().all(|one| !one.is_finished()));
    for one in waiting {
        one.abort();
    }
}

#[tokio::test]
async fn the_options_of_a_connection_may_be_changed() {
    let api = api(Says(|review: &Value| {
        let mut answer = allowed(review);
        assert_eq!(review["request"]["object"]["kind"], "PodAttachOptions");
        answer["response"]["patchType"] = "JSONPatch".into();
        // [{"op":"add","path":"/container","value":"other"}]
        let patch = "W3sib3AiOiJhZGQiLCJwYXRoIjoiL2NvbnRhaW5lciIsInZhbHVlIjoib3RoZXIifV0=";
        answer["response"]["patch"] = patch.into();
        answer.to_string().into()
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
