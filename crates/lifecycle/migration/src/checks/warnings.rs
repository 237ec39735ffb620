//! What an administrator should know, and what is in the way of nothing.

use super::CheckInput;
use crate::freeze::is_frozen;
use crate::installed::{installed_csv, package_of, properties, reference};
use mainstay_api::names;
use mainstay_object::Object;
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// The warnings about an operator.
pub(super) fn of(input: &CheckInput<'_>) -> Vec<String> {
    let mut warnings = Vec::new();
    let package = package_of(input.subscription);
    let own = installed_csv(input.subscription);
    let provided: Vec<Value> = input
        .csv
        .map(|csv| csv.array(&["spec", "customresourcedefinitions", "owned"]))
        .unwrap_or_default()
        .iter()
        .map(|crd| crd["name"].clone())
        .collect();
    let mut dependants = BTreeSet::new();
    for csv in input.csvs.iter().filter(|csv| csv.label(names::COPIED_FROM).is_none()) {
        let requires_package = properties(csv).iter().any(|(kind, value)| {
            let named = json!(package);
            kind == "olm.package.required" && value["packageName"] == named
        });
        let required = csv.array(&["spec", "customresourcedefinitions", "required"]);
        let requires_api = required.iter().any(|crd| provided.contains(&crd["name"]));
        if (requires_package || requires_api) && csv.name() != own {
            dependants.insert(reference(csv));
        }
    }
    if !dependants.is_empty() {
        let dependants: Vec<String> = dependants.into_iter().collect();
        warnings.push(format!(
            "these operators depend on package {package}, and OLM classic does not find it any more: {}",
            dependants.join(", ")
        ));
    }
    if is_frozen(input.subscription) {
        warnings.push(
            "a conversion was interrupted and holds its upgrades: convert it again, or roll it back".to_owned(),
        );
    }
    let strategies =
        input.groups.iter().filter_map(|group| group.str(&["spec", "upgradeStrategy"]));
    for strategy in strategies.filter(|strategy| !matches!(*strategy, "" | "Default")) {
        warnings.push(format!("upgradeStrategy {strategy} of the OperatorGroup is dropped"));
    }
    if input.subscription.get(&["spec", "config", "selector"]).is_some() {
        warnings.push("spec.config.selector of the Subscription is dropped".to_owned());
    }
    if input.csv.is_some_and(|csv| !csv.array(&["spec", "webhookdefinitions"]).is_empty()) {
        warnings.push(
            "the certificates of webhooks come from another provider afterwards, so pods that mount them restart"
                .to_owned(),
        );
    }
    if let Some(csv) = input.csv {
        warnings.extend(restarts(csv));
    }
    warnings
}

/// A warning for each Deployment whose pods have an annotation of the ClusterServiceVersion with a value of their
/// own: OLM classic takes the value of the ClusterServiceVersion, and OLM v1 that of the template.
fn restarts(csv: &Object) -> Vec<String> {
    let deployments = csv.array(&["spec", "install", "spec", "deployments"]).iter();
    let different = deployments.filter_map(|deployment| {
        let own = deployment["spec"]["template"]["metadata"]["annotations"].as_object()?;
        let mut own = own.iter();
        let (annotation, _) = own.find(|(name, value)| {
            csv.annotation(name).is_some_and(|found| value.as_str() != Some(found))
        })?;
        let name = deployment["name"].as_str().unwrap_or_default();
        Some(format!(
            "the pods of Deployment {name} restart: their annotation {annotation} has another value in the ClusterServiceVersion"
        ))
    });
    different.collect()
}
