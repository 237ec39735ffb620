//! Help and usage texts, in cobra's layout, which scripts and people know.

use super::command::{Command, flags_of, path_name};
use super::flags::{Flag, FlagKind};
use super::{examples, go};

/// The help of the last command of a path.
pub(super) fn help(path: &[&Command]) -> String {
    let Some(command) = path.last() else { return String::new() };
    let about = if command.long.is_empty() { command.short } else { command.long };
    let about = about.trim_end();
    let gap = if about.is_empty() { "" } else { "\n\n" };
    let mut text = format!("{about}{gap}{}", usage(path));
    let examples = examples::examples_of(&path_name(path));
    if !examples.is_empty() {
        go::push(&mut text, format_args!("\nExamples:\n  {}\n", examples.join("\n  ")));
    }
    text
}

/// The usage of the last command of a path.
pub(super) fn usage(path: &[&Command]) -> String {
    let Some((command, above)) = path.split_last() else { return String::new() };
    let name = path_name(path);
    let all = flags_of(path, true);
    let select = |from_above: bool| -> Vec<&Flag> {
        let wanted = |(flag, inherited): &&(Flag, bool)| !flag.hidden && *inherited == from_above;
        all.iter().filter(wanted).map(|(flag, _)| flag).collect()
    };
    let (local, inherited) = (select(false), select(true));
    let has_children = command.children.iter().any(Command::is_visible);

    let mut text = "Usage:".to_owned();
    if command.action.is_some() {
        let prefix = if above.is_empty() { String::new() } else { path_name(above) + " " };
        let flags = if command.flags_in_usage { " [flags]" } else { "" };
        go::push(&mut text, format_args!("\n  {prefix}{}{flags}", command.usage));
    }
    if has_children {
        go::push(&mut text, format_args!("\n  {name} [command]"));
    }
    if !command.aliases.is_empty() {
        go::push(
            &mut text,
            format_args!("\n\nAliases:\n  {}, {}", command.name(), command.aliases.join(", ")),
        );
    }
    if has_children {
        text += "\n\nAvailable Commands:";
        let widest = command.children.iter().map(|child| child.name().len()).max();
        let width = widest.unwrap_or(0).max(11);
        for child in command.children.iter().filter(|child| child.is_visible()) {
            go::push(&mut text, format_args!("\n  {:<width$} {}", child.name(), child.short));
        }
    }
    for (title, flags) in [("Flags", local), ("Global Flags", inherited)] {
        if !flags.is_empty() {
            go::push(&mut text, format_args!("\n\n{title}:\n{}", list(&flags)));
        }
    }
    if has_children {
        let more = "--help\" for more information about a command.";
        go::push(&mut text, format_args!("\n\nUse \"{name} [command] {more}"));
    }
    text + "\n"
}

/// One line for each flag, with aligned texts.
fn list(flags: &[&Flag]) -> String {
    let left: Vec<String> = flags.iter().map(|flag| head(flag)).collect();
    let width = left.iter().map(String::len).max().unwrap_or(0) + 3;
    let lines = left.iter().zip(flags).map(|(head, flag)| {
        let indent = format!("\n{}", " ".repeat(width));
        let line = format!("{head:<width$}{}", flag.text.replace('\n', &indent));
        line + &default(flag)
    });
    lines.collect::<Vec<_>>().join("\n").trim_end().to_owned()
}

fn head(flag: &Flag) -> String {
    let letter = flag.short.map_or_else(|| "    ".to_owned(), |short| format!("-{short}, "));
    let kind = match (flag.value, flag.kind) {
        ("", FlagKind::Switch) => String::new(),
        ("", FlagKind::Text) => " string".to_owned(),
        ("", FlagKind::List) => " strings".to_owned(),
        ("", FlagKind::Pairs) => " stringToString".to_owned(),
        (value, _) => format!(" {value}"),
    };
    format!("  {letter}--{}{kind}", flag.name)
}

fn default(flag: &Flag) -> String {
    match flag.default {
        "" if flag.kind == FlagKind::Pairs => " (default [])".to_owned(),
        "" => String::new(),
        default => format!(" (default {})", go::quote(default)),
    }
}
