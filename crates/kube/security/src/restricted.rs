//! Rules of the restricted level, which follow the baseline rules that it keeps.

use crate::baseline::{forbidden_capabilities, is_confined, proc_mount, unconfined};
use crate::pod::{
    Pod, Values, Violators, containers, each, field, name, plural, quote_all, setting, text,
};
use crate::{Check, Violation};
use serde_json::Value;

pub(crate) const CHECKS: &[Check] = &[
    Check::new(privilege_escalation).since(8),
    Check::new(capabilities).since(22),
    Check::new(proc_mount).since(35),
    Check::new(volumes),
    Check::new(non_root),
    Check::new(user).since(23),
    Check::new(seccomp).since(19),
];

/// Allowed types of volumes.
const VOLUMES: [&str; 9] = [
    "configMap",
    "csi",
    "downwardAPI",
    "emptyDir",
    "ephemeral",
    "image",
    "persistentVolumeClaim",
    "projected",
    "secret",
];

/// Known forbidden types of volumes.
const FORBIDDEN_VOLUMES: [&str; 21] = [
    "hostPath",
    "gcePersistentDisk",
    "awsElasticBlockStore",
    "gitRepo",
    "nfs",
    "iscsi",
    "glusterfs",
    "rbd",
    "flexVolume",
    "cinder",
    "cephfs",
    "flocker",
    "fc",
    "azureFile",
    "vsphereVolume",
    "quobyte",
    "azureDisk",
    "photonPersistentDisk",
    "portworxVolume",
    "scaleIO",
    "storageos",
];

/// Since 1.25, rules about Linux users and capabilities do not apply to Windows pods.
fn is_exempt_windows(pod: &Pod<'_>, minor: u64) -> bool {
    minor >= 25 && pod.is_windows()
}

/// Since 1.35, rules about users do not apply to pods with a user namespace.
fn is_exempt_user_namespace(pod: &Pod<'_>, minor: u64) -> bool {
    minor >= 35 && pod.has_user_namespace()
}

fn privilege_escalation(pod: &Pod<'_>, minor: u64) -> Option<Violation> {
    if is_exempt_windows(pod, minor) {
        return None;
    }
    let allows = |container: &&Value| {
        let set = setting(container, &["allowPrivilegeEscalation"]).and_then(Value::as_bool);
        set.unwrap_or(true)
    };
    let bad: Vec<&str> = pod.containers().filter(allows).map(name).collect();
    if bad.is_empty() {
        return None;
    }
    let who = containers(&bad);
    let detail = format!("{who} must set securityContext.allowPrivilegeEscalation=false");
    Violation::new("allowPrivilegeEscalation != false", detail)
}

fn capabilities(pod: &Pod<'_>, minor: u64) -> Option<Violation> {
    if is_exempt_windows(pod, minor) {
        return None;
    }
    let keeps = |container: &&Value| {
        let dropped = each(container, &["securityContext", "capabilities", "drop"]);
        !dropped.into_iter().any(|capability| capability == "ALL")
    };
    let keepers: Vec<&str> = pod.containers().filter(keeps).map(name).collect();
    let (violators, added) =
        forbidden_capabilities(pod, |capability| capability == "NET_BIND_SERVICE");
    let mut details = Vec::new();
    if !keepers.is_empty() {
        let who = containers(&keepers);
        details.push(format!(r#"{who} must set securityContext.capabilities.drop=["ALL"]"#));
    }
    if !violators.is_empty() {
        let (who, added) = (containers(&violators), quote_all(added));
        let detail = format!("{who} must not include {added} in securityContext.capabilities.add");
        details.push(detail);
    }
    if details.is_empty() {
        return None;
    }
    Violation::new("unrestricted capabilities", details.join("; "))
}

fn volumes(pod: &Pod<'_>, _: u64) -> Option<Violation> {
    let mut kinds = Values::new();
    let mut names = Vec::new();
    for volume in each(pod.spec, &["volumes"]) {
        let has = |kind: &&str| field(volume, &[*kind]).is_some();
        if VOLUMES.iter().any(&has) {
            continue;
        }
        names.push(name(volume));
        kinds.insert(FORBIDDEN_VOLUMES.into_iter().find(has).unwrap_or("unknown"));
    }
    if names.is_empty() {
        return None;
    }
    let word = plural("volume", "volumes", names.len());
    let uses = plural("uses", "use", names.len());
    let what = plural("restricted volume type", "restricted volume types", kinds.len());
    let detail = format!("{word} {} {uses} {what} {}", quote_all(names), quote_all(kinds));
    Violation::new("restricted volume types", detail)
}

fn non_root(pod: &Pod<'_>, minor: u64) -> Option<Violation> {
    const REASON: &str = "runAsNonRoot != true";
    if is_exempt_user_namespace(pod, minor) {
        return None;
    }
    let value = |holder: &Value| setting(holder, &["runAsNonRoot"]).and_then(Value::as_bool);
    if let Some(who) = Violators::find(pod, |holder| value(holder) == Some(false)).describe() {
        let detail = format!("{who} must not set securityContext.runAsNonRoot=false");
        return Violation::new(REASON, detail);
    }
    let unset = pod.containers().filter(|container| value(container).is_none());
    let unset: Vec<&str> = unset.map(name).collect();
    if value(pod.spec) == Some(true) || unset.is_empty() {
        return None;
    }
    let who = containers(&unset);
    Violation::new(REASON, format!("pod or {who} must set securityContext.runAsNonRoot=true"))
}

fn user(pod: &Pod<'_>, minor: u64) -> Option<Violation> {
    if is_exempt_user_namespace(pod, minor) {
        return None;
    }
    let is_root =
        |holder: &Value| setting(holder, &["runAsUser"]).and_then(Value::as_i64) == Some(0);
    let who = Violators::find(pod, is_root).describe()?;
    Violation::new("runAsUser=0", format!("{who} must not set runAsUser=0"))
}

fn seccomp(pod: &Pod<'_>, minor: u64) -> Option<Violation> {
    if is_exempt_windows(pod, minor) {
        return None;
    }
    if let Some(bad) = unconfined(pod) {
        return Some(bad);
    }
    let has_profile = |container: &Value| setting(container, &["seccompProfile"]).is_some();
    let set = pod.setting(&["seccompProfile"]).map(|profile| text(profile, &["type"]));
    let unset = pod.containers().filter(|container| !has_profile(container));
    let unset: Vec<&str> = unset.map(name).collect();
    if set.is_some_and(is_confined) || unset.is_empty() {
        return None;
    }
    let who = containers(&unset);
    let detail = format!(
        r#"pod or {who} must set securityContext.seccompProfile.type to "RuntimeDefault" or "Localhost""#
    );
    Violation::new("seccompProfile", detail)
}
