//! CEL variables of admission expressions, and their types.
//!
//! Objects have the type `dyn`, because one expression sees objects of many kinds. The request and
//! the namespace have declared types, so that a misspelt field fails when the policy is written.
//! Their values are plain data all the same.
//!
//! Rules: apiserver's `pkg/admission/plugin/cel/compile.go` and `composition.go`.

use mainstay_cel::Env;
use mainstay_cel::library::kubernetes::authorizer::{AUTHORIZER_TYPE, RESOURCE_CHECK_TYPE};
use mainstay_cel::types::{FieldResolver, ObjectType, Type};
use parking_lot::RwLock;
use std::collections::HashMap;
use std::sync::{Arc, LazyLock};

/// The new object; null for a deletion.
pub(super) const OBJECT: &str = "object";
/// The old object; null for a creation.
pub(super) const OLD_OBJECT: &str = "oldObject";
/// The parameter resource of a policy; null if it has none.
pub(super) const PARAMS: &str = "params";
/// The `AdmissionRequest` without its objects.
pub(super) const REQUEST: &str = "request";
/// The Namespace of the object; null if it has none.
pub(super) const NAMESPACE: &str = "namespaceObject";
/// Checks permissions.
pub(super) const AUTHORIZER: &str = "authorizer";
/// The authorizer for the resource of the request.
pub(super) const REQUEST_RESOURCE: &str = "authorizer.requestResource";
/// The variables of a policy.
pub(super) const VARIABLES: &str = "variables";

