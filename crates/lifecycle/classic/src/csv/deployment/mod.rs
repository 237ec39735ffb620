//! Desired Deployments: the Deployments of a CSV with the config of its Subscription and the
//! proxies of the cluster.

use super::health::ExpectedDeployment;
use super::serving::pods;
use crate::permissions;
use crate::proxy::ProxySettings;
use mainstay_api::resources::CLUSTER_SERVICE_VERSION as CSV;
use mainstay_api::{ClusterServiceVersion, SubscriptionConfig, names};
use mainstay_controller::{
    gojson::{self, GoType},
    hash,
};
use mainstay_object::selector::LabelSelector;
use mainstay_object::{Object, builtin};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// The CSV, its configuration and the proxies of its Deployments.
pub(crate) struct DeploymentInputs<'a> {
    pub(crate) csv: &'a ClusterServiceVersion,
    pub(crate) config: Option<&'a SubscriptionConfig>,
    pub(crate) proxy: &'a ProxySettings,
}

impl DeploymentInputs<'_> {
    /// The Deployments of a CSV, in the order of its list. `ca_hashes` has, by Deployment, the hash
    /// of the CA that signed the certificate of its webhook or API server.
    pub(crate) fn deployments(&self, ca_hashes: &BTreeMap<String, String>) -> Vec<Object> {
        let deployments = &self.csv.spec.install.spec.deployments;
        deployments
            .iter()
            .map(|deployment| desired_deployment(self, deployment, ca_hashes.get(&deployment.name)))
            .collect()
    }
}

/// The fields of the Deployments that the health check compares.
pub(crate) fn expected_deployments(deployments: &[Object]) -> Vec<ExpectedDeployment> {
    deployments
        .iter()
        .map(|deployment| ExpectedDeployment {
            name: deployment.name().to_owned(),
            spec_hash: deployment.label(names::DEPLOYMENT_SPEC_HASH).unwrap_or_default().to_owned(),
        })
        .collect()
}

/// Whether an existing Deployment of a CSV must be replaced because its selector, which is
/// immutable, differs. A Deployment that no CSV owns stays.
pub(crate) fn must_be_replaced(old: &Object, desired: &Object) -> bool {
    let selector = |object: &Object| {
        let value = object.get(&["spec", "selector"]).cloned().unwrap_or_default();
        LabelSelector::from_value(&value).map(|selector| selector.to_string()).ok()
    };
    let owned =
        old.owner_references().iter().any(|owner_reference| owner_reference.kind == *CSV.kind);
    owned && selector(old) != selector(desired)
}

fn desired_deployment(
    inputs: &DeploymentInputs<'_>,
    deployment: &mainstay_api::DeploymentSpec,
    ca_hash: Option<&String>,
) -> Object {
    let DeploymentInputs { csv, config, proxy } = *inputs;
    let metadata = &csv.metadata;
    let mut object = Object::new(&builtin::DEPLOYMENT.gvk(), &deployment.name);
    object.set(&["metadata", "namespace"], metadata.namespace.as_str().into());
    for (key, value) in &deployment.label {
        object.set_label(key, value.as_str());
    }
    object.set_label(names::MANAGED, names::MANAGED_VALUE);
    let owner = permissions::owner_labels(&csv.kind, &metadata.namespace, &metadata.name);
    for (key, value) in owner {
        object.set(&["metadata", "labels", &key], value);
    }
    let is_component_label = |key: &str| key.starts_with(names::COMPONENT_LABEL_PREFIX);
    for (key, value) in metadata.labels.iter().filter(|(key, _)| is_component_label(key)) {
        object.set_label(key, value.as_str());
    }
    object.set(
        &["metadata", "ownerReferences"],
        json!([permissions::csv_owner(&metadata.name, &metadata.uid)]),
    );
    object.set(&["spec"], deployment.spec.clone());
    if let Some(ca_hash) = ca_hash {
        pods::mount(&mut object, ca_hash);
    }
    // The annotations of the CSV win over those of the template.
    let template: &[&str] = &["spec", "template", "metadata", "annotations"];
    let mut annotations = take_object(&mut object, template);
    annotations.extend(
        metadata.annotations.iter().map(|(key, value)| (key.clone(), value.clone().into())),
    );
    if !annotations.is_empty() {
        object.set(template, Value::Object(annotations));
    }
    let mut proxy = proxy.variables(config.map_or(&[], |config| &config.env));
    if mainstay_fault::is_on("proxies-do-not-reach-operators") {
        proxy.clear();
    }
    for_containers(&mut object, |container| merge_named(container, "env", &proxy));
    if let Some(config) = config {
        configure(&mut object, config);
    }
    let condition = json!([{"name": names::OPERATOR_CONDITION_ENV, "value": metadata.name}]);
    for_containers(&mut object, |container| {
        merge_named(container, "env", condition.as_array().map_or(&[], Vec::as_slice));
    });
    object.set(&["spec", "revisionHistoryLimit"], 1.into());
    let spec = object.get(&["spec"]).cloned().unwrap_or_default();
    object.set_label(names::DEPLOYMENT_SPEC_HASH, hash::deployment_spec(&spec));
    object.set(&["spec"], gojson::normalize(GoType::DeploymentSpec, &spec));
    object
}

