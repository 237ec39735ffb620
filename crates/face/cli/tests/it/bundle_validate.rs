//! `mainstay bundle validate`: findings and output.

use mainstay_clitest::{CSV, TestFolder};
use serde_json::Value;

fn bundle(csv: &str) -> TestFolder {
    TestFolder::new().file("b/manifests/csv.yaml", csv).file(
        "b/metadata/annotations.yaml",
        "annotations:\n  operators.operatorframework.io.bundle.package.v1: kiwi\n  \
         operators.operatorframework.io.bundle.channels.v1: stable\n  \
         operators.operatorframework.io.bundle.mediatype.v1: registry+v1\n  \
         operators.operatorframework.io.bundle.manifests.v1: manifests/\n  \
         operators.operatorframework.io.bundle.metadata.v1: metadata/\n",
    )
}

#[test]
fn valid_bundle_has_no_findings() {
    let answer = bundle(CSV).bundle("validate b");
    assert_eq!((answer.code, answer.out.as_str()), (0, "sound: 1 bundle\n"), "{answer:?}");
}

#[test]
fn findings_have_file_line_and_remedy() {
    let place = bundle(&CSV.replace("minKubeVersion: 1.25.0", "minKubeVersion: v1.25"));
    let answer = place.bundle("validate b");
    assert_eq!(answer.code, 1);
    assert_eq!(
        answer.out,
        "b/manifests/csv.yaml:9: error: csv.Spec.MinKubeVersion has an invalid value: v1.25 [csv]\n    \
         write a version such as 1.25.0\n\n\
         RULE   ERRORS   WARNINGS\ncsv    1        0\n\n\
         PACKAGE   ERRORS   WARNINGS\nkiwi      1        0\n\n1 error\n"
    );
    let sarif: Value = serde_json::from_str(&place.bundle("check b -o sarif").out).unwrap();
    let result = &sarif["runs"][0]["results"][0];
    assert_eq!(result["ruleId"], "csv");
    let place = &result["locations"][0]["physicalLocation"];
    assert_eq!(place["artifactLocation"]["uri"], "b/manifests/csv.yaml");
    assert_eq!(place["region"]["startLine"], 9);
}

#[test]
fn warnings_fail_only_with_strict() {
    let place = bundle(&CSV.replace("  minKubeVersion: 1.25.0\n", ""));
    assert_eq!(place.bundle("validate b").code, 0);
    assert_eq!(place.bundle("validate --strict b").code, 1);
    let json: Value = serde_json::from_str(&place.bundle("validate b -o json").out).unwrap();
    assert_eq!((&json["passed"], &json["warnings"]), (&true.into(), &1.into()));
}

#[test]
fn unreadable_files_are_reported_with_all_other_findings() {
    let place = bundle(CSV).file("b/manifests/notes.yaml", "a: b\n- c\n").file(
        "b/manifests/two.yaml",
        "{kind: Service, apiVersion: v1, metadata: {name: a}}\n---\nkind: B\napiVersion: v1\n",
    );
    let json: Value = serde_json::from_str(&place.bundle("validate b -o json").out).unwrap();
    let problems: Vec<(&str, &str)> = json["problems"]
        .as_array()
        .unwrap()
        .iter()
        .map(|finding| (finding["rule"].as_str().unwrap(), finding["file"].as_str().unwrap()))
        .collect();
    let wanted = [("unreadable", "b/manifests/notes.yaml"), ("dropped", "b/manifests/two.yaml")];
    assert_eq!(problems, wanted);
}

#[test]
fn findings_about_folders_and_metadata_have_a_place() {
    let annotations = "annotations:\n  operators.operatorframework.io.bundle.package.v1: kiwi\n  \
                       operators.operatorframework.io.bundle.channels.v1: ''\n";
    let rule = "dependencies:\n- type: olm.constraint\n  value: {cel: {rule: things}}\n";
    let place = bundle(CSV)
        .file("b/metadata/annotations.yaml", annotations)
        .file("b/metadata/more.yaml", rule)
        .file("b/manifests/pod.yaml", "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\n");
    let json: Value = serde_json::from_str(&place.bundle("validate b -o json").out).unwrap();
    let problems: Vec<String> = json["problems"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|finding| finding["rule"] == "format")
        .map(|finding| {
            let text = |name: &str| finding[name].as_str().unwrap_or_default().to_owned();
            let first = text("message").chars().take(20).collect::<String>();
            format!("{}:{} {first}", text("file"), finding["line"])
        })
        .collect();
    assert_eq!(
        problems,
        [
            "b/manifests/pod.yaml:1 a bundle may not con",
            "b/metadata/annotations.yaml:1 expecting annotation",
            "b/metadata/annotations.yaml:1 missing annotation \"",
            "b/metadata/annotations.yaml:1 missing annotation \"",
            "b/metadata/annotations.yaml:1 missing annotation \"",
            "b/metadata/annotations.yaml:3 expecting annotation",
            "b/metadata/more.yaml:1 invalid CEL expressi",
        ]
    );
    // A folder of manifests alone has no metadata.
    let alone = TestFolder::new().file("m/csv.yaml", CSV).bundle("validate m");
    assert_eq!(alone.code, 0, "{alone:?}");
}

