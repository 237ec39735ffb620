//! Wait conditions: parses and evaluates the conditions that recorded steps wait for.

use anyhow::bail;
use mainstay_api::{names, resources};
use mainstay_client::{Cluster, ObjectList};
use mainstay_object::{Object, Resource, builtin};

/// The resource of PackageManifests.
const PACKAGE_MANIFEST: Resource = Resource::namespaced(
    mainstay_packages::GROUP,
    mainstay_packages::VERSION,
    "PackageManifest",
    "packagemanifests",
);

/// One condition; a step waits for all of its conditions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum WaitCondition {
    CatalogReady(String),
    CsvPhase {
        csv: String,
        phase: String,
        reason: Option<String>,
    },
    CsvHadPhase {
        csv: String,
        phase: String,
        reason: String,
    },
    InstallPlans {
        count: usize,
        phase: String,
    },
    SubscriptionCondition {
        subscription: String,
        kind: String,
        status: String,
    },
    Deleted {
        kind: String,
        name: String,
    },
    /// A namespace has a PackageManifest.
    PackageServed {
        name: String,
        namespace: String,
    },
    /// Some PackageManifest is marked as deprecated.
    DeprecationShown,
}

/// Whether a condition may come true without a write, because PackageManifests are computed.
pub(super) fn is_computed(conditions: &[WaitCondition]) -> bool {
    conditions.iter().any(|condition| {
        matches!(condition, WaitCondition::PackageServed { .. } | WaitCondition::DeprecationShown)
    })
}

/// Whether a condition is a timeout: an InstallPlan that fails after its retries, or a
/// ClusterServiceVersion whose install check fails.
pub(super) fn waits_for_failure(conditions: &[WaitCondition]) -> bool {
    conditions.iter().any(|condition| match condition {
        WaitCondition::InstallPlans { phase, .. } => phase == "Failed",
        WaitCondition::CsvHadPhase { phase, reason, .. } => {
            phase == "Failed" && reason == "InstallCheckFailed"
        }
        _ => false,
    })
}

/// Parses a text such as `CSV a.v1 Succeeded and ClusterServiceVersion a.v0 gone`.
pub(super) fn parse(text: &str) -> anyhow::Result<Vec<WaitCondition>> {
    text.split(" and ").map(parse_condition).collect()
}

fn parse_condition(text: &str) -> anyhow::Result<WaitCondition> {
    let words: Vec<&str> = text.split_whitespace().collect();
    let own = |text: &str| text.to_owned();
    Ok(match words.as_slice() {
        ["CatalogSource", name, "READY"] => WaitCondition::CatalogReady(own(name)),
        ["CSV", csv, "had", state] => {
            let (phase, reason) = state.split_once('/').unwrap_or((state, ""));
            WaitCondition::CsvHadPhase { csv: own(csv), phase: own(phase), reason: own(reason) }
        }
        ["CSV", csv, state] => {
            let (phase, reason) = match state.split_once('/') {
                Some((phase, reason)) => (phase, Some(own(reason))),
                None => (*state, None),
            };
            WaitCondition::CsvPhase { csv: own(csv), phase: own(phase), reason }
        }
        [count, "InstallPlan(s)", phase] => {
            WaitCondition::InstallPlans { count: count.parse()?, phase: own(phase) }
        }
        ["Subscription", name, condition] => {
            let Some((kind, status)) = condition.split_once('=') else {
                bail!("what is waited for is not understood: {text}")
            };
            WaitCondition::SubscriptionCondition {
                subscription: own(name),
                kind: own(kind),
                status: own(status),
            }
        }
        [kind, name, "gone"] => WaitCondition::Deleted { kind: own(kind), name: own(name) },
        ["PackageManifest", name, "in", namespace] => {
            WaitCondition::PackageServed { name: own(name), namespace: own(namespace) }
        }
        ["deprecation", "shown"] => WaitCondition::DeprecationShown,
        _ => bail!("what is waited for is not understood: {text}"),
    })
}

async fn list_in_namespaces(
    cluster: &Cluster,
    resource: &Resource,
    namespaces: &[String],
) -> anyhow::Result<Vec<Object>> {
    let mut items = cluster.list(resource, None, &ObjectList::default()).await?.items;
    items.retain(|object| {
        object.namespace().is_empty() || namespaces.iter().any(|n| n == object.namespace())
    });
    Ok(items)
}

