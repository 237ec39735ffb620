//! Helm's order of kinds, by which it creates the objects of a release.

use serde_json::Value;

/// The kinds in the order in which Helm 3 creates them.
const INSTALL_ORDER: [&str; 36] = [
    "PriorityClass",
    "Namespace",
    "NetworkPolicy",
    "ResourceQuota",
    "LimitRange",
    "PodSecurityPolicy",
    "PodDisruptionBudget",
    "ServiceAccount",
    "Secret",
    "SecretList",
    "ConfigMap",
    "StorageClass",
    "PersistentVolume",
    "PersistentVolumeClaim",
    "CustomResourceDefinition",
    "ClusterRole",
    "ClusterRoleList",
    "ClusterRoleBinding",
    "ClusterRoleBindingList",
    "Role",
    "RoleList",
    "RoleBinding",
    "RoleBindingList",
    "Service",
    "DaemonSet",
    "Pod",
    "ReplicationController",
    "ReplicaSet",
    "Deployment",
    "HorizontalPodAutoscaler",
    "StatefulSet",
    "Job",
    "CronJob",
    "IngressClass",
    "Ingress",
    "APIService",
];

/// The positions of the objects in the order in which Helm creates them: by kind, other kinds last
/// in alphabetical order, and within a kind by the names of their files in the chart.
///
/// `objects` are in the order of the renderer, `names` are those of their files.
pub(crate) fn order_by_file_name(objects: &[Value], names: &[String]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..objects.len()).collect();
    order.sort_by_key(|&at| (install_key(kind(&objects[at])), &names[at]));
    order
}

fn kind(object: &Value) -> &str {
    object["kind"].as_str().unwrap_or_default()
}

/// The place of a kind in the order of installation. Kinds that Helm does not know have the last
/// place, in alphabetical order.
fn install_key(kind: &str) -> (usize, &str) {
    match INSTALL_ORDER.iter().position(|known| *known == kind) {
        Some(place) => (place, ""),
        None => (INSTALL_ORDER.len(), kind),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::content::file_name;
    use crate::go_json::object_jsons;
    use serde_json::json;

    fn objects(kinds: &[&str]) -> Vec<Value> {
        kinds.iter().map(|kind| json!({"kind": kind})).collect()
    }

    /// The order in which Helm creates the objects.
    fn install_order(objects: &[Value]) -> Vec<usize> {
        let names: Vec<String> = object_jsons(objects).iter().map(|json| file_name(json)).collect();
        order_by_file_name(objects, &names)
    }

    fn sorted<'k>(kinds: &[&'k str], order: &[usize]) -> Vec<&'k str> {
        order.iter().map(|&at| kinds[at]).collect()
    }

    #[test]
    fn unknown_kinds_are_created_last_in_alphabetical_order() {
        let kinds = ["Zebra", "Deployment", "Apple", "Namespace", "ValidatingWebhookConfiguration"];
        assert_eq!(
            sorted(&kinds, &install_order(&objects(&kinds))),
            ["Namespace", "Deployment", "Apple", "ValidatingWebhookConfiguration", "Zebra"]
        );
    }

    #[test]
    fn objects_of_one_kind_are_created_by_their_file_names() {
        let objects: Vec<Value> = ["a", "b", "c", "d"]
            .map(
                |name| json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}}),
            )
            .into();
        let mut names: Vec<(String, usize)> = object_jsons(&objects)
            .iter()
            .enumerate()
            .map(|(at, json)| (file_name(json), at))
            .collect();
        names.sort();
        let wanted: Vec<usize> = names.into_iter().map(|(_, at)| at).collect();
        assert_eq!(install_order(&objects), wanted);
    }
}
