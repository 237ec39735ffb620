//! Validating admission policies, from their creation to the refused write.

use crate::harness::{Api, MAPS, config_map, map};
use mainstay_apiserver::audit;
use serde_json::{Value, json};

const GROUP: &str = "/apis/admissionregistration.k8s.io/v1";

fn policy(name: &str, spec: &Value) -> Value {
    let mut spec = spec.clone();
    spec["matchConstraints"] = json!({"resourceRules": [{
        "apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE", "UPDATE"],
        "resources": ["configmaps"],
    }]});
    json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": name}, "spec": spec,
    })
}

fn binding(name: &str, of: &str, more: &Value) -> Value {
    let mut spec = json!({"policyName": of, "validationActions": ["Deny"]});
    for (key, value) in more.as_object().into_iter().flatten() {
        spec[key] = value.clone();
    }
    json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": {"name": name}, "spec": spec,
    })
}

async fn install(api: &Api, name: &str, spec: &Value, more: &Value) {
    let path = format!("{GROUP}/validatingadmissionpolicies");
    api.post(&path, &policy(name, spec)).await.ok();
    let path = format!("{GROUP}/validatingadmissionpolicybindings");
    api.post(&path, &binding(name, name, more)).await.ok();
}

#[tokio::test]
async fn a_policy_takes_effect_with_the_response_to_its_creation() {
    let api = Api::new().await;
    for at in 0..20 {
        let name = format!("m{at}");
        let spec = json!({"validations": [{"expression": "false", "message": name}]});
        install(&api, &name, &spec, &Value::Null).await;
        let (code, message) = api.post(MAPS, &config_map(&name)).await.refused();
        assert_eq!(code, 422);
        assert!(message.ends_with(&format!("denied request: {name}")), "{message}");
        let path = format!("{GROUP}/validatingadmissionpolicybindings/{name}");
        api.delete(&path, &json!({})).await.ok();
        api.post(MAPS, &config_map(&name)).await.ok();
    }
}

#[tokio::test]
async fn a_refusal_names_the_first_policy_by_name() {
    let api = Api::new().await;
    for name in ["c", "a", "b"] {
        let spec = json!({"validations": [{"expression": "false", "message": name}]});
        install(&api, name, &spec, &Value::Null).await;
    }
    let (_, message) = api.post(MAPS, &config_map("x")).await.refused();
    assert_eq!(
        message,
        "configmaps \"x\" is forbidden: ValidatingAdmissionPolicy 'a' with binding 'a' denied request: a"
    );
}

#[tokio::test]
async fn a_policy_evaluates_thousands_of_parameters() {
    let api = Api::new().await;
    for at in 0..2000 {
        let mut map = config_map(&format!("p{at:04}"));
        map["metadata"]["labels"] = json!({"use": "it"});
        map["data"] = json!({"n": at.to_string()});
        api.post(MAPS, &map).await.ok();
    }
    let spec = json!({
        "paramKind": {"apiVersion": "v1", "kind": "ConfigMap"},
        "matchConditions": [{"name": "new", "expression": "object.metadata.name.startsWith('x')"}],
        "validations": [{
            "expression": "params.data.n != object.metadata.name.substring(1)",
            "messageExpression": "'as ' + params.metadata.name",
        }],
    });
    let selected = json!({"paramRef": {
        "selector": {"matchLabels": {"use": "it"}}, "parameterNotFoundAction": "Deny",
    }});
    install(&api, "many", &spec, &selected).await;
    let (_, message) = api.post(MAPS, &config_map("x1234")).await.refused();
    assert!(message.ends_with("denied request: as p1234"), "{message}");
    api.post(MAPS, &config_map("x2000")).await.ok();
}

#[tokio::test]
async fn an_expensive_expression_is_aborted() {
    let api = Api::new().await;
    let slow = "variables.all.map(x, variables.all.map(y, x + y)).size() == 0";
    let spec = json!({
        "variables": [{"name": "all", "expression": "object.data.n.split(',')"}],
        "validations": (0..50).map(|_| json!({"expression": slow})).collect::<Vec<_>>(),
    });
    install(&api, "slow", &spec, &Value::Null).await;
    let mut object = config_map("x");
    object["data"] = json!({"n": vec!["a"; 100_000].join(",")});
    let (code, message) = api.post(MAPS, &object).await.refused();
    assert_eq!(code, 422);
    assert!(message.contains("cost"), "{message}");
}

#[tokio::test]
async fn a_policy_status_reports_type_errors_and_changes_nothing_else() {
    let api = Api::new().await;
    let spec = json!({"validations": [{"expression": "object.nothing == 1"}]});
    install(&api, "odd", &spec, &json!({"validationActions": ["Warn"]})).await;
    let mut events = api
        .watch(&format!("{GROUP}/validatingadmissionpolicies?watch=true&resourceVersion=0"))
        .await;
    let found = loop {
        let event = events.next().await.expect("a status");
        if event["object"]["status"]["observedGeneration"] == 1 {
            break event["object"].clone();
        }
    };
    assert_eq!(
        found["status"]["typeChecking"]["expressionWarnings"][0]["warning"],
        "/v1, Kind=ConfigMap: ERROR: <input>:1:7: undefined field 'nothing'\n | object.nothing == 1\n | ......^\n"
    );
    assert_eq!(found["metadata"]["generation"], 1);
    let response = api.post(MAPS, &config_map("x")).await;
    assert_eq!(
        response.warnings(),
        [
            "299 - \"Validation failed for ValidatingAdmissionPolicy 'odd' with binding 'odd': expression 'object.nothing == 1' resulted in error: no such key: nothing\""
        ]
    );
    api.get(&map("x")).await.ok();
}

#[tokio::test]
async fn audit_annotations_of_a_policy_are_in_the_audit_log() {
    let api = Api::new().await;
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("audit.log");
    let spec = json!({
        "validations": [{"expression": "true"}, {"expression": "false", "message": "<no>"}],
        "auditAnnotations": [{"key": "k", "valueExpression": "'is ' + object.metadata.name"}],
    });
    install(&api, "noted", &spec, &json!({"validationActions": ["Audit"]})).await;
    api.server.set_audit_log(audit::AuditLog::open(&file).unwrap());
    api.post(MAPS, &config_map("x")).await.ok();
    let annotations = loop {
        let text = std::fs::read_to_string(&file).unwrap();
        let events = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        // The requests of the server itself are in it, too.
        let is_ours = |event: &Value| {
            event["stage"] == "ResponseComplete" && event["objectRef"]["resource"] == "configmaps"
        };
        if let Some(event) = events.into_iter().find(is_ours) {
            break event["annotations"].clone();
        }
        tokio::task::yield_now().await;
    };
    assert_eq!(annotations["noted/k"], "is x");
    assert_eq!(
        annotations["validation.policy.admission.k8s.io/validation_failure"],
        r#"[{"message":"\u003cno\u003e","policy":"noted","binding":"noted","expressionIndex":1,"validationActions":["Audit"]}]"#
    );
}
