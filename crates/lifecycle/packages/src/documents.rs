//! The documents (`OpenAPI`) of this API: what `kubectl explain` and generators of clients read.

use crate::{GROUP, KIND, VERSION};
use serde_json::{Map, Value, json};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

/// What names of types begin with.
const PREFIX: &str = "com.coreos.operators.packages.v1.";
/// Where types of version 3 stand.
const V3: &str = "#/components/schemas/";
/// Where those of version 2 stand.
const V2: &str = "#/definitions/";

/// Where the document of version 3 is.
pub(crate) fn index() -> Value {
    let path = format!("apis/{GROUP}/{VERSION}");
    let mut hash = DefaultHasher::new();
    document().to_string().hash(&mut hash);
    let url = format!("/openapi/v3/{path}?hash={:016X}", hash.finish());
    json!({"paths": {path: {"serverRelativeURL": url}}})
}

/// The document of version 3.
pub(crate) fn document() -> Value {
    let answered = |kind: &str| {
        let schema = json!({"$ref": format!("{V3}{PREFIX}{kind}")});
        json!({"200": {"description": "OK", "content": {"application/json": {"schema": schema}}}})
    };
    let parameter = |name: &str, place: &str, kind: &str| json!({"name": name, "in": place, "required": place == "path", "schema": {"type": kind}});
    json!({
        "openapi": "3.0.0",
        "info": {"title": "PackageManifests", "version": VERSION},
        "paths": paths(&answered, &parameter),
        "components": {"schemas": schemas(V3)},
    })
}

/// The document of version 2.
pub(crate) fn swagger() -> Value {
    let answered = |kind: &str| json!({"200": {"description": "OK", "schema": {"$ref": format!("{V2}{PREFIX}{kind}")}}});
    let parameter = |name: &str, place: &str, kind: &str| json!({"name": name, "in": place, "required": place == "path", "type": kind});
    json!({
        "swagger": "2.0",
        "info": {"title": "PackageManifests", "version": VERSION},
        "paths": paths(&answered, &parameter),
        "definitions": schemas(V2),
    })
}

fn paths(answered: &dyn Fn(&str) -> Value, parameter: &dyn Fn(&str, &str, &str) -> Value) -> Value {
    let kind = json!({"group": GROUP, "version": VERSION, "kind": KIND});
    let get = |id: &str, action: &str, answer: &str, parameters: Vec<Value>| {
        json!({
            "operationId": id, "tags": ["packages_v1"],
            "x-kubernetes-action": action, "x-kubernetes-group-version-kind": kind,
            "parameters": parameters, "responses": answered(answer),
        })
    };
    let namespace = || parameter("namespace", "path", "string");
    let name = || parameter("name", "path", "string");
    let listed = |mut parameters: Vec<Value>| {
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
    let mut icon = get("readPackageManifestIcon", "connect", KIND, vec![namespace(), name()]);
    icon["responses"] = json!({"200": {"description": "The picture of the package."}});
    json!({
        format!("{root}/packagemanifests"): {
            "get": get("listPackageManifestForAllNamespaces", "list", &list, listed(Vec::new())),
        },
        format!("{root}/namespaces/{{namespace}}/packagemanifests"): {
            "get": get("listNamespacedPackageManifest", "list", &list, listed(vec![namespace()])),
        },
        format!("{root}/namespaces/{{namespace}}/packagemanifests/{{name}}"): {
            "get": get("readNamespacedPackageManifest", "get", KIND, vec![namespace(), name()]),
        },
        format!("{root}/namespaces/{{namespace}}/packagemanifests/{{name}}/icon"): {"get": icon},
    })
}

/// The types, by their names; `at` is where they stand.
fn schemas(at: &str) -> Value {
    let object = |description: &str, fields: Value| json!({"type": "object", "description": description, "properties": fields});
    let text = |description: &str| json!({"type": "string", "description": description});
    let typed = |kind: &str, description: &str| json!({"type": kind, "description": description});
    let own = |kind: &str, description: &str| json!({"description": description, "allOf": [{"$ref": format!("{at}{PREFIX}{kind}")}]});
    let list = |items: Value, description: &str| json!({"type": "array", "description": description, "items": items});
    let texts = |description: &str| list(json!({"type": "string"}), description);
    let each = |kind: &str| json!({"$ref": format!("{at}{PREFIX}{kind}")});
    let version = || text("The version of the API that this object is written in.");
    let kind = || text("The kind of this object.");
    let known = json!([{"group": GROUP, "version": VERSION, "kind": KIND}]);
    let mut manifest = object(
        "A package that a catalog offers, described by the heads of its channels. It is made of the catalog, and cannot be written.",
        json!({
            "apiVersion": version(),
            "kind": kind(),
            "metadata": typed("object", "The package's name, the namespace it is seen in, and its labels."),
            "spec": typed("object", "Nothing: packages are not asked for here."),
            "status": own("PackageManifestStatus", "What the catalog says of the package."),
        }),
    );
    manifest["x-kubernetes-group-version-kind"] = known;
    let mut listed = object(
        "A list of packages.",
        json!({
            "apiVersion": version(),
            "kind": kind(),
            "metadata": typed("object", "The revision of the list."),
            "items": list(each("PackageManifest"), "The packages."),
        }),
    );
    listed["required"] = json!(["items"]);
    listed["x-kubernetes-group-version-kind"] =
        json!([{"group": GROUP, "version": VERSION, "kind": format!("{KIND}List")}]);
    let owned = |description: &str| {
        object(
            description,
            json!({
                "owned": list(each("APIDescription"), "Those that the operator brings."),
                "required": list(each("APIDescription"), "Those that it needs."),
            }),
        )
    };
    let named = [
        ("PackageManifest", manifest),
        ("PackageManifestList", listed),
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
                    "provider": own("Link", "Who provides the operator."),
                    "channels": list(each("PackageChannel"), "The channels, by name."),
                    "deprecation": own("Deprecation", "Why the package should not be used any more."),
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
                    "currentCSVDesc": own("CSVDescription", "What that version says of itself."),
                    "entries": list(each("ChannelEntry"), "The versions of the channel, the newest first."),
                    "deprecation": own("Deprecation", "Why the channel should not be used any more."),
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
                    "deprecation": own("Deprecation", "Why it should not be used any more."),
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
                    "provider": own("Link", "Who provides it."),
                    "annotations": {
                        "type": "object", "description": "Its annotations.",
                        "additionalProperties": {"type": "string"},
                    },
                    "keywords": texts("Words to find it by."),
                    "links": list(each("Link"), "Where more is said."),
                    "maintainers": list(each("Maintainer"), "Who looks after it."),
                    "installModes": list(each("InstallMode"), "Which namespaces it can look after."),
                    "customresourcedefinitions": own("APIs", "Kinds by definitions."),
                    "apiservicedefinitions": own("APIs", "Kinds by servers of their own."),
                    "nativeApis": list(typed("object", "A kind."), "Kinds that the cluster has to have."),
                    "relatedImages": texts("The images that it runs and uses."),
                }),
            ),
        ),
        ("APIs", owned("Kinds that an operator brings or needs.")),
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
        named.into_iter().map(|(name, schema)| (format!("{PREFIX}{name}"), schema)).collect();
    schemas.into()
}
