//! Updates of managed fields by writes.

use super::entry::{ManagedFields, ManagerIdentity, ManagerOperation};
use super::{conflict, last_applied};
use crate::apply::{
    ApplyError, ApplyResult, Duplicates, FieldConflict, FieldFilter, FieldSet, PathElement,
    Updater, VersionConverter, VersionedSet, validate,
};
use mainstay_object::{Gvk, Object, Reason, Status};
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::OnceLock;

/// The most managers that update an object; older ones are merged into [`ANCIENT_CHANGES`].
const MAX_UPDATERS: usize = 10;
/// The manager with the fields of merged managers.
const ANCIENT_CHANGES: &str = "ancient-changes";
/// The manager with the fields of an object without managers before its first apply.
const BEFORE_FIRST_APPLY: &str = "before-first-apply";
/// The name of a manager without a name.
const UNKNOWN_MANAGER: &str = "unknown";
/// The temporary manager of the current write.
const CURRENT_OPERATION: &str = "current-operation";
/// The path of the entries in an object.
const ENTRIES: [&str; 2] = ["metadata", "managedFields"];

/// A write of an object by a manager.
#[derive(Clone, Copy)]
pub struct ManagedWrite<'a> {
    /// The name of the manager; may be empty unless it applies.
    pub manager: &'a str,
    /// The kind, in the version of the objects.
    pub gvk: &'a Gvk,
    /// The subresource; empty for the object itself.
    pub subresource: &'a str,
    /// The time: RFC 3339 with seconds, in UTC.
    pub now: &'a str,
    /// The versions of the kind.
    pub versions: &'a dyn VersionConverter,
    /// The fields that count, by version.
    pub filters: &'a BTreeMap<String, FieldFilter>,
    /// Kubernetes' empty object: only the fields that its Go type always writes.
    pub empty: &'a Value,
}

impl std::fmt::Debug for ManagedWrite<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "ManagedWrite({:?} {} {:?})", self.manager, self.gvk, self.subresource)
    }
}

