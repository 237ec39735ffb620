//! Lint of channel graphs: edges to unknown entries, and entries without an update to the head.

use super::similar_names::{digits, nearest};
use crate::{
    CatalogDocuments,
    check::Item,
    content::BlobOrigin,
    decode::Facts,
    model::{Catalog, Channel, Package},
    problem::{Finding, PathPart},
    rule::CatalogRule,
};
use mainstay_gocompat::quote;
use mainstay_version::{Range, Version};
use std::{
    borrow::Cow,
    collections::{BTreeMap, BTreeSet, HashMap},
    ops::Bound,
};

/// How many names are compared with an unknown one.
const CANDIDATES: usize = 50;

/// How many entries a message lists.
const MAX_NAMES: usize = 5;

/// Finds unknown names in `replaces` and `skips` that are similar to a known name. An unknown name
/// alone is no fault: old bundles are removed from catalogs.
pub(super) fn find_misspelled_edges(declared: &CatalogDocuments) -> Vec<Finding> {
    let mut names_by_package: HashMap<&str, BundleNames<'_>> = HashMap::new();
    for item in declared.items() {
        let slot = declared.slot(item);
        match &item.facts {
            Facts::Bundle(_) => names_by_package.entry(&slot.package).or_default().add(&slot.name),
            Facts::Channel(facts) => {
                let names = names_by_package.entry(&slot.package).or_default();
                facts.entries.iter().for_each(|entry| names.add(&entry.name));
            }
            _ => {}
        }
    }
    let mut findings = Vec::new();
    for item in declared.items() {
        let Facts::Channel(facts) = &item.facts else { continue };
        let slot = declared.slot(item);
        let Some(names) = names_by_package.get(&*slot.package) else { continue };
        for (index, entry) in facts.entries.iter().enumerate() {
            let replaces = std::iter::once((&entry.replaces, "replaces"));
            let skips = entry.skips.iter().map(|skip| (skip, "skips"));
            for (name, field) in replaces.chain(skips) {
                let Some(meant) = names.suggest(name) else { continue };
                let message = format!(
                    "entry {} {field} {}, which does not exist",
                    quote(&entry.name),
                    quote(name)
                );
                let path =
                    vec![PathPart::Field("entries"), PathPart::Item(index), PathPart::Field(field)];
                let remedy = format!("did you mean {}?", quote(meant));
                findings.push(finding(
                    declared,
                    item,
                    CatalogRule::EdgeTypo,
                    path,
                    message,
                    remedy.into(),
                ));
            }
        }
    }
    findings
}

/// The names of a package's bundles.
#[derive(Default)]
struct BundleNames<'a> {
    all: BTreeSet<&'a str>,
    /// The names by their digits.
    by_digits: HashMap<String, BTreeSet<&'a str>>,
}

impl<'a> BundleNames<'a> {
    fn add(&mut self, name: &'a str) {
        if self.all.insert(name) {
            self.by_digits.entry(digits(name)).or_default().insert(name);
        }
    }

    /// The known name that is similar to an unknown one.
    fn suggest(&self, name: &str) -> Option<&'a str> {
        if name.is_empty() || self.all.contains(name) {
            return None;
        }
        let by_digits = self.by_digits.get(&digits(name))?;
        nearest(name, by_digits.iter().copied().take(CANDIDATES), 2)
    }
}

/// The byte ranges of channel documents, by origin.
pub(super) type DocumentRanges = BTreeMap<BlobOrigin, std::ops::Range<usize>>;

/// Collects the byte ranges of channel documents.
pub(super) fn channel_documents(declared: &CatalogDocuments) -> DocumentRanges {
    let channels = declared.items().filter(|item| matches!(item.facts, Facts::Channel(_)));
    channels.map(|item| (declared.slot(item).origin.clone(), item.bytes.clone())).collect()
}

/// Finds channels with entries from which no update leads to the head. Each of them is replaced or
/// skipped (otherwise it would be a head), but only in cycles away from the chain.
pub(super) fn find_cut_off_entries(catalog: &Catalog, documents: &DocumentRanges) -> Vec<Finding> {
    let mut findings = Vec::new();
    for package in catalog.packages() {
        for channel in package.channels() {
            let names = unreachable_entries(package, channel);
            let Some(first) = names.first() else { continue };
            let listed_names = names.iter().take(MAX_NAMES).copied().collect::<Vec<_>>().join(", ");
            let more = if names.len() > MAX_NAMES { ", …" } else { "" };
            let count = names.len();
            let message = format!(
                "no update leads from {count} of {} entries to the head {}: {listed_names}{more}",
                channel.entries().len(),
                quote(&channel.head().name)
            );
            let index = channel.entries().iter().position(|entry| *entry.name == **first);
            let path = index.map(|index| vec![PathPart::Field("entries"), PathPart::Item(index)]);
            let blob = channel.blob();
            findings.push(Finding {
                rule: CatalogRule::CutOffEntry,
                blob: blob.blob_name(),
                origin: blob.origin().clone(),
                bytes: documents.get(blob.origin()).cloned().unwrap_or_default(),
                path: path.unwrap_or_default(),
                message,
                remedy: "let an entry on the upgrade path to the head replace or skip them".into(),
                follows_from_gaps: false,
            });
        }
    }
    findings
}

/// The names of entries that a walk back from the head does not reach.
fn unreachable_entries<'c>(package: &'c Package, channel: &'c Channel) -> Vec<&'c str> {
    let mut unreached: BTreeSet<&str> = BTreeSet::new();
    let mut by_version: BTreeMap<&Version, Vec<&str>> = BTreeMap::new();
    for entry in channel.entries() {
        unreached.insert(&entry.name);
        if let Some(bundle) = package.bundle(&entry.name) {
            by_version.entry(&bundle.version).or_default().push(&entry.name);
        }
    }
    let mut queue: Vec<&str> = vec![&channel.head().name];
    unreached.remove(&*channel.head().name);
    while let Some(entry) = queue.pop().and_then(|name| channel.entry(name)) {
        let older = entry.replaces.iter().chain(&entry.skips).map(|name| &**name);
        queue.extend(older.filter(|name| unreached.remove(*name)));
        let range = entry.skip_range.as_deref().and_then(|text| Range::parse(text).ok());
        for interval in range.iter().flat_map(|range| range.set().intervals()) {
            // The end of an interval is above its start.
            let end = interval.to.as_ref().map_or(Bound::Unbounded, Bound::Excluded);
            let inside = by_version.range::<Version, _>((Bound::Included(&interval.from), end));
            let inside: Vec<&Version> = inside.map(|(version, _)| *version).collect();
            for version in inside {
                let names = by_version.remove(version).unwrap_or_default();
                queue.extend(names.into_iter().filter(|name| unreached.remove(*name)));
            }
        }
    }
    unreached.into_iter().collect()
}

fn finding(
    declared: &CatalogDocuments,
    item: &Item,
    rule: CatalogRule,
    path: Vec<PathPart>,
    message: String,
    remedy: Cow<'static, str>,
) -> Finding {
    let slot = declared.slot(item);
    Finding {
        rule,
        blob: slot.blob_name(),
        origin: slot.origin.clone(),
        bytes: item.bytes.clone(),
        path,
        message,
        remedy,
        follows_from_gaps: false,
    }
}
