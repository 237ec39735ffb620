use super::*;
use crate::placement::Taint;
use crate::views::NodeView;
use mainstay_object::Object;
use serde_json::json;

/// A node with one CPU and room for four Pods.
fn node(name: &str, change: impl FnOnce(&mut NodeView)) -> Arc<NodeView> {
    let mut node = NodeView {
        name: name.into(),
        labels: BTreeMap::from([("host".to_owned(), name.to_owned())]),
        ready: true,
        allocatable: BTreeMap::from([("cpu".into(), 1000), ("pods".into(), 4)]),
        ..NodeView::default()
    };
    change(&mut node);
    Arc::new(node)
}

fn pod(name: &str, spec: &Value) -> Named {
    let mut pod = Object::from_value(json!({
        "metadata": {"name": name, "namespace": "n", "uid": name, "labels": {"app": name}},
        "spec": {"containers": [{"name": "c"}]},
    }))
    .unwrap();
    for (key, value) in spec.as_object().unwrap() {
        pod.set(&["spec", key], value.clone());
    }
    (pod.key(), Arc::new(PodView::of(&pod)))
}

fn cpu(amount: &str) -> Value {
    json!([{"name": "c", "resources": {"requests": {"cpu": amount}}}])
}

fn two() -> Snapshot {
    Snapshot::new([node("a", |_| ()), node("b", |_| ())])
}

fn selected_node(snapshot: &Snapshot, pod: &Named) -> String {
    match choose(snapshot, &[], pod) {
        Choice::Node(node) => node.to_string(),
        Choice::Unschedulable(message) => message,
        Choice::Preempt { node, victims, .. } => {
            let victims: Vec<&str> = victims.iter().map(|(key, _)| &*key.name).collect();
            format!("{node} instead of {}", victims.join(" and "))
        }
    }
}

const NO_HELP: &str = "no new claims to deallocate, preemption: 0/2 nodes are available:";

#[test]
fn the_node_with_the_most_free_resources_wins() {
    let mut snapshot = two();
    assert_eq!(selected_node(&snapshot, &pod("p", &json!({}))), "a");
    snapshot.add_pod("a", pod("other", &json!({"containers": cpu("500m")})));
    assert_eq!(selected_node(&snapshot, &pod("p", &json!({}))), "b");
    assert_eq!(selected_node(&snapshot, &pod("p", &json!({"nodeSelector": {"host": "a"}}))), "a");
}

#[test]
fn unschedulable_messages_count_each_reason() {
    let snapshot = Snapshot::new([
        node("a", |node| node.unschedulable = true),
        node("b", |node| node.taints = vec![Taint::new("k", "NoExecute")]),
        node("c", |node| node.ready = false),
        node("d", |_| ()),
    ]);
    assert_eq!(
        selected_node(&snapshot, &pod("p", &json!({"nodeSelector": {"disk": "ssd"}}))),
        "0/4 nodes are available: 1 node(s) didn't match Pod's node affinity/selector, 1 node(s) were unschedulable, 2 node(s) had untolerated taint(s). no new claims to deallocate, preemption: 0/4 nodes are available: 4 Preemption is not helpful for scheduling."
    );
    assert_eq!(
        selected_node(&Snapshot::default(), &pod("p", &json!({}))),
        "no nodes available to schedule pods"
    );
    let by_name = json!({"affinity": {"nodeAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [{"matchFields": [
            {"key": "metadata.name", "operator": "In", "values": ["z"]},
        ]}]},
    }}});
    assert_eq!(
        selected_node(&two(), &pod("p", &by_name)),
        format!(
            "0/2 nodes are available: 2 node(s) didn't satisfy plugin(s) [NodeAffinity]. {NO_HELP} 2 Preemption is not helpful for scheduling."
        )
    );
}

#[test]
fn requested_resources_and_host_ports_are_not_available_to_other_pods() {
    let mut snapshot = two();
    snapshot.add_pod("a", pod("x", &json!({"containers": cpu("600m")})));
    snapshot.add_pod("b", pod("y", &json!({"containers": cpu("300m")})));
    assert_eq!(selected_node(&snapshot, &pod("p", &json!({"containers": cpu("700m")}))), "b");
    assert_eq!(
        selected_node(&snapshot, &pod("p", &json!({"containers": cpu("800m")}))),
        format!(
            "0/2 nodes are available: 2 Insufficient cpu. {NO_HELP} 2 No preemption victims found for incoming pod."
        )
    );
    assert_eq!(
        selected_node(&snapshot, &pod("p", &json!({"containers": cpu("2")}))),
        format!(
            "0/2 nodes are available: 2 Insufficient cpu. {NO_HELP} 2 Preemption is not helpful for scheduling."
        )
    );
    for name in ["1", "2", "3"] {
        snapshot.add_pod("a", pod(name, &json!({})));
    }
    let at_a = json!({"nodeSelector": {"host": "a"}});
    assert!(selected_node(&snapshot, &pod("p", &at_a)).contains("1 Too many pods"));
    let port = json!({"containers": [{"ports": [{"hostPort": 80}]}]});
    snapshot.add_pod("b", pod("z", &port));
    assert!(
        selected_node(&snapshot, &pod("p", &port)).contains("1 node(s) didn't have free ports")
    );
}

