//! What belongs to an operator, and what becomes of it.

use crate::{
    Definition, Item, Parts, Removal, Step, Target, Wish, World, has, item, step, unpacked,
};
use mainstay_api::resources::{INSTALL_PLAN, OPERATOR};
use mainstay_api::{Operator, names};
use mainstay_cause::Cause;
use mainstay_object::{Object, Resource, Scope, known};
use std::collections::BTreeSet;

const DEFINITION: &Resource = &known::CUSTOM_RESOURCE_DEFINITION;

/// The kind of a definition, in the version that is stored.
pub(crate) fn resource(definition: &Object) -> Option<Resource> {
    let text = |path: &[&str]| definition.str(path).map(str::to_owned);
    let versions = definition.array(&["spec", "versions"]);
    let stored =
        versions.iter().find(|version| version["storage"] == true && version["served"] == true);
    let version = stored.or_else(|| versions.iter().find(|version| version["served"] == true))?;
    Some(Resource {
        group: text(&["spec", "group"])?.into(),
        version: version["name"].as_str()?.to_owned().into(),
        kind: text(&["spec", "names", "kind"])?.into(),
        plural: text(&["spec", "names", "plural"])?.into(),
        scope: match definition.str(&["spec", "scope"])? {
            "Namespaced" => Scope::Namespaced,
            _ => Scope::Cluster,
        },
    })
}

/// Objects of the kinds that an operator provides, and the definitions.
pub(crate) fn operands(
    parts: &Parts,
    target: &Target,
    wish: &Wish,
    removal: &mut Removal,
) -> Result<(), Cause> {
    let mut needed = Vec::new();
    for Definition { definition, objects } in &parts.definitions {
        let others = others(parts, target, definition);
        if wish.definitions && !others.is_empty() {
            let name = definition.name();
            needed.push(Cause::new(format!(
                "CustomResourceDefinition {name} is also of {}",
                others.join(", ")
            )));
        }
        let count = match objects.as_slice() {
            [] => "no objects of it".to_owned(),
            [one] => format!("one object of it: {}", one.key()),
            many => format!("{} objects of it", many.len()),
        };
        if wish.definitions {
            removal.goes.push(item(definition, count, None));
        } else {
            let remedy = match (objects.is_empty(), others.as_slice()) {
                (true, []) => Some("--definitions removes it".to_owned()),
                (false, []) => Some("--definitions removes it, with all of them".to_owned()),
                _ => None,
            };
            let why = match others.as_slice() {
                [] => count,
                _ => format!("{count}; also of {}", others.join(", ")),
            };
            removal.stays.push(item(definition, why, remedy));
        }
        for object in objects {
            if wish.operands && !wish.definitions && !target.watches(object) {
                let why = "the operator does not watch its namespace";
                removal.stays.push(item(object, why, None));
            } else {
                operand(definition, object, target, wish, removal);
            }
        }
    }
    if needed.is_empty() {
        return Ok(());
    }
    Err(Cause::new("definitions that other operators need cannot go")
        .because_all(needed)
        .remedy("leave --definitions away, or uninstall the others first"))
}

fn operand(
    definition: &Object,
    object: &Object,
    target: &Target,
    wish: &Wish,
    removal: &mut Removal,
) {
    let finalizers: Vec<&str> = object.finalizers().collect();
    if wish.operands || wish.definitions {
        let is_there = !target.versions.is_empty();
        let why = if is_there { "before the operator, which may have to do with it" } else { "" };
        removal.goes.push(item(object, why, None));
        if !is_there && !finalizers.is_empty() {
            let why = format!(
                "it has the finalizer {}, and the operator that would remove it is gone",
                finalizers.join(", ")
            );
            let remedy = format!(
                "install the operator again first, or take the finalizer off: kubectl patch {} {}{} --type merge -p '{{\"metadata\":{{\"finalizers\":null}}}}'",
                definition.name(),
                object.name(),
                match object.namespace() {
                    "" => String::new(),
                    namespace => format!(" -n {namespace}"),
                }
            );
            removal.hangs.push(item(object, why, Some(remedy)));
        }
        if let Some(resource) = resource(definition) {
            removal.steps.push(step(&resource, object));
        }
        return;
    }
    removal.stays.push(item(object, "", Some("--operands removes it first".to_owned())));
    if !finalizers.is_empty() {
        let why = format!(
            "it has the finalizer {}, which nobody removes once the operator is gone: deleting it then, its namespace or its definition would wait for ever",
            finalizers.join(", ")
        );
        removal.hangs.push(item(object, why, Some("--operands removes it first".to_owned())));
    }
}

/// Other versions, which are there, that say that a definition is theirs.
fn others(parts: &Parts, target: &Target, definition: &Object) -> Vec<String> {
    let own: BTreeSet<String> =
        target.versions.iter().map(|csv| format!("{}/{csv}", target.namespace)).collect();
    let mut others: Vec<String> = definition
        .annotations()
        .filter(|(key, _)| key.starts_with(names::INSTALLED_ALONGSIDE_PREFIX))
        .map(|(_, value)| value.to_owned())
        .filter(|csv| !own.contains(csv) && parts.versions.contains(csv))
        .collect();
    others.sort_unstable();
    others
}

