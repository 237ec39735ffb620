//! Rules of the registry+v1 renderer.

use mainstay_bundle::render::{
    CertManager, InstallSettings, IssuedCertificate, IssuedCertificates, RegistryV1Bundle,
    RenderError, RenderSettings, RenderStage,
};
use mainstay_bundle::{Limits, MemoryFiles};
use serde_json::{Value, json};

pub(crate) const ANNOTATIONS: &str =
    "annotations: {operators.operatorframework.io.bundle.package.v1: test-operator}\n";

/// A ClusterServiceVersion with one deployment.
pub(crate) fn csv(change: impl FnOnce(&mut Value)) -> Value {
    let mode = |name: &str, supported: bool| json!({"type": name, "supported": supported});
    let mut csv = json!({
        "apiVersion": "operators.coreos.com/v1alpha1",
        "kind": "ClusterServiceVersion",
        "metadata": {"name": "test.v1", "annotations": {"said": "by the version", "both": "a"}},
        "spec": {
            "version": "1.0.0",
            "installModes": [
                mode("AllNamespaces", true), mode("OwnNamespace", true),
                mode("SingleNamespace", true), mode("MultiNamespace", false),
            ],
            "install": {"strategy": "deployment", "spec": {
                "deployments": [{"name": "the.operator", "label": {"app": "x"}, "spec": {
                    "replicas": 1,
                    "selector": {"matchLabels": {"app": "x"}},
                    "template": {
                        "metadata": {"labels": {"app": "x"}, "annotations": {"both": "b"}},
                        "spec": {"serviceAccountName": "runner", "containers": [
                            {"name": "manager", "image": "i", "env": [{"name": "A", "value": "1"}]},
                        ]},
                    },
                }}],
                "permissions": [{"serviceAccountName": "runner", "rules": [
                    {"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]},
                ]}],
            }},
        },
    });
    change(&mut csv);
    csv
}

pub(crate) fn read_bundle(files: &[(&str, String)]) -> Result<RegistryV1Bundle, RenderError> {
    let files: MemoryFiles = files.iter().map(|(path, text)| (*path, text.as_str())).collect();
    RegistryV1Bundle::read(&files, &Limits::default())
}

pub(crate) fn bundle_of(csv: &Value) -> RegistryV1Bundle {
    let annotations = ("metadata/annotations.yaml", ANNOTATIONS.to_owned());
    read_bundle(&[("manifests/csv.json", csv.to_string()), annotations]).unwrap()
}

pub(crate) fn install(csv: &Value, config: Option<&str>) -> Result<Vec<Value>, RenderError> {
    bundle_of(csv).install(&InstallSettings {
        certificates: Some(&CertManager),
        config: config.map(str::as_bytes),
        ..InstallSettings::into_namespace("here")
    })
}

pub(crate) fn of_kind<'v>(objects: &'v [Value], kind: &str) -> Vec<&'v Value> {
    objects.iter().filter(|object| object["kind"] == kind).collect()
}

pub(crate) fn kinds_of(objects: &[Value]) -> Vec<&str> {
    objects.iter().map(|object| object["kind"].as_str().unwrap()).collect()
}

#[test]
fn roles_are_created_in_watched_namespaces() {
    let all = install(&csv(|_| {}), None).unwrap();
    assert_eq!(
        kinds_of(&all),
        ["ServiceAccount", "ClusterRole", "ClusterRoleBinding", "Deployment"]
    );
    let rules = all[1]["rules"].as_array().unwrap();
    // shows OLMV1-129
    assert_eq!(rules[1]["resources"], json!(["namespaces"]));
    let one = install(&csv(|_| {}), Some("watchNamespace: there")).unwrap();
    assert_eq!(kinds_of(&one), ["ServiceAccount", "Role", "RoleBinding", "Deployment"]);
    // shows OLMV1-57
    assert_eq!(one[1]["metadata"]["namespace"], "there");
    // shows OLMV1-57
    assert_eq!(one[2]["subjects"][0]["namespace"], "here");
    assert_eq!(one[0]["metadata"]["namespace"], "here");
}

