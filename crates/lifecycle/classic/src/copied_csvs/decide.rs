//! Copied CSV decisions: which copied CSVs an original should have, and the actions to get there.

use crate::copied_csv::ContentHash;
use crate::fields;
use mainstay_api::{CsvPhase, CsvReason};
use mainstay_object::NamespacedName;
use parking_lot::Mutex;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

/// How long a transient phase must last before copied CSVs show it.
const DEBOUNCE: Duration = Duration::from_millis(150);

/// The observed state around a CSV.
pub(crate) struct CopyInput<'a> {
    /// The key of the CSV.
    pub(crate) key: &'a NamespacedName,
    /// Its fields; none if it was deleted, or is a copied CSV itself.
    pub(crate) original: Option<&'a fields::Csv>,
    /// Whether its OperatorGroup exists.
    pub(crate) in_existing_group: bool,
    /// Whether copied CSVs of global operators are disabled.
    pub(crate) disabled: bool,
    /// The namespaces that have them nevertheless.
    pub(crate) protected: &'a BTreeSet<String>,
    /// Whether its phase is stable.
    pub(crate) status_is_stable: bool,
    /// The namespaces without terminating ones.
    pub(crate) namespaces: &'a BTreeSet<Arc<str>>,
    /// The CSVs with its name in other namespaces.
    pub(crate) occupants: &'a BTreeMap<Arc<str>, Occupant>,
}

/// A CSV with the name of the original in another namespace.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Occupant {
    pub(crate) uid: String,
    pub(crate) ownership: Ownership,
    /// Whether its label says that it is a copied CSV of this original.
    pub(crate) marked: bool,
    pub(crate) deleting: bool,
    pub(crate) content: ContentHash,
}

/// Whose copied CSV an object is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ownership {
    /// A copied CSV of this original.
    Ours,
    /// A copied CSV of an original that does not exist or does not want it.
    Unclaimed,
    /// A CSV that is not a copied one, or the copied CSV of another original that wants it.
    Others,
}

/// What the controller does in a namespace.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum CopyAction {
    /// Create the copied CSV.
    Create,
    /// Write what differs.
    Repair {
        /// The uid of the copied CSV.
        uid: String,
        /// Whether its label marks it as a copied CSV of this original.
        marked: bool,
        /// Whether labels, annotations or spec differ.
        body: bool,
        /// Whether the status differs.
        status: bool,
    },
    /// Delete the copied CSV with this uid.
    Remove(String),
}

/// The actions for the copied CSVs of one original.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Decision {
    /// By namespace.
    pub(crate) actions: BTreeMap<Arc<str>, CopyAction>,
    /// Whether some status is not written yet because another one may soon follow.
    pub(crate) status_deferred: bool,
}

impl Decision {
    /// Whether copied CSVs are missing or superfluous.
    pub(crate) fn has_missing_or_superfluous_copies(&self) -> bool {
        self.actions
            .values()
            .any(|action| matches!(action, CopyAction::Create | CopyAction::Remove(_)))
    }
}

/// The target namespaces of a CSV.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Targets<'a> {
    /// All namespaces.
    All,
    /// These namespaces.
    Named(BTreeSet<&'a str>),
}

impl Targets<'_> {
    /// Whether a namespace is one of them.
    pub(crate) fn contain(&self, namespace: &str) -> bool {
        match self {
            Self::All => true,
            Self::Named(all) => all.contains(namespace),
        }
    }
}

/// The target namespaces in the annotation of a CSV; none if it is not a member of an
/// OperatorGroup.
pub(crate) fn targets(csv: &fields::Csv) -> Targets<'_> {
    match csv.membership[2].as_deref() {
        Some("") => Targets::All,
        Some(list) => Targets::Named(list.split(',').collect()),
        None => Targets::Named(BTreeSet::new()),
    }
}