impl ManagedWrite<'_> {
    /// Sets the managed fields of a new object, which has none itself. Valid entries from the
    /// client are the starting point.
    pub fn set_on_create(&self, object: &mut Object, sent: Option<&Value>) {
        let managed = ManagedFields::read(sent).unwrap_or_default();
        let mut new = std::mem::take(object).into_value();
        let managed = self.updated_managers(self.empty, &new, managed, self.manager);
        set_entries(&mut new, managed.ok().and_then(|managed| managed.write()));
        *object = Object::from_value(new).unwrap_or_default();
    }

    /// Sets the managed fields of an object that replaces another one. Valid entries from the
    /// client are the starting point if the object itself is written. An empty list, or a list of
    /// one empty entry, removes all managers. An object without managers gets none.
    ///
    /// The new object has no entries itself: `sent` has those of the client. The live object is
    /// restored.
    pub fn set_on_update(&self, live: &mut Object, object: &mut Object, sent: Option<&Value>) {
        let before = live.remove(&ENTRIES);
        let managed = self.starting_point(sent, before.as_ref());
        if !managed.is_empty() {
            let old = std::mem::take(live).into_value();
            let mut new = std::mem::take(object).into_value();
            let managed = self.updated_managers(&old, &new, managed, self.manager);
            set_entries(&mut new, managed.ok().and_then(|managed| managed.write()));
            // Both values were objects, so the conversions do not fail.
            *live = Object::from_value(old).unwrap_or_default();
            *object = Object::from_value(new).unwrap_or_default();
        }
        if let Some(before) = before {
            live.set(&ENTRIES, before);
        }
    }

    /// The managers before an update.
    fn starting_point(&self, sent: Option<&Value>, before: Option<&Value>) -> ManagedFields {
        if self.subresource.is_empty() {
            if is_reset(sent) {
                return ManagedFields::default();
            }
            if let Ok(managed) = ManagedFields::read(sent)
                && !managed.is_empty()
            {
                return managed;
            }
        }
        ManagedFields::read(before).unwrap_or_default()
    }

    /// The managers after an update of a whole object.
    fn updated_managers(
        &self,
        live: &Value,
        new: &Value,
        mut managed: ManagedFields,
        name: &str,
    ) -> Result<ManagedFields, ApplyError> {
        let updater = Updater { versions: self.versions, filters: self.filters };
        let version = self.gvk.api_version();
        managed.fields = updater.update(live, new, &version, managed.fields, CURRENT_OPERATION)?;
        strip(&mut managed, CURRENT_OPERATION);
        let manager = self.key(name, ManagerOperation::Update);
        if let Some(mut owned) = managed.fields.remove(CURRENT_OPERATION) {
            if let Some(before) = managed.fields.remove(&manager) {
                owned.set = owned.set.union(before.set);
            }
            managed.fields.insert(manager.clone(), owned);
            managed.times.insert(manager, self.now.to_owned());
        }
        limit_updaters(&mut managed);
        Ok(managed)
    }

    fn key(&self, name: &str, operation: ManagerOperation) -> String {
        let name = if name.is_empty() { UNKNOWN_MANAGER } else { name };
        ManagerIdentity {
            manager: name.to_owned(),
            operation: Some(operation),
            api_version: self.gvk.api_version(),
            subresource: self.subresource.to_owned(),
        }
        .key()
    }

    /// Applies a configuration: the resulting object with its managed fields, in the version of the
    /// write. `live` is none for a new object.
    ///
    /// # Errors
    /// Status 400 for a configuration of another kind or with managed fields, 409 for conflicts,
    /// 500 for invalid types, all with Kubernetes' text.
    pub fn apply(
        &self,
        live: Option<&Object>,
        config: &Value,
        force: bool,
    ) -> Result<Object, Status> {
        self.check_kind(config)?;
        let (live, entries) = match live {
            None => (self.empty.clone(), None),
            Some(live) => {
                let mut live = live.clone();
                let entries = live.remove(&ENTRIES);
                (live.into_value(), entries)
            }
        };
        let managed = || {
            ManagedFields::read(entries.as_ref())
                .map_err(|error| unknown_error(format!("failed to decode managed fields: {error}")))
        };
        let outcome = match self.try_apply(&live, config, managed()?, force) {
            Err(ApplyFailure::Conflicts(conflicts)) => {
                self.check_permitted_by_annotation(&live, conflicts)?;
                self.try_apply(&live, config, managed()?, true)
            }
            outcome => outcome,
        };
        let (object, managed) = outcome.map_err(ApplyFailure::into_status)?;
        // The live value is an object, and so is the result of an apply.
        let mut object = Object::from_value(object.unwrap_or(live)).unwrap_or_default();
        if self.manager == last_applied::MANAGER {
            last_applied::update_annotation(&mut object, config);
        }
        match managed.write() {
            Some(entries) => object.set(&ENTRIES, entries),
            None => {
                object.remove(&ENTRIES);
            }
        }
        Ok(object)
    }

    /// Status 409 unless the last-applied annotation permits all conflicts.
    fn check_permitted_by_annotation(
        &self,
        live: &Value,
        conflicts: Vec<FieldConflict>,
    ) -> Result<(), Status> {
        let version = self.gvk.api_version();
        let remaining = (self.manager == last_applied::MANAGER)
            .then(|| self.versions.type_of(&version))
            .flatten()
            .and_then(|ty| last_applied::remaining_conflicts(&conflicts, live, &version, ty))
            .unwrap_or(conflicts);
        if remaining.is_empty() { Ok(()) } else { Err(conflict::status(&remaining)) }
    }

    /// Status 400 unless the configuration is of the kind of the write.
    fn check_kind(&self, config: &Value) -> Result<(), Status> {
        let text = |name: &str| config.get(name).and_then(Value::as_str).unwrap_or_default();
        let (api_version, kind) = (text("apiVersion"), text("kind"));
        if *api_version == *self.gvk.api_version() && *kind == *self.gvk.kind {
            return Ok(());
        }
        let version = if api_version.is_empty() || api_version.contains('/') {
            api_version.to_owned()
        } else {
            format!("/{api_version}")
        };
        let version = if version.is_empty() { "/".to_owned() } else { version };
        Err(Status::bad_request(format!("invalid object type: {version}, Kind={kind}")))
    }

    /// Tries to apply: the object, none if it does not change, and the managers.
    fn try_apply(
        &self,
        live: &Value,
        config: &Value,
        mut managed: ManagedFields,
        force: bool,
    ) -> Result<(Option<Value>, ManagedFields), ApplyFailure> {
        if managed.is_empty() && !mainstay_fault::is_on("nobody-was-there-before") {
            managed = self
                .updated_managers(self.empty, live, managed, BEFORE_FIRST_APPLY)
                .map_err(|error| {
                    ApplyFailure::Other(unknown_error(format!(
                        "failed to create manager for existing fields: {error}"
                    )))
                })?;
        }
        let version = self.gvk.api_version();
        if config.pointer("/metadata/managedFields").is_some_and(|entries| !entries.is_null()) {
            let message = "metadata.managedFields must be nil";
            return Err(ApplyFailure::Other(Status::bad_request(message)));
        }
        let describe = |object: &Value| describe_object(object, self.gvk);
        let Some(ty) = self.versions.type_of(&version) else {
            return Err(ApplyFailure::Other(unknown_error(format!(
                "failed to create typed patch object ({}): no corresponding type for {}",
                describe(config),
                self.gvk
            ))));
        };
        validate(config, ty, Duplicates::Rejected).map_err(|problems| {
            let what = describe(config);
            ApplyFailure::Other(unknown_error(format!(
                "failed to create typed patch object ({what}): {problems}"
            )))
        })?;
        validate(live, ty, Duplicates::Allowed).map_err(|problems| {
            let what = describe(live);
            ApplyFailure::Other(unknown_error(format!(
                "failed to create typed live object ({what}): {problems}"
            )))
        })?;
        let manager = self.key(self.manager, ManagerOperation::Apply);
        let updater = Updater { versions: self.versions, filters: self.filters };
        let ApplyResult { object, managers } = updater
            .apply(
                live,
                config,
                &version,
                managed.fields,
                &manager,
                force && !mainstay_fault::is_on("force-does-not-help"),
            )
            .map_err(ApplyFailure::from)?;
        managed.fields = managers;
        strip(&mut managed, &manager);
        if object.is_some() {
            managed.times.insert(manager, self.now.to_owned());
        }
        Ok((object, managed))
    }
}

