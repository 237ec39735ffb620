//! ConfigMap catalogs: the content of the three lists, and errors.

use super::*;

fn data(packages: &str, versions: &str, definitions: &str) -> BTreeMap<String, String> {
    [(PACKAGES, packages), (CSVS, versions), (CRDS, definitions)]
        .map(|(key, value)| (key.to_owned(), value.to_owned()))
        .into()
}

const ONE: &str = "
- packageName: anvil
  channels: [{name: stable, currentCSV: anvil.v2}]
";
const TWO: &str = "
- {metadata: {name: anvil.v1}, spec: {version: 1.0.0}}
- metadata: {name: anvil.v2, annotations: {olm.skipRange: <2.0.0}}
  spec:
    version: 2.0.0
    replaces: anvil.v1
    skips: [anvil.v1.5]
    customresourcedefinitions:
      owned: [{name: anvils.forge.example.com, kind: Anvil, version: v1}]
      required: [{name: fires.forge.example.com, kind: Fire, version: v1}]
";
const DEFINED: &str =
    "[{kind: CustomResourceDefinition, metadata: {name: anvils.forge.example.com}}]";

#[test]
fn channels_of_a_config_map_catalog_follow_the_replaces_of_its_csvs() {
    let catalog = catalog(&data(ONE, TWO, DEFINED)).unwrap().catalog;
    let package = catalog.package("anvil").unwrap();
    assert_eq!(&*package.default_channel, "stable");
    let channel = package.channel("stable").unwrap();
    assert_eq!(&*channel.head().name, "anvil.v2");
    // shows CSV-32
    assert_eq!(channel.head().skip_range.as_deref(), Some("<2.0.0"));
    // shows CSV-31
    assert_eq!(channel.head().skips.iter().map(|skip| &**skip).collect::<Vec<_>>(), ["anvil.v1.5"]);
    assert_eq!(channel.entries().len(), 2);
    let bundle = package.bundle("anvil.v2").unwrap();
    assert_eq!(bundle.objects().unwrap().len(), 2);
    let apis: Vec<String> = bundle.provided_apis().map(|api| format!("{api:?}")).collect();
    assert!(apis[0].contains("forge.example.com"), "{apis:?}");
    assert_eq!(bundle.required_apis().count(), 1);
}

#[test]
fn bundle_has_the_crd_that_has_the_version_that_its_csv_owns() {
    const BOTH: &str = "
- metadata: {name: anvil.v1}
  spec: {version: 1.0.0, customresourcedefinitions: {owned: [{name: a.g, kind: A, version: v1alpha1}]}}
- metadata: {name: anvil.v2}
  spec:
    version: 2.0.0
    replaces: anvil.v1
    customresourcedefinitions: {owned: [{name: a.g, kind: A, version: v1}]}
";
    const DEFINED: &str = "
- {metadata: {name: a.g}, spec: {versions: [{name: v1alpha1}]}}
- {metadata: {name: a.g}, spec: {versions: [{name: v1}]}}
";
    let catalog = catalog(&data(ONE, BOTH, DEFINED)).unwrap().catalog;
    for (name, version) in [("anvil.v1", "v1alpha1"), ("anvil.v2", "v1")] {
        let objects = catalog.bundle("anvil", name).unwrap().objects().unwrap();
        let texts: Vec<String> = objects.iter().map(|object| format!("{object:?}")).collect();
        assert_eq!(texts.len(), 2);
        assert!(texts[1].contains(&format!("\"{version}\"")), "{}", texts[1]);
    }
}

#[test]
fn errors_name_the_config_map_key() {
    for (data, words) in [
        (data("{", "", ""), "the key packages: "),
        (data("a: 1", "", ""), "the key packages is no list"),
        (data(ONE, "", ""), "the head anvil.v2 of the channel stable is not in the key"),
        (data(ONE, TWO, ""), "owns anvils.forge.example.com, which is not in the key"),
        (BTreeMap::new(), "it has no key packages"),
    ] {
        let why = catalog(&data).unwrap_err().to_string();
        assert!(why.contains(words), "{why}");
    }
}

