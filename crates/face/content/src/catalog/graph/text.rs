//! The update graph as text for a terminal: a line for each bundle, newest first.

use super::{
    lanes::{Lane, Lanes, Role, UpdatePath},
    names::display_name,
};
use mainstay_updates::Edge;
use std::fmt::Write;

/// The largest width of a line, in characters.
const WIDTH: usize = 100;

/// The number of names before the rest is only counted.
const MAX_NAMES: usize = 3;

/// The lanes as a text.
pub(super) fn draw(lanes: &Lanes<'_>) -> String {
    let mut out = format!("Package {}\n", display_name(lanes.package));
    if let Some(why) = lanes.deprecation {
        let _ = writeln!(out, "deprecated: {}", one_line(why));
    }
    for lane in &lanes.channels {
        out.push('\n');
        draw_lane(&mut out, lane, lanes.from.as_deref());
    }
    let has_missing = lanes
        .channels
        .iter()
        .any(|lane| lane.bundles.iter().any(|bundle| bundle.role == Role::NotInChannel));
    let has_skipped = lanes
        .channels
        .iter()
        .any(|lane| lane.bundles.iter().any(|bundle| matches!(bundle.role, Role::Skipped { .. })));
    let signs = [
        (true, "◉ head   ● may be installed"),
        (has_skipped, "○ skipped: not for new installations"),
        (has_missing, "· not in the channel"),
        (lanes.from.is_some(), "▶ on the upgrade path"),
    ];
    let signs: Vec<&str> =
        signs.into_iter().filter(|(is_shown, _)| *is_shown).map(|(_, sign)| sign).collect();
    let _ = writeln!(out, "\n{}", signs.join("   "));
    out
}

fn draw_lane(out: &mut String, lane: &Lane<'_>, from: Option<&str>) {
    let default = if lane.is_default { " (default)" } else { "" };
    let shipped = lane.bundles.iter().filter(|bundle| bundle.role != Role::NotInChannel).count();
    let _ = writeln!(
        out,
        "Channel {}{default}: {}",
        display_name(lane.name),
        mainstay_command::text::count(shipped, "bundle")
    );
    if let Some(why) = lane.deprecation {
        let _ = writeln!(out, "  deprecated: {}", one_line(why));
    }
    if let Some(why) = &lane.fault {
        let _ = writeln!(out, "  no updates: {}", one_line(why));
    }
    if let (Some(path), Some(from)) = (&lane.path, from) {
        let _ = writeln!(out, "  from {}: {}", display_name(from), path_summary(lane, path));
    }
    let width = lane
        .bundles
        .iter()
        .map(|bundle| display_name(&bundle.label).chars().count())
        .max()
        .unwrap_or(0);
    let width = width.min(WIDTH / 2);
    for (at, bundle) in lane.bundles.iter().enumerate().rev() {
        let mark = if bundle.on_path { '▶' } else { ' ' };
        let sign = match bundle.role {
            Role::NotInChannel => '·',
            Role::Head => '◉',
            Role::Skipped { .. } => '○',
            Role::Member => '●',
        };
        let label = display_name(&bundle.label);
        let notes = bundle_notes(lane, at);
        let line = format!("{mark} {sign} {label:<width$}  {notes}");
        for (number, part) in wrap(line.trim_end(), width + 6).enumerate() {
            let _ = if number == 0 {
                writeln!(out, "{part}")
            } else {
                writeln!(out, "{:indent$}{part}", "", indent = width + 6)
            };
        }
    }
}

/// The notes about a bundle: what it replaces and skips, and its state.
fn bundle_notes(lane: &Lane<'_>, at: usize) -> String {
    let bundle = &lane.bundles[at];
    let mut parts = Vec::new();
    let from = |edge: Edge| {
        let updates =
            lane.updates.iter().filter(move |update| update.to == at && update.edge == edge);
        updates.map(|update| lane.bundles[update.from].label.as_str())
    };
    let mut replaced: Vec<&str> = from(Edge::Replaces).collect();
    replaced.dedup();
    if !replaced.is_empty() {
        parts.push(format!("replaces {}", name_list(&replaced)));
    }
    let mut skips: Vec<&str> = from(Edge::Skips).collect();
    skips.reverse();
    skips.extend(bundle.skips_not_in_channel.iter().map(String::as_str));
    if !skips.is_empty() {
        parts.push(format!("skips {}", name_list(&skips)));
    }
    if let Some((range, count)) = &bundle.range {
        parts.push(format!("skipRange {} ({count} here)", display_name(range)));
    }
    if bundle.is_installed {
        parts.push("installed".to_owned());
    }
    if let Role::Skipped { by } = &bundle.role {
        let by = lane
            .bundles
            .iter()
            .find(|bundle| bundle.name == *by)
            .map_or(by.as_str(), |bundle| &bundle.label);
        parts.push(format!("skipped by {}", display_name(by)));
    }
    if let Some(why) = &bundle.deprecation {
        parts.push(format!("deprecated: {}", one_line(why)));
    }
    parts.join("; ")
}

/// The first of several names, and how many more there are.
fn name_list(names: &[&str]) -> String {
    let first: Vec<String> = names.iter().take(MAX_NAMES).map(|name| display_name(name)).collect();
    match names.len().saturating_sub(MAX_NAMES) {
        0 => first.join(", "),
        more => format!("{} and {more} more", first.join(", ")),
    }
}

/// The update path as a sentence.
fn path_summary(lane: &Lane<'_>, path: &UpdatePath) -> String {
    let labels: Vec<String> =
        path.steps.iter().map(|at| display_name(&lane.bundles[*at].label)).collect();
    let updates = mainstay_command::text::count(path.edges.len(), "update");
    let names = match labels.as_slice() {
        [] => String::new(),
        [first, second, .., last] if labels.len() > 6 => format!("{first} → {second} → … → {last}"),
        all => all.join(" → "),
    };
    match (&path.end, path.edges.len()) {
        (None, 0) => "it is the head".to_owned(),
        (None, _) => format!("{updates} to the head: {names}"),
        (Some(why), 0) => format!("no update: {}", one_line(why)),
        (Some(why), _) => format!("{updates}: {names}, then no update: {}", one_line(why)),
    }
}

/// The first line of a text.
fn one_line(text: &str) -> String {
    let line = text.trim().lines().next().unwrap_or_default();
    mainstay_command::text::escape_controls(line)
}

/// Wraps a line after semicolons; continuation lines have `indent` characters less.
fn wrap(line: &str, indent: usize) -> impl Iterator<Item = String> {
    let mut parts = Vec::new();
    let (mut part, mut room) = (String::new(), WIDTH);
    for word in line.split_inclusive("; ") {
        let wide = part.chars().count() + word.trim_end().chars().count();
        if wide > room && !part.is_empty() {
            parts.push(part.trim_end().to_owned());
            part = String::new();
            room = WIDTH.saturating_sub(indent);
        }
        part.push_str(word);
    }
    parts.push(part.trim_end().to_owned());
    parts.into_iter()
}
