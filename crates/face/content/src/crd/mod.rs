//! `mainstay crd`: whether CustomResourceDefinitions can be upgraded without harm.
//!
//! ```text
//! diff:  OLD ─► files ─► CRDs ──┐
//!        NEW ─► files ─► CRDs ──┤
//! check: cluster, or --state ───┴─► compare ─► CrdComparison ─► report: text, JSON, YAML, SARIF
//!          └─ stored objects, page by page ─► Evidence ─┘
//! ```

mod files;
mod report;
mod source;

use crate::examples;
use clap::{Args, Subcommand, ValueEnum};
use files::{CrdFile, CrdFiles};
use mainstay_cause::Cause;
use mainstay_command::cluster::{ClusterHandle, ConnectionArguments};
use mainstay_command::exit::{CommandFailure, ExitStatus};
use mainstay_command::io::CommandIo;
use mainstay_command::output::OutputSink;
use mainstay_command::text::escape_controls;
use mainstay_crdsafety::{
    Check, Configuration, Crd, Enforcement, Evidence, Finding, Impact, Usage, compare,
    override_check, preflight_lines,
};
pub(crate) use report::{count_impacts, finding_place, finding_value, shorten};
use source::{SavedState, StoredCrds};
use std::io::Write;

/// Arguments of `crd`.
#[derive(Args, Debug)]
pub struct CrdArguments {
    /// The command.
    #[command(subcommand)]
    pub command: CrdCommand,
}

/// The commands about CRDs.
#[derive(Debug, Subcommand)]
pub enum CrdCommand {
    /// Compare the CustomResourceDefinitions of two files or bundle folders.
    ///
    /// Exit codes: 0 if nothing breaks, 1 if a change breaks stored objects or clients, 2 if a file cannot
    /// be read. CustomResourceDefinitions are matched by their names.
    #[command(after_help = examples::CRD_DIFF)]
    Diff(DiffArguments),
    /// Compare the CustomResourceDefinitions of files with those that are in use, and count the stored
    /// objects that a change concerns.
    ///
    /// Exit codes: 0 if nothing breaks, 1 if a change breaks stored objects or clients, or if the cluster
    /// does not respond, 2 if a file cannot be read. A change that no stored object uses is a warning.
    #[command(after_help = examples::CRD_CHECK)]
    Check(Box<CheckArguments>),
}

/// Arguments of `crd diff`.
#[derive(Args, Debug)]
pub struct DiffArguments {
    /// File (YAML or JSON) or bundle folder with the CustomResourceDefinitions in use.
    old: String,
    /// File or bundle folder with those that replace them.
    new: String,
    #[command(flatten)]
    options: ReportOptions,
}

/// Arguments of `crd check`.
#[derive(Args, Debug)]
#[group(id = "source", required = true, multiple = true, args = ["cluster", "states"])]
pub struct CheckArguments {
    /// Files (YAML or JSON) or bundle folders with the new CustomResourceDefinitions.
    #[arg(required = true, value_name = "FILE")]
    files: Vec<String>,
    /// Read the CustomResourceDefinitions in use and their objects from a cluster.
    #[arg(long, conflicts_with = "states")]
    cluster: bool,
    /// Read them from a saved state instead; `-` reads standard input (repeatable).
    #[arg(long = "state", id = "states", value_name = "FILE", conflicts_with_all = ["kubeconfig", "context"])]
    states: Vec<String>,
    /// The cluster to read.
    #[command(flatten)]
    pub connection: ConnectionArguments,
    #[command(flatten)]
    options: ReportOptions,
}

/// What is reported, and how.
#[derive(Args, Debug)]
struct ReportOptions {
    /// Treat the findings of a check as nothing, as warnings or as errors (repeatable).
    #[arg(long = "override", value_name = "CHECK=none|warn|error", value_parser = parse_override)]
    overrides: Vec<(Check, Enforcement)>,
    /// Output format; SARIF 2.1.0 is for code scanners.
    #[arg(short, long, value_enum, value_name = "FORMAT", default_value_t = Output::Text)]
    output: Output,
}

/// Formats of reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Output {
    Text,
    Json,
    Yaml,
    Sarif,
}

