//! Lanes as a picture: channels side by side, bundles from the newest down, updates as arcs and rails.
//!
//! Bundles of all channels share their rows where that fits, so that one sees which channel has what;
//! otherwise each channel has rows of its own, and channels that have no room go below. The picture
//! needs neither scripts nor fonts nor anything else from outside, and no style sheet either
//! ([`super::paint`]): arrows are shapes, because not every program has markers.

use super::{
    lanes::{Bundle, Lane, Lanes, Role, Update},
    names::{shown, xml},
    paint::{Colour, Towards, drawn, filled, line, rimmed, small, style, tip},
    rails::{Exit, Rail},
};
use mainstay_updates::Edge;
use std::collections::BTreeMap;
use std::fmt::Write;

/// The height of a row, in pixels, as everything here.
const ROW: usize = 26;
/// The space around a lane and within it.
const PAD: usize = 16;
/// The head of a lane: its name and a line about it; another line if there is one about the way.
const HEAD: usize = 56;
const LINE: usize = 16;
/// The head of the picture.
const TITLE: usize = 62;
/// The legend.
const LEGEND: usize = 52;
/// How wide the picture gets before lanes go below others.
const WIDEST: usize = 1500;
/// How wide it is at least: the legend.
const LEAST: usize = 1240;
/// How many rows lanes share at most.
const SHARED: usize = 60;
/// How far an arc reaches to the left.
const REACH: usize = 92;
/// How far the first rail is from the bundles, and how far from each other rails are.
const RAIL: usize = 26;
const GAP: usize = 10;
/// How much room rails have; more of them come nearer to each other.
const RAILS: usize = 200;
/// How many letters of a label, of a range and of a line in a lane's head are shown.
const LETTERS: [usize; 3] = [44, 30, 46];

/// Where a lane is.
struct Place {
    x: usize,
    y: usize,
    width: usize,
    height: usize,
    /// How high its head is.
    head: usize,
    /// How much room arcs have.
    arcs: usize,
    /// The row of each bundle, from the top.
    rows: Vec<usize>,
    /// How far each rail is from the bundles.
    rails: Vec<usize>,
}

/// The lanes as a picture.
pub(super) fn draw(lanes: &Lanes<'_>) -> String {
    let places = places(lanes);
    let right = places.iter().map(|place| place.x + place.width).max().unwrap_or(0);
    let width = (right + PAD).max(LEAST);
    let bottom = places.iter().map(|place| place.y + place.height).max().unwrap_or(TITLE);
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
        style(),
        filled(Colour::Page),
        filled(Colour::Ink),
    );
    let mut about = Vec::new();
    if let Some(why) = lanes.deprecation {
        about.push(format!("deprecated: {}", first_line(why)));
    }
    if let Some(from) = &lanes.from {
        about.push(format!("updates from {from}"));
    }
    let about = xml_cut(&about.join(" · "), 140);
    let _ = writeln!(out, "<text {} x=\"{PAD}\" y=\"51\">{about}</text>", small(Colour::Pale));
    for (lane, place) in lanes.channels.iter().zip(&places) {
        draw_lane(&mut out, lane, place);
    }
    let with_rails = lanes.channels.iter().any(|lane| !lane.rails.is_empty());
    legend(&mut out, bottom + 30, lanes.from.is_some(), with_rails);
    out.push_str("</svg>\n");
    out
}

/// Puts the lanes somewhere.
fn places(lanes: &Lanes<'_>) -> Vec<Place> {
    let shared = shared_rows(lanes);
    let measured = |rows: Option<&BTreeMap<(String, &str), usize>>| -> Vec<Place> {
        let place = |lane| measure(lane, rows);
        lanes.channels.iter().map(place).collect()
    };
    if let Some(rows) = &shared {
        let mut places = measured(Some(rows));
        let mut x = PAD;
        for place in &mut places {
            place.x = x;
            x += place.width + PAD;
        }
        if x <= WIDEST {
            return places;
        }
    }
    let mut places = measured(None);
    let (mut x, mut y, mut lowest) = (PAD, TITLE, TITLE);
    for place in &mut places {
        if x > PAD && x + place.width > WIDEST {
            (x, y) = (PAD, lowest + PAD);
        }
        (place.x, place.y) = (x, y);
        x += place.width + PAD;
        lowest = lowest.max(y + place.height);
    }
    places
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
    (all.len() <= SHARED).then(|| all.into_iter().enumerate().map(row).collect())
}

