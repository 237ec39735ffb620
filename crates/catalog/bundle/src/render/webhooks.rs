//! Webhooks: configurations, conversion of CRDs, Services and certificates.

use super::{
    RegistryV1Bundle, RenderContext, RenderError, certificates::WebhookServing, generated_names,
    objects, registry_v1::Webhook,
};
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};

pub(super) const CONVERSION: &str = "ConversionWebhook";

/// A kind of admission webhook.
#[derive(Clone, Copy)]
pub(super) struct AdmissionWebhookKind {
    /// The type in the ClusterServiceVersion.
    kind: &'static str,
    /// The kind of the object.
    configuration: &'static str,
    /// Fields of its webhooks beyond the common ones.
    own_fields: &'static [&'static str],
}

pub(super) const VALIDATING: AdmissionWebhookKind = AdmissionWebhookKind {
    kind: "ValidatingAdmissionWebhook",
    configuration: "ValidatingWebhookConfiguration",
    own_fields: &[],
};

pub(super) const MUTATING: AdmissionWebhookKind = AdmissionWebhookKind {
    kind: "MutatingAdmissionWebhook",
    configuration: "MutatingWebhookConfiguration",
    own_fields: &["reinvocationPolicy"],
};

/// `metadata.name` of an object.
pub(super) fn object_name(object: &Value) -> &str {
    object.pointer("/metadata/name").and_then(Value::as_str).unwrap_or_default()
}

/// The Service and certificate of a Deployment's webhooks.
pub(super) fn serving(context: &RenderContext<'_>, deployment: &str) -> WebhookServing {
    serving_in(context.settings.namespace, deployment)
}

fn serving_in(namespace: &str, deployment: &str) -> WebhookServing {
    let service = generated_names::with_suffix(&deployment.replace('.', "-"), "service");
    WebhookServing {
        certificate: generated_names::with_suffix(&service, "cert"),
        service,
        namespace: namespace.to_owned(),
    }
}

impl Webhook {
    /// The `clientConfig` that calls the webhook.
    fn client_config(&self, serving: &WebhookServing, path: Option<&str>) -> Value {
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

/// The CustomResourceDefinitions, with a webhook conversion where the bundle has one.
pub(super) fn crds(
    context: &RenderContext<'_>,
    mut out: Vec<Value>,
) -> Result<Vec<Value>, RenderError> {
    let mut converters: BTreeMap<&str, &Webhook> = BTreeMap::new();
    for webhook in context.bundle.webhooks.iter().filter(|webhook| webhook.kind == CONVERSION) {
        for name in &webhook.crds {
            converters.insert(name, webhook);
        }
    }
    for definition in &mut out {
        let name = object_name(definition).to_owned();
        let Some(webhook) = converters.get(name.as_str()) else { continue };
        if definition.pointer("/spec/preserveUnknownFields") == Some(&Value::Bool(true)) {
            return Err(RenderError::PreserveUnknownFields { definition: name });
        }
        let serving = serving(context, &webhook.deployment);
        let versions = webhook.fields.get("admissionReviewVersions").cloned().unwrap_or_default();
        let conversion = json!({
            "strategy": "Webhook",
            "webhook": {
                "clientConfig": webhook.client_config(&serving, Some(webhook.path().unwrap_or("/"))),
                "conversionReviewVersions": versions,
            },
        });
        if let Some(spec) = objects::entry(definition, "spec") {
            spec["conversion"] = conversion;
        }
        if let Some(provider) = context.settings.certificates {
            provider.inject_ca_bundle(definition, &serving);
        }
    }
    Ok(out)
}

/// The configurations of one kind of webhook, one object for each webhook.
pub(super) fn configurations(
    context: &RenderContext<'_>,
    admission: AdmissionWebhookKind,
) -> Vec<Value> {
    let all = context.bundle.webhooks.iter().filter(|webhook| webhook.kind == admission.kind);
    all.map(|webhook| configuration(context, webhook, admission)).collect()
}

fn configuration(
    context: &RenderContext<'_>,
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
    let serving = serving(context, &webhook.deployment);
    let name = webhook.name.strip_suffix('-').unwrap_or(&webhook.name);
    let mut hook = Map::new();
    for field in COMMON.iter().chain(admission.own_fields) {
        if let Some(value) = webhook.fields.get(*field) {
            hook.insert((*field).to_owned(), value.clone());
        }
    }
    hook.insert("name".to_owned(), name.into());
    hook.insert("clientConfig".to_owned(), webhook.client_config(&serving, webhook.path()));
    // A namespace selector does not exclude cluster-scoped objects.
    if !context.targets.iter().any(String::is_empty) {
        let selector = json!({"matchExpressions": [{
            "key": "kubernetes.io/metadata.name",
            "operator": "In",
            "values": context.targets,
        }]});
        hook.insert("namespaceSelector".to_owned(), selector);
    }
    let mut fields = Map::new();
    fields.insert("metadata".to_owned(), objects::metadata(name, context.settings.namespace));
    fields.insert("webhooks".to_owned(), json!([hook]));
    let kind = admission.configuration;
    let mut object = objects::object("admissionregistration.k8s.io/v1", kind, fields);
    if let Some(provider) = context.settings.certificates {
        provider.inject_ca_bundle(&mut object, &serving);
    }
    object
}

/// The Services of the Deployments that serve webhooks.
pub(super) fn services(context: &RenderContext<'_>) -> Vec<Value> {
    let mut out = Vec::new();
    for deployment in &context.bundle.deployments {
        let mut ports: Vec<(i64, Value)> = Vec::new();
        for webhook in &context.bundle.webhooks {
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
        let serving = serving(context, &deployment.name);
        let mut spec = json!({"ports": ports});
        if let Some(labels) = deployment.spec.pointer("/selector/matchLabels") {
            spec["selector"] = labels.clone();
        }
        let mut fields = Map::new();
        let metadata = objects::metadata(&serving.service, &serving.namespace);
        fields.insert("metadata".to_owned(), metadata);
        fields.insert("spec".to_owned(), spec);
        let mut service = objects::object("v1", "Service", fields);
        if let Some(provider) = context.settings.certificates {
            provider.prepare_service(&mut service, &serving);
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

/// The additional objects of the certificate provider, in the order of Deployment names.
pub(super) fn certificates(context: &RenderContext<'_>) -> Vec<Value> {
    let Some(provider) = context.settings.certificates else { return Vec::new() };
    let servings = servings(context.bundle, context.settings.namespace);
    servings.iter().flat_map(|serving| provider.additional_objects(serving)).collect()
}

/// The Services and certificates of all webhooks, in the order of Deployment names.
pub(super) fn servings(bundle: &RegistryV1Bundle, namespace: &str) -> Vec<WebhookServing> {
    let deployments: BTreeSet<&str> =
        bundle.webhooks.iter().map(|webhook| webhook.deployment.as_str()).collect();
    deployments.into_iter().map(|deployment| serving_in(namespace, deployment)).collect()
}
