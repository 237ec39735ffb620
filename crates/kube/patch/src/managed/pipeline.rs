//! What happens to the managers of an object when somebody writes it.

use super::entry::{Identity, Managed, Operation};
use super::{conflict, last_applied};
use crate::apply::{
    Applied, ApplyError, Conflict, Duplicates, Filter, Owned, PathElement, Set, Updater, Versions,
    validate,
};
use mainstay_object::{Gvk, Object, Reason, Status};
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::OnceLock;

/// The most managers that have written an object; older ones become [`ANCIENT`].
const MAX_UPDATERS: usize = 10;
/// Who holds the fields of managers that were too many.
const ANCIENT: &str = "ancient-changes";
/// Who holds the fields of an object that nobody managed before somebody applied to it.
const BEFORE: &str = "before-first-apply";
/// Who a manager is that has no name.
const NAMELESS: &str = "unknown";
/// The manager of the write that is under way, while what it changes is worked out.
const PRESENT: &str = "current-operation";
/// Where managers are in an object.
const ENTRIES: [&str; 2] = ["metadata", "managedFields"];

/// A write: by whom, of what.
#[derive(Clone, Copy)]
pub struct Write<'a> {
    /// The name of the manager; may be empty for one that does not apply.
    pub manager: &'a str,
    /// The kind, in the version in which the objects are given.
    pub gvk: &'a Gvk,
    /// The subresource that is written to; empty for the object itself.
    pub subresource: &'a str,
    /// The time: RFC 3339 with seconds, in UTC.
    pub now: &'a str,
    /// The versions of the kind.
    pub versions: &'a dyn Versions,
    /// Which fields count, by version.
    pub filters: &'a BTreeMap<String, Filter>,
    /// What the original calls an empty object: without fields but those that its Go type always
    /// writes.
    pub empty: &'a Value,
}

impl std::fmt::Debug for Write<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Write({:?} {} {:?})", self.manager, self.gvk, self.subresource)
    }
}

