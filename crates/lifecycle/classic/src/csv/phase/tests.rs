#![expect(clippy::large_stack_arrays, reason = "tables of whole worlds, in tests only")]
use super::*;
use crate::csv::scenario::{
    Scenario, decision_text, failed, group, installing, pending, succeeded,
};
use crate::fields::{Csv, Deployment};
use mainstay_api::{DeploymentPermissions, InstallMode, InstallModeType};
use serde_json::json;

#[test]
fn operator_group_checks_come_before_the_phase() {
    let new = || Scenario::at(CsvPhase::None, CsvReason::default(), "");
    let claim: fn(&mut Scenario) = |scenario| scenario.csv.metadata.finalizers.clear();
    for (scenario, wanted) in [
        (new(), "Pending/RequirementsUnknown requirements not yet checked"),
        (new().with(claim), "claim 3"),
        (
            new().with(|scenario| {
                claim(scenario);
                scenario.groups.clear();
            }),
            "claim 0",
        ),
        (
            new().with(|scenario| scenario.groups.clear()),
            "Failed/NoOperatorGroup csv in namespace with no operatorgroups",
        ),
        (
            new().with(|scenario| scenario.groups.push(group("ns", &["ns"], ""))),
            "Failed/TooManyOperatorGroups csv created in namespace with multiple operatorgroups, can't pick one automatically",
        ),
        (new().with(|scenario| scenario.csv.metadata.annotations.clear()), "claim 3"),
        // The status of the OperatorGroup is behind its spec.
        (
            new().with(|scenario| Arc::make_mut(&mut scenario.groups[0]).status.namespaces.clear()),
            "rest",
        ),
        (
            new().with(|scenario| {
                scenario.groups = vec![group("ns", &[], "")];
                scenario.csv.metadata.annotations.remove(names::TARGET_NAMESPACES);
            }),
            "Failed/NoTargetNamespaces no targetNamespaces are matched operatorgroups namespace selection",
        ),
        (
            new().with(|scenario| scenario.csv.spec.install_modes.clear()),
            "Failed/UnsupportedOperatorGroup OwnNamespace InstallModeType not supported, cannot configure to watch own namespace",
        ),
        (
            new().with(|scenario| {
                let twice = scenario.csv.spec.install_modes[0].clone();
                scenario.csv.spec.install_modes.push(twice);
            }),
            "Failed/InvalidInstallModes InstallMode list contains duplicates, cannot make set: [{OwnNamespace true} {OwnNamespace true}]",
        ),
        (
            new().with(|scenario| scenario.groups = vec![group("ns", &["ns"], "B.v1.g")]),
            "provide A.v1.g,B.v1.g",
        ),
        (
            new().with(|scenario| {
                scenario.groups = vec![group("ns", &["ns"], "")];
                scenario.other_groups = vec![group("other", &[""], "A.v1.g")];
            }),
            "withdraw, Failed/InterOperatorGroupOwnerConflict intersecting operatorgroups provide the same apis",
        ),
        (
            new().with(|scenario| {
                scenario.groups = vec![group("ns", &["ns"], "")];
                Arc::make_mut(&mut scenario.groups[0]).spec.static_provided_apis = true;
            }),
            "withdraw, Failed/CannotModifyStaticOperatorGroupProvidedAPIs static provided api operatorgroup cannot be modified by these apis",
        ),
    ] {
        // shows CSV-21
        assert_eq!(decision_text(&scenario.decide_at(1)), wanted);
    }
    // The requirements are not checked before the OperatorGroup.
    let lacking: fn(&mut Scenario) = |scenario| scenario.observed.crds.clear();
    let required: fn(&mut Scenario) = |scenario| {
        let api = json!([{"group": "gone", "version": "v1", "kind": "G", "name": "gs"}]);
        scenario.csv.spec.api_service_definitions.required = serde_json::from_value(api).unwrap();
    };
    for change in [lacking, required] {
        let begun = "Pending/RequirementsUnknown requirements not yet checked";
        // shows C01
        assert_eq!(decision_text(&new().with(change).decide_at(1)), begun);
        let waits = "Pending/RequirementsNotMet one or more requirements couldn't be found";
        // shows C03
        assert_eq!(decision_text(&pending().with(change).decide_at(1)), waits);
    }
}

