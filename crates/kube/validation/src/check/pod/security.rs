//! Validation of the security contexts of pods and containers.

use super::super::super::rules::{
    Errors, FieldRule, Node, Rule, formats, go_structs, one_of, walk,
};
use super::ALL_CONTAINERS;
use serde_json::Value;
use std::collections::HashSet;

const USER: Rule = Rule::Range(0, 2_147_483_647, formats::ID_RANGE);
const PROFILE_TYPES: [&str; 3] = ["Localhost", "RuntimeDefault", "Unconfined"];
/// Pod fields that Windows does not support; true for fields of the security context.
const FORBIDDEN_FOR_WINDOWS: [(&str, bool); 15] = [
    ("appArmorProfile", true),
    ("seLinuxOptions", true),
    ("hostUsers", false),
    ("hostPID", false),
    ("hostIPC", false),
    ("seccompProfile", true),
    ("fsGroup", true),
    ("fsGroupChangePolicy", true),
    ("sysctls", true),
    ("shareProcessNamespace", false),
    ("runAsUser", true),
    ("runAsGroup", true),
    ("supplementalGroups", true),
    ("supplementalGroupsPolicy", true),
    ("seLinuxChangePolicy", true),
];
const FORBIDDEN_FOR_WINDOWS_CONTAINERS: [&str; 10] = [
    "appArmorProfile",
    "seLinuxOptions",
    "seccompProfile",
    "capabilities",
    "readOnlyRootFilesystem",
    "privileged",
    "allowPrivilegeEscalation",
    "procMount",
    "runAsUser",
    "runAsGroup",
];

/// Validates the security context of a pod.
pub(super) fn pod_security_context(node: &Node<'_, '_>, spec: &Node<'_, '_>, errors: &mut Errors) {
    if !node.is_set() {
        return;
    }
    walk(node, &[("fsGroup", USER), ("runAsUser", USER), ("runAsGroup", USER)], errors);
    let groups = node.get("supplementalGroups");
    groups.items().for_each(|group| walk(&group, &[("", USER)], errors));
    if spec.is_true("shareProcessNamespace") && spec.is_true("hostPID") {
        let detail = "ShareProcessNamespace and HostPID cannot both be enabled";
        errors.invalid(&node.get("shareProcessNamespace"), true, detail);
    }
    sysctls(&node.get("sysctls"), spec, errors);
    walk(
        node,
        &[
            ("fsGroupChangePolicy", Rule::OneOf(&["Always", "OnRootMismatch"])),
            ("seccompProfile", Rule::Custom(seccomp)),
            ("windowsOptions", Rule::Custom(windows_options)),
            ("appArmorProfile", Rule::Custom(app_armor)),
            ("supplementalGroupsPolicy", Rule::OneOf(&["Merge", "Strict"])),
            ("seLinuxChangePolicy", Rule::OneOf(&["Recursive"])),
        ],
        errors,
    );
}

fn sysctls(list: &Node<'_, '_>, spec: &Node<'_, '_>, errors: &mut Errors) {
    let mut seen = HashSet::new();
    for sysctl in list.items() {
        let name = sysctl.get("name");
        if name.text().is_empty() {
            errors.required(&name, "");
        } else if !formats::is_sysctl(name.text()) {
            let detail = "must have at most 253 characters and match regex ^([a-z0-9]([-_a-z0-9]*[a-z0-9])?[\\./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?$";
            errors.invalid_value(&name, detail);
        } else if seen.contains(&name.text()) {
            errors.duplicate(&name, name.text());
        }
        if spec.is_true("hostNetwork") && is_in_namespace(name.text(), &["net."]) {
            errors.invalid_value(&name, "may not be specified when 'hostNetwork' is true");
        } else if spec.is_true("hostIPC")
            && is_in_namespace(
                name.text(),
                &["kernel.shm", "kernel.msg", "kernel.sem", "fs.mqueue."],
            )
        {
            errors.invalid_value(&name, "may not be specified when 'hostIPC' is true");
        }
        seen.insert(name.text());
    }
}

