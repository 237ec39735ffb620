//! Upstream's cases of the registry+v1 renderer: install modes, configurations, validators, certificates.

use crate::renderer::{
    ANNOTATIONS, bundle_of, csv, install, kinds_of, of_kind, read_bundle, webhook,
};
use mainstay_bundle::render::{
    CertManager, CertificateProvider, InstallSettings, RenderError, RenderSettings, ServiceCa,
};
use serde_json::{Value, json};

const MODES: [&str; 4] = ["AllNamespaces", "MultiNamespace", "OwnNamespace", "SingleNamespace"];

/// A ClusterServiceVersion with these install modes.
fn with_modes(supported: &[&str]) -> Value {
    csv(|csv| {
        let mode = |name: &&str| json!({"type": name, "supported": supported.contains(name)});
        csv["spec"]["installModes"] = MODES.iter().map(mode).collect();
    })
}

fn render_for(csv: &Value, targets: &[&str]) -> Result<Vec<Value>, RenderError> {
    let targets: Vec<String> = targets.iter().map(|&target| target.to_owned()).collect();
    let settings =
        RenderSettings { namespace: "here", targets: &targets, ..RenderSettings::default() };
    bundle_of(csv).render(&settings)
}

/// The namespaces that the Deployment of the objects watches.
fn watched(objects: &[Value]) -> &str {
    let path = "/spec/template/metadata/annotations/olm.targetNamespaces";
    of_kind(objects, "Deployment")[0].pointer(path).unwrap().as_str().unwrap()
}

#[test]
fn bundle_that_supports_all_namespaces_watches_them_by_default() {
    for set in 1_usize..16 {
        let supported: Vec<&str> = MODES
            .iter()
            .enumerate()
            .filter(|(at, _)| set & (1 << at) != 0)
            .map(|(_, mode)| *mode)
            .collect();
        let rendered = render_for(&with_modes(&supported), &[]);
        // shows OLMV1-125
        assert_eq!(
            rendered.as_deref().map(watched).ok(),
            supported.contains(&"AllNamespaces").then_some(""),
            "{supported:?}"
        );
    }
}

#[test]
fn namespaces_that_no_install_mode_allows_are_refused() {
    for (supported, targets, text) in [
        (
            &["OwnNamespace"][..],
            &[""][..],
            "invalid target namespaces []: supported install modes [OwnNamespace] do not support targeting all namespaces",
        ),
        (
            &["SingleNamespace"],
            &["here"],
            "invalid target namespaces [here]: supported install modes [SingleNamespace] do not support targeting own namespace",
        ),
        (
            &["OwnNamespace"],
            &["there"],
            "invalid target namespaces [there]: supported install modes [OwnNamespace] do not support target namespaces [there]",
        ),
        (
            &["SingleNamespace"],
            &["a", "b"],
            "invalid target namespaces [a b]: supported install modes [SingleNamespace] do not support target namespaces [a b]",
        ),
        (&["MultiNamespace"], &[], "at least one target namespace must be specified"),
        (&["SingleNamespace"], &[], "exactly one target namespace must be specified"),
    ] {
        let error = render_for(&with_modes(supported), targets).unwrap_err().to_string();
        // shows OLMV1-126
        assert!(error.starts_with("invalid option(s): ") && error.contains(text), "{error}");
    }
}

