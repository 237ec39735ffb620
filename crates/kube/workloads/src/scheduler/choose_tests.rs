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

fn two() -> World {
    World::new([node("a", |_| ()), node("b", |_| ())])
}

fn goes(world: &World, pod: &Named) -> String {
    match choose(world, &[], pod) {
        Choice::Node(node) => node.to_string(),
        Choice::Nowhere(why) => why,
        Choice::Instead { node, victims, .. } => {
            let victims: Vec<&str> = victims.iter().map(|(key, _)| &*key.name).collect();
            format!("{node} instead of {}", victims.join(" and "))
        }
    }
}

const NO_HELP: &str = "no new claims to deallocate, preemption: 0/2 nodes are available:";

#[test]
fn the_emptiest_node_that_fits_wins() {
    let mut world = two();
    assert_eq!(goes(&world, &pod("p", &json!({}))), "a");
    world.put("a", pod("other", &json!({"containers": cpu("500m")})));
    assert_eq!(goes(&world, &pod("p", &json!({}))), "b");
    assert_eq!(goes(&world, &pod("p", &json!({"nodeSelector": {"host": "a"}}))), "a");
}

#[test]
fn each_refusal_is_counted_and_named() {
    let world = World::new([
        node("a", |node| node.unschedulable = true),
        node("b", |node| node.taints = vec![Taint::new("k", "NoExecute")]),
        node("c", |node| node.ready = false),
        node("d", |_| ()),
    ]);
    assert_eq!(
        goes(&world, &pod("p", &json!({"nodeSelector": {"disk": "ssd"}}))),
        "0/4 nodes are available: 1 node(s) didn't match Pod's node affinity/selector, 1 node(s) were unschedulable, 2 node(s) had untolerated taint(s). no new claims to deallocate, preemption: 0/4 nodes are available: 4 Preemption is not helpful for scheduling."
    );
    assert_eq!(
        goes(&World::default(), &pod("p", &json!({}))),
        "no nodes available to schedule pods"
    );
    let by_name = json!({"affinity": {"nodeAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [{"matchFields": [
            {"key": "metadata.name", "operator": "In", "values": ["z"]},
        ]}]},
    }}});
    assert_eq!(
        goes(&two(), &pod("p", &by_name)),
        format!(
            "0/2 nodes are available: 2 node(s) didn't satisfy plugin(s) [NodeAffinity]. {NO_HELP} 2 Preemption is not helpful for scheduling."
        )
    );
}

#[test]
fn what_is_taken_is_not_there_for_others() {
    let mut world = two();
    world.put("a", pod("x", &json!({"containers": cpu("600m")})));
    world.put("b", pod("y", &json!({"containers": cpu("300m")})));
    assert_eq!(goes(&world, &pod("p", &json!({"containers": cpu("700m")}))), "b");
    assert_eq!(
        goes(&world, &pod("p", &json!({"containers": cpu("800m")}))),
        format!(
            "0/2 nodes are available: 2 Insufficient cpu. {NO_HELP} 2 No preemption victims found for incoming pod."
        )
    );
    assert_eq!(
        goes(&world, &pod("p", &json!({"containers": cpu("2")}))),
        format!(
            "0/2 nodes are available: 2 Insufficient cpu. {NO_HELP} 2 Preemption is not helpful for scheduling."
        )
    );
    for name in ["1", "2", "3"] {
        world.put("a", pod(name, &json!({})));
    }
    let at_a = json!({"nodeSelector": {"host": "a"}});
    assert!(goes(&world, &pod("p", &at_a)).contains("1 Too many pods"));
    let port = json!({"containers": [{"ports": [{"hostPort": 80}]}]});
    world.put("b", pod("z", &port));
    assert!(goes(&world, &pod("p", &port)).contains("1 node(s) didn't have free ports"));
}

