//! The rules of a world: what may be in the answer, and every constraint on it.

use crate::channel::{self, Unordered};
use crate::entries::{self, Entry, Source};
use crate::requirement::Requirement;
use mainstay_resolver::{Api, CatalogKey, Subscription, World};
use std::collections::HashMap;

/// Something that is in the answer or not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Thing {
    /// An entry, by its number.
    Entry(usize),
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
    pub(crate) subscriptions: Vec<&'a Subscription>,
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

/// The namespace as a whole cannot be resolved, for a reason other than a contradiction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Broken(pub &'static str);

/// The rules of a world.
///
/// # Errors
///
/// When resolution has to end before it begins: not exactly one OperatorGroup, existing operators
/// or requirements that cannot be read, a catalog without content, a channel without order.
pub fn rules<'a>(world: &'a World<'a>) -> Result<Rules<'a>, Broken> {
    let [group] = world.operator_groups.as_slice() else { return Err(Broken("OperatorGroup")) };
    let sources = entries::sources(world, group.exclude_global);
    if sources.iter().any(|source| !source.ready) {
        return Err(Broken("catalog"));
    }
    let entries = entries::entries(world, &sources, group.fail_forward)
        .map_err(|_| Broken("existing operators"))?;
    let mut subscriptions: Vec<&Subscription> = world.subscriptions.iter().collect();
    subscriptions.sort_by_key(|it| &it.name);
    let mut found: HashMap<(usize, &str, &str), (usize, usize)> = HashMap::new();
    for (at, it) in entries.iter().enumerate() {
        found.entry((it.source, &it.channel, &it.name)).or_insert((at, 0)).1 += 1;
    }
    let places = entries
        .iter()
        .map(|it| {
            let (first, count) = found[&(it.source, it.channel.as_str(), it.name.as_str())];
            Place { first, count }
        })
        .collect();
    let thing_of = vec![NONE; entries.len()];
    let mut rules = Rules {
        places,
        thing_of,
        things: Vec::new(),
        constraints: Vec::new(),
        subscriptions,
        sources,
        entries,
        replaces: HashMap::new(),
    };
    rules.make()?;
    Ok(rules)
}