/// The findings as `rule severity file:line message: remedy`.
fn findings(place: &TestFolder) -> Vec<String> {
    let json: Value = serde_json::from_str(&place.bundle("validate b -o json").out).unwrap();
    let problems = json["problems"].as_array().unwrap().iter();
    let line = |finding: &Value| {
        let text = |name: &str| finding[name].as_str().unwrap_or_default();
        let (rule, severity, file) = (text("rule"), text("severity"), text("file"));
        let file = file.strip_prefix("b/").unwrap_or(file);
        format!(
            "{rule} {severity} {file}:{} {}: {}",
            finding["line"],
            text("message"),
            text("remedy")
        )
    };
    problems.map(line).collect()
}

#[test]
fn bundle_without_metadata_has_a_warning() {
    let place = TestFolder::new().file("b/manifests/csv.yaml", CSV);
    assert_eq!(
        findings(&place),
        [
            "format warning b:null the folder metadata is missing: no tool accepts the bundle without it: \
             opm alpha bundle generate -d b/manifests -p PACKAGE -c CHANNEL writes it"
        ]
    );
    assert_eq!(place.bundle("validate b").code, 0);
}

#[test]
fn repeated_keys_are_reported_as_losing_the_first_value() {
    let csv = CSV.replace("metadata:\n", "metadata:\n  name: kiwi.v0.9.0\n");
    let json = "{\n \"apiVersion\": \"v1\",\n \"kind\": \"Service\",\n \"metadata\": {\"name\": \"a\",\n  \"name\": \"b\"}\n}\n";
    let more = "dependencies: []\n\"dependencies\": []\n";
    let place = bundle(&csv)
        .file("b/manifests/service.json", json)
        .file("b/metadata/dependencies.yaml", more);
    let twice = |place: &str, key: &str| {
        format!(
            "repeated-key error {place} the key {key:?} is there twice, the first value is lost: \
             keep one of them"
        )
    };
    assert_eq!(
        findings(&place),
        [
            twice("manifests/csv.yaml:5", "name"),
            twice("manifests/service.json:5", "name"),
            twice("metadata/dependencies.yaml:2", "dependencies"),
        ]
    );
    let answer = place.catalog("validate b");
    assert_eq!(answer.code, 1);
    assert_eq!(answer.out.matches("[repeated-key]").count(), 3, "{}", answer.out);

    // A file with many repeated keys has one finding, as nobody reads one per line.
    let many = "kind: Service\napiVersion: v1\n".to_owned() + &"a: 1\n".repeat(5000);
    let place = bundle(CSV).file("b/manifests/many.yaml", &many);
    let lines: Vec<String> =
        findings(&place).into_iter().filter(|line| line.starts_with("repeated-key")).collect();
    assert_eq!(lines.len(), 21);
    assert!(lines[20].contains("4979 more keys are there twice"), "{}", lines[20]);
}

#[test]
fn kinds_and_versions_that_no_cluster_serves_are_reported() {
    for (from, to, wanted) in [
        (
            "apiVersion: operators.coreos.com/v1alpha1",
            "apiVersion: operators.coreos.com/v1",
            "unknown-api warning manifests/csv.yaml:1 the apiVersion \"operators.coreos.com/v1\" is not \
             that of a ClusterServiceVersion: OLM reads it all the same, the API server refuses it: \
             write apiVersion: operators.coreos.com/v1alpha1",
        ),
        (
            "v1, kind: Service",
            "v2, kind: Service",
            "unknown-api error manifests/more.yaml:1 there is no kind Service in \"v2\": the API server \
             refuses the object: write apiVersion: v1",
        ),
        (
            "v1, kind: Service",
            "v1, kind: Role",
            "unknown-api error manifests/more.yaml:1 there is no kind Role in \"v1\": the API server \
             refuses the object: write apiVersion: rbac.authorization.k8s.io/v1",
        ),
        (
            "v1, kind: Service",
            "rbac.authorisation.k8s.io/v1, kind: Role",
            "unknown-api error manifests/more.yaml:1 there is no kind Role in \
             \"rbac.authorisation.k8s.io/v1\": the API server refuses the object: write apiVersion: \
             rbac.authorization.k8s.io/v1",
        ),
        (
            "v1, kind: Service",
            "scheduling.k8s.io/v1alpha7, kind: PriorityClass",
            "unknown-api warning manifests/more.yaml:1 there is no kind PriorityClass in \
             \"scheduling.k8s.io/v1alpha7\": the API server refuses the object: write apiVersion: \
             scheduling.k8s.io/v1",
        ),
    ] {
        let more = "{apiVersion: v1, kind: Service, metadata: {name: a}}\n";
        let place =
            bundle(&CSV.replace(from, to)).file("b/manifests/more.yaml", more.replace(from, to));
        assert_eq!(findings(&place), [wanted]);
        let answer = place.catalog("validate b");
        let rule = if wanted.contains("warning") { "[doubtful-api]" } else { "[unknown-api]" };
        assert!(answer.out.contains(rule), "{}", answer.out);
    }
    // APIs that Kubernetes removed have another rule, and kinds of other CRDs are unknown.
    for sound in [
        "{apiVersion: policy/v1beta1, kind: PodDisruptionBudget, metadata: {name: a}}\n",
        "{apiVersion: monitoring.coreos.com/v1, kind: ServiceMonitor, metadata: {name: a}}\n",
        "{apiVersion: networking.k8s.io/v1, kind: NetworkPolicy, metadata: {name: a}}\n",
    ] {
        let place = bundle(CSV).file("b/manifests/more.yaml", sound);
        let lines = findings(&place);
        assert!(!lines.iter().any(|line| line.starts_with("unknown-api")), "{lines:?}");
    }
}