#[test]
fn operator_groups_are_checked_for_a_running_csv_as_for_a_new_one() {
    for (change, wanted) in [
        (
            (|scenario| scenario.groups.clear()) as fn(&mut Scenario),
            "Failed/NoOperatorGroup csv in namespace with no operatorgroups",
        ),
        (
            |scenario| scenario.groups.push(group("ns", &["ns"], "")),
            "Failed/TooManyOperatorGroups csv created in namespace with multiple operatorgroups, can't pick one automatically",
        ),
    ] {
        // shows C14 CSV-12
        assert_eq!(decision_text(&succeeded().with(change).decide_at(1)), wanted);
    }
    let without = succeeded().with(|scenario| scenario.csv.spec.install_modes.clear());
    let wanted = "Failed/UnsupportedOperatorGroup OwnNamespace InstallModeType not supported, cannot configure to watch own namespace";
    // shows C13 CSV-12 CSV-21 OG-61
    assert_eq!(decision_text(&without.decide_at(1)), wanted);
}

#[test]
fn a_pending_csv_waits_for_requirements_conflicts_and_its_predecessor() {
    for (scenario, wanted) in [
        (pending(), "InstallReady/AllRequirementsMet all requirements found, attempting install"),
        (
            pending().with(|scenario| scenario.observed.crds.clear()),
            "Pending/RequirementsNotMet one or more requirements couldn't be found",
        ),
        (
            pending().with(|scenario| {
                scenario.observed.siblings.insert(
                    "b.v1".into(),
                    Arc::new(Csv { owned_crds: vec!["as.g".into()], ..Csv::default() }),
                );
            }),
            "Failed/OwnerConflict conflicting CRD owner in namespace",
        ),
        (
            pending().with(|scenario| scenario.sibling("a.v1", "", CsvPhase::Succeeded)),
            "Pending/AllRequirementsMet all requirements found, waiting for a.v1 to be replaced",
        ),
        (
            pending().with(|scenario| scenario.sibling("a.v1", "", CsvPhase::Failed)),
            "Pending/AllRequirementsMet all requirements found, waiting for a.v1 to be replaced",
        ),
        (
            pending().with(|scenario| scenario.sibling("a.v1", "", CsvPhase::Replacing)),
            "InstallReady/AllRequirementsMet all requirements found, attempting install",
        ),
        (
            pending().with(|scenario| scenario.csv.spec.install.strategy = "helm".into()),
            "Failed/InvalidInstallStrategy install strategy invalid: unrecognized install strategy",
        ),
        (Scenario::at(CsvPhase::InstallReady, CsvReason::AllRequirementsMet, ""), "install"),
    ] {
        // shows C03 C04 C07 C20 CSV-14
        assert_eq!(decision_text(&scenario.decide_at(1)), wanted);
    }
}

#[test]
fn an_installing_csv_waits_five_minutes_for_its_deployments() {
    let waiting = "waiting for deployment d to become ready: deployment \"d\" not available: no";
    let unready: fn(&mut Deployment) =
        |deployment| deployment.available = Some(("False".into(), "no".into()));
    for (scenario, now, wanted) in [
        (installing(), 1, "Succeeded/InstallSucceeded install strategy completed with no errors".to_owned()),
        (
            installing().with(|scenario| scenario.with_deployment(unready)),
            1,
            format!("Installing/InstallWaiting installing: {waiting}"),
        ),
        (
            Scenario::at(CsvPhase::Installing, CsvReason::Waiting, &format!("installing: {waiting}"))
                .with(|scenario| scenario.with_deployment(unready)),
            100,
            "wait(200s)".to_owned(),
        ),
        (
            installing().with(|scenario| scenario.with_deployment(unready)),
            300,
            "Failed/InstallCheckFailed install timeout".to_owned(),
        ),
        (
            installing().with(|scenario| scenario.with_deployment(|deployment| deployment.spec_hash = Some("x".into()))),
            1,
            "InstallReady/InstallWaiting installing: deployment changed old hash=x, new hash=h".to_owned(),
        ),
        (
            installing().with(|scenario| scenario.deployments.clear()),
            1,
            "Installing/InstallWaiting installing: missing deployment with name=d".to_owned(),
        ),
        // A predecessor that was created later took the Deployment, and is `Replacing` since.
        (
            installing().with(|scenario| {
                scenario.deployments.clear();
                scenario.csv.spec.replaces = "a.v1".into();
                scenario.sibling("a.v1", "", CsvPhase::Replacing);
            }),
            1,
            "InstallReady/InstallWaiting installing: missing deployment with name=d".to_owned(),
        ),
        (
            installing().with(|scenario| scenario.with_deployment(|deployment| deployment.progressing = Some("ProgressDeadlineExceeded".into()))),
            1,
            "Failed/InstallCheckFailed install failed: deployment d not ready before timeout: deployment \"d\" exceeded its progress deadline".to_owned(),
        ),
    ] {
        // shows C08
        assert_eq!(decision_text(&scenario.decide_at(now)), wanted);
    }
}

