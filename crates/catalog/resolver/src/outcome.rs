//! What resolution answers.

use crate::candidates::{Candidates, EntryRef};
use crate::existing::Existing;
use crate::explain::{self, Repair};
use crate::problem::{Subject, Var};
use crate::solve::{self, BUDGET};
use crate::texts::{self, aggregate};
use crate::world::{CatalogKey, Subscription, World};
use mainstay_cause::Cause;
use mainstay_version::quote;

/// What resolution answers.
///
/// Parts of a namespace that have nothing to do with each other may fail and succeed side by side:
/// whatever is listed here as resolved is meant to be done even when there are failures.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Outcome {
    /// The chosen catalog entries, without existing operators; by package, then name.
    pub resolved: Vec<Chosen>,
    /// Those of them whose installation is to be started.
    pub installs: Vec<Install>,
    /// Subscriptions to be made for what was chosen although no Subscription asks for it.
    pub new_subscriptions: Vec<NewSubscription>,
    /// Subscriptions whose `status.currentCSV` changes.
    pub updated_subscriptions: Vec<UpdatedSubscription>,
    /// What could not be resolved.
    pub failures: Vec<Failure>,
}

/// A chosen catalog entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chosen {
    /// The catalog.
    pub catalog: CatalogKey,
    /// The package.
    pub package: String,
    /// The channel.
    pub channel: String,
    /// The bundle, which is also the name of the ClusterServiceVersion.
    pub name: String,
    /// The version, if it can be read.
    pub version: Option<String>,
    /// The version that it replaces: the installed one for an upgrade, otherwise what the entry
    /// says.
    pub replaces: Option<String>,
}

/// An installation to be started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Install {
    /// Index into [`Outcome::resolved`].
    pub chosen: usize,
    /// Names of the Subscriptions that ask for it, in order; empty for a dependency.
    pub subscriptions: Vec<String>,
}

/// A Subscription to be made for a dependency.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewSubscription {
    /// Its name: package, channel, catalog and namespace of the catalog.
    pub name: String,
    /// The package.
    pub package: String,
    /// The channel.
    pub channel: String,
    /// The catalog.
    pub catalog: CatalogKey,
    /// The chosen version.
    pub starting_csv: String,
}

/// A Subscription whose status changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UpdatedSubscription {
    /// Its name.
    pub name: String,
    /// The new `status.currentCSV`.
    pub current_csv: String,
}

/// Why something was not resolved.
#[derive(Clone, Debug, PartialEq)]
pub struct Failure {
    /// What kind of failure it is.
    pub kind: FailureKind,
    /// The message for conditions.
    pub message: String,
    /// The same for people.
    pub cause: Cause,
    /// The Subscriptions that it concerns, by name.
    pub subscriptions: Vec<String>,
    /// Changes each of which mends it, the nearest first; the remedies of the cause say the same.
    pub repairs: Vec<Repair>,
}

/// What kind of failure it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FailureKind {
    /// The wishes contradict each other; only a change of the world helps.
    NotSatisfiable,
    /// Something is broken: a catalog, a channel, an annotation.
    Error,
}

impl FailureKind {
    /// The reason of the condition `ResolutionFailed`.
    pub const fn reason(self) -> &'static str {
        match self {
            Self::NotSatisfiable => "ConstraintsNotSatisfiable",
            Self::Error => "ErrorPreventedResolution",
        }
    }
}

/// Resolves a namespace.
pub fn resolve(world: &World<'_>) -> Outcome {
    run(world, true)
}

/// The same without reasons: failures have neither message nor cause nor repairs.
pub(crate) fn attempt(world: &World<'_>) -> Outcome {
    run(world, false)
}

fn run(world: &World<'_>, explained: bool) -> Outcome {
    let result = one_group(world).and_then(|(fail_forward, exclude_global)| {
        if let Some(name) = world.repeated() {
            return Err(error(format!("duplicate identifier {} in input", quote(&name))));
        }
        let existing = Existing::of(world, fail_forward);
        let candidates = Candidates::of(world, exclude_global, &existing).map_err(error)?;
        let answer = search(world, &candidates, explained)?;
        outcome(world, &candidates, &answer)
    });
    result.unwrap_or_else(|mut failure| {
        failure.subscriptions =
            world.subscriptions.iter().map(|subscription| subscription.name.clone()).collect();
        failure.subscriptions.sort();
        Outcome { failures: vec![*failure], ..Outcome::default() }
    })
}

fn error(message: String) -> Box<Failure> {
    failure(FailureKind::Error, message)
}

fn failure(kind: FailureKind, message: String) -> Box<Failure> {
    let cause = Cause::new(message.clone());
    Box::new(Failure { kind, message, cause, subscriptions: Vec::new(), repairs: Vec::new() })
}

