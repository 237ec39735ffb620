//! A cluster in which one package walks.

use super::stock::Item;
use super::{End, Walk};
use anyhow::Context;
use mainstay_api::resources::{CLUSTER_SERVICE_VERSION, INSTALL_PLAN, SUBSCRIPTION};
use mainstay_classic::{Classic, FOLDER_ADDRESS, FolderCatalog, Options, Timeouts};
use mainstay_client::{Cluster, ListParams, Patch, Selection, WatchEvent};
use mainstay_object::Object;
use mainstay_object::known::DEPLOYMENT;
use mainstay_testkit::{Settings, TestCluster};
use parking_lot::Mutex;
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;

/// The namespace of the catalog.
const CATALOGS: &str = "olm";
/// The namespace in which the package is installed.
const PLACE: &str = "walk";
/// What the catalog and the Subscription are called.
const NAME: &str = "walk";
/// How it begins that nothing is wrong, and nothing comes.
pub(super) const NO_END: &str = "it comes to no end";
/// How many nodes there are: an operator with a port of its node needs another one for its next version.
const NODES: usize = 3;
/// For how long a plan whose steps fail is tried again: nothing here mends them.
const PLAN: Duration = Duration::from_secs(3);
/// How often it is looked whether something was written.
const LOOK: Duration = Duration::from_millis(20);
/// After so many looks without news, what is wrong stays wrong. Looks are counted, not time: on a busy
/// machine they come later, as does everything else.
const CALM: usize = 150;
/// After so many looks without news nothing more comes, also where nothing is wrong.
const HOPELESS: usize = 400;
/// How long a part of the way may take.
const LONGEST: Duration = Duration::from_mins(3);

/// Kinds that bundles use and no bundle of a catalog brings, as the clusters for which they are made
/// have them: `(group, version, kind, plural)`.
const FOUND: [(&str, &str, &str, &str); 2] = [
    ("monitoring.coreos.com", "v1", "ServiceMonitor", "servicemonitors"),
    ("monitoring.coreos.com", "v1", "PrometheusRule", "prometheusrules"),
];

/// Walks a package.
pub(super) async fn walk(item: Item) -> Walk {
    let plan = item.plan();
    let mut walked = Walk {
        catalog: item.catalog.clone(),
        package: item.package.clone(),
        plan: plan.as_ref().ok().cloned(),
        seen: Vec::new(),
        company: Vec::new(),
        end: End::There,
    };
    if let Err(why) = plan {
        walked.end = End::Unreadable(why);
    } else if let Err(error) = go(&item, &mut walked).await {
        walked.end = End::Stuck(format!("{error:#}"));
    }
    walked
}

async fn go(item: &Item, walked: &mut Walk) -> anyhow::Result<()> {
    let Some(plan) = walked.plan.clone() else { return Ok(()) };
    let folder = tempfile::tempdir()?;
    std::fs::write(folder.path().join("catalog.json"), item.text()?)?;
    let settings = Settings { nodes: NODES, ..Settings::default() };
    let cluster = TestCluster::with(settings).await;
    for crd in mainstay_api::crds().into_iter().chain(FOUND.map(definition)) {
        cluster.apply(crd).await;
    }
    for name in [CATALOGS, PLACE] {
        let namespace =
            json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
        apply(&cluster, namespace).await?;
    }
    let classic = Classic::start(
        cluster.cluster(),
        Options {
            catalogs: vec![FolderCatalog {
                namespace: CATALOGS.to_owned(),
                name: NAME.to_owned(),
                folder: folder.path().to_owned(),
                served: None,
            }],
            timeouts: Timeouts { plan: PLAN, ..Timeouts::default() },
            ..Options::new(cluster.clock(), CATALOGS)
        },
    );
    classic.synced().await;
    let seen = Arc::new(Mutex::new(Vec::new()));
    let watcher = follow(cluster.cluster(), Arc::clone(&seen)).await?;
    let outcome = legs(&cluster, item, &plan).await;
    let versions = list(&cluster, &CLUSTER_SERVICE_VERSION).await;
    walked.end = match outcome? {
        None => End::There,
        Some(why) => End::Stuck(why),
    };
    watcher.abort();
    walked.seen = std::mem::take(&mut *seen.lock());
    let own = |it: &&Object| item.found().is_some_and(|found| found.bundle(it.name()).is_some());
    walked.company =
        versions?.iter().filter(|it| !own(it)).map(|it| it.name().to_owned()).collect();
    classic.shutdown().await;
    cluster.shutdown().await;
    Ok(())
}

