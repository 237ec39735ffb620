//! Privilege escalation: a namespace's admin tries to gain permissions, by the API's own verbs, and
//! through controllers that act with their own permissions.

use super::{Client, shows_canary};
use crate::report::{Report, Row};
use crate::server::{ATTACKER_NAMESPACE, Server, VICTIM_NAMESPACE};
use crate::wire::Identity;
use anyhow::{Context as _, bail};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use std::path::Path;
use std::time::Duration;
use tokio::time::sleep;

const RBAC: &str = "/apis/rbac.authorization.k8s.io/v1";
const OLM: &str = "/apis/operators.coreos.com";
/// The time for controllers to act wrongly: far longer than they take.
const SETTLING_TIME: Duration = Duration::from_secs(3);

/// Requests that a namespace's admin may make, and that are rejected as invalid.
const INVALID: [&str; 3] =
    ["binds a role that is not there", "changes the own binding", "endpoints on the loopback"];

/// Requests that would grant permissions.
pub(super) async fn requests(
    server: &Server,
    attacker: &Identity,
    report: &mut Report,
) -> anyhow::Result<()> {
    let row = report.row("access", "privilege escalation", 30);
    let mut client = Client::new(server, attacker);
    for (what, method, path, body) in escalations() {
        let media =
            if method == "PATCH" { "application/merge-patch+json" } else { "application/json" };
        let body = if body.is_null() { Vec::new() } else { body.to_string().into_bytes() };
        let response = client.request(method, &path, &[("content-type", media)], &body).await?;
        // Only authorization errors count, except for requests that the user may make and that are
        // invalid: otherwise an invalid body would hide a permission.
        let refused = response.is_refusal()
            || (INVALID.contains(&what) && matches!(response.status, 400 | 404 | 422));
        row.check(refused && !shows_canary(&response.body), || {
            format!("{what}: {} {}", response.status, response.text())
        });
    }
    row.done();
    Ok(())
}

fn binding(name: &str, kind: &str, role: &str) -> Value {
    json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding", "metadata": {"name": name},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": role},
        "subjects": [{"kind": "ServiceAccount", "name": "mallory", "namespace": ATTACKER_NAMESPACE}],
    })
}

fn pod(spec: &Value) -> Value {
    json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": spec})
}

