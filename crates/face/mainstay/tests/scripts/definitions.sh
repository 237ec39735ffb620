#!/usr/bin/env bash
# Define a kind of our own, let people of a namespace use it, and use it.
# ids: CRD-01..CRD-03 CRD-05..CRD-09 AT-OUT-05
. "$(dirname "$0")/common.sh"

kubectl apply -f - <<'YAML'
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: crontabs.stable.example.com}
spec:
  group: stable.example.com
  scope: Namespaced
  names: {plural: crontabs, singular: crontab, kind: CronTab, shortNames: [ct]}
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec: {type: object, properties: {cronSpec: {type: string}, image: {type: string}}}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata:
  name: aggregate-cron-tabs-admin-edit
  labels: {rbac.authorization.k8s.io/aggregate-to-admin: "true", rbac.authorization.k8s.io/aggregate-to-edit: "true"}
rules:
- {apiGroups: [stable.example.com], resources: [crontabs], verbs: [get, list, watch, create, update, patch, delete, deletecollection]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata:
  name: aggregate-cron-tabs-view
  labels: {rbac.authorization.k8s.io/aggregate-to-view: "true"}
rules:
- {apiGroups: [stable.example.com], resources: [crontabs], verbs: [get, list, watch]}
YAML
kubectl wait --for=condition=Established crd/crontabs.stable.example.com --timeout=60s
shows '"namespaced":true' kubectl get --raw /apis/stable.example.com/v1
# A name that is not made of the plural and the group is refused.
shows "must be spec.names.plural+" kubectl apply -f - <<'YAML'
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: other.stable.example.com}
spec:
  group: stable.example.com
  scope: Namespaced
  names: {plural: things, singular: thing, kind: Thing}
  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}]
YAML

# Who may edit a namespace may make such objects there, who may view it may look at them.
kubectl create namespace kitchen
kubectl -n kitchen create rolebinding dev --clusterrole=edit --user=dev
kubectl -n kitchen create rolebinding guest --clusterrole=view --user=guest
until kubectl auth can-i create crontabs -n kitchen --as dev && kubectl auth can-i list crontabs -n kitchen --as guest; do :; done
shows "no" kubectl auth can-i create crontabs -n kitchen --as guest
shows "no" kubectl auth can-i create customresourcedefinitions --as dev

kubectl -n kitchen --as dev apply -f - <<'YAML'
apiVersion: stable.example.com/v1
kind: CronTab
metadata: {name: my-new-cron-object, finalizers: [example.com/finalizer.stable]}
spec: {cronSpec: "* * * * /5", image: my-awesome-cron-image}
YAML
for name in crontab crontabs ct CronTab; do
  shows "crontab.stable.example.com/my-new-cron-object" kubectl -n kitchen get "$name" -o name
done
shows "kind: List" kubectl -n kitchen get ct -o yaml

# It goes when nobody holds it any more.
kubectl -n kitchen delete ct my-new-cron-object --wait=false
shows "deletionTimestamp" kubectl -n kitchen get ct my-new-cron-object -o yaml
kubectl -n kitchen patch ct my-new-cron-object --type merge -p '{"metadata":{"finalizers":null}}'
kubectl -n kitchen wait --for=delete ct/my-new-cron-object --timeout=60s
