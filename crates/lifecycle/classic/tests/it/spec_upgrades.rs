//! Specification rows about resolution and upgrades that no other test shows.

use crate::dependencies::{
    ANVIL, CHISEL, NEEDY, Release, catalog, subscribe, wait_until_latest, wait_until_plans_complete,
};
use crate::olm_cluster::{OlmCluster, true_condition};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use mainstay_api::resources::{CLUSTER_SERVICE_VERSION, OPERATOR_GROUP, SUBSCRIPTION};
use mainstay_client::Patch;
use mainstay_object::{Object, builtin};
use serde_json::{Value, json};
use std::time::Duration;

fn object(value: Value) -> Object {
    Object::from_value(value).unwrap()
}

#[tokio::test]
async fn dependency_is_the_latest_entry_that_provides_the_kind() {
    let chisel = |version, replaces, owns| Release { version, replaces, owns, ..CHISEL };
    let olm = crate::dependencies::olm_with_releases(&[
        NEEDY,
        chisel("1.0.0", None, "Chisel"),
        chisel("1.1.0", Some("1.0.0"), "Mallet"),
        chisel("1.2.0", Some("1.1.0"), "Chisel"),
        chisel("1.3.0", Some("1.2.0"), "Mallet"),
    ])
    .await;
    subscribe(&olm, "anvil", json!({"name": "anvil"})).await;
    wait_until_latest(&olm, "anvil", "anvil.v1.0.0").await;
    // shows E001
    let dependency_subscription =
        wait_until_latest(&olm, "chisel-stable-cat-olm", "chisel.v1.2.0").await;
    // shows E001
    assert_eq!(dependency_subscription.str(&["spec", "startingCSV"]), Some("chisel.v1.2.0"));
    // The head lacks the required kind, so it is not chosen.
    assert_eq!(wait_until_plans_complete(&olm).await.len(), 1);
}

/// A CSV that a user creates, without permissions and CRDs.
fn user_csv(release: &Release<'_>) -> Object {
    let mut csv = release.csv();
    let spec = &mut csv["spec"];
    spec["customresourcedefinitions"] = json!({});
    let install = &mut spec["install"]["spec"];
    install.as_object_mut().unwrap().remove("permissions");
    let pod = &mut install["deployments"][0]["spec"]["template"]["spec"];
    pod.as_object_mut().unwrap().remove("serviceAccountName");
    csv["metadata"]["namespace"] = "team".into();
    object(csv)
}

#[tokio::test]
async fn user_csv_is_upgraded_to_the_head_of_its_channel() {
    let olm = OlmCluster::start(&[]).await;
    olm.apply_group("og").await;
    olm.cluster.apply(user_csv(&ANVIL)).await;
    olm.wait_until_succeeded("anvil.v1.0.0").await;
    let next = Release { version: "1.1.0", replaces: Some("1.0.0"), ..ANVIL };
    olm.publish_text(&catalog(&[ANVIL, next], &|_, _| (), &[]));
    subscribe(&olm, "anvil", json!({"name": "anvil"})).await;
    // shows E003
    wait_until_latest(&olm, "anvil", "anvil.v1.1.0").await;
    let new = olm.wait_until_succeeded("anvil.v1.1.0").await;
    assert_eq!(new.str(&["spec", "replaces"]), Some("anvil.v1.0.0"));
    // shows E003
    olm.cluster.wait_gone(&CLUSTER_SERVICE_VERSION, Some("team"), "anvil.v1.0.0").await;
}

#[tokio::test]
async fn csv_of_a_dependency_has_the_replaces_of_its_channel_or_of_the_installed_csv() {
    let chisel = |version, replaces| Release { version, replaces, ..CHISEL };
    let (old, new) = (|| chisel("1.0.0", None), || chisel("1.1.0", Some("1.0.0")));
    let olm = crate::dependencies::olm_with_releases(&[NEEDY, old(), new()]).await;
    subscribe(&olm, "anvil", json!({"name": "anvil"})).await;
    wait_until_latest(&olm, "chisel-stable-cat-olm", "chisel.v1.1.0").await;
    let replaced = |csv: &Object| csv.str(&["spec", "replaces"]).map(str::to_owned);
    let csv = olm.wait_until_succeeded("chisel.v1.1.0").await;
    // shows E052
    assert_eq!(replaced(&csv).as_deref(), Some("chisel.v1.0.0"), "as its channel has it");
    let head = chisel("1.3.0", Some("1.0.0"));
    let text = catalog(&[NEEDY, old(), new(), head], &|_, _| (), &[]);
    let entry = r#"{"name":"chisel.v1.3.0","replaces":"chisel.v1.0.0"}"#;
    assert!(text.contains(entry), "{text}");
    let skips = r#"{"name":"chisel.v1.3.0","replaces":"chisel.v1.0.0","skips":["chisel.v1.1.0"]}"#;
    olm.publish_text(&text.replace(entry, skips));
    let csv = olm.wait_until_succeeded("chisel.v1.3.0").await;
    // shows E052
    assert_eq!(replaced(&csv).as_deref(), Some("chisel.v1.1.0"), "what it finds here");
    olm.cluster.wait_gone(&CLUSTER_SERVICE_VERSION, Some("team"), "chisel.v1.1.0").await;
}

