//! Resolution memory: failures that one resolution keeps for the next one of nearly the same input.
//!
//! A caller that resolves a namespace after each change resolves mostly the same problem. The
//! memory recognizes a part without answer by its constraints, so that no search repeats it, and
//! keeps the explanations of failures. Parts with an answer are searched anew.

use crate::candidates::Candidates;
use crate::explain::SuggestedFix;
use crate::outcome::{FailureKind, ResolutionFailure};
use crate::problem::{Reason, Rule, Var};
use mainstay_cause::Cause;
use rustc_hash::FxHashMap;
use std::collections::{BTreeSet, HashMap};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

/// The cost of indexing one constraint, in steps of a search.
pub(crate) const STEPS_PER_CONSTRAINT: u64 = 16;

/// How many steps the search of a failed part takes at least for what-if resolutions to remember
/// it.
const MIN_REMEMBERED_STEPS: u64 = 20_000;

/// The failures that one resolution keeps for the next one. A memory belongs to one set of
/// catalogs: the contents of catalogs must not change between its resolutions.
#[derive(Debug, Default)]
pub struct ResolutionCache {
    parts: Arc<Parts>,
    explanations: HashMap<(String, Vec<String>), (Cause, Vec<SuggestedFix>)>,
    spent: u64,
    /// Whether it keeps only what what-if resolutions need, because no other resolution follows.
    for_what_if_only: bool,
}

/// The known parts without answer.
#[derive(Clone, Debug, Default)]
struct Parts {
    unsolvable: HashMap<Key, UnsolvablePart>,
    /// Their numbers of constraints: a part of another size needs no key.
    sizes: BTreeSet<usize>,
}

impl ResolutionCache {
    /// A memory for a single resolution.
    pub(crate) fn none() -> Self {
        Self { for_what_if_only: true, ..Self::default() }
    }

    /// A memory for what-if resolutions, which starts with the parts of this one.
    pub(crate) fn for_what_if(&self) -> Self {
        Self { parts: Arc::clone(&self.parts), ..Self::none() }
    }

    /// The cost of all resolutions so far, in steps of a search: some nanoseconds each.
    pub const fn spent(&self) -> u64 {
        self.spent
    }

    /// How many failures have been explained so far.
    pub fn explained(&self) -> usize {
        self.explanations.len()
    }

    pub(crate) fn spend(&mut self, steps: u64, constraints: usize) {
        let problem_cost = STEPS_PER_CONSTRAINT.saturating_mul(constraints as u64);
        self.spent = self.spent.saturating_add(steps).saturating_add(problem_cost);
    }

    /// The known failure of a part without answer.
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

    /// Keeps the failure of a part without answer; `steps` is the cost of its search.
    pub(crate) fn remember_unsolvable(
        &mut self,
        keys: &mut Keys<'_, '_>,
        part: &[u32],
        steps: u64,
        unsolvable: UnsolvablePart,
    ) {
        if self.for_what_if_only && steps < MIN_REMEMBERED_STEPS {
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
    ) -> Option<&(Cause, Vec<SuggestedFix>)> {
        self.explanations.get(&(message.to_owned(), names.to_vec()))
    }

    pub(crate) fn remember_explanation(&mut self, failure: &ResolutionFailure) {
        if self.for_what_if_only {
            return;
        }
        let explanation = (failure.cause.clone(), failure.repairs.clone());
        self.explanations
            .insert((failure.message.clone(), failure.subscriptions.clone()), explanation);
    }
}

/// A part that has no answer.
#[derive(Clone, Debug)]
pub(crate) struct UnsolvablePart {
    pub kind: FailureKind,
    pub message: String,
    /// Upstream's message for the part, if it is a contradiction that upstream finds too.
    pub contradiction: Option<String>,
    /// The error of the answer, or of the search for it.
    pub answer_error: Option<String>,
}

/// The identity of a part: two hashes of its constraints.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Key(u64, u64);

/// Computes the keys of the parts of one problem; hashes the names of variables, not their numbers.
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
