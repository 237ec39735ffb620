//! A contradiction as a tree: who asks, what for, and why each candidate falls.
//!
//! The reasons of a contradiction are irreducible, so whatever is asked for in it has candidates
//! each of which falls for one of them. The tree starts with the wish that is the easiest to give
//! up, and goes from a wish to its candidates, from a candidate to what rules it out, and from there
//! to who needs that; each reason is told once.

use super::absent;
use super::names::{self, Who};
use crate::candidates::Candidates;
use crate::predicate::Predicate;
use crate::problem::{Constraint, Reason, Rule, Subject, Var};
use crate::world::{Subscription, World};
use mainstay_cause::Cause;
use std::collections::{BTreeSet, HashSet};

/// How many lines a tree has at most, remedies apart.
const LINES: usize = 24;

/// How many children are shown of one node.
const CHILDREN: usize = 6;

/// A node that may still be left out.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Node {
    what: String,
    because: Vec<Self>,
}

impl Node {
    pub(super) const fn new(what: String) -> Self {
        Self { what, because: Vec::new() }
    }

    pub(super) fn because(mut self, nodes: impl IntoIterator<Item = Self>) -> Self {
        self.because.extend(nodes);
        self
    }

    fn count(&self, depth: usize) -> usize {
        match depth {
            0 => 1,
            _ => 1 + self.because.iter().map(|node| node.count(depth - 1)).sum::<usize>(),
        }
    }

    fn cause(self, depth: usize) -> Cause {
        let cause = Cause::new(self.what);
        if depth == 0 {
            return cause;
        }
        let more = self.because.len().saturating_sub(CHILDREN);
        let shown = if more > 1 { CHILDREN } else { self.because.len() };
        let cause = cause
            .because_all(self.because.into_iter().take(shown).map(|node| node.cause(depth - 1)));
        if more > 1 { cause.because(Cause::new(format!("of {more} reasons more"))) } else { cause }
    }

    /// The tree, without its deepest levels if it does not fit on a screen.
    pub(super) fn on_a_screen(self) -> Cause {
        let mut depth = 2;
        while depth < 16 && self.count(depth + 1) <= LINES {
            depth += 1;
        }
        self.cause(depth)
    }
}

/// Why a candidate falls.
#[derive(Clone, Debug, PartialEq)]
enum Fault {
    /// It carries the mark.
    Deprecated,
    /// It must not be chosen, for this reason.
    Forbidden(String),
    /// It needs something, which one of these would be.
    Needs(String, Vec<Var>, usize),
    /// It would take the place of something that is needed.
    Replaces(Vec<Var>),
    /// It is not possible beside one of these.
    Beside(Shared, Vec<Var>),
}

/// What only one operator can have.
#[derive(Clone, Debug, PartialEq)]
enum Shared {
    Package(String),
    Api(String),
}

/// Tells a contradiction.
pub(super) struct Teller<'c, 'w> {
    world: &'c World<'w>,
    candidates: &'c Candidates<'c>,
    core: Vec<&'c Constraint>,
    /// What must be there for its own sake.
    roots: Vec<Var>,
    /// Roots and requirements that were told.
    told_roots: HashSet<Var>,
    told: HashSet<usize>,
}

impl<'c, 'w> Teller<'c, 'w> {
    pub(super) fn new(
        world: &'c World<'w>,
        candidates: &'c Candidates<'c>,
        core: &[usize],
    ) -> Self {
        let core: Vec<_> = core.iter().map(|at| &candidates.problem.constraints[*at]).collect();
        let mandatory = |it: &&&Constraint| matches!(it.rule, Rule::Mandatory);
        let roots = core.iter().filter(mandatory).filter_map(|it| it.subject).collect();
        Self { world, candidates, core, roots, told_roots: HashSet::new(), told: HashSet::new() }
    }

    /// The whole tree.
    pub(super) fn tell(mut self) -> Cause {
        let mut roots = self.roots.clone();
        // What is not installed yet comes last in time, so it is what fails.
        roots.sort_by_key(|root| match self.subject(*root) {
            Subject::Subscription(at) => {
                let subscription = self.candidates.subscriptions[at];
                let installed = absent::is_installed(self.world, subscription);
                (u8::from(installed), std::cmp::Reverse(subscription.name.clone()))
            }
            Subject::Demand(_) => (1, std::cmp::Reverse(String::new())),
            Subject::Bundle(_) => (2, std::cmp::Reverse(String::new())),
        });
        let several = roots.iter().filter(|it| self.subscription(**it).is_some()).count() > 1;
        let mut nodes = Vec::new();
        for root in &roots {
            if self.told_roots.insert(*root) {
                nodes.extend(self.root(*root, several));
            }
        }
        Node::new(self.headline()).because(nodes).on_a_screen()
    }

