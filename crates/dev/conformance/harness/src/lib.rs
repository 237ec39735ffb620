//! What comparisons with originals share: the commands of recorded cases ([`kubectl`]), and list
//! files: parsing, name patterns, and the limit on exceptions. A run that takes too long is split
//! into [`Share`]s.
//!
//! A comparison checks our outputs against recorded ones of an original. Beside it are lists of
//! expected differences, cases out of scope, and assertions about requirements. A list has one
//! entry per line, `#` begins a comment, and `*` in a name matches any characters. No list may
//! excuse many cases: [`exceeds`] is the limit.

pub mod kubectl;
mod share;

pub use share::Share;

use anyhow::Context;
use regex::Regex;

/// The entries of a list: line number and text of each line that is neither empty nor a comment,
/// without trailing spaces.
pub fn entries(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let lines = (1..).zip(text.lines().map(str::trim_end));
    lines.filter(|(_, line)| !line.is_empty() && !line.starts_with('#'))
}

/// Compiles a pattern for a whole name; `*` matches any characters.
///
/// # Errors
/// The pattern exceeds the size limit of regular expressions.
pub fn glob(pattern: &str) -> anyhow::Result<Regex> {
    let parts: Vec<String> = pattern.split('*').map(regex::escape).collect();
    let expression = format!("^{}$", parts.join(".*"));
    Regex::new(&expression).with_context(|| format!("read the pattern {pattern}"))
}

/// Whether `excused` exceeds 1 % of `all`.
pub const fn exceeds(excused: usize, all: usize) -> bool {
    excused * 100 > all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_are_lines_without_comments_and_keep_their_numbers() {
        let found: Vec<_> = entries("# a comment\n\n  one reason \ntwo\n").collect();
        assert_eq!(found, [(3, "  one reason"), (4, "two")]);
    }

    #[test]
    fn a_star_stands_for_any_letters_and_everything_else_for_itself() {
        let pattern = glob("apply/a.b-*").unwrap();
        assert!(pattern.is_match("apply/a.b-c") && pattern.is_match("apply/a.b-"));
        assert!(!pattern.is_match("apply/axb-c") && !pattern.is_match("x/apply/a.b-c"));
    }

    #[test]
    fn one_in_a_hundred_may_be_excused() {
        assert!(!exceeds(1, 100) && exceeds(2, 199) && exceeds(1, 99));
    }
}
