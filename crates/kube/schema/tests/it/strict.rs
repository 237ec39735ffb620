//! Strict decoding, with the messages of a Kubernetes 1.35 API server.

use mainstay_schema::builtin::definition;
use mainstay_schema::{form, strict};
use serde_json::{Value, json};

fn decode_error(name: &str, mut value: Value) -> String {
    strict::decode(definition(name).unwrap(), &mut value).unwrap_err().to_string()
}

#[test]
fn values_of_wrong_types_are_rejected_with_the_errors_of_go() {
    let deployment = "api.apps.v1.Deployment";
    let pod = "api.core.v1.Pod";
    let surge =
        |value: Value| json!({"spec": {"strategy": {"rollingUpdate": {"maxSurge": value}}}});
    let cpu =
        |value: Value| json!({"spec": {"containers": [{"resources": {"limits": {"cpu": value}}}]}});
    let field = "into Go struct field";
    let quantities = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'";
    for (name, value, words) in [
        (deployment, json!({"spec": {"replicas": "3"}}), format!("json: cannot unmarshal string {field} DeploymentSpec.spec.replicas of type int32")),
        (deployment, json!({"spec": {"replicas": 3.5}}), format!("json: cannot unmarshal number 3.5 {field} DeploymentSpec.spec.replicas of type int32")),
        (deployment, json!({"spec": {"replicas": 3_000_000_000_u64}}), format!("json: cannot unmarshal number 3000000000 {field} DeploymentSpec.spec.replicas of type int32")),
        (deployment, json!({"metadata": {"labels": {"a": 1}}}), format!("json: cannot unmarshal number {field} ObjectMeta.metadata.labels of type string")),
        (deployment, json!({"spec": {"template": {"spec": {"containers": {}}}}}), format!("json: cannot unmarshal object {field} PodSpec.spec.template.spec.containers of type []v1.Container")),
        (deployment, json!({"spec": {"template": {"spec": {"containers": [{"name": 7}]}}}}), format!("json: cannot unmarshal number {field} Container.spec.template.spec.containers.name of type string")),
        (deployment, json!({"spec": {"template": {"spec": {"containers": ["x"]}}}}), format!("json: cannot unmarshal string {field} PodSpec.spec.template.spec.containers of type v1.Container")),
        (deployment, json!({"spec": "x"}), format!("json: cannot unmarshal string {field} Deployment.spec of type v1.DeploymentSpec")),
        (deployment, json!({"metadata": {"creationTimestamp": "now"}}), "parsing time \"now\" as \"2006-01-02T15:04:05Z07:00\": cannot parse \"now\" as \"2006\"".to_owned()),
        (deployment, json!({"metadata": {"creationTimestamp": "2020-01-02"}}), "parsing time \"2020-01-02\" as \"2006-01-02T15:04:05Z07:00\": cannot parse \"\" as \"T\"".to_owned()),
        (deployment, json!({"metadata": {"creationTimestamp": 5}}), format!("json: cannot unmarshal number {field} ObjectMeta.metadata.creationTimestamp of type string")),
        (deployment, surge(json!(1.5)), format!("json: cannot unmarshal number 1.5 {field} RollingUpdateDeployment.spec.strategy.rollingUpdate.maxSurge of type int32")),
        (deployment, surge(json!(true)), format!("json: cannot unmarshal bool {field} RollingUpdateDeployment.spec.strategy.rollingUpdate.maxSurge of type int32")),
        (pod, cpu(json!("x")), quantities.to_owned()),
        (pod, cpu(json!(true)), quantities.to_owned()),
        ("api.core.v1.Secret", json!({"data": {"a": "***"}}), "illegal base64 data at input byte 0".to_owned()),
        ("api.core.v1.Secret", json!({"data": {"a": 5}}), format!("json: cannot unmarshal number {field} Secret.data of type []uint8")),
        ("api.core.v1.Secret", json!({"data": []}), format!("json: cannot unmarshal array {field} Secret.data of type map[string][]uint8")),
    ] {
        assert_eq!(decode_error(name, value), words);
    }
}

#[test]
fn decoding_drops_unknown_fields_and_nulls_and_keeps_empty_objects() {
    let mut value = json!({
        "metadata": {"name": "x", "creationTimestamp": null, "zz": 1},
        "spec": {
            "containers": [{"name": "a", "nope": 1, "args": null, "env": [], "ports": [{"q": 1}]}],
            "volumes": [{"name": "v", "emptyDir": {}}],
            "nodeSelector": {},
        },
        "foo": {"bar": 1},
    });
    let unknown = strict::decode(definition("api.core.v1.Pod").unwrap(), &mut value).unwrap();
    assert_eq!(
        strict::message(&unknown),
        "strict decoding error: unknown field \"foo\", unknown field \"metadata.zz\", unknown field \"spec.containers[0].nope\", unknown field \"spec.containers[0].ports[0].q\""
    );
    assert_eq!(
        value,
        json!({
            "metadata": {"name": "x"},
            "spec": {
                "containers": [{"name": "a", "ports": [{"containerPort": 0}], "resources": {}}],
                "volumes": [{"name": "v", "emptyDir": {}}],
            },
            "status": {},
        })
    );
}