fn is_in_namespace(sysctl: &str, prefixes: &[&str]) -> bool {
    let name = sysctl.replace('/', ".");
    prefixes.iter().any(|prefix| name.starts_with(prefix))
}

/// Validates the security context of a container.
pub(super) fn container_security_context(
    node: &Node<'_, '_>,
    host_users: bool,
    errors: &mut Errors,
) {
    if !node.is_set() {
        return;
    }
    walk(node, &[("runAsUser", USER), ("runAsGroup", USER)], errors);
    let mount = node.get("procMount");
    if mount.is_set() {
        one_of(&mount, &["Default", "Unmasked"], errors);
        if host_users && mount.text() == "Unmasked" {
            errors.invalid_value(&mount, "`hostUsers` must be false to use `Unmasked`");
        }
    }
    seccomp(&node.get("seccompProfile"), errors);
    if node.value().get("allowPrivilegeEscalation") == Some(&Value::Bool(false)) {
        let printed = || Some(go_structs::print("SecurityContext", node.value()));
        if node.is_true("privileged") {
            let detail = "cannot set `allowPrivilegeEscalation` to false and `privileged` to true";
            errors.printed(node, printed(), detail);
        }
        let added = node.get("capabilities");
        for _ in added.get("add").list().iter().filter(|name| *name == "CAP_SYS_ADMIN") {
            let detail = "cannot set `allowPrivilegeEscalation` to false and `capabilities.Add` CAP_SYS_ADMIN";
            errors.printed(node, printed(), detail);
        }
    }
    windows_options(&node.get("windowsOptions"), errors);
    app_armor(&node.get("appArmorProfile"), errors);
}

fn profile_type(node: &Node<'_, '_>, detail: &str, errors: &mut Errors) {
    let at = node.get("type");
    match at.text() {
        "" => errors.required(&at, detail),
        _ => one_of(&at, &PROFILE_TYPES, errors),
    }
}

fn seccomp(node: &Node<'_, '_>, errors: &mut Errors) {
    if !node.is_set() {
        return;
    }
    profile_type(node, "type is required when seccompProfile is set", errors);
    let file = node.get("localhostProfile");
    if node.text_of("type") != "Localhost" {
        if file.is_set() {
            let printed = go_structs::print("SeccompProfile", node.value());
            errors.printed(&file, Some(printed), "can only be set when seccomp type is Localhost");
        }
    } else if file.is_set() {
        errors.add_problems(&file, file.text(), formats::local_descending_path(file.text()));
    } else {
        errors.required(&file, "must be set when seccomp type is Localhost");
    }
}

/// Validates a seccomp profile in the legacy annotation.
pub(super) fn seccomp_annotation(profile: &str, at: &Node<'_, '_>, errors: &mut Errors) {
    match profile.strip_prefix("localhost/") {
        Some(file) => errors.add_problems(at, file, formats::local_descending_path(file)),
        None if matches!(profile, "runtime/default" | "docker/default" | "unconfined") => {}
        None => errors.invalid(at, profile, "must be a valid seccomp profile"),
    }
}

/// Validates that annotation and field name the same profile.
pub(super) fn seccomp_matches(annotation: &str, field: &Node<'_, '_>, errors: &mut Errors) {
    const DETAIL: &str = "seccomp type in annotation and field must match";
    let matches = match field.text_of("type") {
        "Unconfined" => annotation == "unconfined",
        "RuntimeDefault" => matches!(annotation, "runtime/default" | "docker/default"),
        "Localhost" => match annotation.strip_prefix("localhost/") {
            Some(file) => {
                if field.get("localhostProfile").value().as_str() != Some(file) {
                    let detail = "seccomp profile in annotation and field must match";
                    errors.forbidden(&field.get("localhostProfile"), detail);
                }
                true
            }
            None => false,
        },
        _ => true,
    };
    if !matches {
        errors.forbidden(&field.get("type"), DETAIL);
    }
}

