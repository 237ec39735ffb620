//! Validation of the objects of a revision, in the words of upstream's library.
//!
//! A revision is validated as a whole before its first phase. Each phase is validated again by a dry run of its
//! objects, whose errors come from the API; [`DryRunError`] says which of them block a phase.

use crate::resolve::ResolvedPhase;
use mainstay_gocompat::quote;
use mainstay_object::names::dns1035_label;
use mainstay_object::{FieldError, FieldPath, Object, Reason};

/// The message for a namespaced object without namespace. Upstream's client says so without a request.
pub const EMPTY_NAMESPACE: &str = "an empty namespace may not be set during creation";

/// Errors of a revision.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("revision {} ({revision}): {}", quote(.name), join(.phases))]
pub struct RevisionErrors {
    /// Name of the ClusterObjectSet.
    pub name: String,
    /// Number of the revision.
    pub revision: i64,
    /// The phases with errors.
    pub phases: Vec<PhaseErrors>,
}

/// Errors of a phase.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("phase {}: {}", quote(.name), phase_text(self))]
pub struct PhaseErrors {
    /// Name.
    pub name: String,
    /// What is wrong with the name.
    pub name_errors: Vec<String>,
    /// The objects with errors.
    pub objects: Vec<ObjectErrors>,
}

/// Errors of an object.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{object}: {}", .errors.join(", "))]
pub struct ObjectErrors {
    /// Version, kind and name, see [`object_reference_text`].
    pub object: String,
    /// What is wrong.
    pub errors: Vec<String>,
}

/// An error of a dry run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DryRunError {
    /// The API refused the object: the phase is not applied.
    Refused(ObjectErrors),
    /// The phase is not applied, and the error does not name the object.
    Other(String),
}

/// `group/version, Kind=kind namespace/name`, as upstream's library names an object.
pub fn object_reference_text(object: &Object) -> String {
    let gvk = object.gvk();
    let (namespace, name) = (object.namespace(), object.name());
    format!("{}/{}, Kind={} {namespace}/{name}", gvk.group, gvk.version, gvk.kind)
}

/// Validates the objects of all phases, without requests.
///
/// # Errors
/// All errors.
pub fn validate_revision(
    name: &str,
    revision: i64,
    phases: &[ResolvedPhase],
) -> Result<(), RevisionErrors> {
    let duplicates = duplicates(phases);
    let of_phase = |phase: &ResolvedPhase| {
        let own = phase.objects.iter().filter_map(|object| metadata_errors(&object.object));
        let shared = duplicates
            .iter()
            .filter(|duplicate| duplicate.phases.contains(&&*phase.name))
            .map(Duplicate::errors);
        let errors = PhaseErrors {
            name: phase.name.clone(),
            name_errors: dns1035_label(&phase.name),
            objects: own.chain(shared).collect(),
        };
        (!errors.name_errors.is_empty() || !errors.objects.is_empty()).then_some(errors)
    };
    let phases: Vec<PhaseErrors> = phases.iter().filter_map(of_phase).collect();
    if phases.is_empty() {
        return Ok(());
    }
    Err(RevisionErrors { name: name.to_owned(), revision, phases })
}

fn metadata_errors(object: &Object) -> Option<ObjectErrors> {
    let metadata = FieldPath::new("metadata");
    let is_set = |name: &str| match object.get(&["metadata", name]) {
        None => false,
        Some(value) => {
            value.as_str().is_some_and(|text| !text.is_empty())
                || value.as_i64().is_some_and(|number| number > 0)
                || value.as_array().is_some_and(|items| !items.is_empty())
        }
    };
    let required =
        [("apiVersion", object.gvk().version.is_empty()), ("kind", object.kind().is_empty())]
            .into_iter()
            .filter(|(_, is_missing)| *is_missing)
            .map(|(name, _)| FieldError::required(&FieldPath::new(name), "must not be empty"));
    let forbidden =
        ["uid", "generation", "generateName", "finalizers", "ownerReferences", "resourceVersion"]
            .into_iter()
            .filter(|name| is_set(name))
            .map(|name| FieldError::forbidden(&metadata.child(name), "must be empty"));
    let errors: Vec<String> = required.chain(forbidden).map(|error| error.to_string()).collect();
    (!errors.is_empty()).then(|| ObjectErrors { object: object_reference_text(object), errors })
}

