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
    rule::Rule,
    upstream::{Stage, Words},
};
use mainstay_formats::edit_distance::nearest;
use mainstay_gocompat::quote;
use mainstay_object::names;
use mainstay_version::Range;
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
    /// What upstream says to this catalog.
    pub(crate) upstream: Words,
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
    /// The channel that came last in the order of documents.
    last_channel: Option<&'i Arc<str>>,
    /// What upstream says about bundles, once for each channel they are in.
    lines: BTreeMap<Arc<str>, Vec<String>>,
}

impl Draft<'_> {
    /// Whether upstream makes a channel up: the default one, if there is none of that name.
    fn makes_up(&self, channel: &str) -> bool {
        !channel.is_empty()
            && channel == self.default_channel
            && !self.channels.contains_key(channel)
    }
}

struct Checker<'i> {
    area: &'i Arc<Area>,
    names: BTreeSet<Arc<str>>,
    findings: Vec<Finding>,
    words: Words,
}

const NO_IMAGE: &str = "bundle image must be set";
const NO_NAME: &str = "name must be set";

/// What upstream finds wrong with a bundle of which there is only the name.
const NOTHING_KNOWN: [&str; 2] =
    ["must be exactly one property with type \"olm.package\"", NO_IMAGE];

const NO_ENTRIES: &str = "channel must contain at least one bundle";

/// How many letters the name of a channel may differ from the one that was meant.
const MISTYPED: usize = 2;

fn invalid(what: &str, name: &str) -> String {
    format!("invalid {what} {}", quote(name))
}

