//! Upstream's scenarios of ClusterExtensions with ClusterObjectSets: installing, configuring, updating.

use crate::bundles::TestBundle;
use crate::extensions::{NAMESPACE, catalog};
use crate::object_sets::{config, experimental, wait_for_set};
use crate::olm_cluster::{OlmCluster, condition, message};
use mainstay_api::resources::{CLUSTER_EXTENSION, CLUSTER_OBJECT_SET};
use mainstay_client::{ObjectList, Patch};
use mainstay_object::{Object, builtin};
use serde_json::{Value, json};

const CONFIG: &mainstay_object::Resource = &builtin::CONFIG_MAP;
const SYSTEM: Option<&str> = Some("olmv1-system");

/// A cluster with running controllers, and the package `a` in version 1.0.0.
async fn with_bundle(bundle: TestBundle) -> OlmCluster {
    let mut olm = experimental().await;
    bundle.store(&olm);
    olm.start_controllers().await;
    serve(&olm, &["1.0.0"]).await;
    olm
}

/// Serves a catalog of the package `a` with these versions.
pub(crate) async fn serve(olm: &OlmCluster, versions: &[&str]) {
    let image = format!("r.example/cat:v{}", versions.len());
    olm.put_image(&image, Some(&catalog(&[("a", versions)])));
    olm.apply_catalog("cat", json!({"ref": image}), json!({})).await;
    olm.wait_until_serving("cat", &image).await;
}

/// Merges fields into the spec of an extension.
pub(crate) async fn change_spec(olm: &OlmCluster, name: &str, spec: Value) -> Object {
    let patch = Patch::Merge(json!({"spec": spec}));
    olm.cluster.cluster().patch(&CLUSTER_EXTENSION, None, name, &patch).await.unwrap()
}

fn inline(config: &Value) -> Value {
    json!({"config": {"configType": "Inline", "inline": config}})
}

/// The text of Progressing, once it has this status and reason, and a text that contains this one.
async fn wait_until_progressing(olm: &OlmCluster, expected: (&str, &str), text: &str) -> String {
    let extension = olm
        .wait_for_extension("ext", |extension| {
            let (status, reason, _) = condition(extension, "Progressing");
            (&*status, &*reason) == expected && message(extension, "Progressing").contains(text)
        })
        .await;
    message(&extension, "Progressing")
}

