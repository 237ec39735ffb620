//! Pods and templates of pods.

mod containers;
mod environment;
mod placement;
mod security;
mod update;
pub(super) mod volumes;

pub(in super::super) use placement::{TAINT_EFFECTS, tolerations};
pub(in super::super) use update::{pod_status_update, pod_update};

use super::super::rules::{
    Check, Errors, Node, Rule, amounts, formats,
    selectors::{annotations, label_selector, labels},
    walk,
};
use mainstay_object::{Object, names};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet, HashSet};

/// Annotation of pods that a node makes by itself.
const MIRROR: &str = "kubernetes.io/config.mirror";
/// Annotation that says how dear a pod is to delete.
const DELETION_COST: &str = "controller.kubernetes.io/pod-deletion-cost";
/// Prefix of annotations that name `AppArmor` profiles of containers.
pub(in super::super) const APP_ARMOR: &str = "container.apparmor.security.beta.kubernetes.io/";
/// Annotations that named seccomp profiles: of the pod, and the prefix of those of containers.
const SECCOMP_POD: &str = "seccomp.security.alpha.kubernetes.io/pod";
const SECCOMP_CONTAINER: &str = "container.seccomp.security.alpha.kubernetes.io/";
/// Where containers stand in a spec, in the order in which all of them are visited.
const ALL_CONTAINERS: [&str; 3] = ["initContainers", "containers", "ephemeralContainers"];

/// What rules of a part of a pod need to know of the whole.
struct Whole<'v> {
    /// Volumes that are good, by name.
    volumes: BTreeMap<&'v str, &'v Value>,
    /// Names of claims of resources.
    claims: BTreeSet<&'v str>,
    grace: Option<i64>,
    os: Option<&'v str>,
    restart_policy: &'v str,
    /// Whether users are those of the host.
    host_users: bool,
    /// Whether it is a pod, not a template.
    is_pod: bool,
}

/// A pod that is to be created.
pub(in super::super) fn pod(object: &Object, errors: &mut Errors) {
    let value = object.fields();
    let spec = Node::top(value.get("spec").unwrap_or(&Value::Null), "spec");
    metadata_and_spec(object, errors);
    if spec.get("ephemeralContainers").len() > 0 {
        errors.forbidden(&spec.get("ephemeralContainers"), "cannot be set on create");
    }
    if !spec.text_of("nodeName").is_empty() && spec.get("schedulingGates").len() > 0 {
        let words = "cannot be set until all schedulingGates have been cleared";
        errors.forbidden(&spec.get("nodeName"), words);
    }
    let metadata = value.get("metadata").unwrap_or(&Value::Null);
    profiles_match(&spec, metadata.get("annotations").unwrap_or(&Value::Null), errors);
}

/// What holds for a pod whenever it is written, besides its metadata.
fn metadata_and_spec(object: &Object, errors: &mut Errors) {
    let value = object.fields();
    let metadata = Node::top(value.get("metadata").unwrap_or(&Value::Null), "metadata");
    let spec = Node::top(value.get("spec").unwrap_or(&Value::Null), "spec");
    specific_annotations(&metadata.get("annotations"), &spec, errors);
    self::spec(&spec, Some(&metadata), errors);
    if spec.text_of("serviceAccountName").is_empty() {
        let volumes = spec.get("volumes");
        for volume in volumes.items() {
            let projected = volume.get("projected");
            let sources = projected.get("sources");
            for source in sources.items().filter(|source| source.has("serviceAccountToken")) {
                let words = "must not be specified when serviceAccountName is not set";
                errors.forbidden(&source.get("serviceAccountToken"), words);
            }
        }
    }
    for list in ["containers", "initContainers"] {
        let containers = spec.get(list);
        containers.items().for_each(|container| containers::padded_image(&container, errors));
    }
}

/// A template of pods.
pub(in super::super) fn template(node: &Node<'_, '_>, errors: &mut Errors) {
    template_with(node, node.get("spec").value(), errors);
}

/// The same with another spec in its place: volumes may come from elsewhere.
pub(in super::super) fn template_with(node: &Node<'_, '_>, value: &Value, errors: &mut Errors) {
    let metadata = node.value().get("metadata").unwrap_or(&Value::Null);
    let of = |key: &str| metadata.get(key).unwrap_or(&Value::Null);
    labels(&node.named("labels", of("labels")), errors);
    let found = node.named("annotations", of("annotations"));
    annotations(&found, errors);
    let spec = node.named("spec", value);
    specific_annotations(&found, &spec, errors);
    self::spec(&spec, None, errors);
    profiles_match(&spec, of("annotations"), errors);
    if spec.get("ephemeralContainers").len() > 0 {
        let words = "ephemeral containers not allowed in pod template";
        errors.forbidden(&spec.get("ephemeralContainers"), words);
    }
}

