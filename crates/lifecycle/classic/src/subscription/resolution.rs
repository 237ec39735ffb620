//! What a namespace should have installed, and the steps to get there.
//!
//! Everything here burns CPU and runs on a thread of its own: it works on copies of what was seen.

use crate::catalog::Content;
use crate::csv::phase::refusals;
use crate::facts;
use crate::hash;
use crate::image::bundles::Key;
use crate::steps::{self, Chosen};
use mainstay_api::{
    BundleLookup, ClusterServiceVersion, ObjectReference, OperatorGroup, Step, Subscription,
    SubscriptionConditionType, SubscriptionReason, UpgradeStrategy, names,
};
use mainstay_catalog::Bundle;
use mainstay_object::{NamespacedName, Object};
use mainstay_resolver as resolver;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Properties by which a bundle says that it needs others.
const REQUIRED: [&str; 4] =
    ["olm.package.required", "olm.gvk.required", "olm.constraint", "olm.label.required"];

/// A catalog of the namespace.
pub(crate) struct Visible {
    pub(crate) key: NamespacedName,
    pub(crate) priority: i64,
    /// Its content, or why it has none.
    pub(crate) content: Result<Arc<Content>, String>,
}

/// What is resolved.
pub(crate) struct Input {
    pub(crate) namespace: String,
    pub(crate) global: String,
    pub(crate) group: Arc<OperatorGroup>,
    pub(crate) catalogs: Vec<Visible>,
    pub(crate) subscriptions: Vec<Subscription>,
    pub(crate) csvs: BTreeMap<String, Arc<facts::Csv>>,
    /// `gitVersion` of the server; none if it does not say, which excludes nothing.
    pub(crate) server_version: Option<String>,
    /// The Subscriptions whose plan has not come to an end.
    pub(crate) in_flight: BTreeSet<String>,
    /// The objects of bundles by image.
    pub(crate) unpacked: BTreeMap<Key, Arc<Vec<Object>>>,
}

/// A bundle that was chosen and must be unpacked before there can be steps.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Needed {
    pub(crate) key: Key,
    /// The Subscriptions that wait for it.
    pub(crate) subscriptions: Vec<String>,
}

/// Why Subscriptions cannot be served.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Failure {
    pub(crate) reason: SubscriptionReason,
    pub(crate) message: String,
    /// The Subscriptions that it concerns.
    pub(crate) subscriptions: Vec<String>,
    /// Versions without Subscription that it concerns.
    pub(crate) csvs: Vec<String>,
    /// Who asks, what stands in the way and what would mend it, in one line; none if people were
    /// told before.
    pub(crate) explanation: Option<String>,
}

/// How many bytes of an explanation are told; some readers of events cut what is longer.
const TOLD: usize = 1024;

/// An explanation as an event tells it.
fn told(failure: &resolver::Failure) -> String {
    let mut text = failure.cause.to_string();
    if text.len() > TOLD {
        // What would mend it stands at the end and matters most.
        let repair = failure.repairs.first().map(|it| format!(" … ({it})")).unwrap_or_default();
        let repair = if repair.len() < TOLD / 2 { repair } else { " …".to_owned() };
        text.truncate(text.floor_char_boundary(TOLD - repair.len()));
        text.push_str(&repair);
    }
    text
}

/// Whether somebody whom a failure concerns was not told of it yet.
fn is_news(input: &Input, failure: &resolver::Failure) -> bool {
    let knows = |it: &&Subscription| {
        it.status.conditions.iter().any(|condition| {
            condition.kind == SubscriptionConditionType::ResolutionFailed
                && condition.message == failure.message
        })
    };
    let concerned =
        input.subscriptions.iter().filter(|it| failure.subscriptions.contains(&it.metadata.name));
    failure.subscriptions.is_empty() || !concerned.into_iter().all(|it| knows(&it))
}

/// What came out.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Resolved {
    /// Steps for one plan; none if nothing is to be done.
    pub(crate) steps: Vec<Step>,
    /// The version that each Subscription gets.
    pub(crate) updates: BTreeMap<String, String>,
    pub(crate) failures: Vec<Failure>,
    /// Bundles that must be unpacked first; what belongs together with them has no steps yet.
    pub(crate) needed: Vec<Needed>,
    /// Bundles whose objects are in the steps, and what the plan says of them.
    pub(crate) used: BTreeSet<Key>,
    pub(crate) lookups: Vec<BundleLookup>,
    /// Bundles that were unpacked and cannot be installed all the same.
    pub(crate) refused: BTreeSet<Key>,
    /// What this was resolved from, as [`fingerprint`] tells it.
    pub(crate) print: String,
    /// Why no plan can be made for the steps that there were, by Subscription.
    pub(crate) unplanned: BTreeMap<String, String>,
}

