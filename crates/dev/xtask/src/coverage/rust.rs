//! Assertions in Rust tests: a line `// shows A01 B02` applies to the statement directly below it.
//!
//! A comment above a test would only say that some statement in it shows the row. So the line
//! stands on the statement, and the statement must assert: with one of [`ASSERTIONS`], or by
//! calling one of [`HELPERS`], whose definition must assert in turn. A loop or a branch is no such
//! statement, because it may contain any assertions: the line stands inside.
//!
//! Sources are not parsed. Comments, strings and characters are blanked out; then brackets and
//! semicolons separate statements. Macros with unbalanced brackets would confuse this; tests have
//! none.

use anyhow::bail;
use std::collections::BTreeMap;

/// Macros and methods that fail a test.
const ASSERTIONS: [&str; 11] = [
    "assert!(",
    "assert_eq!(",
    "assert_ne!(",
    "prop_assert!(",
    "prop_assert_eq!(",
    "snapshot!(",
    ".wait_for(",
    ".wait_for_all(",
    ".wait_for_condition(",
    ".wait_gone(",
    ".unwrap_err(",
];

/// How the names of helpers begin that assert, wait, or panic. A helper that shows a row must be
/// defined in the same file or crate, and its definition must assert.
const HELPER_PREFIXES: [&str; 3] = ["assert_", "wait_for_", "wait_until_"];

/// Further helper functions and closures of this kind; names with a dot are methods.
const HELPERS: [&str; 15] = [
    "at",
    "becomes",
    "complete",
    "create_successor",
    "fails",
    "has",
    "has_certificates",
    "hold",
    "is_in",
    "lacks",
    "owned_by",
    "reports",
    "runs",
    "selects",
    "until",
];

/// Keywords of statements that contain statements.
const BLOCK_KEYWORDS: [&str; 9] =
    ["for", "while", "loop", "if", "match", "unsafe", "async", "move", "const"];

/// The comment above an assertion.
const MARKER: &str = "// shows ";

/// A marker line and its position.
#[derive(Debug)]
pub(super) struct Marker {
    /// The file and line.
    pub(super) place: String,
    /// The ids, as written.
    pub(super) ids: String,
}

/// Rust sources by file, with comments and strings blanked out.
#[derive(Default)]
pub(super) struct Sources {
    files: BTreeMap<String, Source>,
}

struct Source {
    text: String,
    code: String,
}

impl Sources {
    /// Adds a file.
    pub(super) fn add(&mut self, name: &str, text: String) {
        let code = blank(&text);
        self.files.insert(name.to_owned(), Source { text, code });
    }

    /// All markers in tests. Fails with all markers that are on no assertion.
    pub(super) fn markers(&self) -> anyhow::Result<Vec<Marker>> {
        let (mut all, mut errors) = (Vec::new(), Vec::new());
        for (name, source) in &self.files {
            self.markers_in(name, source, &mut all, &mut errors);
        }
        if !errors.is_empty() {
            bail!("{}", errors.join("\n"));
        }
        Ok(all)
    }

    fn markers_in(
        &self,
        name: &str,
        source: &Source,
        all: &mut Vec<Marker>,
        errors: &mut Vec<String>,
    ) {
        let mut waiting: Vec<Marker> = Vec::new();
        let mut begin = 0;
        for (at, line) in source.text.split_inclusive('\n').enumerate() {
            let (start, trimmed) = (begin, line.trim());
            begin += line.len();
            let place = format!("{name}:{}", at + 1);
            if trimmed.starts_with("// ids: ") {
                errors.push(format!(
                    "{place}: `{trimmed}` stands on no assertion; write `{MARKER}…` above the one that shows the row"
                ));
            }
            if let Some(ids) = trimmed.strip_prefix(MARKER) {
                waiting.push(Marker { place, ids: ids.to_owned() });
            } else if !waiting.is_empty() {
                let indent = line.len() - line.trim_start().len();
                if let Err(why) = self.check(name, source, start + indent) {
                    errors.push(format!("{place}: `{trimmed}`: {why}"));
                }
                all.append(&mut waiting);
            }
        }
        if let Some(left) = waiting.first() {
            errors.push(format!("{}: there is no statement below it", left.place));
        }
    }

