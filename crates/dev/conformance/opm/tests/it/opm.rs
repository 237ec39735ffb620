//! `opm` against the recorded answers of opm 1.73.

use mainstay_conformance_opm::{self as opm, case, listed::Listed, place::Archives, scope::Scope};

/// Every case about something that is built agrees, or is a wanted difference.
#[test]
fn recorded_answers_of_opm_are_ours() {
    let Some(data) = mainstay_testdata::unpack("answers/opm", "recorded answers of opm") else {
        return;
    };
    let cases = case::all(&data.path().join("opm")).unwrap();
    let scope = Scope::read(&opm::home()).unwrap();
    let out = scope.count(&cases);
    assert_eq!(out.unused, Vec::<String>::new());
    let (wanted, _): (Vec<_>, Vec<_>) =
        cases.iter().cloned().partition(|case| scope.reason(case).is_none());
    let archives = Archives::unpack(&wanted).unwrap();
    let cases: Vec<_> = wanted.iter().filter(|case| archives.has(case)).cloned().collect();
    let listed = Listed::read(&opm::home()).unwrap();
    let judged = opm::judge(&cases, &archives).unwrap();
    let (text, good) = opm::report(&judged, &listed, 40);
    assert!(good, "{text}");
    assert_eq!(listed.faults(&judged), Vec::<String>::new());
    for line in text.lines() {
        mainstay_testdata::ran(&format!("recorded answers of opm: {line}"));
    }
    for (reason, count) in &out.reasons {
        mainstay_testdata::skipped(&format!("{count} recorded answers of opm: {reason}"));
    }
}