#[tokio::test]
async fn newest_version_is_rolled_out_with_all_objects_of_its_bundle() {
    let policy = json!({
        "apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy",
        "metadata": {"name": "closed"}, "spec": {"podSelector": {}, "policyTypes": ["Ingress"]},
    });
    let mut olm = experimental().await;
    for version in ["1.0.0", "1.2.0"] {
        let properties = json!([{"type": "olm.maxOpenShiftVersion", "value": "4.19"}]);
        TestBundle::new("a", version)
            .with_configs(&["kept"])
            .with_object(&policy)
            .with_properties(&properties)
            .store(&olm);
    }
    olm.start_controllers().await;
    serve(&olm, &["1.0.0", "1.2.0"]).await;
    olm.apply_catalog("other", json!({"ref": "r.example/none:v1"}), json!({})).await;
    olm.apply_extension("ext", "a", "").await;
    let by_name = json!({"matchLabels": {"olm.operatorframework.io/metadata.name": "cat"}});
    change_spec(&olm, "ext", json!({"source": {"catalog": {"selector": by_name}}})).await;
    let installed = olm.wait_until_installed("ext", "1.2.0").await;
    // shows OLMV1-1
    assert_eq!(
        (message(&installed, "Progressing"), condition(&installed, "Available").1),
        ("Revision 1.2.0 has rolled out.".to_owned(), "ProbesSucceeded".to_owned())
    );
    let cluster = olm.cluster.cluster();
    for (resource, name) in
        [(CONFIG, "kept"), (&builtin::DEPLOYMENT, "a"), (&builtin::NETWORK_POLICY, "closed")]
    {
        // shows OLMV1-1
        assert!(cluster.find(resource, Some(NAMESPACE), name).await.unwrap().is_some(), "{name}");
    }
    let set = cluster.get(&CLUSTER_OBJECT_SET, None, "ext-1").await.unwrap();
    let properties: Value =
        serde_json::from_str(set.annotation("olm.properties").unwrap()).unwrap();
    // shows OLMV1-12 OCPC-02
    assert_eq!(properties, json!([{"type": "olm.maxOpenShiftVersion", "value": "4.19"}]));
    // shows OLMV1-13
    assert_eq!(
        ["owner-kind", "owner-name"]
            .map(|name| set.label(&format!("olm.operatorframework.io/{name}")).unwrap()),
        ["ClusterExtension", "ext"]
    );
    let references: Vec<&Value> = set
        .array(&["spec", "phases"])
        .iter()
        .flat_map(|phase| phase["objects"].as_array().unwrap())
        .map(|object| &object["ref"])
        .collect();
    assert_eq!(references.len(), 6, "{references:?}");
    for reference in references {
        let name = reference["name"].as_str().unwrap();
        let secret = cluster.get(&builtin::SECRET, SYSTEM, name).await.unwrap();
        // shows OLMV1-14
        assert_eq!(
            (secret.bool(&["immutable"]), secret.str(&["type"])),
            (Some(true), Some("olm.operatorframework.io/object-data"))
        );
        // shows OLMV1-14
        assert_eq!(
            ["revision-name", "owner-name"]
                .map(|name| secret.label(&format!("olm.operatorframework.io/{name}")).unwrap()),
            ["ext-1", "ext"]
        );
        // shows OLMV1-14
        assert_eq!(secret.controller_owner().unwrap().uid, set.uid());
        let key = reference["key"].as_str().unwrap();
        // shows OLMV1-14
        assert!(secret.str(&["data", key]).is_some(), "{key}");
    }
}

#[tokio::test]
async fn bundle_for_another_namespace_needs_its_name() {
    let olm = with_bundle(TestBundle::new("a", "1.0.0").with_modes(&["SingleNamespace"])).await;
    olm.apply_extension("ext", "a", "").await;
    let blocked = ("False", "InvalidConfiguration");
    // shows OLMV1-4
    wait_until_progressing(&olm, blocked, "required field \"watchNamespace\" is missing").await;
    change_spec(&olm, "ext", inline(&json!({"watchNamespace": "invalid-namespace-"}))).await;
    // shows OLMV1-8
    wait_until_progressing(&olm, blocked, "field \"watchNamespace\" must match pattern").await;
    change_spec(&olm, "ext", inline(&json!({"watchNamespace": "default"}))).await;
    // shows OLMV1-5
    olm.wait_until_installed("ext", "1.0.0").await;
    let cluster = olm.cluster.cluster();
    let deployment = cluster.get(&builtin::DEPLOYMENT, Some(NAMESPACE), "a").await.unwrap();
    let annotations = deployment.get(&["spec", "template", "metadata", "annotations"]).unwrap();
    // shows OLMV1-5
    assert_eq!(annotations["olm.targetNamespaces"], "default");
}

#[tokio::test]
async fn bundle_for_its_own_namespace_accepts_no_other() {
    let olm = with_bundle(TestBundle::new("a", "1.0.0").with_modes(&["OwnNamespace"])).await;
    olm.apply_extension("ext", "a", "").await;
    change_spec(&olm, "ext", inline(&json!({"watchNamespace": "some-ns"}))).await;
    let blocked = ("False", "InvalidConfiguration");
    // shows OLMV1-6
    wait_until_progressing(&olm, blocked, "invalid value \"some-ns\": must be \"work\"").await;
    change_spec(&olm, "ext", inline(&json!({"watchNamespace": NAMESPACE}))).await;
    // shows OLMV1-7
    olm.wait_until_installed("ext", "1.0.0").await;
}

