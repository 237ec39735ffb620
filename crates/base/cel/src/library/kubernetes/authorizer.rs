//! Authorizer library, for authorization checks in admission policies:
//! `authorizer.group("").resource("pods").namespace("a").check("create").allowed()`.
//!
//! The values here collect the attributes of a check; an [`Authorizer`] makes the decision.

use crate::library::args::{exactly, new_string, opaque, str, wrap};
use crate::library::{FunctionLibrary, Overload, StrictFunction};
use crate::types::Type;
use crate::value::{Error, Opaque, Value, ValueResult, WorkBudget};
use mainstay_formats::names;
use std::any::Any;
use std::sync::Arc;

/// Checks of paths and resources.
pub static LIBRARY: FunctionLibrary =
    FunctionLibrary { name: "kubernetes.authz", overloads, macros: &[], types: Vec::new };

/// `fieldSelector` and `labelSelector` for checks of resources. Needs [`LIBRARY`].
pub static SELECTORS: FunctionLibrary = FunctionLibrary {
    name: "kubernetes.authzSelectors",
    overloads: selectors,
    macros: &[],
    types: Vec::new,
};

/// Authorizes requests.
pub trait Authorizer: std::fmt::Debug + Send + Sync {
    /// Decides a request. An error is part of the decision.
    fn authorize(&self, request: &AuthorizationRequest<'_>) -> AuthorizationDecision;
}

/// A request to authorize.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AuthorizationRequest<'r> {
    /// The user.
    pub user: &'r User,
    /// The verb: the HTTP method for paths, the API verb for resources.
    pub verb: &'r str,
    /// The path or resource.
    pub target: AuthorizationTarget<'r>,
}

/// The user of an authorization request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum User {
    /// The user of the admission request.
    Requester,
    /// A ServiceAccount.
    ServiceAccount {
        /// Its namespace.
        namespace: Arc<str>,
        /// Its name.
        name: Arc<str>,
    },
}

/// The target of an authorization request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AuthorizationTarget<'r> {
    /// A non-resource path.
    Path(&'r str),
    /// A resource.
    Resource(&'r ResourceAttributes),
}

/// The attributes of a resource request; empty ones are not checked. The API version is `*`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ResourceAttributes {
    /// The API group; empty for the core group.
    pub group: String,
    /// The plural name of the resource.
    pub resource: String,
    /// The subresource.
    pub subresource: String,
    /// The namespace.
    pub namespace: String,
    /// The name of the object.
    pub name: String,
    /// The field selector, which counts only if it is valid.
    pub field_selector: String,
    /// The label selector, which counts only if it is valid.
    pub label_selector: String,
}

/// The decision of an authorizer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AuthorizationDecision {
    /// Whether the request is allowed.
    pub allowed: bool,
    /// The reason; may be empty.
    pub reason: String,
    /// The error, if any.
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
    wrap(AuthorizerValue { user_authorizer: UserAuthorizer { authorizer, user: User::Requester } })
}

/// The value of the variable `authorizer.requestResource`: checks the resource of the admission
/// request.
pub fn request_resource(
    authorizer: Arc<dyn Authorizer>,
    resource: ResourceAttributes,
) -> Value<'static> {
    wrap(ResourceCheck {
        user_authorizer: UserAuthorizer { authorizer, user: User::Requester },
        resource,
    })
}

/// An authorizer and the user of its requests.
#[derive(Clone, Debug)]
struct UserAuthorizer {
    authorizer: Arc<dyn Authorizer>,
    user: User,
}

impl UserAuthorizer {
    fn check<'a>(&self, verb: &str, target: AuthorizationTarget<'_>) -> Value<'a> {
        let request = AuthorizationRequest { user: &self.user, verb, target };
        wrap(DecisionValue(self.authorizer.authorize(&request)))
    }
}

#[derive(Debug)]
struct AuthorizerValue {
    user_authorizer: UserAuthorizer,
}

#[derive(Debug)]
struct PathCheck {
    user_authorizer: UserAuthorizer,
    path: String,
}

#[derive(Debug)]
struct GroupCheck {
    user_authorizer: UserAuthorizer,
    group: String,
}

#[derive(Clone, Debug)]
struct ResourceCheck {
    user_authorizer: UserAuthorizer,
    resource: ResourceAttributes,
}

#[derive(Debug)]
struct DecisionValue(AuthorizationDecision);

/// These values cannot be compared.
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
    AuthorizerValue AUTHORIZER_TYPE "library.authorizerVal",
    PathCheck PATH_CHECK "library.pathCheckVal",
    GroupCheck GROUP_CHECK "library.groupCheckVal",
    ResourceCheck RESOURCE_CHECK_TYPE "library.resourceCheckVal",
    DecisionValue DECISION "library.decisionVal"
);

