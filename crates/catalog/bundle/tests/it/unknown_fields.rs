//! Unknown fields: their location, level and suggested field; and unknown APIs of published
//! bundles.

use mainstay_bundle::{
    Bundle, BundleFolder, BundleReader, Limits, MemoryFiles, UnknownField,
    validate::{FindingLevel, LibraryVersion},
};
use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};

const ANNOTATIONS: &str = "annotations:
  operators.operatorframework.io.bundle.package.v1: kiwi
  operators.operatorframework.io.bundle.channels.v1: stable
";

const CSV: &str = "apiVersion: operators.coreos.com/v1alpha1
kind: ClusterServiceVersion
metadata:
  name: kiwi.v1.0.0
spec:
  version: 1.0.0
  replaces: kiwi.v0.9.0
  customresourcedefinitions:
    owned:
    - name: foos.example.com
      version: v1
      kind: Foo
      specDescriptors:
      - path: size
  webhookdefinitions:
  - type: ValidatingAdmissionWebhook
    sideEffects: None
    rules:
    - operations: [CREATE]
      apiGroups: [example.com]
  install:
    strategy: deployment
    spec:
      clusterPermissions:
      - serviceAccountName: kiwi
        rules:
        - apiGroups: ['']
          resources: [pods]
          verbs: [get]
      deployments:
      - name: kiwi
        spec:
          replicas: 1
          template:
            spec:
              serviceAccountName: kiwi
              containers:
              - name: kiwi
                image: example.com/kiwi
                readinessProbe:
                  httpGet: {path: /, port: 80}
status: {anything: 1}
";

const CRD: &str = "apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: foos.example.com
spec:
  group: example.com
  names: {kind: Foo, plural: foos}
  scope: Namespaced
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        x-kubernetes-preserve-unknown-fields: true
        properties:
          anyName: {type: integer, minimum: 1, default: {anyName: 1}}
          list:
            type: array
            items: {type: string, description: d}
";

const SERVICE: &str = "apiVersion: v1
kind: Service
metadata:
  name: kiwi
spec:
  ports:
  - port: 80
    targetPort: web
";

const MONITOR: &str = "apiVersion: monitoring.coreos.com/v1
kind: ServiceMonitor
metadata:
  name: kiwi
spec:
  anything: 1
";

const DEPENDENCIES: &str = "dependencies:
- type: olm.package
  value:
    packageName: plum
    version: '>1.0.0'
- type: olm.constraint
  value:
    all:
      constraints:
      - gvk: {group: a, version: v1, kind: B}
- type: example.com.own
  value: {anything: 1}
";

const SOUND: [(&str, &str); 6] = [
    ("manifests/crd.yaml", CRD),
    ("manifests/csv.yaml", CSV),
    ("manifests/monitor.yaml", MONITOR),
    ("manifests/service.yaml", SERVICE),
    ("metadata/annotations.yaml", ANNOTATIONS),
    ("metadata/dependencies.yaml", DEPENDENCIES),
];

/// The unknown fields of the valid bundle after a text was replaced.
fn unknown(from: &str, to: &str) -> Vec<UnknownField> {
    assert_eq!(SOUND.iter().filter(|(_, text)| text.contains(from)).count(), 1, "{from}");
    let files = SOUND.map(|(path, text)| (path, text.replacen(from, to, 1)));
    let files: MemoryFiles = files.into_iter().collect();
    let limits = Limits::default();
    let reading = BundleReader::new(&files, &limits);
    let subject = reading.load("", "bundle", LibraryVersion::default()).subject.unwrap();
    let of_objects = subject.unknown_fields();
    let bundle = Bundle::read_from(&files, &limits).map(|bundle| bundle.unknown_fields());
    // Invalid dependencies do not prevent reading the bundle.
    assert_eq!(bundle.unwrap(), of_objects, "both readers return the same fields");
    of_objects.into_iter().chain(reading.unknown_fields()).collect()
}

fn line(unknown: &UnknownField) -> String {
    let problem = &unknown.problem;
    let line = problem.line.unwrap();
    let loss = problem.message.rsplit_once(": ").unwrap().1;
    let message = problem.message.replace(&format!(": {loss}"), "");
    format!("{:?} {}:{line}: {message} ({})", unknown.level, problem.file, problem.remedy)
}