#[test]
fn pods_follow_affinity_and_anti_affinity() {
    let term = |app: &str| json!([{"topologyKey": "host", "labelSelector": {"matchLabels": {"app": app}}}]);
    let affinity_terms = |app: &str| {
        json!({"affinity": {"podAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": term(app)}}})
    };
    let anti_affinity_terms = |app: &str| {
        json!({"affinity": {"podAntiAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": term(app)}}})
    };
    let mut snapshot = two();
    snapshot.add_pod("b", pod("web", &json!({})));
    snapshot.add_pod("b", pod("db", &json!({})));
    assert_eq!(selected_node(&snapshot, &pod("p", &affinity_terms("web"))), "b");
    assert_eq!(selected_node(&snapshot, &pod("p", &anti_affinity_terms("web"))), "a");
    assert!(
        selected_node(&snapshot, &pod("p", &affinity_terms("none")))
            .starts_with("0/2 nodes are available: 2 node(s) didn't match pod affinity rules.")
    );
    // The first Pod of a group with affinity to itself may be alone.
    assert_eq!(selected_node(&snapshot, &pod("p", &affinity_terms("p"))), "a");
    snapshot.add_pod("a", pod("loner", &anti_affinity_terms("p")));
    assert_eq!(selected_node(&snapshot, &pod("p", &json!({}))), "b");
    snapshot.add_pod("b", pod("loner2", &anti_affinity_terms("p")));
    assert!(
        selected_node(&snapshot, &pod("p", &json!({})))
            .contains("2 node(s) didn't satisfy existing pods anti-affinity rules")
    );
}

#[test]
fn topology_spread_balances_pods_over_label_values() {
    let spread = |key: &str| {
        json!({"topologySpreadConstraints": [{
            "maxSkew": 1, "topologyKey": key, "whenUnsatisfiable": "DoNotSchedule",
            "labelSelector": {"matchLabels": {"app": "p"}},
        }]})
    };
    let mut snapshot = two();
    snapshot.add_pod("b", pod("x", &json!({"containers": cpu("900m")})));
    snapshot.add_pod("a", pod("p", &json!({})));
    assert_eq!(selected_node(&snapshot, &pod("p", &spread("host"))), "b");
    let all_on_a = json!({
        "topologySpreadConstraints": spread("host")["topologySpreadConstraints"],
        "containers": cpu("200m"),
    });
    assert!(
        selected_node(&snapshot, &pod("p", &all_on_a)).contains(
            "1 Insufficient cpu, 1 node(s) didn't match pod topology spread constraints."
        )
    );
    assert!(
        selected_node(&snapshot, &pod("p", &spread("zone"))).contains("(missing required label)")
    );
}

#[test]
fn pods_of_lower_priority_are_preempted() {
    let pod = |name: &str, amount: &str, priority: i64| {
        pod(name, &json!({"containers": cpu(amount), "priority": priority}))
    };
    let mut snapshot = two();
    snapshot.add_pod("a", pod("low", "500m", 1));
    snapshot.add_pod("a", pod("lower", "500m", 0));
    snapshot.add_pod("b", pod("high", "1", 100));
    let important = pod("p", "500m", 10);
    assert_eq!(selected_node(&snapshot, &important), "a instead of lower");
    assert_eq!(selected_node(&snapshot, &pod("p", "1", 10)), "a instead of low and lower");
    assert!(
        selected_node(&snapshot, &pod("p", "500m", 0)).contains("2 No preemption victims found")
    );
    let mut meek = important.clone();
    let view = Arc::make_mut(&mut meek.1);
    Arc::make_mut(&mut view.needs).may_preempt = false;
    assert!(
        selected_node(&snapshot, &meek).ends_with("not eligible due to preemptionPolicy=Never.")
    );
    // A budget that allows no disruption makes another node the better one.
    snapshot.nodes[1].pods.clear();
    snapshot.nodes[1].used.clear();
    snapshot.add_pod("b", pod("mid", "1", 5));
    let budget = |app: &str| Budget {
        namespace: "n".into(),
        selector: LabelSelector::from_pairs([("app", app)]),
        allowed: 0,
    };
    let Choice::Preempt { node, .. } = choose(&snapshot, &[budget("lower")], &important) else {
        panic!("no room was made");
    };
    assert_eq!(&*node, "a");
    let both = [budget("lower"), budget("low")];
    let Choice::Preempt { node, .. } = choose(&snapshot, &both, &important) else {
        panic!("no room was made");
    };
    assert_eq!(&*node, "b");
}
