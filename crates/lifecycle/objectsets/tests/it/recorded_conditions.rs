//! Conditions of recorded ClusterObjectSets and ClusterExtensions, from the recorded objects.

use crate::cases::{RecordedStep, SYSTEM_NAMESPACE, cases};
use jiff::Timestamp;
use mainstay_api::{
    ClusterExtension, ClusterExtensionStatus, ClusterObjectSet, Condition, LifecycleState,
    ObservedPhase, Time,
};
use mainstay_object::{Gvk, NamespacedName, Object, Reason};
use mainstay_objectsets::{
    DryRunError, EMPTY_NAMESPACE, ObjectAction, ObjectComparison, ObjectDecision, ObjectResult,
    ObjectSecret, ObjectSetIdentity, ObjectSetOutcome, PhaseResult, ProgressionProbes,
    ResolvedPhase, RolloutResult, SecretLookup, applied_status, builtin_type, decide_object,
    dry_run_error, dry_run_message, managed_object, missing_account_message,
    mutable_secrets_message, object_reference_text, object_set_status, observed_phases,
    previous_revisions, referenced_secrets, resolve_phases, revision_errors_message,
    revision_states, revisions_of, validate_revision, verify_observed_phases, watch_message,
};
use std::collections::BTreeMap;

/// Sets whose Secret was deleted while they were idle: nothing made the controller look at them.
const NOT_RECONCILED: [&str; 2] = [
    "c269-box-object-set-edit/05-delete-the-secret-with-the-objects/ext-c269-2",
    "c277-cos-secret-refs/06-delete-the-good-secret/good-c277",
];

type Secrets = BTreeMap<(String, String), Object>;

fn now() -> Time {
    Time::new(Timestamp::from_second(1_700_000_000).unwrap())
}

/// Conditions by type, without times.
fn texts(conditions: &[Condition]) -> BTreeMap<String, String> {
    conditions
        .iter()
        .map(|condition| {
            let Condition { kind, status, reason, message, observed_generation, .. } = condition;
            (kind.clone(), format!("{status}/{reason} at {observed_generation}: {message}"))
        })
        .collect()
}

fn message<'a>(conditions: &'a [Condition], kind: &str) -> &'a str {
    conditions.iter().find(|found| found.kind == kind).map_or("", |found| &found.message)
}

/// The outcome of the recorded controller, with the text that belongs to it.
enum Outcome {
    Blocked(String),
    Failed(String),
    Invalid(String),
    Applied(RolloutResult),
    Archived,
}

impl Outcome {
    const fn as_outcome(&self) -> ObjectSetOutcome<'_> {
        match self {
            Self::Blocked(message) => ObjectSetOutcome::Blocked(message.as_str()),
            Self::Failed(message) => ObjectSetOutcome::Failed(message.as_str()),
            Self::Invalid(message) => ObjectSetOutcome::Invalid(message.as_str()),
            Self::Applied(rollout) => ObjectSetOutcome::Applied(rollout),
            Self::Archived => ObjectSetOutcome::Archived,
        }
    }

    /// Whether the conditions that the outcome does not set are those of before.
    const fn keeps_available(&self) -> bool {
        !matches!(self, Self::Applied(_) | Self::Archived)
    }
}

/// What the controller finds out about a set after a step.
fn outcome(
    step: &RecordedStep,
    set: &ClusterObjectSet,
    secrets: &Secrets,
) -> (Outcome, Vec<ObservedPhase>) {
    let found = |namespace: &str, name: &str| {
        let exists = step.objects.iter().any(|object| {
            object.kind() == "Secret" && object.namespace() == namespace && object.name() == name
        });
        secrets.get(&(namespace.to_owned(), name.to_owned())).filter(|_| exists)
    };
    let immutable = |secret: &NamespacedName| {
        let secret = found(&secret.namespace, &secret.name)?;
        Some(secret.bool(&["immutable"]).unwrap_or_default())
    };
    if let Some(message) = mutable_secrets_message(&set.spec, immutable) {
        return (Outcome::Blocked(message), Vec::new());
    }
    let missing: BTreeMap<String, String> = referenced_secrets(&set.spec)
        .iter()
        .map(|secret| (secret.name.to_string(), format!("secrets \"{}\" not found", secret.name)))
        .collect();
    let resolved =
        resolve_phases(&set.spec, |reference| match found(&reference.namespace, &reference.name) {
            Some(secret) => SecretLookup::Found(secret),
            None => SecretLookup::Failed(&missing[&reference.name]),
        });
    let phases = match resolved {
        Ok(phases) => phases,
        Err(error) => return (Outcome::Failed(error.to_string()), Vec::new()),
    };
    let observed =
        match verify_observed_phases(&set.status.observed_phases, observed_phases(&phases)) {
            Ok(observed) => observed,
            Err(error) => return (Outcome::Blocked(error.to_string()), Vec::new()),
        };
    (outcome_of_objects(step, set, &phases), observed)
}

