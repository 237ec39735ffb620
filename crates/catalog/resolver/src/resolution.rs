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

use crate::candidates::{Asking, Candidates, EntryRef, What};
use crate::existing::Existing;
use crate::explain::{self, Situation};
use crate::memory::{Dead, Keys, Memory};
use crate::outcome::{
    Chosen, Failure, FailureKind, Install, NewSubscription, Outcome, Summary, UpdatedSubscription,
};
use crate::problem::{Reason, Subject, Var};
use crate::solve::{self, Choice, Exhausted, Index, Solver};
use crate::texts::{self, aggregate};
use crate::world::{CatalogKey, Subscription, World};
use mainstay_cause::Cause;
use mainstay_version::quote;
use std::collections::{BTreeMap, BTreeSet};

/// Resolves a namespace.
pub fn resolve(world: &World<'_>) -> Outcome {
    run(world, true, &mut Memory::none())
}

/// Resolves a namespace that was resolved before, nearly as it is now: what failed then and would
/// fail now for the same reasons is neither searched nor explained again.
pub fn resolve_again(world: &World<'_>, memory: &mut Memory) -> Outcome {
    run(world, true, memory)
}

/// The same without reasons: contradictions have neither message nor cause nor repairs.
pub(crate) fn attempt(world: &World<'_>) -> Outcome {
    run(world, false, &mut Memory::none())
}

fn run(world: &World<'_>, explained: bool, memory: &mut Memory) -> Outcome {
    let (fail_forward, exclude_global) = match world.operator_groups.as_slice() {
        [group] => (group.fail_forward, group.exclude_global),
        groups => {
            let count = groups.len();
            return whole(
                world,
                format!("expected 1 OperatorGroup in the namespace, found {count}"),
            );
        }
    };
    if let Some(name) = world.repeated() {
        return whole(world, format!("duplicate identifier {} in input", quote(&name)));
    }
    let existing = Existing::of(world, fail_forward);
    let candidates = Candidates::of(world, exclude_global, &existing);
    if existing.error.is_some() {
        let message = broken(&candidates).unwrap_or_default();
        return whole(world, message);
    }
    let index = Index::new(&candidates.problem);
    let mut resolution = Resolution {
        world,
        candidates: &candidates,
        explained,
        memory,
        parts: index.parts().map(|part| Part::new(&candidates, part)).collect(),
        failures: Vec::new(),
        cores: BTreeMap::new(),
        contradiction: None,
        misfit: None,
    };
    resolution.note_faults(&index);
    resolution.search(&index);
    resolution.finish()
}

/// The failure of a whole namespace.
fn whole(world: &World<'_>, message: String) -> Outcome {
    let subscriptions: BTreeSet<&str> =
        world.subscriptions.iter().map(|subscription| subscription.name.as_str()).collect();
    let summary = Summary { kind: FailureKind::Error, message: message.clone() };
    let mut failure = error(message, subscriptions.into_iter().map(str::to_owned).collect());
    explain::whole(world, &mut failure);
    Outcome { failures: vec![failure], summary: Some(summary), ..Outcome::default() }
}

fn error(message: String, subscriptions: Vec<String>) -> Failure {
    Failure {
        kind: FailureKind::Error,
        cause: Cause::new(message.clone()),
        message,
        subscriptions,
        repairs: Vec::new(),
    }
}

