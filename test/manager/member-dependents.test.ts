import { pino } from 'pino';
import { Registry } from 'prom-client';
import { beforeEach, expect, it, onTestFinished, vi } from 'vitest';
import { type MemberCluster, parseMemberCluster } from '../../src/api/member-cluster.ts';
import type { Namespace, Pod } from '../../src/kube/core-v1.ts';
import { RESOURCES } from '../../src/dependents/copy.ts';
import { tokenSecretFor } from '../../src/dependents/token-secret.ts';
import type { HostServices } from '../../src/manager/host-services.ts';
import { Informer } from '../../src/kube/informer.ts';
import type { KubeObject } from '../../src/kube/object.ts';
import { NAMESPACES } from '../../src/kube/resource.ts';
import { create } from '../../src/kube/verbs.ts';
import { createWorkQueueMetrics } from '../../src/kube/workqueue-metrics.ts';
import { MemberDependents } from '../../src/manager/member-dependents.ts';
import type { MemberConnection } from '../../src/members/connection.ts';
import type { MemberNamespaces } from '../../src/members/namespaces.ts';
import { clusterOf } from '../../src/api/cluster.ts';
import { MemoryApi } from '../fixtures/memory-api.ts';
import { serveMemoryApi } from '../fixtures/memory-api-server.ts';
import { PodCache } from '../fixtures/pod-cache.ts';
import { HOST_ID, hostPod } from '../fixtures/pods.ts';
import { Violations } from '../fixtures/violations.ts';

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

const KEY = 'shop/web-0';

let pod: Pod | undefined;
/** Whether what pods refer to is in use, each time that this changed. */
let uses: boolean[];
let requeued: string[];

/** What pods need in a member, whose copies and pods are in `connection`. */
function memberDependents(connection: Partial<MemberConnection>): MemberDependents {
  const member = memberCluster();
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
  return new MemberDependents({
    services,
    connection: {
      name: 'east',
      identity: () => '',
      pods: new PodCache(new MemoryApi()).informer,
      ...connection,
    } as MemberConnection,
    namespaces: { memberNamespaceOf: (name: string) => name, isUsable: () => true } as unknown as MemberNamespaces,
    member: () => member,
    cluster: () => clusterOf(member),
    sharesCluster: () => false,
    mayWrite: () => true,
    hostPod: () => pod,
    requeue: (podKey) => void requeued.push(podKey),
    logger: pino({ level: 'silent' }),
  });
}

beforeEach(() => {
  [uses, requeued] = [[], []];
});

it('a pod that came back on another virtual node keeps what it refers to when the former one lets go', () => {
  pod = hostPod({
    spec: { nodeName: 'west', containers: [{ name: 'app', envFrom: [{ configMapRef: { name: 'settings' } }] }] },
  });
  const dependents = memberDependents({ client: new MemoryApi().client('east') });
  dependents.track(pod, pod);
  dependents.release(KEY);
  expect(uses).toEqual([]);
  pod = undefined;
  dependents.release(KEY);
  expect(uses).toEqual([false]);
});

it('tokens of a pod go when it is let go of, also where a pod came back on another virtual node that needs none', async () => {
  const api = new MemoryApi();
  const server = await serveMemoryApi(api);
  const end = new AbortController();
  pod = hostPod();
  const content = { hostId: HOST_ID, member: 'east', memberNamespace: 'shop', values: new Map() };
  const secret = tokenSecretFor(pod, { ...content, refreshAt: Date.now() + 3_600_000 }, undefined);
  const client = server.client('east');
  await create(client, NAMESPACES, { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'shop' } });
  await create(client, RESOURCES.Secret, secret);
  const namespaces = new Informer<Namespace>({ client, resource: NAMESPACES });
  const dependents = memberDependents({ client, namespaces, pods: new PodCache(api).informer });
  const running = [namespaces.run(end.signal), dependents.mirror.run(end.signal), dependents.tokens.run(end.signal)];
  onTestFinished(async () => {
    end.abort();
    await Promise.all(running);
    await server.close();
  });
  dependents.tokens.setComplete();
  await vi.waitFor(() => expect(requeued).toEqual([KEY]), { timeout: 5_000 });
  pod = hostPod({ metadata: { uid: 'next-uid' }, spec: { nodeName: 'west' } });
  dependents.release(KEY);
  await vi.waitFor(() => expect(api.requests('DELETE', `/${secret.metadata.name}`)).toHaveLength(1), {
    timeout: 5_000,
  });
});
