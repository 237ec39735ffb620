//! What expressions of admission may use: which variables there are, and of what type.
//!
//! Objects are data without a type, as one expression meets objects of many kinds. The request and
//! the namespace have types, so that a misspelt field is noticed when the expression is written;
//! what is looked at in the end is data there too.
//!
//! Rules: apiserver's `pkg/admission/plugin/cel/compile.go` and `composition.go`.

use mainstay_cel::Env;
use mainstay_cel::library::kubernetes::authorizer::{AUTHORIZER_TYPE, RESOURCE_CHECK_TYPE};
use mainstay_cel::types::{FieldResolver, ObjectType, Type};
use parking_lot::RwLock;
use std::collections::HashMap;
use std::sync::{Arc, LazyLock};

/// The object as it will be; null when it is deleted.
pub(super) const OBJECT: &str = "object";
/// The object as it was; null when it is created.
pub(super) const OLD_OBJECT: &str = "oldObject";
/// What parameterizes a policy; null if nothing does.
pub(super) const PARAMS: &str = "params";
/// The request: who wants what.
pub(super) const REQUEST: &str = "request";
/// The namespace of the object; null if it has none.
pub(super) const NAMESPACE: &str = "namespaceObject";
/// Says who may do what.
pub(super) const AUTHORIZER: &str = "authorizer";
/// The same, asked about the request's own resource.
pub(super) const REQUEST_RESOURCE: &str = "authorizer.requestResource";
/// What a policy has named.
pub(super) const VARIABLES: &str = "variables";