/// Goes the way; the reason if it comes to no end.
async fn legs(
    cluster: &TestCluster,
    item: &Item,
    plan: &super::Plan,
) -> anyhow::Result<Option<String>> {
    let mut at = plan.start.clone();
    for (number, leg) in plan.legs.iter().enumerate() {
        if number == 0 {
            subscribe(cluster, item, plan, &leg.channel).await?;
        } else {
            let patch = Patch::Merge(json!({"spec": {"channel": leg.channel}}));
            cluster.cluster().patch(&SUBSCRIPTION, Some(PLACE), NAME, &patch).await?;
        }
        at = leg.hops.last().cloned().unwrap_or(at);
        if let Some(why) = arrives(cluster, &at).await? {
            return Ok(Some(why));
        }
    }
    Ok(None)
}

/// What an administrator applies: the catalog, a group that suits every version of the way, and the
/// Subscription.
async fn subscribe(
    cluster: &TestCluster,
    item: &Item,
    plan: &super::Plan,
    channel: &str,
) -> anyhow::Result<()> {
    let source = json!({
        "apiVersion": "operators.coreos.com/v1alpha1", "kind": "CatalogSource",
        "metadata": {"name": NAME, "namespace": CATALOGS},
        "spec": {"sourceType": "grpc", "address": FOLDER_ADDRESS},
    });
    let group = json!({
        "apiVersion": "operators.coreos.com/v1", "kind": "OperatorGroup",
        "metadata": {"name": "group", "namespace": PLACE}, "spec": group(item, plan),
    });
    let subscription = json!({
        "apiVersion": "operators.coreos.com/v1alpha1", "kind": "Subscription",
        "metadata": {"name": NAME, "namespace": PLACE},
        "spec": {
            "name": item.package, "channel": channel, "startingCSV": plan.start,
            "source": NAME, "sourceNamespace": CATALOGS,
        },
    });
    for object in [source, group, subscription] {
        apply(cluster, object).await?;
    }
    Ok(())
}

/// The spec of a group with a target that as many versions of the way as possible support.
fn group(item: &Item, plan: &super::Plan) -> Value {
    let names = std::iter::once(&plan.start).chain(plan.legs.iter().flat_map(|it| &it.hops));
    let versions: Vec<Object> =
        names.filter_map(|name| item.found()?.bundle(name)?.csv().ok()?).collect();
    let support = |mode: &str| {
        let supports = |it: &&Object| {
            let mut modes = it.array(&["spec", "installModes"]).iter();
            modes.any(|it| it["type"] == mode && it["supported"] == true)
        };
        versions.iter().filter(supports).count()
    };
    let modes = [
        ("OwnNamespace", json!({"targetNamespaces": [PLACE]})),
        ("SingleNamespace", json!({"targetNamespaces": ["default"]})),
        ("MultiNamespace", json!({"targetNamespaces": [PLACE, "default"]})),
        ("AllNamespaces", json!({})),
    ];
    // Of those that as many support, the first.
    let best = modes.into_iter().rev().max_by_key(|(mode, _)| support(mode));
    best.map_or_else(|| json!({}), |it| it.1)
}

/// Waits until a version runs and is the latest; the reason if that does not come.
async fn arrives(cluster: &TestCluster, wanted: &str) -> anyhow::Result<Option<String>> {
    let began = cluster.clock().elapsed();
    let (mut revision, mut calm) = (None, 0);
    let mut complaint = None;
    loop {
        let now = cluster.store().revision();
        if revision != Some(now) {
            (revision, calm) = (Some(now), 0);
            let subscriptions = list(cluster, &SUBSCRIPTION).await?;
            let versions = list(cluster, &CLUSTER_SERVICE_VERSION).await?;
            let Some(own) = subscriptions.iter().find(|it| it.name() == NAME) else { continue };
            let installed = own.str(&["status", "installedCSV"]) == Some(wanted);
            let latest = own.str(&["status", "state"]) == Some("AtLatestKnown");
            let runs = versions
                .iter()
                .any(|it| it.name() == wanted && it.str(&["status", "phase"]) == Some("Succeeded"));
            if installed && latest && runs {
                return Ok(None);
            }
            complaint = wrong(own, &versions);
        }
        let end = match (&complaint, began + LONGEST < cluster.clock().elapsed()) {
            (Some(_), _) if calm > CALM => true,
            (None, _) if calm > HOPELESS => true,
            (_, late) => late,
        };
        if end {
            return Ok(Some(match complaint {
                Some(complaint) => complaint,
                None => format!("{NO_END}: {}", standing(cluster).await?),
            }));
        }
        calm += 1;
        tokio::time::sleep(LOOK).await;
    }
}

