//! OLM classic against the recorded behaviour of the original.

use mainstay_conformance::olm::{case, listed::Lists, report, run};
use mainstay_conformance::scenario;

/// Every case that agreed still does, and every difference that is listed is needed.
#[tokio::test(flavor = "multi_thread")]
async fn recorded_behaviour_of_classic_is_ours() {
    let what = "recorded behaviour of OLM classic";
    let Some(data) = mainstay_testdata::unpack("answers/olm-classic", what) else { return };
    let cases = case::all(&data.path().join("olm-classic")).unwrap();
    let lists = Lists::read(&scenario::home()).unwrap();
    let mut judged = run::judge(cases, run::jobs(), |_| ()).await;
    let score = report::settle(&mut judged, &lists);
    let compared = score.compared.first + score.compared.further;
    let faults = lists.faults(&judged, score.uncited, compared);
    let text: String = judged
        .iter()
        .filter(|it| faults.iter().any(|fault| fault.contains(&it.id)))
        .map(|it| report::case(it, lists.scope(&it.rule), true, false, 12))
        .collect();
    assert!(faults.is_empty(), "{text}{}", faults.join("\n"));
    for line in report::totals(&score).lines() {
        mainstay_testdata::ran(&format!("{what}: {line}"));
    }
}
