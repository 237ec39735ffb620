//! Default CatalogSources of a cluster, and the `OperatorHub` that enables and disables them.

use crate::embedded::chain;
use crate::layout;
use mainstay_api::names;
use mainstay_api::resources::OPERATOR_HUB;
use mainstay_cause::Cause;
use mainstay_classic::DefaultSources;
use mainstay_cli::defaults::DefaultCatalogs;
use mainstay_client::{Cluster, Error};
use mainstay_command::profile::Profile;
use mainstay_object::Object;
use mainstay_object::builtin::{CUSTOM_RESOURCE_DEFINITION, DEPLOYMENT};
use serde_json::{Value, json};

/// Name, image, display name and priority of OpenShift's default CatalogSources.
const OPENSHIFT: [(&str, &str, &str, i64); 4] = [
    ("redhat-operators", "redhat-operator-index", "Red Hat Operators", -100),
    ("certified-operators", "certified-operator-index", "Certified Operators", -200),
    ("redhat-marketplace", "redhat-marketplace-index", "Red Hat Marketplace", -300),
    ("community-operators", "community-operator-index", "Community Operators", -400),
];

/// Applies the CustomResourceDefinition of `OperatorHub`, unless the cluster has no default catalogs.
pub(crate) async fn ensure_crd(cluster: &Cluster, defaults: &DefaultCatalogs) -> Result<(), Cause> {
    let Some(crd) = mainstay_api::operator_hub_crd().filter(|_| *defaults != DefaultCatalogs::None)
    else {
        return Ok(());
    };
    // Other operators own OpenShift's CustomResourceDefinition.
    let found = cluster.find(&CUSTOM_RESOURCE_DEFINITION, None, crd.name()).await;
    if found.map_err(|error| unreadable(&error))?.is_none() {
        layout::establish_crds(cluster, &[crd]).await?;
    }
    Ok(())
}

/// The default catalogs to reconcile, after creating the `OperatorHub`. `None` without default catalogs, or
/// if the marketplace operator reconciles them, which `say` reports.
pub(crate) async fn default_sources(
    cluster: &Cluster,
    defaults: &DefaultCatalogs,
    profile: Profile,
    say: impl FnOnce(&str),
) -> Result<Option<DefaultSources>, Cause> {
    let manifests = match defaults {
        DefaultCatalogs::None => return Ok(None),
        DefaultCatalogs::Given(manifests) => manifests.clone(),
        DefaultCatalogs::Profile => profile_sources(profile, minor_version(cluster).await?),
    };
    let (namespace, name) = (Profile::Openshift.catalog_namespace(), names::MARKETPLACE);
    let marketplace = cluster.find(&DEPLOYMENT, Some(namespace), name).await;
    let marketplace = marketplace.map_err(|error| unreadable(&error))?;
    if marketplace.is_some_and(|deployment| deployment.i64(&["spec", "replicas"]) != Some(0)) {
        say(&format!("defaults    Deployment {namespace}/{name} manages the default catalogs"));
        return Ok(None);
    }
    let found = cluster.find(&OPERATOR_HUB, None, names::OPERATOR_HUB).await;
    if found.map_err(|error| unreadable(&error))?.is_none() {
        let mut hub = Object::new(&OPERATOR_HUB.gvk(), names::OPERATOR_HUB);
        hub.set(&["spec"], json!({}));
        match cluster.create(&OPERATOR_HUB, &hub).await {
            Err(error) if !error.is_already_exists() => {
                return Err(Cause::new("the OperatorHub cannot be created").because(chain(&error)));
            }
            _ => {}
        }
    }
    DefaultSources::new(&manifests)
        .map(Some)
        .map_err(|error| Cause::new("a default catalog cannot be read").because(chain(&error)))
}

fn unreadable(error: &Error) -> Cause {
    Cause::new("the default catalogs of the cluster cannot be read").because(chain(error))
}

