//! Validation and defaults of `FlowSchemas` and `PriorityLevelConfigurations`
//! (`k8s.io/kubernetes/pkg/apis/flowcontrol/validation`).

use super::super::rules::{Errors, FieldRule, Node, Rule, one_of, semantically_equal, walk};
use super::object_field;
use crate::flow_defaults;
use mainstay_object::{FieldError, FieldErrorKind, Object, names};
use serde_json::{Map, Value, json};
use std::collections::HashSet;

const VERBS: [&str; 9] =
    ["create", "delete", "deletecollection", "get", "list", "patch", "proxy", "update", "watch"];
/// The kinds of subjects with their fields.
const SUBJECTS: [(&str, &str); 3] =
    [("ServiceAccount", "serviceAccount"), ("User", "user"), ("Group", "group")];
/// Maximum number of queues of a priority level.
const MAX_QUEUES: i64 = 10_000_000;
/// Bits of the hash that select the queues of a flow.
const HASH_BITS: f64 = 60.0;

pub(in super::super) fn flow_schema(object: &Object, errors: &mut Errors) {
    let spec = Node::top_level(object_field(object, "spec"), "spec");
    let precedence = spec.get("matchingPrecedence");
    let number = precedence.number().unwrap_or_default();
    if number <= 0 {
        errors.invalid(&precedence, number, "must be a positive value");
    }
    if number > 10_000 {
        errors.invalid(&precedence, number, "must not be greater than 10000");
    }
    if number == 1
        && object.name() != "exempt"
        && !mainstay_fault::is_on("any-schema-is-asked-first")
    {
        let detail = "only the schema named 'exempt' may have matchingPrecedence 1";
        errors.invalid(&precedence, number, detail);
    }
    let method = spec.get("distinguisherMethod");
    let allowed = ["ByNamespace", "ByUser"];
    if method.is_set() && !allowed.contains(&method.text_of("type")) {
        let kind = method.get("type");
        errors.unsupported(&kind, json!({"Type": method.text_of("type")}), &allowed);
    }
    let level = spec.get("priorityLevelConfiguration");
    let name = level.get("name");
    if name.text().is_empty() {
        errors.required(&name, "must reference a priority level");
    } else {
        errors.add_problems(&name, name.text(), names::dns1123_subdomain(name.text()));
    }
    spec.get("rules").items().for_each(|node| rule(&node, errors));
    mandatory_spec(object, "flowschemas", &spec, errors);
    conditions(object, errors);
}

/// Validates that the spec of a mandatory object has its fixed value.
fn mandatory_spec(object: &Object, plural: &str, spec: &Node<'_, '_>, errors: &mut Errors) {
    let name = object.name();
    if !matches!(name, "exempt" | "catch-all") || mainstay_fault::is_on("what-is-fixed-changes") {
        return;
    }
    let Some(mut expected) = flow_defaults::spec(plural, name) else { return };
    let mut found = spec.value().clone();
    let mut detail = format!("spec of '{name}' must equal the fixed value");
    if plural != "flowschemas" && name == "exempt" {
        detail =
            format!("spec of '{name}' except the 'spec.exempt' field must equal the fixed value");
        for value in [&mut expected, &mut found] {
            value.as_object_mut().map(|fields| fields.remove("exempt"));
        }
    }
    if !semantically_equal(&found, &expected) {
        let printed = if plural == "flowschemas" {
            internal_schema(spec.value())
        } else {
            internal_level(spec.value())
        };
        errors.push(FieldError::new(&spec.path(), FieldErrorKind::InvalidText(printed), detail));
    }
}

/// A field of an internal Go type: its Go name, its API name, and the function that prints its value.
type InternalField<'a> = (&'a str, &'a str, fn(&Value) -> String);

