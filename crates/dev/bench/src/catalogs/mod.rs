//! Catalogs read, judged, rendered and listed by `mainstay opm`, each command a process of its own.
//!
//! Processor time of different machines cannot be compared, so a yardstick is measured in the same
//! run: libyaml's event parser over the same bytes (for JSON, Python's decoder). What opm has cost
//! as a multiple of that is recorded; where it is at hand it takes part itself. Goals and verdicts
//! are printed beside the figures; nothing fails because of them.

pub(crate) mod child;
mod fourfold;
mod recorded;
mod yardstick;

use crate::launch::Program;
use crate::table::{Table, megabytes, millis};
use anyhow::{Context, Result, ensure};
use child::Cost;
use recorded::Work;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;

/// What to measure, beside whom.
#[derive(clap::Args)]
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
    /// How often each command runs: the least time and the most memory count.
    #[arg(long, default_value_t = 3)]
    rounds: usize,
    /// A real opm, to be measured in the same run.
    #[arg(long, visible_alias = "real", value_name = "PROGRAM")]
    opm: Option<PathBuf>,
    /// Leave out the certified catalog four times over, which needs 230 MB of disk for each copy.
    #[arg(long)]
    skip_fourfold: bool,
    /// Only write the certified catalog four times over to this file.
    #[arg(long, value_name = "FILE")]
    write_fourfold: Option<PathBuf>,
}

/// The programs that take part.
struct Contest {
    /// `mainstay`; called as `mainstay opm …`.
    ours: PathBuf,
    /// `opm`, where it is at hand.
    theirs: Option<PathBuf>,
    rounds: usize,
    /// Where they may write.
    work: TempDir,
}

/// What is in the archives.
const WHAT: &str = "published catalogs";

/// How often the large catalog holds the certified one.
const TIMES: usize = 4;

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let mut unpacked = Vec::new();
    let given = [&arguments.certified, &arguments.community];
    let mut catalogs = Vec::new();
    for ((archive, below), given) in recorded::CATALOGS.iter().zip(given) {
        catalogs.push(input(given.as_deref(), archive, below, WHAT, &mut unpacked)?);
    }
    let [certified, community] = catalogs.as_slice() else { return Ok(()) };
    if let Some(file) = &arguments.write_fourfold {
        return fourfold::write(certified, file, TIMES);
    }
    let bundles = input(arguments.bundles.as_deref(), "bundles-249", ".", WHAT, &mut unpacked)?;
    let contest = Contest {
        ours: fs::canonicalize(arguments.program.path()?)?,
        theirs: arguments.opm.as_ref().map(fs::canonicalize).transpose().context("finding opm")?,
        rounds: arguments.rounds.max(1),
        work: arguments.program.folder()?,
    };
    println!(
        "Least processor time (user and system) and most memory of {} runs.\n",
        contest.rounds
    );
    contest.catalog("certified", 0, certified)?;
    contest.catalog("community", 1, community)?;
    contest.bundles(&bundles)?;
    if !arguments.skip_fourfold {
        contest.fourfold(certified)?;
    }
    Ok(())
}

/// The folder that was given, or one below that of an archive, which holds `what`.
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

impl Contest {
    /// Everything that is done with one catalog. `which` is its place in what is recorded.
    fn catalog(&self, name: &str, which: usize, folder: &Path) -> Result<()> {
        let (files, bytes) = size(folder)?;
        let libyaml = yardstick::yaml(folder)?;
        println!(
            "The {name} catalog: {files} files, {}; libyaml's events {}.\n",
            megabytes(bytes),
            millis(libyaml)
        );
        let less = recorded::FASTER[which];
        let mut columns = vec![
            "command".to_owned(),
            "processor".to_owned(),
            "× libyaml".to_owned(),
            "opm × libyaml, recorded".to_owned(),
            format!("times less (goal: {less:.0})"),
            "met".to_owned(),
            "memory".to_owned(),
            "of opm's (goal: 0.25)".to_owned(),
            "met".to_owned(),
            "wall".to_owned(),
        ];
        self.name_theirs(&mut columns);
        let mut table = Table::new(&columns.iter().map(String::as_str).collect::<Vec<_>>());
        for work in recorded::WORK {
            let Work { name, arguments, ratio, memory } = work;
            let mut row = vec![(*name).to_owned()];
            let ours = match self.cost(true, arguments, folder) {
                Ok(ours) => ours,
                Err(error) => {
                    row.push(format!("fails: {error:#}"));
                    row.resize(columns.len(), "–".to_owned());
                    table.row(row);
                    continue;
                }
            };
            let multiple = ours.processor.as_secs_f64() / libyaml.as_secs_f64();
            let factor = ratio[which] / multiple;
            let part = in_megabytes(ours.memory) / f64::from(memory[which]);
            row.extend([
                millis(ours.processor),
                format!("{multiple:.2}"),
                format!("{:.1}", ratio[which]),
                format!("{factor:.1}"),
                verdict(factor >= less),
                megabytes(ours.memory),
                format!("{part:.2}"),
                verdict(part * recorded::SMALLER <= 1.0),
                millis(ours.wall),
            ]);
            self.beside(&mut row, ours, arguments, folder)?;
            table.row(row);
        }
        println!("{table}");
        Ok(())
    }

