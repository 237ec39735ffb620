//! One catalog as resolution asks it: decoded, indexed, immutable.

use crate::predicate::{self, Predicate};
use crate::property::{Api, Facts, LegacyDependency, Property};
use mainstay_catalog::Catalog;
use mainstay_version::{IntervalSet, Range, Version, parse_tolerant};
use serde_json::json;
use std::collections::HashMap;
use std::sync::Arc;

/// The content of one catalog, ready to be asked. Make it once per content and share it.
#[derive(Debug, Default)]
pub struct Snapshot {
    pub(crate) entries: Vec<Entry>,
    pub(crate) facts: Vec<Arc<Facts>>,
    /// Entries of a package, also those that say so only by a property.
    packages: HashMap<Arc<str>, Vec<u32>>,
    apis: HashMap<Api, Vec<u32>>,
    labels: HashMap<String, Vec<u32>>,
    names: HashMap<Arc<str>, Vec<u32>>,
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
    texts: HashMap<Box<str>, Arc<str>>,
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
        let known = self.keep(package, parse_tolerant(bundle.version).ok(), facts);
        Some(known)
    }

    pub(crate) fn keep(
        &mut self,
        package: &str,
        version: Option<Version>,
        facts: Facts,
    ) -> KnownBundle {
        self.snapshot.facts.push(Arc::new(facts));
        KnownBundle { package: self.text(package), version, facts: self.snapshot.facts.len() - 1 }
    }

    /// Takes note of the place of a bundle in a channel.
    pub fn entry(&mut self, bundle: &KnownBundle, entry: &EntryFacts<'_>) {
        let made = Entry {
            name: self.text(entry.name),
            package: bundle.package.clone(),
            channel: self.text(entry.channel),
            default_channel: entry.default_channel,
            replaces: entry.replaces.filter(|it| !it.is_empty()).map(|it| self.text(it)),
            skips: entry.skips.iter().map(|skip| self.text(skip)).collect(),
            skip_range: entry
                .skip_range
                .and_then(|range| Range::parse(range).ok())
                .map(|range| range.set().clone()),
            version: bundle.version.clone(),
            facts: bundle.facts,
        };
        self.snapshot.entries.push(made);
    }

    /// The finished snapshot.
    pub fn finish(self) -> Snapshot {
        let mut snapshot = self.snapshot;
        for (at, entry) in snapshot.entries.iter().enumerate() {
            // Catalogs have millions of entries at most.
            let at = u32::try_from(at).unwrap_or(u32::MAX);
            let facts = &snapshot.facts[entry.facts];
            snapshot.names.entry(entry.name.clone()).or_default().push(at);
            push(snapshot.packages.entry(entry.package.clone()).or_default(), at);
            for (package, _) in &facts.packages {
                if **package != *entry.package {
                    push(snapshot.packages.entry(package.as_str().into()).or_default(), at);
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
        let made: Arc<str> = text.into();
        self.texts.insert(text.into(), made.clone());
        made
    }
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
    if bundle.properties.is_empty() {
        for api in sorted(bundle.provided_apis) {
            facts.provide(api);
        }
    }
    for dependency in bundle.dependencies {
        let Some(requirement) = predicate::from_legacy(dependency.kind, dependency.json).ok()?
        else {
            continue;
        };
        facts.require_legacy(*dependency);
        match requirement {
            Ok(requirement) => facts.require(requirement),
            Err(reason) => {
                facts.unreadable.get_or_insert(reason);
            }
        }
    }
    if bundle.dependencies.is_empty() {
        for api in sorted(bundle.required_apis) {
            facts.require_api(api);
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

    /// Entries of a package, by place or by property, in order.
    pub(crate) fn of_package(&self, package: &str) -> &[u32] {
        self.packages.get(package).map_or(&[], Vec::as_slice)
    }

    /// Entries of a name, in order.
    pub(crate) fn named(&self, name: &str) -> &[u32] {
        self.names.get(name).map_or(&[], Vec::as_slice)
    }

    /// Entries for which a condition holds, in order.
    pub(crate) fn matching(&self, predicate: &Predicate) -> Vec<u32> {
        let holds = |at: &u32| {
            let (entry, facts) = self.entry(*at);
            predicate.holds(entry, facts)
        };
        if let Some(seed) = self.seed(predicate) {
            return seed.iter().copied().filter(holds).collect();
        }
        (0..u32::try_from(self.entries.len()).unwrap_or(u32::MAX)).filter(holds).collect()
    }

    /// A short list that holds every entry for which a condition may hold; none if only a look at
    /// all of them tells.
    fn seed(&self, predicate: &Predicate) -> Option<&[u32]> {
        match predicate {
            Predicate::Api(api) => Some(self.apis.get(api).map_or(&[], Vec::as_slice)),
            Predicate::Package(package) => Some(self.of_package(package)),
            Predicate::Label(label) => Some(self.labels.get(label).map_or(&[], Vec::as_slice)),
            Predicate::All(all) => {
                all.iter().filter_map(|one| self.seed(one)).min_by_key(|seed| seed.len())
            }
            Predicate::Said { inner, .. } => self.seed(inner),
            Predicate::Any(any) => match any.as_slice() {
                [] => Some(&[]),
                [one] => self.seed(one),
                _ => None,
            },
            Predicate::InRange(_) | Predicate::Not(_) | Predicate::Cel { .. } => None,
        }
    }
}
