//! Unknown fields: what an object of a bundle says in a field that its type does not have.
//!
//! Go's decoders, and with them every tool of upstream, drop such fields without a word, so that a
//! misspelled `version` or `serviceAccountName` is as if it were not written. Here each is a problem
//! with its place and the nearest field that is known.
//!
//! A field is an error where what was meant is plain and is lost: it is nearly the name of a field
//! that the same object lacks. All others are warnings: fields of later versions of an API, leftovers,
//! and names that differ from the known ones only in case, which OLM takes and the API server drops.
//!
//! Types that this program has no table of, such as custom resources, are looked at as far as
//! `metadata` goes.

use crate::{
    bundle::Bundle,
    error::Problem,
    manifest::Manifest,
    reading::{Content, Reading},
    tree, types,
    validate::{Level, Subject},
};
use mainstay_formats::near;
use mainstay_gocompat::quote;
use mainstay_object::Gvk;
use mainstay_schema::builtin::{self, FieldType, TypeDefinition};
use mainstay_schema::gojson::{DeclaredStruct, DeclaredType, Step};
use serde_json::{Map, Value};
use std::{collections::BTreeMap, fmt::Write};

/// How many places of one field are named in an object; the others are counted.
const NAMED: usize = 3;

/// How many unknown fields of an object are named, and how many are kept to be counted: nobody writes
/// that many by mistake.
const MOST: [usize; 2] = [100, 10_000];

/// A field that the type of an object does not have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownField {
    /// An error where what was meant is plain and is lost.
    pub level: Level,
    /// Where it stands, and which field was probably meant.
    pub problem: Problem,
}

impl Subject {
    /// The unknown fields of the objects, in the order of files and lines.
    pub fn unknown_fields(&self) -> Vec<UnknownField> {
        self.manifests().iter().flat_map(of_manifest).collect()
    }
}

impl Bundle {
    /// The unknown fields of the objects, in the order of files and lines.
    pub fn unknown_fields(&self) -> Vec<UnknownField> {
        self.manifests().iter().flat_map(of_manifest).collect()
    }
}

impl Reading<'_> {
    /// The unknown fields of the files in the folder `metadata`: beside the lists of dependencies and
    /// properties, in their entries, and in values of types that are known.
    pub fn unknown_fields(&self) -> Vec<UnknownField> {
        let entries = self.list("metadata").unwrap_or_default();
        let mut found = Vec::new();
        for entry in entries.into_iter().take(self.limits().files) {
            let path = format!("metadata/{}", entry.name);
            if entry.kind != tree::Kind::File {
                continue;
            }
            let Ok(content) = self.file(&path) else { continue };
            found.extend(of_metadata(path, &content));
        }
        found
    }
}

/// The unknown fields of one object.
fn of_manifest(manifest: &Manifest) -> Vec<UnknownField> {
    let value = manifest.value();
    let mut walk = Walk::default();
    let (group, version) = manifest.group_version();
    if manifest.kind() == "ClusterServiceVersion" {
        // OLM reads it whatever group it says it is of, and takes names in any case.
        walk.any_case = true;
        walk.kind(value, &types::CLUSTER_SERVICE_VERSION);
        // The status is the cluster's, and what a bundle says there is not looked at.
        let of_status =
            |unknown: &Unknown<'_>| matches!(unknown.path.first(), Some(Passed::Field("status")));
        walk.found.retain(|unknown| !of_status(unknown));
    } else if let Some(definition) =
        builtin::definition_of(&Gvk::new(group, version, manifest.kind()))
    {
        walk.kube(value, definition);
    } else {
        walk.metadata(value);
    }
    let whole = format!("the {}", manifest.kind());
    problems(manifest, walk.found, &whole, "clusters drop it")
}

