import { pino } from 'pino';
import { Registry } from 'prom-client';
import { expect, it } from 'vitest';
import { type MemberCluster, parseMemberCluster } from '../src/api/member-cluster.ts';
import type { Pod } from '../src/api/wire.ts';
import type { HostServices } from '../src/host-services.ts';
import type { KubeObject } from '../src/kube/object.ts';
import { createWorkQueueMetrics } from '../src/kube/workqueue-metrics.ts';
import { MemberDependents } from '../src/member-dependents.ts';
import type { MemberConnection } from '../src/members/connection.ts';
import type { MemberNamespaces } from '../src/members/namespaces.ts';
import { clusterOf } from '../src/placement/cluster.ts';
import { MemoryApi } from './fixtures/memory-api.ts';
import { HOST_ID, hostPod } from './fixtures/pods.ts';
import { Violations } from './fixtures/violations.ts';

function memberCluster(): MemberCluster {
  const parsed = parseMemberCluster({
    apiVersion: 'spillway.dev/v1alpha1',
    kind: 'MemberCluster',
    metadata: { name: 'east', uid: 'm', resourceVersion: '1' },
    spec: { credentials: { secretRef: { namespace: 'spillway', name: 'east' } } },
  } as KubeObject);
  if ('problems' in parsed) throw new Error(parsed.problems.join());
  return parsed.member;
}

it('a pod that came back on another virtual node keeps what it refers to when the former one lets go', () => {
  const member = memberCluster();
  const uses: boolean[] = [];
  let pod: Pod | undefined = hostPod({
    spec: { nodeName: 'west', containers: [{ name: 'app', envFrom: [{ configMapRef: { name: 'settings' } }] }] },
  });
  const services = {
    hostId: HOST_ID,
    host: new MemoryApi().client('host'),
    events: { record: () => undefined },
    invariants: new Violations(),
    queueMetrics: createWorkQueueMetrics(new Registry()),
    nodeClients: new Map(),
    overridePolicies: { unknown: () => undefined, in: () => [] },
    hostObjects: {
      follow: () => ({
        current: () => ({ state: 'absent' }),
        use: (inUse: boolean) => void uses.push(inUse),
        stop: () => undefined,
      }),
    },
  } as unknown as HostServices;
  const dependents = new MemberDependents({
    services,
    connection: { name: 'east', client: new MemoryApi().client('east'), identity: () => '' } as MemberConnection,
    namespaces: { memberNamespaceOf: (name: string) => name } as MemberNamespaces,
    member: () => member,
    cluster: () => clusterOf(member),
    sharesCluster: () => false,
    mayWrite: () => true,
    hostPod: () => pod,
    requeue: () => undefined,
    logger: pino({ level: 'silent' }),
  });
  dependents.track(pod, pod);
  dependents.release('shop/web-0');
  expect(uses).toEqual([]);
  pod = undefined;
  dependents.release('shop/web-0');
  expect(uses).toEqual([false]);
});
