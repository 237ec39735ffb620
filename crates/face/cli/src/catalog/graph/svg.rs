//! Lanes as a picture: channels side by side, bundles from the newest down, updates as arcs.
//!
//! Bundles of all channels share their rows where that fits, so that one sees which channel has what;
//! otherwise each channel has rows of its own, and channels that have no room go below. The picture
//! needs neither scripts nor fonts nor anything else from outside.

use super::{
    lanes::{Bundle, Lane, Lanes, Role, Update},
    names::{shown, xml},
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
const LEAST: usize = 1080;
/// How many rows lanes share at most.
const SHARED: usize = 60;
/// How far an arc reaches to the left.
const REACH: usize = 92;
/// How many letters of a label, of a range and of a line in a lane's head are shown.
const LETTERS: [usize; 3] = [44, 30, 46];

const STYLE: &str = "\
svg{--page:#fff;--lane:#f6f8fa;--rim:#d0d7de;--ink:#1f2328;--pale:#59636e;--line:#57606a;--skip:#8250df;--range:#bf8700;--way:#1a7f37;--head:#0969da;--old:#fbe3c0}\
@media(prefers-color-scheme:dark){svg{--page:#0d1117;--lane:#161b22;--rim:#30363d;--ink:#e6edf3;--pale:#9198a1;--line:#8b949e;--skip:#bc8cff;--range:#d29922;--way:#3fb950;--head:#4493f8;--old:#5a3e14}}\
text{font:13px ui-sans-serif,system-ui,sans-serif;fill:var(--ink)}\
.t{font-size:20px;font-weight:600}.n{font-size:15px;font-weight:600}.s{font-size:11.5px;fill:var(--pale)}.w{fill:var(--way)}\
.l{fill:var(--lane);stroke:var(--rim)}.d{fill:var(--ink)}.head{fill:var(--head)}\
.skipped{fill:var(--lane);stroke:var(--pale);stroke-width:1.5}.gone{fill:none;stroke:var(--pale);stroke-width:1.5;stroke-dasharray:2 2}\
.pale{fill:var(--pale)}.old{fill:var(--old)}\
path{fill:none;stroke:var(--line);stroke-width:1.4}.skips{stroke:var(--skip);stroke-dasharray:5 3}.range{stroke:var(--range);stroke-dasharray:1.5 3}\
path.way{stroke:var(--way);stroke-width:2.8;stroke-dasharray:none}circle.way{stroke:var(--way);stroke-width:3}text.way{fill:var(--way);font-weight:600}\
marker path{fill:context-stroke;stroke:none}";

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
         viewBox=\"0 0 {width} {height}\" role=\"img\">\n\
         <title>Updates of {package}</title>\n\
         <style>{STYLE}</style>\n\
         <defs><marker id=\"a\" viewBox=\"0 0 8 8\" refX=\"7\" refY=\"4\" markerWidth=\"7\" markerHeight=\"7\" \
         markerUnits=\"userSpaceOnUse\" orient=\"auto\"><path d=\"M0 0.8 8 4 0 7.2z\"/></marker></defs>\n\
         <rect width=\"{width}\" height=\"{height}\" style=\"fill:var(--page)\"/>\n\
         <text class=\"t\" x=\"{PAD}\" y=\"32\">{package}</text>\n"
    );
    let mut about = Vec::new();
    if let Some(why) = lanes.deprecation {
        about.push(format!("deprecated: {}", first_line(why)));
    }
    if let Some(from) = &lanes.from {
        about.push(format!("updates from {from}"));
    }
    let _ = writeln!(
        out,
        "<text class=\"s\" x=\"{PAD}\" y=\"51\">{}</text>",
        xml_cut(&about.join(" · "), 140)
    );
    for (lane, place) in lanes.channels.iter().zip(&places) {
        draw_lane(&mut out, lane, place);
    }
    legend(&mut out, bottom + 30, lanes.from.is_some());
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
    let arcs = lane.updates.iter().map(reach).max().unwrap_or(0) + PAD;
    let texts = lane.bundles.iter().map(|bundle| {
        let label = letters(&bundle.label, LETTERS[0]) * 15 / 2;
        let range =
            bundle.range.as_ref().map_or(0, |(it, _)| letters(it, LETTERS[1]) * 13 / 2 + 12);
        label + range
    });
    let heads = head(lane).map(|line| letters(&line, LETTERS[2]) * 13 / 2);
    let title = letters(lane.name, LETTERS[0]) * 10;
    let texts = arcs + 18 + texts.max().unwrap_or(0);
    let width = heads.into_iter().chain([title, texts, 150]).max().unwrap_or(0) + 2 * PAD;
    let head = HEAD + if lane.fault.is_some() || lane.way.is_some() { LINE } else { 0 };
    let height = head + (rows.map_or(count, BTreeMap::len)) * ROW + PAD;
    Place { x: 0, y: TITLE, width, height, head, arcs, rows: places }
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

/// A text of at most so many letters, for XML.
fn xml_cut(text: &str, most: usize) -> String {
    let text = shown(text);
    if text.chars().count() <= most {
        return xml(&text);
    }
    let cut: String = text.chars().take(most.saturating_sub(1)).collect();
    xml(&(cut + "…"))
}

