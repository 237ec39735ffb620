//! Resolution of a namespace: from an input to an outcome, part by part.
//!
//! A part is a set of variables that constraints connect. Each part is searched alone, and fails or
//! succeeds alone. Broken input (a fault) is a failure of its own, and blocks
//!
//! * the part of a bundle whose requirements cannot be read,
//! * Subscriptions whose channel or catalog is broken (their installed operators stay),
//! * parts without answer if the broken input might have given them one,
//! * parts whose answer could be different if an unreadable catalog could be read: an outage must
//!   not change what is installed,
//! * parts that would install the package of a blocked Subscription as a dependency: that
//!   Subscription decides on its package.

mod assembly;
mod error;

use crate::cache::{Keys, ResolutionCache, STEPS_PER_CONSTRAINT, UnsolvablePart};
use crate::candidates::{Candidates, EntryRef, FaultOrigin, FaultReason, FaultSubject};
use crate::existing::{Existing, ExistingError};
use crate::explain::{self, FailureContext};
use crate::input::ResolutionInput;
use crate::outcome::{FailureKind, NamespaceFailure, Resolution, ResolutionFailure};
use crate::part_search::{self, PartEnd, PartResult, UnsatCore};
use crate::problem::{Reason, Subject, Var};
use crate::solve::{Choice, Exhausted, Index, Solver};
use crate::texts::{self, aggregate};
use error::AnswerError;
use mainstay_cause::Cause;
use mainstay_gocompat::quote;
use std::collections::{BTreeMap, BTreeSet};

/// Resolves a namespace.
pub fn resolve(input: &ResolutionInput<'_>) -> Resolution {
    run(input, Some(&|_| true), &mut ResolutionCache::none(), &mut 0)
}

/// Resolves a namespace, and explains only the failures for which `should_explain` is true. Other
/// failures have their message as their cause, and no repairs. All else is as in the outcome of
/// [`resolve`].
///
/// For callers that resolve a namespace after each change, and report only new failures.
pub fn resolve_explaining(
    input: &ResolutionInput<'_>,
    should_explain: impl Fn(&ResolutionFailure) -> bool,
) -> Resolution {
    run(input, Some(&should_explain), &mut ResolutionCache::none(), &mut 0)
}

/// Resolves a namespace again after a small change. The memory saves the search and the explanation
/// of failures that have not changed since the last resolution.
pub fn resolve_again(input: &ResolutionInput<'_>, memory: &mut ResolutionCache) -> Resolution {
    run(input, Some(&|_| true), memory, &mut 0)
}

/// Resolves a namespace without explanations: contradictions have neither message nor cause nor
/// repairs. Takes its steps from `budget`; parts for which no steps are left fail.
pub(crate) fn attempt(
    input: &ResolutionInput<'_>,
    memory: &mut ResolutionCache,
    budget: &mut u64,
) -> Resolution {
    run(input, None, memory, budget)
}

/// Decides which failures to explain.
type ExplainFilter<'w> = &'w dyn Fn(&ResolutionFailure) -> bool;

