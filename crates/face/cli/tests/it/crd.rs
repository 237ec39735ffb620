//! `mainstay crd`: reports of changes, evidence from stored objects, errors of files, exit codes.

use super::recorded_cluster::{RecordedCluster, SilentCluster};
use clap::Parser;
use mainstay_cause::Cause;
use mainstay_cli::args::{Arguments, Command};
use mainstay_clitest::{CommandOutput, TestFolder, block_on};
use mainstay_command::exit::CommandFailure;
use mainstay_command::io::CommandIo;
use mainstay_content::crd;
use serde_json::{Value, json};
use std::fmt::Write as _;

/// A CRD whose spec has the property `size`, from line 14 on.
const ANVIL: &str = "apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: anvils.forge.example.com}
spec:
  group: forge.example.com
  names: {kind: Anvil, plural: anvils, singular: anvil, listKind: AnvilList}
  scope: Namespaced
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            properties:
              size: {type: string}
              colour: {type: string}
status: {storedVersions: [v1]}
";

fn anvil(size: &str) -> String {
    ANVIL.replace("size: {type: string}", size)
}

/// Which cluster there is.
enum Cluster<'s> {
    None,
    Silent,
    Recorded(&'s str),
    Forbidding(&'s str),
}

fn run(folder: &TestFolder, arguments: &str, cluster: &Cluster<'_>) -> CommandOutput {
    let words = ["mainstay", "crd"].into_iter().chain(arguments.split_whitespace());
    let parsed = match Arguments::try_parse_from(words) {
        Ok(parsed) => parsed,
        Err(error) => return CommandOutput::refused(&error),
    };
    let Command::Crd(arguments) = parsed.command else { panic!("the command is `crd`") };
    let (mut stdout, mut stderr) = (Vec::new(), Vec::new());
    let stdin = &mut std::io::empty();
    let mut io = CommandIo::unattended(stdin, &mut stdout, &mut stderr, folder.path());
    let exit = block_on(async {
        match cluster {
            Cluster::None => {
                let none = async || {
                    Err::<SilentCluster, _>(CommandFailure::usage(Cause::new("no cluster")))
                };
                crd::run(&arguments, &mut io, none).await
            }
            Cluster::Silent => crd::run(&arguments, &mut io, async || Ok(SilentCluster)).await,
            Cluster::Recorded(state) => {
                let recorded = RecordedCluster::new("default", state);
                crd::run(&arguments, &mut io, async || Ok(recorded)).await
            }
            Cluster::Forbidding(state) => {
                let mut recorded = RecordedCluster::new("default", state);
                recorded.forbids = |kind, _| kind.kind == "Anvil";
                crd::run(&arguments, &mut io, async || Ok(recorded)).await
            }
        }
    });
    let code = match exit {
        mainstay_command::exit::ExitStatus::Done => 0,
        mainstay_command::exit::ExitStatus::Failed => 1,
        mainstay_command::exit::ExitStatus::Usage => 2,
        other => panic!("{other:?}"),
    };
    CommandOutput::of(code, stdout, stderr)
}

/// The output of `crd diff` for two texts.
fn diff(old: &str, new: &str, arguments: &str) -> CommandOutput {
    let folder = TestFolder::new().file("old.yaml", old).file("new.yaml", new);
    run(&folder, &format!("diff old.yaml new.yaml {arguments}"), &Cluster::None)
}

/// The JSON that a command with breaking findings printed.
fn json_of(output: &CommandOutput) -> Value {
    serde_json::from_str(&output.out).unwrap()
}

#[test]
fn breaking_change_is_reported_with_its_line_reason_and_remedy() {
    let found = diff(ANVIL, &anvil("size: {type: integer}"), "");
    assert_eq!(found.code, 1, "{found:?}");
    assert_eq!(
        found.out,
        "CustomResourceDefinition anvils.forge.example.com (new.yaml): 1 breaking change
  breaking: v1 ^.spec.size (new.yaml:19)
    type: type changed : \"string\" -> \"integer\"
    why: values of the old type are refused, and clients cannot read values of the new type
    remedy: add a field with the new type, and keep the old one
  note: operator-controller refuses this upgrade, for 1 reason
1 CustomResourceDefinition compared: 1 breaking change
"
    );
}

#[test]
fn findings_of_one_property_are_one_group_and_safe_ones_come_last() {
    let new = ANVIL
        .replace("              size: {type: string}\n", "")
        .replace("colour: {type: string}", "colour: {type: string, nullable: true}");
    let found = diff(ANVIL, &new, "");
    assert_eq!(found.code, 1, "{found:?}");
    let lines: Vec<&str> = found.out.lines().filter(|line| line.contains("^.spec.")).collect();
    assert_eq!(
        lines,
        [
            "  breaking: v1 ^.spec.size (new.yaml:19)",
            "    existingFieldRemoval: removed field : v1.^.spec.size",
            "  safe: v1 ^.spec.colour (new.yaml:19)",
        ]
    );
    assert!(found.out.ends_with("2 breaking changes, 1 safe change\n"), "{}", found.out);
}

#[test]
fn unchanged_and_safely_changed_crds_end_with_0() {
    for (new, summary) in [
        (ANVIL.to_owned(), "1 CustomResourceDefinition compared: no change to report\n"),
        (
            anvil("size: {type: string, nullable: true}"),
            "1 CustomResourceDefinition compared: 1 safe change\n",
        ),
    ] {
        let found = diff(ANVIL, &new, "");
        assert_eq!(found.code, 0, "{found:?}");
        assert!(found.out.ends_with(summary), "{}", found.out);
    }
}

#[test]
fn override_changes_the_exit_code() {
    let new = anvil("size: {type: integer}");
    assert_eq!(diff(ANVIL, &new, "--override type=none").code, 0);
    assert_eq!(diff(ANVIL, &new, "--override type=warn").code, 0);
    let safe = anvil("size: {type: string, nullable: true}");
    assert_eq!(diff(ANVIL, &safe, "--override nullable=error").code, 1);
    for (wrong, part) in [
        ("type", "there is no `=`"),
        ("typo=warn", "there is no check \"typo\""),
        ("type=loud", "there is no \"loud\""),
    ] {
        let found = diff(ANVIL, &new, &format!("--override {wrong}"));
        assert!(found.code == 2 && found.err.contains(part), "{wrong}: {}", found.err);
    }
}

#[test]
fn json_has_all_texts_and_the_message_of_operator_controller() {
    let found = json_of(&diff(ANVIL, &anvil("size: {type: string, format: date}"), "-o json"));
    let crd = &found["customResourceDefinitions"][0];
    assert_eq!(crd["preflight"]["refused"], true);
    assert_eq!(
        crd["preflight"]["message"],
        "validating upgrade for CRD \"anvils.forge.example.com\": v1: ^.spec.size: unhandled: unhandled \
         changes found (Format \"\" -> \"date\")"
    );
    let finding = &crd["findings"][0];
    for (key, expected) in [
        ("check", json!("unhandled")),
        ("impact", json!("breaking")),
        ("severity", json!("error")),
        ("scope", json!("sameVersion")),
        ("version", json!("v1")),
        ("path", json!("^.spec.size")),
        ("file", json!("new.yaml")),
        ("line", json!(19)),
    ] {
        assert_eq!(finding[key], expected, "{key}");
    }
    assert!(finding["text"].as_str().unwrap().contains("+ \tFormat:      \"date\","));
    assert_eq!(found["breaking"], 1);
}

#[test]
fn sarif_names_rule_level_message_and_place() {
    let new = anvil("size: {type: integer, default: 1, nullable: true}");
    let log = json_of(&diff(ANVIL, &new, "-o sarif"));
    assert_eq!(log["version"], "2.1.0");
    let results = log["runs"][0]["results"].as_array().unwrap();
    let rules = log["runs"][0]["tool"]["driver"]["rules"].as_array().unwrap();
    let found: Vec<(&str, &str)> = results
        .iter()
        .map(|result| (result["ruleId"].as_str().unwrap(), result["level"].as_str().unwrap()))
        .collect();
    assert_eq!(found, [("default", "warning"), ("type", "error")], "safe changes are left out");
    for result in results {
        let rule = result["ruleIndex"].as_u64().unwrap();
        assert_eq!(rules[usize::try_from(rule).unwrap()]["id"], result["ruleId"]);
        assert!(!result["message"]["text"].as_str().unwrap().is_empty());
        let place = &result["locations"][0]["physicalLocation"];
        assert_eq!(place["artifactLocation"]["uri"], "new.yaml");
        assert_eq!(place["region"]["startLine"], 19);
    }
}

#[test]
fn bundle_folders_and_lists_are_read() {
    let list = |crd: &str| {
        let options = mainstay_yaml::Options::default();
        let crd = mainstay_yaml::one(crd.as_bytes(), &options).unwrap();
        format!(
            "{:#}",
            json!({"apiVersion": "v1", "kind": "List", "items": [{"kind": "Secret"}, crd]})
        )
    };
    let folder = TestFolder::new()
        .file("old/manifests/service.yaml", "kind: Service\n")
        .file("old/manifests/anvil.crd.yaml", ANVIL)
        .file("old/metadata/annotations.yaml", "annotations: {}\n")
        .file("new.json", list(&anvil("size: {type: integer}")));
    let found = run(&folder, "diff old new.json", &Cluster::None);
    assert_eq!(found.code, 1, "{found:?}");
    let line = found.out.lines().find(|line| line.contains("breaking: v1")).unwrap();
    let (_, number) = line.rsplit_once(':').unwrap();
    let number: usize = number.trim_end_matches(')').parse().unwrap();
    let text = std::fs::read_to_string(folder.path().join("new.json")).unwrap();
    assert!(text.lines().nth(number - 1).unwrap().contains("\"size\""), "{line}");
}

#[test]
fn second_document_has_the_lines_of_its_file() {
    let prefix = "kind: Service\nmetadata: {name: a}\n---\n";
    let new = format!("{prefix}{}", anvil("size: {type: integer}"));
    let found = diff(ANVIL, &new, "");
    assert!(found.out.contains("(new.yaml:22)"), "{}", found.out);
}

#[test]
fn unusable_files_are_named_with_place_and_remedy() {
    let cut = &ANVIL[..ANVIL.find("colour").unwrap() + 12];
    let twice = format!("{ANVIL}---\n{ANVIL}");
    let v1beta1 = ANVIL.replace("io/v1\n", "io/v1beta1\n");
    let wrong_type = anvil("size: {maxLength: many}");
    let no_schema = ANVIL.replace("    schema:", "    schemas:");
    let cases: [(&str, &str, &[&str]); 10] = [
        ("cut.yaml", cut, &["cut.yaml:21", "cut off"]),
        (
            "kind.yaml",
            "kind: Deployment\n",
            &["kind.yaml", "no CustomResourceDefinition, but Deployment"],
        ),
        ("empty.yaml", "# nothing\n", &["empty.yaml", "the file has no document"]),
        ("twice.yaml", &twice, &["twice.yaml:23", "is defined twice", "remove one of the two"]),
        (
            "beta.yaml",
            &v1beta1,
            &["beta.yaml:1", "apiextensions.k8s.io/v1beta1 CustomResourceDefinition is no"],
        ),
        (
            "type.yaml",
            &wrong_type,
            &[
                "spec.versions[0].schema.openAPIV3Schema.properties.spec.properties.size.maxLength: an integer is expected, not a string",
            ],
        ),
        ("schema.yaml", &no_schema, &["version v1 has no schema", "give the version a schema"]),
        (
            "name.yaml",
            "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\n",
            &["no metadata.name"],
        ),
        ("list.yaml", "kind: List\nitems: []\n", &["the file has no document"]),
        ("absent/none.yaml", "", &["the file has no document"]),
    ];
    for (file, content, parts) in cases {
        let folder = TestFolder::new().file("old.yaml", ANVIL).file(file, content);
        let found = run(&folder, &format!("diff old.yaml {file}"), &Cluster::None);
        assert_eq!((found.code, found.out.as_str()), (2, ""), "{file}: {found:?}");
        for part in parts {
            assert!(found.err.contains(part), "{file} lacks {part:?}:\n{}", found.err);
        }
    }
    let folder = TestFolder::new().file("old.yaml", ANVIL).file("x/readme.txt", "");
    for (arguments, part) in [
        ("diff old.yaml missing.yaml", "no such file or directory"),
        ("diff old.yaml x", "no file of the folder has a CustomResourceDefinition"),
    ] {
        let found = run(&folder, arguments, &Cluster::None);
        assert!(found.code == 2 && found.err.contains(part), "{arguments}: {}", found.err);
    }
}

#[test]
fn huge_file_is_refused_without_reading_it_whole() {
    let folder = TestFolder::new().file("old.yaml", ANVIL).file("new.yaml", "");
    let file = std::fs::File::options().write(true).open(folder.path().join("new.yaml")).unwrap();
    file.set_len(1 << 40).unwrap();
    let found = run(&folder, "diff old.yaml new.yaml", &Cluster::None);
    assert!(found.code == 2 && found.err.contains("more than 32 MiB"), "{}", found.err);
}

#[test]
fn crds_without_a_partner_are_named() {
    let other = ANVIL.replace("anvils.forge", "hammers.forge");
    let found = diff(&format!("{ANVIL}---\n{other}"), ANVIL, "");
    assert_eq!(found.code, 0, "{found:?}");
    assert!(found.out.contains(
        "CustomResourceDefinition hammers.forge.example.com is not among the new ones\n"
    ));
    let found = diff(ANVIL, &other, "");
    assert!(
        found.code == 2 && found.err.contains("no CustomResourceDefinition is in both"),
        "{found:?}"
    );
}

/// A cluster with the CRD and `count` anvils, the first `with_size` of which have a size.
fn state(count: usize, with_size: usize) -> String {
    let mut state = ANVIL.to_owned();
    for number in 0..count {
        let spec = if number < with_size { "{size: big}" } else { "{}" };
        let _ = write!(
            state,
            "---\napiVersion: forge.example.com/v1\nkind: Anvil\nmetadata: {{name: a{number}, namespace: east}}\nspec: {spec}\n"
        );
    }
    state
}

fn without_size() -> String {
    ANVIL.replace("              size: {type: string}\n", "")
}

#[test]
fn stored_objects_that_use_a_removed_field_are_counted_page_by_page() {
    let folder = TestFolder::new().file("new.yaml", without_size());
    let found = run(&folder, "check --cluster new.yaml", &Cluster::Recorded(&state(1201, 3)));
    assert_eq!(found.code, 1, "{found:?}");
    let expected =
        "    objects: 3 of 1201 stored objects use the removed field: east/a0, east/a1, east/a2\n";
    assert!(found.out.contains(expected), "{}", found.out);
}

#[test]
fn removed_field_that_no_stored_object_uses_is_a_warning() {
    let folder = TestFolder::new().file("new.yaml", without_size());
    let found = run(&folder, "check --cluster new.yaml", &Cluster::Recorded(&state(312, 0)));
    assert_eq!(found.code, 0, "{found:?}");
    assert!(found.out.contains("0 of 312 stored objects use the removed field"), "{}", found.out);
    assert!(found.out.contains("note: operator-controller refuses this upgrade"), "{}", found.out);
    let strict = run(
        &folder,
        "check --cluster new.yaml --override existingFieldRemoval=error -o json",
        &Cluster::Recorded(&state(312, 0)),
    );
    assert_eq!((strict.code, &json_of(&strict)["breaking"]), (1, &json!(1)));
}

#[test]
fn saved_state_serves_instead_of_a_cluster() {
    let folder = TestFolder::new().file("new.yaml", without_size()).file("saved.yaml", state(2, 1));
    let found = run(&folder, "check --state saved.yaml new.yaml -o json", &Cluster::None);
    assert_eq!(found.code, 1, "{found:?}");
    let findings = &json_of(&found)["customResourceDefinitions"][0]["findings"];
    assert_eq!(
        findings[0]["objects"],
        json!({"all": 2, "affected": 1, "examples": ["east/a0"],
               "text": "1 of 2 stored objects use the removed field"})
    );
}

#[test]
fn forbidden_objects_leave_the_change_breaking_and_say_so() {
    let folder = TestFolder::new().file("new.yaml", without_size());
    let found = run(&folder, "check --cluster new.yaml", &Cluster::Forbidding(&state(2, 0)));
    assert_eq!(found.code, 1, "{found:?}");
    let note = "note: stored objects cannot be counted: anvils are forbidden";
    assert!(found.out.contains(note), "{}", found.out);
}

#[test]
fn new_crd_breaks_nothing_and_a_silent_cluster_fails() {
    let folder = TestFolder::new().file("new.yaml", ANVIL);
    let found = run(
        &folder,
        "check --cluster new.yaml",
        &Cluster::Recorded("kind: Pod\napiVersion: v1\nmetadata: {name: a}\n"),
    );
    assert_eq!(found.code, 0, "{found:?}");
    assert!(found.out.contains("CustomResourceDefinition anvils.forge.example.com is new\n"));
    let found = run(&folder, "check --cluster new.yaml", &Cluster::Silent);
    assert_eq!(found.code, 1, "{found:?}");
    let found = run(&folder, "check new.yaml", &Cluster::None);
    assert!(found.code == 2 && found.err.contains("--cluster"), "{}", found.err);
}

#[test]
fn yaml_is_the_same_value_as_json() {
    let new = anvil("size: {type: integer}");
    let yaml = diff(ANVIL, &new, "-o yaml").out;
    let value: Value =
        mainstay_yaml::one(yaml.as_bytes(), &mainstay_yaml::Options::default()).unwrap();
    assert_eq!(value, json_of(&diff(ANVIL, &new, "-o json")));
}
