//! What one resolution remembers for the next one of nearly the same world.
//!
//! Who follows a world step by step resolves it again and again, and most of it is the same each
//! time. A part that has no answer is recognized by its constraints and not searched again, and what
//! was explained is not explained again. Parts that have an answer are searched anew.

use crate::candidates::Candidates;
use crate::explain::Repair;
use crate::outcome::{Failure, FailureKind};
use crate::problem::{Reason, Rule, Var};
use mainstay_cause::Cause;
use rustc_hash::FxHashMap;
use std::collections::{BTreeSet, HashMap};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

/// What arranging one constraint costs, in steps of a search.
pub(crate) const STEPS_PER_CONSTRAINT: u64 = 16;

/// From how many steps on a part that failed is worth being recognized in trials.
const MIN_REMEMBERED_STEPS: u64 = 20_000;

/// What one resolution remembers for the next one. It belongs to one set of catalogs: the contents
/// of catalogs must not change in between.
#[derive(Debug, Default)]
pub struct Memory {
    parts: Arc<Parts>,
    explanation: HashMap<(String, Vec<String>), (Cause, Vec<Repair>)>,
    spent: u64,
    /// Whether nothing is kept but what trials need, because nothing else comes after.
    for_trials_only: bool,
}

/// What is known of parts that have no answer.
#[derive(Clone, Debug, Default)]
struct Parts {
    unsolvable: HashMap<Key, UnsolvablePart>,
    /// How many constraints they have, so that most others need no key.
    sizes: BTreeSet<usize>,
}

impl Memory {
    /// One for a resolution that is the last.
    pub(crate) fn none() -> Self {
        Self { for_trials_only: true, ..Self::default() }
    }

    /// One for trials beside what is known here.
    pub(crate) fn for_trials(&self) -> Self {
        Self { parts: Arc::clone(&self.parts), ..Self::none() }
    }

    /// What the resolutions took so far, in steps of a search: some nanoseconds each.
    pub const fn spent(&self) -> u64 {
        self.spent
    }

    /// How many failures were explained so far.
    pub fn explained(&self) -> usize {
        self.explanation.len()
    }

    pub(crate) fn spend(&mut self, steps: u64, constraints: usize) {
        let problem_cost = STEPS_PER_CONSTRAINT.saturating_mul(constraints as u64);
        self.spent = self.spent.saturating_add(steps).saturating_add(problem_cost);
    }

    /// What is known of a part that has no answer.
    pub(crate) fn unsolvable(
        &self,
        keys: &mut Keys<'_, '_>,
        part: &[u32],
    ) -> Option<&UnsolvablePart> {
        if !self.parts.sizes.contains(&part.len()) {
            return None;
        }
        self.parts.unsolvable.get(&keys.of(part))
    }

    /// Takes note of a part that has no answer, which took so many steps to find out.
    pub(crate) fn remember_unsolvable(
        &mut self,
        keys: &mut Keys<'_, '_>,
        part: &[u32],
        steps: u64,
        unsolvable: UnsolvablePart,
    ) {
        if self.for_trials_only && steps < MIN_REMEMBERED_STEPS {
            return;
        }
        let parts = Arc::make_mut(&mut self.parts);
        parts.sizes.insert(part.len());
        parts.unsolvable.insert(keys.of(part), unsolvable);
    }

    pub(crate) fn explanation(
        &self,
        message: &str,
        names: &[String],
    ) -> Option<&(Cause, Vec<Repair>)> {
        self.explanation.get(&(message.to_owned(), names.to_vec()))
    }

    pub(crate) fn remember_explanation(&mut self, failure: &Failure) {
        if self.for_trials_only {
            return;
        }
        let explanation = (failure.cause.clone(), failure.repairs.clone());
        self.explanation
            .insert((failure.message.clone(), failure.subscriptions.clone()), explanation);
    }
}

/// A part that has no answer.
#[derive(Clone, Debug)]
pub(crate) struct UnsolvablePart {
    pub kind: FailureKind,
    pub message: String,
    /// What the original says of it, if it is a contradiction that it sees.
    pub contradiction: Option<String>,
    /// What is wrong with the answer, or with the search for it.
    pub answer_error: Option<String>,
}

/// What a part is recognized by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Key(u64, u64);

/// Keys of the parts of one problem: hashes of their constraints, with names for variables.
pub(crate) struct Keys<'k, 'c> {
    candidates: &'k Candidates<'c>,
    vars: Vec<Option<u64>>,
    lists: FxHashMap<*const Var, u64>,
}

impl<'k, 'c> Keys<'k, 'c> {
    pub(crate) fn new(candidates: &'k Candidates<'c>) -> Self {
        let vars = vec![None; candidates.problem.subjects.len()];
        Self { candidates, vars, lists: FxHashMap::default() }
    }

    fn of(&mut self, part: &[u32]) -> Key {
        let candidates = self.candidates;
        let mut hashers = [DefaultHasher::new(), DefaultHasher::new()];
        hashers[1].write_u8(1);
        for at in part {
            let constraint = &candidates.problem.constraints[*at as usize];
            let subject = constraint.subject.map(|var| self.var(var));
            let (kind, rule) = match &constraint.rule {
                Rule::Mandatory => (0_u8, 0),
                Rule::Prohibited => (1, 0),
                Rule::Dependency(vars) => {
                    let known = self.lists.get(&vars.as_ptr()).copied();
                    let hash = known.unwrap_or_else(|| self.list(vars));
                    self.lists.insert(vars.as_ptr(), hash);
                    (2, hash)
                }
                Rule::Conflict(var) => (3, self.var(*var)),
                Rule::AtMostOne(vars) => (4, self.list(vars)),
            };
            let reason = match &constraint.reason {
                Reason::SubscriptionUnmet(at) => {
                    hash(&("kept", &candidates.subscriptions[*at].name))
                }
                other => hash(&format!("{other:?}")),
            };
            for hasher in &mut hashers {
                (subject, kind, rule, reason).hash(hasher);
            }
        }
        Key(hashers[0].finish(), hashers[1].finish())
    }

    fn var(&mut self, var: Var) -> u64 {
        if let Some(known) = self.vars[var.index()] {
            return known;
        }
        let is_bundle = matches!(
            self.candidates.problem.subjects[var.index()],
            crate::problem::Subject::Bundle(_)
        );
        let key = hash(&(is_bundle, self.candidates.identifier(var)));
        self.vars[var.index()] = Some(key);
        key
    }

    fn list(&mut self, vars: &[Var]) -> u64 {
        let mut hasher = DefaultHasher::new();
        for var in vars {
            self.var(*var).hash(&mut hasher);
        }
        hasher.finish()
    }
}

fn hash(value: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}
