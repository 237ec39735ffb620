//! Rule covering: whether rules grant all that other rules grant, and what they lack.
//!
//! Rules are split until one verb, API group, resource and name are left, or one verb and one path. Such a
//! part is covered by a single rule or not at all. Kubernetes' escalation check does the same
//! (`k8s.io/component-helpers`, `auth/rbac/validation`).
//!
//! The authorizer has the same comparison for its own rules (`mainstay_auth`, `authz/cover.rs`). Crates of this
//! layer do not depend on that crate, so a change of one comparison needs the same change of the other.

use crate::rule::RbacRule;
use std::collections::{BTreeMap, BTreeSet};

/// The most parts that are compared. Roles of published bundles have a few thousand. A bundle of a few
/// megabytes can have too many for any time and memory.
const MAX_PARTS: usize = 250_000;

/// The rules have too many parts to compare.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the rules grant {0} single permissions; at most {MAX_PARTS} are compared")]
pub struct TooManyPermissions(pub usize);

/// The parts of the wanted rules that the held rules do not cover, in order.
///
/// # Errors
/// If the wanted rules have too many parts.
pub fn missing_rules<'r>(
    held: &[&RbacRule],
    wanted: impl IntoIterator<Item = &'r RbacRule>,
) -> Result<Vec<RbacRule>, TooManyPermissions> {
    let mut missing = Vec::new();
    let mut parts = 0_usize;
    for rule in wanted {
        if held.iter().any(|owned| covers_rule(owned, rule)) {
            continue;
        }
        parts = parts.saturating_add(rule.count_parts());
        check_limit(parts)?;
        push_missing_parts(held, rule, &mut missing);
    }
    Ok(missing)
}

/// The parts of the rules that the held rules cover: each rule as it is if all of it is covered.
///
/// # Errors
/// If the rules have too many parts.
pub(crate) fn covered_rules(
    held: &[&RbacRule],
    rules: &[RbacRule],
) -> Result<Vec<RbacRule>, TooManyPermissions> {
    let mut covered = Vec::new();
    for rule in rules {
        let missing: BTreeSet<RbacRule> = missing_rules(held, [rule])?.into_iter().collect();
        if missing.is_empty() {
            covered.push(rule.clone());
            continue;
        }
        // Nothing covers nothing: these are all parts.
        let parts = missing_rules(&[], [rule])?;
        covered.extend(compact_rules(parts.into_iter().filter(|part| !missing.contains(part))));
    }
    Ok(covered)
}

/// Refuses more parts than memory should hold.
pub(crate) fn check_limit(parts: usize) -> Result<(), TooManyPermissions> {
    if parts > MAX_PARTS { Err(TooManyPermissions(parts)) } else { Ok(()) }
}

/// Whether the held rules cover all parts of a rule. A rule with too many parts is not covered.
pub(crate) fn covers_all(held: &[&RbacRule], rule: &RbacRule) -> bool {
    missing_rules(held, [rule]).is_ok_and(|missing| missing.is_empty())
}

/// Whether one rule covers all parts of another: the usual case, decided without splitting.
fn covers_rule(owned: &RbacRule, rule: &RbacRule) -> bool {
    let covers_names = owned.resource_names.is_empty()
        || (!rule.resource_names.is_empty()
            && rule.non_resource_urls.is_empty()
            && rule.resource_names.iter().all(|name| owned.resource_names.contains(name)));
    covers_names
        && rule.verbs.iter().all(|verb| matches_word(&owned.verbs, verb))
        && rule.api_groups.iter().all(|group| matches_word(&owned.api_groups, group))
        && rule.resources.iter().all(|resource| matches_resource(owned, resource))
        && rule.non_resource_urls.iter().all(|path| matches_path(owned, path))
}

