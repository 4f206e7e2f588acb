import { describe, expect, it } from 'vitest';
import { parseMemberCluster, specOf, virtualNodesOf, wantedServicesOf } from '../../src/api/member-cluster.ts';
import type { MemberCluster } from '../../src/api/member-cluster.ts';
import type { KubeObject } from '../../src/kube/object.ts';

const raw = (spec: object, more: object = {}): KubeObject =>
  ({
    apiVersion: 'spillway.dev/v1alpha1',
    kind: 'MemberCluster',
    metadata: { name: 'east', uid: 'u', resourceVersion: '7', generation: 3 },
    spec: { credentials: { secretRef: { namespace: 'fleet', name: 'east' } }, ...spec },
    ...more,
  }) as KubeObject;

function parsed(object: KubeObject): MemberCluster {
  const result = parseMemberCluster(object);
  if ('problems' in result) throw new Error(result.problems.join('; '));
  return result.member;
}
const problems = (object: KubeObject): string => {
  const result = parseMemberCluster(object);
  return 'problems' in result ? result.problems.join('; ') : 'no problem';
};

describe('parseMemberCluster', () => {
  it('fills in every default', () => {
    expect(parsed(raw({})).spec).toEqual({
      credentials: { secretRef: { namespace: 'fleet', name: 'east', key: 'kubeconfig' } },
      zones: [],
      labels: {},
      taintMode: 'NoSchedule',
      taints: [],
      clusterTaints: [],
      virtualNodes: [],
      capacity: { headroom: {}, caps: {}, elastic: [] },
      namespaces: { mapping: 'Same', create: true, adoptExisting: true, podSecurity: 'baseline' },
      daemonSets: 'Ignore',
      unschedulable: false,
      probe: {
        periodSeconds: 10,
        timeoutSeconds: 5,
        failureThreshold: 3,
        successThreshold: 1,
        podsUnreadyAfterSeconds: 60,
        nodesReady: 'WhileServed',
      },
      network: 'Flat',
      podEvents: 'Problems',
      disruptionBudgets: 'Mirror',
      services: { mode: 'None', namespaces: [], multiCluster: 'None' },
      serviceAccount: { mode: 'None', allowed: [] },
      hostPath: { policy: 'Refuse', allowedPrefixes: [] },
      storage: { classes: [{ host: 'spillway' }] },
      podPriority: { classes: [] },
    });
  });

  it('keeps metadata as it came', () => {
    expect(parsed(raw({})).metadata).toEqual({ name: 'east', uid: 'u', resourceVersion: '7', generation: 3 });
  });

  it.each([
    [{ credentials: {} }, 'spec.credentials.secretRef'],
    [{ taintMode: 'Sometimes' }, 'spec.taintMode'],
    [{ virtualNodes: [{ name: 'Upper' }] }, 'spec.virtualNodes.0.name'],
    [{ virtualNodes: [{ name: 'x'.repeat(21) }] }, 'spec.virtualNodes.0.name'],
    [{ capacity: { headroom: { cpu: '-1' } } }, 'spec.capacity.headroom.cpu'],
    [{ capacity: { caps: { cpu: 'lots' } } }, 'spec.capacity.caps.cpu'],
    [{ probe: { periodSeconds: 0 } }, 'spec.probe.periodSeconds'],
    [{ serviceAccount: { mode: 'Own' } }, 'spec.serviceAccount.mode'],
    [{ podPriority: { classes: [{ host: 'a', member: 'B' }] } }, 'spec.podPriority.classes.0.member'],
    [{ podPriority: { default: '' } }, 'spec.podPriority.default'],
    [
      { podPriority: { classes: Array.from({ length: 65 }, () => ({ host: 'a', member: 'b' })) } },
      'spec.podPriority.classes',
    ],
    [{ serviceAccount: { apiServer: { host: 'https://a' } } }, 'spec.serviceAccount.apiServer.host'],
    [{ taints: [{ key: 'a b', effect: 'NoSchedule' }] }, 'spec.taints.0.key'],
    [{ virtualNodes: [{ name: 'a', taints: [{ key: 'a', effect: 'Evict' }] }] }, 'spec.virtualNodes.0.taints.0.effect'],
  ])('names the field of %j', (spec, field) => {
    expect(problems(raw(spec))).toContain(field);
  });

  it('says so when there is no spec at all', () => {
    expect(problems({ metadata: { name: 'east' } })).toContain('spec:');
  });

  it('does not care what is in status fields it does not know', () => {
    expect(parsed(raw({}, { status: { identity: 'uid-1', later: { added: true } } })).status?.identity).toBe('uid-1');
  });
});

describe('virtualNodesOf', () => {
  it('is one node of the same name without pools', () => {
    expect(virtualNodesOf(parsed(raw({})))).toEqual([{ name: 'east', nodeSelector: {}, taints: [] }]);
  });

  it('is one node for each pool, at most 61 characters long', () => {
    const member = parsed(raw({ virtualNodes: [{ name: 'gpu', nodeSelector: { gpu: 'yes' } }, { name: 'cpu' }] }));
    expect(virtualNodesOf(member)).toEqual([
      { name: 'east-gpu', nodeSelector: { gpu: 'yes' }, taints: [] },
      { name: 'east-cpu', nodeSelector: {}, taints: [] },
    ]);
  });

  it('has the taints of all virtual nodes and of its pool, whose value counts', () => {
    const gpu = { key: 'gpu', effect: 'NoSchedule' };
    const team = { key: 'team', value: 'a', effect: 'NoSchedule' };
    const member = parsed(
      raw({
        taints: [team],
        virtualNodes: [{ name: 'gpu', taints: [gpu] }, { name: 'b', taints: [{ ...team, value: 'b' }] }, { name: 'c' }],
      }),
    );
    expect(virtualNodesOf(member).map(({ taints }) => taints)).toEqual([
      [team, gpu],
      [{ ...team, value: 'b' }],
      [team],
    ]);
    expect(specOf(member, 'east-gpu').taints).toEqual([team, gpu]);
    expect(specOf(member, 'east-former').taints).toEqual([team]);
  });
});

it('a member that leaves has Services for no namespace but for those of pods that are there still', () => {
  const services = { mode: 'Mirror', namespaces: ['data'], multiCluster: 'None' };
  expect(wantedServicesOf(parsed(raw({ services })))).toEqual(services);
  const leaving = raw({ services });
  leaving.metadata.deletionTimestamp = '2026-01-10T00:00:00Z';
  expect(wantedServicesOf(parsed(leaving))).toEqual({ ...services, namespaces: [] });
});
