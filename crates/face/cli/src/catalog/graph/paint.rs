//! Colours, lines and arrows of pictures, for every program that shows SVG.
//!
//! Each shape says its colour in presentation attributes, which all programs know: converters, office
//! programs and viewers without style sheets show the light picture. Classes and one media query give
//! browsers the dark one.

use mainstay_updates::Edge;
use std::fmt::Write;

/// What a colour is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Colour {
    Page,
    Lane,
    Rim,
    Ink,
    Pale,
    Line,
    Skip,
    Range,
    Way,
    Head,
    Old,
}

impl Colour {
    const ALL: [Self; 11] = [
        Self::Page,
        Self::Lane,
        Self::Rim,
        Self::Ink,
        Self::Pale,
        Self::Line,
        Self::Skip,
        Self::Range,
        Self::Way,
        Self::Head,
        Self::Old,
    ];

    /// Its name in classes, and how it looks on light and on dark pages.
    const fn looks(self) -> (&'static str, [&'static str; 2]) {
        match self {
            Self::Page => ("page", ["#ffffff", "#0d1117"]),
            Self::Lane => ("lane", ["#f6f8fa", "#161b22"]),
            Self::Rim => ("rim", ["#d0d7de", "#30363d"]),
            Self::Ink => ("ink", ["#1f2328", "#e6edf3"]),
            Self::Pale => ("pale", ["#59636e", "#9198a1"]),
            Self::Line => ("line", ["#57606a", "#8b949e"]),
            Self::Skip => ("skip", ["#8250df", "#bc8cff"]),
            Self::Range => ("range", ["#bf8700", "#d29922"]),
            Self::Way => ("way", ["#1a7f37", "#3fb950"]),
            Self::Head => ("head", ["#0969da", "#4493f8"]),
            Self::Old => ("old", ["#fbe3c0", "#5a3e14"]),
        }
    }
}

/// The attributes of a shape that is filled.
pub(super) fn filled(fill: Colour) -> String {
    let (name, [light, _]) = fill.looks();
    format!("class=\"f-{name}\" fill=\"{light}\"")
}

/// The attributes of a line.
pub(super) fn drawn(stroke: Colour) -> String {
    let (name, [light, _]) = stroke.looks();
    format!("class=\"s-{name}\" fill=\"none\" stroke=\"{light}\"")
}

/// The attributes of a shape with a rim.
pub(super) fn rimmed(fill: Colour, stroke: Colour) -> String {
    let (inner, [fill, _]) = fill.looks();
    let (outer, [stroke, _]) = stroke.looks();
    format!("class=\"f-{inner} s-{outer}\" fill=\"{fill}\" stroke=\"{stroke}\"")
}

/// The style sheet: the colours on dark pages.
pub(super) fn style() -> String {
    let mut out = "@media(prefers-color-scheme:dark){".to_owned();
    for colour in Colour::ALL {
        let (name, [_, dark]) = colour.looks();
        // Writing to a string cannot fail.
        let _ = write!(out, ".f-{name}{{fill:{dark}}}.s-{name}{{stroke:{dark}}}");
    }
    out.push('}');
    out
}

/// The attributes of a small text.
pub(super) fn small(colour: Colour) -> String {
    format!("{} font-size=\"11.5\"", filled(colour))
}

/// The colour of an update, and the attributes of its line.
pub(super) fn line(edge: Edge, on_way: bool) -> (Colour, String) {
    let (colour, width, dashes) = match edge {
        _ if on_way => (Colour::Way, "2.8", ""),
        Edge::Skips => (Colour::Skip, "1.4", "5 3"),
        Edge::SkipRange => (Colour::Range, "1.4", "1.5 3"),
        Edge::Replaces | Edge::Same => (Colour::Line, "1.4", ""),
    };
    let mut line = format!("{} stroke-width=\"{width}\"", drawn(colour));
    if !dashes.is_empty() {
        let _ = write!(line, " stroke-dasharray=\"{dashes}\"");
    }
    (colour, line)
}

/// The tip of an arrow: a triangle that ends at `x`, `y` and points along `towards`.
pub(super) fn tip(out: &mut String, colour: Colour, [x, y]: [usize; 2], towards: Towards) {
    let (back, side) = (7, 3);
    let points = match towards {
        Towards::Right => {
            let x0 = x.saturating_sub(back);
            format!("{x},{y} {x0},{} {x0},{}", y - side, y + side)
        }
        Towards::Up => format!("{x},{y} {},{} {},{}", x - side, y + back, x + side, y + back),
        Towards::Down => {
            let y0 = y.saturating_sub(back);
            format!("{x},{y} {},{y0} {},{y0}", x - side, x + side)
        }
    };
    let _ = writeln!(out, "<polygon {} points=\"{points}\"/>", filled(colour));
}

/// Where an arrow points.
#[derive(Clone, Copy, Debug)]
pub(super) enum Towards {
    Right,
    Up,
    Down,
}
