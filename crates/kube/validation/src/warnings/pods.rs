//! Warnings about pods and pod templates.

use super::super::check::APP_ARMOR;
use super::super::rules::Node;
use super::addresses::address;
use super::{claim_size_warnings, deprecated_label, fractional_bytes_warning, node_term};
use mainstay_gocompat::quote;
use serde_json::Value;
use std::collections::{BTreeMap, HashSet};

const CONTAINER_LISTS: [&str; 3] = ["initContainers", "containers", "ephemeralContainers"];
const NO_SELECTOR: &str = "a null labelSelector results in matching no pod";
const SECCOMP_POD: &str = "seccomp.security.alpha.kubernetes.io/pod";
const SECCOMP_CONTAINER: &str = "container.seccomp.security.alpha.kubernetes.io/";

/// Annotations without any effect.
const ANNOTATIONS: [(&str, &str); 3] = [
    (
        "scheduler.alpha.kubernetes.io/critical-pod",
        r#"non-functional in v1.16+; use the "priorityClassName" field instead"#,
    ),
    (
        "security.alpha.kubernetes.io/sysctls",
        r#"non-functional in v1.11+; use the "sysctls" field instead"#,
    ),
    (
        "security.alpha.kubernetes.io/unsafe-sysctls",
        r#"non-functional in v1.11+; use the "sysctls" field instead"#,
    ),
];

/// Deprecated volume sources: field, name in the path, warning.
const VOLUMES: [(&str, &str, &str); 9] = [
    (
        "photonPersistentDisk",
        "photonPersistentDisk",
        "deprecated in v1.11, non-functional in v1.16+",
    ),
    ("gitRepo", "gitRepo", "deprecated in v1.11, and disabled by default in v1.33+"),
    ("scaleIO", "scaleIO", "deprecated in v1.16, non-functional in v1.22+"),
    ("flocker", "flocker", "deprecated in v1.22, non-functional in v1.25+"),
    ("storageos", "storageOS", "deprecated in v1.22, non-functional in v1.25+"),
    ("quobyte", "quobyte", "deprecated in v1.22, non-functional in v1.25+"),
    ("glusterfs", "glusterfs", "deprecated in v1.25, non-functional in v1.26+"),
    ("cephfs", "cephfs", "deprecated in v1.28, non-functional in v1.31+"),
    ("rbd", "rbd", "deprecated in v1.28, non-functional in v1.31+"),
];

/// All warnings about the metadata and spec of a pod; `template` is set for a pod template.
pub(super) fn pod(
    metadata: &Node<'_, '_>,
    spec: &Node<'_, '_>,
    template: Option<&Node<'_, '_>>,
    found: &mut Vec<String>,
) {
    let annotations = metadata.get("annotations");
    placement(spec, found);
    for (key, warning) in ANNOTATIONS {
        if annotations.has(key) {
            found.push(format!("{}: {warning}", annotations.key(key).path()));
        }
    }
    volumes(&spec.get("volumes"), found);
    duplicates(&spec.get("hostAliases"), "ip", found);
    duplicates(&spec.get("imagePullSecrets"), "name", found);
    let secrets = spec.get("imagePullSecrets");
    for secret in secrets.items().filter(|secret| secret.text_of("name").is_empty()) {
        found.push(format!("{}: invalid empty name \"\"", secret.get("name").path()));
    }
    let overhead = spec.get("overhead");
    fractional_bytes_warning(&overhead.key("memory"), found);
    fractional_bytes_warning(&overhead.key("ephemeral-storage"), found);
    let context = spec.get("securityContext");
    if !context.has("seccompProfile") && annotations.has(SECCOMP_POD) {
        seccomp(&annotations, SECCOMP_POD, found);
    }
    for list in CONTAINER_LISTS {
        let containers = spec.get(list);
        for container in containers.items() {
            let own = container.get("securityContext");
            let key = format!("{SECCOMP_CONTAINER}{}", container.text_of("name"));
            if !own.has("seccompProfile") && annotations.has(&key) {
                seccomp(&annotations, &key, found);
            }
            let key = format!("{APP_ARMOR}{}", container.text_of("name"));
            let is_deprecated = template.is_some() && !own.has("appArmorProfile");
            if let Some(profile) = annotations.value().get(&key).and_then(Value::as_str)
                && is_deprecated
                && !is_profile(context.get("appArmorProfile").value(), profile)
            {
                found.push(format!(
                    "{}: deprecated since v1.30; use the \"appArmorProfile\" field instead",
                    annotations.key(&key).path()
                ));
            }
            let resources = container.get("resources");
            for name in ["memory", "ephemeral-storage"] {
                for side in ["limits", "requests"] {
                    fractional_bytes_warning(&resources.get(side).key(name), found);
                }
            }
            hidden_variables(&container.get("env"), found);
        }
    }
    ports(spec, found);
    let grace = spec.get("terminationGracePeriodSeconds");
    if grace.number().is_some_and(|grace| grace < 0) {
        found.push(format!(
            "{}: must be >= 0; negative values are invalid and will be treated as 1",
            grace.path()
        ));
    }
    pod_affinity(&spec.get("affinity"), found);
    let dns = spec.get("dnsConfig");
    let servers = dns.get("nameservers");
    servers.items().for_each(|server| address(&server, found));
    let aliases = spec.get("hostAliases");
    aliases.items().for_each(|alias| address(&alias.get("ip"), found));
}

