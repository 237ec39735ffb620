//! The parameters of a policy: objects that a binding names, or selects.
//!
//! Rules and texts: apiserver's `pkg/admission/plugin/policy/generic/policy_dispatcher.go`.

use super::index::{Binding, ParamRef, Policy};
use mainstay_conversion::forms;
use mainstay_kinds::{KindRow, Kinds};
use mainstay_object::selector::{LabelSelector, SelectorError};
use mainstay_store::{Store, Stored};
use serde_json::Value;
use std::sync::Arc;

/// It cannot be told which parameters a policy is asked for.
#[derive(Debug, thiserror::Error)]
pub(super) enum ParamsError {
    /// Their kind is not served.
    #[error("failed to find resource referenced by paramKind: '{kind}'")]
    UnknownKind {
        /// The kind.
        kind: String,
    },
    /// Their kind is not stored here.
    #[error("paramKind kind `{kind}` not yet synced to use for admission")]
    NotStored {
        /// The kind.
        kind: String,
    },
    /// The binding names a namespace, and their kind has none.
    #[error("paramRef.namespace must not be provided for a cluster-scoped `paramKind`")]
    ClusterScopedKind,
    /// The binding names no namespace, and neither has the request.
    #[error(
        "cannot use namespaced paramRef in policy binding that matches cluster-scoped resources"
    )]
    ClusterScopedRequest,
    /// The binding selects them by what is no selector.
    #[error(transparent)]
    Selector(#[from] SelectorError),
    /// There are none, and there must be some.
    #[error("no params found for policy binding with `Deny` parameterNotFoundAction")]
    NotFound,
}

/// Where the parameters of a policy are.
#[derive(Debug)]
pub(super) struct Source(Option<Arc<KindRow>>);

/// The parameters for which a policy is asked.
#[derive(Debug)]
pub(super) enum Params {
    /// It is asked once, without any.
    None,
    /// It is asked for each of these.
    Each(Arc<KindRow>, Vec<Arc<Stored>>),
}

impl Params {
    /// How many times the policy is asked.
    pub(super) fn count(&self) -> usize {
        match self {
            Self::None => 1,
            Self::Each(_, all) => all.len(),
        }
    }

    /// One of them, read.
    pub(super) fn get(&self, at: usize) -> Value {
        match self {
            Self::None => Value::Null,
            Self::Each(row, all) => all
                .get(at)
                .map(|stored| forms::object(row, stored).into_value())
                .unwrap_or_default(),
        }
    }
}

impl Source {
    /// Finds the kind of a policy's parameters.
    ///
    /// # Errors
    /// It is not served.
    pub(super) fn of(policy: &Policy, kinds: &Kinds) -> Result<Self, ParamsError> {
        let Some(kind) = &policy.params else { return Ok(Self(None)) };
        let row = kinds.by_gvk(kind).ok_or_else(|| ParamsError::UnknownKind {
            kind: mainstay_policy::hints::kind_text(kind),
        })?;
        Ok(Self(Some(row.clone())))
    }

    /// The parameters that a binding means for a request in this namespace.
    ///
    /// # Errors
    /// There must be some and there are none, or nobody can tell which are meant.
    pub(super) fn collect(
        &self,
        policy: &Policy,
        binding: &Binding,
        namespace: &str,
        store: &Store,
    ) -> Result<Params, ParamsError> {
        let (Some(row), Some(wanted)) = (&self.0, &binding.params) else { return Ok(Params::None) };
        let place = place(row, wanted, namespace)?;
        if !row.is_stored() {
            let kind = policy.shown_params();
            return Err(ParamsError::NotStored { kind });
        }
        if !row.is_namespaced() && !wanted.namespace.is_empty() {
            return Err(ParamsError::ClusterScopedKind);
        }
        let found = if wanted.name.is_empty() {
            let selector = LabelSelector::from_value(&wanted.selector)?;
            let all = store.list(&row.storage, row.is_namespaced().then_some(place));
            all.iter().filter(|stored| stored.matches(&selector)).cloned().collect()
        } else {
            store.find(&row.storage, place, &wanted.name).into_iter().collect::<Vec<_>>()
        };
        if found.is_empty() && wanted.required {
            return Err(ParamsError::NotFound);
        }
        Ok(Params::Each(row.clone(), found))
    }
}

/// The namespace in which parameters are looked for; empty for the cluster.
fn place<'a>(
    row: &KindRow,
    wanted: &'a ParamRef,
    namespace: &'a str,
) -> Result<&'a str, ParamsError> {
    match (row.is_namespaced(), &*wanted.namespace, namespace) {
        (false, ..) => Ok(""),
        (true, "", "") => Err(ParamsError::ClusterScopedRequest),
        (true, "", namespace) => Ok(namespace),
        (true, named, _) => Ok(named),
    }
}
