//! Texts and paths as Go programs write them.

use std::fmt::{self, Write};

pub(super) use mainstay_gocompat::quote;

/// Appends to a text.
pub(super) fn push(text: &mut String, more: fmt::Arguments<'_>) {
    // Writing to a string cannot fail.
    let _ = text.write_fmt(more);
}

/// A character in single quotes, as `%q` prints it.
pub(super) fn quote_char(c: char) -> String {
    match c {
        '\'' => r"'\''".to_owned(),
        '"' => "'\"'".to_owned(),
        c => format!("'{}'", quote(c.encode_utf8(&mut [0; 4])).trim_matches('"')),
    }
}

/// The shortest equivalent path, without reading the file system; Go's `path.Clean`.
pub(super) fn clean(path: &str) -> String {
    let rooted = path.starts_with('/');
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." if parts.last().is_some_and(|&last| last != "..") => {
                parts.pop();
            }
            ".." if rooted => {}
            part => parts.push(part),
        }
    }
    let joined = parts.join("/");
    match (rooted, joined.is_empty()) {
        (true, _) => format!("/{joined}"),
        (false, true) => ".".to_owned(),
        (false, false) => joined,
    }
}

/// Joins two paths.
pub(super) fn join(folder: &str, name: &str) -> String {
    if folder.is_empty() { clean(name) } else { clean(&format!("{folder}/{name}")) }
}

/// The relative path from one folder to another; both are absolute and clean.
pub(super) fn relative(from: &str, to: &str) -> String {
    let split = |path: &str| -> Vec<String> {
        path.split('/').filter(|part| !part.is_empty()).map(str::to_owned).collect()
    };
    let (from, to) = (split(from), split(to));
    let shared = from.iter().zip(&to).take_while(|(one, other)| one == other).count();
    let up = std::iter::repeat_n("..", from.len() - shared);
    let parts: Vec<&str> = up.chain(to[shared..].iter().map(String::as_str)).collect();
    if parts.is_empty() { ".".to_owned() } else { parts.join("/") }
}

/// Whether a path stays below its start, without reading the file system; Go's `filepath.IsLocal`.
pub(super) fn is_local(path: &str) -> bool {
    let clean = clean(path);
    !path.is_empty() && !clean.starts_with('/') && clean != ".." && !clean.starts_with("../")
}

/// The text is not a boolean.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("strconv.ParseBool: parsing {}: invalid syntax", quote(text))]
pub struct ParseBoolError {
    /// The text.
    pub text: String,
}

/// Parses a boolean as Go does.
///
/// # Errors
/// If the text is not a boolean.
pub(super) fn parse_bool(text: &str) -> Result<bool, ParseBoolError> {
    match text {
        "1" | "t" | "T" | "TRUE" | "true" | "True" => Ok(true),
        "0" | "f" | "F" | "FALSE" | "false" | "False" => Ok(false),
        _ => Err(ParseBoolError { text: text.to_owned() }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_quoted_as_in_go() {
        for (text, quoted) in [
            ("a b", r#""a b""#),
            ("\"'\\", r#""\"'\\""#),
            ("\n\t\0\x7f", r#""\n\t\x00\x7f""#),
            ("└─é日\u{301}", "\"└─é日\u{301}\""),
            ("\u{a0}\u{feff}\u{e000}\u{10ffff}", r#""\u00a0\ufeff\ue000\U0010ffff""#),
        ] {
            assert_eq!(quote(text), quoted);
        }
        assert_eq!(quote_char('\''), r"'\''");
        assert_eq!(quote_char('o'), "'o'");
        assert_eq!(quote_char('"'), "'\"'");
    }

    #[test]
    fn paths_are_local_if_they_stay_below_their_start() {
        for (path, local) in [
            ("a", true),
            (".", true),
            ("a/../b", true),
            ("", false),
            ("/a", false),
            ("a/../..", false),
        ] {
            assert_eq!(is_local(path), local, "{path}");
        }
        assert_eq!((join("o/", "a"), join("", "a")), ("o/a".to_owned(), "a".to_owned()));
    }

    #[test]
    fn relative_paths_lead_from_one_folder_to_another() {
        for (from, to, expected) in [
            ("/a", "/a/b/c", "b/c"),
            ("/a/b", "/a", ".."),
            ("/a/b", "/c", "../../c"),
            ("/a", "/a", "."),
            ("/", "/a", "a"),
        ] {
            assert_eq!(relative(from, to), expected, "{from} {to}");
        }
    }

    #[test]
    fn paths_are_cleaned_as_in_go() {
        for (path, cleaned) in [
            ("", "."),
            (".", "."),
            ("a/", "a"),
            ("./a/../a//b/.", "a/b"),
            ("../../a", "../../a"),
            ("a/../..", ".."),
            ("/..", "/"),
            ("/a/../../b", "/b"),
        ] {
            assert_eq!(clean(path), cleaned, "{path}");
        }
    }
}
