//! RBAC policy rules: matching a rule against a request.

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

/// Deserializes a list that may be null.
pub(super) fn nullable<'de, D: Deserializer<'de>, T: Deserialize<'de>>(
    from: D,
) -> Result<Vec<T>, D::Error> {
    Option::<Vec<T>>::deserialize(from).map(Option::unwrap_or_default)
}

impl PolicyRule {
    /// Whether the rule allows a request.
    pub(crate) fn allows(&self, attributes: &Attributes<'_>) -> bool {
        if !has_value(&self.verbs, attributes.verb) {
            return false;
        }
        if !attributes.is_resource {
            return self.non_resource_urls.iter().any(|url| covers_path(url, attributes.path));
        }
        has_value(&self.api_groups, attributes.group)
            && self.resources.iter().any(|pattern| matches_resource(pattern, attributes))
            && (self.resource_names.is_empty()
                || mainstay_fault::is_on("names-in-rules-are-not-looked-at")
                || self.resource_names.iter().any(|name| name == attributes.name))
    }

    /// The text in an error: `{APIGroups:["apps"], Resources:["deployments"], Verbs:["get"]}`.
    pub(crate) fn compact_text(&self) -> String {
        let parts: Vec<String> = [
            ("APIGroups", &self.api_groups),
            ("Resources", &self.resources),
            ("NonResourceURLs", &self.non_resource_urls),
            ("ResourceNames", &self.resource_names),
            ("Verbs", &self.verbs),
        ]
        .into_iter()
        .filter(|(_, list)| !list.is_empty())
        .map(|(name, list)| format!("{name}:{}", quote_list(list)))
        .collect();
        format!("{{{}}}", parts.join(", "))
    }
}

/// A list as Go's `%q` prints it.
pub(crate) fn quote_list(list: &[String]) -> String {
    let quoted: Vec<String> = list.iter().map(|text| quote(text)).collect();
    format!("[{}]", quoted.join(" "))
}

fn has_value(list: &[String], wanted: &str) -> bool {
    list.iter().any(|value| value == "*" || value == wanted)
}

/// Whether a pattern of `resources` matches a request: `*`, `pods`, `pods/log`, `*/scale`.
fn matches_resource(pattern: &str, attributes: &Attributes<'_>) -> bool {
    if pattern == "*" {
        return true;
    }
    match pattern.split_once('/') {
        // Resources and subresources of requests have no slash, but those of reviews may have one.
        _ if attributes.subresource.is_empty() => pattern == attributes.resource,
        Some(("*", subresource)) if subresource == attributes.subresource => true,
        _ => pattern
            .strip_prefix(attributes.resource)
            .and_then(|rest| rest.strip_prefix('/'))
            .is_some_and(|subresource| subresource == attributes.subresource),
    }
}

/// Whether a pattern of `nonResourceURLs` matches a path: `*`, `/healthz`, `/metrics/*`.
pub(crate) fn covers_path(pattern: &str, path: &str) -> bool {
    pattern == path || (pattern.ends_with('*') && path.starts_with(pattern.trim_end_matches('*')))
}

/// A Bloom filter of words: it may match words that were not added, but misses none. Each word sets
/// two of 128 bits, so false matches are rare.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct WordFilter(u128);

impl WordFilter {
    /// A filter of one word.
    pub(super) const fn of(word: &str) -> Self {
        let hash = fnv64a(word.as_bytes());
        Self((1 << (hash % 128)) | (1 << (hash / 128 % 128)))
    }

    /// A filter that matches all words.
    pub(super) const ALL: Self = Self(u128::MAX);

    /// Whether the filter may contain all words of another filter.
    pub(super) const fn may_contain(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// The filter of the words of both.
    pub(super) const fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

/// The verb and the resource of a request, as filters.
#[derive(Clone, Copy, Debug)]
pub(super) struct WantedFilter {
    verb: WordFilter,
    /// The two forms in which rules may name the resource.
    resources: [WordFilter; 2],
}

impl WantedFilter {
    /// The filters of a request.
    pub(super) fn of(attributes: &Attributes<'_>) -> Self {
        let resources = if !attributes.is_resource {
            [PATHS; 2]
        } else if attributes.subresource.is_empty() {
            [WordFilter::of(attributes.resource); 2]
        } else {
            let full = format!("{}/{}", attributes.resource, attributes.subresource);
            [WordFilter::of(&full), WordFilter::of(&format!("*/{}", attributes.subresource))]
        };
        Self { verb: WordFilter::of(attributes.verb), resources }
    }
}

/// The verbs and resources of rules, checked before the rules because it is cheaper.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct RuleFilter {
    verbs: WordFilter,
    resources: WordFilter,
}

impl RuleFilter {
    /// The filter of a rule.
    pub(super) fn of_rule(rule: &PolicyRule) -> Self {
        let paths = if rule.non_resource_urls.is_empty() { WordFilter::default() } else { PATHS };
        Self {
            verbs: word_filter(&rule.verbs),
            resources: word_filter(&rule.resources).union(paths),
        }
    }

    /// The filter of the rules of both.
    pub(super) const fn union(self, other: Self) -> Self {
        Self {
            verbs: self.verbs.union(other.verbs),
            resources: self.resources.union(other.resources),
        }
    }

    /// Whether the rules may allow a request.
    pub(super) const fn may_match(self, wanted: WantedFilter) -> bool {
        let [first, second] = wanted.resources;
        self.verbs.may_contain(wanted.verb)
            && (self.resources.may_contain(first) || self.resources.may_contain(second))
    }
}

/// The word for any path.
const PATHS: WordFilter = WordFilter::of("//");

fn word_filter(words: &[String]) -> WordFilter {
    words
        .iter()
        .map(|word| if word == "*" { WordFilter::ALL } else { WordFilter::of(word) })
        .fold(WordFilter::default(), WordFilter::union)
}
