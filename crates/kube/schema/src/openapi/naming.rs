//! Names in OpenAPI documents: tags, identifiers, articles.

/// The article before a kind, with blanks around it; kinds that look like plurals have none.
pub(super) fn article(kind: &str) -> &'static str {
    if kind.ends_with('s') && !kind.ends_with("ss") {
        " "
    } else if kind.starts_with(['A', 'E', 'I', 'O', 'U']) {
        " an "
    } else {
        " a "
    }
}

/// The group as an identifier: its name without `k8s.io`, the parts joined.
pub(super) fn group_identifier(group: &str) -> String {
    let short = group.strip_suffix(".k8s.io").unwrap_or(group);
    identifier(if short.is_empty() { "core" } else { short }, false)
}

/// The tag of operations of a group-version: `apps_v1`.
pub(super) fn tag(group: &str, version: &str) -> String {
    format!("{}_{}", group_identifier(group), identifier(version, false))
}

/// The group-version in identifiers: `AppsV1`.
pub(super) fn camel_case(group: &str, version: &str) -> String {
    format!("{}{}", capitalize(&group_identifier(group)), capitalize(&identifier(version, false)))
}

/// A text as an identifier: other characters are removed, and the letter after them is a capital.
fn identifier(text: &str, mut capital: bool) -> String {
    let mut out = String::with_capacity(text.len());
    for (at, letter) in text.char_indices() {
        if letter.is_lowercase() || letter == '_' || at > 0 && letter.is_ascii_digit() {
            if capital {
                out.extend(letter.to_uppercase());
            } else {
                out.push(letter);
            }
            capital = false;
        } else {
            capital = true;
        }
    }
    out
}

/// The text with a capital first letter.
pub(super) fn capitalize(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| {
        first.to_uppercase().collect::<String>() + letters.as_str()
    })
}