    /// All bundle folders rendered by one call.
    fn bundles(&self, folder: &Path) -> Result<()> {
        let mut found = Vec::new();
        let mut bytes = 0;
        bundle_folders(folder, &mut found, &mut bytes)?;
        ensure!(!found.is_empty(), "no bundle folders below {}", folder.display());
        let mut columns = vec![
            "bundle folders".to_owned(),
            "input".to_owned(),
            "processor".to_owned(),
            "for each MB".to_owned(),
            "opm, recorded".to_owned(),
            "goal".to_owned(),
            "met".to_owned(),
            "memory".to_owned(),
            "wall".to_owned(),
        ];
        self.name_theirs(&mut columns);
        let mut table = Table::new(&columns.iter().map(String::as_str).collect::<Vec<_>>());
        let mut arguments = vec!["render"];
        arguments.extend(found.iter().map(String::as_str));
        let mut row = vec![found.len().to_string(), megabytes(bytes)];
        match self.cost(true, &arguments, folder) {
            Ok(ours) => {
                let each = ours.processor.as_secs_f64() * 1000.0 / in_megabytes(bytes);
                row.extend([
                    millis(ours.processor),
                    format!("{each:.1} ms"),
                    format!("{} ms", recorded::BUNDLES),
                    format!("{} ms", recorded::BUNDLES_GOAL),
                    verdict(each <= recorded::BUNDLES_GOAL),
                    megabytes(ours.memory),
                    millis(ours.wall),
                ]);
                self.beside(&mut row, ours, &arguments, folder)?;
            }
            Err(error) => {
                row.push(format!("fails: {error:#}"));
                row.resize(columns.len(), "–".to_owned());
            }
        }
        table.row(row);
        println!("{table}");
        self.manifests(&found, bytes, folder)
    }

    /// All bundle folders judged by one call, and all rendered to manifests by another. Bundles that are
    /// found wrong, or that cannot be rendered without being configured, count too.
    fn manifests(&self, found: &[String], bytes: u64, folder: &Path) -> Result<()> {
        let mut table =
            Table::new(&["bundles", "processor", "for each MB", "goal", "met", "memory", "wall"]);
        for (what, command) in
            [("judged, one call", "validate"), ("rendered to manifests, one call", "render")]
        {
            let words = ["bundle".to_owned(), command.to_owned()];
            let arguments: Vec<String> = words.into_iter().chain(found.iter().cloned()).collect();
            let run = || child::finish(&self.ours, &arguments, folder).map(|(cost, _)| cost);
            let rounds: Vec<Cost> = (0..self.rounds).map(|_| run()).collect::<Result<_>>()?;
            let cost = Cost::of_rounds(&rounds).context("no rounds")?;
            let each = cost.processor.as_secs_f64() * 1000.0 / in_megabytes(bytes);
            table.row(vec![
                what.to_owned(),
                millis(cost.processor),
                format!("{each:.1} ms"),
                format!("{} ms", recorded::MANIFESTS_GOAL),
                verdict(each <= recorded::MANIFESTS_GOAL),
                megabytes(cost.memory),
                millis(cost.wall),
            ]);
        }
        println!("{table}");
        Ok(())
    }