/// Without `should_explain` it searches no unsatisfiable cores, and `budget` bounds its steps.
fn run(
    input: &ResolutionInput<'_>,
    should_explain: Option<ExplainFilter<'_>>,
    memory: &mut ResolutionCache,
    budget: &mut u64,
) -> Resolution {
    let (fail_forward, exclude_global) = match input.operator_groups.as_slice() {
        [group] => (group.fail_forward, group.exclude_global),
        groups => {
            let count = groups.len();
            return fail_namespace(
                input,
                format!("expected 1 OperatorGroup in the namespace, found {count}"),
                None,
            );
        }
    };
    if let Some(name) = input.repeated() {
        return fail_namespace(
            input,
            format!("duplicate identifier {} in input", quote(&name)),
            None,
        );
    }
    let existing = Existing::of(input, fail_forward);
    let candidates = Candidates::of(input, exclude_global, &existing);
    if let Some(error) = &existing.error {
        let message = faults_message(&candidates).unwrap_or_default();
        // With an unreadable catalog beside it, this error is one of several reasons.
        let alone = candidates.catalog_faults().count() == 1;
        return fail_namespace(input, message, Some(error).filter(|_| alone));
    }
    let index = Index::new(&candidates.problem);
    let mut resolution = ResolutionRun {
        input,
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

/// The failure of a whole namespace; `existing` is the error of its existing
/// `ClusterServiceVersion`s, if that is the reason.
fn fail_namespace(
    input: &ResolutionInput<'_>,
    message: String,
    existing: Option<&ExistingError>,
) -> Resolution {
    let subscriptions: BTreeSet<&str> =
        input.subscriptions.iter().map(|subscription| subscription.name.as_str()).collect();
    let summary = NamespaceFailure { kind: FailureKind::Error, message: message.clone() };
    let mut failure = error(message, subscriptions.into_iter().map(str::to_owned).collect());
    explain::explain_namespace(input, &mut failure, existing);
    Resolution { failures: vec![failure], summary: Some(summary), ..Resolution::default() }
}

fn error(message: String, subscriptions: Vec<String>) -> ResolutionFailure {
    ResolutionFailure {
        kind: FailureKind::Error,
        cause: Cause::new(message.clone()),
        message,
        subscriptions,
        csvs: Vec::new(),
        repairs: Vec::new(),
    }
}

/// Upstream's message for all faults. Faults of existing `ClusterServiceVersion`s come first, then
/// those of catalogs, then those of Subscriptions and demands.
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

/// A part of the problem, which shares no variable with the others.
struct Part<'i> {
    constraints: &'i [u32],
    /// Its Subscriptions, by index.
    subscriptions: Vec<usize>,
    /// Whether it has a mandatory variable.
    has_mandatory: bool,
    state: State,
}

impl Part<'_> {
    /// Its existing `ClusterServiceVersion`s without Subscription, by name.
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
    /// The chosen entries of catalogs.
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

struct ResolutionRun<'r, 'a> {
    input: &'r ResolutionInput<'a>,
    candidates: &'r Candidates<'r>,
    /// Decides which failures to explain; none if the resolution searches no unsatisfiable cores.
    should_explain: Option<ExplainFilter<'r>>,
    memory: &'r mut ResolutionCache,
    parts: Vec<Part<'r>>,
    failures: Vec<ResolutionFailure>,
    /// The unsatisfiable cores of those failures that are contradictions, by their index.
    cores: BTreeMap<usize, UnsatCore>,
    /// The message of the first contradiction.
    contradiction: Option<String>,
    /// The first error of an answer.
    answer_error: Option<String>,
}

impl<'r> ResolutionRun<'r, '_> {
    /// Adds the failures of faults, and fails the parts that they block.
    fn fail_faults(&mut self, index: &Index<'_>) {
        let candidates = self.candidates;
        for source in candidates.sources.iter().skip(1) {
            if let Some(catalog_error) = &source.fault {
                let subscriptions = candidates.faults.iter().filter_map(|fault| {
                    match (&fault.reason, &fault.subject) {
                        (FaultReason::UseCatalog(error), FaultSubject::Subscription(at))
                            if error == catalog_error =>
                        {
                            Some(*at)
                        }
                        _ => None,
                    }
                });
                let names = self.names(&subscriptions.collect::<Vec<_>>());
                self.failures.push(error(catalog_error.to_string(), names));
            }
        }
        let mut unreadable: BTreeMap<u32, Vec<String>> = BTreeMap::new();
        for fault in &candidates.faults {
            match fault.subject {
                // Several Subscriptions can have the same channel. Those of an unreadable catalog
                // are in its failure already.
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

    /// Searches the open parts.
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
        // Channels without order are failures even if they block no part.
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

    /// Marks a part as solved, or gives its failure.
    fn evaluate(&mut self, at: usize, result: PartResult) -> Option<ResolutionFailure> {
        let text = match result.end {
            PartEnd::Answer(choices) => match self.validate_answer(&choices) {
                Ok(answer) => {
                    self.parts[at].state = State::Solved(answer);
                    return None;
                }
                Err(error) => {
                    let text = error.to_string();
                    // An unreadable catalog has a failure of its own.
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
                    Exhausted::Memory => {
                        "no answer was found within the memory limit, the search was given up"
                            .to_owned()
                    }
                };
                self.answer_error.get_or_insert_with(|| text.clone());
                text
            }
        };
        Some(self.failure(at, text))
    }

    /// Keeps the failure of a part for later resolutions and for what-if resolutions.
    fn remember(
        &mut self,
        at: usize,
        steps: u64,
        failure: Option<&ResolutionFailure>,
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
    fn failure(&self, part: usize, message: String) -> ResolutionFailure {
        let part = &self.parts[part];
        let mut failure = error(message, self.names(&part.subscriptions));
        failure.csvs = part.csvs(self.candidates);
        failure
    }

    /// The chosen entries of catalogs, or the error of the answer.
    fn validate_answer(&self, choices: &[Choice]) -> Result<Vec<(Var, EntryRef)>, AnswerError> {
        let candidates = self.candidates;
        let entry = |var: Var| match candidates.problem.subjects[var.index()] {
            Subject::Bundle(at) => Some(at),
            _ => None,
        };
        for choice in choices {
            let Some(constraint) = choice.constraint else { continue };
            let constraint = &candidates.problem.constraints[constraint as usize];
            let requirer_source = match (&constraint.reason, constraint.subject.and_then(entry)) {
                (Reason::Required(_), Some(at)) => at.source,
                (Reason::DemandWants, _) => 0,
                _ => continue,
            };
            let Some(chosen) = entry(choice.chosen) else { continue };
            let rank = Candidates::rank(requirer_source, chosen.source);
            let preferred = candidates.sources.iter().enumerate().filter_map(|(at, source)| {
                source.fault.as_ref().filter(|_| Candidates::rank(requirer_source, at) < rank)
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

    /// The failure of a part without answer, with this unsatisfiable core.
    fn contradiction(&mut self, part: usize, core: &UnsatCore) -> ResolutionFailure {
        let candidates = self.candidates;
        let mut failure = self.failure(part, String::new());
        failure.kind = FailureKind::NotSatisfiable;
        if self.should_explain.is_none() {
            return failure;
        }
        failure.message = texts::unsatisfiable(&texts::reasons(candidates, core));
        let core = &core.reasons;
        // Where a `ClusterServiceVersion` stays because of another failure, upstream reports that
        // one.
        let stays = |at: &usize| {
            matches!(candidates.problem.constraints[*at].reason, Reason::SubscriptionUnmet(_))
        };
        if !core.iter().any(stays) {
            self.contradiction.get_or_insert_with(|| failure.message.clone());
        }
        // A broken channel or catalog may have what is missing.
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

    fn finish(mut self) -> Resolution {
        let mut outcome = self.assemble();
        if let Some(should_explain) = self.should_explain {
            let mut context =
                FailureContext::new(self.input, &outcome, &self.failures, self.memory);
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
            let rank = |failure: &ResolutionFailure| failure.kind == FailureKind::NotSatisfiable;
            (rank(a).cmp(&rank(b)))
                .then_with(|| a.subscriptions.is_empty().cmp(&b.subscriptions.is_empty()))
                .then_with(|| a.subscriptions.cmp(&b.subscriptions))
                .then_with(|| a.message.cmp(&b.message))
        });
        let error = |message| NamespaceFailure { kind: FailureKind::Error, message };
        let not_satisfiable =
            |message| NamespaceFailure { kind: FailureKind::NotSatisfiable, message };
        outcome.summary = faults_message(self.candidates)
            .map(error)
            .or_else(|| self.contradiction.take().map(not_satisfiable))
            .or_else(|| self.answer_error.take().map(error));
        outcome.failures = self.failures;
        outcome
    }
}
