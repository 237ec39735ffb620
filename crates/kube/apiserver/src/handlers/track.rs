//! Who manages which field of an object that is written: the pipeline of
//! [`mainstay_patch::managed`] with what it must know of a kind.

use super::options::WriteOptions;
use super::part::{self, Part};
use super::request::Request;
use super::scale::object::{gvk, scale_of, spec_path};
use super::updated_object::{UpdatedObject, Version};
use crate::server::ApiServer;
use mainstay_conversion::forms;
use mainstay_conversion::webhook::{ConvertError, Converter};
use mainstay_kinds::{Custom, KindRow, Kinds, Source};
use mainstay_object::{Gvk, NotAnObject, Object, Reason, Status};
use mainstay_patch::apply::{
    ConversionError, Duplicates, FieldFilter, PathElement, TypeRef, VersionConverter, validate,
};
use mainstay_patch::managed::{
    ManagedFields, ManagedWrite, ReplicasPaths, parent_entries, scale_entries,
};
use mainstay_schema::builtin::{self, Definition};
use mainstay_schema::{crd, form};
use parking_lot::Mutex;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;

/// What the server is called as a manager.
const SERVER: &str = "kube-apiserver";
/// Where managers are in an object.
pub(super) const ENTRIES: [&str; 2] = ["metadata", "managedFields"];

/// Settles the managers of one write of a kind.
pub(super) struct Tracker<'a> {
    row: &'a KindRow,
    manager: &'a str,
    subresource: &'static str,
    gvk: Gvk,
    now: String,
    versions: KindVersions<'a>,
    filters: BTreeMap<String, FieldFilter>,
}

impl<'a> Tracker<'a> {
    /// For a write of a part of the request's kind.
    pub(super) fn new(request: &'a Request<'_>, part: Part, options: &'a WriteOptions) -> Self {
        Self::of(request.server, &request.row, part, &options.manager)
    }

    /// For a write that the server makes itself.
    pub(super) fn own(server: &'a ApiServer, row: &'a KindRow, part: Part) -> Self {
        Self::of(server, row, part, SERVER)
    }

    fn of(server: &'a ApiServer, row: &'a KindRow, part: Part, manager: &'a str) -> Self {
        Self {
            row,
            manager,
            subresource: part.name(),
            gvk: row.gvk(),
            now: server.clock.now_rfc3339(),
            versions: KindVersions {
                server,
                row,
                kinds: server.registry.kinds(),
                webhook: Mutex::default(),
            },
            filters: part::reset(row, part),
        }
    }

