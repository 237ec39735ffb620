//! Validation of scheduling, DNS, host namespaces and resource claims of pods.

use super::super::super::rules::{
    Errors, FieldRule, Node, Rule, formats, go_structs, one_of,
    selectors::{label_selector, node_selector, node_term},
    walk,
};
use super::{ALL_CONTAINERS, PodContext, address, affinity_selectors};
use mainstay_object::names;
use serde_json::Value;
use std::collections::{BTreeSet, HashMap, HashSet};

/// The effects of taints.
pub(in super::super::super) const TAINT_EFFECTS: [&str; 3] =
    ["NoSchedule", "PreferNoSchedule", "NoExecute"];
const WEIGHT: Rule = Rule::RangeOrZero(1, 100, "must be in the range 1-100");

/// Validates resource claims: a name and exactly one source each.
pub(super) fn resource_claims(list: &Node<'_, '_>, is_mirror: bool, errors: &mut Errors) {
    const NAMES: &[FieldRule] = &[
        ("resourceClaimName", Rule::Custom(optional_subdomain)),
        ("resourceClaimTemplateName", Rule::Custom(optional_subdomain)),
    ];
    let mut seen = BTreeSet::new();
    for claim in list.items() {
        if is_mirror {
            let root = Node::root(claim.value());
            errors.forbidden(&root, "static pods do not support resource claims");
            continue;
        }
        let name = claim.get("name");
        if name.text().is_empty() {
            errors.required(&name, "");
        } else if seen.contains(name.text()) {
            errors.duplicate(&name, name.text());
        } else {
            errors.add_problems(&name, name.text(), names::dns1123_label(name.text()));
            seen.insert(name.text());
        }
        let detail = match (claim.has("resourceClaimName"), claim.has("resourceClaimTemplateName"))
        {
            (true, true) => {
                "at most one of `resourceClaimName` or `resourceClaimTemplateName` may be specified"
            }
            (false, false) => {
                "must specify one of: `resourceClaimName`, `resourceClaimTemplateName`"
            }
            _ => "",
        };
        if !detail.is_empty() {
            let printed = go_structs::print("PodResourceClaim", claim.value());
            errors.printed(&claim, Some(printed), detail);
        }
        walk(&claim, NAMES, errors);
    }
}

fn optional_subdomain(node: &Node<'_, '_>, errors: &mut Errors) {
    if node.is_set() {
        errors.add_problems(node, node.text(), names::dns1123_subdomain(node.text()));
    }
}

/// Validates that host ports equal container ports in the host network.
pub(super) fn host_ports(spec: &Node<'_, '_>, pod_context: &PodContext<'_>, errors: &mut Errors) {
    if !spec.is_true("hostNetwork") {
        return;
    }
    let containers = spec.get("containers");
    for container in containers.items() {
        let ports = container.get("ports");
        for port in ports.items() {
            let host = port.number_of("hostPort").unwrap_or_default();
            let own = port.number_of("containerPort").unwrap_or_default();
            if (pod_context.is_pod || host != 0) && host != own {
                let detail = "must match `containerPort` when `hostNetwork` is true";
                errors.invalid(&port.get("hostPort"), host, detail);
            }
        }
    }
}

/// Validates the affinity of a pod.
pub(super) fn affinity(node: &Node<'_, '_>, errors: &mut Errors) {
    const REQUIRED: &str = "requiredDuringSchedulingIgnoredDuringExecution";
    const PREFERRED: &str = "preferredDuringSchedulingIgnoredDuringExecution";
    let nodes = node.get("nodeAffinity");
    if nodes.has(REQUIRED) {
        node_selector(&nodes.get(REQUIRED), errors);
    }
    let preferred = nodes.get(PREFERRED);
    for term in preferred.items() {
        walk(&term, &[("weight", WEIGHT)], errors);
        node_term(&term.get("preference"), false, errors);
    }
    for kind in ["podAffinity", "podAntiAffinity"] {
        let pods = node.get(kind);
        let required = pods.get(REQUIRED);
        required.items().for_each(|term| pod_term(&term, errors));
        let preferred = pods.get(PREFERRED);
        for term in preferred.items() {
            walk(&term, &[("weight", WEIGHT)], errors);
            pod_term(&term.get("podAffinityTerm"), errors);
        }
    }
}

fn pod_term(term: &Node<'_, '_>, errors: &mut Errors) {
    affinity_selectors(term, errors);
    let namespaces = term.get("namespaces");
    for namespace in namespaces.items() {
        // Kubernetes reports the path `namespace`, without an index.
        errors.add_problems(
            &term.get("namespace"),
            namespace.text(),
            names::dns1123_label(namespace.text()),
        );
    }
    label_keys(term, &["matchLabelKeys", "mismatchLabelKeys"], errors);
    let key = term.get("topologyKey");
    if key.text().is_empty() {
        errors.required(&key, "can not be empty");
    }
    errors.add_problems(&key, key.text(), names::qualified_name(key.text()));
}

