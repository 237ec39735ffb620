//! A contradiction as a tree: who asks, what for, and why each candidate falls.
//!
//! The reasons of a contradiction are irreducible, so each requirement among them has only
//! candidates that fall for another one of them. The tree starts with the wish that is the easiest
//! to give up, and goes from a wish to its candidates, from a candidate to what rules it out, and
//! from there to who needs that; each reason is told once, and candidates that fall for the same
//! reason are one line.

use super::absent;
use super::core::{Core, Fault, Need, Shared};
use super::names::{self, Who};
use super::node::Node;
use crate::predicate::Predicate;
use crate::problem::{Reason, Rule, Var};
use crate::world::{Demand, Subscription};
use mainstay_cause::Cause;
use std::cmp::Reverse;
use std::collections::{BTreeSet, HashSet};

/// Tells a contradiction.
pub(super) struct Teller<'c> {
    core: Core<'c>,
    /// Roots and requirements that were told.
    told_roots: HashSet<Var>,
    told: HashSet<usize>,
    /// How deep the telling is nested.
    depth: usize,
    /// How many things that are missing are still looked for.
    looks: usize,
}

/// How many reasons are told apart for the candidates of one requirement.
const GROUPS: usize = 40;

/// How deep a telling may be nested.
const DEPTH: usize = 100;

impl<'c> Teller<'c> {
    /// `looks` bounds for how many things that are missing something near is looked for.
    pub(super) fn new(core: Core<'c>, looks: usize) -> Self {
        Self { core, told_roots: HashSet::new(), told: HashSet::new(), depth: 0, looks }
    }

    /// The whole tree.
    pub(super) fn tell(mut self) -> Cause {
        let mut roots = self.core.roots.clone();
        // What is not installed yet was asked for last, so it is what fails.
        roots.sort_by_key(|root| {
            let label = self.core.label(*root);
            match self.core.subscription(*root) {
                Some(subscription) => {
                    let installed = absent::is_installed(self.core.world, subscription);
                    (2 * u8::from(installed), Reverse(subscription.name.as_str()), label)
                }
                None if self.core.demand(*root).is_some() => (1, Reverse(""), label),
                None => (3, Reverse(""), label),
            }
        });
        let mut nodes = Vec::new();
        for root in roots {
            if self.told_roots.insert(root) {
                nodes.extend(self.root(root));
            }
        }
        Node::new(self.headline()).because(nodes).on_a_screen()
    }

    fn headline(&self) -> String {
        let label = |root: &Var| self.core.label(*root);
        let roots = || self.core.roots.iter();
        let subscriptions: BTreeSet<&str> =
            roots().filter_map(|root| Some(&*self.core.subscription(*root)?.name)).collect();
        let demands: BTreeSet<String> =
            roots().filter(|root| self.core.demand(**root).is_some()).map(label).collect();
        let count = subscriptions.len() + demands.len();
        let mut wishes = Vec::new();
        match names::quoted(subscriptions).as_slice() {
            [] => {}
            [one] => wishes.push(format!("Subscription {one}")),
            some if demands.is_empty() => {
                wishes.push(format!("Subscriptions {}", names::some(some, "and")));
            }
            some => wishes.extend(some.iter().map(|name| format!("Subscription {name}"))),
        }
        wishes.extend(demands);
        if count == 0 {
            let existing: BTreeSet<String> = roots().map(label).collect();
            let existing: Vec<String> = existing.into_iter().collect();
            let together = if existing.len() > 1 { " together" } else { "" };
            return format!("{} cannot stay{together}", names::some(&existing, "and"));
        }
        let together = if count > 1 { " together" } else { "" };
        format!("{} cannot be met{together}", names::some(&wishes, "and"))
    }