impl Resolved {
    /// The same without steps, because a plan for them is refused.
    pub(crate) fn without_plan(&self, message: &str) -> Self {
        let unplanned = self.updates.keys().map(|name| (name.clone(), message.to_owned()));
        Self {
            failures: self.failures.clone(),
            needed: self.needed.clone(),
            // Kept for as long as this is: without them it would be resolved again.
            refused: self.refused.union(&self.used).cloned().collect(),
            print: self.print.clone(),
            unplanned: unplanned.collect(),
            ..Self::default()
        }
    }
}

/// Why there are no steps for a bundle.
enum Stop {
    /// It cannot be installed.
    Refused(String),
    /// It must be unpacked.
    Image(Key),
}

impl From<String> for Stop {
    fn from(message: String) -> Self {
        Self::Refused(message)
    }
}

/// Stands for everything that the outcome depends on.
pub(crate) fn fingerprint(input: &Input) -> String {
    let mut parts = vec![format!("{:?}{:?}", input.group.spec, input.group.metadata.annotations)];
    parts.extend(input.catalogs.iter().map(|it| {
        let content = it.content.as_ref().map(|it| it.catalog().digest().to_owned());
        format!("{}{}{content:?}", it.key, it.priority)
    }));
    parts.extend(input.subscriptions.iter().map(|it| {
        let status = &it.status;
        format!(
            "{}{:?}{}{}{:?}",
            it.metadata.uid, it.spec, status.current_csv, status.installed_csv, status.state
        )
    }));
    parts.extend(input.csvs.iter().map(|(name, it)| {
        format!("{name}{}{}{}{:?}", it.uid, it.replaces, it.phase, it.properties)
    }));
    parts.extend(input.in_flight.iter().cloned());
    parts.extend(input.server_version.clone());
    parts.extend(input.unpacked.keys().map(|it| format!("{}{}", it.catalog, it.image)));
    let text = parts.concat();
    hash::base62_sha224(text.as_bytes())
}

/// Resolves and turns what was chosen into steps.
pub(crate) fn run(input: &Input) -> Resolved {
    let outcome = resolver::resolve_explaining(&world(input), |failure| is_news(input, failure));
    let mut out = Resolved {
        failures: outcome
            .failures
            .iter()
            // What is broken and in nobody's way is told where it is broken.
            .filter(|it| !it.subscriptions.is_empty() || !it.csvs.is_empty())
            .map(|it| Failure {
                reason: it.kind.reason().into(),
                message: it.message.clone(),
                subscriptions: it.subscriptions.clone(),
                csvs: if it.subscriptions.is_empty() { it.csvs.clone() } else { Vec::new() },
                explanation: is_news(input, it).then(|| told(it)),
            })
            .collect(),
        ..Resolved::default()
    };
    let Parts { unusable, waiting, refused } = parts(input, &outcome);
    out.refused = refused;
    for (part, keys) in &waiting {
        let subscriptions = outcome.parts.get(*part).cloned().unwrap_or_default();
        out.needed.extend(
            keys.iter()
                .map(|key| Needed { key: key.clone(), subscriptions: subscriptions.clone() }),
        );
    }
    for (part, message) in &unusable {
        out.failures.push(Failure {
            reason: SubscriptionReason::ErrorPreventedResolution,
            message: message.clone(),
            subscriptions: outcome.parts.get(*part).cloned().unwrap_or_default(),
            csvs: Vec::new(),
            explanation: None,
        });
    }
    for install in &outcome.installs {
        let Some(chosen) = outcome.resolved.get(install.chosen) else { continue };
        if is_under_way(input, &install.subscriptions, &chosen.name) {
            continue;
        }
        // Half of what belongs together is worse than nothing: a part was chosen as a whole.
        if unusable.contains_key(&install.part) || waiting.contains_key(&install.part) {
            continue;
        }
        if let Ok((steps, lookup)) = steps_of(input, chosen) {
            out.steps.extend(steps);
            if let Some((key, lookup)) = lookup {
                out.used.insert(key);
                out.lookups.push(lookup);
            }
            for name in &install.subscriptions {
                out.updates.insert(name.clone(), chosen.name.clone());
            }
        }
    }
    out.steps = steps::ordered(out.steps);
    out
}

