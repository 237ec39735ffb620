//! OpenAPI documents of versions 2 and 3, for `kubectl explain` and client generators.

use crate::{GROUP, KIND, VERSION};
use serde_json::{Map, Value, json};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

/// The prefix of type names.
const TYPE_PREFIX: &str = "com.coreos.operators.packages.v1.";
/// The path of types in the document of version 3.
const V3_TYPES: &str = "#/components/schemas/";
/// The path of types in the document of version 2.
const V2_TYPES: &str = "#/definitions/";

/// The index of `/openapi/v3`, with the URL of the document.
pub(crate) fn index() -> Value {
    let path = format!("apis/{GROUP}/{VERSION}");
    let mut hash = DefaultHasher::new();
    v3().to_string().hash(&mut hash);
    let url = format!("/openapi/v3/{path}?hash={:016X}", hash.finish());
    json!({"paths": {path: {"serverRelativeURL": url}}})
}

/// The OpenAPI document of version 3.
pub(crate) fn v3() -> Value {
    let response = |kind: &str| {
        let schema = json!({"$ref": format!("{V3_TYPES}{TYPE_PREFIX}{kind}")});
        json!({"200": {"description": "OK", "content": {"application/json": {"schema": schema}}}})
    };
    let parameter = |name: &str, place: &str, kind: &str| json!({"name": name, "in": place, "required": place == "path", "schema": {"type": kind}});
    json!({
        "openapi": "3.0.0",
        "info": {"title": "PackageManifests", "version": VERSION},
        "paths": paths(&response, &parameter),
        "components": {"schemas": schemas(V3_TYPES)},
    })
}

/// The OpenAPI document of version 2.
pub(crate) fn v2() -> Value {
    let response = |kind: &str| json!({"200": {"description": "OK", "schema": {"$ref": format!("{V2_TYPES}{TYPE_PREFIX}{kind}")}}});
    let parameter = |name: &str, place: &str, kind: &str| json!({"name": name, "in": place, "required": place == "path", "type": kind});
    json!({
        "swagger": "2.0",
        "info": {"title": "PackageManifests", "version": VERSION},
        "paths": paths(&response, &parameter),
        "definitions": schemas(V2_TYPES),
    })
}

fn paths(response: &dyn Fn(&str) -> Value, parameter: &dyn Fn(&str, &str, &str) -> Value) -> Value {
    let kind = json!({"group": GROUP, "version": VERSION, "kind": KIND});
    let operation = |id: &str, action: &str, response_kind: &str, parameters: Vec<Value>| {
        json!({
            "operationId": id, "tags": ["packages_v1"],
            "x-kubernetes-action": action, "x-kubernetes-group-version-kind": kind,
            "parameters": parameters, "responses": response(response_kind),
        })
    };
    let namespace = || parameter("namespace", "path", "string");
    let name = || parameter("name", "path", "string");
    let with_list_parameters = |mut parameters: Vec<Value>| {
        for (name, kind) in [
            ("labelSelector", "string"),
            ("fieldSelector", "string"),
            ("resourceVersion", "string"),
            ("resourceVersionMatch", "string"),
            ("watch", "boolean"),
            ("allowWatchBookmarks", "boolean"),
            ("sendInitialEvents", "boolean"),
            ("timeoutSeconds", "integer"),
        ] {
            parameters.push(parameter(name, "query", kind));
        }
        parameters
    };
    let root = format!("/apis/{GROUP}/{VERSION}");
    let list = format!("{KIND}List");
    let mut icon = operation("readPackageManifestIcon", "connect", KIND, vec![namespace(), name()]);
    icon["responses"] = json!({"200": {"description": "The picture of the package."}});
    json!({
        format!("{root}/packagemanifests"): {
            "get": operation("listPackageManifestForAllNamespaces", "list", &list, with_list_parameters(Vec::new())),
        },
        format!("{root}/namespaces/{{namespace}}/packagemanifests"): {
            "get": operation("listNamespacedPackageManifest", "list", &list, with_list_parameters(vec![namespace()])),
        },
        format!("{root}/namespaces/{{namespace}}/packagemanifests/{{name}}"): {
            "get": operation("readNamespacedPackageManifest", "get", KIND, vec![namespace(), name()]),
        },
        format!("{root}/namespaces/{{namespace}}/packagemanifests/{{name}}/icon"): {"get": icon},
    })
}

