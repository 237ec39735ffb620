//! Whether catalogs can be asked.

use crate::{Finding, World, leaving, text};
use mainstay_cause::Cause;
use mainstay_object::Object;
use serde_json::Value;
use std::collections::BTreeMap;

const GLOBAL: [&str; 2] = ["olm", "openshift-marketplace"];

/// Looks at a `CatalogSource`.
pub(crate) fn finding(world: &World, source: &Object) -> Finding {
    let causes = causes(world, source);
    let standing = if causes.is_empty() {
        "is served, and its connection is READY".to_owned()
    } else if is_ready(source) && has_content_problem(source) {
        "serves what it had: its newest content cannot be read".to_owned()
    } else {
        "cannot be asked".to_owned()
    };
    Finding { standing, causes, notes: notes(source) }
}

/// Why a catalog cannot be asked.
pub(crate) fn causes(world: &World, source: &Object) -> Vec<Cause> {
    let mut causes: Vec<Cause> = leaving(source).into_iter().collect();
    let (namespace, name) = (source.namespace(), source.name());
    let see = format!("see its events: kubectl -n {namespace} describe catalogsource {name}");
    let connection = source.str(&["status", "connectionState", "lastObservedState"]);
    let (reason, message) = (
        source.str(&["status", "reason"]).unwrap_or_default(),
        source.str(&["status", "message"]).unwrap_or_default(),
    );
    if !reason.is_empty() || (!message.is_empty() && connection != Some("READY")) {
        let said = [reason, message].into_iter().filter(|text| !text.is_empty());
        let cause = Cause::new(said.collect::<Vec<_>>().join(": "));
        causes.push(match reason {
            "SpecInvalidError" => cause.remedy(format!(
                "correct its spec: kubectl -n {namespace} edit catalogsource {name}"
            )),
            "ConfigMapError" if message.ends_with("not found") => cause.remedy(format!(
                "create it, or name another one in spec.configMap: kubectl -n {namespace} edit catalogsource {name}"
            )),
            "ConfigMapError" => {
                let map = source.str(&["spec", "configMap"]).unwrap_or_default();
                cause.remedy(format!(
                    "see its content: kubectl -n {namespace} get configmap {map} -o yaml"
                ))
            }
            _ => cause.remedy(see.clone()),
        });
    }
    // Where the content is what is wrong, nobody need look at the connection.
    match connection {
        Some("READY") => {}
        Some(_) if has_content_problem(source) => {}
        Some(state) => {
            let address = source.str(&["status", "connectionState", "address"]).unwrap_or_default();
            // The time of the last change of the state, whatever its name says.
            let since =
                source.str(&["status", "connectionState", "lastConnect"]).unwrap_or_default();
            let mut of = String::new();
            if !address.is_empty() {
                of = format!(" to {address}");
            }
            let since = if since.is_empty() { String::new() } else { format!(" since {since}") };
            let image = source.str(&["spec", "image"]).unwrap_or_default();
            let cause = Cause::new(format!("its connection{of} is {state}{since}"))
                .because_all(newest_warning(world, source).map(Cause::new));
            causes.push(if image.is_empty() {
                cause.remedy("see whether its registry server runs and listens there").remedy(see)
            } else {
                cause.remedy(format!("see whether image {image} can be pulled and holds a catalog: mainstay image inspect {image}")).remedy(see)
            });
        }
        None if causes.is_empty() => causes.push(
            Cause::new("nothing has looked at it yet")
                .remedy("see whether the lifecycle manager runs"),
        ),
        None => {}
    }
    causes
}

