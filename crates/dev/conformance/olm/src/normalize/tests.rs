use super::*;

#[test]
fn bundle_order_is_ignored_and_step_order_is_not() {
    let step = |of: &str, name: &str| json!({"resolving": of, "resource": {"name": name}});
    let plan = |steps: &[Value], names: &[&str]| {
        let mut plan = json!({"kind": "InstallPlan", "status": {"plan": steps},
            "spec": {"clusterServiceVersionNames": names}});
        canonicalize(&mut plan);
        plan
    };
    let (a, b) = ([step("a", "y"), step("a", "x")], [step("b", "w"), step("b", "z")]);
    let one = plan(&[a.clone(), b.clone()].concat(), &["a", "b"]);
    assert_eq!(one, plan(&[b.clone(), a.clone()].concat(), &["b", "a"]));
    let [first, second] = a;
    assert_ne!(one, plan(&[vec![second, first], b.to_vec()].concat(), &["a", "b"]));
}

#[test]
fn satisfied_role_rules_are_ignored_in_upgrades() {
    let version = |rules: Value, replaces: Value| {
        let mut csv = json!({"kind": "ClusterServiceVersion", "spec": {"replaces": replaces},
            "status": {"requirementStatus": [{"dependents": rules}]}});
        if csv["spec"]["replaces"].is_null() {
            csv["spec"] = json!({});
        }
        canonicalize(&mut csv);
        csv
    };
    let rule = |scope: &str, status: &str| json!({"message": format!("{scope} rule:{{}}"), "status": status});
    let (role, cluster) = (rule("namespaced", "Satisfied"), rule("cluster", "Satisfied"));
    let both = json!([role, cluster]);
    assert_eq!(version(both.clone(), "a".into()), version(json!([cluster]), "a".into()));
    assert_ne!(version(both, Value::Null), version(json!([cluster]), Value::Null));
    let missing = json!([rule("namespaced", "NotSatisfied"), cluster]);
    assert_ne!(version(missing, "a".into()), version(json!([cluster]), "a".into()));
}

#[test]
fn csv_that_briefly_lost_its_requirements_equals_one_that_did_not() {
    let history = |states: &[(&str, &str)]| {
        let list: Vec<Value> =
            states.iter().map(|state| json!({"phase": state.0, "reason": state.1})).collect();
        let mut csv = json!({"kind": "ClusterServiceVersion", "status": {"conditions": list}});
        canonicalize(&mut csv);
        csv
    };
    let usual = [("Installing", "InstallSucceeded"), ("Succeeded", "InstallSucceeded")];
    let lost = [("Failed", "RequirementsNotMet"), ("Pending", "RequirementsNotMet")];
    let again = [("InstallReady", "AllRequirementsMet"), usual[0], usual[1]];
    assert_eq!(history(&usual), history(&[&usual[..], &lost, &again].concat()));
    assert_ne!(history(&usual), history(&[&usual[..], &lost].concat()), "for good");
}

#[test]
fn repeated_failure_rounds_of_a_csv_count_once() {
    let history = |states: &[&str]| {
        let list: Vec<Value> = states.iter().map(|state| json!({"phase": state})).collect();
        let mut csv = json!({"kind": "ClusterServiceVersion", "status": {"conditions": list}});
        canonicalize(&mut csv);
        csv["status"]["conditions"].clone()
    };
    let once = history(&["InstallReady", "Failed", "Pending"]);
    let round = ["Failed", "Pending", "InstallReady"];
    let many = [&["InstallReady"][..], &round, &round, &round[..2]].concat();
    assert_eq!(history(&many), history(&["InstallReady", "Failed", "Pending"]));
    assert_ne!(history(&["Failed", "Pending"]), once);
    let healed = ["Failed", "Succeeded", "Failed", "Succeeded"];
    assert_eq!(history(&healed).as_array().map(Vec::len), Some(4), "these were two troubles");
}

