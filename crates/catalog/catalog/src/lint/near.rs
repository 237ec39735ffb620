//! Names that were probably meant.

/// Longer names are not compared: nobody mistypes them by hand.
const LONGEST: usize = 200;

/// The one of `known` that `name` was probably meant to be: at most `most` signs differ.
pub(super) fn nearest<'k>(
    name: &str,
    known: impl IntoIterator<Item = &'k str>,
    most: usize,
) -> Option<&'k str> {
    known
        .into_iter()
        .filter_map(|candidate| Some((distance(name, candidate, most)?, candidate)))
        .min()
        .map(|(_, candidate)| candidate)
}

/// How many signs must be changed, added, removed or swapped with their neighbour to make `b` of
/// `a`; `None` if that is more than `most`.
fn distance(a: &str, b: &str, most: usize) -> Option<usize> {
    let a: Vec<char> = a.chars().take(LONGEST + 1).collect();
    let b: Vec<char> = b.chars().take(LONGEST + 1).collect();
    if a.len() > LONGEST || b.len() > LONGEST || a.len().abs_diff(b.len()) > most {
        return None;
    }
    let mut before: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=b.len()).collect();
    for (i, &left) in a.iter().enumerate() {
        let mut row = vec![i + 1];
        for (j, &right) in b.iter().enumerate() {
            let mut cost =
                (last[j] + usize::from(left != right)).min(last[j + 1] + 1).min(row[j] + 1);
            if i > 0 && j > 0 && left == b[j - 1] && a[i - 1] == right {
                cost = cost.min(before[j - 1] + 1);
            }
            row.push(cost);
        }
        before = std::mem::replace(&mut last, row);
    }
    last.pop().filter(|&cost| cost <= most)
}

/// The digits of a name with what stands between them left out: versions that differ have other
/// ones, and names that are mistyped rarely do.
pub(super) fn digits(name: &str) -> String {
    let mut digits = String::new();
    let mut between = false;
    for sign in name.chars() {
        if sign.is_ascii_digit() {
            if between && !digits.is_empty() {
                digits.push('.');
            }
            digits.push(sign);
        }
        between = !sign.is_ascii_digit();
    }
    digits
}

#[cfg(test)]
mod tests {
    use super::{digits, nearest};

    #[test]
    fn what_was_meant_is_near() {
        let known = ["defaultChannel", "description", "icon", "name"];
        for (name, meant) in [
            ("defaultChanel", Some("defaultChannel")),
            ("defualtChannel", Some("defaultChannel")),
            ("icons", Some("icon")),
            ("namespace", None),
            ("", None),
        ] {
            assert_eq!(nearest(name, known, 2), meant, "{name}");
        }
    }

    #[test]
    fn versions_are_told_apart_by_their_digits() {
        for (name, expected) in
            [("kiwi.v1.10.0", "1.10.0"), ("kiwiv1-10.0", "1.10.0"), ("s3-v1.2", "3.1.2"), ("x", "")]
        {
            assert_eq!(digits(name), expected);
        }
    }
}
