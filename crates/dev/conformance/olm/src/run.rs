//! The replay: runs each case in a cluster of its own, and compares every step with the recording.

use super::case::{Case, CaseStep};
use super::case_cluster::CaseCluster;
use super::compare::{self, Comparison, FieldCounts, FieldDifference, Key};
use super::differences::{ExpectedDifferences, SplitFindings};
use super::kubectl_get;
use super::normalize::{self, GeneratedNames};
use futures::StreamExt;
use mainstay_object::Object;
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// The timeout of a case.
const CASE_TIMEOUT: Duration = Duration::from_mins(15);

/// The result of a step.
#[derive(Clone, Debug, Default)]
pub struct StepResult {
    /// The name of its folder.
    pub name: String,
    /// Differences that are not listed.
    pub unexpected: Vec<FieldDifference>,
    /// Differences that `olm/differences.txt` lists.
    pub expected: Vec<FieldDifference>,
    /// The number of expected differing fields without a citation.
    pub uncited: usize,
    /// The number of compared fields.
    pub compared: FieldCounts,
}

impl StepResult {
    /// The number of the step, two digits.
    pub fn number(&self) -> &str {
        self.name.get(..2).unwrap_or(&self.name)
    }
}

/// The result of a case.
#[derive(Clone, Debug, Default)]
pub struct CaseResult {
    /// Its id, `cNNN`.
    pub id: String,
    /// Its rule.
    pub rule: String,
    /// Its steps.
    pub steps: Vec<StepResult>,
    /// Why the replay failed, if it did.
    pub error: Option<String>,
    /// The duration of the replay.
    pub duration: Duration,
}

impl CaseResult {
    /// The number of compared fields in all steps.
    pub fn compared(&self) -> FieldCounts {
        let mut all = FieldCounts::default();
        self.steps.iter().for_each(|step| all += &step.compared);
        all
    }
}

/// The default number of concurrent cases. Cases wait much more than they compute: a cluster is
/// idle only after seconds without a write.
pub fn jobs() -> usize {
    24 * std::thread::available_parallelism().map_or(2, usize::from)
}

/// Runs and compares cases, at most `limit` at a time. `report_case` is called for each case when
/// it is done.
pub async fn run_cases(
    cases: Vec<Case>,
    lists: &Arc<ExpectedDifferences>,
    limit: usize,
    report_case: impl Fn(&CaseResult),
) -> Vec<CaseResult> {
    let running = cases.into_iter().map(|case| {
        let (case, lists) = (Arc::new(case), Arc::clone(lists));
        async move {
            let (id, rule) = (case.id.clone(), case.rule.clone());
            let task = tokio::spawn(run_case(case, lists));
            match task.await {
                Ok(result) => result,
                Err(error) => CaseResult {
                    id,
                    rule,
                    error: Some(format!("the replay panicked: {error}")),
                    ..CaseResult::default()
                },
            }
        }
    });
    let mut all = Vec::new();
    let mut outcome = futures::stream::iter(running).buffer_unordered(limit);
    while let Some(result) = outcome.next().await {
        report_case(&result);
        all.push(result);
    }
    all.sort_by(|a, b| a.id.cmp(&b.id));
    all
}

async fn run_case(case: Arc<Case>, lists: Arc<ExpectedDifferences>) -> CaseResult {
    let clock = mainstay_clock::Clock::system();
    let mut result =
        CaseResult { id: case.id.clone(), rule: case.rule.clone(), ..CaseResult::default() };
    let all = tokio::time::timeout(CASE_TIMEOUT, run_steps(&case, &lists, &mut result.steps)).await;
    result.error = match all {
        Ok(Ok(())) => None,
        Ok(Err(error)) => Some(format!("{error:#}")),
        Err(_) => Some("it took too long".to_owned()),
    };
    result.duration = clock.elapsed();
    result
}