/// The type of a field in the table [`DECLARED_TYPES`].
#[derive(Clone, Copy)]
enum FieldType {
    Text,
    Bool,
    Int,
    Time,
    Dyn,
    Texts,
    TextMap,
    Extra,
    Object(&'static str),
    List(&'static str),
}

type DeclaredType = (&'static str, &'static [(&'static str, FieldType)]);

const ADMISSION_REQUEST: &str = "kubernetes.AdmissionRequest";
const NAMESPACE_TYPE: &str = "kubernetes.Namespace";

const DECLARED_TYPES: &[DeclaredType] = &[
    (
        ADMISSION_REQUEST,
        &[
            ("kind", FieldType::Object("kubernetes.GroupVersionKind")),
            ("resource", FieldType::Object("kubernetes.GroupVersionResource")),
            ("subResource", FieldType::Text),
            ("requestKind", FieldType::Object("kubernetes.GroupVersionKind")),
            ("requestResource", FieldType::Object("kubernetes.GroupVersionResource")),
            ("requestSubResource", FieldType::Text),
            ("name", FieldType::Text),
            ("namespace", FieldType::Text),
            ("operation", FieldType::Text),
            ("userInfo", FieldType::Object("kubernetes.UserInfo")),
            ("dryRun", FieldType::Bool),
            ("options", FieldType::Dyn),
        ],
    ),
    (
        "kubernetes.GroupVersionKind",
        &[("group", FieldType::Text), ("version", FieldType::Text), ("kind", FieldType::Text)],
    ),
    (
        "kubernetes.GroupVersionResource",
        &[("group", FieldType::Text), ("version", FieldType::Text), ("resource", FieldType::Text)],
    ),
    (
        "kubernetes.UserInfo",
        &[
            ("username", FieldType::Text),
            ("uid", FieldType::Text),
            ("groups", FieldType::Texts),
            ("extra", FieldType::Extra),
        ],
    ),
    (
        NAMESPACE_TYPE,
        &[
            ("metadata", FieldType::Object("kubernetes.NamespaceMetadata")),
            ("spec", FieldType::Object("kubernetes.NamespaceSpec")),
            ("status", FieldType::Object("kubernetes.NamespaceStatus")),
        ],
    ),
    (
        "kubernetes.NamespaceMetadata",
        &[
            ("name", FieldType::Text),
            ("generateName", FieldType::Text),
            ("namespace", FieldType::Text),
            ("labels", FieldType::TextMap),
            ("annotations", FieldType::TextMap),
            // Kubernetes declares `UID` in capitals, although no object has a field of this name.
            ("UID", FieldType::Text),
            ("creationTimestamp", FieldType::Time),
            ("deletionGracePeriodSeconds", FieldType::Int),
            ("deletionTimestamp", FieldType::Time),
            ("generation", FieldType::Int),
            ("resourceVersion", FieldType::Text),
            ("finalizers", FieldType::Texts),
        ],
    ),
    ("kubernetes.NamespaceSpec", &[("finalizers", FieldType::Texts)]),
    (
        "kubernetes.NamespaceStatus",
        &[
            ("conditions", FieldType::List("kubernetes.NamespaceCondition")),
            ("phase", FieldType::Text),
        ],
    ),
    (
        "kubernetes.NamespaceCondition",
        &[
            ("status", FieldType::Text),
            ("type", FieldType::Text),
            ("lastTransitionTime", FieldType::Time),
            ("message", FieldType::Text),
            ("reason", FieldType::Text),
        ],
    ),
];

/// The fields of the types in [`DECLARED_TYPES`].
#[derive(Debug)]
struct DeclaredFields;

impl FieldResolver for DeclaredFields {
    fn field(&self, owner: &str, field: &str) -> Option<Type> {
        let (_, fields) = DECLARED_TYPES.iter().find(|(name, _)| *name == owner)?;
        let (_, kind) = fields.iter().find(|(name, _)| *name == field)?;
        Some(kind.to_type())
    }
}

impl FieldType {
    fn to_type(self) -> Type {
        match self {
            Self::Text => Type::String,
            Self::Bool => Type::Bool,
            Self::Int => Type::Int,
            Self::Time => Type::Timestamp,
            Self::Dyn => Type::Dyn,
            Self::Texts => Type::list(Type::String),
            Self::TextMap => Type::map(Type::String, Type::String),
            Self::Extra => Type::map(Type::String, Type::list(Type::String)),
            Self::Object(name) => declared_type(name),
            Self::List(name) => Type::list(declared_type(name)),
        }
    }
}

fn declared_type(name: &str) -> Type {
    Type::Object(ObjectType { name: name.into(), fields: Arc::new(DeclaredFields) })
}

/// The types of the variables compiled so far: each expression sees the variables before it.
#[derive(Debug, Default)]
struct VariableTypes(RwLock<HashMap<Box<str>, Type>>);

impl FieldResolver for VariableTypes {
    fn field(&self, _: &str, field: &str) -> Option<Type> {
        self.0.read().get(field).cloned()
    }
}

/// The variables that the expressions of one policy may use.
#[derive(Debug)]
pub struct ExpressionScope {
    without_authorizer: Env,
    with_authorizer: Env,
    variables: Arc<VariableTypes>,
}

/// The types of objects and parameters with a schema.
#[derive(Clone, Debug, Default)]
pub(crate) struct ObjectTypes {
    pub object: Option<Type>,
    pub params: Option<Type>,
}

impl ExpressionScope {
    /// The scope of a policy. `params`: the policy has a `paramKind`. `variables`: it may declare
    /// variables.
    pub fn new(params: bool, variables: bool) -> Self {
        static WITHOUT_AUTHORIZER: LazyLock<[Env; 2]> = LazyLock::new(|| {
            [false, true].map(|params| environment(params.then_some(Type::Dyn), Type::Dyn))
        });
        static WITH_AUTHORIZER: LazyLock<[Env; 2]> = LazyLock::new(|| {
            [false, true].map(|params| with_authorizer(&WITHOUT_AUTHORIZER[usize::from(params)]))
        });
        let index = usize::from(params);
        Self::build(WITHOUT_AUTHORIZER[index].clone(), WITH_AUTHORIZER[index].clone(), variables)
    }

    /// The scope of a policy for objects of one kind with a schema.
    pub(crate) fn for_types(types: ObjectTypes) -> Self {
        let without_authorizer = environment(types.params, types.object.unwrap_or(Type::Dyn));
        // Without `authorizer.requestResource`, as in Kubernetes.
        let with_authorizer =
            without_authorizer.with_variable(AUTHORIZER, Type::object(AUTHORIZER_TYPE));
        Self::build(without_authorizer, with_authorizer, true)
    }

    fn build(without_authorizer: Env, with_authorizer: Env, has_variables: bool) -> Self {
        let variables = Arc::new(VariableTypes::default());
        if !has_variables {
            return Self { without_authorizer, with_authorizer, variables };
        }
        let fields: Arc<dyn FieldResolver> = variables.clone();
        let ty = Type::Object(ObjectType { name: "kubernetes.variables".into(), fields });
        let with = |env: &Env| env.with_variable(VARIABLES, ty.clone());
        Self {
            without_authorizer: with(&without_authorizer),
            with_authorizer: with(&with_authorizer),
            variables,
        }
    }

    /// Declares a variable for all expressions that are compiled from now on.
    pub(crate) fn declare(&self, name: &str, ty: &Type) {
        self.variables.0.write().insert(name.into(), variable_type(ty));
    }

    /// The environment of expressions with or without the authorizer.
    pub(crate) const fn env(&self, authorizer: bool) -> &Env {
        if authorizer { &self.with_authorizer } else { &self.without_authorizer }
    }
}

fn environment(params: Option<Type>, object: Type) -> Env {
    let env = Env::new_expressions()
        .with_variable(OBJECT, object.clone())
        .with_variable(OLD_OBJECT, object)
        .with_variable(NAMESPACE, declared_type(NAMESPACE_TYPE))
        .with_variable(REQUEST, declared_type(ADMISSION_REQUEST));
    match params {
        Some(params) => env.with_variable(PARAMS, params),
        None => env,
    }
}

fn with_authorizer(env: &Env) -> Env {
    env.with_variable(AUTHORIZER, Type::object(AUTHORIZER_TYPE))
        .with_variable(REQUEST_RESOURCE, Type::object(RESOURCE_CHECK_TYPE))
}

/// The declared type of a variable whose expression returns a type: as in Kubernetes, types other
/// than these are `dyn`.
fn variable_type(ty: &Type) -> Type {
    match ty {
        Type::Any
        | Type::Bool
        | Type::Bytes
        | Type::Double
        | Type::Duration
        | Type::Int
        | Type::Null
        | Type::String
        | Type::Timestamp
        | Type::Uint => ty.clone(),
        Type::List(element) => Type::list(variable_type(element)),
        Type::Map(entry) => Type::map(variable_type(&entry.0), variable_type(&entry.1)),
        _ => Type::Dyn,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn output_type(scope: &ExpressionScope, authorizer: bool, text: &str) -> String {
        match scope.env(authorizer).compile(text) {
            Ok(checked) => checked.output().to_string(),
            Err(issues) => {
                issues.iter().next().map(|issue| issue.message.clone()).unwrap_or_default()
            }
        }
    }

    #[test]
    fn expressions_may_use_declared_variables_and_fields_only() {
        let scope = ExpressionScope::new(true, false);
        for (text, expected) in [
            ("object.spec.a", "dyn"),
            ("oldObject", "dyn"),
            ("params.x", "dyn"),
            ("request.userInfo.groups", "list(string)"),
            ("request.userInfo.extra", "map(string, list(string))"),
            ("request.dryRun", "bool"),
            ("request.options.dryRun", "dyn"),
            ("request.object", "undefined field 'object'"),
            ("request.namespace", "string"),
            ("namespaceObject.metadata.creationTimestamp", "timestamp"),
            ("namespaceObject.metadata.uid", "undefined field 'uid'"),
            ("namespaceObject.status.conditions[0].type", "string"),
            ("namespaceObject.spec.finalizers", "list(string)"),
            ("authorizer.requestResource.check('get').allowed()", "bool"),
            ("variables.a", "undeclared reference to 'variables' (in container '')"),
        ] {
            assert_eq!(output_type(&scope, true, text), expected, "{text}");
        }
        let missing = "undeclared reference to 'authorizer' (in container '')";
        assert_eq!(output_type(&scope, false, "authorizer.path('/')"), missing);
        let missing = "undeclared reference to 'params' (in container '')";
        assert_eq!(output_type(&ExpressionScope::new(false, false), true, "params.a"), missing);
    }

    #[test]
    fn a_variable_is_visible_to_later_expressions() {
        let scope = ExpressionScope::new(false, true);
        assert_eq!(output_type(&scope, true, "variables.a"), "undefined field 'a'");
        scope.declare("a", &Type::list(Type::Int));
        scope.declare("b", &Type::object("kubernetes.Quantity"));
        assert_eq!(output_type(&scope, true, "variables.a"), "list(int)");
        assert_eq!(output_type(&scope, false, "variables.b"), "dyn");
        assert_eq!(
            output_type(&ExpressionScope::new(false, true), true, "variables.a"),
            "undefined field 'a'"
        );
    }
}
