//! `ValidatingAdmissionPolicy`: every write is held against the policies in force.
//!
//! Rules and texts: apiserver's `pkg/admission/plugin/policy/validating/dispatcher.go`. Where
//! several refuse, the first by name is told; the original tells any.

use super::index::{Binding, Hook, Policies, Policy};
use super::params::{Params, Source};
use super::request::{self, Labelled};
use crate::{ADMITTED, Attributes, Plugin, Verdict};
use mainstay_gocompat::values;
use mainstay_kinds::KindRow;
use mainstay_object::{Reason, Status};
use mainstay_policy::evaluate::Input;
use mainstay_policy::judge::{Broken, Failure, Judged};
use mainstay_policy::matching::{Known, Resource};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

/// Asks the policies in force.
pub(crate) struct ValidatingAdmissionPolicy;

/// What is never asked about, so that no policy can lock everybody out: policies themselves, and
/// questions about who is who and who may do what.
fn is_exempt(row: &KindRow) -> bool {
    match &*row.group {
        "admissionregistration.k8s.io" => row.plural.contains("admissionpolic"),
        "authentication.k8s.io" | "authorization.k8s.io" => true,
        _ => false,
    }
}

impl Plugin for ValidatingAdmissionPolicy {
    fn handles(&self, attributes: &Attributes<'_>) -> bool {
        Policies::are_there(&attributes.admission.store) && !is_exempt(attributes.row)
    }

    fn validate<'a>(&'a self, attributes: &'a Attributes<'_>) -> Verdict<'a> {
        let hooks = attributes.admission.policies.current(&attributes.admission.store);
        let mut session = Session::new(attributes);
        let meant: Vec<Meant> =
            (0..hooks.len()).filter_map(|at| session.meant(at, &hooks[at])).collect();
        if meant.is_empty() {
            return session.refusal().map_or(ADMITTED, |status| Verdict::Now(Err(status)));
        }
        Verdict::Later(Box::pin(async move { session.judge(&hooks, &meant).await }))
    }
}

/// A policy that a request is meant by, and the bindings that say so.
struct Meant {
    hook: usize,
    known: Known,
    bindings: Vec<(usize, Params)>,
}

/// A request that is refused.
struct Denied {
    policy: Box<str>,
    binding: Option<Box<str>>,
    message: String,
    reason: String,
}

struct Session<'a, 'r> {
    attributes: &'a Attributes<'r>,
    others: Vec<Arc<KindRow>>,
    /// Refusals, with the position of the policy: the first counts.
    denied: Vec<(usize, Denied)>,
    /// What the present policy has noted, by key: different values.
    notes: BTreeMap<String, Vec<String>>,
}

/// The longest value that is noted, in bytes.
const LONGEST_NOTE: usize = 10 * 1024;
/// The note that says which rule did not hold.
const FAILURE_NOTE: &str = "validation.policy.admission.k8s.io/validation_failure";

impl<'a, 'r> Session<'a, 'r> {
    fn new(attributes: &'a Attributes<'r>) -> Self {
        let others = request::others(attributes, &attributes.admission.registry.kinds());
        Self { attributes, others, denied: Vec::new(), notes: BTreeMap::new() }
    }

    /// Something is wrong with a policy or a binding.
    fn failed(
        &mut self,
        at: usize,
        policy: &Policy,
        binding: Option<&Binding>,
        error: &dyn fmt::Display,
    ) {
        if policy.failure == Failure::Ignore {
            return;
        }
        let what = if binding.is_some() { "binding" } else { "policy" };
        let message = format!("failed to configure {what}: {error}");
        self.deny(at, policy, binding, message, String::new());
    }

    fn deny(
        &mut self,
        at: usize,
        policy: &Policy,
        binding: Option<&Binding>,
        message: String,
        reason: String,
    ) {
        let binding = binding.map(|binding| binding.name.clone());
        self.denied.push((at, Denied { policy: policy.name.clone(), binding, message, reason }));
    }

    /// What is asked of a policy, if the request is meant by it.
    fn meant(&mut self, hook: usize, of: &Hook) -> Option<Meant> {
        let attributes = self.attributes;
        let asked = request::request_attributes(attributes);
        let rows = self.others.clone();
        let others: Vec<Resource<'_>> = rows.iter().map(|row| request::resource(row)).collect();
        let labels = Labelled(attributes);
        let policy = &*of.policy;
        let known = match policy.constraints.meets(&asked, &others, &labels) {
            Ok(known) => known?,
            Err(error) => {
                self.failed(hook, policy, None, &error);
                return None;
            }
        };
        let source = match Source::of(policy, &attributes.admission.registry.kinds()) {
            Ok(source) => source,
            Err(error) => {
                self.failed(hook, policy, None, &error);
                return None;
            }
        };
        let mut bindings = Vec::new();
        for (at, binding) in of.bindings.iter().enumerate() {
            let met = match &binding.constraints {
                Some(constraints) => constraints.meets(&asked, &others, &labels),
                None => Ok(Some(None)),
            };
            match met {
                Ok(None) => continue,
                Ok(Some(_)) => {}
                Err(error) => {
                    self.failed(hook, policy, Some(binding), &error);
                    continue;
                }
            }
            let store = &attributes.admission.store;
            match source.collect(policy, binding, attributes.namespace, store) {
                Ok(params) => bindings.push((at, params)),
                Err(error) => self.failed(hook, policy, Some(binding), &error),
            }
        }
        (!bindings.is_empty()).then_some(Meant { hook, known, bindings })
    }

