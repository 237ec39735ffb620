//! Which copies of a version there should be, and what is to be done for that.

use crate::copied_csv::ContentHash;
use crate::fields;
use mainstay_api::{CsvPhase, CsvReason};
use mainstay_object::NamespacedName;
use parking_lot::Mutex;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

/// For how long a phase that mostly passes must last before copies tell it.
const DEBOUNCE: Duration = Duration::from_millis(150);

/// What was seen around a version.
pub(crate) struct CopyInput<'a> {
    /// The version.
    pub(crate) key: &'a NamespacedName,
    /// What is known of it; none if it is gone, or a copy itself.
    pub(crate) original: Option<&'a fields::Csv>,
    /// Whether the group that it is a member of exists.
    pub(crate) in_existing_group: bool,
    /// Whether copies of what watches all namespaces are switched off.
    pub(crate) disabled: bool,
    /// The namespaces that have them nevertheless.
    pub(crate) protected: &'a BTreeSet<String>,
    /// Whether its phase will last.
    pub(crate) status_is_stable: bool,
    /// The namespaces that exist and stay.
    pub(crate) namespaces: &'a BTreeSet<Arc<str>>,
    /// What has its name in other namespaces.
    pub(crate) occupants: &'a BTreeMap<Arc<str>, Occupant>,
}

/// Something that has the name of a version in another namespace.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Occupant {
    pub(crate) uid: String,
    pub(crate) ownership: Ownership,
    /// Whether its label says that it is a copy of this version.
    pub(crate) marked: bool,
    pub(crate) deleting: bool,
    pub(crate) content: ContentHash,
}

/// Whose copy something is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ownership {
    /// It says that it is one of this version.
    Ours,
    /// A copy that nobody claims with right.
    Unclaimed,
    /// A version of its own, or the copy of another version that wants it.
    Others,
}

/// What to do in a namespace.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum CopyAction {
    /// Make the copy.
    Create,
    /// Write what differs.
    Repair {
        /// The copy.
        uid: String,
        /// Whether it is marked as a copy of this version.
        marked: bool,
        /// Whether labels, annotations or spec differ.
        body: bool,
        /// Whether the status differs.
        status: bool,
    },
    /// Delete the copy of this uid.
    Remove(String),
}

/// What is to be done.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Decision {
    /// By namespace.
    pub(crate) actions: BTreeMap<Arc<str>, CopyAction>,
    /// Whether some status is not written yet because it may soon be another.
    pub(crate) status_deferred: bool,
}

impl Decision {
    /// Whether copies are missing, or there that should not be.
    pub(crate) fn is_incomplete(&self) -> bool {
        self.actions
            .values()
            .any(|action| matches!(action, CopyAction::Create | CopyAction::Remove(_)))
    }
}

/// The namespaces that a version is to be seen in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Targets<'a> {
    /// All.
    All,
    /// Some.
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

/// What a member of a group targets, as its annotation says; nothing if it is no member.
pub(crate) fn targets(csv: &fields::Csv) -> Targets<'_> {
    match csv.membership[2].as_deref() {
        Some("") => Targets::All,
        Some(list) => Targets::Named(list.split(',').collect()),
        None => Targets::Named(BTreeSet::new()),
    }
}

/// Whether a version is a member of its group, so that copies of it are made. What is there of one
/// that is no more stays and says so. Its status tells that a moment after its group has changed.
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

/// What is to be done for the copies of a version.
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
        let differs = occupant.content.status != original.copies.status;
        let action = CopyAction::Repair {
            uid: occupant.uid.clone(),
            marked: occupant.marked,
            body: occupant.content.body != original.copies.body,
            status: differs && input.status_is_stable,
        };
        decision.status_deferred |= differs && !input.status_is_stable;
        if !matches!(action, CopyAction::Repair { body: false, status: false, .. }) {
            decision.actions.insert(Arc::clone(namespace), action);
        }
    }
    decision
}

/// Versions in phases that mostly pass, and since when.
#[derive(Debug, Default)]
pub(crate) struct StatusDebounce(Mutex<HashMap<NamespacedName, (u64, Duration)>>);

impl StatusDebounce {
    /// For how long what a version says is not to be told yet; none if it is.
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
        let entry = all.entry(key.clone()).or_insert((csv.copies.status, now));
        if entry.0 != csv.copies.status {
            *entry = (csv.copies.status, now);
        }
        DEBOUNCE.checked_sub(now.saturating_sub(entry.1)).filter(|left| !left.is_zero())
    }
}