/// Removes an object and returns its fields; none if it is absent.
fn take_object(object: &mut Object, path: &[&str]) -> Map<String, Value> {
    match object.remove(path) {
        Some(Value::Object(fields)) => fields,
        _ => Map::new(),
    }
}

/// `spec.config` of the Subscription, in upstream's order.
fn configure(object: &mut Object, config: &SubscriptionConfig) {
    for_containers(object, |container| {
        merge_named(container, "env", &config.env);
        merge_equal(container, "envFrom", &config.env_from);
        merge_named(container, "volumeMounts", &config.volume_mounts);
        if let Some(resources) = &config.resources {
            container.insert("resources".to_owned(), resources.clone());
        }
    });
    let pod: &[&str] = &["spec", "template", "spec"];
    let mut spec = take_object(object, pod);
    merge_named(&mut spec, "volumes", &config.volumes);
    merge_equal(&mut spec, "tolerations", &config.tolerations);
    if let Some(selector) = &config.node_selector {
        spec.insert("nodeSelector".to_owned(), json!(selector));
    }
    if let Some(affinity) = &config.affinity {
        override_affinity(&mut spec, affinity);
    }
    object.set(pod, Value::Object(spec));
    for path in
        [&["metadata", "annotations"][..], &["spec", "template", "metadata", "annotations"][..]]
    {
        let mut all = take_object(object, path);
        for (key, value) in &config.annotations {
            all.entry(key.clone()).or_insert_with(|| value.clone().into());
        }
        if !all.is_empty() {
            object.set(path, Value::Object(all));
        }
    }
}

fn for_containers(object: &mut Object, mut change: impl FnMut(&mut Map<String, Value>)) {
    let path: &[&str] = &["spec", "template", "spec", "containers"];
    let Some(Value::Array(mut containers)) = object.remove(path) else { return };
    for container in &mut containers {
        if let Value::Object(fields) = container {
            change(fields);
        }
    }
    object.set(path, Value::Array(containers));
}

/// Merges a list by name: an entry replaces the existing entry of the same name, or is appended.
fn merge_named(fields: &mut Map<String, Value>, list: &str, new: &[Value]) {
    merge(fields, list, new, |old, new| old.get("name") == new.get("name"), true);
}

/// Appends the entries that are not in the list yet.
fn merge_equal(fields: &mut Map<String, Value>, list: &str, new: &[Value]) {
    merge(fields, list, new, |old, new| old == new, false);
}

fn merge(
    fields: &mut Map<String, Value>,
    list: &str,
    new: &[Value],
    same: impl Fn(&Value, &Value) -> bool,
    replace: bool,
) {
    if new.is_empty() {
        return;
    }
    let mut all = match fields.remove(list) {
        Some(Value::Array(items)) => items,
        _ => Vec::new(),
    };
    for item in new {
        match all.iter_mut().find(|old| same(old, item)) {
            Some(old) if replace => *old = item.clone(),
            Some(_) => {}
            None => all.push(item.clone()),
        }
    }
    fields.insert(list.to_owned(), Value::Array(all));
}

