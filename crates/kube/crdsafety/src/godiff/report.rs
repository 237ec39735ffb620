//! The report of a tree: which fields, items and entries are printed, and which are elided.

use super::format::{MAX_PRESET, Options, TypeMode, map_key};
use super::strings;
use super::text::{Counts, Mark, Record, Text, push_ellipsis};
use super::tree::{Key, Node};
use crate::go::{Kind, Value};

/// How many equal neighbours of a difference are printed.
pub(crate) const CONTEXT: usize = 2;

/// The lowest level at which differences are printed.
const DIFFERENCE_LEVEL: i32 = 3;

/// The text of a tree with differences.
pub(crate) fn render(root: &Node<'_>) -> String {
    Options::ROOT.difference(root).map(Text::render).unwrap_or_default()
}

impl Options {
    /// A node as text; `None` if its value is missing on the side that is printed.
    fn difference(mut self, node: &Node<'_>) -> Option<Text> {
        if self.mark == Mark::IDENTICAL {
            self.level = 1;
        } else if self.shift() < DIFFERENCE_LEVEL.unsigned_abs() {
            self.level = DIFFERENCE_LEVEL;
        }
        if self.prints_parts(node) {
            return Some(strings::difference(self, node));
        }
        if node.depth == 0 || (node.is_bytes() && node.different == 0) {
            return self.leaf(node);
        }
        let kind = node.kind;
        Some(match &node.target {
            Some(target) => Text::wrap("&", self.difference(target)?, ""),
            None => self.with_type(kind, self.records(node)),
        })
    }

    /// Whether a node is a string or a byte slice of which only the different parts are printed.
    fn prints_parts(self, node: &Node<'_>) -> bool {
        if self.mark != Mark::UNKNOWN || node.different == 0 {
            return false;
        }
        let (Some(old), Some(new)) = (node.old, node.new) else { return false };
        let (old, new) = match (old, new) {
            (Value::Text(old), Value::Text(new)) => (old.len(), new.len()),
            (Value::Slice(Some(old)), Value::Slice(Some(new))) if node.is_bytes() => {
                if old.is_empty() || new.is_empty() {
                    return false;
                }
                if node.different > node.same {
                    return true;
                }
                (old.len(), new.len())
            }
            _ => return false,
        };
        old >= strings::MIN_LENGTH && new >= strings::MIN_LENGTH
    }

    /// A value whose parts are not printed apart.
    fn leaf(self, node: &Node<'_>) -> Option<Text> {
        let old = || self.value(node.kind, node.old, node.parent);
        let new = || self.value(node.kind, node.new, node.parent);
        if self.mark == Mark::REMOVED {
            return old();
        }
        if self.mark == Mark::INSERTED {
            return new();
        }
        if node.different == 0 {
            let (old, new) = (old()?, new()?);
            return Some(if old.len() < new.len() { old } else { new });
        }
        let options = self.with_types(TypeMode::Elide);
        let sides = |options: Self| {
            let old = options.value(node.kind, node.old, node.parent);
            (old, options.value(node.kind, node.new, node.parent))
        };
        let list = options.distinct(sides, String::new);
        Some(self.with_types(TypeMode::Emit).with_type(node.kind, Text::List(list)))
    }

    /// Both sides as records, more and more verbose until they differ.
    fn distinct(
        self,
        sides: impl Fn(Self) -> (Option<Text>, Option<Text>),
        key: impl Fn() -> String,
    ) -> Vec<Record> {
        let (mut old, mut new) = sides(self);
        for step in 0..=MAX_PRESET {
            if old.is_none() || new.is_none() || old != new {
                break;
            }
            (old, new) = sides(self.more_verbose(step));
        }
        let record = |mark, text| Record::new(mark, key(), text);
        let old = old.map(|text| record(Mark::REMOVED, text));
        let new = new.map(|text| record(Mark::INSERTED, text));
        old.into_iter().chain(new).collect()
    }

    /// The fields, items or entries of a node.
    fn records(self, node: &Node<'_>) -> Text {
        let (name, types) = match node.kind.kind {
            Kind::Struct => ("field", TypeMode::Auto),
            Kind::Map => ("entry", TypeMode::Elide),
            _ => ("element", TypeMode::Elide),
        };
        let options = self.with_types(types);
        let list = if self.mark == Mark::UNKNOWN {
            let max = (1_usize << self.shift()) << 1;
            options.deeper().changed_records(node, name, max)
        } else {
            let max = if self.mark == Mark::IDENTICAL {
                ((1_usize << self.shift()) >> 1) << 2
            } else {
                (1_usize << self.shift()) << 1
            };
            options.deeper().one_sided_records(node, max)
        };
        Text::wrap("{", Text::List(list), "}")
    }

