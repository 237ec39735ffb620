//! Expected differences from the recordings (`olm/differences.txt`), and the subject of each case
//! (`olm/subjects.txt`).
//!
//! Both name cases by their rules, so that they apply to other recordings of the same rules. `#`
//! begins a comment.
//!
//! `differences.txt` has paragraphs. The first line of one is a reason with a citation; the
//! indented lines below it are the differences:
//!
//! ```text
//! A dependency that is deleted comes back while a Subscription needs it. [dependency-*]
//!   dependency-gvk 04,05 +ClusterServiceVersion {case}/{name}-{case}.v2.0.0
//!   dependency-gvk 04-05 Subscription {case}/{name}-{case}: status/state status/conditions/type=A
//! ```
//!
//! A difference is `RULES STEPS KIND OBJECTS: PATHS`. `+KIND OBJECTS` are objects that only we
//! have, `-KIND OBJECTS` objects that only the recording has. Without a sign both have the object,
//! and the paths name the fields that differ.
//!
//! `{case}` stands for the id of the case, `{name}` for a word, `{hash}` for letters and digits. In
//! a path `*` matches anything after two literal parts. For events the object is `KIND/NAME` and
//! the path the reason; for commands and steps the object is the number of the step.
//!
//! The citation is a rule under which the notes on the recordings state a fact, or `differences:
//! AREA` with the first cell of a row of `docs/differences.md`; both are checked.
//!
//! Unused lines fail, and so does each unused rule, step, object and path of a line. Below a reason
//! that begins with `Sometimes` they do not fail, because those differences occur in some runs
//! only. Differences without a citation may be at most one per cent of all fields. Of the fields of
//! the kinds that a case is about (`subjects.txt`: `KINDS RULES…`), at most a fifth may be excused.

use super::compare::FieldDifference;
use super::run::CaseResult;
use anyhow::{Context, bail};
use mainstay_conformance_harness::{entries, exceeds, glob};
use regex::Regex;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

/// The reciprocal of the share of a case's subject fields that may be excused.
const MAX_SUBJECT_SHARE: usize = 5;

/// The reciprocal of the share of cases that may be exceptions.
const MAX_EXCEPTION_SHARE: usize = 20;

/// The side that has an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Side {
    Both,
    Recorded,
    Ours,
}

/// A name or path with placeholders.
#[derive(Debug)]
pub(super) struct Pattern {
    text: String,
    regex: Regex,
}

/// A line of `differences.txt`.
#[derive(Debug)]
struct Entry {
    line: usize,
    paragraph: usize,
    rules: Vec<String>,
    steps: Vec<String>,
    side: Side,
    kind: String,
    objects: Vec<Pattern>,
    paths: Vec<Pattern>,
    /// The rules, steps, objects and paths that matched a finding.
    used: Mutex<BTreeSet<String>>,
}

/// A reason; the lines below it refer to it.
#[derive(Debug)]
struct Paragraph {
    line: usize,
    citation: Option<String>,
    /// Whether its differences occur in some runs only.
    sometimes: bool,
}

/// What citations may refer to.
#[derive(Debug, Default)]
pub struct CitationSources {
    /// Rules for which the notes on the recordings state facts; none without the notes.
    pub facts: Option<BTreeSet<String>>,
    /// First cells of the rows of `docs/differences.md`.
    pub documented: BTreeSet<String>,
}

/// The contents of `differences.txt` and `subjects.txt`.
#[derive(Debug, Default)]
pub struct ExpectedDifferences {
    paragraphs: Vec<Paragraph>,
    entries: Vec<Entry>,
    /// The kinds that cases are about, by rule.
    subjects: Vec<(Vec<String>, Regex)>,
    /// Rules whose cases may differ without a limit: the line number and the citation.
    exceptions: BTreeMap<String, (usize, String)>,
    sources: CitationSources,
}