/// Whether a CSV is an accepted member of its OperatorGroup, so that copied CSVs are created.
/// Otherwise existing ones stay and show its status. The status changes shortly after the
/// OperatorGroup.
pub(crate) fn is_active(csv: &fields::Csv) -> bool {
    csv.phase != CsvPhase::None
        && !csv.unsupported_targets
        && !matches!(
            csv.reason,
            CsvReason::Copied
                | CsvReason::InvalidInstallModes
                | CsvReason::NoTargetNamespaces
                | CsvReason::UnsupportedOperatorGroup
                | CsvReason::NoOperatorGroup
                | CsvReason::TooManyOperatorGroups
                | CsvReason::InterOperatorGroupOwnerConflict
                | CsvReason::CannotModifyStaticOperatorGroupProvidedApis
        )
}

/// Decides about the copied CSVs of an original.
pub(crate) fn decide(input: &CopyInput<'_>) -> Decision {
    let mut decision = Decision::default();
    let original = input.original.filter(|csv| !csv.deleting && input.in_existing_group);
    let targets = match original.map(targets) {
        Some(Targets::All)
            if input.disabled && !mainstay_fault::is_on("copies-cannot-be-switched-off") =>
        {
            Targets::Named(input.protected.iter().map(String::as_str).collect())
        }
        Some(targets) => targets,
        None => Targets::Named(BTreeSet::new()),
    };
    let is_target =
        |namespace: &Arc<str>| *namespace != input.key.namespace && targets.contain(namespace);
    for (namespace, occupant) in input.occupants {
        if occupant.ownership == Ownership::Ours
            && !occupant.deleting
            && !is_target(namespace)
            && !mainstay_fault::is_on("copies-stay-where-nobody-wants-them")
        {
            decision
                .actions
                .insert(Arc::clone(namespace), CopyAction::Remove(occupant.uid.clone()));
        }
    }
    let Some(original) = original else { return decision };
    for namespace in input.namespaces.iter().filter(|namespace| is_target(namespace)) {
        let Some(occupant) = input.occupants.get(namespace) else {
            if is_active(original) {
                decision.actions.insert(Arc::clone(namespace), CopyAction::Create);
                decision.status_deferred |= !input.status_is_stable;
            }
            continue;
        };
        if occupant.ownership == Ownership::Others || occupant.deleting {
            continue;
        }
        let differs = occupant.content.status != original.copied_content.status;
        let action = CopyAction::Repair {
            uid: occupant.uid.clone(),
            marked: occupant.marked,
            body: occupant.content.body != original.copied_content.body,
            status: differs && input.status_is_stable,
        };
        decision.status_deferred |= differs && !input.status_is_stable;
        if !matches!(action, CopyAction::Repair { body: false, status: false, .. }) {
            decision.actions.insert(Arc::clone(namespace), action);
        }
    }
    decision
}

/// The CSVs in transient phases, and since when.
#[derive(Debug, Default)]
pub(crate) struct StatusDebounce(Mutex<HashMap<NamespacedName, (u64, Duration)>>);

impl StatusDebounce {
    /// How much longer copied CSVs do not show the status of a CSV; none if they show it.
    pub(crate) fn remaining(
        &self,
        key: &NamespacedName,
        csv: Option<&fields::Csv>,
        now: Duration,
    ) -> Option<Duration> {
        let mut all = self.0.lock();
        let Some(csv) = csv.filter(|csv| is_transient(csv)) else {
            all.remove(key);
            return None;
        };
        let entry = all.entry(key.clone()).or_insert((csv.copied_content.status, now));
        if entry.0 != csv.copied_content.status {
            *entry = (csv.copied_content.status, now);
        }
        DEBOUNCE.checked_sub(now.saturating_sub(entry.1)).filter(|left| !left.is_zero())
    }
}

