//! Saved states: files become objects, each of a form that can be relied on, and each once.

use super::state::State;
use super::{Io, input};
use crate::catalog::{count, plain};
use crate::exit::Failure;
use mainstay_cause::{Cause, Place};
use mainstay_object::Object;
use mainstay_version::{parse_tolerant, quote};
use mainstay_yaml::{Options, documents};
use serde_json::Value;
use std::collections::{BTreeMap, HashMap};
use std::hash::{DefaultHasher, Hash, Hasher};

/// What people type to save a state.
const SAVE: &str = "kubectl get sub,csv,og,catalogsource -A -o yaml";

/// Reads what `kubectl get … -o yaml` or `-o json` printed: a List, or one document after the other.
///
/// # Errors
/// If a file cannot be read, holds something else than objects, nothing that resolution looks at, or
/// objects that are not of their form; and if two objects of one name differ.
pub(super) fn files(io: &mut Io<'_>, files: &[String]) -> Result<State, Failure> {
    let mut reader = Reader::default();
    if files.iter().filter(|typed| *typed == "-").count() > 1 {
        let why = Cause::new("standard input can be read once only");
        return Err(refused(why.remedy("name `--state -` once")));
    }
    for typed in files {
        let text = input::text(io, typed)?;
        reader.file(typed, &text)?;
    }
    Ok(reader.state)
}

fn refused(why: Cause) -> Failure {
    Failure::usage(Cause::new("the state cannot be read").because(why))
}

#[derive(Default)]
struct Reader {
    state: State,
    /// Where each object stands, and what it says.
    known: HashMap<(String, String, String), (String, u64)>,
}

/// Where an object stands.
struct Spot {
    place: Place,
    /// Its place in a List; empty if it stands alone.
    item: String,
}

impl Spot {
    /// Says what is wrong with an object.
    fn refuse(&self, object: &str, why: &str) -> Failure {
        let whom: Vec<&str> =
            [&*self.item, object].into_iter().filter(|part| !part.is_empty()).collect();
        let whom = if whom.is_empty() { String::new() } else { whom.join(", ") + ": " };
        let cause = Cause::new(plain(&format!("{whom}{why}"))).at(self.place.clone());
        refused(cause.remedy(format!("correct it, or save the state again with: {SAVE}")))
    }

    fn shown(&self) -> String {
        let item = if self.item.is_empty() { String::new() } else { format!(" ({})", self.item) };
        format!("{}{item}", self.place)
    }
}

/// What a file holds.
#[derive(Default)]
struct Found {
    /// How many objects matter.
    used: usize,
    /// How many Lists are empty.
    empty: usize,
    /// How many of each other kind there are.
    others: BTreeMap<String, usize>,
}

impl Reader {
    fn file(&mut self, typed: &str, text: &str) -> Result<(), Failure> {
        let mut found = Found::default();
        for document in documents(text.as_bytes(), &Options::default()) {
            let document = document.map_err(|error| {
                let place =
                    Place { line: error.line, column: error.column, ..input::called(typed) };
                let last = error.line >= text.lines().count();
                let ends = ["EOF", "unexpected end", "end of stream", "did not find expected"];
                let cut = last && ends.iter().any(|it| error.message.contains(it));
                let cut = if cut { ": the file seems to be cut off there" } else { "" };
                let why = Cause::new(format!("{}{cut}", plain(&error.message))).at(place);
                refused(why.remedy(format!("save it again with: {SAVE}")))
            })?;
            let place = Place { line: document.line, ..input::called(typed) };
            self.document(document.value, &Spot { place, item: String::new() }, &mut found)?;
        }
        if found.used > 0 {
            return Ok(());
        }
        if found.others.is_empty() && found.empty > 0 {
            let name = input::called(typed);
            self.state
                .notes
                .push(format!("{name} holds an empty List: a cluster without operators"));
            return Ok(());
        }
        let others: Vec<String> =
            found.others.iter().take(5).map(|(kind, number)| count(*number, kind)).collect();
        let why = if others.is_empty() {
            "the file holds no objects".to_owned()
        } else {
            format!("the file holds nothing that resolution looks at, only {}", others.join(", "))
        };
        let remedy = format!("give it what this prints: {SAVE}");
        Err(refused(Cause::new(plain(&why)).at(input::called(typed)).remedy(remedy)))
    }

