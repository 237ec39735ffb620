//! From a URL path to what is meant.

/// What a path names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Target {
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
    /// A collection, an object or what is below it.
    Resource(ResourcePath),
    /// `/version`.
    Version,
    /// `/openapi/v2`.
    OpenApiV2,
    /// `/openapi/v3`.
    OpenApiV3,
    /// `/openapi/v3/{path}`: one group-version's document, by its API path.
    OpenApiV3Document(String),
    /// `/healthz`, `/livez`, `/readyz` and what is below.
    Health(String),
    /// Nothing that this server has.
    Unknown,
}

impl Target {
    /// Whether the original's table of routes has it, which knows one method for each; the others
    /// answer to any method as they do to GET.
    pub(crate) fn is_routed(&self) -> bool {
        match self {
            Self::CoreVersions | Self::Version => true,
            Self::GroupVersion(group, _) => !group.contains('.') || group.ends_with(".k8s.io"),
            _ => false,
        }
    }
}

/// A path below a group and version.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ResourcePath {
    /// API group; empty for the core group.
    pub(crate) group: String,
    /// Version.
    pub(crate) version: String,
    /// Namespace; empty for cluster-scoped objects and for all namespaces.
    pub(crate) namespace: String,
    /// Plural.
    pub(crate) plural: String,
    /// Name; empty for the collection.
    pub(crate) name: String,
    /// Subresource; empty for the object itself.
    pub(crate) subresource: String,
    /// Whether more followed that no subresource of ours takes (`proxy/…`).
    pub(crate) has_more: bool,
    /// Whether the path asks for a watch: `…/watch/…`, from before there was a parameter for it.
    pub(crate) watches: bool,
}

/// Subresources of namespaces: in `/namespaces/x/status`, `x` is an object and not a namespace.
const NAMESPACE_PARTS: [&str; 2] = ["status", "finalize"];

/// Reads a path. Segments are percent-decoded one by one, so an encoded slash stays in its segment.
pub(crate) fn parse(path: &str) -> Target {
    let decoded: Option<Vec<String>> = path
        .split('/')
        .filter(|segment| !segment.is_empty())
        .map(|segment| super::query::percent_decode(segment, false))
        .collect();
    let Some(decoded) = decoded else { return Target::Unknown };
    let segments: Vec<&str> = decoded.iter().map(String::as_str).collect();
    match segments.as_slice() {
        [] => Target::Root,
        ["api"] => Target::CoreVersions,
        ["apis"] => Target::Groups,
        ["api", version] => Target::GroupVersion(String::new(), (*version).to_owned()),
        ["apis", group] => Target::Group((*group).to_owned()),
        ["apis", group, version] => {
            Target::GroupVersion((*group).to_owned(), (*version).to_owned())
        }
        ["api", version, rest @ ..] => resource("", version, rest),
        ["apis", group, version, rest @ ..] => resource(group, version, rest),
        ["version"] => Target::Version,
        ["openapi", "v2"] => Target::OpenApiV2,
        // The original serves the index without a slash at the end only.
        ["openapi", "v3"] if !path.ends_with('/') => Target::OpenApiV3,
        ["openapi", "v3", rest @ ..] => Target::OpenApiV3Document(rest.join("/")),
        ["healthz" | "livez" | "readyz", ..] => Target::Health(format!("/{}", segments.join("/"))),
        _ => Target::Unknown,
    }
}

fn resource(group: &str, version: &str, rest: &[&str]) -> Target {
    let (watches, rest) = match rest {
        ["watch", watched @ ..] if !watched.is_empty() => (true, watched),
        _ => (false, rest),
    };
    let (namespace, rest) = match rest {
        ["namespaces", name] => ("", &["namespaces", *name][..]),
        ["namespaces", _, part, ..] if group.is_empty() && NAMESPACE_PARTS.contains(part) => {
            ("", rest)
        }
        ["namespaces", namespace, rest @ ..] => (*namespace, rest),
        _ => ("", rest),
    };
    let (plural, name, subresource, has_more) = match rest {
        [plural] => (*plural, "", "", false),
        [plural, name] => (*plural, *name, "", false),
        [plural, name, sub] => (*plural, *name, *sub, false),
        [plural, name, sub, ..] => (*plural, *name, *sub, true),
        [] => return Target::Unknown,
    };
    Target::Resource(ResourcePath {
        group: group.to_owned(),
        version: version.to_owned(),
        namespace: namespace.to_owned(),
        plural: plural.to_owned(),
        name: name.to_owned(),
        subresource: subresource.to_owned(),
        has_more,
        watches,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(path: &str) -> String {
        match parse(path) {
            Target::Resource(p) => format!(
                "{}|{}|{}|{}|{}|{}{}",
                p.group,
                p.version,
                p.namespace,
                p.plural,
                p.name,
                p.subresource,
                if p.watches { "|watch" } else { "" }
            ),
            other => format!("{other:?}"),
        }
    }

    #[test]
    fn paths_name_collections_objects_and_their_parts() {
        for (path, meant) in [
            ("/api/v1/pods", "|v1||pods||"),
            ("/api/v1/namespaces", "|v1||namespaces||"),
            ("/api/v1/namespaces/a", "|v1||namespaces|a|"),
            ("/api/v1/namespaces/a/finalize", "|v1||namespaces|a|finalize"),
            ("/api/v1/namespaces/a/pods", "|v1|a|pods||"),
            ("/api/v1/namespaces/a/pods/b/log", "|v1|a|pods|b|log"),
            ("/apis/apps/v1/namespaces/a/deployments/b/scale", "apps|v1|a|deployments|b|scale"),
            ("/api/v1/watch/namespaces/a/pods/b", "|v1|a|pods|b||watch"),
            ("/apis/apps/v1/watch/deployments", "apps|v1||deployments|||watch"),
            ("/api/v1/watch", "|v1||watch||"),
            ("/apis/g.io/v1/things/b%2Fc", "g.io|v1||things|b/c|"),
            ("//api//v1//pods/", "|v1||pods||"),
            ("/apis/g.io/v1/namespaces/a/status", "g.io|v1|a|status||"),
            ("/apis/g.io", "Group(\"g.io\")"),
            ("/openapi/v3/apis/apps/v1", "OpenApiV3Document(\"apis/apps/v1\")"),
            ("/readyz/x", "Health(\"/readyz/x\")"),
            ("/", "Root"),
            ("/bad/%zz", "Unknown"),
            ("/nope", "Unknown"),
        ] {
            assert_eq!(shown(path), meant, "{path}");
        }
    }
}
