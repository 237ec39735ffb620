//! Combinators: `allOf`, `anyOf`, `oneOf` and `not`.
//!
//! Upstream compares branches by their position, so it refuses a mere change of order. Here the
//! branches are compared as sets.

use super::{Assessment, fields};
use crate::checks::without_words;
use crate::go::{View, field};

const REMEDY: &str =
    "keep all that was valid before valid: add alternatives, and narrow none of them";

/// How many pairs of branches are compared for one combinator. Hand-written schemas have a few dozen; the
/// limit keeps a hostile one from taking minutes.
const MAX_PAIRS: usize = 250_000;

/// The change of a combinator; none if its branches are the same.
pub(super) fn combinator(index: usize, old: View<'_>, new: View<'_>) -> Option<Assessment> {
    if old.has_same(new, index) {
        return None;
    }
    if branch_count(old).saturating_mul(branch_count(new)) > MAX_PAIRS {
        return Some(Assessment::breaking(
            "there are too many alternatives to compare, so some may be narrower",
            "use fewer alternatives",
        ));
    }
    Some(match index {
        field::NOT => negation(old.negated(), new.negated()),
        field::ONE_OF => one_of(old, new),
        field::ANY_OF => any_of(old, new),
        _ => all_of(old, new),
    })
}

/// The number of branches in a schema and below.
fn branch_count(view: View<'_>) -> usize {
    let lists = [field::ALL_OF, field::ANY_OF, field::ONE_OF];
    let branches = lists.into_iter().flat_map(|index| view.schemas(index)).chain(view.negated());
    let own: usize = branches.map(|branch| 1 + branch_count(branch)).sum();
    let properties = view.entries(field::PROPERTIES).map(|(_, property)| property);
    let values = view.additional(field::ADDITIONAL_PROPERTIES);
    let inside = properties.chain(values).chain(view.item_schema());
    own + inside.map(branch_count).sum::<usize>()
}

/// Whether all that `old` allows is allowed by `new`.
fn is_wider(old: View<'_>, new: View<'_>) -> bool {
    fields::all(old, new).iter().all(Assessment::is_safe)
}

fn any_of(old: View<'_>, new: View<'_>) -> Assessment {
    let (before, after): (Vec<_>, Vec<_>) =
        (old.schemas(field::ANY_OF).collect(), new.schemas(field::ANY_OF).collect());
    if after.is_empty() {
        return Assessment::safe("no alternative needs to match any more");
    }
    let is_covered = |branch: &View<'_>| after.iter().any(|other| is_wider(*branch, *other));
    if !before.is_empty() && before.iter().all(is_covered) {
        return Assessment::safe("each alternative that was allowed is still allowed");
    }
    Assessment::breaking("objects that match none of the new alternatives are refused", REMEDY)
}

fn all_of(old: View<'_>, new: View<'_>) -> Assessment {
    let before: Vec<View<'_>> = old.schemas(field::ALL_OF).collect();
    let is_implied = |branch: View<'_>| before.iter().any(|other| is_wider(*other, branch));
    if new.schemas(field::ALL_OF).all(is_implied) {
        return Assessment::safe("no condition was added or narrowed");
    }
    Assessment::breaking("objects that do not meet the new condition are refused", REMEDY)
}

fn one_of(old: View<'_>, new: View<'_>) -> Assessment {
    let schemas =
        |view: View<'_>| -> Vec<_> { view.schemas(field::ONE_OF).map(without_words).collect() };
    let (before, after) = (schemas(old), schemas(new));
    if after.is_empty() {
        return Assessment::safe("no alternative needs to match any more");
    }
    if before.is_empty() {
        return Assessment::breaking(
            "objects that match none or several of the alternatives are refused",
            REMEDY,
        );
    }
    if !before.iter().all(|branch| after.contains(branch)) {
        return Assessment::breaking(
            "objects that match only the removed or changed alternative are refused",
            REMEDY,
        );
    }
    if before.len() == after.len() {
        return Assessment::safe("the alternatives are the same as before");
    }
    Assessment::safe(
        "one more alternative is allowed; only an object that matches it beside another one is refused",
    )
}

fn negation(old: Option<View<'_>>, new: Option<View<'_>>) -> Assessment {
    match (old, new) {
        (_, None) => Assessment::safe("nothing is excluded any more"),
        // What is excluded shrank if the old exclusion is wider than the new one.
        (Some(old), Some(new)) if is_wider(new, old) => {
            Assessment::safe("nothing is excluded that was not excluded before")
        }
        _ => Assessment::breaking("objects that match the new exclusion are refused", REMEDY),
    }
}