#[test]
fn misspelled_kind_is_reported_as_the_missing_object() {
    let place = bundle(&CSV.replace("ClusterServiceVersion", "ClusterServicVersion"));
    let lines = findings(&place);
    let wanted = "unreadable error manifests/csv.yaml:1 there is no kind \"ClusterServicVersion\": did you \
                  mean ClusterServiceVersion?";
    assert!(lines.contains(&wanted.to_owned()), "{lines:#?}");
}

#[cfg(unix)]
#[test]
fn unreadable_file_has_its_own_remedy_and_no_further_findings() {
    let place = bundle(CSV).file("b/metadata/annotations.yaml", "annotations: [\n");
    assert_eq!(
        findings(&place).iter().map(|line| line.split(' ').next().unwrap()).collect::<Vec<_>>(),
        ["unreadable"]
    );
    let place = bundle(CSV);
    std::os::unix::fs::symlink("/nowhere", place.path().join("b/manifests/link.yaml")).unwrap();
    let lines = findings(&place);
    assert_eq!(lines.len(), 1, "{lines:#?}");
    assert!(lines[0].ends_with(": copy the file into the bundle"), "{lines:#?}");
}

#[test]
fn operatorhub_validator_runs_on_request() {
    let place = bundle(CSV);
    let answer = place.bundle("validate --also operatorhub/v2 b");
    assert_eq!(answer.code, 1);
    assert!(
        answer.out.contains("csv.Spec.Provider.Name not specified [operatorhub/v2]"),
        "{answer:?}"
    );
    assert_eq!(place.bundle("validate --also nobody b").code, 2);
    assert_eq!(place.bundle("validate nowhere").code, 2);
}

#[test]
fn unknown_fields_are_reported_at_any_depth() {
    for (from, to, line, message, remedy) in [
        (
            "  version: 1.0.0",
            "  versio: 1.0.0",
            8,
            "there is no field \"versio\" in spec of the ClusterServiceVersion: clusters drop it",
            "did you mean \"version\"?",
        ),
        (
            "    spec: {deployments: []}\n",
            "    spec:\n      deployments:\n      - name: kiwi\n        spec:\n          template:\n            \
             spec:\n              serviceAccountNam: kiwi\n",
            20,
            "there is no field \"serviceAccountNam\" in spec.install.spec.deployments[0].spec.template.spec \
             of the ClusterServiceVersion: clusters drop it",
            "did you mean \"serviceAccountName\"?",
        ),
    ] {
        let csv = CSV.replace(from, to);
        assert_ne!(csv, CSV, "{from}");
        let answer = bundle(&csv).bundle("validate b -o json");
        let json: Value = serde_json::from_str(&answer.out).unwrap();
        let findings = json["problems"].as_array().unwrap();
        let findings = findings.iter().find(|finding| finding["rule"] == "unknown-field");
        let findings = findings.unwrap_or_else(|| panic!("{json:#}"));
        assert_eq!((answer.code, &findings["severity"]), (1, &"error".into()));
        assert_eq!((&findings["message"], &findings["remedy"]), (&message.into(), &remedy.into()));
        assert_eq!(
            (&findings["file"], &findings["line"]),
            (&"b/manifests/csv.yaml".into(), &line.into())
        );
        // The folder is validated as part of a catalog too, and the image build refuses it.
        let answer = bundle(&csv).catalog("validate b");
        assert_eq!(answer.code, 1, "{answer:?}");
        assert!(answer.out.contains(&format!("{message} [unknown-field]")), "{answer:?}");
        assert_eq!(bundle(&csv).bundle("build b oci:out").code, 1);
    }
    // A field unlike any known one is a warning.
    let place = bundle(&CSV.replace("  version:", "  anything: 1\n  version:"));
    let answer = place.bundle("validate b");
    assert_eq!(answer.code, 0);
    assert!(
        answer.out.contains("csv.yaml:8: warning: there is no field \"anything\""),
        "{answer:?}"
    );
    assert_eq!(place.bundle("validate b --strict").code, 1);
    assert!(place.catalog("validate b").out.contains("[unknown-manifest-field]"));
}