#[test]
fn a_running_csv_fails_when_requirements_or_deployments_are_lost() {
    for (scenario, wanted) in [
        (succeeded(), "running"),
        (
            succeeded().with(|scenario| scenario.sibling("a.v3", "a.v2", CsvPhase::Pending)),
            "Replacing/BeingReplaced being replaced by csv: a.v3",
        ),
        (
            succeeded().with(|scenario| scenario.observed.crds.clear()),
            "Failed/RequirementsNotMet requirements no longer met",
        ),
        // A rollout that keeps the Deployment available changes nothing.
        (
            succeeded().with(|scenario| {
                scenario.with_deployment(|deployment| deployment.replicas = (2, 1));
            }),
            "rest",
        ),
        (
            succeeded().with(|scenario| scenario.deployments.clear()),
            "Failed/ComponentUnhealthy installing: missing deployment with name=d",
        ),
        (
            succeeded().with(|scenario| {
                scenario.with_deployment(|deployment| deployment.spec_hash = Some("x".into()));
            }),
            "InstallReady/ComponentUnhealthy installing: deployment changed old hash=x, new hash=h",
        ),
    ] {
        // shows C18 C19 C20
        assert_eq!(decision_text(&scenario.decide_at(1)), wanted);
    }
}

#[test]
fn a_failed_csv_recovers_when_its_reason_is_gone() {
    let modes = "Pending/RequirementsUnknown InstallModes now support target namespaces";
    let unready: fn(&mut Deployment) = |deployment| deployment.available = None;
    for (scenario, wanted) in [
        (failed(CsvReason::NoOperatorGroup), modes),
        (failed(CsvReason::TooManyOperatorGroups), modes),
        (failed(CsvReason::UnsupportedOperatorGroup), modes),
        (failed(CsvReason::NoTargetNamespaces), modes),
        (
            failed(CsvReason::InterOperatorGroupOwnerConflict),
            "Pending/RequirementsUnknown OperatorGroup no longer intersecting with conflicting owner",
        ),
        (
            failed(CsvReason::RequirementsNotMet).with(|scenario| scenario.observed.crds.clear()),
            "Pending/RequirementsNotMet requirements not met",
        ),
        (
            failed(CsvReason::RequirementsNotMet),
            "Succeeded/InstallSucceeded install strategy completed with no errors",
        ),
        (
            failed(CsvReason::ComponentUnhealthy).with(|scenario| scenario.deployments.clear()),
            "Pending/NeedsReinstall installing: missing deployment with name=d",
        ),
        (
            failed(CsvReason::InstallCheckFailed)
                .with(|scenario| scenario.with_deployment(unready)),
            "rest",
        ),
        (
            failed(CsvReason::InstallCheckFailed).with(|scenario| scenario.deployments.clear()),
            "Pending/NeedsReinstall installing: missing deployment with name=d",
        ),
        // The Deployment has another spec hash.
        (
            failed(CsvReason::InstallCheckFailed).with(|scenario| {
                scenario.with_deployment(|deployment| deployment.spec_hash = Some("x".into()));
            }),
            "InstallReady/NeedsReinstall installing: deployment changed old hash=x, new hash=h",
        ),
        (
            failed(CsvReason::ComponentFailed).with(|scenario| scenario.deployments.clear()),
            "install",
        ),
        (
            failed(CsvReason::OwnerConflict).with(|scenario| {
                scenario.observed.siblings.insert(
                    "b.v1".into(),
                    Arc::new(Csv { owned_crds: vec!["as.g".into()], ..Csv::default() }),
                );
            }),
            "rest",
        ),
        (
            failed(CsvReason::ComponentUnhealthy).with(|scenario| {
                Arc::make_mut(&mut scenario.groups[0]).spec.upgrade_strategy =
                    UpgradeStrategy::FailForward;
                scenario.sibling("a.v3", "a.v2", CsvPhase::Pending);
            }),
            "Replacing/BeingReplaced Fail Forward is enabled, allowing Failed csv to be replaced by csv: a.v3",
        ),
    ] {
        // shows C05 C06 C12 CSV-13
        assert_eq!(decision_text(&scenario.decide_at(1)), wanted);
    }
}

