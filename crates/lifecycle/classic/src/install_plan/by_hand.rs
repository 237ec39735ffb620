//! Plans that people write: versions by name, to which the steps have to be found.
//!
//! ```text
//! names ─► bundles of the visible catalogs ─► what these require and nobody has ─► steps
//! ```
//!
//! Nothing is chosen here: a name says which bundle is meant. Only what brings a required API is
//! looked for, among the heads of default channels, in the catalog of who requires it first.

use crate::csv::phase::refusals;
use crate::image::bundles::Key;
use crate::steps::{self, Chosen};
use mainstay_api::{
    Approval, ClusterServiceVersion, ConditionStatus, InstallPlan, InstallPlanCondition,
    InstallPlanConditionType, InstallPlanPhase, InstallPlanReason, InstallPlanStatus, Step, Time,
};
use mainstay_catalog::{Api, Bundle, Package};
use mainstay_object::{NamespacedName, Object};
use mainstay_registry::Index;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// A catalog that a plan may take bundles from.
pub(crate) struct Source {
    pub(crate) key: NamespacedName,
    pub(crate) index: Arc<Index>,
}

/// What steps are found from.
pub(crate) struct World<'a> {
    pub(crate) plan: &'a InstallPlan,
    /// Catalogs in the order in which they are asked.
    pub(crate) sources: Vec<Source>,
    /// The versions that the namespace has.
    pub(crate) present: BTreeSet<String>,
    /// APIs that somebody provides already.
    pub(crate) provided: BTreeSet<Api>,
    /// The objects of bundles by image.
    pub(crate) unpacked: BTreeMap<Key, Arc<Vec<Object>>>,
}

/// Why there are no steps.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Missing {
    /// Bundles have to be unpacked first.
    Images(BTreeSet<Key>),
    /// There is no such thing, or it cannot be installed.
    Refused(String),
}

/// Whether a plan is one that somebody wrote and that has no steps yet.
pub(crate) fn is_unresolved(plan: &InstallPlan) -> bool {
    let ours = plan.metadata.owner_references.iter().any(|it| it.kind == "Subscription");
    let new = matches!(plan.status.phase, InstallPlanPhase::None | InstallPlanPhase::Planning);
    !ours
        && new
        && plan.status.plan.is_empty()
        && !plan.spec.cluster_service_version_names.is_empty()
}

/// The status of a plan once its steps were looked for; none while they are being waited for.
pub(crate) fn status(
    plan: &InstallPlan,
    found: Result<Vec<Step>, String>,
    now: Time,
) -> InstallPlanStatus {
    let mut new = plan.status.clone();
    match found {
        Ok(steps) => {
            let approved = plan.spec.approved || plan.spec.approval == Approval::Automatic;
            new.phase = if approved {
                InstallPlanPhase::Installing
            } else {
                InstallPlanPhase::RequiresApproval
            };
            let catalogs: BTreeSet<&String> =
                steps.iter().map(|it| &it.resource.source_name).collect();
            new.catalog_sources = catalogs.into_iter().cloned().collect();
            new.plan = steps;
            resolved(&mut new, None, now);
        }
        Err(why) => {
            new.phase = InstallPlanPhase::Planning;
            resolved(&mut new, Some(&why), now);
        }
    }
    new
}

fn resolved(status: &mut InstallPlanStatus, failure: Option<&str>, now: Time) {
    let kind = InstallPlanConditionType::Resolved;
    let holds = ConditionStatus::from(failure.is_none());
    let message = failure.unwrap_or_default();
    if status
        .conditions
        .iter()
        .any(|it| it.kind == kind && it.status == holds && it.message == message)
    {
        return;
    }
    status.conditions.retain(|it| it.kind != kind);
    status.conditions.push(InstallPlanCondition {
        kind,
        status: holds,
        reason: failure.map_or_else(Default::default, |_| InstallPlanReason::InstallCheckFailed),
        message: message.to_owned(),
        last_update_time: Some(now),
        last_transition_time: Some(now),
    });
}

/// A bundle and where it comes from.
struct Found<'w> {
    source: &'w Source,
    package: &'w Package,
    bundle: &'w Arc<Bundle>,
}

