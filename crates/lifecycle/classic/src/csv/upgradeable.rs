//! Upgradeability: whether a CSV may be replaced, by the condition `Upgradeable` of its
//! OperatorCondition and the overrides of an administrator.

use mainstay_api::{Condition, ConditionStatus, OperatorCondition};

/// The condition that blocks an upgrade.
const UPGRADEABLE: &str = "Upgradeable";

/// Why the CSV of an OperatorCondition must not be replaced; none if it may be. Without the
/// condition `Upgradeable` it may be.
pub(crate) fn block_reason(condition: &OperatorCondition) -> Option<String> {
    let no = |message: &str| Some(format!("the operator is not upgradeable: {message}"));
    if let Some(forced) =
        condition.spec.overrides.iter().find(|condition| condition.kind == UPGRADEABLE)
    {
        return match forced.status {
            ConditionStatus::True => None,
            _ => no(&forced.message),
        };
    }
    if mainstay_fault::is_on("operators-cannot-refuse-upgrades") {
        return None;
    }
    let is_upgradeable = |condition: &&Condition| condition.kind == UPGRADEABLE;
    let Some(reported) = condition.status.conditions.iter().find(is_upgradeable) else {
        // The condition was not copied into the status yet.
        let fresh = condition.spec.conditions.iter().find(is_upgradeable)?;
        return (fresh.status != ConditionStatus::True).then(|| no(&fresh.message)).flatten();
    };
    if reported.observed_generation < condition.metadata.generation {
        return Some(format!(
            "the operatorcondition status \"{UPGRADEABLE}\"=\"{}\" is outdated",
            reported.status
        ));
    }
    match reported.status {
        ConditionStatus::True => None,
        _ => no(&reported.message),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use mainstay_api::Override;

    #[test]
    fn an_operator_that_is_not_upgradeable_stays_unless_an_administrator_overrides_it() {
        let mut condition = OperatorCondition::new("ns", "a.v1");
        // shows OC-12
        assert_eq!(block_reason(&condition), None, "who says nothing may be replaced");
        condition.metadata.generation = 2;
        let reported = Condition {
            kind: UPGRADEABLE.to_owned(),
            status: ConditionStatus::False,
            reason: "Migrating".to_owned(),
            message: "a migration is running".to_owned(),
            ..Condition::default()
        };
        condition.spec.conditions = vec![reported.clone()];
        let no = Some("the operator is not upgradeable: a migration is running".to_owned());
        assert_eq!(block_reason(&condition), no, "before the status has it");
        condition.status.conditions = vec![Condition { observed_generation: 2, ..reported }];
        assert_eq!(block_reason(&condition), no);
        condition.metadata.generation = 3;
        // shows E088
        assert_eq!(
            block_reason(&condition).unwrap(),
            "the operatorcondition status \"Upgradeable\"=\"False\" is outdated"
        );
        condition.spec.overrides = vec![Override {
            kind: UPGRADEABLE.to_owned(),
            status: ConditionStatus::True,
            reason: "Admin".to_owned(),
            message: "go on".to_owned(),
            ..Override::default()
        }];
        assert_eq!(block_reason(&condition), None);
        condition.spec.overrides[0].status = ConditionStatus::False;
        assert_eq!(block_reason(&condition).unwrap(), "the operator is not upgradeable: go on");
    }
}
