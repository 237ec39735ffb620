//! Broken input: explains failures of catalogs, channels, bundles and the whole namespace.
//!
//! The messages of faults are those of upstream and hardly name the place. This module finds the
//! place in the input again, by comparing messages.

use super::missing::{catalogs, is_visible};
use super::names;
use super::remedies;
use super::repair::SuggestedFix;
use super::suggestions::{self, Participants};
use super::what_if::FailureContext;
use crate::candidates::{Candidates, CatalogError, FaultSubject};
use crate::existing::ExistingError;
use crate::input::{
    CatalogContent, CatalogKey, CatalogView, ExistingCsv, ResolutionInput, Subscription,
};
use crate::outcome::ResolutionFailure;
use crate::problem::{Subject, Var};
use crate::snapshot::{Entry, Snapshot};
use mainstay_cause::Cause;
use mainstay_gocompat::quote;
use mainstay_updates::{ChannelOrderError, chain};
use std::collections::BTreeSet;

/// How many places an explanation names.
const MAX_PLACES: usize = 4;

/// Explains the failure of a whole namespace; `existing` is the error of its existing operators, if
/// that is the only reason.
pub(crate) fn explain_namespace(
    input: &ResolutionInput<'_>,
    failure: &mut ResolutionFailure,
    existing: Option<&ExistingError>,
) {
    if input.operator_groups.len() == 1 {
        if let Some(error) = existing {
            explain_existing(input, failure, error);
        } else {
            let cause = Cause::new("nothing in the namespace can be resolved");
            failure.cause = cause.because(Cause::new(failure.message.clone()));
        }
    } else {
        explain_operator_groups(input, failure);
    }
}

/// Explains the failure of a namespace without exactly one OperatorGroup.
fn explain_operator_groups(input: &ResolutionInput<'_>, failure: &mut ResolutionFailure) {
    let namespace = &input.namespace;
    let mut groups: Vec<&str> =
        input.operator_groups.iter().map(|operator_group| operator_group.name.as_str()).collect();
    groups.sort_unstable();
    let quoted = names::quoted(groups.iter().copied());
    let (what, repairs) = if groups.is_empty() {
        let add = SuggestedFix::AddOperatorGroup { namespace: namespace.clone() };
        (format!("namespace `{namespace}` has no OperatorGroup"), vec![add])
    } else {
        let what = format!(
            "namespace `{namespace}` has {} OperatorGroups: {}",
            groups.len(),
            names::some(&quoted, "and")
        );
        let remove =
            |name: &str| SuggestedFix::RemoveOperatorGroup { operator_group: name.to_owned() };
        // With more than two OperatorGroups, one deletion is not enough.
        let two: Vec<&str> = if groups.len() == 2 { groups } else { Vec::new() };
        (what, two.into_iter().map(remove).collect())
    };
    let cause = Cause::new("nothing in the namespace can be resolved").because(Cause::new(what));
    failure.cause =
        if repairs.is_empty() { cause.remedy("delete all OperatorGroups but one") } else { cause };
    failure.repairs = repairs;
    remedies(failure);
}

