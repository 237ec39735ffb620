//! Replay of the recorded outputs of opm 1.73.

use mainstay_conformance_opm::{
    self as opm, case, differences::ExpectedDifferences, scope::ComparisonScope,
    working_folder::Archives,
};

/// Every case in scope agrees with the recording, or its difference is listed.
#[test]
fn replayed_cases_match_the_recorded_outputs() {
    let Some(data) = mainstay_testdata::unpack("answers/opm", "recorded answers of opm") else {
        return;
    };
    let cases = case::read_all(&data.path().join("opm")).unwrap();
    let scope = ComparisonScope::read(&opm::home()).unwrap();
    let exclusions = scope.count_excluded(&cases);
    assert_eq!(exclusions.unused, Vec::<String>::new());
    let (wanted, _): (Vec<_>, Vec<_>) =
        cases.iter().cloned().partition(|case| scope.reason(case).is_none());
    let archives = Archives::unpack(&wanted).unwrap();
    let cases: Vec<_> = wanted.iter().filter(|case| archives.has_inputs(case)).cloned().collect();
    let expected_differences = ExpectedDifferences::read(&opm::home()).unwrap();
    let results = opm::run_cases(&cases, &archives).unwrap();
    let (text, good) = opm::report(&results, &expected_differences, 40);
    assert!(good, "{text}");
    assert_eq!(expected_differences.problems(&results), Vec::<String>::new());
    for line in text.lines() {
        mainstay_testdata::ran(&format!("recorded answers of opm: {line}"));
    }
    for (reason, count) in &exclusions.reasons {
        mainstay_testdata::skipped(&format!("{count} recorded answers of opm: {reason}"));
    }
}
