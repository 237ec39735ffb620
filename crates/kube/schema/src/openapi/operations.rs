//! What can be done under which path: one list of operations, from which the documents of both
//! versions are written.
//!
//! The rules are those by which the original installs its routes (`k8s.io/apiserver`,
//! `endpoints/installer.go`; for custom kinds `apiextensions-apiserver`,
//! `controller/openapi/builder`): which verbs a path has, what they are called, what they take and
//! answer.

use super::META;
use super::kind::{Kind, OBJECTS, OK};
use super::parameters::Parameter;
use super::words::{camel, capital, tag, word};
use crate::builtin::{self, BuiltinKind, Subresource, SubresourceKind};
use crate::crd;
use mainstay_object::{Gvk, Scope};
use std::collections::{BTreeMap, BTreeSet};

/// Operations by path.
#[derive(Debug, Default)]
pub(super) struct Paths(pub(super) BTreeMap<String, Vec<Operation>>);

/// What a request holds or an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Content {
    /// An object of the type of this full name.
    Of(String),
    /// Any text.
    Text,
}

/// A request body.
#[derive(Clone, Debug)]
pub(super) struct Body {
    pub(super) content: Content,
    pub(super) required: bool,
}

/// A method of a path.
#[derive(Clone, Debug)]
pub(super) struct Operation {
    /// The method in lower case.
    pub(super) method: &'static str,
    pub(super) tag: String,
    pub(super) description: String,
    pub(super) id: String,
    /// What permissions call it, if they know it.
    pub(super) action: Option<&'static str>,
    /// What kind is spoken.
    pub(super) gvk: Option<Gvk>,
    /// Of path and query.
    pub(super) parameters: Vec<Parameter>,
    pub(super) body: Option<Body>,
    pub(super) consumes: &'static [&'static str],
    pub(super) produces: &'static [&'static str],
    /// Codes with their words.
    pub(super) answers: &'static [(&'static str, &'static str)],
    pub(super) answer: Content,
}

const JSON: &[&str] = &["application/json"];
const VERBS: [&str; 7] = ["create", "delete", "deletecollection", "get", "list", "patch", "update"];

/// The path that all paths of a group-version begin with.
pub(super) fn root(group: &str, version: &str) -> String {
    if group.is_empty() { format!("/api/{version}") } else { format!("/apis/{group}/{version}") }
}

/// The full name of a type of `meta/v1`.
pub(super) fn meta(short: &str) -> Content {
    Content::Of(format!("io.k8s.{META}.{short}"))
}

fn object(gvk: &Gvk) -> Content {
    let name = builtin::definition_name(&gvk.group, &gvk.version, &gvk.kind);
    name.map_or(Content::Text, |name| Content::Of(format!("io.k8s.{name}")))
}

impl Paths {
    /// A page of discovery, which is all that a group without a version has.
    pub(super) fn page(&mut self, path: &str) -> Option<()> {
        let (tag, description, id, answer) = match path {
            "api" => {
                let id = "getCoreAPIVersions".to_owned();
                ("core".to_owned(), "get available API versions", id, meta("APIVersions"))
            }
            "apis" => {
                let id = "getAPIVersions".to_owned();
                ("apis".to_owned(), "get available API versions", id, meta("APIGroupList"))
            }
            "version" => {
                let about = "get the version information for this server";
                let info = Content::Of("io.k8s.apimachinery.pkg.version.Info".to_owned());
                ("version".to_owned(), about, "getCodeVersion".to_owned(), info)
            }
            path => {
                let group = path.strip_prefix("apis/").filter(|group| !group.contains('/'))?;
                let id = format!("get{}APIGroup", capital(&word(group)));
                (word(group), "get information of a group", id, meta("APIGroup"))
            }
        };
        let operation = Operation {
            method: "get",
            tag,
            description: description.to_owned(),
            id,
            action: None,
            gvk: None,
            parameters: Vec::new(),
            body: None,
            consumes: if path == "version" { JSON } else { OBJECTS },
            produces: if path == "version" { JSON } else { OBJECTS },
            answers: OK,
            answer,
        };
        self.0.insert(format!("/{path}/"), vec![operation]);
        Some(())
    }

    /// The list of resources of a built-in group-version.
    pub(super) fn resources(&mut self, group: &str, version: &str) {
        let operation = Operation {
            method: "get",
            tag: tag(group, version),
            description: "get available resources".to_owned(),
            id: format!("get{}APIResources", camel(group, version)),
            action: None,
            gvk: None,
            parameters: Vec::new(),
            body: None,
            consumes: OBJECTS,
            produces: OBJECTS,
            answers: OK,
            answer: meta("APIResourceList"),
        };
        self.0.insert(format!("{}/", root(group, version)), vec![operation]);
    }

