//! Runs scenarios and compares them: with recordings, or on two servers side by side.

use crate::compare::{self, ResponseDifference};
use crate::differences::Differences;
use crate::kubectl::Kubectl;
use crate::recording::{Recorded, Recording};
use crate::run::{self, Mode, ScenarioOutcome};
use crate::scenario::{Scenario, ScenarioStep};
use crate::server::Server;
use futures::StreamExt;
use serde_json::Value;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::path::Path;

/// The number of scenarios that run at the same time.
pub(crate) const CONCURRENCY: usize = 8;

/// The result of comparing a scenario.
#[derive(Clone, Debug, PartialEq)]
pub enum ScenarioComparison {
    /// No differences.
    Same,
    /// Only differences that are listed.
    Expected,
    /// Unexpected differences.
    Different(Vec<ResponseDifference>),
    /// A step failed; with the differences of the steps before it.
    Failed(String, Vec<ResponseDifference>),
    /// No recording exists, or it is of an older text of the scenario.
    NotRecorded,
}

/// A scenario and the result of its comparison.
pub struct ScenarioResult<'a> {
    /// The scenario.
    pub scenario: &'a Scenario,
    /// The result.
    pub comparison: ScenarioComparison,
}

impl ScenarioComparison {
    /// Whether there are no unexpected differences.
    pub const fn passes(&self) -> bool {
        matches!(self, Self::Same | Self::Expected)
    }
}

/// Reads all recordings of these scenarios.
///
/// # Errors
///
/// A file is no recording.
pub fn recordings<'a>(
    home: &Path,
    scenarios: impl IntoIterator<Item = &'a Scenario>,
) -> anyhow::Result<BTreeMap<(String, String), Recording>> {
    let mut found = BTreeMap::new();
    for scenario in scenarios {
        let key = (scenario.area.clone(), scenario.file.clone());
        if let Entry::Vacant(place) = found.entry(key) {
            place.insert(Recording::read(home, &scenario.area, &scenario.file)?);
        }
    }
    Ok(found)
}

/// Compares the server with the recordings.
pub async fn against_recordings<'a>(
    scenarios: &[&'a Scenario],
    recordings: &BTreeMap<(String, String), Recording>,
    server: &Server,
    kubectl: Option<&Kubectl>,
    differences: &Differences,
) -> Vec<ScenarioResult<'a>> {
    let run_one = |(at, scenario)| async move {
        (at, against_recording(scenario, recordings, server, kubectl, differences).await)
    };
    let (alone, together): (Vec<_>, Vec<_>) =
        scenarios.iter().copied().enumerate().partition(|(_, scenario)| scenario.runs_alone);
    // Unordered: a slow scenario would delay finished ones.
    let running = futures::stream::iter(together).map(run_one);
    let mut all: Vec<(usize, ScenarioResult<'a>)> =
        running.buffer_unordered(CONCURRENCY).collect().await;
    for scenario in alone {
        all.push(run_one(scenario).await);
    }
    all.sort_by_key(|(at, _)| *at);
    all.into_iter().map(|(_, result)| result).collect()
}

/// Compares the server with the recording of one scenario.
pub(crate) async fn against_recording<'a>(
    scenario: &'a Scenario,
    recordings: &BTreeMap<(String, String), Recording>,
    server: &Server,
    kubectl: Option<&Kubectl>,
    differences: &Differences,
) -> ScenarioResult<'a> {
    let recording = recordings.get(&(scenario.area.clone(), scenario.file.clone()));
    let recorded = recording.and_then(|recording| recording.scenarios.get(&scenario.name));
    let Some(recorded) = recorded.filter(|recorded| recorded.digest == scenario.digest) else {
        return ScenarioResult { scenario, comparison: ScenarioComparison::NotRecorded };
    };
    let mode = kubectl.map_or(Mode::Replay(&recorded.steps), Mode::Live);
    let outcome = run::run(scenario, server, &mode).await;
    let comparison = decide(scenario, &recorded.steps, outcome, differences);
    ScenarioResult { scenario, comparison }
}

/// Runs every scenario on both servers, and compares them.
pub async fn side_by_side<'a>(
    scenarios: &[&'a Scenario],
    real: &Server,
    ours: &Server,
    kubectl: &Kubectl,
    differences: &Differences,
) -> SideBySide<'a> {
    let run_one = |scenario: &'a Scenario| async move {
        let mode = Mode::Live(kubectl);
        let theirs = run::run(scenario, real, &mode).await;
        let ours = run::run(scenario, ours, &mode).await;
        let steps_of_ours = ours.steps.clone();
        let comparison = match theirs.error {
            Some(why) => ScenarioComparison::Failed(format!("the real server: {why}"), Vec::new()),
            None => decide(scenario, &theirs.steps, ours, differences),
        };
        (ScenarioResult { scenario, comparison }, steps_of_ours)
    };
    let all = futures::stream::iter(scenarios.iter().copied()).map(run_one).buffered(4);
    let mut all: Vec<_> = all.collect().await;
    let mut late = Vec::new();
    for (result, steps_of_ours) in &mut all {
        for _ in 0..RETRIES {
            if result.comparison.passes() {
                break;
            }
            let (again, mut now) = run_one(result.scenario).await;
            for (now, before) in now.iter_mut().zip(steps_of_ours.iter()) {
                ignore_last_event(before, now);
            }
            // Our server has no second try: it must respond as before.
            if again.comparison.passes() && compare::steps(steps_of_ours, &now).is_empty() {
                late.push(result.scenario.title());
                *result = again;
            }
        }
    }
    SideBySide { results: all.into_iter().map(|(result, _)| result).collect(), late }
}

