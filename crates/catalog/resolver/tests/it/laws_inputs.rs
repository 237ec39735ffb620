//! Small random inputs, in the format of the recorded ones.
//!
//! Plain numbers, modulo the number of options, define an input. So any list of numbers is an input,
//! and smaller numbers give simpler inputs.

use mainstay_resolver::fixture::{Fixture, RealCatalog};
use mainstay_resolver::{Demand, Prohibited, Prohibition, ResolutionInput, Snapshot};
use mainstay_version::{Range, Version};
use proptest::prelude::*;
use serde_json::{Value, json};
use std::collections::{BTreeSet, HashMap};

const PACKAGES: [&str; 5] = ["ant", "bee", "cat", "dog", "elk"];
const CATALOGS: [(&str, &str); 3] = [("cat-a", "tenant"), ("cat-b", "olm"), ("cat-c", "tenant")];
const CHANNELS: [&str; 3] = ["stable", "alpha", "beta"];
const KINDS: [&str; 4] = ["Apple", "Bread", "Cheese", "Date"];
const LABELS: [&str; 2] = ["fast", "small"];
const RULES: [&str; 3] = [
    "properties.exists(p, p.type == 'olm.label' && p.value.label == 'fast')",
    "properties.exists(p, p.type == 'olm.package' && p.value.packageName == 'bee' && \
     semver_compare(p.value.version, '2.0.0') >= 0)",
    "properties.exists(p, p.value.kind == 'Cheese')",
];
const RANGES: [&str; 6] = [">=1.0.0", ">=2.0.0", "<2.0.0", ">=1.0.0 <3.0.0", "3.0.0", "!2.0.0"];

/// A requirement as numbers.
#[derive(Clone, Debug)]
pub(crate) enum RequirementSeed {
    Kind(u8),
    Package(u8, u8),
    Label(u8),
    Rule(u8),
    All(Vec<Self>),
    Any(Vec<Self>),
    Not(Vec<Self>),
}

/// A release of a package as numbers.
#[derive(Clone, Debug)]
pub(crate) struct Release {
    /// The APIs and labels that it provides, as bits.
    provides: u8,
    needs: Vec<RequirementSeed>,
    /// It is deprecated if this number is below a limit.
    deprecated: u8,
    /// The channels that it is in, as bits.
    channels: u8,
    /// Bits for `skips` and `skipRange` of its entry.
    edge: u8,
}

/// A package of a catalog as numbers.
#[derive(Clone, Debug)]
pub(crate) struct Product {
    package: u8,
    catalog: u8,
    default_channel: u8,
    releases: Vec<Release>,
}

/// A Subscription as numbers.
#[derive(Clone, Debug)]
pub(crate) struct SubscriptionSeed {
    product: u8,
    channel: u8,
    from: u8,
    start: u8,
    /// The existing `ClusterServiceVersion`: its release, and the form of its properties.
    exists: u8,
    release: u8,
    phase: u8,
}

/// An input as numbers.
#[derive(Clone, Debug)]
pub(crate) struct Seed {
    products: Vec<Product>,
    priorities: [u8; 3],
    subscriptions: Vec<SubscriptionSeed>,
    /// Existing operators without Subscription: product and release.
    unsubscribed: Vec<(u8, u8)>,
    demands: Vec<(u8, u8)>,
    prohibitions: Vec<(u8, u8)>,
    kubernetes: u8,
}

/// The size of a random input.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Size {
    pub products: usize,
    pub releases: usize,
    pub subscriptions: usize,
    /// Whether it has demands and prohibitions of administrators.
    pub policies: bool,
}

fn need() -> impl Strategy<Value = RequirementSeed> {
    let leaf = prop_oneof![
        5 => any::<u8>().prop_map(RequirementSeed::Kind),
        3 => (any::<u8>(), any::<u8>()).prop_map(|(package, range)| RequirementSeed::Package(package, range)),
        1 => any::<u8>().prop_map(RequirementSeed::Label),
        1 => any::<u8>().prop_map(RequirementSeed::Rule),
    ];
    leaf.prop_recursive(2, 6, 3, |inner| {
        let list = || prop::collection::vec(inner.clone(), 1..3);
        prop_oneof![
            2 => list().prop_map(RequirementSeed::All),
            2 => list().prop_map(RequirementSeed::Any),
            1 => list().prop_map(RequirementSeed::Not),
        ]
    })
}

fn release() -> impl Strategy<Value = Release> {
    let needs = prop_oneof![
        5 => Just(Vec::new()),
        4 => prop::collection::vec(need(), 1..2),
        1 => prop::collection::vec(need(), 2..4),
    ];
    (any::<u8>(), needs, any::<u8>(), any::<u8>(), any::<u8>()).prop_map(
        |(provides, needs, deprecated, channels, edge)| Release {
            provides,
            needs,
            deprecated,
            channels,
            edge,
        },
    )
}