#[test]
fn crd_annotation_of_a_replaced_csv_is_ignored() {
    let world = |named: &[&str]| {
        let named: Map<String, Value> = named
            .iter()
            .map(|csv_name| {
                (format!("{INSTALLED_ALONGSIDE}{csv_name}"), format!("n/{csv_name}").into())
            })
            .collect();
        let mut all = vec![
            json!({"kind": "ClusterServiceVersion", "metadata": {"namespace": "n", "name": "v2"}}),
            json!({"kind": "CustomResourceDefinition", "metadata": {"annotations": named}}),
        ];
        canonicalize_all(&mut all);
        all
    };
    assert_eq!(world(&["v1", "v2"]), world(&["v2"]));
    assert_ne!(world(&["v1"]), world(&["v2"]));
    assert_ne!(world(&["v1"]), world(&[]), "the last one is not forgotten");
}

#[test]
fn generated_values_become_placeholders() {
    let object = Object::from_value(json!({
        "apiVersion": "operators.coreos.com/v1alpha1", "kind": "InstallPlan",
        "metadata": {
            "name": "install-abcde", "generateName": "install-", "namespace": "c1",
            "uid": "0b9c1f2e-0000-4000-8000-000000000000", "generation": 2,
            "annotations": {LAST_APPLIED: "{}"},
        },
        "status": {"startTime": "2026-01-01T00:00:00Z", "plan": [{"status": "Present"}]},
    }))
    .unwrap();
    let mut names = GeneratedNames::default();
    names.assign_placeholders(std::slice::from_ref(&object));
    let mut found = normalize_object(&object, &names, &BTreeMap::new());
    canonicalize(&mut found);
    assert_eq!(
        found,
        json!({
            "apiVersion": "operators.coreos.com/v1alpha1", "kind": "InstallPlan",
            "metadata": {
                "name": "install-{1}", "generateName": "install-", "namespace": "c1",
                "generation": 2,
            },
            "status": {"startTime": "{time}", "plan": [{"status": "Created"}]},
        })
    );
}

#[test]
fn placeholder_numbers_do_not_depend_on_namespace_order() {
    let plan = |namespace: &str, name: &str| {
        json!({"metadata": {
            "name": name, "generateName": "install-", "namespace": namespace,
        }})
    };
    let recorded = [plan("a", "install-{2}"), plan("b", "install-{1}"), plan("a", "install-{3}")];
    let mut names = GeneratedNames::of(recorded.iter());
    let normalize_object =
        [("a", "install-u"), ("b", "install-v"), ("a", "install-w"), ("b", "install-x")];
    let normalize_object = normalize_object
        .map(|(namespace, name)| Object::from_value(plan(namespace, name)).unwrap());
    names.assign_placeholders(&normalize_object);
    let given: Vec<&str> = names.by_name.values().map(String::as_str).collect();
    assert_eq!(given, ["install-{2}", "install-{1}", "install-{3}", "install-{4}"]);
}

#[test]
fn only_recorded_metrics_are_compared() {
    assert_eq!(normalize_series("csv_count 3"), None);
    assert_eq!(normalize_series("workqueue_depth{name=\"csv\"} 3"), None);
    let ready = "catalogsource_ready{name=\"cat\",namespace=\"c1\"} 1";
    assert_eq!(normalize_series(ready).as_deref(), Some(ready));
    let syncs = "subscription_sync_total{name=\"a b\"}";
    assert_eq!(normalize_series(&format!("{syncs} 12")), Some(format!("{syncs} {{count}}")));
}

#[test]
fn cluster_scoped_object_belongs_to_the_case_that_it_names() {
    let role = |name: &str| {
        Object::from_value(json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
            "metadata": {"name": name},
        }))
        .unwrap()
    };
    assert!(belongs_to_case(&role("anvils.c045.example.com-v1-edit"), "c045", &[]));
    assert!(!belongs_to_case(&role("x-ac0451"), "c045", &[]));
}
