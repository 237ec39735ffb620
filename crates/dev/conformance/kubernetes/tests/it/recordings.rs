//! Every scenario is compared with its recording, and the scenarios cover enough.

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
async fn embedded_api_responds_as_recorded() {
    let home = scenario::home();
    let all = scenario::read_all(&home).expect("scenarios");
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
    let scenarios: Vec<&Scenario> = all.iter().collect();
    let server = Server::embedded().await;
    let results =
        check::against_recordings(&scenarios, &recordings, &server, kubectl.as_ref(), &differences)
            .await;
    let unexpected = results.iter().filter(|result| !result.comparison.passes()).count();
    let expected = results
        .iter()
        .filter(|results| results.comparison == check::ScenarioComparison::Expected)
        .count();
    let problems = differences.problems(&all, expected);
    for line in score::table(&results).lines() {
        ran(line);
    }
    assert!(
        unexpected == 0 && problems.is_empty(),
        "{unexpected} scenarios are not as they shall be\n{}{}",
        score::findings(&results, 6),
        problems.join("\n")
    );
}

#[test]
fn every_recording_has_its_scenarios() {
    let home = scenario::home();
    let all = scenario::read_all(&home).expect("scenarios");
    let names: BTreeSet<(&str, &str)> =
        all.iter().map(|scenario| (scenario.area.as_str(), scenario.file.as_str())).collect();
    for (area, file) in recording::list_all(&home).expect("recordings") {
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

/// The least number of scenarios, of scenarios per area, and of kubectl commands.
const MINIMUM: (usize, usize, usize) = (350, 40, 120);

/// Sub-commands of kubectl that scenarios must use.
const REQUIRED_COMMANDS: [&str; 34] = [
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
fn scenarios_cover_every_area_and_kubectl_command() {
    let all = scenario::read_all(&scenario::home()).expect("scenarios");
    let (scenarios, of_an_area, invocations) = MINIMUM;
    assert!(all.len() >= scenarios, "{} scenarios", all.len());
    for area in scenario::AREAS {
        let those = all.iter().filter(|scenario| scenario.area == area).count();
        assert!(those >= of_an_area, "{those} scenarios of {area}");
    }
    let kubectl: Vec<_> = all.iter().flat_map(Scenario::kubectl).collect();
    assert!(kubectl.len() >= invocations, "{} invocations of kubectl", kubectl.len());
    let found: BTreeSet<String> = kubectl.iter().map(|step| step.sub_command()).collect();
    let missing: Vec<_> =
        REQUIRED_COMMANDS.iter().filter(|command| !found.contains(**command)).collect();
    assert!(missing.is_empty(), "nothing invokes kubectl {missing:?}");
    // Variants of a sub-command that an argument selects.
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
