//! Permissions on parameter resources: the author of a policy or binding must be allowed to read them.
//! Otherwise a policy could reveal their content.
//!
//! Rules and texts: kubernetes' `pkg/registry/admissionregistration/…/authz.go`. Kubernetes reports
//! the error among the field errors, if there are no others.

use super::index::POLICIES;
use crate::{ADMITTED, AdmissionAttributes, AdmissionDecision, Operation, Plugin};
use mainstay_auth::MASTERS;
use mainstay_auth::authz;
use mainstay_object::{FieldError, FieldPath, Gvk, Object, Status};
use mainstay_policy::type_checking::param_kind;
use serde_json::Value;

/// The plugin that checks authors of policies and bindings with parameters.
pub(crate) struct ParameterPermissions;

impl Plugin for ParameterPermissions {
    fn handles(&self, attributes: &AdmissionAttributes<'_>) -> bool {
        &*attributes.row.group == "admissionregistration.k8s.io"
            && attributes.subresource.is_empty()
            && matches!(attributes.operation, Operation::Create | Operation::Update)
            && !attributes.identity.is_in(MASTERS)
    }

    fn validate<'a>(&'a self, attributes: &'a AdmissionAttributes<'_>) -> AdmissionDecision<'a> {
        let Some(object) = &attributes.object else { return ADMITTED };
        let error = match &*attributes.row.kind {
            "ValidatingAdmissionPolicy" => check_policy(attributes, object),
            "ValidatingAdmissionPolicyBinding" => check_binding(attributes, object),
            _ => None,
        };
        let Some((field, detail)) = error else { return ADMITTED };
        let error = FieldError::forbidden(&FieldPath::new("spec").child(field), detail);
        let row = attributes.row;
        AdmissionDecision::Ready(Err(Status::invalid(
            &row.group,
            &row.kind,
            object.name(),
            &[error],
        )))
    }
}

/// Whether these fields of `spec` are unchanged.
fn is_unchanged(attributes: &AdmissionAttributes<'_>, object: &Object, fields: &[&str]) -> bool {
    attributes.old.is_some_and(|old| {
        fields.iter().all(|field| old.get(&["spec", field]) == object.get(&["spec", field]))
    })
}

fn spec(object: &Object) -> &Value {
    object.get(&["spec"]).unwrap_or(&Value::Null)
}

/// The plural of a served kind.
fn plural(attributes: &AdmissionAttributes<'_>, kind: &Gvk) -> Option<String> {
    let kinds = attributes.admission.registry.kinds();
    kinds.by_gvk(kind).map(|row| (*row.plural).to_owned())
}

/// The user of the request as Go prints it.
fn go_user(attributes: &AdmissionAttributes<'_>) -> String {
    let identity = attributes.identity;
    let extra: Vec<String> = identity
        .extra()
        .iter()
        .map(|(key, values)| format!("{key}:[{}]", values.join(" ")))
        .collect();
    format!(
        "&{{{} {} [{}] map[{}]}}",
        identity.user(),
        identity.uid(),
        identity.groups().join(" "),
        extra.join(" ")
    )
}

fn check_policy(
    attributes: &AdmissionAttributes<'_>,
    object: &Object,
) -> Option<(&'static str, String)> {
    let kind = param_kind(spec(object))?;
    if is_unchanged(attributes, object, &["paramKind"]) {
        return None;
    }
    let resource = plural(attributes, &kind).unwrap_or_else(|| "*".to_owned());
    let permission =
        authz::Attributes::resource(attributes.identity, "get", &kind.group, &resource)
            .in_namespace("*")
            .with_name("*");
    if attributes.admission.authorizer.decide(&permission).is_allowed() {
        return None;
    }
    let version = object.str(&["spec", "paramKind", "apiVersion"]).unwrap_or_default();
    let detail = format!(
        "user {} must have \"get\" permission on all objects of the referenced paramKind (kind={}, apiVersion={version})",
        go_user(attributes),
        kind.kind
    );
    Some(("paramKind", detail))
}

fn check_binding(
    attributes: &AdmissionAttributes<'_>,
    object: &Object,
) -> Option<(&'static str, String)> {
    object.get(&["spec", "paramRef"]).filter(|reference| !reference.is_null())?;
    if is_unchanged(attributes, object, &["paramRef", "policyName"]) {
        return None;
    }
    let text = |path: &[&str]| object.str(path).unwrap_or_default();
    let name = text(&["spec", "policyName"]);
    let policy = attributes.admission.store.find(POLICIES, "", name).map(|stored| stored.object());
    let kind = policy.as_ref().and_then(|policy| param_kind(spec(policy)));
    let found = kind.as_ref().map(|kind| (kind, plural(attributes, kind)));
    let (group, resource) = match &found {
        Some((kind, Some(plural))) => (&*kind.group, &**plural),
        Some((kind, None)) => (&*kind.group, "*"),
        None => ("*", "*"),
    };
    let param_name = text(&["spec", "paramRef", "name"]);
    let verb = if param_name.is_empty() { "list" } else { "get" };
    let permission = authz::Attributes::resource(attributes.identity, verb, group, resource)
        .in_namespace(text(&["spec", "paramRef", "namespace"]))
        .with_name(param_name);
    if attributes.admission.authorizer.decide(&permission).is_allowed() {
        return None;
    }
    let user = go_user(attributes);
    let requirement = format!(
        "to determine minimum required permissions and user {user} does not have \"{verb}\" permission for all groups, versions and resources"
    );
    let detail = match (policy, &found) {
        (None, _) => format!("unable to get policy {name} {requirement}"),
        (Some(policy), Some((kind, None))) => {
            let version = policy.str(&["spec", "paramKind", "apiVersion"]).unwrap_or_default();
            let param_kind = format!("&ParamKind{{APIVersion:{version},Kind:{},}}", kind.kind);
            format!("unable to resolve paramKind {param_kind} {requirement}")
        }
        _ => format!(
            "user {user} does not have \"{verb}\" permission on the object referenced by paramRef"
        ),
    };
    Some(("paramRef", detail))
}