    fn with<T>(&self, act: impl FnOnce(&ManagedWrite<'_>) -> T) -> T {
        let empty = empty(&self.gvk, self.row.definition());
        act(&ManagedWrite {
            manager: self.manager,
            gvk: &self.gvk,
            subresource: self.subresource,
            now: &self.now,
            versions: &self.versions,
            filters: &self.filters,
            empty: &empty,
        })
    }

    /// Does what compares versions of an object. Where a webhook converts between them it is done again
    /// after each conversion that the webhook had to make for it.
    pub(super) async fn converting<T>(&self, mut step: impl FnMut() -> T) -> T {
        loop {
            let done = step();
            // No conversion is asked for twice, so this ends.
            let Some(missing) = self.versions.webhook.lock().missing.take() else { return done };
            let made = self.versions.convert_by_webhook(&missing).await;
            self.versions.webhook.lock().made.push((missing, made.map_err(Arc::new)));
        }
    }

    /// Settles the managers of a new object in the stored form; `sent` is what the client says of
    /// them.
    pub(super) async fn created(&self, object: &mut Object, sent: Option<&Value>) {
        if self.versions.converter().is_none() {
            return self.settle_created(object, sent);
        }
        let settled = || {
            let mut settled = object.clone();
            self.settle_created(&mut settled, sent);
            settled
        };
        *object = self.converting(settled).await;
    }

    fn settle_created(&self, object: &mut Object, sent: Option<&Value>) {
        self.in_version(object, |object| self.with(|write| write.set_on_create(object, sent)));
    }

    /// Settles the managers of an object that replaces another one; both in the stored form.
    /// `sent` is what the client says of them.
    pub(super) async fn updated(
        &self,
        old: &mut Object,
        object: &mut Object,
        sent: Option<&Value>,
    ) {
        if self.versions.converter().is_none() {
            return self.settle_updated(old, object, sent);
        }
        let settled = || {
            let (mut old, mut settled) = (old.clone(), object.clone());
            self.settle_updated(&mut old, &mut settled, sent);
            (old, settled)
        };
        (*old, *object) = self.converting(settled).await;
    }

    fn settle_updated(&self, old: &mut Object, object: &mut Object, sent: Option<&Value>) {
        if self.spoils(old, object) {
            return;
        }
        if forms::is_identity(self.row) {
            return self.with(|write| write.set_on_update(old, object, sent));
        }
        let mut live = old.clone();
        forms::from_storage(self.row, &mut live);
        self.in_version(object, |object| {
            self.with(|write| write.set_on_update(&mut live, object, sent))
        });
    }

    /// Whether a changed custom object has a wrong type where the write changes nothing in the end:
    /// in its status, or beside it. Nobody refuses that, but then nobody manages anything any more.
    fn spoils(&self, old: &Object, object: &Object) -> bool {
        if self.row.custom().is_none() || !self.row.has_status() {
            return false;
        }
        let of_status = !self.subresource.is_empty();
        let lost = |field: &str| {
            !matches!(field, "metadata" | "apiVersion" | "kind") && (field == "status") != of_status
        };
        let wrong = || {
            let version = self.gvk.api_version();
            let Some(ty) = self.versions.type_of(&version) else { return false };
            let fields = object.fields().iter().filter(|(field, _)| lost(field));
            let fields = fields.map(|(field, value)| (field.clone(), value.clone()));
            validate(&Value::Object(fields.collect()), ty, Duplicates::Allowed).is_err()
        };
        object
            .fields()
            .iter()
            .any(|(field, value)| lost(field) && old.fields().get(field) != Some(value))
            && wrong()
    }

    /// Settles the managers of a new object that the server makes, of a built-in kind.
    pub(super) fn made(&self, object: &mut Object) {
        self.settle_created(object, None);
    }

    /// Settles the managers of an object that the server made from the old one, of a built-in kind.
    pub(super) fn changed(&self, old: &mut Object, object: &mut Object) {
        object.remove(&ENTRIES);
        self.settle_updated(old, object, None);
    }

    /// Does something with an object in the request's version, and takes its managers over.
    fn in_version(&self, object: &mut Object, act: impl FnOnce(&mut Object)) {
        if forms::is_identity(self.row) {
            return act(object);
        }
        let mut spoken = object.clone();
        forms::from_storage(self.row, &mut spoken);
        act(&mut spoken);
        match spoken.remove(&ENTRIES) {
            Some(entries) => object.set(&ENTRIES, entries),
            None => {
                object.remove(&ENTRIES);
            }
        }
    }

    /// Settles the managers of an object that is only answered.
    pub(super) fn answered(
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
            versions: &OneVersion { gvk, definition },
            filters: &BTreeMap::new(),
            empty: &empty(gvk, definition),
        };
        let sent = object.remove(&ENTRIES);
        write.set_on_create(object, sent.as_ref());
    }

    /// What a configuration makes of an object in the request's version; of none, of a new one.
    pub(super) fn applied(
        &self,
        live: Option<&Object>,
        config: &Value,
        force: bool,
    ) -> Result<Object, Status> {
        self.with(|write| write.apply(live, config, force))
    }
}

/// What the original calls an empty object of a kind.
pub(super) fn empty(gvk: &Gvk, definition: Option<&Definition>) -> Value {
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

/// An object and the version that it is to be converted to.
type Conversion = (Object, String);

/// What a webhook converts while managers are settled. Those who settle them cannot wait: what they
/// miss is noted, made, and there when they are asked again ([`Tracker::converting`]).
#[derive(Default)]
struct WebhookConversions {
    made: Vec<(Conversion, Result<Value, Arc<ConvertError>>)>,
    /// The first one that was missed.
    missing: Option<Conversion>,
}

impl WebhookConversions {
    fn convert(&mut self, object: Object, api_version: &str) -> Result<Value, VersionError> {
        let is_wanted = |(from, to): &Conversion| *from == object && to == api_version;
        if let Some((_, made)) = self.made.iter().find(|(conversion, _)| is_wanted(conversion)) {
            return made.clone().map_err(VersionError::Webhook);
        }
        let api_version = api_version.to_owned();
        self.missing.get_or_insert_with(|| (object, api_version.clone()));
        Err(VersionError::Waiting { api_version })
    }
}

impl KindVersions<'_> {
    /// The webhook that converts the kind, if one does.
    fn converter(&self) -> Option<Arc<Converter>> {
        Converter::of(self.row.custom()?)
    }

    async fn convert_by_webhook(
        &self,
        (object, wanted): &Conversion,
    ) -> Result<Value, ConvertError> {
        let Some(converter) = self.converter() else { return Ok(object.to_value()) };
        let objects = std::slice::from_ref(object);
        let mut made = converter.convert(&self.server.outbound, objects, wanted).await?;
        Ok(made.pop().unwrap_or_default().into_value())
    }

    /// The row of another version of a built-in kind.
    fn sibling(&self, api_version: &str) -> Option<&Arc<KindRow>> {
        self.kinds.rows().find(|row| {
            // Of an event's two groups the other one counts as not served.
            row.storage == self.row.storage
                && row.group == self.row.group
                && *row.api_version == *api_version
        })
    }
}

