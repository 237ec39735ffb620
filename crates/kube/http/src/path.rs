//! API paths: parsing a URL path into the API endpoint that it names.

use std::borrow::Cow;

/// The endpoint that a path names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ApiPath {
    /// `/`.
    Root,
    /// `/api`.
    CoreVersions,
    /// `/apis`.
    Groups,
    /// `/apis/{group}`.
    Group(String),
    /// `/api/v1` or `/apis/{group}/{version}`.
    GroupVersion(String, String),
    /// A collection, an object or a subresource.
    Resource(ResourcePath),
    /// `/version`.
    Version,
    /// `/openapi/v2`.
    OpenApiV2,
    /// `/openapi/v3`.
    OpenApiV3,
    /// `/openapi/v3/{path}`: the document of one group version, by its API path.
    OpenApiV3Document(String),
    /// `/healthz`, `/livez`, `/readyz` and the paths below them.
    Health(String),
    /// `/metrics`.
    Metrics,
    /// No endpoint of this server.
    Unknown,
}

impl ApiPath {
    /// Whether kube-apiserver's route table has the path. The table has one method per route; other
    /// paths treat any method as GET.
    pub fn is_routed(&self) -> bool {
        match self {
            Self::CoreVersions | Self::Version => true,
            Self::GroupVersion(group, _) => !group.contains('.') || group.ends_with(".k8s.io"),
            _ => false,
        }
    }
}

/// A path below a group and version.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ResourcePath {
    /// API group; empty for the core group.
    pub group: String,
    /// Version.
    pub version: String,
    /// Namespace; empty for cluster-scoped objects and for all namespaces.
    pub namespace: String,
    /// Plural.
    pub plural: String,
    /// Name; empty for the collection.
    pub name: String,
    /// Subresource; empty for the object itself.
    pub subresource: String,
    /// The segments after the subresource, joined by slashes: the path in the backend for
    /// `proxy/…`.
    pub rest: String,
    /// Whether a segment is empty that is never empty in a route. No endpoint has such a path, but
    /// the request is authorized before the 404.
    pub has_empty_segment: bool,
    /// The special verb before the resource.
    pub special_verb: SpecialVerb,
}

/// Special verbs: deprecated path segments between the version and the resource.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SpecialVerb {
    /// None.
    #[default]
    None,
    /// `watch`: requests a watch.
    Watch,
    /// `proxy`: no endpoint exists, but authorization has its own verb for it.
    Proxy,
}

impl ResourcePath {
    /// The namespace of the authorization check; for a namespace its own name.
    pub fn scope(&self) -> &str {
        if self.namespace.is_empty() && self.plural == "namespaces" {
            &self.name
        } else {
            &self.namespace
        }
    }
}

/// Subresources of namespaces: in `/namespaces/x/status`, `x` is an object and not a namespace.
const NAMESPACE_SUBRESOURCES: [&str; 2] = ["status", "finalize"];

/// Decodes the escapes of a path, as kube-apiserver does before it compares paths: an encoded slash
/// is a slash. None if an escape is malformed.
pub fn decode(path: &str) -> Option<Cow<'_, str>> {
    if path.contains('%') {
        super::query::percent_decode(path, false).map(Cow::Owned)
    } else {
        Some(Cow::Borrowed(path))
    }
}

/// The segments of a decoded path. Slashes at both ends do not count; adjacent slashes inside make
/// empty segments.
pub fn segments(path: &str) -> Vec<&str> {
    match path.trim_matches('/') {
        "" => Vec::new(),
        path => path.split('/').collect(),
    }
}

/// Parses a decoded path. Authorization parses resource paths with the same function, so that a
/// path cannot mean one thing there and another here.
pub fn parse(path: &str) -> ApiPath {
    if let Some(path) = parse_resource(path) {
        return ApiPath::Resource(path);
    }
    match segments(path).as_slice() {
        _ if path.starts_with("//") => ApiPath::Unknown,
        [] => ApiPath::Root,
        ["api"] => ApiPath::CoreVersions,
        ["apis"] => ApiPath::Groups,
        ["api", version] => ApiPath::GroupVersion(String::new(), (*version).to_owned()),
        ["apis", group] => ApiPath::Group((*group).to_owned()),
        ["apis", group, version] => {
            ApiPath::GroupVersion((*group).to_owned(), (*version).to_owned())
        }
        ["version"] => ApiPath::Version,
        ["metrics"] if !path.ends_with('/') => ApiPath::Metrics,
        ["openapi", "v2"] => ApiPath::OpenApiV2,
        // kube-apiserver serves the index only without a slash at the end.
        ["openapi", "v3"] if !path.ends_with('/') => ApiPath::OpenApiV3,
        ["openapi", "v3", rest @ ..] => ApiPath::OpenApiV3Document(rest.join("/")),
        ["healthz" | "livez" | "readyz"] if path.ends_with('/') => ApiPath::Unknown,
        segments @ ["healthz" | "livez" | "readyz", ..] => {
            ApiPath::Health(format!("/{}", segments.join("/")))
        }
        _ => ApiPath::Unknown,
    }
}