/// The steps of a plan.
pub(crate) fn steps(world: &World<'_>) -> Result<Vec<Step>, Missing> {
    let mut chosen: Vec<Found<'_>> = Vec::new();
    for name in &world.plan.spec.cluster_service_version_names {
        chosen.push(named(world, name)?);
    }
    let mut at = 0;
    while at < chosen.len() {
        for api in chosen[at].bundle.required_apis() {
            let has = world.provided.contains(&api)
                || chosen.iter().any(|it| it.bundle.provided_apis().any(|its| its == api));
            if !has {
                let provider = provider(world, &chosen[at], &api)?;
                chosen.push(provider);
            }
        }
        at += 1;
    }
    let mut images = BTreeSet::new();
    let mut all = Vec::new();
    for found in &chosen {
        match steps_of(world, found) {
            Ok(steps) => all.extend(steps),
            Err(Missing::Images(keys)) => images.extend(keys),
            Err(refused) => return Err(refused),
        }
    }
    if images.is_empty() { Ok(steps::ordered(all)) } else { Err(Missing::Images(images)) }
}

fn named<'w>(world: &'w World<'_>, name: &str) -> Result<Found<'w>, Missing> {
    for source in &world.sources {
        for package in source.index.catalog().packages() {
            if let Some(bundle) = package.bundle(name) {
                return Ok(Found { source, package, bundle });
            }
        }
    }
    let asked: Vec<String> = world.sources.iter().map(|it| it.key.to_string()).collect();
    let asked = if asked.is_empty() { "there are none".to_owned() } else { asked.join(", ") };
    Err(Missing::Refused(format!("no catalog that can be read has a bundle {name}: {asked}")))
}

fn provider<'w>(world: &'w World<'_>, who: &Found<'w>, api: &Api) -> Result<Found<'w>, Missing> {
    let own = world.sources.iter().filter(|it| it.key == who.source.key);
    let others = world.sources.iter().filter(|it| it.key != who.source.key);
    for source in own.chain(others) {
        let mut standing = source.index.providers(api);
        let good = standing
            .find(|it| it.is_head() && *it.package.default_channel == *it.channel.name)
            .map(|it| Found { source, package: it.package, bundle: it.bundle });
        if let Some(good) = good {
            return Ok(good);
        }
    }
    Err(Missing::Refused(format!(
        "bundle {} requires {} ({}/{}), which nothing in the namespace and no default channel of a catalog provides",
        who.bundle.name, api.kind, api.group, api.version
    )))
}

/// The version of the namespace that a bundle replaces, by any channel that it is in.
fn replaced<'w>(world: &World<'_>, found: &Found<'w>) -> Option<&'w str> {
    let entries = found.package.channels().filter_map(|it| it.entry(&found.bundle.name));
    entries
        .flat_map(|it| it.replaces.iter().chain(&it.skips))
        .map(|it| &**it)
        .find(|it| world.present.contains(*it))
}

fn steps_of(world: &World<'_>, found: &Found<'_>) -> Result<Vec<Step>, Missing> {
    let Found { source, bundle, .. } = found;
    let name = &bundle.name;
    let refused = |why: String| Missing::Refused(format!("bundle {name} {why}"));
    let objects = if bundle.object_count() > 0 {
        bundle.objects().map_err(|error| refused(format!("cannot be read: {error}")))?
    } else if bundle.image.is_empty() {
        return Err(refused("has neither manifests nor an image".to_owned()));
    } else {
        let key = Key { catalog: source.key.clone(), image: bundle.image.to_string() };
        match world.unpacked.get(&key) {
            Some(objects) => objects.to_vec(),
            None => return Err(Missing::Images(BTreeSet::from([key]))),
        }
    };
    let (versions, others): (Vec<Object>, Vec<Object>) =
        objects.into_iter().partition(|it| it.kind() == "ClusterServiceVersion");
    let csv = versions
        .first()
        .filter(|it| *it.name() == **name)
        .ok_or_else(|| refused("has no ClusterServiceVersion of that name".to_owned()))?;
    let view = ClusterServiceVersion::from_object(csv)
        .map_err(|error| refused(format!("cannot be read: {error}")))?;
    if let Some(why) = refusals(&view) {
        return Err(refused(format!("cannot be installed: {why}")));
    }
    let properties: Vec<Value> =
        bundle.properties.iter().map(|it| json!({"type": *it.kind, "value": it.value()})).collect();
    Ok(steps::of_bundle(
        &world.plan.metadata.namespace,
        &Chosen {
            csv,
            objects: &others,
            properties: &properties,
            replaces: replaced(world, found).unwrap_or_default(),
            catalog: &source.key,
        },
    ))
}
