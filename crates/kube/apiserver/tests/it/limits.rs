//! The handler chain: audit id, timeout, flow control, metrics and audit log.

use crate::harness::{Api, MAPS, config_map};
use bytes::Bytes;
use http::{Method, Request};
use http_body_util::{BodyExt, Full};
use mainstay_apiserver::audit;
use mainstay_auth::Identity;
use serde_json::{Value, json};
use tower::ServiceExt;

const FLOW: &str = "/apis/flowcontrol.apiserver.k8s.io/v1";
const SCHEMA: &str = "x-kubernetes-pf-flowschema-uid";
const LEVEL: &str = "x-kubernetes-pf-prioritylevel-uid";

async fn uid(api: &Api, path: &str) -> String {
    api.get(path).await.ok()["metadata"]["uid"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn a_response_has_its_audit_id_and_flow_control_headers() {
    let api = Api::new().await;
    let response = api.get(MAPS).await;
    assert_eq!(response.headers["audit-id"].len(), 36);
    let schema = uid(&api, &format!("{FLOW}/flowschemas/exempt")).await;
    let level = uid(&api, &format!("{FLOW}/prioritylevelconfigurations/exempt")).await;
    assert_eq!(response.headers[SCHEMA], *schema);
    assert_eq!(response.headers[LEVEL], *level);
    let response = api.call(Method::GET, MAPS, &[("audit-id", "mine")], "").await;
    assert_eq!(response.headers["audit-id"], "mine");
}

#[tokio::test]
async fn the_first_matching_flow_schema_classifies_a_request() {
    let api = Api::new().await;
    let level = json!({
        "apiVersion": "flowcontrol.apiserver.k8s.io/v1", "kind": "PriorityLevelConfiguration",
        "metadata": {"name": "low"},
        "spec": {"type": "Limited", "limited": {"nominalConcurrencyShares": 1, "limitResponse": {"type": "Reject"}}},
    });
    let schema = json!({
        "apiVersion": "flowcontrol.apiserver.k8s.io/v1", "kind": "FlowSchema",
        "metadata": {"name": "jane"},
        "spec": {
            "matchingPrecedence": 1000, "priorityLevelConfiguration": {"name": "low"},
            "rules": [{
                "subjects": [{"kind": "User", "user": {"name": "jane"}}],
                "nonResourceRules": [{"verbs": ["get"], "nonResourceURLs": ["/version"]}],
            }],
        },
    });
    // Before the level exists, the FlowSchema has the condition `Dangling` and matches nothing.
    api.post(&format!("{FLOW}/flowschemas"), &schema).await.ok();
    let path = format!("{FLOW}/flowschemas/jane");
    api.until_condition(&path, "Dangling", "True").await;
    api.post(&format!("{FLOW}/prioritylevelconfigurations"), &level).await.ok();
    api.until_condition(&path, "Dangling", "False").await;
    let named = uid(&api, &path).await;
    let other = uid(&api, &format!("{FLOW}/flowschemas/global-default")).await;
    for (user, path, expected) in
        [("jane", "/version", &named), ("john", "/version", &other), ("jane", "/api", &other)]
    {
        let service = api.server.service(Identity::new(user, []));
        let request = Request::get(path).body(Full::new(Bytes::new())).unwrap();
        let response = service.oneshot(request).await.unwrap();
        assert_eq!(response.headers()[SCHEMA], **expected, "{user} {path}");
    }
}

#[tokio::test(start_paused = true)]
async fn deleted_default_flow_schemas_are_recreated() {
    let api = Api::new().await;
    let path = format!("{FLOW}/flowschemas/probes");
    api.delete(&path, &Value::Null).await.ok();
    assert_eq!(api.get(&path).await, 404);
    tokio::time::sleep(std::time::Duration::from_secs(61)).await;
    api.until(&path, 200).await;
}

#[tokio::test]
async fn a_request_sets_its_timeout() {
    let api = Api::new().await;
    for (timeout, code) in
        [("10s", 200), ("0", 200), ("0s", 200), ("-1s", 200), ("5h", 200), ("", 200), ("1us", 504)]
    {
        assert_eq!(api.get(&format!("{MAPS}?timeout={timeout}")).await, code, "{timeout}");
    }
    let (code, message) = api.get(&format!("{MAPS}?timeout=abc")).await.refused();
    let expected = "invalid timeout specified in the request URL - time: invalid duration \"abc\"";
    assert_eq!((code, message.as_str()), (400, expected));
    // A watch has no timeout.
    assert_eq!(api.get(&format!("{MAPS}?watch=1&timeoutSeconds=1&timeout=abc")).await, 200);
}

#[tokio::test(start_paused = true)]
async fn a_client_that_stops_sending_is_disconnected() {
    let api = Api::new().await;
    // A client that stops sending is disconnected, even during a stream.
    for path in [format!("{MAPS}?timeout=5s"), "/api/v1/namespaces/default/pods/a/exec".to_owned()]
    {
        let never = http_body_util::StreamBody::new(futures::stream::pending::<
            Result<http_body::Frame<Bytes>, std::convert::Infallible>,
        >());
        let request = Request::post(path).body(never).unwrap();
        let response = api.server.answer(&Identity::admin(), request).await;
        assert_eq!(response.status(), 504);
        let text = response.into_body().collect().await.unwrap().to_bytes();
        let status: Value = serde_json::from_slice(&text).unwrap();
        assert_eq!(
            status["message"],
            "Timeout: request did not complete within the allotted timeout"
        );
    }
}

#[tokio::test]
async fn requests_are_counted_under_the_metric_names_of_kube_apiserver() {
    let api = Api::new().await;
    api.post(MAPS, &config_map("a")).await.ok();
    api.post(MAPS, &config_map("a")).await;
    api.get("/apis/made.up/v1/things").await;
    let mut watch = api.watch(&format!("{MAPS}?watch=true")).await;
    watch.summary().await;
    let page = async || String::from_utf8(api.get("/metrics").await.bytes.to_vec()).unwrap();
    let text = page().await;
    let about = r#"component="apiserver",dry_run="",group="",resource="configmaps",scope="namespace",subresource="",verb="POST",version="v1""#;
    for line in [
        format!("apiserver_request_total{{code=\"201\",{about}}} 1\n"),
        format!("apiserver_request_total{{code=\"409\",{about}}} 1\n"),
        "apiserver_longrunning_requests{component=\"apiserver\",group=\"\",resource=\"configmaps\",scope=\"namespace\",subresource=\"\",verb=\"WATCH\",version=\"v1\"} 1\n".to_owned(),
        "apiserver_flowcontrol_nominal_limit_seats{priority_level=\"catch-all\"} 13\n".to_owned(),
        "apiserver_watch_events_total{group=\"\",resource=\"configmaps\",version=\"v1\"} 1\n".to_owned(),
        "apiserver_watch_events_sizes_bucket{group=\"\",le=\"1024\",resource=\"configmaps\",version=\"v1\"} 1\n".to_owned(),
        "apiserver_admission_step_admission_duration_seconds_count{operation=\"CREATE\",rejected=\"false\",type=\"admit\"} ".to_owned(),
        "apiserver_admission_controller_admission_duration_seconds_count{name=\"NamespaceLifecycle\",operation=\"CREATE\",rejected=\"false\",type=\"admit\"} ".to_owned(),
        "apiserver_flowcontrol_current_executing_requests{flow_schema=\"exempt\",priority_level=\"exempt\"} 1\n".to_owned(),
        "apiserver_flowcontrol_request_wait_duration_seconds_bucket{execute=\"true\",flow_schema=\"exempt\",le=\"0\",priority_level=\"exempt\"} ".to_owned(),
        "aggregator_unavailable_apiservice{name=\"v1.apps\"} 0\n".to_owned(),
        "apiserver_storage_objects{resource=\"flowschemas.flowcontrol.apiserver.k8s.io\"} 11\n".to_owned(),
    ] {
        assert!(text.contains(&line), "{line}\n{text}");
    }
    assert!(!text.contains("made.up"));
    drop(watch);
    assert!(!page().await.contains("verb=\"WATCH\",version=\"v1\"} 1\napiserver_flow"));
    let jane = api.server.service(Identity::new("jane", []));
    let request = Request::get("/metrics").body(Full::new(Bytes::new())).unwrap();
    assert_eq!(jane.oneshot(request).await.unwrap().status(), 403);
}

#[tokio::test]
async fn requests_are_written_to_the_audit_log() {
    let api = Api::new().await;
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("audit.log");
    api.server.set_audit_log(audit::AuditLog::open(&file).unwrap());
    let headers = [("audit-id", "one"), ("user-agent", "test")];
    api.call(Method::POST, MAPS, &headers, config_map("a").to_string()).await.ok();
    api.call(Method::GET, &format!("{MAPS}/none"), &[("audit-id", "two")], "").await;
    let read = || -> Vec<Value> {
        let text = std::fs::read_to_string(&file).unwrap();
        let complete = text.rsplit_once('\n').map_or("", |(complete, _)| complete);
        complete.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    };
    while read().len() < 4 {
        tokio::task::yield_now().await;
    }
    let lines = read();
    let summaries: Vec<String> = lines
        .iter()
        .map(|event| {
            format!("{} {} {}", event["auditID"], event["stage"], event["responseStatus"]["code"])
        })
        .collect();
    assert_eq!(
        summaries,
        [
            "\"one\" \"RequestReceived\" null",
            "\"one\" \"ResponseComplete\" 201",
            "\"two\" \"RequestReceived\" null",
            "\"two\" \"ResponseComplete\" 404",
        ]
    );
    let mut last = lines[1].clone();
    for time in ["requestReceivedTimestamp", "stageTimestamp"] {
        assert!(last[time].take().as_str().unwrap().ends_with('Z'));
    }
    assert_eq!(
        last,
        json!({
            "kind": "Event", "apiVersion": "audit.k8s.io/v1", "level": "Metadata", "auditID": "one",
            "stage": "ResponseComplete", "requestURI": MAPS, "verb": "create",
            "user": {"username": "kubernetes-admin", "groups": ["system:masters", "system:authenticated"]},
            "userAgent": "test",
            "objectRef": {"resource": "configmaps", "namespace": "default", "apiVersion": "v1"},
            "annotations": {
                "authorization.k8s.io/decision": "allow", "authorization.k8s.io/reason": "",
            },
            "responseStatus": {"metadata": {}, "code": 201},
            "requestReceivedTimestamp": null, "stageTimestamp": null,
        })
    );
    assert_eq!(lines[3]["responseStatus"]["message"], "configmaps \"none\" not found");
}

#[tokio::test]
async fn ten_thousand_watches_receive_a_change_and_are_counted_until_they_end() {
    let api = Api::new().await;
    let mut watches = Vec::new();
    for _ in 0..10_000 {
        watches.push(api.watch(&format!("{MAPS}?watch=true")).await);
    }
    let open = async || {
        let text = String::from_utf8(api.get("/metrics").await.bytes.to_vec()).unwrap();
        let line = text.lines().find(|line| {
            line.starts_with("apiserver_longrunning_requests{") && line.contains("\"configmaps\"")
        });
        line.and_then(|line| line.rsplit(' ').next()?.parse::<u32>().ok()).unwrap_or_default()
    };
    assert_eq!(open().await, 10_000);
    api.post(MAPS, &config_map("a")).await.ok();
    for watch in &mut watches {
        assert_eq!(watch.summary().await, "ADDED a");
    }
    drop(watches);
    assert_eq!(open().await, 0);
}

#[tokio::test]
async fn unusual_paths_cannot_bypass_rbac() {
    let api = Api::new().await;
    let jane = api.server.service(Identity::new("jane", []));
    for path in [
        "/version/../api/v1/secrets",
        "/version/..%2fapi/v1/secrets",
        "/version%2f../api/v1/secrets",
        "//api/v1/secrets",
        "/./api/v1/secrets",
        "/api/v1/namespaces/default/../../secrets",
        "/api/v1/namespaces/default/%2e%2e/secrets",
        "/api/v1/%73ecrets",
        "/healthz/../api/v1/secrets",
    ] {
        let request = Request::get(path).body(Full::new(Bytes::new())).unwrap();
        let code = jane.clone().oneshot(request).await.unwrap().status();
        assert!(code == 403 || code == 404, "{path}: {code}");
    }
}
