//! The rules of the baseline level, in the order in which they are told.

use crate::lent::{self, HOST_PORTS};
use crate::pod::{
    Breakers, Pod, Values, containers, each, field, is_true, name, plural, quoted, setting, text,
};
use crate::{Check, Violation};
use mainstay_gocompat::quote;
use serde_json::Value;
use std::collections::BTreeSet;

pub(crate) const CHECKS: &[Check] = &[
    Check::new(app_armor),
    Check::new(capabilities).replaced(22),
    Check::new(host_namespaces),
    Check::new(host_paths).replaced(0),
    Check::new(host_ports),
    Check::new(hosts_of_probes).since(34),
    Check::new(privileged),
    Check::new(proc_mount_unless_own_users).replaced(35),
    Check::new(se_linux),
    Check::new(seccomp).replaced(19),
    Check::new(sysctls),
    Check::new(windows_host_process),
];

/// What containers may add.
const CAPABILITIES: [&str; 13] = [
    "AUDIT_WRITE",
    "CHOWN",
    "DAC_OVERRIDE",
    "FOWNER",
    "FSETID",
    "KILL",
    "MKNOD",
    "NET_BIND_SERVICE",
    "SETFCAP",
    "SETGID",
    "SETPCAP",
    "SETUID",
    "SYS_CHROOT",
];

/// What pods may set, and since when.
const SYSCTLS: [(&str, u64); 12] = [
    ("kernel.shm_rmid_forced", 0),
    ("net.ipv4.ip_local_port_range", 0),
    ("net.ipv4.tcp_syncookies", 0),
    ("net.ipv4.ping_group_range", 0),
    ("net.ipv4.ip_unprivileged_port_start", 0),
    ("net.ipv4.ip_local_reserved_ports", 27),
    ("net.ipv4.tcp_keepalive_time", 29),
    ("net.ipv4.tcp_fin_timeout", 29),
    ("net.ipv4.tcp_keepalive_intvl", 29),
    ("net.ipv4.tcp_keepalive_probes", 29),
    ("net.ipv4.tcp_rmem", 32),
    ("net.ipv4.tcp_wmem", 32),
];

/// The type of a profile in the settings of a pod or container.
fn profile<'a>(of: &'a Value, kind: &str) -> Option<&'a str> {
    setting(of, &[kind]).map(|profile| text(profile, &["type"]))
}

/// Whether a profile is the runtime's own or one of the node's.
pub(crate) fn is_confined(profile: &str) -> bool {
    matches!(profile, "RuntimeDefault" | "Localhost")
}

fn app_armor(pod: &Pod<'_>, _: u64) -> Option<Violation> {
    const OF_CONTAINER: &str = "container.apparmor.security.beta.kubernetes.io/";
    let mut values = Values::new();
    let breakers = Breakers::find(pod, |one| {
        let bad = profile(one, "appArmorProfile").filter(|profile| !is_confined(profile));
        values.extend(bad);
        bad.is_some()
    });
    let allowed = |value: &str| {
        value.is_empty() || value == "runtime/default" || value.starts_with("localhost/")
    };
    let annotations: BTreeSet<String> = pod
        .annotations()
        .filter(|(key, value)| key.starts_with(OF_CONTAINER) && !allowed(value))
        .map(|(key, value)| format!("{key}={}", quote(value)))
        .collect();
    let mut setters: Vec<String> = breakers.shown().into_iter().collect();
    if !annotations.is_empty() {
        setters.push(plural("annotation", "annotations", annotations.len()).to_owned());
    }
    if setters.is_empty() {
        return None;
    }
    let bad = values.into_iter().map(ToOwned::to_owned).chain(annotations);
    let bad: Vec<String> = bad.collect();
    let reason = plural("forbidden AppArmor profile", "forbidden AppArmor profiles", bad.len());
    let setters = setters.join(" and ");
    Violation::new(
        reason,
        format!("{setters} must not set AppArmor profile type to {}", quoted(bad)),
    )
}

fn capabilities(pod: &Pod<'_>, _: u64) -> Option<Violation> {
    let (breakers, added) = adders(pod, |one| CAPABILITIES.contains(&one));
    let who = (!breakers.is_empty()).then(|| containers(&breakers))?;
    let detail =
        format!("{who} must not include {} in securityContext.capabilities.add", quoted(added));
    Violation::new("non-default capabilities", detail)
}

/// The containers that add capabilities which are not allowed, and these.
pub(crate) fn adders<'a>(
    pod: &Pod<'a>,
    allowed: impl Fn(&str) -> bool,
) -> (Vec<&'a str>, Values<'a>) {
    let mut values = Values::new();
    let breakers = pod.containers().filter(|container| {
        let added = each(container, &["securityContext", "capabilities", "add"]);
        let mut bad = added.filter_map(Value::as_str).filter(|one| !allowed(one)).peekable();
        let breaks = bad.peek().is_some();
        values.extend(bad);
        breaks
    });
    let breakers = breakers.map(name).collect();
    (breakers, values)
}

