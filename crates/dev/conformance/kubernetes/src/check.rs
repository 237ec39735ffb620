//! Runs scenarios and compares: with recordings, or two servers side by side.

use crate::compare::{self, Difference};
use crate::differences::Differences;
use crate::kubectl::Kubectl;
use crate::recording::{Recorded, Recording};
use crate::run::{self, Mode, Outcome};
use crate::scenario::{Scenario, Step};
use crate::server::Server;
use futures::StreamExt;
use serde_json::Value;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::path::Path;

/// How many scenarios run at a time.
pub(crate) const AT_A_TIME: usize = 8;

/// What became of a scenario.
#[derive(Clone, Debug, PartialEq)]
pub enum Verdict {
    /// Nothing differs.
    Same,
    /// Only what is listed differs.
    Listed,
    /// These differ.
    Different(Vec<Difference>),
    /// A step could not be taken; what differed until then.
    Broken(String, Vec<Difference>),
    /// There is no recording of it, or one of what it said once.
    NotRecorded,
}

/// A scenario and its verdict.
pub struct Judged<'a> {
    /// Which.
    pub scenario: &'a Scenario,
    /// How.
    pub verdict: Verdict,
}

impl Verdict {
    /// Whether it is as it shall be.
    pub const fn is_good(&self) -> bool {
        matches!(self, Self::Same | Self::Listed)
    }
}

/// All recordings of these scenarios.
///
/// # Errors
///
/// A file that is no recording.
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

/// Holds the server against the recordings.
pub async fn against_recordings<'a>(
    scenarios: &[&'a Scenario],
    recordings: &BTreeMap<(String, String), Recording>,
    server: &Server,
    kubectl: Option<&Kubectl>,
    differences: &Differences,
) -> Vec<Judged<'a>> {
    let judge = |(at, scenario)| async move {
        (at, against_recording(scenario, recordings, server, kubectl, differences).await)
    };
    // Not in their order: one that waits for long would hold up those that are done.
    let running = futures::stream::iter(scenarios.iter().copied().enumerate()).map(judge);
    let mut all: Vec<(usize, Judged<'a>)> = running.buffer_unordered(AT_A_TIME).collect().await;
    all.sort_by_key(|(at, _)| *at);
    all.into_iter().map(|(_, judged)| judged).collect()
}

/// Holds the server against the recording of a scenario.
pub(crate) async fn against_recording<'a>(
    scenario: &'a Scenario,
    recordings: &BTreeMap<(String, String), Recording>,
    server: &Server,
    kubectl: Option<&Kubectl>,
    differences: &Differences,
) -> Judged<'a> {
    let recording = recordings.get(&(scenario.area.clone(), scenario.file.clone()));
    let recorded = recording.and_then(|recording| recording.scenarios.get(&scenario.name));
    let Some(recorded) = recorded.filter(|recorded| recorded.of == scenario.digest) else {
        return Judged { scenario, verdict: Verdict::NotRecorded };
    };
    let mode = kubectl.map_or(Mode::Replay(&recorded.steps), Mode::Live);
    let outcome = run::run(scenario, server, &mode).await;
    let verdict = verdict(scenario, &recorded.steps, outcome, differences);
    Judged { scenario, verdict }
}

/// Runs every scenario on both servers.
pub async fn side_by_side<'a>(
    scenarios: &[&'a Scenario],
    real: &Server,
    ours: &Server,
    kubectl: &Kubectl,
    differences: &Differences,
) -> SideBySide<'a> {
    let judge = |scenario: &'a Scenario| async move {
        let mode = Mode::Live(kubectl);
        let theirs = run::run(scenario, real, &mode).await;
        let ours = run::run(scenario, ours, &mode).await;
        let made = ours.steps.clone();
        let verdict = match theirs.broken {
            Some(why) => Verdict::Broken(format!("the real server: {why}"), Vec::new()),
            None => verdict(scenario, &theirs.steps, ours, differences),
        };
        (Judged { scenario, verdict }, made)
    };
    let all = futures::stream::iter(scenarios.iter().copied()).map(judge).buffered(4);
    let mut all: Vec<_> = all.collect().await;
    let mut late = Vec::new();
    for (judged, made) in &mut all {
        for _ in 0..AGAIN {
            if judged.verdict.is_good() {
                break;
            }
            let (again, mut now) = judge(judged.scenario).await;
            for (now, before) in now.iter_mut().zip(made.iter()) {
                same_last(before, now);
            }
            // Ours has no second try: what it says must be what it said.
            if again.verdict.is_good() && compare::steps(made, &now).is_empty() {
                late.push(judged.scenario.title());
                *judged = again;
            }
        }
    }
    SideBySide { judged: all.into_iter().map(|(judged, _)| judged).collect(), late }
}

/// How often a scenario that differs is run again, alone.
const AGAIN: usize = 2;

