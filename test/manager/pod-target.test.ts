import { expect, it } from 'vitest';
import { MIRRORED_CONDITION } from '../../src/api/marks.ts';
import type { MemberClient } from '../../src/kubelet/pod-directory.ts';
import { podTarget, type TargetFacts } from '../../src/manager/pod-target.ts';
import { hostPod, memberPod } from '../fixtures/pods.ts';

const client = {} as MemberClient;
const facts = (more: Partial<TargetFacts> = {}): TargetFacts => ({
  member: 'east',
  client,
  copy: memberPod({ metadata: { namespace: 'team-shop' } }),
  unavailable: undefined,
  hasPlace: true,
  ...more,
});

it('is the copy, where that is, whatever has become of the mapping of its namespace', () => {
  const target = { client, namespace: 'team-shop', name: 'web-0' };
  expect(podTarget(hostPod(), facts())).toEqual(target);
  expect(podTarget(hostPod(), facts({ hasPlace: false }))).toEqual(target);
});

it('is nothing without a copy, or while the member cannot be asked, and says why', () => {
  const why = (more: Partial<TargetFacts>, pod = hostPod()): unknown => podTarget(pod, facts(more));
  expect(why({ copy: undefined })).toEqual({ unavailable: 'it has no running copy in cluster "east" at the moment' });
  const held = hostPod({ status: { phase: 'Pending', reason: 'QuotaExceeded', message: 'Its quota is used up.' } });
  expect(why({ copy: undefined }, held)).toEqual({
    unavailable: 'it has no running copy in cluster "east" at the moment: QuotaExceeded: Its quota is used up',
  });
  expect(why({ unavailable: 'it does not answer' })).toEqual({ unavailable: 'it does not answer' });
  expect(why({ copy: undefined, hasPlace: false })).toEqual({
    unavailable: 'namespace shop has no place in cluster "east"',
  });
  const conditions = [{ type: MIRRORED_CONDITION, status: 'False' as const, reason: 'DaemonSetIgnored' }];
  const ignored = hostPod({ status: { phase: 'Running', conditions } });
  expect(why({ copy: undefined }, ignored)).toEqual({ unavailable: expect.stringContaining('belongs to a DaemonSet') });
});
