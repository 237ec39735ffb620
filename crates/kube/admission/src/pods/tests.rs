//! ServiceAccounts, `PriorityClasses` and mirror pods.

use super::{PodContext, set_priority, set_service_account, validate_service_account};
use mainstay_object::Object;
use mainstay_object::Objects;
use serde_json::{Value, json};

struct StoredObjects(Vec<(&'static str, Object)>);

impl Objects for StoredObjects {
    fn get(&self, resource: &str, namespace: &str, name: &str) -> Option<Object> {
        let list = self.list(resource, None).into_iter();
        list.into_iter().find(|object| object.name() == name && object.namespace() == namespace)
    }

    fn list(&self, resource: &str, _: Option<&str>) -> Vec<Object> {
        let all = self.0.iter().filter(|(stored, _)| *stored == resource);
        all.map(|(_, object)| object.clone()).collect()
    }
}

fn object(value: Value) -> Object {
    Object::from_value(value).expect("an object")
}

fn with_context<T>(objects: &StoredObjects, act: impl FnOnce(&PodContext<'_>) -> T) -> T {
    act(&PodContext { namespace: "t", objects })
}

#[test]
fn service_accounts_and_priority_classes_must_exist() {
    let mut objects = StoredObjects(Vec::new());
    let mut spec = json!({"serviceAccountName": "nope"}).as_object().cloned().expect("fields");
    let missing =
        with_context(&objects, |context| set_service_account(&mut spec, context)).unwrap_err();
    assert_eq!(
        missing.to_string(),
        "error looking up service account t/nope: serviceaccount \"nope\" not found"
    );
    let account = object(json!({"metadata": {"name": "nope", "namespace": "t"}}));
    objects.0.push(("serviceaccounts", account));
    with_context(&objects, |context| set_service_account(&mut spec, context)).expect("an account");

    let gold = json!({"priorityClassName": "gold"}).as_object().cloned().expect("fields");
    let mut spec = gold.clone();
    let missing = with_context(&objects, |context| set_priority(&mut spec, context)).unwrap_err();
    assert_eq!(missing.to_string(), "no PriorityClass with name gold was found");
    let class =
        object(json!({"metadata": {"name": "gold"}, "value": 7, "preemptionPolicy": "Never"}));
    objects.0.push((super::PRIORITY_CLASSES, class));
    with_context(&objects, |context| set_priority(&mut spec, context)).expect("a class");
    assert_eq!((&spec["priority"], &spec["preemptionPolicy"]), (&json!(7), &json!("Never")));
    for (priority, class) in
        [(2_000_000_000_i64, "system-cluster-critical"), (2_000_001_000, "system-node-critical")]
    {
        let mut spec = json!({"priorityClassName": class}).as_object().cloned().expect("fields");
        with_context(&objects, |context| set_priority(&mut spec, context)).expect("a class");
        assert_eq!(spec["priority"], json!(priority));
    }
}

#[test]
fn a_service_account_may_restrict_its_pods_to_its_secrets() {
    let account = |says: &str| {
        object(json!({
            "metadata": {"name": "a", "namespace": "t",
                "annotations": {"kubernetes.io/enforce-mountable-secrets": says}},
            "secrets": [{"name": "mine"}], "imagePullSecrets": [{"name": "pull"}],
        }))
    };
    let pod = |spec: Value| {
        let mut pod = object(json!({"metadata": {"name": "p"}, "spec": spec}));
        pod.set(&["spec", "serviceAccountName"], "a".into());
        pod
    };
    let by_key = |name: &str| {
        json!([{"name": "c", "env": [
            {"name": "E", "valueFrom": {"secretKeyRef": {"name": name}}}]}])
    };
    let from = json!([{"name": "c", "envFrom": [{"secretRef": {"name": "other"}}]}]);
    for (spec, expected) in [
        (json!({"volumes": [{"name": "v", "secret": {"secretName": "mine"}}]}), ""),
        (json!({"containers": by_key("mine"), "imagePullSecrets": [{"name": "pull"}]}), ""),
        (
            json!({"volumes": [{"name": "v", "secret": {"secretName": "other"}}]}),
            "volume with secret.secretName=\"other\" is not allowed because service account a does not reference that secret",
        ),
        (
            json!({"initContainers": by_key("other")}),
            "init container c with envVar E referencing secret.secretName=\"other\" is not allowed because service account a does not reference that secret",
        ),
        (
            json!({"containers": from}),
            "container c with envFrom referencing secret.secretName=\"other\" is not allowed because service account a does not reference that secret",
        ),
        (
            json!({"imagePullSecrets": [{"name": "mine"}]}),
            "imagePullSecrets[0].name=\"mine\" is not allowed because service account a does not reference that imagePullSecret",
        ),
    ] {
        let strict = StoredObjects(vec![("serviceaccounts", account("true"))]);
        let free = StoredObjects(vec![("serviceaccounts", account("false"))]);
        let pod = pod(spec);
        let error = with_context(&strict, |context| validate_service_account(&pod, context)).err();
        let found = error.map(|error| error.to_string()).unwrap_or_default();
        assert_eq!(found, expected);
        assert_eq!(with_context(&free, |context| validate_service_account(&pod, context)), Ok(()));
    }
}

#[test]
fn a_mirror_pod_has_no_service_account_and_no_secrets() {
    let objects = StoredObjects(Vec::new());
    let pod = |spec: Value| {
        let metadata = json!({"name": "p", "annotations": {"kubernetes.io/config.mirror": "x"}});
        object(json!({"metadata": metadata, "spec": spec}))
    };
    for (spec, expected) in [
        (json!({"volumes": [{"name": "v", "emptyDir": {}}], "imagePullSecrets": []}), ""),
        (
            json!({"serviceAccountName": "default"}),
            "a mirror pod may not reference service accounts",
        ),
        (
            json!({"containers": [{"envFrom": [{"secretRef": {"name": "s"}}]}]}),
            "a mirror pod may not reference secrets",
        ),
        (
            json!({"volumes": [{"projected": {"sources": [{"serviceAccountToken": {}}]}}]}),
            "a mirror pod may not use ServiceAccountToken volume projections",
        ),
    ] {
        let pod = pod(spec);
        let error = with_context(&objects, |context| validate_service_account(&pod, context)).err();
        let found = error.map(|error| error.to_string()).unwrap_or_default();
        assert_eq!(found, expected);
    }
}
