//! The scale subresource: one face for everything that has a number of replicas.

use super::apply::Config;
use super::change::{self, Made, Version};
use super::options::{Verb, WriteOptions};
use super::part::Part;
use super::patch::{self, Patch};
use super::request::Request;
use super::track::ScaleManagers;
use super::{decode, present, read};
use http::Method;
use mainstay_admission::{self as admission, AdmissionRequest};
use mainstay_conversion::decode::Decoded;
use mainstay_conversion::forms;
use mainstay_conversion::webhook as conversion;
use mainstay_http::response::ApiResponse;
use mainstay_kinds::{KindRow, Source};
use mainstay_object::selector::LabelSelector;
use mainstay_object::{FieldError, FieldPath, Gvk, Object, Reason, Status};
use mainstay_patch::managed;
use mainstay_schema::builtin;
use serde_json::{Value, json};

/// GET, PUT or PATCH of `…/scale`.
pub(super) async fn answer(request: &Request<'_>, method: &Method) -> Result<ApiResponse, Status> {
    let row = &request.row;
    let gvk = gvk();
    if *method == Method::GET {
        read::check_revision(request)?;
        let stored = request.server.store.get(&request.key()).ok_or_else(|| request.not_found())?;
        let stored = conversion::spoken(&request.server.outbound, row, stored).await?;
        let object = forms::object(row, &stored);
        if row.custom().is_some() && object.get(&segments(spec_path(row))).is_none() {
            let path = spec_path(row);
            let why = format!("the spec replicas field {path:?} does not exist");
            return Err(Status::internal(why));
        }
        return present::scale(request, scale_of(row, &object));
    }
    let changed = if *method == Method::PUT {
        let options = WriteOptions::read(request, Verb::Update)?;
        let decoded = decode::object_of(request, &gvk, options.validation);
        let Decoded { object: mut sent, warnings } =
            decoded.map_err(|status| unreadable(row, status))?;
        change::names_what_is_asked(request, &mut sent)?;
        change::apply(request, Part::Scale, &options, |current, _| {
            let managers = ScaleManagers::new(request, &options, current)?;
            let mut scale = sent.clone();
            managers.updated(&mut scale);
            Ok(Made::sent(scale, warnings.clone(), Version::IfSent))
        })
        .await?
    } else if patch::is_apply(request) {
        let options = WriteOptions::read(request, Verb::Apply)?;
        change::apply(request, Part::Scale, &options, |current, _| {
            let managers = ScaleManagers::new(request, &options, current)?;
            let config = Config::read(request)?;
            let merged = managers.applied(&config.value, options.force)?;
            if row.custom().is_some() && managers.differs(&merged) {
                return Err(no_version_of_custom(&config.value));
            }
            config.judge(request, &options)?;
            let scale = read_scale(merged.into_value())?;
            Ok(Made::sent(scale, Vec::new(), config.version()))
        })
        .await?
    } else {
        let builtin = row.custom().is_none().then_some(&gvk);
        let (patch, options) = Patch::read(request, builtin)?;
        change::apply(request, Part::Scale, &options, |current, _| {
            let managers = ScaleManagers::new(request, &options, current)?;
            let scale = Object::from_value(scale_of(row, current)).unwrap_or_default();
            let mut value = patch.apply(&scale)?;
            let text = value.to_string();
            patch
                .identify(&mut value, &gvk, false)
                .map_err(|error| patch::spoils(&text, &error.to_string()))?;
            let mut scale =
                read_scale(value).map_err(|status| patch::spoils(&text, &status.message))?;
            managers.updated(&mut scale);
            let version = if patch.names_version() { Version::IfSent } else { Version::Kept };
            Ok(Made::sent(scale, Vec::new(), version))
        })
        .await?
    };
    let mut answer = present::scale(request, scale_of(row, &changed.object(row)))?;
    answer.warnings = changed.warnings;
    Ok(answer)
}

/// The object of a scale that was sent, after admission of the scale. `current` and the object are
/// in the request's version.
pub(super) async fn admitted(
    asked: AdmissionRequest<'_>,
    request: &Request<'_>,
    options: &WriteOptions,
    current: &Object,
    made: Made,
) -> Result<Made, Status> {
    let row = &request.row;
    let Made { object: mut scale, warnings, version, .. } = made;
    if admission::listens(asked) {
        let old = Object::from_value(scale_of(row, current)).unwrap_or_default();
        admission::mutate(asked, &mut scale, Some(&old)).await?;
    }
    let managers = ScaleManagers::new(request, options, current)?;
    Ok(managers.made(scaled(row, current, &scale)?, &scale, warnings, version))
}

