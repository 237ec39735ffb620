//! Selectors on the fields that a kind lets clients select by.

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
    /// Reads the query form; `\` escapes `,`, `=` and itself in values.
    pub fn parse(text: &str) -> Result<Self, SelectorError> {
        let mut parts = split_unescaped(text);
        // The original reads them in this order, which decides what it complains of first.
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

    /// Whether no term is made.
    pub fn is_everything(&self) -> bool {
        self.terms.is_empty()
    }

    /// The value that `path` must equal, if the selector says so.
    pub fn required(&self, path: &str) -> Option<&str> {
        self.terms.iter().find(|t| !t.negated && t.path == path).map(|t| t.value.as_str())
    }

    /// Whether the values that `field` finds satisfy every term; an absent field is the empty string.
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

/// A term at its first operator.
fn split_term(term: &str) -> Option<(&str, &str, &str)> {
    term.char_indices().find_map(|(at, _)| {
        let operator = ["!=", "==", "="].into_iter().find(|one| term[at..].starts_with(one))?;
        Some((&term[..at], operator, &term[at + operator.len()..]))
    })
}

fn unescape(value: &str) -> Result<String, SelectorError> {
    let refuse = |what: String| Err(SelectorError(format!("invalid field selector: {what}")));
    let mut out = String::with_capacity(value.len());
    let mut chars = value.chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' => match chars.next() {
                Some(escaped @ ('\\' | ',' | '=')) => out.push(escaped),
                Some(other) => return refuse(format!("invalid escape sequence: \\{other}")),
                None => return refuse("invalid escape sequence: \\".to_owned()),
            },
            // The original prints the number of the character.
            ',' | '=' => return refuse(format!("unescaped character in value: {}", c as u32)),
            c => out.push(c),
        }
    }
    Ok(out)
}
