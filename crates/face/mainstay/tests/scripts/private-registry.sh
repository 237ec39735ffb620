#!/usr/bin/env bash
# A catalog in a registry that wants a name and a password: a pull secret, named by the CatalogSource.
. "$(dirname "$0")/common.sh"
command -v docker-registry >/dev/null || { echo "docker-registry is not installed"; exit 77; }

# The registry, for `kiwi` with the password `fruit`.
echo 'kiwi:$2b$05$u6NEnvFg6AAbVBZbQOoBSeYhPCz99j6d8I0pX/i6X01iySF4oUb/m' >htpasswd
port=$((20000 + RANDOM % 20000))
cat >registry.yml <<YAML
version: 0.1
storage: {inmemory: {}}
http: {addr: '127.0.0.1:$port'}
auth: {htpasswd: {realm: fruit, path: $PWD/htpasswd}}
YAML
docker-registry serve registry.yml >registry.log 2>&1 &
trap "kill $!" EXIT
until grep -q 'listening on' registry.log; do :; done
registry=127.0.0.1:$port

# The image of the catalog is brought there by somebody who may.
cat >auth.json <<JSON
{"auths": {"$registry": {"auth": "$(printf kiwi:fruit | base64)"}}}
JSON
mainstay catalog build "$SAMPLE" "$registry/fruit/catalog:v1" --authfile auth.json

# Without a pull secret the catalog says that it may not be read.
kubectl apply -f - <<YAML
apiVersion: operators.coreos.com/v1alpha1
kind: CatalogSource
metadata: {name: private, namespace: olm}
spec: {sourceType: grpc, image: '$registry/fruit/catalog:v1'}
YAML
# shows AT-CAT-09 CAT-36 PSC-01
kubectl -n olm wait --for=jsonpath='{.status.connectionState.lastObservedState}'=TRANSIENT_FAILURE catalogsource/private --timeout=60s
why_not "$registry/fruit/catalog:v1" catalogsource/private olm
# shows STA-04
shows "TRANSIENT_FAILURE" kubectl -n olm describe catalogsource private

kubectl -n olm create secret generic fruit --from-file=.dockerconfigjson=auth.json --type=kubernetes.io/dockerconfigjson
kubectl -n olm patch catalogsource private --type merge -p '{"spec":{"secrets":["fruit"]}}'
# shows PSC-01 PSC-02 PSC-05 PSC-06
kubectl -n olm wait --for=jsonpath='{.status.connectionState.lastObservedState}'=READY catalogsource/private --timeout=60s

own_namespace kitchen
kubectl apply -f - <<'YAML'
apiVersion: operators.coreos.com/v1alpha1
kind: Subscription
metadata: {name: teapot, namespace: kitchen}
spec: {name: teapot-operator, channel: stable, source: private, sourceNamespace: olm}
YAML
runs kitchen teapot-operator.v1.2.0

# The secret is the catalog's: it is not put where operators run.
# shows PSC-02
hides "fruit" kubectl -n kitchen get secret
