//! Contradiction tree: Subscriptions, their candidates, and why each candidate is rejected.
//!
//! The core of a contradiction is irreducible, so that each of its constraints rejects a candidate
//! of another one. The tree starts with the Subscription that is the easiest to give up. It goes
//! from a Subscription to its candidates, from a candidate to its rejections, and from there to the
//! dependents of the rival. It explains each constraint once. Candidates with the same rejections
//! share one line.

use super::conflict::{Conflict, Need, Rejection, Uniqueness};
use super::missing;
use super::names::{self, NounPhrase};
use super::node::Node;
use crate::input::{Demand, Subscription};
use crate::predicate::Predicate;
use crate::problem::{Reason, Rule, Var};
use mainstay_cause::Cause;
use std::cmp::Reverse;
use std::collections::{BTreeSet, HashSet};

/// Builds the tree of a contradiction.
pub(super) struct TreeBuilder<'c> {
    conflict: Conflict<'c>,
    /// The mandatory variables that the tree has explained.
    explained_roots: HashSet<Var>,
    /// The requirements that the tree has explained.
    explained: HashSet<usize>,
    /// The current depth of the tree.
    depth: usize,
    /// For how many more unmet requirements the tree searches the nearest content.
    hints_left: usize,
}

/// How many groups of rejections the candidates of one requirement have at most.
const MAX_GROUPS: usize = 40;

/// The maximal depth of the tree.
const MAX_DEPTH: usize = 100;

impl<'c> TreeBuilder<'c> {
    /// `hints_left` bounds for how many unmet requirements the tree searches the nearest content.
    pub(super) fn new(conflict: Conflict<'c>, hints_left: usize) -> Self {
        Self {
            conflict,
            explained_roots: HashSet::new(),
            explained: HashSet::new(),
            depth: 0,
            hints_left,
        }
    }

    /// The whole tree.
    pub(super) fn build(mut self) -> Cause {
        let mut roots = self.conflict.roots.clone();
        // Subscriptions without installed operator are the newest, so that they come first.
        roots.sort_by_key(|root| {
            let label = self.conflict.label(*root);
            match self.conflict.subscription(*root) {
                Some(subscription) => {
                    let installed = missing::is_installed(self.conflict.input, subscription);
                    (2 * u8::from(installed), Reverse(subscription.name.as_str()), label)
                }
                None if self.conflict.demand(*root).is_some() => (1, Reverse(""), label),
                None => (3, Reverse(""), label),
            }
        });
        let mut nodes = Vec::new();
        for root in roots {
            if self.explained_roots.insert(root) {
                nodes.extend(self.root(root));
            }
        }
        Node::new(self.headline()).because(nodes).into_cause()
    }

    fn headline(&self) -> String {
        let label = |root: &Var| self.conflict.label(*root);
        let roots = || self.conflict.roots.iter();
        let subscriptions: BTreeSet<&str> =
            roots().filter_map(|root| Some(&*self.conflict.subscription(*root)?.name)).collect();
        let demands: BTreeSet<String> =
            roots().filter(|root| self.conflict.demand(**root).is_some()).map(label).collect();
        let count = subscriptions.len() + demands.len();
        let mut labels = Vec::new();
        match names::quoted(subscriptions).as_slice() {
            [] => {}
            [one] => labels.push(format!("Subscription {one}")),
            some if demands.is_empty() => {
                labels.push(format!("Subscriptions {}", names::some(some, "and")));
            }
            some => labels.extend(some.iter().map(|name| format!("Subscription {name}"))),
        }
        labels.extend(demands);
        if count == 0 {
            let existing: BTreeSet<String> = roots().map(label).collect();
            let existing: Vec<String> = existing.into_iter().collect();
            let together = if existing.len() > 1 { " together" } else { "" };
            return format!("{} cannot stay{together}", names::some(&existing, "and"));
        }
        let together = if count > 1 { " together" } else { "" };
        format!("{} cannot be met{together}", names::some(&labels, "and"))
    }

    /// Why a mandatory variable cannot be in the answer.
    fn root(&mut self, root: Var) -> Vec<Node> {
        if let Some(demand) = self.conflict.demand(root) {
            return self.demand(root, demand);
        }
        let Some(subscription) = self.conflict.subscription(root) else {
            let rejections = self.conflict.rejections(root, &[]);
            if self.conflict.roots.len() > 1 {
                return vec![self.group(&[root], &rejections, &[], false)];
            }
            let pronoun = NounPhrase::pronoun(false);
            return rejections
                .iter()
                .map(|rejection| self.rejection(&pronoun, &[root], rejection, &[]))
                .collect();
        };
        let mut nodes = Vec::new();
        for at in self.conflict.constraints_about(root) {
            match (&self.conflict.constraint(at).rule, &self.conflict.constraint(at).reason) {
                (_, Reason::NoCandidates(_)) => {
                    nodes.extend(missing::explain_subscription(self.conflict.input, subscription));
                }
                (Rule::Dependency(_), _) if self.mark_explained(at) => {
                    let unmet = self.unmet(subscription, at);
                    let rejected_candidates = self.rejected_candidates(&[at], &[]);
                    nodes.push(Node::new(unmet).because(rejected_candidates));
                }
                _ => {}
            }
        }
        nodes
    }

