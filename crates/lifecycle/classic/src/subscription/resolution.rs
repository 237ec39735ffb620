//! What a namespace should have installed, and the steps to get there.
//!
//! Everything here burns CPU and runs on a thread of its own: it works on copies of what was seen.

use super::input::Input;
use super::succession;
use crate::image::bundles::Key;
use crate::steps::{self, Made, Stop, Wanted};
use mainstay_api::{
    Approval, BundleLookup, Step, Subscription, SubscriptionConditionType, SubscriptionReason,
};
use mainstay_object::NamespacedName;
use mainstay_resolver as resolver;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

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
        let repair =
            failure.repairs.first().map(|repair| format!(" … ({repair})")).unwrap_or_default();
        let repair = if repair.len() < TOLD / 2 { repair } else { " …".to_owned() };
        text.truncate(text.floor_char_boundary(TOLD - repair.len()));
        text.push_str(&repair);
    }
    text
}

/// Whether somebody whom a failure concerns was not told of it yet.
fn is_news(input: &Input, failure: &resolver::Failure) -> bool {
    let knows = |subscription: &&Subscription| {
        subscription.status.conditions.iter().any(|condition| {
            condition.kind == SubscriptionConditionType::ResolutionFailed
                && condition.message == failure.message
        })
    };
    let concerned = input
        .subscriptions
        .iter()
        .filter(|subscription| failure.subscriptions.contains(&subscription.metadata.name));
    failure.subscriptions.is_empty()
        || !concerned.into_iter().all(|subscription| knows(&subscription))
}

/// What came out.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Resolved {
    /// Steps for one plan; none if nothing is to be done.
    pub(crate) steps: Vec<Step>,
    /// Whether the plan waits for approval. What needs approval is planned first, so that its plan is the
    /// one that people would approve if it was the only one; the rest follows when that plan is there.
    pub(crate) manual: bool,
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
    /// What this was resolved from, as [`Input::fingerprint`] tells it.
    pub(crate) print: String,
    /// Why no plan can be made for the steps that there were, by Subscription.
    pub(crate) unplanned: BTreeMap<String, String>,
    /// How often in a row a plan for this was refused.
    pub(crate) refusals: u32,
    /// When a plan is tried again that was refused, by the clock's elapsed time; none if only
    /// something else that comes of a resolution can help.
    pub(crate) until: Option<Duration>,
    /// Subscriptions that wait for something under way before more can be said of them.
    pub(crate) held: BTreeSet<String>,
    /// Subscriptions that get the plan of another one, which brings what they ask for.
    pub(crate) joining: BTreeMap<String, String>,
}

impl Resolved {
    /// Adds the steps for what Subscriptions get.
    fn add(&mut self, (steps, lookup): Made, chosen: &resolver::Chosen, asking: &[String]) {
        self.steps.extend(steps);
        if let Some((key, lookup)) = lookup {
            self.used.insert(key);
            self.lookups.push(lookup);
        }
        self.updates.extend(asking.iter().map(|name| (name.clone(), chosen.name.clone())));
    }

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
            held: self.held.clone(),
            joining: self.joining.clone(),
            ..Self::default()
        }
    }
}

