//! Authorization: role-based access control.
//!
//! ```text
//!  request ─► Attributes ─► Authorizer::decide ─► Decision
//!                               │
//!  roles, bindings (store) ─► Index: subject ─► bindings by name ─► rules
//! ```
//!
//! Everything that asks whether somebody may do something asks [`Authorizer::decide`]: the server
//! for every request, reviews, impersonation, checks against escalation. Rules only ever add
//! permissions. Members of `system:masters` may do everything.
//!
//! The index follows the store's own events. It is brought up to date by whoever asks, before the
//! answer, so a role is in force as soon as the write that made it was answered, and a removed one
//! is not. Nothing is held across a wait.
//!
//! The original has a second authorizer, for nodes (`system:node:…`), which looks at what the pods
//! of a node refer to. There is none here: nodes are simulated by controllers of this process. A
//! user of that name has what roles give it.

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

/// The group of the kinds of this module.
pub const GROUP: &str = "rbac.authorization.k8s.io";

/// What is asked: who wants to do what with which resource, or with which path.
#[derive(Clone, Copy, Debug)]
pub struct Attributes<'a> {
    /// Who.
    pub identity: &'a Identity,
    /// `get`, `list`, `watch`, `create`, `update`, `patch`, `delete`, `deletecollection`, or any
    /// other word that rules may have, such as `bind`. Of a path the method in lower case.
    pub verb: &'a str,
    /// API group; empty for the core group.
    pub group: &'a str,
    /// Version; rules do not look at it.
    pub version: &'a str,
    /// Plural.
    pub resource: &'a str,
    /// Subresource; empty for the object itself.
    pub subresource: &'a str,
    /// Namespace; empty for the whole cluster. A namespace is in the namespace of its name.
    pub namespace: &'a str,
    /// Name; empty if the request names none.
    pub name: &'a str,
    /// The path; rules look at it only if no resource is meant.
    pub path: &'a str,
    /// Whether a resource is meant, and not a path.
    pub is_resource: bool,
}

impl<'a> Attributes<'a> {
    /// Asks about a resource; the other fields are empty.
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

    /// Asks about a path.
    pub const fn path(identity: &'a Identity, verb: &'a str, path: &'a str) -> Self {
        let nothing = Self::resource(identity, verb, "", "");
        Self { version: "", path, is_resource: false, ..nothing }
    }

    /// The same in a namespace.
    #[must_use]
    pub const fn in_namespace(self, namespace: &'a str) -> Self {
        Self { namespace, ..self }
    }

    /// The same for one object.
    #[must_use]
    pub const fn named(self, name: &'a str) -> Self {
        Self { name, ..self }
    }

    /// The same for what is below the object.
    #[must_use]
    pub const fn below(self, subresource: &'a str) -> Self {
        Self { subresource, ..self }
    }

    /// 403 in the original's words (`k8s.io/apiserver`, `responsewriters.Forbidden`); `reason` is
    /// what [`Decision::NoOpinion`] holds.
    pub fn forbidden(&self, reason: &str) -> Status {
        let Self { verb, group, resource, subresource, namespace, name, path, .. } = *self;
        let user = quote(self.identity.user());
        let mut why = if self.is_resource {
            let below = if subresource.is_empty() { "" } else { "/" };
            let resource = quote(&format!("{resource}{below}{subresource}"));
            let place = match namespace {
                "" => "at the cluster scope".to_owned(),
                namespace => format!("in the namespace {}", quote(namespace)),
            };
            let group = quote(group);
            format!("User {user} cannot {verb} resource {resource} in API group {group} {place}")
        } else {
            format!("User {user} cannot {verb} path {}", quote(path))
        };
        if why.contains(['&', '<', '>']) {
            why = why.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
        }
        if !reason.is_empty() {
            why.push_str(": ");
            why.push_str(reason);
        }
        Status::forbidden(group, resource, name, &why).with_empty_details()
    }
}

/// What was decided.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decision {
    /// It is allowed, by what the text names; the text is empty for members of `system:masters`.
    Allow(String),
    /// Nothing allows it. The text names roles that could not be looked at; mostly empty.
    NoOpinion(String),
}

impl Decision {
    /// Whether it is allowed.
    pub const fn is_allowed(&self) -> bool {
        matches!(self, Self::Allow(_))
    }

    /// Why, or why not.
    pub fn reason(&self) -> &str {
        match self {
            Self::Allow(reason) | Self::NoOpinion(reason) => reason,
        }
    }
}

/// Decides who may do what, by the roles and bindings of a store.
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
    /// By the roles and bindings of this store.
    pub fn new(store: Store) -> Self {
        Self { index: RwLock::new(Index::new()), store }
    }

    /// Decides, by what the store holds now.
    pub fn decide(&self, asked: &Attributes<'_>) -> Decision {
        if asked.identity.is_in(MASTERS) {
            return Decision::Allow(String::new());
        }
        self.current().decide(asked)
    }

    /// Whether it is allowed; the refusal in the original's words if not.
    pub fn require(&self, asked: &Attributes<'_>) -> Result<(), Status> {
        match self.decide(asked) {
            Decision::Allow(_) => Ok(()),
            Decision::NoOpinion(reason) => Err(asked.forbidden(&reason)),
        }
    }

    /// The index as of now.
    fn current(&self) -> RwLockReadGuard<'_, Index> {
        let revision = self.store.revision();
        let index = self.index.read();
        if index.seen() >= revision {
            return index;
        }
        drop(index);
        let mut index = self.index.write();
        index.catch_up(&self.store);
        RwLockWriteGuard::downgrade(index)
    }
}
