//! Recorded states of real clusters: unhealthy objects have causes, and healthy ones have none.

use mainstay_explain::{ClusterObjects, ExplainedKind, ExplainedObject, explain};
use mainstay_object::Object;
use serde_json::Value;
use std::path::{Path, PathBuf};

fn states(folder: &Path) -> Vec<PathBuf> {
    let mut files: Vec<PathBuf> = std::fs::read_dir(folder)
        .unwrap()
        .flat_map(|case| std::fs::read_dir(case.unwrap().path()).unwrap())
        .map(|step| step.unwrap().path().join("objects.json"))
        .filter(|file| file.is_file())
        .collect();
    files.sort();
    files
}

#[test]
fn unhealthy_recorded_objects_have_causes_and_healthy_ones_have_none() {
    let Some(data) = mainstay_testdata::unpack("answers/olm-classic", "recorded states") else {
        return;
    };
    let (mut healthy_count, mut unhealthy_count, mut mismatches) = (0, 0, Vec::new());
    for file in states(&data.path().join("olm-classic")) {
        let values: Vec<Value> = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
        let objects = values.into_iter().map(|value| Object::from_value(value).unwrap()).collect();
        let cluster = ClusterObjects { objects, ..ClusterObjects::default() };
        for object in &cluster.objects {
            let Ok(kind) = object.kind().parse::<ExplainedKind>() else { continue };
            let (namespace, name) = (object.namespace().to_owned(), object.name().to_owned());
            let is_copied = object.str(&["status", "reason"]) == Some("Copied");
            if is_copied || object.label("olm.copiedFrom").is_some() || object.is_terminating() {
                continue;
            }
            let succeeds = |name: &str| {
                let csv = cluster.objects.iter().find(|object| {
                    object.kind() == "ClusterServiceVersion"
                        && object.namespace() == namespace
                        && object.name() == name
                });
                csv.is_some_and(|csv| {
                    csv.str(&["status", "phase"]) == Some("Succeeded") && !csv.is_terminating()
                })
            };
            let expected = match kind {
                ExplainedKind::Subscription => {
                    let conditions = object.array(&["status", "conditions"]);
                    let has_failure = conditions.iter().any(|condition| {
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
                    let is_at_latest = object.str(&["status", "state"]) == Some("AtLatestKnown");
                    let count = |kind: &str, fits: &dyn Fn(&Object) -> bool| {
                        cluster
                            .objects
                            .iter()
                            .filter(|object| object.kind() == kind && fits(object))
                            .count()
                    };
                    let has_group =
                        count("OperatorGroup", &|group| group.namespace() == namespace) == 1;
                    let source = object.str(&["spec", "source"]);
                    let ready_catalogs = count("CatalogSource", &|catalog| {
                        Some(catalog.name()) == source
                            && catalog.str(&["status", "connectionState", "lastObservedState"])
                                == Some("READY")
                    });
                    let is_healthy = is_at_latest
                        && succeeds(version)
                        && !has_failure
                        && has_group
                        && ready_catalogs == 1;
                    (is_healthy || !is_at_latest && !succeeds(version)).then_some(is_healthy)
                }
                ExplainedKind::InstallPlan => {
                    Some(object.str(&["status", "phase"]) == Some("Complete"))
                }
                ExplainedKind::ClusterServiceVersion => Some(succeeds(&name)),
                _ => continue,
            };
            let target = ExplainedObject { kind, namespace: namespace.clone(), name };
            let answer = explain(&cluster, &target).unwrap();
            if answer.is_healthy() {
                healthy_count += 1;
            } else {
                unhealthy_count += 1;
            }
            if expected.is_some_and(|healthy| healthy != answer.is_healthy()) {
                mismatches.push(format!(
                    "{}: {target} {} {:?}",
                    file.display(),
                    answer.state,
                    answer.cause.map(|cause| cause.render())
                ));
            }
        }
    }
    assert!(
        mismatches.is_empty(),
        "{} of {}:\n{}",
        mismatches.len(),
        healthy_count + unhealthy_count,
        mismatches.join("\n")
    );
    mainstay_testdata::ran(&format!(
        "{healthy_count} recorded objects that are well, {unhealthy_count} explained"
    ));
}
