//! The objects of an operator: which of them go, and which stay.

use crate::{
    DeletionStep, InstalledOperator, OperatorCrd, OperatorObjects, OperatorParts, PlanItem,
    UninstallPlan, UninstallRequest, config_maps, contains_name, item, step,
};
use mainstay_api::resources::{INSTALL_PLAN, OPERATOR};
use mainstay_api::{Operator, names};
use mainstay_cause::Cause;
use mainstay_object::{Object, Resource, Scope, builtin};
use std::collections::BTreeSet;

const CRD: &Resource = &builtin::CUSTOM_RESOURCE_DEFINITION;

/// The resource that a CustomResourceDefinition defines, in its storage version if that is served.
pub(crate) fn crd_resource(crd: &Object) -> Option<Resource> {
    let text = |path: &[&str]| crd.str(path).map(str::to_owned);
    let versions = crd.array(&["spec", "versions"]);
    let storage_version =
        versions.iter().find(|version| version["storage"] == true && version["served"] == true);
    let version =
        storage_version.or_else(|| versions.iter().find(|version| version["served"] == true))?;
    Some(Resource {
        group: text(&["spec", "group"])?.into(),
        version: version["name"].as_str()?.to_owned().into(),
        kind: text(&["spec", "names", "kind"])?.into(),
        plural: text(&["spec", "names", "plural"])?.into(),
        scope: match crd.str(&["spec", "scope"])? {
            "Namespaced" => Scope::Namespaced,
            _ => Scope::Cluster,
        },
    })
}

/// Adds the operands of an operator, and its CustomResourceDefinitions.
pub(crate) fn add_operands_and_crds(
    parts: &OperatorParts,
    target: &InstalledOperator,
    request: &UninstallRequest,
    removal: &mut UninstallPlan,
) -> Result<(), Cause> {
    let mut conflicts = Vec::new();
    for OperatorCrd { definition, objects } in &parts.definitions {
        let others = other_owners(parts, target, definition);
        if request.definitions && !others.is_empty() {
            let name = definition.name();
            conflicts.push(Cause::new(format!(
                "CustomResourceDefinition {name} also belongs to {}",
                others.join(", ")
            )));
        }
        let count = match objects.as_slice() {
            [] => "it has no objects".to_owned(),
            [one] => format!("it has one object: {}", one.key()),
            many => format!("it has {} objects", many.len()),
        };
        if request.definitions {
            removal.deleted.push(item(definition, count, None));
        } else {
            let remedy = match (objects.is_empty(), others.as_slice()) {
                (true, []) => Some("--definitions deletes it".to_owned()),
                (false, []) => Some("--definitions deletes it and all its objects".to_owned()),
                _ => None,
            };
            let why = match others.as_slice() {
                [] => count,
                _ => format!("{count}; it also belongs to {}", others.join(", ")),
            };
            removal.retained.push(item(definition, why, remedy));
        }
        for object in objects {
            if request.operands && !request.definitions && !target.watches(object) {
                let why = "the operator does not watch its namespace";
                removal.retained.push(item(object, why, None));
            } else {
                add_operand(definition, object, target, request, removal);
            }
        }
    }
    if conflicts.is_empty() {
        return Ok(());
    }
    Err(Cause::new("CustomResourceDefinitions that other operators need cannot be deleted")
        .because_all(conflicts)
        .remedy("omit --definitions, or uninstall the other operators first"))
}

