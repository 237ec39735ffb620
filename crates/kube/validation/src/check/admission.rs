//! Webhooks and policies that judge what others write.

use super::super::rules::{
    Check, Errors, Node, Rule, formats, one_of, selectors::label_selector, walk,
};
use super::view;
use mainstay_object::{FieldError, FieldErrorKind, Object, names};
use mainstay_policy::{CompileError, ReturnType, ExpressionScope};
use serde_json::Value;
use std::collections::HashSet;

const OPERATIONS: [&str; 5] = ["*", "CONNECT", "CREATE", "DELETE", "UPDATE"];
pub(super) const MUTATING_OPERATIONS: [&str; 4] = ["*", "CONNECT", "CREATE", "UPDATE"];
pub(super) const FAILURE: Rule = Rule::OneOf(&["Fail", "Ignore"]);
pub(super) const MATCH: Rule = Rule::OneOf(&["Equivalent", "Exact"]);
pub(super) const REINVOCATION: &[&str] = &["IfNeeded", "Never"];

/// What an update need not mend, because the stored object is so too.
#[derive(Clone, Copy)]
#[expect(clippy::struct_excessive_bools, reason = "rules that are on or off, each on its own")]
struct Options {
    side_effects: bool,
    versions: bool,
    unique: bool,
    conditions: bool,
}

const NEW: Options = Options { side_effects: true, versions: true, unique: true, conditions: true };

pub(in super::super) fn webhooks(object: &Object, errors: &mut Errors) {
    checked(object, NEW, errors);
}

pub(in super::super) fn webhooks_update(object: &Object, old: &Object, errors: &mut Errors) {
    let before = Node::root(view(old, "webhooks"));
    let names: Vec<&str> = before.items().map(|hook| hook.text_of("name")).collect();
    let conditions = |object: &Object| -> Vec<Value> {
        let hooks = view(object, "webhooks").as_array();
        hooks
            .into_iter()
            .flatten()
            .map(|hook| hook.get("matchConditions").cloned().unwrap_or_default())
            .collect()
    };
    let options = Options {
        side_effects: before
            .items()
            .all(|hook| matches!(hook.text_of("sideEffects"), "None" | "NoneOnDryRun")),
        versions: before.items().all(|hook| {
            let versions = hook.get("admissionReviewVersions");
            versions.len() == 0 || versions.items().any(|one| is_review(one.text()))
        }),
        unique: names.iter().collect::<HashSet<_>>().len() == names.len(),
        conditions: conditions(object) != conditions(old),
    };
    checked(object, options, errors);
}

fn is_review(version: &str) -> bool {
    matches!(version, "v1" | "v1beta1")
}

fn checked(object: &Object, options: Options, errors: &mut Errors) {
    let list = Node::top(view(object, "webhooks"), "webhooks");
    let mut seen = HashSet::new();
    for hook in list.items() {
        webhook(&hook, options, errors);
        review_versions(&hook.get("admissionReviewVersions"), options, errors);
        let name = hook.get("name");
        if options.unique && !name.text().is_empty() {
            if seen.contains(&name.text()) {
                errors.duplicate(&name, name.text());
            } else {
                seen.insert(name.text());
            }
        }
    }
}

fn review_versions(list: &Node<'_, '_>, options: Options, errors: &mut Errors) {
    if list.len() == 0 {
        errors.required(list, "must specify one of v1, v1beta1");
        return;
    }
    let mut seen = HashSet::new();
    for version in list.items() {
        if seen.contains(&version.text()) {
            errors.wrong(&version, "duplicate version");
            continue;
        }
        seen.insert(version.text());
        errors.each(&version, version.text(), names::dns1035_label(version.text()));
    }
    if options.versions && !seen.iter().any(|version| is_review(version)) {
        errors.wrong(list, "must include at least one of v1, v1beta1");
    }
}

/// A domain of at least three labels.
fn domain_name(node: &Node<'_, '_>, errors: &mut Errors) {
    let name = node.text();
    if name.is_empty() {
        errors.required(node, "");
        return;
    }
    let problems = names::dns1123_subdomain(name);
    if !problems.is_empty() {
        errors.wrong(node, problems.join(","));
    } else if name.split('.').count() < 3 {
        let words = "should be a domain with at least three segments separated by dots";
        errors.wrong(node, words);
    }
}