/// What the original says of broken things. What exists comes first, then catalogs, then what
/// stands in the way of Subscriptions.
fn broken(candidates: &Candidates<'_>) -> Option<String> {
    let mut texts: BTreeMap<Asking, Vec<String>> = BTreeMap::new();
    let catalogs: Vec<String> =
        candidates.sources.iter().filter_map(|source| source.fault.clone()).collect();
    for fault in &candidates.faults {
        if !catalogs.contains(&fault.text) {
            texts.entry(fault.asking).or_default().push(fault.text.clone());
        }
    }
    if let Some(existing) = texts.get(&Asking::Existing) {
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
    asks: bool,
    state: State,
}

enum State {
    Open,
    /// What was chosen from catalogs.
    Solved(Vec<(Var, EntryRef)>),
    Failed,
}

impl<'i> Part<'i> {
    fn new(candidates: &Candidates<'_>, constraints: &'i [u32]) -> Self {
        let mut part =
            Self { constraints, subscriptions: Vec::new(), asks: false, state: State::Open };
        for &at in constraints {
            let constraint = &candidates.problem.constraints[at as usize];
            if matches!(constraint.rule, crate::problem::Rule::Mandatory) {
                part.asks = true;
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
    explained: bool,
    memory: &'r mut Memory,
    parts: Vec<Part<'r>>,
    failures: Vec<Failure>,
    /// The reasons of those that are contradictions.
    cores: BTreeMap<usize, Vec<usize>>,
    /// The message of the first contradiction.
    contradiction: Option<String>,
    /// The first thing that is wrong with an answer.
    misfit: Option<String>,
}

impl<'r> Resolution<'r, '_> {
    /// Fails what is broken by itself.
    fn note_faults(&mut self, index: &Index<'_>) {
        let candidates = self.candidates;
        for source in candidates.sources.iter().skip(1) {
            if let Some(text) = &source.fault {
                let named = candidates.faults.iter().filter_map(|fault| match fault.what {
                    What::Subscription(at) if fault.text == *text => Some(at),
                    _ => None,
                });
                let failure = error(text.clone(), self.names(&named.collect::<Vec<_>>()));
                self.failures.push(failure);
            }
        }
        let mut unreadable: BTreeMap<u32, Vec<String>> = BTreeMap::new();
        for fault in &candidates.faults {
            match fault.what {
                // Several can be about the same channel; who names a catalog is counted already.
                What::Subscription(at) => {
                    let name = self.names(&[at]);
                    match self.failures.iter_mut().find(|it| it.message == fault.text) {
                        Some(failure) => {
                            failure.subscriptions.extend(name);
                            failure.subscriptions.sort();
                            failure.subscriptions.dedup();
                        }
                        None => self.failures.push(error(fault.text.clone(), name)),
                    }
                }
                What::Bundle(var) => {
                    unreadable.entry(index.part_of(var)).or_default().push(fault.text.clone());
                }
                What::Channel(_) => {}
            }
        }
        for (at, texts) in unreadable {
            let subscriptions = match self.parts.get_mut(at as usize) {
                Some(part) => {
                    part.state = State::Failed;
                    part.subscriptions.clone()
                }
                None => Vec::new(),
            };
            let failure = error(aggregate(&texts), self.names(&subscriptions));
            self.failures.push(failure);
        }
    }

    fn names(&self, subscriptions: &[usize]) -> Vec<String> {
        let names: BTreeSet<&str> =
            subscriptions.iter().map(|at| &*self.candidates.subscriptions[*at].name).collect();
        names.into_iter().map(str::to_owned).collect()
    }

    /// Searches the parts that are open.
    fn search(&mut self, index: &Index<'r>) {
        let mut solver = Solver::new(index);
        let mut keys = Keys::new(self.candidates);
        for at in 0..self.parts.len() {
            let part = &self.parts[at];
            if !matches!(part.state, State::Open) || !part.asks {
                continue;
            }
            let constraints = part.constraints;
            if let Some(dead) = self.memory.dead(&mut keys, constraints).cloned() {
                let mut failure = error(dead.message, self.names(&part.subscriptions));
                failure.kind = dead.kind;
                self.contradiction = self.contradiction.take().or(dead.contradiction);
                self.misfit = self.misfit.take().or(dead.misfit);
                self.parts[at].state = State::Failed;
                self.failures.push(failure);
                continue;
            }
            let (contradiction, misfit) = (self.contradiction.take(), self.misfit.take());
            let mut budget = solve::BUDGET;
            let failure = match solver.solve(constraints, &mut budget) {
                Ok(Some(choices)) => match self.judge(&choices) {
                    Ok(answer) => {
                        self.parts[at].state = State::Solved(answer);
                        None
                    }
                    Err(text) => Some(error(text, self.names(&self.parts[at].subscriptions))),
                },
                Ok(None) => Some(match self.contradiction(at, &mut solver, &mut budget) {
                    Ok((failure, core)) => {
                        self.cores.insert(self.failures.len(), core);
                        failure
                    }
                    Err(Exhausted) => self.given_up(at, budget),
                }),
                Err(Exhausted) => Some(self.given_up(at, budget)),
            };
            self.memory.spend(solve::BUDGET - budget, constraints.len());
            if let Some(failure) = &failure
                && self.explained
            {
                let dead = Dead {
                    kind: failure.kind,
                    message: failure.message.clone(),
                    contradiction: self.contradiction.clone(),
                    misfit: self.misfit.clone(),
                };
                self.memory.bury(&mut keys, constraints, dead);
            }
            self.contradiction = contradiction.or(self.contradiction.take());
            self.misfit = misfit.or(self.misfit.take());
            let Some(failure) = failure else { continue };
            self.parts[at].state = State::Failed;
            self.failures.push(failure);
        }
        // Channels that offer nothing are told about even if nobody misses them.
        for fault in &self.candidates.faults {
            let known = |text: &str| self.failures.iter().any(|it| it.message.contains(text));
            if matches!(fault.what, What::Channel(_)) && !known(&fault.text) {
                self.failures.push(error(fault.text.clone(), Vec::new()));
            }
        }
    }

    /// The failure of a part whose search was ended, with so many steps left.
    fn given_up(&mut self, part: usize, left: u64) -> Failure {
        let steps = solve::BUDGET - left;
        let text = format!("no answer was found within {steps} steps, the search was given up");
        self.misfit.get_or_insert_with(|| text.clone());
        error(text, self.names(&self.parts[part].subscriptions))
    }

    /// What was chosen from catalogs, or what is wrong with it.
    fn judge(&mut self, choices: &[Choice]) -> Result<Vec<(Var, EntryRef)>, String> {
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
                (Reason::Supplied, _) => 0,
                _ => continue,
            };
            let Some(chosen) = entry(choice.chosen) else { continue };
            let rank = Candidates::rank(of, chosen.source);
            let preferred = candidates.sources.iter().enumerate().filter_map(|(at, source)| {
                source.fault.as_ref().filter(|_| Candidates::rank(of, at) < rank)
            });
            if let Some(fault) = preferred.into_iter().next() {
                return Err(fault.clone());
            }
        }
        let answer: Vec<(Var, EntryRef)> = choices
            .iter()
            .filter_map(|choice| Some((choice.chosen, entry(choice.chosen)?)))
            .filter(|(_, at)| at.source != 0)
            .collect();
        let mut errors = Vec::new();
        for &(var, at) in &answer {
            if candidates.is_unreadable(at) {
                let text = format!(
                    "error determining origin of operator: unable to parse identifier {} for \
                     source info",
                    candidates.identifier(var)
                );
                self.misfit.get_or_insert_with(|| text.clone());
                return Err(text);
            }
            match candidates.occurrences(at) {
                1 => {}
                count => errors.push(format!("expected exactly one operator, got {count}")),
            }
        }
        if errors.is_empty() {
            return Ok(answer);
        }
        let text = aggregate(&errors);
        self.misfit.get_or_insert_with(|| text.clone());
        Err(text)
    }

    /// The failure of a part without an answer, and its reasons.
    fn contradiction(
        &mut self,
        part: usize,
        solver: &mut Solver<'_, '_>,
        budget: &mut u64,
    ) -> Result<(Failure, Vec<usize>), Exhausted> {
        let candidates = self.candidates;
        let part = &self.parts[part];
        let mut failure = error(String::new(), self.names(&part.subscriptions));
        failure.kind = FailureKind::NotSatisfiable;
        if !self.explained {
            return Ok((failure, Vec::new()));
        }
        let core: Vec<usize> =
            solver.core(part.constraints, budget)?.into_iter().map(|at| at as usize).collect();
        let mut reasons: Vec<String> = core
            .iter()
            .map(|at| texts::constraint(candidates, &candidates.problem.constraints[*at]))
            .collect();
        reasons.sort();
        failure.message = texts::unsatisfiable(&reasons);
        // Where something stays because of another failure, that one is the original's.
        let stays =
            |at: &usize| matches!(candidates.problem.constraints[*at].reason, Reason::Kept(_));
        if !core.iter().any(stays) {
            self.contradiction.get_or_insert_with(|| failure.message.clone());
        }
        // Something broken may hold what is missing.
        let channels = candidates.faults.iter().filter_map(|fault| match fault.what {
            What::Channel(at) if core.contains(&at) => Some(fault.text.clone()),
            _ => None,
        });
        let mut missing: Vec<String> = channels.collect();
        let needs = |at: &usize| {
            matches!(
                candidates.problem.constraints[*at].reason,
                Reason::Required(_) | Reason::Supplied
            )
        };
        if missing.is_empty() && core.iter().any(needs) {
            missing.extend(candidates.sources.iter().filter_map(|source| source.fault.clone()));
        }
        if !missing.is_empty() {
            failure.kind = FailureKind::Error;
            failure.message = aggregate(&missing);
        }
        Ok((failure, core))
    }

    fn finish(mut self) -> Outcome {
        let mut outcome = self.assemble();
        if self.explained {
            let explained = self.memory.explained();
            let mut situation = Situation::new(self.world, &outcome, &self.failures, explained);
            for (at, failure) in self.failures.iter_mut().enumerate() {
                if let Some(told) = self.memory.told(&failure.message, &failure.subscriptions) {
                    (failure.cause, failure.repairs) = told.clone();
                    continue;
                }
                let reasons = self.cores.get(&at).map(Vec::as_slice);
                explain::explain(&mut situation, self.candidates, failure, reasons);
                let told = (&failure.cause, &*failure.repairs);
                self.memory.tell(&failure.message, &failure.subscriptions, told);
            }
        }
        self.failures.sort_by(|a, b| {
            let rank = |it: &Failure| it.kind == FailureKind::NotSatisfiable;
            (rank(a).cmp(&rank(b)))
                .then_with(|| a.subscriptions.is_empty().cmp(&b.subscriptions.is_empty()))
                .then_with(|| a.subscriptions.cmp(&b.subscriptions))
                .then_with(|| a.message.cmp(&b.message))
        });
        let error = |message| Summary { kind: FailureKind::Error, message };
        let not_satisfiable = |message| Summary { kind: FailureKind::NotSatisfiable, message };
        outcome.summary = broken(self.candidates)
            .map(error)
            .or_else(|| self.contradiction.take().map(not_satisfiable))
            .or_else(|| self.misfit.take().map(error));
        outcome.failures = self.failures;
        outcome
    }

    /// What is to be done for the parts that have an answer.
    fn assemble(&mut self) -> Outcome {
        let candidates = self.candidates;
        let mut blocked: BTreeSet<String> =
            self.failures.iter().flat_map(|it| it.subscriptions.iter().cloned()).collect();
        // The package of a blocked Subscription is not installed for the sake of others.
        loop {
            let mut changed = false;
            for at in 0..self.parts.len() {
                let State::Solved(answer) = &self.parts[at].state else { continue };
                let wish = answer.iter().find_map(|(_, entry)| {
                    let mut all = candidates.subscriptions.iter();
                    if all.any(|it| !blocked.contains(&it.name) && self.asks(it, *entry)) {
                        return None;
                    }
                    // Whatever its channel or catalog: there can be one operator of a package.
                    let package = &candidates.entry(*entry).0.package;
                    let mut all = candidates.subscriptions.iter();
                    all.find(|it| blocked.contains(&it.name) && *it.package == **package)
                });
                let unwritable = answer.iter().find_map(|(_, entry)| self.unwritable(*entry));
                let names = self.names(&self.parts[at].subscriptions);
                if let Some(wish) = wish {
                    let names: BTreeSet<String> = names.into_iter().collect();
                    for failure in &mut self.failures {
                        if failure.subscriptions.contains(&wish.name) {
                            let mut all: BTreeSet<String> =
                                failure.subscriptions.drain(..).collect();
                            all.extend(names.iter().cloned());
                            failure.subscriptions = all.into_iter().collect();
                        }
                    }
                    blocked.extend(names);
                } else if let Some(text) = unwritable {
                    self.misfit.get_or_insert_with(|| text.clone());
                    blocked.extend(names.iter().cloned());
                    self.failures.push(error(text, names));
                } else {
                    continue;
                }
                self.parts[at].state = State::Failed;
                changed = true;
            }
            if !changed {
                break;
            }
        }
        let mut answer: Vec<(Var, EntryRef)> = Vec::new();
        for part in &self.parts {
            if let State::Solved(chosen) = &part.state {
                answer.extend(chosen);
            }
        }
        answer.sort_by(|a, b| {
            let key = |at: EntryRef| {
                let entry = candidates.entry(at).0;
                (&entry.package, &entry.name, candidates.catalog(at))
            };
            key(a.1).cmp(&key(b.1))
        });
        let mut outcome = Outcome::default();
        for (var, at) in answer {
            self.add(var, at, &blocked, &mut outcome);
        }
        outcome.updated_subscriptions.sort_by(|a, b| a.name.cmp(&b.name));
        outcome.new_subscriptions.sort_by(|a, b| a.name.cmp(&b.name));
        outcome
    }

    /// Whether a Subscription is about an entry.
    fn asks(&self, subscription: &Subscription, at: EntryRef) -> bool {
        let entry = self.candidates.entry(at).0;
        let any = subscription.catalog == CatalogKey::default();
        subscription.package == *entry.package
            && (subscription.channel.is_empty() || subscription.channel == *entry.channel)
            && (any || subscription.catalog == *self.candidates.catalog(at))
    }

    /// Whether all who are about an entry have it already.
    fn is_current(&self, at: EntryRef) -> bool {
        let name = &self.candidates.entry(at).0.name;
        let mut asking =
            self.candidates.subscriptions.iter().filter(|it| self.asks(it, at)).peekable();
        asking.peek().is_some()
            && asking.all(|it| it.current_csv == **name)
            && self.world.csvs.iter().any(|csv| csv.name == **name)
    }

    /// Why an entry cannot become part of an install plan.
    fn unwritable(&self, at: EntryRef) -> Option<String> {
        let (entry, facts) = self.candidates.entry(at);
        let reason = facts.unwritable.as_ref().filter(|_| !self.is_current(at))?;
        Some(format!(
            "failed to serialize operator properties for {}: failed to marshal properties \
             annotation: json: error calling MarshalJSON for type json.RawMessage: {reason}",
            quote(&entry.name)
        ))
    }

    fn add(&self, var: Var, at: EntryRef, blocked: &BTreeSet<String>, outcome: &mut Outcome) {
        let entry = self.candidates.entry(at).0;
        let catalog = self.candidates.catalog(at);
        let replacement = self.candidates.replacements.get(&var).cloned();
        let chosen = outcome.resolved.len();
        outcome.resolved.push(Chosen {
            catalog: catalog.clone(),
            package: entry.package.to_string(),
            channel: entry.channel.to_string(),
            name: entry.name.to_string(),
            version: entry.version.as_ref().map(ToString::to_string),
            replaces: replacement.or_else(|| entry.replaces.as_deref().map(str::to_owned)),
        });
        if self.is_current(at) {
            return;
        }
        let all = self.candidates.subscriptions.iter().copied();
        let asking: Vec<&Subscription> =
            all.filter(|it| !blocked.contains(&it.name) && self.asks(it, at)).collect();
        outcome.installs.push(Install {
            chosen,
            subscriptions: asking.iter().map(|subscription| subscription.name.clone()).collect(),
        });
        if asking.is_empty() {
            let CatalogKey { name, namespace } = catalog;
            outcome.new_subscriptions.push(NewSubscription {
                name: format!("{}-{}-{name}-{namespace}", entry.package, entry.channel),
                package: entry.package.to_string(),
                channel: entry.channel.to_string(),
                catalog: catalog.clone(),
                starting_csv: entry.name.to_string(),
            });
        }
        for subscription in asking {
            if subscription.current_csv != *entry.name {
                outcome.updated_subscriptions.push(UpdatedSubscription {
                    name: subscription.name.clone(),
                    current_csv: entry.name.to_string(),
                });
            }
        }
    }
}