/// Prints a value as the internal Go struct: all fields in the order of the struct; `null` for an
/// absent value.
fn internal_struct(value: &Value, fields: &[InternalField<'_>]) -> String {
    let parts: Vec<String> = fields
        .iter()
        .map(|(go_name, field, write)| {
            format!("\"{go_name}\":{}", write(value.get(*field).unwrap_or(&Value::Null)))
        })
        .collect();
    format!("{{{}}}", parts.join(","))
}

fn optional(value: &Value, write: impl Fn(&Value) -> String) -> String {
    if value.is_null() { "null".to_owned() } else { write(value) }
}

fn as_json(value: &Value) -> String {
    value.to_string()
}

fn text(value: &Value) -> String {
    Value::from(value.as_str().unwrap_or_default()).to_string()
}

fn number(value: &Value) -> String {
    value.as_i64().unwrap_or_default().to_string()
}

fn boolean(value: &Value) -> String {
    value.as_bool().unwrap_or_default().to_string()
}

fn name_struct(value: &Value) -> String {
    internal_struct(value, &[("Name", "name", text)])
}

fn list(value: &Value, write: fn(&Value) -> String) -> String {
    optional(value, |value| {
        let items: Vec<String> = value.as_array().into_iter().flatten().map(write).collect();
        format!("[{}]", items.join(","))
    })
}

fn internal_schema(spec: &Value) -> String {
    internal_struct(
        spec,
        &[
            ("PriorityLevelConfiguration", "priorityLevelConfiguration", name_struct),
            ("MatchingPrecedence", "matchingPrecedence", number),
            ("DistinguisherMethod", "distinguisherMethod", |value| {
                optional(value, |value| internal_struct(value, &[("Type", "type", text)]))
            }),
            ("Rules", "rules", |value| list(value, internal_rule)),
        ],
    )
}

fn internal_rule(rule: &Value) -> String {
    internal_struct(
        rule,
        &[
            ("Subjects", "subjects", |value| list(value, internal_subject)),
            ("ResourceRules", "resourceRules", |value| {
                list(value, |rule| {
                    internal_struct(
                        rule,
                        &[
                            ("Verbs", "verbs", as_json),
                            ("APIGroups", "apiGroups", as_json),
                            ("Resources", "resources", as_json),
                            ("ClusterScope", "clusterScope", boolean),
                            ("Namespaces", "namespaces", as_json),
                        ],
                    )
                })
            }),
            ("NonResourceRules", "nonResourceRules", |value| {
                list(value, |rule| {
                    let urls =
                        ("NonResourceURLs", "nonResourceURLs", as_json as fn(&Value) -> String);
                    internal_struct(rule, &[("Verbs", "verbs", as_json), urls])
                })
            }),
        ],
    )
}

fn internal_subject(subject: &Value) -> String {
    internal_struct(
        subject,
        &[
            ("Kind", "kind", text),
            ("User", "user", |value| optional(value, name_struct)),
            ("Group", "group", |value| optional(value, name_struct)),
            ("ServiceAccount", "serviceAccount", |value| {
                optional(value, |value| {
                    internal_struct(
                        value,
                        &[("Namespace", "namespace", text), ("Name", "name", text)],
                    )
                })
            }),
        ],
    )
}

fn internal_level(spec: &Value) -> String {
    internal_struct(
        spec,
        &[
            ("Type", "type", text),
            ("Limited", "limited", |value| {
                optional(value, |value| {
                    internal_struct(
                        value,
                        &[
                            ("NominalConcurrencyShares", "nominalConcurrencyShares", number),
                            ("LimitResponse", "limitResponse", internal_response),
                            ("LendablePercent", "lendablePercent", as_json),
                            ("BorrowingLimitPercent", "borrowingLimitPercent", as_json),
                        ],
                    )
                })
            }),
            ("Exempt", "exempt", |value| {
                optional(value, |value| {
                    let shares = "nominalConcurrencyShares";
                    let lendable =
                        ("LendablePercent", "lendablePercent", as_json as fn(&Value) -> String);
                    internal_struct(
                        value,
                        &[("NominalConcurrencyShares", shares, as_json), lendable],
                    )
                })
            }),
        ],
    )
}

fn internal_response(value: &Value) -> String {
    internal_struct(
        value,
        &[
            ("Type", "type", text),
            ("Queuing", "queuing", |value| {
                optional(value, |value| {
                    internal_struct(
                        value,
                        &[
                            ("Queues", "queues", number),
                            ("HandSize", "handSize", number),
                            ("QueueLengthLimit", "queueLengthLimit", number),
                        ],
                    )
                })
            }),
        ],
    )
}

fn rule(node: &Node<'_, '_>, errors: &mut Errors) {
    let subjects = node.get("subjects");
    if subjects.len() == 0 {
        errors.required(&subjects, "subjects must contain at least one value");
    }
    subjects.items().for_each(|node| subject(&node, errors));
    let (resources, others) = (node.get("resourceRules"), node.get("nonResourceRules"));
    if resources.len() + others.len() == 0 {
        let detail = "at least one of resourceRules and nonResourceRules has to be non-empty";
        errors.required(node, detail);
    }
    resources.items().for_each(|node| resource_rule(&node, errors));
    others.items().for_each(|node| non_resource_rule(&node, errors));
}

fn subject(node: &Node<'_, '_>, errors: &mut Errors) {
    let kind = node.text_of("kind");
    let Some((_, own_field)) = SUBJECTS.iter().find(|(subject_kind, _)| *subject_kind == kind)
    else {
        errors.unsupported(&node.get("kind"), kind, &["Group", "ServiceAccount", "User"]);
        return;
    };
    let field = node.get(own_field);
    if field.is_set() {
        let name = field.get("name");
        if name.text().is_empty() {
            errors.required(&name, "");
        } else if *own_field == "serviceAccount" && name.text() != "*" {
            errors.add_problems(&name, name.text(), names::dns1123_subdomain(name.text()));
        }
        if *own_field == "serviceAccount" {
            let namespace = field.get("namespace");
            if namespace.text().is_empty() {
                errors.required(&namespace, "must specify namespace for service account");
            } else {
                errors.add_problems(
                    &namespace,
                    namespace.text(),
                    names::dns1123_label(namespace.text()),
                );
            }
        }
    } else {
        errors.required(&field, format!("{own_field} is required when subject kind is '{kind}'"));
    }
    for (other, field) in [SUBJECTS[0], SUBJECTS[1], SUBJECTS[2]] {
        if other != kind && node.has(field) && !mainstay_fault::is_on("subjects-are-of-two-kinds") {
            let detail = format!("{field} is forbidden when subject kind is not '{other}'");
            errors.forbidden(&node.get(field), detail);
        }
    }
}

/// Whether a list contains `*`.
fn has_wildcard(node: &Node<'_, '_>) -> bool {
    node.list().iter().any(|value| value == "*")
}

fn verbs(node: &Node<'_, '_>, errors: &mut Errors) {
    let verbs = node.get("verbs");
    if verbs.len() == 0 {
        errors.required(&verbs, "verbs must contain at least one value");
    } else if has_wildcard(&verbs) {
        if verbs.len() > 1 {
            errors.invalid_value(&verbs, "if '*' is present, must not specify other verbs");
        }
    } else if !verbs
        .list()
        .iter()
        .all(|verb| verb.as_str().is_some_and(|verb| VERBS.contains(&verb)))
    {
        errors.unsupported(&verbs, verbs.value().clone(), &VERBS);
    }
}

fn resource_rule(node: &Node<'_, '_>, errors: &mut Errors) {
    verbs(node, errors);
    for (field, one, many) in
        [("apiGroups", "api group", "api groups"), ("resources", "resource", "resources")]
    {
        let list = node.get(field);
        if list.len() == 0 {
            errors.required(&list, format!("resource rules must supply at least one {one}"));
        } else if list.len() > 1 && has_wildcard(&list) {
            errors
                .invalid_value(&list, format!("if '*' is present, must not specify other {many}"));
        }
    }
    let namespaces = node.get("namespaces");
    if namespaces.len() == 0 && !node.is_true("clusterScope") {
        let detail =
            "resource rules that are not cluster scoped must supply at least one namespace";
        errors.required(&namespaces, detail);
    } else if has_wildcard(&namespaces) {
        if namespaces.len() > 1 {
            errors
                .invalid_value(&namespaces, "if '*' is present, must not specify other namespaces");
        }
    } else {
        for namespace in namespaces.items() {
            let problems = names::dns1123_label(namespace.text()).into_iter().map(|problem| {
                format!("each member of this list must be '*' or a DNS-1123 label; {problem}")
            });
            errors.add_problems(&namespace, namespace.text(), problems.collect());
        }
    }
}

fn non_resource_rule(node: &Node<'_, '_>, errors: &mut Errors) {
    verbs(node, errors);
    let urls = node.get("nonResourceURLs");
    if urls.len() == 0 {
        errors.required(&urls, "nonResourceURLs must contain at least one value");
    } else if has_wildcard(&urls) {
        if urls.len() > 1 {
            let detail = "if '*' is present, must not specify other non-resource URLs";
            errors.invalid_value(&urls, detail);
        }
    } else {
        for url in urls.items() {
            if let Some(problem) = url_problem(url.text()) {
                errors.invalid(&url, url.text(), problem);
            }
        }
    }
}

fn url_problem(path: &str) -> Option<&'static str> {
    let stars = path.matches('*').count();
    if path == "/" {
        None
    } else if path.is_empty() {
        Some("must not be empty")
    } else if !path.starts_with('/') {
        Some("must start with slash")
    } else if path.contains(' ') {
        Some("must not contain white-space")
    } else if path.contains("//") {
        Some("must not contain double slash")
    } else if stars > 1 || stars == 1 && !path.ends_with("/*") {
        Some("wildcard can only do suffix matching")
    } else {
        None
    }
}

