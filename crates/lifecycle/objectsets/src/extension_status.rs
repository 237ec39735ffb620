//! Status of a ClusterExtension with ClusterObjectSets: conditions that it takes from its revisions.

use crate::desired::BundleIdentity;
use crate::revisions::RevisionStates;
use mainstay_api::conditions::{condition, find, set_condition};
use mainstay_api::names::olm_v1::{
    BUNDLE_NAME, BUNDLE_REFERENCE, BUNDLE_RELEASE, BUNDLE_VERSION, PACKAGE_NAME,
};
use mainstay_api::{
    BundleMetadata, ClusterExtension, ClusterExtensionConditionType, ClusterExtensionInstallStatus,
    ClusterExtensionReason, ClusterExtensionStatus, ClusterObjectSet,
    ClusterObjectSetConditionType as SetType, ClusterObjectSetReason, Condition, ConditionStatus,
    RevisionStatus, Time,
};

/// The conditions that an extension takes over from a revision.
const MIRRORED: [SetType; 2] = [SetType::Available, SetType::Progressing];

/// The bundle that a ClusterObjectSet was made from.
pub fn bundle_of(set: &ClusterObjectSet) -> BundleIdentity {
    let annotation = |name: &str| set.metadata.annotations.get(name).cloned();
    BundleIdentity {
        package: annotation(PACKAGE_NAME).unwrap_or_default(),
        name: annotation(BUNDLE_NAME).unwrap_or_default(),
        version: annotation(BUNDLE_VERSION).unwrap_or_default(),
        release: annotation(BUNDLE_RELEASE),
        image: annotation(BUNDLE_REFERENCE).unwrap_or_default(),
    }
}

/// The status of an extension after its bundle was applied. `states` are the revisions as they were before.
///
/// Available and Progressing are those of the installed revision; Progressing is that of the newest revision
/// that rolls out, if there is one.
pub fn applied_status(
    extension: &ClusterExtension,
    states: &RevisionStates<'_>,
    now: Time,
) -> ClusterExtensionStatus {
    let mut status = extension.status.clone();
    let generation = extension.metadata.generation;
    let mirrored = |set: &ClusterObjectSet, kind: &SetType| {
        let found = find(&set.status.conditions, kind.as_str())?;
        Some(Condition { observed_generation: generation, ..found.clone() })
    };
    status.active_revisions.clear();
    if let Some(installed) = states.installed {
        for condition in MIRRORED.iter().filter_map(|kind| mirrored(installed, kind)) {
            set_condition(&mut status.conditions, condition, now);
        }
        let name = installed.metadata.name.clone();
        status.active_revisions.push(RevisionStatus { name, ..RevisionStatus::default() });
    }
    for set in &states.rolling_out {
        status.active_revisions.push(RevisionStatus {
            name: set.metadata.name.clone(),
            conditions: MIRRORED.iter().filter_map(|kind| mirrored(set, kind)).collect(),
        });
    }
    let newest = states.rolling_out.last();
    if let Some(condition) = newest.and_then(|set| mirrored(set, &SetType::Progressing)) {
        set_condition(&mut status.conditions, condition, now);
    }
    set_installed(&mut status, states, generation, now);
    status
}

/// Sets `install` and the condition Installed from the revisions, also after an error.
pub fn set_installed(
    status: &mut ClusterExtensionStatus,
    states: &RevisionStates<'_>,
    generation: i64,
    now: Time,
) {
    let kind = &ClusterExtensionConditionType::Installed;
    let installed = if let Some(set) = states.installed {
        let bundle = bundle_of(set);
        let message = format!("Installed bundle {} successfully", bundle.image);
        let BundleIdentity { name, version, release, .. } = bundle;
        let bundle = BundleMetadata { name, version, release };
        status.install = Some(ClusterExtensionInstallStatus { bundle });
        let reason = &ClusterExtensionReason::Succeeded;
        condition(kind, ConditionStatus::True, reason, &message, generation)
    } else {
        status.install = None;
        let (reason, message) = (not_installed_reason(states), "No bundle installed");
        condition(kind, ConditionStatus::False, &reason, message, generation)
    };
    set_condition(&mut status.conditions, installed, now);
}

