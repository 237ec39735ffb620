//! Faults in operators and their content: test programs are built with all faults, and started with
//! one.

use super::list::{Detector, SeededFault, TestName};
use super::report::Detection;
use anyhow::{Context, bail};
use futures::StreamExt;
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;
use tokio::process::Command;

/// The number of tests that run at the same time.
const CONCURRENCY: usize = 2;
/// The timeout of a test. A test that passes without the fault and times out with it has detected
/// it.
const TEST_TIMEOUT: Duration = Duration::from_mins(2);
/// The variable from which a test program reads its fault (`mainstay_fault`).
const FAULT_VARIABLE: &str = "MAINSTAY_FAULT";

/// A test program.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Program {
    executable: PathBuf,
    /// The folder of its package, the working folder of tests.
    folder: PathBuf,
}

/// Test programs by package and name.
#[derive(Debug, Default)]
pub struct Suites {
    programs: BTreeMap<(String, String), Program>,
    /// Tests that cannot be used, with the reason.
    invalid_tests: BTreeMap<TestName, String>,
}

/// A message of cargo, as far as it describes test programs.
#[derive(Deserialize)]
struct Message {
    reason: String,
    package_id: Option<String>,
    manifest_path: Option<PathBuf>,
    target: Option<Target>,
    executable: Option<PathBuf>,
}

#[derive(Deserialize)]
struct Target {
    name: String,
    kind: Vec<String>,
}

/// The result of a test.
#[derive(Clone, Debug, PartialEq, Eq)]
enum TestEnd {
    Passed,
    Failed,
    TimedOut,
    /// So many tests have the name, instead of one.
    Matches(usize),
}

impl Suites {
    /// Builds the test programs as `cargo test --workspace` does, so that nothing is compiled
    /// twice. They contain all faults.
    ///
    /// # Errors
    ///
    /// The build fails.
    pub async fn build() -> anyhow::Result<Self> {
        let mut cargo = Command::new("cargo");
        cargo.args(["test", "--workspace", "--no-run", "--locked", "--message-format=json"]);
        let built = cargo.stdin(Stdio::null()).stderr(Stdio::inherit()).output().await;
        let built = built.context("run cargo")?;
        if !built.status.success() {
            bail!("the test programs cannot be built");
        }
        Ok(Self { programs: programs(&built.stdout)?, invalid_tests: BTreeMap::new() })
    }

    /// Runs the listed tests of these faults without a fault.
    pub async fn prepare(&mut self, faults: &[&SeededFault]) {
        let names: BTreeSet<&TestName> = tests(faults).collect();
        let this = &*self;
        let judge = |name| async move { (name, this.run(name, None).await) };
        let ends: Vec<_> =
            futures::stream::iter(names).map(judge).buffered(CONCURRENCY).collect().await;
        for (name, end) in ends {
            let why = match end {
                Ok(TestEnd::Passed) => continue,
                Ok(TestEnd::Failed) => format!("{name} fails without it"),
                Ok(TestEnd::TimedOut) => format!("{name} takes too long without it"),
                Ok(TestEnd::Matches(number)) => format!("{number} tests are called {name}"),
                Err(why) => format!("{why:#}"),
            };
            self.invalid_tests.insert(name.clone(), why);
        }
    }

    /// Detects faults; `report_fault` is called for each, in order.
    pub async fn detect(
        &self,
        faults: &[&SeededFault],
        mut report_fault: impl FnMut(&SeededFault, Detection),
    ) {
        let detect_fault = |fault| async move { (fault, self.detect_one(fault).await) };
        let mut detections =
            futures::stream::iter(faults.iter().copied()).map(detect_fault).buffered(CONCURRENCY);
        while let Some((fault, detection)) = detections.next().await {
            report_fault(fault, detection);
        }
    }

    async fn detect_one(&self, fault: &SeededFault) -> Detection {
        let Detector::Test(name) = &fault.detected_by else {
            return Detection::Invalid(format!("{} is no test", fault.detected_by));
        };
        if let Some(why) = self.invalid_tests.get(name) {
            return Detection::Invalid(why.clone());
        }
        let mut timed_out = false;
        for _ in 0..2 {
            match self.run(name, Some(&fault.name)).await {
                Ok(TestEnd::Failed) => {}
                Ok(TestEnd::TimedOut) => timed_out = true,
                Ok(TestEnd::Passed | TestEnd::Matches(_)) => return Detection::Undetected,
                Err(why) => return Detection::Invalid(format!("{why:#}")),
            }
        }
        Detection::Detected(if timed_out {
            format!("{name}, which took too long")
        } else {
            name.to_string()
        })
    }

