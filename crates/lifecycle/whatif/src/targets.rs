//! Targets: which namespaces are resolved, and which of them a supposed change is about.

use crate::request::{FolderOverride, WhatIfChange};
use crate::state::ClusterState;
use crate::suggestions::Suggestion;
use mainstay_gocompat::quote;
use mainstay_resolver::Subscription;
use std::collections::BTreeSet;

/// The namespace of operators where neither the user nor the cluster names one.
const USUAL_NAMESPACE: &str = "operators";

/// A namespace that the state does not know.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("namespace {} has no objects", quote(.namespace))]
pub struct UnknownNamespace {
    /// The namespace.
    pub namespace: String,
    /// Which namespaces are known.
    pub suggestion: Option<Suggestion>,
}

/// Why a change has no target. Each names the change by its index.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ChangeTargetError {
    /// The namespace of the change is not resolved.
    #[error("namespace {} is not among the resolved namespaces", quote(.namespace))]
    FindNamespace {
        /// The index of the change.
        change: usize,
        /// The namespace.
        namespace: String,
        /// Which namespaces are resolved.
        suggestion: Option<Suggestion>,
    },
    /// No namespace has the Subscription.
    #[error("there is no Subscription {}", quote(.name))]
    FindSubscription {
        /// The index of the change.
        change: usize,
        /// The name of the Subscription.
        name: String,
        /// Which Subscriptions exist.
        suggestion: Option<Suggestion>,
    },
    /// Several namespaces may be meant.
    #[error("{}", one_of(.namespaces))]
    ChooseNamespace {
        /// The index of the change.
        change: usize,
        /// The namespaces.
        namespaces: Vec<String>,
    },
}

/// Says that a change or request is about one of several namespaces.
pub fn one_of(namespaces: &[String]) -> String {
    format!("it applies to one namespace, and several are possible: {}", namespaces.join(", "))
}

impl ChangeTargetError {
    /// The index of the change.
    pub const fn change(&self) -> usize {
        match self {
            Self::FindNamespace { change, .. }
            | Self::FindSubscription { change, .. }
            | Self::ChooseNamespace { change, .. } => *change,
        }
    }
}

/// The target of a change.
enum Target {
    /// Every namespace.
    Every,
    /// One namespace.
    One(String),
    /// ClusterExtensions only.
    Extensions,
}

/// The target of each of several changes.
pub struct ChangeTargets(Vec<Target>);

impl ChangeTargets {
    /// Finds the targets of changes among the namespaces that are resolved. `requests_packages` says
    /// whether packages are requested beside the Subscriptions of the state.
    ///
    /// # Errors
    /// If a namespace or Subscription does not exist, or several namespaces may be meant.
    pub fn of(
        changes: &[WhatIfChange],
        state: &ClusterState,
        namespaces: &[String],
        requests_packages: bool,
    ) -> Result<Self, ChangeTargetError> {
        let targets = changes
            .iter()
            .enumerate()
            .map(|(at, change)| target(at, change, state, namespaces, requests_packages));
        Ok(Self(targets.collect::<Result<_, _>>()?))
    }

    /// Whether the change of an index is about a namespace.
    pub fn concerns(&self, change: usize, namespace: &str) -> bool {
        self.0.get(change).is_some_and(|target| match target {
            Target::Every => true,
            Target::One(name) => name == namespace,
            Target::Extensions => false,
        })
    }
}

/// Checks that a namespace is known: by objects of the state, or by the list of `existing` ones.
///
/// # Errors
/// If the namespace is not known.
pub fn check_namespace(
    namespace: &str,
    state: &ClusterState,
    existing: Option<&[String]>,
) -> Result<(), UnknownNamespace> {
    let mut known: BTreeSet<&str> = state.known_namespaces();
    known.extend(existing.into_iter().flatten().map(String::as_str));
    if known.contains(namespace) {
        return Ok(());
    }
    let suggestion = Suggestion::of(namespace, known);
    Err(UnknownNamespace { namespace: namespace.to_owned(), suggestion })
}