    /// Evaluates, and lets others work between two sets of parameters.
    async fn judge(mut self, hooks: &[Hook], meant: &[Meant]) -> Result<(), Status> {
        let attributes = self.attributes;
        let namespace = request::namespace(attributes)?;
        let asking = request::asking(attributes);
        let own = request::described(attributes, attributes.row);
        let others = self.others.clone();
        for Meant { hook: at, known, bindings } in meant {
            let hook = &hooks[*at];
            let row = known.map_or(attributes.row, |at| &*others[at]);
            let shown = match request::versioned_objects(attributes, row).await {
                Ok(shown) => shown,
                Err(status) => {
                    let why = format!("failed to convert object version: {}", status.message);
                    for (binding, _) in bindings {
                        self.failed(*at, &hook.policy, Some(&hook.bindings[*binding]), &why);
                    }
                    continue;
                }
            };
            let described = request::described(attributes, row);
            // Conditions see the kind that the policy names, and the resource of the request.
            let mut conditional = described.clone();
            conditional["resource"] = own["resource"].clone();
            for (binding, params) in bindings {
                let binding = &hook.bindings[*binding];
                for at_param in 0..params.count() {
                    if at_param > 0 {
                        tokio::task::yield_now().await;
                    }
                    let params = params.get(at_param);
                    let input = Input {
                        object: &shown.object,
                        old: &shown.old,
                        request: &described,
                        params: &params,
                        namespace: &namespace,
                        asking: Some(&asking),
                    };
                    let conditional = Input { request: &conditional, ..input };
                    let judged = hook.policy.programs().judge(input, conditional);
                    self.told(*at, &hook.policy, binding, judged);
                }
            }
            for (key, values) in std::mem::take(&mut self.notes) {
                let name = format!("{}/{key}", hook.policy.name);
                attributes.warnings.annotate(name, values.join(", "));
            }
        }
        self.refusal().map_or(Ok(()), Err)
    }

    /// What becomes of what a policy says, as its binding has it.
    fn told(&mut self, at: usize, policy: &Policy, binding: &Binding, judged: Judged) {
        for broken in judged.broken {
            for action in &binding.actions {
                match &**action {
                    "Deny" => self.deny(
                        at,
                        policy,
                        Some(binding),
                        broken.message.clone(),
                        broken.reason.clone(),
                    ),
                    "Warn" => self.attributes.warnings.add(format!(
                        "Validation failed for ValidatingAdmissionPolicy '{}' with binding '{}': {}",
                        policy.name, binding.name, broken.message
                    )),
                    "Audit" => {
                        let failure = failure_note(policy, binding, &broken);
                        self.attributes.warnings.annotate(FAILURE_NOTE.to_owned(), failure);
                    }
                    _ => {}
                }
            }
        }
        for (key, mut value) in judged.notes {
            value.truncate(value.floor_char_boundary(LONGEST_NOTE));
            let values = self.notes.entry(key).or_default();
            if !values.contains(&value) {
                values.push(value);
            }
        }
        for message in judged.failed {
            self.deny(at, policy, Some(binding), message, String::new());
        }
    }

    /// The first refusal, by the order of policies.
    fn refusal(&self) -> Option<Status> {
        let (_, denied) = self.denied.iter().min_by_key(|(at, _)| *at)?;
        let Denied { policy, binding, message, reason } = denied;
        let with = binding.as_ref().map_or(String::new(), |name| format!(" with binding '{name}'"));
        let message =
            format!("ValidatingAdmissionPolicy '{policy}'{with} denied request: {message}");
        let mut status = self.attributes.forbidden(&message);
        status.reason = if reason.is_empty() { Reason::Invalid } else { Reason::parse(reason) };
        status.code = match status.reason {
            reason @ (Reason::Forbidden | Reason::Unauthorized | Reason::RequestEntityTooLarge) => {
                reason.code()
            }
            _ => Reason::Invalid.code(),
        };
        Some(status.with_cause("", message, ""))
    }
}

/// What is noted of a rule that does not hold, as Go writes it.
fn failure_note(policy: &Policy, binding: &Binding, broken: &Broken) -> String {
    let quoted = |text: &str| {
        let mut out = String::new();
        values::write_text(text, &mut out);
        out
    };
    let actions: Vec<String> = binding.actions.iter().map(|action| quoted(action)).collect();
    format!(
        r#"[{{"message":{},"policy":{},"binding":{},"expressionIndex":{},"validationActions":[{}]}}]"#,
        quoted(&broken.message),
        quoted(&policy.name),
        quoted(&binding.name),
        broken.at,
        actions.join(",")
    )
}
