use super::*;

#[test]
fn the_order_of_bundles_is_chance_and_that_of_their_steps_is_not() {
    let step = |of: &str, name: &str| json!({"resolving": of, "resource": {"name": name}});
    let plan = |steps: &[Value], names: &[&str]| {
        let mut plan = json!({"kind": "InstallPlan", "status": {"plan": steps},
            "spec": {"clusterServiceVersionNames": names}});
        level(&mut plan);
        plan
    };
    let (a, b) = ([step("a", "y"), step("a", "x")], [step("b", "w"), step("b", "z")]);
    let one = plan(&[a.clone(), b.clone()].concat(), &["a", "b"]);
    assert_eq!(one, plan(&[b.clone(), a.clone()].concat(), &["b", "a"]));
    let [first, second] = a;
    assert_ne!(one, plan(&[vec![second, first], b.to_vec()].concat(), &["a", "b"]));
}

#[test]
fn what_an_upgrade_lists_of_granted_roles_is_chance() {
    let version = |rules: Value, replaces: Value| {
        let mut csv = json!({"kind": "ClusterServiceVersion", "spec": {"replaces": replaces},
            "status": {"requirementStatus": [{"dependents": rules}]}});
        if csv["spec"]["replaces"].is_null() {
            csv["spec"] = json!({});
        }
        level(&mut csv);
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
fn a_version_that_lost_its_requirements_for_a_moment_is_as_one_that_did_not() {
    let history = |states: &[(&str, &str)]| {
        let list: Vec<Value> =
            states.iter().map(|state| json!({"phase": state.0, "reason": state.1})).collect();
        let mut csv = json!({"kind": "ClusterServiceVersion", "status": {"conditions": list}});
        level(&mut csv);
        csv
    };
    let usual = [("Installing", "InstallSucceeded"), ("Succeeded", "InstallSucceeded")];
    let lost = [("Failed", "RequirementsNotMet"), ("Pending", "RequirementsNotMet")];
    let again = [("InstallReady", "AllRequirementsMet"), usual[0], usual[1]];
    assert_eq!(history(&usual), history(&[&usual[..], &lost, &again].concat()));
    assert_ne!(history(&usual), history(&[&usual[..], &lost].concat()), "for good");
}

#[test]
fn rounds_of_a_version_that_fails_again_and_again_count_once() {
    let history = |states: &[&str]| {
        let list: Vec<Value> = states.iter().map(|state| json!({"phase": state})).collect();
        let mut csv = json!({"kind": "ClusterServiceVersion", "status": {"conditions": list}});
        level(&mut csv);
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
fn a_definition_may_still_name_a_version_that_was_replaced() {
    let world = |named: &[&str]| {
        let named: Map<String, Value> = named
            .iter()
            .map(|csv_name| (format!("{ALONGSIDE}{csv_name}"), format!("n/{csv_name}").into()))
            .collect();
        let mut all = vec![
            json!({"kind": "ClusterServiceVersion", "metadata": {"namespace": "n", "name": "v2"}}),
            json!({"kind": "CustomResourceDefinition", "metadata": {"annotations": named}}),
        ];
        level_all(&mut all);
        all
    };
    assert_eq!(world(&["v1", "v2"]), world(&["v2"]));
    assert_ne!(world(&["v1"]), world(&["v2"]));
    assert_ne!(world(&["v1"]), world(&[]), "the last one is not forgotten");
}

#[test]
fn what_a_run_makes_up_becomes_placeholders() {
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
    let mut names = Names::default();
    names.learn(std::slice::from_ref(&object));
    let mut found = ours(&object, &names, &BTreeMap::new());
    level(&mut found);
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
fn which_namespace_is_served_first_does_not_matter() {
    let plan = |namespace: &str, name: &str| {
        json!({"metadata": {
            "name": name, "generateName": "install-", "namespace": namespace,
        }})
    };
    let recorded = [plan("a", "install-{2}"), plan("b", "install-{1}"), plan("a", "install-{3}")];
    let mut names = Names::of(recorded.iter());
    let ours = [("a", "install-u"), ("b", "install-v"), ("a", "install-w"), ("b", "install-x")];
    let ours = ours.map(|(namespace, name)| Object::from_value(plan(namespace, name)).unwrap());
    names.learn(&ours);
    let given: Vec<&str> = names.known.values().map(String::as_str).collect();
    assert_eq!(given, ["install-{2}", "install-{1}", "install-{3}", "install-{4}"]);
}

#[test]
fn of_metrics_what_was_recorded_is_compared() {
    assert_eq!(series("csv_count 3"), None);
    assert_eq!(series("workqueue_depth{name=\"csv\"} 3"), None);
    let ready = "catalogsource_ready{name=\"cat\",namespace=\"c1\"} 1";
    assert_eq!(series(ready).as_deref(), Some(ready));
    let syncs = "subscription_sync_total{name=\"a b\"}";
    assert_eq!(series(&format!("{syncs} 12")), Some(format!("{syncs} {{count}}")));
}

#[test]
fn cluster_scoped_objects_belong_to_the_case_they_name() {
    let role = |name: &str| {
        Object::from_value(json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
            "metadata": {"name": name},
        }))
        .unwrap()
    };
    assert!(belongs(&role("anvils.c045.example.com-v1-edit"), "c045", &[]));
    assert!(!belongs(&role("x-ac0451"), "c045", &[]));
}
