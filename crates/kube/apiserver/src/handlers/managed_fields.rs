//! Managed fields of a written object: [`mainstay_patch::managed`], with the versions and types of
//! a kind.

use super::options::WriteOptions;
use super::request::Request;
use super::scale::object::{gvk, scale_of, spec_path};
use super::subresource::{self, Subresource};
use super::updated_object::{UpdatedObject, VersionCheck};
use crate::server::ApiServer;
use mainstay_conversion::forms;
use mainstay_conversion::webhook::{ConvertObjectsError, Converter};
use mainstay_kinds::{CustomVersion, KindRow, KindSource, Kinds};
use mainstay_object::{Gvk, NotAnObject, Object, Reason, Status};
use mainstay_patch::apply::{
    ConversionError, Duplicates, FieldFilter, PathElement, TypeRef, VersionConverter, validate,
};
use mainstay_patch::managed::{
    ManagedFields, ManagedWrite, ReplicasPaths, parent_entries, scale_entries,
};
use mainstay_schema::builtin::{self, TypeDefinition};
use mainstay_schema::{crd, form};
use parking_lot::Mutex;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The field manager of the server's own writes.
const SERVER_MANAGER: &str = "kube-apiserver";
/// Path of the managed fields in an object.
pub(super) const MANAGED_FIELDS: [&str; 2] = ["metadata", "managedFields"];

/// Updates the managed fields of one write.
pub(super) struct FieldManager<'a> {
    row: &'a KindRow,
    manager: &'a str,
    subresource: &'static str,
    gvk: Gvk,
    now: String,
    versions: KindVersions<'a>,
    filters: BTreeMap<String, FieldFilter>,
}

impl<'a> FieldManager<'a> {
    /// For a write of a client.
    pub(super) fn new(
        request: &'a Request<'_>,
        subresource: Subresource,
        options: &'a WriteOptions,
    ) -> Self {
        Self::with_manager(request.server, &request.row, subresource, &options.manager)
    }

    /// For a write of the server itself.
    pub(super) fn for_server(
        server: &'a ApiServer,
        row: &'a KindRow,
        subresource: Subresource,
    ) -> Self {
        Self::with_manager(server, row, subresource, SERVER_MANAGER)
    }

    fn with_manager(
        server: &'a ApiServer,
        row: &'a KindRow,
        subresource: Subresource,
        manager: &'a str,
    ) -> Self {
        Self {
            row,
            manager,
            subresource: subresource.name(),
            gvk: row.gvk(),
            now: server.clock.now_rfc3339(),
            versions: KindVersions {
                server,
                row,
                kinds: server.registry.kinds(),
                webhook: Mutex::default(),
            },
            filters: subresource::reset_fields(row, subresource),
        }
    }