#[test]
fn each_target_namespace_has_a_role_and_webhooks_select_all_of_them() {
    let csv = csv(|csv| {
        csv["spec"]["installModes"][3]["supported"] = true.into();
        csv["spec"]["webhookdefinitions"] = json!([webhook("ValidatingAdmissionWebhook")]);
    });
    let targets = ["a".to_owned(), "b".to_owned()];
    let settings =
        RenderSettings { namespace: "here", targets: &targets, ..RenderSettings::default() };
    let objects = bundle_of(&csv).render(&settings).unwrap();
    let roles = of_kind(&objects, "Role");
    assert_eq!(roles.len(), 2);
    assert_eq!(roles[0]["metadata"]["name"], roles[1]["metadata"]["name"]);
    let hook = of_kind(&objects, "ValidatingWebhookConfiguration")[0];
    let selector = &hook["webhooks"][0]["namespaceSelector"]["matchExpressions"][0];
    assert_eq!(selector["values"], json!(["a", "b"]));
    // Without a certificate provider no volume is mounted.
    assert!(of_kind(&objects, "Deployment")[0].pointer("/spec/template/spec/volumes").is_none());
}

pub(crate) fn webhook(kind: &str) -> Value {
    json!({
        "type": kind,
        "generateName": "check.example.com",
        "deploymentName": "the.operator",
        "containerPort": 8443,
        "targetPort": "hooks",
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
        "conversionCRDs": [],
    })
}

#[test]
fn pod_template_annotations_override_those_of_the_csv() {
    let objects = install(&csv(|_| {}), None).unwrap();
    let deployment = of_kind(&objects, "Deployment")[0];
    assert_eq!(
        deployment["spec"]["template"]["metadata"]["annotations"],
        json!({
            "said": "by the version",
            "both": "b",
            "olm.targetNamespaces": "",
            "olm.operatorNamespace": "here",
        })
    );
    assert_eq!(deployment["metadata"]["labels"], json!({"app": "x"}));
    assert_eq!(deployment["spec"]["revisionHistoryLimit"], 1);
    assert_eq!(deployment["status"], json!({}));
}

#[test]
fn deployment_config_changes_deployments() {
    let config = "
deploymentConfig:
  env: [{name: A, value: two}, {name: B, value: three}]
  resources: {limits: {cpu: 1000m}}
  annotations: {both: c, new: d}
  affinity: {}
  tolerations: [{key: sea, operator: Exists}, {key: sea, operator: Exists}]
";
    let csv = csv(|csv| {
        let pod = csv.pointer_mut("/spec/install/spec/deployments/0/spec/template/spec").unwrap();
        pod["affinity"] = json!({"nodeAffinity": {}});
    });
    let objects = install(&csv, Some(config)).unwrap();
    let deployment = of_kind(&objects, "Deployment")[0];
    let pod = &deployment["spec"]["template"]["spec"];
    let env = json!([{"name": "A", "value": "two"}, {"name": "B", "value": "three"}]);
    assert_eq!(pod["containers"][0]["env"], env);
    assert_eq!(pod["containers"][0]["resources"], json!({"limits": {"cpu": "1"}}));
    assert!(pod.get("affinity").is_none());
    assert_eq!(pod["tolerations"].as_array().unwrap().len(), 1);
    assert_eq!(deployment["metadata"]["annotations"], json!({"both": "c", "new": "d"}));
    assert_eq!(deployment["spec"]["template"]["metadata"]["annotations"]["both"], "b");
}

type Change = Box<dyn Fn(&mut Value)>;

