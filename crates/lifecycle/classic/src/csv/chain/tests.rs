use super::*;
use crate::csv::phase::Decision;
use crate::csv::scenario::{Stage, broken, pending, told};
use crate::fields::Csv;
use serde_json::json;

#[test]
fn a_replaced_version_goes_when_it_is_the_oldest_and_its_successor_runs() {
    let replacing = || Stage::at(CsvPhase::Replacing, CsvReason::BeingReplaced, "x");
    for (stage, wanted) in [
        (
            replacing().with(|stage| stage.peer("a.v3", "a.v2", CsvPhase::Succeeded)),
            "Deleting/Replaced has been replaced by a newer ClusterServiceVersion that has successfully installed.",
        ),
        (replacing().with(|stage| stage.peer("a.v3", "a.v2", CsvPhase::Installing)), "rest"),
        (
            replacing().with(|stage| {
                stage.peer("a.v3", "a.v2", CsvPhase::Succeeded);
                stage.peer("a.v1", "", CsvPhase::Replacing);
            }),
            "rest",
        ),
        // The successor was deleted by hand.
        (replacing(), "Pending/RequirementsUnknown requirements not yet checked"),
        (Stage::at(CsvPhase::Deleting, CsvReason::Replaced, ""), "delete"),
    ] {
        // shows C21 C22
        assert_eq!(told(&stage.decide_at(1)), wanted);
    }
}

#[test]
fn a_version_whose_accounts_its_successor_has_taken_steps_aside() {
    let mut stage = pending();
    let permissions = json!([{"serviceAccountName": "sa", "rules": []}]);
    stage.csv.spec.install.spec.permissions = serde_json::from_value(permissions).unwrap();
    let wanted = "Pending/RequirementsNotMet one or more requirements couldn't be found";
    assert_eq!(told(&stage.decide_at(1)), wanted);
    stage.peer("a.v3", "a.v2", CsvPhase::Pending);
    let wanted = "Replacing/BeingReplaced being replaced by csv: a.v3";
    assert_eq!(told(&stage.decide_at(1)), wanted);
    // What else it lacks, its successor may lack as well: people have to see it.
    stage.seen.crds.clear();
    let wanted = "Pending/RequirementsNotMet one or more requirements couldn't be found";
    assert_eq!(told(&stage.decide_at(1)), wanted);
}

fn forward(stage: &mut Stage) {
    Arc::make_mut(&mut stage.groups[0]).spec.upgrade_strategy = UpgradeStrategy::FailForward;
}

fn replacing_stage() -> Stage {
    Stage::at(CsvPhase::Replacing, CsvReason::BeingReplaced, "x")
}

#[test]
fn with_leave_to_go_past_failures_a_failed_version_is_replaced_by_the_newest_of_its_chain() {
    let forward_to_three = "Replacing/BeingReplaced Fail Forward is enabled, allowing Failed csv to be replaced by csv: a.v3";
    let deleting = "Deleting/Replaced has been replaced by a newer ClusterServiceVersion that has successfully installed.";
    let again = "Pending/NeedsReinstall installing: missing deployment with name=d";
    let failed = || broken(CsvReason::ComponentUnhealthy).with(|stage| stage.deployments.clear());
    let chain = |three: CsvPhase, four: CsvPhase| {
        move |stage: &mut Stage| {
            stage.peer("a.v3", "a.v2", three);
            stage.peer("a.v4", "a.v3", four);
        }
    };
    let rows = vec![
        // Failed, with a successor.
        (
            failed().with(forward).with(|stage| stage.peer("a.v3", "a.v2", CsvPhase::Pending)),
            forward_to_three,
        ),
        // Failed, at the head of a chain.
        (failed().with(forward).with(chain(CsvPhase::Failed, CsvPhase::Pending)), forward_to_three),
        // Failed, and nobody follows.
        (failed().with(forward), again),
        // Without leave it stays and is mended.
        (failed().with(|stage| stage.peer("a.v3", "a.v2", CsvPhase::Pending)), again),
        // The newest of the chain runs, though the next one never did.
        (
            replacing_stage().with(forward).with(chain(CsvPhase::Replacing, CsvPhase::Succeeded)),
            deleting,
        ),
        (
            replacing_stage().with(forward).with(chain(CsvPhase::Replacing, CsvPhase::Pending)),
            "rest",
        ),
        // The next one was replaced before anybody saw it run.
        (replacing_stage().with(chain(CsvPhase::Replacing, CsvPhase::Succeeded)), deleting),
        (replacing_stage().with(chain(CsvPhase::Replacing, CsvPhase::Pending)), "rest"),
        (replacing_stage().with(chain(CsvPhase::Failed, CsvPhase::Succeeded)), "rest"),
        // The end of a chain with a hole waits for what is before it.
        (
            replacing_stage()
                .with(forward)
                .with(chain(CsvPhase::Replacing, CsvPhase::Succeeded))
                .with(|stage| {
                    stage.peer("a.v1", "", CsvPhase::Replacing);
                }),
            "rest",
        ),
    ];
    for (stage, wanted) in rows {
        // shows C25
        assert_eq!(told(&stage.decide_at(1)), wanted);
    }
}

#[test]
fn versions_that_replace_themselves_or_one_another_in_a_circle_end_nowhere_else() {
    let own = |stage: &mut Stage| stage.csv.spec.replaces = "a.v2".into();
    let again = "Pending/NeedsReinstall installing: missing deployment with name=d";
    let failed = broken(CsvReason::ComponentUnhealthy).with(|stage| stage.deployments.clear());
    // shows C25
    assert_eq!(told(&failed.with(forward).with(own).decide_at(1)), again);
    let ready = "InstallReady/AllRequirementsMet all requirements found, attempting install";
    assert_eq!(told(&pending().with(forward).with(own).decide_at(1)), ready);
    let circle = |stage: &mut Stage| {
        stage.csv.spec.replaces = "a.v3".into();
        stage.peer("a.v3", "a.v2", CsvPhase::Replacing);
    };
    assert_eq!(replacing_stage().with(forward).with(circle).decide_at(1), Decision::Rest);
    assert_eq!(told(&pending().with(circle).decide_at(1)), ready);
}

#[test]
fn only_who_is_outside_of_the_chain_is_in_the_way() {
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
        let mut stage = pending();
        stage.seen.peers.insert(name.into(), owner(replaces));
        assert_eq!(told(&stage.decide_at(1)), wanted, "{name}");
    }
    // The whole chain counts, not only its neighbours.
    let mut stage = pending();
    for (name, replaces) in [("a.v0", ""), ("a.v1", "a.v0"), ("a.v3", "a.v2"), ("a.v4", "a.v3")] {
        stage.seen.peers.insert(name.into(), owner(replaces));
    }
    assert_eq!(told(&stage.decide_at(1)), ready);
}
