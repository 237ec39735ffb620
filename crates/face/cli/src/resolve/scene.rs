//! The worlds that are resolved: a state as it is, and with what is supposed to be otherwise.

use super::entries::Entries;
use super::near::{did_you_mean, near};
use super::shelf::{Shelf, no_catalog};
use super::state::State;
use super::walk;
use super::wish::{CatalogName, What, Wish, unusable};
use mainstay_catalog::ChannelOrder;
use mainstay_cause::Cause;
use mainstay_resolver::{
    CatalogKey, Content, EntryView, OperatorGroup, Prohibited, Prohibition, Subscription, World,
};
use mainstay_version::{parse_tolerant, quote};
use std::collections::BTreeSet;

/// The world of a namespace.
pub(super) fn world<'a>(
    namespace: &str,
    global: &str,
    state: &State,
    shelf: &'a Shelf,
) -> World<'a> {
    let here = state.namespaces.get(namespace);
    let mut groups = here.map(|it| it.groups.clone()).unwrap_or_default();
    if !state.has_groups {
        // Nothing is known about groups: one without settings is the usual case.
        groups = vec![OperatorGroup { name: namespace.to_owned(), ..OperatorGroup::default() }];
    }
    let mut world = World {
        namespace: namespace.to_owned(),
        global_namespace: global.to_owned(),
        operator_groups: groups,
        catalogs: shelf.views(),
        subscriptions: here.map(|it| it.subscriptions.clone()).unwrap_or_default(),
        csvs: here.map(|it| it.csvs.clone()).unwrap_or_default(),
        kube_version: state.kube_version.clone(),
        ..World::default()
    };
    world.restore_deleted();
    world
}

/// Makes a world as it is supposed to be. Catalogs with new content are not its business.
///
/// # Errors
/// If it names something that does not exist.
pub(super) fn change(world: &mut World<'_>, what: &What) -> Result<(), Cause> {
    match what {
        What::Subscribe(wish) => subscribe(world, wish),
        What::Unsubscribe(_, name) => unsubscribe(world, name),
        What::Installed(bundle) => install(world, bundle),
        What::Prohibit(name) => prohibit(world, name),
        What::KubeVersion(version) => {
            world.kube_version = Some(version.clone());
            Ok(())
        }
        What::Outage(name) => {
            let mut found = false;
            for view in world.catalogs.iter_mut().filter(|view| name.is(&view.key)) {
                view.content = Content::Failed("an outage is supposed".to_owned());
                found = true;
            }
            if found {
                Ok(())
            } else {
                Err(Cause::new(no_catalog(name, world.catalogs.iter().map(|view| &view.key))))
            }
        }
        What::Catalog(_) => Ok(()),
    }
}

