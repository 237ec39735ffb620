//! `cargo xtask sample`: writes the sample catalog of `mainstay demo`.
//!
//! It is a file-based catalog with one folder per package and every manifest inline as
//! `olm.bundle.object`. Inline manifests are Base64, which is hard to edit by hand, so the packages
//! are described here and the files are generated. The channels of the four packages have every
//! kind of edge (replaces, skips, skipRange), one deprecation and every install mode, and one
//! package requires another.

use anyhow::{Context, bail};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

/// The description of a package.
struct Package {
    name: &'static str,
    display: &'static str,
    kind: &'static str,
    plural: &'static str,
    group: &'static str,
    about: &'static str,
    modes: [bool; 4],
    default_channel: &'static str,
    channels: &'static [(&'static str, &'static [Entry])],
    versions: &'static [Version],
    /// Group, version and kind of a required API.
    needs: Option<(&'static str, &'static str, &'static str)>,
    /// `(schema, name, message)` of deprecations.
    deprecated: &'static [(&'static str, &'static str, &'static str)],
}

/// A channel entry: version, replaced version, skipped versions, skip range.
type Entry = (&'static str, Option<&'static str>, &'static [&'static str], Option<&'static str>);

/// A bundle: its version number, the fields of its API, and whether it reads nodes cluster-wide.
struct Version {
    number: &'static str,
    fields: &'static [&'static str],
    watches_nodes: bool,
}

const fn version(
    number: &'static str,
    fields: &'static [&'static str],
    watches_nodes: bool,
) -> Version {
    Version { number, fields, watches_nodes }
}

/// `OwnNamespace`, `SingleNamespace`, `MultiNamespace`, `AllNamespaces`.
const ALL_INSTALL_MODES: [bool; 4] = [true, true, true, true];

const PACKAGES: &[Package] = &[
    Package {
        name: "teapot-operator",
        display: "Teapot Operator",
        kind: "Teapot",
        plural: "teapots",
        group: "brew.example.com",
        about: "Keeps teapots filled, warm and out of the way of coffee requests.",
        modes: ALL_INSTALL_MODES,
        default_channel: "stable",
        channels: &[
            (
                "stable",
                &[
                    ("1.0.0", None, &[], None),
                    ("1.1.0", Some("1.0.0"), &[], None),
                    ("1.1.1", Some("1.1.0"), &[], None),
                    ("1.2.0", Some("1.1.0"), &["1.1.1"], None),
                ],
            ),
            (
                "fast",
                &[
                    ("1.2.0", None, &[], None),
                    ("2.0.0", Some("1.2.0"), &[], Some(">=1.0.0 <2.0.0")),
                ],
            ),
        ],
        versions: &[
            version("1.0.0", &["leaves"], false),
            version("1.1.0", &["leaves", "degrees"], false),
            version("1.1.1", &["leaves", "degrees"], false),
            version("1.2.0", &["leaves", "degrees", "minutes"], true),
            version("2.0.0", &["leaves", "degrees", "minutes", "milk"], true),
        ],
        needs: None,
        deprecated: &[],
    },
    Package {
        name: "lighthouse-operator",
        display: "Lighthouse Operator",
        kind: "Lighthouse",
        plural: "lighthouses",
        group: "coast.example.com",
        about: "Turns the lights on at dusk, in the namespace it is installed in.",
        modes: [true, true, false, false],
        default_channel: "stable",
        channels: &[
            (
                "stable",
                &[("0.9.0", None, &[], None), ("1.0.0", None, &["0.9.0"], Some(">=0.8.0 <1.0.0"))],
            ),
            ("alpha", &[("0.8.0", None, &[], None)]),
        ],
        versions: &[
            version("0.8.0", &["height"], false),
            version("0.9.0", &["height"], false),
            version("1.0.0", &["height", "colour"], false),
        ],
        needs: None,
        deprecated: &[
            ("olm.channel", "alpha", "channel alpha ends here: switch to stable"),
            ("olm.bundle", "0.8.0", "0.8.0 keeps its light on all day: upgrade to 1.0.0"),
        ],
    },
    Package {
        name: "ferry-operator",
        display: "Ferry Operator",
        kind: "Ferry",
        plural: "ferries",
        group: "coast.example.com",
        about: "Runs ferries between all namespaces of the cluster.",
        modes: [false, false, false, true],
        default_channel: "2.x",
        channels: &[(
            "2.x",
            &[
                ("2.0.0", None, &[], None),
                ("2.1.0", Some("2.0.0"), &[], None),
                ("2.2.0", Some("2.1.0"), &[], None),
            ],
        )],
        versions: &[
            version("2.0.0", &["from", "to"], true),
            version("2.1.0", &["from", "to"], true),
            version("2.2.0", &["from", "to", "cars"], true),
        ],
        needs: None,
        deprecated: &[],
    },
    Package {
        name: "samovar-operator",
        display: "Samovar Operator",
        kind: "Samovar",
        plural: "samovars",
        group: "brew.example.com",
        about: "Serves the tea that teapots brew, and therefore needs the Teapot API.",
        modes: ALL_INSTALL_MODES,
        default_channel: "stable",
        channels: &[("stable", &[("0.1.0", None, &[], None)])],
        versions: &[version("0.1.0", &["cups"], false)],
        needs: Some(("brew.example.com", "v1", "Teapot")),
        deprecated: &[],
    },
];