    /// Fails unless the statement at an offset is in a test and asserts.
    fn check(&self, name: &str, source: &Source, at: usize) -> anyhow::Result<()> {
        let Some(test) = source.test_around(at) else { bail!("it is in no test") };
        let code = statement(&source.code[at..]);
        let first = code.split(|c: char| !is_word(c)).next().unwrap_or_default();
        if BLOCK_KEYWORDS.contains(&first) || code.starts_with(['{', '}', '\'', '|']) {
            bail!("a row is shown by one assertion: write the ids inside the block");
        }
        if is_closure(code) {
            bail!("a closure shows nothing before it is called: write the ids above the call");
        }
        if !self.asserts(name, test, code, 0)? {
            bail!(
                "the statement asserts nothing: it has none of {ASSERTIONS:?} and calls no helper such as `wait_for_…`"
            );
        }
        Ok(())
    }

    /// Whether code in a function asserts, directly or through helpers.
    fn asserts(&self, name: &str, around: &str, code: &str, depth: usize) -> anyhow::Result<bool> {
        if ASSERTIONS.iter().any(|assertion| code.contains(assertion)) || calls(code, "panic!") {
            return Ok(true);
        }
        let Some(helper) = &called_helper(code) else { return Ok(false) };
        let definitions = self.definitions(name, around, helper);
        if definitions.is_empty() {
            bail!("`{helper}` is defined neither in this file nor in this crate");
        }
        for definition in definitions {
            // The recursion is limited, as helpers of helpers are hard to follow.
            if depth > 4 || !self.asserts(name, definition, definition, depth + 1)? {
                bail!("`{helper}` asserts nothing");
            }
        }
        Ok(true)
    }

    /// The definitions of a helper: the closure in the surrounding function, or else the functions
    /// of the file, or else those in the tests or sources of the crate.
    fn definitions<'s>(&'s self, name: &str, around: &'s str, helper: &str) -> Vec<&'s str> {
        let closures = closures(around, helper);
        if !closures.is_empty() {
            return closures;
        }
        let own =
            self.files.get(name).map(|file| functions(&file.code, helper)).unwrap_or_default();
        if !own.is_empty() {
            return own;
        }
        let folder = ["/tests/", "/src/"]
            .iter()
            .find_map(|part| name.find(part).map(|at| &name[..at + part.len()]));
        let Some(folder) = folder else { return own };
        let files = self.files.iter().filter(|(path, _)| path.starts_with(folder));
        files.flat_map(|(_, file)| functions(&file.code, helper)).collect()
    }
}

impl Source {
    /// The innermost function around an offset, if it is a test.
    fn test_around(&self, at: usize) -> Option<&str> {
        let starts = self.code.match_indices("fn ").map(|(start, _)| start);
        let (start, range) = starts
            .filter(|start| !self.code[..*start].ends_with(is_word))
            .filter_map(|start| Some((start, body(&self.code, start)?)))
            .filter(|(_, range)| range.contains(&at))
            .last()?;
        let above = self.text[..start].rsplit_once('\n').map_or("", |(above, _)| above);
        let is_head = |line: &&str| line.starts_with('#') || line.starts_with("//");
        let mut head = above.lines().rev().map(str::trim).take_while(is_head);
        let is_test =
            head.any(|line| line.starts_with("#[test") || line.starts_with("#[tokio::test"));
        is_test.then(|| &self.code[range])
    }
}

/// The offsets between the braces of a function that begins at an offset.
fn body(code: &str, start: usize) -> Option<std::ops::Range<usize>> {
    let mut depth = 0_u32;
    for (at, c) in code[start..].char_indices() {
        match c {
            '(' | '[' => depth += 1,
            ')' | ']' => depth = depth.checked_sub(1)?,
            '{' if depth == 0 => {
                let begin = start + at + 1;
                return Some(begin..begin + block(&code[begin..]));
            }
            ';' if depth == 0 => return None,
            _ => {}
        }
    }
    None
}

/// The length of a block whose opening brace precedes the text.
fn block(code: &str) -> usize {
    let mut depth = 0_u32;
    for (at, c) in code.char_indices() {
        match c {
            '{' => depth += 1,
            '}' if depth == 0 => return at,
            '}' => depth -= 1,
            _ => {}
        }
    }
    code.len()
}

/// The statement at the start of a text: up to its semicolon, or to the end of the surrounding
/// block.
fn statement(code: &str) -> &str {
    let mut depth = 0_u32;
    for (at, c) in code.char_indices() {
        match c {
            '(' | '[' | '{' => depth += 1,
            ')' | ']' | '}' | ';' if depth == 0 => return &code[..at],
            ')' | ']' | '}' => depth -= 1,
            _ => {}
        }
    }
    code
}

