//! Subscriptions: why one does not run the newest version of its channel.

use crate::{
    ClusterObjects, Finding, catalog, command, condition, csv, deletion_cause, install_plan,
    operator_group,
};
use mainstay_cause::Cause;
use mainstay_object::Object;

/// Conditions that warn, and block nothing.
const DEPRECATIONS: [&str; 3] = ["PackageDeprecated", "ChannelDeprecated", "BundleDeprecated"];

/// Explains a Subscription.
pub(crate) fn finding(cluster: &ClusterObjects, subscription: &Object) -> Finding {
    let causes = causes(cluster, subscription);
    let standing = if causes.is_empty() {
        healthy_summary(subscription)
    } else {
        "is not up to date".to_owned()
    };
    // Catalogs that block the Subscription are causes already.
    let mut notes = if causes.iter().any(names_other_catalogs) {
        Vec::new()
    } else {
        catalog::other_catalog_notes(cluster, subscription)
    };
    notes.extend(catalog::stale_content_note(cluster, subscription));
    notes.extend(
        DEPRECATIONS
            .iter()
            .filter_map(|kind| condition(subscription, kind, "True"))
            .map(|(_, message)| format!("deprecated: {message}")),
    );
    Finding { state: standing, causes, notes }
}

fn status<'o>(subscription: &'o Object, field: &str) -> &'o str {
    subscription.str(&["status", field]).unwrap_or_default()
}

fn healthy_summary(subscription: &Object) -> String {
    let spec = |field: &str| subscription.str(&["spec", field]).unwrap_or_default();
    let source = match spec("channel") {
        "" => format!("package {}", spec("name")),
        channel => format!("channel {channel} of package {}", spec("name")),
    };
    format!(
        "is up to date: {} runs, and CatalogSource {}/{} has no newer version in {source}",
        status(subscription, "installedCSV"),
        spec("sourceNamespace"),
        spec("source"),
    )
}

/// The parent of the unhealthy catalogs that resolution waits for.
const WAITS_FOR_CATALOG: &str = "its resolution waits for a catalog that does not respond";
/// The parent of the bundles of other Subscriptions that resolution waits for.
const WAITS_FOR_UNPACKING: &str =
    "its resolution waits until a bundle for another Subscription of the namespace is unpacked";
/// The parent of the message of a failed resolution.
const RESOLUTION_FAILED: &str = "its resolution failed";

/// Whether a cause names unhealthy catalogs besides that of the Subscription.
fn names_other_catalogs(cause: &Cause) -> bool {
    cause.what() == WAITS_FOR_CATALOG
        || cause.what() == RESOLUTION_FAILED && cause.children().len() > 1
}

fn causes(cluster: &ClusterObjects, subscription: &Object) -> Vec<Cause> {
    let namespace = subscription.namespace();
    let mut causes: Vec<Cause> = deletion_cause(subscription).into_iter().collect();
    let groups = operator_group::causes(cluster, namespace);
    let has_group_problem = !groups.is_empty();
    causes.extend(groups);
    let catalog_cause = catalog::subscribed_catalog_cause(cluster, subscription);
    let has_catalog = catalog_cause.is_none();
    causes.extend(catalog_cause);
    if !has_group_problem {
        causes.extend(resolution_cause(cluster, subscription, !has_catalog));
    }
    causes.extend(unpacking_cause(subscription));
    causes.extend(install_plan_cause(cluster, subscription));
    causes.extend(csv_causes(cluster, subscription, has_group_problem));
    if causes.is_empty() {
        causes.extend(idle_cause(cluster, subscription));
    }
    causes
}

