#!/usr/bin/env bash
# Install a specific version and stay there: a first version, and approval by hand.
# ids: SUB-05 AT-SUB-01
. "$(dirname "$0")/common.sh"

own_namespace kitchen
kubectl apply -f - <<'YAML'
apiVersion: operators.coreos.com/v1alpha1
kind: Subscription
metadata: {name: teapot, namespace: kitchen}
spec:
  name: teapot-operator
  channel: stable
  source: mine
  sourceNamespace: olm
  startingCSV: teapot-operator.v1.0.0
  installPlanApproval: Manual
YAML

# Even the first version waits.
holds kitchen teapot InstallPlanPending
first=$(plan kitchen teapot)
shows "teapot-operator.v1.0.0" kubectl -n kitchen get installplan "$first" -o jsonpath='{.spec.clusterServiceVersionNames}'
kubectl -n kitchen patch installplan "$first" --type merge -p '{"spec":{"approved":true}}'
runs kitchen teapot-operator.v1.0.0

# There is a newer one: its plan waits, and nothing is upgraded by itself.
subscription kitchen teapot currentCSV teapot-operator.v1.1.0 || subscription kitchen teapot currentCSV teapot-operator.v1.2.0
holds kitchen teapot InstallPlanPending
shows "teapot-operator.v1.0.0" kubectl -n kitchen get sub teapot -o jsonpath='{.status.installedCSV}'
second=$(plan kitchen teapot)
[ "$first" != "$second" ]
why_not "waits for approval" subscription/teapot kitchen
