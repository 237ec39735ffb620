#!/usr/bin/env bash
# An operator holds its upgrade back by its OperatorCondition, and an administrator lets it go on nevertheless. Who says nothing is upgraded.
. "$(dirname "$0")/common.sh"

own_namespace kitchen
kubectl apply -f - <<'YAML'
apiVersion: operators.coreos.com/v1alpha1
kind: Subscription
metadata: {name: teapot, namespace: kitchen}
spec: {name: teapot-operator, channel: stable, source: mine, sourceNamespace: olm, startingCSV: teapot-operator.v1.0.0}
YAML
# Nothing is said at first, so it goes up to the head of its channel.
# shows OC-12
runs kitchen teapot-operator.v1.2.0
subscription kitchen teapot state AtLatestKnown
# shows OC-03
shows "<none>" kubectl -n kitchen get operatorcondition teapot-operator.v1.2.0 -o custom-columns=SAID:.spec.conditions

# The operator is busy: it says so, with its own rights.
kubectl -n kitchen patch operatorcondition teapot-operator.v1.2.0 --type merge -p '
{"spec": {"conditions": [{"type": "Upgradeable", "status": "False", "reason": "Migrating", "message": "not now",
  "lastTransitionTime": "2026-01-01T00:00:00Z"}]}}'
kubectl -n kitchen wait --for=jsonpath='{.status.conditions[0].reason}'=Migrating operatorcondition/teapot-operator.v1.2.0 --timeout=60s
kubectl -n kitchen patch subscription teapot --type merge -p '{"spec":{"channel":"fast"}}'
kubectl -n kitchen wait --for=create csv/teapot-operator.v2.0.0 --timeout=60s
# shows OC-10
kubectl -n kitchen wait --for=jsonpath='{.status.reason}'=OperatorConditionNotUpgradeable csv/teapot-operator.v2.0.0 --timeout=60s
why_not "not now" subscription/teapot kitchen

# An administrator overrides it, in an editor.
cat >editor <<'SH'
#!/usr/bin/env bash
sed -i 's/^spec:$/spec:\n  overrides:\n  - {type: Upgradeable, status: "True", reason: Admin, message: go on}/' "$1"
SH
chmod +x editor
# shows OC-14
shows "edited" env KUBE_EDITOR="$PWD/editor" kubectl -n kitchen edit operatorcondition teapot-operator.v1.2.0
# shows OC-11
runs kitchen teapot-operator.v2.0.0
kubectl -n kitchen wait --for=delete csv/teapot-operator.v1.2.0 --timeout=60s
