//! `NamespaceLifecycle`: nothing is made in a namespace that is not there, or that goes; and the
//! namespaces that every cluster has stay.

use super::{ADMITTED, Attributes, Operation, Plugin, Verdict};
use mainstay_kinds::KindRow;
use mainstay_object::Status;

/// The namespaces of every cluster. Nobody may delete them: what runs the cluster lives there, and
/// they are made at start only. (The original lets `kube-node-lease` go, and makes it again.)
pub const SYSTEM_NAMESPACES: [&str; 4] =
    ["default", "kube-node-lease", "kube-public", "kube-system"];

pub(super) struct NamespaceLifecycle;

fn is_namespace(row: &KindRow) -> bool {
    &*row.storage == "namespaces"
}

impl Plugin for NamespaceLifecycle {
    fn handles(&self, attributes: &Attributes<'_>) -> bool {
        match attributes.operation {
            Operation::Create => {
                // Telling that there is no such namespace would tell too much.
                !attributes.namespace.is_empty()
                    && !is_namespace(attributes.row)
                    && &*attributes.row.kind != "LocalSubjectAccessReview"
            }
            Operation::Delete => is_namespace(attributes.row),
            Operation::Update | Operation::Connect => false,
        }
    }

    fn admit<'a>(&'a self, attributes: &'a mut Attributes<'_>) -> Verdict<'a> {
        if attributes.operation == Operation::Delete {
            if SYSTEM_NAMESPACES.contains(&attributes.name) {
                let why = "this namespace may not be deleted";
                return Verdict::Now(Err(attributes.forbidden(why)));
            }
            return ADMITTED;
        }
        let namespace = attributes.namespace;
        match attributes.admission.store.find("namespaces", "", namespace) {
            None => Verdict::Now(Err(Status::not_found("", "namespaces", namespace))),
            Some(found) if found.terminating => {
                let why = format!(
                    "unable to create new content in namespace {namespace} because it is being terminated"
                );
                Verdict::Now(Err(attributes.forbidden(&why).with_cause(
                    "NamespaceTerminating",
                    format!("namespace {namespace} is being terminated"),
                    "metadata.namespace",
                )))
            }
            Some(_) => ADMITTED,
        }
    }
}
