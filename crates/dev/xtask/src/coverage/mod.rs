//! Requirement coverage: every required row of the specification has an assertion.
//!
//! `crates/**/scenarios/ids.txt` lists the rows: an id or a range of ids per line, `#` begins a
//! comment. An assertion shows a row if the row's id stands on it:
//!
//! * in a Rust test, a line `// shows A01 B02` directly above the statement ([`rust`]);
//! * in a scenario, which is an item of a list in `crates/**/scenarios/**/*.yaml`, or one of its
//!   steps: `ids: [A01]` for a single expectation, `ids: {installs: [A01], updates: [B02]}` for
//!   several (`expect.bundle` for one inside another);
//! * in a script of `crates/**/tests/scripts`, a line `# shows A01 B02` directly above the check;
//! * in recorded cases, a line of `crates/**/ids.txt` ([`recorded`]).
//!
//! A line `A01 = B02` in a `same.txt` beside a list of ids declares two rows equivalent: the first
//! is shown where the second is.
//!
//! Beside a list of ids may be `not-for-us.txt` (`A01..A03: why`), ids that do not apply to this
//! project, and `missing.txt`, ids without an assertion yet. All other ids must be shown, and a
//! shown id must be in neither file. An id outside of all lists is a typing error.
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

/// Keys of scenarios that are expectations. The scenario runner rejects unknown keys.
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

/// Keys of lists of steps, which have expectations of their own.
const STEPS: [&str; 3] = ["cases", "steps", "then"];

/// The key of an expectation that consists of expectations.
const NESTED: &str = "expect";

/// Commands and phrases by which a line of a script fails the script.
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
const MARKER: &str = "# shows ";

/// The required and the shown rows.
#[derive(Debug, Default)]
struct Coverage {
    /// Ids that do not apply to this project, with the reason.
    not_applicable: BTreeMap<String, String>,
    /// Ids without an assertion yet, with the file that lists them.
    missing: BTreeMap<String, String>,
    /// Equivalent ids: the id, the other one, and the file that lists them.
    same: Vec<(String, String, String)>,
    /// Required ids, with the file that lists them.
    required: BTreeMap<String, String>,
    /// Shown ids, with the number of their assertions.
    shown: BTreeMap<String, usize>,
    /// Ids that tests, scenarios and scripts show, not counting recordings.
    shown_by_tests: BTreeMap<String, usize>,
    /// Mentioned ids, with the place.
    mentioned: BTreeMap<String, String>,
    assertions: usize,
}

/// The kind of assertion that shows a row.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Evidence {
    /// A test, a scenario or a script.
    Test,
    /// A recorded case, which needs the recordings to be replayed.
    Recording,
}

/// Fails with a list of ids that are required and not shown, mentioned and not required, or without
/// a meaning on the page.
pub(crate) fn run(root: &Path) -> anyhow::Result<()> {
    let coverage = read(root)?;
    let text = fs::read_to_string(root.join(page::FILE))
        .with_context(|| format!("read {}", page::FILE))?;
    let problems =
        coverage.problems() + &page::compare(&page::read_rows(&text)?, &coverage.required);
    if !problems.is_empty() {
        bail!("{problems}");
    }
    let alone =
        coverage.shown.keys().filter(|id| !coverage.shown_by_tests.contains_key(*id)).count();
    println!(
        "{} ids, each shown by one of {} assertions at least, {alone} of them by recorded cases alone; {} are not ours to show, {} are missing",
        coverage.required.len() - coverage.not_applicable.len() - coverage.missing.len(),
        coverage.assertions,
        coverage.not_applicable.len(),
        coverage.missing.len()
    );
    Ok(())
}

fn read(root: &Path) -> anyhow::Result<Coverage> {
    let mut files = Vec::new();
    collect(&root.join("crates"), false, &mut files)?;
    files.sort();
    let mut coverage = Coverage::default();
    let mut sources = rust::Sources::default();
    for path in files {
        let name = path.strip_prefix(root).unwrap_or(&path).to_string_lossy().replace('\\', "/");
        let text = fs::read_to_string(&path).with_context(|| format!("read {name}"))?;
        let inside = name.contains("/scenarios/");
        let extension =
            path.extension().and_then(|extension| extension.to_str()).unwrap_or_default();
        match name.rsplit('/').next().unwrap_or_default() {
            "ids.txt" if inside => coverage.read_required(&name, &text)?,
            "ids.txt" => coverage.recorded(&name, &text)?,
            "not-for-us.txt" => coverage.read_not_applicable(&name, &text)?,
            "missing.txt" => coverage.read_missing(&name, &text)?,
            "same.txt" => coverage.read_same(&name, &text)?,
            _ if extension == "sh" => coverage.read_script(&name, &text)?,
            // The tests of this task contain such lines as test data.
            _ if extension == "rs" && name.contains("/xtask/") => {}
            _ if extension == "rs" => sources.add(&name, text),
            _ => coverage.read_scenarios(&name, &text)?,
        }
    }
    coverage.tests(&sources)?;
    coverage.apply_same();
    Ok(coverage)
}