    /// One large JSON file.
    fn fourfold(&self, certified: &Path) -> Result<()> {
        let folder = self.work.path().join("fourfold");
        fs::create_dir(&folder)?;
        let file = folder.join("catalog.json");
        // What a process of its own needs does not count as ours: see `Cost::memory`.
        let own = std::env::current_exe().context("finding out where this program is")?;
        let written = Command::new(own)
            .args(["catalogs", "--certified"])
            .arg(certified)
            .args(["--community", ".", "--write-fourfold"])
            .arg(&file)
            .status();
        ensure!(written.is_ok_and(|status| status.success()), "writing the large catalog failed");
        let (_, bytes) = size(&folder)?;
        let decoder = yardstick::json(&file)?;
        println!(
            "The certified catalog {TIMES} times over as one JSON file: {}; Python's JSON decoder {}.\n",
            megabytes(bytes),
            millis(decoder)
        );
        let (theirs, memory) = recorded::FOURFOLD;
        let mut columns = vec![
            "command".to_owned(),
            "processor".to_owned(),
            format!("× Python (goal: {})", recorded::FOURFOLD_GOAL),
            "met".to_owned(),
            "opm × Python, recorded".to_owned(),
            "memory".to_owned(),
            "of opm's (goal: 0.25)".to_owned(),
            "met".to_owned(),
            "wall".to_owned(),
        ];
        self.name_theirs(&mut columns);
        let mut table = Table::new(&columns.iter().map(String::as_str).collect::<Vec<_>>());
        for arguments in [&["validate", "{}"] as &[&str], &["render", "{}"]] {
            let mut row = vec![arguments[0].to_owned()];
            match self.cost(true, arguments, &folder) {
                Ok(ours) => {
                    let multiple = ours.processor.as_secs_f64() / decoder.as_secs_f64();
                    let part = in_megabytes(ours.memory) / f64::from(memory);
                    row.extend([
                        millis(ours.processor),
                        format!("{multiple:.2}"),
                        verdict(multiple <= recorded::FOURFOLD_GOAL),
                        format!("{theirs:.0}"),
                        megabytes(ours.memory),
                        format!("{part:.2}"),
                        verdict(part * recorded::SMALLER <= 1.0),
                        millis(ours.wall),
                    ]);
                    self.beside(&mut row, ours, arguments, &folder)?;
                }
                Err(error) => {
                    row.push(format!("fails: {error:#}"));
                    row.resize(columns.len(), "–".to_owned());
                }
            }
            table.row(row);
        }
        println!("{table}");
        fs::remove_dir_all(&folder)?;
        Ok(())
    }

    /// What a command costs; `{}` in its arguments stands for `folder`, `{out}` for a new one.
    fn cost(&self, ours: bool, arguments: &[&str], folder: &Path) -> Result<Cost> {
        let program = if ours { Some(&self.ours) } else { self.theirs.as_ref() };
        let program = program.context("no opm was named")?;
        let out = self.work.path().join("out");
        let arguments: Vec<String> = ours
            .then_some("opm")
            .into_iter()
            .chain(arguments.iter().copied())
            .map(|it| it.replace("{out}", &out.to_string_lossy()))
            .map(|it| it.replace("{}", &folder.to_string_lossy()))
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

    fn name_theirs(&self, columns: &mut Vec<String>) {
        if self.theirs.is_some() {
            columns.extend(
                ["opm: processor", "times less", "opm: memory", "of it", "opm: wall"]
                    .map(str::to_owned),
            );
        }
    }

    /// The same by the real opm, if it takes part.
    fn beside(
        &self,
        row: &mut Vec<String>,
        ours: Cost,
        arguments: &[&str],
        folder: &Path,
    ) -> Result<()> {
        if self.theirs.is_some() {
            let theirs = self.cost(false, arguments, folder).context("opm")?;
            row.extend([
                millis(theirs.processor),
                format!("{:.1}", theirs.processor.as_secs_f64() / ours.processor.as_secs_f64()),
                megabytes(theirs.memory),
                format!("{:.2}", in_megabytes(ours.memory) / in_megabytes(theirs.memory)),
                millis(theirs.wall),
            ]);
        }
        Ok(())
    }
}

fn verdict(met: bool) -> String {
    if met { "yes" } else { "no" }.to_owned()
}

#[expect(
    clippy::cast_precision_loss,
    reason = "sizes of files and processes are far below the precision of a double"
)]
fn in_megabytes(bytes: u64) -> f64 {
    bytes as f64 / 1e6
}

/// How many files there are below a folder, and their bytes.
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

/// The folders that have a folder `manifests`, by path, and the bytes in them.
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
