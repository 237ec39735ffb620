//! OLM classic against the recorded behaviour of the original.

use mainstay_conformance::olm::{case, listed::Lists, report, run};
use mainstay_conformance::scenario;

/// Every case that agreed still does, and every difference that is listed is needed.
#[tokio::test(flavor = "multi_thread")]
async fn recorded_behaviour_of_classic_is_ours() {
    let _alone = crate::ALONE.lock().await;
    let what = "recorded behaviour of OLM classic";
    let Some(data) = mainstay_testdata::unpack("answers/olm-classic", what) else { return };
    let cases = case::all(&data.path().join("olm-classic")).unwrap();
    let lists = Lists::read(&scenario::home()).unwrap();
    let mut judged = run::judge(cases.clone(), run::jobs(), |_| ()).await;
    // A machine that is busy with other things can make a cluster look at rest that is not: what
    // seems wrong is run once more, by itself.
    report::settle(&mut judged, &lists);
    let wrong: Vec<String> = judged.iter().filter_map(|it| lists.fault(it)).collect();
    let is_wrong = |id: &str| wrong.iter().any(|fault| fault.contains(id));
    let again: Vec<_> = cases.into_iter().filter(|it| is_wrong(&it.id)).collect();
    judged.retain(|it| !is_wrong(&it.id));
    let mut second = run::judge(again, 1, |_| ()).await;
    report::settle(&mut second, &lists);
    judged.extend(second);
    let score = report::settle(&mut judged, &lists);
    let compared = score.compared.first + score.compared.further;
    let faults = lists.faults(&judged, lists.uncited(), compared);
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