fn outcome_of_objects(
    step: &RecordedStep,
    set: &ClusterObjectSet,
    phases: &[ResolvedPhase],
) -> Outcome {
    let name = &set.metadata.name;
    if !set.metadata.annotations.contains_key("olm.operatorframework.io/service-account-name") {
        return Outcome::Failed(missing_account_message(name));
    }
    if set.spec.lifecycle_state == LifecycleState::Archived {
        return Outcome::Archived;
    }
    let objects = || phases.iter().flat_map(|phase| &phase.objects);
    for object in objects().map(|object| &object.object) {
        if builtin_type(object).is_none() && !is_custom(step, &object.gvk()) {
            let (kind, version) = (object.kind(), object.api_version());
            let message = format!("no matches for kind {kind:?} in version {version:?}");
            return Outcome::Failed(watch_message(&message));
        }
    }
    if let Err(errors) = validate_revision(name, set.spec.revision, phases) {
        return Outcome::Invalid(revision_errors_message(&errors));
    }
    // The API refuses objects in its own words.
    let recorded = message(&set.status.conditions, "Progressing");
    for object in objects().map(|object| &object.object) {
        let other = dry_run_message(&[DryRunError::Other(EMPTY_NAMESPACE.to_owned())]);
        if object.kind() == "ConfigMap" && object.namespace().is_empty() {
            return Outcome::Failed(other);
        }
        let text = object_reference_text(object);
        let Some((_, refusal)) = recorded.split_once(&format!("validating: {text}: ")) else {
            continue;
        };
        let error = dry_run_error(object, Some(Reason::Invalid), refusal).unwrap();
        return Outcome::Failed(dry_run_message(&[error]));
    }
    let probes = ProgressionProbes::read(&set.spec.progression_probes).unwrap();
    let identity_of = |set: &ClusterObjectSet| ObjectSetIdentity {
        uid: "{uid}".to_owned(),
        ..ObjectSetIdentity::from(set)
    };
    let identity = identity_of(set);
    let previous: Vec<ObjectSetIdentity> =
        previous_revisions(set, &step.sets).into_iter().map(identity_of).collect();
    let mut rollout = RolloutResult { phase_count: phases.len(), ..RolloutResult::default() };
    for phase in phases {
        let mut result = PhaseResult::default();
        for resolved in &phase.objects {
            let desired = managed_object(&resolved.object, &identity);
            // The recorded objects are those after the controller became idle.
            let Some(actual) = step.find(&desired) else { return Outcome::Applied(rollout) };
            let comparison = ObjectComparison::default();
            let decision = decide_object(
                &desired,
                Some((actual, &comparison)),
                &identity,
                &previous,
                &resolved.collision_protection,
            )
            .unwrap();
            let conflicting_owner = match &decision {
                ObjectDecision::Collision { owner } => owner.clone(),
                _ => None,
            };
            result.objects.push(ObjectResult {
                action: ObjectAction::from(&decision),
                probe: probes.probe(actual),
                object: actual.clone(),
                comparison,
                conflicting_owner,
            });
        }
        let is_complete = result.is_complete();
        rollout.phases.push(result);
        if !is_complete {
            break;
        }
    }
    Outcome::Applied(rollout)
}

/// Whether the API serves a custom kind. The definitions of cert-manager belong to no case.
fn is_custom(step: &RecordedStep, gvk: &Gvk) -> bool {
    gvk.group == "cert-manager.io"
        || step.objects.iter().any(|object| {
            object.kind() == "CustomResourceDefinition"
                && object.str(&["spec", "group"]) == Some(&gvk.group)
        })
}

fn add_all(secrets: &mut Secrets, added: impl Iterator<Item = Object>) {
    secrets.extend(
        added.map(|secret| ((secret.namespace().to_owned(), secret.name().to_owned()), secret)),
    );
}

