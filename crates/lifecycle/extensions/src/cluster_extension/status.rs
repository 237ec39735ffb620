//! The status of a ClusterExtension after a reconciliation. Plain functions of plain data.

use super::failure::Failure;
use mainstay_api::conditions::{condition, find, set_condition};
use mainstay_api::{
    BundleMetadata, ClusterExtension, ClusterExtensionConditionType as Type,
    ClusterExtensionInstallStatus, ClusterExtensionReason as Reason, ClusterExtensionStatus,
    ClusterObjectSet, Condition, ConditionStatus, Time,
};
use mainstay_client::EventType;
use mainstay_objectsets::{applied_status, revision_states, set_installed};
use mainstay_resolver::extension::{InstalledExtensionBundle, PackageDeprecation};
use std::sync::Arc;

/// The message without an installed bundle.
const NOTHING_INSTALLED: &str = "No bundle installed";
/// The message of Progressing when nothing is left to do.
const REACHED: &str = "Desired state reached";
/// The message of deprecations while no catalog was consulted.
const UNKNOWN: &str = "deprecation status unknown: catalog data unavailable";

/// A bundle that is installed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct InstalledBundle {
    /// Its name.
    pub(super) name: String,
    /// Its version.
    pub(super) version: String,
    /// Its release, if it states one.
    pub(super) release: Option<String>,
    /// Its image as the catalog names it.
    pub(super) image: String,
}

impl From<&InstalledBundle> for InstalledExtensionBundle {
    fn from(InstalledBundle { name, version, release, .. }: &InstalledBundle) -> Self {
        Self { name: name.clone(), version: version.clone(), release: release.clone() }
    }
}

/// What is installed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Installed {
    /// This bundle.
    Bundle(InstalledBundle),
    /// Nothing, after a failure.
    Nothing,
    /// It could not be determined.
    Unknown(String),
}

/// How far the extension is from its spec.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Progress {
    /// Nothing is left to do.
    Reached,
    /// An error, after which the controller tries again.
    Retrying(String),
    /// An error that only another spec, or another bundle, can remove.
    Blocked(String),
    /// The bundle refuses the configuration.
    InvalidConfiguration(String),
}

/// What catalogs say about deprecations.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Deprecations {
    /// They were not consulted: the conditions stay as they are.
    Unchanged,
    /// They have no bundle for the extension.
    Unknown,
    /// Those of the package in the catalog of the chosen bundle.
    Known(PackageDeprecation),
}

/// The result of a reconciliation.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Outcome {
    pub(super) installed: Installed,
    pub(super) progress: Progress,
    pub(super) deprecations: Deprecations,
    /// The ClusterObjectSets before the reconciliation, from which the status follows; none with the Helm
    /// applier, and if they are not known.
    pub(super) revisions: Option<Arc<Vec<ClusterObjectSet>>>,
}

impl Outcome {
    /// The result of a reconciliation that failed before it was known what is installed.
    pub(super) fn unknown(failure: &Failure) -> Self {
        Self {
            installed: Installed::Unknown(failure.message().to_owned()),
            progress: failure.progress(),
            deprecations: Deprecations::Unchanged,
            revisions: None,
        }
    }
}

/// What the log and an Event say of a reconciliation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Report {
    pub(super) decision: &'static str,
    /// Type and reason of the Event.
    pub(super) event: (EventType, &'static str),
    pub(super) why: String,
}

/// The report of a reconciliation; none if nothing was installed without a failure.
pub(super) fn report(outcome: &Outcome) -> Option<Report> {
    let (decision, event, why) = match (&outcome.progress, &outcome.installed) {
        (Progress::Reached, Installed::Bundle(bundle)) => {
            let why = format!("{} {} is installed", bundle.name, bundle.version);
            ("installed", (EventType::Normal, "Installed"), why)
        }
        (Progress::Reached, _) => return None,
        // Progressing does not always repeat why the releases cannot be read.
        (Progress::Retrying(_), Installed::Unknown(why)) | (Progress::Retrying(why), _) => {
            ("retrying", (EventType::Warning, "Retrying"), why.clone())
        }
        (Progress::Blocked(why) | Progress::InvalidConfiguration(why), _) => {
            ("blocked", (EventType::Warning, "Blocked"), why.clone())
        }
    };
    Some(Report { decision, event, why })
}