async fn run_steps(
    case: &Case,
    lists: &ExpectedDifferences,
    results: &mut Vec<StepResult>,
) -> anyhow::Result<()> {
    let mut cluster = CaseCluster::of(case).await?;
    let mut names = GeneratedNames::of(case.steps.iter().flat_map(|step| &step.objects));
    let recorded: Vec<Vec<Value>> = case
        .steps
        .iter()
        .map(|step| {
            let mut objects = step.objects.clone();
            normalize::canonicalize_all(&mut objects);
            objects
        })
        .collect();
    for (at, step) in case.steps.iter().enumerate() {
        let outcome = cluster.run_step(step, &names.by_name).await?;
        let mut comparison = StepComparison::default();
        names.assign_placeholders(&cluster.plans().await?);
        let objects = cluster.objects().await?;
        names.assign_placeholders(&objects);
        let addresses = cluster.addresses();
        let mut ours: Vec<Value> = objects
            .iter()
            .filter(|object| normalize::belongs_to_case(object, &case.id, &case.namespaces))
            .filter(|object| !is_layout(object) || is_recorded(step, object))
            .map(|object| normalize::normalize_object(object, &names, &addresses))
            .collect();
        normalize::canonicalize_all(&mut ours);
        comparison.add(compare::objects(
            &recorded[at],
            &ours,
            &recorded_in_other_steps(&recorded, at),
        ));

        let events: Vec<Value> = cluster
            .events()
            .await?
            .iter()
            .map(|event| normalize::event(event, &names, &addresses))
            .filter(|event| belongs_to_case(event, case) && !normalize::is_nondeterministic(event))
            .collect();
        let mut recorded_events = step.events.clone();
        recorded_events.retain(|event| !normalize::is_nondeterministic(event));
        comparison.add(compare::events(&recorded_events, &events));
        comparison.add(compare::metrics(&step.metrics, &cluster.metrics(&case.id)));

        let number = step.number();
        if let (Some(command), Some(exit)) = (&outcome.command, step.exit) {
            let ours = if command.exit == exit {
                Value::from(exit)
            } else {
                format!("{} {}", command.exit, command.error.trim()).into()
            };
            comparison.add(compare::command(number, "exit", &exit.into(), &ours));
        }
        if let Some(run_kubectl_get) = cluster.run_kubectl_get(step, &names.by_name).await? {
            comparison.add(compare::command(
                number,
                "printed",
                &kubectl_get::recorded_output(step),
                &run_kubectl_get,
            ));
        }
        // The absence of an object that is recreated at once may go unobserved; its existence is
        // compared with the objects.
        let observable =
            outcome.reached || !step.until.as_ref().is_some_and(|until| until.ends_with(" gone"));
        if step.until.is_some() && observable {
            comparison.add(compare::step(number, "until", step.reached, outcome.reached));
        }
        comparison.add(compare::step(number, "rest", true, outcome.idle));
        let SplitFindings { expected, unexpected, uncited } =
            lists.split(&case.rule, &case.id, number, comparison.findings);
        let (name, compared) = (step.name.clone(), comparison.compared);
        results.push(StepResult { name, unexpected, expected, uncited, compared });
    }
    cluster.shutdown().await;
    Ok(())
}

/// The findings of all comparisons of a step.
#[derive(Debug, Default)]
struct StepComparison {
    findings: Vec<FieldDifference>,
    compared: FieldCounts,
}

impl StepComparison {
    fn add(&mut self, (findings, compared): Comparison) {
        self.findings.extend(findings);
        self.compared += &compared;
    }
}

/// The recordings of objects in steps other than `at`: from the nearest step, and from the earlier
/// of two. Objects with generated names are also recorded under their prefix, including those of
/// the step itself.
fn recorded_in_other_steps(recorded: &[Vec<Value>], at: usize) -> BTreeMap<Key, Value> {
    let mut order: Vec<usize> = (0..recorded.len()).filter(|other| *other != at).collect();
    order.sort_by_key(|other| (other.abs_diff(at), *other));
    let mut all = BTreeMap::new();
    for object in order.iter().flat_map(|other| &recorded[*other]) {
        all.entry(compare::key(object)).or_insert_with(|| object.clone());
    }
    for object in std::iter::once(at).chain(order).flat_map(|other| &recorded[other]) {
        if let Some(key) = compare::generated_key(object) {
            all.entry(key).or_insert_with(|| object.clone());
        }
    }
    all
}

/// Whether an object is part of the standard layout, which was recorded only where it matters.
fn is_layout(object: &Object) -> bool {
    matches!((object.kind(), object.name()), ("OLMConfig", _) | ("OperatorGroup", "olm-operators"))
}

fn is_recorded(step: &CaseStep, object: &Object) -> bool {
    let matches = |entry: &Value| {
        entry["kind"] == object.kind() && entry["metadata"]["name"] == object.name()
    };
    step.objects.iter().any(matches)
}

/// Whether an event was recorded: it is in the case's namespaces, and not from a kubelet or a
/// controller of Kubernetes itself.
fn belongs_to_case(event: &Value, case: &Case) -> bool {
    let text = |key: &str| event[key].as_str().unwrap_or_default();
    let namespace = if text("kind") == "Namespace" { text("name") } else { text("namespace") };
    case.namespaces.iter().any(|listed_namespace| listed_namespace == namespace)
        && !matches!(
            text("kind"),
            "Pod" | "ReplicaSet" | "Deployment" | "Job" | "Node" | "Endpoints" | "Service"
        )
}
