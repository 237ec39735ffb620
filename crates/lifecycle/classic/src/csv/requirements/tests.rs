use super::*;
use mainstay_object::Object;
use serde_json::{Value, json};

fn csv(spec: Value) -> ClusterServiceVersion {
    let mut object = Object::from_value(json!({
        "apiVersion": "operators.coreos.com/v1alpha1", "kind": "ClusterServiceVersion",
        "metadata": {"name": "a.v2", "namespace": "ns", "uid": "me"},
    }))
    .unwrap();
    object.set(&["spec"], spec);
    ClusterServiceVersion::from_object(&object).unwrap()
}

fn rule(value: Value) -> Rule {
    serde_json::from_value(value).unwrap()
}

fn crd(installed_alongside: &[&str]) -> Arc<Crd> {
    Arc::new(Crd {
        uid: "crd".into(),
        versions: vec![("v1".into(), true), ("v0".into(), false)],
        established: true,
        installed_alongside: installed_alongside
            .iter()
            .map(|name| NamespacedName::new("ns", *name))
            .collect(),
        ..Crd::default()
    })
}

fn first(csv: &ClusterServiceVersion, observed: &ObservedRequirements) -> (bool, String, String) {
    let (met, list) = check(csv, observed);
    (met, list[0].status.to_string(), list[0].message.clone())
}

#[test]
fn the_api_server_must_have_the_min_kube_version() {
    let new = || Some("v1.35.0+simulated.answers".to_owned());
    for (wanted, server, met, message) in [
        (
            "1.20.0",
            new(),
            true,
            "CSV minKubeVersion (1.20.0) less than server version (v1.35.0+simulated.answers)",
        ),
        (
            "9.0.0",
            new(),
            false,
            "CSV version requirement not met: minKubeVersion (9.0.0) > server version (1.35.0+simulated.answers)",
        ),
        ("1.x", new(), false, "CSV version parsing error"),
        ("1.20.0", None, false, "Server version discovery error"),
        ("1.20.0", Some("main".to_owned()), false, "Server version parsing error"),
    ] {
        let observed =
            ObservedRequirements { server_version: server, ..ObservedRequirements::default() };
        let (status_found, _, message_found) =
            first(&csv(json!({"minKubeVersion": wanted})), &observed);
        // shows C32
        assert_eq!((status_found, message_found.as_str()), (met, message));
    }
}

#[test]
fn a_crd_must_exist_be_served_be_established_and_be_installed_alongside_this_csv() {
    let one = |version: &str| {
        csv(json!({"replaces": "a.v1", "customresourcedefinitions": {
            "owned": [{"name": "as.x", "version": version, "kind": "A"}],
        }}))
    };
    let sibling = |name: &str| (name.to_owned(), Arc::new(Csv::default()));
    let observed = |crd: Option<Arc<Crd>>| ObservedRequirements {
        crds: crd.into_iter().map(|crd| ("as.x".to_owned(), crd)).collect(),
        siblings: [sibling("a.v1"), sibling("b.v1")].into(),
        ..ObservedRequirements::default()
    };
    let mut pending = (*crd(&[])).clone();
    pending.established = false;
    for (version, crd, status, message) in [
        ("v1", None, "NotPresent", "CRD is not present"),
        ("v0", Some(crd(&[])), "NotPresent", "CRD version not served"),
        (
            "v1",
            Some(Arc::new(pending)),
            "PresentNotAvailable",
            "CRD is present but the Established condition is False (not available)",
        ),
        ("v1", Some(crd(&[])), "Present", "CRD is present and Established condition is true"),
        (
            "v1",
            Some(crd(&["a.v1"])),
            "PresentNotSatisfied",
            "CRD installed alongside other CSV(s): a.v1",
        ),
        (
            "v1",
            Some(crd(&["a.v1", "a.v2"])),
            "Present",
            "CRD is present and Established condition is true",
        ),
        ("v1", Some(crd(&["b.v1"])), "Present", "CRD is present and Established condition is true"),
    ] {
        let (met, status_found, message_found) = first(&one(version), &observed(crd));
        // shows C32
        assert_eq!((status_found.as_str(), message_found.as_str()), (status, message));
        assert_eq!(met, status == "Present");
    }
}

