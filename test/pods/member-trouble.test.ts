import { describe, expect, it } from 'vitest';
import type { ContainerStatus, PodStatus } from '../../src/api/wire.ts';
import { MEMBER_SCHEDULED_CONDITION } from '../../src/pods/host-status.ts';
import { newTroubles } from '../../src/pods/member-trouble.ts';
import { running } from '../fixtures/pods.ts';

const waiting = (reason: string, message?: string): ContainerStatus => ({
  ...running('app'),
  ready: false,
  state: { waiting: { reason, ...(message === undefined ? {} : { message }) } },
});
const status = (container: ContainerStatus): PodStatus => ({ phase: 'Pending', containerStatuses: [container] });
const unscheduled: PodStatus = {
  phase: 'Pending',
  conditions: [
    {
      type: MEMBER_SCHEDULED_CONDITION,
      status: 'False',
      reason: 'Unschedulable',
      message: 'cluster "east": 0/3 nodes',
    },
  ],
};

describe('what an Event tells of a pod that does not start in its member', () => {
  it('is that no node takes it', () => {
    expect(newTroubles({ phase: 'Pending' }, unscheduled, 'east')).toEqual([
      { reason: 'MemberUnschedulable', message: 'cluster "east": 0/3 nodes' },
    ]);
    expect(newTroubles(unscheduled, unscheduled, 'east')).toEqual([]);
    expect(newTroubles(unscheduled, { phase: 'Pending' }, 'east')).toEqual([]);
  });

  it("is that an image cannot be pulled, in the kubelet's words, once", () => {
    const failed = status(waiting('ErrImagePull', 'no such image'));
    const backingOff = status(waiting('ImagePullBackOff', 'Back-off pulling'));
    expect(newTroubles(undefined, failed, 'east')).toEqual([
      { reason: 'ErrImagePull', message: 'Cluster "east", container app: no such image' },
    ]);
    expect(newTroubles(failed, backingOff, 'east')).toEqual([]);
    expect(newTroubles(backingOff, failed, 'east')).toEqual([]);
    expect(newTroubles(status(waiting('ContainerCreating')), backingOff, 'east')).toHaveLength(1);
  });

  it('is nothing for what is usual', () => {
    for (const usual of [
      running('app'),
      waiting('ContainerCreating'),
      waiting('PodInitializing'),
      waiting('CrashLoopBackOff'),
    ]) {
      expect(newTroubles(undefined, status(usual), 'east')).toEqual([]);
    }
    expect(newTroubles(undefined, undefined, 'east')).toEqual([]);
  });
});
