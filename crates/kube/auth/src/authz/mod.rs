//! Authorization: role-based access control (RBAC).
//!
//! ```text
//!  request ─► Attributes ─► Authorizer::decide ─► Decision
//!                               │
//!  roles, bindings (store) ─► Index: subject ─► bindings by name ─► rules
//! ```
//!
//! All permission checks use [`Authorizer::decide`]: those of each request, of reviews, of
//! impersonation and against privilege escalation. Rules only add permissions. Members of
//! `system:masters` may do anything.
//!
//! The index follows the events of the store. Each check updates it first. So a role applies as
//! soon as the client has the response to its creation, and a deleted role does not apply after
//! that. No lock is held across an `await`.
//!
//! kube-apiserver has a second authorizer for nodes (`system:node:…`), which reads the references
//! of a node's pods. This crate has none: controllers of this process simulate the nodes. A user
//! with such a name has the permissions of its roles.

pub mod cover;
pub mod escalation;
mod index;
mod request;
mod review;
pub mod rules;

pub use request::RequestInfo;

use crate::{Identity, MASTERS};
use index::Index;
use mainstay_gocompat::quote;
use mainstay_object::Status;
use mainstay_store::Store;
use parking_lot::{RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::fmt;

/// The API group of the RBAC kinds.
pub const GROUP: &str = "rbac.authorization.k8s.io";

/// A permission check: an identity, a verb, and a resource or a path.
#[derive(Clone, Copy, Debug)]
pub struct Attributes<'a> {
    /// The identity of the user.
    pub identity: &'a Identity,
    /// `get`, `list`, `watch`, `create`, `update`, `patch`, `delete`, `deletecollection`, or any
    /// other verb of rules, such as `bind`. For a path, the method in lower case.
    pub verb: &'a str,
    /// API group; empty for the core group.
    pub group: &'a str,
    /// Version; rules ignore it.
    pub version: &'a str,
    /// Plural.
    pub resource: &'a str,
    /// Subresource; empty for the object itself.
    pub subresource: &'a str,
    /// Namespace; empty for the whole cluster. A Namespace is in the namespace of its name.
    pub namespace: &'a str,
    /// Name; empty if the request names none.
    pub name: &'a str,
    /// The path; rules read it only without a resource.
    pub path: &'a str,
    /// Whether the check is for a resource, and not for a path.
    pub is_resource: bool,
}

impl<'a> Attributes<'a> {
    /// Attributes of a resource; the other fields are empty.
    pub const fn resource(
        identity: &'a Identity,
        verb: &'a str,
        group: &'a str,
        resource: &'a str,
    ) -> Self {
        Self {
            identity,
            verb,
            group,
            version: "*",
            resource,
            subresource: "",
            namespace: "",
            name: "",
            path: "",
            is_resource: true,
        }
    }

    /// Attributes of a path.
    pub const fn path(identity: &'a Identity, verb: &'a str, path: &'a str) -> Self {
        let nothing = Self::resource(identity, verb, "", "");
        Self { version: "", path, is_resource: false, ..nothing }
    }

    /// The same attributes in a namespace.
    #[must_use]
    pub const fn in_namespace(self, namespace: &'a str) -> Self {
        Self { namespace, ..self }
    }

    /// The same attributes for one object.
    #[must_use]
    pub const fn with_name(self, name: &'a str) -> Self {
        Self { name, ..self }
    }

    /// The same attributes for a subresource.
    #[must_use]
    pub const fn with_subresource(self, subresource: &'a str) -> Self {
        Self { subresource, ..self }
    }

    /// Status 403 with kube-apiserver's text (`k8s.io/apiserver`, `responsewriters.Forbidden`);
    /// `reason` is that of [`Decision::NoOpinion`].
    pub fn forbidden(&self, reason: &str) -> Status {
        let Self { verb, group, resource, subresource, namespace, name, path, .. } = *self;
        let user = quote(self.identity.user());
        let mut message = if self.is_resource {
            let slash = if subresource.is_empty() { "" } else { "/" };
            let resource = quote(&format!("{resource}{slash}{subresource}"));
            let scope = match namespace {
                "" => "at the cluster scope".to_owned(),
                namespace => format!("in the namespace {}", quote(namespace)),
            };
            let group = quote(group);
            format!("User {user} cannot {verb} resource {resource} in API group {group} {scope}")
        } else {
            format!("User {user} cannot {verb} path {}", quote(path))
        };
        if message.contains(['&', '<', '>']) {
            message = message.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
        }
        if !reason.is_empty() {
            message.push_str(": ");
            message.push_str(reason);
        }
        Status::forbidden(group, resource, name, &message).with_empty_details()
    }
}

/// The decision of an authorizer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decision {
    /// The request is allowed; the text names the binding, and is empty for `system:masters`.
    Allow(String),
    /// No rule allows the request. The text names missing roles; it is mostly empty.
    NoOpinion(String),
}

impl Decision {
    /// Whether the request is allowed.
    pub const fn is_allowed(&self) -> bool {
        matches!(self, Self::Allow(_))
    }

    /// The reason.
    pub fn reason(&self) -> &str {
        match self {
            Self::Allow(reason) | Self::NoOpinion(reason) => reason,
        }
    }
}

/// The RBAC authorizer, which reads the roles and bindings of a store.
pub struct Authorizer {
    store: Store,
    index: RwLock<Index>,
}

impl fmt::Debug for Authorizer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "authorizer of {:?}", self.store)
    }
}

impl Authorizer {
    /// An authorizer for the roles and bindings of this store.
    pub fn new(store: Store) -> Self {
        Self { index: RwLock::new(Index::new()), store }
    }

    /// Decides a request by the current content of the store.
    pub fn decide(&self, attributes: &Attributes<'_>) -> Decision {
        if attributes.identity.is_in(MASTERS) {
            return Decision::Allow(String::new());
        }
        self.current().decide(attributes)
    }

    /// Checks that a request is allowed; the error is kube-apiserver's status 403.
    pub fn require(&self, attributes: &Attributes<'_>) -> Result<(), Status> {
        match self.decide(attributes) {
            Decision::Allow(_) => Ok(()),
            Decision::NoOpinion(reason) => Err(attributes.forbidden(&reason)),
        }
    }

    /// The index at the current revision.
    fn current(&self) -> RwLockReadGuard<'_, Index> {
        let revision = self.store.revision();
        let index = self.index.read();
        if index.revision() >= revision {
            return index;
        }
        drop(index);
        let mut index = self.index.write();
        index.update(&self.store);
        RwLockWriteGuard::downgrade(index)
    }
}
