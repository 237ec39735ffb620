//! Histories of recorded cases: each next step follows from the one before.

use crate::recorded::steps;
use mainstay_releases::history::{MAX_HISTORY, Revision, deployed, last, prunable_versions};
use mainstay_releases::{INDEX_SECRET_TYPE, ReleaseStatus};
use serde_json::Value;
use std::collections::BTreeMap;

/// Version and status of a release, from the labels of its index Secret; none for other Secrets.
fn revision(secret: &Value) -> Option<Revision> {
    let labels = &secret["metadata"]["labels"];
    (secret["type"] == INDEX_SECRET_TYPE).then(|| Revision {
        version: labels["version"].as_str().unwrap().parse().unwrap(),
        status: ReleaseStatus::from_label(labels["status"].as_str().unwrap()),
    })
}

/// The releases of each extension, by version.
fn histories(objects: &[Value]) -> BTreeMap<String, Vec<Revision>> {
    let mut histories: BTreeMap<String, Vec<Revision>> = BTreeMap::new();
    for secret in objects {
        if let Some(revision) = revision(secret) {
            let name = secret["metadata"]["labels"]["name"].as_str().unwrap();
            histories.entry(name.to_owned()).or_default().push(revision);
        }
    }
    for revisions in histories.values_mut() {
        revisions.sort_by_key(|revision| revision.version);
    }
    histories
}

#[test]
fn recorded_histories_follow_from_the_step_before() {
    let Some(data) = mainstay_testdata::unpack("answers/olm-v1", "recorded histories") else {
        return;
    };
    let mut compared = 0;
    for case in mainstay_testdata::sorted_entries(&data.path().join("olm-v1/cases")) {
        let mut before: BTreeMap<String, Vec<Revision>> = BTreeMap::new();
        for (step, objects) in steps(&case) {
            let now = histories(&objects);
            for (name, revisions) in &now {
                let place = format!("{}/{step}/{name}", case.display());
                assert!(revisions.len() <= MAX_HISTORY, "{place}");
                // The deployed release is the only one with that status.
                let running: Vec<i64> = revisions
                    .iter()
                    .filter(|revision| revision.status.as_str() == "deployed")
                    .map(|revision| revision.version)
                    .collect();
                let found = deployed(revisions).map(|revision| revision.version);
                assert_eq!(running, Vec::from_iter(found), "{place}");
                let earlier = before.get(name).map(Vec::as_slice).unwrap_or_default();
                let added: Vec<i64> = revisions
                    .iter()
                    .map(|revision| revision.version)
                    .filter(|version| earlier.iter().all(|old| old.version != *version))
                    .collect();
                if let [version] = added[..] {
                    // A release that is deleted by hand, or with its extension, starts anew.
                    let anew = version == 1;
                    let next = last(earlier).map_or(1, |revision| revision.version + 1);
                    assert!(anew || version == next, "{place}: {version}");
                    let pruned = prunable_versions(earlier, MAX_HISTORY);
                    let lost = earlier.iter().filter(|old| {
                        revisions.iter().all(|revision| revision.version != old.version)
                    });
                    let lost: Vec<i64> = lost.map(|old| old.version).collect();
                    assert!(anew || lost == pruned, "{place}: {lost:?} {pruned:?}");
                    compared += 1;
                }
            }
            before = now;
        }
    }
    assert!(compared > 100, "{compared} new releases");
    mainstay_testdata::ran(&format!("{compared} new releases of recorded histories"));
}
