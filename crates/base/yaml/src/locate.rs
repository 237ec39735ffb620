//! Positions of nodes in a text, for errors that are found long after parsing.

use crate::fast;
use crate::parser::{Event, Mark, Parser};
use memchr::memchr_iter;
use std::collections::BTreeMap;

/// A step from a node to one of its children.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PathStep<'a> {
    /// The value of a field by its name, without regard to the case of ASCII letters.
    Field(&'a str),
    /// The item of a sequence, from 0.
    Item(usize),
}

/// Line and column (both from 1) of the node at `path` in the first document of `text` (YAML or
/// JSON), or of its deepest ancestor that exists. `None` if the text is invalid before that node.
///
/// This reads the text again, so it is for errors only.
pub fn locate(text: &str, path: &[PathStep<'_>]) -> Option<(usize, usize)> {
    locate_all(text, &[path]).pop().flatten()
}

/// As [`locate`], for many nodes in one pass over the text.
pub fn locate_all<'a>(
    text: &str,
    paths: &[impl AsRef<[PathStep<'a>]>],
) -> Vec<Option<(usize, usize)>> {
    let mut targets = TargetNodes { nodes: vec![TargetNode::default()] };
    let ends: Vec<usize> = paths.iter().map(|path| targets.add(path.as_ref())).collect();
    if fast::locate(text, &mut targets) {
        targets.set_positions(text);
    } else {
        targets.nodes.iter_mut().for_each(|target| target.found = None);
        targets.find_in_parser_events(text);
    }
    ends.into_iter().map(|end| targets.position(end)).collect()
}

/// The nodes to find, as a tree of steps from the root.
pub(crate) struct TargetNodes {
    nodes: Vec<TargetNode>,
}

/// A node to find.
#[derive(Default)]
struct TargetNode {
    parent: usize,
    /// Child nodes by their names in lower case.
    fields: BTreeMap<String, usize>,
    items: BTreeMap<usize, usize>,
    found: Option<Mark>,
}

/// A collection that contains the current event.
struct Level {
    /// The node of the tree that is this collection.
    target: Option<usize>,
    collection: Collection,
}

enum Collection {
    /// A sequence, with the index of its next item.
    List(usize),
    /// A mapping, with the key of its next value, if that key has been read.
    Map(Option<String>),
}

impl TargetNodes {
    /// Adds a path; returns the index of its last node.
    fn add(&mut self, path: &[PathStep<'_>]) -> usize {
        let mut at = 0;
        for step in path {
            let free = self.nodes.len();
            let target = &mut self.nodes[at];
            let next = *match step {
                PathStep::Field(name) => {
                    target.fields.entry(name.to_ascii_lowercase()).or_insert(free)
                }
                PathStep::Item(index) => target.items.entry(*index).or_insert(free),
            };
            if next == free {
                self.nodes.push(TargetNode { parent: at, ..TargetNode::default() });
            }
            at = next;
        }
        at
    }

    /// The position of a node, or of its deepest ancestor that was found.
    fn position(&self, mut node: usize) -> Option<(usize, usize)> {
        loop {
            match self.nodes[node].found {
                Some(mark) => return Some((mark.line + 1, mark.column + 1)),
                None if node == 0 => return None,
                None => node = self.nodes[node].parent,
            }
        }
    }

    /// The node to find in a field of `node`, if it has not been found before.
    pub(crate) fn field(&self, node: usize, name: &str) -> Option<usize> {
        let fields = &self.nodes[node].fields;
        let target = fields.get(name).or_else(|| fields.get(&name.to_ascii_lowercase())).copied();
        target.filter(|&target| self.nodes[target].found.is_none())
    }

    /// The node to find in an item of `node`, if it has not been found before.
    pub(crate) fn item(&self, node: usize, at: usize) -> Option<usize> {
        let target = self.nodes[node].items.get(&at).copied();
        target.filter(|&target| self.nodes[target].found.is_none())
    }

    /// Whether `node` has children to find.
    pub(crate) fn has_children(&self, node: usize) -> bool {
        let TargetNode { fields, items, .. } = &self.nodes[node];
        !fields.is_empty() || !items.is_empty()
    }

    /// Records that `node` begins `column` columns after `byte`. [`TargetNodes::set_positions`]
    /// converts that to a line and a column.
    pub(crate) fn record(&mut self, node: usize, byte: usize, column: usize) {
        self.nodes[node].found = Some(Mark { index: byte, line: 0, column });
    }

    /// Converts byte offsets to lines and columns.
    fn set_positions(&mut self, text: &str) {
        let mut found: Vec<&mut Mark> =
            self.nodes.iter_mut().filter_map(|target| target.found.as_mut()).collect();
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

    /// The node to find at the next position of a level, if it has not been found before.
    fn next_target(&self, level: Option<&Level>) -> Option<usize> {
        let target = match level {
            None => Some(0),
            Some(level) => {
                let node = level.target?;
                match &level.collection {
                    Collection::List(at) => self.item(node, *at),
                    Collection::Map(None) => None,
                    Collection::Map(Some(name)) => self.field(node, name),
                }
            }
        };
        target.filter(|&target| self.nodes[target].found.is_none())
    }

    fn find_in_parser_events(&mut self, text: &str) {
        let mut parser = Parser::new(text);
        let mut stack: Vec<Level> = Vec::new();
        let mut remaining = self.nodes.len();
        while remaining > 0
            && let Some(Ok((event, start))) = parser.next()
        {
            let (opens, key) = match &event {
                Event::SequenceStart(..) => (Some(Collection::List(0)), None),
                Event::MappingStart(..) => (Some(Collection::Map(None)), None),
                Event::Scalar(text, ..) => (None, Some(text.as_str())),
                Event::Alias(_) => (None, None),
                Event::SequenceEnd | Event::MappingEnd => {
                    stack.pop();
                    if stack.is_empty() {
                        return;
                    }
                    finish_child(&mut stack);
                    continue;
                }
                _ => continue,
            };
            if let Some(Level { collection: Collection::Map(name @ None), .. }) = stack.last_mut() {
                *name = Some(key.unwrap_or_default().to_owned());
                continue;
            }
            let target = self.next_target(stack.last());
            if let Some(target) = target {
                self.nodes[target].found = Some(start);
                remaining -= 1;
            }
            match opens {
                Some(collection) => stack.push(Level { target, collection }),
                None if stack.is_empty() => return,
                None => finish_child(&mut stack),
            }
        }
    }
}

/// Records that the current item or field of the innermost level is complete.
fn finish_child(stack: &mut [Level]) {
    match stack.last_mut() {
        Some(Level { collection: Collection::List(at), .. }) => *at += 1,
        Some(Level { collection: Collection::Map(name), .. }) => *name = None,
        None => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;

    /// Collects the paths of all nodes of a value.
    fn collect_paths<'v>(
        value: &'v Value,
        path: &mut Vec<PathStep<'v>>,
        all: &mut Vec<Vec<PathStep<'v>>>,
    ) {
        all.push(path.clone());
        let parts: Vec<(PathStep<'v>, &Value)> = match value {
            Value::Object(fields) => {
                fields.iter().map(|(name, value)| (PathStep::Field(name), value)).collect()
            }
            Value::Array(items) => {
                items.iter().enumerate().map(|(at, value)| (PathStep::Item(at), value)).collect()
            }
            _ => Vec::new(),
        };
        for (step, value) in parts {
            path.push(step);
            collect_paths(value, path, all);
            path.pop();
        }
    }

    #[test]
    fn scanner_and_parser_find_the_same_positions() {
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
            collect_paths(&value, &mut Vec::new(), &mut all);
            all.push(vec![PathStep::Field("nowhere"), PathStep::Item(1)]);
            let find = |parsed: bool| {
                let mut targets = TargetNodes { nodes: vec![TargetNode::default()] };
                let ends: Vec<usize> = all.iter().map(|path| targets.add(path)).collect();
                if parsed {
                    targets.find_in_parser_events(text);
                } else if fast::locate(text, &mut targets) {
                    targets.set_positions(text);
                } else {
                    return None;
                }
                Some(ends.into_iter().map(|end| targets.position(end)).collect::<Vec<_>>())
            };
            match find(false) {
                Some(found) => assert_eq!(Some(found), find(true), "{text}"),
                None => assert!(text.contains('{'), "{text}"),
            }
        }
    }
}