/// Merges `affinity` into the pod spec. An empty affinity removes all. Otherwise `nodeAffinity`,
/// `podAffinity` and `podAntiAffinity` are merged: absent keeps the old value, `{}` removes it, and
/// any other value replaces it.
fn override_affinity(spec: &mut Map<String, Value>, affinity: &Value) {
    let empty = |value: &Value| value.as_object().is_some_and(Map::is_empty);
    let old = match spec.remove("affinity") {
        Some(Value::Object(fields)) if !fields.is_empty() => Some(fields),
        _ => None,
    };
    if empty(affinity) {
        return;
    }
    let Some(mut fields) = old else {
        spec.insert("affinity".to_owned(), affinity.clone());
        return;
    };
    for part in ["nodeAffinity", "podAffinity", "podAntiAffinity"] {
        match affinity.get(part) {
            None | Some(Value::Null) => {}
            Some(value) if empty(value) => {
                fields.remove(part);
            }
            Some(value) => {
                fields.insert(part.to_owned(), value.clone());
            }
        }
    }
    if !fields.is_empty() {
        spec.insert("affinity".to_owned(), Value::Object(fields));
    }
}

#[cfg(test)]
mod overrides;

#[cfg(test)]
mod tests {
    use super::*;

    fn desired_deployments(
        csv: &ClusterServiceVersion,
        config: Option<&SubscriptionConfig>,
        proxy: &ProxySettings,
    ) -> Vec<Object> {
        DeploymentInputs { csv, config, proxy }.deployments(&BTreeMap::new())
    }

    fn csv(spec: &Value) -> ClusterServiceVersion {
        let object = Object::from_value(json!({
            "apiVersion": "operators.coreos.com/v1alpha1", "kind": "ClusterServiceVersion",
            "metadata": {
                "name": "a.v1", "namespace": "ns", "uid": "u", "annotations": {"source": "csv"},
            },
            "spec": {"displayName": "A", "install": {"strategy": "deployment", "spec": {
                "deployments": [{"name": "d", "spec": spec, "label": {"team": "x", "olm.owner": "y"}}],
            }}},
        }))
        .unwrap();
        ClusterServiceVersion::from_object(&object).unwrap()
    }

    fn container(env: &Value) -> Value {
        json!({"template": {
            "metadata": {"annotations": {"source": "template", "kept": "yes"}},
            "spec": {"containers": [{"name": "c", "env": env, "resources": {"limits": {"cpu": "1000m"}}}]},
        }})
    }

    #[test]
    fn annotations_of_the_csv_win_and_owner_labels_cannot_be_overridden() {
        let deployment = &desired_deployments(
            &csv(&container(&json!([{"name": "A", "value": "1"}]))),
            None,
            &ProxySettings::default(),
        )[0];
        assert_eq!(deployment.label("olm.owner"), Some("a.v1"));
        assert_eq!(deployment.label("team"), Some("x"));
        let template = deployment.get(&["spec", "template", "metadata", "annotations"]).unwrap();
        assert_eq!(*template, json!({"source": "csv", "kept": "yes"}));
        let container = &deployment.array(&["spec", "template", "spec", "containers"])[0];
        assert_eq!(
            container["env"],
            json!([{"name": "A", "value": "1"}, {"name": "OPERATOR_CONDITION_NAME", "value": "a.v1"}])
        );
        assert_eq!(container["resources"]["limits"]["cpu"], "1");
        assert_eq!(deployment.i64(&["spec", "revisionHistoryLimit"]), Some(1));
        assert_eq!(deployment.owner_references()[0].uid, "u");
    }