/// Whether a statement binds a closure.
fn is_closure(code: &str) -> bool {
    let value = code
        .strip_prefix("let ")
        .and_then(|binding| binding.split_once('='))
        .map(|(_, value)| value);
    value.is_some_and(|value| {
        let value = value.trim_start();
        value.starts_with('|') || value.starts_with("move |") || value.starts_with("async ")
    })
}

/// Whether code calls a function or closure by name; with a dot, a method.
fn calls(code: &str, name: &str) -> bool {
    code.match_indices(name).any(|(at, _)| {
        let before = &code[..at];
        let fits = name.starts_with('.') || !before.ends_with(is_word) && !before.ends_with('.');
        fits && code[at + name.len()..].starts_with('(')
    })
}

/// The first helper that code calls; with a dot before its name if it is a method.
fn called_helper(code: &str) -> Option<String> {
    code.match_indices('(').find_map(|(at, _)| {
        let before = &code[..at];
        let name = &before[before.trim_end_matches(is_word).len()..];
        let dot = if before[..at - name.len()].ends_with('.') { "." } else { "" };
        let helper = format!("{dot}{name}");
        let by_prefix = HELPER_PREFIXES.iter().any(|prefix| name.starts_with(prefix));
        (by_prefix || HELPERS.contains(&helper.as_str())).then_some(helper)
    })
}

/// The functions or methods of this name in the code.
fn functions<'c>(code: &'c str, name: &str) -> Vec<&'c str> {
    let (method, name) = (name.starts_with('.'), name.trim_start_matches('.'));
    let mut all = Vec::new();
    for (at, _) in code.match_indices(&format!("fn {name}")) {
        let rest = &code[at + 3 + name.len()..];
        let of_self = rest.trim_start_matches(['(', ' ', '\n']).starts_with("&self");
        if rest.starts_with(['(', '<'])
            && of_self == method
            && let Some(range) = body(code, at)
        {
            all.push(&code[range]);
        }
    }
    all
}

/// The closures of this name in the code.
fn closures<'c>(code: &'c str, name: &str) -> Vec<&'c str> {
    let head = format!("let {name} =");
    let all = code.match_indices(&head).map(|(at, _)| statement(&code[at..]));
    all.filter(|statement| is_closure(statement)).collect()
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// Replaces comments and the content of strings and characters by blanks. Offsets and lines stay.
pub(crate) fn blank(text: &str) -> String {
    let mut code = String::with_capacity(text.len());
    let mut rest = text;
    while !rest.is_empty() {
        let (taken, is_code) = token(rest, code.chars().last());
        let (token_text, after) = rest.split_at(taken);
        if is_code {
            code.push_str(token_text);
        } else {
            let blanked =
                |c: char| if c == '\n' { "\n".to_owned() } else { " ".repeat(c.len_utf8()) };
            code.extend(token_text.chars().map(blanked));
        }
        rest = after;
    }
    code
}

/// The length of the token at the start of a text, and whether it is code.
fn token(text: &str, before: Option<char>) -> (usize, bool) {
    let until = |end: &str, from: usize| text[from..].find(end).map_or(text.len(), |at| from + at);
    if text.starts_with("//") {
        return (until("\n", 0), false);
    }
    if text.starts_with("/*") {
        return ((until("*/", 2) + 2).min(text.len()), false);
    }
    if text.starts_with('r') && !before.is_some_and(is_word) {
        let hashes = text[1..].len() - text[1..].trim_start_matches('#').len();
        if text[1 + hashes..].starts_with('"') {
            let end = format!("\"{}", "#".repeat(hashes));
            return ((until(&end, 2 + hashes) + end.len()).min(text.len()), false);
        }
    }
    if text.starts_with('"') {
        return (quoted(text, '"'), false);
    }
    if let Some(inner) = text.strip_prefix('\'') {
        // A lifetime has no closing quote after its first letter.
        let mut letters = inner.chars();
        let is_char = match letters.next() {
            Some('\\') => true,
            _ => letters.next() == Some('\''),
        };
        return if is_char { (quoted(text, '\''), false) } else { (1, true) };
    }
    (text.chars().next().map_or(1, char::len_utf8), true)
}

