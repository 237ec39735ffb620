//! Validation of pods and pod templates.

mod containers;
mod environment;
mod placement;
mod security;
mod update;
pub(super) mod volumes;

pub(in super::super) use placement::{TAINT_EFFECTS, tolerations};
pub(in super::super) use update::{pod_status_update, pod_update};

use super::super::rules::{
    Errors, FieldRule, Node, Rule, formats, quantities,
    selectors::{annotations, label_selector, labels},
    walk,
};
use mainstay_object::{Object, names};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet, HashSet};

/// The annotation of mirror pods.
const MIRROR: &str = "kubernetes.io/config.mirror";
/// The annotation with the deletion cost of a pod.
const DELETION_COST: &str = "controller.kubernetes.io/pod-deletion-cost";
/// Prefix of annotations that name `AppArmor` profiles of containers.
pub(in super::super) const APP_ARMOR: &str = "container.apparmor.security.beta.kubernetes.io/";
/// The legacy seccomp annotations: of the pod, and the prefix of those of containers.
const SECCOMP_POD: &str = "seccomp.security.alpha.kubernetes.io/pod";
const SECCOMP_CONTAINER: &str = "container.seccomp.security.alpha.kubernetes.io/";
/// The container lists of a spec, in the order in which Kubernetes visits them.
const ALL_CONTAINERS: [&str; 3] = ["initContainers", "containers", "ephemeralContainers"];

/// The properties of a pod that rules for its parts need.
struct PodContext<'v> {
    /// The valid volumes by name.
    volumes: BTreeMap<&'v str, &'v Value>,
    /// The names of resource claims.
    claims: BTreeSet<&'v str>,
    grace_period: Option<i64>,
    os: Option<&'v str>,
    restart_policy: &'v str,
    /// Whether the pod uses the user namespace of the host.
    host_users: bool,
    /// True for a pod, false for a template.
    is_pod: bool,
}

/// Validates a new pod.
pub(in super::super) fn pod(object: &Object, errors: &mut Errors) {
    let value = object.fields();
    let spec = Node::top_level(value.get("spec").unwrap_or(&Value::Null), "spec");
    metadata_and_spec(object, errors);
    if spec.get("ephemeralContainers").len() > 0 {
        errors.forbidden(&spec.get("ephemeralContainers"), "cannot be set on create");
    }
    if !spec.text_of("nodeName").is_empty() && spec.get("schedulingGates").len() > 0 {
        let detail = "cannot be set until all schedulingGates have been cleared";
        errors.forbidden(&spec.get("nodeName"), detail);
    }
    let metadata = value.get("metadata").unwrap_or(&Value::Null);
    matching_profiles(&spec, metadata.get("annotations").unwrap_or(&Value::Null), errors);
}

/// Validates annotations and spec of a pod, for creations and updates.
fn metadata_and_spec(object: &Object, errors: &mut Errors) {
    let value = object.fields();
    let metadata = Node::top_level(value.get("metadata").unwrap_or(&Value::Null), "metadata");
    let spec = Node::top_level(value.get("spec").unwrap_or(&Value::Null), "spec");
    specific_annotations(&metadata.get("annotations"), &spec, errors);
    self::spec(&spec, Some(&metadata), errors);
    if spec.text_of("serviceAccountName").is_empty() {
        let volumes = spec.get("volumes");
        for volume in volumes.items() {
            let projected = volume.get("projected");
            let sources = projected.get("sources");
            for source in sources.items().filter(|source| source.has("serviceAccountToken")) {
                let detail = "must not be specified when serviceAccountName is not set";
                errors.forbidden(&source.get("serviceAccountToken"), detail);
            }
        }
    }
    for list in ["containers", "initContainers"] {
        let containers = spec.get(list);
        containers.items().for_each(|container| containers::image_whitespace(&container, errors));
    }
}

/// Validates a pod template.
pub(in super::super) fn template(node: &Node<'_, '_>, errors: &mut Errors) {
    template_with(node, node.get("spec").value(), errors);
}

