//! The parameters of a policy: objects that a binding names, or selects.
//!
//! Rules and texts: apiserver's `pkg/admission/plugin/policy/generic/policy_dispatcher.go`.

use super::index::{Binding, ParamRef, Policy};
use mainstay_conversion::forms;
use mainstay_kinds::{KindRow, Kinds};
use mainstay_object::selector::LabelSelector;
use mainstay_store::{Store, Stored};
use serde_json::Value;
use std::sync::Arc;

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
    pub(super) fn of(policy: &Policy, kinds: &Kinds) -> Result<Self, String> {
        let Some(kind) = &policy.params else { return Ok(Self(None)) };
        match kinds.by_gvk(kind) {
            Some(row) => Ok(Self(Some(row.clone()))),
            None => Err(format!(
                "failed to find resource referenced by paramKind: '{}'",
                mainstay_policy::hints::kind_text(kind)
            )),
        }
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
    ) -> Result<Params, String> {
        let (Some(row), Some(wanted)) = (&self.0, &binding.params) else { return Ok(Params::None) };
        let place = place(row, wanted, namespace)?;
        if !row.is_stored() {
            let kind = policy.shown_params();
            return Err(format!("paramKind kind `{kind}` not yet synced to use for admission"));
        }
        if !row.is_namespaced() && !wanted.namespace.is_empty() {
            return Err("paramRef.namespace must not be provided for a cluster-scoped `paramKind`"
                .to_owned());
        }
        let found = if wanted.name.is_empty() {
            let selector =
                LabelSelector::from_value(&wanted.selector).map_err(|error| error.to_string())?;
            let all = store.list(&row.storage, row.is_namespaced().then_some(place));
            all.iter().filter(|stored| stored.matches(&selector)).cloned().collect()
        } else {
            store.find(&row.storage, place, &wanted.name).into_iter().collect::<Vec<_>>()
        };
        if found.is_empty() && wanted.required {
            return Err(
                "no params found for policy binding with `Deny` parameterNotFoundAction".to_owned()
            );
        }
        Ok(Params::Each(row.clone(), found))
    }
}

/// The namespace in which parameters are looked for; empty for the cluster.
fn place<'a>(row: &KindRow, wanted: &'a ParamRef, namespace: &'a str) -> Result<&'a str, String> {
    match (row.is_namespaced(), &*wanted.namespace, namespace) {
        (false, ..) => Ok(""),
        (true, "", "") => {
            let why = "cannot use namespaced paramRef in policy binding that matches cluster-scoped resources";
            Err(why.to_owned())
        }
        (true, "", namespace) => Ok(namespace),
        (true, named, _) => Ok(named),
    }
}
