#!/usr/bin/env bash
# The demo's topology for people with Docker: a host and two members as kind clusters, Spillway installed in the host.
# Needs docker, kind and kubectl, and pulls kind's node image and Node.js from the internet. Without Docker use
# `make demo`, which makes the same from plain processes. No test runs this script: where its tests run there is no
# Docker. shellcheck passes it.
# Usage: hack/kind.sh up | down
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

readonly HOST=spillway-host MEMBERS=(spillway-east spillway-west) NAMESPACE=spillway-system
readonly STATE=.cache/kind
IMAGE=$(sed -n 's/^ *image: *//p' manifests/manager.yaml)

need() {
  local tool
  for tool in docker kind kubectl; do
    command -v "$tool" >/dev/null || { echo "$tool is needed; without Docker use: make demo" >&2; exit 1; }
  done
  docker info >/dev/null 2>&1 || { echo 'the Docker engine does not answer; without Docker use: make demo' >&2; exit 1; }
}

host() { kubectl --kubeconfig "$STATE/$HOST.kubeconfig" "$@"; }
node_address() { docker inspect -f '{{range .NetworkSettings.Networks}}{{.IPAddress}}{{end}}' "$1-control-plane"; }

# Pod and service ranges differ, so that pods of all clusters can talk to each other.
create() { # NAME NUMBER
  local network="networking: {podSubnet: 10.24$2.0.0/16, serviceSubnet: 10.9$2.0.0/16}"
  printf 'kind: Cluster\napiVersion: kind.x-k8s.io/v1alpha4\n%s\n' "$network" |
    kind create cluster --name "$1" --kubeconfig "$STATE/$1.kubeconfig" --config - --wait 180s
}

connect() {
  local from to number
  for from in "$HOST" "${MEMBERS[@]}"; do
    number=0
    for to in "$HOST" "${MEMBERS[@]}"; do
      number=$((number + 1))
      [ "$from" = "$to" ] ||
        docker exec "$from-control-plane" ip route replace "10.24$number.0.0/16" via "$(node_address "$to")"
    done
  done
}

register() { # NAME: the member's owner lends a namespace, the host gets the credentials
  local member=${1#spillway-} internal="$STATE/$1.internal"
  kubectl --kubeconfig "$STATE/$1.kubeconfig" label namespace default spillway.dev/allow-host=any --overwrite
  kind get kubeconfig --name "$1" --internal |
    sed "s#https://$1-control-plane:#https://$(node_address "$1"):#" >"$internal"
  host -n "$NAMESPACE" create secret generic "member-$member" --from-file=kubeconfig="$internal" \
    --dry-run=client -o yaml | host apply -f -
  rm -f "$internal"
  host apply -f - <<YAML
apiVersion: spillway.dev/v1alpha1
kind: MemberCluster
metadata: {name: $member}
spec: {credentials: {secretRef: {namespace: $NAMESPACE, name: member-$member}}}
YAML
}

up() {
  need
  mkdir -p "$STATE"
  chmod 700 "$STATE"
  local number=1 name
  echo "== creating kind clusters $HOST ${MEMBERS[*]} (some minutes)"
  for name in "$HOST" "${MEMBERS[@]}"; do
    kind get clusters 2>/dev/null | grep -qx "$name" || create "$name" "$number"
    number=$((number + 1))
  done
  connect
  echo "== building the image $IMAGE and loading it into $HOST"
  docker build -t "$IMAGE" .
  kind load docker-image "$IMAGE" --name "$HOST"
  echo '== installing Spillway'
  host apply -f manifests/crds
  host wait --for=condition=Established crd --all --timeout=60s
  host apply -f manifests/rbac.yaml -f manifests/secrets.yaml -f manifests/node-guard.yaml -f manifests/storage.yaml -f manifests/outages.yaml
  host apply -f manifests/admission/node-taints.yaml
  for part in rbac pod-guard gangs descheduler service; do host apply -f "manifests/scheduler/$part.yaml"; done
  host apply -f manifests/manager.yaml
  host -n "$NAMESPACE" rollout status deployment --timeout=180s
  for name in "${MEMBERS[@]}"; do register "$name"; done
  for name in "${MEMBERS[@]}"; do
    host wait --for=create "node/${name#spillway-}" --timeout=120s
    host wait --for=condition=Ready "node/${name#spillway-}" --timeout=120s
  done
  host get nodes
  echo "export KUBECONFIG=$PWD/$STATE/$HOST.kubeconfig"
}

down() {
  need
  local name
  for name in "$HOST" "${MEMBERS[@]}"; do
    kind delete cluster --name "$name" --kubeconfig "$STATE/$name.kubeconfig"
  done
  rm -rf "$STATE"
}

case ${1:-} in
  up) up ;;
  down) down ;;
  *) echo 'usage: hack/kind.sh up | down' >&2; exit 2 ;;
esac
