//! Documented commands: the commands of the README and of `docs` run as written. A command that cannot
//! run is parsed by the program's own parser, with a reason.
//!
//! ```text
//! pages ─► statements ─► simple commands ─► parsers: each of our commands exists
//!              └─► plan: run to exit, run until ready, or skipped with a reason
//! ```

mod environment;
mod page;
mod plan;
mod shell;

use clap::Parser;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use mainstay_cli::args::Arguments;
use mainstay_opm as opm;
use page::Statement;
use plan::Treatment;
use std::collections::BTreeSet;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

/// Parses a command as its program does.
fn parse(words: &[String], is_mention: bool) -> Result<(), String> {
    // A mention may leave arguments to the reader.
    let words: Vec<&String> = words.iter().filter(|word| !word.contains('…')).collect();
    let rest =
        |from: usize| words[from..].iter().map(|word| (*word).clone()).collect::<Vec<String>>();
    let other = match words[0].as_str() {
        "opm" => Some(opm::check(&rest(1))),
        "operator-sdk" => Some(opm::sdk::check(&rest(1))),
        _ if words.get(1).is_some_and(|word| *word == "opm") => Some(opm::check(&rest(2))),
        _ => None,
    };
    if let Some(checked) = other {
        // A mention may be only the name of a command.
        let lacks = |message: &String| is_mention && message.contains("received 0");
        let checked = checked.map_err(|error| error.to_string());
        return checked.or_else(|error| if lacks(&error) { Ok(()) } else { Err(error) });
    }
    let Err(error) = Arguments::try_parse_from(&words) else { return Ok(()) };
    let lacks_value =
        error.get(ContextKind::InvalidValue) == Some(&ContextValue::String(String::new()));
    match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => Ok(()),
        ErrorKind::MissingRequiredArgument
        | ErrorKind::MissingSubcommand
        | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand
            if is_mention =>
        {
            Ok(())
        }
        ErrorKind::InvalidValue if is_mention && lacks_value => Ok(()),
        _ => Err(error.to_string()),
    }
}

/// The packages of the workspace, whose programs have the same names.
fn packages() -> BTreeSet<String> {
    let folders = |path: &Path| -> Vec<PathBuf> {
        let all = std::fs::read_dir(path).expect("a folder");
        all.map(|entry| entry.expect("an entry").path()).filter(|path| path.is_dir()).collect()
    };
    let layers = folders(&Path::new(page::ROOT).join("crates"));
    let manifests =
        layers.iter().flat_map(|layer| folders(layer)).map(|folder| folder.join("Cargo.toml"));
    let text = manifests.filter_map(|manifest| std::fs::read_to_string(manifest).ok());
    text.filter_map(|text| {
        let name = text.lines().find_map(|line| line.strip_prefix("name = "))?;
        Some(name.trim_matches('"').to_owned())
    })
    .collect()
}

/// The error of a cargo command, or of a program that cargo has built.
fn cargo_error(words: &[String]) -> Result<(), String> {
    let known = packages();
    if let Some(program) = words[0].strip_prefix("target/release/") {
        return known.contains(program).then_some(()).ok_or("there is no such package".to_owned());
    }
    if words[0] != "cargo" {
        return Ok(());
    }
    for (flag, value) in words.iter().zip(&words[1..]) {
        let is_there = match flag.as_str() {
            "-p" => known.contains(value),
            "--path" => Path::new(page::ROOT).join(value).join("src/main.rs").is_file(),
            _ => true,
        };
        if !is_there {
            return Err(format!("there is no {value}"));
        }
    }
    match words.iter().position(|word| word == "--") {
        Some(at) if words[1] == "run" => {
            let adapted_statement =
                std::iter::once("mainstay".to_owned()).chain(words[at + 1..].iter().cloned());
            parse(&adapted_statement.collect::<Vec<_>>(), false)
        }
        _ => Ok(()),
    }
}

/// The errors of our commands in a statement.
fn parse_errors(statement: &Statement) -> Vec<String> {
    let commands = shell::commands(&statement.text).into_iter();
    commands
        .filter_map(|words| {
            let checked = if shell::is_ours(&words[0]) {
                parse(&words, statement.is_mention)
            } else {
                cargo_error(&words)
            };
            let error = checked.err()?;
            Some(format!("{}:{}: {}\n{error}", statement.page, statement.line, words.join(" ")))
        })
        .collect()
}

