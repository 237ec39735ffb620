//! The walk of one package: subscribe, follow its upgrade path, and uninstall it if requested.

use super::catalogs::PackageUnderTest;
use super::round_trip;
use super::walk_cluster::{CATALOG_NAMESPACE, ExistingCluster, NAME, NAMESPACE, WalkCluster};
use super::{PackageWalkEnd, Walk};
use mainstay_api::resources::{CLUSTER_SERVICE_VERSION, INSTALL_PLAN, SUBSCRIPTION};
use mainstay_classic::FOLDER_ADDRESS;
use mainstay_client::{Cluster, ObjectList, Patch, Selection, WatchEvent};
use mainstay_clock::Clock;
use mainstay_object::builtin::DEPLOYMENT;
use mainstay_object::{Object, Resource};
use parking_lot::Mutex;
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;

/// The prefix of the reason if nothing fails and nothing changes any more.
pub(super) const NO_PROGRESS: &str = "it comes to no end";
/// The interval between two polls for changes.
const POLL_INTERVAL: Duration = Duration::from_millis(20);
/// After so many polls without a change, a reported failure is final: this takes longer than an
/// InstallPlan retries a failed step. Polls are counted instead of time, because on a busy machine
/// they come later, as everything else does.
const FAILURE_POLLS: usize = 250;
/// After so many polls without a change, the walk is stuck, even if nothing reports a failure.
const STALL_POLLS: usize = 400;
/// The timeout of one channel segment.
const SEGMENT_TIMEOUT: Duration = Duration::from_mins(3);
/// The kinds that show the progress of an installation, with the status field that does.
const PROGRESS_FIELDS: [(&Resource, &str); 4] = [
    (&SUBSCRIPTION, "state"),
    (&INSTALL_PLAN, "phase"),
    (&CLUSTER_SERVICE_VERSION, "phase"),
    (&DEPLOYMENT, "conditions"),
];

/// Walks a package in a cluster of its own or in an existing one, and uninstalls it if `uninstall`
/// is set.
pub(super) async fn walk(
    item: PackageUnderTest,
    existing: Option<ExistingCluster>,
    uninstall: bool,
) -> Walk {
    let path = item.upgrade_path();
    let mut walk = Walk {
        catalog: item.catalog.clone(),
        package: item.package.clone(),
        upgrade_path: path.as_ref().ok().cloned(),
        installed_csvs: Vec::new(),
        dependencies: Vec::new(),
        end: PackageWalkEnd::Completed,
        uninstall_report: None,
    };
    if let Err(why) = path {
        walk.end = PackageWalkEnd::Unreadable(why);
    } else if let Err(error) = run(&item, existing.as_ref(), uninstall, &mut walk).await {
        walk.end = PackageWalkEnd::Stuck(format!("{error:#}"));
    }
    walk
}

async fn run(
    item: &PackageUnderTest,
    existing: Option<&ExistingCluster>,
    uninstall: bool,
    walk: &mut Walk,
) -> anyhow::Result<()> {
    let Some(path) = walk.upgrade_path.clone() else { return Ok(()) };
    let cluster = match existing {
        Some(existing) => WalkCluster::existing(existing, item).await?,
        None => WalkCluster::embedded(item).await?,
    };
    if existing.is_none() {
        cluster.apply(catalog_source()).await?;
    }
    cluster.apply(operator_group(item, &path)).await?;
    let outcome = if uninstall {
        let round_trip = round_trip::RoundTrip { cluster: &cluster, item, path: &path };
        round_trip.run(walk).await
    } else {
        install_and_upgrade(&cluster, item, &path, walk).await
    };
    cluster.clean_up().await?;
    outcome
}

/// Follows the upgrade path once, and records the installed ClusterServiceVersions in `walk`.
pub(super) async fn install_and_upgrade(
    cluster: &WalkCluster,
    item: &PackageUnderTest,
    path: &super::UpgradePath,
    walk: &mut Walk,
) -> anyhow::Result<()> {
    let installed_csvs = Arc::new(Mutex::new(Vec::new()));
    let watcher = record_installed_csvs(&cluster.api, Arc::clone(&installed_csvs)).await?;
    let outcome = follow_path(cluster, item, path).await;
    let csvs = cluster.list(&CLUSTER_SERVICE_VERSION).await;
    let own = cluster.api.find(&SUBSCRIPTION, Some(NAMESPACE), NAME).await?;
    let last = own.as_ref().and_then(|subscription| subscription.str(&["status", "installedCSV"]));
    // The watch may lag behind the reads above.
    for _ in 0..FAILURE_POLLS {
        if installed_csvs.lock().last().map(String::as_str) == last {
            break;
        }
        tokio::time::sleep(POLL_INTERVAL).await;
    }
    walk.end = match outcome? {
        None => PackageWalkEnd::Completed,
        Some(why) => PackageWalkEnd::Stuck(why),
    };
    watcher.abort();
    walk.installed_csvs = std::mem::take(&mut *installed_csvs.lock());
    let own = |csv: &&Object| {
        item.loaded_package().is_some_and(|found| found.bundle(csv.name()).is_some())
    };
    walk.dependencies =
        csvs?.iter().filter(|csv| !own(csv)).map(|csv| csv.name().to_owned()).collect();
    Ok(())
}

