//! Decisions about a ClusterCatalog: the next step, and the status after it. Plain functions of plain data.

use jiff::{SignedDuration, Timestamp};
use mainstay_api::conditions::{condition, set_condition};
use mainstay_api::names::olm_v1::{CATALOG_FINALIZER, CATALOG_NAME_LABEL};
use mainstay_api::{
    AvailabilityMode, ClusterCatalog, ClusterCatalogConditionType, ClusterCatalogReason,
    ClusterCatalogSourceType, ClusterCatalogStatus, ClusterCatalogUrls, ConditionStatus,
    ResolvedCatalogSource, ResolvedImageSource, Time,
};

/// The message while a catalog is switched off.
const SWITCHED_OFF: &str = "Catalog availability mode is set to Unavailable";
/// The messages after content was loaded.
const UNPACKED: &str = "Successfully unpacked and stored content from resolved source";
const SERVING: &str = "Serving desired content from resolved source";

/// The last attempt to load a catalog, in this process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Attempt {
    /// The uid of the object: another object of the same name is another catalog.
    pub(super) uid: String,
    /// The generation that was attempted.
    pub(super) generation: i64,
    /// When it ended.
    pub(super) time: Timestamp,
    /// How it ended.
    pub(super) outcome: Outcome,
}

/// The outcome of an attempt to load.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// The content is served.
    Loaded {
        /// The image reference with its digest.
        resolved: String,
        /// When the content was stored.
        unpacked: Time,
    },
    /// It failed, and is tried again.
    Retrying {
        /// The message of the condition.
        message: String,
    },
    /// It failed, and only another spec can help.
    Blocked {
        /// The message of the condition.
        message: String,
    },
}

/// What to do next with a catalog.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// Nothing: the object waits for the finalizers of others.
    Rest,
    /// Stop serving, report that, and remove the finalizer.
    Withdraw,
    /// Add the label and the finalizer.
    Prepare,
    /// Load the content.
    Load,
    /// Report the last attempt, and load again at this time, if any.
    Report(Option<Timestamp>),
}

/// Whether the object is being deleted.
fn is_deleted(catalog: &ClusterCatalog) -> bool {
    catalog.metadata.deletion_timestamp.is_some()
}

/// Whether the object has our finalizer.
pub(super) fn has_finalizer(catalog: &ClusterCatalog) -> bool {
    catalog.metadata.finalizers.iter().any(|name| name == CATALOG_FINALIZER)
}

/// Whether the label has the name of the catalog.
pub(super) fn has_name_label(catalog: &ClusterCatalog) -> bool {
    catalog.metadata.labels.get(CATALOG_NAME_LABEL) == Some(&catalog.metadata.name)
}

/// Decides the next step.
pub(super) fn step(catalog: &ClusterCatalog, attempt: Option<&Attempt>, now: Timestamp) -> Step {
    if is_deleted(catalog) && !has_finalizer(catalog) {
        return Step::Rest;
    }
    if is_deleted(catalog) {
        return Step::Withdraw;
    }
    if !has_name_label(catalog) {
        return Step::Prepare;
    }
    if catalog.spec.availability_mode == AvailabilityMode::Unavailable {
        return Step::Withdraw;
    }
    if !has_finalizer(catalog) {
        return Step::Prepare;
    }
    let metadata = &catalog.metadata;
    let Some(attempt) = attempt
        .filter(|attempt| attempt.uid == metadata.uid && attempt.generation == metadata.generation)
    else {
        return Step::Load;
    };
    match &attempt.outcome {
        Outcome::Retrying { .. } => Step::Load,
        Outcome::Blocked { .. } => Step::Report(None),
        Outcome::Loaded { .. } => match next_poll(catalog, attempt.time) {
            Some(due) if due <= now => Step::Load,
            due => Step::Report(due),
        },
    }
}

/// The time of the poll after one at `last`; none without an interval. Up to a tenth of the interval is
/// added, another part for each catalog, so that not all ask the registry at the same time.
fn next_poll(catalog: &ClusterCatalog, last: Timestamp) -> Option<Timestamp> {
    let minutes = catalog.spec.source.image.as_ref()?.poll_interval_minutes?;
    let seconds = minutes.checked_mul(60)?;
    let spread =
        catalog.metadata.uid.bytes().fold(0_i64, |sum, byte| (sum * 31 + i64::from(byte)) % 1_000);
    let extra = (i128::from(seconds) * i128::from(spread) / 10_000).min(i128::from(i64::MAX));
    let wait = SignedDuration::from_secs(seconds.saturating_add(i64::try_from(extra).ok()?));
    last.checked_add(wait).ok()
}

