//! `check`, `record`, `side-by-side`, `list`: scenarios on the embedded API and on a real
//! Kubernetes.

use anyhow::{Context, bail};
use clap::Args;
use mainstay_conformance_kubernetes::check::{self, ScenarioResult};
use mainstay_conformance_kubernetes::differences::Differences;
use mainstay_conformance_kubernetes::scenario::{Scenario, ScenarioSelection};
use mainstay_conformance_kubernetes::score;
use mainstay_conformance_kubernetes::server::Server;
use std::path::Path;

/// Selects scenarios.
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

/// The real server of a kubeconfig; its version must be 1.35.
pub(crate) async fn real_server(kubeconfig: &Path) -> anyhow::Result<Server> {
    let server = Server::from_kubeconfig(kubeconfig).await?;
    let version = server.version().await.context("ask the real server")?;
    if !version.starts_with("v1.35.") {
        bail!("the real server is {version}, not 1.35");
    }
    Ok(server)
}

/// The selected scenarios, and whether these are all.
pub(crate) fn select_scenarios(
    all: &[Scenario],
    which: Which,
) -> anyhow::Result<(Vec<&Scenario>, bool)> {
    let Which { area, file, name } = which;
    let file = file.map(|file| file.trim_end_matches(".yaml").to_owned());
    let selection = ScenarioSelection { area, file, name };
    let selected: Vec<&Scenario> = all.iter().filter(|scenario| selection.has(scenario)).collect();
    if selected.is_empty() {
        bail!("no scenario is meant by that");
    }
    Ok((selected, selection.is_all()))
}

/// Prints the results of the scenarios.
pub(crate) fn report(
    results: &[ScenarioResult<'_>],
    differences: &Differences,
    all: &[Scenario],
    complete: bool,
    limit: usize,
) -> anyhow::Result<()> {
    print!("{}", score::findings(results, limit));
    println!("{}", score::table(results));
    let unexpected = results.iter().filter(|result| !result.comparison.passes()).count();
    let expected = results
        .iter()
        .filter(|results| results.comparison == check::ScenarioComparison::Expected)
        .count();
    let problems = if complete { differences.problems(all, expected) } else { Vec::new() };
    if unexpected > 0 || !problems.is_empty() {
        bail!("{unexpected} scenarios are not as they shall be\n{}", problems.join("\n"));
    }
    Ok(())
}