/// The length of a quoted text, including both quotes.
fn quoted(text: &str, quote: char) -> usize {
    let mut letters = text.char_indices().skip(1);
    while let Some((at, c)) = letters.next() {
        if c == '\\' {
            letters.next();
        } else if c == quote {
            return at + 1;
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A file with a test of this body.
    fn test(body: &str) -> Sources {
        let mut sources = Sources::default();
        let text = format!(
            "async fn wait_until_latest(world: &World) {{ world.cluster.wait_for(x).await; }}\n\
             fn assert_kept(it: u8) {{ it.hash(); }}\n\
             #[tokio::test]\n// What it is about.\nasync fn it() {{\n    {body}\n}}\n"
        );
        sources.add("crates/a/tests/it/a.rs", text);
        sources
    }

    fn mark(ids: &str) -> String {
        format!("{MARKER}{ids}")
    }

    #[test]
    fn marker_applies_to_an_asserting_statement_below_it() {
        for (statement, errors) in [
            ("assert_eq!(a, b);", None),
            ("assert_eq!(\n        a,\n        json!({\"a;\": 1}),\n    );", None),
            ("let it = world.wait_for(&CSV, |it| { it.good(); true }).await;", None),
            ("let it = world\n        .wait_for(&CSV)\n        .await;", None),
            ("wait_until_latest(&world).await;", None),
            ("let it = crate::wait_until_latest(&world).await;", None),
            ("assert!(a)", None),
            ("assert_kept(1);", Some("`assert_kept` asserts nothing")),
            (
                "world.wait_until_succeeded(1).await;",
                Some("`.wait_until_succeeded` is defined neither"),
            ),
            ("succeeded(1);", Some("asserts nothing")),
            ("let a = b;\n    assert!(a);", Some("asserts nothing")),
            ("let a = \"assert!(b)\"; // assert!(b)", Some("asserts nothing")),
            ("not_wait_until_latest(&world).await;", Some("asserts nothing")),
            ("for it in all {\n        assert!(it);\n    }", Some("inside the block")),
            ("if a { assert!(b); }", Some("inside the block")),
            ("let runs = async || assert!(a);", Some("above the call")),
            ("let runs = move |it| assert!(it);", Some("above the call")),
        ] {
            let body = format!("{}\n    {statement}", mark("R1"));
            let found = test(&body).markers();
            match errors {
                None => assert_eq!(found.unwrap()[0].ids, "R1", "{statement}"),
                Some(errors) => {
                    let message = format!("{:#}", found.unwrap_err());
                    assert!(message.contains(errors), "{statement}: {message}");
                    assert!(message.contains("a.rs:7: "), "{message}");
                }
            }
        }
    }

    #[test]
    fn several_markers_apply_to_one_statement_inside_blocks() {
        let body = format!(
            "for it in all {{\n        {}\n        {}\n        assert!(it);\n    }}",
            mark("R1 R2"),
            mark("R3..R5")
        );
        let found = test(&body).markers().unwrap();
        let ids: Vec<&str> = found.iter().map(|marker| &*marker.ids).collect();
        assert_eq!(ids, ["R1 R2", "R3..R5"]);
        assert_eq!(found[1].place, "crates/a/tests/it/a.rs:8");
    }

    #[test]
    fn markers_outside_and_above_tests_are_rejected() {
        let mut sources = Sources::default();
        let helper = format!("#[test]\nfn t() {{}}\nfn f() {{\n{}\nassert!(a);\n}}\n", mark("R1"));
        sources.add("a.rs", helper);
        let message = format!("{:#}", sources.markers().unwrap_err());
        assert!(message.contains("it is in no test"), "{message}");
        let mut sources = Sources::default();
        sources.add("a.rs", format!("{}ids: R1\n#[test]\nfn t() {{}}\n", "// "));
        let message = sources.markers().unwrap_err().to_string();
        assert!(
            message.contains("a.rs:1: ") && message.contains("stands on no assertion"),
            "{message}"
        );
        let mut sources = Sources::default();
        sources.add("a.rs", format!("#[test]\nfn t() {{ a(); }}\n{}", mark("R1")));
        let message = sources.markers().unwrap_err().to_string();
        assert!(message.contains("there is no statement below it"), "{message}");
    }

    #[test]
    fn strings_characters_and_comments_are_blanked_out() {
        let text = "let a = 'x'; let b: &'a str = \"{\\\"\"; // }\nlet c = r#\"}\"\"#; let d = '\\''; /* { */ r";
        let code = blank(text);
        assert_eq!(code.len(), text.len());
        assert!(!code.contains(['{', '}', '"']), "{code}");
        assert!(code.contains("let b: &'a str =") && code.ends_with(" r"), "{code}");
        assert_eq!(code.lines().count(), 2);
    }
}
