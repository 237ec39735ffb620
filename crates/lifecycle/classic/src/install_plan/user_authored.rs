//! User-authored InstallPlans: resolves the steps for a list of CSV names.
//!
//! ```text
//! names ─► bundles of the visible catalogs ─► bundles for APIs that are missing ─► steps
//! ```
//!
//! The author may write the status and steps next, as upstream ignores InstallPlans without
//! steps. So the controller ignores a new InstallPlan for a moment ([`NewPlans`]).
//!
//! There is no dependency resolution: each name selects its bundle. Only a required API that is
//! missing selects another bundle. It must be the head of a default channel, and the catalog of the
//! requiring bundle comes first.

use crate::image::bundles::Key;
use crate::steps::{self, BundleInstall, BundleSteps, NoSteps};
use mainstay_api::{
    Approval, BundleLookup, ConditionStatus, InstallPlan, InstallPlanCondition,
    InstallPlanConditionType, InstallPlanPhase, InstallPlanReason, InstallPlanStatus, Step, Time,
};
use mainstay_catalog::{Bundle, BundleApi, Package};
use mainstay_object::{NamespacedName, Object};
use mainstay_registry::RegistryIndex;
use parking_lot::Mutex;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

/// A catalog that an InstallPlan may take bundles from.
pub(crate) struct Source {
    pub(crate) key: NamespacedName,
    pub(crate) index: Arc<RegistryIndex>,
}

/// The input that steps are resolved from.
pub(crate) struct UserPlanInput<'a> {
    pub(crate) plan: &'a InstallPlan,
    /// Catalogs in order of preference.
    pub(crate) sources: Vec<Source>,
    /// The CSVs of the namespace.
    pub(crate) present: BTreeSet<String>,
    /// The APIs that existing CSVs provide.
    pub(crate) provided: BTreeSet<BundleApi>,
    /// The objects of unpacked bundles, by image.
    pub(crate) unpacked: BTreeMap<Key, Arc<Vec<Object>>>,
}

/// How long a new InstallPlan is ignored.
const NEW_PLAN_DELAY: Duration = Duration::from_millis(500);

/// InstallPlans without steps, and when each was first seen, by the clock's elapsed time.
#[derive(Debug, Default)]
pub(crate) struct NewPlans(Mutex<HashMap<NamespacedName, Duration>>);

impl NewPlans {
    /// How much longer an InstallPlan is ignored.
    pub(crate) fn remaining(&self, key: &NamespacedName, now: Duration) -> Option<Duration> {
        let since = *self.0.lock().entry(key.clone()).or_insert(now);
        NEW_PLAN_DELAY.checked_sub(now.saturating_sub(since)).filter(|left| !left.is_zero())
    }

    /// Forgets an InstallPlan that was deleted or has steps.
    pub(crate) fn forget(&self, key: &NamespacedName) {
        self.0.lock().remove(key);
    }
}

/// The steps of an InstallPlan.
#[derive(Debug, Default)]
pub(crate) struct ResolvedSteps {
    pub(crate) steps: Vec<Step>,
    /// The entries for bundles that came as images.
    pub(crate) lookups: Vec<BundleLookup>,
}

/// Why an InstallPlan has no steps yet.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum UnresolvedSteps {
    /// Bundles must be unpacked first.
    Images(BTreeSet<Key>),
    /// A bundle is missing or cannot be installed.
    Refused(String),
}

/// The steps of an InstallPlan cannot be resolved; the text is the message of its condition.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub(crate) struct UnresolvedPlan(pub(crate) String);

/// Whether an InstallPlan is user-authored and has no steps yet.
pub(crate) fn is_unresolved(plan: &InstallPlan) -> bool {
    let ours = plan.metadata.owner_references.iter().any(|owner| owner.kind == "Subscription");
    let new = matches!(plan.status.phase, InstallPlanPhase::None | InstallPlanPhase::Planning);
    !ours
        && new
        && plan.status.plan.is_empty()
        && !plan.spec.cluster_service_version_names.is_empty()
}

/// The status of an InstallPlan after its steps were resolved, or could not be.
pub(crate) fn status(
    plan: &InstallPlan,
    found: Result<ResolvedSteps, UnresolvedPlan>,
    now: Time,
) -> InstallPlanStatus {
    let mut new = plan.status.clone();
    match found {
        Ok(ResolvedSteps { steps, lookups }) => {
            let approved = plan.spec.approved || plan.spec.approval == Approval::Automatic;
            new.phase = if approved {
                InstallPlanPhase::Installing
            } else {
                InstallPlanPhase::RequiresApproval
            };
            let catalogs: BTreeSet<&String> =
                steps.iter().map(|step| &step.resource.source_name).collect();
            new.catalog_sources = catalogs.into_iter().cloned().collect();
            new.plan = steps;
            new.bundle_lookups = lookups;
            set_resolved_condition(&mut new, None, now);
        }
        Err(UnresolvedPlan(why)) => {
            new.phase = InstallPlanPhase::Planning;
            set_resolved_condition(&mut new, Some(&why), now);
        }
    }
    new
}

