//! Deployments of the ClusterServiceVersion, with OLM's annotations, certificates and
//! configuration.

use super::{
    CertificateSecret, RenderContext, TemplateAnnotations, objects, registry_v1::Deployment,
    webhooks,
};
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;

/// Volumes of the certificate: name, mount path, file of the certificate, file of the key.
const VOLUMES: [(&str, &str, &str, &str); 2] = [
    ("webhook-cert", "/tmp/k8s-webhook-server/serving-certs", "tls.crt", "tls.key"),
    ("apiservice-cert", "/apiserver.local.config/certificates", "apiserver.crt", "apiserver.key"),
];

/// The Deployments, in the order of the ClusterServiceVersion.
pub(super) fn all(context: &RenderContext<'_>) -> Vec<Value> {
    context.bundle.deployments.iter().map(|deployment| one(context, deployment)).collect()
}

fn one(context: &RenderContext<'_>, deployment: &Deployment) -> Value {
    let bundle = context.bundle;
    let mut spec = deployment.spec.clone();
    spec["revisionHistoryLimit"] = 1.into();
    let template = objects::entry(&mut spec, "template")
        .and_then(|template| objects::entry(template, "metadata"));
    if let Some(metadata) = template {
        let own = metadata.get("annotations").and_then(Value::as_object).cloned();
        let mut annotations: Map<String, Value> = bundle
            .annotations
            .iter()
            .map(|(name, value)| (name.clone(), value.as_str().into()))
            .collect();
        if !mainstay_fault::is_on("templates-lose-their-annotations") {
            annotations.extend(own.unwrap_or_default());
        }
        annotations.insert("olm.targetNamespaces".to_owned(), context.targets.join(",").into());
        if context.settings.template_annotations == TemplateAnnotations::Namespaces {
            let namespace = context.settings.namespace.into();
            annotations.insert("olm.operatorNamespace".to_owned(), namespace);
        }
        metadata["annotations"] = Value::Object(annotations);
    }
    let serves = bundle.webhooks.iter().any(|webhook| webhook.deployment == deployment.name);
    if let Some(provider) = context.settings.certificates.filter(|_| serves) {
        let secret = provider.secret(&webhooks::serving(context, &deployment.name));
        mount_certificate(&mut spec, &secret);
    }
    let mut metadata = objects::metadata(&deployment.name, context.settings.namespace);
    metadata["labels"] = deployment.labels.clone();
    let mut fields = Map::new();
    fields.insert("metadata".to_owned(), metadata);
    fields.insert("spec".to_owned(), spec);
    if let Some(config) = context.settings.deployment_config {
        config.apply(&mut fields);
    }
    objects::object("apps/v1", "Deployment", fields)
}

/// Mounts the certificate into all containers. It replaces volumes of the same name or mount path.
fn mount_certificate(spec: &mut Value, secret: &CertificateSecret) {
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
    let replace = |holder: &mut Value, field: &str, new: Vec<Value>| {
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
    replace(pod, "volumes", volumes.collect());
    let containers = pod.get_mut("containers").and_then(Value::as_array_mut);
    for container in containers.into_iter().flatten().filter(|container| container.is_object()) {
        let mounts =
            VOLUMES.iter().map(|(name, path, ..)| json!({"name": name, "mountPath": path}));
        replace(container, "volumeMounts", mounts.collect());
    }
}
