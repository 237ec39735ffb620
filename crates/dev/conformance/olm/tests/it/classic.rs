//! Replay of the recorded behaviour of OLM classic.

use mainstay_conformance_olm::{
    assertions::Assertions, case, differences::ExpectedDifferences, home, report, run,
};
use mainstay_testdata::{is_deep, sample};
use std::sync::Arc;

/// Every field is as recorded, or `olm/differences.txt` lists the difference. `.ci/deep olm-classic` runs all cases.
#[tokio::test(flavor = "multi_thread")]
async fn replayed_cases_match_the_recorded_behaviour() {
    let what = "recorded behaviour of OLM classic";
    let Some(data) = mainstay_testdata::unpack("answers/olm-classic", what) else { return };
    let cases = case::read_all(&data.path().join("olm-classic")).unwrap();
    let cases = sample(what, cases, 5);
    let notes = mainstay_testdata::file("answers/olm-classic.md");
    let lists = Arc::new(ExpectedDifferences::read(&home(), notes.as_deref()).unwrap());
    let results = run::run_cases(cases.clone(), &lists, run::jobs(), |_| ()).await;
    let mut problems = lists.problems(&results, is_deep());
    let assertions = Assertions::read(&home()).unwrap();
    problems.extend(assertions.problems(&cases, &results));
    mainstay_testdata::ran(&format!("{what}: {} assertions about rows", assertions.len()));
    let text: String = results
        .iter()
        .filter(|case| lists.problem(case).is_some())
        .map(|case| report::case(case, &lists, false, 12))
        .collect();
    for line in report::totals(&report::score(&results), &lists).lines() {
        mainstay_testdata::ran(&format!("{what}: {line}"));
    }
    assert!(problems.is_empty(), "{text}{}", problems.join("\n"));
}
