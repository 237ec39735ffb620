//! Validation of webhook configurations, and of the rules and match conditions of webhooks and policies.

use super::super::rules::{
    Errors, FieldRule, Node, Rule, formats, one_of, selectors::label_selector, walk,
};
use super::object_field;
use mainstay_object::{FieldError, FieldErrorKind, Object, names};
use mainstay_policy::{CompileError, ExpressionScope, ReturnType};
use serde_json::Value;
use std::collections::HashSet;

const OPERATIONS: [&str; 5] = ["*", "CONNECT", "CREATE", "DELETE", "UPDATE"];
pub(super) const MUTATING_OPERATIONS: [&str; 4] = ["*", "CONNECT", "CREATE", "UPDATE"];
pub(super) const FAILURE_POLICY: Rule = Rule::OneOf(&["Fail", "Ignore"]);
pub(super) const MATCH_POLICY: Rule = Rule::OneOf(&["Equivalent", "Exact"]);
pub(super) const REINVOCATION_POLICIES: &[&str] = &["IfNeeded", "Never"];

/// The rules that apply; an update skips those that the stored object violates already.
#[derive(Clone, Copy)]
#[expect(clippy::struct_excessive_bools, reason = "rules that are on or off, each on its own")]
struct WebhookOptions {
    check_side_effects: bool,
    check_versions: bool,
    check_unique_names: bool,
    check_conditions: bool,
}

const STRICT: WebhookOptions = WebhookOptions {
    check_side_effects: true,
    check_versions: true,
    check_unique_names: true,
    check_conditions: true,
};

pub(in super::super) fn webhooks(object: &Object, errors: &mut Errors) {
    validate(object, STRICT, errors);
}

pub(in super::super) fn webhooks_update(object: &Object, old: &Object, errors: &mut Errors) {
    let before = Node::root(object_field(old, "webhooks"));
    let names: Vec<&str> = before.items().map(|hook| hook.text_of("name")).collect();
    let conditions = |object: &Object| -> Vec<Value> {
        let hooks = object_field(object, "webhooks").as_array();
        hooks
            .into_iter()
            .flatten()
            .map(|hook| hook.get("matchConditions").cloned().unwrap_or_default())
            .collect()
    };
    let options = WebhookOptions {
        check_side_effects: before
            .items()
            .all(|hook| matches!(hook.text_of("sideEffects"), "None" | "NoneOnDryRun")),
        check_versions: before.items().all(|hook| {
            let versions = hook.get("admissionReviewVersions");
            versions.len() == 0 || versions.items().any(|version| is_review_version(version.text()))
        }),
        check_unique_names: names.iter().collect::<HashSet<_>>().len() == names.len(),
        check_conditions: conditions(object) != conditions(old),
    };
    validate(object, options, errors);
}

fn is_review_version(version: &str) -> bool {
    matches!(version, "v1" | "v1beta1")
}

fn validate(object: &Object, options: WebhookOptions, errors: &mut Errors) {
    let list = Node::top_level(object_field(object, "webhooks"), "webhooks");
    let mut seen = HashSet::new();
    for hook in list.items() {
        webhook(&hook, options, errors);
        review_versions(&hook.get("admissionReviewVersions"), options, errors);
        let name = hook.get("name");
        if options.check_unique_names && !name.text().is_empty() {
            if seen.contains(&name.text()) {
                errors.duplicate(&name, name.text());
            } else {
                seen.insert(name.text());
            }
        }
    }
}

fn review_versions(list: &Node<'_, '_>, options: WebhookOptions, errors: &mut Errors) {
    if list.len() == 0 {
        errors.required(list, "must specify one of v1, v1beta1");
        return;
    }
    let mut seen = HashSet::new();
    for version in list.items() {
        if seen.contains(&version.text()) {
            errors.invalid_value(&version, "duplicate version");
            continue;
        }
        seen.insert(version.text());
        errors.add_problems(&version, version.text(), names::dns1035_label(version.text()));
    }
    if options.check_versions && !seen.iter().any(|version| is_review_version(version)) {
        errors.invalid_value(list, "must include at least one of v1, v1beta1");
    }
}

/// Validates a domain of at least three labels.
fn domain_name(node: &Node<'_, '_>, errors: &mut Errors) {
    let name = node.text();
    if name.is_empty() {
        errors.required(node, "");
        return;
    }
    let problems = names::dns1123_subdomain(name);
    if !problems.is_empty() {
        errors.invalid_value(node, problems.join(","));
    } else if name.split('.').count() < 3 {
        let detail = "should be a domain with at least three segments separated by dots";
        errors.invalid_value(node, detail);
    }
}

