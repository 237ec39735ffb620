//! Records: the results of one run of a subject, with date, machine, commit and command.
//! `docs/performance.md` is rendered from records alone.

use crate::figure::Figure;
use crate::table::{Cell, Report};
use anyhow::{Context, Result};
use clap::ArgMatches;
use clap::parser::ValueSource;
use mainstay_clock::Clock;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::any::TypeId;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// One run of one subject.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Record {
    pub(crate) subject: String,
    /// The start time, in UTC.
    pub(crate) date: String,
    /// The checked-out commit, with a suffix if files were changed.
    pub(crate) commit: String,
    /// `release` or `debug`.
    pub(crate) build: String,
    pub(crate) machine: Machine,
    /// The command that reproduces the figures; files and programs are placeholders.
    pub(crate) command: String,
    /// The amounts by option, including defaults.
    pub(crate) settings: BTreeMap<String, String>,
    /// Options with other values than the defaults.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) unusual: Vec<String>,
    /// The duration of the run.
    pub(crate) took: Figure,
    /// The share of all cores that other programs used during the run; none if the kernel does not
    /// report it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) others: Option<Figure>,
    #[serde(flatten)]
    pub(crate) report: Report,
}

/// The machine of a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Machine {
    pub(crate) processor: String,
    pub(crate) cores: usize,
    /// Memory in bytes.
    pub(crate) memory: u64,
    pub(crate) kernel: String,
    /// The file system of the run's folders.
    pub(crate) disk: String,
}

/// A run in progress.
pub(crate) struct Run {
    subject: String,
    date: String,
    clock: Clock,
    start: Duration,
    processor: Option<Processor>,
}

impl Run {
    /// Starts a run of a subject.
    pub(crate) fn begin(subject: &str) -> Self {
        let clock = Clock::system();
        Self {
            subject: subject.to_owned(),
            date: clock.now_rfc3339(),
            clock,
            start: clock.elapsed(),
            processor: Processor::now(),
        }
    }

    /// Ends the run with its report. `command` and `matches` are those of the subject.
    pub(crate) fn end(
        self,
        report: Report,
        command: &clap::Command,
        matches: &ArgMatches,
    ) -> Result<Record> {
        let elapsed = self.clock.elapsed().saturating_sub(self.start);
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let others = match (self.processor, Processor::now()) {
            (Some(before), Some(after)) => Some(after.others(before, elapsed, cores)),
            _ => None,
        };
        let CommandLine { text, settings, unusual } =
            CommandLine::of(&self.subject, command, matches);
        let folder = matches.try_get_one::<PathBuf>("dir").ok().flatten();
        let folder = folder.cloned().unwrap_or_else(std::env::temp_dir);
        Ok(Record {
            subject: self.subject,
            date: self.date,
            commit: commit(),
            build: if cfg!(debug_assertions) { "debug" } else { "release" }.to_owned(),
            machine: Machine::of(cores, &folder)?,
            command: text,
            settings,
            unusual,
            took: Figure::time(elapsed),
            others,
            report,
        })
    }
}

impl Record {
    /// Writes the record to `FOLDER/SUBJECT.json`.
    pub(crate) fn save(&self, folder: &Path) -> Result<()> {
        let file = folder.join(format!("{}.json", self.subject));
        let text = lines(&serde_json::to_value(self)?, 0) + "\n";
        fs::create_dir_all(folder)
            .and_then(|()| fs::write(&file, text))
            .with_context(|| format!("writing the record {}", file.display()))
    }

    /// The cell at `TABLE/ROW/COLUMN`, or the fact at `facts/NAME`.
    pub(crate) fn cell(&self, path: &str) -> Option<&Cell> {
        let mut parts = path.split('/');
        let (table, row, column) = (parts.next()?, parts.next()?, parts.next());
        match column {
            None if table == "facts" => self.report.facts.get(row),
            None => None,
            Some(column) => {
                let table = self.report.find(table)?;
                let row = table.rows.iter().find(|known| known.key == row)?;
                table.cell(row, column)
            }
        }
    }
}

