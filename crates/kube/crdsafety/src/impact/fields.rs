//! The change of each field of a schema: wider, narrower, or other words only.

use super::{Assessment, Impact, branches, keeps_any, worst};
use crate::checks::{BOUNDS, Bound, set_changes};
use crate::config::Check;
use crate::go::{SCHEMA, Value, View, field};
use mainstay_schema::structural::is_known_format;
use std::collections::BTreeSet;

/// The field that a check looks at.
pub(super) fn of_check(check: Check) -> Option<usize> {
    let bound = BOUNDS.iter().find(|(of_bound, ..)| *of_bound == check).map(|(_, index, _)| *index);
    bound.or(match check {
        Check::Default => Some(field::DEFAULT),
        Check::Description => Some(field::DESCRIPTION),
        Check::Enum => Some(field::ENUM),
        Check::Nullable => Some(field::NULLABLE),
        Check::OneOf => Some(field::ONE_OF),
        Check::Pattern => Some(field::PATTERN),
        Check::Required => Some(field::REQUIRED),
        Check::Type => Some(field::TYPE),
        _ => None,
    })
}

/// The changes of all fields and of all schemas inside.
pub(super) fn all(old: View<'_>, new: View<'_>) -> Vec<Assessment> {
    let own = (0..SCHEMA.fields.len()).filter_map(|index| change(index, old, new));
    let mut found: Vec<Assessment> = own.collect();
    found.extend(inside(old, new));
    found
}

/// The changes of the fields without a check of their own.
pub(super) fn unhandled(old: View<'_>, new: View<'_>) -> Vec<Assessment> {
    let is_handled = |index: &usize| {
        Check::ALL.iter().any(|check| of_check(*check) == Some(*index))
            || matches!(*index, field::PROPERTIES | field::ITEMS)
    };
    let others = (0..SCHEMA.fields.len()).filter(|index| !is_handled(index));
    others.filter_map(|index| change(index, old, new)).collect()
}

/// The changes of properties and items.
fn inside(old: View<'_>, new: View<'_>) -> Vec<Assessment> {
    let mut found = Vec::new();
    for (name, property) in old.entries(field::PROPERTIES) {
        match new.property(name) {
            Some(other) => found.extend(all(property, other)),
            None if keeps_any(new) => found.push(Assessment::warning(
                format!("values of the field {name} are kept, but no longer validated"),
                "keep the field in the schema",
            )),
            None => found.push(Assessment::breaking(
                format!(
                    "the API server drops the field {name} from objects when they are written next"
                ),
                "keep the field",
            )),
        }
    }
    match (old.item_schema(), new.item_schema()) {
        (Some(old), Some(new)) => found.extend(all(old, new)),
        (None, _) => {}
        (Some(_), None) => found.push(Assessment::breaking(
            "the items of the list have no schema any more",
            "keep the schema of the items",
        )),
    }
    found
}

/// The change of one field; none if it is the same.
pub(super) fn change(index: usize, old: View<'_>, new: View<'_>) -> Option<Assessment> {
    if old.has_same(new, index) {
        return None;
    }
    if let Some((_, _, bound)) = BOUNDS.iter().find(|(_, of_bound, _)| *of_bound == index) {
        return Some(bound_change(index, *bound, old, new));
    }
    match index {
        field::PROPERTIES | field::ITEMS => None,
        field::TYPE => Some(type_change(old, new)),
        field::DEFAULT => Some(default_change(old, new)),
        field::ENUM => Some(enum_change(old, new)),
        field::REQUIRED => required(old, new),
        field::PATTERN => Some(pattern_change(old, new)),
        field::NULLABLE => Some(nullable_change(new)),
        field::FORMAT => Some(format_change(old.text(field::FORMAT), new.text(field::FORMAT))),
        field::EXCLUSIVE_MAXIMUM => Some(exclusive_change(index, field::MAXIMUM, new)),
        field::EXCLUSIVE_MINIMUM => Some(exclusive_change(index, field::MINIMUM, new)),
        field::UNIQUE_ITEMS => Some(switch_on(
            new.is_set(index),
            "lists with equal items are refused",
            "lists may have equal items now",
        )),
        field::MULTIPLE_OF => Some(multiple_change(old, new)),
        field::ALL_OF | field::ANY_OF | field::ONE_OF | field::NOT => {
            branches::combinator(index, old, new)
        }
        field::ADDITIONAL_PROPERTIES => Some(additional_change(old, new)),
        field::PRESERVE_UNKNOWN_FIELDS => Some(preserve_change(old, new)),
        field::EMBEDDED_RESOURCE => Some(switch_on(
            new.is_set(index),
            "objects without apiVersion, kind and metadata are refused",
            "the value need not be a Kubernetes object any more",
        )),
        field::INT_OR_STRING => Some(switch_on(
            !new.is_set(index),
            "values of the other type are refused",
            "integers and strings are allowed now",
        )),
        field::LIST_TYPE => Some(list_type_change(old, new)),
        field::LIST_MAP_KEYS => list_keys_change(old, new),
        field::MAP_TYPE => Some(Assessment::warning(
            "server-side apply merges the map in another way from now on",
            "tell the users who apply these objects",
        )),
        field::VALIDATIONS => Some(rules_change(old, new)),
        field::DESCRIPTION
        | field::TITLE
        | field::EXAMPLE
        | field::EXTERNAL_DOCS
        | field::ID
        | field::META_SCHEMA => Some(Assessment::safe("only the documentation changed")),
        _ => Some(Assessment::warning(
            "the API server does not evaluate this part of a schema",
            "leave the part out of the schema",
        )),
    }
}