fn draw_lane(out: &mut String, lane: &Lane<'_>, place: &Place) {
    let Place { x, y, width, height, head: top, arcs, rows } = place;
    let _ = writeln!(
        out,
        "<g><rect class=\"l\" x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\" rx=\"8\"/>"
    );
    let left = x + PAD;
    let name = xml_cut(lane.name, LETTERS[0]);
    let _ = writeln!(out, "<text class=\"n\" x=\"{left}\" y=\"{}\">{name}</text>", y + 24);
    let reaches = lane.way.as_ref().is_some_and(|way| way.end.is_none());
    let second = if reaches { "s w" } else { "s" };
    for (line, (below, class)) in head(lane).iter().zip([(41, "s"), (57, second)]) {
        if !line.is_empty() {
            let (y, cut, whole) = (y + below, xml_cut(line, LETTERS[2]), xml(line));
            let _ = writeln!(
                out,
                "<text class=\"{class}\" x=\"{left}\" y=\"{y}\">{cut}<title>{whole}</title></text>"
            );
        }
    }
    let centre = left + arcs;
    let at = |bundle: usize| y + top + rows.get(bundle).copied().unwrap_or(0) * ROW + ROW / 2;
    // The way lies above everything else.
    for on_way in [false, true] {
        for update in lane.updates.iter().filter(|update| update.on_way == on_way) {
            draw_update(out, lane, update, centre, [at(update.from), at(update.to)]);
        }
    }
    for (number, bundle) in lane.bundles.iter().enumerate() {
        draw_bundle(out, lane, bundle, centre, at(number));
    }
    out.push_str("</g>\n");
}

fn draw_update(out: &mut String, lane: &Lane<'_>, update: &Update, x: usize, y: [usize; 2]) {
    let [from, to] = y;
    let mut class = match update.edge {
        Edge::Skips => "skips",
        Edge::SkipRange => "range",
        Edge::Replaces | Edge::Same => "",
    }
    .to_owned();
    if update.on_way {
        class.push_str(" way");
    }
    let reach = reach(update);
    let path = if reach == 0 {
        // Down is older: the arrow points up, and the other way round for what goes back.
        let (from, to) =
            if from > to { (from - 6, to + 7) } else { (from + 6, to.saturating_sub(7)) };
        format!("M{x} {from}V{to}")
    } else {
        let (bend, start, end) = (x.saturating_sub(reach * 4 / 3 + 6), x - 6, x - 7);
        format!("M{start} {from}C{bend} {from} {bend} {to} {end} {to}")
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
    let _ = writeln!(
        out,
        "<path class=\"{}\" d=\"{path}\" marker-end=\"url(#a)\"><title>{}</title></path>",
        class.trim_start(),
        xml(&what)
    );
}

fn draw_bundle(out: &mut String, lane: &Lane<'_>, bundle: &Bundle, x: usize, y: usize) {
    let (class, text) = match bundle.role {
        Role::Gone => ("gone", "pale"),
        Role::Head => ("head", ""),
        Role::Skipped { .. } => ("skipped", "pale"),
        Role::Member => ("d", ""),
    };
    let (mut class, mut text) = (class.to_owned(), text.to_owned());
    if bundle.on_way {
        class.push_str(" way");
        text.push_str(" way");
    }
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
            "<rect class=\"old\" x=\"{}\" y=\"{}\" width=\"{}\" height=\"20\" rx=\"4\"/>",
            x + 11,
            y - 10,
            wide + 10
        );
    }
    let _ = writeln!(out, "<circle class=\"{class}\" cx=\"{x}\" cy=\"{y}\" r=\"5\"/>");
    let (left, base) = (x + 16, y + 4);
    let text = text.trim_start();
    let _ = writeln!(out, "<text class=\"{text}\" x=\"{left}\" y=\"{base}\">{label}</text>");
    if let Some((range, _)) = &bundle.range {
        let (left, range) = (x + 16 + wide + 12, xml_cut(range, LETTERS[1]));
        let _ = writeln!(out, "<text class=\"s\" x=\"{left}\" y=\"{base}\">{range}</text>");
    }
    out.push_str("</g>\n");
}

/// What the signs mean.
fn legend(out: &mut String, y: usize, with_way: bool) {
    let mut x = PAD;
    let text = |out: &mut String, x: &mut usize, words: &str| {
        let _ = writeln!(out, "<text class=\"s\" x=\"{x}\" y=\"{}\">{words}</text>", y + 4);
        *x += words.len() * 13 / 2 + 22;
    };
    for (class, words) in [
        ("head", "head"),
        ("d", "bundle"),
        ("skipped", "skipped: never installed anew"),
        ("gone", "not in the channel"),
    ] {
        let _ = writeln!(out, "<circle class=\"{class}\" cx=\"{}\" cy=\"{y}\" r=\"5\"/>", x + 6);
        x += 18;
        text(out, &mut x, words);
    }
    let _ = writeln!(
        out,
        "<rect class=\"old\" x=\"{x}\" y=\"{}\" width=\"22\" height=\"14\" rx=\"3\"/>",
        y - 7
    );
    x += 28;
    text(out, &mut x, "deprecated");
    let lines = [("", "replaces"), ("skips", "skips"), ("range", "skipRange"), ("way", "the way")];
    for (class, words) in lines.into_iter().filter(|(class, _)| with_way || *class != "way") {
        let _ = writeln!(out, "<path class=\"{class}\" d=\"M{x} {y}h26\" marker-end=\"url(#a)\"/>");
        x += 32;
        text(out, &mut x, words);
    }
}
