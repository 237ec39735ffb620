//! The worlds that are resolved: a state as it is, and with what is supposed to be otherwise.

use super::entries::Entries;
use super::shelf::Shelf;
use super::state::State;
use super::walk;
use super::wish::{What, Wish, unusable};
use mainstay_cause::Cause;
use mainstay_resolver::{
    CatalogKey, Content, EntryView, OperatorGroup, Prohibited, Prohibition, Subscription, World,
};
use mainstay_version::{parse_tolerant, quote};

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
    World {
        namespace: namespace.to_owned(),
        global_namespace: global.to_owned(),
        operator_groups: groups,
        catalogs: shelf.items.iter().map(|(key, item)| item.view(key)).collect(),
        subscriptions: here.map(|it| it.subscriptions.clone()).unwrap_or_default(),
        csvs: here.map(|it| it.csvs.clone()).unwrap_or_default(),
        kube_version: state.kube_version.clone(),
        ..World::default()
    }
}

/// Makes a world as it is supposed to be. Catalogs with new content are not its business.
///
/// # Errors
/// If it names something that does not exist.
pub(super) fn change(world: &mut World<'_>, what: &What) -> Result<(), Cause> {
    match what {
        What::Subscribe(wish) => subscribe(world, wish),
        What::Unsubscribe(name) => unsubscribe(world, name),
        What::Installed(bundle) => install(world, bundle),
        What::Prohibit(name) => {
            prohibit(world, name);
            Ok(())
        }
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
            if found { Ok(()) } else { Err(Cause::new(format!("there is no catalog `{name}`"))) }
        }
        What::Catalog(_) => Ok(()),
    }
}

/// Adds a Subscription, or changes the one that the package has.
fn subscribe(world: &mut World<'_>, wish: &Wish) -> Result<(), Cause> {
    let entries = Entries::of(world);
    let known = world.catalogs.iter().filter(|view| walk::is_ready(&view.content)).count();
    let mut offers = entries.of_package(&wish.package).peekable();
    if offers.peek().is_none() && known > 0 {
        return Err(no_package(&entries, &wish.package));
    }
    let catalog = match &wish.catalog {
        None => None,
        Some(name) => {
            let found = world.catalogs.iter().find(|view| name.is(&view.key));
            let found = found.ok_or_else(|| {
                unusable(
                    &format!("{name}/{}", wish.package),
                    format!("there is no catalog `{name}`"),
                )
            })?;
            Some(found.key.clone())
        }
    };
    if let Some(channel) = &wish.channel
        && known > 0
        && !entries.of_package(&wish.package).any(|(_, entry)| entry.channel() == channel)
    {
        let mut channels: Vec<&str> =
            entries.of_package(&wish.package).map(|(_, entry)| entry.channel()).collect();
        channels.sort_unstable();
        channels.dedup();
        let message = format!("package {} has no channel {}", quote(&wish.package), quote(channel));
        return Err(Cause::new(message).remedy(format!("name one of {}", channels.join(", "))));
    }
    let starting = match &wish.version {
        Some(version) => Some(bundle_of(&entries, wish, version)?),
        None => None,
    };
    let at = world.subscriptions.iter().position(|it| it.package == wish.package);
    let at = if let Some(at) = at {
        at
    } else {
        let catalog = match &catalog {
            Some(named) => named.clone(),
            None => preferred(world, &entries, wish)?,
        };
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
    if let Some(catalog) = catalog {
        subscription.catalog = catalog;
    }
    if let Some(starting) = starting {
        subscription.starting_csv = starting;
    }
    Ok(())
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

fn bundle_of(entries: &Entries<'_>, wish: &Wish, version: &str) -> Result<String, Cause> {
    let wanted = parse_tolerant(version).ok();
    let fits = |entry: &EntryView<'_>| {
        (wish.channel.as_ref().is_none_or(|channel| channel == entry.channel()))
            && (entry.name() == version || wanted.is_some() && entry.version() == wanted.as_ref())
    };
    let mut names: Vec<&str> = entries
        .of_package(&wish.package)
        .map(|(_, entry)| entry)
        .filter(fits)
        .map(EntryView::name)
        .collect();
    names.sort_unstable();
    names.first().map(|name| (*name).to_owned()).ok_or_else(|| {
        let message = format!("package {} has no bundle {}", quote(&wish.package), quote(version));
        Cause::new(message).remedy("see which there are with: mainstay catalog show DIR PACKAGE")
    })
}

/// Says that there is no such package, and which ones are nearly called so.
fn no_package(entries: &Entries<'_>, name: &str) -> Cause {
    let wanted = name.to_lowercase();
    let alike: Vec<&str> = entries
        .packages()
        .into_iter()
        .filter(|known| known.contains(&wanted) || wanted.contains(known))
        .take(5)
        .collect();
    let cause = Cause::new(format!("no catalog has a package {}", quote(name)));
    if alike.is_empty() {
        cause.remedy("see which there are with: mainstay catalog list packages DIR")
    } else {
        cause.remedy(format!("did you mean {}?", alike.join(", ")))
    }
}

fn unsubscribe(world: &mut World<'_>, name: &str) -> Result<(), Cause> {
    let before = world.subscriptions.len();
    world.subscriptions.retain(|it| it.name != name);
    if world.subscriptions.len() == before {
        let names: Vec<&str> = world.subscriptions.iter().map(|it| &*it.name).collect();
        let why = format!("namespace {} has no Subscription {}", world.namespace, quote(name));
        let remedy = format!("name one of {}", names.join(", "));
        return Err(Cause::new(why).remedy(remedy));
    }
    Ok(())
}

/// Makes a bundle what is installed of its package.
fn install(world: &mut World<'_>, bundle: &str) -> Result<(), Cause> {
    let entries = Entries::of(world);
    let found = entries.named(bundle).next().map(|(key, entry)| (key.clone(), entry));
    let (catalog, entry) = found.ok_or_else(|| {
        Cause::new(format!("no catalog has a bundle {}", quote(bundle)))
            .remedy("see which there are with: mainstay catalog list bundles DIR")
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

fn prohibit(world: &mut World<'_>, name: &str) {
    let is_package = Entries::of(world).of_package(name).next().is_some();
    let (what, kind) = if is_package {
        (Prohibited::Package(name.to_owned()), "package")
    } else {
        (Prohibited::Bundle(name.to_owned()), "bundle")
    };
    let message = format!("{kind} {name} is supposed to be prohibited");
    world.prohibitions.push(Prohibition { what, message });
}
