//! Tells people what came of a resolution: on Subscriptions, and in events.

use super::conditions::unresolved;
use super::controller::Controller;
use super::resolution;
use super::unpack::{self, Waiting};
use crate::error::Error;
use mainstay_api::{Subscription, SubscriptionStatus, Time, resources};
use mainstay_client::EventType;
use mainstay_object::{NamespacedName, Object};
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};

/// What there is to tell.
#[derive(Clone, Copy)]
pub(super) struct News<'a> {
    pub(super) failures: &'a [resolution::Failure],
    /// What Subscriptions wait for, by name.
    pub(super) waiting: &'a BTreeMap<String, Waiting>,
    /// The Subscriptions of which there is nothing new to say.
    pub(super) held: &'a BTreeSet<String>,
}

impl Controller {
    /// Writes failures onto the Subscriptions that they concern, and forgets those that are over.
    ///
    /// News are also events: on the namespace as in the original, and on each Subscription, where
    /// people look first.
    pub(super) async fn tell(
        &self,
        namespace: &str,
        subscriptions: &mut [Subscription],
        news: &News<'_>,
    ) -> Result<(), Error> {
        let News { failures, waiting, held } = *news;
        let now = Time::new(self.context.clock.now());
        let statuses: Vec<SubscriptionStatus> = subscriptions
            .iter()
            .map(|subscription| {
                let mut status = subscription.status.clone();
                if held.contains(&subscription.metadata.name) {
                    return status;
                }
                let mine = failures
                    .iter()
                    .find(|failure| failure.subscriptions.contains(&subscription.metadata.name));
                match mine {
                    Some(failure) => {
                        unresolved(&mut status, failure.reason.clone(), &failure.message, now);
                    }
                    None => {
                        unpack::write(&mut status, waiting.get(&subscription.metadata.name), now)
                    }
                }
                if status != subscription.status {
                    status.last_updated = Some(now);
                }
                status
            })
            .collect();
        let changed: Vec<Object> = subscriptions
            .iter()
            .zip(&statuses)
            .filter(|(subscription, status)| subscription.status != **status)
            .map(|(subscription, _)| subscription.to_object())
            .collect::<Result<_, _>>()?;
        let first = failures.iter().find(|failure| !failure.subscriptions.is_empty());
        let place = match first {
            Some(failure) if !changed.is_empty() => {
                let Some(place) = self.lasting(namespace).await? else { return Ok(()) };
                Some((place, failure))
            }
            _ => None,
        };
        self.write_all(subscriptions, statuses).await?;
        for subscription in &changed {
            if let Some(Waiting::Failed(message)) = waiting.get(subscription.name()) {
                let recorder = &self.context.recorder;
                recorder.publish(subscription, EventType::Warning, "BundleUnpackFailed", message);
            }
        }
        let Some((place, first)) = place else { return Ok(()) };
        self.announce(&place, &first.message);
        for subscription in &changed {
            let mine = failures.iter().find(|failure| {
                failure.subscriptions.iter().any(|name| name == subscription.name())
            });
            if let Some(failure) = mine {
                self.announce(
                    subscription,
                    failure.explanation.as_ref().unwrap_or(&failure.message),
                );
            }
        }
        Ok(())
    }

    /// Says on versions that no Subscription has what is wrong with them, once for as long as it
    /// stays so: they have no condition for it.
    pub(super) fn tell_versions(&self, namespace: &str, failures: &[resolution::Failure]) {
        let key = NamespacedName::cluster(namespace);
        let mut now: BTreeSet<(String, String)> = BTreeSet::new();
        for failure in failures {
            let text = failure.explanation.as_ref().unwrap_or(&failure.message);
            now.extend(failure.csvs.iter().map(|csv| (csv.clone(), text.clone())));
        }
        let before = {
            let mut told = self.told.lock();
            if now.is_empty() { told.remove(&key) } else { told.insert(key, now.clone()) }
        };
        let before = before.unwrap_or_default();
        for (name, text) in now.difference(&before) {
            let found = self.context.caches.csvs.get(&NamespacedName::new(namespace, &**name));
            let Some(found) = found else { continue };
            let resource = &resources::CLUSTER_SERVICE_VERSION;
            let about = Object::from_value(json!({
                "apiVersion": resource.api_version(), "kind": resource.kind,
                "metadata": {"namespace": namespace, "name": name, "uid": found.uid},
            }));
            if let Ok(about) = about {
                self.announce(&about, text);
            }
        }
    }

    fn announce(&self, about: &Object, message: &str) {
        self.context.recorder.publish(about, EventType::Warning, "ResolutionFailed", message);
    }
}
