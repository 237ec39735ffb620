//! Checks of a catalog: they build the index from the facts of all blobs, and report what does not
//! fit together.
//!
//! Upstream stops at its first error. Here every check runs, each on input that is still
//! meaningful: a bundle with a bad version is not also reported as missing, and a channel with
//! duplicate entries is not also reported for its graph.

mod bundles;
mod deprecations;

use crate::{
    content::{Area, BlobOrigin},
    decode::{ChannelFacts, Facts},
    graph,
    model::{Bundle, CatalogEntry, Channel, Package},
    problem::{Finding, PathPart},
    rule::CatalogRule,
    upstream::{Stage, UpstreamReport},
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

/// One blob and its facts, in the order of files and lines.
#[derive(Debug)]
pub(crate) struct Item {
    /// The index of its slot in the area.
    pub(crate) slot: usize,
    /// The bytes of the document in its file.
    pub(crate) bytes: std::ops::Range<usize>,
    pub(crate) facts: Facts,
}

/// The result of all checks.
pub(crate) struct CheckOutcome {
    pub(crate) packages: BTreeMap<Arc<str>, Package>,
    pub(crate) others: Vec<usize>,
    pub(crate) findings: Vec<Finding>,
    /// What upstream reports for this catalog.
    pub(crate) upstream: UpstreamReport,
}

/// A package under construction.
struct PackageDraft<'i> {
    item: &'i Item,
    default_channel: &'i str,
    deprecation: Option<Arc<str>>,
    /// Channels by name; `None` for one that is declared but unusable.
    channels: BTreeMap<Arc<str>, (&'i Item, Option<Channel>)>,
    bundles: BTreeMap<Arc<str>, (&'i Item, Option<Bundle>)>,
    deprecated_by: Option<&'i Item>,
    /// The last channel in the order of documents.
    last_channel: Option<&'i Arc<str>>,
    /// Upstream's findings about bundles; each is repeated for each channel of the bundle.
    lines: BTreeMap<Arc<str>, Vec<String>>,
}

impl PackageDraft<'_> {
    /// Whether upstream creates this channel: it does so for a default channel that is not
    /// declared.
    fn creates_implicitly(&self, channel: &str) -> bool {
        !channel.is_empty()
            && channel == self.default_channel
            && !self.channels.contains_key(channel)
    }
}

struct Checker<'i> {
    area: &'i Arc<Area>,
    names: BTreeSet<Arc<str>>,
    findings: Vec<Finding>,
    upstream: UpstreamReport,
}

const NO_IMAGE: &str = "bundle image must be set";
const NO_NAME: &str = "name must be set";

/// What upstream reports for a bundle of which only the name is known.
const EMPTY_BUNDLE_FINDINGS: [&str; 2] =
    ["must be exactly one property with type \"olm.package\"", NO_IMAGE];

const NO_ENTRIES: &str = "channel must contain at least one bundle";

/// How many letters of a channel name may differ for a suggestion.
const MAX_TYPOS: usize = 2;

fn invalid(what: &str, name: &str) -> String {
    format!("invalid {what} {}", quote(name))
}

/// Builds the index of all items.
pub(crate) fn build(items: &[Item], area: &Arc<Area>) -> CheckOutcome {
    let mut checker = Checker {
        area,
        names: BTreeSet::new(),
        findings: Vec::new(),
        upstream: UpstreamReport::default(),
    };
    let mut drafts = checker.check_packages(items);
    checker.check_channels(items, &mut drafts);
    checker.check_bundles(items, &mut drafts);
    checker.check_deprecations(items, &mut drafts);
    let mut packages = BTreeMap::new();
    for (name, draft) in drafts {
        if let Some(package) = checker.check_package(&name, draft) {
            packages.insert(name, package);
        }
    }
    let others = items
        .iter()
        .filter(|item| matches!(item.facts, Facts::Other))
        .map(|item| item.slot)
        .collect();
    CheckOutcome { packages, others, findings: checker.findings, upstream: checker.upstream }
}

impl<'i> Checker<'i> {
    /// Returns the shared copy of a name, so that each name is allocated once.
    fn intern(&mut self, name: &str) -> Arc<str> {
        if let Some(interned) = self.names.get(name) {
            return interned.clone();
        }
        let name: Arc<str> = name.into();
        self.names.insert(name.clone());
        name
    }

