//! Colours, lines and arrows of the SVG picture.
//!
//! Each shape has its colour in presentation attributes, which all SVG programs support: converters,
//! office programs and viewers without style sheets show the light picture. Classes and one media query
//! give browsers the dark one.

use mainstay_updates::Edge;
use std::fmt::Write;

/// The use of a colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Colour {
    Page,
    Lane,
    Border,
    Text,
    SecondaryText,
    Line,
    Skip,
    Range,
    Path,
    Head,
    Deprecated,
}

impl Colour {
    const ALL: [Self; 11] = [
        Self::Page,
        Self::Lane,
        Self::Border,
        Self::Text,
        Self::SecondaryText,
        Self::Line,
        Self::Skip,
        Self::Range,
        Self::Path,
        Self::Head,
        Self::Deprecated,
    ];

    /// Its class name, and its values on light and on dark pages.
    const fn class_and_colours(self) -> (&'static str, [&'static str; 2]) {
        match self {
            Self::Page => ("page", ["#ffffff", "#0d1117"]),
            Self::Lane => ("lane", ["#f6f8fa", "#161b22"]),
            Self::Border => ("rim", ["#d0d7de", "#30363d"]),
            Self::Text => ("ink", ["#1f2328", "#e6edf3"]),
            Self::SecondaryText => ("pale", ["#59636e", "#9198a1"]),
            Self::Line => ("line", ["#57606a", "#8b949e"]),
            Self::Skip => ("skip", ["#8250df", "#bc8cff"]),
            Self::Range => ("range", ["#bf8700", "#d29922"]),
            Self::Path => ("way", ["#1a7f37", "#3fb950"]),
            Self::Head => ("head", ["#0969da", "#4493f8"]),
            Self::Deprecated => ("old", ["#fbe3c0", "#5a3e14"]),
        }
    }
}

/// The attributes of a filled shape.
pub(super) fn fill_attributes(fill: Colour) -> String {
    let (name, [light, _]) = fill.class_and_colours();
    format!("class=\"f-{name}\" fill=\"{light}\"")
}

/// The attributes of a line.
pub(super) fn stroke_attributes(stroke: Colour) -> String {
    let (name, [light, _]) = stroke.class_and_colours();
    format!("class=\"s-{name}\" fill=\"none\" stroke=\"{light}\"")
}

/// The attributes of a shape with an outline.
pub(super) fn outline_attributes(fill: Colour, stroke: Colour) -> String {
    let (inner, [fill, _]) = fill.class_and_colours();
    let (outer, [stroke, _]) = stroke.class_and_colours();
    format!("class=\"f-{inner} s-{outer}\" fill=\"{fill}\" stroke=\"{stroke}\"")
}

/// The style sheet: the colours on dark pages.
pub(super) fn style_sheet() -> String {
    let mut out = "@media(prefers-color-scheme:dark){".to_owned();
    for colour in Colour::ALL {
        let (name, [_, dark]) = colour.class_and_colours();
        // Writing to a string cannot fail.
        let _ = write!(out, ".f-{name}{{fill:{dark}}}.s-{name}{{stroke:{dark}}}");
    }
    out.push('}');
    out
}

/// The attributes of a small text.
pub(super) fn small_text_attributes(colour: Colour) -> String {
    format!("{} font-size=\"11.5\"", fill_attributes(colour))
}

/// The colour of an update, and the attributes of its line.
pub(super) fn edge_style(edge: Edge, on_path: bool) -> (Colour, String) {
    let (colour, width, dashes) = match edge {
        _ if on_path => (Colour::Path, "2.8", ""),
        Edge::Skips => (Colour::Skip, "1.4", "5 3"),
        Edge::SkipRange => (Colour::Range, "1.4", "1.5 3"),
        Edge::Replaces | Edge::Same => (Colour::Line, "1.4", ""),
    };
    let mut attributes = format!("{} stroke-width=\"{width}\"", stroke_attributes(colour));
    if !dashes.is_empty() {
        let _ = write!(attributes, " stroke-dasharray=\"{dashes}\"");
    }
    (colour, attributes)
}

/// Draws an arrowhead: a triangle with its tip at `x`, `y` that points in a direction.
pub(super) fn draw_arrowhead(
    out: &mut String,
    colour: Colour,
    [x, y]: [usize; 2],
    direction: Direction,
) {
    let (back, side) = (7, 3);
    let points = match direction {
        Direction::Right => {
            let x0 = x.saturating_sub(back);
            format!("{x},{y} {x0},{} {x0},{}", y - side, y + side)
        }
        Direction::Up => format!("{x},{y} {},{} {},{}", x - side, y + back, x + side, y + back),
        Direction::Down => {
            let y0 = y.saturating_sub(back);
            format!("{x},{y} {},{y0} {},{y0}", x - side, x + side)
        }
    };
    let _ = writeln!(out, "<polygon {} points=\"{points}\"/>", fill_attributes(colour));
}

/// The direction of an arrow.
#[derive(Clone, Copy, Debug)]
pub(super) enum Direction {
    Right,
    Up,
    Down,
}
