//! Bundle ConfigMaps: manifests that InstallPlans reference because they are too large for a plan.
//!
//! The CatalogSource owns these ConfigMaps, so the garbage collector keeps them as long as it exists.
//! A finished plan needs them no more; a plan in progress would fail without them.

use crate::{InstalledOperator, OperatorObjects, OperatorParts, UninstallPlan, item, step};
use mainstay_object::{NamespacedName, Object, builtin};
use serde::Deserialize;
use std::collections::BTreeSet;

/// The reference that OLM writes in place of a manifest.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Reference {
    kind: String,
    name: String,
    namespace: String,
    #[serde(rename = "catalogSourceName")]
    _catalog: String,
}

/// Most bytes of a manifest that is parsed as a reference: references are short.
const MAX_REFERENCE_BYTES: usize = 1 << 20;

/// The ConfigMaps that an InstallPlan references: they hold manifests too large for a plan.
pub(crate) fn referenced_config_maps(plan: &Object) -> BTreeSet<NamespacedName> {
    let manifests = plan.array(&["status", "plan"]).iter();
    manifests
        .filter_map(|step| step["resource"]["manifest"].as_str())
        .filter(|manifest| {
            manifest.len() < MAX_REFERENCE_BYTES && manifest.contains("\"catalogSourceName\"")
        })
        .filter_map(|manifest| serde_json::from_str::<Reference>(manifest).ok())
        .filter(|reference| reference.kind == *builtin::CONFIG_MAP.kind)
        .map(|reference| NamespacedName::new(reference.namespace, reference.name))
        .collect()
}

/// The InstallPlans that go when their owners go: each has owners, and all have one of these uids.
pub fn plans_owned_by<'p>(
    plans: &'p [Object],
    uids: &BTreeSet<&str>,
) -> impl Iterator<Item = &'p Object> {
    plans.iter().filter(move |plan| {
        let owners = plan.owner_references();
        !owners.is_empty() && owners.iter().all(|owner| uids.contains(&*owner.uid))
    })
}

/// The bundle ConfigMaps that may go with InstallPlans: those that they reference, and that no other unfinished
/// plan references. `all_plans` are the InstallPlans of all namespaces.
pub fn deletable_config_maps(
    deleted: &[&Object],
    all_plans: &[Object],
) -> BTreeSet<NamespacedName> {
    let open_plans = open_plans(deleted, all_plans);
    let mut keys: BTreeSet<NamespacedName> =
        deleted.iter().flat_map(|plan| referenced_config_maps(plan)).collect();
    keys.retain(|key| needed_by(key, &open_plans).is_none());
    keys
}

/// The unfinished plans, without those that are deleted.
fn open_plans<'p>(deleted: &[&Object], all_plans: &'p [Object]) -> Vec<&'p Object> {
    let is_open = |plan: &&Object| {
        !["Complete", "Failed"].map(Some).contains(&plan.str(&["status", "phase"]))
            && !deleted.iter().any(|deleted| deleted.uid() == plan.uid())
    };
    all_plans.iter().filter(is_open).collect()
}

fn needed_by<'p>(config_map: &NamespacedName, open_plans: &[&'p Object]) -> Option<&'p Object> {
    open_plans.iter().find(|plan| referenced_config_maps(plan).contains(config_map)).copied()
}

/// The plans that go with the Subscriptions of an operator.
pub(crate) fn deleted_install_plans<'a>(
    objects: &'a OperatorObjects,
    target: &InstalledOperator,
) -> Vec<&'a Object> {
    let subscriptions = objects.subscriptions.iter();
    let deleted_uids: BTreeSet<&str> = subscriptions
        .filter(|subscription| target.subscriptions.iter().any(|name| name == subscription.name()))
        .map(Object::uid)
        .collect();
    plans_owned_by(&objects.plans, &deleted_uids).collect()
}

/// The bundle ConfigMaps that the plans of an operator reference.
pub(crate) fn find(
    objects: &OperatorObjects,
    target: &InstalledOperator,
) -> BTreeSet<NamespacedName> {
    deleted_install_plans(objects, target).into_iter().flat_map(referenced_config_maps).collect()
}

/// Adds the bundle ConfigMaps. Each goes unless another unfinished plan references it.
pub(crate) fn add(
    objects: &OperatorObjects,
    target: &InstalledOperator,
    parts: &OperatorParts,
    removal: &mut UninstallPlan,
) {
    let open_plans = open_plans(&deleted_install_plans(objects, target), &parts.plans);
    for config_map in &parts.unpacked {
        if let Some(plan) = needed_by(&config_map.key(), &open_plans) {
            let why = format!("InstallPlan {} has not installed its content yet", plan.key());
            let remedy =
                "it is deleted with its catalog, or after the end of that InstallPlan".to_owned();
            removal.retained.push(item(config_map, why, Some(remedy)));
            continue;
        }
        removal.steps.push(step(&builtin::CONFIG_MAP, config_map));
        removal.deleted.push(item(config_map, "manifests that its InstallPlans reference", None));
    }
}
