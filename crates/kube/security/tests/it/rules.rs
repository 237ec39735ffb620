//! What each rule finds, and in which versions.

use mainstay_security::{Level, Standard, Version, joined, reasons, violations};
use serde_json::{Value, json};

fn found(level: Level, minor: u64, spec: &Value) -> String {
    let standard = Standard { level, version: Version::Minor(minor) };
    joined(&violations(standard, None, spec))
}

fn baseline(spec: &Value) -> String {
    found(Level::Baseline, 35, spec)
}

/// A pod that the restricted level allows, with more in its spec and its container.
fn pod(more: &Value, container: &Value) -> Value {
    let mut one = json!({"name": "c", "securityContext": {
        "allowPrivilegeEscalation": false, "capabilities": {"drop": ["ALL"]},
    }});
    let mut spec = json!({"securityContext": {
        "runAsNonRoot": true, "seccompProfile": {"type": "RuntimeDefault"},
    }});
    merge(&mut one, container);
    spec["containers"] = json!([one]);
    merge(&mut spec, more);
    spec
}

fn merge(into: &mut Value, more: &Value) {
    match (into, more) {
        (Value::Object(into), Value::Object(more)) => {
            for (key, value) in more {
                merge(into.entry(key.clone()).or_insert(Value::Null), value);
            }
        }
        (into, more) => *into = more.clone(),
    }
}

