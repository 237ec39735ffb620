//! The rules of a world: what may be in the answer, and every constraint on it.

use crate::candidates::is_about;
use crate::entries::{self, Entry, Source};
use crate::requirement::Requirement;
use mainstay_resolver::{Api, CatalogKey, Demand, Prohibited, Subscription, World};
use mainstay_version::Range;
use std::collections::{BTreeSet, HashMap};

/// Something that is in the answer or not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Thing {
    /// An entry, by its number.
    Entry(usize),
    /// A demand, by its number in order of packages.
    Demand(usize),
    /// A Subscription, by its number in order of names.
    Subscription(usize),
}

/// What must hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Rule {
    /// It is in the answer.
    Must,
    /// It is not in the answer.
    MustNot,
    /// With it one of these, in order of preference.
    OneOf(Vec<usize>),
    /// Not with this one.
    NotWith(usize),
    /// At most one of these; one that is listed twice excludes itself.
    AtMostOne(Vec<usize>),
}

/// One constraint.
#[derive(Clone, Debug)]
pub struct Constraint {
    /// The thing that it is about; none for [`Rule::AtMostOne`].
    pub about: Option<usize>,
    /// What must hold.
    pub rule: Rule,
    /// How failures name it.
    pub text: String,
}

/// The rules of a world.
pub struct Rules<'a> {
    pub(crate) things: Vec<Thing>,
    /// Every constraint; those that demand something are in the order in which they are met.
    pub constraints: Vec<Constraint>,
    pub(crate) world: &'a World<'a>,
    pub(crate) demands: Vec<&'a Demand>,
    pub(crate) subscriptions: Vec<&'a Subscription>,
    /// Subscriptions whose catalog or channel is broken; they are no things.
    pub(crate) blocked: Vec<usize>,
    /// Things whose requirements cannot be read.
    pub(crate) unreadable: Vec<usize>,
    /// Constraints for which a channel without order may have had something.
    pub(crate) gaps: Vec<usize>,
    pub(crate) sources: Vec<Source>,
    pub(crate) entries: Vec<Entry<'a>>,
    /// For things that take the place of something installed: its name.
    pub(crate) replaces: HashMap<usize, String>,
    places: Vec<Place>,
    /// The thing of each entry.
    thing_of: Vec<usize>,
}

/// Where an entry is found by catalog, channel and name.
struct Place {
    /// The first entry there.
    first: usize,
    /// How many there are.
    count: usize,
}

/// No thing yet.
const NONE: usize = usize::MAX;

/// The namespace as a whole cannot be resolved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Broken(pub &'static str);

/// The rules of a world.
///
/// # Errors
///
/// When nothing can be resolved: not exactly one OperatorGroup, names that come twice, existing
/// operators that cannot be read.
pub fn rules<'a>(world: &'a World<'a>) -> Result<Rules<'a>, Broken> {
    let [group] = world.operator_groups.as_slice() else { return Err(Broken("OperatorGroup")) };
    let distinct = |names: BTreeSet<String>, count: usize| names.len() == count;
    if !distinct(world.csvs.iter().map(|csv| csv.name.clone()).collect(), world.csvs.len())
        || !distinct(
            world.subscriptions.iter().map(|subscription| subscription.name.clone()).collect(),
            world.subscriptions.len(),
        )
        || !distinct(
            world.catalogs.iter().map(|catalog| catalog.key.to_string()).collect(),
            world.catalogs.len(),
        )
    {
        return Err(Broken("a name comes twice"));
    }
    let sources = entries::sources(world, group.exclude_global);
    let entries = entries::entries(world, &sources, group.fail_forward)
        .map_err(|_| Broken("existing operators"))?;
    let mut subscriptions: Vec<&Subscription> = world.subscriptions.iter().collect();
    subscriptions.sort_by_key(|subscription| &subscription.name);
    let mut demands: Vec<&Demand> = world.demands.iter().collect();
    demands.sort_by_key(|demand| (&demand.package, demand.range.as_ref().map(Range::as_str)));
    let mut found: HashMap<(usize, &str, &str), (usize, usize)> = HashMap::new();
    for (at, entry) in entries.iter().enumerate() {
        found.entry((entry.source, &entry.channel, &entry.name)).or_insert((at, 0)).1 += 1;
    }
    let places = entries
        .iter()
        .map(|entry| {
            let (first, count) =
                found[&(entry.source, entry.channel.as_str(), entry.name.as_str())];
            Place { first, count }
        })
        .collect();
    let thing_of = vec![NONE; entries.len()];
    let mut rules = Rules {
        places,
        thing_of,
        things: Vec::new(),
        constraints: Vec::new(),
        world,
        demands,
        subscriptions,
        blocked: Vec::new(),
        unreadable: Vec::new(),
        gaps: Vec::new(),
        sources,
        entries,
        replaces: HashMap::new(),
    };
    rules.make();
    Ok(rules)
}

