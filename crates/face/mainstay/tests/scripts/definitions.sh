#!/usr/bin/env bash
# Define a kind of our own, let people of a namespace use it, and use it.
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
# shows CRD-01 CRD-02 CRD-05
shows '"namespaced":true' kubectl get --raw /apis/stable.example.com/v1
# A name that is not made of the plural and the group is refused.
# shows CRD-03
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
# shows CRD-06
until kubectl auth can-i create crontabs -n kitchen --as dev && kubectl auth can-i list crontabs -n kitchen --as guest; do :; done
# shows CRD-06
shows "no" kubectl auth can-i create crontabs -n kitchen --as guest
# shows CRD-01
shows "no" kubectl auth can-i create customresourcedefinitions --as dev

kubectl -n kitchen --as dev apply -f - <<'YAML'
apiVersion: stable.example.com/v1
kind: CronTab
metadata: {name: my-new-cron-object, finalizers: [example.com/finalizer.stable]}
spec: {cronSpec: "* * * * /5", image: my-awesome-cron-image}
YAML
for name in crontab crontabs ct CronTab CRONTABS; do
  # shows CRD-09
  shows "crontab.stable.example.com/my-new-cron-object" kubectl -n kitchen get "$name" -o name
  # Clients of long ago printed the kind beside the name.
  # shows AT-OUT-05 CRD-09
  shows "my-new-cron-object CronTab stable.example.com/v1" kubectl -n kitchen get "$name" \
    -o jsonpath='{.items[0].metadata.name} {.items[0].kind} {.items[0].apiVersion}'
done
# shows CRD-07
shows "* * * * /5 my-awesome-cron-image" kubectl -n kitchen get ct my-new-cron-object -o jsonpath='{.spec.cronSpec} {.spec.image}'
shows "kind: List" kubectl -n kitchen get ct -o yaml

# It goes when nobody holds it any more.
kubectl -n kitchen delete ct my-new-cron-object --wait=false
# shows CRD-07 CRD-08
shows "deletionTimestamp" kubectl -n kitchen get ct my-new-cron-object -o yaml
kubectl -n kitchen patch ct my-new-cron-object --type merge -p '{"metadata":{"finalizers":null}}'
# shows CRD-08
kubectl -n kitchen wait --for=delete ct/my-new-cron-object --timeout=60s