    /// Why something that must be there cannot be there.
    fn root(&mut self, root: Var) -> Vec<Node> {
        if let Some(demand) = self.core.demand(root) {
            return self.demand(root, demand);
        }
        let Some(subscription) = self.core.subscription(root) else {
            let faults = self.core.faults(root, &[]);
            if self.core.roots.len() > 1 {
                return vec![self.group(&[root], &faults, &[], false)];
            }
            let pronoun = Who::pronoun(false);
            return faults.iter().map(|fault| self.fault(&pronoun, &[root], fault, &[])).collect();
        };
        let mut nodes = Vec::new();
        for at in self.core.about(root) {
            match (&self.core.constraint(at).rule, &self.core.constraint(at).reason) {
                (_, Reason::Invalid(_)) => {
                    nodes.extend(absent::of_subscription(self.core.world, subscription));
                }
                (Rule::Dependency(_), _) if self.tell_once(at) => {
                    let unmet = self.unmet(subscription, at);
                    let fallen = self.fallen(&[at], &[]);
                    nodes.push(Node::new(unmet).because(fallen));
                }
                _ => {}
            }
        }
        nodes
    }

    /// Why a demand gets nothing.
    fn demand(&mut self, root: Var, demand: &Demand) -> Vec<Node> {
        let mut nodes = Vec::new();
        for at in self.core.about(root) {
            if !matches!(self.core.constraint(at).rule, Rule::Dependency(_)) || !self.tell_once(at)
            {
                continue;
            }
            let what = names::demand(demand);
            nodes.push(if self.core.members(at).is_empty() {
                let near = self.near(&absent::demanded(demand));
                Node::new(format!("nothing offers {what}")).because(near)
            } else {
                let fallen = self.fallen(&[at], &[]);
                Node::new(format!("nothing that is {what} can be installed")).because(fallen)
            });
        }
        nodes
    }

    /// That a Subscription gets nothing.
    fn unmet(&self, subscription: &Subscription, at: usize) -> String {
        let Subscription { name, installed_csv, starting_csv, .. } = subscription;
        let alone =
            self.core.roots.iter().filter(|root| self.core.subscription(**root).is_some()).count()
                < 2;
        let wish = absent::wish(self.core.world, subscription);
        if absent::is_installed(self.core.world, subscription) {
            let who = if alone { "it".to_owned() } else { format!("Subscription `{name}`") };
            return if self.core.members(at).len() > 1 {
                format!(
                    "{who} can neither keep `{installed_csv}`, which is installed, nor upgrade \
                     from it in {wish}"
                )
            } else {
                format!(
                    "{who} cannot keep `{installed_csv}`, which is installed, and {wish} has no \
                     upgrade from it"
                )
            };
        }
        if subscription.restores {
            let who = if alone { String::new() } else { format!(" for Subscription `{name}`") };
            return format!(
                "`{starting_csv}`, which was installed and is gone, cannot be installed again from \
                 {wish}{who}"
            );
        }
        if !starting_csv.is_empty() {
            return if alone {
                format!("its `spec.startingCSV` asks for `{starting_csv}` from {wish}")
            } else {
                format!(
                    "Subscription `{name}` asks for `{starting_csv}`, its `spec.startingCSV`, from \
                     {wish}"
                )
            };
        }
        let who = if alone { String::new() } else { format!(" for Subscription `{name}`") };
        format!("nothing in {wish} can be installed{who}")
    }

    /// Why the candidates of requirements fall, those that are excepted left out.
    fn fallen(&mut self, ats: &[usize], except: &[Var]) -> Vec<Node> {
        if self.depth >= DEPTH {
            return Vec::new();
        }
        self.depth += 1;
        let mut groups: Vec<(Vec<Fault>, Vec<Var>)> = Vec::new();
        let mut seen: HashSet<Var> = except.iter().copied().collect();
        let mut more = 0;
        let vars: Vec<Var> = ats.iter().flat_map(|at| self.core.members(*at)).copied().collect();
        for var in vars.into_iter().filter(|var| seen.insert(*var)) {
            let faults = self.core.faults(var, ats);
            if let Some(like) = groups.iter().position(|(known, _)| *known == faults) {
                let (known, group) = &mut groups[like];
                for pair in known.iter_mut().zip(&faults) {
                    if let (Fault::Needs(known), Fault::Needs(other)) = pair {
                        known.merge(other);
                    }
                }
                group.push(var);
            } else if groups.len() == GROUPS {
                more += 1;
            } else {
                groups.push((faults, vec![var]));
            }
        }
        let all = groups.len() == 1 && except.is_empty();
        let mut nodes: Vec<Node> =
            groups.into_iter().map(|(faults, vars)| self.group(&vars, &faults, ats, all)).collect();
        if more > 0 {
            nodes.push(Node::new(format!("{more} more candidates fall for reasons of their own")));
        }
        self.depth -= 1;
        nodes
    }

