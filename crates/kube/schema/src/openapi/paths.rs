//! The paths of a document: each with its verbs, and each verb with what it takes and gives.

use super::META;
use super::types::Types;
use crate::builtin::{self, BuiltinKind};
use crate::crd;
use mainstay_object::{Gvk, Scope};
use serde_json::{Map, Value, json};

const VERBS: [&str; 8] =
    ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"];

/// A query parameter: name, type, meaning.
type Parameter = (&'static str, &'static str, &'static str);

const PRETTY: Parameter = ("pretty", "string", "Whether the answer is indented for reading.");
const DRY_RUN: Parameter =
    ("dryRun", "string", "With `All`, everything is done and checked, and nothing is stored.");
const FIELD_MANAGER: Parameter = (
    "fieldManager",
    "string",
    "Who makes the change, of at most 128 printable characters. Apply requests need it.",
);
const FIELD_VALIDATION: Parameter = (
    "fieldValidation",
    "string",
    "What happens to unknown and repeated fields: `Ignore` drops them, `Warn` (the default) drops them and warns, `Strict` refuses the request.",
);
const FORCE: Parameter =
    ("force", "boolean", "Whether an apply request takes over fields that others manage.");
const LIST: [Parameter; 10] = [
    ("allowWatchBookmarks", "boolean", "Whether a watch may send bookmarks."),
    ("continue", "string", "Where an earlier list with a limit ended."),
    ("fieldSelector", "string", "Only objects with these values of fields."),
    ("labelSelector", "string", "Only objects with these labels."),
    ("limit", "integer", "At most so many objects; the answer says where to continue."),
    ("resourceVersion", "string", "Which state of the collection is meant."),
    ("resourceVersionMatch", "string", "How `resourceVersion` is meant."),
    ("sendInitialEvents", "boolean", "Whether a watch begins with the objects that are there."),
    ("timeoutSeconds", "integer", "How long a list or watch may take."),
    ("watch", "boolean", "Whether changes are sent instead of a list."),
];
const DELETE: [Parameter; 4] = [
    DRY_RUN,
    ("gracePeriodSeconds", "integer", "How long the object may take to end."),
    ("orphanDependents", "boolean", "Deprecated: use `propagationPolicy`."),
    (
        "propagationPolicy",
        "string",
        "What happens to dependents: `Orphan`, `Background`, `Foreground`.",
    ),
];
const WRITE: [Parameter; 3] = [DRY_RUN, FIELD_MANAGER, FIELD_VALIDATION];
const PATCH: [Parameter; 4] = [DRY_RUN, FIELD_MANAGER, FIELD_VALIDATION, FORCE];

/// The path that all paths of a group-version begin with.
pub(super) fn root(group: &str, version: &str) -> String {
    if group.is_empty() { format!("/api/{version}") } else { format!("/apis/{group}/{version}") }
}

/// The list of resources of a group-version.
pub(super) fn resources(group: &str, version: &str) -> Value {
    let reference = format!("#/components/schemas/io.k8s.{META}.APIResourceList");
    json!({"get": {
        "tags": [tag(group, version)],
        "description": "get available resources",
        "operationId": format!("get{}APIResources", camel(group, version)),
        "responses": responses(&json!({"$ref": reference}), &["200"]),
    }})
}

/// A kind, as its paths need it.
struct Kind<'a> {
    gvk: Gvk,
    plural: &'a str,
    namespaced: bool,
    verbs: &'a [&'a str],
    object: Value,
    list: Value,
    /// Whether strategic merge patches are understood.
    strategic: bool,
}

/// Writes the paths of a built-in kind.
pub(super) fn builtin(row: &BuiltinKind, paths: &mut Map<String, Value>, types: &mut Types) {
    let mut typed = |gvk: &Gvk| {
        let name = builtin::definition_name(&gvk.group, &gvk.version, &gvk.kind);
        name.map(|name| types.reference(&name)).unwrap_or_default()
    };
    let gvk = row.gvk();
    let list = Gvk { kind: row.list_kind(), ..gvk.clone() };
    let kind = Kind {
        plural: row.plural,
        namespaced: row.scope == Scope::Namespaced,
        verbs: row.verbs,
        object: typed(&gvk),
        list: if row.has_verb("list") { typed(&list) } else { Value::Null },
        strategic: true,
        gvk,
    };
    kind.write(paths);
    for subresource in row.subresources {
        // Connections take and give no objects.
        let gvk = subresource.gvk(row);
        let Some(_) = builtin::definition_of(&gvk) else { continue };
        kind.subresource(subresource.name, subresource.verbs, &gvk, &typed(&gvk), paths);
    }
}

