//! Names of properties as rules write them.
//!
//! Properties may have names that are no identifiers of the language, or words that it keeps for
//! itself. Rules write these with escapes: `x-prop` is `x__dash__prop`, `namespace` is
//! `__namespace__`. What has other odd letters cannot be written at all.

use crate::syntax::is_reserved;
use std::borrow::Cow;

/// What stands for what in escaped names.
const ESCAPES: [(&str, &str); 4] =
    [("__", "__underscores__"), (".", "__dot__"), ("-", "__dash__"), ("/", "__slash__")];

/// The name of a property as rules write it; none if they cannot.
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
    while let Some(letter) = rest.chars().next() {
        let found = ESCAPES.iter().find(|(plain, _)| rest.starts_with(plain));
        let taken = found.map_or(letter.len_utf8(), |(plain, escape)| {
            escaped.push_str(escape);
            plain.len()
        });
        if found.is_none() {
            escaped.push(letter);
        }
        rest = &rest[taken..];
    }
    Some(escaped.into())
}

/// The name of the property that rules write so; none if the escapes in it mean nothing.
pub fn unescape(name: &str) -> Option<Cow<'_, str>> {
    // Names are short: looking at each pair is faster than preparing a search.
    if !name.as_bytes().windows(2).any(|pair| pair == b"__") {
        return Some(name.into());
    }
    let mut plain = String::with_capacity(name.len());
    let mut rest = name;
    while let Some(at) = rest.find("__") {
        plain.push_str(&rest[..at]);
        let word = &rest[at + 2..];
        // A word has no underscore in it, so it ends at the next one.
        let end = word.find('_').unwrap_or(word.len());
        if end == 0 || !word[end..].starts_with("__") {
            // No escape begins here; one may begin at the next underscore.
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
    fn names_are_escaped_and_back() {
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
