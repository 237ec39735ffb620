//! Webhooks: who is called, where, and with whose certificate.

use super::{
    RenderContext, RenderError, certificates::WebhookServing, generated_names, objects,
    registry_v1::Webhook,
};
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};

pub(super) const CONVERSION: &str = "ConversionWebhook";

/// A kind of webhooks that admit objects.
#[derive(Clone, Copy)]
pub(super) struct AdmissionWebhookKind {
    /// The type in the ClusterServiceVersion.
    kind: &'static str,
    /// The kind of the object.
    configuration: &'static str,
    /// Fields that its webhooks have beside the common ones.
    more: &'static [&'static str],
}

pub(super) const VALIDATING: AdmissionWebhookKind = AdmissionWebhookKind {
    kind: "ValidatingAdmissionWebhook",
    configuration: "ValidatingWebhookConfiguration",
    more: &[],
};

pub(super) const MUTATING: AdmissionWebhookKind = AdmissionWebhookKind {
    kind: "MutatingAdmissionWebhook",
    configuration: "MutatingWebhookConfiguration",
    more: &["reinvocationPolicy"],
};

/// `metadata.name` of an object.
pub(super) fn definition_name(object: &Value) -> &str {
    object.pointer("/metadata/name").and_then(Value::as_str).unwrap_or_default()
}

/// Where a deployment serves its webhooks.
pub(super) fn serving(job: &RenderContext<'_>, deployment: &str) -> WebhookServing {
    let service = generated_names::with_suffix(&deployment.replace('.', "-"), "service");
    WebhookServing {
        certificate: generated_names::with_suffix(&service, "cert"),
        service,
        namespace: job.settings.namespace.to_owned(),
    }
}

impl Webhook {
    /// The part of an object that says where the webhook is reached.
    fn client(&self, serving: &WebhookServing, path: Option<&str>) -> Value {
        let mut service = json!({
            "namespace": serving.namespace,
            "name": serving.service,
            "port": self.port,
        });
        if let Some(path) = path {
            service["path"] = path.into();
        }
        json!({"service": service})
    }

    fn path(&self) -> Option<&str> {
        self.fields.get("webhookPath").and_then(Value::as_str)
    }
}

/// The custom resource definitions; those that a webhook converts say so.
pub(super) fn definitions(
    job: &RenderContext<'_>,
    mut out: Vec<Value>,
) -> Result<Vec<Value>, RenderError> {
    let mut converters: BTreeMap<&str, &Webhook> = BTreeMap::new();
    for webhook in job.content.webhooks.iter().filter(|webhook| webhook.kind == CONVERSION) {
        for name in &webhook.definitions {
            converters.insert(name, webhook);
        }
    }
    for definition in &mut out {
        let name = definition_name(definition).to_owned();
        let Some(webhook) = converters.get(name.as_str()) else { continue };
        if definition.pointer("/spec/preserveUnknownFields") == Some(&Value::Bool(true)) {
            return Err(RenderError::PreserveUnknownFields { definition: name });
        }
        let serving = serving(job, &webhook.deployment);
        let versions = webhook.fields.get("admissionReviewVersions").cloned().unwrap_or_default();
        let conversion = json!({
            "strategy": "Webhook",
            "webhook": {
                "clientConfig": webhook.client(&serving, Some(webhook.path().unwrap_or("/"))),
                "conversionReviewVersions": versions,
            },
        });
        if let Some(spec) = objects::entry(definition, "spec") {
            spec["conversion"] = conversion;
        }
        if let Some(provider) = job.settings.certificates {
            provider.inject_ca_bundle(definition, &serving);
        }
    }
    Ok(out)
}

/// The configurations of one kind of webhooks, one object for each.
pub(super) fn configurations(
    job: &RenderContext<'_>,
    admission: AdmissionWebhookKind,
) -> Vec<Value> {
    let all = job.content.webhooks.iter().filter(|webhook| webhook.kind == admission.kind);
    all.map(|webhook| configuration(job, webhook, admission)).collect()
}

