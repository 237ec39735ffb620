//! Questions to the authorizer, which policies ask:
//! `authorizer.group("").resource("pods").namespace("a").check("create").allowed()`.
//!
//! Who answers is an [`Authorizer`]; the values here only gather what is asked.

use crate::library::args::{exactly, made, opaque, str, wrap};
use crate::library::{FunctionLibrary, Overload, StrictFunction};
use crate::types::Type;
use crate::value::{Error, Opaque, Value, ValueResult, WorkBudget};
use mainstay_formats::names;
use std::any::Any;
use std::sync::Arc;

/// Questions about paths and resources.
pub static LIBRARY: FunctionLibrary =
    FunctionLibrary { name: "kubernetes.authz", overloads, macros: &[], types: Vec::new };

/// `fieldSelector` and `labelSelector` for questions about resources. Needs [`LIBRARY`].
pub static SELECTORS: FunctionLibrary = FunctionLibrary {
    name: "kubernetes.authzSelectors",
    overloads: selectors,
    macros: &[],
    types: Vec::new,
};

/// Says who may do what.
pub trait Authorizer: std::fmt::Debug + Send + Sync {
    /// Whether a request may be made. An error is part of the decision.
    fn authorize(&self, request: &AuthorizationRequest<'_>) -> AuthorizationDecision;
}

/// What somebody wants to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AuthorizationRequest<'r> {
    /// Who.
    pub user: &'r User,
    /// The verb: of HTTP for paths, of the API for resources.
    pub verb: &'r str,
    /// With what.
    pub target: AuthorizationTarget<'r>,
}

/// Who wants to do something.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum User {
    /// Whoever sent the request that is being judged.
    Requester,
    /// A service account.
    ServiceAccount {
        /// Its namespace.
        namespace: Arc<str>,
        /// Its name.
        name: Arc<str>,
    },
}

/// With what somebody wants to do something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AuthorizationTarget<'r> {
    /// A path that is no resource's.
    Path(&'r str),
    /// A resource.
    Resource(&'r ResourceAttributes),
}

/// A resource; what is empty is not asked about. The version of its group is `*`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ResourceAttributes {
    /// Its group; empty for the core group.
    pub group: String,
    /// Its plural name.
    pub resource: String,
    /// Its subresource.
    pub subresource: String,
    /// The namespace.
    pub namespace: String,
    /// The object's name.
    pub name: String,
    /// Which objects, by fields. It counts only where it can be read as a selector.
    pub field_selector: String,
    /// Which objects, by labels. It counts only where it can be read as a selector.
    pub label_selector: String,
}

/// What an authorizer says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AuthorizationDecision {
    /// Whether it is allowed.
    pub allowed: bool,
    /// Why; may be empty.
    pub reason: String,
    /// What went wrong.
    pub error: Option<String>,
}

/// The name of the type of the variable `authorizer`.
pub const AUTHORIZER_TYPE: &str = "kubernetes.authorization.Authorizer";
/// The name of the type of the variable `authorizer.requestResource`.
pub const RESOURCE_CHECK_TYPE: &str = "kubernetes.authorization.ResourceCheck";
const PATH_CHECK: &str = "kubernetes.authorization.PathCheck";
const GROUP_CHECK: &str = "kubernetes.authorization.GroupCheck";
const DECISION: &str = "kubernetes.authorization.Decision";

/// The value of the variable `authorizer`.
pub fn authorizer(authorizer: Arc<dyn Authorizer>) -> Value<'static> {
    wrap(Asking { who: Who { authorizer, user: User::Requester } })
}

/// The value of the variable `authorizer.requestResource`: asks about the resource of the request
/// that is being judged.
pub fn request_resource(
    authorizer: Arc<dyn Authorizer>,
    resource: ResourceAttributes,
) -> Value<'static> {
    wrap(ResourceCheck { who: Who { authorizer, user: User::Requester }, resource })
}

/// Whom to ask, about whom.
#[derive(Clone, Debug)]
struct Who {
    authorizer: Arc<dyn Authorizer>,
    user: User,
}

impl Who {
    fn ask<'a>(&self, verb: &str, target: AuthorizationTarget<'_>) -> Value<'a> {
        let request = AuthorizationRequest { user: &self.user, verb, target };
        wrap(Decided(self.authorizer.authorize(&request)))
    }
}

#[derive(Debug)]
struct Asking {
    who: Who,
}

#[derive(Debug)]
struct PathCheck {
    who: Who,
    path: String,
}

#[derive(Debug)]
struct GroupCheck {
    who: Who,
    group: String,
}

#[derive(Clone, Debug)]
struct ResourceCheck {
    who: Who,
    resource: ResourceAttributes,
}

#[derive(Debug)]
struct Decided(AuthorizationDecision);

/// None of them can be compared.
macro_rules! opaque_types {
    ($($type:ident $name:ident $go:literal),*) => {
        $(impl Opaque for $type {
            fn cel_type(&self) -> Type {
                Type::object($name)
            }

            fn equals(&self, _: &Value<'_>) -> Result<bool, Error> {
                Err(Error::NoSuchOverload)
            }

            fn go_type(&self) -> Option<&'static str> {
                Some($go)
            }

            fn as_any(&self) -> &dyn Any {
                self
            }
        })*
    };
}

opaque_types!(
    Asking AUTHORIZER_TYPE "library.authorizerVal",
    PathCheck PATH_CHECK "library.pathCheckVal",
    GroupCheck GROUP_CHECK "library.groupCheckVal",
    ResourceCheck RESOURCE_CHECK_TYPE "library.resourceCheckVal",
    Decided DECISION "library.decisionVal"
);