/// Why resolution fails, unless the cause of its catalog (`catalog_explains`) says the same.
fn resolution_cause(
    cluster: &ClusterObjects,
    subscription: &Object,
    catalog_explains: bool,
) -> Option<Cause> {
    let failed = condition(subscription, "ResolutionFailed", "True");
    let resolver_reason = cluster.unresolved.get(subscription.name());
    let has_csv = !status(subscription, "installedCSV").is_empty();
    let has_plan = subscription.get(&["status", "installPlanRef"]).is_some();
    match (failed, resolver_reason) {
        (_, Some(why)) if failed.is_some() || !(has_csv || has_plan) => {
            Some(Cause::new("it cannot be resolved").because(why.clone()))
        }
        // The message only repeats the cause of the catalog.
        (Some((reason, _)), None) if catalog_explains && reason != "ConstraintsNotSatisfiable" => {
            None
        }
        (Some((_, message)), None) => {
            let cause = Cause::new(RESOLUTION_FAILED).because(Cause::new(message));
            let catalogs = catalog::other_catalog_causes(cluster, subscription);
            Some(if !catalogs.is_empty() {
                cause.because_all(catalogs)
            } else if cluster.resolved && !catalog_explains {
                cause.remedy("it can be resolved now: wait until the namespace is resolved again")
            } else {
                cause.remedy(format!(
                    "see the whole resolution: mainstay resolve -n {}",
                    subscription.namespace()
                ))
            })
        }
        _ => None,
    }
}

fn unpacking_cause(subscription: &Object) -> Option<Cause> {
    let namespace = subscription.namespace();
    if let Some((reason, message)) = condition(subscription, "BundleUnpackFailed", "True") {
        let text = if message.is_empty() { reason } else { message };
        return Some(Cause::new("its bundle cannot be unpacked").because(Cause::new(text)).remedy(
            format!("check that the image can be pulled; its pull secrets are those of the CatalogSource and of namespace {namespace}"),
        ));
    }
    let (_, message) = condition(subscription, "BundleUnpacking", "True")?;
    let cause = Cause::new("its bundle is being unpacked");
    Some(if message.is_empty() { cause } else { cause.because(Cause::new(message)) })
}

/// The other Subscriptions of the namespace whose bundles are not unpacked. A namespace is resolved as
/// a whole, and not again before all its bundles are unpacked.
fn other_unpacking_causes(cluster: &ClusterObjects, subscription: &Object) -> Vec<Cause> {
    let others = cluster.in_namespace("Subscription", subscription.namespace());
    let others = others.filter(|other| other.name() != subscription.name());
    let cause_of = |other: &Object| {
        let why = unpacking_cause(other)?;
        Some(Cause::new(format!("Subscription {}", other.key())).because(why))
    };
    others.filter_map(cause_of).collect()
}

/// What blocks the InstallPlan of a Subscription.
fn install_plan_cause(cluster: &ClusterObjects, subscription: &Object) -> Option<Cause> {
    let namespace = subscription.namespace();
    let name = subscription.str(&["status", "installPlanRef", "name"])?;
    let Some(plan) = cluster.find("InstallPlan", namespace, name) else {
        // A complete plan may be deleted.
        let current = cluster.csv(namespace, status(subscription, "currentCSV"));
        if current.is_some_and(|csv| csv::phase(csv) == "Succeeded") {
            return None;
        }
        let (_, message) = condition(subscription, "InstallPlanMissing", "True")?;
        let cause = Cause::new(format!("its InstallPlan {name} is deleted"));
        return Some(if message.is_empty() {
            cause.remedy("a new one is created when one of its objects is missing")
        } else {
            cause.because(Cause::new(message))
        });
    };
    let causes = install_plan::causes(cluster, plan);
    // A version that runs although its plan failed was brought by another one.
    if causes.is_empty() {
        return None;
    }
    let phase = plan.str(&["status", "phase"]).unwrap_or_default();
    let words = match phase {
        "RequiresApproval" => "waits for approval".to_owned(),
        "Failed" => "has failed".to_owned(),
        "Installing" => "is being installed".to_owned(),
        "" => "has not started".to_owned(),
        other => format!("is in phase {other}"),
    };
    Some(Cause::new(format!("its InstallPlan {name} {words}")).because_all(causes))
}

