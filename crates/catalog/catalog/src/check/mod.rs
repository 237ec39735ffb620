//! From facts to the index, noticing everything that does not fit together.
//!
//! Upstream stops at the first thing it finds. Here every check runs, each on what is still
//! meaningful: a bundle with a bad version does not also become a missing bundle, and a channel
//! with duplicate entries is not also told that its graph is odd.

mod bundles;
mod deprecations;

use crate::{
    content::{Area, Origin},
    decode::{ChannelFacts, Facts},
    graph,
    model::{Bundle, Channel, Entry, Package},
    problem::{Finding, Part},
};
use mainstay_object::names;
use mainstay_version::{Range, quote};
use std::{
    borrow::Cow,
    collections::{BTreeMap, BTreeSet, btree_map},
    sync::Arc,
};

/// One blob with what it says, in the order of files and lines.
#[derive(Debug)]
pub(crate) struct Item {
    /// Its place in the area.
    pub(crate) slot: usize,
    /// The bytes of the document in its file.
    pub(crate) bytes: std::ops::Range<usize>,
    pub(crate) facts: Facts,
}

/// What the checks make of a catalog.
pub(crate) struct Outcome {
    pub(crate) packages: BTreeMap<Arc<str>, Package>,
    pub(crate) others: Vec<usize>,
    pub(crate) findings: Vec<Finding>,
}

/// A package while it is put together.
struct Draft<'i> {
    item: &'i Item,
    default_channel: &'i str,
    deprecation: Option<Arc<str>>,
    /// Channels by name; `None` for one that is there but unusable.
    channels: BTreeMap<Arc<str>, (&'i Item, Option<Channel>)>,
    bundles: BTreeMap<Arc<str>, (&'i Item, Option<Bundle>)>,
    deprecated_by: Option<&'i Item>,
}

struct Checker<'i> {
    area: &'i Arc<Area>,
    names: BTreeSet<Arc<str>>,
    findings: Vec<Finding>,
}

/// Builds the index of all items.
pub(crate) fn build(items: &[Item], area: &Arc<Area>) -> Outcome {
    let mut checker = Checker { area, names: BTreeSet::new(), findings: Vec::new() };
    let mut drafts = checker.packages(items);
    checker.channels(items, &mut drafts);
    checker.bundles(items, &mut drafts);
    checker.deprecations(items, &mut drafts);
    let mut packages = BTreeMap::new();
    for (name, draft) in drafts {
        if let Some(package) = checker.finish(&name, draft) {
            packages.insert(name, package);
        }
    }
    let others = items
        .iter()
        .filter(|item| matches!(item.facts, Facts::Other))
        .map(|item| item.slot)
        .collect();
    Outcome { packages, others, findings: checker.findings }
}

impl<'i> Checker<'i> {
    /// One allocation per name, however often it occurs.
    fn intern(&mut self, name: &str) -> Arc<str> {
        if let Some(known) = self.names.get(name) {
            return known.clone();
        }
        let name: Arc<str> = name.into();
        self.names.insert(name.clone());
        name
    }