/// The status of a catalog that is not served: deleted, or switched off.
pub(super) fn withdrawn(catalog: &ClusterCatalog, now: Time) -> ClusterCatalogStatus {
    let mut status = ClusterCatalogStatus {
        conditions: catalog.status.conditions.clone(),
        ..ClusterCatalogStatus::default()
    };
    let generation = catalog.metadata.generation;
    let mut set = |kind, status_value, reason, message: &str| {
        let condition = condition(kind, status_value, reason, message, generation);
        set_condition(&mut status.conditions, condition, now);
    };
    let (serving, progressing) =
        (&ClusterCatalogConditionType::Serving, &ClusterCatalogConditionType::Progressing);
    if is_deleted(catalog) {
        set(serving, ConditionStatus::False, &ClusterCatalogReason::Unavailable, "");
    } else {
        let off = &ClusterCatalogReason::UserSpecifiedUnavailable;
        set(serving, ConditionStatus::False, off, SWITCHED_OFF);
        let succeeded = &ClusterCatalogReason::Succeeded;
        set(progressing, ConditionStatus::True, succeeded, SWITCHED_OFF);
    }
    status
}

/// The status after an attempt. `address` is that of the HTTP API.
pub(super) fn reported(
    catalog: &ClusterCatalog,
    outcome: &Outcome,
    address: &str,
    now: Time,
) -> ClusterCatalogStatus {
    let mut status = catalog.status.clone();
    let generation = catalog.metadata.generation;
    let (serving, progressing) =
        (&ClusterCatalogConditionType::Serving, &ClusterCatalogConditionType::Progressing);
    let new = match outcome {
        Outcome::Loaded { resolved, unpacked } => {
            status.resolved_source = Some(ResolvedCatalogSource {
                kind: ClusterCatalogSourceType::Image,
                image: ResolvedImageSource { reference: resolved.clone() },
            });
            let base = format!("https://{address}/catalogs/{}", catalog.metadata.name);
            status.urls = Some(ClusterCatalogUrls { base });
            status.last_unpacked = Some(*unpacked);
            let succeeded = &ClusterCatalogReason::Succeeded;
            let available = &ClusterCatalogReason::Available;
            vec![
                condition(progressing, ConditionStatus::True, succeeded, UNPACKED, generation),
                condition(serving, ConditionStatus::True, available, SERVING, generation),
            ]
        }
        Outcome::Retrying { message } => {
            let retrying = &ClusterCatalogReason::Retrying;
            vec![condition(progressing, ConditionStatus::True, retrying, message, generation)]
        }
        Outcome::Blocked { message } => {
            let blocked = &ClusterCatalogReason::Blocked;
            vec![condition(progressing, ConditionStatus::False, blocked, message, generation)]
        }
    };
    for condition in new {
        set_condition(&mut status.conditions, condition, now);
    }
    status
}

#[cfg(test)]
mod tests {
    use super::*;
    use mainstay_api::ImageSource;
    use mainstay_api::conditions::{MAX_MESSAGE, TRUNCATED};

    fn time(minute: i64) -> Timestamp {
        Timestamp::from_second(minute * 60).unwrap()
    }

    fn catalog() -> ClusterCatalog {
        let mut catalog = ClusterCatalog::new("", "a");
        catalog.metadata.uid = "u".to_owned();
        catalog.metadata.generation = 1;
        catalog.metadata.finalizers = vec![CATALOG_FINALIZER.to_owned()];
        catalog.metadata.labels.insert(CATALOG_NAME_LABEL.to_owned(), "a".to_owned());
        catalog.spec.source.image = Some(ImageSource::default());
        catalog
    }

    fn attempt(outcome: Outcome) -> Attempt {
        Attempt { uid: "u".to_owned(), generation: 1, time: time(100), outcome }
    }

    fn loaded() -> Outcome {
        let resolved = "a.example/b@sha256:12".to_owned();
        Outcome::Loaded { resolved, unpacked: Time::new(time(90)) }
    }

    /// Type, whether it is true, reason and observed generation of each condition.
    fn conditions(status: &ClusterCatalogStatus) -> Vec<(&str, bool, &str, i64)> {
        let conditions = status.conditions.iter();
        conditions
            .map(|condition| {
                let holds = condition.status == ConditionStatus::True;
                (&*condition.kind, holds, &*condition.reason, condition.observed_generation)
            })
            .collect()
    }

