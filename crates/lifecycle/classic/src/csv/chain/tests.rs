use super::*;
use crate::csv::phase::Decision;
use crate::csv::scenario::{Scenario, decision_text, failed, pending};
use crate::fields::Csv;
use serde_json::json;

#[test]
fn a_replaced_csv_is_deleted_when_it_is_the_oldest_and_its_successor_runs() {
    let replacing = || Scenario::at(CsvPhase::Replacing, CsvReason::BeingReplaced, "x");
    for (scenario, wanted) in [
        (
            replacing().with(|scenario| scenario.sibling("a.v3", "a.v2", CsvPhase::Succeeded)),
            "Deleting/Replaced has been replaced by a newer ClusterServiceVersion that has successfully installed.",
        ),
        (
            replacing().with(|scenario| scenario.sibling("a.v3", "a.v2", CsvPhase::Installing)),
            "rest",
        ),
        (
            replacing().with(|scenario| {
                scenario.sibling("a.v3", "a.v2", CsvPhase::Succeeded);
                scenario.sibling("a.v1", "", CsvPhase::Replacing);
            }),
            "rest",
        ),
        // The successor was deleted by hand.
        (replacing(), "Pending/RequirementsUnknown requirements not yet checked"),
        (Scenario::at(CsvPhase::Deleting, CsvReason::Replaced, ""), "delete"),
    ] {
        // shows C21 C22
        assert_eq!(decision_text(&scenario.decide_at(1)), wanted);
    }
}

#[test]
fn a_csv_is_replaced_when_its_successor_owns_its_service_accounts() {
    let mut scenario = pending();
    let permissions = json!([{"serviceAccountName": "sa", "rules": []}]);
    scenario.csv.spec.install.spec.permissions = serde_json::from_value(permissions).unwrap();
    let wanted = "Pending/RequirementsNotMet one or more requirements couldn't be found";
    assert_eq!(decision_text(&scenario.decide_at(1)), wanted);
    scenario.sibling("a.v3", "a.v2", CsvPhase::Pending);
    let wanted = "Replacing/BeingReplaced being replaced by csv: a.v3";
    assert_eq!(decision_text(&scenario.decide_at(1)), wanted);
    // The successor may lack other requirements too, so they are reported.
    scenario.observed.crds.clear();
    let wanted = "Pending/RequirementsNotMet one or more requirements couldn't be found";
    assert_eq!(decision_text(&scenario.decide_at(1)), wanted);
}

fn forward(scenario: &mut Scenario) {
    Arc::make_mut(&mut scenario.groups[0]).spec.upgrade_strategy = UpgradeStrategy::FailForward;
}

fn replacing_scenario() -> Scenario {
    Scenario::at(CsvPhase::Replacing, CsvReason::BeingReplaced, "x")
}