/// The resource that a decoded path names: any path below a group and a version.
pub fn parse_resource(path: &str) -> Option<ResourcePath> {
    let segments = segments(path);
    let (group, version, rest) = match segments.as_slice() {
        ["api", version, rest @ ..] => ("", *version, rest),
        ["apis", group, version, rest @ ..] => (*group, *version, rest),
        _ => return None,
    };
    let (special_verb, rest) = match rest {
        [] => return None,
        ["watch", rest @ ..] => (SpecialVerb::Watch, rest),
        ["proxy", rest @ ..] => (SpecialVerb::Proxy, rest),
        rest => (SpecialVerb::None, rest),
    };
    let (namespace, rest) = match rest {
        ["namespaces", _] => ("", rest),
        ["namespaces", _, subresource, ..] if NAMESPACE_SUBRESOURCES.contains(subresource) => {
            ("", rest)
        }
        ["namespaces", namespace, rest @ ..] => (*namespace, rest),
        _ => ("", rest),
    };
    let segment = |index: usize| rest.get(index).copied().unwrap_or_default().to_owned();
    Some(ResourcePath {
        group: group.to_owned(),
        version: version.to_owned(),
        namespace: namespace.to_owned(),
        plural: segment(0),
        name: segment(1),
        subresource: if special_verb == SpecialVerb::Proxy { String::new() } else { segment(2) },
        rest: if special_verb == SpecialVerb::Proxy {
            rest.get(2..).unwrap_or_default().join("/")
        } else {
            rest.get(3..).unwrap_or_default().join("/")
        },
        has_empty_segment: path.starts_with("//")
            || version.is_empty()
            || rest.iter().any(|segment| segment.is_empty()),
        special_verb,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The fields of a parsed path, joined by `|`.
    fn describe(path: &str) -> String {
        match parse(&decode(path).unwrap_or_default()) {
            ApiPath::Resource(p) => format!(
                "{}|{}|{}|{}|{}|{}{}{}",
                p.group,
                p.version,
                p.namespace,
                p.plural,
                p.name,
                p.subresource,
                if p.special_verb == SpecialVerb::Watch { "|watch" } else { "" },
                if p.has_empty_segment { "|empty segment" } else { "" },
            ),
            other => format!("{other:?}"),
        }
    }

    #[test]
    fn paths_name_collections_objects_and_subresources() {
        for (path, expected) in [
            ("/api/v1/pods", "|v1||pods||"),
            ("/api/v1/namespaces", "|v1||namespaces||"),
            ("/api/v1/namespaces/a", "|v1||namespaces|a|"),
            ("/api/v1/namespaces/a/finalize", "|v1||namespaces|a|finalize"),
            ("/api/v1/namespaces/a/pods", "|v1|a|pods||"),
            ("/api/v1/namespaces/a/pods/b/log", "|v1|a|pods|b|log"),
            ("/apis/apps/v1/namespaces/a/deployments/b/scale", "apps|v1|a|deployments|b|scale"),
            ("/api/v1/watch/namespaces/a/pods/b", "|v1|a|pods|b||watch"),
            ("/apis/apps/v1/watch/deployments", "apps|v1||deployments|||watch"),
            ("/api/v1/watch", "|v1|||||watch"),
            ("/apis/g.io/v1/namespaces/a/status", "g.io|v1||namespaces|a|status"),
            ("/apis/g.io", "Group(\"g.io\")"),
            ("/openapi/v3/apis/apps/v1", "OpenApiV3Document(\"apis/apps/v1\")"),
            ("/readyz/x", "Health(\"/readyz/x\")"),
            ("/", "Root"),
            ("/bad/%zz", "Root"),
            ("/nope", "Unknown"),
        ] {
            assert_eq!(describe(path), expected, "{path}");
        }
    }

    /// kube-apiserver compares paths with all escapes decoded.
    #[test]
    fn encoded_slash_separates_segments_and_empty_segments_name_no_endpoint() {
        for (path, expected) in [
            ("/api/v1/pods/", "|v1||pods||"),
            ("/api/v1%2Fpods", "|v1||pods||"),
            ("/api/v1/namespaces/a%2Fpods", "|v1|a|pods||"),
            ("/api/v1/namespaces/a/pods/b%2Flog", "|v1|a|pods|b|log"),
            ("/api/v1/namespaces//pods", "|v1||pods||"),
            ("//api/v1/pods", "|v1||pods|||empty segment"),
            ("/api//v1/pods", "|||v1|pods||empty segment"),
            ("/api/v1//pods", "|v1|||pods||empty segment"),
            ("/api/v1/namespaces/a//pods", "|v1|a||pods||empty segment"),
            ("/api/v1/../v1/pods", "|v1||..|v1|pods"),
            ("//version", "Unknown"),
        ] {
            assert_eq!(describe(path), expected, "{path}");
        }
    }
}