/// A configuration was not applied.
enum ApplyFailure {
    Conflicts(Vec<FieldConflict>),
    Other(Status),
}

impl From<ApplyError> for ApplyFailure {
    fn from(error: ApplyError) -> Self {
        match error {
            ApplyError::Conflicts(conflicts) => Self::Conflicts(conflicts),
            other => Self::Other(unknown_error(other.to_string())),
        }
    }
}

impl ApplyFailure {
    fn into_status(self) -> Status {
        match self {
            Self::Conflicts(conflicts) => conflict::status(&conflicts),
            Self::Other(status) => status,
        }
    }
}

/// Status 500 without a reason: Kubernetes' status for an unexpected error.
fn unknown_error(message: String) -> Status {
    Status::new(Reason::Unknown, message)
}

/// The description of an object in Kubernetes' messages: `namespace/name; group/version,
/// Kind=kind`.
pub fn describe_object(object: &Value, gvk: &Gvk) -> String {
    let text = |name: &str| {
        let value = object.get("metadata").and_then(|metadata| metadata.get(name));
        value.and_then(Value::as_str).unwrap_or_default()
    };
    let (namespace, name) = (text("namespace"), text("name"));
    format!("{namespace}/{name}; {}/{}, Kind={}", gvk.group, gvk.version, gvk.kind)
}

fn set_entries(object: &mut Value, entries: Option<Value>) {
    if let (Some(entries), Some(Value::Object(metadata))) = (entries, object.get_mut("metadata")) {
        metadata.insert("managedFields".to_owned(), entries);
    }
}

/// Whether a client removes all managers: by an empty list, or a list of one empty entry.
fn is_reset(sent: Option<&Value>) -> bool {
    match sent.and_then(Value::as_array).map(Vec::as_slice) {
        Some([]) => true,
        Some([entry]) => entry.as_object().is_some_and(serde_json::Map::is_empty),
        _ => false,
    }
}

/// The fields that no manager owns: those that identify the object or that only the server writes.
fn unowned_fields() -> &'static FieldSet {
    static FIELDS: OnceLock<FieldSet> = OnceLock::new();
    FIELDS.get_or_init(|| {
        let mut set = FieldSet::new();
        for field in ["apiVersion", "kind", "metadata"] {
            set.insert(&[PathElement::field(field)]);
        }
        for field in [
            "name",
            "namespace",
            "creationTimestamp",
            "selfLink",
            "uid",
            "clusterName",
            "generation",
            "managedFields",
            "resourceVersion",
        ] {
            set.insert(&[PathElement::field("metadata"), PathElement::field(field)]);
        }
        set
    })
}