fn app_armor(node: &Node<'_, '_>, errors: &mut Errors) {
    const REQUIRED: &str = "must be set when AppArmor type is Localhost";
    if !node.is_set() {
        return;
    }
    let file = node.get("localhostProfile");
    match node.text_of("type") {
        "Localhost" if !file.is_set() => errors.required(&file, REQUIRED),
        "Localhost" => {
            let trimmed = file.text().trim();
            if trimmed != file.text() {
                errors.invalid_value(&file, "must not be padded with whitespace");
            } else if trimmed.is_empty() {
                errors.required(&file, REQUIRED);
            }
            if file.text().len() > 4095 {
                errors.too_long(&file, 4095);
            }
        }
        "RuntimeDefault" | "Unconfined" => {
            if file.is_set() {
                errors.invalid_value(&file, "can only be set when AppArmor type is Localhost");
            }
        }
        _ => profile_type(node, "type is required when appArmorProfile is set", errors),
    }
}

/// Validates that annotation and field name the same profile.
pub(super) fn app_armor_matches(
    annotation: &str,
    profile: &Value,
    at: &Node<'_, '_>,
    errors: &mut Errors,
) {
    let text = |key: &str| profile.get(key).and_then(Value::as_str);
    let matches = match text("type") {
        Some("Unconfined") => annotation == "unconfined",
        Some("RuntimeDefault") => annotation == "runtime/default",
        Some("Localhost") => match annotation.strip_prefix("localhost/") {
            Some(file) => {
                if text("localhostProfile") != Some(file) {
                    let detail = "apparmor profile in annotation and field must match";
                    errors.forbidden(&at.get("localhostProfile"), detail);
                }
                true
            }
            None => false,
        },
        _ => true,
    };
    if !matches {
        errors.forbidden(&at.get("type"), "apparmor type in annotation and field must match");
    }
}

fn windows_options(node: &Node<'_, '_>, errors: &mut Errors) {
    if !node.is_set() {
        return;
    }
    let name = node.get("gmsaCredentialSpecName");
    if name.is_set() {
        errors.add_problems(
            &name,
            name.text(),
            mainstay_object::names::dns1123_subdomain(name.text()),
        );
    }
    let spec = node.get("gmsaCredentialSpec");
    if spec.is_set() && spec.text().is_empty() {
        errors.invalid_value(&spec, "gmsaCredentialSpec cannot be an empty string");
    } else if spec.text().len() > 64 * 1024 {
        errors.invalid_value(&spec, "gmsaCredentialSpec size must be under 64 KiB");
    }
    let user = node.get("runAsUserName");
    if user.is_set() {
        for detail in windows_user(user.text()) {
            errors.invalid_value(&user, detail);
        }
    }
}

fn windows_user(name: &str) -> Vec<&'static str> {
    if name.is_empty() {
        return vec!["runAsUserName cannot be an empty string"];
    }
    if name.chars().any(|letter| letter.is_ascii_control()) {
        return vec!["runAsUserName cannot contain control characters"];
    }
    if name.matches('\\').count() > 1 {
        return vec!["runAsUserName cannot contain more than one backslash"];
    }
    let mut found = Vec::new();
    let (domain, user) = match name.split_once('\\') {
        Some((domain, user)) => (Some(domain), user),
        None => (None, name),
    };
    if domain.is_some_and(|domain| domain.len() >= 256) {
        found.push("runAsUserName's Domain length must be under 256 characters");
    }
    if domain.is_some_and(|domain| !is_net_bios(domain) && !is_domain(domain)) {
        found.push("runAsUserName's Domain doesn't match the NetBios nor the DNS format");
    }
    if user.is_empty() {
        found.push("runAsUserName's User cannot be empty");
    } else if user.len() > 104 {
        found.push("runAsUserName's User length must not be longer than 104 characters");
    }
    if !user.is_empty() && user.chars().all(|letter| matches!(letter, '.' | ' ')) {
        found.push("runAsUserName's User cannot contain only periods or spaces");
    }
    if user
        .contains(['"', '/', '\\', ':', ';', '|', '=', ',', '+', '*', '?', '<', '>', '@', '[', ']'])
    {
        found.push(
            "runAsUserName's User cannot contain the following characters: \"/\\:;|=,+*?<>@[]",
        );
    }
    found
}