impl Pattern {
    pub(super) fn read(text: &str, stars: bool) -> anyhow::Result<Self> {
        let mut regex = String::from("^");
        let mut rest = text;
        while !rest.is_empty() {
            let special = [("{name}", "[a-z]+"), ("{hash}", "[0-9A-Za-z]+"), ("*", ".*")];
            let found = special.iter().find(|(mark, _)| rest.starts_with(mark));
            if let Some((mark, meaning)) = found {
                if *mark == "*"
                    && !(stars && text[..text.len() - rest.len()].matches('/').count() > 1)
                {
                    bail!("`{text}`: `*` may stand for the rest of a path after two parts of it");
                }
                regex += meaning;
                rest = &rest[mark.len()..];
            } else {
                let next = rest.chars().next().map_or(0, char::len_utf8);
                regex += &regex::escape(&rest[..next]);
                rest = &rest[next..];
            }
        }
        regex.push('$');
        let regex = Regex::new(&regex).with_context(|| format!("read the pattern {text}"))?;
        Ok(Self { text: text.to_owned(), regex })
    }

    /// The pattern as written.
    pub(super) fn text(&self) -> &str {
        &self.text
    }

    /// Whether the pattern matches a name or path of the case `id`. The recordings' own
    /// placeholders match literally.
    pub(super) fn is_match(&self, text: &str, id: &str) -> bool {
        self.regex.is_match(&text.replace(id, "{case}"))
    }
}

/// `02`, `02,04` or `02-05`.
pub(super) fn steps(text: &str) -> anyhow::Result<Vec<String>> {
    let number = |text: &str| -> anyhow::Result<u32> {
        if text.len() != 2 {
            bail!("`{text}` is no number of a step: two digits");
        }
        text.parse().with_context(|| format!("`{text}` is no number of a step"))
    };
    let mut all = Vec::new();
    for part in text.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        all.extend((number(first)?..=number(last)?).map(|step| format!("{step:02}")));
    }
    Ok(all)
}

impl CitationSources {
    /// Collects what may be cited: `notes` is the page about the recordings, `differences` is
    /// `docs/differences.md`.
    pub fn of(notes: Option<&str>, differences: &str) -> Self {
        let cells = |line: &str| -> Vec<String> {
            let row = line.strip_prefix("| ").and_then(|row| row.strip_suffix(" |"));
            row.into_iter()
                .flat_map(|row| row.split(" | "))
                .map(|cell| cell.trim().to_owned())
                .collect()
        };
        let facts = notes.map(|notes| {
            let (_, section) = notes.split_once("\n| Rule | Fact |").unwrap_or_default();
            let rows = section.lines().skip(1).skip_while(|line| line.starts_with("|--"));
            let rows = rows.take_while(|line| line.starts_with('|'));
            let rules = rows.filter_map(|row| cells(row).into_iter().next());
            rules
                .flat_map(|rules| {
                    rules
                        .split(',')
                        .map(|rule| rule.trim().trim_matches('`').to_owned())
                        .collect::<Vec<_>>()
                })
                .collect()
        });
        let documented = differences.lines().filter_map(|row| {
            let cells = cells(row);
            (cells.len() > 2).then(|| cells.into_iter().next()).flatten()
        });
        Self { facts, documented: documented.collect() }
    }

    /// Why a citation is wrong.
    fn problem(&self, citation: &str) -> Option<String> {
        match citation.strip_prefix("differences: ") {
            Some(area) if self.documented.contains(area) => None,
            Some(area) => Some(format!("docs/differences.md has no row {area:?}")),
            None => {
                let facts = self.facts.as_ref()?;
                let missing = !facts.contains(citation);
                missing.then(|| {
                    format!("the notes on the recordings state nothing about `{citation}`")
                })
            }
        }
    }
}

