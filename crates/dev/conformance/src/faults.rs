//! `faults`: seeds faults one by one, and says which scenario or test finds each.

use anyhow::{Context, bail};
use clap::Args;
use mainstay_conformance_kubernetes::differences::Differences;
use mainstay_conformance_kubernetes::scenario::Scenario;
use std::path::Path;

/// Which faults, and how.
#[derive(Args)]
pub(crate) struct WhichFaults {
    /// Only faults in Kubernetes, which scenarios find, or in operators and their content, which tests find.
    #[arg(long)]
    of: Option<FaultsOf>,
    /// Only faults of this area.
    #[arg(long)]
    area: Option<String>,
    /// Only faults whose name contains this.
    #[arg(long)]
    name: Option<String>,
    /// Try only what the list names, instead of everything until something finds the fault.
    #[arg(long)]
    listed: bool,
    /// How many faults in Kubernetes are hunted at the same time, each by a process of its own: a fault is
    /// seeded for a whole process, and most of the time nothing is done but to wait.
    #[arg(long, default_value_t = 6)]
    jobs: usize,
    /// Hunt exactly these in this process, and print what became of each as JSON: for the process that
    /// hunts all of them.
    #[arg(long, hide = true, value_delimiter = ',')]
    here: Vec<String>,
}

/// Where a fault is seeded.
#[derive(Clone, Copy, clap::ValueEnum)]
pub(crate) enum FaultsOf {
    Kubernetes,
    Operators,
}

/// Hunts the faults.
pub(crate) async fn run(
    home: &Path,
    all: &[Scenario],
    differences: &Differences,
    which: &WhichFaults,
) -> anyhow::Result<()> {
    use futures::StreamExt;
    use mainstay_conformance_kubernetes::faults::list::{self, Fault};
    use mainstay_conformance_kubernetes::faults::processes;
    use mainstay_conformance_kubernetes::faults::report::Report;
    use mainstay_conformance_kubernetes::faults::scenarios::Hunter;
    use mainstay_conformance_kubernetes::faults::suites::Suites;
    /// How many faults a process hunts, one after the other.
    const AT_ONCE: usize = 4;
    let listed = list::read(home)?;
    let is_wanted = |fault: &&Fault| {
        if !which.here.is_empty() {
            return which.here.contains(&fault.name);
        }
        which.name.as_ref().is_none_or(|name| fault.name.contains(name.as_str()))
            && which.area.as_ref().is_none_or(|area| fault.area == *area)
            && match which.of {
                Some(FaultsOf::Kubernetes) => fault.is_of_kubernetes(),
                Some(FaultsOf::Operators) => !fault.is_of_kubernetes(),
                None => true,
            }
    };
    let wanted: Vec<&Fault> = listed.iter().filter(is_wanted).collect();
    if wanted.is_empty() {
        bail!("no fault is meant by that");
    }
    let (of_kubernetes, of_operators): (Vec<&Fault>, Vec<&Fault>) =
        wanted.into_iter().partition(|fault| fault.is_of_kubernetes());
    let mut report = Report::default();
    let apart = which.here.is_empty() && of_kubernetes.len() > AT_ONCE;
    if apart {
        // The slow ones of an area are not left to one process.
        let count = of_kubernetes.len().div_ceil(AT_ONCE);
        let shares = (0..count).map(|at| {
            let share = of_kubernetes.iter().skip(at).step_by(count);
            share.map(|fault| fault.name.clone()).collect::<Vec<String>>()
        });
        let hunts = |names: Vec<String>| {
            let mut arguments = vec!["faults".to_owned(), format!("--here={}", names.join(","))];
            arguments.extend(which.listed.then(|| "--listed".to_owned()));
            processes::hunt(home, arguments)
        };
        let mut hunted = futures::stream::iter(shares).map(hunts).buffered(which.jobs.max(1));
        while let Some(hunts) = hunted.next().await {
            for (name, hunt) in hunts? {
                let fault = of_kubernetes.iter().find(|fault| fault.name == name);
                let fault = fault.with_context(|| format!("there is no fault {name}"))?;
                println!("{}", report.add(fault, hunt));
            }
        }
        if report.len() != of_kubernetes.len() {
            bail!("{} faults were hunted of {}", report.len(), of_kubernetes.len());
        }
    } else if !of_kubernetes.is_empty() {
        let mut hunter = Hunter::new(home, all, differences)?;
        hunter.prepare(&of_kubernetes).await;
        for fault in of_kubernetes {
            let hunt = hunter.hunt(fault, which.listed).await;
            if which.here.is_empty() {
                println!("{}", report.add(fault, hunt));
            } else {
                println!("{}", serde_json::to_string(&(&fault.name, &hunt))?);
            }
        }
    }
    if !of_operators.is_empty() {
        let mut suites = Suites::build().await?;
        suites.prepare(&of_operators).await;
        suites.hunt(&of_operators, |fault, hunt| println!("{}", report.add(fault, hunt))).await;
    }
    if !which.here.is_empty() {
        // Whoever reads it judges all of them together.
        return Ok(());
    }
    print!("{}", report.total());
    report.verdict()
}
