#!/usr/bin/env bash
# Refresh a Subscription whose bundle could not be fetched: delete it and what came of it, and subscribe again.
. "$(dirname "$0")/common.sh"

# A catalog whose bundle is an image that nobody has.
registry=${REGISTRY#http://}
mkdir -p catalog/kiwi
cat >catalog/kiwi/catalog.yaml <<YAML
{schema: olm.package, name: kiwi, defaultChannel: stable}
---
{schema: olm.channel, package: kiwi, name: stable, entries: [{name: kiwi.v1.0.0}]}
---
schema: olm.bundle
package: kiwi
name: kiwi.v1.0.0
image: $registry/kiwi-bundle:v1.0.0
properties:
- {type: olm.package, value: {packageName: kiwi, version: 1.0.0}}
YAML
mainstay catalog build catalog "$registry/kiwi-catalog:v1"
own_namespace kitchen
kubectl apply -f - <<YAML
apiVersion: operators.coreos.com/v1alpha1
kind: CatalogSource
metadata: {name: kiwi, namespace: kitchen}
spec: {sourceType: grpc, image: '$registry/kiwi-catalog:v1'}
YAML
cat >subscription.yaml <<'YAML'
apiVersion: operators.coreos.com/v1alpha1
kind: Subscription
metadata: {name: kiwi, namespace: kitchen}
spec: {name: kiwi, channel: stable, source: kiwi, sourceNamespace: kitchen}
YAML
kubectl apply -f subscription.yaml
# shows SUB-25
holds kitchen kiwi BundleUnpackFailed
why_not "its bundle cannot be unpacked" subscription/kiwi kitchen

# The image is there now.
mkdir -p bundle/manifests bundle/metadata
cat >bundle/metadata/annotations.yaml <<'YAML'
annotations:
  operators.operatorframework.io.bundle.mediatype.v1: registry+v1
  operators.operatorframework.io.bundle.manifests.v1: manifests/
  operators.operatorframework.io.bundle.metadata.v1: metadata/
  operators.operatorframework.io.bundle.package.v1: kiwi
  operators.operatorframework.io.bundle.channels.v1: stable
YAML
cat >bundle/manifests/kiwi.clusterserviceversion.yaml <<'YAML'
apiVersion: operators.coreos.com/v1alpha1
kind: ClusterServiceVersion
metadata: {name: kiwi.v1.0.0, namespace: placeholder}
spec:
  displayName: Kiwi
  version: 1.0.0
  description: Fruit.
  keywords: [kiwi]
  maintainers: [{name: kiwi, email: kiwi@example.com}]
  provider: {name: kiwi}
  installModes:
  - {type: OwnNamespace, supported: true}
  - {type: SingleNamespace, supported: true}
  - {type: MultiNamespace, supported: false}
  - {type: AllNamespaces, supported: true}
  install:
    strategy: deployment
    spec:
      deployments:
      - name: kiwi
        spec:
          replicas: 1
          selector: {matchLabels: {app: kiwi}}
          template:
            metadata: {labels: {app: kiwi}}
            spec: {containers: [{name: main, image: 'example.com/kiwi:v1'}]}
YAML
mainstay bundle build bundle "$registry/kiwi-bundle:v1.0.0"

# What is left of the attempt goes. Bundles are unpacked in the process, so there is no Job and no ConfigMap to look for.
kubectl -n kitchen delete subscription kiwi
kubectl -n kitchen delete csv,installplan --all
kubectl apply -f subscription.yaml
# shows DEL-20 SUB-25
runs kitchen kiwi.v1.0.0
# shows DEL-20
subscription kitchen kiwi state AtLatestKnown
