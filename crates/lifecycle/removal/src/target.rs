//! Which operator a name means.

use crate::{Target, Wish, World};
use mainstay_api::names;
use mainstay_cause::Cause;
use mainstay_object::Object;
use serde_json::Value;
use std::collections::BTreeSet;

fn package(subscription: &Object) -> &str {
    subscription.str(&["spec", "name"]).unwrap_or_default()
}

/// The version of a Subscription: what it has installed, and what it is about to.
fn versions(subscription: &Object) -> impl Iterator<Item = &str> {
    let status = |field: &'static str| subscription.str(&["status", field]);
    [status("installedCSV"), status("currentCSV")].into_iter().flatten()
}

/// The package that a version says it is of.
fn stated(version: &Object) -> Option<String> {
    let text = version.annotation(names::PROPERTIES)?;
    let value: Value = serde_json::from_str(text).ok()?;
    let properties = value.get("properties")?.as_array()?;
    let own = properties.iter().find(|property| property["type"] == "olm.package")?;
    Some(own["value"]["packageName"].as_str()?.to_owned())
}

impl Target {
    /// Whether the operator watches an object of a kind that it provides.
    pub(crate) fn watches(&self, object: &Object) -> bool {
        let namespace = object.namespace();
        namespace.is_empty()
            || self.watched.as_ref().is_none_or(|namespaces| namespaces.contains(namespace))
    }
}

pub(crate) fn find(world: &World, wish: &Wish) -> Result<Target, Cause> {
    let Wish { namespace, name, .. } = wish;
    let named: Vec<&Object> =
        match world.subscriptions.iter().find(|subscription| subscription.name() == name) {
            Some(one) => vec![one],
            None => world
                .subscriptions
                .iter()
                .filter(|subscription| {
                    package(subscription) == name
                        || versions(subscription).any(|version| version == name)
                })
                .collect(),
        };
    let packages: BTreeSet<&str> = named.iter().map(|subscription| package(subscription)).collect();
    if packages.len() > 1 {
        let causes = named.iter().map(|subscription| {
            Cause::new(format!(
                "Subscription {namespace}/{} is of the package {}",
                subscription.name(),
                package(subscription)
            ))
        });
        return Err(Cause::new(format!("`{name}` means several operators of {namespace}"))
            .because_all(causes)
            .remedy("name one of these Subscriptions"));
    }
    let mut found: BTreeSet<&str> =
        named.iter().flat_map(|subscription| versions(subscription)).collect();
    found.extend(world.versions.iter().map(Object::name).filter(|csv_name| csv_name == name));
    if named.is_empty() {
        // Its Subscription went before, as in a removal that was not ended.
        let of_package = |csv: &&Object| stated(csv).is_some_and(|package| package == *name);
        found.extend(world.versions.iter().filter(of_package).map(Object::name));
    }
    // In the middle of an upgrade, the one that is being replaced belongs to it as well.
    loop {
        let before = found.len();
        let replaced: Vec<&str> = world
            .versions
            .iter()
            .filter(|csv| found.contains(csv.name()))
            .filter_map(|csv| csv.str(&["spec", "replaces"]))
            .filter(|old| world.versions.iter().any(|csv| csv.name() == *old))
            .collect();
        found.extend(replaced);
        if found.len() == before {
            break;
        }
    }
    let present: Vec<&Object> =
        world.versions.iter().filter(|csv| found.contains(csv.name())).collect();
    if named.is_empty() && present.is_empty() {
        return left(world, wish).ok_or_else(|| none(world, wish));
    }
    let stated = present.iter().find_map(|csv| stated(csv));
    let package = packages.first().map(|package| (*package).to_owned()).or(stated);
    let mut definitions: BTreeSet<String> = BTreeSet::new();
    for version in &present {
        let owned = version.array(&["spec", "customresourcedefinitions", "owned"]);
        definitions.extend(owned.iter().filter_map(|crd| Some(crd["name"].as_str()?.to_owned())));
    }
    Ok(Target {
        namespace: namespace.clone(),
        watched: watched(&present),
        package,
        subscriptions: named.iter().map(|subscription| subscription.name().to_owned()).collect(),
        versions: present.iter().map(|csv| csv.name().to_owned()).collect(),
        definitions: definitions.into_iter().collect(),
    })
}

/// The namespaces that versions watch, as they say it; none stands for all.
fn watched(versions: &[&Object]) -> Option<BTreeSet<String>> {
    let mut all = BTreeSet::new();
    for version in versions {
        let text = version.annotation(names::TARGET_NAMESPACES)?;
        all.extend(text.split(',').map(str::to_owned));
    }
    (!all.is_empty() && !all.contains("")).then_some(all)
}

/// The package of the namespace that a definition says it is of.
fn labelled<'a>(definition: &'a Object, namespace: &str) -> Option<&'a str> {
    let mut keys = definition.labels().map(|(key, _)| key);
    keys.find_map(|key| {
        let operator = key.strip_prefix(names::COMPONENT_LABEL_PREFIX)?;
        operator.strip_suffix(namespace)?.strip_suffix('.')
    })
}

/// An operator of which only definitions are left.
fn left(world: &World, wish: &Wish) -> Option<Target> {
    let Wish { namespace, name, .. } = wish;
    let label = names::component_label(name, namespace);
    let version = format!("{namespace}/{name}");
    let is_left = |crd: &&Object| {
        let alongside = |(key, value): (&str, &str)| {
            key.starts_with(names::INSTALLED_ALONGSIDE_PREFIX) && value == version
        };
        crd.label(&label).is_some() || crd.annotations().any(alongside)
    };
    let left: Vec<&Object> = world.definitions.iter().filter(is_left).collect();
    let package = left.iter().find_map(|crd| labelled(crd, namespace)).map(str::to_owned);
    (!left.is_empty()).then(|| Target {
        namespace: namespace.clone(),
        watched: None,
        package,
        subscriptions: Vec::new(),
        versions: Vec::new(),
        definitions: left.iter().map(|crd| crd.name().to_owned()).collect(),
    })
}

fn none(world: &World, wish: &Wish) -> Cause {
    let Wish { namespace, name, .. } = wish;
    let cause = Cause::new(format!("there is no operator `{name}` in the namespace {namespace}"));
    let mut known: BTreeSet<&str> = world.subscriptions.iter().map(package).collect();
    known.extend(world.versions.iter().map(Object::name));
    known.extend(world.definitions.iter().filter_map(|crd| labelled(crd, namespace)));
    let known: Vec<&str> = known.into_iter().filter(|name| !name.is_empty()).collect();
    if known.is_empty() {
        let nothing = "there are neither Subscriptions nor ClusterServiceVersions in it";
        return cause
            .because(Cause::new(nothing))
            .remedy("name another namespace with --namespace NAME");
    }
    cause
        .because(Cause::new(format!("there are: {}", known.join(", "))))
        .remedy("name a Subscription, a package or a version of these")
}
