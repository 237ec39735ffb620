//! Field selectors, on the fields that a kind makes selectable.

use super::SelectorError;

/// A conjunction of `path=value` and `path!=value` on fields that a kind declares selectable.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FieldSelector {
    terms: Vec<FieldTerm>,
}

/// One term of a [`FieldSelector`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldTerm {
    /// Dotted path, such as `metadata.name` or `involvedObject.uid`.
    pub path: String,
    /// The value compared with.
    pub value: String,
    /// Whether the term is `!=`.
    pub negated: bool,
}

impl FieldSelector {
    /// Parses the query form; `\` escapes `,`, `=` and itself in values.
    pub fn parse(text: &str) -> Result<Self, SelectorError> {
        let mut parts = split_unescaped(text);
        // Upstream parses terms in this order, which decides the first error.
        parts.sort_unstable();
        let mut terms = Vec::new();
        for part in parts.into_iter().filter(|part| !part.is_empty()) {
            let Some((path, operator, value)) = split_term(part) else {
                return Err(SelectorError(format!(
                    "invalid selector: '{text}'; can't understand '{part}'"
                )));
            };
            terms.push(FieldTerm {
                path: path.to_owned(),
                value: unescape(value)?,
                negated: operator == "!=",
            });
        }
        Ok(Self { terms })
    }

    /// The terms, in order of their texts.
    pub fn terms(&self) -> &[FieldTerm] {
        &self.terms
    }

    /// Whether there is no term.
    pub fn is_everything(&self) -> bool {
        self.terms.is_empty()
    }

    /// The value that the selector requires at `path`, if any.
    pub fn required(&self, path: &str) -> Option<&str> {
        self.terms
            .iter()
            .find(|term| !term.negated && term.path == path)
            .map(|term| term.value.as_str())
    }

    /// Whether the values that `field` returns satisfy every term; an absent field is the empty
    /// string.
    pub fn matches_with(&self, field: impl Fn(&str) -> String) -> bool {
        self.terms.iter().all(|term| (field(&term.path) == term.value) != term.negated)
    }
}

fn split_unescaped(text: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    let (mut start, mut escaped) = (0, false);
    for (at, c) in text.char_indices() {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            ',' => {
                parts.push(&text[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    parts.push(&text[start..]);
    parts
}

/// Splits a term at its first operator.
fn split_term(term: &str) -> Option<(&str, &str, &str)> {
    term.char_indices().find_map(|(at, _)| {
        let operator =
            ["!=", "==", "="].into_iter().find(|operator| term[at..].starts_with(operator))?;
        Some((&term[..at], operator, &term[at + operator.len()..]))
    })
}

fn unescape(value: &str) -> Result<String, SelectorError> {
    let invalid =
        |problem: String| Err(SelectorError(format!("invalid field selector: {problem}")));
    let mut out = String::with_capacity(value.len());
    let mut chars = value.chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' => match chars.next() {
                Some(escaped @ ('\\' | ',' | '=')) => out.push(escaped),
                Some(other) => return invalid(format!("invalid escape sequence: \\{other}")),
                None => return invalid("invalid escape sequence: \\".to_owned()),
            },
            // Upstream prints the number of the character.
            ',' | '=' => return invalid(format!("unescaped character in value: {}", c as u32)),
            c => out.push(c),
        }
    }
    Ok(out)
}
