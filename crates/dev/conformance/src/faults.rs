//! `faults`: seeds faults one by one, and reports which scenario or test detects each.

use anyhow::{Context, bail};
use clap::Args;
use mainstay_conformance_harness::Share;
use mainstay_conformance_kubernetes::differences::Differences;
use mainstay_conformance_kubernetes::scenario::Scenario;
use std::path::Path;

/// Options of `faults`.
#[derive(Args)]
pub(crate) struct WhichFaults {
    /// Only faults in Kubernetes, which scenarios detect, or in operators and their content, which
    /// tests detect.
    #[arg(long)]
    of: Option<FaultsOf>,
    /// Only faults of this area.
    #[arg(long)]
    area: Option<String>,
    /// Only faults whose name contains this.
    #[arg(long)]
    name: Option<String>,
    /// Only every N-th fault, beginning with the K-th: `K/N`. Each fault is in exactly one of the N
    /// shares.
    #[arg(long, value_name = "K/N")]
    share: Option<Share>,
    /// Run only the scenario or test that the list names for each fault, instead of all until one
    /// detects it.
    #[arg(long)]
    listed: bool,
    /// The number of processes that hunt faults in Kubernetes at the same time. A fault is seeded
    /// for a whole process, which mostly waits.
    #[arg(long, default_value_t = 6)]
    jobs: usize,
    /// Hunt exactly these faults in this process, and print the results as JSON for the parent
    /// process.
    #[arg(long, hide = true, value_delimiter = ',')]
    here: Vec<String>,
}

/// The part of the system in which a fault is seeded.
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
    options: &WhichFaults,
) -> anyhow::Result<()> {
    use futures::StreamExt;
    use mainstay_conformance_kubernetes::faults::list::{self, SeededFault};
    use mainstay_conformance_kubernetes::faults::processes;
    use mainstay_conformance_kubernetes::faults::report::FaultReport;
    use mainstay_conformance_kubernetes::faults::scenarios::ScenarioDetector;
    use mainstay_conformance_kubernetes::faults::suites::Suites;
    /// The number of faults that one process hunts, one after the other.
    const FAULTS_PER_PROCESS: usize = 4;
    let all_faults = list::read(home)?;
    let is_selected = |fault: &&SeededFault| {
        if !options.here.is_empty() {
            return options.here.contains(&fault.name);
        }
        options.name.as_ref().is_none_or(|name| fault.name.contains(name.as_str()))
            && options.area.as_ref().is_none_or(|area| fault.area == *area)
            && match options.of {
                Some(FaultsOf::Kubernetes) => fault.is_in_kubernetes(),
                Some(FaultsOf::Operators) => !fault.is_in_kubernetes(),
                None => true,
            }
    };
    let mut selected: Vec<&SeededFault> = all_faults.iter().filter(is_selected).collect();
    if let Some(share) = options.share {
        selected = share.of(selected);
    }
    if selected.is_empty() {
        bail!("no fault is meant by that");
    }
    let (kubernetes_faults, operator_faults): (Vec<&SeededFault>, Vec<&SeededFault>) =
        selected.into_iter().partition(|fault| fault.is_in_kubernetes());
    let mut report = FaultReport::default();
    let in_processes = options.here.is_empty() && kubernetes_faults.len() > FAULTS_PER_PROCESS;
    if in_processes {
        // Faults of one area are spread over several processes, because some areas are slow.
        let count = kubernetes_faults.len().div_ceil(FAULTS_PER_PROCESS);
        let shares = (0..count).map(|at| {
            let share = kubernetes_faults.iter().skip(at).step_by(count);
            share.map(|fault| fault.name.clone()).collect::<Vec<String>>()
        });
        let detections = |names: Vec<String>| {
            let mut arguments = vec!["faults".to_owned(), format!("--here={}", names.join(","))];
            arguments.extend(options.listed.then(|| "--listed".to_owned()));
            processes::detect(home, arguments)
        };
        let mut detections =
            futures::stream::iter(shares).map(detections).buffered(options.jobs.max(1));
        while let Some(detections) = detections.next().await {
            for (name, detection) in detections? {
                let fault = kubernetes_faults.iter().find(|fault| fault.name == name);
                let fault = fault.with_context(|| format!("there is no fault {name}"))?;
                println!("{}", report.add(fault, detection));
            }
        }
        if report.len() != kubernetes_faults.len() {
            bail!("{} faults were hunted of {}", report.len(), kubernetes_faults.len());
        }
    } else if !kubernetes_faults.is_empty() {
        let mut detector = ScenarioDetector::new(home, all, differences)?;
        detector.prepare(&kubernetes_faults).await;
        for fault in kubernetes_faults {
            let detection = detector.detect(fault, options.listed).await;
            if options.here.is_empty() {
                println!("{}", report.add(fault, detection));
            } else {
                println!("{}", serde_json::to_string(&(&fault.name, &detection))?);
            }
        }
    }
    if !operator_faults.is_empty() {
        let mut suites = Suites::build().await?;
        suites.prepare(&operator_faults).await;
        suites
            .detect(&operator_faults, |fault, detection| {
                println!("{}", report.add(fault, detection));
            })
            .await;
    }
    if !options.here.is_empty() {
        // The parent process judges all results together.
        return Ok(());
    }
    print!("{}", report.total());
    report.check()
}
