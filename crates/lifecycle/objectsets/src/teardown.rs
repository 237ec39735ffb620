//! Teardown of an archived ClusterObjectSet: which of its objects are deleted.
//!
//! Phases are torn down in reverse. A phase begins when no object of the phase after it remains. Objects that
//! another revision has taken over stay, and only lose the owner reference.

use crate::ownership::{
    CurrentController, ObjectSetIdentity, ReadRevisionError, current_controller, object_revision,
};
use mainstay_object::{Object, OwnerReference};

/// What is done with an object of an archived ClusterObjectSet.
#[derive(Clone, Debug, PartialEq)]
pub enum TeardownDecision {
    /// Nothing: the object does not exist, or has nothing to do with the set.
    Gone,
    /// The object stays with these owners. The caller sends them as a merge patch; the object counts as gone.
    Release(Vec<OwnerReference>),
    /// The object is deleted, if uid and resource version are still these. It counts as gone once a later
    /// reconciliation does not find it, because finalizers may delay the deletion.
    Delete {
        /// Uid.
        uid: String,
        /// Resource version.
        resource_version: String,
    },
}

/// Decides over an object; `actual` is none if the object, or its kind, does not exist.
///
/// # Errors
/// The revision annotation of the object is no number.
pub fn decide_teardown(
    actual: Option<&Object>,
    set: &ObjectSetIdentity,
) -> Result<TeardownDecision, ReadRevisionError> {
    let Some(actual) = actual else { return Ok(TeardownDecision::Gone) };
    let is_ours = object_revision(actual)? == set.revision
        && current_controller(actual, set, &[]) == CurrentController::ThisSet;
    if is_ours {
        return Ok(TeardownDecision::Delete {
            uid: actual.uid().to_owned(),
            resource_version: actual.resource_version().to_owned(),
        });
    }
    let before = actual.owner_references();
    let after: Vec<OwnerReference> =
        before.iter().filter(|owner| !set.is_named_by(owner)).cloned().collect();
    let changes = after.len() < before.len();
    Ok(if changes { TeardownDecision::Release(after) } else { TeardownDecision::Gone })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ownership::managed_object;
    use mainstay_object::Gvk;
    use serde_json::json;

    fn set(revision: i64) -> ObjectSetIdentity {
        ObjectSetIdentity {
            name: format!("e-{revision}"),
            uid: format!("uid-{revision}"),
            revision,
            extension: "e".to_owned(),
        }
    }

    fn owned(revision: i64) -> Object {
        let object = Object::new(&Gvk::from_api_version("v1", "ConfigMap"), "c");
        let mut object = managed_object(&object, &set(revision));
        object.set(&["metadata", "uid"], "u".into());
        object.set(&["metadata", "resourceVersion"], "5".into());
        object
    }

    #[test]
    fn only_objects_of_this_revision_are_deleted() {
        assert_eq!(decide_teardown(None, &set(1)), Ok(TeardownDecision::Gone));
        let delete =
            TeardownDecision::Delete { uid: "u".to_owned(), resource_version: "5".to_owned() };
        assert_eq!(decide_teardown(Some(&owned(1)), &set(1)), Ok(delete));
        assert_eq!(decide_teardown(Some(&owned(2)), &set(1)), Ok(TeardownDecision::Gone));

        let mut taken_over = owned(2);
        let earlier = OwnerReference { controller: Some(false), ..set(1).owner_reference() };
        let owners = json!([earlier, set(2).owner_reference()]);
        taken_over.set(&["metadata", "ownerReferences"], owners);
        assert_eq!(
            decide_teardown(Some(&taken_over), &set(1)),
            Ok(TeardownDecision::Release(vec![set(2).owner_reference()]))
        );
    }
}
