//! Baselines of `validate`: known findings, and counts of the others.

use mainstay_clitest::{CSV, SOUND_CATALOG, TestFolder};
use serde_json::{Value, json};
use std::fs;

/// A bundle with a warning and an unknown field.
fn bundle(place: TestFolder, folder: &str) -> TestFolder {
    let csv = CSV
        .replace("  minKubeVersion: 1.25.0\n", "")
        .replace("  version: 1.0.0", "  version: 1.0.0\n  anything: 1");
    let annotations = format!(
        "annotations:\n  operators.operatorframework.io.bundle.package.v1: {folder}\n  \
         operators.operatorframework.io.bundle.channels.v1: stable\n  \
         operators.operatorframework.io.bundle.mediatype.v1: registry+v1\n  \
         operators.operatorframework.io.bundle.manifests.v1: manifests/\n  \
         operators.operatorframework.io.bundle.metadata.v1: metadata/\n"
    );
    place
        .file(&format!("bundles/{folder}/manifests/csv.yaml"), csv)
        .file(&format!("bundles/{folder}/metadata/annotations.yaml"), annotations)
}

fn two_bundles() -> TestFolder {
    bundle(bundle(TestFolder::new(), "kiwi"), "plum")
}

const BOTH: &str = "validate bundles/kiwi bundles/plum";

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

