//! From a URL path to what is meant.

use std::borrow::Cow;

/// What a path names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
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
    /// `/metrics`.
    Metrics,
    /// Nothing that this server has.
    Unknown,
}

impl Target {
    /// Whether the original's table of routes has it, which knows one method for each; the others
    /// answer to any method as they do to GET.
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
    /// What follows the subresource, joined by slashes: of `proxy/…` the path that is meant.
    pub rest: String,
    /// Whether segments are empty that no route has empty. Nothing is there, but whoever may not
    /// ask for it is told that first.
    pub is_odd: bool,
    /// The word before it.
    pub special: Special,
}

/// Words between the version and the resource, from before there were other ways to ask.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Special {
    /// None.
    #[default]
    None,
    /// `watch`: asks for a watch.
    Watch,
    /// `proxy`: nothing is there, but permission for it is asked in its own way.
    Proxy,
}

impl ResourcePath {
    /// The namespace that permission is asked in: of a namespace itself its own name.
    pub fn scope(&self) -> &str {
        if self.namespace.is_empty() && self.plural == "namespaces" {
            &self.name
        } else {
            &self.namespace
        }
    }
}

/// Subresources of namespaces: in `/namespaces/x/status`, `x` is an object and not a namespace.
const NAMESPACE_PARTS: [&str; 2] = ["status", "finalize"];

/// A path as the original compares it: with escapes undone, so that an encoded slash is one. None
/// if an escape is broken.
pub fn decoded(path: &str) -> Option<Cow<'_, str>> {
    if path.contains('%') {
        super::query::percent_decode(path, false).map(Cow::Owned)
    } else {
        Some(Cow::Borrowed(path))
    }
}

/// The segments of a decoded path. Slashes around it do not count; those inside do, and make empty
/// segments.
pub fn segments(path: &str) -> Vec<&str> {
    match path.trim_matches('/') {
        "" => Vec::new(),
        path => path.split('/').collect(),
    }
}

/// Reads a decoded path. What names a resource is read in the way that permission for it is asked:
/// there is no path that means one thing there and another here.
pub fn parse(path: &str) -> Target {
    if let Some(path) = resource(path) {
        return Target::Resource(path);
    }
    match segments(path).as_slice() {
        _ if path.starts_with("//") => Target::Unknown,
        [] => Target::Root,
        ["api"] => Target::CoreVersions,
        ["apis"] => Target::Groups,
        ["api", version] => Target::GroupVersion(String::new(), (*version).to_owned()),
        ["apis", group] => Target::Group((*group).to_owned()),
        ["apis", group, version] => {
            Target::GroupVersion((*group).to_owned(), (*version).to_owned())
        }
        ["version"] => Target::Version,
        ["metrics"] if !path.ends_with('/') => Target::Metrics,
        ["openapi", "v2"] => Target::OpenApiV2,
        // The original serves the index without a slash at the end only.
        ["openapi", "v3"] if !path.ends_with('/') => Target::OpenApiV3,
        ["openapi", "v3", rest @ ..] => Target::OpenApiV3Document(rest.join("/")),
        ["healthz" | "livez" | "readyz"] if path.ends_with('/') => Target::Unknown,
        segments @ ["healthz" | "livez" | "readyz", ..] => {
            Target::Health(format!("/{}", segments.join("/")))
        }
        _ => Target::Unknown,
    }
}

/// The resource that a decoded path names, if it names one: anything below a group and a version.
pub fn resource(path: &str) -> Option<ResourcePath> {
    let segments = segments(path);
    let (group, version, rest) = match segments.as_slice() {
        ["api", version, rest @ ..] => ("", *version, rest),
        ["apis", group, version, rest @ ..] => (*group, *version, rest),
        _ => return None,
    };
    let (special, rest) = match rest {
        [] => return None,
        ["watch", rest @ ..] => (Special::Watch, rest),
        ["proxy", rest @ ..] => (Special::Proxy, rest),
        rest => (Special::None, rest),
    };
    let (namespace, rest) = match rest {
        ["namespaces", _] => ("", rest),
        ["namespaces", _, part, ..] if NAMESPACE_PARTS.contains(part) => ("", rest),
        ["namespaces", namespace, rest @ ..] => (*namespace, rest),
        _ => ("", rest),
    };
    let part = |at: usize| rest.get(at).copied().unwrap_or_default().to_owned();
    Some(ResourcePath {
        group: group.to_owned(),
        version: version.to_owned(),
        namespace: namespace.to_owned(),
        plural: part(0),
        name: part(1),
        subresource: if special == Special::Proxy { String::new() } else { part(2) },
        rest: if special == Special::Proxy {
            rest.get(2..).unwrap_or_default().join("/")
        } else {
            rest.get(3..).unwrap_or_default().join("/")
        },
        is_odd: path.starts_with("//")
            || version.is_empty()
            || rest.iter().any(|segment| segment.is_empty()),
        special,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(path: &str) -> String {
        match parse(&decoded(path).unwrap_or_default()) {
            Target::Resource(p) => format!(
                "{}|{}|{}|{}|{}|{}{}{}",
                p.group,
                p.version,
                p.namespace,
                p.plural,
                p.name,
                p.subresource,
                if p.special == Special::Watch { "|watch" } else { "" },
                if p.is_odd { "|odd" } else { "" },
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
            ("/api/v1/watch", "|v1|||||watch"),
            ("/apis/g.io/v1/namespaces/a/status", "g.io|v1||namespaces|a|status"),
            ("/apis/g.io", "Group(\"g.io\")"),
            ("/openapi/v3/apis/apps/v1", "OpenApiV3Document(\"apis/apps/v1\")"),
            ("/readyz/x", "Health(\"/readyz/x\")"),
            ("/", "Root"),
            ("/bad/%zz", "Root"),
            ("/nope", "Unknown"),
        ] {
            assert_eq!(shown(path), meant, "{path}");
        }
    }

    /// As a real API server reads them: it compares paths with all escapes undone.
    #[test]
    fn an_encoded_slash_is_a_slash_and_empty_segments_are_nowhere() {
        for (path, meant) in [
            ("/api/v1/pods/", "|v1||pods||"),
            ("/api/v1%2Fpods", "|v1||pods||"),
            ("/api/v1/namespaces/a%2Fpods", "|v1|a|pods||"),
            ("/api/v1/namespaces/a/pods/b%2Flog", "|v1|a|pods|b|log"),
            ("/api/v1/namespaces//pods", "|v1||pods||"),
            ("//api/v1/pods", "|v1||pods|||odd"),
            ("/api//v1/pods", "|||v1|pods||odd"),
            ("/api/v1//pods", "|v1|||pods||odd"),
            ("/api/v1/namespaces/a//pods", "|v1|a||pods||odd"),
            ("/api/v1/../v1/pods", "|v1||..|v1|pods"),
            ("//version", "Unknown"),
        ] {
            assert_eq!(shown(path), meant, "{path}");
        }
    }
}
