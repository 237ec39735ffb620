//! Legacy objects: removes the objects that old versions of OLM created around the server of an
//! API, under names of the API rather than of its Deployment.

use super::{objects, required};
use crate::context::Context;
use crate::csv::observe::is_owner;
use crate::error::Error;
use mainstay_api::ClusterServiceVersion;
use mainstay_client::DeleteOptions;
use mainstay_controller::WithOperation as _;
use mainstay_object::{NamespacedName, Resource, builtin};

/// Removes the legacy objects for the APIs of a CSV, if owner labels name that CSV.
pub(crate) async fn remove(context: &Context, csv: &ClusterServiceVersion) -> Result<(), Error> {
    let metadata = &csv.metadata;
    for api in required::apis(csv) {
        for (resource, key) in legacy_objects(&metadata.namespace, &api.name) {
            let found = context.cluster.find(&resource, key.namespace(), &key.name).await;
            let found = found.during("looking for objects of another installer")?;
            let ours = |object: &mainstay_object::Object| {
                let labels = object.labels().map(|(key, value)| (key.to_owned(), value.to_owned()));
                is_owner(&labels.collect(), &metadata.namespace, &metadata.name)
            };
            let Some(found) = found.filter(ours) else { continue };
            let options = DeleteOptions::uid(found.uid());
            let done =
                context.cluster.ensure_deleted(&resource, key.namespace(), &key.name, &options);
            done.await.during("deleting an object of another installer")?;
        }
    }
    Ok(())
}

fn legacy_objects(namespace: &str, api: &str) -> [(Resource, NamespacedName); 6] {
    let namespaced = |name: String| NamespacedName::new(namespace, name.as_str());
    let secret = format!("{api}{}", super::CERTIFICATE_SUFFIX);
    [
        (builtin::SERVICE, namespaced(api.replace('.', "-"))),
        (builtin::SECRET, namespaced(secret.clone())),
        (builtin::ROLE, namespaced(secret.clone())),
        (builtin::ROLE_BINDING, namespaced(secret)),
        (builtin::CLUSTER_ROLE_BINDING, NamespacedName::cluster(objects::delegator(api))),
        (builtin::ROLE_BINDING, NamespacedName::new(objects::SYSTEM, objects::reader(api))),
    ]
}
