//! `cargo xtask words`: holds the names of the code to the words of the house (docs/style.md).
//!
//! Three things are refused: a name that `words.txt` retires, one type name for two things, and `it` as
//! a name. What is there from before is listed in `words.txt` as a number for each word, which may only
//! become smaller: `cargo xtask words` lowers it, and `--check` refuses one that is too high.
//!
//! ```text
//! *.rs ─► without comments and texts ─► names ─┬─ retired? ──┐
//!                                              ├─ `it`? ─────┼─► findings ─► beside what is left
//!                                              └─ types ─────┘
//! ```
//!
//! Types count when their crate exports them: `pub`, where the lint `unreachable_pub` keeps the word honest.
//!
//! What this does not judge: comments, messages, and whether a name is true.

use crate::coverage::rust::blank;
use anyhow::{Context, bail};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

const RULES: &str = include_str!("words.txt");
/// How many places of one kind a report shows.
const SHOWN: usize = 5;

/// The file that the rules are in.
const FILE: &str = "crates/dev/xtask/src/words.txt";

/// Checks all Rust sources below `crates`. Without `check` the numbers of what is left are lowered.
pub(crate) fn run(root: &Path, check: bool) -> anyhow::Result<()> {
    let rules = Rules::read(RULES)?;
    let mut files = Vec::new();
    sources(&root.join("crates"), &mut files)?;
    files.sort();
    let mut found = Findings::default();
    let mut types = Types::new();
    for path in &files {
        let text = fs::read_to_string(path).with_context(|| format!("read {}", path.display()))?;
        let file = path.strip_prefix(root).unwrap_or(path).display().to_string();
        inspect(&file, &text, &rules, &mut found, &mut types);
    }
    for (name, crates) in types {
        if crates.len() > 1 && !rules.shared.contains(&name) {
            for place in crates.into_values() {
                found.note(format!("type {name}"), place);
            }
        }
    }
    let report = rules.report(&found, check);
    if !report.is_empty() {
        bail!("{report}");
    }
    if !check {
        let path = root.join(FILE);
        fs::write(&path, lowered(RULES, &found)).with_context(|| format!("write {FILE}"))?;
    }
    Ok(())
}

/// The rules with the numbers of what is left now.
fn lowered(rules: &str, found: &Findings) -> String {
    let mut out = String::new();
    for line in rules.lines() {
        let left = line.strip_prefix("left ").and_then(|rest| rest.rsplit_once(' '));
        let Some((finding, _)) = left else {
            out.push_str(line);
            out.push('\n');
            continue;
        };
        if let Some(places) = found.0.get(finding) {
            // Writing to a string cannot fail.
            let _ = writeln!(out, "left {finding} {}", places.len());
        }
    }
    out
}

