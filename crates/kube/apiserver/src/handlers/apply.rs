//! Server-side apply: the client sends the fields that it manages.
//!
//! Data flow: body (YAML or JSON) ─► configuration ─► merge with the live object, or with an empty
//! one ─► decoding as the kind ─► update or creation.

use super::commit::ATTEMPTS;
use super::managed_fields::{FieldManager, MANAGED_FIELDS};
use super::options::{Verb, WriteOptions};
use super::request::Request;
use super::subresource::Subresource;
use super::update;
use super::updated_object::{UpdatedObject, VersionCheck};
use super::{create, decode};
use mainstay_conversion::decode::DecodeObjectError;
use mainstay_http::response::ApiResponse;
use mainstay_object::{Object, Reason, Status};
use mainstay_patch::managed;
use serde_json::Value;

/// Handles a PATCH of the type `application/apply-patch+yaml`.
pub(super) async fn answer(
    request: &Request<'_>,
    subresource: Subresource,
) -> Result<ApiResponse, Status> {
    let options = WriteOptions::read(request, Verb::Apply)?;
    let mut attempts = ATTEMPTS;
    loop {
        attempts -= 1;
        if request.server.store.get(&request.key()).is_some() || subresource != Subresource::Main {
            let make = |live: &Object, field_manager: &FieldManager<'_>| {
                let config = ApplyConfiguration::read(request)?;
                let object = config.apply(request, field_manager, Some(live), &options)?;
                config.check_duplicates(request, &options)?;
                let version = config.version();
                Ok(UpdatedObject {
                    object,
                    warnings: Vec::new(),
                    has_managed_fields: true,
                    version,
                })
            };
            return match update::apply(request, subresource, &options, make).await {
                // The object was deleted meanwhile, so the apply creates it.
                Err(status)
                    if status.reason == Reason::NotFound && is_main(subresource, attempts) =>
                {
                    continue;
                }
                changed => changed?.response(request),
            };
        }
        return match create(request, &options).await {
            Err(status) if status.reason == Reason::AlreadyExists && attempts > 0 => continue,
            response => response,
        };
    }
}

fn is_main(subresource: Subresource, attempts: usize) -> bool {
    subresource == Subresource::Main && attempts > 0
}

async fn create(request: &Request<'_>, options: &WriteOptions) -> Result<ApiResponse, Status> {
    let field_manager = FieldManager::new(request, Subresource::Main, options);
    let config = ApplyConfiguration::read(request)?;
    let apply = || config.apply(request, &field_manager, None, options);
    let mut object = field_manager.with_conversions(apply).await?;
    config.check_duplicates(request, options)?;
    super::write::check_size(request, &request.key(), &object)?;
    if !object.uid().is_empty() {
        let why = format!(
            "uid mismatch: the provided object specified uid {}, and no existing object was found",
            object.uid()
        );
        let row = &request.row;
        return Err(Status::conflict(&row.group, &row.plural, &request.path.name, &why));
    }
    if object.name().is_empty() {
        return Err(Status::bad_request(format!(
            "the name of the object ({} based on URL) was undeterminable: name must be provided",
            request.path.name
        )));
    }
    super::meta::match_namespace(request, &mut object)?;
    update::check_name(request, &object)?;
    request.refuse_if_terminating(object.name())?;
    // A revision is ignored here; a dry run returns it.
    if !options.dry_run {
        object.remove(&["metadata", "resourceVersion"]);
    }
    let entries = object.remove(&MANAGED_FIELDS);
    create::to_stored_form(request, &mut object)?;
    request.work_size.grow_with(&object).await;
    if let Some(entries) = entries {
        object.set(&MANAGED_FIELDS, entries);
    }
    create::store(request, object, Vec::new(), options).await
}

/// The applied configuration.
pub(super) struct ApplyConfiguration {
    pub(super) value: Value,
    duplicates: Vec<String>,
}

impl ApplyConfiguration {
    /// Parses the body.
    pub(super) fn read(request: &Request<'_>) -> Result<Self, Status> {
        let (value, duplicates) = decode::yaml(&request.body)?;
        let json_type = match &value {
            Value::Object(_) => return Ok(Self { value, duplicates }),
            // An empty body is an empty configuration.
            Value::Null => {
                return Ok(Self { value: Value::Object(serde_json::Map::new()), duplicates });
            }
            Value::Array(_) => "array",
            Value::String(_) => "string",
            Value::Number(_) => "number",
            Value::Bool(_) => "bool",
        };
        Err(Status::bad_request(format!(
            "error decoding YAML: error unmarshaling JSON: while decoding JSON: json: cannot unmarshal {json_type} into Go value of type map[string]interface {{}}"
        )))
    }

    /// How the resulting object's revision is checked.
    pub(super) fn version(&self) -> VersionCheck {
        match self.value.pointer("/metadata/resourceVersion") {
            None | Some(Value::Null) => VersionCheck::Skipped,
            Some(_) => VersionCheck::IfPresent,
        }
    }

    /// Merges the configuration into an object: the result is in the request's version, with its
    /// managed fields.
    fn apply(
        &self,
        request: &Request<'_>,
        field_manager: &FieldManager<'_>,
        live: Option<&Object>,
        options: &WriteOptions,
    ) -> Result<Object, Status> {
        let row = &request.row;
        let merged = field_manager.apply(live, &self.value, options.force)?;
        let entries = merged.get(&MANAGED_FIELDS).cloned();
        // Unknown fields were refused earlier; this normalizes values as Go writes them.
        let mut object = mainstay_conversion::decode::decode_applied(row, merged.into_value())
            .map_err(|error| conversion_failure(request, &self.value, &error))?;
        if let Some(entries) = entries {
            object.set(&MANAGED_FIELDS, entries);
        }
        Ok(object)
    }

    /// Warns about duplicate keys, or refuses them, as the client requested.
    pub(super) fn check_duplicates(
        &self,
        request: &Request<'_>,
        options: &WriteOptions,
    ) -> Result<(), Status> {
        let warnings = options.validation.apply_to(self.duplicates.clone(), |_| {
            Status::bad_request(format!(
                "error strict decoding YAML: error converting YAML to JSON: yaml: unmarshal errors:\n  {}",
                self.duplicates.join("\n  ")
            ))
        })?;
        for warning in warnings {
            request.warn(warning);
        }
        Ok(())
    }
}

/// 500, as in kube-apiserver: the configuration has the right types but does not convert to the
/// kind.
fn conversion_failure(request: &Request<'_>, config: &Value, error: &DecodeObjectError) -> Status {
    let version = &request.row.api_version;
    let printed = managed::describe_object(config, &request.row.gvk());
    Status::new(
        Reason::Unknown,
        format!("failed to convert new object ({printed}) to proper version ({version}): {error}"),
    )
}