/// A switch that makes a schema narrower when it is on.
fn switch_on(is_narrower: bool, narrower: &str, wider: &str) -> Assessment {
    if is_narrower {
        Assessment::breaking(narrower, "make the condition part of a new version only")
    } else {
        Assessment::safe(wider)
    }
}

fn type_change(old: View<'_>, new: View<'_>) -> Assessment {
    let (before, after) = (old.text(field::TYPE), new.text(field::TYPE));
    let is_number_or_text = matches!(before, "integer" | "string");
    match (before, after) {
        (_, "") if new.is_set(field::INT_OR_STRING) && is_number_or_text => {
            Assessment::safe("values of the old type are still allowed")
        }
        (_, "") if new.is_target_set(field::PRESERVE_UNKNOWN_FIELDS) => {
            Assessment::safe("values of any type are allowed now")
        }
        ("integer", "number") => Assessment::warning(
            "integers are still allowed, but clients that read them may meet fractions",
            "make sure that no client of the version reads the field as an integer",
        ),
        _ => Assessment::breaking(
            "values of the old type are refused, and clients cannot read values of the new type",
            "add a field with the new type, and keep the old one",
        ),
    }
}

fn default_change(old: View<'_>, new: View<'_>) -> Assessment {
    let reason = match (old.raw(field::DEFAULT), new.raw(field::DEFAULT)) {
        (None, Some(new)) => format!("objects without the field get the value {new}"),
        (Some(old), None) => {
            format!("objects without the field do not get the value {old} any more")
        }
        (old, new) => format!(
            "objects without the field get the value {} instead of {}",
            new.unwrap_or_default(),
            old.unwrap_or_default()
        ),
    };
    Assessment::warning(reason, "keep the default as it is, and let the operator decide instead")
}

fn enum_change(old: View<'_>, new: View<'_>) -> Assessment {
    let (before, after): (BTreeSet<String>, BTreeSet<String>) =
        (old.enum_texts().collect(), new.enum_texts().collect());
    let (removed, _) = set_changes(&before, &after);
    if after.is_empty() {
        return Assessment::safe("any value is allowed now");
    }
    if before.is_empty() {
        return Assessment::breaking(
            "values that the list does not have are refused",
            "make the list part of a new version only",
        );
    }
    if removed.is_empty() {
        return Assessment::safe("all values that were allowed are still allowed");
    }
    let removed: Vec<&str> = removed.into_iter().map(String::as_str).collect();
    Assessment::breaking(
        format!("objects with the removed value {} are refused", removed.join(" or ")),
        "keep the value, and let the operator treat it as another one",
    )
}