/// The unknown fields of a file that holds annotations, dependencies or properties.
fn of_metadata(path: String, content: &Content) -> Vec<UnknownField> {
    let Ok(decoded) = content.document() else { return Vec::new() };
    let Value::Object(fields) = &*decoded.value else { return Vec::new() };
    let known = |key: &String| {
        let lower = key.to_ascii_lowercase();
        let mut names = types::METADATA_FILE.fields.iter().map(|(name, _)| *name);
        names.any(|name| near::distance(&lower, name, most(key)).is_some())
    };
    if !fields.keys().any(known) {
        // Files of other programs may lie there.
        return Vec::new();
    }
    let mut walk = Walk { any_case: true, ..Walk::default() };
    walk.one(&decoded.value, &types::METADATA_FILE);
    for list in ["dependencies", "properties"] {
        let Some((key, items)) = fields.iter().find(|(key, _)| key.eq_ignore_ascii_case(list))
        else {
            continue;
        };
        for (at, item) in items.as_array().into_iter().flatten().enumerate() {
            let kind = crate::shape::text(item, "type");
            let Some(shape) = types::property_value(list, kind) else { continue };
            let value = item
                .as_object()
                .into_iter()
                .flatten()
                .find(|(name, _)| name.eq_ignore_ascii_case("value"));
            let Some((name, value)) = value else { continue };
            walk.path = vec![Passed::Field(key), Passed::Item(at), Passed::Field(name)];
            walk.one(value, shape);
        }
    }
    let source = content.bytes.clone();
    let manifest = Manifest::new(path, decoded.line, decoded.value.clone(), source);
    problems(&manifest, walk.found, "the file", "opm drops it")
}

/// What was found as problems with their lines. One field of one type is named a few times.
fn problems(
    manifest: &Manifest,
    mut found: Vec<Unknown<'_>>,
    whole: &str,
    loss: &str,
) -> Vec<UnknownField> {
    if found.is_empty() {
        return Vec::new();
    }
    let mut counts: BTreeMap<(&str, &str), usize> = BTreeMap::new();
    found.retain(|unknown| {
        let count = counts.entry((unknown.owner, unknown.name)).or_default();
        *count += 1;
        *count <= NAMED
    });
    let unnamed = found.len().saturating_sub(MOST[0]);
    found.truncate(MOST[0]);
    let paths: Vec<Vec<Step>> = found.iter().map(Unknown::steps).collect();
    let lines = manifest.lines_of(paths.iter().map(Vec::as_slice));
    let names = Names::of(manifest.source());
    let mut named: BTreeMap<(&str, &str), usize> = BTreeMap::new();
    let mut problems: Vec<UnknownField> = found
        .iter()
        .zip(lines)
        .map(|(unknown, line)| {
            let key = (unknown.owner, unknown.name);
            let named = named.entry(key).or_default();
            *named += 1;
            let more = counts.get(&key).map_or(0, |count| count.saturating_sub(NAMED));
            let more = if *named == NAMED { more } else { 0 };
            let (level, message, remedy) = unknown.words(whole, loss, more);
            let file = manifest.file().to_owned();
            let line = line.map(|line| names.line(unknown.name, line));
            let problem = Problem { file, line, message, remedy: remedy.into() };
            UnknownField { level, problem }
        })
        .collect();
    problems.sort_by_key(|unknown| unknown.problem.line);
    if unnamed > 0 {
        let message = format!("there are {unnamed} more fields that {whole} does not have");
        let problem = manifest.problem(message, "correct the others first");
        problems.push(UnknownField { level: Level::Warning, problem });
    }
    problems
}

/// How many lines above a value its name is looked for; comments may stand between.
const ABOVE: usize = 50;

/// The lines of a file, to find the names of fields whose values begin below them.
struct Names<'t>(Vec<&'t [u8]>);

impl<'t> Names<'t> {
    fn of(source: &'t [u8]) -> Self {
        Self(source.split(|byte| *byte == b'\n').collect())
    }

    /// The line (from 1) of a field's name, where `line` is the one of its value.
    fn line(&self, name: &str, line: usize) -> usize {
        let has_name = |line: &usize| {
            let Some(text) = line.checked_sub(1).and_then(|at| self.0.get(at)) else {
                return false;
            };
            memchr::memmem::find_iter(text, name).any(|at| {
                let behind = text.get(at + name.len()..).unwrap_or_default();
                let behind =
                    behind.strip_prefix(b"\"").or(behind.strip_prefix(b"'")).unwrap_or(behind);
                behind.trim_ascii_start().starts_with(b":")
            })
        };
        let above = (line.saturating_sub(ABOVE)..=line).rev().find(has_name);
        above.unwrap_or(line)
    }
}

