//! The update graph in Mermaid and DOT.
//!
//! A rail becomes a chain of points. Each source bundle leads to the point of the nearest exit above
//! it, and each point to its exit and to the next point above. A range is one edge, from the oldest
//! bundle.

use super::{
    lanes::{Bundle, Lane, Lanes, Role, Update},
    names,
    rails::Rail,
};
use mainstay_updates::Edge;
use std::fmt::Write;

/// The label of a range: its text, and the number of bundles in it.
fn range_of<'l>(lane: &'l Lane<'_>, update: &Update) -> Option<(&'l str, usize)> {
    let (range, _) = lane.bundles[update.to].range.as_ref()?;
    (update.edge == Edge::SkipRange).then_some((range.as_str(), update.count))
}

/// The rails of `skips`, drawn as chains of points, each with a number.
fn chains<'l>(lane: &'l Lane<'_>) -> impl Iterator<Item = (usize, &'l Rail)> {
    lane.rails.iter().enumerate().filter(|(_, rail)| rail.edge == Edge::Skips)
}

/// The updates with an edge of their own.
fn singles<'l>(lane: &'l Lane<'_>) -> impl Iterator<Item = &'l Update> {
    let ranges = lane.updates.iter().filter(|update| update.edge == Edge::SkipRange);
    let others = lane.single_updates().filter(|update| update.edge != Edge::SkipRange);
    let mut all: Vec<&Update> = others.chain(ranges).collect();
    all.sort_by_key(|update| (update.on_path, update.to, update.from, update.edge));
    all.into_iter()
}

/// The style classes of a bundle.
fn classes(bundle: &Bundle) -> impl Iterator<Item = &'static str> {
    [
        (bundle.role == Role::Head, "head"),
        (matches!(bundle.role, Role::Skipped { .. }), "skipped"),
        (bundle.role == Role::NotInChannel, "gone"),
        (bundle.deprecation.is_some(), "deprecated"),
        (bundle.on_path, "way"),
    ]
    .into_iter()
    .filter(|(applies, _)| *applies)
    .map(|(_, class)| class)
}

/// The title of a lane.
fn title(lane: &Lane<'_>, escape: fn(&str) -> String) -> String {
    let mut title = escape(lane.name);
    for (applies, word) in
        [(lane.is_default, " (default)"), (lane.deprecation.is_some(), " (deprecated)")]
    {
        if applies {
            title.push_str(word);
        }
    }
    title
}

/// The lanes in the language of Mermaid.
pub(super) fn mermaid(lanes: &Lanes<'_>) -> String {
    let mut out = String::from(
        "flowchart LR\n  \
         classDef head stroke-width:3px\n  \
         classDef skipped fill:#f3f3f3,color:#777,stroke:#aaa\n  \
         classDef gone fill:#fff,color:#777,stroke:#aaa,stroke-dasharray:4 3\n  \
         classDef deprecated fill:#fbe3c0\n  \
         classDef way stroke:#1a7f37,stroke-width:3px\n  \
         classDef point fill:#8250df,stroke:#8250df\n",
    );
    let mut by_class: Vec<(&str, Vec<String>)> = Vec::new();
    let (mut links, mut path) = (0_usize, Vec::new());
    let mut add_class = |class, id| match by_class.iter_mut().find(|(known, _)| *known == class) {
        Some((_, ids)) => ids.push(id),
        None => by_class.push((class, vec![id])),
    };
    let package = names::mermaid(lanes.package);
    let _ = writeln!(out, "  subgraph p[\"{package}\"]");
    for (number, lane) in lanes.channels.iter().enumerate() {
        let title = title(lane, names::mermaid);
        let _ = writeln!(out, "    subgraph c{number}[\"{title}\"]");
        for (at, bundle) in lane.bundles.iter().enumerate() {
            let id = format!("c{number}n{at}");
            let _ = writeln!(out, "      {id}[\"{}\"]", names::mermaid(&bundle.label));
            for class in classes(bundle) {
                add_class(class, id.clone());
            }
        }
        for (rail, chain) in chains(lane) {
            let point = |exit: usize| format!("c{number}r{rail}p{exit}");
            for (at, exit) in chain.exits.iter().enumerate() {
                let _ = writeln!(out, "      {}(( ))", point(at));
                add_class("point", point(at));
                let _ = writeln!(
                    out,
                    "      {} -. skips {} .-> c{number}n{}",
                    point(at),
                    exit.from.count(),
                    exit.at
                );
                links += 1;
                if at > 0 {
                    let _ = writeln!(out, "      {} -.- {}", point(at), point(at - 1));
                    links += 1;
                }
                for mark in chain.marks_of(at) {
                    let _ = writeln!(out, "      c{number}n{mark} -.- {}", point(at));
                    links += 1;
                }
            }
        }
        for update in singles(lane) {
            let (from, to) =
                (format!("c{number}n{}", update.from), format!("c{number}n{}", update.to));
            let arrow = match (update.edge, range_of(lane, update)) {
                (Edge::Replaces, _) => "-->".to_owned(),
                (_, Some((range, count))) => {
                    let more = if count > 1 { format!(", {count} bundles") } else { String::new() };
                    format!("-. \"{}{more}\" .->", names::mermaid(range))
                }
                _ => "-. skips .->".to_owned(),
            };
            let _ = writeln!(out, "      {from} {arrow} {to}");
            if update.on_path {
                path.push(links.to_string());
            }
            links += 1;
        }
        out.push_str("    end\n");
    }
    out.push_str("  end\n");
    by_class.sort_unstable();
    for (class, ids) in by_class {
        let _ = writeln!(out, "  class {} {class}", ids.join(","));
    }
    if !path.is_empty() {
        let _ = writeln!(out, "  linkStyle {} stroke:#1a7f37,stroke-width:3px", path.join(","));
    }
    out
}

