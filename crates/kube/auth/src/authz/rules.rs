//! Rules of roles: what one allows.

use super::Attributes;
use mainstay_gocompat::quote;
use mainstay_object::fnv::fnv64a;
use serde::{Deserialize, Deserializer, Serialize};

/// One rule of a role.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PolicyRule {
    #[serde(deserialize_with = "nullable", skip_serializing_if = "Vec::is_empty")]
    pub(crate) api_groups: Vec<String>,
    #[serde(
        rename = "nonResourceURLs",
        deserialize_with = "nullable",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub(crate) non_resource_urls: Vec<String>,
    #[serde(deserialize_with = "nullable", skip_serializing_if = "Vec::is_empty")]
    pub(crate) resource_names: Vec<String>,
    #[serde(deserialize_with = "nullable", skip_serializing_if = "Vec::is_empty")]
    pub(crate) resources: Vec<String>,
    #[serde(deserialize_with = "nullable")]
    pub(crate) verbs: Vec<String>,
}

/// A list, or nothing.
pub(super) fn nullable<'de, D: Deserializer<'de>, T: Deserialize<'de>>(
    from: D,
) -> Result<Vec<T>, D::Error> {
    Option::<Vec<T>>::deserialize(from).map(Option::unwrap_or_default)
}

impl PolicyRule {
    /// Whether it allows what is asked.
    pub(crate) fn allows(&self, asked: &Attributes<'_>) -> bool {
        if !has(&self.verbs, asked.verb) {
            return false;
        }
        if !asked.is_resource {
            return self.non_resource_urls.iter().any(|url| covers_path(url, asked.path));
        }
        has(&self.api_groups, asked.group)
            && self.resources.iter().any(|one| is_resource(one, asked))
            && (self.resource_names.is_empty()
                || mainstay_fault::is_on("names-in-rules-are-not-looked-at")
                || self.resource_names.iter().any(|name| name == asked.name))
    }

    /// As refusals show it: `{APIGroups:["apps"], Resources:["deployments"], Verbs:["get"]}`.
    pub(crate) fn compact(&self) -> String {
        let parts: Vec<String> = [
            ("APIGroups", &self.api_groups),
            ("Resources", &self.resources),
            ("NonResourceURLs", &self.non_resource_urls),
            ("ResourceNames", &self.resource_names),
            ("Verbs", &self.verbs),
        ]
        .into_iter()
        .filter(|(_, list)| !list.is_empty())
        .map(|(name, list)| format!("{name}:{}", quoted(list)))
        .collect();
        format!("{{{}}}", parts.join(", "))
    }
}

/// A list as Go's `%q` prints it.
pub(crate) fn quoted(list: &[String]) -> String {
    let quoted: Vec<String> = list.iter().map(|one| quote(one)).collect();
    format!("[{}]", quoted.join(" "))
}

fn has(list: &[String], wanted: &str) -> bool {
    list.iter().any(|one| one == "*" || one == wanted)
}

/// Whether a word of `resources` means what is asked for: `*`, `pods`, `pods/log`, `*/scale`.
fn is_resource(word: &str, asked: &Attributes<'_>) -> bool {
    if word == "*" {
        return true;
    }
    match word.split_once('/') {
        // Neither resource nor subresource of a request has a slash, but those of reviews may.
        _ if asked.subresource.is_empty() => word == asked.resource,
        Some(("*", below)) if below == asked.subresource => true,
        _ => word
            .strip_prefix(asked.resource)
            .and_then(|rest| rest.strip_prefix('/'))
            .is_some_and(|below| below == asked.subresource),
    }
}

/// Whether a word of `nonResourceURLs` means a path: `*`, `/healthz`, `/metrics/*`.
pub(crate) fn covers_path(word: &str, path: &str) -> bool {
    word == path || (word.ends_with('*') && path.starts_with(word.trim_end_matches('*')))
}

/// A set of words that may hold more than were put in: what is not in it need not be looked for.
/// Each word is two bits, so a word that was not put in is rarely found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Sieve(u128);

impl Sieve {
    /// A set of one word.
    pub(super) const fn of(word: &str) -> Self {
        let hash = fnv64a(word.as_bytes());
        Self((1 << (hash % 128)) | (1 << (hash / 128 % 128)))
    }

    /// All words.
    pub(super) const ALL: Self = Self(u128::MAX);

    /// Whether all words of another set may be in this one.
    pub(super) const fn holds(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// The words of both.
    pub(super) const fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

/// Which verb and resource are asked for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wanted {
    verb: Sieve,
    /// The ways in which rules may write it.
    resources: [Sieve; 2],
}

impl Wanted {
    /// Of what is asked.
    pub(super) fn of(asked: &Attributes<'_>) -> Self {
        let resources = if !asked.is_resource {
            [PATHS; 2]
        } else if asked.subresource.is_empty() {
            [Sieve::of(asked.resource); 2]
        } else {
            let full = format!("{}/{}", asked.resource, asked.subresource);
            [Sieve::of(&full), Sieve::of(&format!("*/{}", asked.subresource))]
        };
        Self { verb: Sieve::of(asked.verb), resources }
    }
}

/// Which verbs and resources rules are about: looked at before they are.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Gist {
    verbs: Sieve,
    resources: Sieve,
}

impl Gist {
    /// Of a rule.
    pub(super) fn of_rule(rule: &PolicyRule) -> Self {
        let paths = if rule.non_resource_urls.is_empty() { Sieve::default() } else { PATHS };
        Self { verbs: sieve(&rule.verbs), resources: sieve(&rule.resources).with(paths) }
    }

    /// Of both.
    pub(super) const fn with(self, other: Self) -> Self {
        Self {
            verbs: self.verbs.with(other.verbs),
            resources: self.resources.with(other.resources),
        }
    }

    /// Whether what is wanted may be among them.
    pub(super) const fn may_have(self, wanted: Wanted) -> bool {
        let [one, other] = wanted.resources;
        self.verbs.holds(wanted.verb) && (self.resources.holds(one) || self.resources.holds(other))
    }
}

/// Stands for all paths.
const PATHS: Sieve = Sieve::of("//");

fn sieve(words: &[String]) -> Sieve {
    words
        .iter()
        .map(|word| if word == "*" { Sieve::ALL } else { Sieve::of(word) })
        .fold(Sieve::default(), Sieve::with)
}
