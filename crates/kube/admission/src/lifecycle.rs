//! `NamespaceLifecycle`: refuses creations in a missing or terminating namespace, and the deletion of
//! system namespaces.

use super::{ADMITTED, AdmissionAttributes, AdmissionDecision, Operation, Plugin};
use mainstay_kinds::KindRow;
use mainstay_object::Status;

/// The namespaces of every cluster. They may not be deleted: they contain the cluster's own objects
/// and are created at start only. (Kubernetes lets `kube-node-lease` go and creates it again.)
pub const SYSTEM_NAMESPACES: [&str; 4] =
    ["default", "kube-node-lease", "kube-public", "kube-system"];

pub(super) struct NamespaceLifecycle;

fn is_namespace(row: &KindRow) -> bool {
    &*row.storage == "namespaces"
}

impl Plugin for NamespaceLifecycle {
    fn handles(&self, attributes: &AdmissionAttributes<'_>) -> bool {
        match attributes.operation {
            Operation::Create => {
                // The review answers for a missing namespace too; a 404 would reveal its absence.
                !attributes.namespace.is_empty()
                    && !is_namespace(attributes.row)
                    && &*attributes.row.kind != "LocalSubjectAccessReview"
            }
            Operation::Delete => is_namespace(attributes.row),
            Operation::Update | Operation::Connect => false,
        }
    }

    fn admit<'a>(&'a self, attributes: &'a mut AdmissionAttributes<'_>) -> AdmissionDecision<'a> {
        if attributes.operation == Operation::Delete {
            if SYSTEM_NAMESPACES.contains(&attributes.name) {
                let message = "this namespace may not be deleted";
                return AdmissionDecision::Ready(Err(attributes.forbidden(message)));
            }
            return ADMITTED;
        }
        let namespace = attributes.namespace;
        match attributes.admission.store.find("namespaces", "", namespace) {
            None => AdmissionDecision::Ready(Err(Status::not_found("", "namespaces", namespace))),
            Some(found) if found.terminating => {
                let message = format!(
                    "unable to create new content in namespace {namespace} because it is being terminated"
                );
                AdmissionDecision::Ready(Err(attributes.forbidden(&message).with_cause(
                    "NamespaceTerminating",
                    format!("namespace {namespace} is being terminated"),
                    "metadata.namespace",
                )))
            }
            Some(_) => ADMITTED,
        }
    }
}
