//! Catalogs read, validated, rendered and listed by `mainstay opm`, each command a process of its
//! own.
//!
//! Processor time of different machines cannot be compared, so a yardstick is measured in the same
//! run: libyaml's event parser over the same bytes (for JSON, Python's decoder). The recorded costs
//! of opm are multiples of it. A real opm is measured too if available.

pub(crate) mod child;
mod fourfold;
mod recorded;
mod yardstick;

use crate::figure::{Figure, float};
use crate::launch::Program;
use crate::table::{Cell, Report, Table};
use anyhow::{Context, Result, ensure};
use child::Cost;
pub(crate) use child::{Meter, run_meter};
use recorded::Work;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;
use tempfile::TempDir;

/// Options of `catalogs`.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    program: Program,
    /// The certified catalog as a folder. Without it, and without the two below, they are taken from
    /// the archives in the folder that `MAINSTAY_TESTDATA` names.
    #[arg(long, value_name = "DIR")]
    certified: Option<PathBuf>,
    /// The community catalog as a folder.
    #[arg(long, value_name = "DIR")]
    community: Option<PathBuf>,
    /// A folder with bundle folders, in any depth.
    #[arg(long, value_name = "DIR")]
    bundles: Option<PathBuf>,
    /// The number of runs per command: the least time and the most memory count.
    #[arg(long, default_value_t = 3)]
    rounds: usize,
    /// A real opm to measure in the same run.
    #[arg(long, visible_alias = "real", value_name = "PROGRAM")]
    opm: Option<PathBuf>,
    /// Skip the large catalog, four copies of the certified one, which needs 230 MB of disk per
    /// copy.
    #[arg(long)]
    skip_fourfold: bool,
    /// Only write the large catalog to this file.
    #[arg(long, value_name = "FILE")]
    write_fourfold: Option<PathBuf>,
}

/// The compared programs.
struct CatalogComparison {
    /// `mainstay`; called as `mainstay opm …`.
    ours: PathBuf,
    /// `opm`, if available.
    theirs: Option<PathBuf>,
    rounds: usize,
    /// The working folder.
    work: TempDir,
}

/// The content of the archives, for messages.
const ARCHIVE_CONTENT: &str = "published catalogs";

/// The number of copies in the large catalog.
const LARGE_CATALOG_COPIES: usize = 4;

/// Writes the large catalog if only that is requested; otherwise returns false.
pub(crate) fn write_only(arguments: &Arguments) -> Result<bool> {
    let Some(file) = &arguments.write_fourfold else { return Ok(false) };
    let mut unpacked = Vec::new();
    let (archive, below) = recorded::CATALOGS[0];
    let certified =
        input(arguments.certified.as_deref(), archive, below, ARCHIVE_CONTENT, &mut unpacked)?;
    fourfold::write(&certified, file, LARGE_CATALOG_COPIES)?;
    Ok(true)
}

pub(crate) fn run(arguments: &Arguments) -> Result<Report> {
    let mut unpacked = Vec::new();
    let mut report = Report::default();
    let given = [&arguments.certified, &arguments.community];
    let mut catalogs = Vec::new();
    for ((archive, below), given) in recorded::CATALOGS.iter().zip(given) {
        catalogs.push(input(given.as_deref(), archive, below, ARCHIVE_CONTENT, &mut unpacked)?);
    }
    let [certified, community] = catalogs.as_slice() else { return Ok(report) };
    let bundles =
        input(arguments.bundles.as_deref(), "bundles-249", ".", ARCHIVE_CONTENT, &mut unpacked)?;
    let contest = CatalogComparison {
        ours: fs::canonicalize(arguments.program.path()?)?,
        theirs: arguments.opm.as_ref().map(fs::canonicalize).transpose().context("finding opm")?,
        rounds: arguments.rounds.max(1),
        work: arguments.program.folder()?,
    };
    contest.catalog("certified", 0, certified, &mut report)?;
    contest.catalog("community", 1, community, &mut report)?;
    contest.bundles(&bundles, &mut report)?;
    if !arguments.skip_fourfold {
        contest.fourfold(certified, &mut report)?;
    }
    Ok(report)
}

/// The given folder, or the folder in an archive that holds `what`.
pub(crate) fn input(
    given: Option<&Path>,
    archive: &str,
    below: &str,
    what: &str,
    unpacked: &mut Vec<TempDir>,
) -> Result<PathBuf> {
    if let Some(folder) = given {
        return fs::canonicalize(folder).with_context(|| folder.display().to_string());
    }
    let folder = mainstay_testdata::unpack(archive, what);
    let folder = folder.context("name the folders, see --help")?;
    let path = folder.path().join(below);
    unpacked.push(folder);
    Ok(path)
}