/// Validates `matchLabelKeys` and `mismatchLabelKeys`.
fn label_keys(node: &Node<'_, '_>, fields: &[&str], errors: &mut Errors) {
    let selector = node.get("labelSelector");
    for field in fields {
        let keys = node.get(field);
        if keys.len() > 0 && !selector.is_set() {
            errors.forbidden(&keys, "must not be specified when labelSelector is not set");
            continue;
        }
        for key in keys.items() {
            errors.add_problems(&key, key.text(), names::qualified_name(key.text()));
        }
    }
    let keys = node.get("matchLabelKeys");
    let mut selected: BTreeSet<&str> =
        selector.get("matchLabels").map().into_iter().flatten().map(|(key, _)| &**key).collect();
    let last_index: HashMap<&str, usize> =
        keys.list().iter().enumerate().filter_map(|(at, key)| Some((key.as_str()?, at))).collect();
    for expression in selector.get("matchExpressions").list() {
        let key = expression.get("key").and_then(Value::as_str).unwrap_or_default();
        if let Some(at) = last_index.get(key).copied()
            && selected.contains(key)
        {
            let detail = "exists in both matchLabelKeys and labelSelector";
            errors.invalid(&node.index(at), key, detail);
        }
        selected.insert(key);
    }
    let mismatched: HashSet<&Value> = node.get("mismatchLabelKeys").list().iter().collect();
    for key in keys.items() {
        if fields.len() > 1 && mismatched.contains(key.value()) {
            errors.invalid_value(&key, "exists in both matchLabelKeys and mismatchLabelKeys");
        }
    }
}

/// Validates topology spread constraints.
pub(super) fn topology_spread(list: &Node<'_, '_>, errors: &mut Errors) {
    const POLICY: Rule = Rule::OneOf(&["Honor", "Ignore"]);
    let pair = |constraint: &'_ Value| {
        let text =
            |key: &str| constraint.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
        (text("topologyKey"), text("whenUnsatisfiable"))
    };
    // An error is reported for each constraint that a later one repeats.
    let mut remaining: HashMap<(String, String), usize> = HashMap::new();
    for constraint in list.list() {
        *remaining.entry(pair(constraint)).or_default() += 1;
    }
    for constraint in list.items() {
        let key = constraint.text_of("topologyKey");
        let action = constraint.get("whenUnsatisfiable");
        walk(
            &constraint,
            &[
                ("maxSkew", Rule::RangeOrZero(1, i64::MAX, super::super::super::rules::ABOVE_ZERO)),
                ("topologyKey", Rule::Required("can not be empty")),
            ],
            errors,
        );
        one_of(&action, &["DoNotSchedule", "ScheduleAnyway"], errors);
        let is_repeated = remaining.get_mut(&pair(constraint.value())).is_some_and(|count| {
            *count -= 1;
            *count > 0
        });
        if is_repeated {
            let path = constraint.get("{topologyKey, whenUnsatisfiable}");
            errors.duplicate(&path, format!("{{{key}, {}}}", action.text()));
        }
        let min_domains = constraint.get("minDomains");
        walk(
            &min_domains,
            &[("", Rule::Range(1, i64::MAX, super::super::super::rules::ABOVE_ZERO))],
            errors,
        );
        if min_domains.is_set() && action.text() != "DoNotSchedule" {
            let detail = format!(
                "can only use minDomains if whenUnsatisfiable=DoNotSchedule, not {}",
                action.text()
            );
            errors.invalid_value(&min_domains, detail);
        }
        walk(&constraint, &[("nodeAffinityPolicy", POLICY), ("nodeTaintsPolicy", POLICY)], errors);
        label_keys(&constraint, &["matchLabelKeys"], errors);
        label_selector(&constraint.get("labelSelector"), errors);
    }
}

/// Validates tolerations.
pub(in super::super::super) fn tolerations(list: &Node<'_, '_>, errors: &mut Errors) {
    for toleration in list.items() {
        let (key, operator) = (toleration.get("key"), toleration.get("operator"));
        let (value, effect) = (toleration.text_of("value"), toleration.get("effect"));
        if !key.text().is_empty() {
            errors.add_problems(&key, key.text(), names::qualified_name(key.text()));
        } else if operator.text() != "Exists" {
            let detail = "operator must be Exists when `key` is empty, which means \"match all values and all keys\"";
            errors.invalid(&operator, operator.text(), detail);
        }
        if toleration.has("tolerationSeconds") && effect.text() != "NoExecute" {
            let detail = "effect must be 'NoExecute' when `tolerationSeconds` is set";
            errors.invalid(&effect, effect.text(), detail);
        }
        match operator.text() {
            "Equal" | "" => {
                let problems = names::label_value(value);
                if !problems.is_empty() {
                    errors.invalid(&operator, value, problems.join(";"));
                }
            }
            "Exists" => {
                if !value.is_empty() {
                    errors.invalid(
                        &operator,
                        value,
                        "value must be empty when `operator` is 'Exists'",
                    );
                }
            }
            other @ ("Lt" | "Gt") => {
                errors.unsupported(&operator, other, &["Equal", "Exists", "Lt", "Gt"]);
            }
            other => errors.unsupported(&operator, other, &["Equal", "Exists"]),
        }
        if !effect.text().is_empty() {
            one_of(&effect, &TAINT_EFFECTS, errors);
        }
    }
}

