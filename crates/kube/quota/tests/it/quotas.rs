use crate::object;
use jiff::Timestamp;
use mainstay_object::Object;
use mainstay_quota::{CountedKind, QuotaWrite, charge, is_current, total};
use serde_json::{Value, json};

fn now() -> Timestamp {
    "2026-01-01T00:00:00Z".parse().unwrap()
}

fn pod(spec: Value) -> Object {
    object(json!({"metadata": {"name": "p", "namespace": "n"}, "spec": spec}))
}

fn asking(cpu: &str) -> Object {
    pod(json!({"containers": [{"name": "c", "resources": {"requests": {"cpu": cpu}}}]}))
}

fn quota(spec: Value, used: Value) -> Object {
    let hard = spec["hard"].clone();
    object(json!({
        "metadata": {"name": "q", "namespace": "n"},
        "spec": spec, "status": {"hard": hard, "used": used},
    }))
}

fn create(quota: &Object, kind: &CountedKind, object: &Object) -> Result<Option<String>, String> {
    let write = QuotaWrite { kind, object, old: None, is_status: false, now: now() };
    let charged = charge(std::slice::from_ref(quota), write).map_err(|error| error.to_string())?;
    Ok(charged.first().map(|(_, used)| used.to_string()))
}

#[test]
fn writes_within_the_quota_are_charged_and_others_refused_with_all_amounts() {
    let used_quota = |used: &str| {
        quota(json!({"hard": {"pods": "3", "cpu": "1"}}), json!({"pods": "1", "cpu": used}))
    };
    let pods = CountedKind::Pods;
    assert_eq!(
        create(&used_quota("500m"), &pods, &asking("500m")),
        Ok(Some("cpu=1,pods=2".to_owned()))
    );
    assert_eq!(
        create(&used_quota("501m"), &pods, &asking("500m")),
        Err("exceeded quota: q, requested: cpu=500m, used: cpu=501m, limited: cpu=1".to_owned())
    );
}

#[test]
fn containers_must_specify_the_resources_that_a_quota_bounds() {
    let bounds = quota(json!({"hard": {"limits.cpu": "1", "memory": "1Gi"}}), json!({}));
    let silent = pod(json!({"containers": [{"name": "b"}, {"name": "a"}]}));
    assert_eq!(
        create(&bounds, &CountedKind::Pods, &silent),
        Err("failed quota: q: must specify limits.cpu for: a,b; memory for: a,b".to_owned())
    );
    let storage = quota(
        json!({"hard": {"requests.ephemeral-storage": "1"}}),
        json!({"requests.ephemeral-storage": "0"}),
    );
    assert_eq!(create(&storage, &CountedKind::Pods, &silent), Ok(None));
}

#[test]
fn nothing_is_admitted_before_the_quota_has_a_status() {
    let fresh = quota(json!({"hard": {"pods": "5", "count/pods": "9"}}), json!({}));
    assert_eq!(
        create(&fresh, &CountedKind::Pods, &asking("1")),
        Err("status unknown for quota: q, resources: count/pods,pods".to_owned())
    );
    // A quota of other resources has no effect.
    assert_eq!(create(&fresh, &CountedKind::Services, &pod(json!({}))), Ok(None));
}

#[test]
fn each_kind_uses_its_counted_resources() {
    let service = |kind: &str, spec: Value| {
        let mut service = pod(spec);
        service.set(&["spec", "type"], kind.into());
        service
    };
    let ports = json!({"ports": [{"port": 1, "nodePort": 30000}, {"port": 2}]});
    let mut chosen = ports.clone();
    chosen["allocateLoadBalancerNodePorts"] = false.into();
    let claim = pod(json!({
        "storageClassName": "gold", "resources": {"requests": {"storage": "1500m"}},
    }));
    let counted = CountedKind::of;
    for (kind, object, used) in [
        (
            counted("", "services"),
            service("ClusterIP", ports.clone()),
            "count/services=1,services=1,services.loadbalancers=0,services.nodeports=0",
        ),
        (
            counted("", "services"),
            service("NodePort", ports.clone()),
            "count/services=1,services=1,services.loadbalancers=0,services.nodeports=2",
        ),
        (
            counted("", "services"),
            service("LoadBalancer", ports),
            "count/services=1,services=1,services.loadbalancers=1,services.nodeports=2",
        ),
        (
            counted("", "services"),
            service("LoadBalancer", chosen),
            "count/services=1,services=1,services.loadbalancers=1,services.nodeports=1",
        ),
        (
            counted("", "persistentvolumeclaims"),
            claim,
            "count/persistentvolumeclaims=1,gold.storageclass.storage.k8s.io/persistentvolumeclaims=1,gold.storageclass.storage.k8s.io/requests.storage=2,persistentvolumeclaims=1,requests.storage=2",
        ),
        (counted("apps", "deployments"), pod(json!({})), "count/deployments.apps=1"),
        (counted("", "secrets"), pod(json!({})), "count/secrets=1,secrets=1"),
        (
            counted("", "pods"),
            pod(json!({"containers": [{"resources": {
                "requests": {"cpu": "1", "example.com/gpu": "2", "hugepages-2Mi": "4Mi"},
                "limits": {"cpu": "2", "example.com/gpu": "2"},
            }}]})),
            "count/pods=1,cpu=1,hugepages-2Mi=4Mi,limits.cpu=2,pods=1,requests.cpu=1,requests.example.com/gpu=2,requests.hugepages-2Mi=4Mi",
        ),
    ] {
        assert_eq!(kind.usage(&object, now()).to_string(), used);
        for name in kind.usage(&object, now()).names() {
            assert!(kind.uses(name), "{kind:?} uses {name}");
            let (group, plural) = CountedKind::counted_by(name).unwrap();
            assert_eq!(CountedKind::of(group, plural), kind, "{name}");
        }
    }
}

