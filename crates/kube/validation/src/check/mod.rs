//! Validation of built-in kinds, with the errors of Kubernetes in their order.
//!
//! The rules of a kind are tables and functions ([`super::rules`]). Paths, texts, order and repeated
//! errors are those of Kubernetes, even where a path looks odd: clients and their tests rely on them.
//!
//! | File | Kinds |
//! |---|---|
//! | `pod/` | Pods and pod templates |
//! | `workloads`, `batch`, `autoscaling` | workloads, Jobs and CronJobs, `HorizontalPodAutoscalers` |
//! | `core`, `quota` | ConfigMaps, Secrets, Namespaces, Nodes, Events, Leases; `ResourceQuotas`, `LimitRanges` |
//! | `services`, `slices`, `network` | Services, EndpointSlices, Ingresses, NetworkPolicies |
//! | `storage` | volumes, claims, `StorageClasses`, CSI drivers |
//! | `access`, `admission`, `policies`, `flow` | RBAC, webhooks, admission policies, `FlowSchemas` |
//! | `signing`, `reviews`, `other_kinds` | `CertificateSigningRequests`, access reviews; the rest |

mod access;
mod admission;
mod autoscaling;
mod batch;
mod core;
mod flow;
mod network;
mod other_kinds;
mod pod;
mod policies;
mod quota;
mod reviews;
mod schedule;
mod services;
mod signing;
mod slices;
mod storage;
mod volume_sources;
mod workloads;

pub(super) use self::access::{
    BINDING, CLUSTER_BINDING, CLUSTER_ROLE, ROLE, binding_update, cluster_binding_update,
};
pub(super) use self::admission::{webhooks, webhooks_update};
pub(super) use self::autoscaling::{autoscaler, autoscaler_status, autoscaler_update};
pub(super) use self::batch::{cron_job, cron_job_update, job, job_update};
pub(super) use self::core::{
    ENDPOINTS, LEASE, NAMESPACE, config_map, config_map_update, endpoints_update, event,
    namespace_finalize, namespace_status, new_event, new_event_update, node, node_changes,
    node_update, pod_security, secret, secret_update,
};
pub(super) use self::flow::{
    default_flow_schema, default_priority_level, flow_schema, flow_schema_update, flow_status,
    priority_level, priority_level_update,
};
pub(super) use self::network::{
    INGRESS, INGRESS_CLASS, IP_ADDRESS, NETWORK_POLICY, SERVICE_CIDR, ingress,
    ingress_class_update, ip_address_update, service_cidr_update,
};
pub(super) use self::other_kinds::{
    RUNTIME_CLASS, api_service, api_service_status, api_service_update, priority_class,
    priority_class_update, runtime_class_update,
};
pub(super) use self::pod::{APP_ARMOR, pod, pod_status_update, pod_update};
pub(super) use self::policies::{
    POLICY_BINDING, mutating_binding, mutating_binding_update, mutating_policy,
    mutating_policy_update, policy_binding_update, validating_policy, validating_policy_update,
};
pub(super) use self::quota::{LIMITS, QUOTA, quota_update};
pub use self::reviews::access_review;
pub(super) use self::services::{
    ingress_status, service, service_addresses, service_status, service_update,
};
pub(super) use self::signing::{
    signing_request, signing_request_approval, signing_request_status, signing_request_update,
};
pub(super) use self::slices::{slice, slice_update};
pub(super) use self::storage::{
    ATTRIBUTES_CLASS, CAPACITY, CLAIM, CSI_NODE, DRIVER, STORAGE_CLASS, VOLUME,
    attributes_class_update, capacity_update, claim_update, class_update, driver_update,
    volume_update,
};
pub(super) use self::workloads::{
    DAEMON_SET, DEPLOYMENT, DISRUPTION_BUDGET, POD_TEMPLATE, REPLICA_SET, REPLICATION_CONTROLLER,
    REVISION, STATEFUL_SET, daemon_set_status, daemon_set_update, deployment_status,
    deployment_update, disruption_budget_status, replica_set_update, replica_status,
    revision_update, stateful_set_status, stateful_set_update,
};

use super::rules::{Errors, IMMUTABLE, Node, object_field};
use mainstay_object::names;

/// The format of a path segment, such as a kind or a name.
fn path_name(name: &str) -> Vec<String> {
    names::path_segment(name)
}

/// The application protocol of a port.
fn app_protocol(node: &Node<'_, '_>, errors: &mut Errors) {
    if node.is_set() {
        errors.add_problems(node, node.text(), names::qualified_name(node.text()));
    }
}

/// A domain-prefixed path: `acme.io/foo`.
fn domain_path(node: &Node<'_, '_>, errors: &mut Errors) {
    let text = node.text();
    if text.is_empty() {
        errors.required(node, "");
        return;
    }
    let Some((host, path)) = text.split_once('/').filter(|(a, b)| !a.is_empty() && !b.is_empty())
    else {
        errors.invalid_value(node, "must be a domain-prefixed path (such as \"acme.io/foo\")");
        return;
    };
    errors.add_problems(node, host, names::dns1123_subdomain(host));
    let letter = |b: u8| b.is_ascii_alphanumeric() || b"/-._~%!$&'()*+,;=:".contains(&b);
    if !path.bytes().all(letter) {
        let detail =
            "Invalid path (regex used for validation is '[A-Za-z0-9/\\-._~%!$&'()*+,;=:]+')";
        errors.invalid(node, path, detail);
    }
}

/// A domain of at least two labels.
fn full_domain(node: &Node<'_, '_>, errors: &mut Errors) {
    let text = node.text();
    if text.is_empty() {
        errors.required(node, "");
        return;
    }
    let name = text.strip_suffix('.').unwrap_or(text);
    let problems = names::dns1123_subdomain(name);
    if !problems.is_empty() {
        errors.invalid(node, name, problems.join(","));
    } else if name.split('.').count() < 2 {
        let detail = "should be a domain with at least two segments separated by dots";
        errors.invalid(node, name, detail);
    } else {
        for label in name.split('.') {
            let problems = names::dns1123_label(label);
            if !problems.is_empty() {
                errors.invalid(node, label, problems.join(","));
            }
        }
    }
}
