//! The update graph as SVG: channels side by side, bundles from the newest down, updates as arcs and
//! rails.
//!
//! Bundles of all channels share their rows where that fits, so that the rows compare channels.
//! Otherwise each channel has rows of its own, and channels without room go below. The picture needs no
//! scripts, fonts or other resources, and no style sheet ([`super::paint`]): arrows are shapes, because
//! not every program supports markers.

use super::{
    lanes::{Bundle, Lane, Lanes, Role, Update},
    names::{display_name, xml},
    paint::{
        Colour, Direction, draw_arrowhead, edge_style, fill_attributes, outline_attributes,
        small_text_attributes, stroke_attributes, style_sheet,
    },
    rails::{Exit, Rail},
};
use mainstay_updates::Edge;
use std::collections::BTreeMap;
use std::fmt::Write;

/// The height of a row, in pixels like all sizes here.
const ROW: usize = 26;
/// The space around a lane and within it.
const PAD: usize = 16;
/// The heading of a lane: its name and a line about it; another line about the update path, if there is
/// one.
const HEAD: usize = 56;
const LINE: usize = 16;
/// The heading of the picture.
const TITLE: usize = 62;
/// The height of the legend.
const LEGEND: usize = 52;
/// The width from which lanes go below others.
const MAX_WIDTH: usize = 1500;
/// The smallest width, that of the legend.
const MIN_WIDTH: usize = 1240;
/// The largest number of shared rows.
const MAX_SHARED_ROWS: usize = 60;
/// The largest width of an arc.
const MAX_ARC_REACH: usize = 92;
/// The distance of the first rail from the bundles, and of rails from each other.
const RAIL: usize = 26;
const GAP: usize = 10;
/// The space for rails; more rails are closer to each other.
const RAIL_SPACE: usize = 200;
/// The largest number of characters of a label, of a range and of a heading line.
const MAX_LETTERS: [usize; 3] = [44, 30, 46];

/// The position and the layout of a lane.
struct LanePlacement {
    x: usize,
    y: usize,
    width: usize,
    height: usize,
    /// The height of its heading.
    heading_height: usize,
    /// The width for arcs.
    arcs: usize,
    /// The row of each bundle, from the top.
    rows: Vec<usize>,
    /// The distance of each rail from the bundles.
    rails: Vec<usize>,
}

/// Draws the lanes.
pub(super) fn draw(lanes: &Lanes<'_>) -> String {
    let placements = placements(lanes);
    let right = placements.iter().map(|placement| placement.x + placement.width).max().unwrap_or(0);
    let width = (right + PAD).max(MIN_WIDTH);
    let bottom =
        placements.iter().map(|placement| placement.y + placement.height).max().unwrap_or(TITLE);
    let height = bottom + LEGEND;
    let package = xml(lanes.package);
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" \
         viewBox=\"0 0 {width} {height}\" role=\"img\" \
         font-family=\"system-ui, sans-serif\" font-size=\"13\">\n\
         <title>Updates of {package}</title>\n\
         <style>{}</style>\n\
         <rect {} width=\"{width}\" height=\"{height}\"/>\n\
         <text {} font-size=\"20\" font-weight=\"600\" x=\"{PAD}\" y=\"32\">{package}</text>\n",
        style_sheet(),
        fill_attributes(Colour::Page),
        fill_attributes(Colour::Text),
    );
    let mut about = Vec::new();
    if let Some(why) = lanes.deprecation {
        about.push(format!("deprecated: {}", first_line(why)));
    }
    if let Some(from) = &lanes.from {
        about.push(format!("updates from {from}"));
    }
    let about = truncate_xml(&about.join(" · "), 140);
    let _ = writeln!(
        out,
        "<text {} x=\"{PAD}\" y=\"51\">{about}</text>",
        small_text_attributes(Colour::SecondaryText)
    );
    for (lane, placement) in lanes.channels.iter().zip(&placements) {
        draw_lane(&mut out, lane, placement);
    }
    let with_rails = lanes.channels.iter().any(|lane| !lane.rails.is_empty());
    legend(&mut out, bottom + 30, lanes.from.is_some(), with_rails);
    out.push_str("</svg>\n");
    out
}

