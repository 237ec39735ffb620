//! Outcome checker: whether an outcome is right, however it was found.

use crate::answer;
use crate::rules::{
    ConstraintRule, InputRules, ReferenceConstraint, UnresolvableNamespace, Variable, rules,
};
use crate::search::{TooLong, components, possible};
use mainstay_resolver::{
    ChosenBundle, FailureKind, Resolution, ResolutionFailure, ResolutionInput,
};
use std::collections::BTreeSet;

/// How many guesses one satisfiability test may try.
const LIMIT: u64 = 200_000;

/// The errors of an outcome; empty if it is right.
///
/// An outcome is right if:
///
/// * The chosen entries, together with some existing operators, meet all constraints of all parts
///   that do not fail. All Subscriptions of these parts are met.
/// * Each chosen entry is required, directly or indirectly, by a Subscription, a demand or an
///   existing operator.
/// * A part fails only if its constraints contradict each other, or if its input is broken. The
///   reasons of a contradiction are contradictory, and each of them is needed. The part has no
///   chosen entries, and all its Subscriptions are blocked.
/// * Installations, new and updated Subscriptions follow from the chosen entries.
pub fn check(input: &ResolutionInput<'_>, outcome: &Resolution) -> Vec<String> {
    match rules(input) {
        Ok(rules) => {
            let mut checker = Checker { rules: &rules, errors: Vec::new() };
            checker.check(outcome);
            checker.errors
        }
        Err(UnresolvableNamespace(what)) => {
            let has_error =
                outcome.failures.iter().any(|failure| failure.kind == FailureKind::Error);
            if has_error && outcome.resolved.is_empty() {
                Vec::new()
            } else {
                vec![format!("the namespace has an error ({what}), which the outcome ignores")]
            }
        }
    }
}

struct Checker<'r, 'a> {
    rules: &'r InputRules<'a>,
    errors: Vec<String>,
}

impl Checker<'_, '_> {
    fn report(&mut self, error: String) {
        self.errors.push(error);
    }

    fn check(&mut self, outcome: &Resolution) {
        let rules = self.rules;
        let mut chosen = vec![false; rules.variables.len()];
        for entry in &outcome.resolved {
            match self.find(entry) {
                Some(variable) if chosen[variable] => {
                    self.report(format!("{} comes twice", entry.name));
                }
                Some(variable) => chosen[variable] = true,
                None => {
                    self.report(format!("{} from {} is no candidate", entry.name, entry.catalog));
                }
            }
        }
        let parts = components(rules);
        let contradicts = self.contradictions(&parts, outcome);
        let broken = outcome.failures.iter().any(|failure| failure.kind == FailureKind::Error);
        let names = |failure: &ResolutionFailure| failure.subscriptions.clone();
        let blocked: BTreeSet<String> = outcome.failures.iter().flat_map(names).collect();
        let mut expected: BTreeSet<String> =
            rules.blocked.iter().map(|at| rules.subscriptions[*at].name.clone()).collect();
        for (part, contradicts) in parts.iter().zip(contradicts) {
            let of_part = rules.subscriptions_of(part);
            let fails = contradicts || of_part.iter().any(|name| blocked.contains(name));
            if !fails && self.part(part, &chosen) {
                if part.iter().any(|variable| rules.unreadable.contains(variable)) {
                    self.report(format!("{of_part:?} ignore what cannot be read"));
                }
                continue;
            }
            expected.extend(of_part);
            let excused = (broken && self.is_broken(part)) || self.is_claimed(part, &blocked);
            if !contradicts && !excused {
                let names: Vec<String> =
                    part.iter().take(9).map(|variable| rules.identifier(*variable)).collect();
                self.report(format!("{names:?} fail without reason"));
            }
            for variable in part.iter().filter(|variable| chosen[**variable]) {
                self.report(format!("{} is in a part that fails", rules.identifier(*variable)));
            }
        }
        if blocked != expected {
            self.report(format!("{blocked:?} are blocked, not {expected:?}"));
        }
        if !broken && rules.sources.iter().any(|source| !source.ready) {
            self.report("a catalog cannot be read, and no failure reports it".to_owned());
        }
        let expected_outcome = answer::outcome(rules, &chosen, &blocked);
        for (what, fine) in [
            ("what is resolved", expected_outcome.resolved == outcome.resolved),
            ("installations", installed(&expected_outcome) == installed(outcome)),
            ("new Subscriptions", expected_outcome.new_subscriptions == outcome.new_subscriptions),
            (
                "updated Subscriptions",
                expected_outcome.updated_subscriptions == outcome.updated_subscriptions,
            ),
        ] {
            if !fine {
                self.report(format!("{what}: expected {expected_outcome:?}"));
            }
        }
    }

