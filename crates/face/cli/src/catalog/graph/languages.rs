//! Lanes in the languages of programs that draw: Mermaid and DOT.

use super::{
    lanes::{Bundle, Lane, Lanes, Role, Update},
    names,
};
use mainstay_updates::Edge;
use std::fmt::Write;

/// What is written at a range.
fn range_of<'l>(lane: &'l Lane<'_>, update: &Update) -> Option<(&'l str, usize)> {
    let (range, _) = lane.bundles[update.to].range.as_ref()?;
    (update.edge == Edge::SkipRange).then_some((range.as_str(), update.count))
}

/// How a bundle is shown, in words that are classes.
fn classes(bundle: &Bundle) -> impl Iterator<Item = &'static str> {
    [
        (bundle.role == Role::Head, "head"),
        (matches!(bundle.role, Role::Skipped { .. }), "skipped"),
        (bundle.role == Role::Gone, "gone"),
        (bundle.deprecation.is_some(), "deprecated"),
        (bundle.on_way, "way"),
    ]
    .into_iter()
    .filter(|(is, _)| *is)
    .map(|(_, class)| class)
}

/// How a lane is called.
fn title(lane: &Lane<'_>, escape: fn(&str) -> String) -> String {
    let mut title = escape(lane.name);
    for (is, word) in
        [(lane.is_default, " (default)"), (lane.deprecation.is_some(), " (deprecated)")]
    {
        if is {
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
         classDef way stroke:#1a7f37,stroke-width:3px\n",
    );
    let mut by_class: Vec<(&str, Vec<String>)> = Vec::new();
    let (mut links, mut way) = (0_usize, Vec::new());
    let package = names::mermaid(lanes.package);
    let _ = writeln!(out, "  subgraph p[\"{package}\"]");
    for (number, lane) in lanes.channels.iter().enumerate() {
        let title = title(lane, names::mermaid);
        let _ = writeln!(out, "    subgraph c{number}[\"{title}\"]");
        for (at, bundle) in lane.bundles.iter().enumerate() {
            let id = format!("c{number}n{at}");
            let _ = writeln!(out, "      {id}[\"{}\"]", names::mermaid(&bundle.label));
            for class in classes(bundle) {
                match by_class.iter_mut().find(|(known, _)| *known == class) {
                    Some((_, ids)) => ids.push(id.clone()),
                    None => by_class.push((class, vec![id.clone()])),
                }
            }
        }
        for update in &lane.updates {
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
            if update.on_way {
                way.push(links.to_string());
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
    if !way.is_empty() {
        let _ = writeln!(out, "  linkStyle {} stroke:#1a7f37,stroke-width:3px", way.join(","));
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
        for update in &lane.updates {
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
            if update.on_way {
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