    #[test]
    fn the_subscription_config_adds_replaces_and_removes_fields() {
        let mut spec = container(&json!([{"name": "A", "value": "1"}]));
        spec["template"]["spec"]["affinity"] =
            json!({"nodeAffinity": {"x": 1}, "podAffinity": {"y": 1}});
        let config: SubscriptionConfig = serde_json::from_value(json!({
            "env": [{"name": "A", "value": "2"}, {"name": "B", "value": "3"}],
            "tolerations": [{"key": "t"}],
            "nodeSelector": {"disk": "ssd"},
            "resources": {"requests": {"memory": "1Gi"}},
            "affinity": {"nodeAffinity": {}},
            "annotations": {"source": "subscription", "new": "one"},
            "volumes": [{"name": "v", "emptyDir": {}}],
            "volumeMounts": [{"name": "v", "mountPath": "/v"}],
        }))
        .unwrap();
        let deployment =
            &desired_deployments(&csv(&spec), Some(&config), &ProxySettings::default())[0];
        let pod = deployment.get(&["spec", "template", "spec"]).unwrap();
        let container = &pod["containers"][0];
        // shows SUB-10
        assert_eq!(container["env"][0], json!({"name": "A", "value": "2"}));
        assert_eq!(container["env"][1]["name"], "B");
        // shows SUB-10
        assert_eq!(container["resources"], json!({"requests": {"memory": "1Gi"}}));
        // shows SUB-10
        assert_eq!(container["volumeMounts"][0]["mountPath"], "/v");
        // shows SUB-10
        assert_eq!(pod["nodeSelector"], json!({"disk": "ssd"}));
        // shows SUB-10
        assert_eq!(pod["tolerations"], json!([{"key": "t"}]));
        assert_eq!(pod["affinity"].get("nodeAffinity"), None);
        assert_eq!(deployment.annotation("new"), Some("one"));
        assert_eq!(deployment.annotation("source"), Some("subscription"));
        let template = deployment.get(&["spec", "template", "metadata", "annotations"]).unwrap();
        assert_eq!(*template, json!({"source": "csv", "kept": "yes", "new": "one"}));
    }

    #[test]
    fn containers_get_the_proxies_of_the_cluster_unless_the_subscription_config_sets_one() {
        let proxy = ProxySettings { https: "http://p".into(), ..ProxySettings::default() };
        let csv = csv(&container(&json!([{"name": "HTTPS_PROXY", "value": "the bundle's"}])));
        let env = |config: Option<Value>| {
            let config: Option<SubscriptionConfig> =
                config.map(|json| serde_json::from_value(json).unwrap());
            let deployment = desired_deployments(&csv, config.as_ref(), &proxy).remove(0);
            deployment.array(&["spec", "template", "spec", "containers"])[0]["env"].clone()
        };
        let condition = json!({"name": "OPERATOR_CONDITION_NAME", "value": "a.v1"});
        let https = |value: &str| json!({"name": "HTTPS_PROXY", "value": value});
        // shows PRX-01
        assert_eq!(env(None), json!([https("http://p"), condition]));
        let http = json!({"name": "HTTP_PROXY", "value": "http://q"});
        // shows SUB-11
        assert_eq!(
            env(Some(json!({"env": [http]}))),
            json!([https("the bundle's"), http, condition])
        );
    }

    #[test]
    fn only_a_deployment_of_a_csv_with_another_selector_is_replaced() {
        let deployment = |owner: &str, app: &str, replicas: u32| {
            let object = json!({
                "metadata": {"ownerReferences": [{"apiVersion": "v1", "kind": owner, "name": "o", "uid": "1"}]},
                "spec": {"replicas": replicas, "selector": {"matchLabels": {"app": app}}},
            });
            Object::from_value(object).unwrap()
        };
        let desired = deployment("ClusterServiceVersion", "new", 1);
        for (owner, app, replaced) in [
            ("ClusterServiceVersion", "old", true),
            ("ClusterServiceVersion", "new", false),
            ("Operator", "old", false),
        ] {
            assert_eq!(
                must_be_replaced(&deployment(owner, app, 2), &desired),
                replaced,
                "{owner} {app}"
            );
        }
    }
}