fn sources(folder: &Path, files: &mut Vec<PathBuf>) -> anyhow::Result<()> {
    for entry in fs::read_dir(folder).with_context(|| format!("read {}", folder.display()))? {
        let path = entry?.path();
        if path.is_dir() {
            sources(&path, files)?;
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
    Ok(())
}

/// For each name of a type that a crate exports: a place in each crate that has it.
type Types = BTreeMap<String, BTreeMap<String, String>>;

/// What `words.txt` says.
#[derive(Default)]
struct Rules {
    /// Words that are no part of a name, and what to write.
    retired: BTreeMap<String, String>,
    /// Words that are no whole name, and what to write.
    bare: BTreeMap<String, String>,
    /// Type names that stand for the same kind of thing in several crates.
    shared: BTreeSet<String>,
    /// How many places are left of a finding.
    left: BTreeMap<String, usize>,
}

impl Rules {
    fn read(text: &str) -> anyhow::Result<Self> {
        let mut rules = Self::default();
        for (at, line) in text.lines().enumerate() {
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let place = || format!("words.txt line {}", at + 1);
            let (rule, rest) = line.split_once(' ').with_context(place)?;
            match rule {
                "retired" | "bare" => {
                    let (word, instead) = rest.split_once(": ").with_context(place)?;
                    let words = if rule == "bare" { &mut rules.bare } else { &mut rules.retired };
                    words.insert(word.to_owned(), instead.to_owned());
                }
                "shared" => {
                    let (name, _reason) = rest.split_once(": ").with_context(place)?;
                    rules.shared.insert(name.to_owned());
                }
                "left" => {
                    let (finding, count) = rest.rsplit_once(' ').with_context(place)?;
                    rules.left.insert(finding.to_owned(), count.parse().with_context(place)?);
                }
                _ => bail!("{}: {rule} is no rule", place()),
            }
        }
        Ok(rules)
    }

    /// What to write instead of a name; none if the name is fine.
    fn refusal(&self, name: &str) -> Option<(String, &str)> {
        if let Some(instead) = self.bare.get(name) {
            return Some((format!("name {name}"), instead));
        }
        let parts = parts(name);
        let (word, instead) = self.retired.iter().find(|(word, _)| parts.contains(word))?;
        Some((format!("word {word}"), instead))
    }

    /// What is found beyond what is left, and with `check` what is left no more; empty if all is as listed.
    fn report(&self, found: &Findings, check: bool) -> String {
        let mut out = String::new();
        let names: BTreeSet<&String> = found.0.keys().chain(self.left.keys()).collect();
        for name in names {
            let places = found.0.get(name).map_or(&[][..], Vec::as_slice);
            let left = self.left.get(name).copied().unwrap_or_default();
            if places.len() > left {
                // Writing to a string cannot fail.
                let _ = writeln!(out, "{name}: {} places, {left} are left over:", places.len());
                for place in places.iter().take(SHOWN) {
                    let _ = writeln!(out, "  {place}");
                }
            } else if check && places.len() < left {
                let _ = writeln!(
                    out,
                    "{name}: {} places are left, not {left}: run `cargo xtask words`",
                    places.len()
                );
            }
        }
        out
    }
}

/// Places, by what is wrong at them.
#[derive(Default)]
struct Findings(BTreeMap<String, Vec<String>>);

impl Findings {
    fn note(&mut self, finding: String, place: String) {
        self.0.entry(finding).or_default().push(place);
    }
}

fn inspect(file: &str, text: &str, rules: &Rules, found: &mut Findings, types: &mut Types) {
    let code = blank(text);
    let owner = file.split_once("/src/");
    for (line, content) in code.lines().enumerate() {
        let place = |note: &str| format!("{file}:{}: {note}", line + 1);
        let mut before = "";
        for name in names(content) {
            if name == "it" {
                found.note("name it".to_owned(), place("say what it is"));
            }
            let declares = matches!(
                before,
                "fn" | "struct" | "enum" | "union" | "trait" | "type" | "mod" | "const" | "static"
            );
            if declares && let Some((finding, instead)) = rules.refusal(name) {
                found.note(finding, place(&format!("{name}; write {instead}")));
            }
            // Generated code has the names of its source.
            let is_type = !file.contains("/generated/")
                && matches!(before, "struct" | "enum" | "union" | "trait");
            if is_type
                && content.starts_with("pub ")
                && let Some((owner, _)) = owner
            {
                let place = format!("{file}:{}", line + 1);
                types.entry(name.to_owned()).or_default().insert(owner.to_owned(), place);
            }
            before = name;
        }
    }
}

/// The names of a line, keywords included.
fn names(line: &str) -> impl Iterator<Item = &str> {
    line.split(|letter: char| !letter.is_alphanumeric() && letter != '_')
        .filter(|name| name.starts_with(|letter: char| letter.is_alphabetic() || letter == '_'))
}

/// The words that a name is made of, in small letters.
fn parts(name: &str) -> Vec<String> {
    let mut parts: Vec<String> = Vec::new();
    let mut was_small = false;
    for letter in name.chars() {
        let begins = letter == '_' || (letter.is_uppercase() && was_small) || parts.is_empty();
        if begins {
            parts.push(String::new());
        }
        was_small = letter.is_lowercase() || letter.is_ascii_digit();
        if letter != '_'
            && let Some(part) = parts.last_mut()
        {
            part.extend(letter.to_lowercase());
        }
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOME: &str = "retired wish: desired\nbare told: a noun\nshared Error: each crate has one\nleft word wish 1\n";

    fn findings(files: &[(&str, &str)]) -> (Rules, Findings, Types) {
        let rules = Rules::read(SOME).unwrap();
        let (mut found, mut types) = (Findings::default(), Types::new());
        for (file, text) in files {
            inspect(file, text, &rules, &mut found, &mut types);
        }
        (rules, found, types)
    }

    #[test]
    fn retired_words_and_it_are_refused_outside_of_comments_and_texts() {
        let text = "// it told a wish\nfn told() { f(\"it\", r#\"it \"it\"#, '\\'', 'a'); }\n\
            struct WishList<'it>;\nfn retold() { g(|it| it.x) }\n";
        let (rules, found, _) = findings(&[("a.rs", text)]);
        assert_eq!(found.0["name told"], ["a.rs:2: told; write a noun"]);
        assert_eq!(found.0["word wish"], ["a.rs:3: WishList; write desired"]);
        assert_eq!(found.0["name it"].len(), 3, "{:?}", found.0);
        let report = rules.report(&found, true);
        assert!(report.contains("name told: 1 places, 0 are left over"), "{report}");
        assert!(!report.contains("word wish"), "{report}");
    }

    #[test]
    fn a_number_that_is_too_high_is_refused_as_well() {
        let (rules, found, _) = findings(&[("a.rs", "fn fine() {}\n")]);
        assert!(rules.report(&found, true).contains("word wish: 0 places are left, not 1"));
        assert_eq!(rules.report(&found, false), "");
        assert!(!lowered(SOME, &found).contains("left"));
    }

    #[test]
    fn one_name_is_one_type_of_those_that_crates_export() {
        let files = [
            ("crates/a/src/lib.rs", "pub struct Place;\nstruct Inner;\n"),
            ("crates/b/src/b.rs", "pub(crate) enum Role {}\nstruct Inner;\n"),
            ("crates/b/src/c.rs", "pub enum Place {}\n"),
            ("crates/c/src/lib.rs", "pub trait Role {}\n"),
            ("crates/b/tests/it/main.rs", "pub struct Role;\n"),
        ];
        let (_, _, types) = findings(&files);
        assert_eq!(types["Place"].len(), 2);
        assert_eq!(types["Role"].len(), 1);
        assert!(!types.contains_key("Inner"));
    }
}
