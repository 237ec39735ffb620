//! Containers: what all of them have, and what the three kinds of them may not have.

use super::super::super::quantity;
use super::super::super::rules::{
    Check, Errors, Node, Rule, amounts, formats, one_of, port_or_name, walk,
};
use super::{Whole, environment, security};
use mainstay_object::names;
use serde_json::Value;
use std::collections::{BTreeSet, HashSet};

/// When images are pulled.
pub(super) const PULL_POLICY: Rule = Rule::Choice(&["Always", "IfNotPresent", "Never"]);
const PROTOCOL: Rule = Rule::Choice(&["SCTP", "TCP", "UDP"]);
const PROBES: [&str; 3] = ["livenessProbe", "readinessProbe", "startupProbe"];
/// Fields of a container that temporary ones may not have, in the order of the original's struct.
const NOT_EPHEMERAL: [&str; 9] = [
    "ports",
    "resources",
    "resizePolicy",
    "restartPolicy",
    "restartPolicyRules",
    "livenessProbe",
    "readinessProbe",
    "startupProbe",
    "lifecycle",
];

/// All containers of a spec.
pub(super) fn containers(spec: &Node<'_, '_>, whole: &Whole<'_>, errors: &mut Errors) {
    let list = spec.get("containers");
    let mut seen: BTreeSet<&str> = BTreeSet::new();
    if list.len() == 0 {
        errors.required(&list, "");
    }
    for container in list.items() {
        common(&container, whole, errors);
        if !seen.insert(container.text_of("name")) {
            errors.duplicate(&container.get("name"), container.text_of("name"));
        }
        lifecycle(&container.get("lifecycle"), whole, errors);
        probes(&container, whole, errors);
        restart_rules(&container, errors);
    }
    host_ports(&list, list.items(), errors);
    let list = spec.get("initContainers");
    for container in list.items() {
        common(&container, whole, errors);
        let policy = container.get("restartPolicy");
        if !policy.is_set() {
            if container.get("restartPolicyRules").len() > 0 {
                errors.required(&policy, "must specify restartPolicy when restart rules are used");
            }
        } else if policy.text() != "Always" {
            restart_rules(&container, errors);
        } else if container.get("restartPolicyRules").len() > 0 {
            let words =
                "restartPolicyRules are not allowed for init containers with restart policy Always";
            errors.forbidden(&container.get("restartPolicyRules"), words);
        }
        let name = container.text_of("name");
        if !name.is_empty() && !seen.insert(name) || name.is_empty() && seen.contains(name) {
            errors.duplicate(&container.get("name"), name);
        }
        // The original counts these anew for each container, as the first of the list.
        host_ports(&list, std::iter::once(container), errors);
        if policy.text() == "Always" {
            lifecycle(&container.get("lifecycle"), whole, errors);
            probes(&container, whole, errors);
        } else {
            for field in ["lifecycle"].into_iter().chain(PROBES) {
                let words = "may not be set for init containers without restartPolicy=Always";
                walk(&container.get(field), &[("", Rule::Absent(words))], errors);
            }
        }
    }
    ephemeral(spec, whole, seen, errors);
}

fn ephemeral<'v>(
    spec: &Node<'_, 'v>,
    whole: &Whole<'_>,
    mut seen: BTreeSet<&'v str>,
    errors: &mut Errors,
) {
    const WORDS: &str = "cannot be set for an Ephemeral Container";
    let others = seen.clone();
    let list = spec.get("ephemeralContainers");
    for container in list.items() {
        common(&container, whole, errors);
        padded_image(&container, errors);
        let name = container.text_of("name");
        if !seen.insert(name) {
            errors.duplicate(&container.get("name"), name);
        }
        let target = container.text_of("targetContainerName");
        if !target.is_empty() && !others.contains(target) {
            errors.not_found(&container.get("targetContainerName"), target, "");
        }
        for field in NOT_EPHEMERAL {
            let value = container.get(field);
            let set = match field {
                "resources" | "ports" | "resizePolicy" | "restartPolicyRules" => value.len() > 0,
                _ => value.is_set(),
            };
            if set {
                errors.forbidden(&value, WORDS);
            }
        }
        let mounts = container.get("volumeMounts");
        for mount in mounts.items() {
            for field in ["subPath", "subPathExpr"] {
                if !mount.text_of(field).is_empty() {
                    errors.forbidden(&mount.get(field), WORDS);
                }
            }
        }
    }
}

