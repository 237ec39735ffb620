//! CatalogSources: whether their registry responds, and whether its content is valid.

use crate::{ClusterObjects, Finding, deletion_cause, text};
use mainstay_cause::Cause;
use mainstay_object::Object;
use serde_json::Value;
use std::collections::BTreeMap;

/// Namespaces whose catalogs every namespace sees, in clusters as they are usually set up.
const GLOBAL: [&str; 2] = ["olm", "openshift-marketplace"];

/// Explains a CatalogSource.
pub(crate) fn finding(cluster: &ClusterObjects, source: &Object) -> Finding {
    let causes = causes(cluster, source);
    let standing = if causes.is_empty() {
        "is served, and its connection is READY".to_owned()
    } else if is_ready(source) && has_content_problem(source) {
        "serves its previous content, because its newest content cannot be read".to_owned()
    } else {
        "is not available".to_owned()
    };
    Finding { state: standing, causes, notes: notes(source) }
}

/// Why a catalog does not serve its newest content.
pub(crate) fn causes(cluster: &ClusterObjects, source: &Object) -> Vec<Cause> {
    let mut causes: Vec<Cause> = deletion_cause(source).into_iter().collect();
    let (namespace, name) = (source.namespace(), source.name());
    let see_events =
        format!("see its events: kubectl -n {namespace} describe catalogsource {name}");
    let connection = source.str(&["status", "connectionState", "lastObservedState"]);
    let (reason, message) = (
        source.str(&["status", "reason"]).unwrap_or_default(),
        source.str(&["status", "message"]).unwrap_or_default(),
    );
    if !reason.is_empty() || (!message.is_empty() && connection != Some("READY")) {
        let texts = [reason, message].into_iter().filter(|text| !text.is_empty());
        let cause = Cause::new(texts.collect::<Vec<_>>().join(": "));
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
            _ => cause.remedy(see_events.clone()),
        });
    }
    // Invalid content explains a broken connection.
    match connection {
        Some("READY") => {}
        Some(_) if has_content_problem(source) => {}
        Some(state) => {
            let address = source.str(&["status", "connectionState", "address"]).unwrap_or_default();
            // Despite its name, `lastConnect` is the time when the state last changed.
            let since =
                source.str(&["status", "connectionState", "lastConnect"]).unwrap_or_default();
            let mut target = String::new();
            if !address.is_empty() {
                target = format!(" to {address}");
            }
            let since = if since.is_empty() { String::new() } else { format!(" since {since}") };
            let image = source.str(&["spec", "image"]).unwrap_or_default();
            let cause = Cause::new(format!("its connection{target} is {state}{since}"))
                .because_all(newest_warning(cluster, source).map(Cause::new));
            causes.push(if image.is_empty() {
                cause.remedy("check that its registry server runs and listens there").remedy(see_events)
            } else {
                cause.remedy(format!("check that image {image} can be pulled and holds a catalog: mainstay image inspect {image}")).remedy(see_events)
            });
        }
        None if causes.is_empty() => causes.push(
            Cause::new("no controller has reconciled it yet")
                .remedy("check that the lifecycle manager runs"),
        ),
        None => {}
    }
    causes
}

/// The message of the newest Event about a CatalogSource, if that Event is a warning. The status says
/// only that the registry does not respond; an Event says why.
fn newest_warning<'w>(cluster: &'w ClusterObjects, source: &'w Object) -> Option<&'w str> {
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
    let events = cluster.in_namespace("Event", source.namespace()).filter(is_about);
    let newest = events.max_by_key(time).filter(|event| event.str(&["type"]) == Some("Warning"))?;
    newest.str(&["message"]).filter(|message| !message.is_empty())
}

/// Whether the registry of a CatalogSource does not respond: then its Events say why.
pub(crate) fn is_unreachable(source: &Object) -> bool {
    let state = source.str(&["status", "connectionState", "lastObservedState"]);
    state.is_some_and(|state| state != "READY") && !has_content_problem(source)
}

/// Whether the status of a catalog reports invalid content.
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
    // A message with a reason is a cause, not a note.
    let has_reason = !source.str(&["status", "reason"]).unwrap_or_default().is_empty();
    let is_note = is_ready(source) && !has_reason && !message.is_empty();
    if is_note { vec![message.to_owned()] } else { Vec::new() }
}

/// Whether the catalog that a Subscription names still serves its last valid content: the Subscription
/// then reports it as healthy.
fn serves_last_content(source: &Object, subscription: &Object) -> bool {
    let (namespace, name) = (source.namespace(), source.name());
    let healthy = catalog_health(subscription).any(|known| known == (namespace, name, true));
    healthy && has_content_problem(source)
}

/// A note that the catalog of a Subscription still serves its last valid content, because its newest
/// content is invalid.
pub(crate) fn stale_content_note(
    cluster: &ClusterObjects,
    subscription: &Object,
) -> Option<String> {
    let name = subscription.str(&["spec", "source"]).unwrap_or_default();
    let namespace = subscription.str(&["spec", "sourceNamespace"]).unwrap_or_default();
    let source = cluster.find("CatalogSource", namespace, name)?;
    let message = source.str(&["status", "message"]).unwrap_or_default();
    serves_last_content(source, subscription).then(|| {
        format!(
            "the newest content of CatalogSource {namespace}/{name} cannot be read, and its previous content is used: {message}"
        )
    })
}

