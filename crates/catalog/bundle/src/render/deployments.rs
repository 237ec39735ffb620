//! Deployments as the ClusterServiceVersion has them, and what is added.

use super::{CertificateSecret, RenderContext, objects, registry_v1::Deployment, webhooks};
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;

/// Volumes that hold the certificate: name, where they are mounted, files of certificate and key.
const VOLUMES: [(&str, &str, &str, &str); 2] = [
    ("webhook-cert", "/tmp/k8s-webhook-server/serving-certs", "tls.crt", "tls.key"),
    ("apiservice-cert", "/apiserver.local.config/certificates", "apiserver.crt", "apiserver.key"),
];

/// The deployments, in their order.
pub(super) fn all(job: &RenderContext<'_>) -> Vec<Value> {
    job.content.deployments.iter().map(|deployment| one(job, deployment)).collect()
}

fn one(job: &RenderContext<'_>, deployment: &Deployment) -> Value {
    let content = job.content;
    let mut spec = deployment.spec.clone();
    spec["revisionHistoryLimit"] = 1.into();
    let template = objects::entry(&mut spec, "template")
        .and_then(|template| objects::entry(template, "metadata"));
    if let Some(metadata) = template {
        let own = metadata.get("annotations").and_then(Value::as_object).cloned();
        let mut annotations: Map<String, Value> = content
            .annotations
            .iter()
            .map(|(name, value)| (name.clone(), value.as_str().into()))
            .collect();
        if !mainstay_fault::is_on("templates-lose-their-annotations") {
            annotations.extend(own.unwrap_or_default());
        }
        annotations.insert("olm.targetNamespaces".to_owned(), job.targets.join(",").into());
        annotations.insert("olm.operatorNamespace".to_owned(), job.settings.namespace.into());
        metadata["annotations"] = Value::Object(annotations);
    }
    let serves = content.webhooks.iter().any(|webhook| webhook.deployment == deployment.name);
    if let Some(provider) = job.settings.certificates.filter(|_| serves) {
        let secret = provider.secret(&webhooks::serving(job, &deployment.name));
        mount(&mut spec, &secret);
    }
    let mut metadata = objects::metadata(&deployment.name, job.settings.namespace);
    metadata["labels"] = deployment.labels.clone();
    let mut fields = Map::new();
    fields.insert("metadata".to_owned(), metadata);
    fields.insert("spec".to_owned(), spec);
    if let Some(config) = job.settings.deployment_config {
        config.apply(&mut fields);
    }
    objects::object("apps/v1", "Deployment", fields)
}

/// Mounts the certificate into all containers; what is in the way goes.
fn mount(spec: &mut Value, secret: &CertificateSecret) {
    let Some(pod) =
        objects::entry(spec, "template").and_then(|template| objects::entry(template, "spec"))
    else {
        return;
    };
    let mut replaced: BTreeSet<String> =
        VOLUMES.iter().map(|(name, ..)| (*name).to_owned()).collect();
    let text = |value: &Value, name: &str| {
        value.get(name).and_then(Value::as_str).unwrap_or_default().to_owned()
    };
    let containers = pod.get("containers").and_then(Value::as_array);
    for container in containers.into_iter().flatten() {
        let mounts = container.get("volumeMounts").and_then(Value::as_array);
        for mount in mounts.into_iter().flatten() {
            if VOLUMES.iter().any(|(_, path, ..)| text(mount, "mountPath") == *path) {
                replaced.insert(text(mount, "name"));
            }
        }
    }
    let exchange = |holder: &mut Value, field: &str, new: Vec<Value>| {
        let old = holder.get_mut(field).map(Value::take);
        let mut items = match old {
            Some(Value::Array(items)) => items,
            _ => Vec::new(),
        };
        items.retain(|item| !replaced.contains(&text(item, "name")));
        items.extend(new);
        holder[field] = Value::Array(items);
    };
    let volumes = VOLUMES.iter().map(|(name, _, certificate, key)| {
        json!({"name": name, "secret": {"secretName": secret.name, "items": [
            {"key": secret.certificate, "path": certificate},
            {"key": secret.private_key, "path": key},
        ]}})
    });
    exchange(pod, "volumes", volumes.collect());
    let containers = pod.get_mut("containers").and_then(Value::as_array_mut);
    for container in containers.into_iter().flatten().filter(|container| container.is_object()) {
        let mounts =
            VOLUMES.iter().map(|(name, path, ..)| json!({"name": name, "mountPath": path}));
        exchange(container, "volumeMounts", mounts.collect());
    }
}