/// Whether a CSV usually leaves its phase within a moment.
fn is_transient(csv: &fields::Csv) -> bool {
    match csv.phase {
        CsvPhase::None
        | CsvPhase::InstallReady
        | CsvPhase::Installing
        | CsvPhase::Replacing
        | CsvPhase::Deleting => true,
        CsvPhase::Pending => csv.reason != CsvReason::RequirementsNotMet,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: ContentHash = ContentHash { body: 1, status: 2 };

    fn csv_with(targets: Option<&str>) -> fields::Csv {
        fields::Csv {
            phase: CsvPhase::Succeeded,
            reason: CsvReason::InstallSuccessful,
            membership: [None, None, targets.map(str::to_owned)],
            copied_content: GOOD,
            ..fields::Csv::default()
        }
    }

    fn occupant(ownership: Ownership, content: ContentHash) -> Occupant {
        let marked = ownership == Ownership::Ours;
        Occupant { uid: "u".to_owned(), ownership, marked, deleting: false, content }
    }

    /// The decision about a CSV of `home`, with namespaces `a`, `b` and `c` and these CSVs in them.
    fn decide_with(
        csv: Option<&fields::Csv>,
        there: &[(&str, Occupant)],
        disabled: bool,
    ) -> Decision {
        decide_with_protected(csv, there, disabled, &[])
    }

    /// The same with protected namespaces.
    fn decide_with_protected(
        csv: Option<&fields::Csv>,
        there: &[(&str, Occupant)],
        disabled: bool,
        protected: &[&str],
    ) -> Decision {
        let key = NamespacedName::new("home", "v");
        let names = ["a", "b", "c", "home"];
        decide(&CopyInput {
            key: &key,
            original: csv,
            in_existing_group: true,
            disabled,
            protected: &protected.iter().map(|name| (*name).to_owned()).collect(),
            status_is_stable: true,
            namespaces: &names.into_iter().map(Arc::from).collect(),
            occupants: &there.iter().map(|(at, copy)| (Arc::from(*at), copy.clone())).collect(),
        })
    }

    fn actions_by_namespace(decision: &Decision) -> Vec<(&str, &str)> {
        let word = |action: &CopyAction| match action {
            CopyAction::Create => "create",
            CopyAction::Repair { body: true, status: true, .. } => "repair",
            CopyAction::Repair { body: true, .. } => "body",
            CopyAction::Repair { .. } => "status",
            CopyAction::Remove(_) => "remove",
        };
        decision.actions.iter().map(|(at, action)| (&**at, word(action))).collect()
    }

    #[test]
    fn every_target_namespace_but_that_of_the_csv_has_a_copied_csv() {
        let all = decide_with(Some(&csv_with(Some(""))), &[], false);
        // shows C34
        assert_eq!(actions_by_namespace(&all), [("a", "create"), ("b", "create"), ("c", "create")]);
        assert!(all.has_missing_or_superfluous_copies());
        let some = decide_with(Some(&csv_with(Some("b,home,nowhere"))), &[], false);
        // shows C34
        assert_eq!(actions_by_namespace(&some), [("b", "create")]);
        assert_eq!(actions_by_namespace(&decide_with(Some(&csv_with(None)), &[], false)), []);
    }

    #[test]
    fn only_copied_csvs_that_differ_are_written() {
        let other = ContentHash { body: 9, status: 9 };
        let occupants = [
            ("a", occupant(Ownership::Ours, GOOD)),
            ("b", occupant(Ownership::Ours, ContentHash { status: 9, ..GOOD })),
            ("c", occupant(Ownership::Unclaimed, other)),
            // The original is in its own namespace, whatever it contains.
            ("home", occupant(Ownership::Unclaimed, other)),
        ];
        let found = decide_with(Some(&csv_with(Some(""))), &occupants, false);
        // shows C34
        assert_eq!(actions_by_namespace(&found), [("b", "status"), ("c", "repair")]);
        assert!(!found.has_missing_or_superfluous_copies());
        let edited = [("a", occupant(Ownership::Ours, ContentHash { body: 9, ..GOOD }))];
        // shows C34
        assert_eq!(
            actions_by_namespace(&decide_with(Some(&csv_with(Some("a"))), &edited, false)),
            [("a", "body")]
        );
    }

    #[test]
    fn original_csvs_and_copies_of_other_csvs_are_not_touched() {
        let occupants =
            [("a", occupant(Ownership::Others, GOOD)), ("b", occupant(Ownership::Others, GOOD))];
        assert_eq!(
            actions_by_namespace(&decide_with(Some(&csv_with(Some("a"))), &occupants, false)),
            []
        );
        assert_eq!(actions_by_namespace(&decide_with(None, &occupants, false)), []);
    }

    #[test]
    fn copied_csvs_are_deleted_with_their_csv_its_target_or_when_they_are_disabled() {
        let occupants =
            [("a", occupant(Ownership::Ours, GOOD)), ("b", occupant(Ownership::Ours, GOOD))];
        let both = [("a", "remove"), ("b", "remove")];
        assert_eq!(actions_by_namespace(&decide_with(None, &occupants, false)), both);
        let deleting = fields::Csv { deleting: true, ..csv_with(Some("")) };
        assert_eq!(actions_by_namespace(&decide_with(Some(&deleting), &occupants, false)), both);
        assert_eq!(
            actions_by_namespace(&decide_with(Some(&csv_with(Some("b"))), &occupants, false)),
            [("a", "remove")]
        );
        assert_eq!(
            actions_by_namespace(&decide_with(Some(&csv_with(Some(""))), &occupants, true)),
            both
        );
        let listed = decide_with(Some(&csv_with(Some("a,b"))), &occupants, true);
        assert_eq!(
            actions_by_namespace(&listed),
            [],
            "the switch is about what watches all namespaces"
        );
    }

    #[test]
    fn protected_namespaces_have_copied_csvs_even_where_they_are_disabled() {
        let csv = csv_with(Some(""));
        let occupants =
            [("a", occupant(Ownership::Ours, GOOD)), ("b", occupant(Ownership::Ours, GOOD))];
        let protected = ["b", "c", "home", "nowhere"];
        let off = decide_with_protected(Some(&csv), &occupants, true, &protected);
        assert_eq!(actions_by_namespace(&off), [("a", "remove"), ("c", "create")]);
        assert_eq!(
            actions_by_namespace(&decide_with_protected(Some(&csv), &occupants, false, &protected)),
            [("c", "create")]
        );
        let listed = csv_with(Some("a"));
        let found = decide_with_protected(Some(&listed), &occupants, true, &protected);
        assert_eq!(actions_by_namespace(&found), [("b", "remove")], "it is no target of the group");
        assert_eq!(
            actions_by_namespace(&decide_with_protected(None, &occupants[..1], true, &["a"])),
            [("a", "remove")]
        );
    }

    #[test]
    fn a_csv_that_is_not_a_member_gets_no_copies_and_existing_ones_show_its_status() {
        let mut csv = csv_with(Some(""));
        (csv.phase, csv.reason) = (CsvPhase::Failed, CsvReason::UnsupportedOperatorGroup);
        let occupants = [("a", occupant(Ownership::Ours, ContentHash { status: 9, ..GOOD }))];
        assert_eq!(
            actions_by_namespace(&decide_with(Some(&csv), &occupants, false)),
            [("a", "status")]
        );
        let before_it_says_so = fields::Csv { unsupported_targets: true, ..csv_with(Some("a,b")) };
        assert_eq!(
            actions_by_namespace(&decide_with(Some(&before_it_says_so), &occupants, false)),
            [("a", "status")]
        );
    }

    #[test]
    fn copied_csvs_show_a_transient_phase_after_a_delay() {
        let (debounce, key) = (StatusDebounce::default(), NamespacedName::new("home", "v"));
        let at = Duration::from_millis;
        let mut csv = csv_with(Some(""));
        assert_eq!(debounce.remaining(&key, Some(&csv), at(0)), None);
        csv.phase = CsvPhase::Installing;
        assert_eq!(debounce.remaining(&key, Some(&csv), at(10)), Some(at(150)));
        assert_eq!(debounce.remaining(&key, Some(&csv), at(110)), Some(at(50)));
        csv.copied_content.status = 7;
        assert_eq!(debounce.remaining(&key, Some(&csv), at(120)), Some(at(150)));
        assert_eq!(debounce.remaining(&key, Some(&csv), at(270)), None);
        assert_eq!(debounce.remaining(&key, None, at(280)), None);
    }
}