/// Why the catalog that a Subscription names cannot be used.
pub(crate) fn subscribed_catalog_cause(
    cluster: &ClusterObjects,
    subscription: &Object,
) -> Option<Cause> {
    let name = subscription.str(&["spec", "source"]).unwrap_or_default();
    let namespace = subscription.str(&["spec", "sourceNamespace"]).unwrap_or_default();
    let own_namespace = subscription.namespace();
    let edit = format!("kubectl -n {own_namespace} edit subscription {}", subscription.name());
    if let Some(source) = cluster.find("CatalogSource", namespace, name) {
        if serves_last_content(source, subscription) {
            return None;
        }
        let causes = causes(cluster, source);
        return (!causes.is_empty()).then(|| {
            Cause::new(format!("CatalogSource {namespace}/{name} is not available"))
                .because_all(causes)
        });
    }
    if cluster.hides("CatalogSource", namespace) {
        // `status.catalogHealth` of the Subscription still says whether the catalog is healthy.
        let health = catalog_health(subscription).find(|(known_namespace, known_name, _)| {
            (*known_namespace, *known_name) == (namespace, name)
        });
        return health.filter(|(.., healthy)| !healthy).map(|_| {
            Cause::new(format!("CatalogSource {namespace}/{name} is unhealthy")).remedy(format!(
                "have an administrator run: kubectl -n {namespace} describe catalogsource {name}"
            ))
        });
    }
    let cause = Cause::new(format!("there is no CatalogSource {namespace}/{name}"));
    let mut sources: Vec<String> = cluster
        .of_kind("CatalogSource")
        .filter(|source| {
            source.namespace() == own_namespace || GLOBAL.contains(&source.namespace())
        })
        .map(|source| format!("{}/{}", source.namespace(), source.name()))
        .collect();
    sources.sort();
    Some(if sources.is_empty() {
        cause.remedy(format!("create it: kubectl -n {namespace} create -f CATALOGSOURCE.yaml"))
    } else {
        cause.remedy(format!(
            "name an existing one in spec.source and spec.sourceNamespace ({}): {edit}",
            sources.join(", ")
        ))
    })
}

/// `status.catalogHealth` of a Subscription: namespace and name of each visible catalog, and whether it
/// is healthy.
fn catalog_health(subscription: &Object) -> impl Iterator<Item = (&str, &str, bool)> {
    subscription.array(&["status", "catalogHealth"]).iter().filter_map(|entry| {
        let catalog = entry.get("catalogSourceRef")?;
        let healthy = entry.get("healthy").and_then(Value::as_bool) != Some(false);
        Some((text(catalog, "namespace"), text(catalog, "name"), healthy))
    })
}

/// The unhealthy catalogs that a Subscription sees besides the one it names: namespace, name and the
/// causes, as far as known.
fn other_unhealthy_catalogs<'w>(
    cluster: &'w ClusterObjects,
    subscription: &'w Object,
) -> Vec<(&'w str, &'w str, Vec<Cause>)> {
    let subscribed = (
        subscription.str(&["spec", "sourceNamespace"]).unwrap_or_default(),
        subscription.str(&["spec", "source"]).unwrap_or_default(),
    );
    // The status of a Subscription names the global namespace.
    let namespaces: Vec<&str> =
        catalog_health(subscription).map(|(namespace, ..)| namespace).collect();
    let global = if namespaces.is_empty() { &GLOBAL[..] } else { &namespaces };
    let sources = cluster
        .of_kind("CatalogSource")
        .map(|source| (source.namespace(), source.name(), true))
        .filter(|(namespace, ..)| {
            *namespace == subscription.namespace() || global.contains(namespace)
        });
    let mut healthy_by_catalog: BTreeMap<(&str, &str), bool> = BTreeMap::new();
    for (namespace, name, healthy) in sources.chain(catalog_health(subscription)) {
        *healthy_by_catalog.entry((namespace, name)).or_insert(true) &= healthy;
    }
    healthy_by_catalog.remove(&subscribed);
    healthy_by_catalog
        .into_iter()
        .filter_map(|((namespace, name), healthy)| {
            let source = cluster.find("CatalogSource", namespace, name);
            let is_unhealthy = source.is_some_and(|source| {
                !is_ready(source) && !serves_last_content(source, subscription)
            });
            (is_unhealthy || !healthy).then(|| {
                (namespace, name, source.map(|source| causes(cluster, source)).unwrap_or_default())
            })
        })
        .collect()
}

/// Why other catalogs that a Subscription sees are unhealthy. Resolution reads all of them, so it may
/// wait for them.
pub(crate) fn other_catalog_causes(cluster: &ClusterObjects, subscription: &Object) -> Vec<Cause> {
    other_unhealthy_catalogs(cluster, subscription)
        .into_iter()
        .map(|(namespace, name, causes)| {
            Cause::new(format!("CatalogSource {namespace}/{name} is not available"))
                .because_all(causes)
        })
        .collect()
}

/// The same as notes, where resolution does not wait for the catalogs.
pub(crate) fn other_catalog_notes(cluster: &ClusterObjects, subscription: &Object) -> Vec<String> {
    other_unhealthy_catalogs(cluster, subscription)
        .into_iter()
        .map(|(namespace, name, causes)| {
            let why = causes.first().map(|cause| format!(": {}", cause.what())).unwrap_or_default();
            format!("CatalogSource {namespace}/{name} is unhealthy{why}")
        })
        .collect()
}