#[test]
fn known_fields_have_no_findings() {
    assert_eq!(unknown("version: 1.0.0", "version: 1.0.0"), []);
}

#[test]
fn a_misspelled_field_is_an_error_that_names_place_and_field() {
    for (from, to, expected) in [
        (
            "spec:\n  version:",
            "spec:\n  versio:",
            "csv.yaml:6: there is no field \"versio\" in spec of the ClusterServiceVersion (did you mean \"version\"?)",
        ),
        (
            "metadata:\n  name: kiwi.v1.0.0",
            "metadat:\n  name: x\nmetadata:\n  name: kiwi.v1.0.0",
            "csv.yaml:3: there is no field \"metadat\" in the ClusterServiceVersion (remove it, or move it to where it belongs)",
        ),
        (
            "  replaces: k",
            "  replcaes: k",
            "csv.yaml:7: there is no field \"replcaes\" in spec of the ClusterServiceVersion (did you mean \"replaces\"?)",
        ),
        (
            "      specDescriptors",
            "      specDescriptor",
            "csv.yaml:13: there is no field \"specDescriptor\" in spec.customresourcedefinitions.owned[0] of the ClusterServiceVersion (did you mean \"specDescriptors\"?)",
        ),
        (
            "    sideEffects",
            "    sideEfects",
            "csv.yaml:17: there is no field \"sideEfects\" in spec.webhookdefinitions[0] of the ClusterServiceVersion (did you mean \"sideEffects\"?)",
        ),
        (
            "    - operations",
            "    - operation",
            "csv.yaml:19: there is no field \"operation\" in spec.webhookdefinitions[0].rules[0] of the ClusterServiceVersion (did you mean \"operations\"?)",
        ),
        (
            "      clusterPermissions",
            "      clusterPermission",
            "csv.yaml:24: there is no field \"clusterPermission\" in spec.install.spec of the ClusterServiceVersion (did you mean \"clusterPermissions\"?)",
        ),
        (
            "          verbs: [get]",
            "          verb: [get]",
            "csv.yaml:29: there is no field \"verb\" in spec.install.spec.clusterPermissions[0].rules[0] of the ClusterServiceVersion (did you mean \"verbs\"?)",
        ),
        (
            "              serviceAccountName",
            "              serviceAccountNam",
            "csv.yaml:36: there is no field \"serviceAccountNam\" in spec.install.spec.deployments[0].spec.template.spec of the ClusterServiceVersion (did you mean \"serviceAccountName\"?)",
        ),
        (
            "                  httpGet",
            "                  httpget: {}\n                  htpGet",
            "csv.yaml:42: there is no field \"htpGet\" in spec.install.spec.deployments[0].spec.template.spec.containers[0].readinessProbe of the ClusterServiceVersion (did you mean \"httpGet\"?)",
        ),
        (
            "    storage: true",
            "    storag: true",
            "crd.yaml:12: there is no field \"storag\" in spec.versions[0] of the CustomResourceDefinition (did you mean \"storage\"?)",
        ),
        (
            "x-kubernetes-preserve-unknown-fields",
            "x-kubernetes-preserve-unknown-field",
            "crd.yaml:16: there is no field \"x-kubernetes-preserve-unknown-field\" in spec.versions[0].schema.openAPIV3Schema of the CustomResourceDefinition (did you mean \"x-kubernetes-preserve-unknown-fields\"?)",
        ),
        (
            "minimum: 1",
            "minium: 1",
            "crd.yaml:18: there is no field \"minium\" in spec.versions[0].schema.openAPIV3Schema.properties.anyName of the CustomResourceDefinition (did you mean \"minimum\"?)",
        ),
        (
            "description: d",
            "descripton: d",
            "crd.yaml:21: there is no field \"descripton\" in spec.versions[0].schema.openAPIV3Schema.properties.list.items of the CustomResourceDefinition (did you mean \"description\"?)",
        ),
        (
            "    targetPort: web",
            "    targetport: web",
            "service.yaml:8: there is no field \"targetport\" in spec.ports[0] of the Service (did you mean \"targetPort\"?)",
        ),
        (
            "  ports:\n",
            "  selctor: {}\n  ports:\n",
            "service.yaml:6: there is no field \"selctor\" in spec of the Service (did you mean \"selector\"?)",
        ),
        (
            "ServiceMonitor\nmetadata:\n",
            "ServiceMonitor\nmetadata:\n  lables: {}\n",
            "monitor.yaml:4: there is no field \"lables\" in metadata of the ServiceMonitor (did you mean \"labels\"?)",
        ),
    ] {
        let found: Vec<String> = unknown(from, to).iter().map(line).collect();
        let level = if expected.ends_with("belongs)") { "Warning" } else { "Error" };
        let expected = format!("{level} manifests/{expected}");
        assert!(found.contains(&expected), "{to}: {found:#?}");
    }
}

