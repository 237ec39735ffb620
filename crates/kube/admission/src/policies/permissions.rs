//! Nobody makes a policy show what they may not read: who names parameters must be allowed to read
//! them.
//!
//! Rules and texts: kubernetes' `pkg/registry/admissionregistration/…/authz.go`. The original says
//! it with the other errors of fields, when there are none of those.

use super::index::POLICIES;
use crate::{ADMITTED, Attributes, Operation, Plugin, Verdict};
use mainstay_auth::MASTERS;
use mainstay_auth::authz;
use mainstay_object::{FieldError, FieldPath, Gvk, Object, Status};
use mainstay_policy::hints::param_kind;
use serde_json::Value;

/// Judges who writes policies and bindings with parameters.
pub(crate) struct ParameterPermissions;

impl Plugin for ParameterPermissions {
    fn handles(&self, attributes: &Attributes<'_>) -> bool {
        &*attributes.row.group == "admissionregistration.k8s.io"
            && attributes.subresource.is_empty()
            && matches!(attributes.operation, Operation::Create | Operation::Update)
            && !attributes.identity.is_in(MASTERS)
    }

    fn validate<'a>(&'a self, attributes: &'a Attributes<'_>) -> Verdict<'a> {
        let Some(object) = &attributes.object else { return ADMITTED };
        let refused = match &*attributes.row.kind {
            "ValidatingAdmissionPolicy" => policy(attributes, object),
            "ValidatingAdmissionPolicyBinding" => binding(attributes, object),
            _ => None,
        };
        let Some((field, why)) = refused else { return ADMITTED };
        let error = FieldError::forbidden(&FieldPath::new("spec").child(field), why);
        let row = attributes.row;
        Verdict::Now(Err(Status::invalid(&row.group, &row.kind, object.name(), &[error])))
    }
}

/// Whether the parts of `spec` that matter are as they were.
fn is_same(attributes: &Attributes<'_>, object: &Object, fields: &[&str]) -> bool {
    attributes.old.is_some_and(|old| {
        fields.iter().all(|field| old.get(&["spec", field]) == object.get(&["spec", field]))
    })
}

fn spec(object: &Object) -> &Value {
    object.get(&["spec"]).unwrap_or(&Value::Null)
}

/// The plural of a kind that is served.
fn plural(attributes: &Attributes<'_>, kind: &Gvk) -> Option<String> {
    let kinds = attributes.admission.registry.kinds();
    kinds.by_gvk(kind).map(|row| (*row.plural).to_owned())
}

/// The requester as Go prints it.
fn user(attributes: &Attributes<'_>) -> String {
    let who = attributes.identity;
    let extra: Vec<String> =
        who.extra().iter().map(|(key, values)| format!("{key}:[{}]", values.join(" "))).collect();
    format!(
        "&{{{} {} [{}] map[{}]}}",
        who.user(),
        who.uid(),
        who.groups().join(" "),
        extra.join(" ")
    )
}

fn policy(attributes: &Attributes<'_>, object: &Object) -> Option<(&'static str, String)> {
    let kind = param_kind(spec(object))?;
    if is_same(attributes, object, &["paramKind"]) {
        return None;
    }
    let resource = plural(attributes, &kind).unwrap_or_else(|| "*".to_owned());
    let asked = authz::Attributes::resource(attributes.identity, "get", &kind.group, &resource)
        .in_namespace("*")
        .with_name("*");
    if attributes.admission.authorizer.decide(&asked).is_allowed() {
        return None;
    }
    let version = object.str(&["spec", "paramKind", "apiVersion"]).unwrap_or_default();
    let why = format!(
        "user {} must have \"get\" permission on all objects of the referenced paramKind (kind={}, apiVersion={version})",
        user(attributes),
        kind.kind
    );
    Some(("paramKind", why))
}

fn binding(attributes: &Attributes<'_>, object: &Object) -> Option<(&'static str, String)> {
    object.get(&["spec", "paramRef"]).filter(|wanted| !wanted.is_null())?;
    if is_same(attributes, object, &["paramRef", "policyName"]) {
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
    let wanted = text(&["spec", "paramRef", "name"]);
    let verb = if wanted.is_empty() { "list" } else { "get" };
    let asked = authz::Attributes::resource(attributes.identity, verb, group, resource)
        .in_namespace(text(&["spec", "paramRef", "namespace"]))
        .with_name(wanted);
    if attributes.admission.authorizer.decide(&asked).is_allowed() {
        return None;
    }
    let user = user(attributes);
    let everything = format!(
        "to determine minimum required permissions and user {user} does not have \"{verb}\" permission for all groups, versions and resources"
    );
    let why = match (policy, &found) {
        (None, _) => format!("unable to get policy {name} {everything}"),
        (Some(policy), Some((kind, None))) => {
            let version = policy.str(&["spec", "paramKind", "apiVersion"]).unwrap_or_default();
            let shown = format!("&ParamKind{{APIVersion:{version},Kind:{},}}", kind.kind);
            format!("unable to resolve paramKind {shown} {everything}")
        }
        _ => format!(
            "user {user} does not have \"{verb}\" permission on the object referenced by paramRef"
        ),
    };
    Some(("paramRef", why))
}