#[test]
fn with_fail_forward_a_failed_csv_is_replaced_by_the_newest_of_its_chain() {
    let forward_to_three = "Replacing/BeingReplaced Fail Forward is enabled, allowing Failed csv to be replaced by csv: a.v3";
    let deleting = "Deleting/Replaced has been replaced by a newer ClusterServiceVersion that has successfully installed.";
    let again = "Pending/NeedsReinstall installing: missing deployment with name=d";
    let failed =
        || failed(CsvReason::ComponentUnhealthy).with(|scenario| scenario.deployments.clear());
    let chain = |three: CsvPhase, four: CsvPhase| {
        move |scenario: &mut Scenario| {
            scenario.sibling("a.v3", "a.v2", three);
            scenario.sibling("a.v4", "a.v3", four);
        }
    };
    let rows = vec![
        // Failed, with a successor.
        (
            failed()
                .with(forward)
                .with(|scenario| scenario.sibling("a.v3", "a.v2", CsvPhase::Pending)),
            forward_to_three,
        ),
        // Failed, at the head of a chain.
        (failed().with(forward).with(chain(CsvPhase::Failed, CsvPhase::Pending)), forward_to_three),
        // Failed, without a successor.
        (failed().with(forward), again),
        // Without fail-forward upgrades, the CSV stays and is installed again.
        (failed().with(|scenario| scenario.sibling("a.v3", "a.v2", CsvPhase::Pending)), again),
        // The newest CSV of the chain runs, although the next one never did.
        (
            replacing_scenario()
                .with(forward)
                .with(chain(CsvPhase::Replacing, CsvPhase::Succeeded)),
            deleting,
        ),
        (
            replacing_scenario().with(forward).with(chain(CsvPhase::Replacing, CsvPhase::Pending)),
            "rest",
        ),
        // The next CSV was replaced before it was seen running.
        (replacing_scenario().with(chain(CsvPhase::Replacing, CsvPhase::Succeeded)), deleting),
        (replacing_scenario().with(chain(CsvPhase::Replacing, CsvPhase::Pending)), "rest"),
        (replacing_scenario().with(chain(CsvPhase::Failed, CsvPhase::Succeeded)), "rest"),
        // The end of a chain with a gap waits for its predecessor.
        (
            replacing_scenario()
                .with(forward)
                .with(chain(CsvPhase::Replacing, CsvPhase::Succeeded))
                .with(|scenario| {
                    scenario.sibling("a.v1", "", CsvPhase::Replacing);
                }),
            "rest",
        ),
    ];
    for (scenario, wanted) in rows {
        // shows C25
        assert_eq!(decision_text(&scenario.decide_at(1)), wanted);
    }
}

#[test]
fn csvs_that_replace_themselves_or_each_other_are_decided_without_an_endless_loop() {
    let own = |scenario: &mut Scenario| scenario.csv.spec.replaces = "a.v2".into();
    let again = "Pending/NeedsReinstall installing: missing deployment with name=d";
    let failed =
        failed(CsvReason::ComponentUnhealthy).with(|scenario| scenario.deployments.clear());
    // shows C25
    assert_eq!(decision_text(&failed.with(forward).with(own).decide_at(1)), again);
    let ready = "InstallReady/AllRequirementsMet all requirements found, attempting install";
    assert_eq!(decision_text(&pending().with(forward).with(own).decide_at(1)), ready);
    let circle = |scenario: &mut Scenario| {
        scenario.csv.spec.replaces = "a.v3".into();
        scenario.sibling("a.v3", "a.v2", CsvPhase::Replacing);
    };
    assert_eq!(replacing_scenario().with(forward).with(circle).decide_at(1), Decision::Rest);
    assert_eq!(decision_text(&pending().with(circle).decide_at(1)), ready);
}

#[test]
fn only_a_csv_outside_of_the_chain_is_an_owner_conflict() {
    let owner = |replaces: &str| {
        Arc::new(Csv {
            replaces: replaces.into(),
            phase: CsvPhase::Replacing,
            owned_crds: vec!["as.g".into()],
            ..Csv::default()
        })
    };
    let ready = "InstallReady/AllRequirementsMet all requirements found, attempting install";
    let conflict = "Failed/OwnerConflict conflicting CRD owner in namespace";
    for (name, replaces, wanted) in [
        ("a.v1", "", ready),
        ("a.v3", "a.v2", ready),
        ("b.v1", "", conflict),
        ("b.v1", "b.v0", conflict),
    ] {
        let mut scenario = pending();
        scenario.observed.siblings.insert(name.into(), owner(replaces));
        assert_eq!(decision_text(&scenario.decide_at(1)), wanted, "{name}");
    }
    // The whole chain counts, not only the direct neighbours.
    let mut scenario = pending();
    for (name, replaces) in [("a.v0", ""), ("a.v1", "a.v0"), ("a.v3", "a.v2"), ("a.v4", "a.v3")] {
        scenario.observed.siblings.insert(name.into(), owner(replaces));
    }
    assert_eq!(decision_text(&scenario.decide_at(1)), ready);
}
