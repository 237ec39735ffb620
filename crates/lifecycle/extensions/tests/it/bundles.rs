//! Bundles for tests: a ClusterServiceVersion with one Deployment, and further manifests.

use crate::olm_cluster::OlmCluster;
use serde_json::{Value, json};

/// A bundle in the format registry+v1.
pub(crate) struct TestBundle {
    package: String,
    version: String,
    csv: Value,
    files: Vec<(String, String)>,
}

impl TestBundle {
    /// A bundle that supports all namespaces: a Deployment whose account may read Pods everywhere.
    pub(crate) fn new(package: &str, version: &str) -> Self {
        let csv = json!({
            "apiVersion": "operators.coreos.com/v1alpha1", "kind": "ClusterServiceVersion",
            "metadata": {"name": format!("{package}.v{version}")},
            "spec": {
                "version": version,
                "installModes": [{"type": "AllNamespaces", "supported": true}],
                "install": {"strategy": "deployment", "spec": {
                    "clusterPermissions": [{
                        "serviceAccountName": package,
                        "rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}],
                    }],
                    "deployments": [{"name": package, "spec": {
                        "replicas": 1,
                        "selector": {"matchLabels": {"app": package}},
                        "template": {
                            "metadata": {"labels": {"app": package}},
                            "spec": {"serviceAccountName": package, "containers": [
                                {"name": "manager", "image": format!("r.example/{package}:{version}")},
                            ]},
                        },
                    }}],
                }},
            },
        });
        Self { package: package.to_owned(), version: version.to_owned(), csv, files: Vec::new() }
    }

    /// The bundle with a change of its ClusterServiceVersion.
    pub(crate) fn with(mut self, change: impl FnOnce(&mut Value)) -> Self {
        change(&mut self.csv);
        self
    }

    /// The bundle with these install modes.
    pub(crate) fn with_modes(self, supported: &[&str]) -> Self {
        let modes = ["OwnNamespace", "SingleNamespace", "MultiNamespace", "AllNamespaces"];
        let modes = modes.map(|mode| json!({"type": mode, "supported": supported.contains(&mode)}));
        self.with(|csv| csv["spec"]["installModes"] = json!(modes))
    }

    /// The bundle with Pods that behave like this; see the simulation of Pods.
    pub(crate) fn behaving(self, behaviour: &str) -> Self {
        self.with(|csv| {
            let template = "/spec/install/spec/deployments/0/spec/template/metadata";
            let metadata = csv.pointer_mut(template).unwrap();
            metadata["annotations"] = json!({"mainstay.dev/simulate": behaviour});
        })
    }

    /// The bundle with another manifest.
    pub(crate) fn with_object(mut self, object: &Value) -> Self {
        let path = format!("manifests/{}.json", self.files.len());
        self.files.push((path, object.to_string()));
        self
    }

    /// The bundle with ConfigMaps of these names, whose data has the version.
    pub(crate) fn with_configs(self, names: &[&str]) -> Self {
        let version = self.version.clone();
        names.iter().fold(self, |bundle, name| {
            bundle.with_object(&json!({
                "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name},
                "data": {"version": version},
            }))
        })
    }

    /// The bundle with the namespaced kind `KIND` of the group `example.com`, whose CustomResourceDefinition
    /// the ClusterServiceVersion owns.
    pub(crate) fn with_crd(self, kind: &str, properties: &Value) -> Self {
        let crd = crd(kind, properties);
        let name = crd["metadata"]["name"].clone();
        self.with_object(&crd).with(|csv| {
            csv["spec"]["customresourcedefinitions"] =
                json!({"owned": [{"name": name, "version": "v1", "kind": kind}]});
        })
    }

    /// The bundle with a file `metadata/properties.yaml`.
    pub(crate) fn with_properties(mut self, properties: &Value) -> Self {
        let text = json!({"properties": properties}).to_string();
        self.files.push(("metadata/properties.yaml".to_owned(), text));
        self
    }

    /// The files of the bundle, by path.
    pub(crate) fn into_files(mut self) -> Vec<(String, String)> {
        let annotations = json!({"annotations": {
            "operators.operatorframework.io.bundle.package.v1": self.package,
        }});
        self.files.push(("manifests/csv.json".to_owned(), self.csv.to_string()));
        self.files.push(("metadata/annotations.yaml".to_owned(), annotations.to_string()));
        self.files
    }

    /// Stores the image of the bundle, `r.example/PACKAGE:vVERSION`.
    pub(crate) fn store(self, olm: &OlmCluster) {
        let reference = format!("r.example/{}:v{}", self.package, self.version);
        let files = self.into_files();
        let files: Vec<(&str, &str)> =
            files.iter().map(|(path, text)| (&**path, &**text)).collect();
        olm.put_files(&reference, &files, None);
    }
}

/// The CustomResourceDefinition of a namespaced kind of the group `example.com`. Its spec has these
/// properties.
pub(crate) fn crd(kind: &str, properties: &Value) -> Value {
    let singular = kind.to_lowercase();
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{singular}s.example.com")},
        "spec": {
            "group": "example.com", "scope": "Namespaced",
            "names": {"kind": kind, "plural": format!("{singular}s"), "singular": singular},
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {
                    "spec": {"type": "object", "properties": properties},
                }}},
            }],
        },
    })
}
