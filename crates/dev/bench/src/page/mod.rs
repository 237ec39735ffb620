//! The performance page: `crates/dev/bench/page.md` with the recorded figures filled in.
//!
//! The text contains no measured figure; double braces name the figure to insert ([`template`]). So
//! the page always agrees with the records, and a test checks it.

mod template;

use crate::figure::Figure;
use crate::goals;
use crate::record::{self, Record};
use crate::table::{Cell, Table, markdown};
use anyhow::{Context, Result, bail, ensure};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::PathBuf;

/// Options of `page`.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// The folder with the records.
    #[arg(long, value_name = "FOLDER", default_value = "crates/dev/bench/results")]
    from: PathBuf,
    /// Write the page to this file; without it, to standard output.
    #[arg(long, value_name = "FILE", conflicts_with = "check")]
    write: Option<PathBuf>,
    /// Only check whether this file is up to date.
    #[arg(long, value_name = "FILE")]
    check: Option<PathBuf>,
}

/// The template.
const TEXT: &str = include_str!("../../page.md");

/// Writes the page, or checks it.
pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let records = record::load(&arguments.from)?;
    let from = arguments.from.display();
    ensure!(
        !records.is_empty(),
        "there are no records in {from}: take them with `mainstay-bench all --record {from}`"
    );
    let page = page(&records)?;
    if let Some(file) = &arguments.check {
        let found = fs::read_to_string(file).with_context(|| file.display().to_string())?;
        if let Some(line) = differing(&found, &page) {
            bail!(
                "{}:{line}: not what the records give; write it with `mainstay-bench page --write {}`",
                file.display(),
                file.display()
            );
        }
    } else if let Some(file) = &arguments.write {
        fs::write(file, page).with_context(|| format!("writing {}", file.display()))?;
    } else {
        print!("{page}");
    }
    Ok(())
}

/// The first line in which two texts differ, counted from one.
fn differing(found: &str, expected: &str) -> Option<usize> {
    if found == expected {
        return None;
    }
    let (mut found, mut expected) = (found.lines(), expected.lines());
    let mut line = 1;
    while let (Some(found), Some(expected)) = (found.next(), expected.next()) {
        if found != expected {
            break;
        }
        line += 1;
    }
    Some(line)
}

/// Renders the page of these records.
fn page(records: &BTreeMap<String, Record>) -> Result<String> {
    template::fill(TEXT, &Records(records))
}

/// The records as source of the template.
struct Records<'a>(&'a BTreeMap<String, Record>);

