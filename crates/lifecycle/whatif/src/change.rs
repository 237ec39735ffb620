//! Supposed changes: a resolution input with the changes of a what-if.

use crate::catalogs::{FindCatalogError, key_text};
use crate::entries::Entries;
use crate::input::is_ready;
use crate::request::{CatalogName, PackageRequest, WhatIfChange};
use crate::suggestions::{Suggestion, nearest};
use crate::walk;
use mainstay_catalog::ChannelOrder;
use mainstay_gocompat::quote;
use mainstay_resolver::{
    CatalogContent, CatalogKey, EntryView, Prohibited, Prohibition, ResolutionInput, Subscription,
};
use mainstay_version::parse_tolerant;
use std::collections::{BTreeMap, BTreeSet};

/// The nearest names to a name that does not exist, and the catalogs that may have it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotFound {
    /// The name.
    pub name: String,
    /// The nearest names in the catalogs that have content.
    pub nearest: Vec<String>,
    /// The catalogs without content.
    pub unread: Vec<CatalogKey>,
}

/// Why a change cannot be made.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ChangeError {
    /// No catalog has the package.
    #[error("no catalog has a package {}", quote(&.0.name))]
    FindPackage(NotFound),
    /// No catalog has the bundle.
    #[error("no catalog has a bundle {}", quote(&.0.name))]
    FindBundle(NotFound),
    /// No catalog has a package or bundle of the name.
    #[error("no catalog has a package or a bundle {}", quote(&.0.name))]
    FindProhibited(NotFound),
    /// No catalog has the name of an outage.
    #[error(transparent)]
    FindOutage(FindCatalogError),
    /// The catalog that the request names does not exist.
    #[error("{reason}")]
    FindCatalog {
        /// Catalog and package, as requested.
        request: String,
        /// Why the name does not mean one catalog.
        reason: FindCatalogError,
    },
    /// The catalog that the request names exists in two namespaces.
    #[error("`{name}` may be {}", .catalogs.iter().map(key_text).collect::<Vec<_>>().join(" or "))]
    ChooseNamedCatalog {
        /// Catalog and package, as requested.
        request: String,
        /// The name of the catalog.
        name: CatalogName,
        /// Two catalogs of that name.
        catalogs: Vec<CatalogKey>,
    },
    /// Several catalogs of the same priority have the package.
    #[error("several catalogs have package {}", quote(.package))]
    ChooseCatalog {
        /// The package.
        package: String,
        /// The catalogs.
        catalogs: Vec<CatalogKey>,
    },
    /// The catalog does not have the package.
    #[error("catalog {} has no package {}", key_text(.catalog), quote(.package))]
    FindPackageInCatalog {
        /// The catalog.
        catalog: CatalogKey,
        /// The package.
        package: String,
        /// The catalogs that have it, as `NAMESPACE/NAME`.
        others: Vec<String>,
    },
    /// The package does not have the channel.
    #[error("package {} has no channel {}", quote(.package), quote(.channel))]
    FindChannel {
        /// The package.
        package: String,
        /// The channel.
        channel: String,
        /// The channels of the package.
        channels: Vec<String>,
    },
    /// The channel does not have the version.
    #[error(
        "channel {} of package {} has no bundle {}",
        quote(.channel), quote(.package), quote(.version)
    )]
    FindVersionInChannel {
        /// The package.
        package: String,
        /// The channel.
        channel: String,
        /// The version, or the name of a bundle.
        version: String,
        /// The channels that have it.
        channels: Vec<String>,
    },
    /// The package does not have the version.
    #[error("package {} has no bundle {}", quote(.package), quote(.version))]
    FindVersion {
        /// The package.
        package: String,
        /// The version, or the name of a bundle.
        version: String,
        /// The nearest versions and names of bundles.
        nearest: Vec<String>,
    },
    /// Without the content of the catalog, a version does not say which bundle is meant.
    #[error("{} to tell which bundle has version {}", contentless(.catalog), version(.request))]
    ReadVersion {
        /// The request.
        request: Box<PackageRequest>,
        /// The catalog; its name is empty if no catalog has content.
        catalog: CatalogKey,
    },
    /// The namespace does not have the Subscription.
    #[error("namespace {namespace} has no Subscription {}", quote(.name))]
    FindSubscription {
        /// The namespace.
        namespace: String,
        /// The name of the Subscription.
        name: String,
        /// Which Subscriptions exist.
        suggestion: Option<Suggestion>,
    },
    /// Two bundles of one package are to be the installed one.
    #[error("two bundles of one package are to be installed: {other} and {bundle}")]
    InstallTwice {
        /// The second bundle.
        bundle: String,
        /// The first bundle.
        other: String,
    },
}