#[test]
fn packages_that_upstream_loads_are_loaded() {
    const CSVS: &str = "
- {metadata: {name: anvil.v1}, spec: {version: 1.0.0}}
- {metadata: {name: anvil.v2}, spec: {version: 1.0.0, replaces: anvil.v1}}
- {metadata: {name: bell.v1}, spec: {}}
";
    const TWICE: &str = "
- packageName: Anvil
  channels: [{name: stable, currentCSV: anvil.v1}]
- packageName: bell
  channels: [{name: stable, currentCSV: bell.v1}]
- packageName: Anvil
  channels: [{name: stable, currentCSV: anvil.v2}, {name: fast, currentCSV: anvil.v2}]
";
    let read = catalog(&data(TWICE, CSVS, "")).unwrap();
    assert_eq!(read.left_out, ["package Anvil is listed more than once, its last entry counts"]);
    let anvil = read.catalog.package("Anvil").unwrap();
    assert_eq!(&*anvil.channel("stable").unwrap().head().name, "anvil.v2");
    assert_eq!(anvil.channel("fast").unwrap().entries().len(), 2, "of one version");
    let bell = read.catalog.bundle("bell", "bell.v1").unwrap();
    assert_eq!(bell.version.to_string(), "0.0.0");
}

#[test]
fn package_that_replaces_another_has_none_of_its_bundles() {
    const PACKAGES: &str = "
- {packageName: old, channels: [{name: stable, currentCSV: old.v1}]}
- {packageName: new, channels: [{name: stable, currentCSV: new.v2}]}
";
    const CSVS: &str = "
- {metadata: {name: old.v1}, spec: {version: 1.0.0}}
- {metadata: {name: new.v1}, spec: {version: 1.0.0, replaces: old.v1}}
- {metadata: {name: new.v2}, spec: {version: 2.0.0, replaces: new.v1}}
";
    let read = catalog(&data(PACKAGES, CSVS, "")).unwrap();
    assert_eq!(read.left_out, Vec::<String>::new());
    let channel = read.catalog.package("new").unwrap().channel("stable").unwrap();
    let names: Vec<&str> = channel.entries().iter().map(|entry| &*entry.name).collect();
    assert_eq!(names, ["new.v2", "new.v1"]);
    let first = channel.entry("new.v1").unwrap();
    assert_eq!(first.replaces.as_deref(), Some("old.v1"), "from there one comes here");
}

#[test]
fn unreadable_package_is_left_out_alone() {
    const PACKAGES: &str = "
- {packageName: headless, channels: [{name: stable, currentCSV: nobody.v1}]}
- {packageName: bell, channels: [{name: stable, currentCSV: bell.v1}]}
- {packageName: odd, channels: [{name: stable, currentCSV: odd.v1}]}
- {packageName: misshapen, channels: [{name: [], currentCSV: bell.v1}]}
- {packageName: empty}
";
    const CSVS: &str = "
- {metadata: {name: bell.v1}, spec: {version: 1.0.0}}
- {metadata: {name: odd.v1}, spec: {version: one}}
- text
";
    let read = catalog(&data(PACKAGES, CSVS, "")).unwrap();
    let names: Vec<&str> = read.catalog.packages().map(|package| &*package.name).collect();
    assert_eq!(names, ["bell"], "{:?}", read.left_out);
    let said = read.left_out.join("\n");
    for words in ["package headless is left out", "version \"one\"", "misshapen", "empty"] {
        assert!(said.contains(words), "{words}: {said}");
    }
    let only = "[{packageName: headless, channels: [{name: stable, currentCSV: nobody.v1}]}]";
    let why = catalog(&data(only, CSVS, "")).unwrap_err().to_string();
    assert!(why.contains("the head nobody.v1 of the channel stable"), "{why}");
}

#[test]
fn manifests_have_the_kind_of_their_config_map_key() {
    const CSVS: &str = "
- apiVersion: v1alpha1
  kind: ClusterServiceVersion-v1
  metadata: {name: anvil.v2}
  spec:
    version: 2.0.0
    customresourcedefinitions:
      owned: [{name: a.g, kind: A, version: v1}, {name: b.g, kind: B, version: v1}]
";
    const DEFINED: &str = "
- {metadata: {name: a.g}}
- {apiVersion: apiextensions.k8s.io/v1beta1, kind: CustomResourceDefinition, metadata: {name: b.g}}
";
    let catalog = catalog(&data(ONE, CSVS, DEFINED)).unwrap().catalog;
    let objects = catalog.bundle("anvil", "anvil.v2").unwrap().objects().unwrap();
    let kinds: Vec<String> = objects
        .iter()
        .map(|object| format!("{} {}", object.api_version(), object.kind()))
        .collect();
    // shows E047
    assert_eq!(
        kinds,
        [
            "operators.coreos.com/v1alpha1 ClusterServiceVersion",
            "apiextensions.k8s.io/v1 CustomResourceDefinition",
            "apiextensions.k8s.io/v1beta1 CustomResourceDefinition",
        ]
    );
}
