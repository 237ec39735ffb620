//! Catalog snapshot: the content of one catalog for resolution, decoded, indexed and immutable.

use crate::channel::{self, ChannelError};
use crate::predicate::{self, Predicate};
use crate::property::{BundleProperty, Facts, LegacyDependency, OperatorApi};
use mainstay_catalog::Catalog;
use mainstay_version::{IntervalSet, Range, Version, parse_tolerant};
use rustc_hash::FxHashMap;
use serde_json::json;
use std::cmp::Ordering;
use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, OnceLock};

/// The content of one catalog, indexed for resolution. Make it once per content and share it.
///
/// The order in which a catalog lists its packages, channels and entries does not matter.
#[derive(Debug, Default)]
pub struct Snapshot {
    /// Default channels first, then by package, channel and name.
    pub(crate) entries: Vec<Entry>,
    pub(crate) facts: Vec<Arc<Facts>>,
    groups: Vec<ChannelEntries>,
    /// For each entry, the index of its channel in `groups`.
    group_of: Vec<u32>,
    /// For each entry, the first one with the same channel and name.
    first: Vec<u32>,
    /// For each entry, how many entries have the same channel and name. Valid at the first of them.
    occurrences: Vec<u32>,
    /// The entries of each package, also those that belong to it only by a property.
    packages: FxHashMap<Arc<str>, PackageEntries>,
    apis: FxHashMap<OperatorApi, Vec<u32>>,
    labels: FxHashMap<String, Vec<u32>>,
    names: FxHashMap<Arc<str>, Vec<u32>>,
    /// The requirements of its bundles, each once, with the entries of this catalog that meet them.
    requirements: Vec<(Arc<Predicate>, OnceLock<Providers>)>,
}

/// The entries of one channel of one package.
#[derive(Debug)]
struct ChannelEntries {
    entries: std::ops::Range<u32>,
    /// The entries from the head downwards without skipped ones, or why the channel has no order.
    chain: OnceLock<Result<Vec<u32>, ChannelError>>,
}

#[derive(Debug, Default)]
struct PackageEntries {
    entries: Vec<u32>,
    /// Whether the catalog lists some of them under another package.
    mixed: bool,
}

/// The entries of one catalog that meet a requirement.
#[derive(Clone, Debug, Default)]
pub(crate) struct Providers {
    /// Best first.
    pub entries: Vec<u32>,
    /// The errors of channels that have matching entries, but no order.
    pub faults: Vec<ChannelError>,
    /// The steps of the lookup; the same if the result is cached.
    pub steps: u64,
}

/// The place of a bundle in a channel.
#[derive(Debug)]
pub(crate) struct Entry {
    pub name: Arc<str>,
    /// The package of its channel; can be unknown (empty) for existing operators.
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

/// The content of a bundle, independent of channels.
#[derive(Clone, Copy, Debug, Default)]
pub struct BundleFacts<'a> {
    /// Its version as written. A version that cannot be read even tolerantly counts as none.
    pub version: &'a str,
    /// Its properties, in their order.
    pub properties: &'a [BundleProperty<'a>],
    /// Its requirements in the older form.
    pub dependencies: &'a [LegacyDependency<'a>],
    /// The APIs it provides; they count only if it has no properties.
    pub provided_apis: &'a [OperatorApi],
    /// The APIs it requires; they count only if it has no dependencies in the older form.
    pub required_apis: &'a [OperatorApi],
    /// The `minKubeVersion` of its ClusterServiceVersion; empty if none. It counts only if no
    /// property states one.
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
    /// Bundles it skips.
    pub skips: &'a [&'a str],
    /// Range of versions it skips. A range that cannot be read counts as none.
    pub skip_range: Option<&'a str>,
}

/// Builds a [`Snapshot`] from the content of a catalog.
#[derive(Debug, Default)]
pub struct SnapshotBuilder {
    snapshot: Snapshot,
    texts: FxHashMap<Box<str>, Arc<str>>,
    requirements: FxHashMap<Arc<Predicate>, u32>,
}

/// A bundle that has been added to a [`SnapshotBuilder`].
#[derive(Clone, Debug)]
pub struct KnownBundle {
    package: Arc<str>,
    version: Option<Version>,
    facts: usize,
}