pub(in super::super) fn flow_schema_update(object: &Object, _: &Object, errors: &mut Errors) {
    flow_schema(object, errors);
}

/// Validates the conditions of a `FlowSchema` or `PriorityLevelConfiguration`.
fn conditions(object: &Object, errors: &mut Errors) {
    let status = Node::top_level(object_field(object, "status"), "status");
    let conditions = status.get("conditions");
    let mut seen = HashSet::new();
    for condition in conditions.items() {
        let kind = condition.get("type");
        if seen.contains(&kind.text()) {
            errors.duplicate(&kind, kind.text());
        }
        seen.insert(kind.text());
        if kind.text().is_empty() {
            errors.required(&kind, "");
        }
    }
}

pub(in super::super) fn flow_status(object: &Object, _: &Object, errors: &mut Errors) {
    conditions(object, errors);
}

pub(in super::super) fn priority_level(object: &Object, errors: &mut Errors) {
    let key = "flowcontrol.k8s.io/preserve-zero-concurrency-shares";
    if object.get(&["metadata", "annotations", key]).is_some() {
        let metadata = Node::top_level(&Value::Null, "metadata");
        let detail = format!("annotation '{key}' is forbidden");
        errors.forbidden(&metadata.get("annotations"), detail);
    }
    let spec = Node::top_level(object_field(object, "spec"), "spec");
    let (kind, limited, exempt) = (spec.get("type"), spec.get("limited"), spec.get("exempt"));
    if (object.name() == "exempt") != (kind.text() == "Exempt") {
        let detail = "must be 'Exempt' if and only if `name` is 'exempt'";
        errors.invalid(&kind, kind.text(), detail);
    }
    match kind.text() {
        "Exempt" => {
            if limited.is_set() {
                errors.forbidden(&limited, "must be nil if the type is not Limited");
            }
            if exempt.is_set() {
                shares(&exempt, errors);
                percent(&exempt, errors);
            }
        }
        "Limited" => {
            if exempt.is_set() {
                errors.forbidden(&exempt, "must be nil if the type is Limited");
            }
            if limited.is_set() {
                shares(&limited, errors);
                response(&limited.get("limitResponse"), errors);
                percent(&limited, errors);
                let borrowing = limited.get("borrowingLimitPercent");
                if let Some(number) = borrowing.number().filter(|number| *number < 0) {
                    let detail = "if specified, must be a non-negative integer";
                    errors.invalid(&borrowing, number, detail);
                }
            } else {
                errors.required(&limited, "must not be empty when type is Limited");
            }
        }
        _ => one_of(&kind, &["Exempt", "Limited"], errors),
    }
    mandatory_spec(object, "prioritylevelconfigurations", &spec, errors);
    conditions(object, errors);
}

