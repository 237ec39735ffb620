//! What a bundle must not contradict itself in.

use super::{
    RegistryV1Bundle, objects,
    registry_v1::Webhook,
    targets,
    webhooks::{CONVERSION, definition_name},
};
use mainstay_formats::names::dns1123_subdomain;
use mainstay_gocompat::quote;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// Everything that is wrong, in upstream's words and order.
pub(super) fn all(content: &RegistryV1Bundle) -> Vec<String> {
    let checks = [
        deployments_are_named_once,
        deployments_have_good_names,
        definitions_are_named_once,
        owned_definitions_are_there,
        package_is_named,
        conversions_need_all_namespaces,
        webhooks_have_deployments,
        webhooks_are_named_once,
        webhooks_have_good_names,
        definitions_are_converted_once,
        converted_definitions_are_owned,
        webhooks_leave_what_is_protected_alone,
        kinds_are_supported,
    ];
    checks.iter().flat_map(|check| check(content)).collect()
}

/// What comes more than once.
fn repeated<'a>(names: impl Iterator<Item = &'a str>) -> BTreeSet<&'a str> {
    let mut seen = BTreeSet::new();
    names.filter(|name| !seen.insert(*name)).collect()
}

fn deployments_are_named_once(content: &RegistryV1Bundle) -> Vec<String> {
    let names = repeated(content.deployments.iter().map(|deployment| deployment.name.as_str()));
    let say = |name| {
        format!("cluster service version contains duplicate strategy deployment spec '{name}'")
    };
    names.into_iter().map(say).collect()
}

/// Names that are not allowed, each with the reasons.
fn bad_names<'a>(names: impl Iterator<Item = &'a str>) -> BTreeMap<&'a str, Vec<String>> {
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

fn deployments_have_good_names(content: &RegistryV1Bundle) -> Vec<String> {
    let say = |(name, reasons): (&str, Vec<String>)| {
        let reasons = reasons.join(", ");
        format!("invalid cluster service version strategy deployment name '{name}': {reasons}")
    };
    bad_names(content.deployments.iter().map(|deployment| deployment.name.as_str()))
        .into_iter()
        .map(say)
        .collect()
}

fn definitions_are_named_once(content: &RegistryV1Bundle) -> Vec<String> {
    let names = repeated(content.definitions.iter().map(definition_name));
    let say = |name| format!("bundle contains duplicate custom resource definition '{name}'");
    names.into_iter().map(say).collect()
}

fn owned_definitions_are_there(content: &RegistryV1Bundle) -> Vec<String> {
    let there: BTreeSet<&str> = content.definitions.iter().map(definition_name).collect();
    let owned: BTreeSet<&str> = content.owned.iter().map(String::as_str).collect();
    let say = |name| {
        format!(
            "cluster service definition references owned custom resource definition '{name}' not \
             found in bundle"
        )
    };
    owned.difference(&there).map(say).collect()
}

fn package_is_named(content: &RegistryV1Bundle) -> Vec<String> {
    if content.package.is_empty() { vec!["package name is empty".to_owned()] } else { Vec::new() }
}

fn conversions(content: &RegistryV1Bundle) -> impl Iterator<Item = &Webhook> {
    content.webhooks.iter().filter(|webhook| webhook.kind == CONVERSION)
}

fn conversions_need_all_namespaces(content: &RegistryV1Bundle) -> Vec<String> {
    if content.modes.len() == 1 && content.supports(targets::ALL)
        || mainstay_fault::is_on("kinds-are-converted-for-some-namespaces")
    {
        return Vec::new();
    }
    let modes: Vec<&str> = content.modes.iter().map(String::as_str).collect();
    let modes = modes.join(" ");
    let say = |webhook: &Webhook| {
        format!(
            "bundle contains conversion webhook {} and supports install modes [{modes}] - \
             conversion webhooks are only supported for bundles that only support AllNamespaces \
             install mode",
            quote(&webhook.name)
        )
    };
    conversions(content).map(say).collect()
}

