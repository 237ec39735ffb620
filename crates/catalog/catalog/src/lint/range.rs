//! Ranges of versions that are not read as they are written.

use crate::rule::Rule;
use mainstay_gocompat::quote;
use mainstay_version::Range;

/// What there is to say about a range: the rule it breaks, the words, and what to do.
pub(super) type Said = (Rule, String, String);

/// Looks at a range that stands where `what` says. Whether it can be read at all is said only if
/// nobody else says it.
pub(super) fn look_at(what: &str, text: &str, say_unreadable: bool) -> Option<Said> {
    let shown = quote(text);
    let range = match Range::parse(text) {
        Ok(range) => range,
        Err(error) => {
            let message = match text.trim() {
                "" => format!("the {what} is empty"),
                _ => format!("invalid {what} {shown}: {error}"),
            };
            let remedy = "write a range such as \">=1.0.0 <1.2.0\"".to_owned();
            return say_unreadable.then_some((Rule::VersionRange, message, remedy));
        }
    };
    let misread = |how: String, remedy: &str| {
        let message = format!("{what} {shown} is not read as it is written: {how}");
        Some((Rule::RangeMisread, message, remedy.to_owned()))
    };
    if let Some(lost) = Range::ignored_parts(text).first() {
        let how = format!("{} is passed over", quote(lost));
        let remedy = match lost.as_str() {
            "-" => "write both ends as comparisons, such as \">=1.0.0 <=2.0.0\"",
            _ => "write a version behind each comparison, or remove it",
        };
        return misread(how, remedy);
    }
    let mut groups = text.split("||");
    if groups.any(|group| group.trim().is_empty()) {
        let how = "nothing stands between two \"||\"".to_owned();
        return misread(how, "remove one of them");
    }
    let is_negated = |part: &&str| part.starts_with('!') && part.contains('x');
    if let Some(part) = text.split(' ').find(is_negated) {
        let how = format!("{} leaves no version at all", quote(part));
        let remedy = "write what is wanted, such as \"<1.2.0 || >=1.3.0\"";
        return misread(how, remedy);
    }
    if range.set().intervals().is_empty() {
        let message = format!("{what} {shown} holds no version");
        let remedy = "let the lower end be below the upper one, or remove it".to_owned();
        return Some((Rule::EmptyRange, message, remedy));
    }
    None
}

#[cfg(test)]
mod tests {
    use super::look_at;

    #[test]
    fn what_is_lost_of_a_range_is_said() {
        for (text, said) in [
            (">=1.0.0 <2.0.0", None),
            ("> 1.0.0", None),
            ("1.x || >=3.0.0", None),
            ("!1.3.1", None),
            (
                "1.0.0 - 2.0.0",
                Some(
                    "range-misread: r \"1.0.0 - 2.0.0\" is not read as it is written: \"-\" is passed over",
                ),
            ),
            (
                ">=1.0.0 <",
                Some(
                    "range-misread: r \">=1.0.0 <\" is not read as it is written: \"<\" is passed over",
                ),
            ),
            (
                ">=1.0.0 * ",
                Some(
                    "range-misread: r \">=1.0.0 * \" is not read as it is written: \"*\" is passed over",
                ),
            ),
            (
                "!1.2.x",
                Some(
                    "range-misread: r \"!1.2.x\" is not read as it is written: \"!1.2.x\" leaves no version at all",
                ),
            ),
            (
                "!=1.x",
                Some(
                    "range-misread: r \"!=1.x\" is not read as it is written: \"!=1.x\" leaves no version at all",
                ),
            ),
            (
                "<1.0.0 || || >2.0.0",
                Some(
                    "range-misread: r \"<1.0.0 || || >2.0.0\" is not read as it is written: nothing stands between two \"||\"",
                ),
            ),
            (">=2.0.0 <1.0.0", Some("empty-range: r \">=2.0.0 <1.0.0\" holds no version")),
            (
                "abc",
                Some(
                    "version-range: invalid r \"abc\": Could not get version from string: \"abc\"",
                ),
            ),
        ] {
            let found = look_at("r", text, true)
                .map(|(rule, message, _)| format!("{}: {message}", rule.id()));
            assert_eq!(found.as_deref(), said, "{text}");
        }
        assert_eq!(look_at("r", "abc", false), None);
    }
}
