//! Specification rows about CustomResourceDefinitions that no other test shows.

use crate::dependencies::wait_until_latest;
use crate::olm_cluster::{OlmCluster, crd};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use mainstay_api::resources::CLUSTER_SERVICE_VERSION;
use mainstay_client::DeleteOptions;
use mainstay_object::{Object, Resource, builtin};
use serde_json::{Value, json};
use std::time::Duration;

const ANVIL: Resource = Resource::namespaced("forge.example.com", "v1", "Anvil", "anvils");
const NAME: &str = "anvils.forge.example.com";

fn object(value: Value) -> Object {
    Object::from_value(value).unwrap()
}

/// A version of a CRD: its name, whether it is served, and its schema.
fn crd_version(name: &str, served: bool, schema: &Value) -> Value {
    json!({
        "name": name, "served": served, "storage": name == "v1",
        "schema": {"openAPIV3Schema": schema},
    })
}

fn crd_with_versions(versions: &[Value]) -> Value {
    let mut crd = crd();
    crd["spec"]["versions"] = versions.into();
    crd
}

/// Publishes a catalog with one version of `anvil` that contains a CRD.
fn publish_crd(olm: &OlmCluster, definition: &Value) {
    olm.publish_edited(&["1.0.0"], |_, bundle| {
        bundle["properties"][3]["value"]["data"] = BASE64.encode(definition.to_string()).into();
    });
}

/// Installs a bundle whose CRD replaces an existing one with an object; returns the error of the
/// InstallPlan.
async fn replacement_error(old: &Value, anvil: &Value, new: &Value) -> Option<String> {
    replacement_error_beside(false, old, anvil, new).await
}

/// Like [`replacement_error`]; with `other`, another CSV was installed with the existing CRD.
async fn replacement_error_beside(
    other: bool,
    old: &Value,
    anvil: &Value,
    new: &Value,
) -> Option<String> {
    let mut olm = OlmCluster::start(&[]).await;
    olm.stop_controllers().await;
    olm.timeouts.plan = Duration::from_millis(300);
    olm.start_controllers().await;
    let mut old = old.clone();
    if other {
        apply_csv(&olm, "default", "rival.v1", false).await;
        old["metadata"]["annotations"] =
            json!({"operatorframework.io/installed-alongside-1": "default/rival.v1"});
    }
    olm.cluster.apply(object(old)).await;
    let crds = &builtin::CUSTOM_RESOURCE_DEFINITION;
    olm.cluster.wait_for_condition(crds, None, NAME, "Established").await;
    let mut first = anvil.clone();
    first["apiVersion"] = "forge.example.com/v1".into();
    first["kind"] = "Anvil".into();
    first["metadata"]["name"] = "first".into();
    first["metadata"]["namespace"] = "team".into();
    olm.cluster.apply(object(first)).await;
    publish_crd(&olm, new);
    olm.apply_group("og").await;
    olm.subscribe(json!({})).await;
    let phase = |plan: &Object| plan.str(&["status", "phase"]).unwrap_or_default().to_owned();
    let over = move |all: &[&Object]| {
        all.first().is_some_and(|plan| matches!(&*phase(plan), "Complete" | "Failed"))
    };
    let plan = olm.wait_for_plans(over).await.remove(0);
    (phase(&plan) == "Failed").then(|| plan.str(&["status", "message"]).unwrap().to_owned())
}

/// A schema of objects whose `spec` has these fields.
fn schema_with_spec(fields: &Value) -> Value {
    json!({"type": "object", "properties": {"spec": {"type": "object", "properties": fields}}})
}

