//! Extensions on file-based catalogs, and on published ones if they are available.

use mainstay_catalog::{Catalog, KeptContent, LoadOptions, MemorySource};
use mainstay_resolver::extension::{
    self, ExtensionChoice, ExtensionFailure, ExtensionFailureKind, ExtensionRequest,
    InputCatalogContent, InstalledExtensionBundle, PackageContent,
};
use mainstay_updates::Semantics;
use mainstay_version::{BundleRelease, VersionRelease};

const CATALOGS: [&str; 2] = ["catalog-certified-v4.14", "catalog-community-v4.19"];

/// The bundle that an extension gets, with that bundle installed.
fn next(
    catalog: &Catalog,
    package: &str,
    channels: &[&str],
    installed: Option<&InstalledExtensionBundle>,
) -> Result<ExtensionChoice, Box<ExtensionFailure>> {
    let request = ExtensionRequest {
        package: package.to_owned(),
        channels: channels.iter().map(|&channel| channel.to_owned()).collect(),
        ..ExtensionRequest::default()
    };
    let catalogs = [extension::InputCatalog::new("c", InputCatalogContent::Ready(catalog))];
    extension::resolve(&request, installed, &catalogs)
}

/// From each bundle, the update of an extension is that of the update graph. An extension without
/// update has none because the bundle requires other operators.
#[test]
fn extension_updates_follow_the_update_graph() {
    for name in CATALOGS {
        let Some(folder) = mainstay_testdata::unpack(name, "extensions on a published catalog")
        else {
            continue;
        };
        let options = LoadOptions { keep: KeptContent::Facts, ..LoadOptions::default() };
        let catalog = Catalog::load(folder.path(), &options).unwrap();
        let (mut requests, mut chosen) = (0, 0);
        for package in catalog.packages() {
            let content = PackageContent::of(package);
            let view = content.graph().view(Semantics::Extension, &[]).unwrap();
            for bundle in package.bundles() {
                let installed = InstalledExtensionBundle {
                    name: bundle.name.to_string(),
                    version: bundle.version.to_string(),
                    release: None,
                };
                let known = content.graph().bundle(&bundle.name).unwrap();
                let expected = view.next(&known.into()).map(|step| step.bundle.name.clone());
                let expected = expected.unwrap_or_else(|| bundle.name.clone());
                requests += 1;
                match next(&catalog, &package.name, &[], Some(&installed)) {
                    Ok(choice) => {
                        assert_eq!(choice.bundle, expected, "{} {}", package.name, bundle.name);
                        let version = VersionRelease::parse_legacy(&choice.version.to_string());
                        assert_eq!(version.unwrap(), choice.version);
                        chosen += 1;
                    }
                    Err(failure) => {
                        assert_eq!(
                            failure.kind,
                            ExtensionFailureKind::Dependency,
                            "{}",
                            failure.message
                        );
                        assert!(failure.message.contains(&*expected), "{}", failure.message);
                    }
                }
            }
        }
        assert!(chosen * 2 > requests, "{chosen} of {requests}");
        mainstay_testdata::ran(name);
    }
}

/// The bundles of a catalog in a package content.
#[test]
fn package_content_has_the_properties_of_its_bundles() {
    let text = r#"
{schema: olm.package, name: tea, defaultChannel: stable}
---
{schema: olm.channel, package: tea, name: stable, entries: [{name: tea.v1}, {name: tea.v2, replaces: tea.v1}, {name: tea-v3.0.0-7, replaces: tea.v2}]}
---
{schema: olm.bundle, package: tea, name: tea.v1, image: "x.io/tea:1", properties: [{type: olm.package, value: {packageName: tea, version: 1.0.0+4}}]}
---
{schema: olm.bundle, package: tea, name: tea.v2, image: "x.io/tea:2", properties: [{type: olm.package, value: {packageName: tea, version: 2.0.0+4, release: ""}}]}
---
{schema: olm.bundle, package: tea, name: tea-v3.0.0-7, image: "x.io/tea:3", properties: [{type: olm.package, value: {packageName: tea, version: 3.0.0, release: "7"}}, {type: olm.gvk.required, value: {group: x.io, version: v1, kind: Pot}}, {type: olm.constraint, value: {failureMessage: no, cel: {rule: "true"}}}]}
"#;
    let files: MemorySource = [("catalog.yaml", text)].into_iter().collect();
    let catalog = Catalog::load_from(&files, &LoadOptions::default()).unwrap();
    let content = PackageContent::of(catalog.package("tea").unwrap());
    let said: Vec<_> = content
        .bundles()
        .map(|bundle| {
            (
                &*bundle.name,
                &*bundle.version,
                bundle.release.as_deref(),
                bundle.dependencies().map(|property| &*property.kind).collect::<Vec<_>>(),
            )
        })
        .collect();
    assert_eq!(
        said,
        [
            ("tea-v3.0.0-7", "3.0.0", Some("7"), vec!["olm.gvk.required", "olm.constraint"]),
            ("tea.v1", "1.0.0+4", None, vec![]),
            ("tea.v2", "2.0.0+4", Some(""), vec![]),
        ]
    );
    let catalogs = [extension::InputCatalog::new("c", InputCatalogContent::Ready(&catalog))];
    for (explicit_releases, release) in [(false, Some("4")), (true, None)] {
        let request = ExtensionRequest {
            package: "tea".to_owned(),
            version: "2.0.0".to_owned(),
            explicit_releases,
            ..ExtensionRequest::default()
        };
        let choice = extension::resolve(&request, None, &catalogs).unwrap();
        assert_eq!(choice.version.release().map(BundleRelease::as_str), release);
    }
}
