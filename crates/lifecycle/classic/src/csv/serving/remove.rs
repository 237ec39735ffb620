//! Serving cleanup: removes the objects around the servers of a CSV.

use super::{objects, observed, required};
use crate::context::{Caches, Context};
use crate::csv::observe::is_owner;
use crate::error::Error;
use crate::fields;
use mainstay_api::{ClusterServiceVersion, WebhookDescription, WebhookKind, resources};
use mainstay_client::DeleteOptions;
use mainstay_controller::WithOperation as _;
use mainstay_object::{NamespacedName, Resource, builtin};
use serde_json::json;

const CRD: &Resource = &builtin::CUSTOM_RESOURCE_DEFINITION;

/// The objects with the owner labels of a CSV that its servers have. Webhook configurations come
/// first, because they send requests to pods that stop.
pub(crate) fn owned_objects(
    caches: &Caches,
    namespace: &str,
    name: &str,
) -> Vec<(Resource, NamespacedName)> {
    let mut owned_objects: Vec<(Resource, NamespacedName)> = Vec::new();
    for configuration in observed::webhook_configurations(caches, namespace, name) {
        let key = NamespacedName::cluster(configuration.name.as_str());
        owned_objects.push((objects::configuration_of(configuration.mutating), key));
    }
    for (key, service) in caches.api_services.list(None) {
        if is_owner(&service.labels, namespace, name) {
            owned_objects.push((builtin::API_SERVICE, key));
        }
    }
    for (key, binding) in caches.role_bindings.list(Some(objects::SYSTEM)) {
        if is_owner(&binding.labels, namespace, name) && key.name.ends_with("-auth-reader") {
            owned_objects.push((builtin::ROLE_BINDING, key));
        }
    }
    owned_objects
}

/// Removes the objects around servers that owner references do not reach. Returns whether the
/// caches have none left.
pub(crate) async fn finalize(
    context: &Context,
    csv: &ClusterServiceVersion,
) -> Result<bool, Error> {
    let owned_objects = owned_objects(&context.caches, &csv.metadata.namespace, &csv.metadata.name);
    for (resource, key) in &owned_objects {
        context
            .cluster
            .ensure_deleted(resource, key.namespace(), &key.name, &DeleteOptions::default())
            .await
            .during("deleting a serving object of a ClusterServiceVersion")?;
    }
    let mut converted = false;
    for description in required::conversion_webhooks(csv) {
        for crd in &description.conversion_crds {
            converted |= end_conversion(context, csv, description, crd).await?;
        }
    }
    Ok(owned_objects.is_empty() && !converted)
}

/// Ends the conversion of a CustomResourceDefinition by the webhook of a deleted CSV, unless its
/// successor continues it. Returns whether the cache still shows the conversion.
async fn end_conversion(
    context: &Context,
    csv: &ClusterServiceVersion,
    description: &WebhookDescription,
    crd: &str,
) -> Result<bool, Error> {
    let key = NamespacedName::cluster(crd);
    let ours = |crd: &fields::Crd| {
        let service = required::service(&description.deployment_name);
        crd.conversion.as_ref().is_some_and(|conversion| {
            conversion.service == (csv.metadata.namespace.clone(), service)
        })
    };
    if !context.caches.crds.get(&key).is_some_and(|crd| ours(&crd))
        || is_converted_by_peer(context, csv, description, crd).await?
    {
        return Ok(false);
    }
    let operation = "ending the conversion of a definition";
    let live = context.cluster.find(CRD, None, crd).await.during(operation)?;
    let Some(live) = live.filter(|object| ours(&fields::Crd::of(object))) else { return Ok(true) };
    let mut new = live.clone();
    new.set(&["spec", "conversion"], json!({"strategy": "None"}));
    context.cluster.update(CRD, &new).await.during(operation)?;
    Ok(true)
}

/// Whether another CSV of the namespace converts the objects by the same Service.
async fn is_converted_by_peer(
    context: &Context,
    csv: &ClusterServiceVersion,
    description: &WebhookDescription,
    crd: &str,
) -> Result<bool, Error> {
    let resource = &resources::CLUSTER_SERVICE_VERSION;
    let own = &csv.metadata;
    for (key, peer) in context.caches.csvs.indexed(crd) {
        let other = *key.namespace == *own.namespace && *key.name != *own.name;
        if !other || peer.is_copy() || peer.deleting {
            continue;
        }
        let found = context.cluster.find(resource, key.namespace(), &key.name).await;
        let Some(found) = found.during("reading a ClusterServiceVersion")? else { continue };
        let other = ClusterServiceVersion::from_object(&found)?;
        let same = |webhook: &WebhookDescription| {
            webhook.kind == WebhookKind::Conversion
                && webhook.deployment_name == description.deployment_name
                && webhook.conversion_crds.iter().any(|name| name == crd)
        };
        if other.spec.webhook_definitions.iter().any(same) {
            return Ok(true);
        }
    }
    Ok(false)
}
