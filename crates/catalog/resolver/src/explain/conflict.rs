//! Contradiction model: the unsatisfiable core with indexes by variable, and the rejections of each
//! candidate.

use super::names;
use crate::candidates::Candidates;
use crate::input::{Demand, ResolutionInput, Subscription};
use crate::predicate::Predicate;
use crate::problem::{Constraint, Reason, Rule, Subject, Var};
use rustc_hash::{FxHashMap, FxHashSet};
use std::cell::RefCell;
use std::cmp::Reverse;
use std::rc::Rc;

/// Why a candidate is rejected.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Rejection {
    /// It has the property `olm.deprecated`.
    Deprecated,
    /// A prohibition of the administrator, with its message.
    Forbidden(String),
    /// It needs a newer Kubernetes: its `minKubeVersion`, and the version of the cluster.
    Kubernetes(String, String),
    /// It has a requirement.
    Needs(Need),
    /// It would replace one of these, which is needed.
    Replaces(Vec<Var>),
    /// It cannot be installed beside one of these.
    Beside(Uniqueness, Rc<[Var]>),
    /// It states the same package or API twice.
    Twice(Uniqueness),
}

/// A requirement of candidates. Requirements of one package in different ranges count as one.
#[derive(Clone, Debug)]
pub(super) struct Need {
    /// The package, or the text of the whole requirement.
    what: String,
    /// The ranges of the package.
    ranges: Vec<String>,
    /// The candidates that would meet it.
    pub vars: Vec<Var>,
    /// The constraints that state it.
    pub ats: Vec<usize>,
}

impl PartialEq for Need {
    /// Whether both share one line of the explanation.
    fn eq(&self, other: &Self) -> bool {
        self.what == other.what && self.vars.is_empty() == other.vars.is_empty()
    }
}

impl Need {
    pub(super) fn merge(&mut self, other: &Self) {
        let new = |list: &[String], range: &String| !list.contains(range);
        let ranges = other.ranges.iter().filter(|range| new(&self.ranges, range)).cloned();
        let ranges: Vec<String> = ranges.collect();
        self.ranges.extend(ranges);
        let known: FxHashSet<Var> = self.vars.iter().copied().collect();
        self.vars.extend(other.vars.iter().filter(|var| !known.contains(var)));
        self.ats.extend(&other.ats);
    }

    pub(super) fn text(&self) -> String {
        match self.ranges.as_slice() {
            [] => self.what.clone(),
            [range] => format!("version {range} of {}", self.what),
            ranges => format!("versions {} of {}", names::first(ranges, 2, "or"), self.what),
        }
    }
}

/// The package or the API that only one operator can have.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Uniqueness {
    Package(String),
    Api(String),
}

/// A constraint, and the requirements whose candidates it rejects.
type Among = (usize, Vec<usize>);

/// The unsatisfiable core of a contradiction, indexed by the subjects and members of constraints.
pub(super) struct Conflict<'c> {
    pub input: &'c ResolutionInput<'c>,
    pub candidates: &'c Candidates<'c>,
    constraints: Vec<&'c Constraint>,
    /// For each variable, the constraints whose subject it is.
    by_subject: FxHashMap<Var, Vec<usize>>,
    /// For each variable, the constraints that name it as a member.
    by_member: FxHashMap<Var, Vec<usize>>,
    /// The mandatory variables.
    pub roots: Vec<Var>,
    is_root: FxHashSet<Var>,
    /// Cache: for a constraint and requirements, the members of the constraint that other
    /// requirements need.
    needed: RefCell<FxHashMap<Among, Rc<[Var]>>>,
    /// The mandatory variables that stay because a Subscription, by its index, cannot be met.
    kept_for: FxHashMap<Var, usize>,
}

impl<'c> Conflict<'c> {
    pub(super) fn new(
        input: &'c ResolutionInput<'c>,
        candidates: &'c Candidates<'c>,
        constraints: Vec<&'c Constraint>,
    ) -> Self {
        let mut by_subject: FxHashMap<Var, Vec<usize>> = FxHashMap::default();
        let mut by_member: FxHashMap<Var, Vec<usize>> = FxHashMap::default();
        let (mut roots, mut kept_for) = (Vec::new(), FxHashMap::default());
        for (at, constraint) in constraints.iter().enumerate() {
            if let Some(subject) = constraint.subject {
                by_subject.entry(subject).or_default().push(at);
                if matches!(constraint.rule, Rule::Mandatory) {
                    roots.push(subject);
                }
                if let Reason::SubscriptionUnmet(subscription) = constraint.reason {
                    kept_for.insert(subject, subscription);
                }
            }
            let members = match &constraint.rule {
                Rule::Dependency(vars) => vars,
                Rule::AtMostOne(vars) => vars.as_slice(),
                Rule::Conflict(var) => std::slice::from_ref(var),
                Rule::Mandatory | Rule::Prohibited => &[],
            };
            for member in members {
                let list = by_member.entry(*member).or_default();
                if list.last() != Some(&at) {
                    list.push(at);
                }
            }
        }
        let is_root = roots.iter().copied().collect();
        let needed = RefCell::default();
        Self {
            input,
            candidates,
            constraints,
            by_subject,
            by_member,
            roots,
            is_root,
            needed,
            kept_for,
        }
    }

