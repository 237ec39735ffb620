//! Runs cases, each in a cluster of its own or all on an existing one.
//!
//! On an existing cluster a case whose only differences are in the status of Deployments is played once more. There,
//! the controllers of Deployments and of ReplicaSets race: if the former misses that the first pod was created, the
//! Deployment of a rollout that never ends has the reason `NewReplicaSetCreated` for good, and not `ReplicaSetUpdated`.

use super::CaseClusters;
use super::case::{Case, FeatureProfile};
use super::compare::{Difference, Part};
use super::differences::ExpectedDifferences;
use super::replay::CaseReplay;
use futures::StreamExt;
use std::sync::Arc;
use std::time::Duration;

/// The timeout of a case.
const CASE_TIMEOUT: Duration = Duration::from_mins(15);

/// The result of a step.
#[derive(Clone, Debug, Default)]
pub struct ReplayedStep {
    /// The name of its folder.
    pub name: String,
    /// Differences that are not listed.
    pub unexpected: Vec<Difference>,
    /// Listed differences, with the line of the list.
    pub expected: Vec<(usize, Difference)>,
    /// The number of outcomes that differ because the original has a webhook.
    pub by_rule: usize,
    /// The line of the list of facts, if ours is meant to do something else than the original.
    pub fact: Option<usize>,
}

impl ReplayedStep {
    /// The number of the step, two digits.
    pub fn number(&self) -> &str {
        self.name.get(..2).unwrap_or(&self.name)
    }

    /// Whether the step is as recorded, or differs as listed.
    pub fn agrees(&self) -> bool {
        self.unexpected.is_empty()
    }
}

/// The result of a case.
#[derive(Clone, Debug, Default)]
pub struct CaseResult {
    /// Its id, `cNNN`.
    pub id: String,
    /// Its rule.
    pub rule: String,
    /// The number of recorded steps.
    pub recorded_steps: usize,
    /// The steps that ran.
    pub steps: Vec<ReplayedStep>,
    /// Why the replay failed, if it did.
    pub error: Option<String>,
    /// The duration of the replay.
    pub duration: Duration,
    /// Whether it was played before, and only the status of Deployments differed.
    pub is_repeated: bool,
}

impl CaseResult {
    fn new(case: &Case) -> Self {
        Self {
            id: case.id.clone(),
            rule: case.rule.clone(),
            recorded_steps: case.steps.len(),
            ..Self::default()
        }
    }

    /// Whether there are differences, all in the status of Deployments.
    fn differs_in_deployment_status_only(&self) -> bool {
        let is_status = |difference: &Difference| {
            difference.part == Part::Contents
                && difference.place.starts_with("Deployment/")
                && difference.place.contains(" status.")
        };
        let mut differing = self.steps.iter().filter(|step| !step.agrees()).peekable();
        self.error.is_none()
            && differing.peek().is_some()
            && differing.all(|step| step.unexpected.iter().all(is_status))
    }

    /// Id and rule.
    pub fn name(&self) -> String {
        format!("{}-{}", self.id, self.rule)
    }
}

/// The default number of concurrent cases. Cases wait much more than they compute.
pub fn jobs() -> usize {
    24 * std::thread::available_parallelism().map_or(2, usize::from)
}

/// Runs and compares cases, at most `limit` at a time, or one if they share a cluster. `report_case` is
/// called for each case when it is done.
pub async fn run_cases(
    mut cases: Vec<Case>,
    clusters: &CaseClusters,
    lists: &Arc<ExpectedDifferences>,
    limit: usize,
    report_case: impl Fn(&CaseResult),
) -> Vec<CaseResult> {
    if !clusters.are_independent() {
        // The CRDs change once only.
        cases.sort_by_key(|case| case.profile != FeatureProfile::Standard);
    }
    let running = cases.into_iter().map(|case| {
        let (clusters, lists) = (clusters.clone(), Arc::clone(lists));
        async move {
            let mut failed = CaseResult::new(&case);
            let may_repeat = !clusters.are_independent();
            let run = async move {
                let first = run_case(case.clone(), clusters.clone(), Arc::clone(&lists)).await;
                if !may_repeat || !first.differs_in_deployment_status_only() {
                    return first;
                }
                let again = run_case(case, clusters, lists).await;
                CaseResult { is_repeated: true, ..again }
            };
            match tokio::spawn(run).await {
                Ok(result) => result,
                Err(error) => {
                    failed.error = Some(format!("the replay panicked: {error}"));
                    failed
                }
            }
        }
    });
    let limit = if clusters.are_independent() { limit } else { 1 };
    let mut all = Vec::new();
    let mut results = futures::stream::iter(running).buffer_unordered(limit);
    while let Some(result) = results.next().await {
        report_case(&result);
        all.push(result);
    }
    all.sort_by(|a, b| a.id.cmp(&b.id));
    all
}

async fn run_case(
    case: Case,
    clusters: CaseClusters,
    lists: Arc<ExpectedDifferences>,
) -> CaseResult {
    let clock = mainstay_clock::Clock::system();
    let mut result = CaseResult::new(&case);
    let outcome = match CaseReplay::start(&case, &clusters).await {
        Ok(mut replay) => {
            let steps = run_steps(&case, &mut replay, &lists, &mut result.steps);
            let all = tokio::time::timeout(CASE_TIMEOUT, steps).await;
            // Also after an error: controllers must not work on the cluster of the next case.
            replay.shutdown().await;
            all.unwrap_or_else(|_| Err(anyhow::anyhow!("it took too long")))
        }
        Err(error) => Err(error),
    };
    result.error = outcome.err().map(|error| format!("{error:#}"));
    result.duration = clock.elapsed();
    result
}

async fn run_steps(
    case: &Case,
    replay: &mut CaseReplay<'_>,
    lists: &ExpectedDifferences,
    results: &mut Vec<ReplayedStep>,
) -> anyhow::Result<()> {
    for (at, step) in case.steps.iter().enumerate() {
        let differences = replay.run_step(at, &lists.facts).await?;
        let mut result = ReplayedStep {
            name: step.name.clone(),
            by_rule: differences.by_rule,
            fact: differences.fact,
            ..ReplayedStep::default()
        };
        for difference in differences.found {
            match lists.find(&case.id, &case.rule, step.number(), &difference) {
                Some(line) => result.expected.push((line, difference)),
                None => result.unexpected.push(difference),
            }
        }
        results.push(result);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_differences_in_the_status_of_deployments_are_played_again() {
        let case = |places: &[(Part, &str)]| {
            let unexpected = places.iter().map(|(part, place)| Difference {
                part: *part,
                place: (*place).to_owned(),
                recorded: None,
                ours: None,
            });
            let step = ReplayedStep { unexpected: unexpected.collect(), ..ReplayedStep::default() };
            CaseResult { steps: vec![ReplayedStep::default(), step], ..CaseResult::default() }
        };
        let status = (Part::Contents, "Deployment/n/a status.conditions[1].reason");
        assert!(case(&[status]).differs_in_deployment_status_only());
        for places in [
            &[][..],
            &[status, (Part::Contents, "Deployment/n/a spec.replicas")],
            &[status, (Part::Conditions, "ClusterExtension//a Progressing")],
            &[(Part::Contents, "ConfigMap/n/a status.phase")],
        ] {
            assert!(!case(places).differs_in_deployment_status_only(), "{places:?}");
        }
        let failed = CaseResult { error: Some("x".to_owned()), ..case(&[status]) };
        assert!(!failed.differs_in_deployment_status_only());
    }
}
