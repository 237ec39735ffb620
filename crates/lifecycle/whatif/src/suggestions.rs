//! Suggestions for misspelt names: the nearest known names, or which names are known at all.

use std::fmt;

/// Most names that are suggested.
const MAX_SUGGESTIONS: usize = 5;

/// Longest part of a name that counts, in characters: no name in a cluster is longer.
const MAX_NAME_CHARS: usize = 253;

/// The known names that are nearest to a wanted one, nearest first: names within few edits, then
/// names that contain the wanted one or are contained in it.
pub fn nearest<'n>(wanted: &str, known: impl IntoIterator<Item = &'n str>) -> Vec<&'n str> {
    let wanted: String = wanted.to_lowercase().chars().take(MAX_NAME_CHARS).collect();
    let max_edits = (wanted.chars().count() / 3).clamp(1, 3);
    let mut found: Vec<(usize, &str)> = known
        .into_iter()
        .filter_map(|name| {
            let edits = edit_distance(&wanted, name);
            let is_contained =
                !wanted.is_empty() && (name.contains(&wanted) || wanted.contains(name));
            match (edits <= max_edits, is_contained) {
                (true, _) => Some((edits, name)),
                (false, true) => Some((max_edits + 1, name)),
                (false, false) => None,
            }
        })
        .collect();
    found.sort_unstable();
    found.dedup();
    found.into_iter().take(MAX_SUGGESTIONS).map(|(_, name)| name).collect()
}

/// The Levenshtein distance: characters to add, to leave out or to change.
fn edit_distance(one: &str, other: &str) -> usize {
    let other: Vec<char> = other.chars().take(MAX_NAME_CHARS).collect();
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (at, character) in one.chars().enumerate() {
        let mut corner = std::mem::replace(&mut row[0], at + 1);
        for (column, same) in other.iter().map(|other| *other == character).enumerate() {
            let change = corner + usize::from(!same);
            corner = row[column + 1];
            row[column + 1] = change.min(corner + 1).min(row[column] + 1);
        }
    }
    row.last().copied().unwrap_or_default()
}

/// Which names a user may have meant by one that does not exist.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Suggestion {
    /// The nearest names.
    Nearest(Vec<String>),
    /// Every known name: none is near, and there are few.
    All(Vec<String>),
    /// The first and the last of many names, none of which is near.
    Range {
        /// How many names are known.
        count: usize,
        /// The first name in order.
        first: String,
        /// The last name in order.
        last: String,
    },
}

impl Suggestion {
    /// Suggests names; none if no name is known.
    pub fn of<'n>(wanted: &str, known: impl IntoIterator<Item = &'n str> + Clone) -> Option<Self> {
        let owned = |names: Vec<&str>| names.into_iter().map(str::to_owned).collect();
        let alike = nearest(wanted, known.clone());
        if !alike.is_empty() {
            return Some(Self::Nearest(owned(alike)));
        }
        let mut all: Vec<&str> = known.into_iter().collect();
        all.sort_unstable();
        all.dedup();
        let (first, last) = (all.first()?, all.last()?);
        Some(if all.len() <= 2 * MAX_SUGGESTIONS {
            Self::All(owned(all))
        } else {
            Self::Range { count: all.len(), first: (*first).to_owned(), last: (*last).to_owned() }
        })
    }
}

impl fmt::Display for Suggestion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Nearest(names) => write!(f, "did you mean {}?", names.join(", ")),
            Self::All(names) => write!(f, "name one of {}", names.join(", ")),
            Self::Range { count, first, last } => {
                write!(f, "{count} of them exist, from {first} to {last}")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nearest_names_are_suggested_first() {
        let known = ["tea", "teapot-operator", "kettle", "cup"];
        for (wanted, expected) in [
            ("teas", vec!["tea"]),
            ("teapot-operater", vec!["teapot-operator", "tea"]),
            ("ketle", vec!["kettle"]),
            ("Tea", vec!["tea", "teapot-operator"]),
            ("spoon", vec![]),
            ("", vec![]),
        ] {
            assert_eq!(nearest(wanted, known), expected, "{wanted}");
        }
        let suggestion = |known: &[&'static str]| {
            Suggestion::of("spoon", known.iter().copied()).map(|names| names.to_string())
        };
        assert_eq!(suggestion(&["b", "a"]).as_deref(), Some("name one of a, b"));
        assert_eq!(suggestion(&[]), None);
    }
}
