//! Update paths from a bundle, and bundles whose updates do not reach a head.

use mainstay_catalog::ChannelOrder;
use mainstay_command::text::{count, escape_controls};
use mainstay_updates::{
    Graph, GraphChannel, GraphView, InstalledBundle, Semantics, UnorderedChannel, UpdateStep,
};
use serde_json::{Value, json};
use std::fmt::Write;

/// The largest number of names in a line.
const MAX_NAMES: usize = 6;

/// The stranded bundles of a channel, as JSON.
pub(super) fn channel_updates(graph: &Graph, name: &str) -> Value {
    let view = match graph.view(Semantics::Classic, &[name]) {
        Ok(view) => view,
        Err(why) => return json!({ "stranded": [], "noOrder": why.to_string() }),
    };
    let stranded = view.stranded();
    let values = stranded.iter().map(
        |bundle| json!({ "bundle": &*bundle.bundle.name, "at": &*bundle.at.name, "why": bundle.end.to_string() }),
    );
    json!({
        "stranded": values.collect::<Vec<_>>(),
        "leavesHeadFor": view.leaves_head().map(|step| &*step.bundle.name),
    })
}

/// The lines about channels whose updates do not all reach the head.
pub(super) fn stranded_text<'v>(channels: impl Iterator<Item = &'v Value>) -> String {
    let mut out = String::new();
    for channel in channels {
        let name = escape_controls(channel["name"].as_str().unwrap_or_default());
        let updates = &channel["updates"];
        if let Some(why) = updates["noOrder"].as_str() {
            let _ = writeln!(out, "  {name}: {}", escape_controls(why));
        }
        if let Some(other) = updates["leavesHeadFor"].as_str() {
            let _ = writeln!(
                out,
                "  {name}: updates continue from the head to {}",
                escape_controls(other)
            );
        }
        // Bundles whose updates end at one bundle share a line.
        let mut groups: Vec<(&str, &str, Vec<&str>)> = Vec::new();
        for bundle in updates["stranded"].as_array().into_iter().flatten() {
            let text = |field: &str| bundle[field].as_str().unwrap_or_default();
            match groups.iter_mut().find(|(at, why, _)| (*at, *why) == (text("at"), text("why"))) {
                Some((_, _, names)) => names.push(text("bundle")),
                None => groups.push((text("at"), text("why"), vec![text("bundle")])),
            }
        }
        for (at, why, names) in groups {
            let from: Vec<&str> = names.into_iter().filter(|name| *name != at).collect();
            let sources = from.iter().take(MAX_NAMES).copied().collect::<Vec<_>>().join(", ");
            let more = if from.len() > MAX_NAMES { ", …" } else { "" };
            let from =
                if sources.is_empty() { sources } else { format!(" (also from {sources}{more})") };
            let _ = writeln!(
                out,
                "  {name}: {}: {}{}",
                escape_controls(at),
                escape_controls(why),
                escape_controls(&from)
            );
        }
    }
    if out.is_empty() { out } else { format!("No update to the head:\n{out}") }
}

/// The update path of a Subscription to a channel from a bundle, as JSON.
pub(super) fn updates_in_channel(
    graph: &Graph,
    channel: &str,
    installed: &InstalledBundle<'_>,
) -> Value {
    let view = graph.view(Semantics::Classic, &[channel]);
    let mut value = updates_value(view.as_ref(), installed);
    let never_chosen = view.iter().flat_map(GraphView::never_chosen);
    let installed_here =
        never_chosen.into_iter().find(|bundle| *bundle.entry.name == *installed.name);
    value["notChosen"] = installed_here.map(|bundle| bundle.why.to_string()).into();
    value
}

/// The update path of a ClusterExtension that names no channels, as JSON.
pub(super) fn extension_updates(graph: &Graph, installed: &InstalledBundle<'_>) -> Value {
    updates_value(graph.view(Semantics::Extension, &[]).as_ref(), installed)
}

/// Update paths in channels that have an update for a bundle but not the bundle itself.
pub(super) fn updates_in_other_channels(
    graph: &Graph,
    installed: &InstalledBundle<'_>,
) -> Vec<Value> {
    let switches = graph.switches(Semantics::Classic, installed);
    let switches_with_updates =
        switches.iter().filter(|switch| !switch.is_member && switch.first().is_some());
    let mut switches_with_updates: Vec<_> = switches_with_updates.collect();
    switches_with_updates.sort_by_cached_key(|switch| {
        ChannelOrder::of(&switch.channel.name, &graph.default_channel)
    });
    let values = switches_with_updates.into_iter().map(|switch| {
        let mut value = updates_in_channel(graph, &switch.channel.name, installed);
        value["name"] = (*switch.channel.name).into();
        value["deprecation"] = switch.channel.deprecation.as_deref().into();
        value
    });
    values.collect()
}

fn updates_value(
    view: Result<&GraphView<'_>, &UnorderedChannel>,
    installed: &InstalledBundle<'_>,
) -> Value {
    let names = |steps: &[UpdateStep<'_>]| -> Value {
        steps.iter().map(|step| Value::from(&*step.bundle.name)).collect()
    };
    match view {
        Ok(view) => {
            let route = view.path(installed);
            let is_head = matches!(route.end, mainstay_updates::PathEnd::Head);
            json!({
                "updatesTo": names(&view.successors(installed)),
                "path": names(&route.steps),
                "reachesHead": is_head,
                "endsBecause": (!is_head).then(|| route.end.to_string()),
            })
        }
        Err(why) => json!({
            "updatesTo": [], "path": [], "reachesHead": false, "endsBecause": why.to_string(),
        }),
    }
}

/// An update path as text: the number of updates, their bundles, and why the path ends.
pub(super) fn updates_text(value: &Value) -> String {
    let path: Vec<&str> =
        value["path"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let bundles = match path.as_slice() {
        [first @ .., last] if path.len() > MAX_NAMES => {
            let first = first.get(..MAX_NAMES - 2).unwrap_or(first).join(" → ");
            format!("{first} → … → {last}")
        }
        all => all.join(" → "),
    };
    let updates = if path.is_empty() {
        String::new()
    } else {
        format!("{}: {bundles}", count(path.len(), "update"))
    };
    match value["endsBecause"].as_str() {
        None => updates,
        Some(why) if updates.is_empty() => format!("none: {why}"),
        Some(why) => format!("{updates}, then no update: {why}"),
    }
}

/// Whether an entry replaces or skips an installed bundle that the package does not ship.
pub(super) fn is_covered_by_an_entry(graph: &Graph, installed: &InstalledBundle<'_>) -> bool {
    let is_covered = |channel: &GraphChannel| {
        channel
            .entries()
            .iter()
            .any(|entry| entry.covers(installed.name, installed.version).is_some())
    };
    graph.channels().iter().any(is_covered)
}
