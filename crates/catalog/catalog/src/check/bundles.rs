//! The checks on bundles: names, images, the one `olm.package` property, versions.

use super::{Checker, Item, NO_IMAGE, NO_NAME, PackageDraft, invalid};
use crate::{
    decode::{BundleFacts, Facts},
    model::{Bundle, BundleProperty},
    problem::PathPart,
    rule::CatalogRule,
    upstream::Stage,
};
use mainstay_formats::reference;
use mainstay_gocompat::quote;
use mainstay_version::{BundleRelease, Version, parse_strict};
use std::{
    collections::{BTreeMap, btree_map},
    sync::Arc,
};

impl<'i> Checker<'i> {
    pub(super) fn check_bundles(
        &mut self,
        items: &'i [Item],
        drafts: &mut BTreeMap<Arc<str>, PackageDraft<'i>>,
    ) {
        for item in items {
            let Facts::Bundle(facts) = &item.facts else { continue };
            let (package, name) = (self.package(item), self.name(item));
            if package.is_empty() {
                let message = format!("package name must be set for bundle {}", quote(name));
                self.report_fatal(
                    CatalogRule::MissingName,
                    Stage::Bundles,
                    item,
                    &[],
                    message,
                    "add the field package",
                );
                continue;
            }
            let Some(draft) = drafts.get_mut(package) else {
                let message =
                    format!("unknown package {} for bundle {}", quote(package), quote(name));
                let remedy = "add an olm.package document of that name, or correct the name";
                self.report_fatal_missing(
                    CatalogRule::UnknownPackage,
                    Stage::Bundles,
                    item,
                    &[PathPart::Field("package")],
                    message,
                    remedy,
                );
                continue;
            };
            match draft.bundles.entry(name.clone()) {
                btree_map::Entry::Occupied(first) => {
                    let remedy = self.duplicate_remedy(first.get().0);
                    let message =
                        format!("package {} has duplicate bundle {}", quote(package), quote(name));
                    self.report_fatal(
                        CatalogRule::DuplicateBundle,
                        Stage::Bundles,
                        item,
                        &[PathPart::Field("name")],
                        message,
                        remedy,
                    );
                }
                btree_map::Entry::Vacant(free) => {
                    let mut lines = Vec::new();
                    free.insert((item, self.check_bundle(item, facts, &mut lines)));
                    if !lines.is_empty() {
                        draft.lines.insert(name.clone(), lines);
                    }
                }
            }
        }
    }

    /// Checks one bundle; `None` if it has no usable version. `lines` collects the findings that
    /// upstream repeats in each channel of the bundle.
    fn check_bundle(
        &mut self,
        item: &'i Item,
        facts: &'i BundleFacts,
        lines: &mut Vec<String>,
    ) -> Option<Bundle> {
        let (package, name) = (self.package(item), self.name(item));
        let context = format!("package {} bundle {}", quote(package), quote(name));
        for fault in &facts.faults {
            let message = format!("parse properties for bundle {}: {}", quote(name), fault.message);
            let remedy = "correct the property, or remove it";
            self.report_fatal(
                CatalogRule::BadProperty,
                Stage::Bundles,
                item,
                &fault.path,
                message,
                remedy,
            );
        }
        if name.is_empty() {
            self.report_in_channels(
                CatalogRule::MissingName,
                item,
                &[],
                lines,
                NO_NAME.to_owned(),
                "give it a name",
            );
        }
        if facts.image.is_empty() && facts.objects == 0 {
            let remedy = "name the image that holds the bundle";
            self.report_in_channels(
                CatalogRule::NoImage,
                item,
                &[],
                lines,
                NO_IMAGE.to_owned(),
                remedy,
            );
        }
        if facts.packages.len() != 1 {
            let count = facts.packages.len();
            // A property that cannot be read has its own finding.
            if facts.faults.is_empty() || count > 1 {
                let message = format!(
                    "{context} must have exactly 1 \"olm.package\" property, found {count}"
                );
                let remedy = "state packageName and version in one property of that type";
                self.report_fatal(
                    CatalogRule::PackageProperty,
                    Stage::Bundles,
                    item,
                    &[PathPart::Field("properties")],
                    message,
                    remedy,
                );
            }
            self.check_images(item, facts, &context);
            return None;
        }
        let (index, [package_name, version, release]) = &facts.packages[0];
        let at = |field| {
            [
                PathPart::Field("properties"),
                PathPart::Item(*index),
                PathPart::Field("value"),
                PathPart::Field(field),
            ]
        };
        if **package_name != **package {
            let message = format!(
                "package {} does not match \"olm.package\" property {}",
                quote(package),
                quote(package_name)
            );
            let remedy = "make the two names equal";
            self.report_fatal(
                CatalogRule::PackageProperty,
                Stage::Bundles,
                item,
                &at("packageName"),
                message,
                remedy,
            );
        }
        self.check_images(item, facts, &context);
        let parsed =
            self.parse_version(item, [version, release], [&at("version"), &at("release")], lines)?;
        let properties = facts
            .properties
            .iter()
            .map(|(_, kind, json)| BundleProperty { kind: self.intern(kind), json: json.clone() })
            .collect();
        Some(Bundle {
            name: name.clone(),
            package: package.clone(),
            version: parsed,
            release: (!release.is_empty()).then(|| self.intern(release)),
            image: self.intern(&facts.image),
            properties,
            deprecation: None,
            object_count: facts.objects,
            csv_metadata_count: facts.metadatas,
            min_kube_version: (!facts.min_kube_version.is_empty())
                .then(|| self.intern(&facts.min_kube_version)),
            blob: self.area.blob(item.slot),
        })
    }

