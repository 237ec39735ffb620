//! `opm` against the recorded answers of opm 1.73.

use mainstay_conformance::opm::{self, case, listed::Listed};
use mainstay_conformance::scenario;

/// Every case about something that is built agrees, or is a wanted difference.
#[test]
fn recorded_answers_of_opm_are_ours() {
    let Some(data) = mainstay_testdata::unpack("answers/opm", "recorded answers of opm") else {
        return;
    };
    let all = case::all(&data.path().join("opm")).unwrap();
    let cases: Vec<_> = all.iter().filter(|case| opm::is_built(case)).cloned().collect();
    let listed = Listed::read(&scenario::home()).unwrap();
    let judged = opm::judge(&cases).unwrap();
    let (text, good) = opm::report(&judged, &listed, 40);
    assert!(good, "{text}");
    assert_eq!(listed.faults(&judged), Vec::<String>::new());
    mainstay_testdata::ran(&format!("{} recorded answers of opm", cases.len()));
    let left = all.len() - cases.len();
    mainstay_testdata::skipped(&format!("{left} recorded answers of opm: not built yet"));
}
