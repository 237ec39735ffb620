//! Long strings and byte slices: only the different parts are printed.

use super::edits::{Edit, Likeness, edit_script};
use super::format::{Options, TypeMode, hexadecimal, is_printable_line, quoted, without_returns};
use super::report::CONTEXT;
use super::text::{Comment, Counts, Mark, Record, Text, push_ellipsis};
use super::tree::Node;
use crate::go::{Kind, Value};
use mainstay_gocompat::{is_printable, quote};
use std::collections::HashSet;

/// From which length on strings are printed in parts.
pub(crate) const MIN_LENGTH: usize = 32;

/// The most characters of a line that is compared as a line.
const MAX_LINE: usize = 1024;

/// The text of two different strings or byte slices.
pub(crate) fn difference(options: Options, node: &Node<'_>) -> Text {
    let (old, new) = (bytes_of(node.old), bytes_of(node.new));
    let nature = Nature::of(&old, &new);
    let mut list = Vec::new();
    let mut delimiter = "";
    if nature.is_lined
        && let (Ok(old), Ok(new)) = (std::str::from_utf8(&old), std::str::from_utf8(&new))
    {
        let (old, new): (Vec<&str>, Vec<&str>) =
            (old.split('\n').collect(), new.split('\n').collect());
        let mut lines = Vec::new();
        let render = |part: &[&str], mark| {
            let line = part.first().copied().unwrap_or_default();
            (Record::new(mark, String::new(), Text::line(quoted(line.as_bytes()))), line.to_owned())
        };
        Parts { options, name: "line", chunk: 1 }.list(&old, &new, render, &mut lines);
        if let Some(text) = triple_quoted(&lines) {
            return match node.kind.kind {
                Kind::Slice => options.with_types(TypeMode::Emit).with_type(node.kind, text),
                _ if node.kind.name == "string" => text,
                _ => options.with_type(node.kind, text),
            };
        }
        list = lines.into_iter().map(|(record, _)| record).collect();
        delimiter = "\n";
    } else {
        let mut chunks = Vec::new();
        if nature.is_mostly_text {
            let render = |part: &[u8], mark| {
                (Record::new(mark, String::new(), Text::line(quoted(part))), String::new())
            };
            Parts { options, name: "byte", chunk: 64 }.list(&old, &new, render, &mut chunks);
        } else {
            let render = |part: &[u8], mark: Mark| {
                let codes: Vec<String> = part.iter().map(|byte| hexadecimal(*byte)).collect();
                let mut record = Record::new(mark, String::new(), Text::line(codes.join(", ")));
                let comment = format!("{}|{}|", mark.character(), visible(part));
                record.comment = Some(Comment::Words(comment));
                (record, String::new())
            };
            Parts { options, name: "byte", chunk: 16 }.list(&old, &new, render, &mut chunks);
        }
        list.extend(chunks.into_iter().map(|(record, _)| record));
    }
    let text = Text::wrap("{", Text::List(list), "}");
    let is_slice = node.kind.kind == Kind::Slice;
    if !nature.is_mostly_text {
        let options = if is_slice { options } else { options.with_types(TypeMode::Emit) };
        return options.with_type(node.kind, text);
    }
    let function = if is_slice { "bytes.Join(" } else { "strings.Join(" };
    let text = Text::wrap(function, text, format!(", {})", quote(delimiter)));
    if is_slice || node.kind.name == "string" { text } else { options.with_type(node.kind, text) }
}

fn bytes_of(value: Option<&Value>) -> Vec<u8> {
    match value {
        Some(Value::Text(text)) => text.as_bytes().to_vec(),
        Some(value) => value.bytes(),
        None => Vec::new(),
    }
}

/// Other characters than the visible ones of ASCII become dots.
fn visible(bytes: &[u8]) -> String {
    let character = |byte: &u8| if (b' '..=b'~').contains(byte) { *byte as char } else { '.' };
    bytes.iter().map(character).collect()
}

/// What two strings consist of.
struct Nature {
    /// Lines of printable text, which are compared as lines.
    is_lined: bool,
    is_mostly_text: bool,
}

impl Nature {
    fn of(old: &[u8], new: &[u8]) -> Self {
        let joined = [old, new].concat();
        let text = String::from_utf8_lossy(&joined);
        let is_valid =
            |c: char| (is_printable(c) || c.is_whitespace()) && c != char::REPLACEMENT_CHARACTER;
        let total = text.chars().count();
        let valid = text.chars().filter(|character| is_valid(*character)).count();
        // The last line has no end, so its length does not count.
        let mut ended: Vec<&[u8]> = joined.split(|byte| *byte == b'\n').collect();
        ended.pop();
        let longest = ended.iter().map(|line| line.len()).max().unwrap_or(0);
        let is_lined = valid == total
            && ended.len() >= 4
            && longest <= MAX_LINE
            && lines_are_simpler(old, new, &text);
        // More than 90 of 100, the product rounded down.
        Self { is_lined, is_mostly_text: valid > total * 9 / 10 }
    }
}