/// What blocks the current ClusterServiceVersion of a Subscription.
fn csv_causes(
    cluster: &ClusterObjects,
    subscription: &Object,
    has_group_problem: bool,
) -> Vec<Cause> {
    let namespace = subscription.namespace();
    let (current, installed) =
        (status(subscription, "currentCSV"), status(subscription, "installedCSV"));
    let mut causes = Vec::new();
    let Some(csv) = cluster.csv(namespace, current).filter(|_| !current.is_empty()) else {
        let is_copied =
            |name: &&str| !name.is_empty() && cluster.copied_from(namespace, name).is_some();
        if let Some(name) = [current, installed].into_iter().find(is_copied) {
            causes.extend(copied_csv_cause(cluster, subscription, name));
            return causes;
        }
        let hidden = cluster.hides("ClusterServiceVersion", namespace);
        if !installed.is_empty() && !hidden && cluster.csv(namespace, installed).is_none() {
            causes.push(
                Cause::new(format!("{installed} was installed and does not exist any more")).remedy(
                    format!(
                        "if it does not come back, reinstall it: {}; then create the Subscription again",
                        command::delete("subscription", namespace, subscription.name())
                    ),
                ),
            );
        }
        return causes;
    };
    let waits_for_group = matches!(
        csv.str(&["status", "reason"]),
        Some("NoOperatorGroup" | "TooManyOperatorGroups" | "NoTargetNamespaces")
    );
    let open_causes = csv::causes(cluster, csv);
    if !(open_causes.is_empty() || has_group_problem && waits_for_group) {
        let name = csv.name();
        let reason = csv.str(&["status", "reason"]).unwrap_or_default();
        let what = match csv::phase(csv) {
            _ if csv.is_terminating() => format!("{name} is being deleted"),
            "" => format!("{name} has not started"),
            "Pending" if reason == csv::NOT_UPGRADEABLE => {
                format!("the upgrade to {name} is blocked")
            }
            "Pending" => format!("{name} waits for its requirements"),
            "Failed" => format!("{name} has failed ({reason})"),
            "Replacing" => format!("{name} is being replaced"),
            _ => format!("{name} is being installed"),
        };
        causes.push(Cause::new(what).because_all(open_causes));
    }
    causes
}

/// The cause that a copied CSV has the name of the wanted ClusterServiceVersion: its operator already
/// watches the namespace.
fn copied_csv_cause(cluster: &ClusterObjects, subscription: &Object, name: &str) -> Option<Cause> {
    let namespace = subscription.namespace();
    let from = cluster.copied_from(namespace, name)?;
    let package = subscription.str(&["spec", "name"]).unwrap_or_default();
    Some(
        Cause::new(format!("the copy of ClusterServiceVersion {from}/{name} has the name {name}"))
            .because(Cause::new(format!(
                "that operator is installed in namespace {from} and watches namespace {namespace} already"
            )))
            .remedy(format!(
                "use that operator, and delete this Subscription: {}",
                command::delete("subscription", namespace, subscription.name())
            ))
            .remedy(format!(
                "or uninstall that operator first: mainstay uninstall {package} -n {from} --dry-run"
            )),
    )
}

/// Why a Subscription that nothing blocks has no ClusterServiceVersion yet.
fn idle_cause(cluster: &ClusterObjects, subscription: &Object) -> Option<Cause> {
    let state = status(subscription, "state");
    if state == "AtLatestKnown" && !status(subscription, "installedCSV").is_empty() {
        return None;
    }
    let check_manager = "check that the lifecycle manager runs";
    Some(if subscription.get(&["status", "lastUpdated"]).is_none() {
        Cause::new("no controller has reconciled it yet").remedy(check_manager)
    } else if state.is_empty()
        && let catalogs = catalog::other_catalog_causes(cluster, subscription)
        && !catalogs.is_empty()
    {
        Cause::new(WAITS_FOR_CATALOG).because_all(catalogs)
    } else if state.is_empty()
        && let unpacking = other_unpacking_causes(cluster, subscription)
        && !unpacking.is_empty()
    {
        Cause::new(WAITS_FOR_UNPACKING).because_all(unpacking)
    } else if state.is_empty() {
        Cause::new("it is not resolved yet").remedy(format!(
            "wait; if that lasts, see its events: kubectl -n {} describe subscription {}",
            subscription.namespace(),
            subscription.name()
        ))
    } else {
        let since = status(subscription, "lastUpdated");
        Cause::new(format!(
            "its state is {state} since {since}, and no object on the cluster shows a reason"
        ))
        .remedy(check_manager)
    })
}
