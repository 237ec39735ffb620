//! Outcome assembly: installations and Subscription changes from the answers of the parts.

use super::{ResolutionRun, State, error};
use crate::candidates::EntryRef;
use crate::input::{CatalogKey, Subscription};
use crate::outcome::{ChosenBundle, NewInstall, NewSubscription, Resolution, UpdatedSubscription};
use crate::problem::Var;
use mainstay_gocompat::quote;
use std::collections::{BTreeMap, BTreeSet};

impl ResolutionRun<'_, '_> {
    /// The outcome of the parts that have an answer, without failures.
    pub(super) fn assemble(&mut self) -> Resolution {
        let candidates = self.candidates;
        let mut blocked: BTreeSet<String> = self
            .failures
            .iter()
            .flat_map(|failure| failure.subscriptions.iter().cloned())
            .collect();
        // The package of a blocked Subscription is not installed as a dependency of other
        // operators.
        loop {
            let mut changed = false;
            for at in 0..self.parts.len() {
                let State::Solved(answer) = &self.parts[at].state else { continue };
                let blocked_subscription = answer.iter().find_map(|(_, entry)| {
                    let mut all = candidates.subscriptions.iter();
                    if all.any(|subscription| {
                        !blocked.contains(&subscription.name)
                            && self.is_subscribed_to(subscription, *entry)
                    }) {
                        return None;
                    }
                    // The channel and the catalog do not matter: a package has only one operator.
                    let package = &candidates.entry(*entry).0.package;
                    let mut all = candidates.subscriptions.iter();
                    all.find(|subscription| {
                        blocked.contains(&subscription.name) && *subscription.package == **package
                    })
                });
                let serialization_error =
                    answer.iter().find_map(|(_, entry)| self.serialization_error(*entry));
                let names = self.names(&self.parts[at].subscriptions);
                if let Some(blocked_subscription) = blocked_subscription {
                    let names: BTreeSet<String> = names.into_iter().collect();
                    for failure in &mut self.failures {
                        if failure.subscriptions.contains(&blocked_subscription.name) {
                            let mut all: BTreeSet<String> =
                                failure.subscriptions.drain(..).collect();
                            all.extend(names.iter().cloned());
                            failure.subscriptions = all.into_iter().collect();
                        }
                    }
                    blocked.extend(names);
                } else if let Some(text) = serialization_error {
                    self.answer_error.get_or_insert_with(|| text.clone());
                    blocked.extend(names.iter().cloned());
                    self.failures.push(error(text, names));
                } else {
                    continue;
                }
                self.parts[at].state = State::Failed;
                changed = true;
            }
            if !changed {
                break;
            }
        }
        let mut answer: Vec<(usize, Var, EntryRef)> = Vec::new();
        for (at, part) in self.parts.iter().enumerate() {
            if let State::Solved(chosen) = &part.state {
                answer.extend(chosen.iter().map(|(var, entry)| (at, *var, *entry)));
            }
        }
        answer.sort_by(|a, b| {
            let key = |at: EntryRef| {
                let entry = candidates.entry(at).0;
                (&entry.package, &entry.name, candidates.catalog(at))
            };
            key(a.2).cmp(&key(b.2))
        });
        let mut outcome = Resolution::default();
        let mut numbers: BTreeMap<usize, usize> = BTreeMap::new();
        for (part, var, at) in answer {
            let count = outcome.installs.len();
            self.add(var, at, &blocked, &mut outcome);
            for install in &mut outcome.installs[count..] {
                install.part = *numbers.entry(part).or_insert_with(|| {
                    outcome.parts.push(self.names(&self.parts[part].subscriptions));
                    outcome.parts.len() - 1
                });
            }
        }
        outcome.updated_subscriptions.sort_by(|a, b| a.name.cmp(&b.name));
        outcome.new_subscriptions.sort_by(|a, b| a.name.cmp(&b.name));
        outcome
    }

    /// Whether package, channel and catalog of a Subscription are those of an entry.
    fn is_subscribed_to(&self, subscription: &Subscription, at: EntryRef) -> bool {
        let entry = self.candidates.entry(at).0;
        let any = subscription.catalog == CatalogKey::default();
        subscription.package == *entry.package
            && (subscription.channel.is_empty() || subscription.channel == *entry.channel)
            && (any || subscription.catalog == *self.candidates.catalog(at))
    }

    /// Whether the `ClusterServiceVersion` of an entry exists and is the `currentCSV` of all its
    /// Subscriptions, of which it has at least one.
    fn is_current(&self, at: EntryRef) -> bool {
        let name = &self.candidates.entry(at).0.name;
        let mut asking = self
            .candidates
            .subscriptions
            .iter()
            .filter(|subscription| self.is_subscribed_to(subscription, at))
            .peekable();
        asking.peek().is_some()
            && asking.all(|subscription| subscription.current_csv == **name)
            && self.input.csvs.iter().any(|csv| csv.name == **name)
    }

    /// Why an InstallPlan cannot hold an entry: its properties cannot be serialized.
    fn serialization_error(&self, at: EntryRef) -> Option<String> {
        let (entry, facts) = self.candidates.entry(at);
        let reason = facts.serialization_error.as_ref().filter(|_| !self.is_current(at))?;
        Some(format!(
            "failed to serialize operator properties for {}: failed to marshal properties \
             annotation: json: error calling MarshalJSON for type json.RawMessage: {reason}",
            quote(&entry.name)
        ))
    }

    fn add(&self, var: Var, at: EntryRef, blocked: &BTreeSet<String>, outcome: &mut Resolution) {
        let entry = self.candidates.entry(at).0;
        let catalog = self.candidates.catalog(at);
        let replacement = self.candidates.replacements.get(&var).cloned();
        let chosen = outcome.resolved.len();
        outcome.resolved.push(ChosenBundle {
            catalog: catalog.clone(),
            package: entry.package.to_string(),
            channel: entry.channel.to_string(),
            name: entry.name.to_string(),
            version: entry.version.as_ref().map(ToString::to_string),
            replaces: replacement.or_else(|| entry.replaces.as_deref().map(str::to_owned)),
        });
        if self.is_current(at) {
            return;
        }
        let all = self.candidates.subscriptions.iter().copied();
        let asking: Vec<&Subscription> = all
            .filter(|subscription| {
                !blocked.contains(&subscription.name) && self.is_subscribed_to(subscription, at)
            })
            .collect();
        outcome.installs.push(NewInstall {
            chosen,
            subscriptions: asking.iter().map(|subscription| subscription.name.clone()).collect(),
            part: 0,
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
}
