//! `olmv1`: compares OLM v1 with the recorded behaviour of the original.

use anyhow::bail;
use clap::Args;
use mainstay_conformance_harness::Share;
use mainstay_conformance_olmv1::cases::differences::{CaseSelection, ExpectedDifferences};
use mainstay_conformance_olmv1::cases::{self, CaseClusters, case, report, run};
use std::path::PathBuf;
use std::sync::Arc;

/// Options of `olmv1`.
#[derive(Args)]
pub(crate) struct ExtensionCases {
    /// A folder of cases to run instead, recorded in the same format.
    #[arg(long)]
    answers: Option<PathBuf>,
    /// Only cases with one of these ids or rules (`c001`, `catalog-content-*`), separated by commas;
    /// also those of which not every part is supported.
    #[arg(long, value_delimiter = ',')]
    case: Vec<String>,
    /// Run the cases one after the other on the existing cluster of this kubeconfig, with the controllers
    /// in this process. The cluster must serve this purpose only: everything of OLM v1 on it is
    /// deleted.
    #[arg(long, conflicts_with = "jobs")]
    kubeconfig: Option<PathBuf>,
    /// Only every N-th case, beginning with the K-th: `K/N`. Each case is in exactly one of the N
    /// shares.
    #[arg(long, value_name = "K/N", conflicts_with = "case")]
    share: Option<Share>,
    /// Print listed differences too.
    #[arg(long)]
    show: bool,
    /// The number of cases that run at the same time [default: 24 times the number of cores, as
    /// cases mostly wait].
    #[arg(long)]
    jobs: Option<usize>,
}

/// Runs and compares the cases, also those that take minutes.
pub(crate) async fn run(options: &ExtensionCases, limit: usize) -> anyhow::Result<()> {
    let what = "recorded behaviour of OLM v1";
    let unpacked = match &options.answers {
        Some(_) => None,
        None => mainstay_testdata::unpack("answers/olm-v1", what),
    };
    let root = match (&options.answers, &unpacked) {
        (Some(folder), _) => folder.clone(),
        (None, Some(folder)) => folder.path().join("olm-v1/cases"),
        (None, None) => bail!("the recorded behaviour of OLM v1 is not at hand"),
    };
    let lists = Arc::new(ExpectedDifferences::read(&cases::home())?);
    let mut all = case::read_all(&root)?;
    let matches = |name: &str, case: &case::Case| {
        let begins = name.strip_suffix('*').is_some_and(|part| case.rule.starts_with(part));
        case.id == name || case.rule == name || begins
    };
    if options.case.is_empty() {
        all.retain(case::Case::is_supported);
    } else {
        all.retain(|case| options.case.iter().any(|name| matches(name, case)));
    }
    if let Some(share) = options.share {
        all = share.of(all);
    }
    if all.is_empty() {
        bail!("no case is selected by that");
    }
    let clusters = match &options.kubeconfig {
        Some(kubeconfig) => CaseClusters::existing(kubeconfig).await?,
        None => CaseClusters::InProcess,
    };
    let jobs = options.jobs.unwrap_or_else(run::jobs);
    let report_case = |case: &run::CaseResult| eprint!("{}", report::case(case, false, 0));
    let results = run::run_cases(all, &clusters, &lists, jobs, report_case).await;
    for case in &results {
        print!("{}", report::case(case, options.show, limit));
    }
    print!("{}", report::totals(&results));
    let complete = options.case.is_empty() && options.answers.is_none();
    let selection = match (complete, options.share) {
        (true, None) => CaseSelection::All,
        (true, Some(_)) => CaseSelection::Short,
        (false, _) => CaseSelection::Named,
    };
    let problems = lists.problems(&results, selection);
    if !problems.is_empty() {
        bail!("not all cases are as they shall be\n{}", problems.join("\n"));
    }
    Ok(())
}
