//! From a world to an outcome, part by part.
//!
//! A part is what is connected by constraints. Parts are searched one after the other, and each
//! fails or succeeds by itself. Broken things fail by themselves, too, and take with them
//!
//! * what a bundle is part of that says something unreadable,
//! * Subscriptions whose channel or catalog is broken (what they have installed stays),
//! * parts that have no answer where something broken might have given one,
//! * parts whose answer would be another one if a catalog could be asked that cannot: what is
//!   installed must not depend on an outage,
//! * parts that would install the package of a blocked Subscription: that is its own decision.

mod assembly;
mod error;

use crate::candidates::{Candidates, EntryRef, FaultOrigin, FaultReason, FaultSubject};
use crate::existing::{Existing, ExistingError};
use crate::explain::{self, FailureContext};
use crate::memory::{Keys, Memory, STEPS_PER_CONSTRAINT, UnsolvablePart};
use crate::outcome::{Failure, FailureKind, Outcome, Summary};
use crate::part_search::{self, PartEnd, PartResult, UnsatCore};
use crate::problem::{Reason, Subject, Var};
use crate::solve::{Choice, Exhausted, Index, Solver};
use crate::texts::{self, aggregate};
use crate::world::World;
use error::AnswerError;
use mainstay_cause::Cause;
use mainstay_gocompat::quote;
use std::collections::{BTreeMap, BTreeSet};

/// Resolves a namespace.
pub fn resolve(world: &World<'_>) -> Outcome {
    run(world, Some(&|_| true), &mut Memory::none(), &mut 0)
}

/// Resolves a namespace, and explains only those failures for which `should_explain` says so: others have
/// their message as their cause, and no repairs. What is chosen and every message is what
/// [`resolve`] gives.
///
/// For whoever resolves again and again, and tells people what is new.
pub fn resolve_explaining(world: &World<'_>, should_explain: impl Fn(&Failure) -> bool) -> Outcome {
    run(world, Some(&should_explain), &mut Memory::none(), &mut 0)
}

/// Resolves a namespace that was resolved before, nearly as it is now: what failed then and would
/// fail now for the same reasons is neither searched nor explained again.
pub fn resolve_again(world: &World<'_>, memory: &mut Memory) -> Outcome {
    run(world, Some(&|_| true), memory, &mut 0)
}

/// The same without reasons: contradictions have neither message nor cause nor repairs. It takes
/// what it costs from a budget of steps; parts for which nothing is left fail.
pub(crate) fn attempt(world: &World<'_>, memory: &mut Memory, budget: &mut u64) -> Outcome {
    run(world, None, memory, budget)
}

/// Which failures are explained.
type ExplainFilter<'w> = &'w dyn Fn(&Failure) -> bool;

/// Without `should_explain` reasons are not looked for, and all has to be done within the budget.
fn run(
    world: &World<'_>,
    should_explain: Option<ExplainFilter<'_>>,
    memory: &mut Memory,
    budget: &mut u64,
) -> Outcome {
    let (fail_forward, exclude_global) = match world.operator_groups.as_slice() {
        [group] => (group.fail_forward, group.exclude_global),
        groups => {
            let count = groups.len();
            return fail_namespace(
                world,
                format!("expected 1 OperatorGroup in the namespace, found {count}"),
                None,
            );
        }
    };
    if let Some(name) = world.repeated() {
        return fail_namespace(
            world,
            format!("duplicate identifier {} in input", quote(&name)),
            None,
        );
    }
    let existing = Existing::of(world, fail_forward);
    let candidates = Candidates::of(world, exclude_global, &existing);
    if let Some(error) = &existing.error {
        let message = faults_message(&candidates).unwrap_or_default();
        // Beside a catalog that cannot be asked it is one of several reasons.
        let alone = candidates.catalog_faults().count() == 1;
        return fail_namespace(world, message, Some(error).filter(|_| alone));
    }
    let index = Index::new(&candidates.problem);
    let mut resolution = Resolution {
        world,
        candidates: &candidates,
        should_explain,
        memory,
        parts: index.parts().map(|part| Part::new(&candidates, part)).collect(),
        failures: Vec::new(),
        cores: BTreeMap::new(),
        contradiction: None,
        answer_error: None,
    };
    resolution.fail_faults(&index);
    if resolution.should_explain.is_none() {
        let problem_cost = STEPS_PER_CONSTRAINT * candidates.problem.constraints.len() as u64;
        *budget = budget.saturating_sub(problem_cost.saturating_add(candidates.steps()));
    }
    resolution.search(&index, budget);
    resolution.finish()
}