fn specific_annotations(node: &Node<'_, '_>, spec: &Node<'_, '_>, errors: &mut Errors) {
    if node.len() == 0 {
        return;
    }
    if node.value().get(MIRROR).is_some() && spec.text_of("nodeName").is_empty() {
        let words = "must set spec.nodeName if mirror pod annotation is set";
        errors.wrong(&node.key(MIRROR), words);
    }
    let cost = node.key(DELETION_COST);
    if cost.is_set() && !is_deletion_cost(cost.text()) {
        errors.wrong(&cost, "must be a 32bit integer");
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
    let known: HashSet<&str> = ALL_CONTAINERS
        .iter()
        .flat_map(|list| spec.get(list).list())
        .filter_map(|container| container.get("name")?.as_str())
        .collect();
    for (key, at) in node.entries() {
        let Some(name) = key.strip_prefix(APP_ARMOR) else { continue };
        if !known.contains(name) {
            errors.invalid(&at, name, "container not found");
        }
        let profile = at.text();
        if !matches!(profile, "" | "runtime/default" | "unconfined")
            && !profile.starts_with("localhost/")
        {
            let words =
                format!("invalid AppArmor profile name: {}", mainstay_gocompat::quote(profile));
            errors.invalid(&at, profile, words);
        }
    }
}

fn is_deletion_cost(text: &str) -> bool {
    let first = text.bytes().next().unwrap_or_default();
    (text == "0" || first == b'-' || (b'1'..=b'9').contains(&first)) && text.parse::<i32>().is_ok()
}

/// Profiles that annotations and fields both name are the same.
fn profiles_match(spec: &Node<'_, '_>, annotations: &Value, errors: &mut Errors) {
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

/// A pod's spec; `metadata` is that of a pod, none of a template.
fn spec(node: &Node<'_, '_>, metadata: Option<&Node<'_, '_>>, errors: &mut Errors) {
    const REST: &[Check] = &[
        ("serviceAccountName", Rule::Format(names::dns1123_subdomain)),
        ("nodeName", Rule::Format(names::dns1123_subdomain)),
        (
            "activeDeadlineSeconds",
            Rule::Within(1, 2_147_483_647, "must be between 1 and 2147483647, inclusive"),
        ),
        ("hostname", Rule::Format(names::dns1123_label)),
        ("subdomain", Rule::Format(names::dns1123_label)),
        ("tolerations", Rule::With(tolerations)),
        ("hostAliases", Rule::With(placement::host_aliases)),
        ("priorityClassName", Rule::Format(names::dns1123_subdomain)),
        ("runtimeClassName", Rule::With(runtime_class)),
        ("preemptionPolicy", Rule::With(preemption_policy)),
        ("overhead", Rule::With(overhead)),
    ];
    let context = node.get("securityContext");
    let claims = node.get("resourceClaims");
    let name = metadata.map_or("", |metadata| metadata.text_of("name"));
    let is_pod = metadata.is_some();
    if !node.has("terminationGracePeriodSeconds") {
        errors.required(&node.get("terminationGracePeriodSeconds"), "");
    }
    let whole = Whole {
        volumes: volumes::volumes(&node.get("volumes"), name, is_pod, errors),
        claims: claims
            .list()
            .iter()
            .filter_map(|claim| claim.get("name")?.as_str())
            .filter(|name| !name.is_empty())
            .collect(),
        grace: node.number_of("terminationGracePeriodSeconds"),
        os: node.value().get("os").and_then(|os| os.get("name")).and_then(Value::as_str),
        restart_policy: node.text_of("restartPolicy"),
        host_users: node.value().get("hostUsers") != Some(&Value::Bool(false)),
        is_pod,
    };
    let mirrored =
        metadata.is_some_and(|metadata| metadata.get("annotations").value().get(MIRROR).is_some());
    placement::resource_claims(&claims, mirrored, errors);
    containers::containers(node, &whole, errors);
    containers::pod_resources(node, &whole, errors);
    placement::host_ports(node, &whole, errors);
    walk(
        node,
        &[
            ("restartPolicy", Rule::Choice(&["Always", "OnFailure", "Never"])),
            (
                "dnsPolicy",
                Rule::Choice(&["ClusterFirstWithHostNet", "ClusterFirst", "Default", "None"]),
            ),
            ("nodeSelector", Rule::With(labels)),
        ],
        errors,
    );
    security::pod_context(&context, node, errors);
    placement::affinity(&node.get("affinity"), errors);
    placement::dns_config(node, errors);
    placement::gates(node, errors);
    placement::spread(&node.get("topologySpreadConstraints"), errors);
    security::host_process(node, errors);
    placement::host_users(node, &whole, errors);
    placement::host_name(node, errors);
    walk(node, REST, errors);
    security::operating_system(node, errors);
    volumes::file_references(node, errors);
}

fn runtime_class(node: &Node<'_, '_>, errors: &mut Errors) {
    if node.is_set() {
        errors.each(node, node.text(), names::dns1123_subdomain(node.text()));
    }
}

fn preemption_policy(node: &Node<'_, '_>, errors: &mut Errors) {
    if node.is_set() {
        walk(node, &[("", Rule::Choice(&["PreemptLowerPriority", "Never"]))], errors);
    }
}

/// What a pod costs besides its containers: checked as if it were their limits.
fn overhead(node: &Node<'_, '_>, errors: &mut Errors) {
    if !node.is_set() {
        return;
    }
    let limits = serde_json::json!({"limits": node.value()});
    let mut found = Errors::default();
    amounts::requirements(
        &Node::root(&limits),
        amounts::Asker::Container,
        &BTreeSet::new(),
        &mut found,
    );
    let path = node.path();
    for mut error in found.into_vec() {
        error.field = format!("{path}.{}", error.field);
        errors.push(error);
    }
}

/// A selector of pods and the labels that its template gives them.
pub(in super::super) fn affinity_selectors(term: &Node<'_, '_>, errors: &mut Errors) {
    label_selector(&term.get("labelSelector"), errors);
    label_selector(&term.get("namespaceSelector"), errors);
}

/// The address of a name server or an alias.
fn address(node: &Node<'_, '_>, errors: &mut Errors) {
    errors.each(node, node.text(), formats::address(node.text()));
}