/// What came of running scenarios on both servers.
pub struct SideBySide<'a> {
    /// The scenarios, in their order.
    pub judged: Vec<Judged<'a>>,
    /// Those in which the real server said something else at first: it decides from caches, which are
    /// late where it is busy. Ours said the same each time.
    pub late: Vec<String>,
}

fn verdict(
    scenario: &Scenario,
    theirs: &[Value],
    ours: Outcome,
    differences: &Differences,
) -> Verdict {
    let Outcome { steps: mut made, broken } = ours;
    // How far kubectl's watches went is timing where kubectl itself ran; see `kubectl::noted`.
    for (at, step) in scenario.steps.iter().enumerate() {
        if let (Step::Kubectl(_), Some(ours), Some(theirs)) =
            (step, made.get_mut(at), theirs.get(at))
        {
            same_last(theirs, ours);
        }
    }
    let until = if broken.is_some() { made.len().min(theirs.len()) } else { theirs.len() };
    let mut found = compare::steps(&theirs[..until], &made);
    let listed = differences.take(scenario, &mut found);
    match (broken, found.is_empty()) {
        (Some(why), _) => Verdict::Broken(why, found),
        (None, false) => Verdict::Different(found),
        (None, true) if listed > 0 => Verdict::Listed,
        (None, true) => Verdict::Same,
    }
}

/// Where kubectl's text tells that it saw what it waited for, the event that it saw may differ in
/// what controllers had done by then: only its type, kind and name are compared.
fn same_last(theirs: &Value, ours: &mut Value) {
    let ours = ours.get_mut("calls").and_then(Value::as_array_mut);
    let (Some(theirs), Some(ours)) = (theirs["calls"].as_array(), ours) else { return };
    for (theirs, ours) in theirs.iter().zip(ours) {
        let same = |pointer: &str| theirs.pointer(pointer) == ours.pointer(pointer);
        if theirs.get("last").is_some()
            && ["/last/type", "/last/object/kind", "/last/object/metadata/name"]
                .into_iter()
                .all(same)
        {
            ours["last"] = theirs["last"].clone();
        }
    }
}

/// Records scenarios of a file anew: runs each on the real server `rounds` times and keeps what came
/// back, unless the rounds differ. Returns what was wrong, by name.
///
/// # Errors
///
/// A recording that cannot be read or written.
pub async fn record(
    home: &Path,
    all: &[Scenario],
    wanted: &[&Scenario],
    real: &Server,
    kubectl: &Kubectl,
    rounds: usize,
) -> anyhow::Result<Vec<String>> {
    let version = real.version().await?;
    let mut wrong = Vec::new();
    let take = |scenario: &'_ Scenario| {
        let scenario = scenario.clone();
        async move {
            let mut outcome = run::run(&scenario, real, &Mode::Live(kubectl)).await;
            let mut unsteady = Vec::new();
            for _ in 1..rounds {
                if outcome.broken.is_some() || !unsteady.is_empty() {
                    break;
                }
                let mut again = run::run(&scenario, real, &Mode::Live(kubectl)).await;
                for (ours, theirs) in again.steps.iter_mut().zip(&outcome.steps) {
                    same_last(theirs, ours);
                }
                unsteady = compare::steps(&outcome.steps, &again.steps);
                outcome.broken = again.broken;
            }
            (scenario, outcome, unsteady)
        }
    };
    let done: Vec<_> =
        futures::stream::iter(wanted.iter().copied()).map(take).buffered(4).collect().await;
    let mut files: BTreeMap<(String, String), Vec<(Scenario, Outcome)>> = BTreeMap::new();
    for (scenario, outcome, unsteady) in done {
        let title = scenario.title();
        if let Some(why) = &outcome.broken {
            wrong.push(format!("{title}: {why}"));
        } else if !unsteady.is_empty() {
            let told: Vec<String> = unsteady.iter().take(5).map(ToString::to_string).collect();
            wrong.push(format!("{title}: two runs on the real server differ\n{}", told.join("\n")));
        } else {
            let key = (scenario.area.clone(), scenario.file.clone());
            files.entry(key).or_default().push((scenario, outcome));
        }
    }
    for ((area, file), done) in files {
        let mut recording = Recording::read(home, &area, &file)?;
        let here = |name: &str| {
            all.iter().any(|scenario| {
                scenario.area == area && scenario.file == file && scenario.name == name
            })
        };
        recording.scenarios.retain(|name, _| here(name));
        recording.server.clone_from(&version);
        recording.kubectl.clone_from(&kubectl.version);
        for (scenario, outcome) in done {
            let recorded = Recorded { of: scenario.digest, steps: outcome.steps };
            recording.scenarios.insert(scenario.name, recorded);
        }
        recording.write(home, &area, &file)?;
    }
    Ok(wrong)
}
