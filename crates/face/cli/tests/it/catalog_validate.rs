//! `mainstay catalog validate`: output for users and programs.

use mainstay_clitest::{SOUND_CATALOG, TestFolder};
use serde_json::{Value, json};

/// A catalog with an error and a warning.
fn broken() -> TestFolder {
    TestFolder::with_changed("image: example", "imaeg: x\nimage: example")
        .file("c/more/notes.yaml", "schema: olm.bundel\n")
}

#[test]
fn text_output_has_two_lines_for_each_problem_and_a_summary() {
    let answer = broken().catalog("validate c");
    assert_eq!((answer.code, answer.err.as_str()), (1, ""));
    insta::assert_snapshot!(answer.out, @r#"
    c/catalog.yaml:15:8: error: there is no field "imaeg" in olm.bundle: rendering the catalog drops it [unknown-field]
        olm.bundle foo foo.v0.1.0: did you mean "image"?
    c/more/notes.yaml:1:9: warning: nothing reads documents of the schema "olm.bundel" [unknown-schema]
        olm.bundel: did you mean "olm.bundle"?

    RULE             ERRORS   WARNINGS
    unknown-field    1        0
    unknown-schema   0        1

    PACKAGE   ERRORS   WARNINGS
    foo       1        0
    <none>    0        1

    1 error, 1 warning
    "#);
    let answer = TestFolder::with(SOUND_CATALOG).catalog("validate ./c/");
    assert_eq!((answer.code, answer.out.as_str()), (0, "sound: 1 package, 1 channel, 1 bundle\n"));
}

#[test]
fn only_terminals_get_colours() {
    let plain = broken().catalog("validate c").out;
    let coloured = broken().coloured("validate c").out;
    assert!(!plain.contains('\x1b') && coloured.contains("\x1b[1;31merror\x1b[0m"), "{coloured}");
}

#[test]
fn warnings_fail_only_with_strict() {
    let place = TestFolder::with(SOUND_CATALOG).file("c/notes.yaml", "schema: olm.bundel\n");
    assert_eq!(place.catalog("validate c").code, 0);
    assert_eq!(place.catalog("validate --strict c").code, 1);
    let json: Value = serde_json::from_str(&place.catalog("check c -o json").out).unwrap();
    assert_eq!((&json["passed"], &json["warnings"]), (&json!(true), &json!(1)));
}

#[test]
fn json_and_yaml_have_the_same_findings() {
    let place = broken();
    let answer = place.catalog("validate c -o json");
    assert_eq!(answer.code, 1);
    let json: Value = serde_json::from_str(&answer.out).unwrap();
    assert_eq!(
        json["problems"][0],
        json!({
            "severity": "error",
            "rule": "unknown-field",
            "file": "c/catalog.yaml",
            "line": 15,
            "column": 8,
            "blob": {"schema": "olm.bundle", "package": "foo", "name": "foo.v0.1.0"},
            "message": "there is no field \"imaeg\" in olm.bundle: rendering the catalog drops it",
            "remedy": "did you mean \"image\"?",
        })
    );
    assert_eq!(json["errors"], 1);
    let yaml = place.catalog("validate c -o yaml").out;
    assert_eq!(
        mainstay_yaml::one(yaml.as_bytes(), &mainstay_yaml::Options::default()).unwrap(),
        json
    );
    let sound = TestFolder::with(SOUND_CATALOG).catalog("validate c -o json").out;
    insta::assert_snapshot!(sound, @r#"
    {
      "complete": true,
      "contents": [
        {
          "bundles": 1,
          "channels": 1,
          "packages": 1,
          "path": "c"
        }
      ],
      "counts": {
        "packages": [],
        "rules": []
      },
      "errors": 0,
      "passed": true,
      "problems": [],
      "warnings": 0
    }
    "#);
}

#[test]
fn sarif_has_the_findings_for_code_scanners() {
    let answer = broken().catalog("validate ./c -o sarif");
    assert_eq!(answer.code, 1);
    let log: Value = serde_json::from_str(&answer.out).unwrap();
    assert_eq!(log["version"], "2.1.0");
    let run = &log["runs"][0];
    let rules = run["tool"]["driver"]["rules"].as_array().unwrap();
    for result in run["results"].as_array().unwrap() {
        let index = usize::try_from(result["ruleIndex"].as_u64().unwrap()).unwrap();
        assert_eq!(rules[index]["id"], result["ruleId"]);
        assert_eq!(rules[index]["defaultConfiguration"]["level"], result["level"]);
    }
    assert_eq!(
        run["results"][0]["locations"][0]["physicalLocation"],
        json!({
            "artifactLocation": {"uri": "c/catalog.yaml"},
            "region": {"startLine": 15, "startColumn": 8},
        })
    );
    // A valid catalog is a run without results, which closes open alerts.
    let sound = TestFolder::with(SOUND_CATALOG).catalog("validate c -o sarif");
    let log: Value = serde_json::from_str(&sound.out).unwrap();
    assert_eq!((sound.code, &log["runs"][0]["results"]), (0, &json!([])));
}

#[test]
fn several_folders_are_validated_together() {
    let place = broken().file("d/catalog.yaml", "schema: a\n---\n");
    let answer = place.catalog("validate c d");
    assert!(answer.out.contains("c/catalog.yaml:15:8") && answer.code == 1, "{}", answer.out);
    let answer = place.catalog("validate d");
    assert_eq!(answer.code, 0, "{}", answer.out);
}

#[test]
fn unreadable_folder_is_a_usage_error() {
    let place = TestFolder::with(SOUND_CATALOG);
    for (arguments, words) in [
        ("validate nowhere", "nowhere: no such file or directory"),
        ("validate c/catalog.yaml", "c/catalog.yaml: this is a file, not a folder"),
        ("validate", "required arguments were not provided"),
        ("validate c -o xml", "invalid value 'xml'"),
        ("list packages c bar", "there is no package \"bar\""),
        ("show c fo", "did you mean foo?"),
        ("show c foo 9.9.9", "package \"foo\" has no bundle \"9.9.9\""),
    ] {
        let answer = place.catalog(arguments);
        assert_eq!((answer.code, answer.out.as_str()), (2, ""), "{arguments}");
        assert!(answer.err.contains(words), "{arguments}: {}", answer.err);
    }
}

#[test]
fn missing_bundles_are_reported_only_if_all_files_are_readable() {
    // The missing bundle may be in the unreadable file.
    let place = TestFolder::with_changed("schema: olm.bundle", "schema: olm.bundel")
        .file("c/more.yaml", "a: [\n");
    let answer = place.catalog("validate c").out;
    assert!(!answer.contains("missing-bundle"), "{answer}");
    let last = "1 error, 1 warning; missing content is reported when all files can be read\n";
    assert!(answer.ends_with(last), "{answer}");
    std::fs::remove_file(place.path().join("c/more.yaml")).unwrap();
    let answer = place.catalog("validate c").out;
    assert!(answer.contains("missing-bundle"), "{answer}");
}

#[test]
fn control_characters_do_not_reach_a_terminal() {
    let answer = TestFolder::with_changed("image: example", "\"\\e[31m\": x\nimage: example")
        .catalog("validate c");
    assert!(!answer.out.contains('\x1b') && answer.code == 1, "{}", answer.out);
}
