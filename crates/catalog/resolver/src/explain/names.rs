//! Names in sentences.

use crate::predicate::Predicate;
use crate::property::Api;
use crate::world::{CatalogKey, World};

/// How many names a list shows.
const SHOWN: usize = 4;

/// The subject of a sentence.
pub(super) struct Who {
    pub text: String,
    pub plural: bool,
}

impl Who {
    /// `it` or `they`.
    pub(super) fn pronoun(plural: bool) -> Self {
        Self { text: if plural { "they" } else { "it" }.to_owned(), plural }
    }

    /// The form of a verb.
    pub(super) const fn verb(&self, one: &'static str, several: &'static str) -> &'static str {
        if self.plural { several } else { one }
    }
}

/// The name of a catalog, with its namespace if it is another one.
pub(super) fn catalog(world: &World<'_>, key: &CatalogKey) -> String {
    let CatalogKey { name, namespace } = key;
    if *namespace == world.namespace {
        format!("`{name}`")
    } else {
        format!("`{name}` of namespace `{namespace}`")
    }
}

/// An API.
pub(super) fn api(api: &Api) -> String {
    format!("the API `{}` ({}/{})", api.kind, api.group, api.version)
}

/// What a requirement asks for.
pub(super) fn requirement(predicate: &Predicate) -> String {
    let join =
        |parts: &[Predicate], by: &str| parts.iter().map(requirement).collect::<Vec<_>>().join(by);
    match predicate {
        Predicate::Api(it) => api(it),
        Predicate::Package(package) => format!("package `{package}`"),
        Predicate::InRange(range) => format!("a version in `{range}`"),
        Predicate::Label(label) => format!("an operator with the label `{label}`"),
        Predicate::All(all) => match all.as_slice() {
            [Predicate::Package(package), Predicate::InRange(range)] => {
                format!("package `{package}` in a version `{range}`")
            }
            all => join(all, " with "),
        },
        Predicate::Any(any) => join(any, " or "),
        Predicate::Not(none) => format!("an operator that is not {}", join(none, " or ")),
        Predicate::Cel { rule, message } if message.is_empty() => {
            format!("an operator for which `{}` holds", rule.text())
        }
        Predicate::Said { message, inner } => format!("{} ({message})", requirement(inner)),
        Predicate::Cel { message, .. } => format!("an operator that meets a rule ({message})"),
    }
}

/// Some names: few are listed, of many only the first.
pub(super) fn some(names: &[String], last: &str) -> String {
    if names.len() <= SHOWN + 1 {
        return list(names, last);
    }
    format!("{} and {} more", names[..SHOWN].join(", "), names.len() - SHOWN)
}

/// `a, b and c`, or with another last word.
pub(super) fn list(names: &[String], last: &str) -> String {
    match names {
        [] => String::new(),
        [one] => one.clone(),
        [first @ .., end] => format!("{} {last} {end}", first.join(", ")),
    }
}

/// The names that one may have meant instead of another, nearest first, at most three.
///
/// A name is near if few letters are wrong, or if one is part of the other.
pub(super) fn nearest<'n>(wanted: &str, names: impl IntoIterator<Item = &'n str>) -> Vec<&'n str> {
    let wanted = wanted.to_lowercase();
    let mut near: Vec<(usize, &str)> = names
        .into_iter()
        .filter_map(|name| Some((distance(&wanted, &name.to_lowercase())?, name)))
        .collect();
    near.sort_unstable();
    near.dedup();
    near.truncate(3);
    near.into_iter().map(|(_, name)| name).collect()
}

/// How far two names are from each other; none if they have nothing in common.
fn distance(a: &str, b: &str) -> Option<usize> {
    let longest = a.len().max(b.len());
    // Names of the cluster have at most 253 bytes; longer ones are not compared.
    if a.is_empty() || b.is_empty() || longest > 253 {
        return None;
    }
    let allowed = 1 + longest / 4;
    if a.len().abs_diff(b.len()) <= allowed {
        let edits = edits(a.as_bytes(), b.as_bytes());
        if edits <= allowed {
            return Some(edits);
        }
    }
    let shortest = a.len().min(b.len());
    (shortest > 3 && (a.contains(b) || b.contains(a))).then_some(longest - shortest + allowed)
}

/// How many bytes must be put in, taken away or replaced to get from one to the other.
fn edits(a: &[u8], b: &[u8]) -> usize {
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (at, byte) in a.iter().enumerate() {
        let mut diagonal = at;
        row[0] = at + 1;
        for (other, known) in b.iter().enumerate() {
            let replaced = diagonal + usize::from(byte != known);
            diagonal = row[other + 1];
            row[other + 1] = replaced.min(diagonal + 1).min(row[other] + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_names_are_those_with_few_wrong_letters() {
        let names = ["stable", "stable-v1", "alpha", "beta", "candidate", "4.14"];
        for (wanted, expected) in [
            ("stabel", &["stable"][..]),
            ("Stable", &["stable", "stable-v1"]),
            ("candidates", &["candidate"]),
            ("4.15", &["4.14"]),
            ("nightly", &[]),
            ("", &[]),
        ] {
            assert_eq!(nearest(wanted, names), expected, "{wanted}");
        }
    }

    #[test]
    fn lists_read_as_sentences() {
        let names: Vec<String> = ["a", "b", "c"].map(str::to_owned).to_vec();
        assert_eq!(list(&names, "and"), "a, b and c");
        assert_eq!(list(&names[..1], "or"), "a");
        assert_eq!(list(&[], "or"), "");
    }
}
