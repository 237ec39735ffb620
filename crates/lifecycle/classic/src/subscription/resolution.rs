//! What a namespace should have installed, and the steps to get there.
//!
//! Everything here burns CPU and runs on a thread of its own: it works on copies of what was seen.

use super::input::ResolutionInput;
use super::succession;
use crate::image::bundles::Key;
use crate::steps::{self, BundleInstall, BundleSteps, NoSteps};
use mainstay_api::{
    Approval, BundleLookup, Step, Subscription, SubscriptionConditionType, SubscriptionReason,
};
use mainstay_object::NamespacedName;
use mainstay_resolver as resolver;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// A bundle that was chosen and must be unpacked before there can be steps.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NeededBundle {
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
const MAX_EXPLANATION: usize = 1024;

/// An explanation as an event tells it.
fn explanation(failure: &resolver::Failure) -> String {
    let mut text = failure.cause.to_string();
    if text.len() > MAX_EXPLANATION {
        // What would mend it stands at the end and matters most.
        let repair =
            failure.repairs.first().map(|repair| format!(" … ({repair})")).unwrap_or_default();
        let repair = if repair.len() < MAX_EXPLANATION / 2 { repair } else { " …".to_owned() };
        text.truncate(text.floor_char_boundary(MAX_EXPLANATION - repair.len()));
        text.push_str(&repair);
    }
    text
}