/// The minor version of the cluster's Kubernetes.
async fn minor_version(cluster: &Cluster) -> Result<u32, Cause> {
    let version = cluster.get_raw("/version").await.map_err(|error| unreadable(&error))?;
    let text = version.get("minor").and_then(Value::as_str).unwrap_or_default();
    let digits = text.trim_end_matches(|character: char| !character.is_ascii_digit());
    digits.parse().map_err(|_| {
        let why = format!("its minor version is `{text}`, which is not a number");
        Cause::new("the Kubernetes version of the cluster is unknown")
            .because(Cause::new(why))
            .remedy("name the catalogs with --default-sources DIR")
    })
}

/// The default CatalogSources of a profile's distribution on a Kubernetes minor version.
fn profile_sources(profile: Profile, minor_version: u32) -> Vec<Object> {
    let sources: Vec<Value> = match profile {
        Profile::Standard => vec![json!({
            "metadata": {"name": "operatorhubio-catalog"},
            "spec": {
                "sourceType": "grpc",
                "image": "quay.io/operatorhubio/catalog:latest",
                "displayName": "Community Operators",
                "publisher": "OperatorHub.io",
                "grpcPodConfig": {"securityContextConfig": "restricted"},
                "updateStrategy": {"registryPoll": {"interval": "60m"}},
            },
        })],
        Profile::Openshift => {
            let version = openshift_version(minor_version);
            let source = |(name, image, shown, weight): (&str, &str, &str, i64)| {
                json!({
                    "metadata": {"name": name},
                    "spec": {
                        "sourceType": "grpc",
                        "image": format!("registry.redhat.io/redhat/{image}:v{version}"),
                        "displayName": shown,
                        "publisher": "Red Hat",
                        "priority": weight,
                        "grpcPodConfig": {
                            "securityContextConfig": "restricted",
                            "priorityClassName": "system-cluster-critical",
                            "nodeSelector": {"kubernetes.io/os": "linux"},
                        },
                        "updateStrategy": {"registryPoll": {"interval": "10m"}},
                    },
                })
            };
            OPENSHIFT.map(source).to_vec()
        }
    };
    sources.into_iter().filter_map(|source| Object::from_value(source).ok()).collect()
}

/// The version of OpenShift that has a Kubernetes of this minor version.
fn openshift_version(minor_version: u32) -> String {
    match minor_version.checked_sub(36) {
        // 4.22 is the last of its line.
        Some(after) => format!("5.{after}"),
        None => format!("4.{}", minor_version.saturating_sub(13)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn openshift_profile_has_four_catalogs_and_the_standard_profile_one() {
        let all = profile_sources(Profile::Openshift, 32);
        let listed: Vec<_> = all
            .iter()
            .map(|source| {
                (
                    source.name(),
                    source.str(&["spec", "image"]),
                    source.str(&["spec", "displayName"]),
                )
            })
            .collect();
        let image = |name: &str| format!("registry.redhat.io/redhat/{name}-index:v4.19");
        let images =
            ["redhat-operator", "certified-operator", "redhat-marketplace", "community-operator"]
                .map(image);
        let expected = [
            ("redhat-operators", Some(&*images[0]), Some("Red Hat Operators")),
            ("certified-operators", Some(&*images[1]), Some("Certified Operators")),
            ("redhat-marketplace", Some(&*images[2]), Some("Red Hat Marketplace")),
            ("community-operators", Some(&*images[3]), Some("Community Operators")),
        ];
        // shows CAT-50
        assert_eq!(listed, expected);
        assert!(all.iter().all(|source| source.str(&["spec", "publisher"]) == Some("Red Hat")));
        let all = profile_sources(Profile::Standard, 32);
        assert_eq!(all.iter().map(Object::name).collect::<Vec<_>>(), ["operatorhubio-catalog"]);
    }

    #[test]
    fn openshift_version_follows_the_kubernetes_version() {
        for (minor_version, version) in [(27, "4.14"), (35, "4.22"), (36, "5.0"), (37, "5.1")] {
            assert_eq!(openshift_version(minor_version), version);
        }
    }
}