/// Reads `CHECK=none|warn|error`.
fn parse_override(text: &str) -> Result<(Check, Enforcement), Cause> {
    let form = "write it as CHECK=none, CHECK=warn or CHECK=error, such as default=warn";
    let (check, enforcement) =
        text.split_once('=').ok_or_else(|| Cause::new("there is no `=`").remedy(form))?;
    let check: Check = check.parse().map_err(|error| Cause::new(format!("{error}")))?;
    let enforcement = match enforcement {
        "none" => Enforcement::None,
        "warn" => Enforcement::Warn,
        "error" => Enforcement::Error,
        other => return Err(Cause::new(format!("there is no {other:?}")).remedy(form)),
    };
    Ok((check, enforcement))
}

/// The comparison of one CRD.
struct CrdComparison<'f> {
    new: &'f CrdFile,
    findings: Vec<Finding>,
    /// The line of each finding in the new file.
    lines: Vec<usize>,
    /// What stored objects say about each finding.
    usages: Vec<Option<Usage>>,
    /// Why nothing is known about stored objects.
    note: Option<String>,
    /// The lines with which operator-controller refuses the upgrade.
    refusal: Vec<String>,
}

/// All comparisons, and the CRDs that only one side has.
#[derive(Default)]
struct Comparisons<'f> {
    compared: Vec<CrdComparison<'f>>,
    only_old: Vec<String>,
    only_new: Vec<String>,
    /// Whether objects were looked at.
    has_evidence: bool,
}

impl Comparisons<'_> {
    /// The number of findings with an impact.
    fn count(&self, impact: Impact) -> usize {
        self.compared.iter().map(|comparison| comparison.count(impact)).sum()
    }
}

/// A finding with what is known about it.
#[derive(Clone, Copy)]
struct ReportedFinding<'c> {
    finding: &'c Finding,
    line: usize,
    usage: Option<&'c Usage>,
}

impl CrdComparison<'_> {
    /// The findings in their order.
    fn reported(&self) -> impl Iterator<Item = ReportedFinding<'_>> {
        let known = self.lines.iter().zip(&self.usages);
        self.findings.iter().zip(known).map(|(finding, (line, usage))| ReportedFinding {
            finding,
            line: *line,
            usage: usage.as_ref(),
        })
    }

    fn count(&self, impact: Impact) -> usize {
        self.findings.iter().filter(|finding| finding.impact == impact).count()
    }
}

/// Runs the command.
pub async fn run<C: ClusterHandle>(
    arguments: &CrdArguments,
    io: &mut CommandIo<'_>,
    connect: impl AsyncFnOnce() -> Result<C, CommandFailure>,
) -> ExitStatus {
    let printed = match &arguments.command {
        CrdCommand::Diff(arguments) => diff(arguments, io),
        CrdCommand::Check(arguments) => check(arguments, io, connect).await,
    };
    let (text, exit) = match printed {
        Ok(printed) => printed,
        Err(CommandFailure { exit, cause }) => {
            let _ = write!(io.stderr, "error: {}", cause.render());
            return exit;
        }
    };
    let mut stdout = OutputSink::new(&mut *io.stdout);
    let written = stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush());
    if let (Err(error), Some(_)) = (written, stdout.error()) {
        let _ = writeln!(io.stderr, "error: the report cannot be written: {error}");
        return ExitStatus::Failed;
    }
    exit
}

/// A report and the exit code.
type Printed = Result<(String, ExitStatus), CommandFailure>;

fn diff(arguments: &DiffArguments, io: &mut CommandIo<'_>) -> Printed {
    let old = CrdFiles::read(io, std::slice::from_ref(&arguments.old))?;
    let new = CrdFiles::read(io, std::slice::from_ref(&arguments.new))?;
    let mut all = Comparisons::default();
    for (name, new) in new.by_name() {
        match old.get(name) {
            Some(old) => all.compared.push(compare_crd(&old.crd, new)?),
            None => all.only_new.push(name.to_owned()),
        }
    }
    let is_gone = |name: &&str| new.get(name).is_none();
    all.only_old = old.by_name().map(|(name, _)| name).filter(is_gone).map(str::to_owned).collect();
    if all.compared.is_empty() {
        let message = format!(
            "no CustomResourceDefinition is in both: {} has {}, {} has {}",
            arguments.old,
            all.only_old.join(", "),
            arguments.new,
            all.only_new.join(", ")
        );
        let cause = Cause::new(escape_controls(&message));
        let remedy = "name two versions of the same CustomResourceDefinition";
        return Err(CommandFailure::usage(cause.remedy(remedy)));
    }
    Ok(finish(all, &arguments.options, io))
}

