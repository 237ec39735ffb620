use crate::object;
use mainstay_object::Object;
use mainstay_quota::limits::{broken_by_claim, broken_by_pod, fill_in};
use serde_json::{Value, json};

fn range(limit: Value) -> Object {
    object(json!({"metadata": {"name": "r", "namespace": "n"}, "spec": {"limits": [limit]}}))
}

fn pod(resources: Value) -> Object {
    object(json!({"spec": {"containers": [{"name": "c", "resources": resources}]}}))
}

#[test]
fn missing_amounts_are_filled_in_and_listed_in_the_annotation() {
    let defaults = range(json!({
        "type": "Container", "default": {"cpu": "1", "memory": "1Gi"}, "defaultRequest": {"cpu": "100m"},
    }));
    let mut one = object(json!({"spec": {
        "containers": [{"name": "a"}, {"name": "b", "resources": {"limits": {"cpu": "3"}}}],
        "initContainers": [{"name": "i", "resources": {"requests": {"cpu": "1"}, "limits": {"cpu": "1", "memory": "1"}}}],
    }}));
    fill_in(&defaults, &mut one);
    assert_eq!(
        one.annotation("kubernetes.io/limit-ranger"),
        Some(
            "LimitRanger plugin set: cpu request for container a; cpu, memory limit for container a; cpu request for container b; memory limit for container b"
        )
    );
    assert_eq!(
        one.get(&["spec", "containers"]),
        Some(&json!([
            {"name": "a", "resources": {"requests": {"cpu": "100m"}, "limits": {"cpu": "1", "memory": "1Gi"}}},
            {"name": "b", "resources": {"requests": {"cpu": "100m"}, "limits": {"cpu": "3", "memory": "1Gi"}}},
        ]))
    );
    let mut other = pod(json!({}));
    let before = other.clone();
    fill_in(&range(json!({"type": "Pod", "max": {"cpu": "1"}})), &mut other);
    assert_eq!(other, before);
}

#[test]
fn limit_range_violations_have_upstreams_messages() {
    let requests = |cpu: &str| json!({"requests": {"cpu": cpu}});
    let both = |request: &str, limit: &str| json!({"requests": {"cpu": request}, "limits": {"cpu": limit}});
    for (bound, resources, broken) in [
        (
            json!({"min": {"cpu": "50m"}}),
            json!({}),
            &["minimum cpu usage per Container is 50m.  No request is specified"][..],
        ),
        (
            json!({"min": {"cpu": "50m"}}),
            requests("40m"),
            &["minimum cpu usage per Container is 50m, but request is 40m"],
        ),
        (
            json!({"min": {"cpu": "50m"}}),
            both("50m", "10m"),
            &["minimum cpu usage per Container is 50m, but limit is 10m"],
        ),
        (
            json!({"max": {"cpu": "1"}}),
            requests("1"),
            &["maximum cpu usage per Container is 1.  No limit is specified"],
        ),
        (
            json!({"max": {"cpu": "1"}}),
            both("1", "2"),
            &["maximum cpu usage per Container is 1, but limit is 2"],
        ),
        (
            json!({"max": {"cpu": "1"}}),
            both("2", "1"),
            &["maximum cpu usage per Container is 1, but request is 2"],
        ),
        (json!({"max": {"cpu": "1"}}), both("1", "1"), &[]),
        (
            json!({"maxLimitRequestRatio": {"cpu": "1500m"}}),
            both("1", "2"),
            &[
                "cpu max limit to request ratio per Container is 1500m, but provided ratio is 2.000000",
            ],
        ),
        (json!({"maxLimitRequestRatio": {"cpu": "2"}}), both("1", "2"), &[]),
        (
            json!({"maxLimitRequestRatio": {"cpu": "2"}}),
            both("0", "2"),
            &[
                "cpu max limit to request ratio per Container is 2, but no request is specified or request is 0",
            ],
        ),
        (
            json!({"maxLimitRequestRatio": {"cpu": "2"}}),
            requests("1"),
            &[
                "cpu max limit to request ratio per Container is 2, but no limit is specified or limit is 0",
            ],
        ),
    ] {
        let mut limit = bound.clone();
        limit["type"] = "Container".into();
        assert_eq!(broken_by_pod(&range(limit), &pod(resources)), broken, "{bound}");
    }
}

#[test]
fn pods_are_bounded_by_the_sum_of_their_containers() {
    let limit = range(json!({"type": "Pod", "max": {"memory": "1Gi"}}));
    let container = |memory: &str| json!({"resources": {"limits": {"memory": memory}}});
    let pod = |list: Value, first: Value| {
        object(json!({"spec": {"containers": list, "initContainers": first}}))
    };
    let annotation =
        |limit: &str| vec![format!("maximum memory usage per Pod is 1Gi, but limit is {limit}")];
    let half = || container("512Mi");
    assert_eq!(
        broken_by_pod(&limit, &pod(json!([half(), half()]), json!([]))),
        Vec::<String>::new()
    );
    assert_eq!(
        broken_by_pod(&limit, &pod(json!([half(), half(), half()]), json!([]))),
        annotation("1536Mi")
    );
    assert_eq!(
        broken_by_pod(&limit, &pod(json!([half()]), json!([container("2Gi")]))),
        annotation("2Gi")
    );
    let mut sidecar = container("768Mi");
    sidecar["restartPolicy"] = "Always".into();
    assert_eq!(
        broken_by_pod(&limit, &pod(json!([half()]), json!([sidecar]))),
        annotation("1280Mi")
    );
}

#[test]
fn claims_are_bounded_by_their_requests() {
    let limit = range(json!({
        "type": "PersistentVolumeClaim", "min": {"storage": "2Gi"}, "max": {"storage": "4Gi"},
    }));
    let claim =
        |storage: &str| object(json!({"spec": {"resources": {"requests": {"storage": storage}}}}));
    let none: [&str; 0] = [];
    assert_eq!(broken_by_claim(&limit, &claim("3Gi")), none);
    assert_eq!(
        broken_by_claim(&limit, &claim("1Gi")),
        ["minimum storage usage per PersistentVolumeClaim is 2Gi, but request is 1Gi"]
    );
    assert_eq!(
        broken_by_claim(&limit, &claim("5Gi")),
        ["maximum storage usage per PersistentVolumeClaim is 4Gi, but request is 5Gi"]
    );
}