    /// For each part, whether the outcome has a contradiction of it.
    fn contradictions(&mut self, parts: &[Vec<usize>], outcome: &Resolution) -> Vec<bool> {
        let mut contradicts = vec![false; parts.len()];
        for failure in outcome.failures.iter().filter(|failure| failure.kind != FailureKind::Error)
        {
            let contradicting_parts: Vec<usize> = self
                .contradiction(failure)
                .iter()
                .filter_map(|variable| parts.iter().position(|part| part.contains(variable)))
                .collect();
            if contradicting_parts.is_empty() {
                continue;
            }
            match contradicting_parts.into_iter().find(|part| !contradicts[*part]) {
                Some(part) => contradicts[part] = true,
                None => self.report(format!("two failures in one part: {}", failure.message)),
            }
        }
        contradicts
    }

    /// Whether a part has broken input.
    fn is_broken(&self, part: &[usize]) -> bool {
        let rules = self.rules;
        let unasked = rules.sources.iter().any(|source| !source.ready);
        let requires = |at: &usize| {
            let ReferenceConstraint { about, rule, .. } = &rules.constraints[*at];
            let is_subscription = about.is_none_or(|variable| {
                matches!(rules.variables[variable], Variable::Subscription(_))
            });
            matches!(rule, ConstraintRule::OneOf(_)) && !is_subscription
        };
        let of_part = |at: &usize| {
            rules.constraints[*at].variables().iter().any(|variable| part.contains(variable))
        };
        let mut constraints = (0..rules.constraints.len()).filter(of_part);
        let is_broken_variable = |variable: &usize| match rules.variables[*variable] {
            Variable::Entry(entry) => {
                !rules.has_one_place(entry)
                    || rules.unreadable.contains(variable)
                    || answer::cannot_be_serialized(rules, *variable)
            }
            Variable::Demand(_) | Variable::Subscription(_) => false,
        };
        constraints.any(|at| rules.gaps.contains(&at) || (unasked && requires(&at)))
            || part.iter().any(is_broken_variable)
    }

    /// Whether a part can have the package of a blocked Subscription.
    fn is_claimed(&self, part: &[usize], blocked: &BTreeSet<String>) -> bool {
        part.iter().any(|variable| answer::is_claimed(self.rules, *variable, blocked))
    }

    /// The variable of a chosen entry.
    fn find(&self, chosen: &ChosenBundle) -> Option<usize> {
        let rules = self.rules;
        rules.variables.iter().position(|variable| {
            let Variable::Entry(entry) = *variable else { return false };
            let entry = &rules.entries[entry];
            entry.source != 0
                && rules.sources[entry.source].key == chosen.catalog
                && (&entry.package, &entry.channel, &entry.name)
                    == (&chosen.package, &chosen.channel, &chosen.name)
        })
    }

    /// Checks a part that does not fail: all constraints can hold with exactly these catalog
    /// entries. False if a part without Subscriptions fails, which the outcome need not name.
    fn part(&mut self, part: &[usize], chosen: &[bool]) -> bool {
        let rules = self.rules;
        let constraints = rules.constraints_of(part);
        let has_no_subscription = rules.subscriptions_of(part).is_empty();
        let known: Vec<Option<bool>> = rules
            .variables
            .iter()
            .enumerate()
            .map(|(at, variable)| match variable {
                Variable::Subscription(_) | Variable::Demand(_) => Some(true),
                Variable::Entry(entry) if rules.entries[*entry].source == 0 => None,
                Variable::Entry(_) => Some(chosen[at]),
            })
            .collect();
        let set = match possible(&known, &constraints, &mut LIMIT.clone()) {
            Ok(Some(set)) => set,
            Ok(None) if has_no_subscription => return false,
            Ok(None) => {
                let chosen: Vec<String> = part
                    .iter()
                    .filter(|variable| chosen[**variable])
                    .map(|variable| rules.identifier(*variable))
                    .collect();
                // Whether the part has any answer tells the two errors apart.
                let open = vec![None; rules.variables.len()];
                let what = match possible(&open, &constraints, &mut LIMIT.clone()) {
                    Ok(Some(_)) => "is no answer",
                    Ok(None) => "is no answer, there is none",
                    Err(TooLong) => "is no answer, perhaps there is none",
                };
                self.report(format!("{chosen:?} {what}"));
                return true;
            }
            Err(TooLong) => {
                self.report("it takes too long to tell what of the existing stays".to_owned());
                return true;
            }
        };
        // From the mandatory variables along requirements to the chosen ones.
        let mut required: Vec<usize> = constraints
            .iter()
            .filter(|constraint| constraint.rule == ConstraintRule::Must)
            .filter_map(|constraint| constraint.about)
            .collect();
        let mut at = 0;
        while at < required.len() {
            let variable = required[at];
            for constraint in
                constraints.iter().filter(|constraint| constraint.about == Some(variable))
            {
                let ConstraintRule::OneOf(list) = &constraint.rule else { continue };
                for variable in list.iter().filter(|variable| set[**variable]) {
                    if !required.contains(variable) {
                        required.push(*variable);
                    }
                }
            }
            at += 1;
        }
        for &variable in
            part.iter().filter(|variable| chosen[**variable] && !required.contains(variable))
        {
            self.report(format!("nobody asks for {}", rules.identifier(variable)));
        }
        true
    }

