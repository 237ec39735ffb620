//! Admission of a scale that is written, and the object that follows from it.

use super::object::{other_uid, scale_of, segments, spec_path};
use crate::handlers::options::WriteOptions;
use crate::handlers::request::Request;
use crate::handlers::track::ScaleManagers;
use crate::handlers::updated_object::UpdatedObject;
use mainstay_admission::{self as admission, AdmissionRequest};
use mainstay_conversion::forms;
use mainstay_kinds::KindRow;
use mainstay_object::{FieldError, FieldPath, Object, Status};

/// The object of a scale that was sent, after admission of the scale. `current` and the object are
/// in the request's version.
pub(in crate::handlers) async fn admitted(
    asked: AdmissionRequest<'_>,
    request: &Request<'_>,
    options: &WriteOptions,
    current: &Object,
    made: UpdatedObject,
) -> Result<UpdatedObject, Status> {
    let row = &request.row;
    let UpdatedObject { object: mut scale, warnings, version, .. } = made;
    if admission::handles_request(asked) {
        let old = Object::from_value(scale_of(row, current)).unwrap_or_default();
        admission::mutate(asked, &mut scale, Some(&old)).await?;
    }
    let managers = ScaleManagers::new(request, options, current)?;
    Ok(managers.made(scaled(row, current, &scale)?, &scale, warnings, version))
}

/// Has the scale judged of an object that would be stored; both are in the stored form.
pub(in crate::handlers) async fn judge(
    asked: AdmissionRequest<'_>,
    object: &Object,
    old: &Object,
) -> Result<(), Status> {
    if !admission::handles_request(asked) {
        return Ok(());
    }
    let scale = |object: &Object| {
        let mut object = object.clone();
        forms::from_storage(asked.row, &mut object);
        Object::from_value(scale_of(asked.row, &object)).unwrap_or_default()
    };
    admission::validate(asked, &mut scale(object), Some(&scale(old))).await
}

/// The object with the number that a scale asks for, and its preconditions.
fn scaled(row: &KindRow, current: &Object, scale: &Object) -> Result<Object, Status> {
    let wanted = scale.i64(&["spec", "replicas"]).unwrap_or_default();
    // What a custom kind thinks of the number is said when the object is checked.
    if wanted < 0 && row.custom().is_none() {
        let field = FieldPath::new("spec").child("replicas");
        let error = FieldError::invalid(&field, wanted, "must be greater than or equal to 0");
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
        let why = other_uid(&row.plural, current, scale.uid());
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
    object.set(&segments(spec_path(row)), wanted.into());
    Ok(object)
}