impl Records<'_> {
    /// Splits `SUBJECT/REST` into the record and the rest.
    fn at<'p>(&self, path: &'p str) -> Result<(&Record, &'p str)> {
        let (subject, rest) = path.split_once('/').context("no subject is named")?;
        let record = self.0.get(subject);
        Ok((record.with_context(|| format!("{subject} is not recorded"))?, rest))
    }

    fn table(&self, path: &str) -> Result<&Table> {
        let (record, key) = self.at(path)?;
        record.report.find(key).with_context(|| format!("{path} is not recorded"))
    }

    fn cell(&self, path: &str) -> Option<&Cell> {
        let (record, rest) = self.at(path).ok()?;
        record.cell(rest)
    }

    /// The machine of all runs; the table `runs` names them if there are several.
    fn machine(&self) -> String {
        let machines: BTreeSet<String> = self.0.values().map(machine).collect();
        match machines.first() {
            Some(machine) if machines.len() == 1 => format!("Machine: {machine}."),
            _ => "The machine of each run stands beside it.".to_owned(),
        }
    }

    /// Warnings about runs that are not representative.
    fn notes(&self) -> String {
        let named = |predicate: &dyn Fn(&Record) -> bool| {
            let subjects = self.0.values().filter(|record| predicate(record));
            subjects.map(|record| format!("`{}`", record.subject)).collect::<Vec<_>>().join(", ")
        };
        let mut notes = Vec::new();
        let mut note = |subjects: &str, text: &str| {
            if !subjects.is_empty() {
                notes.push(format!("**{text}: {subjects}.**\n\n"));
            }
        };
        let debug = named(&|record| record.build != "release");
        note(&debug, "Measured with a build that is not optimized, so the figures mean nothing");
        let unusual = named(&|record| !record.unusual.is_empty());
        note(&unusual, "Measured with other amounts than the usual ones, see the commands");
        let missing = crate::all::SUBJECTS.iter().filter(|part| !self.0.contains_key(part.name));
        let missing = missing.map(|part| format!("`{}`", part.name)).collect::<Vec<_>>().join(", ");
        note(&missing, "Not measured");
        notes.concat()
    }

    /// The table of runs: date, commit and command of each subject.
    fn runs(&self) -> String {
        let machines: BTreeSet<String> = self.0.values().map(machine).collect();
        let mut head = vec!["subject", "command", "commit", "date", "took", "others used"];
        if machines.len() > 1 {
            head.push("machine");
        }
        let rows = crate::all::SUBJECTS.iter().filter_map(|part| {
            let record = self.0.get(part.name)?;
            let mut row = vec![
                record.subject.clone(),
                format!("`{}`", record.command),
                record.commit.clone(),
                record.date.split('T').next().unwrap_or_default().to_owned(),
                record.took.to_string(),
                record.others.map_or_else(|| "–".to_owned(), |others| others.to_string()),
            ];
            if machines.len() > 1 {
                row.push(machine(record));
            }
            Some(row)
        });
        let head: Vec<String> = head.iter().map(|&title| title.to_owned()).collect();
        let table = markdown(&head, &rows.collect::<Vec<_>>());
        format!(
            "*Others used* is how much of all cores other programs used during the run: what is not below a few percent was not \
             measured on a quiet machine.\n\n{table}"
        )
    }
}

/// Describes the machine of a run.
fn machine(record: &Record) -> String {
    let machine = &record.machine;
    let memory = Figure::size(machine.memory).value / f64::from(1 << 30);
    format!(
        "{} cores ({}), {memory:.0} GiB, {}, Linux {}",
        machine.cores, machine.processor, machine.disk, machine.kernel
    )
}