#[test]
fn a_render_error_has_its_stage_and_upstreams_message() {
    let owned = json!({"owned": [{"name": "a", "version": "v1", "kind": "A"}]});
    let table: [(Change, Option<&str>, RenderStage, &str); 6] = [
        (
            Box::new(move |csv| csv["spec"]["apiservicedefinitions"] = owned.clone()),
            None,
            RenderStage::Support,
            "unsupported bundle: apiServiceDefintions are not supported",
        ),
        (
            Box::new(|csv| csv["spec"]["installModes"] = json!([])),
            None,
            RenderStage::Support,
            "unsupported bundle: bundle must support at least one of [AllNamespaces SingleNamespace \
             OwnNamespace] install modes",
        ),
        (
            Box::new(|_| {}),
            Some("deploymentConfig: {volumes: [{}], selector: {}}"),
            RenderStage::Configuration,
            "terminal error: invalid ClusterExtension configuration: invalid configuration: multiple \
             errors found:\n  - validation failed\n  - unknown field \"selector\"",
        ),
        (
            Box::new(|_| {}),
            Some("deploymentConfig: {resources: {limits: {cpu: much}}}"),
            RenderStage::Configuration,
            "terminal error: invalid deploymentConfig: failed to unmarshal deploymentConfig: \
             quantities must match the regular expression \
             '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'",
        ),
        (
            Box::new(|csv| {
                csv["spec"]["webhookdefinitions"] = json!([webhook("ConversionWebhook")]);
            }),
            None,
            RenderStage::Bundle,
            "bundle contains conversion webhook \"check.example.com\" and supports install modes \
             [AllNamespaces OwnNamespace SingleNamespace] - conversion webhooks are only supported \
             for bundles that only support AllNamespaces install mode",
        ),
        (
            Box::new(|csv| {
                csv["spec"]["installModes"] = json!([{"type": "OwnNamespace", "supported": true}]);
            }),
            Some("watchNamespace: other"),
            RenderStage::Configuration,
            "terminal error: invalid ClusterExtension configuration: invalid configuration: invalid \
             format for field \"watchNamespace\": 'other' is not valid ownNamespaceInstallMode: \
             invalid value \"other\": must be \"here\" (the namespace where the operator is \
             installed) because this operator only supports OwnNamespace install mode",
        ),
    ];
    for (change, config, stage, message) in table {
        let error = install(&csv(change), config).unwrap_err();
        assert_eq!((error.stage(), error.to_string().as_str()), (stage, message));
    }
}

#[test]
fn all_documents_count_and_lists_are_flattened() {
    let list = "
apiVersion: v1
kind: List
items:
- {apiVersion: v1, kind: ConfigMap, metadata: {name: one, namespace: lost}}
- {apiVersion: v1, kind: List, items: [{apiVersion: v1, kind: Secret, metadata: {name: in}}]}
---
---
{apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {name: two}, value: 1.0}
";
    let bundle_of = read_bundle(&[
        ("manifests/.hidden", list.to_owned()),
        ("manifests/csv.json", csv(|_| {}).to_string()),
        ("metadata/annotations.yaml", ANNOTATIONS.to_owned()),
    ])
    .unwrap();
    let objects = bundle_of.install(&InstallSettings::into_namespace("here")).unwrap();
    assert_eq!(kinds_of(&objects)[3..], ["ConfigMap", "Secret", "PriorityClass", "Deployment"]);
    assert_eq!(objects[3]["metadata"]["namespace"], "here");
    assert_eq!(
        objects[5],
        json!({
            "apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass",
            "metadata": {"name": "two"}, "value": 1,
        })
    );
}

