//! The source text of a call, so that a failed wait says what it waited for.

use std::panic::Location;
use std::path::Path;

/// The maximum number of lines of a call.
const MAX_LINES: usize = 30;

/// The lines of a call in its source file; a note if the file cannot be read.
pub(crate) fn of_call(caller: &Location<'_>) -> String {
    // The compiler records paths from the root of the workspace.
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..");
    match std::fs::read_to_string(root.join(caller.file())) {
        Ok(text) => call_at(&text, caller.line()),
        Err(error) => format!("(the source cannot be shown: {error})"),
    }
}

/// The lines from a line, counted from one, to the end of the call that starts there.
fn call_at(text: &str, line: u32) -> String {
    let start = usize::try_from(line).unwrap_or(usize::MAX).saturating_sub(1);
    let mut open = 0_i32;
    let mut lines = Vec::new();
    for line in text.lines().skip(start).take(MAX_LINES) {
        lines.push(line);
        open += line.chars().map(weight).sum::<i32>();
        if open <= 0 {
            break;
        }
    }
    let margin = |line: &&str| line.len() - line.trim_start().len();
    let left = lines.iter().filter(|line| !line.trim().is_empty()).map(margin).min();
    let indent = |line: &&str| format!("    {}", line.get(left.unwrap_or(0)..).unwrap_or(""));
    lines.iter().map(indent).collect::<Vec<_>>().join("\n")
}

/// How a character changes the number of open brackets.
fn weight(char: char) -> i32 {
    match char {
        '(' | '[' | '{' => 1,
        ')' | ']' | '}' => -1,
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn call_ends_with_its_last_bracket() {
        let text = "fn test() {\n    cluster\n        .wait_for(&POD, |pod| {\n            \
                    pod.phase() == \"Running\"\n        })\n        .await;\n}\n";
        let expected = "    .wait_for(&POD, |pod| {\n        pod.phase() == \"Running\"\n    })";
        assert_eq!(call_at(text, 3), expected);
        assert_eq!(call_at("a\n  wait(1).await;\nb\n", 2), "    wait(1).await;");
    }

    #[test]
    fn source_of_a_call_is_found_from_the_root_of_the_workspace() {
        #[track_caller]
        fn here() -> String {
            of_call(Location::caller())
        }
        let text = here();
        assert_eq!(text, "    let text = here();");
    }
}
