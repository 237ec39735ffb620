//! APIServices: APIs that the Deployments of operators serve.

use crate::olm_cluster::{OlmCluster, create_namespace, csv};
use crate::webhooks::edit_csv;
use mainstay_api::resources::{CLUSTER_SERVICE_VERSION, SUBSCRIPTION};
use mainstay_client::DeleteOptions;
use mainstay_object::{Object, builtin};
use serde_json::{Value, json};

const API: &str = "v1.api.example.com";

/// Two APIs of the Deployment `anvil`: two kinds of one group and version.
pub(crate) fn owned_api_services() -> Value {
    let description = |kind: &str, plural: &str| {
        json!({
            "group": "api.example.com", "version": "v1", "kind": kind, "name": plural,
            "deploymentName": "anvil", "containerPort": 5443,
        })
    };
    json!([description("Forge", "forges"), description("Hearth", "hearths")])
}

fn publish_with_api_services(olm: &OlmCluster, versions: &[&str], edit: impl Fn(&mut Value)) {
    olm.publish_edited(versions, |_, bundle| {
        edit_csv(bundle, |csv| {
            csv["spec"]["apiservicedefinitions"] = json!({"owned": owned_api_services()});
            edit(csv);
        });
    });
}

async fn olm_with_api_services(versions: &[&str], edit: impl Fn(&mut Value)) -> OlmCluster {
    let olm = OlmCluster::start(&[]).await;
    publish_with_api_services(&olm, versions, edit);
    olm.apply_group("og").await;
    olm.subscribe(json!({})).await;
    olm
}

#[tokio::test]
async fn api_service_is_created_with_its_csv_recreated_and_handed_to_the_successor() {
    let olm = olm_with_api_services(&["1.0.0"], |_| ()).await;
    let first = olm.wait_until_succeeded("anvil.v1.0.0").await;
    // shows C07 C08
    assert_eq!(
        crate::webhooks::phase_history(&first),
        [
            "Pending/RequirementsUnknown",
            "InstallReady/AllRequirementsMet",
            "Installing/InstallSucceeded",
            "Succeeded/InstallSucceeded",
        ]
    );
    let cluster = olm.cluster.cluster();
    let api = cluster.get(&builtin::API_SERVICE, None, API).await.unwrap();
    let secret = cluster.get(&builtin::SECRET, Some("team"), "anvil-service-cert").await.unwrap();
    // shows APS-07 AT-CSV-03
    assert_eq!(secret.str(&["type"]), Some("kubernetes.io/tls"));
    // shows APS-06 AT-CSV-03
    assert_eq!(api.get(&["spec", "caBundle"]), secret.get(&["data", "olmCAKey"]));
    // shows APS-01 APS-02 APS-06 E040
    assert_eq!(
        api.get(&["spec", "service"]),
        Some(&json!({"name": "anvil-service", "namespace": "team", "port": 5443}))
    );
    assert_eq!(api.label("olm.owner"), Some("anvil.v1.0.0"));
    let service = cluster.get(&builtin::SERVICE, Some("team"), "anvil-service").await.unwrap();
    assert_eq!(service.array(&["spec", "ports"]).len(), 1);
    // shows APS-06
    assert_eq!(service.get(&["spec", "selector"]), Some(&json!({"app": "anvil"})));
    for (resource, namespace, name) in [
        (&builtin::CLUSTER_ROLE_BINDING, None, "anvil-service-system:auth-delegator"),
        (&builtin::ROLE_BINDING, Some("kube-system"), "anvil-service-auth-reader"),
    ] {
        let found = cluster.get(resource, namespace, name).await.unwrap();
        let subject = json!([{"kind": "ServiceAccount", "name": "anvil", "namespace": "team"}]);
        // shows E040
        assert_eq!(found.get(&["subjects"]), Some(&subject));
    }
    // Each served kind has the aggregated ClusterRoles admin, edit and view.
    for (suffix, verbs) in [
        ("admin", json!(["*"])),
        ("edit", json!(["create", "update", "patch", "delete"])),
        ("view", json!(["get", "list", "watch"])),
    ] {
        for plural in ["forges", "hearths"] {
            let name = format!("{plural}-v1-{suffix}");
            let role = olm.cluster.wait_for(&builtin::CLUSTER_ROLE, None, &name, |_| true).await;
            let rule =
                json!([{"apiGroups": ["api.example.com"], "resources": [plural], "verbs": verbs}]);
            // shows AT-OG-11 OG-33
            assert_eq!(role.get(&["rules"]), Some(&rule));
            // shows E065
            assert_eq!(role.owner_references()[0].name, API);
            let crdview = format!("{plural}-v1-crdview");
            let crdview = cluster.find(&builtin::CLUSTER_ROLE, None, &crdview).await.unwrap();
            // shows AT-OG-11 OG-33
            assert!(crdview.is_none());
        }
    }
    olm.wait_until_idle().await;

    // A deleted APIService fails its CSV, which is installed again.
    let options = DeleteOptions::default();
    cluster.delete(&builtin::API_SERVICE, None, API, &options).await.unwrap();
    let mended = |csv: &Object| {
        let all = csv.array(&["status", "conditions"]);
        let has = |reason: &str| all.iter().any(|condition| condition["reason"] == reason);
        has("APIServiceResourceIssue")
            && has("APIServiceResourcesNeedReinstall")
            && csv.str(&["status", "phase"]) == Some("Succeeded")
    };
    let csv = &CLUSTER_SERVICE_VERSION;
    // shows E040 C10
    let now = olm.cluster.wait_for(csv, Some("team"), "anvil.v1.0.0", mended).await;
    assert_eq!(first.get(&["status", "certsRotateAt"]), now.get(&["status", "certsRotateAt"]));

    publish_with_api_services(&olm, &["1.0.0", "1.1.0"], |_| ());
    olm.wait_until_succeeded("anvil.v1.1.0").await;
    olm.cluster.wait_gone(csv, Some("team"), "anvil.v1.0.0").await;
    let api = cluster.get(&builtin::API_SERVICE, None, API).await.unwrap();
    // shows E041
    assert_eq!(api.label("olm.owner"), Some("anvil.v1.1.0"));
    assert_eq!(api.get(&["spec", "caBundle"]), secret.get(&["data", "olmCAKey"]));
    olm.wait_until_idle().await;

    for (resource, name) in [(SUBSCRIPTION, "anvil"), (CLUSTER_SERVICE_VERSION, "anvil.v1.1.0")] {
        cluster.ensure_deleted(&resource, Some("team"), name, &options).await.unwrap();
    }
    olm.cluster.wait_gone(csv, Some("team"), "anvil.v1.1.0").await;
    olm.cluster.wait_gone(&builtin::API_SERVICE, None, API).await;
}

