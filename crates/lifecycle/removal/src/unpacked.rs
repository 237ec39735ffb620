//! Bundles that are kept in `ConfigMaps` because plans refer to them.
//!
//! Nobody takes these away while their catalog is there: they are owned by it. What a plan that is over
//! refers to is of no use any more; a plan that still needs it would fail without it.

use crate::{Parts, Removal, Target, World, item, step};
use mainstay_object::{NamespacedName, Object, known};
use serde::Deserialize;
use std::collections::BTreeSet;

/// What stands in the place of a manifest, in the form of OLM.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Reference {
    kind: String,
    name: String,
    namespace: String,
    #[serde(rename = "catalogSourceName")]
    _catalog: String,
}

/// References are short; most manifests are not.
const LONGEST: usize = 1 << 20;

/// The `ConfigMaps` that a plan refers to.
fn referred(plan: &Object) -> BTreeSet<NamespacedName> {
    let manifests = plan.array(&["status", "plan"]).iter();
    manifests
        .filter_map(|step| step["resource"]["manifest"].as_str())
        .filter(|manifest| manifest.len() < LONGEST && manifest.contains("\"catalogSourceName\""))
        .filter_map(|manifest| serde_json::from_str::<Reference>(manifest).ok())
        .filter(|reference| reference.kind == *known::CONFIG_MAP.kind)
        .map(|reference| NamespacedName::new(reference.namespace, reference.name))
        .collect()
}

/// The plans that go with the last of the Subscriptions that they were made for.
pub(crate) fn going<'a>(world: &'a World, target: &Target) -> impl Iterator<Item = &'a Object> {
    let subscriptions = world.subscriptions.iter();
    let going: BTreeSet<&str> = subscriptions
        .filter(|subscription| target.subscriptions.iter().any(|name| name == subscription.name()))
        .map(Object::uid)
        .collect();
    world.plans.iter().filter(move |plan| {
        let owners = plan.owner_references();
        !owners.is_empty() && owners.iter().all(|owner| going.contains(&*owner.uid))
    })
}

/// Where the plans of an operator have their manifests, as far as these do not stand in them.
pub(crate) fn maps(world: &World, target: &Target) -> BTreeSet<NamespacedName> {
    going(world, target).flat_map(referred).collect()
}

/// The `ConfigMaps`: each goes unless another plan that is not over refers to it.
pub(crate) fn unpacked(world: &World, target: &Target, parts: &Parts, removal: &mut Removal) {
    let gone: BTreeSet<&str> = going(world, target).map(Object::uid).collect();
    let over = |plan: &Object| {
        ["Complete", "Failed"].map(Some).contains(&plan.str(&["status", "phase"]))
            || gone.contains(plan.uid())
    };
    let others: Vec<&Object> = parts.plans.iter().filter(|plan| !over(plan)).collect();
    for map in &parts.unpacked {
        let needs = others.iter().find(|plan| referred(plan).contains(&map.key()));
        if let Some(plan) = needs {
            let why = format!("InstallPlan {} has yet to install what is in it", plan.key());
            let remedy = "it goes with its catalog, or once that plan is over".to_owned();
            removal.stays.push(item(map, why, Some(remedy)));
            continue;
        }
        removal.steps.push(step(&known::CONFIG_MAP, map));
        removal.goes.push(item(map, "manifests that its plans refer to", None));
    }
}