/// Removes the unowned fields from a manager.
fn strip(managed: &mut ManagedFields, manager: &str) {
    let Some(owned) = managed.fields.get_mut(manager) else { return };
    owned.set = std::mem::take(&mut owned.set).difference(unowned_fields());
    if owned.set.is_empty() {
        managed.fields.remove(manager);
    }
}

/// Merges the fields of the oldest updaters into one entry for each version, until they are at most
/// [`MAX_UPDATERS`].
fn limit_updaters(managed: &mut ManagedFields) {
    let updaters = managed.fields.iter().filter(|(_, owned)| !owned.applied);
    let mut updaters: Vec<String> = updaters.map(|(key, _)| key.clone()).collect();
    let mut remaining = updaters.len();
    if remaining <= MAX_UPDATERS || mainstay_fault::is_on("managers-are-never-folded") {
        return;
    }
    updaters.sort_by_cached_key(|key| (managed.times.get(key).cloned(), key.clone()));
    let mut first_of_version: BTreeMap<String, String> = BTreeMap::new();
    let mut merged: BTreeMap<String, Vec<FieldSet>> = BTreeMap::new();
    for manager in updaters {
        if remaining <= MAX_UPDATERS {
            break;
        }
        let Some(version) = managed.fields.get(&manager).map(|owned| owned.api_version.to_string())
        else {
            continue;
        };
        let Some(first) = first_of_version.get(&version) else {
            first_of_version.insert(version, manager);
            continue;
        };
        let bucket = ManagerIdentity {
            manager: ANCIENT_CHANGES.to_owned(),
            operation: Some(ManagerOperation::Update),
            api_version: version.clone(),
            subresource: String::new(),
        }
        .key();
        if !managed.fields.contains_key(&bucket)
            && let Some(owned) = managed.fields.remove(first)
        {
            managed.fields.insert(bucket.clone(), owned);
        }
        let Some(VersionedSet { set, .. }) = managed.fields.remove(&manager) else { continue };
        merged.entry(bucket.clone()).or_default().push(set);
        remaining -= 1;
        // The time is that of the last merged manager, the youngest.
        match managed.times.get(&manager).cloned() {
            Some(time) => managed.times.insert(bucket, time),
            None => managed.times.remove(&bucket),
        };
    }
    for (bucket, mut sets) in merged {
        if let Some(owned) = managed.fields.get_mut(&bucket) {
            sets.push(std::mem::take(&mut owned.set));
            owned.set = FieldSet::union_of(sets);
        }
    }
}

/// Whether an object did not change. If only times of managers differ, the old ones are restored: a
/// write of the same object changes nothing.
pub fn is_unchanged(object: &mut Object, old: &Object) -> bool {
    let (new, before) = (entries(object), entries(old));
    let same = new == before;
    if !same && !differ_in_time_only(new, before) || !is_same_except_entries(object, old) {
        return false;
    }
    if !same {
        let before = old.get(&ENTRIES).cloned().unwrap_or_default();
        object.set(&ENTRIES, before);
    }
    true
}

fn entries(object: &Object) -> &[Value] {
    object.array(&ENTRIES)
}

fn differ_in_time_only(new: &[Value], before: &[Value]) -> bool {
    let equal_except_time = |entry: &'_ Value, other: &Value| match (entry, other) {
        (Value::Object(entry), Value::Object(other)) => {
            let rest = |name: &&String| *name != "time";
            entry.keys().filter(rest).eq(other.keys().filter(rest))
                && entry
                    .iter()
                    .all(|(name, value)| name == "time" || other.get(name) == Some(value))
        }
        (entry, other) => entry == other,
    };
    new.len() == before.len()
        && new.iter().zip(before).all(|(new, old)| equal_except_time(new, old))
}

fn is_same_except_entries(object: &Object, old: &Object) -> bool {
    let (new, old) = (object.fields(), old.fields());
    new.len() == old.len()
        && new.iter().all(|(name, value)| match (value, old.get(name)) {
            (Value::Object(new), Some(Value::Object(old))) if name == "metadata" => {
                let rest = |name: &&String| *name != "managedFields";
                new.keys().filter(rest).eq(old.keys().filter(rest))
                    && new.iter().all(|(name, value)| {
                        name == "managedFields" || old.get(name) == Some(value)
                    })
            }
            (value, old) => old == Some(value),
        })
}