/// Enables fail-forward in the OperatorGroup.
async fn enable_fail_forward(olm: &OlmCluster) {
    let forward = json!({"spec": {"upgradeStrategy": "TechPreviewUnsafeFailForward"}});
    let cluster = olm.cluster.cluster();
    cluster.patch(&OPERATOR_GROUP, Some("team"), "og", &Patch::Merge(forward)).await.unwrap();
}

/// A catalog of `anvil` and `saw`. The API refuses the versions of `anvil` between the first and
/// the last; the entry of the last one has these fields.
fn catalog_with_refused_versions(versions: &[&str], last: &Value) -> String {
    let saw = Release { package: "saw", owns: "Saw", ..ANVIL };
    let mut releases = vec![saw];
    for (at, version) in versions.iter().enumerate() {
        let replaces = at.checked_sub(1).map(|index| versions[index]);
        releases.push(Release { version, replaces, ..ANVIL });
    }
    let refuse = |name: &str, csv: &mut Value| {
        let bad = versions[1..].iter().any(|version| name == format!("anvil.v{version}"));
        if bad && name != "anvil.v3.0.0" {
            csv["metadata"]["labels"] = json!({"what": "no label value!"});
        }
    };
    let text = catalog(&releases, &refuse, &[]);
    let documents = text.lines().map(|line| {
        let mut document: Value = serde_json::from_str(line).unwrap();
        for entry in document["entries"].as_array_mut().into_iter().flatten() {
            if entry["name"] == "anvil.v3.0.0" {
                entry.as_object_mut().unwrap().remove("replaces");
                entry.as_object_mut().unwrap().extend(last.as_object().cloned().unwrap());
            } else if entry["name"] == "anvil.v2.1.0" {
                // This version is refused like the one before.
                entry["replaces"] = "anvil.v1.0.0".into();
                entry["skips"] = json!(["anvil.v2.0.0"]);
            }
        }
        document.to_string()
    });
    documents.collect::<Vec<_>>().join("\n")
}

/// Lets the versions after the first fail one after the other, and asserts whether the last one is
/// installed.
async fn assert_roll_forward(versions: &[&str], last: Value, succeeds: bool) {
    let mut olm = OlmCluster::start(&[]).await;
    olm.stop_controllers().await;
    olm.timeouts.plan = Duration::from_secs(1);
    olm.start_controllers().await;
    olm.apply_group("og").await;
    enable_fail_forward(&olm).await;
    for upto in 1..versions.len() {
        olm.publish_text(&catalog_with_refused_versions(&versions[..upto], &last));
        if upto == 1 {
            subscribe(&olm, "anvil", json!({"name": "anvil"})).await;
            wait_until_latest(&olm, "anvil", "anvil.v1.0.0").await;
            continue;
        }
        let bad = format!("anvil.v{}", versions[upto - 1]);
        let has_failed = move |subscription: &Object| {
            subscription.str(&["status", "state"]) == Some("UpgradeFailed")
                && subscription.str(&["status", "currentCSV"]) == Some(&bad)
                && true_condition(subscription, "InstallPlanFailed").is_some()
        };
        let subscription = olm.wait_for_subscription(has_failed).await;
        let (reason, why) = true_condition(&subscription, "InstallPlanFailed").unwrap();
        assert_eq!(reason, "InstallComponentFailed");
        assert!(why.contains("metadata.labels: Invalid value"), "{why}");
    }
    olm.publish_text(&catalog_with_refused_versions(versions, &last));
    // A Subscription to another package is resolved from the same content.
    subscribe(&olm, "saw", json!({"name": "saw"})).await;
    wait_until_latest(&olm, "saw", "saw.v1.0.0").await;
    if succeeds {
        wait_until_latest(&olm, "anvil", "anvil.v3.0.0").await;
        let new = olm.wait_until_succeeded("anvil.v3.0.0").await;
        assert_eq!(new.str(&["spec", "replaces"]), Some("anvil.v1.0.0"));
        let old = "anvil.v1.0.0";
        olm.cluster.wait_gone(&CLUSTER_SERVICE_VERSION, Some("team"), old).await;
    } else {
        let is_stuck = |subscription: &Object| {
            subscription.str(&["status", "state"]) == Some("UpgradeFailed")
                && subscription.str(&["status", "installedCSV"]) == Some("anvil.v1.0.0")
                && subscription.str(&["status", "currentCSV"]) == Some("anvil.v2.0.0")
                && true_condition(subscription, "InstallPlanFailed").is_some()
        };
        olm.wait_for_subscription(is_stuck).await;
        olm.wait_until_succeeded("anvil.v1.0.0").await;
    }
}

