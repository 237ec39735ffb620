//! One catalog as resolution asks it: decoded, indexed, immutable.

use crate::channel::{self, ChannelError};
use crate::predicate::{self, Predicate};
use crate::property::{Api, Facts, LegacyDependency, Property};
use mainstay_catalog::Catalog;
use mainstay_version::{IntervalSet, Range, Version, parse_tolerant};
use rustc_hash::FxHashMap;
use serde_json::json;
use std::cmp::Ordering;
use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, OnceLock};

/// The content of one catalog, ready to be asked. Make it once per content and share it.
///
/// The order in which a catalog lists its packages, channels and entries has no influence on it.
#[derive(Debug, Default)]
pub struct Snapshot {
    /// Default channels first, then by package, channel and name.
    pub(crate) entries: Vec<Entry>,
    pub(crate) facts: Vec<Arc<Facts>>,
    groups: Vec<ChannelEntries>,
    /// For each entry, its group.
    group_of: Vec<u32>,
    /// For each entry, the first one with the same channel and name.
    first: Vec<u32>,
    /// For each entry, how many have the same channel and name; counted at the first one.
    occurrences: Vec<u32>,
    /// Entries of a package, also those that say so only by a property.
    packages: FxHashMap<Arc<str>, PackageEntries>,
    apis: FxHashMap<Api, Vec<u32>>,
    labels: FxHashMap<String, Vec<u32>>,
    names: FxHashMap<Arc<str>, Vec<u32>>,
    /// The requirements of its bundles, each once, with what meets them in this catalog.
    requirements: Vec<(Arc<Predicate>, OnceLock<Providers>)>,
}

/// The entries of one channel of one package.
#[derive(Debug)]
struct ChannelEntries {
    entries: std::ops::Range<u32>,
    /// From the head downwards, without what is skipped; or why there is no such order.
    chain: OnceLock<Result<Vec<u32>, ChannelError>>,
}

#[derive(Debug, Default)]
struct PackageEntries {
    entries: Vec<u32>,
    /// Whether some are listed under another package.
    mixed: bool,
}

/// What meets a requirement in one catalog.
#[derive(Clone, Debug, Default)]
pub(crate) struct Providers {
    /// Best first.
    pub entries: Vec<u32>,
    /// Why channels that have something offer nothing.
    pub faults: Vec<ChannelError>,
    /// Steps it takes to find out, whether or not it was known already.
    pub steps: u64,
}

/// The place of a bundle in a channel.
#[derive(Debug)]
pub(crate) struct Entry {
    pub name: Arc<str>,
    /// The package whose channel it is in; may be unknown (empty) for existing operators.
    pub package: Arc<str>,
    /// The channel; empty for existing operators.
    pub channel: Arc<str>,
    pub default_channel: bool,
    pub replaces: Option<Arc<str>>,
    pub skips: Vec<Arc<str>>,
    pub skip_range: Option<IntervalSet>,
    pub version: Option<Version>,
    /// Index into [`Snapshot::facts`].
    pub facts: usize,
}

/// What a bundle says about itself, independent of channels.
#[derive(Clone, Copy, Debug, Default)]
pub struct BundleFacts<'a> {
    /// Its version as written; one that cannot be read even tolerantly counts as none.
    pub version: &'a str,
    /// Its properties, in their order.
    pub properties: &'a [Property<'a>],
    /// Its requirements in the older form.
    pub dependencies: &'a [LegacyDependency<'a>],
    /// Kinds it provides; they count only when there are no properties.
    pub provided_apis: &'a [Api],
    /// Kinds it requires; they count only when there are no older dependencies.
    pub required_apis: &'a [Api],
    /// The least version of Kubernetes that its ClusterServiceVersion asks for; empty if none. It
    /// counts only when no property says it.
    pub min_kube_version: &'a str,
}

/// The place of a bundle in a channel, as catalogs state it.
#[derive(Clone, Copy, Debug, Default)]
pub struct EntryFacts<'a> {
    /// Name of the bundle.
    pub name: &'a str,
    /// Name of the channel.
    pub channel: &'a str,
    /// Whether it is the default channel of the package.
    pub default_channel: bool,
    /// The bundle it replaces.
    pub replaces: Option<&'a str>,
    /// Bundles it also replaces.
    pub skips: &'a [&'a str],
    /// Range of versions it also replaces; one that cannot be read counts as none.
    pub skip_range: Option<&'a str>,
}