/// Validates a pod template with another spec, which may have additional volumes.
pub(in super::super) fn template_with(node: &Node<'_, '_>, value: &Value, errors: &mut Errors) {
    let metadata = node.value().get("metadata").unwrap_or(&Value::Null);
    let metadata_field = |key: &str| metadata.get(key).unwrap_or(&Value::Null);
    labels(&node.child_with_value("labels", metadata_field("labels")), errors);
    let found = node.child_with_value("annotations", metadata_field("annotations"));
    annotations(&found, errors);
    let spec = node.child_with_value("spec", value);
    specific_annotations(&found, &spec, errors);
    self::spec(&spec, None, errors);
    matching_profiles(&spec, metadata_field("annotations"), errors);
    if spec.get("ephemeralContainers").len() > 0 {
        let detail = "ephemeral containers not allowed in pod template";
        errors.forbidden(&spec.get("ephemeralContainers"), detail);
    }
}

fn specific_annotations(node: &Node<'_, '_>, spec: &Node<'_, '_>, errors: &mut Errors) {
    if node.len() == 0 {
        return;
    }
    if node.value().get(MIRROR).is_some() && spec.text_of("nodeName").is_empty() {
        let detail = "must set spec.nodeName if mirror pod annotation is set";
        errors.invalid_value(&node.key(MIRROR), detail);
    }
    let cost = node.key(DELETION_COST);
    if cost.is_set() && !is_deletion_cost(cost.text()) {
        errors.invalid_value(&cost, "must be a 32bit integer");
    }
    if let Some(profile) = node.value().get(SECCOMP_POD).and_then(Value::as_str) {
        security::seccomp_annotation(profile, &node.get(SECCOMP_POD), errors);
    }
    for (key, value) in node.map().into_iter().flatten() {
        if key.starts_with(SECCOMP_CONTAINER) {
            let profile = value.as_str().unwrap_or_default();
            security::seccomp_annotation(profile, &node.get(key), errors);
        }
    }
    let container_names: HashSet<&str> = ALL_CONTAINERS
        .iter()
        .flat_map(|list| spec.get(list).list())
        .filter_map(|container| container.get("name")?.as_str())
        .collect();
    for (key, at) in node.entries() {
        let Some(name) = key.strip_prefix(APP_ARMOR) else { continue };
        if !container_names.contains(name) {
            errors.invalid(&at, name, "container not found");
        }
        let profile = at.text();
        if !matches!(profile, "" | "runtime/default" | "unconfined")
            && !profile.starts_with("localhost/")
        {
            let detail =
                format!("invalid AppArmor profile name: {}", mainstay_gocompat::quote(profile));
            errors.invalid(&at, profile, detail);
        }
    }
}

fn is_deletion_cost(text: &str) -> bool {
    let first = text.bytes().next().unwrap_or_default();
    (text == "0" || first == b'-' || (b'1'..=b'9').contains(&first)) && text.parse::<i32>().is_ok()
}

/// Validates that annotations and fields name the same profiles.
fn matching_profiles(spec: &Node<'_, '_>, annotations: &Value, errors: &mut Errors) {
    if annotations.as_object().is_none_or(serde_json::Map::is_empty) {
        return;
    }
    let text = |key: &str| annotations.get(key).and_then(Value::as_str);
    let context = spec.get("securityContext");
    let field = context.get("seccompProfile");
    if let (true, Some(annotation)) = (field.is_set(), text(SECCOMP_POD)) {
        security::seccomp_matches(annotation, &field, errors);
    }
    for list in ALL_CONTAINERS {
        let containers = spec.get(list);
        for container in containers.items() {
            let context = container.get("securityContext");
            let field = context.get("seccompProfile");
            let key = format!("{SECCOMP_CONTAINER}{}", container.text_of("name"));
            if let (true, Some(annotation)) = (field.is_set(), text(&key)) {
                security::seccomp_matches(annotation, &field, errors);
            }
        }
    }
    if spec.get("os").text_of("name") == "windows" {
        return;
    }
    for list in ALL_CONTAINERS {
        let containers = spec.get(list);
        for container in containers.items() {
            let key = format!("{APP_ARMOR}{}", container.text_of("name"));
            let Some(annotation) = text(&key) else { continue };
            let own = container.get("securityContext");
            let at = own.get("appArmorProfile");
            let profile = if at.is_set() {
                at.value()
            } else {
                context.value().get("appArmorProfile").unwrap_or(&Value::Null)
            };
            security::app_armor_matches(annotation, profile, &at, errors);
        }
    }
}

