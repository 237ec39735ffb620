//! The rules of the restricted level, told after those of the baseline that it keeps.

use crate::baseline::{adders, is_confined, proc_mount, unconfined};
use crate::pod::{
    Breakers, Pod, Values, containers, each, field, name, plural, quoted, setting, text,
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

/// Volumes that a pod may have.
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

/// Those that it may not have and that are known by a name.
const OTHER_VOLUMES: [&str; 21] = [
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

/// Rules about users and rights of Linux do not hold for pods of Windows since 1.25.
fn does_not_matter(pod: &Pod<'_>, minor: u64) -> bool {
    minor >= 25 && pod.is_of_windows()
}

/// Rules about the user do not hold since 1.35 where it is another one on the node.
fn has_own_users(pod: &Pod<'_>, minor: u64) -> bool {
    minor >= 35 && pod.has_own_users()
}

fn privilege_escalation(pod: &Pod<'_>, minor: u64) -> Option<Violation> {
    if does_not_matter(pod, minor) {
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
    if does_not_matter(pod, minor) {
        return None;
    }
    let keeps = |container: &&Value| {
        let dropped = each(container, &["securityContext", "capabilities", "drop"]);
        !dropped.into_iter().any(|one| one == "ALL")
    };
    let keepers: Vec<&str> = pod.containers().filter(keeps).map(name).collect();
    let (breakers, added) = adders(pod, |one| one == "NET_BIND_SERVICE");
    let mut details = Vec::new();
    if !keepers.is_empty() {
        let who = containers(&keepers);
        details.push(format!(r#"{who} must set securityContext.capabilities.drop=["ALL"]"#));
    }
    if !breakers.is_empty() {
        let (who, added) = (containers(&breakers), quoted(added));
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
        kinds.insert(OTHER_VOLUMES.into_iter().find(has).unwrap_or("unknown"));
    }
    if names.is_empty() {
        return None;
    }
    let word = plural("volume", "volumes", names.len());
    let uses = plural("uses", "use", names.len());
    let what = plural("restricted volume type", "restricted volume types", kinds.len());
    let detail = format!("{word} {} {uses} {what} {}", quoted(names), quoted(kinds));
    Violation::new("restricted volume types", detail)
}

fn non_root(pod: &Pod<'_>, minor: u64) -> Option<Violation> {
    const REASON: &str = "runAsNonRoot != true";
    if has_own_users(pod, minor) {
        return None;
    }
    let set = |of: &Value| setting(of, &["runAsNonRoot"]).and_then(Value::as_bool);
    if let Some(who) = Breakers::find(pod, |one| set(one) == Some(false)).shown() {
        let detail = format!("{who} must not set securityContext.runAsNonRoot=false");
        return Violation::new(REASON, detail);
    }
    let unset = pod.containers().filter(|one| set(one).is_none());
    let unset: Vec<&str> = unset.map(name).collect();
    if set(pod.spec) == Some(true) || unset.is_empty() {
        return None;
    }
    let who = containers(&unset);
    Violation::new(REASON, format!("pod or {who} must set securityContext.runAsNonRoot=true"))
}

fn user(pod: &Pod<'_>, minor: u64) -> Option<Violation> {
    if has_own_users(pod, minor) {
        return None;
    }
    let is_root = |one: &Value| setting(one, &["runAsUser"]).and_then(Value::as_i64) == Some(0);
    let who = Breakers::find(pod, is_root).shown()?;
    Violation::new("runAsUser=0", format!("{who} must not set runAsUser=0"))
}

fn seccomp(pod: &Pod<'_>, minor: u64) -> Option<Violation> {
    if does_not_matter(pod, minor) {
        return None;
    }
    if let Some(bad) = unconfined(pod) {
        return Some(bad);
    }
    let of = |one: &Value| setting(one, &["seccompProfile"]).is_some();
    let set = pod.setting(&["seccompProfile"]).map(|profile| text(profile, &["type"]));
    let unset = pod.containers().filter(|one| !of(one));
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
