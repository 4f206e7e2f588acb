import { RawNumber } from '../../kube/json.ts';
import { startOf } from './metrics-api.ts';
import type { NodeTotals, PodTotals } from './node-totals.ts';
import type { PodReading } from './pod-reading.ts';
import type { UsageTarget } from './usage-target.ts';

/** A PodStats of the kubelet's stats/v1alpha1, as far as it is looked at; all else in it passes through. */
export interface PodStats {
  podRef: { name: string; namespace: string; uid: string };
  startTime?: string;
  cpu?: Record<string, unknown>;
  memory?: Record<string, unknown>;
  network?: Record<string, unknown>;
}

/** The stats of pods of ours in a kubelet's /stats/summary, by the member's `namespace/name`. Throws when it is none. */
export function podStatsIn(summary: unknown, isOurs: (podKey: string) => boolean): Map<string, PodStats> {
  const pods = (summary as { pods?: unknown } | null)?.pods;
  if (!Array.isArray(pods)) throw new Error('the answer of /stats/summary has no pods');
  const found = new Map<string, PodStats>();
  for (const pod of pods as PodStats[]) {
    const key = `${pod.podRef.namespace}/${pod.podRef.name}`;
    if (isOurs(key)) found.set(key, pod);
  }
  return found;
}

/** Those stats as the host's pod's. */
export function renamed(stats: PodStats, { hostPod }: UsageTarget): PodStats {
  const { namespace = '', name, uid = '' } = hostPod.metadata;
  return { ...stats, podRef: { name, namespace, uid } };
}

/** The same from a resource reading, which has CPU and memory only. `rateOf`: cores that a counter grew by of late. */
export function statsOf(
  target: UsageTarget,
  reading: PodReading,
  rateOf: (container: string) => number | undefined,
): PodStats {
  const time = new Date(reading.at).toISOString();
  const cpuSeconds = reading.containers.reduce((sum, container) => sum + container.cpuSeconds, 0);
  const cpu = (container: string, seconds: number): Record<string, unknown> => {
    const cores = rateOf(container);
    return {
      time,
      ...(cores === undefined ? {} : { usageNanoCores: Math.round(cores * 1e9) }),
      usageCoreNanoSeconds: Math.round(seconds * 1e9),
    };
  };
  const memory = new Map(
    (reading.samples.get('container_memory_working_set_bytes') ?? []).map(({ container, value }) => [
      container,
      Number(value),
    ]),
  );
  const named = reading.containers.filter(({ container }) => container !== '');
  const containers = named.map(({ container: name, cpuSeconds: seconds }) => {
    const startedAt = startOf(target, name);
    return {
      name,
      ...(startedAt === undefined ? {} : { startTime: new Date(startedAt).toISOString() }),
      cpu: cpu(name, seconds),
      memory: { time, workingSetBytes: memory.get(name) ?? 0 },
    };
  });
  const { namespace = '', name, uid = '' } = target.hostPod.metadata;
  const { startTime } = target.memberPod.status ?? {};
  return {
    podRef: { name, namespace, uid },
    ...(startTime === undefined ? {} : { startTime }),
    containers,
    cpu: cpu('', cpuSeconds),
    memory: { time, workingSetBytes: reading.memoryBytes },
  } as PodStats;
}

/** What the sum of the node needs of a pod. */
export function totalsOf(uid: string, { startTime, cpu, memory }: PodStats): PodTotals {
  const time = cpu?.['time'] ?? memory?.['time'];
  const startedAt = Date.parse(startTime ?? '');
  return {
    uid,
    source: 'summary',
    startedAt: Number.isFinite(startedAt) ? startedAt : undefined,
    containers: [{ container: '', cpuSeconds: numberAt(cpu, 'usageCoreNanoSeconds') / 1e9 }],
    memoryBytes: numberAt(memory, 'workingSetBytes'),
    at: (typeof time === 'string' && Date.parse(time)) || 0,
  };
}

/** /stats/summary of a virtual node. `since`: when counting began, in ms. */
export function summaryOf(nodeName: string, since: number, pods: readonly PodStats[], totals: NodeTotals): object {
  const time = new Date(totals.at).toISOString();
  const sum = (part: 'cpu' | 'memory' | 'network', field: string): number =>
    pods.reduce((total, pod) => total + numberAt(pod[part], field), 0);
  return {
    node: {
      nodeName,
      systemContainers: [],
      startTime: new Date(since).toISOString(),
      cpu: {
        time,
        usageNanoCores: sum('cpu', 'usageNanoCores'),
        usageCoreNanoSeconds: Math.round(totals.cpuSeconds * 1e9),
      },
      memory: {
        time,
        workingSetBytes: totals.memoryBytes,
        usageBytes: sum('memory', 'usageBytes'),
        rssBytes: sum('memory', 'rssBytes'),
      },
      network: { time, name: '', rxBytes: sum('network', 'rxBytes'), txBytes: sum('network', 'txBytes') },
    },
    pods,
  };
}

function numberAt(part: Record<string, unknown> | undefined, field: string): number {
  const found = part?.[field];
  const number = found instanceof RawNumber ? Number(found.text) : found;
  return typeof number === 'number' && Number.isFinite(number) ? number : 0;
}
