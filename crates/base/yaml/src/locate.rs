//! Where in a text a node stands: for errors that are noticed long after parsing.

use crate::fast;
use crate::parser::{Event, Mark, Parser};
use memchr::memchr_iter;
use std::collections::BTreeMap;

/// One step from a node to a part of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step<'a> {
    /// The value of a mapping's field, by name; the case of ASCII letters does not matter.
    Field(&'a str),
    /// The item of a sequence, from 0.
    Item(usize),
}

/// Line and column (both from 1) of the node at `path` in the first document of `text` (YAML or
/// JSON), or of the deepest node on the way to it. `None` when the text does not parse that far.
///
/// This reads the text again, and is meant for the rare case that something is wrong.
pub fn locate(text: &str, path: &[Step<'_>]) -> Option<(usize, usize)> {
    locate_all(text, &[path]).pop().flatten()
}

/// As [`locate`], for many nodes in one pass over the text.
pub fn locate_all<'a>(text: &str, paths: &[impl AsRef<[Step<'a>]>]) -> Vec<Option<(usize, usize)>> {
    let mut wanted = Wanted { nodes: vec![Wish::default()] };
    let ends: Vec<usize> = paths.iter().map(|path| wanted.add(path.as_ref())).collect();
    if fast::locate(text, &mut wanted) {
        wanted.count(text);
    } else {
        wanted.nodes.iter_mut().for_each(|wish| wish.found = None);
        wanted.find(text);
    }
    ends.into_iter().map(|end| wanted.place(end)).collect()
}

/// The nodes that are looked for, as a tree of steps from the root.
pub(crate) struct Wanted {
    nodes: Vec<Wish>,
}

#[derive(Default)]
struct Wish {
    parent: usize,
    /// By the name in small letters.
    fields: BTreeMap<String, usize>,
    items: BTreeMap<usize, usize>,
    found: Option<Mark>,
}

/// What the walk is inside of.
struct Level {
    /// What is looked for in it.
    wish: Option<usize>,
    inside: Inside,
}

enum Inside {
    /// A sequence, with the number of the item that comes next.
    List(usize),
    /// A mapping; the key whose value comes next, if it was read already.
    Map(Option<String>),
}