/// An object that is in a revision more than once.
struct Duplicate<'a> {
    object: String,
    phases: Vec<&'a str>,
}

impl Duplicate<'_> {
    fn errors(&self) -> ObjectErrors {
        let error = format!("duplicate object found in phases: {}", self.phases.join(", "));
        ObjectErrors { object: self.object.clone(), errors: vec![error] }
    }
}

fn duplicates(phases: &[ResolvedPhase]) -> Vec<Duplicate<'_>> {
    // The number of objects is limited by the API, so a search per object is cheap enough.
    let mut all: Vec<(Duplicate<'_>, usize)> = Vec::new();
    for phase in phases {
        for object in &phase.objects {
            let object = object_reference_text(&object.object);
            match all.iter_mut().find(|(known, _)| known.object == object) {
                Some((known, count)) => {
                    *count += 1;
                    if !known.phases.contains(&&*phase.name) {
                        known.phases.push(&phase.name);
                    }
                }
                None => all.push((Duplicate { object, phases: vec![&phase.name] }, 1)),
            }
        }
    }
    let mut duplicates: Vec<Duplicate<'_>> =
        all.into_iter().filter(|(_, count)| *count > 1).map(|(duplicate, _)| duplicate).collect();
    for duplicate in &mut duplicates {
        duplicate.phases.sort_unstable();
    }
    duplicates
}

