//! Flags: where they may stand, what takes a value, and what is said when they cannot be read.

use super::{FlagError, ValueError, csv, go};
use std::borrow::Cow;
use std::collections::BTreeMap;

/// One flag.
#[derive(Clone, Debug)]
pub(super) struct Flag {
    /// The name after `--`.
    pub(super) name: &'static str,
    /// The letter after `-`.
    pub(super) short: Option<char>,
    /// What value it takes.
    pub(super) kind: Kind,
    /// The value when it is not given; empty is shown as nothing.
    pub(super) default: &'static str,
    /// What it is for.
    pub(super) text: Cow<'static, str>,
    /// Whether help and completion leave it out.
    pub(super) hidden: bool,
    /// What to use instead; shown when it is given. Deprecated flags are hidden.
    pub(super) deprecated: Option<&'static str>,
    /// What help calls its value; empty for the name of its kind.
    pub(super) value: &'static str,
}

/// What value a flag takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// A truth value, true when none is given.
    Switch,
    /// A text.
    Text,
    /// Texts separated by commas; given again, more of them.
    List,
    /// Pairs `key=value` separated by commas; given again, more of them.
    Pairs,
}

impl Flag {
    const fn new(kind: Kind, name: &'static str, short: Option<char>, text: &'static str) -> Self {
        Self {
            name,
            short,
            kind,
            default: "",
            text: Cow::Borrowed(text),
            hidden: false,
            deprecated: None,
            value: "",
        }
    }

    /// A flag that is there or not.
    pub(super) const fn switch(name: &'static str, text: &'static str) -> Self {
        Self::new(Kind::Switch, name, None, text)
    }

    /// A flag with a text.
    pub(super) const fn text(name: &'static str, short: Option<char>, text: &'static str) -> Self {
        Self::new(Kind::Text, name, short, text)
    }

    /// A flag with a list of texts.
    pub(super) const fn list(name: &'static str, short: Option<char>, text: &'static str) -> Self {
        Self::new(Kind::List, name, short, text)
    }

    /// A flag with pairs.
    pub(super) const fn pairs(name: &'static str, text: &'static str) -> Self {
        Self::new(Kind::Pairs, name, None, text)
    }

    /// The same flag with a value for when it is not given.
    pub(super) const fn or(mut self, default: &'static str) -> Self {
        self.default = default;
        self
    }

    /// The same flag with a letter.
    pub(super) const fn letter(mut self, letter: char) -> Self {
        self.short = Some(letter);
        self
    }

    /// The same flag with a name for its value.
    pub(super) const fn taking(mut self, value: &'static str) -> Self {
        self.value = value;
        self
    }

    /// The same flag, not shown.
    pub(super) const fn hide(mut self) -> Self {
        self.hidden = true;
        self
    }

    /// The same flag, deprecated.
    pub(super) const fn instead(mut self, advice: &'static str) -> Self {
        self.deprecated = Some(advice);
        self.hidden = true;
        self
    }

    /// Whether the next argument is not its value.
    pub(super) fn stands_alone(&self) -> bool {
        self.kind == Kind::Switch
    }
}

/// The flags that were given, and what is left.
#[derive(Debug, Default)]
pub(super) struct Given {
    values: BTreeMap<&'static str, Vec<String>>,
    /// What is no flag.
    pub(super) arguments: Vec<String>,
    /// What to tell about flags that were given.
    pub(super) warnings: String,
    defaults: BTreeMap<&'static str, &'static str>,
}

impl Given {
    /// Arguments among which no flags are looked for.
    pub(super) fn raw(arguments: &[String]) -> Self {
        Self { arguments: arguments.to_vec(), ..Self::default() }
    }

    /// Whether the flag was given.
    pub(super) fn has(&self, name: &str) -> bool {
        self.values.contains_key(name)
    }

    /// Whether the switch is on.
    pub(super) fn is_on(&self, name: &str) -> bool {
        self.values.get(name).and_then(|all| all.last()).is_some_and(|last| last == "true")
    }

    /// The text of the flag: the last one given, or the default.
    pub(super) fn text(&self, name: &str) -> &str {
        let given = self.values.get(name).and_then(|all| all.last()).map(String::as_str);
        given.unwrap_or_else(|| self.defaults.get(name).copied().unwrap_or_default())
    }

