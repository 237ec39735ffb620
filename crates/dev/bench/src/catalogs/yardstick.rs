//! Yardsticks: the time of other parsers for the same bytes, which makes figures of different
//! machines comparable.
//!
//! Both are C libraries used from Python: libyaml's events, counted and dropped, and the JSON
//! decoder of the standard library, which builds all values. The start of the interpreter is
//! excluded, and for libyaml the reading of the files; the best of three runs counts.

use anyhow::{Context, Result, bail};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

const YAML: &str = "
import os, sys, time, yaml
texts = []
for folder, _, names in os.walk(sys.argv[1]):
    for name in names:
        with open(os.path.join(folder, name), 'rb') as file:
            texts.append(file.read())
best = None
for _ in range(3):
    start = time.process_time()
    for text in texts:
        count = 0
        for _ in yaml.parse(text, Loader=yaml.CSafeLoader):
            count += 1
    used = time.process_time() - start
    best = used if best is None else min(best, used)
print(best)
";

const JSON: &str = "
import json, sys, time
start = time.process_time()
with open(sys.argv[1], 'rb') as file:
    text = file.read().decode()
decoder, values, at = json.JSONDecoder(), [], 0
while at < len(text):
    value, at = decoder.raw_decode(text, at)
    values.append(value)
    while at < len(text) and text[at] in ' \\n':
        at += 1
print(time.process_time() - start)
";

/// Processor time of libyaml's event parser over all files of a folder.
///
/// # Errors
/// Python, or its module `yaml` with libyaml, is missing.
pub(super) fn yaml(folder: &Path) -> Result<Duration> {
    python(YAML, folder).context("measuring libyaml (python3 with the module yaml over libyaml)")
}

/// Processor time of Python's JSON decoder over a file of JSON values. Every run is the first in
/// its process: already allocated memory would halve the time, and no program under test has any.
///
/// # Errors
/// Python is missing.
pub(super) fn json(file: &Path) -> Result<Duration> {
    let mut best = Duration::MAX;
    for _ in 0..3 {
        let once = python(JSON, file).context("measuring Python's JSON decoder")?;
        best = best.min(once);
    }
    Ok(best)
}

fn python(script: &str, argument: &Path) -> Result<Duration> {
    let mut command = Command::new("python3");
    command.arg("-c").arg(script).arg(argument).stdin(Stdio::null());
    let output = command.output().context("running python3")?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        bail!("{}: {}", output.status, said.lines().last().unwrap_or_default());
    }
    let seconds = String::from_utf8_lossy(&output.stdout);
    let seconds = seconds.trim().parse().with_context(|| format!("reading {seconds:?}"))?;
    Ok(Duration::from_secs_f64(seconds))
}