    /// Why a demand cannot be met.
    fn demand(&mut self, root: Var, demand: &Demand) -> Vec<Node> {
        let mut nodes = Vec::new();
        for at in self.conflict.constraints_about(root) {
            if !matches!(self.conflict.constraint(at).rule, Rule::Dependency(_))
                || !self.mark_explained(at)
            {
                continue;
            }
            let what = names::demand(demand);
            nodes.push(if self.conflict.members(at).is_empty() {
                let near = self.near(&missing::demand_predicate(demand));
                Node::new(format!("nothing offers {what}")).because(near)
            } else {
                let rejected_candidates = self.rejected_candidates(&[at], &[]);
                Node::new(format!("nothing that is {what} can be installed"))
                    .because(rejected_candidates)
            });
        }
        nodes
    }

    /// The sentence that a Subscription cannot be met.
    fn unmet(&self, subscription: &Subscription, at: usize) -> String {
        let Subscription { name, installed_csv, starting_csv, .. } = subscription;
        let alone = self
            .conflict
            .roots
            .iter()
            .filter(|root| self.conflict.subscription(**root).is_some())
            .count()
            < 2;
        let requested = missing::requested(self.conflict.input, subscription);
        if missing::is_installed(self.conflict.input, subscription) {
            let phrase = if alone { "it".to_owned() } else { format!("Subscription `{name}`") };
            return if self.conflict.members(at).len() > 1 {
                format!(
                    "{phrase} can neither keep `{installed_csv}`, which is installed, nor upgrade \
                     from it in {requested}"
                )
            } else {
                format!(
                    "{phrase} cannot keep `{installed_csv}`, which is installed, and {requested} has no \
                     upgrade from it"
                )
            };
        }
        if subscription.restores {
            let phrase = if alone { String::new() } else { format!(" for Subscription `{name}`") };
            return format!(
                "`{starting_csv}`, which was installed and is gone, cannot be installed again from \
                 {requested}{phrase}"
            );
        }
        if !starting_csv.is_empty() {
            return if alone {
                format!("its `spec.startingCSV` asks for `{starting_csv}` from {requested}")
            } else {
                format!(
                    "Subscription `{name}` asks for `{starting_csv}`, its `spec.startingCSV`, from \
                     {requested}"
                )
            };
        }
        let phrase = if alone { String::new() } else { format!(" for Subscription `{name}`") };
        format!("nothing in {requested} can be installed{phrase}")
    }

    /// Why the candidates of requirements are rejected, without those in `except`.
    fn rejected_candidates(&mut self, ats: &[usize], except: &[Var]) -> Vec<Node> {
        if self.depth >= MAX_DEPTH {
            return Vec::new();
        }
        self.depth += 1;
        let mut groups: Vec<(Vec<Rejection>, Vec<Var>)> = Vec::new();
        let mut seen: HashSet<Var> = except.iter().copied().collect();
        let mut more = 0;
        let vars: Vec<Var> =
            ats.iter().flat_map(|at| self.conflict.members(*at)).copied().collect();
        for var in vars.into_iter().filter(|var| seen.insert(*var)) {
            let rejections = self.conflict.rejections(var, ats);
            if let Some(like) = groups.iter().position(|(known, _)| *known == rejections) {
                let (known, group) = &mut groups[like];
                for pair in known.iter_mut().zip(&rejections) {
                    if let (Rejection::Needs(known), Rejection::Needs(other)) = pair {
                        known.merge(other);
                    }
                }
                group.push(var);
            } else if groups.len() == MAX_GROUPS {
                more += 1;
            } else {
                groups.push((rejections, vec![var]));
            }
        }
        let all = groups.len() == 1 && except.is_empty();
        let mut nodes: Vec<Node> = groups
            .into_iter()
            .map(|(rejections, vars)| self.group(&vars, &rejections, ats, all))
            .collect();
        if more > 0 {
            nodes.push(Node::new(format!("{more} more candidates fall for reasons of their own")));
        }
        self.depth -= 1;
        nodes
    }