/// Collects the content of a catalog.
#[derive(Debug, Default)]
pub struct SnapshotBuilder {
    snapshot: Snapshot,
    texts: FxHashMap<Box<str>, Arc<str>>,
    requirements: FxHashMap<Arc<Predicate>, u32>,
}

/// A bundle that a [`SnapshotBuilder`] knows.
#[derive(Clone, Debug)]
pub struct KnownBundle {
    package: Arc<str>,
    version: Option<Version>,
    facts: usize,
}

impl SnapshotBuilder {
    /// Takes note of a bundle of a package. None means that the catalog's message about it could
    /// not be read, so that the bundle does not exist for resolution.
    pub fn bundle(&mut self, package: &str, bundle: &BundleFacts<'_>) -> Option<KnownBundle> {
        let facts = catalog_facts(package, bundle)?;
        let known = self.add_facts(package, parse_tolerant(bundle.version).ok(), facts);
        Some(known)
    }

    pub(crate) fn add_facts(
        &mut self,
        package: &str,
        version: Option<Version>,
        mut facts: Facts,
    ) -> KnownBundle {
        // The order of properties must not decide what is tried first.
        facts.requirements.sort_by_cached_key(|requirement| {
            (requirement.to_string(), format!("{requirement:?}"))
        });
        facts.requirement_numbers =
            facts.requirements.iter().map(|requirement| self.requirement(requirement)).collect();
        self.snapshot.facts.push(Arc::new(facts));
        KnownBundle { package: self.text(package), version, facts: self.snapshot.facts.len() - 1 }
    }

    /// Takes note of the place of a bundle in a channel.
    pub fn entry(&mut self, bundle: &KnownBundle, entry: &EntryFacts<'_>) {
        let new_entry = Entry {
            name: self.text(entry.name),
            package: bundle.package.clone(),
            channel: self.text(entry.channel),
            default_channel: entry.default_channel,
            replaces: entry.replaces.filter(|name| !name.is_empty()).map(|name| self.text(name)),
            skips: entry.skips.iter().map(|skip| self.text(skip)).collect(),
            skip_range: entry
                .skip_range
                .and_then(|range| Range::parse(range).ok())
                .map(|range| range.set().clone()),
            version: bundle.version.clone(),
            facts: bundle.facts,
        };
        self.snapshot.entries.push(new_entry);
    }

    fn requirement(&mut self, requirement: &Arc<Predicate>) -> u32 {
        if let Some(known) = self.requirements.get(requirement) {
            return *known;
        }
        // One requirement per bundle and property: far below the limit.
        let at = u32::try_from(self.snapshot.requirements.len()).unwrap_or(u32::MAX);
        self.snapshot.requirements.push((requirement.clone(), OnceLock::new()));
        self.requirements.insert(requirement.clone(), at);
        at
    }

    /// The finished snapshot.
    pub fn finish(self) -> Snapshot {
        let mut snapshot = self.snapshot;
        let facts = &snapshot.facts;
        snapshot.entries.sort_by(|a, b| {
            compare_entries(a, b).then_with(|| {
                // Entries of one name in one channel; catalogs should not have them.
                let all = |entry: &Entry| {
                    format!("{entry:?}{:?}", facts[entry.facts].sorted_properties())
                };
                all(a).cmp(&all(b))
            })
        });
        let mut firsts: FxHashMap<(Arc<str>, Arc<str>), u32> = FxHashMap::default();
        for (at, entry) in snapshot.entries.iter().enumerate() {
            // Catalogs have millions of entries at most.
            let at = u32::try_from(at).unwrap_or(u32::MAX);
            let facts = &snapshot.facts[entry.facts];
            match snapshot.groups.last_mut() {
                Some(group)
                    if same_channel(&snapshot.entries[group.entries.start as usize], entry) =>
                {
                    group.entries.end = at + 1;
                }
                _ => snapshot
                    .groups
                    .push(ChannelEntries { entries: at..at + 1, chain: OnceLock::new() }),
            }
            // There are no more groups than entries.
            snapshot.group_of.push(u32::try_from(snapshot.groups.len() - 1).unwrap_or(u32::MAX));
            let key = (entry.channel.clone(), entry.name.clone());
            let first = *firsts.entry(key).or_insert(at);
            snapshot.first.push(first);
            snapshot.occurrences.push(0);
            snapshot.occurrences[first as usize] += 1;
            snapshot.names.entry(entry.name.clone()).or_default().push(at);
            push(&mut snapshot.packages.entry(entry.package.clone()).or_default().entries, at);
            for (package, _) in &facts.packages {
                if **package != *entry.package {
                    let of = snapshot.packages.entry(package.as_str().into()).or_default();
                    push(&mut of.entries, at);
                    of.mixed = true;
                }
            }
            for api in &facts.apis {
                push(snapshot.apis.entry(api.clone()).or_default(), at);
            }
            for label in &facts.labels {
                push(snapshot.labels.entry(label.clone()).or_default(), at);
            }
        }
        snapshot
    }

