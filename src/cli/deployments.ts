import { unscheduledOf } from '../kube/conditions.ts';
import type { Pod } from '../kube/core-v1.ts';
import type { KubeObject } from '../kube/object.ts';
import { DEPLOYMENTS, PODS } from '../kube/resource.ts';
import type { Look } from './wait-for.ts';
import { MissingRight, type Viewer } from './viewer.ts';

export interface Deployment extends KubeObject {
  spec: {
    replicas?: number;
    selector: { matchLabels?: Record<string, string> };
    template: { spec: { containers: { image: string }[] } };
  };
  status?: { observedGeneration?: number; updatedReplicas?: number; availableReplicas?: number; replicas?: number };
}

/** Whether all pods of a Deployment are of its newest kind and available, as `kubectl rollout status` has it. */
export async function rolledOut(host: Viewer, namespace: string, name: string): Promise<Look<true>> {
  const deployment = await host.get<Deployment>(DEPLOYMENTS, { namespace, name });
  const { spec, status = {}, metadata } = deployment;
  const wanted = spec.replicas ?? 1;
  const { observedGeneration = 0, updatedReplicas = 0, availableReplicas = 0, replicas = 0 } = status;
  const isDone = updatedReplicas === wanted && availableReplicas === wanted && replicas === wanted;
  if (observedGeneration >= (metadata.generation ?? 0) && isDone) return { value: true };
  const counts = `${String(Math.min(updatedReplicas, availableReplicas))} of ${String(wanted)} pods of ${name} are available`;
  const why = await whatPodsWaitFor(host, deployment);
  return { waitingFor: why === undefined ? counts : `${counts} (${why})` };
}

/** What the newest of its pods says: the kubelet's, or the scheduler's words. */
async function whatPodsWaitFor(host: Viewer, { metadata, spec }: Deployment): Promise<string | undefined> {
  const labels = Object.entries(spec.selector.matchLabels ?? {}).map(([key, value]) => `${key}=${value}`);
  const options = {
    labelSelector: labels.join(','),
    ...(metadata.namespace === undefined ? {} : { namespace: metadata.namespace }),
  };
  const pods = await host.tryList<Pod>(PODS, options);
  if (pods instanceof MissingRight) return undefined;
  const newest = pods.toSorted((a, b) =>
    (b.metadata.creationTimestamp ?? '').localeCompare(a.metadata.creationTimestamp ?? ''),
  );
  for (const { status } of newest) {
    const waiting = status?.containerStatuses?.map(({ state }) => state?.waiting).find((one) => one !== undefined);
    if (waiting !== undefined) return [waiting.reason, waiting.message].filter((word) => word !== undefined).join(': ');
    const unscheduled = unscheduledOf({ status });
    if (unscheduled !== undefined) return `${unscheduled.reason ?? ''}: ${unscheduled.message ?? ''}`;
  }
  return undefined;
}