/// Validates host aliases.
pub(super) fn host_aliases(list: &Node<'_, '_>, errors: &mut Errors) {
    for alias in list.items() {
        address(&alias.get("ip"), errors);
        let names = alias.get("hostnames");
        for name in names.items() {
            errors.add_problems(&name, name.text(), names::dns1123_subdomain(name.text()));
        }
    }
}

/// Validates the DNS configuration.
pub(super) fn dns_config(spec: &Node<'_, '_>, errors: &mut Errors) {
    let node = spec.get("dnsConfig");
    let (servers, searches) = (node.get("nameservers"), node.get("searches"));
    if spec.text_of("dnsPolicy") == "None" {
        if !node.is_set() {
            errors.required(&node, "must provide `dnsConfig` when `dnsPolicy` is None");
            return;
        }
        if servers.len() == 0 {
            let detail = "must provide at least one DNS nameserver when `dnsPolicy` is None";
            errors.required(&servers, detail);
            return;
        }
    }
    if servers.len() > 3 {
        errors.invalid_value(&servers, "must not have more than 3 nameservers");
    }
    servers.items().for_each(|server| address(&server, errors));
    if searches.len() > 32 {
        errors.invalid_value(&searches, "must not have more than 32 search paths");
    }
    let length: usize = searches.items().map(|search| search.text().len() + 1).sum();
    if length > 2049 {
        let detail =
            "must not have more than 2048 characters (including spaces) in the search list";
        errors.invalid_value(&searches, detail);
    }
    for search in searches.items().filter(|search| search.text() != ".") {
        let name = search.text().strip_suffix('.').unwrap_or(search.text());
        errors.add_problems(&search, name, formats::subdomain_with_underscore(name));
    }
    let options = node.get("options");
    for option in options.items().filter(|option| option.text_of("name").is_empty()) {
        errors.required(&option, "must not be empty");
    }
}

/// Validates readiness gates and scheduling gates.
pub(super) fn readiness_and_scheduling_gates(spec: &Node<'_, '_>, errors: &mut Errors) {
    const CONDITION: &[FieldRule] = &[("conditionType", Rule::AlwaysFormat(names::qualified_name))];
    walk(spec, &[("readinessGates", Rule::Elements(CONDITION))], errors);
    let mut seen = HashSet::new();
    let gates = spec.get("schedulingGates");
    for gate in gates.items() {
        let name = gate.text_of("name");
        errors.add_problems(&gate, name, names::qualified_name(name));
        if seen.contains(&name) {
            errors.duplicate(&gate, name);
        }
        seen.insert(name);
    }
}

/// Validates that a pod with its own user namespace shares no other namespace with the host.
pub(super) fn host_users(spec: &Node<'_, '_>, pod_context: &PodContext<'_>, errors: &mut Errors) {
    const DETAIL: &str = "when `hostUsers` is false";
    if pod_context.host_users || !spec.has("securityContext") {
        return;
    }
    for (field, path_name) in
        [("hostNetwork", "hostNetwork"), ("hostPID", "HostPID"), ("hostIPC", "HostIPC")]
    {
        if spec.is_true(field) {
            errors.forbidden(&spec.get(path_name), DETAIL);
        }
    }
    for list in ALL_CONTAINERS {
        let containers = spec.get(list);
        for container in
            containers.items().filter(|container| container.get("volumeDevices").len() > 0)
        {
            errors.forbidden(&container.get("volumeDevices"), DETAIL);
        }
    }
}

/// Validates `hostnameOverride`.
pub(super) fn host_name(spec: &Node<'_, '_>, errors: &mut Errors) {
    let node = spec.get("hostnameOverride");
    if !node.is_set() {
        return;
    }
    if spec.is_true("setHostnameAsFQDN") {
        errors.forbidden(&node, "may not be specified when setHostnameAsFQDN is true");
    }
    if spec.is_true("hostNetwork") {
        errors.forbidden(&node, "may not be specified when hostNetwork is true");
    }
    if node.text().len() > 64 {
        errors.too_long(&node, 64);
    }
    errors.add_problems(&node, node.text(), names::dns1123_subdomain(node.text()));
}