#[tokio::test]
async fn crd_replaces_another_if_all_objects_are_valid_in_the_versions_served_by_both() {
    let size = |more: Value| {
        let mut field = json!({"type": "integer"});
        field.as_object_mut().unwrap().extend(more.as_object().cloned().unwrap());
        schema_with_spec(&json!({"size": field}))
    };
    let (wide, narrow) = (size(json!({})), size(json!({"maximum": 5})));
    let labels = schema_with_spec(&json!({"labels": {
        "type": "object", "additionalProperties": {"type": "string", "maxLength": 9},
    }}));
    let numbers = schema_with_spec(&json!({"labels": {
        "type": "object", "additionalProperties": {"type": "integer"},
    }}));
    let big = json!({"spec": {"size": 30}});
    let labelled = json!({
        "metadata": {"labels": {"forge.example.com/hive": "a", "plain": ""}},
        "spec": {"labels": {"forge.example.com/hive": "yes"}},
    });
    let one = |schema: &Value| crd_with_versions(&[crd_version("v1", true, schema)]);
    let two = |schema: &Value, served: bool, other: &Value| {
        crd_with_versions(&[crd_version("v1", true, schema), crd_version("v2", served, other)])
    };
    let strict = "updated validation is too restrictive: [].spec.size: Invalid value: 30";
    let cases = [
        // Valid and invalid objects.
        (one(&wide), &big, one(&wide), None),
        (one(&wide), &big, one(&narrow), Some(strict)),
        // Of several versions, those that both CRDs serve count.
        (two(&wide, true, &wide), &big, two(&wide, true, &narrow), Some(strict)),
        (two(&wide, true, &wide), &big, two(&wide, false, &narrow), None),
        (two(&wide, false, &wide), &big, two(&wide, true, &narrow), None),
        (one(&wide), &big, two(&wide, true, &narrow), None),
        // Maps with arbitrary keys, in the object and in its labels.
        (one(&labels), &labelled, one(&labels), None),
        (
            one(&labels),
            &labelled,
            one(&numbers),
            Some("[].spec.labels.forge.example.com/hive: Invalid value: \"string\""),
        ),
    ];
    let outcomes = cases.iter().map(|(old, anvil, new, _)| replacement_error(old, anvil, new));
    let outcomes = futures::future::join_all(outcomes).await;
    for (at, (outcome, (_, _, _, wanted))) in outcomes.iter().zip(&cases).enumerate() {
        match (outcome, wanted) {
            (None, None) => {}
            (Some(outcome), Some(wanted)) => {
                // shows K08
                assert!(outcome.contains("Kind=Anvil \"team/first\": "), "case {at}: {outcome}");
                // shows K08
                assert!(outcome.contains(wanted), "case {at}: {outcome}");
            }
            other => panic!("case {at}: {other:?}"),
        }
    }
}

/// A schema of the size that operators ship, with many pod specs.
fn large_schema(strict: bool) -> Value {
    let text = || json!({"type": "string", "description": "What it is for. ".repeat(12)});
    let toleration = json!({
        "type": "object", "properties": {
            "key": text(), "value": text(), "effect": text(),
            "operator": {"type": "string", "enum": ["Exists", "Equal"]},
            "tolerationSeconds": {
                "type": "integer", "format": "int64", "maximum": if strict { 10 } else { 1000 },
            },
        },
    });
    let term = json!({"type": "object", "properties": {
        "weight": {"type": "integer", "format": "int32"},
        "match": {"type": "array", "items": {"type": "object", "properties": {
            "key": text(), "operator": text(),
            "values": {"type": "array", "items": {"type": "string"}},
        }}},
    }});
    let quantity = json!({
        "anyOf": [{"type": "integer"}, {"type": "string"}], "x-kubernetes-int-or-string": true,
        "pattern": "^[0-9]+(Mi|Gi|m)?$",
    });
    let part = json!({"type": "object", "properties": {
        "tolerations": {"type": "array", "items": toleration},
        "affinity": {"type": "array", "items": term},
        "limits": {"type": "object", "additionalProperties": quantity},
        "image": text(), "name": text(), "metadata": {"type": "object"}, "note": text(),
    }});
    let parts = (0..50).map(|at| (format!("part{at}"), part.clone()));
    schema_with_spec(&Value::Object(parts.collect()))
}