fn add_operand(
    crd: &Object,
    object: &Object,
    target: &InstalledOperator,
    request: &UninstallRequest,
    removal: &mut UninstallPlan,
) {
    let finalizers: Vec<&str> = object.finalizers().collect();
    if request.operands || request.definitions {
        let has_operator = !target.versions.is_empty();
        let why =
            if has_operator { "before the operator, which may have to finalize it" } else { "" };
        removal.deleted.push(item(object, why, None));
        if !has_operator && !finalizers.is_empty() {
            let why = format!(
                "it has the finalizer {}, and the operator that removes it is uninstalled",
                finalizers.join(", ")
            );
            let remedy = format!(
                "install the operator again first, or remove the finalizer: kubectl patch {} {}{} --type merge -p '{{\"metadata\":{{\"finalizers\":null}}}}'",
                crd.name(),
                object.name(),
                match object.namespace() {
                    "" => String::new(),
                    namespace => format!(" -n {namespace}"),
                }
            );
            removal.stuck.push(item(object, why, Some(remedy)));
        }
        if let Some(resource) = crd_resource(crd) {
            removal.steps.push(step(&resource, object));
        }
        return;
    }
    removal.retained.push(item(object, "", Some("--operands deletes it first".to_owned())));
    if !finalizers.is_empty() {
        let why = format!(
            "it has the finalizer {}, which only the operator removes: after the uninstallation, the deletion of the object, its namespace or its CustomResourceDefinition never finishes",
            finalizers.join(", ")
        );
        removal.stuck.push(item(object, why, Some("--operands deletes it first".to_owned())));
    }
}

/// The existing ClusterServiceVersions of other operators that a CustomResourceDefinition names as
/// installed with it.
fn other_owners(parts: &OperatorParts, target: &InstalledOperator, crd: &Object) -> Vec<String> {
    let own_csvs: BTreeSet<String> =
        target.versions.iter().map(|csv| format!("{}/{csv}", target.namespace)).collect();
    let mut others: Vec<String> = crd
        .annotations()
        .filter(|(key, _)| key.starts_with(names::INSTALLED_ALONGSIDE_PREFIX))
        .map(|(_, value)| value.to_owned())
        .filter(|csv| !own_csvs.contains(csv) && parts.versions.contains(csv))
        .collect();
    others.sort_unstable();
    others
}

/// Adds the objects that labels or owner references join to the ClusterServiceVersions. Other components
/// that the `Operator` lists stay.
pub(crate) fn add_owned(parts: &OperatorParts, removal: &mut UninstallPlan) {
    let items: BTreeSet<PlanItem> =
        parts.owned.iter().map(|component| item(&component.1, "", None)).collect();
    let operator = parts.operator.as_ref().and_then(|object| Operator::from_object(object).ok());
    let components = operator
        .and_then(|operator| operator.status.components)
        .map(|components| components.refs)
        .unwrap_or_default();
    let mut has_other_components = false;
    for component in components {
        // These kinds have entries of their own; a Namespace only has the label of the operator.
        let separate_kinds = [
            "Subscription",
            "ClusterServiceVersion",
            "InstallPlan",
            "CustomResourceDefinition",
            "Namespace",
        ];
        let is_same = |item: &PlanItem| {
            item.kind == component.kind
                && item.namespace == component.namespace
                && item.name == component.name
        };
        if !separate_kinds.contains(&&*component.kind) && !items.iter().any(is_same) {
            has_other_components = true;
            removal.retained.push(PlanItem {
                kind: component.kind,
                namespace: component.namespace,
                name: component.name,
                reason:
                    "the Operator lists it as a component, but it also has other owners, or none"
                        .to_owned(),
                remedy: None,
            });
        }
    }
    removal.deleted.extend(items);
    for (resource, object) in &parts.owned {
        removal.steps.push(DeletionStep { is_garbage_collected: true, ..step(resource, object) });
    }
    if let Some(operator) = &parts.operator {
        if has_other_components || removal.retained.iter().any(|item| item.kind == *CRD.kind) {
            let why = "it lists the components that are kept";
            removal.retained.push(item(operator, why, None));
        } else {
            // Last: the Operator is created again while it has components.
            removal.steps.push(step(&OPERATOR, operator));
            removal.deleted.push(item(operator, "", None));
        }
    }
}

