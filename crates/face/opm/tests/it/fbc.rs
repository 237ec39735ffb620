//! Acceptance tests for file-based catalogs, by their ids, with both `opm` and `mainstay`.

use crate::opm_folder::{OpmFolder as _, with_added};
use base64::Engine as _;
use mainstay_clitest::{SOUND_CATALOG, TestFolder};
use serde_json::Value;

const IGNORED: &str = "# Ignore everything except non-object .json and .yaml files
**/*
!*.json
!*.yaml
**/objects/*.json
**/objects/*.yaml
";

/// A package of that name as YAML.
fn package(name: &str) -> String {
    SOUND_CATALOG.replace("foo", name)
}

/// A YAML stream as a JSON stream.
fn json(yaml: &str) -> String {
    let documents = mainstay_yaml::documents(yaml.as_bytes(), &mainstay_yaml::Options::default());
    let values = documents.map(|document| format!("{:#}", document.unwrap().value));
    values.collect::<Vec<_>>().join("\n")
}

/// The cells of one column of a table.
fn column(table: &str, number: usize) -> Vec<String> {
    let lines = table.lines().skip(1);
    lines.map(|line| line.split_whitespace().nth(number).unwrap_or_default().to_owned()).collect()
}

/// Asserts that both programs refuse the catalog, `mainstay` with findings for these rules.
fn both_refuse(folder: &TestFolder, rules: &[&str]) {
    let (code, found) = folder.validate_with_both();
    assert_eq!((code, found.iter().map(String::as_str).collect::<Vec<_>>()), (1, rules.to_vec()));
}

/// Asserts that only `mainstay` refuses the catalog: upstream ignores the problem.
fn only_mainstay_refuses(folder: &TestFolder, rules: &[&str]) {
    let (code, found) = folder.validate_with_both();
    assert_eq!((code, found.iter().map(String::as_str).collect::<Vec<_>>()), (0, rules.to_vec()));
}

fn both_accept(folder: &TestFolder) {
    assert_eq!(folder.validate_with_both(), (0, Vec::new()));
}

#[test]
fn at_fbc_01_and_at_19_ignored_files_are_no_part_of_the_catalog() {
    let broken = "kind: ClusterServiceVersion\n";
    let folder = TestFolder::new()
        .file("c/.indexignore", IGNORED)
        .file("c/README.md", "# No catalog\n")
        .file("c/index.yaml", package("a"))
        .file("c/x.json", json(&package("b")))
        .file("c/objects/packageB.v0.1.0.clusterserviceversion.yaml", broken);
    both_accept(&folder);
    assert_eq!(column(&folder.catalog("list packages c").out, 0), ["a", "b"]);
}

#[test]
fn at_fbc_02_and_at_19_a_tree_of_yaml_and_json_is_one_catalog() {
    let deprecations = json("schema: olm.deprecations\npackage: packagec\nentries: []\n");
    let folder = TestFolder::new()
        .file("c/packageA/index.yaml", package("packagea"))
        .file("c/packageB/.indexignore", IGNORED)
        .file("c/packageB/index.yaml", package("packageb"))
        .file("c/packageB/objects/packageB.v0.1.0.clusterserviceversion.yaml", "kind: x\n")
        .file("c/packageC/index.json", json(&package("packagec")))
        .file("c/packageC/deprecations.yaml", deprecations);
    both_accept(&folder);
    let output = folder.catalog("list packages c").out;
    assert_eq!(column(&output, 0), ["packagea", "packageb", "packagec"]);
}

#[test]
fn at_fbc_03_and_at_21_packages_and_bundles_are_unique() {
    let folder = TestFolder::with(SOUND_CATALOG)
        .file("c/second.yaml", "schema: olm.package\nname: foo\ndefaultChannel: preview\n");
    both_refuse(&folder, &["duplicate-package"]);
    let bundle = SOUND_CATALOG.split("---\n").last().unwrap();
    both_refuse(&with_added(bundle), &["duplicate-bundle"]);
}

#[test]
fn at_fbc_04_and_at_24_entries_are_named_like_their_bundles() {
    let folder = TestFolder::with_changed("- name: foo.v0.1.0", "- name: foov0.1.0");
    both_refuse(&folder, &["missing-bundle", "unlisted-bundle"]);
    both_accept(&TestFolder::with(SOUND_CATALOG));
}

#[test]
fn at_fbc_05_and_at_23_a_channel_has_one_head() {
    let bundle = SOUND_CATALOG.split("---\n").last().unwrap().replace("0.1.0", "0.2.0");
    let two = SOUND_CATALOG.replacen(
        "- name: foo.v0.1.0\n",
        "- name: foo.v0.1.0\n- name: foo.v0.2.0\n",
        1,
    );
    both_refuse(&TestFolder::with(&format!("{two}---\n{bundle}")), &["channel-head"]);
}

#[test]
fn at_fbc_06_and_at_23_a_replaced_bundle_may_be_missing() {
    both_accept(&TestFolder::with_changed(
        "- name: foo.v0.1.0\n",
        "- name: foo.v0.1.0\n  replaces: not-in-catalog.v0.0.9\n",
    ));
}

#[test]
fn at_fbc_07_catalogs_side_by_side_are_a_catalog() {
    let folder = TestFolder::new()
        .file("catalogC/catalogA/index.yaml", package("a"))
        .file("catalogC/catalogB/index.yaml", package("b"));
    for one in ["catalogC/catalogA", "catalogC/catalogB", "catalogC"] {
        assert_eq!(folder.opm(&format!("validate {one}")).code, 0);
        assert_eq!(folder.catalog(&format!("validate {one}")).code, 0);
    }
    assert_eq!(column(&folder.catalog("list packages catalogC").out, 0), ["a", "b"]);
}

#[test]
fn at_fbc_08_and_at_30_init_prints_the_blob_of_a_package() {
    let icon = "<svg xmlns=\"http://www.w3.org/2000/svg\"></svg>";
    let folder =
        TestFolder::new().file("README.md", "# Op\n\nAn operator.\n").file("icon.svg", icon);
    let init = "init op --default-channel=preview --description=./README.md --icon=./icon.svg --output yaml";
    let output = folder.opm(init);
    assert_eq!((output.code, output.err.as_str()), (0, ""));
    let documents: Vec<Value> =
        mainstay_yaml::documents(output.out.as_bytes(), &mainstay_yaml::Options::default())
            .map(|document| document.unwrap().value)
            .collect();
    let [blob] = &documents[..] else { panic!("{}", output.out) };
    assert_eq!(blob["schema"], "olm.package");
    assert_eq!(blob["name"], "op");
    assert_eq!(blob["defaultChannel"], "preview");
    assert_eq!(blob["description"], "# Op\n\nAn operator.\n");
    assert_eq!(blob["icon"]["mediatype"], "image/svg+xml");
    let data = base64::engine::general_purpose::STANDARD.encode(icon);
    assert_eq!(blob["icon"]["base64data"], data);
}

#[test]
fn at_fbc_09_and_at_32_validate_exits_with_zero_for_a_valid_catalog() {
    let folder = TestFolder::with(SOUND_CATALOG);
    for output in [folder.opm("validate c"), folder.catalog("validate c")] {
        assert_eq!((output.code, output.err.as_str()), (0, ""));
    }
}

#[test]
fn at_fbc_10_blobs_have_a_schema_and_properties_have_a_type() {
    let property =
        |text: &str| TestFolder::with_changed("properties:\n", &format!("properties:\n- {text}\n"));
    both_refuse(&with_added("schema: \"\"\n"), &["not-a-blob"]);
    only_mainstay_refuses(&with_added("package: \"\"\nschema: x\n"), &["missing-name"]);
    only_mainstay_refuses(&property("{type: \"\", value: 1}"), &["bad-property"]);
    only_mainstay_refuses(&property("{type: t, value: null}"), &["bad-property"]);
    both_refuse(&property("{type: t}"), &["bad-property"]);
}

#[test]
fn at_fbc_11_and_at_27_a_bundle_has_one_package_property() {
    let property = "- type: olm.package\n  value: {packageName: foo, version: 0.1.0}\n";
    both_refuse(&TestFolder::with_changed(property, ""), &["package-property"]);
    both_refuse(&TestFolder::with_changed(property, &property.repeat(2)), &["package-property"]);
    both_refuse(
        &TestFolder::with_changed("packageName: foo", "packageName: bar"),
        &["package-property"],
    );
    both_refuse(&TestFolder::with_changed("version: 0.1.0", "version: 1.x"), &["bad-version"]);
    let second = "schema: olm.package\nname: foo\ndefaultChannel: preview\n";
    both_refuse(&with_added(second), &["duplicate-package"]);
}

#[test]
fn at_fbc_12_required_packages_have_valid_version_ranges() {
    let required = |range: &str| {
        let property = format!(
            "- type: olm.package.required\n  value: {{packageName: b, versionRange: \"{range}\"}}\n"
        );
        TestFolder::with_changed("properties:\n", &format!("properties:\n{property}"))
    };
    only_mainstay_refuses(&required("not a range"), &["version-range"]);
    both_accept(&required(">=1.0.0 <2.0.0"));
}

#[test]
fn at_fbc_13_unknown_schemas_are_accepted() {
    both_accept(&with_added("schema: example.com.mything\nanything: [1, {a: b}]\n"));
}

#[test]
fn at_fbc_14_and_at_20_a_file_with_a_syntax_error_makes_the_catalog_invalid() {
    let folder = TestFolder::with(SOUND_CATALOG).file("c/broken.json", "{\"schema\": ");
    both_refuse(&folder, &["syntax"]);
    both_accept(&folder.file("c/.indexignore", "broken.json\n"));
}

#[test]
fn at_fbc_16_and_at_22_a_bundle_may_be_in_two_channels_once_each() {
    let second = "schema: olm.channel\npackage: foo\nname: stable\nentries: [{name: foo.v0.1.0}]\n";
    both_accept(&with_added(second));
    let twice = TestFolder::with_changed(
        "- name: foo.v0.1.0\n",
        "- name: foo.v0.1.0\n- name: foo.v0.1.0\n",
    );
    both_refuse(&twice, &["duplicate-entry"]);
}

/// A package of two channels, for deprecations.
fn my_operator(deprecations: &str) -> TestFolder {
    let bundle = SOUND_CATALOG.split("---\n").last().unwrap().replace("foo", "my-operator");
    TestFolder::with(&format!(
        "schema: olm.package
name: my-operator
defaultChannel: stable
---
schema: olm.channel
package: my-operator
name: alpha
entries: [{{name: my-operator.v1.68.0}}]
---
schema: olm.channel
package: my-operator
name: stable
entries: [{{name: my-operator.v1.68.0}}, {{name: my-operator.v1.72.0, replaces: my-operator.v1.68.0}}]
---
{}---
{}---
{deprecations}",
        bundle.replace("0.1.0", "1.68.0"),
        bundle.replace("0.1.0", "1.72.0")
    ))
}

const DEPRECATIONS: &str = "schema: olm.deprecations
package: my-operator
entries:
- reference:
    schema: olm.package
  message: |
    The 'my-operator' package is end of life. Please use 'my-operator-new'.
- reference:
    schema: olm.channel
    name: alpha
  message: |
    The 'alpha' channel is no longer supported. Please switch to 'stable'.
- reference:
    schema: olm.bundle
    name: my-operator.v1.68.0
  message: |
    my-operator.v1.68.0 is deprecated. Use a later version.
";

#[test]
fn at_25_deprecations_refer_to_existing_objects_and_have_messages() {
    let folder = my_operator(DEPRECATIONS);
    both_accept(&folder);
    let details = folder.catalog("show c my-operator").out;
    assert!(
        details.contains("Deprecated:      The 'my-operator' package is end of life."),
        "{details}"
    );
    let without = |from: &str, to: &str| {
        assert!(DEPRECATIONS.contains(from), "{from}");
        my_operator(&DEPRECATIONS.replacen(from, to, 1))
    };
    let with_name =
        without("schema: olm.package\n", "schema: olm.package\n    name: my-operator\n");
    both_refuse(&with_name, &["bad-deprecation"]);
    both_refuse(&without("    name: alpha\n", ""), &["unknown-deprecated"]);
    let text = "|\n    The 'alpha' channel is no longer supported. Please switch to 'stable'.\n";
    both_refuse(&without(text, "\"\"\n"), &["bad-deprecation"]);
    both_refuse(&without("package: my-operator\n", ""), &["missing-name"]);
    let twice = format!("{DEPRECATIONS}---\n{DEPRECATIONS}");
    both_refuse(&my_operator(&twice), &["duplicate-deprecation"]);
}

#[test]
fn at_28_bundles_have_properties_and_an_image() {
    let properties = SOUND_CATALOG.split_once("properties:").unwrap().1;
    both_refuse(
        &TestFolder::with_changed(&format!("properties:{properties}"), ""),
        &["package-property"],
    );
    both_refuse(&TestFolder::with_changed("image: example.com/foo:v0.1.0\n", ""), &["no-image"]);
}

#[test]
fn at_29_a_package_can_be_removed() {
    let mut example = "schema: olm.package\nname: example-operator\ndefaultChannel: release-2.7\n---\n\
                       schema: olm.channel\npackage: example-operator\nname: release-2.7\nentries:\n"
        .to_owned();
    for patch in 0..5 {
        let name = |patch: i32| format!("example-operator.v2.7.{patch}");
        let replaces = if patch > 0 { name(patch - 1) } else { String::new() };
        let lines = [
            format!("- name: {}", name(patch)),
            format!("  replaces: '{replaces}'"),
            format!("  skipRange: '>=2.6.0 <2.7.{patch}'"),
        ];
        example.extend(lines.map(|line| line + "\n"));
    }
    for patch in 0..5 {
        let bundle = SOUND_CATALOG.split("---\n").last().unwrap();
        let bundle = bundle.replace("foo", "example-operator");
        example.push_str("---\n");
        example.push_str(&bundle.replace("0.1.0", &format!("2.7.{patch}")));
    }
    let folder = TestFolder::with(SOUND_CATALOG).file("c/example-operator/index.yaml", &example);
    both_accept(&folder);
    assert_eq!(column(&folder.catalog("list bundles c example-operator").out, 0).len(), 5);
    std::fs::remove_dir_all(folder.path().join("c/example-operator")).unwrap();
    both_accept(&folder);
    let output = folder.catalog("list bundles c -o json").out;
    assert!(!output.contains("example-operator"), "{output}");
}

#[test]
fn at_31_the_dockerfile_is_written_beside_the_folder() {
    let folder = TestFolder::with(SOUND_CATALOG);
    let base = "registry.redhat.io/openshift4/ose-operator-registry-rhel9:v4.19";
    let output = folder.opm(&format!("generate dockerfile c -i {base}"));
    assert_eq!((output.code, output.err.as_str()), (0, ""));
    let written = std::fs::read_to_string(folder.path().join("c.Dockerfile")).unwrap();
    assert!(written.contains(&format!("FROM {base}\n")), "{written}");
}

#[test]
fn opm_and_mainstay_render_the_same_output() {
    let folder =
        my_operator("").file("c/a.yaml", package("zero")).file("c/z.json", json(&package("a")));
    for format in ["json", "yaml"] {
        let ours = folder.catalog(&format!("render c -o {format}"));
        let opm = folder.opm(&format!("render c -o {format}"));
        assert_eq!((ours.code, opm.code), (0, 0), "{ours:?}\n{opm:?}");
        assert_eq!(ours.out, opm.out);
    }
}
