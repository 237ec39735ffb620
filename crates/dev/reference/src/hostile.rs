//! Hard inputs of any size: for tests of step budgets, and for benchmarks.
//!
//! Each input has one or more catalogs, built with a [`CatalogBuilder`], and Subscriptions to their hard
//! packages.

use mainstay_resolver::{
    BundleFacts, BundleProperty, CatalogContent, CatalogKey, CatalogView, EntryFacts, ExistingCsv,
    OperatorGroup, ResolutionInput, Snapshot, SnapshotBuilder, Subscription,
};
use serde_json::{Value, json};

/// A property: its type and its value as JSON text.
pub type Said = (&'static str, String);

/// A catalog builder.
#[derive(Default)]
pub struct CatalogBuilder(SnapshotBuilder);

/// A version of a package in a channel.
#[derive(Default)]
pub struct ChannelVersion<'a> {
    /// The package.
    pub package: &'a str,
    /// Name of the bundle.
    pub name: &'a str,
    /// Its version; 1.0.0 if empty.
    pub version: &'a str,
    /// The channel, which is its package's default one; `stable` if empty.
    pub channel: &'a str,
    /// The bundle it replaces.
    pub replaces: Option<&'a str>,
    /// Bundles it skips.
    pub skips: &'a [&'a str],
    /// Its properties, without the package.
    pub said: &'a [Said],
}

impl CatalogBuilder {
    /// Adds a version of a package.
    pub fn put(&mut self, release: &ChannelVersion<'_>) {
        let ChannelVersion { package, name, version, channel, replaces, skips, said } = *release;
        let version = if version.is_empty() { "1.0.0" } else { version };
        let identity = json!({"packageName": package, "version": version}).to_string();
        let mut properties = vec![BundleProperty { kind: "olm.package", json: &identity }];
        properties.extend(said.iter().map(|(kind, json)| BundleProperty { kind, json }));
        let facts = BundleFacts { version, properties: &properties, ..BundleFacts::default() };
        let Some(bundle) = self.0.bundle(package, &facts) else {
            // A builder refuses only dependencies in the older form.
            return;
        };
        self.0.entry(
            &bundle,
            &EntryFacts {
                name,
                channel: if channel.is_empty() { "stable" } else { channel },
                default_channel: true,
                replaces,
                skips,
                skip_range: None,
            },
        );
    }

    /// Adds a package with one version.
    pub fn one(&mut self, package: &str, said: &[Said]) {
        let name = format!("{package}.v1");
        self.put(&ChannelVersion { package, name: &name, said, ..ChannelVersion::default() });
    }

    /// Adds a package with several versions in one channel, given by their properties, the lowest
    /// version first.
    pub fn many(&mut self, package: &str, releases: &[Vec<Said>]) {
        let name = |at: usize| format!("{package}.v{}", at + 1);
        for (at, said) in releases.iter().enumerate() {
            let before = at.checked_sub(1).map(name);
            self.put(&ChannelVersion {
                package,
                name: &name(at),
                version: &format!("{}.0.0", at + 1),
                replaces: before.as_deref(),
                said,
                ..ChannelVersion::default()
            });
        }
    }
}

/// An input that owns the content of its catalogs.
#[derive(Default)]
pub struct OwnedInput {
    /// Catalogs with their priorities.
    pub catalogs: Vec<(CatalogKey, i64, Snapshot)>,
    /// Subscriptions of the namespace.
    pub subscriptions: Vec<Subscription>,
    /// The existing `ClusterServiceVersion`s of the namespace.
    pub csvs: Vec<ExistingCsv>,
}

impl OwnedInput {
    /// An input with one catalog, and a Subscription for each of these packages.
    pub fn new(shelf: CatalogBuilder, packages: impl IntoIterator<Item = String>) -> Self {
        let mut place = Self::default();
        place.shelve(0, 0, shelf);
        for package in packages {
            place.subscribe(&package);
        }
        place
    }

