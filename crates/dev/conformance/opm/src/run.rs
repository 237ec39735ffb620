//! Runs cases and says how they compare.

use super::calls::replay;
use super::case::{Case, Row};
use super::compare;
use super::listed::Listed;
use super::message;
use super::place::{self, Archives, Place};
use anyhow::Context;
use mainstay_catalog::{Catalog, LoadOptions};
use mainstay_clock::Clock;
use mainstay_opm::{self as opm, Io};
use mainstay_registry::{Index, Served, grpc};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::SystemTime;

/// How a case compares, or one of the calls or inputs that a case stands for.
#[derive(Clone, Debug)]
pub struct Judged {
    /// The case's folder; a colon and the call or input behind it.
    pub name: String,
    /// Its area.
    pub area: String,
    /// The rule it probes.
    pub why: String,
    /// What is different; empty if it agrees.
    pub differences: Vec<String>,
}

/// Runs all cases, several at a time, and compares them.
///
/// # Errors
///
/// A case that cannot be set up.
pub fn judge(cases: &[Case], archives: &Archives) -> anyhow::Result<Vec<Judged>> {
    // The large ones first, so that no thread is left with one at the end.
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
    let worker = || -> anyhow::Result<Vec<Judged>> {
        let mut judged = Vec::new();
        loop {
            let part = next.fetch_add(1, Ordering::Relaxed);
            let Some(&(at, part)) = parts.get(part) else { return Ok(judged) };
            let case = &cases[at];
            let found = match part {
                None if case.calls.is_some() => calls(case, archives),
                None => whole(case, archives).map(|found| vec![(String::new(), found)]),
                Some(part) => row(case, part, archives).map(|found| vec![found]),
            };
            for (part, differences) in found.with_context(|| case.name.clone())? {
                let colon = if part.is_empty() { "" } else { ":" };
                judged.push(Judged {
                    name: format!("{}{colon}{part}", case.name),
                    area: case.area.clone(),
                    why: case.why.clone(),
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
                Ok(judged) => all.extend(judged?),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        anyhow::Ok(all)
    })?;
    all.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(all)
}

/// What a command line did.
struct Done {
    exit: i64,
    stdout: Vec<u8>,
    stderr: String,
}

fn run(
    arguments: &[String],
    case: &Case,
    archives: &Archives,
    root: &Path,
) -> anyhow::Result<Done> {
    let (mut stdout, mut stderr) = (Vec::new(), Vec::new());
    let environment = |name: &str| archives.variable(case, name);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let code = runtime.block_on(opm::run(
        arguments,
        &mut Io {
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
    Ok(Done { exit: i64::from(code), stdout, stderr })
}

/// Runs the command line of a case.
fn whole(case: &Case, archives: &Archives) -> anyhow::Result<Vec<String>> {
    let place = Place::of(case, archives)?;
    let name = place.root.to_string_lossy().into_owned();
    let argument = |argument: &String| archives.named(&argument.replace("{case}", &name));
    let arguments: Vec<String> = case.arguments.iter().map(argument).collect();
    let before = place.files()?;
    let Done { exit, stdout, stderr } = run(&arguments, case, archives, &place.root)?;
    let recorded = |text: &str| archives.unnamed(&text.replace(&name, "{case}"));

    let mut differences = Vec::new();
    // Where upstream crashes, ours says what is wrong.
    if !case.messages.is_empty()
        && case.messages.iter().all(|message| message.starts_with("panic: "))
    {
        if exit != 1 || message::of(&stderr).is_none() {
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
        let folder = place.root.join(case.arguments.get(2).map_or("", String::as_str));
        let written = place::files(&folder)?;
        std::fs::remove_dir_all(&folder)?;
        let ours = written.iter().map(|(path, bytes)| (path.clone(), compare::sha256(bytes)));
        differences.extend(compare::files(recorded, &ours.collect()));
    } else {
        let mut written = place.files()?;
        written.retain(|path, bytes| before.get(path) != Some(bytes));
        for bytes in written.values_mut() {
            if let Ok(text) = std::str::from_utf8(bytes) {
                *bytes = archives.unnamed(text).into_bytes();
            }
        }
        let out = case.folder.join("out");
        let mut recorded = if out.is_dir() { place::files(&out)? } else { BTreeMap::new() };
        // What upstream leaves in a database that it was asked to read: ours leaves it as it is.
        recorded.retain(|path, _| !path.ends_with(".db.rows"));
        differences.extend(compare::files(&recorded, &written));
    }
    Ok(differences)
}

/// Runs the command line of a case on one of its many inputs.
fn row(case: &Case, row: &Row, archives: &Archives) -> anyhow::Result<(String, Vec<String>)> {
    let place = Place::of(case, archives)?;
    let command = case.arguments.iter().filter(|argument| !argument.starts_with('{'));
    let arguments: Vec<String> = command.chain(&row.arguments).cloned().collect();
    let Done { exit, stdout, stderr } = run(&arguments, case, archives, &place.root)?;
    let mut differences = Vec::new();
    if row.exit != exit {
        differences.push(format!("exit: recorded {}, ours {exit}", row.exit));
    }
    let digest = row.digest.as_ref().and_then(|digest| compare::digest(digest, &stdout));
    differences.extend(digest.map(|what| format!("output: {what}")));
    differences.extend(compare::error(row.message.as_slice(), &stderr));
    Ok((row.arguments.join(","), differences))
}

/// Makes the calls of a case to a server of its catalog.
fn calls(case: &Case, archives: &Archives) -> anyhow::Result<Vec<(String, Vec<String>)>> {
    let place = Place::of(case, archives)?;
    let catalog = Catalog::load(&place.root.join("input"), &LoadOptions::default())?;
    let served = Arc::new(Served::new("recorded"));
    served.put(Arc::new(Index::new(catalog, SystemTime::UNIX_EPOCH)));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let recording = case.calls.as_deref().unwrap_or_default();
    runtime.block_on(replay(recording, &grpc::service(served)))
}

/// A line for each case that differs and is not listed, and the score of each area; and whether
/// everything is as it shall be.
pub fn report(judged: &[Judged], listed: &Listed, most: usize) -> (String, bool) {
    let mut text = String::new();
    let mut areas: BTreeMap<&str, [usize; 4]> = BTreeMap::new();
    let mut bad = 0;
    for Judged { name, area, why, differences } in judged {
        let [agree, excused, open, all] = areas.entry(area).or_default();
        *all += 1;
        if differences.is_empty() {
            *agree += 1;
        } else if let Some(wanted) = listed.has(name) {
            *(if wanted { excused } else { open }) += 1;
        } else {
            bad += 1;
            if bad <= most {
                text = text + name + " (" + why + ")\n  " + &differences.join("\n  ") + "\n";
            }
        }
    }
    for (area, [agree, excused, open, all]) in areas {
        let line = format!(
            "{area:<12} {agree:>5} of {all:>5} agree, {excused} wanted differences, {open} open\n"
        );
        text += &line;
    }
    (text, bad == 0)
}
