//! OperatorGroup roles: three ClusterRoles that aggregate the API roles of its provided APIs.

use super::apis::ApiSet;
use crate::fields::{self, Api};
use crate::permissions;
use mainstay_api::{OperatorGroup, names};
use mainstay_controller::hash;
use mainstay_object::{Object, builtin, fnv, names as rules};
use serde_json::{Value, json};

/// The verbs for a provided API, by suffix of the ClusterRole.
pub(crate) const VERBS: [(&str, &[&str]); 3] = [
    ("admin", &["*"]),
    ("edit", &["create", "update", "patch", "delete"]),
    ("view", &["get", "list", "watch"]),
];

/// The label by which the roles of one API are aggregated.
pub(crate) fn aggregation_label(api: &Api, suffix: &str) -> String {
    let hash = fnv::fnv64a(api.text().as_bytes());
    format!("{}aggregate-to-{hash:x}-{suffix}", names::GROUP_PERMISSIONS_PREFIX)
}

/// The name of a ClusterRole of an OperatorGroup.
pub(crate) fn name(group: &OperatorGroup, suffix: &str) -> String {
    let (namespace, name) = (&group.metadata.namespace, &group.metadata.name);
    let hash = hash::base62_sha224(format!("{namespace}/{name}/{suffix}").as_bytes());
    let fixed = "olm.og..-".len() + suffix.len() + hash.len();
    let room = rules::SUBDOMAIN_MAX.saturating_sub(fixed);
    let truncated = if name.len() < room { name } else { name.get(..room).unwrap_or(name) };
    format!("olm.og.{truncated}.{suffix}-{hash}")
}

/// The aggregation rule; none while the OperatorGroup provides no API.
pub(crate) fn aggregation(apis: &ApiSet, suffix: &str) -> Option<Value> {
    let mut labels: Vec<String> = apis.iter().map(|api| aggregation_label(api, suffix)).collect();
    labels.sort();
    let selectors: Vec<Value> =
        labels.into_iter().map(|label| json!({"matchLabels": {label: "true"}})).collect();
    (!selectors.is_empty()).then(|| json!({"clusterRoleSelectors": selectors}))
}

/// A ClusterRole of an OperatorGroup.
pub(crate) fn role(group: &OperatorGroup, suffix: &str, apis: &ApiSet) -> Object {
    let mut role = Object::new(&builtin::CLUSTER_ROLE.gvk(), &name(group, suffix));
    let metadata = &group.metadata;
    let labels = permissions::owner_labels("OperatorGroup", &metadata.namespace, &metadata.name);
    role.set(&["metadata", "labels"], Value::Object(labels));
    role.set_label(names::MANAGED, names::MANAGED_VALUE);
    // An explicit null removes the rule of an earlier reconciliation.
    role.set(&["aggregationRule"], aggregation(apis, suffix).into());
    role
}

/// Whether a ClusterRole of an OperatorGroup is up to date. As upstream, aggregated rules
/// stay in it when the aggregation rule is removed.
pub(crate) fn is_up_to_date(role: &fields::Role, apis: &ApiSet, suffix: &str) -> bool {
    role.aggregation == aggregation(apis, suffix)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cluster_role_keeps_its_rules_when_it_aggregates_no_more() {
        let group = OperatorGroup::new("ns", "og");
        let apis: ApiSet = Api::parse("A.v1.g").into_iter().collect();
        let (full, empty) = (role(&group, "view", &apis), role(&group, "view", &ApiSet::new()));
        assert_eq!(empty.get(&["aggregationRule"]), Some(&Value::Null));
        assert_eq!((full.get(&["rules"]), empty.get(&["rules"])), (None, None));
        let mut collected = fields::Role::of(&full);
        assert!(is_up_to_date(&collected, &apis, "view"));
        assert!(!is_up_to_date(&collected, &ApiSet::new(), "view"));
        collected.aggregation = None;
        assert!(is_up_to_date(&collected, &ApiSet::new(), "view"));
    }

    #[test]
    fn names_and_labels_of_cluster_roles_match_the_recorded_ones() {
        let group = OperatorGroup::new("c019", "og");
        assert_eq!(name(&group, "admin"), "olm.og.og.admin-2XY4criuvdF42YhFTOGfI8vjRjzR5wUlyzaUHJ");
        let api = Api::parse("Anvil.v1.c019.example.com").unwrap();
        assert_eq!(
            aggregation_label(&api, "edit"),
            "olm.opgroup.permissions/aggregate-to-8facc6a1ccfdf1c4-edit"
        );
        let long = OperatorGroup::new("ns", &"x".repeat(253));
        assert_eq!(name(&long, "view").len(), rules::SUBDOMAIN_MAX);
    }
}
