//! Conversion of events between `events.k8s.io/v1` and the core version, which is stored.

use mainstay_object::Object;

/// Names of the same field in `events.k8s.io/v1` and in the core group.
const NAMES: [(&str, &str); 7] = [
    ("regarding", "involvedObject"),
    ("note", "message"),
    ("reportingController", "reportingComponent"),
    ("deprecatedSource", "source"),
    ("deprecatedFirstTimestamp", "firstTimestamp"),
    ("deprecatedLastTimestamp", "lastTimestamp"),
    ("deprecatedCount", "count"),
];

/// Converts an event to the core version.
pub(super) fn to_core(event: &mut Object) {
    for (new, core) in NAMES {
        rename(event, new, core);
    }
}

/// Converts an event from the core version.
pub(super) fn from_core(event: &mut Object) {
    for (new, core) in NAMES {
        rename(event, core, new);
    }
    // The core version has these fields even when they are empty.
    for field in ["reportingController", "reportingInstance"] {
        if event.str(&[field]) == Some("") {
            event.fields_mut().remove(field);
        }
    }
}

fn rename(event: &mut Object, from: &str, to: &str) {
    if let Some(value) = event.fields_mut().remove(from) {
        event.fields_mut().insert(to.to_owned(), value);
    }
}

/// The core name of a selectable field of `events.k8s.io/v1`; none for a name of the core version.
pub fn core_field(path: &str) -> Option<String> {
    match path {
        "reason" | "type" => Some(path.to_owned()),
        "reportingController" => Some("reportingComponent".to_owned()),
        _ => path.strip_prefix("regarding.").map(|rest| format!("involvedObject.{rest}")),
    }
}