/// Where everything stands, for want of a complaint.
async fn standing(cluster: &TestCluster) -> anyhow::Result<String> {
    let mut all = Vec::new();
    for (kind, field) in [
        (&SUBSCRIPTION, "state"),
        (&INSTALL_PLAN, "phase"),
        (&CLUSTER_SERVICE_VERSION, "phase"),
        (&DEPLOYMENT, "conditions"),
    ] {
        for it in list(cluster, kind).await? {
            let what =
                it.get(&["status", field]).map_or_else(|| "new".to_owned(), Value::to_string);
            all.push(format!("{} {} is {what}", kind.kind, it.name()));
        }
    }
    Ok(all.join(", "))
}

/// What is wrong, as a Subscription or a version says it.
fn wrong(subscription: &Object, versions: &[Object]) -> Option<String> {
    let text = |value: &Value, key: &str| value[key].as_str().unwrap_or_default().to_owned();
    for condition in subscription.array(&["status", "conditions"]) {
        let kind = text(condition, "type");
        let bad = ["ResolutionFailed", "BundleUnpackFailed", "InstallPlanFailed"];
        if condition["status"] == "True" && bad.contains(&kind.as_str()) {
            return Some(format!("{kind}: {}", text(condition, "message")));
        }
    }
    versions.iter().find_map(|version| {
        let said = |field: &str| version.str(&["status", field]).unwrap_or_default();
        let place = |why: String| Some(format!("{}: {why}", version.name()));
        match said("phase") {
            "Failed" => place(format!("{}: {}", said("reason"), said("message"))),
            "Pending" => {
                let unmet: Vec<String> = version
                    .array(&["status", "requirementStatus"])
                    .iter()
                    .filter(|it| it["status"] != "Present" && it["status"] != "Satisfied")
                    .map(|it| {
                        let parts = ["kind", "name", "message"].map(|key| text(it, key));
                        parts.join(" ").trim_end().to_owned()
                    })
                    .collect();
                place(format!("{}: {}", said("reason"), unmet.join("; ")))
            }
            _ => None,
        }
    })
}

/// Notes which versions are installed, one after the other.
async fn follow(
    cluster: &Cluster,
    seen: Arc<Mutex<Vec<String>>>,
) -> anyhow::Result<tokio::task::JoinHandle<()>> {
    let list = cluster.list(&SUBSCRIPTION, Some(PLACE), &ListParams::default()).await?;
    let selection = Selection::all(SUBSCRIPTION).namespace(PLACE);
    let mut watch = cluster.watch(&selection, &list.resource_version).await?;
    Ok(tokio::spawn(async move {
        while let Some(Ok(event)) = watch.next().await {
            let (WatchEvent::Added(it) | WatchEvent::Modified(it)) = event else { continue };
            let installed = it.str(&["status", "installedCSV"]).unwrap_or_default();
            let mut seen = seen.lock();
            if it.name() == NAME
                && !installed.is_empty()
                && seen.last().is_none_or(|it| it != installed)
            {
                seen.push(installed.to_owned());
            }
        }
    }))
}

async fn list(
    cluster: &TestCluster,
    resource: &mainstay_object::Resource,
) -> anyhow::Result<Vec<Object>> {
    Ok(cluster.cluster().list(resource, Some(PLACE), &ListParams::default()).await?.items)
}

async fn apply(cluster: &TestCluster, value: Value) -> anyhow::Result<()> {
    cluster.apply(Object::from_value(value).context("an object")?).await;
    Ok(())
}

fn definition((group, version, kind, plural): (&str, &str, &str, &str)) -> Object {
    Object::from_value(json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{plural}.{group}")},
        "spec": {
            "group": group, "scope": "Namespaced",
            "names": {"kind": kind, "plural": plural, "singular": kind.to_lowercase()},
            "versions": [{"name": version, "served": true, "storage": true, "schema": {
                "openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
            }}],
        },
    }))
    .unwrap_or_default()
}
