import { expect, it } from 'vitest';
import type { MemberClusterStatus } from '../../src/api/member-cluster-status.ts';
import { servicesCanBeWritten } from '../../src/members/written-status.ts';

type State = 'True' | 'False' | 'Unknown';
const condition = (type: string, status: State, reason: string) => ({
  type,
  status,
  reason,
  message: '',
  lastTransitionTime: '2026-01-01T00:00:00Z',
});
const status = (
  reason: string | undefined,
  reachable: State = 'True',
  pinned: State = 'True',
): MemberClusterStatus => ({
  conditions: [
    condition('Reachable', reachable, 'R'),
    condition('IdentityPinned', pinned, 'R'),
    ...(reason === undefined ? [] : [condition('ServicesMirrored', 'False', reason)]),
  ],
});

it.each<[MemberClusterStatus | undefined, boolean]>([
  [status('Mirrored'), true],
  [status('NameTaken'), true],
  [status('ServiceRightMissing'), false],
  [status('NamespaceRightMissing'), true],
  [status('CacheLimit'), true],
  [status('HostServicesUnknown'), false],
  [status('NotMirrored'), false],
  [status(undefined), false],
  [status('Mirrored', 'False'), false],
  [status('Mirrored', 'Unknown'), false],
  [status('Mirrored', 'True', 'False'), false],
  [undefined, false],
])('whether a status says that Services can be written: %j', (written, can) => {
  expect(servicesCanBeWritten(written)).toBe(can);
});