/// Resolves and turns what was chosen into steps.
pub(crate) fn run(input: &Input) -> Resolved {
    let outcome = resolver::resolve_explaining(&input.world(), |failure| is_news(input, failure));
    let mut out = Resolved::default();
    // What is broken and in nobody's way is told where it is broken.
    let told = |failure: &&resolver::Failure| {
        !failure.subscriptions.is_empty() || !failure.csvs.is_empty()
    };
    for failure in outcome.failures.iter().filter(told) {
        // It will be something else, or nothing, when what is under way has come to an end.
        if input.pinned.values().any(|why| failure.message.contains(why)) {
            out.held.extend(failure.subscriptions.iter().cloned());
            continue;
        }
        out.failures.push(Failure {
            reason: failure.kind.reason().into(),
            message: failure.message.clone(),
            subscriptions: failure.subscriptions.clone(),
            csvs: if failure.subscriptions.is_empty() { failure.csvs.clone() } else { Vec::new() },
            explanation: is_news(input, failure).then(|| self::told(failure)),
        });
    }
    let members = |part: &usize| outcome.parts.get(*part).cloned().unwrap_or_default();
    let Parts { unusable, waiting, refused, held } = parts(input, &outcome);
    out.refused = refused;
    out.held.extend(held.iter().flat_map(members));
    for (part, keys) in &waiting {
        let needed = |key: &Key| Needed { key: key.clone(), subscriptions: members(part) };
        out.needed.extend(keys.iter().map(needed));
    }
    for (part, message) in &unusable {
        out.failures.push(Failure {
            reason: SubscriptionReason::ErrorPreventedResolution,
            message: message.clone(),
            subscriptions: members(part),
            csvs: Vec::new(),
            explanation: None,
        });
    }
    let mut going = Vec::new();
    for install in &outcome.installs {
        let Some(chosen) = outcome.resolved.get(install.chosen) else { continue };
        // Half of what belongs together is worse than nothing: a part was chosen as a whole.
        if unusable.contains_key(&install.part)
            || waiting.contains_key(&install.part)
            || held.contains(&install.part)
        {
            continue;
        }
        match way(input, &install.subscriptions, &chosen.name) {
            Way::Go => {}
            Way::Coming(joining) => {
                out.joining.extend(joining);
                continue;
            }
            Way::Wait => continue,
        }
        if let Ok(mut made) = steps_of(input, chosen) {
            if install.subscriptions.is_empty() {
                made.0.extend(subscription_step(input, &outcome, chosen));
            }
            going.push(Going {
                manual: needs_approval(input, &members(&install.part)),
                made,
                chosen: chosen.clone(),
                asking: install.subscriptions.clone(),
            });
        }
    }
    again(input, &mut going, &mut out);
    out.manual = going.iter().any(|going| going.manual);
    for going in going {
        if going.manual == out.manual {
            out.add(going.made, &going.chosen, &going.asking);
        } else {
            // Its turn comes when the others have their plan.
            out.refused.extend(unpacked(input, &going.chosen));
        }
    }
    out.steps = steps::ordered(out.steps);
    out
}

/// What was chosen and can be installed.
struct Going {
    manual: bool,
    made: Made,
    chosen: resolver::Chosen,
    /// The Subscriptions that ask for it.
    asking: Vec<String>,
}

/// Whether what is installed for these Subscriptions, all together, waits for approval: one of them is
/// Manual. A Subscription that was generated for a dependency is Automatic in its spec; the dependency of
/// an operator that is not to change without approval must not change without it either, so it counts as
/// Manual while any Subscription of the namespace is.
fn needs_approval(input: &Input, names: &[String]) -> bool {
    let is_manual =
        |subscription: &Subscription| subscription.spec.install_plan_approval == Approval::Manual;
    names.iter().filter_map(|name| input.subscription(name)).any(|subscription| {
        is_manual(subscription)
            || (succession::is_generated(subscription) && input.subscriptions.iter().any(is_manual))
    })
}

/// Adds the steps for versions that are there without the rest of their bundles.
fn again(input: &Input, going: &mut Vec<Going>, out: &mut Resolved) {
    for name in &input.undone {
        let is_asking = |going: &Going| going.asking.contains(name);
        let Some(subscription) = input.subscription(name).filter(|_| !going.iter().any(is_asking))
        else {
            continue;
        };
        let version = &subscription.status.current_csv;
        let replaced = input.csvs.get(version).map(|csv| csv.replaces.clone()).unwrap_or_default();
        let chosen = resolver::Chosen {
            catalog: resolver::CatalogKey::new(
                &*subscription.spec.source,
                &*subscription.spec.source_namespace,
            ),
            package: subscription.spec.package.clone(),
            channel: subscription.spec.channel.clone(),
            name: version.clone(),
            version: None,
            replaces: Some(replaced).filter(|name| !name.is_empty()),
        };
        match steps_of(input, &chosen) {
            Ok(made) => going.push(Going {
                manual: needs_approval(input, std::slice::from_ref(name)),
                made,
                chosen,
                asking: vec![name.clone()],
            }),
            Err(Stop::Image(key)) => {
                out.needed.push(Needed { key, subscriptions: vec![name.clone()] });
            }
            // The catalog has it no more, or not like that; what is missing was said before.
            Err(Stop::Refused(_)) => {}
        }
    }
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
    /// With Subscriptions that wait for something else.
    held: BTreeSet<usize>,
}

