//! The replay: runs cases in parallel, and reports their differences.

use super::calls::replay;
use super::case::{Case, Row};
use super::compare;
use super::differences::ExpectedDifferences;
use super::message;
use super::working_folder::{self, Archives, WorkingFolder};
use anyhow::Context;
use mainstay_catalog::{Catalog, LoadOptions};
use mainstay_clock::Clock;
use mainstay_opm::{self as opm, CommandIo};
use mainstay_registry::{RegistryIndex, ServedCatalog, grpc};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::SystemTime;

/// The result of a case, or of one of its calls or inputs.
#[derive(Clone, Debug)]
pub struct CaseResult {
    /// The case's folder; for a call or input, followed by a colon and that.
    pub name: String,
    /// Its area.
    pub area: String,
    /// The rule that the case tests.
    pub rule: String,
    /// The differences; empty if there are none.
    pub differences: Vec<String>,
}

/// Runs and compares all cases, one per thread at a time.
///
/// # Errors
///
/// A case cannot be set up.
pub fn run_cases(cases: &[Case], archives: &Archives) -> anyhow::Result<Vec<CaseResult>> {
    // Large cases first, so that none of them runs alone at the end.
    let mut parts: Vec<(usize, Option<&Row>)> = Vec::new();
    for (at, case) in cases.iter().enumerate() {
        if case.rows.is_empty() {
            parts.push((at, None));
        } else {
            parts.extend(case.rows.iter().map(|row| (at, Some(row))));
        }
    }
    parts.sort_by_key(|(at, row)| (cases[*at].needs.is_none(), row.is_some()));
    let next = AtomicUsize::new(0);
    let worker = || -> anyhow::Result<Vec<CaseResult>> {
        let mut results = Vec::new();
        loop {
            let part = next.fetch_add(1, Ordering::Relaxed);
            let Some(&(at, part)) = parts.get(part) else { return Ok(results) };
            let case = &cases[at];
            let comparisons = match part {
                None if case.calls.is_some() => replay_calls(case, archives),
                None => run_command(case, archives)
                    .map(|comparisons| vec![(String::new(), comparisons)]),
                Some(part) => run_row(case, part, archives).map(|comparisons| vec![comparisons]),
            };
            for (part, differences) in comparisons.with_context(|| case.name.clone())? {
                let colon = if part.is_empty() { "" } else { ":" };
                results.push(CaseResult {
                    name: format!("{}{colon}{part}", case.name),
                    area: case.area.clone(),
                    rule: case.rule.clone(),
                    differences,
                });
            }
        }
    };
    let threads = std::thread::available_parallelism().map_or(2, usize::from);
    let mut all = std::thread::scope(|scope| {
        let running: Vec<_> = (0..threads).map(|_| scope.spawn(worker)).collect();
        let mut all = Vec::new();
        for thread in running {
            match thread.join() {
                Ok(results) => all.extend(results?),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        anyhow::Ok(all)
    })?;
    all.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(all)
}

/// The result of a command line.
struct CommandOutput {
    exit: i64,
    stdout: Vec<u8>,
    stderr: String,
}

fn run(
    arguments: &[String],
    case: &Case,
    archives: &Archives,
    root: &Path,
) -> anyhow::Result<CommandOutput> {
    let (mut stdout, mut stderr) = (Vec::new(), Vec::new());
    let environment = |name: &str| archives.variable(case, name);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let code = runtime.block_on(opm::run(
        arguments,
        &mut CommandIo {
            stdin: &mut case.input.as_bytes(),
            stdout: &mut stdout,
            stderr: &mut stderr,
            folder: root.to_owned(),
            alpha: case.alpha,
            terminal: false,
            clock: Clock::system(),
            environment: &environment,
        },
    ));
    let stderr = String::from_utf8_lossy(&stderr).into_owned();
    Ok(CommandOutput { exit: i64::from(code), stdout, stderr })
}

/// Runs the command line of a case.
fn run_command(case: &Case, archives: &Archives) -> anyhow::Result<Vec<String>> {
    let folder = WorkingFolder::of(case, archives)?;
    let name = folder.root.to_string_lossy().into_owned();
    let argument = |argument: &String| archives.fill_registry(&argument.replace("{case}", &name));
    let arguments: Vec<String> = case.arguments.iter().map(argument).collect();
    let before = folder.files()?;
    let CommandOutput { exit, stdout, stderr } = run(&arguments, case, archives, &folder.root)?;
    let recorded = |text: &str| archives.mask_registry(&text.replace(&name, "{case}"));

    let mut differences = Vec::new();
    // Where upstream panics, ours reports an error.
    if !case.messages.is_empty()
        && case.messages.iter().all(|message| message.starts_with("panic: "))
    {
        if exit != 1 || message::extract(&stderr).is_none() {
            differences.push(format!("exit: recorded a crash, ours {exit} and no error"));
        }
        return Ok(differences);
    }
    if !case.exits.contains(&exit) {
        differences.push(format!("exit: recorded {:?}, ours {exit}", case.exits));
    }
    if let Some(digest) = &case.digest {
        differences.extend(compare::digest(digest, &stdout).map(|what| format!("output: {what}")));
    } else {
        let stdout = recorded(&String::from_utf8_lossy(&stdout));
        differences.extend(compare::output(case, &stdout).map(|what| format!("output: {what}")));
    }
    differences.extend(compare::error(&case.messages, &recorded(&stderr)));
    if let Some(recorded) = &case.written {
        let output_folder = folder.root.join(case.arguments.get(2).map_or("", String::as_str));
        let written = working_folder::files(&output_folder)?;
        std::fs::remove_dir_all(&output_folder)?;
        let ours = written.iter().map(|(path, bytes)| (path.clone(), compare::sha256(bytes)));
        differences.extend(compare::files(recorded, &ours.collect()));
    } else {
        let mut written = folder.files()?;
        written.retain(|path, bytes| before.get(path) != Some(bytes));
        for bytes in written.values_mut() {
            if let Ok(text) = std::str::from_utf8(bytes) {
                *bytes = archives.mask_registry(text).into_bytes();
            }
        }
        let out = case.folder.join("out");
        let mut recorded =
            if out.is_dir() { working_folder::files(&out)? } else { BTreeMap::new() };
        // Upstream modifies a database that it only has to read; ours does not.
        recorded.retain(|path, _| !path.ends_with(".db.rows"));
        differences.extend(compare::files(&recorded, &written));
    }
    Ok(differences)
}

/// Runs the command line of a case on one of its many inputs.
fn run_row(case: &Case, row: &Row, archives: &Archives) -> anyhow::Result<(String, Vec<String>)> {
    let folder = WorkingFolder::of(case, archives)?;
    let command = case.arguments.iter().filter(|argument| !argument.starts_with('{'));
    let arguments: Vec<String> = command.chain(&row.arguments).cloned().collect();
    let CommandOutput { exit, stdout, stderr } = run(&arguments, case, archives, &folder.root)?;
    let mut differences = Vec::new();
    if row.exit != exit {
        differences.push(format!("exit: recorded {}, ours {exit}", row.exit));
    }
    let digest = row.digest.as_ref().and_then(|digest| compare::digest(digest, &stdout));
    differences.extend(digest.map(|what| format!("output: {what}")));
    differences.extend(compare::error(row.message.as_slice(), &stderr));
    Ok((row.arguments.join(","), differences))
}

/// Replays the calls of a case against a server of its catalog.
fn replay_calls(case: &Case, archives: &Archives) -> anyhow::Result<Vec<(String, Vec<String>)>> {
    let folder = WorkingFolder::of(case, archives)?;
    let catalog = Catalog::load(&folder.root.join("input"), &LoadOptions::default())?;
    let served = Arc::new(ServedCatalog::new("recorded"));
    served.put(Arc::new(RegistryIndex::new(catalog, SystemTime::UNIX_EPOCH)));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let recording = case.calls.as_deref().unwrap_or_default();
    runtime.block_on(replay(recording, &grpc::service(served)))
}

/// The report: the unexpected differences, at most `limit` cases, and the score of each area. Also
/// whether no case differs unexpectedly.
pub fn report(
    results: &[CaseResult],
    expected_differences: &ExpectedDifferences,
    limit: usize,
) -> (String, bool) {
    let mut text = String::new();
    let mut areas: BTreeMap<&str, [usize; 4]> = BTreeMap::new();
    let mut unexpected = 0;
    for CaseResult { name, area, rule, differences } in results {
        let [agreeing, excused, known, all] = areas.entry(area).or_default();
        *all += 1;
        if differences.is_empty() {
            *agreeing += 1;
        } else if let Some(expected) = expected_differences.is_expected(name) {
            *(if expected { excused } else { known }) += 1;
        } else {
            unexpected += 1;
            if unexpected <= limit {
                text = text + name + " (" + rule + ")\n  " + &differences.join("\n  ") + "\n";
            }
        }
    }
    for (area, [agreeing, excused, known, all]) in areas {
        let line = format!(
            "{area:<12} {agreeing:>5} of {all:>5} agree, {excused} wanted differences, {known} open\n"
        );
        text += &line;
    }
    (text, unexpected == 0)
}