/// Follows the upgrade path; returns the reason if it gets stuck.
async fn follow_path(
    cluster: &WalkCluster,
    item: &PackageUnderTest,
    path: &super::UpgradePath,
) -> anyhow::Result<Option<String>> {
    let mut at = path.start.clone();
    for (number, segment) in path.segments.iter().enumerate() {
        if number == 0 {
            cluster.apply(subscription(item, path, &segment.channel)).await?;
        } else {
            let patch = Patch::Merge(json!({"spec": {"channel": segment.channel}}));
            cluster.api.patch(&SUBSCRIPTION, Some(NAMESPACE), NAME, &patch).await?;
        }
        at = segment.updates.last().cloned().unwrap_or(at);
        if let Some(why) = wait_until_installed(cluster, &at).await? {
            return Ok(Some(why));
        }
    }
    Ok(None)
}

/// The CatalogSource, as an administrator applies it.
pub(super) fn catalog_source() -> Value {
    json!({
        "apiVersion": "operators.coreos.com/v1alpha1", "kind": "CatalogSource",
        "metadata": {"name": NAME, "namespace": CATALOG_NAMESPACE},
        "spec": {"sourceType": "grpc", "address": FOLDER_ADDRESS},
    })
}

/// The Subscription, with the first bundle of the path as `startingCSV`.
fn subscription(item: &PackageUnderTest, path: &super::UpgradePath, channel: &str) -> Value {
    json!({
        "apiVersion": "operators.coreos.com/v1alpha1", "kind": "Subscription",
        "metadata": {"name": NAME, "namespace": NAMESPACE},
        "spec": {
            "name": item.package, "channel": channel, "startingCSV": path.start,
            "source": NAME, "sourceNamespace": CATALOG_NAMESPACE,
        },
    })
}

/// An OperatorGroup with the targets that most versions of the path support.
fn operator_group(item: &PackageUnderTest, path: &super::UpgradePath) -> Value {
    let names = std::iter::once(&path.start)
        .chain(path.segments.iter().flat_map(|segment| &segment.updates));
    let csvs: Vec<Object> =
        names.filter_map(|name| item.loaded_package()?.bundle(name)?.csv().ok()?).collect();
    let support = |mode: &str| {
        let supports = |csv: &&Object| {
            let mut modes = csv.array(&["spec", "installModes"]).iter();
            modes.any(|install_mode| {
                install_mode["type"] == mode && install_mode["supported"] == true
            })
        };
        csvs.iter().filter(supports).count()
    };
    let modes = [
        ("OwnNamespace", json!({"targetNamespaces": [NAMESPACE]})),
        ("SingleNamespace", json!({"targetNamespaces": ["default"]})),
        ("MultiNamespace", json!({"targetNamespaces": [NAMESPACE, "default"]})),
        ("AllNamespaces", json!({})),
    ];
    // Of several modes that as many versions support, the first one.
    let best = modes.into_iter().rev().max_by_key(|(mode, _)| support(mode));
    json!({
        "apiVersion": "operators.coreos.com/v1", "kind": "OperatorGroup",
        "metadata": {"name": "group", "namespace": NAMESPACE},
        "spec": best.map_or_else(|| json!({}), |(_, spec)| spec),
    })
}