/// Whether a version mostly stays only for a moment where it is.
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
            copies: GOOD,
            ..fields::Csv::default()
        }
    }

    fn occupant(ownership: Ownership, content: ContentHash) -> Occupant {
        let marked = ownership == Ownership::Ours;
        Occupant { uid: "u".to_owned(), ownership, marked, deleting: false, content }
    }

    /// What is done in `a`, `b` and `c` for a version of `home` with these things there.
    fn decide_with(
        csv: Option<&fields::Csv>,
        there: &[(&str, Occupant)],
        disabled: bool,
    ) -> Decision {
        decide_with_protected(csv, there, disabled, &[])
    }

    /// The same with namespaces that keep their copies.
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
    fn every_target_but_the_home_has_a_copy() {
        let all = decide_with(Some(&csv_with(Some(""))), &[], false);
        // shows C34
        assert_eq!(actions_by_namespace(&all), [("a", "create"), ("b", "create"), ("c", "create")]);
        assert!(all.is_incomplete());
        let some = decide_with(Some(&csv_with(Some("b,home,nowhere"))), &[], false);
        // shows C34
        assert_eq!(actions_by_namespace(&some), [("b", "create")]);
        assert_eq!(actions_by_namespace(&decide_with(Some(&csv_with(None)), &[], false)), []);
    }

    #[test]
    fn a_true_copy_is_left_alone_and_what_differs_is_written() {
        let other = ContentHash { body: 9, status: 9 };
        let there = [
            ("a", occupant(Ownership::Ours, GOOD)),
            ("b", occupant(Ownership::Ours, ContentHash { status: 9, ..GOOD })),
            ("c", occupant(Ownership::Unclaimed, other)),
            // Its own place has the original, whatever it looks like.
            ("home", occupant(Ownership::Unclaimed, other)),
        ];
        let found = decide_with(Some(&csv_with(Some(""))), &there, false);
        // shows C34
        assert_eq!(actions_by_namespace(&found), [("b", "status"), ("c", "repair")]);
        assert!(!found.is_incomplete());
        let edited = [("a", occupant(Ownership::Ours, ContentHash { body: 9, ..GOOD }))];
        // shows C34
        assert_eq!(
            actions_by_namespace(&decide_with(Some(&csv_with(Some("a"))), &edited, false)),
            [("a", "body")]
        );
    }

    #[test]
    fn versions_of_their_own_and_copies_of_others_are_not_touched() {
        let there =
            [("a", occupant(Ownership::Others, GOOD)), ("b", occupant(Ownership::Others, GOOD))];
        assert_eq!(
            actions_by_namespace(&decide_with(Some(&csv_with(Some("a"))), &there, false)),
            []
        );
        assert_eq!(actions_by_namespace(&decide_with(None, &there, false)), []);
    }

    #[test]
    fn copies_go_with_their_version_their_group_their_target_and_the_switch() {
        let there =
            [("a", occupant(Ownership::Ours, GOOD)), ("b", occupant(Ownership::Ours, GOOD))];
        let both = [("a", "remove"), ("b", "remove")];
        assert_eq!(actions_by_namespace(&decide_with(None, &there, false)), both);
        let deleting = fields::Csv { deleting: true, ..csv_with(Some("")) };
        assert_eq!(actions_by_namespace(&decide_with(Some(&deleting), &there, false)), both);
        assert_eq!(
            actions_by_namespace(&decide_with(Some(&csv_with(Some("b"))), &there, false)),
            [("a", "remove")]
        );
        assert_eq!(
            actions_by_namespace(&decide_with(Some(&csv_with(Some(""))), &there, true)),
            both
        );
        let listed = decide_with(Some(&csv_with(Some("a,b"))), &there, true);
        assert_eq!(
            actions_by_namespace(&listed),
            [],
            "the switch is about what watches all namespaces"
        );
    }

    #[test]
    fn namespaces_that_are_protected_keep_and_get_copies_though_they_are_switched_off() {
        let csv = csv_with(Some(""));
        let there =
            [("a", occupant(Ownership::Ours, GOOD)), ("b", occupant(Ownership::Ours, GOOD))];
        let protected = ["b", "c", "home", "nowhere"];
        let off = decide_with_protected(Some(&csv), &there, true, &protected);
        assert_eq!(actions_by_namespace(&off), [("a", "remove"), ("c", "create")]);
        assert_eq!(
            actions_by_namespace(&decide_with_protected(Some(&csv), &there, false, &protected)),
            [("c", "create")]
        );
        let listed = csv_with(Some("a"));
        let found = decide_with_protected(Some(&listed), &there, true, &protected);
        assert_eq!(actions_by_namespace(&found), [("b", "remove")], "it is no target of the group");
        assert_eq!(
            actions_by_namespace(&decide_with_protected(None, &there[..1], true, &["a"])),
            [("a", "remove")]
        );
    }

    #[test]
    fn what_is_no_member_gets_no_copies_and_those_it_has_say_so() {
        let mut csv = csv_with(Some(""));
        (csv.phase, csv.reason) = (CsvPhase::Failed, CsvReason::UnsupportedOperatorGroup);
        let there = [("a", occupant(Ownership::Ours, ContentHash { status: 9, ..GOOD }))];
        assert_eq!(
            actions_by_namespace(&decide_with(Some(&csv), &there, false)),
            [("a", "status")]
        );
        let before_it_says_so = fields::Csv { unsupported_targets: true, ..csv_with(Some("a,b")) };
        assert_eq!(
            actions_by_namespace(&decide_with(Some(&before_it_says_so), &there, false)),
            [("a", "status")]
        );
    }

    #[test]
    fn a_phase_that_passes_is_told_after_a_moment() {
        let (debounce, key) = (StatusDebounce::default(), NamespacedName::new("home", "v"));
        let at = Duration::from_millis;
        let mut csv = csv_with(Some(""));
        assert_eq!(debounce.remaining(&key, Some(&csv), at(0)), None);
        csv.phase = CsvPhase::Installing;
        assert_eq!(debounce.remaining(&key, Some(&csv), at(10)), Some(at(150)));
        assert_eq!(debounce.remaining(&key, Some(&csv), at(110)), Some(at(50)));
        csv.copies.status = 7;
        assert_eq!(debounce.remaining(&key, Some(&csv), at(120)), Some(at(150)));
        assert_eq!(debounce.remaining(&key, Some(&csv), at(270)), None);
        assert_eq!(debounce.remaining(&key, None, at(280)), None);
    }
}
