//! Where a Subscription stands.

use crate::{Finding, World, catalog, command, condition, group, leaving, plan, version};
use mainstay_cause::Cause;
use mainstay_object::Object;

/// Conditions that warn and hinder nothing.
const DEPRECATIONS: [&str; 3] = ["PackageDeprecated", "ChannelDeprecated", "BundleDeprecated"];

/// Looks at a Subscription.
pub(crate) fn finding(world: &World, subscription: &Object) -> Finding {
    let causes = causes(world, subscription);
    let standing =
        if causes.is_empty() { well(subscription) } else { "is not where it should be".to_owned() };
    // A catalog that is in the way was named already.
    let mut notes = if causes.iter().any(waits_for_catalogs) {
        Vec::new()
    } else {
        catalog::notes_of_others(world, subscription)
    };
    notes.extend(catalog::stale_content(world, subscription));
    notes.extend(
        DEPRECATIONS
            .iter()
            .filter_map(|kind| condition(subscription, kind, "True"))
            .map(|(_, message)| format!("deprecated: {message}")),
    );
    Finding { standing, causes, notes }
}

fn status<'o>(subscription: &'o Object, field: &str) -> &'o str {
    subscription.str(&["status", field]).unwrap_or_default()
}

fn well(subscription: &Object) -> String {
    let spec = |field: &str| subscription.str(&["spec", field]).unwrap_or_default();
    let of = match spec("channel") {
        "" => format!("package {}", spec("name")),
        channel => format!("channel {channel} of package {}", spec("name")),
    };
    format!(
        "is where it should be: {} runs, and catalog {}/{} has nothing newer in {of}",
        status(subscription, "installedCSV"),
        spec("sourceNamespace"),
        spec("source"),
    )
}

/// What stands above catalogs that a choice waits for.
const UNANSWERED: &str = "nothing is chosen for it while a catalog that it sees has not answered";
/// What stands above the bundles of other Subscriptions that a choice waits for.
const UNPACKING: &str =
    "nothing is chosen for it while a bundle for another Subscription of the namespace is unpacked";
/// What stands above the message of a resolution that failed.
const FAILED: &str = "nothing could be chosen for it";

/// Whether a cause names the other catalogs.
fn waits_for_catalogs(cause: &Cause) -> bool {
    cause.what() == UNANSWERED || cause.what() == FAILED && cause.children().len() > 1
}

fn causes(world: &World, subscription: &Object) -> Vec<Cause> {
    let namespace = subscription.namespace();
    let mut causes: Vec<Cause> = leaving(subscription).into_iter().collect();
    let groups = group::causes(world, namespace);
    let grouped = !groups.is_empty();
    causes.extend(groups);
    let source = catalog::named(world, subscription);
    let asked = source.is_none();
    causes.extend(source);
    if !grouped {
        causes.extend(unresolved(world, subscription, !asked));
    }
    causes.extend(unpacking(subscription));
    causes.extend(planned(world, subscription));
    causes.extend(versions(world, subscription, grouped));
    if causes.is_empty() {
        causes.extend(silent(world, subscription));
    }
    causes
}

/// Why nothing can be chosen. What its catalog explains already is not said twice.
fn unresolved(world: &World, subscription: &Object, explained: bool) -> Option<Cause> {
    let told = condition(subscription, "ResolutionFailed", "True");
    let found = world.unresolved.get(subscription.name());
    let installed = !status(subscription, "installedCSV").is_empty();
    let planned = subscription.get(&["status", "installPlanRef"]).is_some();
    match (told, found) {
        (_, Some(why)) if told.is_some() || !(installed || planned) => {
            Some(Cause::new("nothing can be chosen for it").because(why.clone()))
        }
        // Its message says no more than the catalog.
        (Some((reason, _)), None) if explained && reason != "ConstraintsNotSatisfiable" => None,
        (Some((_, message)), None) => {
            let cause = Cause::new(FAILED).because(Cause::new(message));
            let away = catalog::unanswered(world, subscription);
            Some(if !away.is_empty() {
                cause.because_all(away)
            } else if world.resolved && !explained {
                cause.remedy(
                    "as the cluster is now, something can be: wait until it is looked at again",
                )
            } else {
                cause.remedy(format!(
                    "see the whole choice: mainstay resolve -n {}",
                    subscription.namespace()
                ))
            })
        }
        _ => None,
    }
}

fn unpacking(subscription: &Object) -> Option<Cause> {
    let namespace = subscription.namespace();
    if let Some((reason, message)) = condition(subscription, "BundleUnpackFailed", "True") {
        let said = if message.is_empty() { reason } else { message };
        return Some(Cause::new("its bundle cannot be unpacked").because(Cause::new(said)).remedy(
            format!("see that the image can be pulled; pull secrets are those of the CatalogSource and of namespace {namespace}"),
        ));
    }
    let (_, message) = condition(subscription, "BundleUnpacking", "True")?;
    let cause = Cause::new("its bundle is being unpacked");
    Some(if message.is_empty() { cause } else { cause.because(Cause::new(message)) })
}

/// The other Subscriptions of the namespace whose bundles are not unpacked: a namespace is resolved as
/// one, and not again before they are.
fn unpacking_of_others(world: &World, subscription: &Object) -> Vec<Cause> {
    let others = world.within("Subscription", subscription.namespace());
    let others = others.filter(|other| other.name() != subscription.name());
    let named = |other: &Object| {
        let why = unpacking(other)?;
        Some(Cause::new(format!("Subscription {}", other.key())).because(why))
    };
    others.filter_map(named).collect()
}

