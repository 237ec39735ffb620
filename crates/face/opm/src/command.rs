//! Commands as data: names, help, arguments, flags and action.

use super::UsageError;
use super::call::{Call, Failure};
use super::flags::{Flag, FlagKind};
use std::pin::Pin;

/// The future of an asynchronous action.
pub(super) type ActionFuture<'c> = Pin<Box<dyn Future<Output = Result<(), Failure>> + 'c>>;

/// The action of a command.
#[derive(Clone, Copy, Debug)]
pub(super) enum Action {
    /// An action that only uses files.
    Sync(fn(&mut Call<'_, '_>) -> Result<(), Failure>),
    /// An action that waits for registries or connections.
    Async(for<'c, 'a, 'io> fn(&'c mut Call<'a, 'io>) -> ActionFuture<'c>),
}

/// The number of arguments that a command takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Arguments {
    /// Any number; not checked.
    Any,
    /// None; an argument counts as an unknown sub-command.
    None,
    /// This number.
    Exactly(usize),
    /// This number or more.
    AtLeast(usize),
    /// A number in this range, inclusive.
    Between(usize, usize),
    /// This number or fewer.
    AtMost(usize),
}

impl Arguments {
    /// Checks the number of arguments; `path` is the full name of the command.
    ///
    /// # Errors
    /// If the number is wrong.
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
            Self::AtLeast(min) if given < min => Err(UsageError::TooFewArguments { min, given }),
            Self::AtMost(max) if given > max => Err(UsageError::TooManyArguments { max, given }),
            Self::Between(min, max) if !(min..=max).contains(&given) => {
                Err(UsageError::ArgumentRange { min, max, given })
            }
            _ => Ok(()),
        }
    }
}

/// The completion of arguments for a command without sub-commands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ArgumentCompletion {
    /// Names of files, by the shell.
    Files,
    /// Nothing.
    Nothing,
    /// The sub-commands of the command that the arguments name.
    Commands,
}

/// A command with its sub-commands.
#[derive(Debug)]
pub(super) struct Command {
    /// The name and the arguments, such as `validate <directory>`.
    pub(super) usage: &'static str,
    /// Other names.
    pub(super) aliases: &'static [&'static str],
    /// The help text in one line.
    pub(super) short: &'static str,
    /// The long help text; empty for the short one.
    pub(super) long: &'static str,
    /// Whether help and completion omit it.
    pub(super) hidden: bool,
    /// Whether the usage ends with `[flags]`.
    pub(super) flags_in_usage: bool,
    /// Whether all words after the name are arguments, also flags.
    pub(super) disable_flag_parsing: bool,
    /// The number of arguments.
    pub(super) arguments: Arguments,
    /// The completion of arguments.
    pub(super) completion: ArgumentCompletion,
    /// Its own flags.
    pub(super) flags: Vec<Flag>,
    /// Its flags that all sub-commands inherit.
    pub(super) persistent_flags: Vec<Flag>,
    /// The names of required flags.
    pub(super) required: &'static [&'static str],
    /// The replacement, printed at each run. Deprecated commands are hidden.
    pub(super) deprecated: Option<&'static str>,
    /// Groups of mutually exclusive flags.
    pub(super) exclusive: Vec<&'static [&'static str]>,
    /// The action; without one, the command prints its help.
    pub(super) action: Option<Action>,
    /// The sub-commands, by name.
    pub(super) children: Vec<Self>,
}

impl Command {
    /// A command with only a usage and a line of help.
    pub(super) const fn new(usage: &'static str, short: &'static str) -> Self {
        Self {
            usage,
            aliases: &[],
            short,
            long: "",
            hidden: false,
            flags_in_usage: true,
            disable_flag_parsing: false,
            arguments: Arguments::Any,
            completion: ArgumentCompletion::Files,
            flags: Vec::new(),
            persistent_flags: Vec::new(),
            required: &[],
            deprecated: None,
            exclusive: Vec::new(),
            action: None,
            children: Vec::new(),
        }
    }

    /// The name.
    pub(super) fn name(&self) -> &'static str {
        self.usage.split_whitespace().next().unwrap_or(self.usage)
    }

    /// Whether help and completion list it.
    pub(super) fn is_visible(&self) -> bool {
        !self.hidden
            && self.deprecated.is_none()
            && (self.action.is_some() || self.children.iter().any(Self::is_visible))
    }

    /// The sub-command with this name or alias.
    pub(super) fn child(&self, name: &str) -> Option<&Self> {
        self.children.iter().find(|child| child.name() == name || child.aliases.contains(&name))
    }
}

/// All flags of the last command of a path, by name, each with whether it is inherited.
pub(super) fn flags_of(path: &[&Command], with_help: bool) -> Vec<(Flag, bool)> {
    let mut flags: Vec<(Flag, bool)> = Vec::new();
    let Some((command, above)) = path.split_last() else { return flags };
    flags.extend(
        command.flags.iter().chain(&command.persistent_flags).map(|flag| (flag.clone(), false)),
    );
    if with_help && !command.disable_flag_parsing {
        let help = Flag {
            name: "help",
            short: Some('h'),
            kind: FlagKind::Switch,
            default: "",
            text: format!("help for {}", command.name()).into(),
            hidden: false,
            deprecated: None,
            value: "",
        };
        flags.push((help, false));
    }
    for flag in above.iter().rev().flat_map(|command| &command.persistent_flags) {
        if !flags.iter().any(|(known, _)| known.name == flag.name) {
            flags.push((flag.clone(), true));
        }
    }
    flags.sort_by_key(|(flag, _)| flag.name);
    flags
}

/// The full name of a path of commands.
pub(super) fn path_name(path: &[&Command]) -> String {
    path.iter().map(|command| command.name()).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_number_of_arguments_is_checked() {
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