/// Has the scale judged of an object that would be stored; both are in the stored form.
pub(super) async fn judge(
    asked: AdmissionRequest<'_>,
    object: &Object,
    old: &Object,
) -> Result<(), Status> {
    if !admission::listens(asked) {
        return Ok(());
    }
    let scale = |object: &Object| {
        let mut object = object.clone();
        forms::from_storage(asked.row, &mut object);
        Object::from_value(scale_of(asked.row, &object)).unwrap_or_default()
    };
    admission::validate(asked, &mut scale(object), Some(&scale(old))).await
}

/// 500, as the original: it takes the scale of a custom object for a version of the object.
fn no_version_of_custom(config: &Value) -> Status {
    let (gvk, shown) = (gvk(), managed::shown(config, &gvk()));
    let version = gvk.api_version();
    Status::new(
        Reason::Unknown,
        format!(
            "failed to convert new object ({shown}) to proper version: request to convert CR to an invalid group/version: {version}"
        ),
    )
}

/// Why a scale that was put cannot be read. Of custom objects the original says less: it does not
/// find the type of the scale among theirs.
fn unreadable(row: &KindRow, status: Status) -> Status {
    if row.custom().is_none() || status.reason != Reason::BadRequest {
        return status;
    }
    Status::bad_request(decode::no_type("v1.Scale"))
}

/// The kind that the subresource speaks.
pub(super) fn gvk() -> Gvk {
    Gvk::new("autoscaling", "v1", "Scale")
}

fn read_scale(value: Value) -> Result<Object, Status> {
    let mut value = value;
    if let Some(definition) = builtin::definition_of(&gvk()) {
        mainstay_schema::strict::decode(definition, &mut value)
            .map_err(|error| Status::bad_request(error.to_string()))?;
    }
    Object::from_value(value).map_err(|error| Status::bad_request(error.to_string()))
}

/// How the original says that an object has another uid than a precondition demands, where it
/// leaves that to its storage.
pub(super) fn other_uid(plural: &str, object: &Object, wanted: &str) -> String {
    format!(
        "StorageError: invalid object, Code: 4, Key: /registry/{plural}/{}, ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: UID in precondition: {wanted}, UID in object meta: {}",
        object.key(),
        object.uid()
    )
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

/// The `Scale` of an object.
pub(super) fn scale_of(row: &KindRow, object: &Object) -> Value {
    let mut metadata = json!({});
    for field in ["name", "namespace", "uid", "resourceVersion", "creationTimestamp"] {
        if let Some(value) = object.get(&["metadata", field]) {
            metadata[field] = value.clone();
        }
    }
    let number = |path: &str| object.get(&segments(path)).and_then(Value::as_i64);
    let mut status = json!({"replicas": number(status_path(row)).unwrap_or_default()});
    if let Some(selector) = selector(row, object) {
        status["selector"] = selector.into();
    }
    let mut scale = json!({
        "apiVersion": "autoscaling/v1",
        "kind": "Scale",
        "metadata": metadata,
        "spec": {"replicas": number(spec_path(row)).unwrap_or_default()},
        "status": status,
    });
    if let (Some(definition), Some(fields)) =
        (builtin::definition_of(&gvk()), scale.as_object_mut())
    {
        mainstay_schema::form::complete(definition, fields);
    }
    scale
}

pub(super) fn spec_path(row: &KindRow) -> &str {
    scale_paths(row).map_or(".spec.replicas", |scale| scale.spec_replicas.as_str())
}

fn status_path(row: &KindRow) -> &str {
    scale_paths(row).map_or(".status.replicas", |scale| scale.status_replicas.as_str())
}

fn scale_paths(row: &KindRow) -> Option<&mainstay_schema::crd::Scale> {
    row.custom().and_then(|custom| custom.scale())
}

fn selector(row: &KindRow, object: &Object) -> Option<String> {
    match &row.source {
        Source::Custom(custom) => {
            let path = custom.scale()?.label_selector.as_deref()?;
            object.str(&segments(path)).map(str::to_owned)
        }
        Source::BuiltIn(_) => {
            let selector = object.get(&["spec", "selector"])?;
            let plain =
                selector.get("matchLabels").is_none() && selector.get("matchExpressions").is_none();
            if !plain {
                return LabelSelector::from_value(selector).ok().map(|one| one.to_string());
            }
            let pairs = selector.as_object()?;
            let pairs =
                pairs.iter().filter_map(|(key, value)| Some((key.as_str(), value.as_str()?)));
            Some(LabelSelector::from_pairs(pairs).to_string())
        }
    }
}

fn segments(path: &str) -> Vec<&str> {
    path.split('.').filter(|segment| !segment.is_empty()).collect()
}
