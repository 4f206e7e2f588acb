import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { parse } from 'yaml';
import { type MemberCluster, parseMemberCluster } from '../../src/api/member-cluster.ts';
import type { Pod } from '../../src/kube/core-v1.ts';
import { elasticGroupsOf } from '../../src/capacity/elastic.ts';
import { fitRequestOf } from '../../src/capacity/fit-request.ts';
import { MemberCapacity } from '../../src/capacity/member-capacity.ts';
import { poolsOf } from '../../src/capacity/pool.ts';
import type { KubeObject } from '../../src/kube/object.ts';
import { memberTolerations } from '../../src/pods/translate-scheduling.ts';

const page = readFileSync(new URL('../../docs/guides/gpu-pools.md', import.meta.url), 'utf8');
const [member, pod, elastic] = [...page.matchAll(/```yaml\n([\s\S]*?)```/g)].map(([, text = '']) => parse(text) as object);

it('the guide shows a member, a pod and nodes to come that fit each other', () => {
  const withElastic = structuredClone(member) as KubeObject & { spec: object };
  Object.assign(withElastic.spec, elastic);
  const parsed = parseMemberCluster(withElastic);
  if (!('member' in parsed)) throw new Error(parsed.problems.join());
  const cluster: MemberCluster = parsed.member;
  const capacity = new MemberCapacity({ hostId: 'h', pools: poolsOf(cluster), elastic: elasticGroupsOf(cluster) });
  expect(capacity.tracker.offer('east-gpu')?.allocatable).toMatchObject({ cpu: '88', 'nvidia.com/gpu': '8' });
  expect(capacity.tracker.offer('east-general')?.allocatable).toMatchObject({ cpu: '0', pods: '0' });
  const { spec, metadata } = pod as Pod;
  const tolerations = memberTolerations(spec.tolerations) as NonNullable<Pod['spec']['tolerations']>;
  expect(tolerations).toEqual([{ key: 'nvidia.com/gpu', operator: 'Exists' }]);
  const copy = { metadata: { ...metadata, namespace: 'lab' }, spec: { ...spec, tolerations } };
  expect(capacity.fits(fitRequestOf(copy, 'east-gpu'))).toMatchObject({ fits: true, nodes: 8 });
  const intolerant = { ...copy, spec: { ...copy.spec, tolerations: [] } };
  expect(capacity.fits(fitRequestOf(intolerant, 'east-gpu'))).toMatchObject({ fits: false });
});