/// The image that a bundle is unpacked from, if it was.
fn unpacked(input: &Input, chosen: &resolver::Chosen) -> Option<Key> {
    let catalog = NamespacedName::new(&*chosen.catalog.namespace, &*chosen.catalog.name);
    let bundle = input.content(&catalog)?.catalog().bundle(&chosen.package, &chosen.name)?;
    let key = Key { catalog, image: bundle.image.to_string() };
    (bundle.object_count() == 0 && input.unpacked.contains_key(&key)).then_some(key)
}

fn parts(input: &Input, outcome: &resolver::Outcome) -> Parts {
    let mut parts = Parts::default();
    for install in &outcome.installs {
        let Some(chosen) = outcome.resolved.get(install.chosen) else { continue };
        match way(input, &install.subscriptions, &chosen.name) {
            Way::Go => {}
            Way::Coming(_) => continue,
            Way::Wait => {
                parts.held.insert(install.part);
                continue;
            }
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
    parts.held.retain(|part| !parts.unusable.contains_key(part));
    let held = &parts.held;
    parts.waiting.retain(|part, _| !held.contains(part));
    for install in &outcome.installs {
        // Forgetting them would mean to unpack them again for the same answer.
        let stopped = parts.unusable.contains_key(&install.part)
            || parts.waiting.contains_key(&install.part)
            || parts.held.contains(&install.part);
        if let Some(chosen) = outcome.resolved.get(install.chosen).filter(|_| stopped) {
            parts.refused.extend(unpacked(input, chosen));
        }
    }
    parts
}

/// What becomes of something that was chosen.
enum Way {
    /// It gets steps.
    Go,
    /// Plans that bring it are on their way; these Subscriptions have part in that of the other.
    Coming(Vec<(String, String)>),
    /// Some who ask for it wait for something else, which has to come first.
    Wait,
}

/// A second plan for what a plan brings already would only get in the way of the first.
fn way(input: &Input, asking: &[String], version: &str) -> Way {
    let brought = |name: &&String| {
        let inherited =
            input.inherited.get(*name).is_some_and(|planned| planned.version == version);
        let planned = input
            .planned
            .iter()
            .any(|planned| planned.name == **name && planned.version == version);
        let waits = input.in_flight.contains(*name)
            && input
                .subscription(name)
                .is_some_and(|subscription| subscription.status.current_csv == version);
        inherited || planned || waits
    };
    if let Some(carrier) = asking.iter().find(brought) {
        let others = asking.iter().filter(|name| !brought(name));
        // What is planned has no plan to refer to before it is there.
        let is_there = input.in_flight.contains(carrier);
        let joining = others.filter(|_| is_there).map(|name| (name.clone(), carrier.clone()));
        return Way::Coming(joining.collect());
    }
    let busy = |name: &String| {
        (input.failed.contains(name) && input.resting.contains(version))
            || input.planned.iter().any(|planned| planned.name == *name)
            || (input.in_flight.contains(name) && !input.failed.contains(name))
    };
    if asking.iter().any(busy) { Way::Wait } else { Way::Go }
}

/// The step that makes the Subscription of a dependency.
fn subscription_step(
    input: &Input,
    outcome: &resolver::Outcome,
    chosen: &resolver::Chosen,
) -> Option<Step> {
    let new = outcome.new_subscriptions.iter().find(|subscription| {
        subscription.catalog == chosen.catalog
            && subscription.package == chosen.package
            && subscription.starting_csv == chosen.name
    })?;
    Some(steps::of_dependency(&input.namespace, new))
}

fn steps_of(input: &Input, chosen: &resolver::Chosen) -> Result<Made, Stop> {
    let key = NamespacedName::new(&*chosen.catalog.namespace, &*chosen.catalog.name);
    let name = &chosen.name;
    let gone = || Stop::Refused(format!("bundle {name} is not in catalog {key} any more"));
    let content = input.content(&key).ok_or_else(gone)?;
    let wanted = Wanted {
        bundle: content.catalog().bundle(&chosen.package, name).ok_or_else(gone)?,
        catalog: &key,
        replaces: chosen.replaces.as_deref().unwrap_or_default(),
        unpacked: &input.unpacked,
    };
    steps::of_wanted(&input.namespace, &wanted)
}
