//! Holds scenarios against the rows of the specification that they must show.
//!
//! `crates/**/scenarios/ids.txt` lists the rows: an id or a range of ids a line, `#` begins a
//! comment. A row is shown by an assertion about its subject, and its id stands on that assertion:
//! * in a Rust test, a line `// shows A01 B02` directly above the statement ([`rust`]);
//! * in a scenario, which is an item of a list in `crates/**/scenarios/**/*.yaml`, or one of its
//!   steps: `ids: [A01]` where it has one expectation, `ids: {installs: [A01], updates: [B02]}` where
//!   it has several (`expect.bundle` for one that is inside another);
//! * in a script of `crates/**/tests/scripts`, a line `# shows A01 B02` directly above the check;
//! * in recorded cases, a line of `crates/**/ids.txt` ([`recorded`]).
//!
//! A line `A01 = B02` in a `same.txt` beside a list of ids says that two rows say the same: the first
//! is shown where the second is.
//!
//! Beside a list of ids may lie `not-for-us.txt` (`A01..A03: why`), ids that nothing of ours can show,
//! and `missing.txt`, ids that nothing shows yet. What is in neither must be shown, and what is shown
//! must be in neither. An id that nobody lists is a slip of the pen.
//!
//! `docs/requirements.md` says what each listed id means ([`page`]).

mod page;
mod recorded;
pub(crate) mod rust;

use anyhow::{Context, bail};
use mainstay_yaml::{DuplicateKeys, Options};
use serde_json::Value;
use std::collections::BTreeMap;
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

/// The expectation that consists of expectations.
const NESTED: &str = "expect";

/// What a script says when it fails unless something is so.
const CHECKS: [&str; 10] = [
    "shows ",
    "hides ",
    "runs ",
    "why_not ",
    "holds ",
    "subscription ",
    "until ",
    "while ",
    "wait --for",
    "[ ",
];

/// The comment above such a line.
const MARK: &str = "# shows ";

/// What is wanted and what is there.
#[derive(Debug, Default)]
struct Ledger {
    /// Ids that nothing of ours can show, and why.
    foreign: BTreeMap<String, String>,
    /// Ids that nothing shows yet, and the list that says so.
    missing: BTreeMap<String, String>,
    /// Ids that say the same as another, that other, and the list that says so.
    same: Vec<(String, String, String)>,
    /// Ids, and the list that each is in.
    wanted: BTreeMap<String, String>,
    /// Ids that assertions show, and how many there are of each.
    shown: BTreeMap<String, usize>,
    /// Of these, those that tests, scenarios and scripts show, whatever recordings do.
    own: BTreeMap<String, usize>,
    /// Ids that are named, and where.
    named: BTreeMap<String, String>,
    assertions: usize,
}

/// What shows a row.
#[derive(Clone, Copy, PartialEq, Eq)]
enum By {
    /// A test, a scenario or a script.
    Own,
    /// A recorded case, which whoever has no recordings cannot replay.
    Recording,
}

/// Fails with a list of the ids that nothing shows, that nobody wants, or that have no meaning.
pub(crate) fn run(root: &Path) -> anyhow::Result<()> {
    let ledger = read(root)?;
    let text = fs::read_to_string(root.join(page::FILE))
        .with_context(|| format!("read {}", page::FILE))?;
    let wrong = ledger.wrong() + &page::compare(&page::read_rows(&text)?, &ledger.wanted);
    if !wrong.is_empty() {
        bail!("{wrong}");
    }
    let alone = ledger.shown.keys().filter(|id| !ledger.own.contains_key(*id)).count();
    println!(
        "{} ids, each shown by one of {} assertions at least, {alone} of them by recorded cases alone; {} are not ours to show, {} are missing",
        ledger.wanted.len() - ledger.foreign.len() - ledger.missing.len(),
        ledger.assertions,
        ledger.foreign.len(),
        ledger.missing.len()
    );
    Ok(())
}

