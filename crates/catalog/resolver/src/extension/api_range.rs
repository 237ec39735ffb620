//! Ranges of dependencies, in the language of catalogs, as ranges of `spec.source.catalog.version`.

use mainstay_version::{IntervalSet, Range, Version, VersionConstraint, parse_strict};

/// The longest range that the API takes, in characters.
const MAX_RANGE: usize = 64;

/// The range of the API with the versions that are in all of these ranges; empty for all versions. None if
/// the API cannot express it.
pub(super) fn common_range(ranges: &[&Range]) -> Option<String> {
    match ranges {
        [] => Some(String::new()),
        [range] => range_text(range),
        ranges => {
            let all =
                ranges.iter().fold(IntervalSet::all(), |all, range| all.intersection(range.set()));
            interval_text(&all)
        }
    }
}

/// A range of a dependency as a range of the API, whose language is another one. None if the API cannot
/// express it.
fn range_text(range: &Range) -> Option<String> {
    let text = range.as_str().trim();
    let is_same = VersionConstraint::parse(text).is_ok_and(|constraint| {
        has_no_release(&constraint.set().releases().difference(range.set()))
    });
    let has_other_signs = text.contains("==") || text.contains(" - ") || text.contains(',');
    if is_same && !has_other_signs && text.chars().count() <= MAX_RANGE {
        return Some(text.to_owned());
    }
    interval_text(range.set())
}

/// Whether all versions of a set are pre-releases.
fn has_no_release(set: &IntervalSet) -> bool {
    set.intervals().iter().all(|interval| {
        let from = interval.from.to_string();
        let release = from.split_once('-').map_or(&*from, |(release, _)| release);
        let release = parse_strict(release);
        release.is_ok_and(|release| interval.to.as_ref().is_some_and(|to| release >= *to))
    })
}

/// Versions as a range of the API. Bounds are releases: the API does not choose pre-releases by a range of
/// releases.
fn interval_text(set: &IntervalSet) -> Option<String> {
    let bound = |version: &Version| {
        let text = version.to_string();
        text.strip_suffix("-0").map(str::to_owned).unwrap_or(text)
    };
    let interval = |interval: &mainstay_version::Interval| {
        let from =
            (interval.from != Version::minimum()).then(|| format!(">={}", bound(&interval.from)));
        let to = interval.to.as_ref().map(|to| format!("<{}", bound(to)));
        let both: Vec<String> = from.into_iter().chain(to).collect();
        if both.is_empty() { ">=0.0.0".to_owned() } else { both.join(" ") }
    };
    let parts: Vec<String> = set.intervals().iter().map(interval).collect();
    let text = parts.join(" || ");
    (!parts.is_empty() && text.chars().count() <= MAX_RANGE).then_some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_of_catalogs_become_ranges_of_the_api() {
        for (range, expected) in [
            (">=1.0.0 <2.0.0", Some(">=1.0.0 <2.0.0")),
            ("1.2.0", Some("1.2.0")),
            ("==1.2.0", Some(">=1.2.0 <1.2.1")),
            (">=1.0.0 !1.3.0", Some(">=1.0.0 <1.3.0 || >=1.3.1")),
            ("<=2.0.0 || >3.0.0", Some("<=2.0.0 || >3.0.0")),
            ("!1.0.0 !2.0.0 !3.0.0 !4.0.0 !5.0.0 !6.0.0", None),
            (">0.0.0", Some(">0.0.0")),
        ] {
            let text = range_text(&Range::parse(range).unwrap());
            assert_eq!(text.as_deref(), expected, "{range}");
        }
        let [one, two] = [">=1.0.0", "<2.0.0 !1.5.0"].map(|range| Range::parse(range).unwrap());
        let both = common_range(&[&one, &two]);
        assert_eq!(both.as_deref(), Some(">=1.0.0 <1.5.0 || >=1.5.1 <2.0.0"));
        let [one, two] = [">2.0.0", "<2.0.0"].map(|range| Range::parse(range).unwrap());
        assert_eq!(common_range(&[&one, &two]), None);
    }
}
