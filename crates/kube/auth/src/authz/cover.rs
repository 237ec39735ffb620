//! Whether rules hold everything that other rules grant.
//!
//! Rules are taken apart until one verb, one group, one resource and one name are left (or one verb
//! and one path); each of these parts is covered by a single rule of the owner or by none. That is
//! how the original does it (`k8s.io/component-helpers`, `auth/rbac/validation`), and what is
//! missing is part of its message.

use super::rules::{PolicyRule, covers_path, quoted};
use std::collections::{BTreeSet, HashMap, HashSet};

/// The most parts that are looked at. Real roles have a few thousand; a body of a few megabytes
/// could have more than anybody has time and memory for.
const MOST_PARTS: usize = 250_000;

/// What of some rules others do not hold: parts, in order.
///
/// `Err` if they have too many parts to be looked at.
pub fn missing(owner: &[&PolicyRule], wanted: &[PolicyRule]) -> Result<Vec<PolicyRule>, usize> {
    let count = wanted.iter().map(parts).fold(0, usize::saturating_add);
    if count > MOST_PARTS {
        return Err(count);
    }
    let mut missing = Vec::new();
    for rule in wanted {
        if !owner.iter().any(|own| covers_whole(own, rule)) {
            part_by_part(owner, rule, &mut missing);
        }
    }
    Ok(missing)
}

/// How many parts a rule has.
fn parts(rule: &PolicyRule) -> usize {
    let resources = [rule.api_groups.len(), rule.resources.len(), rule.resource_names.len().max(1)]
        .into_iter()
        .fold(1, usize::saturating_mul);
    resources.saturating_add(rule.non_resource_urls.len()).saturating_mul(rule.verbs.len())
}

/// Whether one rule covers all parts of another: the usual case, decided without them.
fn covers_whole(own: &PolicyRule, rule: &PolicyRule) -> bool {
    let names = own.resource_names.is_empty()
        || (!rule.resource_names.is_empty()
            && rule.non_resource_urls.is_empty()
            && are_within(&rule.resource_names, &own.resource_names));
    let all = |list: &[String], own: fn(&PolicyRule, &str) -> bool, by| {
        list.iter().all(|one| own(by, one))
    };
    names
        && all(&rule.verbs, has_verb, own)
        && all(&rule.api_groups, has_group, own)
        && all(&rule.resources, has_resource, own)
        && all(&rule.non_resource_urls, has_path, own)
}

/// Whether all names of a list are in another one.
fn are_within(names: &[String], others: &[String]) -> bool {
    const FEW: usize = 16;
    if names.len() <= FEW {
        return names.iter().all(|name| others.contains(name));
    }
    let others: HashSet<&String> = others.iter().collect();
    names.iter().all(|name| others.contains(name))
}

fn part_by_part(owner: &[&PolicyRule], rule: &PolicyRule, missing: &mut Vec<PolicyRule>) {
    let one = |text: &String| vec![text.clone()];
    for group in &rule.api_groups {
        let owner = narrowed(owner, |own| has_group(own, group));
        for resource in &rule.resources {
            let owner = narrowed(&owner, |own| has_resource(own, resource));
            for verb in &rule.verbs {
                let owner = narrowed(&owner, |own| has_verb(own, verb));
                let any_name = owner.iter().any(|own| own.resource_names.is_empty());
                let part = |names: Vec<String>| PolicyRule {
                    api_groups: one(group),
                    resources: one(resource),
                    verbs: one(verb),
                    resource_names: names,
                    ..PolicyRule::default()
                };
                if any_name {
                    continue;
                }
                if rule.resource_names.is_empty() {
                    missing.push(part(Vec::new()));
                }
                let held: HashSet<&String> = if rule.resource_names.is_empty() {
                    HashSet::new()
                } else {
                    owner.iter().flat_map(|own| &own.resource_names).collect()
                };
                let named = |name: &&String| !held.contains(*name);
                missing.extend(
                    rule.resource_names.iter().filter(named).map(|one| part(vec![one.clone()])),
                );
            }
        }
    }
    for url in &rule.non_resource_urls {
        for verb in &rule.verbs {
            let covered = owner.iter().any(|own| {
                own.resource_names.is_empty() && has_path(own, url) && has_verb(own, verb)
            });
            if !covered {
                missing.push(PolicyRule {
                    non_resource_urls: one(url),
                    verbs: one(verb),
                    ..PolicyRule::default()
                });
            }
        }
    }
}

fn narrowed<'a>(
    owner: &[&'a PolicyRule],
    keeps: impl Fn(&PolicyRule) -> bool,
) -> Vec<&'a PolicyRule> {
    owner.iter().copied().filter(|own| keeps(own)).collect()
}

fn has_verb(own: &PolicyRule, verb: &str) -> bool {
    own.verbs.iter().any(|one| one == "*" || one == verb)
}

fn has_group(own: &PolicyRule, group: &str) -> bool {
    own.api_groups.iter().any(|one| one == "*" || one == group)
}

fn has_resource(own: &PolicyRule, resource: &str) -> bool {
    let below = resource.split_once('/').map(|(_, below)| below);
    own.resources.iter().any(|one| {
        one == "*" || one == resource || (below.is_some() && one.strip_prefix("*/") == below)
    })
}

fn has_path(own: &PolicyRule, path: &str) -> bool {
    own.non_resource_urls.iter().any(|one| covers_path(one, path))
}

/// Parts as a message shows them: verbs of the same resource together, in order of the texts.
pub(super) fn described(missing: &[PolicyRule]) -> String {
    let mut texts = BTreeSet::new();
    let mut verbs: HashMap<[&[String]; 3], Vec<String>> = HashMap::new();
    for part in missing {
        if part.non_resource_urls.is_empty() {
            let key = [&*part.api_groups, &*part.resources, &*part.resource_names];
            verbs.entry(key).or_default().extend_from_slice(&part.verbs);
        } else {
            texts.insert(part.compact());
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
        rule.compact()
    }));
    texts.into_iter().collect::<Vec<_>>().join("\n")
}

/// The message about an attempt to grant what one does not hold.
pub(super) fn refusal(
    user: &str,
    groups: &[String],
    missing: &[PolicyRule],
    unresolved: Option<&str>,
) -> String {
    let mut text = format!(
        "user {} (groups={}) is attempting to grant RBAC permissions not currently held:\n{}",
        mainstay_gocompat::quote(user),
        quoted(groups),
        described(missing)
    );
    if let Some(unresolved) = unresolved {
        text.push_str("; resolution errors: [");
        text.push_str(unresolved);
        text.push(']');
    }
    text
}
