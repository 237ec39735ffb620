//! Summary of a request before its handler is known: the values by which flow schemas match it, and
//! which audit events and metrics carry.

use mainstay_auth::authz::Attributes;

/// Verbs that change nothing.
const READS: [&str; 3] = ["get", "list", "watch"];
/// Subresources whose requests last as long as their client wants.
pub(crate) const STREAMS: [&str; 6] = ["log", "exec", "attach", "portforward", "proxy", "debug"];

/// Summary of a request (`RequestInfo` in kube-apiserver).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct RequestSummary<'a> {
    /// Whether the request is about objects; else about a path.
    pub(crate) is_resource: bool,
    /// The verb: `get`, `list`, `watch`, `create`, …; for a path, the method in lower case.
    pub(crate) verb: &'a str,
    /// API group; empty for the core group.
    pub(crate) group: &'a str,
    /// Version.
    pub(crate) version: &'a str,
    /// Namespace; empty for all namespaces and for cluster-scoped kinds.
    pub(crate) namespace: &'a str,
    /// Plural of the kind.
    pub(crate) resource: &'a str,
    /// Subresource; empty for the object itself.
    pub(crate) subresource: &'a str,
    /// Name; empty for the collection.
    pub(crate) name: &'a str,
    /// The path as sent.
    pub(crate) path: &'a str,
}

impl<'a> RequestSummary<'a> {
    /// Summarizes attributes for authorization.
    pub(crate) fn from_attributes(attributes: &Attributes<'a>) -> Self {
        Self {
            is_resource: attributes.is_resource,
            verb: attributes.verb,
            group: attributes.group,
            version: attributes.version,
            namespace: attributes.namespace,
            resource: attributes.resource,
            subresource: attributes.subresource,
            name: attributes.name,
            path: attributes.path,
        }
    }

    /// Whether the request lasts as long as its client wants.
    pub(crate) fn is_long(&self) -> bool {
        self.is_resource && (self.verb == "watch" || STREAMS.contains(&self.subresource))
    }

    /// Whether the request may change something.
    pub(crate) fn is_mutating(&self) -> bool {
        !READS.contains(&self.verb)
    }

    /// The label `scope` of metrics: one object, a namespace, or the cluster.
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
    fn a_request_summary_has_verb_target_and_scope() {
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
            let info = RequestSummary::from_attributes(&read.attributes(&somebody));
            let mut summary = format!(
                "{} {}/{}/{}/{} {}",
                info.verb,
                info.namespace,
                info.resource,
                info.name,
                info.subresource,
                info.scope()
            );
            if info.is_long() {
                summary.push_str(" long");
            }
            if info.is_resource && info.is_mutating() {
                summary.push_str(" changes");
            }
            assert_eq!(summary, expected, "{method} {path}");
        }
    }
}