    fn text(&mut self, text: &str) -> Arc<str> {
        if let Some(known) = self.texts.get(text) {
            return known.clone();
        }
        let shared: Arc<str> = text.into();
        self.texts.insert(text.into(), shared.clone());
        shared
    }
}

/// The order of entries: preferred channels first.
fn compare_entries(a: &Entry, b: &Entry) -> Ordering {
    let channel = |entry: &Entry| {
        !entry.default_channel && !mainstay_fault::is_on("default-channels-are-not-first")
    };
    (channel(a).cmp(&channel(b)))
        .then_with(|| a.package.cmp(&b.package))
        .then_with(|| a.channel.cmp(&b.channel))
        .then_with(|| a.name.cmp(&b.name))
}

fn same_channel(a: &Entry, b: &Entry) -> bool {
    (a.default_channel, &a.package, &a.channel) == (b.default_channel, &b.package, &b.channel)
}

/// Adds an index once; indexes come in ascending order.
fn push(list: &mut Vec<u32>, at: u32) {
    if list.last() != Some(&at) {
        list.push(at);
    }
}

/// What the message of a catalog about a bundle means; none if the catalog client would drop it.
fn catalog_facts(package: &str, bundle: &BundleFacts<'_>) -> Option<Facts> {
    let mut facts = Facts::default();
    for property in bundle.properties {
        facts.add(*property);
    }
    facts.set_min_kube_version(bundle.min_kube_version);
    if bundle.properties.is_empty() {
        for api in sorted(bundle.provided_apis) {
            facts.add_provided_api(api);
        }
    }
    for dependency in bundle.dependencies {
        let Some(requirement) = predicate::from_legacy(dependency.kind, dependency.json).ok()?
        else {
            continue;
        };
        facts.add_legacy_requirement(*dependency);
        match requirement {
            Ok(requirement) => facts.add_requirement(requirement),
            Err(error) => facts.add_requirement_error(error),
        }
    }
    if bundle.dependencies.is_empty() {
        for api in sorted(bundle.required_apis) {
            facts.add_required_api(api);
        }
    }
    if !bundle.properties.iter().any(|property| property.kind == "olm.package") {
        let value = json!({"packageName": package, "version": bundle.version}).to_string();
        facts.add(Property { kind: "olm.package", json: &value });
    }
    Some(facts)
}

fn sorted(apis: &[Api]) -> Vec<Api> {
    let mut apis = apis.to_vec();
    apis.sort();
    apis.dedup();
    apis
}

impl Snapshot {
    /// The snapshot of a file-based catalog.
    pub fn of(catalog: &Catalog) -> Self {
        let mut builder = SnapshotBuilder::default();
        for package in catalog.packages() {
            let mut known: HashMap<&str, Option<KnownBundle>> = HashMap::new();
            for bundle in package.bundles() {
                let properties: Vec<_> = bundle
                    .properties
                    .iter()
                    .map(|property| Property { kind: &property.kind, json: &property.json })
                    .collect();
                let version = bundle.version.to_string();
                let facts = BundleFacts {
                    version: &version,
                    properties: &properties,
                    min_kube_version: bundle.min_kube_version.as_deref().unwrap_or_default(),
                    ..BundleFacts::default()
                };
                known.insert(&bundle.name, builder.bundle(&package.name, &facts));
            }
            for channel in package.channels() {
                for entry in channel.entries() {
                    let Some(Some(bundle)) = known.get(&*entry.name) else { continue };
                    let skips: Vec<&str> = entry.skips.iter().map(|skip| &**skip).collect();
                    let facts = EntryFacts {
                        name: &entry.name,
                        channel: &channel.name,
                        default_channel: channel.name == package.default_channel,
                        replaces: entry.replaces.as_deref(),
                        skips: &skips,
                        skip_range: entry.skip_range.as_deref(),
                    };
                    builder.entry(bundle, &facts);
                }
            }
        }
        builder.finish()
    }