async fn check<C: ClusterHandle>(
    arguments: &CheckArguments,
    io: &mut CommandIo<'_>,
    connect: impl AsyncFnOnce() -> Result<C, CommandFailure>,
) -> Printed {
    let files = CrdFiles::read(io, &arguments.files)?;
    let stored = if arguments.states.is_empty() {
        StoredCrds::Cluster(connect().await?)
    } else {
        StoredCrds::Saved(SavedState::read(io, &arguments.states)?)
    };
    let mut all = Comparisons { has_evidence: true, ..Comparisons::default() };
    for (name, new) in files.by_name() {
        let Some(old) = stored.crd(name).await? else {
            all.only_new.push(name.to_owned());
            continue;
        };
        let mut comparison = compare_crd(&old.crd, new)?;
        for version in old.crd.served_versions() {
            let mut evidence = Evidence::new(&comparison.findings, version, &new.crd);
            if evidence.is_empty() {
                continue;
            }
            match stored.count(&old, version, &mut evidence).await {
                Ok(()) => comparison.weigh(&evidence),
                Err(why) => comparison.note = Some(why),
            }
        }
        for (check, enforcement) in &arguments.options.overrides {
            comparison.enforce(*check, *enforcement);
        }
        all.compared.push(comparison);
    }
    Ok(finish(all, &arguments.options, io))
}

fn compare_crd<'f>(old: &Crd, new: &'f CrdFile) -> Result<CrdComparison<'f>, CommandFailure> {
    let findings = compare(old, &new.crd, &Configuration::operator_controller());
    let findings = findings.map_err(|error| {
        let cause = Cause::new(escape_controls(&error.to_string())).at(new.place());
        CommandFailure::usage(cause.remedy("give the version a schema, on both sides"))
    })?;
    let usages = findings.iter().map(|_| None).collect();
    let lines = new.lines_of(&findings);
    let refusal = preflight_lines(&findings);
    Ok(CrdComparison { new, findings, lines, usages, note: None, refusal })
}

impl CrdComparison<'_> {
    /// Adds what stored objects say.
    fn weigh(&mut self, evidence: &Evidence) {
        for (at, finding) in self.findings.iter_mut().enumerate() {
            if let Some(usage) = evidence.usage(at) {
                finding.weigh(&usage);
                self.usages[at] = Some(usage);
            }
        }
    }

    /// Overrides a check. Lines and usages stay beside their findings.
    fn enforce(&mut self, check: Check, enforcement: Enforcement) {
        if enforcement == Enforcement::None {
            let is_kept: Vec<bool> =
                self.findings.iter().map(|finding| finding.check != check).collect();
            let mut kept = is_kept.iter();
            self.lines.retain(|_| kept.next() != Some(&false));
            let mut kept = is_kept.iter();
            self.usages.retain(|_| kept.next() != Some(&false));
        }
        override_check(&mut self.findings, check, enforcement);
    }
}

fn finish(
    mut all: Comparisons<'_>,
    options: &ReportOptions,
    io: &CommandIo<'_>,
) -> (String, ExitStatus) {
    if !all.has_evidence {
        for comparison in &mut all.compared {
            for (check, enforcement) in &options.overrides {
                comparison.enforce(*check, *enforcement);
            }
        }
    }
    let text = match options.output {
        Output::Text => report::text(&all, io.colour),
        Output::Json => format!("{:#}\n", report::value(&all)),
        Output::Yaml => mainstay_yaml::to_string(&report::value(&all)),
        Output::Sarif => format!("{:#}\n", report::sarif(&all, &io.folder)),
    };
    let breaks = all.count(Impact::Breaking) > 0;
    (text, if breaks { ExitStatus::Failed } else { ExitStatus::Done })
}
