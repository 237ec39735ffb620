//! What a step waits for, in the words of the recordings.

use anyhow::bail;
use mainstay_api::{names, resources};
use mainstay_client::{Cluster, ListParams};
use mainstay_object::{Object, Resource, known};

/// What can be installed.
const PACKAGE: Resource = Resource::namespaced(
    mainstay_packages::GROUP,
    mainstay_packages::VERSION,
    "PackageManifest",
    "packagemanifests",
);

/// One of the things that a step waits for; all of them must hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Wanted {
    Ready(String),
    Phase {
        csv: String,
        phase: String,
        reason: Option<String>,
    },
    Had {
        csv: String,
        phase: String,
        reason: String,
    },
    Plans {
        count: usize,
        phase: String,
    },
    Condition {
        subscription: String,
        kind: String,
        status: String,
    },
    Gone {
        kind: String,
        name: String,
    },
    /// That a namespace has a package.
    Package {
        name: String,
        namespace: String,
    },
    /// That a package is told to be deprecated.
    Deprecation,
}

/// Whether it may come without anything being written.
pub(super) fn is_unwritten(wanted: &[Wanted]) -> bool {
    wanted.iter().any(|condition| matches!(condition, Wanted::Package { .. } | Wanted::Deprecation))
}

/// Whether it is about plans that fail, which takes as long as plans are tried again, or about a
/// version that was waited for too long.
pub(super) fn fails(wanted: &[Wanted]) -> bool {
    wanted.iter().any(|condition| match condition {
        Wanted::Plans { phase, .. } => phase == "Failed",
        Wanted::Had { phase, reason, .. } => phase == "Failed" && reason == "InstallCheckFailed",
        _ => false,
    })
}

/// Reads a text such as `CSV a.v1 Succeeded and ClusterServiceVersion a.v0 gone`.
pub(super) fn parse(text: &str) -> anyhow::Result<Vec<Wanted>> {
    text.split(" and ").map(one).collect()
}

fn one(text: &str) -> anyhow::Result<Wanted> {
    let words: Vec<&str> = text.split_whitespace().collect();
    let own = |text: &str| text.to_owned();
    Ok(match words.as_slice() {
        ["CatalogSource", name, "READY"] => Wanted::Ready(own(name)),
        ["CSV", csv, "had", state] => {
            let (phase, reason) = state.split_once('/').unwrap_or((state, ""));
            Wanted::Had { csv: own(csv), phase: own(phase), reason: own(reason) }
        }
        ["CSV", csv, state] => {
            let (phase, reason) = match state.split_once('/') {
                Some((phase, reason)) => (phase, Some(own(reason))),
                None => (*state, None),
            };
            Wanted::Phase { csv: own(csv), phase: own(phase), reason }
        }
        [count, "InstallPlan(s)", phase] => {
            Wanted::Plans { count: count.parse()?, phase: own(phase) }
        }
        ["Subscription", name, condition] => {
            let Some((kind, status)) = condition.split_once('=') else {
                bail!("what is waited for is not understood: {text}")
            };
            Wanted::Condition { subscription: own(name), kind: own(kind), status: own(status) }
        }
        [kind, name, "gone"] => Wanted::Gone { kind: own(kind), name: own(name) },
        ["PackageManifest", name, "in", namespace] => {
            Wanted::Package { name: own(name), namespace: own(namespace) }
        }
        ["deprecation", "shown"] => Wanted::Deprecation,
        _ => bail!("what is waited for is not understood: {text}"),
    })
}

async fn listed(
    cluster: &Cluster,
    resource: &Resource,
    namespaces: &[String],
) -> anyhow::Result<Vec<Object>> {
    let mut items = cluster.list(resource, None, &ListParams::default()).await?.items;
    items.retain(|object| {
        object.namespace().is_empty() || namespaces.iter().any(|n| n == object.namespace())
    });
    Ok(items)
}

/// Whether all of it holds. What is to be gone is looked for in the namespace `here` alone: another
/// one may have a version of the same name.
pub(super) async fn holds(
    cluster: &Cluster,
    namespaces: &[String],
    here: &str,
    wanted: &[Wanted],
) -> anyhow::Result<bool> {
    for wanted in wanted {
        if !is_true(cluster, namespaces, here, wanted).await? {
            return Ok(false);
        }
    }
    Ok(true)
}

async fn is_true(
    cluster: &Cluster,
    namespaces: &[String],
    here: &str,
    wanted: &Wanted,
) -> anyhow::Result<bool> {
    let csvs = &resources::CLUSTER_SERVICE_VERSION;
    Ok(match wanted {
        Wanted::Package { name, namespace } => {
            cluster.find(&PACKAGE, Some(namespace), name).await?.is_some()
        }
        Wanted::Deprecation => {
            let all = cluster.list(&PACKAGE, None, &ListParams::default()).await?.items;
            all.iter().any(|package| package.get(&["status", "deprecation"]).is_some())
        }
        Wanted::Ready(name) => listed(cluster, &resources::CATALOG_SOURCE, namespaces)
            .await?
            .iter()
            .any(|catalog_source| {
                catalog_source.name() == name
                    && catalog_source.str(&["status", "connectionState", "lastObservedState"])
                        == Some("READY")
            }),
        Wanted::Phase { csv, phase, reason } => {
            listed(cluster, csvs, namespaces).await?.iter().any(|object| {
                object.name() == csv
                    && object.label(names::COPIED_FROM).is_none()
                    && object.str(&["status", "phase"]) == Some(phase)
                    && reason
                        .as_deref()
                        .is_none_or(|reason| object.str(&["status", "reason"]) == Some(reason))
            })
        }
        Wanted::Had { csv, phase, reason } => {
            listed(cluster, csvs, namespaces).await?.iter().any(|object| {
                object.name() == csv
                    && object.array(&["status", "conditions"]).iter().any(|condition| {
                        condition["phase"] == **phase && condition["reason"] == **reason
                    })
            })
        }
        Wanted::Plans { count, phase } => {
            let plans = listed(cluster, &resources::INSTALL_PLAN, namespaces).await?;
            let fits = |plan: &&Object| plan.str(&["status", "phase"]) == Some(phase);
            plans.iter().filter(fits).count() >= *count
        }
        Wanted::Condition { subscription, kind, status } => {
            let found = listed(cluster, &resources::SUBSCRIPTION, namespaces).await?;
            found.iter().any(|object| {
                object.name() == subscription && object.condition(kind) == Some(status)
            })
        }
        Wanted::Gone { kind, name } if kind == "Namespace" => {
            !listed(cluster, &known::NAMESPACE, namespaces)
                .await?
                .iter()
                .any(|namespace| namespace.name() == name)
        }
        Wanted::Gone { name, .. } => {
            !listed(cluster, csvs, namespaces).await?.iter().any(|object| {
                object.name() == name
                    && object.namespace() == here
                    && object.label(names::COPIED_FROM).is_none()
            })
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_waited_for_is_read() {
        let own = str::to_owned;
        assert_eq!(
            parse("CSV a.v2 Pending/X and ClusterServiceVersion a.v1 gone").unwrap(),
            [
                Wanted::Phase { csv: own("a.v2"), phase: own("Pending"), reason: Some(own("X")) },
                Wanted::Gone { kind: own("ClusterServiceVersion"), name: own("a.v1") },
            ]
        );
        assert_eq!(
            parse("2 InstallPlan(s) Failed").unwrap(),
            [Wanted::Plans { count: 2, phase: own("Failed") }]
        );
        assert!(parse("whatever").is_err());
    }
}