/// Whether the conditions Installed and Progressing say something new. A time or a generation is not new.
pub(super) fn differs(before: &ClusterExtensionStatus, after: &ClusterExtensionStatus) -> bool {
    let texts = |status: &ClusterExtensionStatus| {
        [Type::Installed, Type::Progressing].map(|kind| {
            let condition = find(&status.conditions, &kind.to_string());
            condition.map(|condition| (condition.status.clone(), condition.message.clone()))
        })
    };
    texts(before) != texts(after)
}

/// The status after a reconciliation.
pub(super) fn after(
    extension: &ClusterExtension,
    outcome: &Outcome,
    now: Time,
) -> ClusterExtensionStatus {
    if let Some(revisions) = &outcome.revisions {
        return after_revisions(extension, outcome, revisions, now);
    }
    let mut status = extension.status.clone();
    let generation = extension.metadata.generation;
    let mut new = deprecations(extension, outcome, generation);
    let (installed, bundle) = match &outcome.installed {
        Installed::Bundle(bundle) => {
            let message = format!("Installed bundle {} successfully", bundle.image);
            (
                condition(
                    &Type::Installed,
                    ConditionStatus::True,
                    &Reason::Succeeded,
                    &message,
                    generation,
                ),
                Some(ClusterExtensionInstallStatus { bundle: metadata(bundle) }),
            )
        }
        Installed::Nothing => (
            condition(
                &Type::Installed,
                ConditionStatus::False,
                &Reason::Failed,
                NOTHING_INSTALLED,
                generation,
            ),
            None,
        ),
        Installed::Unknown(why) => (
            condition(&Type::Installed, ConditionStatus::Unknown, &Reason::Failed, why, generation),
            status.install.take(),
        ),
    };
    status.install = bundle;
    new.push(installed);
    new.push(progressing(&outcome.progress, generation));
    for condition in new {
        set_condition(&mut status.conditions, condition, now);
    }
    status
}

/// The status after a reconciliation with ClusterObjectSets.
fn after_revisions(
    extension: &ClusterExtension,
    outcome: &Outcome,
    revisions: &[ClusterObjectSet],
    now: Time,
) -> ClusterExtensionStatus {
    let generation = extension.metadata.generation;
    let mut extension = extension.clone();
    for condition in deprecations(&extension, outcome, generation) {
        set_condition(&mut extension.status.conditions, condition, now);
    }
    let states = revision_states(revisions);
    if outcome.progress == Progress::Reached {
        return applied_status(&extension, &states, now);
    }
    let mut status = extension.status;
    // As in upstream, a configuration that the bundle refuses leaves Installed as it is.
    if !matches!(outcome.progress, Progress::InvalidConfiguration(_)) {
        set_installed(&mut status, &states, generation, now);
    }
    set_condition(&mut status.conditions, progressing(&outcome.progress, generation), now);
    status
}

fn metadata(bundle: &InstalledBundle) -> BundleMetadata {
    BundleMetadata {
        name: bundle.name.clone(),
        version: bundle.version.clone(),
        release: bundle.release.clone(),
    }
}

fn progressing(progress: &Progress, generation: i64) -> Condition {
    let (status, reason, message) = match progress {
        Progress::Reached => (ConditionStatus::True, Reason::Succeeded, REACHED),
        Progress::Retrying(why) => (ConditionStatus::True, Reason::Retrying, &**why),
        Progress::Blocked(why) => (ConditionStatus::False, Reason::Blocked, &**why),
        Progress::InvalidConfiguration(why) => {
            (ConditionStatus::False, Reason::InvalidConfiguration, &**why)
        }
    };
    condition(&Type::Progressing, status, &reason, message, generation)
}

