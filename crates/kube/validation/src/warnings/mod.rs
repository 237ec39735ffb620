//! What is allowed but unwise: said to the client in `Warning` headers, in the original's words.

mod addresses;
mod pods;

use self::addresses::{address, network};
use super::rules::{Node, amounts, view};
use mainstay_object::{Object, names};
use serde_json::Value;

/// What to say.
type Warnings = Vec<String>;

const BETA_CLASS: &str = "volume.beta.kubernetes.io/storage-class";
const CLASS_DEPRECATED: &str = r#"deprecated since v1.8; use "storageClassName" attribute instead"#;

/// Why a label of nodes should not be used any more.
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

/// A term that selects nodes; `values` says whether its values are looked at too.
fn node_term(term: &Node<'_, '_>, values: bool, found: &mut Warnings) {
    let expressions = term.get("matchExpressions");
    for expression in expressions.items() {
        let key = expression.get("key");
        if let Some(why) = deprecated_label(key.text()) {
            found.push(format!("{}: {} is {why}", key.path(), key.text()));
        }
        let list = expression.get("values");
        for value in list.items().filter(|_| values) {
            for problem in names::label_value(value.text()) {
                found.push(format!("{}: {} is invalid, {problem}", value.path(), value.text()));
            }
        }
    }
}

fn is_fraction(amount: &Value) -> bool {
    // The original looks at thousandths, rounded up.
    let thousandths = (amounts::nano(amount) + 999_999).div_euclid(1_000_000);
    thousandths % 1000 != 0
}

/// Bytes that are not whole.
fn fraction(at: &Node<'_, '_>, found: &mut Warnings) {
    if at.is_set() && is_fraction(at.value()) {
        found.push(format!(
            "{}: fractional byte value \"{}\" is invalid, must be an integer",
            at.path(),
            amounts::text(at.value())
        ));
    }
}

/// What to say of a name that becomes a host name.
fn host_name(name: &str, what: &str, found: &mut Warnings) {
    let problems = names::dns1123_label(name);
    if !problems.is_empty() {
        found.push(format!(
            "metadata.name: this is used in {what}, which can result in surprising behavior; a DNS label is recommended: [{}]",
            problems.join(" ")
        ));
    }
}

/// Whether what is wanted has changed, or the object is new.
fn is_changed(object: &Object, old: Option<&Object>) -> bool {
    old.is_none_or(|old| old.generation() != object.generation())
}

pub(super) fn pod(object: &Object, old: Option<&Object>) -> Warnings {
    let mut found = Warnings::new();
    if old.is_none() {
        host_name(object.name(), "the Pod's hostname", &mut found);
        let metadata = Node::top(view(object, "metadata"), "metadata");
        pods::pod(&metadata, &Node::top(view(object, "spec"), "spec"), None, &mut found);
    }
    found
}

/// A template at a place; its metadata is named as that of its pods.
fn template(template: &Node<'_, '_>, found: &mut Warnings) {
    pods::pod(&template.get("metadata"), &template.get("spec"), Some(template), found);
}

pub(super) fn pod_template(object: &Object, old: Option<&Object>) -> Warnings {
    let mut found = Warnings::new();
    if is_changed(object, old) {
        template(&Node::top(view(object, "template"), "template"), &mut found);
    }
    found
}

/// A workload whose name does not become part of host names, or is not looked at.
pub(super) fn workload(object: &Object, old: Option<&Object>) -> Warnings {
    let mut found = Warnings::new();
    if is_changed(object, old) {
        template(&Node::top(view(object, "spec"), "spec").get("template"), &mut found);
    }
    found
}

pub(super) fn named_workload(object: &Object, old: Option<&Object>) -> Warnings {
    let mut found = Warnings::new();
    if old.is_none() {
        host_name(object.name(), "Pod names and hostnames", &mut found);
    }
    found.extend(workload(object, old));
    found
}