/// Waits until a ClusterServiceVersion has succeeded and is the latest; returns the reason if it
/// gets stuck.
pub(super) async fn wait_until_installed(
    cluster: &WalkCluster,
    csv_name: &str,
) -> anyhow::Result<Option<String>> {
    let clock = Clock::system();
    let began = clock.elapsed();
    let (mut last_marker, mut idle_polls) = (None, 0);
    let mut failure = None;
    loop {
        let marker =
            cluster.progress_marker(&PROGRESS_FIELDS.map(|(resource, _)| resource)).await?;
        if last_marker.as_ref() != Some(&marker) {
            (last_marker, idle_polls) = (Some(marker), 0);
            let subscriptions = cluster.list(&SUBSCRIPTION).await?;
            let csvs = cluster.list(&CLUSTER_SERVICE_VERSION).await?;
            let Some(own) = subscriptions.iter().find(|subscription| subscription.name() == NAME)
            else {
                continue;
            };
            let installed = own.str(&["status", "installedCSV"]) == Some(csv_name);
            let latest = own.str(&["status", "state"]) == Some("AtLatestKnown");
            let runs = csvs.iter().any(|csv| {
                csv.name() == csv_name && csv.str(&["status", "phase"]) == Some("Succeeded")
            });
            if installed && latest && runs {
                return Ok(None);
            }
            failure = reported_failure(own, &csvs);
        }
        let end = match (&failure, began + SEGMENT_TIMEOUT < clock.elapsed()) {
            (Some(_), _) if idle_polls > FAILURE_POLLS => true,
            (None, _) if idle_polls > STALL_POLLS => true,
            (_, late) => late,
        };
        if end {
            return Ok(Some(match failure {
                Some(failure) => failure,
                None => format!("{NO_PROGRESS}: {}", status_summary(cluster).await?),
            }));
        }
        idle_polls += 1;
        tokio::time::sleep(POLL_INTERVAL).await;
    }
}

/// The status of all objects, for a walk that is stuck without a reported failure.
async fn status_summary(cluster: &WalkCluster) -> anyhow::Result<String> {
    let mut all = Vec::new();
    for (kind, field) in PROGRESS_FIELDS {
        for object in cluster.list(kind).await? {
            let what =
                object.get(&["status", field]).map_or_else(|| "new".to_owned(), Value::to_string);
            all.push(format!("{} {} is {what}", kind.kind, object.name()));
        }
    }
    Ok(all.join(", "))
}

/// The failure that the Subscription or a ClusterServiceVersion reports.
fn reported_failure(subscription: &Object, csvs: &[Object]) -> Option<String> {
    let text = |value: &Value, key: &str| value[key].as_str().unwrap_or_default().to_owned();
    for condition in subscription.array(&["status", "conditions"]) {
        let kind = text(condition, "type");
        let bad = ["ResolutionFailed", "BundleUnpackFailed", "InstallPlanFailed"];
        if condition["status"] == "True" && bad.contains(&kind.as_str()) {
            return Some(format!("{kind}: {}", text(condition, "message")));
        }
    }
    csvs.iter().find_map(|csv| {
        let status = |field: &str| csv.str(&["status", field]).unwrap_or_default();
        let prefixed = |why: String| Some(format!("{}: {why}", csv.name()));
        match status("phase") {
            "Failed" => prefixed(format!("{}: {}", status("reason"), status("message"))),
            "Pending" => {
                let unmet: Vec<String> = csv
                    .array(&["status", "requirementStatus"])
                    .iter()
                    .filter(|requirement| {
                        requirement["status"] != "Present" && requirement["status"] != "Satisfied"
                    })
                    .map(|requirement| {
                        let parts = ["kind", "name", "message"].map(|key| text(requirement, key));
                        parts.join(" ").trim_end().to_owned()
                    })
                    .collect();
                prefixed(format!("{}: {}", status("reason"), unmet.join("; ")))
            }
            _ => None,
        }
    })
}

/// Watches the Subscription, and records each `installedCSV`.
async fn record_installed_csvs(
    cluster: &Cluster,
    installed_csvs: Arc<Mutex<Vec<String>>>,
) -> anyhow::Result<tokio::task::JoinHandle<()>> {
    let list = cluster.list(&SUBSCRIPTION, Some(NAMESPACE), &ObjectList::default()).await?;
    let selection = Selection::all(SUBSCRIPTION).namespace(NAMESPACE);
    let mut watch = cluster.watch(&selection, &list.resource_version).await?;
    Ok(tokio::spawn(async move {
        while let Some(Ok(event)) = watch.next().await {
            let (WatchEvent::Added(subscription) | WatchEvent::Modified(subscription)) = event
            else {
                continue;
            };
            let installed = subscription.str(&["status", "installedCSV"]).unwrap_or_default();
            let mut installed_csvs = installed_csvs.lock();
            if subscription.name() == NAME
                && !installed.is_empty()
                && installed_csvs.last().is_none_or(|last| last != installed)
            {
                installed_csvs.push(installed.to_owned());
            }
        }
    }))
}