/// The settings of the one OperatorGroup.
fn one_group(world: &World<'_>) -> Result<(bool, bool), Box<Failure>> {
    match world.operator_groups.as_slice() {
        [group] => Ok((group.fail_forward, group.exclude_global)),
        groups => {
            Err(error(format!("expected 1 OperatorGroup in the namespace, found {}", groups.len())))
        }
    }
}

/// The chosen entries of catalogs.
fn search(
    world: &World<'_>,
    candidates: &Candidates<'_>,
    explained: bool,
) -> Result<Vec<(Var, EntryRef)>, Box<Failure>> {
    let gave_up =
        |_| error(format!("no answer was found within {BUDGET} steps, the namespace was given up"));
    let mut budget = BUDGET;
    let Some(answer) = solve::solve(&candidates.problem, &mut budget).map_err(gave_up)? else {
        if !explained {
            return Err(failure(FailureKind::NotSatisfiable, String::new()));
        }
        let core = solve::core(&candidates.problem, &mut budget).map_err(gave_up)?;
        let mut reasons: Vec<String> = core
            .iter()
            .map(|at| texts::constraint(candidates, &candidates.problem.constraints[*at]))
            .collect();
        reasons.sort();
        let message = texts::unsatisfiable(&reasons);
        let mut failure = failure(FailureKind::NotSatisfiable, message);
        (failure.cause, failure.repairs) = explain::contradiction(world, candidates, &core);
        return Err(failure);
    };
    Ok(answer
        .into_iter()
        .filter_map(|var| match candidates.problem.subjects[var.index()] {
            Subject::Bundle(at) if at.source != 0 => Some((var, at)),
            _ => None,
        })
        .collect())
}

fn outcome(
    world: &World<'_>,
    candidates: &Candidates<'_>,
    answer: &[(Var, EntryRef)],
) -> Result<Outcome, Box<Failure>> {
    let mut errors = Vec::new();
    for &(var, at) in answer {
        if candidates.is_unreadable(at) {
            return Err(error(format!(
                "error determining origin of operator: unable to parse identifier {} for source \
                 info",
                candidates.identifier(var)
            )));
        }
        match candidates.occurrences(at) {
            1 => {}
            count => errors.push(format!("expected exactly one operator, got {count}")),
        }
    }
    if !errors.is_empty() {
        return Err(error(aggregate(&errors)));
    }

    let mut answer = answer.to_vec();
    answer.sort_by_key(|(_, at)| {
        let entry = candidates.entry(*at).0;
        (entry.package.clone(), entry.name.clone(), candidates.catalog(*at).clone())
    });
    let mut outcome = Outcome::default();
    for (var, at) in answer {
        let (entry, facts) = candidates.entry(at);
        let catalog = candidates.catalog(at);
        let replacement = candidates.replacements.get(&var).cloned();
        let chosen = outcome.resolved.len();
        outcome.resolved.push(Chosen {
            catalog: catalog.clone(),
            package: entry.package.to_string(),
            channel: entry.channel.to_string(),
            name: entry.name.to_string(),
            version: entry.version.as_ref().map(ToString::to_string),
            replaces: replacement.or_else(|| entry.replaces.as_deref().map(str::to_owned)),
        });
        let asking: Vec<&Subscription> = candidates
            .subscriptions
            .iter()
            .copied()
            .filter(|subscription| {
                let any = subscription.catalog == CatalogKey::default();
                subscription.package == *entry.package
                    && (subscription.channel.is_empty() || subscription.channel == *entry.channel)
                    && (any || subscription.catalog == *catalog)
            })
            .collect();
        let is_current = |subscription: &&Subscription| {
            subscription.current_csv == *entry.name
                && world.csvs.iter().any(|csv| csv.name == subscription.current_csv)
        };
        if !asking.is_empty() && asking.iter().all(is_current) {
            continue;
        }
        if let Some(reason) = &facts.unwritable {
            return Err(error(format!(
                "failed to serialize operator properties for {}: failed to marshal properties \
                 annotation: json: error calling MarshalJSON for type json.RawMessage: {reason}",
                quote(&entry.name)
            )));
        }
        outcome.installs.push(Install {
            chosen,
            subscriptions: asking.iter().map(|subscription| subscription.name.clone()).collect(),
        });
        if asking.is_empty() {
            let CatalogKey { name, namespace } = catalog;
            outcome.new_subscriptions.push(NewSubscription {
                name: format!("{}-{}-{name}-{namespace}", entry.package, entry.channel),
                package: entry.package.to_string(),
                channel: entry.channel.to_string(),
                catalog: catalog.clone(),
                starting_csv: entry.name.to_string(),
            });
        }
        for subscription in asking {
            if subscription.current_csv != *entry.name {
                outcome.updated_subscriptions.push(UpdatedSubscription {
                    name: subscription.name.clone(),
                    current_csv: entry.name.to_string(),
                });
            }
        }
    }
    outcome.updated_subscriptions.sort_by(|a, b| a.name.cmp(&b.name));
    outcome.new_subscriptions.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(outcome)
}
