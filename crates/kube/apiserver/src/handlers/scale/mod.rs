//! The scale subresource: one face for everything that has a number of replicas.

pub(super) mod admission;
pub(super) mod object;

use self::object::{gvk, scale_of, segments, spec_path};
use super::apply::Config;
use super::options::{Verb, WriteOptions};
use super::part::Part;
use super::patch::{self, Patch};
use super::request::Request;
use super::track::ScaleManagers;
use super::updated_object::{UpdatedObject, Version};
use super::{change, decode, present, read};
use http::Method;
use mainstay_conversion::decode::Decoded;
use mainstay_conversion::forms;
use mainstay_conversion::webhook as conversion;
use mainstay_http::response::ApiResponse;
use mainstay_kinds::KindRow;
use mainstay_object::{Object, Reason, Status};
use mainstay_patch::managed;
use mainstay_schema::builtin;
use serde_json::Value;

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
            Ok(UpdatedObject::sent(scale, warnings.clone(), Version::IfSent))
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
            Ok(UpdatedObject::sent(scale, Vec::new(), config.version()))
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
            Ok(UpdatedObject::sent(scale, Vec::new(), version))
        })
        .await?
    };
    let mut answer = present::scale(request, scale_of(row, &changed.object(row)))?;
    answer.warnings = changed.warnings;
    Ok(answer)
}

/// 500, as the original: it takes the scale of a custom object for a version of the object.
fn no_version_of_custom(config: &Value) -> Status {
    let (gvk, shown) = (gvk(), managed::describe_object(config, &gvk()));
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

fn read_scale(value: Value) -> Result<Object, Status> {
    let mut value = value;
    if let Some(definition) = builtin::definition_of(&gvk()) {
        mainstay_schema::strict::decode(definition, &mut value)
            .map_err(|error| Status::bad_request(error.to_string()))?;
    }
    Object::from_value(value).map_err(|error| Status::bad_request(error.to_string()))
}
