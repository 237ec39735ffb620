//! Scenario of the demo: the package, channel and upgrade path, chosen from the catalog before the
//! cluster starts.
//!
//! The scenario needs a package that can be installed, with an upgrade path of two upgrades to a
//! channel's head. A package that the user names may have a shorter path. A named package that cannot
//! be installed is refused with the reason.

use mainstay_catalog::{Bundle, BundleApi, Catalog, Channel, LoadOptions, Package};
use mainstay_cause::{Cause, FileLocation};
use mainstay_object::Object;
use mainstay_resolver::{
    CatalogContent, CatalogKey, CatalogView, ExistingCsv, OperatorGroup, ResolutionInput, Snapshot,
    Subscription, resolve,
};
use serde_json::Value;
use std::path::Path;

/// The largest number of upgrades in the demo.
const MAX_UPGRADES: usize = 2;

/// The largest number of problems, or of packages that cannot be installed, in one error.
const MAX_REASONS: usize = 5;

/// The scenario of the demo.
#[derive(Debug)]
pub(super) struct Scenario {
    /// The package.
    pub(super) package: String,
    /// The channel of the Subscription.
    pub(super) channel: String,
    /// CSV names of the upgrade path, oldest first; the last is the channel's head.
    pub(super) path: Vec<String>,
    /// The install mode of the operator.
    pub(super) install_mode: InstallMode,
    /// The Subscription that will be refused.
    pub(super) refusal: Refusal,
    /// The size of the catalog.
    pub(super) counts: CatalogCounts,
}

/// An install mode that the demo supports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum InstallMode {
    /// The operator watches all namespaces.
    AllNamespaces,
    /// The operator watches its own namespace.
    OwnNamespace,
}

/// A Subscription that cannot be resolved.
#[derive(Debug)]
pub(super) struct Refusal {
    /// Its package.
    pub(super) package: String,
    /// Its channel.
    pub(super) channel: String,
    /// The reason of the refusal, for the heading.
    pub(super) about: String,
}

/// Numbers of packages, channels and bundles.
#[derive(Debug)]
pub(super) struct CatalogCounts {
    /// Packages.
    pub(super) packages: usize,
    /// Channels of all packages.
    pub(super) channels: usize,
    /// Bundles of all packages.
    pub(super) bundles: usize,
}

/// Reads the catalog and chooses the scenario.
pub(super) fn choose(folder: &Path, package: Option<&str>) -> Result<Scenario, Cause> {
    let catalog = Catalog::load(folder, &LoadOptions::default()).map_err(|error| {
        let problems = error.problems.iter().take(MAX_REASONS).map(|problem| {
            Cause::new(&*problem.message)
                .at(FileLocation::at(
                    folder.join(&*problem.file),
                    problem.line.unwrap_or_default(),
                    problem.column.unwrap_or_default(),
                ))
                .remedy(&*problem.remedy)
        });
        let more = error.problems.len().saturating_sub(MAX_REASONS);
        let more = (more > 0).then(|| Cause::new(format!("and {more} more problems")));
        Cause::new("the catalog cannot be read")
            .at(FileLocation::file(folder))
            .because_all(problems.chain(more))
    })?;
    if catalog.packages().len() == 0 {
        return Err(Cause::new("the catalog holds no package")
            .at(FileLocation::file(folder))
            .remedy("name the folder of a file-based catalog"));
    }
    let content = Snapshot::of(&catalog);
    let (package, channel, path, install_mode) = match package {
        Some(name) => {
            let package = catalog.package(name).ok_or_else(|| unknown_package(&catalog, name))?;
            let (channel, path, install_mode) = best_channel(&content, package).map_err(|why| {
                Cause::new(format!("package `{name}` cannot be installed by the demo")).because(why)
            })?;
            (package, channel, path, install_mode)
        }
        None => catalog
            .packages()
            .filter_map(|package| {
                let (channel, path, install_mode) = best_channel(&content, package).ok()?;
                Some((package, channel, path, install_mode))
            })
            // The first package with the longest upgrade path.
            .first_max_by_key(|(_, _, path, _)| path.len())
            .ok_or_else(|| {
                let refused = catalog.packages().filter_map(|package| {
                    let why = best_channel(&content, package).err()?;
                    Some(Cause::new(format!("package `{}`", package.name)).because(why))
                });
                Cause::new("no package of the catalog can be installed by the demo")
                    .at(FileLocation::file(folder))
                    .because_all(refused.take(MAX_REASONS))
            })?,
    };
    Ok(Scenario {
        package: package.name.to_string(),
        channel,
        path,
        install_mode,
        refusal: refusal(&catalog, package),
        counts: CatalogCounts {
            packages: catalog.packages().len(),
            channels: catalog.packages().map(|package| package.channels().len()).sum(),
            bundles: catalog.packages().map(|package| package.bundles().len()).sum(),
        },
    })
}