fn webhook(hook: &Node<'_, '_>, options: WebhookOptions, errors: &mut Errors) {
    const MIDDLE: &[FieldRule] =
        &[("failurePolicy", FAILURE_POLICY), ("matchPolicy", MATCH_POLICY)];
    const TAIL: &[FieldRule] = &[
        (
            "timeoutSeconds",
            Rule::Range(1, 30, "the timeout value must be between 1 and 30 seconds"),
        ),
        ("namespaceSelector", Rule::Custom(label_selector)),
        ("objectSelector", Rule::Custom(label_selector)),
        ("reinvocationPolicy", Rule::OneOf(REINVOCATION_POLICIES)),
    ];
    domain_name(&hook.get("name"), errors);
    let rules = hook.get("rules");
    rules.items().for_each(|rule| operation_rule(&rule, errors));
    walk(hook, MIDDLE, errors);
    let effects = hook.get("sideEffects");
    let allowed: &[&str] = if options.check_side_effects {
        &["None", "NoneOnDryRun"]
    } else {
        &["None", "NoneOnDryRun", "Some", "Unknown"]
    };
    if effects.is_set() {
        one_of(&effects, allowed, errors);
    } else {
        errors.required(&effects, format!("must specify one of {}", allowed.join(", ")));
    }
    walk(hook, TAIL, errors);
    client_config(&hook.get("clientConfig"), errors);
    if options.check_conditions {
        match_conditions(&hook.get("matchConditions"), false, errors);
    }
}

/// Validates a client configuration: a URL or a Service.
pub(in super::super) fn client_config(node: &Node<'_, '_>, errors: &mut Errors) {
    let (url, service) = (node.get("url"), node.get("service"));
    if url.is_set() == service.is_set() {
        errors.required(node, "exactly one of url or service is required");
    } else if url.is_set() {
        webhook_url(&url, errors);
    } else {
        // Kubernetes confuses the two paths.
        for (field, path_name) in [("namespace", "name"), ("name", "namespace")] {
            if service.text_of(field).is_empty() {
                errors.required(&service.get(path_name), "");
            }
        }
        let port = service.get("port");
        let number = port.number().unwrap_or_default();
        if !(1..=65535).contains(&number) {
            let detail = format!("port is not valid: {}", formats::PORT_RANGE);
            errors.invalid(&port, number, detail);
        }
        service_path(&service.get("path"), errors);
    }
}

fn service_path(node: &Node<'_, '_>, errors: &mut Errors) {
    let path = node.text();
    if matches!(path, "" | "/") {
        return;
    }
    if path == "//" {
        errors.invalid_value(node, "segment[0] may not be empty");
        return;
    }
    if !path.starts_with('/') {
        errors.invalid_value(node, "must start with a '/'");
    }
    let mut rest = path.chars();
    rest.next();
    let rest = rest.as_str();
    let rest = rest.strip_suffix('/').unwrap_or(rest);
    for (at, step) in rest.split('/').enumerate() {
        if step.is_empty() {
            errors.invalid_value(node, format!("segment[{at}] may not be empty"));
            continue;
        }
        for problem in names::dns1123_subdomain(step) {
            errors.invalid_value(node, format!("segment[{at}]: {problem}"));
        }
    }
}

fn webhook_url(node: &Node<'_, '_>, errors: &mut Errors) {
    const FORM: &str = "; desired format: https://host[/path]";
    let text = node.text();
    let (text, fragment) = text.split_once('#').unwrap_or((text, ""));
    if let Some(error) = url_parse_error(text) {
        let quoted = mainstay_gocompat::quote(node.text());
        errors.required(node, format!("url must be a valid URL: parse {quoted}: {error}{FORM}"));
        return;
    }
    let (text, query) = text.split_once('?').unwrap_or((text, ""));
    let scheme = text.split_once(':').map_or("", |(scheme, _)| scheme);
    let is_scheme = scheme.bytes().enumerate().all(|(at, b)| {
        b.is_ascii_alphabetic() || (at > 0 && (b.is_ascii_digit() || b"+-.".contains(&b)))
    });
    let scheme = if is_scheme { scheme.to_lowercase() } else { String::new() };
    let rest = if scheme.is_empty() { text } else { &text[scheme.len() + 1..] };
    let authority =
        rest.strip_prefix("//").map_or("", |rest| rest.split('/').next().unwrap_or_default());
    let (user, host) = match authority.rsplit_once('@') {
        Some((user, host)) => (Some(user), host),
        None => (None, authority),
    };
    if scheme != "https" {
        errors.invalid(node, scheme, format!("'https' is the only allowed URL scheme{FORM}"));
    }
    if host.is_empty() {
        errors.invalid(node, "", format!("host must be specified{FORM}"));
    }
    if let Some(user) = user {
        errors.invalid(node, user, "user information is not permitted in the URL");
    }
    if !fragment.is_empty() {
        errors.invalid(node, fragment, "fragments are not permitted in the URL");
    }
    if !query.is_empty() {
        errors.invalid(node, query, "query parameters are not permitted in the URL");
    }
}