impl SnapshotBuilder {
    /// Adds a bundle of a package. None means that the catalog's message about the bundle cannot be
    /// read, so that the bundle does not exist for resolution.
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
        // The order of properties must not decide which requirement is resolved first.
        facts.requirements.sort_by_cached_key(|requirement| {
            (requirement.to_string(), format!("{requirement:?}"))
        });
        facts.requirement_numbers =
            facts.requirements.iter().map(|requirement| self.requirement(requirement)).collect();
        self.snapshot.facts.push(Arc::new(facts));
        KnownBundle { package: self.text(package), version, facts: self.snapshot.facts.len() - 1 }
    }

    /// Adds the entry of a bundle to a channel.
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
        // The number of requirements is far below the limit of `u32`.
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
                // Two entries of one name in one channel; a valid catalog does not have them.
                let all = |entry: &Entry| {
                    format!("{entry:?}{:?}", facts[entry.facts].sorted_properties())
                };
                all(a).cmp(&all(b))
            })
        });
        let mut firsts: FxHashMap<(Arc<str>, Arc<str>), u32> = FxHashMap::default();
        for (at, entry) in snapshot.entries.iter().enumerate() {
            // A catalog has at most millions of entries.
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
                    let package_entries =
                        snapshot.packages.entry(package.as_str().into()).or_default();
                    push(&mut package_entries.entries, at);
                    package_entries.mixed = true;
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

/// Adds an index, unless it is there already. Callers add indexes in ascending order.
fn push(list: &mut Vec<u32>, at: u32) {
    if list.last() != Some(&at) {
        list.push(at);
    }
}

/// Decodes the content of a bundle; none if upstream's catalog client drops the bundle.
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
        facts.add(BundleProperty { kind: "olm.package", json: &value });
    }
    Some(facts)
}

fn sorted(apis: &[OperatorApi]) -> Vec<OperatorApi> {
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
                    .map(|property| BundleProperty { kind: &property.kind, json: &property.json })
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

    /// The number of entries of all channels.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether it has no entries.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    pub(crate) fn entry(&self, at: u32) -> (&Entry, &Facts) {
        let entry = &self.entries[at as usize];
        (entry, &self.facts[entry.facts])
    }

    /// The first entry with the same channel and name. Both entries are one candidate.
    pub(crate) fn first(&self, at: u32) -> u32 {
        self.first[at as usize]
    }

    /// How many entries have the channel and the name of this entry.
    pub(crate) fn occurrences(&self, at: u32) -> u32 {
        self.occurrences[self.first(at) as usize]
    }

    /// The names of all packages, in order.
    pub(crate) fn package_names(&self) -> BTreeSet<&str> {
        self.packages.keys().map(|name| &**name).collect()
    }

    /// The entries of a package, by channel or by property, in order.
    pub(crate) fn of_package(&self, package: &str) -> &[u32] {
        self.packages.get(package).map_or(&[], |package| &package.entries)
    }

    /// Whether the catalog lists entries of a package under another package.
    pub(crate) fn is_mixed(&self, package: &str) -> bool {
        self.packages.get(package).is_some_and(|package| package.mixed)
    }

    /// The chain of the channel of an entry.
    pub(crate) fn chain(&self, at: u32) -> &Result<Vec<u32>, ChannelError> {
        let group = &self.groups[self.group_of[at as usize] as usize];
        group.chain.get_or_init(|| {
            let entries: Vec<u32> = group.entries.clone().collect();
            channel::sort(&entries, |at| self.entry(at).0)
        })
    }

    /// The entries of a name, in order.
    pub(crate) fn entries_of_name(&self, name: &str) -> &[u32] {
        self.names.get(name).map_or(&[], Vec::as_slice)
    }

    /// The entries that meet a requirement of this snapshot, by the number of the requirement.
    pub(crate) fn known_providers(&self, requirement: u32) -> &Providers {
        let (predicate, known) = &self.requirements[requirement as usize];
        known.get_or_init(|| self.providers(predicate))
    }

    /// The requirement of this snapshot with that number.
    pub(crate) fn requirement(&self, at: u32) -> &Predicate {
        &self.requirements[at as usize].0
    }

    /// The entries that meet a requirement. Whole channels are sorted first, because skipped
    /// entries cannot meet it.
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

    /// The entries for which a predicate holds, in order. Adds the cost to `steps`.
    pub(crate) fn matching(&self, predicate: &Predicate, steps: &mut u64) -> Vec<u32> {
        let mut holds = |at: &u32| {
            // The result does not matter once the lookup has exceeded its limit.
            if *steps > crate::candidates::MAX_LOOKUP_STEPS {
                return false;
            }
            let (entry, facts) = self.entry(*at);
            predicate.holds((&entry.package, entry.version.as_ref()), facts, steps)
        };
        if let Some(shortlist) = self.shortlist(predicate) {
            return shortlist.iter().copied().filter(|at| holds(at)).collect();
        }
        (0..u32::try_from(self.entries.len()).unwrap_or(u32::MAX)).filter(|at| holds(at)).collect()
    }

    /// A short list that contains all entries for which a predicate can hold; none if no index of
    /// the snapshot helps.
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