/// An object has no form in another version of its kind.
#[derive(Debug, thiserror::Error)]
enum VersionError {
    /// It is no object.
    #[error(transparent)]
    NotAnObject(#[from] NotAnObject),
    /// The definition does not have the version any more.
    #[error("request to convert CR to an invalid group/version: {api_version}")]
    UnknownVersion {
        /// The version.
        api_version: String,
    },
    /// The webhook of the definition does not convert it.
    #[error(transparent)]
    Webhook(Arc<ConvertError>),
    /// The webhook has not been asked yet.
    #[error("waiting for the conversion to {api_version}")]
    Waiting {
        /// The version.
        api_version: String,
    },
    /// The built-in kind is not in the version.
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
            // A version that there is no more is an error here, not a version that is not served:
            // the original then forgets all managers.
            Source::Custom(custom) if version_of(custom, api_version).is_none() => {
                let api_version = api_version.to_owned();
                return Err(VersionError::UnknownVersion { api_version });
            }
            Source::Custom(_) if self.converter().is_some() => {
                return self.webhook.lock().convert(object, api_version);
            }
            Source::Custom(_) => object.set(&["apiVersion"], api_version.into()),
            Source::BuiltIn(_) => {
                let missing = |version: &str| VersionError::NoKind {
                    kind: self.row.kind.to_string(),
                    api_version: version.to_owned(),
                };
                let spoken = self.sibling(from).ok_or_else(|| missing(from))?;
                let wanted = self.sibling(api_version).ok_or_else(|| missing(api_version))?;
                forms::to_storage(spoken, &mut object);
                forms::from_storage(wanted, &mut object);
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
            Source::BuiltIn(_) if *self.row.api_version == *api_version => {
                self.row.definition().map(TypeRef::builtin)
            }
            Source::BuiltIn(_) => self.sibling(api_version)?.definition().map(TypeRef::builtin),
            Source::Custom(custom) => Some(match version_of(custom, api_version) {
                Some(version) => TypeRef::structural(&version.schema, false),
                None => TypeRef::deduced(),
            }),
        }
    }
}

fn version_of<'a>(custom: &'a Custom, api_version: &str) -> Option<&'a crd::Version> {
    let definition = &custom.definition;
    let is_meant =
        |version: &&crd::Version| definition.gvk(&version.name).api_version() == api_version;
    definition.versions.iter().find(is_meant)
}

/// A built-in kind that is not stored and has one version.
struct OneVersion<'a> {
    gvk: &'a Gvk,
    definition: Option<&'static Definition>,
}

impl VersionConverter for OneVersion<'_> {
    fn convert(&self, object: &Value, _: &str) -> Result<Value, ConversionError> {
        Ok(object.clone())
    }

    fn type_of(&self, api_version: &str) -> Option<TypeRef<'_>> {
        let definition = self.definition.filter(|_| *self.gvk.api_version() == *api_version);
        definition.map(TypeRef::builtin)
    }
}

fn scale_type() -> Option<&'static Definition> {
    builtin::definition_of(&gvk())
}

/// The managers of an object while its scale is written.
pub(super) struct ScaleManagers<'a> {
    row: &'a KindRow,
    manager: &'a str,
    now: String,
    parent: ManagedFields,
    live: Object,
}

impl<'a> ScaleManagers<'a> {
    /// For a write of the scale of an object, which is in the request's version.
    pub(super) fn new(
        request: &'a Request<'_>,
        options: &'a WriteOptions,
        parent: &Object,
    ) -> Result<Self, Status> {
        let row = &*request.row;
        let mut live = Object::from_value(scale_of(row, parent)).unwrap_or_default();
        let parent = ManagedFields::read(parent.get(&ENTRIES))
            .map_err(|error| Status::new(Reason::Unknown, error.to_string()))?;
        if let Some(entries) = with_paths(row, |paths| scale_entries(&parent, paths)) {
            live.set(&ENTRIES, entries);
        }
        let now = request.server.clock.now_rfc3339();
        Ok(Self { row, manager: &options.manager, now, parent, live })
    }