fn webhooks_have_deployments(content: &RegistryV1Bundle) -> Vec<String> {
    let there = |name: &str| content.deployments.iter().any(|deployment| deployment.name == name);
    let mut lost: Vec<&Webhook> =
        content.webhooks.iter().filter(|webhook| !there(&webhook.deployment)).collect();
    lost.sort_by_key(|webhook| (&webhook.deployment, &webhook.kind, &webhook.name));
    let say = |webhook: &&Webhook| {
        format!(
            "webhook of type '{}' with name '{}' references non-existent deployment '{}'",
            webhook.kind, webhook.name, webhook.deployment
        )
    };
    lost.iter().map(say).collect()
}

/// The webhooks by their type.
fn by_kind(content: &RegistryV1Bundle) -> BTreeMap<&str, Vec<&str>> {
    let mut found: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for webhook in &content.webhooks {
        found.entry(&webhook.kind).or_default().push(&webhook.name);
    }
    found
}

fn webhooks_are_named_once(content: &RegistryV1Bundle) -> Vec<String> {
    let say = |(kind, names): (&str, Vec<&str>)| -> Vec<String> {
        let twice = repeated(names.into_iter());
        twice
            .into_iter()
            .map(|name| format!("duplicate webhook '{name}' of type '{kind}'"))
            .collect()
    };
    by_kind(content).into_iter().flat_map(say).collect()
}

fn webhooks_have_good_names(content: &RegistryV1Bundle) -> Vec<String> {
    let say = |(kind, names): (&str, Vec<&str>)| -> Vec<String> {
        let bad = bad_names(names.into_iter());
        let say = |(name, reasons): (&str, Vec<String>)| {
            let reasons = reasons.join(",");
            format!("webhook of type '{kind}' has invalid name '{name}': {reasons}")
        };
        bad.into_iter().map(say).collect()
    };
    by_kind(content).into_iter().flat_map(say).collect()
}

fn definitions_are_converted_once(content: &RegistryV1Bundle) -> Vec<String> {
    let mut by_definition: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for webhook in conversions(content) {
        for definition in &webhook.definitions {
            by_definition.entry(definition).or_default().push(&webhook.name);
        }
    }
    let say = |(definition, mut names): (&str, Vec<&str>)| {
        names.sort_unstable();
        let names = names.join(",");
        format!(
            "conversion webhooks [{names}] reference same custom resource definition '{definition}'"
        )
    };
    by_definition.into_iter().filter(|(_, names)| names.len() > 1).map(say).collect()
}

fn converted_definitions_are_owned(content: &RegistryV1Bundle) -> Vec<String> {
    let mut webhooks: Vec<&Webhook> = conversions(content).collect();
    webhooks.sort_by_key(|webhook| &webhook.name);
    let say = |webhook: &&Webhook| -> Vec<String> {
        let mut definitions: Vec<&String> =
            webhook.definitions.iter().filter(|name| !content.owned.contains(name)).collect();
        definitions.sort();
        let say = |definition: &&String| {
            format!(
                "conversion webhook '{}' references custom resource definition '{definition}' not \
                 owned bundle",
                webhook.name
            )
        };
        definitions.iter().map(say).collect()
    };
    webhooks.iter().flat_map(say).collect()
}

/// A webhook that holds for the webhooks themselves, or for extensions, could lock everybody out.
fn webhooks_leave_what_is_protected_alone(content: &RegistryV1Bundle) -> Vec<String> {
    const ADMISSION: &str = "admissionregistration.k8s.io";
    const CONFIGURATIONS: [&str; 5] = [
        "*",
        "mutatingwebhookconfiguration",
        "mutatingwebhookconfigurations",
        "validatingwebhookconfiguration",
        "validatingwebhookconfigurations",
    ];
    let mut found = Vec::new();
    for webhook in content.webhooks.iter().filter(|webhook| webhook.kind != CONVERSION) {
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

fn kinds_are_supported(content: &RegistryV1Bundle) -> Vec<String> {
    let say = |object: &Value| {
        let kind = object.get("kind").and_then(Value::as_str).unwrap_or_default();
        let name = definition_name(object);
        objects::namespaced(kind)
            .is_none()
            .then(|| format!("unsupported resource {} with kind {}", quote(name), quote(kind)))
    };
    content.others.iter().filter_map(say).collect()
}