    /// That candidates fall, for one reason or several.
    fn group(&mut self, vars: &[Var], faults: &[Fault], of: &[usize], all: bool) -> Node {
        let who = self.core.who(vars, of, all, "and");
        if let [fault] = faults {
            return self.fault(&who, vars, fault, of);
        }
        let pronoun = Who::pronoun(who.plural);
        let mut nodes = Vec::new();
        for fault in faults {
            // What one reason brought up already need not be said again.
            let old =
                matches!(fault, Fault::Needs(need) if need.ats.iter().all(|at| self.is_told(*at)));
            if nodes.is_empty() || !old {
                nodes.push(self.fault(&pronoun, vars, fault, of));
            }
        }
        let stays = vars.iter().all(|var| self.core.exists(*var));
        let verb = if stays { "stay" } else { "be installed" };
        Node::new(format!("{} cannot {verb}", who.text)).because(nodes)
    }

    fn fault(&mut self, who: &Who, vars: &[Var], fault: &Fault, of: &[usize]) -> Node {
        let text = &who.text;
        match fault {
            Fault::Deprecated => {
                Node::new(format!("{text} {} marked as deprecated", who.verb("is", "are")))
            }
            Fault::Forbidden(message) => {
                let not = who.verb("is not to be chosen", "are not to be chosen");
                Node::new(format!("{text} {not}: {}", names::shortened(message)))
            }
            Fault::Kubernetes(least, there) => {
                let needs = who.verb("needs", "need");
                Node::new(format!(
                    "{text} {needs} Kubernetes {least} or later, and the cluster has {there}"
                ))
            }
            Fault::Needs(need) => self.lacks(who, need),
            Fault::Replaces(others) => {
                let other = self.core.who(others, of, false, "or").text;
                let needs = self.needs(others, of);
                Node::new(format!("{text} would take the place of {other}")).because(needs)
            }
            Fault::Beside(shared, partners) => {
                let is = who.verb("is", "are");
                let only = only(shared);
                let mut other =
                    self.core.who(partners, of, false, "or").text.replacen("one of", "any of", 1);
                let mut text = text.clone();
                if let ([one], [partner]) = (vars, &**partners)
                    && self.core.label(*one) == self.core.label(*partner)
                {
                    text = self.core.full_label(*one);
                    other = self.core.full_label(*partner);
                }
                let needs = self.needs(partners, of);
                Node::new(format!("{text} {is} not possible beside {other}: {only}")).because(needs)
            }
            Fault::Twice(shared) => {
                let what = match shared {
                    Shared::Package(package) => format!("package `{package}`"),
                    Shared::Api(api) => api.clone(),
                };
                Node::new(format!("{text} {} {what} twice", who.verb("states", "state")))
            }
        }
    }

    /// That something lacks what it needs.
    fn lacks(&mut self, who: &Who, need: &Need) -> Node {
        let (text, needs, what) = (&who.text, who.verb("needs", "need"), need.text());
        if need.vars.is_empty() {
            let requirement = need.ats.first().and_then(|at| self.core.requirement(*at));
            let new = need.ats.iter().filter(|at| self.tell_once(**at)).count() > 0;
            let near = match requirement {
                Some(requirement) if new => self.near(requirement),
                _ => Vec::new(),
            };
            return Node::new(format!("{text} {needs} {what}, which nothing offers")).because(near);
        }
        let new: Vec<usize> = need.ats.iter().copied().filter(|at| self.tell_once(*at)).collect();
        let fallen = self.fallen(&new, &[]);
        let above = if new.is_empty() { ", as told above" } else { "" };
        let nothing = "nothing that meets this can be installed";
        Node::new(format!("{text} {needs} {what}, but {nothing}{above}")).because(fallen)
    }

    /// What is nearest to a requirement that nothing meets; only the first ones are worth a look.
    fn near(&mut self, requirement: &Predicate) -> Vec<Node> {
        let Some(left) = self.looks.checked_sub(1) else { return Vec::new() };
        self.looks = left;
        absent::of_requirement(self.core.world, requirement)
    }

    /// Takes note that a requirement is told; false if it was told before, by whoever states it.
    fn tell_once(&mut self, at: usize) -> bool {
        let known = self.is_told(at);
        self.told.insert(at);
        !known
    }