/// Parts that get no steps, or not yet.
#[derive(Default)]
struct Parts {
    /// With a bundle that cannot be installed, and why.
    unusable: BTreeMap<usize, String>,
    /// With bundles that must be unpacked first.
    waiting: BTreeMap<usize, BTreeSet<Key>>,
    /// The unpacked bundles of parts that get no steps.
    refused: BTreeSet<Key>,
}

/// The image that a bundle is unpacked from, if it was.
fn unpacked(input: &Input, chosen: &resolver::Chosen) -> Option<Key> {
    let catalog = NamespacedName::new(&*chosen.catalog.namespace, &*chosen.catalog.name);
    let content = input.catalogs.iter().find(|it| it.key == catalog)?.content.as_ref().ok()?;
    let bundle = content.catalog().bundle(&chosen.package, &chosen.name)?;
    let key = Key { catalog, image: bundle.image.to_string() };
    (bundle.object_count() == 0 && input.unpacked.contains_key(&key)).then_some(key)
}

fn parts(input: &Input, outcome: &resolver::Outcome) -> Parts {
    let mut parts = Parts::default();
    for install in &outcome.installs {
        let Some(chosen) = outcome.resolved.get(install.chosen) else { continue };
        if is_under_way(input, &install.subscriptions, &chosen.name) {
            continue;
        }
        match steps_of(input, chosen) {
            Ok(_) => {}
            Err(Stop::Refused(message)) => {
                parts.unusable.entry(install.part).or_insert(message);
            }
            Err(Stop::Image(key)) => {
                parts.waiting.entry(install.part).or_default().insert(key);
            }
        }
    }
    // What will not be installed need not be unpacked.
    parts.waiting.retain(|part, _| !parts.unusable.contains_key(part));
    for install in &outcome.installs {
        // Forgetting them would mean to unpack them again for the same answer.
        let stopped =
            parts.unusable.contains_key(&install.part) || parts.waiting.contains_key(&install.part);
        if let Some(chosen) = outcome.resolved.get(install.chosen).filter(|_| stopped) {
            parts.refused.extend(unpacked(input, chosen));
        }
    }
    parts
}

/// Whether everybody who asks for a version waits for a plan that brings it: a second plan for the
/// same would only get in the way of the first.
fn is_under_way(input: &Input, asking: &[String], version: &str) -> bool {
    !asking.is_empty()
        && asking.iter().all(|name| {
            input.in_flight.contains(name)
                && input
                    .subscriptions
                    .iter()
                    .any(|it| it.metadata.name == *name && it.status.current_csv == version)
        })
}

fn world(input: &Input) -> resolver::World<'_> {
    let group = &input.group;
    let annotations = &group.metadata.annotations;
    let excluded = annotations.get(names::EXCLUDE_GLOBAL_NAMESPACE_RESOLUTION);
    resolver::World {
        namespace: input.namespace.clone(),
        global_namespace: input.global.clone(),
        operator_groups: vec![resolver::OperatorGroup {
            name: group.metadata.name.clone(),
            fail_forward: group.spec.upgrade_strategy == UpgradeStrategy::FailForward,
            exclude_global: excluded.map(String::as_str) == Some("true"),
        }],
        catalogs: input
            .catalogs
            .iter()
            .map(|it| resolver::CatalogView {
                key: resolver::CatalogKey::new(&*it.key.name, &*it.key.namespace),
                priority: it.priority,
                content: match &it.content {
                    Ok(content) => resolver::Content::Ready(&content.snapshot),
                    Err(why) => resolver::Content::Failed(why.clone()),
                },
            })
            .collect(),
        subscriptions: input.subscriptions.iter().map(subscription).collect(),
        csvs: input.csvs.iter().map(|(name, it)| csv(name, it)).collect(),
        kube_version: input
            .server_version
            .as_deref()
            .and_then(|text| mainstay_version::parse_tolerant(text).ok()),
        ..resolver::World::default()
    }
}

fn subscription(it: &Subscription) -> resolver::Subscription {
    resolver::Subscription {
        name: it.metadata.name.clone(),
        package: it.spec.package.clone(),
        channel: it.spec.channel.clone(),
        catalog: resolver::CatalogKey::new(&*it.spec.source, &*it.spec.source_namespace),
        starting_csv: it.spec.starting_csv.clone(),
        installed_csv: it.status.installed_csv.clone(),
        current_csv: it.status.current_csv.clone(),
    }
}