/// Adds the InstallPlans. Each goes with the last Subscription that owns it; a plan of the operator
/// that another Subscription owns, or none, stays.
pub(crate) fn add_install_plans(
    objects: &OperatorObjects,
    target: &InstalledOperator,
    removal: &mut UninstallPlan,
) {
    for plan in config_maps::deleted_install_plans(objects, target) {
        removal
            .steps
            .push(DeletionStep { is_garbage_collected: true, ..step(&INSTALL_PLAN, plan) });
        removal.deleted.push(item(plan, "", None));
    }
    let label =
        target.package.as_ref().map(|package| names::component_label(package, &target.namespace));
    let is_labelled =
        |plan: &Object| label.as_ref().is_some_and(|label| plan.label(label).is_some());
    let own_uids = subscription_uids(objects, target);
    for plan in objects
        .plans
        .iter()
        .filter(|plan| is_of_operator(plan, target, &own_uids) || is_labelled(plan))
    {
        let owners = plan.owner_references();
        let others = objects
            .subscriptions
            .iter()
            .filter(|subscription| !own_uids.contains(subscription.uid()));
        let others: Vec<&str> = others
            .filter(|subscription| owners.iter().any(|owner| owner.uid == subscription.uid()))
            .map(Object::name)
            .collect();
        let delete = format!("kubectl -n {} delete installplan {}", plan.namespace(), plan.name());
        let (why, remedy) = match others.as_slice() {
            [] if owners.is_empty() => {
                ("no Subscription owns it".to_owned(), format!("if it is not needed: {delete}"))
            }
            // All its owners go or are gone, so the plan goes with them.
            [] => continue,
            [one] => (
                format!("Subscription {one} also owns it"),
                format!("it is deleted with that Subscription, or with: {delete}"),
            ),
            several => (
                format!("Subscriptions {} also own it", several.join(", ")),
                format!("it is deleted with the last of them, or with: {delete}"),
            ),
        };
        removal.retained.push(item(plan, why, Some(remedy)));
    }
}

/// The uids of the Subscriptions of an operator.
fn subscription_uids<'w>(
    objects: &'w OperatorObjects,
    target: &InstalledOperator,
) -> BTreeSet<&'w str> {
    let own_subscriptions = objects
        .subscriptions
        .iter()
        .filter(|subscription| contains_name(&target.subscriptions, subscription));
    own_subscriptions.map(Object::uid).collect()
}

/// Whether an InstallPlan belongs to an operator: it names one of its ClusterServiceVersions, or a
/// Subscription with one of the uids owns it, as with plans of earlier versions, whose dependencies
/// the operator still needs.
fn is_of_operator(plan: &Object, target: &InstalledOperator, own_uids: &BTreeSet<&str>) -> bool {
    let names = plan.array(&["spec", "clusterServiceVersionNames"]);
    names.iter().any(|name| target.versions.iter().any(|version| version == name))
        || plan.owner_references().iter().any(|owner| own_uids.contains(&*owner.uid))
}

/// Adds the Subscriptions of dependencies, which stay.
pub(crate) fn add_dependencies(
    objects: &OperatorObjects,
    target: &InstalledOperator,
    removal: &mut UninstallPlan,
) {
    let own_uids = subscription_uids(objects, target);
    let plans = objects.plans.iter().filter(|plan| is_of_operator(plan, target, &own_uids));
    let plans: BTreeSet<&str> = plans.map(Object::name).collect();
    for subscription in &objects.subscriptions {
        let is_dependency =
            subscription.annotation(names::GENERATED_BY).is_some_and(|plan| plans.contains(plan));
        if is_dependency && !target.subscriptions.iter().any(|name| name == subscription.name()) {
            let remedy = format!(
                "if no other operator needs it: mainstay uninstall -n {} {}",
                target.namespace,
                subscription.name()
            );
            removal.retained.push(item(
                subscription,
                "it was installed as a dependency",
                Some(remedy),
            ));
        }
    }
}
