//! Configuration, access and storage.

use super::row::cells;
use super::row::{NONE, Row, UNSET, at, number_or_text, text};
use serde_json::Value;

/// Kinds that only show when they were created.
pub(super) fn created(row: &Row<'_>) -> Vec<Value> {
    cells![row.name(), row.text(&["metadata", "creationTimestamp"])]
}

pub(super) fn aged(row: &Row<'_>) -> Vec<Value> {
    cells![row.name(), row.age()]
}

pub(super) fn config_map(row: &Row<'_>) -> Vec<Value> {
    cells![row.name(), row.entries(&["data"]) + row.entries(&["binaryData"]), row.age()]
}

pub(super) fn secret(row: &Row<'_>) -> Vec<Value> {
    cells![row.name(), row.text(&["type"]), row.entries(&["data"]), row.age()]
}

pub(super) fn quota(row: &Row<'_>) -> Vec<Value> {
    let (mut requests, mut limits) = (Vec::new(), Vec::new());
    let hard = row.object.get(&["status", "hard"]).and_then(Value::as_object);
    for (resource, hard) in hard.into_iter().flatten() {
        let used =
            row.object.get(&["status", "used", resource]).map_or("0".to_owned(), number_or_text);
        let line = format!("{resource}: {used}/{}", number_or_text(hard));
        if resource.starts_with("limits.") { &mut limits } else { &mut requests }.push(line);
    }
    cells![row.name(), requests.join(", "), limits.join(", "), row.age()]
}

pub(super) fn binding(row: &Row<'_>) -> Vec<Value> {
    let subjects = |kind: &str| {
        let subjects =
            row.items(&["subjects"]).iter().filter(|subject| text(subject, "kind") == kind);
        let names = subjects.map(|subject| match text(subject, "namespace") {
            "" => text(subject, "name").to_owned(),
            namespace => format!("{namespace}/{}", text(subject, "name")),
        });
        names.collect::<Vec<_>>().join(", ")
    };
    let role = format!("{}/{}", row.text(&["roleRef", "kind"]), row.text(&["roleRef", "name"]));
    cells![
        row.name(),
        role,
        row.age(),
        subjects("User"),
        subjects("Group"),
        subjects("ServiceAccount"),
    ]
}

/// Access modes in their short form and in a fixed order.
fn access_modes(row: &Row<'_>, path: &[&str]) -> String {
    const SHORT: [(&str, &str); 4] = [
        ("ReadWriteOnce", "RWO"),
        ("ReadOnlyMany", "ROX"),
        ("ReadWriteMany", "RWX"),
        ("ReadWriteOncePod", "RWOP"),
    ];
    let present = |mode: &str| row.items(path).iter().any(|listed_mode| listed_mode == mode);
    let short = SHORT.iter().filter(|(mode, _)| present(mode)).map(|(_, short)| *short);
    short.collect::<Vec<_>>().join(",")
}

fn phase<'a>(row: &Row<'a>) -> &'a str {
    if row.object.is_terminating() { "Terminating" } else { row.text(&["status", "phase"]) }
}

/// The storage class of a volume or claim: formerly an annotation.
fn class<'a>(row: &Row<'a>) -> &'a str {
    row.object
        .annotation("volume.beta.kubernetes.io/storage-class")
        .unwrap_or_else(|| row.text(&["spec", "storageClassName"]))
}

pub(super) fn volume(row: &Row<'_>) -> Vec<Value> {
    let claim = row.object.get(&["spec", "claimRef"]).filter(|claim| claim.is_object());
    let claim = claim.map_or_else(String::new, |claim| {
        format!("{}/{}", text(claim, "namespace"), text(claim, "name"))
    });
    let size =
        row.object.get(&["spec", "capacity", "storage"]).map_or("0".to_owned(), number_or_text);
    cells![
        row.name(),
        size,
        access_modes(row, &["spec", "accessModes"]),
        row.text(&["spec", "persistentVolumeReclaimPolicy"]),
        phase(row),
        claim,
        class(row),
        row.text_or(&["spec", "volumeAttributesClassName"], UNSET),
        row.text(&["status", "reason"]),
        row.age(),
        row.text_or(&["spec", "volumeMode"], UNSET),
    ]
}

pub(super) fn volume_claim(row: &Row<'_>) -> Vec<Value> {
    let volume = row.text(&["spec", "volumeName"]);
    let (size, modes) = if volume.is_empty() {
        (String::new(), String::new())
    } else {
        let size = row.object.get(&["status", "capacity", "storage"]);
        (size.map_or("0".to_owned(), number_or_text), access_modes(row, &["status", "accessModes"]))
    };
    cells![
        row.name(),
        phase(row),
        volume,
        size,
        modes,
        class(row),
        row.text_or(&["spec", "volumeAttributesClassName"], UNSET),
        row.age(),
        row.text_or(&["spec", "volumeMode"], UNSET),
    ]
}

pub(super) fn storage_class(row: &Row<'_>) -> Vec<Value> {
    let default = [
        "storageclass.kubernetes.io/is-default-class",
        "storageclass.beta.kubernetes.io/is-default-class",
    ];
    let is_default = default.iter().any(|key| row.object.annotation(key) == Some("true"));
    let name = if is_default { format!("{} (default)", row.name()) } else { row.name().to_owned() };
    cells![
        name,
        row.text(&["provisioner"]),
        row.text_or(&["reclaimPolicy"], "Delete"),
        row.text_or(&["volumeBindingMode"], "Immediate"),
        row.flag(&["allowVolumeExpansion"]),
        row.age(),
    ]
}

pub(super) fn volume_attributes_class(row: &Row<'_>) -> Vec<Value> {
    cells![row.name(), row.text(&["driverName"]), row.age()]
}

pub(super) fn storage_driver(row: &Row<'_>) -> Vec<Value> {
    let modes: Vec<&str> =
        row.items(&["spec", "volumeLifecycleModes"]).iter().filter_map(Value::as_str).collect();
    let tokens = row.object.get(&["spec", "tokenRequests"]).and_then(Value::as_array);
    let tokens = tokens.map_or_else(
        || UNSET.to_owned(),
        |tokens| tokens.iter().map(|token| text(token, "audience")).collect::<Vec<_>>().join(","),
    );
    cells![
        row.name(),
        row.object.bool(&["spec", "attachRequired"]).unwrap_or(true),
        row.flag(&["spec", "podInfoOnMount"]),
        row.flag(&["spec", "storageCapacity"]),
        tokens,
        row.flag(&["spec", "requiresRepublish"]),
        if modes.is_empty() { NONE.to_owned() } else { modes.join(",") },
        row.age(),
    ]
}

pub(super) fn storage_node(row: &Row<'_>) -> Vec<Value> {
    cells![row.name(), row.items(&["spec", "drivers"]).len(), row.age()]
}

pub(super) fn volume_attachment(row: &Row<'_>) -> Vec<Value> {
    let source = row.object.get(&["spec", "source"]);
    let volume = source.and_then(|source| at(source, &["persistentVolumeName"]));
    cells![
        row.name(),
        row.text(&["spec", "attacher"]),
        volume.map_or_else(String::new, number_or_text),
        row.text(&["spec", "nodeName"]),
        row.flag(&["status", "attached"]),
        row.age(),
    ]
}
