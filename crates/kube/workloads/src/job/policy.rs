//! Pod failure policy and success policy: rules that give the end of one pod a meaning for its Job.

use super::indexes::{self, Indexes};
use crate::views::Ending;
use crate::workload::Named;
use mainstay_object::Object;
use serde_json::Value;

/// The consequence of a failed pod for its Job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum PodFailureOutcome {
    /// Count the failure towards the backoff limit.
    Count,
    /// Do not count the failure.
    Ignore,
    /// The index of the pod has failed.
    FailIndex,
    /// The Job has failed, with the message.
    FailJob(String),
}

fn text<'a>(value: &'a Value, field: &str) -> &'a str {
    value.get(field).and_then(Value::as_str).unwrap_or_default()
}

/// Applies the failure policy to a failed pod: the first rule that matches decides.
pub(super) fn apply_failure_policy(job: &Object, (key, pod): &Named) -> PodFailureOutcome {
    let Some(ending) = &pod.ending else { return PodFailureOutcome::Count };
    for (at, rule) in job.array(&["spec", "podFailurePolicy", "rules"]).iter().enumerate() {
        let action = text(rule, "action");
        let reason = match (rule.get("onExitCodes"), rule.get("onPodConditions")) {
            (Some(codes), _) if !codes.is_null() => exit_code(codes, ending).map(|(name, code)| {
                format!(
                    "Container {name} for pod {key} failed with exit code {code} matching {action} rule at index {at}"
                )
            }),
            (_, Some(patterns)) => condition(patterns, ending).map(|kind| {
                format!("Pod {key} has condition {kind} matching {action} rule at index {at}")
            }),
            _ => None,
        };
        let Some(reason) = reason else { continue };
        return match action {
            "Ignore" => PodFailureOutcome::Ignore,
            "FailIndex" => PodFailureOutcome::FailIndex,
            "FailJob" => PodFailureOutcome::FailJob(reason),
            _ => PodFailureOutcome::Count,
        };
    }
    PodFailureOutcome::Count
}

fn exit_code<'a>(rule: &Value, ending: &'a Ending) -> Option<(&'a str, i64)> {
    let only = rule.get("containerName").and_then(Value::as_str);
    let values = rule.get("values").and_then(Value::as_array);
    let contains_code =
        |code: i64| values.into_iter().flatten().any(|value| value.as_i64() == Some(code));
    let found = ending.exits.iter().find(|(name, code)| {
        *code != 0
            && only.is_none_or(|only| only == name)
            && match text(rule, "operator") {
                "In" => contains_code(*code),
                "NotIn" => !contains_code(*code),
                _ => false,
            }
    });
    found.map(|(name, code)| (name.as_str(), *code))
}

fn condition<'a>(patterns: &Value, ending: &'a Ending) -> Option<&'a str> {
    let patterns = patterns.as_array()?;
    let found = ending.conditions.iter().find(|(kind, status)| {
        patterns.iter().any(|pattern| {
            let wanted_status = pattern.get("status").and_then(Value::as_str).unwrap_or("True");
            text(pattern, "type") == kind && wanted_status == status
        })
    });
    found.map(|(kind, _)| kind.as_str())
}

/// Whether the success policy is met, and the message that names the rule.
pub(super) fn meets_success_policy(
    job: &Object,
    succeeded: &Indexes,
    completions: i64,
) -> Option<String> {
    let rules = job.array(&["spec", "successPolicy", "rules"]);
    let holds = |rule: &Value| {
        let rule_indexes = rule.get("succeededIndexes").and_then(Value::as_str);
        let count = rule.get("succeededCount").and_then(Value::as_i64);
        let (have, all) = match rule_indexes {
            Some(rule_indexes) => {
                let rule_indexes = indexes::parse(rule_indexes, completions);
                (succeeded.intersection(&rule_indexes).count(), rule_indexes.len())
            }
            None => (succeeded.len(), usize::MAX),
        };
        match count {
            Some(count) => i64::try_from(have).is_ok_and(|have| have >= count),
            None => rule_indexes.is_some() && have == all,
        }
    };
    let at = rules.iter().position(holds)?;
    Some(format!("Matched rules at index {at}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::views::PodView;
    use mainstay_object::NamespacedName;
    use serde_json::json;
    use std::sync::Arc;

    fn failed(code: i64, conditions: &Value) -> Named {
        let pod = Object::from_value(json!({
            "metadata": {"name": "p", "namespace": "n"},
            "status": {
                "phase": "Failed", "conditions": conditions,
                "containerStatuses": [{"name": "main", "state": {"terminated": {"exitCode": code}}}],
            },
        }))
        .unwrap();
        (NamespacedName::new("n", "p"), Arc::new(PodView::of(&pod)))
    }

    #[test]
    fn the_first_matching_rule_of_a_failure_policy_decides() {
        let job = Object::from_value(json!({"spec": {"podFailurePolicy": {"rules": [
            {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget"}]},
            {"action": "FailJob", "onExitCodes": {"operator": "In", "values": [42]}},
            {"action": "FailIndex", "onExitCodes": {
                "containerName": "main", "operator": "NotIn", "values": [1]}},
        ]}}}))
        .unwrap();
        let none = json!([]);
        let disrupted = json!([{"type": "DisruptionTarget", "status": "True"}]);
        let why =
            "Container main for pod n/p failed with exit code 42 matching FailJob rule at index 1";
        for (code, conditions, verdict) in [
            (42, &disrupted, PodFailureOutcome::Ignore),
            (42, &none, PodFailureOutcome::FailJob(why.to_owned())),
            (7, &none, PodFailureOutcome::FailIndex),
            (1, &none, PodFailureOutcome::Count),
        ] {
            assert_eq!(apply_failure_policy(&job, &failed(code, conditions)), verdict);
        }
    }

    #[test]
    fn a_success_policy_has_a_count_or_a_list_of_indexes() {
        for (rule, is_met) in [
            (json!({"succeededIndexes": "0,2"}), true),
            (json!({"succeededIndexes": "0-2"}), false),
            (json!({"succeededCount": 2}), true),
            (json!({"succeededCount": 3}), false),
            (json!({"succeededIndexes": "0-2", "succeededCount": 2}), true),
            (json!({"succeededIndexes": "1-3", "succeededCount": 2}), false),
        ] {
            let job = json!({"spec": {"successPolicy": {"rules": [{"succeededCount": 9}, rule]}}});
            let message =
                meets_success_policy(&Object::from_value(job).unwrap(), &Indexes::from([0, 2]), 5);
            let expected = is_met.then(|| "Matched rules at index 1".to_owned());
            assert_eq!(message, expected, "{rule}");
        }
    }
}
