//! Where a pod runs, under which names, and what it is given there.

use super::super::super::rules::{
    Check, Errors, Node, Rule, formats, forms, one_of,
    selectors::{label_selector, node_selector, node_term},
    walk,
};
use super::{ALL_CONTAINERS, Whole, address, affinity_selectors};
use mainstay_object::names;
use serde_json::Value;
use std::collections::{BTreeSet, HashMap, HashSet};

/// What a taint does.
pub(in super::super::super) const TAINT_EFFECTS: [&str; 3] =
    ["NoSchedule", "PreferNoSchedule", "NoExecute"];
const WEIGHT: Rule = Rule::Between(1, 100, "must be in the range 1-100");

/// Claims of resources: each has a name and is made of exactly one thing.
pub(super) fn resource_claims(list: &Node<'_, '_>, mirrored: bool, errors: &mut Errors) {
    const NAMES: &[Check] = &[
        ("resourceClaimName", Rule::With(set_subdomain)),
        ("resourceClaimTemplateName", Rule::With(set_subdomain)),
    ];
    let mut seen = BTreeSet::new();
    for claim in list.items() {
        if mirrored {
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
            errors.each(&name, name.text(), names::dns1123_label(name.text()));
            seen.insert(name.text());
        }
        let words = match (claim.has("resourceClaimName"), claim.has("resourceClaimTemplateName")) {
            (true, true) => {
                "at most one of `resourceClaimName` or `resourceClaimTemplateName` may be specified"
            }
            (false, false) => {
                "must specify one of: `resourceClaimName`, `resourceClaimTemplateName`"
            }
            _ => "",
        };
        if !words.is_empty() {
            let printed = forms::print("PodResourceClaim", claim.value());
            errors.printed(&claim, Some(printed), words);
        }
        walk(&claim, NAMES, errors);
    }
}

fn set_subdomain(node: &Node<'_, '_>, errors: &mut Errors) {
    if node.is_set() {
        errors.each(node, node.text(), names::dns1123_subdomain(node.text()));
    }
}

/// In the host's network a container's port is the host's.
pub(super) fn host_ports(spec: &Node<'_, '_>, whole: &Whole<'_>, errors: &mut Errors) {
    if !spec.is_true("hostNetwork") {
        return;
    }
    let containers = spec.get("containers");
    for container in containers.items() {
        let ports = container.get("ports");
        for port in ports.items() {
            let host = port.number_of("hostPort").unwrap_or_default();
            let own = port.number_of("containerPort").unwrap_or_default();
            if (whole.is_pod || host != 0) && host != own {
                let words = "must match `containerPort` when `hostNetwork` is true";
                errors.invalid(&port.get("hostPort"), host, words);
            }
        }
    }
}

/// Which nodes and which neighbours.
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
        // Here the original names one namespace of none.
        errors.each(
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
    errors.each(&key, key.text(), names::qualified_name(key.text()));
}

/// Labels of the pod itself that its neighbours must or must not share.
fn label_keys(node: &Node<'_, '_>, fields: &[&str], errors: &mut Errors) {
    let selector = node.get("labelSelector");
    for field in fields {
        let keys = node.get(field);
        if keys.len() > 0 && !selector.is_set() {
            errors.forbidden(&keys, "must not be specified when labelSelector is not set");
            continue;
        }
        for key in keys.items() {
            errors.each(&key, key.text(), names::qualified_name(key.text()));
        }
    }
    let keys = node.get("matchLabelKeys");
    let mut selected: BTreeSet<&str> =
        selector.get("matchLabels").map().into_iter().flatten().map(|(key, _)| &**key).collect();
    let last_of: HashMap<&str, usize> =
        keys.list().iter().enumerate().filter_map(|(at, key)| Some((key.as_str()?, at))).collect();
    for expression in selector.get("matchExpressions").list() {
        let key = expression.get("key").and_then(Value::as_str).unwrap_or_default();
        if let Some(at) = last_of.get(key).copied()
            && selected.contains(key)
        {
            let words = "exists in both matchLabelKeys and labelSelector";
            errors.invalid(&node.index(at), key, words);
        }
        selected.insert(key);
    }
    let mismatched: HashSet<&Value> = node.get("mismatchLabelKeys").list().iter().collect();
    for key in keys.items() {
        if fields.len() > 1 && mismatched.contains(key.value()) {
            errors.wrong(&key, "exists in both matchLabelKeys and mismatchLabelKeys");
        }
    }
}