    pub(super) fn constraint(&self, at: usize) -> &'c Constraint {
        self.constraints[at]
    }

    /// The constraints that name a variable as a member.
    pub(super) fn constraints_naming(&self, var: Var) -> &[usize] {
        self.by_member.get(&var).map_or(&[], Vec::as_slice)
    }

    pub(super) fn subject(&self, var: Var) -> Subject {
        self.candidates.problem.subjects[var.index()]
    }

    pub(super) fn subscription(&self, var: Var) -> Option<&'c Subscription> {
        match self.subject(var) {
            Subject::Subscription(at) => Some(self.candidates.subscriptions[at]),
            Subject::Bundle(_) | Subject::Demand(_) => None,
        }
    }

    /// Whether a variable is mandatory.
    pub(super) fn is_root(&self, var: Var) -> bool {
        self.is_root.contains(&var)
    }

    pub(super) fn demand(&self, var: Var) -> Option<&'c Demand> {
        match self.subject(var) {
            Subject::Demand(at) => Some(self.candidates.demands[at]),
            Subject::Bundle(_) | Subject::Subscription(_) => None,
        }
    }

    /// The sentence that an existing operator stays, with the reason.
    pub(super) fn existing_text(&self, var: Var) -> String {
        match self.kept_for.get(&var) {
            Some(subscription) => format!(
                "{} stays, because Subscription `{}`, which it belongs to, cannot be met either",
                self.label(var),
                self.candidates.subscriptions[*subscription].name
            ),
            None => format!(
                "{} exists, and no Subscription has it as its installed version",
                self.label(var)
            ),
        }
    }

    pub(super) fn constraints_about(&self, var: Var) -> Vec<usize> {
        self.by_subject.get(&var).cloned().unwrap_or_default()
    }

    /// Whether two constraints are the same, or the same requirement of two bundles.
    pub(super) fn same_requirement(&self, one: usize, other: usize) -> bool {
        one == other
            || (self.members(one) == self.members(other)
                && self.requirement(one).is_some()
                && self.requirement(one) == self.requirement(other))
    }

    /// The candidates of a requirement.
    pub(super) fn members(&self, at: usize) -> &'c [Var] {
        match &self.constraints[at].rule {
            Rule::Dependency(vars) => vars,
            _ => &[],
        }
    }

    /// Why a candidate of these requirements is rejected.
    pub(super) fn rejections(&self, var: Var, requirements: &[usize]) -> Vec<Rejection> {
        let mut rejections = Vec::new();
        for at in self.constraints_about(var) {
            let constraint = self.constraints[at];
            match (&constraint.rule, &constraint.reason) {
                (Rule::Prohibited, Reason::Forbidden(message)) => {
                    rejections.push(Rejection::Forbidden(message.clone()));
                }
                (Rule::Prohibited, Reason::Kubernetes(least, there)) => {
                    rejections.push(Rejection::Kubernetes(least.clone(), there.clone()));
                }
                (Rule::Prohibited, _) => rejections.push(Rejection::Deprecated),
                (Rule::Dependency(vars), _) => {
                    let requirement = self.requirement(at);
                    let package = requirement.and_then(names::package_in_range);
                    let (what, ranges) = match package {
                        Some((package, range)) => {
                            (format!("package `{package}`"), vec![format!("`{range}`")])
                        }
                        None => (requirement.map(names::requirement).unwrap_or_default(), vec![]),
                    };
                    let need = Need { what, ranges, vars: vars.to_vec(), ats: vec![at] };
                    match rejections
                        .iter_mut()
                        .find(|rejection| **rejection == Rejection::Needs(need.clone()))
                    {
                        Some(Rejection::Needs(known)) => known.merge(&need),
                        _ => rejections.push(Rejection::Needs(need)),
                    }
                }
                (Rule::Conflict(other), _) => rejections.push(Rejection::Replaces(vec![*other])),
                _ => {}
            }
        }
        for at in self.by_member.get(&var).into_iter().flatten() {
            let constraint = self.constraints[*at];
            match (&constraint.rule, &constraint.reason, constraint.subject) {
                (Rule::Conflict(_), _, Some(other)) => {
                    rejections.push(Rejection::Replaces(vec![other]));
                }
                (Rule::AtMostOne(vars), reason, _) => {
                    let uniqueness = match reason {
                        Reason::OneProvider(api) => Uniqueness::Api(names::api(api)),
                        Reason::OneOfPackage(package) => Uniqueness::Package(package.clone()),
                        _ => continue,
                    };
                    if vars.iter().filter(|member| **member == var).count() > 1 {
                        rejections.push(Rejection::Twice(uniqueness));
                        continue;
                    }
                    let rivals = self.rivals_needed_elsewhere(*at, var, requirements);
                    // Rivals that only the candidate itself requires are explained with its
                    // requirements.
                    if !rivals.is_empty() {
                        rejections.push(Rejection::Beside(uniqueness, rivals));
                    }
                }
                _ => {}
            }
        }
        rejections
    }

    /// The rivals of the candidate `var` of the requirements `of`: the members of a constraint that
    /// other variables need.
    fn rivals_needed_elsewhere(&self, at: usize, var: Var, requirements: &[usize]) -> Rc<[Var]> {
        let Rule::AtMostOne(vars) = &self.constraints[at].rule else { return Rc::default() };
        let needed = |dependencies: &FxHashSet<Var>| -> Rc<[Var]> {
            vars.iter()
                .copied()
                .filter(|member| self.needed_elsewhere(*member, requirements, dependencies))
                .collect()
        };
        let requires = |at: &usize| matches!(self.constraints[*at].rule, Rule::Dependency(_));
        let all = if self.by_subject.get(&var).is_some_and(|ats| ats.iter().any(requires)) {
            needed(&self.dependencies(var))
        } else {
            // All candidates without requirements have the same rivals.
            let mut known = self.needed.borrow_mut();
            known
                .entry((at, requirements.to_vec()))
                .or_insert_with(|| needed(&FxHashSet::default()))
                .clone()
        };
        if all.contains(&var) {
            all.iter().copied().filter(|member| *member != var).collect()
        } else {
            all
        }
    }

    /// A candidate with all its direct and indirect dependencies.
    fn dependencies(&self, var: Var) -> FxHashSet<Var> {
        let mut dependencies = FxHashSet::from_iter([var]);
        let mut stack = vec![var];
        while let Some(next) = stack.pop() {
            for at in self.by_subject.get(&next).into_iter().flatten() {
                stack.extend(
                    self.members(*at).iter().filter(|member| dependencies.insert(**member)),
                );
            }
        }
        dependencies
    }

    /// Whether a variable is mandatory, or a requirement needs it that is neither in `except` nor
    /// of a variable in `dependencies`.
    pub(super) fn needed_elsewhere(
        &self,
        var: Var,
        except: &[usize],
        dependencies: &FxHashSet<Var>,
    ) -> bool {
        self.is_root(var)
            || self.by_member.get(&var).into_iter().flatten().any(|at| {
                let constraint = self.constraints[*at];
                matches!(constraint.rule, Rule::Dependency(_))
                    && !except.contains(at)
                    && constraint.subject.is_some_and(|subject| !dependencies.contains(&subject))
            })
    }

    pub(super) fn requirement(&self, at: usize) -> Option<&'c Predicate> {
        requirement(self.candidates, self.constraints[at])
    }
}