#[tokio::test]
async fn failed_install_plans_are_rolled_forward_by_versions_that_skip_them() {
    let range = json!({"replaces": "anvil.v2.0.0", "skipRange": ">=1.0.0 <3.0.0"});
    let skips = json!({"replaces": "anvil.v1.0.0", "skips": ["anvil.v2.0.0"]});
    let both = json!({"replaces": "anvil.v1.0.0", "skips": ["anvil.v2.0.0", "anvil.v2.1.0"]});
    let next = json!({"replaces": "anvil.v2.0.0"});
    // shows E064
    tokio::join!(
        assert_roll_forward(&["1.0.0", "2.0.0", "2.1.0", "3.0.0"], both, true),
        assert_roll_forward(&["1.0.0", "2.0.0", "3.0.0"], range, true),
        assert_roll_forward(&["1.0.0", "2.0.0", "3.0.0"], skips, true),
        assert_roll_forward(&["1.0.0", "2.0.0", "3.0.0"], next, false),
    );
}

#[tokio::test]
async fn crd_versions_are_added_deprecated_and_removed_by_upgrades() {
    let olm = OlmCluster::start(&[]).await;
    let version = |name: &str, served: bool, storage: bool| {
        let mut entry = json!({"name": name, "served": served, "storage": storage, "schema": {
            "openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
        }});
        if name == "v1alpha1" {
            entry["deprecated"] = (!storage).into();
        }
        entry
    };
    let definition = |release: &str| match release {
        "1.0.0" => json!([version("v1alpha1", true, true)]),
        "1.1.0" => json!([version("v1alpha1", true, false), version("v1", true, true)]),
        "1.2.0" => json!([version("v1alpha1", false, false), version("v1", true, true)]),
        _ => json!([version("v1", true, true)]),
    };
    let all = ["1.0.0", "1.1.0", "1.2.0", "1.3.0"];
    let publish = |upto: usize| {
        olm.publish_edited(&all[..upto], |release, bundle| {
            let mut crd = crate::olm_cluster::crd();
            crd["spec"]["versions"] = definition(release);
            bundle["properties"][3]["value"]["data"] = BASE64.encode(crd.to_string()).into();
            // The CSV owns a served version.
            let owned = if release == "1.0.0" { "v1alpha1" } else { "v1" };
            let replaces = all
                .iter()
                .position(|version| *version == release)
                .and_then(|position| position.checked_sub(1));
            let mut csv = crate::olm_cluster::csv(release, replaces.map(|index| all[index]));
            csv["spec"]["customresourcedefinitions"]["owned"][0]["version"] = owned.into();
            bundle["properties"][2]["value"]["data"] = BASE64.encode(csv.to_string()).into();
            bundle["properties"][1]["value"]["version"] = owned.into();
        });
    };
    publish(1);
    olm.apply_group("og").await;
    olm.subscribe(json!({})).await;
    wait_until_latest(&olm, "anvil", "anvil.v1.0.0").await;
    let anvil = json!({
        "apiVersion": "forge.example.com/v1alpha1", "kind": "Anvil",
        "metadata": {"name": "first", "namespace": "team"}, "spec": {"size": 1},
    });
    olm.cluster.apply(object(anvil)).await;
    let (crds, name) = (&builtin::CUSTOM_RESOURCE_DEFINITION, "anvils.forge.example.com");
    for (upto, csv, served) in
        [(2, "anvil.v1.1.0", &["v1alpha1", "v1"][..]), (3, "anvil.v1.2.0", &["v1"])]
    {
        publish(upto);
        wait_until_latest(&olm, "anvil", csv).await;
        olm.wait_until_succeeded(csv).await;
        let crd = olm.cluster.cluster().get(crds, None, name).await.unwrap();
        let versions = crd.array(&["spec", "versions"]).iter();
        let found: Vec<&str> = versions
            .filter(|version| version["served"] == true)
            .filter_map(|version| version["name"].as_str())
            .collect();
        // shows E076 CRU-01 CRU-03 CRU-04 AT-CRU-01 AT-CRU-03
        assert_eq!(found, served);
        assert_eq!(crd.array(&["status", "storedVersions"]), ["v1alpha1", "v1"]);
    }
    // Objects may be stored in the old version until an administrator removes it from
    // `status.storedVersions`.
    publish(4);
    let lost = "risk of data loss updating \"anvils.forge.example.com\": new CRD removes version v1alpha1 that is listed as a stored version on the existing CRD";
    let waits = move |all: &[&Object]| {
        all.iter().any(|plan| {
            plan.str(&["status", "message"]).is_some_and(|message| message.contains(lost))
        })
    };
    // shows CRU-05 E060 AT-CRU-03
    olm.wait_for_plans(waits).await;
    let migrated = Patch::Merge(json!({"status": {"storedVersions": ["v1"]}}));
    olm.cluster.cluster().patch_status(crds, None, name, &migrated).await.unwrap();
    // shows E076 CRU-05 AT-CRU-03
    wait_until_latest(&olm, "anvil", "anvil.v1.3.0").await;
    olm.wait_until_succeeded("anvil.v1.3.0").await;
    let gone = olm.cluster.wait_for(&SUBSCRIPTION, Some("team"), "anvil", |subscription| {
        true_condition(subscription, "InstallPlanFailed").is_none()
    });
    gone.await;
}
