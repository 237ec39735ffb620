//! Shell completion: the command `__complete` with the words typed so far.
//!
//! The output is one line for each candidate and a line with the number of a directive for the shell. The
//! name of the directive goes to standard error.

use super::FlagError;
use super::call::{Call, Failure};
use super::command::{ArgumentCompletion, Command, flags_of};
use super::flags::{self, Flag, FlagKind};
use super::{engine, go};

/// The directive for the shell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CompletionDirective {
    /// The default: names of files if there are no candidates.
    Default,
    /// No names of files.
    NoFiles,
}

/// The command that shells call.
pub(super) const REQUEST: &str = "__complete";

/// The command that prints candidates without descriptions.
pub(super) const REQUEST_WITHOUT_DESCRIPTIONS: &str = "__completeNoDesc";

/// Prints the candidates.
#[expect(clippy::unnecessary_wraps, reason = "an action")]
pub(super) fn run(call: &mut Call<'_, '_>) -> Result<(), Failure> {
    let Some(&root) = call.path.first() else { return Ok(()) };
    let Some((typed, before)) = call.arguments.split_last() else { return Ok(()) };
    let mut text = String::new();
    let directive = match candidates(root, before, typed) {
        Ok((candidates, directive)) => {
            for (name, about) in candidates {
                let about = about.lines().next().unwrap_or_default().trim();
                let bare = call.called_as == REQUEST_WITHOUT_DESCRIPTIONS || about.is_empty();
                let about = if bare { String::new() } else { format!("\t{about}") };
                go::push(&mut text, format_args!("{name}{about}\n"));
            }
            directive
        }
        Err(error) => {
            call.io.print_error(&format!("[Debug] [Error] {error}\n"));
            CompletionDirective::Default
        }
    };
    let (number, name) = match directive {
        CompletionDirective::Default => (0, "ShellCompDirectiveDefault"),
        CompletionDirective::NoFiles => (4, "ShellCompDirectiveNoFileComp"),
    };
    call.io.print(&format!("{text}:{number}\n"));
    call.io.print_error(&format!("Completion ended with directive: {name}\n"));
    Ok(())
}

/// A command line cannot be completed.
#[derive(Debug, thiserror::Error)]
enum CompleteError {
    /// The flags are invalid.
    #[error("Error while parsing flags from args [{words}]: {source}")]
    Flags {
        /// The words of the command line.
        words: String,
        /// The error.
        source: FlagError,
    },
    /// The command does not have the flag whose value is completed.
    #[error("Subcommand '{command}' does not support flag '{flag}'")]
    UnknownFlag {
        /// The command.
        command: &'static str,
        /// The name of the flag, or its letter.
        flag: String,
    },
}

type Candidates = (Vec<(String, String)>, CompletionDirective);

fn candidates(root: &Command, before: &[String], typed: &str) -> Result<Candidates, CompleteError> {
    let mut path = vec![root];
    let (_, mut rest) = engine::find(&mut path, before);
    let Some(&command) = path.last() else { return Ok((Vec::new(), CompletionDirective::Default)) };
    let all = flags_of(&path, true);
    let flags: Vec<&Flag> = all.iter().map(|(flag, _)| flag).collect();
    let (completes_value, read) = if command.disable_flag_parsing {
        // The words are not parsed.
        (Ok(false), Ok(flags::ParsedFlags::unparsed(&rest)))
    } else {
        (completes_flag_value(&flags, command, &mut rest, typed), flags::parse(&flags, &rest))
    };
    let given = match read {
        Ok(given) => given,
        Err(flags::ParseFlagsError::Help) => return Ok((Vec::new(), CompletionDirective::NoFiles)),
        Err(flags::ParseFlagsError::Invalid(source)) => {
            return Err(CompleteError::Flags { words: rest.join(" "), source });
        }
    };
    // After `--` there are no flags.
    let only_words = !command.disable_flag_parsing && rest.iter().any(|word| word == "--");
    let takes_value = match completes_value {
        Ok(takes_value) => takes_value && !only_words,
        Err(_) if only_words => false,
        Err(why) => return Err(why),
    };
    if given.is_on("help") {
        return Ok((Vec::new(), CompletionDirective::NoFiles));
    }
    if takes_value {
        return Ok((Vec::new(), CompletionDirective::Default));
    }
    // Missing required flags come first, also where no flag is typed yet.
    let missing: Vec<_> = all
        .iter()
        .filter(|(flag, _)| command.required.contains(&flag.name) && !given.has(flag.name))
        .cloned()
        .collect();
    let missing = flag_names(command, &missing, &given, typed);
    if typed.starts_with('-') && !typed.contains('=') && !only_words {
        let found =
            if missing.is_empty() { flag_names(command, &all, &given, typed) } else { missing };
        return Ok((found, CompletionDirective::NoFiles));
    }
    let mut found = Vec::new();
    let mut directive = CompletionDirective::Default;
    let is_own = |flag: &&Flag| command.flags.iter().any(|own_flag| own_flag.name == flag.name);
    let set = flags.iter().copied().filter(is_own).any(|flag| given.has(flag.name));
    if given.arguments.is_empty() && !set {
        found = command_names(command, typed);
        if command.children.iter().any(Command::is_visible) {
            directive = CompletionDirective::NoFiles;
        }
    }
    found.extend(missing);
    match command.completion {
        ArgumentCompletion::Files => {}
        ArgumentCompletion::Nothing => directive = CompletionDirective::NoFiles,
        ArgumentCompletion::Commands => {
            let mut path = vec![root];
            engine::find(&mut path, &given.arguments);
            found.extend(path.last().into_iter().flat_map(|at| command_names(at, typed)));
            directive = CompletionDirective::NoFiles;
        }
    }
    Ok((found, directive))
}