fn escalations() -> Vec<(&'static str, &'static str, String, Value)> {
    let own = format!("{RBAC}/namespaces/{ATTACKER_NAMESPACE}");
    let victim = format!("/api/v1/namespaces/{VICTIM_NAMESPACE}");
    let all = json!([{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}]);
    let container = json!([{"name": "c", "image": "x"}]);
    let review = |user: &str| {
        json!({
            "apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview",
            "spec": {"user": user, "resourceAttributes": {"verb": "get", "resource": "secrets", "namespace": VICTIM_NAMESPACE}},
        })
    };
    let request = json!({
        "apiVersion": "certificates.k8s.io/v1", "kind": "CertificateSigningRequest", "metadata": {"name": "m"},
        "spec": {"request": "AAAA", "signerName": "kubernetes.io/kube-apiserver-client", "usages": ["client auth"]},
    });
    let token =
        json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}});
    let role = |kind: &str| json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": kind, "metadata": {"name": "m"}, "rules": all});
    let verbs = |verb: &str, resource: &str| {
        json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": {"name": "m"},
            "rules": [{"apiGroups": ["rbac.authorization.k8s.io", ""], "resources": [resource], "verbs": [verb]}],
        })
    };
    vec![
        (
            "binds cluster-admin",
            "POST",
            format!("{own}/rolebindings"),
            binding("m", "ClusterRole", "cluster-admin"),
        ),
        (
            "binds a role that is not there",
            "POST",
            format!("{own}/rolebindings"),
            binding("m", "Role", "cluster-admin"),
        ),
        ("makes a role of everything", "POST", format!("{own}/roles"), role("Role")),
        ("makes a role that escalates", "POST", format!("{own}/roles"), verbs("escalate", "roles")),
        ("makes a role that binds", "POST", format!("{own}/roles"), verbs("bind", "clusterroles")),
        (
            "makes a role of nodes' proxies",
            "POST",
            format!("{own}/roles"),
            verbs("get", "nodes/proxy"),
        ),
        ("makes a cluster role", "POST", format!("{RBAC}/clusterroles"), role("ClusterRole")),
        ("makes a cluster binding", "POST", format!("{RBAC}/clusterrolebindings"), json!({})),
        (
            "changes the role admin",
            "PATCH",
            format!("{RBAC}/clusterroles/admin"),
            json!({"rules": all}),
        ),
        (
            "changes the own binding",
            "PATCH",
            format!("{own}/rolebindings/mallory"),
            json!({"roleRef": {"name": "cluster-admin"}}),
        ),
        (
            "a token of the victim",
            "POST",
            format!("{victim}/serviceaccounts/default/token"),
            token.clone(),
        ),
        (
            "a token of a controller",
            "POST",
            "/api/v1/namespaces/kube-system/serviceaccounts/default/token".to_owned(),
            token,
        ),
        (
            "asks for a certificate",
            "POST",
            "/apis/certificates.k8s.io/v1/certificatesigningrequests".to_owned(),
            request,
        ),
        (
            "approves a certificate",
            "PUT",
            "/apis/certificates.k8s.io/v1/certificatesigningrequests/m/approval".to_owned(),
            json!({}),
        ),
        (
            "asks what others may",
            "POST",
            "/apis/authorization.k8s.io/v1/subjectaccessreviews".to_owned(),
            review("system:admin"),
        ),
        (
            "looks whose a token is",
            "POST",
            "/apis/authentication.k8s.io/v1/tokenreviews".to_owned(),
            json!({"spec": {"token": "x"}}),
        ),
        (
            "labels the namespace",
            "PATCH",
            format!("/api/v1/namespaces/{ATTACKER_NAMESPACE}"),
            json!({"metadata": {"labels": {"pod-security.kubernetes.io/enforce": "privileged"}}}),
        ),
        (
            "finalizes the victim",
            "PUT",
            format!("/api/v1/namespaces/{VICTIM_NAMESPACE}/finalize"),
            json!({}),
        ),
        (
            "a pod for the victim",
            "POST",
            format!("{victim}/pods"),
            pod(&json!({"containers": container})),
        ),
        (
            "a pod as another account",
            "POST",
            format!("/api/v1/namespaces/{ATTACKER_NAMESPACE}/pods"),
            pod(&json!({"containers": container, "serviceAccountName": "not-there"})),
        ),
        (
            "a pod of a static kind",
            "POST",
            format!("/api/v1/namespaces/{ATTACKER_NAMESPACE}/pods"),
            json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "annotations": {"kubernetes.io/config.mirror": "x"}}, "spec": {"containers": container, "priorityClassName": "nope"}}),
        ),
        (
            "a secret that takes a token",
            "POST",
            format!("{victim}/secrets"),
            json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "t", "annotations": {"kubernetes.io/service-account.name": "default"}}, "type": "kubernetes.io/service-account-token"}),
        ),
        (
            "a webhook",
            "POST",
            "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations".to_owned(),
            json!({}),
        ),
        (
            "a policy",
            "POST",
            "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies".to_owned(),
            json!({}),
        ),
        (
            "an aggregated API",
            "POST",
            "/apis/apiregistration.k8s.io/v1/apiservices".to_owned(),
            json!({}),
        ),
        (
            "a definition",
            "POST",
            "/apis/apiextensions.k8s.io/v1/customresourcedefinitions".to_owned(),
            json!({}),
        ),
        ("a node's proxy", "GET", "/api/v1/nodes/node-0/proxy/".to_owned(), Value::Null),
        (
            "a node's status",
            "PATCH",
            "/api/v1/nodes/node-0/status".to_owned(),
            json!({"status": {"capacity": {"cpu": "1000"}}}),
        ),
        ("a volume of the host", "POST", "/api/v1/persistentvolumes".to_owned(), json!({})),
        (
            "a priority class",
            "POST",
            "/apis/scheduling.k8s.io/v1/priorityclasses".to_owned(),
            json!({}),
        ),
        (
            "endpoints on the loopback",
            "POST",
            format!("/apis/discovery.k8s.io/v1/namespaces/{ATTACKER_NAMESPACE}/endpointslices"),
            json!({"apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "metadata": {"name": "e"}, "addressType": "IPv6", "endpoints": [{"addresses": ["::ffff:127.0.0.1"]}], "ports": [{"port": 1}]}),
        ),
        (
            "a subscription's group",
            "POST",
            format!("{OLM}/v1/namespaces/{ATTACKER_NAMESPACE}/operatorgroups"),
            json!({"apiVersion": "operators.coreos.com/v1", "kind": "OperatorGroup", "metadata": {"name": "g"}}),
        ),
        (
            "a version by hand",
            "POST",
            format!("{OLM}/v1alpha1/namespaces/{ATTACKER_NAMESPACE}/clusterserviceversions"),
            json!({}),
        ),
        (
            "a plan by hand",
            "POST",
            format!("{OLM}/v1alpha1/namespaces/{ATTACKER_NAMESPACE}/installplans"),
            json!({}),
        ),
        (
            "a catalog",
            "POST",
            format!("{OLM}/v1alpha1/namespaces/{ATTACKER_NAMESPACE}/catalogsources"),
            json!({}),
        ),
        ("a copied event of others", "POST", format!("{victim}/events"), json!({})),
        (
            "a lease of the system",
            "PATCH",
            "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/kube-scheduler".to_owned(),
            json!({}),
        ),
        (
            "a flow schema",
            "POST",
            "/apis/flowcontrol.apiserver.k8s.io/v1/flowschemas".to_owned(),
            json!({}),
        ),
    ]
}