/// Explains the failure of a namespace whose existing operators cannot be read.
fn explain_existing(
    input: &ResolutionInput<'_>,
    failure: &mut ResolutionFailure,
    error: &ExistingError,
) {
    let mut csvs: Vec<&ExistingCsv> = input.csvs.iter().filter(|csv| !csv.copied).collect();
    csvs.sort_by(|a, b| a.name.cmp(&b.name));
    let find_csv = |name: &str| csvs.iter().copied().find(|csv| csv.name == name);
    let reason = match error {
        ExistingError::ParseProperties { csv, error } => {
            failure.repairs = vec![SuggestedFix::DropProperties { csv: csv.clone() }];
            Cause::new(format!(
                "the annotation `operatorframework.io/properties` of ClusterServiceVersion `{csv}` \
                 cannot be read: {error}"
            ))
        }
        ExistingError::ParseCrdName { crd } => {
            let has = |csv: &&&ExistingCsv| {
                csv.owned_crds
                    .iter()
                    .chain(&csv.required_crds)
                    .any(|reference| reference.name == *crd)
            };
            let csv_names = names::quoted(csvs.iter().filter(has).map(|csv| csv.name.as_str()));
            Cause::new(format!(
                "ClusterServiceVersion {} names a custom resource definition `{crd}`, without a \
                 group",
                names::some(&csv_names, "and")
            ))
            .remedy("name it `plural.group`")
        }
        ExistingError::NotReplacing { csv, phase, .. } if find_csv(csv).is_some() => {
            let next = csvs.iter().find(|next| next.replaces == *csv);
            let by = next.map(|next| format!(" by `{}`", next.name)).unwrap_or_default();
            Cause::new(format!(
                "ClusterServiceVersion `{csv}` is being replaced{by}, but its phase is {} instead of \
                 Replacing",
                if phase.is_empty() { "unknown" } else { phase }
            ))
            .remedy("wait until its phase is Replacing, or delete the one that replaces it")
        }
        ExistingError::Circle { csv, .. } if find_csv(csv).is_some() => Cause::new(format!(
            "the ClusterServiceVersions from `{csv}` on replace each other in a circle"
        ))
        .remedy("delete the one that must not replace another"),
        ExistingError::NotReplacing { .. } | ExistingError::Circle { .. } => {
            Cause::new(error.to_string())
        }
    };
    failure.cause = Cause::new("nothing in the namespace can be resolved").because(reason);
    remedies(failure);
}

/// Explains the faults that block one part of a namespace.
pub(super) fn explain(
    context: &mut FailureContext<'_, '_>,
    candidates: &Candidates<'_>,
    failure: &mut ResolutionFailure,
) {
    if !context.explains_in_full() {
        return;
    }
    let input = context.input;
    let affected: Vec<&Subscription> = candidates
        .subscriptions
        .iter()
        .copied()
        .filter(|subscription| failure.subscriptions.contains(&subscription.name))
        .collect();
    let mut causes = Vec::new();
    let mut proposals = Vec::new();
    for catalog in catalogs(input) {
        if is_visible(input, &catalog.key)
            && let Some(error) = CatalogError::of(catalog)
            && failure.message.contains(&error.to_string())
        {
            causes.push(catalog_cause(input, catalog, &affected));
            proposals.push(vec![SuggestedFix::RestoreCatalog { catalog: catalog.key.clone() }]);
        }
    }
    let (mut changes, mut repairs_of_channels) = (false, Vec::new());
    if causes.is_empty() {
        for (repair, cause) in channels_without_order(input, &failure.message) {
            causes.push(cause);
            repairs_of_channels.push(repair);
        }
        if causes.is_empty() {
            causes.extend(unordered_across_catalogs(input, &failure.message));
        }
        causes.extend(bundle_causes(input, candidates, &failure.message));
        changes = !causes.is_empty();
    }
    if causes.is_empty() {
        causes.extend(answer_causes(input, candidates, failure));
        changes = !causes.is_empty();
    }
    if causes.is_empty() {
        failure.cause = Cause::new(failure.message.clone());
        return;
    }
    if changes {
        for subscription in &affected {
            suggestions::changes(input, subscription, &mut proposals);
        }
        if affected.len() > 1 {
            let remove =
                |name: &str| SuggestedFix::RemoveSubscription { subscription: name.to_owned() };
            proposals
                .push(affected.iter().map(|subscription| remove(&subscription.name)).collect());
        }
        proposals.push(repairs_of_channels);
    }
    failure.repairs =
        context.working_repairs(&failure.subscriptions, &Participants::default(), proposals);
    let names: BTreeSet<&str> = failure.subscriptions.iter().map(String::as_str).collect();
    let names = names::quoted(names);
    let what = match names.as_slice() {
        [] => None,
        [one] => Some(format!("Subscription {one} cannot be resolved")),
        some => Some(format!("Subscriptions {} cannot be resolved", names::some(some, "and"))),
    };
    failure.cause = match (what, causes.len()) {
        (None, 1) => causes.remove(0),
        (what, _) => {
            let what = what.unwrap_or_else(|| "something is broken, but blocks nobody".to_owned());
            Cause::new(what).because_all(causes)
        }
    };
    remedies(failure);
}

