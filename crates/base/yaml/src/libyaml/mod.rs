//! What upstream's parser says to a text that it refuses.
//!
//! Tools written in Go read YAML with a descendant of libyaml, and people search the web for its
//! words. Our own reading is another one; where a text is wrong, this goes through it once more as
//! libyaml would: characters in windows, tokens with simple keys that are known only behind them,
//! a stack of states. Nothing is built: the only answers are "accepted" and the first fault.
//!
//! Only the first document is looked at, as Go's `Unmarshal` does: what follows it is lost there.

mod chars;
mod parse;
mod scan;

/// What upstream refuses, in its words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The line as upstream counts it, which depends on who noticed; 0 where it names none.
    pub line: usize,
    /// The message.
    pub message: String,
}

impl std::fmt::Display for Fault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.line > 0 {
            write!(f, "line {}: ", self.line)?;
        }
        f.write_str(&self.message)
    }
}

/// The first fault of the first document of a text, as Go's decoder of YAML says it; none if that
/// can be parsed there. The text is what stands between two lines that separate documents.
pub fn fault(text: &[u8]) -> Option<Fault> {
    parse::document(text).err()
}

#[cfg(test)]
mod tests {
    use super::fault;

    #[test]
    fn faults_are_said_in_the_known_words() {
        let table: &[(&str, Option<&str>)] = &[
            ("a: 1\n", None),
            ("a: b: c\n", Some("mapping values are not allowed in this context")),
            ("x: 1\na: b: c\n", Some("line 2: mapping values are not allowed in this context")),
            ("a: 1\n b: 2\n", Some("line 2: mapping values are not allowed in this context")),
            ("a:\n  b: 1\n c: 2\n", Some("line 2: did not find expected key")),
            ("  a: 1\nb: 2\n", None),
            ("a: 1\n...\n{\n", None),
            ("a: 1\nb\n", Some("line 3: could not find expected ':'")),
            ("a: [1, 2\nb: 3\n", Some("line 1: did not find expected ',' or ']'")),
            ("a: {b: 1\n", Some("line 1: did not find expected ',' or '}'")),
            ("a: \"b\n", Some("line 2: found unexpected end of stream")),
            ("a: \"\\q\"\n", Some("found unknown escape character")),
            ("a: *b\n", Some("unknown anchor 'b' referenced")),
            ("a: &b 1\nc: *b\n", None),
            ("a: @b\n", Some("found character that cannot start any token")),
            ("\ta: 1\n", Some("found character that cannot start any token")),
            (
                "a: |\n\tb\n",
                Some("line 2: found a tab character where an indentation space is expected"),
            ),
            ("- a\nb: 1\n", Some("line 1: did not find expected '-' indicator")),
            ("a: !x!y z\n", Some("found undefined tag handle")),
            ("%YAML 1.2\n---\na: 1\n", Some("found incompatible YAML document")),
            ("%FOO\n---\n", Some("found unknown directive name")),
            ("a: - b\n", Some("block sequence entries are not allowed in this context")),
            ("a\u{1}\n", Some("control characters are not allowed")),
            ("[]: x\n", None),
            ("? a\n: b\n", None),
            ("a\u{85}b: 1\n", Some("line 2: mapping values are not allowed in this context")),
            ("-\ta: 1\n", Some("found character that cannot start any token")),
            ("-\ta\n", Some("found character that cannot start any token")),
        ];
        for (text, expected) in table {
            let found = fault(text.as_bytes()).map(|fault| fault.to_string());
            assert_eq!(found.as_deref(), *expected, "{text:?}");
        }
    }

    #[test]
    fn deep_and_long_texts_are_bounded() {
        let deep = "[".repeat(20_000);
        assert_eq!(fault(deep.as_bytes()).unwrap().message, "exceeded max depth of 10000");
        assert_eq!(
            fault("- ".repeat(20_000).as_bytes()).unwrap().message,
            "exceeded max depth of 10000"
        );
        let wide = format!("a: [{}]\n", "{b: c}, ".repeat(20_000));
        assert_eq!(fault(wide.as_bytes()), None);
    }
}