impl ExpectedDifferences {
    /// Reads the lists of a folder. `notes` is the page about the recordings, if available.
    ///
    /// # Errors
    ///
    /// A file cannot be read, or a line is no entry.
    pub fn read(home: &Path, notes: Option<&Path>) -> anyhow::Result<Self> {
        let text =
            |path: &Path| std::fs::read_to_string(path).with_context(|| path.display().to_string());
        let list = |name: &str| text(&home.join(name));
        let notes = notes.map(text).transpose()?;
        let documented = text(&home.join("../../../../docs/differences.md"))?;
        let mut lists = Self::parse(&list("differences.txt")?, &list("subjects.txt")?)?;
        lists.sources = CitationSources::of(notes.as_deref(), &documented);
        Ok(lists)
    }

    fn parse(differences: &str, subjects: &str) -> anyhow::Result<Self> {
        let mut lists = Self::default();
        for (line, text) in entries(differences) {
            let place = || format!("olm/differences.txt:{line}");
            if text.starts_with(' ') {
                if lists.paragraphs.is_empty() {
                    bail!("{}: a difference has a reason above it", place());
                }
                let paragraph = lists.paragraphs.len() - 1;
                lists.entries.push(entry(line, paragraph, text.trim()).with_context(place)?);
            } else {
                let citation =
                    text.rsplit_once(" [").and_then(|(_, citation)| citation.strip_suffix(']'));
                let citation = citation.map(str::to_owned);
                let sometimes = text.starts_with("Sometimes ");
                lists.paragraphs.push(Paragraph { line, citation, sometimes });
            }
        }
        for (line, text) in entries(subjects) {
            let place = || format!("olm/subjects.txt:{line}");
            if let Some(text) = text.strip_prefix("except ") {
                let (rule, reason) = text.split_once(": ").with_context(place)?;
                let citation =
                    reason.rsplit_once(" [").and_then(|(_, citation)| citation.strip_suffix(']'));
                let citation =
                    citation.context("an exception cites something").with_context(place)?;
                lists.exceptions.insert(rule.to_owned(), (line, citation.to_owned()));
                continue;
            }
            let mut words = text.split_whitespace();
            let kinds =
                words.next().unwrap_or_default().split(',').map(str::to_owned).collect::<Vec<_>>();
            for rule in words {
                lists.subjects.push((kinds.clone(), glob(rule).with_context(place)?));
            }
        }
        Ok(lists)
    }

    /// The kinds that the cases of a rule are about.
    pub fn subject(&self, rule: &str) -> &[String] {
        let found = self.subjects.iter().find(|(_, pattern)| pattern.is_match(rule));
        found.map_or(&[], |(kinds, _)| kinds)
    }

    /// Splits the findings of a step of the case `id` into expected and unexpected ones.
    pub fn split(
        &self,
        rule: &str,
        id: &str,
        step: &str,
        found: Vec<FieldDifference>,
    ) -> SplitFindings {
        let mut divided = SplitFindings::default();
        for finding in found {
            let entry = self.entries.iter().find(|entry| entry.matches(rule, id, step, &finding));
            let Some(entry) = entry else {
                divided.unexpected.push(finding);
                continue;
            };
            if self
                .paragraphs
                .get(entry.paragraph)
                .is_some_and(|paragraph| paragraph.citation.is_none())
            {
                divided.uncited += finding.fields;
            }
            divided.expected.push(finding);
        }
        divided
    }

    /// Checks the lists and the results after a run. In a `complete` run, which has all cases,
    /// unused entries are problems too.
    pub fn problems(&self, results: &[CaseResult], complete: bool) -> Vec<String> {
        let mut problems = Vec::new();
        if complete {
            let is_always_needed = |entry: &&Entry| {
                self.paragraphs.get(entry.paragraph).is_none_or(|paragraph| !paragraph.sometimes)
            };
            problems.extend(self.entries.iter().filter(is_always_needed).filter_map(Entry::unused));
        }
        for Paragraph { line, citation, .. } in &self.paragraphs {
            let problem = citation.as_ref().and_then(|citation| self.sources.problem(citation));
            problems
                .extend(problem.map(|problem| format!("olm/differences.txt:{line}: {problem}")));
        }
        let compared: usize = results.iter().map(|case| case.compared().total()).sum();
        let uncited: usize =
            results.iter().flat_map(|case| &case.steps).map(|step| step.uncited).sum();
        if complete && exceeds(uncited, compared) {
            problems.push(format!(
                "olm/differences.txt: {uncited} of {compared} fields differ without a citation, more than one in 100"
            ));
        }
        for (line, citation) in self.exceptions.values() {
            let problem = self.sources.problem(citation);
            problems.extend(problem.map(|problem| format!("olm/subjects.txt:{line}: {problem}")));
        }
        if complete && self.exceptions.len() * MAX_EXCEPTION_SHARE > results.len() {
            let (count, all) = (self.exceptions.len(), results.len());
            problems.push(format!("olm/subjects.txt: {count} exceptions among {all} cases"));
        }
        for case in results {
            problems.extend(self.problem(case));
        }
        problems
    }

