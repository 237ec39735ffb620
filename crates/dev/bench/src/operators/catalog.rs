//! Generated catalogs: packages with a CustomResourceDefinition, a ServiceAccount with permissions
//! and a Deployment each.

use anyhow::{Context, Result};
use base64::Engine as _;
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::path::Path;

/// A package whose installation fails: its Deployment's selector does not match its pod template.
pub(crate) const FAILING_PACKAGE: &str = "refused";

/// The name of a package.
pub(crate) fn package(number: usize) -> String {
    format!("tool-{number:04}")
}

/// The name of a ClusterServiceVersion of a package.
pub(crate) fn version(package: &str, number: usize) -> String {
    format!("{package}.v{number}.0.0")
}

/// Writes a catalog of so many packages with so many versions each, and [`FAILING_PACKAGE`].
pub(crate) fn write(folder: &Path, packages: usize, versions: usize) -> Result<()> {
    write_described(folder, packages, versions, 0)
}

/// The same, with a description of so many letters in each version.
pub(crate) fn write_described(
    folder: &Path,
    packages: usize,
    versions: usize,
    letters: usize,
) -> Result<()> {
    let description = "What it does. ".chars().cycle().take(letters).collect::<String>();
    let mut text = String::new();
    for name in (0..packages).map(package).chain([FAILING_PACKAGE.to_owned()]) {
        let entries: Vec<Value> = (1..=versions)
            .map(|number| match number {
                1 => json!({"name": version(&name, number)}),
                _ => {
                    json!({"name": version(&name, number), "replaces": version(&name, number - 1)})
                }
            })
            .collect();
        let package = json!({"schema": "olm.package", "name": name, "defaultChannel": "stable"});
        let channel =
            json!({"schema": "olm.channel", "name": "stable", "package": name, "entries": entries});
        write!(text, "{package}\n{channel}\n")?;
        for number in 1..=versions {
            writeln!(text, "{}", bundle(&name, number, &description))?;
        }
    }
    // Written atomically: the folder may be watched.
    let new = folder.join(".new");
    std::fs::write(&new, text).context("writing a catalog")?;
    std::fs::rename(&new, folder.join("catalog.json")).context("writing a catalog")
}

fn bundle(package: &str, number: usize, description: &str) -> Value {
    let object = |object: Value| {
        let data = base64::engine::general_purpose::STANDARD.encode(object.to_string());
        json!({"type": "olm.bundle.object", "value": {"data": data}})
    };
    let group = format!("{package}.example.com");
    json!({
        "schema": "olm.bundle", "name": version(package, number), "package": package,
        "image": format!("example.com/{package}-bundle:v{number}"),
        "properties": [
            {"type": "olm.package", "value": {"packageName": package, "version": format!("{number}.0.0")}},
            {"type": "olm.gvk", "value": {"group": group, "kind": "Tool", "version": "v1"}},
            object(csv(package, number, &group, description)),
            object(definition(&group)),
        ],
    })
}

/// The files of the bundle of a version, without a description: paths and texts. OLM v1 makes five objects of
/// it: a CustomResourceDefinition, a ServiceAccount, a ClusterRole with its binding, and a Deployment.
pub(crate) fn bundle_files(package: &str, number: usize) -> [(&'static str, String); 3] {
    let group = format!("{package}.example.com");
    let annotations = json!({"annotations": {
        "operators.operatorframework.io.bundle.package.v1": package,
    }});
    let mut csv = csv(package, number, &group, "");
    if let Some(install) = csv["spec"]["install"]["spec"].as_object_mut() {
        install.remove("permissions");
    }
    [
        ("manifests/csv.json", csv.to_string()),
        ("manifests/definition.json", definition(&group).to_string()),
        ("metadata/annotations.yaml", annotations.to_string()),
    ]
}

fn definition(group: &str) -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("tools.{group}")},
        "spec": {
            "group": group, "scope": "Namespaced",
            "names": {"kind": "Tool", "listKind": "ToolList", "plural": "tools", "singular": "tool"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {
                "openAPIV3Schema": {"type": "object", "properties": {"spec": {
                    "type": "object", "properties": {"size": {"type": "integer"}},
                }}},
            }}],
        },
    })
}

fn csv(package: &str, number: usize, group: &str, description: &str) -> Value {
    let modes = ["OwnNamespace", "SingleNamespace", "MultiNamespace", "AllNamespaces"]
        .map(|mode| json!({"type": mode, "supported": true}));
    let labels = json!({"app": package});
    let selected =
        if package == FAILING_PACKAGE { json!({"app": "another"}) } else { labels.clone() };
    let mut csv = json!({
        "apiVersion": "operators.coreos.com/v1alpha1", "kind": "ClusterServiceVersion",
        "metadata": {"name": version(package, number)},
        "spec": {
            "displayName": package, "version": format!("{number}.0.0"), "installModes": modes,
            "customresourcedefinitions": {"owned": [
                {"name": format!("tools.{group}"), "kind": "Tool", "version": "v1"},
            ]},
            "install": {"strategy": "deployment", "spec": {
                "permissions": [{"serviceAccountName": package, "rules": [
                    {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get", "list"]},
                ]}],
                "clusterPermissions": [{"serviceAccountName": package, "rules": [
                    {"apiGroups": [group], "resources": ["tools"], "verbs": ["*"]},
                ]}],
                "deployments": [{"name": package, "spec": {
                    "replicas": 1,
                    "selector": {"matchLabels": selected},
                    "template": {
                        "metadata": {"labels": labels},
                        "spec": {"serviceAccountName": package, "containers": [
                            {"name": "main", "image": format!("example.com/{package}:v{number}")},
                        ]},
                    },
                }}],
            }},
        },
    });
    if !description.is_empty() {
        csv["spec"]["description"] = description.into();
    }
    if number > 1 {
        csv["spec"]["replaces"] = version(package, number - 1).into();
    }
    csv
}
