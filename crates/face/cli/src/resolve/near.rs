//! Names that are nearly what was typed.

/// Most names that are offered.
const OFFERED: usize = 5;

/// The names that are nearest to one, nearest first: those with few other signs, then those that are
/// part of it or that it is part of.
pub(super) fn near<'n>(wanted: &str, known: impl IntoIterator<Item = &'n str>) -> Vec<&'n str> {
    let wanted: String = wanted.to_lowercase().chars().take(253).collect();
    let most = (wanted.chars().count() / 3).clamp(1, 3);
    let mut found: Vec<(usize, &str)> = known
        .into_iter()
        .filter_map(|name| {
            let away = distance(&wanted, name);
            let part = !wanted.is_empty() && (name.contains(&wanted) || wanted.contains(name));
            match (away <= most, part) {
                (true, _) => Some((away, name)),
                (false, true) => Some((most + 1, name)),
                (false, false) => None,
            }
        })
        .collect();
    found.sort_unstable();
    found.dedup();
    found.into_iter().take(OFFERED).map(|(_, name)| name).collect()
}

/// How many signs are to be added, left out or changed.
fn distance(one: &str, other: &str) -> usize {
    let other: Vec<char> = other.chars().take(253).collect();
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (at, sign) in one.chars().enumerate() {
        let mut corner = std::mem::replace(&mut row[0], at + 1);
        for (column, same) in other.iter().map(|it| *it == sign).enumerate() {
            let change = corner + usize::from(!same);
            corner = row[column + 1];
            row[column + 1] = change.min(corner + 1).min(row[column] + 1);
        }
    }
    row.last().copied().unwrap_or_default()
}

/// What people can do about a name that does not exist: one of those that are near, or one of all.
pub(super) fn did_you_mean<'n>(
    wanted: &str,
    known: impl IntoIterator<Item = &'n str> + Clone,
) -> Option<String> {
    let alike = near(wanted, known.clone());
    if !alike.is_empty() {
        return Some(format!("did you mean {}?", alike.join(", ")));
    }
    let mut all: Vec<&str> = known.into_iter().collect();
    all.sort_unstable();
    all.dedup();
    let (first, last) = (all.first()?, all.last()?);
    Some(if all.len() <= 2 * OFFERED {
        format!("there is {}", all.join(", "))
    } else {
        format!("there are {} of them, from {first} to {last}", all.len())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_names_come_first() {
        let known = ["tea", "teapot-operator", "kettle", "cup"];
        for (wanted, expected) in [
            ("teas", vec!["tea"]),
            ("teapot-operater", vec!["teapot-operator", "tea"]),
            ("ketle", vec!["kettle"]),
            ("Tea", vec!["tea", "teapot-operator"]),
            ("spoon", vec![]),
            ("", vec![]),
        ] {
            assert_eq!(near(wanted, known), expected, "{wanted}");
        }
        assert_eq!(did_you_mean("spoon", ["b", "a"]).as_deref(), Some("there is a, b"));
        assert_eq!(did_you_mean("spoon", []), None);
    }
}
