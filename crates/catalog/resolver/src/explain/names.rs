//! Names in sentences.

/// `a, b and c`, or with another last word.
pub(super) fn list(names: &[String], last: &str) -> String {
    match names {
        [] => String::new(),
        [one] => one.clone(),
        [first @ .., end] => format!("{} {last} {end}", first.join(", ")),
    }
}

/// The names that one may have meant instead of another, nearest first, at most three.
///
/// A name is near if few letters are wrong, or if one is part of the other.
pub(super) fn nearest<'n>(wanted: &str, names: impl IntoIterator<Item = &'n str>) -> Vec<&'n str> {
    let wanted = wanted.to_lowercase();
    let mut near: Vec<(usize, &str)> = names
        .into_iter()
        .filter_map(|name| Some((distance(&wanted, &name.to_lowercase())?, name)))
        .collect();
    near.sort_unstable();
    near.dedup();
    near.truncate(3);
    near.into_iter().map(|(_, name)| name).collect()
}

/// How far two names are from each other; none if they have nothing in common.
fn distance(a: &str, b: &str) -> Option<usize> {
    let longest = a.len().max(b.len());
    // Names of the cluster have at most 253 bytes; longer ones are not compared.
    if a.is_empty() || b.is_empty() || longest > 253 {
        return None;
    }
    let allowed = 1 + longest / 4;
    if a.len().abs_diff(b.len()) <= allowed {
        let edits = edits(a.as_bytes(), b.as_bytes());
        if edits <= allowed {
            return Some(edits);
        }
    }
    let shortest = a.len().min(b.len());
    (shortest > 3 && (a.contains(b) || b.contains(a))).then_some(longest - shortest + allowed)
}

/// How many bytes must be put in, taken away or replaced to get from one to the other.
fn edits(a: &[u8], b: &[u8]) -> usize {
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (at, byte) in a.iter().enumerate() {
        let mut diagonal = at;
        row[0] = at + 1;
        for (other, known) in b.iter().enumerate() {
            let replaced = diagonal + usize::from(byte != known);
            diagonal = row[other + 1];
            row[other + 1] = replaced.min(diagonal + 1).min(row[other] + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_names_are_those_with_few_wrong_letters() {
        let names = ["stable", "stable-v1", "alpha", "beta", "candidate", "4.14"];
        for (wanted, expected) in [
            ("stabel", &["stable"][..]),
            ("Stable", &["stable", "stable-v1"]),
            ("candidates", &["candidate"]),
            ("4.15", &["4.14"]),
            ("nightly", &[]),
            ("", &[]),
        ] {
            assert_eq!(nearest(wanted, names), expected, "{wanted}");
        }
    }

    #[test]
    fn lists_read_as_sentences() {
        let names: Vec<String> = ["a", "b", "c"].map(str::to_owned).to_vec();
        assert_eq!(list(&names, "and"), "a, b and c");
        assert_eq!(list(&names[..1], "or"), "a");
        assert_eq!(list(&[], "or"), "");
    }
}
