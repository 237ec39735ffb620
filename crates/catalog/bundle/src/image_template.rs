//! Image reference templates: texts with `{{.Package}}`, `{{.Name}}` and `{{.Version}}`.
//!
//! Upstream accepts the whole template language of Go. In Mainstay a template is text with these
//! fields, blanks inside the braces, comments, and the trim markers `{{-` and `-}}`. Anything else
//! is refused with a message of our own.

use mainstay_gocompat::quote;

/// A parsed template.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImageTemplate {
    parts: Vec<Part>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Part {
    Text(String),
    /// A field, with the line and column of Go's messages.
    Field {
        name: String,
        line: usize,
        column: usize,
    },
}

/// Why a template cannot be parsed or filled; in upstream's words where upstream refuses it too.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ImageTemplateError {
    /// A comment does not end.
    #[error("template: image-ref-template:{line}: unclosed comment")]
    UnclosedComment {
        /// The line, from 1.
        line: usize,
    },
    /// Text stands between the end of a comment and the closing braces.
    #[error("template: image-ref-template:{line}: comment ends before closing delimiter")]
    CommentDelimiter {
        /// The line, from 1.
        line: usize,
    },
    /// Braces are not closed.
    #[error("template: image-ref-template:{line}: unclosed action")]
    UnclosedAction {
        /// The line, from 1.
        line: usize,
    },
    /// Braces are empty.
    #[error("template: image-ref-template:{line}: missing value for command")]
    MissingValue {
        /// The line, from 1.
        line: usize,
    },
    /// Braces hold something else than a field; upstream accepts some of it.
    #[error(
        "template: image-ref-template:{line}: {} is not supported here: only {{{{.Package}}}}, \
         {{{{.Name}}}} and {{{{.Version}}}} are",
        quote(action)
    )]
    UnsupportedAction {
        /// The line, from 1.
        line: usize,
        /// The text in the braces.
        action: String,
    },
    /// The field does not exist; found when the template is filled.
    #[error(
        "template: image-ref-template:{line}:{column}: executing \"image-ref-template\" at \
         <.{field}>: can't evaluate field {field} in type action.imageReferenceTemplateData"
    )]
    UnknownField {
        /// The line, from 1.
        line: usize,
        /// The column, as Go counts.
        column: usize,
        /// The field.
        field: String,
    },
}

impl ImageTemplate {
    /// Parses a template.
    ///
    /// # Errors
    /// If braces or comments are not closed, or hold something else than a field.
    pub fn parse(text: &str) -> Result<Self, ImageTemplateError> {
        let mut parts = Vec::new();
        let mut at = 0;
        let mut trim = false;
        while at < text.len() {
            let rest = &text[at..];
            let length = rest.find("{{").unwrap_or(rest.len());
            let mut plain = &rest[..length];
            if trim {
                plain = plain.trim_start_matches(BLANKS);
            }
            let Some(action) = rest.get(length + 2..) else {
                push_text(&mut parts, plain);
                break;
            };
            let start = at + length;
            let line = 1 + text[..start].matches('\n').count();
            let trims_before = action.starts_with('-') && action[1..].starts_with(BLANKS);
            if trims_before {
                plain = plain.trim_end_matches(BLANKS);
            }
            push_text(&mut parts, plain);
            let skipped = if trims_before { 2 } else { 0 };
            let inner = &action[skipped..];
            if let Some(comment) = inner.strip_prefix("/*") {
                let Some((_, after)) = comment.split_once("*/") else {
                    return Err(ImageTemplateError::UnclosedComment { line });
                };
                let (closing, trims) = match after.trim_start_matches(BLANKS) {
                    tail if tail.starts_with("-}}") && tail.len() < after.len() => (tail, true),
                    _ => (after, false),
                };
                let length = if trims { 3 } else { 2 };
                if !closing.starts_with(if trims { "-}}" } else { "}}" }) {
                    return Err(ImageTemplateError::CommentDelimiter { line });
                }
                trim = trims;
                at = text.len() - closing.len() + length;
                continue;
            }
            let Some(end) = inner.find("}}") else {
                return Err(ImageTemplateError::UnclosedAction { line });
            };
            let mut body = &inner[..end];
            at = start + 2 + skipped + end + 2;
            trim = body.strip_suffix('-').is_some_and(|body| body.ends_with(BLANKS));
            if trim {
                body = &body[..body.len() - 1];
            }
            if body.contains('\n') && body.trim().is_empty() {
                return Err(ImageTemplateError::MissingValue { line });
            }
            let trimmed = body.trim_matches(BLANKS);
            if trimmed.is_empty() {
                return Err(ImageTemplateError::MissingValue { line });
            }
            match trimmed.strip_prefix('.') {
                Some(name) if is_name(name) => {
                    let before = body.len() - body.trim_start_matches(BLANKS).len();
                    let position = start + 2 + skipped + before;
                    let line_start = text[..position].rfind('\n').map_or(0, |at| at + 1);
                    // Go counts from the end of the line before, in bytes.
                    let column = position - line_start;
                    parts.push(Part::Field { name: name.to_owned(), line, column });
                }
                _ => {
                    let action = trimmed.to_owned();
                    return Err(ImageTemplateError::UnsupportedAction { line, action });
                }
            }
        }
        Ok(Self { parts })
    }

    /// The image reference for a bundle.
    ///
    /// # Errors
    /// If the template has an unknown field ([`ImageTemplateError::UnknownField`]).
    pub fn fill(
        &self,
        package: &str,
        name: &str,
        version: &str,
    ) -> Result<String, ImageTemplateError> {
        let mut out = String::new();
        for part in &self.parts {
            match part {
                Part::Text(text) => out.push_str(text),
                Part::Field { name: field, line, column } => out.push_str(match field.as_str() {
                    "Package" => package,
                    "Name" => name,
                    "Version" => version,
                    _ => {
                        let (line, column, field) = (*line, *column, field.clone());
                        return Err(ImageTemplateError::UnknownField { line, column, field });
                    }
                }),
            }
        }
        Ok(out)
    }
}

/// What Go's templates trim.
const BLANKS: [char; 4] = [' ', '\t', '\r', '\n'];

fn push_text(parts: &mut Vec<Part>, text: &str) {
    if !text.is_empty() {
        parts.push(Part::Text(text.to_owned()));
    }
}

fn is_name(text: &str) -> bool {
    text.chars().all(|c| c == '_' || c.is_alphanumeric())
        && text.chars().next().is_some_and(|first| first == '_' || first.is_alphabetic())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_begin_and_end_as_in_go() {
        let filled = |text: &str| ImageTemplate::parse(text)?.fill("tea", "tea.v1", "1.0.0");
        for (text, image) in [
            ("a{{/* c */}}b", "ab"),
            ("a {{- /* c */ -}} b", "ab"),
            ("{{/**/}}{{.Name}}", "tea.v1"),
        ] {
            assert_eq!(filled(text).unwrap(), image, "{text}");
        }
        for (text, message) in [
            ("{{/*/}}", "unclosed comment"),
            ("{{/* c */ }}", "comment ends before closing delimiter"),
            ("{{ /* c */}}", "is not supported here"),
        ] {
            let error = filled(text).unwrap_err().to_string();
            assert!(error.contains(message), "{text}: {error}");
        }
    }
}