    fn with_write<T>(&self, action: impl FnOnce(&ManagedWrite<'_>) -> T) -> T {
        let empty_object = empty_object(&self.gvk, self.row.definition());
        action(&ManagedWrite {
            manager: self.manager,
            gvk: &self.gvk,
            subresource: self.subresource,
            now: &self.now,
            versions: &self.versions,
            filters: &self.filters,
            empty: &empty_object,
        })
    }

    /// Runs a step that converts between versions. If a webhook has to convert, the step runs again
    /// after each conversion.
    pub(super) async fn with_conversions<T>(&self, mut step: impl FnMut() -> T) -> T {
        loop {
            let result = step();
            // No conversion is requested twice, so the loop ends.
            let Some(missing) = self.versions.webhook.lock().missing.take() else { return result };
            let converted = self.versions.convert_by_webhook(&missing).await;
            self.versions.webhook.lock().converted.push((missing, converted.map_err(Arc::new)));
        }
    }

    /// Sets the managed fields of a new object in the stored form; `sent` are those of the client.
    pub(super) async fn track_create(&self, object: &mut Object, sent: Option<&Value>) {
        if self.versions.converter().is_none() {
            return self.record_create(object, sent);
        }
        let record = || {
            let mut created = object.clone();
            self.record_create(&mut created, sent);
            created
        };
        *object = self.with_conversions(record).await;
    }

    fn record_create(&self, object: &mut Object, sent: Option<&Value>) {
        self.in_version(object, |object| {
            self.with_write(|write| write.set_on_create(object, sent));
        });
    }

    /// Sets the managed fields of an object that replaces another one; both in the stored form.
    /// `sent` are those of the client.
    pub(super) async fn track_update(
        &self,
        old: &mut Object,
        object: &mut Object,
        sent: Option<&Value>,
    ) {
        if self.versions.converter().is_none() {
            return self.record_update(old, object, sent);
        }
        let record = || {
            let (mut old, mut updated) = (old.clone(), object.clone());
            self.record_update(&mut old, &mut updated, sent);
            (old, updated)
        };
        (*old, *object) = self.with_conversions(record).await;
    }

    fn record_update(&self, old: &mut Object, object: &mut Object, sent: Option<&Value>) {
        if self.discards_type_error(old, object) {
            return;
        }
        if forms::is_identity(self.row) {
            return self.with_write(|write| write.set_on_update(old, object, sent));
        }
        let mut live = old.clone();
        forms::from_storage(self.row, &mut live);
        self.in_version(object, |object| {
            self.with_write(|write| write.set_on_update(&mut live, object, sent));
        });
    }

    /// Whether a changed custom object has a wrong type in a part that this write discards: in its
    /// status, or outside of it. The write succeeds, but kube-apiserver then drops all managed
    /// fields.
    fn discards_type_error(&self, old: &Object, object: &Object) -> bool {
        if self.row.custom().is_none() || !self.row.has_status() {
            return false;
        }
        let writes_status = !self.subresource.is_empty();
        let is_discarded = |field: &str| {
            !matches!(field, "metadata" | "apiVersion" | "kind")
                && (field == "status") != writes_status
        };
        let has_type_error = || {
            let version = self.gvk.api_version();
            let Some(ty) = self.versions.type_of(&version) else { return false };
            let fields = object.fields().iter().filter(|(field, _)| is_discarded(field));
            let fields = fields.map(|(field, value)| (field.clone(), value.clone()));
            validate(&Value::Object(fields.collect()), ty, Duplicates::Allowed).is_err()
        };
        object
            .fields()
            .iter()
            .any(|(field, value)| is_discarded(field) && old.fields().get(field) != Some(value))
            && has_type_error()
    }

    /// Sets the managed fields of a new object of a built-in kind that the server creates.
    pub(super) fn track_server_create(&self, object: &mut Object) {
        self.record_create(object, None);
    }

    /// Sets the managed fields of an object of a built-in kind that the server updates.
    pub(super) fn track_server_update(&self, old: &mut Object, object: &mut Object) {
        object.remove(&MANAGED_FIELDS);
        self.record_update(old, object, None);
    }

    /// Runs an action on an object in the request's version, and copies its managed fields.
    fn in_version(&self, object: &mut Object, action: impl FnOnce(&mut Object)) {
        if forms::is_identity(self.row) {
            return action(object);
        }
        let mut request_version = object.clone();
        forms::from_storage(self.row, &mut request_version);
        action(&mut request_version);
        match request_version.remove(&MANAGED_FIELDS) {
            Some(entries) => object.set(&MANAGED_FIELDS, entries),
            None => {
                object.remove(&MANAGED_FIELDS);
            }
        }
    }

    /// Sets the managed fields of an object that is returned without being stored.
    pub(super) fn track_unstored(
        request: &Request<'_>,
        options: &WriteOptions,
        gvk: &Gvk,
        subresource: &str,
        object: &mut Object,
    ) {
        let definition = builtin::definition_of(gvk);
        if let Some(definition) = definition {
            form::complete(definition, object.fields_mut());
        }
        let write = ManagedWrite {
            manager: &options.manager,
            gvk,
            subresource,
            now: &request.server.clock.now_rfc3339(),
            versions: &SingleVersion { gvk, definition },
            filters: &BTreeMap::new(),
            empty: &empty_object(gvk, definition),
        };
        let sent = object.remove(&MANAGED_FIELDS);
        write.set_on_create(object, sent.as_ref());
    }

    /// Applies a configuration to an object in the request's version, or to a new one.
    pub(super) fn apply(
        &self,
        live: Option<&Object>,
        config: &Value,
        force: bool,
    ) -> Result<Object, Status> {
        self.with_write(|write| write.apply(live, config, force))
    }
}

/// kube-apiserver's empty object of a kind.
pub(super) fn empty_object(gvk: &Gvk, definition: Option<&TypeDefinition>) -> Value {
    let mut fields = Map::new();
    fields.insert("apiVersion".to_owned(), gvk.api_version().into());
    fields.insert("kind".to_owned(), gvk.kind.as_str().into());
    match definition {
        Some(definition) => form::complete(definition, &mut fields),
        None => {
            fields.insert("metadata".to_owned(), json!({}));
        }
    }
    Value::Object(fields)
}

/// The versions of a kind.
struct KindVersions<'a> {
    server: &'a ApiServer,
    row: &'a KindRow,
    kinds: Arc<Kinds>,
    webhook: Mutex<WebhookConversions>,
}