    /// Adds a catalog.
    pub fn shelve(&mut self, number: usize, priority: i64, shelf: CatalogBuilder) {
        self.catalogs.push((key(number), priority, shelf.0.finish()));
    }

    /// Adds a Subscription to a package of the first catalog.
    pub fn subscribe(&mut self, package: &str) {
        self.subscriptions.push(Subscription {
            name: package.to_owned(),
            package: package.to_owned(),
            catalog: key(0),
            ..Subscription::default()
        });
    }

    /// The resolution input.
    pub fn input(&self) -> ResolutionInput<'_> {
        ResolutionInput {
            namespace: "tenant".to_owned(),
            global_namespace: "olm".to_owned(),
            operator_groups: vec![OperatorGroup::default()],
            catalogs: self
                .catalogs
                .iter()
                .map(|(key, priority, snapshot)| CatalogView {
                    key: key.clone(),
                    priority: *priority,
                    content: CatalogContent::Ready(snapshot),
                })
                .collect(),
            subscriptions: self.subscriptions.clone(),
            csvs: self.csvs.clone(),
            ..ResolutionInput::default()
        }
    }
}

fn key(number: usize) -> CatalogKey {
    CatalogKey::new(format!("cat-{number:03}"), "tenant")
}

fn gvk(kind: &str) -> Value {
    json!({"group": "example.com", "version": "v1", "kind": kind})
}

/// The property that provides an API.
pub fn provides(kind: &str) -> Said {
    ("olm.gvk", gvk(kind).to_string())
}

/// The property that requires an API.
pub fn requires(kind: &str) -> Said {
    ("olm.gvk.required", gvk(kind).to_string())
}

/// The property that requires a package in any version.
pub fn needs(package: &str) -> Said {
    let value = json!({"packageName": package, "versionRange": ">=0.0.0"});
    ("olm.package.required", value.to_string())
}

/// The property of a constraint.
pub fn constraint(value: &Value) -> Said {
    ("olm.constraint", value.to_string())
}

/// Pigeonhole problem: one more package (pigeon) than APIs (holes). Each version of a package
/// provides another API.
pub fn pigeons(holes: usize) -> OwnedInput {
    let mut shelf = CatalogBuilder::default();
    let names: Vec<String> = (0..=holes).map(|at| format!("pigeon-{at:02}")).collect();
    for name in &names {
        let releases: Vec<_> =
            (0..holes).map(|hole| vec![provides(&format!("Hole{hole}"))]).collect();
        shelf.many(name, &releases);
    }
    OwnedInput::new(shelf, names)
}

/// Adds three packages with two versions each, which must all differ: propagation finds the
/// contradiction only after a guess. A package `knot` requires them.
fn knot(shelf: &mut CatalogBuilder) {
    let sides = ["left", "middle", "right"];
    for (at, side) in sides.iter().enumerate() {
        let release = |version: usize| {
            let meets = |other: usize| {
                let (one, two) = (at.min(other), at.max(other));
                provides(&format!("Edge{one}{two}{version}"))
            };
            (0..3).filter(|other| *other != at).map(meets).collect::<Vec<_>>()
        };
        shelf.many(side, &[release(0), release(1)]);
    }
    let needs: Vec<_> = sides.iter().map(|side| needs(side)).collect();
    shelf.one("knot", &needs);
}

/// Many free choices, and after them an impossible requirement that is independent of them.
pub fn late_conflict(choices: usize, subscribed: bool) -> OwnedInput {
    let mut shelf = CatalogBuilder::default();
    knot(&mut shelf);
    let names: Vec<String> = (0..choices).map(|at| format!("free-{at:03}")).collect();
    for name in &names {
        shelf.many(name, &[Vec::new(), Vec::new(), Vec::new()]);
    }
    let mut all: Vec<_> = names.iter().map(|name| needs(name)).collect();
    all.push(needs("knot"));
    shelf.one("root", &all);
    if subscribed {
        // The same choices as Subscriptions of their own.
        OwnedInput::new(shelf, names.into_iter().chain(["root".to_owned()]))
    } else {
        OwnedInput::new(shelf, ["root".to_owned()])
    }
}

