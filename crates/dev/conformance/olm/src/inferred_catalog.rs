//! Catalogs that were served but not recorded, reconstructed from the InstallPlans that were made
//! from them.

use anyhow::Context;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// The annotation of a planned ClusterServiceVersion with the properties of its bundle.
const PROPERTIES: &str = "/metadata/annotations/operatorframework.io~1properties";

/// The catalog `base` plus the bundles of recorded InstallPlans that it lacks.
pub(super) fn catalog(base: &str, objects: &[Value]) -> anyhow::Result<String> {
    let mut documents = Vec::new();
    for document in mainstay_yaml::documents(base.as_bytes(), &mainstay_yaml::Options::default()) {
        documents.push(document.context("read the catalog")?.value);
    }
    let mut bundles: BTreeMap<String, Vec<Value>> = BTreeMap::new();
    let plans = objects.iter().filter(|object| object["kind"] == "InstallPlan");
    for step in plans.filter_map(|plan| plan.pointer("/status/plan")?.as_array()).flatten() {
        let resource = &step["resource"];
        let shipped = ["ClusterServiceVersion", "CustomResourceDefinition"];
        if !shipped.iter().any(|kind| resource["kind"] == **kind) {
            continue;
        }
        let name = step["resolving"].as_str().unwrap_or_default();
        let is_in_base =
            |document: &Value| document["schema"] == "olm.bundle" && document["name"] == *name;
        if documents.iter().any(is_in_base) {
            continue;
        }
        let text = resource["manifest"].as_str().unwrap_or_default();
        let manifest = serde_json::from_str(text).context("read a recorded manifest")?;
        bundles.entry(name.to_owned()).or_default().push(manifest);
    }
    for (name, manifests) in bundles {
        let bundle = bundle(&name, manifests, &mut documents)?;
        documents.push(bundle);
    }
    let mut text = String::new();
    for document in documents {
        let _ = writeln!(text, "---\n{document}");
    }
    Ok(text)
}

/// Builds the `olm.bundle` blob, and adds an entry to the channel.
fn bundle(name: &str, manifests: Vec<Value>, documents: &mut [Value]) -> anyhow::Result<Value> {
    let (mut properties, mut package) = (Vec::new(), Value::Null);
    for mut manifest in manifests {
        if let Some(text) = manifest.pointer(PROPERTIES).and_then(Value::as_str) {
            let bundle_properties: Value =
                serde_json::from_str(text).context("read recorded properties")?;
            let bundle_properties =
                bundle_properties["properties"].as_array().cloned().unwrap_or_default();
            let package_property =
                bundle_properties.iter().find(|property| property["type"] == "olm.package");
            package = package_property
                .map(|property| property["value"]["packageName"].clone())
                .unwrap_or_default();
            properties.extend(bundle_properties);
        }
        let replaced = manifest.pointer("/spec/replaces").cloned().unwrap_or_default();
        let channels = documents.iter_mut().filter(|document| document["schema"] == "olm.channel");
        for entries in channels.filter_map(|channel| channel["entries"].as_array_mut()) {
            if entries.iter().any(|entry| entry["name"] == replaced) {
                entries.push(json!({"name": name, "replaces": replaced}));
            }
        }
        if let Some(metadata) = manifest["metadata"].as_object_mut() {
            metadata.retain(|key, _| key == "name");
        }
        let data = STANDARD.encode(manifest.to_string());
        properties.push(json!({"type": "olm.bundle.object", "value": {"data": data}}));
    }
    Ok(json!({
        "schema": "olm.bundle", "name": name, "package": package, "image": "",
        "properties": properties,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bundle_of_an_install_plan_is_added_to_the_catalog() {
        let base = "{schema: olm.channel, name: s, package: a, entries: [{name: a.v1}]}";
        let properties = json!({"properties": [
            {"type": "olm.package", "value": {"packageName": "a", "version": "2.0.0"}},
        ]});
        let version = json!({
            "kind": "ClusterServiceVersion", "spec": {"replaces": "a.v1"},
            "metadata": {"name": "a.v2", "namespace": "n", "annotations": {
                "operatorframework.io/properties": properties.to_string(),
            }},
        });
        let plan = json!({"kind": "InstallPlan", "status": {"plan": [
            {"resolving": "a.v2", "resource": {
                "kind": "ClusterServiceVersion", "manifest": version.to_string(),
            }},
            {"resolving": "a.v2", "resource": {"kind": "Role", "manifest": "{}"}},
        ]}});
        let text = catalog(base, &[plan]).unwrap();
        let found: Vec<Value> =
            mainstay_yaml::documents(text.as_bytes(), &mainstay_yaml::Options::default())
                .map(|document| document.unwrap().value)
                .filter(|value| !value.is_null())
                .collect();
        assert_eq!(found[0]["entries"][1], json!({"name": "a.v2", "replaces": "a.v1"}));
        assert_eq!((&found[1]["name"], &found[1]["package"]), (&json!("a.v2"), &json!("a")));
        assert_eq!(found[1]["properties"].as_array().unwrap().len(), 2);
    }
}
