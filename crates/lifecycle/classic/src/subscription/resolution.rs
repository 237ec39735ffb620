//! Resolution: chooses the bundles that a namespace installs, and turns them into InstallPlan
//! steps.
//!
//! A resolution is CPU-bound and runs on a blocking thread, on copies of the observed state.

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

/// A chosen bundle that must be unpacked before it has steps.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NeededBundle {
    pub(crate) key: Key,
    /// The Subscriptions that wait for it.
    pub(crate) subscriptions: Vec<String>,
}

/// Why Subscriptions cannot be resolved.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Failure {
    pub(crate) reason: SubscriptionReason,
    pub(crate) message: String,
    /// The Subscriptions that the failure concerns.
    pub(crate) subscriptions: Vec<String>,
    /// The CSVs without a Subscription that the failure concerns.
    pub(crate) csvs: Vec<String>,
    /// The requirement, the conflict and the suggested fix in one line; none if the failure was
    /// reported before.
    pub(crate) explanation: Option<String>,
}

/// The longest explanation in bytes; some consumers truncate longer Events.
const MAX_EXPLANATION: usize = 1024;

/// The text of a failure for an Event.
fn explanation(failure: &resolver::ResolutionFailure) -> String {
    let mut text = failure.cause.to_string();
    if text.len() > MAX_EXPLANATION {
        // The suggested fix is at the end of the text, and matters most.
        let repair =
            failure.repairs.first().map(|repair| format!(" … ({repair})")).unwrap_or_default();
        let repair = if repair.len() < MAX_EXPLANATION / 2 { repair } else { " …".to_owned() };
        text.truncate(text.floor_char_boundary(MAX_EXPLANATION - repair.len()));
        text.push_str(&repair);
    }
    text
}

/// Whether some Subscription that a failure concerns does not report it yet.
fn is_unreported(input: &ResolutionInput, failure: &resolver::ResolutionFailure) -> bool {
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

/// The result of a resolution.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct ResolutionResult {
    /// The steps of one InstallPlan; empty if nothing is to be installed.
    pub(crate) steps: Vec<Step>,
    /// Whether the InstallPlan waits for approval. Installs that need approval come first, in an
    /// InstallPlan of their own. The others follow when that InstallPlan exists.
    pub(crate) manual: bool,
    /// The CSV that each Subscription gets.
    pub(crate) updates: BTreeMap<String, String>,
    pub(crate) failures: Vec<Failure>,
    /// Bundles that must be unpacked first. Installs that belong to the same part have no steps
    /// yet.
    pub(crate) needed: Vec<NeededBundle>,
    /// Bundles whose objects are in the steps, and their entries in the InstallPlan.
    pub(crate) used: BTreeSet<Key>,
    pub(crate) lookups: Vec<BundleLookup>,
    /// Unpacked bundles that cannot be installed.
    pub(crate) refused: BTreeSet<Key>,
    /// The fingerprint of the input, from [`ResolutionInput::fingerprint`].
    pub(crate) fingerprint: String,
    /// Why no InstallPlan can be created for the resolved steps, by Subscription.
    pub(crate) unplanned: BTreeMap<String, String>,
    /// How often in a row the API refused an InstallPlan for this result.
    pub(crate) refusals: u32,
    /// When a refused InstallPlan is tried again, by the clock's elapsed time; none if only a
    /// different resolution helps.
    pub(crate) until: Option<Duration>,
    /// Subscriptions that wait for an upgrade in progress; their conditions stay until it ends.
    pub(crate) on_hold: BTreeSet<String>,
    /// Subscriptions that get the InstallPlan of another Subscription, which installs what they
    /// want.
    pub(crate) joining: BTreeMap<String, String>,
}

impl ResolutionResult {
    /// Adds the steps of a chosen bundle for the Subscriptions that get it.
    fn add(
        &mut self,
        (steps, lookup): BundleSteps,
        chosen: &resolver::ChosenBundle,
        subscriptions: &[String],
    ) {
        self.steps.extend(steps);
        if let Some((key, lookup)) = lookup {
            self.used.insert(key);
            self.lookups.push(lookup);
        }
        self.updates.extend(subscriptions.iter().map(|name| (name.clone(), chosen.name.clone())));
    }

    /// This result without steps, because the API refuses an InstallPlan for them.
    pub(crate) fn without_plan(&self, message: &str) -> Self {
        let unplanned = self.updates.keys().map(|name| (name.clone(), message.to_owned()));
        Self {
            failures: self.failures.clone(),
            needed: self.needed.clone(),
            // Kept as long as this result: dropping the unpacked bundles would cause another
            // resolution.
            refused: self.refused.union(&self.used).cloned().collect(),
            fingerprint: self.fingerprint.clone(),
            unplanned: unplanned.collect(),
            on_hold: self.on_hold.clone(),
            joining: self.joining.clone(),
            ..Self::default()
        }
    }
}

/// Resolves a namespace and turns the chosen bundles into steps.
pub(crate) fn run(input: &ResolutionInput) -> ResolutionResult {
    let outcome = resolver::resolve_explaining(&input.resolution_input(), |failure| {
        is_unreported(input, failure)
    });
    let mut out = ResolutionResult::default();
    // A catalog failure that concerns no Subscription and no CSV is reported on the catalog.
    let has_subject = |failure: &&resolver::ResolutionFailure| {
        !failure.subscriptions.is_empty() || !failure.csvs.is_empty()
    };
    for failure in outcome.failures.iter().filter(has_subject) {
        // The failure changes, or disappears, when the upgrade in progress ends.
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
        // The resolver chooses a part as a whole, so it is installed as a whole or not at all.
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
            // These installs follow when the InstallPlan of the others exists.
            out.refused.extend(unpacked_image(input, &install.chosen));
        }
    }
    out.steps = steps::in_install_order(out.steps);
    out
}

