//! Command lines of kubectl.

use anyhow::Context;

/// The namespace option of a command line.
pub fn namespace(text: &str) -> Option<String> {
    CommandLine::parse(text).ok()?.namespace
}

/// Splits a line into words, as a shell does with quotes.
fn split_words(line: &str) -> Vec<String> {
    let (mut all, mut word, mut quote) = (Vec::new(), None::<String>, None);
    for letter in line.chars() {
        if quote == Some(letter) {
            quote = None;
        } else if quote.is_none() && matches!(letter, '\'' | '"') {
            quote = Some(letter);
            word.get_or_insert_default();
        } else if quote.is_none() && letter.is_whitespace() {
            all.extend(word.take());
        } else {
            word.get_or_insert_default().push(letter);
        }
    }
    all.extend(word);
    all
}

/// A parsed command line.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CommandLine {
    /// The command, such as `apply`.
    pub verb: String,
    /// The value of `-n`.
    pub namespace: Option<String>,
    /// The arguments after the command.
    pub arguments: Vec<String>,
    /// The value of `--type`, the kind of a patch.
    pub(super) patch_type: String,
    /// The value of `-p`.
    pub(super) patch: String,
    /// The value of `--subresource`.
    pub(super) subresource: String,
    /// The value of `-l`.
    pub selector: String,
    /// The value of `--field-selector`.
    pub fields: String,
    /// The value of `-o`.
    pub output: String,
    /// All other options, such as `--overwrite`.
    pub flags: Vec<String>,
    /// Whether `--all` is set.
    pub(super) all: bool,
    /// The value of `--replicas`.
    pub(super) replicas: Option<i64>,
    /// The value of `--raw`.
    pub raw: Option<String>,
}

impl CommandLine {
    /// Parses a line that begins with `kubectl`.
    ///
    /// # Errors
    /// An option has no value, or its value is no number.
    pub fn parse(text: &str) -> anyhow::Result<Self> {
        Self::of_words(split_words(text).into_iter().skip(1))
    }

    /// Parses the arguments of kubectl.
    ///
    /// # Errors
    /// Those of [`CommandLine::parse`].
    pub fn of_words(words: impl IntoIterator<Item = String>) -> anyhow::Result<Self> {
        let mut line = Self::default();
        let mut words = words.into_iter();
        while let Some(word) = words.next() {
            let mut value = || words.next().with_context(|| format!("a value of {word}"));
            match word.as_str() {
                "-n" | "--namespace" => line.namespace = Some(value()?),
                "--type" => line.patch_type = value()?,
                "-p" | "--patch" => line.patch = value()?,
                "--subresource" => line.subresource = value()?,
                "-l" | "--selector" => line.selector = value()?,
                "--raw" => line.raw = Some(value()?),
                "-o" => line.output = value()?,
                "--field-selector" => line.fields = value()?,
                "-f" => drop(value()?),
                "--all" => line.all = true,
                other if other.starts_with("--replicas=") => {
                    line.replicas = Some(other["--replicas=".len()..].parse()?);
                }
                other if other.starts_with('-') && other.len() > 1 => line.flags.push(word),
                _ if line.verb.is_empty() => line.verb = word,
                _ => line.arguments.push(word),
            }
        }
        Ok(line)
    }

    /// Whether an option such as `--validate=false` is set.
    pub(super) fn has(&self, flag: &str) -> bool {
        self.flags.iter().any(|set| set == flag)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn command_line_is_parsed_into_verb_arguments_and_options() {
        let found = CommandLine::parse(
            r#"kubectl -n c1 patch csv a --subresource status --type merge -p '{"status": {"x": "y"}}'"#,
        );
        let found = found.unwrap();
        assert_eq!((found.verb.as_str(), found.namespace.as_deref()), ("patch", Some("c1")));
        assert_eq!(found.arguments, ["csv", "a"]);
        assert_eq!(found.patch, r#"{"status": {"x": "y"}}"#);
        let found = CommandLine::parse("kubectl -n c1 scale deployment/a --replicas=0").unwrap();
        assert_eq!((found.replicas, found.arguments), (Some(0), vec!["deployment/a".to_owned()]));
        let found =
            CommandLine::parse("kubectl -n c1 label csv a olm.copiedFrom- x= --overwrite").unwrap();
        assert_eq!(found.arguments, ["csv", "a", "olm.copiedFrom-", "x="]);
    }
}
