//! Warnings about valid but inadvisable objects, sent in `Warning` headers in the words of Kubernetes.

mod addresses;
mod pods;

use self::addresses::{address, network};
use super::rules::{Node, object_field, quantities};
use mainstay_object::{Object, names};
use serde_json::Value;

/// Texts of warnings.
type Warnings = Vec<String>;

const BETA_CLASS: &str = "volume.beta.kubernetes.io/storage-class";
const CLASS_DEPRECATED: &str = r#"deprecated since v1.8; use "storageClassName" attribute instead"#;

/// The warning about a deprecated node label.
fn deprecated_label(key: &str) -> Option<&'static str> {
    Some(match key {
        "beta.kubernetes.io/arch" => r#"deprecated since v1.14; use "kubernetes.io/arch" instead"#,
        "beta.kubernetes.io/os" => r#"deprecated since v1.14; use "kubernetes.io/os" instead"#,
        "failure-domain.beta.kubernetes.io/region" => {
            r#"deprecated since v1.17; use "topology.kubernetes.io/region" instead"#
        }
        "failure-domain.beta.kubernetes.io/zone" => {
            r#"deprecated since v1.17; use "topology.kubernetes.io/zone" instead"#
        }
        "beta.kubernetes.io/instance-type" => {
            r#"deprecated since v1.17; use "node.kubernetes.io/instance-type" instead"#
        }
        "app.kubernetes.io/created-by" => "deprecated since v1.9",
        "scheduler.alpha.kubernetes.io/preferAvoidPods" => {
            "deprecated since v1.22; use Taints and Tolerations instead"
        }
        "node-role.kubernetes.io/master" => {
            r#"use "node-role.kubernetes.io/control-plane" instead"#
        }
        _ => return None,
    })
}

/// Warnings about a node selector term; `values`: whether its values are checked.
fn node_term(term: &Node<'_, '_>, values: bool, warnings: &mut Warnings) {
    let expressions = term.get("matchExpressions");
    for expression in expressions.items() {
        let key = expression.get("key");
        if let Some(warning) = deprecated_label(key.text()) {
            warnings.push(format!("{}: {} is {warning}", key.path(), key.text()));
        }
        let list = expression.get("values");
        for value in list.items().filter(|_| values) {
            for problem in names::label_value(value.text()) {
                warnings.push(format!("{}: {} is invalid, {problem}", value.path(), value.text()));
            }
        }
    }
}

fn is_fraction(amount: &Value) -> bool {
    // Kubernetes compares thousandths, rounded up.
    let thousandths = (quantities::nano(amount) + 999_999).div_euclid(1_000_000);
    thousandths % 1000 != 0
}

/// Warns about a fractional number of bytes.
fn fractional_bytes_warning(at: &Node<'_, '_>, warnings: &mut Warnings) {
    if at.is_set() && is_fraction(at.value()) {
        warnings.push(format!(
            "{}: fractional byte value \"{}\" is invalid, must be an integer",
            at.path(),
            quantities::text(at.value())
        ));
    }
}

/// Warns about a name that is no DNS label but becomes a hostname.
fn hostname_warning(name: &str, what: &str, warnings: &mut Warnings) {
    let problems = names::dns1123_label(name);
    if !problems.is_empty() {
        warnings.push(format!(
            "metadata.name: this is used in {what}, which can result in surprising behavior; a DNS label is recommended: [{}]",
            problems.join(" ")
        ));
    }
}

/// Whether the object is new or its generation changed.
fn is_changed(object: &Object, old: Option<&Object>) -> bool {
    old.is_none_or(|old| old.generation() != object.generation())
}

pub(super) fn pod(object: &Object, old: Option<&Object>) -> Warnings {
    let mut warnings = Warnings::new();
    if old.is_none() {
        hostname_warning(object.name(), "the Pod's hostname", &mut warnings);
        let metadata = Node::top_level(object_field(object, "metadata"), "metadata");
        pods::pod(
            &metadata,
            &Node::top_level(object_field(object, "spec"), "spec"),
            None,
            &mut warnings,
        );
    }
    warnings
}

/// Warnings about a pod template.
fn template_warnings(template: &Node<'_, '_>, warnings: &mut Warnings) {
    pods::pod(&template.get("metadata"), &template.get("spec"), Some(template), warnings);
}

pub(super) fn pod_template(object: &Object, old: Option<&Object>) -> Warnings {
    let mut warnings = Warnings::new();
    if is_changed(object, old) {
        template_warnings(
            &Node::top_level(object_field(object, "template"), "template"),
            &mut warnings,
        );
    }
    warnings
}

