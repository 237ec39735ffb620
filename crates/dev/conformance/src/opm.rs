//! `opm`: compares our `opm` with the recorded outputs of upstream's.

use anyhow::bail;
use clap::Args;
use mainstay_conformance_opm as opm;
use std::path::PathBuf;

/// Options of `opm`.
#[derive(Args)]
pub(crate) struct OpmCases {
    /// A folder of cases to run instead, recorded in the same format.
    #[arg(long)]
    answers: Option<PathBuf>,
    /// Only cases of this area.
    #[arg(long)]
    area: Option<String>,
    /// Only cases whose name contains this.
    #[arg(long)]
    name: Option<String>,
}

/// Runs and compares the cases.
pub(crate) fn run(options: &OpmCases, limit: usize) -> anyhow::Result<()> {
    let OpmCases { answers, area, name } = options;
    let unpacked = match answers {
        Some(_) => None,
        None => mainstay_testdata::unpack("answers/opm", "recorded answers of opm"),
    };
    let root = match (answers, &unpacked) {
        (Some(folder), _) => folder.clone(),
        (None, Some(folder)) => folder.path().join("opm"),
        (None, None) => bail!("the recorded answers of opm are not at hand"),
    };
    let mut cases = opm::case::read_all(&root)?;
    let scope = opm::scope::ComparisonScope::read(&opm::home())?;
    let exclusions = scope.count_excluded(&cases);
    for (reason, count) in &exclusions.reasons {
        println!("{count:>5} are out: {reason}");
    }
    cases.retain(|case| {
        scope.reason(case).is_none()
            && area.as_ref().is_none_or(|area| case.area == *area)
            && name.as_ref().is_none_or(|name| case.name.contains(name))
    });
    let archives = opm::working_folder::Archives::unpack(&cases)?;
    cases.retain(|case| archives.has_inputs(case));
    let expected_differences = opm::differences::ExpectedDifferences::read(&opm::home())?;
    let results = opm::run_cases(&cases, &archives)?;
    let (text, good) = opm::report(&results, &expected_differences, limit);
    print!("{text}");
    let mut problems = Vec::new();
    if answers.is_none() && area.is_none() && name.is_none() {
        problems.extend(exclusions.unused);
        problems.extend(expected_differences.problems(&results));
    }
    if !good || !problems.is_empty() {
        bail!("not all cases are as they shall be\n{}", problems.join("\n"));
    }
    Ok(())
}
