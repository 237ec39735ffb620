//! Whether catalogs can be asked.

use crate::{Finding, World, leaving, text};
use mainstay_cause::Cause;
use mainstay_object::Object;

const GLOBAL: [&str; 2] = ["olm", "openshift-marketplace"];

/// Looks at a `CatalogSource`.
pub(crate) fn look(source: &Object) -> Finding {
    let causes = causes(source);
    let standing = if causes.is_empty() {
        "is served, and its connection is READY".to_owned()
    } else {
        "cannot be asked".to_owned()
    };
    Finding { standing, causes, notes: notes(source) }
}

/// Why a catalog cannot be asked.
pub(crate) fn causes(source: &Object) -> Vec<Cause> {
    let mut causes: Vec<Cause> = leaving(source).into_iter().collect();
    let (namespace, name) = (source.namespace(), source.name());
    let see = format!("see its events: kubectl -n {namespace} describe catalogsource {name}");
    let connection = source.str(&["status", "connectionState", "lastObservedState"]);
    let (reason, message) = (
        source.str(&["status", "reason"]).unwrap_or_default(),
        source.str(&["status", "message"]).unwrap_or_default(),
    );
    if !reason.is_empty() || (!message.is_empty() && connection != Some("READY")) {
        let said = [reason, message].into_iter().filter(|it| !it.is_empty());
        let cause = Cause::new(said.collect::<Vec<_>>().join(": "));
        causes.push(match reason {
            "SpecInvalidError" => cause.remedy(format!(
                "correct its spec: kubectl -n {namespace} edit catalogsource {name}"
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
    match connection {
        Some("READY") => {}
        Some(state) => {
            let address = source.str(&["status", "connectionState", "address"]).unwrap_or_default();
            let since =
                source.str(&["status", "connectionState", "lastConnect"]).unwrap_or_default();
            let mut of = String::new();
            if !address.is_empty() {
                of = format!(" to {address}");
            }
            let last = if since.is_empty() {
                String::new()
            } else {
                format!(", and last connected at {since}")
            };
            let image = source.str(&["spec", "image"]).unwrap_or_default();
            let cause = Cause::new(format!("its connection{of} is {state}{last}"));
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

fn notes(source: &Object) -> Vec<String> {
    let message = source.str(&["status", "message"]).unwrap_or_default();
    let ready = source.str(&["status", "connectionState", "lastObservedState"]) == Some("READY");
    if ready && !message.is_empty() { vec![message.to_owned()] } else { Vec::new() }
}

/// Why the catalog that a Subscription names cannot be asked.
pub(crate) fn named(world: &World, subscription: &Object) -> Option<Cause> {
    let name = subscription.str(&["spec", "source"]).unwrap_or_default();
    let namespace = subscription.str(&["spec", "sourceNamespace"]).unwrap_or_default();
    let own = subscription.namespace();
    let edit = format!("kubectl -n {own} edit subscription {}", subscription.name());
    if let Some(source) = world.find("CatalogSource", namespace, name) {
        let causes = causes(source);
        return (!causes.is_empty()).then(|| {
            Cause::new(format!("catalog {namespace}/{name} cannot be asked")).because_all(causes)
        });
    }
    let cause = Cause::new(format!("there is no CatalogSource {namespace}/{name}"));
    let mut others: Vec<String> = world
        .of_kind("CatalogSource")
        .filter(|it| it.namespace() == own || GLOBAL.contains(&it.namespace()))
        .map(|it| format!("{}/{}", it.namespace(), it.name()))
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

/// Why other catalogs that a Subscription sees cannot be asked: what needs them may wait.
pub(crate) fn others(world: &World, subscription: &Object) -> Vec<String> {
    let own = (
        subscription.str(&["spec", "sourceNamespace"]).unwrap_or_default(),
        subscription.str(&["spec", "source"]).unwrap_or_default(),
    );
    subscription
        .array(&["status", "catalogHealth"])
        .iter()
        .filter(|it| it.get("healthy").and_then(serde_json::Value::as_bool) == Some(false))
        .filter_map(|it| it.get("catalogSourceRef"))
        .map(|it| (text(it, "namespace"), text(it, "name")))
        .filter(|it| *it != own)
        .map(|(namespace, name)| {
            let why = world.find("CatalogSource", namespace, name).map(causes).unwrap_or_default();
            let why = why.first().map(|it| format!(": {}", it.what())).unwrap_or_default();
            format!("catalog {namespace}/{name} is unhealthy{why}")
        })
        .collect()
}
