//! Index of the policies and bindings in the store, read and compiled once.
//!
//! Each request compares revisions with those of the cached list. So a policy is in force as soon as
//! its write is acknowledged. Compiled expressions are reused while the policy's generation is the same.

use mainstay_object::{Gvk, Object};
use mainstay_policy::matching::MatchCriteria;
use mainstay_policy::type_checking::param_kind;
use mainstay_policy::validator::{CompiledPolicy, FailurePolicy};
use mainstay_store::{ListSnapshot, Store};
use parking_lot::Mutex;
use serde_json::Value;
use std::fmt;
use std::sync::{Arc, OnceLock};

/// The storage resource of policies.
pub const POLICIES: &str = "admissionregistration.k8s.io/validatingadmissionpolicies";
const BINDINGS: &str = "admissionregistration.k8s.io/validatingadmissionpolicybindings";

/// A `ValidatingAdmissionPolicy`.
#[derive(Debug)]
pub(super) struct ValidatingPolicy {
    pub name: Box<str>,
    uid: Box<str>,
    generation: i64,
    spec: Value,
    pub failure_policy: FailurePolicy,
    pub criteria: MatchCriteria,
    /// `paramKind`: the kind of its parameter resources.
    pub params: Option<Gvk>,
    compiled: OnceLock<CompiledPolicy>,
}

impl ValidatingPolicy {
    fn read(object: &Object) -> Self {
        let spec = object.get(&["spec"]).cloned().unwrap_or_default();
        Self {
            name: object.name().into(),
            uid: object.uid().into(),
            generation: object.generation(),
            failure_policy: FailurePolicy::read(&spec),
            criteria: MatchCriteria::of_policy(
                spec.get("matchConstraints").unwrap_or(&Value::Null),
            ),
            params: param_kind(&spec),
            compiled: OnceLock::new(),
            spec,
        }
    }

    /// The compiled expressions; they are compiled for the first request that matches.
    pub(super) fn compiled_policy(&self) -> &CompiledPolicy {
        self.compiled.get_or_init(|| CompiledPolicy::compile(&self.spec))
    }

    /// `paramKind` as Go prints it.
    pub(super) fn go_param_kind(&self) -> String {
        let text = |field| {
            self.spec
                .pointer(&format!("/paramKind/{field}"))
                .and_then(Value::as_str)
                .unwrap_or_default()
        };
        format!("&ParamKind{{APIVersion:{},Kind:{},}}", text("apiVersion"), text("kind"))
    }
}

/// A `ValidatingAdmissionPolicyBinding`.
#[derive(Debug)]
pub(super) struct PolicyBinding {
    pub name: Box<str>,
    pub policy: Box<str>,
    /// `matchResources`, which narrows the policy.
    pub criteria: Option<MatchCriteria>,
    /// `paramRef`.
    pub params: Option<ParamRef>,
    /// `validationActions`: `Deny`, `Warn`, `Audit`.
    pub actions: Vec<Box<str>>,
}

/// Reference of a binding to parameter resources.
#[derive(Debug)]
pub(super) struct ParamRef {
    pub name: Box<str>,
    pub namespace: Box<str>,
    /// A label selector.
    pub selector: Value,
    /// Whether a missing parameter resource is a failure.
    pub required: bool,
}

impl PolicyBinding {
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
            criteria: set("matchResources").map(MatchCriteria::of_policy),
            params,
            actions: object
                .array(&["spec", "validationActions"])
                .iter()
                .filter_map(|action| Some(action.as_str()?.into()))
                .collect(),
        }
    }
}

/// A policy in force with its bindings; both sorted by name.
#[derive(Debug)]
pub(super) struct PolicyHook {
    pub policy: Arc<ValidatingPolicy>,
    pub bindings: Vec<PolicyBinding>,
}

/// The policies in force.
#[derive(Default)]
pub(crate) struct Policies(Mutex<CachedHooks>);

#[derive(Default)]
struct CachedHooks {
    /// The revisions of the objects in the list.
    revisions: Vec<u64>,
    hooks: Arc<Vec<PolicyHook>>,
}

impl fmt::Debug for Policies {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} policies in force", self.0.lock().hooks.len())
    }
}

impl Policies {
    /// Whether policies may be in force.
    pub(super) fn may_exist(store: &Store) -> bool {
        !store.list(BINDINGS, None).is_empty() && !store.list(POLICIES, None).is_empty()
    }

    /// The policies in force now.
    pub(super) fn current(&self, store: &Store) -> Arc<Vec<PolicyHook>> {
        let (policies, bindings) = (store.list(POLICIES, None), store.list(BINDINGS, None));
        let revisions = || policies.iter().chain(bindings.iter()).map(|stored| stored.revision);
        let mut cache = self.0.lock();
        // A revision identifies one version of one object, so equal revisions are equal objects.
        if !cache.revisions.iter().copied().eq(revisions()) {
            cache.hooks = Arc::new(build_hooks(&policies, &bindings, &cache.hooks));
            cache.revisions = revisions().collect();
        }
        cache.hooks.clone()
    }
}

fn build_hooks(
    policies: &ListSnapshot,
    bindings: &ListSnapshot,
    previous: &[PolicyHook],
) -> Vec<PolicyHook> {
    let mut bindings: Vec<PolicyBinding> =
        bindings.iter().map(|stored| PolicyBinding::read(&stored.object())).collect();
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
        let cached = previous.iter().map(|hook| &hook.policy).find(|policy| {
            *policy.name == *name
                && *policy.uid == *object.uid()
                && policy.generation == object.generation()
        });
        let policy = cached.cloned().unwrap_or_else(|| Arc::new(ValidatingPolicy::read(&object)));
        hooks.push(PolicyHook { policy, bindings: own });
    }
    hooks
}