/// An object and the target version of its conversion.
type Conversion = (Object, String);

/// Conversions by a webhook. The code that needs them is synchronous. So a missing conversion is
/// recorded, made, and found in the next run ([`FieldManager::with_conversions`]).
#[derive(Default)]
struct WebhookConversions {
    converted: Vec<(Conversion, Result<Value, Arc<ConvertObjectsError>>)>,
    /// The first missing conversion.
    missing: Option<Conversion>,
}

impl WebhookConversions {
    fn convert(&mut self, object: Object, api_version: &str) -> Result<Value, VersionError> {
        let is_requested = |(from, to): &Conversion| *from == object && to == api_version;
        if let Some((_, converted)) =
            self.converted.iter().find(|(conversion, _)| is_requested(conversion))
        {
            return converted.clone().map_err(VersionError::Webhook);
        }
        let api_version = api_version.to_owned();
        self.missing.get_or_insert_with(|| (object, api_version.clone()));
        Err(VersionError::Waiting { api_version })
    }
}

impl KindVersions<'_> {
    /// The conversion webhook of the kind, if it has one.
    fn converter(&self) -> Option<Arc<Converter>> {
        Converter::of(self.row.custom()?)
    }

    async fn convert_by_webhook(
        &self,
        (object, target): &Conversion,
    ) -> Result<Value, ConvertObjectsError> {
        let Some(converter) = self.converter() else { return Ok(object.to_value()) };
        let objects = std::slice::from_ref(object);
        let mut converted = converter.convert(&self.server.outbound, objects, target).await?;
        Ok(converted.pop().unwrap_or_default().into_value())
    }

    /// The row of another version of a built-in kind.
    fn row_of_version(&self, api_version: &str) -> Option<&Arc<KindRow>> {
        self.kinds.rows().find(|row| {
            // The two groups of Events do not count as versions of each other.
            row.storage == self.row.storage
                && row.group == self.row.group
                && *row.api_version == *api_version
        })
    }
}

/// An object cannot be converted to another version of its kind.
#[derive(Debug, thiserror::Error)]
enum VersionError {
    /// The value is no object.
    #[error(transparent)]
    NotAnObject(#[from] NotAnObject),
    /// The CRD does not have the version any more.
    #[error("request to convert CR to an invalid group/version: {api_version}")]
    UnknownVersion {
        /// The version.
        api_version: String,
    },
    /// The conversion webhook of the CRD failed.
    #[error(transparent)]
    Webhook(Arc<ConvertObjectsError>),
    /// The webhook conversion has not run yet.
    #[error("waiting for the conversion to {api_version}")]
    Waiting {
        /// The version.
        api_version: String,
    },
    /// The version does not have the built-in kind.
    #[error("no kind {kind} in {api_version}")]
    NoKind {
        /// The kind.
        kind: String,
        /// The version.
        api_version: String,
    },
}

impl KindVersions<'_> {
    fn in_version(&self, object: &Value, api_version: &str) -> Result<Value, VersionError> {
        let from = object.get("apiVersion").and_then(Value::as_str).unwrap_or_default();
        if from == api_version {
            return Ok(object.clone());
        }
        let mut object = Object::from_value(object.clone())?;
        match &self.row.source {
            // A version that was removed is an error here, and not an unserved version:
            // kube-apiserver then drops all managed fields.
            KindSource::Custom(custom) if version_of(custom, api_version).is_none() => {
                let api_version = api_version.to_owned();
                return Err(VersionError::UnknownVersion { api_version });
            }
            KindSource::Custom(_) if self.converter().is_some() => {
                return self.webhook.lock().convert(object, api_version);
            }
            KindSource::Custom(_) => object.set(&["apiVersion"], api_version.into()),
            KindSource::BuiltIn(_) => {
                let missing = |version: &str| VersionError::NoKind {
                    kind: self.row.kind.to_string(),
                    api_version: version.to_owned(),
                };
                let source_row = self.row_of_version(from).ok_or_else(|| missing(from))?;
                let target_row =
                    self.row_of_version(api_version).ok_or_else(|| missing(api_version))?;
                forms::to_storage(source_row, &mut object);
                forms::from_storage(target_row, &mut object);
            }
        }
        Ok(object.into_value())
    }
}