fn configuration(
    job: &RenderContext<'_>,
    webhook: &Webhook,
    admission: AdmissionWebhookKind,
) -> Value {
    const COMMON: [&str; 7] = [
        "rules",
        "failurePolicy",
        "matchPolicy",
        "objectSelector",
        "sideEffects",
        "timeoutSeconds",
        "admissionReviewVersions",
    ];
    let serving = serving(job, &webhook.deployment);
    let name = webhook.name.strip_suffix('-').unwrap_or(&webhook.name);
    let mut hook = Map::new();
    for field in COMMON.iter().chain(admission.more) {
        if let Some(value) = webhook.fields.get(*field) {
            hook.insert((*field).to_owned(), value.clone());
        }
    }
    hook.insert("name".to_owned(), name.into());
    hook.insert("clientConfig".to_owned(), webhook.client(&serving, webhook.path()));
    // What has no namespace is never passed over because of a selector of namespaces.
    if !job.targets.iter().any(String::is_empty) {
        let selector = json!({"matchExpressions": [{
            "key": "kubernetes.io/metadata.name",
            "operator": "In",
            "values": job.targets,
        }]});
        hook.insert("namespaceSelector".to_owned(), selector);
    }
    let mut fields = Map::new();
    fields.insert("metadata".to_owned(), objects::metadata(name, job.settings.namespace));
    fields.insert("webhooks".to_owned(), json!([hook]));
    let kind = admission.configuration;
    let mut object = objects::object("admissionregistration.k8s.io/v1", kind, fields);
    if let Some(provider) = job.settings.certificates {
        provider.inject_ca_bundle(&mut object, &serving);
    }
    object
}

/// The services before the deployments that serve webhooks.
pub(super) fn services(job: &RenderContext<'_>) -> Vec<Value> {
    let mut out = Vec::new();
    for deployment in &job.content.deployments {
        let mut ports: Vec<(i64, Value)> = Vec::new();
        for webhook in &job.content.webhooks {
            if webhook.deployment != deployment.name {
                continue;
            }
            let port = if webhook.port > 0 { webhook.port } else { 443 };
            let target = webhook.fields.get("targetPort").cloned().unwrap_or_else(|| port.into());
            if !ports.contains(&(port, target.clone())) {
                ports.push((port, target));
            }
        }
        if ports.is_empty() {
            continue;
        }
        ports.sort_by_key(|(port, target)| (*port, number(target)));
        let ports: Vec<Value> = ports
            .into_iter()
            .map(|(port, target)| {
                json!({"name": port.to_string(), "port": port, "targetPort": target})
            })
            .collect();
        let serving = serving(job, &deployment.name);
        let mut spec = json!({"ports": ports});
        if let Some(labels) = deployment.spec.pointer("/selector/matchLabels") {
            spec["selector"] = labels.clone();
        }
        let mut fields = Map::new();
        let metadata = objects::metadata(&serving.service, &serving.namespace);
        fields.insert("metadata".to_owned(), metadata);
        fields.insert("spec".to_owned(), spec);
        let mut service = objects::object("v1", "Service", fields);
        if let Some(provider) = job.settings.certificates {
            provider.serve(&mut service, &serving);
        }
        out.push(service);
    }
    out
}

/// A port as a number; 0 for a name.
fn number(port: &Value) -> i64 {
    match port {
        Value::String(text) => text.parse().unwrap_or(0),
        other => other.as_i64().unwrap_or(0),
    }
}

/// What the provider of certificates needs, by name of the deployment.
pub(super) fn certificates(job: &RenderContext<'_>) -> Vec<Value> {
    let Some(provider) = job.settings.certificates else { return Vec::new() };
    let deployments: BTreeSet<&str> =
        job.content.webhooks.iter().map(|webhook| webhook.deployment.as_str()).collect();
    deployments.into_iter().flat_map(|name| provider.objects(&serving(job, name))).collect()
}