fn seccomp(annotations: &Node<'_, '_>, key: &str, found: &mut Vec<String>) {
    found.push(format!(
        "{}: non-functional in v1.27+; use the \"seccompProfile\" field instead",
        annotations.key(key).path()
    ));
}

/// Whether a profile field and an annotation have the same value.
fn is_profile(field: &Value, annotation: &str) -> bool {
    let text = |key: &str| field.get(key).and_then(Value::as_str);
    match annotation.strip_prefix("localhost/") {
        Some(file) => text("type") == Some("Localhost") && text("localhostProfile") == Some(file),
        None if annotation == "runtime/default" => text("type") == Some("RuntimeDefault"),
        None => annotation == "unconfined" && text("type") == Some("Unconfined"),
    }
}

fn placement(spec: &Node<'_, '_>, found: &mut Vec<String>) {
    let selector = spec.get("nodeSelector");
    for (key, at) in selector.entries() {
        if let Some(warning) = deprecated_label(key) {
            found.push(format!("{}: {warning}", at.path()));
        }
    }
    let affinity = spec.get("affinity");
    let nodes = affinity.get("nodeAffinity");
    let required = nodes.get("requiredDuringSchedulingIgnoredDuringExecution");
    let terms = required.get("nodeSelectorTerms");
    terms.items().for_each(|term| node_term(&term, false, found));
    let preferred = nodes.get("preferredDuringSchedulingIgnoredDuringExecution");
    preferred.items().for_each(|term| node_term(&term.get("preference"), true, found));
    let constraints = spec.get("topologySpreadConstraints");
    for constraint in constraints.items() {
        let key = constraint.get("topologyKey");
        if let Some(warning) = deprecated_label(key.text()) {
            found.push(format!("{}: {} is {warning}", key.path(), key.text()));
        }
        if !constraint.has("labelSelector") {
            found.push(format!("{}: {NO_SELECTOR}", constraint.get("labelSelector").path()));
        }
    }
}

fn pod_affinity(affinity: &Node<'_, '_>, found: &mut Vec<String>) {
    for kind in ["podAffinity", "podAntiAffinity"] {
        let pods = affinity.get(kind);
        let required = pods.get("requiredDuringSchedulingIgnoredDuringExecution");
        for term in required.items().filter(|term| !term.has("labelSelector")) {
            found.push(format!("{}: {NO_SELECTOR}", term.get("labelSelector").path()));
        }
        let preferred = pods.get("preferredDuringSchedulingIgnoredDuringExecution");
        for term in preferred.items() {
            let term = term.get("podAffinityTerm");
            if !term.has("labelSelector") {
                found.push(format!("{}: {NO_SELECTOR}", term.get("labelSelector").path()));
            }
        }
    }
}

fn duplicates(list: &Node<'_, '_>, key: &str, found: &mut Vec<String>) {
    let mut seen = HashSet::new();
    for item in list.items() {
        let text = item.text_of(key);
        if !seen.insert(text) {
            let path = item.get(key).path();
            found.push(format!("{path}: duplicate {key} {}", quote(text)));
        }
    }
}

/// Warns about a variable that hides an earlier one without a reference to it.
fn hidden_variables(env: &Node<'_, '_>, found: &mut Vec<String>) {
    let mut seen = HashSet::new();
    for variable in env.items() {
        let (name, value) = (variable.text_of("name"), variable.text_of("value"));
        if seen.insert(name) {
            continue;
        }
        let reference = format!("$({name})");
        if variable.has("valueFrom") || value == reference || !value.contains(&reference) {
            found.push(format!(
                "{}: hides previous definition of {}, which may be dropped when using apply",
                variable.path(),
                quote(name)
            ));
        }
    }
}

/// A container port for the search of overlaps.
struct Port {
    path: String,
    host_ip: String,
    number: i64,
}

fn ports(spec: &Node<'_, '_>, found: &mut Vec<String>) {
    let mut seen: BTreeMap<String, Vec<Port>> = BTreeMap::new();
    let mut names: BTreeMap<String, String> = BTreeMap::new();
    let mut duplicate_names = Vec::new();
    for list in CONTAINER_LISTS {
        let containers = spec.get(list);
        for container in containers.items() {
            let ports = container.get("ports");
            for port in ports.items() {
                let current = Port {
                    path: port.path().to_string(),
                    host_ip: port.text_of("hostIP").to_owned(),
                    number: port.number_of("hostPort").unwrap_or_default(),
                };
                let number = port.number_of("containerPort").unwrap_or_default();
                let (name, protocol) = (port.text_of("name"), port.text_of("protocol"));
                if !current.host_ip.is_empty() && current.number == 0 {
                    found.push(format!(
                        "{}: hostIP set without hostPort: {{Name:{name} HostPort:0 ContainerPort:{number} Protocol:{protocol} HostIP:{}}}",
                        current.path, current.host_ip
                    ));
                }
                let others = seen.entry(format!("{number}/{protocol}")).or_default();
                found.extend(others.iter().filter_map(|other| overlap(&current, other)));
                if !name.is_empty() {
                    match names.get(name) {
                        Some(other) => duplicate_names.push(format!(
                            "{}: duplicate port name {} with {other}, services and probes that select ports by name will use {other}",
                            current.path,
                            quote(name)
                        )),
                        None => {
                            names.insert(name.to_owned(), current.path.clone());
                        }
                    }
                }
                others.push(current);
            }
        }
    }
    found.append(&mut duplicate_names);
}