/// How much room a lane takes.
fn measure(lane: &Lane<'_>, rows: Option<&BTreeMap<(String, &str), usize>>) -> Place {
    let count = lane.bundles.len();
    let row = |(at, bundle): (usize, &Bundle)| {
        let version = bundle.version.as_ref().map(ToString::to_string).unwrap_or_default();
        rows.and_then(|rows| rows.get(&(version, bundle.name.as_str())).copied())
            .unwrap_or(count - 1 - at)
    };
    let places: Vec<usize> = lane.bundles.iter().enumerate().map(row).collect();
    let rails = tracks(lane);
    let arcs = lane.single_updates().map(reach).chain(rails.iter().copied()).max();
    let arcs = arcs.unwrap_or(0) + PAD;
    let texts = lane.bundles.iter().enumerate().map(|(at, bundle)| {
        let label = letters(&bundle.label, LETTERS[0]) * 15 / 2;
        let about = match about_sources(lane, at) {
            text if text.is_empty() => 0,
            text => letters(&text, usize::MAX) * 13 / 2 + 12,
        };
        label + about
    });
    let heads = head(lane).map(|line| letters(&line, LETTERS[2]) * 13 / 2);
    let title = letters(lane.name, LETTERS[0]) * 10;
    let texts = arcs + 18 + texts.max().unwrap_or(0);
    let width = heads.into_iter().chain([title, texts, 150]).max().unwrap_or(0) + 2 * PAD;
    let head = HEAD + if lane.fault.is_some() || lane.way.is_some() { LINE } else { 0 };
    let height = head + (rows.map_or(count, BTreeMap::len)) * ROW + PAD;
    Place { x: 0, y: TITLE, width, height, head, arcs, rows: places, rails }
}

/// How many letters of a text are shown.
fn letters(text: &str, most: usize) -> usize {
    shown(text).chars().count().min(most)
}

/// How far an update reaches to the left: not at all if it leads to the next bundle.
fn reach(update: &Update) -> usize {
    match update.from.abs_diff(update.to) {
        0 | 1 if update.edge == Edge::Replaces => 0,
        span => (10 + 6 * span).min(REACH),
    }
}

/// The two lines below the name of a lane.
fn head(lane: &Lane<'_>) -> [String; 2] {
    let shipped = lane.bundles.iter().filter(|bundle| bundle.role != Role::Gone).count();
    let mut about = Vec::new();
    if lane.is_default {
        about.push("default".to_owned());
    }
    about.push(super::super::count(shipped, "bundle"));
    if let Some(why) = lane.deprecation {
        about.push(format!("deprecated: {}", first_line(why)));
    }
    let way = match (&lane.fault, &lane.way) {
        (Some(why), _) => first_line(why).to_owned(),
        (None, None) => String::new(),
        (None, Some(way)) => match (&way.end, way.edges.len()) {
            (None, 0) => "installed: the head".to_owned(),
            (None, count) => format!("{} to the head", super::super::count(count, "update")),
            (Some(why), 0) => format!("no update: {}", first_line(why)),
            (Some(why), count) => {
                format!("{}, then: {}", super::super::count(count, "update"), first_line(why))
            }
        },
    };
    [about.join(" · "), way]
}

fn first_line(text: &str) -> &str {
    text.trim().lines().next().unwrap_or_default()
}

/// A text of at most so many letters.
fn cut(text: &str, most: usize) -> String {
    let text = shown(text);
    if text.chars().count() <= most {
        return text;
    }
    text.chars().take(most.saturating_sub(1)).chain(['…']).collect()
}

/// The same, for XML.
fn xml_cut(text: &str, most: usize) -> String {
    xml(&cut(text, most))
}

