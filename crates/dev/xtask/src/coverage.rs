//! Holds scenarios against the rows of the specification that they must show.
//!
//! `crates/**/scenarios/ids.txt` lists the rows: an id or a range of ids a line, `#` begins a
//! comment. A scenario is an item of a list in `crates/**/scenarios/**/*.yaml`. It shows the rows of
//! its `ids` when it says what must come of it: one of [`EXPECTATIONS`] with something in it, in the
//! scenario or in one of its steps. An id that nobody lists is a slip of the pen.

use anyhow::{Context, bail};
use mainstay_yaml::{DuplicateKeys, Options};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

/// What says what must come of a scenario. Its runner refuses keys that it does not know.
const EXPECTATIONS: [&str; 17] = [
    "blocks",
    "chosen",
    "contains",
    "error",
    "expect",
    "failures",
    "installs",
    "keeps",
    "kind",
    "message",
    "nothing",
    "outcome",
    "reasons",
    "repairs",
    "says",
    "subscribes",
    "updates",
];

/// Lists of steps, which have expectations of their own.
const STEPS: [&str; 3] = ["cases", "steps", "then"];

/// What is wanted and what is there.
#[derive(Debug, Default)]
struct Ledger {
    /// Ids, and the list that each is in.
    wanted: BTreeMap<String, String>,
    /// Ids of scenarios that say what must come of them, and how many there are of each.
    shown: BTreeMap<String, usize>,
    /// Ids that scenarios name, and where.
    named: BTreeMap<String, String>,
    scenarios: usize,
}

/// Fails with a list of the ids that nothing shows, or that nobody wants.
pub(crate) fn run(root: &Path) -> anyhow::Result<()> {
    let ledger = read(root)?;
    let wrong = ledger.wrong();
    if !wrong.is_empty() {
        bail!("{wrong}");
    }
    println!(
        "{} ids, each shown by one of {} scenarios at least",
        ledger.wanted.len(),
        ledger.scenarios
    );
    Ok(())
}

fn read(root: &Path) -> anyhow::Result<Ledger> {
    let mut files = Vec::new();
    collect(&root.join("crates"), false, &mut files)?;
    files.sort();
    let mut ledger = Ledger::default();
    for path in files {
        let name = path.strip_prefix(root).unwrap_or(&path).to_string_lossy().replace('\\', "/");
        let text = fs::read_to_string(&path).with_context(|| format!("read {name}"))?;
        if name.ends_with("/ids.txt") {
            ledger.want(&name, &text)?;
        } else {
            ledger.take(&name, &text)?;
        }
    }
    Ok(ledger)
}

/// Files in folders called `scenarios`, however deep.
fn collect(folder: &Path, inside: bool, files: &mut Vec<PathBuf>) -> anyhow::Result<()> {
    let entries = fs::read_dir(folder).with_context(|| format!("read {}", folder.display()))?;
    for entry in entries {
        let path = entry?.path();
        if path.is_dir() {
            let inside = inside || path.file_name().is_some_and(|name| name == "scenarios");
            collect(&path, inside, files)?;
        } else if inside
            && (path.file_name().is_some_and(|name| name == "ids.txt")
                || path.extension().is_some_and(|extension| extension == "yaml"))
        {
            files.push(path);
        }
    }
    Ok(())
}

impl Ledger {
    /// Reads a list of ids.
    fn want(&mut self, file: &str, text: &str) -> anyhow::Result<()> {
        for line in text.lines() {
            let line = line.split('#').next().unwrap_or_default().trim();
            if line.is_empty() {
                continue;
            }
            for id in range(line).with_context(|| format!("{file}: `{line}` is no range of ids"))? {
                if self.wanted.insert(id.clone(), file.to_owned()).is_some() {
                    bail!("{file}: {id} is listed twice");
                }
            }
        }
        Ok(())
    }

    /// Reads a file of scenarios.
    fn take(&mut self, file: &str, text: &str) -> anyhow::Result<()> {
        let options = Options { duplicate_keys: DuplicateKeys::Refuse, ..Options::default() };
        let document = mainstay_yaml::one(text.as_bytes(), &options)
            .map_err(|error| anyhow::anyhow!("{file}:{}: {}", error.line, error.message))?;
        for scenario in document.as_array().into_iter().flatten() {
            let Some(ids) = scenario.get("ids") else { continue };
            let ids: Vec<String> = serde_json::from_value(ids.clone())
                .with_context(|| format!("{file}: ids is a list of texts"))?;
            let says = expects(scenario);
            self.scenarios += 1;
            for id in ids {
                if says {
                    *self.shown.entry(id.clone()).or_default() += 1;
                }
                self.named.entry(id).or_insert_with(|| file.to_owned());
            }
        }
        Ok(())
    }