#[test]
fn configuration_names_the_namespace_that_the_install_mode_allows() {
    const MISSING: &str = "required field \"watchNamespace\" is missing";
    const UNKNOWN: &str = "unknown field \"watchNamespace\"";
    const NOT_OWN: &str = "invalid value \"there\": must be \"here\" (the namespace where the operator is installed) because this operator only supports OwnNamespace install mode";
    const OWN: &str = "invalid value \"here\": must be different from \"here\" (the install namespace) because this operator uses SingleNamespace install mode to watch a different namespace";
    const FORM: &str = "field \"watchNamespace\" must match pattern";
    const LONG: &str = "field \"watchNamespace\" must have maximum length of 63 (len=64)";
    let long = "a".repeat(64);
    let (all, own, single) = ("AllNamespaces", "OwnNamespace", "SingleNamespace");
    // Without a configuration, and with these namespaces.
    let namespaces = [None, Some("here"), Some("there"), Some("-"), Some(&*long)];
    for (supported, expected) in [
        (&[all][..], [Ok(""), Err(UNKNOWN), Err(UNKNOWN), Err(UNKNOWN), Err(UNKNOWN)]),
        (
            &[all, "MultiNamespace"],
            [Ok(""), Err(UNKNOWN), Err(UNKNOWN), Err(UNKNOWN), Err(UNKNOWN)],
        ),
        (
            &[own],
            [
                Err(MISSING),
                Ok("here"),
                Err(NOT_OWN),
                Err("must be \"here\""),
                Err("must be \"here\""),
            ],
        ),
        (&[single], [Err(MISSING), Err(OWN), Ok("there"), Err(FORM), Err(LONG)]),
        (&[own, single], [Err(MISSING), Ok("here"), Ok("there"), Err(FORM), Err(LONG)]),
        (&[all, own], [Ok(""), Ok("here"), Err("\"there\""), Err("-"), Err("")]),
        (&[all, single], [Ok(""), Err("\"here\""), Ok("there"), Err("-"), Err("")]),
        (&[all, own, single], [Ok(""), Ok("here"), Ok("there"), Err("-"), Err("")]),
    ] {
        for (namespace, expected) in namespaces.iter().zip(expected) {
            let config =
                namespace.map(|namespace| json!({"watchNamespace": namespace}).to_string());
            let found = install(&with_modes(supported), config.as_deref());
            let found = found.as_deref().map(watched).map_err(ToString::to_string);
            match expected {
                // shows OLMV1-127
                Ok(watched) => assert_eq!(found, Ok(watched), "{supported:?} {namespace:?}"),
                Err(text) => {
                    let error = found.unwrap_err();
                    // shows OLMV1-127
                    assert!(
                        error.contains(
                            "invalid ClusterExtension configuration: invalid configuration: "
                        ) && error.contains(text),
                        "{supported:?} {namespace:?}: {error}"
                    );
                }
            }
        }
    }
    for (config, text) in [
        ("[]", "invalid type: got array, want object"),
        ("watchNamespace: 7", "invalid type for field \"watchNamespace\""),
        ("{watchNamespace: here, other: 1}", "unknown field \"other\""),
    ] {
        let error = install(&with_modes(&[own]), Some(config)).unwrap_err().to_string();
        // shows OLMV1-127
        assert!(error.contains(text), "{error}");
    }
}

/// A ClusterServiceVersion that owns CRDs and has webhooks, for all namespaces.
fn with_webhooks(owned: &[&str], webhooks: &[Value]) -> Value {
    csv(|csv| {
        csv["spec"]["installModes"] = json!([{"type": "AllNamespaces", "supported": true}]);
        let owned = owned.iter().map(|name| json!({"name": name, "version": "v1", "kind": "A"}));
        csv["spec"]["customresourcedefinitions"] = json!({"owned": owned.collect::<Vec<_>>()});
        csv["spec"]["webhookdefinitions"] = json!(webhooks);
    })
}

fn changed(kind: &str, fields: &Value) -> Value {
    let mut hook = webhook(kind);
    for (key, value) in fields.as_object().unwrap() {
        hook[key] = value.clone();
    }
    hook
}

