//! Problem index: for each variable, the constraints and the candidate lists that contain it.

use crate::problem::{Problem, Rule, Var};
use rustc_hash::FxHashMap;

/// A multimap from keys to numbers; keeps the order of the numbers.
#[derive(Debug, Default)]
pub(super) struct Groups {
    starts: Vec<u32>,
    items: Vec<u32>,
}

impl Groups {
    fn new(keys: usize, pairs: &[(u32, u32)]) -> Self {
        let mut starts = vec![0_u32; keys + 1];
        for (key, _) in pairs {
            starts[*key as usize + 1] += 1;
        }
        for at in 0..keys {
            starts[at + 1] += starts[at];
        }
        let mut next = starts.clone();
        let mut items = vec![0; pairs.len()];
        for (key, item) in pairs {
            let place = &mut next[*key as usize];
            items[*place as usize] = *item;
            *place += 1;
        }
        Self { starts, items }
    }

    pub(super) fn of(&self, key: usize) -> &[u32] {
        &self.items[self.starts[key] as usize..self.starts[key + 1] as usize]
    }
}

/// A problem with an index from variables to constraints.
///
/// Constraints that share a list of candidates share one list here. So the search counts the state
/// of a candidate once per list, however many bundles require it.
#[derive(Debug)]
pub(crate) struct Index<'p> {
    pub(super) problem: &'p Problem,
    /// For each variable, the constraints to evaluate when it becomes true.
    pub(super) constraints_of: Groups,
    /// For each variable, the lists that contain it.
    pub(super) lists_of: Groups,
    /// For each list, the constraints that have it.
    pub(super) dependents: Groups,
    /// The lists.
    pub(super) lists: Vec<&'p [Var]>,
    /// For each dependency, its list.
    pub(super) list_of: Vec<u32>,
    /// The constraints of each part; the parts are in the order of their first constraints.
    parts: Groups,
    count: usize,
    /// For each variable, its part; `u32::MAX` if no constraint contains the variable.
    part_of: Vec<u32>,
}

impl<'p> Index<'p> {
    pub(crate) fn new(problem: &'p Problem) -> Self {
        let count = problem.subjects.len();
        let mut known: FxHashMap<*const Var, u32> = FxHashMap::default();
        let mut lists: Vec<&[Var]> = Vec::new();
        let mut list_of = vec![u32::MAX; problem.constraints.len()];
        let (mut constraints_of, mut lists_of, mut dependents) =
            (Vec::new(), Vec::new(), Vec::new());
        let mut sets = DisjointSets::new(count);
        for (at, constraint) in problem.constraints.iter().enumerate() {
            // Problems have millions of constraints at most.
            let number = u32::try_from(at).unwrap_or(u32::MAX);
            if let Some(subject) = constraint.subject {
                constraints_of.push((subject.0, number));
            }
            match (&constraint.rule, constraint.subject) {
                (Rule::Dependency(vars), subject) => {
                    let list = *known.entry(vars.as_ptr()).or_insert_with(|| {
                        let list = u32::try_from(lists.len()).unwrap_or(u32::MAX);
                        lists_of.extend(vars.iter().map(|var| (var.0, list)));
                        for pair in vars.windows(2) {
                            sets.join(pair[0], pair[1]);
                        }
                        lists.push(vars);
                        list
                    });
                    if let (Some(subject), Some(first)) = (subject, vars.first()) {
                        sets.join(subject, *first);
                    }
                    list_of[at] = list;
                    dependents.push((list, number));
                }
                (Rule::AtMostOne(vars), _) => {
                    let mut last = None;
                    for &var in vars {
                        if last != Some(var) {
                            constraints_of.push((var.0, number));
                        }
                        if let Some(last) = last.replace(var) {
                            sets.join(last, var);
                        }
                    }
                }
                (Rule::Conflict(other), Some(subject)) => {
                    if *other != subject {
                        constraints_of.push((other.0, number));
                    }
                    sets.join(subject, *other);
                }
                _ => {}
            }
        }
        let mut numbers = vec![u32::MAX; count];
        let (mut pairs, mut parts) = (Vec::new(), 0);
        for (at, constraint) in problem.constraints.iter().enumerate() {
            let Some(var) = some_var(constraint.subject, &constraint.rule) else { continue };
            let part = &mut numbers[sets.find(var)];
            if *part == u32::MAX {
                *part = parts;
                parts += 1;
            }
            pairs.push((*part, u32::try_from(at).unwrap_or(u32::MAX)));
        }
        let part_of = (0..u32::try_from(count).unwrap_or(u32::MAX))
            .map(|var| numbers[sets.find(Var(var))])
            .collect();
        Self {
            problem,
            constraints_of: Groups::new(count, &constraints_of),
            lists_of: Groups::new(count, &lists_of),
            dependents: Groups::new(lists.len(), &dependents),
            lists,
            list_of,
            parts: Groups::new(parts as usize, &pairs),
            count: parts as usize,
            part_of,
        }
    }

    /// The constraints of each part: a set of constraints that share no variable with the others.
    pub(crate) fn parts(&self) -> impl Iterator<Item = &[u32]> {
        (0..self.count).map(|part| self.parts.of(part))
    }
}

impl Index<'_> {
    /// The part of a variable; `u32::MAX` if no constraint contains it.
    pub(crate) fn part_of(&self, var: Var) -> u32 {
        self.part_of[var.index()]
    }
}

fn some_var(subject: Option<Var>, rule: &Rule) -> Option<Var> {
    match (subject, rule) {
        (Some(subject), _) => Some(subject),
        (None, Rule::AtMostOne(vars)) => vars.first().copied(),
        (None, _) => None,
    }
}

/// Disjoint sets (union-find) of variables that constraints connect.
struct DisjointSets(Vec<u32>);

impl DisjointSets {
    fn new(count: usize) -> Self {
        Self((0..u32::try_from(count).unwrap_or(u32::MAX)).collect())
    }

    fn find(&mut self, var: Var) -> usize {
        let mut at = var.index();
        while self.0[at] as usize != at {
            let above = self.0[self.0[at] as usize];
            self.0[at] = above;
            at = above as usize;
        }
        at
    }

    fn join(&mut self, a: Var, b: Var) {
        let (a, b) = (self.find(a), self.find(b));
        // The smaller number is the root, in whatever order the sets are joined.
        let (low, high) = if a < b { (a, b) } else { (b, a) };
        self.0[high] = u32::try_from(low).unwrap_or(u32::MAX);
    }
}
