#!/usr/bin/env bash
# Runs a script of this folder against a cluster of its own, which is gone afterwards: fresh.sh install.sh
# `mainstay` and `kubectl` have to be on PATH. Nothing is touched that runs already: the ports are free ones, nothing is kept.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
task=$here/${1:?name a script of $here, such as install.sh}
[ -f "$task" ] || { echo "there is no script $task" >&2; exit 2; }
SAMPLE=$(cd "$here/../../sample" && pwd)
place=$(mktemp -d)

exec {cluster}< <(exec mainstay up --in-memory --listen 127.0.0.1:0 --kubeconfig "$place/kubeconfig" --catalog "mine=$SAMPLE" \
  --registry 127.0.0.1:0 --http-proxy http://cluster:3128 --https-proxy http://cluster:3129)
pid=$!
trap 'kill "$pid" 2>/dev/null || true; rm -rf "$place"' EXIT
REGISTRY=
while true; do
  read -r word value _ <&"$cluster" || { echo "the cluster did not start" >&2; exit 1; }
  [ "$word" = registry ] && REGISTRY=$value
  [ "$word" = ready ] && break
done

export SAMPLE REGISTRY KUBECONFIG=$place/kubeconfig KUBECACHEDIR=$place/cache
mkdir "$place/work"
cd "$place/work"
bash "$task"
