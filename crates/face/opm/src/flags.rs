//! Command-line flags, parsed by the rules of pflag, upstream's library.

use super::{FlagError, ValueError, csv, go};
use std::borrow::Cow;
use std::collections::BTreeMap;

/// A flag.
#[derive(Clone, Debug)]
pub(super) struct Flag {
    /// The name after `--`.
    pub(super) name: &'static str,
    /// The letter after `-`.
    pub(super) short: Option<char>,
    /// The kind of its value.
    pub(super) kind: FlagKind,
    /// The default value; help omits an empty one.
    pub(super) default: &'static str,
    /// The help text.
    pub(super) text: Cow<'static, str>,
    /// Whether help and completion omit it.
    pub(super) hidden: bool,
    /// The replacement, printed when it is given. Deprecated flags are hidden.
    pub(super) deprecated: Option<&'static str>,
    /// The name of the value in help; empty for the name of its kind.
    pub(super) value: &'static str,
}

/// The kind of the value of a flag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FlagKind {
    /// A boolean, true without a value.
    Switch,
    /// A text.
    Text,
    /// Texts separated by commas; a repeated flag adds to them.
    List,
    /// Pairs `key=value` separated by commas; a repeated flag adds to them.
    Pairs,
}

impl Flag {
    const fn new(
        kind: FlagKind,
        name: &'static str,
        short: Option<char>,
        text: &'static str,
    ) -> Self {
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

    /// A boolean flag.
    pub(super) const fn switch(name: &'static str, text: &'static str) -> Self {
        Self::new(FlagKind::Switch, name, None, text)
    }

    /// A flag with a text.
    pub(super) const fn text(name: &'static str, short: Option<char>, text: &'static str) -> Self {
        Self::new(FlagKind::Text, name, short, text)
    }

    /// A flag with a list of texts.
    pub(super) const fn list(name: &'static str, short: Option<char>, text: &'static str) -> Self {
        Self::new(FlagKind::List, name, short, text)
    }

    /// A flag with pairs.
    pub(super) const fn pairs(name: &'static str, text: &'static str) -> Self {
        Self::new(FlagKind::Pairs, name, None, text)
    }

    /// The same flag with a default value.
    pub(super) const fn with_default(mut self, default: &'static str) -> Self {
        self.default = default;
        self
    }

    /// The same flag with a letter.
    pub(super) const fn with_short(mut self, letter: char) -> Self {
        self.short = Some(letter);
        self
    }

    /// The same flag with a name for its value.
    pub(super) const fn with_value_name(mut self, value: &'static str) -> Self {
        self.value = value;
        self
    }

    /// The same flag, hidden.
    pub(super) const fn hidden(mut self) -> Self {
        self.hidden = true;
        self
    }

    /// The same flag, deprecated.
    pub(super) const fn deprecated(mut self, advice: &'static str) -> Self {
        self.deprecated = Some(advice);
        self.hidden = true;
        self
    }

    /// Whether the flag takes no value from the next argument.
    pub(super) fn is_switch(&self) -> bool {
        self.kind == FlagKind::Switch
    }
}

/// The given flags, and the other arguments.
#[derive(Debug, Default)]
pub(super) struct ParsedFlags {
    values: BTreeMap<&'static str, Vec<String>>,
    /// The arguments that are not flags.
    pub(super) arguments: Vec<String>,
    /// Warnings about the given flags.
    pub(super) warnings: String,
    defaults: BTreeMap<&'static str, &'static str>,
}

impl ParsedFlags {
    /// Arguments without flag parsing.
    pub(super) fn unparsed(arguments: &[String]) -> Self {
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

    /// The text of the flag: the last given one, or the default.
    pub(super) fn text(&self, name: &str) -> &str {
        let given = self.values.get(name).and_then(|all| all.last()).map(String::as_str);
        given.unwrap_or_else(|| self.defaults.get(name).copied().unwrap_or_default())
    }

    /// All texts of the flag.
    pub(super) fn list(&self, name: &str) -> &[String] {
        self.values.get(name).map_or(&[], Vec::as_slice)
    }

    /// All pairs of the flag; the last one of each key.
    pub(super) fn pairs(&self, name: &str) -> BTreeMap<String, String> {
        let pairs = self.list(name).iter().filter_map(|pair| pair.split_once('='));
        pairs.map(|(key, value)| (key.to_owned(), value.to_owned())).collect()
    }

    fn set(&mut self, flag: &Flag, value: &str) -> Result<(), FlagError> {
        let all = self.values.entry(flag.name).or_default();
        add_value(flag.kind, value, all).map_err(|source| {
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

/// Parses a value and adds it to the texts of a flag.
fn add_value(kind: FlagKind, value: &str, all: &mut Vec<String>) -> Result<(), ValueError> {
    match kind {
        FlagKind::Switch => all.push(go::parse_bool(value)?.to_string()),
        FlagKind::Text => all.push(value.to_owned()),
        FlagKind::List => all.extend(csv::fields(value)?),
        FlagKind::Pairs => all.extend(split_pairs(value)?),
    }
    Ok(())
}

/// The pairs of a value. A single pair may contain commas.
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

/// Why parsing of flags ended early.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum ParseFlagsError {
    /// The flags ask for help.
    Help,
    /// The flags are invalid.
    Invalid(FlagError),
}

/// Parses flags and arguments in any order; after `--` there are no flags.
///
/// # Errors
/// The first error.
pub(super) fn parse(flags: &[&Flag], arguments: &[String]) -> Result<ParsedFlags, ParseFlagsError> {
    let mut given = ParsedFlags {
        defaults: flags.iter().map(|flag| (flag.name, flag.default)).collect(),
        ..ParsedFlags::default()
    };
    let mut rest = arguments.iter();
    while let Some(argument) = rest.next() {
        if argument == "--" {
            given.arguments.extend(rest.by_ref().cloned());
        } else if let Some(long) = argument.strip_prefix("--") {
            parse_long(flags, long, argument, &mut rest, &mut given)?;
        } else if let Some(letters) =
            argument.strip_prefix('-').filter(|letters| !letters.is_empty())
        {
            parse_letters(flags, letters, &mut rest, &mut given)?;
        } else {
            given.arguments.push(argument.clone());
        }
    }
    Ok(given)
}

type Rest<'a> = std::slice::Iter<'a, String>;

fn parse_long(
    flags: &[&Flag],
    long: &str,
    argument: &str,
    rest: &mut Rest<'_>,
    given: &mut ParsedFlags,
) -> Result<(), ParseFlagsError> {
    if long.starts_with(['-', '=']) {
        return Err(ParseFlagsError::Invalid(FlagError::Syntax { argument: argument.to_owned() }));
    }
    let (name, value) = match long.split_once('=') {
        Some((name, value)) => (name, Some(value)),
        None => (long, None),
    };
    let Some(flag) = flags.iter().find(|flag| flag.name == name) else {
        if name == "help" {
            return Err(ParseFlagsError::Help);
        }
        return Err(ParseFlagsError::Invalid(FlagError::Unknown { name: name.to_owned() }));
    };
    let value = match value {
        Some(value) => value,
        None if flag.is_switch() => "true",
        None => match rest.next() {
            Some(next) => next,
            None => {
                return Err(ParseFlagsError::Invalid(FlagError::NoValue { name: name.to_owned() }));
            }
        },
    };
    given.set(flag, value).map_err(ParseFlagsError::Invalid)
}

fn parse_letters(
    flags: &[&Flag],
    letters: &str,
    rest: &mut Rest<'_>,
    given: &mut ParsedFlags,
) -> Result<(), ParseFlagsError> {
    let mut at = letters;
    while let Some(&letter) = at.as_bytes().first() {
        // Upstream reads bytes, so its error names the first byte of a letter beyond ASCII.
        let letter = char::from(letter);
        let Some(flag) = flags.iter().find(|flag| flag.short == Some(letter)) else {
            if letter == 'h' {
                return Err(ParseFlagsError::Help);
            }
            let letters = at.to_owned();
            return Err(ParseFlagsError::Invalid(FlagError::UnknownLetter { letter, letters }));
        };
        let after = &at[1..];
        let (value, left) = match after.strip_prefix('=').filter(|value| !value.is_empty()) {
            Some(value) => (value, ""),
            None if flag.is_switch() => ("true", after),
            None if !after.is_empty() => (after, ""),
            None => {
                let Some(next) = rest.next() else {
                    let letters = at.to_owned();
                    return Err(ParseFlagsError::Invalid(FlagError::LetterNoValue {
                        letter,
                        letters,
                    }));
                };
                (next.as_str(), "")
            }
        };
        given.set(flag, value).map_err(ParseFlagsError::Invalid)?;
        at = left;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flags() -> Vec<Flag> {
        vec![
            Flag::text("output", Some('o'), "").with_default("json"),
            Flag::switch("debug", ""),
            Flag::list("labels", Some('l'), ""),
            Flag::switch("old", "").deprecated("use --new"),
            Flag { short: Some('s'), ..Flag::switch("short", "") },
        ]
    }

    fn parse_words(words: &[&str]) -> Result<ParsedFlags, ParseFlagsError> {
        let flags = flags();
        let words: Vec<String> = words.iter().map(|&word| word.to_owned()).collect();
        parse(&flags.iter().collect::<Vec<_>>(), &words)
    }

    #[test]
    fn flags_may_stand_anywhere_before_two_dashes() {
        let given = parse_words(&["a", "-oyaml", "b", "--debug", "--", "--debug", "-x"]).unwrap();
        assert_eq!(given.arguments, ["a", "b", "--debug", "-x"]);
        assert_eq!(given.text("output"), "yaml");
        assert!(given.is_on("debug"));
        assert!(given.has("debug") && !given.has("old"));
    }

    #[test]
    fn a_value_has_several_spellings() {
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
            assert_eq!(parse_words(words).unwrap().text("output"), "x", "{words:?}");
        }
        assert_eq!(parse_words(&["-", ""]).unwrap().arguments, ["-", ""]);
        assert_eq!(parse_words(&[]).unwrap().text("output"), "json");
        assert_eq!(parse_words(&["--output="]).unwrap().text("output"), "");
        assert!(!parse_words(&["--debug=F"]).unwrap().is_on("debug"));
        assert!(parse_words(&["--old"]).unwrap().warnings.contains("--old has been deprecated"));
    }

    #[test]
    fn errors_have_the_texts_of_upstream() {
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
            let ParseFlagsError::Invalid(error) = parse_words(words).unwrap_err() else {
                panic!("{words:?}")
            };
            assert_eq!(error.to_string(), message);
        }
        assert_eq!(parse_words(&["--help"]).unwrap_err(), ParseFlagsError::Help);
        assert_eq!(parse_words(&["-h"]).unwrap_err(), ParseFlagsError::Help);
    }
}