#[test]
fn zero_values_are_written_by_the_tags_of_their_go_fields() {
    for (name, sent, written) in [
        (
            "api.apps.v1.Deployment",
            json!({"spec": {"replicas": 0, "minReadySeconds": 0, "paused": false,
                "template": {"spec": {"containers": []}}}}),
            json!({"metadata": {}, "status": {}, "spec": {"replicas": 0, "selector": null,
                "strategy": {}, "template": {"metadata": {}, "spec": {"containers": null}}}}),
        ),
        (
            "api.rbac.v1.ClusterRole",
            json!({"metadata": {"name": ""}, "rules": []}),
            json!({"metadata": {}, "rules": null}),
        ),
        (
            "api.core.v1.Service",
            json!({"spec": {"ports": [{"port": 80}], "externalName": ""}}),
            json!({"metadata": {}, "spec": {"ports": [{"port": 80, "targetPort": 0}]},
                "status": {"loadBalancer": {}}}),
        ),
        (
            "api.core.v1.Secret",
            json!({"data": {"a": ""}, "immutable": false, "type": ""}),
            json!({"metadata": {}, "data": {"a": ""}, "immutable": false}),
        ),
        (
            "api.core.v1.ConfigMap",
            json!({"data": {"a": null}, "binaryData": {}}),
            json!({"metadata": {}, "data": {"a": ""}}),
        ),
        (
            "api.policy.v1.PodDisruptionBudget",
            json!({"spec": {"minAvailable": 0}}),
            json!({"metadata": {}, "spec": {"minAvailable": 0}, "status": {"currentHealthy": 0,
                "desiredHealthy": 0, "disruptionsAllowed": 0, "expectedPods": 0}}),
        ),
    ] {
        let definition = definition(name).unwrap();
        let mut value = sent.clone();
        assert_eq!(strict::decode(definition, &mut value), Ok(vec![]));
        form::nullify_empty_lists(definition, value.as_object_mut().unwrap());
        assert_eq!(value, written, "{name}");
        let mut again = sent.as_object().unwrap().clone();
        form::complete(definition, &mut again);
        form::nullify_empty_lists(definition, &mut again);
        if name != "api.core.v1.ConfigMap" {
            assert_eq!(Value::Object(again), written, "{name}");
        }
    }
}

#[test]
fn errors_contain_the_type_names_of_go() {
    let pod = |container| json!({"spec": {"containers": [container]}});
    for (value, words) in [
        (
            pod(json!({"imagePullPolicy": 1})),
            "json: cannot unmarshal number into Go struct field Container.spec.containers.imagePullPolicy of type v1.PullPolicy",
        ),
        (
            pod(json!({"resources": {"limits": []}})),
            "json: cannot unmarshal array into Go struct field ResourceRequirements.spec.containers.resources.limits of type v1.ResourceList",
        ),
        (
            pod(json!({"securityContext": {"capabilities": {"add": [true]}}})),
            "json: cannot unmarshal bool into Go struct field Capabilities.spec.containers.securityContext.capabilities.add of type v1.Capability",
        ),
        (
            json!({"spec": {"nodeSelector": "a"}}),
            "json: cannot unmarshal string into Go struct field PodSpec.spec.nodeSelector of type map[string]string",
        ),
    ] {
        assert_eq!(decode_error("api.core.v1.Pod", value), words);
    }
}

#[test]
fn times_and_quantities_are_normalized() {
    let mut value = json!({
        "metadata": {"creationTimestamp": "2026-01-02T03:04:05.678+01:00"},
        "spec": {"containers": [{"resources": {"limits": {"cpu": 0.5, "memory": "1024Ki", "x": 2}}}]},
    });
    strict::decode(definition("api.core.v1.Pod").unwrap(), &mut value).unwrap();
    assert_eq!(value["metadata"]["creationTimestamp"], "2026-01-02T02:04:05Z");
    let limits = &value["spec"]["containers"][0]["resources"]["limits"];
    assert_eq!(*limits, json!({"cpu": "500m", "memory": "1Mi", "x": "2"}));
    let mut lease = json!({"spec": {"renewTime": "2026-01-02T03:04:05.000000Z"}});
    strict::decode(definition("api.coordination.v1.Lease").unwrap(), &mut lease).unwrap();
    assert_eq!(lease["spec"]["renewTime"], "2026-01-02T03:04:05.000000Z");
}

#[test]
fn bytes_are_written_without_line_breaks_and_spare_bits() {
    let secret = definition("api.core.v1.Secret").unwrap();
    for (given, stored) in [("YWI=", "YWI="), ("YW\nI=\r\n", "YWI="), ("QR==", "QQ=="), ("", "")] {
        let mut value = json!({"data": {"a": given}});
        strict::decode(secret, &mut value).unwrap();
        assert_eq!(value["data"]["a"], stored, "{given:?}");
    }
}

#[test]
fn duplicate_keys_are_reported_and_the_last_one_wins() {
    let parsed =
        strict::parse(br#"{"a":{"b":1,"b":2},"c":[{"d":1},{"d":1,"d":3}],"a":{"b":4}}"#).unwrap();
    assert_eq!(parsed.value, json!({"a": {"b": 4}, "c": [{"d": 1}, {"d": 3}]}));
    assert_eq!(
        parsed.duplicates,
        [r#"duplicate field "a.b""#, r#"duplicate field "c[1].d""#, r#"duplicate field "a""#]
    );
}

#[test]
fn nesting_is_limited() {
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    assert!(strict::parse(deep.as_bytes()).is_err());
    assert!(strict::parse(b"{} x").is_err());
}