fn overloads() -> Vec<Overload> {
    let object = Type::object;
    // `from.function(string)`
    let step = |function, id, from, to, run: StrictFunction| {
        Overload::method(function, id, vec![object(from), Type::String], object(to), run)
    };
    let told = |function, id, result, run: StrictFunction| {
        Overload::method(function, id, vec![object(DECISION)], result, run)
    };
    let with_account = vec![object(AUTHORIZER_TYPE), Type::String, Type::String];
    vec![
        step("path", "authorizer_path", AUTHORIZER_TYPE, PATH_CHECK, path),
        step("group", "authorizer_group", AUTHORIZER_TYPE, GROUP_CHECK, |args, _| {
            let (asking, group) = with_text::<Asking>(args)?;
            Ok(wrap(GroupCheck { who: asking.who.clone(), group: group.to_owned() }))
        }),
        Overload::method(
            "serviceAccount",
            "authorizer_serviceaccount",
            with_account,
            object(AUTHORIZER_TYPE),
            service_account,
        ),
        step("resource", "groupcheck_resource", GROUP_CHECK, RESOURCE_CHECK_TYPE, resource),
        step(
            "subresource",
            "resourcecheck_subresource",
            RESOURCE_CHECK_TYPE,
            RESOURCE_CHECK_TYPE,
            |args, _| with(args, |resource, text| resource.subresource = text),
        ),
        step(
            "namespace",
            "resourcecheck_namespace",
            RESOURCE_CHECK_TYPE,
            RESOURCE_CHECK_TYPE,
            |args, _| with(args, |resource, text| resource.namespace = text),
        ),
        step("name", "resourcecheck_name", RESOURCE_CHECK_TYPE, RESOURCE_CHECK_TYPE, |args, _| {
            with(args, |resource, text| resource.name = text)
        }),
        step("check", "pathcheck_check", PATH_CHECK, DECISION, |args, _| {
            let (check, verb) = with_text::<PathCheck>(args)?;
            Ok(check.who.ask(verb, AuthorizationTarget::Path(&check.path)))
        }),
        step("check", "resourcecheck_check", RESOURCE_CHECK_TYPE, DECISION, |args, _| {
            let (check, verb) = with_text::<ResourceCheck>(args)?;
            Ok(check.who.ask(verb, AuthorizationTarget::Resource(&check.resource)))
        }),
        told("errored", "decision_errored", Type::Bool, |args, _| {
            Ok(Value::Bool(decision(args)?.error.is_some()))
        }),
        told("error", "decision_error", Type::String, |args, _| {
            Ok(made(decision(args)?.error.as_deref().unwrap_or_default()))
        }),
        told("allowed", "decision_allowed", Type::Bool, |args, _| {
            Ok(Value::Bool(decision(args)?.allowed))
        }),
        told("reason", "decision_reason", Type::String, |args, _| {
            Ok(made(&*decision(args)?.reason))
        }),
    ]
}

fn selectors() -> Vec<Overload> {
    let check = || Type::object(RESOURCE_CHECK_TYPE);
    let step = |function, id, run: StrictFunction| {
        Overload::method(function, id, vec![check(), Type::String], check(), run)
    };
    vec![
        step("fieldSelector", "authorizer_fieldselector", |args, _| {
            with(args, |resource, text| resource.field_selector = text)
        }),
        step("labelSelector", "authorizer_labelselector", |args, _| {
            with(args, |resource, text| resource.label_selector = text)
        }),
    ]
}

fn with_text<'v, T: Opaque>(args: &'v [Value<'_>]) -> Result<(&'v T, &'v str), Error> {
    let [receiver, text] = exactly(args)?;
    Ok((opaque(receiver)?, str(text)?))
}

fn decision<'v>(args: &'v [Value<'_>]) -> Result<&'v AuthorizationDecision, Error> {
    let [decision] = exactly(args)?;
    opaque(decision).map(|decision: &Decided| &decision.0)
}

/// The same question with one thing more.
fn with<'a>(args: &[Value<'a>], set: fn(&mut ResourceAttributes, String)) -> ValueResult<'a> {
    let (check, text) = with_text::<ResourceCheck>(args)?;
    let mut check = check.clone();
    set(&mut check.resource, text.to_owned());
    Ok(wrap(check))
}

fn path<'a>(args: &[Value<'a>], _: &WorkBudget) -> ValueResult<'a> {
    let (asking, path) = with_text::<Asking>(args)?;
    if path.trim().is_empty() {
        return Err(Error::fixed("path must not be empty"));
    }
    Ok(wrap(PathCheck { who: asking.who.clone(), path: path.to_owned() }))
}

fn resource<'a>(args: &[Value<'a>], _: &WorkBudget) -> ValueResult<'a> {
    let (check, resource) = with_text::<GroupCheck>(args)?;
    if resource.trim().is_empty() {
        return Err(Error::fixed("resource must not be empty"));
    }
    Ok(wrap(ResourceCheck {
        who: check.who.clone(),
        resource: ResourceAttributes {
            group: check.group.clone(),
            resource: resource.to_owned(),
            ..ResourceAttributes::default()
        },
    }))
}

fn service_account<'a>(args: &[Value<'a>], _: &WorkBudget) -> ValueResult<'a> {
    let [asking, namespace, name] = exactly(args)?;
    let (asking, namespace, name) = (opaque::<Asking>(asking)?, str(namespace)?, str(name)?);
    if !names::dns1123_subdomain(name).is_empty() {
        return Err(Error::fixed("Invalid service account name"));
    }
    if !names::dns1123_label(namespace).is_empty() {
        return Err(Error::fixed("Invalid service account namespace"));
    }
    let user = User::ServiceAccount { namespace: namespace.into(), name: name.into() };
    let authorizer = Arc::clone(&asking.who.authorizer);
    Ok(wrap(Asking { who: Who { authorizer, user } }))
}