fn overloads() -> Vec<Overload> {
    let object = Type::object;
    // `from.function(string)`
    let method = |function, id, from, to, run: StrictFunction| {
        Overload::method(function, id, vec![object(from), Type::String], object(to), run)
    };
    let decision_method = |function, id, result, run: StrictFunction| {
        Overload::method(function, id, vec![object(DECISION)], result, run)
    };
    let service_account_params = vec![object(AUTHORIZER_TYPE), Type::String, Type::String];
    vec![
        method("path", "authorizer_path", AUTHORIZER_TYPE, PATH_CHECK, path),
        method("group", "authorizer_group", AUTHORIZER_TYPE, GROUP_CHECK, |args, _| {
            let (authorizer_value, group) = receiver_and_text::<AuthorizerValue>(args)?;
            Ok(wrap(GroupCheck {
                user_authorizer: authorizer_value.user_authorizer.clone(),
                group: group.to_owned(),
            }))
        }),
        Overload::method(
            "serviceAccount",
            "authorizer_serviceaccount",
            service_account_params,
            object(AUTHORIZER_TYPE),
            service_account,
        ),
        method("resource", "groupcheck_resource", GROUP_CHECK, RESOURCE_CHECK_TYPE, resource),
        method(
            "subresource",
            "resourcecheck_subresource",
            RESOURCE_CHECK_TYPE,
            RESOURCE_CHECK_TYPE,
            |args, _| with_attribute(args, |resource, text| resource.subresource = text),
        ),
        method(
            "namespace",
            "resourcecheck_namespace",
            RESOURCE_CHECK_TYPE,
            RESOURCE_CHECK_TYPE,
            |args, _| with_attribute(args, |resource, text| resource.namespace = text),
        ),
        method(
            "name",
            "resourcecheck_name",
            RESOURCE_CHECK_TYPE,
            RESOURCE_CHECK_TYPE,
            |args, _| with_attribute(args, |resource, text| resource.name = text),
        ),
        method("check", "pathcheck_check", PATH_CHECK, DECISION, |args, _| {
            let (check, verb) = receiver_and_text::<PathCheck>(args)?;
            Ok(check.user_authorizer.check(verb, AuthorizationTarget::Path(&check.path)))
        }),
        method("check", "resourcecheck_check", RESOURCE_CHECK_TYPE, DECISION, |args, _| {
            let (check, verb) = receiver_and_text::<ResourceCheck>(args)?;
            Ok(check.user_authorizer.check(verb, AuthorizationTarget::Resource(&check.resource)))
        }),
        decision_method("errored", "decision_errored", Type::Bool, |args, _| {
            Ok(Value::Bool(decision(args)?.error.is_some()))
        }),
        decision_method("error", "decision_error", Type::String, |args, _| {
            Ok(new_string(decision(args)?.error.as_deref().unwrap_or_default()))
        }),
        decision_method("allowed", "decision_allowed", Type::Bool, |args, _| {
            Ok(Value::Bool(decision(args)?.allowed))
        }),
        decision_method("reason", "decision_reason", Type::String, |args, _| {
            Ok(new_string(&*decision(args)?.reason))
        }),
    ]
}

fn selectors() -> Vec<Overload> {
    let check = || Type::object(RESOURCE_CHECK_TYPE);
    let method = |function, id, run: StrictFunction| {
        Overload::method(function, id, vec![check(), Type::String], check(), run)
    };
    vec![
        method("fieldSelector", "authorizer_fieldselector", |args, _| {
            with_attribute(args, |resource, text| resource.field_selector = text)
        }),
        method("labelSelector", "authorizer_labelselector", |args, _| {
            with_attribute(args, |resource, text| resource.label_selector = text)
        }),
    ]
}

fn receiver_and_text<'v, T: Opaque>(args: &'v [Value<'_>]) -> Result<(&'v T, &'v str), Error> {
    let [receiver, text] = exactly(args)?;
    Ok((opaque(receiver)?, str(text)?))
}

fn decision<'v>(args: &'v [Value<'_>]) -> Result<&'v AuthorizationDecision, Error> {
    let [decision] = exactly(args)?;
    opaque(decision).map(|decision: &DecisionValue| &decision.0)
}

/// The check with one more attribute.
fn with_attribute<'a>(
    args: &[Value<'a>],
    set: fn(&mut ResourceAttributes, String),
) -> ValueResult<'a> {
    let (check, text) = receiver_and_text::<ResourceCheck>(args)?;
    let mut check = check.clone();
    set(&mut check.resource, text.to_owned());
    Ok(wrap(check))
}

fn path<'a>(args: &[Value<'a>], _: &WorkBudget) -> ValueResult<'a> {
    let (authorizer_value, path) = receiver_and_text::<AuthorizerValue>(args)?;
    if path.trim().is_empty() {
        return Err(Error::fixed("path must not be empty"));
    }
    Ok(wrap(PathCheck {
        user_authorizer: authorizer_value.user_authorizer.clone(),
        path: path.to_owned(),
    }))
}

fn resource<'a>(args: &[Value<'a>], _: &WorkBudget) -> ValueResult<'a> {
    let (check, resource) = receiver_and_text::<GroupCheck>(args)?;
    if resource.trim().is_empty() {
        return Err(Error::fixed("resource must not be empty"));
    }
    Ok(wrap(ResourceCheck {
        user_authorizer: check.user_authorizer.clone(),
        resource: ResourceAttributes {
            group: check.group.clone(),
            resource: resource.to_owned(),
            ..ResourceAttributes::default()
        },
    }))
}

fn service_account<'a>(args: &[Value<'a>], _: &WorkBudget) -> ValueResult<'a> {
    let [authorizer_value, namespace, name] = exactly(args)?;
    let (authorizer_value, namespace, name) =
        (opaque::<AuthorizerValue>(authorizer_value)?, str(namespace)?, str(name)?);
    if !names::dns1123_subdomain(name).is_empty() {
        return Err(Error::fixed("Invalid service account name"));
    }
    if !names::dns1123_label(namespace).is_empty() {
        return Err(Error::fixed("Invalid service account namespace"));
    }
    let user = User::ServiceAccount { namespace: namespace.into(), name: name.into() };
    let authorizer = Arc::clone(&authorizer_value.user_authorizer.authorizer);
    Ok(wrap(AuthorizerValue { user_authorizer: UserAuthorizer { authorizer, user } }))
}
