//! The operations of one kind.

use super::naming::{article, camel_case, capitalize, tag};
use super::operations::{Body, Content, Operation, meta, root};
use super::parameters::{self, DELETE, LIST, PATCH, Parameter, WRITE};
use crate::builtin::BuiltinSubresource;
use mainstay_object::Gvk;

const ANY: &[&str] = &["*/*"];
const TEXT: &[&str] =
    &["text/plain", "application/json", "application/yaml", "application/vnd.kubernetes.protobuf"];
pub(super) const OBJECTS: &[&str] =
    &["application/json", "application/yaml", "application/vnd.kubernetes.protobuf"];
const STREAMS: &[&str] = &[
    "application/json",
    "application/yaml",
    "application/vnd.kubernetes.protobuf",
    "application/json;stream=watch",
    "application/vnd.kubernetes.protobuf;stream=watch",
];
const CUSTOM: &[&str] = &["application/json", "application/yaml"];
const PATCHES: &[&str] = &[
    "application/json-patch+json",
    "application/merge-patch+json",
    "application/strategic-merge-patch+json",
    "application/apply-patch+yaml",
];
const CUSTOM_PATCHES: &[&str] = &[
    "application/json-patch+json",
    "application/merge-patch+json",
    "application/apply-patch+yaml",
];
pub(super) const OK: &[(&str, &str)] = &[("200", "OK")];
const UPDATED: &[(&str, &str)] = &[("200", "OK"), ("201", "Created")];
const CREATED: &[(&str, &str)] = &[("200", "OK"), ("201", "Created"), ("202", "Accepted")];
const DELETED: &[(&str, &str)] = &[("200", "OK"), ("202", "Accepted")];

/// Kinds whose deletion returns the deleted object, not a `Status`.
const RETURNED_WHEN_DELETED: [&str; 16] = [
    "CSIDriver",
    "CSINode",
    "DeviceClass",
    "PersistentVolume",
    "PersistentVolumeClaim",
    "Pod",
    "PodTemplate",
    "ResourceClaim",
    "ResourceClaimTemplate",
    "ResourceQuota",
    "ResourceSlice",
    "Service",
    "ServiceAccount",
    "StorageClass",
    "VolumeAttachment",
    "VolumeAttributesClass",
];

/// The common properties of a kind's operations.
pub(super) struct Kind<'a> {
    pub(super) gvk: Gvk,
    pub(super) plural: &'a str,
    pub(super) namespaced: bool,
    pub(super) verbs: &'a [&'a str],
    pub(super) object: Content,
    pub(super) list: Content,
    pub(super) custom: bool,
}

/// The properties of one operation.
struct Verb<'a> {
    method: &'static str,
    action: &'static str,
    /// The first word of the identifier.
    word: &'static str,
    description: String,
    /// The suffix of the identifier after the kind.
    suffix: &'a str,
    /// The kind of the object that the path names, if any.
    named: Option<&'a str>,
    /// Whether the path has a namespace.
    namespaced: bool,
    parameters: &'a [&'a str],
}