/// The number of retries for a scenario that differs; it then runs alone.
const RETRIES: usize = 2;

/// The results of running scenarios on both servers.
pub struct SideBySide<'a> {
    /// The results, in the order of the scenarios.
    pub results: Vec<ScenarioResult<'a>>,
    /// Titles of scenarios in which the real server differed at first. It decides from caches,
    /// which are stale while it is busy. Ours responded the same each time.
    pub late: Vec<String>,
}

fn decide(
    scenario: &Scenario,
    theirs: &[Value],
    ours: ScenarioOutcome,
    differences: &Differences,
) -> ScenarioComparison {
    let ScenarioOutcome { steps: mut steps_of_ours, error } = ours;
    // Where kubectl itself ran, the last event of its watches depends on timing; see
    // `kubectl::record_exchange`.
    for (at, step) in scenario.steps.iter().enumerate() {
        if let (ScenarioStep::Kubectl(_), Some(ours), Some(theirs)) =
            (step, steps_of_ours.get_mut(at), theirs.get(at))
        {
            ignore_last_event(theirs, ours);
        }
    }
    let compared =
        if error.is_some() { steps_of_ours.len().min(theirs.len()) } else { theirs.len() };
    let mut found = compare::steps(&theirs[..compared], &steps_of_ours);
    let listed = differences.remove_expected(scenario, &mut found);
    match (error, found.is_empty()) {
        (Some(why), _) => ScenarioComparison::Failed(why, found),
        (None, false) => ScenarioComparison::Different(found),
        (None, true) if listed > 0 => ScenarioComparison::Expected,
        (None, true) => ScenarioComparison::Same,
    }
}

/// Ignores differences in the last event of kubectl's watches, except in type, kind and name:
/// controllers may have progressed further by then.
fn ignore_last_event(theirs: &Value, ours: &mut Value) {
    let ours = ours.get_mut("calls").and_then(Value::as_array_mut);
    let (Some(theirs), Some(ours)) = (theirs["calls"].as_array(), ours) else { return };
    for (theirs, ours) in theirs.iter().zip(ours) {
        let equal = |pointer: &str| theirs.pointer(pointer) == ours.pointer(pointer);
        if theirs.get("last").is_some()
            && ["/last/type", "/last/object/kind", "/last/object/metadata/name"]
                .into_iter()
                .all(equal)
        {
            ours["last"] = theirs["last"].clone();
        }
    }
}

/// Records scenarios again: runs each `rounds` times on the real server, and stores the responses
/// unless the rounds differ. Returns the problems, by title.
///
/// # Errors
///
/// A recording cannot be read or written.
pub async fn record(
    home: &Path,
    all: &[Scenario],
    wanted: &[&Scenario],
    real: &Server,
    kubectl: &Kubectl,
    rounds: usize,
) -> anyhow::Result<Vec<String>> {
    let version = real.version().await?;
    let mut problems = Vec::new();
    let record_scenario = |scenario: &'_ Scenario| {
        let scenario = scenario.clone();
        async move {
            let mut outcome = run::run(&scenario, real, &Mode::Live(kubectl)).await;
            let mut nondeterministic = Vec::new();
            for _ in 1..rounds {
                if outcome.error.is_some() || !nondeterministic.is_empty() {
                    break;
                }
                let mut again = run::run(&scenario, real, &Mode::Live(kubectl)).await;
                for (ours, theirs) in again.steps.iter_mut().zip(&outcome.steps) {
                    ignore_last_event(theirs, ours);
                }
                nondeterministic = compare::steps(&outcome.steps, &again.steps);
                outcome.error = again.error;
            }
            (scenario, outcome, nondeterministic)
        }
    };
    let done: Vec<_> = futures::stream::iter(wanted.iter().copied())
        .map(record_scenario)
        .buffered(4)
        .collect()
        .await;
    let mut files: BTreeMap<(String, String), Vec<(Scenario, ScenarioOutcome)>> = BTreeMap::new();
    for (scenario, outcome, nondeterministic) in done {
        let title = scenario.title();
        if let Some(why) = &outcome.error {
            problems.push(format!("{title}: {why}"));
        } else if !nondeterministic.is_empty() {
            let shown: Vec<String> =
                nondeterministic.iter().take(5).map(ToString::to_string).collect();
            problems
                .push(format!("{title}: two runs on the real server differ\n{}", shown.join("\n")));
        } else {
            let key = (scenario.area.clone(), scenario.file.clone());
            files.entry(key).or_default().push((scenario, outcome));
        }
    }
    for ((area, file), done) in files {
        let mut recording = Recording::read(home, &area, &file)?;
        let exists = |name: &str| {
            all.iter().any(|scenario| {
                scenario.area == area && scenario.file == file && scenario.name == name
            })
        };
        recording.scenarios.retain(|name, _| exists(name));
        recording.server.clone_from(&version);
        recording.kubectl.clone_from(&kubectl.version);
        for (scenario, outcome) in done {
            let recorded = Recorded { digest: scenario.digest, steps: outcome.steps };
            recording.scenarios.insert(scenario.name, recorded);
        }
        recording.write(home, &area, &file)?;
    }
    Ok(problems)
}
