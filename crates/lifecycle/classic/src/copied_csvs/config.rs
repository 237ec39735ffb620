//! The OLMConfig controller: reports whether the copied CSVs match the OLMConfig.

use super::controller::{
    CopiesContext, DISABLED, INCOMPLETE_DELAY, decide_for, is_disabled, namespaces,
};
use super::decide::{self, Targets};
use crate::error::Error;
use mainstay_api::{Condition, ConditionStatus, Time, names, resources};
use mainstay_client::{Action, DeleteOptions, ObjectList, Reconciler};
use mainstay_controller::{WithOperation as _, decision, patch};
use mainstay_object::{NamespacedName, builtin};
use parking_lot::Mutex;
use std::sync::Arc;
use std::time::Duration;

/// The condition that says whether copied CSVs are disabled.
const CONDITION: &str = "DisabledCopiedCSVs";
const ENABLED_REASON: &str = "CopiedCSVsEnabled";
const DISABLED_REASON: &str = "CopiedCSVsDisabled";

/// Reconciles the only OLMConfig.
pub(super) struct Controller {
    shared: Arc<CopiesContext>,
    /// When copied CSVs began to be missing or superfluous, as elapsed time of the clock.
    incomplete_since: Mutex<Option<Duration>>,
}

impl Reconciler for Controller {
    type Key = NamespacedName;
    type Error = Error;

    async fn reconcile(&self, key: &NamespacedName) -> Result<Action, Error> {
        self.reconcile_olm_config(key).await
    }
}

impl Controller {
    pub(super) fn new(shared: Arc<CopiesContext>) -> Self {
        Self { shared, incomplete_since: Mutex::default() }
    }

    async fn reconcile_olm_config(&self, key: &NamespacedName) -> Result<Action, Error> {
        let context = &*self.shared.context;
        let config = self.shared.config.get(key).filter(|_| *key.name == *names::OLM_CONFIG);
        let Some(config) = config else {
            return Ok(Action::Done);
        };
        let disabled = is_disabled(&self.shared.config);
        let differs = copies_differ_from_config(&self.shared);
        if let Some(left) = self.remaining_delay(differs) {
            return Ok(Action::After(left));
        }
        let old = config.status.conditions.iter().find(|condition| condition.kind == CONDITION);
        if !disabled && old.is_some_and(|condition| condition.reason != ENABLED_REASON) {
            // The Events are deleted before the condition changes, so a restart in between repeats
            // the deletion.
            self.delete_disabled_events().await?;
        }
        let mut status = config.status.clone();
        let condition = condition(old, disabled, differs, Time::new(context.clock.now()));
        match status.conditions.iter_mut().find(|condition| condition.kind == CONDITION) {
            Some(existing) => *existing = condition,
            None => status.conditions.push(condition),
        }
        if let Some(patch) = patch::of_view(&config, &status)? {
            let written =
                context.cluster.patch_status(&resources::OLM_CONFIG, None, &key.name, &patch).await;
            written.during("writing the status of the OLMConfig")?;
            let written_condition =
                status.conditions.iter().find(|condition| condition.kind == CONDITION);
            if let Some(condition) = written_condition {
                let decision = format!("{CONDITION}={}", condition.status.as_str());
                decision::log("OLMConfig", key, decision, &condition.message);
            }
        }
        Ok(Action::Done)
    }

    /// The rest of the delay before missing or superfluous copied CSVs are reported.
    fn remaining_delay(&self, differs: bool) -> Option<Duration> {
        let mut since = self.incomplete_since.lock();
        if !differs {
            *since = None;
            return None;
        }
        let now = self.shared.context.clock.elapsed();
        let begun = *since.get_or_insert(now);
        INCOMPLETE_DELAY.checked_sub(now.saturating_sub(begun)).filter(|left| !left.is_zero())
    }

    /// Deletes the Events about disabled copied CSVs.
    async fn delete_disabled_events(&self) -> Result<(), Error> {
        let cluster = &self.shared.context.cluster;
        let fields = ObjectList::fields(format!("reason={DISABLED}"));
        let events = cluster.list(&builtin::EVENT, None, &fields).await;
        for event in events.during("listing Events")?.items {
            let options = DeleteOptions::uid(event.uid());
            let namespace = Some(event.namespace());
            let deleted =
                cluster.ensure_deleted(&builtin::EVENT, namespace, event.name(), &options).await;
            deleted.during("deleting an Event")?;
        }
        Ok(())
    }
}

/// Whether copied CSVs of operators that target all namespaces are missing, or exist although they
/// are disabled.
fn copies_differ_from_config(shared: &CopiesContext) -> bool {
    let caches = &shared.context.caches;
    let namespaces = namespaces(caches);
    let targets_all = |csv: &crate::fields::Csv| decide::targets(csv) == Targets::All;
    let all = caches.csvs.list(None).into_iter();
    all.filter(|(_, csv)| !csv.is_copy() && targets_all(csv)).any(|(key, _)| {
        decide_for(shared, &key, &namespaces, true).has_missing_or_superfluous_copies()
    })
}

/// The desired condition.
fn condition(old: Option<&Condition>, disabled: bool, differs: bool, now: Time) -> Condition {
    let (status, reason, message) = match (disabled, differs) {
        (false, false) => (
            ConditionStatus::False,
            ENABLED_REASON,
            "Copied CSVs are enabled and present across the cluster",
        ),
        (false, true) => (
            ConditionStatus::False,
            ENABLED_REASON,
            "Copied CSVs are enabled and at least one copied CSVs is missing",
        ),
        (true, false) => (
            ConditionStatus::True,
            DISABLED_REASON,
            "Copied CSVs are disabled and no unexpected copied CSVs were found for operators installed in AllNamespace mode",
        ),
        (true, true) => (
            ConditionStatus::False,
            DISABLED_REASON,
            "Copied CSVs are disabled and at least one unexpected copied CSV was found for an operator installed in AllNamespace mode",
        ),
    };
    let since = old
        .filter(|condition| condition.status == status)
        .and_then(|condition| condition.last_transition_time);
    Condition {
        kind: CONDITION.to_owned(),
        status,
        reason: reason.to_owned(),
        message: message.to_owned(),
        last_transition_time: Some(since.unwrap_or(now)),
        ..Condition::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_olm_config_condition_keeps_its_transition_time_while_its_status_stays() {
        let at = |second| Time::new(jiff::Timestamp::from_second(second).unwrap());
        let enabled = condition(None, false, false, at(1));
        assert_eq!((&enabled.status, &*enabled.reason), (&ConditionStatus::False, ENABLED_REASON));
        let superfluous = condition(Some(&enabled), true, true, at(2));
        assert_eq!(
            (&superfluous.status, superfluous.last_transition_time),
            (&ConditionStatus::False, Some(at(1)))
        );
        let disabled_and_deleted = condition(Some(&superfluous), true, false, at(3));
        assert_eq!(
            (&disabled_and_deleted.status, disabled_and_deleted.last_transition_time),
            (&ConditionStatus::True, Some(at(3)))
        );
        assert_eq!(
            condition(Some(&disabled_and_deleted), true, false, at(4)),
            disabled_and_deleted
        );
    }
}