fn catalog_cause(
    input: &ResolutionInput<'_>,
    catalog: &CatalogView<'_>,
    affected: &[&Subscription],
) -> Cause {
    let name = names::catalog(input, &catalog.key);
    let cause = Cause::new(match &catalog.content {
        CatalogContent::Failed(reason) => format!("catalog {name} cannot be read: {reason}"),
        _ => format!("catalog {name} was not read so far: there is no connection to it yet"),
    });
    let any = CatalogKey::default();
    let uses_catalog = |subscription: &&&Subscription| {
        subscription.catalog == catalog.key || subscription.catalog == any
    };
    let other: Vec<String> = names::quoted(
        affected
            .iter()
            .filter(|subscription| !uses_catalog(subscription))
            .map(|subscription| subscription.name.as_str()),
    );
    if other.is_empty() {
        return cause;
    }
    // The Subscription names another catalog, but the answer could depend on this one.
    cause.because(Cause::new(format!(
        "it comes before the catalogs that have what Subscription {} needs, and an outage must not \
         change what is installed",
        names::some(&other, "and")
    )))
}

/// The channels without order that a message names, with their repairs.
pub(super) fn channels_without_order(
    input: &ResolutionInput<'_>,
    message: &str,
) -> Vec<(SuggestedFix, Cause)> {
    let mut causes = Vec::new();
    let mut seen = BTreeSet::new();
    for part in message.split(" of package \"").skip(1) {
        let Some((package, _)) = part.split_once('"') else { continue };
        for catalog in catalogs(input) {
            let CatalogContent::Ready(snapshot) = catalog.content else { continue };
            if !is_visible(input, &catalog.key) || !seen.insert((package, &catalog.key)) {
                continue;
            }
            let place = names::catalog(input, &catalog.key);
            for (channel, cause) in unordered_channels(snapshot, package, message, &place) {
                let repair = SuggestedFix::MendChannel {
                    catalog: catalog.key.clone(),
                    package: package.to_owned(),
                    channel: channel.to_owned(),
                };
                causes.push((repair, cause));
            }
        }
    }
    causes.truncate(MAX_PLACES);
    causes
}

/// The channels of a package in one catalog.
fn channels<'s>(snapshot: &'s Snapshot, package: &str) -> Vec<(&'s str, Vec<&'s Entry>)> {
    let mut channels: Vec<(&str, Vec<&Entry>)> = Vec::new();
    for &at in snapshot.of_package(package) {
        let entry = snapshot.entry(at).0;
        match channels.iter_mut().find(|(name, _)| *name == &*entry.channel) {
            Some((_, entries)) => entries.push(entry),
            None => channels.push((&entry.channel, vec![entry])),
        }
    }
    channels.sort_by_key(|(name, _)| *name);
    channels
}

/// The channels without order of a package that a message names.
fn unordered_channels<'s>(
    snapshot: &'s Snapshot,
    package: &str,
    message: &str,
    place: &str,
) -> Vec<(&'s str, Cause)> {
    let mut causes = Vec::new();
    for (channel, mut entries) in channels(snapshot, package) {
        entries.sort_by(|a, b| a.name.cmp(&b.name));
        let Err(why) = chain(&entries) else { continue };
        if !message.contains(&why.text(package, channel)) {
            continue;
        }
        let subject = format!("channel `{channel}` of package `{package}` in catalog {place}");
        let what = match &why {
            ChannelOrderError::NoHead => {
                format!(
                    "{subject} has no head: each of its entries is replaced or skipped by another one"
                )
            }
            ChannelOrderError::Cycle { head } => {
                format!("in {subject} the entries below `{head}` replace each other in a circle")
            }
            ChannelOrderError::Several { chains } => {
                let heads: Vec<&str> = chains
                    .iter()
                    .map(|chain| chain.split_once("...").map_or(chain.as_str(), |(head, _)| head))
                    .collect();
                let twice = heads.windows(2).find(|pair| pair[0] == pair[1]);
                match twice {
                    Some(pair) => format!("{subject} has the entry `{}` more than once", pair[0]),
                    None => format!(
                        "{subject} has {} heads, {}: one of them has to replace or skip the others",
                        heads.len(),
                        names::some(&names::quoted(heads), "and")
                    ),
                }
            }
        };
        let cause = Cause::new(what);
        causes.push((channel, cause));
    }
    causes
}

