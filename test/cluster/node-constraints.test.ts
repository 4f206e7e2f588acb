import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Cluster } from '../../hack/cluster.ts';
import { startKwok } from '../../hack/kwok.ts';
import { until } from '../../hack/until.ts';
import type { Pod } from '../../src/kube/core-v1.ts';
import {
  condition,
  eventsOf,
  type Fields,
  getPod,
  kubectl,
  newNamespace,
  podsOf,
  readPod,
  untilPod,
} from '../fixtures/live-pods.ts';
import { errorsOf, startTopology, type Topology } from '../fixtures/topology.ts';

/** Pods that ask for real nodes by label, where only some of the nodes of a member have it. */
let topology: Topology;
let host: Cluster;

beforeAll(async () => {
  topology = await startTopology({
    extender: true,
    members: [
      { name: 'east', kwok: { nodes: 1 } },
      { name: 'west', kwok: { nodes: 1, labels: { rack: 'r1' } } },
    ],
  });
  ({ host } = topology);
  await startKwok(host, { nodes: 1, cpu: '1', prefix: 'local', labels: { disk: 'ssd' } });
  await topology.member('east').kwok?.addNodes({ nodes: 1, prefix: 'ssd', cpu: '8', labels: { disk: 'ssd' } });
  for (const name of ['pod-defaults', 'node-constraints']) {
    await host.apply(readFileSync(new URL(`../../manifests/admission/${name}.yaml`, import.meta.url), 'utf8'));
  }
  await newNamespace(host, 'shop');
  await kubectl(host, ['label', 'namespace', 'shop', 'spillway.dev/burst=enabled']);
  const probe = JSON.stringify({ ...pod('probe', { nodeSelector: { disk: 'ssd' } }) });
  await until(
    'pods are split',
    async () => {
      const { stdout } = await host.kubectl(['create', '--dry-run=server', '-o', 'json', '-f', '-'], { input: probe });
      return stdout.includes('spillway.dev/member-constraints') && stdout.includes('spillway.dev/virtual-node');
    },
    { timeoutMs: 120_000 },
  );
});
afterAll(async () => {
  const errors = topology === undefined ? [] : errorsOf(topology.spillway);
  await topology?.close();
  expect(errors).toEqual([]);
});

function pod(name: string, spec: Fields, annotations: Fields = {}): Fields {
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name, namespace: 'shop', labels: { app: name }, annotations },
    spec: {
      terminationGracePeriodSeconds: 1,
      containers: [{ name: 'main', image: 'registry.example/app:v1', resources: { requests: { cpu: '1' } } }],
      ...spec,
    },
  };
}

function required(...nodeSelectorTerms: object[]): Fields {
  return { affinity: { nodeAffinity: { requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms } } } };
}

const line = (key: string, ...values: string[]): object => ({
  key,
  operator: values.length > 0 ? 'In' : 'Exists',
  values,
});

/** Where the pods of that label run: the real node, and the member it is in. */
async function untilRun(app: string, count: number): Promise<string[]> {
  return await until(`${String(count)} pods of ${app} run`, async () => {
    const pods = await podsOf(host, 'shop', `app=${app}`);
    const places: string[] = [];
    for (const { metadata, spec, status } of pods) {
      if (status?.phase !== 'Running') return undefined;
      const { nodeName = '' } = spec;
      if (nodeName.startsWith('local-')) {
        places.push(nodeName);
        continue;
      }
      const copy = await getPod(topology.member(nodeName).cluster, 'shop', metadata.name);
      places.push(`${nodeName}/${copy.spec.nodeName ?? ''}`);
    }
    return places.length === count ? places.toSorted() : undefined;
  });
}

test('a label that only some nodes of a member have: first the node of the host, then those', async () => {
  await host.apply(['a', 'b', 'c'].map((name) => labelled(pod(name, { nodeSelector: { disk: 'ssd' } }), 'db')));
  expect(await untilRun('db', 3)).toEqual(['east/ssd-0', 'east/ssd-0', 'local-0']);
  for (const { metadata, spec } of await podsOf(host, 'shop', 'app=db')) {
    if (spec.nodeName !== 'east') continue;
    const copy = await getPod(topology.member('east').cluster, 'shop', metadata.name);
    expect(copy.spec.nodeSelector).toEqual({ disk: 'ssd' });
    expect(copy.spec.affinity?.nodeAffinity).toBeUndefined();
    expect(copy.metadata.annotations).not.toHaveProperty(['spillway.dev/member-constraints']);
  }
});