fn shares(node: &Node<'_, '_>, errors: &mut Errors) {
    let shares = node.get("nominalConcurrencyShares");
    if let Some(number) = shares.number().filter(|number| *number < 0) {
        errors.invalid(&shares, number, "must be a non-negative integer");
    }
}

fn percent(node: &Node<'_, '_>, errors: &mut Errors) {
    const PERCENT: &[FieldRule] =
        &[("lendablePercent", Rule::Range(0, 100, "must be between 0 and 100, inclusive"))];
    walk(node, PERCENT, errors);
}

fn response(node: &Node<'_, '_>, errors: &mut Errors) {
    let (kind, queuing) = (node.get("type"), node.get("queuing"));
    match kind.text() {
        "Reject" if queuing.is_set() => {
            let detail = "must be nil if limited.limitResponse.type is not Limited";
            errors.forbidden(&queuing, detail);
        }
        "Reject" => {}
        "Queue" if !queuing.is_set() => {
            let detail = "must not be empty if limited.limitResponse.type is Limited";
            errors.required(&queuing, detail);
        }
        "Queue" => queues(&queuing, errors),
        _ => one_of(&kind, &["Queue", "Reject"], errors),
    }
}

fn queues(node: &Node<'_, '_>, errors: &mut Errors) {
    const POSITIVE: &str = "must be positive";
    let number = |field: &str| node.number_of(field).unwrap_or_default();
    let (queues, hand) = (number("queues"), number("handSize"));
    if number("queueLengthLimit") <= 0 {
        errors.invalid(&node.get("queueLengthLimit"), number("queueLengthLimit"), POSITIVE);
    }
    let at = node.get("queues");
    if queues <= 0 {
        errors.invalid(&at, queues, POSITIVE);
    } else if queues > MAX_QUEUES {
        errors.invalid(&at, queues, format!("must not be greater than {MAX_QUEUES}"));
    }
    let at = node.get("handSize");
    if hand <= 0 {
        errors.invalid(&at, hand, POSITIVE);
    } else if hand > queues {
        errors.invalid(&at, hand, format!("should not be greater than queues ({queues})"));
    } else if entropy(queues, hand) > HASH_BITS {
        let detail = format!(
            "required entropy bits of deckSize {queues} and handSize {hand} should not be greater than {HASH_BITS}"
        );
        errors.invalid(&at, hand, detail);
    }
}