/// Inputs of a size.
pub(crate) fn seeds(size: Size) -> impl Strategy<Value = Seed> {
    let product = (
        any::<u8>(),
        any::<u8>(),
        any::<u8>(),
        prop::collection::vec(release(), 1..=size.releases),
    )
        .prop_map(|(package, catalog, default_channel, releases)| Product {
            package,
            catalog,
            default_channel,
            releases,
        });
    let subscription_seed = prop::array::uniform7(any::<u8>()).prop_map(
        |[product, channel, from, start, exists, release, phase]| SubscriptionSeed {
            product,
            channel,
            from,
            start,
            exists,
            release,
            phase,
        },
    );
    let pairs = |most| prop::collection::vec((any::<u8>(), any::<u8>()), 0..=most);
    let policies = usize::from(size.policies) * 2;
    (
        prop::collection::vec(product, 1..=size.products),
        any::<[u8; 3]>(),
        prop::collection::vec(subscription_seed, 1..=size.subscriptions),
        pairs(1),
        pairs(policies),
        pairs(policies),
        any::<u8>().prop_map(move |number| if size.policies { number } else { 0 }),
    )
        .prop_map(
            |(
                products,
                priorities,
                subscriptions,
                unsubscribed,
                demands,
                prohibitions,
                kubernetes,
            )| Seed {
                products,
                priorities,
                subscriptions,
                unsubscribed,
                demands,
                prohibitions,
                kubernetes,
            },
        )
}

/// One of several, by a number.
fn pick<T: Clone>(from: &[T], number: u8) -> T {
    from[usize::from(number) % from.len()].clone()
}

fn api(kind: &str) -> Value {
    json!({"group": "example.com", "version": "v1", "kind": kind})
}

impl RequirementSeed {
    /// The requirement as a constraint, or as the plain property of the same meaning, if there is
    /// one.
    fn property(&self) -> Value {
        match self {
            Self::Kind(kind) => {
                json!({"type": "olm.gvk.required", "value": api(pick(&KINDS, *kind))})
            }
            Self::Package(package, range) => json!({
                "type": "olm.package.required",
                "value": {
                    "packageName": pick(&PACKAGES, *package), "versionRange": pick(&RANGES, *range)
                },
            }),
            Self::Label(label) => json!({
                "type": "olm.label.required", "value": {"label": pick(&LABELS, *label)},
            }),
            _ => json!({"type": "olm.constraint", "value": self.constraint()}),
        }
    }

    fn constraint(&self) -> Value {
        let list = |needs: &[Self]| {
            let list: Vec<Value> = needs.iter().map(Self::constraint).collect();
            json!({"constraints": list})
        };
        match self {
            Self::Kind(kind) => json!({"gvk": api(pick(&KINDS, *kind))}),
            Self::Package(package, range) => json!({"package": {
                "packageName": pick(&PACKAGES, *package), "versionRange": pick(&RANGES, *range),
            }}),
            // Constraints cannot state labels.
            Self::Label(label) => json!({"cel": {"rule": format!(
                "properties.exists(p, p.type == 'olm.label' && p.value.label == '{}')",
                pick(&LABELS, *label)
            )}}),
            Self::Rule(rule) => json!({
                "failureMessage": format!("rule {}", rule % 2), "cel": {"rule": pick(&RULES, *rule)},
            }),
            Self::All(needs) => json!({"all": list(needs)}),
            Self::Any(needs) => json!({"any": list(needs)}),
            Self::Not(needs) => json!({"not": list(needs)}),
        }
    }
}