/// Adds a Subscription, or changes the one that the package has. The catalog is decided first: what
/// channels and versions there are is a question to that one.
fn subscribe(world: &mut World<'_>, wish: &Wish) -> Result<(), Cause> {
    let entries = Entries::of(world);
    let known = world.catalogs.iter().filter(|view| walk::is_ready(&view.content)).count();
    if known > 0 && entries.of_package(&wish.package).next().is_none() {
        return Err(no_package(world, &entries, &wish.package));
    }
    let named = match &wish.catalog {
        None => None,
        Some(name) => Some(
            catalog_named(world, name)
                .map_err(|why| unusable(&format!("{name}/{}", wish.package), why))?,
        ),
    };
    let at = world.subscriptions.iter().position(|it| it.package == wish.package);
    let has = at.map(|at| &world.subscriptions[at].catalog).filter(|key| !key.name.is_empty());
    let catalog = match (&named, has) {
        (Some(named), _) => named.clone(),
        (None, Some(has)) => has.clone(),
        (None, None) => preferred(world, &entries, wish)?,
    };
    let offer = Offer { entries: &entries, catalog: &catalog, wish };
    let is_ready =
        world.catalogs.iter().any(|view| view.key == catalog && walk::is_ready(&view.content));
    if is_ready {
        offer.check()?;
    }
    let starting = match &wish.version {
        Some(version) if is_ready => Some(offer.bundle(version)?),
        // Nobody can say which bundle has that version.
        Some(version) if parse_tolerant(version).is_ok() => {
            let whose = match &*catalog.name {
                "" => "no catalog has content".to_owned(),
                name => format!("catalog {}/{name} has no content", catalog.namespace),
            };
            let why = format!("{whose} to tell which bundle has version {}", quote(version));
            return Err(unusable(&wish.to_string(), why)
                .remedy("write the name of the bundle behind the `@`"));
        }
        version => version.clone(),
    };
    let at = if let Some(at) = at {
        at
    } else {
        world.subscriptions.push(Subscription {
            name: free_name(world, &wish.package),
            package: wish.package.clone(),
            catalog,
            ..Subscription::default()
        });
        world.subscriptions.len() - 1
    };
    let subscription = &mut world.subscriptions[at];
    if let Some(channel) = &wish.channel {
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
fn catalog_named(world: &World<'_>, name: &CatalogName) -> Result<CatalogKey, String> {
    let mut same = world.catalogs.iter().map(|view| &view.key).filter(|key| name.is(key));
    match (same.next(), same.next()) {
        (Some(key), None) => Ok(key.clone()),
        (Some(first), Some(second)) => Err(format!(
            "`{name}` may be {}/{} or {}/{}",
            first.namespace, first.name, second.namespace, second.name
        )),
        (None, _) => Err(no_catalog(name, world.catalogs.iter().map(|view| &view.key))),
    }
}

/// What a catalog has for a wish.
struct Offer<'o, 'a> {
    entries: &'o Entries<'a>,
    catalog: &'o CatalogKey,
    wish: &'o Wish,
}

impl<'a> Offer<'_, 'a> {
    fn all(&self) -> impl Iterator<Item = EntryView<'a>> {
        let all = self.entries.of_package(&self.wish.package);
        // A Subscription may leave its catalog open.
        all.filter(|(key, _)| self.catalog.name.is_empty() || *key == self.catalog)
            .map(|(_, entry)| entry)
    }

    /// Whether the catalog has the package, and the package the channel.
    fn check(&self) -> Result<(), Cause> {
        let package = quote(&self.wish.package);
        let mut channels: Vec<&str> = self.all().map(EntryView::channel).collect();
        channels.sort_by_cached_key(|channel| ChannelOrder::of(channel, ""));
        channels.dedup();
        if channels.is_empty() {
            let CatalogKey { name, namespace } = self.catalog;
            let others = self.entries.of_package(&self.wish.package).map(|(key, _)| key);
            let others: BTreeSet<String> =
                others.map(|key| format!("{}/{}", key.namespace, key.name)).collect();
            let others: Vec<String> = others.into_iter().collect();
            let message = format!("catalog {namespace}/{name} has no package {package}");
            return Err(Cause::new(message).remedy(format!("take it from {}", others.join(", "))));
        }
        match &self.wish.channel {
            Some(channel) if !channels.contains(&&**channel) => {
                let message = format!("package {package} has no channel {}", quote(channel));
                Err(Cause::new(message).remedy(format!("name one of {}", channels.join(", "))))
            }
            _ => Ok(()),
        }
    }

    /// The bundle of a name or of a version.
    fn bundle(&self, version: &str) -> Result<String, Cause> {
        let wanted = parse_tolerant(version).ok();
        let fits = |entry: &EntryView<'_>| {
            entry.name() == version || wanted.is_some() && entry.version() == wanted.as_ref()
        };
        let here = |entry: &EntryView<'_>| {
            self.wish.channel.as_ref().is_none_or(|channel| channel == entry.channel())
        };
        let mut fitting: Vec<EntryView<'_>> = self.all().filter(fits).collect();
        fitting.sort_by_key(|entry| (entry.name(), entry.channel()));
        if let Some(entry) = fitting.iter().find(|entry| here(entry)) {
            return Ok(entry.name().to_owned());
        }
        let package = quote(&self.wish.package);
        if let (Some(channel), Some(_)) = (&self.wish.channel, fitting.first()) {
            let message = format!(
                "channel {} of package {package} has no bundle {}",
                quote(channel),
                quote(version)
            );
            let mut channels: Vec<&str> = fitting.iter().map(|entry| entry.channel()).collect();
            channels.sort_by_cached_key(|channel| ChannelOrder::of(channel, ""));
            channels.dedup();
            return Err(Cause::new(message).remedy(format!("it is in {}", channels.join(", "))));
        }
        let message = format!("package {package} has no bundle {}", quote(version));
        let names = self.all().filter(here).flat_map(|entry| {
            [Some(entry.name().to_owned()), entry.version().map(ToString::to_string)]
        });
        let names: Vec<String> = names.flatten().collect();
        let alike = near(version, names.iter().map(String::as_str));
        Err(Cause::new(message).remedy(if alike.is_empty() {
            "see which there are with: mainstay catalog show DIR PACKAGE".to_owned()
        } else {
            format!("did you mean {}?", alike.join(", "))
        }))
    }
}

/// A name for a new Subscription.
fn free_name(world: &World<'_>, package: &str) -> String {
    let taken = |name: &str| world.subscriptions.iter().any(|it| it.name == name);
    let mut name = package.to_owned();
    while taken(&name) {
        name.push_str("-new");
    }
    name
}

/// The catalog that a new Subscription names if nobody says it: the preferred one of those that
/// have the package.
fn preferred(world: &World<'_>, entries: &Entries<'_>, wish: &Wish) -> Result<CatalogKey, Cause> {
    let mut offering: Vec<(i64, &CatalogKey)> = world
        .catalogs
        .iter()
        .filter(|view| entries.of_package(&wish.package).any(|(key, _)| *key == view.key))
        .map(|view| (-view.priority, &view.key))
        .collect();
    offering.sort();
    match offering.as_slice() {
        [] => Ok(CatalogKey::default()),
        [(first, _), (second, _), ..] if first == second => {
            let names: Vec<String> = offering
                .iter()
                .take_while(|(priority, _)| priority == first)
                .map(|(_, key)| format!("{}/{}", key.namespace, key.name))
                .collect();
            let message = format!("several catalogs have package {}", quote(&wish.package));
            let remedy = format!(
                "name one as {}, or give one a --priority",
                names
                    .iter()
                    .map(|name| format!("{name}/{}", wish.package))
                    .collect::<Vec<_>>()
                    .join(" or ")
            );
            Err(Cause::new(message).remedy(remedy))
        }
        [(_, key), ..] => Ok((*key).clone()),
    }
}

