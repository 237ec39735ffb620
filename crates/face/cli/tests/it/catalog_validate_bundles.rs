//! `mainstay catalog validate` with bundle folders.

use mainstay_clitest::TestFolder;

const CSV: &str = "apiVersion: operators.coreos.com/v1alpha1
kind: ClusterServiceVersion
metadata:
  name: kiwi.v1.0.0
spec:
  version: 1.0.0
";

fn bundle() -> TestFolder {
    TestFolder::new().file("b/manifests/csv.yaml", CSV).file(
        "b/metadata/annotations.yaml",
        "annotations:\n  operators.operatorframework.io.bundle.package.v1: kiwi\n",
    )
}

#[test]
fn valid_bundle_folder_has_no_findings() {
    let answer = bundle().catalog("validate b");
    assert_eq!((answer.code, answer.out.as_str()), (0, "sound: 1 bundle\n"));
}

#[test]
fn file_that_upstream_drops_is_an_error() {
    let place = bundle()
        .file("b/metadata/dependencies.yaml", "dependencies:\n- type: [\n")
        .file("b/manifests/two.yaml", "kind: A\napiVersion: v1\n---\nkind: B\napiVersion: v1\n");
    let answer = place.catalog("validate b");
    assert_eq!(answer.code, 1);
    insta::assert_snapshot!(answer.out, @"
    b/manifests/two.yaml:4: error: there is a second document, and only the first of a file counts; other tools drop it silently [passed-over]
        write each object to its own file
    b/metadata/dependencies.yaml:3: error: the file cannot be decoded: did not find expected node content; other tools drop it silently [passed-over]
        correct the file

    RULE          ERRORS   WARNINGS
    passed-over   2        0

    PACKAGE   ERRORS   WARNINGS
    kiwi      2        0

    2 errors
    ");
}

#[test]
fn unreadable_bundle_has_a_reason() {
    let answer = bundle().file("b/manifests/csv.yaml", "kind: ConfigMap\n").catalog("validate b");
    assert_eq!(answer.code, 1);
    insta::assert_snapshot!(answer.out, @"
    b/manifests: error: no csv in bundle [bad-bundle]
        put a ClusterServiceVersion there

    RULE         ERRORS   WARNINGS
    bad-bundle   1        0

    PACKAGE   ERRORS   WARNINGS
    <none>    1        0

    1 error
    ");
}

#[test]
fn missing_crd_is_reported_with_its_cause() {
    let csv = format!(
        "{CSV}  customresourcedefinitions:\n    owned:\n    - {{name: kiwis.example.com, version: v1, kind: Kiwi}}\n"
    );
    let place =
        bundle().file("b/manifests/csv.yaml", &csv).file("b/manifests/crd.yaml", "kind: [\n");
    let answer = place.catalog("validate b");
    assert_eq!(answer.code, 1);
    let (first, second) = answer.out.split_once("[passed-over]").expect(&answer.out);
    assert!(
        first.starts_with("b/manifests/crd.yaml:2: error: the file cannot be decoded"),
        "{first}"
    );
    assert!(second.contains("kiwis.example.com"), "{second}");
}