/// Reads the records of a folder, by subject; none if the folder does not exist.
///
/// # Errors
/// A file is no record, or its name is not that of the subject.
pub(crate) fn load(folder: &Path) -> Result<BTreeMap<String, Record>> {
    let mut records = BTreeMap::new();
    if !folder.is_dir() {
        return Ok(records);
    }
    for entry in fs::read_dir(folder).with_context(|| format!("listing {}", folder.display()))? {
        let file = entry?.path();
        if file.extension().is_none_or(|ending| ending != "json") {
            continue;
        }
        let text = fs::read_to_string(&file).with_context(|| file.display().to_string())?;
        let record: Record = serde_json::from_str(&text)
            .with_context(|| format!("{} is not a record", file.display()))?;
        anyhow::ensure!(
            file.file_stem().is_some_and(|name| name == &*record.subject),
            "{} is a record of `{}`: the file must be called {}.json",
            file.display(),
            record.subject,
            record.subject
        );
        records.insert(record.subject.clone(), record);
    }
    Ok(records)
}

/// The greatest length of a value on one line of a record.
const LINE_WIDTH: usize = 160;

/// Formats a value as JSON: short values on one line, the parts of long ones on lines of their own.
/// So a table row is one line, and a changed figure changes one line.
fn lines(value: &Value, depth: usize) -> String {
    let short = value.to_string();
    if short.len() <= LINE_WIDTH && depth > 0 {
        return short;
    }
    let (indent, end) = (" ".repeat(2 * depth + 2), " ".repeat(2 * depth));
    let part = |name: String, value| format!("{indent}{name}{}", lines(value, depth + 1));
    match value {
        Value::Object(fields) => {
            let parts =
                fields.iter().map(|(name, value)| part(format!("{}: ", json!(name)), value));
            format!("{{\n{}\n{end}}}", parts.collect::<Vec<_>>().join(",\n"))
        }
        Value::Array(items) => {
            let parts = items.iter().map(|item| part(String::new(), item));
            format!("[\n{}\n{end}]", parts.collect::<Vec<_>>().join(",\n"))
        }
        _ => short,
    }
}

/// The command line without paths and process ids of this machine.
struct CommandLine {
    text: String,
    settings: BTreeMap<String, String>,
    unusual: Vec<String>,
}

impl CommandLine {
    fn of(subject: &str, command: &clap::Command, matches: &ArgMatches) -> Self {
        let mut words = vec![format!("mainstay-bench {subject}")];
        let (mut settings, mut unusual) = (BTreeMap::new(), Vec::new());
        let options = command.get_arguments().filter(|option| !option.is_global_set());
        for option in options {
            let (Some(long), id) = (option.get_long(), option.get_id().as_str()) else { continue };
            let Ok(Some(values)) = matches.try_get_raw(id) else { continue };
            let values: Vec<String> =
                values.map(|value| value.to_string_lossy().into_owned()).collect();
            let given = matches.value_source(id) == Some(ValueSource::CommandLine);
            if !option.get_action().takes_values() {
                if given && values == ["true"] {
                    words.push(format!("--{long}"));
                    unusual.push(format!("--{long}"));
                }
                continue;
            }
            let name = option.get_value_names().and_then(<[_]>::first);
            let name = name.map_or_else(|| long.to_uppercase(), ToString::to_string);
            let of_machine =
                option.get_value_parser().type_id() == TypeId::of::<PathBuf>() || name == "N";
            for value in &values {
                let value = if of_machine { &name } else { value };
                if given {
                    words.push(format!("--{long} {value}"));
                }
            }
            if !of_machine {
                let defaults: Vec<_> = option
                    .get_default_values()
                    .iter()
                    .map(|default_value| default_value.to_string_lossy())
                    .collect();
                if defaults != values {
                    unusual.extend(values.iter().map(|value| format!("--{long} {value}")));
                }
                settings.insert(long.to_owned(), values.join(" "));
            }
        }
        Self { text: words.join(" "), settings, unusual }
    }
}

