//! `LimitRanger`: what Pods and claims of volumes ask for, by the `LimitRanges` of their namespace.

use super::{ADMITTED, Attributes, Operation, Plugin, Verdict};
use mainstay_object::{Object, Status};
use mainstay_quota::limits;

pub(super) struct LimitRanger;

const RANGES: &str = "limitranges";

impl Plugin for LimitRanger {
    fn handles(&self, attributes: &Attributes<'_>) -> bool {
        let concerned = match (&*attributes.row.storage, attributes.subresource) {
            // The containers of a Pod do not change but by a resize.
            ("pods", "") => attributes.operation == Operation::Create,
            ("pods", "resize") => attributes.operation == Operation::Update,
            ("persistentvolumeclaims", "") => {
                matches!(attributes.operation, Operation::Create | Operation::Update)
            }
            _ => false,
        };
        concerned && !attributes.old.is_some_and(Object::is_terminating)
    }

    fn admit<'a>(&'a self, attributes: &'a mut Attributes<'_>) -> Verdict<'a> {
        if &*attributes.row.storage == "pods" {
            let ranges = attributes.admission.store.list(RANGES, Some(attributes.namespace));
            if let Some(pod) = &mut attributes.object {
                for range in ranges.iter() {
                    limits::fill_in(&range.object(), pod);
                }
            }
        }
        ADMITTED
    }

    fn validate<'a>(&'a self, attributes: &'a Attributes<'_>) -> Verdict<'a> {
        Verdict::Now(judge(attributes))
    }
}

/// Refuses an object for the first `LimitRange` that it breaks.
fn judge(attributes: &Attributes<'_>) -> Result<(), Status> {
    let Some(object) = &attributes.object else { return Ok(()) };
    let ranges = attributes.admission.store.list(RANGES, Some(attributes.namespace));
    for range in ranges.iter() {
        let range = range.object();
        let broken = match &*attributes.row.storage {
            "pods" => limits::broken_by_pod(&range, object),
            _ => limits::broken_by_claim(&range, object),
        };
        match broken.as_slice() {
            [] => {}
            [only] => return Err(attributes.forbidden(only)),
            several => return Err(attributes.forbidden(&format!("[{}]", several.join(", ")))),
        }
    }
    Ok(())
}
