//! `LimitRanger`: defaults and limits of Pods and `PersistentVolumeClaims`, by the `LimitRanges` of
//! their namespace.

use super::{ADMITTED, AdmissionAttributes, AdmissionDecision, Operation, Plugin};
use mainstay_object::{Object, Status};
use mainstay_quota::limits;

pub(super) struct LimitRanger;

const LIMIT_RANGES: &str = "limitranges";

impl Plugin for LimitRanger {
    fn handles(&self, attributes: &AdmissionAttributes<'_>) -> bool {
        let is_handled = match (&*attributes.row.storage, attributes.subresource) {
            // The resources of containers change only by a resize.
            ("pods", "") => attributes.operation == Operation::Create,
            ("pods", "resize") => attributes.operation == Operation::Update,
            ("persistentvolumeclaims", "") => {
                matches!(attributes.operation, Operation::Create | Operation::Update)
            }
            _ => false,
        };
        is_handled && !attributes.old.is_some_and(Object::is_terminating)
    }

    fn admit<'a>(&'a self, attributes: &'a mut AdmissionAttributes<'_>) -> AdmissionDecision<'a> {
        if &*attributes.row.storage == "pods" {
            let ranges = attributes.admission.store.list(LIMIT_RANGES, Some(attributes.namespace));
            if let Some(pod) = &mut attributes.object {
                for range in ranges.iter() {
                    limits::fill_in(&range.object(), pod);
                }
            }
        }
        ADMITTED
    }

    fn validate<'a>(&'a self, attributes: &'a AdmissionAttributes<'_>) -> AdmissionDecision<'a> {
        AdmissionDecision::Ready(check_limits(attributes))
    }
}

/// Refuses an object that violates a `LimitRange`, with the violations of the first one.
fn check_limits(attributes: &AdmissionAttributes<'_>) -> Result<(), Status> {
    let Some(object) = &attributes.object else { return Ok(()) };
    let ranges = attributes.admission.store.list(LIMIT_RANGES, Some(attributes.namespace));
    for range in ranges.iter() {
        let range = range.object();
        let violations = match &*attributes.row.storage {
            "pods" => limits::broken_by_pod(&range, object),
            _ => limits::broken_by_claim(&range, object),
        };
        match violations.as_slice() {
            [] => {}
            [violation] => return Err(attributes.forbidden(violation)),
            all => return Err(attributes.forbidden(&format!("[{}]", all.join(", ")))),
        }
    }
    Ok(())
}