/// Warnings about a workload whose name is not checked.
pub(super) fn workload(object: &Object, old: Option<&Object>) -> Warnings {
    let mut warnings = Warnings::new();
    if is_changed(object, old) {
        template_warnings(
            &Node::top_level(object_field(object, "spec"), "spec").get("template"),
            &mut warnings,
        );
    }
    warnings
}

pub(super) fn named_workload(object: &Object, old: Option<&Object>) -> Warnings {
    let mut warnings = Warnings::new();
    if old.is_none() {
        hostname_warning(object.name(), "Pod names and hostnames", &mut warnings);
    }
    warnings.extend(workload(object, old));
    warnings
}

pub(super) fn stateful_set(object: &Object, old: Option<&Object>) -> Warnings {
    let mut warnings = workload(object, old);
    let spec = Node::top_level(object_field(object, "spec"), "spec");
    let claims = spec.get("volumeClaimTemplates");
    for claim in claims.items() {
        // Kubernetes uses another path for updates.
        let claim_spec = claim.value().get("spec").unwrap_or(&Value::Null);
        if old.is_none() {
            claim_size_warnings(&claim, claim_spec, &mut warnings);
        } else {
            claim_size_warnings(
                &claim.child_with_value("Spec", claim_spec),
                claim_spec,
                &mut warnings,
            );
        }
    }
    if spec.number_of("revisionHistoryLimit").is_some_and(|limit| limit < 0) {
        warnings.push("spec.revisionHistoryLimit: a negative value retains all historical revisions; a value >= 0 is recommended".to_owned());
    }
    warnings
}

/// Warnings about the size of a claim; `at` has the path that Kubernetes reports.
fn claim_size_warnings(at: &Node<'_, '_>, spec: &Value, warnings: &mut Warnings) {
    let resources = at.child_with_value("resources", spec.get("resources").unwrap_or(&Value::Null));
    for side in ["requests", "limits"] {
        let side = resources.get(side);
        fractional_bytes_warning(&side.key("storage"), warnings);
    }
}

fn job_spec_warnings(spec: &Node<'_, '_>, warnings: &mut Warnings) {
    let exceeds = |key: &str, max: i64| spec.number_of(key).is_some_and(|number| number > max);
    if spec.text_of("completionMode") == "Indexed"
        && exceeds("completions", 100_000)
        && exceeds("parallelism", 10_000)
    {
        warnings.push(format!("{}: In Indexed Jobs with a number of completions higher than 10^5 and a parallelism higher than 10^4, Kubernetes might not be able to track completedIndexes when a big number of indexes fail", spec.path()));
    }
    template_warnings(&spec.get("template"), warnings);
}

pub(super) fn job(object: &Object, old: Option<&Object>) -> Warnings {
    let mut warnings = Warnings::new();
    if old.is_none() {
        hostname_warning(object.name(), "Pod names and hostnames", &mut warnings);
    }
    if is_changed(object, old) {
        job_spec_warnings(&Node::top_level(object_field(object, "spec"), "spec"), &mut warnings);
    }
    warnings
}

pub(super) fn cron_job(object: &Object, old: Option<&Object>) -> Warnings {
    let mut warnings = Warnings::new();
    let spec = Node::top_level(object_field(object, "spec"), "spec");
    if old.is_none() {
        hostname_warning(object.name(), "Pod names and hostnames", &mut warnings);
    }
    if is_changed(object, old) {
        job_spec_warnings(&spec.get("jobTemplate").get("spec"), &mut warnings);
    }
    if old.is_some() && spec.text_of("schedule").contains("TZ") {
        warnings.push("cannot use TZ or CRON_TZ in spec.spec.schedule, use timeZone instead, see https://kubernetes.io/docs/concepts/workloads/controllers/cron-jobs/ for more details".to_owned());
    }
    warnings
}