/// The lanes in the language of DOT.
pub(super) fn dot(lanes: &Lanes<'_>) -> String {
    let package = names::dot(lanes.package);
    let mut out = format!(
        "digraph \"{package}\" {{\n  \
         rankdir=LR; label=\"{package}\"; labelloc=t; fontname=\"sans-serif\";\n  \
         node [shape=box, style=\"rounded,filled\", fillcolor=white, fontname=\"sans-serif\"];\n  \
         edge [fontname=\"sans-serif\", fontsize=10];\n"
    );
    for (number, lane) in lanes.channels.iter().enumerate() {
        let title = title(lane, names::dot);
        let _ = writeln!(out, "  subgraph cluster_{number} {{\n    label=\"{title}\";");
        for (at, bundle) in lane.bundles.iter().enumerate() {
            let mut more = String::new();
            for class in classes(bundle) {
                more.push_str(match class {
                    "head" => ", penwidth=2.5",
                    "skipped" => ", fontcolor=\"#777777\", color=\"#aaaaaa\"",
                    "gone" => ", style=\"rounded,dashed\", fontcolor=\"#777777\"",
                    "deprecated" => ", fillcolor=\"#fbe3c0\"",
                    _ => ", color=\"#1a7f37\", penwidth=2.5",
                });
            }
            let (label, name) = (names::dot(&bundle.label), names::dot(&bundle.name));
            let _ =
                writeln!(out, "    c{number}n{at} [label=\"{label}\", tooltip=\"{name}\"{more}];");
        }
        for (rail, chain) in chains(lane) {
            let point = |exit: usize| format!("c{number}r{rail}p{exit}");
            for (at, exit) in chain.exits.iter().enumerate() {
                let (here, count) = (point(at), exit.from.count());
                let _ = writeln!(out, "    {here} [shape=point, color=\"#8250df\"];");
                let _ = writeln!(
                    out,
                    "    {here} -> c{number}n{} [style=dashed, label=\"skips {count}\"];",
                    exit.at
                );
                let above = (at > 0).then(|| format!("{here} -> {}", point(at - 1)));
                let marks = chain.marks_of(at).map(|mark| format!("c{number}n{mark} -> {here}"));
                for edge in above.into_iter().chain(marks) {
                    let _ = writeln!(out, "    {edge} [style=dashed, arrowhead=none];");
                }
            }
        }
        for update in singles(lane) {
            let mut more = Vec::new();
            match (update.edge, range_of(lane, update)) {
                (Edge::Replaces, _) => {}
                (_, Some((range, count))) => {
                    let count =
                        if count > 1 { format!(", {count} bundles") } else { String::new() };
                    more.push(format!("style=dotted, label=\"{}{count}\"", names::dot(range)));
                }
                _ => more.push("style=dashed, label=\"skips\"".to_owned()),
            }
            if update.on_path {
                more.push("color=\"#1a7f37\", penwidth=2.5".to_owned());
            }
            let (from, to, more) = (update.from, update.to, more.join(", "));
            let more = if more.is_empty() { more } else { format!(" [{more}]") };
            let _ = writeln!(out, "    c{number}n{from} -> c{number}n{to}{more};");
        }
        out.push_str("  }\n");
    }
    out.push_str("}\n");
    out
}
