//! Rollout of a revision: the results of its objects and phases, and the report about collisions.

use crate::comparison::ObjectComparison;
use crate::ownership::ObjectDecision;
use crate::probe::{ProbeResult, ProbeStatus};
use mainstay_gocompat::quote;
use mainstay_object::{Object, OwnerReference};
use std::fmt::Write as _;

/// What was done with an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ObjectAction {
    /// It was created.
    Created,
    /// It was changed.
    Updated,
    /// Changes of another manager were taken back.
    Recovered,
    /// A later revision has it.
    Progressed,
    /// Nothing.
    Idle,
    /// Nothing, because it belongs to something else.
    Collision,
}

impl ObjectAction {
    /// The word of reports.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Created => "Created",
            Self::Updated => "Updated",
            Self::Recovered => "Recovered",
            Self::Progressed => "Progressed",
            Self::Idle => "Idle",
            Self::Collision => "Collision",
        }
    }
}

impl From<&ObjectDecision> for ObjectAction {
    /// The action once a decision was carried out.
    fn from(decision: &ObjectDecision) -> Self {
        match decision {
            ObjectDecision::Create(_) => Self::Created,
            ObjectDecision::Progressed => Self::Progressed,
            ObjectDecision::Idle => Self::Idle,
            ObjectDecision::Apply { recovers: true, .. } => Self::Recovered,
            ObjectDecision::Apply { recovers: false, .. } => Self::Updated,
            ObjectDecision::Collision { .. } => Self::Collision,
        }
    }
}

/// The result of an object.
#[derive(Clone, Debug, PartialEq)]
pub struct ObjectResult {
    /// The object as the API returned it last.
    pub object: Object,
    /// What was done.
    pub action: ObjectAction,
    /// What the probes found on the object.
    pub probe: ProbeResult,
    /// The comparison with the desired object; empty for a new object.
    pub comparison: ObjectComparison,
    /// The controller of the object in a collision.
    pub conflicting_owner: Option<OwnerReference>,
}

/// The results of a phase.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PhaseResult {
    /// The results of its objects.
    pub objects: Vec<ObjectResult>,
}

/// The results of a revision, up to the first phase that is not complete.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RolloutResult {
    /// The number of all phases.
    pub phase_count: usize,
    /// The results of the first phases.
    pub phases: Vec<PhaseResult>,
    /// Why no event tells of changes of the objects; none if events do.
    pub unwatched: Option<String>,
}

impl ObjectResult {
    /// The result for an object that is as desired and passes its probes, as before.
    pub fn unchanged(object: &Object) -> Self {
        Self {
            object: object.clone(),
            action: ObjectAction::Idle,
            probe: ProbeResult { status: ProbeStatus::True, messages: Vec::new() },
            comparison: ObjectComparison::default(),
            conflicting_owner: None,
        }
    }

    /// Whether the object lets the next phase begin.
    pub fn is_complete(&self) -> bool {
        self.action != ObjectAction::Collision && self.probe.is_success()
    }

    /// `Kind.version.group namespace/name`, as upstream names an object in messages.
    fn title(&self) -> String {
        let object = &self.object;
        let version = object.gvk().api_version();
        format!("Object {}.{version} {}/{}", object.kind(), object.namespace(), object.name())
    }

    /// The report about the object.
    pub fn report(&self) -> String {
        let mut out = self.title();
        let _ = writeln!(out, "\nAction: {}", quote(self.action.as_str()));
        let verdict = match self.probe.status {
            ProbeStatus::True => "Succeeded",
            ProbeStatus::False => "Failed",
            ProbeStatus::Unknown => "Unknown",
        };
        let _ = writeln!(out, "Probes:\n- Progress: {verdict}");
        for message in &self.probe.messages {
            let _ = writeln!(out, "  - {message}");
        }
        self.comparison.write(&mut out);
        if self.action == ObjectAction::Collision {
            let owner = self.conflicting_owner.as_ref();
            let _ =
                writeln!(out, "Conflicting Owner: {}", owner.map_or("nil".to_owned(), go_owner));
        }
        out
    }
}