    async fn run(&self, name: &TestName, fault: Option<&str>) -> anyhow::Result<TestEnd> {
        let key = (name.package.clone(), name.program.clone());
        let program = self.programs.get(&key);
        let program = program.with_context(|| format!("{} has no {}", key.0, key.1))?;
        let mut test = Command::new(&program.executable);
        test.args([name.test.as_str(), "--exact"])
            .current_dir(&program.folder)
            .env("CARGO_MANIFEST_DIR", &program.folder)
            .env(FAULT_VARIABLE, fault.unwrap_or_default())
            // Tests must not store results of a seeded fault.
            .env("INSTA_UPDATE", "no")
            .env("PROPTEST_DISABLE_FAILURE_PERSISTENCE", "1")
            .stdin(Stdio::null())
            .kill_on_drop(true);
        let Ok(output) = tokio::time::timeout(TEST_TIMEOUT, test.output()).await else {
            return Ok(TestEnd::TimedOut);
        };
        let output = output.with_context(|| format!("run {}", program.executable.display()))?;
        let text = String::from_utf8_lossy(&output.stdout);
        let number = text.lines().find_map(|line| {
            let rest = line.strip_prefix("running ")?;
            rest.split(' ').next()?.parse().ok()
        });
        Ok(match number {
            Some(1) if output.status.success() => TestEnd::Passed,
            Some(1) => TestEnd::Failed,
            other => TestEnd::Matches(other.unwrap_or_default()),
        })
    }
}

fn tests<'a>(faults: &[&'a SeededFault]) -> impl Iterator<Item = &'a TestName> {
    faults.iter().filter_map(|fault| match &fault.detected_by {
        Detector::Test(name) => Some(name),
        Detector::Scenario(_) => None,
    })
}

/// The test programs in cargo's messages.
fn programs(messages: &[u8]) -> anyhow::Result<BTreeMap<(String, String), Program>> {
    let mut programs = BTreeMap::new();
    for line in messages.split(|byte| *byte == b'\n').filter(|line| line.starts_with(b"{")) {
        let message: Message = serde_json::from_slice(line).context("read what cargo says")?;
        let Message { reason, package_id, manifest_path, target, executable } = message;
        let (Some(id), Some(manifest), Some(target), Some(executable)) =
            (package_id, manifest_path, target, executable)
        else {
            continue;
        };
        let program = match target.kind.first().map(String::as_str) {
            Some("lib") => "lib".to_owned(),
            Some("test") => target.name,
            _ => continue,
        };
        // `path+file:///folder#name@version`; the name is missing if it equals the folder's.
        let name = id.rsplit_once('#').map_or(id.as_str(), |(_, name)| name);
        let package = name.split('@').next().unwrap_or_default().to_owned();
        let folder = manifest.parent().unwrap_or(Path::new("/")).to_owned();
        if reason == "compiler-artifact" {
            programs.insert((package, program), Program { executable, folder });
        }
    }
    Ok(programs)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn test_programs_are_found_by_package_and_name() {
        let messages = br#"
{"reason":"compiler-artifact","package_id":"path+file:///w/crates/a#mainstay-a@0.1.0","manifest_path":"/w/crates/a/Cargo.toml","target":{"kind":["lib"],"name":"mainstay_a"},"executable":null}
{"reason":"compiler-artifact","package_id":"path+file:///w/crates/a#mainstay-a@0.1.0","manifest_path":"/w/crates/a/Cargo.toml","target":{"kind":["lib"],"name":"mainstay_a"},"executable":"/t/mainstay_a-1"}
{"reason":"compiler-artifact","package_id":"path+file:///w/crates/a#mainstay-a@0.1.0","manifest_path":"/w/crates/a/Cargo.toml","target":{"kind":["test"],"name":"it"},"executable":"/t/it-1"}
{"reason":"build-finished","success":true}
"#;
        let found: Vec<String> = programs(messages)
            .unwrap()
            .into_iter()
            .map(|((package, name), process)| {
                format!(
                    "{package} {name} {} {}",
                    process.executable.display(),
                    process.folder.display()
                )
            })
            .collect();
        assert_eq!(
            found,
            ["mainstay-a it /t/it-1 /w/crates/a", "mainstay-a lib /t/mainstay_a-1 /w/crates/a"]
        );
    }
}
