#!/usr/bin/env bash
# Proxies for one operator, instead of the cluster's. The test's cluster runs with --http-proxy http://cluster:3128 and
# --https-proxy http://cluster:3129.
. "$(dirname "$0")/common.sh"

own_namespace kitchen
kubectl apply -f - <<'YAML'
apiVersion: operators.coreos.com/v1alpha1
kind: Subscription
metadata: {name: teapot, namespace: kitchen}
spec: {name: teapot-operator, channel: stable, source: mine, sourceNamespace: olm}
YAML
runs kitchen teapot-operator.v1.2.0
deployment=$(kubectl -n kitchen get deployment -o name)
# shows PRX-01
shows "http://cluster:3128" kubectl -n kitchen get "$deployment" -o yaml

# One of the three variables decides about all of them.
kubectl -n kitchen patch subscription teapot --type merge -p '
spec: {config: {env: [{name: HTTP_PROXY, value: test_http}, {name: HTTPS_PROXY, value: test_https}, {name: NO_PROXY, value: test}]}}'
until kubectl -n kitchen get "$deployment" -o yaml | grep -q test_http; do :; done
for text in test_http test_https "value: test"; do
  # shows AT-PRX-01 PRX-02 PRX-06
  shows "$text" sh -c "kubectl -n kitchen get '$deployment' -o yaml | grep -i PROXY -A 2"
done
# shows AT-PRX-01 PRX-03
hides "http://cluster" kubectl -n kitchen get "$deployment" -o yaml
kubectl -n kitchen patch subscription teapot --type merge -p '{"spec":{"config":{"env":[{"name":"HTTP_PROXY","value":"only"}]}}}'
until kubectl -n kitchen get "$deployment" -o yaml | grep -q 'value: only'; do :; done
# shows AT-PRX-02 PRX-03
hides "HTTPS_PROXY" kubectl -n kitchen get "$deployment" -o yaml

# Empty: without any proxy.
kubectl -n kitchen patch subscription teapot --type merge -p '{"spec":{"config":{"env":[{"name":"HTTPS_PROXY","value":""}]}}}'
while kubectl -n kitchen get "$deployment" -o yaml | grep -q 'value: only'; do :; done
# shows AT-PRX-03 PRX-04
hides "http://cluster" kubectl -n kitchen get "$deployment" -o yaml

# Back to the cluster's.
kubectl -n kitchen patch subscription teapot --type merge -p '{"spec":{"config":null}}'
until kubectl -n kitchen get "$deployment" -o yaml | grep -q http://cluster:3129; do :; done
runs kitchen teapot-operator.v1.2.0