#[tokio::test]
async fn object_of_a_very_large_crd_is_validated() {
    let size = large_schema(false).to_string().len();
    assert!(size > 123_000, "{size}");
    let part = json!({
        "tolerations": [
            {"key": "gpu", "operator": "Exists", "effect": "NoSchedule"},
            {"key": "gone", "operator": "Equal", "value": "yes", "tolerationSeconds": 300},
        ],
        "affinity": [{"weight": 1, "match": [{"key": "a", "operator": "In", "values": ["b"]}]}],
        "limits": {"cpu": 2, "memory": "4Gi"},
    });
    let anvil = json!({"spec": {"part0": part, "part49": part}});
    let crd = |schema: &Value| crd_with_versions(&[crd_version("v1", true, schema)]);
    let (loose, strict) = (crd(&large_schema(false)), crd(&large_schema(true)));
    let (valid, bad) = tokio::join!(
        replacement_error(&loose, &anvil, &loose),
        replacement_error(&loose, &anvil, &strict)
    );
    // shows K08
    assert_eq!(valid, None);
    let bad = bad.unwrap();
    // shows K08
    assert!(bad.contains("[].spec.part0.tolerations[1].tolerationSeconds: Invalid value: 300"));
    assert!(bad.contains("[].spec.part49.tolerations[1].tolerationSeconds: Invalid value: 300"));
}

#[tokio::test]
async fn crd_of_a_removed_api_version_reports_the_remedy() {
    let mut olm = OlmCluster::start(&[]).await;
    olm.stop_controllers().await;
    olm.timeouts.plan = Duration::from_millis(300);
    olm.start_controllers().await;
    let mut old = crd();
    old["apiVersion"] = "apiextensions.k8s.io/v1beta1".into();
    old["spec"]["version"] = "v1".into();
    publish_crd(&olm, &old);
    olm.apply_group("og").await;
    olm.subscribe(json!({})).await;
    let failed = |all: &[&Object]| {
        all.first().is_some_and(|plan| plan.str(&["status", "phase"]) == Some("Failed"))
    };
    let plan = olm.wait_for_plans(failed).await.remove(0);
    // shows K08 E061
    assert_eq!(
        plan.str(&["status", "message"]),
        Some(
            "api-server resource not found installing CustomResourceDefinition anvils.forge.example.com: GroupVersionKind apiextensions.k8s.io/v1beta1, Kind=CustomResourceDefinition not found on the cluster. This API may have been deprecated and removed, see https://kubernetes.io/docs/reference/using-api/deprecation-guide/ for more information."
        )
    );
}

#[tokio::test]
async fn crd_with_two_versions_is_upgraded_if_all_objects_stay_valid_in_served_versions() {
    let size = |most: u32| schema_with_spec(&json!({"size": {"type": "integer", "maximum": most}}));
    let old = crd_with_versions(&[
        crd_version("v1", true, &size(99)),
        crd_version("v2", true, &size(99)),
    ]);
    let without = crd_with_versions(&[crd_version("v1", true, &size(99))]);
    let strict =
        crd_with_versions(&[crd_version("v1", true, &size(5)), crd_version("v2", true, &size(99))]);
    let more = crd_with_versions(&[
        crd_version("v1", true, &size(100)),
        crd_version("v2", true, &size(99)),
        crd_version("v3", true, &size(5)),
    ]);
    let big = json!({"spec": {"size": 30}});
    let cases = [
        (&without, Some("the new CRD does not have version v2, which is served")),
        (&strict, Some("updated validation is too restrictive: [].spec.size: Invalid value: 30")),
        (&more, None),
    ];
    let outcomes = cases.iter().map(|(new, _)| replacement_error_beside(true, &old, &big, new));
    let outcomes = futures::future::join_all(outcomes).await;
    for (outcome, (new, wanted)) in outcomes.iter().zip(cases) {
        match (outcome, wanted) {
            (None, None) => {}
            (Some(outcome), Some(wanted)) => {
                // shows AT-CRU-02
                assert!(outcome.contains(wanted), "{outcome}");
            }
            other => panic!("{new}: {other:?}"),
        }
    }
    // Without another CSV, the new CRD decides the served versions alone.
    // shows CRU-01 AT-CRU-01
    assert_eq!(replacement_error(&old, &big, &without).await, None);
}