/// How far each rail of a lane is from its bundles: the longer, the farther, and none upon another.
fn tracks(lane: &Lane<'_>) -> Vec<usize> {
    let ends: Vec<(usize, usize)> = lane.rails.iter().map(Rail::ends).collect();
    let mut by_length: Vec<usize> = (0..ends.len()).collect();
    by_length.sort_by_key(|rail| (ends[*rail].1 - ends[*rail].0, *rail));
    let mut taken: Vec<Vec<(usize, usize)>> = Vec::new();
    let mut tracks = vec![0; ends.len()];
    for rail in by_length {
        let (first, last) = ends[rail];
        let is_free = |track: &Vec<(usize, usize)>| {
            track.iter().all(|(from, to)| *to < first || last < *from)
        };
        let track = match taken.iter().position(is_free) {
            Some(track) => track,
            // Nobody tells that many apart.
            None if taken.len() == RAILS => rail % RAILS,
            None => {
                taken.push(Vec::new());
                taken.len() - 1
            }
        };
        taken[track].push((first, last));
        tracks[rail] = track;
    }
    let count = taken.len().max(1);
    tracks.into_iter().map(|track| RAIL + (GAP * track).min(track * RAILS / count)).collect()
}

/// What stands behind the label of a bundle: how many bundles it skips, and its range.
fn about_sources(lane: &Lane<'_>, at: usize) -> String {
    let skips = lane.rails.iter().filter(|rail| rail.edge == Edge::Skips);
    let exit = skips.flat_map(|rail| &rail.exits).find(|exit| exit.at == at);
    let skips = exit.map(|exit| exit.from.count()).filter(|count| *count > 1);
    let skips = skips.map(|count| format!("skips {count}"));
    let range = lane.bundles[at].range.as_ref().map(|(range, _)| cut(range, LETTERS[1]));
    skips.into_iter().chain(range).collect::<Vec<_>>().join(" · ")
}

fn draw_lane(out: &mut String, lane: &Lane<'_>, place: &Place) {
    let Place { x, y, width, height, head: top, arcs, rows, rails } = place;
    let rim = rimmed(Colour::Lane, Colour::Rim);
    let _ = writeln!(
        out,
        "<g><rect {rim} x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\" rx=\"8\"/>"
    );
    let (left, ink) = (x + PAD, filled(Colour::Ink));
    let name = xml_cut(lane.name, LETTERS[0]);
    let _ = writeln!(
        out,
        "<text {ink} font-size=\"15\" font-weight=\"600\" x=\"{left}\" y=\"{}\">{name}</text>",
        y + 24
    );
    let reaches = lane.way.as_ref().is_some_and(|way| way.end.is_none());
    let second = if reaches { Colour::Way } else { Colour::Pale };
    for (line, (below, colour)) in head(lane).iter().zip([(41, Colour::Pale), (57, second)]) {
        if !line.is_empty() {
            let (y, cut, whole) = (y + below, xml_cut(line, LETTERS[2]), xml(line));
            let text = small(colour);
            let _ = writeln!(
                out,
                "<text {text} x=\"{left}\" y=\"{y}\">{cut}<title>{whole}</title></text>"
            );
        }
    }
    let centre = left + arcs;
    let at = |bundle: usize| y + top + rows.get(bundle).copied().unwrap_or(0) * ROW + ROW / 2;
    let arrivals = Arrivals::of(lane);
    for (rail, away) in lane.rails.iter().zip(rails) {
        draw_rail(out, lane, rail, [centre.saturating_sub(*away), centre], &at, &arrivals);
    }
    // The way lies above everything else.
    for on_way in [false, true] {
        for update in lane.single_updates().filter(|update| update.on_way == on_way) {
            let end = arrivals.end(update.to, 0, at(update.to));
            draw_update(out, lane, update, centre, [at(update.from), end]);
        }
    }
    for number in 0..lane.bundles.len() {
        draw_bundle(out, lane, number, centre, at(number));
    }
    out.push_str("</g>\n");
}

/// Where the arrows to bundles end that do not come straight from below: beside each other.
struct Arrivals(Vec<[bool; 3]>);

impl Arrivals {
    fn of(lane: &Lane<'_>) -> Self {
        let mut kinds = vec![[false; 3]; lane.bundles.len()];
        for update in lane.single_updates().filter(|update| reach(update) > 0) {
            kinds[update.to][0] = true;
        }
        for rail in &lane.rails {
            for exit in &rail.exits {
                kinds[exit.at][Self::kind(rail.edge)] = true;
            }
        }
        Self(kinds)
    }

    /// Arcs come from above rails, because they reach farther.
    fn kind(edge: Edge) -> usize {
        if edge == Edge::SkipRange { 2 } else { 1 }
    }

