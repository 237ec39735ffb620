//! Request attributes: the permission that a request needs, as kube-apiserver's `RequestInfo` has
//! it.

use super::Attributes;
use crate::Identity;
use http::Method;
use mainstay_http::path::{ResourcePath, SpecialVerb};
use mainstay_http::query::{Query, parse_int};
use mainstay_object::names;
use mainstay_object::selector::{FieldSelector, LabelSelector};

/// The permission that a request needs. Owns the data that [`Attributes`] borrow.
#[derive(Clone, Debug)]
pub struct RequestInfo {
    verb: &'static str,
    method: String,
    /// The name in a field selector, if the path has none.
    selected_name: Option<String>,
    resource: Option<ResourcePath>,
    path: String,
}

impl RequestInfo {
    /// Reads the method, the decoded path, its resource and the query. The query is none if it does
    /// not parse: the request counts as a plain list, and a later check rejects the query. None for
    /// a path of a resource without its name (`/api/v1/watch`); kube-apiserver has status 500 for
    /// it.
    pub fn read(
        method: &Method,
        path: &str,
        resource: Option<ResourcePath>,
        query: Option<&Query>,
    ) -> Option<Self> {
        let mut info = Self {
            verb: "",
            method: String::new(),
            selected_name: None,
            resource,
            path: path.to_owned(),
        };
        let Some(resource) = &info.resource else {
            info.method = method.as_str().to_ascii_lowercase();
            return Some(info);
        };
        info.verb = match (resource.special_verb, method) {
            (SpecialVerb::Watch | SpecialVerb::Proxy, _)
                if resource.plural.is_empty() && !resource.has_empty_segment =>
            {
                return None;
            }
            (SpecialVerb::Watch, _) => "watch",
            (SpecialVerb::Proxy, _) => "proxy",
            (SpecialVerb::None, &Method::POST) => "create",
            (SpecialVerb::None, &Method::GET | &Method::HEAD) => "get",
            (SpecialVerb::None, &Method::PUT) => "update",
            (SpecialVerb::None, &Method::PATCH) => "patch",
            (SpecialVerb::None, &Method::DELETE) => "delete",
            (SpecialVerb::None, _) => "",
        };
        if resource.name.is_empty() && info.verb == "get" {
            info.verb =
                if query.is_some_and(|query| query.flag("watch")) { "watch" } else { "list" };
            info.selected_name = query.and_then(selected_name);
        }
        if resource.name.is_empty() && info.selected_name.is_none() && info.verb == "delete" {
            info.verb = "deletecollection";
        }
        Some(info)
    }

    /// The attributes of the request for an identity.
    pub fn attributes<'a>(&'a self, identity: &'a Identity) -> Attributes<'a> {
        let Some(resource) = &self.resource else {
            return Attributes::path(identity, &self.method, &self.path);
        };
        Attributes {
            identity,
            verb: self.verb,
            group: &resource.group,
            version: &resource.version,
            resource: &resource.plural,
            subresource: &resource.subresource,
            namespace: resource.scope(),
            name: self.selected_name.as_deref().unwrap_or(&resource.name),
            path: &self.path,
            is_resource: true,
        }
    }
}

/// The name in the field selector of a list or watch: a role for single names allows such a list
/// too. None if an option does not parse.
fn selected_name(query: &Query) -> Option<String> {
    let is_valid = |name: &str| query.raw(name).is_none_or(|text| parse_int(text).is_ok());
    if !is_valid("limit") || !is_valid("timeoutSeconds") {
        return None;
    }
    LabelSelector::parse(query.text("labelSelector").unwrap_or_default()).ok()?;
    let fields = FieldSelector::parse(query.text("fieldSelector")?).ok()?;
    let term = fields.terms().iter().find(|term| term.path == "metadata.name" && !term.negated)?;
    names::path_segment(&term.value).is_empty().then(|| term.value.clone())
}