/// The message of the newest Event about a CatalogSource, if that is a warning. The status says only
/// that a registry cannot be reached; an Event says why.
fn newest_warning<'w>(world: &'w World, source: &'w Object) -> Option<&'w str> {
    let is_about = |event: &&Object| {
        let field = |name| event.str(&["involvedObject", name]).unwrap_or_default();
        let uid = field("uid");
        field("kind") == "CatalogSource"
            && field("name") == source.name()
            && (uid.is_empty() || source.uid().is_empty() || uid == source.uid())
    };
    let time = |event: &&Object| {
        let times: [&[&str]; 4] = [
            &["series", "lastObservedTime"],
            &["lastTimestamp"],
            &["eventTime"],
            &["metadata", "creationTimestamp"],
        ];
        times.iter().find_map(|path| event.str(path)).unwrap_or_default().to_owned()
    };
    let events = world.within("Event", source.namespace()).filter(is_about);
    let newest = events.max_by_key(time).filter(|event| event.str(&["type"]) == Some("Warning"))?;
    newest.str(&["message"]).filter(|message| !message.is_empty())
}

/// Whether the registry of a CatalogSource cannot be reached: then its Events say why.
pub(crate) fn is_unreachable(source: &Object) -> bool {
    let state = source.str(&["status", "connectionState", "lastObservedState"]);
    state.is_some_and(|state| state != "READY") && !has_content_problem(source)
}

/// Whether the content is what is wrong with a catalog.
fn has_content_problem(source: &Object) -> bool {
    let reason = source.str(&["status", "reason"]).unwrap_or_default();
    let message = source.str(&["status", "message"]).unwrap_or_default();
    ["ConfigMapError", "RegistryServerError"].contains(&reason) && !message.is_empty()
}

fn is_ready(source: &Object) -> bool {
    source.str(&["status", "connectionState", "lastObservedState"]) == Some("READY")
}

fn notes(source: &Object) -> Vec<String> {
    let message = source.str(&["status", "message"]).unwrap_or_default();
    // With a reason it is a cause.
    let has_reason = !source.str(&["status", "reason"]).unwrap_or_default().is_empty();
    let is_note = is_ready(source) && !has_reason && !message.is_empty();
    if is_note { vec![message.to_owned()] } else { Vec::new() }
}

/// Whether the catalog that a Subscription names serves what it had before its content could not be
/// read any more: the Subscription counts it as healthy then.
fn serves_last_content(source: &Object, subscription: &Object) -> bool {
    let (namespace, name) = (source.namespace(), source.name());
    let healthy = health(subscription).any(|known| known == (namespace, name, true));
    healthy && has_content_problem(source)
}

/// That the newest content of the catalog that a Subscription names cannot be read, where what it served
/// before still counts.
pub(crate) fn stale_content(world: &World, subscription: &Object) -> Option<String> {
    let name = subscription.str(&["spec", "source"]).unwrap_or_default();
    let namespace = subscription.str(&["spec", "sourceNamespace"]).unwrap_or_default();
    let source = world.find("CatalogSource", namespace, name)?;
    let message = source.str(&["status", "message"]).unwrap_or_default();
    serves_last_content(source, subscription).then(|| {
        format!(
            "the newest content of catalog {namespace}/{name} cannot be read, and what it served before \
             counts: {message}"
        )
    })
}