#[test]
fn a_pod_that_says_nothing_is_of_the_baseline_and_not_restricted() {
    let spec = json!({"containers": [{"name": "a"}, {"name": "b"}]});
    assert_eq!(baseline(&spec), "");
    assert_eq!(found(Level::Privileged, 35, &json!({"hostPID": true})), "");
    insta::assert_snapshot!(found(Level::Restricted, 35, &spec), @r#"allowPrivilegeEscalation != false (containers "a", "b" must set securityContext.allowPrivilegeEscalation=false), unrestricted capabilities (containers "a", "b" must set securityContext.capabilities.drop=["ALL"]), runAsNonRoot != true (pod or containers "a", "b" must set securityContext.runAsNonRoot=true), seccompProfile (pod or containers "a", "b" must set securityContext.seccompProfile.type to "RuntimeDefault" or "Localhost")"#);
    let standard = Standard { level: Level::Restricted, version: Version::Latest };
    insta::assert_snapshot!(reasons(&violations(standard, None, &spec)), @"allowPrivilegeEscalation != false, unrestricted capabilities, runAsNonRoot != true, seccompProfile");
}

#[test]
fn a_pod_that_says_what_it_must_is_restricted() {
    for minor in [0, 8, 19, 22, 25, 35, 99] {
        assert_eq!(found(Level::Restricted, minor, &pod(&json!({}), &json!({}))), "", "{minor}");
    }
}

#[test]
fn every_rule_of_the_baseline_finds_what_it_is_for() {
    let secure = |settings: Value| json!({"securityContext": settings});
    let cases = [
        pod(&secure(json!({"appArmorProfile": {"type": "Unconfined"}})), &json!({})),
        pod(
            &json!({}),
            &secure(json!({"capabilities": {"add": ["NET_RAW", "CHOWN", "SYS_TIME"]}})),
        ),
        pod(&json!({"hostNetwork": true, "hostIPC": true}), &json!({})),
        pod(&json!({"volumes": [{"name": "v", "hostPath": {"path": "/"}}]}), &json!({})),
        pod(&json!({}), &json!({"ports": [{"hostPort": 80}, {"hostPort": 9}, {"hostPort": 0}]})),
        pod(&json!({}), &json!({"livenessProbe": {"httpGet": {"host": "x"}}})),
        pod(&json!({}), &json!({"lifecycle": {"preStop": {"tcpSocket": {"host": "y"}}}})),
        pod(&json!({}), &secure(json!({"privileged": true}))),
        pod(&json!({}), &secure(json!({"procMount": "Unmasked"}))),
        pod(
            &secure(json!({"seLinuxOptions": {"type": "spc_t", "user": "u"}})),
            &secure(json!({"seLinuxOptions": {"role": "r"}})),
        ),
        pod(&json!({}), &secure(json!({"seccompProfile": {"type": "Unconfined"}}))),
        pod(&secure(json!({"sysctls": [{"name": "kernel.msgmax"}]})), &json!({})),
        pod(&secure(json!({"windowsOptions": {"hostProcess": true}})), &json!({})),
    ];
    let found: Vec<String> = cases.iter().map(baseline).collect();
    insta::assert_snapshot!(found.join("\n"), @r#"
    forbidden AppArmor profile (pod must not set AppArmor profile type to "Unconfined")
    non-default capabilities (container "c" must not include "NET_RAW", "SYS_TIME" in securityContext.capabilities.add)
    host namespaces (hostNetwork=true, hostIPC=true)
    hostPath volumes (volume "v")
    hostPort (container "c" uses hostPorts 80, 9)
    probe or lifecycle host (container "c" uses probe or lifecycle host "x")
    probe or lifecycle host (container "c" uses probe or lifecycle host "y")
    privileged (container "c" must not set securityContext.privileged=true)
    procMount (container "c" must not set securityContext.procMount to "Unmasked")
    seLinuxOptions (pod and container "c" set forbidden securityContext.seLinuxOptions: type "spc_t"; user may not be set; role may not be set)
    seccompProfile (container "c" must not set securityContext.seccompProfile.type to "Unconfined")
    forbidden sysctls (kernel.msgmax)
    hostProcess (pod must not set securityContext.windowsOptions.hostProcess=true)
    "#);
}

#[test]
fn every_rule_of_the_restricted_level_finds_what_it_is_for() {
    let secure = |settings: Value| json!({"securityContext": settings});
    let cases = [
        pod(&json!({}), &secure(json!({"allowPrivilegeEscalation": true}))),
        pod(&json!({}), &secure(json!({"capabilities": {"drop": ["A"], "add": ["CHOWN"]}}))),
        pod(&json!({}), &secure(json!({"procMount": "Unmasked"}))),
        pod(
            &json!({"volumes": [{"name": "v", "nfs": {}}, {"name": "w"}, {"name": "x", "csi": {}}]}),
            &json!({}),
        ),
        pod(&json!({}), &secure(json!({"runAsNonRoot": false}))),
        pod(&secure(json!({"runAsUser": 0})), &secure(json!({"runAsUser": 0}))),
        pod(&secure(json!({"seccompProfile": null})), &json!({})),
    ];
    let found: Vec<String> = cases.iter().map(|spec| found(Level::Restricted, 35, spec)).collect();
    insta::assert_snapshot!(found.join("\n"), @r#"
    allowPrivilegeEscalation != false (container "c" must set securityContext.allowPrivilegeEscalation=false)
    unrestricted capabilities (container "c" must set securityContext.capabilities.drop=["ALL"]; container "c" must not include "CHOWN" in securityContext.capabilities.add)
    procMount (container "c" must not set securityContext.procMount to "Unmasked")
    restricted volume types (volumes "v", "w" use restricted volume types "nfs", "unknown")
    runAsNonRoot != true (container "c" must not set securityContext.runAsNonRoot=false)
    runAsUser=0 (pod and container "c" must not set runAsUser=0)
    seccompProfile (pod or container "c" must set securityContext.seccompProfile.type to "RuntimeDefault" or "Localhost")
    "#);
}

#[test]
fn rules_hold_from_a_version_on() {
    let sysctl = json!({"securityContext": {"sysctls": [{"name": "net.ipv4.tcp_rmem"}]}});
    let engine = json!({"securityContext": {"seLinuxOptions": {"type": "container_engine_t"}}});
    let probe = json!({"livenessProbe": {"httpGet": {"host": "x"}}});
    let own =
        json!({"hostUsers": false, "securityContext": {"runAsNonRoot": false, "runAsUser": 0}});
    let unmasked = json!({"securityContext": {"procMount": "Unmasked"}});
    let windows = json!({"os": {"name": "windows"}, "securityContext": {"runAsNonRoot": true},
        "containers": [{"name": "c"}]});
    let nothing = json!({});
    for (level, spec, last, first) in [
        (Level::Baseline, pod(&sysctl, &nothing), Some(31), None),
        (Level::Baseline, pod(&engine, &nothing), Some(30), None),
        (Level::Baseline, pod(&nothing, &probe), None, Some(34)),
        (Level::Restricted, pod(&own, &nothing), Some(34), None),
        (Level::Baseline, pod(&json!({"hostUsers": false}), &unmasked), Some(34), None),
        (Level::Restricted, windows, Some(24), None),
    ] {
        for minor in 0..40 {
            let bad =
                last.is_some_and(|last| minor <= last) || first.is_some_and(|first| minor >= first);
            // Before 1.8 a pod of Windows breaks no rule of its level.
            let bad = bad && !(level == Level::Restricted && minor < 8 && spec.get("os").is_some());
            assert_eq!(found(level, minor, &spec).is_empty(), !bad, "{level:?} 1.{minor} {spec}");
        }
    }
}

#[test]
fn annotations_were_profiles_once() {
    let metadata = json!({"annotations": {
        "seccomp.security.alpha.kubernetes.io/pod": "unconfined",
        "container.seccomp.security.alpha.kubernetes.io/c": "un\"confined",
        "container.seccomp.security.alpha.kubernetes.io/other": "unconfined",
        "container.apparmor.security.beta.kubernetes.io/c": "unconfined",
        "container.apparmor.security.beta.kubernetes.io/d": "localhost/x",
    }});
    let spec = pod(&json!({}), &json!({}));
    let at = |minor| {
        let standard = Standard { level: Level::Baseline, version: Version::Minor(minor) };
        joined(&violations(standard, metadata.as_object(), &spec))
    };
    insta::assert_snapshot!(at(18), @r#"forbidden AppArmor profile (annotation must not set AppArmor profile type to "container.apparmor.security.beta.kubernetes.io/c="unconfined""), seccompProfile (forbidden annotations container.seccomp.security.alpha.kubernetes.io/c="un\"confined", seccomp.security.alpha.kubernetes.io/pod="unconfined")"#);
    insta::assert_snapshot!(at(19), @r#"forbidden AppArmor profile (annotation must not set AppArmor profile type to "container.apparmor.security.beta.kubernetes.io/c="unconfined"")"#);
}

#[test]
fn ports_that_a_simulated_pod_is_lent_are_host_ports() {
    let lent = |annotation: &str, spec: &Value| {
        let metadata = json!({"annotations": {"mainstay.dev/host-ports": annotation}});
        let of = |level| {
            let standard = Standard { level, version: Version::Minor(0) };
            joined(&violations(standard, metadata.as_object(), spec))
        };
        assert_eq!(of(Level::Privileged), "");
        assert!(of(Level::Restricted).contains(&of(Level::Baseline)));
        of(Level::Baseline)
    };
    let spec = json!({"containers": [{"name": "c"}]});
    let named = r#"annotation "mainstay.dev/host-ports""#;
    assert_eq!(lent("80:8080", &spec), format!("hostPort ({named} uses hostPort 8080)"));
    let both = json!({"containers": [{"name": "c", "ports": [{"hostPort": 443}]}]});
    assert_eq!(
        lent("80:9090, 8080", &both),
        format!(r#"hostPort (container "c" uses hostPort 443; {named} uses hostPorts 8080, 9090)"#)
    );
    for nothing in ["", "x", "80:70000"] {
        assert_eq!(lent(nothing, &spec), "", "{nothing:?}");
    }
}