/// Writes a catalog folder with one operator, whose permissions a namespace's admin has too.
pub(super) fn write_catalog(folder: &Path) -> anyhow::Result<String> {
    let modes = ["OwnNamespace", "SingleNamespace", "MultiNamespace", "AllNamespaces"]
        .map(|mode| json!({"type": mode, "supported": true}));
    let csv = json!({
        "apiVersion": "operators.coreos.com/v1alpha1", "kind": "ClusterServiceVersion",
        "metadata": {"name": "ward.v1.0.0"},
        "spec": {
            "displayName": "Ward", "version": "1.0.0",
            "installModes": modes,
            "install": {"strategy": "deployment", "spec": {
                "permissions": [{"serviceAccountName": "ward", "rules": [
                    {"apiGroups": [""], "resources": ["configmaps", "secrets"], "verbs": ["get", "list"]},
                ]}],
                "deployments": [{"name": "ward", "spec": {
                    "replicas": 1, "selector": {"matchLabels": {"app": "ward"}},
                    "template": {
                        "metadata": {"labels": {"app": "ward"}},
                        "spec": {"serviceAccountName": "ward", "containers": [{"name": "ward", "image": "example.com/ward:1"}]},
                    },
                }}],
            }},
        },
    });
    let blobs = [
        json!({"schema": "olm.package", "name": "ward", "defaultChannel": "stable"}),
        json!({"schema": "olm.channel", "package": "ward", "name": "stable", "entries": [{"name": "ward.v1.0.0"}]}),
        json!({
            "schema": "olm.bundle", "package": "ward", "name": "ward.v1.0.0", "image": "example.com/ward-bundle:1",
            "properties": [
                {"type": "olm.package", "value": {"packageName": "ward", "version": "1.0.0"}},
                {"type": "olm.bundle.object", "value": {"data": STANDARD.encode(csv.to_string())}},
            ],
        }),
    ];
    let catalog = folder.join("catalog");
    std::fs::create_dir(&catalog)?;
    std::fs::write(catalog.join("catalog.json"), blobs.map(|blob| blob.to_string()).join("\n"))?;
    Ok(format!("hostile={}", catalog.display()))
}

/// The admin of an operator's namespace forges the roles and bindings that the controllers lift to
/// the cluster or copy to other namespaces.
pub(super) async fn through_controllers(
    server: &Server,
    report: &mut Report,
) -> anyhow::Result<()> {
    let row = report.row("access", "escalation through controllers", 20);
    // All namespaces: a RoleBinding becomes a ClusterRoleBinding.
    forge(server, row, "operators", &[]).await?;
    // Some namespaces: roles are copied into the victim's namespace.
    forge(server, row, "ward", &["ward", VICTIM_NAMESPACE]).await?;
    row.done();
    Ok(())
}

