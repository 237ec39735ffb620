//! Required servers: the servers, webhooks and APIServices that a CSV describes.

use crate::fields::Crd;
use mainstay_api::{
    ClusterServiceVersion, InstallModeType, WebhookDescription, WebhookKind, resources,
};
use mainstay_controller::hash;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// The default port of a server.
const PORT: i64 = 443;
/// The ServiceAccount of pods that name none.
const DEFAULT_ACCOUNT: &str = "default";
const ADMISSION: &str = "admissionregistration.k8s.io";
/// Kinds that no webhook may intercept, as it could prevent its own removal.
const PROTECTED: [&str; 2] = ["MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"];

/// A Deployment with a server.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Server {
    pub(crate) deployment: String,
    /// The ServiceAccount of its pods.
    pub(crate) account: String,
    /// Labels of its pods.
    pub(crate) selector: Value,
    /// Ports of its Service.
    pub(crate) ports: Vec<Value>,
}

impl Server {
    /// The name of the Service in front of it.
    pub(crate) fn service(&self) -> String {
        service(&self.deployment)
    }

    /// The name of the Secret with its certificate.
    pub(crate) fn secret(&self) -> String {
        secret(&self.deployment)
    }
}

/// The name of the Service in front of a Deployment.
pub(crate) fn service(deployment: &str) -> String {
    // Service names have no dots.
    format!("{}-service", deployment.replace('.', "-"))
}

/// The name of the Secret with the certificate of a Deployment.
pub(crate) fn secret(deployment: &str) -> String {
    format!("{}{}", service(deployment), super::CERTIFICATE_SUFFIX)
}

/// An API group and version that a server of the operator serves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct OwnedApi {
    /// The name of its APIService.
    pub(crate) name: String,
    pub(crate) group: String,
    pub(crate) version: String,
    pub(crate) deployment: String,
    pub(crate) port: i64,
}

/// The name of an `APIService`.
pub(crate) fn api_service(group: &str, version: &str) -> String {
    format!("{version}.{group}")
}

/// The APIs that a CSV serves, each group and version once.
pub(crate) fn apis(csv: &ClusterServiceVersion) -> Vec<OwnedApi> {
    let mut apis: Vec<OwnedApi> = Vec::new();
    for api in &csv.spec.api_service_definitions.owned {
        let name = api_service(&api.group, &api.version);
        if !apis.iter().any(|known| known.name == name) {
            apis.push(OwnedApi {
                name,
                group: api.group.clone(),
                version: api.version.clone(),
                deployment: api.deployment_name.clone(),
                port: port(api.container_port),
            });
        }
    }
    apis
}

fn port(given: i64) -> i64 {
    if given > 0 { given } else { PORT }
}

/// The Deployments of a CSV with a server, in the order of its list.
pub(crate) fn servers(csv: &ClusterServiceVersion) -> Vec<Server> {
    let mut ports: BTreeMap<&str, Vec<Value>> = BTreeMap::new();
    let mut add = |deployment, number: i64, target: &Value| {
        let port = json!({
            "name": number.to_string(), "port": number, "protocol": "TCP", "targetPort": target,
        });
        let all: &mut Vec<Value> = ports.entry(deployment).or_default();
        if !all.contains(&port) {
            all.push(port);
        }
    };
    for api in &csv.spec.api_service_definitions.owned {
        let number = port(api.container_port);
        add(api.deployment_name.as_str(), number, &number.into());
    }
    for webhook in &csv.spec.webhook_definitions {
        let number = port(webhook.container_port);
        let target = webhook.target_port.clone().filter(|port| !port.is_null());
        add(webhook.deployment_name.as_str(), number, &target.unwrap_or_else(|| number.into()));
    }
    let deployments = &csv.spec.install.spec.deployments;
    let server = |spec: &mainstay_api::DeploymentSpec| {
        let ports = ports.get(spec.name.as_str())?.clone();
        let account =
            spec.spec.pointer("/template/spec/serviceAccountName").and_then(Value::as_str);
        Some(Server {
            deployment: spec.name.clone(),
            account: account.filter(|name| !name.is_empty()).unwrap_or(DEFAULT_ACCOUNT).to_owned(),
            selector: spec.spec.pointer("/selector/matchLabels").cloned().unwrap_or_default(),
            ports,
        })
    };
    deployments.iter().filter_map(server).collect()
}