/// Lays out the lanes.
fn placements(lanes: &Lanes<'_>) -> Vec<LanePlacement> {
    let shared = shared_rows(lanes);
    let measured = |rows: Option<&BTreeMap<(String, &str), usize>>| -> Vec<LanePlacement> {
        let placement = |lane| measure(lane, rows);
        lanes.channels.iter().map(placement).collect()
    };
    if let Some(rows) = &shared {
        let mut placements = measured(Some(rows));
        let mut x = PAD;
        for placement in &mut placements {
            placement.x = x;
            x += placement.width + PAD;
        }
        if x <= MAX_WIDTH {
            return placements;
        }
    }
    let mut placements = measured(None);
    let (mut x, mut y, mut lowest) = (PAD, TITLE, TITLE);
    for placement in &mut placements {
        if x > PAD && x + placement.width > MAX_WIDTH {
            (x, y) = (PAD, lowest + PAD);
        }
        (placement.x, placement.y) = (x, y);
        x += placement.width + PAD;
        lowest = lowest.max(y + placement.height);
    }
    placements
}

/// The rows of bundles, the newest first, if all lanes can share them.
fn shared_rows<'l>(lanes: &'l Lanes<'_>) -> Option<BTreeMap<(String, &'l str), usize>> {
    let mut all = Vec::new();
    for bundle in lanes.channels.iter().flat_map(|lane| &lane.bundles) {
        all.push((bundle.version.as_ref()?, bundle.name.as_str()));
    }
    all.sort_unstable_by(|a, b| b.cmp(a));
    all.dedup();
    let row = |(row, (version, name)): (usize, (&mainstay_version::Version, &'l str))| {
        ((version.to_string(), name), row)
    };
    (all.len() <= MAX_SHARED_ROWS).then(|| all.into_iter().enumerate().map(row).collect())
}

/// Measures a lane.
fn measure(lane: &Lane<'_>, rows: Option<&BTreeMap<(String, &str), usize>>) -> LanePlacement {
    let count = lane.bundles.len();
    let row = |(at, bundle): (usize, &Bundle)| {
        let version = bundle.version.as_ref().map(ToString::to_string).unwrap_or_default();
        rows.and_then(|rows| rows.get(&(version, bundle.name.as_str())).copied())
            .unwrap_or(count - 1 - at)
    };
    let bundle_rows: Vec<usize> = lane.bundles.iter().enumerate().map(row).collect();
    let rails = rail_tracks(lane);
    let arcs = lane.single_updates().map(arc_reach).chain(rails.iter().copied()).max();
    let arcs = arcs.unwrap_or(0) + PAD;
    let texts = lane.bundles.iter().enumerate().map(|(at, bundle)| {
        let label = text_length(&bundle.label, MAX_LETTERS[0]) * 15 / 2;
        let about = match about_sources(lane, at) {
            text if text.is_empty() => 0,
            text => text_length(&text, usize::MAX) * 13 / 2 + 12,
        };
        label + about
    });
    let heads = heading_lines(lane).map(|line| text_length(&line, MAX_LETTERS[2]) * 13 / 2);
    let title = text_length(lane.name, MAX_LETTERS[0]) * 10;
    let texts = arcs + 18 + texts.max().unwrap_or(0);
    let width = heads.into_iter().chain([title, texts, 150]).max().unwrap_or(0) + 2 * PAD;
    let heading_height = HEAD + if lane.fault.is_some() || lane.path.is_some() { LINE } else { 0 };
    let height = heading_height + (rows.map_or(count, BTreeMap::len)) * ROW + PAD;
    LanePlacement { x: 0, y: TITLE, width, height, heading_height, arcs, rows: bundle_rows, rails }
}

/// The displayed length of a text, in characters.
fn text_length(text: &str, most: usize) -> usize {
    display_name(text).chars().count().min(most)
}

/// The width of an update's arc: 0 if the update leads to the next bundle.
fn arc_reach(update: &Update) -> usize {
    match update.from.abs_diff(update.to) {
        0 | 1 if update.edge == Edge::Replaces => 0,
        span => (10 + 6 * span).min(MAX_ARC_REACH),
    }
}

/// The two lines below the name of a lane.
fn heading_lines(lane: &Lane<'_>) -> [String; 2] {
    let shipped = lane.bundles.iter().filter(|bundle| bundle.role != Role::NotInChannel).count();
    let mut about = Vec::new();
    if lane.is_default {
        about.push("default".to_owned());
    }
    about.push(mainstay_command::text::count(shipped, "bundle"));
    if let Some(why) = lane.deprecation {
        about.push(format!("deprecated: {}", first_line(why)));
    }
    let path = match (&lane.fault, &lane.path) {
        (Some(why), _) => first_line(why).to_owned(),
        (None, None) => String::new(),
        (None, Some(path)) => match (&path.end, path.edges.len()) {
            (None, 0) => "installed: the head".to_owned(),
            (None, count) => {
                format!("{} to the head", mainstay_command::text::count(count, "update"))
            }
            (Some(why), 0) => format!("no update: {}", first_line(why)),
            (Some(why), count) => {
                format!(
                    "{}, then: {}",
                    mainstay_command::text::count(count, "update"),
                    first_line(why)
                )
            }
        },
    };
    [about.join(" · "), path]
}

fn first_line(text: &str) -> &str {
    text.trim().lines().next().unwrap_or_default()
}

/// Shortens a text to a number of characters.
fn truncate(text: &str, most: usize) -> String {
    let text = display_name(text);
    if text.chars().count() <= most {
        return text;
    }
    text.chars().take(most.saturating_sub(1)).chain(['…']).collect()
}

/// Shortens a text and escapes it for XML.
fn truncate_xml(text: &str, most: usize) -> String {
    xml(&truncate(text, most))
}

/// The distance of each rail from the bundles: longer rails are farther, and none covers another.
fn rail_tracks(lane: &Lane<'_>) -> Vec<usize> {
    let bounds: Vec<(usize, usize)> = lane.rails.iter().map(Rail::bounds).collect();
    let mut by_length: Vec<usize> = (0..bounds.len()).collect();
    by_length.sort_by_key(|rail| (bounds[*rail].1 - bounds[*rail].0, *rail));
    let mut taken: Vec<Vec<(usize, usize)>> = Vec::new();
    let mut tracks = vec![0; bounds.len()];
    for rail in by_length {
        let (first, last) = bounds[rail];
        let is_free = |track: &Vec<(usize, usize)>| {
            track.iter().all(|(from, to)| *to < first || last < *from)
        };
        let track = match taken.iter().position(is_free) {
            Some(track) => track,
            // So many rails cannot be told apart.
            None if taken.len() == RAIL_SPACE => rail % RAIL_SPACE,
            None => {
                taken.push(Vec::new());
                taken.len() - 1
            }
        };
        taken[track].push((first, last));
        tracks[rail] = track;
    }
    let count = taken.len().max(1);
    tracks.into_iter().map(|track| RAIL + (GAP * track).min(track * RAIL_SPACE / count)).collect()
}

/// The text after a bundle's label: the number of bundles that it skips, and its range.
fn about_sources(lane: &Lane<'_>, at: usize) -> String {
    let skips = lane.rails.iter().filter(|rail| rail.edge == Edge::Skips);
    let exit = skips.flat_map(|rail| &rail.exits).find(|exit| exit.at == at);
    let skips = exit.map(|exit| exit.from.count()).filter(|count| *count > 1);
    let skips = skips.map(|count| format!("skips {count}"));
    let range = lane.bundles[at].range.as_ref().map(|(range, _)| truncate(range, MAX_LETTERS[1]));
    skips.into_iter().chain(range).collect::<Vec<_>>().join(" · ")
}

fn draw_lane(out: &mut String, lane: &Lane<'_>, placement: &LanePlacement) {
    let LanePlacement { x, y, width, height, heading_height: top, arcs, rows, rails } = placement;
    let rim = outline_attributes(Colour::Lane, Colour::Border);
    let _ = writeln!(
        out,
        "<g><rect {rim} x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\" rx=\"8\"/>"
    );
    let (left, ink) = (x + PAD, fill_attributes(Colour::Text));
    let name = truncate_xml(lane.name, MAX_LETTERS[0]);
    let _ = writeln!(
        out,
        "<text {ink} font-size=\"15\" font-weight=\"600\" x=\"{left}\" y=\"{}\">{name}</text>",
        y + 24
    );
    let reaches = lane.path.as_ref().is_some_and(|path| path.end.is_none());
    let second = if reaches { Colour::Path } else { Colour::SecondaryText };
    for (line, (below, colour)) in
        heading_lines(lane).iter().zip([(41, Colour::SecondaryText), (57, second)])
    {
        if !line.is_empty() {
            let (y, shortened, whole) = (y + below, truncate_xml(line, MAX_LETTERS[2]), xml(line));
            let text = small_text_attributes(colour);
            let _ = writeln!(
                out,
                "<text {text} x=\"{left}\" y=\"{y}\">{shortened}<title>{whole}</title></text>"
            );
        }
    }
    let centre = left + arcs;
    let at = |bundle: usize| y + top + rows.get(bundle).copied().unwrap_or(0) * ROW + ROW / 2;
    let arrivals = Arrivals::of(lane);
    for (rail, away) in lane.rails.iter().zip(rails) {
        draw_rail(out, lane, rail, [centre.saturating_sub(*away), centre], &at, &arrivals);
    }
    // The update path is drawn above all other lines.
    for on_path in [false, true] {
        for update in lane.single_updates().filter(|update| update.on_path == on_path) {
            let end = arrivals.end(update.to, 0, at(update.to));
            draw_update(out, lane, update, centre, [at(update.from), end]);
        }
    }
    for number in 0..lane.bundles.len() {
        draw_bundle(out, lane, number, centre, at(number));
    }
    out.push_str("</g>\n");
}

/// The ends of arrows that reach a bundle from the left, beside each other.
struct Arrivals(Vec<[bool; 3]>);

impl Arrivals {
    fn of(lane: &Lane<'_>) -> Self {
        let mut kinds = vec![[false; 3]; lane.bundles.len()];
        for update in lane.single_updates().filter(|update| arc_reach(update) > 0) {
            kinds[update.to][0] = true;
        }
        for rail in &lane.rails {
            for exit in &rail.exits {
                kinds[exit.at][Self::kind(rail.edge)] = true;
            }
        }
        Self(kinds)
    }

    /// Arcs end above rails, because they are wider.
    fn kind(edge: Edge) -> usize {
        if edge == Edge::SkipRange { 2 } else { 1 }
    }

    /// The height at which an arrow ends at a bundle with its centre at `y`.
    fn end(&self, at: usize, kind: usize, y: usize) -> usize {
        let kinds = self.0.get(at).copied().unwrap_or_default();
        let before = kinds.iter().take(kind).filter(|is| **is).count();
        let all = kinds.iter().filter(|is| **is).count().max(1);
        (y + 4 * before).saturating_sub(2 * (all - 1))
    }
}

/// Draws a rail at `x` for bundles at `centre`: a line from its first exit to its last mark, a tick at
/// each mark, and an arrow for each exit.
fn draw_rail(
    out: &mut String,
    lane: &Lane<'_>,
    rail: &Rail,
    [x, centre]: [usize; 2],
    at: &dyn Fn(usize) -> usize,
    arrivals: &Arrivals,
) {
    const BEND: usize = 8;
    let end = |bundle: usize| arrivals.end(bundle, Arrivals::kind(rail.edge), at(bundle));
    let (colour, _) = edge_style(rail.edge, false);
    let attributes = format!("{} stroke-width=\"1.6\"", stroke_attributes(colour));
    let (first, last) = rail.bounds();
    // A line that ends at an exit bends towards its bundle.
    let is_exit = |bundle: usize| rail.exits.iter().any(|exit| exit.at == bundle);
    let top = if is_exit(last) { end(last) + BEND } else { at(last) };
    let bottom = if is_exit(first) { end(first).saturating_sub(BEND) } else { at(first) };
    let newest = rail.exits.iter().map(|exit| lane.bundles[exit.at].label.as_str());
    let newest: Vec<&str> = newest.collect();
    let words = match newest.as_slice() {
        [one] => format!("{one} {} {} bundles", rail.edge.as_str(), rail.marks.count()),
        [one, .., end] => format!(
            "{}: {} releases, {one} to {end}, and each takes all marks below it",
            rail.edge.as_str(),
            newest.len(),
        ),
        [] => return,
    };
    let title = xml(&words);
    let _ =
        writeln!(out, "<g><title>{title}</title><path {attributes} d=\"M{x} {top}V{bottom}\"/>");
    let mut ticks = String::new();
    for mark in rail.marks.iter() {
        let _ = write!(ticks, "M{x} {}h6", at(mark));
    }
    let _ = writeln!(out, "<path {attributes} d=\"{ticks}\"/></g>");
    for exit in &rail.exits {
        let (y, tip_x) = (end(exit.at), centre - 7);
        // Marks are below the exit, unless all are above it.
        let goes_up = exit.from.bounds().is_some_and(|(first, _)| first < exit.at);
        let start = if goes_up { y + BEND } else { y.saturating_sub(BEND) };
        let title = xml(&exit_in_words(lane, rail.edge, exit));
        let _ = writeln!(
            out,
            "<g><title>{title}</title><path {attributes} d=\"M{x} {start}Q{x} {y} {} {y}H{}\"/>",
            x + BEND,
            tip_x - 5
        );
        draw_arrowhead(out, colour, [tip_x, y], Direction::Right);
        out.push_str("</g>\n");
    }
}

/// The updates of an exit in words.
fn exit_in_words(lane: &Lane<'_>, edge: Edge, exit: &Exit) -> String {
    let label = |at: usize| lane.bundles[at].label.as_str();
    let what = match (edge, &lane.bundles[exit.at].range) {
        (Edge::SkipRange, Some((range, _))) => format!("skipRange {range}"),
        (edge, _) => edge.as_str().to_owned(),
    };
    let (first, last) = exit.from.bounds().unwrap_or_default();
    let count = mainstay_command::text::count(exit.from.count(), "bundle");
    format!("{} {what}: {count}, {} to {}", label(exit.at), label(first), label(last))
}

fn draw_update(out: &mut String, lane: &Lane<'_>, update: &Update, x: usize, y: [usize; 2]) {
    let [from, to] = y;
    let (colour, attributes) = edge_style(update.edge, update.on_path);
    let span = arc_reach(update);
    let (path, end, direction) = if span == 0 {
        // Older bundles are below: the arrow points up, or down for an update to an older bundle.
        if from > to {
            (format!("M{x} {}V{}", from - 6, to + 12), [x, to + 7], Direction::Up)
        } else {
            let end = to.saturating_sub(7);
            (format!("M{x} {}V{}", from + 6, end.saturating_sub(5)), [x, end], Direction::Down)
        }
    } else {
        let (bend, start, end) = (x.saturating_sub(span * 4 / 3 + 6), x - 6, x - 7);
        let path = format!("M{start} {from}C{bend} {from} {bend} {to} {} {to}", end - 5);
        (path, [end, to], Direction::Right)
    };
    let (old, new) = (&lane.bundles[update.from], &lane.bundles[update.to]);
    let what = match (update.edge, &new.range) {
        (Edge::SkipRange, Some((range, _))) if update.count > 1 => {
            format!(
                "{} skipRange {range} ({} bundles from {} on)",
                new.label, update.count, old.label
            )
        }
        (Edge::SkipRange, Some((range, _))) => format!("{} skipRange {range}", new.label),
        (edge, _) => format!("{} {} {}", new.label, edge.as_str(), old.label),
    };
    let title = xml(&what);
    let _ = writeln!(out, "<g><title>{title}</title><path {attributes} d=\"{path}\"/>");
    draw_arrowhead(out, colour, end, direction);
    out.push_str("</g>\n");
}

/// The attributes of a bundle's circle.
fn sign_attributes(role: &Role, on_path: bool) -> String {
    let (fill, stroke) = match role {
        Role::NotInChannel => (None, Some("stroke-width=\"1.5\" stroke-dasharray=\"2 2\"")),
        Role::Head => (Some(Colour::Head), None),
        Role::Skipped { .. } => (Some(Colour::Lane), Some("stroke-width=\"1.5\"")),
        Role::Member => (Some(Colour::Text), None),
    };
    let (rim, width) = match stroke {
        _ if on_path => (Some(Colour::Path), "stroke-width=\"3\""),
        Some(width) => (Some(Colour::SecondaryText), width),
        None => (None, ""),
    };
    match (fill, rim) {
        (Some(fill), Some(rim)) => format!("{} {width}", outline_attributes(fill, rim)),
        (Some(fill), None) => fill_attributes(fill),
        (None, rim) => {
            format!("{} {width}", stroke_attributes(rim.unwrap_or(Colour::SecondaryText)))
        }
    }
}

fn draw_bundle(out: &mut String, lane: &Lane<'_>, at: usize, x: usize, y: usize) {
    let bundle = &lane.bundles[at];
    let mut about = vec![bundle.name.clone()];
    if let Role::Skipped { by } = &bundle.role {
        about.push(format!("skipped by {by}"));
    }
    if bundle.role == Role::NotInChannel {
        about.push(format!("no entry of {}", lane.name));
    }
    if let Some(why) = &bundle.deprecation {
        about.push(format!("deprecated: {}", first_line(why)));
    }
    let about: Vec<String> = about.iter().map(|line| xml(line)).collect();
    let _ = writeln!(out, "<g><title>{}</title>", about.join("&#10;"));
    let label = truncate_xml(&bundle.label, MAX_LETTERS[0]);
    let wide = text_length(&bundle.label, MAX_LETTERS[0]) * 15 / 2;
    if bundle.deprecation.is_some() {
        let _ = writeln!(
            out,
            "<rect {} x=\"{}\" y=\"{}\" width=\"{}\" height=\"20\" rx=\"4\"/>",
            fill_attributes(Colour::Deprecated),
            x + 11,
            y - 10,
            wide + 10
        );
    }
    let sign = sign_attributes(&bundle.role, bundle.on_path);
    let _ = writeln!(out, "<circle {sign} cx=\"{x}\" cy=\"{y}\" r=\"5\"/>");
    let text = match bundle.role {
        _ if bundle.on_path => format!("{} font-weight=\"600\"", fill_attributes(Colour::Path)),
        Role::NotInChannel | Role::Skipped { .. } => fill_attributes(Colour::SecondaryText),
        Role::Head | Role::Member => fill_attributes(Colour::Text),
    };
    let (left, base) = (x + 16, y + 4);
    let _ = writeln!(out, "<text {text} x=\"{left}\" y=\"{base}\">{label}</text>");
    let sources = about_sources(lane, at);
    if !sources.is_empty() {
        let (left, sources) = (x + 16 + wide + 12, xml(&sources));
        let text = small_text_attributes(Colour::SecondaryText);
        let _ = writeln!(out, "<text {text} x=\"{left}\" y=\"{base}\">{sources}</text>");
    }
    out.push_str("</g>\n");
}

/// Draws the legend.
fn legend(out: &mut String, y: usize, with_way: bool, with_rails: bool) {
    let mut x = PAD;
    let pale = small_text_attributes(Colour::SecondaryText);
    let text = |out: &mut String, x: &mut usize, words: &str| {
        let _ = writeln!(out, "<text {pale} x=\"{x}\" y=\"{}\">{words}</text>", y + 4);
        *x += words.len() * 13 / 2 + 22;
    };
    for (role, words) in [
        (Role::Head, "head"),
        (Role::Member, "bundle"),
        (Role::Skipped { by: String::new() }, "skipped: not for new installations"),
        (Role::NotInChannel, "not in the channel"),
    ] {
        let (sign, centre) = (sign_attributes(&role, false), x + 6);
        let _ = writeln!(out, "<circle {sign} cx=\"{centre}\" cy=\"{y}\" r=\"5\"/>");
        x += 18;
        text(out, &mut x, words);
    }
    let _ = writeln!(
        out,
        "<rect {} x=\"{x}\" y=\"{}\" width=\"22\" height=\"14\" rx=\"3\"/>",
        fill_attributes(Colour::Deprecated),
        y - 7
    );
    x += 28;
    text(out, &mut x, "deprecated");
    let lines = [
        (Edge::Replaces, false, "replaces"),
        (Edge::Skips, false, "skips"),
        (Edge::SkipRange, false, "skipRange"),
        (Edge::Replaces, true, "upgrade path"),
    ];
    for (edge, on_path, words) in lines.into_iter().filter(|(_, on_path, _)| with_way || !on_path) {
        let (colour, attributes) = edge_style(edge, on_path);
        let _ = writeln!(out, "<path {attributes} d=\"M{x} {y}h21\"/>");
        draw_arrowhead(out, colour, [x + 26, y], Direction::Right);
        x += 32;
        text(out, &mut x, words);
    }
    if with_rails {
        let line = format!("{} stroke-width=\"1.6\"", stroke_attributes(Colour::Skip));
        let (top, bottom) = (y - 8, y + 10);
        let _ = writeln!(
            out,
            "<path {line} d=\"M{x} {bottom}V{}Q{x} {top} {} {top}h6M{x} {y}h6M{x} {bottom}h6\"/>",
            top + 6,
            x + 6
        );
        draw_arrowhead(out, Colour::Skip, [x + 17, top], Direction::Right);
        x += 26;
        text(out, &mut x, "from every bundle with a mark");
    }
}