/// The error of Go's URL parser, for common mistakes.
fn url_parse_error(text: &str) -> Option<String> {
    if text.bytes().any(|b| b < b' ' || b == 0x7f) {
        return Some("net/url: invalid control character in URL".to_owned());
    }
    if text.starts_with(':') {
        return Some("missing protocol scheme".to_owned());
    }
    let host = text.split_once("://")?.1.split(['/', '?']).next().unwrap_or_default();
    let host = host.rsplit_once('@').map_or(host, |(_, host)| host);
    if let Some(invalid) = host
        .chars()
        .find(|letter| matches!(letter, ' ' | '"' | '<' | '>' | '^' | '{' | '}' | '|' | '\\' | '`'))
    {
        return Some(format!(
            "invalid character {} in host name",
            mainstay_gocompat::quote(&invalid.to_string())
        ));
    }
    let port = host.rsplit_once(':').filter(|(before, _)| !before.contains('['))?.1;
    (!port.bytes().all(|b| b.is_ascii_digit())).then(|| {
        format!("invalid port {} after host", mainstay_gocompat::quote(&format!(":{port}")))
    })
}

pub(super) fn operation_rule(rule: &Node<'_, '_>, errors: &mut Errors) {
    let operations = rule.get("operations");
    if operations.len() == 0 {
        errors.required(&operations, "");
    }
    if operations.len() > 1 && operations.items().any(|operation| operation.text() == "*") {
        errors.invalid_value(&operations, "if '*' is present, must not specify other operations");
    }
    operations.items().for_each(|operation| one_of(&operation, &OPERATIONS, errors));
    for (field, what) in [("apiGroups", "API groups"), ("apiVersions", "API versions")] {
        let list = rule.get(field);
        if list.len() == 0 {
            errors.required(&list, "");
        }
        if list.len() > 1 && list.items().any(|item| item.text() == "*") {
            errors
                .invalid_value(&list, format!("if '*' is present, must not specify other {what}"));
        }
    }
    let versions = rule.get("apiVersions");
    for version in versions.items().filter(|version| version.text().is_empty()) {
        errors.required(&version, "");
    }
    resources(&rule.get("resources"), errors);
    walk(rule, &[("scope", Rule::OneOf(&["*", "Cluster", "Namespaced"]))], errors);
}

fn resources(list: &Node<'_, '_>, errors: &mut Errors) {
    if list.len() == 0 {
        errors.required(list, "");
    }
    let (mut wildcard_subresources, mut wildcard_resources): (HashSet<&str>, HashSet<&str>) =
        Default::default();
    let (mut has_all, mut has_star, mut has_plain) = (false, false, false);
    for resource in list.items() {
        let text = resource.text();
        if text.is_empty() {
            errors.required(&resource, "");
            continue;
        }
        has_all |= text == "*/*";
        has_star |= text == "*";
        let Some((name, sub)) = text.split_once('/') else {
            has_plain = text != "*";
            continue;
        };
        if wildcard_subresources.contains(&name) {
            let detail = format!("if '{name}/*' is present, must not specify {text}");
            errors.invalid_value(&resource, detail);
        }
        if wildcard_resources.contains(&sub) {
            errors.invalid_value(
                &resource,
                format!("if '*/{sub}' is present, must not specify {text}"),
            );
        }
        if sub == "*" {
            wildcard_subresources.insert(name);
        }
        if name == "*" {
            wildcard_resources.insert(sub);
        }
    }
    if list.len() > 1 && has_all {
        errors.invalid_value(list, "if '*/*' is present, must not specify other resources");
    }
    if has_star && has_plain {
        let detail = "if '*' is present, must not specify other resources without subresources";
        errors.invalid_value(list, detail);
    }
}

/// Validates match conditions. Those of a policy may use `params`, but not its variables.
pub(super) fn match_conditions(list: &Node<'_, '_>, params: bool, errors: &mut Errors) {
    if list.len() > 64 {
        errors.too_many(list, list.len(), 64);
    }
    let scope = ExpressionScope::new(params, false);
    let mut seen = HashSet::new();
    for condition in list.items() {
        let expression = condition.get("expression");
        if require_expression(&expression, "", errors) {
            let text = expression.text().trim();
            let error = scope.compile(text, ReturnType::Bool, true).err();
            report_compile_error(&expression, text, error, errors);
        }
        let name = condition.get("name");
        walk(&name, &[("", Rule::RequiredFormat(names::qualified_name))], errors);
        if !name.text().is_empty() {
            if seen.contains(&name.text()) {
                errors.duplicate(&name, name.text());
            } else {
                seen.insert(name.text());
            }
        }
    }
}

/// Requires an expression that is not blank; returns whether there is one.
pub(super) fn require_expression(node: &Node<'_, '_>, detail: &str, errors: &mut Errors) -> bool {
    let empty = node.text().trim().is_empty();
    if empty {
        errors.required(node, detail);
    }
    !empty
}

/// Reports the compile error of an expression, if there is one.
pub(super) fn report_compile_error(
    node: &Node<'_, '_>,
    text: &str,
    error: Option<CompileError>,
    errors: &mut Errors,
) {
    let Some(CompileError { detail, internal }) = error else { return };
    if internal {
        errors.push(FieldError::new(&node.path(), FieldErrorKind::Internal, detail));
    } else {
        errors.invalid(node, text, detail);
    }
}
