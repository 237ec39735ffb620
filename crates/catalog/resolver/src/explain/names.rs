//! Sentence parts of explanations: names, lists and requirements.

use crate::input::{CatalogKey, Demand, ResolutionInput};
use crate::predicate::Predicate;
use crate::property::OperatorApi;
use mainstay_version::Range;

/// How many names a list shows.
const SHOWN: usize = 4;

/// The maximal length of a foreign text, in characters.
const REQUIREMENT: usize = 200;

/// The subject of a sentence.
pub(super) struct NounPhrase {
    pub text: String,
    pub plural: bool,
}

impl NounPhrase {
    /// `it` or `they`.
    pub(super) fn pronoun(plural: bool) -> Self {
        Self { text: if plural { "they" } else { "it" }.to_owned(), plural }
    }

    /// The form of a verb.
    pub(super) const fn verb(&self, one: &'static str, several: &'static str) -> &'static str {
        if self.plural { several } else { one }
    }
}

/// The name of a catalog, with its namespace if that is another one.
pub(super) fn catalog(input: &ResolutionInput<'_>, key: &CatalogKey) -> String {
    let CatalogKey { name, namespace } = key;
    if *namespace == input.namespace {
        format!("`{name}`")
    } else {
        format!("`{name}` of namespace `{namespace}`")
    }
}

/// An API.
pub(super) fn api(api: &OperatorApi) -> String {
    format!("the API `{}` ({}/{})", api.kind, api.group, api.version)
}

/// The package and the range of a demand.
pub(super) fn demand(demand: &Demand) -> String {
    let package = format!("package `{}`", demand.package);
    match &demand.range {
        Some(range) => format!("version `{range}` of {package}"),
        None => package,
    }
}

/// The package and the range of a requirement that states nothing else.
pub(super) fn package_in_range(predicate: &Predicate) -> Option<(&str, String)> {
    match predicate {
        Predicate::All(all) => match all.as_slice() {
            [Predicate::Package(package), Predicate::InRange(range)] => {
                Some((package, range.to_string()))
            }
            _ => None,
        },
        _ => None,
    }
}

/// The empty version range of a requirement that cannot be met because of it.
pub(super) fn impossible_range(predicate: &Predicate) -> Option<&Range> {
    match predicate {
        Predicate::InRange(range) if range.set().is_empty() => Some(range),
        Predicate::All(all) => all.iter().find_map(impossible_range),
        Predicate::WithMessage { inner, .. } => impossible_range(inner),
        _ => None,
    }
}

/// The text of a requirement, after "needs"; the `failureMessage` of its author comes last.
pub(super) fn requirement(predicate: &Predicate) -> String {
    if let Some((package, range)) = package_in_range(predicate) {
        return format!("version `{range}` of package `{package}`");
    }
    match predicate {
        Predicate::Api(kind) => api(kind),
        Predicate::Package(package) => format!("package `{package}`"),
        Predicate::WithMessage { message, inner } => {
            format!("{} ({})", requirement(inner), shortened(message))
        }
        other => format!("an operator that {}", shortened(&condition(other, false))),
    }
}

/// A foreign text, shortened to a line or two.
pub(super) fn shortened(text: &str) -> String {
    let text = text.trim();
    if text.chars().count() <= REQUIREMENT {
        return text.to_owned();
    }
    let visible: String = text.chars().take(REQUIREMENT).collect();
    format!("{visible}…")
}

/// The text of a condition on an operator, after "that".
fn condition(predicate: &Predicate, inner: bool) -> String {
    if let Some((package, range)) = package_in_range(predicate) {
        return format!("is package `{package}` in version `{range}`");
    }
    let join = |parts: &[Predicate], by: &str| {
        let mut texts: Vec<String> = Vec::new();
        for text in parts.iter().map(|part| condition(part, parts.len() > 1)) {
            if !texts.contains(&text) {
                texts.push(text);
            }
        }
        let text = texts.join(by);
        if inner && texts.len() > 1 { format!("({text})") } else { text }
    };
    match predicate {
        Predicate::Api(OperatorApi { group, version, kind }) => {
            format!("provides `{kind}` ({group}/{version})")
        }
        Predicate::Package(package) => format!("is package `{package}`"),
        Predicate::InRange(range) => format!("has a version `{range}`"),
        Predicate::Label(label) => format!("has the label `{label}`"),
        Predicate::All(all) if all.is_empty() => "exists".to_owned(),
        Predicate::All(all) => join(all, " and "),
        Predicate::Any(any) if any.is_empty() => "meets one of no conditions".to_owned(),
        Predicate::Any(any) => join(any, " or "),
        Predicate::Not(none) if none.is_empty() => "exists".to_owned(),
        Predicate::Not(none) => {
            let none: Vec<String> = none.iter().map(|part| condition(part, false)).collect();
            format!("not ({})", none.join(" or "))
        }
        Predicate::Cel { rule, message } if message.is_empty() => {
            format!("meets the rule `{}`", rule.text())
        }
        Predicate::Cel { message, .. } => format!("meets a rule ({})", shortened(message)),
        Predicate::WithMessage { message, inner } => {
            format!("{} ({})", condition(inner, true), shortened(message))
        }
    }
}