fn contentless(catalog: &CatalogKey) -> String {
    match &*catalog.name {
        "" => "no catalog has content".to_owned(),
        _ => format!("catalog {} has no content", key_text(catalog)),
    }
}

fn version(request: &PackageRequest) -> String {
    quote(request.version.as_deref().unwrap_or_default())
}

fn not_found(input: &ResolutionInput<'_>, name: &str, nearest: Vec<&str>) -> NotFound {
    let unread = input.catalogs.iter().filter(|view| !is_ready(&view.content));
    NotFound {
        name: name.to_owned(),
        nearest: nearest.into_iter().map(str::to_owned).collect(),
        unread: unread.map(|view| view.key.clone()).collect(),
    }
}

/// Makes a change in a resolution input. The content of a catalog is replaced where catalogs are assembled, see
/// [`CatalogSnapshots::put`](crate::CatalogSnapshots::put), and is not changed here.
///
/// # Errors
/// If the change names an object, a package or a version that does not exist.
pub fn apply(input: &mut ResolutionInput<'_>, change: &WhatIfChange) -> Result<(), ChangeError> {
    match change {
        WhatIfChange::Subscribe(request) => subscribe(input, request),
        WhatIfChange::Unsubscribe { name, .. } => unsubscribe(input, name),
        WhatIfChange::Install(bundle) => install(input, bundle),
        WhatIfChange::Prohibit(name) => prohibit(input, name),
        WhatIfChange::KubeVersion(version) => {
            input.kube_version = Some(version.clone());
            Ok(())
        }
        WhatIfChange::Outage(name) => {
            let mut found = false;
            for view in input.catalogs.iter_mut().filter(|view| name.matches(&view.key)) {
                view.content = CatalogContent::Failed(
                    "a supposed change makes the catalog unavailable".to_owned(),
                );
                found = true;
            }
            if found {
                Ok(())
            } else {
                let known = input.catalogs.iter().map(|view| &view.key);
                Err(ChangeError::FindOutage(FindCatalogError::unknown(name, known)))
            }
        }
        WhatIfChange::ReplaceContent(_) => Ok(()),
    }
}

/// Makes bundles the installed ones, of each package one.
///
/// # Errors
/// If no catalog has a bundle, or two bundles are of one package.
pub fn install_all(input: &mut ResolutionInput<'_>, bundles: &[String]) -> Result<(), ChangeError> {
    let mut known: BTreeMap<String, &str> = BTreeMap::new();
    for bundle in bundles {
        install(input, bundle)?;
        let package = package_of(input, bundle).unwrap_or_default();
        if let Some(other) = known.insert(package, bundle).filter(|other| other != bundle) {
            let (bundle, other) = (bundle.clone(), other.to_owned());
            return Err(ChangeError::InstallTwice { bundle, other });
        }
    }
    Ok(())
}

/// Adds a Subscription, or changes the one that the package has. The catalog is decided first: it
/// decides which channels and versions exist.
fn subscribe(input: &mut ResolutionInput<'_>, request: &PackageRequest) -> Result<(), ChangeError> {
    let entries = Entries::of(input);
    let known = input.catalogs.iter().filter(|view| is_ready(&view.content)).count();
    if known > 0 && entries.of_package(&request.package).next().is_none() {
        let nearest = nearest(&request.package, entries.packages());
        return Err(ChangeError::FindPackage(not_found(input, &request.package, nearest)));
    }
    let named = match &request.catalog {
        None => None,
        Some(name) => Some(catalog_named(input, name, request)?),
    };
    let at =
        input.subscriptions.iter().position(|subscription| subscription.package == request.package);
    let has = at.map(|at| &input.subscriptions[at].catalog).filter(|key| !key.name.is_empty());
    let catalog = match (&named, has) {
        (Some(named), _) => named.clone(),
        (None, Some(has)) => has.clone(),
        (None, None) => preferred(input, &entries, request)?,
    };
    let candidates = Candidates { entries: &entries, catalog: &catalog, request };
    let is_ready = input.catalogs.iter().any(|view| view.key == catalog && is_ready(&view.content));
    if is_ready {
        candidates.check()?;
    }
    let starting = match &request.version {
        Some(version) if is_ready => Some(candidates.bundle(version)?),
        // Only the content says which bundle has a version; the name of a bundle can be taken as it is.
        Some(version) if parse_tolerant(version).is_ok() => {
            let request = Box::new(request.clone());
            return Err(ChangeError::ReadVersion { request, catalog });
        }
        version => version.clone(),
    };
    let at = if let Some(at) = at {
        at
    } else {
        input.subscriptions.push(Subscription {
            name: free_name(input, &request.package),
            package: request.package.clone(),
            catalog,
            ..Subscription::default()
        });
        input.subscriptions.len() - 1
    };
    let subscription = &mut input.subscriptions[at];
    if let Some(channel) = &request.channel {
        subscription.channel.clone_from(channel);
    }
    if let Some(named) = named {
        subscription.catalog = named;
    }
    if let Some(starting) = starting {
        subscription.starting_csv = starting;
        subscription.restores = false;
    }
    Ok(())
}

