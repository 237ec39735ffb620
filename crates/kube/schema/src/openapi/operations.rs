//! Operations of all paths, the common source of both document versions.
//!
//! Verbs, identifiers, parameters and responses follow the rules by which upstream installs its routes
//! (`k8s.io/apiserver`, `endpoints/installer.go`; for custom kinds `apiextensions-apiserver`,
//! `controller/openapi/builder`).

use super::META;
use super::kind::{Kind, OBJECTS, OK};
use super::naming::{camel_case, capitalize, group_identifier, tag};
use super::parameters::Parameter;
use crate::builtin::{self, BuiltinKind, BuiltinSubresource, SubresourceKind};
use crate::crd;
use mainstay_object::{Gvk, Scope};
use std::collections::{BTreeMap, BTreeSet};

/// Operations by path.
#[derive(Debug, Default)]
pub(super) struct Paths(pub(super) BTreeMap<String, Vec<Operation>>);

/// The content of a request or a response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Content {
    /// An object of the type with this full name.
    Object(String),
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
    /// `x-kubernetes-action`, if any.
    pub(super) action: Option<&'static str>,
    /// The kind of the objects.
    pub(super) gvk: Option<Gvk>,
    /// Path and query parameters.
    pub(super) parameters: Vec<Parameter>,
    pub(super) body: Option<Body>,
    pub(super) consumes: &'static [&'static str],
    pub(super) produces: &'static [&'static str],
    /// Status codes with their descriptions.
    pub(super) responses: &'static [(&'static str, &'static str)],
    pub(super) response: Content,
}

const JSON: &[&str] = &["application/json"];
const VERBS: [&str; 7] = ["create", "delete", "deletecollection", "get", "list", "patch", "update"];

/// The common prefix of the paths of a group-version.
pub(super) fn root(group: &str, version: &str) -> String {
    if group.is_empty() { format!("/api/{version}") } else { format!("/apis/{group}/{version}") }
}

/// The full name of a type of `meta/v1`.
pub(super) fn meta(short: &str) -> Content {
    Content::Object(format!("io.k8s.{META}.{short}"))
}

fn object(gvk: &Gvk) -> Content {
    let name = builtin::definition_name(&gvk.group, &gvk.version, &gvk.kind);
    name.map_or(Content::Text, |name| Content::Object(format!("io.k8s.{name}")))
}

impl Paths {
    /// Adds a discovery page, the only path of a group without a version.
    pub(super) fn add_discovery_page(&mut self, path: &str) -> Option<()> {
        let (tag, description, id, response) = match path {
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
                let info = Content::Object("io.k8s.apimachinery.pkg.version.Info".to_owned());
                ("version".to_owned(), about, "getCodeVersion".to_owned(), info)
            }
            path => {
                let group = path.strip_prefix("apis/").filter(|group| !group.contains('/'))?;
                let id = format!("get{}APIGroup", capitalize(&group_identifier(group)));
                (group_identifier(group), "get information of a group", id, meta("APIGroup"))
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
            responses: OK,
            response,
        };
        self.0.insert(format!("/{path}/"), vec![operation]);
        Some(())
    }

    /// Adds the list of resources of a built-in group-version.
    pub(super) fn add_resource_list(&mut self, group: &str, version: &str) {
        let operation = Operation {
            method: "get",
            tag: tag(group, version),
            description: "get available resources".to_owned(),
            id: format!("get{}APIResources", camel_case(group, version)),
            action: None,
            gvk: None,
            parameters: Vec::new(),
            body: None,
            consumes: OBJECTS,
            produces: OBJECTS,
            responses: OK,
            response: meta("APIResourceList"),
        };
        self.0.insert(format!("{}/", root(group, version)), vec![operation]);
    }

    /// Adds all paths of a built-in kind.
    pub(super) fn add_builtin(&mut self, row: &BuiltinKind) {
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
        self.add_kind(&kind);
        if row.has_verb("watch") {
            self.add_watches(&kind);
        }
        for subresource in row.subresources {
            let path = format!("{}/{{name}}/{}", kind.collection(), subresource.name);
            let subresource_gvk = subresource.gvk(row);
            if subresource.name == "log" {
                self.0.insert(path, vec![kind.log()]);
            } else if is_connection(subresource) {
                self.0.insert(path.clone(), kind.connections(subresource, &subresource_gvk, false));
                if subresource.name == "proxy" {
                    let operations = kind.connections(subresource, &subresource_gvk, true);
                    self.0.insert(format!("{path}/{{path}}"), operations);
                }
            } else {
                let operations = kind.subresource(
                    subresource.name,
                    subresource.verbs,
                    &subresource_gvk,
                    &object(&subresource_gvk),
                );
                self.0.insert(path, operations);
            }
        }
    }

    /// Adds all paths of a custom kind in one version.
    pub(super) fn add_custom(
        &mut self,
        definition: &crd::CustomResourceDefinition,
        version: &crd::CrdVersion,
    ) {
        let gvk = definition.gvk(&version.name);
        let package = package(definition, version);
        let kind = Kind {
            plural: &definition.plural,
            namespaced: definition.is_namespaced(),
            verbs: &VERBS,
            object: Content::Object(format!("{package}.{}", definition.kind)),
            list: Content::Object(format!("{package}.{}", definition.list_kind)),
            custom: true,
            gvk,
        };
        self.add_kind(&kind);
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

    fn add_kind(&mut self, kind: &Kind<'_>) {
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

    /// Adds the deprecated watch paths, which the documents still have.
    fn add_watches(&mut self, kind: &Kind<'_>) {
        let root = root(&kind.gvk.group, &kind.gvk.version);
        let scope = if kind.namespaced { "/namespaces/{namespace}" } else { "" };
        let collection = format!("{root}/watch{scope}/{}", kind.plural);
        self.0.insert(format!("{collection}/{{name}}"), vec![kind.watch_one()]);
        self.0.insert(collection, vec![kind.watch_list(kind.namespaced)]);
        if kind.namespaced {
            self.0.insert(format!("{root}/watch/{}", kind.plural), vec![kind.watch_list(false)]);
        }
    }

    /// The full names of all types in the operations.
    pub(super) fn types(&self) -> BTreeSet<&str> {
        let mut found = BTreeSet::new();
        for operation in self.0.values().flatten() {
            let body = operation.body.as_ref().map(|body| &body.content);
            for content in body.into_iter().chain([&operation.response]) {
                if let Content::Object(name) = content {
                    found.insert(name.as_str());
                }
            }
        }
        found
    }
}

fn is_connection(subresource: &BuiltinSubresource) -> bool {
    matches!(subresource.kind, SubresourceKind::Sibling(kind) if kind.ends_with("Options"))
}

/// The package of the types of a custom kind: its group in reverse, and the version.
pub(super) fn package(
    definition: &crd::CustomResourceDefinition,
    version: &crd::CrdVersion,
) -> String {
    let mut domain: Vec<&str> = definition.group.split('.').collect();
    domain.reverse();
    format!("{}.{}", domain.join("."), version.name)
}
