//! Escaping of property names in rules.
//!
//! Names of properties may be reserved words or no CEL identifiers. Rules escape them: `x-prop` is
//! `x__dash__prop`, `namespace` is `__namespace__`. Names with other special characters cannot be
//! written.

use crate::syntax::is_reserved;
use std::borrow::Cow;

/// Texts and their escapes.
const ESCAPES: [(&str, &str); 4] =
    [("__", "__underscores__"), (".", "__dot__"), ("-", "__dash__"), ("/", "__slash__")];

/// Escapes the name of a property; none if it cannot be written in rules.
pub fn escape(name: &str) -> Option<Cow<'_, str>> {
    if name.is_empty() || name.starts_with(|first: char| first.is_ascii_digit()) {
        return None;
    }
    if is_reserved(name) {
        return Some(format!("__{name}__").into());
    }
    let bytes = name.bytes();
    if !bytes.clone().all(|byte| byte.is_ascii_alphanumeric() || b"_.-/".contains(&byte)) {
        return None;
    }
    if bytes.clone().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
        && !name.contains("__")
    {
        return Some(name.into());
    }
    let mut escaped = String::with_capacity(name.len() + 16);
    let mut rest = name;
    while let Some(character) = rest.chars().next() {
        let escape_pair = ESCAPES.iter().find(|(plain, _)| rest.starts_with(plain));
        let consumed = escape_pair.map_or(character.len_utf8(), |(plain, escape)| {
            escaped.push_str(escape);
            plain.len()
        });
        if escape_pair.is_none() {
            escaped.push(character);
        }
        rest = &rest[consumed..];
    }
    Some(escaped.into())
}

/// Unescapes a name; none if it has an invalid escape.
pub fn unescape(name: &str) -> Option<Cow<'_, str>> {
    // Names are short: checking each pair is faster than preparing a search.
    if !name.as_bytes().windows(2).any(|pair| pair == b"__") {
        return Some(name.into());
    }
    let mut plain = String::with_capacity(name.len());
    let mut rest = name;
    while let Some(at) = rest.find("__") {
        plain.push_str(&rest[..at]);
        let word = &rest[at + 2..];
        // The word of an escape has no underscore, so it ends at the next one.
        let end = word.find('_').unwrap_or(word.len());
        if end == 0 || !word[end..].starts_with("__") {
            // No escape begins here, but one may begin at the next underscore.
            plain.push('_');
            rest = &rest[at + 1..];
            continue;
        }
        let (word, after) = (&word[..end], &word[end + 2..]);
        match word {
            "underscores" => plain.push_str("__"),
            "dot" => plain.push('.'),
            "dash" => plain.push('-'),
            "slash" => plain.push('/'),
            // Reserved words are escaped as a whole.
            word if is_reserved(word) && word.len() + 4 == name.len() => plain.push_str(word),
            _ => return None,
        }
        rest = after;
    }
    plain.push_str(rest);
    Some(plain.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escaped_names_unescape_to_the_original() {
        for (plain, escaped) in [
            ("spec", "spec"),
            ("_a", "_a"),
            ("a_b", "a_b"),
            ("a__b", "a__underscores__b"),
            ("a___b", "a__underscores___b"),
            ("____", "__underscores____underscores__"),
            ("x-prop", "x__dash__prop"),
            ("a.b/c", "a__dot__b__slash__c"),
            ("namespace", "__namespace__"),
            ("while", "__while__"),
            ("-", "__dash__"),
        ] {
            assert_eq!(escape(plain).as_deref(), Some(escaped), "{plain}");
            assert_eq!(unescape(escaped).as_deref(), Some(plain), "{escaped}");
        }
        for name in ["", "0a", "a b", "ä", "$ref"] {
            assert_eq!(escape(name), None, "{name}");
        }
        for name in ["__x__", "a__namespace__", "__namespace__b"] {
            assert_eq!(unescape(name), None, "{name}");
        }
        for name in ["a__", "__", "___", "a__b", "namespace"] {
            assert_eq!(unescape(name).as_deref(), Some(name), "{name}");
        }
    }
}
