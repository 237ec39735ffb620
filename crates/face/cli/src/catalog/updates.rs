//! Where updates lead from a bundle, and what does not get to a head.

use super::{count, plain};
use mainstay_catalog::ChannelOrder;
use mainstay_updates::{Channel, Graph, Installed, NoOrder, Semantics, Step, View};
use serde_json::{Value, json};
use std::fmt::Write;

/// How many names a line shows.
const NAMED: usize = 6;

/// What there is to say about the updates of a channel as a whole.
pub(super) fn of_channel(graph: &Graph, name: &str) -> Value {
    let view = match graph.view(Semantics::Classic, &[name]) {
        Ok(view) => view,
        Err(why) => return json!({ "stranded": [], "noOrder": why.to_string() }),
    };
    let stranded = view.stranded();
    let stranded = stranded.iter().map(
        |bundle| json!({ "bundle": &*bundle.bundle.name, "at": &*bundle.at.name, "why": bundle.end.to_string() }),
    );
    json!({
        "stranded": stranded.collect::<Vec<_>>(),
        "leavesHeadFor": view.leaves_head().map(|step| &*step.bundle.name),
    })
}

/// The lines about channels whose updates do not all lead to the head.
pub(super) fn odd_channels<'v>(channels: impl Iterator<Item = &'v Value>) -> String {
    let mut out = String::new();
    for channel in channels {
        let name = plain(channel["name"].as_str().unwrap_or_default());
        let updates = &channel["updates"];
        if let Some(why) = updates["noOrder"].as_str() {
            let _ = writeln!(out, "  {name}: {}", plain(why));
        }
        if let Some(other) = updates["leavesHeadFor"].as_str() {
            let _ = writeln!(out, "  {name}: updates leave the head again, for {}", plain(other));
        }
        // Those that end at one bundle share a line.
        let mut ends: Vec<(&str, &str, Vec<&str>)> = Vec::new();
        for bundle in updates["stranded"].as_array().into_iter().flatten() {
            let text = |field: &str| bundle[field].as_str().unwrap_or_default();
            match ends.iter_mut().find(|(at, why, _)| (*at, *why) == (text("at"), text("why"))) {
                Some((_, _, names)) => names.push(text("bundle")),
                None => ends.push((text("at"), text("why"), vec![text("bundle")])),
            }
        }
        for (at, why, names) in ends {
            let from: Vec<&str> = names.into_iter().filter(|name| *name != at).collect();
            let shown = from.iter().take(NAMED).copied().collect::<Vec<_>>().join(", ");
            let more = if from.len() > NAMED { ", …" } else { "" };
            let from = if shown.is_empty() { shown } else { format!(" (also from {shown}{more})") };
            let _ = writeln!(out, "  {name}: {}: {}{}", plain(at), plain(why), plain(&from));
        }
    }
    if out.is_empty() { out } else { format!("No update to the head:\n{out}") }
}

/// Where updates of a Subscription to a channel lead from a bundle.
pub(super) fn in_channel(graph: &Graph, channel: &str, installed: &Installed<'_>) -> Value {
    let view = graph.view(Semantics::Classic, &[channel]);
    let mut value = way(view.as_ref(), installed);
    let never = view.iter().flat_map(View::never_chosen);
    let here = never.into_iter().find(|bundle| *bundle.entry.name == *installed.name);
    value["notChosen"] = here.map(|bundle| bundle.why.to_string()).into();
    value
}

/// Where updates of an extension lead that names no channels.
pub(super) fn of_extension(graph: &Graph, installed: &Installed<'_>) -> Value {
    way(graph.view(Semantics::Extension, &[]).as_ref(), installed)
}

/// Channels that a bundle is not in and that have an update for it.
pub(super) fn elsewhere(graph: &Graph, installed: &Installed<'_>) -> Vec<Value> {
    let switches = graph.switches(Semantics::Classic, installed);
    let others = switches.iter().filter(|switch| !switch.is_member && switch.first().is_some());
    let mut others: Vec<_> = others.collect();
    others.sort_by_cached_key(|switch| {
        ChannelOrder::of(&switch.channel.name, &graph.default_channel)
    });
    let one = others.into_iter().map(|switch| {
        let mut value = in_channel(graph, &switch.channel.name, installed);
        value["name"] = (*switch.channel.name).into();
        value["deprecation"] = switch.channel.deprecation.as_deref().into();
        value
    });
    one.collect()
}

fn way(view: Result<&View<'_>, &NoOrder>, installed: &Installed<'_>) -> Value {
    let names = |steps: &[Step<'_>]| -> Value {
        steps.iter().map(|step| Value::from(&*step.bundle.name)).collect()
    };
    match view {
        Ok(view) => {
            let route = view.path(installed);
            let is_head = matches!(route.end, mainstay_updates::End::Head);
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

/// A way in words: how many updates, which ones, and why they end where they do.
pub(super) fn in_words(way: &Value) -> String {
    let path: Vec<&str> =
        way["path"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let shown = match path.as_slice() {
        [first @ .., last] if path.len() > NAMED => {
            let first = first.get(..NAMED - 2).unwrap_or(first).join(" → ");
            format!("{first} → … → {last}")
        }
        all => all.join(" → "),
    };
    let updates = if path.is_empty() {
        String::new()
    } else {
        format!("{}: {shown}", count(path.len(), "update"))
    };
    match way["endsBecause"].as_str() {
        None => updates,
        Some(why) if updates.is_empty() => format!("none: {why}"),
        Some(why) => format!("{updates}, and no further: {why}"),
    }
}

/// What is installed somewhere, by a name or a version that the package does not ship.
pub(super) fn is_known_elsewhere(graph: &Graph, installed: &Installed<'_>) -> bool {
    let is_covered = |channel: &Channel| {
        channel
            .entries()
            .iter()
            .any(|entry| entry.covers(installed.name, installed.version).is_some())
    };
    graph.channels().iter().any(is_covered)
}