#[test]
fn issued_certificates_are_in_secrets_and_their_ca_in_callers() {
    let csv = csv(|csv| {
        let mut conversion = webhook("ConversionWebhook");
        conversion["conversionCRDs"] = json!(["things.example.com"]);
        conversion["generateName"] = "convert.example.com".into();
        csv["spec"]["installModes"] = json!([{"type": "AllNamespaces", "supported": true}]);
        csv["spec"]["webhookdefinitions"] =
            json!([webhook("MutatingAdmissionWebhook"), conversion]);
        csv["spec"]["customresourcedefinitions"] = json!({
            "owned": [{"name": "things.example.com", "version": "v1", "kind": "Thing"}],
        });
    });
    let crd = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "things.example.com"}, "spec": {"names": {"kind": "Thing"}},
    });
    let bundle = read_bundle(&[
        ("manifests/crd.json", crd.to_string()),
        ("manifests/csv.json", csv.to_string()),
        ("metadata/annotations.yaml", ANNOTATIONS.to_owned()),
    ])
    .unwrap();
    let servings = bundle.webhook_servings("here");
    assert_eq!(servings.len(), 1);
    assert_eq!(
        servings[0].hosts(),
        [
            "the-operator-service.here",
            "the-operator-service.here.svc",
            "the-operator-service.here.svc.cluster.local"
        ]
    );
    let issued = IssuedCertificate { certificate: "DEF".into(), private_key: "GHI".into() };
    let certificates = IssuedCertificates {
        ca_bundle: "ABC".to_owned(),
        servers: [(servings[0].service.clone(), issued)].into(),
    };
    let install = InstallSettings {
        certificates: Some(&certificates),
        ..InstallSettings::into_namespace("here")
    };
    let objects = bundle.install(&install).unwrap();
    assert_eq!(
        kinds_of(&objects)[3..],
        [
            "CustomResourceDefinition",
            "Deployment",
            "MutatingWebhookConfiguration",
            "Service",
            "Secret"
        ]
    );
    let ca_bundle = "/spec/conversion/webhook/clientConfig/caBundle";
    assert_eq!(objects[3].pointer(ca_bundle), Some(&json!("QUJD")));
    assert_eq!(objects[5]["webhooks"][0]["clientConfig"]["caBundle"], "QUJD");
    assert_eq!(objects[6]["metadata"]["name"], "the-operator-service");
    let port = json!([{"name": "8443", "port": 8443, "targetPort": "hooks"}]);
    // shows OLMV1-129
    assert_eq!(objects[6]["spec"]["ports"], port);
    assert_eq!(
        objects[7],
        json!({
            "apiVersion": "v1", "kind": "Secret", "type": "kubernetes.io/tls",
            "metadata": {"name": "the-operator-service-cert", "namespace": "here"},
            "data": {"ca.crt": "QUJD", "tls.crt": "REVG", "tls.key": "R0hJ"},
        })
    );
    let volumes = objects[4].pointer("/spec/template/spec/volumes").unwrap();
    // shows OLMV1-129
    assert_eq!(volumes[0]["secret"]["secretName"], objects[7]["metadata"]["name"]);
    assert!(!format!("{certificates:?}").contains("GHI"));
}

#[test]
fn hostile_bundles_are_refused_within_limits() {
    let annotations = ("metadata/annotations.yaml", ANNOTATIONS.to_owned());
    let bomb = "a: &a [x,x,x,x,x,x,x,x,x]\n".to_owned()
        + &(0..20).fold(String::new(), |text, at| {
            let before = if at == 0 { "a".to_owned() } else { format!("b{}", at - 1) };
            text + &format!("b{at}: &b{at} [{}]\n", vec![format!("*{before}"); 9].join(","))
        });
    let deep = format!("kind: A\na: {}", "[".repeat(100_000));
    let csv_text = csv(|_| {}).to_string();
    for text in [bomb, deep, "kind: [".to_owned(), "\u{0}".to_owned(), "- x".to_owned()] {
        let files = [
            ("manifests/a.yaml", text),
            ("manifests/csv.json", csv_text.clone()),
            annotations.clone(),
        ];
        let error = read_bundle(&files).unwrap_err();
        assert_eq!(error.stage(), RenderStage::Read);
        assert!(error.message().starts_with("error parsing objects in \"manifests/a.yaml\""));
    }
    let small = Limits { file_bytes: 100, files: 5 };
    let files: MemoryFiles = [("manifests/csv.json", csv_text), annotations].into_iter().collect();
    let error = RegistryV1Bundle::read(&files, &small).unwrap_err();
    assert_eq!(error.message(), "manifests/csv.json: the file has more than 100 bytes");
}

#[test]
fn the_schema_contains_all_referenced_components() {
    let schema = bundle_of(&csv(|_| {})).schema();
    let text = schema.to_string();
    for reference in text.match_indices("#/components/schemas/").map(|(at, _)| &text[at..]) {
        let name = reference["#/components/schemas/".len()..].split('"').next().unwrap();
        assert!(schema["components"]["schemas"].get(name).is_some(), "{name}");
    }
    let mount = &schema["components"]["schemas"]["io.k8s.api.core.v1.VolumeMount"];
    assert_eq!(mount["required"], json!(["name", "mountPath"]));
}
