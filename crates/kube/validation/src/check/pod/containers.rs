//! Validation of containers, init containers and ephemeral containers.

use super::super::super::quantity;
use super::super::super::rules::{
    Errors, FieldRule, Node, Rule, formats, one_of, port_or_name, quantities, walk,
};
use super::{PodContext, environment, security};
use mainstay_object::names;
use serde_json::Value;
use std::collections::{BTreeSet, HashSet};

/// The image pull policies.
pub(super) const PULL_POLICY: Rule = Rule::RequiredOneOf(&["Always", "IfNotPresent", "Never"]);
const PROTOCOL: Rule = Rule::RequiredOneOf(&["SCTP", "TCP", "UDP"]);
const PROBES: [&str; 3] = ["livenessProbe", "readinessProbe", "startupProbe"];
/// Fields that ephemeral containers may not have, in the order of the Go struct.
const FORBIDDEN_FOR_EPHEMERAL: [&str; 9] = [
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

/// Validates all containers of a spec.
pub(super) fn containers(spec: &Node<'_, '_>, pod_context: &PodContext<'_>, errors: &mut Errors) {
    let list = spec.get("containers");
    let mut seen: BTreeSet<&str> = BTreeSet::new();
    if list.len() == 0 {
        errors.required(&list, "");
    }
    for container in list.items() {
        common_fields(&container, pod_context, errors);
        if !seen.insert(container.text_of("name")) {
            errors.duplicate(&container.get("name"), container.text_of("name"));
        }
        lifecycle(&container.get("lifecycle"), pod_context, errors);
        probes(&container, pod_context, errors);
        restart_rules(&container, errors);
    }
    host_ports(&list, list.items(), errors);
    let list = spec.get("initContainers");
    for container in list.items() {
        common_fields(&container, pod_context, errors);
        let policy = container.get("restartPolicy");
        if !policy.is_set() {
            if container.get("restartPolicyRules").len() > 0 {
                errors.required(&policy, "must specify restartPolicy when restart rules are used");
            }
        } else if policy.text() != "Always" {
            restart_rules(&container, errors);
        } else if container.get("restartPolicyRules").len() > 0 {
            let detail =
                "restartPolicyRules are not allowed for init containers with restart policy Always";
            errors.forbidden(&container.get("restartPolicyRules"), detail);
        }
        let name = container.text_of("name");
        if !name.is_empty() && !seen.insert(name) || name.is_empty() && seen.contains(name) {
            errors.duplicate(&container.get("name"), name);
        }
        // Kubernetes checks each init container alone, with index 0.
        host_ports(&list, std::iter::once(container), errors);
        if policy.text() == "Always" {
            lifecycle(&container.get("lifecycle"), pod_context, errors);
            probes(&container, pod_context, errors);
        } else {
            for field in ["lifecycle"].into_iter().chain(PROBES) {
                let detail = "may not be set for init containers without restartPolicy=Always";
                walk(&container.get(field), &[("", Rule::Forbidden(detail))], errors);
            }
        }
    }
    ephemeral_containers(spec, pod_context, seen, errors);
}

fn ephemeral_containers<'v>(
    spec: &Node<'_, 'v>,
    pod_context: &PodContext<'_>,
    mut seen: BTreeSet<&'v str>,
    errors: &mut Errors,
) {
    const DETAIL: &str = "cannot be set for an Ephemeral Container";
    let targets = seen.clone();
    let list = spec.get("ephemeralContainers");
    for container in list.items() {
        common_fields(&container, pod_context, errors);
        image_whitespace(&container, errors);
        let name = container.text_of("name");
        if !seen.insert(name) {
            errors.duplicate(&container.get("name"), name);
        }
        let target = container.text_of("targetContainerName");
        if !target.is_empty() && !targets.contains(target) {
            errors.not_found(&container.get("targetContainerName"), target, "");
        }
        for field in FORBIDDEN_FOR_EPHEMERAL {
            let value = container.get(field);
            let is_set = match field {
                "resources" | "ports" | "resizePolicy" | "restartPolicyRules" => value.len() > 0,
                _ => value.is_set(),
            };
            if is_set {
                errors.forbidden(&value, DETAIL);
            }
        }
        let mounts = container.get("volumeMounts");
        for mount in mounts.items() {
            for field in ["subPath", "subPathExpr"] {
                if !mount.text_of(field).is_empty() {
                    errors.forbidden(&mount.get(field), DETAIL);
                }
            }
        }
    }
}

