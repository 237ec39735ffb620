//! `ValidatingAdmissionPolicy`: dispatches each write to the policies in force.
//!
//! Rules and texts: apiserver's `pkg/admission/plugin/policy/validating/dispatcher.go`. If several
//! policies deny a write, the response names the first by name; Kubernetes names any of them.

use super::index::{Policies, PolicyBinding, PolicyHook, ValidatingPolicy};
use super::params::{ParamSource, Params};
use super::request::{self, RequestLabels};
use crate::{ADMITTED, AdmissionAttributes, AdmissionDecision, Plugin};
use mainstay_gocompat::values;
use mainstay_kinds::KindRow;
use mainstay_object::{Reason, Status};
use mainstay_policy::evaluate::EvaluationInput;
use mainstay_policy::matching::{EquivalentIndex, GroupVersionResource};
use mainstay_policy::validator::{FailurePolicy, PolicyViolation, ValidationResult};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

/// The plugin that evaluates validating admission policies.
pub(crate) struct ValidatingAdmissionPolicy;

/// Whether policies never apply to a kind: policies themselves and reviews of identities and
/// permissions. So no policy can lock out all users.
fn is_exempt(row: &KindRow) -> bool {
    match &*row.group {
        "admissionregistration.k8s.io" => row.plural.contains("admissionpolic"),
        "authentication.k8s.io" | "authorization.k8s.io" => true,
        _ => false,
    }
}

impl Plugin for ValidatingAdmissionPolicy {
    fn handles(&self, attributes: &AdmissionAttributes<'_>) -> bool {
        Policies::may_exist(&attributes.admission.store) && !is_exempt(attributes.row)
    }

    fn validate<'a>(&'a self, attributes: &'a AdmissionAttributes<'_>) -> AdmissionDecision<'a> {
        let hooks = attributes.admission.policies.current(&attributes.admission.store);
        let mut dispatcher = Dispatcher::new(attributes);
        let matched: Vec<MatchedPolicy> =
            (0..hooks.len()).filter_map(|at| dispatcher.match_policy(at, &hooks[at])).collect();
        if matched.is_empty() {
            return dispatcher
                .first_denial()
                .map_or(ADMITTED, |status| AdmissionDecision::Ready(Err(status)));
        }
        AdmissionDecision::Pending(Box::pin(async move {
            dispatcher.validate_policies(&hooks, &matched).await
        }))
    }
}

/// A policy that matches the request, with its matching bindings.
struct MatchedPolicy {
    /// Index in the list of hooks.
    policy_index: usize,
    resource: EquivalentIndex,
    /// The index and the parameters of each binding.
    bindings: Vec<(usize, Params)>,
}

/// A denial of the request.
struct Denial {
    policy: Box<str>,
    binding: Option<Box<str>>,
    message: String,
    reason: String,
}

/// The evaluation of policies for one request.
struct Dispatcher<'a, 'r> {
    attributes: &'a AdmissionAttributes<'r>,
    equivalents: Vec<Arc<KindRow>>,
    /// Denials, with the index of the policy: the lowest index counts.
    denials: Vec<(usize, Denial)>,
    /// Audit annotations of the current policy: the distinct values by key.
    audit_annotations: BTreeMap<String, Vec<String>>,
}

/// Maximum length of the value of an audit annotation, in bytes.
const MAX_AUDIT_ANNOTATION: usize = 10 * 1024;
/// The audit annotation with the validations that failed.
const FAILURE_ANNOTATION: &str = "validation.policy.admission.k8s.io/validation_failure";

impl<'a, 'r> Dispatcher<'a, 'r> {
    fn new(attributes: &'a AdmissionAttributes<'r>) -> Self {
        let equivalents =
            request::equivalent_rows(attributes, &attributes.admission.registry.kinds());
        Self { attributes, equivalents, denials: Vec::new(), audit_annotations: BTreeMap::new() }
    }

    /// Denies the request because of an error in a policy or a binding, unless failures are ignored.
    fn deny_misconfigured(
        &mut self,
        policy_index: usize,
        policy: &ValidatingPolicy,
        binding: Option<&PolicyBinding>,
        error: &dyn fmt::Display,
    ) {
        if policy.failure_policy == FailurePolicy::Ignore {
            return;
        }
        let what = if binding.is_some() { "binding" } else { "policy" };
        let message = format!("failed to configure {what}: {error}");
        self.deny(policy_index, policy, binding, message, String::new());
    }

    fn deny(
        &mut self,
        policy_index: usize,
        policy: &ValidatingPolicy,
        binding: Option<&PolicyBinding>,
        message: String,
        reason: String,
    ) {
        let binding = binding.map(|binding| binding.name.clone());
        self.denials
            .push((policy_index, Denial { policy: policy.name.clone(), binding, message, reason }));
    }