/// Adds the parts of a rule that no held rule covers.
fn push_missing_parts(held: &[&RbacRule], rule: &RbacRule, missing: &mut Vec<RbacRule>) {
    for group in &rule.api_groups {
        let held = select(held, |owned| matches_word(&owned.api_groups, group));
        for resource in &rule.resources {
            let held = select(&held, |owned| matches_resource(owned, resource));
            for verb in &rule.verbs {
                let held = select(&held, |owned| matches_word(&owned.verbs, verb));
                if held.iter().any(|owned| owned.resource_names.is_empty()) {
                    continue;
                }
                let part = RbacRule::of_resource(group, resource, &[verb]);
                if rule.resource_names.is_empty() {
                    missing.push(part);
                    continue;
                }
                let names: BTreeSet<&String> =
                    held.iter().flat_map(|owned| &owned.resource_names).collect();
                let uncovered = rule.resource_names.iter().filter(|name| !names.contains(name));
                missing.extend(uncovered.map(|name| part.clone().with_names([name])));
            }
        }
    }
    for path in &rule.non_resource_urls {
        for verb in &rule.verbs {
            let is_covered = held.iter().any(|owned| {
                owned.resource_names.is_empty()
                    && matches_path(owned, path)
                    && matches_word(&owned.verbs, verb)
            });
            if !is_covered {
                missing.push(RbacRule {
                    verbs: vec![verb.clone()],
                    non_resource_urls: vec![path.clone()],
                    ..RbacRule::default()
                });
            }
        }
    }
}

fn select<'a>(held: &[&'a RbacRule], matches: impl Fn(&RbacRule) -> bool) -> Vec<&'a RbacRule> {
    held.iter().copied().filter(|owned| matches(owned)).collect()
}

/// Whether a list of verbs or API groups has a word, or all words.
pub(crate) fn matches_word(list: &[String], word: &str) -> bool {
    list.iter().any(|value| value == "*" || value == word)
}

/// Whether a rule is about a resource such as `pods/log`: by name, as `*/log`, or as `*`.
pub(crate) fn matches_resource(rule: &RbacRule, resource: &str) -> bool {
    let subresource = resource.split_once('/').map(|(_, subresource)| subresource);
    rule.resources.iter().any(|value| {
        value == "*"
            || value == resource
            || (subresource.is_some() && value.strip_prefix("*/") == subresource)
    })
}

fn matches_path(rule: &RbacRule, path: &str) -> bool {
    rule.non_resource_urls.iter().any(|pattern| {
        pattern == path
            || (pattern.ends_with('*') && path.starts_with(pattern.trim_end_matches('*')))
    })
}

/// Compacts and sorts rules as Kubernetes does for messages: rules about the same resource and name become
/// one, with its verbs sorted, and `*` instead of all verbs. Rules that occur twice become one.
///
/// Rules about several resources or names, and rules about paths, stay as they are.
pub fn compact_rules(rules: impl IntoIterator<Item = RbacRule>) -> Vec<RbacRule> {
    let mut simple: BTreeMap<(String, String, Option<String>), BTreeSet<String>> = BTreeMap::new();
    let mut compacted = Vec::new();
    for rule in rules {
        match (&rule.api_groups[..], &rule.resources[..], &rule.resource_names[..]) {
            ([group], [resource], names)
                if names.len() <= 1 && rule.non_resource_urls.is_empty() =>
            {
                let key = (group.clone(), resource.clone(), names.first().cloned());
                simple.entry(key).or_default().extend(rule.verbs);
            }
            _ => compacted.push(RbacRule { verbs: sorted_verbs(rule.verbs), ..rule }),
        }
    }
    compacted.extend(simple.into_iter().map(|((group, resource, name), verbs)| RbacRule {
        api_groups: vec![group],
        resources: vec![resource],
        resource_names: name.into_iter().collect(),
        verbs: sorted_verbs(verbs),
        non_resource_urls: Vec::new(),
    }));
    compacted.sort_by_cached_key(RbacRule::sort_text);
    compacted.dedup();
    compacted
}

fn sorted_verbs(verbs: impl IntoIterator<Item = String>) -> Vec<String> {
    let verbs: BTreeSet<String> = verbs.into_iter().collect();
    if verbs.contains("*") { vec!["*".to_owned()] } else { verbs.into_iter().collect() }
}