#[tokio::test]
async fn csv_stays_pending_while_the_deployment_of_its_api_service_is_missing() {
    let olm = olm_with_api_services(&["1.0.0"], |csv| {
        for api in csv["spec"]["apiservicedefinitions"]["owned"].as_array_mut().unwrap() {
            api["deploymentName"] = "nobody".into();
        }
    })
    .await;
    // shows APS-05 AT-CSV-02
    let csv = olm.wait_for_csv("anvil.v1.0.0", "Pending", "RequirementsNotMet").await;
    let found = csv.array(&["status", "requirementStatus"]);
    let api = found.iter().find(|requirement| requirement["kind"] == "APIService").unwrap();
    assert_eq!(api["name"], API);
    // shows APS-05 AT-CSV-02
    assert_eq!(api["status"], "DeploymentNotFound");
    olm.wait_until_idle().await;
}

#[tokio::test]
async fn csv_stays_installing_while_its_api_server_does_not_answer() {
    let olm = olm_with_api_services(&["1.0.0"], |csv| {
        let deployment = &mut csv["spec"]["install"]["spec"]["deployments"][0];
        deployment["spec"]["template"]["metadata"]["annotations"] =
            json!({ANSWERS_ANNOTATION: "false"});
    })
    .await;
    let is_installing = |csv: &Object| {
        csv.str(&["status", "phase"]) == Some("Installing")
            && csv.str(&["status", "message"]) == Some("apiServices not installed")
    };
    let csv = &CLUSTER_SERVICE_VERSION;
    olm.cluster.wait_for(csv, Some("team"), "anvil.v1.0.0", is_installing).await;
}

/// Annotation of simulated pods: whether they answer requests.
const ANSWERS_ANNOTATION: &str = "mainstay.dev/answers";

#[tokio::test]
async fn api_service_belongs_to_one_csv_until_that_is_deleted() {
    let olm = olm_with_api_services(&["1.0.0"], |_| ()).await;
    olm.wait_until_succeeded("anvil.v1.0.0").await;
    create_namespace(&olm.cluster, "other", "").await;
    let cluster = olm.cluster.cluster();
    let group = json!({
        "apiVersion": "operators.coreos.com/v1", "kind": "OperatorGroup",
        "metadata": {"name": "og", "namespace": "other"}, "spec": {"targetNamespaces": ["other"]},
    });
    olm.cluster.apply(Object::from_value(group).unwrap()).await;
    let mut rival = csv("1.0.0", None);
    rival["metadata"]["namespace"] = "other".into();
    let spec = &mut rival["spec"];
    spec["apiservicedefinitions"] = json!({"owned": owned_api_services()});
    spec["customresourcedefinitions"] = json!({});
    let install = &mut spec["install"]["spec"];
    install["permissions"] = json!([]);
    install["deployments"][0]["spec"]["template"]["spec"]["serviceAccountName"] = "default".into();
    olm.cluster.apply(Object::from_value(rival).unwrap()).await;
    let at = |phase: &'static str, reason: &'static str| {
        let csv = &CLUSTER_SERVICE_VERSION;
        olm.cluster.wait_for(csv, Some("other"), "anvil.v1.0.0", move |csv| {
            csv.str(&["status", "phase"]) == Some(phase)
                && csv.str(&["status", "reason"]) == Some(reason)
        })
    };
    // shows C04 E041 E045
    let refused = at("Failed", "OwnerConflict").await;
    assert_eq!(refused.str(&["status", "message"]), Some("unable to adopt APIService"));
    olm.wait_until_idle().await;
    // shows C04
    olm.wait_until_succeeded("anvil.v1.0.0").await;
    for (resource, name) in [(SUBSCRIPTION, "anvil"), (CLUSTER_SERVICE_VERSION, "anvil.v1.0.0")] {
        let options = DeleteOptions::default();
        cluster.ensure_deleted(&resource, Some("team"), name, &options).await.unwrap();
    }
    // shows E041
    at("Succeeded", "InstallSucceeded").await;
    let api = cluster.get(&builtin::API_SERVICE, None, API).await.unwrap();
    assert_eq!(api.label("olm.owner.namespace"), Some("other"));
}
