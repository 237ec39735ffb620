//! What a request asks permission for, as the original's `RequestInfo` has it.

use super::Attributes;
use crate::Identity;
use http::Method;
use mainstay_http::path::{ResourcePath, Special};
use mainstay_http::query::{Query, parse_int};
use mainstay_object::names;
use mainstay_object::selector::{FieldSelector, LabelSelector};

/// What a request asks for. Owns what [`Attributes`] borrow.
#[derive(Clone, Debug)]
pub struct RequestInfo {
    verb: &'static str,
    method: String,
    /// Name that a selector demands where the path has none.
    selected: Option<String>,
    resource: Option<ResourcePath>,
    path: String,
}

impl RequestInfo {
    /// Reads method, decoded path, the resource that it names and the query, none of one that cannot
    /// be read: what it is about is refused later, and until then it is a plain list. None if the
    /// path promises a resource and names none (`/api/v1/watch`), which the original answers with
    /// 500.
    pub fn read(
        method: &Method,
        path: &str,
        resource: Option<ResourcePath>,
        query: Option<&Query>,
    ) -> Option<Self> {
        let mut info = Self {
            verb: "",
            method: String::new(),
            selected: None,
            resource,
            path: path.to_owned(),
        };
        let Some(resource) = &info.resource else {
            info.method = method.as_str().to_ascii_lowercase();
            return Some(info);
        };
        info.verb = match (resource.special, method) {
            (Special::Watch | Special::Proxy, _)
                if resource.plural.is_empty() && !resource.is_odd =>
            {
                return None;
            }
            (Special::Watch, _) => "watch",
            (Special::Proxy, _) => "proxy",
            (Special::None, &Method::POST) => "create",
            (Special::None, &Method::GET | &Method::HEAD) => "get",
            (Special::None, &Method::PUT) => "update",
            (Special::None, &Method::PATCH) => "patch",
            (Special::None, &Method::DELETE) => "delete",
            (Special::None, _) => "",
        };
        if resource.name.is_empty() && info.verb == "get" {
            info.verb =
                if query.is_some_and(|query| query.flag("watch")) { "watch" } else { "list" };
            info.selected = query.and_then(selected);
        }
        if resource.name.is_empty() && info.selected.is_none() && info.verb == "delete" {
            info.verb = "deletecollection";
        }
        Some(info)
    }

    /// What is asked by somebody.
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
            name: self.selected.as_deref().unwrap_or(&resource.name),
            path: &self.path,
            is_resource: true,
        }
    }
}

/// The name that a list's or watch's field selector demands: roles for single names allow such a
/// list too. None if any option cannot be read.
fn selected(query: &Query) -> Option<String> {
    let number = |name: &str| query.raw(name).is_none_or(|text| parse_int(text).is_ok());
    if !number("limit") || !number("timeoutSeconds") {
        return None;
    }
    LabelSelector::parse(query.text("labelSelector").unwrap_or_default()).ok()?;
    let fields = FieldSelector::parse(query.text("fieldSelector")?).ok()?;
    let term = fields.terms().iter().find(|term| term.path == "metadata.name" && !term.negated)?;
    names::path_segment(&term.value).is_empty().then(|| term.value.clone())
}