/// `Absent` while a rollout goes well, else `Failed`.
fn not_installed_reason(states: &RevisionStates<'_>) -> ClusterExtensionReason {
    let is_failing = states.rolling_out.last().is_none_or(|set| {
        find(&set.status.conditions, SetType::Progressing.as_str())
            .is_some_and(|condition| ClusterObjectSetReason::Retrying == *condition.reason)
    });
    if is_failing { ClusterExtensionReason::Failed } else { ClusterExtensionReason::Absent }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::revisions::revision_states;
    use jiff::Timestamp;

    fn set(revision: i64, conditions: &[(&str, ConditionStatus, &str)]) -> ClusterObjectSet {
        let mut set = ClusterObjectSet::new("", &format!("e-{revision}"));
        set.spec.revision = revision;
        let image = format!("r.example/b:v{revision}");
        set.metadata.annotations.insert(BUNDLE_REFERENCE.to_owned(), image);
        set.status.conditions = conditions
            .iter()
            .map(|(kind, status, reason)| {
                let message = format!("{kind} of {revision}");
                condition(kind, status.clone(), reason, &message, 1)
            })
            .collect();
        set
    }

    fn status(sets: &[ClusterObjectSet]) -> (Vec<String>, Vec<(String, usize)>) {
        let mut extension = ClusterExtension::new("", "e");
        extension.metadata.generation = 7;
        let now = Time::new(Timestamp::from_second(1).unwrap());
        let status = applied_status(&extension, &revision_states(sets), now);
        let text = |condition: &Condition| {
            assert_eq!(condition.observed_generation, 7);
            let Condition { kind, status, reason, message, .. } = condition;
            format!("{kind}={status}/{reason}: {message}")
        };
        let active = status.active_revisions.iter();
        (
            status.conditions.iter().map(text).collect(),
            active.map(|revision| (revision.name.clone(), revision.conditions.len())).collect(),
        )
    }

    #[test]
    fn installed_reason_follows_the_newest_rollout() {
        let rolling = || set(1, &[("Progressing", ConditionStatus::True, "RollingOut")]);
        let retrying = || set(1, &[("Progressing", ConditionStatus::True, "Retrying")]);
        let later = |mut set: ClusterObjectSet| {
            set.spec.revision = 2;
            set
        };
        let cases = [
            ("none", Vec::new(), "Failed"),
            ("retrying", vec![retrying()], "Failed"),
            ("rolling out", vec![rolling()], "Absent"),
            ("retrying, then rolling out", vec![retrying(), later(rolling())], "Absent"),
            ("rolling out, then retrying", vec![rolling(), later(retrying())], "Failed"),
        ];
        for (name, sets, reason) in cases {
            let (conditions, _) = status(&sets);
            let expected = format!("Installed=False/{reason}: No bundle installed");
            // shows OLMV1-135
            assert!(conditions.contains(&expected), "{name}: {conditions:?}");
        }
    }

    #[test]
    fn progress_is_that_of_the_newest_rollout_and_availability_that_of_the_installed_one() {
        let installed = set(
            1,
            &[
                ("Progressing", ConditionStatus::True, "Succeeded"),
                ("Available", ConditionStatus::True, "ProbesSucceeded"),
                ("Succeeded", ConditionStatus::True, "Succeeded"),
            ],
        );
        let next = set(
            2,
            &[
                ("Progressing", ConditionStatus::True, "RollingOut"),
                ("Available", ConditionStatus::False, "ProbeFailure"),
            ],
        );
        let (conditions, active) = status(&[installed, next]);
        assert_eq!(
            conditions,
            [
                "Available=True/ProbesSucceeded: Available of 1",
                "Progressing=True/RollingOut: Progressing of 2",
                "Installed=True/Succeeded: Installed bundle r.example/b:v1 successfully",
            ]
        );
        assert_eq!(active, [("e-1".to_owned(), 0), ("e-2".to_owned(), 2)]);
    }
}
