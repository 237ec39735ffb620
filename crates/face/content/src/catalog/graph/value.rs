//! The update graph as JSON, for programs.

use super::lanes::{Bundle, Lane, Lanes, Role};
use serde_json::{Value, json};

/// The JSON value of a package.
pub(super) fn value(lanes: &Lanes<'_>) -> Value {
    let mut value = json!({
        "package": lanes.package,
        "channels": lanes.channels.iter().map(channel).collect::<Vec<_>>(),
    });
    if let Some(from) = &lanes.from {
        value["from"] = json!(from);
    }
    if let Some(deprecation) = lanes.deprecation {
        value["deprecation"] = json!(deprecation);
    }
    value
}

fn channel(lane: &Lane<'_>) -> Value {
    let name = |at: usize| &*lane.bundles[at].name;
    let updates = lane.updates.iter().map(|update| {
        json!({
            "from": name(update.from), "to": name(update.to), "by": update.edge.as_str(),
            "bundles": update.count,
        })
    });
    let mut value = json!({
        "name": lane.name,
        "default": lane.is_default,
        "bundles": lane.bundles.iter().map(bundle).collect::<Vec<_>>(),
        "updates": updates.collect::<Vec<_>>(),
    });
    if let Some(deprecation) = lane.deprecation {
        value["deprecation"] = json!(deprecation);
    }
    if let Some(fault) = &lane.fault {
        value["fault"] = json!(fault);
    }
    if let Some(path) = &lane.path {
        let steps: Vec<&str> = path.steps.iter().map(|at| name(*at)).collect();
        value["way"] = json!({"bundles": steps, "reachesHead": path.end.is_none()});
        if let Some(end) = &path.end {
            value["way"]["endsBecause"] = json!(end);
        }
    }
    value
}

fn bundle(bundle: &Bundle) -> Value {
    let role = match &bundle.role {
        Role::Head => "head",
        Role::Member => "member",
        Role::Skipped { .. } => "skipped",
        Role::NotInChannel => "gone",
    };
    let mut value = json!({
        "name": bundle.name,
        "version": bundle.version.as_ref().map(ToString::to_string),
        "role": role,
    });
    if let Role::Skipped { by } = &bundle.role {
        value["skippedBy"] = json!(by);
    }
    if let Some((range, _)) = &bundle.range {
        value["skipRange"] = json!(range);
    }
    if let Some(deprecation) = &bundle.deprecation {
        value["deprecation"] = json!(deprecation);
    }
    value
}