impl template::Source for Records<'_> {
    fn has(&self, path: &str) -> bool {
        match path.split_once('/') {
            Some(_) => self.cell(path).is_some_and(|cell| *cell != Cell::Nothing),
            None => self.0.contains_key(path),
        }
    }

    fn without(&self, subject: &str) -> String {
        format!(
            "Not measured: `target/release/mainstay-bench {subject} --record crates/dev/bench/results`.\n"
        )
    }

    fn value(&self, what: &str, path: &str) -> Result<String> {
        Ok(match what {
            "goals" => goals::table_of_all(self.0),
            "runs" => self.runs(),
            "machine" => self.machine(),
            "notes" => self.notes(),
            "table" => self.table(path)?.to_string(),
            "command" => {
                let record = self.0.get(path).with_context(|| format!("{path} is not recorded"))?;
                record.command.clone()
            }
            "value" => {
                let cell = self.cell(path).with_context(|| format!("{path} is not recorded"))?;
                cell.to_string()
            }
            "set" => {
                let (record, option) = self.at(path)?;
                let value = record.settings.get(option);
                let value = value.with_context(|| format!("there is no option {path}"))?;
                match value.parse() {
                    Ok(number) => Figure::number(number).to_string(),
                    Err(_) => value.clone(),
                }
            }
            other => bail!("there is nothing called {other:?}"),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::tests::record;
    use std::path::Path;

    const MARK: &str = "<!-- Written by `mainstay-bench page`";

    fn project() -> &'static Path {
        Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(3).unwrap()
    }

    fn committed() -> BTreeMap<String, Record> {
        record::load(&Path::new(env!("CARGO_MANIFEST_DIR")).join("results")).unwrap()
    }

    fn small() -> BTreeMap<String, Record> {
        let mut table = Table::new("creates", "work", &[("ours", "ours")]);
        table.row("none-creates-1", "creates/s", [Figure::number(1099).into()]);
        let mut record = record("webhook", table);
        record.settings = [("objects", "500"), ("rounds", "5")]
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .into();
        BTreeMap::from([("webhook".to_owned(), record)])
    }

    /// Without records, the page was not rendered by this program either.
    #[test]
    fn performance_page_is_up_to_date() {
        let file = project().join("docs/performance.md");
        let found = fs::read_to_string(&file).unwrap();
        let records = committed();
        assert_eq!(
            found.contains(MARK),
            !records.is_empty(),
            "the page is written from records: `mainstay-bench page --write docs/performance.md`"
        );
        if !records.is_empty() {
            let line = differing(&found, &page(&records).unwrap());
            assert_eq!(
                line, None,
                "docs/performance.md: differs from the records from this line on"
            );
        }
    }

    #[test]
    fn records_have_the_figures_of_every_goal() {
        let lacking = goals::without_figures(&committed());
        // Figures of these two external programs may be missing from a complete record.
        let beside = |goal: &&str| !goal.contains("peer") && !goal.contains("skopeo");
        let lacking: Vec<&str> = lacking.into_iter().filter(beside).collect();
        assert!(lacking.is_empty(), "{lacking:?}");
    }

    #[test]
    fn page_contains_recorded_subjects_and_notes_missing_ones() {
        let page = page(&small()).unwrap();
        assert!(page.contains("| creates/s | 1,099 |"), "{page}");
        assert!(page.contains("`target/release/mainstay-bench webhook`: creates"), "{page}");
        assert!(page.contains("500 objects in each of 5 turns"), "{page}");
        assert!(
            page.contains("Machine: 2 cores (a processor), 24 GiB, ext4, Linux 6.1."),
            "{page}"
        );
        assert!(page.contains("**Not measured: `store`, `cluster`, "), "{page}");
        assert!(page.contains("Not measured: `target/release/mainstay-bench store --record"));
        assert!(!page.contains("The real one is Kubernetes"), "{page}");
        assert!(!page.contains("{{") && !page.contains("}}"), "{page}");
    }

    #[test]
    fn unrepresentative_run_is_marked() {
        let mut records = small();
        let record = records.get_mut("webhook").unwrap();
        record.build = "debug".to_owned();
        record.unusual = vec!["--rounds 1".to_owned()];
        let page = page(&records).unwrap();
        assert!(
            page.contains("not optimized, so the figures mean nothing: `webhook`.**"),
            "{page}"
        );
        assert!(page.contains("other amounts than the usual ones, see the commands: `webhook`.**"));
    }

    #[test]
    fn template_contains_no_figures() {
        let units = ["ms", "µs", "s", "MB", "GB", "GiB", "kB", "%", "times", "×"];
        for (number, line) in TEXT.lines().enumerate() {
            let words: Vec<&str> = line.split([' ', '(', ')', ',', ';', '|']).collect();
            for pair in words.windows(2) {
                let figure = pair[0].starts_with(|first: char| first.is_ascii_digit());
                let unit = pair[1].trim_end_matches(['.', ':', '*']);
                assert!(!(figure && units.contains(&unit)), "page.md:{}: {line}", number + 1);
            }
        }
    }

    #[test]
    fn first_differing_line_is_reported() {
        assert_eq!(differing("a\nb\n", "a\nb\n"), None);
        assert_eq!(differing("a\nb\n", "a\nc\n"), Some(2));
        assert_eq!(differing("a\n", "a\nb\n"), Some(2));
    }

    #[test]
    fn stale_page_is_rejected() {
        let folder = tempfile::tempdir().unwrap();
        let from = folder.path().join("results");
        let file = folder.path().join("page.md");
        let arguments = |write: bool| Arguments {
            from: from.clone(),
            write: write.then(|| file.clone()),
            check: (!write).then(|| file.clone()),
        };
        assert!(run(&arguments(true)).unwrap_err().to_string().contains("there are no records"));
        let mut record = small().remove("webhook").unwrap();
        record.save(&from).unwrap();
        run(&arguments(true)).unwrap();
        run(&arguments(false)).unwrap();
        record.report.tables[0].rows[0].cells[0] = Figure::number(7).into();
        record.save(&from).unwrap();
        let error = run(&arguments(false)).unwrap_err().to_string();
        assert!(error.contains("not what the records give"), "{error}");
    }
}