impl Machine {
    fn of(cores: usize, folder: &Path) -> Result<Self> {
        let read = |path: &str| fs::read_to_string(path).with_context(|| format!("reading {path}"));
        let memory = read("/proc/meminfo")?;
        let memory = field(&memory, "MemTotal")
            .and_then(|kibibytes| kibibytes.split(' ').next()?.parse().ok());
        let folder = fs::canonicalize(folder).with_context(|| folder.display().to_string())?;
        Ok(Self {
            processor: field(&read("/proc/cpuinfo")?, "model name").unwrap_or("unknown").to_owned(),
            cores,
            memory: memory.map_or(0, |kilobytes: u64| kilobytes * 1024),
            kernel: read("/proc/sys/kernel/osrelease")?.trim().to_owned(),
            disk: file_system(&read("/proc/mounts")?, &folder).unwrap_or("unknown").to_owned(),
        })
    }
}

/// The value of the first line `NAME : VALUE`.
fn field<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    let mut lines = text.lines().filter_map(|line| line.split_once(':'));
    lines.find(|(key, _)| key.trim() == name).map(|(_, value)| value.trim())
}

/// The type of a folder's file system, from the kernel's list of mounts.
fn file_system<'a>(mounts: &'a str, folder: &Path) -> Option<&'a str> {
    let mounts = mounts.lines().filter_map(|line| {
        let mut words = line.split(' ').skip(1);
        Some((words.next()?, words.next()?))
    });
    let above = mounts.filter(|(place, _)| folder.starts_with(place));
    // Of two mounts at one path, the later one is visible.
    above.max_by_key(|(place, _)| place.len()).map(|(_, kind)| kind)
}

/// The checked-out commit.
fn commit() -> String {
    let git = |words: &[&str]| {
        let output = Command::new("git").args(words).output().ok()?;
        output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
    };
    let Some(commit) = git(&["rev-parse", "--short=10", "HEAD"]) else {
        return "unknown".to_owned();
    };
    // Files that this program writes itself do not affect figures.
    let changed = git(&[
        "status",
        "--porcelain",
        "--untracked-files=no",
        "--",
        ":/",
        ":(top,exclude)docs/performance.md",
        ":(top,exclude)crates/dev/bench/results",
    ]);
    match changed.as_deref() {
        Some("") => commit,
        _ => format!("{commit} with changes"),
    }
}

/// Processor time of the whole machine, and of this program and its terminated children.
#[derive(Clone, Copy)]
struct Processor {
    all: u64,
    own: u64,
}

/// Clock ticks per second in `/proc`.
const TICKS: f64 = 100.0;

impl Processor {
    fn now() -> Option<Self> {
        let read = |path| fs::read_to_string(path).ok();
        Self::read(&read("/proc/stat")?, &read("/proc/self/stat")?)
    }

    fn read(machine: &str, own: &str) -> Option<Self> {
        let numbers = |text: &str| {
            text.split_whitespace().map(|number| number.parse().unwrap_or(0)).collect()
        };
        let all: Vec<u64> = numbers(machine.lines().next()?.strip_prefix("cpu ")?);
        // User, nice, system, irq, softirq and steal: neither idle nor waiting.
        let all = [0, 1, 2, 5, 6, 7].iter().filter_map(|&at| all.get(at)).sum();
        // These fields follow the program's name in parentheses, which may contain anything.
        let own: Vec<u64> = numbers(own.rsplit_once(')')?.1);
        Some(Self { all, own: own.get(11..15)?.iter().sum() })
    }

