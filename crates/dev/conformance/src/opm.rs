//! `opm`: our `opm` against the recorded answers of upstream's.

use anyhow::bail;
use clap::Args;
use mainstay_conformance_opm as opm;
use std::path::PathBuf;

/// Which cases.
#[derive(Args)]
pub(crate) struct OpmCases {
    /// A folder of cases to run instead, recorded in the same form.
    #[arg(long)]
    answers: Option<PathBuf>,
    /// Only cases of this area.
    #[arg(long)]
    area: Option<String>,
    /// Only cases whose name contains this.
    #[arg(long)]
    name: Option<String>,
}

/// Holds `opm` to the cases.
pub(crate) fn run(which: &OpmCases, most: usize) -> anyhow::Result<()> {
    let OpmCases { answers, area, name } = which;
    let unpacked = match answers {
        Some(_) => None,
        None => mainstay_testdata::unpack("answers/opm", "recorded answers of opm"),
    };
    let root = match (answers, &unpacked) {
        (Some(folder), _) => folder.clone(),
        (None, Some(folder)) => folder.path().join("opm"),
        (None, None) => bail!("the recorded answers of opm are not at hand"),
    };
    let mut cases = opm::case::all(&root)?;
    let scope = opm::scope::Scope::read(&opm::home())?;
    let out = scope.count(&cases);
    for (reason, count) in &out.reasons {
        println!("{count:>5} are out: {reason}");
    }
    cases.retain(|case| {
        scope.reason(case).is_none()
            && area.as_ref().is_none_or(|area| case.area == *area)
            && name.as_ref().is_none_or(|name| case.name.contains(name))
    });
    let archives = opm::place::Archives::unpack(&cases)?;
    cases.retain(|case| archives.has(case));
    let listed = opm::listed::Listed::read(&opm::home())?;
    let judged = opm::judge(&cases, &archives)?;
    let (text, good) = opm::report(&judged, &listed, most);
    print!("{text}");
    let mut faults = Vec::new();
    if answers.is_none() && area.is_none() && name.is_none() {
        faults.extend(out.unused);
        faults.extend(listed.faults(&judged));
    }
    if !good || !faults.is_empty() {
        bail!("not all cases are as they shall be\n{}", faults.join("\n"));
    }
    Ok(())
}
