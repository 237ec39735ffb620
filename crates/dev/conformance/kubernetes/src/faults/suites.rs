//! Faults in operators and their content: test programs are built with all faults in them, and started
//! with one.

use super::list::{Fault, Finder, TestName};
use super::report::Hunt;
use anyhow::{Context, bail};
use futures::StreamExt;
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;
use tokio::process::Command;

/// How many tests run at a time.
const AT_A_TIME: usize = 2;
/// How long a test may take. One that takes longer with a fault, and passes without, has found it.
const PATIENCE: Duration = Duration::from_mins(2);
/// Where a test program looks for the fault it is to have (`mainstay_fault`).
const VARIABLE: &str = "MAINSTAY_FAULT";

/// A test program.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Program {
    executable: PathBuf,
    /// The folder of its package, in which tests run.
    folder: PathBuf,
}

/// Test programs by package and name.
#[derive(Debug, Default)]
pub struct Suites {
    programs: BTreeMap<(String, String), Program>,
    /// What is wrong with tests without a fault.
    useless: BTreeMap<TestName, String>,
}

/// What cargo says of what it has built, as far as it is about test programs.
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

/// How a test ended.
#[derive(Clone, Debug, PartialEq, Eq)]
enum End {
    Passed,
    Failed,
    TimedOut,
    /// So many tests have that name.
    Number(usize),
}

impl Suites {
    /// Builds the test programs as `cargo test --workspace` does, so that nothing is compiled twice: all
    /// faults are in them.
    ///
    /// # Errors
    ///
    /// They cannot be built.
    pub async fn build() -> anyhow::Result<Self> {
        let mut cargo = Command::new("cargo");
        cargo.args(["test", "--workspace", "--no-run", "--locked", "--message-format=json"]);
        let built = cargo.stdin(Stdio::null()).stderr(Stdio::inherit()).output().await;
        let built = built.context("run cargo")?;
        if !built.status.success() {
            bail!("the test programs cannot be built");
        }
        Ok(Self { programs: programs(&built.stdout)?, useless: BTreeMap::new() })
    }

    /// Runs without a fault what is to find some of them.
    pub async fn prepare(&mut self, faults: &[&Fault]) {
        let names: BTreeSet<&TestName> = tests(faults).collect();
        let this = &*self;
        let judge = |name| async move { (name, this.run(name, None).await) };
        let ends: Vec<_> =
            futures::stream::iter(names).map(judge).buffered(AT_A_TIME).collect().await;
        for (name, end) in ends {
            let why = match end {
                Ok(End::Passed) => continue,
                Ok(End::Failed) => format!("{name} fails without it"),
                Ok(End::TimedOut) => format!("{name} takes too long without it"),
                Ok(End::Number(number)) => format!("{number} tests are called {name}"),
                Err(why) => format!("{why:#}"),
            };
            self.useless.insert(name.clone(), why);
        }
    }

    /// Hunts faults; `hear` is told what became of each, in their order.
    pub async fn hunt(&self, faults: &[&Fault], mut hear: impl FnMut(&Fault, Hunt)) {
        let one = |fault| async move { (fault, self.hunt_one(fault).await) };
        let mut hunted = futures::stream::iter(faults.iter().copied()).map(one).buffered(AT_A_TIME);
        while let Some((fault, hunt)) = hunted.next().await {
            hear(fault, hunt);
        }
    }

    async fn hunt_one(&self, fault: &Fault) -> Hunt {
        let Finder::Test(name) = &fault.by else {
            return Hunt::Useless(format!("{} is no test", fault.by));
        };
        if let Some(why) = self.useless.get(name) {
            return Hunt::Useless(why.clone());
        }
        let mut late = false;
        for _ in 0..2 {
            match self.run(name, Some(&fault.name)).await {
                Ok(End::Failed) => {}
                Ok(End::TimedOut) => late = true,
                Ok(End::Passed | End::Number(_)) => return Hunt::Unnoticed,
                Err(why) => return Hunt::Useless(format!("{why:#}")),
            }
        }
        Hunt::Found(if late { format!("{name}, which took too long") } else { name.to_string() })
    }

    async fn run(&self, name: &TestName, fault: Option<&str>) -> anyhow::Result<End> {
        let key = (name.package.clone(), name.program.clone());
        let program = self.programs.get(&key);
        let program = program.with_context(|| format!("{} has no {}", key.0, key.1))?;
        let mut test = Command::new(&program.executable);
        test.args([name.test.as_str(), "--exact"])
            .current_dir(&program.folder)
            .env("CARGO_MANIFEST_DIR", &program.folder)
            .env(VARIABLE, fault.unwrap_or_default())
            // What a fault makes of answers shall not be kept anywhere.
            .env("INSTA_UPDATE", "no")
            .env("PROPTEST_DISABLE_FAILURE_PERSISTENCE", "1")
            .stdin(Stdio::null())
            .kill_on_drop(true);
        let Ok(ended) = tokio::time::timeout(PATIENCE, test.output()).await else {
            return Ok(End::TimedOut);
        };
        let ended = ended.with_context(|| format!("run {}", program.executable.display()))?;
        let text = String::from_utf8_lossy(&ended.stdout);
        let number = text.lines().find_map(|line| {
            let rest = line.strip_prefix("running ")?;
            rest.split(' ').next()?.parse().ok()
        });
        Ok(match number {
            Some(1) if ended.status.success() => End::Passed,
            Some(1) => End::Failed,
            other => End::Number(other.unwrap_or_default()),
        })
    }
}

fn tests<'a>(faults: &[&'a Fault]) -> impl Iterator<Item = &'a TestName> {
    faults.iter().filter_map(|fault| match &fault.by {
        Finder::Test(name) => Some(name),
        Finder::Scenario(_) => None,
    })
}

/// The test programs that cargo says it has built.
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
        // `path+file:///folder#name@version`, where the name may be that of the folder.
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
    fn programs_are_known_by_package_and_name() {
        let said = br#"
{"reason":"compiler-artifact","package_id":"path+file:///w/crates/a#mainstay-a@0.1.0","manifest_path":"/w/crates/a/Cargo.toml","target":{"kind":["lib"],"name":"mainstay_a"},"executable":null}
{"reason":"compiler-artifact","package_id":"path+file:///w/crates/a#mainstay-a@0.1.0","manifest_path":"/w/crates/a/Cargo.toml","target":{"kind":["lib"],"name":"mainstay_a"},"executable":"/t/mainstay_a-1"}
{"reason":"compiler-artifact","package_id":"path+file:///w/crates/a#mainstay-a@0.1.0","manifest_path":"/w/crates/a/Cargo.toml","target":{"kind":["test"],"name":"it"},"executable":"/t/it-1"}
{"reason":"build-finished","success":true}
"#;
        let found: Vec<String> = programs(said)
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