/// Collects the files that may contain ids: those in folders named `scenarios`, at any depth,
/// tables of recorded cases, and tests.
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
        let is_script = extension == "sh" && folder.ends_with("tests/scripts");
        let table = name == "ids.txt";
        if extension == "rs" || table || is_script || inside && (listed || extension == "yaml") {
            files.push(path);
        }
    }
    Ok(())
}

impl Coverage {
    /// Reads `not-for-us.txt`.
    fn read_not_applicable(&mut self, file: &str, text: &str) -> anyhow::Result<()> {
        for line in lines(text) {
            let (ids, why) = line
                .split_once(':')
                .filter(|(_, why)| !why.trim().is_empty())
                .with_context(|| format!("{file}: `{line}` is no `IDS: reason`"))?;
            for id in words(file, ids)? {
                self.not_applicable.insert(id, why.trim().to_owned());
            }
        }
        Ok(())
    }

    /// Reads `missing.txt`.
    fn read_missing(&mut self, file: &str, text: &str) -> anyhow::Result<()> {
        for line in lines(text) {
            for id in words(file, line)? {
                self.missing.insert(id, file.to_owned());
            }
        }
        Ok(())
    }

    /// Reads the assertions of recorded cases.
    fn recorded(&mut self, file: &str, text: &str) -> anyhow::Result<()> {
        for line in lines(text) {
            self.assertions += 1;
            for id in words(file, recorded::ids(file, line)?)? {
                self.record(id, file, true, Evidence::Recording);
            }
        }
        Ok(())
    }

    /// Adds the assertions of Rust tests.
    fn tests(&mut self, sources: &rust::Sources) -> anyhow::Result<()> {
        for shown in sources.markers()? {
            self.assertions += 1;
            for id in words(&shown.place, &shown.ids)? {
                self.record(id, &shown.place, true, Evidence::Test);
            }
        }
        Ok(())
    }

    /// Reads `same.txt`.
    fn read_same(&mut self, file: &str, text: &str) -> anyhow::Result<()> {
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

    /// Shows equivalent ids.
    fn apply_same(&mut self) {
        for (id, other, file) in std::mem::take(&mut self.same) {
            let evidence = if self.shown_by_tests.contains_key(&other) {
                Evidence::Test
            } else {
                Evidence::Recording
            };
            self.record(id, &file, self.shown.contains_key(&other), evidence);
        }
    }

    /// Reads a script.
    fn read_script(&mut self, file: &str, text: &str) -> anyhow::Result<()> {
        let mut rest = text.lines().enumerate().peekable();
        while let Some((at, line)) = rest.next() {
            let line = line.trim_start();
            if line.starts_with("# ids: ") {
                bail!("{file}:{}: `{line}` stands on no check; write `{MARKER}…` above it", at + 1);
            }
            let Some(ids) = line.strip_prefix(MARKER) else { continue };
            let next = rest.peek().map_or("", |(_, next)| next.trim_start());
            let checks = !next.starts_with('#') && CHECKS.iter().any(|check| next.contains(check));
            if !checks && !next.starts_with(MARKER) {
                bail!(
                    "{file}:{}: `{line}` does not stand directly above one of {CHECKS:?}",
                    at + 1
                );
            }
            self.assertions += 1;
            for id in words(file, ids)? {
                self.record(id, file, true, Evidence::Test);
            }
        }
        Ok(())
    }

    fn record(&mut self, id: String, file: &str, shown: bool, evidence: Evidence) {
        if shown {
            *self.shown.entry(id.clone()).or_default() += 1;
            if evidence == Evidence::Test {
                *self.shown_by_tests.entry(id.clone()).or_default() += 1;
            }
        }
        self.mentioned.entry(id).or_insert_with(|| file.to_owned());
    }

    /// Reads a list of ids.
    fn read_required(&mut self, file: &str, text: &str) -> anyhow::Result<()> {
        for line in lines(text) {
            for id in range(line).with_context(|| format!("{file}: `{line}` is no range of ids"))? {
                if self.required.insert(id.clone(), file.to_owned()).is_some() {
                    bail!("{file}: {id} is listed twice");
                }
            }
        }
        Ok(())
    }

    /// Reads a file of scenarios.
    fn read_scenarios(&mut self, file: &str, text: &str) -> anyhow::Result<()> {
        let options = Options { duplicate_keys: DuplicateKeys::Refuse, ..Options::default() };
        let document = mainstay_yaml::one(text.as_bytes(), &options)
            .map_err(|error| anyhow::anyhow!("{file}:{}: {}", error.line, error.fault))?;
        for scenario in document.as_array().into_iter().flatten() {
            let name = scenario["name"].as_str().unwrap_or_default();
            self.scenario(&format!("{file}: {name}"), scenario)?;
        }
        Ok(())
    }

    /// Reads a scenario or a step of one, including nested steps.
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
            Some(Value::Object(evidence)) => {
                for (expectation, ids) in evidence {
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
                self.record(id, place, expectation.is_some(), Evidence::Test);
            }
        }
        for (at, step) in steps().enumerate() {
            self.scenario(&format!("{place}, step {}", at + 1), step)?;
        }
        Ok(())
    }

