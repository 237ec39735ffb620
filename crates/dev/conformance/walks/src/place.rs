//! One package walks: there, and back.

use super::back;
use super::ground::{CATALOGS, Ground, NAME, PLACE, There};
use super::stock::Item;
use super::{End, Walk};
use mainstay_api::resources::{CLUSTER_SERVICE_VERSION, INSTALL_PLAN, SUBSCRIPTION};
use mainstay_classic::FOLDER_ADDRESS;
use mainstay_client::{Cluster, ListParams, Patch, Selection, WatchEvent};
use mainstay_clock::Clock;
use mainstay_object::known::DEPLOYMENT;
use mainstay_object::{Object, Resource};
use parking_lot::Mutex;
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;

/// How it begins that nothing is wrong, and nothing comes.
pub(super) const NO_END: &str = "it comes to no end";
/// How often it is looked whether something was written.
const LOOK: Duration = Duration::from_millis(20);
/// After so many looks without news, what is wrong stays wrong: it is longer than a plan tries again what
/// failed. Looks are counted, not time: on a busy machine they come later, as does everything else.
const CALM: usize = 250;
/// After so many looks without news nothing more comes, also where nothing is wrong.
const HOPELESS: usize = 400;
/// How long a part of the way may take.
const LONGEST: Duration = Duration::from_mins(3);
/// What tells where a package is, with the field of its status that says so.
const TELLING: [(&Resource, &str); 4] = [
    (&SUBSCRIPTION, "state"),
    (&INSTALL_PLAN, "phase"),
    (&CLUSTER_SERVICE_VERSION, "phase"),
    (&DEPLOYMENT, "conditions"),
];

/// Walks a package, in a cluster of its own or in one that is there, and back if told so.
pub(super) async fn walk(item: Item, there: Option<There>, back: bool) -> Walk {
    let plan = item.plan();
    let mut walked = Walk {
        catalog: item.catalog.clone(),
        package: item.package.clone(),
        plan: plan.as_ref().ok().cloned(),
        seen: Vec::new(),
        company: Vec::new(),
        end: End::There,
        back: None,
    };
    if let Err(why) = plan {
        walked.end = End::Unreadable(why);
    } else if let Err(error) = go(&item, there.as_ref(), back, &mut walked).await {
        walked.end = End::Stuck(format!("{error:#}"));
    }
    walked
}

async fn go(
    item: &Item,
    there: Option<&There>,
    back: bool,
    walked: &mut Walk,
) -> anyhow::Result<()> {
    let Some(plan) = walked.plan.clone() else { return Ok(()) };
    let ground = match there {
        Some(there) => Ground::there(there, item).await?,
        None => Ground::own(item).await?,
    };
    if there.is_none() {
        ground.apply(source()).await?;
    }
    ground.apply(group(item, &plan)).await?;
    let outcome = if back {
        let way = back::Way { ground: &ground, item, plan: &plan };
        way.there_and_back(walked).await
    } else {
        once(&ground, item, &plan, walked).await
    };
    ground.leave().await?;
    outcome
}

/// Goes the way once, and notes what was seen of it.
pub(super) async fn once(
    ground: &Ground,
    item: &Item,
    plan: &super::Plan,
    walked: &mut Walk,
) -> anyhow::Result<()> {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let watcher = follow(&ground.cluster, Arc::clone(&seen)).await?;
    let outcome = legs(ground, item, plan).await;
    let versions = ground.list(&CLUSTER_SERVICE_VERSION).await;
    let own = ground.cluster.find(&SUBSCRIPTION, Some(PLACE), NAME).await?;
    let last = own.as_ref().and_then(|subscription| subscription.str(&["status", "installedCSV"]));
    // Its watch may be told later than who asks.
    for _ in 0..CALM {
        if seen.lock().last().map(String::as_str) == last {
            break;
        }
        tokio::time::sleep(LOOK).await;
    }
    walked.end = match outcome? {
        None => End::There,
        Some(why) => End::Stuck(why),
    };
    watcher.abort();
    walked.seen = std::mem::take(&mut *seen.lock());
    let own = |csv: &&Object| item.found().is_some_and(|found| found.bundle(csv.name()).is_some());
    walked.company =
        versions?.iter().filter(|csv| !own(csv)).map(|csv| csv.name().to_owned()).collect();
    Ok(())
}

/// Goes the way; the reason if it comes to no end.
async fn legs(ground: &Ground, item: &Item, plan: &super::Plan) -> anyhow::Result<Option<String>> {
    let mut at = plan.start.clone();
    for (number, leg) in plan.legs.iter().enumerate() {
        if number == 0 {
            ground.apply(subscription(item, plan, &leg.channel)).await?;
        } else {
            let patch = Patch::Merge(json!({"spec": {"channel": leg.channel}}));
            ground.cluster.patch(&SUBSCRIPTION, Some(PLACE), NAME, &patch).await?;
        }
        at = leg.hops.last().cloned().unwrap_or(at);
        if let Some(why) = arrives(ground, &at).await? {
            return Ok(Some(why));
        }
    }
    Ok(None)
}

