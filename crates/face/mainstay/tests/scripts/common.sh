# Words that the scripts beside this one share. Each of them shows one task of an administrator, and is run as it stands by a test.
# They make namespaces and change catalogs, so each needs a cluster of its own: `fresh.sh SCRIPT` brings one up and runs it there.
set -euo pipefail
if [ -z "${SAMPLE:-}" ] || [ -z "${REGISTRY:-}" ]; then
  echo "this script needs a cluster of its own: run it with $(dirname "${BASH_SOURCE[0]}")/fresh.sh $(basename "$0")" >&2
  exit 2
fi

# A namespace whose operators watch it alone.
own_namespace() {
  kubectl create namespace "$1"
  kubectl apply -f - <<YAML
apiVersion: operators.coreos.com/v1
kind: OperatorGroup
metadata: {name: $1, namespace: $1}
spec: {targetNamespaces: [$1]}
YAML
}

# Waits until a version runs: runs NAMESPACE CSV
runs() {
  kubectl -n "$1" wait --for=create "csv/$2" --timeout=60s
  kubectl -n "$1" wait --for=jsonpath='{.status.phase}'=Succeeded "csv/$2" --timeout=60s
}

# Waits until a field of a Subscription has a value: subscription NAMESPACE NAME FIELD VALUE
subscription() {
  kubectl -n "$1" wait --for=jsonpath="{.status.$3}"="$4" "subscription/$2" --timeout=60s
}

# Waits until a condition of a Subscription holds: holds NAMESPACE NAME TYPE
holds() {
  kubectl -n "$1" wait --for="condition=$3" "subscription/$2" --timeout=60s
}

# The plan that a Subscription refers to.
plan() {
  kubectl -n "$1" get subscription "$2" -o jsonpath='{.status.installPlanRef.name}'
}

# Fails unless a text is in what a command prints: shows TEXT COMMAND…
shows() {
  local text=$1 said
  shift
  said=$("$@" 2>&1) || true
  grep -qF -- "$text" <<<"$said" || { echo "no '$text' in what '$*' says:" >&2; echo "$said" >&2; exit 1; }
}

# Fails if a text is in what a command prints: hides TEXT COMMAND…
hides() {
  local text=$1 said
  shift
  said=$("$@" 2>&1) || true
  ! grep -qF -- "$text" <<<"$said" || { echo "'$text' is in what '$*' says:" >&2; echo "$said" >&2; exit 1; }
}

# Explains something that is not as it should be, which ends with 3: why_not TEXT KIND/NAME NAMESPACE
why_not() {
  local said code=0
  said=$(mainstay why "$2" -n "$3") || code=$?
  [ "$code" = 3 ] || { echo "mainstay why $2 ended with $code: $said" >&2; exit 1; }
  grep -qF -- "$1" <<<"$said" || { echo "no '$1' in: $said" >&2; exit 1; }
}