/// The Secrets of the bundle of each set, and those of administrators.
fn add_secrets(step: &RecordedStep, secrets: &mut Secrets) {
    add_all(secrets, step.secrets.iter().cloned());
    for set in &step.sets {
        let is_known = |secret: &NamespacedName| {
            secrets.contains_key(&(secret.namespace.to_string(), secret.name.to_string()))
        };
        if referenced_secrets(&set.spec).iter().all(is_known) {
            continue;
        }
        if let Some(extension) = step.extension_of(set) {
            let desired = step.build(set, &extension);
            let packed = desired.packed(set.spec.revision, SYSTEM_NAMESPACE).unwrap();
            add_all(secrets, packed.secrets.iter().map(ObjectSecret::to_object));
        }
    }
}

#[test]
fn recorded_conditions_of_sets_follow_from_the_recorded_objects() {
    let Some(data) = mainstay_testdata::unpack("answers/olm-v1", "conditions of object sets")
    else {
        return;
    };
    let (mut same, mut detailed, mut wrong) = (0, 0, Vec::new());
    for steps in cases(&data.path().join("olm-v1/cases")) {
        let mut secrets = Secrets::new();
        for step in &steps {
            add_secrets(step, &mut secrets);
            for set in &step.sets {
                let place = format!("{}/{}", step.place, set.metadata.name);
                if NOT_RECONCILED.contains(&&*place) {
                    continue;
                }
                if message(&set.status.conditions, "Progressing").contains("Comparison:") {
                    // Managed fields are not recorded; tests/it/collisions.rs has these reports.
                    detailed += 1;
                    continue;
                }
                let (outcome, observed) = outcome(step, set, &secrets);
                let mut before = set.clone();
                before.status.conditions.retain(|condition| {
                    condition.kind == "Succeeded"
                        || condition.kind == "Available" && outcome.keeps_available()
                });
                if matches!(&outcome, Outcome::Applied(rollout) if rollout.is_complete()) {
                    before.status.conditions.clear();
                }
                let update = object_set_status(&before, observed, outcome.as_outcome(), now());
                let (found, expected) =
                    (texts(&update.status.conditions), texts(&set.status.conditions));
                if found == expected && update.status.observed_phases == set.status.observed_phases
                {
                    same += 1;
                } else {
                    wrong.push(format!("{place}\n  {found:?}\n  {expected:?}"));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}: {}", wrong.len(), wrong.join("\n"));
    assert_eq!((same, detailed), (267, 3));
    mainstay_testdata::ran(&format!("conditions of {same} recorded object sets"));
}

#[test]
fn recorded_conditions_of_extensions_follow_from_their_sets() {
    let Some(data) = mainstay_testdata::unpack("answers/olm-v1", "conditions of extensions") else {
        return;
    };
    let (mut same, mut own, mut wrong) = (0, 0, Vec::new());
    for steps in cases(&data.path().join("olm-v1/cases")) {
        for step in &steps {
            let extensions =
                step.objects.iter().filter(|object| object.kind() == "ClusterExtension");
            for object in extensions {
                let extension = ClusterExtension::from_object(object).unwrap();
                let sets = revisions_of(&extension.metadata.name, &step.sets);
                if sets.is_empty() {
                    continue;
                }
                let recorded = message(&extension.status.conditions, "Progressing");
                if !sets
                    .iter()
                    .any(|set| message(&set.status.conditions, "Progressing") == recorded)
                {
                    // An error before the bundle was applied.
                    own += 1;
                    continue;
                }
                let mut before = extension.clone();
                before.status.conditions.retain(|condition| {
                    !["Installed", "Progressing", "Available"].contains(&&*condition.kind)
                });
                before.status.install = None;
                before.status.active_revisions.clear();
                let status = applied_status(&before, &revision_states(&sets), now());
                let revisions = |status: &ClusterExtensionStatus| {
                    let revisions = status.active_revisions.iter();
                    revisions
                        .map(|revision| (revision.name.clone(), texts(&revision.conditions)))
                        .collect::<Vec<_>>()
                };
                let found = (texts(&status.conditions), revisions(&status), status.install.clone());
                let status = &extension.status;
                let expected =
                    (texts(&status.conditions), revisions(status), status.install.clone());
                if found == expected {
                    same += 1;
                } else {
                    let place = format!("{}/{}", step.place, extension.metadata.name);
                    wrong.push(format!("{place}\n  {found:?}\n  {expected:?}"));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}: {}", wrong.len(), wrong.join("\n"));
    assert_eq!((same, own), (90, 3));
    mainstay_testdata::ran(&format!("conditions of {same} recorded extensions"));
}
