#!/usr/bin/env bash
# Approve each installation and upgrade by hand.
. "$(dirname "$0")/common.sh"

own_namespace kitchen
kubectl apply -f - <<'YAML'
apiVersion: operators.coreos.com/v1alpha1
kind: Subscription
metadata: {name: teapot, namespace: kitchen}
spec: {name: teapot-operator, channel: stable, source: mine, sourceNamespace: olm, installPlanApproval: Manual}
YAML
# shows IP-03 SUB-04
holds kitchen teapot InstallPlanPending
plan=$(plan kitchen teapot)
why_not "approve it: kubectl -n kitchen patch installplan $plan" subscription/teapot kitchen

# See what it would make, then approve it.
kubectl -n kitchen get installplan "$plan" -o jsonpath='{range .status.plan[*]}{.resource.kind} {.resource.name}{"\n"}{end}'
kubectl -n kitchen patch installplan "$plan" --type merge -p '{"spec":{"approved":true}}'
# shows IP-03
runs kitchen teapot-operator.v1.2.0
kubectl -n kitchen wait --for=jsonpath='{.status.phase}'=Complete "installplan/$plan" --timeout=60s

# A plan that is deleted before it is approved is made again.
kubectl -n kitchen patch subscription teapot --type merge -p '{"spec":{"channel":"fast"}}'
kubectl -n kitchen wait --for=jsonpath='{.status.currentCSV}'=teapot-operator.v2.0.0 subscription/teapot --timeout=60s
holds kitchen teapot InstallPlanPending
old=$(plan kitchen teapot)
kubectl -n kitchen delete installplan "$old"
new=$old
while [ "$new" = "$old" ] || [ -z "$new" ]; do new=$(plan kitchen teapot); done
# shows E005
kubectl -n kitchen wait --for=jsonpath='{.status.phase}'=RequiresApproval "installplan/$new" --timeout=60s
kubectl -n kitchen patch installplan "$new" --type merge -p '{"spec":{"approved":true}}'
# shows E005
runs kitchen teapot-operator.v2.0.0
