//! What OLM classic leaves after a migration.

use crate::names::ROLLBACK_ANNOTATIONS;
use crate::release::is_classic_label;
use mainstay_object::Object;
use serde_json::Value;

/// The InstallPlans of a namespace that installed a ClusterServiceVersion and none that still exists.
pub fn deletable_plans<'p>(plans: &'p [Object], csv: &str, csvs: &[Object]) -> Vec<&'p Object> {
    let plans = plans.iter().filter(|plan| {
        let named = plan.array(&["spec", "clusterServiceVersionNames"]);
        let named: Vec<&str> = named.iter().filter_map(Value::as_str).collect();
        let is_needed = |name: &&str| csvs.iter().any(|csv| csv.name() == *name);
        named.contains(&csv) && !named.iter().any(is_needed)
    });
    plans.collect()
}

/// The object without the labels of OLM classic and without the annotations for a rollback; none if it has
/// neither.
pub fn without_classic_labels(object: &Object) -> Option<Object> {
    let names: Vec<String> = object
        .labels()
        .filter(|(name, _)| is_classic_label(name))
        .map(|(name, _)| name.to_owned())
        .collect();
    if names.is_empty() && ROLLBACK_ANNOTATIONS.iter().all(|name| object.annotation(name).is_none())
    {
        return None;
    }
    let mut object = object.clone();
    for name in ROLLBACK_ANNOTATIONS {
        object.remove(&["metadata", "annotations", name]);
    }
    for name in names {
        object.remove(&["metadata", "labels", &name]);
    }
    Some(object)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn object(value: Value) -> Object {
        Object::from_value(value).unwrap()
    }

    #[test]
    fn plan_goes_when_none_of_its_versions_exists() {
        let plan = |name: &str, csvs: &[&str]| {
            object(json!({
                "apiVersion": "operators.coreos.com/v1alpha1", "kind": "InstallPlan",
                "metadata": {"name": name}, "spec": {"clusterServiceVersionNames": csvs},
            }))
        };
        let plans =
            [plan("a", &["tea.v1"]), plan("b", &["tea.v1", "cup.v1"]), plan("c", &["cup.v1"])];
        let cup = object(json!({
            "apiVersion": "operators.coreos.com/v1alpha1", "kind": "ClusterServiceVersion",
            "metadata": {"name": "cup.v1"},
        }));
        let names = |csvs: &[Object]| -> Vec<String> {
            let found = deletable_plans(&plans, "tea.v1", csvs);
            found.into_iter().map(|plan| plan.name().to_owned()).collect()
        };
        assert_eq!(names(&[]), ["a", "b"]);
        assert_eq!(names(&[cup]), ["a"]);
    }

    #[test]
    fn labels_of_others_stay() {
        let config = object(json!({
            "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c", "labels": {
                "app": "tea", "olm.managed": "true", "olm.owner.kind": "ClusterServiceVersion",
                "operators.coreos.com/tea.ns": "", "olm.operatorframework.io/owner-name": "tea",
            }},
        }));
        let left = without_classic_labels(&config).unwrap();
        let names: Vec<&str> = left.labels().map(|(name, _)| name).collect();
        assert_eq!(names, ["app", "olm.operatorframework.io/owner-name"]);
        assert_eq!(without_classic_labels(&left), None);
    }
}