    fn with<T>(&self, act: impl FnOnce(&ManagedWrite<'_>) -> T) -> T {
        let gvk = gvk();
        act(&ManagedWrite {
            manager: self.manager,
            gvk: &gvk,
            subresource: Part::Scale.name(),
            now: &self.now,
            versions: &OneVersion { gvk: &gvk, definition: scale_type() },
            filters: &BTreeMap::new(),
            empty: &empty(&gvk, scale_type()),
        })
    }

    /// Settles the managers of a scale that was sent.
    pub(super) fn updated(&self, scale: &mut Object) {
        if let Some(definition) = scale_type() {
            form::complete(definition, scale.fields_mut());
        }
        let mut live = self.live.clone();
        scale.remove(&ENTRIES);
        self.with(|write| write.set_on_update(&mut live, scale, None));
    }

    /// What a configuration makes of the scale.
    pub(super) fn applied(&self, config: &Value, force: bool) -> Result<Object, Status> {
        self.with(|write| write.apply(Some(&self.live), config, force))
    }

    /// Whether a scale says something else than the present one.
    pub(super) fn differs(&self, scale: &Object) -> bool {
        ["metadata", "spec", "status"].iter().any(|part| {
            let (mut new, mut live) =
                (scale.get(&[part]).cloned(), self.live.get(&[part]).cloned());
            for fields in [&mut new, &mut live].into_iter().flatten() {
                fields.as_object_mut().map(|fields| fields.remove("managedFields"));
            }
            new != live
        })
    }

    /// The object with a new number of replicas, and the managers that follow from its scale's.
    pub(super) fn made(
        self,
        mut object: Object,
        scale: &Object,
        warnings: Vec<String>,
        version: Version,
    ) -> UpdatedObject {
        // What was written can be read.
        let managed = ManagedFields::read(scale.get(&ENTRIES)).unwrap_or_default();
        let spoken = &*self.row.api_version;
        match with_paths(self.row, |paths| parent_entries(self.parent, managed, spoken, paths)) {
            Some(entries) => object.set(&ENTRIES, entries),
            None => {
                object.remove(&ENTRIES);
            }
        }
        UpdatedObject { object, warnings, tracked: true, version }
    }
}

/// Where a kind's objects have their number of replicas, in each version.
fn with_paths<T>(row: &KindRow, act: impl FnOnce(&ReplicasPaths<'_>) -> T) -> T {
    let elements = |path: &str| -> Vec<PathElement> {
        path.split('.').filter(|field| !field.is_empty()).map(PathElement::field).collect()
    };
    let owned: Vec<(String, Vec<PathElement>)> = match &row.source {
        Source::Custom(custom) => {
            let definition = &custom.definition;
            let in_version = |version: &crd::Version| {
                let path = version.scale.as_ref().map(|scale| elements(&scale.spec_replicas));
                (definition.gvk(&version.name).api_version(), path.unwrap_or_default())
            };
            definition.versions.iter().map(in_version).collect()
        }
        Source::BuiltIn(_) => {
            let path = elements(spec_path(row));
            vec![((*row.api_version).to_owned(), path)]
        }
    };
    let paths: Vec<_> =
        owned.iter().map(|(version, path)| (version.as_str(), path.as_slice())).collect();
    act(&paths)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn object(version: &str) -> Object {
        Object::from_value(json!({"apiVersion": version, "kind": "Widget"})).unwrap()
    }

    #[test]
    fn a_conversion_by_webhook_is_asked_for_once_and_found_afterwards() {
        let mut webhook = WebhookConversions::default();
        assert!(webhook.convert(object("x/v1"), "x/v2").is_err());
        // Another one that is missed in the same round waits for the next.
        assert!(webhook.convert(object("x/v1"), "x/v3").is_err());
        let missing = webhook.missing.take().unwrap();
        assert_eq!(missing, (object("x/v1"), "x/v2".to_owned()));
        webhook.made.push((missing, Ok(object("x/v2").into_value())));
        let converted = webhook.convert(object("x/v1"), "x/v2").unwrap();
        assert_eq!(converted, object("x/v2").into_value());
        assert_eq!(webhook.missing, None);
        assert!(webhook.convert(object("x/v1"), "x/v3").is_err());
        assert_eq!(webhook.missing.map(|(_, version)| version).as_deref(), Some("x/v3"));
    }
}