fn host_namespaces(pod: &Pod<'_>, _: u64) -> Option<Violation> {
    let shared = ["hostNetwork", "hostPID", "hostIPC"];
    let shared = shared.into_iter().filter(|one| is_true(pod.spec, &[one]));
    let shared: Vec<String> = shared.map(|one| format!("{one}=true")).collect();
    let free = mainstay_fault::is_on("namespaces-of-hosts-are-free");
    if shared.is_empty() || free {
        None
    } else {
        Violation::new("host namespaces", shared.join(", "))
    }
}

fn host_paths(pod: &Pod<'_>, _: u64) -> Option<Violation> {
    let volumes = each(pod.spec, &["volumes"]);
    let volumes = volumes.filter(|volume| field(volume, &["hostPath"]).is_some());
    let names: Vec<&str> = volumes.map(name).collect();
    if names.is_empty() {
        return None;
    }
    let word = plural("volume", "volumes", names.len());
    Violation::new("hostPath volumes", format!("{word} {}", quoted(names)))
}

fn host_ports(pod: &Pod<'_>, _: u64) -> Option<Violation> {
    // In the order of texts, as the original has it.
    let mut ports = BTreeSet::new();
    let mut breakers = Vec::new();
    for container in pod.containers() {
        let taken = each(container, &["ports"]);
        let taken = taken.filter_map(|port| field(port, &["hostPort"])?.as_i64());
        let taken: Vec<String> =
            taken.filter(|port| *port != 0).map(|port| port.to_string()).collect();
        if !taken.is_empty() {
            breakers.push(name(container));
        }
        ports.extend(taken);
    }
    let used = |who: String, many: usize, ports: BTreeSet<String>| {
        let uses = plural("uses", "use", many);
        let word = plural("hostPort", "hostPorts", ports.len());
        let ports: Vec<String> = ports.into_iter().collect();
        format!("{who} {uses} {word} {}", ports.join(", "))
    };
    let of_containers =
        (!breakers.is_empty()).then(|| used(containers(&breakers), breakers.len(), ports));
    // What the original does not know: ports of the machine that a simulated pod is lent.
    let lent = pod.annotation(HOST_PORTS).into_iter().flat_map(lent::host_ports);
    let lent: BTreeSet<String> = lent.map(|(_, host)| host.to_string()).collect();
    let of_pod =
        (!lent.is_empty()).then(|| used(format!("annotation {}", quote(HOST_PORTS)), 1, lent));
    let details: Vec<String> = of_containers.into_iter().chain(of_pod).collect();
    if details.is_empty() { None } else { Violation::new("hostPort", details.join("; ")) }
}

fn hosts_of_probes(pod: &Pod<'_>, _: u64) -> Option<Violation> {
    const HANDLERS: [&[&str]; 5] = [
        &["livenessProbe"],
        &["readinessProbe"],
        &["startupProbe"],
        &["lifecycle", "postStart"],
        &["lifecycle", "preStop"],
    ];
    let mut hosts = Values::new();
    let mut breakers = Values::new();
    for container in pod.containers() {
        let handlers = HANDLERS.iter().filter_map(|path| field(container, path));
        let asked = handlers.flat_map(|handler| {
            [text(handler, &["httpGet", "host"]), text(handler, &["tcpSocket", "host"])]
        });
        for host in asked.filter(|host| !host.is_empty()) {
            hosts.insert(host);
            breakers.insert(name(container));
        }
    }
    if breakers.is_empty() {
        return None;
    }
    let breakers: Vec<&str> = breakers.into_iter().collect();
    let uses = plural("uses", "use", breakers.len());
    let word = plural("probe or lifecycle host", "probe or lifecycle hosts", hosts.len());
    let detail = format!("{} {uses} {word} {}", containers(&breakers), quoted(hosts));
    Violation::new("probe or lifecycle host", detail)
}

fn privileged(pod: &Pod<'_>, _: u64) -> Option<Violation> {
    let bad = pod.containers().filter(|one| is_true(one, &["securityContext", "privileged"]));
    let bad: Vec<&str> = bad.map(name).collect();
    if bad.is_empty() {
        return None;
    }
    let detail = format!("{} must not set securityContext.privileged=true", containers(&bad));
    Violation::new("privileged", detail)
}

fn proc_mount_unless_own_users(pod: &Pod<'_>, minor: u64) -> Option<Violation> {
    if minor >= 35 && pod.has_own_users() {
        return None;
    }
    proc_mount(pod, minor)
}

