#!/usr/bin/env bash
# Move a Subscription to another channel.
. "$(dirname "$0")/common.sh"

own_namespace kitchen
kubectl apply -f - <<'YAML'
apiVersion: operators.coreos.com/v1alpha1
kind: Subscription
metadata: {name: teapot, namespace: kitchen}
spec: {name: teapot-operator, channel: stable, source: mine, sourceNamespace: olm}
YAML
subscription kitchen teapot installedCSV teapot-operator.v1.2.0

# What would it do?
mainstay resolve -n kitchen --what-if subscribe=teapot-operator:fast
kubectl -n kitchen patch subscription teapot --type merge -p '{"spec":{"channel":"fast"}}'
# shows SUB-09
subscription kitchen teapot installedCSV teapot-operator.v2.0.0
runs kitchen teapot-operator.v2.0.0
kubectl -n kitchen wait --for=delete csv/teapot-operator.v1.2.0 --timeout=60s

# There is no way back to a channel whose head is older: the operator stays as it is.
kubectl -n kitchen patch subscription teapot --type merge -p '{"spec":{"channel":"stable"}}'
kubectl -n kitchen wait --for=jsonpath='{.spec.channel}'=stable subscription/teapot --timeout=60s
runs kitchen teapot-operator.v2.0.0
# shows SUB-09
shows "teapot-operator.v2.0.0" kubectl -n kitchen get sub teapot -o jsonpath='{.status.installedCSV}'

# A channel that is not there leaves the operator alone and says so.
kubectl -n kitchen patch subscription teapot --type merge -p '{"spec":{"channel":"fasst"}}'
holds kitchen teapot ResolutionFailed
why_not "fasst" subscription/teapot kitchen
runs kitchen teapot-operator.v2.0.0