/// Why the catalog that a Subscription names cannot be asked.
pub(crate) fn named(world: &World, subscription: &Object) -> Option<Cause> {
    let name = subscription.str(&["spec", "source"]).unwrap_or_default();
    let namespace = subscription.str(&["spec", "sourceNamespace"]).unwrap_or_default();
    let own = subscription.namespace();
    let edit = format!("kubectl -n {own} edit subscription {}", subscription.name());
    if let Some(source) = world.find("CatalogSource", namespace, name) {
        if serves_last_content(source, subscription) {
            return None;
        }
        let causes = causes(world, source);
        return (!causes.is_empty()).then(|| {
            Cause::new(format!("catalog {namespace}/{name} cannot be asked")).because_all(causes)
        });
    }
    if world.hides("CatalogSource", namespace) {
        // What the Subscription itself says of it is known.
        let known = health(subscription).find(|health| (health.0, health.1) == (namespace, name));
        return known.filter(|(.., healthy)| !healthy).map(|_| {
            Cause::new(format!("catalog {namespace}/{name} is unhealthy")).remedy(format!(
                "ask somebody who may see it: kubectl -n {namespace} describe catalogsource {name}"
            ))
        });
    }
    let cause = Cause::new(format!("there is no CatalogSource {namespace}/{name}"));
    let mut others: Vec<String> = world
        .of_kind("CatalogSource")
        .filter(|source| source.namespace() == own || GLOBAL.contains(&source.namespace()))
        .map(|source| format!("{}/{}", source.namespace(), source.name()))
        .collect();
    others.sort();
    Some(if others.is_empty() {
        cause.remedy(format!("create it: kubectl -n {namespace} create -f CATALOGSOURCE.yaml"))
    } else {
        cause.remedy(format!(
            "name one that there is in spec.source and spec.sourceNamespace ({}): {edit}",
            others.join(", ")
        ))
    })
}

/// What a Subscription says of the catalogs that it sees: namespace, name, and whether it is healthy.
fn health(subscription: &Object) -> impl Iterator<Item = (&str, &str, bool)> {
    subscription.array(&["status", "catalogHealth"]).iter().filter_map(|entry| {
        let catalog = entry.get("catalogSourceRef")?;
        let healthy = entry.get("healthy").and_then(Value::as_bool) != Some(false);
        Some((text(catalog, "namespace"), text(catalog, "name"), healthy))
    })
}

/// Other catalogs that a Subscription sees and that cannot be asked, by namespace and name, with what
/// is known of why.
fn others<'w>(world: &'w World, subscription: &'w Object) -> Vec<(&'w str, &'w str, Vec<Cause>)> {
    let own = (
        subscription.str(&["spec", "sourceNamespace"]).unwrap_or_default(),
        subscription.str(&["spec", "source"]).unwrap_or_default(),
    );
    // A Subscription that was looked at says where the catalogs are that every namespace sees.
    let known: Vec<&str> = health(subscription).map(|(namespace, ..)| namespace).collect();
    let global = if known.is_empty() { &GLOBAL[..] } else { &known };
    let there = world
        .of_kind("CatalogSource")
        .map(|source| (source.namespace(), source.name(), true))
        .filter(|(namespace, ..)| {
            *namespace == subscription.namespace() || global.contains(namespace)
        });
    let mut seen: BTreeMap<(&str, &str), bool> = BTreeMap::new();
    for (namespace, name, healthy) in there.chain(health(subscription)) {
        *seen.entry((namespace, name)).or_insert(true) &= healthy;
    }
    seen.remove(&own);
    seen.into_iter()
        .filter_map(|((namespace, name), healthy)| {
            let source = world.find("CatalogSource", namespace, name);
            let away = source.is_some_and(|source| {
                !is_ready(source) && !serves_last_content(source, subscription)
            });
            (away || !healthy).then(|| {
                (namespace, name, source.map(|source| causes(world, source)).unwrap_or_default())
            })
        })
        .collect()
}

/// Why other catalogs that a Subscription sees cannot be asked: what they offer counts for every
/// choice, so a choice may wait for them.
pub(crate) fn unanswered(world: &World, subscription: &Object) -> Vec<Cause> {
    others(world, subscription)
        .into_iter()
        .map(|(namespace, name, causes)| {
            Cause::new(format!("catalog {namespace}/{name} cannot be asked")).because_all(causes)
        })
        .collect()
}

/// The same where nothing waits for them.
pub(crate) fn notes_of_others(world: &World, subscription: &Object) -> Vec<String> {
    others(world, subscription)
        .into_iter()
        .map(|(namespace, name, causes)| {
            let why = causes.first().map(|cause| format!(": {}", cause.what())).unwrap_or_default();
            format!("catalog {namespace}/{name} is unhealthy{why}")
        })
        .collect()
}