/// A tree of requirements, each met by two packages, whose leaves all have an impossible
/// requirement.
pub fn deep_tree(depth: usize) -> OwnedInput {
    let mut shelf = CatalogBuilder::default();
    knot(&mut shelf);
    for level in 0..depth {
        for side in ["a", "b"] {
            let next = if level + 1 == depth {
                vec![needs("knot")]
            } else {
                vec![
                    requires(&format!("Left{}", level + 1)),
                    requires(&format!("Right{}", level + 1)),
                ]
            };
            let mut said = next.clone();
            said.push(provides(&format!("Left{level}")));
            shelf.one(&format!("left-{level:02}-{side}"), &said);
            let mut said = next;
            said.push(provides(&format!("Right{level}")));
            shelf.one(&format!("right-{level:02}-{side}"), &said);
        }
    }
    shelf.one("root", &[requires("Left0"), requires("Right0")]);
    OwnedInput::new(shelf, ["root".to_owned()])
}

/// A ring of packages, each of which requires the next.
pub fn cycle(length: usize) -> OwnedInput {
    let mut shelf = CatalogBuilder::default();
    for at in 0..length {
        shelf.one(&format!("ring-{at:05}"), &[needs(&format!("ring-{:05}", (at + 1) % length))]);
    }
    OwnedInput::new(shelf, ["ring-00000".to_owned()])
}

/// A ring of APIs, each provided by two packages. Each package provides two APIs, so that only
/// every second package can be installed. A ring of odd length has no answer.
pub fn rivals(length: usize) -> OwnedInput {
    let mut shelf = CatalogBuilder::default();
    for at in 0..length {
        let kinds = [at, (at + 1) % length].map(|kind| provides(&format!("Kind{kind:04}")));
        shelf.one(&format!("rival-{at:04}"), &kinds);
    }
    let all: Vec<_> = (0..length).map(|kind| requires(&format!("Kind{kind:04}"))).collect();
    shelf.one("root", &all);
    OwnedInput::new(shelf, ["root".to_owned()])
}

/// A channel with that many versions, and a Subscription to it.
pub fn long_channel(length: usize) -> OwnedInput {
    let mut shelf = CatalogBuilder::default();
    shelf.many("long", &vec![vec![provides("Long")]; length]);
    OwnedInput::new(shelf, ["long".to_owned()])
}

/// A channel whose head skips all other entries, which have ever longer lists of `skips` too.
pub fn skipping_channel(length: usize) -> OwnedInput {
    let mut shelf = CatalogBuilder::default();
    let names: Vec<String> = (0..length).map(|at| format!("skip.v{at}")).collect();
    for (at, name) in names.iter().enumerate() {
        let skips: Vec<&str> = names[..at].iter().map(String::as_str).collect();
        let version = format!("{at}.0.0");
        let replaces = at.checked_sub(1).map(|at| names[at].as_str());
        let release = ChannelVersion {
            package: "skip",
            name,
            version: &version,
            ..ChannelVersion::default()
        };
        shelf.put(&ChannelVersion { replaces, skips: &skips, ..release });
    }
    OwnedInput::new(shelf, ["skip".to_owned()])
}

/// Many catalogs with the same packages; a package of the first catalog requires them.
pub fn catalogs(count: usize, packages: usize) -> OwnedInput {
    let mut place = OwnedInput::default();
    for number in 0..count {
        let mut shelf = CatalogBuilder::default();
        for package in 0..packages {
            let next = requires(&format!("Kind{}", (package + 1) % packages));
            let own = provides(&format!("Kind{package}"));
            shelf.one(&format!("package-{package:03}"), &[own, next]);
        }
        place.shelve(number, 0, shelf);
    }
    place.subscribe("package-000");
    place
}