/// Applies a CSV, or a copied CSV.
async fn apply_csv(olm: &OlmCluster, namespace: &str, name: &str, copy: bool) {
    let mut csv = json!({
        "apiVersion": "operators.coreos.com/v1alpha1", "kind": "ClusterServiceVersion",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"displayName": "Other", "install": {
            "strategy": "deployment", "spec": {"deployments": []},
        }},
    });
    if copy {
        csv["metadata"]["labels"] = json!({"olm.copiedFrom": "elsewhere"});
    }
    olm.cluster.apply(object(csv)).await;
}

#[tokio::test]
async fn crd_has_annotations_of_the_csvs_that_own_it_while_they_exist() {
    const PREFIX: &str = "operatorframework.io/installed-alongside-";
    let olm = OlmCluster::start(&[]).await;
    let mut old = crd();
    let named = |end: &str| format!("{PREFIX}{end}");
    old["metadata"]["annotations"] = json!({
        "mine": "stays",
        named("1"): "default/there.v1",
        named("2"): "default/gone.v1",
        named("3"): "default/copy.v1",
        named("4"): "no-version",
    });
    apply_csv(&olm, "default", "there.v1", false).await;
    apply_csv(&olm, "default", "copy.v1", true).await;
    olm.cluster.apply(object(old)).await;
    let crds = &builtin::CUSTOM_RESOURCE_DEFINITION;
    olm.cluster.wait_for_condition(crds, None, NAME, "Established").await;
    let mut new = crd();
    // As in a bundle that was exported from a cluster.
    new["metadata"]["annotations"] =
        json!({"bundle": "has", named("5"): "default/gone.v2", named("6"): "default/there.v1"});
    let publish = |versions: &[&str]| {
        olm.publish_edited(versions, |_, bundle| {
            bundle["properties"][3]["value"]["data"] = BASE64.encode(new.to_string()).into();
        });
    };
    publish(&["1.0.0"]);
    olm.apply_group("og").await;
    olm.subscribe(json!({})).await;
    wait_until_latest(&olm, "anvil", "anvil.v1.0.0").await;
    let cluster = olm.cluster.cluster();
    let found = async || {
        let crd = cluster.get(crds, None, NAME).await.unwrap();
        assert_eq!(
            [crd.annotation("mine"), crd.annotation("bundle")],
            [Some("stays"), Some("has")]
        );
        let mut all: Vec<String> = crd
            .annotations()
            .filter(|(key, _)| key.starts_with(PREFIX))
            .map(|(_, value)| value.to_owned())
            .collect();
        all.sort();
        all
    };
    // shows K13
    assert_eq!(found().await, ["default/there.v1", "team/anvil.v1.0.0"]);
    // During an upgrade both CSVs exist; the next upgrade removes the annotation of the deleted
    // one.
    publish(&["1.0.0", "1.1.0"]);
    wait_until_latest(&olm, "anvil", "anvil.v1.1.0").await;
    olm.cluster.wait_gone(&CLUSTER_SERVICE_VERSION, Some("team"), "anvil.v1.0.0").await;
    let params = DeleteOptions::default();
    let csvs = &CLUSTER_SERVICE_VERSION;
    cluster.delete(csvs, Some("default"), "there.v1", &params).await.unwrap();
    publish(&["1.0.0", "1.1.0", "1.2.0"]);
    wait_until_latest(&olm, "anvil", "anvil.v1.2.0").await;
    // shows K13 E069
    assert_eq!(found().await, ["team/anvil.v1.1.0", "team/anvil.v1.2.0"]);
    let all = cluster.list(&ANVIL, None, &mainstay_client::ObjectList::default()).await;
    assert!(all.unwrap().items.is_empty());
}

