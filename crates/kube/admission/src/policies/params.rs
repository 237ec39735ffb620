//! Parameter resources of a policy: objects that a binding names or selects.
//!
//! Rules and texts: apiserver's `pkg/admission/plugin/policy/generic/policy_dispatcher.go`.

use super::index::{ParamRef, PolicyBinding, ValidatingPolicy};
use mainstay_conversion::forms;
use mainstay_kinds::{KindRow, Kinds};
use mainstay_object::selector::{LabelSelector, SelectorError};
use mainstay_store::{Store, Stored};
use serde_json::Value;
use std::sync::Arc;

/// The parameter resources of a policy cannot be determined.
#[derive(Debug, thiserror::Error)]
pub(super) enum ParamsError {
    /// The `paramKind` is not served.
    #[error("failed to find resource referenced by paramKind: '{kind}'")]
    UnknownKind {
        /// The kind.
        kind: String,
    },
    /// The `paramKind` is not stored in this server.
    #[error("paramKind kind `{kind}` not yet synced to use for admission")]
    NotStored {
        /// The kind.
        kind: String,
    },
    /// The binding names a namespace, but the `paramKind` is cluster-scoped.
    #[error("paramRef.namespace must not be provided for a cluster-scoped `paramKind`")]
    ClusterScopedKind,
    /// Neither the binding nor the request has a namespace.
    #[error(
        "cannot use namespaced paramRef in policy binding that matches cluster-scoped resources"
    )]
    ClusterScopedRequest,
    /// The selector of the binding is invalid.
    #[error(transparent)]
    Selector(#[from] SelectorError),
    /// No parameter resource exists, but the binding requires one.
    #[error("no params found for policy binding with `Deny` parameterNotFoundAction")]
    NotFound,
}

/// The kind of the parameter resources of a policy; none without a `paramKind`.
#[derive(Debug)]
pub(super) struct ParamSource(Option<Arc<KindRow>>);

/// The parameter resources of one binding.
#[derive(Debug)]
pub(super) enum Params {
    /// The policy is evaluated once, without parameters.
    None,
    /// The policy is evaluated for each of these objects.
    Each(Arc<KindRow>, Vec<Arc<Stored>>),
}

impl Params {
    /// The number of evaluations.
    pub(super) fn count(&self) -> usize {
        match self {
            Self::None => 1,
            Self::Each(_, all) => all.len(),
        }
    }

    /// The parameters of one evaluation.
    pub(super) fn get(&self, index: usize) -> Value {
        match self {
            Self::None => Value::Null,
            Self::Each(row, all) => all
                .get(index)
                .map(|stored| forms::object(row, stored).into_value())
                .unwrap_or_default(),
        }
    }
}

impl ParamSource {
    /// Finds the `paramKind` of a policy.
    ///
    /// # Errors
    /// The kind is not served.
    pub(super) fn find(policy: &ValidatingPolicy, kinds: &Kinds) -> Result<Self, ParamsError> {
        let Some(kind) = &policy.params else { return Ok(Self(None)) };
        let row = kinds.by_gvk(kind).ok_or_else(|| ParamsError::UnknownKind {
            kind: mainstay_policy::type_checking::go_kind(kind),
        })?;
        Ok(Self(Some(row.clone())))
    }

    /// Collects the parameter resources of a binding for a request in a namespace.
    ///
    /// # Errors
    /// A required parameter resource is missing, or the reference is ambiguous.
    pub(super) fn collect(
        &self,
        policy: &ValidatingPolicy,
        binding: &PolicyBinding,
        namespace: &str,
        store: &Store,
    ) -> Result<Params, ParamsError> {
        let (Some(row), Some(reference)) = (&self.0, &binding.params) else {
            return Ok(Params::None);
        };
        let namespace = param_namespace(row, reference, namespace)?;
        if !row.is_stored() {
            let kind = policy.go_param_kind();
            return Err(ParamsError::NotStored { kind });
        }
        if !row.is_namespaced() && !reference.namespace.is_empty() {
            return Err(ParamsError::ClusterScopedKind);
        }
        let found = if reference.name.is_empty() {
            let selector = LabelSelector::from_value(&reference.selector)?;
            let all = store.list(&row.storage, row.is_namespaced().then_some(namespace));
            all.iter().filter(|stored| stored.matches(&selector)).cloned().collect()
        } else {
            store.find(&row.storage, namespace, &reference.name).into_iter().collect::<Vec<_>>()
        };
        if found.is_empty() && reference.required {
            return Err(ParamsError::NotFound);
        }
        Ok(Params::Each(row.clone(), found))
    }
}

/// The namespace of the parameter resources; empty for a cluster-scoped kind.
fn param_namespace<'a>(
    row: &KindRow,
    reference: &'a ParamRef,
    namespace: &'a str,
) -> Result<&'a str, ParamsError> {
    match (row.is_namespaced(), &*reference.namespace, namespace) {
        (false, ..) => Ok(""),
        (true, "", "") => Err(ParamsError::ClusterScopedRequest),
        (true, "", namespace) => Ok(namespace),
        (true, explicit, _) => Ok(explicit),
    }
}
