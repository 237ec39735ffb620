//! Which copies of a version there should be, and what is to be done for that.

use crate::copied_csv::Content;
use crate::fields;
use mainstay_api::{CsvPhase, CsvReason};
use mainstay_object::NamespacedName;
use parking_lot::Mutex;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

/// For how long a phase that mostly passes must last before copies tell it.
const MOMENT: Duration = Duration::from_millis(150);

/// What was seen around a version.
pub(crate) struct World<'a> {
    /// The version.
    pub(crate) key: &'a NamespacedName,
    /// What is known of it; none if it is gone, or a copy itself.
    pub(crate) original: Option<&'a fields::Csv>,
    /// Whether the group that it is a member of exists.
    pub(crate) grouped: bool,
    /// Whether copies of what watches all namespaces are switched off.
    pub(crate) disabled: bool,
    /// The namespaces that have them nevertheless.
    pub(crate) protected: &'a BTreeSet<String>,
    /// Whether its phase will last.
    pub(crate) settled: bool,
    /// The namespaces that exist and stay.
    pub(crate) namespaces: &'a BTreeSet<Arc<str>>,
    /// What has its name in other namespaces.
    pub(crate) places: &'a BTreeMap<Arc<str>, Place>,
}

/// Something that has the name of a version in another namespace.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Place {
    pub(crate) uid: String,
    pub(crate) whose: Whose,
    /// Whether its label says that it is a copy of this version.
    pub(crate) marked: bool,
    pub(crate) deleting: bool,
    pub(crate) content: Content,
}

/// Whose copy something is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Whose {
    /// It says that it is one of this version.
    Ours,
    /// A copy that nobody claims with right.
    Nobodys,
    /// A version of its own, or the copy of another version that wants it.
    Others,
}

/// What to do in a namespace.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Task {
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
    pub(crate) tasks: BTreeMap<Arc<str>, Task>,
    /// Whether some status is not written yet because it may soon be another.
    pub(crate) later: bool,
}

impl Decision {
    /// Whether copies are missing, or there that should not be.
    pub(crate) fn is_incomplete(&self) -> bool {
        self.tasks.values().any(|task| matches!(task, Task::Create | Task::Remove(_)))
    }
}

/// The namespaces that a version is to be seen in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Targets<'a> {
    /// All.
    All,
    /// Some.
    These(BTreeSet<&'a str>),
}

impl Targets<'_> {
    /// Whether a namespace is one of them.
    pub(crate) fn contain(&self, namespace: &str) -> bool {
        match self {
            Self::All => true,
            Self::These(all) => all.contains(namespace),
        }
    }
}

/// What a member of a group targets, as its annotation says; nothing if it is no member.
pub(crate) fn targets(csv: &fields::Csv) -> Targets<'_> {
    match csv.membership[2].as_deref() {
        Some("") => Targets::All,
        Some(list) => Targets::These(list.split(',').collect()),
        None => Targets::These(BTreeSet::new()),
    }
}