    fn check_images(&mut self, item: &Item, facts: &BundleFacts, context: &str) {
        let remedy = "write a reference such as registry.example.com/operators/a@sha256:…";
        if !facts.image.is_empty()
            && let Some(why) = reference::reference_error(&facts.image)
        {
            let image = quote(&facts.image);
            let message = format!("{context} image: invalid image pull spec {image}: {why}");
            self.report_fatal(
                CatalogRule::ImageReference,
                Stage::Bundles,
                item,
                &[PathPart::Field("image")],
                message,
                remedy,
            );
        }
        for (index, image) in facts.related_images.iter().enumerate() {
            if !image.is_empty()
                && let Some(why) = reference::reference_error(image)
            {
                let message = format!(
                    "{context} relatedImages[{index}].image: invalid image pull spec {}: {why}",
                    quote(image)
                );
                let path = [
                    PathPart::Field("relatedImages"),
                    PathPart::Item(index),
                    PathPart::Field("image"),
                ];
                self.report_fatal(
                    CatalogRule::ImageReference,
                    Stage::Bundles,
                    item,
                    &path,
                    message,
                    remedy,
                );
            }
        }
    }

    /// Reports a finding that upstream repeats in each channel of the bundle.
    fn report_in_channels(
        &mut self,
        rule: CatalogRule,
        item: &Item,
        path: &[PathPart],
        lines: &mut Vec<String>,
        text: String,
        remedy: &'static str,
    ) {
        let (package, name) = (self.package(item), self.name(item));
        let message =
            format!("{}: {}: {text}", invalid("package", package), invalid("bundle", name));
        lines.push(text);
        self.report(rule, item, path, message, remedy);
    }

    fn parse_version(
        &mut self,
        item: &Item,
        [version, release]: [&str; 2],
        [at_version, at_release]: [&[PathPart]; 2],
        lines: &mut Vec<String>,
    ) -> Option<Version> {
        let (package, name) = (self.package(item), self.name(item));
        let parsed = match parse_strict(version) {
            Ok(parsed) => parsed,
            Err(error) => {
                let (name, version) = (quote(name), quote(version));
                let message = format!("error parsing bundle {name} version {version}: {error}");
                let remedy = "write three numbers, such as 1.4.2";
                self.report_fatal(
                    CatalogRule::BadVersion,
                    Stage::Bundles,
                    item,
                    at_version,
                    message,
                    remedy,
                );
                return None;
            }
        };
        if release.is_empty() {
            return Some(parsed);
        }
        if let Err(why) = BundleRelease::parse(release) {
            let (name, release) = (quote(name), quote(release));
            let message = format!("error parsing bundle {name} release version {release}: {why}");
            let remedy = "use numbers or words joined by dots, at most 20 characters";
            self.report_fatal(
                CatalogRule::BadVersion,
                Stage::Bundles,
                item,
                at_release,
                message,
                remedy,
            );
            return None;
        }
        let normalized = format!("{package}-v{version}-{release}");
        if **name != *normalized {
            let text = format!(
                "name {} does not match normalized name {}",
                quote(name),
                quote(&normalized)
            );
            self.report_in_channels(
                CatalogRule::ReleaseName,
                item,
                &[PathPart::Field("name")],
                lines,
                text,
                "rename the bundle",
            );
        }
        if version.contains('+') {
            let text = "cannot use build metadata in version with a release version".to_owned();
            self.report_in_channels(
                CatalogRule::ReleaseName,
                item,
                at_version,
                lines,
                text,
                "drop what stands after the plus sign",
            );
        }
        Some(parsed)
    }
}
