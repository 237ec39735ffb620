//! Recorded calls of the registry API.

use mainstay_catalog::{Catalog, LoadOptions};
use mainstay_conformance::opm::calls;
use mainstay_registry::{Index, Served, grpc};
use std::fs;
use std::sync::Arc;
use std::time::SystemTime;

/// Calls that are answered otherwise on purpose: the method, and a part of the request.
const INTENDED: [(&str, &str, &str); 2] = [
    ("Health.Watch", "", "upstream has none"),
    (
        "GetBundleThatReplaces",
        "kubecost-operator.v3.0.0",
        "of nineteen bundles upstream takes any, of which three were seen; ours takes the newest",
    ),
];

#[tokio::test]
async fn recorded_calls_are_answered_alike() {
    let Some(data) = mainstay_testdata::unpack("answers/opm", "recorded registry calls") else {
        return;
    };
    let published = mainstay_testdata::unpack("catalog-certified-v4.14", "calls on that catalog");
    let mut names: Vec<_> =
        fs::read_dir(data.path().join("opm")).unwrap().map(|entry| entry.unwrap().path()).collect();
    names.sort();
    let (mut calls_made, mut found) = (0, Vec::new());
    for folder in names.iter().filter(|folder| folder.join("calls.jsonl").is_file()) {
        let own = folder.join("input");
        let input = match &published {
            _ if own.is_dir() => own,
            Some(published) => published.path().join("v4.14"),
            None => continue,
        };
        let catalog = Catalog::load(&input, &LoadOptions::default()).unwrap();
        let served = Arc::new(Served::new("recorded"));
        served.put(Arc::new(Index::new(catalog, SystemTime::UNIX_EPOCH)));
        let recording = fs::read_to_string(folder.join("calls.jsonl")).unwrap();
        let (count, differences) = calls::replay(&recording, &grpc::service(served)).await.unwrap();
        calls_made += count;
        found.extend(
            differences
                .into_iter()
                .filter(|difference| {
                    let request = difference.request.to_string();
                    !INTENDED
                        .iter()
                        .any(|(rpc, part, _)| difference.rpc == *rpc && request.contains(part))
                })
                .map(|difference| format!("{}: {difference:?}", folder.display())),
        );
    }
    mainstay_testdata::ran(&format!("{calls_made} recorded registry calls"));
    assert!(found.is_empty(), "{} differ:\n{}", found.len(), found.join("\n"));
}