pub(super) fn stateful_set(object: &Object, old: Option<&Object>) -> Warnings {
    let mut found = workload(object, old);
    let spec = Node::top(view(object, "spec"), "spec");
    let claims = spec.get("volumeClaimTemplates");
    for claim in claims.items() {
        // The original has two paths for the same thing.
        let wanted = claim.value().get("spec").unwrap_or(&Value::Null);
        if old.is_none() {
            claim_amounts(&claim, wanted, &mut found);
        } else {
            claim_amounts(&claim.named("Spec", wanted), wanted, &mut found);
        }
    }
    if spec.number_of("revisionHistoryLimit").is_some_and(|limit| limit < 0) {
        found.push("spec.revisionHistoryLimit: a negative value retains all historical revisions; a value >= 0 is recommended".to_owned());
    }
    found
}

/// What is wanted of a volume; `at` is where the original says it stands.
fn claim_amounts(at: &Node<'_, '_>, spec: &Value, found: &mut Warnings) {
    let resources = at.named("resources", spec.get("resources").unwrap_or(&Value::Null));
    for side in ["requests", "limits"] {
        let side = resources.get(side);
        fraction(&side.key("storage"), found);
    }
}

fn job_spec(spec: &Node<'_, '_>, found: &mut Warnings) {
    let more = |key: &str, most: i64| spec.number_of(key).is_some_and(|number| number > most);
    if spec.text_of("completionMode") == "Indexed"
        && more("completions", 100_000)
        && more("parallelism", 10_000)
    {
        found.push(format!("{}: In Indexed Jobs with a number of completions higher than 10^5 and a parallelism higher than 10^4, Kubernetes might not be able to track completedIndexes when a big number of indexes fail", spec.path()));
    }
    template(&spec.get("template"), found);
}

pub(super) fn job(object: &Object, old: Option<&Object>) -> Warnings {
    let mut found = Warnings::new();
    if old.is_none() {
        host_name(object.name(), "Pod names and hostnames", &mut found);
    }
    if is_changed(object, old) {
        job_spec(&Node::top(view(object, "spec"), "spec"), &mut found);
    }
    found
}

pub(super) fn cron_job(object: &Object, old: Option<&Object>) -> Warnings {
    let mut found = Warnings::new();
    let spec = Node::top(view(object, "spec"), "spec");
    if old.is_none() {
        host_name(object.name(), "Pod names and hostnames", &mut found);
    }
    if is_changed(object, old) {
        job_spec(&spec.get("jobTemplate").get("spec"), &mut found);
    }
    if old.is_some() && spec.text_of("schedule").contains("TZ") {
        found.push("cannot use TZ or CRON_TZ in spec.spec.schedule, use timeZone instead, see https://kubernetes.io/docs/concepts/workloads/controllers/cron-jobs/ for more details".to_owned());
    }
    found
}

pub(super) fn service(object: &Object, _old: Option<&Object>) -> Warnings {
    const HINTS: &str = "service.kubernetes.io/topology-aware-hints";
    const MODE: &str = "service.kubernetes.io/topology-mode";
    let mut found = Warnings::new();
    let spec = Node::top(view(object, "spec"), "spec");
    let kind = spec.text_of("type");
    if object.annotation(HINTS).is_some() {
        found.push(format!("annotation {HINTS} is deprecated, please use {MODE} instead"));
    }
    let external = spec.get("externalIPs");
    if !matches!(spec.text_of("clusterIP"), "" | "None") {
        let addresses = spec.get("clusterIPs");
        addresses.items().for_each(|one| address(&one, &mut found));
    }
    if kind == "ClusterIP" && spec.text_of("clusterIP") == "None" {
        if !spec.text_of("loadBalancerIP").is_empty() {
            found.push("spec.loadBalancerIP is ignored for headless services".to_owned());
        }
        if external.len() > 0 {
            found.push("spec.externalIPs is ignored for headless services".to_owned());
        }
        if spec.text_of("sessionAffinity") != "None" {
            found.push("spec.SessionAffinity is ignored for headless services".to_owned());
        }
    }
    external.items().for_each(|one| address(&one, &mut found));
    if !spec.text_of("loadBalancerIP").is_empty() {
        address(&spec.get("loadBalancerIP"), &mut found);
    }
    let ranges = spec.get("loadBalancerSourceRanges");
    ranges.items().for_each(|one| network(&one, &mut found));
    if kind == "ExternalName" && external.len() > 0 {
        found.push("spec.externalIPs is ignored when spec.type is \"ExternalName\"".to_owned());
    }
    if kind != "ExternalName" && !spec.text_of("externalName").is_empty() {
        found
            .push("spec.externalName is ignored when spec.type is not \"ExternalName\"".to_owned());
    }
    if spec.text_of("trafficDistribution") == "PreferClose" {
        found.push(
            "spec.trafficDistribution: \"PreferClose\" is deprecated; use \"PreferSameZone\""
                .to_owned(),
        );
    }
    found
}