/// The catalog of a subject that measures one.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct CertifiedCatalog {
    /// The catalog as a folder; by default the certified one of the archives in the folder that
    /// `MAINSTAY_TESTDATA` names.
    #[arg(long, value_name = "DIR")]
    catalog: Option<PathBuf>,
}

impl CertifiedCatalog {
    /// Its folder; `unpacked` keeps that of an archive.
    pub(crate) fn folder(&self, unpacked: &mut Vec<TempDir>) -> Result<PathBuf> {
        let (archive, below) = ("catalog-certified-v4.14", "v4.14");
        input(self.catalog.as_deref(), archive, below, "a published catalog", unpacked)
    }
}

impl CatalogComparison {
    /// All measurements of one catalog; `which` is its index in the recorded figures.
    fn catalog(&self, name: &str, which: usize, folder: &Path, report: &mut Report) -> Result<()> {
        let (files, bytes) = size(folder)?;
        let libyaml = yardstick::yaml(folder)?;
        report.fact(&format!("{name}-files"), Figure::number(files));
        report.fact(&format!("{name}-bytes"), Figure::size(bytes));
        report.fact(&format!("{name}-libyaml"), Figure::time(libyaml));
        let mut columns = vec![
            ("wall", "wall"),
            ("processor", "processor"),
            ("memory", "memory"),
            ("multiple", "× libyaml"),
            ("recorded", "opm: × libyaml"),
            ("less", "times less"),
            ("part", "memory: of opm's"),
        ];
        self.name_theirs(&mut columns);
        let mut table = Table::new(name, "command", &columns);
        for work in recorded::WORK {
            let Work { name, arguments, ratio, memory } = work;
            let opm = Figure::times(ratio[which]);
            self.row(&mut table, (name, &format!("`{name}`")), arguments, folder, |ours| {
                let multiple = Figure::time(ours.processor).ratio_to(Figure::time(libyaml));
                let less = multiple.and_then(|multiple| opm.ratio_to(multiple));
                let theirs = Figure::size(u64::from(memory[which]) * 1_000_000);
                let part = Figure::size(ours.memory).ratio_to(theirs);
                vec![multiple.into(), opm.into(), less.into(), part.into()]
            })?;
        }
        report.table(table)
    }

    /// Adds a row with the costs of a command, the cells of `compared`, and the costs of a real opm
    /// if available. For a failing command, the row has its last line of output instead.
    fn row(
        &self,
        table: &mut Table,
        (key, title): (&str, &str),
        arguments: &[&str],
        folder: &Path,
        compared: impl FnOnce(Cost) -> Vec<Cell>,
    ) -> Result<()> {
        let cells = match self.cost(true, arguments, folder) {
            Ok(ours) => {
                let mut cells = ours.cells().to_vec();
                cells.extend(compared(ours));
                if self.theirs.is_some() {
                    let theirs = self.cost(false, arguments, folder).context("opm")?;
                    cells.extend(theirs.cells());
                    cells.extend(ours.ratio_to(theirs));
                }
                cells
            }
            Err(error) => {
                let mut cells = vec![Cell::Text(format!("fails: {error:#}"))];
                cells.resize(table.columns.len(), Cell::Nothing);
                cells
            }
        };
        table.row(key, title, cells);
        Ok(())
    }

    /// All bundle folders: rendered by one command, validated by another, and rendered to manifests
    /// by a third.
    fn bundles(&self, folder: &Path, report: &mut Report) -> Result<()> {
        let mut found = Vec::new();
        let mut bytes = 0;
        bundle_folders(folder, &mut found, &mut bytes)?;
        ensure!(!found.is_empty(), "no bundle folders below {}", folder.display());
        report.fact("bundles", Figure::number(found.len()));
        report.fact("bundles-bytes", Figure::size(bytes));
        report.fact("bundles-opm", Figure::time(Duration::from_secs_f64(recorded::BUNDLES / 1e3)));
        let each = |cost: Cost| Figure::time(cost.processor.div_f64(in_megabytes(bytes)));
        let mut columns = vec![
            ("wall", "wall"),
            ("processor", "processor"),
            ("memory", "memory"),
            ("each", "processor for each MB"),
        ];
        self.name_theirs(&mut columns);
        let mut table = Table::new("bundles", "command", &columns);
        let mut arguments = vec!["render"];
        arguments.extend(found.iter().map(String::as_str));
        let title = "`opm render`";
        self.row(&mut table, ("render", title), &arguments, folder, |ours| {
            vec![each(ours).into()]
        })?;
        // Invalid bundles, and bundles that need a configuration, count too.
        for (key, title, command) in
            [("judge", "`bundle validate`", "validate"), ("manifests", "`bundle render`", "render")]
        {
            let words = ["bundle".to_owned(), command.to_owned()];
            let arguments: Vec<String> = words.into_iter().chain(found.iter().cloned()).collect();
            let run = || child::finish(&self.ours, &arguments, folder).map(|(cost, _)| cost);
            let rounds: Vec<Cost> = (0..self.rounds).map(|_| run()).collect::<Result<_>>()?;
            let cost = Cost::of_rounds(&rounds).context("no rounds")?;
            let mut cells = cost.cells().to_vec();
            cells.push(each(cost).into());
            cells.resize(table.columns.len(), Cell::Nothing);
            table.row(key, title, cells);
        }
        report.table(table)
    }