/// What goes with the versions: their parts, as labels and owners tell. What the `Operator` lists besides
/// stays.
pub(crate) fn owned(parts: &Parts, removal: &mut Removal) {
    let all: BTreeSet<Item> = parts.owned.iter().map(|part| item(&part.1, "", None)).collect();
    let operator = parts.operator.as_ref().and_then(|object| Operator::from_object(object).ok());
    let refs = operator
        .and_then(|operator| operator.status.components)
        .map(|components| components.refs)
        .unwrap_or_default();
    let mut besides = false;
    for part in refs {
        // Of these it is told by themselves; namespaces have only a label of it.
        let told = [
            "Subscription",
            "ClusterServiceVersion",
            "InstallPlan",
            "CustomResourceDefinition",
            "Namespace",
        ];
        let same = |one: &Item| {
            one.kind == part.kind && one.namespace == part.namespace && one.name == part.name
        };
        if !told.contains(&&*part.kind) && !all.iter().any(same) {
            besides = true;
            removal.stays.push(Item {
                kind: part.kind,
                namespace: part.namespace,
                name: part.name,
                why: "it is listed as a part of the operator, and also of others, or of no version of it".to_owned(),
                remedy: None,
            });
        }
    }
    removal.goes.extend(all);
    for (resource, object) in &parts.owned {
        removal.steps.push(Step { follows: true, ..step(resource, object) });
    }
    if let Some(operator) = &parts.operator {
        if besides || removal.stays.iter().any(|item| item.kind == *DEFINITION.kind) {
            let why = "it lists what is left of the operator";
            removal.stays.push(item(operator, why, None));
        } else {
            // While there are parts that it can list it would come again.
            removal.steps.push(step(&OPERATOR, operator));
            removal.goes.push(item(operator, "", None));
        }
    }
}

/// InstallPlans: each goes with the last of the Subscriptions that own it. Those of the operator that
/// another Subscription owns, or none, stay.
pub(crate) fn plans(world: &World, target: &Target, removal: &mut Removal) {
    for plan in unpacked::going(world, target) {
        removal.steps.push(Step { follows: true, ..step(&INSTALL_PLAN, plan) });
        removal.goes.push(item(plan, "", None));
    }
    let label =
        target.package.as_ref().map(|package| names::component_label(package, &target.namespace));
    let is_labelled =
        |plan: &Object| label.as_ref().is_some_and(|label| plan.label(label).is_some());
    let own = uids(world, target);
    for plan in world.plans.iter().filter(|plan| is_of(plan, target, &own) || is_labelled(plan)) {
        let owners = plan.owner_references();
        let others =
            world.subscriptions.iter().filter(|subscription| !own.contains(subscription.uid()));
        let others: Vec<&str> = others
            .filter(|subscription| owners.iter().any(|owner| owner.uid == subscription.uid()))
            .map(Object::name)
            .collect();
        let delete = format!("kubectl -n {} delete installplan {}", plan.namespace(), plan.name());
        let (why, remedy) = match others.as_slice() {
            [] if owners.is_empty() => {
                ("no Subscription owns it".to_owned(), format!("if nobody needs it: {delete}"))
            }
            // Its owners go, or are gone: so does it.
            [] => continue,
            [one] => (
                format!("Subscription {one} owns it, too"),
                format!("it goes with that Subscription, or with: {delete}"),
            ),
            several => (
                format!("Subscriptions {} own it, too", several.join(", ")),
                format!("it goes with the last of them, or with: {delete}"),
            ),
        };
        removal.stays.push(item(plan, why, Some(remedy)));
    }
}

/// The uids of an operator's Subscriptions.
fn uids<'w>(world: &'w World, target: &Target) -> BTreeSet<&'w str> {
    let own =
        world.subscriptions.iter().filter(|subscription| has(&target.subscriptions, subscription));
    own.map(Object::uid).collect()
}

/// Whether an InstallPlan is one of an operator: it names a version, or a Subscription with one of these
/// uids owns it. One of an earlier version brought what is needed since.
fn is_of(plan: &Object, target: &Target, own: &BTreeSet<&str>) -> bool {
    let names = plan.array(&["spec", "clusterServiceVersionNames"]);
    names.iter().any(|name| target.versions.iter().any(|version| version == name))
        || plan.owner_references().iter().any(|owner| own.contains(&*owner.uid))
}

/// Subscriptions that came along, because the operator needs what they bring.
pub(crate) fn dependencies(world: &World, target: &Target, removal: &mut Removal) {
    let own = uids(world, target);
    let plans = world.plans.iter().filter(|plan| is_of(plan, target, &own));
    let plans: BTreeSet<&str> = plans.map(Object::name).collect();
    for subscription in &world.subscriptions {
        let came =
            subscription.annotation(names::GENERATED_BY).is_some_and(|plan| plans.contains(plan));
        if came && !target.subscriptions.iter().any(|own| own == subscription.name()) {
            let remedy = format!(
                "if nobody else needs it: mainstay uninstall -n {} {}",
                target.namespace,
                subscription.name()
            );
            removal.stays.push(item(subscription, "it came along as a dependency", Some(remedy)));
        }
    }
}
