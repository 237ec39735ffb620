//! Checks of `olm.deprecations`: each deprecated object exists, is listed once, and has a message.

use super::{Checker, Item, PackageDraft, invalid};
use crate::{
    decode::{DeprecationFacts, Facts},
    problem::PathPart,
    rule::CatalogRule,
    upstream::Stage,
};
use mainstay_gocompat::quote;
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

const NO_MESSAGE: &str = "invalid deprecation: message must be set";

impl<'i> Checker<'i> {
    pub(super) fn check_deprecations(
        &mut self,
        items: &'i [Item],
        drafts: &mut BTreeMap<Arc<str>, PackageDraft<'i>>,
    ) {
        let documents = items.iter().filter(|item| matches!(item.facts, Facts::Deprecations(_)));
        for (number, item) in documents.enumerate() {
            let Facts::Deprecations(entries) = &item.facts else { continue };
            let package = self.package(item);
            if package.is_empty() {
                let message = format!("package name must be set for deprecation item {number}");
                self.report_fatal(
                    CatalogRule::MissingName,
                    Stage::Deprecations,
                    item,
                    &[],
                    message,
                    "add the field package",
                );
                continue;
            }
            let Some(draft) = drafts.get_mut(package) else {
                let package = quote(package);
                let message = format!("cannot apply deprecations to an unknown package {package}");
                let remedy = "add an olm.package document of that name, or correct the name";
                self.report_fatal_missing(
                    CatalogRule::UnknownPackage,
                    Stage::Deprecations,
                    item,
                    &[PathPart::Field("package")],
                    message,
                    remedy,
                );
                continue;
            };
            if let Some(first) = draft.deprecated_by {
                let remedy = self.duplicate_remedy(first);
                let package = quote(package);
                let message =
                    format!("expected a maximum of one deprecation per package: {package}");
                self.report_fatal(
                    CatalogRule::DuplicateDeprecation,
                    Stage::Deprecations,
                    item,
                    &[],
                    message,
                    remedy,
                );
                continue;
            }
            draft.deprecated_by = Some(item);
            let mut references = BTreeSet::new();
            for (index, entry) in entries.iter().enumerate() {
                let repeated = !references.insert((&entry.schema, &entry.name));
                self.apply_deprecation(item, index, entry, repeated, draft);
            }
        }
    }

    fn apply_deprecation(
        &mut self,
        item: &Item,
        index: usize,
        entry: &DeprecationFacts,
        repeated: bool,
        draft: &mut PackageDraft<'i>,
    ) {
        let in_package = &*invalid("package", self.package(item));
        let package = quote(self.package(item));
        let path =
            [PathPart::Field("entries"), PathPart::Item(index), PathPart::Field("reference")];
        let name = quote(&entry.name);
        let reference = format!(
            "declcfg.PackageScopedReference{{Schema:{}, Name:{name}}}",
            quote(&entry.schema)
        );
        if entry.schema.is_empty() {
            let message =
                format!("schema must be set for deprecation entry [{index}] for package {package}");
            let remedy = "say olm.package, olm.channel or olm.bundle";
            self.report_fatal(
                CatalogRule::BadDeprecation,
                Stage::Deprecations,
                item,
                &path,
                message,
                remedy,
            );
            return;
        }
        if repeated {
            let message = format!("duplicate deprecation entry {reference} for package {package}");
            self.report_fatal(
                CatalogRule::DuplicateDeprecation,
                Stage::Deprecations,
                item,
                &path,
                message,
                "keep one entry",
            );
            return;
        }
        let text: Arc<str> = entry.message.as_str().into();
        let context = match entry.schema.as_str() {
            "olm.package" => {
                if !entry.name.is_empty() {
                    let message = format!(
                        "package name must be empty for deprecated package {package} (specified {name})"
                    );
                    self.report_fatal(
                        CatalogRule::BadDeprecation,
                        Stage::Deprecations,
                        item,
                        &path,
                        message,
                        "remove the name",
                    );
                }
                draft.deprecation = Some(text);
                String::new()
            }
            "olm.channel" => {
                let Some((_, channel)) = draft.channels.get_mut(entry.name.as_str()) else {
                    let message = format!(
                        "cannot deprecate channel {name} for package {package}: channel not found"
                    );
                    if draft.creates_implicitly(&entry.name) {
                        if entry.message.is_empty() {
                            let in_channel = &*invalid("channel", &entry.name);
                            self.upstream.add_line(&[in_package, in_channel], NO_MESSAGE);
                        }
                    } else {
                        self.upstream.set_fatal(Stage::Deprecations, item.slot, &message);
                    }
                    self.report_missing(
                        CatalogRule::UnknownDeprecated,
                        item,
                        &path,
                        message,
                        "correct the name, or remove the entry",
                    );
                    return;
                };
                if let Some(channel) = channel
                    && !mainstay_fault::is_on("deprecations-of-channels-are-lost")
                {
                    channel.deprecation = Some(text);
                }
                format!("invalid channel {name}: ")
            }
            "olm.bundle" => {
                let Some((_, bundle)) = draft.bundles.get_mut(entry.name.as_str()) else {
                    let message = format!(
                        "cannot deprecate bundle {name} for package {package}: bundle not found"
                    );
                    self.report_fatal_missing(
                        CatalogRule::UnknownDeprecated,
                        Stage::Deprecations,
                        item,
                        &path,
                        message,
                        "correct the name, or remove the entry",
                    );
                    return;
                };
                if let Some(bundle) = bundle {
                    bundle.deprecation = Some(text);
                }
                format!("invalid bundle {name}: ")
            }
            _ => {
                let message = format!(
                    "cannot deprecate object {reference} referenced by entry {index} for package {package}: object schema unknown"
                );
                let remedy = "say olm.package, olm.channel or olm.bundle";
                self.report_fatal(
                    CatalogRule::BadDeprecation,
                    Stage::Deprecations,
                    item,
                    &path,
                    message,
                    remedy,
                );
                return;
            }
        };
        if entry.message.is_empty() {
            match entry.schema.as_str() {
                "olm.package" => self.upstream.add_line(&[in_package], NO_MESSAGE),
                "olm.channel" => {
                    let in_channel = &*invalid("channel", &entry.name);
                    self.upstream.add_line(&[in_package, in_channel], NO_MESSAGE);
                }
                _ => {
                    let name: Arc<str> = entry.name.as_str().into();
                    draft.lines.entry(name).or_default().push(NO_MESSAGE.to_owned());
                }
            }
            let path = [PathPart::Field("entries"), PathPart::Item(index)];
            let message = format!("{in_package}: {context}{NO_MESSAGE}");
            self.report(
                CatalogRule::BadDeprecation,
                item,
                &path,
                message,
                "say what to use instead",
            );
        }
    }
}