    /// The problems, one per line.
    fn problems(&self) -> String {
        let mut problems = String::new();
        let excused =
            |id: &String| self.not_applicable.contains_key(id) || self.missing.contains_key(id);
        for id in self.required.keys().filter(|id| !self.shown.contains_key(*id) && !excused(id)) {
            let how = match self.mentioned.get(id) {
                Some(file) => format!("is named in {file}, but nothing is expected there"),
                None => "no scenario names it".to_owned(),
            };
            let _ = write!(problems, "\n{id}: {how}");
        }
        for (id, file) in self.mentioned.iter().filter(|(id, _)| !self.required.contains_key(*id)) {
            let _ = write!(problems, "\n{id}: named in {file}, but in no list of ids");
        }
        for (id, file) in &self.missing {
            if self.shown.contains_key(id) {
                let _ = write!(
                    problems,
                    "\n{id}: {file} says that nothing shows it, but something does"
                );
            }
        }
        for id in self.not_applicable.keys().filter(|id| self.shown.contains_key(*id)) {
            let _ =
                write!(problems, "\n{id}: is said not to be ours to show, but something shows it");
        }
        for id in self.not_applicable.keys().chain(self.missing.keys()) {
            if !self.required.contains_key(id) {
                let _ = write!(problems, "\n{id}: is excused, but in no list of ids");
            }
        }
        problems
    }
}

/// The lines without comments and empty lines.
fn lines(text: &str) -> impl Iterator<Item = &str> {
    text.lines()
        .map(|line| line.split('#').next().unwrap_or_default().trim())
        .filter(|line| !line.is_empty())
}

/// Parses ids and ranges of ids, separated by blanks.
fn words(file: &str, text: &str) -> anyhow::Result<Vec<String>> {
    let mut all = Vec::new();
    for word in text.split_whitespace() {
        all.extend(range(word).with_context(|| format!("{file}: `{word}` is no range of ids"))?);
    }
    Ok(all)
}

