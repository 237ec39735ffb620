//! `check`, `record`, `side-by-side`, `list`: scenarios on the embedded API and on a real Kubernetes.

use anyhow::{Context, bail};
use clap::Args;
use mainstay_conformance_kubernetes::check::{self, Judged};
use mainstay_conformance_kubernetes::differences::Differences;
use mainstay_conformance_kubernetes::scenario::{Scenario, Selection};
use mainstay_conformance_kubernetes::score;
use mainstay_conformance_kubernetes::server::Server;
use std::path::Path;

/// Which scenarios.
#[derive(Args)]
pub(crate) struct Which {
    /// Only scenarios of this area.
    #[arg(long)]
    area: Option<String>,
    /// Only scenarios of this file.
    #[arg(long)]
    file: Option<String>,
    /// Only scenarios whose name contains this.
    #[arg(long)]
    name: Option<String>,
}

/// The real server of a kubeconfig.
pub(crate) async fn real(kubeconfig: &Path) -> anyhow::Result<Server> {
    let server = Server::at(kubeconfig).await?;
    let version = server.version().await.context("ask the real server")?;
    if !version.starts_with("v1.35.") {
        bail!("the real server is {version}, not 1.35");
    }
    Ok(server)
}

/// The scenarios that are meant, and whether these are all.
pub(crate) fn choose(all: &[Scenario], which: Which) -> anyhow::Result<(Vec<&Scenario>, bool)> {
    let Which { area, file, name } = which;
    let file = file.map(|file| file.trim_end_matches(".yaml").to_owned());
    let selection = Selection { area, file, name };
    let wanted: Vec<&Scenario> = all.iter().filter(|scenario| selection.has(scenario)).collect();
    if wanted.is_empty() {
        bail!("no scenario is meant by that");
    }
    Ok((wanted, selection.is_all()))
}

/// Prints what became of the scenarios.
pub(crate) fn report(
    judged: &[Judged<'_>],
    differences: &Differences,
    all: &[Scenario],
    complete: bool,
    most: usize,
) -> anyhow::Result<()> {
    print!("{}", score::findings(judged, most));
    println!("{}", score::table(judged));
    let bad = judged.iter().filter(|judged| !judged.verdict.is_good()).count();
    let listed = judged.iter().filter(|judged| judged.verdict == check::Verdict::Listed).count();
    let wrong = if complete { differences.verdict(all, listed) } else { Vec::new() };
    if bad > 0 || !wrong.is_empty() {
        bail!("{bad} scenarios are not as they shall be\n{}", wrong.join("\n"));
    }
    Ok(())
}