/// Whether comparing by lines gives no much longer script than comparing by bytes.
fn lines_are_simpler(old: &[u8], new: &[u8], joined: &str) -> bool {
    fn share<T: PartialEq>(old: &[T], new: &[T]) -> f64 {
        let mut likeness = |x: usize, y: usize| Likeness::of_atoms(old[x] == new[y]);
        let edits = edit_script(old.len(), new.len(), &mut likeness);
        let changed = edits.iter().filter(|edit| **edit != Edit::Identity).count();
        #[expect(clippy::cast_precision_loss, reason = "the numbers are lengths of texts")]
        return changed as f64 / edits.len() as f64;
    }
    let lines = |bytes: &'_ [u8]| -> Vec<Vec<u8>> {
        bytes.split(|byte| *byte == b'\n').map(<[u8]>::to_vec).collect()
    };
    #[expect(clippy::cast_precision_loss, reason = "the numbers are lengths of texts")]
    let expansion = quote(joined).len() as f64 / joined.len() as f64;
    share(&lines(old), &lines(new)) < 4.0 * share(old, new) || expansion > 1.1
}

/// The lines between `"""`, unless they could be misread there.
fn triple_quoted(lines: &[(Record, String)]) -> Option<Text> {
    let quotes = || Record::bare(Mark::UNKNOWN, Text::line("\"\"\""));
    let mut list = vec![quotes()];
    let (mut removed, mut inserted) = (HashSet::new(), HashSet::new());
    for (record, line) in lines {
        let mut record = record.clone();
        if !record.value.is_ellipsis() {
            let line = without_returns(line);
            let letters: String = line.chars().filter(|c| !c.is_whitespace()).collect();
            let is_clear =
                !line.starts_with("\"\"\"") && !line.starts_with("...") && is_printable_line(line);
            // Neighbours that differ in blanks only look alike.
            let is_told_apart = match record.mark {
                Mark::REMOVED => {
                    let is_new = !inserted.contains(&letters);
                    removed.insert(letters);
                    is_new
                }
                Mark::INSERTED => {
                    let is_new = !removed.contains(&letters);
                    inserted.insert(letters);
                    is_new
                }
                _ => true,
            };
            if !is_clear || !is_told_apart {
                return None;
            }
            record.value = Text::line(line);
            record.has_comma = false;
        }
        if !record.mark.is_change() {
            removed.clear();
            inserted.clear();
        }
        list.push(record);
    }
    if list.last().is_some_and(|r| r.mark == Mark::IDENTICAL && r.value.len() == 0) {
        list.pop();
    }
    list.push(quotes());
    Some(Text::wrap("(", Text::List(list), ")"))
}

/// How a sequence is divided.
#[derive(Clone, Copy)]
struct Parts {
    options: Options,
    name: &'static str,
    /// How many elements one record has.
    chunk: usize,
}

impl Parts {
    /// The records of two sequences, each with what `render` adds to it.
    fn list<T: PartialEq>(
        self,
        mut old: &[T],
        mut new: &[T],
        render: impl Fn(&[T], Mark) -> (Record, String),
        list: &mut Vec<(Record, String)>,
    ) {
        let groups = self.groups(old, new);
        let max = (1_usize << self.options.shift()) << 2;
        let context = self.chunk * CONTEXT;
        let mut elided = Counts::of(self.name);
        let mut printed = 0;
        let last = groups.len().saturating_sub(1);
        let push_chunks = |part: &[T], mark, list: &mut Vec<(Record, String)>| {
            list.extend(part.chunks(self.chunk).map(|chunk| render(chunk, mark)));
        };
        for (at, group) in groups.iter().enumerate() {
            if printed >= max {
                elided = elided.plus(*group);
                continue;
            }
            if group.differences() == 0 {
                let equal = group.identical;
                let before = if at == 0 { 0 } else { context.min(equal) };
                let mut behind = if at == last { 0 } else { context.min(equal - before) };
                if equal - before - behind <= self.chunk {
                    behind = equal - before;
                }
                push_chunks(&old[..before], Mark::IDENTICAL, list);
                if equal > before + behind {
                    let hidden = Counts { identical: equal - before - behind, ..*group };
                    push_hidden(list, hidden);
                }
                push_chunks(&old[equal - behind..equal], Mark::IDENTICAL, list);
                (old, new) = (&old[equal..], &new[equal..]);
                continue;
            }
            let length = list.len();
            let (removed, others) = old.split_at(group.identical + group.removed + group.modified);
            push_chunks(removed, Mark::REMOVED, list);
            old = others;
            let (inserted, others) =
                new.split_at(group.identical + group.inserted + group.modified);
            push_chunks(inserted, Mark::INSERTED, list);
            new = others;
            printed += list.len() - length;
        }
        if !elided.is_zero() {
            push_hidden(list, elided);
        }
    }