fn read(root: &Path) -> anyhow::Result<Ledger> {
    let mut files = Vec::new();
    collect(&root.join("crates"), false, &mut files)?;
    files.sort();
    let mut ledger = Ledger::default();
    let mut sources = rust::Sources::default();
    for path in files {
        let name = path.strip_prefix(root).unwrap_or(&path).to_string_lossy().replace('\\', "/");
        let text = fs::read_to_string(&path).with_context(|| format!("read {name}"))?;
        let inside = name.contains("/scenarios/");
        let extension =
            path.extension().and_then(|extension| extension.to_str()).unwrap_or_default();
        match name.rsplit('/').next().unwrap_or_default() {
            "ids.txt" if inside => ledger.want(&name, &text)?,
            "ids.txt" => ledger.recorded(&name, &text)?,
            "not-for-us.txt" => ledger.excuse(&name, &text)?,
            "missing.txt" => ledger.lack(&name, &text)?,
            "same.txt" => ledger.equal(&name, &text)?,
            _ if extension == "sh" => ledger.script(&name, &text)?,
            // This chore itself has such lines in its own tests.
            _ if extension == "rs" && name.contains("/xtask/") => {}
            _ if extension == "rs" => sources.add(&name, text),
            _ => ledger.take(&name, &text)?,
        }
    }
    ledger.tests(&sources)?;
    ledger.spread();
    Ok(ledger)
}

/// Files that say something of ids: those in folders called `scenarios`, however deep, tables of
/// recorded cases, and tests.
fn collect(folder: &Path, inside: bool, files: &mut Vec<PathBuf>) -> anyhow::Result<()> {
    let entries = fs::read_dir(folder).with_context(|| format!("read {}", folder.display()))?;
    for entry in entries {
        let path = entry?.path();
        let name = path.file_name().and_then(|file_name| file_name.to_str()).unwrap_or_default();
        if path.is_dir() {
            collect(&path, inside || name == "scenarios", files)?;
            continue;
        }
        let extension =
            path.extension().and_then(|extension| extension.to_str()).unwrap_or_default();
        let listed = matches!(name, "ids.txt" | "not-for-us.txt" | "missing.txt" | "same.txt");
        let script = extension == "sh" && folder.ends_with("tests/scripts");
        let table = name == "ids.txt";
        if extension == "rs" || table || script || inside && (listed || extension == "yaml") {
            files.push(path);
        }
    }
    Ok(())
}

impl Ledger {
    /// Reads a list of ids that nothing of ours can show.
    fn excuse(&mut self, file: &str, text: &str) -> anyhow::Result<()> {
        for line in lines(text) {
            let (ids, why) = line
                .split_once(':')
                .filter(|(_, why)| !why.trim().is_empty())
                .with_context(|| format!("{file}: `{line}` is no `IDS: reason`"))?;
            for id in words(file, ids)? {
                self.foreign.insert(id, why.trim().to_owned());
            }
        }
        Ok(())
    }

    /// Reads a list of ids that nothing shows yet.
    fn lack(&mut self, file: &str, text: &str) -> anyhow::Result<()> {
        for line in lines(text) {
            for id in words(file, line)? {
                self.missing.insert(id, file.to_owned());
            }
        }
        Ok(())
    }

    /// Reads which fields of recorded cases show which ids.
    fn recorded(&mut self, file: &str, text: &str) -> anyhow::Result<()> {
        for line in lines(text) {
            self.assertions += 1;
            for id in words(file, recorded::ids(file, line)?)? {
                self.note(id, file, true, By::Recording);
            }
        }
        Ok(())
    }

    /// Takes up which assertions of tests show which ids.
    fn tests(&mut self, sources: &rust::Sources) -> anyhow::Result<()> {
        for shown in sources.markers()? {
            self.assertions += 1;
            for id in words(&shown.place, &shown.ids)? {
                self.note(id, &shown.place, true, By::Own);
            }
        }
        Ok(())
    }