    fn origin(&self, item: &Item) -> &'i Origin {
        &self.area.slots[item.slot].origin
    }

    fn name(&self, item: &Item) -> &'i Arc<str> {
        &self.area.slots[item.slot].name
    }

    fn package(&self, item: &Item) -> &'i Arc<str> {
        &self.area.slots[item.slot].package
    }

    fn find(
        &mut self,
        item: &Item,
        path: &[Part],
        message: impl Into<String>,
        remedy: impl Into<Cow<'static, str>>,
    ) {
        let finding = Finding {
            origin: self.origin(item).clone(),
            bytes: item.bytes.clone(),
            path: path.to_vec(),
            message: message.into(),
            remedy: remedy.into(),
            follows_from_gaps: false,
        };
        self.findings.push(finding);
    }

    /// As [`Self::find`], for what an unread file could have held.
    fn miss(
        &mut self,
        item: &Item,
        path: &[Part],
        message: impl Into<String>,
        remedy: impl Into<Cow<'static, str>>,
    ) {
        self.find(item, path, message, remedy);
        if let Some(finding) = self.findings.last_mut() {
            finding.follows_from_gaps = true;
        }
    }

    fn also_at(&self, first: &Item) -> String {
        format!("the first one is at {}; remove one of them", self.origin(first))
    }

    fn packages(&mut self, items: &'i [Item]) -> BTreeMap<Arc<str>, Draft<'i>> {
        let mut drafts: BTreeMap<Arc<str>, Draft<'i>> = BTreeMap::new();
        for item in items {
            let Facts::Package(facts) = &item.facts else { continue };
            let name = self.name(item);
            let at = [Part::Field("name")];
            if name.is_empty() {
                self.find(item, &[], "config contains package with no name", "give it a name");
                continue;
            }
            if let Some(first) = drafts.get(name) {
                let remedy = self.also_at(first.item);
                self.find(item, &at, format!("duplicate package {}", quote(name)), remedy);
                continue;
            }
            let faults = names::dns1123_label(name);
            if !faults.is_empty() {
                let message =
                    format!("invalid package name {}: [{}]", quote(name), faults.join(" "));
                self.find(item, &at, message, "choose a name of that form");
            }
            let draft = Draft {
                item,
                default_channel: &facts.default_channel,
                deprecation: None,
                channels: BTreeMap::new(),
                bundles: BTreeMap::new(),
                deprecated_by: None,
            };
            drafts.insert(name.clone(), draft);
        }
        drafts
    }

    fn channels(&mut self, items: &'i [Item], drafts: &mut BTreeMap<Arc<str>, Draft<'i>>) {
        for item in items {
            let Facts::Channel(facts) = &item.facts else { continue };
            let (package, name) = (self.package(item), self.name(item));
            let Some(draft) = drafts.get_mut(package) else {
                let message =
                    format!("unknown package {} for channel {}", quote(package), quote(name));
                let remedy = "add an olm.package document of that name, or correct the name";
                self.miss(item, &[Part::Field("package")], message, remedy);
                continue;
            };
            if name.is_empty() {
                let message = format!("package {} contains channel with no name", quote(package));
                self.find(item, &[], message, "give it a name");
                continue;
            }
            match draft.channels.entry(name.clone()) {
                btree_map::Entry::Occupied(first) => {
                    let remedy = self.also_at(first.get().0);
                    let message =
                        format!("package {} has duplicate channel {}", quote(package), quote(name));
                    self.find(item, &[Part::Field("name")], message, remedy);
                }
                btree_map::Entry::Vacant(free) => {
                    free.insert((item, self.channel(item, facts)));
                }
            }
        }
    }

    /// The entries of one channel; `None` if its graph cannot be looked at.
    fn channel(&mut self, item: &'i Item, facts: &'i ChannelFacts) -> Option<Channel> {
        let (package, name) = (self.package(item), self.name(item));
        let mut entries = Vec::with_capacity(facts.entries.len());
        let mut by_name: BTreeMap<Arc<str>, usize> = BTreeMap::new();
        let mut sound = true;
        for (index, facts) in facts.entries.iter().enumerate() {
            let at = |field| [Part::Field("entries"), Part::Item(index), Part::Field(field)];
            let entry_name = self.intern(&facts.name);
            if by_name.contains_key(&entry_name) {
                let message = format!(
                    "invalid package {}, channel {}: duplicate entry {}",
                    quote(package),
                    quote(name),
                    quote(&entry_name)
                );
                self.find(item, &at("name"), message, "keep one entry with all edges");
                sound = false;
                continue;
            }
            let context = || {
                format!(
                    "invalid package {}: invalid channel {}: invalid bundle {}",
                    quote(package),
                    quote(name),
                    quote(&facts.name)
                )
            };
            for (number, skip) in facts.skips.iter().enumerate() {
                if skip.is_empty() {
                    let message = format!("{}: skip[{number}] is empty", context());
                    self.find(item, &at("skips"), message, "name a bundle, or remove the line");
                }
            }
            if !facts.skip_range.is_empty()
                && let Err(error) = Range::parse(&facts.skip_range)
            {
                let range = quote(&facts.skip_range);
                let message = format!("{}: invalid skipRange {range}: {error}", context());
                let remedy = "write a range such as \">=1.0.0 <1.2.0\"";
                self.find(item, &at("skipRange"), message, remedy);
            }
            by_name.insert(entry_name.clone(), entries.len());
            let some =
                |checker: &mut Self, text: &str| (!text.is_empty()).then(|| checker.intern(text));
            entries.push(Entry {
                name: entry_name,
                replaces: some(self, &facts.replaces),
                skips: facts.skips.iter().map(|skip| self.intern(skip)).collect(),
                skip_range: some(self, &facts.skip_range),
            });
        }
        if !sound {
            return None;
        }
        if entries.is_empty() {
            let message = format!(
                "invalid package {}: invalid channel {}: channel must contain at least one bundle",
                quote(package),
                quote(name)
            );
            self.find(item, &[Part::Field("entries")], message, "add an entry, or remove it");
            return None;
        }
        let head = match graph::head(&entries, &by_name) {
            Ok(head) => head,
            Err(fault) => {
                let message = format!(
                    "invalid package {}: invalid channel {}: {}",
                    quote(package),
                    quote(name),
                    fault.message
                );
                let path: Vec<Part> = match fault.entry {
                    Some(index) => vec![Part::Field("entries"), Part::Item(index)],
                    None => vec![Part::Field("entries")],
                };
                self.find(item, &path, message, fault.remedy);
                return None;
            }
        };
        Some(Channel {
            name: name.clone(),
            package: package.clone(),
            deprecation: None,
            entries,
            by_name,
            head,
            blob: self.area.blob(item.slot),
        })
    }

    /// The checks over a whole package; `None` if it cannot be used.
    fn finish(&mut self, name: &Arc<str>, draft: Draft<'i>) -> Option<Package> {
        let mut in_channels: BTreeSet<&str> = BTreeSet::new();
        for (item, _) in draft.channels.values() {
            let Facts::Channel(facts) = &item.facts else { continue };
            let mut missing = Vec::new();
            let mut first = None;
            for (index, entry) in facts.entries.iter().enumerate() {
                in_channels.insert(&entry.name);
                if !draft.bundles.contains_key(entry.name.as_str()) {
                    missing.push(entry.name.as_str());
                    first.get_or_insert(index);
                }
            }
            if let Some(first) = first {
                let message = format!(
                    "no olm.bundle blobs found in package {} for olm.channel entries [{}]",
                    quote(name),
                    missing.join(" ")
                );
                let path = [Part::Field("entries"), Part::Item(first), Part::Field("name")];
                let remedy = "add the bundles, or remove their entries";
                self.miss(item, &path, message, remedy);
            }
        }
        for (bundle, (item, _)) in &draft.bundles {
            if !in_channels.contains(&**bundle) {
                let message = format!(
                    "package {}, bundle {} not found in any channel entries",
                    quote(name),
                    quote(bundle)
                );
                self.miss(item, &[Part::Field("name")], message, "add it to a channel");
            }
        }
        self.duplicate_versions(name, &draft);
        let context = format!("invalid package {}", quote(name));
        let default_channel = draft.default_channel;
        let at = [Part::Field("defaultChannel")];
        if default_channel.is_empty() {
            let message = format!("{context}: default channel must be set");
            self.find(draft.item, &[], message, "add the field defaultChannel");
        } else if !draft.channels.contains_key(default_channel) {
            let message = format!(
                "{context}: default channel {} not found in channels list",
                quote(default_channel)
            );
            let known: Vec<&str> = draft.channels.keys().map(|name| &**name).collect();
            let remedy = if known.is_empty() {
                "add an olm.channel document of that name".to_owned()
            } else {
                format!("the package has {}", known.join(", "))
            };
            self.miss(draft.item, &at, message, remedy);
        }
        if draft.channels.is_empty() {
            let message = format!("{context}: package must contain at least one channel");
            self.miss(draft.item, &[], message, "add an olm.channel document");
        }
        let channels: Option<BTreeMap<_, _>> =
            draft.channels.into_iter().map(|(name, (_, channel))| Some((name, channel?))).collect();
        let bundles: Option<BTreeMap<_, _>> = draft
            .bundles
            .into_iter()
            .map(|(name, (_, bundle))| Some((name, Arc::new(bundle?))))
            .collect();
        Some(Package {
            name: name.clone(),
            default_channel: self.intern(default_channel),
            deprecation: draft.deprecation,
            channels: channels?,
            bundles: bundles?,
            blob: self.area.blob(draft.item.slot),
        })
    }

    fn duplicate_versions(&mut self, name: &str, draft: &Draft<'i>) {
        let mut by_version: BTreeMap<String, Vec<&(&'i Item, Option<Bundle>)>> = BTreeMap::new();
        for both in draft.bundles.values() {
            if let Some(bundle) = &both.1 {
                let mut version = bundle.version.to_string();
                if let Some(release) = &bundle.release {
                    version.push('-');
                    version.push_str(release);
                }
                by_version.entry(version).or_default().push(both);
            }
        }
        for (version, same) in by_version {
            let [_, (second, _), ..] = same[..] else { continue };
            let names: Vec<&str> = same.iter().map(|(item, _)| &**self.name(item)).collect();
            let message = format!(
                "invalid package {}: duplicate versions found in bundles: [{{{version}: [{}]}}]",
                quote(name),
                names.join(", ")
            );
            self.find(second, &[], message, "give each bundle a version of its own");
        }
    }
}