/// A channel that has no order because several catalogs have entries of it.
fn unordered_across_catalogs(input: &ResolutionInput<'_>, message: &str) -> Option<Cause> {
    let (_, package) = message.split_once(" of package \"")?;
    let (package, _) = package.split_once('"')?;
    let mut matching_channels: Vec<(String, String)> = Vec::new();
    for catalog in catalogs(input).into_iter().filter(|catalog| is_visible(input, &catalog.key)) {
        let CatalogContent::Ready(snapshot) = catalog.content else { continue };
        for (channel, _) in channels(snapshot, package) {
            let text = format!("in channel {} of package {}", quote(channel), quote(package));
            if message.contains(&text) {
                matching_channels.push((channel.to_owned(), names::catalog(input, &catalog.key)));
            }
        }
    }
    let (channel, _) = matching_channels.first()?.clone();
    let catalogs: Vec<String> = matching_channels
        .into_iter()
        .filter(|(name, _)| *name == channel)
        .map(|(_, catalog)| catalog)
        .collect();
    (catalogs.len() > 1).then(|| {
        Cause::new(format!(
            "channel `{channel}` of package `{package}` is in catalogs {}, and together they have no \
             order",
            names::some(&catalogs, "and")
        ))
        .remedy("say in the Subscription which catalog is meant")
    })
}

/// The causes of bundles whose requirements cannot be read.
fn bundle_causes(
    input: &ResolutionInput<'_>,
    candidates: &Candidates<'_>,
    message: &str,
) -> Vec<Cause> {
    let mut causes: Vec<(String, Cause)> = Vec::new();
    for fault in &candidates.faults {
        let FaultSubject::Bundle(var) = fault.subject else { continue };
        let Subject::Bundle(at) = candidates.problem.subjects[var.index()] else { continue };
        let text = fault.reason.to_string();
        if !message.contains(&text) {
            continue;
        }
        let name = &candidates.entry(at).0.name;
        let subject = if at.source == 0 {
            format!("ClusterServiceVersion `{name}`")
        } else {
            let catalog = names::catalog(input, candidates.catalog(at));
            format!("bundle `{name}` in catalog {catalog}")
        };
        let text = names::shortened(&text);
        let what = format!("{subject} states a requirement that cannot be read: {text}");
        if !causes.iter().any(|(known, _)| *known == what) {
            let cause = Cause::new(what.clone()).remedy("correct the requirement there");
            causes.push((what, cause));
        }
    }
    causes.sort_by(|a, b| a.0.cmp(&b.0));
    causes.truncate(MAX_PLACES);
    causes.into_iter().map(|(_, cause)| cause).collect()
}

/// The causes of an invalid answer.
fn answer_causes(
    input: &ResolutionInput<'_>,
    candidates: &Candidates<'_>,
    failure: &ResolutionFailure,
) -> Vec<Cause> {
    let mut causes: BTreeSet<String> = BTreeSet::new();
    let message = &failure.message;
    let twice = message.contains("expected exactly one operator, got ");
    for (number, subject) in candidates.problem.subjects.iter().enumerate() {
        let Subject::Bundle(at) = *subject else { continue };
        if at.source == 0 {
            continue;
        }
        let (entry, facts) = candidates.entry(at);
        let catalog = names::catalog(input, candidates.catalog(at));
        let subject = format!(
            "channel `{}` of package `{}` in catalog {catalog}",
            entry.channel, entry.package
        );
        let times = candidates.occurrences(at);
        if twice && times > 1 {
            causes.insert(format!(
                "catalog {catalog} has `{}` {times} times in channels named `{}`",
                entry.name, entry.channel
            ));
        } else if candidates.is_unreadable(at)
            && message
                .contains(&candidates.identifier(Var(u32::try_from(number).unwrap_or(u32::MAX))))
        {
            causes.insert(format!("a name in {subject} has a `/`, which no name may have"));
        } else if let Some(reason) = &facts.serialization_error
            && message.contains(&format!("operator properties for {}", quote(&entry.name)))
        {
            causes.insert(format!(
                "bundle `{}` in catalog {catalog} has a property that is no JSON: {reason}",
                entry.name
            ));
        }
    }
    causes.into_iter().take(MAX_PLACES).map(Cause::new).collect()
}