impl Rules<'_> {
    fn make(&mut self) {
        // Existing operators are there, whoever needs them.
        for at in 0..self.entries.len() {
            let Entry { source, subscribed, name, .. } = &self.entries[at];
            if *source == 0 {
                let text = format!(
                    "clusterserviceversion {name} exists and is not referenced by a subscription"
                );
                let needed = !subscribed;
                let thing = self.thing(at);
                if needed {
                    self.constrain(Some(thing), Rule::Must, text);
                }
            }
        }
        for at in 0..self.demands.len() {
            self.demand(at);
        }
        for at in 0..self.subscriptions.len() {
            self.subscribe(at);
        }
        self.require();
        for at in 0..self.things.len() {
            self.forbid(at);
        }
        self.keep();
        self.keep_apart();
    }

    fn constrain(&mut self, about: Option<usize>, rule: Rule, text: String) {
        self.constraints.push(Constraint { about, rule, text });
    }

    /// The thing of an entry. Entries of one catalog, channel and name are one thing.
    fn thing(&mut self, entry: usize) -> usize {
        let first = self.places[entry].first;
        let known = &mut self.thing_of[first];
        if *known == NONE {
            *known = self.things.len();
            self.things.push(Thing::Entry(first));
        }
        *known
    }

    /// How failures name a thing.
    pub(crate) fn identifier(&self, thing: usize) -> String {
        match self.things[thing] {
            Thing::Entry(entry) => {
                let entry = &self.entries[entry];
                let CatalogKey { name, namespace } = &self.sources[entry.source].key;
                format!("{name}/{namespace}/{}/{}", entry.channel, entry.name)
            }
            Thing::Demand(at) => self.demands[at].package.clone(),
            Thing::Subscription(at) => self.subscriptions[at].name.clone(),
        }
    }

    fn names(&self, things: &[usize], last: &str) -> String {
        let names: Vec<String> = things.iter().map(|thing| self.identifier(*thing)).collect();
        match names.split_last() {
            Some((end, rest)) if !rest.is_empty() => {
                format!("{} {last} {end}", rest.join(", "))
            }
            _ => names.concat(),
        }
    }

    /// What an administrator demands.
    fn demand(&mut self, at: usize) {
        let Demand { package, range } = self.demands[at].clone();
        self.things.push(Thing::Demand(at));
        let thing = self.things.len() - 1;
        self.constrain(Some(thing), Rule::Must, format!("package {package} is demanded"));
        let mut parts = vec![Requirement::Package(package.clone())];
        parts.extend(range.map(Requirement::InRange));
        let things = self.things_that_meet(0, &Requirement::All(parts));
        let text = if things.is_empty() {
            format!("no operators found for the demanded package {package}")
        } else {
            let names = self.names(&things, "or");
            format!("demand for package {package} requires at least one of {names}")
        };
        self.constrain(Some(thing), Rule::OneOf(things), text);
    }

    /// What a Subscription asks for.
    fn subscribe(&mut self, at: usize) {
        let subscription = self.subscriptions[at];
        let name = &subscription.name;
        let mut asked = self.sources.iter().filter(|source| is_about(subscription, &source.key));
        if asked.any(|source| !source.ready) {
            self.blocked.push(at);
            return;
        }
        let installed = self.installed(subscription);
        let wanted = match self.wanted(subscription, installed.is_none()) {
            Ok(wanted) => wanted,
            Err(text) => {
                let thing = self.wish(at);
                self.constrain(Some(thing), Rule::MustNot, text);
                return;
            }
        };
        let Ok(wanted) = self.by_channel(wanted) else {
            self.blocked.push(at);
            return;
        };
        let thing = self.wish(at);
        let mut things = Vec::new();
        for entry in wanted {
            if installed
                .is_some_and(|installed| !self.entries[entry].follows(&self.entries[installed]))
            {
                continue;
            }
            let candidate = self.thing(entry);
            if !things.contains(&candidate) {
                things.push(candidate);
            }
        }
        if let Some(installed) = installed {
            let current = self.thing(installed);
            for &candidate in &things {
                let text = format!(
                    "{} conflicts with {}",
                    self.identifier(candidate),
                    self.identifier(current)
                );
                self.constrain(Some(candidate), Rule::NotWith(current), text);
                if candidate != current {
                    self.replaces.insert(candidate, self.entries[installed].name.clone());
                }
            }
            if !things.contains(&current) {
                things.push(current);
            }
        }
        let text = match things.as_slice() {
            [] => format!("no operators found matching the criteria of subscription {name}"),
            [_] => format!("subscription {name} requires {}", self.names(&things, "or")),
            _ => format!(
                "subscription {name} requires at least one of {}",
                self.names(&things, "or")
            ),
        };
        self.constrain(Some(thing), Rule::OneOf(things), text);
    }

    /// The thing of a Subscription, which must be met.
    fn wish(&mut self, at: usize) -> usize {
        self.things.push(Thing::Subscription(at));
        let thing = self.things.len() - 1;
        let text = format!("subscription {} exists", self.subscriptions[at].name);
        self.constrain(Some(thing), Rule::Must, text);
        thing
    }

    /// The existing operator that a Subscription says is installed.
    fn installed(&self, subscription: &Subscription) -> Option<usize> {
        let mut existing = self.entries.iter();
        existing.position(|entry| entry.source == 0 && entry.name == subscription.installed_csv)
    }

    /// What each thing requires, and what the things that could meet it require in turn.
    fn require(&mut self) {
        // Many versions require the same: what was once found is not looked for again.
        let mut found: HashMap<(usize, String), (Vec<usize>, bool)> = HashMap::new();
        let mut at = 0;
        while at < self.things.len() {
            let thing = at;
            at += 1;
            let Thing::Entry(entry) = self.things[thing] else { continue };
            if self.entries[entry].said.unreadable {
                self.unreadable.push(thing);
                continue;
            }
            let source = self.entries[entry].source;
            for requirement in self.entries[entry].said.requirements.clone() {
                let key = (source, requirement.shape());
                if !found.contains_key(&key) {
                    let gaps = self.gaps.len();
                    let things = self.things_that_meet(source, &requirement);
                    let gap = self.gaps.len() > gaps;
                    self.gaps.truncate(gaps);
                    found.insert(key.clone(), (things, gap));
                }
                let (things, gap) = found[&key].clone();
                if gap {
                    self.gaps.push(self.constraints.len());
                }
                let name = &self.entries[entry].name;
                let text = format!("bundle {name} requires an operator {requirement}");
                self.constrain(Some(thing), Rule::OneOf(things), text);
            }
        }
    }

    /// The things that meet a requirement of something in a source, best first. Where a channel has
    /// no order, the next constraint has a gap.
    fn things_that_meet(&mut self, of: usize, requirement: &Requirement) -> Vec<usize> {
        let (providers, gap) = self.providers(of, requirement);
        if gap {
            self.gaps.push(self.constraints.len());
        }
        let mut things = Vec::new();
        for provider in providers {
            let thing = self.thing(provider);
            if !things.contains(&thing) {
                things.push(thing);
            }
        }
        things
    }

    /// What must not be chosen.
    fn forbid(&mut self, thing: usize) {
        let Thing::Entry(entry) = self.things[thing] else { return };
        let entry = &self.entries[entry];
        let mut texts = Vec::new();
        let identifier = self.identifier(thing);
        if entry.said.deprecated {
            texts.push(format!("bundle {identifier} is deprecated"));
        }
        // Administrators' rules are about catalogs only.
        if entry.source != 0 {
            let mut messages: Vec<&String> = Vec::new();
            for prohibition in &self.world.prohibitions {
                let forbids = match &prohibition.what {
                    Prohibited::Package(package) => *package == entry.package,
                    Prohibited::Bundle(name) => *name == entry.name,
                    Prohibited::OutsideOf(packages) => !packages.contains(&entry.package),
                };
                if forbids {
                    messages.push(&prohibition.message);
                }
            }
            texts.extend(messages.into_iter().min().cloned());
            if let (Some(least), Some(there)) = (&entry.said.kubernetes, &self.world.kube_version)
                && there.release() < least.release()
            {
                texts.push(format!(
                    "bundle {identifier} needs Kubernetes {least} or later, the cluster has \
                         {there}"
                ));
            }
        }
        for text in texts {
            self.constrain(Some(thing), Rule::MustNot, text);
        }
    }

    /// What is installed stays where its Subscription cannot be met. What it requires and what
    /// nothing that exists offers is no concern then.
    fn keep(&mut self) {
        let invalid = |constraint: &Constraint| match (
            &constraint.rule,
            constraint.about.map(|at| self.things[at]),
        ) {
            (Rule::MustNot, Some(Thing::Subscription(at))) => Some(at),
            _ => None,
        };
        let mut unmet: Vec<usize> = self.constraints.iter().filter_map(invalid).collect();
        unmet.extend(&self.blocked);
        unmet.sort_unstable();
        let mut kept = Vec::new();
        for at in unmet {
            let subscription = self.subscriptions[at];
            let Some(installed) = self.installed(subscription) else { continue };
            let thing = self.thing(installed);
            if !kept.contains(&thing) {
                kept.push(thing);
                let text = format!(
                    "clusterserviceversion {} exists and stays because subscription {} cannot be \
                     resolved",
                    self.entries[installed].name, subscription.name
                );
                self.constrain(Some(thing), Rule::Must, text);
            }
        }
        let (things, entries) = (&self.things, &self.entries);
        let exists =
            |thing: &usize| matches!(things[*thing], Thing::Entry(at) if entries[at].source == 0);
        for constraint in &mut self.constraints {
            if let (Rule::OneOf(list), Some(about)) = (&constraint.rule, constraint.about)
                && kept.contains(&about)
                && !list.iter().any(exists)
            {
                constraint.rule = Rule::OneOf(vec![about]);
            }
        }
    }

    /// At most one provider of each kind, and one operator of each package.
    fn keep_apart(&mut self) {
        let mut apis: Vec<Api> = Vec::new();
        let mut packages: Vec<String> = Vec::new();
        let mut of: Vec<(usize, usize)> = Vec::new();
        for (at, thing) in self.things.iter().enumerate() {
            if let Thing::Entry(entry) = thing
                && self.has_one_place(*entry)
            {
                of.push((at, *entry));
                apis.extend(self.entries[*entry].said.apis.iter().cloned());
                packages.extend(
                    self.entries[*entry].said.packages.iter().map(|package| package.0.clone()),
                );
            }
        }
        apis.sort();
        apis.dedup();
        packages.sort();
        packages.dedup();
        let listed = |rules: &Self, count: &dyn Fn(&Entry<'_>) -> usize| {
            let mut listed = Vec::new();
            for (thing, entry) in &of {
                let times = count(&rules.entries[*entry]);
                listed.extend(std::iter::repeat_n(*thing, times));
            }
            listed.sort_by_cached_key(|thing| rules.identifier(*thing));
            listed
        };
        for api in apis {
            let things = listed(self, &|entry| {
                entry.said.apis.iter().filter(|other| **other == api).count()
            });
            if things.len() > 1 {
                let text = format!("{} provide {api}", self.names(&things, "and"));
                self.constrain(None, Rule::AtMostOne(things), text);
            }
        }
        for package in packages {
            let things = listed(self, &|entry| {
                entry.said.packages.iter().filter(|(name, _)| *name == package).count()
            });
            if things.len() > 1 {
                let names = self.names(&things, "and");
                let text = format!("{names} originate from package {package}");
                self.constrain(None, Rule::AtMostOne(things), text);
            }
        }
    }

    /// The constraints that have to do with some things, in their order.
    pub(crate) fn constraints_of(&self, things: &[usize]) -> Vec<&Constraint> {
        let mut among = vec![false; self.things.len()];
        for thing in things {
            among[*thing] = true;
        }
        let of = |constraint: &&Constraint| constraint.things().iter().any(|thing| among[*thing]);
        self.constraints.iter().filter(of).collect()
    }

    /// The names of the Subscriptions among some things, sorted.
    pub(crate) fn subscriptions_of(&self, things: &[usize]) -> Vec<String> {
        let names = things.iter().filter_map(|thing| match self.things[*thing] {
            Thing::Subscription(at) => Some(self.subscriptions[at].name.clone()),
            Thing::Entry(_) | Thing::Demand(_) => None,
        });
        let mut names: Vec<String> = names.collect();
        names.sort();
        names
    }

    /// Whether the identifier of an entry leads back to it alone.
    pub(crate) fn has_one_place(&self, entry: usize) -> bool {
        let Entry { source, name, channel, .. } = &self.entries[entry];
        let CatalogKey { name: catalog, namespace } = &self.sources[*source].key;
        let plain = [catalog, namespace, channel, name].iter().all(|part| !part.contains('/'));
        plain && self.places[entry].count == 1
    }
}
