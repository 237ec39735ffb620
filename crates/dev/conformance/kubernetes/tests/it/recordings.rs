//! Every scenario, as it was recorded.

use mainstay_conformance_kubernetes::check;
use mainstay_conformance_kubernetes::differences::Differences;
use mainstay_conformance_kubernetes::kubectl::Kubectl;
use mainstay_conformance_kubernetes::recording;
use mainstay_conformance_kubernetes::scenario::{self, Scenario};
use mainstay_conformance_kubernetes::score;
use mainstay_conformance_kubernetes::server::Server;
use mainstay_testdata::{ran, skipped};
use std::collections::BTreeSet;

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
        bad == 0 && wrong.is_empty(),
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
        all.iter().map(|scenario| (scenario.area.as_str(), scenario.file.as_str())).collect();
    for (area, file) in recording::all(&home).expect("recordings") {
        assert!(names.contains(&(area.as_str(), file.as_str())), "recorded/{area}/{file}.json");
        let found = recording::Recording::read(&home, &area, &file).expect("a recording");
        for name in found.scenarios.keys() {
            assert!(
                all.iter().any(|scenario| scenario.area == area
                    && scenario.file == file
                    && scenario.name == *name),
                "recorded/{area}/{file}.json: {name} is no scenario"
            );
        }
    }
}

/// What there must be at least: scenarios, of each area, invocations of kubectl.
const LEAST: (usize, usize, usize) = (350, 40, 120);

/// Sub-commands of kubectl that scenarios must invoke.
const COMMANDS: [&str; 34] = [
    "annotate",
    "api-resources",
    "apply",
    "create",
    "create clusterrole",
    "create clusterrolebinding",
    "create configmap",
    "create cronjob",
    "create deployment",
    "create ingress",
    "create job",
    "create namespace",
    "create poddisruptionbudget",
    "create priorityclass",
    "create quota",
    "create role",
    "create rolebinding",
    "create secret",
    "create service",
    "create serviceaccount",
    "create token",
    "delete",
    "diff",
    "edit",
    "explain",
    "get",
    "label",
    "patch",
    "replace",
    "rollout history",
    "rollout status",
    "run",
    "scale",
    "wait",
];

#[test]
fn there_are_enough_scenarios_of_every_sort() {
    let all = scenario::all(&scenario::home()).expect("scenarios");
    let (scenarios, of_an_area, invocations) = LEAST;
    assert!(all.len() >= scenarios, "{} scenarios", all.len());
    for area in scenario::AREAS {
        let those = all.iter().filter(|scenario| scenario.area == area).count();
        assert!(those >= of_an_area, "{those} scenarios of {area}");
    }
    let kubectl: Vec<_> = all.iter().flat_map(Scenario::kubectl).collect();
    assert!(kubectl.len() >= invocations, "{} invocations of kubectl", kubectl.len());
    let found: BTreeSet<String> = kubectl.iter().map(|step| step.sub_command()).collect();
    let missing: Vec<_> = COMMANDS.iter().filter(|command| !found.contains(**command)).collect();
    assert!(missing.is_empty(), "nothing invokes kubectl {missing:?}");
    // Forms of a sub-command that are told apart by what stands behind it.
    for (command, argument) in [
        ("apply", "--server-side"),
        ("apply", "--force-conflicts"),
        ("apply", "--prune"),
        ("patch", "--type=json"),
        ("patch", "--type=merge"),
        ("get", "--sort-by"),
        ("get", "wide"),
        ("delete", "--cascade=orphan"),
        ("delete", "--cascade=foreground"),
        ("delete", "--all"),
        ("delete", "-l"),
    ] {
        let has = kubectl.iter().any(|step| {
            step.sub_command().starts_with(command)
                && step.arguments.iter().any(|word| word.starts_with(argument))
        });
        assert!(has, "nothing invokes kubectl {command} … {argument}");
    }
    assert!(kubectl.iter().any(|step| step.env.contains_key("KUBE_EDITOR")), "nothing edits");
}