    /// Where an arrow ends at a bundle whose centre is at `y`.
    fn end(&self, at: usize, kind: usize, y: usize) -> usize {
        let kinds = self.0.get(at).copied().unwrap_or_default();
        let before = kinds.iter().take(kind).filter(|is| **is).count();
        let all = kinds.iter().filter(|is| **is).count().max(1);
        (y + 4 * before).saturating_sub(2 * (all - 1))
    }
}

/// A rail at `x`, of bundles at `centre`: the line from its first exit to its last mark, a tick at
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
    let end = |place: usize| arrivals.end(place, Arrivals::kind(rail.edge), at(place));
    let (colour, _) = line(rail.edge, false);
    let attributes = format!("{} stroke-width=\"1.6\"", drawn(colour));
    let (first, last) = rail.ends();
    // An end of the line that is an exit bends towards its bundle.
    let is_exit = |place: usize| rail.exits.iter().any(|exit| exit.at == place);
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
        let goes_up = exit.from.ends().is_some_and(|(first, _)| first < exit.at);
        let start = if goes_up { y + BEND } else { y.saturating_sub(BEND) };
        let title = xml(&exit_in_words(lane, rail.edge, exit));
        let _ = writeln!(
            out,
            "<g><title>{title}</title><path {attributes} d=\"M{x} {start}Q{x} {y} {} {y}H{}\"/>",
            x + BEND,
            tip_x - 5
        );
        tip(out, colour, [tip_x, y], Towards::Right);
        out.push_str("</g>\n");
    }
}

/// Who is updated to an exit.
fn exit_in_words(lane: &Lane<'_>, edge: Edge, exit: &Exit) -> String {
    let label = |at: usize| lane.bundles[at].label.as_str();
    let what = match (edge, &lane.bundles[exit.at].range) {
        (Edge::SkipRange, Some((range, _))) => format!("skipRange {range}"),
        (edge, _) => edge.as_str().to_owned(),
    };
    let (first, last) = exit.from.ends().unwrap_or_default();
    let count = super::super::count(exit.from.count(), "bundle");
    format!("{} {what}: {count}, {} to {}", label(exit.at), label(first), label(last))
}

