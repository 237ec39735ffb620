//! Packages, their bundles and extensions for tests.

use crate::bundles::TestBundle;
use crate::olm_cluster::{OlmCluster, condition};
use mainstay_api::resources::CLUSTER_EXTENSION;
use mainstay_object::Object;
use mainstay_testkit::TestCluster;
use serde_json::{Value, json};

/// The namespace of the extensions.
pub(crate) const NAMESPACE: &str = "work";

impl OlmCluster {
    /// A cluster with the namespaces of the controllers and of the extensions, whose controllers do not run
    /// yet.
    pub(crate) async fn for_extensions() -> Self {
        Self::for_extensions_on(TestCluster::start().await).await
    }

    /// The same on a cluster that runs already.
    pub(crate) async fn for_extensions_on(cluster: TestCluster) -> Self {
        let olm = Self::stopped_on(cluster).await;
        for name in ["olmv1-system", NAMESPACE] {
            let namespace =
                json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
            olm.cluster.apply(Object::from_value(namespace).unwrap()).await;
        }
        olm
    }

    /// Stores the bundle of a version of a package: a Deployment, a role, and ConfigMaps of these names.
    pub(crate) fn put_bundle(&self, package: &str, version: &str, configs: &[&str]) {
        self.put_bundle_with(package, version, configs, &json!({}));
    }

    /// The same with an update strategy of the Deployment.
    pub(crate) fn put_bundle_with(
        &self,
        package: &str,
        version: &str,
        configs: &[&str],
        strategy: &Value,
    ) {
        let change = |csv: &mut Value| {
            csv["spec"]["install"]["spec"]["deployments"][0]["spec"]["strategy"] = strategy.clone();
        };
        TestBundle::new(package, version).with(change).with_configs(configs).store(self);
    }

    /// Creates an extension of a package, with this range of versions unless it is empty.
    pub(crate) async fn apply_extension(&self, name: &str, package: &str, version: &str) -> Object {
        self.cluster.apply(Object::from_value(extension(name, package, version)).unwrap()).await
    }

    /// Waits for an extension in a state.
    pub(crate) async fn wait_for_extension(
        &self,
        name: &str,
        predicate: impl FnMut(&Object) -> bool + Send,
    ) -> Object {
        self.cluster.wait_for(&CLUSTER_EXTENSION, None, name, predicate).await
    }

    /// Waits until an extension is installed and its Deployments are available.
    pub(crate) async fn wait_until_ready(&self, name: &str) -> Object {
        self.wait_for_extension(name, |extension| condition(extension, "Ready").0 == "True").await
    }

    /// Waits until this version is installed, and nothing is left to do.
    pub(crate) async fn wait_until_installed(&self, name: &str, version: &str) -> Object {
        self.wait_for_extension(name, |extension| {
            extension.str(&["status", "install", "bundle", "version"]) == Some(version)
                && condition(extension, "Progressing").1 == "Succeeded"
        })
        .await
    }
}

/// An extension of a package, with this range of versions unless it is empty.
pub(crate) fn extension(name: &str, package: &str, version: &str) -> Value {
    let mut extension = json!({
        "apiVersion": "olm.operatorframework.io/v1", "kind": "ClusterExtension",
        "metadata": {"name": name},
        "spec": {
            "namespace": NAMESPACE,
            "source": {"sourceType": "Catalog", "catalog": {"packageName": package}},
        },
    });
    if !version.is_empty() {
        extension["spec"]["source"]["catalog"]["version"] = version.into();
    }
    extension
}

/// A catalog with packages: each has versions, every one of which replaces the one before.
pub(crate) fn catalog(packages: &[(&str, &[&str])]) -> String {
    let mut documents: Vec<Value> = Vec::new();
    for (package, versions) in packages {
        documents
            .push(json!({"schema": "olm.package", "name": package, "defaultChannel": "stable"}));
        let entries: Vec<Value> = versions
            .iter()
            .enumerate()
            .map(|(at, version)| {
                let mut entry = json!({"name": format!("{package}.v{version}")});
                if let Some(before) = at.checked_sub(1) {
                    entry["replaces"] = format!("{package}.v{}", versions[before]).into();
                }
                entry
            })
            .collect();
        documents.push(json!({
            "schema": "olm.channel", "package": package, "name": "stable", "entries": entries,
        }));
        documents.extend(versions.iter().map(|version| {
            json!({
                "schema": "olm.bundle", "package": package, "name": format!("{package}.v{version}"),
                "image": format!("r.example/{package}:v{version}"),
                "properties": [{"type": "olm.package", "value": {
                    "packageName": package, "version": version,
                }}],
            })
        }));
    }
    let documents: Vec<String> = documents.iter().map(ToString::to_string).collect();
    documents.join("\n---\n")
}
