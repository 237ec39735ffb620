//! The policies and bindings of a store, read and compiled once.
//!
//! Whoever asks compares revisions with what was read before: a policy is in force as soon as the
//! write that made it was answered. What is compiled stays as long as the policy's generation does.

use mainstay_object::{Gvk, Object};
use mainstay_policy::hints::param_kind;
use mainstay_policy::judge::{Failure, Programs};
use mainstay_policy::matching::Constraints;
use mainstay_store::{List, Store};
use parking_lot::Mutex;
use serde_json::Value;
use std::fmt;
use std::sync::{Arc, OnceLock};

/// What the store calls policies.
pub const POLICIES: &str = "admissionregistration.k8s.io/validatingadmissionpolicies";
const BINDINGS: &str = "admissionregistration.k8s.io/validatingadmissionpolicybindings";

/// A policy.
#[derive(Debug)]
pub(super) struct Policy {
    pub name: Box<str>,
    uid: Box<str>,
    generation: i64,
    spec: Value,
    pub failure: Failure,
    pub constraints: Constraints,
    /// The kind of its parameters.
    pub params: Option<Gvk>,
    programs: OnceLock<Programs>,
}

impl Policy {
    fn read(object: &Object) -> Self {
        let spec = object.get(&["spec"]).cloned().unwrap_or_default();
        Self {
            name: object.name().into(),
            uid: object.uid().into(),
            generation: object.generation(),
            failure: Failure::read(&spec),
            constraints: Constraints::read(spec.get("matchConstraints").unwrap_or(&Value::Null)),
            params: param_kind(&spec),
            programs: OnceLock::new(),
            spec,
        }
    }

    /// Its expressions, compiled when the first request meets it.
    pub(super) fn programs(&self) -> &Programs {
        self.programs.get_or_init(|| Programs::read(&self.spec))
    }

    /// `paramKind` as Go prints it.
    pub(super) fn shown_params(&self) -> String {
        let text = |field| {
            self.spec
                .pointer(&format!("/paramKind/{field}"))
                .and_then(Value::as_str)
                .unwrap_or_default()
        };
        format!("&ParamKind{{APIVersion:{},Kind:{},}}", text("apiVersion"), text("kind"))
    }
}

/// Where and how a policy is in force.
#[derive(Debug)]
pub(super) struct Binding {
    pub name: Box<str>,
    pub policy: Box<str>,
    /// What it is about, if that is less than the policy says.
    pub constraints: Option<Constraints>,
    /// The parameters.
    pub params: Option<ParamRef>,
    /// `Deny`, `Warn`, `Audit`.
    pub actions: Vec<Box<str>>,
}

/// Which parameters a binding means.
#[derive(Debug)]
pub(super) struct ParamRef {
    pub name: Box<str>,
    pub namespace: Box<str>,
    /// A label selector.
    pub selector: Value,
    /// Whether none is a failure.
    pub required: bool,
}

impl Binding {
    fn read(object: &Object) -> Self {
        let set = |field: &str| object.get(&["spec", field]).filter(|value| !value.is_null());
        let params = set("paramRef").map(|params| {
            let text = |field: &str| params.get(field).and_then(Value::as_str).unwrap_or_default();
            ParamRef {
                name: text("name").into(),
                namespace: text("namespace").into(),
                selector: params.get("selector").cloned().unwrap_or_default(),
                required: text("parameterNotFoundAction") == "Deny",
            }
        });
        Self {
            name: object.name().into(),
            policy: object.str(&["spec", "policyName"]).unwrap_or_default().into(),
            constraints: set("matchResources").map(Constraints::read),
            params,
            actions: object
                .array(&["spec", "validationActions"])
                .iter()
                .filter_map(|action| Some(action.as_str()?.into()))
                .collect(),
        }
    }
}

/// A policy that is in force, with its bindings; both in order of their names.
#[derive(Debug)]
pub(super) struct Hook {
    pub policy: Arc<Policy>,
    pub bindings: Vec<Binding>,
}

/// The policies in force.
#[derive(Default)]
pub(crate) struct Policies(Mutex<Held>);

#[derive(Default)]
struct Held {
    /// The revisions that it was made of.
    revisions: Vec<u64>,
    hooks: Arc<Vec<Hook>>,
}

impl fmt::Debug for Policies {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} policies in force", self.0.lock().hooks.len())
    }
}

impl Policies {
    /// Whether there may be any in force.
    pub(super) fn are_there(store: &Store) -> bool {
        !store.list(BINDINGS, None).is_empty() && !store.list(POLICIES, None).is_empty()
    }

    /// Those in force now.
    pub(super) fn current(&self, store: &Store) -> Arc<Vec<Hook>> {
        let (policies, bindings) = (store.list(POLICIES, None), store.list(BINDINGS, None));
        let revisions = || policies.iter().chain(bindings.iter()).map(|stored| stored.revision);
        let mut held = self.0.lock();
        // No two objects have a revision in common, so the same ones are the same objects.
        if !held.revisions.iter().copied().eq(revisions()) {
            held.hooks = Arc::new(hooks(&policies, &bindings, &held.hooks));
            held.revisions = revisions().collect();
        }
        held.hooks.clone()
    }
}

fn hooks(policies: &List, bindings: &List, before: &[Hook]) -> Vec<Hook> {
    let mut bindings: Vec<Binding> =
        bindings.iter().map(|stored| Binding::read(&stored.object())).collect();
    bindings.sort_by(|a, b| (&a.policy, &a.name).cmp(&(&b.policy, &b.name)));
    let mut bindings = bindings.into_iter().peekable();
    let mut hooks = Vec::new();
    for stored in policies.iter() {
        let name = &*stored.key.name;
        while bindings.next_if(|binding| *binding.policy < *name).is_some() {}
        let mut own = Vec::new();
        while let Some(binding) = bindings.next_if(|binding| *binding.policy == *name) {
            own.push(binding);
        }
        if own.is_empty() {
            continue;
        }
        let object = stored.object();
        let known = before.iter().map(|hook| &hook.policy).find(|policy| {
            *policy.name == *name
                && *policy.uid == *object.uid()
                && policy.generation == object.generation()
        });
        let policy = known.cloned().unwrap_or_else(|| Arc::new(Policy::read(&object)));
        hooks.push(Hook { policy, bindings: own });
    }
    hooks
}