    /// One large JSON file.
    fn fourfold(&self, certified: &Path, report: &mut Report) -> Result<()> {
        let folder = self.work.path().join("fourfold");
        fs::create_dir(&folder)?;
        let file = folder.join("catalog.json");
        // The helper process's own memory does not count: see `Cost::memory`.
        let own = std::env::current_exe().context("finding out where this program is")?;
        let written = Command::new(own)
            .args(["catalogs", "--certified"])
            .arg(certified)
            .arg("--write-fourfold")
            .arg(&file)
            .status();
        ensure!(written.is_ok_and(|status| status.success()), "writing the large catalog failed");
        let (_, bytes) = size(&folder)?;
        let decoder = yardstick::json(&file)?;
        report.fact("fourfold-bytes", Figure::size(bytes));
        report.fact("fourfold-python", Figure::time(decoder));
        let (recorded, memory) = recorded::FOURFOLD;
        let mut columns = vec![
            ("wall", "wall"),
            ("processor", "processor"),
            ("memory", "memory"),
            ("multiple", "× Python"),
            ("recorded", "opm: × Python"),
            ("part", "memory: of opm's"),
        ];
        self.name_theirs(&mut columns);
        let mut table = Table::new("fourfold", "command", &columns);
        for (command, opm) in [("validate", Some(Figure::times(recorded))), ("render", None)] {
            let title = format!("`{command}`");
            self.row(&mut table, (command, &title), &[command, "{}"], &folder, |ours| {
                let multiple = Figure::time(ours.processor).ratio_to(Figure::time(decoder));
                let part =
                    Figure::size(ours.memory).ratio_to(Figure::size(u64::from(memory) * 1_000_000));
                vec![multiple.into(), opm.into(), part.into()]
            })?;
        }
        fs::remove_dir_all(&folder)?;
        report.table(table)
    }

    /// The cost of a command; in its arguments `{}` stands for `folder`, `{out}` for a new folder.
    fn cost(&self, ours: bool, arguments: &[&str], folder: &Path) -> Result<Cost> {
        let program = if ours { Some(&self.ours) } else { self.theirs.as_ref() };
        let program = program.context("no opm was named")?;
        let out = self.work.path().join("out");
        let arguments: Vec<String> = ours
            .then_some("opm")
            .into_iter()
            .chain(arguments.iter().copied())
            .map(|argument| argument.replace("{out}", &out.to_string_lossy()))
            .map(|argument| argument.replace("{}", &folder.to_string_lossy()))
            .collect();
        let mut rounds = Vec::new();
        for _ in 0..self.rounds {
            rounds.push(child::run(program, &arguments, folder)?);
            if out.exists() {
                fs::remove_dir_all(&out)?;
            }
        }
        Cost::of_rounds(&rounds).context("no rounds")
    }

    fn name_theirs(&self, columns: &mut Vec<(&str, &str)>) {
        if self.theirs.is_some() {
            columns.extend([
                ("their-wall", "opm: wall"),
                ("their-processor", "processor"),
                ("their-memory", "memory"),
                ("wall-ratio", "ours : opm, wall"),
                ("processor-ratio", "processor"),
                ("memory-ratio", "memory"),
            ]);
        }
    }
}

fn in_megabytes(bytes: u64) -> f64 {
    float(bytes) / 1e6
}

/// The number of files in a folder and its subfolders, and their size in bytes.
fn size(folder: &Path) -> Result<(usize, u64)> {
    let (mut files, mut bytes) = (0, 0);
    for entry in fs::read_dir(folder).with_context(|| format!("listing {}", folder.display()))? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            let below = size(&entry.path())?;
            files += below.0;
            bytes += below.1;
        } else {
            files += 1;
            bytes += entry.metadata()?.len();
        }
    }
    Ok((files, bytes))
}

/// Collects the folders that have a subfolder `manifests`, by path, and their size in bytes.
fn bundle_folders(folder: &Path, found: &mut Vec<String>, bytes: &mut u64) -> Result<()> {
    if folder.join("manifests").is_dir() {
        found.push(folder.to_string_lossy().into_owned());
        *bytes += size(folder)?.1;
        return Ok(());
    }
    let mut below = Vec::new();
    for entry in fs::read_dir(folder).with_context(|| format!("listing {}", folder.display()))? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            below.push(entry.path());
        }
    }
    below.sort();
    below.iter().try_for_each(|path| bundle_folders(path, found, bytes))
}