    /// An object, or a List of them.
    fn document(&mut self, value: Value, spot: &Spot, found: &mut Found) -> Result<(), Failure> {
        if value.is_null() {
            return Ok(());
        }
        let no_object = |why: &str| {
            let item =
                if spot.item.is_empty() { String::new() } else { format!("{}: ", spot.item) };
            let cause = Cause::new(format!("{item}this is no Kubernetes object: {why}"));
            let remedy = format!("give it what this prints: {SAVE}");
            refused(cause.at(spot.place.clone()).remedy(remedy))
        };
        let cut = value.get("items").is_some();
        let Ok(mut object) = Object::from_value(value) else {
            return Err(no_object("it has no fields"));
        };
        if object.kind().is_empty() {
            let why = if cut {
                "it has `items` and no `kind`: the file seems to be cut off"
            } else {
                "it has no `kind`"
            };
            return Err(no_object(why));
        }
        if !object.kind().ends_with("List") {
            return self.object(object, spot, found);
        }
        let kind = object.kind().to_owned();
        match object.remove(&["items"]) {
            Some(Value::Array(items)) => {
                found.empty += usize::from(items.is_empty());
                for (at, item) in items.into_iter().enumerate() {
                    let item_spot =
                        Spot { place: spot.place.clone(), item: format!("items[{at}]") };
                    if item.is_null() {
                        return Err(item_spot.refuse("", "this is no object, but null"));
                    }
                    self.document(item, &item_spot, found)?;
                }
                Ok(())
            }
            Some(other) => {
                let why = format!("`items` is {}, not a list", kind_of(&other));
                Err(spot.refuse(&kind, &why))
            }
            None => Err(spot.refuse(&kind, "it has no `items`")),
        }
    }

    fn object(&mut self, object: Object, spot: &Spot, found: &mut Found) -> Result<(), Failure> {
        let kind = object.kind().to_owned();
        let Some(form) = Form::of(&object) else {
            *found.others.entry(kind).or_default() += 1;
            return Ok(());
        };
        found.used += 1;
        let shown = match (object.namespace(), object.name()) {
            ("", name) => format!("{kind} {name}"),
            (namespace, name) => format!("{kind} {namespace}/{name}"),
        };
        form.check(&object).map_err(|why| spot.refuse(shown.trim_end_matches([' ', '/']), &why))?;
        let key = (kind, object.namespace().to_owned(), object.name().to_owned());
        let said = said(&object);
        if let Some((first, before)) = self.known.get(&key) {
            if *before == said {
                return Ok(());
            }
            let why = format!("it is there twice, and not the same: first at {first}");
            return Err(spot.refuse(&shown, &why));
        }
        self.known.insert(key, (spot.shown(), said));
        self.state.add(object);
        Ok(())
    }
}

/// What an object says, apart from what changes whenever it is written.
fn said(object: &Object) -> u64 {
    let mut object = object.clone();
    for field in ["managedFields", "resourceVersion", "generation"] {
        object.remove(&["metadata", field]);
    }
    let mut hasher = DefaultHasher::new();
    object.into_value().to_string().hash(&mut hasher);
    hasher.finish()
}

