//! Runs cases, each in a cluster of its own, and compares.

use super::case::{Case, Step};
use super::compare::{self, Count, Finding};
use super::normal::{self, Names};
use super::place::Place;
use super::shown;
use futures::StreamExt;
use mainstay_object::Object;
use serde_json::Value;
use std::sync::Arc;
use std::time::Duration;

/// How long a case may take in all.
const LONGEST: Duration = Duration::from_mins(5);

/// How a step compares.
#[derive(Clone, Debug, Default)]
pub struct JudgedStep {
    /// Its folder.
    pub name: String,
    /// What differs.
    pub findings: Vec<Finding>,
    /// How much was compared.
    pub count: Count,
    /// What the step waited for and did not get.
    pub missed: Option<String>,
}

/// How a case compares.
#[derive(Clone, Debug, Default)]
pub struct Judged {
    /// Its id, `cNNN`.
    pub id: String,
    /// Its rule.
    pub rule: String,
    /// Its steps.
    pub steps: Vec<JudgedStep>,
    /// Why it could not be run to the end.
    pub broken: Option<String>,
    /// How long it took.
    pub took: Duration,
}

/// How many cases run at the same time: they wait more than they work.
pub fn jobs() -> usize {
    2 * std::thread::available_parallelism().map_or(2, usize::from)
}

/// Runs cases, at most `most` at a time, and compares them. `hear` is told of each when it is done.
pub async fn judge(cases: Vec<Case>, most: usize, hear: impl Fn(&Judged)) -> Vec<Judged> {
    let running = cases.into_iter().map(|case| {
        let case = Arc::new(case);
        async move {
            let (id, rule) = (case.id.clone(), case.rule.clone());
            let task = tokio::spawn(one(case));
            match task.await {
                Ok(judged) => judged,
                Err(error) => Judged {
                    id,
                    rule,
                    broken: Some(format!("the replay panicked: {error}")),
                    ..Judged::default()
                },
            }
        }
    });
    let mut all = Vec::new();
    let mut done = futures::stream::iter(running).buffer_unordered(most);
    while let Some(judged) = done.next().await {
        hear(&judged);
        all.push(judged);
    }
    all.sort_by(|a, b| a.id.cmp(&b.id));
    all
}

async fn one(case: Arc<Case>) -> Judged {
    let clock = mainstay_clock::Clock::system();
    let mut judged = Judged { id: case.id.clone(), rule: case.rule.clone(), ..Judged::default() };
    let all = tokio::time::timeout(LONGEST, steps(&case, &mut judged.steps)).await;
    judged.broken = match all {
        Ok(Ok(())) => None,
        Ok(Err(error)) => Some(format!("{error:#}")),
        Err(_) => Some("it took too long".to_owned()),
    };
    judged.took = clock.elapsed();
    judged
}

async fn steps(case: &Case, judged: &mut Vec<JudgedStep>) -> anyhow::Result<()> {
    let mut place = Place::of(case).await?;
    let mut names = Names::of(case.steps.iter().flat_map(|it| &it.objects));
    for step in &case.steps {
        let (done, reached) = place.carry_out(step, &names.known).await?;
        names.learn(&place.plans().await?);
        let objects = place.objects().await?;
        names.learn(&objects);
        let addresses = place.addresses();
        let mut ours: Vec<Value> = objects
            .iter()
            .filter(|it| normal::belongs(it, &case.id, &case.namespaces))
            .filter(|it| !is_layout(it) || records(step, it))
            .map(|it| normal::ours(it, &names, &addresses))
            .collect();
        let mut recorded = step.objects.clone();
        normal::level_all(&mut recorded);
        normal::level_all(&mut ours);
        let (mut findings, mut count) = compare::objects(&recorded, &ours);

        let events: Vec<Value> = place
            .events()
            .await?
            .iter()
            .map(|it| normal::event(it, &names, &addresses))
            .filter(|it| of_case(it, case) && !normal::is_chance(it))
            .collect();
        let mut told = step.events.clone();
        told.retain(|it| !normal::is_chance(it));
        let (more, further) = compare::events(&told, &events);
        findings.extend(more);
        count += further;

        let (more, further) = compare::metrics(&step.metrics, &place.metrics(&case.id));
        findings.extend(more);
        count += further;

        if let (Some(done), Some(exit)) = (done, step.exit) {
            count.first += 1;
            if (done.exit == 0) != (exit == 0) {
                findings.push(Finding {
                    kind: "Command".to_owned(),
                    object: step.command.clone().unwrap_or_default(),
                    path: "exit".to_owned(),
                    first: true,
                    recorded: Some(exit.into()),
                    ours: Some(format!("{} {}", done.exit, done.error.trim()).into()),
                });
            }
        }
        if let Some((command, ours)) = place.printed(step, &names.known).await? {
            let (more, further) = compare::printed(&command, &shown::recorded(step), &ours);
            findings.extend(more);
            count += further;
        }
        let missed = (!reached).then(|| step.until.clone().unwrap_or_default());
        judged.push(JudgedStep { name: step.name.clone(), findings, count, missed });
    }
    place.end().await;
    Ok(())
}

/// Whether an object is part of the standard layout, which was only recorded where it counts.
fn is_layout(object: &Object) -> bool {
    matches!((object.kind(), object.name()), ("OLMConfig", _) | ("OperatorGroup", "olm-operators"))
}

fn records(step: &Step, object: &Object) -> bool {
    let is = |it: &Value| it["kind"] == object.kind() && it["metadata"]["name"] == object.name();
    step.objects.iter().any(is)
}

/// Whether an event is one of those that were recorded: of the case's namespaces, and not told by
/// what stands in for kubelets and Kubernetes' own controllers.
fn of_case(event: &Value, case: &Case) -> bool {
    let text = |key: &str| event[key].as_str().unwrap_or_default();
    let namespace = if text("kind") == "Namespace" { text("name") } else { text("namespace") };
    case.namespaces.iter().any(|it| it == namespace)
        && !matches!(
            text("kind"),
            "Pod" | "ReplicaSet" | "Deployment" | "Job" | "Node" | "Endpoints" | "Service"
        )
}