    /// The share of all cores that other programs used since `before`.
    fn others(self, before: Self, elapsed: Duration, cores: usize) -> Figure {
        let all = self.all.saturating_sub(before.all);
        let ticks = all.saturating_sub(self.own.saturating_sub(before.own));
        let spent = Duration::from_secs_f64(crate::figure::float(ticks) / TICKS);
        Figure::share(spent, elapsed * u32::try_from(cores).unwrap_or(1))
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::table::Table;
    use clap::{Args as _, FromArgMatches as _};

    /// A record of a subject with one table.
    pub(crate) fn record(subject: &str, table: Table) -> Record {
        let mut report = Report::default();
        report.table(table).unwrap();
        let machine = Machine {
            processor: "a processor".to_owned(),
            cores: 2,
            memory: 24 << 30,
            kernel: "6.1".to_owned(),
            disk: "ext4".to_owned(),
        };
        Record {
            subject: subject.to_owned(),
            date: "2026-11-24T10:00:00Z".to_owned(),
            commit: "0123456789".to_owned(),
            build: "release".to_owned(),
            machine,
            command: format!("mainstay-bench {subject}"),
            settings: BTreeMap::from([("runs".to_owned(), "9".to_owned())]),
            unusual: Vec::new(),
            took: Figure::time(Duration::from_mins(1)),
            others: None,
            report,
        }
    }

    #[derive(clap::Args)]
    struct Options {
        #[arg(long, default_value_t = 9)]
        runs: usize,
        #[arg(long, value_name = "PROGRAM")]
        real: Option<PathBuf>,
        #[arg(long, value_name = "N")]
        pid: Vec<u32>,
        #[arg(long)]
        all: bool,
        #[arg(long, global = true)]
        record: Option<PathBuf>,
    }

    fn given(words: &[&str]) -> CommandLine {
        let command = Options::augment_args(clap::Command::new("api"));
        let matches = command.clone().get_matches_from(words);
        Options::from_arg_matches(&matches).unwrap();
        CommandLine::of("api", &command, &matches)
    }

    #[test]
    fn recorded_command_has_placeholders_for_paths_and_pids() {
        let defaults =
            given(&["api", "--real", "/a/up", "--pid", "7", "--pid=8", "--record", "/r"]);
        assert_eq!(defaults.text, "mainstay-bench api --real PROGRAM --pid N --pid N");
        assert_eq!(defaults.settings, BTreeMap::from([("runs".to_owned(), "9".to_owned())]));
        assert!(defaults.unusual.is_empty());
        let other = given(&["api", "--runs", "1", "--all"]);
        assert_eq!(other.text, "mainstay-bench api --runs 1 --all");
        assert_eq!(other.unusual, ["--runs 1", "--all"]);
        assert_eq!(other.settings["runs"], "1");
    }

    #[test]
    fn record_is_loaded_by_its_subject() {
        let folder = tempfile::tempdir().unwrap();
        let mut table = Table::new("main", "work", &[("figure", "figure")]);
        table.row("start", "start", [Figure::number(3).into()]);
        table.row("stop", "s".repeat(LINE_WIDTH), [Figure::number(4).into()]);
        let record = record("cluster", table);
        record.save(folder.path()).unwrap();
        let records = load(folder.path()).unwrap();
        assert_eq!(records["cluster"], record);
        let cell = |path| records["cluster"].cell(path).and_then(Cell::figure);
        assert_eq!(cell("main/start/figure"), Some(Figure::number(3)));
        assert_eq!(cell("main/start/ours"), None);
        assert_eq!(cell("main/end/figure"), None);
        let text = fs::read_to_string(folder.path().join("cluster.json")).unwrap();
        let row = r#"{"cells":[{"unit":"number","value":3.0}],"key":"start","title":"start"}"#;
        assert!(text.lines().any(|line| line.trim().trim_end_matches(',') == row), "{text}");
        let from = folder.path().join("cluster.json");
        fs::rename(from, folder.path().join("store.json")).unwrap();
        assert!(
            load(folder.path()).unwrap_err().to_string().contains("must be called cluster.json")
        );
        assert!(load(&folder.path().join("none")).unwrap().is_empty());
    }

    #[test]
    fn other_programs_use_the_remaining_processor_time() {
        let at = |all: u64, own: u64| {
            let own = format!("7 (a b) S 1 7 7 0 -1 0 0 0 0 0 {own} 0 5 0 20 0");
            Processor::read(&format!("cpu  {all} 0 0 999 99 0 0 0 50 0\ncpu0 1"), &own).unwrap()
        };
        let share = at(400, 150).others(at(100, 50), Duration::from_secs(10), 2);
        assert_eq!(share.to_string(), "10.0 %");
    }

    #[test]
    fn file_system_is_that_of_the_nearest_mount() {
        let mounts =
            "overlay / overlay rw 0 0\n/dev/vda /tmp ext4 rw 0 0\ntmpfs /tmpfs tmpfs rw 0 0\n";
        let file_system_of = |folder| file_system(mounts, Path::new(folder));
        assert_eq!(file_system_of("/tmp/a"), Some("ext4"));
        assert_eq!(file_system_of("/tmpa"), Some("overlay"));
    }
}
