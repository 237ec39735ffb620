//! Holds scenarios against the rows of the specification that they must show.
//!
//! `crates/**/scenarios/ids.txt` lists the rows: an id or a range of ids a line, `#` begins a
//! comment. A scenario is an item of a list in `crates/**/scenarios/**/*.yaml`. It shows the rows of
//! its `ids` when it says what must come of it: one of [`EXPECTATIONS`] with something in it, in the
//! scenario or in one of its steps. An id that nobody lists is a slip of the pen.
//!
//! Rows are shown by other things as well:
//! * tests in `crates/**/*.rs`, with a line `// ids: A01 B02` directly above their attributes, if
//!   something is asserted or waited for in them;
//! * recorded cases, by a table `crates/**/ids.txt` beside an `agreeing.txt`: a line
//!   `A01 B02 = rule another-rule`, of which one rule at least agrees with its recording to its end;
//! * scripts in `crates/**/tests/scripts`, with a line `# ids: A01 B02` at their beginning.
//!
//! A line `A01 = B02` in a `same.txt` beside a list of ids says that two rows say the same: the first
//! is shown where the second is.
//!
//! Beside a list of ids may lie `not-for-us.txt` (`A01..A03: why`), ids that nothing of ours can show,
//! and `missing.txt`, ids that nothing shows yet. What is in neither must be shown, and what is shown
//! must be in neither.

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

/// What a test says when it expects something.
const ASSERTIONS: [&str; 11] = [
    "assert",
    "wait_for",
    "wait_gone",
    ".succeeded(",
    ".version(",
    ".subscription(",
    ".plans(",
    "latest(",
    "unsatisfiable(",
    "snapshot!",
    "hold(",
];

/// The same of a script.
const CHECKS: [&str; 5] = ["shows ", "runs ", "why_not ", "holds ", "wait --for"];

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
        "{} ids, each shown by one of {} scenarios at least; {} are not ours to show, {} are missing",
        ledger.wanted.len() - ledger.foreign.len() - ledger.missing.len(),
        ledger.scenarios,
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
    for path in files {
        let name = path.strip_prefix(root).unwrap_or(&path).to_string_lossy().replace('\\', "/");
        let text = fs::read_to_string(&path).with_context(|| format!("read {name}"))?;
        let inside = name.contains("/scenarios/");
        let extension = path.extension().and_then(|it| it.to_str()).unwrap_or_default();
        match name.rsplit('/').next().unwrap_or_default() {
            "ids.txt" if inside => ledger.want(&name, &text)?,
            "ids.txt" => {
                let agreeing = path.with_file_name("agreeing.txt");
                let agreeing = fs::read_to_string(&agreeing)
                    .with_context(|| format!("read {}", agreeing.display()))?;
                ledger.recorded(&name, &text, &agreeing)?;
            }
            "not-for-us.txt" => ledger.excuse(&name, &text)?,
            "missing.txt" => ledger.lack(&name, &text)?,
            "same.txt" => ledger.equal(&name, &text)?,
            _ if extension == "sh" => ledger.script(&name, &text)?,
            _ if extension == "rs" => ledger.tests(&name, &text)?,
            _ => ledger.take(&name, &text)?,
        }
    }
    ledger.spread();
    Ok(ledger)
}

