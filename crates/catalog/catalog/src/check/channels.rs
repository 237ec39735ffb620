//! The checks on channels: names, entries, the update graph with its head.

use super::{Checker, Item, NO_ENTRIES, PackageDraft, invalid};
use crate::{
    decode::{ChannelFacts, Facts},
    graph,
    model::{CatalogEntry, Channel},
    problem::PathPart,
    rule::CatalogRule,
    upstream::Stage,
};
use mainstay_gocompat::quote;
use mainstay_version::Range;
use std::{
    collections::{BTreeMap, btree_map},
    sync::Arc,
};

impl<'i> Checker<'i> {
    pub(super) fn check_channels(
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
}