#[tokio::test]
async fn bundle_for_all_namespaces_has_no_namespace_to_watch() {
    let olm = with_bundle(TestBundle::new("a", "1.0.0")).await;
    olm.apply_extension("ext", "a", "").await;
    olm.wait_until_installed("ext", "1.0.0").await;
    change_spec(&olm, "ext", inline(&json!({"watchNamespace": NAMESPACE}))).await;
    let blocked = ("False", "InvalidConfiguration");
    // shows OLMV1-9
    wait_until_progressing(&olm, blocked, "unknown field \"watchNamespace\"").await;
}

#[tokio::test]
async fn deployments_get_the_configuration_of_the_extension() {
    let olm = with_bundle(TestBundle::new("a", "1.0.0")).await;
    olm.apply_extension("ext", "a", "").await;
    let nodes = json!({"nodeSelector": {"kubernetes.io/os": "linux"}});
    change_spec(&olm, "ext", inline(&json!({"deploymentConfig": nodes}))).await;
    // shows OLMV1-15
    olm.cluster
        .wait_for(&builtin::DEPLOYMENT, Some(NAMESPACE), "a", |deployment| {
            deployment.get(&["spec", "template", "spec", "nodeSelector"])
                == Some(&nodes["nodeSelector"])
        })
        .await;
}

#[tokio::test]
async fn large_crd_is_stored_outside_of_the_object_set() {
    let description = "x".repeat(4_000);
    let properties: serde_json::Map<String, Value> = (0..250)
        .map(|at| (format!("f{at}"), json!({"type": "string", "description": description})))
        .collect();
    let bundle = TestBundle::new("a", "1.0.0").with_crd("Anvil", &Value::Object(properties));
    let olm = with_bundle(bundle).await;
    olm.apply_extension("ext", "a", "").await;
    // shows OLMV1-16
    olm.wait_until_installed("ext", "1.0.0").await;
    let set = olm.cluster.cluster().get(&CLUSTER_OBJECT_SET, None, "ext-1").await.unwrap();
    // shows OLMV1-16
    assert!(set.to_value().to_string().len() < 20_000);
}

/// In the mode `cluster-admin` the account has no effect.
#[tokio::test]
async fn account_is_ignored_and_may_be_cleared() {
    let olm = with_bundle(TestBundle::new("a", "1.0.0")).await;
    olm.apply_extension("ext", "a", "").await;
    change_spec(&olm, "ext", json!({"serviceAccount": {"name": "nobody"}})).await;
    // shows OLMV1-17
    olm.wait_until_installed("ext", "1.0.0").await;
    let cleared = change_spec(&olm, "ext", json!({"serviceAccount": null})).await;
    assert_eq!(cleared.get(&["spec", "serviceAccount"]), None);
    // shows OLMV1-28
    olm.wait_for_extension("ext", |extension| {
        let generation = Some(cleared.generation());
        condition(extension, "Progressing") == ("True".into(), "Succeeded".into(), generation)
    })
    .await;
}

#[tokio::test]
async fn catalog_with_a_new_version_updates_the_extension() {
    let olm = with_bundle(TestBundle::new("a", "1.0.0").with_configs(&["kept", "dropped"])).await;
    TestBundle::new("a", "1.3.0").with_configs(&["kept"]).store(&olm);
    olm.apply_extension("ext", "a", "").await;
    olm.wait_until_installed("ext", "1.0.0").await;
    serve(&olm, &["1.0.0", "1.3.0"]).await;
    // shows OLMV1-21
    olm.wait_until_installed("ext", "1.3.0").await;
    wait_for_set(&olm, "ext-1", "Progressing", ("False", "Archived")).await;
    // shows OLMV1-26
    assert!(config(&olm, "dropped").await.is_none());
    let kept = config(&olm, "kept").await.unwrap();
    // shows OLMV1-26
    assert_eq!(kept.controller_owner().unwrap().name, "ext-2");
}