/// The first of the items with the greatest key (`Iterator::max_by_key` takes the last).
trait FirstMax: Iterator + Sized {
    fn first_max_by_key<K: Ord>(self, key: impl Fn(&Self::Item) -> K) -> Option<Self::Item> {
        self.fold(None, |best: Option<Self::Item>, item| match best {
            Some(best) if key(&best) >= key(&item) => Some(best),
            _ => Some(item),
        })
    }
}

impl<I: Iterator> FirstMax for I {}

fn unknown_package(catalog: &Catalog, name: &str) -> Cause {
    let names: Vec<&str> = catalog.packages().map(|package| &*package.name).collect();
    Cause::new(format!("the catalog has no package `{name}`"))
        .remedy(format!("name one of {}", names.join(", ")))
}

/// The channel of a package with the longest upgrade path, its CSVs and install mode; or why none can
/// be installed.
fn best_channel(
    content: &Snapshot,
    package: &Package,
) -> Result<(String, Vec<String>, InstallMode), Cause> {
    let default = package.channel(&package.default_channel);
    let others = package.channels().filter(|channel| channel.name != package.default_channel);
    let mut refusals = Vec::new();
    let mut best: Option<(String, Vec<String>, InstallMode)> = None;
    for channel in default.into_iter().chain(others) {
        match longest_upgrade_path(content, package, channel) {
            Ok((path, install_mode)) => {
                if best.as_ref().is_none_or(|(_, known, _)| known.len() < path.len()) {
                    best = Some((channel.name.to_string(), path, install_mode));
                }
            }
            Err(why) => refusals.push(why),
        }
    }
    best.ok_or_else(|| {
        refusals.into_iter().next().unwrap_or_else(|| Cause::new("it has no channel"))
    })
}

/// The longest upgrade path of at most [`MAX_UPGRADES`] upgrades to a channel's head, and its install
/// mode.
fn longest_upgrade_path(
    content: &Snapshot,
    package: &Package,
    channel: &Channel,
) -> Result<(Vec<String>, InstallMode), Cause> {
    let head = channel.head();
    let bundle = package
        .bundle(&head.name)
        .ok_or_else(|| Cause::new(format!("the head `{}` has no bundle", head.name)))?;
    let install_mode = install_mode_of(bundle)?;
    let mut best = vec![head.name.to_string()];
    for entry in channel.entries() {
        let Some(path) = upgrade_path(content, package, channel, &entry.name) else { continue };
        let all_installable = path.iter().all(|name| {
            package.bundle(name).is_some_and(|bundle| {
                install_mode_of(bundle).is_ok_and(|other| other == install_mode)
            })
        });
        if all_installable && path.len() > best.len() {
            best = path;
        }
    }
    Ok((best, install_mode))
}

/// The upgrade path from an entry to the head, as the resolver decides. `None` if it does not lead
/// there.
fn upgrade_path(
    content: &Snapshot,
    package: &Package,
    channel: &Channel,
    start: &str,
) -> Option<Vec<String>> {
    let mut path = vec![start.to_owned()];
    let head = &*channel.head().name;
    while path.last().map(String::as_str) != Some(head) {
        let next = next_csv(content, package, channel, path.last()?)?;
        if path.len() > MAX_UPGRADES || path.contains(&next) {
            return None;
        }
        path.push(next);
    }
    Some(path)
}

