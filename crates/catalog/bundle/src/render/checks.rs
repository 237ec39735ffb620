//! Consistency checks of a bundle before it is rendered.

use super::{
    RegistryV1Bundle, objects,
    registry_v1::Webhook,
    targets,
    webhooks::{CONVERSION, object_name},
};
use mainstay_formats::names::dns1123_subdomain;
use mainstay_gocompat::quote;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// All faults of a bundle, in upstream's words and order.
pub(super) fn find_faults(bundle: &RegistryV1Bundle) -> Vec<String> {
    let checks = [
        check_unique_deployment_names,
        check_deployment_names,
        check_unique_crd_names,
        check_owned_crds_exist,
        check_package_name,
        check_conversion_install_modes,
        check_webhook_deployments,
        check_unique_webhook_names,
        check_webhook_names,
        check_unique_conversion_crds,
        check_conversion_crds_owned,
        check_webhook_rules,
        check_supported_kinds,
    ];
    checks.iter().flat_map(|check| check(bundle)).collect()
}

/// Names that occur more than once.
fn repeated<'a>(names: impl Iterator<Item = &'a str>) -> BTreeSet<&'a str> {
    let mut seen = BTreeSet::new();
    names.filter(|name| !seen.insert(*name)).collect()
}

fn check_unique_deployment_names(bundle: &RegistryV1Bundle) -> Vec<String> {
    let names = repeated(bundle.deployments.iter().map(|deployment| deployment.name.as_str()));
    let describe = |name| {
        format!("cluster service version contains duplicate strategy deployment spec '{name}'")
    };
    names.into_iter().map(describe).collect()
}

/// Invalid names, each with its reasons.
fn invalid_names<'a>(names: impl Iterator<Item = &'a str>) -> BTreeMap<&'a str, Vec<String>> {
    let mut found = BTreeMap::new();
    for name in names {
        let mut reasons = dns1123_subdomain(name);
        reasons.sort();
        if !reasons.is_empty() {
            found.insert(name, reasons);
        }
    }
    found
}

fn check_deployment_names(bundle: &RegistryV1Bundle) -> Vec<String> {
    let describe = |(name, reasons): (&str, Vec<String>)| {
        let reasons = reasons.join(", ");
        format!("invalid cluster service version strategy deployment name '{name}': {reasons}")
    };
    invalid_names(bundle.deployments.iter().map(|deployment| deployment.name.as_str()))
        .into_iter()
        .map(describe)
        .collect()
}

fn check_unique_crd_names(bundle: &RegistryV1Bundle) -> Vec<String> {
    let names = repeated(bundle.crds.iter().map(object_name));
    let describe = |name| format!("bundle contains duplicate custom resource definition '{name}'");
    names.into_iter().map(describe).collect()
}

fn check_owned_crds_exist(bundle: &RegistryV1Bundle) -> Vec<String> {
    let existing: BTreeSet<&str> = bundle.crds.iter().map(object_name).collect();
    let owned_crds: BTreeSet<&str> = bundle.owned_crds.iter().map(String::as_str).collect();
    let describe = |name| {
        format!(
            "cluster service definition references owned custom resource definition '{name}' not \
             found in bundle"
        )
    };
    owned_crds.difference(&existing).map(describe).collect()
}

fn check_package_name(bundle: &RegistryV1Bundle) -> Vec<String> {
    if bundle.package.is_empty() { vec!["package name is empty".to_owned()] } else { Vec::new() }
}

fn conversions(bundle: &RegistryV1Bundle) -> impl Iterator<Item = &Webhook> {
    bundle.webhooks.iter().filter(|webhook| webhook.kind == CONVERSION)
}

fn check_conversion_install_modes(bundle: &RegistryV1Bundle) -> Vec<String> {
    if bundle.modes.len() == 1 && bundle.supports(targets::ALL)
        || mainstay_fault::is_on("kinds-are-converted-for-some-namespaces")
    {
        return Vec::new();
    }
    let modes: Vec<&str> = bundle.modes.iter().map(String::as_str).collect();
    let modes = modes.join(" ");
    let describe = |webhook: &Webhook| {
        format!(
            "bundle contains conversion webhook {} and supports install modes [{modes}] - \
             conversion webhooks are only supported for bundles that only support AllNamespaces \
             install mode",
            quote(&webhook.name)
        )
    };
    conversions(bundle).map(describe).collect()
}

fn check_webhook_deployments(bundle: &RegistryV1Bundle) -> Vec<String> {
    let existing = |name: &str| bundle.deployments.iter().any(|deployment| deployment.name == name);
    let mut dangling: Vec<&Webhook> =
        bundle.webhooks.iter().filter(|webhook| !existing(&webhook.deployment)).collect();
    dangling.sort_by_key(|webhook| (&webhook.deployment, &webhook.kind, &webhook.name));
    let describe = |webhook: &&Webhook| {
        format!(
            "webhook of type '{}' with name '{}' references non-existent deployment '{}'",
            webhook.kind, webhook.name, webhook.deployment
        )
    };
    dangling.iter().map(describe).collect()
}

