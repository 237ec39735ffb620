//! `cargo xtask schema`: writes the table of built-in types that `mainstay-schema` embeds.
//!
//! Two crates describe Kubernetes' types, each a half. `k8s-openapi` has JSON names, types,
//! required fields and descriptions. `k8s-pb` has the markers of the Go sources (list types, merge
//! keys, defaults) and the protobuf tags, also of alpha and beta versions. Both are read as text
//! from cargo's registry, and joined by field name without case and underscores.
//!
//! Facts that only the Go sources have, pointers and which fields are written empty, are in the
//! table `schema/go.txt`. Facts that only the OpenAPI documents of a server have, mainly
//! enumerations, are in `schema/documents.txt`. The types of operators (ClusterServiceVersion above
//! all) come from no crate: `schema/operators.txt` declares them.
//!
//! Descriptions are written only for types that the kinds of `mainstay_schema::builtin::kinds`
//! reach. `crates/kube/schema/src/builtin/table.rs` describes and reads the format.
//!
//! ```text
//! k8s-openapi ─► definitions ──┐
//! k8s-pb ──────► markers, tags ┼─► one package each: types, texts ─► deflate
//! go.txt ──────► Go's forms ───┤
//! operators.txt ► definitions ─┤
//! documents.txt ► patches ─────┘
//! ```

use anyhow::{Context, bail, ensure};
use flate2::{Compression, write::DeflateEncoder};
use mainstay_schema::builtin::{SubresourceKind, kinds};
use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

mod documents;
mod join;
mod macro_text;
mod messages;
mod operators;
mod shapes;

use macro_text::MacroText;

const TABLE: &str = "crates/kube/schema/src/builtin/table.bin";
/// The Kubernetes release, as the module of `k8s-openapi` that has its types.
const RELEASE: &str = "v1_35";
/// Types in the OpenAPI documents that no kind reaches.
const EXTRA_TYPES: [&str; 9] = [
    "apimachinery.pkg.apis.meta.v1.APIGroup",
    "apimachinery.pkg.apis.meta.v1.APIGroupList",
    "apimachinery.pkg.apis.meta.v1.APIResourceList",
    "apimachinery.pkg.apis.meta.v1.APIVersions",
    "apimachinery.pkg.apis.meta.v1.DeleteOptions",
    "apimachinery.pkg.apis.meta.v1.Patch",
    "apimachinery.pkg.apis.meta.v1.Status",
    "apimachinery.pkg.apis.meta.v1.WatchEvent",
    "apimachinery.pkg.version.Info",
];

/// Writes the table; with `check`, fails if the file differs.
pub(crate) fn run(root: &Path, check: bool) -> anyhow::Result<()> {
    let openapi = package_folder(root, "k8s-openapi")?.join("src").join(RELEASE);
    let mut definitions = BTreeMap::new();
    read_definitions(&openapi, &mut definitions)?;
    add_lists(&mut definitions)?;
    let messages = messages::read(&package_folder(root, "k8s-pb")?.join("src"))?;
    join::join_all(&mut definitions, &messages);
    apply_corrections(&mut definitions)?;
    shapes::add(&mut definitions)?;
    operators::add(&mut definitions)?;
    check_names(&definitions)?;
    documents::add(&mut definitions)?;
    let table = encode(&definitions, &reachable(&definitions)?)?;
    let path = root.join(TABLE);
    if check {
        let present = fs::read(&path).with_context(|| format!("read {}", path.display()))?;
        ensure!(present == table, "{TABLE} is stale: run `cargo xtask schema`");
    } else {
        fs::write(&path, &table).with_context(|| format!("write {}", path.display()))?;
    }
    Ok(())
}