#[tokio::test]
async fn unchanged_crd_skips_the_validation_of_its_objects() {
    let size = |most: u32| schema_with_spec(&json!({"size": {"type": "integer", "maximum": most}}));
    let now =
        crd_with_versions(&[crd_version("v1", true, &size(99)), crd_version("v2", true, &size(5))]);
    // The repeated step finds the CRD that it wrote before.
    // shows K08
    assert_eq!(replacement_error(&now, &json!({"spec": {"size": 30}}), &now).await, None);
}

/// A CRD whose versions are all served; the first one is the storage version.
fn crd_stored_in_first(names: &[&str]) -> Value {
    let mut versions = Vec::new();
    for (at, name) in names.iter().enumerate() {
        let mut entry =
            crd_version(name, true, &schema_with_spec(&json!({"size": {"type": "integer"}})));
        entry["storage"] = (at == 0).into();
        versions.push(entry);
    }
    crd_with_versions(&versions)
}

#[tokio::test]
async fn crd_may_change_its_storage_version_but_not_drop_a_stored_version() {
    let (one, anvil) = (crd_stored_in_first(&["v1"]), json!({"spec": {"size": 1}}));
    // shows E060
    assert_eq!(replacement_error(&one, &anvil, &one).await, None);
    // shows CRU-03 E060
    assert_eq!(replacement_error(&one, &anvil, &crd_stored_in_first(&["v2", "v1"])).await, None);
    let lost = replacement_error(&one, &anvil, &crd_stored_in_first(&["v2"])).await;
    let wanted = "risk of data loss updating \"anvils.forge.example.com\": new CRD removes version v1 that is listed as a stored version on the existing CRD";
    // shows AT-CRU-03 CRU-04 CRU-05 E060
    assert!(lost.as_ref().is_some_and(|message| message.ends_with(wanted)), "{lost:?}");
}

/// The names of the versions of the existing CRD.
async fn existing_version_names(olm: &OlmCluster) -> Vec<String> {
    let crd = olm.cluster.cluster().get(&builtin::CUSTOM_RESOURCE_DEFINITION, None, NAME).await;
    let versions = crd.unwrap().array(&["spec", "versions"]).to_vec();
    versions.iter().map(|version| version["name"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn crd_with_one_version_follows_its_csv_whoever_created_it() {
    let olm = OlmCluster::start(&[]).await;
    // A user created the CRD before, with a version that the bundle lacks.
    olm.cluster.apply(object(crd_stored_in_first(&["v1", "v0"]))).await;
    let crds = &builtin::CUSTOM_RESOURCE_DEFINITION;
    olm.cluster.wait_for_condition(crds, None, NAME, "Established").await;
    let publish = |upto: usize| {
        olm.publish_edited(&["1.0.0", "1.1.0"][..upto], |release, bundle| {
            let all: &[&str] = if release == "1.0.0" { &["v1"] } else { &["v1", "v2"] };
            let data = BASE64.encode(crd_stored_in_first(all).to_string());
            bundle["properties"][3]["value"]["data"] = data.into();
        });
    };
    publish(1);
    olm.apply_group("og").await;
    olm.subscribe(json!({})).await;
    wait_until_latest(&olm, "anvil", "anvil.v1.0.0").await;
    let complete = |count: usize| {
        olm.wait_for_plans(move |all| {
            let done = |plan: &&&Object| plan.str(&["status", "phase"]) == Some("Complete");
            all.len() == count && all.iter().filter(done).count() == count
        })
    };
    // shows E079
    let plan = complete(1).await.remove(0);
    // shows E079
    assert_eq!(existing_version_names(&olm).await, ["v1"]);
    olm.wait_until_idle().await;
    let second = complete(1).await.remove(0);
    // Its labels may be written meanwhile.
    // shows E079
    assert_eq!((second.uid(), second.get(&["status"])), (plan.uid(), plan.get(&["status"])));
    publish(2);
    wait_until_latest(&olm, "anvil", "anvil.v1.1.0").await;
    complete(2).await;
    // shows CRU-01 E079
    assert_eq!(existing_version_names(&olm).await, ["v1", "v2"]);
}
