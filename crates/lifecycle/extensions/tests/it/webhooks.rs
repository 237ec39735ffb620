//! An operator with webhooks: they deny, change and convert objects of its kind.

use crate::bundles::{TestBundle, crd};
use crate::extensions::{NAMESPACE, catalog};
use crate::olm_cluster::OlmCluster;
use crate::webhook_certificates::apply_cert_manager_kinds;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use mainstay_object::{Gvk, Object, builtin};
use serde_json::{Value, json};

/// The answers of the operator. In v1, `valid` and `mutate` are fields of the spec; in v2 they are below
/// `conversion`.
fn answer(path: &str, review: &Value) -> Value {
    let mut response = json!({"uid": review["request"]["uid"]});
    let spec = &review["request"]["object"]["spec"];
    match path {
        "/validate" => {
            response["allowed"] = json!(spec["valid"] == true);
            response["status"] =
                json!({"message": "Invalid value: false: Spec.Valid must be true"});
        }
        "/mutate" => {
            let patch = json!([{"op": "add", "path": "/spec/mutate", "value": true}]);
            response["allowed"] = true.into();
            response["patchType"] = "JSONPatch".into();
            response["patch"] = STANDARD.encode(patch.to_string()).into();
        }
        "/convert" => {
            let wanted = &review["request"]["desiredAPIVersion"];
            let objects = review["request"]["objects"].as_array().unwrap();
            let convert = |object: &Value| {
                let mut object = object.clone();
                object["apiVersion"] = wanted.clone();
                object["spec"] = if wanted == "example.com/v2" {
                    json!({"conversion": object["spec"]})
                } else {
                    object["spec"]["conversion"].clone()
                };
                object
            };
            response["result"] = json!({"status": "Success"});
            response["convertedObjects"] = objects.iter().map(convert).collect();
        }
        other => panic!("{other}"),
    }
    json!({"apiVersion": review["apiVersion"], "kind": review["kind"], "response": response})
}

/// A bundle with a kind in two versions and three webhooks.
fn bundle() -> TestBundle {
    let fields = json!({"valid": {"type": "boolean"}, "mutate": {"type": "boolean"}});
    let v2 = crd("Anvil", &json!({"conversion": {"type": "object", "properties": fields}}));
    let mut definition = crd("Anvil", &fields);
    let mut version = v2["spec"]["versions"][0].clone();
    version["name"] = "v2".into();
    version["storage"] = false.into();
    definition["spec"]["versions"].as_array_mut().unwrap().push(version);
    let hook = |kind: &str, path: &str| {
        json!({
            "type": kind, "generateName": format!("{}.example.com", &path[1..]),
            "deploymentName": "a", "containerPort": 443, "sideEffects": "None",
            "admissionReviewVersions": ["v1"], "failurePolicy": "Fail", "webhookPath": path,
        })
    };
    let rules = json!([{
        "apiGroups": ["example.com"], "apiVersions": ["v1"], "operations": ["CREATE", "UPDATE"],
        "resources": ["anvils"],
    }]);
    let mut hooks = [
        hook("ValidatingAdmissionWebhook", "/validate"),
        hook("MutatingAdmissionWebhook", "/mutate"),
        hook("ConversionWebhook", "/convert"),
    ];
    hooks[0]["rules"] = rules.clone();
    hooks[1]["rules"] = rules;
    hooks[2]["conversionCRDs"] = json!(["anvils.example.com"]);
    TestBundle::new("a", "1.0.0").with_object(&definition).with(|csv| {
        csv["spec"]["webhookdefinitions"] = json!(hooks);
        csv["spec"]["customresourcedefinitions"] = json!({"owned": [
            {"name": "anvils.example.com", "version": "v1", "kind": "Anvil"},
            {"name": "anvils.example.com", "version": "v2", "kind": "Anvil"},
        ]});
    })
}

#[tokio::test]
async fn webhooks_of_an_installed_operator_deny_change_and_convert() {
    let mut olm = OlmCluster::for_extensions().await;
    apply_cert_manager_kinds(&olm).await;
    olm.cluster.answer_webhooks(NAMESPACE, "a-service", answer);
    bundle().store(&olm);
    olm.put_image("r.example/cat:v1", Some(&catalog(&[("a", &["1.0.0"])])));
    olm.start_controllers().await;
    olm.apply_catalog("cat", json!({"ref": "r.example/cat:v1"}), json!({})).await;
    olm.apply_extension("ext", "a", "").await;
    olm.wait_until_installed("ext", "1.0.0").await;
    let cluster = olm.cluster.cluster();
    let anvil = |name: &str, valid: bool| {
        Object::from_value(json!({
            "apiVersion": "example.com/v1", "kind": "Anvil",
            "metadata": {"name": name, "namespace": NAMESPACE}, "spec": {"valid": valid},
        }))
        .unwrap()
    };
    let crds = &builtin::CUSTOM_RESOURCE_DEFINITION;
    olm.cluster.wait_for_condition(crds, None, "anvils.example.com", "Established").await;
    let of_version = async |version: &str| {
        let gvk = Gvk::from_api_version(&format!("example.com/{version}"), "Anvil");
        cluster.resource_of(&gvk).await.unwrap().unwrap()
    };
    let (v1, v2) = (of_version("v1").await, of_version("v2").await);
    let denied = cluster.create(&v1, &anvil("bad", false)).await.unwrap_err().to_string();
    // shows OLMV1-10
    assert!(denied.contains("Invalid value: false: Spec.Valid must be true"), "{denied}");
    let created = cluster.create(&v1, &anvil("good", true)).await.unwrap();
    // shows OLMV1-10
    assert_eq!(created.get(&["spec"]), Some(&json!({"valid": true, "mutate": true})));
    let converted = cluster.get(&v2, Some(NAMESPACE), "good").await.unwrap();
    // shows OLMV1-10
    assert_eq!(
        converted.get(&["spec"]),
        Some(&json!({"conversion": {"valid": true, "mutate": true}}))
    );
}