pub(super) fn service(object: &Object, _old: Option<&Object>) -> Warnings {
    const HINTS: &str = "service.kubernetes.io/topology-aware-hints";
    const MODE: &str = "service.kubernetes.io/topology-mode";
    let mut warnings = Warnings::new();
    let spec = Node::top_level(object_field(object, "spec"), "spec");
    let kind = spec.text_of("type");
    if object.annotation(HINTS).is_some() {
        warnings.push(format!("annotation {HINTS} is deprecated, please use {MODE} instead"));
    }
    let external = spec.get("externalIPs");
    if !matches!(spec.text_of("clusterIP"), "" | "None") {
        let addresses = spec.get("clusterIPs");
        addresses.items().for_each(|node| address(&node, &mut warnings));
    }
    if kind == "ClusterIP" && spec.text_of("clusterIP") == "None" {
        if !spec.text_of("loadBalancerIP").is_empty() {
            warnings.push("spec.loadBalancerIP is ignored for headless services".to_owned());
        }
        if external.len() > 0 {
            warnings.push("spec.externalIPs is ignored for headless services".to_owned());
        }
        if spec.text_of("sessionAffinity") != "None" {
            warnings.push("spec.SessionAffinity is ignored for headless services".to_owned());
        }
    }
    external.items().for_each(|node| address(&node, &mut warnings));
    if !spec.text_of("loadBalancerIP").is_empty() {
        address(&spec.get("loadBalancerIP"), &mut warnings);
    }
    let ranges = spec.get("loadBalancerSourceRanges");
    ranges.items().for_each(|node| network(&node, &mut warnings));
    if kind == "ExternalName" && external.len() > 0 {
        warnings.push("spec.externalIPs is ignored when spec.type is \"ExternalName\"".to_owned());
    }
    if kind != "ExternalName" && !spec.text_of("externalName").is_empty() {
        warnings
            .push("spec.externalName is ignored when spec.type is not \"ExternalName\"".to_owned());
    }
    if spec.text_of("trafficDistribution") == "PreferClose" {
        warnings.push(
            "spec.trafficDistribution: \"PreferClose\" is deprecated; use \"PreferSameZone\""
                .to_owned(),
        );
    }
    warnings
}

pub(super) fn service_account(object: &Object, old: Option<&Object>) -> Warnings {
    const ENFORCE: &str = "kubernetes.io/enforce-mountable-secrets";
    let is_set_already = old.is_some_and(|old| old.annotation(ENFORCE).is_some());
    if is_set_already || object.annotation(ENFORCE).is_none() {
        return Warnings::new();
    }
    vec![format!(
        "metadata.annotations[{ENFORCE}]: deprecated in v1.32+; prefer separate namespaces to isolate access to mounted secrets"
    )]
}

/// Warnings about a TLS Secret.
pub(super) fn secret(object: &Object, _old: Option<&Object>) -> Warnings {
    if object.str(&["type"]) != Some("kubernetes.io/tls") {
        return Warnings::new();
    }
    let data = object_field(object, "data");
    super::certificates::key_pair_problem(data).into_iter().collect()
}

pub(super) fn node(object: &Object, _old: Option<&Object>) -> Warnings {
    let mut warnings = Warnings::new();
    let spec = Node::top_level(object_field(object, "spec"), "spec");
    if spec.has("configSource") {
        warnings.push("spec.configSource: the feature is removed".to_owned());
    }
    if !spec.text_of("externalID").is_empty() {
        warnings.push(
            "spec.externalID: this field is deprecated, and is unused by Kubernetes".to_owned(),
        );
    }
    let networks = spec.get("podCIDRs");
    networks.items().for_each(|node| network(&node, &mut warnings));
    warnings
}

pub(super) fn endpoints(object: &Object, _old: Option<&Object>) -> Warnings {
    let mut warnings = Warnings::new();
    if object.label("endpoints.kubernetes.io/managed-by") == Some("endpoint-controller") {
        return warnings;
    }
    let subsets = Node::top_level(object_field(object, "subsets"), "subsets");
    for subset in subsets.items() {
        for list in ["addresses", "notReadyAddresses"] {
            let list = subset.get(list);
            list.items().for_each(|node| address(&node.get("ip"), &mut warnings));
        }
    }
    warnings
}

pub(super) fn endpoint_slice(object: &Object, old: Option<&Object>) -> Warnings {
    let mut warnings = Warnings::new();
    if old.is_none() && object.str(&["addressType"]) == Some("FQDN") {
        warnings.push("spec.addressType: FQDN endpoints are deprecated".to_owned());
    }
    let manager = object.label("endpointslice.kubernetes.io/managed-by").unwrap_or_default();
    if matches!(
        manager,
        "endpointslice-controller.k8s.io" | "endpointslicemirroring-controller.k8s.io"
    ) {
        return warnings;
    }
    let endpoints = Node::top_level(object_field(object, "endpoints"), "endpoints");
    for endpoint in endpoints.items() {
        let list = endpoint.get("addresses");
        list.items().for_each(|node| address(&node, &mut warnings));
    }
    warnings
}

pub(super) fn network_policy(object: &Object, _old: Option<&Object>) -> Warnings {
    let mut warnings = Warnings::new();
    let spec = Node::top_level(object_field(object, "spec"), "spec");
    for (direction, peers) in [("ingress", "from"), ("egress", "to")] {
        let rules = spec.get(direction);
        for rule in rules.items() {
            let peers = rule.get(peers);
            for peer in peers.items() {
                let block = peer.get("ipBlock");
                if !block.is_set() {
                    continue;
                }
                network(&block.get("cidr"), &mut warnings);
                let except = block.get("except");
                except.items().for_each(|node| network(&node, &mut warnings));
            }
        }
    }
    warnings
}

