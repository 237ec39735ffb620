//! The violations that each rule finds, and the versions of the rules.

use mainstay_security::{
    SecurityLevel, Standard, StandardVersion, join_reasons, join_violations, violations,
};
use serde_json::{Value, json};

fn found(level: SecurityLevel, minor: u64, spec: &Value) -> String {
    let standard = Standard { level, version: StandardVersion::Minor(minor) };
    join_violations(&violations(standard, None, spec))
}

fn baseline(spec: &Value) -> String {
    found(SecurityLevel::Baseline, 35, spec)
}

/// The spec of a pod that the restricted level allows, with `more` merged into it and `container` into
/// its container.
fn pod(more: &Value, container: &Value) -> Value {
    let mut merged = json!({"name": "c", "securityContext": {
        "allowPrivilegeEscalation": false, "capabilities": {"drop": ["ALL"]},
    }});
    let mut spec = json!({"securityContext": {
        "runAsNonRoot": true, "seccompProfile": {"type": "RuntimeDefault"},
    }});
    merge(&mut merged, container);
    spec["containers"] = json!([merged]);
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
fn a_pod_without_security_contexts_is_baseline_but_not_restricted() {
    let spec = json!({"containers": [{"name": "a"}, {"name": "b"}]});
    assert_eq!(baseline(&spec), "");
    assert_eq!(found(SecurityLevel::Privileged, 35, &json!({"hostPID": true})), "");
    insta::assert_snapshot!(found(SecurityLevel::Restricted, 35, &spec), @r#"allowPrivilegeEscalation != false (containers "a", "b" must set securityContext.allowPrivilegeEscalation=false), unrestricted capabilities (containers "a", "b" must set securityContext.capabilities.drop=["ALL"]), runAsNonRoot != true (pod or containers "a", "b" must set securityContext.runAsNonRoot=true), seccompProfile (pod or containers "a", "b" must set securityContext.seccompProfile.type to "RuntimeDefault" or "Localhost")"#);
    let standard = Standard { level: SecurityLevel::Restricted, version: StandardVersion::Latest };
    insta::assert_snapshot!(join_reasons(&violations(standard, None, &spec)), @"allowPrivilegeEscalation != false, unrestricted capabilities, runAsNonRoot != true, seccompProfile");
}

#[test]
fn a_pod_with_all_required_settings_is_restricted() {
    for minor in [0, 8, 19, 22, 25, 35, 99] {
        assert_eq!(
            found(SecurityLevel::Restricted, minor, &pod(&json!({}), &json!({}))),
            "",
            "{minor}"
        );
    }
}

#[test]
fn each_baseline_rule_finds_its_violation() {
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
fn each_restricted_rule_finds_its_violation() {
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
    let found: Vec<String> =
        cases.iter().map(|spec| found(SecurityLevel::Restricted, 35, spec)).collect();
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
fn rules_apply_to_a_range_of_versions() {
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
        (SecurityLevel::Baseline, pod(&sysctl, &nothing), Some(31), None),
        (SecurityLevel::Baseline, pod(&engine, &nothing), Some(30), None),
        (SecurityLevel::Baseline, pod(&nothing, &probe), None, Some(34)),
        (SecurityLevel::Restricted, pod(&own, &nothing), Some(34), None),
        (SecurityLevel::Baseline, pod(&json!({"hostUsers": false}), &unmasked), Some(34), None),
        (SecurityLevel::Restricted, windows, Some(24), None),
    ] {
        for minor in 0..40 {
            let bad =
                last.is_some_and(|last| minor <= last) || first.is_some_and(|first| minor >= first);
            // Before 1.8 this Windows pod violates no restricted rule.
            let bad = bad
                && !(level == SecurityLevel::Restricted && minor < 8 && spec.get("os").is_some());
            assert_eq!(found(level, minor, &spec).is_empty(), !bad, "{level:?} 1.{minor} {spec}");
        }
    }
}

#[test]
fn annotations_set_profiles_before_1_19() {
    let metadata = json!({"annotations": {
        "seccomp.security.alpha.kubernetes.io/pod": "unconfined",
        "container.seccomp.security.alpha.kubernetes.io/c": "un\"confined",
        "container.seccomp.security.alpha.kubernetes.io/other": "unconfined",
        "container.apparmor.security.beta.kubernetes.io/c": "unconfined",
        "container.apparmor.security.beta.kubernetes.io/d": "localhost/x",
    }});
    let spec = pod(&json!({}), &json!({}));
    let at = |minor| {
        let standard =
            Standard { level: SecurityLevel::Baseline, version: StandardVersion::Minor(minor) };
        join_violations(&violations(standard, metadata.as_object(), &spec))
    };
    insta::assert_snapshot!(at(18), @r#"forbidden AppArmor profile (annotation must not set AppArmor profile type to "container.apparmor.security.beta.kubernetes.io/c="unconfined""), seccompProfile (forbidden annotations container.seccomp.security.alpha.kubernetes.io/c="un\"confined", seccomp.security.alpha.kubernetes.io/pod="unconfined")"#);
    insta::assert_snapshot!(at(19), @r#"forbidden AppArmor profile (annotation must not set AppArmor profile type to "container.apparmor.security.beta.kubernetes.io/c="unconfined"")"#);
}

#[test]
fn mapped_ports_of_a_simulated_pod_are_host_ports() {
    let check = |annotation: &str, spec: &Value| {
        let metadata = json!({"annotations": {"mainstay.dev/host-ports": annotation}});
        let violations_at = |level| {
            let standard = Standard { level, version: StandardVersion::Minor(0) };
            join_violations(&violations(standard, metadata.as_object(), spec))
        };
        assert_eq!(violations_at(SecurityLevel::Privileged), "");
        assert!(
            violations_at(SecurityLevel::Restricted)
                .contains(&violations_at(SecurityLevel::Baseline))
        );
        violations_at(SecurityLevel::Baseline)
    };
    let spec = json!({"containers": [{"name": "c"}]});
    let source = r#"annotation "mainstay.dev/host-ports""#;
    assert_eq!(check("80:8080", &spec), format!("hostPort ({source} uses hostPort 8080)"));
    let both = json!({"containers": [{"name": "c", "ports": [{"hostPort": 443}]}]});
    assert_eq!(
        check("80:9090, 8080", &both),
        format!(
            r#"hostPort (container "c" uses hostPort 443; {source} uses hostPorts 8080, 9090)"#
        )
    );
    for nothing in ["", "x", "80:70000"] {
        assert_eq!(check(nothing, &spec), "", "{nothing:?}");
    }
}
