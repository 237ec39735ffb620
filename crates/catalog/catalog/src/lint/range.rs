//! Lint of version ranges: ranges that mean something else than their text suggests.

use crate::rule::CatalogRule;
use mainstay_gocompat::quote;
use mainstay_version::Range;

/// A finding about a range: the broken rule, the message, and the remedy.
pub(super) type RangeFinding = (CatalogRule, String, String);

/// Checks a range in the field `what`. An unparsable range is reported only with `report_unreadable`,
/// because another check may report it.
pub(super) fn check_range(what: &str, text: &str, report_unreadable: bool) -> Option<RangeFinding> {
    let quoted = quote(text);
    let range = match Range::parse(text) {
        Ok(range) => range,
        Err(error) => {
            let message = match text.trim() {
                "" => format!("the {what} is empty"),
                _ => format!("invalid {what} {quoted}: {error}"),
            };
            let remedy = "write a range such as \">=1.0.0 <1.2.0\"".to_owned();
            return report_unreadable.then_some((CatalogRule::VersionRange, message, remedy));
        }
    };
    let misread = |how: String, remedy: &str| {
        let message = format!("{what} {quoted} does not mean what it says: {how}");
        Some((CatalogRule::RangeMisread, message, remedy.to_owned()))
    };
    if let Some(ignored) = Range::ignored_parts(text).first() {
        let how = format!("{} is ignored", quote(ignored));
        let remedy = match ignored.as_str() {
            "-" => "write both ends as comparisons, such as \">=1.0.0 <=2.0.0\"",
            _ => "write a version behind each comparison, or remove it",
        };
        return misread(how, remedy);
    }
    let mut groups = text.split("||");
    if groups.any(|group| group.trim().is_empty()) {
        let how = "there is nothing between two \"||\"".to_owned();
        return misread(how, "remove one of them");
    }
    let is_negated = |part: &&str| part.starts_with('!') && part.contains('x');
    if let Some(part) = text.split(' ').find(is_negated) {
        let how = format!("{} matches no version", quote(part));
        let remedy = "write what is wanted, such as \"<1.2.0 || >=1.3.0\"";
        return misread(how, remedy);
    }
    if range.set().intervals().is_empty() {
        let message = format!("{what} {quoted} contains no version");
        let remedy = "let the lower end be below the upper one, or remove it".to_owned();
        return Some((CatalogRule::EmptyRange, message, remedy));
    }
    None
}

#[cfg(test)]
mod tests {
    use super::check_range;

    #[test]
    fn misleading_ranges_are_reported() {
        for (text, expected) in [
            (">=1.0.0 <2.0.0", None),
            ("> 1.0.0", None),
            ("1.x || >=3.0.0", None),
            ("!1.3.1", None),
            (
                "1.0.0 - 2.0.0",
                Some(
                    "range-misread: r \"1.0.0 - 2.0.0\" does not mean what it says: \"-\" is ignored",
                ),
            ),
            (
                ">=1.0.0 <",
                Some("range-misread: r \">=1.0.0 <\" does not mean what it says: \"<\" is ignored"),
            ),
            (
                ">=1.0.0 * ",
                Some(
                    "range-misread: r \">=1.0.0 * \" does not mean what it says: \"*\" is ignored",
                ),
            ),
            (
                "!1.2.x",
                Some(
                    "range-misread: r \"!1.2.x\" does not mean what it says: \"!1.2.x\" matches no version",
                ),
            ),
            (
                "!=1.x",
                Some(
                    "range-misread: r \"!=1.x\" does not mean what it says: \"!=1.x\" matches no version",
                ),
            ),
            (
                "<1.0.0 || || >2.0.0",
                Some(
                    "range-misread: r \"<1.0.0 || || >2.0.0\" does not mean what it says: there is nothing between two \"||\"",
                ),
            ),
            (">=2.0.0 <1.0.0", Some("empty-range: r \">=2.0.0 <1.0.0\" contains no version")),
            (
                "abc",
                Some(
                    "version-range: invalid r \"abc\": Could not get version from string: \"abc\"",
                ),
            ),
        ] {
            let found = check_range("r", text, true)
                .map(|(rule, message, _)| format!("{}: {message}", rule.id()));
            assert_eq!(found.as_deref(), expected, "{text}");
        }
        assert_eq!(check_range("r", "abc", false), None);
    }
}