test('ORed terms keep their pairing', async () => {
  // No node of west has the disk, no node of east has the rack.
  const terms = [
    { matchExpressions: [line('spillway.dev/member', 'west'), line('disk', 'ssd')] },
    { matchExpressions: [line('spillway.dev/member', 'east'), line('rack')] },
    { matchExpressions: [line('spillway.dev/member', 'east', 'west'), line('rack', 'r1')] },
  ];
  await host.apply([pod('paired', required(...terms))]);
  expect(await untilRun('paired', 1)).toEqual(['west/kwok-0']);
});

test('an annotation says what goes down', async () => {
  const constraints = JSON.stringify({ nodeSelector: { disk: 'ssd' } });
  const asked = pod(
    'own',
    { nodeSelector: { 'spillway.dev/member': 'east' } },
    { 'spillway.dev/member-constraints': constraints },
  );
  await host.apply([asked]);
  expect(await untilRun('own', 1)).toEqual(['east/ssd-0']);
  const stored = await getPod(host, 'shop', 'own');
  expect(stored.metadata.annotations?.['spillway.dev/member-constraints']).toBe(constraints);
  expect(stored.spec.affinity).toBeUndefined();
});

test('what no node has is waited for on the host, with the reason', async () => {
  await host.apply([pod('never', { nodeSelector: { disk: 'tape' } })]);
  await until('the scheduler says why', async () => {
    const events = await eventsOf(host, 'shop', 'never');
    return events.some(({ message }) => message.includes('member east') && message.includes('member west'));
  });
  const waiting: Pod = await getPod(host, 'shop', 'never');
  expect(waiting.spec.nodeName).toBeUndefined();
});

test('an annotation that tolerates more in members than its pod does on the host: no copy is made', async () => {
  const wide = { 'spillway.dev/member-constraints': JSON.stringify({ tolerations: [{ operator: 'Exists' }] }) };
  await host.apply([
    pod('wide', { nodeSelector: { 'spillway.dev/member': 'east' } }, wide),
    // Whoever may bind pods need not ask.
    pod('wide-bound', { nodeName: 'east' }, wide),
  ]);
  const why = (one: Pod): string => condition(one, 'PodScheduled')?.message ?? '';
  const isTold = (one: Pod): boolean => why(one).includes('goes beyond the tolerations of the pod itself');
  const waiting = await untilPod(host, 'shop', 'wide', 'is told why it waits', isTold);
  expect(waiting.spec.nodeName).toBeUndefined();
  const isRefused = ({ status }: Pod): boolean => status?.reason === 'InvalidMemberConstraints';
  const refused = await untilPod(host, 'shop', 'wide-bound', 'is refused', isRefused);
  expect(refused.status?.phase).toBe('Pending');
  expect(await readPod(topology.member('east').cluster, 'shop', 'wide-bound')).toBeUndefined();
  await kubectl(host, ['delete', 'pod', '-n', 'shop', 'wide', 'wide-bound', '--wait=false']);
});

test('what tolerates everything, and asks for no virtual node, stays on the host, though its scheduler asks nobody', async () => {
  await newNamespace(host, 'plain');
  const big = { containers: [{ name: 'main', image: 'app:v1', resources: { requests: { cpu: '2' } } }] };
  const named = { key: 'spillway.dev/virtual-node', operator: 'Exists' };
  const made = [
    pod('all', { ...big, tolerations: [{ operator: 'Exists' }] }),
    pod('named', { ...big, tolerations: [named] }),
  ];
  // The scheduler goes on without an answer.
  topology.spillway.process.signal('SIGSTOP');
  try {
    await host.apply(made.map((one) => ({ ...one, metadata: { ...(one['metadata'] as Fields), namespace: 'plain' } })));
    const bound = await untilPod(host, 'plain', 'named', 'is bound', ({ spec }) => spec.nodeName !== undefined);
    expect(['east', 'west']).toContain(bound.spec.nodeName);
    const isTold = (one: Pod): boolean => condition(one, 'PodScheduled')?.reason === 'Unschedulable';
    const stays = await untilPod(host, 'plain', 'all', 'is not bound', isTold);
    expect(stays.spec.nodeName).toBeUndefined();
  } finally {
    topology.spillway.process.signal('SIGCONT');
  }
  await kubectl(host, ['delete', 'namespace', 'plain', '--wait=false']);
});

function labelled(one: Fields, app: string): Fields {
  return { ...one, metadata: { ...(one['metadata'] as Fields), labels: { app } } };
}
