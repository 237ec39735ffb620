//! Unknown fields: fields of a bundle's objects that their types do not have.
//!
//! Go's decoders, and so all upstream tools, drop unknown fields silently. A misspelled `version`
//! or `serviceAccountName` then has no effect. Mainstay reports each unknown field with its
//! location and the nearest known field.
//!
//! A field is an error if its name is nearly that of a field that the same object lacks. All others
//! are warnings: fields of later versions of an API, leftovers, and names that differ from known
//! ones only in case. OLM reads the latter, and the API server drops them.
//!
//! Of types without a table of Go types, such as custom resources, only `metadata` is checked.

use crate::{
    bundle::Bundle,
    error::BundleProblem,
    manifest::Manifest,
    reader::{BundleReader, FileContent},
    tree, types,
    validate::{FindingLevel, LoadedBundle},
};
use mainstay_formats::edit_distance;
use mainstay_gocompat::quote;
use mainstay_object::Gvk;
use mainstay_schema::builtin::{self, FieldType, TypeDefinition};
use mainstay_schema::gojson::{DeclaredStruct, DeclaredType, ValuePathStep};
use serde_json::{Map, Value};
use std::{collections::BTreeMap, fmt::Write};

/// How many places of one field an object's findings list; the others are counted.
const MAX_PLACES: usize = 3;

/// How many unknown fields of an object are listed.
const MAX_LISTED: usize = 100;

/// How many unknown fields of an object are collected, as a bound for hostile objects.
const MAX_COLLECTED: usize = 10_000;

/// A field that the type of an object does not have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownField {
    /// An error if the field is a plain misspelling, else a warning.
    pub level: FindingLevel,
    /// The location of the field, and the field that was probably meant.
    pub problem: BundleProblem,
}