#[test]
fn every_fault_of_a_bundle_is_reported_in_order() {
    let crd = |name: &str| {
        json!({
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": name},
            "spec": {"group": "a", "names": {"kind": "A", "plural": "as"}, "scope": "Cluster"},
        })
    };
    let converts = |name: &str, crds: &[&str]| {
        changed("ConversionWebhook", &json!({"generateName": name, "conversionCRDs": crds}))
    };
    let rule = |group: &str, resource: &str| {
        let rules = json!([{"apiGroups": [group], "resources": [resource]}]);
        changed("ValidatingAdmissionWebhook", &json!({"rules": rules}))
    };
    let twice = |csv: &mut Value| {
        let all =
            csv.pointer_mut("/spec/install/spec/deployments").unwrap().as_array_mut().unwrap();
        let first = all[0].clone();
        all.push(first);
    };
    let renamed = |csv: &mut Value| {
        csv["spec"]["install"]["spec"]["deployments"][0]["name"] = "Bad_".into();
    };
    let mut duplicate = with_webhooks(&[], &[]);
    twice(&mut duplicate);
    let mut misnamed = with_webhooks(&[], &[]);
    renamed(&mut misnamed);
    let mutating = "MutatingAdmissionWebhook";
    for (csv, objects, text) in [
        (
            duplicate,
            vec![],
            "cluster service version contains duplicate strategy deployment spec 'the.operator'",
        ),
        (misnamed, vec![], "invalid cluster service version strategy deployment name 'Bad_': "),
        (
            with_webhooks(&[], &[]),
            vec![crd("c"), crd("c")],
            "bundle contains duplicate custom resource definition 'c'",
        ),
        (
            with_webhooks(&["c"], &[]),
            vec![],
            "cluster service definition references owned custom resource definition 'c' not found in bundle",
        ),
        (
            with_webhooks(&[], &[changed(mutating, &json!({"deploymentName": "d"}))]),
            vec![],
            "webhook of type 'MutatingAdmissionWebhook' with name 'check.example.com' references non-existent deployment 'd'",
        ),
        (
            with_webhooks(&[], &[webhook(mutating), webhook(mutating)]),
            vec![],
            "duplicate webhook 'check.example.com' of type 'MutatingAdmissionWebhook'",
        ),
        (
            with_webhooks(&[], &[changed(mutating, &json!({"generateName": "Bad_"}))]),
            vec![],
            "webhook of type 'MutatingAdmissionWebhook' has invalid name 'Bad_': ",
        ),
        (
            with_webhooks(&["c"], &[converts("w1", &["c"]), converts("w2", &["c"])]),
            vec![crd("c")],
            "conversion webhooks [w1,w2] reference same custom resource definition 'c'",
        ),
        (
            with_webhooks(&[], &[converts("w1", &["c"])]),
            vec![crd("c")],
            "conversion webhook 'w1' references custom resource definition 'c' not owned bundle",
        ),
        (
            with_webhooks(&[], &[rule("*", "a")]),
            vec![],
            "webhook \"check.example.com\" contains forbidden rule: admission webhook rules cannot reference API group \"*\"",
        ),
        (
            with_webhooks(&[], &[rule("olm.operatorframework.io", "a")]),
            vec![],
            "cannot reference API group \"olm.operatorframework.io\"",
        ),
        (
            with_webhooks(
                &[],
                &[rule("admissionregistration.k8s.io", "ValidatingWebhookConfigurations")],
            ),
            vec![],
            "cannot reference resource \"ValidatingWebhookConfigurations\" for API group \"admissionregistration.k8s.io\"",
        ),
        (
            with_webhooks(&[], &[]),
            vec![json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}})],
            "unsupported resource \"p\" with kind \"Pod\"",
        ),
    ] {
        let mut files = vec![
            ("manifests/csv.json", csv.to_string()),
            ("metadata/annotations.yaml", ANNOTATIONS.to_owned()),
        ];
        let paths = ["manifests/0.json", "manifests/1.json"];
        files.extend(paths.into_iter().zip(objects.iter().map(ToString::to_string)));
        let bundle = read_bundle(&files).unwrap();
        let settings = InstallSettings {
            certificates: Some(&CertManager),
            ..InstallSettings::into_namespace("here")
        };
        let error = bundle.install(&settings).unwrap_err().to_string();
        // shows OLMV1-128
        assert!(error.contains(text), "{text}: {error}");
    }
    let mut all = with_webhooks(&["c"], &[]);
    twice(&mut all);
    let error = install(&all, None).unwrap_err().to_string();
    let (first, second) = error.split_once('\n').unwrap();
    // shows OLMV1-128
    assert!(
        first.contains("duplicate strategy deployment") && second.contains("owned custom resource"),
        "{error}"
    );
}