    /// Reads which ids say the same as others.
    fn equal(&mut self, file: &str, text: &str) -> anyhow::Result<()> {
        for line in lines(text) {
            let (ids, other) = line
                .split_once('=')
                .with_context(|| format!("{file}: `{line}` is no `IDS = ID`"))?;
            for id in words(file, ids)? {
                self.same.push((id, other.trim().to_owned(), file.to_owned()));
            }
        }
        Ok(())
    }

    /// Shows ids where others are shown that say the same.
    fn spread(&mut self) {
        for (id, other, file) in std::mem::take(&mut self.same) {
            let by = if self.own.contains_key(&other) { By::Own } else { By::Recording };
            self.note(id, &file, self.shown.contains_key(&other), by);
        }
    }

    /// Reads a script.
    fn script(&mut self, file: &str, text: &str) -> anyhow::Result<()> {
        let mut rest = text.lines().enumerate().peekable();
        while let Some((at, line)) = rest.next() {
            let line = line.trim_start();
            if line.starts_with("# ids: ") {
                bail!("{file}:{}: `{line}` stands on no check; write `{MARK}…` above it", at + 1);
            }
            let Some(ids) = line.strip_prefix(MARK) else { continue };
            let next = rest.peek().map_or("", |(_, next)| next.trim_start());
            let checks = !next.starts_with('#') && CHECKS.iter().any(|check| next.contains(check));
            if !checks && !next.starts_with(MARK) {
                bail!(
                    "{file}:{}: `{line}` does not stand directly above one of {CHECKS:?}",
                    at + 1
                );
            }
            self.assertions += 1;
            for id in words(file, ids)? {
                self.note(id, file, true, By::Own);
            }
        }
        Ok(())
    }

    fn note(&mut self, id: String, file: &str, shown: bool, by: By) {
        if shown {
            *self.shown.entry(id.clone()).or_default() += 1;
            if by == By::Own {
                *self.own.entry(id.clone()).or_default() += 1;
            }
        }
        self.named.entry(id).or_insert_with(|| file.to_owned());
    }