/// Writes the files; with `check`, fails if one of them differs.
pub(crate) fn run(root: &Path, check: bool) -> anyhow::Result<()> {
    let folder = root.join("crates/face/mainstay/sample");
    for package in PACKAGES {
        let file: PathBuf = folder.join(package.name).join("catalog.yaml");
        let mut text = format!(
            "# {}. Written by `cargo xtask sample`; an edited copy works with `mainstay demo --catalog DIR`.\n",
            package.display
        );
        // The comment precedes the first document without a separator: other readers reject a
        // document of comments alone as an empty blob.
        for (at, blob) in blobs(package).iter().enumerate() {
            if at > 0 {
                text.push_str("---\n");
            }
            text.push_str(&mainstay_yaml::to_string(blob));
        }
        if check {
            let found = std::fs::read_to_string(&file).unwrap_or_default();
            if found != text {
                bail!("{} is stale: run `cargo xtask sample`", file.display());
            }
        } else {
            let parent = file.parent().context("a file has a folder")?;
            std::fs::create_dir_all(parent)
                .with_context(|| format!("create {}", parent.display()))?;
            std::fs::write(&file, text).with_context(|| format!("write {}", file.display()))?;
        }
    }
    Ok(())
}

fn blobs(package: &Package) -> Vec<Value> {
    let name = |version: &str| format!("{}.v{version}", package.name);
    let icon = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 32 32\"><circle cx=\"16\" cy=\"16\" r=\"15\" fill=\"#14532d\"/><text x=\"16\" y=\"22\" font-size=\"16\" text-anchor=\"middle\" fill=\"#fff\">{}</text></svg>",
        &package.display[..1]
    );
    let mut blobs = vec![json!({
        "schema": "olm.package",
        "name": package.name,
        "defaultChannel": package.default_channel,
        "description": package.about,
        "icon": {"base64data": STANDARD.encode(icon), "mediatype": "image/svg+xml"},
    })];
    for (channel, entries) in package.channels {
        let entries: Vec<Value> = entries
            .iter()
            .map(|(version, replaces, skips, range)| {
                let mut entry = json!({"name": name(version)});
                if let Some(replaces) = replaces {
                    entry["replaces"] = name(replaces).into();
                }
                if !skips.is_empty() {
                    entry["skips"] = skips.iter().map(|version| name(version)).collect();
                }
                if let Some(range) = range {
                    entry["skipRange"] = (*range).into();
                }
                entry
            })
            .collect();
        blobs.push(json!({"schema": "olm.channel", "package": package.name, "name": channel, "entries": entries}));
    }
    for version in package.versions {
        blobs.push(bundle(package, version));
    }
    if !package.deprecated.is_empty() {
        let entries: Vec<Value> = package
            .deprecated
            .iter()
            .map(|(schema, what, message)| {
                let what = if *schema == "olm.bundle" { name(what) } else { (*what).to_owned() };
                json!({"reference": {"schema": schema, "name": what}, "message": message})
            })
            .collect();
        blobs.push(
            json!({"schema": "olm.deprecations", "package": package.name, "entries": entries}),
        );
    }
    blobs
}

fn bundle(package: &Package, version: &Version) -> Value {
    let inline = |manifest: &Value| json!({"type": "olm.bundle.object", "value": {"data": STANDARD.encode(manifest.to_string())}});
    let mut properties = vec![
        json!({"type": "olm.package", "value": {"packageName": package.name, "version": version.number}}),
        json!({"type": "olm.gvk", "value": {"group": package.group, "version": "v1", "kind": package.kind}}),
    ];
    if let Some((group, version, kind)) = package.needs {
        properties.push(
            json!({"type": "olm.gvk.required", "value": {"group": group, "version": version, "kind": kind}}),
        );
    }
    properties.push(inline(&service_version(package, version)));
    properties.push(inline(&definition(package, version)));
    json!({
        "schema": "olm.bundle",
        "package": package.name,
        "name": format!("{}.v{}", package.name, version.number),
        "image": format!("example.com/{}-bundle:v{}", package.name, version.number),
        "properties": properties,
        "relatedImages": [{"name": "operator", "image": image(package, version)}],
    })
}

fn image(package: &Package, version: &Version) -> String {
    format!("example.com/{}:v{}", package.name, version.number)
}

