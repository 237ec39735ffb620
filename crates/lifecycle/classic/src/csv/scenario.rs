//! Test scenarios for decisions about CSVs.

use super::health::ExpectedDeployment;
use super::phase::{Decision, PhaseInput, decide};
use super::requirements::{self, ObservedRequirements};
use super::status::Transition;
use crate::fields::{Api, Crd, Csv, Deployment};
use mainstay_api::{
    ClusterServiceVersion, CsvPhase, CsvReason, InstallMode, InstallModeType, OperatorGroup, Time,
    names,
};
use mainstay_object::Object;
use serde_json::json;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// The observed state of a CSV with one healthy Deployment and one established
/// CustomResourceDefinition.
pub(super) struct Scenario {
    pub(super) csv: ClusterServiceVersion,
    pub(super) groups: Vec<Arc<OperatorGroup>>,
    pub(super) other_groups: Vec<Arc<OperatorGroup>>,
    pub(super) observed: ObservedRequirements,
    pub(super) deployments: BTreeMap<String, Arc<Deployment>>,
}

pub(super) fn group(namespace: &str, targets: &[&str], provided: &str) -> Arc<OperatorGroup> {
    let mut group = OperatorGroup::new(namespace, "og");
    group.spec.target_namespaces =
        targets.iter().map(|namespace| (*namespace).to_owned()).collect();
    group.status.namespaces.clone_from(&group.spec.target_namespaces);
    group.metadata.annotations.insert(names::PROVIDED_APIS.to_owned(), provided.to_owned());
    Arc::new(group)
}

pub(super) fn deployment() -> Deployment {
    Deployment {
        spec_hash: Some("h".into()),
        observed: true,
        replicas: (1, 1),
        available: Some(("True".into(), String::new())),
        template_annotations: [
            (names::OPERATOR_GROUP.to_owned(), "og".to_owned()),
            (names::OPERATOR_NAMESPACE.to_owned(), "ns".to_owned()),
            (names::TARGET_NAMESPACES.to_owned(), "ns".to_owned()),
        ]
        .into(),
        ..Deployment::default()
    }
}

impl Scenario {
    pub(super) fn at(phase: CsvPhase, reason: CsvReason, message: &str) -> Self {
        let object = Object::from_value(json!({
            "apiVersion": "operators.coreos.com/v1alpha1", "kind": "ClusterServiceVersion",
            "metadata": {
                "name": "a.v2", "namespace": "ns", "uid": "me",
                "finalizers": [names::CSV_CLEANUP_FINALIZER],
                "annotations": {
                    names::OPERATOR_GROUP: "og", names::OPERATOR_NAMESPACE: "ns",
                    names::TARGET_NAMESPACES: "ns",
                },
            },
            "spec": {
                "displayName": "A", "replaces": "a.v1",
                "install": {"strategy": "deployment", "spec": {"deployments": [{"name": "d", "spec": {}}]}},
                "customresourcedefinitions": {"owned": [{"name": "as.g", "version": "v1", "kind": "A"}]},
            },
        }))
        .unwrap();
        let mut csv = ClusterServiceVersion::from_object(&object).unwrap();
        csv.spec.install_modes =
            vec![InstallMode { kind: InstallModeType::OwnNamespace, supported: true }];
        csv.status.phase = phase;
        csv.status.reason = reason;
        csv.status.message = message.to_owned();
        csv.status.last_transition_time = Some(time(0));
        let crd = Crd {
            uid: "crd".into(),
            versions: vec![("v1".into(), true)],
            established: true,
            ..Crd::default()
        };
        let observed = ObservedRequirements {
            crds: [("as.g".to_owned(), Arc::new(crd))].into(),
            ..ObservedRequirements::default()
        };
        csv.status.requirement_status = requirements::check(&csv, &observed).1;
        Self {
            csv,
            groups: vec![group("ns", &["ns"], "A.v1.g")],
            other_groups: Vec::new(),
            observed,
            deployments: [("d".to_owned(), Arc::new(deployment()))].into(),
        }
    }

    pub(super) fn with(mut self, change: impl FnOnce(&mut Self)) -> Self {
        change(&mut self);
        self
    }

    pub(super) fn sibling(&mut self, name: &str, replaces: &str, phase: CsvPhase) {
        let sibling = Csv { replaces: replaces.into(), phase, ..Csv::default() };
        self.observed.siblings.insert(name.to_owned(), Arc::new(sibling));
    }

    pub(super) fn with_deployment(&mut self, change: impl FnOnce(&mut Deployment)) {
        let mut changed = deployment();
        change(&mut changed);
        self.deployments.insert("d".to_owned(), Arc::new(changed));
    }

    pub(super) fn decide_at(&self, now: i64) -> Decision {
        let targets: Option<&[String]> =
            self.groups.first().map(|group| group.spec.target_namespaces.as_slice());
        decide(&PhaseInput {
            csv: &self.csv,
            groups: &self.groups,
            targets,
            other_groups: &self.other_groups,
            observed: &self.observed,
            expected: &[ExpectedDeployment { name: "d".into(), spec_hash: "h".into() }],
            deployments: &self.deployments,
            provides: &[Api { group: "g".into(), version: "v1".into(), kind: "A".into() }].into(),
            now: time(now),
            install_timeout: Duration::from_mins(5),
        })
    }
}

pub(super) fn time(second: i64) -> Time {
    Time::new(jiff::Timestamp::from_second(second).unwrap())
}

/// `phase/reason message` of a transition, or the name of another decision.
pub(super) fn decision_text(decision: &Decision) -> String {
    let transition_text = |transition: &Transition| {
        format!("{}/{} {}", transition.phase, transition.reason, transition.message)
    };
    match decision {
        Decision::Transition(transition) => transition_text(transition),
        Decision::Withdraw(transition) => format!("withdraw, {}", transition_text(transition)),
        Decision::Install(_) => "install".to_owned(),
        Decision::Claim(what) => format!("claim {}", what.len()),
        Decision::Provide(text) => format!("provide {text}"),
        other => format!("{other:?}").to_lowercase(),
    }
}

pub(super) fn pending() -> Scenario {
    Scenario::at(CsvPhase::Pending, CsvReason::RequirementsUnknown, "requirements not yet checked")
}

pub(super) fn installing() -> Scenario {
    Scenario::at(
        CsvPhase::Installing,
        CsvReason::InstallSuccessful,
        "waiting for install components to report healthy",
    )
}

pub(super) fn succeeded() -> Scenario {
    Scenario::at(
        CsvPhase::Succeeded,
        CsvReason::InstallSuccessful,
        "install strategy completed with no errors",
    )
}

pub(super) fn failed(reason: CsvReason) -> Scenario {
    Scenario::at(CsvPhase::Failed, reason, "whatever")
}