#[test]
fn a_running_csv_follows_its_operator_group_to_other_supported_namespaces() {
    let multi = InstallMode { kind: InstallModeType::MultiNamespace, supported: true };
    let mut moved = succeeded().with(|scenario| {
        scenario.groups = vec![group("ns", &["ns", "other"], "A.v1.g")];
        scenario.csv.spec.install_modes.push(multi);
    });
    assert_eq!(decision_text(&moved.decide_at(1)), "claim 3");
    let targets = || "ns,other".to_owned();
    moved.csv.metadata.annotations.insert(names::TARGET_NAMESPACES.into(), targets());
    let wanted = "InstallReady/ComponentUnhealthy installing: unexpected annotation on deployment. Expected olm.targetNamespaces:ns,other, found olm.targetNamespaces:ns";
    assert_eq!(decision_text(&moved.decide_at(1)), wanted);
    moved.with_deployment(|deployment| {
        deployment.template_annotations.insert(names::TARGET_NAMESPACES.into(), targets());
    });
    // shows C15
    assert_eq!(moved.decide_at(1), Decision::Running);
}

/// A change to a Deployment by another client.
type Damage = fn(&mut Deployment);

#[test]
fn deployments_without_annotations_or_spec_hash_are_installed_again() {
    let key = names::OPERATOR_GROUP;
    let changes: [(Damage, String); 4] = [
        (
            |deployment| deployment.template_annotations.clear(),
            "no annotations found on deployment".into(),
        ),
        (
            |deployment| {
                deployment.template_annotations.remove(names::OPERATOR_GROUP);
            },
            format!("annotations on deployment does not contain expected key: {key}"),
        ),
        (
            |deployment| {
                deployment.template_annotations.insert(names::OPERATOR_GROUP.into(), "x".into());
            },
            format!("unexpected annotation on deployment. Expected {key}:og, found {key}:x"),
        ),
        (
            |deployment| deployment.spec_hash = None,
            "deployment d doesn't have a spec hash, update it".into(),
        ),
    ];
    for (change, why) in changes {
        for (scenario, reason) in
            [(installing(), "InstallWaiting"), (succeeded(), "ComponentUnhealthy")]
        {
            let scenario = scenario.with(|scenario| scenario.with_deployment(change));
            let wanted = format!("InstallReady/{reason} installing: {why}");
            // shows C17
            assert_eq!(decision_text(&scenario.decide_at(1)), wanted);
        }
    }
}

