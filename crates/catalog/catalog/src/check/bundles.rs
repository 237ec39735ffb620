//! The checks on bundles: names, images, the one `olm.package` property, versions.

use super::{Checker, Draft, Item, NO_IMAGE, NO_NAME, invalid};
use crate::{
    decode::{BundleFacts, Facts},
    model::{Bundle, Property},
    problem::Part,
    rule::Rule,
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
    pub(super) fn bundles(
        &mut self,
        items: &'i [Item],
        drafts: &mut BTreeMap<Arc<str>, Draft<'i>>,
    ) {
        for item in items {
            let Facts::Bundle(facts) = &item.facts else { continue };
            let (package, name) = (self.package(item), self.name(item));
            if package.is_empty() {
                let message = format!("package name must be set for bundle {}", quote(name));
                self.stop(
                    Rule::MissingName,
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
                self.stop_miss(
                    Rule::UnknownPackage,
                    Stage::Bundles,
                    item,
                    &[Part::Field("package")],
                    message,
                    remedy,
                );
                continue;
            };
            match draft.bundles.entry(name.clone()) {
                btree_map::Entry::Occupied(first) => {
                    let remedy = self.also_at(first.get().0);
                    let message =
                        format!("package {} has duplicate bundle {}", quote(package), quote(name));
                    self.stop(
                        Rule::DuplicateBundle,
                        Stage::Bundles,
                        item,
                        &[Part::Field("name")],
                        message,
                        remedy,
                    );
                }
                btree_map::Entry::Vacant(free) => {
                    let mut lines = Vec::new();
                    free.insert((item, self.bundle(item, facts, &mut lines)));
                    if !lines.is_empty() {
                        draft.lines.insert(name.clone(), lines);
                    }
                }
            }
        }
    }

    /// Checks one bundle by itself; `None` if it has no usable version. `lines` is what upstream
    /// says in each channel.
    fn bundle(
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
            self.stop(Rule::BadProperty, Stage::Bundles, item, &fault.path, message, remedy);
        }
        if name.is_empty() {
            self.line(Rule::MissingName, item, &[], lines, NO_NAME.to_owned(), "give it a name");
        }
        if facts.image.is_empty() && facts.objects == 0 {
            let remedy = "name the image that holds the bundle";
            self.line(Rule::NoImage, item, &[], lines, NO_IMAGE.to_owned(), remedy);
        }
        if facts.packages.len() != 1 {
            let count = facts.packages.len();
            // A property that could not be read is a reason of its own.
            if facts.faults.is_empty() || count > 1 {
                let message = format!(
                    "{context} must have exactly 1 \"olm.package\" property, found {count}"
                );
                let remedy = "state packageName and version in one property of that type";
                self.stop(
                    Rule::PackageProperty,
                    Stage::Bundles,
                    item,
                    &[Part::Field("properties")],
                    message,
                    remedy,
                );
            }
            self.images(item, facts, &context);
            return None;
        }
        let (index, [package_name, version, release]) = &facts.packages[0];
        let at = |field| {
            [
                Part::Field("properties"),
                Part::Item(*index),
                Part::Field("value"),
                Part::Field(field),
            ]
        };
        if **package_name != **package {
            let message = format!(
                "package {} does not match \"olm.package\" property {}",
                quote(package),
                quote(package_name)
            );
            let remedy = "make the two names equal";
            self.stop(
                Rule::PackageProperty,
                Stage::Bundles,
                item,
                &at("packageName"),
                message,
                remedy,
            );
        }
        self.images(item, facts, &context);
        let parsed =
            self.version(item, [version, release], [&at("version"), &at("release")], lines)?;
        let properties = facts
            .properties
            .iter()
            .map(|(_, kind, json)| Property { kind: self.intern(kind), json: json.clone() })
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

    fn images(&mut self, item: &Item, facts: &BundleFacts, context: &str) {
        let remedy = "write a reference such as registry.example.com/operators/a@sha256:…";
        if !facts.image.is_empty()
            && let Some(why) = reference::fault(&facts.image)
        {
            let image = quote(&facts.image);
            let message = format!("{context} image: invalid image pull spec {image}: {why}");
            self.stop(
                Rule::ImageReference,
                Stage::Bundles,
                item,
                &[Part::Field("image")],
                message,
                remedy,
            );
        }
        for (index, image) in facts.related_images.iter().enumerate() {
            if !image.is_empty()
                && let Some(why) = reference::fault(image)
            {
                let message = format!(
                    "{context} relatedImages[{index}].image: invalid image pull spec {}: {why}",
                    quote(image)
                );
                let path = [Part::Field("relatedImages"), Part::Item(index), Part::Field("image")];
                self.stop(Rule::ImageReference, Stage::Bundles, item, &path, message, remedy);
            }
        }
    }

    /// Notes what is wrong with a bundle as the member of a channel.
    fn line(
        &mut self,
        rule: Rule,
        item: &Item,
        path: &[Part],
        lines: &mut Vec<String>,
        text: String,
        remedy: &'static str,
    ) {
        let (package, name) = (self.package(item), self.name(item));
        let message =
            format!("{}: {}: {text}", invalid("package", package), invalid("bundle", name));
        lines.push(text);
        self.find(rule, item, path, message, remedy);
    }

    fn version(
        &mut self,
        item: &Item,
        [version, release]: [&str; 2],
        [at_version, at_release]: [&[Part]; 2],
        lines: &mut Vec<String>,
    ) -> Option<Version> {
        let (package, name) = (self.package(item), self.name(item));
        let parsed = match parse_strict(version) {
            Ok(parsed) => parsed,
            Err(error) => {
                let (name, version) = (quote(name), quote(version));
                let message = format!("error parsing bundle {name} version {version}: {error}");
                let remedy = "write three numbers, such as 1.4.2";
                self.stop(Rule::BadVersion, Stage::Bundles, item, at_version, message, remedy);
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
            self.stop(Rule::BadVersion, Stage::Bundles, item, at_release, message, remedy);
            return None;
        }
        let normalized = format!("{package}-v{version}-{release}");
        if **name != *normalized {
            let text = format!(
                "name {} does not match normalized name {}",
                quote(name),
                quote(&normalized)
            );
            self.line(
                Rule::ReleaseName,
                item,
                &[Part::Field("name")],
                lines,
                text,
                "rename the bundle",
            );
        }
        if version.contains('+') {
            let text = "cannot use build metadata in version with a release version".to_owned();
            self.line(
                Rule::ReleaseName,
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