pub(super) fn service_account(object: &Object, old: Option<&Object>) -> Warnings {
    const ENFORCE: &str = "kubernetes.io/enforce-mountable-secrets";
    let known = old.is_some_and(|old| old.annotation(ENFORCE).is_some());
    if known || object.annotation(ENFORCE).is_none() {
        return Warnings::new();
    }
    vec![format!(
        "metadata.annotations[{ENFORCE}]: deprecated in v1.32+; prefer separate namespaces to isolate access to mounted secrets"
    )]
}

/// A certificate and a key that do not belong together.
pub(super) fn secret(object: &Object, _old: Option<&Object>) -> Warnings {
    if object.str(&["type"]) != Some("kubernetes.io/tls") {
        return Warnings::new();
    }
    let data = view(object, "data");
    super::certificates::pair_problem(data).into_iter().collect()
}

pub(super) fn node(object: &Object, _old: Option<&Object>) -> Warnings {
    let mut found = Warnings::new();
    let spec = Node::top(view(object, "spec"), "spec");
    if spec.has("configSource") {
        found.push("spec.configSource: the feature is removed".to_owned());
    }
    if !spec.text_of("externalID").is_empty() {
        found.push(
            "spec.externalID: this field is deprecated, and is unused by Kubernetes".to_owned(),
        );
    }
    let networks = spec.get("podCIDRs");
    networks.items().for_each(|one| network(&one, &mut found));
    found
}

pub(super) fn endpoints(object: &Object, _old: Option<&Object>) -> Warnings {
    let mut found = Warnings::new();
    if object.label("endpoints.kubernetes.io/managed-by") == Some("endpoint-controller") {
        return found;
    }
    let subsets = Node::top(view(object, "subsets"), "subsets");
    for subset in subsets.items() {
        for list in ["addresses", "notReadyAddresses"] {
            let list = subset.get(list);
            list.items().for_each(|one| address(&one.get("ip"), &mut found));
        }
    }
    found
}

pub(super) fn endpoint_slice(object: &Object, old: Option<&Object>) -> Warnings {
    let mut found = Warnings::new();
    if old.is_none() && object.str(&["addressType"]) == Some("FQDN") {
        found.push("spec.addressType: FQDN endpoints are deprecated".to_owned());
    }
    let manager = object.label("endpointslice.kubernetes.io/managed-by").unwrap_or_default();
    if matches!(
        manager,
        "endpointslice-controller.k8s.io" | "endpointslicemirroring-controller.k8s.io"
    ) {
        return found;
    }
    let endpoints = Node::top(view(object, "endpoints"), "endpoints");
    for endpoint in endpoints.items() {
        let list = endpoint.get("addresses");
        list.items().for_each(|one| address(&one, &mut found));
    }
    found
}