fn common(container: &Node<'_, '_>, whole: &Whole<'_>, errors: &mut Errors) {
    const HEAD: &[Check] = &[
        ("name", Rule::Named(names::dns1123_label)),
        ("image", Rule::Needed("")),
        ("terminationMessagePolicy", Rule::Choice(&["File", "FallbackToLogsOnError"])),
    ];
    walk(container, HEAD, errors);
    ports(&container.get("ports"), errors);
    environment::variables(container, errors);
    environment::mounts(container, whole, errors);
    walk(container, &[("imagePullPolicy", PULL_POLICY)], errors);
    let resources = container.get("resources");
    amounts::requirements(&resources, amounts::Asker::Container, &whole.claims, errors);
    resize_policy(&container.get("resizePolicy"), whole.restart_policy, errors);
    security::container_context(&container.get("securityContext"), whole.host_users, errors);
}

fn ports(list: &Node<'_, '_>, errors: &mut Errors) {
    let mut seen = BTreeSet::new();
    for port in list.items() {
        let name = port.get("name");
        if !name.text().is_empty() {
            let problems = formats::port_name(name.text());
            if !problems.is_empty() {
                errors.each(&name, name.text(), problems);
            } else if !seen.insert(name.text()) {
                errors.duplicate(&name, name.text());
            }
        }
        match port.number_of("containerPort").unwrap_or_default() {
            0 => errors.required(&port.get("containerPort"), ""),
            _ => walk(&port, &[("containerPort", Rule::Port)], errors),
        }
        if port.number_of("hostPort").unwrap_or_default() != 0 {
            walk(&port, &[("hostPort", Rule::Port)], errors);
        }
        walk(&port, &[("protocol", PROTOCOL)], errors);
    }
}

/// Ports of the node are taken once.
fn host_ports<'p, 'v: 'p>(
    list: &Node<'_, '_>,
    containers: impl Iterator<Item = Node<'p, 'v>>,
    errors: &mut Errors,
) {
    let mut seen = BTreeSet::new();
    for (at, container) in containers.enumerate() {
        for (place, port) in container.get("ports").list().iter().enumerate() {
            let number = port.get("hostPort").and_then(Value::as_i64).unwrap_or_default();
            let text = |key: &str| port.get(key).and_then(Value::as_str).unwrap_or_default();
            let key = format!("{}/{}/{number}", text("protocol"), text("hostIP"));
            if number != 0 && !seen.insert(key.clone()) {
                let container = list.index(at);
                let ports = container.get("ports");
                errors.duplicate(&ports.index(place).get("hostPort"), key);
            }
        }
    }
}

fn resize_policy(list: &Node<'_, '_>, restart: &str, errors: &mut Errors) {
    let mut seen = HashSet::new();
    for policy in list.items() {
        let resource = policy.text_of("resourceName");
        if seen.contains(&resource) {
            errors.duplicate(&policy, resource);
        }
        seen.insert(resource);
        // The original names the list, not the element.
        match resource {
            "cpu" | "memory" => {}
            "" => errors.required(list, ""),
            other => errors.unsupported(list, other, &["cpu", "memory"]),
        }
        let policy = policy.text_of("restartPolicy");
        match policy {
            "NotRequired" | "RestartContainer" => {}
            "" => errors.required(list, ""),
            other => errors.unsupported(list, other, &["NotRequired", "RestartContainer"]),
        }
        if restart == "Never" && policy != "NotRequired" {
            let words = "must be 'NotRequired' when `restartPolicy` is 'Never'";
            errors.invalid(list, policy, words);
        }
    }
}