impl Wanted {
    /// Adds a path; the number of its last node comes back.
    fn add(&mut self, path: &[Step<'_>]) -> usize {
        let mut at = 0;
        for step in path {
            let free = self.nodes.len();
            let wish = &mut self.nodes[at];
            let next = *match step {
                Step::Field(name) => wish.fields.entry(name.to_ascii_lowercase()).or_insert(free),
                Step::Item(index) => wish.items.entry(*index).or_insert(free),
            };
            if next == free {
                self.nodes.push(Wish { parent: at, ..Wish::default() });
            }
            at = next;
        }
        at
    }

    /// Where a node stands, or the deepest one on the way to it.
    fn place(&self, mut node: usize) -> Option<(usize, usize)> {
        loop {
            match self.nodes[node].found {
                Some(mark) => return Some((mark.line + 1, mark.column + 1)),
                None if node == 0 => return None,
                None => node = self.nodes[node].parent,
            }
        }
    }

    /// What is looked for in the field of a node, if it was not found before.
    pub(crate) fn field(&self, node: usize, name: &str) -> Option<usize> {
        let fields = &self.nodes[node].fields;
        let wish = fields.get(name).or_else(|| fields.get(&name.to_ascii_lowercase())).copied();
        wish.filter(|&wish| self.nodes[wish].found.is_none())
    }

    /// The same in an item.
    pub(crate) fn item(&self, node: usize, at: usize) -> Option<usize> {
        let wish = self.nodes[node].items.get(&at).copied();
        wish.filter(|&wish| self.nodes[wish].found.is_none())
    }

    /// Whether anything is looked for inside of a node.
    pub(crate) fn has_parts(&self, node: usize) -> bool {
        let Wish { fields, items, .. } = &self.nodes[node];
        !fields.is_empty() || !items.is_empty()
    }

    /// A node begins so many columns behind a byte, of which [`Wanted::count`] makes a line and a column.
    pub(crate) fn note(&mut self, node: usize, byte: usize, column: usize) {
        self.nodes[node].found = Some(Mark { index: byte, line: 0, column });
    }

    /// Makes lines and columns of bytes.
    fn count(&mut self, text: &str) {
        let mut found: Vec<&mut Mark> =
            self.nodes.iter_mut().filter_map(|wish| wish.found.as_mut()).collect();
        found.sort_by_key(|mark| mark.index);
        let (mut from, mut line, mut start) = (0, 0, 0);
        for mark in found {
            for at in memchr_iter(b'\n', &text.as_bytes()[from..mark.index]) {
                line += 1;
                start = from + at + 1;
            }
            from = mark.index;
            mark.line = line;
            mark.column += text[start..from].chars().count();
        }
    }

    /// What is looked for where the next node of a level stands, if it was not found before.
    fn next(&self, level: Option<&Level>) -> Option<usize> {
        let wish = match level {
            None => Some(0),
            Some(level) => {
                let node = level.wish?;
                match &level.inside {
                    Inside::List(at) => self.item(node, *at),
                    Inside::Map(None) => None,
                    Inside::Map(Some(name)) => self.field(node, name),
                }
            }
        };
        wish.filter(|&wish| self.nodes[wish].found.is_none())
    }

    fn find(&mut self, text: &str) {
        let mut parser = Parser::new(text);
        let mut stack: Vec<Level> = Vec::new();
        let mut missing = self.nodes.len();
        while missing > 0
            && let Some(Ok((event, start))) = parser.next()
        {
            let (opens, key) = match &event {
                Event::SequenceStart(..) => (Some(Inside::List(0)), None),
                Event::MappingStart(..) => (Some(Inside::Map(None)), None),
                Event::Scalar(text, ..) => (None, Some(text.as_str())),
                Event::Alias(_) => (None, None),
                Event::SequenceEnd | Event::MappingEnd => {
                    stack.pop();
                    if stack.is_empty() {
                        return;
                    }
                    finished(&mut stack);
                    continue;
                }
                _ => continue,
            };
            if let Some(Level { inside: Inside::Map(name @ None), .. }) = stack.last_mut() {
                *name = Some(key.unwrap_or_default().to_owned());
                continue;
            }
            let wish = self.next(stack.last());
            if let Some(wish) = wish {
                self.nodes[wish].found = Some(start);
                missing -= 1;
            }
            match opens {
                Some(inside) => stack.push(Level { wish, inside }),
                None if stack.is_empty() => return,
                None => finished(&mut stack),
            }
        }
    }
}

/// Notes that the present item or field of the innermost level is complete.
fn finished(stack: &mut [Level]) {
    match stack.last_mut() {
        Some(Level { inside: Inside::List(at), .. }) => *at += 1,
        Some(Level { inside: Inside::Map(name), .. }) => *name = None,
        None => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;

    /// All paths into a value.
    fn paths<'v>(value: &'v Value, path: &mut Vec<Step<'v>>, all: &mut Vec<Vec<Step<'v>>>) {
        all.push(path.clone());
        let parts: Vec<(Step<'v>, &Value)> = match value {
            Value::Object(fields) => {
                fields.iter().map(|(name, value)| (Step::Field(name), value)).collect()
            }
            Value::Array(items) => {
                items.iter().enumerate().map(|(at, value)| (Step::Item(at), value)).collect()
            }
            _ => Vec::new(),
        };
        for (step, value) in parts {
            path.push(step);
            paths(value, path, all);
            path.pop();
        }
    }

    #[test]
    fn scanner_and_parser_find_the_same_places() {
        for text in [
            "a: b\nc:\n  d: 1\n  e:\n    - x\n    -\n    - - y\n      - z\n    - f: g\n      h: |\n        i\n",
            "---\n# said\na:   # more\n- b\n-   c:\n    D: 'e'\n\"f g\": >-\n  h\n\n  i\n",
            "- a\n-\n  b: c\n- yes: no\n  1.50: x\n",
            "ä: ö\nü: {a: b, c: [d]}\nx: [1, 2]\ny:\nz: last\n---\nother: document\n",
            "a:\n  b: c\n    d\n  a: e\na: twice\n",
        ] {
            let options = crate::Options::default();
            let value = crate::documents(text.as_bytes(), &options).next().unwrap().unwrap().value;
            let mut all = Vec::new();
            paths(&value, &mut Vec::new(), &mut all);
            all.push(vec![Step::Field("nowhere"), Step::Item(1)]);
            let find = |parsed: bool| {
                let mut wanted = Wanted { nodes: vec![Wish::default()] };
                let ends: Vec<usize> = all.iter().map(|path| wanted.add(path)).collect();
                if parsed {
                    wanted.find(text);
                } else if fast::locate(text, &mut wanted) {
                    wanted.count(text);
                } else {
                    return None;
                }
                Some(ends.into_iter().map(|end| wanted.place(end)).collect::<Vec<_>>())
            };
            match find(false) {
                Some(found) => assert_eq!(Some(found), find(true), "{text}"),
                None => assert!(text.contains('{'), "{text}"),
            }
        }
    }
}
