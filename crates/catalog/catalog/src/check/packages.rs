//! The checks on packages: names, default channels, duplicate versions, and that each entry has a
//! bundle and each bundle an entry.

use super::{
    Checker, EMPTY_BUNDLE_FINDINGS, Item, MAX_TYPOS, NO_ENTRIES, NO_NAME, PackageDraft, invalid,
};
use crate::{
    decode::Facts,
    model::{Bundle, Package},
    problem::PathPart,
    rule::CatalogRule,
    upstream::Stage,
};
use mainstay_formats::edit_distance::nearest;
use mainstay_gocompat::quote;
use mainstay_object::names;
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

impl<'i> Checker<'i> {
    pub(super) fn check_packages(
        &mut self,
        items: &'i [Item],
    ) -> BTreeMap<Arc<str>, PackageDraft<'i>> {
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

    /// Checks a whole package; `None` if it cannot be used.
    pub(super) fn check_package(
        &mut self,
        name: &Arc<str>,
        draft: PackageDraft<'i>,
    ) -> Option<Package> {
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
