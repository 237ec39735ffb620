//! Answers as text: formats, columns, counts, and characters that a terminal must not get.

use clap::ValueEnum;
use serde_json::Value;

/// Formats of answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// Text for people.
    Text,
    /// One JSON value.
    Json,
    /// The same as YAML.
    Yaml,
}

/// Formats a result for users or programs.
pub fn format_output(format: Format, value: &Value, text: impl FnOnce() -> String) -> String {
    match format {
        Format::Text => text(),
        Format::Json => format!("{value:#}\n"),
        Format::Yaml => mainstay_yaml::to_string(value),
    }
}

/// Aligns rows in columns as `kubectl` prints them: no borders, three blanks between.
pub fn columns(head: &[&str], rows: &[Vec<String>]) -> String {
    let mut widths: Vec<usize> = head.iter().map(|cell| cell.chars().count()).collect();
    for row in rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(cell.chars().count());
        }
    }
    let mut out = String::new();
    let head: Vec<String> = head.iter().map(|cell| (*cell).to_owned()).collect();
    for row in std::iter::once(&head).chain(rows) {
        let mut line = String::new();
        for (width, cell) in widths.iter().zip(row) {
            line.push_str(cell);
            line.extend(std::iter::repeat_n(' ', width + 3 - cell.chars().count()));
        }
        out.push_str(line.trim_end());
        out.push('\n');
    }
    out
}

/// Escapes control characters instead of sending them to a terminal.
pub fn escape_controls(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for character in text.chars() {
        if character.is_control() {
            out.extend(character.escape_default());
        } else {
            out.push(character);
        }
    }
    out
}

/// Escapes control characters in each line of a text. Every line then ends with a line feed.
pub fn escape_controls_in_lines(text: &str) -> String {
    text.lines().map(|line| escape_controls(line) + "\n").collect()
}

/// A number and its noun, in singular or plural.
pub fn count(number: usize, what: &str) -> String {
    format!("{number} {what}{}", if number == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_line_up() {
        let rows = vec![
            vec!["a".to_owned(), "Succeeded".to_owned()],
            vec!["longer".to_owned(), "é".to_owned()],
        ];
        insta::assert_snapshot!(columns(&["NAME", "PHASE"], &rows), @"
        NAME     PHASE
        a        Succeeded
        longer   é
        ");
    }
}
