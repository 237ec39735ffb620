//! Edit distance: which known name was probably meant by one that is unknown.
//!
//! Everybody who refuses a name may say what was meant. Changed, added, removed and swapped letters
//! count one each.

/// Longer names are not compared: nobody mistypes them by hand.
const LONGEST: usize = 200;

/// The one of `known` that `name` was probably meant to be: at most `most` letters differ.
pub fn nearest<'k>(
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

/// How many letters must be changed, added, removed or swapped with their neighbour to make `b` of
/// `a`; `None` if that is more than `most`.
pub fn distance(a: &str, b: &str, most: usize) -> Option<usize> {
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

#[cfg(test)]
mod tests {
    use super::nearest;

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
}