#[tokio::test]
async fn version_with_the_same_content_is_a_revision_of_its_own() {
    let same = |version: &str| {
        TestBundle::new("a", version).with(|csv| {
            let install = csv.pointer_mut("/spec/install/spec").unwrap();
            install.as_object_mut().unwrap().remove("clusterPermissions");
            let pod = install.pointer_mut("/deployments/0/spec/template/spec").unwrap();
            *pod = json!({"containers": [{"name": "manager", "image": "r.example/a"}]});
        })
    };
    let olm = with_bundle(same("1.0.0")).await;
    same("2.0.0").store(&olm);
    olm.apply_extension("ext", "a", "").await;
    olm.wait_until_installed("ext", "1.0.0").await;
    serve(&olm, &["1.0.0", "2.0.0"]).await;
    let updated = olm.wait_until_installed("ext", "2.0.0").await;
    // shows OLMV1-23
    assert_eq!(updated.array(&["status", "activeRevisions"]), [json!({"name": "ext-2"})]);
}

#[tokio::test]
async fn second_extension_of_a_package_collides_also_after_a_change() {
    let olm = with_bundle(TestBundle::new("a", "1.0.0").with_configs(&["kept"])).await;
    olm.apply_extension("ext", "a", "").await;
    olm.wait_until_installed("ext", "1.0.0").await;
    olm.apply_extension("dup", "a", "").await;
    let collides = |extension: &Object| {
        condition(extension, "Progressing").1 == "Retrying"
            && message(extension, "Progressing").starts_with("revision object collisions")
    };
    // shows OLMV1-24
    olm.wait_for_extension("dup", collides).await;
    let first = olm.cluster.cluster().get(&CLUSTER_EXTENSION, None, "ext").await.unwrap();
    // shows OLMV1-24
    assert_eq!(condition(&first, "Installed").0, "True");
    let variable = json!({"deploymentConfig": {"env": [{"name": "COLOUR", "value": "red"}]}});
    change_spec(&olm, "dup", inline(&variable)).await;
    wait_for_set(&olm, "dup-2", "Progressing", ("True", "Retrying")).await;
    // shows OLMV1-25
    olm.wait_for_extension("dup", collides).await;
    let sets = ObjectList::labels("olm.operatorframework.io/owner-name=dup");
    let sets = olm.cluster.cluster().list(&CLUSTER_OBJECT_SET, None, &sets).await.unwrap().items;
    // shows OLMV1-25
    assert_eq!(sets.iter().map(Object::name).collect::<Vec<_>>(), ["dup-1", "dup-2"]);
}

#[tokio::test]
async fn update_whose_image_cannot_be_pulled_leaves_two_active_revisions() {
    let olm = with_bundle(TestBundle::new("a", "1.0.0").with_configs(&["kept"])).await;
    TestBundle::new("a", "2.0.0").with_configs(&["kept"]).behaving("stuck").store(&olm);
    olm.apply_extension("ext", "a", "").await;
    olm.wait_until_installed("ext", "1.0.0").await;
    serve(&olm, &["1.0.0", "2.0.0"]).await;
    wait_for_set(&olm, "ext-2", "Available", ("False", "ProbeFailure")).await;
    let second_condition = |extension: &Object, kind: &str| {
        let second = extension.array(&["status", "activeRevisions"]).get(1)?;
        let all = second["conditions"].as_array()?;
        let found = all.iter().find(|condition| condition["type"] == kind)?;
        Some(found["reason"].as_str()?.to_owned())
    };
    let stuck = olm
        .wait_for_extension("ext", |extension| {
            second_condition(extension, "Available").as_deref() == Some("ProbeFailure")
        })
        .await;
    let revisions: Vec<&str> = stuck
        .array(&["status", "activeRevisions"])
        .iter()
        .filter_map(|revision| revision["name"].as_str())
        .collect();
    // shows OLMV1-27
    assert_eq!(revisions, ["ext-1", "ext-2"]);
    // shows OLMV1-27
    assert_eq!(second_condition(&stuck, "Progressing").as_deref(), Some("RollingOut"));
}
