//! Command-line engine: finds the command and checks its flags and arguments.

use super::UsageError;
use super::call::{Call, CommandIo, Failure};
use super::command::{Action, Arguments, Command, flags_of, path_name};
use super::flags::{self, Flag, ParseFlagsError};
use super::{go, help, log};

/// Runs one command line and returns the exit code.
pub(super) async fn run(root: &Command, arguments: &[String], io: &mut CommandIo<'_>) -> u8 {
    let mut path = vec![root];
    let (called_as, rest) = find(&mut path, arguments);
    let result = execute(&path, called_as.as_deref().unwrap_or(root.name()), &rest, io).await;
    let Err(end) = result else { return 0 };
    log::report_failure(io, &end, || help::usage(&path));
    1
}

/// Extends `path` with sub-commands as long as words name them. Returns the name of the last one as
/// typed, and all other arguments.
pub(super) fn find(
    path: &mut Vec<&Command>,
    arguments: &[String],
) -> (Option<String>, Vec<String>) {
    let mut rest = arguments.to_vec();
    let mut called_as = None;
    while let Some(&command) = path.last() {
        // Only the flags of the commands so far decide whether the next word is a value.
        let flags = flags_of(path, false);
        let Some((at, child)) =
            first_word(&flags, &rest).and_then(|at| Some((at, command.child(&rest[at])?)))
        else {
            break;
        };
        called_as = Some(rest.remove(at));
        path.push(child);
    }
    (called_as, rest)
}

/// The index of the first argument that is neither a flag nor the value of one.
fn first_word(flags: &[(Flag, bool)], arguments: &[String]) -> Option<usize> {
    let stands_alone = |found: &dyn Fn(&Flag) -> bool| {
        flags.iter().any(|(flag, _)| found(flag) && flag.is_switch())
    };
    let mut at = 0;
    while let Some(argument) = arguments.get(at) {
        let takes_next = if argument == "--" {
            return None;
        } else if let Some(name) = argument.strip_prefix("--") {
            !name.contains('=') && !stands_alone(&|flag| flag.name == name)
        } else if let Some(letter) = argument.strip_prefix('-') {
            argument.len() == 2
                && letter != "="
                && !stands_alone(&|flag| flag.short.is_some_and(|short| letter.starts_with(short)))
        } else if argument.is_empty() {
            false
        } else {
            return Some(at);
        };
        at += if takes_next { 2 } else { 1 };
    }
    None
}

async fn execute(
    path: &[&Command],
    called_as: &str,
    arguments: &[String],
    io: &mut CommandIo<'_>,
) -> Result<(), Failure> {
    let Some(command) = path.last() else { return Ok(()) };
    if let Some(advice) = command.deprecated {
        let name = go::quote(command.name());
        io.print_error(&format!("Command {name} is deprecated, {advice}\n"));
    }
    let flags = flags_of(path, true);
    let flags: Vec<&Flag> = flags.iter().map(|(flag, _)| flag).collect();
    let given = if command.disable_flag_parsing {
        flags::ParsedFlags::unparsed(arguments)
    } else {
        match flags::parse(&flags, arguments) {
            Ok(given) => given,
            Err(ParseFlagsError::Help) => {
                io.print(&help::help(path));
                return Ok(());
            }
            Err(ParseFlagsError::Invalid(error)) => return Err(Failure::usage(error)),
        }
    };
    io.print_error(&given.warnings);
    let Some(action) = command.action.filter(|_| !given.is_on("help")) else {
        io.print(&help::help(path));
        return Ok(());
    };
    check_requirements(command, path, &given).map_err(Failure::usage)?;
    let arguments = given.arguments.clone();
    let mut call = Call { path, called_as, flags: given, arguments, io };
    match action {
        Action::Sync(run) => run(&mut call),
        Action::Async(run) => run(&mut call).await,
    }
}

/// Checks the requirements of the last command of a path.
fn check_requirements(
    command: &Command,
    path: &[&Command],
    given: &flags::ParsedFlags,
) -> Result<(), UsageError> {
    command.arguments.check(&given.arguments, &path_name(path))?;
    let missing: Vec<&'static str> =
        command.required.iter().copied().filter(|name| !given.has(name)).collect();
    if !missing.is_empty() {
        return Err(UsageError::RequiredFlags(missing));
    }
    for &group in &command.exclusive {
        let mut set: Vec<&str> = group.iter().copied().filter(|name| given.has(name)).collect();
        if set.len() > 1 {
            set.sort_unstable();
            return Err(UsageError::ExclusiveFlags { group, given: set });
        }
    }
    Ok(())
}

/// Parses a command line as [`run`] does, without running it.
///
/// # Errors
/// The usage error.
pub(super) fn check(root: &Command, arguments: &[String]) -> Result<(), UsageError> {
    let mut path = vec![root];
    let (_, rest) = find(&mut path, arguments);
    let Some(command) = path.last() else { return Ok(()) };
    let flags = flags_of(&path, true);
    let flags: Vec<&Flag> = flags.iter().map(|(flag, _)| flag).collect();
    let given = if command.disable_flag_parsing {
        flags::ParsedFlags::unparsed(&rest)
    } else {
        match flags::parse(&flags, &rest) {
            Ok(given) => given,
            Err(ParseFlagsError::Help) => return Ok(()),
            Err(ParseFlagsError::Invalid(error)) => return Err(error.into()),
        }
    };
    // A command with only sub-commands prints its help, whatever its arguments.
    let rule = if command.action.is_some() { command.arguments } else { Arguments::None };
    rule.check(&given.arguments, &path_name(&path))?;
    check_requirements(command, &path, &given)
}
