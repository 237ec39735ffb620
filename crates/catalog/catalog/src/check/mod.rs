//! Checks of a catalog: they build the index from the facts of all blobs, and report what does not
//! fit together.
//!
//! Upstream stops at its first error. Mainstay runs every check, each on input that is still
//! meaningful: a bundle with a bad version is not also reported as missing, and a channel with
//! duplicate entries is not also reported for its graph.

mod bundles;
mod channels;
mod deprecations;
mod packages;

use crate::{
    content::{Area, BlobOrigin},
    decode::Facts,
    model::{Bundle, Channel, Package},
    problem::{Finding, PathPart},
    rule::CatalogRule,
    upstream::{Stage, UpstreamReport},
};
use mainstay_gocompat::quote;
use std::{
    borrow::Cow,
    collections::{BTreeMap, BTreeSet},
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
}