impl Write<'_> {
    /// Settles the managers of an object about to be created, which has none itself. Those that the
    /// client sent are where it starts, if they can be read.
    pub fn created(&self, object: &mut Object, sent: Option<&Value>) {
        let managed = Managed::read(sent).unwrap_or_default();
        let mut new = std::mem::take(object).into_value();
        let managed = self.updated_managers(self.empty, &new, managed, self.manager);
        put(&mut new, managed.ok().and_then(|managed| managed.write()));
        *object = Object::from_value(new).unwrap_or_default();
    }

    /// Settles the managers of an object that replaces another one. What the client says of them
    /// counts if it can be read and the object itself is written: an empty list, or a list of one
    /// empty entry, makes the object forget them all. Nobody is followed on an object without
    /// managers.
    ///
    /// The new object has no managers itself: those that the client sent are apart. The live object
    /// is put back as it was.
    pub fn updated(&self, live: &mut Object, object: &mut Object, sent: Option<&Value>) {
        let before = live.remove(&ENTRIES);
        let managed = self.starting_point(sent, before.as_ref());
        if !managed.is_empty() {
            let old = std::mem::take(live).into_value();
            let mut new = std::mem::take(object).into_value();
            let managed = self.updated_managers(&old, &new, managed, self.manager);
            put(&mut new, managed.ok().and_then(|managed| managed.write()));
            // What went in as objects comes out as objects.
            *live = Object::from_value(old).unwrap_or_default();
            *object = Object::from_value(new).unwrap_or_default();
        }
        if let Some(before) = before {
            live.set(&ENTRIES, before);
        }
    }

    /// The managers that an update starts with.
    fn starting_point(&self, sent: Option<&Value>, before: Option<&Value>) -> Managed {
        if self.subresource.is_empty() {
            if is_reset(sent) {
                return Managed::default();
            }
            if let Ok(managed) = Managed::read(sent)
                && !managed.is_empty()
            {
                return managed;
            }
        }
        Managed::read(before).unwrap_or_default()
    }

    /// The managers after a write of a whole object by one who says only what is there.
    fn updated_managers(
        &self,
        live: &Value,
        new: &Value,
        mut managed: Managed,
        name: &str,
    ) -> Result<Managed, ApplyError> {
        let updater = Updater { versions: self.versions, filters: self.filters };
        let version = self.gvk.api_version();
        managed.fields = updater.update(live, new, &version, managed.fields, PRESENT)?;
        strip(&mut managed, PRESENT);
        let manager = self.key(name, Operation::Update);
        if let Some(mut owned) = managed.fields.remove(PRESENT) {
            if let Some(before) = managed.fields.remove(&manager) {
                owned.set = owned.set.union(before.set);
            }
            managed.fields.insert(manager.clone(), owned);
            managed.times.insert(manager, self.now.to_owned());
        }
        cap(&mut managed);
        Ok(managed)
    }

    fn key(&self, name: &str, operation: Operation) -> String {
        let name = if name.is_empty() { NAMELESS } else { name };
        Identity {
            manager: name.to_owned(),
            operation: Some(operation),
            api_version: self.gvk.api_version(),
            subresource: self.subresource.to_owned(),
        }
        .key()
    }

    /// Applies a configuration: the object that comes of it, with its managers, in the version of
    /// the write. `live` is none when the object is to be created.
    ///
    /// # Errors
    /// 400 for a configuration of another kind or with managers of its own, 409 for conflicts, 500
    /// for one that does not have the types of the kind, all in the words of the original.
    pub fn applied(
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
            Managed::read(entries.as_ref())
                .map_err(|error| plain(format!("failed to decode managed fields: {error}")))
        };
        let outcome = match self.apply(&live, config, managed()?, force) {
            Err(Refused::Conflicts(conflicts)) => {
                self.check_allowed_by_annotation(&live, conflicts)?;
                self.apply(&live, config, managed()?, true)
            }
            outcome => outcome,
        };
        let (object, managed) = outcome.map_err(Refused::into_status)?;
        // The live object is an object, and so is what a configuration makes of it.
        let mut object = Object::from_value(object.unwrap_or(live)).unwrap_or_default();
        if self.manager == last_applied::MANAGER {
            last_applied::follow(&mut object, config);
        }
        match managed.write() {
            Some(entries) => object.set(&ENTRIES, entries),
            None => {
                object.remove(&ENTRIES);
            }
        }
        Ok(object)
    }

    /// 409 if some conflicts are not with what the client's side applied before, and whoever
    /// applies moves on from there.
    fn check_allowed_by_annotation(
        &self,
        live: &Value,
        conflicts: Vec<Conflict>,
    ) -> Result<(), Status> {
        let version = self.gvk.api_version();
        let remaining = (self.manager == last_applied::MANAGER)
            .then(|| self.versions.type_of(&version))
            .flatten()
            .and_then(|ty| last_applied::remaining(&conflicts, live, &version, ty))
            .unwrap_or(conflicts);
        if remaining.is_empty() { Ok(()) } else { Err(conflict::status(&remaining)) }
    }

    /// 400 unless the configuration is of the kind of the write.
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

    /// One attempt to apply: the object, none if nothing changes, and the managers.
    fn apply(
        &self,
        live: &Value,
        config: &Value,
        mut managed: Managed,
        force: bool,
    ) -> Result<(Option<Value>, Managed), Refused> {
        if managed.is_empty() && !mainstay_fault::is_on("nobody-was-there-before") {
            managed =
                self.updated_managers(self.empty, live, managed, BEFORE).map_err(|error| {
                    Refused::Other(plain(format!(
                        "failed to create manager for existing fields: {error}"
                    )))
                })?;
        }
        let version = self.gvk.api_version();
        if config.pointer("/metadata/managedFields").is_some_and(|entries| !entries.is_null()) {
            let why = "metadata.managedFields must be nil";
            return Err(Refused::Other(Status::bad_request(why)));
        }
        let shown = |object: &Value| shown(object, self.gvk);
        let Some(ty) = self.versions.type_of(&version) else {
            return Err(Refused::Other(plain(format!(
                "failed to create typed patch object ({}): no corresponding type for {}",
                shown(config),
                self.gvk
            ))));
        };
        validate(config, ty, Duplicates::Refused).map_err(|problems| {
            let what = shown(config);
            Refused::Other(plain(format!(
                "failed to create typed patch object ({what}): {problems}"
            )))
        })?;
        validate(live, ty, Duplicates::Allowed).map_err(|problems| {
            let what = shown(live);
            Refused::Other(plain(format!(
                "failed to create typed live object ({what}): {problems}"
            )))
        })?;
        let manager = self.key(self.manager, Operation::Apply);
        let updater = Updater { versions: self.versions, filters: self.filters };
        let Applied { object, managers } = updater
            .apply(
                live,
                config,
                &version,
                managed.fields,
                &manager,
                force && !mainstay_fault::is_on("force-does-not-help"),
            )
            .map_err(Refused::from)?;
        managed.fields = managers;
        strip(&mut managed, &manager);
        if object.is_some() {
            managed.times.insert(manager, self.now.to_owned());
        }
        Ok((object, managed))
    }
}

/// Why a configuration was not applied.
enum Refused {
    Conflicts(Vec<Conflict>),
    Other(Status),
}

impl From<ApplyError> for Refused {
    fn from(error: ApplyError) -> Self {
        match error {
            ApplyError::Conflicts(conflicts) => Self::Conflicts(conflicts),
            other => Self::Other(plain(other.to_string())),
        }
    }
}