pub(crate) fn proc_mount(pod: &Pod<'_>, _: u64) -> Option<Violation> {
    let mut values = Values::new();
    let mut breakers = Vec::new();
    for container in pod.containers() {
        let mount = setting(container, &["procMount"]).and_then(Value::as_str);
        if let Some(bad) = mount.filter(|mount| *mount != "Default") {
            values.insert(bad);
            breakers.push(name(container));
        }
    }
    if breakers.is_empty() {
        return None;
    }
    let who = containers(&breakers);
    let detail = format!("{who} must not set securityContext.procMount to {}", quoted(values));
    Violation::new("procMount", detail)
}

fn se_linux(pod: &Pod<'_>, minor: u64) -> Option<Violation> {
    let allowed = |kind: &str| match kind {
        "" | "container_t" | "container_init_t" | "container_kvm_t" => true,
        "container_engine_t" => minor >= 31,
        _ => false,
    };
    let mut types = Values::new();
    let (mut user, mut role) = (false, false);
    let breakers = Breakers::find(pod, |one| {
        let Some(options) = setting(one, &["seLinuxOptions"]) else { return false };
        let kind = text(options, &["type"]);
        let sets = |field: &str| !text(options, &[field]).is_empty();
        let (wrong_type, sets_user, sets_role) = (!allowed(kind), sets("user"), sets("role"));
        if wrong_type {
            types.insert(kind);
        }
        user |= sets_user;
        role |= sets_role;
        wrong_type || sets_user || sets_role
    });
    let who = breakers.shown()?;
    let types = (!types.is_empty())
        .then(|| format!("{} {}", plural("type", "types", types.len()), quoted(types)));
    let user = user.then(|| "user may not be set".to_owned());
    let role = role.then(|| "role may not be set".to_owned());
    let what: Vec<String> = types.into_iter().chain(user).chain(role).collect();
    let detail = format!("{who} set forbidden securityContext.seLinuxOptions: {}", what.join("; "));
    Violation::new("seLinuxOptions", detail)
}

/// Profiles are annotations before 1.19.
fn seccomp(pod: &Pod<'_>, minor: u64) -> Option<Violation> {
    const OF_POD: &str = "seccomp.security.alpha.kubernetes.io/pod";
    const OF_CONTAINER: &str = "container.seccomp.security.alpha.kubernetes.io/";
    if minor >= 19 {
        return unconfined(pod);
    }
    let allowed = |value: &str| {
        matches!(value, "runtime/default" | "docker/default") || value.starts_with("localhost/")
    };
    let of_containers = pod.containers().map(|one| format!("{OF_CONTAINER}{}", name(one)));
    let keys = std::iter::once(OF_POD.to_owned()).chain(of_containers);
    let bad: BTreeSet<String> = keys
        .filter_map(|key| {
            let value = pod.annotation(&key).filter(|value| !allowed(value))?;
            Some(format!("{key}={}", quote(value)))
        })
        .collect();
    if bad.is_empty() {
        return None;
    }
    let word = plural("annotation", "annotations", bad.len());
    let bad: Vec<String> = bad.into_iter().collect();
    Violation::new("seccompProfile", format!("forbidden {word} {}", bad.join(", ")))
}

/// Profiles that are set and confine nothing.
pub(crate) fn unconfined(pod: &Pod<'_>) -> Option<Violation> {
    let mut values = Values::new();
    let breakers = Breakers::find(pod, |one| {
        let bad = profile(one, "seccompProfile").filter(|profile| !is_confined(profile));
        values.extend(bad);
        bad.is_some()
    });
    let who = breakers.shown()?;
    let detail =
        format!("{who} must not set securityContext.seccompProfile.type to {}", quoted(values));
    Violation::new("seccompProfile", detail)
}

fn sysctls(pod: &Pod<'_>, minor: u64) -> Option<Violation> {
    let allowed = |name: &str| SYSCTLS.iter().any(|(one, since)| *one == name && minor >= *since);
    let set = each(pod.spec, &["securityContext", "sysctls"]).map(name);
    let bad: Vec<&str> = set.filter(|name| !allowed(name)).collect();
    if bad.is_empty() { None } else { Violation::new("forbidden sysctls", bad.join(", ")) }
}

fn windows_host_process(pod: &Pod<'_>, _: u64) -> Option<Violation> {
    let path = ["securityContext", "windowsOptions", "hostProcess"];
    let who = Breakers::find(pod, |one| is_true(one, &path)).shown()?;
    let detail = format!("{who} must not set securityContext.windowsOptions.hostProcess=true");
    Violation::new("hostProcess", detail)
}