    /// All texts of the flag.
    pub(super) fn list(&self, name: &str) -> &[String] {
        self.values.get(name).map_or(&[], Vec::as_slice)
    }

    /// All pairs of the flag; of those with one key the last.
    pub(super) fn pairs(&self, name: &str) -> BTreeMap<String, String> {
        let pairs = self.list(name).iter().filter_map(|pair| pair.split_once('='));
        pairs.map(|(key, value)| (key.to_owned(), value.to_owned())).collect()
    }

    fn set(&mut self, flag: &Flag, value: &str) -> Result<(), FlagError> {
        let all = self.values.entry(flag.name).or_default();
        take(flag.kind, value, all).map_err(|source| {
            let short = flag.short.map(|short| format!("-{short}, ")).unwrap_or_default();
            let name = format!("{short}--{}", flag.name);
            FlagError::Value { flag: name, value: value.to_owned(), source }
        })?;
        if let Some(advice) = flag.deprecated {
            go::push(
                &mut self.warnings,
                format_args!("Flag --{} has been deprecated, {advice}\n", flag.name),
            );
        }
        Ok(())
    }
}

/// Adds what a value says to the texts of a flag of a kind.
fn take(kind: Kind, value: &str, all: &mut Vec<String>) -> Result<(), ValueError> {
    match kind {
        Kind::Switch => all.push(go::parse_bool(value)?.to_string()),
        Kind::Text => all.push(value.to_owned()),
        Kind::List => all.extend(csv::fields(value)?),
        Kind::Pairs => all.extend(split_pairs(value)?),
    }
    Ok(())
}

/// The pairs of a value. Only one of several may have commas in it.
fn split_pairs(value: &str) -> Result<Vec<String>, ValueError> {
    let pairs = match value.matches('=').count() {
        0 => return Err(ValueError::Pair { text: value.to_owned() }),
        1 => vec![value.trim_matches('"').to_owned()],
        _ => csv::fields(value)?,
    };
    match pairs.iter().find(|pair| !pair.contains('=')) {
        Some(pair) => Err(ValueError::Pair { text: pair.clone() }),
        None => Ok(pairs),
    }
}

/// Why flags could not be read.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Stop {
    /// Somebody asks for help.
    Help,
    /// They are wrong.
    Wrong(FlagError),
}

/// Reads flags and arguments in any order; after `--` there are no flags any more.
///
/// # Errors
/// The first thing that is wrong.
pub(super) fn read(flags: &[&Flag], arguments: &[String]) -> Result<Given, Stop> {
    let mut given = Given {
        defaults: flags.iter().map(|flag| (flag.name, flag.default)).collect(),
        ..Given::default()
    };
    let mut rest = arguments.iter();
    while let Some(argument) = rest.next() {
        if argument == "--" {
            given.arguments.extend(rest.by_ref().cloned());
        } else if let Some(long) = argument.strip_prefix("--") {
            read_long(flags, long, argument, &mut rest, &mut given)?;
        } else if let Some(letters) =
            argument.strip_prefix('-').filter(|letters| !letters.is_empty())
        {
            read_letters(flags, letters, &mut rest, &mut given)?;
        } else {
            given.arguments.push(argument.clone());
        }
    }
    Ok(given)
}

type Rest<'a> = std::slice::Iter<'a, String>;

fn read_long(
    flags: &[&Flag],
    long: &str,
    argument: &str,
    rest: &mut Rest<'_>,
    given: &mut Given,
) -> Result<(), Stop> {
    if long.starts_with(['-', '=']) {
        return Err(Stop::Wrong(FlagError::Syntax { argument: argument.to_owned() }));
    }
    let (name, value) = match long.split_once('=') {
        Some((name, value)) => (name, Some(value)),
        None => (long, None),
    };
    let Some(flag) = flags.iter().find(|flag| flag.name == name) else {
        if name == "help" {
            return Err(Stop::Help);
        }
        return Err(Stop::Wrong(FlagError::Unknown { name: name.to_owned() }));
    };
    let value = match value {
        Some(value) => value,
        None if flag.stands_alone() => "true",
        None => match rest.next() {
            Some(next) => next,
            None => return Err(Stop::Wrong(FlagError::NoValue { name: name.to_owned() })),
        },
    };
    given.set(flag, value).map_err(Stop::Wrong)
}