/// The requirement that a constraint states.
fn requirement<'c>(
    candidates: &'c Candidates<'c>,
    constraint: &Constraint,
) -> Option<&'c Predicate> {
    let subject = candidates.problem.subjects[constraint.subject?.index()];
    match (&constraint.reason, subject) {
        (Reason::Required(at), Subject::Bundle(entry)) => {
            candidates.entry(entry).1.requirements.get(*at).map(|requirement| &**requirement)
        }
        _ => None,
    }
}

/// The constraints of a core, with the same unmet requirement for as many candidates as possible.
///
/// Each unmet requirement of a candidate is a sufficient reason, so that one can replace another.
pub(super) fn unify_missing<'c>(
    candidates: &'c Candidates<'c>,
    core: &[usize],
) -> Vec<&'c Constraint> {
    let all = &candidates.problem.constraints;
    let lacks = |constraint: &&Constraint| matches!((&constraint.rule, &constraint.reason), (Rule::Dependency(vars), Reason::Required(_)) if vars.is_empty());
    let mut core: Vec<&Constraint> = core.iter().map(|at| &all[*at]).collect();
    let lacking: FxHashSet<Var> =
        core.iter().copied().filter(lacks).filter_map(|constraint| constraint.subject).collect();
    if lacking.len() < 2 {
        return core;
    }
    let mut choices: FxHashMap<Var, Vec<(String, &Constraint)>> = FxHashMap::default();
    let mut counts: FxHashMap<String, usize> = FxHashMap::default();
    for constraint in all.iter().filter(lacks) {
        let Some(subject) = constraint.subject.filter(|subject| lacking.contains(subject)) else {
            continue;
        };
        let text = requirement(candidates, constraint).map(names::requirement).unwrap_or_default();
        *counts.entry(text.clone()).or_default() += 1;
        choices.entry(subject).or_default().push((text, constraint));
    }
    for constraint in core.iter_mut().filter(|constraint| lacks(constraint)) {
        let choices =
            constraint.subject.and_then(|subject| choices.get(&subject)).into_iter().flatten();
        if let Some((_, best)) = choices.max_by_key(|(text, _)| (counts[text], Reverse(text))) {
            *constraint = best;
        }
    }
    core
}
