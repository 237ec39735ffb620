#!/usr/bin/env bash
# Offer operators of our own: a catalog that is built as an image, served, updated and removed. REGISTRY is the cluster's registry, as
# `mainstay up` prints it; SAMPLE a folder with file-based catalogs.
. "$(dirname "$0")/common.sh"

registry=${REGISTRY#http://}
mkdir catalog
cp -r "$SAMPLE/lighthouse-operator" catalog/
mainstay catalog validate catalog
mainstay catalog build catalog "$registry/ours/catalog:v1"

kubectl create namespace bay
kubectl apply -f - <<YAML
apiVersion: operators.coreos.com/v1alpha1
kind: CatalogSource
metadata: {name: ours, namespace: olm}
spec:
  sourceType: grpc
  image: $registry/ours/catalog:v1
  displayName: Ours
  publisher: Us
  updateStrategy: {registryPoll: {interval: 1s}}
---
apiVersion: operators.coreos.com/v1
kind: OperatorGroup
metadata: {name: bay, namespace: bay}
YAML
# shows CAT-05
kubectl -n olm wait --for=jsonpath='{.status.connectionState.lastObservedState}'=READY catalogsource/ours --timeout=60s
kubectl -n olm get catalogsource
# shows AT-OUT-02
shows "ours   Ours      grpc   Us" kubectl -n olm get catalogsource ours
for line in "Connection State:" "Last Observed State:" "Registry Service:" "Service Namespace:"; do
  # shows CAT-35
  shows "$line" kubectl -n olm describe catalogsource ours
done
mainstay why catalogsource/ours -n olm

# The package comes with the next content of the image.
kubectl apply -f - <<'YAML'
apiVersion: operators.coreos.com/v1alpha1
kind: Subscription
metadata: {name: teapot, namespace: bay}
spec: {name: teapot-operator, channel: stable, source: ours, sourceNamespace: olm}
YAML
holds bay teapot ResolutionFailed
why_not "teapot-operator" subscription/teapot bay
cp -r "$SAMPLE/teapot-operator" catalog/
mainstay catalog build catalog "$registry/ours/catalog:v1"
# shows CAT-08 CAT-09 E051
subscription bay teapot state AtLatestKnown
runs bay teapot-operator.v1.2.0

# What was installed runs on without its catalog.
kubectl -n olm delete catalogsource ours
holds bay teapot CatalogSourcesUnhealthy
# shows E057
runs bay teapot-operator.v1.2.0
why_not "there is no CatalogSource olm/ours" subscription/teapot bay