/// An owner reference as Go prints it.
fn go_owner(owner: &OwnerReference) -> String {
    let pointer = |value: Option<bool>| value.map_or("nil".to_owned(), |value| format!("*{value}"));
    format!(
        "&OwnerReference{{Kind:{},Name:{},UID:{},APIVersion:{},Controller:{},BlockOwnerDeletion:{},}}",
        owner.kind,
        owner.name,
        owner.uid,
        owner.api_version,
        pointer(owner.controller),
        pointer(owner.block_owner_deletion),
    )
}

impl PhaseResult {
    /// Whether the next phase may begin.
    pub fn is_complete(&self) -> bool {
        self.objects.iter().all(ObjectResult::is_complete)
    }
}

impl RolloutResult {
    /// Whether all phases are complete.
    pub fn is_complete(&self) -> bool {
        self.phases.len() >= self.phase_count && self.phases.iter().all(PhaseResult::is_complete)
    }

    /// The message about collisions in the first phase with any.
    pub fn collisions(&self) -> Option<String> {
        self.phases.iter().enumerate().find_map(|(at, phase)| {
            let reports: Vec<String> = phase
                .objects
                .iter()
                .filter(|object| object.action == ObjectAction::Collision)
                .map(ObjectResult::report)
                .collect();
            (!reports.is_empty()).then(|| {
                format!("revision object collisions in phase {at}\n{}", reports.join("\n\n"))
            })
        })
    }

    /// The message about failing probes: the first object of each incomplete phase.
    pub fn probe_failures(&self) -> Option<String> {
        let failures: Vec<String> = self
            .phases
            .iter()
            .filter(|phase| !phase.is_complete())
            .filter_map(|phase| phase.objects.iter().find(|object| !object.probe.is_success()))
            .map(|object| format!("{}: {}", object.title(), object.probe.messages.join(" and ")))
            .collect();
        (!failures.is_empty()).then(|| failures.join("\n"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use mainstay_object::Gvk;

    fn result(name: &str, action: ObjectAction, failure: Option<&str>) -> ObjectResult {
        let mut object = Object::new(&Gvk::from_api_version("apps/v1", "Deployment"), name);
        object.set(&["metadata", "namespace"], "n".into());
        let status = failure.map_or(ProbeStatus::True, |_| ProbeStatus::False);
        ObjectResult {
            object,
            action,
            probe: ProbeResult {
                status,
                messages: failure.into_iter().map(ToOwned::to_owned).collect(),
            },
            comparison: ObjectComparison::default(),
            conflicting_owner: None,
        }
    }

    #[test]
    fn collisions_of_a_phase_are_reported_together() {
        let rollout = RolloutResult {
            phase_count: 2,
            phases: vec![PhaseResult {
                objects: vec![
                    result("a", ObjectAction::Collision, None),
                    result("b", ObjectAction::Idle, Some("x")),
                    result("c", ObjectAction::Collision, Some("y")),
                ],
            }],
            ..RolloutResult::default()
        };
        assert_eq!(
            rollout.collisions().unwrap(),
            "revision object collisions in phase 0\nObject Deployment.apps/v1 n/a\nAction: \
             \"Collision\"\nProbes:\n- Progress: Succeeded\nConflicting Owner: nil\n\n\nObject \
             Deployment.apps/v1 n/c\nAction: \"Collision\"\nProbes:\n- Progress: Failed\n  - \
             y\nConflicting Owner: nil\n"
        );
        assert!(!rollout.is_complete());
    }

    #[test]
    fn first_failing_object_of_a_phase_is_reported() {
        let phases = vec![
            PhaseResult { objects: vec![result("a", ObjectAction::Idle, None)] },
            PhaseResult {
                objects: vec![
                    result("b", ObjectAction::Updated, Some("x")),
                    result("c", ObjectAction::Idle, Some("y")),
                ],
            },
        ];
        let rollout = RolloutResult { phase_count: 2, phases, ..RolloutResult::default() };
        assert_eq!(rollout.probe_failures().unwrap(), "Object Deployment.apps/v1 n/b: x");
        assert_eq!(rollout.collisions(), None);
        let none = RolloutResult::default();
        assert!(none.is_complete());
    }
}
