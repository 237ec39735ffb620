//! Patterns of strings: regular expressions as Go writes and reads them.

use regex::{Regex, RegexBuilder};
use std::sync::OnceLock;

/// A pattern, compiled when a value is first held against it: most schemas have many patterns and
/// most objects meet few of them.
#[derive(Debug)]
pub(super) struct Pattern {
    /// As the schema has it, and messages quote it.
    pub(super) text: Box<str>,
    compiled: OnceLock<Option<Regex>>,
}

impl PartialEq for Pattern {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl Pattern {
    pub(super) fn new(text: &str) -> Self {
        Self { text: text.into(), compiled: OnceLock::new() }
    }

    /// Whether a text matches. A pattern that is no regular expression matches nothing, as in the
    /// original.
    pub(super) fn matches(&self, text: &str) -> bool {
        let compiled = self.compiled.get_or_init(|| compile(&self.text).ok());
        compiled.as_ref().is_some_and(|regex| regex.is_match(text))
    }

    /// Why the pattern is no regular expression.
    pub(super) fn error(&self) -> Option<String> {
        let error = compile(&self.text).err()?.to_string();
        // The crate draws a picture of the place; the last line says what is wrong.
        let line = error.lines().last().unwrap_or_default();
        Some(line.trim_start_matches("error: ").to_owned())
    }
}

fn compile(text: &str) -> Result<Regex, regex::Error> {
    RegexBuilder::new(&from_go(text)).size_limit(64 << 20).build()
}

/// Rewrites what Go's syntax (RE2) reads in another way: `\d`, `\s`, `\w` and `\b` mean ASCII; a
/// `[`, `&&`, `--` or `~~` in a class is literal; a brace that counts nothing is literal; `\Q…\E`
/// quotes.
pub(super) fn from_go(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 16);
    let mut rest = text;
    let mut class = false;
    let mut first = false;
    while let Some(letter) = rest.chars().next() {
        let behind = &rest[letter.len_utf8()..];
        let at_first = std::mem::take(&mut first);
        match letter {
            '\\' => {
                if let Some(quoted) = behind.strip_prefix('Q') {
                    let (inner, after) = quoted.split_once("\\E").unwrap_or((quoted, ""));
                    out.push_str(&regex::escape(inner));
                    rest = after;
                    continue;
                }
                let Some(escaped) = behind.chars().next() else {
                    out.push('\\');
                    break;
                };
                push_escape(&mut out, escaped, class);
                rest = &behind[escaped.len_utf8()..];
                continue;
            }
            '[' if !class => {
                class = true;
                first = true;
                out.push('[');
                if let Some(negated) = behind.strip_prefix('^') {
                    out.push('^');
                    rest = negated;
                    continue;
                }
            }
            '[' if behind.starts_with(':') && behind.contains(":]") => out.push('['),
            ']' if class && at_first => out.push_str("\\]"),
            ']' if class => {
                // The end of `[:alpha:]` is not the end of the class.
                class = out.ends_with(':') && out.rfind("[:").is_some_and(|at| at + 2 < out.len());
                out.push(']');
            }
            '[' | '&' | '~' if class => {
                out.push('\\');
                out.push(letter);
            }
            '-' if class && behind.starts_with('-') => out.push_str("\\-"),
            '{' if !class && !counts(behind) => out.push_str("\\{"),
            other => out.push(other),
        }
        rest = behind;
    }
    out
}

fn push_escape(out: &mut String, escaped: char, class: bool) {
    let plain = match escaped {
        'd' => "0-9",
        's' => "\\t\\n\\f\\r ",
        'w' => "0-9A-Za-z_",
        'D' | 'S' | 'W' => {
            let inner = match escaped {
                'D' => "0-9",
                'S' => "\\t\\n\\f\\r ",
                _ => "0-9A-Za-z_",
            };
            out.push_str("[^");
            out.push_str(inner);
            out.push(']');
            return;
        }
        'b' if !class => return out.push_str("(?-u:\\b)"),
        'B' if !class => return out.push_str("(?-u:\\B)"),
        '<' | '>' => return out.push(escaped),
        _ => {
            out.push('\\');
            out.push(escaped);
            return;
        }
    };
    if class {
        out.push_str(plain);
    } else {
        out.push('[');
        out.push_str(plain);
        out.push(']');
    }
}

/// Whether what follows a brace is a repetition: `3}`, `3,}` or `3,5}`.
fn counts(rest: &str) -> bool {
    let Some((inner, _)) = rest.split_once('}') else { return false };
    let (least, most) = inner.split_once(',').unwrap_or((inner, ""));
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    !least.is_empty() && digits(least) && digits(most)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn go_syntax_means_what_go_means() {
        for (pattern, text, matches) in [
            (r"^\d+$", "12", true),
            (r"^\d+$", "١٢", false),
            (r"^\w+$", "é", false),
            (r"^[\w.-]+$", "a.b-c_9", true),
            (r"^[^\s]+$", "a b", false),
            (r"^[\S]+$", "ab", true),
            (r"^{foo}$", "{foo}", true),
            (r"^a{2}$", "aa", true),
            (r"^a{2,}$", "aaa", true),
            (r"^[[]$", "[", true),
            (r"^[]a]+$", "]a", true),
            (r"^[a&&b]+$", "&", true),
            (r"^[[:alpha:]_]+$", "ab_", true),
            (r"^[[:alpha:]]+x$", "abx", true),
            (r"^\Qa.b\E$", "a.b", true),
            (r"^\Qa.b\E$", "axb", false),
            (r"^(?i)abc$", "ABC", true),
            (r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$", "a-b.c", true),
            (r"^\/a\-b$", "/a-b", true),
            (r"^(\d+(\.\d+)?(ms|s|m|h))+$", "1h30m", true),
        ] {
            let compiled = Pattern::new(pattern);
            assert_eq!(compiled.error(), None, "{pattern}");
            assert_eq!(compiled.matches(text), matches, "{pattern} on {text}");
        }
    }

    #[test]
    fn a_pattern_that_is_none_says_why_and_matches_nothing() {
        let broken = Pattern::new("(a");
        assert_eq!(broken.error().as_deref(), Some("unclosed group"));
        assert!(!broken.matches("a"));
    }
}