impl Product {
    fn package(&self) -> &'static str {
        pick(&PACKAGES, self.package)
    }

    fn catalog(&self) -> usize {
        usize::from(self.catalog) % CATALOGS.len()
    }

    /// The name of a release.
    fn name(&self, release: usize) -> String {
        format!("{}.v{}", self.package(), release + 1)
    }

    fn properties(&self, at: usize) -> Vec<Value> {
        let release = &self.releases[at];
        let identity = json!({"packageName": self.package(), "version": format!("{}.0.0", at + 1)});
        let mut list = vec![json!({"type": "olm.package", "value": identity})];
        // Few enough for some conflicts, but not everywhere.
        if !release.provides.is_multiple_of(3) {
            let kind = pick(&KINDS, release.provides / 3);
            list.push(json!({"type": "olm.gvk", "value": api(kind)}));
        }
        for (bit, label) in LABELS.iter().enumerate() {
            if release.provides >> (6 + bit) & 1 == 1 {
                list.push(json!({"type": "olm.label", "value": {"label": label}}));
            }
        }
        list.extend(release.needs.iter().map(RequirementSeed::property));
        if release.deprecated.is_multiple_of(8) && release.deprecated > 0 {
            let value = json!({"minKubeVersion": format!("1.{}.0", 20 + release.deprecated / 64)});
            list.push(json!({"type": "olm.csv.metadata", "value": value}));
        }
        if release.deprecated > 240 {
            list.push(json!({"type": "olm.deprecated", "value": {}}));
        }
        list
    }

    fn channels(&self) -> Vec<Value> {
        let mut channels = Vec::new();
        for (bit, channel) in CHANNELS.iter().enumerate() {
            let members: Vec<usize> = (0..self.releases.len())
                .filter(|at| {
                    let bits = self.releases[*at].channels;
                    bits >> bit & 1 == 1 || (bit == 0 && bits.is_multiple_of(8))
                })
                .collect();
            let entries: Vec<Value> = members
                .iter()
                .enumerate()
                .map(|(at, &release)| {
                    let mut entry = json!({"name": self.name(release)});
                    let edge = self.releases[release].edge;
                    // In rare cases the chain is broken, so that the channel has no order.
                    if at > 0 && edge < 253 {
                        entry["replaces"] = json!(self.name(members[at - 1]));
                        if edge % 4 == 1 {
                            // The chain continues after the skipped entry.
                            entry["skips"] = json!([self.name(members[at - 1])]);
                        }
                    }
                    if edge % 4 == 2 {
                        entry["skipRange"] = json!(format!("<{}.0.0", release + 1));
                    }
                    entry
                })
                .collect();
            if !entries.is_empty() {
                channels.push(json!({"name": channel, "entries": entries}));
            }
        }
        channels
    }
}

impl Seed {
    /// The products that count: the first one of each package in each catalog.
    fn products(&self) -> Vec<&Product> {
        let mut products_seen = BTreeSet::new();
        self.products
            .iter()
            .filter(|product| products_seen.insert((product.package(), product.catalog())))
            .collect()
    }

    /// The input, in the format of the recorded ones.
    pub(crate) fn universe(&self) -> Value {
        let products = self.products();
        let catalogs: Vec<Value> = CATALOGS
            .iter()
            .enumerate()
            .filter(|(at, _)| products.iter().any(|product| product.catalog() == *at))
            .map(|(at, (name, namespace))| {
                let catalog_products = || products.iter().filter(|product| product.catalog() == at);
                let packages: Vec<Value> = catalog_products()
                    .map(|product| {
                        let channels = product.channels();
                        let default = pick(&channels, product.default_channel)["name"].clone();
                        json!({"name": product.package(), "defaultChannel": default, "channels": channels})
                    })
                    .collect();
                let bundles: Vec<Value> = catalog_products()
                    .flat_map(|product| (0..product.releases.len()).map(|at| (*product, at)))
                    .map(|(product, at)| {
                        json!({
                            "name": product.name(at), "package": product.package(),
                            "version": format!("{}.0.0", at + 1), "properties": product.properties(at),
                        })
                    })
                    .collect();
                let state = match self.priorities[at] {
                    253.. => "noClient",
                    250.. => "listFails",
                    _ => "",
                };
                json!({
                    "name": name, "namespace": namespace, "priority": self.priorities[at] % 3,
                    "packages": packages, "bundles": bundles, "state": state, "message": "no answer",
                })
            })
            .collect();

        let mut csvs: Vec<Value> = Vec::new();
        let mut exist = |product: &Product, release: usize, how: u8, phase: u8| {
            let name = product.name(release);
            if csvs.iter().any(|csv| csv["name"] == json!(name)) {
                return name;
            }
            let mut csv = json!({
                "name": name, "version": format!("{}.0.0", release + 1),
                "phase": pick(&["Succeeded", "Failed", "Replacing"], phase),
            });
            if how.is_multiple_of(3) {
                let kinds: Vec<Value> = product
                    .properties(release)
                    .into_iter()
                    .filter(|property| property["type"] == "olm.gvk")
                    .map(|property| property["value"].clone())
                    .collect();
                csv["ownedCrds"] = json!(kinds);
            } else {
                csv["properties"] = json!(product.properties(release));
            }
            csvs.push(csv);
            name
        };
        let subscriptions: Vec<Value> = self
            .subscriptions
            .iter()
            .enumerate()
            .map(|(at, subscription_seed)| {
                let product = pick(&products, subscription_seed.product);
                let mut subscription =
                    json!({"name": format!("sub-{at}"), "package": product.package()});
                let channels = product.channels();
                if subscription_seed.channel % 3 > 0 {
                    subscription["channel"] =
                        pick(&channels, subscription_seed.channel / 3)["name"].clone();
                } else if subscription_seed.channel > 250 {
                    subscription["channel"] = json!("unknown");
                }
                if subscription_seed.from < 250 {
                    let (source, namespace) = CATALOGS[product.catalog()];
                    subscription["source"] = json!(source);
                    subscription["sourceNamespace"] = json!(namespace);
                }
                if subscription_seed.start > 220 {
                    let release = usize::from(subscription_seed.start) % product.releases.len();
                    subscription["startingCSV"] = json!(product.name(release));
                }
                if subscription_seed.exists % 4 > 1 {
                    let release = usize::from(subscription_seed.release) % product.releases.len();
                    let name = exist(
                        product,
                        release,
                        subscription_seed.exists / 4,
                        subscription_seed.phase,
                    );
                    if subscription_seed.exists % 32 != 31 {
                        subscription["installedCSV"] = json!(name);
                    }
                    subscription["currentCSV"] = json!(name);
                }
                subscription
            })
            .collect();
        for (product, release) in &self.unsubscribed {
            let product = pick(&products, *product);
            if release % 6 == 5 {
                exist(product, usize::from(*release) % product.releases.len(), *release, 0);
            }
        }
        json!({
            "namespace": "tenant", "globalNamespace": "olm", "operatorGroups": [{"name": "group"}],
            "catalogs": catalogs, "subscriptions": subscriptions, "csvs": csvs,
        })
    }

