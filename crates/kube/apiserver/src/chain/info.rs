//! What a request is about, before its handler is known: what flow schemas, records and counts of
//! requests name.

use mainstay_auth::authz::Attributes;

/// Verbs that change nothing.
const READS: [&str; 3] = ["get", "list", "watch"];
/// Parts of objects whose requests take as long as their client wants.
pub(crate) const STREAMS: [&str; 6] = ["log", "exec", "attach", "portforward", "proxy", "debug"];

/// What a request is about (`RequestInfo` of the original).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Info<'a> {
    /// Whether it is about objects; else about a path.
    pub(crate) is_resource: bool,
    /// What is done: `get`, `list`, `watch`, `create`, …; of a path, the method in lower case.
    pub(crate) verb: &'a str,
    /// API group; empty for the core group.
    pub(crate) group: &'a str,
    /// Version.
    pub(crate) version: &'a str,
    /// Namespace; empty for all of them, and for what is in none.
    pub(crate) namespace: &'a str,
    /// Plural.
    pub(crate) resource: &'a str,
    /// Part of the object; empty for the object.
    pub(crate) subresource: &'a str,
    /// Name; empty for the collection.
    pub(crate) name: &'a str,
    /// The path as sent.
    pub(crate) path: &'a str,
}

impl<'a> Info<'a> {
    /// What permission is asked for.
    pub(crate) fn of(asked: &Attributes<'a>) -> Self {
        Self {
            is_resource: asked.is_resource,
            verb: asked.verb,
            group: asked.group,
            version: asked.version,
            namespace: asked.namespace,
            resource: asked.resource,
            subresource: asked.subresource,
            name: asked.name,
            path: asked.path,
        }
    }

    /// Whether the request takes as long as its client wants.
    pub(crate) fn is_long(&self) -> bool {
        self.is_resource && (self.verb == "watch" || STREAMS.contains(&self.subresource))
    }

    /// Whether the request may change something.
    pub(crate) fn is_mutating(&self) -> bool {
        !READS.contains(&self.verb)
    }

    /// What the request is about, in the words of counts: one object, a namespace, the cluster.
    pub(crate) fn scope(&self) -> &'static str {
        if !self.is_resource {
            ""
        } else if !self.name.is_empty() || self.verb == "create" && !self.subresource.is_empty() {
            "resource"
        } else if !self.namespace.is_empty() {
            "namespace"
        } else {
            "cluster"
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::Method;
    use mainstay_auth::Identity;
    use mainstay_auth::authz::RequestInfo;
    use mainstay_http::path;

    #[test]
    fn a_request_has_a_verb_and_what_it_is_about() {
        let somebody = Identity::anonymous();
        for (method, path, expected) in [
            (Method::GET, "/api/v1/namespaces/a/pods", "list a/pods// namespace"),
            (Method::GET, "/api/v1/watch/pods", "watch /pods// cluster long"),
            (Method::GET, "/api/v1/namespaces/a/pods/b/log", "get a/pods/b/log resource long"),
            (Method::POST, "/api/v1/namespaces/a/pods", "create a/pods// namespace changes"),
            (Method::GET, "/api/v1/namespaces/a", "get a/namespaces/a/ resource"),
            (Method::GET, "/healthz", "get /// "),
        ] {
            let read = RequestInfo::read(&method, path, path::parse_resource(path), None).unwrap();
            let info = Info::of(&read.attributes(&somebody));
            let mut shown = format!(
                "{} {}/{}/{}/{} {}",
                info.verb,
                info.namespace,
                info.resource,
                info.name,
                info.subresource,
                info.scope()
            );
            if info.is_long() {
                shown.push_str(" long");
            }
            if info.is_resource && info.is_mutating() {
                shown.push_str(" changes");
            }
            assert_eq!(shown, expected, "{method} {path}");
        }
    }
}