#[test]
fn default_account_and_webhook_names_follow_upstream() {
    let hook = changed("ValidatingAdmissionWebhook", &json!({"generateName": "check.example.com"}));
    let csv = csv(|csv| {
        csv["spec"]["installModes"] = json!([{"type": "AllNamespaces", "supported": true}]);
        csv["spec"]["webhookdefinitions"] = json!([hook]);
        csv["spec"]["install"]["spec"]["permissions"][0]["serviceAccountName"] = "default".into();
    });
    let objects = install(&csv, None).unwrap();
    // shows OLMV1-129
    assert!(of_kind(&objects, "ServiceAccount").is_empty());
    // shows OLMV1-129
    assert_eq!(of_kind(&objects, "ClusterRoleBinding")[0]["subjects"][0]["name"], "default");
    let configuration = of_kind(&objects, "ValidatingWebhookConfiguration")[0];
    // shows OLMV1-129
    assert_eq!(configuration["metadata"]["name"], "check.example.com");
    // shows OLMV1-129
    assert_eq!(configuration["webhooks"][0]["name"], "check.example.com");
    // shows SUP-07
    assert!(!kinds_of(&objects).contains(&"OperatorCondition"));
    // shows SUP-07
    assert!(!json!(objects).to_string().contains("OPERATOR_CONDITION_NAME"));
}

#[test]
fn webhooks_need_a_certificate_provider() {
    let csv = with_webhooks(&[], &[webhook("ValidatingAdmissionWebhook")]);
    let settings = InstallSettings::into_namespace("here");
    let error = bundle_of(&csv).install(&settings).unwrap_err().to_string();
    // shows SUP-04
    assert!(
        error.starts_with("unsupported bundle: webhookDefinitions are not supported"),
        "{error}"
    );
    // shows SUP-04
    assert!(install(&csv, None).is_ok());
}

#[test]
fn certificates_have_short_names_and_are_injected() {
    let long = format!("{}.operator", "d".repeat(60));
    let csv = csv(|csv| {
        csv["spec"]["installModes"] = json!([{"type": "AllNamespaces", "supported": true}]);
        csv["spec"]["install"]["spec"]["deployments"][0]["name"] = json!(long);
        let hook = changed("ValidatingAdmissionWebhook", &json!({"deploymentName": long}));
        csv["spec"]["webhookdefinitions"] = json!([hook]);
    });
    let with = |provider: &dyn CertificateProvider| {
        let settings = InstallSettings {
            certificates: Some(provider),
            ..InstallSettings::into_namespace("here")
        };
        bundle_of(&csv).install(&settings).unwrap()
    };
    let objects = with(&CertManager);
    let certificate = of_kind(&objects, "Certificate")[0];
    let name = certificate["metadata"]["name"].as_str().unwrap();
    // shows OLMV1-131
    assert_eq!((name.len(), certificate["spec"]["secretName"].as_str()), (63, Some(name)));
    let hooks = of_kind(&objects, "ValidatingWebhookConfiguration")[0];
    // shows OLMV1-131
    assert_eq!(
        hooks["metadata"]["annotations"],
        json!({"cert-manager.io/inject-ca-from": format!("here/{name}")})
    );
    let objects = with(&ServiceCa);
    let hooks = of_kind(&objects, "ValidatingWebhookConfiguration")[0];
    // shows OLMV1-131
    assert_eq!(
        hooks["metadata"]["annotations"],
        json!({"service.beta.openshift.io/inject-cabundle": "true"})
    );
    let service = of_kind(&objects, "Service")[0];
    // shows OLMV1-131
    assert!(
        service["metadata"]["annotations"]["service.beta.openshift.io/serving-cert-secret-name"]
            .is_string()
    );
}

/// The layout of a published bundle: manifests by name, version and kind, metadata, and what its build left.
#[test]
fn bundle_is_read_from_its_two_folders() {
    let config = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "config"}});
    let properties = json!({"properties": [{"type": "t", "value": 1}]}).to_string();
    let files = [
        ("manifests/config_v1_configmap.yaml", config.to_string()),
        ("manifests/test-operator.clusterserviceversion.yaml", with_webhooks(&[], &[]).to_string()),
        ("metadata/annotations.yaml", ANNOTATIONS.to_owned()),
        ("metadata/properties.yaml", properties),
        ("root/buildinfo/Dockerfile", "FROM scratch".to_owned()),
    ];
    let bundle = read_bundle(&files).unwrap();
    // shows RBAC-35
    assert_eq!((bundle.package(), bundle.name()), ("test-operator", "test.v1"));
    let objects = bundle.install(&InstallSettings::into_namespace("here")).unwrap();
    // shows RBAC-35
    assert_eq!(of_kind(&objects, "ConfigMap")[0]["metadata"]["name"], "config");
    // shows RBAC-35
    assert!(bundle.annotations()["olm.properties"].contains("\"t\""));
}