    #[test]
    fn catalog_is_loaded_once_for_each_generation_and_at_each_poll() {
        let mut polled = catalog();
        polled.spec.source.image.as_mut().unwrap().poll_interval_minutes = Some(10);
        let mut changed = catalog();
        changed.metadata.generation = 2;
        let mut recreated = catalog();
        recreated.metadata.uid = "other".to_owned();
        let message = String::new();
        for (catalog, attempt, now, expected) in [
            (catalog(), None, 100, Step::Load),
            (catalog(), Some(attempt(loaded())), 100_000, Step::Report(None)),
            (changed, Some(attempt(loaded())), 100, Step::Load),
            (recreated, Some(attempt(loaded())), 100, Step::Load),
            (polled.clone(), Some(attempt(loaded())), 111, Step::Load),
            (
                catalog(),
                Some(attempt(Outcome::Retrying { message: message.clone() })),
                100,
                Step::Load,
            ),
            (catalog(), Some(attempt(Outcome::Blocked { message })), 100_000, Step::Report(None)),
        ] {
            // shows CC-06 OLMV1-124
            assert_eq!(step(&catalog, attempt.as_ref(), time(now)), expected);
        }
        let Step::Report(Some(due)) = step(&polled, Some(&attempt(loaded())), time(109)) else {
            panic!("the poll is not due yet");
        };
        assert!((time(110)..time(111)).contains(&due), "{due}");
    }

    #[test]
    fn label_and_finalizer_are_added_before_content_is_loaded() {
        let mut unlabelled = catalog();
        unlabelled.metadata.labels.clear();
        let mut mislabelled = catalog();
        mislabelled.metadata.labels.insert(CATALOG_NAME_LABEL.to_owned(), "b".to_owned());
        let mut unfinalized = catalog();
        unfinalized.metadata.finalizers.clear();
        for catalog in [unlabelled, mislabelled, unfinalized] {
            // shows CC-01 CC-12
            assert_eq!(step(&catalog, None, time(0)), Step::Prepare);
        }
    }

    #[test]
    fn deleted_catalog_with_finalizers_of_others_rests() {
        let mut deleted = catalog();
        deleted.metadata.deletion_timestamp = Some(Time::new(time(1)));
        // shows CC-18
        assert_eq!(step(&deleted, None, time(2)), Step::Withdraw);
        deleted.metadata.finalizers = vec!["other".to_owned()];
        assert_eq!(step(&deleted, None, time(2)), Step::Rest);
    }

    #[test]
    fn switched_off_catalog_has_no_address_and_keeps_its_label() {
        let mut off = catalog();
        off.spec.availability_mode = AvailabilityMode::Unavailable;
        off.metadata.generation = 2;
        off.status = reported(&catalog(), &loaded(), "a.example", Time::new(time(3)));
        assert_eq!(step(&off, Some(&attempt(loaded())), time(4)), Step::Withdraw);
        let status = withdrawn(&off, Time::new(time(5)));
        // shows CC-07 CC-19 OLMV1-121
        assert_eq!((status.resolved_source.is_none(), status.urls.is_none()), (true, true));
        assert_eq!(status.last_unpacked, None);
        assert_eq!(
            conditions(&status),
            [
                ("Progressing", true, "Succeeded", 2),
                ("Serving", false, "UserSpecifiedUnavailable", 2)
            ]
        );
        assert_eq!(status.conditions[0].last_transition_time, Some(Time::new(time(3))));
        assert_eq!(status.conditions[1].last_transition_time, Some(Time::new(time(5))));
    }

    #[test]
    fn failed_attempt_keeps_what_is_served() {
        let mut catalog = catalog();
        catalog.status = reported(&catalog, &loaded(), "a.example", Time::new(time(3)));
        catalog.metadata.generation = 2;
        let message = "x".repeat(40_000);
        let failed = Outcome::Retrying { message };
        let status = reported(&catalog, &failed, "a.example", Time::new(time(5)));
        assert_eq!(
            conditions(&status),
            [("Progressing", true, "Retrying", 2), ("Serving", true, "Available", 1)]
        );
        assert_eq!(status.urls, catalog.status.urls);
        let message = &status.conditions[0].message;
        assert!(message.len() == MAX_MESSAGE && message.ends_with(TRUNCATED));
    }
}
