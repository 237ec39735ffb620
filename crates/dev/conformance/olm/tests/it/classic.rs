//! OLM classic against the recorded behaviour of the original.

use mainstay_conformance_olm::{assertions::Assertions, case, home, listed::Lists, report, run};
use std::sync::Arc;

/// Every recorded field is ours, or differs as `olm/differences.txt` says.
#[tokio::test(flavor = "multi_thread")]
async fn recorded_behaviour_of_classic_is_ours() {
    let what = "recorded behaviour of OLM classic";
    let Some(data) = mainstay_testdata::unpack("answers/olm-classic", what) else { return };
    let cases = case::all(&data.path().join("olm-classic")).unwrap();
    let notes = mainstay_testdata::file("answers/olm-classic.md");
    let lists = Arc::new(Lists::read(&home(), notes.as_deref()).unwrap());
    let judged = run::judge(cases.clone(), &lists, run::jobs(), |_| ()).await;
    let mut faults = lists.faults(&judged, true);
    let assertions = Assertions::read(&home()).unwrap();
    faults.extend(assertions.faults(&cases, &judged));
    mainstay_testdata::ran(&format!("{what}: {} assertions about rows", assertions.len()));
    let text: String = judged
        .iter()
        .filter(|case| lists.fault(case).is_some())
        .map(|case| report::case(case, &lists, false, 12))
        .collect();
    for line in report::totals(&report::score(&judged), &lists).lines() {
        mainstay_testdata::ran(&format!("{what}: {line}"));
    }
    assert!(faults.is_empty(), "{text}{}", faults.join("\n"));
}
