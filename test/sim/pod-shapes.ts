import type { ContainerStatus, Pod, PodStatus } from '../../src/kube/core-v1.ts';
import { HOST_LABEL, UID_LABEL } from '../../src/api/marks.ts';
import type { SimObject } from './sim-cluster.ts';

/** An object of an API server, read as a pod. */
export function asPod(object: SimObject): Pod {
  return object as unknown as Pod;
}

export function phaseOf(object: SimObject): string {
  return asPod(object).status?.phase ?? 'Pending';
}

export function isFinal(object: SimObject): boolean {
  return ['Succeeded', 'Failed'].includes(phaseOf(object));
}

export function isReady(object: SimObject): boolean {
  return asPod(object).status?.conditions?.some(({ type, status }) => type === 'Ready' && status === 'True') === true;
}

/** The scheduler of its cluster has no node for it. */
export function foundNoNode(object: SimObject): boolean {
  const { spec, status } = asPod(object);
  const scheduled = status?.conditions?.find(({ type }) => type === 'PodScheduled');
  return spec.nodeName === undefined && scheduled?.status === 'False' && scheduled.reason === 'Unschedulable';
}

/** UID of the host pod that a pod of a member runs for; undefined for pods of others. */
export function hostUidOf(object: SimObject): string | undefined {
  const { labels } = object.metadata;
  return labels?.[HOST_LABEL] === undefined ? undefined : labels[UID_LABEL];
}

/** A pod must not be run a second time under one UID: what it did may be done. */
export function mustRunOnce(object: SimObject): boolean {
  const owned = object.metadata.ownerReferences?.some(({ kind }) => kind === 'StatefulSet') ?? false;
  return owned || ['Never', 'OnFailure'].includes(asPod(object).spec.restartPolicy ?? 'Always');
}

export function exitCodes(object: SimObject): number[] {
  const statuses = asPod(object).status?.containerStatuses ?? [];
  return statuses.flatMap(({ state }) => (state?.terminated === undefined ? [] : [state.terminated.exitCode]));
}

export function runningStatus(pod: Pod, node: string, startedAt: string, restartCount: number): PodStatus {
  const containerStatuses = pod.spec.containers.map(({ name }): ContainerStatus => ({
    name,
    image: 'busybox',
    imageID: '',
    ready: true,
    started: true,
    restartCount,
    state: { running: { startedAt } },
  }));
  return {
    phase: 'Running',
    hostIP: '10.1.0.1',
    podIP: `10.2.0.${node.length}`,
    startTime: startedAt,
    conditions: ['PodScheduled', 'Initialized', 'ContainersReady', 'Ready'].map((type) => ({
      type,
      status: 'True' as const,
      lastTransitionTime: startedAt,
    })),
    containerStatuses,
  };
}

export function illStatus(pod: Pod, at: string): PodStatus {
  const { status } = pod;
  const ill = new Set(['ContainersReady', 'Ready']);
  return {
    ...status,
    conditions: (status?.conditions ?? []).map((one) =>
      ill.has(one.type)
        ? { ...one, status: 'False' as const, reason: 'ContainersNotReady', lastTransitionTime: at }
        : one,
    ),
    containerStatuses: (status?.containerStatuses ?? []).map((one) => ({
      ...one,
      ready: false,
      started: false,
      state: { waiting: { reason: 'CrashLoopBackOff' } },
    })),
  };
}

export function endedStatus(pod: Pod, exitCode: number, startedAt: string, finishedAt: string): PodStatus {
  const containerStatuses = pod.spec.containers.map(({ name }): ContainerStatus => ({
    name,
    image: 'busybox',
    imageID: '',
    ready: false,
    started: false,
    restartCount: 0,
    state: { terminated: { exitCode, startedAt, finishedAt, reason: exitCode === 0 ? 'Completed' : 'Error' } },
  }));
  return {
    ...pod.status,
    phase: exitCode === 0 ? 'Succeeded' : 'Failed',
    conditions: [
      { type: 'PodScheduled', status: 'True', lastTransitionTime: startedAt },
      { type: 'Initialized', status: 'True', lastTransitionTime: startedAt },
      { type: 'ContainersReady', status: 'False', lastTransitionTime: finishedAt },
      { type: 'Ready', status: 'False', lastTransitionTime: finishedAt },
    ],
    containerStatuses,
  };
}