fn common_fields(container: &Node<'_, '_>, pod_context: &PodContext<'_>, errors: &mut Errors) {
    const HEAD: &[FieldRule] = &[
        ("name", Rule::RequiredFormat(names::dns1123_label)),
        ("image", Rule::Required("")),
        ("terminationMessagePolicy", Rule::RequiredOneOf(&["File", "FallbackToLogsOnError"])),
    ];
    walk(container, HEAD, errors);
    ports(&container.get("ports"), errors);
    environment::variables(container, errors);
    environment::mounts(container, pod_context, errors);
    walk(container, &[("imagePullPolicy", PULL_POLICY)], errors);
    let resources = container.get("resources");
    quantities::requirements(
        &resources,
        quantities::ResourceOwner::Container,
        &pod_context.claims,
        errors,
    );
    resize_policy(&container.get("resizePolicy"), pod_context.restart_policy, errors);
    security::container_security_context(
        &container.get("securityContext"),
        pod_context.host_users,
        errors,
    );
}

fn ports(list: &Node<'_, '_>, errors: &mut Errors) {
    let mut seen = BTreeSet::new();
    for port in list.items() {
        let name = port.get("name");
        if !name.text().is_empty() {
            let problems = formats::port_name(name.text());
            if !problems.is_empty() {
                errors.add_problems(&name, name.text(), problems);
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

/// Validates that host ports are unique.
fn host_ports<'p, 'v: 'p>(
    list: &Node<'_, '_>,
    containers: impl Iterator<Item = Node<'p, 'v>>,
    errors: &mut Errors,
) {
    let mut seen = BTreeSet::new();
    for (at, container) in containers.enumerate() {
        for (port_index, port) in container.get("ports").list().iter().enumerate() {
            let number = port.get("hostPort").and_then(Value::as_i64).unwrap_or_default();
            let text = |key: &str| port.get(key).and_then(Value::as_str).unwrap_or_default();
            let key = format!("{}/{}/{number}", text("protocol"), text("hostIP"));
            if number != 0 && !seen.insert(key.clone()) {
                let container = list.index(at);
                let ports = container.get("ports");
                errors.duplicate(&ports.index(port_index).get("hostPort"), key);
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
        // Kubernetes reports the list, not the element.
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
            let detail = "must be 'NotRequired' when `restartPolicy` is 'Never'";
            errors.invalid(list, policy, detail);
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

fn probes(container: &Node<'_, '_>, pod_context: &PodContext<'_>, errors: &mut Errors) {
    const NUMBERS: &[FieldRule] = &[
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
        handler(&probe, &["exec", "httpGet", "tcpSocket", "grpc"], pod_context, errors);
        walk(&probe, NUMBERS, errors);
        if name == "readinessProbe" {
            let grace_period = probe.get("terminationGracePeriodSeconds");
            if grace_period.is_set() {
                errors.invalid_value(&grace_period, "must not be set for readinessProbes");
            }
        } else if probe.number_of("successThreshold") != Some(1) {
            let count = probe.number_of("successThreshold").unwrap_or_default();
            errors.invalid(&probe.get("successThreshold"), count, "must be 1");
        }
    }
}

fn lifecycle(node: &Node<'_, '_>, pod_context: &PodContext<'_>, errors: &mut Errors) {
    for hook in ["postStart", "preStop"] {
        let hook = node.get(hook);
        if hook.is_set() {
            handler(&hook, &["exec", "httpGet", "tcpSocket", "sleep"], pod_context, errors);
        }
    }
}

fn handler(node: &Node<'_, '_>, kinds: &[&str], pod_context: &PodContext<'_>, errors: &mut Errors) {
    const HTTP: &[FieldRule] = &[
        ("path", Rule::Required("")),
        ("port", Rule::PortOrName),
        ("scheme", Rule::Custom(scheme)),
        ("httpHeaders", Rule::Custom(headers)),
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
            "exec" => walk(&at, &[("command", Rule::Required(""))], errors),
            "httpGet" => walk(&at, HTTP, errors),
            "sleep" => {
                let seconds = at.number_of("seconds").unwrap_or_default();
                if let Some(grace_period) =
                    pod_context.grace_period.filter(|max| !(0..=*max).contains(&seconds))
                {
                    let detail = format!(
                        "must be non-negative and less than terminationGracePeriodSeconds ({grace_period})"
                    );
                    errors.invalid(&at, seconds, detail);
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
        errors.add_problems(node, name, formats::header(name));
    }
}

/// Validates that an image has no leading or trailing whitespace.
pub(super) fn image_whitespace(container: &Node<'_, '_>, errors: &mut Errors) {
    let image = container.get("image");
    if image.text().trim().len() != image.text().len() {
        errors.invalid_value(&image, "must not have leading or trailing whitespace");
    }
}

/// Validates resources at pod level.
pub(super) fn pod_resources(
    spec: &Node<'_, '_>,
    pod_context: &PodContext<'_>,
    errors: &mut Errors,
) {
    let resources = spec.get("resources");
    if !resources.is_set() {
        return;
    }
    if pod_context.os == Some("windows") {
        errors.forbidden(&resources, "may not be set for a windows pod");
        return;
    }
    if resources.has("claims") {
        let detail = "claims may not be set for Resources at pod-level";
        errors.forbidden(&resources.get("claims"), detail);
    }
    quantities::requirements(
        &resources,
        quantities::ResourceOwner::Pod,
        &pod_context.claims,
        errors,
    );
    let requests = resources.get("requests");
    for (name, at) in requests.entries() {
        let sum = aggregate_resources(spec, "requests", name);
        if sum > quantities::nano(at.value()) {
            let detail = format!(
                "must be greater than or equal to aggregate container requests of {}",
                quantity::format_nano(sum, &first_amount(spec, "requests", name))
            );
            errors.invalid(&at, &*quantities::text(at.value()), detail);
        }
    }
    let limits = resources.get("limits");
    for (name, at) in limits.entries().filter(|(name, _)| quantities::is_huge_pages(name)) {
        let sum = aggregate_resources(spec, "limits", name);
        if sum > quantities::nano(at.value()) {
            let detail = format!(
                "must be greater than or equal to aggregate container limits of {}",
                quantity::format_nano(sum, &first_amount(spec, "limits", name))
            );
            // Kubernetes reports this path.
            errors.invalid(
                &requests.get("limits").key(name),
                &*quantities::text(at.value()),
                detail,
            );
        }
    }
    let containers = resources.get("containers");
    for (at, container) in spec.get("containers").list().iter().enumerate() {
        let own = container.get("resources").and_then(|resources| resources.get("limits"));
        for (name, limit) in own.and_then(Value::as_object).into_iter().flatten() {
            let Some(max) = limits.value().get(name) else { continue };
            if quantities::nano(limit) > quantities::nano(max) {
                let detail = format!(
                    "must be less than or equal to pod limits of {}",
                    quantities::text(max)
                );
                let container = containers.index(at);
                let container = container.key(name);
                errors.invalid(&container.get("limits"), &*quantities::text(limit), detail);
            }
        }
    }
}

fn resource_amount(container: &Value, side: &str, name: &str) -> i128 {
    let amount = container.get("resources").and_then(|resources| resources.get(side)?.get(name));
    amount.map_or(0, quantities::nano)
}

/// The first amount of a resource, whose suffix family formats sums.
fn first_amount(spec: &Node<'_, '_>, side: &str, name: &str) -> String {
    ["containers", "initContainers"]
        .iter()
        .flat_map(|list| spec.get(list).list())
        .find_map(|container| {
            Some(quantities::text(container.get("resources")?.get(side)?.get(name)?).into_owned())
        })
        .unwrap_or_default()
}

/// The peak of a resource: the containers and sidecars that run together, or an init container beside
/// the sidecars that started before it.
pub(in super::super) fn aggregate_resources(spec: &Node<'_, '_>, side: &str, name: &str) -> i128 {
    let mut running: i128 = spec
        .get("containers")
        .list()
        .iter()
        .map(|container| resource_amount(container, side, name))
        .sum();
    let (mut sidecars, mut init_peak) = (0, 0);
    for container in spec.get("initContainers").list() {
        let amount = resource_amount(container, side, name);
        if container.get("restartPolicy") == Some(&"Always".into()) {
            running += amount;
            sidecars += amount;
            init_peak = init_peak.max(sidecars);
        } else {
            init_peak = init_peak.max(amount + sidecars);
        }
    }
    running.max(init_peak)
}
