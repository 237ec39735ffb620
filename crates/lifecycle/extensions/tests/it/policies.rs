//! Admission policies over ClusterExtensions: an administrator restricts what a user may install.

use mainstay_api::resources::CLUSTER_EXTENSION;
use mainstay_api::{CrdChannel, olm_v1_crds};
use mainstay_object::{Object, builtin};
use mainstay_testkit::{Identity, TestCluster};
use serde_json::{Value, json};

/// The user `dev` may write ClusterExtensions. A policy allows one package in one namespace from one catalog,
/// along its update paths and with the check of CustomResourceDefinitions.
const MANIFESTS: &str = r#"
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: installers}
rules: [{apiGroups: [olm.operatorframework.io], resources: [clusterextensions], verbs: ["*"]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: installers}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: installers}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: dev}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: dev-installs}
spec:
  failurePolicy: Fail
  matchConstraints:
    resourceRules:
    - {apiGroups: [olm.operatorframework.io], apiVersions: [v1], operations: [CREATE, UPDATE], resources: [clusterextensions]}
  matchConditions:
  - {name: dev, expression: request.userInfo.username == 'dev'}
  variables:
  - {name: catalog, expression: object.spec.source.catalog}
  validations:
  - expression: variables.catalog.packageName == 'a'
    messageExpression: "'package ' + variables.catalog.packageName + ' is not allowed'"
  - {expression: object.spec.namespace == 'dev', message: only the namespace dev is allowed}
  - expression: "has(variables.catalog.selector) && has(variables.catalog.selector.matchLabels) && variables.catalog.selector.matchLabels['olm.operatorframework.io/metadata.name'] == 'cat'"
    message: the catalog cat must be selected
  - expression: "variables.catalog.upgradeConstraintPolicy == 'CatalogProvided'"
    message: SelfCertified is not allowed
  - expression: "!has(object.spec.install) || object.spec.install.preflight.crdUpgradeSafety.enforcement == 'Strict'"
    message: the check of CRDs must stay on
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: dev-installs}
spec: {policyName: dev-installs, validationActions: [Deny]}
"#;

fn extension(change: impl FnOnce(&mut Value)) -> Object {
    let mut extension = json!({
        "apiVersion": "olm.operatorframework.io/v1", "kind": "ClusterExtension",
        "metadata": {"name": "ext"},
        "spec": {
            "namespace": "dev",
            "source": {"sourceType": "Catalog", "catalog": {
                "packageName": "a",
                "selector": {"matchLabels": {"olm.operatorframework.io/metadata.name": "cat"}},
            }},
        },
    });
    change(&mut extension["spec"]);
    Object::from_value(extension).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn policy_restricts_the_extensions_of_a_user() {
    let cluster = TestCluster::bare().await;
    for crd in olm_v1_crds(CrdChannel::Standard) {
        let name = cluster.apply(crd).await.name().to_owned();
        let crds = &builtin::CUSTOM_RESOURCE_DEFINITION;
        cluster.wait_for_condition(crds, None, &name, "Established").await;
    }
    cluster.apply_yaml(MANIFESTS).await;
    let user = cluster.cluster_as(Identity::new("dev", []));
    let denied = async |change: fn(&mut Value)| {
        let refused = user.create(&CLUSTER_EXTENSION, &extension(change)).await;
        let text = refused.unwrap_err().to_string();
        let (head, reason) = text.split_once("denied request: ").unwrap();
        assert!(head.contains("ValidatingAdmissionPolicy 'dev-installs'"), "{head}");
        reason.to_owned()
    };
    // shows OLMV1-48
    assert_eq!(
        denied(|spec| spec["source"]["catalog"]["packageName"] = "b".into()).await,
        "package b is not allowed"
    );
    // shows OLMV1-49
    assert_eq!(
        denied(|spec| spec["namespace"] = "other".into()).await,
        "only the namespace dev is allowed"
    );
    // shows OLMV1-50
    assert_eq!(
        denied(|spec| spec["source"]["catalog"]["selector"] = json!({})).await,
        "the catalog cat must be selected"
    );
    // shows OLMV1-51
    assert_eq!(
        denied(|spec| spec["source"]["catalog"]["upgradeConstraintPolicy"] = "SelfCertified".into())
            .await,
        "SelfCertified is not allowed"
    );
    let unsafe_install = |spec: &mut Value| {
        spec["install"] = json!({"preflight": {"crdUpgradeSafety": {"enforcement": "None"}}});
    };
    // shows OLMV1-52
    assert_eq!(denied(unsafe_install).await, "the check of CRDs must stay on");
    let allowed = user.create(&CLUSTER_EXTENSION, &extension(|_| ())).await;
    // shows OLMV1-47
    assert_eq!(allowed.unwrap().name(), "ext");
    // The policy is about the user only.
    let mut other = extension(unsafe_install);
    other.set(&["metadata", "name"], "other".into());
    assert!(cluster.cluster().create(&CLUSTER_EXTENSION, &other).await.is_ok());
}
