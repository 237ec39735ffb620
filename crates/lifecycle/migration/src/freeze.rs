//! Freezing of a Subscription: nothing is upgraded while its operator changes hands.

use crate::names::ORIGINAL_APPROVAL;
use mainstay_object::Object;
use serde_json::{Value, json};

const APPROVAL: &[&str] = &["spec", "installPlanApproval"];
const MANUAL: &str = "Manual";

/// A Subscription whose InstallPlans wait for an approval; none if it is so already. An annotation keeps
/// what it was.
pub fn frozen(subscription: &Object) -> Option<Object> {
    let before = subscription.str(APPROVAL).unwrap_or_default();
    if before == MANUAL {
        return None;
    }
    let mut frozen = subscription.clone();
    frozen.set_annotation(ORIGINAL_APPROVAL, before);
    frozen.set(APPROVAL, Value::from(MANUAL));
    Some(frozen)
}

/// A frozen Subscription as it was; none if it is not frozen.
pub fn thawed(subscription: &Object) -> Option<Object> {
    subscription.annotation(ORIGINAL_APPROVAL)?;
    let mut thawed = subscription.clone();
    thawed.set(&["spec"], original_spec(subscription));
    thawed.remove(&["metadata", "annotations", ORIGINAL_APPROVAL]);
    Some(thawed)
}

/// Whether a conversion that did not end froze a Subscription.
pub fn is_frozen(subscription: &Object) -> bool {
    subscription.annotation(ORIGINAL_APPROVAL).is_some()
}

/// The spec of a Subscription as it was before it was frozen.
pub(crate) fn original_spec(subscription: &Object) -> Value {
    let mut spec = subscription.get(&["spec"]).cloned().unwrap_or_else(|| json!({}));
    if let (Some(before), Some(fields)) =
        (subscription.annotation(ORIGINAL_APPROVAL), spec.as_object_mut())
    {
        match before {
            "" => drop(fields.remove("installPlanApproval")),
            before => drop(fields.insert("installPlanApproval".to_owned(), before.into())),
        }
    }
    spec
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frozen_subscription_thaws_to_what_it_was() {
        for spec in
            [json!({"name": "tea"}), json!({"name": "tea", "installPlanApproval": "Automatic"})]
        {
            let subscription = Object::from_value(json!({
                "apiVersion": "operators.coreos.com/v1alpha1", "kind": "Subscription",
                "metadata": {"name": "tea", "annotations": {"mine": "1"}}, "spec": spec,
            }))
            .unwrap();
            let frozen_once = frozen(&subscription).unwrap();
            assert_eq!(frozen_once.str(APPROVAL), Some("Manual"));
            assert_eq!(frozen(&frozen_once), None);
            assert_eq!([&subscription, &frozen_once].map(is_frozen), [false, true]);
            assert_eq!(original_spec(&frozen_once), spec);
            assert_eq!(thawed(&frozen_once), Some(subscription.clone()));
            assert_eq!(thawed(&subscription), None);
        }
    }
}