#[test]
fn every_command_that_the_documentation_names_exists_with_its_flags() {
    let statements: Vec<Statement> =
        page::pages().iter().flat_map(|page| page::statements(page)).collect();
    assert!(statements.len() > 200, "{} statements were found", statements.len());
    let wrong: Vec<String> = statements.iter().flat_map(parse_errors).collect();
    assert!(wrong.is_empty(), "{} commands do not exist:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn unknown_command_is_found_wherever_a_page_names_it() {
    let text = "As `mainstay serve` does, or `mainstay why` with `-o json`:\n\
        ```\n\
        $ mainstay catalog validate ./x --nosuch\n\
        all is well\n\
        ```\n\
        ```sh\n\
        mkdir a && opm nosuch ./a   # here\n\
        mainstay up --catalog\n\
        cargo run -- nosuch\n\
        cargo install --path crates/nosuch\n\
        target/release/mainstay-nosuch all\n\
        ```\n\
        ```yaml\n\
        mainstay nosuch\n\
        ```\n";
    let found: Vec<String> = page::read("a page", text).iter().flat_map(parse_errors).collect();
    let heads: Vec<&str> = found.iter().filter_map(|failure| failure.lines().next()).collect();
    assert_eq!(
        heads,
        [
            "a page:1: mainstay serve",
            "a page:3: mainstay catalog validate ./x --nosuch",
            "a page:7: opm nosuch ./a",
            "a page:8: mainstay up --catalog",
            "a page:9: cargo run -- nosuch",
            "a page:10: cargo install --path crates/nosuch",
            "a page:11: target/release/mainstay-nosuch all",
        ]
    );
}

/// Runs the statements of a page in order; returns failures and counts.
fn run(page: &str) -> (Vec<String>, [usize; 2]) {
    let environment = environment::Environment::new(page);
    let (mut wrong, mut counts) = (Vec::new(), [0, 0]);
    for statement in page::statements(page).iter().filter(|statement| !statement.is_mention) {
        let treatment = plan::treatment(statement, &environment);
        if let Treatment::Skipped(why) = treatment {
            let adapted_statement = statement.text.lines().next().unwrap_or_default();
            let adapted_statement =
                adapted_statement.split(" #").next().unwrap_or_default().trim_end();
            let line =
                format!("not run: {page}:{}: `{adapted_statement}`: {why}\n", statement.line);
            // One write, so that the reason shows even if the test's output is captured.
            let _ = std::io::stderr().write_all(line.as_bytes());
            counts[1] += 1;
            continue;
        }
        counts[0] += 1;
        if let Err(error) = environment.run(statement, treatment) {
            wrong.push(format!("{page}:{}: {}\n{error}", statement.line, statement.text));
        }
    }
    (wrong, counts)
}

#[test]
fn every_documented_command_runs_or_has_a_reason_not_to() {
    let mut pages = page::pages();
    // Four at a time, as most of each is waiting for other programs; the longest first.
    pages.sort_by_key(|page| std::cmp::Reverse(page::statements(page).len()));
    let left = Mutex::new(pages.iter());
    let results = Mutex::new(Vec::new());
    let next = || left.lock().expect("nobody panics with it").next();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                while let Some(page) = next() {
                    let result = run(page);
                    results.lock().expect("nobody panics with it").push(result);
                }
            });
        }
    });
    let results = results.into_inner().expect("nobody panics with it");
    let sum = |at: usize| results.iter().map(|(_, counts)| counts[at]).sum::<usize>();
    let wrong: Vec<&String> = results.iter().flat_map(|(wrong, _)| wrong).collect();
    let all = wrong.iter().map(|failure| failure.as_str()).collect::<Vec<_>>().join("\n\n");
    assert!(wrong.is_empty(), "{} documented commands fail:\n{all}", wrong.len());
    mainstay_testdata::ran(&format!(
        "{} documented commands, {} others only read, each with its reason",
        sum(0),
        sum(1)
    ));
}

#[test]
fn plan_has_only_documented_statements() {
    let statements: Vec<Statement> =
        page::pages().iter().flat_map(|page| page::statements(page)).collect();
    let stale_entries = plan::stale_entries(&statements);
    assert!(
        stale_entries.is_empty(),
        "the plan names commands that no page has: {stale_entries:#?}"
    );
}
