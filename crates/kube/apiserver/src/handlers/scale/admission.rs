//! Admission of a written scale, and the object that results from it.

use super::object::{scale_of, segments, spec_path, uid_mismatch};
use crate::handlers::managed_fields::ScaleFieldManager;
use crate::handlers::options::WriteOptions;
use crate::handlers::request::Request;
use crate::handlers::updated_object::UpdatedObject;
use mainstay_admission::{self as admission, AdmissionRequest};
use mainstay_conversion::forms;
use mainstay_kinds::KindRow;
use mainstay_object::{FieldError, FieldPath, Object, Status};

/// Admits a scale, and applies it to the object. `current` and the result are in the request's
/// version.
pub(in crate::handlers) async fn admit_scale(
    review: AdmissionRequest<'_>,
    request: &Request<'_>,
    options: &WriteOptions,
    current: &Object,
    updated: UpdatedObject,
) -> Result<UpdatedObject, Status> {
    let row = &request.row;
    let UpdatedObject { object: mut scale, warnings, version, .. } = updated;
    if admission::handles_request(review) {
        let old = Object::from_value(scale_of(row, current)).unwrap_or_default();
        admission::mutate(review, &mut scale, Some(&old)).await?;
    }
    let field_manager = ScaleFieldManager::new(request, options, current)?;
    Ok(field_manager.into_parent(set_replicas(row, current, &scale)?, &scale, warnings, version))
}

/// Runs validating admission on the scale of an object that would be stored; both objects are in
/// the stored form.
pub(in crate::handlers) async fn validate_scale(
    review: AdmissionRequest<'_>,
    object: &Object,
    old: &Object,
) -> Result<(), Status> {
    if !admission::handles_request(review) {
        return Ok(());
    }
    let scale = |object: &Object| {
        let mut object = object.clone();
        forms::from_storage(review.row, &mut object);
        Object::from_value(scale_of(review.row, &object)).unwrap_or_default()
    };
    admission::validate(review, &mut scale(object), Some(&scale(old))).await
}

/// The object with the replicas and the preconditions of a scale.
fn set_replicas(row: &KindRow, current: &Object, scale: &Object) -> Result<Object, Status> {
    let replicas = scale.i64(&["spec", "replicas"]).unwrap_or_default();
    // For a custom kind, the validation of the object checks the number.
    if replicas < 0 && row.custom().is_none() {
        let field = FieldPath::new("spec").child("replicas");
        let error = FieldError::invalid(&field, replicas, "must be greater than or equal to 0");
        return Err(Status::invalid("autoscaling", "Scale", scale.name(), &[error]));
    }
    if scale.name() != current.name() {
        return Err(Status::bad_request(format!(
            "the name of the object ({}) does not match the name on the URL ({})",
            scale.name(),
            current.name()
        )));
    }
    let custom = row.custom().is_some();
    if !custom && !scale.uid().is_empty() && scale.uid() != current.uid() {
        let why = uid_mismatch(&row.plural, current, scale.uid());
        return Err(Status::conflict(&row.group, &row.plural, current.name(), &why));
    }
    let mut object = current.clone();
    object.remove(&["metadata", "resourceVersion"]);
    let conditions: &[&str] =
        if custom { &["resourceVersion"] } else { &["resourceVersion", "uid"] };
    for &field in conditions {
        if let Some(value) = scale.get(&["metadata", field]).filter(|value| **value != "") {
            object.set(&["metadata", field], value.clone());
        }
    }
    object.set(&segments(spec_path(row)), replicas.into());
    Ok(object)
}
