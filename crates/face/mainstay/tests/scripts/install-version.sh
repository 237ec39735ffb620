#!/usr/bin/env bash
# Install a specific version and stay there: a first version, and approval by hand.
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
# shows AT-SUB-01 SUB-05
holds kitchen teapot InstallPlanPending
first=$(plan kitchen teapot)
# shows AT-SUB-01
shows "teapot-operator.v1.0.0" kubectl -n kitchen get installplan "$first" -o jsonpath='{.spec.clusterServiceVersionNames}'
kubectl -n kitchen patch installplan "$first" --type merge -p '{"spec":{"approved":true}}'
# shows AT-SUB-01
runs kitchen teapot-operator.v1.0.0

# There is a newer one: its plan waits, and nothing is upgraded by itself.
subscription kitchen teapot currentCSV teapot-operator.v1.1.0 || subscription kitchen teapot currentCSV teapot-operator.v1.2.0
holds kitchen teapot InstallPlanPending
# shows AT-SUB-01 SUB-05
shows "teapot-operator.v1.0.0" kubectl -n kitchen get sub teapot -o jsonpath='{.status.installedCSV}'
second=$(plan kitchen teapot)
[ "$first" != "$second" ]
# shows AT-SUB-01 SUB-05
why_not "waits for approval" subscription/teapot kitchen
