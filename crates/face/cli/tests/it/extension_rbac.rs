//! `mainstay extension rbac`: installer roles, differences, roles for users.

use super::extension_commands::{STATE, run_in};
use super::recorded_cluster::{RecordedCluster, SilentCluster};
use mainstay_clitest::{ACCEPT_ANYTHING, ANNOTATIONS, CommandOutput, LoopbackRegistry, TestFolder};
use serde_json::{Value, json};

const CSV: &str = "apiVersion: operators.coreos.com/v1alpha1
kind: ClusterServiceVersion
metadata: {name: kiwi.v1.0.0}
spec:
  version: 1.0.0
  minKubeVersion: 1.25.0
  installModes:
  - {type: AllNamespaces, supported: true}
  - {type: SingleNamespace, supported: true}
  install:
    strategy: deployment
    spec:
      permissions:
      - serviceAccountName: kiwi
        rules:
        - {apiGroups: [''], resources: [pods], verbs: [get]}
      deployments:
      - name: kiwi
        spec:
          selector: {matchLabels: {app: kiwi}}
          template:
            metadata: {labels: {app: kiwi}}
            spec: {serviceAccountName: kiwi, containers: [{name: kiwi, image: example.com/kiwi:1}]}
";

const CRD: &str = "apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: kiwis.fruit.example.com}
spec:
  group: fruit.example.com
  scope: Namespaced
  names: {kind: Kiwi, plural: kiwis, singular: kiwi, listKind: KiwiList}
  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}]
";

/// The folders `b`, a bundle, `n`, the next version of it, which needs Secrets and no CRD, and `w`, the bundle
/// with a webhook.
pub(super) fn folder() -> TestFolder {
    let webhook = "spec:
  webhookdefinitions:
  - type: ValidatingAdmissionWebhook
    generateName: v.example.com
    deploymentName: kiwi
    sideEffects: None
    admissionReviewVersions: [v1]
";
    let next = CSV
        .replace("kiwi.v1.0.0", "kiwi.v2.0.0")
        .replace("version: 1.0.0", "version: 2.0.0")
        .replace("resources: [pods]", "resources: [pods, secrets]");
    TestFolder::new()
        .file("b/manifests/csv.yaml", CSV)
        .file("b/manifests/crd.yaml", CRD)
        .file("b/metadata/annotations.yaml", ANNOTATIONS)
        .file("n/manifests/csv.yaml", next)
        .file("n/metadata/annotations.yaml", ANNOTATIONS)
        .file("w/manifests/csv.yaml", CSV.replacen("spec:\n", webhook, 1))
        .file("w/metadata/annotations.yaml", ANNOTATIONS)
        .file(".config/containers/policy.json", ACCEPT_ANYTHING)
        .file("empty/x.yaml", "")
}

/// Runs the command without a cluster.
fn rbac(arguments: &str) -> CommandOutput {
    run_in(&folder(), SilentCluster, &format!("rbac {arguments}"), None)
}

/// The objects of the command's output.
fn items(answer: &CommandOutput) -> Vec<Value> {
    let list = answer.json();
    assert_eq!(list["kind"], "List");
    list["items"].as_array().unwrap().clone()
}

fn names(objects: &[Value]) -> Vec<String> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    objects
        .iter()
        .map(|object| format!("{} {}", text(&object["kind"]), text(&object["metadata"]["name"])))
        .collect()
}

