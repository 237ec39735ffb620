//! What shells ask while somebody types: `__complete` with the words so far.
//!
//! The answer is a line for each candidate, a line with a number that tells the shell what to do
//! with them, and the name of that number on standard error.

use super::FlagError;
use super::call::{Call, End};
use super::command::{Command, Offer, flags_of};
use super::flags::{self, Flag, Kind};
use super::{engine, go};

/// What the shell shall do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Advice {
    /// As it likes: names of files where there are no candidates.
    Default,
    /// No names of files.
    NoFiles,
}

/// The name under which shells ask.
pub(super) const REQUEST: &str = "__complete";

/// The name under which candidates come without what they are for.
pub(super) const BARE: &str = "__completeNoDesc";

/// Answers a shell.
#[expect(clippy::unnecessary_wraps, reason = "an action")]
pub(super) fn run(call: &mut Call<'_, '_>) -> Result<(), End> {
    let Some(&root) = call.path.first() else { return Ok(()) };
    let Some((typed, before)) = call.arguments.split_last() else { return Ok(()) };
    let mut text = String::new();
    let advice = match candidates(root, before, typed) {
        Ok((candidates, advice)) => {
            for (name, about) in candidates {
                let about = about.lines().next().unwrap_or_default().trim();
                let bare = call.called_as == BARE || about.is_empty();
                let about = if bare { String::new() } else { format!("\t{about}") };
                go::push(&mut text, format_args!("{name}{about}\n"));
            }
            advice
        }
        Err(error) => {
            call.io.complain(&format!("[Debug] [Error] {error}\n"));
            Advice::Default
        }
    };
    let (number, name) = match advice {
        Advice::Default => (0, "ShellCompDirectiveDefault"),
        Advice::NoFiles => (4, "ShellCompDirectiveNoFileComp"),
    };
    call.io.print(&format!("{text}:{number}\n"));
    call.io.complain(&format!("Completion ended with directive: {name}\n"));
    Ok(())
}

/// A command line cannot be completed.
#[derive(Debug, thiserror::Error)]
enum CompleteError {
    /// Its flags are wrong.
    #[error("Error while parsing flags from args [{words}]: {source}")]
    Flags {
        /// Its words.
        words: String,
        /// What is wrong.
        source: FlagError,
    },
    /// The command does not have the flag whose value is typed.
    #[error("Subcommand '{command}' does not support flag '{flag}'")]
    UnknownFlag {
        /// The command.
        command: &'static str,
        /// The name of the flag, or its letter.
        flag: String,
    },
}

type Candidates = (Vec<(String, String)>, Advice);

fn candidates(root: &Command, before: &[String], typed: &str) -> Result<Candidates, CompleteError> {
    let mut path = vec![root];
    let (_, mut rest) = engine::find(&mut path, before);
    let Some(&command) = path.last() else { return Ok((Vec::new(), Advice::Default)) };
    let all = flags_of(&path, true);
    let flags: Vec<&Flag> = all.iter().map(|(flag, _)| flag).collect();
    let (wanted, read) = if command.raw {
        // Its words are not looked into.
        (Ok(false), Ok(flags::Given::raw(&rest)))
    } else {
        (value_wanted(&flags, command, &mut rest, typed), flags::read(&flags, &rest))
    };
    let given = match read {
        Ok(given) => given,
        Err(flags::Stop::Help) => return Ok((Vec::new(), Advice::NoFiles)),
        Err(flags::Stop::Wrong(source)) => {
            return Err(CompleteError::Flags { words: rest.join(" "), source });
        }
    };
    // After two dashes there are no flags any more.
    let only_words = !command.raw && rest.iter().any(|word| word == "--");
    let takes_value = match wanted {
        Ok(takes_value) => takes_value && !only_words,
        Err(_) if only_words => false,
        Err(why) => return Err(why),
    };
    if given.is_on("help") {
        return Ok((Vec::new(), Advice::NoFiles));
    }
    if takes_value {
        return Ok((Vec::new(), Advice::Default));
    }
    // Flags that are still missing come before all others, and where no flag is typed yet.
    let missing: Vec<_> = all
        .iter()
        .filter(|(flag, _)| command.required.contains(&flag.name) && !given.has(flag.name))
        .cloned()
        .collect();
    let missing = flag_names(command, &missing, &given, typed);
    if typed.starts_with('-') && !typed.contains('=') && !only_words {
        let found =
            if missing.is_empty() { flag_names(command, &all, &given, typed) } else { missing };
        return Ok((found, Advice::NoFiles));
    }
    let mut found = Vec::new();
    let mut advice = Advice::Default;
    let own = |flag: &&Flag| command.flags.iter().any(|known| known.name == flag.name);
    let set = flags.iter().copied().filter(own).any(|flag| given.has(flag.name));
    if given.arguments.is_empty() && !set {
        found = names_of_commands(command, typed);
        if command.children.iter().any(Command::is_shown) {
            advice = Advice::NoFiles;
        }
    }
    found.extend(missing);
    match command.offer {
        Offer::Files => {}
        Offer::Nothing => advice = Advice::NoFiles,
        Offer::Commands => {
            let mut path = vec![root];
            engine::find(&mut path, &given.arguments);
            found.extend(path.last().into_iter().flat_map(|at| names_of_commands(at, typed)));
            advice = Advice::NoFiles;
        }
    }
    Ok((found, advice))
}

fn names_of_commands(command: &Command, typed: &str) -> Vec<(String, String)> {
    let shown = command.children.iter().filter(|child| child.is_shown());
    let named = shown.filter(|child| child.name().starts_with(typed));
    named.map(|child| (child.name().to_owned(), child.short.to_owned())).collect()
}

/// The flags that may be given (again), those from above first.
fn flag_names(
    command: &Command,
    all: &[(Flag, bool)],
    given: &flags::Given,
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
            let again = flag.kind == Kind::List || !given.has(flag.name);
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

/// Whether the word being typed is the value of a flag. The flag before it is then taken from
/// `rest`, since it has no value yet.
fn value_wanted(
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
    if flag.stands_alone() {
        return Ok(false);
    }
    rest.pop();
    Ok(true)
}
