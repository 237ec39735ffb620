#!/usr/bin/env bash
# Have an operator installed with the rights of a service account, and no more.
. "$(dirname "$0")/common.sh"

kubectl create namespace scoped
kubectl apply -f - <<'YAML'
apiVersion: v1
kind: ServiceAccount
metadata: {name: scoped, namespace: scoped}
---
apiVersion: operators.coreos.com/v1
kind: OperatorGroup
metadata: {name: scoped, namespace: scoped}
spec: {serviceAccountName: scoped, targetNamespaces: [scoped]}
---
apiVersion: operators.coreos.com/v1alpha1
kind: Subscription
metadata: {name: lighthouse, namespace: scoped}
spec: {name: lighthouse-operator, channel: stable, source: mine, sourceNamespace: olm}
YAML

# The account may do nothing: the plan says what it lacks, one thing at a time, and who.
kubectl -n scoped wait --for=jsonpath='{.status.installPlanRef.kind}'=InstallPlan subscription/lighthouse --timeout=60s
plan=$(plan scoped lighthouse)
# shows IP-14 SCO-03 SCO-11
until kubectl -n scoped get installplan "$plan" -o jsonpath='{.status.message}' | grep -q 'is forbidden: User "system:serviceaccount:scoped:scoped"'; do :; done
why_not "grant it: kubectl -n scoped create role" subscription/lighthouse scoped

# Everything within the namespace, and nothing outside of it.
kubectl apply -f - <<'YAML'
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: scoped, namespace: scoped}
rules: [{apiGroups: ['*'], resources: ['*'], verbs: ['*']}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: scoped, namespace: scoped}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: scoped}
subjects: [{kind: ServiceAccount, name: scoped, namespace: scoped}]
YAML
subscription scoped lighthouse state AtLatestKnown
# shows AT-SCO-01
runs scoped lighthouse-operator.v1.0.0
# shows AT-SCO-01
shows "no" kubectl auth can-i create deployments -n default --as system:serviceaccount:scoped:scoped
# shows SCO-05
shows "scoped" kubectl -n scoped get installplan "$plan" -o jsonpath='{.status.attenuatedServiceAccountRef.name}'

# An operator that asks for more is installed as far as the account may, and says what is missing.
kubectl apply -f - <<'YAML'
apiVersion: operators.coreos.com/v1alpha1
kind: Subscription
metadata: {name: teapot, namespace: scoped}
spec: {name: teapot-operator, channel: stable, source: mine, sourceNamespace: olm}
YAML
kubectl -n scoped wait --for=jsonpath='{.status.installPlanRef.kind}'=InstallPlan subscription/teapot --timeout=60s
plan=$(plan scoped teapot)
# shows AT-SCO-02 SCO-11 SCO-12
until kubectl -n scoped get installplan "$plan" -o jsonpath='{.status.message}' | grep -q 'clusterroles.rbac.authorization.k8s.io is forbidden: User "system:serviceaccount:scoped:scoped" cannot create resource "clusterroles" in API group "rbac.authorization.k8s.io" at the cluster scope'; do :; done
why_not "grant it: kubectl create clusterrole" subscription/teapot scoped

# Who may edit the namespace may order operators there, and may not say what they watch.
kubectl -n scoped create rolebinding dev --clusterrole=edit --user=dev
# shows SUB-30
until [ "$(kubectl auth can-i create subscriptions.operators.coreos.com -n scoped --as dev)" = yes ]; do :; done
# shows SUB-30
shows "no" kubectl auth can-i create operatorgroups.operators.coreos.com -n scoped --as dev