/// A step to a part of the value that is walked through.
#[derive(Clone, Copy)]
enum Passed<'v> {
    Field(&'v str),
    Item(usize),
}

/// A field that was found.
struct Unknown<'v> {
    /// The steps to the object that has it.
    path: Vec<Passed<'v>>,
    /// The type of that object.
    owner: &'static str,
    name: &'v str,
    /// The field that was probably meant.
    meant: Option<&'static str>,
    /// Whether it is the one that was meant in another case, and is read all the same.
    is_read: bool,
}

impl Unknown<'_> {
    /// The steps to the field itself.
    fn steps(&self) -> Vec<Step> {
        let step = |passed: &Passed<'_>| match *passed {
            Passed::Field(name) => Step::Field(name.to_owned()),
            Passed::Item(at) => Step::Item(at),
        };
        let steps = self.path.iter().map(step);
        steps.chain([Step::Field(self.name.to_owned())]).collect()
    }

    /// The object that has the field, as a path.
    fn place(&self) -> String {
        let mut out = String::new();
        for passed in &self.path {
            // Writing to a string cannot fail.
            let _ = match passed {
                Passed::Field(name) if name.contains(['.', '/']) => {
                    write!(out, "[{}]", quote(name))
                }
                Passed::Field(name) if out.is_empty() => write!(out, "{name}"),
                Passed::Field(name) => write!(out, ".{name}"),
                Passed::Item(at) => write!(out, "[{at}]"),
            };
        }
        out
    }

    /// How bad it is, what is said of it, and what to do. `more` places are not named.
    fn words(&self, whole: &str, loss: &str, more: usize) -> (Level, String, String) {
        let place = match self.place() {
            place if place.is_empty() => whole.to_owned(),
            place => format!("{place} of {whole}"),
        };
        let loss = if self.is_read { "names are compared letter by letter" } else { loss };
        let mut message = format!("there is no field {} in {place}: {loss}", quote(self.name));
        if more > 0 {
            let s = if more == 1 { "" } else { "s" };
            let _ = write!(message, "; also in {more} more place{s}");
        }
        match self.meant {
            Some(meant) if self.is_read => {
                (Level::Warning, message, format!("write {}", quote(meant)))
            }
            Some(meant) if !mainstay_fault::is_on("misspelled-fields-are-warnings") => {
                (Level::Error, message, format!("did you mean {}?", quote(meant)))
            }
            Some(meant) => (Level::Warning, message, format!("did you mean {}?", quote(meant))),
            None => {
                let remedy = "remove it, or move it to where it belongs".to_owned();
                (Level::Warning, message, remedy)
            }
        }
    }
}

#[derive(Default)]
struct Walk<'v> {
    path: Vec<Passed<'v>>,
    /// Whether names of fields are read in any case.
    any_case: bool,
    found: Vec<Unknown<'v>>,
    /// The package whose type of schemas was asked for last, and that type.
    schema: Option<(&'static str, &'static TypeDefinition)>,
}

impl<'v> Walk<'v> {
    /// A value against a Go struct.
    fn one(&mut self, value: &'v Value, shape: &'static DeclaredStruct) {
        let Value::Object(fields) = value else { return };
        let of_name = |name: &str| shape.fields.iter().find(|(known, _)| *known == name);
        for (key, value) in fields {
            let field = of_name(key).or_else(|| {
                let names = || shape.fields.iter().map(|(name, _)| *name);
                self.unknown(fields, key, shape.name, names).and_then(of_name)
            });
            if let Some((_, kind)) = field {
                self.below(Passed::Field(key), |walk| walk.kind(value, kind));
            }
        }
    }

    fn kind(&mut self, value: &'v Value, kind: &'static DeclaredType) {
        match (kind, value) {
            (DeclaredType::Struct(shape), Value::Object(_)) => self.one(value, shape),
            (DeclaredType::List(element), Value::Array(items)) => {
                self.items(items, |walk, item| walk.kind(item, element));
            }
            (DeclaredType::Pointers(shape), Value::Array(items)) => {
                self.items(items, |walk, item| walk.one(item, shape));
            }
            (DeclaredType::Table(name), value) => {
                if let Some(definition) = builtin::definition(name) {
                    self.kube(value, definition);
                }
            }
            _ => {}
        }
    }