#[test]
fn metadata_files_are_checked_for_unknown_fields() {
    for (from, to, expected) in [
        (
            "dependencies:",
            "dependancies:",
            "Error metadata/dependencies.yaml:1: there is no field \"dependancies\" in the file (did you mean \"dependencies\"?)",
        ),
        (
            "- type: olm.package",
            "- typ: olm.package",
            "Error metadata/dependencies.yaml:2: there is no field \"typ\" in dependencies[0] of the file (did you mean \"type\"?)",
        ),
        (
            "    packageName: plum",
            "    packagename: plum",
            "Warning metadata/dependencies.yaml:4: there is no field \"packagename\" in dependencies[0].value of the file (write \"packageName\")",
        ),
        (
            "    version: '>1.0.0'",
            "    channel: stable",
            "Warning metadata/dependencies.yaml:5: there is no field \"channel\" in dependencies[0].value of the file (remove it, or move it to where it belongs)",
        ),
        (
            "      constraints:",
            "      constraint:",
            "Error metadata/dependencies.yaml:9: there is no field \"constraint\" in dependencies[1].value.all of the file (did you mean \"constraints\"?)",
        ),
    ] {
        let found: Vec<String> = unknown(from, to).iter().map(line).collect();
        assert_eq!(found, [expected], "{to}");
    }
    let files: MemoryFiles = [("metadata/own.yaml", "anything: {a: b}\n")].into_iter().collect();
    assert_eq!(BundleReader::new(&files, &Limits::default()).unknown_fields(), []);
}

#[test]
fn an_unknown_field_that_is_no_misspelling_is_a_warning() {
    for (from, to, expected) in [
        // A field of another object, or of none.
        (
            "      kind: Foo",
            "      kind: Foo\n      group: example.com",
            "there is no field \"group\" in spec.customresourcedefinitions.owned[0] of the ClusterServiceVersion: clusters drop it",
        ),
        // The object also has the field that might have been meant.
        (
            "  version: 1.0.0",
            "  version: 1.0.0\n  versions: 1",
            "there is no field \"versions\" in spec of the ClusterServiceVersion: clusters drop it",
        ),
        // OLM reads the field; the API server drops it.
        (
            "  replaces: k",
            "  Replaces: k",
            "there is no field \"Replaces\" in spec of the ClusterServiceVersion: names are compared letter by letter",
        ),
    ] {
        let found = unknown(from, to);
        assert_eq!(found.len(), 1, "{found:?}");
        assert_eq!((found[0].level, &*found[0].problem.message), (FindingLevel::Warning, expected));
    }
}

#[test]
fn a_field_that_is_unknown_in_many_places_is_listed_three_times() {
    let entry = |number: usize| {
        format!("    - {{name: f{number}.example.com, version: v1, kind: F, group: a}}\n")
    };
    let owned = (0..9).map(entry).collect::<Vec<_>>().concat();
    let csv = CSV.replace("    owned:\n", &format!("    owned:\n{owned}"));
    let files: MemoryFiles = [("manifests/csv.yaml", &*csv)].into_iter().collect();
    let limits = Limits::default();
    let reading = BundleReader::new(&files, &limits);
    let found = reading.load("", "", LibraryVersion::default()).subject.unwrap().unknown_fields();
    let lines: Vec<Option<usize>> = found.iter().map(|field| field.problem.line).collect();
    assert_eq!(lines, [Some(10), Some(11), Some(12)]);
    assert!(found[2].problem.message.ends_with("; also in 6 more places"), "{found:?}");
}