/// Says that there is no such package, and which ones are nearly called so.
fn no_package(world: &World<'_>, entries: &Entries<'_>, name: &str) -> Cause {
    let alike = near(name, entries.packages());
    let cause = Cause::new(format!("no catalog has a package {}", quote(name)));
    let cause = cause.because_all(without_content(world));
    if alike.is_empty() {
        cause.remedy("see which there are with: mainstay catalog list packages DIR")
    } else {
        cause.remedy(format!("did you mean {}?", alike.join(", ")))
    }
}

/// Says which catalogs have no content that could be looked at.
fn without_content(world: &World<'_>) -> Option<Cause> {
    let names: Vec<String> = world
        .catalogs
        .iter()
        .filter(|view| !walk::is_ready(&view.content))
        .map(|view| format!("{}/{}", view.key.namespace, view.key.name))
        .collect();
    (!names.is_empty()).then(|| Cause::new(format!("{} could not be looked at", names.join(", "))))
}

fn unsubscribe(world: &mut World<'_>, name: &str) -> Result<(), Cause> {
    let before = world.subscriptions.len();
    world.subscriptions.retain(|it| it.name != name);
    if world.subscriptions.len() == before {
        let names = world.subscriptions.iter().map(|it| &*it.name);
        let why = format!("namespace {} has no Subscription {}", world.namespace, quote(name));
        let remedy = did_you_mean(name, names);
        return Err(remedy.into_iter().fold(Cause::new(why), Cause::remedy));
    }
    Ok(())
}

/// Makes a bundle what is installed of its package. Where several catalogs have it, that of the
/// Subscription counts, then the preferred one.
fn install(world: &mut World<'_>, bundle: &str) -> Result<(), Cause> {
    let entries = Entries::of(world);
    let rank = |key: &CatalogKey, entry: EntryView<'_>| {
        let mut of_package = world.subscriptions.iter().filter(|it| it.package == entry.package());
        let asked = of_package.any(|it| it.catalog == *key);
        let view = world.catalogs.iter().find(|view| view.key == *key);
        (!asked, view.map(|view| -view.priority), key.clone(), entry.channel().to_owned())
    };
    let found = entries
        .named(bundle)
        .min_by_key(|(key, entry)| rank(key, *entry))
        .map(|(key, entry)| (key.clone(), entry));
    let (catalog, entry) = found.ok_or_else(|| {
        let alike = near(bundle, entries.bundles());
        Cause::new(format!("no catalog has a bundle {}", quote(bundle)))
            .because_all(without_content(world))
            .remedy(if alike.is_empty() {
                "see which there are with: mainstay catalog list bundles DIR".to_owned()
            } else {
                format!("did you mean {}?", alike.join(", "))
            })
    })?;
    let package = entry.package();
    let of_package = |name: &str| entries.named(name).any(|(_, it)| it.package() == package);
    let csv = walk::installed(&entries, &catalog, bundle, String::new());
    world.csvs.retain(|it| it.copied || !of_package(&it.name));
    world.csvs.push(csv);
    for subscription in world.subscriptions.iter_mut().filter(|it| it.package == package) {
        bundle.clone_into(&mut subscription.installed_csv);
        bundle.clone_into(&mut subscription.current_csv);
    }
    Ok(())
}

/// The package that a bundle belongs to.
pub(super) fn package_of(world: &World<'_>, bundle: &str) -> Option<String> {
    let entries = Entries::of(world);
    entries.named(bundle).next().map(|(_, entry)| entry.package().to_owned())
}

fn prohibit(world: &mut World<'_>, name: &str) -> Result<(), Cause> {
    let entries = Entries::of(world);
    let is_package = entries.of_package(name).next().is_some();
    let (what, kind) = if is_package {
        (Prohibited::Package(name.to_owned()), "package")
    } else if entries.named(name).next().is_some() {
        (Prohibited::Bundle(name.to_owned()), "bundle")
    } else {
        let alike = near(name, entries.packages().into_iter().chain(entries.bundles()));
        let cause = Cause::new(format!("no catalog has a package or a bundle {}", quote(name)));
        let cause = cause.because_all(without_content(world));
        return Err(if alike.is_empty() {
            cause.remedy("see which there are with: mainstay catalog list packages DIR")
        } else {
            cause.remedy(format!("did you mean {}?", alike.join(", ")))
        });
    };
    let message = format!("{kind} {name} is supposed to be prohibited");
    world.prohibitions.push(Prohibition { what, message });
    Ok(())
}