/// `a, b and c`, or with another conjunction.
pub(super) fn list(names: &[String], last: &str) -> String {
    match names {
        [] => String::new(),
        [one] => one.clone(),
        [first @ .., end] => format!("{} {last} {end}", first.join(", ")),
    }
}

/// A list of names; of many names only the first ones.
pub(super) fn some(names: &[String], last: &str) -> String {
    first(names, SHOWN, last)
}

/// The first names of a list, and the number of the others.
pub(super) fn first(names: &[String], visible: usize, last: &str) -> String {
    if names.len() <= visible + 1 {
        return list(names, last);
    }
    format!("{} and {} more", names[..visible].join(", "), names.len() - visible)
}

/// Names in backquotes.
pub(super) fn quoted<'n>(names: impl IntoIterator<Item = &'n str>) -> Vec<String> {
    names.into_iter().map(|name| format!("`{name}`")).collect()
}

/// The names that a user may have meant instead of `wanted`, at most three, nearest first and
/// otherwise in the given order.
///
/// A name is near if few letters differ, or if one name is part of the other.
pub(super) fn nearest<'n>(wanted: &str, names: impl IntoIterator<Item = &'n str>) -> Vec<&'n str> {
    let wanted = wanted.to_lowercase();
    let mut near: Vec<(usize, &str)> = names
        .into_iter()
        .filter_map(|name| Some((distance(&wanted, &name.to_lowercase())?, name)))
        .collect();
    near.sort_by_key(|(distance, _)| *distance);
    near.truncate(3);
    near.into_iter().map(|(_, name)| name).collect()
}

/// The distance of two names; none if they are not similar.
fn distance(a: &str, b: &str) -> Option<usize> {
    let longest = a.len().max(b.len());
    // Kubernetes names have at most 253 bytes; longer names are not compared.
    if a.is_empty() || b.is_empty() || longest > 253 {
        return None;
    }
    let allowed = 1 + (longest - 1) / 5;
    if a.len().abs_diff(b.len()) <= allowed {
        let edits = edits(a.as_bytes(), b.as_bytes());
        if edits <= allowed && 2 * edits < longest + 1 {
            return Some(edits);
        }
    }
    let shortest = a.len().min(b.len());
    (shortest > 3 && (a.contains(b) || b.contains(a))).then_some(longest - shortest + allowed)
}

/// The edit distance: how many bytes to insert, delete or replace to turn one name into the other.
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
    fn nearest_names_differ_in_few_letters() {
        let names = ["stable", "stable-v1", "alpha", "beta", "candidate", "4.14"];
        for (wanted, expected) in [
            ("stabel", &["stable"][..]),
            ("Stable", &["stable", "stable-v1"]),
            ("candidates", &["candidate"]),
            ("beto", &["beta"]),
            ("b", &[]),
            ("4.15", &["4.14"]),
            ("nightly", &[]),
            ("", &[]),
        ] {
            assert_eq!(nearest(wanted, names), expected, "{wanted}");
        }
    }

    #[test]
    fn lists_read_as_sentences() {
        let names = quoted(["a", "b", "c", "d", "e", "f"]);
        assert_eq!(list(&names[..3], "and"), "`a`, `b` and `c`");
        assert_eq!(list(&names[..1], "or"), "`a`");
        assert_eq!(list(&[], "or"), "");
        assert_eq!(some(&names, "and"), "`a`, `b`, `c`, `d` and 2 more");
    }
}