    /// What is wrong, one line each.
    fn wrong(&self) -> String {
        let mut wrong = String::new();
        let missing: BTreeSet<&String> =
            self.wanted.keys().filter(|id| !self.shown.contains_key(*id)).collect();
        for id in missing {
            let how = match self.named.get(id) {
                Some(file) => format!("is named in {file}, but nothing is expected there"),
                None => "no scenario names it".to_owned(),
            };
            let _ = write!(wrong, "\n{id}: {how}");
        }
        for (id, file) in self.named.iter().filter(|(id, _)| !self.wanted.contains_key(*id)) {
            let _ = write!(wrong, "\n{id}: named in {file}, but in no list of ids");
        }
        wrong
    }
}

/// Whether a scenario or one of its steps says what must come of it.
fn expects(scenario: &Value) -> bool {
    let given = |value: &Value| match value {
        Value::Null => false,
        // `nothing: false` says nothing; an empty list of installs says that there are none.
        Value::Bool(given) => *given,
        _ => true,
    };
    EXPECTATIONS.iter().any(|key| scenario.get(key).is_some_and(given))
        || STEPS
            .iter()
            .any(|key| scenario[*key].as_array().is_some_and(|steps| steps.iter().any(expects)))
}

/// The ids of `A07` or `A07..A12`: the numbers count up, with as many digits at least.
fn range(text: &str) -> Option<Vec<String>> {
    let split = |id: &str| {
        let digits = id.len() - id.trim_end_matches(|c: char| c.is_ascii_digit()).len();
        let (head, number) = id.split_at(id.len() - digits);
        let fine = id.chars().all(|c| c.is_ascii_alphanumeric() || c == '-') && !head.is_empty();
        fine.then(|| (head.to_owned(), number.to_owned()))
    };
    let (first, last) = text.split_once("..").unwrap_or((text, text));
    let ((head, low), (other, high)) = (split(first)?, split(last)?);
    if head != other {
        return None;
    }
    let (from, to): (u32, u32) = (low.parse().ok()?, high.parse().ok()?);
    let width = low.len();
    (from <= to && to - from < 10_000)
        .then(|| (from..=to).map(|number| format!("{head}{number:0width$}")).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ledger(ids: &str, scenarios: &str) -> Ledger {
        let mut ledger = Ledger::default();
        ledger.want("ids.txt", ids).unwrap();
        ledger.take("a.yaml", scenarios).unwrap();
        ledger
    }

    #[test]
    fn ranges_count_up_with_their_digits() {
        assert_eq!(range("R008..R011").unwrap(), ["R008", "R009", "R010", "R011"]);
        assert_eq!(range("AT-RES-18").unwrap(), ["AT-RES-18"]);
        for odd in ["R1..S2", "R2..R1", "R", "12", "R1..", "R1...R2", "R 1"] {
            assert_eq!(range(odd), None, "{odd}");
        }
    }

    #[test]
    fn an_id_is_shown_by_a_scenario_that_expects_something() {
        for (scenario, shown) in [
            ("- {name: a, ids: [R1], installs: []}", true),
            ("- {name: a, ids: [R1], nothing: true}", true),
            ("- {name: a, ids: [R1], world: x, then: [{reasons: [a]}]}", true),
            ("- {name: a, ids: [R1], world: x}", false),
            ("- {name: a, ids: [R1], nothing: false, error: null}", false),
            ("- {name: a, installs: []}", false),
        ] {
            assert_eq!(ledger("R1", scenario).wrong().is_empty(), shown, "{scenario}");
        }
    }

    #[test]
    fn what_is_missing_and_what_nobody_wants_is_named() {
        let found = ledger(
            "# rows\nR1..R3\n",
            "- {name: a, ids: [R1, R9], nothing: true}\n- {name: b, ids: [R2]}\n",
        );
        assert_eq!(
            found.wrong(),
            "\nR2: is named in a.yaml, but nothing is expected there\nR3: no scenario names it\n\
             R9: named in a.yaml, but in no list of ids"
        );
        let mut twice = Ledger::default();
        assert!(twice.want("ids.txt", "R1\nR1").is_err());
    }

    #[test]
    fn files_that_are_no_lists_are_passed_over_and_broken_ones_named() {
        let mut ledger = Ledger::default();
        ledger.take("a.yaml", "steps: []\n").unwrap();
        let error = ledger.take("a.yaml", "- {ids: [\n").unwrap_err().to_string();
        assert!(error.starts_with("a.yaml:"), "{error}");
        assert!(ledger.take("a.yaml", "- {ids: R1}\n").is_err());
    }
}