#[test]
fn a_hostile_object_has_a_bounded_number_of_findings() {
    let unknown: String = (0..20_000).fold(String::new(), |text, number| {
        text + &format!("{}\"field{number}\": 1", if number == 0 { "" } else { ", " })
    });
    let spec = "{\"a\": ".repeat(100) + &format!("{{{unknown}}}") + &"}".repeat(100);
    let csv = CSV
        .replace("  version: 1.0.0\n", &format!("  version: 1.0.0\n  icon: [{{{unknown}}}]\n"))
        + &format!("more: {spec}\n");
    let files: MemoryFiles = [("manifests/csv.yaml", &*csv)].into_iter().collect();
    let limits = Limits::default();
    let reading = BundleReader::new(&files, &limits);
    let found = reading.load("", "", LibraryVersion::default()).subject.unwrap().unknown_fields();
    assert_eq!(found.len(), 101);
    let last = &found[100].problem.message;
    assert!(
        last.starts_with("there are 9900 more fields that the ClusterServiceVersion"),
        "{last}"
    );
}

fn bundles(folder: &Path, found: &mut Vec<PathBuf>) {
    if folder.join("manifests").is_dir() {
        found.push(folder.to_owned());
        return;
    }
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            bundles(&path, found);
        }
    }
}

#[test]
fn errors_in_published_bundles_are_misspellings() {
    let Some(data) = mainstay_testdata::unpack("bundles-249", "unknown fields of bundles") else {
        return;
    };
    let mut all = Vec::new();
    bundles(data.path(), &mut all);
    let mut errors = BTreeSet::new();
    let mut with = 0;
    for folder in &all {
        let tree = BundleFolder::new(folder);
        let limits = Limits::default();
        let reading = BundleReader::new(&tree, &limits);
        let loaded = reading.load("", "", LibraryVersion::default());
        let mut found = reading.unknown_fields();
        found.extend(
            loaded.subject.iter().flat_map(mainstay_bundle::validate::LoadedBundle::unknown_fields),
        );
        with += usize::from(!found.is_empty());
        let wrong = found.into_iter().filter(|unknown| unknown.level == FindingLevel::Error);
        errors.extend(wrong.map(|unknown| {
            let name = unknown.problem.message.split('"').nth(1).unwrap().to_owned();
            format!("{name}: {}", unknown.problem.remedy)
        }));
    }
    mainstay_testdata::ran(&format!(
        "{with} of {} published bundles have unknown fields",
        all.len()
    ));
    let plain =
        ["labels: did you mean \"label\"?", "miniKubeVersion: did you mean \"minKubeVersion\"?"];
    assert_eq!(errors.iter().map(String::as_str).collect::<Vec<_>>(), plain);
}

#[test]
fn published_bundles_have_unknown_apis_only_in_csvs() {
    let what = "keys and kinds of bundles";
    let Some(data) = mainstay_testdata::unpack("bundles-249", what) else { return };
    let mut all = Vec::new();
    bundles(data.path(), &mut all);
    let mut csv_warning = BTreeSet::new();
    for folder in &all {
        let tree = BundleFolder::new(folder);
        let limits = Limits::default();
        let reading = BundleReader::new(&tree, &limits);
        let loaded = reading.load("", "", LibraryVersion::default());
        assert_eq!(loaded.repeated, [], "{}", folder.display());
        for api in
            loaded.subject.iter().flat_map(mainstay_bundle::validate::LoadedBundle::unknown_apis)
        {
            assert_eq!(api.level, FindingLevel::Warning, "{}: {}", folder.display(), api.problem);
            csv_warning.insert(api.problem.message);
        }
    }
    mainstay_testdata::ran(&format!("{what}: {} published bundles", all.len()));
    let of_version = |version: &str| {
        format!(
            "the apiVersion \"operators.coreos.com/{version}\" is not that of a \
             ClusterServiceVersion: OLM reads it all the same, the API server refuses it"
        )
    };
    assert_eq!(csv_warning.into_iter().collect::<Vec<_>>(), ["v1", "v1beta1"].map(of_version));
}