fn overlap(current: &Port, other: &Port) -> Option<String> {
    let how = if current.host_ip == other.host_ip && current.number == other.number {
        "duplicate"
    } else if current.number == 0 || other.number == 0 {
        "overlapping"
    } else if current.number == other.number
        && (current.host_ip.is_empty() != other.host_ip.is_empty())
    {
        "dangerously ambiguous"
    } else {
        return None;
    };
    Some(format!("{}: {how} port definition with {}", current.path, other.path))
}

fn volumes(list: &Node<'_, '_>, found: &mut Vec<String>) {
    for volume in list.items() {
        for (field, path_name, warning) in VOLUMES {
            // Kubernetes checks ephemeral claims before `cephfs`.
            if field == "cephfs" {
                let template = volume.get("ephemeral");
                let template = template.get("volumeClaimTemplate");
                let spec = template.get("spec");
                claim_size_warnings(&spec, spec.value(), found);
            }
            if volume.has(field) {
                found.push(format!("{}: {warning}", volume.get(path_name).path()));
            }
        }
    }
    for volume in list.items() {
        overlapping_files(&volume, found);
    }
}

/// A file and its source; the source is empty if the warning omits it.
#[derive(Clone, PartialEq)]
struct File {
    path: String,
    source: String,
}

impl File {
    fn text(&self) -> String {
        if self.source.is_empty() {
            quote(&self.path)
        } else {
            format!("{} ({})", quote(&self.path), self.source)
        }
    }

    fn overlaps(&self, other: &Self) -> bool {
        let inside = |one: &str, other: &str| format!("{one}/").starts_with(&format!("{other}/"));
        !self.path.is_empty()
            && !other.path.is_empty()
            && (self == other || inside(&other.path, &self.path) || inside(&self.path, &other.path))
    }
}

fn files(items: &Node<'_, '_>, source: &str) -> Vec<File> {
    items
        .items()
        .map(|item| File {
            path: item.text_of("path").trim_end_matches('/').to_owned(),
            source: source.to_owned(),
        })
        .collect()
}

fn overlapping_files(volume: &Node<'_, '_>, found: &mut Vec<String>) {
    let name = volume.text_of("name");
    let mut check_overlaps = |what: &str, files: Vec<File>, all: &mut Vec<File>| {
        for file in files {
            for other in all.iter().filter(|other| file.overlaps(other)) {
                found.push(format!(
                    "volume {} ({what}): overlapping paths: {} with {}",
                    quote(name),
                    file.text(),
                    other.text()
                ));
            }
            all.push(file);
        }
    };
    let config = volume.get("configMap");
    let what = format!("ConfigMap {}", quote(config.text_of("name")));
    check_overlaps(&what, files(&config.get("items"), ""), &mut Vec::new());
    let secret = volume.get("secret");
    let what = format!("Secret {}", quote(secret.text_of("secretName")));
    check_overlaps(&what, files(&secret.get("items"), ""), &mut Vec::new());
    let downward = volume.get("downwardAPI");
    check_overlaps("DownwardAPI", files(&downward.get("items"), ""), &mut Vec::new());
    let projected = volume.get("projected");
    let sources = projected.get("sources");
    let mut all = Vec::new();
    let mut empty = 0;
    for source in sources.items() {
        if source.len() == 0 {
            empty += 1;
            continue;
        }
        let found = projected_files(&source);
        check_overlaps("Projected", found, &mut all);
    }
    for _ in 0..empty {
        found.push(format!("volume {} (Projected) has no sources provided", quote(name)));
    }
}

fn projected_files(source: &Node<'_, '_>) -> Vec<File> {
    for (field, kind) in [("configMap", "ConfigMap"), ("secret", "Secret")] {
        let from = source.get(field);
        if from.get("items").is_set() {
            let what = format!("{kind} {}", quote(from.text_of("name")));
            return files(&from.get("items"), &what);
        }
    }
    let downward = source.get("downwardAPI");
    if downward.get("items").is_set() {
        return files(&downward.get("items"), "DownwardAPI");
    }
    let token = source.get("serviceAccountToken");
    if token.is_set() {
        let path = token.text_of("path").trim_end_matches('/').to_owned();
        return vec![File { path, source: "ServiceAccountToken".to_owned() }];
    }
    Vec::new()
}
