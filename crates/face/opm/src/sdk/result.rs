//! Validation result, as text or as JSON.

use super::super::call::CommandIo;
use super::super::log::{self, Level};
use mainstay_bundle::validate::{ManifestResult, to_older_messages};
use mainstay_gocompat::json::{Html, text_of_bytes};
use std::fmt::Write;

/// All findings, in order.
#[derive(Debug, Default)]
pub(super) struct ValidationResult(Vec<(Level, String)>);

impl ValidationResult {
    /// Adds an error.
    pub(super) fn error(&mut self, message: String) {
        self.0.push((Level::Error, message));
    }

    /// Adds a warning.
    pub(super) fn warning(&mut self, message: String) {
        self.0.push((Level::Warning, message));
    }

    /// Adds the findings of a validator, warnings first.
    pub(super) fn add(&mut self, found: &ManifestResult) {
        for warning in &found.warnings {
            self.warning(to_older_messages(&warning.text()));
        }
        for error in &found.errors {
            self.error(to_older_messages(&error.text()));
        }
    }

    /// Whether there are no errors.
    pub(super) fn passed(&self) -> bool {
        self.0.iter().all(|(level, _)| *level != Level::Error)
    }

    /// The JSON object, with an indent of four.
    pub(super) fn json(&self) -> String {
        let mut text = format!("{{\n    \"passed\": {},\n    \"outputs\": ", self.passed());
        if self.0.is_empty() {
            return text + "null\n}\n";
        }
        for (at, (level, message)) in self.0.iter().enumerate() {
            let before = if at == 0 { "[" } else { "," };
            let level = if *level == Level::Error { "error" } else { "warning" };
            let message = text_of_bytes(message.as_bytes(), Html::Escaped);
            // Writing to a string cannot fail.
            let _ = write!(
                text,
                "{before}\n        {{\n            \"type\": \"{level}\",\n            \"message\": \
                 {message}\n        }}"
            );
        }
        text + "\n    ]\n}\n"
    }

    /// Prints a line of the structured log for each finding, on standard output.
    pub(super) fn print(&self, io: &mut CommandIo<'_>) {
        for (level, message) in &self.0 {
            let line = log::format_entry(io, *level, message, &[]);
            io.print(&line);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_has_an_indent_of_four() {
        let mut result = ValidationResult::default();
        assert_eq!(result.json(), "{\n    \"passed\": true,\n    \"outputs\": null\n}\n");
        result.warning("a <b>".to_owned());
        result.error("c".to_owned());
        insta::assert_snapshot!(result.json(), @r#"
        {
            "passed": false,
            "outputs": [
                {
                    "type": "warning",
                    "message": "a \u003cb\u003e"
                },
                {
                    "type": "error",
                    "message": "c"
                }
            ]
        }
        "#);
    }
}