fn definition(package: &Package, version: &Version) -> Value {
    let fields: serde_json::Map<String, Value> = version
        .fields
        .iter()
        .map(|field| ((*field).to_owned(), json!({"type": "string"})))
        .collect();
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{}.{}", package.plural, package.group)},
        "spec": {
            "group": package.group,
            "scope": "Namespaced",
            "names": {
                "kind": package.kind,
                "listKind": format!("{}List", package.kind),
                "plural": package.plural,
                "singular": package.kind.to_lowercase(),
            },
            "versions": [{
                "name": "v1",
                "served": true,
                "storage": true,
                "subresources": {"status": {}},
                "additionalPrinterColumns": [
                    {"name": "Ready", "type": "string", "jsonPath": ".status.conditions[?(@.type==\"Ready\")].status"},
                    {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"},
                ],
                "schema": {"openAPIV3Schema": {
                    "type": "object",
                    "description": package.about,
                    "properties": {
                        "apiVersion": {"type": "string"},
                        "kind": {"type": "string"},
                        "metadata": {"type": "object"},
                        "spec": {"type": "object", "properties": fields},
                        "status": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
                    },
                }},
            }],
        },
    })
}

fn service_version(package: &Package, version: &Version) -> Value {
    let account = package.name;
    let labels = json!({"app.kubernetes.io/name": package.name});
    let required = package.needs.map(|(group, version, kind)| {
        let plural = format!("{}s.{group}", kind.to_lowercase());
        json!([{"name": plural, "version": version, "kind": kind, "displayName": kind,
            "description": format!("The {kind} API.")}])
    });
    let mut definitions = json!({"owned": [{
        "name": format!("{}.{}", package.plural, package.group),
        "version": "v1",
        "kind": package.kind,
        "displayName": package.kind,
        "description": package.about,
    }]});
    if let Some(required) = required {
        definitions["required"] = required;
    }
    let mut strategy = json!({
        "permissions": [{
            "serviceAccountName": account,
            "rules": [
                {"apiGroups": [package.group], "resources": [package.plural, format!("{}/status", package.plural)],
                 "verbs": ["get", "list", "watch", "update", "patch"]},
                {"apiGroups": [""], "resources": ["configmaps", "services"],
                 "verbs": ["get", "list", "watch", "create", "update", "delete"]},
            ],
        }],
        "deployments": [{
            "name": package.name,
            "label": labels,
            "spec": {
                "replicas": 1,
                "selector": {"matchLabels": labels},
                "template": {
                    "metadata": {"labels": labels},
                    "spec": {
                        "serviceAccountName": account,
                        "containers": [{
                            "name": "operator",
                            "image": image(package, version),
                            "args": ["--leader-elect"],
                            "env": [{"name": "WATCH_NAMESPACE", "valueFrom": {"fieldRef": {
                                "fieldPath": "metadata.annotations['olm.targetNamespaces']"}}}],
                            "resources": {"requests": {"cpu": "10m", "memory": "32Mi"}},
                        }],
                    },
                },
            },
        }],
    });
    if version.watches_nodes {
        strategy["clusterPermissions"] = json!([{
            "serviceAccountName": account,
            "rules": [{"apiGroups": [""], "resources": ["nodes"], "verbs": ["get", "list", "watch"]}],
        }]);
    }
    let example = json!([{
        "apiVersion": format!("{}/v1", package.group),
        "kind": package.kind,
        "metadata": {"name": "example"},
        "spec": version.fields.iter().map(|field| ((*field).to_owned(), json!("some")))
            .collect::<serde_json::Map<String, Value>>(),
    }]);
    let modes = ["OwnNamespace", "SingleNamespace", "MultiNamespace", "AllNamespaces"];
    let modes: Vec<Value> = modes
        .iter()
        .zip(package.modes)
        .map(|(mode, supported)| json!({"type": mode, "supported": supported}))
        .collect();
    json!({
        "apiVersion": "operators.coreos.com/v1alpha1",
        "kind": "ClusterServiceVersion",
        "metadata": {
            "name": format!("{}.v{}", package.name, version.number),
            "annotations": {
                "alm-examples": example.to_string(),
                "capabilities": "Seamless Upgrades",
                "categories": "Developer Tools",
            },
        },
        "spec": {
            "displayName": package.display,
            "description": package.about,
            "version": version.number,
            "maturity": "stable",
            "keywords": ["sample"],
            "provider": {"name": "The Mainstay authors"},
            "maintainers": [{"name": "The Mainstay authors", "email": "sample@example.com"}],
            "links": [{"name": "Documentation", "url": "https://example.com/docs"}],
            "minKubeVersion": "1.25.0",
            "installModes": modes,
            "customresourcedefinitions": definitions,
            "install": {"strategy": "deployment", "spec": strategy},
        },
    })
}