    /// A value against a type of Kubernetes.
    fn kube(&mut self, value: &'v Value, definition: &'static TypeDefinition) {
        if definition.json_form() == builtin::JsonForm::Any {
            return self.schema_part(value, definition);
        }
        let (builtin::JsonForm::Object, Value::Object(fields)) = (definition.json_form(), value)
        else {
            return;
        };
        for (key, value) in fields {
            let field = definition.field(key).or_else(|| {
                let names = || definition.fields().iter().map(|field| &*field.name);
                let name = self.unknown(fields, key, definition.name(), names)?;
                definition.field(name)
            });
            if let Some(field) = field {
                self.below(Passed::Field(key), |walk| walk.kube_type(value, &field.ty));
            }
        }
    }

    /// Parts of definitions of custom resources that take a schema or something else. They are read
    /// apart, with names in any case.
    fn schema_part(&mut self, value: &'v Value, definition: &'static TypeDefinition) {
        let short = definition.short_name();
        if !short.starts_with("JSONSchemaPropsOr") {
            return;
        }
        let Some(package) = definition.name().strip_suffix(short) else { return };
        let schema = match self.schema {
            Some((known, schema)) if known == package => schema,
            _ => match builtin::definition(&format!("{package}JSONSchemaProps")) {
                Some(schema) => schema,
                None => return,
            },
        };
        self.schema = Some((package, schema));
        let before = std::mem::replace(&mut self.any_case, true);
        match value {
            Value::Object(_) => self.kube(value, schema),
            Value::Array(items) => self.items(items, |walk, item| walk.kube(item, schema)),
            _ => {}
        }
        self.any_case = before;
    }

    fn kube_type(&mut self, value: &'v Value, ty: &'static FieldType) {
        match (ty, value) {
            (FieldType::Object(reference), value) => {
                if let Some(definition) = reference.definition() {
                    self.kube(value, definition);
                }
            }
            (FieldType::List(element), Value::Array(items)) => {
                self.items(items, |walk, item| walk.kube_type(item, element));
            }
            (FieldType::Map(element), Value::Object(entries)) => {
                for (key, entry) in entries {
                    self.below(Passed::Field(key), |walk| walk.kube_type(entry, element));
                }
            }
            _ => {}
        }
    }

    /// The metadata of an object of which nothing else is known.
    fn metadata(&mut self, value: &'v Value) {
        let fields = value.as_object();
        if let Some((key, metadata)) = fields.and_then(|fields| fields.get_key_value("metadata")) {
            self.below(Passed::Field(key), |walk| walk.kind(metadata, &types::OBJECT_META));
        }
    }

    fn items(&mut self, items: &'v [Value], mut each: impl FnMut(&mut Self, &'v Value)) {
        for (at, item) in items.iter().enumerate() {
            self.below(Passed::Item(at), |walk| each(walk, item));
        }
    }

    fn below(&mut self, step: Passed<'v>, check: impl FnOnce(&mut Self)) {
        self.path.push(step);
        check(self);
        self.path.pop();
    }

    /// Notes a field of an object that its type does not have. Returns the known field that it is
    /// read as.
    fn unknown<N: Iterator<Item = &'static str>>(
        &mut self,
        fields: &Map<String, Value>,
        name: &'v str,
        owner: &'static str,
        names: impl Fn() -> N,
    ) -> Option<&'static str> {
        let same = names().find(|known| self.any_case && known.eq_ignore_ascii_case(name));
        if self.found.len() == MOST[1] {
            return same;
        }
        let meant = same.or_else(|| {
            let lower = name.to_ascii_lowercase();
            // What the object says under its own name was not meant.
            let free = names().filter(|known| !fields.contains_key(*known));
            let near = free.filter_map(|known| {
                let known_in_lower = known.to_ascii_lowercase();
                Some((near::distance(&lower, &known_in_lower, most(name))?, known))
            });
            near.min().map(|(_, known)| known)
        });
        let path = self.path.clone();
        self.found.push(Unknown { path, owner, name, meant, is_read: same.is_some() });
        same
    }
}

/// How many letters of a name may be wrong for another one to be meant.
fn most(name: &str) -> usize {
    match name.len() {
        0..=2 => 0,
        3..=5 => 1,
        _ => 2,
    }
}