/// Whether a version is a member of its group, so that copies of it are made. What is there of one
/// that is no more stays and says so. Its status tells that a moment after its group has changed.
pub(crate) fn is_active(csv: &fields::Csv) -> bool {
    csv.phase != CsvPhase::None
        && !csv.unfit
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
pub(crate) fn decide(world: &World<'_>) -> Decision {
    let mut decision = Decision::default();
    let original = world.original.filter(|csv| !csv.deleting && world.grouped);
    let targets = match original.map(targets) {
        Some(Targets::All)
            if world.disabled && !mainstay_fault::is_on("copies-cannot-be-switched-off") =>
        {
            Targets::These(world.protected.iter().map(String::as_str).collect())
        }
        Some(targets) => targets,
        None => Targets::These(BTreeSet::new()),
    };
    let is_target = |place: &Arc<str>| *place != world.key.namespace && targets.contain(place);
    for (place, there) in world.places {
        if there.whose == Whose::Ours
            && !there.deleting
            && !is_target(place)
            && !mainstay_fault::is_on("copies-stay-where-nobody-wants-them")
        {
            decision.tasks.insert(Arc::clone(place), Task::Remove(there.uid.clone()));
        }
    }
    let Some(original) = original else { return decision };
    for place in world.namespaces.iter().filter(|namespace| is_target(namespace)) {
        let Some(there) = world.places.get(place) else {
            if is_active(original) {
                decision.tasks.insert(Arc::clone(place), Task::Create);
                decision.later |= !world.settled;
            }
            continue;
        };
        if there.whose == Whose::Others || there.deleting {
            continue;
        }
        let differs = there.content.status != original.copies.status;
        let task = Task::Repair {
            uid: there.uid.clone(),
            marked: there.marked,
            body: there.content.body != original.copies.body,
            status: differs && world.settled,
        };
        decision.later |= differs && !world.settled;
        if !matches!(task, Task::Repair { body: false, status: false, .. }) {
            decision.tasks.insert(Arc::clone(place), task);
        }
    }
    decision
}

/// Versions in phases that mostly pass, and since when.
#[derive(Debug, Default)]
pub(crate) struct Passing(Mutex<HashMap<NamespacedName, (u64, Duration)>>);

impl Passing {
    /// For how long what a version says is not to be told yet; none if it is.
    pub(crate) fn left(
        &self,
        key: &NamespacedName,
        csv: Option<&fields::Csv>,
        now: Duration,
    ) -> Option<Duration> {
        let mut all = self.0.lock();
        let Some(csv) = csv.filter(|csv| passes(csv)) else {
            all.remove(key);
            return None;
        };
        let entry = all.entry(key.clone()).or_insert((csv.copies.status, now));
        if entry.0 != csv.copies.status {
            *entry = (csv.copies.status, now);
        }
        MOMENT.checked_sub(now.saturating_sub(entry.1)).filter(|left| !left.is_zero())
    }
}

/// Whether a version mostly stays only for a moment where it is.
fn passes(csv: &fields::Csv) -> bool {
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

    const GOOD: Content = Content { body: 1, status: 2 };

    fn version(targets: Option<&str>) -> fields::Csv {
        fields::Csv {
            phase: CsvPhase::Succeeded,
            reason: CsvReason::InstallSuccessful,
            membership: [None, None, targets.map(str::to_owned)],
            copies: GOOD,
            ..fields::Csv::default()
        }
    }

    fn place(whose: Whose, content: Content) -> Place {
        let marked = whose == Whose::Ours;
        Place { uid: "u".to_owned(), whose, marked, deleting: false, content }
    }

    /// What is done in `a`, `b` and `c` for a version of `home` with these things there.
    fn done(csv: Option<&fields::Csv>, there: &[(&str, Place)], disabled: bool) -> Decision {
        done_with(csv, there, disabled, &[])
    }

    /// The same with namespaces that keep their copies.
    fn done_with(
        csv: Option<&fields::Csv>,
        there: &[(&str, Place)],
        disabled: bool,
        protected: &[&str],
    ) -> Decision {
        let key = NamespacedName::new("home", "v");
        let names = ["a", "b", "c", "home"];
        decide(&World {
            key: &key,
            original: csv,
            grouped: true,
            disabled,
            protected: &protected.iter().map(|name| (*name).to_owned()).collect(),
            settled: true,
            namespaces: &names.into_iter().map(Arc::from).collect(),
            places: &there.iter().map(|(at, copy)| (Arc::from(*at), copy.clone())).collect(),
        })
    }

    fn names(decision: &Decision) -> Vec<(&str, &str)> {
        let word = |task: &Task| match task {
            Task::Create => "create",
            Task::Repair { body: true, status: true, .. } => "repair",
            Task::Repair { body: true, .. } => "body",
            Task::Repair { .. } => "status",
            Task::Remove(_) => "remove",
        };
        decision.tasks.iter().map(|(at, task)| (&**at, word(task))).collect()
    }

    #[test]
    fn every_target_but_the_home_has_a_copy() {
        let all = done(Some(&version(Some(""))), &[], false);
        // shows C34
        assert_eq!(names(&all), [("a", "create"), ("b", "create"), ("c", "create")]);
        assert!(all.is_incomplete());
        let some = done(Some(&version(Some("b,home,nowhere"))), &[], false);
        // shows C34
        assert_eq!(names(&some), [("b", "create")]);
        assert_eq!(names(&done(Some(&version(None)), &[], false)), []);
    }

    #[test]
    fn a_true_copy_is_left_alone_and_what_differs_is_written() {
        let other = Content { body: 9, status: 9 };
        let there = [
            ("a", place(Whose::Ours, GOOD)),
            ("b", place(Whose::Ours, Content { status: 9, ..GOOD })),
            ("c", place(Whose::Nobodys, other)),
            // Its own place has the original, whatever it looks like.
            ("home", place(Whose::Nobodys, other)),
        ];
        let found = done(Some(&version(Some(""))), &there, false);
        // shows C34
        assert_eq!(names(&found), [("b", "status"), ("c", "repair")]);
        assert!(!found.is_incomplete());
        let edited = [("a", place(Whose::Ours, Content { body: 9, ..GOOD }))];
        // shows C34
        assert_eq!(names(&done(Some(&version(Some("a"))), &edited, false)), [("a", "body")]);
    }

    #[test]
    fn versions_of_their_own_and_copies_of_others_are_not_touched() {
        let there = [("a", place(Whose::Others, GOOD)), ("b", place(Whose::Others, GOOD))];
        assert_eq!(names(&done(Some(&version(Some("a"))), &there, false)), []);
        assert_eq!(names(&done(None, &there, false)), []);
    }

    #[test]
    fn copies_go_with_their_version_their_group_their_target_and_the_switch() {
        let there = [("a", place(Whose::Ours, GOOD)), ("b", place(Whose::Ours, GOOD))];
        let both = [("a", "remove"), ("b", "remove")];
        assert_eq!(names(&done(None, &there, false)), both);
        let deleting = fields::Csv { deleting: true, ..version(Some("")) };
        assert_eq!(names(&done(Some(&deleting), &there, false)), both);
        assert_eq!(names(&done(Some(&version(Some("b"))), &there, false)), [("a", "remove")]);
        assert_eq!(names(&done(Some(&version(Some(""))), &there, true)), both);
        let listed = done(Some(&version(Some("a,b"))), &there, true);
        assert_eq!(names(&listed), [], "the switch is about what watches all namespaces");
    }

    #[test]
    fn namespaces_that_are_protected_keep_and_get_copies_though_they_are_switched_off() {
        let csv = version(Some(""));
        let there = [("a", place(Whose::Ours, GOOD)), ("b", place(Whose::Ours, GOOD))];
        let protected = ["b", "c", "home", "nowhere"];
        let off = done_with(Some(&csv), &there, true, &protected);
        assert_eq!(names(&off), [("a", "remove"), ("c", "create")]);
        assert_eq!(names(&done_with(Some(&csv), &there, false, &protected)), [("c", "create")]);
        let listed = version(Some("a"));
        let found = done_with(Some(&listed), &there, true, &protected);
        assert_eq!(names(&found), [("b", "remove")], "it is no target of the group");
        assert_eq!(names(&done_with(None, &there[..1], true, &["a"])), [("a", "remove")]);
    }

    #[test]
    fn what_is_no_member_gets_no_copies_and_those_it_has_say_so() {
        let mut csv = version(Some(""));
        (csv.phase, csv.reason) = (CsvPhase::Failed, CsvReason::UnsupportedOperatorGroup);
        let there = [("a", place(Whose::Ours, Content { status: 9, ..GOOD }))];
        assert_eq!(names(&done(Some(&csv), &there, false)), [("a", "status")]);
        let before_it_says_so = fields::Csv { unfit: true, ..version(Some("a,b")) };
        assert_eq!(names(&done(Some(&before_it_says_so), &there, false)), [("a", "status")]);
    }

    #[test]
    fn a_phase_that_passes_is_told_after_a_moment() {
        let (passing, key) = (Passing::default(), NamespacedName::new("home", "v"));
        let at = Duration::from_millis;
        let mut csv = version(Some(""));
        assert_eq!(passing.left(&key, Some(&csv), at(0)), None);
        csv.phase = CsvPhase::Installing;
        assert_eq!(passing.left(&key, Some(&csv), at(10)), Some(at(150)));
        assert_eq!(passing.left(&key, Some(&csv), at(110)), Some(at(50)));
        csv.copies.status = 7;
        assert_eq!(passing.left(&key, Some(&csv), at(120)), Some(at(150)));
        assert_eq!(passing.left(&key, Some(&csv), at(270)), None);
        assert_eq!(passing.left(&key, None, at(280)), None);
    }
}