/// New required fields.
pub(super) fn required(old: View<'_>, new: View<'_>) -> Option<Assessment> {
    let (before, after): (BTreeSet<&str>, BTreeSet<&str>) =
        (old.texts(field::REQUIRED).collect(), new.texts(field::REQUIRED).collect());
    let (removed, added) = set_changes(&before, &after);
    if added.is_empty() {
        let is_optional = !removed.is_empty();
        return is_optional.then(|| Assessment::safe("a field became optional"));
    }
    let has_default =
        |name: &&&str| new.property(name).is_some_and(|p| p.raw(field::DEFAULT).is_some());
    let missing: Vec<&str> = added.into_iter().filter(|name| !has_default(name)).copied().collect();
    Some(if missing.is_empty() {
        Assessment::safe("the default fills the required field where it is missing")
    } else {
        Assessment::breaking(
            format!("objects without {} are refused", missing.join(", ")),
            "leave the field optional, or give it a default",
        )
    })
}

fn bound_change(index: usize, bound: Bound, old: View<'_>, new: View<'_>) -> Assessment {
    let is_narrower = match (old.number_target(index), new.number_target(index)) {
        (_, None) => false,
        (None, Some(_)) => true,
        (Some(old), Some(new)) => match bound {
            Bound::Upper => new < old,
            Bound::Lower => new > old,
        },
    };
    if is_narrower {
        let side = if bound == Bound::Upper { "above" } else { "below" };
        Assessment::breaking(
            format!("values {side} the new bound are refused"),
            "keep the bound, or make the new one part of a new version only",
        )
    } else {
        Assessment::safe("all values within the old bound are still allowed")
    }
}

fn exclusive_change(index: usize, bound: usize, new: View<'_>) -> Assessment {
    let is_narrower = new.is_set(index) && new.target(bound).is_some();
    switch_on(is_narrower, "the bound itself is refused", "no value is refused that was allowed")
}

fn multiple_change(old: View<'_>, new: View<'_>) -> Assessment {
    let (before, after) =
        (old.number_target(field::MULTIPLE_OF), new.number_target(field::MULTIPLE_OF));
    let is_wider = match (before, after) {
        (_, None) => true,
        (Some(before), Some(after)) => after != 0.0 && (before % after).abs() < f64::EPSILON,
        _ => false,
    };
    switch_on(!is_wider, "other numbers than the multiples are refused", "more numbers are allowed")
}

fn pattern_change(old: View<'_>, new: View<'_>) -> Assessment {
    let (before, after) = (old.text(field::PATTERN), new.text(field::PATTERN));
    if after.is_empty() {
        return Assessment::safe("any string is allowed now");
    }
    let what = if before.is_empty() { "the pattern" } else { "the new pattern" };
    Assessment::breaking(
        format!("strings that do not match {what} are refused"),
        "keep the pattern, or make the new one part of a new version only",
    )
}

fn nullable_change(new: View<'_>) -> Assessment {
    if new.is_set(field::NULLABLE) {
        return Assessment::safe("null is allowed beside the values that were allowed");
    }
    Assessment::breaking("objects in which the field is null are refused", "keep nullable: true")
}

fn format_change(old: &str, new: &str) -> Assessment {
    if new.is_empty() {
        return Assessment::safe("values of any format are allowed now");
    }
    if (old, new) == ("int32", "int64") || (old, new) == ("float", "double") {
        return Assessment::safe("all numbers of the old format fit the new one");
    }
    let is_number = matches!(new, "int32" | "int64" | "float" | "double");
    if !is_number && !is_known_format(new) {
        return Assessment::safe("the API server does not know the format and checks nothing");
    }
    if old.is_empty() && matches!(new, "int64" | "double") {
        return Assessment::safe("the format says what the API server stores anyway");
    }
    Assessment::breaking(
        format!("values that are no {new} are refused"),
        "keep the format, or make the new one part of a new version only",
    )
}

fn additional_change(old: View<'_>, new: View<'_>) -> Assessment {
    let index = field::ADDITIONAL_PROPERTIES;
    match (old.additional(index), new.additional(index)) {
        (Some(old), Some(new)) => worst(all(old, new))
            .unwrap_or_else(|| Assessment::safe("the values of the map are the same")),
        (None, Some(_)) if old.allows_any(index) => Assessment::breaking(
            "values that do not fit the new schema are refused",
            "keep the map open",
        ),
        (None, Some(_)) => Assessment::safe("the object keeps fields that were dropped before"),
        (Some(_), None) if new.allows_any(index) => {
            Assessment::safe("any value is allowed in the map now")
        }
        (None, None) if new.allows_any(index) => Assessment::safe("any field is kept now"),
        (None, None) if !old.allows_any(index) => {
            Assessment::safe("the object has no other fields, as before")
        }
        _ if new.is_target_set(field::PRESERVE_UNKNOWN_FIELDS) => Assessment::warning(
            "the entries of the map are kept, but no longer validated",
            "keep the schema of the entries",
        ),
        _ => Assessment::breaking(
            "the API server drops the entries of the map when objects are written next",
            "keep additionalProperties",
        ),
    }
}

