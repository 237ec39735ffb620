//! OLM v1: views, and the CustomResourceDefinitions, compared with those of upstream.

use mainstay_api::{
    AvailabilityMode, ClusterCatalog, ClusterCatalogSourceType, CrdChannel, olm_v1_cluster_roles,
    olm_v1_crds,
};
use mainstay_object::Object;
use mainstay_schema::crd;
use mainstay_testdata::{ran, unpack};
use serde_json::{Value, json};
use std::collections::BTreeMap;

const CHANNELS: [CrdChannel; 2] = [CrdChannel::Standard, CrdChannel::Experimental];

#[test]
fn olm_v1_crds_are_valid_with_their_validation_rules() {
    let names = |channel| -> Vec<String> {
        olm_v1_crds(channel)
            .iter()
            .map(|crd| crd.str(&["spec", "names", "kind"]).unwrap().to_owned())
            .collect()
    };
    assert_eq!(names(CrdChannel::Standard), ["ClusterCatalog", "ClusterExtension"]);
    assert_eq!(
        names(CrdChannel::Experimental),
        ["ClusterCatalog", "ClusterExtension", "ClusterObjectSet"]
    );
    for mut crd in CHANNELS.into_iter().flat_map(olm_v1_crds) {
        crd::default(&mut crd);
        assert_eq!(crd::validate(&crd), [], "{}", crd.name());
    }
}

/// The comparison is complete except for descriptions, the version of upstream's generator, and the order
/// of required fields.
#[test]
fn olm_v1_crds_are_those_of_upstream() {
    let Some(folder) = unpack("crds", "the original definitions") else { return };
    let mut compared = 0;
    for channel in CHANNELS {
        let mut ours: BTreeMap<String, Object> = olm_v1_crds(channel)
            .into_iter()
            .map(|crd| {
                (
                    format!(
                        "olm.operatorframework.io_{}.yaml",
                        crd.str(&["spec", "names", "plural"]).unwrap()
                    ),
                    crd,
                )
            })
            .collect();
        for entry in
            std::fs::read_dir(folder.path().join("crds/olm-v1").join(channel.as_str())).unwrap()
        {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_str().unwrap();
            let bytes = std::fs::read(&path).unwrap();
            let mut documents =
                mainstay_yaml::documents(&bytes, &mainstay_yaml::Options::default());
            let mut theirs = documents.next().unwrap().unwrap().value;
            let mut ours = ours.remove(name).unwrap_or_else(|| panic!("no {name}")).into_value();
            normalize(&mut theirs);
            normalize(&mut ours);
            let mut differences = Vec::new();
            differ("", &ours, &theirs, &mut differences);
            assert!(differences.is_empty(), "{} {name}:\n{differences:#?}", channel.as_str());
            compared += 1;
        }
        assert!(ours.is_empty(), "only ours: {:?}", ours.keys());
    }
    assert_eq!(compared, 5);
    ran(&format!("{compared} definitions of OLM v1 beside the original ones"));
}

/// Removes descriptions and the version of the generator, and sorts required fields.
fn normalize(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            // A property of this name has a schema, which is no text.
            fields.retain(|key, value| {
                key != "controller-gen.kubebuilder.io/version"
                    && !(key == "description" && value.is_string())
            });
            if let Some(Value::Array(required)) = fields.get_mut("required") {
                required.sort_by_key(ToString::to_string);
            }
            fields.values_mut().for_each(normalize);
        }
        Value::Array(items) => items.iter_mut().for_each(normalize),
        _ => {}
    }
}

/// Records the paths at which two values differ.
fn differ(path: &str, ours: &Value, theirs: &Value, differences: &mut Vec<String>) {
    match (ours, theirs) {
        (Value::Object(a), Value::Object(b)) => {
            for (key, ours) in a {
                let theirs = b.get(key).unwrap_or(&Value::Null);
                differ(&format!("{path}.{key}"), ours, theirs, differences);
            }
            let missing = b.iter().filter(|(key, _)| !a.contains_key(*key));
            differences.extend(missing.map(|(key, value)| format!("{path}.{key}: no {value}")));
        }
        (Value::Array(a), Value::Array(b)) if a.len() == b.len() => {
            for (index, (ours, theirs)) in a.iter().zip(b).enumerate() {
                differ(&format!("{path}[{index}]"), ours, theirs, differences);
            }
        }
        _ if ours != theirs => differences.push(format!("{path}: {ours} instead of {theirs}")),
        _ => {}
    }
}

#[test]
fn cluster_catalogs_survive_a_round_trip() {
    let catalog = Object::from_value(json!({
        "apiVersion": "olm.operatorframework.io/v1",
        "kind": "ClusterCatalog",
        "metadata": {"name": "a"},
        "spec": {
            "source": {"type": "Image", "image": {"ref": "q.io/a:b", "pollIntervalMinutes": 5}},
            "priority": -1,
            "availabilityMode": "Unavailable",
        },
        "status": {
            "lastUnpacked": "2024-05-06T07:08:09Z",
            "resolvedSource": {"type": "Image", "image": {"ref": "q.io/a@sha256:0"}},
            "urls": {"base": "https://a.b/catalogs/a"},
        },
    }))
    .unwrap();
    let view = ClusterCatalog::from_object(&catalog).unwrap();
    assert_eq!(view.spec.source.kind, ClusterCatalogSourceType::Image);
    assert!(!view.spec.is_available());
    assert_eq!(view.to_object().unwrap(), catalog);

    let mut empty = ClusterCatalog::new("", "a");
    assert_eq!(empty.spec.availability_mode, AvailabilityMode::default());
    assert!(empty.spec.is_available());
    empty.spec.source.kind = ClusterCatalogSourceType::Image;
    assert_eq!(
        empty.to_object().unwrap().get(&["spec"]),
        Some(&json!({"source": {"type": "Image"}}))
    );
}

#[test]
fn only_viewers_of_olm_v1_are_aggregated() {
    let roles = olm_v1_cluster_roles();
    let aggregated =
        |role: &&Object| role.label("rbac.authorization.k8s.io/aggregate-to-view").is_some();
    let names: Vec<&str> = roles.iter().filter(aggregated).map(Object::name).collect();
    assert_eq!(names, ["clustercatalog-viewer-role", "clusterextension-viewer-role"]);
    assert_eq!(roles.len(), 4);
    for role in roles.iter().filter(aggregated) {
        assert_eq!(role.array(&["rules"])[0]["verbs"], json!(["get", "list", "watch"]));
    }
}