    /// The number of exceptions.
    pub fn exceptions(&self) -> usize {
        self.exceptions.len()
    }

    /// Why a case fails.
    pub fn problem(&self, case: &CaseResult) -> Option<String> {
        let CaseResult { id, rule, .. } = case;
        let name = format!("{rule} ({id})");
        if let Some(error) = &case.error {
            return Some(format!("{name} was not run to its end: {error}"));
        }
        let unexpected = case.steps.iter().map(|step| step.unexpected.len()).sum::<usize>();
        if unexpected > 0 {
            return Some(format!("{name}: {unexpected} differences are not wanted"));
        }
        let subject = self.subject(rule);
        if subject.is_empty() {
            return Some(format!("olm/subjects.txt: what is the rule {rule} about?"));
        }
        let compared = case.compared();
        let all: usize = subject.iter().filter_map(|kind| compared.0.get(kind)).sum();
        let excused: usize = case
            .steps
            .iter()
            .flat_map(|step| &step.expected)
            .filter(|finding| subject.contains(&finding.kind))
            .map(|finding| finding.fields)
            .sum();
        let kinds = subject.join(", ");
        if all == 0 {
            return Some(format!("{name}: there is no {kinds} in it, which it is about"));
        }
        let much = excused * MAX_SUBJECT_SHARE > all;
        if let Some((line, _)) = self.exceptions.get(rule) {
            return (!much).then(|| format!("olm/subjects.txt:{line}: {name} is no exception"));
        }
        much.then(|| {
            format!("{name}: of the {all} fields of {kinds}, which it is about, {excused} are excused: more than one in {MAX_SUBJECT_SHARE}")
        })
    }
}

/// The findings of a step.
#[derive(Clone, Debug, Default)]
pub struct SplitFindings {
    /// Findings that `differences.txt` lists.
    pub expected: Vec<FieldDifference>,
    /// All others.
    pub unexpected: Vec<FieldDifference>,
    /// The number of expected differing fields without a citation.
    pub uncited: usize,
}

fn entry(line: usize, paragraph: usize, text: &str) -> anyhow::Result<Entry> {
    const SYNTAX: &str = "not RULES STEPS KIND OBJECTS: PATHS, nor RULES STEPS +KIND OBJECTS";
    let (head, paths) = match text.split_once(": ") {
        Some((head, paths)) => (head, paths.split_whitespace().collect()),
        None => (text, Vec::new()),
    };
    let mut words = head.split_whitespace();
    let mut word = || words.next().context(SYNTAX);
    let (rules, numbers, kind) = (word()?, word()?, word()?);
    let (side, kind) = match (kind.strip_prefix('+'), kind.strip_prefix('-')) {
        (Some(kind), _) => (Side::Ours, kind),
        (_, Some(kind)) => (Side::Recorded, kind),
        _ => (Side::Both, kind),
    };
    let objects: Vec<Pattern> =
        words.map(|object| Pattern::read(object, false)).collect::<Result<_, _>>()?;
    let paths: Vec<Pattern> =
        paths.into_iter().map(|path| Pattern::read(path, true)).collect::<Result<_, _>>()?;
    if objects.is_empty() || (side == Side::Both) == paths.is_empty() {
        bail!(SYNTAX);
    }
    if kind.contains('*') || rules.contains('*') {
        bail!("rules and kinds are named, without `*`");
    }
    Ok(Entry {
        line,
        paragraph,
        rules: rules.split(',').map(str::to_owned).collect(),
        steps: steps(numbers)?,
        side,
        kind: kind.to_owned(),
        objects,
        paths,
        used: Mutex::default(),
    })
}