/// Whether all conditions hold. Deletions are checked in `namespace` alone: another namespace may
/// have a ClusterServiceVersion of the same name.
pub(super) async fn all_hold(
    cluster: &Cluster,
    namespaces: &[String],
    namespace: &str,
    conditions: &[WaitCondition],
) -> anyhow::Result<bool> {
    for condition in conditions {
        if !holds(cluster, namespaces, namespace, condition).await? {
            return Ok(false);
        }
    }
    Ok(true)
}

async fn holds(
    cluster: &Cluster,
    namespaces: &[String],
    namespace: &str,
    condition: &WaitCondition,
) -> anyhow::Result<bool> {
    let csvs = &resources::CLUSTER_SERVICE_VERSION;
    Ok(match condition {
        WaitCondition::PackageServed { name, namespace } => {
            cluster.find(&PACKAGE_MANIFEST, Some(namespace), name).await?.is_some()
        }
        WaitCondition::DeprecationShown => {
            let all = cluster.list(&PACKAGE_MANIFEST, None, &ObjectList::default()).await?.items;
            all.iter().any(|package| package.get(&["status", "deprecation"]).is_some())
        }
        WaitCondition::CatalogReady(name) => {
            list_in_namespaces(cluster, &resources::CATALOG_SOURCE, namespaces).await?.iter().any(
                |catalog_source| {
                    catalog_source.name() == name
                        && catalog_source.str(&["status", "connectionState", "lastObservedState"])
                            == Some("READY")
                },
            )
        }
        WaitCondition::CsvPhase { csv, phase, reason } => {
            list_in_namespaces(cluster, csvs, namespaces).await?.iter().any(|object| {
                object.name() == csv
                    && object.label(names::COPIED_FROM).is_none()
                    && object.str(&["status", "phase"]) == Some(phase)
                    && reason
                        .as_deref()
                        .is_none_or(|reason| object.str(&["status", "reason"]) == Some(reason))
            })
        }
        WaitCondition::CsvHadPhase { csv, phase, reason } => {
            list_in_namespaces(cluster, csvs, namespaces).await?.iter().any(|object| {
                object.name() == csv
                    && object.array(&["status", "conditions"]).iter().any(|condition| {
                        condition["phase"] == **phase && condition["reason"] == **reason
                    })
            })
        }
        WaitCondition::InstallPlans { count, phase } => {
            let plans = list_in_namespaces(cluster, &resources::INSTALL_PLAN, namespaces).await?;
            let fits = |plan: &&Object| plan.str(&["status", "phase"]) == Some(phase);
            plans.iter().filter(fits).count() >= *count
        }
        WaitCondition::SubscriptionCondition { subscription, kind, status } => {
            let found = list_in_namespaces(cluster, &resources::SUBSCRIPTION, namespaces).await?;
            found.iter().any(|object| {
                object.name() == subscription && object.condition(kind) == Some(status)
            })
        }
        WaitCondition::Deleted { kind, name } if kind == "Namespace" => {
            !list_in_namespaces(cluster, &builtin::NAMESPACE, namespaces)
                .await?
                .iter()
                .any(|namespace| namespace.name() == name)
        }
        WaitCondition::Deleted { name, .. } => {
            !list_in_namespaces(cluster, csvs, namespaces).await?.iter().any(|object| {
                object.name() == name
                    && object.namespace() == namespace
                    && object.label(names::COPIED_FROM).is_none()
            })
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wait_conditions_are_parsed() {
        let own = str::to_owned;
        assert_eq!(
            parse("CSV a.v2 Pending/X and ClusterServiceVersion a.v1 gone").unwrap(),
            [
                WaitCondition::CsvPhase {
                    csv: own("a.v2"),
                    phase: own("Pending"),
                    reason: Some(own("X"))
                },
                WaitCondition::Deleted { kind: own("ClusterServiceVersion"), name: own("a.v1") },
            ]
        );
        assert_eq!(
            parse("2 InstallPlan(s) Failed").unwrap(),
            [WaitCondition::InstallPlans { count: 2, phase: own("Failed") }]
        );
        assert!(parse("whatever").is_err());
    }
}
