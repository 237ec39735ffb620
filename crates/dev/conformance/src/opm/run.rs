//! Runs cases and says how they compare.

use super::case::{self, Case};
use super::listed::Listed;
use super::{compare, message};
use anyhow::Context;
use mainstay_cli::opm::{self, Io};
use mainstay_clock::Clock;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

/// How a case compares.
#[derive(Clone, Debug)]
pub struct Judged {
    /// The case's folder.
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
pub fn judge(cases: &[Case]) -> anyhow::Result<Vec<Judged>> {
    let next = AtomicUsize::new(0);
    let worker = || -> anyhow::Result<Vec<(usize, Judged)>> {
        let mut judged = Vec::new();
        loop {
            let at = next.fetch_add(1, Ordering::Relaxed);
            let Some(case) = cases.get(at) else { return Ok(judged) };
            judged.push((at, one(case).with_context(|| case.name.clone())?));
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
    all.sort_by_key(|(at, _)| *at);
    Ok(all.into_iter().map(|(_, judged)| judged).collect())
}

fn one(case: &Case) -> anyhow::Result<Judged> {
    let copy = tempfile::tempdir()?;
    let root = fs::canonicalize(copy.path())?;
    for entry in fs::read_dir(&case.folder)? {
        let entry = entry?;
        if case::is_input(&entry.file_name().to_string_lossy()) {
            copy_to(&entry.path(), &root.join(entry.file_name()))?;
        }
    }
    let place = root.to_string_lossy().into_owned();
    let arguments: Vec<String> =
        case.arguments.iter().map(|argument| argument.replace("{case}", &place)).collect();
    let before = files(&root)?;
    let (mut stdout, mut stderr) = (Vec::new(), Vec::new());
    let code = opm::run(
        &arguments,
        &mut Io {
            stdout: &mut stdout,
            stderr: &mut stderr,
            folder: root.clone(),
            alpha: case.alpha,
            terminal: false,
            clock: Clock::system(),
        },
    );
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).replace(&place, "{case}");
    let (stdout, stderr) = (text(&stdout), text(&stderr));

    let mut differences = Vec::new();
    if !case.exits.contains(&i64::from(code)) {
        differences.push(format!("exit: recorded {:?}, ours {code}", case.exits));
    }
    differences.extend(compare::output(case, &stdout).map(|what| format!("output: {what}")));
    let ours = message::of(&stderr);
    let agrees = match &ours {
        None => case.messages.is_empty(),
        Some(ours) => case
            .messages
            .iter()
            .any(|it| it == ours || message::sorted(it) == message::sorted(ours)),
    };
    if !agrees {
        let recorded = case.messages.first().map_or("(none)", String::as_str);
        let ours = ours.as_deref().unwrap_or("(none)");
        differences.push(format!("error: {}", compare::difference(recorded, ours)));
    }
    let mut written = files(&root)?;
    written.retain(|path, bytes| before.get(path) != Some(bytes));
    let out = case.folder.join("out");
    let recorded = if out.is_dir() { files(&out)? } else { BTreeMap::new() };
    if written != recorded {
        let names = |files: &BTreeMap<String, Vec<u8>>| files.keys().cloned().collect::<Vec<_>>();
        let (recorded, ours) = (names(&recorded), names(&written));
        differences.push(format!("files: recorded {recorded:?}, ours {ours:?}, or their content"));
    }
    let Case { name, area, why, .. } = case.clone();
    Ok(Judged { name, area, why, differences })
}

fn copy_to(from: &Path, to: &Path) -> anyhow::Result<()> {
    let kind = fs::symlink_metadata(from)?.file_type();
    if kind.is_symlink() {
        std::os::unix::fs::symlink(fs::read_link(from)?, to)?;
    } else if kind.is_dir() {
        fs::create_dir(to)?;
        for entry in fs::read_dir(from)? {
            let entry = entry?;
            copy_to(&entry.path(), &to.join(entry.file_name()))?;
        }
    } else {
        fs::copy(from, to)?;
    }
    Ok(())
}

/// All files below a folder, by their path.
fn files(root: &Path) -> anyhow::Result<BTreeMap<String, Vec<u8>>> {
    let mut found = BTreeMap::new();
    let mut folders = vec![root.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder)? {
            let path = entry?.path();
            let kind = fs::symlink_metadata(&path)?.file_type();
            if kind.is_dir() {
                folders.push(path);
            } else if kind.is_file() {
                let name = path.strip_prefix(root)?.to_string_lossy().into_owned();
                found.insert(name, fs::read(&path)?);
            }
        }
    }
    Ok(found)
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
