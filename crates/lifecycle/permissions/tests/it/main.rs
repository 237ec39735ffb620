//! Permissions of extensions: reports, installer roles, differences, roles for users.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail as tests do")]

mod approval;
mod covering;
mod documented;
mod exact;
mod preflight;
mod recorded;
mod roles;

use mainstay_bundle::render::{CertManager, InstallSettings, RegistryV1Bundle};
use mainstay_bundle::{FileTree, Limits, MemoryFiles};
use mainstay_permissions::{BundleKinds, InstallManifest, RbacSubject};
use mainstay_yaml::{Options, documents};
use serde_json::Value;
use std::fs;
use std::path::Path;

/// The documents of a YAML stream.
fn read_yaml(text: &str) -> Vec<Value> {
    let all = documents(text.as_bytes(), &Options::default());
    all.map(|document| document.unwrap().value).collect()
}

/// The manifest of a YAML stream, installed into a namespace.
fn read_manifest(text: &str, namespace: &str) -> InstallManifest {
    InstallManifest::new(&read_yaml(text), &BundleKinds, namespace).unwrap()
}

/// The objects of a bundle that is installed into a namespace, in each way that the bundle supports: it
/// watches all namespaces, its own, or another one.
fn install(tree: &dyn FileTree, namespace: &str) -> Vec<Vec<Value>> {
    let Ok(bundle) = RegistryV1Bundle::read(tree, &Limits::default()) else { return Vec::new() };
    let watches = [
        None,
        Some(format!("watchNamespace: {namespace}")),
        Some("watchNamespace: watched".to_owned()),
    ];
    let rendered = watches.iter().filter_map(|config| {
        let settings = InstallSettings {
            certificates: Some(&CertManager),
            config: config.as_deref().map(str::as_bytes),
            ..InstallSettings::into_namespace(namespace)
        };
        bundle.install(&settings).ok()
    });
    rendered.collect()
}

/// A user that is no ServiceAccount.
fn user(name: &str, groups: &[&str]) -> RbacSubject {
    let groups = groups.iter().chain(&["system:authenticated"]);
    RbacSubject { user: name.to_owned(), groups: groups.map(|group| (*group).to_owned()).collect() }
}

/// The bundles among the images of a recorded step: the CSV's file tree by reference.
fn recorded_bundles(step: &Path) -> Vec<(String, MemoryFiles)> {
    let Ok(text) = fs::read_to_string(step.join("images.yaml")) else { return Vec::new() };
    let images = read_yaml(&text);
    let images = images.iter().flat_map(|list| list.as_array().unwrap());
    let bundles = images.filter_map(|image| {
        let files = image["files"].as_object()?;
        files.keys().any(|path| path.starts_with("manifests/")).then(|| {
            let texts =
                files.iter().filter_map(|(path, text)| Some((path.clone(), text.as_str()?)));
            (image["ref"].as_str().unwrap().to_owned(), texts.collect())
        })
    });
    bundles.collect()
}