impl Kind<'_> {
    pub(super) fn has(&self, verb: &str) -> bool {
        self.verbs.contains(&verb)
    }

    pub(super) fn collection(&self) -> String {
        let root = root(&self.gvk.group, &self.gvk.version);
        let scope = if self.namespaced { "/namespaces/{namespace}" } else { "" };
        format!("{root}{scope}/{}", self.plural)
    }

    /// An operation that returns the object with code 200. The caller changes other properties.
    fn operation(&self, verb: &Verb<'_>) -> Operation {
        let Gvk { group, version, kind } = &self.gvk;
        let scope = if self.namespaced && verb.namespaced { "Namespaced" } else { "" };
        let (word, collection) = match verb.word {
            "deletecollection" => ("delete", "Collection"),
            word => (word, ""),
        };
        let id =
            format!("{word}{}{collection}{scope}{kind}{}", camel_case(group, version), verb.suffix);
        let mut found: Vec<Parameter> = parameters::query("pretty").into_iter().collect();
        found.extend(verb.parameters.iter().filter_map(|key| parameters::query(key)));
        found.extend(self.in_path(verb.named, verb.namespaced));
        Operation {
            method: verb.method,
            tag: tag(group, version),
            description: verb.description.clone(),
            id,
            action: Some(verb.action),
            gvk: Some(self.gvk.clone()),
            parameters: found,
            body: None,
            consumes: if self.custom { CUSTOM } else { ANY },
            produces: if self.custom { CUSTOM } else { OBJECTS },
            responses: OK,
            response: self.object.clone(),
        }
    }

    fn in_path(&self, named: Option<&str>, namespaced: bool) -> impl Iterator<Item = Parameter> {
        let name = named.map(|kind| parameters::path("name", format!("name of the {kind}")));
        let text = "object name and auth scope, such as for teams and projects";
        let namespace =
            (self.namespaced && namespaced).then(|| parameters::path("namespace", text));
        name.into_iter().chain(namespace)
    }

    pub(super) fn list_operation(&self, scoped: bool) -> Operation {
        let kind = &self.gvk.kind;
        let what = if self.has("watch") { "list or watch" } else { "list" };
        let mut operation = self.operation(&Verb {
            method: "get",
            action: "list",
            word: "list",
            description: format!("{what} objects of kind {kind}"),
            suffix: if scoped || !self.namespaced { "" } else { "ForAllNamespaces" },
            named: None,
            namespaced: scoped,
            parameters: &LIST,
        });
        operation.produces = if self.custom { CUSTOM } else { STREAMS };
        operation.response = self.list.clone();
        operation
    }

    pub(super) fn of_collection(&self) -> Vec<Operation> {
        let kind = &self.gvk.kind;
        let mut found = Vec::new();
        let verb = |method, action, word, description, parameters| Verb {
            method,
            action,
            word,
            description,
            suffix: "",
            named: None,
            namespaced: true,
            parameters,
        };
        if self.has("list") {
            found.push(self.list_operation(true));
        }
        if self.has("create") {
            let about = format!("create{}{kind}", article(kind));
            let create = self.operation(&verb("post", "post", "create", about, &WRITE));
            found.push(create.with_body(&self.object, true).with_responses(CREATED));
        }
        if self.has("deletecollection") {
            let about = format!("delete collection of {kind}");
            // This operation of built-in kinds has no parameters of watches.
            let both: Vec<&str> = if self.custom {
                LIST.to_vec()
            } else {
                let list = LIST.into_iter().filter(|key| !key.to_lowercase().contains("watch"));
                list.chain(DELETE).collect()
            };
            let verb = verb("delete", "deletecollection", "deletecollection", about, &both);
            let mut deleted = self.operation(&verb);
            if !self.custom {
                deleted = deleted.with_body(&meta("DeleteOptions"), false);
            }
            deleted.response = meta("Status");
            found.push(deleted);
        }
        found
    }

    pub(super) fn of_object(&self) -> Vec<Operation> {
        let mut found = self.get_and_change("", self.verbs, &self.gvk, &self.object);
        if self.has("delete") {
            let kind = &self.gvk.kind;
            let deleted = self.operation(&Verb {
                method: "delete",
                action: "delete",
                word: "delete",
                description: format!("delete{}{kind}", article(kind)),
                suffix: "",
                named: Some(kind),
                namespaced: true,
                parameters: &DELETE,
            });
            let mut deleted =
                deleted.with_body(&meta("DeleteOptions"), false).with_responses(DELETED);
            if self.custom || !RETURNED_WHEN_DELETED.contains(&kind.as_str()) {
                deleted.response = meta("Status");
            }
            found.push(deleted);
        }
        found
    }

    /// Get, replace and patch of an object or a subresource.
    fn get_and_change(
        &self,
        name: &str,
        verbs: &[&str],
        gvk: &Gvk,
        content: &Content,
    ) -> Vec<Operation> {
        let kind = &self.gvk.kind;
        let part = if name.is_empty() { String::new() } else { format!(" {name} of") };
        let ending = capitalize(name);
        let rows: [(&str, &'static str, &'static str, &str, &[&str]); 3] = [
            ("get", "get", "read", "read", if self.custom { &["resourceVersion"] } else { &[] }),
            ("update", "put", "replace", "replace", &WRITE),
            ("patch", "patch", "patch", "partially update", &PATCH),
        ];
        let mut found = Vec::new();
        for (verb, method, word, does, parameters) in rows {
            if !verbs.contains(&verb) {
                continue;
            }
            let mut operation = self.operation(&Verb {
                method,
                action: method,
                word,
                description: format!("{does}{part} the specified {kind}"),
                suffix: &ending,
                named: Some(&gvk.kind),
                namespaced: true,
                parameters,
            });
            operation.gvk = Some(gvk.clone());
            operation.response = content.clone();
            match verb {
                "update" => operation = operation.with_body(content, true).with_responses(UPDATED),
                "patch" => {
                    operation = operation.with_body(&meta("Patch"), true);
                    operation.consumes = if self.custom { CUSTOM_PATCHES } else { PATCHES };
                    operation.responses = if self.custom { OK } else { UPDATED };
                }
                _ => {}
            }
            found.push(operation);
        }
        found
    }

    pub(super) fn subresource(
        &self,
        name: &str,
        verbs: &[&str],
        gvk: &Gvk,
        content: &Content,
    ) -> Vec<Operation> {
        let mut found = self.get_and_change(name, verbs, gvk, content);
        if verbs.contains(&"create") {
            let kind = &self.gvk.kind;
            let mut create = self.operation(&Verb {
                method: "post",
                action: "post",
                word: "create",
                description: format!("create {name} of{}{kind}", article(kind)),
                suffix: &capitalize(name),
                named: Some(&gvk.kind),
                namespaced: true,
                parameters: &WRITE,
            });
            create.gvk = Some(gvk.clone());
            create.response = content.clone();
            found.push(create.with_body(content, true).with_responses(CREATED));
        }
        found
    }

    pub(super) fn watch_list(&self, scoped: bool) -> Operation {
        let kind = &self.gvk.kind;
        let all = !scoped && self.namespaced;
        self.watch(&Verb {
            method: "get",
            action: "watchlist",
            word: "watch",
            description: format!(
                "watch individual changes to a list of {kind}. deprecated: use the 'watch' parameter with a list operation instead."
            ),
            suffix: if all { "ListForAllNamespaces" } else { "List" },
            named: None,
            namespaced: scoped,
            parameters: &LIST,
        })
    }

    pub(super) fn watch_one(&self) -> Operation {
        let kind = &self.gvk.kind;
        self.watch(&Verb {
            method: "get",
            action: "watch",
            word: "watch",
            description: format!(
                "watch changes to an object of kind {kind}. deprecated: use the 'watch' parameter with a list operation instead, filtered to a single item with the 'fieldSelector' parameter."
            ),
            suffix: "",
            named: Some(kind),
            namespaced: true,
            parameters: &LIST,
        })
    }

    fn watch(&self, verb: &Verb<'_>) -> Operation {
        let mut operation = self.operation(verb);
        operation.produces = STREAMS;
        operation.response = meta("WatchEvent");
        operation
    }

    pub(super) fn log(&self) -> Operation {
        let kind = &self.gvk.kind;
        let mut operation = self.operation(&Verb {
            method: "get",
            action: "get",
            word: "read",
            description: format!("read log of the specified {kind}"),
            suffix: "Log",
            named: Some(kind),
            namespaced: true,
            parameters: &[],
        });
        operation.parameters.extend(parameters::options("PodLogOptions"));
        operation.produces = TEXT;
        operation.response = Content::Text;
        operation
    }

    pub(super) fn connections(
        &self,
        subresource: &BuiltinSubresource,
        gvk: &Gvk,
        path: bool,
    ) -> Vec<Operation> {
        let methods: &[&'static str] = if subresource.name == "proxy" {
            &["get", "put", "post", "delete", "options", "head", "patch"]
        } else {
            &["get", "post"]
        };
        let Gvk { group, version, kind } = &self.gvk;
        let scope = if self.namespaced { "Namespaced" } else { "" };
        let with = if path { "WithPath" } else { "" };
        let name = capitalize(subresource.name);
        let operation = |method: &&'static str| {
            let mut found: Vec<Parameter> = parameters::options(&gvk.kind).collect();
            found.extend(self.in_path(Some(&gvk.kind), true));
            found.extend(path.then(|| parameters::path("path", "path to the resource")));
            let group_version = camel_case(group, version);
            Operation {
                method,
                tag: tag(group, version),
                description: format!(
                    "connect {} requests to {} of {kind}",
                    method.to_uppercase(),
                    subresource.name
                ),
                id: format!(
                    "connect{group_version}{}{scope}{kind}{name}{with}",
                    capitalize(method)
                ),
                action: Some("connect"),
                gvk: Some(gvk.clone()),
                parameters: found,
                body: None,
                consumes: ANY,
                produces: ANY,
                responses: OK,
                response: Content::Text,
            }
        };
        methods.iter().map(operation).collect()
    }
}

impl Operation {
    fn with_body(mut self, content: &Content, required: bool) -> Self {
        self.body = Some(Body { content: content.clone(), required });
        self
    }

    fn with_responses(mut self, responses: &'static [(&'static str, &'static str)]) -> Self {
        self.responses = responses;
        self
    }
}