/// The form of a kind that resolution looks at.
struct Form {
    namespaced: bool,
    /// Fields that must be there and not be empty.
    required: &'static [&'static [&'static str]],
    /// Fields that are texts where they are there.
    texts: &'static [&'static [&'static str]],
    /// Fields that are lists of objects, with texts in these fields.
    lists: &'static [(&'static [&'static str], &'static [&'static str])],
    /// Fields that are whole numbers where they are there.
    numbers: &'static [&'static [&'static str]],
}

const CRD: &[&str] = &["name", "version", "kind"];
const API: &[&str] = &["group", "version", "kind"];

const BARE: Form = Form { namespaced: true, required: &[], texts: &[], lists: &[], numbers: &[] };
const SUBSCRIPTION: Form = Form {
    required: &[&["spec", "name"]],
    texts: &[
        &["spec", "channel"],
        &["spec", "source"],
        &["spec", "sourceNamespace"],
        &["spec", "startingCSV"],
        &["spec", "installPlanApproval"],
        &["status", "installedCSV"],
        &["status", "currentCSV"],
    ],
    ..BARE
};
const VERSION: Form = Form {
    required: &[],
    texts: &[
        &["spec", "version"],
        &["spec", "replaces"],
        &["status", "phase"],
        &["status", "reason"],
    ],
    lists: &[
        (&["spec", "customresourcedefinitions", "owned"], CRD),
        (&["spec", "customresourcedefinitions", "required"], CRD),
        (&["spec", "apiservicedefinitions", "owned"], API),
        (&["spec", "apiservicedefinitions", "required"], API),
    ],
    ..BARE
};
const GROUP: Form = Form { texts: &[&["spec", "upgradeStrategy"]], ..BARE };
const SOURCE: Form = Form {
    texts: &[
        &["spec", "address"],
        &["status", "connectionState", "address"],
        &["status", "connectionState", "lastObservedState"],
    ],
    numbers: &[&["spec", "priority"]],
    ..BARE
};
const EXTENSION: Form = Form {
    namespaced: false,
    required: &[&["spec", "source", "catalog", "packageName"]],
    texts: &[
        &["spec", "source", "catalog", "version"],
        &["spec", "source", "catalog", "upgradeConstraintPolicy"],
        &["status", "install", "bundle", "name"],
        &["status", "install", "bundle", "version"],
    ],
    ..BARE
};
const CLUSTER_CATALOG: Form = Form {
    namespaced: false,
    texts: &[&["spec", "availabilityMode"]],
    numbers: &[&["spec", "priority"]],
    ..BARE
};

impl Form {
    /// The form of an object; none if its kind does not matter.
    fn of(object: &Object) -> Option<&'static Self> {
        let group = object.api_version().split_once('/').map_or("", |(group, _)| group);
        match (group, object.kind()) {
            ("operators.coreos.com", "CatalogSource") => Some(&SOURCE),
            ("operators.coreos.com", "OperatorGroup") => Some(&GROUP),
            ("operators.coreos.com", "Subscription") => Some(&SUBSCRIPTION),
            ("operators.coreos.com", "ClusterServiceVersion") => Some(&VERSION),
            ("olm.operatorframework.io", "ClusterExtension") => Some(&EXTENSION),
            ("olm.operatorframework.io", "ClusterCatalog") => Some(&CLUSTER_CATALOG),
            _ => None,
        }
    }

    /// What is wrong with an object of this form.
    fn check(&self, object: &Object) -> Result<(), String> {
        text(object, &["metadata", "name"], true)?;
        if self.namespaced {
            text(object, &["metadata", "namespace"], true)?;
        }
        for part in ["metadata", "spec", "status"] {
            fields(object, &[part])?;
        }
        for path in self.required {
            for end in 1..path.len() {
                fields(object, &path[..end])?;
            }
            text(object, path, true)?;
        }
        for path in self.texts {
            text(object, path, false)?;
        }
        for path in self.numbers {
            match object.get(path) {
                None | Some(Value::Null) => {}
                Some(value) if value.is_i64() || value.is_u64() => {}
                Some(other) => return Err(wrong(path, other, "a whole number")),
            }
        }
        for (path, parts) in self.lists {
            let Some(value) = object.get(path).filter(|value| !value.is_null()) else { continue };
            let items = value.as_array().ok_or_else(|| wrong(path, value, "a list"))?;
            for (at, item) in items.iter().enumerate() {
                for part in *parts {
                    let value = item.get(part).unwrap_or(&Value::Null);
                    if !(value.is_string() || item.is_object() && value.is_null()) {
                        let place = format!("{}[{at}].{part}", path.join("."));
                        return Err(wrong(&[&*place], value, "a text"));
                    }
                }
            }
        }
        let version =
            object.str(&["spec", "version"]).filter(|_| object.kind() == "ClusterServiceVersion");
        match version.filter(|version| !version.is_empty()) {
            Some(version) => parse_tolerant(version).map(drop).map_err(|error| {
                format!("`spec.version` is {}, which is no version: {error}", quote(version))
            }),
            None => Ok(()),
        }
    }
}

/// Whether a field, if it is there, has fields of its own.
fn fields(object: &Object, path: &[&str]) -> Result<(), String> {
    match object.get(path) {
        None | Some(Value::Null | Value::Object(_)) => Ok(()),
        Some(other) => Err(wrong(path, other, "an object")),
    }
}

fn text(object: &Object, path: &[&str], required: bool) -> Result<(), String> {
    match object.get(path) {
        None | Some(Value::Null) if required => Err(format!("`{}` is missing", path.join("."))),
        Some(Value::String(text)) if required && text.is_empty() => {
            Err(format!("`{}` is empty", path.join(".")))
        }
        None | Some(Value::Null | Value::String(_)) => Ok(()),
        Some(other) => Err(wrong(path, other, "a text")),
    }
}

fn wrong(path: &[&str], value: &Value, wanted: &str) -> String {
    format!("`{}` is {}, not {wanted}", path.join("."), kind_of(value))
}

fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "true or false",
        Value::Number(_) => "a number",
        Value::String(_) => "a text",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}