    /// How many entries there are, over all channels.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there is nothing in it.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    pub(crate) fn entry(&self, at: u32) -> (&Entry, &Facts) {
        let entry = &self.entries[at as usize];
        (entry, &self.facts[entry.facts])
    }

    /// The first entry with the same channel and name: both are one candidate.
    pub(crate) fn first(&self, at: u32) -> u32 {
        self.first[at as usize]
    }

    /// How many entries have the same channel and name as this one.
    pub(crate) fn occurrences(&self, at: u32) -> u32 {
        self.occurrences[self.first(at) as usize]
    }

    /// The names of all packages, in order.
    pub(crate) fn package_names(&self) -> BTreeSet<&str> {
        self.packages.keys().map(|name| &**name).collect()
    }

    /// Entries of a package, by place or by property, in order.
    pub(crate) fn of_package(&self, package: &str) -> &[u32] {
        self.packages.get(package).map_or(&[], |of| &of.entries)
    }

    /// Whether a package has entries that are listed under another one.
    pub(crate) fn is_mixed(&self, package: &str) -> bool {
        self.packages.get(package).is_some_and(|of| of.mixed)
    }

    /// The chain of the channel that an entry is in.
    pub(crate) fn chain(&self, at: u32) -> &Result<Vec<u32>, ChannelError> {
        let group = &self.groups[self.group_of[at as usize] as usize];
        group.chain.get_or_init(|| {
            let entries: Vec<u32> = group.entries.clone().collect();
            channel::sort(&entries, |at| self.entry(at).0)
        })
    }

    /// Entries of a name, in order.
    pub(crate) fn named(&self, name: &str) -> &[u32] {
        self.names.get(name).map_or(&[], Vec::as_slice)
    }

    /// What meets one of its own requirements, by its number.
    pub(crate) fn known_providers(&self, requirement: u32) -> &Providers {
        let (predicate, known) = &self.requirements[requirement as usize];
        known.get_or_init(|| self.providers(predicate))
    }

    /// The requirement of a number.
    pub(crate) fn requirement(&self, at: u32) -> &Predicate {
        &self.requirements[at as usize].0
    }

    /// What meets a requirement: whole channels are put in order, and what meets it is picked from
    /// them.
    pub(crate) fn providers(&self, predicate: &Predicate) -> Providers {
        let mut providers = Providers::default();
        let matching = self.matching(predicate, &mut providers.steps);
        for group in
            matching.chunk_by(|a, b| self.group_of[*a as usize] == self.group_of[*b as usize])
        {
            match self.chain(group[0]) {
                Ok(chain) => {
                    providers.steps += chain.len() as u64;
                    let meets = |at: &u32| group.binary_search(at).is_ok();
                    providers.entries.extend(chain.iter().copied().filter(meets));
                }
                Err(error) => providers.faults.push(error.clone()),
            }
        }
        providers
    }

    /// Entries for which a condition holds, in order; `steps` grows by what it took.
    pub(crate) fn matching(&self, predicate: &Predicate, steps: &mut u64) -> Vec<u32> {
        let mut holds = |at: &u32| {
            // Nobody asks for the rest once the search is given up for it.
            if *steps > crate::candidates::MAX_LOOKUP_STEPS {
                return false;
            }
            let (entry, facts) = self.entry(*at);
            predicate.holds(entry, facts, steps)
        };
        if let Some(shortlist) = self.shortlist(predicate) {
            return shortlist.iter().copied().filter(|at| holds(at)).collect();
        }
        (0..u32::try_from(self.entries.len()).unwrap_or(u32::MAX)).filter(|at| holds(at)).collect()
    }

    /// A short list that holds every entry for which a condition may hold; none if only a look at
    /// all of them tells.
    fn shortlist(&self, predicate: &Predicate) -> Option<&[u32]> {
        match predicate {
            Predicate::Api(api) => Some(self.apis.get(api).map_or(&[], Vec::as_slice)),
            Predicate::Package(package) => Some(self.of_package(package)),
            Predicate::Label(label) => Some(self.labels.get(label).map_or(&[], Vec::as_slice)),
            Predicate::All(all) => all
                .iter()
                .filter_map(|one| self.shortlist(one))
                .min_by_key(|shortlist| shortlist.len()),
            Predicate::WithMessage { inner, .. } => self.shortlist(inner),
            Predicate::Any(any) => match any.as_slice() {
                [] => Some(&[]),
                [one] => self.shortlist(one),
                _ => None,
            },
            Predicate::InRange(_) | Predicate::Not(_) | Predicate::Cel { .. } => None,
        }
    }
}
