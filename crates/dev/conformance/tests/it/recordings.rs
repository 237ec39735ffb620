//! Every scenario, as it was recorded.

use mainstay_conformance::check;
use mainstay_conformance::differences::Differences;
use mainstay_conformance::kubectl::Kubectl;
use mainstay_conformance::recording;
use mainstay_conformance::scenario::{self, Scenario};
use mainstay_conformance::score;
use mainstay_conformance::server::Server;
use mainstay_testdata::{ran, skipped};
use std::collections::BTreeSet;

/// Whether a difference fails; off while the server is being brought up to the recordings.
const HELD: bool = false;

#[tokio::test(flavor = "multi_thread")]
#[expect(clippy::disallowed_methods, reason = "tests have no configuration")]
async fn the_embedded_api_answers_as_the_real_one_did() {
    let home = scenario::home();
    let all = scenario::all(&home).expect("scenarios");
    let differences = Differences::read(&home).expect("a list of differences");
    let kubectl = match Kubectl::find(std::env::var("KUBECTL").ok().as_deref()) {
        Ok(kubectl) => {
            ran(&format!("kubectl {} beside its recorded text", kubectl.version));
            Some(kubectl)
        }
        Err(why) => {
            skipped(&format!("kubectl's text against its recording: {why}; its requests are sent"));
            None
        }
    };
    let recordings = check::recordings(&home, &all).expect("recordings");
    let wanted: Vec<&Scenario> = all.iter().collect();
    let server = Server::embedded().await;
    let judged =
        check::against_recordings(&wanted, &recordings, &server, kubectl.as_ref(), &differences)
            .await;
    let bad = judged.iter().filter(|judged| !judged.verdict.is_good()).count();
    let listed = judged.iter().filter(|judged| judged.verdict == check::Verdict::Listed).count();
    let wrong = differences.verdict(&all, listed);
    for line in score::table(&judged).lines() {
        ran(line);
    }
    assert!(
        !HELD || bad == 0 && wrong.is_empty(),
        "{bad} scenarios are not as they shall be\n{}{}",
        score::findings(&judged, 6),
        wrong.join("\n")
    );
}

#[test]
fn no_recording_outlives_its_scenarios() {
    let home = scenario::home();
    let all = scenario::all(&home).expect("scenarios");
    let names: BTreeSet<(&str, &str)> =
        all.iter().map(|it| (it.area.as_str(), it.file.as_str())).collect();
    for (area, file) in recording::all(&home).expect("recordings") {
        assert!(names.contains(&(area.as_str(), file.as_str())), "recorded/{area}/{file}.json");
        let found = recording::Recording::read(&home, &area, &file).expect("a recording");
        for name in found.scenarios.keys() {
            assert!(
                all.iter().any(|it| it.area == area && it.file == file && it.name == *name),
                "recorded/{area}/{file}.json: {name} is no scenario"
            );
        }
    }
}
