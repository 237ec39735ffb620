//! Recorded states of real clusters: what does not run is explained, and what runs is not.

use mainstay_explain::{Kind, Target, World, explain};
use mainstay_object::Object;
use serde_json::Value;
use std::path::{Path, PathBuf};

fn states(folder: &Path) -> Vec<PathBuf> {
    let mut all: Vec<PathBuf> = std::fs::read_dir(folder)
        .unwrap()
        .flat_map(|case| std::fs::read_dir(case.unwrap().path()).unwrap())
        .map(|step| step.unwrap().path().join("objects.json"))
        .filter(|file| file.is_file())
        .collect();
    all.sort();
    all
}

#[test]
fn every_recorded_trouble_has_a_reason_and_every_success_has_none() {
    let Some(data) = mainstay_testdata::unpack("answers/olm-classic", "recorded states") else {
        return;
    };
    let (mut well, mut explained, mut odd) = (0, 0, Vec::new());
    for file in states(&data.path().join("olm-classic")) {
        let all: Vec<Value> = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
        let objects = all.into_iter().map(|value| Object::from_value(value).unwrap()).collect();
        let world = World { objects, ..World::default() };
        for object in &world.objects {
            let Ok(kind) = object.kind().parse::<Kind>() else { continue };
            let (namespace, name) = (object.namespace().to_owned(), object.name().to_owned());
            let copied = object.str(&["status", "reason"]) == Some("Copied");
            if copied || object.label("olm.copiedFrom").is_some() || object.is_terminating() {
                continue;
            }
            let runs = |name: &str| {
                let csv = world.objects.iter().find(|object| {
                    object.kind() == "ClusterServiceVersion"
                        && object.namespace() == namespace
                        && object.name() == name
                });
                csv.is_some_and(|csv| {
                    csv.str(&["status", "phase"]) == Some("Succeeded") && !csv.is_terminating()
                })
            };
            let good = match kind {
                Kind::Subscription => {
                    let said = object.array(&["status", "conditions"]);
                    let bad = said.iter().any(|condition| {
                        matches!(
                            condition["type"].as_str(),
                            Some(
                                "ResolutionFailed"
                                    | "InstallPlanFailed"
                                    | "BundleUnpackFailed"
                                    | "CatalogSourcesUnhealthy"
                            )
                        ) && condition["status"] == "True"
                    });
                    let version = object.str(&["status", "currentCSV"]).unwrap_or_default();
                    let latest = object.str(&["status", "state"]) == Some("AtLatestKnown");
                    let count = |kind: &str, fits: &dyn Fn(&Object) -> bool| {
                        world
                            .objects
                            .iter()
                            .filter(|object| object.kind() == kind && fits(object))
                            .count()
                    };
                    let grouped =
                        count("OperatorGroup", &|group| group.namespace() == namespace) == 1;
                    let source = object.str(&["spec", "source"]);
                    let asked = count("CatalogSource", &|catalog| {
                        Some(catalog.name()) == source
                            && catalog.str(&["status", "connectionState", "lastObservedState"])
                                == Some("READY")
                    });
                    let well = latest && runs(version) && !bad && grouped && asked == 1;
                    (well || !latest && !runs(version)).then_some(well)
                }
                Kind::InstallPlan => Some(object.str(&["status", "phase"]) == Some("Complete")),
                Kind::ClusterServiceVersion => Some(runs(&name)),
                Kind::CatalogSource => continue,
            };
            let target = Target { kind, namespace: namespace.clone(), name };
            let answer = explain(&world, &target).unwrap();
            if answer.is_healthy() {
                well += 1;
            } else {
                explained += 1;
            }
            if good.is_some_and(|healthy| healthy != answer.is_healthy()) {
                odd.push(format!(
                    "{}: {target} {} {:?}",
                    file.display(),
                    answer.standing,
                    answer.why.map(|cause| cause.render())
                ));
            }
        }
    }
    assert!(odd.is_empty(), "{} of {}:\n{}", odd.len(), well + explained, odd.join("\n"));
    mainstay_testdata::ran(&format!(
        "{well} recorded objects that are well, {explained} explained"
    ));
}
