//! Lint of channel graphs: edges to unknown entries, and entries without an update to the head.

use super::near::{digits, nearest};
use crate::{
    Declared,
    check::Item,
    content::Origin,
    decode::Facts,
    model::{Catalog, Channel, Package},
    problem::{Finding, Part},
    rule::Rule,
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
const NAMED: usize = 5;

/// Finds unknown names in `replaces` and `skips` that are similar to a known name. An unknown name
/// alone is no fault: old bundles are removed from catalogs.
pub(super) fn typos(declared: &Declared) -> Vec<Finding> {
    let mut known: HashMap<&str, Names<'_>> = HashMap::new();
    for item in declared.items() {
        let slot = declared.slot(item);
        match &item.facts {
            Facts::Bundle(_) => known.entry(&slot.package).or_default().add(&slot.name),
            Facts::Channel(facts) => {
                let names = known.entry(&slot.package).or_default();
                facts.entries.iter().for_each(|entry| names.add(&entry.name));
            }
            _ => {}
        }
    }
    let mut findings = Vec::new();
    for item in declared.items() {
        let Facts::Channel(facts) = &item.facts else { continue };
        let slot = declared.slot(item);
        let Some(names) = known.get(&*slot.package) else { continue };
        for (index, entry) in facts.entries.iter().enumerate() {
            let replaces = std::iter::once((&entry.replaces, "replaces"));
            let skips = entry.skips.iter().map(|skip| (skip, "skips"));
            for (name, field) in replaces.chain(skips) {
                let Some(meant) = names.meant(name) else { continue };
                let message = format!(
                    "entry {} {field} {}, which does not exist",
                    quote(&entry.name),
                    quote(name)
                );
                let path = vec![Part::Field("entries"), Part::Item(index), Part::Field(field)];
                let remedy = format!("did you mean {}?", quote(meant));
                findings.push(finding(
                    declared,
                    item,
                    Rule::EdgeTypo,
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
struct Names<'a> {
    all: BTreeSet<&'a str>,
    /// The names by their digits.
    alike: HashMap<String, BTreeSet<&'a str>>,
}

impl<'a> Names<'a> {
    fn add(&mut self, name: &'a str) {
        if self.all.insert(name) {
            self.alike.entry(digits(name)).or_default().insert(name);
        }
    }

    /// The known name that is similar to an unknown one.
    fn meant(&self, name: &str) -> Option<&'a str> {
        if name.is_empty() || self.all.contains(name) {
            return None;
        }
        let alike = self.alike.get(&digits(name))?;
        nearest(name, alike.iter().copied().take(CANDIDATES), 2)
    }
}

/// The byte ranges of channel documents, by origin.
pub(super) type Places = BTreeMap<Origin, std::ops::Range<usize>>;

/// Collects the byte ranges of channel documents.
pub(super) fn places(declared: &Declared) -> Places {
    let channels = declared.items().filter(|item| matches!(item.facts, Facts::Channel(_)));
    channels.map(|item| (declared.slot(item).origin.clone(), item.bytes.clone())).collect()
}

/// Finds channels with entries from which no update leads to the head. Each of them is replaced or
/// skipped (otherwise it would be a head), but only in cycles away from the chain.
pub(super) fn cut_off(catalog: &Catalog, places: &Places) -> Vec<Finding> {
    let mut findings = Vec::new();
    for package in catalog.packages() {
        for channel in package.channels() {
            let names = not_reached(package, channel);
            let Some(first) = names.first() else { continue };
            let shown = names.iter().take(NAMED).copied().collect::<Vec<_>>().join(", ");
            let more = if names.len() > NAMED { ", …" } else { "" };
            let count = names.len();
            let message = format!(
                "no update leads from {count} of {} entries to the head {}: {shown}{more}",
                channel.entries().len(),
                quote(&channel.head().name)
            );
            let index = channel.entries().iter().position(|entry| *entry.name == **first);
            let path = index.map(|index| vec![Part::Field("entries"), Part::Item(index)]);
            let blob = channel.blob();
            findings.push(Finding {
                rule: Rule::CutOffEntry,
                blob: blob.called(),
                origin: blob.origin().clone(),
                bytes: places.get(blob.origin()).cloned().unwrap_or_default(),
                path: path.unwrap_or_default(),
                message,
                remedy: "let an entry on the way to the head replace or skip them".into(),
                follows_from_gaps: false,
            });
        }
    }
    findings
}

/// The names of entries that a walk back from the head does not reach.
fn not_reached<'c>(package: &'c Package, channel: &'c Channel) -> Vec<&'c str> {
    let mut left: BTreeSet<&str> = BTreeSet::new();
    let mut by_version: BTreeMap<&Version, Vec<&str>> = BTreeMap::new();
    for entry in channel.entries() {
        left.insert(&entry.name);
        if let Some(bundle) = package.bundle(&entry.name) {
            by_version.entry(&bundle.version).or_default().push(&entry.name);
        }
    }
    let mut walk: Vec<&str> = vec![&channel.head().name];
    left.remove(&*channel.head().name);
    while let Some(entry) = walk.pop().and_then(|name| channel.entry(name)) {
        let named = entry.replaces.iter().chain(&entry.skips).map(|name| &**name);
        walk.extend(named.filter(|name| left.remove(*name)));
        let range = entry.skip_range.as_deref().and_then(|text| Range::parse(text).ok());
        for interval in range.iter().flat_map(|range| range.set().intervals()) {
            // The end of an interval is above its start.
            let end = interval.to.as_ref().map_or(Bound::Unbounded, Bound::Excluded);
            let inside = by_version.range::<Version, _>((Bound::Included(&interval.from), end));
            let inside: Vec<&Version> = inside.map(|(version, _)| *version).collect();
            for version in inside {
                let names = by_version.remove(version).unwrap_or_default();
                walk.extend(names.into_iter().filter(|name| left.remove(*name)));
            }
        }
    }
    left.into_iter().collect()
}

fn finding(
    declared: &Declared,
    item: &Item,
    rule: Rule,
    path: Vec<Part>,
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