#[test]
fn finished_pods_count_as_objects_and_use_no_resources() {
    let mut done = asking("1");
    done.set(&["status", "phase"], "Succeeded".into());
    let mut leaving = asking("1");
    leaving.set(&["metadata", "deletionTimestamp"], "2025-12-31T23:59:00Z".into());
    leaving.set(&["metadata", "deletionGracePeriodSeconds"], 30.into());
    let mut late = leaving.clone();
    late.set(&["metadata", "deletionGracePeriodSeconds"], 90.into());
    for (pod, used) in [
        (done, "count/pods=1"),
        (leaving, "count/pods=1"),
        (late, "count/pods=1,cpu=1,pods=1,requests.cpu=1"),
    ] {
        assert_eq!(CountedKind::Pods.usage(&pod, now()).to_string(), used);
    }
}

#[test]
fn a_quota_counts_objects_in_all_of_its_scopes() {
    let best = pod(json!({"containers": [{"name": "c"}]}));
    let mut ending = asking("1");
    ending.set(&["spec", "activeDeadlineSeconds"], 5.into());
    let mut important = asking("1");
    important.set(&["spec", "priorityClassName"], "high".into());
    let mut far = best.clone();
    far.set(
        &["spec", "affinity"],
        json!({"podAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [
            {"weight": 1, "podAffinityTerm": {"namespaces": ["x"], "topologyKey": "k"}},
        ]}}),
    );
    let class = |operator: &str, values: Value| {
        json!({"hard": {"pods": "9"}, "scopeSelector": {"matchExpressions": [
            {"scopeName": "PriorityClass", "operator": operator, "values": values},
        ]}})
    };
    let scopes = |scopes: Value| json!({"hard": {"pods": "9"}, "scopes": scopes});
    // In order: best effort, terminating, priority, cross-namespace affinity.
    for (spec, wanted) in [
        (scopes(json!(["BestEffort"])), [true, false, false, true]),
        (scopes(json!(["NotBestEffort"])), [false, true, true, false]),
        (scopes(json!(["Terminating"])), [false, true, false, false]),
        (scopes(json!(["NotTerminating", "NotBestEffort"])), [false, false, true, false]),
        (scopes(json!(["CrossNamespacePodAffinity"])), [false, false, false, true]),
        (class("In", json!(["high"])), [false, false, true, false]),
        (class("NotIn", json!(["high"])), [true, true, false, true]),
        (class("Exists", json!([])), [false, false, true, false]),
        (class("DoesNotExist", json!([])), [true, true, false, true]),
    ] {
        let bounds = quota(spec.clone(), json!({"pods": "0"}));
        let counted = [&best, &ending, &important, &far]
            .map(|pod| create(&bounds, &CountedKind::Pods, pod).unwrap().is_some());
        assert_eq!(counted, wanted, "{spec}");
    }
    // Other kinds are in no scope.
    let bounds = quota(
        json!({"hard": {"secrets": "0"}, "scopes": ["Terminating"]}),
        json!({"secrets": "0"}),
    );
    assert_eq!(create(&bounds, &CountedKind::of("", "secrets"), &best), Ok(None));
}

#[test]
fn an_update_is_charged_for_the_increase() {
    let service = |kind: &str| pod(json!({"type": kind, "ports": [{"port": 1}, {"port": 2}]}));
    let bounds = quota(
        json!({"hard": {"services.nodeports": "2", "services": "1"}}),
        json!({"services.nodeports": "0", "services": "1"}),
    );
    let update = |old: &Object, new: &Object| {
        let kind = &CountedKind::Services;
        let write = QuotaWrite { kind, object: new, old: Some(old), is_status: false, now: now() };
        charge(std::slice::from_ref(&bounds), write)
            .map(|charges| charges.first().map(|charge| charge.1.to_string()))
    };
    let (plain, open) = (service("ClusterIP"), service("NodePort"));
    assert_eq!(update(&plain, &open), Ok(Some("services=1,services.nodeports=2".to_owned())));
    assert_eq!(update(&open, &plain), Ok(None), "what is given back is counted by the controller");
    assert_eq!(update(&plain, &plain), Ok(None));
}

#[test]
fn used_amounts_are_the_sum_over_objects_in_scope() {
    let bounds = quota(
        json!({"hard": {"cpu": "9", "pods": "9", "secrets": "9", "services": "9"}}),
        json!({}),
    );
    let pods = [asking("500m"), asking("1")];
    let secrets = [pod(json!({}))];
    let used = total(
        &bounds,
        [
            (&CountedKind::Pods, pods.as_slice()),
            (&CountedKind::of("", "secrets"), secrets.as_slice()),
            (&CountedKind::Services, [].as_slice()),
        ],
        now(),
    );
    assert_eq!(used.to_string(), "cpu=1500m,pods=2,secrets=1,services=0");
    assert!(!is_current(&bounds, &used));
    let mut counted = bounds;
    counted.set(&["status", "used"], used.to_value());
    assert!(is_current(&counted, &used));
}