    /// Checks the reasons of a contradiction, and gives one of their variables for each possible
    /// meaning of the texts.
    fn contradiction(&mut self, failure: &ResolutionFailure) -> Vec<usize> {
        let message = &failure.message;
        let Some(list) = message.strip_prefix("constraints not satisfiable: ") else {
            self.report(format!("no list of reasons: {message}"));
            return Vec::new();
        };
        let Some(texts) = self.split(list) else {
            self.report(format!("something is no reason: {message}"));
            return Vec::new();
        };
        if !texts.is_sorted() {
            self.report(format!("reasons are not sorted: {message}"));
        }
        // Several constraints can have the same text: any choice among them counts, each once.
        // Equal texts are adjacent, and stand for constraints in their order.
        let mut choices: Vec<Vec<usize>> = vec![Vec::new()];
        for text in &texts {
            let all = &self.rules.constraints;
            let same: Vec<usize> = (0..all.len()).filter(|at| all[*at].text == *text).collect();
            choices = choices
                .iter()
                .flat_map(|before| {
                    let last = before.last().filter(|last| all[**last].text == *text);
                    let new = same.iter().filter(move |at| last.is_none_or(|last| last < at));
                    new.map(|at| [before.as_slice(), &[*at]].concat())
                })
                .take(200_000)
                .collect();
        }
        let mut choices: Vec<Vec<&ReferenceConstraint>> = choices
            .iter()
            .map(|list| list.iter().map(|at| &self.rules.constraints[*at]).collect())
            .collect();
        let open = vec![None; self.rules.variables.len()];
        let contradicts = |list: &[&ReferenceConstraint]| {
            matches!(possible(&open, list, &mut LIMIT.clone()), Ok(None))
        };
        choices.retain(|list| contradicts(list));
        let Some(first) = choices.first() else {
            self.report(format!("the reasons do not contradict each other: {message}"));
            return Vec::new();
        };
        let redundant = |list: &Vec<&ReferenceConstraint>| {
            (0..list.len()).find(|at| {
                let mut fewer = list.clone();
                fewer.remove(*at);
                contradicts(&fewer)
            })
        };
        if choices.iter().all(|list| redundant(list).is_some()) {
            let text = redundant(first).map(|at| first[at].text.as_str()).unwrap_or_default();
            self.report(format!("the reason {text:?} is not needed: {message}"));
        }
        choices.iter().filter_map(|list| list.first()?.variables().first().copied()).collect()
    }

    /// Splits a list of reasons; the reasons can contain commas.
    fn split<'t>(&self, list: &'t str) -> Option<Vec<&'t str>> {
        let texts = self.rules.constraints.iter().map(|constraint| constraint.text.as_str());
        let mut starts: Vec<&str> = texts.filter(|text| list.contains(text)).collect();
        starts.sort_unstable();
        starts.dedup();
        parse(list, &starts)
    }
}

/// Splits a list into known texts, if it consists of them.
fn parse<'t>(list: &'t str, known: &[&str]) -> Option<Vec<&'t str>> {
    for text in known.iter().rev().filter(|text| list.starts_with(**text)) {
        let (this, rest) = list.split_at(text.len());
        if rest.is_empty() {
            return Some(vec![this]);
        }
        if let Some(mut others) = rest.strip_prefix(", ").and_then(|rest| parse(rest, known)) {
            others.insert(0, this);
            return Some(others);
        }
    }
    None
}

/// The installations with their Subscriptions, without the numbers of the parts.
fn installed(outcome: &Resolution) -> Vec<(usize, &[String])> {
    outcome.installs.iter().map(|install| (install.chosen, &*install.subscriptions)).collect()
}