impl VersionConverter for KindVersions<'_> {
    fn convert(&self, object: &Value, api_version: &str) -> Result<Value, ConversionError> {
        Ok(self.in_version(object, api_version)?)
    }

    fn type_of(&self, api_version: &str) -> Option<TypeRef<'_>> {
        match &self.row.source {
            KindSource::BuiltIn(_) if *self.row.api_version == *api_version => {
                self.row.definition().map(TypeRef::builtin)
            }
            KindSource::BuiltIn(_) => {
                self.row_of_version(api_version)?.definition().map(TypeRef::builtin)
            }
            KindSource::Custom(custom) => Some(match version_of(custom, api_version) {
                Some(version) => TypeRef::structural(&version.schema, false),
                None => TypeRef::deduced(),
            }),
        }
    }
}

fn version_of<'a>(custom: &'a CustomVersion, api_version: &str) -> Option<&'a crd::CrdVersion> {
    let definition = &custom.definition;
    let is_version =
        |version: &&crd::CrdVersion| definition.gvk(&version.name).api_version() == api_version;
    definition.versions.iter().find(is_version)
}

/// A built-in kind without storage, which has one version.
struct SingleVersion<'a> {
    gvk: &'a Gvk,
    definition: Option<&'static TypeDefinition>,
}

impl VersionConverter for SingleVersion<'_> {
    fn convert(&self, object: &Value, _: &str) -> Result<Value, ConversionError> {
        Ok(object.clone())
    }

    fn type_of(&self, api_version: &str) -> Option<TypeRef<'_>> {
        let definition = self.definition.filter(|_| *self.gvk.api_version() == *api_version);
        definition.map(TypeRef::builtin)
    }
}

fn scale_type() -> Option<&'static TypeDefinition> {
    builtin::definition_of(&gvk())
}

/// The managed fields of an object while its scale is written.
pub(super) struct ScaleFieldManager<'a> {
    row: &'a KindRow,
    manager: &'a str,
    now: String,
    parent: ManagedFields,
    live: Object,
}

impl<'a> ScaleFieldManager<'a> {
    /// For a write of the scale of an object, which is in the request's version.
    pub(super) fn new(
        request: &'a Request<'_>,
        options: &'a WriteOptions,
        parent: &Object,
    ) -> Result<Self, Status> {
        let row = &*request.row;
        let mut live = Object::from_value(scale_of(row, parent)).unwrap_or_default();
        let parent = ManagedFields::read(parent.get(&MANAGED_FIELDS))
            .map_err(|error| Status::new(Reason::Unknown, error.to_string()))?;
        if let Some(entries) = with_paths(row, |paths| scale_entries(&parent, paths)) {
            live.set(&MANAGED_FIELDS, entries);
        }
        let now = request.server.clock.now_rfc3339();
        Ok(Self { row, manager: &options.manager, now, parent, live })
    }

