//! Certificate volumes: how pods get the certificate of their server.

use super::required;
use mainstay_api::names;
use mainstay_object::Object;
use serde_json::{Map, Value, json};

/// The name of a volume, its mount path, and the file names of certificate and key.
const VOLUMES: [(&str, &str, [&str; 2]); 2] = [
    ("apiservice-cert", "/apiserver.local.config/certificates", ["apiserver.crt", "apiserver.key"]),
    ("webhook-cert", "/tmp/k8s-webhook-server/serving-certs", ["tls.crt", "tls.key"]),
];
const TEMPLATE: [&str; 2] = ["spec", "template"];

/// Mounts the certificate of a Deployment into its pods, at the paths of API servers and of webhook
/// servers. The hash of the CA is an annotation of the pods, so a new CA replaces them.
///
/// A bundle may mount the volumes at another path. Another volume at a default path is replaced.
pub(crate) fn mount(deployment: &mut Object, ca_hash: &str) {
    let secret = required::secret(deployment.name());
    let path = |rest: &[&'static str]| [&TEMPLATE, rest].concat();
    let Some(Value::Object(mut pod)) = deployment.remove(&path(&["spec"])) else { return };
    let account = pod.get("serviceAccountName").and_then(Value::as_str).unwrap_or_default();
    if account.is_empty() {
        pod.insert("serviceAccountName".to_owned(), "default".into());
    }
    for (name, place, [certificate, key]) in VOLUMES {
        let volume = json!({"name": name, "secret": {"secretName": secret, "items": [
            {"key": super::certificate::CERTIFICATE, "path": certificate},
            {"key": super::certificate::KEY, "path": key},
        ]}});
        change(&mut pod, "volumes", |volumes| {
            match volumes.iter_mut().find(|volume| volume["name"] == name) {
                Some(old) => *old = volume,
                None => volumes.push(volume),
            }
        });
        let mount = json!({"name": name, "mountPath": place});
        let add = |mounts: &mut Vec<Value>| {
            let fits = |mount: &&mut Value| mount["name"] == name || mount["mountPath"] == place;
            match mounts.iter_mut().find(fits) {
                Some(own) if own["name"] == name => {}
                Some(old) => *old = mount.clone(),
                None => mounts.push(mount.clone()),
            }
        };
        change(&mut pod, "containers", |containers| {
            for container in containers.iter_mut().filter_map(Value::as_object_mut) {
                change(container, "volumeMounts", add);
            }
        });
    }
    deployment.set(&path(&["spec"]), Value::Object(pod));
    deployment.set(&path(&["metadata", "annotations", names::CA_HASH]), ca_hash.into());
}

/// Edits a list field, which may be absent.
fn change(fields: &mut Map<String, Value>, name: &str, edit: impl FnOnce(&mut Vec<Value>)) {
    let mut items = match fields.remove(name) {
        Some(Value::Array(items)) => items,
        _ => Vec::new(),
    };
    edit(&mut items);
    if !items.is_empty() {
        fields.insert(name.to_owned(), Value::Array(items));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_certificate_volumes_are_mounted_and_replace_others_at_their_paths() {
        let mut deployment = Object::from_value(json!({
            "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d.x"},
            "spec": {"template": {"spec": {
                "volumes": [{"name": "webhook-cert", "emptyDir": {}}, {"name": "own", "emptyDir": {}}],
                "containers": [
                    {"name": "a", "volumeMounts": [
                        {"name": "own", "mountPath": "/apiserver.local.config/certificates"},
                        {"name": "webhook-cert", "mountPath": "/here"},
                    ]},
                    {"name": "b"},
                ],
            }}},
        }))
        .unwrap();
        mount(&mut deployment, "h");
        let once = deployment.clone();
        mount(&mut deployment, "h");
        assert_eq!(deployment, once);
        let pod = deployment.get(&["spec", "template", "spec"]).unwrap();
        let names: Vec<&str> = pod["volumes"]
            .as_array()
            .unwrap()
            .iter()
            .map(|volume| volume["name"].as_str().unwrap())
            .collect();
        // shows APS-07
        assert_eq!(names, ["webhook-cert", "own", "apiservice-cert"]);
        assert_eq!(pod["volumes"][0]["secret"]["secretName"], "d-x-service-cert");
        // shows APS-07 WHK-04
        assert_eq!(
            pod["volumes"][2]["secret"]["items"],
            json!([{"key": "tls.crt", "path": "apiserver.crt"}, {"key": "tls.key", "path": "apiserver.key"}])
        );
        let usual = "/apiserver.local.config/certificates";
        // shows APS-08 AT-CSV-03
        assert_eq!(
            pod["containers"][0]["volumeMounts"],
            json!([{"name": "apiservice-cert", "mountPath": usual}, {"name": "webhook-cert", "mountPath": "/here"}])
        );
        // shows APS-08 AT-CSV-03 WHK-04
        assert_eq!(
            pod["containers"][1]["volumeMounts"],
            json!([
                {"name": "apiservice-cert", "mountPath": usual},
                {"name": "webhook-cert", "mountPath": "/tmp/k8s-webhook-server/serving-certs"},
            ])
        );
        assert_eq!(pod["serviceAccountName"], "default");
        let annotations = deployment.get(&["spec", "template", "metadata", "annotations"]);
        assert_eq!(annotations, Some(&json!({"olmcahash": "h"})));
    }
}