    /// The node for candidates with the same rejections.
    fn group(
        &mut self,
        vars: &[Var],
        rejections: &[Rejection],
        requirements: &[usize],
        all: bool,
    ) -> Node {
        let phrase = self.conflict.phrase(vars, requirements, all, "and");
        if let [rejection] = rejections {
            return self.rejection(&phrase, vars, rejection, requirements);
        }
        let pronoun = NounPhrase::pronoun(phrase.plural);
        let mut nodes = Vec::new();
        for rejection in rejections {
            // A requirement that another rejection has explained needs no second line.
            let old = matches!(rejection, Rejection::Needs(need) if need.ats.iter().all(|at| self.is_explained(*at)));
            if nodes.is_empty() || !old {
                nodes.push(self.rejection(&pronoun, vars, rejection, requirements));
            }
        }
        let exist = vars.iter().all(|var| self.conflict.exists(*var));
        let verb = if exist { "stay" } else { "be installed" };
        Node::new(format!("{} cannot {verb}", phrase.text)).because(nodes)
    }

    fn rejection(
        &mut self,
        phrase: &NounPhrase,
        vars: &[Var],
        rejection: &Rejection,
        requirements: &[usize],
    ) -> Node {
        let text = &phrase.text;
        match rejection {
            Rejection::Deprecated => {
                Node::new(format!("{text} {} marked as deprecated", phrase.verb("is", "are")))
            }
            Rejection::Forbidden(message) => {
                let not = phrase.verb("is not to be chosen", "are not to be chosen");
                Node::new(format!("{text} {not}: {}", names::shortened(message)))
            }
            Rejection::Kubernetes(least, there) => {
                let needs = phrase.verb("needs", "need");
                Node::new(format!(
                    "{text} {needs} Kubernetes {least} or later, and the cluster has {there}"
                ))
            }
            Rejection::Needs(need) => self.unmet_need(phrase, need),
            Rejection::Replaces(others) => {
                let other = self.conflict.phrase(others, requirements, false, "or").text;
                let dependents = self.dependents(others, requirements);
                Node::new(format!("{text} would take the place of {other}")).because(dependents)
            }
            Rejection::Beside(uniqueness, rivals) => {
                let is = phrase.verb("is", "are");
                let reason = uniqueness_text(uniqueness);
                let mut other = self
                    .conflict
                    .phrase(rivals, requirements, false, "or")
                    .text
                    .replacen("one of", "any of", 1);
                let mut text = text.clone();
                if let ([one], [rival]) = (vars, &**rivals)
                    && self.conflict.label(*one) == self.conflict.label(*rival)
                {
                    text = self.conflict.full_label(*one);
                    other = self.conflict.full_label(*rival);
                }
                let dependents = self.dependents(rivals, requirements);
                Node::new(format!("{text} {is} not possible beside {other}: {reason}"))
                    .because(dependents)
            }
            Rejection::Twice(uniqueness) => {
                let what = match uniqueness {
                    Uniqueness::Package(package) => format!("package `{package}`"),
                    Uniqueness::Api(api) => api.clone(),
                };
                Node::new(format!("{text} {} {what} twice", phrase.verb("states", "state")))
            }
        }
    }

    /// The node for candidates with an unmet requirement.
    fn unmet_need(&mut self, phrase: &NounPhrase, need: &Need) -> Node {
        let (text, needs, what) = (&phrase.text, phrase.verb("needs", "need"), need.text());
        if need.vars.is_empty() {
            let requirement = need.ats.first().and_then(|at| self.conflict.requirement(*at));
            let new = need.ats.iter().filter(|at| self.mark_explained(**at)).count() > 0;
            let near = match requirement {
                Some(requirement) if new => self.near(requirement),
                _ => Vec::new(),
            };
            return Node::new(format!("{text} {needs} {what}, which nothing offers")).because(near);
        }
        let new: Vec<usize> =
            need.ats.iter().copied().filter(|at| self.mark_explained(*at)).collect();
        let rejected_candidates = self.rejected_candidates(&new, &[]);
        let above = if new.is_empty() { ", as told above" } else { "" };
        let nothing = "nothing that meets this can be installed";
        Node::new(format!("{text} {needs} {what}, but {nothing}{above}"))
            .because(rejected_candidates)
    }

    /// The nearest content for a requirement that nothing meets, as long as there are hints left.
    fn near(&mut self, requirement: &Predicate) -> Vec<Node> {
        let Some(hints_left) = self.hints_left.checked_sub(1) else { return Vec::new() };
        self.hints_left = hints_left;
        missing::explain_requirement(self.conflict.input, requirement)
    }

    /// Marks a requirement as explained; false if it was explained before, also of another bundle.
    fn mark_explained(&mut self, at: usize) -> bool {
        let known = self.is_explained(at);
        self.explained.insert(at);
        !known
    }