/// The schemas by type name; `base` is the path of types in the document.
fn schemas(base: &str) -> Value {
    let object = |description: &str, fields: Value| json!({"type": "object", "description": description, "properties": fields});
    let text = |description: &str| json!({"type": "string", "description": description});
    let typed = |kind: &str, description: &str| json!({"type": kind, "description": description});
    let field_of_type = |kind: &str, description: &str| json!({"description": description, "allOf": [{"$ref": format!("{base}{TYPE_PREFIX}{kind}")}]});
    let list = |items: Value, description: &str| json!({"type": "array", "description": description, "items": items});
    let texts = |description: &str| list(json!({"type": "string"}), description);
    let reference = |kind: &str| json!({"$ref": format!("{base}{TYPE_PREFIX}{kind}")});
    let version = || text("The version of the API that this object is written in.");
    let kind = || text("The kind of this object.");
    let kinds = json!([{"group": GROUP, "version": VERSION, "kind": KIND}]);
    let mut manifest = object(
        "A package that a catalog offers, described by the heads of its channels. It is made of the catalog, and cannot be written.",
        json!({
            "apiVersion": version(),
            "kind": kind(),
            "metadata": typed("object", "The package's name, the namespace it is seen in, and its labels."),
            "spec": typed("object", "Nothing: packages are not asked for here."),
            "status": field_of_type("PackageManifestStatus", "What the catalog says of the package."),
        }),
    );
    manifest["x-kubernetes-group-version-kind"] = kinds;
    let mut manifest_list = object(
        "A list of packages.",
        json!({
            "apiVersion": version(),
            "kind": kind(),
            "metadata": typed("object", "The revision of the list."),
            "items": list(reference("PackageManifest"), "The packages."),
        }),
    );
    manifest_list["required"] = json!(["items"]);
    manifest_list["x-kubernetes-group-version-kind"] =
        json!([{"group": GROUP, "version": VERSION, "kind": format!("{KIND}List")}]);
    let owned_and_required = |description: &str| {
        object(
            description,
            json!({
                "owned": list(reference("APIDescription"), "Those that the operator brings."),
                "required": list(reference("APIDescription"), "Those that it needs."),
            }),
        )
    };
    let types = [
        ("PackageManifest", manifest),
        ("PackageManifestList", manifest_list),
        (
            "PackageManifestStatus",
            object(
                "What a catalog says of a package.",
                json!({
                    "catalogSource": text("The name of the CatalogSource."),
                    "catalogSourceDisplayName": text("Its name for people."),
                    "catalogSourcePublisher": text("Who publishes it."),
                    "catalogSourceNamespace": text("The namespace of the CatalogSource."),
                    "packageName": text("The name by which Subscriptions ask for the package."),
                    "defaultChannel": text("The channel that is meant if none is named."),
                    "provider": field_of_type("Link", "Who provides the operator."),
                    "channels": list(reference("PackageChannel"), "The channels, by name."),
                    "deprecation": field_of_type("Deprecation", "Why the package should not be used any more."),
                }),
            ),
        ),
        (
            "PackageChannel",
            object(
                "A channel of a package.",
                json!({
                    "name": text("The name of the channel."),
                    "currentCSV": text("The name of the version at its head."),
                    "currentCSVDesc": field_of_type("CSVDescription", "What that version says of itself."),
                    "entries": list(reference("ChannelEntry"), "The versions of the channel, the newest first."),
                    "deprecation": field_of_type("Deprecation", "Why the channel should not be used any more."),
                }),
            ),
        ),
        (
            "ChannelEntry",
            object(
                "A version in a channel.",
                json!({
                    "name": text("Its name."),
                    "version": text("Its version."),
                    "deprecation": field_of_type("Deprecation", "Why it should not be used any more."),
                }),
            ),
        ),
        (
            "CSVDescription",
            object(
                "What a ClusterServiceVersion says of itself.",
                json!({
                    "displayName": text("Its name for people."),
                    "description": text("What the operator is for, in Markdown."),
                    "version": text("Its version."),
                    "maturity": text("How mature it is."),
                    "minKubeVersion": text("The least version of Kubernetes that it needs."),
                    "provider": field_of_type("Link", "Who provides it."),
                    "annotations": {
                        "type": "object", "description": "Its annotations.",
                        "additionalProperties": {"type": "string"},
                    },
                    "keywords": texts("Words to find it by."),
                    "links": list(reference("Link"), "Where more is said."),
                    "maintainers": list(reference("Maintainer"), "Who looks after it."),
                    "installModes": list(reference("InstallMode"), "Which namespaces it can look after."),
                    "customresourcedefinitions": field_of_type("APIs", "Kinds by definitions."),
                    "apiservicedefinitions": field_of_type("APIs", "Kinds by servers of their own."),
                    "nativeApis": list(typed("object", "A kind."), "Kinds that the cluster has to have."),
                    "relatedImages": texts("The images that it runs and uses."),
                }),
            ),
        ),
        ("APIs", owned_and_required("Kinds that an operator brings or needs.")),
        (
            "APIDescription",
            object(
                "A kind.",
                json!({
                    "name": text("The name of the definition."),
                    "group": text("The group, of kinds by servers of their own."),
                    "version": text("The version."),
                    "kind": text("The kind."),
                    "displayName": text("Its name for people."),
                    "description": text("What it is for."),
                }),
            ),
        ),
        (
            "InstallMode",
            object(
                "A way of choosing namespaces.",
                json!({
                    "type": text("OwnNamespace, SingleNamespace, MultiNamespace or AllNamespaces."),
                    "supported": typed("boolean", "Whether the operator can be run so."),
                }),
            ),
        ),
        (
            "Link",
            object(
                "A name and where it leads.",
                json!({"name": text("The name."), "url": text("The address.")}),
            ),
        ),
        (
            "Maintainer",
            object(
                "Somebody who looks after an operator.",
                json!({"name": text("The name."), "email": text("The address.")}),
            ),
        ),
        (
            "Deprecation",
            object(
                "That something should not be used any more.",
                json!({"message": text("Why, and what to use instead.")}),
            ),
        ),
    ];
    let schemas: Map<String, Value> =
        types.into_iter().map(|(name, schema)| (format!("{TYPE_PREFIX}{name}"), schema)).collect();
    schemas.into()
}
