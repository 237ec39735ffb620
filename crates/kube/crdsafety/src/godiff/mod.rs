//! Differences of two schemas as text, byte for byte what Go's `cmp.Diff` prints of them.
//!
//! ```text
//! old, new ── tree ─► Node (counts of equal and different leaves) ── report ─► Text ── render ─► lines with - and +
//!               └ edits: which items of two lists belong together     ├ format: single values
//!                                                                     └ strings: long strings and byte slices
//! ```
//!
//! operator-controller shortens this text to its messages, and crdify compares it to find out which
//! problems are new. So both need the same lines, with the same elisions. Go varies two things from
//! run to run, both of which are fixed here: blanks are plain, and lists are searched from the front.

mod edits;
mod format;
mod report;
mod strings;
mod text;
mod tree;

use crate::go::Schema;

/// The text of the differences; empty if there are none.
pub(crate) fn difference(old: &Schema, new: &Schema) -> String {
    let (old, new) = (tree::root_value(old), tree::root_value(new));
    let root = tree::compare(&old, &new);
    if root.different == 0 { String::new() } else { report::render(&root) }
}