impl Rules<'_> {
    fn make(&mut self) -> Result<(), Broken> {
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
        for at in 0..self.subscriptions.len() {
            self.subscribe(at)?;
        }
        self.require()?;
        for at in 0..self.things.len() {
            let Thing::Entry(entry) = self.things[at] else { continue };
            if self.entries[entry].said.deprecated {
                let text = format!("bundle {} is deprecated", self.identifier(at));
                self.constrain(Some(at), Rule::MustNot, text);
            }
        }
        self.keep_apart();
        Ok(())
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

    /// What a Subscription demands.
    fn subscribe(&mut self, at: usize) -> Result<(), Broken> {
        let subscription = self.subscriptions[at];
        let name = &subscription.name;
        self.things.push(Thing::Subscription(at));
        let thing = self.things.len() - 1;
        self.constrain(Some(thing), Rule::Must, format!("subscription {name} exists"));
        let is_installed = |it: &Entry<'_>| it.source == 0 && it.name == subscription.installed_csv;
        let installed = self.entries.iter().position(is_installed);
        let wanted = match self.wanted(subscription, installed.is_none()) {
            Ok(wanted) => wanted,
            Err(text) => {
                self.constrain(Some(thing), Rule::MustNot, text);
                return Ok(());
            }
        };
        let mut things = Vec::new();
        for entry in self.by_channel(wanted).map_err(|_| Broken("channel"))? {
            if installed.is_some_and(|it| !self.entries[entry].follows(&self.entries[it])) {
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
        Ok(())
    }

    /// The entries that a Subscription is about, in no order yet; or why there are none.
    fn wanted(&self, subscription: &Subscription, fresh: bool) -> Result<Vec<usize>, String> {
        let Subscription { name, package, channel, starting_csv, catalog, .. } = subscription;
        let anywhere = *catalog == CatalogKey::default();
        let mut sources: Vec<usize> = (0..self.sources.len())
            .filter(|at| anywhere || self.sources[*at].key == *catalog)
            .collect();
        sources.sort_by_key(|at| {
            let Source { key, priority, .. } = &self.sources[*at];
            (std::cmp::Reverse(*priority), key.clone())
        });
        let mut left: Vec<usize> = Vec::new();
        for source in sources {
            left.extend((0..self.entries.len()).filter(|at| self.entries[*at].source == source));
        }
        let referenced = format!("in the catalog referenced by subscription {name}");
        if left.is_empty() {
            let CatalogKey { name: source, namespace } = catalog;
            return Err(format!(
                "no operators found from catalog {source} in namespace {namespace} referenced by \
                 subscription {name}"
            ));
        }
        left.retain(|at| self.is_of(*at, package));
        if left.is_empty() {
            return Err(format!("no operators found in package {package} {referenced}"));
        }
        left.retain(|at| channel.is_empty() || self.entries[*at].channel == *channel);
        if left.is_empty() {
            return Err(format!(
                "no operators found in channel {channel} of package {package} {referenced}"
            ));
        }
        let free = starting_csv.is_empty() || !fresh;
        left.retain(|at| free || self.entries[*at].name == *starting_csv);
        if left.is_empty() {
            return Err(format!(
                "no operators found with name {starting_csv} in channel {channel} of package \
                 {package} {referenced}"
            ));
        }
        Ok(left)
    }

    fn is_of(&self, entry: usize, package: &str) -> bool {
        let Entry { package: of, said, .. } = &self.entries[entry];
        of == package || said.packages.iter().any(|(name, _)| name == package)
    }

    /// Default channels first, then by name, inside each its own order.
    fn by_channel(&self, mut wanted: Vec<usize>) -> Result<Vec<usize>, Unordered> {
        wanted.sort_by_key(|at| {
            let Entry { default_channel, channel, .. } = &self.entries[*at];
            (!default_channel, channel)
        });
        let mut sorted = Vec::new();
        for channel in wanted.chunk_by(|a, b| self.entries[*a].channel == self.entries[*b].channel)
        {
            sorted.extend(channel::order(channel, &self.entries)?);
        }
        Ok(sorted)
    }

    /// What each thing requires, and what the things that could meet it require in turn.
    fn require(&mut self) -> Result<(), Broken> {
        // Many versions require the same: what was once found is not looked for again.
        let mut found: HashMap<(usize, String), Vec<usize>> = HashMap::new();
        let mut at = 0;
        while at < self.things.len() {
            let Thing::Entry(entry) = self.things[at] else {
                at += 1;
                continue;
            };
            if self.entries[entry].said.unreadable {
                return Err(Broken("requirement"));
            }
            let source = self.entries[entry].source;
            for requirement in self.entries[entry].said.requirements.clone() {
                let key = (source, requirement.shape());
                if !found.contains_key(&key) {
                    let providers = self
                        .providers(source, &requirement)
                        .map_err(|_| Broken("provider channel"))?;
                    let mut things = Vec::new();
                    for provider in providers {
                        let thing = self.thing(provider);
                        if !things.contains(&thing) {
                            things.push(thing);
                        }
                    }
                    found.insert(key.clone(), things);
                }
                let name = &self.entries[entry].name;
                let text = format!("bundle {name} requires an operator {requirement}");
                self.constrain(Some(at), Rule::OneOf(found[&key].clone()), text);
            }
            at += 1;
        }
        Ok(())
    }

    /// The entries that meet a requirement that something of a source has, best first.
    fn providers(&self, of: usize, requirement: &Requirement) -> Result<Vec<usize>, Unordered> {
        let meets: Vec<bool> = self
            .entries
            .iter()
            .map(|it| requirement.met_by(&it.package, it.version.as_ref(), &it.said))
            .collect();
        let mut order = vec![0];
        order.extend((of != 0).then_some(of));
        order.extend((1..self.sources.len()).filter(|source| *source != of));
        let mut providers = Vec::new();
        for source in order {
            let all = || (0..self.entries.len()).filter(|at| self.entries[*at].source == source);
            let mut channels: Vec<(&str, &str)> = all()
                .filter(|at| meets[*at])
                .map(|at| (&*self.entries[at].channel, &*self.entries[at].package))
                .collect();
            channels.sort_unstable();
            channels.dedup();
            // Whole channels are put in order, with whatever says to be of the package; an
            // existing operator is alone in its channel.
            let in_one = |at: usize| {
                channels.iter().any(|(channel, package)| {
                    self.entries[at].channel == *channel && self.is_of(at, package)
                })
            };
            let mut whole: Vec<usize> =
                all().filter(|at| if source == 0 { meets[*at] } else { in_one(*at) }).collect();
            let key = |at: usize| {
                let Entry { default_channel, package, channel, .. } = &self.entries[at];
                (!default_channel, package, channel)
            };
            whole.sort_by(|a, b| key(*a).cmp(&key(*b)));
            for channel in whole.chunk_by(|a, b| key(*a) == key(*b)) {
                let sorted = channel::order(channel, &self.entries)?;
                providers.extend(sorted.into_iter().filter(|at| meets[*at]));
            }
        }
        Ok(providers)
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
                packages.extend(self.entries[*entry].said.packages.iter().map(|it| it.0.clone()));
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
            let things =
                listed(self, &|it| it.said.apis.iter().filter(|other| **other == api).count());
            if things.len() > 1 {
                let text = format!("{} provide {api}", self.names(&things, "and"));
                self.constrain(None, Rule::AtMostOne(things), text);
            }
        }
        for package in packages {
            let things = listed(self, &|it| {
                it.said.packages.iter().filter(|(name, _)| *name == package).count()
            });
            if things.len() > 1 {
                let names = self.names(&things, "and");
                let text = format!("{names} originate from package {package}");
                self.constrain(None, Rule::AtMostOne(things), text);
            }
        }
    }

    /// The names of the Subscriptions among some things, sorted.
    pub(crate) fn subscriptions_of(&self, things: &[usize]) -> Vec<String> {
        let names = things.iter().filter_map(|thing| match self.things[*thing] {
            Thing::Subscription(at) => Some(self.subscriptions[at].name.clone()),
            Thing::Entry(_) => None,
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