    fn is_told(&self, at: usize) -> bool {
        self.told.iter().any(|told| self.core.is_alike(*told, at))
    }

    /// Who needs one of these, apart from some requirements.
    fn needs(&mut self, vars: &[Var], except: &[usize]) -> Vec<Node> {
        if self.depth >= DEPTH {
            return Vec::new();
        }
        self.depth += 1;
        let mut nodes = Vec::new();
        let mut ats: BTreeSet<usize> = BTreeSet::new();
        for var in vars {
            if self.core.is_root(*var) && self.told_roots.insert(*var) {
                nodes.push(Node::new(self.core.stays(*var)));
            }
            ats.extend(self.core.naming(*var));
        }
        for &at in &ats {
            let Rule::Dependency(all) = &self.core.constraint(at).rule else { continue };
            if except.contains(&at) || !self.tell_once(at) {
                continue;
            }
            let Some(subject) = self.core.constraint(at).subject else { continue };
            let these: Vec<Var> = all.iter().copied().filter(|var| vars.contains(var)).collect();
            let others: Vec<Var> = all.iter().copied().filter(|var| !these.contains(var)).collect();
            let only = self.only(&others, at);
            // Others may state the same requirement.
            let alike: Vec<usize> =
                ats.iter().copied().filter(|other| self.core.is_alike(*other, at)).collect();
            let subjects: Vec<Var> =
                alike.iter().filter_map(|at| self.core.constraint(*at).subject).collect();
            let who = self.core.who(&these, &[at], false, "or");
            let text = if let Some(subscription) = self.core.subscription(subject) {
                self.told_roots.insert(subject);
                self.asks(subscription, &these, &who.text, only)
            } else if let Some(demand) = self.core.demand(subject) {
                self.told_roots.insert(subject);
                let what = names::demand(demand);
                format!("{what} is demanded, which {only}{} can meet", who.text)
            } else {
                let needing = self.core.who(&subjects, &[], false, "and");
                let what = self.core.requirement(at).map(names::requirement).unwrap_or_default();
                let needs = needing.verb("needs", "need");
                format!("{} {needs} {what}, which {only}{} can meet", needing.text, who.text)
            };
            let fallen = self.fallen(&[at], &these);
            let above = match self.core.requirement(at) {
                Some(_) => self.needs(&subjects, &alike),
                None => Vec::new(),
            };
            nodes.push(Node::new(text).because(fallen).because(above));
        }
        self.depth -= 1;
        nodes
    }

    /// How sure it is that other candidates of a requirement fall: some only do beside others.
    fn only(&self, others: &[Var], at: usize) -> &'static str {
        let depends = |var: &Var| {
            let faults = self.core.faults(*var, &[at]);
            faults.iter().any(|fault| matches!(fault, Fault::Beside(..) | Fault::Replaces(_)))
        };
        match others {
            [] => "",
            others if others.iter().any(depends) => "at best ",
            _ => "only ",
        }
    }

    /// What a Subscription asks for, and what is left of it.
    fn asks(&self, of: &Subscription, these: &[Var], who: &str, only: &str) -> String {
        let Subscription { name, starting_csv, installed_csv, .. } = of;
        let wish = absent::wish(self.core.world, of);
        if absent::is_installed(self.core.world, of) {
            if let [one] = these
                && self.core.exists(*one)
            {
                let text = format!("Subscription `{name}` has `{installed_csv}` installed");
                return match only {
                    "" => text,
                    _ => format!("{text} and no upgrade that is possible"),
                };
            }
            return format!(
                "Subscription `{name}` has `{installed_csv}` installed and asks for {wish}: \
                 {only}{who}"
            );
        }
        if !starting_csv.is_empty() {
            return format!("Subscription `{name}` asks for `{starting_csv}` from {wish}");
        }
        let leaves = if only.is_empty() { ":" } else { ", which leaves" };
        format!("Subscription `{name}` asks for {wish}{leaves} {only}{who}")
    }
}

fn only(shared: &Shared) -> String {
    match shared {
        Shared::Package(package) => {
            format!("a namespace has only one operator of package `{package}`")
        }
        Shared::Api(api) => format!("only one operator provides {api}"),
    }
}