fn restart_rules(container: &Node<'_, '_>, errors: &mut Errors) {
    let (policy, rules) = (container.get("restartPolicy"), container.get("restartPolicyRules"));
    if policy.is_set() {
        one_of(&policy, &["Always", "Never", "OnFailure"], errors);
    } else if rules.len() > 0 {
        errors.required(&policy, "must specify restartPolicy when restart rules are used");
    }
    if rules.len() > 20 {
        errors.too_long(&rules, 20);
    }
    for rule in rules.items() {
        one_of(&rule.get("action"), &["Restart"], errors);
        let codes = rule.get("exitCodes");
        if codes.is_set() {
            one_of(&codes.get("operator"), &["In", "NotIn"], errors);
            if codes.get("values").len() > 255 {
                errors.too_long(&codes.get("values"), 255);
            }
        } else {
            errors.required(&codes, "must be specified");
        }
    }
}

fn probes(container: &Node<'_, '_>, whole: &Whole<'_>, errors: &mut Errors) {
    const NUMBERS: &[Check] = &[
        ("initialDelaySeconds", Rule::NotNegative),
        ("timeoutSeconds", Rule::NotNegative),
        ("periodSeconds", Rule::NotNegative),
        ("successThreshold", Rule::NotNegative),
        ("failureThreshold", Rule::NotNegative),
        ("terminationGracePeriodSeconds", Rule::Positive),
    ];
    for name in PROBES {
        let probe = container.get(name);
        if !probe.is_set() {
            continue;
        }
        handler(&probe, &["exec", "httpGet", "tcpSocket", "grpc"], whole, errors);
        walk(&probe, NUMBERS, errors);
        if name == "readinessProbe" {
            let grace = probe.get("terminationGracePeriodSeconds");
            if grace.is_set() {
                errors.wrong(&grace, "must not be set for readinessProbes");
            }
        } else if probe.number_of("successThreshold") != Some(1) {
            let count = probe.number_of("successThreshold").unwrap_or_default();
            errors.invalid(&probe.get("successThreshold"), count, "must be 1");
        }
    }
}

fn lifecycle(node: &Node<'_, '_>, whole: &Whole<'_>, errors: &mut Errors) {
    for hook in ["postStart", "preStop"] {
        let hook = node.get(hook);
        if hook.is_set() {
            handler(&hook, &["exec", "httpGet", "tcpSocket", "sleep"], whole, errors);
        }
    }
}

fn handler(node: &Node<'_, '_>, kinds: &[&str], whole: &Whole<'_>, errors: &mut Errors) {
    const HTTP: &[Check] = &[
        ("path", Rule::Needed("")),
        ("port", Rule::PortOrName),
        ("scheme", Rule::With(scheme)),
        ("httpHeaders", Rule::With(headers)),
    ];
    let mut found = 0;
    for kind in kinds {
        let at = node.get(kind);
        if !at.is_set() {
            continue;
        }
        found += 1;
        if found > 1 {
            errors.forbidden(&at, "may not specify more than 1 handler type");
            continue;
        }
        match *kind {
            "exec" => walk(&at, &[("command", Rule::Needed(""))], errors),
            "httpGet" => walk(&at, HTTP, errors),
            "sleep" => {
                let seconds = at.number_of("seconds").unwrap_or_default();
                if let Some(grace) = whole.grace.filter(|most| !(0..=*most).contains(&seconds)) {
                    let words = format!(
                        "must be non-negative and less than terminationGracePeriodSeconds ({grace})"
                    );
                    errors.invalid(&at, seconds, words);
                }
            }
            _ => port_or_name(&at.get("port"), errors),
        }
    }
    if found == 0 {
        errors.required(node, "must specify a handler type");
    }
}

fn scheme(node: &Node<'_, '_>, errors: &mut Errors) {
    one_of(node, &["HTTP", "HTTPS"], errors);
}