/// Validates a pod spec; `metadata` is none for a template.
fn spec(node: &Node<'_, '_>, metadata: Option<&Node<'_, '_>>, errors: &mut Errors) {
    const REST: &[FieldRule] = &[
        ("serviceAccountName", Rule::Format(names::dns1123_subdomain)),
        ("nodeName", Rule::Format(names::dns1123_subdomain)),
        (
            "activeDeadlineSeconds",
            Rule::Range(1, 2_147_483_647, "must be between 1 and 2147483647, inclusive"),
        ),
        ("hostname", Rule::Format(names::dns1123_label)),
        ("subdomain", Rule::Format(names::dns1123_label)),
        ("tolerations", Rule::Custom(tolerations)),
        ("hostAliases", Rule::Custom(placement::host_aliases)),
        ("priorityClassName", Rule::Format(names::dns1123_subdomain)),
        ("runtimeClassName", Rule::Custom(runtime_class)),
        ("preemptionPolicy", Rule::Custom(preemption_policy)),
        ("overhead", Rule::Custom(overhead)),
    ];
    let context = node.get("securityContext");
    let claims = node.get("resourceClaims");
    let name = metadata.map_or("", |metadata| metadata.text_of("name"));
    let is_pod = metadata.is_some();
    if !node.has("terminationGracePeriodSeconds") {
        errors.required(&node.get("terminationGracePeriodSeconds"), "");
    }
    let pod_context = PodContext {
        volumes: volumes::volumes(&node.get("volumes"), name, is_pod, errors),
        claims: claims
            .list()
            .iter()
            .filter_map(|claim| claim.get("name")?.as_str())
            .filter(|name| !name.is_empty())
            .collect(),
        grace_period: node.number_of("terminationGracePeriodSeconds"),
        os: node.value().get("os").and_then(|os| os.get("name")).and_then(Value::as_str),
        restart_policy: node.text_of("restartPolicy"),
        host_users: node.value().get("hostUsers") != Some(&Value::Bool(false)),
        is_pod,
    };
    let is_mirror =
        metadata.is_some_and(|metadata| metadata.get("annotations").value().get(MIRROR).is_some());
    placement::resource_claims(&claims, is_mirror, errors);
    containers::containers(node, &pod_context, errors);
    containers::pod_resources(node, &pod_context, errors);
    placement::host_ports(node, &pod_context, errors);
    walk(
        node,
        &[
            ("restartPolicy", Rule::RequiredOneOf(&["Always", "OnFailure", "Never"])),
            (
                "dnsPolicy",
                Rule::RequiredOneOf(&[
                    "ClusterFirstWithHostNet",
                    "ClusterFirst",
                    "Default",
                    "None",
                ]),
            ),
            ("nodeSelector", Rule::Custom(labels)),
        ],
        errors,
    );
    security::pod_security_context(&context, node, errors);
    placement::affinity(&node.get("affinity"), errors);
    placement::dns_config(node, errors);
    placement::readiness_and_scheduling_gates(node, errors);
    placement::topology_spread(&node.get("topologySpreadConstraints"), errors);
    security::host_process(node, errors);
    placement::host_users(node, &pod_context, errors);
    placement::host_name(node, errors);
    walk(node, REST, errors);
    security::operating_system(node, errors);
    volumes::file_references(node, errors);
}

fn runtime_class(node: &Node<'_, '_>, errors: &mut Errors) {
    if node.is_set() {
        errors.add_problems(node, node.text(), names::dns1123_subdomain(node.text()));
    }
}

fn preemption_policy(node: &Node<'_, '_>, errors: &mut Errors) {
    if node.is_set() {
        walk(node, &[("", Rule::RequiredOneOf(&["PreemptLowerPriority", "Never"]))], errors);
    }
}

/// Validates the overhead of a pod like limits of containers.
fn overhead(node: &Node<'_, '_>, errors: &mut Errors) {
    if !node.is_set() {
        return;
    }
    let limits = serde_json::json!({"limits": node.value()});
    let mut found = Errors::default();
    quantities::requirements(
        &Node::root(&limits),
        quantities::ResourceOwner::Container,
        &BTreeSet::new(),
        &mut found,
    );
    let path = node.path();
    for mut error in found.into_vec() {
        error.field = format!("{path}.{}", error.field);
        errors.push(error);
    }
}

/// Validates the selectors of an affinity term.
pub(in super::super) fn affinity_selectors(term: &Node<'_, '_>, errors: &mut Errors) {
    label_selector(&term.get("labelSelector"), errors);
    label_selector(&term.get("namespaceSelector"), errors);
}

/// Validates an IP address.
fn address(node: &Node<'_, '_>, errors: &mut Errors) {
    errors.add_problems(node, node.text(), formats::address(node.text()));
}
