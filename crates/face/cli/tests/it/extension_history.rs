//! `mainstay extension history` and `rollback`.

use super::extension_commands::{STATE, run_in};
use super::recorded_cluster::RecordedCluster;
use mainstay_api::names::olm_v1::{BUNDLE_NAME, BUNDLE_VERSION};
use mainstay_api::resources::CLUSTER_OBJECT_SET;
use mainstay_clitest::{CommandOutput, TestFolder};
use mainstay_object::Object;
use mainstay_releases::{EncodedRelease, Release, ReleaseInfo, ReleaseStatus, SecretWrite};
use serde_json::json;

/// A cluster whose extension has three releases; the second one failed.
fn cluster() -> RecordedCluster {
    let cluster = RecordedCluster::new("kitchen", STATE).writable(install);
    let releases = [
        (1, "0.9.0", ReleaseStatus::Superseded),
        (2, "0.9.5", ReleaseStatus::Failed),
        (3, "1.0.0", ReleaseStatus::Deployed),
    ];
    for (number, version, status) in releases {
        cluster.objects.borrow_mut().push(secret(number, version, status));
    }
    cluster
}

fn secret(number: i64, version: &str, status: ReleaseStatus) -> Object {
    let time = "2026-01-01T00:00:00Z".parse().unwrap();
    let name = format!("teapot.v{}", &version[..1]);
    let release = Release {
        name: "tea".to_owned(),
        info: ReleaseInfo { status, last_deployed: Some(time), ..ReleaseInfo::default() },
        version: number,
        labels: [(BUNDLE_NAME.to_owned(), name), (BUNDLE_VERSION.to_owned(), version.to_owned())]
            .into(),
        ..Release::default()
    };
    let encoded = EncodedRelease::new(&release).unwrap();
    let secret = encoded.index_secret("olmv1-system", &[], SecretWrite::Create(time));
    Object::from_value(secret).unwrap()
}

/// What the controller does: it installs the pinned version.
fn install(extension: &mut Object) {
    let version = extension.str(&["spec", "source", "catalog", "version"]).unwrap().to_owned();
    let generation = extension.generation();
    extension.set(
        &["status"],
        json!({
            "install": {"bundle": {"name": "teapot.v0", "version": version}},
            "conditions": [
                {"type": "Installed", "status": "True", "reason": "Succeeded", "observedGeneration": generation},
                {"type": "Progressing", "status": "True", "reason": "Succeeded", "observedGeneration": generation},
            ],
        }),
    );
}

fn run(cluster: &RecordedCluster, arguments: &str) -> CommandOutput {
    run_in(&TestFolder::new(), cluster.clone(), arguments, None)
}

#[test]
fn history_lists_releases_with_their_bundles() {
    let output = run(&cluster(), "history tea -o json");
    insta::assert_snapshot!(output.out, @r#"
    [
      {
        "bundle": "teapot.v0",
        "created": "2026-01-01T00:00:00Z",
        "revision": 1,
        "status": "superseded",
        "version": "0.9.0"
      },
      {
        "bundle": "teapot.v0",
        "created": "2026-01-01T00:00:00Z",
        "revision": 2,
        "status": "failed",
        "version": "0.9.5"
      },
      {
        "bundle": "teapot.v1",
        "created": "2026-01-01T00:00:00Z",
        "revision": 3,
        "status": "deployed",
        "version": "1.0.0"
      }
    ]
    "#);
    let table = run(&cluster(), "history tea").out;
    let lines: Vec<&str> = table.lines().map(|line| line.split("2026").next().unwrap()).collect();
    assert!(lines[0].starts_with("REVISION   BUNDLE      VERSION   STATUS"), "{table}");
    assert!(lines[1].starts_with("1          teapot.v0   0.9.0     superseded"), "{table}");
}

#[test]
fn rollback_pins_the_version_of_the_last_other_bundle() {
    let cluster = cluster();
    let output = run(&cluster, "rollback tea");
    assert_eq!(output.code, 0, "{}", output.err);
    insta::assert_snapshot!(output.out, @r#"
    rolling back to revision 1: teapot.v0 0.9.0
    extension "tea" rolled back
    installed teapot.v0 version 0.9.0 in namespace kitchen
    its version is pinned; to follow the catalog again: mainstay extension update tea --version= --upgrade-constraint-policy CatalogProvided
    "#);
    let objects = cluster.objects.borrow();
    let tea = objects.iter().find(|object| object.kind() == "ClusterExtension").unwrap();
    let catalog = tea.get(&["spec", "source", "catalog"]).unwrap();
    let expected = json!({
        "packageName": "teapot", "version": "0.9.0", "upgradeConstraintPolicy": "SelfCertified",
    });
    assert_eq!(*catalog, expected);
}

#[test]
fn rollback_says_why_there_is_no_way_back() {
    let failed = run(&cluster(), "rollback tea --to-revision 2");
    insta::assert_snapshot!(failed.err, @r#"
    error: revision 2 of extension "tea" was never installed completely
      → see the revisions with: mainstay extension history tea
    "#);
    let fresh = RecordedCluster::new("kitchen", STATE);
    insta::assert_snapshot!(run(&fresh, "rollback tea").err, @r#"
    error: extension "tea" has no earlier revision with another bundle
      → name a version instead: mainstay extension update tea --version VERSION --upgrade-constraint-policy SelfCertified
    "#);
    assert_eq!(run(&fresh, "history tea").err, "No revisions found: nothing was installed yet\n");
}

#[test]
fn unreadable_release_is_named_and_the_others_are_listed() {
    let cluster = cluster();
    for secret in cluster.objects.borrow_mut().iter_mut() {
        if secret.name() == "sh.helm.release.v1.tea.v1" {
            secret.set(&["data", "chunk"], "AAAA".into());
        }
    }
    let output = run(&cluster, "history tea -o json");
    assert_eq!(output.code, 0);
    assert!(output.err.contains("olmv1-system/sh.helm.release.v1.tea.v1"), "{}", output.err);
    assert!(output.out.contains("teapot.v1") && !output.out.contains("0.9.0"));
}

#[test]
fn history_lists_cluster_object_sets_before_releases() {
    let cluster = cluster();
    let set = json!({
        "apiVersion": CLUSTER_OBJECT_SET.api_version(), "kind": "ClusterObjectSet",
        "metadata": {
            "name": "tea-7", "creationTimestamp": "2026-01-01T00:00:00Z",
            "labels": {"olm.operatorframework.io/owner-name": "tea"},
            "annotations": {BUNDLE_NAME: "teapot.v7", BUNDLE_VERSION: "7.0.0"},
        },
        "spec": {"revision": 7, "lifecycleState": "Active"},
        "status": {"conditions": [{"type": "Succeeded", "status": "True"}]},
    });
    cluster.objects.borrow_mut().push(Object::from_value(set).unwrap());
    let output = run(&cluster, "history tea -o json");
    insta::assert_snapshot!(output.out, @r#"
    [
      {
        "bundle": "teapot.v7",
        "created": "2026-01-01T00:00:00Z",
        "revision": 7,
        "status": "Active",
        "version": "7.0.0"
      }
    ]
    "#);
}