/// Each bundle requires a bundle that is not of a certain package: its own one, or one that no
/// bundle has (`alike`), so that all bundles of other packages meet the requirement.
pub fn everything_requires_everything(bundles: usize, alike: bool) -> OwnedInput {
    let mut shelf = CatalogBuilder::default();
    for at in 0..bundles {
        let package = format!("p-{at:05}");
        let not = if alike { "nobody".to_owned() } else { package.clone() };
        let other = json!({"package": {"packageName": not, "versionRange": ">=0.0.0"}});
        shelf.one(&package, &[constraint(&json!({"not": {"constraints": [other]}}))]);
    }
    OwnedInput::new(shelf, ["p-00000".to_owned()])
}

/// Independent Subscriptions, each with a chain of requirements.
pub fn subscriptions(count: usize, depth: usize) -> OwnedInput {
    let mut shelf = CatalogBuilder::default();
    let name = |at: usize, level: usize| format!("s-{at:04}-{level}");
    for at in 0..count {
        for level in 0..depth {
            let next = (level + 1 < depth).then(|| needs(&name(at, level + 1)));
            let properties = Vec::from_iter(next);
            let releases = [properties.clone(), properties.clone(), properties];
            shelf.many(&name(at, level), &releases);
        }
    }
    OwnedInput::new(shelf, (0..count).map(|at| name(at, 0)))
}

/// One bundle with that many requirements; two packages meet each of them if `offered`.
pub fn many_requirements(count: usize, offered: bool) -> OwnedInput {
    let mut shelf = CatalogBuilder::default();
    let all: Vec<_> = (0..count).map(|at| requires(&format!("Kind{at:05}"))).collect();
    shelf.one("root", &all);
    for at in (0..count).filter(|_| offered) {
        for side in ["x", "y"] {
            shelf.one(&format!("offer-{at:05}-{side}"), &[provides(&format!("Kind{at:05}"))]);
        }
    }
    OwnedInput::new(shelf, ["root".to_owned()])
}

/// A CEL rule that iterates over all properties on each of `depth` levels, in a catalog of that
/// many bundles.
pub fn costly_rule(depth: usize, bundles: usize) -> OwnedInput {
    let rule = (0..depth)
        .rev()
        .fold("true".to_owned(), |inner, at| format!("properties.all(p{at}, {inner})"));
    rules(&rule, bundles)
}

/// A CEL rule in a catalog of that many bundles, each with ten more properties.
pub fn rules(rule: &str, bundles: usize) -> OwnedInput {
    let mut shelf = CatalogBuilder::default();
    shelf.one("root", &[constraint(&json!({"cel": {"rule": rule}, "failureMessage": "hard"}))]);
    let properties: Vec<Said> = (0..10).map(|at| ("own.kind", at.to_string())).collect();
    for at in 0..bundles {
        shelf.one(&format!("other-{at:05}"), &properties);
    }
    OwnedInput::new(shelf, ["root".to_owned()])
}

/// Constraints of the maximal nesting depth and size, in a catalog of that many bundles.
pub fn nests(bundles: usize, constraints: usize) -> OwnedInput {
    let mut shelf = CatalogBuilder::default();
    let said: Vec<Said> = (0..constraints)
        .map(|number| {
            let leaf = |at: usize| json!({"gvk": {"group": "g", "version": "v", "kind": format!("{number}-{at}")}});
            let mut nest = json!({"any": {"constraints": (0..2_000).map(leaf).collect::<Vec<_>>()}});
            for level in 0..35 {
                let key = if level % 2 == 0 { "all" } else { "any" };
                nest = json!({key: {"constraints": [nest]}});
            }
            constraint(&nest)
        })
        .collect();
    shelf.one("root", &said);
    for at in 0..bundles {
        shelf.one(&format!("other-{at:05}"), &[provides(&format!("Other{at}"))]);
    }
    OwnedInput::new(shelf, ["root".to_owned()])
}
