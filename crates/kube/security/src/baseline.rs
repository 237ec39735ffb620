//! Rules of the baseline level, in the order of messages.

use crate::host_ports::{self, HOST_PORTS};
use crate::pod::{
    Pod, Values, Violators, containers, each, field, is_true, name, plural, quote_all, setting,
    text,
};
use crate::{Check, Violation};
use mainstay_gocompat::quote;
use serde_json::Value;
use std::collections::BTreeSet;

pub(crate) const CHECKS: &[Check] = &[
    Check::new(app_armor),
    Check::new(capabilities).replaced_in(22),
    Check::new(host_namespaces),
    Check::new(host_paths).replaced_in(0),
    Check::new(host_ports),
    Check::new(probe_hosts).since(34),
    Check::new(privileged),
    Check::new(proc_mount_without_user_namespace).replaced_in(35),
    Check::new(se_linux),
    Check::new(seccomp).replaced_in(19),
    Check::new(sysctls),
    Check::new(windows_host_process),
];

/// Capabilities that containers may add.
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

/// Sysctls that pods may set, and the first minor version that allows them.
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

/// The type of a profile in a security context.
fn profile<'a>(holder: &'a Value, kind: &str) -> Option<&'a str> {
    setting(holder, &[kind]).map(|profile| text(profile, &["type"]))
}

/// Whether a profile is the default of the runtime or a local one of the node.
pub(crate) fn is_confined(profile: &str) -> bool {
    matches!(profile, "RuntimeDefault" | "Localhost")
}

fn app_armor(pod: &Pod<'_>, _: u64) -> Option<Violation> {
    const CONTAINER_PREFIX: &str = "container.apparmor.security.beta.kubernetes.io/";
    let mut values = Values::new();
    let violators = Violators::find(pod, |holder| {
        let bad = profile(holder, "appArmorProfile").filter(|profile| !is_confined(profile));
        values.extend(bad);
        bad.is_some()
    });
    let allowed = |value: &str| {
        value.is_empty() || value == "runtime/default" || value.starts_with("localhost/")
    };
    let annotations: BTreeSet<String> = pod
        .annotations()
        .filter(|(key, value)| key.starts_with(CONTAINER_PREFIX) && !allowed(value))
        .map(|(key, value)| format!("{key}={}", quote(value)))
        .collect();
    let mut setters: Vec<String> = violators.describe().into_iter().collect();
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
        format!("{setters} must not set AppArmor profile type to {}", quote_all(bad)),
    )
}

fn capabilities(pod: &Pod<'_>, _: u64) -> Option<Violation> {
    let (violators, added) =
        forbidden_capabilities(pod, |capability| CAPABILITIES.contains(&capability));
    let who = (!violators.is_empty()).then(|| containers(&violators))?;
    let detail =
        format!("{who} must not include {} in securityContext.capabilities.add", quote_all(added));
    Violation::new("non-default capabilities", detail)
}

/// The containers that add forbidden capabilities, and these capabilities.
pub(crate) fn forbidden_capabilities<'a>(
    pod: &Pod<'a>,
    allowed: impl Fn(&str) -> bool,
) -> (Vec<&'a str>, Values<'a>) {
    let mut values = Values::new();
    let violators = pod.containers().filter(|container| {
        let added = each(container, &["securityContext", "capabilities", "add"]);
        let mut bad = added.filter_map(Value::as_str).filter(|name| !allowed(name)).peekable();
        let violates = bad.peek().is_some();
        values.extend(bad);
        violates
    });
    let violators = violators.map(name).collect();
    (violators, values)
}

