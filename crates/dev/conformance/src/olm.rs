//! `classic`: compares OLM classic with the recorded behaviour of upstream's.

use anyhow::bail;
use clap::Args;
use mainstay_conformance_olm as olm;
use std::path::PathBuf;

/// Options of `classic`.
#[derive(Args)]
pub(crate) struct ClassicCases {
    /// A folder of cases to run instead, recorded in the same format.
    #[arg(long)]
    answers: Option<PathBuf>,
    /// Only cases with one of these ids or rules (`c045`, `og-form-*`), separated by commas.
    #[arg(long, value_delimiter = ',')]
    case: Vec<String>,
    /// Print expected differences too.
    #[arg(long)]
    all: bool,
    /// Print lines for `olm/differences.txt` that would explain the unexpected differences.
    #[arg(long)]
    propose: bool,
    /// The number of cases that run at the same time [default: 24 times the number of cores, as
    /// cases mostly wait].
    #[arg(long)]
    jobs: Option<usize>,
}

/// Runs and compares the cases.
pub(crate) async fn run(options: &ClassicCases, limit: usize) -> anyhow::Result<()> {
    let what = "recorded behaviour of OLM classic";
    let unpacked = match &options.answers {
        Some(_) => None,
        None => mainstay_testdata::unpack("answers/olm-classic", what),
    };
    let root = match (&options.answers, &unpacked) {
        (Some(folder), _) => folder.clone(),
        (None, Some(folder)) => folder.path().join("olm-classic"),
        (None, None) => bail!("the recorded behaviour of OLM classic is not at hand"),
    };
    let notes = mainstay_testdata::file("answers/olm-classic.md");
    let lists = std::sync::Arc::new(olm::differences::ExpectedDifferences::read(
        &olm::home(),
        notes.as_deref(),
    )?);
    let mut cases = olm::case::read_all(&root)?;
    let count = cases.len();
    let matches = |name: &str, case: &olm::case::Case| {
        let begins = name.strip_suffix('*').is_some_and(|part| case.rule.starts_with(part));
        case.id == name || case.rule == name || begins
    };
    cases.retain(|case| {
        options.case.is_empty() || options.case.iter().any(|name| matches(name, case))
    });
    let complete = cases.len() == count && options.answers.is_none();
    if cases.is_empty() {
        bail!("no case is selected by that");
    }
    let jobs = options.jobs.unwrap_or_else(olm::run::jobs);
    let report_case = |case: &olm::run::CaseResult| {
        // Progress; the complete report comes at the end.
        eprint!("{}", olm::report::case(case, &lists, false, 0));
    };
    let selected = cases.clone();
    let results = olm::run::run_cases(cases, &lists, jobs, report_case).await;
    for case in &results {
        print!("{}", olm::report::case(case, &lists, options.all, limit));
    }
    if options.propose {
        print!("{}", olm::differences::proposal(&results));
    }
    print!("{}", olm::report::totals(&olm::report::score(&results), &lists));
    let mut problems = lists.problems(&results, complete);
    problems.extend(olm::assertions::Assertions::read(&olm::home())?.problems(&selected, &results));
    if !problems.is_empty() {
        bail!("not all cases are as they shall be\n{}", problems.join("\n"));
    }
    Ok(())
}