/// The four conditions about deprecations.
fn deprecations(
    extension: &ClusterExtension,
    outcome: &Outcome,
    generation: i64,
) -> Vec<Condition> {
    let installed = match &outcome.installed {
        Installed::Bundle(bundle) => Some(bundle),
        _ => None,
    };
    let known = match &outcome.deprecations {
        Deprecations::Unchanged => return Vec::new(),
        Deprecations::Unknown => None,
        Deprecations::Known(known) => Some(known),
    };
    let absent = || {
        let message = "no bundle installed yet";
        let (kind, reason) = (&Type::BundleDeprecated, &Reason::Absent);
        condition(kind, ConditionStatus::Unknown, reason, message, generation)
    };
    let unknown = |kind: &Type| {
        let reason = &Reason::DeprecationStatusUnknown;
        condition(kind, ConditionStatus::Unknown, reason, UNKNOWN, generation)
    };
    let Some(known) = known else {
        let bundle = match installed {
            Some(_) => unknown(&Type::BundleDeprecated),
            None => absent(),
        };
        let all = [&Type::Deprecated, &Type::PackageDeprecated, &Type::ChannelDeprecated];
        return all.into_iter().map(unknown).chain([bundle]).collect();
    };
    let given = extension.spec.source.catalog.as_ref().map(|catalog| &*catalog.channels);
    let counts = |channel: &str| {
        given.is_none_or(|given| given.is_empty() || given.iter().any(|name| name == channel))
    };
    let package: Vec<&Arc<str>> = known.package.iter().collect();
    let channels: Vec<&Arc<str>> = known
        .channels
        .iter()
        .filter(|(channel, _)| counts(channel))
        .map(|(_, message)| message)
        .collect();
    let bundle: Vec<&Arc<str>> =
        installed.and_then(|bundle| known.bundles.get(&*bundle.name)).into_iter().collect();
    let holds = |kind: &Type, subject: &str, messages: &[&Arc<str>]| {
        if messages.is_empty() {
            let message = format!("{subject}not deprecated");
            let reason = &Reason::NotDeprecated;
            return condition(kind, ConditionStatus::False, reason, &message, generation);
        }
        let message = messages.iter().map(|message| &***message).collect::<Vec<_>>().join("\n");
        condition(kind, ConditionStatus::True, &Reason::Deprecated, &message, generation)
    };
    let all = [package.as_slice(), &channels, &bundle].concat();
    vec![
        holds(&Type::Deprecated, "", &all),
        holds(&Type::PackageDeprecated, "package ", &package),
        holds(&Type::ChannelDeprecated, "channel ", &channels),
        match installed {
            Some(_) => holds(&Type::BundleDeprecated, "bundle ", &bundle),
            None => absent(),
        },
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use jiff::Timestamp;
    use mainstay_api::CatalogFilter;

    fn time(second: i64) -> Time {
        Time::new(Timestamp::from_second(second).unwrap())
    }

    fn extension() -> ClusterExtension {
        let mut extension = ClusterExtension::new("", "a");
        extension.metadata.generation = 3;
        extension
    }

    fn bundle() -> InstalledBundle {
        InstalledBundle {
            name: "a.v1".to_owned(),
            version: "1.0.0".to_owned(),
            release: None,
            image: "r.example/a:v1".to_owned(),
        }
    }

    fn find<'s>(status: &'s ClusterExtensionStatus, kind: &str) -> (&'s str, &'s str, &'s str) {
        let found = status.conditions.iter().find(|condition| condition.kind == kind).unwrap();
        let truth = match found.status {
            ConditionStatus::True => "True",
            ConditionStatus::False => "False",
            _ => "Unknown",
        };
        assert_eq!(found.observed_generation, 3);
        (truth, &found.reason, &found.message)
    }

    fn deprecation() -> PackageDeprecation {
        let named = |name: &str, message: &str| [(Arc::from(name), Arc::from(message))].into();
        PackageDeprecation {
            package: Some("package is old".into()),
            channels: named("alpha", "alpha is old"),
            bundles: named("a.v1", "a.v1 is old"),
        }
    }

    #[test]
    fn report_is_about_the_outcome_and_an_event_about_a_change() {
        let outcome = |installed: Installed, progress: Progress| Outcome {
            installed,
            progress,
            deprecations: Deprecations::Unknown,
            revisions: None,
        };
        let unknown = Installed::Unknown("no Secret".to_owned());
        for (installed, progress, expected) in [
            (
                Installed::Bundle(bundle()),
                Progress::Reached,
                Some("installed: a.v1 1.0.0 is installed"),
            ),
            (Installed::Nothing, Progress::Reached, None),
            (
                Installed::Bundle(bundle()),
                Progress::Retrying("pull".to_owned()),
                Some("retrying: pull"),
            ),
            (unknown, Progress::Retrying("releases".to_owned()), Some("retrying: no Secret")),
            (Installed::Nothing, Progress::Blocked("name".to_owned()), Some("blocked: name")),
            (
                Installed::Nothing,
                Progress::InvalidConfiguration("x".to_owned()),
                Some("blocked: x"),
            ),
        ] {
            let found = report(&outcome(installed, progress));
            let found = found.map(|report| format!("{}: {}", report.decision, report.why));
            assert_eq!(found.as_deref(), expected);
        }
        let extension = extension();
        let of = |progress: Progress, at: i64| {
            after(&extension, &outcome(Installed::Bundle(bundle()), progress), time(at))
        };
        let retrying = Progress::Retrying("pull".to_owned());
        assert!(!differs(&of(retrying.clone(), 1), &of(retrying.clone(), 2)));
        assert!(differs(&of(retrying, 1), &of(Progress::Reached, 1)));
    }

    #[test]
    fn installed_bundle_is_reported_with_its_deprecations() {
        let outcome = Outcome {
            installed: Installed::Bundle(bundle()),
            progress: Progress::Reached,
            deprecations: Deprecations::Known(deprecation()),
            revisions: None,
        };
        let status = after(&extension(), &outcome, time(1));
        // shows CE-20
        assert_eq!(
            find(&status, "Installed"),
            ("True", "Succeeded", "Installed bundle r.example/a:v1 successfully")
        );
        assert_eq!(find(&status, "Progressing"), ("True", "Succeeded", "Desired state reached"));
        let all = "package is old\nalpha is old\na.v1 is old";
        assert_eq!(find(&status, "Deprecated"), ("True", "Deprecated", all));
        // shows OLMV1-132
        assert_eq!(find(&status, "BundleDeprecated"), ("True", "Deprecated", "a.v1 is old"));
        assert_eq!(status.install.unwrap().bundle.name, "a.v1");
    }

    #[test]
    fn deprecated_channels_count_only_if_the_extension_may_use_them() {
        let mut other = extension();
        let filter =
            CatalogFilter { channels: vec!["beta".to_owned()], ..CatalogFilter::default() };
        other.spec.source.catalog = Some(filter);
        let outcome = Outcome {
            installed: Installed::Nothing,
            progress: Progress::Retrying("x".to_owned()),
            deprecations: Deprecations::Known(deprecation()),
            revisions: None,
        };
        let status = after(&other, &outcome, time(1));
        let expected = ("False", "NotDeprecated", "channel not deprecated");
        // shows OLMV1-132
        assert_eq!(find(&status, "ChannelDeprecated"), expected);
        let expected = ("Unknown", "Absent", "no bundle installed yet");
        assert_eq!(find(&status, "BundleDeprecated"), expected);
        assert_eq!(find(&status, "Installed"), ("False", "Failed", "No bundle installed"));
        assert_eq!(find(&status, "Progressing"), ("True", "Retrying", "x"));
    }

    #[test]
    fn unreadable_state_keeps_the_installed_bundle_and_the_deprecations() {
        let installed = Outcome {
            installed: Installed::Bundle(bundle()),
            progress: Progress::Reached,
            deprecations: Deprecations::Unknown,
            revisions: None,
        };
        let mut extension = extension();
        extension.status = after(&extension, &installed, time(1));
        let expected = ("Unknown", "DeprecationStatusUnknown", UNKNOWN);
        // shows OLMV1-132
        assert_eq!(find(&extension.status, "BundleDeprecated"), expected);
        let lost = Outcome {
            installed: Installed::Unknown("no account".to_owned()),
            progress: Progress::Blocked("no account".to_owned()),
            deprecations: Deprecations::Unchanged,
            revisions: None,
        };
        let status = after(&extension, &lost, time(2));
        assert_eq!(status.install, extension.status.install);
        assert_eq!(find(&status, "Installed"), ("Unknown", "Failed", "no account"));
        assert_eq!(find(&status, "Progressing"), ("False", "Blocked", "no account"));
        assert_eq!(find(&status, "Deprecated"), expected);
    }
}