/// How pods are spread over nodes, zones, regions.
pub(super) fn spread(list: &Node<'_, '_>, errors: &mut Errors) {
    const POLICY: Rule = Rule::OneOf(&["Honor", "Ignore"]);
    let pair = |one: &'_ Value| {
        let text = |key: &str| one.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
        (text("topologyKey"), text("whenUnsatisfiable"))
    };
    // A constraint that one further down repeats.
    let mut later: HashMap<(String, String), usize> = HashMap::new();
    for one in list.list() {
        *later.entry(pair(one)).or_default() += 1;
    }
    for constraint in list.items() {
        let key = constraint.text_of("topologyKey");
        let action = constraint.get("whenUnsatisfiable");
        walk(
            &constraint,
            &[
                ("maxSkew", Rule::Between(1, i64::MAX, super::super::super::rules::ABOVE_ZERO)),
                ("topologyKey", Rule::Needed("can not be empty")),
            ],
            errors,
        );
        one_of(&action, &["DoNotSchedule", "ScheduleAnyway"], errors);
        let again = later.get_mut(&pair(constraint.value())).is_some_and(|left| {
            *left -= 1;
            *left > 0
        });
        if again {
            let place = constraint.get("{topologyKey, whenUnsatisfiable}");
            errors.duplicate(&place, format!("{{{key}, {}}}", action.text()));
        }
        let least = constraint.get("minDomains");
        walk(
            &least,
            &[("", Rule::Within(1, i64::MAX, super::super::super::rules::ABOVE_ZERO))],
            errors,
        );
        if least.is_set() && action.text() != "DoNotSchedule" {
            let words = format!(
                "can only use minDomains if whenUnsatisfiable=DoNotSchedule, not {}",
                action.text()
            );
            errors.wrong(&least, words);
        }
        walk(&constraint, &[("nodeAffinityPolicy", POLICY), ("nodeTaintsPolicy", POLICY)], errors);
        label_keys(&constraint, &["matchLabelKeys"], errors);
        label_selector(&constraint.get("labelSelector"), errors);
    }
}

/// Taints that the pod bears.
pub(in super::super::super) fn tolerations(list: &Node<'_, '_>, errors: &mut Errors) {
    for toleration in list.items() {
        let (key, operator) = (toleration.get("key"), toleration.get("operator"));
        let (value, effect) = (toleration.text_of("value"), toleration.get("effect"));
        if !key.text().is_empty() {
            errors.each(&key, key.text(), names::qualified_name(key.text()));
        } else if operator.text() != "Exists" {
            let words = "operator must be Exists when `key` is empty, which means \"match all values and all keys\"";
            errors.invalid(&operator, operator.text(), words);
        }
        if toleration.has("tolerationSeconds") && effect.text() != "NoExecute" {
            let words = "effect must be 'NoExecute' when `tolerationSeconds` is set";
            errors.invalid(&effect, effect.text(), words);
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

/// Names for addresses, in the pod's own table of hosts.
pub(super) fn host_aliases(list: &Node<'_, '_>, errors: &mut Errors) {
    for alias in list.items() {
        address(&alias.get("ip"), errors);
        let names = alias.get("hostnames");
        for name in names.items() {
            errors.each(&name, name.text(), names::dns1123_subdomain(name.text()));
        }
    }
}

/// How the pod finds names.
pub(super) fn dns_config(spec: &Node<'_, '_>, errors: &mut Errors) {
    let node = spec.get("dnsConfig");
    let (servers, searches) = (node.get("nameservers"), node.get("searches"));
    if spec.text_of("dnsPolicy") == "None" {
        if !node.is_set() {
            errors.required(&node, "must provide `dnsConfig` when `dnsPolicy` is None");
            return;
        }
        if servers.len() == 0 {
            let words = "must provide at least one DNS nameserver when `dnsPolicy` is None";
            errors.required(&servers, words);
            return;
        }
    }
    if servers.len() > 3 {
        errors.wrong(&servers, "must not have more than 3 nameservers");
    }
    servers.items().for_each(|server| address(&server, errors));
    if searches.len() > 32 {
        errors.wrong(&searches, "must not have more than 32 search paths");
    }
    let length: usize = searches.items().map(|search| search.text().len() + 1).sum();
    if length > 2049 {
        let words = "must not have more than 2048 characters (including spaces) in the search list";
        errors.wrong(&searches, words);
    }
    for search in searches.items().filter(|search| search.text() != ".") {
        let name = search.text().strip_suffix('.').unwrap_or(search.text());
        errors.each(&search, name, formats::subdomain_with_underscore(name));
    }
    let options = node.get("options");
    for option in options.items().filter(|option| option.text_of("name").is_empty()) {
        errors.required(&option, "must not be empty");
    }
}

/// What must be before the pod is ready, and before it is scheduled.
pub(super) fn gates(spec: &Node<'_, '_>, errors: &mut Errors) {
    const CONDITION: &[Check] = &[("conditionType", Rule::Always(names::qualified_name))];
    walk(spec, &[("readinessGates", Rule::Each(CONDITION))], errors);
    let mut seen = HashSet::new();
    let gates = spec.get("schedulingGates");
    for gate in gates.items() {
        let name = gate.text_of("name");
        errors.each(&gate, name, names::qualified_name(name));
        if seen.contains(&name) {
            errors.duplicate(&gate, name);
        }
        seen.insert(name);
    }
}

/// A pod with users of its own shares nothing else with the host.
pub(super) fn host_users(spec: &Node<'_, '_>, whole: &Whole<'_>, errors: &mut Errors) {
    const WORDS: &str = "when `hostUsers` is false";
    if whole.host_users || !spec.has("securityContext") {
        return;
    }
    for (field, shown) in
        [("hostNetwork", "hostNetwork"), ("hostPID", "HostPID"), ("hostIPC", "HostIPC")]
    {
        if spec.is_true(field) {
            errors.forbidden(&spec.get(shown), WORDS);
        }
    }
    for list in ALL_CONTAINERS {
        let containers = spec.get(list);
        for container in
            containers.items().filter(|container| container.get("volumeDevices").len() > 0)
        {
            errors.forbidden(&container.get("volumeDevices"), WORDS);
        }
    }
}

/// A host name that replaces the pod's.
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
    errors.each(&node, node.text(), names::dns1123_subdomain(node.text()));
}