pub(super) fn network_policy(object: &Object, _old: Option<&Object>) -> Warnings {
    let mut found = Warnings::new();
    let spec = Node::top(view(object, "spec"), "spec");
    for (direction, peers) in [("ingress", "from"), ("egress", "to")] {
        let rules = spec.get(direction);
        for rule in rules.items() {
            let peers = rule.get(peers);
            for peer in peers.items() {
                let block = peer.get("ipBlock");
                if !block.is_set() {
                    continue;
                }
                network(&block.get("cidr"), &mut found);
                let except = block.get("except");
                except.items().for_each(|one| network(&one, &mut found));
            }
        }
    }
    found
}

pub(super) fn ingress(object: &Object, old: Option<&Object>) -> Warnings {
    const CLASS: &str = "kubernetes.io/ingress.class";
    let named = view(object, "spec").get("ingressClassName").is_some_and(|class| !class.is_null());
    if old.is_some() || named || object.annotation(CLASS).is_none() {
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
    let mut found = Warnings::new();
    for (key, why) in [
        (BETA_CLASS, CLASS_DEPRECATED),
        (
            "volume.beta.kubernetes.io/mount-options",
            r#"deprecated since v1.31; use "mountOptions" attribute instead"#,
        ),
    ] {
        if object.annotation(key).is_some() {
            found.push(format!("metadata.annotations[{key}]: {why}"));
        }
    }
    let spec = Node::top(view(object, "spec"), "spec");
    if spec.text_of("persistentVolumeReclaimPolicy") == "Recycle" {
        found.push("spec.persistentVolumeReclaimPolicy: The Recycle reclaim policy is deprecated. Instead, the recommended approach is to use dynamic provisioning.".to_owned());
    }
    let affinity = spec.get("nodeAffinity");
    let required = affinity.get("required");
    let terms = required.get("nodeSelectorTerms");
    terms.items().for_each(|term| node_term(&term, false, &mut found));
    for (field, shown, why) in SOURCES {
        if spec.has(field) {
            found.push(format!("spec.{shown}: {why}"));
        }
    }
    found
}

pub(super) fn claim(object: &Object, _old: Option<&Object>) -> Warnings {
    let mut found = Warnings::new();
    if object.annotation(BETA_CLASS).is_some() {
        found.push(format!("metadata.annotations[{BETA_CLASS}]: {CLASS_DEPRECATED}"));
    }
    let spec = Node::top(view(object, "spec"), "spec");
    claim_amounts(&spec, spec.value(), &mut found);
    found
}

pub(super) fn storage_class(object: &Object, _old: Option<&Object>) -> Warnings {
    let mut found = Warnings::new();
    let terms = Node::top(view(object, "allowedTopologies"), "allowedTopologies");
    for term in terms.items() {
        let expressions = term.get("matchLabelExpressions");
        for expression in expressions.items() {
            let key = expression.get("key");
            if let Some(why) = deprecated_label(key.text()) {
                found.push(format!("{}: {why}", key.path()));
            }
        }
    }
    found
}

pub(super) fn runtime_class(object: &Object, _old: Option<&Object>) -> Warnings {
    let scheduling = Node::top(view(object, "scheduling"), "scheduling");
    let selector = scheduling.get("nodeSelector");
    let keys = selector.map().into_iter().flatten();
    keys.filter_map(|(key, _)| deprecated_label(key))
        .map(|why| format!("scheduling.nodeSelector: {why}"))
        .collect()
}

/// What is unwise in a status: addresses that are not in their one form.
pub(super) fn status(object: &Object) -> Warnings {
    let mut found = Warnings::new();
    let status = Node::top(view(object, "status"), "status");
    match object.kind() {
        "Pod" => {
            for list in ["podIPs", "hostIPs"] {
                let list = status.get(list);
                list.items().for_each(|one| address(&one.get("ip"), &mut found));
            }
        }
        "Service" | "Ingress" => {
            let balancer = status.get("loadBalancer");
            let ingress = balancer.get("ingress");
            for point in ingress.items().filter(|point| !point.text_of("ip").is_empty()) {
                // The original leaves the field out of this path.
                addresses::address_at(&point.path(), point.text_of("ip"), &mut found);
            }
        }
        _ => {}
    }
    found
}
