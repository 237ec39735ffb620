#!/usr/bin/env bash
# Install an operator from the command line.
# ids: SUB-01 SUB-02 SUB-03 SUB-06 SUB-24 CAT-01 CAT-34 STA-02 STA-03 AT-OUT-04
. "$(dirname "$0")/common.sh"

# Which operators are there, and in which channels?
kubectl get catalogsource -n olm
shows "NAME   DISPLAY   TYPE   PUBLISHER   AGE" kubectl get catalogsource -n olm

# A namespace with exactly one OperatorGroup, and the wish.
own_namespace kitchen
kubectl apply -f - <<'YAML'
apiVersion: operators.coreos.com/v1alpha1
kind: Subscription
metadata: {name: teapot, namespace: kitchen}
spec: {name: teapot-operator, channel: stable, source: mine, sourceNamespace: olm}
YAML

# The head of the channel is installed.
runs kitchen teapot-operator.v1.2.0
subscription kitchen teapot state AtLatestKnown
kubectl -n kitchen get sub,csv,installplan
shows "subscription.operators.coreos.com/teapot" kubectl -n kitchen get sub,csv
shows "teapot-operator   mine     stable" kubectl -n kitchen get sub
shows "all available catalogsources are healthy" kubectl -n kitchen describe sub teapot
mainstay why subscription/teapot -n kitchen

# All namespaces: the namespace `operators` has an OperatorGroup that selects them all.
kubectl apply -f - <<'YAML'
apiVersion: operators.coreos.com/v1alpha1
kind: Subscription
metadata: {name: ferry, namespace: operators}
spec: {name: ferry-operator, source: mine, sourceNamespace: olm}
YAML
subscription operators ferry state AtLatestKnown
runs operators ferry-operator.v2.2.0

# An operator that may not watch all namespaces says so.
kubectl apply -f - <<'YAML'
apiVersion: operators.coreos.com/v1alpha1
kind: Subscription
metadata: {name: lighthouse, namespace: operators}
spec: {name: lighthouse-operator, channel: stable, source: mine, sourceNamespace: olm}
YAML
kubectl -n operators wait --for=create csv/lighthouse-operator.v1.0.0 --timeout=60s
kubectl -n operators wait --for=jsonpath='{.status.phase}'=Failed csv/lighthouse-operator.v1.0.0 --timeout=60s
why_not "the version supports OwnNamespace, SingleNamespace" subscription/lighthouse operators