fn draw_update(out: &mut String, lane: &Lane<'_>, update: &Update, x: usize, y: [usize; 2]) {
    let [from, to] = y;
    let (colour, attributes) = line(update.edge, update.on_way);
    let reach = reach(update);
    let (path, end, towards) = if reach == 0 {
        // Down is older: the arrow points up, and the other way round for what goes back.
        if from > to {
            (format!("M{x} {}V{}", from - 6, to + 12), [x, to + 7], Towards::Up)
        } else {
            let end = to.saturating_sub(7);
            (format!("M{x} {}V{}", from + 6, end.saturating_sub(5)), [x, end], Towards::Down)
        }
    } else {
        let (bend, start, end) = (x.saturating_sub(reach * 4 / 3 + 6), x - 6, x - 7);
        let path = format!("M{start} {from}C{bend} {from} {bend} {to} {} {to}", end - 5);
        (path, [end, to], Towards::Right)
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
    tip(out, colour, end, towards);
    out.push_str("</g>\n");
}

/// The sign of a bundle.
fn sign(role: &Role, on_way: bool) -> String {
    let (fill, stroke) = match role {
        Role::Gone => (None, Some("stroke-width=\"1.5\" stroke-dasharray=\"2 2\"")),
        Role::Head => (Some(Colour::Head), None),
        Role::Skipped { .. } => (Some(Colour::Lane), Some("stroke-width=\"1.5\"")),
        Role::Member => (Some(Colour::Ink), None),
    };
    let (rim, width) = match stroke {
        _ if on_way => (Some(Colour::Way), "stroke-width=\"3\""),
        Some(width) => (Some(Colour::Pale), width),
        None => (None, ""),
    };
    match (fill, rim) {
        (Some(fill), Some(rim)) => format!("{} {width}", rimmed(fill, rim)),
        (Some(fill), None) => filled(fill),
        (None, rim) => format!("{} {width}", drawn(rim.unwrap_or(Colour::Pale))),
    }
}

fn draw_bundle(out: &mut String, lane: &Lane<'_>, at: usize, x: usize, y: usize) {
    let bundle = &lane.bundles[at];
    let mut about = vec![bundle.name.clone()];
    if let Role::Skipped { by } = &bundle.role {
        about.push(format!("skipped by {by}"));
    }
    if bundle.role == Role::Gone {
        about.push(format!("no entry of {}", lane.name));
    }
    if let Some(why) = &bundle.deprecation {
        about.push(format!("deprecated: {}", first_line(why)));
    }
    let about: Vec<String> = about.iter().map(|line| xml(line)).collect();
    let _ = writeln!(out, "<g><title>{}</title>", about.join("&#10;"));
    let label = xml_cut(&bundle.label, LETTERS[0]);
    let wide = letters(&bundle.label, LETTERS[0]) * 15 / 2;
    if bundle.deprecation.is_some() {
        let _ = writeln!(
            out,
            "<rect {} x=\"{}\" y=\"{}\" width=\"{}\" height=\"20\" rx=\"4\"/>",
            filled(Colour::Old),
            x + 11,
            y - 10,
            wide + 10
        );
    }
    let sign = sign(&bundle.role, bundle.on_way);
    let _ = writeln!(out, "<circle {sign} cx=\"{x}\" cy=\"{y}\" r=\"5\"/>");
    let text = match bundle.role {
        _ if bundle.on_way => format!("{} font-weight=\"600\"", filled(Colour::Way)),
        Role::Gone | Role::Skipped { .. } => filled(Colour::Pale),
        Role::Head | Role::Member => filled(Colour::Ink),
    };
    let (left, base) = (x + 16, y + 4);
    let _ = writeln!(out, "<text {text} x=\"{left}\" y=\"{base}\">{label}</text>");
    let sources = about_sources(lane, at);
    if !sources.is_empty() {
        let (left, sources) = (x + 16 + wide + 12, xml(&sources));
        let text = small(Colour::Pale);
        let _ = writeln!(out, "<text {text} x=\"{left}\" y=\"{base}\">{sources}</text>");
    }
    out.push_str("</g>\n");
}

/// What the signs mean.
fn legend(out: &mut String, y: usize, with_way: bool, with_rails: bool) {
    let mut x = PAD;
    let pale = small(Colour::Pale);
    let text = |out: &mut String, x: &mut usize, words: &str| {
        let _ = writeln!(out, "<text {pale} x=\"{x}\" y=\"{}\">{words}</text>", y + 4);
        *x += words.len() * 13 / 2 + 22;
    };
    for (role, words) in [
        (Role::Head, "head"),
        (Role::Member, "bundle"),
        (Role::Skipped { by: String::new() }, "skipped: never installed anew"),
        (Role::Gone, "not in the channel"),
    ] {
        let (sign, centre) = (sign(&role, false), x + 6);
        let _ = writeln!(out, "<circle {sign} cx=\"{centre}\" cy=\"{y}\" r=\"5\"/>");
        x += 18;
        text(out, &mut x, words);
    }
    let _ = writeln!(
        out,
        "<rect {} x=\"{x}\" y=\"{}\" width=\"22\" height=\"14\" rx=\"3\"/>",
        filled(Colour::Old),
        y - 7
    );
    x += 28;
    text(out, &mut x, "deprecated");
    let lines = [
        (Edge::Replaces, false, "replaces"),
        (Edge::Skips, false, "skips"),
        (Edge::SkipRange, false, "skipRange"),
        (Edge::Replaces, true, "the way"),
    ];
    for (edge, on_way, words) in lines.into_iter().filter(|(_, on_way, _)| with_way || !on_way) {
        let (colour, attributes) = line(edge, on_way);
        let _ = writeln!(out, "<path {attributes} d=\"M{x} {y}h21\"/>");
        tip(out, colour, [x + 26, y], Towards::Right);
        x += 32;
        text(out, &mut x, words);
    }
    if with_rails {
        let line = format!("{} stroke-width=\"1.6\"", drawn(Colour::Skip));
        let (top, bottom) = (y - 8, y + 10);
        let _ = writeln!(
            out,
            "<path {line} d=\"M{x} {bottom}V{}Q{x} {top} {} {top}h6M{x} {y}h6M{x} {bottom}h6\"/>",
            top + 6,
            x + 6
        );
        tip(out, Colour::Skip, [x + 17, top], Towards::Right);
        x += 26;
        text(out, &mut x, "from every bundle with a mark");
    }
}
