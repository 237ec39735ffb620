//! Rule coverage: whether some policy rules grant all that other rules grant.
//!
//! Rules are split until one verb, API group, resource and name are left (or one verb and one
//! path). A single rule of the owner covers each of these parts, or none does. Kubernetes does the
//! same (`k8s.io/component-helpers`, `auth/rbac/validation`), and the missing parts belong to its
//! message.
//!
//! The preflight of extensions has the same comparison (`mainstay_permissions`, `covering.rs`), because its
//! layer does not depend on this crate. A change of one comparison needs the same change of the other.

use super::rules::{PolicyRule, covers_path, quote_list};
use std::collections::{BTreeSet, HashMap, HashSet};

/// The most parts that are compared. Real roles have a few thousand; a body of a few megabytes
/// could have too many for any time and memory.
const MAX_PARTS: usize = 250_000;

/// The parts of the wanted rules that the owner's rules do not cover, in order.
///
/// # Errors
///
/// The rules have too many parts to compare; the error is their number.
pub fn missing_rules(
    owner: &[&PolicyRule],
    wanted: &[PolicyRule],
) -> Result<Vec<PolicyRule>, usize> {
    let count = wanted.iter().map(count_parts).fold(0, usize::saturating_add);
    if count > MAX_PARTS {
        return Err(count);
    }
    let mut missing = Vec::new();
    for rule in wanted {
        if !owner.iter().any(|owned| covers_rule(owned, rule)) {
            push_missing_parts(owner, rule, &mut missing);
        }
    }
    Ok(missing)
}

/// The number of parts of a rule.
fn count_parts(rule: &PolicyRule) -> usize {
    let resources = [rule.api_groups.len(), rule.resources.len(), rule.resource_names.len().max(1)]
        .into_iter()
        .fold(1, usize::saturating_mul);
    resources.saturating_add(rule.non_resource_urls.len()).saturating_mul(rule.verbs.len())
}

/// Whether one rule covers all parts of another: the usual case, decided without splitting.
fn covers_rule(owned: &PolicyRule, rule: &PolicyRule) -> bool {
    let covers_names = owned.resource_names.is_empty()
        || (!rule.resource_names.is_empty()
            && rule.non_resource_urls.is_empty()
            && contains_all(&owned.resource_names, &rule.resource_names));
    let all = |list: &[String], covers: fn(&PolicyRule, &str) -> bool, rule| {
        list.iter().all(|value| covers(rule, value))
    };
    covers_names
        && all(&rule.verbs, has_verb, owned)
        && all(&rule.api_groups, has_group, owned)
        && all(&rule.resources, has_resource, owned)
        && all(&rule.non_resource_urls, has_path, owned)
}

/// Whether a list contains all names of another list.
fn contains_all(list: &[String], names: &[String]) -> bool {
    const SHORT_LIST: usize = 16;
    if names.len() <= SHORT_LIST {
        return names.iter().all(|name| list.contains(name));
    }
    let set: HashSet<&String> = list.iter().collect();
    names.iter().all(|name| set.contains(name))
}

/// Adds the parts of a rule that the owner's rules do not cover.
fn push_missing_parts(owner: &[&PolicyRule], rule: &PolicyRule, missing: &mut Vec<PolicyRule>) {
    let single = |text: &String| vec![text.clone()];
    for group in &rule.api_groups {
        let owner = filter_rules(owner, |owned| has_group(owned, group));
        for resource in &rule.resources {
            let owner = filter_rules(&owner, |owned| has_resource(owned, resource));
            for verb in &rule.verbs {
                let owner = filter_rules(&owner, |owned| has_verb(owned, verb));
                let any_name = owner.iter().any(|owned| owned.resource_names.is_empty());
                let part = |names: Vec<String>| PolicyRule {
                    api_groups: single(group),
                    resources: single(resource),
                    verbs: single(verb),
                    resource_names: names,
                    ..PolicyRule::default()
                };
                if any_name {
                    continue;
                }
                if rule.resource_names.is_empty() {
                    missing.push(part(Vec::new()));
                }
                let owned_names: HashSet<&String> = if rule.resource_names.is_empty() {
                    HashSet::new()
                } else {
                    owner.iter().flat_map(|owned| &owned.resource_names).collect()
                };
                let is_missing = |name: &&String| !owned_names.contains(*name);
                missing.extend(
                    rule.resource_names.iter().filter(is_missing).map(|name| part(single(name))),
                );
            }
        }
    }
    for url in &rule.non_resource_urls {
        for verb in &rule.verbs {
            let covered = owner.iter().any(|owned| {
                owned.resource_names.is_empty() && has_path(owned, url) && has_verb(owned, verb)
            });
            if !covered {
                missing.push(PolicyRule {
                    non_resource_urls: single(url),
                    verbs: single(verb),
                    ..PolicyRule::default()
                });
            }
        }
    }
}

fn filter_rules<'a>(
    owner: &[&'a PolicyRule],
    matches: impl Fn(&PolicyRule) -> bool,
) -> Vec<&'a PolicyRule> {
    owner.iter().copied().filter(|owned| matches(owned)).collect()
}

fn has_verb(rule: &PolicyRule, verb: &str) -> bool {
    rule.verbs.iter().any(|value| value == "*" || value == verb)
}

fn has_group(rule: &PolicyRule, group: &str) -> bool {
    rule.api_groups.iter().any(|value| value == "*" || value == group)
}

fn has_resource(rule: &PolicyRule, resource: &str) -> bool {
    let subresource = resource.split_once('/').map(|(_, subresource)| subresource);
    rule.resources.iter().any(|value| {
        value == "*"
            || value == resource
            || (subresource.is_some() && value.strip_prefix("*/") == subresource)
    })
}

fn has_path(rule: &PolicyRule, path: &str) -> bool {
    rule.non_resource_urls.iter().any(|value| covers_path(value, path))
}

/// The missing parts for a message: verbs of the same resource in one rule, the texts sorted.
pub(super) fn describe_missing(missing: &[PolicyRule]) -> String {
    let mut texts = BTreeSet::new();
    let mut verbs: HashMap<[&[String]; 3], Vec<String>> = HashMap::new();
    for part in missing {
        if part.non_resource_urls.is_empty() {
            let key = [&*part.api_groups, &*part.resources, &*part.resource_names];
            verbs.entry(key).or_default().extend_from_slice(&part.verbs);
        } else {
            texts.insert(part.compact_text());
        }
    }
    texts.extend(verbs.into_iter().map(|([groups, resources, names], verbs)| {
        let rule = PolicyRule {
            api_groups: groups.to_vec(),
            resources: resources.to_vec(),
            resource_names: names.to_vec(),
            verbs,
            ..PolicyRule::default()
        };
        rule.compact_text()
    }));
    texts.into_iter().collect::<Vec<_>>().join("\n")
}

/// kube-apiserver's message about an attempt to grant permissions that the user does not hold.
pub(super) fn escalation_message(
    user: &str,
    groups: &[String],
    missing: &[PolicyRule],
    unresolved: Option<&str>,
) -> String {
    let mut text = format!(
        "user {} (groups={}) is attempting to grant RBAC permissions not currently held:\n{}",
        mainstay_gocompat::quote(user),
        quote_list(groups),
        describe_missing(missing)
    );
    if let Some(unresolved) = unresolved {
        text.push_str("; resolution errors: [");
        text.push_str(unresolved);
        text.push(']');
    }
    text
}
