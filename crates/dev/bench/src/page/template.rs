//! Templates: texts with placeholders such as `{{table cluster/times}}`.
//!
//! Three directives are on lines of their own. `{{section SUBJECT}}` and `{{if PATH}}` begin lines
//! that are omitted if the subject or figure is missing, and `{{end}}` ends them. An omitted
//! section is replaced by a note.

use anyhow::{Context, Result, bail};

/// The source of values.
pub(super) trait Source {
    /// Whether a subject or a value exists.
    fn has(&self, path: &str) -> bool;
    /// The note that replaces the section of a missing subject.
    fn without(&self, subject: &str) -> String;
    /// The value of a placeholder: its first word, and the rest.
    fn value(&self, what: &str, path: &str) -> Result<String>;
}

/// Fills the placeholders of a text.
///
/// # Errors
/// A placeholder cannot be filled, or a block has no end; with the line number.
pub(super) fn fill(text: &str, source: &dyn Source) -> Result<String> {
    let mut out = String::new();
    // For each open block, whether its lines are included.
    let mut open: Vec<bool> = Vec::new();
    for (at, line) in text.lines().enumerate() {
        let included = open.last().copied().unwrap_or(true);
        let block = line.strip_prefix("{{").and_then(|line| line.strip_suffix("}}"));
        match block.map(|block| block.split_once(' ').unwrap_or((block, ""))) {
            Some(("section", subject)) => {
                let exists = source.has(subject);
                if included && !exists {
                    out.push_str(&source.without(subject));
                    out.push('\n');
                }
                open.push(included && exists);
            }
            Some(("if", path)) => open.push(included && source.has(path)),
            Some(("end", "")) => {
                let block = open.pop();
                block.with_context(|| format!("line {}: {line} ends nothing", at + 1))?;
            }
            _ if included => {
                let line = places(line, source).with_context(|| format!("line {}", at + 1))?;
                out.push_str(&line);
                out.push('\n');
            }
            _ => {}
        }
    }
    if !open.is_empty() {
        bail!("{} blocks without an end", open.len());
    }
    Ok(tidy(&out))
}

/// Fills the placeholders of a line.
fn places(line: &str, source: &dyn Source) -> Result<String> {
    let mut out = String::new();
    let mut rest = line;
    while let Some((before, behind)) = rest.split_once("{{") {
        let (place, after) = behind.split_once("}}").context("a place without }}")?;
        let (what, path) = place.split_once(' ').unwrap_or((place, ""));
        out.push_str(before);
        out.push_str(&source.value(what, path).with_context(|| format!("{{{{{place}}}}}"))?);
        rest = after;
    }
    out.push_str(rest);
    Ok(out)
}

/// Removes the repeated and trailing empty lines that omitted blocks leave.
fn tidy(text: &str) -> String {
    let mut out = String::new();
    let mut empty = false;
    for line in text.lines() {
        if line.is_empty() && empty {
            continue;
        }
        empty = line.is_empty();
        out.push_str(line);
        out.push('\n');
    }
    format!("{}\n", out.trim_end())
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Fixed;

    impl Source for Fixed {
        fn has(&self, path: &str) -> bool {
            path == "store"
        }

        fn without(&self, subject: &str) -> String {
            format!("no {subject}")
        }

        fn value(&self, what: &str, path: &str) -> Result<String> {
            anyhow::ensure!(what == "value", "there is nothing called {what}");
            Ok(path.to_uppercase())
        }
    }

    fn filled(text: &str) -> String {
        fill(text, &Fixed).unwrap()
    }

    #[test]
    fn placeholders_are_filled_and_missing_sections_omitted() {
        assert_eq!(filled("a {{value b}} c {{value d}}"), "a B c D\n");
        let block = "{{section store}}\nx\n{{if cluster}}\ny\n{{end}}\n{{end}}\nz";
        assert_eq!(filled(block), "x\nz\n");
        let outer =
            "{{section cluster}}\n{{section store}}\nx {{wrong}}\n{{end}}\n{{end}}\n\n\nz\n\n";
        assert_eq!(filled(outer), "no cluster\n\nz\n");
    }

    #[test]
    fn template_error_names_the_line() {
        let error = |text: &str| format!("{:#}", fill(text, &Fixed).unwrap_err());
        assert_eq!(error("a\n{{wrong b}}!"), "line 2: {{wrong b}}: there is nothing called wrong");
        assert_eq!(error("a {{value"), "line 1: a place without }}");
        assert_eq!(error("a\n{{end}}"), "line 2: {{end}} ends nothing");
        assert_eq!(error("{{if store}}\na"), "1 blocks without an end");
    }
}
