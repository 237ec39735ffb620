//! `classic`: our OLM classic against the recorded behaviour of upstream's.

use anyhow::bail;
use clap::Args;
use mainstay_conformance_olm as olm;
use std::path::PathBuf;

/// Which cases.
#[derive(Args)]
pub(crate) struct ClassicCases {
    /// A folder of cases to run instead, recorded in the same form.
    #[arg(long)]
    answers: Option<PathBuf>,
    /// Only cases with one of these ids or rules (`c045`, `og-form-*`), separated by commas.
    #[arg(long, value_delimiter = ',')]
    case: Vec<String>,
    /// Print also what differs as it shall.
    #[arg(long)]
    all: bool,
    /// Print lines for `olm/differences.txt` that would explain what differs otherwise.
    #[arg(long)]
    propose: bool,
    /// How many cases run at the same time; twenty-four times the number of cores unless given: they
    /// mostly wait.
    #[arg(long)]
    jobs: Option<usize>,
}

/// Holds OLM classic to the cases.
pub(crate) async fn run(which: &ClassicCases, most: usize) -> anyhow::Result<()> {
    let what = "recorded behaviour of OLM classic";
    let unpacked = match &which.answers {
        Some(_) => None,
        None => mainstay_testdata::unpack("answers/olm-classic", what),
    };
    let root = match (&which.answers, &unpacked) {
        (Some(folder), _) => folder.clone(),
        (None, Some(folder)) => folder.path().join("olm-classic"),
        (None, None) => bail!("the recorded behaviour of OLM classic is not at hand"),
    };
    let notes = mainstay_testdata::file("answers/olm-classic.md");
    let lists = std::sync::Arc::new(olm::listed::Lists::read(&olm::home(), notes.as_deref())?);
    let mut cases = olm::case::all(&root)?;
    let count = cases.len();
    let named = |name: &str, case: &olm::case::Case| {
        let begins = name.strip_suffix('*').is_some_and(|part| case.rule.starts_with(part));
        case.id == name || case.rule == name || begins
    };
    cases.retain(|case| which.case.is_empty() || which.case.iter().any(|name| named(name, case)));
    let complete = cases.len() == count && which.answers.is_none();
    if cases.is_empty() {
        bail!("no case is meant by that");
    }
    let jobs = which.jobs.unwrap_or_else(olm::run::jobs);
    let hear = |case: &olm::run::Judged| {
        // What is known so far, for whoever waits; the lists come at the end.
        eprint!("{}", olm::report::case(case, &lists, false, 0));
    };
    let meant = cases.clone();
    let judged = olm::run::judge(cases, &lists, jobs, hear).await;
    for case in &judged {
        print!("{}", olm::report::case(case, &lists, which.all, most));
    }
    if which.propose {
        print!("{}", olm::listed::proposal(&judged));
    }
    print!("{}", olm::report::totals(&olm::report::score(&judged), &lists));
    let mut faults = lists.faults(&judged, complete);
    faults.extend(olm::assertions::Assertions::read(&olm::home())?.faults(&meant, &judged));
    if !faults.is_empty() {
        bail!("not all cases are as they shall be\n{}", faults.join("\n"));
    }
    Ok(())
}