/// Files that say something of ids: those in folders called `scenarios`, however deep, tables of
/// recorded cases, and tests.
fn collect(folder: &Path, inside: bool, files: &mut Vec<PathBuf>) -> anyhow::Result<()> {
    let entries = fs::read_dir(folder).with_context(|| format!("read {}", folder.display()))?;
    for entry in entries {
        let path = entry?.path();
        let name = path.file_name().and_then(|it| it.to_str()).unwrap_or_default();
        if path.is_dir() {
            collect(&path, inside || name == "scenarios", files)?;
            continue;
        }
        let extension = path.extension().and_then(|it| it.to_str()).unwrap_or_default();
        let listed = matches!(name, "ids.txt" | "not-for-us.txt" | "missing.txt" | "same.txt");
        let script = extension == "sh" && folder.ends_with("tests/scripts");
        let table = name == "ids.txt" && folder.join("agreeing.txt").is_file();
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

    /// Reads which recorded cases show which ids.
    fn recorded(&mut self, file: &str, text: &str, agreeing: &str) -> anyhow::Result<()> {
        let agreeing: BTreeSet<&str> = lines(agreeing).collect();
        for line in lines(text) {
            let (ids, rules) = line
                .split_once('=')
                .with_context(|| format!("{file}: `{line}` is no `IDS = RULES`"))?;
            let agrees = rules.split_whitespace().any(|rule| agreeing.contains(rule));
            self.scenarios += 1;
            for id in words(file, ids)? {
                self.note(id, file, agrees);
            }
        }
        Ok(())
    }

    /// Reads the tests of a file.
    fn tests(&mut self, file: &str, text: &str) -> anyhow::Result<()> {
        let mut rest = text.lines().peekable();
        while let Some(line) = rest.next() {
            let Some(ids) = line.trim_start().strip_prefix("// ids: ") else { continue };
            let next = rest.peek().copied().unwrap_or_default().trim_start();
            if !(next.starts_with("#[test") || next.starts_with("#[tokio::test")) {
                bail!("{file}: `{}` does not stand directly above a test", line.trim());
            }
            let indent = line.len() - line.trim_start().len();
            let end = format!("{}}}", " ".repeat(indent));
            let says = rest
                .by_ref()
                .take_while(|line| *line != end)
                .filter(|line| !line.trim_start().starts_with("//"))
                .any(|line| ASSERTIONS.iter().any(|it| line.contains(it)));
            self.scenarios += 1;
            for id in words(file, ids)? {
                self.note(id, file, says);
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
            let shown = self.shown.contains_key(&other);
            self.note(id, &file, shown);
        }
    }

    /// Reads a script.
    fn script(&mut self, file: &str, text: &str) -> anyhow::Result<()> {
        for ids in text.lines().filter_map(|line| line.strip_prefix("# ids: ")) {
            let says = CHECKS.iter().any(|it| text.contains(it));
            self.scenarios += 1;
            for id in words(file, ids)? {
                self.note(id, file, says);
            }
        }
        Ok(())
    }

    fn note(&mut self, id: String, file: &str, shown: bool) {
        if shown {
            *self.shown.entry(id.clone()).or_default() += 1;
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
            .map_err(|error| anyhow::anyhow!("{file}:{}: {}", error.line, error.message))?;
        for scenario in document.as_array().into_iter().flatten() {
            let Some(ids) = scenario.get("ids") else { continue };
            let ids: Vec<String> = serde_json::from_value(ids.clone())
                .with_context(|| format!("{file}: ids is a list of texts"))?;
            let says = expects(scenario);
            self.scenarios += 1;
            for id in ids {
                self.note(id, file, says);
            }
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
    fn a_test_shows_its_ids_if_it_asserts_something() {
        let mut ledger = Ledger::default();
        ledger.want("ids.txt", "R1..R3").unwrap();
        let test = |ids: &str, body: &str| {
            format!(
                "    {}ids: {ids}\n    #[test]\n    fn it() {{\n        {body}\n    }}\n",
                "// "
            )
        };
        ledger.tests("a.rs", &test("R1 R2", "assert!(true);")).unwrap();
        ledger.tests("b.rs", &test("R3", "// assert!(true);")).unwrap();
        assert_eq!(ledger.wrong(), "\nR3: is named in b.rs, but nothing is expected there");
        let loose = format!("{}ids: R1\nfn it() {{}}\n", "// ");
        assert!(ledger.tests("c.rs", &loose).is_err());
    }

    #[test]
    fn a_recorded_case_shows_its_ids_if_it_agrees() {
        let mut ledger = Ledger::default();
        ledger.want("ids.txt", "R1..R3").unwrap();
        ledger.recorded("t.txt", "R1 = good bad\nR2 = bad\n", "# x\ngood\nbad/02\n").unwrap();
        ledger.excuse("n.txt", "R3: it is somebody else's\n").unwrap();
        assert_eq!(ledger.wrong(), "\nR2: is named in t.txt, but nothing is expected there");
        assert!(ledger.excuse("n.txt", "R3:\n").is_err());
    }

    #[test]
    fn a_row_is_shown_where_another_is_that_says_the_same() {
        let mut ledger = ledger("R1..R4", "- {name: a, ids: [R1], nothing: true}\n");
        ledger.equal("s.txt", "R2 = R1\nR3 = R9\n").unwrap();
        ledger.script("a.sh", "# ids: R4\nruns kitchen tea.v1\n").unwrap();
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
