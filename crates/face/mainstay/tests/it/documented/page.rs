//! Documentation pages and the commands in them.

use std::path::{Path, PathBuf};

/// The root of the project.
pub(super) const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../..");

/// Programs at the beginning of a command block. Other blocks show output or content.
const PROGRAMS: [&str; 19] = [
    "mainstay",
    "opm",
    "operator-sdk",
    "kubectl",
    "cargo",
    "curl",
    "grpcurl",
    "skopeo",
    "podman",
    "docker",
    "openssl",
    "python3",
    "cp",
    "ln",
    "mkdir",
    "export",
    "jq",
    "bash",
    "cat",
];

/// A shell statement of a page.
#[derive(Clone, Debug)]
pub(super) struct Statement {
    /// The page's path from the root.
    pub(super) page: String,
    /// Its line, from one.
    pub(super) line: usize,
    /// Its text.
    pub(super) text: String,
    /// The output on the page, if it has one.
    pub(super) output: Option<String>,
    /// Whether it is a mention in a sentence, which may be only the beginning of a command.
    pub(super) is_mention: bool,
}

/// The pages that have commands: the README and the documentation.
pub(super) fn pages() -> Vec<String> {
    let mut all = vec!["README.md".to_owned()];
    let mut folders = vec![PathBuf::from("docs")];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(Path::new(ROOT).join(&folder)).expect("a folder of docs") {
            let path = folder.join(entry.expect("an entry").file_name());
            if Path::new(ROOT).join(&path).is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "md") {
                all.push(path.to_str().expect("a name").to_owned());
            }
        }
    }
    all.sort();
    all
}

/// The statements of a page, in order.
pub(super) fn statements(page: &str) -> Vec<Statement> {
    let text = std::fs::read_to_string(Path::new(ROOT).join(page)).expect("the page");
    read(page, &text)
}

/// Reads a page.
pub(super) fn read(page: &str, text: &str) -> Vec<Statement> {
    let mut all = Vec::new();
    let mut block: Option<(bool, usize, Vec<&str>)> = None;
    for (number, line) in text.lines().enumerate() {
        let fence = line.trim_start().strip_prefix("```");
        match (&mut block, fence) {
            (None, Some(kind)) => {
                block = Some((matches!(kind, "" | "sh" | "bash"), number + 2, Vec::new()));
            }
            (Some((is_shell, prefix, lines)), Some(_)) => {
                if *is_shell {
                    all.extend(statements_of_block(page, *prefix, lines));
                }
                block = None;
            }
            (Some((_, _, lines)), None) => lines.push(line),
            (None, None) => all.extend(mentions_of_line(page, number + 1, line)),
        }
    }
    all
}

/// The statements of a block between fences.
fn statements_of_block(page: &str, prefix: usize, lines: &[&str]) -> Vec<Statement> {
    let statement = |line: usize, text: String, output| Statement {
        page: page.to_owned(),
        line: prefix + line,
        text,
        output,
        is_mention: false,
    };
    let mut all: Vec<Statement> = Vec::new();
    if lines.iter().any(|line| line.starts_with("$ ")) {
        for (number, line) in lines.iter().enumerate() {
            if let Some(adapted_statement) = line.strip_prefix("$ ") {
                all.push(statement(number, adapted_statement.to_owned(), Some(String::new())));
            } else if let Some(last) = all.last_mut() {
                let output = last.output.get_or_insert_default();
                output.push_str(line);
                output.push('\n');
            }
        }
        return all;
    }
    let first = lines.iter().flat_map(|line| line.split_whitespace()).next().unwrap_or_default();
    let is_path = first.contains('/') && !first.ends_with('/') && !first.contains(':');
    if !(PROGRAMS.contains(&first) || is_path || first.contains('=')) {
        return all;
    }
    let mut number = 0;
    while number < lines.len() {
        let from = number;
        let mut text = lines[number].to_owned();
        while number + 1 < lines.len() && continues_on_next_line(&text) {
            number += 1;
            text.push('\n');
            text.push_str(lines[number]);
        }
        number += 1;
        if !text.trim().is_empty() && !text.trim_start().starts_with('#') {
            all.push(statement(from, text, None));
        }
    }
    all
}

/// Whether a statement continues on the next line.
fn continues_on_next_line(text: &str) -> bool {
    if let Some((_, word)) = text.lines().next().unwrap_or_default().split_once("<<") {
        let word =
            word.trim_matches(|character: char| character == '\'' || character == '"').trim();
        return text.lines().skip(1).all(|line| line != word);
    }
    super::shell::is_open(text) || text.ends_with("&&") || text.ends_with('\\')
}

/// The commands of this program in backticks in a line of a paragraph or a table.
fn mentions_of_line(page: &str, line: usize, text: &str) -> Vec<Statement> {
    let spans = text.split('`').skip(1).step_by(2);
    let named = spans.filter(|span| {
        let mut words = span.split_whitespace();
        words.next().is_some_and(super::shell::is_ours) && words.next().is_some()
    });
    named
        .map(|span| Statement {
            page: page.to_owned(),
            line,
            // Tables escape bars.
            text: span.replace("\\|", "|"),
            output: None,
            is_mention: true,
        })
        .collect()
}