impl Entry {
    fn matches(&self, rule: &str, id: &str, step: &str, finding: &FieldDifference) -> bool {
        let side = match (finding.path.is_empty(), &finding.recorded) {
            (false, _) => Side::Both,
            (true, None) => Side::Ours,
            (true, Some(_)) => Side::Recorded,
        };
        if side != self.side || finding.kind != self.kind {
            return false;
        }
        if !self.rules.iter().any(|own| own == rule) || !self.steps.iter().any(|own| own == step) {
            return false;
        }
        let find = |patterns: &[Pattern], text: &str| {
            patterns
                .iter()
                .find(|pattern| pattern.is_match(text, id))
                .map(|pattern| pattern.text.clone())
        };
        let Some(object) = find(&self.objects, &finding.object) else { return false };
        let path = match side {
            Side::Both => find(&self.paths, &finding.path),
            _ => Some(String::new()),
        };
        let Some(path) = path else { return false };
        let mut used = self.used.lock().unwrap_or_else(PoisonError::into_inner);
        used.extend([
            format!("rule {rule}"),
            format!("step {step}"),
            format!("object {object}"),
            format!("path {path}"),
        ]);
        true
    }

    /// The parts of the line that matched no finding.
    fn unused(&self) -> Option<String> {
        let used = self.used.lock().unwrap_or_else(PoisonError::into_inner);
        let mut parts: Vec<String> = Vec::new();
        parts.extend(self.rules.iter().map(|rule| format!("rule {rule}")));
        parts.extend(self.steps.iter().map(|step| format!("step {step}")));
        parts.extend(self.objects.iter().map(|object| format!("object {}", object.text)));
        parts.extend(self.paths.iter().map(|path| format!("path {}", path.text)));
        parts.retain(|part| !used.contains(part));
        (!parts.is_empty()).then(|| {
            format!("olm/differences.txt:{}: nothing needs {}", self.line, parts.join(", "))
        })
    }
}

/// Lines for `differences.txt` that would list the unexpected findings. A person adds the reasons.
pub fn proposal(results: &[CaseResult]) -> String {
    type Difference<'a> = (&'a str, String, String, BTreeSet<String>);
    // The steps, by rule, kind, object and paths.
    let mut all: BTreeMap<Difference<'_>, BTreeSet<&str>> = BTreeMap::new();
    for case in results {
        let general = |text: &str| text.replace(&case.id, "{case}");
        for step in &case.steps {
            let mut objects: BTreeMap<(String, String), BTreeSet<String>> = BTreeMap::new();
            for finding in &step.unexpected {
                let sign = match (finding.path.is_empty(), &finding.recorded) {
                    (false, _) => "",
                    (true, None) => "+",
                    (true, Some(_)) => "-",
                };
                let key = (format!("{sign}{}", finding.kind), general(&finding.object));
                let paths = objects.entry(key).or_default();
                if !finding.path.is_empty() {
                    paths.insert(general(&finding.path));
                }
            }
            for ((kind, object), paths) in objects {
                all.entry((&case.rule, kind, object, paths)).or_default().insert(step.number());
            }
        }
    }
    let mut text = String::new();
    for ((rule, kind, object, paths), steps) in all {
        let steps = steps.into_iter().collect::<Vec<_>>().join(",");
        let colon = if paths.is_empty() { "" } else { ": " };
        let paths = paths.into_iter().collect::<Vec<_>>().join(" ");
        let _ = writeln!(text, "  {rule} {steps} {kind} {object}{colon}{paths}");
    }
    text
}

#[cfg(test)]
mod tests;