#[test]
fn a_service_account_must_exist_belong_to_the_csv_and_have_its_permissions() {
    let wanted = json!({"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get", "list"]});
    let one = csv(json!({"install": {"strategy": "deployment", "spec": {"permissions": [
        {"serviceAccountName": "sa", "rules": [wanted]},
    ]}}}));
    let owner = |uid: &str| OwnerReference {
        api_version: "operators.coreos.com/v1alpha1".into(),
        kind: "ClusterServiceVersion".into(),
        name: "x".into(),
        uid: uid.into(),
        controller: None,
        block_owner_deletion: None,
    };
    let observed = |owners: Option<Vec<OwnerReference>>, rules: Vec<Rule>| ObservedRequirements {
        accounts: owners
            .map(|owners| {
                ("sa".to_owned(), Arc::new(ServiceAccount { owners, ..ServiceAccount::default() }))
            })
            .into_iter()
            .collect(),
        grants: [("sa".to_owned(), Grants { namespaced: rules, ..Grants::default() })].into(),
        ..ObservedRequirements::default()
    };
    let all = || vec![rule(json!({"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}))];
    for (observed, status, message) in [
        (observed(None, all()), "NotPresent", "Service account does not exist"),
        (
            observed(Some(vec![owner("other")]), all()),
            "PresentNotSatisfied",
            "Service account is owned by another ClusterServiceVersion",
        ),
        (observed(Some(vec![owner("other"), owner("me")]), all()), "Present", ""),
        (
            observed(Some(vec![]), vec![]),
            "PresentNotSatisfied",
            "Policy rule not satisfied for service account",
        ),
    ] {
        let (_, status_found, message_found) = first(&one, &observed);
        // shows C32
        assert_eq!((status_found.as_str(), message_found.as_str()), (status, message));
    }
    let (_, list) = check(&one, &observed(Some(vec![]), all()));
    assert_eq!(
        list[0].dependents[0].message,
        r#"namespaced rule:{"verbs":["get","list"],"apiGroups":[""],"resources":["configmaps"]}"#
    );
}

#[test]
fn unchanged_generated_roles_are_not_listed() {
    let wanted = json!([{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get"]}]);
    let one = csv(json!({"install": {"strategy": "deployment", "spec": {"permissions": [
        {"serviceAccountName": "sa", "rules": wanted},
    ]}}}));
    let generated = [hash::rules(&wanted)].into();
    let observed = ObservedRequirements {
        accounts: [("sa".to_owned(), Arc::new(ServiceAccount::default()))].into(),
        grants: [("sa".to_owned(), Grants { generated, ..Grants::default() })].into(),
        ..ObservedRequirements::default()
    };
    assert_eq!(check(&one, &observed), (true, Vec::new()));
}

#[test]
fn permissions_are_compared_one_by_one() {
    let granted = [
        rule(json!({"apiGroups": [""], "resources": ["pods", "*/scale"], "verbs": ["get"]})),
        rule(
            json!({"apiGroups": ["apps"], "resources": ["deployments"], "verbs": ["*"], "resourceNames": ["a"]}),
        ),
        rule(json!({"nonResourceURLs": ["/metrics/*"], "verbs": ["get"]})),
    ];
    for (wanted, yes) in [
        (json!({"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}), true),
        (json!({"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list"]}), false),
        (json!({"apiGroups": [""], "resources": ["pods/scale"], "verbs": ["get"]}), true),
        (json!({"apiGroups": [""], "resources": ["pods/log"], "verbs": ["get"]}), false),
        (json!({"apiGroups": [""], "resources": ["*"], "verbs": ["get"]}), false),
        (json!({"apiGroups": ["apps"], "resources": ["deployments"], "verbs": ["get"]}), false),
        (
            json!({"apiGroups": ["apps"], "resources": ["deployments"], "verbs": ["get"], "resourceNames": ["a"]}),
            true,
        ),
        (json!({"nonResourceURLs": ["/metrics/x"], "verbs": ["get"]}), true),
        (json!({"nonResourceURLs": ["/other"], "verbs": ["get"]}), false),
    ] {
        assert_eq!(allows(&granted, &rule(wanted.clone())), yes, "{wanted}");
    }
}

#[test]
fn a_crd_is_unmet_while_it_was_installed_alongside_a_replaced_csv_only() {
    let one = |replaces: &str| {
        csv(json!({"replaces": replaces, "customresourcedefinitions": {
            "owned": [{"name": "as.x", "version": "v1", "kind": "A"}],
        }}))
    };
    // The chain a.v0, a.v1, a.v2 (this one), a.v3; and one CSV outside of it.
    let sibling = |name: &str, replaces: &str| {
        (name.to_owned(), Arc::new(Csv { replaces: replaces.into(), ..Csv::default() }))
    };
    let all = || {
        [sibling("a.v0", ""), sibling("a.v1", "a.v0"), sibling("a.v3", "a.v2"), sibling("b.v1", "")]
    };
    let elsewhere = |name: &str| NamespacedName::new("other", name);
    let in_namespace = |name: &str| NamespacedName::new("ns", name);
    for (replaces, installed_alongside, others) in [
        ("a.v1", vec![], ""),
        ("a.v1", vec![in_namespace("a.v2")], ""),
        ("a.v1", vec![in_namespace("a.v1")], "a.v1"),
        ("a.v1", vec![in_namespace("a.v0"), in_namespace("a.v1")], "a.v0, a.v1"),
        ("a.v1", vec![in_namespace("a.v1"), in_namespace("a.v2")], ""),
        // Only a chain of named CSVs that begins with the replaced one counts.
        ("a.v1", vec![in_namespace("a.v0")], ""),
        // The successor installed the CustomResourceDefinition, which stays its own.
        ("a.v1", vec![in_namespace("a.v3")], ""),
        ("a.v1", vec![in_namespace("b.v1")], ""),
        ("a.v1", vec![elsewhere("a.v1")], ""),
        ("a.v1", vec![in_namespace("gone")], ""),
        ("gone", vec![in_namespace("gone")], ""),
        ("", vec![in_namespace("a.v1")], ""),
    ] {
        let found = crd(&[]);
        let found =
            Arc::new(Crd { installed_alongside: installed_alongside.clone(), ..(*found).clone() });
        let observed = ObservedRequirements {
            crds: [("as.x".to_owned(), found)].into(),
            siblings: all().into(),
            ..ObservedRequirements::default()
        };
        let (met, status, message) = first(&one(replaces), &observed);
        let case = format!("{replaces:?} {installed_alongside:?}");
        // shows C32
        assert_eq!(met, others.is_empty(), "{case}");
        if !met {
            assert_eq!(status, "PresentNotSatisfied", "{case}");
            assert_eq!(message, format!("CRD installed alongside other CSV(s): {others}"));
        }
    }
    // A CSV that only requires the CustomResourceDefinition does not check its owner.
    let user = csv(json!({"replaces": "a.v1", "customresourcedefinitions": {
        "required": [{"name": "as.x", "version": "v1", "kind": "A"}],
    }}));
    let observed = ObservedRequirements {
        crds: [("as.x".to_owned(), crd(&["a.v1"]))].into(),
        siblings: all().into(),
        ..ObservedRequirements::default()
    };
    assert!(first(&user, &observed).0);
}

#[test]
fn required_api_services_must_be_available_and_owned_ones_need_their_deployment() {
    let served = Api { group: "g".into(), version: "v1".into(), kind: "A".into() };
    let needs = |field: &str, kind: &str| {
        csv(json!({"apiservicedefinitions": {field: [{
            "group": "g", "version": "v1", "kind": kind, "name": "as", "deploymentName": "d",
        }]}, "install": {"strategy": "deployment", "spec": {"deployments": [
            {"name": "d", "spec": {}},
        ]}}}))
    };
    let native =
        |kind: &str| csv(json!({"nativeAPIs": [{"group": "g", "version": "v1", "kind": kind}]}));
    let observed = |uid: Option<Option<&str>>| ObservedRequirements {
        served: uid.map(|uid| (served.clone(), uid.map(str::to_owned))).into_iter().collect(),
        ..ObservedRequirements::default()
    };
    let lost = {
        let mut csv = needs("owned", "A");
        csv.spec.api_service_definitions.owned[0].deployment_name = "e".into();
        csv
    };
    for (csv, observed, met, status, message) in [
        (needs("required", "A"), observed(Some(Some("u"))), true, "Present", ""),
        (needs("required", "A"), observed(Some(None)), false, "NotPresent", ""),
        (needs("required", "A"), observed(None), false, "NotPresent", ""),
        (needs("required", "B"), observed(Some(Some("u"))), false, "NotPresent", ""),
        (needs("owned", "A"), observed(None), true, "DeploymentFound", ""),
        (lost, observed(None), false, "DeploymentNotFound", ""),
        (native("A"), observed(Some(None)), true, "Present", "Native API exists"),
        (native("B"), observed(Some(None)), false, "NotPresent", "Native API does not exist"),
    ] {
        let wanted = (met, status.to_owned(), message.to_owned());
        // shows C32
        assert_eq!(first(&csv, &observed), wanted);
    }
}