fn command_names(command: &Command, typed: &str) -> Vec<(String, String)> {
    let visible = command.children.iter().filter(|child| child.is_visible());
    let matching = visible.filter(|child| child.name().starts_with(typed));
    matching.map(|child| (child.name().to_owned(), child.short.to_owned())).collect()
}

/// The flags that may still be given, inherited flags first.
fn flag_names(
    command: &Command,
    all: &[(Flag, bool)],
    given: &flags::ParsedFlags,
    typed: &str,
) -> Vec<(String, String)> {
    let excluded = |name: &str| {
        command.exclusive.iter().any(|group| {
            group.contains(&name) && group.iter().any(|&other| other != name && given.has(other))
        })
    };
    let mut found = Vec::new();
    for inherited in [true, false] {
        for (flag, _) in all.iter().filter(|(_, from_above)| *from_above == inherited) {
            let again = flag.kind == FlagKind::List || !given.has(flag.name);
            if flag.hidden || !again || excluded(flag.name) {
                continue;
            }
            let names =
                [Some(format!("--{}", flag.name)), flag.short.map(|letter| format!("-{letter}"))];
            for name in names.into_iter().flatten().filter(|name| name.starts_with(typed)) {
                found.push((name, flag.text.clone().into_owned()));
            }
        }
    }
    found
}

/// Whether the typed word is the value of a flag. The flag before it is then removed from `rest`, since
/// it has no value yet.
fn completes_flag_value(
    flags: &[&Flag],
    command: &Command,
    rest: &mut Vec<String>,
    typed: &str,
) -> Result<bool, CompleteError> {
    let is_flag = |word: &str| match word.strip_prefix("--") {
        Some(name) => !name.is_empty(),
        None => word.len() > 1 && word.starts_with('-'),
    };
    let name_of = |word: &str| match word.strip_prefix("--") {
        Some(name) => name.to_owned(),
        None => word.chars().last().map(String::from).unwrap_or_default(),
    };
    let (name, in_word) = if typed.starts_with('-') {
        match typed.split_once('=') {
            Some((flag, _)) => (name_of(flag), true),
            None => return Ok(false),
        }
    } else {
        match rest.last() {
            Some(last) if is_flag(last) && !last.contains('=') => (name_of(last), false),
            _ => return Ok(false),
        }
    };
    let mut letters = name.chars();
    let letter = letters.next().filter(|_| letters.next().is_none());
    let found = flags.iter().find(|flag| match letter {
        Some(letter) => flag.short == Some(letter),
        None => flag.name == name,
    });
    let Some(flag) = found else {
        return Err(CompleteError::UnknownFlag { command: command.name(), flag: name });
    };
    if in_word {
        return Ok(true);
    }
    if flag.is_switch() {
        return Ok(false);
    }
    rest.pop();
    Ok(true)
}
