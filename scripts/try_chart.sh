#!/bin/sh
# Installs the chart in a new cluster, with the image of the same version, and waits until the agent reports that its node has no GPU: the
# API accepts the rendered chart, and the program starts with the user, the rights and the folders that the chart gives it.
#
#   scripts/try_chart.sh CHART IMAGE        the .tgz of `make chart`, and the archive of `make container`
#
# Needs kind, helm, kubectl and docker, which GitHub's machines have. The cluster is deleted at the end.
set -eu
chart=$1
image=$2
cluster=vramtrack-try-$$
KUBECONFIG=$(mktemp)
export KUBECONFIG
trap 'kind delete cluster --quiet --name "$cluster" || true; rm -f "$KUBECONFIG"' EXIT

helm lint --strict "$chart"
kind create cluster --quiet --name "$cluster" --wait 180s
kind load image-archive --quiet --name "$cluster" "$image" # the node has it under the name that the chart refers to
kubectl label --all nodes nvidia.com/gpu.present=true >/dev/null
helm install vramtrack "$chart" >/dev/null
echo "  ok      the chart is installed"

# Without a GPU the agent exits and is started again; its output is kept.
for _ in $(seq 120); do
  said=$(kubectl logs --selector app.kubernetes.io/component=agent 2>/dev/null || true)
  case $said in *"no GPU to watch"*) break ;; esac
  sleep 1
done
case $said in
  *"no GPU to watch"*) echo "  ok      the agent starts in its pod" ;;
  *)
    kubectl describe pods >&2
    echo "try_chart: the agent did not start: $said" >&2
    exit 1
    ;;
esac

helm upgrade vramtrack "$chart" --set otlp.endpoint=http://collector:4318 >/dev/null
helm uninstall vramtrack >/dev/null
kubectl wait --for=delete pod --selector app.kubernetes.io/name=vramtrack --timeout=120s >/dev/null
echo "  ok      it is upgraded and removed"
echo "try_chart: all passed"