/// The catalog, as an administrator applies it.
fn source() -> Value {
    json!({
        "apiVersion": "operators.coreos.com/v1alpha1", "kind": "CatalogSource",
        "metadata": {"name": NAME, "namespace": CATALOGS},
        "spec": {"sourceType": "grpc", "address": FOLDER_ADDRESS},
    })
}

/// The Subscription with which it begins.
fn subscription(item: &Item, plan: &super::Plan, channel: &str) -> Value {
    json!({
        "apiVersion": "operators.coreos.com/v1alpha1", "kind": "Subscription",
        "metadata": {"name": NAME, "namespace": PLACE},
        "spec": {
            "name": item.package, "channel": channel, "startingCSV": plan.start,
            "source": NAME, "sourceNamespace": CATALOGS,
        },
    })
}

/// A group with a target that as many versions of the way as possible support.
fn group(item: &Item, plan: &super::Plan) -> Value {
    let names = std::iter::once(&plan.start).chain(plan.legs.iter().flat_map(|leg| &leg.hops));
    let versions: Vec<Object> =
        names.filter_map(|name| item.found()?.bundle(name)?.csv().ok()?).collect();
    let support = |mode: &str| {
        let supports = |csv: &&Object| {
            let mut modes = csv.array(&["spec", "installModes"]).iter();
            modes.any(|install_mode| {
                install_mode["type"] == mode && install_mode["supported"] == true
            })
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
    json!({
        "apiVersion": "operators.coreos.com/v1", "kind": "OperatorGroup",
        "metadata": {"name": "group", "namespace": PLACE},
        "spec": best.map_or_else(|| json!({}), |(_, spec)| spec),
    })
}

/// Waits until a version runs and is the latest; the reason if that does not come.
async fn arrives(ground: &Ground, wanted: &str) -> anyhow::Result<Option<String>> {
    let clock = Clock::system();
    let began = clock.elapsed();
    let (mut revision, mut calm) = (None, 0);
    let mut complaint = None;
    loop {
        let now = ground.news(&TELLING.map(|(resource, _)| resource)).await?;
        if revision.as_ref() != Some(&now) {
            (revision, calm) = (Some(now), 0);
            let subscriptions = ground.list(&SUBSCRIPTION).await?;
            let versions = ground.list(&CLUSTER_SERVICE_VERSION).await?;
            let Some(own) = subscriptions.iter().find(|subscription| subscription.name() == NAME)
            else {
                continue;
            };
            let installed = own.str(&["status", "installedCSV"]) == Some(wanted);
            let latest = own.str(&["status", "state"]) == Some("AtLatestKnown");
            let runs = versions.iter().any(|csv| {
                csv.name() == wanted && csv.str(&["status", "phase"]) == Some("Succeeded")
            });
            if installed && latest && runs {
                return Ok(None);
            }
            complaint = wrong(own, &versions);
        }
        let end = match (&complaint, began + LONGEST < clock.elapsed()) {
            (Some(_), _) if calm > CALM => true,
            (None, _) if calm > HOPELESS => true,
            (_, late) => late,
        };
        if end {
            return Ok(Some(match complaint {
                Some(complaint) => complaint,
                None => format!("{NO_END}: {}", standing(ground).await?),
            }));
        }
        calm += 1;
        tokio::time::sleep(LOOK).await;
    }
}

/// Where everything stands, for want of a complaint.
async fn standing(ground: &Ground) -> anyhow::Result<String> {
    let mut all = Vec::new();
    for (kind, field) in TELLING {
        for object in ground.list(kind).await? {
            let what =
                object.get(&["status", field]).map_or_else(|| "new".to_owned(), Value::to_string);
            all.push(format!("{} {} is {what}", kind.kind, object.name()));
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
                    .filter(|requirement| {
                        requirement["status"] != "Present" && requirement["status"] != "Satisfied"
                    })
                    .map(|requirement| {
                        let parts = ["kind", "name", "message"].map(|key| text(requirement, key));
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
            let (WatchEvent::Added(subscription) | WatchEvent::Modified(subscription)) = event
            else {
                continue;
            };
            let installed = subscription.str(&["status", "installedCSV"]).unwrap_or_default();
            let mut seen = seen.lock();
            if subscription.name() == NAME
                && !installed.is_empty()
                && seen.last().is_none_or(|last| last != installed)
            {
                seen.push(installed.to_owned());
            }
        }
    }))
}
