//! Edit distance: suggestions of known names for an unknown one.
//!
//! A changed, added or removed letter and a swap of adjacent letters count one each.

/// Longer names are not compared: they are not typed by hand.
const MAX_LENGTH: usize = 200;

/// The nearest of the known names, at a distance of at most `max_distance`.
pub fn nearest<'k>(
    name: &str,
    known: impl IntoIterator<Item = &'k str>,
    max_distance: usize,
) -> Option<&'k str> {
    known
        .into_iter()
        .filter_map(|candidate| Some((distance(name, candidate, max_distance)?, candidate)))
        .min()
        .map(|(_, candidate)| candidate)
}

/// The edit distance between two names; `None` if it is more than `max_distance`.
pub fn distance(a: &str, b: &str, max_distance: usize) -> Option<usize> {
    let a: Vec<char> = a.chars().take(MAX_LENGTH + 1).collect();
    let b: Vec<char> = b.chars().take(MAX_LENGTH + 1).collect();
    if a.len() > MAX_LENGTH || b.len() > MAX_LENGTH || a.len().abs_diff(b.len()) > max_distance {
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
    last.pop().filter(|&cost| cost <= max_distance)
}

#[cfg(test)]
mod tests {
    use super::nearest;

    #[test]
    fn the_nearest_known_name_is_suggested() {
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
