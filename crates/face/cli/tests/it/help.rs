//! `--help`: examples of every command, output formats, and no flag without effect.

use clap::{Command, CommandFactory, Parser};
use mainstay_cli::args::Arguments;
use mainstay_cli::upstream;

/// Every command with its full name, the program itself first.
fn commands() -> Vec<(String, Command)> {
    fn walk(command: &Command, above: &str, all: &mut Vec<(String, Command)>) {
        let name = format!("{above} {}", command.get_name()).trim_start().to_owned();
        all.push((name.clone(), command.clone()));
        for child in command.get_subcommands().filter(|subcommand| subcommand.get_name() != "help")
        {
            walk(child, &name, all);
        }
    }
    let mut root = Arguments::command();
    root.build();
    let mut all = Vec::new();
    walk(&root, "", &mut all);
    all
}

/// The command lines of this program in a help text.
fn examples(help: &str) -> Vec<Vec<String>> {
    let lines = help
        .lines()
        .filter_map(|line| line.split_once("mainstay ").filter(|_| line.starts_with("  ")));
    lines
        .filter(|(before, _)| before.trim().is_empty() || before.trim() == "source <(")
        .map(|(_, rest)| {
            // Without shell syntax and comments.
            let ends = [" #", " | ", " > ", ")"].iter().filter_map(|end| rest.find(end));
            let end = ends.min().unwrap_or(rest.len());
            rest[..end].split_whitespace().map(str::to_owned).collect()
        })
        .collect()
}

#[test]
fn every_command_has_examples_in_its_help_that_parse() {
    for (name, mut command) in commands() {
        for help in [command.render_help().to_string(), command.render_long_help().to_string()] {
            assert!(help.contains("Examples:\n"), "{name} has no examples:\n{help}");
            let (_, below) = help.split_once("Examples:\n").unwrap();
            let examples = examples(below);
            assert!(!examples.is_empty(), "{name} has no examples:\n{help}");
            for words in examples {
                let typed = format!("mainstay {}", words.join(" "));
                assert!(typed.starts_with(&name), "`{typed}` is no example of {name}");
                // The rest is for the parser of `opm`, whose crate tests it.
                if words.first().is_some_and(|first| first == "opm") {
                    continue;
                }
                let all = std::iter::once("mainstay").chain(words.iter().map(String::as_str));
                if let Err(error) = Arguments::try_parse_from(all) {
                    panic!("`{typed}` in the help of {name}: {error}");
                }
            }
        }
    }
}

#[test]
fn examples_of_opm_parse_in_its_own_parser() {
    let helps =
        commands().into_iter().map(|(_, mut command)| command.render_long_help().to_string());
    let lines: Vec<Vec<String>> = helps.flat_map(|help| examples(&help)).collect();
    let of_opm: Vec<&[String]> = lines
        .iter()
        .filter_map(|words| words.split_first().filter(|(first, _)| *first == "opm"))
        .map(|(_, words)| words)
        .collect();
    assert!(of_opm.len() > 2, "{of_opm:?}");
    for words in of_opm {
        assert_eq!(mainstay_opm::check(words), Ok(()), "{words:?}");
    }
}

#[test]
fn commands_in_the_help_can_be_pasted() {
    for (name, mut command) in commands() {
        let help = command.render_long_help().to_string();
        // As clap escapes doc comments.
        assert!(!help.contains("\\ ") && !help.contains(",\\"), "{name}:\n{help}");
    }
}

/// Commands without data as output, and the reason.
const NO_DATA: [(&str, &str); 5] = [
    ("mainstay demo", "it tells a story"),
    ("mainstay up", "it runs until it is asked to end; its log has formats of its own"),
    ("mainstay run", "it runs until it is asked to end; its log has formats of its own"),
    ("mainstay completion", "it prints a script"),
    ("mainstay opm", "its formats are upstream's"),
];

#[test]
fn every_command_that_prints_data_prints_it_as_json_and_as_yaml() {
    let all = commands();
    for (name, command) in &all {
        if command.has_subcommands() || NO_DATA.iter().any(|(path, _)| path == name) {
            continue;
        }
        let output = command.get_arguments().find(|argument| argument.get_long() == Some("output"));
        let output = output.unwrap_or_else(|| panic!("{name} has no --output"));
        assert_eq!(output.get_short(), Some('o'), "{name}");
        let formats: Vec<String> =
            output.get_possible_values().iter().map(|value| value.get_name().to_owned()).collect();
        for format in ["json", "yaml"] {
            assert!(
                formats.iter().any(|value| value == format),
                "{name} has no -o {format}: {formats:?}"
            );
        }
    }
    for (name, why) in NO_DATA {
        assert!(all.iter().any(|(path, _)| path == name), "{name} is gone ({why})");
    }
}

#[test]
fn flags_without_effect_are_accepted_hidden_and_documented_on_one_page() {
    let all = commands();
    let (_, run) = all.iter().find(|(name, _)| name == "mainstay run").unwrap();
    let help = run.clone().render_long_help().to_string();
    assert!(!help.contains("No effect"), "{help}");
    assert!(help.lines().count() < 225, "{} lines", help.lines().count());
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../docs/command-line.md");
    let page = std::fs::read_to_string(page).unwrap();
    let mut rows = Vec::new();
    for (flag, why) in upstream::without_effect() {
        let argument =
            run.get_arguments().find(|argument| argument.get_long() == Some(flag)).unwrap();
        assert!(argument.is_hide_set(), "--{flag}");
        assert!(!help.contains(&format!("--{flag} ")), "--{flag} is in the help");
        let takes = argument.get_num_args().is_some_and(|range| range.min_values() > 0);
        let words = if takes {
            vec!["mainstay".to_owned(), "run".to_owned(), format!("--{flag}"), "x".to_owned()]
        } else {
            vec!["mainstay".to_owned(), "run".to_owned(), format!("--{flag}")]
        };
        Arguments::try_parse_from(words).unwrap();
        rows.push(format!("| `--{flag}` | {why} |"));
    }
    let missing: Vec<&String> = rows.iter().filter(|row| !page.contains(&***row)).collect();
    assert!(missing.is_empty(), "docs/command-line.md lacks:\n{missing:#?}");
    let listed = page.lines().filter(|line| line.starts_with("| `--")).count();
    assert_eq!(listed, rows.len(), "docs/command-line.md lists flags that are not there");
}

#[test]
fn every_exit_code_is_documented() {
    use mainstay_command::exit::ExitStatus;
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../docs/command-line.md");
    let page = std::fs::read_to_string(page).unwrap();
    for exit in [
        ExitStatus::Done,
        ExitStatus::Failed,
        ExitStatus::Usage,
        ExitStatus::Unresolved,
        ExitStatus::Changes,
    ] {
        let row = format!("| {} |", exit as u8);
        assert_eq!(page.matches(&row).count(), 1, "{exit:?}");
    }
}
