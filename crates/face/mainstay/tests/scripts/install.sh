#!/usr/bin/env bash
# Install an operator from the command line.
. "$(dirname "$0")/common.sh"

# Which operators are there, and in which channels?
kubectl get catalogsource -n olm
# shows CAT-01 CAT-34
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
# shows SUB-01 SUB-03 SUB-06
runs kitchen teapot-operator.v1.2.0
subscription kitchen teapot state AtLatestKnown
kubectl -n kitchen get sub,csv,installplan
# shows SUB-24
shows "subscription.operators.coreos.com/teapot" kubectl -n kitchen get sub,csv
# shows SUB-24
shows "NAME     PACKAGE           SOURCE   CHANNEL" kubectl -n kitchen get sub
# shows SUB-02 SUB-24 STA-03
shows "teapot-operator   mine     stable" kubectl -n kitchen get sub
for line in "CatalogSourcesUnhealthy" "AllCatalogSourcesHealthy" "all available catalogsources are healthy" "Last Transition Time:"; do
  # shows AT-OUT-04 STA-02 STA-03
  shows "$line" kubectl -n kitchen describe sub teapot
done
mainstay why subscription/teapot -n kitchen

# All namespaces: the namespace `operators` has an OperatorGroup that selects them all.
kubectl apply -f - <<'YAML'
apiVersion: operators.coreos.com/v1alpha1
kind: Subscription
metadata: {name: ferry, namespace: operators}
spec: {name: ferry-operator, source: mine, sourceNamespace: olm}
YAML
subscription operators ferry state AtLatestKnown
# shows OG-04 SUB-03
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
why_not "the ClusterServiceVersion supports OwnNamespace, SingleNamespace" subscription/lighthouse operators
