//! Server-side apply: a client says what it wants of an object, and owns what it says.
//!
//! Data flow: body (YAML or JSON) ─► configuration ─► merged with the live object, or with an empty
//! one ─► read as the kind's type ─► the same way as an update or a creation.

use super::change;
use super::commit::ATTEMPTS;
use super::options::{Verb, WriteOptions};
use super::part::Part;
use super::request::Request;
use super::track::{ENTRIES, Tracker};
use super::updated_object::{UpdatedObject, Version};
use super::{create, decode};
use mainstay_conversion::decode::DecodeError;
use mainstay_http::response::ApiResponse;
use mainstay_object::{Object, Reason, Status};
use mainstay_patch::managed;
use serde_json::Value;

/// A PATCH of the type `application/apply-patch+yaml`.
pub(super) async fn answer(request: &Request<'_>, part: Part) -> Result<ApiResponse, Status> {
    let options = WriteOptions::read(request, Verb::Apply)?;
    let mut attempts = ATTEMPTS;
    loop {
        attempts -= 1;
        if request.server.store.get(&request.key()).is_some() || part != Part::Main {
            let make = |live: &Object, tracker: &Tracker<'_>| {
                let config = Config::read(request)?;
                let object = config.applied(request, tracker, Some(live), &options)?;
                config.judge(request, &options)?;
                let version = config.version();
                Ok(UpdatedObject { object, warnings: Vec::new(), tracked: true, version })
            };
            return match change::apply(request, part, &options, make).await {
                // Deleted in between: then it is created.
                Err(status) if status.reason == Reason::NotFound && is_main(part, attempts) => {
                    continue;
                }
                changed => changed?.answer(request),
            };
        }
        return match create(request, &options).await {
            Err(status) if status.reason == Reason::AlreadyExists && attempts > 0 => continue,
            answer => answer,
        };
    }
}

fn is_main(part: Part, attempts: usize) -> bool {
    part == Part::Main && attempts > 0
}

async fn create(request: &Request<'_>, options: &WriteOptions) -> Result<ApiResponse, Status> {
    let tracker = Tracker::new(request, Part::Main, options);
    let config = Config::read(request)?;
    let applied = || config.applied(request, &tracker, None, options);
    let mut object = tracker.converting(applied).await?;
    config.judge(request, options)?;
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
    change::check_name(request, &object)?;
    request.refuse_if_terminating(object.name())?;
    // A revision is no mistake here; of a dry run it is answered.
    if !options.dry_run {
        object.remove(&["metadata", "resourceVersion"]);
    }
    let entries = object.remove(&ENTRIES);
    create::receive(request, &mut object)?;
    request.work_size.grow_with(&object).await;
    if let Some(entries) = entries {
        object.set(&ENTRIES, entries);
    }
    create::store(request, object, Vec::new(), options).await
}

/// What is applied.
pub(super) struct Config {
    pub(super) value: Value,
    duplicates: Vec<String>,
}

impl Config {
    /// Reads the body.
    pub(super) fn read(request: &Request<'_>) -> Result<Self, Status> {
        let (value, duplicates) = decode::yaml(&request.body)?;
        let found = match &value {
            Value::Object(_) => return Ok(Self { value, duplicates }),
            // As if nothing was said.
            Value::Null => {
                return Ok(Self { value: Value::Object(serde_json::Map::new()), duplicates });
            }
            Value::Array(_) => "array",
            Value::String(_) => "string",
            Value::Number(_) => "number",
            Value::Bool(_) => "bool",
        };
        Err(Status::bad_request(format!(
            "error decoding YAML: error unmarshaling JSON: while decoding JSON: json: cannot unmarshal {found} into Go value of type map[string]interface {{}}"
        )))
    }

    /// What the revision of the outcome means.
    pub(super) fn version(&self) -> Version {
        match self.value.pointer("/metadata/resourceVersion") {
            None | Some(Value::Null) => Version::Kept,
            Some(_) => Version::IfSent,
        }
    }

    /// What becomes of the object when the configuration is applied to it: in the request's
    /// version, with its managers.
    fn applied(
        &self,
        request: &Request<'_>,
        tracker: &Tracker<'_>,
        live: Option<&Object>,
        options: &WriteOptions,
    ) -> Result<Object, Status> {
        let row = &request.row;
        let merged = tracker.applied(live, &self.value, options.force)?;
        let entries = merged.get(&ENTRIES).cloned();
        // What is unknown was refused before; what is left is how Go would write the values.
        let mut object = mainstay_conversion::decode::applied(row, merged.into_value())
            .map_err(|error| unreadable(request, &self.value, &error))?;
        if let Some(entries) = entries {
            object.set(&ENTRIES, entries);
        }
        Ok(object)
    }

    /// Warns of keys that are there twice, or refuses them, as the client asked for.
    pub(super) fn judge(
        &self,
        request: &Request<'_>,
        options: &WriteOptions,
    ) -> Result<(), Status> {
        let warnings = options.validation.judge_with(self.duplicates.clone(), |_| {
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

/// 500, as the original: what is applied has the right types but cannot be read as the kind's.
fn unreadable(request: &Request<'_>, config: &Value, error: &DecodeError) -> Status {
    let version = &request.row.api_version;
    let shown = managed::describe_object(config, &request.row.gvk());
    Status::new(
        Reason::Unknown,
        format!("failed to convert new object ({shown}) to proper version ({version}): {error}"),
    )
}