    fn headline(&self) -> String {
        let mut subscriptions: Vec<String> = self
            .roots
            .iter()
            .filter_map(|root| Some(format!("`{}`", self.subscription(*root)?.name)))
            .collect();
        subscriptions.sort();
        match subscriptions.as_slice() {
            [] => {
                let existing: Vec<String> = self.roots.iter().map(|it| self.label(*it)).collect();
                format!("{} cannot be kept", names::some(&existing, "and"))
            }
            [one] => format!("Subscription {one} cannot be met"),
            some => {
                format!("Subscriptions {} cannot be met together", names::some(some, "and"))
            }
        }
    }

    fn subject(&self, var: Var) -> Subject {
        self.candidates.problem.subjects[var.index()]
    }

    fn subscription(&self, var: Var) -> Option<&'c Subscription> {
        match self.subject(var) {
            Subject::Subscription(at) => Some(self.candidates.subscriptions[at]),
            Subject::Bundle(_) | Subject::Demand(_) => None,
        }
    }

    /// Why something that must be there cannot be there.
    fn root(&mut self, root: Var, several: bool) -> Vec<Node> {
        let Some(subscription) = self.subscription(root) else {
            let faults = self.faults(root, usize::MAX);
            return self.group(&[root], &faults, usize::MAX, false);
        };
        let mut nodes = Vec::new();
        for at in 0..self.core.len() {
            let constraint = self.core[at];
            if constraint.subject != Some(root) {
                continue;
            }
            match (&constraint.rule, &constraint.reason) {
                (_, Reason::Invalid(_)) => {
                    nodes.extend(absent::of_subscription(self.world, subscription));
                }
                (Rule::Dependency(_), _) if self.told.insert(at) => {
                    let fallen = self.fallen(at, &[]);
                    nodes.push(Node::new(self.unmet(subscription, several)).because(fallen));
                }
                _ => {}
            }
        }
        nodes
    }

    /// That a Subscription gets nothing.
    fn unmet(&self, subscription: &Subscription, several: bool) -> String {
        let Subscription { name, installed_csv, starting_csv, .. } = subscription;
        let wish = absent::wish(self.world, subscription);
        if absent::is_installed(self.world, subscription) {
            let who = if several { format!("Subscription `{name}`") } else { "it".to_owned() };
            return format!(
                "{who} has `{installed_csv}` installed and can neither keep it nor take the next \
                 version from {wish}"
            );
        }
        let who = if several { format!(" for Subscription `{name}`") } else { String::new() };
        if starting_csv.is_empty() {
            format!("nothing in {wish} can be installed{who}")
        } else {
            format!(
                "`{starting_csv}`, its `spec.startingCSV`, cannot be installed{who} from {wish}"
            )
        }
    }

    /// Why the candidates of a requirement fall, those that are excepted left out.
    fn fallen(&mut self, at: usize, except: &[Var]) -> Vec<Node> {
        let Rule::Dependency(vars) = &self.core[at].rule else { return Vec::new() };
        let mut groups: Vec<(Vec<Fault>, Vec<Var>)> = Vec::new();
        for &var in vars.iter().filter(|var| !except.contains(var)) {
            let faults = self.faults(var, at);
            match groups.iter_mut().find(|(known, _)| same(known, &faults)) {
                Some((_, group)) => group.push(var),
                None => groups.push((faults, vec![var])),
            }
        }
        let all = groups.len() == 1 && except.is_empty();
        groups.into_iter().flat_map(|(faults, vars)| self.group(&vars, &faults, at, all)).collect()
    }

    /// What rules out a candidate of a requirement.
    fn faults(&self, var: Var, dependency: usize) -> Vec<Fault> {
        let mut faults = Vec::new();
        for (at, constraint) in self.core.iter().enumerate() {
            let is_subject = constraint.subject == Some(var);
            match (&constraint.rule, &constraint.reason) {
                (Rule::Prohibited, Reason::Forbidden(message)) if is_subject => {
                    faults.push(Fault::Forbidden(message.clone()));
                }
                (Rule::Prohibited, Reason::Kubernetes(least, there)) if is_subject => {
                    faults.push(Fault::Forbidden(format!(
                        "Kubernetes {least} or later is needed, the cluster has {there}"
                    )));
                }
                (Rule::Prohibited, _) if is_subject => faults.push(Fault::Deprecated),
                (Rule::Dependency(vars), reason) if is_subject => {
                    let text = self.requirement(var, reason).map(names::requirement);
                    faults.push(Fault::Needs(text.unwrap_or_default(), vars.to_vec(), at));
                }
                (Rule::Conflict(other), _) if is_subject => {
                    faults.push(Fault::Replaces(vec![*other]));
                }
                (Rule::Conflict(other), _) if *other == var => {
                    faults.extend(constraint.subject.map(|it| Fault::Replaces(vec![it])));
                }
                (Rule::AtMostOne(vars), reason) if vars.contains(&var) => {
                    let shared = match reason {
                        Reason::OneProvider(api) => Shared::Api(names::api(api)),
                        Reason::OneOfPackage(package) => Shared::Package(package.clone()),
                        _ => continue,
                    };
                    let partners = vars.iter().copied().filter(|it| *it != var);
                    let partners = partners.filter(|it| self.is_needed(*it, dependency));
                    faults.push(Fault::Beside(shared, partners.collect()));
                }
                _ => {}
            }
        }
        faults
    }

    /// Whether something is needed by anything but a requirement.
    fn is_needed(&self, var: Var, except: usize) -> bool {
        self.roots.contains(&var)
            || self.core.iter().enumerate().any(|(at, constraint)| {
                let Rule::Dependency(vars) = &constraint.rule else { return false };
                at != except && vars.contains(&var)
            })
    }

    fn requirement(&self, var: Var, reason: &Reason) -> Option<&'c Predicate> {
        match (reason, self.subject(var)) {
            (Reason::Required(at), Subject::Bundle(entry)) => {
                self.candidates.entry(entry).1.requirements.get(*at).map(|it| &**it)
            }
            _ => None,
        }
    }

    /// That candidates fall, for one reason or several.
    fn group(&mut self, vars: &[Var], faults: &[Fault], of: usize, all: bool) -> Vec<Node> {
        let who = self.who(vars, of, all);
        match faults {
            [fault] => vec![self.fault(&who, fault, of)],
            faults => {
                let it = Who::pronoun(who.plural);
                let nodes: Vec<Node> =
                    faults.iter().map(|fault| self.fault(&it, fault, of)).collect();
                vec![Node::new(format!("{} cannot be installed", who.text)).because(nodes)]
            }
        }
    }

    fn fault(&mut self, who: &Who, fault: &Fault, of: usize) -> Node {
        let text = &who.text;
        match fault {
            Fault::Deprecated => {
                Node::new(format!("{text} {} marked as deprecated", who.verb("is", "are")))
            }
            Fault::Forbidden(message) => {
                Node::new(format!("{text} must not be installed: {message}"))
            }
            Fault::Needs(what, vars, at) => {
                let needs = who.verb("needs", "need");
                if vars.is_empty() {
                    let requirement = self.core[*at]
                        .subject
                        .and_then(|var| self.requirement(var, &self.core[*at].reason));
                    let near = match requirement {
                        Some(requirement) if self.told.insert(*at) => {
                            absent::of_requirement(self.world, requirement)
                        }
                        _ => Vec::new(),
                    };
                    return Node::new(format!("{text} {needs} {what}, which nothing offers"))
                        .because(near);
                }
                let again = !self.tell_once(*at);
                let fallen = if again { Vec::new() } else { self.fallen(*at, &[]) };
                let why = if again { " (see above)" } else { "" };
                Node::new(format!(
                    "{text} {needs} {what}, and nothing that meets this can be installed{why}"
                ))
                .because(fallen)
            }
            Fault::Replaces(others) => {
                let other = self.who(others, of, false);
                let needs = self.needs(others, of);
                Node::new(format!("{text} would take the place of {}", other.text)).because(needs)
            }
            Fault::Beside(shared, partners) => {
                let other = self.who(partners, of, false);
                let only = match shared {
                    Shared::Package(package) => {
                        format!("a namespace has only one operator of package `{package}`")
                    }
                    Shared::Api(api) => format!("only one operator provides {api}"),
                };
                let needs = self.needs(partners, of);
                let is = who.verb("is", "are");
                Node::new(format!("{text} {is} not possible beside {}: {only}", other.text))
                    .because(needs)
            }
        }
    }

    /// Takes note that a requirement is told; all that ask the same are told with it.
    fn tell_once(&mut self, at: usize) -> bool {
        let Rule::Dependency(vars) = &self.core[at].rule else { return false };
        let known = self.told.iter().any(|told| match &self.core[*told].rule {
            Rule::Dependency(others) => others == vars,
            _ => false,
        });
        self.told.insert(at);
        !known
    }

    /// Who needs one of these.
    fn needs(&mut self, vars: &[Var], except: usize) -> Vec<Node> {
        let mut nodes = Vec::new();
        for &var in vars {
            if self.roots.contains(&var) && self.told_roots.insert(var) {
                nodes.push(Node::new(format!(
                    "{} exists, and no Subscription has it as its installed version",
                    self.label(var)
                )));
            }
        }
        for at in 0..self.core.len() {
            let constraint = self.core[at];
            let (Rule::Dependency(all), Some(subject)) = (&constraint.rule, constraint.subject)
            else {
                continue;
            };
            let these: Vec<Var> = all.iter().copied().filter(|it| vars.contains(it)).collect();
            if at == except || these.is_empty() || !self.tell_once(at) {
                continue;
            }
            let only = if these.len() < all.len() { "only " } else { "" };
            let who = self.who(&these, at, false);
            if let Some(subscription) = self.subscription(subject) {
                self.told_roots.insert(subject);
                let fallen = self.fallen(at, &these);
                let wish = absent::wish(self.world, subscription);
                let name = &subscription.name;
                let what = if only.is_empty() {
                    format!("Subscription `{name}` asks for {wish}, which is {}", who.text)
                } else {
                    format!(
                        "Subscription `{name}` asks for {wish}, where only {} is left",
                        who.text
                    )
                };
                nodes.push(Node::new(what).because(fallen));
            } else {
                let what = self.requirement(subject, &constraint.reason).map(names::requirement);
                let what = what.unwrap_or_default();
                let needing = self.who(&[subject], at, false);
                let fallen = self.fallen(at, &these);
                let above = self.needs(&[subject], at);
                let meets = who.verb("meets", "meet");
                nodes.push(
                    Node::new(format!(
                        "{} needs {what}, which {only}{} {meets}",
                        needing.text, who.text
                    ))
                    .because(fallen)
                    .because(above),
                );
            }
        }
        nodes
    }

    /// The name of one.
    fn label(&self, var: Var) -> String {
        match self.subject(var) {
            Subject::Subscription(at) => {
                format!("Subscription `{}`", self.candidates.subscriptions[at].name)
            }
            Subject::Demand(at) => {
                format!("the demanded package `{}`", self.candidates.demands[at].package)
            }
            Subject::Bundle(at) => {
                let name = &self.candidates.entry(at).0.name;
                match (at.source, self.roots.contains(&var)) {
                    (0, true) => format!("ClusterServiceVersion `{name}`"),
                    (0, false) => format!("the installed `{name}`"),
                    _ => format!("`{name}`"),
                }
            }
        }
    }

    /// Several as one subject of a sentence.
    fn who(&self, vars: &[Var], of: usize, all: bool) -> Who {
        let mut labels: Vec<String> = Vec::new();
        let mut packages: BTreeSet<&str> = BTreeSet::new();
        let mut versions = Vec::new();
        for &var in vars {
            let label = self.label(var);
            if labels.contains(&label) {
                continue;
            }
            labels.push(label);
            if let Subject::Bundle(at) = self.subject(var) {
                let entry = self.candidates.entry(at).0;
                packages.insert(&entry.package);
                versions.extend(entry.version.clone());
            }
        }
        versions.sort();
        let from = self.catalog_if_needed(vars, of);
        let plural = labels.len() > 1;
        if labels.len() <= 3 {
            return Who { text: format!("{}{from}", names::list(&labels, "and")), plural };
        }
        let range = match (versions.first(), versions.last()) {
            (Some(first), Some(last)) if versions.len() == labels.len() => {
                format!(" ({first} to {last})")
            }
            _ => String::new(),
        };
        let count = labels.len();
        let packages: Vec<String> = packages.iter().map(|it| format!("`{it}`")).collect();
        let text = match packages.as_slice() {
            [_] if all => format!("all {count} versions{range}"),
            [one] => format!("{count} versions of package {one}{range}"),
            some => format!("{count} bundles of packages {}", names::some(some, "and")),
        };
        Who { text: format!("{text}{from}"), plural }
    }

    /// The catalog, where the candidates of a requirement come from several.
    fn catalog_if_needed(&self, vars: &[Var], of: usize) -> String {
        let catalog = |var: &Var| match self.subject(*var) {
            Subject::Bundle(at) if at.source != 0 => Some(self.candidates.catalog(at)),
            _ => None,
        };
        let Some(Rule::Dependency(all)) = self.core.get(of).map(|it| &it.rule) else {
            return String::new();
        };
        let mut all = all.iter().filter_map(catalog);
        let mut these = vars.iter().filter_map(catalog);
        let (Some(any), Some(one)) = (all.next(), these.next()) else { return String::new() };
        if all.any(|other| other != any) && these.all(|other| other == one) {
            return format!(" in catalog {}", names::catalog(self.world, one));
        }
        String::new()
    }
}

/// Whether two candidates fall for the same reasons.
fn same(one: &[Fault], other: &[Fault]) -> bool {
    one.len() == other.len()
        && one.iter().zip(other).all(|pair| match pair {
            (Fault::Needs(a, b, _), Fault::Needs(c, d, _)) => a == c && b == d,
            (one, other) => one == other,
        })
}
