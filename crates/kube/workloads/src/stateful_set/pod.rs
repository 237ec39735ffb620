//! The manifests of the Pods and claims of a `StatefulSet`.

use crate::template::{self, REVISION_HASH};
use mainstay_object::{Object, builtin};
use serde_json::{Map, Value, json};

pub(super) const POD_NAME: &str = "statefulset.kubernetes.io/pod-name";
const POD_INDEX: &str = "apps.kubernetes.io/pod-index";

/// The Pod of an ordinal, from a template and the name of its revision.
pub(super) fn pod(set: &Object, template: &Value, ordinal: i64, revision: &str) -> Object {
    let name = format!("{}-{ordinal}", set.name());
    let mut pod = template::pod(set, template);
    pod.set(&["metadata", "name"], name.as_str().into());
    pod.set_label(POD_NAME, name.as_str());
    pod.set_label(POD_INDEX, ordinal.to_string());
    pod.set_label(REVISION_HASH, revision);
    pod.set(&["spec", "hostname"], name.as_str().into());
    if let Some(service) = set.get(&["spec", "serviceName"]) {
        pod.set(&["spec", "subdomain"], service.clone());
    }
    let mut volumes = pod.array(&["spec", "volumes"]).to_vec();
    for claim in set.array(&["spec", "volumeClaimTemplates"]) {
        let volume = claim["metadata"]["name"].as_str().unwrap_or_default();
        volumes.retain(|existing| existing["name"] != volume);
        volumes.push(json!({
            "name": volume, "persistentVolumeClaim": {"claimName": format!("{volume}-{name}")},
        }));
    }
    if !volumes.is_empty() {
        pod.set(&["spec", "volumes"], Value::Array(volumes));
    }
    pod
}

/// The claim of a volume claim template for the Pod of an ordinal; none if the template has no
/// name.
pub(super) fn claim(set: &Object, template: &Value, ordinal: i64) -> Option<Object> {
    let volume = template.get("metadata")?.get("name")?.as_str()?;
    let mut claim = Object::new(&builtin::POD.gvk(), "");
    claim.set(&["kind"], "PersistentVolumeClaim".into());
    let mut metadata = Map::new();
    for field in ["labels", "annotations"] {
        if let Some(value) = template["metadata"].get(field) {
            metadata.insert(field.to_owned(), value.clone());
        }
    }
    let labels = set.get(&["spec", "selector", "matchLabels"]).and_then(Value::as_object);
    for (key, value) in labels.into_iter().flatten() {
        metadata.entry("labels").or_insert_with(|| json!({}))[key] = value.clone();
    }
    metadata.insert("name".to_owned(), format!("{volume}-{}-{ordinal}", set.name()).into());
    metadata.insert("namespace".to_owned(), set.namespace().into());
    claim.set(&["metadata"], Value::Object(metadata));
    claim.set(&["spec"], template.get("spec").cloned().unwrap_or_else(|| json!({})));
    Some(claim)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pod_carries_its_name_and_claims() {
        let set = Object::from_value(json!({
            "metadata": {"name": "db", "namespace": "n", "uid": "s"},
            "spec": {
                "serviceName": "svc", "selector": {"matchLabels": {"app": "db"}},
                "volumeClaimTemplates": [{"metadata": {"name": "data"}, "spec": {"x": 1}}],
            },
        }))
        .unwrap();
        let pod = pod(&set, &json!({"spec": {}}), 3, "db-h");
        assert_eq!(pod.name(), "db-3");
        assert_eq!(pod.label(POD_NAME), Some("db-3"));
        assert_eq!(pod.label(REVISION_HASH), Some("db-h"));
        assert_eq!(pod.str(&["spec", "subdomain"]), Some("svc"));
        let volume = &pod.array(&["spec", "volumes"])[0];
        assert_eq!(volume["persistentVolumeClaim"]["claimName"], "data-db-3");
        let claim = claim(&set, &set.array(&["spec", "volumeClaimTemplates"])[0], 3).unwrap();
        assert_eq!((claim.name(), claim.label("app")), ("data-db-3", Some("db")));
    }
}
