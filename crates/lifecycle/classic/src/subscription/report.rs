//! Resolution reports: the result of a resolution as conditions of Subscriptions and as Events.

use super::conditions::unresolved;
use super::controller::Controller;
use super::resolution;
use super::unpack::{self, PendingReason};
use crate::error::Error;
use mainstay_api::{Subscription, SubscriptionStatus, Time, resources};
use mainstay_client::EventType;
use mainstay_object::{NamespacedName, Object};
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};

/// The result of a resolution, as far as it is reported.
#[derive(Clone, Copy)]
pub(super) struct ResolutionReport<'a> {
    pub(super) failures: &'a [resolution::Failure],
    /// Why Subscriptions have no InstallPlan yet, by name.
    pub(super) pending_reasons: &'a BTreeMap<String, PendingReason>,
    /// The Subscriptions whose conditions stay as they are.
    pub(super) keeps_conditions: &'a BTreeSet<String>,
}

impl Controller {
    /// Sets the failures on the Subscriptions that they concern, and removes those that no longer
    /// apply.
    ///
    /// New failures are also Events: on the namespace, as upstream, and on each Subscription.
    pub(super) async fn report_resolution(
        &self,
        namespace: &str,
        subscriptions: &mut [Subscription],
        report: &ResolutionReport<'_>,
    ) -> Result<(), Error> {
        let ResolutionReport { failures, pending_reasons, keeps_conditions } = *report;
        let now = Time::new(self.context.clock.now());
        let statuses: Vec<SubscriptionStatus> = subscriptions
            .iter()
            .map(|subscription| {
                let mut status = subscription.status.clone();
                if keeps_conditions.contains(&subscription.metadata.name) {
                    return status;
                }
                let failure_of = failures
                    .iter()
                    .find(|failure| failure.subscriptions.contains(&subscription.metadata.name));
                if let Some(failure) = failure_of {
                    unresolved(&mut status, failure.reason.clone(), &failure.message, now);
                } else {
                    let pending = pending_reasons.get(&subscription.metadata.name);
                    unpack::write_conditions(&mut status, pending, now);
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
        let namespace_object = match first {
            Some(failure) if !changed.is_empty() => {
                let Some(namespace_object) = self.live_namespace(namespace).await? else {
                    return Ok(());
                };
                Some((namespace_object, failure))
            }
            _ => None,
        };
        self.write_statuses(subscriptions, statuses).await?;
        for subscription in &changed {
            if let Some(PendingReason::Failed(message)) = pending_reasons.get(subscription.name()) {
                let recorder = &self.context.recorder;
                recorder.publish(subscription, EventType::Warning, "BundleUnpackFailed", message);
            }
        }
        let Some((namespace_object, first)) = namespace_object else { return Ok(()) };
        self.publish_event(&namespace_object, &first.message);
        for subscription in &changed {
            let failure_of = failures.iter().find(|failure| {
                failure.subscriptions.iter().any(|name| name == subscription.name())
            });
            if let Some(failure) = failure_of {
                self.publish_event(
                    subscription,
                    failure.explanation.as_ref().unwrap_or(&failure.message),
                );
            }
        }
        Ok(())
    }

    /// Publishes an Event for each failure of a CSV that has no Subscription, once while it lasts.
    /// Such a CSV has no condition for it.
    pub(super) fn report_csv_failures(&self, namespace: &str, failures: &[resolution::Failure]) {
        let key = NamespacedName::cluster(namespace);
        let mut now: BTreeSet<(String, String)> = BTreeSet::new();
        for failure in failures {
            let text = failure.explanation.as_ref().unwrap_or(&failure.message);
            now.extend(failure.csvs.iter().map(|csv| (csv.clone(), text.clone())));
        }
        let before = {
            let mut reported = self.reported_csv_failures.lock();
            if now.is_empty() { reported.remove(&key) } else { reported.insert(key, now.clone()) }
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
                self.publish_event(&about, text);
            }
        }
    }

    fn publish_event(&self, about: &Object, message: &str) {
        self.context.recorder.publish(about, EventType::Warning, "ResolutionFailed", message);
    }
}