#[test]
fn exact_roles_are_yaml_that_can_be_applied() {
    let answer = rbac("--bundle b --namespace fruit");
    assert_eq!((answer.code, &*answer.err), (0, ""));
    // shows RBAC-31
    insta::assert_snapshot!(answer.out, @r#"
    apiVersion: v1
    kind: ServiceAccount
    metadata:
      name: kiwi-installer
      namespace: fruit
    ---
    apiVersion: rbac.authorization.k8s.io/v1
    kind: ClusterRole
    metadata:
      name: kiwi-installer-clusterrole
    rules:
    - apiGroups:
      - olm.operatorframework.io
      resourceNames:
      - kiwi
      resources:
      - clusterextensions/finalizers
      verbs:
      - update
    - apiGroups:
      - rbac.authorization.k8s.io
      resources:
      - clusterroles
      verbs:
      - create
      - list
      - watch
    - apiGroups:
      - rbac.authorization.k8s.io
      resourceNames:
      - kiwi.v1.0.0-kiwi-25xr81znxk2khvbknzlqn66q3npnwzni410gxdt78mgi
      resources:
      - clusterroles
      verbs:
      - get
      - update
      - patch
      - delete
    - apiGroups:
      - rbac.authorization.k8s.io
      resources:
      - clusterrolebindings
      verbs:
      - create
      - list
      - watch
    - apiGroups:
      - rbac.authorization.k8s.io
      resourceNames:
      - kiwi.v1.0.0-kiwi-25xr81znxk2khvbknzlqn66q3npnwzni410gxdt78mgi
      resources:
      - clusterrolebindings
      verbs:
      - get
      - update
      - patch
      - delete
    - apiGroups:
      - apiextensions.k8s.io
      resources:
      - customresourcedefinitions
      verbs:
      - create
      - list
      - watch
    - apiGroups:
      - apiextensions.k8s.io
      resourceNames:
      - kiwis.fruit.example.com
      resources:
      - customresourcedefinitions
      verbs:
      - get
      - update
      - patch
      - delete
    - apiGroups:
      - ""
      resources:
      - pods
      verbs:
      - get
    - apiGroups:
      - ""
      resources:
      - namespaces
      verbs:
      - get
      - list
      - watch
    - apiGroups:
      - apps
      resources:
      - deployments
      verbs:
      - list
      - watch
    - apiGroups:
      - ""
      resources:
      - serviceaccounts
      verbs:
      - list
      - watch
    ---
    apiVersion: rbac.authorization.k8s.io/v1
    kind: ClusterRoleBinding
    metadata:
      name: kiwi-installer-binding
    roleRef:
      apiGroup: rbac.authorization.k8s.io
      kind: ClusterRole
      name: kiwi-installer-clusterrole
    subjects:
    - kind: ServiceAccount
      name: kiwi-installer
      namespace: fruit
    ---
    apiVersion: rbac.authorization.k8s.io/v1
    kind: Role
    metadata:
      name: kiwi-installer-role
      namespace: fruit
    rules:
    - apiGroups:
      - apps
      resources:
      - deployments
      verbs:
      - create
    - apiGroups:
      - apps
      resourceNames:
      - kiwi
      resources:
      - deployments
      verbs:
      - get
      - update
      - patch
      - delete
    - apiGroups:
      - ""
      resources:
      - serviceaccounts
      verbs:
      - create
    - apiGroups:
      - ""
      resourceNames:
      - kiwi
      resources:
      - serviceaccounts
      verbs:
      - get
      - update
      - patch
      - delete
    ---
    apiVersion: rbac.authorization.k8s.io/v1
    kind: RoleBinding
    metadata:
      name: kiwi-installer-binding
      namespace: fruit
    roleRef:
      apiGroup: rbac.authorization.k8s.io
      kind: Role
      name: kiwi-installer-role
    subjects:
    - kind: ServiceAccount
      name: kiwi-installer
      namespace: fruit
    "#);
    let objects = items(&rbac("tea --bundle b --namespace fruit -o json"));
    assert_eq!(
        names(&objects),
        [
            "ServiceAccount tea-installer",
            "ClusterRole tea-installer-clusterrole",
            "ClusterRoleBinding tea-installer-binding",
            "Role tea-installer-role",
            "RoleBinding tea-installer-binding",
        ]
    );
}

#[test]
fn update_needs_the_permissions_for_both_bundles() {
    let text = |arguments: &str| items(&rbac(arguments))[1]["rules"].to_string();
    let both = text("--bundle n --also b -n fruit -o json");
    let new = text("--bundle n -n fruit -o json");
    for part in ["kiwi.v1.0.0-kiwi-", "kiwis.fruit.example.com"] {
        assert!(both.contains(part) && !new.contains(part), "{part}: {both}");
    }
    assert!(both.contains("kiwi.v2.0.0-kiwi-") && both.contains("secrets"), "{both}");
    let refused = rbac("--bundle n --also ./none -n fruit");
    assert_eq!((refused.code, &*refused.out), (2, ""), "{refused:?}");
    assert_eq!(rbac("--bundle n --also b -n fruit --users").code, 2);
}

#[test]
fn issuer_of_certificates_decides_over_the_permissions_for_webhooks() {
    let rules = |issuer: &str| {
        let objects = items(&rbac(&format!("--bundle w -n fruit --certificates {issuer} -o json")));
        objects.iter().map(|object| object["rules"].to_string()).collect::<String>()
    };
    let named = |issuer: &str| {
        let rules = rules(issuer);
        ["kiwi-service-cert", "issuers", "secrets"].map(|word| rules.contains(word))
    };
    assert_eq!(named("cert-manager"), [true, true, false]);
    assert_eq!(named("service-ca"), [false, false, false]);
    assert_eq!(named("own"), [true, false, true]);
    let refused = rbac("--bundle w -n fruit --certificates none");
    assert_eq!((refused.code, &*refused.out), (1, ""), "{refused:?}");
}

#[test]
fn applier_decides_whose_finalizers_the_account_updates() {
    let text = |arguments: &str| rbac(arguments).out;
    let rules = |applier: &str| text(&format!("--bundle b -n fruit {applier} -o json"));
    let (releases, sets) = (rules(""), rules("--applier object-sets"));
    for (printed, [has, lacks]) in [
        (releases, ["clusterextensions/finalizers", "clusterobjectsets/finalizers"]),
        (sets, ["clusterobjectsets/finalizers", "clusterextensions/finalizers"]),
    ] {
        assert!(printed.contains(has) && !printed.contains(lacks), "{printed}");
        assert!(printed.contains("watch"), "{printed}");
    }
    let difference = text("--bundle b --diff n -n fruit --applier object-sets -o json");
    assert!(!difference.contains("clusterextensions/finalizers"), "{difference}");
}

#[test]
fn service_account_may_have_another_name() {
    let objects = items(&rbac("tea --bundle b -n fruit --service-account me -o json"));
    assert_eq!(names(&objects)[0], "ServiceAccount me");
    assert_eq!(objects[2]["subjects"][0]["name"], "me");
}

#[test]
fn documented_role_has_the_form_of_the_documentation() {
    let objects = items(&rbac("--bundle b -n fruit --documented -o json"));
    let expected = [
        "ServiceAccount kiwi-installer",
        "ClusterRole kiwi-installer-clusterrole",
        "ClusterRoleBinding kiwi-installer-binding",
    ];
    assert_eq!(names(&objects), expected);
    let rules = objects[1]["rules"].as_array().unwrap();
    assert_eq!(rules[0]["resources"], json!(["clusterextensions/finalizers"]));
    assert_eq!(rules[2]["resourceNames"], json!(["*"]));
    assert!(rules.iter().any(|rule| rule["resourceNames"] == json!(["kiwis.fruit.example.com"])));
}

#[test]
fn difference_says_what_another_bundle_needs() {
    let answer = rbac("--bundle b -n fruit --diff n");
    assert_eq!((answer.code, &*answer.err), (0, ""));
    insta::assert_snapshot!(answer.out, @"
    kiwi.v2.0.0 instead of kiwi.v1.0.0 needs in addition:
    in the whole cluster:
      delete, get, patch, update clusterrolebindings.rbac.authorization.k8s.io: kiwi.v2.0.0-kiwi-tn3l9r95ukrva0y51a96e8fj8891873onu6tdwz0fe
      delete, get, patch, update clusterroles.rbac.authorization.k8s.io: kiwi.v2.0.0-kiwi-tn3l9r95ukrva0y51a96e8fj8891873onu6tdwz0fe
      get secrets
    no longer needs:
    in the whole cluster:
      create, list, watch customresourcedefinitions.apiextensions.k8s.io
      delete, get, patch, update customresourcedefinitions.apiextensions.k8s.io: kiwis.fruit.example.com
      delete, get, patch, update clusterrolebindings.rbac.authorization.k8s.io: kiwi.v1.0.0-kiwi-25xr81znxk2khvbknzlqn66q3npnwzni410gxdt78mgi
      delete, get, patch, update clusterroles.rbac.authorization.k8s.io: kiwi.v1.0.0-kiwi-25xr81znxk2khvbknzlqn66q3npnwzni410gxdt78mgi
    ");
    let value = rbac("--bundle b -n fruit --diff n -o json").json();
    assert_eq!((&value["from"], &value["to"]), (&json!("kiwi.v1.0.0"), &json!("kiwi.v2.0.0")));
    assert!(value["added"].to_string().contains("secrets"), "{value}");
    let same = rbac("--bundle b -n fruit --diff b");
    assert_eq!(same.out, "kiwi.v1.0.0 instead of kiwi.v1.0.0 needs the same permissions\n");
}

#[test]
fn users_get_roles_that_the_cluster_may_aggregate() {
    let roles = items(&rbac("--bundle b -n fruit --users -o json"));
    assert_eq!(
        names(&roles),
        ["ClusterRole kiwi-view", "ClusterRole kiwi-edit", "ClusterRole kiwi-admin"]
    );
    assert_eq!(roles[0]["metadata"]["labels"], Value::Null);
    let roles = items(&rbac("--bundle b -n fruit --users --aggregate -o json"));
    let label = "rbac.authorization.k8s.io/aggregate-to-view";
    assert_eq!(roles[0]["metadata"]["labels"][label], "true");
    let none = rbac("--bundle n -n fruit --users");
    assert!(
        none.code == 2 && none.err.contains("provides no CustomResourceDefinitions"),
        "{none:?}"
    );

    let cluster = RecordedCluster::new("kitchen", STATE);
    let answer = run_in(&folder(), cluster, "rbac tea --users -o json", None);
    let roles = items(&answer);
    assert_eq!(roles[1]["metadata"]["name"], "tea-edit");
    let rule = json!({"apiGroups": ["brew.example.com"], "resources": ["pots"], "verbs": ["get", "list", "watch"]});
    assert_eq!(roles[0]["rules"], json!([rule]));
}

#[test]
fn installed_bundle_of_the_cluster_is_pulled() {
    let folder = folder();
    let registry = LoopbackRegistry::open(folder.path());
    let image = format!("{}/org/kiwi:v1", registry.domain);
    let pushed = folder.bundle(&format!("build b {image} --force -q"));
    assert_eq!(pushed.code, 0, "{pushed:?}");
    let state = STATE
        .replace("x.io/teapot@sha256:1", &image)
        .replace("  namespace: kitchen\n  source", "  namespace: kitchen\n  serviceAccount: {name: me}\n  config: {configType: Inline, inline: {watchNamespace: garden}}\n  source");
    let cluster = RecordedCluster::new("kitchen", &state);
    let answer = run_in(&folder, cluster.clone(), "rbac tea -o json", None);
    let objects = items(&answer);
    assert_eq!(objects[0]["metadata"], json!({"name": "me", "namespace": "kitchen"}));
    assert_eq!(objects[2]["subjects"][0]["name"], "me");
    // The bundle watches the namespace of the configuration, so its permissions are there.
    assert!(
        objects.iter().any(|object| object["metadata"]["namespace"] == "garden"),
        "{objects:#?}"
    );

    let answer = run_in(&folder, cluster, "rbac tea --diff n", None);
    assert!(
        answer.code == 0
            && answer.out.starts_with("kiwi.v2.0.0 instead of kiwi.v1.0.0 needs in addition:"),
        "{answer:?}"
    );
    for location in [image, "oci:layout:v1".to_owned()] {
        folder.bundle("build b oci:layout:v1 --force -q");
        let answer =
            run_in(&folder, SilentCluster, &format!("rbac --bundle {location} -n fruit"), None);
        assert_eq!((answer.code, &*answer.err), (0, ""), "{location}");
    }
    let remaining: Vec<_> = std::fs::read_dir(folder.path())
        .unwrap()
        .flatten()
        .map(|entry| entry.file_name())
        .collect();
    assert!(
        !remaining.iter().any(|name| name.to_string_lossy().starts_with("mainstay-")),
        "{remaining:?}"
    );
}

#[test]
fn unusable_arguments_are_refused_with_a_remedy() {
    for (arguments, message) in [
        ("", "required arguments were not provided"),
        ("--bundle b", "--namespace <NAME>"),
        ("--bundle ./none -n a", "name the folder of a catalog or a bundle"),
        ("--bundle empty -n a", "the folder holds no bundle"),
        ("--bundle oci: -n a", "names no folder"),
        ("--bundle b -n a --documented --users", "cannot be used with"),
        ("--bundle b -n a --aggregate", "--users"),
        ("--bundle b -n a --config missing.yaml", "name a file with YAML or JSON"),
    ] {
        let arguments = format!("rbac {arguments}");
        let answer = run_in(&folder(), SilentCluster, arguments.trim(), None);
        assert_eq!((answer.code, &*answer.out), (2, ""), "{arguments}: {answer:?}");
        assert!(answer.err.contains(message), "{arguments}: {answer:?}");
    }
    let state =
        STATE.replace("Installed bundle x.io/teapot@sha256:1 successfully", "No bundle installed");
    let cluster = RecordedCluster::new("kitchen", &state);
    let answer = run_in(&folder(), cluster, "rbac tea", None);
    let error = "ClusterExtension tea has no installed bundle";
    assert!(
        answer.code == 2 && answer.err.contains(error) && answer.err.contains("--bundle"),
        "{answer:?}"
    );
}

#[test]
fn bundle_that_needs_a_configuration_says_so() {
    let csv = CSV.replace("AllNamespaces, supported: true", "AllNamespaces, supported: false");
    let folder =
        folder().file("b/manifests/csv.yaml", csv).file("c.yaml", "watchNamespace: garden");
    let run = |arguments: &str| run_in(&folder, SilentCluster, arguments, None);
    let answer = run("rbac --bundle b -n fruit");
    assert!(answer.code == 2 && answer.err.contains("--config FILE"), "{answer:?}");
    let answer = run("rbac --bundle b -n fruit --config c.yaml -o json");
    assert!(names(&items(&answer)).contains(&"Role kiwi-installer-role".to_owned()), "{answer:?}");
}
