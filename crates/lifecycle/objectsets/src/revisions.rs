//! Revisions of a ClusterExtension: what is installed, what rolls out, and which sets are deleted.

use mainstay_api::conditions::find;
use mainstay_api::names::olm_v1::{MIGRATED_FROM_HELM_LABEL, OWNER_NAME_LABEL};
use mainstay_api::{
    ClusterObjectSet, ClusterObjectSetConditionType, ConditionStatus, LifecycleState,
};

/// How many of the newest revisions are never deleted by the applier.
const RETAINED_REVISIONS: usize = 5;

/// The revisions of a ClusterExtension that are not archived.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RevisionStates<'a> {
    /// The newest one that has rolled out at some time.
    pub installed: Option<&'a ClusterObjectSet>,
    /// Those that have not rolled out yet, oldest first. While there is one, no other bundle is resolved.
    pub rolling_out: Vec<&'a ClusterObjectSet>,
}

/// The ClusterObjectSets of a ClusterExtension, oldest revision first.
pub fn revisions_of(extension: &str, all: &[ClusterObjectSet]) -> Vec<ClusterObjectSet> {
    let is_owned = |set: &&ClusterObjectSet| {
        set.metadata.labels.get(OWNER_NAME_LABEL).is_some_and(|owner| owner == extension)
    };
    let mut sets: Vec<ClusterObjectSet> = all.iter().filter(is_owned).cloned().collect();
    sets.sort_by_key(|set| set.spec.revision);
    sets
}

/// The number of the next revision. A number is used again after its set was deleted by hand.
pub(crate) fn next_revision(sets: &[ClusterObjectSet]) -> i64 {
    sets.iter().map(|set| set.spec.revision).max().unwrap_or_default() + 1
}

/// The archived sets that are deleted before a new revision is created: those that are not among the newest
/// five. Active sets are never deleted.
pub fn deleted_revisions(sets: &[ClusterObjectSet]) -> Vec<&ClusterObjectSet> {
    let mut sorted: Vec<&ClusterObjectSet> = sets.iter().collect();
    sorted.sort_by_key(|set| set.spec.revision);
    let excess = sorted.len().saturating_sub(RETAINED_REVISIONS);
    sorted.truncate(excess);
    sorted.retain(|set| set.spec.lifecycle_state == LifecycleState::Archived);
    sorted
}

/// Whether a set has rolled out at some time.
pub(crate) fn has_succeeded(set: &ClusterObjectSet) -> bool {
    find(&set.status.conditions, ClusterObjectSetConditionType::Succeeded.as_str())
        .is_some_and(|condition| condition.status == ConditionStatus::True)
}

/// The set that was made from a Helm release but does not say yet that it succeeded: a crash came between the
/// two writes.
pub fn unfinished_migration(sets: &[ClusterObjectSet]) -> Option<&ClusterObjectSet> {
    sets.iter().find(|set| {
        set.spec.revision == 1
            && set
                .metadata
                .labels
                .get(MIGRATED_FROM_HELM_LABEL)
                .is_some_and(|value| value == "true")
            && !has_succeeded(set)
    })
}

/// What is installed, and what rolls out.
pub fn revision_states(sets: &[ClusterObjectSet]) -> RevisionStates<'_> {
    let mut active: Vec<&ClusterObjectSet> =
        sets.iter().filter(|set| set.spec.lifecycle_state != LifecycleState::Archived).collect();
    active.sort_by_key(|set| set.spec.revision);
    let (succeeded, rolling_out): (Vec<_>, Vec<_>) =
        active.into_iter().partition(|set| has_succeeded(set));
    RevisionStates { installed: succeeded.last().copied(), rolling_out }
}

#[cfg(test)]
mod tests {
    use super::*;
    use mainstay_api::Condition;

    fn set(revision: i64, archived: bool, succeeded: bool) -> ClusterObjectSet {
        let mut set = ClusterObjectSet::new("", &format!("e-{revision}"));
        set.metadata.labels.insert(OWNER_NAME_LABEL.to_owned(), "e".to_owned());
        set.spec.revision = revision;
        set.spec.lifecycle_state =
            if archived { LifecycleState::Archived } else { LifecycleState::Active };
        let status = if succeeded { ConditionStatus::True } else { ConditionStatus::False };
        set.status.conditions =
            vec![Condition { kind: "Succeeded".to_owned(), status, ..Condition::default() }];
        set
    }

    fn numbers(sets: &[&ClusterObjectSet]) -> Vec<i64> {
        sets.iter().map(|set| set.spec.revision).collect()
    }

    #[test]
    fn newest_succeeded_revision_is_installed_and_others_roll_out() {
        let sets = [
            set(4, false, false),
            set(1, true, true),
            set(3, false, true),
            set(2, false, true),
            set(5, false, false),
        ];
        let states = revision_states(&sets);
        assert_eq!(states.installed.unwrap().spec.revision, 3);
        assert_eq!(numbers(&states.rolling_out), [4, 5]);
        assert_eq!(next_revision(&sets), 6);
        assert_eq!(next_revision(&[]), 1);
    }

    #[test]
    fn archived_revisions_before_the_newest_five_are_deleted() {
        let sets: Vec<ClusterObjectSet> =
            (1..=8).map(|at| set(at, at != 2 && at < 8, true)).collect();
        // shows OLMV1-138
        assert_eq!(numbers(&deleted_revisions(&sets)), [1, 3]);
        assert_eq!(numbers(&deleted_revisions(&sets[..5])), [] as [i64; 0]);
    }

    #[test]
    fn a_migrated_revision_without_success_is_found() {
        let mut migrated = set(1, false, false);
        assert_eq!(unfinished_migration(std::slice::from_ref(&migrated)), None);
        migrated.metadata.labels.insert(MIGRATED_FROM_HELM_LABEL.to_owned(), "true".to_owned());
        let found = unfinished_migration(std::slice::from_ref(&migrated)).is_some();
        // shows OLMV1-141
        assert!(found, "{migrated:?}");
    }

    #[test]
    fn revisions_are_found_by_the_label_of_their_extension() {
        let mut other = set(1, false, true);
        other.metadata.labels.clear();
        let all = [set(2, false, true), other, set(1, true, true)];
        let found = revisions_of("e", &all);
        assert_eq!(found.iter().map(|set| set.spec.revision).collect::<Vec<_>>(), [1, 2]);
    }
}