fn preserve_change(old: View<'_>, new: View<'_>) -> Assessment {
    let index = field::PRESERVE_UNKNOWN_FIELDS;
    match (old.is_target_set(index), new.is_target_set(index)) {
        (false, true) => Assessment::safe("unknown fields are kept now"),
        (true, false) => Assessment::breaking(
            "the API server drops unknown fields when objects are written next",
            "keep x-kubernetes-preserve-unknown-fields, or list all fields that are in use",
        ),
        _ => Assessment::safe("unknown fields are treated as before"),
    }
}

fn list_type_change(old: View<'_>, new: View<'_>) -> Assessment {
    let kind = |view: View<'_>| match view.text_target(field::LIST_TYPE) {
        Some(kind @ ("set" | "map")) => kind == "set",
        _ => false,
    };
    let is_keyed =
        |view: View<'_>| matches!(view.text_target(field::LIST_TYPE), Some("set" | "map"));
    match (is_keyed(old), is_keyed(new)) {
        (false, true) => Assessment::breaking(
            "lists with equal items or keys are refused",
            "make the list type part of a new version only",
        ),
        (true, true) if kind(old) != kind(new) => Assessment::breaking(
            "lists with equal keys are refused, and items are merged in another way",
            "keep the list type",
        ),
        (true, false) => Assessment::warning(
            "server-side apply replaces the whole list instead of merging its items",
            "tell the users who apply these objects",
        ),
        _ => Assessment::safe("atomic is what a list is anyway"),
    }
}

fn list_keys_change(old: View<'_>, new: View<'_>) -> Option<Assessment> {
    // A list that is no map any more is assessed by its type.
    let is_map = |view: View<'_>| view.text_target(field::LIST_TYPE) == Some("map");
    if !(is_map(old) && is_map(new)) {
        return None;
    }
    let (before, after): (BTreeSet<&str>, BTreeSet<&str>) =
        (old.texts(field::LIST_MAP_KEYS).collect(), new.texts(field::LIST_MAP_KEYS).collect());
    Some(if before == after {
        Assessment::safe("the keys are the same in another order")
    } else if before.is_subset(&after) {
        Assessment::warning(
            "items count as equal by more keys, so server-side apply merges them in another way",
            "tell the users who apply these objects",
        )
    } else {
        Assessment::breaking("lists with equal keys are refused", "keep the keys of the list")
    })
}

/// The rules of a schema: their texts, and whether each reads a missing old value.
fn rules<'v>(view: View<'v>) -> BTreeSet<(&'v str, bool)> {
    let rule = |value: &'v Value| {
        let Value::Struct(fields) = value else { return None };
        let Some(Value::Text(rule)) = fields.first() else { return None };
        Some((rule.as_str(), fields.last().is_some_and(|optional| !optional.is_zero())))
    };
    view.items(field::VALIDATIONS).iter().filter_map(rule).collect()
}

fn rules_change(old: View<'_>, new: View<'_>) -> Assessment {
    let (before, after) = (rules(old), rules(new));
    let (removed, added) = set_changes(&before, &after);
    if added.is_empty() {
        return Assessment::safe(if removed.is_empty() {
            "the rules are the same; only their messages, reasons or order changed"
        } else {
            "objects that were valid still are: a rule was removed"
        });
    }
    let is_transition = added.iter().all(|(rule, _)| rule.contains("oldSelf"));
    let reason = if is_transition {
        "updates that the new rule forbids are refused"
    } else {
        "objects that break the new rule are refused"
    };
    Assessment {
        impact: Impact::Breaking,
        reason: reason.to_owned(),
        remedy:
            "make the rule part of a new version only, or have the operator report what breaks it"
                .to_owned(),
    }
}
