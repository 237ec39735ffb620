//! What a command is: data.

use super::UsageError;
use super::call::{Call, End};
use super::flags::{Flag, Kind};
use std::pin::Pin;

/// A command at work.
pub(super) type Running<'c> = Pin<Box<dyn Future<Output = Result<(), End>> + 'c>>;

/// What a command does.
#[derive(Clone, Copy, Debug)]
pub(super) enum Action {
    /// It works with files alone.
    Sync(fn(&mut Call<'_, '_>) -> Result<(), End>),
    /// It waits for registries or for connections.
    Async(for<'c, 'a, 'io> fn(&'c mut Call<'a, 'io>) -> Running<'c>),
}

/// How many arguments a command takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Arguments {
    /// It does not look.
    Any,
    /// None at all; what stands there was meant as a sub-command.
    None,
    /// That many.
    Exactly(usize),
    /// That many or more.
    AtLeast(usize),
    /// From the one to the other.
    Between(usize, usize),
    /// That many or fewer.
    AtMost(usize),
}

impl Arguments {
    /// Checks what was given; `path` is what the command is called.
    ///
    /// # Errors
    /// What is wrong with the number.
    pub(super) fn check(self, given: &[String], path: &str) -> Result<(), UsageError> {
        let (first, given) = (given.first(), given.len());
        match self {
            Self::None => match first {
                None => Ok(()),
                Some(name) => {
                    let (name, path) = (name.clone(), path.to_owned());
                    Err(UsageError::UnknownCommand { name, path })
                }
            },
            Self::Exactly(expected) if given != expected => {
                Err(UsageError::ArgumentCount { expected, given })
            }
            Self::AtLeast(least) if given < least => {
                Err(UsageError::TooFewArguments { least, given })
            }
            Self::AtMost(most) if given > most => Err(UsageError::TooManyArguments { most, given }),
            Self::Between(least, most) if !(least..=most).contains(&given) => {
                Err(UsageError::ArgumentRange { least, most, given })
            }
            _ => Ok(()),
        }
    }
}

/// What the shell is offered as an argument when the command has no sub-commands to offer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Offer {
    /// Names of files: the shell's own way.
    Files,
    /// Nothing.
    Nothing,
    /// The commands below the one that the arguments name.
    Commands,
}

/// One command, with those below it.
#[derive(Debug)]
pub(super) struct Command {
    /// The name and what comes after it, such as `validate <directory>`.
    pub(super) form: &'static str,
    /// Other names.
    pub(super) aliases: &'static [&'static str],
    /// What it is for, in one line.
    pub(super) short: &'static str,
    /// What it is for; empty means the short text.
    pub(super) long: &'static str,
    /// Whether it is left out of help and completion.
    pub(super) hidden: bool,
    /// Whether `[flags]` is added to how it is used.
    pub(super) flags_in_use: bool,
    /// Whether everything after the name is an argument, flags too.
    pub(super) raw: bool,
    /// What it takes.
    pub(super) arguments: Arguments,
    /// What may stand there.
    pub(super) offer: Offer,
    /// Its own flags.
    pub(super) flags: Vec<Flag>,
    /// Its flags that all commands below it have too.
    pub(super) inherited: Vec<Flag>,
    /// Flags that must be given, by name.
    pub(super) required: &'static [&'static str],
    /// What to use instead; said whenever it runs. Deprecated commands are hidden.
    pub(super) deprecated: Option<&'static str>,
    /// Flags of which only one of each group may be given.
    pub(super) exclusive: Vec<&'static [&'static str]>,
    /// What it does; without, it shows its help.
    pub(super) action: Option<Action>,
    /// The commands below it, by name.
    pub(super) children: Vec<Self>,
}

impl Command {
    /// A command that has nothing yet but a form and a line of help.
    pub(super) const fn new(form: &'static str, short: &'static str) -> Self {
        Self {
            form,
            aliases: &[],
            short,
            long: "",
            hidden: false,
            flags_in_use: true,
            raw: false,
            arguments: Arguments::Any,
            offer: Offer::Files,
            flags: Vec::new(),
            inherited: Vec::new(),
            required: &[],
            deprecated: None,
            exclusive: Vec::new(),
            action: None,
            children: Vec::new(),
        }
    }

    /// The name.
    pub(super) fn name(&self) -> &'static str {
        self.form.split_whitespace().next().unwrap_or(self.form)
    }

    /// Whether help and completion show it.
    pub(super) fn is_shown(&self) -> bool {
        !self.hidden
            && self.deprecated.is_none()
            && (self.action.is_some() || self.children.iter().any(Self::is_shown))
    }

    /// The command below this one that goes by that name.
    pub(super) fn child(&self, name: &str) -> Option<&Self> {
        self.children.iter().find(|child| child.name() == name || child.aliases.contains(&name))
    }
}

/// All flags of the last command of a path, by name, each with whether it comes from above.
pub(super) fn flags_of(path: &[&Command], with_help: bool) -> Vec<(Flag, bool)> {
    let mut flags: Vec<(Flag, bool)> = Vec::new();
    let Some((command, above)) = path.split_last() else { return flags };
    flags.extend(command.flags.iter().chain(&command.inherited).map(|flag| (flag.clone(), false)));
    if with_help && !command.raw {
        let help = Flag {
            name: "help",
            short: Some('h'),
            kind: Kind::Switch,
            default: "",
            text: format!("help for {}", command.name()).into(),
            hidden: false,
            deprecated: None,
            value: "",
        };
        flags.push((help, false));
    }
    for flag in above.iter().rev().flat_map(|command| &command.inherited) {
        if !flags.iter().any(|(known, _)| known.name == flag.name) {
            flags.push((flag.clone(), true));
        }
    }
    flags.sort_by_key(|(flag, _)| flag.name);
    flags
}

/// What a path of commands is called.
pub(super) fn path_name(path: &[&Command]) -> String {
    path.iter().map(|command| command.name()).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_arguments_are_checked() {
        let given = |count: usize| vec!["x".to_owned(); count];
        for (rule, count, message) in [
            (Arguments::Any, 9, None),
            (Arguments::None, 0, None),
            (Arguments::None, 1, Some("unknown command \"x\" for \"opm\"")),
            (Arguments::Exactly(1), 1, None),
            (Arguments::Exactly(1), 0, Some("accepts 1 arg(s), received 0")),
            (Arguments::AtLeast(1), 3, None),
            (Arguments::AtLeast(1), 0, Some("requires at least 1 arg(s), only received 0")),
            (Arguments::AtMost(1), 0, None),
            (Arguments::AtMost(1), 2, Some("accepts at most 1 arg(s), received 2")),
            (Arguments::Between(1, 2), 2, None),
            (Arguments::Between(1, 2), 3, Some("accepts between 1 and 2 arg(s), received 3")),
        ] {
            let result = rule.check(&given(count), "opm");
            let found = result.err().map(|error| error.to_string());
            assert_eq!(found.as_deref(), message, "{rule:?} {count}");
        }
    }
}
