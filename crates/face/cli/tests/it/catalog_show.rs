//! `mainstay catalog list` and `show`: tables, JSON and update paths.

use mainstay_clitest::TestFolder;
use serde_json::Value;

const CATALOG: &str = r#"---
schema: olm.package
name: kiwi
defaultChannel: stable
description: |
  A bird.
  It does not fly.
---
schema: olm.channel
package: kiwi
name: stable
entries:
- name: kiwi.v1.9.0
- name: kiwi.v1.10.0
  replaces: kiwi.v1.9.0
  skips: [kiwi.v1.9.1]
---
schema: olm.channel
package: kiwi
name: fast
entries:
- name: kiwi.v1.10.0
  skipRange: ">=1.0.0 <1.10.0"
- name: kiwi.v2.0.0
  replaces: kiwi.v1.10.0
---
schema: olm.bundle
package: kiwi
name: kiwi.v1.9.0
image: example.com/kiwi:v1.9.0
properties:
- type: olm.package
  value: {packageName: kiwi, version: 1.9.0}
---
schema: olm.bundle
package: kiwi
name: kiwi.v1.10.0
image: example.com/kiwi:v1.10.0
properties:
- type: olm.package
  value: {packageName: kiwi, version: 1.10.0}
- type: olm.gvk
  value: {group: birds.example.com, version: v1, kind: Kiwi}
- type: olm.gvk.required
  value: {group: trees.example.com, version: v1, kind: Fern}
- type: olm.package.required
  value: {packageName: fern, versionRange: ">=1.0.0"}
- type: olm.csv.metadata
  value: {installModes: [{type: OwnNamespace, supported: false}, {type: AllNamespaces, supported: true}]}
relatedImages:
- name: operator
  image: example.com/kiwi/operator:v1.10.0
---
schema: olm.bundle
package: kiwi
name: kiwi.v2.0.0
image: example.com/kiwi:v2.0.0
properties:
- type: olm.package
  value: {packageName: kiwi, version: 2.0.0}
---
schema: olm.deprecations
package: kiwi
entries:
- reference: {schema: olm.channel, name: stable}
  message: use fast
"#;

/// A bundle of the package.
const BUNDLE: &str = "---
schema: olm.bundle
package: kiwi
name: kiwi.vVERSION
image: example.com/kiwi:vVERSION
properties:
- type: olm.package
  value: {packageName: kiwi, version: VERSION}
";