/// The one catalog of a name.
fn catalog_named(
    input: &ResolutionInput<'_>,
    name: &CatalogName,
    request: &PackageRequest,
) -> Result<CatalogKey, ChangeError> {
    let requested = || format!("{name}/{}", request.package);
    let mut same = input.catalogs.iter().map(|view| &view.key).filter(|key| name.matches(key));
    match (same.next(), same.next()) {
        (Some(key), None) => Ok(key.clone()),
        (Some(first), Some(second)) => Err(ChangeError::ChooseNamedCatalog {
            request: requested(),
            name: name.clone(),
            catalogs: vec![first.clone(), second.clone()],
        }),
        (None, _) => Err(ChangeError::FindCatalog {
            request: requested(),
            reason: FindCatalogError::unknown(name, input.catalogs.iter().map(|view| &view.key)),
        }),
    }
}

/// The entries of a catalog that a request may mean.
struct Candidates<'o, 'a> {
    entries: &'o Entries<'a>,
    catalog: &'o CatalogKey,
    request: &'o PackageRequest,
}

impl<'a> Candidates<'_, 'a> {
    fn all(&self) -> impl Iterator<Item = EntryView<'a>> {
        let all = self.entries.of_package(&self.request.package);
        // A Subscription may leave its catalog open.
        all.filter(|(key, _)| self.catalog.name.is_empty() || *key == self.catalog)
            .map(|(_, entry)| entry)
    }

    /// Checks that the catalog has the package, and the package the channel.
    fn check(&self) -> Result<(), ChangeError> {
        let package = self.request.package.clone();
        let channels = channels_of(self.all());
        if channels.is_empty() {
            let others = self.entries.of_package(&package).map(|(key, _)| key);
            let others: BTreeSet<String> = others.map(key_text).collect();
            return Err(ChangeError::FindPackageInCatalog {
                catalog: self.catalog.clone(),
                package,
                others: others.into_iter().collect(),
            });
        }
        match &self.request.channel {
            Some(channel) if !channels.contains(channel) => {
                Err(ChangeError::FindChannel { package, channel: channel.clone(), channels })
            }
            _ => Ok(()),
        }
    }

    /// The name of the bundle of a name or of a version.
    fn bundle(&self, version: &str) -> Result<String, ChangeError> {
        let wanted = parse_tolerant(version).ok();
        let fits = |entry: &EntryView<'_>| {
            entry.name() == version || wanted.is_some() && entry.version() == wanted.as_ref()
        };
        let is_in_channel = |entry: &EntryView<'_>| {
            self.request.channel.as_ref().is_none_or(|channel| channel == entry.channel())
        };
        let mut fitting: Vec<EntryView<'_>> = self.all().filter(fits).collect();
        fitting.sort_by_key(|entry| (entry.name(), entry.channel()));
        if let Some(entry) = fitting.iter().find(|entry| is_in_channel(entry)) {
            return Ok(entry.name().to_owned());
        }
        let (package, version) = (self.request.package.clone(), version.to_owned());
        if let (Some(channel), Some(_)) = (&self.request.channel, fitting.first()) {
            let channels = channels_of(fitting.into_iter());
            let channel = channel.clone();
            return Err(ChangeError::FindVersionInChannel { package, channel, version, channels });
        }
        let names = self.all().filter(is_in_channel).flat_map(|entry| {
            [Some(entry.name().to_owned()), entry.version().map(ToString::to_string)]
        });
        let names: Vec<String> = names.flatten().collect();
        let alike = nearest(&version, names.iter().map(String::as_str));
        let nearest = alike.into_iter().map(str::to_owned).collect();
        Err(ChangeError::FindVersion { package, version, nearest })
    }
}

/// The channels of entries, newest first.
fn channels_of<'a>(entries: impl Iterator<Item = EntryView<'a>>) -> Vec<String> {
    let mut channels: Vec<&str> = entries.map(EntryView::channel).collect();
    channels.sort_by_cached_key(|channel| ChannelOrder::of(channel, ""));
    channels.dedup();
    channels.into_iter().map(str::to_owned).collect()
}