/// The admission webhooks of a CSV.
pub(crate) fn admission_webhooks(
    csv: &ClusterServiceVersion,
) -> impl Iterator<Item = &WebhookDescription> {
    csv.spec.webhook_definitions.iter().filter(|webhook| webhook.kind != WebhookKind::Conversion)
}

/// The conversion webhooks of a CSV.
pub(crate) fn conversion_webhooks(
    csv: &ClusterServiceVersion,
) -> impl Iterator<Item = &WebhookDescription> {
    csv.spec.webhook_definitions.iter().filter(|webhook| webhook.kind == WebhookKind::Conversion)
}

/// The label value that distinguishes a description from another one of the same name.
pub(crate) fn webhook_hash(description: &WebhookDescription) -> String {
    // A deserialized description can be serialized.
    hash::webhook(&serde_json::to_value(description).unwrap_or_default())
}

/// Why the webhooks of a CSV cannot be installed, with upstream's messages where it has
/// some.
pub(crate) fn invalid_webhook(csv: &ClusterServiceVersion) -> Option<String> {
    let mut names = BTreeSet::new();
    let deployments = &csv.spec.install.spec.deployments;
    for webhook in &csv.spec.webhook_definitions {
        if !names.insert(webhook.generate_name.as_str()) {
            return Some("CSV contains repeated WebhookDescription name".to_owned());
        }
        if let Some(why) = webhook.rules.iter().find_map(forbidden) {
            return Some(why.to_owned());
        }
        if let WebhookKind::Other(kind) = &webhook.kind {
            return Some(format!(
                "the type {kind} of WebhookDescription {} is unknown",
                webhook.generate_name
            ));
        }
        if !deployments.iter().any(|deployment| deployment.name == webhook.deployment_name) {
            return Some(format!(
                "strategyDetailsDeployment is missing deployment {} for WebhookDescription {}",
                webhook.deployment_name, webhook.generate_name
            ));
        }
    }
    None
}

/// Why a webhook must not have this rule.
fn forbidden(rule: &Value) -> Option<&'static str> {
    let has = |list: &str, wanted: &str| {
        let items = rule.get(list).and_then(Value::as_array);
        items.is_some_and(|items| items.iter().any(|entry| entry == wanted))
    };
    if has("apiGroups", "*") {
        return Some("webhook rules cannot include all groups");
    }
    if has("apiGroups", &resources::CLUSTER_SERVICE_VERSION.group) {
        return Some("webhook rules cannot include the OLM group");
    }
    let own = has("resources", "*") || PROTECTED.iter().any(|name| has("resources", name));
    (has("apiGroups", ADMISSION) && own).then_some(
        "webhook rules cannot include MutatingWebhookConfiguration or ValidatingWebhookConfiguration resources",
    )
}

/// Why the conversion webhooks of a CSV cannot be installed, with upstream's messages.
pub(crate) fn conversion_problem(
    csv: &ClusterServiceVersion,
    crds: &BTreeMap<String, Arc<Crd>>,
) -> Option<String> {
    let all = &InstallModeType::AllNamespaces;
    let only_all = csv.spec.install_modes.iter().all(|mode| (mode.kind == *all) == mode.supported);
    for webhook in conversion_webhooks(csv) {
        if !only_all {
            return Some("unable to manage conversion webhook: CSVs with conversion webhooks must support only AllNamespaces".to_owned());
        }
        if webhook.conversion_crds.is_empty() {
            return Some("unable to manager conversion webhook: conversion webhook must have at least one CRD specified".to_owned());
        }
        for name in &webhook.conversion_crds {
            let owned = &csv.spec.custom_resource_definitions.owned;
            if !owned.iter().any(|crd| crd.name == *name) {
                return Some(format!("csv {} does not own CRD {name}", csv.metadata.name));
            }
            let Some(crd) = crds.get(name) else {
                return Some(format!(
                    "unable to get CRD {name} specified in Conversion Webhook: customresourcedefinitions.apiextensions.k8s.io \"{name}\" not found"
                ));
            };
            if crd.preserves {
                return Some("crd.Spec.PreserveUnknownFields must be false to let API Server call webhook to do the conversion".to_owned());
            }
        }
    }
    None
}