impl LoadedBundle {
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

impl BundleReader<'_> {
    /// The unknown fields of the files in the folder `metadata`: at the top level, in dependencies
    /// and properties, and in values of known types.
    pub fn unknown_fields(&self) -> Vec<UnknownField> {
        let entries = self.list("metadata").unwrap_or_default();
        let mut found = Vec::new();
        for entry in entries.into_iter().take(self.limits().files) {
            let path = format!("metadata/{}", entry.name);
            if entry.kind != tree::FileKind::File {
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
        // OLM reads it in any group, and matches field names in any case.
        walk.any_case = true;
        walk.check_type(value, &types::CLUSTER_SERVICE_VERSION);
        // The status belongs to the cluster; a bundle's status is ignored.
        let of_status =
            |unknown: &Unknown<'_>| matches!(unknown.path.first(), Some(PathStep::Field("status")));
        walk.found.retain(|unknown| !of_status(unknown));
    } else if let Some(definition) =
        builtin::definition_of(&Gvk::new(group, version, manifest.kind()))
    {
        walk.check_definition(value, definition);
    } else {
        walk.check_metadata(value);
    }
    let whole = format!("the {}", manifest.kind());
    problems(manifest, walk.found, &whole, "clusters drop it")
}

/// The unknown fields of a file that holds annotations, dependencies or properties.
fn of_metadata(path: String, content: &FileContent) -> Vec<UnknownField> {
    let Ok(decoded) = content.document() else { return Vec::new() };
    let Value::Object(fields) = &*decoded.value else { return Vec::new() };
    let is_metadata_field = |key: &String| {
        let lower = key.to_ascii_lowercase();
        let mut names = types::METADATA_FILE.fields.iter().map(|(name, _)| *name);
        names.any(|name| edit_distance::distance(&lower, name, max_distance(key)).is_some())
    };
    if !fields.keys().any(is_metadata_field) {
        // The folder may hold files of other programs.
        return Vec::new();
    }
    let mut walk = Walk { any_case: true, ..Walk::default() };
    walk.check_struct(&decoded.value, &types::METADATA_FILE);
    for list in ["dependencies", "properties"] {
        let Some((key, items)) = fields.iter().find(|(key, _)| key.eq_ignore_ascii_case(list))
        else {
            continue;
        };
        for (at, item) in items.as_array().into_iter().flatten().enumerate() {
            let kind = crate::go_field::text(item, "type");
            let Some(shape) = types::property_value(list, kind) else { continue };
            let value = item
                .as_object()
                .into_iter()
                .flatten()
                .find(|(name, _)| name.eq_ignore_ascii_case("value"));
            let Some((name, value)) = value else { continue };
            walk.path = vec![PathStep::Field(key), PathStep::Item(at), PathStep::Field(name)];
            walk.check_struct(value, shape);
        }
    }
    let source = content.bytes.clone();
    let manifest = Manifest::new(path, decoded.line, decoded.value.clone(), source);
    problems(&manifest, walk.found, "the file", "opm drops it")
}

/// Findings as problems with their lines. The same field of the same type is listed
/// [`MAX_PLACES`] times.
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
        *count <= MAX_PLACES
    });
    let unlisted = found.len().saturating_sub(MAX_LISTED);
    found.truncate(MAX_LISTED);
    let paths: Vec<Vec<ValuePathStep>> = found.iter().map(Unknown::steps).collect();
    let lines = manifest.lines_of(paths.iter().map(Vec::as_slice));
    let source = SourceLines::new(manifest.source());
    let mut listed: BTreeMap<(&str, &str), usize> = BTreeMap::new();
    let mut problems: Vec<UnknownField> = found
        .iter()
        .zip(lines)
        .map(|(unknown, line)| {
            let key = (unknown.owner, unknown.name);
            let listed = listed.entry(key).or_default();
            *listed += 1;
            let more = counts.get(&key).map_or(0, |count| count.saturating_sub(MAX_PLACES));
            let more = if *listed == MAX_PLACES { more } else { 0 };
            let (level, message, remedy) = unknown.describe(whole, loss, more);
            let file = manifest.file().to_owned();
            let line = line.map(|line| source.line_of_name(unknown.name, line));
            let problem = BundleProblem { file, line, message, remedy: remedy.into() };
            UnknownField { level, problem }
        })
        .collect();
    problems.sort_by_key(|unknown| unknown.problem.line);
    if unlisted > 0 {
        let message = format!("there are {unlisted} more fields that {whole} does not have");
        let problem = manifest.problem(message, "correct the others first");
        problems.push(UnknownField { level: FindingLevel::Warning, problem });
    }
    problems
}

/// How many lines above a value its field name is searched; comments may stand between.
const LINES_ABOVE: usize = 50;

/// The lines of a file. A field's name may stand some lines above its value.
struct SourceLines<'t>(Vec<&'t [u8]>);

impl<'t> SourceLines<'t> {
    fn new(source: &'t [u8]) -> Self {
        Self(source.split(|byte| *byte == b'\n').collect())
    }

    /// The line (from 1) of a field's name; `line` is the line of its value.
    fn line_of_name(&self, name: &str, line: usize) -> usize {
        let has_name = |line: &usize| {
            let Some(text) = line.checked_sub(1).and_then(|at| self.0.get(at)) else {
                return false;
            };
            memchr::memmem::find_iter(text, name).any(|at| {
                let rest = text.get(at + name.len()..).unwrap_or_default();
                let rest = rest.strip_prefix(b"\"").or(rest.strip_prefix(b"'")).unwrap_or(rest);
                rest.trim_ascii_start().starts_with(b":")
            })
        };
        let above = (line.saturating_sub(LINES_ABOVE)..=line).rev().find(has_name);
        above.unwrap_or(line)
    }
}

/// A step of the path to a part of the value.
#[derive(Clone, Copy)]
enum PathStep<'v> {
    Field(&'v str),
    Item(usize),
}