/// A name for a new Subscription.
fn free_name(input: &ResolutionInput<'_>, package: &str) -> String {
    let taken = |name: &str| input.subscriptions.iter().any(|existing| existing.name == name);
    let mut name = package.to_owned();
    while taken(&name) {
        name.push_str("-new");
    }
    name
}

/// The catalog of a new Subscription whose request names none: the preferred one of those that have
/// the package.
fn preferred(
    input: &ResolutionInput<'_>,
    entries: &Entries<'_>,
    request: &PackageRequest,
) -> Result<CatalogKey, ChangeError> {
    let package = &request.package;
    let mut having: Vec<(i64, &CatalogKey)> = input
        .catalogs
        .iter()
        .filter(|view| entries.of_package(package).any(|(key, _)| *key == view.key))
        .map(|view| (-view.priority, &view.key))
        .collect();
    having.sort();
    match having.as_slice() {
        [] => Ok(CatalogKey::default()),
        [(first, _), (second, _), ..] if first == second => {
            let same = having.iter().take_while(|(priority, _)| priority == first);
            let catalogs = same.map(|(_, key)| (*key).clone()).collect();
            Err(ChangeError::ChooseCatalog { package: package.clone(), catalogs })
        }
        [(_, key), ..] => Ok((*key).clone()),
    }
}

fn unsubscribe(input: &mut ResolutionInput<'_>, name: &str) -> Result<(), ChangeError> {
    let before = input.subscriptions.len();
    input.subscriptions.retain(|subscription| subscription.name != name);
    if input.subscriptions.len() == before {
        let names = input.subscriptions.iter().map(|subscription| &*subscription.name);
        return Err(ChangeError::FindSubscription {
            namespace: input.namespace.clone(),
            name: name.to_owned(),
            suggestion: Suggestion::of(name, names),
        });
    }
    Ok(())
}

/// Makes a bundle the installed one of its package. Where several catalogs have it, that of the
/// Subscription counts, then the preferred one.
fn install(input: &mut ResolutionInput<'_>, bundle: &str) -> Result<(), ChangeError> {
    let entries = Entries::of(input);
    let rank = |key: &CatalogKey, entry: EntryView<'_>| {
        let package = entry.package();
        let is_subscribed = input
            .subscriptions
            .iter()
            .any(|subscription| subscription.package == package && subscription.catalog == *key);
        let view = input.catalogs.iter().find(|view| view.key == *key);
        (!is_subscribed, view.map(|view| -view.priority), key.clone(), entry.channel().to_owned())
    };
    let found = entries
        .of_bundle(bundle)
        .min_by_key(|(key, entry)| rank(key, *entry))
        .map(|(key, entry)| (key.clone(), entry));
    let (catalog, entry) = found.ok_or_else(|| {
        let nearest = nearest(bundle, entries.bundles());
        ChangeError::FindBundle(not_found(input, bundle, nearest))
    })?;
    let package = entry.package();
    let is_of_package =
        |name: &str| entries.of_bundle(name).any(|(_, entry)| entry.package() == package);
    let csv = walk::installed(&entries, &catalog, bundle, String::new());
    input.csvs.retain(|csv| csv.copied || !is_of_package(&csv.name));
    input.csvs.push(csv);
    for subscription in &mut input.subscriptions {
        if subscription.package == package {
            bundle.clone_into(&mut subscription.installed_csv);
            bundle.clone_into(&mut subscription.current_csv);
        }
    }
    Ok(())
}

/// The package that a bundle belongs to.
fn package_of(input: &ResolutionInput<'_>, bundle: &str) -> Option<String> {
    let entries = Entries::of(input);
    entries.of_bundle(bundle).next().map(|(_, entry)| entry.package().to_owned())
}

fn prohibit(input: &mut ResolutionInput<'_>, name: &str) -> Result<(), ChangeError> {
    let entries = Entries::of(input);
    let is_package = entries.of_package(name).next().is_some();
    let (what, kind) = if is_package {
        (Prohibited::Package(name.to_owned()), "package")
    } else if entries.of_bundle(name).next().is_some() {
        (Prohibited::Bundle(name.to_owned()), "bundle")
    } else {
        let nearest = nearest(name, entries.packages().into_iter().chain(entries.bundles()));
        return Err(ChangeError::FindProhibited(not_found(input, name, nearest)));
    };
    let message = format!("a supposed change prohibits {kind} {name}");
    input.prohibitions.push(Prohibition { what, message });
    Ok(())
}