fn headers(node: &Node<'_, '_>, errors: &mut Errors) {
    for header in node.list() {
        let name = header.get("name").and_then(Value::as_str).unwrap_or_default();
        errors.each(node, name, formats::header(name));
    }
}

/// An image's name has no space around it.
pub(super) fn padded_image(container: &Node<'_, '_>, errors: &mut Errors) {
    let image = container.get("image");
    if image.text().trim().len() != image.text().len() {
        errors.wrong(&image, "must not have leading or trailing whitespace");
    }
}

/// What a pod asks for as a whole.
pub(super) fn pod_resources(spec: &Node<'_, '_>, whole: &Whole<'_>, errors: &mut Errors) {
    let resources = spec.get("resources");
    if !resources.is_set() {
        return;
    }
    if whole.os == Some("windows") {
        errors.forbidden(&resources, "may not be set for a windows pod");
        return;
    }
    if resources.has("claims") {
        let words = "claims may not be set for Resources at pod-level";
        errors.forbidden(&resources.get("claims"), words);
    }
    amounts::requirements(&resources, amounts::Asker::Pod, &whole.claims, errors);
    let requests = resources.get("requests");
    for (name, at) in requests.entries() {
        let sum = together(spec, "requests", name);
        if sum > amounts::nano(at.value()) {
            let words = format!(
                "must be greater than or equal to aggregate container requests of {}",
                quantity::text(sum, &samples(spec, "requests", name))
            );
            errors.invalid(&at, &*amounts::text(at.value()), words);
        }
    }
    let limits = resources.get("limits");
    for (name, at) in limits.entries().filter(|(name, _)| amounts::is_huge(name)) {
        let sum = together(spec, "limits", name);
        if sum > amounts::nano(at.value()) {
            let words = format!(
                "must be greater than or equal to aggregate container limits of {}",
                quantity::text(sum, &samples(spec, "limits", name))
            );
            // So the original writes this path.
            errors.invalid(&requests.get("limits").key(name), &*amounts::text(at.value()), words);
        }
    }
    let containers = resources.get("containers");
    for (at, container) in spec.get("containers").list().iter().enumerate() {
        let own = container.get("resources").and_then(|resources| resources.get("limits"));
        for (name, limit) in own.and_then(Value::as_object).into_iter().flatten() {
            let Some(most) = limits.value().get(name) else { continue };
            if amounts::nano(limit) > amounts::nano(most) {
                let words =
                    format!("must be less than or equal to pod limits of {}", amounts::text(most));
                let container = containers.index(at);
                let container = container.key(name);
                errors.invalid(&container.get("limits"), &*amounts::text(limit), words);
            }
        }
    }
}

fn asked(container: &Value, side: &str, name: &str) -> i128 {
    let amount = container.get("resources").and_then(|resources| resources.get(side)?.get(name));
    amount.map_or(0, amounts::nano)
}

/// An amount as it is written first, for the form of sums.
fn samples(spec: &Node<'_, '_>, side: &str, name: &str) -> String {
    ["containers", "initContainers"]
        .iter()
        .flat_map(|list| spec.get(list).list())
        .find_map(|container| {
            Some(amounts::text(container.get("resources")?.get(side)?.get(name)?).into_owned())
        })
        .unwrap_or_default()
}

/// What all containers of a pod ask for at its worst moment: those that run together, or one that
/// prepares besides those that stay.
pub(in super::super) fn together(spec: &Node<'_, '_>, side: &str, name: &str) -> i128 {
    let mut running: i128 =
        spec.get("containers").list().iter().map(|container| asked(container, side, name)).sum();
    let (mut staying, mut worst) = (0, 0);
    for container in spec.get("initContainers").list() {
        let amount = asked(container, side, name);
        if container.get("restartPolicy") == Some(&"Always".into()) {
            running += amount;
            staying += amount;
            worst = worst.max(staying);
        } else {
            worst = worst.max(amount + staying);
        }
    }
    running.max(worst)
}
