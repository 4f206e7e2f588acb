import { expect, test } from 'vitest';
import type { ContainerStatus, Pod, PodStatus } from '../../src/kube/core-v1.ts';
import { statusPatch } from '../../src/pods/status-patch.ts';

const at = '2026-01-01T00:00:00Z';
const app: ContainerStatus = {
  name: 'app',
  image: 'app:1',
  imageID: '',
  ready: true,
  restartCount: 0,
  state: { running: { startedAt: at } },
};
const status: PodStatus = {
  phase: 'Running',
  conditions: [{ type: 'Ready', status: 'True', lastTransitionTime: at }],
  containerStatuses: [app],
};
const { state: _state, ...appWithoutState } = app;
const hostPod: Pod = { metadata: { name: 'web', uid: 'u1' }, spec: { containers: [] }, status };

test('fields in another order, and those that are undefined, are no reason for a patch', () => {
  const desired: Record<string, unknown> = {
    containerStatuses: [{ state: { running: { startedAt: at }, waiting: undefined }, ...appWithoutState }],
    conditions: [{ status: 'True', type: 'Ready', reason: undefined, lastTransitionTime: at }],
    phase: 'Running',
  };
  expect(statusPatch(hostPod, desired as PodStatus)).toBeUndefined();
});

test('what differs deep inside is patched', () => {
  const desired = { ...status, containerStatuses: [{ ...app, restartCount: 1 }] };
  expect(statusPatch(hostPod, desired)).toEqual({
    metadata: { uid: 'u1' },
    status: { containerStatuses: desired.containerStatuses },
  });
});
