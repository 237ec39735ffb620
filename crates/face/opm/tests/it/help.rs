//! Examples of `mainstay opm` in the help of `mainstay`: `opm` can parse each of them.

use clap::{Command, CommandFactory};
use mainstay_cli::args::Arguments;

/// The long help of a command and of all its sub-commands.
fn helps(mut command: Command) -> Vec<String> {
    let mut all = vec![command.render_long_help().to_string()];
    all.extend(command.get_subcommands().cloned().flat_map(helps));
    all
}

#[test]
fn every_example_of_opm_parses_without_an_error() {
    let helps = helps(Arguments::command());
    let lines = helps.iter().flat_map(|help| help.lines());
    let examples: Vec<&str> =
        lines.filter_map(|line| line.trim_start().strip_prefix("mainstay opm ")).collect();
    assert!(examples.len() > 2, "{examples:?}");
    for example in examples {
        // The shell reads the rest of the line.
        let ends = [" #", " | ", " > "].iter().filter_map(|end| example.find(end));
        let example = &example[..ends.min().unwrap_or(example.len())];
        let words: Vec<String> = example.split_whitespace().map(str::to_owned).collect();
        assert_eq!(mainstay_opm::check(&words), Ok(()), "{example}");
    }
}