#[test]
fn pods_are_near_to_some_and_far_from_others() {
    let term = |app: &str| json!([{"topologyKey": "host", "labelSelector": {"matchLabels": {"app": app}}}]);
    let near = |app: &str| {
        json!({"affinity": {"podAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": term(app)}}})
    };
    let far = |app: &str| {
        json!({"affinity": {"podAntiAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": term(app)}}})
    };
    let mut world = two();
    world.put("b", pod("web", &json!({})));
    world.put("b", pod("db", &json!({})));
    assert_eq!(goes(&world, &pod("p", &near("web"))), "b");
    assert_eq!(goes(&world, &pod("p", &far("web"))), "a");
    assert!(
        goes(&world, &pod("p", &near("none")))
            .starts_with("0/2 nodes are available: 2 node(s) didn't match pod affinity rules.")
    );
    // The first Pod of a group with affinity to itself may be alone.
    assert_eq!(goes(&world, &pod("p", &near("p"))), "a");
    world.put("a", pod("loner", &far("p")));
    assert_eq!(goes(&world, &pod("p", &json!({}))), "b");
    world.put("b", pod("loner2", &far("p")));
    assert!(
        goes(&world, &pod("p", &json!({})))
            .contains("2 node(s) didn't satisfy existing pods anti-affinity rules")
    );
}

#[test]
fn pods_are_spread_over_the_values_of_a_label() {
    let spread = |key: &str| {
        json!({"topologySpreadConstraints": [{
            "maxSkew": 1, "topologyKey": key, "whenUnsatisfiable": "DoNotSchedule",
            "labelSelector": {"matchLabels": {"app": "p"}},
        }]})
    };
    let mut world = two();
    world.put("b", pod("x", &json!({"containers": cpu("900m")})));
    world.put("a", pod("p", &json!({})));
    assert_eq!(goes(&world, &pod("p", &spread("host"))), "b");
    let all_on_a = json!({
        "topologySpreadConstraints": spread("host")["topologySpreadConstraints"],
        "containers": cpu("200m"),
    });
    assert!(
        goes(&world, &pod("p", &all_on_a)).contains(
            "1 Insufficient cpu, 1 node(s) didn't match pod topology spread constraints."
        )
    );
    assert!(goes(&world, &pod("p", &spread("zone"))).contains("(missing required label)"));
}

#[test]
fn less_important_pods_make_room() {
    let pod = |name: &str, amount: &str, priority: i64| {
        pod(name, &json!({"containers": cpu(amount), "priority": priority}))
    };
    let mut world = two();
    world.put("a", pod("low", "500m", 1));
    world.put("a", pod("lower", "500m", 0));
    world.put("b", pod("high", "1", 100));
    let important = pod("p", "500m", 10);
    assert_eq!(goes(&world, &important), "a instead of lower");
    assert_eq!(goes(&world, &pod("p", "1", 10)), "a instead of low and lower");
    assert!(goes(&world, &pod("p", "500m", 0)).contains("2 No preemption victims found"));
    let mut meek = important.clone();
    let view = Arc::make_mut(&mut meek.1);
    Arc::make_mut(&mut view.needs).preempts = false;
    assert!(goes(&world, &meek).ends_with("not eligible due to preemptionPolicy=Never."));
    // A budget that allows no disruption makes another node the better one.
    world.nodes[1].pods.clear();
    world.nodes[1].used.clear();
    world.put("b", pod("mid", "1", 5));
    let budget = |app: &str| Budget {
        namespace: "n".into(),
        selector: LabelSelector::from_pairs([("app", app)]),
        allowed: 0,
    };
    let Choice::Instead { node, .. } = choose(&world, &[budget("lower")], &important) else {
        panic!("no room was made");
    };
    assert_eq!(&*node, "a");
    let both = [budget("lower"), budget("low")];
    let Choice::Instead { node, .. } = choose(&world, &both, &important) else {
        panic!("no room was made");
    };
    assert_eq!(&*node, "b");
}