    fn groups<T: PartialEq>(self, old: &[T], new: &[T]) -> Vec<Counts> {
        let mut likeness = |x: usize, y: usize| Likeness::of_atoms(old[x] == new[y]);
        let edits = edit_script(old.len(), new.len(), &mut likeness);
        let mut groups: Vec<Counts> = Vec::new();
        for edit in edits {
            let is_equal = edit == Edit::Identity;
            if groups.last().is_none_or(|group| (group.differences() == 0) != is_equal) {
                groups.push(Counts::of(self.name));
            }
            let Some(group) = groups.last_mut() else { continue };
            match edit {
                Edit::Identity => group.identical += 1,
                Edit::OnlyOld => group.removed += 1,
                Edit::OnlyNew => group.inserted += 1,
                Edit::Modified => group.modified += 1,
            }
        }
        move_equal_ends(join_close_groups(groups, self.chunk / 4), old, new)
    }
}

fn push_hidden(list: &mut Vec<(Record, String)>, counts: Counts) {
    let last = list.pop();
    let mut records: Vec<Record> = last.iter().map(|(record, _)| record.clone()).collect();
    push_ellipsis(&mut records, counts);
    let text = last.map(|(_, text)| text).unwrap_or_default();
    let mut texts = vec![text, String::new()].into_iter();
    if records.len() == 1 {
        texts.next();
    }
    list.extend(records.into_iter().zip(texts));
}

/// Joins groups of differences that only a few equal elements separate.
fn join_close_groups(groups: Vec<Counts>, window: usize) -> Vec<Counts> {
    let mut joined: Vec<Counts> = Vec::new();
    for next in groups {
        if next.differences() > 0
            && let [.., before, equal] = joined.as_slice()
        {
            let has_old = before.removed > 0 || next.removed > 0;
            let has_new = before.inserted > 0 || next.inserted > 0;
            if has_old && has_new && equal.identical <= window {
                let whole = before.plus(*equal).plus(next);
                joined.truncate(joined.len() - 2);
                joined.push(whole);
                continue;
            }
        }
        joined.push(next);
    }
    joined
}

/// Moves equal elements at the ends of joined groups to the equal groups beside them.
fn move_equal_ends<T: PartialEq>(mut groups: Vec<Counts>, old: &[T], new: &[T]) -> Vec<Counts> {
    let (mut x, mut y) = (0, 0);
    let (mut in_front, mut at_end) = (0, 0);
    for at in 0..groups.len() {
        let group = groups[at];
        if group.differences() == 0 {
            x += group.identical;
            y += group.identical;
            continue;
        }
        let mut old_count = group.identical + group.removed + group.modified;
        let mut new_count = group.identical + group.inserted + group.modified;
        let (old_part, new_part) = (&old[x..x + old_count], &new[y..y + new_count]);
        let leading = old_part.iter().zip(new_part).take_while(|(old, new)| old == new).count();
        let reversed = old_part.iter().rev().zip(new_part.iter().rev());
        let trailing = reversed.take_while(|(old, new)| old == new).count();
        if leading + trailing > 0 {
            match at.checked_sub(1).and_then(|before| groups.get_mut(before)) {
                Some(before) => before.identical += leading,
                None => in_front += leading,
            }
            match groups.get_mut(at + 1) {
                Some(behind) => behind.identical += trailing,
                None => at_end += trailing,
            }
            x += leading;
            y += leading;
            old_count -= (leading + trailing).min(old_count);
            new_count -= (leading + trailing).min(new_count);
            groups[at] =
                Counts { removed: old_count, inserted: new_count, ..Counts::of(group.name) };
        }
        x += old_count;
        y += new_count;
    }
    let name = groups.first().map_or("", |group| group.name);
    let equal = |identical| Counts { identical, ..Counts::of(name) };
    if in_front > 0 {
        groups.insert(0, equal(in_front));
    }
    if at_end > 0 {
        groups.push(equal(at_end));
    }
    groups
}