#[test]
fn apis_of_a_csv_are_added_to_its_operator_group_removed_or_conflict() {
    let new = || Scenario::at(CsvPhase::None, CsvReason::default(), "");
    let rival =
        |scenario: &mut Scenario| scenario.other_groups = vec![group("other", &["ns"], "A.v1.g")];
    let own = |apis: &'static str| {
        move |scenario: &mut Scenario| scenario.groups = vec![group("ns", &["ns"], apis)]
    };
    let conflict = "withdraw, Failed/InterOperatorGroupOwnerConflict intersecting operatorgroups provide the same apis";
    for phase in [CsvPhase::None, CsvPhase::Pending, CsvPhase::Succeeded, CsvPhase::Failed] {
        let at = |change: &dyn Fn(&mut Scenario)| {
            let mut scenario = new();
            scenario.csv.status.phase = phase.clone();
            change(&mut scenario);
            decision_text(&scenario.decide_at(1))
        };
        // shows C23
        assert_eq!(at(&own("")), "provide A.v1.g");
        assert_eq!(at(&own("B.v1.g")), "provide A.v1.g,B.v1.g");
        let both = |apis| {
            move |scenario: &mut Scenario| {
                own(apis)(scenario);
                rival(scenario);
            }
        };
        // shows C23
        assert_eq!(at(&both("B.v1.g")), conflict);
        // This group and another one have the APIs: this one gives them up, and the next
        // reconciliation reports the conflict.
        assert_eq!(at(&both("A.v1.g,B.v1.g")), "provide B.v1.g");
        // shows C23
        assert_eq!(at(&both("A.v1.g")), "provide ");
        // Static APIs are neither added nor removed.
        let cannot = "withdraw, Failed/CannotModifyStaticOperatorGroupProvidedAPIs static provided api operatorgroup cannot be modified by these apis";
        for taken in [false, true] {
            let change = |scenario: &mut Scenario| {
                own(if taken { "A.v1.g" } else { "B.v1.g" })(scenario);
                Arc::make_mut(&mut scenario.groups[0]).spec.static_provided_apis = true;
                if taken {
                    rival(scenario);
                }
            };
            // shows C24
            assert_eq!(at(&change), cannot);
        }
    }
    let fixed = new().with(|scenario| {
        own("A.v1.g,B.v1.g")(scenario);
        Arc::make_mut(&mut scenario.groups[0]).spec.static_provided_apis = true;
    });
    // shows C24
    assert_eq!(
        decision_text(&fixed.decide_at(1)),
        "Pending/RequirementsUnknown requirements not yet checked"
    );
    // A group that does not intersect causes no conflict.
    let far =
        new().with(|scenario| scenario.other_groups = vec![group("other", &["far"], "A.v1.g")]);
    assert_eq!(
        decision_text(&far.decide_at(1)),
        "Pending/RequirementsUnknown requirements not yet checked"
    );
    // Reported already, and without Deployments.
    let message = "intersecting operatorgroups provide the same apis";
    let told_already =
        Scenario::at(CsvPhase::Failed, CsvReason::InterOperatorGroupOwnerConflict, message).with(
            |scenario| {
                own("")(scenario);
                rival(scenario);
                scenario.deployments.clear();
            },
        );
    assert_eq!(told_already.decide_at(1), Decision::Rest);
}

#[test]
fn invalid_rules_make_the_install_strategy_invalid() {
    let both = json!([{
        "verbs": ["*"], "apiGroups": [""], "resources": ["pods"], "nonResourceURLs": ["/osb"],
    }]);
    let verbless = json!([{"apiGroups": [""], "resources": ["pods"]}]);
    let cannot = "install strategy invalid: rule invalid: rule cannot apply to both regular resources and non-resource URLs";
    let none = "install strategy invalid: rule invalid: policy rule must have at least one verb";
    for (rules, why) in [(both, cannot), (verbless, none)] {
        for cluster in [false, true] {
            let permissions = json!([{"serviceAccountName": "sa", "rules": rules}]);
            let permissions: Vec<DeploymentPermissions> =
                serde_json::from_value(permissions).unwrap();
            let given = |scenario: Scenario| {
                scenario.with(|scenario| {
                    let spec = &mut scenario.csv.spec.install.spec;
                    if cluster {
                        spec.cluster_permissions.clone_from(&permissions);
                    } else {
                        spec.permissions.clone_from(&permissions);
                    }
                })
            };
            let account = |scenario: &mut Scenario| {
                scenario.observed.accounts.insert("sa".into(), Arc::default());
            };
            let wanted = format!("Failed/InvalidInstallStrategy {why}");
            for scenario in [pending(), succeeded(), failed(CsvReason::ComponentUnhealthy)] {
                // shows C02
                assert_eq!(decision_text(&given(scenario).with(account).decide_at(1)), wanted);
            }
            // Reported once, until the CSV changes.
            let failed = Scenario::at(CsvPhase::Failed, CsvReason::InvalidStrategy, why);
            assert_eq!(given(failed).with(account).decide_at(1), Decision::Rest);
            // The rules of a missing ServiceAccount are not checked.
            let wanted = "Pending/RequirementsNotMet one or more requirements couldn't be found";
            assert_eq!(decision_text(&given(pending()).decide_at(1)), wanted);
        }
    }
}
