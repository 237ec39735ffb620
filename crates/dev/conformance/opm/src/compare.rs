//! Comparison of outputs, errors and files.

use super::case::Case;
use super::message;
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::fmt::Write;

/// The part of an output that is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// Every byte.
    Bytes,
    /// Flags and defaults: descriptions are our own.
    Help,
    /// Shell completions and the directive to the shell, without their descriptions.
    Candidates,
    /// That the output is not empty: the script is our own.
    Script,
    /// Everything except the program's version.
    Version,
}

fn kind(case: &Case, recorded: &str) -> Kind {
    let word = |at: usize| {
        case.arguments.iter().filter(|word| !word.starts_with("--")).nth(at).map(String::as_str)
    };
    let shells = ["bash", "fish", "powershell", "zsh"];
    if recorded.lines().any(|line| line == "Usage:") {
        Kind::Help
    } else if word(0).is_some_and(|word| word.starts_with("__complete")) {
        Kind::Candidates
    } else if word(0) == Some("completion") && word(1).is_some_and(|shell| shells.contains(&shell))
    {
        Kind::Script
    } else if recorded.starts_with("Version: version.Version{") {
        Kind::Version
    } else {
        Kind::Bytes
    }
}

/// The difference between our output and the recorded ones; none if it equals one of them.
pub(super) fn output(case: &Case, ours: &str) -> Option<String> {
    let mut first = None;
    for recorded in &case.outputs {
        let kind = kind(case, recorded);
        let (recorded, ours) = (comparable(kind, recorded), comparable(kind, ours));
        if recorded == ours {
            return None;
        }
        first.get_or_insert_with(|| difference(&recorded, &ours));
    }
    // Without a recorded output, nothing is compared.
    first
}

/// The difference between our output and a recorded SHA-256.
pub(super) fn digest(recorded: &str, ours: &[u8]) -> Option<String> {
    let hash = sha256(ours);
    (hash != recorded).then(|| format!("{} bytes with SHA-256 {hash}, not {recorded}", ours.len()))
}

/// The SHA-256 in hexadecimal digits.
pub(super) fn sha256(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().fold(String::new(), |mut text, byte| {
        // Writing to a string cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// The difference between the recorded errors and our standard error.
pub(super) fn error(recorded: &[String], stderr: &str) -> Option<String> {
    let ours = message::extract(stderr);
    let agrees = match &ours {
        None => recorded.is_empty(),
        Some(ours) => recorded.iter().any(|error| {
            error == ours || message::sort_branches(error) == message::sort_branches(ours)
        }),
    };
    let first = recorded.first().map_or("(none)", String::as_str);
    (!agrees).then(|| format!("error: {}", difference(first, ours.as_deref().unwrap_or("(none)"))))
}

/// The difference between the recorded files and ours.
pub(super) fn files<T: PartialEq>(
    recorded: &BTreeMap<String, T>,
    ours: &BTreeMap<String, T>,
) -> Option<String> {
    let names = recorded.keys().chain(ours.keys());
    let differs = |name: &&String| recorded.get(*name) != ours.get(*name);
    let which = names.filter(differs).min()?;
    let what = match (recorded.contains_key(which), ours.contains_key(which)) {
        (true, true) => "has other content",
        (true, false) => "is not there",
        _ => "is there",
    };
    Some(format!("files: ours: {which} {what}"))
}

fn comparable(kind: Kind, output: &str) -> String {
    match kind {
        Kind::Bytes => output.to_owned(),
        Kind::Help => flags(output),
        Kind::Candidates => {
            let names = output.lines().map(|line| line.split('\t').next().unwrap_or_default());
            names.collect::<Vec<_>>().join("\n")
        }
        Kind::Script => format!("something: {}", !output.is_empty()),
        Kind::Version => {
            let end = output.find(", GitCommit").unwrap_or(0);
            format!("{}…{}", &output[..output.find('"').unwrap_or(0)], &output[end..])
        }
    }
}

/// The flags of a help text, one per line: section, letter, name, type, default.
fn flags(help: &str) -> String {
    let mut section = "";
    let mut found = Vec::new();
    for line in help.lines() {
        let text = line.trim_start();
        if !line.starts_with(' ') {
            section = if line.ends_with("Flags:") { line } else { "" };
        } else if !section.is_empty()
            && (text.starts_with("--")
                || text.get(2..).is_some_and(|rest| rest.starts_with(", --")))
        {
            let end = text.find("   ").unwrap_or(text.len());
            let default = text.rfind("(default \"").map_or("", |at| &text[at..]);
            found.push(format!("{section} {} {default}", &text[..end]));
        }
    }
    found.join("\n")
}

/// The first line that differs.
pub(super) fn difference(recorded: &str, ours: &str) -> String {
    let mut pairs = recorded.split('\n').zip(ours.split('\n'));
    let at = pairs.position(|(recorded, ours)| recorded != ours);
    let at = at.unwrap_or(recorded.split('\n').count().min(ours.split('\n').count()));
    let line = |text: &str| format!("{:?}", text.split('\n').nth(at).unwrap_or("(end)"));
    format!("line {}: recorded {}, ours {}", at + 1, line(recorded), line(ours))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn help_is_compared_by_its_flags() {
        let one = "Words\n\nUsage:\n  opm x [flags]\n\nFlags:\n  -h, --help            help\n  -o, --output string   some (json|yaml) (default \"json\")\n\nGlobal Flags:\n      --use-http   x\n";
        let other = one.replace("Words", "Other").replace("some", "any other");
        assert_eq!(flags(one), flags(&other));
        assert_ne!(flags(one), flags(&one.replace("\"json\"", "\"yaml\"")));
        assert_eq!(flags(one).lines().count(), 3);
    }
}
