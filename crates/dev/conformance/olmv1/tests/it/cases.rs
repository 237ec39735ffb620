//! The recorded cases of OLM v1.

use mainstay_conformance_olmv1::cases::differences::{CaseSelection, ExpectedDifferences};
use mainstay_conformance_olmv1::cases::{CaseClusters, case, home, report, run};
use std::sync::Arc;

/// One of so many cases of ClusterExtensions runs with every test.
const SHARE: usize = 8;

fn is_about_extensions(case: &case::Case) -> bool {
    let kinds = ["ClusterExtension", "ClusterObjectSet"];
    let mut objects = case.steps.iter().flat_map(|step| &step.objects);
    objects.any(|object| kinds.iter().any(|kind| object["kind"] == *kind))
}

#[tokio::test(flavor = "multi_thread")]
async fn cases_are_as_the_original() {
    let what = "recorded behaviour of OLM v1";
    let Some(folder) = mainstay_testdata::unpack("answers/olm-v1", what) else { return };
    let mut cases = case::read_all(&folder.path().join("olm-v1/cases")).unwrap();
    let all = cases.len();
    cases.retain(case::Case::is_supported);
    let supported = cases.len();
    let later = all - supported;
    mainstay_testdata::skipped(&format!("{what}: {later} cases of Helm charts"));
    let mut extensions = 0;
    cases.retain(|case| {
        if case.is_long() {
            return false;
        }
        extensions += usize::from(is_about_extensions(case));
        !is_about_extensions(case) || extensions % SHARE == 0
    });
    let left = supported - cases.len();
    mainstay_testdata::skipped(&format!(
        "{what}: {left} cases, most of ClusterExtensions, which `mainstay-conformance olmv1` runs"
    ));
    let lists = Arc::new(ExpectedDifferences::read(&home()).unwrap());
    let results =
        run::run_cases(cases, &CaseClusters::InProcess, &lists, run::jobs(), |_| ()).await;
    mainstay_testdata::ran(&format!("{what}: {}", report::totals(&results).trim_end()));
    let problems = lists.problems(&results, CaseSelection::Short);
    let differing = results
        .iter()
        .filter(|case| case.error.is_some() || case.steps.iter().any(|step| !step.agrees()));
    let text: String = differing.map(|case| report::case(case, false, 12)).collect();
    assert!(problems.is_empty(), "{text}{}", problems.join("\n"));
}
