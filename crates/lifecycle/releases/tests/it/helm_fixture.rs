//! A release that Helm 3.19 itself made: chart, rendering, sorting and the types of releases are its packages, the
//! post-renderers and the compression are a few lines around Kubernetes' Go libraries. `helm/objects.json` is the
//! input, `helm/release.json` the stored JSON, `helm/compressed.json` its gzip form with the hash of a chunk name.

use mainstay_releases::{
    INDEX_SECRET_TYPE, Release, ReleaseAction, ReleaseContent, ReleaseOwner, decode_release,
};
use serde_json::{Value, json};
use std::collections::BTreeMap;

const OBJECTS: &str = include_str!("helm/objects.json");
const RELEASE: &str = include_str!("helm/release.json");
const COMPRESSED: &str = include_str!("helm/compressed.json");

fn texts<const N: usize>(pairs: [(&str, &str); N]) -> BTreeMap<String, String> {
    pairs.map(|(name, value)| (name.to_owned(), value.to_owned())).into()
}

#[test]
fn release_json_has_the_bytes_of_helm() {
    let objects: Vec<Value> = serde_json::from_str(OBJECTS).unwrap();
    let owner = ReleaseOwner {
        api_version: "olm.operatorframework.io/v1",
        kind: "ClusterExtension",
        name: "ext",
        uid: "0d1f5c6e-3b1f-4a55-9a0b-2f1f1f1f1f1f",
    };
    let content = ReleaseContent::from_objects(
        &objects,
        &texts([("olm.properties", r#"[{"type":"olm.maxOpenShiftVersion","value":"4.20"}]"#)]),
        "ns",
        &owner,
        &texts([
            ("olm.operatorframework.io/owner-kind", "ClusterExtension"),
            ("olm.operatorframework.io/owner-name", "ext"),
        ]),
    );
    let labels = texts([
        ("olm.operatorframework.io/package-name", "p"),
        ("olm.operatorframework.io/bundle-reference", "r/p@sha256:1"),
    ]);
    let now = "2025-03-04T05:06:07.12Z".parse().unwrap();
    let mut release = Release::pending_install("ext", "ns", content, labels, now);
    release.complete(ReleaseAction::Install);
    assert_eq!(release.to_json(), RELEASE);
    assert_eq!(release.objects().unwrap().len(), 4);
}

#[test]
fn release_that_helm_compressed_is_read_and_written_again() {
    let compressed: Value = serde_json::from_str(COMPRESSED).unwrap();
    let index = json!({
        "metadata": {"name": "sh.helm.release.v1.ext.v1", "namespace": "olmv1-system"},
        "type": INDEX_SECRET_TYPE,
        // "[]"
        "data": {"chunk": compressed["gzip"], "extraChunks": "W10="},
    });
    let release = decode_release(&index, &[], 1_000_000).unwrap();
    assert_eq!(release.to_json(), RELEASE);
    let annotations = release.chart.metadata.unwrap().annotations;
    // shows OCPC-02
    assert!(annotations["olm.properties"].contains("olm.maxOpenShiftVersion"));
}
