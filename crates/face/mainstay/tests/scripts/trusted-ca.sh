#!/usr/bin/env bash
# Certificates of our own for an operator: a ConfigMap that is filled, and mounted by the Subscription.
. "$(dirname "$0")/common.sh"

own_namespace kitchen
kubectl -n kitchen create configmap trusted-ca
kubectl -n kitchen label configmap trusted-ca config.openshift.io/inject-trusted-cabundle=true
# shows CA-01 CA-02
kubectl -n kitchen wait --for=jsonpath='{.data.ca-bundle\.crt}' configmap/trusted-ca --timeout=60s
# shows AT-CA-01 CA-01
shows "BEGIN CERTIFICATE" kubectl -n kitchen get configmap trusted-ca -o yaml
kubectl apply -f - <<'YAML'
apiVersion: operators.coreos.com/v1alpha1
kind: Subscription
metadata: {name: teapot, namespace: kitchen}
spec:
  name: teapot-operator
  channel: stable
  source: mine
  sourceNamespace: olm
  config:
    volumes:
    - name: trusted-ca
      configMap: {name: trusted-ca, items: [{key: ca-bundle.crt, path: tls-ca-bundle.pem}]}
    volumeMounts:
    - {name: trusted-ca, mountPath: /etc/pki/ca-trust/extracted/pem, readOnly: true}
YAML
runs kitchen teapot-operator.v1.2.0
deployment=$(kubectl -n kitchen get deployment -o name)
# shows AT-CA-01 CA-03
shows "mountPath: /etc/pki/ca-trust/extracted/pem" kubectl -n kitchen get "$deployment" -o yaml
# shows AT-CA-01 CA-02 CA-03
shows "path: tls-ca-bundle.pem" kubectl -n kitchen get "$deployment" -o yaml