/// The failure of a whole namespace, for its existing operators where they cannot be told.
fn fail_namespace(world: &World<'_>, message: String, existing: Option<&ExistingError>) -> Outcome {
    let subscriptions: BTreeSet<&str> =
        world.subscriptions.iter().map(|subscription| subscription.name.as_str()).collect();
    let summary = Summary { kind: FailureKind::Error, message: message.clone() };
    let mut failure = error(message, subscriptions.into_iter().map(str::to_owned).collect());
    explain::explain_namespace(world, &mut failure, existing);
    Outcome { failures: vec![failure], summary: Some(summary), ..Outcome::default() }
}

fn error(message: String, subscriptions: Vec<String>) -> Failure {
    Failure {
        kind: FailureKind::Error,
        cause: Cause::new(message.clone()),
        message,
        subscriptions,
        csvs: Vec::new(),
        repairs: Vec::new(),
    }
}

/// What the original says of broken things. What exists comes first, then catalogs, then what
/// stands in the way of Subscriptions.
fn faults_message(candidates: &Candidates<'_>) -> Option<String> {
    let mut texts: BTreeMap<FaultOrigin, Vec<String>> = BTreeMap::new();
    let catalogs: Vec<String> = candidates.catalog_faults().map(ToString::to_string).collect();
    for fault in &candidates.faults {
        if !matches!(fault.reason, FaultReason::UseCatalog(_)) {
            texts.entry(fault.origin).or_default().push(fault.reason.to_string());
        }
    }
    if let Some(existing) = texts.get(&FaultOrigin::Existing) {
        return Some(aggregate(existing));
    }
    let each: Vec<String> = texts.values().map(|texts| aggregate(texts)).collect();
    [catalogs, each].iter().find(|texts| !texts.is_empty()).map(|texts| aggregate(texts))
}

/// A part of the problem that has nothing to do with the others.
struct Part<'i> {
    constraints: &'i [u32],
    /// Its Subscriptions, by index.
    subscriptions: Vec<usize>,
    /// Whether anything must be there.
    has_mandatory: bool,
    state: State,
}

impl Part<'_> {
    /// The existing versions in it that no Subscription has, by name.
    fn csvs(&self, candidates: &Candidates<'_>) -> Vec<String> {
        let names: BTreeSet<&str> = self
            .constraints
            .iter()
            .map(|at| &candidates.problem.constraints[*at as usize])
            .filter(|constraint| matches!(constraint.reason, Reason::Unsubscribed))
            .filter_map(|constraint| {
                match candidates.problem.subjects[constraint.subject?.index()] {
                    Subject::Bundle(at) => Some(&*candidates.entry(at).0.name),
                    Subject::Subscription(_) | Subject::Demand(_) => None,
                }
            })
            .collect();
        names.into_iter().map(str::to_owned).collect()
    }
}

enum State {
    Open,
    /// What was chosen from catalogs.
    Solved(Vec<(Var, EntryRef)>),
    Failed,
}

impl<'i> Part<'i> {
    fn new(candidates: &Candidates<'_>, constraints: &'i [u32]) -> Self {
        let mut part = Self {
            constraints,
            subscriptions: Vec::new(),
            has_mandatory: false,
            state: State::Open,
        };
        for &at in constraints {
            let constraint = &candidates.problem.constraints[at as usize];
            if matches!(constraint.rule, crate::problem::Rule::Mandatory) {
                part.has_mandatory = true;
            }
            let subject = constraint.subject.map(|var| candidates.problem.subjects[var.index()]);
            if let (Reason::Exists, Some(Subject::Subscription(at))) = (&constraint.reason, subject)
            {
                part.subscriptions.push(at);
            }
        }
        part
    }
}

