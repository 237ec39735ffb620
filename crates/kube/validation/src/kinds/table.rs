//! A row of the table of built-in kinds as a [`Strategy`].

use super::super::rules::{Errors, walk_object};
use super::super::{
    Context, Deletion, KindRow, MetadataChecks, ResetFields, StatusMetadata, Strategy, WriteTarget,
    check, warnings,
};
use super::KindStrategy;
use mainstay_object::{FieldError, Object, Status};
use std::borrow::Cow;

impl Strategy for KindStrategy {
    fn name_problems(&self, name: &str) -> Vec<String> {
        (self.validate_name)(name)
    }

    fn counts_generations(&self) -> bool {
        self.counts_generations
    }

    fn keeps_status_on_create(&self) -> bool {
        self.keeps_status_on_create
    }

    fn creates_on_update(&self) -> bool {
        self.creates_on_update
    }

    fn allows_unconditional_update(&self) -> bool {
        self.unconditional_update
    }

    fn default(&self, object: &mut Object) {
        (self.default)(object);
    }

    fn prepare_create(&self, object: &mut Object, context: &Context<'_>) -> Result<(), Status> {
        (self.prepare_create)(object, context)
    }

    fn prepare_update(
        &self,
        object: &mut Object,
        old: &Object,
        context: &Context<'_>,
    ) -> Result<(), Status> {
        (self.prepare_update)(object, old, context)
    }

    fn metadata(&self) -> MetadataChecks {
        self.metadata
    }

    fn validate(
        &self,
        object: &Object,
        old: Option<&Object>,
        target: WriteTarget<'_>,
    ) -> Vec<FieldError> {
        let mut errors = Errors::default();
        match (target.subresource, old, self.validate_update) {
            ("status", Some(old), _) => (self.validate_status)(object, old, &mut errors),
            ("finalize", Some(old), _) => check::namespace_finalize(object, old, &mut errors),
            ("approval", Some(old), _) => check::signing_request_approval(object, old, &mut errors),
            ("resize", ..) => check::pod(object, &mut errors),
            (_, Some(old), Some(check)) => check(object, old, &mut errors),
            _ => {
                walk_object(object, self.field_rules, &mut errors);
                (self.validate)(object, &mut errors);
            }
        }
        if object.kind() == "Event" {
            // The API group of the request decides which rules apply.
            let strict = target.group == "events.k8s.io";
            check::event(object, strict, &mut errors);
            match old {
                _ if !strict => {}
                None => check::new_event(object, &mut errors),
                Some(old) => check::new_event_update(object, old, &mut errors),
            }
        }
        errors.into_vec()
    }

    fn warnings(
        &self,
        object: &Object,
        old: Option<&Object>,
        target: WriteTarget<'_>,
    ) -> Vec<String> {
        match target.subresource {
            "" => (self.warnings)(object, old),
            "status" => warnings::status(object),
            _ => Vec::new(),
        }
    }

    fn selectable_fields(&self) -> &'static [&'static str] {
        self.selectable_fields
    }

    fn field<'a>(&self, object: &'a Object, path: &str) -> Cow<'a, str> {
        selectable(object, path)
    }

    fn field_of_alias<'a>(&self, path: &'a str) -> &'a str {
        let alias = self.field_aliases.iter().find(|(alias, _)| *alias == path);
        alias.map_or(path, |(_, field)| field)
    }

    fn unknown_field(&self, row: &KindRow, path: &str) -> Option<String> {
        self.unknown_field.map(|message| message(row, path))
    }

    fn status_metadata(&self) -> StatusMetadata {
        self.status_metadata
    }

    fn reset_fields(&self) -> Option<ResetFields> {
        (self.reset_fields)(self.status_metadata)
    }

    fn kept_on_update(&self) -> &'static [&'static [&'static str]] {
        self.kept_on_update
    }

    fn counts_as_change(&self, sent: &Object) -> bool {
        (self.counts_as_change)(sent)
    }

    fn defaults_after_validation(&self) -> bool {
        self.defaults_after_validation
    }

    fn deletion(&self) -> Deletion {
        self.deletion
    }

    fn deletion_mark(&self) -> Option<fn(&mut Object)> {
        self.deletion_mark
    }

    fn holds_deletion(&self, object: &Object) -> bool {
        (self.holds_deletion)(object)
    }

    fn storage_prefix(&self) -> Option<&'static str> {
        self.storage_prefix
    }

    fn sort_table(&self, objects: &mut [Object]) {
        (self.sort_table)(objects);
    }
}

/// The value of a selectable field. Most are read at their path; a few are computed. Absent numbers
/// and booleans have the zero value of Go.
fn selectable<'a>(object: &'a Object, path: &str) -> Cow<'a, str> {
    match path {
        "spec.unschedulable" | "spec.hostNetwork" => {
            let segments: Vec<&str> = path.split('.').collect();
            Cow::Borrowed(if object.bool(&segments) == Some(true) { "true" } else { "false" })
        }
        "status.replicas" => {
            Cow::Owned(object.i64(&["status", "replicas"]).unwrap_or_default().to_string())
        }
        // The number of succeeded pods of a Job.
        "status.successful" => {
            Cow::Owned(object.i64(&["status", "succeeded"]).unwrap_or_default().to_string())
        }
        "status.podIPs" => {
            let addresses = object.array(&["status", "podIPs"]);
            let texts = addresses.iter().filter_map(|address| address.get("ip")?.as_str());
            Cow::Owned(texts.collect::<Vec<_>>().join(","))
        }
        // The reporter of an Event, in the older or the newer field.
        "source" => {
            let source = object.str(&["source", "component"]).filter(|text| !text.is_empty());
            Cow::Borrowed(source.or(object.str(&["reportingComponent"])).unwrap_or_default())
        }
        _ => {
            let segments: Vec<&str> = path.split('.').collect();
            match object.get(&segments) {
                Some(serde_json::Value::String(text)) => Cow::Borrowed(text),
                Some(serde_json::Value::Null) | None => Cow::Borrowed(""),
                Some(other) => Cow::Owned(other.to_string()),
            }
        }
    }
}