/// The names of webhooks by their type.
fn names_by_kind(bundle: &RegistryV1Bundle) -> BTreeMap<&str, Vec<&str>> {
    let mut found: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for webhook in &bundle.webhooks {
        found.entry(&webhook.kind).or_default().push(&webhook.name);
    }
    found
}

fn check_unique_webhook_names(bundle: &RegistryV1Bundle) -> Vec<String> {
    let describe = |(kind, names): (&str, Vec<&str>)| -> Vec<String> {
        let twice = repeated(names.into_iter());
        twice
            .into_iter()
            .map(|name| format!("duplicate webhook '{name}' of type '{kind}'"))
            .collect()
    };
    names_by_kind(bundle).into_iter().flat_map(describe).collect()
}

fn check_webhook_names(bundle: &RegistryV1Bundle) -> Vec<String> {
    let describe = |(kind, names): (&str, Vec<&str>)| -> Vec<String> {
        let invalid = invalid_names(names.into_iter());
        let describe = |(name, reasons): (&str, Vec<String>)| {
            let reasons = reasons.join(",");
            format!("webhook of type '{kind}' has invalid name '{name}': {reasons}")
        };
        invalid.into_iter().map(describe).collect()
    };
    names_by_kind(bundle).into_iter().flat_map(describe).collect()
}

fn check_unique_conversion_crds(bundle: &RegistryV1Bundle) -> Vec<String> {
    let mut by_definition: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for webhook in conversions(bundle) {
        for definition in &webhook.crds {
            by_definition.entry(definition).or_default().push(&webhook.name);
        }
    }
    let describe = |(definition, mut names): (&str, Vec<&str>)| {
        names.sort_unstable();
        let names = names.join(",");
        format!(
            "conversion webhooks [{names}] reference same custom resource definition '{definition}'"
        )
    };
    by_definition.into_iter().filter(|(_, names)| names.len() > 1).map(describe).collect()
}

fn check_conversion_crds_owned(bundle: &RegistryV1Bundle) -> Vec<String> {
    let mut webhooks: Vec<&Webhook> = conversions(bundle).collect();
    webhooks.sort_by_key(|webhook| &webhook.name);
    let describe = |webhook: &&Webhook| -> Vec<String> {
        let mut crds: Vec<&String> =
            webhook.crds.iter().filter(|name| !bundle.owned_crds.contains(name)).collect();
        crds.sort();
        let describe = |definition: &&String| {
            format!(
                "conversion webhook '{}' references custom resource definition '{definition}' not \
                 owned bundle",
                webhook.name
            )
        };
        crds.iter().map(describe).collect()
    };
    webhooks.iter().flat_map(describe).collect()
}

/// A webhook that admits webhook configurations or extensions could block their repair.
fn check_webhook_rules(bundle: &RegistryV1Bundle) -> Vec<String> {
    const ADMISSION: &str = "admissionregistration.k8s.io";
    const CONFIGURATIONS: [&str; 5] = [
        "*",
        "mutatingwebhookconfiguration",
        "mutatingwebhookconfigurations",
        "validatingwebhookconfiguration",
        "validatingwebhookconfigurations",
    ];
    let mut found = Vec::new();
    for webhook in bundle.webhooks.iter().filter(|webhook| webhook.kind != CONVERSION) {
        let before = format!(
            "webhook {} contains forbidden rule: admission webhook rules cannot reference",
            quote(&webhook.name)
        );
        let rules = webhook.fields.get("rules").and_then(Value::as_array);
        for rule in rules.into_iter().flatten() {
            let list = |name: &str| {
                let list = rule.get(name).and_then(Value::as_array);
                list.into_iter().flatten().filter_map(Value::as_str)
            };
            for group in list("apiGroups") {
                if group == "*" || group == "olm.operatorframework.io" {
                    found.push(format!("{before} API group {}", quote(group)));
                }
                if group != ADMISSION {
                    continue;
                }
                for resource in list("resources") {
                    if CONFIGURATIONS.contains(&resource.to_lowercase().as_str()) {
                        found.push(format!(
                            "{before} resource {} for API group {}",
                            quote(resource),
                            quote(group)
                        ));
                    }
                }
            }
        }
    }
    found
}

fn check_supported_kinds(bundle: &RegistryV1Bundle) -> Vec<String> {
    let describe = |object: &Value| {
        let kind = object.get("kind").and_then(Value::as_str).unwrap_or_default();
        let name = object_name(object);
        objects::namespaced(kind)
            .is_none()
            .then(|| format!("unsupported resource {} with kind {}", quote(name), quote(kind)))
    };
    bundle.others.iter().filter_map(describe).collect()
}