fn webhook(hook: &Node<'_, '_>, options: Options, errors: &mut Errors) {
    const MIDDLE: &[Check] = &[("failurePolicy", FAILURE), ("matchPolicy", MATCH)];
    const TAIL: &[Check] = &[
        (
            "timeoutSeconds",
            Rule::Within(1, 30, "the timeout value must be between 1 and 30 seconds"),
        ),
        ("namespaceSelector", Rule::With(label_selector)),
        ("objectSelector", Rule::With(label_selector)),
        ("reinvocationPolicy", Rule::OneOf(REINVOCATION)),
    ];
    domain_name(&hook.get("name"), errors);
    let rules = hook.get("rules");
    rules.items().for_each(|rule| operation_rule(&rule, errors));
    walk(hook, MIDDLE, errors);
    let effects = hook.get("sideEffects");
    let allowed: &[&str] = if options.side_effects {
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
    client(&hook.get("clientConfig"), errors);
    if options.conditions {
        match_conditions(&hook.get("matchConditions"), false, errors);
    }
}

/// Where a webhook is: at a URL or behind a Service.
pub(in super::super) fn client(node: &Node<'_, '_>, errors: &mut Errors) {
    let (url, service) = (node.get("url"), node.get("service"));
    if url.is_set() == service.is_set() {
        errors.required(node, "exactly one of url or service is required");
    } else if url.is_set() {
        web_address(&url, errors);
    } else {
        // The original mixes up the two.
        for (field, shown) in [("namespace", "name"), ("name", "namespace")] {
            if service.text_of(field).is_empty() {
                errors.required(&service.get(shown), "");
            }
        }
        let port = service.get("port");
        let number = port.number().unwrap_or_default();
        if !(1..=65535).contains(&number) {
            let words = format!("port is not valid: {}", formats::PORT_RANGE);
            errors.invalid(&port, number, words);
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
        errors.wrong(node, "segment[0] may not be empty");
        return;
    }
    if !path.starts_with('/') {
        errors.wrong(node, "must start with a '/'");
    }
    let mut rest = path.chars();
    rest.next();
    let rest = rest.as_str();
    let rest = rest.strip_suffix('/').unwrap_or(rest);
    for (at, step) in rest.split('/').enumerate() {
        if step.is_empty() {
            errors.wrong(node, format!("segment[{at}] may not be empty"));
            continue;
        }
        for problem in names::dns1123_subdomain(step) {
            errors.wrong(node, format!("segment[{at}]: {problem}"));
        }
    }
}

fn web_address(node: &Node<'_, '_>, errors: &mut Errors) {
    const FORM: &str = "; desired format: https://host[/path]";
    let text = node.text();
    let (text, fragment) = text.split_once('#').unwrap_or((text, ""));
    if let Some(why) = unreadable(text) {
        let quoted = mainstay_gocompat::quote(node.text());
        errors.required(node, format!("url must be a valid URL: parse {quoted}: {why}{FORM}"));
        return;
    }
    let (text, query) = text.split_once('?').unwrap_or((text, ""));
    let scheme = text.split_once(':').map_or("", |(scheme, _)| scheme);
    let shaped = scheme.bytes().enumerate().all(|(at, b)| {
        b.is_ascii_alphabetic() || (at > 0 && (b.is_ascii_digit() || b"+-.".contains(&b)))
    });
    let scheme = if shaped { scheme.to_lowercase() } else { String::new() };
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

/// Why Go would not read a text as a URL, for what people get wrong.
fn unreadable(text: &str) -> Option<String> {
    if text.bytes().any(|b| b < b' ' || b == 0x7f) {
        return Some("net/url: invalid control character in URL".to_owned());
    }
    if text.starts_with(':') {
        return Some("missing protocol scheme".to_owned());
    }
    let host = text.split_once("://")?.1.split(['/', '?']).next().unwrap_or_default();
    let host = host.rsplit_once('@').map_or(host, |(_, host)| host);
    if let Some(bad) = host
        .chars()
        .find(|letter| matches!(letter, ' ' | '"' | '<' | '>' | '^' | '{' | '}' | '|' | '\\' | '`'))
    {
        return Some(format!(
            "invalid character {} in host name",
            mainstay_gocompat::quote(&bad.to_string())
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
    if operations.len() > 1 && operations.items().any(|one| one.text() == "*") {
        errors.wrong(&operations, "if '*' is present, must not specify other operations");
    }
    operations.items().for_each(|one| one_of(&one, &OPERATIONS, errors));
    for (field, what) in [("apiGroups", "API groups"), ("apiVersions", "API versions")] {
        let list = rule.get(field);
        if list.len() == 0 {
            errors.required(&list, "");
        }
        if list.len() > 1 && list.items().any(|one| one.text() == "*") {
            errors.wrong(&list, format!("if '*' is present, must not specify other {what}"));
        }
    }
    let versions = rule.get("apiVersions");
    versions.items().filter(|one| one.text().is_empty()).for_each(|one| errors.required(&one, ""));
    resources(&rule.get("resources"), errors);
    walk(rule, &[("scope", Rule::OneOf(&["*", "Cluster", "Namespaced"]))], errors);
}

fn resources(list: &Node<'_, '_>, errors: &mut Errors) {
    if list.len() == 0 {
        errors.required(list, "");
    }
    let (mut all_below, mut below_all): (HashSet<&str>, HashSet<&str>) = Default::default();
    let (mut everything, mut star, mut plain) = (false, false, false);
    for resource in list.items() {
        let text = resource.text();
        if text.is_empty() {
            errors.required(&resource, "");
            continue;
        }
        everything |= text == "*/*";
        star |= text == "*";
        let Some((name, sub)) = text.split_once('/') else {
            plain = text != "*";
            continue;
        };
        if all_below.contains(&name) {
            let words = format!("if '{name}/*' is present, must not specify {text}");
            errors.wrong(&resource, words);
        }
        if below_all.contains(&sub) {
            errors.wrong(&resource, format!("if '*/{sub}' is present, must not specify {text}"));
        }
        if sub == "*" {
            all_below.insert(name);
        }
        if name == "*" {
            below_all.insert(sub);
        }
    }
    if list.len() > 1 && everything {
        errors.wrong(list, "if '*/*' is present, must not specify other resources");
    }
    if star && plain {
        let words = "if '*' is present, must not specify other resources without subresources";
        errors.wrong(list, words);
    }
}

/// Conditions under which a webhook is called, or a policy asked; the latter may have parameters,
/// and never sees its variables there.
pub(super) fn match_conditions(list: &Node<'_, '_>, params: bool, errors: &mut Errors) {
    if list.len() > 64 {
        errors.too_many(list, list.len(), 64);
    }
    let scope = ExpressionScope::new(params, false);
    let mut seen = HashSet::new();
    for condition in list.items() {
        let expression = condition.get("expression");
        if present(&expression, "", errors) {
            let text = expression.text().trim();
            let found = scope.compile(text, ReturnType::Bool, true).err();
            broken(&expression, text, found, errors);
        }
        let name = condition.get("name");
        walk(&name, &[("", Rule::Named(names::qualified_name))], errors);
        if !name.text().is_empty() {
            if seen.contains(&name.text()) {
                errors.duplicate(&name, name.text());
            } else {
                seen.insert(name.text());
            }
        }
    }
}

/// An expression that says something.
pub(super) fn present(node: &Node<'_, '_>, words: &str, errors: &mut Errors) -> bool {
    let empty = node.text().trim().is_empty();
    if empty {
        errors.required(node, words);
    }
    !empty
}

/// What is wrong with an expression, if something is.
pub(super) fn broken(node: &Node<'_, '_>, text: &str, found: Option<CompileError>, errors: &mut Errors) {
    let Some(CompileError { detail, internal }) = found else { return };
    if internal {
        errors.push(FieldError::new(&node.path(), FieldErrorKind::Internal, detail));
    } else {
        errors.invalid(node, text, detail);
    }
}
