//! Removes the objects around the servers of versions.

use super::{objects, observed, required};
use crate::context::{Caches, Context};
use crate::csv::observe::is_owner;
use crate::error::Error;
use crate::fields;
use mainstay_api::{ClusterServiceVersion, WebhookDescription, WebhookKind, resources};
use mainstay_client::DeleteOptions;
use mainstay_controller::Operation as _;
use mainstay_object::{NamespacedName, Resource, known};
use serde_json::json;

const CRD: &Resource = &known::CUSTOM_RESOURCE_DEFINITION;

/// What labels give to a version of what versions serve. Webhooks are first: with them, requests are
/// still sent to pods that end.
pub(crate) fn left(
    caches: &Caches,
    namespace: &str,
    name: &str,
) -> Vec<(Resource, NamespacedName)> {
    let mut left: Vec<(Resource, NamespacedName)> = Vec::new();
    for hook in observed::hooks(caches, namespace, name) {
        let key = NamespacedName::cluster(hook.name.as_str());
        left.push((objects::configuration_of(hook.mutating), key));
    }
    for (key, service) in caches.api_services.list(None) {
        if is_owner(&service.labels, namespace, name) {
            left.push((known::API_SERVICE, key));
        }
    }
    for (key, binding) in caches.bindings.list(Some(objects::SYSTEM)) {
        if is_owner(&binding.labels, namespace, name) && key.name.ends_with("-auth-reader") {
            left.push((known::ROLE_BINDING, key));
        }
    }
    left
}

/// Removes what a version served and what owner references do not reach. Returns whether nothing of it
/// is left in the caches.
pub(crate) async fn clean_up(
    context: &Context,
    csv: &ClusterServiceVersion,
) -> Result<bool, Error> {
    let left = left(&context.caches, &csv.metadata.namespace, &csv.metadata.name);
    for (resource, key) in &left {
        context
            .cluster
            .ensure_deleted(resource, key.namespace(), &key.name, &DeleteOptions::default())
            .await
            .during("removing what a version served")?;
    }
    let mut converted = false;
    for description in required::converters(csv) {
        for crd in &description.conversion_crds {
            converted |= unconvert(context, csv, description, crd).await?;
        }
    }
    Ok(left.is_empty() && !converted)
}

/// Has objects of a definition no longer converted by the webhook of a version that goes, unless its
/// successor goes on. Returns whether the cache still says that they are.
async fn unconvert(
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
        || goes_on(context, csv, description, crd).await?
    {
        return Ok(false);
    }
    let doing = "ending the conversion of a definition";
    let live = context.cluster.find(CRD, None, crd).await.during(doing)?;
    let Some(live) = live.filter(|object| ours(&fields::Crd::of(object))) else { return Ok(true) };
    let mut new = live.clone();
    new.set(&["spec", "conversion"], json!({"strategy": "None"}));
    context.cluster.update(CRD, &new).await.during(doing)?;
    Ok(true)
}

/// Whether another version of the namespace converts objects of the definition by the same Service.
async fn goes_on(
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
        let Some(found) = found.during("reading a version")? else { continue };
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