fn csv(name: &str, it: &facts::Csv) -> resolver::Csv {
    let apis = |list: &[facts::Api]| -> Vec<resolver::Api> {
        list.iter()
            .map(|it| resolver::Api {
                group: it.group.clone(),
                version: it.version.clone(),
                kind: it.kind.clone(),
            })
            .collect()
    };
    resolver::Csv {
        name: name.to_owned(),
        version: mainstay_version::parse_strict(&it.version).ok(),
        replaces: it.replaces.clone(),
        phase: it.phase.to_string(),
        copied: it.is_copy(),
        properties: it.properties.clone(),
        // Definitions and API services are told apart only when properties are inferred, and there
        // only their kinds count.
        owned_apis: apis(&it.provides),
        required_apis: apis(&it.requires),
        ..resolver::Csv::default()
    }
}

/// The steps for a bundle, and, if it comes as an image, which one and what the plan says of that.
type Made = (Vec<Step>, Option<(Key, BundleLookup)>);

fn steps_of(input: &Input, chosen: &resolver::Chosen) -> Result<Made, Stop> {
    let key = NamespacedName::new(&*chosen.catalog.namespace, &*chosen.catalog.name);
    let name = &chosen.name;
    let gone = || format!("bundle {name} is not in catalog {key} any more");
    let content = input
        .catalogs
        .iter()
        .find(|it| it.key == key)
        .and_then(|it| it.content.as_ref().ok())
        .ok_or_else(gone)?;
    let bundle = content.catalog().bundle(&chosen.package, name).ok_or_else(gone)?;
    if let Some(dependencies) = dependencies(bundle) {
        return Err(Stop::Refused(format!(
            "bundle {name} has dependencies, which are not supported: {dependencies}"
        )));
    }
    let properties: Vec<Value> =
        bundle.properties.iter().map(|it| json!({"type": *it.kind, "value": it.value()})).collect();
    let replaces = chosen.replaces.as_deref().unwrap_or_default();
    let (objects, lookup) = if bundle.object_count() > 0 {
        let objects = bundle.objects();
        (objects.map_err(|error| format!("reading bundle {name}: {error}"))?, None)
    } else if bundle.image.is_empty() {
        return Err(Stop::Refused(format!("bundle {name} has neither manifests nor an image")));
    } else {
        let image = Key { catalog: key.clone(), image: bundle.image.to_string() };
        let Some(objects) = input.unpacked.get(&image) else { return Err(Stop::Image(image)) };
        let lookup = BundleLookup {
            path: image.image.clone(),
            identifier: name.clone(),
            replaces: replaces.to_owned(),
            catalog_source_ref: Some(ObjectReference {
                namespace: key.namespace.to_string(),
                name: key.name.to_string(),
                ..ObjectReference::default()
            }),
            properties: steps::properties_annotation(&properties),
            ..BundleLookup::default()
        };
        (objects.to_vec(), Some((image, lookup)))
    };
    let (versions, others): (Vec<Object>, Vec<Object>) =
        objects.into_iter().partition(|it| it.kind() == "ClusterServiceVersion");
    let csv =
        versions.first().ok_or_else(|| format!("bundle {name} has no ClusterServiceVersion"))?;
    if lookup.is_some() && csv.name() != name {
        return Err(Stop::Refused(format!(
            "bundle {name} has the ClusterServiceVersion {} in it",
            csv.name()
        )));
    }
    let view = ClusterServiceVersion::from_object(csv)
        .map_err(|error| format!("reading bundle {name}: {error}"))?;
    if let Some(refused) = refusals(&view) {
        return Err(Stop::Refused(format!("bundle {name} cannot be installed: {refused}")));
    }
    let chosen = Chosen { csv, objects: &others, properties: &properties, replaces, catalog: &key };
    Ok((steps::of_bundle(&input.namespace, &chosen), lookup))
}

/// What a bundle needs from others, by name.
fn dependencies(bundle: &Bundle) -> Option<String> {
    let packages = bundle
        .required_packages()
        .map(|it| format!("package {} {}", it.package_name, it.version_range));
    let apis =
        bundle.required_apis().map(|it| format!("API {} ({}/{})", it.kind, it.group, it.version));
    let others = bundle
        .properties
        .iter()
        .filter(|it| REQUIRED[2..].contains(&&*it.kind))
        .map(|it| format!("{} {}", it.kind, it.json));
    let all: Vec<String> = packages.chain(apis).chain(others).collect();
    (!all.is_empty()).then(|| all.join(", "))
}
