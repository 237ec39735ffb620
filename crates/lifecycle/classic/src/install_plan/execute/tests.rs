//! Tests of updates, refused steps and error messages.

use super::*;

fn object(value: Value) -> Object {
    Object::from_value(value).unwrap()
}

#[test]
fn an_update_keeps_fields_of_others_and_moves_cluster_roles_to_the_newest_csv() {
    let live = object(json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
        "metadata": {
            "name": "r", "resourceVersion": "7", "labels": {"mine": "1", "olm.owner": "a.v1"},
            "ownerReferences": [{"kind": "X", "uid": "x"}],
        },
        "rules": [{"verbs": ["get"]}],
    }));
    let wanted = object(json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
        "metadata": {
            "name": "r", "labels": {"olm.owner": "a.v2"},
            "ownerReferences": [{"kind": "Y", "uid": "y"}],
        },
        "rules": [{"verbs": ["list"]}],
    }));
    let new = merged(&live, &wanted);
    assert_eq!(new.label("mine"), Some("1"));
    assert_eq!(new.label("olm.owner"), Some("a.v2"));
    assert_eq!(new.array(&["metadata", "ownerReferences"]).len(), 2);
    assert_eq!(new.resource_version(), "7");
    assert!(!is_unchanged(&live, &new));
    assert!(is_unchanged(&new, &merged(&new, &wanted)));
}

#[test]
fn an_update_has_every_owner_once() {
    let named = |uids: &[&str]| {
        let owners: Vec<Value> = uids
            .iter()
            .map(|uid| json!({"apiVersion": "v1", "kind": CSV, "name": uid, "uid": uid}))
            .collect();
        object(json!({"kind": "ConfigMap", "metadata": {"ownerReferences": owners}}))
    };
    for (present, brought, wanted) in [
        (vec![], vec![], vec![]),
        (vec![], vec!["a"], vec!["a"]),
        (vec!["a"], vec![], vec!["a"]),
        (vec!["a"], vec!["a"], vec!["a"]),
        (vec!["a"], vec!["b"], vec!["a", "b"]),
        (vec!["a", "b"], vec!["b", "c"], vec!["a", "b", "c"]),
    ] {
        let new = merged(&named(&present), &named(&brought));
        let found: Vec<String> =
            new.owner_references().into_iter().map(|owner| owner.uid).collect();
        // shows K13
        assert_eq!(found, wanted, "{present:?} {brought:?}");
    }
}

#[test]
fn a_service_account_keeps_its_secrets_and_gets_those_of_its_bundle() {
    let account = |fields: Value| {
        let mut value = json!({
            "apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "a"},
        });
        value.as_object_mut().unwrap().extend(fields.as_object().cloned().unwrap());
        object(value)
    };
    let [one, two] = ["one", "two"].map(|name| json!([{"name": name}]));
    let both = json!([{"name": "one"}, {"name": "two"}]);
    for (present, brought, secrets, pull) in [
        (json!({}), json!({}), None, None),
        (json!({"secrets": one}), json!({}), Some(&one), None),
        (json!({"imagePullSecrets": one}), json!({}), None, Some(&one)),
        (json!({}), json!({"imagePullSecrets": two}), None, Some(&two)),
        (json!({"secrets": one}), json!({"secrets": one}), Some(&one), None),
        (
            json!({"secrets": one, "imagePullSecrets": one}),
            json!({"secrets": two, "imagePullSecrets": two}),
            Some(&both),
            Some(&both),
        ),
    ] {
        let (live, wanted) = (account(present), account(brought));
        let new = merged(&live, &wanted);
        // shows K03 K13
        assert_eq!((new.get(&["secrets"]), new.get(&["imagePullSecrets"])), (secrets, pull));
        assert!(is_unchanged(&new, &merged(&new, &wanted)), "it settles");
    }
}

#[test]
fn a_dependency_is_refused_if_another_csv_owns_its_crd() {
    let version = |crds: &[&str]| fields::Csv {
        owned_crds: crds.iter().map(|name| (*name).to_owned()).collect(),
        ..fields::Csv::default()
    };
    let copy = fields::Csv { copied_from: Some("far".to_owned()), ..version(&["xs.example.com"]) };
    let (own, second, other) =
        (version(&["xs.example.com"]), version(&["ys.example.com"]), version(&["zs.example.com"]));
    let csv = object(json!({
        "kind": CSV, "metadata": {"name": "a.v1"},
        "spec": {"customresourcedefinitions": {"owned": [
            {"name": "xs.example.com"}, {"name": "ys.example.com"},
        ]}},
    }));
    for (present, rival) in [
        (vec![], false),
        (vec![("a.v1", &own)], false),
        (vec![("b.v1", &other)], false),
        (vec![("b.v1", &own)], true),
        (vec![("a.v1", &own), ("b.v1", &second)], true),
        (vec![("b.v1", &own), ("c.v1", &own)], true),
        (vec![("b.v1", &copy)], false),
    ] {
        let names: Vec<&str> = present.iter().map(|entry| entry.0).collect();
        // shows K09
        assert_eq!(has_rival(&csv, present.iter().copied()), rival, "{names:?}");
    }
}

#[test]
fn a_missing_api_is_reported_with_its_group_and_version() {
    let mut step = Step::default();
    step.resource.kind = "PrometheusRule".into();
    step.resource.group = "monitoring.coreos.com".into();
    step.resource.version = "v1".into();
    step.resource.name = "anvil-mon".into();
    // shows E061
    assert_eq!(
        no_such_api(&step).message,
        "api-server resource not found installing PrometheusRule anvil-mon: GroupVersionKind monitoring.coreos.com/v1, Kind=PrometheusRule not found on the cluster. This API may have been deprecated and removed, see https://kubernetes.io/docs/reference/using-api/deprecation-guide/ for more information."
    );
}

#[test]
fn the_kind_of_a_step_is_read_in_every_form_that_users_write() {
    let manifest = r#"{"apiVersion": "policy/v1", "kind": "PodDisruptionBudget"}"#;
    for (group, version, wanted) in [
        ("policy", "v1", "policy/v1"),
        ("", "policy/v1", "policy/v1"),
        ("", "v1", "policy/v1"),
        ("", "", "policy/v1"),
        ("", "v2", "v2"),
        ("other", "v1", "other/v1"),
    ] {
        let resource = StepResource {
            group: group.to_owned(),
            version: version.to_owned(),
            kind: "PodDisruptionBudget".to_owned(),
            manifest: manifest.to_owned(),
            ..StepResource::default()
        };
        let kind = gvk(&Step { resource, ..Step::default() }).unwrap();
        assert_eq!(kind.api_version(), wanted, "{group:?} {version:?}");
        assert_eq!(kind.kind, "PodDisruptionBudget");
    }
}
