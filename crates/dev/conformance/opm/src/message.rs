//! Error messages: extracts them from standard error, and sorts the branches of error trees.

/// The error message in standard error: that of the fatal line of the structured log, of the line
/// of the plain log, or the text after `Error: `.
pub(super) fn extract(stderr: &str) -> Option<String> {
    for (at, line) in lines(stderr) {
        if let Some(message) = line.split_once(" level=fatal msg=").map(|(_, message)| message) {
            return Some(unquote(message));
        }
        if line.starts_with("Error: ") {
            let text = &stderr[at + "Error: ".len()..];
            let end = text.find("\nUsage:\n").unwrap_or(text.len());
            return Some(text[..end].trim_end_matches('\n').to_owned());
        }
        if has_date(line) {
            return Some(stderr[at + DATE.len()..].trim_end_matches('\n').to_owned());
        }
    }
    None
}

fn lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut at = 0;
    text.split_inclusive('\n').map(move |line| {
        let start = at;
        at += line.len();
        (start, line.trim_end_matches('\n'))
    })
}

const DATE: &str = "0000/00/00 00:00:00 ";

fn has_date(line: &str) -> bool {
    line.len() >= DATE.len()
        && line.bytes().zip(DATE.bytes()).all(|(byte, pattern)| match pattern {
            b'0' => byte.is_ascii_digit(),
            other => byte == other,
        })
}

/// The value of a Go string literal; unquoted text stands for itself.
fn unquote(text: &str) -> String {
    let Some(inner) = text.strip_prefix('"') else {
        return text.split(' ').next().unwrap_or_default().to_owned();
    };
    let mut bytes = Vec::new();
    let mut rest = inner.chars();
    while let Some(c) = rest.next() {
        let push = |bytes: &mut Vec<u8>, c: char| {
            bytes.extend(c.encode_utf8(&mut [0; 4]).bytes());
        };
        match c {
            '"' => break,
            '\\' => match rest.next() {
                Some('n') => push(&mut bytes, '\n'),
                Some('t') => push(&mut bytes, '\t'),
                Some('r') => push(&mut bytes, '\r'),
                Some('a') => push(&mut bytes, '\x07'),
                Some('b') => push(&mut bytes, '\x08'),
                Some('f') => push(&mut bytes, '\x0c'),
                Some('v') => push(&mut bytes, '\x0b'),
                Some(kind @ ('x' | 'u' | 'U')) => {
                    let mut code = |digits: usize| {
                        let hex: String = rest.by_ref().take(digits).collect();
                        u32::from_str_radix(&hex, 16).unwrap_or(0xfffd)
                    };
                    match kind {
                        'x' => bytes.push(u8::try_from(code(2)).unwrap_or(b'?')),
                        'u' => push(&mut bytes, char::from_u32(code(4)).unwrap_or('\u{fffd}')),
                        _ => push(&mut bytes, char::from_u32(code(8)).unwrap_or('\u{fffd}')),
                    }
                }
                Some(other) => push(&mut bytes, other),
                None => {}
            },
            c => push(&mut bytes, c),
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// The error with the branches of each tree node sorted by their text. Messages without a tree were
/// recorded without the leading blanks of their lines.
pub(super) fn sort_branches(message: &str) -> String {
    let lines: Vec<&str> = message.split('\n').collect();
    let Some(first) = lines.iter().position(|line| branch(line).is_some()) else {
        return lines.iter().map(|line| line.trim_start()).collect::<Vec<_>>().join("\n");
    };
    let mut nodes = lines[..first].join("\n");
    let mut at = first;
    let mut parsed = Vec::new();
    while at < lines.len() {
        let (depth, text) = branch(lines[at]).unwrap_or((0, lines[at]));
        let mut text = text.to_owned();
        at += 1;
        // Further lines of a text have no branch of their own.
        while at < lines.len() && branch(lines[at]).is_none() {
            text = text + "\n" + lines[at].trim_start_matches(['│', ' ']);
            at += 1;
        }
        parsed.push((depth, text));
    }
    for line in render(&parsed, 0) {
        nodes = nodes + "\n" + &line;
    }
    nodes
}

/// The depth and text of a line that begins a branch.
fn branch(line: &str) -> Option<(usize, &str)> {
    let mut rest = line;
    let mut depth = 0;
    loop {
        if let Some(text) = rest.strip_prefix("├── ").or_else(|| rest.strip_prefix("└── "))
        {
            return Some((depth, text));
        }
        rest = rest.strip_prefix("│   ").or_else(|| rest.strip_prefix("    "))?;
        depth += 1;
    }
}

fn render(nodes: &[(usize, String)], depth: usize) -> Vec<String> {
    let mut groups: Vec<(&str, Vec<String>)> = Vec::new();
    let mut at = 0;
    while at < nodes.len() {
        let below = nodes[at + 1..].iter().take_while(|(inner, _)| *inner > depth).count();
        groups.push((&nodes[at].1, render(&nodes[at + 1..=at + below], depth + 1)));
        at += below + 1;
    }
    groups.sort();
    let mut lines = Vec::new();
    for (text, below) in groups {
        lines.push(format!("{}─ {text}", "  ".repeat(depth)));
        lines.extend(below);
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_are_extracted_from_all_log_formats() {
        for (stderr, message) in [
            ("", None),
            ("a warning\n", None),
            ("time=\"t\" level=fatal msg=plain\n", Some("plain")),
            (
                "w\ntime=\"t\" level=fatal msg=\"a\\n└── \\\"b\\\" \\x41\\u00e9\"\n",
                Some("a\n└── \"b\" Aé"),
            ),
            ("w\nError: a\nb\nUsage:\n  opm\n\n", Some("a\nb")),
            ("2026/01/02 03:04:05 a\nb\n", Some("a\nb")),
        ] {
            assert_eq!(extract(stderr).as_deref(), message, "{stderr}");
        }
    }

    #[test]
    fn error_tree_branches_are_sorted() {
        let one = "top:\n├── b:\n│   ├── y\n│   └── x\n└── a:\n    └── z\n       more";
        let other = "top:\n├── a:\n│   └── z\n│      more\n└── b:\n    ├── x\n    └── y";
        assert_eq!(sort_branches(one), sort_branches(other));
        assert_ne!(sort_branches(one), sort_branches("top:\n├── b:\n└── a:"));
        assert_eq!(sort_branches("no tree"), "no tree");
    }
}