    /// Everything below a built-in kind.
    pub(super) fn builtin(&mut self, row: &BuiltinKind) {
        let gvk = row.gvk();
        let list = Gvk { kind: row.list_kind(), ..gvk.clone() };
        let kind = Kind {
            plural: row.plural,
            namespaced: row.scope == Scope::Namespaced,
            verbs: row.verbs,
            object: object(&gvk),
            list: object(&list),
            custom: false,
            gvk,
        };
        self.kind(&kind);
        if row.has_verb("watch") {
            self.watches(&kind);
        }
        for subresource in row.subresources {
            let path = format!("{}/{{name}}/{}", kind.collection(), subresource.name);
            let spoken = subresource.gvk(row);
            if subresource.name == "log" {
                self.0.insert(path, vec![kind.log()]);
            } else if is_connection(subresource) {
                self.0.insert(path.clone(), kind.connections(subresource, &spoken, false));
                if subresource.name == "proxy" {
                    let operations = kind.connections(subresource, &spoken, true);
                    self.0.insert(format!("{path}/{{path}}"), operations);
                }
            } else {
                let operations = kind.subresource(
                    subresource.name,
                    subresource.verbs,
                    &spoken,
                    &object(&spoken),
                );
                self.0.insert(path, operations);
            }
        }
    }

    /// Everything below a custom kind in one version.
    pub(super) fn custom(&mut self, definition: &crd::Definition, version: &crd::Version) {
        let gvk = definition.gvk(&version.name);
        let package = package(definition, version);
        let kind = Kind {
            plural: &definition.plural,
            namespaced: definition.is_namespaced(),
            verbs: &VERBS,
            object: Content::Of(format!("{package}.{}", definition.kind)),
            list: Content::Of(format!("{package}.{}", definition.list_kind)),
            custom: true,
            gvk,
        };
        self.kind(&kind);
        let change = ["get", "patch", "update"];
        let below = |name: &str| format!("{}/{{name}}/{name}", kind.collection());
        if version.status {
            let operations = kind.subresource("status", &change, &kind.gvk, &kind.object);
            self.0.insert(below("status"), operations);
        }
        if version.scale.is_some() {
            let scale = object(&Gvk::new("autoscaling", "v1", "Scale"));
            let operations = kind.subresource("scale", &change, &kind.gvk, &scale);
            self.0.insert(below("scale"), operations);
        }
    }

    fn kind(&mut self, kind: &Kind<'_>) {
        let collection = kind.collection();
        let root = root(&kind.gvk.group, &kind.gvk.version);
        let operations = kind.of_collection();
        if !operations.is_empty() {
            self.0.insert(collection.clone(), operations);
        }
        if kind.namespaced && kind.has("list") {
            let all = kind.list_operation(false);
            self.0.insert(format!("{root}/{}", kind.plural), vec![all]);
        }
        let operations = kind.of_object();
        if !operations.is_empty() {
            self.0.insert(format!("{collection}/{{name}}"), operations);
        }
    }

    /// The old way to watch, which the documents still have.
    fn watches(&mut self, kind: &Kind<'_>) {
        let root = root(&kind.gvk.group, &kind.gvk.version);
        let scope = if kind.namespaced { "/namespaces/{namespace}" } else { "" };
        let collection = format!("{root}/watch{scope}/{}", kind.plural);
        self.0.insert(format!("{collection}/{{name}}"), vec![kind.watch_one()]);
        self.0.insert(collection, vec![kind.watch_list(kind.namespaced)]);
        if kind.namespaced {
            self.0.insert(format!("{root}/watch/{}", kind.plural), vec![kind.watch_list(false)]);
        }
    }

    /// The full names of all types that the operations name.
    pub(super) fn types(&self) -> BTreeSet<&str> {
        let mut found = BTreeSet::new();
        for operation in self.0.values().flatten() {
            let body = operation.body.as_ref().map(|body| &body.content);
            for content in body.into_iter().chain([&operation.answer]) {
                if let Content::Of(name) = content {
                    found.insert(name.as_str());
                }
            }
        }
        found
    }
}

fn is_connection(below: &Subresource) -> bool {
    matches!(below.kind, SubresourceKind::Sibling(kind) if kind.ends_with("Options"))
}

/// The package of the types of a custom kind: its group from the back, and the version.
pub(super) fn package(definition: &crd::Definition, version: &crd::Version) -> String {
    let mut domain: Vec<&str> = definition.group.split('.').collect();
    domain.reverse();
    format!("{}.{}", domain.join("."), version.name)
}