    fn with_write<T>(&self, action: impl FnOnce(&ManagedWrite<'_>) -> T) -> T {
        let gvk = gvk();
        action(&ManagedWrite {
            manager: self.manager,
            gvk: &gvk,
            subresource: Subresource::Scale.name(),
            now: &self.now,
            versions: &SingleVersion { gvk: &gvk, definition: scale_type() },
            filters: &BTreeMap::new(),
            empty: &empty_object(&gvk, scale_type()),
        })
    }

    /// Sets the managed fields of a scale.
    pub(super) fn track_update(&self, scale: &mut Object) {
        if let Some(definition) = scale_type() {
            form::complete(definition, scale.fields_mut());
        }
        let mut live = self.live.clone();
        scale.remove(&MANAGED_FIELDS);
        self.with_write(|write| write.set_on_update(&mut live, scale, None));
    }

    /// Applies a configuration to the scale.
    pub(super) fn apply(&self, config: &Value, force: bool) -> Result<Object, Status> {
        self.with_write(|write| write.apply(Some(&self.live), config, force))
    }

    /// Whether a scale differs from the current one.
    pub(super) fn differs(&self, scale: &Object) -> bool {
        ["metadata", "spec", "status"].iter().any(|field| {
            let (mut new, mut live) =
                (scale.get(&[field]).cloned(), self.live.get(&[field]).cloned());
            for fields in [&mut new, &mut live].into_iter().flatten() {
                fields.as_object_mut().map(|fields| fields.remove("managedFields"));
            }
            new != live
        })
    }

    /// The object with a new number of replicas, and with managed fields that follow from those of
    /// its scale.
    pub(super) fn into_parent(
        self,
        mut object: Object,
        scale: &Object,
        warnings: Vec<String>,
        version: VersionCheck,
    ) -> UpdatedObject {
        // These entries were encoded above, so they are valid.
        let managed = ManagedFields::read(scale.get(&MANAGED_FIELDS)).unwrap_or_default();
        let request_version = &*self.row.api_version;
        match with_paths(self.row, |paths| {
            parent_entries(self.parent, managed, request_version, paths)
        }) {
            Some(entries) => object.set(&MANAGED_FIELDS, entries),
            None => {
                object.remove(&MANAGED_FIELDS);
            }
        }
        UpdatedObject { object, warnings, has_managed_fields: true, version }
    }
}

/// The paths of the replicas, in each version of a kind.
fn with_paths<T>(row: &KindRow, action: impl FnOnce(&ReplicasPaths<'_>) -> T) -> T {
    let elements = |path: &str| -> Vec<PathElement> {
        path.split('.').filter(|field| !field.is_empty()).map(PathElement::field).collect()
    };
    let paths_by_version: Vec<(String, Vec<PathElement>)> = match &row.source {
        KindSource::Custom(custom) => {
            let definition = &custom.definition;
            let in_version = |version: &crd::CrdVersion| {
                let path = version.scale.as_ref().map(|scale| elements(&scale.spec_replicas));
                (definition.gvk(&version.name).api_version(), path.unwrap_or_default())
            };
            definition.versions.iter().map(in_version).collect()
        }
        KindSource::BuiltIn(_) => {
            let path = elements(spec_path(row));
            vec![((*row.api_version).to_owned(), path)]
        }
    };
    let paths: Vec<_> = paths_by_version
        .iter()
        .map(|(version, path)| (version.as_str(), path.as_slice()))
        .collect();
    action(&paths)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn object(version: &str) -> Object {
        Object::from_value(json!({"apiVersion": version, "kind": "Widget"})).unwrap()
    }

    #[test]
    fn a_webhook_conversion_is_requested_once_and_then_reused() {
        let mut webhook = WebhookConversions::default();
        assert!(webhook.convert(object("x/v1"), "x/v2").is_err());
        // A second missing conversion waits for the next run.
        assert!(webhook.convert(object("x/v1"), "x/v3").is_err());
        let missing = webhook.missing.take().unwrap();
        assert_eq!(missing, (object("x/v1"), "x/v2".to_owned()));
        webhook.converted.push((missing, Ok(object("x/v2").into_value())));
        let converted = webhook.convert(object("x/v1"), "x/v2").unwrap();
        assert_eq!(converted, object("x/v2").into_value());
        assert_eq!(webhook.missing, None);
        assert!(webhook.convert(object("x/v1"), "x/v3").is_err());
        assert_eq!(webhook.missing.map(|(_, version)| version).as_deref(), Some("x/v3"));
    }
}