/// The CSV that the resolver upgrades an installed CSV to.
fn next_csv(
    content: &Snapshot,
    package: &Package,
    channel: &Channel,
    installed: &str,
) -> Option<String> {
    let catalog = CatalogKey::new("demo", "demo");
    let world = ResolutionInput {
        namespace: "demo".to_owned(),
        global_namespace: "demo".to_owned(),
        operator_groups: vec![OperatorGroup::default()],
        catalogs: vec![CatalogView {
            key: catalog.clone(),
            priority: 0,
            content: CatalogContent::Ready(content),
        }],
        subscriptions: vec![Subscription {
            name: "demo".to_owned(),
            package: package.name.to_string(),
            channel: channel.name.to_string(),
            catalog,
            installed_csv: installed.to_owned(),
            current_csv: installed.to_owned(),
            ..Subscription::default()
        }],
        csvs: vec![ExistingCsv {
            name: installed.to_owned(),
            version: Some(package.bundle(installed)?.version.clone()),
            ..ExistingCsv::default()
        }],
        ..ResolutionInput::default()
    };
    resolve(&world)
        .updated_subscriptions
        .into_iter()
        .next()
        .map(|subscription| subscription.current_csv)
}

/// The install mode of a bundle's operator, or why the demo does not support the bundle.
fn install_mode_of(bundle: &Bundle) -> Result<InstallMode, Cause> {
    let unsupported = |why: &str| Err(Cause::new(format!("`{}` {why}", bundle.name)));
    if bundle.required_apis().next().is_some()
        || bundle.required_packages().next().is_some()
        || bundle.properties_of("olm.constraint").next().is_some()
    {
        return unsupported("needs other packages, and the demo installs only one operator");
    }
    let csv = bundle.csv().map_err(|error| {
        Cause::new(format!("the manifests of `{}` cannot be read", bundle.name))
            .because(Cause::new(error.to_string()))
    })?;
    let Some(csv) = csv else {
        return unsupported("is published as an image, and the demo pulls no images");
    };
    if !csv.array(&["spec", "apiservicedefinitions", "required"]).is_empty() {
        return unsupported(
            "needs APIServices of other operators, and the demo installs only one operator",
        );
    }
    if supports_install_mode(&csv, "AllNamespaces") {
        Ok(InstallMode::AllNamespaces)
    } else if supports_install_mode(&csv, "OwnNamespace") {
        Ok(InstallMode::OwnNamespace)
    } else {
        unsupported("supports neither install mode AllNamespaces nor OwnNamespace")
    }
}

fn supports_install_mode(csv: &Object, mode: &str) -> bool {
    csv.array(&["spec", "installModes"]).iter().any(|entry| {
        entry.get("type").and_then(Value::as_str) == Some(mode)
            && entry.get("supported").and_then(Value::as_bool) == Some(true)
    })
}

/// A package with a requirement that the catalog does not meet, or else a channel that does not exist.
fn refusal(catalog: &Catalog, package: &Package) -> Refusal {
    let has = |api: &BundleApi| {
        let mut bundles = catalog.packages().flat_map(Package::bundles);
        bundles.any(|bundle| bundle.provided_apis().any(|provided| provided == *api))
    };
    let unresolvable = catalog.packages().find(|package| {
        let head = package.channel(&package.default_channel).map(|channel| &*channel.head().name);
        head.and_then(|head| package.bundle(head)).is_some_and(|bundle| {
            bundle.required_apis().any(|api| !has(&api))
                || bundle
                    .required_packages()
                    .any(|need| catalog.package(&need.package_name).is_none())
        })
    });
    match unresolvable {
        Some(unresolvable) => Refusal {
            package: unresolvable.name.to_string(),
            channel: unresolvable.default_channel.to_string(),
            about: format!(
                "no operator in the catalog meets the requirements of {}",
                unresolvable.name
            ),
        },
        None => Refusal {
            package: package.name.to_string(),
            channel: "no-such-channel".to_owned(),
            about: "a channel that does not exist".to_owned(),
        },
    }
}