/// The bits of the hash that dealing a hand needs.
#[expect(clippy::cast_precision_loss, reason = "numbers of queues are far below 2^52")]
fn entropy(queues: i64, hand: i64) -> f64 {
    ((queues as f64).log2() * hand as f64).ceil()
}

pub(in super::super) fn priority_level_update(object: &Object, _: &Object, errors: &mut Errors) {
    priority_level(object, errors);
}

/// Defaults of a `FlowSchema`.
pub(in super::super) fn default_flow_schema(object: &mut Object) {
    set_missing(object, &["spec"], &[("matchingPrecedence", 1000, true)]);
    set_empty_status(object);
}

/// Defaults of a `PriorityLevelConfiguration`.
pub(in super::super) fn default_priority_level(object: &mut Object) {
    let shares = "nominalConcurrencyShares";
    set_missing(object, &["spec", "exempt"], &[(shares, 0, false), ("lendablePercent", 0, false)]);
    set_missing(
        object,
        &["spec", "limited"],
        &[(shares, 30, false), ("lendablePercent", 0, false)],
    );
    set_missing(
        object,
        &["spec", "limited", "limitResponse", "queuing"],
        &[("handSize", 8, true), ("queues", 64, true), ("queueLengthLimit", 50, true)],
    );
    set_empty_status(object);
}

fn set_empty_status(object: &mut Object) {
    if object.get(&["status"]).is_none() {
        object.set(&["status"], Value::Object(Map::new()));
    }
}

/// Sets numbers that are absent, or zero where zero counts as absent.
fn set_missing(object: &mut Object, path: &[&str], fields: &[(&str, i64, bool)]) {
    if !object.get(path).is_some_and(Value::is_object) {
        return;
    }
    for (field, number, or_zero) in fields {
        let mut path = path.to_vec();
        path.push(field);
        let found = object.get(&path);
        let missing = found.is_none_or(|value| value.is_null() || *or_zero && *value == 0);
        if missing {
            object.set(&path, (*number).into());
        }
    }
}