    /// Matches the request with a policy and its bindings, and collects their parameters.
    fn match_policy(&mut self, policy_index: usize, hook: &PolicyHook) -> Option<MatchedPolicy> {
        let attributes = self.attributes;
        let request_attributes = request::request_attributes(attributes);
        let rows = self.equivalents.clone();
        let equivalents: Vec<GroupVersionResource<'_>> =
            rows.iter().map(|row| request::resource(row)).collect();
        let labels = RequestLabels(attributes);
        let policy = &*hook.policy;
        let resource = match policy.criteria.matches(&request_attributes, &equivalents, &labels) {
            Ok(matched) => matched?,
            Err(error) => {
                self.deny_misconfigured(policy_index, policy, None, &error);
                return None;
            }
        };
        let source = match ParamSource::find(policy, &attributes.admission.registry.kinds()) {
            Ok(source) => source,
            Err(error) => {
                self.deny_misconfigured(policy_index, policy, None, &error);
                return None;
            }
        };
        let mut bindings = Vec::new();
        for (at, binding) in hook.bindings.iter().enumerate() {
            let matched = match &binding.criteria {
                Some(criteria) => criteria.matches(&request_attributes, &equivalents, &labels),
                None => Ok(Some(None)),
            };
            match matched {
                Ok(None) => continue,
                Ok(Some(_)) => {}
                Err(error) => {
                    self.deny_misconfigured(policy_index, policy, Some(binding), &error);
                    continue;
                }
            }
            let store = &attributes.admission.store;
            match source.collect(policy, binding, attributes.namespace, store) {
                Ok(params) => bindings.push((at, params)),
                Err(error) => self.deny_misconfigured(policy_index, policy, Some(binding), &error),
            }
        }
        (!bindings.is_empty()).then_some(MatchedPolicy { policy_index, resource, bindings })
    }

    /// Evaluates the policies; yields to other tasks between two parameter resources.
    async fn validate_policies(
        mut self,
        hooks: &[PolicyHook],
        matched: &[MatchedPolicy],
    ) -> Result<(), Status> {
        let attributes = self.attributes;
        let namespace = request::namespace_object(attributes)?;
        let authorizer = request::request_authorizer(attributes);
        let own_request = request::request_variable(attributes, attributes.row);
        let equivalents = self.equivalents.clone();
        for MatchedPolicy { policy_index, resource, bindings } in matched {
            let hook = &hooks[*policy_index];
            let row = resource.map_or(attributes.row, |index| &*equivalents[index]);
            let objects = match request::versioned_objects(attributes, row).await {
                Ok(objects) => objects,
                Err(status) => {
                    let message = format!("failed to convert object version: {}", status.message);
                    for (binding, _) in bindings {
                        self.deny_misconfigured(
                            *policy_index,
                            &hook.policy,
                            Some(&hook.bindings[*binding]),
                            &message,
                        );
                    }
                    continue;
                }
            };
            let request_variable = request::request_variable(attributes, row);
            // Match conditions see the kind of the policy's rule, but the resource of the request.
            let mut condition_request = request_variable.clone();
            condition_request["resource"] = own_request["resource"].clone();
            for (binding, params) in bindings {
                let binding = &hook.bindings[*binding];
                for at_param in 0..params.count() {
                    if at_param > 0 {
                        tokio::task::yield_now().await;
                    }
                    let params = params.get(at_param);
                    let input = EvaluationInput {
                        object: &objects.object,
                        old: &objects.old,
                        request: &request_variable,
                        params: &params,
                        namespace: &namespace,
                        authorizer: Some(&authorizer),
                    };
                    let condition_input = EvaluationInput { request: &condition_request, ..input };
                    let result = hook.policy.compiled_policy().validate(input, condition_input);
                    self.apply_actions(*policy_index, &hook.policy, binding, result);
                }
            }
            for (key, values) in std::mem::take(&mut self.audit_annotations) {
                let name = format!("{}/{key}", hook.policy.name);
                attributes.warnings.annotate(name, values.join(", "));
            }
        }
        self.first_denial().map_or(Ok(()), Err)
    }

    /// Applies the validation actions of a binding to the result of its policy.
    fn apply_actions(
        &mut self,
        policy_index: usize,
        policy: &ValidatingPolicy,
        binding: &PolicyBinding,
        result: ValidationResult,
    ) {
        for violation in result.violations {
            for action in &binding.actions {
                match &**action {
                    "Deny" => self.deny(
                        policy_index,
                        policy,
                        Some(binding),
                        violation.message.clone(),
                        violation.reason.clone(),
                    ),
                    "Warn" => self.attributes.warnings.add(format!(
                        "Validation failed for ValidatingAdmissionPolicy '{}' with binding '{}': {}",
                        policy.name, binding.name, violation.message
                    )),
                    "Audit" => {
                        let failure = failure_annotation(policy, binding, &violation);
                        self.attributes.warnings.annotate(FAILURE_ANNOTATION.to_owned(), failure);
                    }
                    _ => {}
                }
            }
        }
        for (key, mut value) in result.audit_annotations {
            value.truncate(value.floor_char_boundary(MAX_AUDIT_ANNOTATION));
            let values = self.audit_annotations.entry(key).or_default();
            if !values.contains(&value) {
                values.push(value);
            }
        }
        for message in result.audit_errors {
            self.deny(policy_index, policy, Some(binding), message, String::new());
        }
    }

    /// The status of the first denial, in the order of policies.
    fn first_denial(&self) -> Option<Status> {
        let (_, denial) = self.denials.iter().min_by_key(|(at, _)| *at)?;
        let Denial { policy, binding, message, reason } = denial;
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

/// The audit annotation of a violation, as Go encodes it.
fn failure_annotation(
    policy: &ValidatingPolicy,
    binding: &PolicyBinding,
    violation: &PolicyViolation,
) -> String {
    let quoted = |text: &str| {
        let mut out = String::new();
        values::write_text(text, &mut out);
        out
    };
    let actions: Vec<String> = binding.actions.iter().map(|action| quoted(action)).collect();
    format!(
        r#"[{{"message":{},"policy":{},"binding":{},"expressionIndex":{},"validationActions":[{}]}}]"#,
        quoted(&violation.message),
        quoted(&policy.name),
        quoted(&binding.name),
        violation.index,
        actions.join(",")
    )
}