struct Resolution<'r, 'a> {
    world: &'r World<'a>,
    candidates: &'r Candidates<'r>,
    /// Which failures are explained; none when not even reasons are looked for.
    should_explain: Option<ExplainFilter<'r>>,
    memory: &'r mut Memory,
    parts: Vec<Part<'r>>,
    failures: Vec<Failure>,
    /// The reasons of those that are contradictions.
    cores: BTreeMap<usize, UnsatCore>,
    /// The message of the first contradiction.
    contradiction: Option<String>,
    /// The first thing that is wrong with an answer.
    answer_error: Option<String>,
}

impl<'r> Resolution<'r, '_> {
    /// Fails what is broken by itself.
    fn fail_faults(&mut self, index: &Index<'_>) {
        let candidates = self.candidates;
        for source in candidates.sources.iter().skip(1) {
            if let Some(catalog_error) = &source.fault {
                let named = candidates.faults.iter().filter_map(|fault| {
                    match (&fault.reason, &fault.subject) {
                        (FaultReason::UseCatalog(error), FaultSubject::Subscription(at))
                            if error == catalog_error =>
                        {
                            Some(*at)
                        }
                        _ => None,
                    }
                });
                let names = self.names(&named.collect::<Vec<_>>());
                self.failures.push(error(catalog_error.to_string(), names));
            }
        }
        let mut unreadable: BTreeMap<u32, Vec<String>> = BTreeMap::new();
        for fault in &candidates.faults {
            match fault.subject {
                // Several can be about the same channel; who names a catalog is counted already.
                FaultSubject::Subscription(at) => {
                    let (name, text) = (self.names(&[at]), fault.reason.to_string());
                    match self.failures.iter_mut().find(|failure| failure.message == text) {
                        Some(failure) => {
                            failure.subscriptions.extend(name);
                            failure.subscriptions.sort();
                            failure.subscriptions.dedup();
                        }
                        None => self.failures.push(error(text, name)),
                    }
                }
                FaultSubject::Bundle(var) => {
                    let texts = unreadable.entry(index.part_of(var)).or_default();
                    texts.push(fault.reason.to_string());
                }
                FaultSubject::Channel(_) => {}
            }
        }
        for (at, texts) in unreadable {
            let at = at as usize;
            let failure = if at < self.parts.len() {
                self.parts[at].state = State::Failed;
                self.failure(at, aggregate(&texts))
            } else {
                error(aggregate(&texts), Vec::new())
            };
            self.failures.push(failure);
        }
    }

    fn names(&self, subscriptions: &[usize]) -> Vec<String> {
        let names: BTreeSet<&str> =
            subscriptions.iter().map(|at| &*self.candidates.subscriptions[*at].name).collect();
        names.into_iter().map(str::to_owned).collect()
    }

    /// Searches the parts that are open.
    fn search(&mut self, index: &Index<'r>, budget: &mut u64) {
        let mut keys = Keys::new(self.candidates);
        let (mut unsolvable, mut open, mut parts) = (BTreeMap::new(), Vec::new(), Vec::new());
        for (at, part) in self.parts.iter().enumerate() {
            if !matches!(part.state, State::Open) || !part.has_mandatory {
                continue;
            }
            if let Some(known) = self.memory.unsolvable(&mut keys, part.constraints) {
                unsolvable.insert(at, known.clone());
            } else {
                open.push(at);
                parts.push(part.constraints);
            }
        }
        let mut solver = Solver::new(index);
        let results = match self.should_explain {
            Some(_) => part_search::search_all(&mut solver, &parts),
            None => part_search::search_within(&mut solver, &parts, budget),
        };
        let mut results: BTreeMap<usize, PartResult> = open.into_iter().zip(results).collect();
        for at in 0..self.parts.len() {
            let failure = if let Some(known) = unsolvable.remove(&at) {
                let mut failure = self.failure(at, known.message);
                failure.kind = known.kind;
                self.contradiction = self.contradiction.take().or(known.contradiction);
                self.answer_error = self.answer_error.take().or(known.answer_error);
                Some(failure)
            } else if let Some(result) = results.remove(&at) {
                let before = (self.contradiction.take(), self.answer_error.take());
                let steps = result.steps;
                let failure = self.evaluate(at, result);
                self.remember(at, steps, failure.as_ref(), &mut keys);
                self.contradiction = before.0.or(self.contradiction.take());
                self.answer_error = before.1.or(self.answer_error.take());
                failure
            } else {
                continue;
            };
            if let Some(failure) = failure {
                self.parts[at].state = State::Failed;
                self.failures.push(failure);
            }
        }
        // Channels that offer nothing are told about even if nobody misses them.
        for fault in &self.candidates.faults {
            let known =
                |text: &str| self.failures.iter().any(|failure| failure.message.contains(text));
            if !matches!(fault.subject, FaultSubject::Channel(_)) {
                continue;
            }
            let text = fault.reason.to_string();
            if !known(&text) {
                self.failures.push(error(text, Vec::new()));
            }
        }
    }

    /// What comes of the search of a part: an answer, or a failure.
    fn evaluate(&mut self, at: usize, result: PartResult) -> Option<Failure> {
        let text = match result.end {
            PartEnd::Answer(choices) => match self.validate_answer(&choices) {
                Ok(answer) => {
                    self.parts[at].state = State::Solved(answer);
                    return None;
                }
                Err(error) => {
                    let text = error.to_string();
                    // A catalog is told about by itself.
                    if !matches!(error, AnswerError::UseCatalog(_)) {
                        self.answer_error.get_or_insert_with(|| text.clone());
                    }
                    text
                }
            },
            PartEnd::Contradiction(core) => {
                let failure = self.contradiction(at, &core);
                self.cores.insert(self.failures.len(), core);
                return Some(failure);
            }
            PartEnd::GivenUp(why) => {
                let text = match why {
                    Exhausted::Steps => format!(
                        "no answer was found within {} steps, the search was given up",
                        result.steps
                    ),
                    Exhausted::Memory => "no answer was found before there was more to remember \
                                          than is kept, the search was given up"
                        .to_owned(),
                };
                self.answer_error.get_or_insert_with(|| text.clone());
                text
            }
        };
        Some(self.failure(at, text))
    }

    /// Takes note of a part for resolutions that come after, and for trials.
    fn remember(
        &mut self,
        at: usize,
        steps: u64,
        failure: Option<&Failure>,
        keys: &mut Keys<'_, '_>,
    ) {
        let constraints = self.parts[at].constraints;
        self.memory.spend(steps, constraints.len());
        if let Some(failure) = failure
            && self.should_explain.is_some()
        {
            let unsolvable = UnsolvablePart {
                kind: failure.kind,
                message: failure.message.clone(),
                contradiction: self.contradiction.clone(),
                answer_error: self.answer_error.clone(),
            };
            self.memory.remember_unsolvable(keys, constraints, steps, unsolvable);
        }
    }

    /// The failure of a part.
    fn failure(&self, part: usize, message: String) -> Failure {
        let part = &self.parts[part];
        let mut failure = error(message, self.names(&part.subscriptions));
        failure.csvs = part.csvs(self.candidates);
        failure
    }

    /// What was chosen from catalogs, or what is wrong with it.
    fn validate_answer(&self, choices: &[Choice]) -> Result<Vec<(Var, EntryRef)>, AnswerError> {
        let candidates = self.candidates;
        let entry = |var: Var| match candidates.problem.subjects[var.index()] {
            Subject::Bundle(at) => Some(at),
            _ => None,
        };
        for choice in choices {
            let Some(constraint) = choice.constraint else { continue };
            let constraint = &candidates.problem.constraints[constraint as usize];
            let of = match (&constraint.reason, constraint.subject.and_then(entry)) {
                (Reason::Required(_), Some(at)) => at.source,
                (Reason::DemandWants, _) => 0,
                _ => continue,
            };
            let Some(chosen) = entry(choice.chosen) else { continue };
            let rank = Candidates::rank(of, chosen.source);
            let preferred = candidates.sources.iter().enumerate().filter_map(|(at, source)| {
                source.fault.as_ref().filter(|_| Candidates::rank(of, at) < rank)
            });
            if let Some(fault) = preferred.into_iter().next() {
                return Err(fault.clone().into());
            }
        }
        let answer: Vec<(Var, EntryRef)> = choices
            .iter()
            .filter_map(|choice| Some((choice.chosen, entry(choice.chosen)?)))
            .filter(|(_, at)| at.source != 0)
            .collect();
        let mut counts = Vec::new();
        for &(var, at) in &answer {
            if candidates.is_unreadable(at) {
                let identifier = candidates.identifier(var);
                return Err(AnswerError::ParseIdentifier { identifier });
            }
            match candidates.occurrences(at) {
                1 => {}
                count => counts.push(count),
            }
        }
        if counts.is_empty() { Ok(answer) } else { Err(AnswerError::NotOnce(counts)) }
    }

    /// The failure of a part without an answer, for these reasons.
    fn contradiction(&mut self, part: usize, core: &UnsatCore) -> Failure {
        let candidates = self.candidates;
        let mut failure = self.failure(part, String::new());
        failure.kind = FailureKind::NotSatisfiable;
        if self.should_explain.is_none() {
            return failure;
        }
        failure.message = texts::unsatisfiable(&texts::reasons(candidates, core));
        let core = &core.reasons;
        // Where something stays because of another failure, that one is the original's.
        let stays = |at: &usize| {
            matches!(candidates.problem.constraints[*at].reason, Reason::SubscriptionUnmet(_))
        };
        if !core.iter().any(stays) {
            self.contradiction.get_or_insert_with(|| failure.message.clone());
        }
        // Something broken may hold what is missing.
        let channels = candidates.faults.iter().filter_map(|fault| match fault.subject {
            FaultSubject::Channel(at) if core.contains(&at) => Some(fault.reason.to_string()),
            _ => None,
        });
        let mut missing: Vec<String> = channels.collect();
        let needs = |at: &usize| {
            matches!(
                candidates.problem.constraints[*at].reason,
                Reason::Required(_) | Reason::DemandWants
            )
        };
        if missing.is_empty() && core.iter().any(needs) {
            missing.extend(candidates.catalog_faults().map(ToString::to_string));
        }
        if !missing.is_empty() {
            failure.kind = FailureKind::Error;
            failure.message = aggregate(&missing);
        }
        failure
    }

    fn finish(mut self) -> Outcome {
        let mut outcome = self.assemble();
        if let Some(should_explain) = self.should_explain {
            let mut context =
                FailureContext::new(self.world, &outcome, &self.failures, self.memory);
            let mut new_explanations = Vec::new();
            for (at, failure) in self.failures.iter_mut().enumerate() {
                if !should_explain(failure) {
                    failure.cause = Cause::new(failure.message.clone());
                    continue;
                }
                if let Some(explanation) =
                    self.memory.explanation(&failure.message, &failure.subscriptions)
                {
                    (failure.cause, failure.repairs) = explanation.clone();
                    continue;
                }
                explain::explain(&mut context, self.candidates, failure, self.cores.get(&at));
                new_explanations.push(at);
            }
            drop(context);
            for at in new_explanations {
                self.memory.remember_explanation(&self.failures[at]);
            }
        }
        self.failures.sort_by(|a, b| {
            let rank = |failure: &Failure| failure.kind == FailureKind::NotSatisfiable;
            (rank(a).cmp(&rank(b)))
                .then_with(|| a.subscriptions.is_empty().cmp(&b.subscriptions.is_empty()))
                .then_with(|| a.subscriptions.cmp(&b.subscriptions))
                .then_with(|| a.message.cmp(&b.message))
        });
        let error = |message| Summary { kind: FailureKind::Error, message };
        let not_satisfiable = |message| Summary { kind: FailureKind::NotSatisfiable, message };
        outcome.summary = faults_message(self.candidates)
            .map(error)
            .or_else(|| self.contradiction.take().map(not_satisfiable))
            .or_else(|| self.answer_error.take().map(error));
        outcome.failures = self.failures;
        outcome
    }
}