/// The type of a field of the types that are declared by hand.
#[derive(Clone, Copy)]
enum Kind {
    Text,
    Bool,
    Int,
    Time,
    Dyn,
    Texts,
    TextMap,
    Extra,
    One(&'static str),
    Many(&'static str),
}

type Declared = (&'static str, &'static [(&'static str, Kind)]);

const ADMISSION_REQUEST: &str = "kubernetes.AdmissionRequest";
const NAMESPACE_TYPE: &str = "kubernetes.Namespace";

const DECLARED: &[Declared] = &[
    (
        ADMISSION_REQUEST,
        &[
            ("kind", Kind::One("kubernetes.GroupVersionKind")),
            ("resource", Kind::One("kubernetes.GroupVersionResource")),
            ("subResource", Kind::Text),
            ("requestKind", Kind::One("kubernetes.GroupVersionKind")),
            ("requestResource", Kind::One("kubernetes.GroupVersionResource")),
            ("requestSubResource", Kind::Text),
            ("name", Kind::Text),
            ("namespace", Kind::Text),
            ("operation", Kind::Text),
            ("userInfo", Kind::One("kubernetes.UserInfo")),
            ("dryRun", Kind::Bool),
            ("options", Kind::Dyn),
        ],
    ),
    (
        "kubernetes.GroupVersionKind",
        &[("group", Kind::Text), ("version", Kind::Text), ("kind", Kind::Text)],
    ),
    (
        "kubernetes.GroupVersionResource",
        &[("group", Kind::Text), ("version", Kind::Text), ("resource", Kind::Text)],
    ),
    (
        "kubernetes.UserInfo",
        &[
            ("username", Kind::Text),
            ("uid", Kind::Text),
            ("groups", Kind::Texts),
            ("extra", Kind::Extra),
        ],
    ),
    (
        NAMESPACE_TYPE,
        &[
            ("metadata", Kind::One("kubernetes.NamespaceMetadata")),
            ("spec", Kind::One("kubernetes.NamespaceSpec")),
            ("status", Kind::One("kubernetes.NamespaceStatus")),
        ],
    ),
    (
        "kubernetes.NamespaceMetadata",
        &[
            ("name", Kind::Text),
            ("generateName", Kind::Text),
            ("namespace", Kind::Text),
            ("labels", Kind::TextMap),
            ("annotations", Kind::TextMap),
            // So it is written in the original, though no data has a field of this name.
            ("UID", Kind::Text),
            ("creationTimestamp", Kind::Time),
            ("deletionGracePeriodSeconds", Kind::Int),
            ("deletionTimestamp", Kind::Time),
            ("generation", Kind::Int),
            ("resourceVersion", Kind::Text),
            ("finalizers", Kind::Texts),
        ],
    ),
    ("kubernetes.NamespaceSpec", &[("finalizers", Kind::Texts)]),
    (
        "kubernetes.NamespaceStatus",
        &[("conditions", Kind::Many("kubernetes.NamespaceCondition")), ("phase", Kind::Text)],
    ),
    (
        "kubernetes.NamespaceCondition",
        &[
            ("status", Kind::Text),
            ("type", Kind::Text),
            ("lastTransitionTime", Kind::Time),
            ("message", Kind::Text),
            ("reason", Kind::Text),
        ],
    ),
];

/// The fields of the types that are declared by hand.
#[derive(Debug)]
struct Table;

impl FieldResolver for Table {
    fn field(&self, owner: &str, field: &str) -> Option<Type> {
        let (_, fields) = DECLARED.iter().find(|(name, _)| *name == owner)?;
        let (_, kind) = fields.iter().find(|(name, _)| *name == field)?;
        Some(kind.to_type())
    }
}

impl Kind {
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
            Self::One(name) => declared(name),
            Self::Many(name) => Type::list(declared(name)),
        }
    }
}

fn declared(name: &str) -> Type {
    Type::Object(ObjectType { name: name.into(), fields: Arc::new(Table) })
}

/// What a policy has named, in the order in which it was compiled: each sees those before it.
#[derive(Debug, Default)]
struct Named(RwLock<HashMap<Box<str>, Type>>);

impl FieldResolver for Named {
    fn field(&self, _: &str, field: &str) -> Option<Type> {
        self.0.read().get(field).cloned()
    }
}

/// What the expressions of one policy may use.
#[derive(Debug)]
pub struct Scope {
    /// Without the authorizer, and with it.
    plain: Env,
    asking: Env,
    named: Arc<Named>,
}

/// What objects and parameters are, where their schemas are known.
#[derive(Clone, Debug, Default)]
pub(crate) struct Typed {
    pub object: Option<Type>,
    pub params: Option<Type>,
}

impl Scope {
    /// What the expressions of a policy may use. `params`: it has parameters. `variables`: it
    /// names variables.
    pub fn new(params: bool, variables: bool) -> Self {
        static PLAIN: LazyLock<[Env; 2]> = LazyLock::new(|| {
            [false, true].map(|params| environment(params.then_some(Type::Dyn), Type::Dyn))
        });
        static ASKING: LazyLock<[Env; 2]> =
            LazyLock::new(|| [false, true].map(|params| asking(&PLAIN[usize::from(params)])));
        let at = usize::from(params);
        Self::build(PLAIN[at].clone(), ASKING[at].clone(), variables)
    }

    /// What they may use of objects of one kind, of which the schema is known.
    pub(crate) fn typed(typed: Typed) -> Self {
        let plain = environment(typed.params, typed.object.unwrap_or(Type::Dyn));
        // Without `authorizer.requestResource`, as in the original.
        let asking = plain.with_variable(AUTHORIZER, Type::object(AUTHORIZER_TYPE));
        Self::build(plain, asking, true)
    }

    fn build(plain: Env, asking: Env, variables: bool) -> Self {
        let named = Arc::new(Named::default());
        if !variables {
            return Self { plain, asking, named };
        }
        let fields: Arc<dyn FieldResolver> = named.clone();
        let of = Type::Object(ObjectType { name: "kubernetes.variables".into(), fields });
        let with = |env: &Env| env.with_variable(VARIABLES, of.clone());
        Self { plain: with(&plain), asking: with(&asking), named }
    }

    /// Names a variable of this type, for all expressions that are compiled from now on.
    pub(crate) fn name(&self, name: &str, of: &Type) {
        self.named.0.write().insert(name.into(), carried(of));
    }

    /// The environment of expressions that may ask the authorizer, or may not.
    pub(crate) const fn env(&self, authorizer: bool) -> &Env {
        if authorizer { &self.asking } else { &self.plain }
    }
}

fn environment(params: Option<Type>, object: Type) -> Env {
    let env = Env::new_expressions()
        .with_variable(OBJECT, object.clone())
        .with_variable(OLD_OBJECT, object)
        .with_variable(NAMESPACE, declared(NAMESPACE_TYPE))
        .with_variable(REQUEST, declared(ADMISSION_REQUEST));
    match params {
        Some(params) => env.with_variable(PARAMS, params),
        None => env,
    }
}

fn asking(env: &Env) -> Env {
    env.with_variable(AUTHORIZER, Type::object(AUTHORIZER_TYPE))
        .with_variable(REQUEST_RESOURCE, Type::object(RESOURCE_CHECK_TYPE))
}

/// What is left of a type when a variable has it: what the original cannot describe is only known
/// when it is looked at.
fn carried(of: &Type) -> Type {
    match of {
        Type::Any
        | Type::Bool
        | Type::Bytes
        | Type::Double
        | Type::Duration
        | Type::Int
        | Type::Null
        | Type::String
        | Type::Timestamp
        | Type::Uint => of.clone(),
        Type::List(element) => Type::list(carried(element)),
        Type::Map(entry) => Type::map(carried(&entry.0), carried(&entry.1)),
        _ => Type::Dyn,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn output(scope: &Scope, authorizer: bool, text: &str) -> String {
        match scope.env(authorizer).compile(text) {
            Ok(checked) => checked.output().to_string(),
            Err(issues) => {
                issues.iter().next().map(|issue| issue.message.clone()).unwrap_or_default()
            }
        }
    }

    #[test]
    fn what_is_declared_has_a_type_and_nothing_else_is_there() {
        let scope = Scope::new(true, false);
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
            assert_eq!(output(&scope, true, text), expected, "{text}");
        }
        let missing = "undeclared reference to 'authorizer' (in container '')";
        assert_eq!(output(&scope, false, "authorizer.path('/')"), missing);
        let missing = "undeclared reference to 'params' (in container '')";
        assert_eq!(output(&Scope::new(false, false), true, "params.a"), missing);
    }

    #[test]
    fn variables_are_seen_by_what_comes_after_them() {
        let scope = Scope::new(false, true);
        assert_eq!(output(&scope, true, "variables.a"), "undefined field 'a'");
        scope.name("a", &Type::list(Type::Int));
        scope.name("b", &Type::object("kubernetes.Quantity"));
        assert_eq!(output(&scope, true, "variables.a"), "list(int)");
        assert_eq!(output(&scope, false, "variables.b"), "dyn");
        assert_eq!(output(&Scope::new(false, true), true, "variables.a"), "undefined field 'a'");
    }
}