/// A chosen bundle that can be installed.
struct PlannedInstall {
    manual: bool,
    steps: BundleSteps,
    chosen: resolver::ChosenBundle,
    /// The Subscriptions that want it.
    subscriptions: Vec<String>,
}

/// Whether the installs for these Subscriptions wait for approval together: one of them is Manual.
///
/// The spec of a generated Subscription says Automatic. Yet the dependency of an operator that
/// needs approval must not change without approval either. So it counts as Manual while any
/// Subscription of the namespace is Manual.
fn needs_approval(input: &ResolutionInput, names: &[String]) -> bool {
    let is_manual =
        |subscription: &Subscription| subscription.spec.install_plan_approval == Approval::Manual;
    names.iter().filter_map(|name| input.subscription(name)).any(|subscription| {
        is_manual(subscription)
            || (succession::is_generated(subscription) && input.subscriptions.iter().any(is_manual))
    })
}

/// Adds the steps for CSVs that exist without the other objects of their bundle.
fn complete_csvs(
    input: &ResolutionInput,
    installs: &mut Vec<PlannedInstall>,
    out: &mut ResolutionResult,
) {
    for name in &input.incomplete {
        let serves = |install: &PlannedInstall| install.subscriptions.contains(name);
        let Some(subscription) = input.subscription(name).filter(|_| !installs.iter().any(serves))
        else {
            continue;
        };
        let csv_name = &subscription.status.current_csv;
        let replaced = input.csvs.get(csv_name).map(|csv| csv.replaces.clone()).unwrap_or_default();
        let chosen = resolver::ChosenBundle {
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
            // The catalog no longer has this bundle in this form. The missing objects were reported
            // before.
            Err(NoSteps::Refused(_)) => {}
        }
    }
}

/// The parts that get no steps, or not yet.
#[derive(Default)]
struct BlockedParts {
    /// Parts with a bundle that cannot be installed, and why.
    unusable: BTreeMap<usize, String>,
    /// Parts with bundles that must be unpacked first.
    waiting: BTreeMap<usize, BTreeSet<Key>>,
    /// The unpacked bundles of parts that get no steps.
    refused: BTreeSet<Key>,
    /// Parts with Subscriptions that wait for another install.
    on_hold: BTreeSet<usize>,
}

/// The image of a bundle, if it was unpacked from one.
fn unpacked_image(input: &ResolutionInput, chosen: &resolver::ChosenBundle) -> Option<Key> {
    let catalog = NamespacedName::new(&*chosen.catalog.namespace, &*chosen.catalog.name);
    let bundle = input.content(&catalog)?.catalog().bundle(&chosen.package, &chosen.name)?;
    let key = Key { catalog, image: bundle.image.to_string() };
    (bundle.object_count() == 0 && input.unpacked.contains_key(&key)).then_some(key)
}

fn blocked_parts(input: &ResolutionInput, outcome: &resolver::Resolution) -> BlockedParts {
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
    // A part that will not be installed needs no unpacked bundles.
    parts.waiting.retain(|part, _| !parts.unusable.contains_key(part));
    parts.on_hold.retain(|part| !parts.unusable.contains_key(part));
    let on_hold = &parts.on_hold;
    parts.waiting.retain(|part, _| !on_hold.contains(part));
    for install in &outcome.installs {
        // Keep them, as the next resolution would unpack them again for the same result.
        let stopped = parts.unusable.contains_key(&install.part)
            || parts.waiting.contains_key(&install.part)
            || parts.on_hold.contains(&install.part);
        if let Some(chosen) = outcome.resolved.get(install.chosen).filter(|_| stopped) {
            parts.refused.extend(unpacked_image(input, chosen));
        }
    }
    parts
}

/// What happens with a chosen bundle.
enum InstallDecision {
    /// Its steps are part of the next InstallPlan.
    Install,
    /// An existing InstallPlan installs it already; these Subscriptions join the one that owns that
    /// InstallPlan.
    Join(Vec<(String, String)>),
    /// Some Subscription that wants it waits for another install, which comes first.
    Wait,
}

/// Decides whether a chosen bundle needs steps. A second InstallPlan for the same CSV would only
/// interfere with the first.
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
        // A planned Subscription does not exist yet, so it has no InstallPlan to refer to.
        let is_there = input.in_flight.contains(carrier);
        let joining = others.filter(|_| is_there).map(|name| (name.clone(), carrier.clone()));
        return InstallDecision::Join(joining.collect());
    }
    let busy = |name: &String| {
        (input.failed.contains(name) && input.backing_off.contains(csv_name))
            || input.planned.iter().any(|generated| generated.name == *name)
            || (input.in_flight.contains(name) && !input.failed.contains(name))
    };
    if subscriptions.iter().any(busy) { InstallDecision::Wait } else { InstallDecision::Install }
}

/// The step that creates the Subscription of a dependency.
fn subscription_step(
    input: &ResolutionInput,
    outcome: &resolver::Resolution,
    chosen: &resolver::ChosenBundle,
) -> Option<Step> {
    let new = outcome.new_subscriptions.iter().find(|subscription| {
        subscription.catalog == chosen.catalog
            && subscription.package == chosen.package
            && subscription.starting_csv == chosen.name
    })?;
    Some(steps::for_dependency(&input.namespace, new))
}

fn steps_of(
    input: &ResolutionInput,
    chosen: &resolver::ChosenBundle,
) -> Result<BundleSteps, NoSteps> {
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
