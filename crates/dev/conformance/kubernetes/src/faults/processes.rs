//! Parallel processes: a fault is seeded for a whole process, so each share of the faults gets its
//! own.

use super::report::Detection;
use anyhow::{Context, bail};
use std::path::Path;
use std::process::Stdio;
use tokio::process::Command;

/// Runs this program with these arguments for some faults, and returns the result of each, by name.
///
/// # Errors
///
/// The program cannot be started, fails, or prints something else.
pub async fn detect(
    home: &Path,
    arguments: Vec<String>,
) -> anyhow::Result<Vec<(String, Detection)>> {
    let program = std::env::current_exe().context("find this program")?;
    let what = || format!("run {} {}", program.display(), arguments.join(" "));
    let mut command = Command::new(&program);
    command.arg("--home").arg(home).args(&arguments);
    command.stdin(Stdio::null()).stderr(Stdio::inherit()).kill_on_drop(true);
    let output = command.output().await.with_context(what)?;
    if !output.status.success() {
        bail!("{}: {}", what(), output.status);
    }
    let text = String::from_utf8(output.stdout).with_context(what)?;
    let detections = text.lines().map(|line| serde_json::from_str(line).with_context(what));
    detections.collect()
}
