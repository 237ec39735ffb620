//! Runs cases, each in a cluster of its own, and compares.

use super::case::{Case, Step};
use super::compare::{self, Compared, Comparison, Finding, Key};
use super::listed::{Divided, Lists};
use super::normal::{self, Names};
use super::place::Place;
use super::shown;
use futures::StreamExt;
use mainstay_object::Object;
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// How long a case may take in all.
const LONGEST: Duration = Duration::from_mins(15);

/// How a step compares.
#[derive(Clone, Debug, Default)]
pub struct JudgedStep {
    /// Its folder.
    pub name: String,
    /// What differs and is not wanted.
    pub open: Vec<Finding>,
    /// What differs and is wanted.
    pub wanted: Vec<Finding>,
    /// How many fields differ as wanted without a citation.
    pub uncited: usize,
    /// How much was compared.
    pub compared: Compared,
}

impl JudgedStep {
    /// The number of the step, two digits.
    pub fn number(&self) -> &str {
        self.name.get(..2).unwrap_or(&self.name)
    }
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

impl Judged {
    /// How much was compared in all steps.
    pub fn compared(&self) -> Compared {
        let mut all = Compared::default();
        self.steps.iter().for_each(|step| all += &step.compared);
        all
    }
}

/// How many cases run at the same time: they wait much more than they work, for a cluster is at rest
/// when nothing was written for seconds.
pub fn jobs() -> usize {
    24 * std::thread::available_parallelism().map_or(2, usize::from)
}

/// Runs cases, at most `most` at a time, and compares them. `hear` is told of each when it is done.
pub async fn judge(
    cases: Vec<Case>,
    lists: &Arc<Lists>,
    most: usize,
    hear: impl Fn(&Judged),
) -> Vec<Judged> {
    let running = cases.into_iter().map(|case| {
        let (case, lists) = (Arc::new(case), Arc::clone(lists));
        async move {
            let (id, rule) = (case.id.clone(), case.rule.clone());
            let task = tokio::spawn(one(case, lists));
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

async fn one(case: Arc<Case>, lists: Arc<Lists>) -> Judged {
    let clock = mainstay_clock::Clock::system();
    let mut judged = Judged { id: case.id.clone(), rule: case.rule.clone(), ..Judged::default() };
    let all = tokio::time::timeout(LONGEST, steps(&case, &lists, &mut judged.steps)).await;
    judged.broken = match all {
        Ok(Ok(())) => None,
        Ok(Err(error)) => Some(format!("{error:#}")),
        Err(_) => Some("it took too long".to_owned()),
    };
    judged.took = clock.elapsed();
    judged
}

async fn steps(case: &Case, lists: &Lists, judged: &mut Vec<JudgedStep>) -> anyhow::Result<()> {
    let mut place = Place::of(case).await?;
    let mut names = Names::of(case.steps.iter().flat_map(|step| &step.objects));
    let recorded: Vec<Vec<Value>> = case
        .steps
        .iter()
        .map(|step| {
            let mut objects = step.objects.clone();
            normal::level_all(&mut objects);
            objects
        })
        .collect();
    for (at, step) in case.steps.iter().enumerate() {
        let done = place.carry_out(step, &names.known).await?;
        let mut found = Compare::default();
        names.learn(&place.plans().await?);
        let objects = place.objects().await?;
        names.learn(&objects);
        let addresses = place.addresses();
        let mut ours: Vec<Value> = objects
            .iter()
            .filter(|object| normal::belongs(object, &case.id, &case.namespaces))
            .filter(|object| !is_layout(object) || records(step, object))
            .map(|object| normal::ours(object, &names, &addresses))
            .collect();
        normal::level_all(&mut ours);
        found.add(compare::objects(&recorded[at], &ours, &elsewhere(&recorded, at)));

        let events: Vec<Value> = place
            .events()
            .await?
            .iter()
            .map(|event| normal::event(event, &names, &addresses))
            .filter(|event| of_case(event, case) && !normal::is_chance(event))
            .collect();
        let mut recorded_events = step.events.clone();
        recorded_events.retain(|event| !normal::is_chance(event));
        found.add(compare::events(&recorded_events, &events));
        found.add(compare::metrics(&step.metrics, &place.metrics(&case.id)));

        let number = step.number();
        if let (Some(command), Some(exit)) = (&done.command, step.exit) {
            let ours = if command.exit == exit {
                Value::from(exit)
            } else {
                format!("{} {}", command.exit, command.error.trim()).into()
            };
            found.add(compare::command(number, "exit", &exit.into(), &ours));
        }
        if let Some(printed) = place.printed(step, &names.known).await? {
            found.add(compare::command(number, "printed", &shown::recorded(step), &printed));
        }
        // An object that comes back at once may be gone unseen; that it is there is judged by the objects.
        let seen =
            done.reached || !step.until.as_ref().is_some_and(|until| until.ends_with(" gone"));
        if step.until.is_some() && seen {
            found.add(compare::step(number, "until", step.reached, done.reached));
        }
        found.add(compare::step(number, "rest", true, done.rests));
        let Divided { wanted, open, uncited } =
            lists.divide(&case.rule, &case.id, number, found.findings);
        let (name, compared) = (step.name.clone(), found.compared);
        judged.push(JudgedStep { name, open, wanted, uncited, compared });
    }
    place.end().await;
    Ok(())
}

/// What the parts of a step differ in.
#[derive(Debug, Default)]
struct Compare {
    findings: Vec<Finding>,
    compared: Compared,
}

impl Compare {
    fn add(&mut self, (findings, compared): Comparison) {
        self.findings.extend(findings);
        self.compared += &compared;
    }
}

/// What was recorded of objects in other steps than the one `at`: in the nearest one, an earlier one
/// if two are as near. Objects with generated names are found by these as well, also in the step itself.
fn elsewhere(recorded: &[Vec<Value>], at: usize) -> BTreeMap<Key, Value> {
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

/// Whether an object is part of the standard layout, which was only recorded where it counts.
fn is_layout(object: &Object) -> bool {
    matches!((object.kind(), object.name()), ("OLMConfig", _) | ("OperatorGroup", "olm-operators"))
}

fn records(step: &Step, object: &Object) -> bool {
    let is = |entry: &Value| {
        entry["kind"] == object.kind() && entry["metadata"]["name"] == object.name()
    };
    step.objects.iter().any(is)
}

/// Whether an event is one of those that were recorded: of the case's namespaces, and not told by
/// what stands in for kubelets and Kubernetes' own controllers.
fn of_case(event: &Value, case: &Case) -> bool {
    let text = |key: &str| event[key].as_str().unwrap_or_default();
    let namespace = if text("kind") == "Namespace" { text("name") } else { text("namespace") };
    case.namespaces.iter().any(|listed_namespace| listed_namespace == namespace)
        && !matches!(
            text("kind"),
            "Pod" | "ReplicaSet" | "Deployment" | "Job" | "Node" | "Endpoints" | "Service"
        )
}