/// Whether somebody whom a failure concerns was not told of it yet.
fn is_unreported(input: &ResolutionInput, failure: &resolver::Failure) -> bool {
    let is_reported = |subscription: &&Subscription| {
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
        || !concerned.into_iter().all(|subscription| is_reported(&subscription))
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
    pub(crate) needed: Vec<NeededBundle>,
    /// Bundles whose objects are in the steps, and what the plan says of them.
    pub(crate) used: BTreeSet<Key>,
    pub(crate) lookups: Vec<BundleLookup>,
    /// Bundles that were unpacked and cannot be installed all the same.
    pub(crate) refused: BTreeSet<Key>,
    /// What this was resolved from, as [`Input::fingerprint`] tells it.
    pub(crate) fingerprint: String,
    /// Why no plan can be made for the steps that there were, by Subscription.
    pub(crate) unplanned: BTreeMap<String, String>,
    /// How often in a row a plan for this was refused.
    pub(crate) refusals: u32,
    /// When a plan is tried again that was refused, by the clock's elapsed time; none if only
    /// something else that comes of a resolution can help.
    pub(crate) until: Option<Duration>,
    /// Subscriptions that wait for something under way before more can be said of them.
    pub(crate) on_hold: BTreeSet<String>,
    /// Subscriptions that get the plan of another one, which brings what they ask for.
    pub(crate) joining: BTreeMap<String, String>,
}

impl Resolved {
    /// Adds the steps for what Subscriptions get.
    fn add(
        &mut self,
        (steps, lookup): BundleSteps,
        chosen: &resolver::Chosen,
        subscriptions: &[String],
    ) {
        self.steps.extend(steps);
        if let Some((key, lookup)) = lookup {
            self.used.insert(key);
            self.lookups.push(lookup);
        }
        self.updates.extend(subscriptions.iter().map(|name| (name.clone(), chosen.name.clone())));
    }

    /// The same without steps, because a plan for them is refused.
    pub(crate) fn without_plan(&self, message: &str) -> Self {
        let unplanned = self.updates.keys().map(|name| (name.clone(), message.to_owned()));
        Self {
            failures: self.failures.clone(),
            needed: self.needed.clone(),
            // Kept for as long as this is: without them it would be resolved again.
            refused: self.refused.union(&self.used).cloned().collect(),
            fingerprint: self.fingerprint.clone(),
            unplanned: unplanned.collect(),
            on_hold: self.on_hold.clone(),
            joining: self.joining.clone(),
            ..Self::default()
        }
    }
}

/// Resolves and turns what was chosen into steps.
pub(crate) fn run(input: &ResolutionInput) -> Resolved {
    let outcome = resolver::resolve_explaining(&input.resolver_world(), |failure| {
        is_unreported(input, failure)
    });
    let mut out = Resolved::default();
    // What is broken and in nobody's way is told where it is broken.
    let has_subject = |failure: &&resolver::Failure| {
        !failure.subscriptions.is_empty() || !failure.csvs.is_empty()
    };
    for failure in outcome.failures.iter().filter(has_subject) {
        // It will be something else, or nothing, when what is under way has come to an end.
        if input.pinned.values().any(|why| failure.message.contains(why)) {
            out.on_hold.extend(failure.subscriptions.iter().cloned());
            continue;
        }
        out.failures.push(Failure {
            reason: failure.kind.reason().into(),
            message: failure.message.clone(),
            subscriptions: failure.subscriptions.clone(),
            csvs: if failure.subscriptions.is_empty() { failure.csvs.clone() } else { Vec::new() },
            explanation: is_unreported(input, failure).then(|| explanation(failure)),
        });
    }
    let members = |part: &usize| outcome.parts.get(*part).cloned().unwrap_or_default();
    let BlockedParts { unusable, waiting, refused, on_hold } = blocked_parts(input, &outcome);
    out.refused = refused;
    out.on_hold.extend(on_hold.iter().flat_map(members));
    for (part, keys) in &waiting {
        let needed = |key: &Key| NeededBundle { key: key.clone(), subscriptions: members(part) };
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
    let mut installs = Vec::new();
    for install in &outcome.installs {
        let Some(chosen) = outcome.resolved.get(install.chosen) else { continue };
        // Half of what belongs together is worse than nothing: a part was chosen as a whole.
        if unusable.contains_key(&install.part)
            || waiting.contains_key(&install.part)
            || on_hold.contains(&install.part)
        {
            continue;
        }
        match install_decision(input, &install.subscriptions, &chosen.name) {
            InstallDecision::Install => {}
            InstallDecision::Join(joining) => {
                out.joining.extend(joining);
                continue;
            }
            InstallDecision::Wait => continue,
        }
        if let Ok(mut steps) = steps_of(input, chosen) {
            if install.subscriptions.is_empty() {
                steps.0.extend(subscription_step(input, &outcome, chosen));
            }
            installs.push(PlannedInstall {
                manual: needs_approval(input, &members(&install.part)),
                steps,
                chosen: chosen.clone(),
                subscriptions: install.subscriptions.clone(),
            });
        }
    }
    complete_csvs(input, &mut installs, &mut out);
    out.manual = installs.iter().any(|install| install.manual);
    for install in installs {
        if install.manual == out.manual {
            out.add(install.steps, &install.chosen, &install.subscriptions);
        } else {
            // Its turn comes when the others have their plan.
            out.refused.extend(unpacked_image(input, &install.chosen));
        }
    }
    out.steps = steps::in_install_order(out.steps);
    out
}

/// What was chosen and can be installed.
struct PlannedInstall {
    manual: bool,
    steps: BundleSteps,
    chosen: resolver::Chosen,
    /// The Subscriptions that ask for it.
    subscriptions: Vec<String>,
}

/// Whether what is installed for these Subscriptions, all together, waits for approval: one of them is
/// Manual. A Subscription that was generated for a dependency is Automatic in its spec; the dependency of
/// an operator that is not to change without approval must not change without it either, so it counts as
/// Manual while any Subscription of the namespace is.
fn needs_approval(input: &ResolutionInput, names: &[String]) -> bool {
    let is_manual =
        |subscription: &Subscription| subscription.spec.install_plan_approval == Approval::Manual;
    names.iter().filter_map(|name| input.subscription(name)).any(|subscription| {
        is_manual(subscription)
            || (succession::is_generated(subscription) && input.subscriptions.iter().any(is_manual))
    })
}

/// Adds the steps for versions that are there without the rest of their bundles.
fn complete_csvs(input: &ResolutionInput, installs: &mut Vec<PlannedInstall>, out: &mut Resolved) {
    for name in &input.incomplete {
        let serves = |install: &PlannedInstall| install.subscriptions.contains(name);
        let Some(subscription) = input.subscription(name).filter(|_| !installs.iter().any(serves))
        else {
            continue;
        };
        let csv_name = &subscription.status.current_csv;
        let replaced = input.csvs.get(csv_name).map(|csv| csv.replaces.clone()).unwrap_or_default();
        let chosen = resolver::Chosen {
            catalog: resolver::CatalogKey::new(
                &*subscription.spec.source,
                &*subscription.spec.source_namespace,
            ),
            package: subscription.spec.package.clone(),
            channel: subscription.spec.channel.clone(),
            name: csv_name.clone(),
            version: None,
            replaces: Some(replaced).filter(|name| !name.is_empty()),
        };
        match steps_of(input, &chosen) {
            Ok(steps) => installs.push(PlannedInstall {
                manual: needs_approval(input, std::slice::from_ref(name)),
                steps,
                chosen,
                subscriptions: vec![name.clone()],
            }),
            Err(NoSteps::Image(key)) => {
                out.needed.push(NeededBundle { key, subscriptions: vec![name.clone()] });
            }
            // The catalog has it no more, or not like that; what is missing was said before.
            Err(NoSteps::Refused(_)) => {}
        }
    }
}

/// Parts that get no steps, or not yet.
#[derive(Default)]
struct BlockedParts {
    /// With a bundle that cannot be installed, and why.
    unusable: BTreeMap<usize, String>,
    /// With bundles that must be unpacked first.
    waiting: BTreeMap<usize, BTreeSet<Key>>,
    /// The unpacked bundles of parts that get no steps.
    refused: BTreeSet<Key>,
    /// With Subscriptions that wait for something else.
    on_hold: BTreeSet<usize>,
}

/// The image that a bundle is unpacked from, if it was.
fn unpacked_image(input: &ResolutionInput, chosen: &resolver::Chosen) -> Option<Key> {
    let catalog = NamespacedName::new(&*chosen.catalog.namespace, &*chosen.catalog.name);
    let bundle = input.content(&catalog)?.catalog().bundle(&chosen.package, &chosen.name)?;
    let key = Key { catalog, image: bundle.image.to_string() };
    (bundle.object_count() == 0 && input.unpacked.contains_key(&key)).then_some(key)
}

fn blocked_parts(input: &ResolutionInput, outcome: &resolver::Outcome) -> BlockedParts {
    let mut parts = BlockedParts::default();
    for install in &outcome.installs {
        let Some(chosen) = outcome.resolved.get(install.chosen) else { continue };
        match install_decision(input, &install.subscriptions, &chosen.name) {
            InstallDecision::Install => {}
            InstallDecision::Join(_) => continue,
            InstallDecision::Wait => {
                parts.on_hold.insert(install.part);
                continue;
            }
        }
        match steps_of(input, chosen) {
            Ok(_) => {}
            Err(NoSteps::Refused(message)) => {
                parts.unusable.entry(install.part).or_insert(message);
            }
            Err(NoSteps::Image(key)) => {
                parts.waiting.entry(install.part).or_default().insert(key);
            }
        }
    }
    // What will not be installed need not be unpacked.
    parts.waiting.retain(|part, _| !parts.unusable.contains_key(part));
    parts.on_hold.retain(|part| !parts.unusable.contains_key(part));
    let on_hold = &parts.on_hold;
    parts.waiting.retain(|part, _| !on_hold.contains(part));
    for install in &outcome.installs {
        // Forgetting them would mean to unpack them again for the same answer.
        let stopped = parts.unusable.contains_key(&install.part)
            || parts.waiting.contains_key(&install.part)
            || parts.on_hold.contains(&install.part);
        if let Some(chosen) = outcome.resolved.get(install.chosen).filter(|_| stopped) {
            parts.refused.extend(unpacked_image(input, chosen));
        }
    }
    parts
}

/// What becomes of something that was chosen.
enum InstallDecision {
    /// It gets steps.
    Install,
    /// Plans that bring it are on their way; these Subscriptions have part in that of the other.
    Join(Vec<(String, String)>),
    /// Some who ask for it wait for something else, which has to come first.
    Wait,
}

/// A second plan for what a plan brings already would only get in the way of the first.
fn install_decision(
    input: &ResolutionInput,
    subscriptions: &[String],
    csv_name: &str,
) -> InstallDecision {
    let brought = |name: &&String| {
        let inherited =
            input.inherited.get(*name).is_some_and(|planned| planned.starting_csv == csv_name);
        let planned = input
            .planned
            .iter()
            .any(|planned| planned.name == **name && planned.starting_csv == csv_name);
        let waits = input.in_flight.contains(*name)
            && input
                .subscription(name)
                .is_some_and(|subscription| subscription.status.current_csv == csv_name);
        inherited || planned || waits
    };
    if let Some(carrier) = subscriptions.iter().find(brought) {
        let others = subscriptions.iter().filter(|name| !brought(name));
        // What is planned has no plan to refer to before it is there.
        let is_there = input.in_flight.contains(carrier);
        let joining = others.filter(|_| is_there).map(|name| (name.clone(), carrier.clone()));
        return InstallDecision::Join(joining.collect());
    }
    let busy = |name: &String| {
        (input.failed.contains(name) && input.backing_off.contains(csv_name))
            || input.planned.iter().any(|planned| planned.name == *name)
            || (input.in_flight.contains(name) && !input.failed.contains(name))
    };
    if subscriptions.iter().any(busy) { InstallDecision::Wait } else { InstallDecision::Install }
}

/// The step that makes the Subscription of a dependency.
fn subscription_step(
    input: &ResolutionInput,
    outcome: &resolver::Outcome,
    chosen: &resolver::Chosen,
) -> Option<Step> {
    let new = outcome.new_subscriptions.iter().find(|subscription| {
        subscription.catalog == chosen.catalog
            && subscription.package == chosen.package
            && subscription.starting_csv == chosen.name
    })?;
    Some(steps::for_dependency(&input.namespace, new))
}

fn steps_of(input: &ResolutionInput, chosen: &resolver::Chosen) -> Result<BundleSteps, NoSteps> {
    let key = NamespacedName::new(&*chosen.catalog.namespace, &*chosen.catalog.name);
    let name = &chosen.name;
    let gone = || NoSteps::Refused(format!("bundle {name} is not in catalog {key} any more"));
    let content = input.content(&key).ok_or_else(gone)?;
    let wanted = BundleInstall {
        bundle: content.catalog().bundle(&chosen.package, name).ok_or_else(gone)?,
        catalog: &key,
        replaces: chosen.replaces.as_deref().unwrap_or_default(),
        unpacked: &input.unpacked,
    };
    steps::for_install(&input.namespace, &wanted)
}