fn join(phases: &[PhaseErrors]) -> String {
    phases.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

fn phase_text(phase: &PhaseErrors) -> String {
    let name = (!phase.name_errors.is_empty())
        .then(|| format!("phase name invalid: {}", phase.name_errors.join(", ")));
    let objects = phase.objects.iter().map(ToString::to_string);
    name.into_iter().chain(objects).collect::<Vec<_>>().join(", ")
}

/// The message of a ClusterObjectSet whose objects are invalid.
pub fn revision_errors_message(errors: &RevisionErrors) -> String {
    format!("revision validation error: {errors}")
}

/// The error of a dry run of an object; none if the phase is applied all the same, because the failure may
/// be temporary. `reason` is none if the API gave none.
pub fn dry_run_error(
    object: &Object,
    reason: Option<Reason>,
    message: &str,
) -> Option<DryRunError> {
    let refused = match reason {
        None => message.contains("failed to create typed patch object"),
        Some(
            Reason::Unauthorized
            | Reason::Forbidden
            | Reason::AlreadyExists
            | Reason::Conflict
            | Reason::Invalid
            | Reason::BadRequest
            | Reason::MethodNotAllowed
            | Reason::RequestEntityTooLarge
            | Reason::UnsupportedMediaType
            | Reason::NotAcceptable
            | Reason::NotFound,
        ) => true,
        Some(_) => false,
    };
    refused.then(|| {
        DryRunError::Refused(ObjectErrors {
            object: object_reference_text(object),
            errors: vec![message.to_owned()],
        })
    })
}

/// The message of a ClusterObjectSet whose phase did not pass the dry run.
pub fn dry_run_message(errors: &[DryRunError]) -> String {
    let text = |error: &DryRunError| match error {
        DryRunError::Refused(errors) => errors.to_string(),
        DryRunError::Other(message) => message.clone(),
    };
    let errors: Vec<String> = errors.iter().map(text).collect();
    format!("reconciling object: validating: {}", errors.join("\n"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::digest::NumberForm;
    use crate::resolve::ResolvedObject;
    use mainstay_api::CollisionProtection;
    use mainstay_object::Gvk;
    use serde_json::json;

    fn config_map(name: &str) -> Object {
        let mut object = Object::new(&Gvk::from_api_version("v1", "ConfigMap"), name);
        object.set(&["metadata", "namespace"], "n".into());
        object
    }

    fn phase(name: &str, objects: Vec<Object>) -> ResolvedPhase {
        let resolved = |object| ResolvedObject {
            object,
            numbers: NumberForm::Whole,
            collision_protection: CollisionProtection::Prevent,
        };
        ResolvedPhase {
            name: name.to_owned(),
            objects: objects.into_iter().map(resolved).collect(),
        }
    }

    #[test]
    fn duplicates_are_reported_in_each_phase_that_has_one() {
        let phases = [
            phase("one", vec![config_map("d"), config_map("e")]),
            phase("two", vec![config_map("d")]),
        ];
        let errors = validate_revision("set", 1, &phases).unwrap_err();
        assert_eq!(
            revision_errors_message(&errors),
            "revision validation error: revision \"set\" (1): phase \"one\": /v1, Kind=ConfigMap n/d: \
             duplicate object found in phases: one, two, phase \"two\": /v1, Kind=ConfigMap n/d: \
             duplicate object found in phases: one, two"
        );
        let twice = [phase("one", vec![config_map("d"), config_map("d")])];
        assert_eq!(
            validate_revision("set", 1, &twice).unwrap_err().to_string(),
            "revision \"set\" (1): phase \"one\": /v1, Kind=ConfigMap n/d: duplicate object found in \
             phases: one"
        );
        assert_eq!(validate_revision("set", 1, &[phase("one", vec![config_map("d")])]), Ok(()));
    }

    #[test]
    fn missing_and_forbidden_metadata_and_phase_names_are_reported() {
        let object = json!({"metadata": {
            "name": "x",
            "uid": "1",
            "generation": 2,
            "generateName": "g",
            "finalizers": ["f"],
            "ownerReferences": [{}],
            "resourceVersion": "3",
        }});
        let phases = [phase("1st", vec![Object::from_value(object).unwrap()])];
        let text = validate_revision("set", 2, &phases).unwrap_err().to_string();
        let expected = [
            "revision \"set\" (2): phase \"1st\": phase name invalid: a DNS-1035 label must consist of",
            "'[a-z]([-a-z0-9]*[a-z0-9])?'), /, Kind= /x: apiVersion: Required value: must not be empty, \
             kind: Required value: must not be empty, metadata.uid: Forbidden: must be empty, \
             metadata.generation: Forbidden: must be empty, metadata.generateName: Forbidden: must be \
             empty, metadata.finalizers: Forbidden: must be empty, metadata.ownerReferences: Forbidden: \
             must be empty, metadata.resourceVersion: Forbidden: must be empty",
        ];
        assert!(text.starts_with(expected[0]), "{text}");
        assert!(text.ends_with(expected[1]), "{text}");
    }

    #[test]
    fn refusals_of_a_dry_run_block_a_phase_and_failures_of_the_api_do_not() {
        let object = config_map("x");
        let refused = dry_run_error(&object, Some(Reason::NotFound), "namespaces \"n\" not found");
        assert_eq!(
            dry_run_message(&[refused.unwrap()]),
            "reconciling object: validating: /v1, Kind=ConfigMap n/x: namespaces \"n\" not found"
        );
        assert_eq!(dry_run_error(&object, Some(Reason::InternalError), "x"), None);
        let typed = "failed to create typed patch object (n/x; v1, Kind=ConfigMap): .data: x";
        assert!(dry_run_error(&object, None, typed).is_some());
        let other = DryRunError::Other(EMPTY_NAMESPACE.to_owned());
        assert_eq!(
            dry_run_message(&[other]),
            "reconciling object: validating: an empty namespace may not be set during creation"
        );
    }
}