    fn is_explained(&self, at: usize) -> bool {
        self.explained.iter().any(|other| self.conflict.same_requirement(*other, at))
    }

    /// The nodes for the dependents of these variables, without the requirements in `except`.
    fn dependents(&mut self, vars: &[Var], except: &[usize]) -> Vec<Node> {
        if self.depth >= MAX_DEPTH {
            return Vec::new();
        }
        self.depth += 1;
        let mut nodes = Vec::new();
        let mut ats: BTreeSet<usize> = BTreeSet::new();
        for var in vars {
            if self.conflict.is_root(*var) && self.explained_roots.insert(*var) {
                nodes.push(Node::new(self.conflict.existing_text(*var)));
            }
            ats.extend(self.conflict.constraints_naming(*var));
        }
        for &at in &ats {
            let Rule::Dependency(all) = &self.conflict.constraint(at).rule else { continue };
            if except.contains(&at) || !self.mark_explained(at) {
                continue;
            }
            let Some(subject) = self.conflict.constraint(at).subject else { continue };
            let these: Vec<Var> = all.iter().copied().filter(|var| vars.contains(var)).collect();
            let others: Vec<Var> = all.iter().copied().filter(|var| !these.contains(var)).collect();
            let certainty = self.certainty(&others, at);
            // Other bundles can have the same requirement.
            let alike: Vec<usize> = ats
                .iter()
                .copied()
                .filter(|other| self.conflict.same_requirement(*other, at))
                .collect();
            let subjects: Vec<Var> =
                alike.iter().filter_map(|at| self.conflict.constraint(*at).subject).collect();
            let phrase = self.conflict.phrase(&these, &[at], false, "or");
            let text = if let Some(subscription) = self.conflict.subscription(subject) {
                self.explained_roots.insert(subject);
                self.subscription_text(subscription, &these, &phrase.text, certainty)
            } else if let Some(demand) = self.conflict.demand(subject) {
                self.explained_roots.insert(subject);
                let what = names::demand(demand);
                format!("{what} is demanded, which {certainty}{} can meet", phrase.text)
            } else {
                let needing = self.conflict.phrase(&subjects, &[], false, "and");
                let what =
                    self.conflict.requirement(at).map(names::requirement).unwrap_or_default();
                let needs = needing.verb("needs", "need");
                format!(
                    "{} {needs} {what}, which {certainty}{} can meet",
                    needing.text, phrase.text
                )
            };
            let rejected_candidates = self.rejected_candidates(&[at], &these);
            let above = match self.conflict.requirement(at) {
                Some(_) => self.dependents(&subjects, &alike),
                None => Vec::new(),
            };
            nodes.push(Node::new(text).because(rejected_candidates).because(above));
        }
        self.depth -= 1;
        nodes
    }

    /// How certain it is that the other candidates of a requirement are rejected: some are rejected
    /// only beside others.
    fn certainty(&self, others: &[Var], at: usize) -> &'static str {
        let depends = |var: &Var| {
            let rejections = self.conflict.rejections(*var, &[at]);
            rejections.iter().any(|rejection| {
                matches!(rejection, Rejection::Beside(..) | Rejection::Replaces(_))
            })
        };
        match others {
            [] => "",
            others if others.iter().any(depends) => "at best ",
            _ => "only ",
        }
    }

    /// The sentence for a Subscription and its remaining candidates.
    fn subscription_text(
        &self,
        subscription: &Subscription,
        these: &[Var],
        phrase: &str,
        certainty: &str,
    ) -> String {
        let Subscription { name, starting_csv, installed_csv, .. } = subscription;
        let requested = missing::requested(self.conflict.input, subscription);
        if missing::is_installed(self.conflict.input, subscription) {
            if let [one] = these
                && self.conflict.exists(*one)
            {
                let text = format!("Subscription `{name}` has `{installed_csv}` installed");
                return match certainty {
                    "" => text,
                    _ => format!("{text} and no upgrade that is possible"),
                };
            }
            return format!(
                "Subscription `{name}` has `{installed_csv}` installed and asks for {requested}: \
                 {certainty}{phrase}"
            );
        }
        if !starting_csv.is_empty() {
            return format!("Subscription `{name}` asks for `{starting_csv}` from {requested}");
        }
        let leaves = if certainty.is_empty() { ":" } else { ", which leaves" };
        format!("Subscription `{name}` asks for {requested}{leaves} {certainty}{phrase}")
    }
}

fn uniqueness_text(uniqueness: &Uniqueness) -> String {
    match uniqueness {
        Uniqueness::Package(package) => {
            format!("a namespace has only one operator of package `{package}`")
        }
        Uniqueness::Api(api) => format!("only one operator provides {api}"),
    }
}