#[test]
fn output_ends_with_counts_by_rule_and_by_package() {
    let place = two_bundles().file("bundles/plum/manifests/broken.yaml", "a: [\n");
    let answer = place.bundle(BOTH);
    let (_, end) = answer.out.split_once("\n\n").unwrap();
    insta::assert_snapshot!(end, @"
    RULE            ERRORS   WARNINGS
    unreadable      1        0
    csv             0        2
    unknown-field   0        2

    PACKAGE   ERRORS   WARNINGS
    plum      1        2
    kiwi      0        2

    1 error, 4 warnings
    ");
    let counts = &json(&place.bundle(&format!("{BOTH} -o json")).out)["counts"];
    assert_eq!(
        counts["packages"],
        json!([
            {"package": "plum", "errors": 1, "warnings": 2},
            {"package": "kiwi", "errors": 0, "warnings": 2},
        ])
    );
    assert_eq!(counts["rules"][0], json!({"rule": "unreadable", "errors": 1, "warnings": 0}));
    // A valid folder has no counts.
    assert_eq!(TestFolder::with(SOUND_CATALOG).catalog("validate c").out.lines().count(), 1);
}

#[test]
fn baseline_silences_listed_findings_and_no_new_ones() {
    let place = two_bundles();
    let answer = place.bundle(&format!("{BOTH} --write-baseline known.yaml"));
    let summary = "no new findings in 2 bundles; 4 known findings in known.yaml\n";
    assert_eq!((answer.code, answer.out.as_str()), (0, summary), "{answer:?}");
    insta::assert_snapshot!(fs::read_to_string(place.path().join("known.yaml")).unwrap(), @r#"
    # Known findings: `validate --baseline` with this file suppresses them, and warns about entries that no longer
    # match. `validate --write-baseline` writes the file again, and keeps the `reason` of an entry.
    findings:
    - file: bundles/kiwi/manifests/csv.yaml
      message: csv.Spec.minKubeVersion is not informed. It is recommended you provide
        this information. Otherwise, it would mean that your operator project can be distributed
        and installed in any cluster version available, which is not necessarily the case
        for all projects.
      rule: csv
    - file: bundles/kiwi/manifests/csv.yaml
      message: 'there is no field "anything" in spec of the ClusterServiceVersion: clusters
        drop it'
      rule: unknown-field
    - file: bundles/plum/manifests/csv.yaml
      message: csv.Spec.minKubeVersion is not informed. It is recommended you provide
        this information. Otherwise, it would mean that your operator project can be distributed
        and installed in any cluster version available, which is not necessarily the case
        for all projects.
      rule: csv
    - file: bundles/plum/manifests/csv.yaml
      message: 'there is no field "anything" in spec of the ClusterServiceVersion: clusters
        drop it'
      rule: unknown-field
    "#);
    let answer = place.bundle(&format!("{BOTH} --strict --baseline known.yaml"));
    assert_eq!((answer.code, answer.out.as_str()), (0, summary), "{answer:?}");
    // Findings match even if their lines move.
    let csv = place.path().join("bundles/kiwi/manifests/csv.yaml");
    let text = fs::read_to_string(&csv).unwrap();
    fs::write(&csv, format!("# A comment.\n{text}")).unwrap();
    assert_eq!(place.bundle(&format!("{BOTH} --strict --baseline known.yaml")).code, 0);
    // A second equal finding is new.
    fs::write(&csv, text.replace("  version:", "  another: 1\n  version:")).unwrap();
    let answer = place.bundle(&format!("{BOTH} --baseline known.yaml -o json"));
    let found = json(&answer.out);
    assert_eq!((answer.code, &found["warnings"]), (0, &json!(1)), "{found:#}");
    assert_eq!(found["baseline"], json!({"file": "known.yaml", "known": 4}));
    let message = found["problems"][0]["message"].as_str().unwrap();
    assert!(message.starts_with("there is no field \"another\""), "{message}");
    let sarif = json(&place.bundle(&format!("{BOTH} --baseline known.yaml -o sarif")).out);
    assert_eq!(sarif["runs"][0]["results"].as_array().unwrap().len(), 1, "{sarif:#}");
    let answer = place.bundle(&format!("{BOTH} --strict --baseline known.yaml"));
    assert_eq!(answer.code, 1);
    assert!(answer.out.ends_with("\n1 warning; 4 known findings in known.yaml\n"), "{answer:?}");
}

#[test]
fn stale_baseline_entry_is_reported() {
    let place = two_bundles();
    place.bundle(&format!("{BOTH} --write-baseline known.yaml"));
    let csv = place.path().join("bundles/kiwi/manifests/csv.yaml");
    let text = fs::read_to_string(&csv).unwrap();
    fs::write(&csv, text.replace("  anything: 1\n", "")).unwrap();
    let answer = place.bundle(&format!("{BOTH} --baseline known.yaml"));
    assert_eq!(answer.code, 0);
    insta::assert_snapshot!(answer.out, @r#"
    known.yaml:10: warning: the entry matches nothing any more: bundles/kiwi/manifests/csv.yaml: there is no field "anything" in spec of the ClusterServiceVersion: clusters drop it [unknown-field] [stale-baseline]
        remove the entry, or write the file again with: --write-baseline known.yaml

    RULE             ERRORS   WARNINGS
    stale-baseline   0        1

    PACKAGE   ERRORS   WARNINGS
    <none>    0        1

    1 warning; 3 known findings in known.yaml
    "#);
    assert_eq!(place.bundle(&format!("{BOTH} --strict --baseline known.yaml")).code, 1);
    // Entries about folders and validators outside of this run are not stale.
    let answer = place.bundle("validate bundles/plum --strict --baseline known.yaml");
    assert_eq!(answer.code, 0, "{answer:?}");
    let asked = format!("{BOTH} --also operatorhub/v2");
    place.bundle(&format!("{asked} --write-baseline more.yaml"));
    assert_eq!(place.bundle(&format!("{BOTH} --strict --baseline more.yaml")).code, 0);
    assert_eq!(place.bundle(&format!("{asked} --strict --baseline more.yaml")).code, 0);
}

#[test]
fn entry_about_an_unread_folder_is_not_stale() {
    let place = two_bundles();
    place.bundle(&format!("{BOTH} --write-baseline known.yaml"));
    fs::write(place.path().join("bundles/kiwi/manifests/csv.yaml"), "a: [\n").unwrap();
    let answer = place.bundle(&format!("{BOTH} --baseline known.yaml"));
    assert!(!answer.out.contains("stale-baseline") && answer.code == 1, "{answer:?}");
    let place = TestFolder::with(SOUND_CATALOG).file("c/notes.yaml", "schema: olm.bundel\n");
    place.catalog("validate c --write-baseline known.yaml");
    fs::write(place.path().join("c/notes.yaml"), "a: [\n").unwrap();
    let answer = place.catalog("validate c --baseline known.yaml");
    assert!(!answer.out.contains("stale-baseline") && answer.code == 1, "{answer:?}");
}

#[test]
fn rewriting_a_baseline_keeps_reasons_and_entries_about_other_folders() {
    let place = two_bundles().file("ci/readme", "");
    place.bundle(&format!("{BOTH} --write-baseline ci/known.yaml"));
    let file = place.path().join("ci/known.yaml");
    let text = fs::read_to_string(&file).unwrap();
    let reasoned = text.replacen(
        "  rule: unknown-field\n",
        "  reason: for a tool\n  rule: unknown-field\n",
        1,
    );
    assert_ne!(text, reasoned, "{text}");
    fs::write(&file, &reasoned).unwrap();
    // From any folder: files are relative to the baseline's folder.
    let plum = place.path().join("bundles/plum");
    let answer =
        place.bundle(&format!("validate {} --write-baseline ci/known.yaml", plum.display()));
    assert_eq!(answer.code, 0, "{answer:?}");
    assert_eq!(fs::read_to_string(&file).unwrap(), reasoned);
    place.bundle("validate bundles/kiwi --write-baseline ci/known.yaml");
    assert_eq!(fs::read_to_string(&file).unwrap(), reasoned);
}

#[test]
fn baseline_counts_equal_findings() {
    // Two documents with the same schema in one file.
    let place = TestFolder::with(SOUND_CATALOG)
        .file("c/notes.yaml", "schema: olm.bundel\n---\nschema: olm.bundel\n");
    place.catalog("validate c --write-baseline known.yaml");
    let text = fs::read_to_string(place.path().join("known.yaml")).unwrap();
    assert!(text.contains("- count: 2\n"), "{text}");
    assert_eq!(place.catalog("validate c --strict --baseline known.yaml").code, 0);
    fs::write(place.path().join("c/notes.yaml"), "schema: olm.bundel\n").unwrap();
    let answer = place.catalog("validate c --baseline known.yaml");
    assert!(answer.out.contains("the entry matches 1 times only any more"), "{answer:?}");
    fs::write(place.path().join("c/notes.yaml"), "schema: olm.bundel\n---\n".repeat(3)).unwrap();
    let answer = place.catalog("validate c --baseline known.yaml");
    assert!(answer.out.ends_with("\n1 warning; 2 known findings in known.yaml\n"), "{answer:?}");
}

#[test]
fn invalid_baseline_is_refused_with_its_place() {
    let place = two_bundles();
    for (text, words) in [
        ("findings: 1\n", "known.yaml:1: there is no list of findings"),
        (
            "findigs: []\n",
            "there is no field \"findigs\" in a baseline; did you mean \"findings\"?",
        ),
        ("findings:\n- {rule: a, file: b}\n", "known.yaml:2: an entry has no message"),
        (
            "findings:\n- {rule: a, file: b, mesage: c}\n",
            "known.yaml:2: there is no field \"mesage\"",
        ),
        (
            "findings:\n- {rule: a, file: b, message: c, count: 0}\n",
            "count is not a positive number",
        ),
        ("findings: [\n", "known.yaml:2: "),
        ("- a\n", "this is not a mapping"),
    ] {
        fs::write(place.path().join("known.yaml"), text).unwrap();
        for flag in ["--baseline", "--write-baseline"] {
            let answer = place.bundle(&format!("{BOTH} {flag} known.yaml"));
            assert_eq!((answer.code, answer.out.as_str()), (2, ""), "{text}");
            assert!(answer.err.contains(words), "{text}: {}", answer.err);
        }
        assert_eq!(fs::read_to_string(place.path().join("known.yaml")).unwrap(), text);
    }
    let answer = place.bundle(&format!("{BOTH} --baseline none.yaml"));
    assert_eq!(answer.code, 2);
    assert!(answer.err.contains("write it with: --write-baseline none.yaml"), "{answer:?}");
    let answer = place.bundle(&format!("{BOTH} --write-baseline none/known.yaml"));
    assert_eq!(answer.code, 1);
    assert!(answer.err.contains("the baseline cannot be written: no such file"), "{answer:?}");
    // An empty baseline lists nothing.
    fs::write(place.path().join("known.yaml"), "findings:\n").unwrap();
    let answer = place.bundle(&format!("{BOTH} --baseline known.yaml"));
    assert!(answer.out.ends_with("\n4 warnings\n"), "{answer:?}");
}
