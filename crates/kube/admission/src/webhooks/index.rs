//! The webhooks of a store, read once.
//!
//! Whoever asks compares revisions with what was read before: a configuration is in force as soon
//! as the write that made it was answered.

use mainstay_object::Object;
use mainstay_outbound::{ClientConfig, ClientConfigError};
use mainstay_policy::Scope;
use mainstay_policy::judge::{Conditions, Failure};
use mainstay_policy::matching::Constraints;
use mainstay_store::{List, Store};
use parking_lot::Mutex;
use serde_json::Value;
use std::fmt;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

/// One of the two sorts of webhooks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Which {
    Mutating,
    Validating,
}

impl Which {
    /// What counts call it.
    pub(super) const fn kind(self) -> &'static str {
        match self {
            Self::Mutating => "admit",
            Self::Validating => "validating",
        }
    }

    /// What the store calls their configurations.
    const fn storage(self) -> &'static str {
        match self {
            Self::Mutating => "admissionregistration.k8s.io/mutatingwebhookconfigurations",
            Self::Validating => "admissionregistration.k8s.io/validatingwebhookconfigurations",
        }
    }
}

/// A webhook.
#[derive(Debug)]
pub(super) struct Hook {
    /// The name of the configuration that it stands in.
    pub(super) configuration: Box<str>,
    /// Its name in messages.
    pub(super) name: Box<str>,
    /// Tells it from all others: configuration, name, and which of several of that name.
    pub(super) id: Arc<str>,
    /// What it is about.
    pub(super) constraints: Constraints,
    /// Conditions under which it is asked.
    pub(super) conditions: Conditions,
    /// What a condition that fails means.
    pub(super) failure: Failure,
    /// Whether a failed call is as if it had agreed.
    pub(super) ignores: bool,
    /// How long a call may take.
    pub(super) timeout: Duration,
    /// Whether it may be asked about dry runs.
    pub(super) bears_dry_runs: bool,
    /// Whether it wants to be asked again if something changes after it.
    pub(super) reinvokes: bool,
    /// The version of reviews that it is sent; none if it speaks none that is known.
    pub(super) version: Option<&'static str>,
    /// Where it is, or why that is nowhere.
    pub(super) client: Result<ClientConfig, ClientConfigError>,
}

/// What conditions may name: no parameters, no variables.
static SCOPE: LazyLock<Scope> = LazyLock::new(|| Scope::new(false, false));

impl Hook {
    fn read(configuration: &str, at: usize, hook: &Value) -> Self {
        let text = |field: &str| hook.get(field).and_then(Value::as_str).unwrap_or_default();
        let versions = hook.get("admissionReviewVersions").and_then(Value::as_array);
        let mut versions = versions.into_iter().flatten().filter_map(Value::as_str);
        let known = |version| match version {
            "v1" => Some("admission.k8s.io/v1"),
            "v1beta1" => Some("admission.k8s.io/v1beta1"),
            _ => None,
        };
        let seconds = hook.get("timeoutSeconds").and_then(Value::as_u64).unwrap_or(10);
        Self {
            configuration: configuration.into(),
            name: text("name").into(),
            id: format!("{configuration}/{}/{at}", text("name")).into(),
            constraints: Constraints::of_webhook(hook),
            conditions: Conditions::read(&SCOPE, hook),
            failure: Failure::read(hook),
            ignores: text("failurePolicy") == "Ignore",
            timeout: Duration::from_secs(seconds),
            bears_dry_runs: matches!(text("sideEffects"), "None" | "NoneOnDryRun"),
            reinvokes: text("reinvocationPolicy") == "IfNeeded",
            version: versions.find_map(known),
            client: ClientConfig::read(hook.get("clientConfig").unwrap_or(&Value::Null)),
        }
    }
}

/// The webhooks in force.
#[derive(Default)]
pub(crate) struct Webhooks([Mutex<Held>; 2]);

#[derive(Default)]
struct Held {
    /// The revisions that it was made of.
    revisions: Vec<u64>,
    hooks: Arc<Vec<Arc<Hook>>>,
}

impl fmt::Debug for Webhooks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let count = |held: &Mutex<Held>| held.lock().hooks.len();
        write!(f, "{} webhooks in force", self.0.iter().map(count).sum::<usize>())
    }
}

impl Webhooks {
    /// Whether there may be any in force.
    pub(super) fn are_there(store: &Store, which: Which) -> bool {
        !store.list(which.storage(), None).is_empty()
    }

    /// Those in force now, in order of their configurations' names (by bytes).
    pub(super) fn current(&self, store: &Store, which: Which) -> Arc<Vec<Arc<Hook>>> {
        let configurations = store.list(which.storage(), None);
        let revisions = || configurations.iter().map(|stored| stored.revision);
        let mut held = self.0[usize::from(which == Which::Validating)].lock();
        // No two objects have a revision in common, so the same ones are the same objects.
        if !held.revisions.iter().copied().eq(revisions()) {
            held.hooks = Arc::new(hooks(&configurations));
            held.revisions = revisions().collect();
        }
        held.hooks.clone()
    }
}

fn hooks(configurations: &List) -> Vec<Arc<Hook>> {
    let mut objects: Vec<Object> = configurations.iter().map(|stored| stored.object()).collect();
    objects.sort_by(|one, other| one.name().cmp(other.name()));
    let of = |object: &Object| -> Vec<Arc<Hook>> {
        let hooks = object.array(&["webhooks"]).iter().enumerate();
        hooks.map(|(at, hook)| Arc::new(Hook::read(object.name(), at, hook))).collect()
    };
    objects.iter().flat_map(of).collect()
}
