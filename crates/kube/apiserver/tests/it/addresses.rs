//! Endpoints with addresses of this machine, and host ports that pods get by annotation.

use crate::harness::Api;
use serde_json::{Value, json};

const PODS: &str = "/api/v1/namespaces/default/pods";
const LOOPBACK: &str = "may not be in the loopback range (127.0.0.0/8, ::1/128)";

fn endpoints(address: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Endpoints", "metadata": {"name": "s"},
        "subsets": [{"addresses": [{"ip": address}], "ports": [{"name": "http", "port": 80}]}],
    })
}

#[tokio::test]
async fn endpoints_with_loopback_addresses_are_refused_in_every_notation() {
    let api = Api::new().await;
    for address in
        ["127.0.0.1", "::ffff:127.0.0.1", "::ffff:7f00:1", "0127.0.0.1", "64:ff9b::7f00:1"]
    {
        let path = "/api/v1/namespaces/default/endpoints";
        let (code, message) = api.post(path, &endpoints(address)).await.refused();
        assert!(code == 422 && message.contains(LOOPBACK), "{address}: {message}");
    }
    let slice = json!({
        "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "metadata": {"name": "s"},
        "addressType": "IPv6", "endpoints": [{"addresses": ["64:ff9b::7f00:1"]}],
    });
    let path = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices";
    let (code, message) = api.post(path, &slice).await.refused();
    assert!(code == 422 && message.contains(LOOPBACK), "{message}");
}

#[tokio::test]
async fn a_webhook_service_with_an_external_name_on_this_machine_is_not_called() {
    let api = Api::new().await;
    let service = json!({
        "apiVersion": "v1", "kind": "Service", "metadata": {"name": "hook"},
        "spec": {"type": "ExternalName", "externalName": "localhost"},
    });
    api.post("/api/v1/namespaces/default/services", &service).await.ok();
    let configuration = json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": "w"},
        "webhooks": [{
            "name": "w.example.com", "sideEffects": "None", "admissionReviewVersions": ["v1"],
            "clientConfig": {"service": {"namespace": "default", "name": "hook", "port": 9}},
            "rules": [{
                "apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"],
                "resources": ["configmaps"],
            }],
        }],
    });
    let path = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations";
    api.post(path, &configuration).await.ok();
    let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "m"}});
    let (_, message) = api.post("/api/v1/namespaces/default/configmaps", &map).await.refused();
    assert!(message.ends_with("address not allowed: it is in the loopback range"), "{message}");
}

fn pod(name: &str, annotations: &Value) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "annotations": annotations},
        "spec": {"containers": [{"name": "c", "image": "i"}]},
    })
}

#[tokio::test]
async fn host_ports_by_annotation_are_subject_to_pod_security() {
    const REFUSED: &str = r#"violates PodSecurity "baseline:latest": hostPort (annotation "mainstay.dev/host-ports" uses hostPort 6443)"#;
    let api = Api::new().await;
    let label = json!({"metadata": {"labels": {"pod-security.kubernetes.io/enforce": "baseline"}}});
    api.patch("/api/v1/namespaces/default", "merge", &label).await.ok();
    let lent = json!({"mainstay.dev/host-ports": "80:6443"});
    let refused = |(code, message): (u16, String)| {
        assert!(code == 403 && message.ends_with(REFUSED), "{code} {message}");
    };
    refused(api.post(PODS, &pod("p", &lent)).await.refused());
    api.post(PODS, &pod("p", &json!({}))).await.ok();
    let patch = json!({"metadata": {"annotations": lent}});
    for path in ["p", "p/status"] {
        refused(api.patch(&format!("{PODS}/{path}"), "merge", &patch).await.refused());
    }
    let binding = json!({
        "apiVersion": "v1", "kind": "Binding", "metadata": {"name": "p", "annotations": lent},
        "target": {"kind": "Node", "name": "n"},
    });
    for path in [format!("{PODS}/p/binding"), "/api/v1/namespaces/default/bindings".to_owned()] {
        refused(api.post(&path, &binding).await.refused());
    }
    // Other annotations are not checked, as in kube-apiserver.
    let other = json!({"metadata": {"annotations": {"a": "b"}}});
    api.patch(&format!("{PODS}/p"), "merge", &other).await.ok();
    // A workload whose pods would violate the policy gets a warning.
    let deployment = json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d"},
        "spec": {
            "selector": {"matchLabels": {"a": "b"}},
            "template": {
                "metadata": {"labels": {"a": "b"}, "annotations": lent},
                "spec": {"containers": [{"name": "c", "image": "i"}]},
            },
        },
    });
    let response = api.post("/apis/apps/v1/namespaces/default/deployments", &deployment).await;
    let warnings = format!("{:?}", response.headers.get_all("warning").iter().collect::<Vec<_>>());
    assert!(warnings.contains("would violate PodSecurity"), "{warnings}");
    assert!(warnings.contains("uses hostPort 6443"), "{warnings}");
}
