//! Completion indexes as text, such as `1,3-5,7`.

use std::collections::BTreeSet;
use std::fmt::Write as _;

/// A set of completion indexes.
pub(super) type Indexes = BTreeSet<i64>;

/// Parses the text; ignores parts that are no numbers, and indexes at or beyond `end`.
pub(super) fn parse(text: &str, end: i64) -> Indexes {
    let mut indexes = Indexes::new();
    for part in text.split(',').filter(|part| !part.is_empty()) {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        if let (Ok(first), Ok(last)) = (first.parse::<i64>(), last.parse::<i64>()) {
            indexes.extend(first.max(0)..=last.min(end - 1));
        }
    }
    indexes
}

/// Formats the text. Runs of two are written one by one.
pub(super) fn text(indexes: &Indexes) -> String {
    let mut out = String::new();
    let mut rest = indexes.iter().copied().peekable();
    while let Some(first) = rest.next() {
        let mut last = first;
        while let Some(next) = rest.next_if(|next| *next == last + 1) {
            last = next;
        }
        let comma = if out.is_empty() { "" } else { "," };
        // Writing into a String does not fail.
        let _ = match last - first {
            0 => write!(out, "{comma}{first}"),
            1 => write!(out, "{comma}{first},{last}"),
            _ => write!(out, "{comma}{first}-{last}"),
        };
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_of_indexes_are_written_as_ranges() {
        for (list, written) in [
            (vec![], ""),
            (vec![3], "3"),
            (vec![0, 1], "0,1"),
            (vec![0, 1, 2], "0-2"),
            (vec![1, 3, 4, 5, 7], "1,3-5,7"),
        ] {
            let indexes: Indexes = list.into_iter().collect();
            assert_eq!(text(&indexes), written);
            assert_eq!(parse(written, 100), indexes);
        }
        assert_eq!(parse("0-9,x,5-", 3), Indexes::from([0, 1, 2]));
    }
}