fn host_namespaces(pod: &Pod<'_>, _: u64) -> Option<Violation> {
    let shared = ["hostNetwork", "hostPID", "hostIPC"];
    let shared = shared.into_iter().filter(|field| is_true(pod.spec, &[field]));
    let shared: Vec<String> = shared.map(|field| format!("{field}=true")).collect();
    let is_skipped = mainstay_fault::is_on("namespaces-of-hosts-are-free");
    if shared.is_empty() || is_skipped {
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
    Violation::new("hostPath volumes", format!("{word} {}", quote_all(names)))
}

fn host_ports(pod: &Pod<'_>, _: u64) -> Option<Violation> {
    // Ports are sorted as texts, as in upstream.
    let mut ports = BTreeSet::new();
    let mut violators = Vec::new();
    for container in pod.containers() {
        let used = each(container, &["ports"]);
        let used = used.filter_map(|port| field(port, &["hostPort"])?.as_i64());
        let used: Vec<String> =
            used.filter(|port| *port != 0).map(|port| port.to_string()).collect();
        if !used.is_empty() {
            violators.push(name(container));
        }
        ports.extend(used);
    }
    let describe = |who: String, many: usize, ports: BTreeSet<String>| {
        let uses = plural("uses", "use", many);
        let word = plural("hostPort", "hostPorts", ports.len());
        let ports: Vec<String> = ports.into_iter().collect();
        format!("{who} {uses} {word} {}", ports.join(", "))
    };
    let of_containers =
        (!violators.is_empty()).then(|| describe(containers(&violators), violators.len(), ports));
    // Not in upstream: ports of this machine that are mapped to a simulated pod.
    let mapped = pod.annotation(HOST_PORTS).into_iter().flat_map(host_ports::host_ports);
    let mapped: BTreeSet<String> = mapped.map(|(_, host)| host.to_string()).collect();
    let of_pod = (!mapped.is_empty())
        .then(|| describe(format!("annotation {}", quote(HOST_PORTS)), 1, mapped));
    let details: Vec<String> = of_containers.into_iter().chain(of_pod).collect();
    if details.is_empty() { None } else { Violation::new("hostPort", details.join("; ")) }
}

fn probe_hosts(pod: &Pod<'_>, _: u64) -> Option<Violation> {
    const HANDLERS: [&[&str]; 5] = [
        &["livenessProbe"],
        &["readinessProbe"],
        &["startupProbe"],
        &["lifecycle", "postStart"],
        &["lifecycle", "preStop"],
    ];
    let mut hosts = Values::new();
    let mut violators = Values::new();
    for container in pod.containers() {
        let handlers = HANDLERS.iter().filter_map(|path| field(container, path));
        let found = handlers.flat_map(|handler| {
            [text(handler, &["httpGet", "host"]), text(handler, &["tcpSocket", "host"])]
        });
        for host in found.filter(|host| !host.is_empty()) {
            hosts.insert(host);
            violators.insert(name(container));
        }
    }
    if violators.is_empty() {
        return None;
    }
    let violators: Vec<&str> = violators.into_iter().collect();
    let uses = plural("uses", "use", violators.len());
    let word = plural("probe or lifecycle host", "probe or lifecycle hosts", hosts.len());
    let detail = format!("{} {uses} {word} {}", containers(&violators), quote_all(hosts));
    Violation::new("probe or lifecycle host", detail)
}

fn privileged(pod: &Pod<'_>, _: u64) -> Option<Violation> {
    let bad =
        pod.containers().filter(|container| is_true(container, &["securityContext", "privileged"]));
    let bad: Vec<&str> = bad.map(name).collect();
    if bad.is_empty() {
        return None;
    }
    let detail = format!("{} must not set securityContext.privileged=true", containers(&bad));
    Violation::new("privileged", detail)
}

fn proc_mount_without_user_namespace(pod: &Pod<'_>, minor: u64) -> Option<Violation> {
    if minor >= 35 && pod.has_user_namespace() {
        return None;
    }
    proc_mount(pod, minor)
}

pub(crate) fn proc_mount(pod: &Pod<'_>, _: u64) -> Option<Violation> {
    let mut values = Values::new();
    let mut violators = Vec::new();
    for container in pod.containers() {
        let mount = setting(container, &["procMount"]).and_then(Value::as_str);
        if let Some(bad) = mount.filter(|mount| *mount != "Default") {
            values.insert(bad);
            violators.push(name(container));
        }
    }
    if violators.is_empty() {
        return None;
    }
    let who = containers(&violators);
    let detail = format!("{who} must not set securityContext.procMount to {}", quote_all(values));
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
    let violators = Violators::find(pod, |holder| {
        let Some(options) = setting(holder, &["seLinuxOptions"]) else { return false };
        let kind = text(options, &["type"]);
        let sets = |field: &str| !text(options, &[field]).is_empty();
        let (forbidden_type, sets_user, sets_role) = (!allowed(kind), sets("user"), sets("role"));
        if forbidden_type {
            types.insert(kind);
        }
        user |= sets_user;
        role |= sets_role;
        forbidden_type || sets_user || sets_role
    });
    let who = violators.describe()?;
    let types = (!types.is_empty())
        .then(|| format!("{} {}", plural("type", "types", types.len()), quote_all(types)));
    let user = user.then(|| "user may not be set".to_owned());
    let role = role.then(|| "role may not be set".to_owned());
    let what: Vec<String> = types.into_iter().chain(user).chain(role).collect();
    let detail = format!("{who} set forbidden securityContext.seLinuxOptions: {}", what.join("; "));
    Violation::new("seLinuxOptions", detail)
}

/// Before 1.19, annotations set the profiles.
fn seccomp(pod: &Pod<'_>, minor: u64) -> Option<Violation> {
    const POD_KEY: &str = "seccomp.security.alpha.kubernetes.io/pod";
    const CONTAINER_PREFIX: &str = "container.seccomp.security.alpha.kubernetes.io/";
    if minor >= 19 {
        return unconfined(pod);
    }
    let allowed = |value: &str| {
        matches!(value, "runtime/default" | "docker/default") || value.starts_with("localhost/")
    };
    let of_containers =
        pod.containers().map(|container| format!("{CONTAINER_PREFIX}{}", name(container)));
    let keys = std::iter::once(POD_KEY.to_owned()).chain(of_containers);
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

/// Seccomp profiles that do not confine.
pub(crate) fn unconfined(pod: &Pod<'_>) -> Option<Violation> {
    let mut values = Values::new();
    let violators = Violators::find(pod, |holder| {
        let bad = profile(holder, "seccompProfile").filter(|profile| !is_confined(profile));
        values.extend(bad);
        bad.is_some()
    });
    let who = violators.describe()?;
    let detail =
        format!("{who} must not set securityContext.seccompProfile.type to {}", quote_all(values));
    Violation::new("seccompProfile", detail)
}

fn sysctls(pod: &Pod<'_>, minor: u64) -> Option<Violation> {
    let allowed = |name: &str| SYSCTLS.iter().any(|(safe, since)| *safe == name && minor >= *since);
    let set = each(pod.spec, &["securityContext", "sysctls"]).map(name);
    let bad: Vec<&str> = set.filter(|name| !allowed(name)).collect();
    if bad.is_empty() { None } else { Violation::new("forbidden sysctls", bad.join(", ")) }
}

fn windows_host_process(pod: &Pod<'_>, _: u64) -> Option<Violation> {
    let path = ["securityContext", "windowsOptions", "hostProcess"];
    let who = Violators::find(pod, |holder| is_true(holder, &path)).describe()?;
    let detail = format!("{who} must not set securityContext.windowsOptions.hostProcess=true");
    Violation::new("hostProcess", detail)
}