impl Refused {
    fn into_status(self) -> Status {
        match self {
            Self::Conflicts(conflicts) => conflict::status(&conflicts),
            Self::Other(status) => status,
        }
    }
}

/// 500 without a reason: what the original makes of an error that it does not expect.
fn plain(message: String) -> Status {
    Status::new(Reason::Unknown, message)
}

/// An object as messages of the original name it: `namespace/name; group/version, Kind=kind`.
pub fn shown(object: &Value, gvk: &Gvk) -> String {
    let text = |name: &str| {
        let value = object.get("metadata").and_then(|metadata| metadata.get(name));
        value.and_then(Value::as_str).unwrap_or_default()
    };
    let (namespace, name) = (text("namespace"), text("name"));
    format!("{namespace}/{name}; {}/{}, Kind={}", gvk.group, gvk.version, gvk.kind)
}

fn put(object: &mut Value, entries: Option<Value>) {
    if let (Some(entries), Some(Value::Object(metadata))) = (entries, object.get_mut("metadata")) {
        metadata.insert("managedFields".to_owned(), entries);
    }
}

/// Whether a client asks to forget all managers: an empty list, or a list of one empty entry.
fn is_reset(sent: Option<&Value>) -> bool {
    match sent.and_then(Value::as_array).map(Vec::as_slice) {
        Some([]) => true,
        Some([entry]) => entry.as_object().is_some_and(serde_json::Map::is_empty),
        _ => false,
    }
}

/// The fields that nobody owns: which object it is, and what only the server writes.
fn nobodys() -> &'static Set {
    static FIELDS: OnceLock<Set> = OnceLock::new();
    FIELDS.get_or_init(|| {
        let mut set = Set::new();
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

/// Takes from a manager what nobody owns.
fn strip(managed: &mut Managed, manager: &str) {
    let Some(owned) = managed.fields.get_mut(manager) else { return };
    owned.set = std::mem::take(&mut owned.set).difference(nobodys());
    if owned.set.is_empty() {
        managed.fields.remove(manager);
    }
}

/// Puts the fields of the oldest managers that write into one entry for each version, until there
/// are not too many.
fn cap(managed: &mut Managed) {
    let updaters = managed.fields.iter().filter(|(_, owned)| !owned.applied);
    let mut updaters: Vec<String> = updaters.map(|(key, _)| key.clone()).collect();
    let mut left = updaters.len();
    if left <= MAX_UPDATERS || mainstay_fault::is_on("managers-are-never-folded") {
        return;
    }
    updaters.sort_by_cached_key(|key| (managed.times.get(key).cloned(), key.clone()));
    let mut first_of_version: BTreeMap<String, String> = BTreeMap::new();
    let mut folded: BTreeMap<String, Vec<Set>> = BTreeMap::new();
    for manager in updaters {
        if left <= MAX_UPDATERS {
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
        let bucket = Identity {
            manager: ANCIENT.to_owned(),
            operation: Some(Operation::Update),
            api_version: version.clone(),
            subresource: String::new(),
        }
        .key();
        if !managed.fields.contains_key(&bucket)
            && let Some(owned) = managed.fields.remove(first)
        {
            managed.fields.insert(bucket.clone(), owned);
        }
        let Some(Owned { set, .. }) = managed.fields.remove(&manager) else { continue };
        folded.entry(bucket.clone()).or_default().push(set);
        left -= 1;
        // That of the one that was merged last, which is the youngest.
        match managed.times.get(&manager).cloned() {
            Some(time) => managed.times.insert(bucket, time),
            None => managed.times.remove(&bucket),
        };
    }
    for (bucket, mut sets) in folded {
        if let Some(owned) = managed.fields.get_mut(&bucket) {
            sets.push(std::mem::take(&mut owned.set));
            owned.set = Set::union_of(sets);
        }
    }
}

/// Whether an object is what it was before. If only times of managers differ they are put back:
/// who writes what was there has not changed it.
pub fn is_unchanged(object: &mut Object, old: &Object) -> bool {
    let (new, before) = (entries(object), entries(old));
    let same = new == before;
    if !same && !differ_in_time_only(new, before) || !is_same_but_for_entries(object, old) {
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
    let timeless = |entry: &'_ Value, other: &Value| match (entry, other) {
        (Value::Object(entry), Value::Object(other)) => {
            let rest = |name: &&String| *name != "time";
            entry.keys().filter(rest).eq(other.keys().filter(rest))
                && entry
                    .iter()
                    .all(|(name, value)| name == "time" || other.get(name) == Some(value))
        }
        (entry, other) => entry == other,
    };
    new.len() == before.len() && new.iter().zip(before).all(|(new, old)| timeless(new, old))
}

fn is_same_but_for_entries(object: &Object, old: &Object) -> bool {
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