/// An unknown field that was found.
struct Unknown<'v> {
    /// The path to the object that has the field.
    path: Vec<PathStep<'v>>,
    /// The type of that object.
    owner: &'static str,
    name: &'v str,
    /// The field that was probably meant.
    meant: Option<&'static str>,
    /// Whether the name differs only in case, so that OLM reads the field.
    is_read: bool,
}

impl Unknown<'_> {
    /// The steps to the field itself.
    fn steps(&self) -> Vec<ValuePathStep> {
        let step = |passed: &PathStep<'_>| match *passed {
            PathStep::Field(name) => ValuePathStep::Field(name.to_owned()),
            PathStep::Item(at) => ValuePathStep::Item(at),
        };
        let steps = self.path.iter().map(step);
        steps.chain([ValuePathStep::Field(self.name.to_owned())]).collect()
    }

    /// The path to the object that has the field, as text.
    fn object_path(&self) -> String {
        let mut out = String::new();
        for passed in &self.path {
            // Writing to a string cannot fail.
            let _ = match passed {
                PathStep::Field(name) if name.contains(['.', '/']) => {
                    write!(out, "[{}]", quote(name))
                }
                PathStep::Field(name) if out.is_empty() => write!(out, "{name}"),
                PathStep::Field(name) => write!(out, ".{name}"),
                PathStep::Item(at) => write!(out, "[{at}]"),
            };
        }
        out
    }

    /// Level, message and remedy. `more` is the number of places that are not listed.
    fn describe(&self, whole: &str, loss: &str, more: usize) -> (FindingLevel, String, String) {
        let place = match self.object_path() {
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
                (FindingLevel::Warning, message, format!("write {}", quote(meant)))
            }
            Some(meant) if !mainstay_fault::is_on("misspelled-fields-are-warnings") => {
                (FindingLevel::Error, message, format!("did you mean {}?", quote(meant)))
            }
            Some(meant) => {
                (FindingLevel::Warning, message, format!("did you mean {}?", quote(meant)))
            }
            None => {
                let remedy = "remove it, or move it to where it belongs".to_owned();
                (FindingLevel::Warning, message, remedy)
            }
        }
    }
}

#[derive(Default)]
struct Walk<'v> {
    path: Vec<PathStep<'v>>,
    /// Whether field names match in any case.
    any_case: bool,
    found: Vec<Unknown<'v>>,
    /// The package whose schema type was looked up last, and that type.
    schema: Option<(&'static str, &'static TypeDefinition)>,
}

impl<'v> Walk<'v> {
    /// Checks a value against a Go struct.
    fn check_struct(&mut self, value: &'v Value, shape: &'static DeclaredStruct) {
        let Value::Object(fields) = value else { return };
        let of_name = |name: &str| shape.fields.iter().find(|(known, _)| *known == name);
        for (key, value) in fields {
            let field = of_name(key).or_else(|| {
                let names = || shape.fields.iter().map(|(name, _)| *name);
                self.record_unknown(fields, key, shape.name, names).and_then(of_name)
            });
            if let Some((_, kind)) = field {
                self.at_step(PathStep::Field(key), |walk| walk.check_type(value, kind));
            }
        }
    }

    fn check_type(&mut self, value: &'v Value, kind: &'static DeclaredType) {
        match (kind, value) {
            (DeclaredType::Struct(shape), Value::Object(_)) => self.check_struct(value, shape),
            (DeclaredType::List(element), Value::Array(items)) => {
                self.check_items(items, |walk, item| walk.check_type(item, element));
            }
            (DeclaredType::Pointers(shape), Value::Array(items)) => {
                self.check_items(items, |walk, item| walk.check_struct(item, shape));
            }
            (DeclaredType::Table(name), value) => {
                if let Some(definition) = builtin::definition(name) {
                    self.check_definition(value, definition);
                }
            }
            _ => {}
        }
    }