/// The namespaces that are resolved where the user names none: those with Subscriptions. Without any,
/// it is the namespace that is meant for operators; or none, if the state has ClusterExtensions and
/// neither `changes` nor other requests (`requests_objects`) are about a namespace.
pub fn namespaces_to_resolve(
    state: &ClusterState,
    changes: &[WhatIfChange],
    requests_objects: bool,
) -> Vec<String> {
    let mut subscribed = state.subscribed();
    let only_extensions = !state.extensions.is_empty()
        && !requests_objects
        && changes.iter().all(WhatIfChange::is_about_catalog);
    if subscribed.is_empty() && !only_extensions {
        // A namespace with an OperatorGroup is meant for operators.
        let mut grouped = state.namespaces.iter().filter(|(_, state)| !state.groups.is_empty());
        let has_usual = grouped.clone().any(|(name, _)| name == USUAL_NAMESPACE);
        subscribed.push(match grouped.next() {
            Some((name, _)) if !has_usual => name.clone(),
            _ => USUAL_NAMESPACE.to_owned(),
        });
    }
    subscribed
}

/// The target of a change.
fn target(
    at: usize,
    change: &WhatIfChange,
    state: &ClusterState,
    namespaces: &[String],
    requests_packages: bool,
) -> Result<Target, ChangeTargetError> {
    let with = |is_meant: &dyn Fn(&Subscription) -> bool| -> Vec<&String> {
        let has = |namespace: &&String| {
            let state = state.namespaces.get(*namespace);
            state.is_some_and(|state| state.subscriptions.iter().any(is_meant))
        };
        namespaces.iter().filter(has).collect()
    };
    let found: Vec<&String> = match change {
        WhatIfChange::Unsubscribe { namespace: Some(namespace), .. } => {
            if !namespaces.contains(namespace) {
                let known = namespaces.iter().map(String::as_str);
                return Err(ChangeTargetError::FindNamespace {
                    change: at,
                    namespace: namespace.clone(),
                    suggestion: Suggestion::of(namespace, known),
                });
            }
            return Ok(Target::One(namespace.clone()));
        }
        WhatIfChange::Unsubscribe { namespace: None, name } => {
            with(&|subscription| subscription.name == *name)
        }
        WhatIfChange::Subscribe(request) => {
            with(&|subscription| subscription.package == request.package)
        }
        WhatIfChange::Install(bundle) => {
            with(&|subscription| subscription.installed_csv == *bundle)
        }
        WhatIfChange::ReplaceContent(FolderOverride { name, .. }) | WhatIfChange::Outage(name)
            if state.is_for_extensions_only(name, requests_packages) =>
        {
            return Ok(Target::Extensions);
        }
        WhatIfChange::ReplaceContent(_)
        | WhatIfChange::Outage(_)
        | WhatIfChange::Prohibit(_)
        | WhatIfChange::KubeVersion(_) => return Ok(Target::Every),
    };
    let several =
        |namespaces: Vec<String>| ChangeTargetError::ChooseNamespace { change: at, namespaces };
    match (found.as_slice(), namespaces) {
        ([one], _) => Ok(Target::One((*one).clone())),
        ([], [one]) => Ok(Target::One(one.clone())),
        ([], all) => Err(match change {
            WhatIfChange::Unsubscribe { name, .. } => {
                let known = state.namespaces.values().flat_map(|state| &state.subscriptions);
                let known = known.map(|subscription| &*subscription.name);
                let suggestion = Suggestion::of(name, known);
                ChangeTargetError::FindSubscription { change: at, name: name.clone(), suggestion }
            }
            _ => several(all.to_vec()),
        }),
        (found, _) => Err(several(found.iter().map(|name| (*name).clone()).collect())),
    }
}