/// Writes the paths of a custom kind.
pub(super) fn custom(
    definition: &crd::Definition,
    version: &crd::Version,
    paths: &mut Map<String, Value>,
    types: &mut Types,
) {
    let (object, list) = types.custom(definition, version);
    let gvk = definition.gvk(&version.name);
    let kind = Kind {
        plural: &definition.plural,
        namespaced: definition.is_namespaced(),
        verbs: &VERBS,
        object,
        list,
        strategic: false,
        gvk,
    };
    kind.write(paths);
    let change = ["get", "patch", "update"];
    if version.status {
        kind.subresource("status", &change, &kind.gvk, &kind.object, paths);
    }
    if version.scale.is_some() {
        let scale = types.reference("api.autoscaling.v1.Scale");
        let gvk = Gvk::new("autoscaling", "v1", "Scale");
        kind.subresource("scale", &change, &gvk, &scale, paths);
    }
}

impl Kind<'_> {
    fn has(&self, verb: &str) -> bool {
        self.verbs.contains(&verb)
    }

    fn collection(&self) -> String {
        let root = root(&self.gvk.group, &self.gvk.version);
        let scope = if self.namespaced { "/namespaces/{namespace}" } else { "" };
        format!("{root}{scope}/{}", self.plural)
    }

    fn write(&self, paths: &mut Map<String, Value>) {
        let name = &self.gvk.kind;
        let mut item = Map::new();
        if self.has("list") {
            let about = format!("list or watch objects of kind {name}");
            item.insert("get".to_owned(), self.list_operation(&about, ""));
        }
        if self.has("create") {
            let about = format!("create a {name}");
            let operation = self
                .operation("post", "create", &about, "", &WRITE, &self.object)
                .body(&["*/*"], &self.object)
                .answers(&["200", "201", "202"]);
            item.insert("post".to_owned(), operation.value);
        }
        if self.has("deletecollection") {
            let about = format!("delete collection of {name}");
            let parameters: Vec<Parameter> = LIST.iter().chain(&DELETE).copied().collect();
            let status = status();
            let operation = self
                .operation("deletecollection", "deleteCollection", &about, "", &parameters, &status)
                .body(&["*/*"], &delete_options());
            item.insert("delete".to_owned(), operation.value);
        }
        insert(paths, self.collection(), item, self.parameters(false));
        self.write_item(paths);
        if self.namespaced && self.has("list") {
            let path = format!("{}/{}", root(&self.gvk.group, &self.gvk.version), self.plural);
            let about = format!("list or watch objects of kind {name}");
            let operation = self.list_operation(&about, "ForAllNamespaces");
            let item = Map::from_iter([("get".to_owned(), operation)]);
            insert(paths, path, item, vec![parameter(&PRETTY)]);
        }
    }

    fn write_item(&self, paths: &mut Map<String, Value>) {
        let name = &self.gvk.kind;
        let mut item = Map::new();
        self.change(self.verbs, "", &self.object, &mut item);
        if self.has("delete") {
            let about = format!("delete a {name}");
            let operation = self
                .operation("delete", "delete", &about, "", &DELETE, &status())
                .body(&["*/*"], &delete_options())
                .answers(&["200", "202"]);
            item.insert("delete".to_owned(), operation.value);
        }
        if !item.is_empty() {
            insert(paths, format!("{}/{{name}}", self.collection()), item, self.parameters(true));
        }
    }

    fn subresource(
        &self,
        name: &str,
        verbs: &[&str],
        gvk: &Gvk,
        object: &Value,
        paths: &mut Map<String, Value>,
    ) {
        let mut item = Map::new();
        self.change(verbs, name, object, &mut item);
        if verbs.contains(&"create") {
            let about = format!("create {name} of a {}", self.gvk.kind);
            let operation = self
                .operation("post", "create", &about, name, &WRITE, object)
                .body(&["*/*"], object)
                .answers(&["200", "201", "202"]);
            item.insert("post".to_owned(), operation.value);
        }
        for operation in item.values_mut() {
            operation["x-kubernetes-group-version-kind"] = gvk_value(gvk);
        }
        let path = format!("{}/{{name}}/{name}", self.collection());
        insert(paths, path, item, self.parameters(true));
    }

    /// `get`, `put` and `patch` of an object or a subresource.
    fn change(&self, verbs: &[&str], part: &str, object: &Value, item: &mut Map<String, Value>) {
        let of = if part.is_empty() { String::new() } else { format!("{part} of ") };
        let kind = &self.gvk.kind;
        if verbs.contains(&"get") {
            let about = format!("read {of}the specified {kind}");
            let operation = self.operation("get", "read", &about, part, &[], object);
            item.insert("get".to_owned(), operation.value);
        }
        if verbs.contains(&"update") {
            let about = format!("replace {of}the specified {kind}");
            let operation = self
                .operation("put", "replace", &about, part, &WRITE, object)
                .body(&["*/*"], object)
                .answers(&["200", "201"]);
            item.insert("put".to_owned(), operation.value);
        }
        if verbs.contains(&"patch") {
            let about = format!("partially update {of}the specified {kind}");
            let mut media = vec![
                "application/apply-patch+yaml",
                "application/json-patch+json",
                "application/merge-patch+json",
            ];
            if self.strategic {
                media.push("application/strategic-merge-patch+json");
            }
            let patch = json!({"$ref": format!("#/components/schemas/io.k8s.{META}.Patch")});
            let operation = self
                .operation("patch", "patch", &about, part, &PATCH, object)
                .body(&media, &patch)
                .answers(&["200", "201"]);
            item.insert("patch".to_owned(), operation.value);
        }
    }

    fn list_operation(&self, about: &str, suffix: &str) -> Value {
        let scoped = self.namespaced && suffix.is_empty();
        let mut operation = self.operation("list", "list", about, "", &LIST, &self.list).value;
        if !scoped && self.namespaced {
            let group = camel(&self.gvk.group, &self.gvk.version);
            operation["operationId"] = format!("list{group}{}{suffix}", self.gvk.kind).into();
        }
        operation
    }

    fn operation(
        &self,
        action: &str,
        verb: &str,
        about: &str,
        part: &str,
        parameters: &[Parameter],
        answer: &Value,
    ) -> Operation {
        let Gvk { group, version, kind } = &self.gvk;
        let scope = if self.namespaced { "Namespaced" } else { "" };
        let collection = if action == "deletecollection" { "Collection" } else { "" };
        let verb = verb.trim_end_matches("Collection");
        let id =
            format!("{verb}{}{collection}{scope}{kind}{}", camel(group, version), capital(part));
        let mut value = json!({
            "tags": [tag(group, version)],
            "description": about,
            "operationId": id,
            "responses": responses(answer, &["200"]),
            "x-kubernetes-action": action,
            "x-kubernetes-group-version-kind": gvk_value(&self.gvk),
        });
        if !parameters.is_empty() {
            value["parameters"] = parameters.iter().map(parameter).collect();
        }
        Operation { value, answer: answer.clone() }
    }

    fn parameters(&self, named: bool) -> Vec<Value> {
        let mut found = Vec::new();
        let mut add = |name: &str, description: String| {
            found.push(json!({
                "name": name,
                "in": "path",
                "description": description,
                "required": true,
                "schema": {"type": "string", "uniqueItems": true},
            }));
        };
        if named {
            add("name", format!("name of the {}", self.gvk.kind));
        }
        if self.namespaced {
            add(
                "namespace",
                "object name and auth scope, such as for teams and projects".to_owned(),
            );
        }
        found.push(parameter(&PRETTY));
        found
    }
}