/// Builds the index of all items.
pub(crate) fn build(items: &[Item], area: &Arc<Area>) -> Outcome {
    let mut checker =
        Checker { area, names: BTreeSet::new(), findings: Vec::new(), words: Words::default() };
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
    Outcome { packages, others, findings: checker.findings, upstream: checker.words }
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
        rule: Rule,
        item: &Item,
        path: &[Part],
        message: impl Into<String>,
        remedy: impl Into<Cow<'static, str>>,
    ) {
        let finding = Finding {
            rule,
            blob: self.area.slots[item.slot].blob_name(),
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
        rule: Rule,
        item: &Item,
        path: &[Part],
        message: impl Into<String>,
        remedy: impl Into<Cow<'static, str>>,
    ) {
        self.find(rule, item, path, message, remedy);
        if let Some(finding) = self.findings.last_mut() {
            finding.follows_from_gaps = true;
        }
    }

    /// As [`Self::find`], for what stops upstream with the same words.
    fn stop(
        &mut self,
        rule: Rule,
        stage: Stage,
        item: &Item,
        path: &[Part],
        message: String,
        remedy: impl Into<Cow<'static, str>>,
    ) {
        self.words.stop(stage, item.slot, &message);
        self.find(rule, item, path, message, remedy);
    }

    /// As [`Self::miss`], for what stops upstream with the same words.
    fn stop_miss(
        &mut self,
        rule: Rule,
        stage: Stage,
        item: &Item,
        path: &[Part],
        message: String,
        remedy: impl Into<Cow<'static, str>>,
    ) {
        self.words.stop(stage, item.slot, &message);
        self.miss(rule, item, path, message, remedy);
    }

    /// As [`Self::find`], for what is a line in upstream's tree.
    fn find_below(
        &mut self,
        rule: Rule,
        item: &Item,
        path: &[Part],
        below: &[&str],
        text: &str,
        remedy: impl Into<Cow<'static, str>>,
    ) {
        self.words.line(below, text);
        self.find(rule, item, path, format!("{}: {text}", below.join(": ")), remedy);
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
                let message = "config contains package with no name".to_owned();
                self.stop(Rule::MissingName, Stage::Packages, item, &[], message, "give it a name");
                continue;
            }
            if let Some(first) = drafts.get(name) {
                let remedy = self.also_at(first.item);
                let message = format!("duplicate package {}", quote(name));
                self.stop(Rule::DuplicatePackage, Stage::Packages, item, &at, message, remedy);
                continue;
            }
            let faults = names::dns1123_label(name);
            if !faults.is_empty() {
                let message =
                    format!("invalid package name {}: [{}]", quote(name), faults.join(" "));
                self.stop(
                    Rule::PackageName,
                    Stage::Packages,
                    item,
                    &at,
                    message,
                    "choose a name of that form",
                );
            }
            let draft = Draft {
                item,
                default_channel: &facts.default_channel,
                deprecation: None,
                channels: BTreeMap::new(),
                bundles: BTreeMap::new(),
                deprecated_by: None,
                last_channel: None,
                lines: BTreeMap::new(),
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
                self.stop_miss(
                    Rule::UnknownPackage,
                    Stage::Channels,
                    item,
                    &[Part::Field("package")],
                    message,
                    remedy,
                );
                continue;
            };
            if name.is_empty() {
                let message = format!("package {} contains channel with no name", quote(package));
                self.stop(Rule::MissingName, Stage::Channels, item, &[], message, "give it a name");
                continue;
            }
            draft.last_channel = Some(name);
            match draft.channels.entry(name.clone()) {
                btree_map::Entry::Occupied(first) => {
                    let remedy = self.also_at(first.get().0);
                    let message =
                        format!("package {} has duplicate channel {}", quote(package), quote(name));
                    self.stop(
                        Rule::DuplicateChannel,
                        Stage::Channels,
                        item,
                        &[Part::Field("name")],
                        message,
                        remedy,
                    );
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
        let in_package = &*invalid("package", package);
        let in_channel = &*invalid("channel", name);
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
                let remedy = "keep one entry with all edges";
                self.stop(
                    Rule::DuplicateEntry,
                    Stage::Channels,
                    item,
                    &at("name"),
                    message,
                    remedy,
                );
                sound = false;
                continue;
            }
            let below = || invalid("bundle", &facts.name);
            for (number, skip) in facts.skips.iter().enumerate() {
                if skip.is_empty() {
                    let text = format!("skip[{number}] is empty");
                    let remedy = "name a bundle, or remove the line";
                    let below = [in_package, in_channel, &below()];
                    self.find_below(Rule::EmptySkip, item, &at("skips"), &below, &text, remedy);
                }
            }
            if !facts.skip_range.is_empty()
                && let Err(error) = Range::parse(&facts.skip_range)
            {
                let text = format!("invalid skipRange {}: {error}", quote(&facts.skip_range));
                let remedy = "write a range such as \">=1.0.0 <1.2.0\"";
                let below = [in_package, in_channel, &below()];
                self.find_below(Rule::VersionRange, item, &at("skipRange"), &below, &text, remedy);
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
            let path = [Part::Field("entries")];
            let remedy = "add an entry, or remove it";
            self.find_below(
                Rule::EmptyChannel,
                item,
                &path,
                &[in_package, in_channel],
                NO_ENTRIES,
                remedy,
            );
            return None;
        }
        let head = match graph::head(&entries, &by_name) {
            Ok(head) => head,
            Err(fault) => {
                let path: Vec<Part> = match fault.entry {
                    Some(index) => vec![Part::Field("entries"), Part::Item(index)],
                    None => vec![Part::Field("entries")],
                };
                let below = [in_package, in_channel];
                self.find_below(fault.rule, item, &path, &below, &fault.message, fault.remedy);
                return None;
            }
        };
        Some(Channel {
            name: name.clone(),
            package: package.clone(),
            deprecation: None,
            skipped: entries.iter().flat_map(|entry| entry.skips.iter().cloned()).collect(),
            entries,
            by_name,
            head,
            blob: self.area.blob(item.slot),
        })
    }

    /// The checks over a whole package; `None` if it cannot be used.
    fn finish(&mut self, name: &Arc<str>, draft: Draft<'i>) -> Option<Package> {
        let in_package = &*invalid("package", name);
        self.entries(name, in_package, &draft);
        self.duplicate_versions(name, in_package, &draft);
        let default_channel = draft.default_channel;
        let at = [Part::Field("defaultChannel")];
        if default_channel.is_empty() {
            let remedy = "add the field defaultChannel";
            let text = "default channel must be set";
            self.find_below(Rule::DefaultChannel, draft.item, &[], &[in_package], text, remedy);
        } else if !draft.channels.contains_key(default_channel)
            && !mainstay_fault::is_on("missing-default-channels-are-no-finding")
        {
            let in_channel = &*invalid("channel", default_channel);
            self.words.line(&[in_package, in_channel], NO_ENTRIES);
            let message = format!(
                "{in_package}: default channel {} not found in channels list",
                quote(default_channel)
            );
            let known: Vec<&str> = draft.channels.keys().map(|name| &**name).collect();
            let has = format!("the package has {}", known.join(", "));
            let remedy = match nearest(default_channel, known.iter().copied(), MISTYPED) {
                _ if known.is_empty() => "add an olm.channel document of that name".to_owned(),
                Some(meant) => format!("did you mean {}? {has}", quote(meant)),
                None => has,
            };
            self.miss(Rule::DefaultChannel, draft.item, &at, message, remedy);
        }
        if draft.channels.is_empty() {
            let text = "package must contain at least one channel";
            if default_channel.is_empty() {
                self.words.line(&[in_package], text);
            }
            let message = format!("{in_package}: {text}");
            self.miss(Rule::NoChannels, draft.item, &[], message, "add an olm.channel document");
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

    /// The checks on entries and bundles belonging together.
    fn entries(&mut self, name: &Arc<str>, in_package: &str, draft: &Draft<'i>) {
        let mut in_channels: BTreeSet<&str> = BTreeSet::new();
        for (channel, (item, _)) in &draft.channels {
            let Facts::Channel(facts) = &item.facts else { continue };
            let in_channel = &*invalid("channel", channel);
            let mut missing = BTreeSet::new();
            let mut first = None;
            for (index, entry) in facts.entries.iter().enumerate() {
                in_channels.insert(&entry.name);
                let in_bundle = || invalid("bundle", &entry.name);
                for line in draft.lines.get(entry.name.as_str()).into_iter().flatten() {
                    self.words.line(&[in_package, in_channel, &in_bundle()], line);
                }
                if !draft.bundles.contains_key(entry.name.as_str()) {
                    missing.insert(entry.name.as_str());
                    first.get_or_insert(index);
                    // Upstream looks for bundles of the last channel only; those of others are
                    // bundles of which it knows nothing.
                    for line in NOTHING_KNOWN {
                        self.words.line(&[in_package, in_channel, &in_bundle()], line);
                    }
                    if entry.name.is_empty() {
                        self.words.line(&[in_package, in_channel, &in_bundle()], NO_NAME);
                    }
                }
            }
            if let Some(first) = first {
                let missing: Vec<&str> = missing.into_iter().collect();
                let message = format!(
                    "no olm.bundle blobs found in package {} for olm.channel entries [{}]",
                    quote(name),
                    missing.join(" ")
                );
                if draft.last_channel == Some(channel) {
                    self.words.stop(Stage::Entries, draft.item.slot, &message);
                }
                let path = [Part::Field("entries"), Part::Item(first), Part::Field("name")];
                let remedy = "add the bundles, or remove their entries";
                self.miss(Rule::MissingBundle, item, &path, message, remedy);
            }
        }
        for (bundle, (item, _)) in &draft.bundles {
            if !in_channels.contains(&**bundle) {
                let message = format!(
                    "package {}, bundle {} not found in any channel entries",
                    quote(name),
                    quote(bundle)
                );
                let at = [Part::Field("name")];
                self.stop_miss(
                    Rule::UnlistedBundle,
                    Stage::Bundles,
                    item,
                    &at,
                    message,
                    "add it to a channel",
                );
            }
        }
    }

    fn duplicate_versions(&mut self, name: &str, in_package: &str, draft: &Draft<'i>) {
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
        let mut names: BTreeMap<&str, BTreeSet<&str>> = by_version
            .iter()
            .map(|(version, same)| {
                (&**version, same.iter().map(|(i, _)| &**self.name(i)).collect())
            })
            .collect();
        for (version, same) in &by_version {
            let [_, (second, _), ..] = same[..] else { continue };
            if mainstay_fault::is_on("versions-come-twice") {
                continue;
            }
            let list: Vec<&str> = names[&**version].iter().copied().collect();
            let message = format!(
                "invalid package {}: duplicate versions found in bundles: [{{{version}: [{}]}}]",
                quote(name),
                list.join(", ")
            );
            self.find(
                Rule::DuplicateVersion,
                second,
                &[],
                message,
                "give each bundle a version of its own",
            );
        }
        // Upstream knows no version of entries without a bundle.
        for (item, _) in draft.channels.values() {
            let Facts::Channel(facts) = &item.facts else { continue };
            let unknown = facts.entries.iter().map(|entry| entry.name.as_str());
            let unknown = unknown.filter(|entry| !draft.bundles.contains_key(*entry));
            for entry in unknown {
                names.entry("0.0.0").or_default().insert(entry);
            }
        }
        let repeated: Vec<String> = names
            .into_iter()
            .filter(|(_, names)| names.len() > 1)
            .map(|(version, names)| {
                let names: Vec<&str> = names.into_iter().collect();
                format!("{{{version}: [{}]}}", names.join(", "))
            })
            .collect();
        if !repeated.is_empty() {
            let text = format!("duplicate versions found in bundles: [{}]", repeated.join(" "));
            self.words.line(&[in_package], &text);
        }
    }
}