    fn origin(&self, item: &Item) -> &'i BlobOrigin {
        &self.area.slots[item.slot].origin
    }

    fn name(&self, item: &Item) -> &'i Arc<str> {
        &self.area.slots[item.slot].name
    }

    fn package(&self, item: &Item) -> &'i Arc<str> {
        &self.area.slots[item.slot].package
    }

    fn report(
        &mut self,
        rule: CatalogRule,
        item: &Item,
        path: &[PathPart],
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

    /// As [`Self::report`], for a finding that a file could refute that was not read.
    fn report_missing(
        &mut self,
        rule: CatalogRule,
        item: &Item,
        path: &[PathPart],
        message: impl Into<String>,
        remedy: impl Into<Cow<'static, str>>,
    ) {
        self.report(rule, item, path, message, remedy);
        if let Some(finding) = self.findings.last_mut() {
            finding.follows_from_gaps = true;
        }
    }

    /// As [`Self::report`], for a finding at which upstream stops with the same words.
    fn report_fatal(
        &mut self,
        rule: CatalogRule,
        stage: Stage,
        item: &Item,
        path: &[PathPart],
        message: String,
        remedy: impl Into<Cow<'static, str>>,
    ) {
        self.upstream.set_fatal(stage, item.slot, &message);
        self.report(rule, item, path, message, remedy);
    }

    /// As [`Self::report_missing`], for a finding at which upstream stops with the same words.
    fn report_fatal_missing(
        &mut self,
        rule: CatalogRule,
        stage: Stage,
        item: &Item,
        path: &[PathPart],
        message: String,
        remedy: impl Into<Cow<'static, str>>,
    ) {
        self.upstream.set_fatal(stage, item.slot, &message);
        self.report_missing(rule, item, path, message, remedy);
    }

    /// As [`Self::report`], for a finding that is a line in upstream's tree.
    fn report_in_tree(
        &mut self,
        rule: CatalogRule,
        item: &Item,
        path: &[PathPart],
        below: &[&str],
        text: &str,
        remedy: impl Into<Cow<'static, str>>,
    ) {
        self.upstream.add_line(below, text);
        self.report(rule, item, path, format!("{}: {text}", below.join(": ")), remedy);
    }

    fn duplicate_remedy(&self, first: &Item) -> String {
        format!("the first one is at {}; remove one of them", self.origin(first))
    }

    fn check_packages(&mut self, items: &'i [Item]) -> BTreeMap<Arc<str>, PackageDraft<'i>> {
        let mut drafts: BTreeMap<Arc<str>, PackageDraft<'i>> = BTreeMap::new();
        for item in items {
            let Facts::Package(facts) = &item.facts else { continue };
            let name = self.name(item);
            let at = [PathPart::Field("name")];
            if name.is_empty() {
                let message = "config contains package with no name".to_owned();
                self.report_fatal(
                    CatalogRule::MissingName,
                    Stage::Packages,
                    item,
                    &[],
                    message,
                    "give it a name",
                );
                continue;
            }
            if let Some(first) = drafts.get(name) {
                let remedy = self.duplicate_remedy(first.item);
                let message = format!("duplicate package {}", quote(name));
                self.report_fatal(
                    CatalogRule::DuplicatePackage,
                    Stage::Packages,
                    item,
                    &at,
                    message,
                    remedy,
                );
                continue;
            }
            let faults = names::dns1123_label(name);
            if !faults.is_empty() {
                let message =
                    format!("invalid package name {}: [{}]", quote(name), faults.join(" "));
                self.report_fatal(
                    CatalogRule::PackageName,
                    Stage::Packages,
                    item,
                    &at,
                    message,
                    "choose a name of that form",
                );
            }
            let draft = PackageDraft {
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

    fn check_channels(
        &mut self,
        items: &'i [Item],
        drafts: &mut BTreeMap<Arc<str>, PackageDraft<'i>>,
    ) {
        for item in items {
            let Facts::Channel(facts) = &item.facts else { continue };
            let (package, name) = (self.package(item), self.name(item));
            let Some(draft) = drafts.get_mut(package) else {
                let message =
                    format!("unknown package {} for channel {}", quote(package), quote(name));
                let remedy = "add an olm.package document of that name, or correct the name";
                self.report_fatal_missing(
                    CatalogRule::UnknownPackage,
                    Stage::Channels,
                    item,
                    &[PathPart::Field("package")],
                    message,
                    remedy,
                );
                continue;
            };
            if name.is_empty() {
                let message = format!("package {} contains channel with no name", quote(package));
                self.report_fatal(
                    CatalogRule::MissingName,
                    Stage::Channels,
                    item,
                    &[],
                    message,
                    "give it a name",
                );
                continue;
            }
            draft.last_channel = Some(name);
            match draft.channels.entry(name.clone()) {
                btree_map::Entry::Occupied(first) => {
                    let remedy = self.duplicate_remedy(first.get().0);
                    let message =
                        format!("package {} has duplicate channel {}", quote(package), quote(name));
                    self.report_fatal(
                        CatalogRule::DuplicateChannel,
                        Stage::Channels,
                        item,
                        &[PathPart::Field("name")],
                        message,
                        remedy,
                    );
                }
                btree_map::Entry::Vacant(free) => {
                    free.insert((item, self.check_channel(item, facts)));
                }
            }
        }
    }

    /// The entries of one channel; `None` if its graph cannot be checked.
    fn check_channel(&mut self, item: &'i Item, facts: &'i ChannelFacts) -> Option<Channel> {
        let (package, name) = (self.package(item), self.name(item));
        let mut entries = Vec::with_capacity(facts.entries.len());
        let mut by_name: BTreeMap<Arc<str>, usize> = BTreeMap::new();
        let mut sound = true;
        let in_package = &*invalid("package", package);
        let in_channel = &*invalid("channel", name);
        for (index, facts) in facts.entries.iter().enumerate() {
            let at =
                |field| [PathPart::Field("entries"), PathPart::Item(index), PathPart::Field(field)];
            let entry_name = self.intern(&facts.name);
            if by_name.contains_key(&entry_name) {
                let message = format!(
                    "invalid package {}, channel {}: duplicate entry {}",
                    quote(package),
                    quote(name),
                    quote(&entry_name)
                );
                let remedy = "keep one entry with all edges";
                self.report_fatal(
                    CatalogRule::DuplicateEntry,
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
                    self.report_in_tree(
                        CatalogRule::EmptySkip,
                        item,
                        &at("skips"),
                        &below,
                        &text,
                        remedy,
                    );
                }
            }
            if !facts.skip_range.is_empty()
                && let Err(error) = Range::parse(&facts.skip_range)
            {
                let text = format!("invalid skipRange {}: {error}", quote(&facts.skip_range));
                let remedy = "write a range such as \">=1.0.0 <1.2.0\"";
                let below = [in_package, in_channel, &below()];
                self.report_in_tree(
                    CatalogRule::VersionRange,
                    item,
                    &at("skipRange"),
                    &below,
                    &text,
                    remedy,
                );
            }
            by_name.insert(entry_name.clone(), entries.len());
            let intern_if_set =
                |checker: &mut Self, text: &str| (!text.is_empty()).then(|| checker.intern(text));
            entries.push(CatalogEntry {
                name: entry_name,
                replaces: intern_if_set(self, &facts.replaces),
                skips: facts.skips.iter().map(|skip| self.intern(skip)).collect(),
                skip_range: intern_if_set(self, &facts.skip_range),
            });
        }
        if !sound {
            return None;
        }
        if entries.is_empty() {
            let path = [PathPart::Field("entries")];
            let remedy = "add an entry, or remove it";
            self.report_in_tree(
                CatalogRule::EmptyChannel,
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
                let path: Vec<PathPart> = match fault.entry {
                    Some(index) => vec![PathPart::Field("entries"), PathPart::Item(index)],
                    None => vec![PathPart::Field("entries")],
                };
                let below = [in_package, in_channel];
                self.report_in_tree(fault.rule, item, &path, &below, &fault.message, fault.remedy);
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

    /// Checks a whole package; `None` if it cannot be used.
    fn check_package(&mut self, name: &Arc<str>, draft: PackageDraft<'i>) -> Option<Package> {
        let in_package = &*invalid("package", name);
        self.check_membership(name, in_package, &draft);
        self.check_duplicate_versions(name, in_package, &draft);
        let default_channel = draft.default_channel;
        let at = [PathPart::Field("defaultChannel")];
        if default_channel.is_empty() {
            let remedy = "add the field defaultChannel";
            let text = "default channel must be set";
            self.report_in_tree(
                CatalogRule::DefaultChannel,
                draft.item,
                &[],
                &[in_package],
                text,
                remedy,
            );
        } else if !draft.channels.contains_key(default_channel)
            && !mainstay_fault::is_on("missing-default-channels-are-no-finding")
        {
            let in_channel = &*invalid("channel", default_channel);
            self.upstream.add_line(&[in_package, in_channel], NO_ENTRIES);
            let message = format!(
                "{in_package}: default channel {} not found in channels list",
                quote(default_channel)
            );
            let channel_names: Vec<&str> = draft.channels.keys().map(|name| &**name).collect();
            let has = format!("the package has {}", channel_names.join(", "));
            let remedy = match nearest(default_channel, channel_names.iter().copied(), MAX_TYPOS) {
                _ if channel_names.is_empty() => {
                    "add an olm.channel document of that name".to_owned()
                }
                Some(meant) => format!("did you mean {}? {has}", quote(meant)),
                None => has,
            };
            self.report_missing(CatalogRule::DefaultChannel, draft.item, &at, message, remedy);
        }
        if draft.channels.is_empty() {
            let text = "package must contain at least one channel";
            if default_channel.is_empty() {
                self.upstream.add_line(&[in_package], text);
            }
            let message = format!("{in_package}: {text}");
            self.report_missing(
                CatalogRule::NoChannels,
                draft.item,
                &[],
                message,
                "add an olm.channel document",
            );
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

    /// Checks that each entry has a bundle, and each bundle an entry.
    fn check_membership(&mut self, name: &Arc<str>, in_package: &str, draft: &PackageDraft<'i>) {
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
                    self.upstream.add_line(&[in_package, in_channel, &in_bundle()], line);
                }
                if !draft.bundles.contains_key(entry.name.as_str()) {
                    missing.insert(entry.name.as_str());
                    first.get_or_insert(index);
                    // Upstream stops at missing bundles of the last channel only. In other channels
                    // it reports a bundle without any content.
                    for line in EMPTY_BUNDLE_FINDINGS {
                        self.upstream.add_line(&[in_package, in_channel, &in_bundle()], line);
                    }
                    if entry.name.is_empty() {
                        self.upstream.add_line(&[in_package, in_channel, &in_bundle()], NO_NAME);
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
                    self.upstream.set_fatal(Stage::Entries, draft.item.slot, &message);
                }
                let path =
                    [PathPart::Field("entries"), PathPart::Item(first), PathPart::Field("name")];
                let remedy = "add the bundles, or remove their entries";
                self.report_missing(CatalogRule::MissingBundle, item, &path, message, remedy);
            }
        }
        for (bundle, (item, _)) in &draft.bundles {
            if !in_channels.contains(&**bundle) {
                let message = format!(
                    "package {}, bundle {} not found in any channel entries",
                    quote(name),
                    quote(bundle)
                );
                let at = [PathPart::Field("name")];
                self.report_fatal_missing(
                    CatalogRule::UnlistedBundle,
                    Stage::Bundles,
                    item,
                    &at,
                    message,
                    "add it to a channel",
                );
            }
        }
    }

    fn check_duplicate_versions(&mut self, name: &str, in_package: &str, draft: &PackageDraft<'i>) {
        let mut by_version: BTreeMap<String, Vec<&(&'i Item, Option<Bundle>)>> = BTreeMap::new();
        for declared in draft.bundles.values() {
            if let Some(bundle) = &declared.1 {
                let mut version = bundle.version.to_string();
                if let Some(release) = &bundle.release {
                    version.push('-');
                    version.push_str(release);
                }
                by_version.entry(version).or_default().push(declared);
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
            self.report(
                CatalogRule::DuplicateVersion,
                second,
                &[],
                message,
                "give each bundle a version of its own",
            );
        }
        // Upstream takes 0.0.0 as the version of an entry without a bundle.
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
            self.upstream.add_line(&[in_package], &text);
        }
    }
}
