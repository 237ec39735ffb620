#!/usr/bin/env bash
# Delete an operator: first its Subscription, then its version. Definitions and what people made of them stay.
. "$(dirname "$0")/common.sh"

own_namespace kitchen
kubectl apply -f - <<'YAML'
apiVersion: operators.coreos.com/v1alpha1
kind: Subscription
metadata: {name: teapot, namespace: kitchen}
spec: {name: teapot-operator, channel: stable, source: mine, sourceNamespace: olm}
YAML
subscription kitchen teapot state AtLatestKnown
csv=$(kubectl -n kitchen get subscription teapot -o jsonpath='{.status.currentCSV}')
runs kitchen "$csv"
deployment=$(kubectl -n kitchen get deployment -o name)

# shows AT-DEL-01 DEL-01
shows "subscription.operators.coreos.com \"teapot\" deleted" kubectl -n kitchen delete subscription teapot
# shows AT-DEL-01 DEL-01
shows "clusterserviceversion.operators.coreos.com \"$csv\" deleted" kubectl -n kitchen delete csv "$csv"
kubectl -n kitchen wait --for=delete "$deployment" --timeout=60s
hides "$csv" kubectl -n kitchen get csv
# shows AT-DEL-01 DEL-03
shows "teapots.brew.example.com" kubectl get crd teapots.brew.example.com