fn read_letters(
    flags: &[&Flag],
    letters: &str,
    rest: &mut Rest<'_>,
    given: &mut Given,
) -> Result<(), Stop> {
    let mut at = letters;
    while let Some(&letter) = at.as_bytes().first() {
        // Upstream goes by bytes, so that a letter beyond ASCII is named by its first byte.
        let letter = char::from(letter);
        let Some(flag) = flags.iter().find(|flag| flag.short == Some(letter)) else {
            if letter == 'h' {
                return Err(Stop::Help);
            }
            let letters = at.to_owned();
            return Err(Stop::Wrong(FlagError::UnknownLetter { letter, letters }));
        };
        let after = &at[1..];
        let (value, left) = match after.strip_prefix('=').filter(|value| !value.is_empty()) {
            Some(value) => (value, ""),
            None if flag.stands_alone() => ("true", after),
            None if !after.is_empty() => (after, ""),
            None => {
                let Some(next) = rest.next() else {
                    let letters = at.to_owned();
                    return Err(Stop::Wrong(FlagError::LetterNoValue { letter, letters }));
                };
                (next.as_str(), "")
            }
        };
        given.set(flag, value).map_err(Stop::Wrong)?;
        at = left;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flags() -> Vec<Flag> {
        vec![
            Flag::text("output", Some('o'), "").or("json"),
            Flag::switch("debug", ""),
            Flag::list("labels", Some('l'), ""),
            Flag::switch("old", "").instead("use --new"),
            Flag { short: Some('s'), ..Flag::switch("short", "") },
        ]
    }

    fn read_words(words: &[&str]) -> Result<Given, Stop> {
        let flags = flags();
        let words: Vec<String> = words.iter().map(|&word| word.to_owned()).collect();
        read(&flags.iter().collect::<Vec<_>>(), &words)
    }

    #[test]
    fn flags_stand_anywhere_until_two_dashes() {
        let given = read_words(&["a", "-oyaml", "b", "--debug", "--", "--debug", "-x"]).unwrap();
        assert_eq!(given.arguments, ["a", "b", "--debug", "-x"]);
        assert_eq!(given.text("output"), "yaml");
        assert!(given.is_on("debug"));
        assert!(given.has("debug") && !given.has("old"));
    }

    #[test]
    fn values_are_written_in_many_ways() {
        for words in [
            &["--output=x"][..],
            &["--output", "x"],
            &["-o", "x"],
            &["-ox"],
            &["-o=x"],
            &["-so", "x"],
            &["-sox"],
            &["-o", "y", "-o", "x"],
        ] {
            assert_eq!(read_words(words).unwrap().text("output"), "x", "{words:?}");
        }
        assert_eq!(read_words(&["-", ""]).unwrap().arguments, ["-", ""]);
        assert_eq!(read_words(&[]).unwrap().text("output"), "json");
        assert_eq!(read_words(&["--output="]).unwrap().text("output"), "");
        assert!(!read_words(&["--debug=F"]).unwrap().is_on("debug"));
        assert!(read_words(&["--old"]).unwrap().warnings.contains("--old has been deprecated"));
    }

    #[test]
    fn what_is_wrong_is_said_in_the_known_words() {
        for (words, message) in [
            (&["--nope=1"][..], "unknown flag: --nope"),
            (&["-x"], "unknown shorthand flag: 'x' in -x"),
            (&["-sx"], "unknown shorthand flag: 'x' in -x"),
            (&["-é"], "unknown shorthand flag: 'Ã' in -é"),
            (&["-o"], "flag needs an argument: 'o' in -o"),
            (&["--output"], "flag needs an argument: --output"),
            (&["---"], "bad flag syntax: ---"),
            (&["--=x"], "bad flag syntax: --=x"),
            (
                &["--debug=maybe"],
                "invalid argument \"maybe\" for \"--debug\" flag: strconv.ParseBool: parsing \"maybe\": invalid syntax",
            ),
            (
                &["-l", "k=a \"b\""],
                "invalid argument \"k=a \\\"b\\\"\" for \"-l, --labels\" flag: parse error on line 1, column 5: bare \" in non-quoted-field",
            ),
        ] {
            let Stop::Wrong(error) = read_words(words).unwrap_err() else { panic!("{words:?}") };
            assert_eq!(error.to_string(), message);
        }
        assert_eq!(read_words(&["--help"]).unwrap_err(), Stop::Help);
        assert_eq!(read_words(&["-h"]).unwrap_err(), Stop::Help);
    }
}
