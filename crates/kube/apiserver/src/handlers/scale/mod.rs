//! The scale subresource of all kinds with replicas.

pub(super) mod admission;
pub(super) mod object;

use self::object::{gvk, scale_of, segments, spec_path};
use super::apply::ApplyConfiguration;
use super::managed_fields::ScaleFieldManager;
use super::options::{Verb, WriteOptions};
use super::patch::{self, Patch};
use super::request::Request;
use super::subresource::Subresource;
use super::updated_object::{UpdatedObject, VersionCheck};
use super::{decode, read, response, update};
use http::Method;
use mainstay_conversion::decode::DecodedObject;
use mainstay_conversion::forms;
use mainstay_conversion::webhook as conversion;
use mainstay_http::response::ApiResponse;
use mainstay_kinds::KindRow;
use mainstay_object::{Object, Reason, Status};
use mainstay_patch::managed;
use mainstay_schema::builtin;
use serde_json::Value;

/// Handles GET, PUT and PATCH of `…/scale`.
pub(super) async fn answer(request: &Request<'_>, method: &Method) -> Result<ApiResponse, Status> {
    let row = &request.row;
    let gvk = gvk();
    if *method == Method::GET {
        read::check_revision(request)?;
        let stored = request.server.store.get(&request.key()).ok_or_else(|| request.not_found())?;
        let stored = conversion::convert_stored(&request.server.outbound, row, stored).await?;
        let object = forms::object(row, &stored);
        if row.custom().is_some() && object.get(&segments(spec_path(row))).is_none() {
            let path = spec_path(row);
            let why = format!("the spec replicas field {path:?} does not exist");
            return Err(Status::internal(why));
        }
        return response::scale(request, scale_of(row, &object));
    }
    let changed = if *method == Method::PUT {
        let options = WriteOptions::read(request, Verb::Update)?;
        let decoded = decode::built_in_object(request, &gvk, options.validation);
        let DecodedObject { object: mut sent, warnings } =
            decoded.map_err(|status| conversion_failure(row, status))?;
        update::check_identity(request, &mut sent)?;
        update::apply(request, Subresource::Scale, &options, |current, _| {
            let field_manager = ScaleFieldManager::new(request, &options, current)?;
            let mut scale = sent.clone();
            field_manager.track_update(&mut scale);
            Ok(UpdatedObject::untracked(scale, warnings.clone(), VersionCheck::IfPresent))
        })
        .await?
    } else if patch::is_apply(request) {
        let options = WriteOptions::read(request, Verb::Apply)?;
        update::apply(request, Subresource::Scale, &options, |current, _| {
            let field_manager = ScaleFieldManager::new(request, &options, current)?;
            let config = ApplyConfiguration::read(request)?;
            let is_strategic = field_manager.apply(&config.value, options.force)?;
            if row.custom().is_some() && field_manager.differs(&is_strategic) {
                return Err(no_version_of_custom(&config.value));
            }
            config.check_duplicates(request, &options)?;
            let scale = read_scale(is_strategic.into_value())?;
            Ok(UpdatedObject::untracked(scale, Vec::new(), config.version()))
        })
        .await?
    } else {
        let builtin = row.custom().is_none().then_some(&gvk);
        let (patch, options) = Patch::read(request, builtin)?;
        update::apply(request, Subresource::Scale, &options, |current, _| {
            let field_manager = ScaleFieldManager::new(request, &options, current)?;
            let scale = Object::from_value(scale_of(row, current)).unwrap_or_default();
            let mut value = patch.apply(&scale)?;
            let text = value.to_string();
            patch
                .check_kind(&mut value, &gvk, false)
                .map_err(|error| patch::invalid_patch(&text, &error.to_string()))?;
            let mut scale =
                read_scale(value).map_err(|status| patch::invalid_patch(&text, &status.message))?;
            field_manager.track_update(&mut scale);
            let version = if patch.sets_resource_version() {
                VersionCheck::IfPresent
            } else {
                VersionCheck::Skipped
            };
            Ok(UpdatedObject::untracked(scale, Vec::new(), version))
        })
        .await?
    };
    let mut response = response::scale(request, scale_of(row, &changed.object(row)))?;
    response.warnings = changed.warnings;
    Ok(response)
}

/// 500, as in kube-apiserver: it treats the scale of a custom object as a version of the object.
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

/// The refusal of a malformed scale. For custom objects kube-apiserver does not find the type of
/// the scale, and says only that.
fn conversion_failure(row: &KindRow, status: Status) -> Status {
    if row.custom().is_none() || status.reason != Reason::BadRequest {
        return status;
    }
    Status::bad_request(decode::type_not_registered("v1.Scale"))
}

fn read_scale(value: Value) -> Result<Object, Status> {
    let mut value = value;
    if let Some(definition) = builtin::definition_of(&gvk()) {
        mainstay_schema::strict::decode(definition, &mut value)
            .map_err(|error| Status::bad_request(error.to_string()))?;
    }
    Object::from_value(value).map_err(|error| Status::bad_request(error.to_string()))
}
