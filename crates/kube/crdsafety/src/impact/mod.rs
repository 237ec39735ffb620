//! What a change does to stored objects and to clients: nothing, perhaps something, or harm.
//!
//! ```text
//! property pair ─┬─ removed? ── does the schema around it keep unknown fields? ─┐
//!                ├─ in a branch? ── does the whole combinator allow less? ──────┼─► Assessment
//!                └─ its fields, one by one: wider, narrower or different ───────┘
//! ```
//!
//! Upstream refuses each change that it does not know to be safe. This module looks at the direction of
//! a change instead: a schema that allows all that it allowed before breaks nothing.
//!
//! It does not decide whether an upgrade is refused: that is the severity of a finding.

mod branches;
mod fields;

use crate::config::Check;
use crate::flatten::Property;
use crate::go::{View, field};
use std::cell::RefCell;
use std::collections::BTreeMap;

/// What a change does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Impact {
    /// Stored objects stay valid, and clients go on working.
    Safe,
    /// Stored objects stay valid, but behave or are merged in another way.
    Warning,
    /// Stored objects or requests that were valid can be refused or lose data.
    Breaking,
}

impl Impact {
    /// `safe`, `warning` or `breaking`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Safe => "safe",
            Self::Warning => "warning",
            Self::Breaking => "breaking",
        }
    }
}

/// The impact of a change, why it has it, and what would mend it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Assessment {
    pub(crate) impact: Impact,
    pub(crate) reason: String,
    pub(crate) remedy: String,
}

impl Assessment {
    pub(crate) fn safe(reason: impl Into<String>) -> Self {
        Self { impact: Impact::Safe, reason: reason.into(), remedy: String::new() }
    }

    pub(crate) fn warning(reason: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { impact: Impact::Warning, reason: reason.into(), remedy: remedy.into() }
    }

    pub(crate) fn breaking(reason: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { impact: Impact::Breaking, reason: reason.into(), remedy: remedy.into() }
    }

    fn is_safe(&self) -> bool {
        self.impact == Impact::Safe
    }
}

/// The first of the assessments with the highest impact.
fn worst(all: Vec<Assessment>) -> Option<Assessment> {
    all.into_iter().reduce(|worst, next| if next.impact > worst.impact { next } else { worst })
}

/// The properties of a schema by their paths.
type PropertyMap<'s> = BTreeMap<String, Property<'s>>;

/// A property before and after.
#[derive(Clone, Copy)]
pub(crate) struct PropertyPair<'p> {
    pub(crate) path: &'p str,
    pub(crate) old: &'p Property<'p>,
    pub(crate) new: Option<&'p Property<'p>>,
    /// All properties, old and new.
    pub(crate) all: (&'p PropertyMap<'p>, &'p PropertyMap<'p>),
    /// What was found out about combinators, for all of their branches.
    pub(crate) combinators: &'p Combinators,
}

/// Assessments of combinators, by the path of their schema and their field.
#[derive(Debug, Default)]
pub(crate) struct Combinators(RefCell<BTreeMap<(String, usize), Assessment>>);

impl Combinators {
    fn get_or_assess(
        &self,
        owner: &(String, usize),
        assess: impl FnOnce() -> Assessment,
    ) -> Assessment {
        if let Some(known) = self.0.borrow().get(owner) {
            return known.clone();
        }
        let assessment = assess();
        self.0.borrow_mut().insert(owner.clone(), assessment.clone());
        assessment
    }
}

/// Assesses what a check found at a property.
pub(crate) fn assess(check: Check, pair: &PropertyPair<'_>) -> Assessment {
    let (Some(new), None) = (pair.new, &pair.old.branch) else {
        return assess_removed_field(pair);
    };
    let (old, new) = (pair.old.view, new.view);
    let found = match check {
        Check::Unhandled => worst(fields::unhandled(old, new)),
        Check::Required => fields::required(old, new),
        check => fields::of_check(check).and_then(|index| fields::change(index, old, new)),
    };
    found.unwrap_or_else(|| Assessment::safe("the change has no effect on which objects are valid"))
}

/// Assesses a property that is gone, or one in a branch of a combinator.
pub(crate) fn assess_removed_field(pair: &PropertyPair<'_>) -> Assessment {
    if let Some(owner @ (path, index)) = &pair.old.branch {
        // The branches together say which values are valid.
        let owners = (pair.all.0.get(path), pair.all.1.get(path));
        if let (Some(old), Some(new)) = owners {
            return pair.combinators.get_or_assess(owner, || {
                branches::combinator(*index, old.view, new.view).unwrap_or_else(|| {
                    Assessment::safe("the alternatives together allow the same values as before")
                })
            });
        }
    }
    if keeps_unknown_fields(pair) {
        return Assessment::warning(
            "values of the field are kept, but no longer validated or defaulted",
            "keep the field in the schema",
        );
    }
    Assessment::breaking(
        "the API server drops the field from objects when they are written next, and clients that set it lose it",
        "keep the field and mark it as deprecated in its description, or remove it in a new version only",
    )
}

/// Whether what is around a removed field keeps fields that it does not know.
fn keeps_unknown_fields(pair: &PropertyPair<'_>) -> bool {
    let mut property = pair.old;
    while let Some(parent) = &property.parent {
        if let Some(new) = pair.all.1.get(parent) {
            return keeps_any(new.view);
        }
        let Some(old) = pair.all.0.get(parent) else { return false };
        property = old;
    }
    false
}

fn keeps_any(view: View<'_>) -> bool {
    view.is_target_set(field::PRESERVE_UNKNOWN_FIELDS)
        || view.allows_any(field::ADDITIONAL_PROPERTIES)
}