/// What stands in the way of its plan.
fn planned(world: &World, subscription: &Object) -> Option<Cause> {
    let namespace = subscription.namespace();
    let name = subscription.str(&["status", "installPlanRef", "name"])?;
    let Some(found) = world.find("InstallPlan", namespace, name) else {
        // Plans that were carried out may be deleted.
        let current = world.version(namespace, status(subscription, "currentCSV"));
        if current.is_some_and(|csv| version::phase(csv) == "Succeeded") {
            return None;
        }
        let (_, message) = condition(subscription, "InstallPlanMissing", "True")?;
        let cause = Cause::new(format!("its InstallPlan {name} is gone"));
        return Some(if message.is_empty() {
            cause.remedy("a new one is made when something that it brings is missing")
        } else {
            cause.because(Cause::new(message))
        });
    };
    let causes = plan::causes(world, found);
    // A version that runs although its plan failed was brought by another one.
    if causes.is_empty() {
        return None;
    }
    let phase = found.str(&["status", "phase"]).unwrap_or_default();
    let words = match phase {
        "RequiresApproval" => "waits for approval".to_owned(),
        "Failed" => "has failed".to_owned(),
        "Installing" => "is being carried out".to_owned(),
        "" => "has not begun".to_owned(),
        other => format!("is in phase {other}"),
    };
    Some(Cause::new(format!("its InstallPlan {name} {words}")).because_all(causes))
}

/// What stands in the way of the versions that it brought.
fn versions(world: &World, subscription: &Object, grouped: bool) -> Vec<Cause> {
    let namespace = subscription.namespace();
    let (current, installed) =
        (status(subscription, "currentCSV"), status(subscription, "installedCSV"));
    let mut causes = Vec::new();
    let Some(found) = world.version(namespace, current).filter(|_| !current.is_empty()) else {
        let taken = |name: &&str| !name.is_empty() && world.copied_from(namespace, name).is_some();
        if let Some(name) = [current, installed].into_iter().find(taken) {
            causes.extend(taken_by_copy(world, subscription, name));
            return causes;
        }
        let hidden = world.hides("ClusterServiceVersion", namespace);
        if !installed.is_empty() && !hidden && world.version(namespace, installed).is_none() {
            causes.push(
                Cause::new(format!("{installed} was installed and is not there any more")).remedy(
                    format!(
                        "if it does not come back, have it installed anew: {}; then create the Subscription again",
                        command::delete("subscription", namespace, subscription.name())
                    ),
                ),
            );
        }
        return causes;
    };
    let of_group = matches!(
        found.str(&["status", "reason"]),
        Some("NoOperatorGroup" | "TooManyOperatorGroups" | "NoTargetNamespaces")
    );
    let stands = version::causes(world, found);
    if !(stands.is_empty() || grouped && of_group) {
        let name = found.name();
        let reason = found.str(&["status", "reason"]).unwrap_or_default();
        let what = match version::phase(found) {
            _ if found.is_terminating() => format!("{name} is being deleted"),
            "" => format!("{name} has not begun"),
            "Pending" if reason == version::GATED => format!("the upgrade to {name} is held back"),
            "Pending" => format!("{name} waits for what it needs"),
            "Failed" => format!("{name} has failed ({reason})"),
            "Replacing" => format!("{name} is being replaced"),
            _ => format!("{name} is being installed"),
        };
        causes.push(Cause::new(what).because_all(stands));
    }
    causes
}

/// That the name of a version is taken by the copy of one that watches the namespace already.
fn taken_by_copy(world: &World, subscription: &Object, name: &str) -> Option<Cause> {
    let namespace = subscription.namespace();
    let from = world.copied_from(namespace, name)?;
    let package = subscription.str(&["spec", "name"]).unwrap_or_default();
    Some(
        Cause::new(format!("the name {name} is taken by the copy of ClusterServiceVersion {from}/{name}"))
            .because(Cause::new(format!(
                "that operator is installed in namespace {from} and watches namespace {namespace} already"
            )))
            .remedy(format!(
                "use that operator, and remove this Subscription: {}",
                command::delete("subscription", namespace, subscription.name())
            ))
            .remedy(format!(
                "or remove that operator first: mainstay uninstall {package} -n {from} --dry-run"
            )),
    )
}

/// What there is to say if nothing is in the way, and nothing is there.
fn silent(world: &World, subscription: &Object) -> Option<Cause> {
    let state = status(subscription, "state");
    if state == "AtLatestKnown" && !status(subscription, "installedCSV").is_empty() {
        return None;
    }
    let logs = "see whether the lifecycle manager runs";
    Some(if subscription.get(&["status", "lastUpdated"]).is_none() {
        Cause::new("nothing has looked at it yet").remedy(logs)
    } else if state.is_empty()
        && let away = catalog::unanswered(world, subscription)
        && !away.is_empty()
    {
        Cause::new(UNANSWERED).because_all(away)
    } else if state.is_empty()
        && let unpacking = unpacking_of_others(world, subscription)
        && !unpacking.is_empty()
    {
        Cause::new(UNPACKING).because_all(unpacking)
    } else if state.is_empty() {
        Cause::new("nothing has been chosen for it yet").remedy(format!(
            "wait; if that lasts, see its events: kubectl -n {} describe subscription {}",
            subscription.namespace(),
            subscription.name()
        ))
    } else {
        let since = status(subscription, "lastUpdated");
        Cause::new(format!(
            "its state is {state} since {since}, and nothing on the cluster says why"
        ))
        .remedy(logs)
    })
}
