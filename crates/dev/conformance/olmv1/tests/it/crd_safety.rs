//! Replay of the recorded answers of the CRD upgrade safety check.

use mainstay_conformance_olmv1::crd_safety::{self, AREA};
use mainstay_conformance_olmv1::differences::{ExpectedDifferences, report};
use mainstay_conformance_olmv1::home;

/// Every pair agrees with the recording, or its difference is listed.
#[test]
fn replayed_pairs_match_the_recorded_answers() {
    let what = "recorded crd-safety pairs";
    let Some(data) = mainstay_testdata::unpack("answers/crd-safety", what) else { return };
    let Some(bundles) = mainstay_testdata::unpack("bundles-249", what) else { return };
    let pairs = crd_safety::read_pairs(&data.path().join("crd-safety/pairs.jsonl")).unwrap();
    let results = crd_safety::run(&pairs, bundles.path()).unwrap();
    let expected = ExpectedDifferences::read(&home()).unwrap();
    let report = report(&results, &expected, 40);
    let (agreeing, all, listed) = (report.agreeing, report.all, report.listed);
    mainstay_testdata::ran(&format!("{agreeing} of {all} crd-safety pairs agree, {listed} listed"));
    assert!(report.is_good(), "{}", report.text);
    assert_eq!(expected.problems(AREA, &results), Vec::<String>::new());
}