/// The expectations of a scenario or a step, without those of its own steps.
fn expectations(scenario: &Value) -> Vec<String> {
    let given = |value: &Value| match value {
        Value::Null => false,
        // `nothing: false` expects nothing; an empty list of installs expects that there are none.
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

/// The ids of `A07` or `A07..A12`: numbers count up, padded to the same number of digits.
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

    fn coverage(ids: &str, scenarios: &str) -> Coverage {
        let mut coverage = Coverage::default();
        coverage.read_required("ids.txt", ids).unwrap();
        coverage.read_scenarios("a.yaml", scenarios).unwrap();
        coverage
    }

    #[test]
    fn id_ranges_keep_their_number_of_digits() {
        assert_eq!(range("R008..R011").unwrap(), ["R008", "R009", "R010", "R011"]);
        assert_eq!(range("AT-RES-18").unwrap(), ["AT-RES-18"]);
        for odd in ["R1..S2", "R2..R1", "R", "12", "R1..", "R1...R2", "R 1"] {
            assert_eq!(range(odd), None, "{odd}");
        }
    }

    #[test]
    fn scenario_ids_need_an_expectation() {
        for (scenario, shown) in [
            ("- {name: a, ids: [R1], installs: []}", true),
            ("- {name: a, ids: [R1], nothing: true}", true),
            ("- {name: a, ids: [R1], world: x, then: [{reasons: [a]}]}", false),
            ("- {name: a, ids: [R1], world: x}", false),
            ("- {name: a, ids: [R1], nothing: false, error: null}", false),
            ("- {name: a, installs: []}", false),
        ] {
            assert_eq!(coverage("R1", scenario).problems().is_empty(), shown, "{scenario}");
        }
    }

    #[test]
    fn missing_and_unlisted_ids_are_reported() {
        let found = coverage(
            "# rows\nR1..R3\n",
            "- {name: a, ids: [R1, R9], nothing: true}\n- {name: b, ids: [R2]}\n",
        );
        assert_eq!(
            found.problems(),
            "\nR2: is named in a.yaml: b, but nothing is expected there\nR3: no scenario names it\n\
             R9: named in a.yaml: a, but in no list of ids"
        );
        let mut twice = Coverage::default();
        assert!(twice.read_required("ids.txt", "R1\nR1").is_err());
    }

    #[test]
    fn scenario_with_several_expectations_assigns_ids_to_each() {
        for (scenario, problems) in [
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
            let mut coverage = Coverage::default();
            coverage.read_required("ids.txt", "R1").unwrap();
            match coverage.read_scenarios("a.yaml", scenario) {
                Ok(()) => {
                    assert!(problems.is_empty() && coverage.problems().is_empty(), "{scenario}");
                }
                Err(message) => {
                    let message = message.to_string();
                    assert!(
                        !problems.is_empty() && message.contains(problems),
                        "{scenario}: {message}"
                    );
                }
            }
        }
    }

    #[test]
    fn row_shown_by_recordings_alone_is_counted() {
        let mut coverage = Coverage::default();
        coverage.read_required("ids.txt", "R1..R3").unwrap();
        coverage.recorded("t.txt", "R1 R2 = a-rule 02 Pod a: status/phase # x\n").unwrap();
        coverage.read_scenarios("a.yaml", "- {name: a, ids: [R1], nothing: true}\n").unwrap();
        coverage.read_not_applicable("n.txt", "R3: it is somebody else's\n").unwrap();
        assert_eq!(coverage.problems(), "");
        assert_eq!((coverage.shown.len(), coverage.shown_by_tests.len()), (2, 1));
        assert!(coverage.read_not_applicable("n.txt", "R3:\n").is_err());
        assert!(coverage.recorded("t.txt", "R1 = a-rule another-rule\n").is_err());
    }

    #[test]
    fn script_marker_must_be_above_a_check() {
        let mark = |ids: &str| format!("{MARKER}{ids}");
        let (one, two) = (mark("R1"), mark("R2"));
        let mut coverage = Coverage::default();
        coverage.read_required("ids.txt", "R1..R2").unwrap();
        let text = format!("make tea\n  {one}\n  {two}\n  runs kitchen tea.v1\n");
        coverage.read_script("a.sh", &text).unwrap();
        assert_eq!(coverage.problems(), "");
        for text in [
            format!("{one}\nkubectl apply -f -\nruns kitchen tea.v1\n"),
            format!("{one}\n# It shows nothing.\n"),
            one,
            format!("{}ids: R1\nruns kitchen tea.v1\n", "# "),
        ] {
            let message = coverage.read_script("a.sh", &text).unwrap_err().to_string();
            assert!(message.starts_with("a.sh:1: "), "{message}");
        }
    }

    #[test]
    fn equivalent_row_is_shown_with_the_other() {
        let mut coverage = coverage("R1..R4", "- {name: a, ids: [R1], nothing: true}\n");
        coverage.read_same("s.txt", "R2 = R1\nR3 = R9\n").unwrap();
        coverage.read_script("a.sh", &format!("{MARKER}R4\nruns kitchen tea.v1\n")).unwrap();
        coverage.apply_same();
        assert_eq!(coverage.problems(), "\nR3: is named in s.txt, but nothing is expected there");
    }

    #[test]
    fn id_listed_as_missing_must_not_be_shown() {
        let mut coverage = coverage("R1..R2", "- {name: a, ids: [R1], nothing: true}\n");
        coverage.read_missing("m.txt", "R1 R2 R3\n").unwrap();
        assert_eq!(
            coverage.problems(),
            "\nR1: m.txt says that nothing shows it, but something does\nR3: is excused, but in no list of ids"
        );
    }

    #[test]
    fn other_files_are_ignored_and_malformed_ones_reported() {
        let mut coverage = Coverage::default();
        coverage.read_scenarios("a.yaml", "steps: []\n").unwrap();
        let error = coverage.read_scenarios("a.yaml", "- {ids: [\n").unwrap_err().to_string();
        assert!(error.starts_with("a.yaml:"), "{error}");
        assert!(coverage.read_scenarios("a.yaml", "- {ids: R1}\n").is_err());
    }
}
