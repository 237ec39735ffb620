//! The proof of the harness: faults that are seeded into the server one by one, each of which the
//! scenarios must find.
//!
//! Where a fault is in the code is where `mainstay_fault::is_on` is asked for its name.

use crate::check::{self, AT_A_TIME, Judged, Verdict};
use crate::differences::Differences;
use crate::recording::Recording;
use crate::scenario::Scenario;
use crate::server::Server;
use futures::StreamExt;
use std::collections::BTreeMap;
use std::fmt;

/// A fault.
#[derive(Debug)]
pub struct Fault {
    /// What the code calls it.
    pub name: &'static str,
    /// The area whose scenarios are likely to find it; they are tried first.
    pub area: &'static str,
    /// What goes wrong.
    pub what: &'static str,
}

const fn fault(area: &'static str, name: &'static str, what: &'static str) -> Fault {
    Fault { name, area, what }
}

/// All faults.
pub const FAULTS: &[Fault] = &[
    fault("apply", "conflicts-lack-a-field", "the first field of a conflict is not named"),
    fault("apply", "apply-removes-nothing", "what is no longer applied stays"),
    fault(
        "apply",
        "writers-take-nothing-away",
        "who changes a field does not take it from its owner",
    ),
    fault("apply", "force-does-not-help", "an apply with force meets conflicts"),
    fault(
        "apply",
        "nobody-was-there-before",
        "an object without managers gets none for what it is before it is applied to",
    ),
    fault("apply", "managers-are-never-folded", "more than ten managers stay apart"),
    fault(
        "patches",
        "json-patch-appends-in-front",
        "`add` at `/-` inserts before the first element",
    ),
    fault("patches", "json-patch-tests-hold", "`test` never fails"),
    fault("patches", "merge-patch-keeps-nulls", "null does not remove a field"),
    fault(
        "patches",
        "lists-are-never-merged",
        "a strategic merge replaces lists that have a merge key",
    ),
    fault(
        "patches",
        "unknown-fields-are-no-finding",
        "unknown and repeated fields pass without a word",
    ),
    fault("patches", "dry-runs-write", "`dryRun=All` is not heard"),
    fault("schemas", "unknown-fields-stay", "fields that a schema does not have are not pruned"),
    fault("schemas", "custom-defaults-are-missing", "custom objects get no defaults"),
    fault("schemas", "enums-are-not-checked", "a value outside of an enum passes"),
    fault("schemas", "keys-of-list-maps-repeat", "elements of a list-map with the same keys pass"),
    fault(
        "schemas",
        "a-default-of-services-is-missing",
        "a Service says nothing of its session affinity",
    ),
    fault("schemas", "generations-stand-still", "a changed spec has the generation of the old one"),
    fault(
        "schemas",
        "stored-versions-are-forgotten",
        "a definition does not remember a new storage version",
    ),
    fault("documents", "pages-skip-an-object", "a list goes on one object too late"),
    fault(
        "documents",
        "the-rest-is-not-counted",
        "a page does not say how many objects come after it",
    ),
    fault(
        "documents",
        "initial-events-have-no-end",
        "the bookmark after the initial events has no annotation",
    ),
    fault(
        "documents",
        "what-leaves-a-selection-is-modified",
        "a watch tells of a change where an object left its selector",
    ),
    fault("documents", "tables-always-show-objects", "`includeObject=None` is not heard"),
    fault("documents", "discovery-lacks-short-names", "short names are not discovered"),
    fault(
        "deletion",
        "a-taken-name-is-a-conflict",
        "an object that exists is answered with another reason",
    ),
    fault(
        "deletion",
        "deletions-have-no-grace",
        "a terminating object does not say its grace period",
    ),
    fault(
        "deletion",
        "foreground-is-background",
        "a deletion in the foreground does not wait for dependents",
    ),
    fault(
        "deletion",
        "preconditions-are-not-checked",
        "another object of the same name is deleted",
    ),
    fault(
        "deletion",
        "the-last-finalizer-frees-nothing",
        "an object whose last finalizer went stays",
    ),
    fault(
        "rules",
        "kept-faults-are-refused",
        "a value that breaks a new rule may not stay as it was",
    ),
    fault(
        "rules",
        "optional-old-values-are-waited-for",
        "a rule that can do without an old value is not asked without one",
    ),
    fault("rules", "messages-are-not-evaluated", "what a rule says is never an expression"),
    fault("rules", "no-other-field-is-blamed", "the field path of a rule is not heard"),
    fault(
        "rules",
        "rules-cost-nothing-together",
        "only single rules of a definition can be too expensive",
    ),
];

/// What became of a fault.
#[derive(Debug)]
pub enum Hunt {
    /// This scenario found it.
    Found(String),
    /// Its place was come by, and no scenario differed.
    Unnoticed,
    /// No scenario comes by its place.
    NotMet,
}

impl fmt::Display for Hunt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Found(by) => write!(f, "found by {by}"),
            Self::Unnoticed => f.write_str("NOT FOUND"),
            Self::NotMet => f.write_str("NOT FOUND: no scenario comes by"),
        }
    }
}

type Recordings = BTreeMap<(String, String), Recording>;

/// The scenarios that are as they shall be without a fault: only these can tell.
pub async fn good<'a>(
    all: &'a [Scenario],
    recordings: &Recordings,
    differences: &Differences,
) -> Vec<&'a Scenario> {
    let wanted: Vec<&Scenario> = all.iter().collect();
    let server = Server::embedded().await;
    let judged = check::against_recordings(&wanted, recordings, &server, None, differences).await;
    judged.into_iter().filter(|it| it.verdict.is_good()).map(|it| it.scenario).collect()
}

/// Seeds a fault, runs scenarios on a fresh server until the first difference, and takes it out.
pub async fn hunt(
    fault: &Fault,
    good: &[&Scenario],
    recordings: &Recordings,
    differences: &Differences,
) -> Hunt {
    let mut order: Vec<&Scenario> = good.to_vec();
    order.sort_by_key(|scenario| scenario.area != fault.area);
    // The controllers shall be up before anything is wrong.
    let server = Server::embedded().await;
    mainstay_fault::seed(Some(fault.name));
    let mut judged = futures::stream::iter(order)
        .map(|scenario| check::against_recording(scenario, recordings, &server, None, differences))
        .buffer_unordered(AT_A_TIME);
    let mut found = None;
    while let Some(Judged { scenario, verdict }) = judged.next().await {
        if matches!(verdict, Verdict::Different(_) | Verdict::Broken(..)) {
            found = Some(scenario.title());
            break;
        }
    }
    drop(judged);
    let met = mainstay_fault::was_met();
    mainstay_fault::seed(None);
    match found {
        Some(by) => Hunt::Found(by),
        None if met => Hunt::Unnoticed,
        None => Hunt::NotMet,
    }
}