    /// The demands of the administrator.
    fn demands(&self) -> Vec<Demand> {
        let demand = |(package, range): &(u8, u8)| Demand {
            package: pick(&PACKAGES, *package).to_owned(),
            range: (range % 3 > 0).then(|| Range::parse(pick(&RANGES, range / 3)).unwrap()),
        };
        self.demands.iter().map(demand).collect()
    }

    /// The prohibitions of the administrator.
    fn prohibitions(&self) -> Vec<Prohibition> {
        let products = self.products();
        let prohibition = |(at, (which, how)): (usize, &(u8, u8))| {
            let product = pick(&products, *which);
            let what = match how % 4 {
                0 => Prohibited::Package(product.package().to_owned()),
                1 => Prohibited::OutsideOf(
                    PACKAGES
                        .iter()
                        .filter(|package| **package != product.package())
                        .map(|package| (*package).into())
                        .collect(),
                ),
                _ => {
                    Prohibited::Bundle(product.name(usize::from(how / 4) % product.releases.len()))
                }
            };
            Prohibition { what, message: format!("rule {at} of the administrator forbids it") }
        };
        self.prohibitions.iter().enumerate().map(prohibition).collect()
    }
}

/// Shuffles all lists of a universe.
pub(crate) fn shuffle(universe: &mut Value, mut number: u64) {
    let mut next = move |below: usize| {
        // A linear congruential generator is random enough here.
        number =
            number.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(number >> 33).unwrap() % below
    };
    mix(universe, &mut next);
}

fn mix(value: &mut Value, next: &mut impl FnMut(usize) -> usize) {
    match value {
        Value::Array(items) => {
            for at in (1..items.len()).rev() {
                items.swap(at, next(at + 1));
            }
            for item in items {
                mix(item, next);
            }
        }
        // The order inside a property matters: messages show compound constraints in their order.
        Value::Object(fields) => {
            for (_, inner) in fields.iter_mut().filter(|(key, _)| *key != "value") {
                mix(inner, next);
            }
        }
        _ => {}
    }
}

/// An input that owns the content of its catalogs.
#[derive(Debug)]
pub(crate) struct OwnedResolutionInput {
    universe: Fixture,
    snapshots: Vec<Snapshot>,
    demands: Vec<Demand>,
    prohibitions: Vec<Prohibition>,
    kubernetes: Option<Version>,
}

impl OwnedResolutionInput {
    /// The input of a seed, after a change of its universe.
    pub(crate) fn new(seed: &Seed, universe: &Value) -> Self {
        let universe: Fixture = serde_json::from_value(universe.clone()).unwrap();
        let snapshots = universe.snapshots();
        let (demands, prohibitions) = (seed.demands(), seed.prohibitions());
        let kubernetes = (seed.kubernetes % 4 > 1)
            .then(|| Version::new(1, 20 + u64::from(seed.kubernetes / 64), 0));
        Self { universe, snapshots, demands, prohibitions, kubernetes }
    }

    /// The input with demands and prohibitions in the opposite order.
    pub(crate) fn with_reversed_policies(mut self) -> Self {
        self.demands.reverse();
        self.prohibitions.reverse();
        self
    }

    /// The input.
    pub(crate) fn input<'a>(
        &'a self,
        real: &'a HashMap<String, RealCatalog>,
    ) -> ResolutionInput<'a> {
        let mut input = self.universe.input(&self.snapshots, real).unwrap();
        input.demands.clone_from(&self.demands);
        input.prohibitions.clone_from(&self.prohibitions);
        input.kube_version.clone_from(&self.kubernetes);
        input
    }
}