async fn forge(
    server: &Server,
    row: &mut Row,
    namespace: &str,
    targets: &[&str],
) -> anyhow::Result<()> {
    if !targets.is_empty() {
        let namespace_object =
            json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}});
        server.must("POST", "/api/v1/namespaces", Some(&namespace_object)).await?;
        let group = json!({
            "apiVersion": "operators.coreos.com/v1", "kind": "OperatorGroup", "metadata": {"name": "g"},
            "spec": {"targetNamespaces": targets},
        });
        server
            .must("POST", &format!("{OLM}/v1/namespaces/{namespace}/operatorgroups"), Some(&group))
            .await?;
    }
    let rbac = format!("{RBAC}/namespaces/{namespace}");
    let account =
        json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "mallory"}});
    server
        .must("POST", &format!("/api/v1/namespaces/{namespace}/serviceaccounts"), Some(&account))
        .await?;
    let subjects = json!([{"kind": "ServiceAccount", "name": "mallory", "namespace": namespace}]);
    let admin = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding", "metadata": {"name": "mallory"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "admin"},
        "subjects": subjects,
    });
    server.must("POST", &format!("{rbac}/rolebindings"), Some(&admin)).await?;
    let token = server.token(namespace, "mallory", &json!({})).await?;
    let attacker = Identity::Token(token);
    let subscription = json!({
        "apiVersion": "operators.coreos.com/v1alpha1", "kind": "Subscription", "metadata": {"name": "ward"},
        "spec": {"name": "ward", "channel": "stable", "source": "hostile", "sourceNamespace": "olm"},
    });
    server
        .must(
            "POST",
            &format!("{OLM}/v1alpha1/namespaces/{namespace}/subscriptions"),
            Some(&subscription),
        )
        .await?;
    let csv = format!("{OLM}/v1alpha1/namespaces/{namespace}/clusterserviceversions/ward.v1.0.0");
    let uid = running(server, &csv).await?;

    let labels = json!({
        "olm.owner": "ward.v1.0.0", "olm.owner.namespace": namespace, "olm.owner.kind": "ClusterServiceVersion",
        "operators.coreos.com/ward.operators": "", "olm.managed": "true", "olm.copiedFrom": namespace,
    });
    let owners = json!([{
        "apiVersion": "operators.coreos.com/v1alpha1", "kind": "ClusterServiceVersion", "name": "ward.v1.0.0",
        "uid": uid, "controller": false, "blockOwnerDeletion": false,
    }]);
    let rules = json!([{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get"]}]);
    let mut client = Client::new(server, &attacker);
    for role in ["cluster-admin", "admin", "system:node", "view", "olm.og.global-operators.admin"] {
        let role_object = json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role",
            "metadata": {"name": role, "labels": labels, "ownerReferences": owners}, "rules": rules,
        });
        let binding_object = json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding",
            "metadata": {"name": format!("forged-{}", role.replace(':', "-")), "labels": labels, "ownerReferences": owners},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": role},
            "subjects": subjects,
        });
        for (resource, object) in [("roles", role_object), ("rolebindings", binding_object)] {
            let body = object.to_string();
            let path = format!("{rbac}/{resource}");
            let json = [("content-type", "application/json")];
            let response = client.request("POST", &path, &json, body.as_bytes()).await?;
            if response.status >= 500 {
                bail!("{path}: {} {}", response.status, response.text());
            }
            row.tried();
        }
    }
    // The attacker adds itself to the bindings that the controller created.
    let found = client.request("GET", &format!("{rbac}/rolebindings"), &[], b"").await?;
    let found: Value = serde_json::from_slice(&found.body)?;
    for item in found["items"].as_array().into_iter().flatten() {
        let name = item["metadata"]["name"].as_str().unwrap_or_default();
        if item["metadata"]["labels"]["olm.owner"].is_string() && !name.starts_with("forged") {
            let mut all = item["subjects"].as_array().cloned().unwrap_or_default();
            all.extend(subjects.as_array().cloned().unwrap_or_default());
            let patch = json!({"subjects": all}).to_string();
            let merge = [("content-type", "application/merge-patch+json")];
            client
                .request("PATCH", &format!("{rbac}/rolebindings/{name}"), &merge, patch.as_bytes())
                .await?;
            row.tried();
        }
    }
    // A change that makes the controller reconcile.
    let touch = json!({"metadata": {"annotations": {"touched": "yes"}}});
    server.must("PATCH", &csv, Some(&touch)).await?;
    sleep(SETTLING_TIME).await;

    for path in [
        format!("/api/v1/namespaces/{VICTIM_NAMESPACE}/secrets/canary"),
        format!("/api/v1/namespaces/{VICTIM_NAMESPACE}/secrets"),
        "/api/v1/secrets".to_owned(),
        "/api/v1/nodes".to_owned(),
        format!("{RBAC}/clusterroles"),
    ] {
        let response = client.request("GET", &path, &[], b"").await?;
        row.check(response.is_refusal() && !shows_canary(&response.body), || {
            format!(
                "the admin of {namespace} reads {path}: {} {}",
                response.status,
                response.text()
            )
        });
    }
    for path in [
        format!("{RBAC}/clusterrolebindings"),
        format!("{RBAC}/namespaces/{VICTIM_NAMESPACE}/rolebindings"),
    ] {
        let list = server.must("GET", &path, None).await?;
        let given: Vec<&str> = list["items"]
            .as_array()
            .into_iter()
            .flatten()
            .filter(|item| {
                item["subjects"]
                    .as_array()
                    .into_iter()
                    .flatten()
                    .any(|subject| subject["name"] == "mallory")
            })
            .filter_map(|item| item["metadata"]["name"].as_str())
            .collect();
        row.check(given.is_empty(), || {
            format!("controllers gave the admin of {namespace} {given:?} in {path}")
        });
    }
    Ok(())
}

/// Waits until the operator runs; returns the uid of its ClusterServiceVersion.
async fn running(server: &Server, path: &str) -> anyhow::Result<String> {
    let mut last = String::new();
    for _ in 0..200 {
        let response = server.ask("GET", path, None).await?;
        let csv: Value = serde_json::from_slice(&response.body)?;
        if csv["status"]["phase"] == "Succeeded" {
            return Ok(csv["metadata"]["uid"].as_str().context("no uid")?.to_owned());
        }
        last = response.text();
        sleep(Duration::from_millis(100)).await;
    }
    bail!("the operator does not run: {last}")
}