#[test]
fn list_prints_tables() {
    let place = TestFolder::with(CATALOG);
    insta::assert_snapshot!(place.catalog("list packages c").out, @"
    PACKAGE   DEFAULT CHANNEL   HEAD           VERSION   CHANNELS   BUNDLES   DEPRECATED
    kiwi      stable            kiwi.v1.10.0   1.10.0    2          3
    ");
    insta::assert_snapshot!(place.catalog("list channels c").out, @"
    PACKAGE   CHANNEL   DEFAULT   HEAD           VERSION   ENTRIES   DEPRECATED
    kiwi      stable    yes       kiwi.v1.10.0   1.10.0    2         yes
    kiwi      fast                kiwi.v2.0.0    2.0.0     2
    ");
    insta::assert_snapshot!(place.catalog("list bundles c kiwi").out, @"
    PACKAGE   BUNDLE         VERSION   CHANNELS      DEPRECATED   IMAGE
    kiwi      kiwi.v1.9.0    1.9.0     stable                     example.com/kiwi:v1.9.0
    kiwi      kiwi.v1.10.0   1.10.0    stable,fast                example.com/kiwi:v1.10.0
    kiwi      kiwi.v2.0.0    2.0.0     fast                       example.com/kiwi:v2.0.0
    ");
}

#[test]
fn list_prints_json_and_yaml() {
    let place = TestFolder::with(CATALOG);
    let answer = place.catalog("list bundles c -o json");
    let list: Value = serde_json::from_str(&answer.out).unwrap();
    assert_eq!(list[1]["bundle"], "kiwi.v1.10.0");
    assert_eq!(list[1]["channels"], serde_json::json!(["stable", "fast"]));
    let yaml = place.catalog("list bundles c -o yaml").out;
    assert_eq!(
        mainstay_yaml::one(yaml.as_bytes(), &mainstay_yaml::Options::default()).unwrap(),
        list
    );
}

#[test]
fn show_prints_a_package_with_channels_and_bundles() {
    insta::assert_snapshot!(TestFolder::with(CATALOG).catalog("show c kiwi").out, @"
    Package:         kiwi
    Declared at:     c/catalog.yaml:2
    Description:     A bird.
    Channels:
      NAME     DEFAULT   HEAD           VERSION   ENTRIES   DEPRECATED
      stable   yes       kiwi.v1.10.0   1.10.0    2         use fast
      fast               kiwi.v2.0.0    2.0.0     2
    Bundles, oldest first:
      NAME           VERSION   CHANNELS       DEPRECATED
      kiwi.v1.9.0    1.9.0     stable
      kiwi.v1.10.0   1.10.0    stable, fast
      kiwi.v2.0.0    2.0.0     fast
    ");
}

#[test]
fn show_prints_a_bundle_with_its_update_paths() {
    let place = TestFolder::with(CATALOG);
    let by_version = place.catalog("show c kiwi 1.10.0").out;
    insta::assert_snapshot!(by_version, @"
    Bundle:          kiwi.v1.10.0
    Package:         kiwi
    Version:         1.10.0
    Image:           example.com/kiwi:v1.10.0
    Declared at:     c/catalog.yaml:35
    Install modes:   AllNamespaces
    Channels:
      stable (head)
        deprecated:  use fast
        replaces:    kiwi.v1.9.0
        skips:       kiwi.v1.9.1
      fast
        updates to:  kiwi.v2.0.0
        to the head: 1 update: kiwi.v2.0.0
        skip range:  >=1.0.0 <1.10.0
    As extension:    1 update: kiwi.v2.0.0
    Provides:
      birds.example.com/v1 Kiwi
    Requires:
      trees.example.com/v1 Fern
      package fern >=1.0.0
    Related images:
      example.com/kiwi/operator:v1.10.0
    ");
    assert_eq!(place.catalog("show c kiwi kiwi.v1.10.0").out, by_version);
    let json = place.catalog("show c kiwi v1.9.0 -o json").out;
    let bundle: Value = serde_json::from_str(&json).unwrap();
    let updates: Vec<&Value> = bundle["channels"]
        .as_array()
        .unwrap()
        .iter()
        .map(|channel| &channel["updatesTo"])
        .collect();
    assert_eq!(updates, [&serde_json::json!(["kiwi.v1.10.0"])]);
    assert_eq!(bundle["channels"][0]["path"], serde_json::json!(["kiwi.v1.10.0"]));
    assert_eq!(bundle["channels"][0]["reachesHead"], true);
    assert_eq!(bundle["otherChannels"][0]["name"], "fast");
    assert_eq!(
        bundle["otherChannels"][0]["path"],
        serde_json::json!(["kiwi.v1.10.0", "kiwi.v2.0.0"])
    );
}

#[test]
fn show_prints_update_paths_of_an_unshipped_bundle() {
    let place = TestFolder::with(CATALOG);
    insta::assert_snapshot!(place.catalog("show c kiwi kiwi.v1.9.1").out, @"
    Bundle:          kiwi.v1.9.1
    Package:         kiwi
    In catalog:      no; an installed one is still updated
    Other channels with updates for it:
      stable: 1 update: kiwi.v1.10.0
    As extension:    2 updates: kiwi.v1.10.0 → kiwi.v2.0.0
    ");
    let json = place.catalog("show c kiwi v1.5.0 -o json").out;
    let gone: Value = serde_json::from_str(&json).unwrap();
    assert_eq!((&gone["shipped"], &gone["version"]), (&false.into(), &"1.5.0".into()));
    assert_eq!(gone["otherChannels"][0]["updatesTo"], serde_json::json!(["kiwi.v1.10.0"]));
    for nowhere in ["kiwi.v0.1.0", "0.1.0"] {
        let answer = place.catalog(&format!("show c kiwi {nowhere}"));
        assert_eq!((answer.code, answer.out.as_str()), (2, ""));
    }
}

#[test]
fn stranded_bundles_are_named_with_the_reason() {
    // 1.0.0 is only skipped by 1.1.0, which 2.0.0 skips.
    let mut catalog = "\
---
schema: olm.package
name: kiwi
defaultChannel: stable
---
schema: olm.channel
package: kiwi
name: stable
entries:
- name: kiwi.v1.0.0
- name: kiwi.v1.1.0
  skips: [kiwi.v1.0.0]
- name: kiwi.v2.0.0
  skips: [kiwi.v1.1.0]
"
    .to_owned();
    for version in ["1.0.0", "1.1.0", "2.0.0"] {
        catalog += &BUNDLE.replace("VERSION", version);
    }
    let place = TestFolder::with(&catalog);
    let shown = place.catalog("show c kiwi").out;
    insta::assert_snapshot!(shown, @"
    Package:         kiwi
    Declared at:     c/catalog.yaml:2
    Channels:
      NAME     DEFAULT   HEAD          VERSION   ENTRIES   DEPRECATED
      stable   yes       kiwi.v2.0.0   2.0.0     3
    No update to the head:
      stable: kiwi.v1.0.0: only kiwi.v1.1.0 replaces or skips it, which is skipped by kiwi.v2.0.0
    Bundles, oldest first:
      NAME          VERSION   CHANNELS   DEPRECATED
      kiwi.v1.0.0   1.0.0     stable
      kiwi.v1.1.0   1.1.0     stable
      kiwi.v2.0.0   2.0.0     stable
    ");
    insta::assert_snapshot!(place.catalog("show c kiwi 1.0.0").out, @"
    Bundle:          kiwi.v1.0.0
    Package:         kiwi
    Version:         1.0.0
    Image:           example.com/kiwi:v1.0.0
    Declared at:     c/catalog.yaml:16
    Channels:
      stable
        not chosen:  skipped by kiwi.v1.1.0
        to the head: none: only kiwi.v1.1.0 replaces or skips it, which is skipped by kiwi.v2.0.0
    As extension:    2 updates: kiwi.v1.1.0 → kiwi.v2.0.0
    ");
    insta::assert_snapshot!(place.catalog("show c kiwi 1.1.0").out, @"
    Bundle:          kiwi.v1.1.0
    Package:         kiwi
    Version:         1.1.0
    Image:           example.com/kiwi:v1.1.0
    Declared at:     c/catalog.yaml:24
    Channels:
      stable
        not chosen:  skipped by kiwi.v2.0.0
        updates to:  kiwi.v2.0.0
        to the head: 1 update: kiwi.v2.0.0
        skips:       kiwi.v1.0.0
    As extension:    1 update: kiwi.v2.0.0
    ");
    let json = place.catalog("show c kiwi -o json").out;
    let package: Value = serde_json::from_str(&json).unwrap();
    let stranded = &package["channels"][0]["updates"]["stranded"];
    assert_eq!(stranded[0]["bundle"], "kiwi.v1.0.0");
}

#[test]
fn invalid_catalog_is_not_listed() {
    let place =
        TestFolder::with(&CATALOG.replace("defaultChannel: stable", "defaultChannel: slow"));
    let answer = place.catalog("list packages c");
    assert_eq!((answer.code, answer.out.as_str()), (1, ""));
    insta::assert_snapshot!(answer.err, @r#"
    error: c: the catalog cannot be used
      because catalog.yaml:4:17: invalid package "kiwi": default channel "slow" not found in channels list (the package has fast, stable)
      → see all problems with: mainstay catalog validate c
    "#);
}