/// The sources of a crate in cargo's registry. `k8s-pb` is an optional dependency of `xtask` that
/// is never compiled; `--all-features` makes cargo fetch it.
fn package_folder(root: &Path, name: &str) -> anyhow::Result<PathBuf> {
    let output = Command::new("cargo")
        .args(["metadata", "--format-version=1", "--all-features"])
        .current_dir(root)
        .output()
        .context("run cargo metadata")?;
    ensure!(
        output.status.success(),
        "cargo metadata failed: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    let metadata: Value = serde_json::from_slice(&output.stdout)?;
    let packages = metadata["packages"].as_array().context("cargo metadata has packages")?;
    let package = packages
        .iter()
        .find(|package| package["name"] == name)
        .with_context(|| format!("{name} is not among the dependencies"))?;
    let manifest = package["manifest_path"].as_str().context("a package has a manifest")?;
    Ok(Path::new(manifest).parent().context("a manifest lies in a folder")?.to_owned())
}

/// A type. Names are without the leading `io.k8s.`.
#[derive(Default)]
struct Definition {
    description: String,
    /// The letter of a type that is no JSON object with known fields; see [`leaf`].
    leaf: Option<char>,
    /// Whether server-side apply treats the whole map as one value.
    atomic: bool,
    /// Whether no OpenAPI document has the type: it belongs to a version that is not served, or to
    /// requests.
    unserved: bool,
    /// A JSON merge patch of its schema, from `documents.txt`.
    patch: Map<String, Value>,
    fields: BTreeMap<String, Field>,
    /// The field names in the order of their declaration; empty if that is the order of the tags.
    order: Vec<String>,
}

#[derive(Default)]
struct Field {
    description: String,
    kind: String,
    required: bool,
    options: BTreeMap<&'static str, String>,
    place: WirePath,
    /// The field's form in Go.
    shape: shapes::Shape,
    /// A JSON merge patch of its schema, from `documents.txt`.
    patch: Map<String, Value>,
}

/// The position of a field on the wire and in Go.
#[derive(Clone, Default)]
struct WirePath {
    /// Its tag, after the tags of the messages in which it is embedded.
    tags: Vec<u32>,
    /// The names of these messages.
    embeds: Vec<String>,
}

/// The letter of a type with its own JSON form.
fn leaf(name: &str) -> Option<char> {
    Some(match name.rsplit('.').next()? {
        "Time" => 't',
        "MicroTime" => 'u',
        "IntOrString" => 'x',
        "Quantity" => 'q',
        "RawExtension" | "FieldsV1" | "Patch" | "CustomResourceSubresourceStatus" => 'o',
        "OperatorVersion" | "OperatorRelease" => 's',
        "JSON"
        | "RawMessage"
        | "JSONSchemaPropsOrArray"
        | "JSONSchemaPropsOrBool"
        | "JSONSchemaPropsOrStringArray" => 'a',
        _ => return None,
    })
}

/// Reads every `impl JsonSchema` in a folder and its subfolders.
fn read_definitions(folder: &Path, into: &mut BTreeMap<String, Definition>) -> anyhow::Result<()> {
    for path in sorted_entries(folder)? {
        if path.is_dir() {
            read_definitions(&path, into)?;
            continue;
        }
        let text = fs::read_to_string(&path)?;
        for part in text.split("JsonSchema for ").skip(1) {
            let Some((_, rest)) = part.split_once("fn schema_name()") else { continue };
            let Some((_, rest)) = rest.split_once("\"io.k8s.") else { continue };
            let Some((name, rest)) = rest.split_once('"') else { continue };
            let Some((_, rest)) = rest.split_once("json_schema!(") else { continue };
            let value = MacroText::new(rest)
                .value()
                .with_context(|| format!("schema of {name} in {}", path.display()))?;
            into.insert(name.to_owned(), definition(name, &value)?);
        }
    }
    Ok(())
}

fn sorted_entries(folder: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let mut entries: Vec<PathBuf> = fs::read_dir(folder)
        .with_context(|| format!("read {}", folder.display()))?
        .map(|entry| entry.map(|entry| entry.path()))
        .collect::<Result<_, _>>()?;
    entries.sort();
    Ok(entries)
}

/// Converts a module path of either crate to a definition's name.
fn dotted(path: &str) -> String {
    path.replace('/', ".")
        .replace("apiextensions_apiserver", "apiextensions-apiserver")
        .replace("kube_aggregator", "kube-aggregator")
}

fn text(value: &Value, key: &str) -> String {
    value[key].as_str().unwrap_or_default().to_owned()
}

fn definition(name: &str, value: &Value) -> anyhow::Result<Definition> {
    let mut definition = Definition {
        description: text(value, "description"),
        leaf: leaf(name),
        ..Definition::default()
    };
    let required: Vec<&str> =
        value["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    if definition.leaf.is_some() {
        return Ok(definition);
    }
    for (key, property) in value["properties"].as_object().into_iter().flatten() {
        // `k8s-openapi` makes metadata required for its own trait; Kubernetes does not.
        let required = required.contains(&key.as_str()) && key != "metadata";
        let kind = kind(name, property).with_context(|| format!("field {key} of {name}"))?;
        let field = Field {
            description: text(property, "description"),
            kind,
            required,
            ..Field::default()
        };
        definition.fields.insert(key.clone(), field);
    }
    Ok(definition)
}

fn package_of(name: &str) -> &str {
    name.rsplit_once('.').map_or("", |parts| parts.0)
}

/// A type in the table's letters; `@` and a name refer to another definition. The name is short
/// inside its own package.
fn kind(owner: &str, property: &Value) -> anyhow::Result<String> {
    if let Some(name) = property["$ref"].as_str() {
        let short = name.strip_prefix(package_of(owner)).and_then(|name| name.strip_prefix('.'));
        let name = short.filter(|short| !short.contains('.')).unwrap_or(name);
        return Ok(format!("@{name}"));
    }
    let format = property["format"].as_str().unwrap_or_default();
    Ok(match (property["type"].as_str().unwrap_or_default(), format) {
        ("string", "byte") => "y".to_owned(),
        ("string", _) => "s".to_owned(),
        ("integer", "int64") => "l".to_owned(),
        ("integer", _) => "i".to_owned(),
        ("number", _) => "d".to_owned(),
        ("boolean", _) => "b".to_owned(),
        ("array", _) => format!("[{}", kind(owner, &property["items"])?),
        ("object", _) if property["additionalProperties"].is_object() => {
            format!("{{{}", kind(owner, &property["additionalProperties"])?)
        }
        other => bail!("no letter for {other:?}"),
    })
}

/// The definitions of all kinds in the table, and of the kinds of subresources that have a type
/// here.
fn kind_names(definitions: &BTreeMap<String, Definition>) -> anyhow::Result<BTreeSet<String>> {
    let mut names = BTreeSet::new();
    for row in kinds() {
        let name = mainstay_schema::builtin::definition_name(row.group, row.version, row.kind)
            .with_context(|| format!("group {} has no package", row.group))?;
        ensure!(definitions.contains_key(&name), "{name} is in no source");
        names.insert(name);
        for subresource in row.subresources {
            if let SubresourceKind::Foreign(group, version, kind) = subresource.kind {
                names.extend(mainstay_schema::builtin::definition_name(group, version, kind));
            }
        }
    }
    Ok(names)
}

/// Adds list types, for which `k8s-openapi` has a single generic type.
fn add_lists(definitions: &mut BTreeMap<String, Definition>) -> anyhow::Result<()> {
    for row in kinds().iter().filter(|row| row.has_verb("list")) {
        let name = mainstay_schema::builtin::definition_name(row.group, row.version, row.kind)
            .with_context(|| format!("group {} has no package", row.group))?;
        let item = definitions.get(&name).with_context(|| format!("{name} is in no source"))?;
        let described = |field: &str, kind: &str| Field {
            description: item
                .fields
                .get(field)
                .map_or(String::new(), |field| field.description.clone()),
            kind: kind.to_owned(),
            ..Field::default()
        };
        let fields = BTreeMap::from([
            ("apiVersion".to_owned(), described("apiVersion", "s")),
            ("kind".to_owned(), described("kind", "s")),
            (
                "items".to_owned(),
                Field {
                    description: format!("The objects of kind {}.", row.kind),
                    kind: format!("[@{}", row.kind),
                    required: true,
                    ..Field::default()
                },
            ),
            (
                "metadata".to_owned(),
                Field {
                    description: "Standard list metadata.".to_owned(),
                    kind: "@apimachinery.pkg.apis.meta.v1.ListMeta".to_owned(),
                    ..Field::default()
                },
            ),
        ]);
        let description = format!("{} is a list of {} objects.", row.list_kind(), row.kind);
        let list = Definition { description, fields, ..Definition::default() };
        definitions.insert(format!("{name}List"), list);
    }
    Ok(())
}

fn option(field: &mut Field, mark: &str) {
    if mark == "optional" {
        // `k8s-openapi` requires some names that Kubernetes does not.
        field.required = false;
    }
    let Some((key, value)) = mark.split_once('=') else { return };
    let value = value.trim().trim_matches('"');
    let key = match key {
        "listType" => "lt",
        "mapType" | "structType" => "mt",
        "listMapKey" => "k",
        "patchMergeKey" => "mk",
        "patchStrategy" => "ps",
        "default" if !value.starts_with("ref(") => "d",
        _ => return,
    };
    if key == "k" {
        let keys = field.options.entry(key).or_default();
        if !keys.is_empty() {
            keys.push(',');
        }
        keys.push_str(value);
    } else {
        field.options.insert(key, value.to_owned());
    }
}

/// Corrects where both sources differ from a real server: two required fields that `k8s-openapi`
/// makes optional, and two defaults that the Go sources name by a constant.
fn apply_corrections(definitions: &mut BTreeMap<String, Definition>) -> anyhow::Result<()> {
    let rows = [
        ("api.core.v1.Event", "metadata", None),
        ("api.events.v1.Event", "eventTime", None),
        ("api.core.v1.AzureDiskVolumeSource", "cachingMode", Some("ReadWrite")),
        ("api.core.v1.AzureDiskVolumeSource", "kind", Some("Shared")),
    ];
    for (name, field, default) in rows {
        let found =
            definitions.get_mut(name).and_then(|definition| definition.fields.get_mut(field));
        let found = found.with_context(|| format!("{name} has no field {field}"))?;
        match default {
            Some(text) => drop(found.options.insert("d", text.to_owned())),
            None => found.required = true,
        }
    }
    Ok(())
}

/// The full name of the definition to which a type refers, if any.
fn target(owner: &str, kind: &str) -> Option<String> {
    let (_, target) = kind.split_once('@')?;
    Some(if target.contains('.') {
        target.to_owned()
    } else {
        format!("{}.{target}", package_of(owner))
    })
}

/// Fails if a field refers to a missing definition.
fn check_names(definitions: &BTreeMap<String, Definition>) -> anyhow::Result<()> {
    for (name, definition) in definitions {
        for (key, field) in &definition.fields {
            if let Some(target) = target(name, &field.kind) {
                ensure!(
                    definitions.contains_key(&target),
                    "{name}.{key}: {target} is in no source"
                );
            }
        }
    }
    Ok(())
}

/// All definitions that kinds and documents reach: these have descriptions.
fn reachable(definitions: &BTreeMap<String, Definition>) -> anyhow::Result<BTreeSet<String>> {
    let mut open: Vec<String> = kind_names(definitions)?.into_iter().collect();
    let lists: Vec<String> = open.iter().map(|name| format!("{name}List")).collect();
    open.extend(lists.into_iter().filter(|name| definitions.contains_key(name)));
    open.extend(EXTRA_TYPES.map(str::to_owned));
    let mut reached = BTreeSet::new();
    while let Some(name) = open.pop() {
        let definition =
            definitions.get(&name).with_context(|| format!("{name} is in no source"))?;
        if !reached.insert(name.clone()) {
            continue;
        }
        for field in definition.fields.values() {
            open.extend(target(&name, &field.kind));
        }
    }
    Ok(reached)
}

/// Encodes the table: a directory, then the deflated types and texts of each package.
fn encode(
    definitions: &BTreeMap<String, Definition>,
    reached: &BTreeSet<String>,
) -> anyhow::Result<Vec<u8>> {
    let mut packages: BTreeMap<&str, (String, String)> = BTreeMap::new();
    for (name, definition) in definitions {
        let (types, texts) = packages.entry(package_of(name)).or_default();
        write_types(types, name, definition)?;
        let described = reached.contains(name);
        for (text, patch) in std::iter::once((&definition.description, &definition.patch))
            .chain(definition.fields.values().map(|field| (&field.description, &field.patch)))
        {
            if described {
                texts.push_str(&escape(text));
                if !patch.is_empty() {
                    write!(texts, "\t{}", escape(&serde_json::to_string(patch)?))?;
                }
            }
            texts.push('\n');
        }
    }
    let mut directory = String::new();
    let mut data = Vec::new();
    for (name, (types, texts)) in &packages {
        let (packed, described) = (deflate(types)?, deflate(texts)?);
        writeln!(
            directory,
            "{name} {} {} {} {}",
            packed.len(),
            types.len(),
            described.len(),
            texts.len()
        )?;
        data.extend(packed);
        data.extend(described);
    }
    let mut table = directory.into_bytes();
    table.push(b'\n');
    table.extend(data);
    Ok(table)
}

/// Escapes a text to one line without tabs, which are separators.
fn escape(text: &str) -> String {
    text.replace('\\', "\\\\").replace('\n', "\\n").replace('\t', "\\t")
}

fn write_types(out: &mut String, name: &str, definition: &Definition) -> anyhow::Result<()> {
    let short = name.rsplit('.').next().unwrap_or_default();
    write!(out, "={short}")?;
    if let Some(letter) = definition.leaf {
        write!(out, " {letter}")?;
    }
    if definition.atomic {
        write!(out, " atomic")?;
    }
    out.push('\n');
    if !definition.order.is_empty() {
        let (declared, known): (BTreeSet<&String>, BTreeSet<&String>) =
            (definition.order.iter().collect(), definition.fields.keys().collect());
        let once = declared.len() == definition.order.len();
        ensure!(once && declared == known, "the order of {name} has not each of its fields once");
    }
    for (key, field) in &definition.fields {
        write!(out, "{key}{} {}", if field.required { "!" } else { "" }, field.kind)?;
        if !field.place.tags.is_empty() {
            let tags: Vec<String> = field.place.tags.iter().map(ToString::to_string).collect();
            write!(out, " t={}", tags.join("."))?;
        }
        if !field.place.embeds.is_empty() {
            write!(out, " e={}", field.place.embeds.join("."))?;
        }
        let letters = field.shape.letters();
        if !letters.is_empty() {
            write!(out, " g={letters}")?;
        }
        if let Some(name) = &field.shape.type_name {
            write!(out, " n={name}")?;
        }
        if let Some(at) = definition.order.iter().position(|name| name == key) {
            write!(out, " o={at}")?;
        }
        for (option, value) in &field.options {
            write!(out, " {option}={value}")?;
        }
        out.push('\n');
    }
    Ok(())
}

fn deflate(text: &str) -> anyhow::Result<Vec<u8>> {
    let mut encoder = DeflateEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(text.as_bytes())?;
    Ok(encoder.finish()?)
}