struct Operation {
    value: Value,
    answer: Value,
}

impl Operation {
    fn body(mut self, media: &[&str], schema: &Value) -> Self {
        let content: Map<String, Value> =
            media.iter().map(|media| ((*media).to_owned(), json!({"schema": schema}))).collect();
        self.value["requestBody"] = json!({"content": content, "required": true});
        self
    }

    fn answers(mut self, codes: &[&str]) -> Self {
        self.value["responses"] = responses(&self.answer, codes);
        self
    }
}

fn insert(
    paths: &mut Map<String, Value>,
    path: String,
    mut item: Map<String, Value>,
    parameters: Vec<Value>,
) {
    if item.is_empty() {
        return;
    }
    item.insert("parameters".to_owned(), parameters.into());
    paths.insert(path, item.into());
}

fn parameter((name, kind, description): &Parameter) -> Value {
    json!({
        "name": name,
        "in": "query",
        "description": description,
        "schema": {"type": kind, "uniqueItems": true},
    })
}

fn responses(schema: &Value, codes: &[&str]) -> Value {
    let mut out = Map::new();
    for code in codes {
        let words = match *code {
            "200" => "OK",
            "201" => "Created",
            _ => "Accepted",
        };
        let media = json!({"schema": schema});
        let content = json!({"application/json": media, "application/yaml": media});
        out.insert((*code).to_owned(), json!({"description": words, "content": content}));
    }
    out.insert("401".to_owned(), json!({"description": "Unauthorized"}));
    out.into()
}

fn status() -> Value {
    json!({"$ref": format!("#/components/schemas/io.k8s.{META}.Status")})
}

fn delete_options() -> Value {
    json!({"$ref": format!("#/components/schemas/io.k8s.{META}.DeleteOptions")})
}

fn gvk_value(gvk: &Gvk) -> Value {
    json!({"group": gvk.group, "version": gvk.version, "kind": gvk.kind})
}

/// The group as one word: its name without `k8s.io`, the parts of others joined.
fn word(group: &str) -> String {
    let short = group.strip_suffix(".k8s.io").unwrap_or(group);
    let short = short.strip_suffix(".authorization").unwrap_or(short);
    let mut parts = if short.is_empty() { "core" } else { short }.split('.');
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |word, part| word + &capital(part))
}

fn tag(group: &str, version: &str) -> String {
    format!("{}_{version}", word(group))
}

fn camel(group: &str, version: &str) -> String {
    format!("{}{}", capital(&word(group)), capital(version))
}

fn capital(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| {
        first.to_uppercase().collect::<String>() + letters.as_str()
    })
}