    /// The records of one side, or of both where they are equal.
    fn one_sided_records(self, node: &Node<'_>, max: usize) -> Vec<Record> {
        let mut list = Vec::new();
        for (key, child) in &node.records {
            if list.len() == max {
                push_ellipsis(&mut list, Counts::default());
                break;
            }
            let is_zero = |value: Option<&Value>| value.is_some_and(Value::is_zero);
            let is_elided = node.kind.kind == Kind::Struct
                && match self.mark {
                    Mark::REMOVED => is_zero(child.old),
                    Mark::INSERTED => is_zero(child.new),
                    _ => is_zero(child.old) || is_zero(child.new),
                };
            if is_elided {
                continue;
            }
            if let Some(text) = self.difference(child) {
                list.push(Record::new(Mark::UNKNOWN, name_of(*key), text));
            }
        }
        list
    }

    /// The different records, with some of their equal neighbours.
    fn changed_records(self, node: &Node<'_>, name: &'static str, max: usize) -> Vec<Record> {
        let groups = groups_of(node, name);
        let mut rest = &node.records[..];
        let mut list = Vec::new();
        let mut elided = Counts::of(name);
        let mut printed = 0;
        let last = groups.len().saturating_sub(1);
        for (at, group) in groups.iter().enumerate() {
            if printed >= max {
                elided = elided.plus(*group);
                continue;
            }
            if group.differences() == 0 {
                let equal = group.identical;
                let before = if at == 0 { 0 } else { CONTEXT.min(equal) };
                let mut behind = if at == last { 0 } else { CONTEXT.min(equal - before) };
                if equal - before - behind == 1 {
                    behind += 1;
                }
                for (key, child) in &rest[..before] {
                    self.push_equal(*key, child, &mut list);
                }
                if equal > before + behind {
                    let hidden = Counts { identical: equal - before - behind, ..*group };
                    push_ellipsis(&mut list, hidden);
                }
                for (key, child) in &rest[equal - behind..equal] {
                    self.push_equal(*key, child, &mut list);
                }
                rest = &rest[equal..];
                continue;
            }
            let (changed, others) = rest.split_at(group.differences());
            for (key, child) in changed {
                self.push_changed(*key, child, &mut list);
            }
            rest = others;
            printed += group.differences();
        }
        if !elided.is_zero() {
            push_ellipsis(&mut list, elided);
        }
        list
    }

    fn push_equal(self, key: Key<'_>, child: &Node<'_>, list: &mut Vec<Record>) {
        if let Some(text) = self.with_mark(Mark::IDENTICAL).difference(child) {
            list.push(Record::new(Mark::UNKNOWN, name_of(key), text));
        }
    }

    fn push_changed(self, key: Key<'_>, child: &Node<'_>, list: &mut Vec<Record>) {
        if self.prints_parts(child) {
            let text = strings::difference(self, child);
            list.push(Record::new(Mark::UNKNOWN, name_of(key), text));
        } else if child.descendants == child.depth {
            // A value with nothing beside it on any level is printed whole, once for each side.
            let sides = |options: Self| {
                let old = options.with_mark(Mark::REMOVED).difference(child);
                (old, options.with_mark(Mark::INSERTED).difference(child))
            };
            list.extend(self.distinct(sides, || name_of(key)));
        } else if let Some(text) = self.difference(child) {
            list.push(Record::new(Mark::UNKNOWN, name_of(key), text));
        }
    }
}

fn name_of(key: Key<'_>) -> String {
    match key {
        Key::Field(name) => name.to_owned(),
        Key::Item => String::new(),
        Key::Entry(key) => map_key(key),
    }
}

/// Numbers of neighbours that are equal, or that differ.
fn groups_of(node: &Node<'_>, name: &'static str) -> Vec<Counts> {
    let mut groups: Vec<Counts> = Vec::new();
    for (_, child) in &node.records {
        let is_equal = child.different == 0;
        let starts = groups.last().is_none_or(|group| (group.differences() == 0) != is_equal);
        if starts {
            groups.push(Counts::of(name));
        }
        let Some(group) = groups.last_mut() else { continue };
        if is_equal {
            group.identical += 1;
        } else if child.new.is_none() {
            group.removed += 1;
        } else if child.old.is_none() {
            group.inserted += 1;
        } else {
            group.modified += 1;
        }
    }
    groups
}