fn set_resolved_condition(status: &mut InstallPlanStatus, failure: Option<&str>, now: Time) {
    let kind = InstallPlanConditionType::Resolved;
    let holds = ConditionStatus::from(failure.is_none());
    let message = failure.unwrap_or_default();
    if status.conditions.iter().any(|condition| {
        condition.kind == kind && condition.status == holds && condition.message == message
    }) {
        return;
    }
    status.conditions.retain(|condition| condition.kind != kind);
    status.conditions.push(InstallPlanCondition {
        kind,
        status: holds,
        reason: failure.map_or_else(Default::default, |_| InstallPlanReason::InstallCheckFailed),
        message: message.to_owned(),
        last_update_time: Some(now),
        last_transition_time: Some(now),
    });
}

/// A bundle and its origin.
struct ChosenBundle<'w> {
    source: &'w Source,
    package: &'w Package,
    bundle: &'w Arc<Bundle>,
}

/// Resolves the steps of an InstallPlan.
pub(crate) fn steps(input: &UserPlanInput<'_>) -> Result<ResolvedSteps, UnresolvedSteps> {
    let mut chosen: Vec<ChosenBundle<'_>> = Vec::new();
    for name in &input.plan.spec.cluster_service_version_names {
        chosen.push(bundle_named(input, name)?);
    }
    let mut at = 0;
    while at < chosen.len() {
        for api in chosen[at].bundle.required_apis() {
            let has = input.provided.contains(&api)
                || chosen.iter().any(|choice| choice.bundle.provided_apis().any(|its| its == api));
            if !has {
                let provider = provider(input, &chosen[at], &api)?;
                chosen.push(provider);
            }
        }
        at += 1;
    }
    let mut images = BTreeSet::new();
    let mut all = ResolvedSteps::default();
    for found in &chosen {
        match steps_of(input, found) {
            Ok((steps, lookup)) => {
                all.steps.extend(steps);
                all.lookups.extend(lookup.map(|(_, lookup)| lookup));
            }
            Err(NoSteps::Image(key)) => {
                images.insert(key);
            }
            Err(NoSteps::Refused(why)) => return Err(UnresolvedSteps::Refused(why)),
        }
    }
    all.steps = steps::in_install_order(all.steps);
    if images.is_empty() { Ok(all) } else { Err(UnresolvedSteps::Images(images)) }
}

fn bundle_named<'w>(
    input: &'w UserPlanInput<'_>,
    name: &str,
) -> Result<ChosenBundle<'w>, UnresolvedSteps> {
    for source in &input.sources {
        for package in source.index.catalog().packages() {
            if let Some(bundle) = package.bundle(name) {
                return Ok(ChosenBundle { source, package, bundle });
            }
        }
    }
    let searched: Vec<String> = input.sources.iter().map(|source| source.key.to_string()).collect();
    let searched =
        if searched.is_empty() { "there are none".to_owned() } else { searched.join(", ") };
    Err(UnresolvedSteps::Refused(format!(
        "no catalog that can be read has a bundle {name}: {searched}"
    )))
}

fn provider<'w>(
    input: &'w UserPlanInput<'_>,
    requiring: &ChosenBundle<'w>,
    api: &BundleApi,
) -> Result<ChosenBundle<'w>, UnresolvedSteps> {
    let own = input.sources.iter().filter(|source| source.key == requiring.source.key);
    let others = input.sources.iter().filter(|source| source.key != requiring.source.key);
    for source in own.chain(others) {
        let mut providers = source.index.providers(api);
        let found = providers
            .find(|provider| {
                provider.is_head() && *provider.package.default_channel == *provider.channel.name
            })
            .map(|provider| ChosenBundle {
                source,
                package: provider.package,
                bundle: provider.bundle,
            });
        if let Some(found) = found {
            return Ok(found);
        }
    }
    Err(UnresolvedSteps::Refused(format!(
        "bundle {} requires {} ({}/{}), which nothing in the namespace and no default channel of a catalog provides",
        requiring.bundle.name, api.kind, api.group, api.version
    )))
}

/// The CSV of the namespace that a bundle replaces, in any channel of the bundle.
fn replaced_csv<'w>(input: &UserPlanInput<'_>, found: &ChosenBundle<'w>) -> Option<&'w str> {
    let entries = found.package.channels().filter_map(|channel| channel.entry(&found.bundle.name));
    entries
        .flat_map(|entry| entry.replaces.iter().chain(&entry.skips))
        .map(|name| &**name)
        .find(|name| input.present.contains(*name))
}

fn steps_of(input: &UserPlanInput<'_>, found: &ChosenBundle<'_>) -> Result<BundleSteps, NoSteps> {
    let wanted = BundleInstall {
        bundle: found.bundle,
        catalog: &found.source.key,
        replaces: replaced_csv(input, found).unwrap_or_default(),
        unpacked: &input.unpacked,
    };
    steps::for_install(&input.plan.metadata.namespace, &wanted)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_user_authored_install_plan_is_ignored_for_a_moment() {
        let (new_plans, key) = (NewPlans::default(), NamespacedName::new("ns", "install-a"));
        let millis = Duration::from_millis;
        assert_eq!(new_plans.remaining(&key, millis(1000)), Some(millis(500)));
        assert_eq!(new_plans.remaining(&key, millis(1400)), Some(millis(100)));
        assert_eq!(new_plans.remaining(&key, millis(1500)), None);
        assert_eq!(new_plans.remaining(&key, millis(9000)), None);
        // A later InstallPlan of the same name is a new one.
        new_plans.forget(&key);
        assert_eq!(new_plans.remaining(&key, millis(9000)), Some(millis(500)));
    }
}
