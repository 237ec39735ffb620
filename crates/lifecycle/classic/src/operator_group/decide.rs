//! OperatorGroup decisions: the status and the provided APIs of an OperatorGroup.

use crate::fields;
use crate::membership::apis::{self, ApiSet};
use crate::membership::targets;
use mainstay_api::{
    Condition, ConditionStatus, CsvPhase, ObjectReference, OperatorGroup, OperatorGroupStatus, Time,
};
use std::sync::Arc;

/// Condition of each OperatorGroup in a namespace with several.
const MULTIPLE: &str = "MultipleOperatorGroup";
/// Condition of an OperatorGroup whose ServiceAccount does not exist.
const ACCOUNT: &str = "OperatorGroupServiceAccount";

/// The observed state around an OperatorGroup.
pub(crate) struct StatusInput<'a> {
    pub(crate) group: &'a OperatorGroup,
    /// The number of OperatorGroups in its namespace.
    pub(crate) groups: usize,
    /// The namespaces that its spec selects.
    pub(crate) targets: Vec<String>,
    /// Its ServiceAccount, if it names an existing one.
    pub(crate) account: Option<ObjectReference>,
    pub(crate) now: Time,
}

/// The desired status.
pub(crate) fn status(input: &StatusInput<'_>) -> OperatorGroupStatus {
    let old = &input.group.status;
    let mut new = old.clone();
    condition(
        &mut new,
        MULTIPLE,
        (input.groups > 1).then(|| {
            (
                "MultipleOperatorGroupsFound",
                "Multiple OperatorGroup found in the same namespace".to_owned(),
            )
        }),
        input.now,
    );
    let account = &input.group.spec.service_account_name;
    let missing = !account.is_empty() && input.account.is_none();
    condition(
        &mut new,
        ACCOUNT,
        missing.then(|| ("ServiceAccountNotFound", format!("ServiceAccount {account} not found"))),
        input.now,
    );
    new.service_account_ref.clone_from(&input.account);
    // Without its ServiceAccount an OperatorGroup manages no namespace.
    if !missing && !targets::same_namespaces(&input.targets, &old.namespaces) {
        new.namespaces.clone_from(&input.targets);
        new.last_updated = Some(input.now);
    }
    if new.service_account_ref != old.service_account_ref || (missing && new != *old) {
        new.last_updated = Some(input.now);
    }
    new
}

fn condition(
    status: &mut OperatorGroupStatus,
    kind: &str,
    holds: Option<(&str, String)>,
    now: Time,
) {
    let at = status.conditions.iter().position(|condition| condition.kind == kind);
    match (holds, at) {
        (Some(_), Some(_)) | (None, None) => {}
        (Some((reason, message)), None) => status.conditions.push(Condition {
            kind: kind.to_owned(),
            status: ConditionStatus::True,
            reason: reason.to_owned(),
            message,
            last_transition_time: Some(now),
            ..Condition::default()
        }),
        (None, Some(at)) => {
            status.conditions.remove(at);
        }
    }
}

/// The annotation without the APIs that no CSV of the namespace provides; none if nothing changes,
/// or if a CSV has yet to add its own.
pub(crate) fn pruned_annotation(
    group: &OperatorGroup,
    csvs: &[Arc<fields::Csv>],
) -> Option<String> {
    if group.spec.static_provided_apis {
        return None;
    }
    let annotated = apis::provided(group);
    let arriving = csvs.iter().any(|csv| {
        !csv.deleting
            && matches!(csv.phase, CsvPhase::None | CsvPhase::Pending)
            && csv.provides.iter().any(|api| !annotated.contains(api))
    });
    let provided_apis: ApiSet = annotated.intersection(&provided(csvs)).cloned().collect();
    (!arriving && provided_apis.len() < annotated.len()).then(|| apis::text(&provided_apis))
}

/// The APIs that the CSVs of a namespace provide.
pub(crate) fn provided(csvs: &[Arc<fields::Csv>]) -> ApiSet {
    csvs.iter().flat_map(|csv| csv.provides.iter().cloned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fields::Api;
    use mainstay_api::names;

    fn time(second: i64) -> Time {
        Time::new(jiff::Timestamp::from_second(second).unwrap())
    }

    fn input(group: &OperatorGroup) -> StatusInput<'_> {
        StatusInput { group, groups: 1, targets: vec!["ns".into()], account: None, now: time(5) }
    }

    #[test]
    fn the_status_follows_the_spec_and_settles() {
        let mut group = OperatorGroup::new("ns", "og");
        let first = status(&input(&group));
        assert_eq!(
            (first.namespaces.clone(), first.last_updated),
            (vec!["ns".to_owned()], Some(time(5)))
        );
        group.status = first.clone();
        assert_eq!(status(&StatusInput { now: time(9), ..input(&group) }), first);
        let several = status(&StatusInput { groups: 2, ..input(&group) });
        // shows C30
        assert_eq!(several.conditions[0].reason, "MultipleOperatorGroupsFound");
        group.status = several;
        // shows C30
        assert_eq!(status(&input(&group)), first);
    }

    #[test]
    fn an_operator_group_without_its_service_account_manages_no_namespace() {
        let mut group = OperatorGroup::new("ns", "og");
        group.spec.service_account_name = "installer".into();
        let without = status(&input(&group));
        // shows C30
        assert_eq!(without.conditions[0].message, "ServiceAccount installer not found");
        assert!(without.namespaces.is_empty());
        group.status = without.clone();
        assert_eq!(status(&StatusInput { now: time(9), ..input(&group) }), without);
        let account =
            Some(ObjectReference { name: "installer".into(), ..ObjectReference::default() });
        let with = status(&StatusInput { account: account.clone(), ..input(&group) });
        // shows C30
        assert!(with.conditions.is_empty());
        assert_eq!((with.namespaces, with.service_account_ref), (vec!["ns".to_owned()], account));
    }

    #[test]
    fn apis_without_a_csv_are_pruned_unless_a_csv_is_pending() {
        let mut group = OperatorGroup::new("ns", "og");
        group.metadata.annotations.insert(names::PROVIDED_APIS.into(), "A.v1.g,B.v1.g".into());
        let version = |api: &str, phase: CsvPhase| {
            let provides = Api::parse(api).into_iter().collect();
            Arc::new(fields::Csv { phase, provides, ..fields::Csv::default() })
        };
        for (csvs, wanted) in [
            (vec![], Some("")),
            (vec![version("A.v1.g", CsvPhase::Succeeded)], Some("A.v1.g")),
            (
                vec![version("A.v1.g", CsvPhase::Succeeded), version("B.v1.g", CsvPhase::Failed)],
                None,
            ),
            (vec![version("C.v1.g", CsvPhase::Pending)], None),
        ] {
            // shows C29
            assert_eq!(pruned_annotation(&group, &csvs).as_deref(), wanted);
        }
        group.spec.static_provided_apis = true;
        // shows OG-38
        assert_eq!(pruned_annotation(&group, &[]), None);
    }
}
