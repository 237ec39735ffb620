//! Where in a text a node stands: for errors that are noticed long after parsing.

use saphyr_parser::{Event, Marker, Parser};

/// One step from a node to a part of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step<'a> {
    /// The value of a mapping's field, by name; the case of ASCII letters does not matter.
    Field(&'a str),
    /// The item of a sequence, from 0.
    Item(usize),
}

/// What the walk is inside of.
enum Level {
    /// A sequence, with the number of the item that comes next.
    List(usize),
    /// A mapping; the key whose value comes next, if it was read already.
    Map(Option<String>),
}

/// Line and column (both from 1) of the node at `path` in the first document of `text` (YAML or
/// JSON), or of the deepest node on the way to it. `None` when the text does not parse that far.
///
/// This parses again, and is meant for the rare case that something is wrong.
pub fn locate(text: &str, path: &[Step<'_>]) -> Option<(usize, usize)> {
    let mut parser = Parser::new_from_str(text);
    let mut stack: Vec<Level> = Vec::new();
    // How many levels of the stack are on the path, and the best place so far.
    let mut matched = 0;
    let mut best: Option<Marker> = None;
    let place = |mark: Marker| (mark.line(), mark.col() + 1);
    while let Some(event) = parser.next_event() {
        let Ok((event, span)) = event else { break };
        let (opens, key) = match &event {
            Event::SequenceStart(..) => (Some(Level::List(0)), None),
            Event::MappingStart(..) => (Some(Level::Map(None)), None),
            Event::Scalar(text, ..) => (None, Some(text.as_ref())),
            Event::Alias(_) => (None, None),
            Event::SequenceEnd | Event::MappingEnd => {
                stack.pop();
                if stack.len() < matched || stack.is_empty() {
                    // The part that held the node is over: the node is not there.
                    break;
                }
                finished(&mut stack);
                continue;
            }
            _ => continue,
        };
        if let Some(Level::Map(name @ None)) = stack.last_mut() {
            *name = Some(key.unwrap_or_default().to_owned());
            continue;
        }
        let on_path = match stack.last() {
            None => best.is_none(),
            Some(level) => {
                stack.len() == matched
                    && match (level, path.get(matched - 1)) {
                        (Level::List(at), Some(Step::Item(item))) => at == item,
                        (Level::Map(Some(name)), Some(Step::Field(field))) => {
                            name.eq_ignore_ascii_case(field)
                        }
                        _ => false,
                    }
            }
        };
        if on_path {
            best = Some(span.start);
            if matched == path.len() {
                break;
            }
            matched += 1;
        }
        match opens {
            Some(level) => stack.push(level),
            None if stack.is_empty() => break,
            None => finished(&mut stack),
        }
    }
    best.map(place)
}

/// Notes that the present item or field of the innermost level is complete.
fn finished(stack: &mut [Level]) {
    match stack.last_mut() {
        Some(Level::List(at)) => *at += 1,
        Some(Level::Map(name)) => *name = None,
        None => {}
    }
}