fn is_net_bios(name: &str) -> bool {
    let forbidden = ['\\', '/', ':', '*', '?', '"', '<', '>', '|'];
    !name.is_empty()
        && name.chars().count() <= 15
        && !name.starts_with('.')
        && !name.contains(forbidden)
}

fn is_domain(name: &str) -> bool {
    name.split('.').all(|label| {
        let bytes = label.as_bytes();
        bytes.len() <= 63
            && bytes.first().is_some_and(u8::is_ascii_alphanumeric)
            && bytes.last().is_some_and(u8::is_ascii_alphanumeric)
            && bytes.iter().all(|b| b.is_ascii_alphanumeric() || *b == b'-')
    })
}

/// Validates that all or none of the containers are host processes of Windows.
pub(super) fn host_process(spec: &Node<'_, '_>, errors: &mut Errors) {
    let flag = |value: &Value| {
        value.get("securityContext")?.get("windowsOptions")?.get("hostProcess")?.as_bool()
    };
    let pod = flag(spec.value());
    let (mut total, mut host_process_count) = (0, 0);
    for list in ALL_CONTAINERS {
        let containers = spec.get(list);
        for container in containers.items() {
            total += 1;
            let own = flag(container.value());
            if let (Some(pod), Some(own)) = (pod, own)
                && pod != own
            {
                let detail = format!(
                    "pod hostProcess value must be identical if both are specified, was {pod}"
                );
                let context = container.get("securityContext");
                let options = context.get("windowsOptions");
                errors.invalid(&options.get("hostProcess"), own, detail);
            }
            host_process_count += i32::from(own.or(pod) == Some(true));
        }
    }
    if host_process_count == 0 {
        return;
    }
    if host_process_count != total {
        let detail = "If pod contains any hostProcess containers then all containers must be HostProcess containers";
        errors.invalid(spec, "", detail);
    }
    if !spec.is_true("hostNetwork") {
        let detail = "hostNetwork must be true if pod contains any hostProcess containers";
        errors.invalid(&spec.get("hostNetwork"), false, detail);
    }
}

/// Validates the operating system of a pod, and the fields that it supports.
pub(super) fn operating_system(spec: &Node<'_, '_>, errors: &mut Errors) {
    let os = spec.get("os");
    if !os.is_set() {
        return;
    }
    let context = spec.get("securityContext");
    match os.text_of("name") {
        "" => errors.required(&os.get("name"), ""),
        "linux" => {
            const DETAIL: &str = "windows options cannot be set for a linux pod";
            const CHECKS: &[FieldRule] = &[("windowsOptions", Rule::Forbidden(DETAIL))];
            walk(&context, CHECKS, errors);
            for_each_security_context(spec, errors, |context, errors| {
                walk(context, CHECKS, errors);
            });
        }
        "windows" => {
            const DETAIL: &str = "cannot be set for a windows pod";
            for (field, in_context) in FORBIDDEN_FOR_WINDOWS {
                let at = if in_context { context.get(field) } else { spec.get(field) };
                let set = match field {
                    "hostPID" | "hostIPC" => at.value() == &Value::Bool(true),
                    "sysctls" => at.len() > 0,
                    _ => at.is_set(),
                };
                if set && context.is_set() {
                    errors.forbidden(&at, DETAIL);
                }
            }
            for_each_security_context(spec, errors, |context, errors| {
                for field in FORBIDDEN_FOR_WINDOWS_CONTAINERS {
                    walk(&context.get(field), &[("", Rule::Forbidden(DETAIL))], errors);
                }
            });
        }
        other => errors.unsupported(&os, other, &["linux", "windows"]),
    }
}

fn for_each_security_context(
    spec: &Node<'_, '_>,
    errors: &mut Errors,
    check: impl Fn(&Node<'_, '_>, &mut Errors),
) {
    for list in ALL_CONTAINERS {
        let containers = spec.get(list);
        for container in containers.items() {
            check(&container.get("securityContext"), errors);
        }
    }
}