    /// Reads a list of ids.
    fn want(&mut self, file: &str, text: &str) -> anyhow::Result<()> {
        for line in lines(text) {
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
            .map_err(|error| anyhow::anyhow!("{file}:{}: {}", error.line, error.fault))?;
        for scenario in document.as_array().into_iter().flatten() {
            let name = scenario["name"].as_str().unwrap_or_default();
            self.scenario(&format!("{file}: {name}"), scenario)?;
        }
        Ok(())
    }

    /// Reads a scenario or a step of one, and the steps in it.
    fn scenario(&mut self, place: &str, scenario: &Value) -> anyhow::Result<()> {
        let steps = || STEPS.iter().filter_map(|key| scenario[*key].as_array()).flatten();
        let expected = expectations(scenario);
        let mut shown: Vec<(Option<&str>, &Value)> = Vec::new();
        match scenario.get("ids") {
            None => {}
            Some(ids @ Value::Array(_)) => {
                if expected.len() > 1 || !expected.is_empty() && steps().next().is_some() {
                    bail!(
                        "{place}: it expects several things; say which of them shows the rows: `ids: {{{}: […]}}`, or on a step",
                        expected[0]
                    );
                }
                shown.push((expected.first().map(String::as_str), ids));
            }
            Some(Value::Object(by)) => {
                for (expectation, ids) in by {
                    if !expected.contains(expectation) {
                        bail!(
                            "{place}: ids name `{expectation}`, which it does not expect; it has {expected:?}"
                        );
                    }
                    shown.push((Some(expectation), ids));
                }
            }
            Some(other) => bail!("{place}: ids are a list, or lists by expectation, not {other}"),
        }
        for (expectation, ids) in shown {
            let ids: Vec<String> = serde_json::from_value(ids.clone())
                .with_context(|| format!("{place}: ids is a list of texts"))?;
            self.assertions += 1;
            for id in words(place, &ids.join(" "))? {
                self.note(id, place, expectation.is_some(), By::Own);
            }
        }
        for (at, step) in steps().enumerate() {
            self.scenario(&format!("{place}, step {}", at + 1), step)?;
        }
        Ok(())
    }

    /// What is wrong, one line each.
    fn wrong(&self) -> String {
        let mut wrong = String::new();
        let excused = |id: &String| self.foreign.contains_key(id) || self.missing.contains_key(id);
        for id in self.wanted.keys().filter(|id| !self.shown.contains_key(*id) && !excused(id)) {
            let how = match self.named.get(id) {
                Some(file) => format!("is named in {file}, but nothing is expected there"),
                None => "no scenario names it".to_owned(),
            };
            let _ = write!(wrong, "\n{id}: {how}");
        }
        for (id, file) in self.named.iter().filter(|(id, _)| !self.wanted.contains_key(*id)) {
            let _ = write!(wrong, "\n{id}: named in {file}, but in no list of ids");
        }
        for (id, file) in &self.missing {
            if self.shown.contains_key(id) {
                let _ =
                    write!(wrong, "\n{id}: {file} says that nothing shows it, but something does");
            }
        }
        for id in self.foreign.keys().filter(|id| self.shown.contains_key(*id)) {
            let _ = write!(wrong, "\n{id}: is said not to be ours to show, but something shows it");
        }
        for id in self.foreign.keys().chain(self.missing.keys()) {
            if !self.wanted.contains_key(id) {
                let _ = write!(wrong, "\n{id}: is excused, but in no list of ids");
            }
        }
        wrong
    }
}

/// Lines without comments and empty ones.
fn lines(text: &str) -> impl Iterator<Item = &str> {
    text.lines()
        .map(|line| line.split('#').next().unwrap_or_default().trim())
        .filter(|line| !line.is_empty())
}

/// Ids and ranges of ids between blanks.
fn words(file: &str, text: &str) -> anyhow::Result<Vec<String>> {
    let mut all = Vec::new();
    for word in text.split_whitespace() {
        all.extend(range(word).with_context(|| format!("{file}: `{word}` is no range of ids"))?);
    }
    Ok(all)
}

/// What a scenario or a step says of what must come of it, without what its own steps say.
fn expectations(scenario: &Value) -> Vec<String> {
    let given = |value: &Value| match value {
        Value::Null => false,
        // `nothing: false` says nothing; an empty list of installs says that there are none.
        Value::Bool(given) => *given,
        _ => true,
    };
    let mut all = Vec::new();
    for key in EXPECTATIONS {
        match scenario.get(key) {
            Some(Value::Object(parts)) if key == NESTED => {
                let parts = parts.iter().filter(|(_, part)| given(part));
                all.extend(parts.map(|(part, _)| format!("{key}.{part}")));
            }
            Some(value) if given(value) => all.push(key.to_owned()),
            _ => {}
        }
    }
    all
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
            ("- {name: a, ids: [R1], world: x, then: [{reasons: [a]}]}", false),
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
            "\nR2: is named in a.yaml: b, but nothing is expected there\nR3: no scenario names it\n\
             R9: named in a.yaml: a, but in no list of ids"
        );
        let mut twice = Ledger::default();
        assert!(twice.want("ids.txt", "R1\nR1").is_err());
    }

    #[test]
    fn a_scenario_that_expects_several_things_says_which_of_them_shows_its_ids() {
        for (scenario, wrong) in [
            ("- {name: a, ids: {installs: [R1]}, installs: [], updates: {}}", ""),
            ("- {name: a, ids: {installs: [R1]}, installs: [], then: [{nothing: true}]}", ""),
            ("- {name: a, installs: [], then: [{ids: [R1], nothing: true}]}", ""),
            ("- {name: a, ids: {expect.bundle: [R1]}, expect: {bundle: a, fits: []}}", ""),
            ("- {name: a, ids: [R1], expect: {bundle: a}}", ""),
            ("- {name: a, ids: [R1], installs: [], updates: {}}", "it expects several things"),
            (
                "- {name: a, ids: [R1], expect: {bundle: a, fits: []}}",
                "`ids: {expect.bundle: […]}`",
            ),
            (
                "- {name: a, ids: [R1], installs: [], then: [{nothing: true}]}",
                "it expects several things",
            ),
            ("- {name: a, ids: {updates: [R1]}, installs: []}", "name `updates`, which"),
            ("- {name: a, installs: [], then: [{ids: 7}]}", "a.yaml: a, step 1: ids are a list"),
        ] {
            let mut ledger = Ledger::default();
            ledger.want("ids.txt", "R1").unwrap();
            match ledger.take("a.yaml", scenario) {
                Ok(()) => assert!(wrong.is_empty() && ledger.wrong().is_empty(), "{scenario}"),
                Err(said) => {
                    let said = said.to_string();
                    assert!(!wrong.is_empty() && said.contains(wrong), "{scenario}: {said}");
                }
            }
        }
    }

    #[test]
    fn a_row_that_recordings_alone_show_is_shown_and_counted() {
        let mut ledger = Ledger::default();
        ledger.want("ids.txt", "R1..R3").unwrap();
        ledger.recorded("t.txt", "R1 R2 = a-rule 02 Pod a: status/phase # x\n").unwrap();
        ledger.take("a.yaml", "- {name: a, ids: [R1], nothing: true}\n").unwrap();
        ledger.excuse("n.txt", "R3: it is somebody else's\n").unwrap();
        assert_eq!(ledger.wrong(), "");
        assert_eq!((ledger.shown.len(), ledger.own.len()), (2, 1));
        assert!(ledger.excuse("n.txt", "R3:\n").is_err());
        assert!(ledger.recorded("t.txt", "R1 = a-rule another-rule\n").is_err());
    }

    #[test]
    fn a_line_of_a_script_stands_on_a_check() {
        let mark = |ids: &str| format!("{MARK}{ids}");
        let (one, two) = (mark("R1"), mark("R2"));
        let mut ledger = Ledger::default();
        ledger.want("ids.txt", "R1..R2").unwrap();
        let text = format!("make tea\n  {one}\n  {two}\n  runs kitchen tea.v1\n");
        ledger.script("a.sh", &text).unwrap();
        assert_eq!(ledger.wrong(), "");
        for text in [
            format!("{one}\nkubectl apply -f -\nruns kitchen tea.v1\n"),
            format!("{one}\n# It shows nothing.\n"),
            one,
            format!("{}ids: R1\nruns kitchen tea.v1\n", "# "),
        ] {
            let said = ledger.script("a.sh", &text).unwrap_err().to_string();
            assert!(said.starts_with("a.sh:1: "), "{said}");
        }
    }

    #[test]
    fn a_row_is_shown_where_another_is_that_says_the_same() {
        let mut ledger = ledger("R1..R4", "- {name: a, ids: [R1], nothing: true}\n");
        ledger.equal("s.txt", "R2 = R1\nR3 = R9\n").unwrap();
        ledger.script("a.sh", &format!("{MARK}R4\nruns kitchen tea.v1\n")).unwrap();
        ledger.spread();
        assert_eq!(ledger.wrong(), "\nR3: is named in s.txt, but nothing is expected there");
    }

    #[test]
    fn what_is_said_to_be_missing_must_be_missing() {
        let mut ledger = ledger("R1..R2", "- {name: a, ids: [R1], nothing: true}\n");
        ledger.lack("m.txt", "R1 R2 R3\n").unwrap();
        assert_eq!(
            ledger.wrong(),
            "\nR1: m.txt says that nothing shows it, but something does\nR3: is excused, but in no list of ids"
        );
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