    /// Checks a value against a Kubernetes type.
    fn check_definition(&mut self, value: &'v Value, definition: &'static TypeDefinition) {
        if definition.json_form() == builtin::JsonForm::Any {
            return self.check_schema_or_other(value, definition);
        }
        let (builtin::JsonForm::Object, Value::Object(fields)) = (definition.json_form(), value)
        else {
            return;
        };
        for (key, value) in fields {
            let field = definition.field(key).or_else(|| {
                let names = || definition.fields().iter().map(|field| &*field.name);
                let name = self.record_unknown(fields, key, definition.name(), names)?;
                definition.field(name)
            });
            if let Some(field) = field {
                self.at_step(PathStep::Field(key), |walk| walk.check_field_type(value, &field.ty));
            }
        }
    }

    /// Checks a part of a CustomResourceDefinition that takes a schema or something else. Such a
    /// part has its own decoder, which matches names in any case.
    fn check_schema_or_other(&mut self, value: &'v Value, definition: &'static TypeDefinition) {
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
            Value::Object(_) => self.check_definition(value, schema),
            Value::Array(items) => {
                self.check_items(items, |walk, item| walk.check_definition(item, schema));
            }
            _ => {}
        }
        self.any_case = before;
    }

    fn check_field_type(&mut self, value: &'v Value, ty: &'static FieldType) {
        match (ty, value) {
            (FieldType::Object(reference), value) => {
                if let Some(definition) = reference.definition() {
                    self.check_definition(value, definition);
                }
            }
            (FieldType::List(element), Value::Array(items)) => {
                self.check_items(items, |walk, item| walk.check_field_type(item, element));
            }
            (FieldType::Map(element), Value::Object(entries)) => {
                for (key, entry) in entries {
                    self.at_step(PathStep::Field(key), |walk| {
                        walk.check_field_type(entry, element);
                    });
                }
            }
            _ => {}
        }
    }

    /// Checks the metadata of an object of an unknown type.
    fn check_metadata(&mut self, value: &'v Value) {
        let fields = value.as_object();
        if let Some((key, metadata)) = fields.and_then(|fields| fields.get_key_value("metadata")) {
            self.at_step(PathStep::Field(key), |walk| {
                walk.check_type(metadata, &types::OBJECT_META);
            });
        }
    }

    fn check_items(&mut self, items: &'v [Value], mut each: impl FnMut(&mut Self, &'v Value)) {
        for (at, item) in items.iter().enumerate() {
            self.at_step(PathStep::Item(at), |walk| each(walk, item));
        }
    }

    fn at_step(&mut self, step: PathStep<'v>, check: impl FnOnce(&mut Self)) {
        self.path.push(step);
        check(self);
        self.path.pop();
    }

    /// Records an unknown field. Returns the known field that OLM reads it as.
    fn record_unknown<N: Iterator<Item = &'static str>>(
        &mut self,
        fields: &Map<String, Value>,
        name: &'v str,
        owner: &'static str,
        names: impl Fn() -> N,
    ) -> Option<&'static str> {
        let same = names().find(|known| self.any_case && known.eq_ignore_ascii_case(name));
        if self.found.len() == MAX_COLLECTED {
            return same;
        }
        let meant = same.or_else(|| {
            let lower = name.to_ascii_lowercase();
            // A field that the object has was not meant.
            let free = names().filter(|known| !fields.contains_key(*known));
            let near = free.filter_map(|known| {
                let known_in_lower = known.to_ascii_lowercase();
                Some((edit_distance::distance(&lower, &known_in_lower, max_distance(name))?, known))
            });
            near.min().map(|(_, known)| known)
        });
        let path = self.path.clone();
        self.found.push(Unknown { path, owner, name, meant, is_read: same.is_some() });
        same
    }
}

/// The largest edit distance between a misspelled name and the name that was meant.
fn max_distance(name: &str) -> usize {
    match name.len() {
        0..=2 => 0,
        3..=5 => 1,
        _ => 2,
    }
}