pub(super) fn ingress(object: &Object, old: Option<&Object>) -> Warnings {
    const CLASS: &str = "kubernetes.io/ingress.class";
    let has_class =
        object_field(object, "spec").get("ingressClassName").is_some_and(|class| !class.is_null());
    if old.is_some() || has_class || object.annotation(CLASS).is_none() {
        return Warnings::new();
    }
    vec![format!("annotation {CLASS:?} is deprecated, please use 'spec.ingressClassName' instead")]
}

pub(super) fn volume(object: &Object, _old: Option<&Object>) -> Warnings {
    const SOURCES: [(&str, &str, &str); 6] = [
        ("cephfs", "cephfs", "deprecated in v1.28, non-functional in v1.31+"),
        (
            "photonPersistentDisk",
            "photonPersistentDisk",
            "deprecated in v1.11, non-functional in v1.16+",
        ),
        ("scaleIO", "scaleIO", "deprecated in v1.16, non-functional in v1.22+"),
        ("storageos", "storageOS", "deprecated in v1.22, non-functional in v1.25+"),
        ("glusterfs", "glusterfs", "deprecated in v1.25, non-functional in v1.26+"),
        ("rbd", "rbd", "deprecated in v1.28, non-functional in v1.31+"),
    ];
    let mut warnings = Warnings::new();
    for (key, warning) in [
        (BETA_CLASS, CLASS_DEPRECATED),
        (
            "volume.beta.kubernetes.io/mount-options",
            r#"deprecated since v1.31; use "mountOptions" attribute instead"#,
        ),
    ] {
        if object.annotation(key).is_some() {
            warnings.push(format!("metadata.annotations[{key}]: {warning}"));
        }
    }
    let spec = Node::top_level(object_field(object, "spec"), "spec");
    if spec.text_of("persistentVolumeReclaimPolicy") == "Recycle" {
        warnings.push("spec.persistentVolumeReclaimPolicy: The Recycle reclaim policy is deprecated. Instead, the recommended approach is to use dynamic provisioning.".to_owned());
    }
    let affinity = spec.get("nodeAffinity");
    let required = affinity.get("required");
    let terms = required.get("nodeSelectorTerms");
    terms.items().for_each(|term| node_term(&term, false, &mut warnings));
    for (field, path_name, warning) in SOURCES {
        if spec.has(field) {
            warnings.push(format!("spec.{path_name}: {warning}"));
        }
    }
    warnings
}

pub(super) fn claim(object: &Object, _old: Option<&Object>) -> Warnings {
    let mut warnings = Warnings::new();
    if object.annotation(BETA_CLASS).is_some() {
        warnings.push(format!("metadata.annotations[{BETA_CLASS}]: {CLASS_DEPRECATED}"));
    }
    let spec = Node::top_level(object_field(object, "spec"), "spec");
    claim_size_warnings(&spec, spec.value(), &mut warnings);
    warnings
}

pub(super) fn storage_class(object: &Object, _old: Option<&Object>) -> Warnings {
    let mut warnings = Warnings::new();
    let terms = Node::top_level(object_field(object, "allowedTopologies"), "allowedTopologies");
    for term in terms.items() {
        let expressions = term.get("matchLabelExpressions");
        for expression in expressions.items() {
            let key = expression.get("key");
            if let Some(warning) = deprecated_label(key.text()) {
                warnings.push(format!("{}: {warning}", key.path()));
            }
        }
    }
    warnings
}

pub(super) fn runtime_class(object: &Object, _old: Option<&Object>) -> Warnings {
    let scheduling = Node::top_level(object_field(object, "scheduling"), "scheduling");
    let selector = scheduling.get("nodeSelector");
    let keys = selector.map().into_iter().flatten();
    keys.filter_map(|(key, _)| deprecated_label(key))
        .map(|warning| format!("scheduling.nodeSelector: {warning}"))
        .collect()
}

/// Warnings about a status: addresses that are not canonical.
pub(super) fn status(object: &Object) -> Warnings {
    let mut warnings = Warnings::new();
    let status = Node::top_level(object_field(object, "status"), "status");
    match object.kind() {
        "Pod" => {
            for list in ["podIPs", "hostIPs"] {
                let list = status.get(list);
                list.items().for_each(|node| address(&node.get("ip"), &mut warnings));
            }
        }
        "Service" | "Ingress" => {
            let balancer = status.get("loadBalancer");
            let ingress = balancer.get("ingress");
            for point in ingress.items().filter(|point| !point.text_of("ip").is_empty()) {
                // Kubernetes omits the field from this path.
                addresses::address_at(&point.path(), point.text_of("ip"), &mut warnings);
            }
        }
        _ => {}
    }
    warnings
}
